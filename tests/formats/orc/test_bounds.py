"""Statistics of ORC that prove, and those that must not: what both formats have in common is in
`tests/formats/test_traps.py`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.depth import tiers
from tests.support.orc_craft import (
    KIND,
    Crafted,
    Message,
    read,
    written_at_once,
)
from tests.support.trap_files import (
    COLUMN,
    Change,
    Describe,
    Facts,
    OrcTraps,
    Trap,
    always,
    crafted_orc,
    in_orc,
    microseconds,
    milliseconds,
    statistics_of,
    traps,
)
from tests.support.traps import (
    ENDLESS,
    GAPPED,
    GAPPED_TESTS,
    INF,
    KINDS,
    MIXED,
    NAN,
    PAGE,
    RUNS,
    ZEROS_BELOW,
    Kind,
    Predicate,
    X,
    begins,
    both_ways,
    check,
    check_or_refuse,
    check_proven,
    compared,
    deceived,
    every_test,
    float_kind,
    floats,
    is_nan,
    is_not_null,
    is_null,
)

pytestmark = pytest.mark.slow

INT, STRING, DOUBLE, BINARY = (KINDS[name] for name in ("int32", "string", "float64", "binary"))
NAMES = OrcTraps.kinds
VARCHAR, CHAR = 16, 17
FEW = ("int32", "float64", "string")

levels = pytest.mark.parametrize("level", RUNS)


# Bounds that hold


@levels
def test_the_length_of_binaries_proves_nothing(level: str) -> None:
    values = [bytes([i, 200 - i]) for i in range(16)]
    predicates = every_test(values[3], b"\xff")
    for describe in (always(), always(binary_sum=0), always(binary=None)):
        check(crafted_orc(values, BINARY, level, describe), values, predicates)


# Statistics that are not there


ABSENT: Mapping[str, Describe] = {
    "no statistics": lambda run: None,
    "no count of values": always(values=None),
    "no count, no word of nulls": always(values=None, has_null=None),
    "no word of nulls": always(has_null=None),
}


@levels
@tiers("name", NAMES, (), ["int32", "float64", "string", "decimal in FLBA", "timestamp in us"])
def test_what_is_not_said_proves_nothing(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    values[2] = values[9] = None
    values[4:8] = [None] * 4
    predicates = [*deceived(kind), is_null(), is_not_null()]
    prefix = statistics_of(kind)
    group = {"timestamp" if prefix == "utc" else prefix: None}
    for describe in (*ABSENT.values(), always(**group), always(**group, values=None)):
        check(crafted_orc(values, kind, level, describe), values, predicates)


def test_files_without_any_statistics_are_read() -> None:
    def emptied(file: Crafted) -> None:
        file.drop_stripe_statistics()
        file.footer.pop(7)

    data = crafted_orc(GAPPED, INT, "block", change=emptied)
    check(data, GAPPED, GAPPED_TESTS)


def test_statistics_of_fewer_stripes_than_there_are_prove_nothing_of_the_rest() -> None:
    def shortened(file: Crafted) -> None:
        file.metadata[1] = file.metadata[1][:1]

    values = INT.spread()
    data = crafted_orc(values, INT, "block", change=shortened)
    check_or_refuse(data, values, INT.tests(*INT.gaps("block")))


def test_statistics_of_fewer_columns_than_there_are_prove_nothing_of_the_rest() -> None:
    def narrowed(file: Crafted) -> None:
        file.metadata[1] = [raw[: 2 + raw[1]] for raw in file.metadata[1]]

    values = INT.spread()
    data = crafted_orc(values, INT, "block", change=narrowed)
    check_or_refuse(data, values, INT.tests(*INT.gaps("block")))


@pytest.mark.parametrize("count", [0, 1])
def test_a_row_index_with_too_few_entries_loses_no_row(count: int) -> None:
    values = INT.spread()
    data = crafted_orc(values, INT, "page", change=lambda file: file.keep_entries(COLUMN, count))
    check_or_refuse(data, values, INT.tests(*INT.gaps("page")))


@levels
@pytest.mark.parametrize("name", ["int32", "string", "date", "float64"])
def test_bounds_in_the_message_of_another_type_prove_nothing(name: str, level: str) -> None:
    """An int says it is a double, and so on: such a message is not meant for the column."""
    kind = KINDS[name]
    other = {"int32": "float64", "string": "decimal in INT32", "date": "int32", "float64": "int32"}
    its = KINDS[other[name]]
    facts = OrcTraps().told(its, its.at(44), its.at(46))
    describe = always(**{statistics_of(kind): None}, **facts)
    Trap(kind, kind.spread(), deceived(kind), describe).check(crafted_orc, level)


# Nulls


def test_a_field_with_more_values_than_its_struct_proves_nothing() -> None:
    """As pyarrow writes it where the field of a null struct within a struct is not null."""
    numbers = pa.array(range(16), pa.int32())
    inner = pa.StructArray.from_arrays([numbers], names=["a"], mask=pa.array([False, True] * 8))
    outer = pa.StructArray.from_arrays([inner], names=["s"])
    table = pa.table({"row": range(16), "x": outer})
    data = written_at_once(table, row_index_stride=PAGE)
    values = read(data)["x"].to_pylist()
    of_field = [
        Predicate(test.label, test.expression, lambda v, t=test: t.holds(v["s"] and v["s"]["a"]))  # type: ignore[misc]
        for test in every_test(0, 3, 5, subject=col("x.s.a"))
    ]
    check_or_refuse(data, values, both_ways(of_field))
    for first in range(0, 16, PAGE):
        part = fs.scan(data).skip(first).head(PAGE).to_arrow()
        assert part["x"].to_pylist() == values[first : first + PAGE]


# Floats


FIRST_NAN = floats("1 2 3 4  nan -50 60 5  nan 70 -80 1  nan nan 3 nan")


def solid_bounds(total: float | None) -> Describe:
    """The true bounds of what is no NaN, and a sum, or none."""

    def describe(run: Sequence[float | None]) -> Facts:
        solid = [v for v in run if v is not None and not math.isnan(v)]
        low, high = (min(solid), max(solid)) if solid else (None, None)
        return {"double_min": low, "double_max": high, "double_sum": total}

    return describe


def float_trap(
    values: Sequence[Any], literals: Sequence[float], describe: Describe | None = None
) -> Trap:
    return Trap(DOUBLE, values, both_ways([*DOUBLE.tests(*literals), is_nan()]), describe)


SOME = (NAN, 2.0, 100.0)
FLOATS = {
    "NaN first, as written": float_trap(FIRST_NAN, (NAN, 0.0, 50.0)),
    "NaN as sum": float_trap(MIXED, SOME, solid_bounds(NAN)),
    "NaN as both bounds and as sum": float_trap(
        MIXED, SOME, always(double_min=NAN, double_max=NAN, double_sum=NAN)
    ),
    "NaN as both bounds, finite sum": float_trap(
        floats("1 4 2 3  1.5 2.5 2 8  -5 -4 null 2  7 8 9 10"),
        SOME,
        always(double_min=NAN, double_max=NAN),
    ),
    "infinite, as written": float_trap(ENDLESS, (INF, -INF, NAN, 5.0)),
    "zeros as written": float_trap(ZEROS_BELOW, (0.0, -0.0)),
}


@traps(FLOATS, "NaN first, as written")
def test_float_bounds_hold_only_where_the_sum_excludes_nan(trap: Trap, level: str) -> None:
    trap.check(crafted_orc, level)


def test_bounds_that_pyarrow_writes_beside_nan_lose_no_row() -> None:
    """Bounds of a stride that begins with NaN are lost when those of the stripe are merged."""
    values = [1.0, 2.0, 3.0, 4.0, NAN, -50.0, 60.0, 5.0] * 2
    file = in_orc(values, DOUBLE)
    assert file.stripe_statistics(COLUMN)[0]["double_min"] == 1.0
    kind = float_kind(pa.float64(), "d")
    check(file.to_bytes(), values, both_ways([*kind.tests(-50.0, 60.0, 0.0, 5.0), is_nan()]))


# Strings


def as_type(kind: int, length: int) -> Change:
    """Make `x` a varchar or a char."""

    def change(types: list[Message]) -> list[Message]:
        types[COLUMN][KIND] = [kind]
        types[COLUMN][4] = [length]
        return types

    return lambda file: file.set_types(change)


@levels
@pytest.mark.parametrize("kind", [VARCHAR, CHAR], ids=["varchar", "char"])
def test_bounds_of_chars_prove_as_those_of_strings(kind: int, level: str) -> None:
    values = ["ba", "bb", "bc", "bd", "da", "db", "dc", "dd", "fa", "fb", "fc", "fd"] * 2
    values.sort()
    data = crafted_orc(values, STRING, level, change=as_type(kind, 2))
    found = read(data)["x"].to_pylist()
    check(data, found, both_ways([*every_test("bb", "e", "fd"), begins("d")]))
    with fs.open(data) as file:
        assert len(file.prune(X < "c").indices()) == 8


# Decimals


DECIMAL = KINDS["decimal in INT64"]  # steps of 12345678.9012


def decimal_texts(form: Callable[[Decimal], str]) -> Describe:
    return lambda run: {"decimal_min": form(min(run)), "decimal_max": form(max(run))}


FORMS: Mapping[str, Callable[[Decimal], str]] = {
    "plain": lambda value: f"{value:f}",
    "trimmed": lambda value: f"{value.normalize():f}",
    "with more digits": lambda value: f"{value:.9f}",
    "with an exponent": lambda value: f"{value:E}",
}


@levels
@tiers("form", FORMS, ["trimmed"])
def test_bounds_of_decimals_are_compared_as_numbers(form: str, level: str) -> None:
    values = DECIMAL.spread()
    data = crafted_orc(values, DECIMAL, level, decimal_texts(FORMS[form]))
    check(data, values, both_ways(DECIMAL.tests(*DECIMAL.gaps(level), DECIMAL.at(24))))
    if form in ("plain", "trimmed"):
        check_proven(data, values, DECIMAL.tests(*DECIMAL.gaps(level)), level)


@levels
@tiers(
    "text",
    ["", " ", "abc", "NaN", "sNaN", "Infinity", "-", "1.2.3", "0x10", "1e999999999"],
    ["", "NaN", "1.2.3", "1e999999999"],
)
def test_texts_that_are_no_decimals_prove_nothing(text: str, level: str) -> None:
    values = DECIMAL.spread()
    for bounds in ((text, text), (None, text)):
        given = zip(("decimal_min", "decimal_max"), bounds, strict=True)
        describe = always(**{name: value for name, value in given if value is not None})
        Trap(DECIMAL, values, deceived(DECIMAL), describe).check(crafted_orc, level)


@levels
def test_bytes_that_are_no_text_are_no_decimal(level: str) -> None:
    describe = always(decimal_min=b"\xff\xfe", decimal_max=b"\xff\xfe\xff")
    Trap(DECIMAL, DECIMAL.spread(), [*deceived(DECIMAL), is_null()], describe).check(
        crafted_orc, level
    )


# Timestamps


START = datetime(2020, 1, 1)
CLOCK = Kind(pa.timestamp("ns"), lambda i: START + timedelta(days=i))
INSTANT = Kind(pa.timestamp("ns", "UTC"), lambda i: (START + timedelta(days=i)).replace(tzinfo=UTC))
clocks = pytest.mark.parametrize("kind", [CLOCK, INSTANT], ids=["wall clock", "instant"])


@levels
@clocks
def test_local_bounds_of_timestamps_prove_nothing(kind: Kind, level: str) -> None:
    low, high = milliseconds(kind.at(44)), milliseconds(kind.at(46))
    local = {"local_min": low, "local_max": high}
    gone = {"utc_min": None, "utc_max": None, "min_nanos": None, "max_nanos": None}
    Trap(kind, kind.spread(), deceived(kind), always(**gone, **local)).check(crafted_orc, level)


@levels
@clocks
def test_local_bounds_do_not_replace_the_others(kind: Kind, level: str) -> None:
    local = {"local_min": milliseconds(kind.at(44)), "local_max": milliseconds(kind.at(46))}
    Trap(kind, kind.spread(), deceived(kind), always(**local)).check(crafted_orc, level)


def in_milliseconds(*, to_zero: bool, nanos: int | None) -> Describe:
    """Bounds in whole milliseconds, as writers cut them; perhaps with nanoseconds of no use."""

    def cut(value: datetime) -> int:
        number = microseconds(value)
        return -(-number // 1_000) if to_zero and number < 0 else number // 1_000

    def describe(run: Sequence[datetime]) -> Facts:
        bounds = {"utc_min": cut(min(run)), "utc_max": cut(max(run))}
        return {**bounds, "min_nanos": nanos, "max_nanos": nanos}

    return describe


@levels
@clocks
@pytest.mark.parametrize(
    ("year", "to_zero"), [(2020, False), (1955, False), (1955, True)], ids=["now", "old", "to zero"]
)
@pytest.mark.parametrize(
    "nanos",
    [
        pytest.param(None, id="no nanos", marks=pytest.mark.slow),
        pytest.param(2**64 - 500_000, id="nonsense"),
    ],
)
def test_bounds_of_timestamps_are_a_millisecond_wide(
    nanos: int | None, year: int, to_zero: bool, kind: Kind, level: str
) -> None:
    start = kind.at(0).replace(year=year)
    step = timedelta(microseconds=251)
    values = [start + i * step for i in range(16)]
    edges = [start - step, *(values[i] for i in (3, 4, 8)), values[-1] + step]
    data = crafted_orc(values, kind, level, in_milliseconds(to_zero=to_zero, nanos=nanos))
    check(data, values, [compared(test, edge) for edge in edges for test in ("==", ">", "<")])


@levels
@clocks
def test_bounds_of_timestamps_rule_out_what_is_further_off(kind: Kind, level: str) -> None:
    values, predicates = kind.spread(), kind.tests(*kind.gaps(level))
    check_proven(crafted_orc(values, kind, level), values, predicates, level, exact=False)
