"""Functions at the edges of their types: exact, or an error that says so."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import written

D = Decimal
WIDE = pa.decimal128(38, 10)
US, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
NESTED = [[1, 9], [2], None]


def rows(predicate: Any, values: Any, kind: pa.DataType | None = None) -> list[int]:
    table = pa.table({"x": pa.array(values, kind), "n": range(len(values))})
    scan = fs.scan(written(table, "parquet", [len(values)])).filter(predicate)
    found: list[int] = scan.select("n").to_arrow()["n"].to_pylist()
    return found


x = col("x")


@pytest.mark.parametrize(
    ("predicate", "values", "kind", "expected"),
    [
        (x.cast(pa.decimal128(9, 2)) > 0, [1, 2, None, -1], pa.int64(), [0, 1]),
        (x.cast("decimal(4, 2)") == 99, [99, -99], pa.int8(), [0]),
        (x.cast("decimal128(10, 2)") > 1, [1.0, 2.0], pa.float64(), [1]),
        (x.cast("timestamp[us, tz=UTC]") > dt.datetime(2024, 1, 1, tzinfo=dt.UTC), [0], US, []),
        # quotients of decimals
        ("x % 0.1 = 0", [D("10.00"), D("0.30"), D("0.25")], pa.decimal128(9, 2), [0, 1]),
        (x % D("0.1") == 0, [D("10.00"), D("0.30"), D("0.25")], pa.decimal128(9, 2), [0, 1]),
        ("x // 0.1 = 3", [D("10.00"), D("0.30"), D("0.25")], pa.decimal128(9, 2), [1]),
        (x // D("0.2") == -2, [D("-0.30"), D("-0.20"), None], pa.decimal128(9, 2), [0]),
        ("x // 0.2 = -1", [D("-0.30"), D("-0.20"), None], pa.decimal128(9, 2), [0, 1]),
        (x % D("0.2") == D("0.1"), [D("-0.30"), D("0.30")], pa.decimal128(9, 2), [0, 1]),
        ("x % 0.2 = 0.1", [D("-0.30"), D("0.30")], pa.decimal128(9, 2), [1]),
        ((x % 0).is_null(), [D("1.5"), D(0)], pa.decimal128(9, 2), [0, 1]),
        (
            x % 7 == 3,
            [D(10**27 + 5), D(3)],
            WIDE,
            [i for i, v in enumerate([10**27 + 5, 3]) if v % 7 == 3],
        ),
        (x // D("1e-10") == D(10**37), [D(10**27), D(1)], WIDE, [0]),
        # rounding
        (x.round(0) > 5, [D("9999999999999999999999999999.9999999999"), D(1)], WIDE, [0]),
        (x.round(0) == 10**28, [D("9999999999999999999999999999.9999999999"), D(1)], WIDE, [0]),
        (x.round(1) > 5, [D("9999999999999999999999999999.9999999999"), D(1)], WIDE, [0]),
        (x.round(-3) == 1000, [D("999"), D("400")], pa.decimal128(3, 0), [0]),
        (x.round(-5) == 0, [D("999"), D("400")], pa.decimal128(3, 0), [0, 1]),
        (x.round(1) > 1, [1.7e308, 0.25, 1e300, None], pa.float64(), [0, 2]),
        (x.round(100) == 1.5, [1.5, 1e300], pa.float64(), [0]),
        ("round(x, 1) = 1.7e308", [1.7e308, 0.25], pa.float64(), [0]),
        (x.round(-1) == 0, [5e-324, 1.0, 1e-320, -1e-320, 6.0], pa.float64(), [0, 1, 2, 3]),
        (x.round(-1).is_nan(), [math.nan, 1.0], pa.float64(), [0]),
        # signs
        (-x <= 0, [0, 1, 2**63], pa.uint64(), [0, 1, 2]),
        (-x == -(2**63), [0, 1, 2**63], pa.uint64(), [2]),
        ("-x < 0", [0, 1, 2], pa.uint8(), [1, 2]),
        ("x = -0.0", [0.0, -0.0, 1.0], pa.float64(), [0, 1]),
        ("x in (1, -0.0)", [0.0, -0.0, 1.0], pa.float64(), [0, 1, 2]),
        ("x between 0.0 and -0.0", [0.0, -0.0, 1.0], pa.float64(), [0, 1]),
        ("x != -0.0", [0.0, -0.0, 1.0], pa.float64(), [2]),
        ("x is distinct from -0.0", [0.0, -0.0, 1.0, None], pa.float64(), [2, 3]),
        ("nullif(x, -0.0) is null", [0.0, -0.0, 1.0], pa.float64(), [0, 1]),
        ("case x when -0.0 then 1 else 2 end = 1", [0.0, -0.0, 1.0], pa.float64(), [0, 1]),
        ("abs(x) = -0.0", [0.0, -0.0, 1.0], pa.float64(), [0, 1]),
        ("x is not distinct from 1e300", [1e300, 1.0, None], pa.float64(), [0]),
        ("x is distinct from 1e300", [1e300, 1.0, None], pa.float64(), [1, 2]),
        ("1e300 is not distinct from x", [1e300, 1.0, None], pa.float64(), [0]),
        ("x + 1e300 > 1", [1.0, -1e300, None], pa.float64(), [0]),
        # elements in a choice
        (fs.when(x.any() > 7).then(1).otherwise(0) == 1, NESTED, None, [0]),
        ("case when any(x) > 7 then 1 else 0 end = 1", NESTED, None, [0]),
        # conditions as values
        ("(x > 0) is null", [1, None, -1], None, [1]),
        ("(x > 0) is not true", [1, None, -1], None, [1, 2]),
        ("(x > 0) = (x < 5)", [1, None, -1, 7], None, [0]),
        ("coalesce(x > 0, x is null)", [1, None, -1], None, [0, 1]),
        (
            "(x in (1, 2)) is not distinct from (x between 2 and 3)",
            [1, None, 2, 5],
            None,
            [1, 2, 3],
        ),
        ("isnan(x) is not true", [1.0, math.nan, None], pa.float64(), [0, 2]),
        ("starts_with(x, 'a') = (x > 'ab')", ["a", "ac", None, "b"], None, [1]),
        ("coalesce(contains(x, 'a'), true)", ["a", "b", None], None, [0, 2]),
        ("regexp_matches(x, 'a') is null", ["a", "b", None], None, [2]),
        ("list_contains(x, 9) is distinct from true", NESTED, None, [1, 2]),
        # timestamps of the text
        (
            "coalesce(x, timestamp '2024-01-01 00:00:00') > timestamp '2023-01-01'",
            [1, None],
            US,
            [1],
        ),
        (
            "case when x is null then timestamp '2024-01-01' else x end > timestamp '2023-01-01'",
            [1, None],
            US,
            [1],
        ),
        (
            "coalesce(x, timestamptz '2024-01-01 00:00:00+00') > timestamptz '2023-01-01 00:00Z'",
            [1, None],
            UTC,
            [1],
        ),
        ("coalesce(x, timestamp '2024-01-01') > timestamp '2023-01-01'", [1, None], UTC, [1]),
        ("coalesce(x, '2024-01-01') > '2023-01-01'", [1, None], US, [1]),
        ("coalesce(x, '5') = 5", [1, None], pa.int32(), [1]),
        ("x - timestamp '1970-01-01' > interval 10 day", [0, 10**15], US, [1]),
        ("x - timestamp '1970-01-01' > interval 10 day", [0, 10**15], UTC, [1]),
        (
            "timestamp '2024-01-01 00:00:00.000000001' - x > interval 1 day",
            [0, 1_704_067_200 * 10**6],
            US,
            [0],
        ),
        (
            "date '2024-03-01' - x > interval 1 day",
            [dt.date(2024, 2, 29), dt.date(2023, 1, 1)],
            pa.date32(),
            [1],
        ),
        ("year(timestamp '1970-01-01') = year(x)", [0, 10**17], US, [0]),
        ("trim(x) = 'tab'", ["\ttab\n", " tab "], pa.string(), [1]),
        (x.strip() == "tab", ["\ttab\n", " tab "], pa.string(), [0, 1]),
    ],
    ids=repr,
)
def test_functions_are_exact_at_their_edges(
    predicate: Any, values: Any, kind: pa.DataType | None, expected: list[int]
) -> None:
    assert rows(predicate, values, kind) == expected


@pytest.mark.parametrize(
    ("predicate", "values", "kind", "error", "says"),
    [
        (x.cast("decimal(3, 2)") > 0, [10], pa.int64(), fs.PredicateError, "'x'"),
        (-x < 0, [2**63 + 1], pa.uint64(), fs.PredicateError, "overflow"),
        (
            x.truncate("day") > dt.datetime(2000, 1, 1),
            [-9223372036 * 10**9],
            pa.timestamp("ns"),
            fs.PredicateError,
            "day begins before",
        ),
        ("trim(x, 'a') = 'b'", ["ab"], pa.string(), fs.PredicateSyntaxError, "TRIM"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_an_error(
    predicate: Any, values: Any, kind: pa.DataType, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        rows(predicate, values, kind)


def test_types_have_names() -> None:
    with pytest.raises(fs.PredicateTypeError, match="timestamp"):
        x.cast("timestmp[us]")
    with pytest.raises(fs.PredicateTypeError, match=r"'varchar'.*there are"):
        x.cast("varchar")
    with pytest.raises(TypeError, match="-100 to 100"):
        x.round(400)
    assert repr(x.cast(pa.decimal128(9, 2))) == repr(x.cast("decimal128(9, 2)"))


@pytest.mark.parametrize(
    ("predicate", "says"),
    [
        (lambda: col("x"), r"col\('x'\) is int64, not a condition"),
        (lambda: ~(col("x") + 1), "not a condition"),
        (lambda: col("x").like("1%"), r"like\('1%'\) does not fit"),
        (lambda: (x > 1) & True, "combines with other predicates"),
        (lambda: (x > 1) | "x > 1", "combines with other predicates"),
        (lambda: x.contains(1), r"any\(\) == 1"),  # type: ignore[arg-type]
        (lambda: x.year == 1, "did you leave out"),  # type: ignore[comparison-overlap]
        ("iif(x > 0, 1, 0) = 1", r"IIF\(condition, number, number\)"),
    ],
)
def test_slips_are_told_in_the_words_of_who_wrote_them(predicate: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        rows(predicate() if callable(predicate) else predicate, [1, 2], pa.int64())


def test_numbers_beyond_all_floats_equal_none_of_them() -> None:
    floats = [1.0, math.inf, -math.inf]
    for beyond in (10**400, D("1e400")):
        assert rows(x == beyond, floats) == []
        assert rows(x > beyond, floats) == [1]
        assert rows(x < -beyond, floats) == [2]
    assert rows(abs(x) == 1, floats) == [0]
    assert rows(round(x, 1) == 1, floats) == [0]


def test_a_value_beside_a_null_need_not_fit() -> None:
    table = pa.table({"u": pa.array([2**63, 4], pa.uint64()), "i": pa.array([None, 2], pa.int64())})
    scan = fs.scan(written(table, "parquet", [2]))
    assert scan.filter(col("i") // col("u") == 0).count() == 1
    assert scan.filter((col("i") + col("u")).is_null()).count() == 1
