"""Comparisons: operators, nulls, and the values of each kind of type."""

import datetime as dt
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.predicate_cases import (
    DAY,
    HIGH,
    INF,
    LAYOUTS,
    NAN,
    NOON,
    ONE,
    UTC,
    matching,
    row_numbers,
    rules,
    written,
    x,
)

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
    (x == 0, [3, 4]),
    (x < 0, [1, 2]),
    (x >= 0, [3, 4, 5, 6, 7, 8]),
    (x.is_in([0]), [3, 4]),
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


TOKYO = dt.timezone(dt.timedelta(hours=9))


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
