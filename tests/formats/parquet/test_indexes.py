"""Indexes of Parquet that claim an order or are malformed: no wrong row, by whatever they say."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.craft import COLUMN_INDEX_AT, I32, I64, Crafted
from tests.support.trap_files import Change, Trap, crafted_parquet, in_parquet, traps
from tests.support.traps import KINDS, both_ways, check_or_refuse, every_test

pytestmark = pytest.mark.slow

INT = KINDS["int32"]


# Claims of an order


UNSORTED = [50, 60, 70, 80, 10, 20, 30, 40, 90, 95, 99, 91, None, 5, None, 15]


def claiming(boundary_order: int, descending: bool, nulls_first: bool) -> Change:
    """Sorted by `x`, the footer says, and so do the column indexes, where there are any."""
    claim = {"column_idx": 1, "descending": descending, "nulls_first": nulls_first}

    def change(file: Crafted) -> None:
        order = {"boundary_order": boundary_order}
        file.set_sorting_columns(claim)
        file.set_column_index("x", [order if index else None for index in file.column_index("x")])

    return change


CLAIMS = {
    f"{name}, nulls {'first' if nulls_first else 'last'}": Trap(
        INT,
        UNSORTED,
        both_ways(every_test(10, 45, 92)),
        change=claiming(order, order == 2, nulls_first),
    )
    for name, order in (("ascending", 1), ("descending", 2))
    for nulls_first in (True, False)
}


@traps(CLAIMS, "ascending, nulls last")
def test_claims_of_an_order_skip_nothing(trap: Trap, level: str) -> None:
    trap.check(crafted_parquet, level, windows=True)


# Structure


def index_change(**facts: Any) -> Change:
    """The same change to the column index of each block."""
    return lambda file: file.set_column_index("x", [facts] * 2)


def without_first_page(file: Crafted) -> None:
    lists = [
        {name: value[1:] for name, value in index.items() if isinstance(value, list)}
        for index in file.column_index("x")
    ]
    file.set_column_index("x", lists)


def with_a_page_more(file: Crafted) -> None:
    lists = [
        {name: [value[1], *value] for name, value in index.items() if isinstance(value, list)}
        for index in file.column_index("x")
    ]
    file.set_column_index("x", lists)


def shortened(name: str) -> Change:
    return lambda file: file.set_column_index(
        "x", [{name: index[name][1:]} for index in file.column_index("x")]
    )


def raw(index: bytes) -> Change:
    return lambda file: file.set_column_index("x", [index, index])


def place(offset: int, length: int) -> Change:
    def change(file: Crafted) -> None:
        for chunk in file.chunks("x"):
            chunk[COLUMN_INDEX_AT] = (I64, offset)
            chunk[COLUMN_INDEX_AT + 1] = (I32, length)

    return change


def statistics_change(**facts: Any) -> Change:
    return lambda file: file.set_statistics("x", [facts] * 2)


MALFORMED: Mapping[str, Change] = {
    "a page too few": without_first_page,
    "a page too many": with_a_page_more,
    "a null_page too few": shortened("null_pages"),
    "a min too few": shortened("min_values"),
    "a max too few": shortened("max_values"),
    "a null_count too few": shortened("null_counts"),
    "a nan_count too few": index_change(nan_counts=[0]),
    "no null_pages": index_change(null_pages=None),
    "no min_values": index_change(min_values=None),
    "no pages": index_change(null_pages=[], min_values=[], max_values=[], null_counts=[]),
    "no boundary_order": index_change(boundary_order=None),
    "an unheard boundary_order": index_change(boundary_order=7),
    "negative null_counts": index_change(null_counts=[-1, -4]),
    "more nulls than rows": index_change(null_counts=[5, 2**40]),
    "noise for an index": raw(b"\xff" * 40),
    "zeros for an index": raw(bytes(40)),
    "an index cut off": raw(b"\x19\x22\x02\x02\x19\x28\x04\x00"),
    "an index of a huge list": raw(b"\x19\xf2\xff\xff\xff\xff\x07" + b"\x02" * 30),
    "an empty index": raw(b""),
    "an index behind the file": place(2**40, 60),
    "an index before the file": place(-60, 60),
    "an index of negative length": place(4, -60),
    "an index among the pages": place(4, 60),
    "negative null_count": statistics_change(null_count=-1),
    "null_count above the rows": statistics_change(null_count=2**40),
    "negative nan_count": statistics_change(nan_count=-1),
}
SORTED = INT.spread()
SORTED_TESTS = both_ways(every_test(INT.at(10), INT.at(26)))


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_indexes_give_no_wrong_row(change: Change) -> None:
    file = in_parquet(SORTED, INT)
    change(file)
    check_or_refuse(file.to_bytes(), SORTED, SORTED_TESTS)


@pytest.mark.parametrize("column", ["row", "x"])
@pytest.mark.parametrize(
    "first_rows",
    [(0, 3), (0, 5), (1, 4), (4, 0), (0, 0), (0, 8), (0, 100), (-4, 4), (0, -1), (0, 2**40)],
    ids=str,
)
def test_pages_that_begin_elsewhere_give_no_wrong_row(
    column: str, first_rows: tuple[int, int]
) -> None:
    data = in_parquet(SORTED, INT).set_first_rows(column, [first_rows] * 2).to_bytes()
    check_or_refuse(data, SORTED, SORTED_TESTS, by_index=False)
