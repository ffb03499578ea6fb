"""Files whose footers are kept, and how often they are read."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.pages import assert_same

ROWS = 500
MOMENT = 0.03
"""Seconds after which the clock of every file system has moved on."""

TRAILER = 8
"""Bytes that say where a footer begins."""

COMPARED = 4_096
"""Bytes at the end of a file that tell whether a footer that is kept is still in it."""

settled = pytest.mark.usefixtures("_settled")


def table_of(first: int = 0, rows: int = ROWS) -> pa.Table:
    """Tables of as many rows become files of as many bytes."""
    numbers = np.arange(first, first + rows)
    table = pa.table({"n": numbers, "text": [f"row {number:07}" for number in numbers]})
    return table.replace_schema_metadata({"origin": f"{first:07}"})


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    layout = {"row_group_size": 200, "write_page_index": True, "compression": "none"}
    pq.write_table(table, sink, **layout | options)
    return sink.getvalue()


def saved(path: Path, table: pa.Table, **options: Any) -> Path:
    path.write_bytes(written(table, **options))
    return path


def read(*sources: Any, **options: Any) -> tuple[pa.Table, fs.Trace]:
    """What a scan gives, and what it read."""
    with fs.trace() as trace:
        table = fs.scan(list(sources) if len(sources) > 1 else sources[0], **options).to_arrow()
    return table, trace


def is_anew(trace: fs.Trace) -> bool:
    """Whether a footer was looked for: what is kept is only compared, by one small read."""
    lengths = [event.length for event in trace.log if event.why == "footer"]
    return TRAILER in lengths or max(lengths, default=0) > COMPARED


def assert_kept(path: Path, table: pa.Table) -> None:
    found, trace = read(path)
    assert not is_anew(trace)
    assert sum(event.why == "footer" for event in trace.log) == 1
    assert trace.data_bytes > 0
    assert_same(found, table)


def assert_read_anew(path: Path, table: pa.Table) -> None:
    found, trace = read(path)
    assert is_anew(trace)
    assert_same(found, table)


USES: dict[str, Callable[[fs.Scan], Any]] = {
    "schema": lambda scan: (scan.schema, scan.schema.metadata),
    "count": lambda scan: scan.count(),
    "window": lambda scan: scan.skip(150).head(100).to_arrow(),
    "tail": lambda scan: scan.tail(7).to_arrow(),
    "take": lambda scan: scan.take([400, 3, 3]),
    "filter": lambda scan: scan.filter((col("n") > 190) & (col("n") < 210)).to_arrow(),
    "other filter": lambda scan: scan.filter(col("text") == "row 0000333").to_arrow(),
    "row index": lambda scan: scan.select().with_row_index().tail(3).to_arrow(),
    "plan": lambda scan: scan.filter(col("n") < 20).plan().blocks,
    "batches": lambda scan: list(scan.batches(batch_size=90)),
}
