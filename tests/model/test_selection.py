"""Row selections against plain lists of booleans, one boolean for each row."""

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
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fretsaw as fs

Mask = list[bool]

INT64_MAX = 2**63 - 1

scattered = st.lists(st.booleans(), max_size=30)
clustered = st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=6).map(
    lambda runs: [bit for bit, length in runs for _ in range(length)]
)
masks = scattered | clustered


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


def selection_of(mask: Mask, scale: int = 1) -> fs.RowSelection:
    return fs.RowSelection(fs.RowSelector(scale, bit) for bit in mask)


def mask_of(selection: fs.RowSelection) -> Mask:
    """Spell a selection out row by row, and check what holds for every selection."""
    selectors = list(selection)
    mask = [bit for run in selectors for bit in [run.selects] * run.row_count]
    assert all(run.row_count > 0 for run in selectors)
    assert all(a.selects != b.selects for a, b in itertools.pairwise(selectors))
    assert selection.row_count == len(mask)
    assert selection.selected_count == sum(mask)
    assert selection.skipped_count == len(mask) - sum(mask)
    assert selection.selects_any() is any(mask)
    for count in (selection.row_count, selection.selected_count, selection.skipped_count):
        assert type(count) is int
    return mask


# One selector


def test_selector_says_how_many_rows_and_whether_it_selects() -> None:
    assert (
        fs.RowSelector.select(3)
        == fs.RowSelector(3, True)
        == fs.RowSelector(row_count=3, selects=True)
    )
    assert fs.RowSelector.skip(np.int32(2)) == fs.RowSelector(2, False)
    assert type(fs.RowSelector.skip(np.int32(2)).row_count) is int
    assert (fs.RowSelector.skip(0).row_count, fs.RowSelector.skip(0).selects) == (0, False)


@pytest.mark.parametrize(
    "make", [fs.RowSelector.select, fs.RowSelector.skip, lambda count: fs.RowSelector(count, True)]
)
def test_selector_refuses_what_is_no_count(make: Callable[[Any], Any]) -> None:
    for count in (-1, np.int64(-5), 2**63):
        with pytest.raises(ValueError, match=str(count)):
            make(count)
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            make(wrong)


def test_selector_is_an_immutable_value() -> None:
    selector = fs.RowSelector.select(3)
    with pytest.raises(AttributeError):
        selector.row_count = 4  # type: ignore[misc]
    assert len({selector, fs.RowSelector.select(3), fs.RowSelector.skip(3)}) == 2
    assert pickle.loads(pickle.dumps(selector)) == selector


# Making selections


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=20))
def test_selectors_are_merged_and_empty_ones_dropped(runs: list[tuple[int, bool]]) -> None:
    selection = fs.RowSelection([fs.RowSelector(count, bit) for count, bit in runs])
    assert mask_of(selection) == [bit for count, bit in runs for _ in range(count)]
    assert fs.RowSelection(selection) == selection


def test_no_selectors_make_a_selection_of_no_rows() -> None:
    assert mask_of(fs.RowSelection()) == []
    assert (
        fs.RowSelection() == fs.RowSelection([fs.RowSelector.select(0)]) == fs.RowSelection.all(0)
    )


@pytest.mark.parametrize("wrong", [[True, False], [3], np.array([True])])
def test_selection_refuses_what_is_no_selector(wrong: Any) -> None:
    with pytest.raises(TypeError, match="RowSelector"):
        fs.RowSelection(wrong)


def test_more_rows_than_int64_counts_are_refused() -> None:
    most, one = fs.RowSelector.select(INT64_MAX), fs.RowSelector.skip(1)
    assert fs.RowSelection([most]).selected_count == INT64_MAX
    for selectors in ([most, one], [one, most, most, most]):
        with pytest.raises(ValueError, match=str(INT64_MAX)):
            fs.RowSelection(selectors)
    with pytest.raises(ValueError, match=str(INT64_MAX)):
        fs.RowSelection.all(INT64_MAX).concat(fs.RowSelection.none(1))


@given(st.integers(0, 50))
def test_all_and_none(count: int) -> None:
    assert mask_of(fs.RowSelection.all(count)) == [True] * count
    assert mask_of(fs.RowSelection.none(np.int64(count))) == [False] * count


@settings(deadline=None)
@given(st.lists(masks, max_size=5), st.sampled_from(["numpy", "arrow", "chunked", "list"]))
def test_filters_follow_one_another(arrays: list[Mask], kind: str) -> None:
    converters: dict[str, Callable[[Mask], Any]] = {
        "numpy": lambda mask: np.array(mask, dtype=bool),
        "arrow": lambda mask: pa.array([False, *mask], pa.bool_())[1:],
        "chunked": lambda mask: pa.chunked_array([mask[:3], mask[3:]], pa.bool_()),
        "list": list,
    }
    selection = fs.RowSelection.from_filters(map(converters[kind], arrays))
    assert mask_of(selection) == [bit for mask in arrays for bit in mask]


@pytest.mark.parametrize(
    "filter_with_null",
    [
        [True, None],
        pa.array([None, True]),
        pa.array([None, None], pa.bool_()),
        pa.chunked_array([[True], [None, False]]),
        np.array([False, None]),
        np.ma.masked_array([True, False], mask=[False, True]),
    ],
)
def test_a_null_in_a_filter_is_an_error(filter_with_null: Any) -> None:
    with pytest.raises(ValueError, match="null"):
        fs.RowSelection.from_filters([[True], filter_with_null])


@pytest.mark.parametrize(
    "wrong", [[[1, 0]], [np.array([0.0])], [["yes"]], [[[True]]], np.array([True]), [True, False]]
)
def test_a_filter_that_is_no_boolean_array_is_an_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="boolean"):
        fs.RowSelection.from_filters(wrong)


def test_filters_are_not_kept() -> None:
    mask = np.array([True, False, True])
    selection = fs.RowSelection.from_filters([mask])
    mask[:] = False
    assert mask_of(selection) == [True, False, True]


@st.composite
def ranges_within_rows(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], int]:
    total = draw(st.integers(0, 40))
    bound = st.integers(0, total)
    return draw(st.lists(st.tuples(bound, bound).map(sorted).map(tuple), max_size=12)), total


@settings(deadline=None)
@given(ranges_within_rows(), st.sampled_from([list, tuple, np.array, lambda r: np.array(r, "u2")]))
@example(([(3, 3)], 5), list)
@example(([(0, 2), (2, 4)], 5), list)
@example(([(0, 5), (1, 2), (3, 4)], 5), list)
def test_ranges_may_come_in_any_order_and_overlap(
    case: Any, container: Callable[[Any], Any]
) -> None:
    ranges, total = case
    selection = fs.RowSelection.from_ranges(container(ranges), total)
    assert mask_of(selection) == [any(a <= row < b for a, b in ranges) for row in range(total)]


@pytest.mark.parametrize("wrong", [(-1, 2), (3, 2), (5, 11), (11, 11), (0, 2**63 - 1)])
def test_a_range_that_does_not_fit_is_an_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=rf"{wrong[0]} to {wrong[1]} .* 10 rows"):
        fs.RowSelection.from_ranges([(0, 10), wrong], 10)


def test_ranges_are_pairs_of_integers() -> None:
    with pytest.raises(ValueError, match=str(2**64)):
        fs.RowSelection.from_ranges([(0, 2**64)], 10)
    for wrong in ([(0, 1, 2)], [1, 2], [[(0, 1)]]):
        with pytest.raises(ValueError, match="shape"):
            fs.RowSelection.from_ranges(wrong, 10)
    with pytest.raises(TypeError, match="float64"):
        fs.RowSelection.from_ranges([(0.0, 1.0)], 10)


@st.composite
def rows_of_total(draw: st.DrawFn) -> tuple[list[int], int]:
    total = draw(st.integers(1, 40))
    return draw(st.lists(st.integers(0, total - 1), max_size=50)), total


@settings(deadline=None)
@given(rows_of_total(), st.sampled_from([list, np.array, lambda r: np.array(r, "u1"), pa.array]))
def test_row_numbers_are_a_set(case: Any, container: Callable[[Any], Any]) -> None:
    rows, total = case
    assert mask_of(fs.RowSelection.from_indices(container(rows), total)) == [
        row in rows for row in range(total)
    ]


@pytest.mark.parametrize("wrong", [-1, 10, -(2**63), 2**63, 2**64, -(2**65)])
def test_a_row_number_outside_is_named(wrong: Any) -> None:
    for rows in ([wrong], [0, wrong, 9], np.array([wrong])):
        with pytest.raises(ValueError, match=str(wrong)):
            fs.RowSelection.from_indices(rows, 10)


def test_a_row_number_outside_of_no_rows_is_an_error() -> None:
    assert mask_of(fs.RowSelection.from_indices([], 0)) == []
    with pytest.raises(ValueError, match=r"row number 0 .* 0 rows"):
        fs.RowSelection.from_indices([0], 0)


@pytest.mark.parametrize("wrong", [[1.0], [True], ["1"], [None], [1, None], pa.array([1, None])])
def test_row_numbers_are_integers(wrong: Any) -> None:
    with pytest.raises(TypeError):
        fs.RowSelection.from_indices(wrong, 10)


@pytest.mark.parametrize("wrong", [3, [[1, 2]], np.zeros((2, 2), int)])
def test_row_numbers_are_one_dimensional(wrong: Any) -> None:
    with pytest.raises(ValueError, match="shape"):
        fs.RowSelection.from_indices(wrong, 10)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=20), st.booleans())
def test_pages_are_kept_whole(pages: list[Any], as_arrays: bool) -> None:
    keep = [kept for kept, _ in pages]
    boundaries = [0, *itertools.accumulate(rows for _, rows in pages)]
    selection = (
        fs.RowSelection.from_pages(np.array(keep, bool), np.array(boundaries))
        if as_arrays
        else fs.RowSelection.from_pages(keep, boundaries)
    )
    assert mask_of(selection) == [kept for kept, rows in pages for _ in range(rows)]


@pytest.mark.parametrize(
    ("keep", "boundaries", "message"),
    [
        ([True], [0], "1 pages .* got 1"),
        ([True], [0, 1, 2], "1 pages .* got 3"),
        ([], [], "0 pages .* got 0"),
        ([True], [1, 2], "row 0, not at row 1"),
        ([True, True], [0, 5, 3], "row 3 follows row 5"),
        ([True, None], [0, 5, 9], "null"),
    ],
)
def test_pages_that_make_no_sense_are_an_error(
    keep: list[bool], boundaries: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fs.RowSelection.from_pages(keep, boundaries)


LENGTHS: list[Callable[[Any], Any]] = [
    fs.RowSelection.all,
    fs.RowSelection.none,
    lambda count: fs.RowSelection.from_ranges([], count),
    lambda count: fs.RowSelection.from_indices([], count),
    lambda count: fs.RowSelection.all(9).split(count),
    lambda count: fs.RowSelection.all(9).slice(count, 9),
    lambda count: fs.RowSelection.all(9).slice(0, count),
]
WINDOWS: list[Callable[[Any], Any]] = [
    fs.RowSelection.all(9).offset,
    fs.RowSelection.all(9).limit,
    fs.RowSelection.all(9).last,
]


@pytest.mark.parametrize("use", LENGTHS + WINDOWS)
def test_what_is_no_count_is_refused_everywhere(use: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="-1"):
        use(-1)
    for wrong in (True, 2.0, None):
        with pytest.raises(TypeError):
            use(wrong)


@pytest.mark.parametrize("use", LENGTHS)
def test_a_length_beyond_int64_is_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=str(2**63)):
        use(2**63)


# Looking at selections


@settings(deadline=None)
@given(masks)
def test_mask_indices_and_ranges_say_the_same(mask: Mask) -> None:
    selection = selection_of(mask)
    rows = [row for row, bit in enumerate(mask) if bit]
    assert selection.mask().dtype == bool
    assert selection.mask().tolist() == mask_of(selection) == mask
    assert selection.indices().dtype == np.int64
    assert selection.indices().tolist() == rows
    ranges = selection.ranges()
    assert ranges.dtype == np.int64
    assert ranges.shape == (len(ranges), 2)
    assert [row for start, end in ranges.tolist() for row in range(start, end)] == rows
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(ranges.tolist()))


@settings(deadline=None)
@given(masks)
def test_in_says_whether_a_row_is_selected(mask: Mask) -> None:
    selection = selection_of(mask)
    selected = [row for row, bit in enumerate(mask) if bit]
    rows = range(-2, len(mask) + 2)
    assert [row in selection for row in rows] == [row in selected for row in rows]
    assert [np.int64(row) in selection for row in rows] == [row in selected for row in rows]
    assert 2**80 not in selection


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None, [1], fs.RowSelector.select(1)], ids=repr)
def test_only_row_numbers_are_looked_for(wrong: Any) -> None:
    with pytest.raises(TypeError, match="by their numbers"):
        _ = wrong in fs.RowSelection.all(3)


@settings(deadline=None)
@given(masks)
def test_every_way_to_make_a_selection_makes_the_same_value(mask: Mask) -> None:
    selection, total = selection_of(mask), len(mask)
    others = [
        fs.RowSelection(selection),
        fs.RowSelection.from_filters([mask]),
        fs.RowSelection.from_filters([bit] for bit in mask),
        fs.RowSelection.from_ranges(selection.ranges(), total),
        fs.RowSelection.from_indices(selection.indices()[::-1], total),
        fs.RowSelection.from_pages(mask, range(total + 1)),
        ~~selection,
        selection | selection,
        selection & selection,
        pickle.loads(pickle.dumps(selection)),
        copy.deepcopy(selection),
    ]
    assert all(other == selection for other in others)
    assert {hash(other) for other in others} == {hash(selection)}
    assert {repr(other) for other in others} == {repr(selection)}


@settings(deadline=None)
@given(masks, masks)
def test_selections_are_equal_if_and_only_if_their_masks_are(one: Mask, other: Mask) -> None:
    assert (selection_of(one) == selection_of(other)) is (one == other)
    assert (selection_of(one) != selection_of(other)) is (one != other)


def test_a_selection_is_equal_to_nothing_but_selections() -> None:
    assert fs.RowSelection.all(1) != [fs.RowSelector.select(1)]
    assert fs.RowSelection.none(2) != fs.RowSelection.none(3)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_selection_stays_immutable_through_a_pickle(protocol: int) -> None:
    original = fs.RowSelection.from_indices([1, 4], 8)
    for selection in (
        original,
        pickle.loads(pickle.dumps(original, protocol)),
        copy.copy(original),
    ):
        assert selection == original
        for name in ("row_count", "selected_count", "starts", "new"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(selection, name, 0)
        with pytest.raises(ValueError, match="read-only"):
            selection.starts[0] = 0
        with pytest.raises(ValueError, match="read-only"):
            selection.ends[0] = 0


def test_what_a_selection_hands_out_may_be_changed() -> None:
    selection = fs.RowSelection.from_indices([1, 4], 8)
    selection.mask()[:] = True
    selection.indices()[:] = 0
    selection.ranges()[:] = 0
    assert selection == fs.RowSelection.from_indices([1, 4], 8)


def test_repr_is_short_and_says_which_rows() -> None:
    assert repr(fs.RowSelection.none(5)) == "RowSelection(0 of 5 rows)"
    assert repr(fs.RowSelection.all(5)) == "RowSelection(5 of 5 rows: 0:5)"
    four = fs.RowSelection.from_indices(range(0, 8, 2), 8)
    assert repr(four) == "RowSelection(4 of 8 rows: 0:1, 2:3, 4:5, 6:7)"
    many = fs.RowSelection.from_indices(range(0, 2000, 2), 2000)
    assert repr(many) == "RowSelection(1000 of 2000 rows: 0:1, 2:3, 4:5, ..., 1998:1999)"


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
