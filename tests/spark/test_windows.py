"""Windows over parts, against slices of the whole: no session is needed for that."""

from collections.abc import Sequence
from itertools import count, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from fretsaw.engine.parts import ScanPart
from fretsaw.engine.query import Window
from fretsaw.spark.windows import WantedPart, inside
from fretsaw.storage.listing import Entry

counts = st.integers(0, 12)
windows = st.one_of(
    st.builds(Window, skip=st.none() | st.integers(0, 40), head=st.none() | st.integers(0, 30)),
    st.builds(Window, tail=st.integers(0, 40)),
)


def part(number: int, matches: int, others: int) -> ScanPart:
    return ScanPart(Entry(f"file {number}"), (), 1, rows=matches + others, proven=0)


def chosen(window: Window, rows: Sequence[str]) -> Sequence[str]:
    """What a window leaves of a list."""
    if window.tail is not None:
        return rows[max(0, len(rows) - window.tail) :]
    end = None if window.head is None else (window.skip or 0) + window.head
    return rows[window.skip or 0 : end]


@given(st.lists(st.tuples(counts, counts), max_size=9), windows, st.booleans())
def test_pieces_are_what_the_window_leaves(
    sizes: list[tuple[int, int]], window: Window, grows: bool
) -> None:
    parts = [part(number, *size) for number, size in enumerate(sizes)]
    matches = {
        each: [f"{number}.{row}" for row in range(size)]
        for number, (each, (size, _)) in enumerate(zip(parts, sizes, strict=True))
    }
    counted: list[ScanPart] = []

    def counts_of(some: Sequence[ScanPart], enough: Window) -> list[int]:
        counted.extend(some)
        return [len(chosen(enough, matches[each])) for each in some]

    backward = window.tail is not None
    waves = (2 * 4**wave for wave in count()) if grows else repeat(1)
    pieces = list(inside(parts[::-1] if backward else parts, window, counts_of, waves))
    ordered: list[WantedPart] = pieces[::-1] if backward else pieces
    found = [row for piece in ordered for row in chosen(piece.window, matches[piece.part])]
    every = [row for each in parts for row in matches[each]]
    assert found == chosen(window, every)
    for piece in pieces:
        wanted = len(chosen(piece.window, matches[piece.part]))
        assert piece.rows in (None, wanted)
    assert len(set(counted)) == len(counted)
    if not grows and window.tail is not None:
        before_last = sum(len(matches[each]) for each in counted[:-1])
        assert before_last < max(window.tail, 1)
