"""What ORC's indexes may prove, and what not: files made so that one step too far loses a row.

Files have columns `row` and `x` in strides of four rows and stripes of eight. What is said of a
run of values is crafted: in the metadata for stripes, in the row index for strides. Every predicate
is held against plain Python with SQL's three-valued logic.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.formats.parquet.test_traps import (
    BLOCK,
    GAPPED,
    GAPPED_TESTS,
    KINDS,
    LISTS,
    PAGE,
    RUNS,
    STRUCTS,
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
    folded,
    is_nan,
    is_not_null,
    is_null,
    map_test,
    one_of,
    rows_of,
    runs_of,
    same,
)
from tests.support import orc_craft
from tests.support.orc_craft import (
    BLOOM_FILTER,
    BLOOM_FILTER_UTF8,
    KIND,
    ROW_INDEX,
    Crafted,
    Message,
    encoded,
    parsed,
    read,
    written_at_once,
)

Facts = Mapping[str, Any] | None
Describe = Callable[[Sequence[Any]], Facts]
Change = Callable[[Crafted], object]

NAN, INF = math.nan, math.inf
COLUMN = 2  # of `x`: the root is 0, `row` is 1
INT, STRING, DOUBLE = KINDS["int32"], KINDS["string"], KINDS["float64"]
BOOLEAN, BINARY = Kind(pa.bool_()), KINDS["binary"]
VARCHAR, CHAR = 16, 17
NAMES = (
    *("int8", "int16", "int32", "int64", "float32", "float64", "date", "string"),
    *("timestamp in ms", "timestamp in us", "timestamp in ns"),
    *("decimal in INT32", "decimal in INT64", "decimal in FLBA"),
)

pytestmark = pytest.mark.slow
FEW = ("int32", "float64", "string")


def few_of(argument: str, names: Iterable[str], fast: Sequence[str]) -> pytest.MarkDecorator:
    """Parameters, of which all but a few are slow."""
    marks = {name: () if name in fast else (pytest.mark.slow,) for name in names}
    return pytest.mark.parametrize(
        argument, [pytest.param(name, marks=marks[name]) for name in marks]
    )


kinds = few_of("name", NAMES, FEW)
levels = few_of("level", RUNS, ["page"])
BOUNDS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "int"),
    **{"float32": "double", "float64": "double", "date": "date", "string": "string"},
    **dict.fromkeys(("timestamp in ms", "timestamp in us", "timestamp in ns"), "utc"),
    **dict.fromkeys(("decimal in INT32", "decimal in INT64", "decimal in FLBA"), "decimal"),
}
GROUP = {"utc": "timestamp"}


# Files


def written(values: Sequence[Any], kind: Kind, **options: Any) -> Crafted:
    table = pa.table({"row": range(len(values)), "x": pa.array(values, kind.type)})
    return Crafted(orc_craft.written(table, BLOCK, row_index_stride=PAGE, **options))


def crafted(
    values: Sequence[Any],
    kind: Kind,
    level: str,
    describe: Describe = lambda run: {},
    change: Change = same,
    column: int = COLUMN,
    **options: Any,
) -> bytes:
    """A file that has statistics of the column at one level only, as described there."""
    file = written(values, kind, **options)
    stripes = runs_of(values, BLOCK)
    file.set_file_statistics(column, None)
    if level == "block":
        file.set_stripe_statistics(column, [describe(stripe) for stripe in stripes])
        file.set_strides(column, [[None for _ in runs_of(s, PAGE)] for s in stripes])
    else:
        file.set_stripe_statistics(column, [None for _ in stripes])
        file.set_strides(column, [[describe(run) for run in runs_of(s, PAGE)] for s in stripes])
    change(file)
    data = file.to_bytes()
    assert read(data)["row"].to_pylist() == list(range(len(values)))
    return data


def always(**facts: Any) -> Describe:
    return lambda run: facts


def bound_facts(name: str, low: Any, high: Any) -> dict[str, Any]:
    """Bounds as the statistics of the type write them; a sum of floats excludes NaN."""
    prefix = BOUNDS[name]
    forms: dict[str, Callable[[Any], Any]] = {
        "utc": milliseconds,
        "date": lambda day: day.toordinal() - 719_163,
        "decimal": str,
    }
    stored = forms.get(prefix, same)
    facts = {f"{prefix}_min": stored(low), f"{prefix}_max": stored(high)}
    return {**facts, "double_sum": 1.0} if prefix == "double" else facts


@dataclass(frozen=True)
class Trap:
    """Values, what an index says of them, and the tests that this might lead astray."""

    kind: Kind
    values: Sequence[Any]
    tests: Sequence[Predicate]
    describe: Describe = lambda run: {}
    change: Change = same

    def check(self, level: str, **options: Any) -> None:
        data = crafted(self.values, self.kind, level, self.describe, self.change, **options)
        check(data, self.values, self.tests)


def traps(cases: Mapping[str, Trap], *fast: str) -> pytest.MarkDecorator:
    """Each trap at each level; all but a few of those for strides are slow."""
    parameters = [
        pytest.param(
            *(trap, level),
            id=f"{name}, {level}",
            marks=() if name in fast and level == "page" else pytest.mark.slow,
        )
        for name, trap in cases.items()
        for level in RUNS
    ]
    return pytest.mark.parametrize(("trap", "level"), parameters)


# Bounds that hold


@levels
@kinds
def test_bounds_prove_in_the_order_of_the_column(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    predicates = kind.tests(*kind.gaps(level))
    edges = [("<=", 8), (">", 8), ("<", 12), (">=", 12)]
    if BOUNDS[name] != "utc":
        predicates += [compared(test, kind.at(i), kind.order) for test, i in edges]
    if name == "string":
        predicates += [begins(prefix) for prefix in ("\U0010ffff", *kind.gaps(level))]
    # Bounds that are wider than the values need not prove that all rows match: milliseconds, and
    # doubles that were measured before they became floats.
    exact = name != "float32" and BOUNDS[name] != "utc"
    check_proven(crafted(values, kind, level), values, both_ways(predicates), level, exact)


@levels
@few_of("name", NAMES, ["string"])
def test_bounds_lose_no_row_within_them(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    values[1] = values[11] = values[12] = None
    check(crafted(values, kind, level), values, kind.tests(kind.at(36), *kind.odd))


@levels
def test_equal_bounds_prove_equality(level: str) -> None:
    for kind, one, two in ((INT, 1, 2), (STRING, "one", "two")):
        values = [one] * 8 + [two] * 8
        predicates = both_ways(every_test(one, two))
        check_proven(crafted(values, kind, level), values, predicates, level)


@levels
def test_counts_of_booleans_prove(level: str) -> None:
    predicates = both_ways(
        [
            *(compared(name, value) for name in ("==", "!=") for value in (True, False)),
            *(one_of(values) for values in ([True], [False, None], [True, False])),
            is_null(),
        ]
    )
    pure = [True] * 8 + [False] * 8 + [None] * 8
    check_proven(crafted(pure, BOOLEAN, level), pure, predicates, level, exact=False)
    mixed = [True] * 4 + [False] * 4 + [True, False, None, True] + [None] * 4
    for describe in (always(), always(bool=None), always(bool=None, values=None)):
        check(crafted(mixed, BOOLEAN, level, describe), mixed, predicates)


@levels
def test_the_length_of_binaries_proves_nothing(level: str) -> None:
    values = [bytes([i, 200 - i]) for i in range(16)]
    predicates = every_test(values[3], b"\xff")
    for describe in (always(), always(binary_sum=0), always(binary=None)):
        check(crafted(values, BINARY, level, describe), values, predicates)


# Statistics that are not there


ABSENT: Mapping[str, Describe] = {
    "no statistics": lambda run: None,
    "no count of values": always(values=None),
    "no count, no word of nulls": always(values=None, has_null=None),
    "no word of nulls": always(has_null=None),
}


@levels
@few_of("name", NAMES, ["int32"])
def test_what_is_not_said_proves_nothing(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    values[2] = values[9] = None
    values[4:8] = [None] * 4
    predicates = [*deceived(kind), is_null(), is_not_null()]
    group = {GROUP.get(BOUNDS[name], BOUNDS[name]): None}
    for describe in (*ABSENT.values(), always(**group), always(**group, values=None)):
        check(crafted(values, kind, level, describe), values, predicates)


def test_files_without_any_statistics_are_read() -> None:
    def emptied(file: Crafted) -> None:
        file.drop_stripe_statistics()
        file.footer.pop(7)

    data = crafted(GAPPED, INT, "block", change=emptied)
    check(data, GAPPED, GAPPED_TESTS)


def test_statistics_of_fewer_stripes_than_there_are_prove_nothing_of_the_rest() -> None:
    def shortened(file: Crafted) -> None:
        file.metadata[1] = file.metadata[1][:1]

    values = INT.spread()
    data = crafted(values, INT, "block", change=shortened)
    check_or_refuse(data, values, INT.tests(*INT.gaps("block")))


def test_statistics_of_fewer_columns_than_there_are_prove_nothing_of_the_rest() -> None:
    def narrowed(file: Crafted) -> None:
        file.metadata[1] = [raw[: 2 + raw[1]] for raw in file.metadata[1]]

    values = INT.spread()
    data = crafted(values, INT, "block", change=narrowed)
    check_or_refuse(data, values, INT.tests(*INT.gaps("block")))


@pytest.mark.parametrize("count", [0, 1])
def test_a_row_index_with_too_few_entries_loses_no_row(count: int) -> None:
    values = INT.spread()
    data = crafted(values, INT, "page", change=lambda file: file.keep_entries(COLUMN, count))
    check_or_refuse(data, values, INT.tests(*INT.gaps("page")))


@pytest.mark.parametrize("bound", ["min", "max"])
@few_of("name", ["int64", "float64", "string", "date", "decimal in INT64"], ["int64"])
@levels
def test_one_bound_says_nothing_of_the_other_side(name: str, bound: str, level: str) -> None:
    kind = KINDS[name]
    predicates = both_ways(kind.tests(*(kind.at(i) for i in (0, 10, 24, 40))))
    Trap(kind, kind.spread(), predicates, always(**{f"{BOUNDS[name]}_{bound}": None})).check(level)


@levels
@kinds
def test_a_minimum_above_the_maximum_proves_nothing(name: str, level: str) -> None:
    kind = KINDS[name]
    describe = always(**bound_facts(name, kind.at(46), kind.at(44)))
    Trap(kind, kind.spread(), deceived(kind), describe).check(level)


@levels
@pytest.mark.parametrize("name", ["int32", "string", "date", "float64"])
def test_bounds_in_the_message_of_another_type_prove_nothing(name: str, level: str) -> None:
    """An int says it is a double, and so on: such a message is not meant for the column."""
    kind = KINDS[name]
    other = {"int32": "float64", "string": "decimal in INT32", "date": "int32", "float64": "int32"}
    facts = bound_facts(other[name], KINDS[other[name]].at(44), KINDS[other[name]].at(46))
    describe = always(**{BOUNDS[name]: None}, **facts)
    Trap(kind, kind.spread(), deceived(kind), describe).check(level)


# Nulls


NOTHING = [None] * 8 + [1, 2, None, 3] + [None] * 4


@levels
@pytest.mark.parametrize("has_null", [None, False], ids=["unsaid", "denied"])
@pytest.mark.parametrize("values", [GAPPED, NOTHING], ids=["some", "most"])
def test_fewer_values_than_rows_are_nulls_whatever_is_said(
    values: list[int | None], has_null: bool | None, level: str
) -> None:
    Trap(INT, values, GAPPED_TESTS, always(has_null=has_null)).check(level)


@levels
def test_nulls_are_proven_by_the_counts(level: str) -> None:
    values = [None] * 8 + [1, 2, 3, 4, 5, 6, 7, 8] + [None] * 8
    data = crafted(values, INT, level)
    check_proven(data, values, both_ways(every_test(0, 9)), level)


@levels
def test_more_values_than_rows_are_an_error_or_prove_nothing(level: str) -> None:
    data = crafted(GAPPED, INT, level, always(values=1_000, has_null=False))
    check_or_refuse(data, GAPPED, GAPPED_TESTS)


@levels
@pytest.mark.parametrize(
    "told",
    [
        pytest.param({}, id="as written"),
        pytest.param({"has_null": None}, id="unsaid", marks=pytest.mark.slow),
        pytest.param({"has_null": False}, id="denied", marks=pytest.mark.slow),
    ],
)
def test_fields_of_null_structs_are_not_stored_and_yet_null(
    told: Mapping[str, Any], level: str
) -> None:
    """The field's own statistics know of no null where its struct is null."""
    kind = Kind(pa.struct([("a", pa.int32())]))
    fields = [
        Predicate(test.label, test.expression, lambda v, t=test: t.holds(v and v["a"]))  # type: ignore[misc]
        for test in every_test(0, 2, 9, subject=col("x.a"))
    ]
    whole = [None, None, {"a": 1}, {"a": 2}, *[{"a": i} for i in range(3, 15)]]
    for values in (STRUCTS, whole):
        data = crafted(values, kind, level, always(**told), column=3)
        check(data, values, both_ways([*fields, is_null(), is_not_null()]))


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


@levels
@pytest.mark.slow
@pytest.mark.parametrize("fold", ["any", "all"])
def test_counts_below_a_list_or_a_map_are_of_elements(fold: str, level: str) -> None:
    lists = Kind(pa.list_(pa.int32()))
    predicates = [*folded(fold, 0, 10), is_null(), is_not_null()]
    predicates = both_ways(predicates) if fold == "all" else predicates
    for told in ({}, {"values": BLOCK, "has_null": False}):
        check(crafted(LISTS, lists, level, always(**told), column=3), LISTS, predicates)
    maps = Kind(pa.map_(pa.string(), pa.int32()))
    pairs = [None if v is None else [(str(i), e) for i, e in enumerate(v)] for v in LISTS]
    of_values = [*map(map_test, folded(fold, 0, 10, path="x.value")), is_null(), is_not_null()]
    check(crafted(pairs, maps, level, column=4), pairs, both_ways(of_values))


@levels
def test_bounds_below_a_list_rule_out_any(level: str) -> None:
    values = [[i, i + 1] for i in (1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34)]
    gaps = (0, 20, 40) if level == "block" else (0, 10, 20, 30, 40)
    predicates = [test for test in folded("any", *gaps) if "null" not in test.label]
    data = crafted(values, Kind(pa.list_(pa.int32())), level, column=3)
    check_proven(data, values, predicates, level, exact=False)


# Floats

MIXED = floats("1 nan 2 3  1.5 2.5 2 nan  -5 -4 null nan  7 8 9 10")
ONLY_NAN = floats("nan nan nan nan  nan nan nan nan  nan null nan nan  1 1 1 1")
FIRST_NAN = floats("1 2 3 4  nan -50 60 5  nan 70 -80 1  nan nan 3 nan")
ENDLESS = floats("-inf 1 nan inf  inf inf inf inf  -inf -inf -inf -inf  5 nan null 6")
ZEROS_BELOW = floats("-0.0 1 2 0.0  -0.0 3 3 3  0.0 0.0 0.0 0.0  -0.0 -0.0 -0.0 -0.0")
ZEROS_ABOVE = floats("0.0 -1 -2 -0.0  0.0 -3 -3 -3  -0.0 -0.0 -0.0 -0.0  0.0 0.0 0.0 0.0")
TENTHS = floats("0.1 0.1 0.1 0.1  0.1 0.2 0.3 0.4  -0.1 -0.1 -0.1 -0.1  -0.1 -0.1 -0.1 -0.1")


def solid_bounds(total: float | None) -> Describe:
    """The true bounds of what is no NaN, and a sum, or none."""

    def describe(run: Sequence[float | None]) -> Facts:
        solid = [v for v in run if v is not None and not math.isnan(v)]
        low, high = (min(solid), max(solid)) if solid else (None, None)
        return {"double_min": low, "double_max": high, "double_sum": total}

    return describe


def zero_as_bound(zero: float) -> Describe:
    """True bounds, but for the sign of a zero."""

    def describe(run: Sequence[float]) -> Facts:
        low, high = (bound or zero for bound in (min(run), max(run)))
        return {"double_min": low, "double_max": high, "double_sum": 1.0}

    return describe


def float_traps(kind: Kind) -> dict[str, Trap]:
    def trap(
        values: Sequence[Any], literals: Sequence[float], describe: Describe = lambda run: {}
    ) -> Trap:
        return Trap(kind, values, both_ways([*kind.tests(*literals), is_nan()]), describe)

    some, zeros = (NAN, 2.0, 100.0), (0, -0.0)
    as_nan = {"double_sum": None}
    return {
        "as written": trap(MIXED, some),
        "NaN first, as written": trap(FIRST_NAN, (NAN, 0.0, 50.0)),
        "NaN as sum": trap(MIXED, some, solid_bounds(NAN)),
        "sum absent": trap(MIXED, some, solid_bounds(None)),
        "NaN as both bounds": trap(
            MIXED, some, always(double_min=NAN, double_max=NAN, double_sum=NAN)
        ),
        "NaN as both bounds, finite sum": trap(
            floats("1 4 2 3  1.5 2.5 2 8  -5 -4 null 2  7 8 9 10"),
            some,
            always(double_min=NAN, double_max=NAN),
        ),
        "NaN as min": trap(MIXED, some, always(double_min=NAN, **as_nan)),
        "NaN as max": trap(MIXED, some, always(double_max=NAN, **as_nan)),
        "only NaN": trap(ONLY_NAN, (NAN, 1.0, 2.0)),
        "only NaN, no bounds": trap(ONLY_NAN, (NAN, 1.0, 2.0), solid_bounds(None)),
        "infinite": trap(ENDLESS, (INF, -INF, NAN, 5.0)),
        "infinite, bounds but no sum": trap(ENDLESS, (INF, -INF, NAN, 5.0), solid_bounds(None)),
        "+0.0 as min, -0.0 inside": trap(ZEROS_BELOW, zeros, zero_as_bound(0.0)),
        "-0.0 as max, +0.0 inside": trap(ZEROS_ABOVE, zeros, zero_as_bound(-0.0)),
        "zeros as written": trap(ZEROS_BELOW, zeros),
        "literal of another width": trap(TENTHS, (0.1, -0.1, 0.2)),
        "bounds of another width": trap(TENTHS, (0.1, -0.1, 0.2), solid_bounds(1.0)),
    }


FLOATS = {
    f"{name}: {label}": trap
    for name in ("float32", "float64")
    for label, trap in float_traps(KINDS[name]).items()
    if name == "float64" or "width" in label or "written" in label
}


@traps(
    FLOATS,
    "float32: bounds of another width",
    "float64: NaN first, as written",
    "float64: sum absent",
    "float64: +0.0 as min, -0.0 inside",
)
def test_float_bounds_hold_only_where_the_sum_excludes_nan(trap: Trap, level: str) -> None:
    trap.check(level)


@levels
def test_a_finite_sum_proves_that_there_is_no_nan(level: str) -> None:
    values = DOUBLE.spread()
    data = crafted(values, DOUBLE, level)
    check_proven(data, values, both_ways([is_nan(), *DOUBLE.tests(NAN)]), level)


def test_bounds_that_pyarrow_writes_beside_nan_lose_no_row() -> None:
    """Bounds of a stride that begins with NaN are lost when those of the stripe are merged."""
    values = [1.0, 2.0, 3.0, 4.0, NAN, -50.0, 60.0, 5.0] * 2
    file = written(values, DOUBLE)
    assert file.stripe_statistics(COLUMN)[0]["double_min"] == 1.0
    kind = float_kind(pa.float64(), "d")
    check(file.to_bytes(), values, both_ways([*kind.tests(-50.0, 60.0, 0.0, 5.0), is_nan()]))


# Strings

LONG = "p" * 70
LONG_VALUES = [LONG + end for end in "abcdefgh"] + ["p" + end for end in "abcd"] + [LONG] * 4
LONG_TESTS = both_ways(
    [*every_test(LONG, LONG + "b", "q"), *map(begins, ("", "p", "pa", LONG, LONG + "a", "q"))]
)


def cut_to(size: int, low: bool = True, high: bool = True) -> Describe:
    """Bounds of at most so many bytes, the upper one counted up in its last byte."""

    def describe(run: Sequence[str]) -> Facts:
        facts: dict[str, Any] = {}
        if low:
            facts |= {"string_min": None, "string_lower": min(run)[:size]}
        if high:
            top = max(run)
            cut = top if len(top) <= size else top[: size - 1] + chr(ord(top[size - 1]) + 1)
            facts |= {"string_max": None, "string_upper": cut}
        return facts

    return describe


TRUNCATED = {
    **{f"{size} bytes": Trap(STRING, LONG_VALUES, LONG_TESTS, cut_to(size)) for size in (1, 4, 64)},
    "only the lower": Trap(STRING, LONG_VALUES, LONG_TESTS, cut_to(4, high=False)),
    "only the upper": Trap(STRING, LONG_VALUES, LONG_TESTS, cut_to(4, low=False)),
    "one value as both": Trap(
        STRING,
        [LONG + "a"] * 8 + ["pp"] * 8,
        both_ways([*every_test(LONG, LONG + "a", "pp"), begins("pp"), begins(LONG)]),
        cut_to(2),
    ),
    "within a character": Trap(
        STRING,
        ["é" * 40 + end for end in "abcdefgh"] + ["é" * 31 + end for end in "wxyz€é😀\uffff"],
        both_ways([*every_test("é" * 31, "é" * 40 + "c"), begins("é" * 31)]),
        lambda run: {
            **{"string_min": None, "string_lower": min(map(str.encode, run))[:61]},
            **{"string_max": None, "string_upper": max(map(str.encode, run))[:61] + b"\xff"},
        },
    ),
}


@traps(TRUNCATED, "4 bytes", "one value as both")
def test_truncated_bounds_are_no_values(trap: Trap, level: str) -> None:
    trap.check(level)


@levels
def test_equal_truncated_bounds_prove_no_equality(level: str) -> None:
    """The upper one is no bound of the values: who decodes them may say so."""
    values = [LONG + "a"] * 8 + [LONG + "b"] * 8
    told = {"string_min": None, "string_max": None, "string_lower": LONG, "string_upper": LONG}
    data = crafted(values, STRING, level, always(**told))
    equalities = [compared("==", LONG), compared("!=", LONG), one_of([LONG]), one_of([LONG, None])]
    check_or_refuse(data, values, both_ways(equalities))


@levels
def test_truncated_bounds_rule_out(level: str) -> None:
    values = [letter * 70 + str(i) for letter in "bdfh" for i in range(4)]
    literals = ("a" * 70, "e" * 70, "e", "i", *(["c" * 70] if level == "page" else []))
    predicates = both_ways([*every_test(*literals), *map(begins, literals)])
    data = crafted(values, STRING, level, cut_to(8))
    check_proven(data, values, predicates, level, exact=False)


@levels
def test_strings_compare_as_unsigned_bytes(level: str) -> None:
    """Java's order of UTF-16 has surrogates below U+E000."""
    values = ["\U0001f600", "\uff5e", "\ue000", "a", "\x7f", "\x80", "é", "\uffff"] * 2
    predicates = both_ways(every_test("\uff5e", "\U0001f600", "\U0010ffff", "\x80"))
    Trap(STRING, values, predicates).check(level)


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
    data = crafted(values, STRING, level, change=as_type(kind, 2))
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
@few_of("form", FORMS, ["trimmed"])
def test_bounds_of_decimals_are_compared_as_numbers(form: str, level: str) -> None:
    values = DECIMAL.spread()
    data = crafted(values, DECIMAL, level, decimal_texts(FORMS[form]))
    check(data, values, both_ways(DECIMAL.tests(*DECIMAL.gaps(level), DECIMAL.at(24))))
    if form in ("plain", "trimmed"):
        check_proven(data, values, DECIMAL.tests(*DECIMAL.gaps(level)), level)


@levels
@few_of(
    "text",
    ["", " ", "abc", "NaN", "sNaN", "Infinity", "-", "1.2.3", "0x10", "1e999999999"],
    ["", "NaN", "1.2.3", "1e999999999"],
)
def test_texts_that_are_no_decimals_prove_nothing(text: str, level: str) -> None:
    values = DECIMAL.spread()
    for bounds in ((text, text), (None, text)):
        given = zip(("decimal_min", "decimal_max"), bounds, strict=True)
        describe = always(**{name: value for name, value in given if value is not None})
        Trap(DECIMAL, values, deceived(DECIMAL), describe).check(level)


@levels
def test_bytes_that_are_no_text_are_no_decimal(level: str) -> None:
    describe = always(decimal_min=b"\xff\xfe", decimal_max=b"\xff\xfe\xff")
    Trap(DECIMAL, DECIMAL.spread(), [*deceived(DECIMAL), is_null()], describe).check(level)


# Timestamps

START = datetime(2020, 1, 1)
CLOCK = Kind(pa.timestamp("ns"), lambda i: START + timedelta(days=i))
INSTANT = Kind(pa.timestamp("ns", "UTC"), lambda i: (START + timedelta(days=i)).replace(tzinfo=UTC))
clocks = pytest.mark.parametrize("kind", [CLOCK, INSTANT], ids=["wall clock", "instant"])


def microseconds(value: datetime) -> int:
    return (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta.resolution


def milliseconds(value: datetime) -> int:
    return microseconds(value) // 1_000


@levels
@clocks
def test_local_bounds_of_timestamps_prove_nothing(kind: Kind, level: str) -> None:
    low, high = milliseconds(kind.at(44)), milliseconds(kind.at(46))
    local = {"local_min": low, "local_max": high}
    gone = {"utc_min": None, "utc_max": None, "min_nanos": None, "max_nanos": None}
    Trap(kind, kind.spread(), deceived(kind), always(**gone, **local)).check(level)


@levels
@clocks
def test_local_bounds_do_not_replace_the_others(kind: Kind, level: str) -> None:
    local = {"local_min": milliseconds(kind.at(44)), "local_max": milliseconds(kind.at(46))}
    Trap(kind, kind.spread(), deceived(kind), always(**local)).check(level)


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
    data = crafted(values, kind, level, in_milliseconds(to_zero=to_zero, nanos=nanos))
    check(data, values, [compared(test, edge) for edge in edges for test in ("==", ">", "<")])


@levels
@clocks
def test_bounds_of_timestamps_rule_out_what_is_further_off(kind: Kind, level: str) -> None:
    values, predicates = kind.spread(), kind.tests(*kind.gaps(level))
    check_proven(crafted(values, kind, level), values, predicates, level, exact=False)


# Bloom filters


def bloomed(values: Sequence[Any], kind: Kind, change: Change = same, **options: Any) -> bytes:
    """A file whose Bloom filters are the only source that could tell values apart."""

    def changed(file: Crafted) -> None:
        file.set_strides(COLUMN, [[None] * len(runs_of(s, PAGE)) for s in runs_of(values, BLOCK)])
        change(file)

    options["bloom_filter_columns"] = [COLUMN]
    return crafted(values, kind, "block", lambda run: None, changed, **options)


def dropped_by(source: str, trace: fs.Trace) -> int:
    return sum(record.dropped for record in trace.pruned if record.source == source)


@few_of("codec", ["uncompressed", "zlib"], ["zlib"])
@few_of("name", [name for name in NAMES if name not in ("int8", "float32")], FEW)
def test_a_bloom_filter_rules_out_what_it_does_not_hold(name: str, codec: str) -> None:
    kind = KINDS[name]
    first = 24 if BOUNDS[name] == "utc" else 0  # behind 1970
    values = [kind.at(first + i) for i in range(0, 32, 2) for _ in range(2)]
    data = bloomed(values, kind, compression=codec)
    tests = [compared("==", kind.at(first + i), kind.order) for i in range(20)]
    check(data, values, tests)
    kept = 0
    with fs.open(data) as file, fs.trace() as trace:
        for test in tests:
            kept += len(file.prune(test.expression).indices())
    assert trace.data_bytes == 0
    if BOUNDS[name] != "utc":
        # Each value is in one stride or in none; five filters in a hundred may be wrong.
        assert kept <= PAGE * (10 + 24)
        assert dropped_by("Bloom filter", trace) > 0


@pytest.mark.parametrize("name", ["int8", "float32"])
def test_bloom_filters_of_tiny_integers_and_of_floats_lose_no_row(name: str) -> None:
    """The C++ writer hashes bytes that it has overwritten, and floats before they are narrowed."""
    kind = KINDS[name]
    values = [kind.at(i) for i in range(16)]
    check(bloomed(values, kind), values, [compared("==", v, kind.order) for v in values])
    check(bloomed(values, kind, empty_and(same)), values, [compared("==", values[3], kind.order)])


def test_an_empty_bloom_filter_is_believed_where_it_may_be() -> None:
    """It lies, and whoever uses it shows that: the other tests rely on that."""
    values = [INT.at(i) for i in range(16)]
    data = bloomed(values, INT, lambda file: file.empty_blooms(COLUMN))
    assert rows_of(fs.scan(data).filter(INT.at(3) == X)) == []
    assert rows_of(fs.scan(data).filter(X.is_in([INT.at(3), INT.at(9)]))) == []
    assert rows_of(fs.scan(data).filter(INT.at(3) != X)) == [i for i in range(16) if i != 3]
    assert rows_of(fs.scan(data).filter(X.is_between(INT.at(3), INT.at(4)))) == [3, 4]


def empty_and(change: Change) -> Change:
    def changed(file: Crafted) -> None:
        file.empty_blooms(COLUMN)
        change(file)

    return changed


def by(writer: int | None, version: str | None) -> Change:
    return empty_and(lambda file: file.set_writer(writer, version))


UNTRUSTED: Mapping[str, Change] = {
    "BLOOM_FILTER": empty_and(lambda file: file.set_bloom_kind(BLOOM_FILTER, COLUMN)),
    "C++ without a version": by(1, None),
    # 1.6.11 and 1.7.0 are on the list of ORC's own readers, too.
    **{
        f"C++ {version}": by(1, version)
        for version in (
            *("1.6.0", "1.6.9", "1.6.10", "1.6.10-SNAPSHOT", "1.5.13", "1.6.11", "1.7.0"),
            "1.7.0-SNAPSHOT",
        )
    },
}


@pytest.mark.parametrize("source", UNTRUSTED)
@few_of("name", ["int32", "string", "float64", "date"], ["string"])
def test_bloom_filters_that_are_not_to_be_trusted_prove_nothing(name: str, source: str) -> None:
    kind = KINDS[name]
    data = bloomed(kind.spread(), kind, UNTRUSTED[source])
    literals = [kind.at(i) for i in (2, 26, 27)]
    tests = [*(compared("==", v, kind.order) for v in literals), one_of(literals, kind.order)]
    check(data, kind.spread(), both_ways(tests))


@pytest.mark.parametrize(
    "writer",
    [(1, "1.6.12"), (1, "1.7.1"), (1, "1.10.0"), (1, "2.0.0"), (0, None), (0, "1.6.3"), (None, "")],
    ids=str,
)
def test_bloom_filters_of_other_writers_are_used(writer: tuple[int | None, str | None]) -> None:
    data = bloomed(INT.spread(), INT, by(*writer))
    assert rows_of(fs.scan(data).filter(INT.at(2) == X)) == []


def test_the_corpus_file_with_bad_bloom_filters_loses_no_row(corpus: Path) -> None:
    path = corpus / "orc" / "bad_bloom_filter_1.6.0.orc"
    table = read(path.read_bytes())
    for name in table.column_names:
        values = table[name].to_pylist()
        for value in {v for v in values if v is not None}:
            rows = [row for row, other in enumerate(values) if other == value]
            assert rows_of(fs.scan(path).filter(col(name) == value)) == rows
            assert rows_of(fs.scan(path).filter(col(name).is_in([value]))) == rows


@clocks
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(timedelta(days=1), id="days", marks=pytest.mark.slow),
        pytest.param(timedelta(microseconds=300_333), id="microseconds"),
    ],
)
def test_timestamps_before_1970_are_not_looked_up(kind: Kind, step: timedelta) -> None:
    """Writers differ in how they cut them to milliseconds."""
    start = kind.at(0).replace(year=1970) - 12 * step
    values = [start + i * step for i in range(16)]
    before = [*(compared("==", value) for value in values[:12]), one_of(values[:3])]
    check(bloomed(values, kind, empty_and(same)), values, both_ways(before))
    check(bloomed(values, kind), values, [compared("==", value) for value in values])
    mixed = one_of([values[5], values[14]])
    check(bloomed(values, kind), values, [mixed])


@clocks
def test_timestamps_that_share_a_millisecond_are_told_apart(kind: Kind) -> None:
    values = [kind.at(i // 4) + timedelta(microseconds=i % 4) for i in range(16)]
    literals = [*values, kind.at(0) + timedelta(microseconds=7), kind.at(9)]
    check(bloomed(values, kind), values, [compared("==", value) for value in literals])


def test_a_nan_is_not_looked_up() -> None:
    values = floats("nan 1 2 3  4 nan 5 6  7 8 9 10  -nan 11 12 13")
    order = DOUBLE.order
    tests = [compared("==", NAN, order), one_of([NAN], order), one_of([NAN, 99.0], order), is_nan()]
    for change in (same, empty_and(same)):
        data = bloomed(values, DOUBLE, change)
        check(data, values, both_ways(tests))


def test_each_zero_is_found() -> None:
    values = floats("0.0 1 2 3  -0.0 4 5 6  7 8 9 10  -0.0 0.0 12 13")
    tests = [compared("==", zero, DOUBLE.order) for zero in (0.0, -0.0, 0)]
    tests += [one_of([0.0], DOUBLE.order), one_of([-0.0, 5.0], DOUBLE.order)]
    check(bloomed(values, DOUBLE), values, both_ways(tests))


@pytest.mark.parametrize("name", ["int16", "int64", "float64", "decimal in FLBA", "date"])
def test_literals_of_another_type_are_looked_up_as_the_value_that_is_stored(name: str) -> None:
    kind = KINDS[name] if name != "float64" else Kind(pa.float64(), float, order=DOUBLE.order)
    values = [kind.at(i) for i in range(16)]
    literals: list[Any] = values[::3]
    if name in ("int16", "int64"):
        literals += [Decimal(values[5]), float(values[0]), 0.5, 2**70]
    elif name == "float64":
        literals += [3, Decimal(4)]
    elif "decimal" in name:
        values[3], values[7] = Decimal("5.00000"), Decimal("-0.5")
        literals = [*values[::3], 5, 5.0, -0.5, Decimal("5"), 10**30]
    check(bloomed(values, kind), values, [compared("==", value) for value in literals])


def test_empty_and_long_strings_are_found() -> None:
    values = ["", "a", "é", "\x00", "x" * 7, "x" * 8, "x" * 9, "x" * 70]
    values += ["😀" * 3, "a\x00", "\x7f\x80", "p" * 16, "p" * 17, "p" * 15, "q", "\uffff"]
    tests = [compared("==", value) for value in (*values, "b", "x" * 6)]
    for threshold in (0.0, 1.0):
        data = bloomed(values, STRING, dictionary_key_size_threshold=threshold)
        check(data, values, both_ways(tests))


def test_nulls_do_not_disturb_bloom_filters() -> None:
    values = [None, 1, None, 3, None, None, None, None, 5, 6, None, 7, 8, 9, 10, None]
    tests = both_ways([*(compared("==", i) for i in (1, 3, 4, 10)), one_of([3, None]), is_null()])
    check(bloomed(values, INT), values, tests)


def test_bloom_filters_below_lists_and_maps() -> None:
    data = crafted(LISTS, Kind(pa.list_(pa.int32())), "page", column=3, bloom_filter_columns=[3])
    check(data, LISTS, both_ways([*folded("any", 7), *folded("all", 9)]))


def filters_changed(change: Callable[[list[Message]], list[Message]]) -> Change:
    def changed(body: bytes) -> bytes:
        made = change([parsed(raw) for raw in parsed(body)[1]])
        return encoded({1: [encoded(each) for each in made]})

    return lambda file: file.change_streams(BLOOM_FILTER_UTF8, COLUMN, changed)


ODD_FILTERS: Mapping[str, Callable[[list[Message]], list[Message]]] = {
    "no filters": lambda filters: [],
    "a filter too few": lambda filters: filters[:-1],
    "no bits": lambda filters: [{**each, 3: [b""]} for each in filters],
    "bits absent": lambda filters: [{1: each[1]} for each in filters],
    "no hash functions": lambda filters: [{**each, 1: [0]} for each in filters],
    "hash functions absent": lambda filters: [{3: each[3]} for each in filters],
    "a billion hash functions": lambda filters: [{**each, 1: [10**9]} for each in filters],
    "half a word of bits": lambda filters: [{**each, 3: [each[3][0][:-4]]} for each in filters],
}


@pytest.mark.parametrize("name", ODD_FILTERS)
def test_odd_bloom_filters_are_an_error_or_prove_nothing(name: str) -> None:
    values = [INT.at(i) for i in range(16)]
    data = bloomed(values, INT, filters_changed(ODD_FILTERS[name]))
    check_or_refuse(data, values, [compared("==", value) for value in values[::3]])


# Positions

STRIDE, STRIDES = 100, 20
ROWS = STRIDE * STRIDES


def positions_table() -> pa.Table:
    return pa.table(
        {
            "row": range(ROWS),
            "jump": [i * i * 7_919 % 10_007 for i in range(ROWS)],
            "flag": [i * i % 7 < 3 for i in range(ROWS)],
            "real": [math.sin(i) for i in range(ROWS)],
            "text": [f"word {i * 31 % 977}" for i in range(ROWS)],
            "gap": [None if i % 5 < 2 else i for i in range(ROWS)],
            "list": [list(range(i % 4)) for i in range(ROWS)],
            "tiny": pa.array([i * i % 101 for i in range(ROWS)], pa.int8()),
            "at": pa.array([i * 86_399_999_999 for i in range(ROWS)], pa.timestamp("ns")),
            "price": pa.array([Decimal(i * i) / 4 for i in range(ROWS)], pa.decimal128(20, 2)),
        }
    )


NUMBERS = {"row": 1, "jump": 2, "flag": 3, "real": 4, "text": 5, "gap": 6, "list": 7}
NUMBERS |= {"list.element": 8, "tiny": 9, "at": 10, "price": 11}
Move = Callable[[list[list[int]], int], list[int]]


def one_more(place: int, by: int = 1) -> Move:
    """Another number at a place, counted from the end."""

    def move(positions: list[list[int]], number: int) -> list[int]:
        changed = list(positions[number])
        changed[place] += by
        return changed

    return move


MOVES: Mapping[str, Move] = {
    "of the stride before": lambda positions, number: positions[number - 1],
    "of the stride behind": lambda positions, number: positions[number + 1],
    "of the beginning": lambda positions, number: positions[0],
    "one more at the end": one_more(-1),
    "one less at the end": one_more(-1, -1),
    "three more at the end": one_more(-1, 3),
    "one more in front": one_more(0),
    "beyond the stream": lambda positions, number: [p + 10**6 for p in positions[number]],
    "far beyond": lambda positions, number: [2**63 - 1 for _ in positions[number]],
    "too few": lambda positions, number: positions[number][:-1],
    "none": lambda positions, number: [],
    "too many": lambda positions, number: [*positions[number], 0, 0],
}


def misplaced(column: int, move: Move, strides: Sequence[int], codec: str) -> bytes:
    """A file in which some strides of a column begin elsewhere, says its row index."""
    file = Crafted(written_at_once(positions_table(), row_index_stride=STRIDE, compression=codec))
    (entries,) = file.strides(column)
    before = [entry["positions"] for entry in entries]
    changes: list[dict[str, Any]] = [{} for _ in before]
    for number in strides:
        wrong = [max(0, position) for position in move(before, number)]
        changes[number] = {"positions": wrong}
    data = file.set_strides(column, [changes]).to_bytes()
    assert read(data).equals(positions_table())
    return data


def window_checks(data: bytes, name: str, stride: int) -> list[Any]:
    """Windows and filters around a stride: what they give must be so; gives the fallbacks."""
    table = positions_table()
    fallbacks = []
    for first in (stride - 1, stride):
        scan = fs.scan(data).skip(first * STRIDE + 3).head(STRIDE - 7)
        with fs.trace() as trace:
            found = scan.to_arrow()
        assert found.equals(table.slice(first * STRIDE + 3, STRIDE - 7))
        fallbacks += trace.fallbacks
        rows = range(first * STRIDE + 50, first * STRIDE + 90)
        within = col("row").is_between(rows[0], rows[-1])
        with fs.trace() as trace:
            found = fs.scan(data).filter(within).select(name).to_arrow()
        assert found.equals(table.select([name]).slice(rows[0], len(rows)))
        fallbacks += trace.fallbacks
    return fallbacks


@pytest.mark.parametrize("move", MOVES)
@few_of(
    "path",
    ["jump", "real", "text", "gap", "list.element", "flag"],
    ["jump", "list.element"],
)
def test_wrong_positions_of_a_stride_are_no_error(path: str, move: str) -> None:
    data = misplaced(NUMBERS[path], MOVES[move], [9], "uncompressed")
    fallbacks = window_checks(data, path.split(".")[0], 9)
    # What is there beyond need may be left alone.
    assert move == "too many" or path in {each.column for each in fallbacks}
    assert all(each.reason for each in fallbacks)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("path", NUMBERS)
def test_wrong_positions_in_any_column_and_codec_are_no_error(path: str, codec: str) -> None:
    for move in MOVES.values():
        data = misplaced(NUMBERS[path], move, [9], codec)
        window_checks(data, path.split(".")[0], 9)


@pytest.mark.parametrize("path", ["row", "text"])
def test_positions_that_are_all_a_value_late_are_no_error(path: str) -> None:
    """Bounds and the lengths of texts tell that they are wrong."""
    data = misplaced(NUMBERS[path], one_more(-1), range(1, STRIDES), "uncompressed")
    window_checks(data, path, 9)


def test_right_positions_need_no_fallback() -> None:
    data = written_at_once(positions_table(), row_index_stride=STRIDE)
    for name in ("jump", "text", "gap", "list"):
        assert window_checks(data, name, 9) == []


def test_a_wrong_position_is_no_error_for_a_filter_on_its_column() -> None:
    for move in ("of the stride before", "one more at the end", "beyond the stream"):
        data = misplaced(NUMBERS["row"], MOVES[move], [9], "uncompressed")
        scan = fs.scan(data).filter(col("row").is_between(905, 915))
        with fs.trace() as trace:
            assert scan.select("row").to_arrow()["row"].to_pylist() == list(range(905, 916))
        assert [(each.column, each.block) for each in trace.fallbacks] == [("row", 0)]
        assert scan.count() == 11


def test_missing_row_indexes_of_one_column_are_no_error() -> None:
    file = Crafted(written_at_once(positions_table(), row_index_stride=STRIDE))
    data = file.drop_streams(ROW_INDEX, NUMBERS["text"]).to_bytes()
    assert read(data).equals(positions_table())
    window_checks(data, "text", 9)
    scan = fs.scan(data).filter(col("text") == "word 31").select("row")
    expected = [i for i in range(ROWS) if i * 31 % 977 == 31]
    assert scan.to_arrow()["row"].to_pylist() == expected
