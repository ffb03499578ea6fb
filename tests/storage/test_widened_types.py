"""Files that store a column in several types: hints are no difference, and `types="widen"`."""

import datetime as dt
import io
import itertools
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.writers import need

D = Decimal
UTC = dt.UTC


def parquet(values: list[Any], kind: pa.DataType, **options: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(values, kind), "n": pa.array(range(len(values)), pa.int64())})
    pq.write_table(table, sink, write_page_index=True, row_group_size=2, **options)
    return sink.getvalue()


def values_of(scan: fs.Scan) -> list[Any]:
    found: list[Any] = scan.to_arrow()["x"].to_pylist()
    return found


def all_ways(scan: fs.Scan) -> list[Any]:
    """The values of a column, by every reader, which must agree."""
    found = values_of(scan)
    if not pa.types.is_timestamp(scan.schema.field("x").type):  # nanoseconds are pandas' in Arrow
        assert repr([row["x"] for row in scan]) == repr(found)
    assert scan.to_arrow().schema.equals(scan.schema)
    if not pa.types.is_nested(scan.schema.field("x").type):
        batches = [value for batch in scan.column("x") for value in batch.arrow.to_pylist()]
        assert repr(batches) == repr(found)
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(1)]
    assert all(part.schema.equals(scan.schema) for part in parts)
    assert repr([value for part in parts for value in values_of(part)]) == repr(found)
    return found


# What only hints tell apart

HINTED: list[tuple[list[Any], list[pa.DataType]]] = [
    (
        ["a", None, "ccc"],
        [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ),
    ([b"a", None], [pa.binary(), pa.large_binary(), pa.binary_view()]),
    (
        [["a", None], None, []],
        [
            pa.list_(pa.string()),
            pa.large_list(pa.large_string()),
            pa.list_(pa.field("other", pa.string())),
            pa.list_(pa.dictionary(pa.int32(), pa.string())),
        ],
    ),
    (
        [{"s": "a", "l": ["x"]}, None, {"s": None, "l": []}],
        [
            pa.struct({"s": pa.string(), "l": pa.list_(pa.string())}),
            pa.struct({"s": pa.large_string(), "l": pa.large_list(pa.string())}),
        ],
    ),
    (
        [[("k", "v")], None, []],
        [pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.large_string())],
    ),
]


@pytest.mark.parametrize(("values", "kinds"), HINTED, ids=lambda x: str(x)[:30])
def test_hints_of_arrow_are_no_difference(values: list[Any], kinds: list[pa.DataType]) -> None:
    files = [parquet(values, kind) for kind in kinds]
    for first in range(len(kinds)):
        turned = [*files[first:], *files[:first]]
        scan = fs.scan(turned)
        assert scan.schema.field("x").type == kinds[first]
        assert all_ways(scan) == values * len(kinds)
        assert all_ways(fs.scan(turned, types="widen", missing="null")) == values * len(kinds)


def test_files_by_real_writers_are_one_lake(tmp_path: Path) -> None:
    polars, duckdb = need("polars"), need("duckdb")
    text, numbers = ["a", None, "b"], [1, 2, 3]
    table = pa.table({"x": pa.array(text), "n": pa.array(numbers, pa.int64())})
    pq.write_table(table, tmp_path / "1.parquet")
    large = table.set_column(0, "x", table["x"].cast(pa.large_string()))
    pq.write_table(large, tmp_path / "2.parquet")
    encoded = table.set_column(0, "x", table["x"].dictionary_encode())
    pq.write_table(encoded, tmp_path / "3.parquet")
    polars.DataFrame({"x": text, "n": numbers}).write_parquet(tmp_path / "4.parquet")
    with duckdb.connect() as connection:
        connection.register("written", table)
        connection.execute(f"copy written to '{tmp_path}/5.parquet' (format parquet)")
    pa.orc.write_table(table, tmp_path / "6.orc")
    pyorc = need("pyorc")
    with (
        open(tmp_path / "7.orc", "wb") as file,
        pyorc.Writer(file, "struct<x:string,n:bigint>") as w,
    ):
        w.writerows(zip(text, numbers, strict=True))
    view = table.set_column(0, "x", table["x"].cast(pa.string_view()))
    pq.write_table(view, tmp_path / "8.parquet")
    frame = need("pandas").DataFrame({"x": text, "n": numbers})
    frame.to_parquet(tmp_path / "9.parquet")
    need("fastparquet").write(str(tmp_path / "a.parquet"), frame)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 10
    for turn in range(len(files)):
        turned = [*files[turn:], *files[:turn]]
        scan = fs.scan(turned)
        assert values_of(scan) == text * 10
        assert values_of(scan.filter((col("x") == "b") | col("x").is_null())) == [None, "b"] * 10
        assert scan.filter("x = 'a'").select("n").to_arrow()["n"].to_pylist() == [1] * 10
        assert scan.filter("upper(x) = 'B' and n * 2 = 6").count() == 10


# What holds both

I8, I16, I32, I64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
U8, U16, U32, U64 = pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()
F16, F32, F64 = pa.float16(), pa.float32(), pa.float64()


def edges(kind: pa.DataType) -> list[Any]:
    """Values at the edges of a type."""
    types = pa.types
    if types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        return [int(info.min), 0, 1, None, int(info.max)]
    if types.is_floating(kind):
        most = np.finfo(kind.to_pandas_dtype())
        tiny = float(most.smallest_subnormal)
        return [-math.inf, float(most.min), -0.0, 0.0, tiny, None, float(most.max), math.nan]
    if types.is_decimal(kind):
        nines = D(f"{'9' * kind.precision}e-{kind.scale}")
        return [nines.copy_negate(), D(0), D(f"1e-{kind.scale}"), None, nines]
    if types.is_timestamp(kind):
        zone = None if kind.tz is None else UTC
        return [
            dt.datetime(1970, 1, 1, tzinfo=zone),
            None,
            dt.datetime(2261, 12, 31, 23, tzinfo=zone),
        ]
    if types.is_time(kind):
        return [dt.time(), None, dt.time(23, 59, 59)]
    return [dt.timedelta(seconds=-1), None, dt.timedelta(days=1)]


PAIRS = [
    (I8, I64, I64),
    (I16, I32, I32),
    (U8, U32, U32),
    (U8, I8, I16),
    (U16, I16, I32),
    (U32, I32, I64),
    (U32, I8, I64),
    (F16, F32, F32),
    (F32, F64, F64),
    (I8, F16, F16),
    (I16, F16, F32),
    (I16, F32, F32),
    (U8, F32, F32),
    (I32, F32, F64),
    (I32, F64, F64),
    (U32, F64, F64),
    (pa.decimal128(9, 2), pa.decimal128(5, 4), pa.decimal128(11, 4)),
    (pa.decimal128(38, 0), pa.decimal128(10, 10), pa.decimal256(48, 10)),
    (I64, pa.decimal128(9, 2), pa.decimal128(21, 2)),
    (U64, pa.decimal128(20, 0), pa.decimal128(20, 0)),
    (I8, pa.decimal128(5, 4), pa.decimal128(7, 4)),
    (U32, pa.decimal256(40, 30), pa.decimal256(40, 30)),
    (pa.decimal128(18, 3), pa.decimal128(18, 3), pa.decimal128(18, 3)),
    (pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("ns")),
    (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    (pa.time32("ms"), pa.time64("us"), pa.time64("us")),
    (pa.time64("us"), pa.time64("ns"), pa.time64("ns")),
    (pa.duration("ms"), pa.duration("us"), pa.duration("us")),
]


@pytest.mark.parametrize(("one", "two", "wide"), PAIRS, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_every_value_keeps_its_value(
    one: pa.DataType, two: pa.DataType, wide: pa.DataType, turned: bool
) -> None:
    kinds = [two, one] if turned else [one, two]
    arrays = [pa.array(edges(kind), kind) for kind in kinds]
    scan = fs.scan([parquet(edges(kind), kind) for kind in kinds], types="widen")
    assert scan.schema.field("x").type == wide
    found = scan.to_arrow()["x"].combine_chunks()
    for array, part in zip(arrays, (found[: len(arrays[0])], found[len(arrays[0]) :]), strict=True):
        # There and back again, which no value survives that was changed.
        assert repr(part.cast(array.type).to_pylist()) == repr(array.to_pylist())
        if pa.types.is_integer(array.type):
            assert [v if v is None else int(v) for v in part.to_pylist()] == array.to_pylist()
        if pa.types.is_decimal(array.type):
            assert part.to_pylist() == array.to_pylist()
    all_ways(scan)
    if one != two:
        with pytest.raises(fs.SchemaMismatchError, match='types="widen"'):
            fs.scan([parquet(edges(kind), kind) for kind in kinds]).to_arrow()


MISMATCHED = [
    (I64, F64),
    (I64, F32),
    (I64, U64),
    (U64, I8),
    (U64, F64),
    (I64, pa.string()),
    (pa.decimal256(76, 0), pa.decimal128(10, 10)),
    (I64, pa.decimal256(76, 60)),
    (F32, pa.decimal128(5, 1)),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.date32(), pa.timestamp("us")),
    (pa.bool_(), I8),
    (I64, pa.list_(I64)),
    (pa.list_(I64), pa.list_(F64)),
    (pa.struct({"a": I64}), pa.struct({"a": I64, "b": I64})),
]


@pytest.mark.parametrize(("one", "two"), MISMATCHED, ids=str)
def test_what_could_lose_a_value_is_a_mismatch(one: pa.DataType, two: pa.DataType) -> None:
    for kinds in ((one, two), (two, one)):
        files = [parquet([None], kind) for kind in kinds]
        with pytest.raises(fs.SchemaMismatchError, match="'x'"):
            fs.scan(files, types="widen").to_arrow()


# Predicates

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
TESTED: list[tuple[list[tuple[pa.DataType, list[Any]]], list[Any]]] = [
    ([(I8, [-128, 0, 5, None, 127]), (I64, [2**40, 5, None])], [5, 127, 128, 2**40, -129, 5.5]),
    (
        [(I32, [-(2**31), 0, 3, None, 2**31 - 1]), (F64, [0.5, 3.0, None, 2.0**31, -1e300])],
        [3, 0.5, 2.5, 2.0**31, 2.0**31 - 0.5, 1e300, -1e300],
    ),
    (
        [(F32, [0.5, float(np.float32(0.1)), 3.4e38, None]), (F64, [0.1, 0.5, 1e300, None])],
        [0.1, float(np.float32(0.1)), 0.5, 1e39, 1e300],
    ),
    (
        [
            (pa.decimal128(5, 1), [D("1.5"), D("-2.0"), None, D("9999.9")]),
            (pa.decimal128(9, 4), [D("1.5000"), D("1.4999"), D("-2.0001"), None]),
        ],
        [D("1.5"), D("1.49995"), D("-2"), D("-2.00005"), 9999, D("9999.9")],
    ),
    (
        [(I64, [-2, 2, 3, None]), (pa.decimal128(9, 2), [D("2.00"), D("2.01"), D("-2.5"), None])],
        [2, D("2.00"), D("2.005"), D("-2.5"), -2, 10**30],
    ),
    ([(pa.null(), [None, None]), (I64, [1, None, 3])], [1, 2, 3]),
    ([(pa.null(), [None]), (pa.string(), ["a", None, "b"])], ["a", "ab"]),
    (
        [
            (pa.timestamp("ms"), [dt.datetime(2024, 1, 1, microsecond=5000), None]),
            (
                pa.timestamp("us"),
                [dt.datetime(2024, 1, 1, microsecond=n) for n in (4999, 5000, 5001)],
            ),
        ],
        [dt.datetime(2024, 1, 1, microsecond=n) for n in (4999, 5000, 5001)],
    ),
]


@pytest.mark.parametrize(("files", "literals"), TESTED, ids=lambda x: str(x)[:20])
@pytest.mark.parametrize("selected", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_predicate_means_the_same_in_every_file(
    files: list[tuple[pa.DataType, list[Any]]], literals: list[Any], selected: bool
) -> None:
    for turned in (files, files[::-1]) if selected else (files,):
        stored = [parquet(values, kind) for kind, values in turned]
        # By value, of what each file holds once it is as wide as the widest.
        values = [value for kind, some in turned for value in pa.array(some, kind).to_pylist()]
        numbers = [n for _, some in turned for n in range(len(some))]
        scan = fs.scan(stored, types="widen")
        scan = scan if selected else scan.select("n")
        for literal in literals:
            for name, holds in OPERATORS.items():
                places = [at for at, v in enumerate(values) if v is not None and holds(v, literal)]
                predicate = holds(col("x"), literal)
                found = scan.filter(predicate).to_arrow()
                assert found["n"].to_pylist() == [numbers[at] for at in places], (name, literal)
                others = [at for at, v in enumerate(values) if v is not None and at not in places]
                if name in ("==", ">"):
                    found = scan.filter(~predicate).to_arrow()
                    assert found["n"].to_pylist() == [numbers[at] for at in others], (name, literal)
        among = scan.filter(col("x").is_in(literals[:3])).to_arrow()["n"].to_pylist()
        assert among == [
            n for n, v in zip(numbers, values, strict=True) if v is not None and v in literals[:3]
        ]
        assert scan.filter(col("x").is_null()).count() == values.count(None)
        parts = scan.filter(col("x") == literals[0]).splits(1)
        expected = scan.filter(col("x") == literals[0]).count()
        assert sum(pickle.loads(pickle.dumps(part)).count() for part in parts) == expected


WIDER: list[tuple[list[tuple[pa.DataType, list[Any]]], list[tuple[Any, Callable[[Any], bool]]]]] = [
    (
        [(I8, [-128, 0, 5, None]), (I64, [2**40, 5, None])],
        [
            (col("x") * 2 == 10, lambda x: x == 5),
            (col("x") % 5 == 0, lambda x: x % 5 == 0),
            (col("x") < col("n"), lambda x: False),
            (fs.when(col("x") > 6).then(1).otherwise(2) == 1, lambda x: x > 6),
            (col("x").cast("float64") / 2 > 2, lambda x: x > 4),
        ],
    ),
    (
        [(I32, [3, None, -7]), (F64, [3.5, None, math.nan])],
        [
            (col("x") / 2 == 1.5, lambda x: x == 3),
            (col("x") + 0.25 > 3, lambda x: not x <= 2.75),
            (col("x").abs() >= 7, lambda x: not abs(x) < 7),
        ],
    ),
    (
        [(I64, [10, None, -3]), (pa.decimal128(9, 2), [D("10.00"), D("0.25"), None])],
        [(col("x") * 3 == 30, lambda x: x == 10), (col("x") - D("0.25") == 0, lambda x: x == 0.25)],
    ),
    (
        [
            (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 1, 31, 23, 59, tzinfo=UTC), None]),
            (pa.timestamp("us", "UTC"), [dt.datetime(2024, 2, 1, tzinfo=UTC)]),
        ],
        [
            (col("x").month() == 2, lambda x: x.month == 2),
            (col("x").truncate("month") < dt.datetime(2024, 2, 1, tzinfo=UTC), lambda x: x.day > 1),
        ],
    ),
    (
        [(pa.null(), [None, None]), (pa.string(), ["Ab", None, "c"])],
        [
            (col("x").lower() == "ab", lambda x: x == "Ab"),
            (col("x").contains("b"), lambda x: "b" in x),
        ],
    ),
]


@pytest.mark.parametrize(("files", "tests"), WIDER, ids=lambda x: str(x)[:30])
def test_expressions_mean_the_same_in_every_file(
    files: list[tuple[pa.DataType, list[Any]]], tests: list[tuple[Any, Callable[[Any], bool]]]
) -> None:
    for turned in (files, files[::-1]):
        stored = [parquet(values, kind) for kind, values in turned]
        values = [value for _, some in turned for value in some]
        numbers = [n for _, some in turned for n in range(len(some))]
        for indexes in (True, False):
            scan = fs.scan(stored, types="widen", indexes=indexes)
            for predicate, holds in tests:
                expected = [
                    n
                    for n, v in zip(numbers, values, strict=True)
                    if v is not None and (holds(v) if "col('n')" not in repr(predicate) else v < n)
                ]
                found = scan.filter(predicate).select("n").to_arrow()["n"].to_pylist()
                assert found == expected, predicate
                parts = scan.filter(predicate).splits(1)
                assert sum(pickle.loads(pickle.dumps(part)).count() for part in parts) == len(found)
            lost = scan.filter(fs.coalesce(col("x")).is_null()).count()
            assert lost == values.count(None)


def test_nulls_of_no_type_take_any_type() -> None:
    kinds = [pa.struct({"a": I64}), pa.list_(pa.string()), pa.map_(pa.string(), I8), pa.date32()]
    values: list[Any] = [{"a": 1}, ["x"], [("k", 1)], dt.date(2024, 1, 1)]
    for kind, value in zip(kinds, values, strict=True):
        files = [parquet([None, None], pa.null()), parquet([value, None], kind)]
        for turned in (files, files[::-1]):
            scan = fs.scan(turned, types="widen")
            expected = [None, None, value, None] if turned is files else [value, None, None, None]
            assert scan.to_arrow()["x"].to_pylist() == expected
            assert [row["x"] for row in scan] == expected
            assert scan.filter(col("x").is_null()).count() == 3
            assert scan.filter(col("x").is_not_null()).count() == 1
        with pytest.raises(fs.SchemaMismatchError, match="widen"):
            fs.scan(files).to_arrow()
    files = [parquet([None], pa.null()), parquet([[{"a": 1}], []], pa.list_(kinds[0]))]
    scan = fs.scan(files, types="widen").select("n")
    assert scan.filter(col("x.a").any() == 1).to_arrow()["n"].to_pylist() == [0]
    assert scan.filter(col("x.a").all() == 1).to_arrow()["n"].to_pylist() == [0, 1]


def test_integers_are_never_nan_and_zero_has_no_sign_there() -> None:
    files = [parquet([0, 1, None], I32), parquet([0.0, -0.0, math.nan], F64)]
    scan = fs.scan(files, types="widen")
    assert scan.filter(col("x").is_nan()).to_arrow()["n"].to_pylist() == [2]
    assert scan.filter(col("x") == 0.0).to_arrow()["n"].to_pylist() == [0, 0]
    assert scan.filter(col("x") == -0.0).to_arrow()["n"].to_pylist() == [1]
    assert scan.filter(col("x") > 0.0).to_arrow()["n"].to_pylist() == [1, 2]
    assert scan.filter(col("x") <= 0.0).to_arrow()["n"].to_pylist() == [0, 0, 1]


def test_bounds_and_blooms_of_each_file_are_those_of_its_own_type() -> None:
    blooms = {"bloom_filter_options": {"x": True}, "use_dictionary": False}
    one = parquet([float(np.float32(0.1)), 0.5], F32, **blooms)
    two = parquet([0.1, 0.5], F64, **blooms)
    scan = fs.scan([one, two], types="widen")
    assert scan.filter(col("x") == 0.1).to_arrow()["n"].to_pylist() == [0]
    assert scan.filter(col("x") == 0.5).to_arrow()["n"].to_pylist() == [1, 1]
    assert scan.filter(col("x") == float(np.float32(0.1))).to_arrow()["n"].to_pylist() == [0]
    assert scan.filter(col("x").is_in([1e300, 0.5])).count() == 2
    # Each file alone rounds the literal to its own width.
    assert fs.scan(one).filter(col("x") == 0.1).count() == 1
    # A step too far in either direction would lose a row: 4 ms is below 4,500 us, 5 ms above.
    times = [dt.datetime(2024, 1, 1, microsecond=n) for n in (4000, 5000)]
    files = [parquet(times, pa.timestamp(unit)) for unit in ("ms", "us")]
    middle = dt.datetime(2024, 1, 1, microsecond=4500)
    both = fs.scan(files, types="widen")
    assert both.filter(col("x") > middle).to_arrow()["n"].to_pylist() == [1, 1]
    assert both.filter(col("x") < middle).to_arrow()["n"].to_pylist() == [0, 0]


def test_int96_beside_utc_is_utc() -> None:
    moment = dt.datetime(2024, 5, 1, 12)
    old = parquet([moment, None], pa.timestamp("ns"), use_deprecated_int96_timestamps=True)
    new = parquet([moment.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))
    oslo = parquet([moment.replace(tzinfo=UTC)], pa.timestamp("us", "Europe/Oslo"))
    for files, zone in (
        ([old, new], "UTC"),
        ([new, old], "UTC"),
        ([oslo, new, old], "Europe/Oslo"),
    ):
        scan = fs.scan(files, types="widen")
        assert scan.schema.field("x").type == pa.timestamp("ns", zone)
        found = [value for value in values_of(scan) if value is not None]
        assert len(found) == len(files)
        assert all(value == moment.replace(tzinfo=UTC) for value in found)
        assert scan.filter(col("x") == moment.replace(tzinfo=UTC)).count() == len(files)
        with pytest.raises(fs.PredicateTypeError):
            scan.filter(col("x") == moment).count()


def test_nanoseconds_of_orc_beside_microseconds(tmp_path: Path) -> None:
    moments = [dt.datetime(2024, 5, 1, 12, microsecond=5), None]
    pq.write_table(pa.table({"x": pa.array(moments, pa.timestamp("us"))}), tmp_path / "1")
    pa.orc.write_table(pa.table({"x": pa.array(moments, pa.timestamp("ns"))}), tmp_path / "2")
    scan = fs.scan(tmp_path, types="widen")
    assert scan.schema.field("x").type == pa.timestamp("ns")
    assert scan.to_arrow()["x"].cast(pa.timestamp("us")).to_pylist() == moments * 2
    assert scan.filter(col("x") == moments[0]).count() == 2
    far = pa.table({"x": pa.array([dt.datetime(9000, 1, 1)], pa.timestamp("us"))})
    pq.write_table(far, tmp_path / "3")
    with pytest.raises(fs.SchemaMismatchError, match=r"'x'.*timestamp"):
        scan.to_arrow()


# Structs that gain fields

OLD = [{"a": 1, "b": {"c": "x"}}, None]
NEW = [{"b": {"d": 2.5, "c": "y"}, "e": [{"f": 1}]}, {"b": None, "e": None}, None]
OLD_KIND = pa.struct({"a": I32, "b": pa.struct({"c": pa.string()})})
NEW_KIND = pa.struct(
    {
        "b": pa.struct({"d": F64, "c": pa.string()}),
        "e": pa.list_(pa.struct({"f": I64})),
    }
)


def test_structs_gain_fields_at_any_depth() -> None:
    files = [parquet(OLD, OLD_KIND), parquet(NEW, NEW_KIND)]
    scan = fs.scan(files, types="widen", missing="null")
    expected = [
        {"a": 1, "b": {"c": "x", "d": None}, "e": None},
        None,
        {"a": None, "b": {"c": "y", "d": 2.5}, "e": [{"f": 1}]},
        {"a": None, "b": None, "e": None},
        None,
    ]
    assert all_ways_of_struct(scan) == expected
    assert values_of(scan.select("x.b.d")) == [
        {"b": {"d": None}},
        None,
        {"b": {"d": 2.5}},
        {"b": None},
        None,
    ]
    assert values_of(scan.drop("x.b", "x.e")) == [
        row if row is None else {"a": row["a"]} for row in expected
    ]
    assert scan.filter(col("x.b.d") > 1).select("n").to_arrow()["n"].to_pylist() == [0]
    assert scan.filter(col("x.a").is_null()).count() == 4
    assert scan.filter(col("x.e").is_null() & col("x").is_not_null()).count() == 2
    for missing, types in (("null", "same"), ("error", "widen")):
        with pytest.raises(fs.SchemaMismatchError, match="'x'"):
            fs.scan(files, missing=missing, types=types).to_arrow()  # type: ignore[arg-type]


def all_ways_of_struct(scan: fs.Scan) -> list[Any]:
    found = values_of(scan)
    assert [row["x"] for row in scan] == found
    assert scan.to_arrow().schema.equals(scan.schema)
    leaves = [value for batch in scan.column("x.b.d") for value in batch.arrow.to_pylist()]
    assert leaves == [
        value if value is None else {"b": value["b"] and {"d": value["b"]["d"]}} for value in found
    ]
    together = [batch["x.e.element.f"].arrow.to_pylist() for batch in scan.columns()]
    assert [value for some in together for value in some] == [
        value if value is None else {"e": value["e"]} for value in found
    ]
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(1)]
    assert [value for part in parts for value in values_of(part)] == found
    return found


def test_structs_in_lists_gain_fields() -> None:
    one = pa.list_(pa.struct({"a": I32}))
    two = pa.list_(pa.struct({"b": pa.string(), "a": I64}))
    files = [parquet([[{"a": 1}], [], None], one), parquet([[{"b": "x", "a": 2**40}]], two)]
    scan = fs.scan(files, types="widen", missing="null")
    assert values_of(scan) == [
        [{"a": 1, "b": None}],
        [],
        None,
        [{"a": 2**40, "b": "x"}],
    ]
    assert scan.filter(col("x.a").any() > 1).count() == 1
    assert scan.filter(col("x.b").any() == "x").count() == 1


INNER_OLD: list[Any] = [[], None, [{"a": 1}], [None], [{"a": None}, {"a": 2}]]
INNER_NEW: list[Any] = [[], [{"a": 1, "b": 5, "c": [{"d": 7}]}], [{"a": None, "b": None, "c": []}]]
ELEMENT = pa.struct({"a": I32})
ELEMENT_NEW = pa.struct({"a": I32, "b": I64, "c": pa.list_(pa.struct({"d": I8}))})


def three_valued(fold: str, truths: list[bool | None] | None) -> bool | None:
    """SQL's OR or AND over the elements of a list; of none that there is, unknown."""
    if truths is None:
        return None
    decisive = fold == "any"
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


@pytest.mark.parametrize("types", ["same", "widen"])
@pytest.mark.parametrize("fold", ["any", "all"])
def test_elements_without_a_field_have_nulls_there(fold: str, types: Any) -> None:
    files = [
        parquet(INNER_OLD, pa.list_(ELEMENT)),
        parquet(INNER_NEW, pa.list_(ELEMENT_NEW)),
        parquet([None, None], pa.list_(ELEMENT)),
    ]
    lists = [*INNER_OLD, *INNER_NEW, None, None]
    numbers = [n for some in (INNER_OLD, INNER_NEW, [None, None]) for n in range(len(some))]
    scan = fs.scan(files, types=types, missing="null").select("n")

    def field(element: Any, name: str) -> Any:
        return None if element is None else element.get(name)

    def inner(element: Any) -> bool | None:
        held = field(element, "c")
        return three_valued(fold, None if held is None else [e["d"] > 6 for e in held])

    def above_four(element: Any) -> bool | None:
        value = field(element, "b")
        return None if value is None else value > 4

    b, c = col("x.b"), col("x.c.d")
    tests: list[tuple[Any, Callable[[Any], bool | None]]] = [
        (getattr(b, fold)() > 4, above_four),
        (getattr(b, fold)().is_null(), lambda e: field(e, "b") is None),
        (getattr(b, fold)().is_not_null(), lambda e: field(e, "b") is not None),
        (getattr(c, fold)() > 6, inner),
    ]
    if types == "widen":  # else lists of other structs are other lists
        whole = getattr(col("x"), fold)
        tests += [
            (whole(fs.element("b") > 4), above_four),
            (whole(fs.element("b").is_null()), lambda e: field(e, "b") is None),
            (whole(getattr(fs.element("c"), fold)(fs.element("d") > 6)), inner),
        ]
    for predicate, truth in tests:
        known = [three_valued(fold, None if v is None else [truth(e) for e in v]) for v in lists]
        for wanted, asked in ((True, predicate), (False, ~predicate)):
            found = scan.filter(asked).to_arrow()["n"].to_pylist()
            expected = [n for n, found in zip(numbers, known, strict=True) if found is wanted]
            assert found == expected, asked
            parts = [pickle.loads(pickle.dumps(part)) for part in scan.filter(asked).splits(1)]
            assert sum(part.count() for part in parts) == len(expected)


def test_a_column_that_only_the_last_file_has(tmp_path: Path) -> None:
    for at in range(3):
        pq.write_table(pa.table({"n": pa.array([at], I32)}), tmp_path / str(at))
    last = pa.table({"n": pa.array([2**40]), "new": [1.5]})
    pq.write_table(last, tmp_path / "3")
    scan = fs.scan(tmp_path, missing="null", types="widen")
    expected = [{"n": n, "new": None} for n in range(3)] + [{"n": 2**40, "new": 1.5}]
    assert scan.to_arrow().to_pylist() == expected
    assert scan.filter("new > 1").to_arrow().to_pylist() == expected[3:]
    assert scan.select("new").tail(2).to_arrow().to_pylist() == [{"new": None}, {"new": 1.5}]
    # Without missing="null" the columns are those of the first file.
    assert fs.scan(tmp_path, types="widen").to_arrow()["n"].to_pylist() == [0, 1, 2, 2**40]
    with pytest.raises(fs.ColumnNotFoundError):
        scan.select("newer").to_arrow()


@pytest.mark.parametrize("types", ["same", "widen"])
def test_files_are_opened_once_to_settle_the_columns(tmp_path: Path, types: Any) -> None:
    for at in range(12):
        columns = {"n": [at], "new": [1.5]} if at == 11 else {"n": [at]}
        pq.write_table(pa.table(columns), tmp_path / f"{at:02}")
    scan = fs.scan(tmp_path, missing="null", types=types).filter("new > 1 and n > 2")
    for asked in (scan, scan.select("n"), scan.select("new")):
        with fs.trace() as t:
            assert asked.schema.names in (["n", "new"], ["n"], ["new"])
        assert len({read.path for read in t.log}) == 12
        reads = sorted((read.path, read.offset, read.offset + read.length) for read in t.log)
        for (path, _, end), (other, start, _) in itertools.pairwise(reads):
            assert path != other or end <= start, "a footer is read twice"
    # What is selected and tested is found in the first file: no other is opened for it.
    with fs.trace() as t:
        assert fs.scan(tmp_path, missing="null").select("n").filter("n > 2").schema.names == ["n"]
    assert {Path(read.path).name for read in t.log} == {"00"}


def test_types_are_same_or_widen() -> None:
    with pytest.raises(ValueError, match="widen"):
        fs.scan(b"", types="wider")  # type: ignore[arg-type]
