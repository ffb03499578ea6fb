"""Exact windows over parts: which hold rows of the window, and which rows of each.

Nobody knows how many rows of a part match before they are counted. Parts are counted in waves, in
the order in which the window counts, until it is over: what lies behind is not even counted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from fretsaw.engine.parts import ScanPart
from fretsaw.engine.query import Window
from fretsaw.model.selection import RowSelection

Count: TypeAlias = Callable[[Sequence[ScanPart], Window], list[int]]
"""How many rows of each part match; it may stop counting at a window that is enough."""


class WantedPart(NamedTuple):
    """A part, and which of its matches are wanted."""

    part: ScanPart
    window: Window
    rows: int | None = None
    """How many these are, if that is known."""


def inside(
    parts: Iterable[ScanPart], window: Window, count: Count, waves: Iterator[int]
) -> Iterator[WantedPart]:
    """The parts that hold rows of the window; for a tail, both run from the end.

    `waves` says how many parts are counted at once, each time, or more if all of their rows would
    not be enough.
    """
    waiting = iter(parts)
    while not window.is_over:
        if not window.skip and window.rows_needed is None:
            yield from (WantedPart(part, Window()) for part in waiting)
            return
        needed = window.skip if window.rows_needed is None else window.rows_needed
        ahead = _ahead(waiting, next(waves), needed or 0)
        if not ahead:
            return
        enough = Window(head=None if window.tail else window.rows_needed, tail=window.tail)
        for part, rows in zip(ahead, count(ahead, enough), strict=True):
            needed = window.rows_needed
            wanted, following = window.apply(RowSelection.all(rows))
            if wanted.selects_any():
                is_whole = wanted.selected_count == rows and (needed is None or rows < needed)
                local = Window() if is_whole else _only(wanted, window)
                yield WantedPart(part, local, wanted.selected_count)
            window = following


def _ahead(waiting: Iterator[ScanPart], count: int, rows: int) -> list[ScanPart]:
    """So many of the parts that are waiting, or as many as may have so many rows."""
    ahead = list(islice(waiting, count))
    possible = sum(part.rows for part in ahead)
    while possible < rows and (part := next(waiting, None)) is not None:
        ahead.append(part)
        possible += part.rows
    return ahead


def _only(wanted: RowSelection, window: Window) -> Window:
    """The window of a part that leaves the rows that are wanted, which are neighbours."""
    if window.tail is not None:
        return Window(tail=wanted.selected_count)
    return Window(skip=int(wanted.starts[0]), head=wanted.selected_count)
