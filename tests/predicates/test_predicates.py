"""Filters by value: each rule by itself, then thousands of predicates against the oracle."""

import datetime as dt
import io
import operator
import os
import pickle
import uuid
from collections.abc import Callable
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.nested_data import Kinds, assert_same_nested
from tests.support.oracle import And, Not, Or, Source, Test, Tree
from tests.support.predicate_data import (
    COMMON,
    NESTED,
    Predicates,
    Writer,
    by_pyarrow,
    fill,
    make_file,
    make_table,
    open_source,
)
from tests.support.writers import need, spark_file

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
FILES = 36 * MORE
QUICK = 12  # a file of each writer
PREDICATES = 32

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
y = col("y")


# Operators, and what is no operator


@rules(
    (x == 2, [2]),
    (x != 2, [1, 3]),
    (x < 2, [1]),
    (x <= 2, [1, 2]),
    (x > 2, [3]),
    (x >= 2, [2, 3]),
    (x > 2, [3]),
    (x.is_in([3, 1, 3, 7]), [1, 3]),
    (x.is_in([]), []),
    (x.is_in((1,)), [1]),
    (x.is_between(2, 3), [2, 3]),
    (x.is_between(3, 2), []),
    (x.is_null(), [0]),
    (x.is_not_null(), [1, 2, 3]),
    ((x > 1) & (x < 3), [2]),
    ((x == 1) | x.is_null(), [0, 1]),
    (~(x == 1), [2, 3]),
    (~~(x == 1), [1]),
)
def test_operators(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=[None, 1, 2, 3]) == rows


@pytest.mark.parametrize(
    "use",
    [
        bool,
        lambda p: p and p,
        lambda p: p or p,
        lambda p: not p,
        lambda p: 1 < x < 3,
    ],
)
def test_a_predicate_is_neither_true_nor_false(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="&"):
        use(x > 1)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_comparing_with_none_hints_at_is_null(compare: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"is_null\(\)"):
        compare(x, None)


def test_is_null_works_on_structs_lists_and_maps() -> None:
    columns = {
        "s": pa.array([{"v": None}, None, {"v": 1}], pa.struct({"v": pa.int32()})),
        "l": pa.array([[], None, [None]], pa.list_(pa.int32())),
        "m": pa.array([[], None, [("k", None)]], pa.map_(pa.string(), pa.int32())),
        "n": pa.array([{"l": None}, None, {"l": []}], pa.struct({"l": pa.list_(pa.int32())})),
    }
    for name in "slmn":
        assert matching(col(name).is_null(), **columns) == [1]
        assert matching(~col(name).is_null(), **columns) == [0, 2]
        assert matching(col(name).is_not_null(), **columns) == [0, 2]
    assert matching(col("s.v").is_null(), **columns) == [0, 1]
    assert matching(col("n.l").is_null(), **columns) == [0, 1]


# Nulls


@rules(
    (x != 99, [1, 2, 3]),
    (~(x > 2), [1, 2]),
    (~(x == 2), [1, 3]),
    (~(x != 2), [2]),
    ((x > 5) | x.is_null(), [0]),
    (~((x > 1) & x.is_null()), [1, 2, 3]),
    (~((x > 1) & x.is_not_null()), [0, 1]),
    (~((x > 1) | x.is_null()), [1]),
    (x.is_in([1, None]), [1]),
    (~x.is_in([1, None]), []),
    (~x.is_in([1]), [2, 3]),
    (x.is_in([None]), []),
    (~x.is_in([None]), []),
    (~x.is_between(2, 2), [1, 3]),
    (~x.is_null(), [1, 2, 3]),
    (~x.is_not_null(), [0]),
    ((x == 1) & (y == 1), []),
    ((x == 1) | (y == 1), [1]),
    (y.is_null(), [0, 1, 2, 3]),
    (~(y == 1), []),
)
def test_nulls_follow_three_valued_logic(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=[None, 1, 2, 3], y=pa.nulls(4, pa.int64())) == rows


# Floats


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@rules(
    (x == 0.0, [4]),
    (x == -0.0, [3]),
    (x == 0, [4]),
    (x.is_in([0.0, -0.0]), [3, 4]),
    (x != 0.0, [1, 2, 3, 5, 6, 7, 8]),
    (x < 0.0, [1, 2, 3]),
    (x <= -0.0, [1, 2, 3]),
    (x >= 0.0, [4, 5, 6, 7, 8]),
    (x > -0.0, [4, 5, 6, 7, 8]),
    (x == NAN, [7, 8]),
    (x != NAN, [1, 2, 3, 4, 5, 6]),
    (x < NAN, [1, 2, 3, 4, 5, 6]),
    (x <= NAN, [1, 2, 3, 4, 5, 6, 7, 8]),
    (x > NAN, []),
    (x >= NAN, [7, 8]),
    (x.is_in([NAN, 1.5]), [5, 7, 8]),
    (x > 1.5, [6, 7, 8]),
    (x > INF, [7, 8]),
    (x >= INF, [6, 7, 8]),
    (x < INF, [1, 2, 3, 4, 5]),
    (x <= INF, [1, 2, 3, 4, 5, 6]),
    (x == -INF, [1]),
    (~(x > 1.5), [1, 2, 3, 4, 5]),
    (~(x <= 1.5), [6, 7, 8]),
    (~(x == NAN), [1, 2, 3, 4, 5, 6]),
    (x.is_between(0.0, NAN), [4, 5, 6, 7, 8]),
    (x.is_between(-0.0, 0.0), [3, 4]),
    (x.is_nan(), [7, 8]),
    (~x.is_nan(), [1, 2, 3, 4, 5, 6]),
)
def test_floats_have_a_total_order(
    kind: pa.DataType, predicate: fs.Predicate, rows: list[int]
) -> None:
    dtype = np.dtype(f"f{kind.bit_width // 8}")
    floats = np.array([0, -INF, -1.5, -0.0, 0.0, 1.5, INF, NAN, 0], dtype)
    # A NaN with every bit set.
    floats.view(f"u{dtype.itemsize}")[8] = 2**kind.bit_width - 1
    assert matching(predicate, x=pa.array(floats, kind, mask=np.arange(9) == 0)) == rows


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@rules(
    (x == 0.1, [1]),
    (x != 0.1, [0, 2]),
    (x > 0.1, [2]),
    (x <= 0.1, [0, 1]),
    (x.is_in([0.1, 7]), [1]),
    (x.is_between(0.1, 0.1), [1]),
    (x == np.float64(0.1), [1]),
)
def test_a_float_literal_is_rounded_to_the_width_of_the_column(
    kind: pa.DataType, predicate: fs.Predicate, rows: list[int]
) -> None:
    assert matching(predicate, x=pa.array([0.0, 0.1, 0.2], pa.float64()).cast(kind)) == rows


@rules((x == 1e300, [1]), (x > 1e300, [2]), (x < 1e300, [0]), (x >= -1e300, [0, 1, 2]))
def test_a_float_literal_beyond_the_column_is_rounded_to_infinity(
    predicate: fs.Predicate, rows: list[int]
) -> None:
    for kind in (pa.float32(), pa.float16()):
        assert matching(predicate, x=pa.array([1, INF, NAN], pa.float64()).cast(kind)) == rows


def test_a_wider_float_is_not_the_narrower_one() -> None:
    assert matching(x == np.float32(0.1), x=[0.1, float(np.float32(0.1))]) == [1]


# Integers and decimals


INT32 = pa.array([None, -(2**31), 0, 2**31 - 1], pa.int32())
INT64 = pa.array([None, -(2**63), 1, 2, 2**53 + 1, 2**63 - 1], pa.int64())
UINT64 = pa.array([None, 0, 2**63, 2**64 - 1], pa.uint64())
UINT8 = pa.array([None, 0, 128, 255], pa.uint8())


@pytest.mark.parametrize(
    ("array", "predicate", "rows"),
    [
        (INT32, x > 2**40, []),
        (INT32, ~(x > 2**40), [1, 2, 3]),
        (INT32, x < 2**40, [1, 2, 3]),
        (INT32, x >= -(2**40), [1, 2, 3]),
        (INT32, x == 2**32, []),
        (INT32, x != 2**32, [1, 2, 3]),
        (INT32, x.is_in([2**32, 2**31, 0]), [2]),
        (INT32, x.is_between(-(2**70), 0), [1, 2]),
        (INT32, x > 0.5, [3]),
        (INT32, x < 1e300, [1, 2, 3]),
        (INT32, x < INF, [1, 2, 3]),
        (INT64, x == 1.5, []),
        (INT64, x != 1.5, [1, 2, 3, 4, 5]),
        (INT64, x > 1.5, [3, 4, 5]),
        (INT64, x <= 1.5, [1, 2]),
        (INT64, x.is_in([1.5, 2.0]), [3]),
        (INT64, x == 1.0, [2]),
        (INT64, x == float(2**53), []),
        (INT64, x > float(2**53), [4, 5]),
        (INT64, x == float(2**63), []),
        (INT64, x < float(2**63), [1, 2, 3, 4, 5]),
        (INT64, x == Decimal(1), [2]),
        (INT64, x > Decimal("1.5"), [3, 4, 5]),
        (INT64, x == np.int8(2), [3]),
        (INT64, x == -(2**63), [1]),
        (INT64, x <= -(2**63) - 1, []),
        (UINT64, x > 2**63 - 1, [2, 3]),
        (UINT64, x == 2**64 - 1, [3]),
        (UINT64, x == -1, []),
        (UINT64, x > -1, [1, 2, 3]),
        (UINT64, x < 2**64, [1, 2, 3]),
        (UINT8, x == 256, []),
        (UINT8, x > 127, [2, 3]),
        (UINT8, x > -1, [1, 2, 3]),
    ],
    ids=str,
)
def test_integers_compare_by_value(
    array: pa.Array, predicate: fs.Predicate, rows: list[int]
) -> None:
    assert matching(predicate, x=array) == rows


def test_an_integer_literal_on_a_float_column_becomes_that_float() -> None:
    assert matching(x == 2**53 + 1, x=[2.0**53, 2.0**53 + 2]) == [0]
    assert matching(x > 1, x=pa.array([0.5, 1.0, 1.5], pa.float32())) == [2]


@pytest.mark.parametrize("as_integer", [False, True])
@pytest.mark.parametrize("precision", [7, 17, 30, 60])
@rules(
    (x == Decimal("1.5"), [3]),
    (x == Decimal("1.501"), []),
    (x > Decimal("1.4999"), [3, 4]),
    (x < Decimal("1.501"), [1, 2, 3]),
    (x != Decimal("1e99"), [1, 2, 3, 4]),
    (x < Decimal("1e99"), [1, 2, 3, 4]),
    (x < Decimal("-1e99"), []),
    (x == 2, [4]),
    (x < 0, [1]),
    (x > 10**30, []),
    (x == 1.5, [3]),
    (x > 1.25, [3, 4]),
    (x.is_in([Decimal("-1.500"), 2, 0.0]), [1, 2, 4]),
    (x.is_between(Decimal("-1.5"), 1.5), [1, 2, 3]),
    (~(x > 0), [1, 2]),
)
def test_decimals_compare_by_value(
    as_integer: bool, precision: int, predicate: fs.Predicate, rows: list[int]
) -> None:
    kind = pa.decimal256(precision, 2) if precision > 38 else pa.decimal128(precision, 2)
    numbers = pa.array([None, Decimal("-1.50"), 0, Decimal("1.50"), 2], kind)
    table = pa.table({"x": numbers})
    data = written(table, store_decimal_as_integer=as_integer, **LAYOUTS[0])
    assert row_numbers(fs.scan(data).filter(predicate)) == rows


# Logical types


DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0)
TOKYO = dt.timezone(dt.timedelta(hours=9))
ONE = uuid.UUID(int=1)
HIGH = uuid.UUID(int=2**127)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps_of_any_unit(unit: str, zone: str | None) -> None:
    noon = pa.scalar(NOON, pa.timestamp(unit)).value
    stamps = pa.array([noon - 1, noon, noon + 1, None]).cast(pa.timestamp(unit, zone))
    literals: list[Any] = [NOON, pd.Timestamp(NOON), np.datetime64(NOON, "s")]
    if zone:
        aware = NOON.replace(tzinfo=UTC)
        literals = [aware, aware.astimezone(TOKYO), pd.Timestamp(aware)]
    for literal in literals:
        assert matching(x == literal, x=stamps) == [1]
        assert matching(x > literal, x=stamps) == [2]
        assert matching(x != literal, x=stamps) == [0, 2]
        assert matching(x.is_in([literal, None]), x=stamps) == [1]
    later = literals[0] + dt.timedelta(microseconds=1)
    assert matching(x < later, x=stamps) == ([0, 1, 2] if unit == "ns" else [0, 1])
    assert matching(x == later, x=stamps) == ([2] if unit == "us" else [])
    ends = [end.replace(tzinfo=literals[0].tzinfo) for end in (dt.datetime.min, dt.datetime.max)]
    assert matching(x.is_between(*ends), x=stamps) == [0, 1, 2]
    assert matching((x < ends[0]) | (x > ends[1]), x=stamps) == []


def test_a_nanosecond_is_told_apart() -> None:
    stamps = pa.array([NOON] * 3, pa.timestamp("ns")).cast(pa.int64())
    stamps = pa.array([n.as_py() + i for i, n in enumerate(stamps)]).cast(pa.timestamp("ns"))
    assert matching(x == pd.Timestamp(NOON) + pd.Timedelta(1, "ns"), x=stamps) == [1]
    assert matching(x > np.datetime64(NOON, "ns"), x=stamps) == [1, 2]


TIMES = [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59), None]


@pytest.mark.parametrize(
    ("array", "predicate", "rows"),
    [
        (pa.array([DAY, None, dt.date(1900, 1, 1)]), x == DAY, [0]),
        (pa.array([DAY, None, dt.date(1900, 1, 1)]), x < DAY, [2]),
        (pa.array([DAY, None]), x.is_between(dt.date.min, dt.date.max), [0]),
        (pa.array(TIMES, pa.time32("s")), x == dt.time(12, 30), [1]),
        (pa.array(TIMES, pa.time32("ms")), x > dt.time(0, 0, 0, 1), [1, 2]),
        (pa.array(TIMES, pa.time64("us")), x <= dt.time(12, 30), [0, 1]),
        (pa.array(TIMES, pa.time64("ns")), x != dt.time(12, 30), [0, 2]),
        (pa.array([True, False, None]), x == True, [0]),  # noqa: E712
        (pa.array([True, False, None]), x != np.bool_(True), [1]),
        (pa.array([True, False, None]), ~x.is_in([True]), [1]),
        (pa.array([ONE.bytes, HIGH.bytes, None], pa.uuid()), x == ONE, [0]),
        (pa.array([ONE.bytes, HIGH.bytes, None], pa.uuid()), x > ONE, [1]),
        (pa.array([b"", b"\x7f", b"\x80", b"\xff\x00"]), x > b"\x7f", [2, 3]),
        (pa.array([b"", b"\x7f", b"\x80", b"\xff\x00"]), x.starts_with(b"\xff"), [3]),
        (pa.array([b"ab", b"\xff\x00"], pa.binary(2)), x == b"ab", [0]),
        (pa.array([b"ab", b"\xff\x00"], pa.binary(2)), x > b"ab\x00", [1]),
        (pa.array([b"ab", b"\xff\x00"], pa.binary(2)), x == b"a", []),
        (pa.array(["é".encode(), b"e", None]), x == "é", [0]),
        (pa.array(["é".encode(), b"e", None]), x > "z", [0]),
        (pa.array(["é", "z", "", None]), x > "z", [0]),
        (pa.array(["\uffff", "\U00010000"]), x > "\uffff", [1]),
        (pa.array(["\uffff", "\U00010000"]), x == np.str_("\uffff"), [0]),
        (pa.array(["a", "b"], pa.large_string()), x == "b", [1]),
        (pa.array(["a", "b", None]).dictionary_encode(), x >= "b", [1]),
        (pa.array(["a" * 80 + "x", "a" * 80, "b"]), x.starts_with("a" * 80 + "x"), [0]),
        (pa.array(["a" * 80 + "x", "a" * 80, "b"]), x == "a" * 80, [1]),
        (pa.array(["", "a", None]), x.starts_with(""), [0, 1]),
        (pa.array(["ab", "b", None, "a"]), ~x.starts_with("a"), [1]),
    ],
    ids=str,
)
def test_literals_mean_what_the_schema_says(
    array: pa.Array, predicate: fs.Predicate, rows: list[int]
) -> None:
    assert matching(predicate, x=array) == rows


def test_int96_is_an_instant() -> None:
    table = pa.table({"x": pa.array([NOON, None], pa.timestamp("us"))})
    data = written(table, use_deprecated_int96_timestamps=True, store_schema=False)
    assert fs.scan(data).filter(x == NOON.replace(tzinfo=UTC)).count() == 1
    assert fs.scan(data).filter(x > NOON.replace(tzinfo=TOKYO)).count() == 1
    assert fs.scan(data).filter(x == NOON).count() == 1, "as its rows show it"


# Literals that do not fit


TYPED = pa.table(
    {
        "number": pa.array([1]),
        "text": pa.array(["a"]),
        "blob": pa.array([b"a" * 16]),
        "fixed": pa.array([b"a" * 16], pa.binary(16)),
        "clock": pa.array([NOON], pa.timestamp("us")),
        "instant": pa.array([NOON], pa.timestamp("us", "UTC")),
        "day": pa.array([DAY]),
        "flag": pa.array([True]),
        "struct": pa.array([{"v": 1}]),
        "list": pa.array([[1]]),
        "items": pa.array([[{"price": 1}]]),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    }
)
USES: dict[str, Callable[[fs.Scan], object]] = {
    "to_arrow": fs.Scan.to_arrow,
    "count": fs.Scan.count,
    "batches": lambda scan: list(scan.batches()),
    "plan": fs.Scan.plan,
    "tail": lambda scan: scan.tail(1).to_arrow(),
    "schema": lambda scan: scan.schema,
    "to_reader": lambda scan: scan.to_reader(),
}


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (col("number") == "a", "number"),
        (col("number").is_in([1, "a"]), "number"),
        (col("number").is_between(0, b"a"), "number"),
        (col("number") == DAY, "number"),
        (col("number").starts_with("1"), "number"),
        (col("text") == 1, "text"),
        (col("text") == 1.5, "text"),
        (col("text") == Decimal(1), "text"),
        (col("text") == ONE, "text"),
        (col("text") == DAY, "text"),
        (col("text").is_nan(), "text"),
        (col("blob") == ONE, "blob"),
        (col("fixed") == ONE, "fixed"),
        (col("fixed") == Decimal(1), "fixed"),
        (col("flag") == "true", "flag"),
        (col("day") == "2024-02-29", "day"),
        (col("clock") == NOON.replace(tzinfo=UTC), "(?i)naive|without"),
        (col("clock") == pd.Timestamp(NOON, tz="UTC"), "(?i)naive|without"),
        (col("instant") == NOON, "(?i)aware|zone"),
        (col("instant") == pd.Timestamp(NOON), "(?i)aware|zone"),
        (col("clock") == pd.NaT, "clock"),
        (col("text") == "\ud800", "text"),
        (col("struct") == 1, "struct"),
        (col("list") == 1, r"\.any\(\).*\.all\(\)"),
        (col("list.element") == 1, r"\.any\(\).*\.all\(\)"),
        (col("items.price") == 1, r"\.any\(\).*\.all\(\)"),
        (col("items.element.price").is_null(), r"\.any\(\).*\.all\(\)"),
        (col("map.key") == "a", r"\.any\(\).*\.all\(\)"),
        (col("map.value").is_in([1]), r"\.any\(\).*\.all\(\)"),
        (~(col("number").is_null() | (col("text") == 1)), "text"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("use", sorted(USES))
def test_types_are_checked_before_data_is_read(
    use: str, predicate: fs.Predicate, message: str
) -> None:
    scan = fs.scan(written(TYPED)).filter(predicate)
    with fs.trace() as trace, pytest.raises(fs.PredicateTypeError, match=message) as raised:
        USES[use](scan)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, fs.FretsawError)
    assert trace.data_bytes == trace.pages_decoded == 0


@pytest.mark.parametrize("use", sorted(USES))
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nubmer", "number"),
        ("struct.w", "struct"),
        ("number.x", "number"),
        (("items", "v"), "items"),
    ],
    ids=str,
)
def test_names_are_checked_before_data_is_read(use: str, name: Any, message: str) -> None:
    scan = fs.scan(written(TYPED)).filter((col("number") == 1) | (col(name) == 1))
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError, match=message):
        USES[use](scan)
    assert trace.data_bytes == trace.pages_decoded == 0


# Lists and maps


NUMBERS = pa.array([None, [], [None], [1, None], [5, None], [1, 2], [5, 6], [1, 6]])


@rules(
    (x.any() > 3, [4, 6, 7]),
    (x.all() > 3, [1, 6]),
    (~(x.any() > 3), [1, 5]),
    (x.all() <= 3, [1, 5]),
    (~(x.all() > 3), [3, 5, 7]),
    (x.any() <= 3, [3, 5, 7]),
    (x.any() != 1, [4, 5, 6, 7]),
    (x.all() != 1, [1, 6]),
    (x.any().is_in([2, 6]), [5, 6, 7]),
    (x.any().is_in([2, None]), [5]),
    (x.all().is_in([2, None]), [1]),
    (x.all().is_between(1, 2), [1, 5]),
    (col("x.element").any().is_null(), [2, 3, 4]),
    (~col("x.element").any().is_null(), [1, 5, 6, 7]),
    (col("x.element").all().is_null(), [1, 2]),
    (col("x.element").all().is_not_null(), [1, 5, 6, 7]),
    (col("x.element").any() > 3, [4, 6, 7]),
    (col(("x", "element")).any() > 3, [4, 6, 7]),
    (col("x.list.element").any() > 3, [4, 6, 7]),
    (x.is_null(), [0]),
    ((x.any() > 3) & (x.any() < 3), [7]),
    ((x.any() > 5) | x.is_null(), [0, 6, 7]),
)
def test_lists_are_folded(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=NUMBERS) == rows


STRUCTS = [None, [], [None], [{"p": 1, "q": "a"}, {"p": 9, "q": None}], [{"p": None, "q": "z"}]]
GRID: list[Any] = [None, [], [None], [[]], [[1], None], [[1, 9], []], [[9], [None]], [[9], [8, 9]]]


@rules(
    (col("items.p").any() > 5, [3]),
    (col("items.p").all() > 5, [1]),
    (~(col("items.p").all() > 5), [3]),
    (col("items.element.q").any() == "z", [4]),
    (col("items.q").any().is_null(), [2, 3]),
    (col("items.list.element.p").all().is_null(), [1, 2, 4]),
    (col("items").is_null(), [0]),
    (col("items.element").any().is_null(), [2]),
    (col("in.tags.element").any() == "a", [3]),
    (col("in.tags.element").all() == "a", [2, 3]),
    (~(col("in.tags.element").any() == "a"), [2]),
    (col("in.tags").is_null(), [0, 1]),
)
def test_structs_in_lists_and_lists_in_structs(predicate: fs.Predicate, rows: list[int]) -> None:
    kind = pa.list_(pa.struct({"p": pa.int64(), "q": pa.string()}))
    inside: list[Any] = [None, {"tags": None}, {"tags": []}, {"tags": ["a"]}, {"tags": [None, "b"]}]
    tags = pa.array(inside, pa.struct({"tags": pa.list_(pa.string())}))
    assert matching(predicate, **{"items": pa.array(STRUCTS, kind), "in": tags}) == rows


@rules(
    (x.any() > 5, [5, 6, 7]),
    (x.all() > 5, [1, 3, 7]),
    (~(x.any() > 5), [1, 3]),
    (~(x.all() > 5), [4, 5]),
    (col("x.element.element").any() > 5, [5, 6, 7]),
    (col("x.element.element").any().is_null(), [6]),
    (col("x.element").any().is_null(), [2, 4]),
    (col("x.element").all().is_not_null(), [1, 3, 5, 6, 7]),
)
def test_every_level_of_a_list_is_folded(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=pa.array(GRID, pa.list_(pa.list_(pa.int64())))) == rows


@rules(
    (col("x.key").any() == "b", [2]),
    (col("x.key").all() == "a", [1, 3]),
    (col("x.value").any() > 1, [2]),
    (col("x.value").all() > 1, [1]),
    (col("x.value").any().is_null(), [3]),
    (col("x.key_value.key").any() == "b", [2]),
    (x.is_null(), [0]),
)
def test_maps_are_folded_by_key_or_value(predicate: fs.Predicate, rows: list[int]) -> None:
    maps = [None, [], [("a", 1), ("b", 2)], [("a", None)]]
    assert matching(predicate, x=pa.array(maps, pa.map_(pa.string(), pa.int64()))) == rows


def test_a_name_with_dots_is_matched_whole_first() -> None:
    columns = {"a": pa.array([{"b": 1}, {"b": 2}]), "a.b": pa.array([2, 1])}
    assert matching(col("a.b") == 1, **columns) == [1]
    assert matching(col(("a.b",)) == 1, **columns) == [1]
    assert matching(col(("a", "b")) == 1, **columns) == [0]


# Physical values


MILLISECONDS = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("array", "predicate", "rows"),
    [
        (pa.array([5, 7, None]).cast(MILLISECONDS), x.physical == 7, [1]),
        (pa.array([5, 7, None]).cast(MILLISECONDS), x.physical > 5, [1]),
        (pa.array([5, 7, None]).cast(MILLISECONDS), ~x.physical.is_in([5, None]), []),
        (pa.array([-5, 7, None]).cast(pa.timestamp("ns")), x.physical < 0, [0]),
        (pa.array([5, 7, None], pa.int32()).cast(pa.date32()), x.physical.is_between(5, 6), [0]),
        (pa.array([5, 7, None]).cast(pa.time64("us")), x.physical != 5, [1]),
        (pa.array([ONE.bytes, HIGH.bytes], pa.uuid()), x.physical == HIGH.bytes, [1]),
        (pa.array([ONE.bytes, HIGH.bytes], pa.uuid()), x.physical < b"\x7f", [0]),
        (pa.array(["é", "e"]), x.physical == b"\xc3\xa9", [0]),
        (pa.array(["é", "e"]), x.physical > b"\x7f", [0]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), x.physical == b"cd", [1]),
        (pa.array([0.0, -0.0, NAN]), x.physical == NAN, [2]),
        (pa.array([0.0, -0.0, NAN]), x.physical == 0.0, [0]),
        (pa.array([[5], [7]]).cast(pa.list_(MILLISECONDS)), x.physical.any() == 7, [1]),
        (pa.array([[5], [7]]).cast(pa.list_(MILLISECONDS)), x.any().physical == 7, [1]),
    ],
    ids=str,
)
def test_physical_compares_with_what_is_stored(
    array: pa.Array, predicate: fs.Predicate, rows: list[int]
) -> None:
    assert matching(predicate, x=array) == rows


def test_physical_decimals_are_unscaled_integers_or_bytes() -> None:
    table = pa.table({"x": pa.array([Decimal("-0.01"), Decimal("1.50")], pa.decimal128(7, 2))})
    stored = {True: 150, False: (150).to_bytes(4)}
    for as_integer, value in stored.items():
        data = written(table, store_decimal_as_integer=as_integer)
        found = fs.scan(data).filter(x.physical == value).to_arrow()
        assert found["x"].to_pylist() == [Decimal("1.50")]


@pytest.mark.parametrize(
    "predicate",
    [col("instant").physical == NOON.replace(tzinfo=UTC), col("text").physical == 1],
    ids=repr,
)
def test_physical_takes_no_logical_literals(predicate: fs.Predicate) -> None:
    with fs.trace() as trace, pytest.raises(fs.PredicateTypeError):
        fs.scan(written(TYPED)).filter(predicate).to_arrow()
    assert trace.data_bytes == 0


# Scans with predicates


COUNTED = pa.table({"n": range(100), "m": [i % 7 for i in range(100)]})
THREES = [i for i in range(100) if i % 7 == 3]


def numbers(scan: fs.Scan) -> list[int]:
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found


def test_windows_count_the_rows_that_match() -> None:
    for layout in LAYOUTS:
        scan = fs.scan(written(COUNTED, **{**layout, "row_group_size": 30})).filter(col("m") == 3)
        assert numbers(scan) == THREES
        assert numbers(scan.head(3)) == THREES[:3]
        assert numbers(scan.tail(3)) == THREES[-3:]
        assert numbers(scan.skip(10)) == THREES[10:]
        assert numbers(scan.skip(2).head(4)) == numbers(scan.head(4).skip(2)) == THREES[2:6]
        assert numbers(scan.head(0)) == numbers(scan.tail(0)) == numbers(scan.skip(99)) == []
        assert numbers(scan.tail(99)) == THREES
        assert scan.skip(2).head(4).count() == scan.tail(4).count() == 4
        kept = scan.filter(fs.blocks(1, 3))
        assert numbers(kept.tail(2)) == [n for n in THREES if 30 <= n < 90][-2:]
        assert numbers(scan.select_rows(range(50))) == [n for n in THREES if n < 50]


def test_filters_are_anded_and_come_before_windows() -> None:
    scan = fs.scan(written(COUNTED))
    assert numbers(scan.filter(col("m") == 3).filter(col("n") > 90)) == [94]
    for windowed in (scan.head(1), scan.tail(1), scan.skip(1)):
        with pytest.raises(ValueError, match="before skip/head/tail"):
            windowed.filter(col("m") == 3)


def test_columns_of_a_predicate_need_not_be_projected() -> None:
    scan = fs.scan(written(COUNTED)).filter(col("m") == 3)
    assert scan.select("n").to_arrow().to_pydict() == {"n": THREES}
    assert scan.select().to_arrow().shape == (len(THREES), 0)
    assert scan.schema.names == ["n", "m"]


def test_a_scan_with_a_predicate_can_be_pickled() -> None:
    scan = fs.scan(written(COUNTED)).filter(
        (col("m") == 3) & col("n").is_in([3, np.int64(94), None])
    )
    assert numbers(pickle.loads(pickle.dumps(scan))) == numbers(scan) == [3, 94]


def test_literals_are_resolved_for_each_file_by_itself(tmp_path: Path) -> None:
    values = [Decimal("-1.5"), 0, Decimal("1.5"), None]
    table = pa.table({"x": pa.array(values, pa.decimal128(7, 2))})
    for as_integer in (False, True):
        path = tmp_path / f"{as_integer}.parquet"
        pq.write_table(table, path, store_decimal_as_integer=as_integer, write_page_index=True)
    scan = fs.scan(tmp_path).with_row_index()
    cases = [(x > 1, [2, 6]), (x == Decimal("-1.5"), [0, 4]), (x < 0.5, [0, 1, 4, 5])]
    for predicate, rows in cases:
        assert scan.filter(predicate).to_arrow()["index"].to_pylist() == rows


def test_pruning_keeps_every_row_that_matches_and_reads_no_data(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(written(COUNTED, **LAYOUTS[0]))
    with fs.open(path) as file, fs.trace() as trace:
        selection = file.prune(col("n") >= 90)
    assert trace.data_bytes == 0
    assert set(range(90, 100)) <= set(selection.indices()) != set(range(100))
    assert selection.row_count == 100


# As text


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("fare > 100 and city in ('NYC', 'LA') and tip is not null", [0]),
        ("fare between 50 and 100 or tip is null", [1, 2, 3]),
        ("not (fare > 100)", [1]),
        ("city like 'N%'", [0, 2]),
        ("city != 'LA'", [0, 2]),
        ("at >= '2024-02-29 12:00:00'", [1, 2]),
        ("at = '2024-02-29T21:00:00+09:00'", [1]),
        ("day = '2024-02-29'", [1]),
    ],
)
def test_text_is_a_predicate(text: str, rows: list[int]) -> None:
    noon = NOON.replace(tzinfo=UTC)
    columns = {
        "fare": [120.0, 60.0, 200.0, None],
        "city": ["NYC", "LA", "NYC", None],
        "tip": [1, 2, None, None],
        "at": pa.array([noon - dt.timedelta(seconds=1), noon, noon + dt.timedelta(1), None]),
        "day": [dt.date(1999, 1, 1), DAY, None, dt.date(2030, 1, 1)],
    }
    assert matching(text, **columns) == rows


def test_text_that_is_no_condition_is_a_syntax_error() -> None:
    for text in ("n >", "n = = 1", "", "select 1"):
        with pytest.raises(fs.PredicateSyntaxError) as raised:
            fs.scan(written(COUNTED)).filter(text).to_arrow()
        assert isinstance(raised.value, ValueError)


# Against the oracle


def expression(tree: Tree) -> fs.Predicate:
    """The predicate of the library for a tree of the oracle."""
    match tree:
        case Not(inner):
            return ~expression(inner)
        case And(left, right):
            return expression(left) & expression(right)
        case Or(left, right):
            return expression(left) | expression(right)
        case Test(path, name, arguments, fold):
            column: Any = col(".".join(path))
            if fold:
                column = getattr(column, fold)()
            symbols = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
            if name in symbols:
                made: fs.Predicate = getattr(operator, symbols[name])(column, *arguments)
            elif name == "is_in":
                made = column.is_in(list(arguments))
            else:
                made = getattr(column, name)(*arguments)
            return made


class Case:
    """A file, its oracle, and random ways to ask for the rows that match."""

    def __init__(self, data: bytes, seed: int) -> None:
        self._data = data
        self.source = open_source(data)
        self.predicates = Predicates(self.source, seed)
        self._rng = np.random.default_rng([9, seed])
        file = pq.ParquetFile(io.BytesIO(data)).metadata
        sizes = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._ends = list(accumulate(sizes, initial=0))

    def check(self, tree: Tree) -> None:
        """All rows, then, often, another question about the same predicate."""
        predicate, rows = expression(tree), self.source.matches(tree)
        scan = fs.scan(self._data).filter(predicate)
        assert row_numbers(scan) == rows
        assert row_numbers(fs.scan(self._data, indexes=False).filter(predicate)) == rows
        chance = self._rng.random()
        if chance < 0.1:
            with fs.open(self._data) as file:
                assert set(rows) <= set(file.prune(predicate).indices().tolist())
        if chance < 0.45:
            return
        scan, rows = self._windowed(*self._restricted(scan, rows))
        if chance < 0.6:
            assert scan.count() == len(rows)
        else:
            self._check_values(scan, rows)

    def _restricted(self, scan: fs.Scan, rows: list[int]) -> tuple[fs.Scan, list[int]]:
        total = self._ends[-1]
        match self._rng.integers(8):
            case 0:
                start, end = sorted(int(n) for n in self._rng.integers(len(self._ends), size=2))
                kept = range(self._ends[start], self._ends[end])
                return scan.filter(fs.blocks(start, end)), [row for row in rows if row in kept]
            case 1:
                chosen = set(self._rng.integers(total, size=self._rng.integers(total + 1)).tolist())
                return scan.select_rows(sorted(chosen)), [row for row in rows if row in chosen]
            case 2:
                tree = self.predicates.tree(1)
                also = set(self.source.matches(tree))
                return scan.filter(expression(tree)), [row for row in rows if row in also]
            case _:
                return scan, rows

    def _windowed(self, scan: fs.Scan, rows: list[int]) -> tuple[fs.Scan, list[int]]:
        sizes = (0, 1, 3, len(rows) // 2, len(rows), len(rows) + 5)
        first, second = (int(n) for n in self._rng.choice(sizes, size=2))
        match self._rng.integers(8):
            case 0:
                return scan.head(first), rows[:first]
            case 1:
                return scan.tail(first), rows[max(0, len(rows) - first) :]
            case 2:
                return scan.skip(first), rows[first:]
            case 3:
                return scan.skip(first).head(second), rows[first:][:second]
            case 4:
                return scan.head(second).skip(first), rows[first:][:second]
            case _:
                return scan, rows

    def _check_values(self, scan: fs.Scan, rows: list[int]) -> None:
        table = self.source.table
        names = [item.name for item in table.schema if can_take(item.type)]
        chosen = self._rng.permutation(names)[: self._rng.integers(4)].tolist()
        asked = scan.select(*chosen).with_row_index("physical row")
        if self._rng.random() < 0.3:
            batches = asked.batches(int(self._rng.integers(1, 50)))
            found = pa.Table.from_batches(batches, asked.schema)
        else:
            found = asked.to_arrow()
        assert found["physical row"].to_pylist() == rows
        assert found.column_names == ["physical row", *chosen]
        if chosen:
            wanted = table.select(chosen).take(pa.array(rows, pa.int64()))
            assert_same_nested(found.select(chosen), wanted)


def can_take(kind: pa.DataType) -> bool:
    """Whether pyarrow's `take` knows the type: no lists of extension types."""
    return not (pa.types.is_nested(kind) and "extension" in str(kind))


def check_many(case: Case, count: int, where: str) -> None:
    """Random predicates on a file; a failure names the file and the predicate."""
    for number in range(count):
        tree = case.predicates.tree()
        try:
            case.check(tree)
        except Exception as error:
            error.add_note(f"{where}, predicate {number}: {tree}")
            raise


@pytest.mark.parametrize(
    "number",
    [*range(QUICK), *(pytest.param(n, marks=pytest.mark.slow) for n in range(QUICK, FILES))],
)
def test_the_rows_are_those_of_the_oracle(number: int) -> None:
    writer, data = make_file(number)
    check_many(Case(data, number), PREDICATES, f"file {number} by {writer}")


CORPUS = (
    *("alltypes_plain", "alltypes_dictionary", "alltypes_tiny_pages", "binary", "nulls.snappy"),
    *("byte_array_decimal", "fixed_length_decimal", "int32_decimal", "int64_decimal"),
    *("float16_zeros_and_nans", "floating_orders_nan_count", "nan_in_stats", "single_nan"),
    *("binary_truncated_min_max", "data_index_bloom_encoding_stats"),
    *("nested_lists.snappy", "nested_maps.snappy", "null_list", "nonnullable.impala"),
    *("datapage_v2.snappy", "sort_columns", "fixed_length_byte_array", "old_list_structure"),
)


@pytest.mark.parametrize("name", CORPUS)
def test_files_by_other_writers_agree_with_the_oracle(name: str, corpus: Path) -> None:
    path = corpus / "parquet" / "data" / f"{name}.parquet"
    check_many(Case(path.read_bytes(), 0), 15, path.name)


SPARK = Writer(by_pyarrow, Kinds(COMMON, (*NESTED, "map")), COMMON)
SPARK_LAYOUTS = [
    ("PARQUET_1_0", "INT96", "false"),
    ("PARQUET_2_0", "TIMESTAMP_MICROS", "false"),
    ("PARQUET_1_0", "TIMESTAMP_MICROS", "true"),
    ("PARQUET_2_0", "INT96", "true"),
]


@pytest.mark.spark
def test_files_of_spark_agree_with_the_oracle(spark: Any, tmp_path: Path) -> None:
    # One test, so that tests in parallel do not start a JVM each.
    for number, layout in enumerate(SPARK_LAYOUTS * 2):
        source = tmp_path / f"{number}.parquet"
        pq.write_table(make_table(SPARK, np.random.default_rng([10, number])), source)
        frame = spark.read.parquet(str(source)).coalesce(1)
        path = spark_file(frame, tmp_path / f"spark-{number}", layout)
        check_many(Case(path.read_bytes(), number), PREDICATES, f"Spark file {number}")


# The oracle itself


def sql(tree: Tree, values: dict[str, Any]) -> str:
    """The condition for DuckDB; its literals become named parameters."""
    match tree:
        case Not(inner):
            return f"(NOT {sql(inner, values)})"
        case And(left, right) | Or(left, right):
            word = "AND" if isinstance(tree, And) else "OR"
            return f"({sql(left, values)} {word} {sql(right, values)})"
        case Test(path, test, arguments, fold):
            name = path[0]
            keys = [f"p{len(values) + i}" for i in range(len(arguments))]
            values.update(zip(keys, arguments, strict=True))
            marks = [f"${key}" for key in keys]
            value = "e" if fold else name
            text = {
                "is_null": f"{value} IS NULL",
                "is_not_null": f"{value} IS NOT NULL",
                "is_nan": f"isnan({value})",
                "is_in": f"{value} IN ({', '.join(marks)})",
                "is_between": f"{value} BETWEEN {' AND '.join(marks)}",
                "starts_with": f"starts_with({', '.join([value, *marks])})",
            }.get(test, " ".join([value, test, *marks]))
            return folded(name, f"({text})", fold) if fold else f"({text})"


def folded(name: str, text: str, fold: str) -> str:
    """Three-valued OR over a list; AND is the negation of OR over negations."""
    sign = "" if fold == "any" else "NOT "
    truths = f"[{sign}{text} FOR e IN {name}]"
    cases = f"WHEN {name} IS NULL THEN NULL WHEN list_contains({truths}, true) THEN true"
    unknown = f"len([1 FOR t IN {truths} IF t IS NULL]) > 0"
    return f"({sign}(CASE {cases} WHEN {unknown} THEN NULL ELSE false END))"


def in_duckdb(tree: Tree) -> bool:
    """Whether DuckDB means the same: its zeros are one, its numbers of two types are rounded."""
    match tree:
        case Not(inner):
            return in_duckdb(inner)
        case And(left, right) | Or(left, right):
            return in_duckdb(left) and in_duckdb(right)
        case Test(path, _, arguments, _):
            fit = {"f": (float,), "i": (int,), "l": (int,), "s": (str,), "d": (dt.date,)}
            kinds = (*fit.get(path[0], (dt.datetime,)), type(None))
            typed = all(type(argument) in kinds for argument in arguments)
            return typed and not any(a == 0 or a == 10**30 for a in arguments)


def test_the_oracle_agrees_with_duckdb_where_both_mean_the_same() -> None:
    rng = np.random.default_rng(11)
    kinds = {"i": pa.int32(), "f": pa.float64(), "s": pa.string(), "d": pa.date32()}
    kinds |= {"t": pa.timestamp("us"), "l": pa.list_(pa.int64())}
    arrays = [fill(pa.field(name, kind), 200, rng, extreme=False) for name, kind in kinds.items()]
    table = pa.table(arrays, names=list(kinds))
    table = table.filter((pc.field("f") != 0) | pc.field("f").is_null())
    source = Source(table)
    predicates = Predicates(source, 0)
    checked = 0
    with need("duckdb").connect() as connection:
        numbered = table.append_column("row", pa.array(range(table.num_rows)))
        connection.register("source", numbered)
        while checked < 150:
            tree = predicates.tree()
            if not in_duckdb(tree):
                continue
            values: dict[str, Any] = {}
            query = f"SELECT row FROM source WHERE {sql(tree, values)} ORDER BY row"
            found = connection.execute(query, values).fetchall()
            assert [row for (row,) in found] == source.matches(tree), tree
            checked += 1
