"""Row selections and the lists of booleans that they stand for."""

import itertools

from hypothesis import strategies as st

import fretsaw as fs

Mask = list[bool]

INT64_MAX = 2**63 - 1

scattered = st.lists(st.booleans(), max_size=30)

clustered = st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=6).map(
    lambda runs: [bit for bit, length in runs for _ in range(length)]
)

masks = scattered | clustered


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
