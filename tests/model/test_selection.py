"""Row selections against plain lists of booleans, one boolean for each row."""

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.selections import (
    INT64_MAX,
    Mask,
    mask_of,
    masks,
    selection_of,
)

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
