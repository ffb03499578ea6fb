"""Bounds of Parquet that prove, and those that must not: what both formats have in common is in
`tests/formats/test_traps.py`.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from tests.support.craft import (
    IEEE754_ORDER,
    UNHEARD_ORDER,
)
from tests.support.depth import tiers
from tests.support.trap_files import (
    OLD_BOUNDS,
    Change,
    Describe,
    Facts,
    ParquetTraps,
    Trap,
    always,
    crafted_parquet,
    deprecated,
    honest,
    in_parquet,
    plus,
    stored,
    traps,
)
from tests.support.traps import (
    ENDLESS,
    KINDS,
    MIXED,
    NAN,
    ONLY_NAN,
    RUNS,
    SIGNED_NAN,
    Kind,
    Predicate,
    X,
    begins,
    between,
    both_ways,
    check,
    check_or_refuse,
    check_proven,
    compared,
    deceived,
    every_test,
    is_nan,
    minimal,
    one_of,
    same,
)

pytestmark = pytest.mark.slow

STRING = KINDS["string"]

levels = pytest.mark.parametrize("level", RUNS)


def says(low: bytes, high: bytes, **more: Any) -> Describe:
    """The same bounds for all."""
    return always(**OLD_BOUNDS, min_value=low, max_value=high, **more)


OFTEN = ("int32", "uint64", "float64", "decimal in FLBA", "string")
# One of each physical type and order: enough where no bound is used
FEW = (
    *("int32", "uint32", "int64", "uint64", "float16", "float64", "date", "timestamp in us"),
    *("decimal in INT32", "decimal in FLBA", "decimal in BYTE_ARRAY"),
    *("string", "binary", "fixed binary", "uuid"),
)


# Bounds of integers, dates, times, timestamps, decimals and strings


@levels
@pytest.mark.parametrize(
    "name", ["decimal in FLBA", "decimal in BYTE_ARRAY", "decimal in INT32", "float16", "date"]
)
def test_stored_values_have_an_order_of_their_own(name: str, level: str) -> None:
    """Bytes compare as bytes, though the bounds are those of numbers."""
    kind = KINDS[name]
    values = kind.spread()

    def as_stored(value: Any) -> bytes | int:
        bound = stored(kind, value)
        is_integer = name in ("decimal in INT32", "date")
        return int.from_bytes(bound, "little", signed=True) if is_integer else bound

    describe = plus(honest(kind), nan_count=0) if kind.is_float else None
    predicates = [
        Predicate(test.label, test.expression, lambda v, holds=test.holds: holds(as_stored(v)))  # type: ignore[misc]
        for test in every_test(*(as_stored(kind.at(i)) for i in (4, 10, 30)), subject=X.physical)
    ]
    check(crafted_parquet(values, kind, level, describe), values, both_ways(predicates))


@pytest.mark.parametrize("name", ["int32", "uint32", "string", "decimal in FLBA"])
def test_pages_that_are_ruled_out_are_not_decoded(name: str) -> None:
    kind = KINDS[name]
    scan = fs.scan(crafted_parquet(kind.spread(), kind, "page")).filter(
        compared(">", kind.at(30)).expression
    )
    with fs.trace() as trace:
        assert scan.to_arrow()["row"].to_pylist() == [12, 13, 14, 15]
    assert trace.pages_decoded == 2
    assert trace.index_bytes > 0


def column_orders(order: int | None) -> Change:
    return lambda file: file.set_column_orders(order)


CUTS: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda bound: b"",
    "a byte short": lambda bound: bound[:-1],
    "a byte short in front": lambda bound: bound[1:],
    "a byte long": lambda bound: bound + bound[-1:],
    "of twice the width": lambda bound: bound + bytes(len(bound)),
    "of twice the width in front": lambda bound: bytes(len(bound)) + bound,
}
CUT_KINDS = ("int32", "int64", "float16", "float64", "decimal in FLBA", "fixed binary", "uuid")


def lies() -> dict[str, Trap]:
    """Wrong bounds, each with a reason not to believe it."""
    cases = {}
    for name in FEW:
        kind = KINDS[name]
        low, high = stored(kind, kind.at(44)), stored(kind, kind.at(46))
        more = {"nan_count": 0} if kind.is_float else {}
        ways: dict[str, tuple[Describe, Change]] = {
            "column order absent": (says(low, high, **more), column_orders(None)),
            "column order unheard of": (says(low, high, **more), column_orders(UNHEARD_ORDER)),
        }
        for cut in CUTS if name in CUT_KINDS else ["empty"] if kind.pack is minimal else []:
            ways[f"bounds {cut}"] = says(CUTS[cut](low), CUTS[cut](high), **more), same
        for way, (describe, change) in ways.items():
            trap = Trap(kind, kind.spread(), deceived(kind), describe, change)
            cases[f"{name}: {way}"] = trap
    return cases


LIES = lies()


@pytest.mark.parametrize("level", RUNS)
@tiers("lie", LIES, (), [name for name in LIES if name.split(":")[0] in OFTEN])
def test_bounds_that_prove_nothing(lie: str, level: str) -> None:
    LIES[lie].check(crafted_parquet, level)


INEXACT = {"is_min_value_exact": False, "is_max_value_exact": False}
UNDEFINED = (
    *("uint8", "uint32", "uint64", "decimal in FLBA", "decimal in BYTE_ARRAY", "string"),
    *("wide decimal in FLBA", "binary", "fixed binary", "uuid", "float16"),
)
ordered = pytest.mark.parametrize("order", [1, None], ids=["ordered", "column order absent"])


@ordered
@pytest.mark.parametrize("name", UNDEFINED)
def test_deprecated_bounds_of_undefined_order_prove_nothing(name: str, order: int | None) -> None:
    kind = KINDS[name]
    more = {"nan_count": 0} if kind.is_float else {}
    lie = says(stored(kind, kind.at(44)), stored(kind, kind.at(46)), **more)
    change = column_orders(order)
    Trap(kind, kind.spread(), deceived(kind), deprecated(lie), change).check(
        crafted_parquet, "block"
    )


@ordered
@pytest.mark.parametrize(
    "name", ["int8", "int32", "int64", "date", "timestamp in us", "decimal in INT32"]
)
def test_deprecated_bounds_of_signed_order_prove(name: str, order: int | None) -> None:
    kind = KINDS[name]
    values = kind.spread()
    describe = deprecated(honest(kind))
    data = crafted_parquet(values, kind, "block", describe, column_orders(order))
    check_proven(data, values, both_ways(kind.tests(*kind.gaps("block"))), "block")


def test_deprecated_bounds_do_not_replace_the_others() -> None:
    bad = {"min": stored(STRING, STRING.at(44)), "max": stored(STRING, STRING.at(46))}
    describe = plus(honest(STRING), **bad)
    Trap(STRING, STRING.spread(), deceived(STRING), describe).check(crafted_parquet, "block")


@levels
def test_int96_has_no_order(level: str) -> None:
    first_day = 2_458_850  # the Julian day of the date below
    start = datetime(2020, 1, 1, tzinfo=UTC)
    options = {"use_deprecated_int96_timestamps": True}
    kind = Kind(pa.timestamp("ns", "UTC"), lambda i: start + timedelta(i), options=options)
    lie = says(*(struct.pack("<qi", 0, first_day + i) for i in (44, 46)), null_count=0)
    Trap(kind, kind.spread(), deceived(kind), lie).check(crafted_parquet, level)


# Truncated bounds, of which it is said that they are no values

LONG = "p" * 70
LONG_VALUES = [LONG + end for end in "abcdefgh"] + ["p" + end for end in "abcd"] + [LONG] * 4
LONG_TESTS = both_ways(
    [*every_test(LONG[:64], LONG + "b"), *map(begins, ("", "pa", LONG[:64], LONG + "a"))]
)
SHORT = ["a", "a", "ab", "ac", "b", "ba", "bb", "c"] * 2
SHORT_TESTS = both_ways([*every_test("a", "ab", "c", "d"), *map(begins, ("a", "ab", "c", "d"))])


def cut_to(size: int, **more: bool | None) -> Describe:
    return plus(ParquetTraps().cut(size), **more)


TRUNCATED = {
    "inexact": Trap(STRING, LONG_VALUES, LONG_TESTS, cut_to(64, **INEXACT)),
    "only min is exact": Trap(
        *(STRING, SHORT, SHORT_TESTS),
        cut_to(1, is_min_value_exact=True, is_max_value_exact=False),
    ),
}


@traps(TRUNCATED)
def test_truncated_bounds_are_no_values(trap: Trap, level: str) -> None:
    trap.check(crafted_parquet, level)


@levels
def test_equal_bounds_that_are_inexact_prove_no_equality(level: str) -> None:
    values, cut = [LONG + "a"] * 8 + [LONG + "b"] * 8, LONG[:64]
    data = crafted_parquet(values, STRING, level, says(cut.encode(), cut.encode(), **INEXACT))
    equalities = [compared("==", cut), compared("!=", cut), one_of([cut]), one_of([cut, None])]
    check_or_refuse(data, values, both_ways(equalities))


@pytest.mark.slow
@levels
def test_truncated_bounds_rule_out(level: str) -> None:
    values = [letter * 70 + str(i) for letter in "bdfh" for i in range(4)]
    predicates = both_ways(every_test("a" * 70, "e" * 70, "e", "i"))
    data = crafted_parquet(values, STRING, level, cut_to(64, **INEXACT))
    check_proven(data, values, predicates, level, exact=False)


@levels
def test_bytes_without_a_successor(level: str) -> None:
    endings = [b"\xff" * 3, b"\xff\xff", b"\xff", b"", b"\x7f", b"\x80", b"\xfe\xff", b"\xff\x00"]
    predicates = both_ways(every_test(b"\xff", b"\xff\xff", b"", b"\x80", b"\x00"))
    Trap(KINDS["binary"], endings * 2, predicates).check(crafted_parquet, level)


# Float bounds


def counting_nan(describe: Describe) -> Describe:
    def counted(run: Sequence[Any]) -> Facts:
        nans = sum(value is not None and math.isnan(value) for value in run)
        return {**(describe(run) or {}), "nan_count": nans}

    return counted


def float_traps(kind: Kind) -> dict[str, Trap]:
    true, nan, minus_nan = honest(kind), stored(kind, NAN), stored(kind, -NAN)

    def trap(
        values: Sequence[Any], literals: Sequence[float], describe: Describe, **more: Any
    ) -> Trap:
        predicates = both_ways([*kind.tests(*literals), is_nan()])
        return Trap(kind, values, predicates, describe, **more)

    some, either = (NAN, 2.0, 100.0), counting_nan(says(minus_nan, nan))
    ieee = column_orders(IEEE754_ORDER)
    return {
        "NaN counted": trap(MIXED, some, counting_nan(true)),
        "NaN of either sign": trap(SIGNED_NAN, some, says(minus_nan, nan)),
        "NaN counted in bounds": trap(SIGNED_NAN, some, either),
        "NaN in its IEEE place": trap(SIGNED_NAN, some, either, change=ieee),
        "only NaN, counted": trap(ONLY_NAN, (NAN, 1.0, 2.0), counting_nan(true)),
        "NaN within deprecated bounds": trap(MIXED, some, deprecated(true), levels=("block",)),
    }


@traps(float_traps(KINDS["float64"]), "NaN counted")
def test_counted_and_signed_nan_are_found(trap: Trap, level: str) -> None:
    trap.check(crafted_parquet, level)


@levels
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_float_bounds_rule_out_below_without_a_count_of_nan(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    gaps = kind.gaps(level)
    predicates = [compared(test, gap, kind.order) for test in ("<", "<=", "==") for gap in gaps]
    predicates += [~compared(test, gap, kind.order) for test in (">", ">=", "!=") for gap in gaps]
    predicates += [between(gaps[0], gaps[1], kind.order), one_of(gaps, kind.order)]
    data = crafted_parquet(values, kind, level, honest(kind))
    check_proven(data, values, predicates, level, exact=False)


@pytest.mark.parametrize("values", [MIXED, ONLY_NAN, ENDLESS], ids=["some", "most", "few"])
def test_pages_of_nan_have_no_column_index(values: list[float | None]) -> None:
    """As pyarrow has it: one block with, one without, both with statistics."""
    kind = KINDS["float64"]
    predicates = both_ways([*kind.tests(NAN, 1.0, 0.0), is_nan()])
    check(in_parquet(values, kind).to_bytes(), values, predicates)
