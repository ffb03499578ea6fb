"""Results as files: what is written in each format is what was read."""

import base64
import csv
import datetime as dt
import io
import json
import math
import uuid
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
from fretsaw.results.write.formats import FORMATS
from tests.support.written_files import ROWS

UTC = dt.UTC
FLAT = ["id", "flag", "small", "float", "single", "text", "amount", "day", "clock", "when", "at"]


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
