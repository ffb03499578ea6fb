"""What a file says about itself, held against what pyarrow, DuckDB and pyorc say about it."""

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyorc
import pytest

import fretsaw as fs
from tests.support.formats import even, written
from tests.support.pages import row_groups

ROWS, BLOCK = 4_000, 1_500


def numbers(rows: int = ROWS) -> pa.Table:
    """Columns with and without nulls, dictionaries and bounds of many types."""
    index = np.arange(rows)
    return pa.table(
        {
            "id": pa.array(index),
            "city": pa.array([["NYC", "LA", None][i % 3] for i in index]),
            "fare": pa.array(index / 4),
            "day": pa.array(index.astype(np.int32), pa.date32()),
            "price": pa.array([Decimal(int(i)).scaleb(-2) for i in index], pa.decimal128(9, 2)),
            "seen": pa.array(index * 1000, pa.timestamp("ms")),
            "ok": pa.array(index % 2 == 0),
        }
    )


@pytest.fixture
def data() -> bytes:
    options = {"data_page_size": 2_000, "write_page_index": True, "compression": "snappy"}
    blooms = {"bloom_filter_options": {"id": {"ndv": BLOCK}}}
    return written(
        numbers(), "parquet", even(ROWS, BLOCK), use_dictionary=["city"], **options, **blooms
    )


def test_chunks_are_those_of_pyarrow(data: bytes) -> None:
    chunks = fs.open(data).chunks().to_pylist()
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    assert len(chunks) == metadata.num_row_groups * metadata.num_columns
    for place, chunk in enumerate(chunks):
        block, column = divmod(place, metadata.num_columns)
        stored = metadata.row_group(block).column(column)
        expected = {
            "path": stored.path_in_schema,
            "block": block,
            "rows": metadata.row_group(block).num_rows,
            "physical_type": stored.physical_type,
            "codec": stored.compression,
            "encodings": [*stored.encodings],
            "compressed_size": stored.total_compressed_size,
            "uncompressed_size": stored.total_uncompressed_size,
            "values": stored.num_values,
            "nulls": stored.statistics.null_count,
            "has_dictionary": stored.has_dictionary_page,
            "has_page_index": stored.has_offset_index,
            "has_bloom_filter": stored.path_in_schema == "id",
        }
        assert {name: chunk[name] for name in expected} == expected
        begins = [stored.data_page_offset]
        begins += [stored.dictionary_page_offset] if stored.has_dictionary_page else []
        assert chunk["offset"] == min(begins)
        if stored.has_dictionary_page:
            assert chunk["dictionary_size"] == max(begins) - min(begins)


def test_chunks_are_those_of_duckdb(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    path.write_bytes(data)
    names = "path_in_schema, row_group_id, num_values, stats_min_value, stats_max_value"
    rest = "stats_null_count, total_compressed_size, bloom_filter_offset, bloom_filter_length"
    told = duckdb.execute(f"select {names}, {rest} from parquet_metadata('{path}')").fetchall()
    chunks = fs.open(path).chunks().to_pylist()
    keys = [(chunk["path"], chunk["block"]) for chunk in chunks]
    assert keys == [tuple(row[:2]) for row in told]
    for chunk, row in zip(chunks, told, strict=True):
        assert (chunk["values"], chunk["nulls"], chunk["compressed_size"]) == (
            row[2],
            row[5],
            row[6],
        )
        assert chunk["has_bloom_filter"] == (row[7] is not None)
        assert chunk["bloom_filter_size"] == row[8]
        if chunk["path"] in ("id", "city", "day", "price"):
            assert (chunk["min"], chunk["max"]) == (row[3], row[4])


@pytest.mark.parametrize("name", numbers(1).column_names)
def test_bounds_of_one_column_are_of_its_type(data: bytes, name: str) -> None:
    chunks = fs.open(data).chunks(name)
    table = numbers()
    assert chunks["min"].type == table[name].type
    for block, least, most in zip(
        *(chunks[c].to_pylist() for c in ("block", "min", "max")), strict=True
    ):
        ends = pc.min_max(table[name].slice(block * BLOCK, BLOCK)).as_py()
        assert (least, most) == (ends["min"], ends["max"])


@pytest.mark.parametrize("writer", ["orc", "pyorc"])
def test_chunks_of_orc_are_those_of_pyarrow_and_pyorc(writer: str) -> None:
    data = written(numbers(), writer, even(ROWS, BLOCK), compression="zlib", row_index_stride=500)
    file, told = fs.open(data), orc.ORCFile(io.BytesIO(data))
    chunks = file.chunks().to_pylist()
    reader = pyorc.Reader(io.BytesIO(data))
    assert len(chunks) == told.nstripes * len(numbers().column_names)
    for chunk in chunks:
        column = numbers()[chunk["path"]].slice(chunk["block"] * BLOCK, BLOCK)
        stripe = reader.read_stripe(chunk["block"])
        assert chunk["rows"] == chunk["values"] == len(stripe)
        assert chunk["codec"] == told.compression == "ZLIB"
        assert chunk["nulls"] == column.null_count
        assert chunk["has_page_index"]
        assert chunk["page_index_size"] > 0
        place = 1 + numbers().column_names.index(chunk["path"])
        statistics = stripe[place].statistics
        if chunk["path"] == "id":
            assert chunk["min"] == str(statistics["minimum"])
            assert chunk["max"] == str(statistics["maximum"])
    sizes = sum(chunk["compressed_size"] for chunk in chunks)
    assert 0 < sizes < sum(block.compressed_size for block in file.blocks)
    typed = file.chunks("price")
    assert typed["min"].to_pylist() == [Decimal(n * BLOCK).scaleb(-2) for n in range(3)]
    assert typed["is_exact"].to_pylist() == [True] * 3


def test_pages_are_where_their_headers_are(data: bytes) -> None:
    expected = [
        (chunk.column, ordinal, page.first_row, page.end_row - page.first_row, page.span.start)
        for ordinal, group in enumerate(row_groups(data))
        for chunk in group.chunks
        for page in chunk.pages
    ]
    columns = ("path", "block", "first_row", "rows", "offset")
    pages = fs.open(data).pages().select(columns)
    assert [tuple(row.values()) for row in pages.to_pylist()] == expected


@pytest.mark.parametrize("writer", ["parquet", "orc", "pyorc"])
@pytest.mark.parametrize("has_index", [True, False])
def test_pages_hold_the_values_within_their_bounds(writer: str, has_index: bool) -> None:
    options: dict[str, Any] = {"data_page_size": 2_000, "write_page_index": has_index}
    if writer != "parquet":
        options = {"row_index_stride": 500 if has_index else 0}
    data = written(numbers(), writer, even(ROWS, BLOCK), **options)
    table, file = numbers(), fs.open(data)
    for name in ("id", "fare", "city", "day"):
        pages = file.pages(name).to_pylist()
        assert sum(page["rows"] for page in pages) == ROWS
        assert [page["page"] for page in pages if page["block"] == 2] == [
            *range(sum(page["block"] == 2 for page in pages))
        ]
        for page in pages:
            values = table[name].slice(page["first_row"], page["rows"])
            ends = pc.min_max(values).as_py()
            assert page["nulls"] in (None, values.null_count)
            if has_index or writer == "parquet":
                assert (page["min"], page["max"]) == (ends["min"], ends["max"])
                assert page["nulls"] == values.null_count
        if has_index:
            assert len(pages) > 3 or name == "city"


def test_sizes_of_pages_add_up_to_their_chunks(data: bytes) -> None:
    compressed = written(
        numbers(), "orc", even(ROWS, BLOCK), compression="zstd", row_index_stride=500
    )
    for file in (fs.open(data), fs.open(compressed)):
        pages = file.pages().group_by(["path", "block"]).aggregate([("size", "sum")])
        sizes = {(row["path"], row["block"]): row["size_sum"] for row in pages.to_pylist()}
        for chunk in file.chunks().to_pylist():
            total = chunk["compressed_size"] - (chunk["dictionary_size"] or 0)
            assert sizes[chunk["path"], chunk["block"]] == total


def test_encodings_of_pages_that_fell_back_from_a_dictionary() -> None:
    table = pa.table({"s": [f"value {i}" for i in range(20_000)]})
    data = written(
        table, "parquet", [20_000], data_page_size=4_000, dictionary_pagesize_limit=8_000
    )
    encodings = fs.open(data).pages("s")["encoding"].to_pylist()
    switch = encodings.index("PLAIN")
    assert switch > 0
    assert set(encodings[:switch]) == {"RLE_DICTIONARY"}
    assert set(encodings[switch:]) == {"PLAIN"}


@pytest.mark.parametrize("writer", ["parquet", "orc", "pyorc"])
def test_a_dictionary_is_its_distinct_values(writer: str) -> None:
    options: dict[str, Any] = {}
    if writer == "orc":
        options = {"dictionary_key_size_threshold": 1.0}
    if writer == "pyorc":
        options = {"dict_key_size_threshold": 1.0}
    table = pa.table({"s": [f"value {i % 700}" for i in range(3_000)]})
    data = written(table, writer, [2_000, 1_000], **options)
    file = fs.open(data)
    assert file.chunks("s")["has_dictionary"].to_pylist() == [True, True]
    with fs.trace() as t:
        found = file.dictionary("s", 1)
    assert found.column_names == ["value"]
    assert sorted(found["value"].to_pylist()) == sorted(set(table["s"].slice(2_000).to_pylist()))
    assert t.data_bytes == 0
    assert {event.why for event in t.log} <= {"index", "dictionary", "footer"}


def test_a_dictionary_of_a_nested_leaf() -> None:
    table = pa.table({"xs": [["a", "b"], [], None, ["b", "c", None]] * 50})
    for writer in ("parquet", "pyorc"):
        options = {} if writer == "parquet" else {"dict_key_size_threshold": 1.0}
        file = fs.open(written(table, writer, [200], **options))
        assert sorted(file.dictionary("xs.element", 0)["value"].to_pylist()) == ["a", "b", "c"]


def test_what_has_no_dictionary_is_told(data: bytes) -> None:
    file = fs.open(data)
    with pytest.raises(ValueError, match="'id' has no dictionary in block 0"):
        file.dictionary("id", 0)
    with pytest.raises(ValueError, match="no block 3"):
        file.dictionary("city", 3)
    with pytest.raises(fs.ColumnNotFoundError, match="town"):
        file.dictionary("town", 0)


@pytest.mark.parametrize("writer", ["parquet", "orc", "pyorc"])
@pytest.mark.parametrize("has_index", [True, False])
def test_only_metadata_are_read(writer: str, has_index: bool) -> None:
    rows = 200_000
    options: dict[str, Any] = {"write_page_index": has_index, "use_dictionary": False}
    if writer != "parquet":
        options = {"row_index_stride": 5_000 if has_index else 0}
    table = pa.table({"x": np.random.default_rng(3).random(rows), "y": np.arange(rows)})
    data = written(table, writer, [rows], **options)
    file = fs.open(data)
    with fs.trace() as t:
        assert file.chunks().num_rows == 2
        assert sum(file.pages()["rows"].to_pylist()) == 2 * rows
    assert t.data_bytes == t.pages_decoded == 0
    assert t.bytes_read < len(data) / 10


def test_one_column_of_many_is_all_that_is_looked_at() -> None:
    table = pa.table({f"c{i}": [i] for i in range(300)})
    file = fs.open(written(table, "parquet", [1]))
    found = file.chunks("c7", "c9")
    assert found["path"].to_pylist() == ["c7", "c9"]
    assert found["min"].to_pylist() == ["7", "9"]
    assert file.pages(["c7"])["path"].to_pylist() == ["c7"]


def test_a_struct_stands_for_its_leaves() -> None:
    table = pa.table({"s": [{"a": 1, "b": [2, 3]}], "t": [4]})
    chunks = fs.open(written(table, "parquet", [1])).chunks("s")
    assert chunks["path"].to_pylist() == ["s.a", "s.b.element"]
    assert chunks["values"].to_pylist() == [1, 2]


def test_bounds_as_text() -> None:
    kinds = {
        "bytes": pa.array([b"\xff\x01", b"\xfe"]),
        "uuid": pa.array([UUID(int=5).bytes, UUID(int=6).bytes], pa.uuid()),
        "half": pa.array(np.array([1.5, 2.5], np.float16)),
        "time": pa.array([dt.time(1, 2, 3), dt.time(4)], pa.time64("us")),
        "utc": pa.array([0, 10**6], pa.timestamp("us", "UTC")),
        "ok": pa.array([True, False]),
    }
    chunks = fs.open(written(pa.table(kinds), "parquet", [2])).chunks()
    found = dict(zip(chunks["path"].to_pylist(), chunks["min"].to_pylist(), strict=True))
    assert found == {
        "bytes": "0xfe",
        "uuid": str(UUID(int=5)),
        "half": "1.5",
        "time": "01:02:03.000000",
        "utc": "1970-01-01 00:00:00.000000Z",
        "ok": "false",
    }


def test_files_without_rows_or_columns() -> None:
    for table in (pa.table({"x": pa.array([], pa.int64())}), pa.table({})):
        file = fs.open(written(table, "parquet", [0]))
        assert file.pages().num_rows == 0
        assert file.chunks().num_rows == len(table.column_names)
    empty = fs.open(written(pa.table({"x": pa.array([], pa.string())}), "orc", []))
    assert empty.chunks("x")["min"].type == pa.string()


@pytest.mark.slow
def test_files_of_other_writers_tell_what_pyarrow_says(corpus: Path) -> None:
    compared = 0
    for path in sorted((corpus / "parquet").rglob("*.parquet")):
        try:
            metadata = pq.read_metadata(path)
            file = fs.open(path)
            chunks = file.chunks().to_pylist()
        except (pa.ArrowException, OSError, fs.FretsawError):
            continue
        if len(chunks) != metadata.num_columns * metadata.num_row_groups:
            continue  # with columns that cannot be read
        for place, chunk in enumerate(chunks):
            block, column = divmod(place, metadata.num_columns)
            stored = metadata.row_group(block).column(column)
            assert chunk["values"] == stored.num_values
            assert chunk["compressed_size"] == stored.total_compressed_size
            named = {"LZ4": "LZ4_RAW", "UNKNOWN": "LZ4"}  # what pyarrow calls them
            assert chunk["codec"] in (stored.compression, named.get(stored.compression))
            compared += 1
        with fs.trace() as t:
            try:
                file.pages()
            except fs.FileFormatError:
                continue
        assert t.data_bytes == 0, path
    assert compared > 300
