"""The data source: options, projections and windows; and filters against those of Spark itself.

How filters are translated is tested without a JVM, against a model of Spark's comparisons; that
the model is right, and that everything works together, against `spark.read.parquet`.
"""

import datetime as dt
import functools
import math
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fretsaw as fs
from tests.engine.test_unbelieved import parquet_bounds

pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

import fretsaw.spark.source as data_source
from fretsaw.engine.planner import Planner
from fretsaw.spark import register
from fretsaw.spark.filters import translate
from fretsaw.spark.source import (
    FilteringDataSource,
    FilteringReader,
    FretsawDataSource,
    FretsawReader,
)
from fretsaw.spark.types import struct_type

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
NAN, INF = float("nan"), float("inf")
NOON = dt.datetime(2024, 2, 29, 12)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)
TICK = dt.timedelta(microseconds=1)
KEYS = [uuid.UUID(int=2**127 + n) for n in range(3)]


# Without a JVM ----------------------------------------------------------------------------------

VALUES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    # The type, stored values, literals as Spark gives them
    "flag": (pa.bool_(), [True, False], [True, False]),
    "i8": (pa.int8(), [-128, -1, 0, 1, 127], [-128, 0, 1, 127]),
    "u8": (pa.uint8(), [0, 1, 255], [-1, 0, 255, 256]),
    "u64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1], [Decimal(0), Decimal(2**64 - 1), Decimal(-1)]),
    "f16": (pa.float16(), [-INF, -1.5, -0.0, 0.0, 0.0999755859375, NAN], [0.0, 0.1, -1.5, NAN]),
    "f32": (pa.float32(), [-INF, -1.5, -0.0, 0.0, 1.5, INF, NAN], [-0.0, 0.0, 1.5, NAN, INF]),
    "f64": (pa.float64(), [-INF, -5e-324, -0.0, 0.0, 5e-324, NAN], [-0.0, 0.0, 5e-324, NAN]),
    "price": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-0.01")], [Decimal("1.50")]),
    "text": (pa.string(), ["", "a", "ab", "b", "é", "\U0001f600"], ["", "a", "b", "é"]),
    "coded": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"], ["a", "aa"]),
    "raw": (pa.binary(), [b"", b"\x00", b"\xff"], [b"", bytearray(b"\xff")]),
    "fixed": (pa.binary(2), [b"ab", b"\xff\x00"], [b"ab", b"a"]),
    "key": (pa.uuid(), [key.bytes for key in KEYS], [KEYS[1].bytes, b"short"]),
    "day": (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)], [dt.date(2024, 2, 29)]),
    "local": (pa.timestamp("us"), [NOON, NOON + TICK], [NOON, NOON + TICK]),
    "utc": (pa.timestamp("ms", "UTC"), [NOON_UTC], [NOON_UTC, NOON_UTC + TICK]),
    "fine": (pa.timestamp("ns", "UTC"), [-1, 0, 999, 1000, 1001], []),
}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
VALUES["fine"][2].extend([EPOCH - TICK, EPOCH, EPOCH + TICK])
COLUMNS = {name: pa.array([*stored, None], kind) for name, (kind, stored, _) in VALUES.items()}


def seen_by_spark(name: str) -> list[Any]:
    """The values of a column as Spark holds them."""
    if name == "fine":
        return [EPOCH + TICK * (value // 1000) for value in VALUES[name][1]] + [None]
    if name == "u64":
        return [Decimal(value) for value in VALUES[name][1]] + [None]
    return [*VALUES[name][1], None]


def ordered(a: Any, b: Any) -> int:
    """Spark's order: zeros are equal, NaN equals itself and is above all; strings as bytes."""
    if isinstance(a, float):
        if math.isnan(a) or math.isnan(b):
            return int(math.isnan(a)) - int(math.isnan(b))
    elif isinstance(a, str):
        a, b = a.encode(), b.encode()
    elif isinstance(a, bytes):
        b = bytes(b)
    return int(a > b) - int(a < b)


COMPARISONS: dict[type, Callable[[int], bool]] = {
    EqualTo: lambda order: order == 0,
    LessThan: lambda order: order < 0,
    LessThanOrEqual: lambda order: order <= 0,
    GreaterThan: lambda order: order > 0,
    GreaterThanOrEqual: lambda order: order >= 0,
}


def truth(pushed: Filter, value: Any) -> bool | None:
    """Whether a filter is true for a value, in Spark; None: unknown."""
    match pushed:
        case Not(child):
            inner = truth(child, value)
            return None if inner is None else not inner
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case EqualNullSafe(_, literal):
            if value is None or literal is None:
                return value is literal
            return ordered(value, literal) == 0
        case In(_, literals):
            equal = [truth(EqualTo(("x",), literal), value) for literal in literals]
            return True if any(equal) else None if None in equal else False
        case StringStartsWith(_, prefix):
            return None if value is None else value.startswith(prefix)
    literal = vars(pushed)["value"]
    if value is None or literal is None:
        return None
    return COMPARISONS[type(pushed)](ordered(value, literal))


@functools.cache
def scan_of(name: str) -> fs.Scan:
    sink = pa.BufferOutputStream()
    column = COLUMNS[name]
    table = pa.table({"x": column, "s": pa.StructArray.from_arrays([column], ["x.y"])})
    pq.write_table(table, sink, row_group_size=2)
    return fs.scan(sink.getvalue().to_pybytes()).with_row_index("row")


@st.composite
def filters(draw: st.DrawFn) -> tuple[str, Filter]:
    name = draw(st.sampled_from(sorted(VALUES)))
    path = draw(st.sampled_from([("x",), ("s", "x.y")]))
    literal = st.sampled_from(VALUES[name][2])
    kind = draw(st.sampled_from([*COMPARISONS, EqualNullSafe, In, IsNull, IsNotNull]))
    pushed: Filter
    if kind is In:
        pushed = In(path, tuple(draw(st.lists(st.none() | literal, max_size=4))))
    elif kind in (IsNull, IsNotNull):
        pushed = kind(path)
    elif kind is EqualNullSafe:
        pushed = EqualNullSafe(path, draw(st.none() | literal))
    else:
        pushed = kind(path, draw(literal))
    if name in ("text", "coded") and draw(st.booleans()):
        pushed = StringStartsWith(path, draw(literal))
    return name, Not(pushed) if draw(st.booleans()) else pushed


@pytest.mark.slow
@settings(max_examples=250)
@given(filters())
def test_a_predicate_is_true_where_the_filter_is(pushed: tuple[str, Filter]) -> None:
    name, filter_ = pushed
    scan = scan_of(name)
    predicate = translate(filter_, Planner(scan.request).columns.nodes)
    if predicate is None:
        return
    expected = [row for row, value in enumerate(seen_by_spark(name)) if truth(filter_, value)]
    assert scan.filter(predicate).to_arrow().column("row").to_pylist() == expected, predicate


def inexact(name: str, literal: Any) -> bool:
    return (name, literal) in [("f16", 0.1), ("key", b"short")]


@pytest.mark.parametrize("name", sorted(VALUES))
def test_what_can_be_said_exactly_is_not_left_to_spark(name: str) -> None:
    nodes = Planner(scan_of(name).request).columns.nodes
    for literal in VALUES[name][2]:
        for kind in COMPARISONS:
            is_left = translate(kind(("x",), literal), nodes) is None
            assert is_left == inexact(name, literal), (kind, literal)
        left = translate(Not(In(("s", "x.y"), (literal, literal))), nodes) is None
        assert left == inexact(name, literal)


def test_what_cannot_be_said_exactly_is_left_to_spark() -> None:
    nodes = Planner(scan_of("text").request).columns.nodes
    x = ("x",)
    left: list[Filter] = [
        StringContains(x, "a"),
        Not(StringEndsWith(x, "a")),
        EqualTo(x, 1),
        EqualTo(x, b"a"),
        EqualTo(x, None),
        EqualTo(("s",), {"x.y": "a"}),
        EqualTo(("nowhere",), "a"),
        IsNull(("x", "y")),
        In(x, ("a", 1)),
    ]
    assert [pushed for pushed in left if translate(pushed, nodes) is not None] == []
    assert translate(GreaterThan(x, NOON), Planner(scan_of("utc").request).columns.nodes) is None
    assert (
        translate(GreaterThan(x, NOON_UTC), Planner(scan_of("local").request).columns.nodes) is None
    )
    assert (
        translate(StringStartsWith(x, "a"), Planner(scan_of("raw").request).columns.nodes) is None
    )


def reader(path: Path, schema: Any = None, **options: str) -> FilteringReader:
    source = FilteringDataSource({"path": str(path), **options})
    return source.reader(source.schema() if schema is None else struct_type(pa.schema(schema)))


def rows(reader: FretsawReader) -> list[dict[str, Any]]:
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 files of ten rows each, more than are opened to plan."""
    folder = tmp_path_factory.mktemp("lake")
    for number in range(70):
        below = folder / f"part={number % 2}"
        below.mkdir(exist_ok=True)
        table = pa.table({"n": range(number * 10, number * 10 + 10)})
        pq.write_table(table, below / f"{number:03}.parquet", row_group_size=4)
    (folder / "readme.txt").write_text("no data")
    return folder


def few(lake: Path, count: int) -> str:
    """The first files of a lake."""
    found = sorted((lake / "part=0").iterdir())[:count]
    return "[" + ", ".join(f'"{path}"' for path in found) + "]"


@pytest.mark.slow
def test_many_files_are_packed_whole_and_few_are_split(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = fs.scan(lake).to_arrow().to_pylist()
    with fs.trace() as trace:
        shares = reader(lake, splitBytes="8k").partitions()
    assert 2 < len(shares) < 70
    assert len({read.path for read in trace.log}) == 1
    assert rows(reader(lake, splitBytes="8k")) == every
    assert len(reader(lake).partitions()) == 1
    assert rows(reader(lake, filter="part = 1 and n > 600")) == [
        row for row in every if row["part"] == 1 and row["n"] > 600
    ]
    monkeypatch.setattr(data_source, "FEW_FILES", 1000)
    assert len(reader(lake, splitBytes="1").partitions()) == 70 * 3
    assert rows(reader(lake, splitBytes="1")) == every


@pytest.mark.slow
@pytest.mark.parametrize("condition", [None, "n between 33 and 444"])
def test_windows_count_over_all_files(lake: Path, condition: str | None) -> None:
    scan = fs.scan(lake) if condition is None else fs.scan(lake).filter(condition)
    every = scan.to_arrow().to_pylist()
    given = {} if condition is None else {"filter": condition}
    chance = random.Random(5)
    for _ in range(6):
        skip, head = chance.randrange(len(every) + 20), chance.choice([0, 1, 7, 25, 300])
        assert (
            rows(reader(lake, skip=str(skip), head=str(head), splitBytes="1", **given))
            == (every[skip : skip + head])
        )
    assert rows(reader(lake, skip="9", **given)) == every[9:]
    assert rows(reader(lake, head="3", **given)) == every[:3]
    assert rows(reader(lake, tail="13", splitBytes="1", **given)) == every[-13:]
    assert rows(reader(lake, tail="0", **given)) == []
    assert rows(reader(lake, tail="9999", **given)) == every


def test_a_window_opens_no_more_files_than_it_needs(lake: Path) -> None:
    with fs.trace() as trace:
        [share] = reader(lake, skip="15", head="10").partitions()
    assert isinstance(share, data_source.Share)
    assert len({piece.part.entry.origin for piece in share.wanted_parts}) == 2
    assert len({read.path for read in trace.log}) == 3


def test_filters_come_behind_a_window(lake: Path) -> None:
    windowed = reader(lake, head="5")
    pushed: list[Filter] = [GreaterThan(("n",), 100)]
    assert list(windowed.pushFilters(pushed)) == pushed
    assert len(rows(windowed)) == 5


def test_pushed_filters_leave_rows_and_files_out(lake: Path) -> None:
    filtered = reader(lake)
    kept = EqualTo(("part",), 1)
    left = StringContains(("n",), "1")
    assert filtered.pushFilters([kept, left, GreaterThan(("n",), 680)]) == [left]
    assert {row["n"] for row in rows(filtered)} == set(range(690, 700))
    nothing = reader(lake)
    assert nothing.pushFilters([EqualTo(("part",), 7)]) == []
    assert rows(nothing) == []


def test_pushdown_is_offered_and_not_insisted_on(lake: Path) -> None:
    # What Spark looks at to refuse a reader while the setting is off.
    assert reader(lake).pushFilters.__func__ is DataSourceReader.pushFilters


def test_a_schema_is_a_projection(tmp_path: Path) -> None:
    def of(**fields: Any) -> pa.DataType:
        return pa.struct(list(fields.items()))

    i8, i32, i64, text = pa.int8(), pa.int32(), pa.int64(), pa.string()
    pair = of(x=i8, y=i8)
    table = pa.table(
        {
            "a.b": pa.array([1], i32),
            "s": [{"x": 1, "y": "y", "in": {"p": 1.5, "q": None}}],
            "l": pa.array([[{"x": 1, "y": 2}]], pa.list_(pair)),
            "m": pa.array([[("k", {"x": 1, "y": 2})]], pa.map_(text, pair)),
        }
    )
    pq.write_table(table, tmp_path / "f.parquet")
    schema = {
        "m": pa.map_(text, of(y=i8)),
        "s": pa.struct([("in", of(p=pa.float64())), ("x", i64)]),
        "a.b": i32,
        "l": pa.list_(of(y=i8, x=i8)),
    }
    assert rows(reader(tmp_path, schema)) == [
        {
            "m": [("k", {"y": 2})],
            "s": {"in": {"p": 1.5}, "x": 1},
            "a.b": 1,
            "l": [{"y": 2, "x": 1}],
        }
    ]
    narrower = reader(tmp_path, {"s": of(y=text)}, columns="s.y, l")
    assert rows(narrower) == [{"s": {"y": "y"}}]
    assert rows(reader(tmp_path, columns='[["a.b"], "s.x"]')) == [{"a.b": 1, "s": {"x": 1}}]
    others: list[tuple[dict[str, Any], str]] = [
        ({"a.b": i64}, r"'a\.b' is int in the files, not bigint"),
        ({"s": of(x=i32)}, r"'s\.x' is bigint in the files, not int"),
        ({"m": pa.map_(i8, of(x=i8))}, "'m' is map<"),
    ]
    for other, says in others:
        with pytest.raises(fs.SchemaMismatchError, match=says):
            reader(tmp_path, other)
    for absent in ({"nowhere": i8}, {"s": of(nowhere=i8)}, {"l": pa.list_(of(nowhere=i8))}):
        with pytest.raises(fs.ColumnNotFoundError, match="nowhere"):
            reader(tmp_path, absent)
    new = {"new": pa.decimal128(5, 2), "s": of(new=pa.list_(i8))}
    lacking = reader(tmp_path, new, missing="null")
    assert rows(lacking) == [{"new": None, "s": {"new": None}}]
    # Nobody but Spark knows what a column of nulls is compared with.
    assert lacking.pushFilters([IsNull(("new",))]) == [IsNull(("new",))]


def test_columns_that_a_file_lacks(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [3], "b": ["x"]}), tmp_path / "2.parquet")
    assert rows(reader(tmp_path, missing="null", splitBytes="1")) == [
        {"a": 1, "b": None},
        {"a": 2, "b": None},
        {"a": 3, "b": "x"},
    ]
    unknown = reader(tmp_path, missing="null")
    assert unknown.pushFilters([Not(EqualNullSafe(("b",), "x"))]) == []
    assert [row["a"] for row in rows(unknown)] == [1, 2]


def corrupted(folder: Path) -> None:
    for number in range(4):
        pq.write_table(pa.table({"n": [number] * 100}), folder / f"{number}.parquet")
    (folder / "0.parquet").write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    whole = bytearray((folder / "2.parquet").read_bytes())
    whole[4:40] = b"\xff" * 36
    (folder / "2.parquet").write_bytes(whole)


@pytest.mark.parametrize("at_once", [1, 64])
def test_corrupt_files_are_left_out_or_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(data_source, "FEW_FILES", at_once)
    corrupted(tmp_path)
    with pytest.raises(fs.FileFormatError, match=r"0\.parquet"):
        reader(tmp_path)
    found = rows(reader(tmp_path, onCorrupt="skip"))
    assert found == [{"n": 1}] * 100 + [{"n": 3}] * 100
    for number in (0, 2):
        assert f"{number}.parquet" in caplog.text
    assert rows(reader(tmp_path, onCorrupt="skip", filter="n <> 2", tail="150")) == (
        [{"n": 1}] * 50 + [{"n": 3}] * 100
    )
    (tmp_path / "0.parquet").unlink()
    broken = reader(tmp_path)
    with pytest.raises(fs.FileFormatError, match=r"2\.parquet"):
        rows(broken)
    for number in (1, 2, 3):
        (tmp_path / f"{number}.parquet").write_bytes(b"PAR1" + b"\0" * 100 + b"PAR1")
    with pytest.raises(fs.FileFormatError, match=r"1\.parquet"):
        reader(tmp_path, onCorrupt="skip")


def test_types_and_folders_as_options(tmp_path: Path) -> None:
    for at, kind in enumerate((pa.int32(), pa.int64())):
        (tmp_path / f"p=0{at}").mkdir()
        pq.write_table(pa.table({"n": pa.array([at], kind)}), tmp_path / f"p=0{at}" / "file")
    with pytest.raises(fs.SchemaMismatchError, match="widen"):
        rows(reader(tmp_path))
    assert rows(reader(tmp_path, types="widen")) == [{"n": 0, "p": 0}, {"n": 1, "p": 1}]
    assert rows(reader(tmp_path, types="widen", hive="false")) == [{"n": 0}, {"n": 1}]
    found = rows(reader(tmp_path, types="widen", hive='{"p": "string"}', filter="p = '01'"))
    assert found == [{"n": 1, "p": "01"}]


def test_columns_are_dropped_and_renamed_by_options(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"], "s": [{"p": 1, "q": 2}] * 3})
    pq.write_table(table, tmp_path / "file")
    assert rows(reader(tmp_path, drop="b, s.q")) == [{"a": n, "s": {"p": 1}} for n in (1, 2, 3)]
    # Names may change places; conditions as text keep those of the files.
    swapped = {"rename": '{"a": "b", "b": "a"}', "drop": "s"}
    expected = [{"b": n, "a": name} for n, name in ((1, "x"), (2, "y"), (3, "z"))]
    assert rows(reader(tmp_path, **swapped)) == expected
    assert rows(reader(tmp_path, filter="a > 1", **swapped)) == expected[1:]
    pushing = reader(tmp_path, **swapped)
    assert list(pushing.push([LessThan(("b",), 2), Not(EqualTo(("a",), "z"))])) == []
    assert rows(pushing) == expected[:1]
    with pytest.raises(ValueError, match="option rename"):
        rows(reader(tmp_path, rename="a=b"))
    with pytest.raises(fs.ColumnNotFoundError):
        rows(reader(tmp_path, drop="nothing"))


def test_indexes_that_lie_are_not_believed_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "lying.parquet").write_bytes(parquet_bounds(False))
    assert rows(reader(tmp_path, filter="x < 2")) == []
    assert rows(reader(tmp_path, filter="x < 2", indexes="false")) == [{"x": 0}, {"x": 1}]
    pushing = reader(tmp_path, indexes="false", splitBytes="1")
    assert list(pushing.push([LessThan(("x",), 2)])) == []
    assert rows(pushing) == [{"x": 0}, {"x": 1}]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fliter": "n > 1"}, "unknown option 'fliter'; the options are path, paths, filter"),
        ({"path": "a", "paths": '["b"]'}, "once"),
        ({}, "say what to read"),
        ({"paths": "a,b"}, "JSON list"),
        ({"paths": "[1]"}, "JSON list of paths"),
        ({"path": "a", "head": "-1"}, "option head: a number of rows, not '-1'"),
        ({"path": "a", "skip": "ten"}, "option skip"),
        ({"path": "a", "tail": "1", "head": "1"}, "tail excludes"),
        ({"path": "a", "splitBytes": "0"}, "option splitBytes"),
        ({"path": "a", "splitBytes": "1 elephant"}, "option splitBytes"),
        ({"path": "a", "missing": "nul"}, "option missing: error or null, not 'nul'"),
        ({"path": "a", "onCorrupt": "ignore"}, "option onCorrupt: error or skip"),
        ({"path": "a", "types": "wider"}, "option types: same or widen"),
        ({"path": "a", "hive": "maybe"}, "option hive: true, false, or types"),
        ({"path": "a", "hive": '{"day": "dates"}'}, "option hive: true, false, or types"),
        ({"path": "a", "indexes": "no"}, "option indexes: true or false, not 'no'"),
        ({"path": "a", "columns": "a,,b"}, "option columns"),
        ({"path": "a", "columns": "[]"}, "option columns"),
        ({"path": "a", "columns": '[["a", 1]]'}, "option columns"),
    ],
)
def test_options_that_make_no_sense_say_so(options: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        FretsawDataSource(options).schema()


def test_names_of_options_are_read_in_any_case(lake: Path) -> None:
    options = {"PATHS": few(lake, 2), "splitbytes": "2MB", "ONCORRUPT": "Skip", "Head": "11"}
    source = FretsawDataSource(options)
    found = rows(source.reader(source.schema()))
    assert [row["n"] for row in found] == [*range(10), 20]
    assert source.schema().simpleString() == "struct<n:bigint>"


# With Spark -------------------------------------------------------------------------------------

ROWS = 120


def column_values(chance: random.Random, values: Sequence[Any]) -> list[Any]:
    return [None if chance.random() < 0.15 else chance.choice(values) for _ in range(ROWS)]


def random_table(seed: int) -> pa.Table:
    """Columns that Spark reads by itself, with few values in each."""
    chance = random.Random(seed)
    days = [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    moments = [NOON, NOON + TICK, NOON - TICK, dt.datetime(1900, 1, 1)]

    def of(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
        return pa.array(column_values(chance, values), kind)

    inner = of(pa.int32(), [1, 2, 3])
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "b": of(pa.bool_(), [True, False]),
            "i": of(pa.int32(), [-1, 0, 1, 7]),
            "u": of(pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
            "f": of(pa.float32(), [-0.0, 0.0, 0.1, 1.5, NAN, INF, -INF]),
            "d": of(pa.float64(), [-0.0, 0.0, 0.1, -1.5, NAN, INF]),
            "p": of(pa.decimal128(9, 2), [Decimal("0.00"), Decimal("1.50"), Decimal("-7.25")]),
            "s": of(pa.string(), ["", "a", "ab", "abc", "b", "\u00e9", "a%"]),
            "x": of(pa.binary(), [b"", b"a", b"\xff"]),
            "day": of(pa.date32(), days),
            "at": of(pa.timestamp("us", "UTC"), [each.replace(tzinfo=dt.UTC) for each in moments]),
            "ntz": of(pa.timestamp("us"), moments),
            "in.ner": pa.StructArray.from_arrays(
                [inner], ["v.w"], mask=pa.array([chance.random() < 0.2 for _ in range(ROWS)])
            ),
        }
    )


LITERALS = {
    "b": ["true", "false"],
    "i": ["0", "1", "8", "1.5", "3000000000"],
    "u": ["0", "1", "18446744073709551615", "-1", "1.5"],
    "f": ["0", "cast(-0.0 as float)", "0.1", "cast(0.1 as float)", "float('NaN')"],
    "d": ["0", "-0.0D", "0.1", "0.1D", "double('NaN')", "double('Infinity')"],
    "p": ["0", "1.5", "1.505", "-7.25"],
    "s": ["''", "'a'", "'ab'", "'\u00e9'"],
    "x": ["X''", "X'61'", "X'FF'"],
    "day": ["DATE'2024-02-29'", "'2024-03-01'"],
    "at": ["TIMESTAMP'2024-02-29 12:00:00Z'", "TIMESTAMP'2024-02-29 07:00:00.000001'"],
    "ntz": ["TIMESTAMP_NTZ'2024-02-29 12:00:00'", "TIMESTAMP_NTZ'1900-01-01 00:00:00'"],
    "`in.ner`.`v.w`": ["1", "2"],
}


def random_conditions(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)

    def simple() -> str:
        column = chance.choice(list(LITERALS))
        literal, other = chance.choices(LITERALS[column], k=2)
        forms = [
            *(f"{column} {operator} {literal}" for operator in ("=", "<>", "<", "<=", ">", ">=")),
            f"{column} <=> {literal}",
            f"not ({column} <=> {literal})",
            f"{column} in ({literal}, {other})",
            f"{column} not in ({literal}, {other})",
            f"{column} in ({literal}, null)",
            f"{column} is null",
            f"{column} is not null",
        ]
        if column == "s":
            forms += ["s like 'a%'", "s like '%b'", "s like '%b%'", "not startswith(s, 'a')"] * 2
        return chance.choice(forms)

    joins = (" and ", " and ", " or ")
    return [
        f"({simple()}){chance.choice(joins)}({simple()})" if chance.random() < 0.4 else simple()
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def source(spark: Any) -> Iterator[Any]:
    """A session that knows the source, in a zone that is not UTC."""
    register(spark, push_filters=True)
    names = (PUSHDOWN, "spark.sql.session.timeZone")
    before = {name: spark.conf.get(name) for name in names}
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def found_by(session: Any, path: str, conditions: Sequence[str]) -> dict[str, list[int]]:
    """The rows that match each condition, in one job; each loaded by itself."""
    frames = [
        session.read.format("fretsaw").load(path).filter(condition).selectExpr(f"{n} as n", "id")
        for n, condition in enumerate(conditions)
    ]
    rows = functools.reduce(lambda left, right: left.union(right), frames).collect()
    return {
        condition: sorted(row.id for row in rows if row.n == n)
        for n, condition in enumerate(conditions)
    }


@pytest.mark.spark
def test_filters_find_the_rows_that_spark_finds(source: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "f.parquet")
    pq.write_table(random_table(1), path, row_group_size=40, write_page_index=True)
    conditions = list(dict.fromkeys(random_conditions(2, 24)))
    flags = [f"coalesce({condition}, false) as c{n}" for n, condition in enumerate(conditions)]
    flagged = source.read.parquet(path).selectExpr("id", *flags).toArrow().to_pylist()
    expected = {
        condition: [row["id"] for row in flagged if row[f"c{n}"]]
        for n, condition in enumerate(conditions)
    }
    source.conf.set(PUSHDOWN, "true")
    assert found_by(source, path, conditions) == expected
    source.conf.set(PUSHDOWN, "false")
    few = conditions[:3]
    assert found_by(source, path, few) == {condition: expected[condition] for condition in few}


@pytest.mark.spark
def test_exact_filters_leave_the_plan_and_others_stay(
    source: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(random_table(1), tmp_path / "f.parquet")
    source.conf.set(PUSHDOWN, "true")
    ours = source.read.format("fretsaw").load(str(tmp_path)).filter("d = 0 and s like '%b'")
    ours.explain()
    plan = capsys.readouterr().out
    assert "EndsWith" in plan
    assert "d#" not in plan.split("Filter", 1)[1].split("\n")[0]


@pytest.mark.spark
def test_what_is_loaded_once_can_be_used_often(source: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(10)}), tmp_path / "f.parquet")
    source.conf.set(PUSHDOWN, "true")
    register(source)
    try:
        loaded = source.read.format("fretsaw").load(str(tmp_path))
        few, none = loaded.filter("n < 3"), loaded.filter("n > 99")
        assert (few.count(), loaded.count(), none.union(few).count()) == (3, 10, 3)
    finally:
        register(source, push_filters=True)


@pytest.mark.spark
def test_the_session_reads_windows_projections_and_every_type(source: Any, tmp_path: Path) -> None:
    source.conf.set(PUSHDOWN, "false")
    old = pa.array([NOON, None, dt.datetime(1, 1, 1)], pa.timestamp("us"))
    pq.write_table(
        pa.table({"old": old, "n": [1, 2, 3]}),
        tmp_path / "1.parquet",
        use_deprecated_int96_timestamps=True,
    )
    read = source.read.format("fretsaw")
    both = read.load([str(tmp_path / "1.parquet")] * 2)
    assert both.count() == 6
    assert both.schema.simpleString() == "struct<old:timestamp,n:bigint>"
    assert (
        both.selectExpr("cast(old as bigint)").limit(3).collect()
        == source.read.parquet(str(tmp_path)).selectExpr("cast(old as bigint)").collect()
    )
    odd = pa.table(
        {
            "u": pa.array([2**64 - 1, None], pa.uint64()),
            "h": pa.array([0.5, None], pa.float16()),
            "t": pa.array([dt.time(12), None]),
            "k": pa.array([KEYS[0].bytes, None], pa.uuid()),
            "l": pa.array([[1, 2], None], pa.list_(pa.uint8(), 2)),
            "v": pa.nulls(2),
        }
    )
    pq.write_table(odd, tmp_path / "odd.parquet")
    frame = read.load(str(tmp_path / "odd.parquet"))
    assert frame.selectExpr(
        "u", "h", "cast(t as string) as t", "hex(k) as k", "l", "v"
    ).toArrow().to_pylist() == [
        {
            "u": Decimal(2**64 - 1),
            "h": 0.5,
            "t": "12:00:00",
            "k": KEYS[0].hex.upper(),
            "l": [1, 2],
            "v": None,
        },
        dict.fromkeys("uhtklv"),
    ]
    orc.write_table(pa.table({"n": range(10)}), tmp_path / "x.orc")
    window = source.read.format("fretsaw").option("SKIP", 2).option("head", 5)
    window = window.option("filter", "n <> 3 or n is null").schema("n bigint not null")
    assert [row.n for row in window.load(str(tmp_path / "x.orc")).filter("n > 4").collect()] == [
        *(5, 6, 7)
    ]


@pytest.mark.spark
def test_errors_reach_the_user(source: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    corrupted(tmp_path)
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(PySparkException, match="unknown option 'fliter'; the options are path"):
        source.read.format("fretsaw").option("fliter", "n > 1").load(str(tmp_path))
    with pytest.raises(PySparkException, match=r"2\.parquet.*corrupt"):
        source.read.format("fretsaw").load(str(tmp_path)).collect()
    skipping = source.read.format("fretsaw").option("onCorrupt", "skip").load(str(tmp_path))
    assert skipping.count() == 200
