"""What an index may prove, and what it must not, in both formats: one step too far loses a row.

What is said of a run of values is crafted, for blocks or for pages. Every predicate is held against
plain Python with SQL's three-valued logic. Traps of one format alone have files of their own.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.trap_files import FORMATS, Describe, Facts, always, solid
from tests.support.traps import (
    BLOCK,
    ENDLESS,
    GAPPED,
    GAPPED_TESTS,
    INF,
    KINDS,
    LISTS,
    MAPS,
    MIXED,
    NAN,
    NOTHING,
    ONLY_NAN,
    ONLY_ZEROS,
    RUNS,
    STRUCTS,
    TENTHS,
    ZEROS_ABOVE,
    ZEROS_BELOW,
    Kind,
    Predicate,
    begins,
    both_ways,
    check,
    check_or_refuse,
    check_proven,
    compared,
    deceived,
    every_test,
    folded,
    is_nan,
    is_not_null,
    is_null,
    map_test,
    of_field,
    one_of,
)

INT, STRING, DOUBLE, BOOLEAN = KINDS["int32"], KINDS["string"], KINDS["float64"], Kind(pa.bool_())
LIST, MAP = Kind(pa.list_(pa.int32())), Kind(pa.map_(pa.string(), pa.int32()))
STRUCT = Kind(pa.struct([("a", pa.int32())]))
FEW = ("int32", "string", "float64")
"""Kinds whose traps are quick enough for every run."""
OFTEN = (*FEW, "uint64", "decimal in FLBA", "decimal in BYTE_ARRAY", "uuid", "float32", "date")
"""One of each order and width; the rest is left to the deep runs."""

each_format = pytest.mark.parametrize("form", FORMATS)
levels = pytest.mark.parametrize("level", RUNS)


def marks(is_quick: bool, is_deep: bool) -> Any:
    return () if is_quick else pytest.mark.deep if is_deep else pytest.mark.slow


def each_kind(
    names: Sequence[str] | None = None,
    often: Sequence[str] = OFTEN,
    quick: Sequence[str] = FEW[:2],
) -> pytest.MarkDecorator:
    """Kinds of columns of both formats, at each level."""
    cases = [
        pytest.param(
            *(form, name, level),
            marks=marks(name in quick and level == "page", name not in often),
        )
        for form, made in FORMATS.items()
        for name in names or made.kinds
        for level in RUNS
    ]
    return pytest.mark.parametrize(("form", "name", "level"), cases)


# Bounds


@each_kind()
def test_bounds_prove_in_the_order_of_the_column(form: str, name: str, level: str) -> None:
    kind, made = KINDS[name], FORMATS[form]
    values = kind.spread()
    predicates = kind.tests(*kind.gaps(level))
    if not made.is_wide(kind):
        edges = [("<=", 8), (">", 8), ("<", 12), (">=", 12)]
        predicates += [compared(test, kind.at(i), kind.order) for test, i in edges]
    if name == "string":
        predicates += [begins(prefix) for prefix in ("\U0010ffff", *kind.gaps(level))]
    data = made.crafted(values, kind, level, made.proving(kind))
    check_proven(data, values, both_ways(predicates), level, made.is_exact(kind, level))


@each_kind()
def test_bounds_lose_no_row_within_them(form: str, name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    values[1] = values[11] = values[12] = None
    data = FORMATS[form].crafted(values, kind, level)
    check(data, values, kind.tests(kind.at(36), *kind.odd))


@each_format
@levels
def test_equal_bounds_prove_equality(form: str, level: str) -> None:
    made = FORMATS[form]
    cases: tuple[tuple[Kind, list[Any]], ...] = ((INT, [1, 2, 3]), (STRING, ["one", "two"]))
    for kind, literals in cases:
        values = [literals[0]] * 8 + [literals[1]] * 8
        if made.is_exact(kind, level):
            data = made.crafted(values, kind, level)
            check_proven(data, values, both_ways(every_test(*literals)), level)


@pytest.mark.slow
@each_format
@levels
def test_booleans(form: str, level: str) -> None:
    made = FORMATS[form]
    predicates = both_ways(
        [
            *(compared(name, value) for name in ("==", "!=") for value in (True, False)),
            *(one_of(values) for values in ([True], [False, None], [True, False])),
            is_null(),
        ]
    )
    mixed = [True] * 4 + [False] * 4 + [True, False, None, True] + [None] * 4
    for facts in ({}, *made.odd_booleans):
        check(made.crafted(mixed, BOOLEAN, level, always(**facts)), mixed, predicates)
    pure = [True] * 8 + [False] * 8 + [None] * 8
    data = made.crafted(pure, BOOLEAN, level)
    check_proven(data, pure, predicates, level, exact=form == "parquet")


@pytest.mark.parametrize("side", ["low", "high"])
@each_kind(("int64", "float64", "string", "date", "decimal in INT64"), ("int64", "string"), ())
def test_one_bound_says_nothing_of_the_other_side(
    form: str, name: str, level: str, side: str
) -> None:
    kind, made = KINDS[name], FORMATS[form]
    predicates = both_ways(kind.tests(*(kind.at(i) for i in (0, 10, 24, 40))))

    def describe(run: Sequence[Any]) -> Facts:
        low, high = solid(kind, run)
        told = made.told(kind, None if side == "low" else low, None if side == "high" else high)
        return {**told, "nan_count": None} if form == "parquet" else told

    values = kind.spread()
    check(made.crafted(values, kind, level, describe), values, predicates)


@each_kind()
def test_a_minimum_above_the_maximum_proves_nothing(form: str, name: str, level: str) -> None:
    kind, made = KINDS[name], FORMATS[form]
    describe = always(**made.told(kind, kind.at(46), kind.at(44)))
    values = kind.spread()
    check(made.crafted(values, kind, level, describe), values, deceived(kind))


# Floats


def zero_as_bound(form: str, kind: Kind, zero: float) -> Describe:
    """True bounds, but for the sign of a zero."""
    return lambda run: FORMATS[form].told(kind, *(bound or zero for bound in (min(run), max(run))))


FloatTrap = tuple[Sequence[Any], Sequence[float], Describe | None]


def float_traps(form: str, kind: Kind) -> dict[str, FloatTrap]:
    """Values, the literals to test them by, and what is said of them."""
    made = FORMATS[form]

    def bounds(low: Any = None, high: Any = None) -> Describe:
        """True bounds, but for those given; nothing is said of NaN."""

        def describe(run: Sequence[Any]) -> Facts:
            given = zip((low, high), solid(kind, run), strict=True)
            ends = (own if end is None else end for end, own in given)
            return made.told(kind, *ends, nan_free=False)

        return describe

    some, zeros = (NAN, 2.0, 100.0), (0.0, -0.0)
    return {
        "as written": (MIXED, some, None),
        "NaN within finite bounds": (MIXED, some, bounds()),
        "NaN as both bounds": (MIXED, some, bounds(NAN, NAN)),
        "NaN as min": (MIXED, some, bounds(low=NAN)),
        "NaN as max": (MIXED, some, bounds(high=NAN)),
        "only NaN, as written": (ONLY_NAN, (NAN, 1.0, 2.0), None),
        "only NaN, no bounds": (ONLY_NAN, (NAN, 1.0, 2.0), bounds()),
        "infinite bounds": (ENDLESS, (INF, -INF, NAN, 5.0), bounds()),
        "literal of another width": (TENTHS, (0.1, -0.1, 0.2), None),
        "bounds of another width": (
            *(TENTHS, (0.1, -0.1, 0.2)),
            lambda run: made.told(kind, *solid(kind, run)),
        ),
        "+0.0 as min, -0.0 inside": (ZEROS_BELOW, zeros, zero_as_bound(form, kind, 0.0)),
        "-0.0 as max, +0.0 inside": (ZEROS_ABOVE, zeros, zero_as_bound(form, kind, -0.0)),
        "+0.0 as both bounds": (ONLY_ZEROS, zeros, zero_as_bound(form, kind, 0.0)),
        "-0.0 as both bounds": (ONLY_ZEROS, zeros, zero_as_bound(form, kind, -0.0)),
        "+0.0 as min, -0.0 as max": (ONLY_ZEROS, zeros, always(**made.told(kind, 0.0, -0.0))),
    }


QUICK_FLOATS = ("NaN within finite bounds", "+0.0 as min, -0.0 inside")
FLOATS = [
    pytest.param(
        *(form, name, label, level),
        marks=marks(name == "float64" and level == "page" and label in QUICK_FLOATS, False),
    )
    for form, made in FORMATS.items()
    for name in ("float16", "float32", "float64")
    if name in made.kinds
    for label in float_traps(form, KINDS[name])
    if name == "float64" or "width" in label or label in QUICK_FLOATS
    for level in RUNS
]


@pytest.mark.parametrize(("form", "name", "label", "level"), FLOATS)
def test_float_bounds_hold_for_what_is_not_nan(
    form: str, name: str, label: str, level: str
) -> None:
    kind = KINDS[name]
    values, literals, describe = float_traps(form, kind)[label]
    data = FORMATS[form].crafted(values, kind, level, describe)
    check(data, values, both_ways([*kind.tests(*literals), is_nan()]))


@each_format
@levels
def test_it_can_be_proven_that_there_is_no_nan(form: str, level: str) -> None:
    values, made = DOUBLE.spread(), FORMATS[form]
    data = made.crafted(values, DOUBLE, level, made.proving(DOUBLE))
    check_proven(data, values, both_ways([is_nan(), *DOUBLE.tests(NAN)]), level)


# Truncated bounds of texts

LONG = "p" * 70
CUT, AFTER_CUT = LONG[:64], LONG[:63] + "q"
LONG_VALUES = [LONG + end for end in "abcdefgh"] + ["p" + end for end in "abcd"] + [CUT, LONG] * 2
LONG_PREFIXES = ("", "p", "pa", CUT, LONG + "a", LONG + "z", AFTER_CUT)
LONG_TESTS = [*every_test(CUT, LONG + "b", AFTER_CUT), *map(begins, LONG_PREFIXES)]
ACCENTS = ["é" * 40 + end for end in "abcdefgh"] + ["é" * 31 + end for end in "wxyz€é😀\uffff"]
ACCENT_TESTS = [
    *every_test("é" * 31, "é" * 40 + "c", "é" * 31 + "😀"),
    *map(begins, ("é" * 31, "é" * 32, "é" * 31 + "€", "é" * 31 + "\uffff")),
]
TOP = "\U0010ffff"
TOPMOST = [TOP * 20 + end for end in "abcdefgh"] * 2
TOPMOST_TESTS = [
    *every_test(TOP * 20, TOP * 20 + "c", TOP * 21),
    *(begins(TOP * count) for count in (1, 16, 20, 21)),
]
SHORT = [LONG + "a"] * 8 + ["pp"] * 8
SHORT_TESTS = [*every_test(LONG, LONG + "a", "pp"), begins("pp"), begins(LONG)]
TextTrap = tuple[Sequence[str], Iterable[Predicate], int, dict[str, bool]]
TRUNCATED: dict[str, TextTrap] = {
    "64 bytes": (LONG_VALUES, LONG_TESTS, 64, {}),
    "4 bytes": (LONG_VALUES, LONG_TESTS, 4, {}),
    "a byte": (LONG_VALUES, LONG_TESTS, 1, {}),
    "only the lower": (LONG_VALUES, LONG_TESTS, 4, {"high": False}),
    "only the upper": (LONG_VALUES, LONG_TESTS, 4, {"low": False}),
    "one value as both": (SHORT, SHORT_TESTS, 2, {}),
    "within a character": (ACCENTS, ACCENT_TESTS, 63, {}),
    "after the highest character": (TOPMOST, TOPMOST_TESTS, 64, {}),
}


@pytest.mark.parametrize(
    ("form", "name", "level"),
    [
        pytest.param(*case, marks=marks(case[1:] == ("one value as both", "page"), False))
        for case in itertools.product(FORMATS, TRUNCATED, RUNS)
    ],
)
def test_truncated_bounds_are_no_values(form: str, name: str, level: str) -> None:
    values, tests, size, sides = TRUNCATED[name]
    data = FORMATS[form].crafted(values, STRING, level, FORMATS[form].cut(size, **sides))
    check(data, values, both_ways(tests))


@each_format
@levels
def test_equal_truncated_bounds_prove_no_equality(form: str, level: str) -> None:
    """The upper one is no bound of the values: who decodes them may say so."""
    values = [LONG + "a"] * 8 + [LONG + "b"] * 8
    made = FORMATS[form]

    def as_both(run: Sequence[str]) -> Facts:
        return made.cut(64)([CUT]) or {}

    equalities = [compared("==", CUT), compared("!=", CUT), one_of([CUT]), one_of([CUT, None])]
    check_or_refuse(made.crafted(values, STRING, level, as_both), values, both_ways(equalities))


@pytest.mark.slow
@each_format
@levels
@pytest.mark.parametrize("size", [8, 64])
def test_truncated_bounds_rule_out(form: str, level: str, size: int) -> None:
    values = [letter * 70 + str(i) for letter in "bdfh" for i in range(4)]
    literals = ("a" * 70, "e" * 70, "e", "i", *(["c" * 70] if level == "page" else []))
    predicates = both_ways([*every_test(*literals), *map(begins, literals)])
    data = FORMATS[form].crafted(values, STRING, level, FORMATS[form].cut(size))
    check_proven(data, values, predicates, level, exact=False)


@pytest.mark.slow
@each_format
@levels
def test_strings_compare_as_unsigned_bytes(form: str, level: str) -> None:
    """Java's order of UTF-16 has surrogates below U+E000."""
    values = ["\U0001f600", "\uff5e", "\ue000", "a", "\x7f", "\x80", "é", "\uffff"] * 2
    predicates = both_ways(every_test("\uff5e", "\U0001f600", "\U0010ffff", "\x80"))
    check(FORMATS[form].crafted(values, STRING, level), values, predicates)


# Nulls


@pytest.mark.slow
@each_format
@levels
@pytest.mark.parametrize("values", [GAPPED, NOTHING], ids=["some", "most"])
def test_nulls_that_are_not_counted_are_there_all_the_same(
    form: str, level: str, values: list[int | None]
) -> None:
    for facts in ({}, *FORMATS[form].unsaid):
        data = FORMATS[form].crafted(values, INT, level, always(**facts))
        check(data, values, GAPPED_TESTS)


@each_format
@levels
def test_nulls_are_proven_by_their_count(form: str, level: str) -> None:
    values = [None] * 8 + [1, 2, 3, 4, 5, 6, 7, 8] + [None] * 8
    data = FORMATS[form].crafted(values, INT, level)
    check_proven(data, values, both_ways(every_test(0, 9)), level)


@each_format
@levels
def test_runs_of_nulls_are_ruled_out(form: str, level: str) -> None:
    values = [None] * 4 + [1, 2, 3, 4] + [None] * 8
    data = FORMATS[form].crafted(values, INT, level)
    with fs.open(data) as file:
        kept = file.prune(col("x") < 10).indices().tolist()
    assert kept == list(range(0 if RUNS[level] == BLOCK else 4, 8))
    check(data, values, both_ways(every_test(2, 10)))


@pytest.mark.slow
@each_format
@levels
def test_proofs_combine_in_three_valued_logic(form: str, level: str) -> None:
    single = both_ways(every_test(0, 12))
    pairs = list(zip(single, single[5:], strict=False))
    combined = [pair for a, b in pairs for pair in (a & b, a | b, ~(a & b), ~(a | ~b))]
    check(FORMATS[form].crafted(GAPPED, INT, level), GAPPED, combined)


# Below lists, maps and structs


@pytest.mark.slow
@each_format
@levels
@pytest.mark.parametrize("fold", ["any", "all"])
def test_counts_below_a_list_are_not_those_of_rows(form: str, level: str, fold: str) -> None:
    predicates = both_ways([*folded(fold, 0, 10), is_null(), is_not_null()])
    for facts in ({}, *FORMATS[form].unsaid[:1]):
        data = FORMATS[form].crafted(LISTS, LIST, level, always(**facts), "x.element")
        check(data, LISTS, predicates)


@pytest.mark.slow
@each_format
@levels
@pytest.mark.parametrize("fold", ["any", "all"])
def test_counts_below_a_map_are_not_those_of_rows(form: str, level: str, fold: str) -> None:
    of_values = [*map(map_test, folded(fold, 0, 10, path="x.value")), is_null(), is_not_null()]
    data = FORMATS[form].crafted(MAPS, MAP, level, column="x.value")
    check(data, MAPS, both_ways(of_values))


@each_format
@levels
def test_bounds_below_a_list_rule_out_any(form: str, level: str) -> None:
    values = [[i, i + 1] for i in (1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34)]
    gaps = (0, 20, 40) if level == "block" else (0, 10, 20, 30, 40)
    predicates = [test for test in folded("any", *gaps) if "null" not in test.label]
    data = FORMATS[form].crafted(values, LIST, level, column="x.element")
    check_proven(data, values, predicates, level, exact=False)


WHOLE = [None, None, {"a": 1}, {"a": 2}, *[{"a": i} for i in range(3, 15)]]


@pytest.mark.slow
@each_format
@levels
@pytest.mark.parametrize("values", [STRUCTS, WHOLE], ids=["fields null", "structs null"])
def test_counts_below_a_struct_do_not_tell_what_is_null(
    form: str, level: str, values: Sequence[Any]
) -> None:
    fields = map(of_field, every_test(0, 2, 9, subject=col("x.a")))
    predicates = both_ways([*fields, is_null(), is_not_null()])
    for facts in ({}, *FORMATS[form].unsaid):
        check(
            FORMATS[form].crafted(values, STRUCT, level, always(**facts), "x.a"), values, predicates
        )
