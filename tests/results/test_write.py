"""Results as files: what is written is what was read, complete or absent, and never an input."""

import base64
import csv
import datetime as dt
import io
import json
import math
import os
import random
import signal
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.results.write.files import write_file
from fretsaw.results.write.formats import FORMATS, format_of
from fretsaw.results.write.places import staged_directory

ROWS = 1_000
PARTS = 2
UTC = dt.UTC
SUFFIXES = {
    "x.parquet": "parquet",
    "x.orc": "orc",
    "x.csv": "csv",
    "x.json": "json",
    "x.jsonl": "json",
    "x.NDJSON": "json",
    "x.arrow": "arrow",
    "x.feather": "arrow",
    "x.ipc": "arrow",
}
BATCH = pa.record_batch({"n": pa.array(range(100_000)), "s": ["some text"] * 100_000})
FLAT = ["id", "flag", "small", "float", "single", "text", "amount", "day", "clock", "when", "at"]


def some(make: Callable[[int], Any], seed: int) -> list[Any]:
    """A value for each row, one in seven of them null."""
    chance = random.Random(seed)
    return [None if chance.random() < 1 / 7 else make(row) for row in range(ROWS)]


def rich() -> pa.Table:
    """All kinds of columns, nested ones too."""
    floats = [0.1, 1.0, -0.0, 1e300, 5e-324, math.nan, math.inf, -math.inf, 123456789.125]
    texts = [
        "",
        "plain",
        'a "quoted" word',
        "back\\slash",
        "two\nlines\r",
        "\x00\x1f\x7f",
        "é, 漢字 🎸",
    ]
    start = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    nested = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])
    items = pa.list_(pa.struct([("price", pa.decimal128(12, 2)), ("tags", pa.list_(pa.string()))]))
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "flag": some(lambda row: row % 3 == 0, 1),
            "small": pa.array(some(lambda row: row % 256 - 128, 2), pa.int8()),
            "float": some(lambda row: floats[row % len(floats)], 3),
            "single": pa.array(some(lambda row: row / 7, 4), pa.float32()),
            "text": some(lambda row: texts[row % len(texts)], 5),
            "amount": pa.array(some(lambda row: Decimal(row) / 100, 6), pa.decimal128(30, 2)),
            "day": some(lambda row: dt.date(1900, 1, 1) + dt.timedelta(row * 30), 7),
            "clock": pa.array(some(lambda row: row * 25_000_001, 8), pa.time64("us")),
            "when": some(lambda row: start + dt.timedelta(seconds=row * 7_919.5), 9),
            "at": pa.array(
                some(lambda row: row * 10**12 - 1, 10), pa.timestamp("us", "Asia/Tokyo")
            ),
            "raw": pa.array(some(lambda row: bytes(range(row % 9)), 11), pa.binary()),
            "fixed": pa.array(some(lambda row: row.to_bytes(3, "big"), 12), pa.binary(3)),
            "kind": pa.array(some(lambda row: f"kind {row % 5}", 13)).dictionary_encode(),
            "list": pa.array(some(lambda row: [None, *range(row % 4)], 14), pa.list_(pa.int32())),
            "nested": pa.array(
                some(lambda row: {"x": row, "y": {"z": f"{row}"} if row % 5 else None}, 15), nested
            ),
            "map": pa.array(
                some(lambda row: [(f"k{key}", key or None) for key in range(row % 3)], 16),
                pa.map_(pa.string(), pa.int64()),
            ),
            "items": pa.array(
                some(lambda row: [_item(row), None][: row % 3], 17),
                items,
            ),
        }
    )


def _item(row: int) -> dict[str, Any]:
    return {"price": Decimal(row) / 4, "tags": ["a", None, f'"{row}"'][: row % 4]}


def write_parts(folder: Path, table: pa.Table) -> list[Path]:
    """The table as several Parquet files of several row groups."""
    folder.mkdir(exist_ok=True)
    size = -(-table.num_rows // PARTS)
    paths = [folder / f"part-{part}.parquet" for part in range(PARTS)]
    for part, path in enumerate(paths):
        piece = table.slice(part * size, size)
        pq.write_table(piece, path, row_group_size=230, write_page_index=True)
    return paths


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_parts(tmp_path_factory.mktemp("input"), rich())


@pytest.fixture(scope="module")
def read(parts: list[Path]) -> pa.Table:
    """What pyarrow reads of the input."""
    return pa.concat_tables(map(pq.read_table, parts))


def records(table: pa.Table) -> list[dict[str, Any]]:
    return list(table.to_pylist())


def asked(query: str) -> pa.Table:
    """What DuckDB answers."""
    with duckdb.connect() as connection:
        relation = connection.sql(query)
        assert relation is not None
        return relation.to_arrow_table()


def same(left: Any, right: Any) -> bool:
    """Equal, with NaN equal to itself."""
    return repr(left) == repr(right)


# Formats ------------------------------------------------------------------------------------------


def test_parquet_holds_what_was_read(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.parquet"
    assert fs.scan(parts).write(path) == ROWS
    found = pq.read_table(path)
    assert found.schema == read.schema
    assert same(records(found), records(read))


def test_parquet_has_a_page_index_that_cuts(tmp_path: Path) -> None:
    source, path = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"id": range(200_000), "other": range(200_000)}), source)
    fs.scan(source).write(path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    assert chunk.has_column_index
    assert chunk.has_offset_index
    with fs.trace() as t:
        found = fs.scan(path).filter("id between 150000 and 150004").to_arrow()
    assert found["other"].to_pylist() == list(range(150_000, 150_005))
    assert t.pages_decoded == 2  # one of each column
    assert t.fallbacks == []


def test_row_groups_are_neither_tiny_nor_endless(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": pa.array(np.zeros(1_000, np.int8))})
    path = tmp_path / "many.parquet"
    assert write_file(iter([batch] * 2_500), batch.schema, path, "parquet") == 2_500_000
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert sum(sizes) == 2_500_000
    assert len(sizes) == 3
    assert max(sizes) <= 1_100_000
    wide = pa.record_batch({"s": pa.array(["x" * 1_000] * 10_000)})
    write_file(iter([wide] * 40), wide.schema, path, "parquet")
    assert 3 <= pq.read_metadata(path).num_row_groups <= 5


def test_orc_holds_what_was_read(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.orc"
    assert fs.scan(parts).select(*_orc_columns(read)).write(path) == ROWS
    found = orc.ORCFile(path).read()
    expected = read.select(_orc_columns(read))
    assert same(found["at"].cast(pa.int64()).to_pylist(), _nanoseconds(expected["at"]))
    rest = [name for name in expected.column_names if name != "at"]
    assert same(_as_micro(found.select(rest)), records(expected.select(rest)))


def _orc_columns(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name != "clock"]


def _nanoseconds(column: pa.ChunkedArray) -> list[int | None]:
    return [
        None if value is None else value * 1_000 for value in column.cast(pa.int64()).to_pylist()
    ]


def _as_micro(table: pa.Table) -> list[dict[str, Any]]:
    when = table["when"].cast(pa.timestamp("us"))
    return records(table.set_column(table.column_names.index("when"), "when", when))


def test_orc_takes_windows_into_structs(tmp_path: Path) -> None:
    # Arrow's writer takes a slice of a struct for the whole of it.
    rows = [None if row % 7 == 0 else {"a": row, "b": {"c": str(row)}} for row in range(9_000)]
    table = pa.table({"s": rows})
    batches = [table.to_batches()[0].slice(start, 1_700) for start in range(13, 9_000, 1_700)]
    path = tmp_path / "s.orc"
    write_file(iter(batches), table.schema, path, "orc")
    assert orc.ORCFile(path).read()["s"].to_pylist() == rows[13:]


def test_orc_takes_unions_and_many_stripes_are_not_made(tmp_path: Path) -> None:
    numbers, words = pa.array(range(5_000)), pa.array([str(row) for row in range(5_000)])
    union = pa.UnionArray.from_sparse(pa.array([0, 1] * 2_500, pa.int8()), [numbers, words])
    source, path = tmp_path / "in.orc", tmp_path / "out.orc"
    orc.write_table(pa.table({"u": union, "n": numbers}), source)
    fs.scan(source).skip(1_001).write(path)
    found = orc.ORCFile(path)
    assert found.nstripes == 1
    assert found.read()["u"].to_pylist() == union.to_pylist()[1_001:]


ORC_WIDER = [
    (pa.uint8(), [255, None], pa.int16()),
    (pa.uint16(), [65_535], pa.int32()),
    (pa.uint32(), [2**32 - 1], pa.int64()),
    (pa.uint64(), [2**64 - 1], pa.decimal128(20, 0)),
    (pa.float16(), [np.float16(0.1)], pa.float32()),
    (pa.date64(), [dt.date(1960, 2, 29)], pa.date32()),
    (pa.decimal32(5, 2), [Decimal("1.25")], pa.decimal128(5, 2)),
    (pa.decimal256(38, 2), [Decimal("-1.25")], pa.decimal128(38, 2)),
    (pa.string_view(), ["a"], pa.string()),
    (pa.binary_view(), [b"\xff"], pa.binary()),
    (pa.dictionary(pa.int8(), pa.string()), ["a", None], pa.string()),
]


@pytest.mark.parametrize(("kind", "values", "stored"), ORC_WIDER, ids=lambda value: str(value)[:20])
def test_orc_widens_what_it_has_no_type_for(
    tmp_path: Path, kind: pa.DataType, values: list[Any], stored: pa.DataType
) -> None:
    table = pa.table({"flat": pa.array(values, kind)})
    lists = pa.ListArray.from_arrays([0, len(values)], pa.array(values, kind))
    inside = pa.StructArray.from_arrays([lists], ["l"])
    table = table.slice(0, 1).append_column("nested", inside)
    path = tmp_path / "x.orc"
    write_file(iter(table.to_batches()), table.schema, path, "orc")
    found = orc.ORCFile(path).read()
    assert found["flat"].type == stored
    for name in table.column_names:
        left, right = repr(found[name].to_pylist()), repr(table[name].to_pylist())
        assert left.replace("Decimal('18446744073709551615')", "18446744073709551615") == right


def test_csv_holds_what_was_read(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.csv"
    names = [*FLAT, "raw", "kind"]
    names.remove("single")  # it is shorter in the file than as a Python float
    assert fs.scan(parts).select(*names).write(path) == ROWS
    with open(path, newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    assert header == names
    expected = [[_csv(row[name]) for name in names] for row in records(read.select(names))]
    assert len(lines) == ROWS
    for line, row in zip(lines, expected, strict=True):
        for found, value in zip(line, row, strict=True):
            assert found == value if isinstance(value, str) else float(found) == value


def _csv(value: Any) -> str | float:
    """What a cell of a CSV file says; a number where it may be spelled in several ways."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime(tzinfo=None):
            return value.isoformat(" ", "microseconds")
        case dt.datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds") + "Z"
        case dt.time():
            return value.isoformat("microseconds")
        case _:
            return str(value)


def test_duckdb_and_pyarrow_read_the_csv(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.csv"
    names = ["id", "flag", "float", "text", "day", "when", "at"]
    fs.scan(parts).select(*names).write(path)
    options = {
        "strings_can_be_null": True,
        "quoted_strings_can_be_null": False,
        "null_values": [""],
    }
    convert = pacsv.ConvertOptions(column_types=read.select(names).schema, **options)
    parse = pacsv.ParseOptions(newlines_in_values=True)
    found = pacsv.read_csv(path, parse_options=parse, convert_options=convert)
    assert same(records(found), records(read.select(names)))
    duck = asked(f"select id, flag, day from '{path}'")
    expected = records(read.select(["id", "flag", "day"]))
    assert records(duck) == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.timestamp("us", "UTC")])
def test_a_lone_null_is_a_row_of_a_csv_file(tmp_path: Path, kind: pa.DataType) -> None:
    source, path = tmp_path / "in.parquet", tmp_path / "out.csv"
    pq.write_table(pa.table({"n": pa.array([None, None], kind)}), source)
    fs.scan(source).write(path)
    assert pacsv.read_csv(path).num_rows == 2
    assert asked(f"select * from read_csv('{path}', header=true)").num_rows == 2


def test_json_holds_what_was_read(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.jsonl"
    assert fs.scan(parts).write(path) == ROWS
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    schema = read.schema
    expected = [
        {field.name: _json(row[field.name], field.type) for field in schema}
        for row in records(read)
    ]
    found = [json.loads(line, parse_constant=_never) for line in lines]
    for line, row in zip(found, expected, strict=True):
        assert same(line, row)


def _never(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def _json(value: Any, kind: pa.DataType) -> Any:
    """What a JSON reader makes of a value."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        shown = float(str(np.float32(value))) if kind == pa.float32() else value
        return shown if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return naive.isoformat("T", "microseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dt.time):
        return value.isoformat("microseconds")
    if isinstance(value, dict):
        return {field.name: _json(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: _json(item, kind.item_type) for key, item in value}
    return [_json(item, kind.value_type) for item in value]


def test_polars_and_duckdb_read_the_json(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.ndjson"
    fs.scan(parts).select("id", "text", "single", "list", "nested", "amount").write(path)
    frame = pl.read_ndjson(path)
    assert frame["id"].to_list() == list(range(ROWS))
    assert frame["text"].to_list() == read["text"].to_pylist()
    assert frame["list"].to_list() == read["list"].to_pylist()
    assert frame["single"].dtype == pl.Float64
    columns = (
        "{id: 'bigint', amount: 'decimal(30,2)', nested: 'struct(x bigint, y struct(z text))'}"
    )
    duck = asked(f"select * from read_json('{path}', columns={columns})")
    assert records(duck) == records(read.select(["id", "amount", "nested"]))


def test_json_of_rarer_types(tmp_path: Path) -> None:
    name = uuid.UUID("12345678-1234-5678-9abc-def012345678")
    uuids = pa.array([name.bytes, None], pa.binary(16))
    keys = pa.struct([("a", pa.string())])
    table = pa.table(
        {
            "uuid": pa.ExtensionArray.from_storage(pa.uuid(), uuids),
            "big": pa.array([2**64 - 1, None], pa.uint64()),
            "half": pa.array([np.float16(1.5), None], pa.float16()),
            "seconds": pa.array([90, None], pa.duration("s")),
            "nano": pa.array([-1, None], pa.timestamp("ns", "Europe/Berlin")),
            "second": pa.array([61, None], pa.time32("s")),
            "nothing": pa.nulls(2),
            "view": pa.array(['"', None], pa.string_view()),
            "pair": pa.array([[1, None], None], pa.list_(pa.int8(), 2)),
            "by number": pa.array(
                [[(1.5, "x"), (2.0, None)], None], pa.map_(pa.float64(), pa.string())
            ),
            "by day": pa.array([[(dt.date(2020, 2, 29), 1)], []], pa.map_(pa.date32(), pa.int8())),
            "by struct": pa.array([[({"a": '"'}, True)], []], pa.map_(keys, pa.bool_())),
            'a "name"\n': pa.array([{}, None], pa.struct([])),
        }
    )
    path = tmp_path / "x.json"
    write_file(iter(table.to_batches()), table.schema, path, "json")
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {
        "uuid": str(name),
        "big": 2**64 - 1,
        "half": 1.5,
        "seconds": 90,
        "nano": "1969-12-31T23:59:59.999999999Z",
        "second": "00:01:01",
        "nothing": None,
        "view": '"',
        "pair": [1, None],
        "by number": {"1.5": "x", "2.0": None},
        "by day": {"2020-02-29": 1},
        "by struct": {'{"a":"\\""}': True},
        'a "name"\n': {},
    }
    assert {key: value for key, value in second.items() if value is not None} == {
        "by day": {},
        "by struct": {},
    }


def test_arrow_holds_what_was_read(tmp_path: Path, parts: list[Path], read: pa.Table) -> None:
    path = tmp_path / "all.arrow"
    assert fs.scan(parts).write(path) == ROWS
    with pa.ipc.open_file(path) as file:
        found = file.read_all()
    assert same(records(found), records(read))
    differing = {field.name for field in found.schema if field not in list(read.schema)}
    assert differing == {"kind"}  # dictionaries are written as their values
    assert found.schema.field("kind").type == pa.string()


@pytest.mark.parametrize("format", FORMATS)
def test_files_may_have_dictionaries_of_their_own(tmp_path: Path, format: str) -> None:
    tables = [
        pa.table({"d": pa.array(words).dictionary_encode()})
        for words in (["a", "b", "a"], ["c", None, "a"])
    ]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    path = tmp_path / "out"
    fs.scan([tmp_path / "0.parquet", tmp_path / "1.parquet"]).write(path, format)
    assert column(path, format, "d") == ["a", "b", "a", "c", None if format != "csv" else "", "a"]


def column(path: Path, format: str, name: str) -> list[Any]:
    """A column of a file, read by somebody else."""
    match format:
        case "parquet":
            table = pq.read_table(path)
        case "orc":
            table = orc.ORCFile(path).read()
        case "csv":
            table = pacsv.read_csv(path)
        case "json":
            return [json.loads(line)[name] for line in path.read_text().splitlines()]
        case _:
            with pa.ipc.open_file(path) as file:
                table = file.read_all()
    return list(table[name].to_pylist())


@pytest.mark.parametrize("format", FORMATS)
def test_the_window_the_places_and_the_files_are_written(
    tmp_path: Path, parts: list[Path], format: str
) -> None:
    path = tmp_path / "out"
    scan = fs.scan(parts).select("id").with_row_index("row").with_file_path("file")
    assert scan.filter("id >= 490").head(20).write(path, format) == 20
    assert column(path, format, "row") == list(range(490, 510))
    assert column(path, format, "id") == list(range(490, 510))
    assert column(path, format, "file") == [str(parts[0])] * 10 + [str(parts[1])] * 10


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_result_has_its_schema(tmp_path: Path, parts: list[Path], format: str) -> None:
    names = ["id", "text", "at", "raw"] + ([] if format == "csv" else ["nested", "map"])
    path = tmp_path / "empty"
    assert fs.scan(parts).select(*names).head(0).write(path, format) == 0
    match format:
        case "parquet":
            assert (
                pq.read_table(path).schema
                == pq.read_schema(parts[0]).empty_table().select(names).schema
            )
        case "orc":
            assert orc.ORCFile(path).schema.names == names
            assert orc.ORCFile(path).nrows == 0
        case "csv":
            assert path.read_text() == '"id","text","at","raw"\n'
        case "json":
            assert path.read_bytes() == b""
        case "arrow":
            with pa.ipc.open_file(path) as file:
                assert file.schema.names == names
                assert file.read_all().num_rows == 0


def test_bytes_and_file_objects_are_inputs_too(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    assert fs.scan(sink.getvalue()).write(str(tmp_path / "a.csv")) == 2
    assert fs.scan(sink).write(tmp_path / "b.csv") == 2
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "format"), SUFFIXES.items())
def test_the_suffix_says_the_format(name: str, format: str) -> None:
    assert format_of(name) == format
    assert format_of(Path("folder.csv") / name) == format
    assert format_of(name, "orc") == "orc"


@pytest.mark.parametrize("name", ["x", "x.txt", "x.csv.gz", ".parquet"])
def test_an_unknown_suffix_names_the_formats(tmp_path: Path, parts: list[Path], name: str) -> None:
    with pytest.raises(ValueError, match="'parquet', 'orc', 'csv', 'json', 'arrow'"):
        fs.scan(parts).write(tmp_path / name)
    with pytest.raises(ValueError, match="'parquet', 'orc', 'csv', 'json', 'arrow', not 'excel'"):
        fs.scan(parts).write(tmp_path / name, "excel")
    assert not list(tmp_path.iterdir())


UNION = pa.sparse_union([pa.field("a", pa.int64()), pa.field("b", pa.string())])
REFUSED = [
    ("csv", pa.list_(pa.int64())),
    ("csv", pa.struct([("a", pa.int64())])),
    ("csv", pa.map_(pa.string(), pa.int64())),
    ("csv", UNION),
    ("orc", pa.time64("us")),
    ("orc", pa.duration("s")),
    ("orc", pa.null()),
    ("orc", pa.decimal256(60, 2)),
    ("orc", pa.list_(pa.time32("ms"))),
    ("orc", pa.list_view(pa.int64())),
    ("json", UNION),
    ("json", pa.list_(UNION)),
    ("parquet", UNION),
    ("parquet", pa.struct([])),
]


@pytest.mark.parametrize(("format", "kind"), REFUSED, ids=str)
def test_what_a_format_cannot_hold_is_refused(
    tmp_path: Path, format: str, kind: pa.DataType
) -> None:
    schema = pa.schema([("fine", pa.int64()), ("the column", kind)])
    path = tmp_path / "out"
    path.write_text("what was there")

    batches = iter([BATCH])
    with pytest.raises(fs.FretsawError, match="no type for column 'the column'") as error:
        write_file(batches, schema, path, format)
    assert str(path) in str(error.value)
    assert str(kind) in str(error.value)
    assert "select()" in str(error.value)
    assert isinstance(error.value, ValueError)
    assert next(batches) is BATCH  # nothing was read
    assert path.read_text() == "what was there"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_result_without_columns_is_refused(
    tmp_path: Path, parts: list[Path], format: str
) -> None:
    with pytest.raises(ValueError, match="no columns"):
        fs.scan(parts).select().write(tmp_path / "out", format)
    assert not list(tmp_path.iterdir())


def test_two_columns_of_one_name_are_refused_by_json(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(ValueError, match="several columns are called 'a'"):
        fs.scan(tmp_path / "in.parquet").write(tmp_path / "out.json")
    fs.scan(tmp_path / "in.parquet").write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == '"a","a"\n1,2\n'


@pytest.mark.parametrize("format", ["csv", "json"])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, format: str) -> None:
    raw = pa.array([b"fine", b"\xff\xfe"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    batch = pa.record_batch({"n": pa.array([1, 2]), "words": broken})
    with pytest.raises(fs.FretsawError, match="'words' holds what is no text"):
        write_file(iter([batch]), batch.schema, tmp_path / "out", format)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(tmp_path: Path, parts: list[Path]) -> None:
    scan = fs.scan(parts).select("id")
    with pytest.raises(fs.NotWritableError, match="missing: no such directory to write to; make"):
        scan.write(tmp_path / "missing" / "x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a directory"):
        scan.write(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="is a pipe or device"):
        scan.write(tmp_path / "pipe.csv")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.csv").st_mode)
    with pytest.raises(TypeError, match="written to a path, not to a BytesIO"):
        scan.write(io.BytesIO(), "csv")  # type: ignore[arg-type]
    with pytest.raises(fs.FretsawError, match="URLs are not supported"):
        scan.write("s3://bucket/x.csv")
    assert sorted(os.listdir(tmp_path)) == ["folder.csv", "pipe.csv"]


# Inputs -------------------------------------------------------------------------------------------


def test_an_input_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "data" / "in.parquet"
    source.parent.mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), source)
    before = source.read_bytes()
    (tmp_path / "link.parquet").symlink_to(source)
    os.link(source, tmp_path / "hard.parquet")
    (tmp_path / "folder").symlink_to(source.parent)
    monkeypatch.chdir(source.parent)
    names: list[str | Path] = [
        source,
        source.as_uri(),
        tmp_path / "link.parquet",
        tmp_path / "hard.parquet",
        tmp_path / "folder" / "in.parquet",
        Path("in.parquet"),
        Path("../data/./in.parquet"),
    ]
    for read in names:
        for written in names:
            with fs.trace() as t, pytest.raises(ValueError, match="is being read by the same scan"):
                fs.scan(["../link.parquet", read]).write(written)
            assert t.requests == 0
    with open(source, "rb") as file, pytest.raises(ValueError, match="is being read"):
        fs.scan(file).write(source)
    with fs.open(source) as opened, pytest.raises(ValueError, match="is being read"):
        opened.scan().write(source)
    for split in fs.scan(source).splits():
        with pytest.raises(ValueError, match="is being read"):
            split.write(source)
    assert source.read_bytes() == before
    assert os.listdir(source.parent) == ["in.parquet"]


def test_a_directory_that_is_read_is_not_written_into(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_parts(lake, pa.table({"a": range(10)}))
    (lake / "below").mkdir()
    (tmp_path / "alias").symlink_to(lake)
    before = sorted(os.listdir(lake))
    for source in (lake, tmp_path / "alias", tmp_path / "l*", f"{tmp_path}/**/*.parquet"):
        for name in ("lake/x.parquet", "lake/below/x.parquet", "alias/x.parquet"):
            with pytest.raises(ValueError, match="write to another directory"):
                fs.scan(str(source)).write(tmp_path / name)
    with pytest.raises(ValueError, match="write to another directory"):
        fs.scan(f"{lake}/*.parquet").write(lake / "all.parquet")
    assert sorted(os.listdir(lake)) == before
    fs.scan(f"{lake}/*.parquet").write(lake / "all.csv")
    fs.scan(lake).write(tmp_path / "lake.parquet")
    assert pq.read_table(tmp_path / "lake.parquet")["a"].to_pylist() == list(range(10))


# Complete or absent -------------------------------------------------------------------------------


class Stopped(BaseException):
    """Not an error: a request to stop."""


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, OSError, pa.ArrowInvalid])
@pytest.mark.parametrize("format", FORMATS)
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, format: str, error: type[BaseException]
) -> None:
    seen: list[str] = []

    def failing() -> Iterator[pa.RecordBatch]:
        yield from [BATCH] * 3
        seen.extend(sorted(os.listdir(tmp_path)))
        raise error("stop")

    path = tmp_path / "out"
    for before in (None, b"what was there"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises((error, fs.FretsawError), match="stop"):
            write_file(failing(), BATCH.schema, path, format)
        assert os.listdir(tmp_path) == ([] if before is None else ["out"])
    assert path.read_bytes() == b"what was there"
    assert seen[0].startswith(".out.")
    assert len(seen) == 3


def test_a_damaged_input_leaves_nothing(tmp_path: Path, parts: list[Path]) -> None:
    good, bad = parts[0], tmp_path / "bad.parquet"
    data = bytearray(parts[1].read_bytes())
    data[4:2_000] = bytes(1_996)
    bad.write_bytes(data)
    with pytest.raises(fs.FileFormatError):
        fs.scan([good, bad]).write(tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["bad.parquet"]


def test_a_complete_file_takes_the_place_of_the_old_one(tmp_path: Path, parts: list[Path]) -> None:
    path, link = tmp_path / "real.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path.name)
    reader = open(path)  # noqa: SIM115
    fs.scan(parts).select("id").head(1).write(link)
    assert reader.read() == "old"
    reader.close()
    assert link.is_symlink()
    assert path.read_text() == '"id"\n"0"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    fs.scan(parts).select("id").write(tmp_path / "new.csv")
    (tmp_path / "plain").touch()
    assert (tmp_path / "new.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_names_may_be_long_and_strange(tmp_path: Path, parts: list[Path]) -> None:
    for name in ("漢" * 83 + ".csv", "a" * 251 + ".csv", "with space and % [x].csv", "~.csv"):
        assert fs.scan(parts).select("id").write(tmp_path / name) == ROWS
        assert os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()


ENDLESS = """
import sys
import numpy as np
import pyarrow as pa
from fretsaw.results.write.files import write_file
from fretsaw.results.write.places import staged_directory

batch = pa.record_batch({"n": np.random.default_rng(1).integers(0, 2**62, 200_000)})

def endless():
    while True:
        yield batch

path, format, whole = sys.argv[1:]
if whole == "directory":
    with staged_directory(path) as staging:
        write_file(iter([batch]), batch.schema, staging + "/part-0", format)
        write_file(endless(), batch.schema, staging + "/part-1", format)
else:
    write_file(endless(), batch.schema, path, format)
"""


@pytest.mark.parametrize(
    ("format", "whole"),
    [
        ("parquet", "file"),
        ("parquet", "directory"),
        pytest.param("orc", "file", marks=pytest.mark.slow),
    ],
)
def test_a_killed_process_leaves_nothing_that_is_read(
    tmp_path: Path, format: str, whole: str
) -> None:
    folder = tmp_path / "lake"
    write_parts(folder, pa.table({"n": range(10)}))
    command = [sys.executable, "-c", ENDLESS, str(folder / "out"), format, whole]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_bytes(process, folder)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert hidden_bytes(folder) >= 5_000_000
    assert not (folder / "out").exists()
    assert fs.scan(folder).select("n").to_arrow()["n"].to_pylist() == list(range(10))


def wait_for_bytes(process: subprocess.Popen[str], folder: Path) -> None:
    """Until the process has written some of its file."""
    for _ in range(6_000):
        if hidden_bytes(folder) >= 5_000_000:
            return
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    raise AssertionError("nothing is being written")


def hidden_bytes(folder: Path) -> int:
    """Bytes below a directory in what is hidden."""
    found = 0
    for path in folder.rglob("*"):
        if any(name.startswith(".") for name in path.relative_to(folder).parts):
            try:
                found += path.stat().st_size
            except FileNotFoundError:
                continue
    return found


@pytest.mark.slow
def test_an_interrupted_process_cleans_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "out"), "parquet", "file"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_bytes(process, tmp_path)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert not list(tmp_path.iterdir())


# Directories --------------------------------------------------------------------------------------


def test_a_directory_is_there_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    with staged_directory(path) as staging:
        write_file(iter([BATCH]), BATCH.schema, Path(staging) / "part-0.parquet", "parquet")
        assert os.path.dirname(staging) == str(tmp_path)
        assert os.path.basename(staging).startswith(".parts.")
        assert not path.exists()
        with pytest.raises(fs.SourceNotFoundError):
            fs.scan(tmp_path).count()
    assert os.listdir(tmp_path) == ["parts"]
    assert fs.scan(path).count() == 100_000


def test_an_empty_directory_may_be_there_already(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    path.mkdir()
    with staged_directory(path) as staging:
        Path(staging, "part").touch()
    assert os.listdir(path) == ["part"]


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, OSError])
def test_a_directory_is_absent_after_a_failure(tmp_path: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        with staged_directory(tmp_path / "parts") as staging:
            Path(staging, "below").mkdir()
            Path(staging, "below", "part").touch()
            raise error

    with pytest.raises(error):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    path.mkdir()
    (path / "mine").touch()
    with pytest.raises(ValueError, match="there are files in it already"), staged_directory(path):
        raise AssertionError("no work is to be done")
    with pytest.raises(ValueError, match="is a file"), staged_directory(path / "mine"):
        raise AssertionError("no work is to be done")
    with pytest.raises(fs.NotWritableError), staged_directory(tmp_path / "no" / "parts"):
        raise AssertionError("no work is to be done")
    assert os.listdir(path) == ["mine"]


# Memory -------------------------------------------------------------------------------------------

MEASURE = """
import sys
import numpy as np
import pyarrow as pa
from fretsaw.results.write.files import write_file

path, format, count = sys.argv[1:]
words = pa.array([f"some words, number {number}" for number in range(50_000)])
batch = pa.record_batch({"n": np.arange(50_000), "x": np.arange(50_000) / 7, "s": words})
rows = write_file((batch for _ in range(int(count))), batch.schema, path, format)
status = open("/proc/self/status").read()
print(rows, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_large_result_needs_no_more_memory(tmp_path: Path, format: str) -> None:
    peaks = []
    for count in (60, 240):  # 170 MB and 670 MB
        command = [sys.executable, "-c", MEASURE, str(tmp_path / "out"), format, str(count)]
        rows, megabytes = map(int, subprocess.check_output(command, text=True).split())
        assert rows == 50_000 * count
        peaks.append(megabytes)
    assert peaks[1] <= peaks[0] + 80, peaks


@pytest.mark.parametrize("format", ["json", "csv"])
def test_times_that_have_no_text_are_refused(format: str, tmp_path: Path) -> None:
    far = pa.table({"t": pa.array([0, 2**62], pa.timestamp("us"))})
    pq.write_table(far, tmp_path / "far.parquet")
    with pytest.raises(fs.NotWritableError, match="column 't' holds a time that has no text"):
        fs.scan(tmp_path / "far.parquet").write(tmp_path / "out", format)
    assert not (tmp_path / "out").exists()


def test_what_a_killed_writer_left_is_not_published(tmp_path: Path) -> None:
    with staged_directory(tmp_path / "out") as staging:
        Path(staging, "part-0").write_text("whole")
        Path(staging, ".part-1.tmp").write_text("hal")
    assert os.listdir(tmp_path / "out") == ["part-0"]


def test_a_glob_with_braces_finds_its_own_output(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    scan = fs.scan(f"{tmp_path}/{{a,b}}.parquet")
    with pytest.raises(fs.NotWritableError, match=r"b\.parquet"):
        scan.write(tmp_path / "b.parquet")
    assert scan.write(tmp_path / "c.parquet") == 1


def test_a_glob_through_a_link_finds_its_own_output(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "real" / "a.parquet")
    scan = fs.scan(f"{tmp_path}/link/*.parquet")
    for folder in ("link", "real"):
        with pytest.raises(fs.NotWritableError, match="would be found"):
            scan.write(tmp_path / folder / "b.parquet")
