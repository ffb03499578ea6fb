"""Scans of small tables under a predicate, for tests of its rules."""

import datetime as dt
import io
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col

LAYOUTS: tuple[dict[str, Any], ...] = (
    {"write_page_index": True, "max_rows_per_page": 2, "write_batch_size": 1},
    {"write_page_index": True, "data_page_version": "2.0", "row_group_size": 3},
    {"write_statistics": False, "use_dictionary": False},
)
NAN, INF = float("nan"), float("inf")
UTC = dt.UTC


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def row_numbers(scan: fs.Scan) -> list[int]:
    found: list[int] = scan.select().with_row_index().to_arrow()["index"].to_pylist()
    return found


def matching(predicate: Any, **columns: Any) -> list[int]:
    """The rows that match, which must not depend on pages, row groups or statistics."""
    found: list[list[int]] = []
    for layout in LAYOUTS:
        data = written(pa.table(columns), **layout)
        scan = fs.scan(data).filter(predicate)
        found.append(row_numbers(scan))
        assert scan.count() == len(found[-1])
        assert row_numbers(fs.scan(data, indexes=False).filter(predicate)) == found[-1]
    assert found == found[:1] * len(LAYOUTS)
    return found[0]


def rules(*cases: tuple[Any, list[int]]) -> Any:
    """Parameters: predicates and the rows that they match."""
    return pytest.mark.parametrize(("predicate", "rows"), cases, ids=repr)


x = col("x")

DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0)
ONE = uuid.UUID(int=1)
HIGH = uuid.UUID(int=2**127)


def numbers(scan: fs.Scan) -> list[int]:
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found
