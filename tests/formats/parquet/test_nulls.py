"""Counts of nulls and null pages of Parquet that are absent, contradictory or wrong."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import I64, META_DATA, Crafted
from tests.support.trap_files import (
    OLD_BOUNDS,
    Change,
    Describe,
    Facts,
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
    BLOCK,
    GAPPED,
    GAPPED_TESTS,
    KINDS,
    LISTS,
    NOTHING,
    PAGE,
    RUNS,
    Kind,
    Predicate,
    begins,
    both_ways,
    check,
    check_or_refuse,
    check_proven,
    every_test,
    folded,
    is_not_null,
    is_null,
    runs_of,
)

pytestmark = pytest.mark.slow

INT, STRING = KINDS["int32"], KINDS["string"]

levels = pytest.mark.parametrize("level", RUNS)


# Null counts


UNDERCOUNTING = (
    "parquet-mr version 1.9.0",
    "parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)",
    "parquet-mr version 1.9.1-SNAPSHOT",
    "parquet-cpp-arrow version 5.0.0",
    "parquet-cpp-arrow version 2.0.0-SNAPSHOT",
)
COUNTING = (
    "parquet-mr version 1.10.0",
    "parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)",
    "parquet-cpp-arrow version 6.0.0",
    "parquet-cpp-arrow version 10.0.1-SNAPSHOT",
    "parquet-rs version 53.0.0",
)


def created_by(writer: str) -> Change:
    return lambda file: file.set_created_by(writer)


NULLS = {
    "all null, undercounted": Trap(
        INT, NOTHING, GAPPED_TESTS, always(null_count=0), created_by(UNDERCOUNTING[0])
    ),
    **{
        f"undercounted by {writer[:28]}": Trap(
            INT, GAPPED, GAPPED_TESTS, always(null_count=0), created_by(writer)
        )
        for writer in UNDERCOUNTING
    },
}
NO_BOUNDS = {**OLD_BOUNDS, "min_value": None, "max_value": None}
FULL = [1, 2, 3, 4, 5, 6, 7, 8, 2, 2, 2, 2, 3, 0, 1, 9]


def all_null(describe: Describe) -> Describe:
    """As many nulls as rows, by the count; the rest as described."""
    return lambda run: {**(describe(run) or {}), "null_count": len(run)}


def counting_one_less(run: Sequence[Any]) -> Facts:
    """One null is left out of the count, the first of the run."""
    return {"null_count": max(0, sum(value is None for value in run) - 1)}


def totals(values: Sequence[Any]) -> Change:
    """The true number of nulls in the statistics of blocks, and nothing else there."""
    counts = [sum(value is None for value in block) for block in runs_of(values, BLOCK)]
    facts = [{**NO_BOUNDS, "null_count": count} for count in counts]
    return lambda file: file.set_statistics("x", facts)


NULLS |= {
    "negative count": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=-1)),
    "very negative count": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=-(2**63))),
    "more nulls than rows": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=BLOCK + 1)),
    "a count of zero by default": Trap(
        INT, GAPPED, GAPPED_TESTS, always(null_count=0, **NO_BOUNDS)
    ),
    "decimals, a count of zero by default": Trap(
        KINDS["decimal in FLBA"],
        [None, Decimal(1), None, Decimal(2)] * 4,
        both_ways(every_test(Decimal(0), Decimal(20))),
        always(null_count=0, **NO_BOUNDS),
    ),
    "all null by the count, bounds deny it": Trap(INT, FULL, GAPPED_TESTS, all_null(honest(INT))),
    "all null by the count, deprecated bounds deny it": Trap(
        INT,
        FULL,
        GAPPED_TESTS,
        all_null(deprecated(honest(INT))),
        levels=("block",),
    ),
    "all null by the count, one bound denies it": Trap(
        INT,
        FULL,
        GAPPED_TESTS,
        all_null(always(**NO_BOUNDS | {"max_value": stored(INT, 9)})),
        levels=("block",),
    ),
    "pages that have less nulls than their block": Trap(
        INT, GAPPED, GAPPED_TESTS, counting_one_less, totals(GAPPED), levels=("page",)
    ),
}


@traps(NULLS, "negative count", "a count of zero by default")
def test_null_counts_that_prove_nothing(trap: Trap, level: str) -> None:
    trap.check(crafted_parquet, level)


NUM_VALUES = 5  # the field of ColumnMetaData


@pytest.mark.parametrize("count", [0, 3, BLOCK + 1, -1, None])
def test_counts_of_values_other_than_the_rows_prove_nothing(count: int | None) -> None:
    def change(file: Crafted) -> None:
        for chunk in file.chunks("x"):
            chunk[META_DATA][1].pop(NUM_VALUES)
            if count is not None:
                chunk[META_DATA][1][NUM_VALUES] = (I64, count)

    for nulls in (count, BLOCK, 0):
        describe = always(null_count=nulls, **NO_BOUNDS)
        for values in (FULL, GAPPED):
            data = crafted_parquet(values, INT, "block", describe, change)
            check_or_refuse(data, values, GAPPED_TESTS)


@levels
@pytest.mark.parametrize("writer", COUNTING)
def test_null_counts_prove(writer: str, level: str) -> None:
    values = [None] * 8 + [1, 2, 3, 4, 5, 6, 7, 8] + [None] * 8
    data = crafted_parquet(values, INT, level, change=created_by(writer))
    check_proven(data, values, both_ways(every_test(0, 9)), level)


# null_pages, and what else the column index says


COMPARED = both_ways(test for test in every_test(-1, 0, 6) if "null" not in test.label)
FILLED = [1, 2, 3, 4, 5, 6, 7, 8, 2, 2, 2, 2, None, 0, 1, None]
HOLLOW = [1, 2, 3, 4, None, None, None, None, None, 6, None, None, 5, 6, 7, 8]
ALL_TESTS = both_ways(every_test(-1, 0, 6))
EMPTY = {"min_value": b"", "max_value": b""}
INT_TRUE = honest(INT)


def page_trap(values: Sequence[Any], predicates: Sequence[Predicate], describe: Describe) -> Trap:
    return Trap(INT, values, predicates, describe, levels=("page",))


NULL_PAGES = {
    "claimed null, counts deny it": page_trap(FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True)),
    "claimed null and no bounds, counts deny it": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, **EMPTY)
    ),
    "claimed filled, counts deny it": page_trap(FILLED, COMPARED, plus(INT_TRUE, null_count=PAGE)),
    "claimed null, negative counts": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=-1, **EMPTY)
    ),
    "claimed null, more nulls than rows": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=PAGE + 1, **EMPTY)
    ),
    "claimed null, bounds deny it": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=PAGE)
    ),
    "claimed null, no counts, bounds deny it": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=None)
    ),
    "claimed null, the block has no nulls": Trap(
        INT,
        FULL,
        ALL_TESTS,
        plus(INT_TRUE, null_page=True, null_count=PAGE, **EMPTY),
        totals(FULL),
        levels=("page",),
    ),
    "claimed null, levels deny it": Trap(
        INT,
        FULL,
        ALL_TESTS,
        plus(INT_TRUE, null_page=True, null_count=PAGE, **EMPTY),
        lambda file: file.set_column_index(
            "x", [{"definition_level_histograms": [0, PAGE, 0, PAGE]}] * 2
        ),
        levels=("page",),
    ),
    "filled, empty bounds, counts of zero": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, **EMPTY, null_count=0)
    ),
    "null, claimed filled": page_trap(HOLLOW, ALL_TESTS, plus(INT_TRUE, null_page=False)),
    "null, claimed filled, no counts": page_trap(
        HOLLOW, ALL_TESTS, plus(INT_TRUE, null_page=False, null_count=None)
    ),
    "null, counts absent": page_trap(HOLLOW, ALL_TESTS, plus(INT_TRUE, null_count=None)),
    "filled, empty bounds": page_trap(FILLED, ALL_TESTS, plus(INT_TRUE, **EMPTY)),
    "filled, empty bounds, no counts": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, **EMPTY, null_count=None)
    ),
    "filled strings, empty bounds": Trap(
        STRING,
        ["", "", "a", "b", "c", "d", "e", "f"] * 2,
        both_ways([*every_test("", "b", "z"), begins(""), begins("b")]),
        plus(honest(STRING), **EMPTY),
        levels=("page",),
    ),
    "empty strings only": Trap(
        STRING, [""] * 8 + ["a"] * 4 + [""] * 4, both_ways([*every_test("", "a"), begins("")])
    ),
}


@traps(NULL_PAGES, "claimed null, counts deny it", "filled, empty bounds")
def test_contradictions_of_null_pages_prove_nothing(trap: Trap, level: str) -> None:
    trap.check(crafted_parquet, level)


# Below lists, maps and structs


LIST = Kind(pa.list_(pa.int32()))
IN_LIST = "x.list.element"
ANY, ALL = folded("any", 0, 10), folded("all", 0, 10)


@levels
@pytest.mark.slow
def test_nulls_below_a_list_that_are_undercounted_prove_nothing(level: str) -> None:
    change = created_by(UNDERCOUNTING[0])
    data = crafted_parquet(LISTS, LIST, level, always(null_count=0), change, IN_LIST)
    check(data, LISTS, both_ways([*ANY, *ALL, is_null(), is_not_null()]))


@levels
def test_a_count_of_no_nulls_below_a_list_says_nothing_of_lists(level: str) -> None:
    """Writers differ in whether a null or an empty list counts."""
    nulls = [test for test in ANY if "null" in test.label]
    predicates = [*ALL, *(~test for test in ANY), *both_ways(nulls), is_null(), is_not_null()]
    data = crafted_parquet(LISTS, LIST, level, always(null_count=0), column=IN_LIST)
    check(data, LISTS, predicates)


# As many nulls as rows in each page, and values beside them.
SPARSE = [[row, None] for row in range(16)]


@pytest.mark.parametrize("levels", ["absent", "true", "too few", "negative", "zero"])
@pytest.mark.parametrize("counted", [True, False])
def test_null_pages_below_a_list_prove_nothing_unless_levels_agree(
    counted: bool, levels: str
) -> None:
    """Writers call a page null where its nulls are as many as its rows."""
    histograms = {
        "absent": None,
        "true": [0, 0, PAGE, PAGE] * 2,
        "too few": [0, 0, PAGE, 0],
        "negative": [0, 0, PAGE + 1, -1] * 2,
        "zero": [0] * 8,
    }[levels]
    describe = always(null_page=True, null_count=PAGE if counted else None, **EMPTY)

    def change(file: Crafted) -> None:
        file.set_column_index(IN_LIST, [{"definition_level_histograms": histograms}] * 2)

    data = crafted_parquet(SPARSE, LIST, "page", describe, change, IN_LIST)
    check(data, SPARSE, both_ways([*ANY, *ALL, *folded("any", 1, 9), is_null(), is_not_null()]))


def test_null_pages_below_a_list_are_ruled_out_where_levels_agree() -> None:
    lists: list[Any] = [[None], [], None, [None, None], [1], [None, 2], None, [3]]
    data = in_parquet(lists, LIST).to_bytes()
    with fs.open(data) as file:
        assert file.prune(col("x").any() < 10).indices().tolist() == [4, 5, 6, 7]
    check(data, lists, both_ways([*ANY, *ALL]))
