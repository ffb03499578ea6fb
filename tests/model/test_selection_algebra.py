"""The algebra of row selections against lists of booleans, and at scale."""

import copy
import gc
import itertools
import operator
import pickle
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.selections import (
    INT64_MAX,
    Mask,
    mask_of,
    masks,
    selection_of,
)


@st.composite
def mask_pairs(draw: st.DrawFn) -> tuple[Mask, Mask]:
    """Two masks of equal length."""
    pairs = draw(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    # Repeating rows makes long runs, with edges in common, as likely as short ones.
    repeat = draw(st.integers(1, 4))
    return [bit for bit in one for _ in range(repeat)], [
        bit for bit in other for _ in range(repeat)
    ]


# Algebra


@settings(deadline=None)
@given(mask_pairs())
def test_intersection_union_and_inversion(pair: tuple[Mask, Mask]) -> None:
    one, other = map(selection_of, pair)
    both = [a and b for a, b in zip(*pair, strict=True)]
    either = [a or b for a, b in zip(*pair, strict=True)]
    assert mask_of(one & other) == mask_of(one.intersection(other)) == both
    assert mask_of(one | other) == mask_of(one.union(other)) == either
    assert mask_of(~one) == mask_of(one.invert()) == [not bit for bit in pair[0]]


@pytest.mark.parametrize("combine", [operator.and_, operator.or_])
def test_only_selections_over_equally_many_rows_combine(combine: Callable[[Any, Any], Any]) -> None:
    for one, other in [(3, 4), (4, 3), (0, 1), (1, 0)]:
        with pytest.raises(ValueError, match=rf"\b{one} rows .* {other} rows"):
            combine(fs.RowSelection.all(one), fs.RowSelection.all(other))
    for wrong in ([True], np.array([True]), None):
        with pytest.raises(TypeError):
            combine(fs.RowSelection.all(1), wrong)


@settings(deadline=None)
@given(masks, st.data())
def test_and_then_selects_among_the_selected_rows(mask: Mask, data: st.DataObject) -> None:
    repeat = data.draw(st.integers(1, 4))
    count = sum(mask)
    among = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    mask = [bit for bit in mask for _ in range(repeat)]
    among = [bit for bit in among for _ in range(repeat)]
    decisions = iter(among)
    expected = [bit and next(decisions) for bit in mask]
    assert mask_of(selection_of(mask).and_then(selection_of(among))) == expected


def test_and_then_needs_one_decision_for_each_selected_row() -> None:
    three_of_eight = fs.RowSelection.from_indices([1, 2, 5], 8)
    for count in (0, 2, 4, 8):
        with pytest.raises(ValueError, match=rf"3 rows .* {count}"):
            three_of_eight.and_then(fs.RowSelection.all(count))


@settings(deadline=None)
@given(st.lists(masks, min_size=1, max_size=5))
def test_concat_puts_blocks_one_after_the_other(blocks: list[Mask]) -> None:
    first, *rest = map(selection_of, blocks)
    expected = [bit for block in blocks for bit in block]
    assert mask_of(first.concat(*rest)) == expected
    one_by_one = first
    for selection in rest:
        one_by_one = one_by_one.concat(selection)
    assert one_by_one == first.concat(*rest)
    assert mask_of(first) == blocks[0]


@settings(deadline=None)
@given(masks, st.data())
def test_slice_and_split_cut_rows(mask: Mask, data: st.DataObject) -> None:
    selection = selection_of(mask)
    start, stop = sorted(data.draw(st.integers(0, len(mask))) for _ in range(2))
    assert mask_of(selection.slice(start, stop)) == mask[start:stop]
    before, after = selection.split(np.int64(start))
    assert (mask_of(before), mask_of(after)) == (mask[:start], mask[start:])
    assert before.concat(after) == selection


def test_a_cut_outside_of_the_rows_is_an_error() -> None:
    selection = fs.RowSelection.all(5)
    with pytest.raises(ValueError, match=r"6 .* 5 rows"):
        selection.split(6)
    for start, stop in [(0, 6), (6, 6), (3, 2)]:
        with pytest.raises(ValueError, match=f"rows {start} to {stop} .* 5 rows"):
            selection.slice(start, stop)


@settings(deadline=None)
@given(masks, st.integers(0, 35))
def test_offset_limit_and_last_count_selected_rows(mask: Mask, count: int) -> None:
    selection = selection_of(mask)
    rank = list(itertools.accumulate(mask, initial=0))  # selected rows before each row
    total = sum(mask)
    assert mask_of(selection.offset(count)) == [
        bit and before >= count for bit, before in zip(mask, rank, strict=False)
    ]
    assert mask_of(selection.limit(count)) == [
        bit and before < count for bit, before in zip(mask, rank, strict=False)
    ]
    assert mask_of(selection.last(count)) == [
        bit and before >= total - count for bit, before in zip(mask, rank, strict=False)
    ]
    for far in (INT64_MAX, 2**70):
        assert selection.offset(far) == selection.limit(0) == selection.last(0)
        assert selection.limit(far) == selection.last(far) == selection.offset(0) == selection


@settings(deadline=None)
@given(mask_pairs(), st.sampled_from([2**27, 2**31, 2**40, 2**56]), st.data())
def test_the_algebra_holds_for_rows_by_the_billion(
    pair: tuple[Mask, Mask], scale: int, data: st.DataObject
) -> None:
    """Each row stands for `scale` rows: every operation gives what it gives without that."""
    mask, other_mask = pair
    small, small_other = map(selection_of, pair)
    large, large_other = (selection_of(mask, scale) for mask in pair)

    def enlarged(selection: fs.RowSelection) -> fs.RowSelection:
        return selection_of(selection.mask().tolist(), scale)

    assert large.row_count == small.row_count * scale
    assert large.selected_count == small.selected_count * scale
    assert large.ranges().tolist() == (small.ranges() * scale).tolist()
    assert large & large_other == enlarged(small & small_other)
    assert large | large_other == enlarged(small | small_other)
    assert ~large == enlarged(~small)
    assert fs.RowSelection.from_ranges(large.ranges(), large.row_count) == large
    among = [bit for bit, selected in zip(other_mask, mask, strict=True) if selected]
    assert large.and_then(selection_of(among, scale)) == enlarged(small & small_other)
    row = data.draw(st.integers(0, len(mask)))
    assert large.split(row * scale) == tuple(map(enlarged, small.split(row)))
    assert large.split(row * scale)[0].concat(large.split(row * scale)[1]) == large
    assert large.offset(row * scale) == enlarged(small.offset(row))
    assert large.limit(row * scale) == enlarged(small.limit(row))
    assert large.last(row * scale) == enlarged(small.last(row))


@pytest.mark.parametrize("count", [2**31 - 2, 2**31 - 1, 2**31, 2**32 + 1, INT64_MAX])
def test_the_last_row_of_very_many_is_not_lost(count: int) -> None:
    tail = fs.RowSelection.from_indices([count - 1], count)
    assert tail.ranges().tolist() == [[count - 1, count]]
    assert fs.RowSelection.all(count) & tail == tail == tail | fs.RowSelection.none(count)
    assert fs.RowSelection.all(count).last(1) == tail
    assert fs.RowSelection.all(count).and_then(tail) == tail
    assert (tail | ~tail).selected_count == count
    assert tail.indices().tolist() == [count - 1]
    assert fs.RowSelection.from_indices([count - 1, 0], count).selected_count == 2


# Pages to fetch


class PageLocation(NamedTuple):
    """As Parquet's offset index has it, in its order."""

    offset: int
    compressed_page_size: int
    first_row_index: int


@settings(deadline=None)
@given(masks, st.data())
def test_scan_ranges_are_the_pages_that_hold_a_selected_row(
    mask: Mask, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(mask)), max_size=8))
    first_rows = sorted([0, *cuts])
    sizes = data.draw(
        st.lists(st.integers(0, 99), min_size=len(first_rows), max_size=len(first_rows))
    )
    offsets = [4 + before for before in itertools.accumulate(sizes, initial=0)][:-1]
    pages = list(zip(first_rows, offsets, sizes, strict=True))
    ends = [*first_rows[1:], len(mask)]
    expected = [
        (offset, size)
        for (first, offset, size), end in zip(pages, ends, strict=True)
        if any(mask[row] for row in range(first, end))
    ]
    selection = selection_of(mask)
    ranges = selection.scan_ranges(pages)
    assert ranges == expected
    assert all(type(number) is int for pair in ranges for number in pair)
    assert selection.scan_ranges(np.array(pages)) == expected
    objects = [PageLocation(offset, size, first) for first, offset, size in pages]
    assert selection.scan_ranges(objects) == expected
    assert selection.scan_ranges(tuple(objects)) == expected


def test_the_first_line_about_scan_ranges_says_what_comes_out() -> None:
    first, *_ = (fs.RowSelection.scan_ranges.__doc__ or "").splitlines()
    assert "`(offset, length)` pairs" in first


def test_adjoining_pages_are_not_merged() -> None:
    assert fs.RowSelection.all(4).scan_ranges([(0, 10, 5), (2, 15, 5)]) == [(10, 5), (15, 5)]


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([(1, 0, 9)], "row 0, not at row 1"),
        ([], "row 0, not at row 5"),
        ([(0, 0, 9), (3, 9, 9), (2, 18, 9)], "row 2 follows row 3"),
        ([(0, 0, 9), (6, 9, 9)], "row 5 follows row 6"),
        ([(0, 0), (1, 2)], "shape"),
    ],
)
def test_pages_that_do_not_fit_the_rows_are_an_error(pages: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fs.RowSelection.all(5).scan_ranges(pages)


def test_a_page_without_rows_is_not_fetched() -> None:
    pages = [(0, 10, 5), (2, 15, 5), (2, 20, 5), (4, 25, 5)]
    assert fs.RowSelection.all(4).scan_ranges(pages) == [(10, 5), (20, 5)]


def test_no_rows_need_no_pages() -> None:
    assert fs.RowSelection().scan_ranges([]) == []
    assert fs.RowSelection().scan_ranges([(0, 4, 20)]) == []


# Scale: every other row of ten million, the most runs that so many rows can have


ROWS = 10_000_000
BYTES_ALLOWED = 200_000_000
SECONDS_ALLOWED = 5.0  # a hundred times what is usual, and far below what quadratic work takes


class Input:
    """What the operations at scale are given; it is not counted as theirs."""

    def __init__(self) -> None:
        self.mask = np.zeros(ROWS, bool)
        self.mask[::2] = True
        self.rows = np.arange(0, ROWS, 2)
        self.boundaries = np.arange(ROWS + 1)
        self.pages = np.stack((np.arange(0, ROWS, 100),) * 3, axis=1)
        self.evens = fs.RowSelection.from_indices(self.rows, ROWS)
        self.evens_again = copy.copy(self.evens)
        self.odds = ~self.evens
        self.half = self.evens.slice(0, ROWS // 2)
        self.part = self.evens.slice(0, ROWS // 1000)
        self.ranges = self.evens.ranges()
        self.shuffled = np.random.default_rng(7).permutation(self.rows)


@pytest.fixture(scope="module")
def at_scale() -> Input:
    return Input()


OPERATIONS_AT_SCALE: dict[str, tuple[Callable[[Input], Any], Any]] = {
    "from_indices": (lambda s: fs.RowSelection.from_indices(s.rows, ROWS), 5_000_000),
    "from_indices, shuffled": (lambda s: fs.RowSelection.from_indices(s.shuffled, ROWS), 5_000_000),
    "from_ranges": (lambda s: fs.RowSelection.from_ranges(s.ranges, ROWS), 5_000_000),
    "from_filters": (lambda s: fs.RowSelection.from_filters([s.mask]), 5_000_000),
    "from_filters, in parts": (
        lambda s: fs.RowSelection.from_filters(np.split(s.mask, 1000)),
        5_000_000,
    ),
    "from_pages": (lambda s: fs.RowSelection.from_pages(s.mask, s.boundaries), 5_000_000),
    "evens & evens": (lambda s: s.evens & s.evens_again, 5_000_000),
    "evens & odds": (lambda s: s.evens & s.odds, 0),
    "evens | evens": (lambda s: s.evens | s.evens_again, 5_000_000),
    "evens | odds": (lambda s: s.evens | s.odds, ROWS),
    "~evens": (lambda s: ~s.evens, 5_000_000),
    "evens, then every other": (lambda s: s.evens.and_then(s.half), 2_500_000),
    "evens, then all": (lambda s: s.evens.and_then(fs.RowSelection.all(ROWS // 2)), 5_000_000),
    "all, then evens": (lambda s: fs.RowSelection.all(ROWS).and_then(s.evens), 5_000_000),
    "concat": (lambda s: s.half.concat(s.half), 5_000_000),
    "concat of a thousand": (lambda s: fs.RowSelection().concat(*[s.part] * 1000), 5_000_000),
    "slice": (lambda s: s.evens.slice(1, ROWS - 1), 4_999_999),
    "split": (lambda s: s.evens.split(ROWS // 2)[1], 2_500_000),
    "offset": (lambda s: s.evens.offset(3), 4_999_997),
    "limit": (lambda s: s.evens.limit(4_999_997), 4_999_997),
    "last": (lambda s: s.evens.last(4_999_997), 4_999_997),
    "ranges": (lambda s: s.evens.ranges(), (5_000_000, 2)),
    "mask": (lambda s: s.evens.mask(), (ROWS,)),
    "indices": (lambda s: s.evens.indices(), (5_000_000,)),
    "scan_ranges": (lambda s: s.evens.scan_ranges(s.pages), 100_000),
    "==": (lambda s: s.evens == s.evens_again, True),
    "hash": (lambda s: hash(s.evens) == hash(s.evens_again), True),
    "repr": (lambda s: len(repr(s.evens)), 75),
    "pickle": (lambda s: pickle.loads(pickle.dumps(s.evens, 5)), 5_000_000),
    "the first selectors": (lambda s: len(list(itertools.islice(s.evens, 1000))), 1000),
}


def size_of(result: Any) -> Any:
    match result:
        case fs.RowSelection():
            return result.selected_count
        case np.ndarray():
            return result.shape
        case list():
            return len(result)
        case _:
            return result


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS_AT_SCALE)
def test_five_million_runs_take_little_memory_and_time(name: str, at_scale: Input) -> None:
    operation, expected = OPERATIONS_AT_SCALE[name]
    gc.collect()
    tracemalloc.start()
    try:
        began = time.perf_counter()
        result = operation(at_scale)
        seconds = time.perf_counter() - began
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size_of(result) == expected
    assert peak < BYTES_ALLOWED
    assert seconds < SECONDS_ALLOWED


def test_a_million_selectors_are_not_held_in_memory() -> None:
    pair = (fs.RowSelector.select(1), fs.RowSelector.skip(1))
    selectors = itertools.chain.from_iterable(itertools.repeat(pair, 500_000))
    tracemalloc.start()
    try:
        selection = fs.RowSelection(selectors)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (selection.row_count, selection.selected_count) == (1_000_000, 500_000)
    assert peak < BYTES_ALLOWED / 10
