"""Statistics in the headers of pages: they prune where no index does, and prove no more than it."""

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import BINARY, Struct
from tests.support.page_craft import V1, V2, Change, Pages

ROWS = 40_000
STATISTICS = {V1: 5, V2: 8}
"""The field of the statistics, by the field of the header of a data page."""
MAX, MIN, NULL_COUNT, MAX_VALUE, MIN_VALUE = 1, 2, 3, 5, 6

versions = pytest.mark.parametrize("version", ["1.0", "2.0"])


def written(column: pa.Array, version: str = "1.0", **options: Any) -> bytes:
    """A file of pages of some 20 KB, without any index but the statistics of its pages."""
    sink = io.BytesIO()
    table = pa.table({"x": column, "row": pa.array(range(len(column)))})
    defaults = {"write_page_index": False, "use_dictionary": False, "compression": "none"}
    settings = {**defaults, "data_page_size": 20_000, "write_batch_size": 512, **options}
    pq.write_table(table, sink, data_page_version=version, **settings)
    return sink.getvalue()


def told(change: Callable[[Struct], None]) -> Change:
    """Other statistics in the header of each data page."""

    def changed(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        for version, field in STATISTICS.items():
            if version in header:
                change(header[version][1][field][1])
        return [(header, body)]

    return changed


def found(data: bytes, predicate: fs.Predicate) -> tuple[list[int], fs.Trace]:
    with fs.trace() as trace:
        rows = fs.scan(data).filter(predicate).to_arrow()["row"].to_pylist()
    assert rows == fs.scan(data, indexes=False).filter(predicate).to_arrow()["row"].to_pylist()
    return rows, trace


@versions
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.timestamp("us")])
def test_pages_that_cannot_match_are_not_read(version: str, kind: pa.DataType) -> None:
    numbers = pa.array(range(ROWS))
    text = pc.utf8_lpad(numbers.cast(pa.string()), 8, "0")
    column = text if pa.types.is_string(kind) else numbers.cast(kind)
    data = written(column, version)
    rows, trace = found(data, col("x") == column[30_000].as_py())
    assert rows == [30_000]
    by_headers = [pruned for pruned in trace.pruned if pruned.source == "page headers"]
    assert [(pruned.level, pruned.kept) for pruned in by_headers] == [("page", 1)]
    assert by_headers[0].dropped > 10
    assert trace.pages_decoded <= 3
    assert trace.bytes_read < len(data) / 4


@versions
def test_dictionary_encoded_pages_have_statistics_too(version: str) -> None:
    column = pa.array([i // 4 for i in range(200_000)])
    data = written(column, version, use_dictionary=True)
    rows, trace = found(data, col("x").is_between(32_100, 32_199))
    assert rows == list(range(128_400, 128_800))
    assert any(p.source == "page headers" and p.dropped for p in trace.pruned)


@versions
def test_nan_is_found_whatever_the_bounds_of_its_page(version: str) -> None:
    values = np.arange(ROWS, dtype=np.float64)
    values[777] = math.nan
    data = written(pa.array(values), version)
    rows, _ = found(data, col("x") > ROWS - 3)
    assert rows == [777, ROWS - 2, ROWS - 1]
    assert found(data, col("x").is_nan())[0] == [777]


@versions
def test_pages_of_nulls_are_told_by_their_counts(version: str) -> None:
    values = [None if 10_000 <= i < 30_000 else i for i in range(ROWS)]
    data = written(pa.array(values, pa.int64()), version)
    rows, trace = found(data, col("x").is_null())
    assert rows == list(range(10_000, 30_000))
    assert any(p.source == "page headers" and p.dropped for p in trace.pruned)
    assert found(data, col("x").is_not_null() & (col("x") < 5))[0] == [0, 1, 2, 3, 4]


@versions
def test_unsigned_values_have_their_own_order(version: str) -> None:
    values = np.arange(ROWS, dtype=np.uint32) + np.uint32(2**31 - ROWS // 2)
    data = written(pa.array(values), version)
    for row in (0, ROWS // 2 - 1, ROWS // 2, ROWS - 1):
        assert found(data, col("x") == int(values[row]))[0] == [row]


@versions
def test_a_page_without_statistics_is_read(version: str) -> None:
    pages = 0

    def change(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        nonlocal pages
        for field, statistics in STATISTICS.items():
            if field in header:
                pages += 1
                if pages % 3 == 0:
                    header[field][1].pop(statistics)
        return [(header, body)]

    data = Pages(written(pa.array(range(ROWS)), version)).changed(change)
    assert pages > 20
    for row in range(0, ROWS, 1_999):
        assert found(data, col("x") == row)[0] == [row]


@versions
def test_deprecated_bounds_of_text_are_not_believed(version: str) -> None:
    """Their order was that of signed bytes: a page that begins with é was below every other."""
    column = pc.utf8_lpad(pa.array(range(ROWS)).cast(pa.string()), 8, "0")

    def deprecated(statistics: Struct) -> None:
        statistics.pop(MAX_VALUE)
        statistics.pop(MIN_VALUE)
        statistics[MIN] = statistics[MAX] = (BINARY, b"zzz")

    data = Pages(written(column, version)).changed(told(deprecated))
    assert found(data, col("x") == "00012345")[0] == [12_345]


@versions
def test_values_outside_of_the_bounds_of_their_page_are_an_error(version: str) -> None:
    def narrow(statistics: Struct) -> None:
        statistics.pop(MAX, None)
        statistics.pop(MIN, None)
        low = int.from_bytes(statistics[MIN_VALUE][1], "little")
        statistics[MAX_VALUE] = (BINARY, (low + 10).to_bytes(8, "little"))

    data = Pages(written(pa.array(range(ROWS)), version)).changed(told(narrow))
    with pytest.raises(fs.FileFormatError, match="page headers"):
        fs.scan(data).filter(col("x") <= 5).to_arrow()


def test_headers_are_not_asked_where_there_is_a_column_index() -> None:
    data = written(pa.array(range(ROWS)), write_page_index=True)
    rows, trace = found(data, col("x") == 30_000)
    assert rows == [30_000]
    assert {pruned.source for pruned in trace.pruned} == {"statistics", "column index"}


def test_small_pages_are_read_as_they_are() -> None:
    data = written(pa.array(range(ROWS)), data_page_size=1_000, write_batch_size=64)
    with fs.trace() as trace:
        assert fs.scan(data).filter(col("x") == 30_000).to_arrow()["row"].to_pylist() == [30_000]
    assert {pruned.source for pruned in trace.pruned} == {"statistics"}


@versions
def test_nulls_that_pages_count_otherwise_than_their_chunk_are_not_believed(version: str) -> None:
    values = [None if i % 8_000 == 5 else i for i in range(ROWS)]

    def none_missing(statistics: Struct) -> None:
        statistics[NULL_COUNT] = (statistics[NULL_COUNT][0], 0)

    data = Pages(written(pa.array(values, pa.int64()), version)).changed(told(none_missing))
    nulls = [i for i, value in enumerate(values) if value is None]
    assert found(data, col("x").is_null())[0] == nulls
    assert len(found(data, col("x").is_not_null())[0]) == ROWS - len(nulls)


def test_headers_that_claim_other_rows_are_no_reason_not_to_plan() -> None:
    """Some writers told as many rows as values in version 2 pages of lists."""
    lists = pa.array([[i, i + 1] for i in range(ROWS)])
    num_values, num_rows = 1, 3

    def as_many(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        if V2 in header:
            header[V2][1][num_rows] = header[V2][1][num_values]
        return [(header, body)]

    data = Pages(written(lists, "2.0")).changed(as_many)
    assert fs.scan(data).filter(col("x").any() > ROWS - 3).count() == 3
    with fs.open(data) as file:
        assert file.prune(col("x").any() > 5).selected_count == ROWS


def test_headers_are_asked_once(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(written(pa.array(range(ROWS)), row_group_size=ROWS // 4))
    os.utime(path, ns=(0, 0))
    with fs.open(path) as file:
        scan = file.scan().filter(col("x") == 30_000)
        with fs.trace() as first:
            assert scan.count() == 1
        with fs.trace() as second:
            assert scan.count() == 1
    assert first.index_bytes > 0
    assert second.index_bytes == 0
