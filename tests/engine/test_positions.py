"""Rows by position out of files by several writers, in every flat type, against pyarrow."""

import io
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.pages import assert_same, random_array, row_groups

ROWS = 700

UNITS = ("s", "ms", "us", "ns")
TYPES: tuple[pa.DataType, ...] = (
    *(pa.null(), pa.bool_(), pa.bool8(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(precision, 2) for precision in (3, 4, 9, 10, 18, 19, 28, 38)),
    *(pa.decimal32(7, 3), pa.decimal64(15, 5), pa.decimal256(39, 0), pa.decimal256(76, 38)),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Berlin")),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.date32(), pa.date64(), *(pa.duration(unit) for unit in UNITS)),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.json_()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1), pa.binary(7), pa.uuid()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.binary())),
    *(pa.dictionary(pa.int32(), pa.int64()), pa.opaque(pa.int32(), "kind", "vendor")),
)


@cache
def some_columns() -> pa.Table:
    """One column for each physical type and level of nullability, among them wide strings."""
    rng = np.random.default_rng(5)
    kinds = {
        "flag": (pa.bool_(), 0.1),
        "small": (pa.int16(), 0.0),
        "big": (pa.int64(), 0.3),
        "single": (pa.float32(), 0.2),
        "double": (pa.float64(), 0.2),
        "text": (pa.string(), 0.5),
        "bytes": (pa.binary(), 0.0),
        "fixed": (pa.binary(7), 0.1),
        "price": (pa.decimal128(18, 2), 0.1),
        "at": (pa.timestamp("us", "UTC"), 0.95),
    }
    arrays = [random_array(kind, ROWS, nulls, rng) for kind, nulls in kinds.values()]
    fields = [pa.field(name, kind, nulls > 0) for name, (kind, nulls) in kinds.items()]
    unique = pa.array([f"{row:08d}" * (row % 5) for row in range(ROWS)])
    table = pa.table(arrays, schema=pa.schema(fields))
    return table.append_column("unique", unique).append_column("n", pa.array(range(ROWS)))


def write(table: pa.Table, **options: Any) -> bytes:
    """The table as a Parquet file of several row groups and many pages."""
    file = io.BytesIO()
    layout = {"row_group_size": 300, "max_rows_per_page": 37, "write_page_index": True}
    pq.write_table(table, file, **{**layout, **options})
    return file.getvalue()


def rows_of(table: pa.Table, rows: Any) -> pa.Table:
    return pa.concat_tables([table.slice(0, 0), *(table.slice(int(row), 1) for row in rows)])


def assert_same_by_position(data: bytes) -> None:
    """Random windows, tails, selections and takes give what pyarrow's table has there."""
    expected = pq.ParquetFile(io.BytesIO(data)).read()
    total = expected.num_rows
    rng = np.random.default_rng(total)
    scan = fs.scan(data)
    assert_same(scan.to_arrow(), expected)
    for _ in range(5):
        skip, length = (int(rng.integers(bound)) for bound in (total + 1, total // 2))
        assert_same(scan.skip(skip).head(length).to_arrow(), expected.slice(skip, length))
    assert_same(scan.tail(length).to_arrow(), expected.slice(total - length))
    rows = rng.choice(total, size=12, replace=False)
    assert_same(scan.select_rows(rows).to_arrow(), rows_of(expected, sorted(rows)))
    rows = rng.choice(total, size=12)
    assert_same(scan.take(rows), rows_of(expected, rows))
    mask = rng.random(total) < 0.5
    selection = fs.RowSelection.from_filters([pa.array(mask)])
    assert_same(scan.select_rows(selection).to_arrow(), rows_of(expected, np.flatnonzero(mask)))


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_flat_type(kind: pa.DataType, page_version: str) -> None:
    rng = np.random.default_rng(3)
    columns = [random_array(kind, ROWS, nulls, rng) for nulls in (0.0, 0.2, 1.0)]
    fields = [pa.field("some", kind), pa.field("none", kind)]
    if not pa.types.is_null(kind):
        fields.insert(0, pa.field("required", kind, nullable=False))
    table = pa.table(columns[-len(fields) :], schema=pa.schema(fields))
    assert_same_by_position(write(table, data_page_version=page_version))


CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
DELTA = {
    **dict.fromkeys(("small", "big", "at"), "DELTA_BINARY_PACKED"),
    **dict.fromkeys(("text", "fixed", "unique"), "DELTA_BYTE_ARRAY"),
    **{"bytes": "DELTA_LENGTH_BYTE_ARRAY", "flag": "RLE"},
}
SPLIT = dict.fromkeys(
    ("small", "big", "single", "double", "fixed", "price", "at"), "BYTE_STREAM_SPLIT"
)
OPTIONS: dict[str, dict[str, Any]] = {
    **{f"codec {codec}": {"compression": codec} for codec in CODECS},
    "plain": {"use_dictionary": False},
    "dictionary falls back": {"dictionary_pagesize_limit": 300, "write_batch_size": 16},
    "delta": {"use_dictionary": False, "column_encoding": DELTA},
    "byte stream split": {"use_dictionary": False, "column_encoding": SPLIT},
    "no page index": {"write_page_index": False},
    "pages of a few bytes": {"data_page_size": 64, "write_batch_size": 8},
    "one page a chunk": {"max_rows_per_page": 1_000},
    "checksums": {"write_page_checksum": True},
    "checksums without page index": {"write_page_checksum": True, "write_page_index": False},
    "no Arrow schema": {"store_schema": False},
    "format 1.0": {"version": "1.0"},
    "int96": {"use_deprecated_int96_timestamps": True},
    "row groups of a few rows": {"row_group_size": 20},
    "decimals as integers": {"store_decimal_as_integer": True},
}


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_way_pyarrow_writes(options: dict[str, Any], page_version: str) -> None:
    assert_same_by_position(write(some_columns(), data_page_version=page_version, **options))


def by_duckdb(path: Path, version: str) -> None:
    table = some_columns()
    options = f"FORMAT parquet, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version}"
    with duckdb.connect() as connection:
        connection.register("source", table)
        copies = "SELECT source.* FROM source, range(6) ORDER BY range, n"
        connection.execute(f"COPY ({copies}) TO '{path}' ({options})")


def by_polars(path: Path, compression: Any) -> None:
    frame = pl.from_arrow(some_columns())
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, compression=compression, row_group_size=300, data_page_size=500)


def by_fastparquet(path: Path, compression: str) -> None:
    frame = some_columns().drop_columns(["price", "at"]).to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fastparquet.write(str(path), frame, compression=compression, row_group_offsets=300)


@pytest.mark.parametrize(
    ("write_file", "option"),
    [
        *((by_duckdb, version) for version in ("V1", "V2")),
        *((by_polars, codec) for codec in ("zstd", "lz4", "uncompressed")),
        *((by_fastparquet, codec) for codec in ("SNAPPY", "GZIP")),
    ],
)
def test_other_writers(
    write_file: Callable[[Path, str], None], option: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.parquet"
    write_file(path, option)
    assert_same_by_position(path.read_bytes())


@pytest.mark.slow
@given(
    rows=st.integers(0, 90),
    group=st.integers(1, 40),
    page=st.integers(1, 20),
    index=st.booleans(),
    skip=st.integers(0, 100),
    length=st.integers(0, 100),
)
def test_any_window_of_any_layout(
    rows: int, group: int, page: int, index: bool, skip: int, length: int
) -> None:
    expected = some_columns().select(["n", "text", "flag"]).slice(0, rows)
    options = {"row_group_size": group, "max_rows_per_page": page, "write_page_index": index}
    scan = fs.scan(write(expected, **options)).with_row_index("row")
    window = scan.skip(skip).head(length).to_arrow()
    assert window.column_names == ["row", "n", "text", "flag"]
    assert window["row"].type == pa.int64()
    assert window["row"].to_pylist() == list(range(rows))[skip : skip + length]
    assert_same(window.drop_columns(["row"]), expected.slice(skip, length))
    assert_same(
        scan.tail(length).to_arrow().drop_columns(["row"]), expected.slice(max(0, rows - length))
    )
    assert scan.skip(skip).head(length).count() == window.num_rows


def test_file_without_rows() -> None:
    expected = some_columns().slice(0, 0)
    scan = fs.scan(write(expected))
    for empty in (scan, scan.skip(1), scan.head(3), scan.tail(3), scan.select_rows([])):
        assert_same(empty.to_arrow(), expected)
        assert_same(pa.Table.from_batches(empty.batches(), empty.schema), expected)
        assert empty.count() == 0
    assert_same(scan.take([]), expected)


def with_empty_row_groups() -> bytes:
    """Row groups of 0, 10, 0, 0, 5 and 0 rows."""
    file = io.BytesIO()
    table = some_columns()
    with pq.ParquetWriter(file, table.schema, write_page_index=True) as writer:
        for start, length in ((0, 0), (0, 10), (0, 0), (0, 0), (10, 5), (0, 0)):
            writer.write_table(table.slice(start, length))
    return file.getvalue()


def test_empty_row_groups() -> None:
    scan = fs.scan(with_empty_row_groups())
    expected = some_columns().slice(0, 15)
    assert_same(scan.to_arrow(), expected)
    assert_same(scan.skip(9).head(2).to_arrow(), expected.slice(9, 2))
    assert_same(scan.tail(6).to_arrow(), expected.slice(9))
    assert_same(scan.take([14, 0, 14, 10]), rows_of(expected, [14, 0, 14, 10]))
    assert_same(scan.filter(fs.blocks(2, 4)).to_arrow(), expected.slice(0, 0))
    with fs.open(with_empty_row_groups()) as file:
        assert [block.num_rows for block in file.blocks] == [0, 10, 0, 0, 5, 0]
        assert [block.first_row for block in file.blocks] == [0, 0, 10, 10, 10, 15]


def test_no_columns_still_has_rows() -> None:
    scan = fs.scan(write(some_columns())).select()
    assert scan.schema.names == []
    assert scan.to_arrow().num_rows == scan.count() == ROWS
    assert scan.skip(650).to_arrow().num_rows == 50
    assert scan.tail(7).to_arrow().num_rows == scan.tail(7).count() == 7
    assert scan.take([3, 3, 600]).num_rows == 3
    assert sum(batch.num_rows for batch in scan.batches(batch_size=64)) == ROWS
    assert scan.with_row_index().skip(698).to_arrow().to_pydict() == {"index": [698, 699]}


def test_row_index_is_the_physical_row() -> None:
    scan = fs.scan(write(some_columns())).select("n").with_row_index("row")
    wanted = [5, 299, 300, 301, 650]
    assert scan.select_rows(wanted).to_arrow().to_pydict() == {"row": wanted, "n": wanted}
    second = scan.filter(fs.blocks(1, 2)).skip(1).head(2).to_arrow()
    assert second.to_pydict() == {"row": [301, 302], "n": [301, 302]}
    assert scan.take([9, 650, 9]).to_pydict() == {"row": [9, 650, 9], "n": [9, 650, 9]}


def test_names_with_dots_and_names_that_repeat() -> None:
    names = ["a.b", "a", "", "\n", "twice", "twice"]
    table = pa.table([pa.array(range(i, i + 90)) for i in range(6)], names=names)
    scan = fs.scan(write(table, row_group_size=40))
    assert_same(scan.skip(38).head(4).to_arrow(), table[38:42])
    expected = pa.table([table[2], table[0], table[3]], names=["", "a.b", "\n"])
    assert_same(scan.select("", "a.b", "\n").tail(60).to_arrow(), expected[30:])
    assert_same(scan.select(("a.b",), "a").to_arrow(), table.select(["a.b", "a"]))


def test_projection_in_any_order() -> None:
    expected = some_columns()
    scan = fs.scan(write(expected))
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, expected.num_columns):
        names = list(rng.permutation(expected.column_names))[:size]
        assert_same(
            scan.select(*names).skip(290).head(20).to_arrow(), expected.select(names)[290:310]
        )
        assert scan.select(*names).schema.equals(expected.select(names).schema)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_batches_hold_at_most_batch_size_rows(size: int) -> None:
    scan = fs.scan(write(some_columns())).skip(5).head(400)
    batches = list(scan.batches(batch_size=size))
    assert max(batch.num_rows for batch in batches) <= size
    assert all(batch.schema.equals(scan.schema) for batch in batches)
    assert_same(pa.Table.from_batches(batches), some_columns().slice(5, 400))


def test_arrow_streams_and_frames() -> None:
    rows = fs.scan(write(some_columns())).skip(290).head(30)
    expected = some_columns().slice(290, 30)
    assert_same(rows.to_reader().read_all(), expected)
    assert rows.to_reader().schema.equals(rows.schema)
    assert_same(pa.table(rows), expected)
    assert pl.DataFrame(rows).equals(pl.DataFrame(expected))
    assert rows.to_polars().equals(pl.DataFrame(expected))
    pd.testing.assert_frame_equal(rows.to_pandas(), expected.to_pandas())
    with duckdb.connect() as connection:
        found = connection.execute("SELECT min(n), max(n), count(*) FROM rows").fetchall()
    assert found == [(290, 319, 30)]


def test_to_pandas_restores_the_index_that_pandas_wrote() -> None:
    frame = pd.DataFrame({"v": range(20)}, index=pd.Index(list("abcdefghijklmnopqrst"), name="key"))
    file = io.BytesIO()
    frame.to_parquet(file)
    pd.testing.assert_frame_equal(
        fs.scan(file.getvalue()).skip(3).head(4).to_pandas(), frame.iloc[3:7]
    )


def test_sources(tmp_path: Path) -> None:
    data = write(some_columns())
    path = tmp_path / "a file.txt"
    path.write_bytes(data)
    with path.open("rb") as opened:
        sources: list[Any] = [
            path,
            str(path),
            path.as_uri(),
            data,
            bytearray(data),
            memoryview(data),
        ]
        for source in (*sources, io.BytesIO(data), opened):
            assert_same(fs.scan(source).skip(290).head(20).to_arrow(), some_columns()[290:310])
            with fs.open(source) as file:
                assert_same(file.scan().tail(3).to_arrow(), some_columns()[-3:])
        assert not opened.closed


def test_scans_are_immutable_and_read_nothing_until_asked(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(write(some_columns()))
    with fs.trace() as trace:
        whole = fs.scan(path)
        part = whole.select("n").filter(fs.blocks(0, 1)).select_rows([1, 2]).skip(1).head(1)
    assert trace.requests == 0
    assert part.to_arrow().to_pydict() == {"n": [2]}
    assert_same(whole.to_arrow(), some_columns())
    assert_same(whole.to_arrow(), some_columns())
    with pytest.raises((AttributeError, TypeError)):
        whole.limit = 3  # type: ignore[attr-defined]


@pytest.mark.slow
def test_scans_are_pickled_to_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(write(some_columns()))
    code = "import pickle, sys; scan = pickle.load(sys.stdin.buffer); print(scan.to_arrow()['n'])"
    for source in (path, str(path), path.read_bytes()):
        scan = fs.scan(source).select("text", "n").skip(299).head(2)
        pickled = pickle.dumps(scan)
        assert_same(pickle.loads(pickled).to_arrow(), scan.to_arrow())
        run = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True)
        assert run.stdout.decode().split() == str(scan.to_arrow()["n"]).split(), run.stderr
    with path.open("rb") as opened, pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(fs.scan(opened))


def test_open_tells_what_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = some_columns().replace_schema_metadata({"owner": "a test"})
    path.write_bytes(write(table))
    metadata = pq.ParquetFile(path).metadata
    with fs.open(path) as file:
        assert (file.format, file.num_rows) == ("parquet", ROWS)
        assert file.metadata == metadata.metadata
        assert [node.name for node in file.schema.children] == table.column_names
        assert [node.arrow_type for node in file.schema.children] == table.schema.types
        assert [node.nullable for node in file.schema.children] == [
            f.nullable for f in table.schema
        ]
        for block, group in zip(file.blocks, row_groups(path.read_bytes()), strict=True):
            assert (block.first_row, block.num_rows) == (
                group.first_row,
                group.end_row - group.first_row,
            )
            assert (block.offset, block.midpoint) == (group.span.start, group.midpoint)
            assert block.compressed_size == group.span.end - group.span.start
            assert block.uncompressed_size == metadata.row_group(block.ordinal).total_byte_size
        assert_same(file.scan().to_arrow(), table)
