"""Which rows: sets of row numbers, stored as runs, with an algebra that is linear in the runs.

In come masks, row numbers, ranges or verdicts on pages, from users and from indexes alike.
Out go the runs, masks or row numbers that readers follow, and the byte ranges of the pages
that hold a selected row. A selection knows how many rows it speaks about: two that do not
fit each other are an error, never padded. It knows nothing of files and reads nothing.
The algebra itself is in `runs`, and what is accepted as rows in `row_arguments`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fretsaw.model import runs
from fretsaw.model.row_arguments import (
    INT64_MAX,
    pages_with_rows,
    to_booleans,
    to_integers,
    to_length,
    to_page_locations,
    to_row_count,
)
from fretsaw.model.runs import Int64Array
from fretsaw.model.shown import html_bar, text_bar

_MANY_RUNS = 16  # one in so many rows
_ZERO, _NOTHING = np.zeros(1, np.int64), np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class RowSelector:
    """So many consecutive rows, all of them selected or all of them skipped."""

    row_count: int
    selects: bool

    def __post_init__(self) -> None:
        """Check the count; a NumPy integer becomes an int."""
        object.__setattr__(self, "row_count", to_length(self.row_count))

    @classmethod
    def select(cls, row_count: SupportsIndex) -> RowSelector:
        """Select the next `row_count` rows."""
        return cls(to_length(row_count), True)

    @classmethod
    def skip(cls, row_count: SupportsIndex) -> RowSelector:
        """Skip the next `row_count` rows."""
        return cls(to_length(row_count), False)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RowSelection:
    """An immutable set of rows out of `row_count`; run i is `starts[i]` up to before `ends[i]`.

    The runs are in order and neither empty nor adjoining, so equal sets have equal arrays.

    >>> RowSelection([RowSelector.skip(2), RowSelector.select(3), RowSelector.select(1)])
    RowSelection(4 of 6 rows: 2:6)
    """

    starts: Int64Array
    ends: Int64Array
    row_count: int
    selected_count: int
    _bits: NDArray[np.uint8] | None

    def __init__(self, selectors: Iterable[RowSelector] = ()) -> None:
        """Lay selectors end to end."""
        signed = np.fromiter(map(_signed_count, selectors), np.int64)
        selects = signed > 0
        starts = signed[selects]
        edges = np.cumsum(np.abs(signed, out=signed), out=signed)
        if edges.min(initial=0) < 0:  # the first sum beyond int64 wraps to below zero
            raise ValueError(f"the selectors hold more than {INT64_MAX} rows")
        ends = edges[selects]
        np.subtract(ends, starts, out=starts)
        self._freeze(*runs.merge(starts, ends), int(edges.max(initial=0)))

    @classmethod
    def of_runs(cls, starts: NDArray[Any], ends: NDArray[Any], row_count: int) -> RowSelection:
        """Wrap runs that are in order and neither empty nor adjoining."""
        selection = cls.__new__(cls)
        selection._freeze(starts, ends, row_count)
        return selection

    def _freeze(self, starts: NDArray[Any], ends: NDArray[Any], row_count: int) -> None:
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        ends = np.ascontiguousarray(ends, dtype=np.int64)
        starts.setflags(write=False)
        ends.setflags(write=False)
        set_field = object.__setattr__
        set_field(self, "starts", starts)
        set_field(self, "ends", ends)
        set_field(self, "row_count", row_count)
        set_field(self, "selected_count", runs.count_in(starts, ends))
        set_field(self, "_bits", None)

    @classmethod
    def all(cls, row_count: SupportsIndex) -> RowSelection:
        """Every one of `row_count` rows."""
        count = to_length(row_count)
        return cls.of_runs(_ZERO, np.array([count]), count) if count else cls.none(0)

    @classmethod
    def none(cls, row_count: SupportsIndex) -> RowSelection:
        """Not one of `row_count` rows."""
        return cls.of_runs(_NOTHING, _NOTHING, to_length(row_count))

    @classmethod
    def from_filters(cls, arrays: Iterable[ArrayLike]) -> RowSelection:
        """Rows where consecutive boolean arrays (NumPy, Arrow, lists) are true.

        >>> RowSelection.from_filters([[True, False], [False, True, True]])
        RowSelection(3 of 5 rows: 0:1, 3:5)
        """
        return cls().concat(*map(cls._from_mask, arrays))

    @classmethod
    def _from_mask(cls, values: ArrayLike) -> RowSelection:
        mask = to_booleans(values, "a filter")
        selection = cls.of_runs(*runs.runs_of(mask), mask.size)
        if selection.starts.size * _MANY_RUNS > mask.size:
            # Bits will be asked for then, and cost more to make from the runs.
            object.__setattr__(selection, "_bits", runs.pack(mask))
        return selection

    @classmethod
    def from_ranges(cls, ranges: ArrayLike, total: SupportsIndex) -> RowSelection:
        """Rows in any of the `(start, end)` ranges, which may overlap, of `total` rows.

        >>> RowSelection.from_ranges([(6, 8), (1, 3), (2, 4)], 10)
        RowSelection(5 of 10 rows: 1:4, 6:8)
        """
        total = to_length(total)
        starts, ends = to_integers(ranges, "ranges", (2,)).T
        wrong = np.flatnonzero((starts < 0) | (ends < starts) | (ends > total))
        if wrong.size:
            start, end = starts[wrong[0]], ends[wrong[0]]
            raise ValueError(f"the range from {start} to {end} does not fit {total} rows")
        kept = starts < ends
        edges = (runs.sorted_edges(edge[kept], row_count=total) for edge in (starts, ends))
        return cls.of_runs(*runs.merge(*edges), total)

    @classmethod
    def from_indices(cls, rows: ArrayLike, total: SupportsIndex) -> RowSelection:
        """The rows with these numbers, in any order, repeated or not, of `total` rows.

        >>> RowSelection.from_indices([7, 2, 1, 2], 10)
        RowSelection(3 of 10 rows: 1:3, 7:8)
        """
        total = to_length(total)
        starts = np.sort(to_integers(rows, "row numbers"), kind="stable")
        for outermost in starts[[0, -1]] if starts.size else ():
            if not 0 <= outermost < total:
                raise ValueError(f"row number {outermost} is outside of {total} rows")
        return cls.of_runs(*runs.merge(starts, starts + 1), total)

    @classmethod
    def from_pages(cls, keep: ArrayLike, boundaries: ArrayLike) -> RowSelection:
        """The rows of the kept pages; page i holds rows `boundaries[i]` to `boundaries[i + 1]`.

        >>> RowSelection.from_pages([True, False, True], [0, 10, 20, 25])
        RowSelection(15 of 25 rows: 0:10, 20:25)
        """
        kept, edges = to_booleans(keep, "keep"), to_integers(boundaries, "page boundaries")
        if edges.size != kept.size + 1:
            raise ValueError(f"{kept.size} pages need one boundary more, got {edges.size}")
        kept = kept & pages_with_rows(edges)
        return cls.of_runs(*runs.merge(edges[:-1][kept], edges[1:][kept]), int(edges[-1]))

    @property
    def skipped_count(self) -> int:
        """How many rows are not selected."""
        return self.row_count - self.selected_count

    def selects_any(self) -> bool:
        """Whether at least one row is selected."""
        return self.selected_count > 0

    def __iter__(self) -> Iterator[RowSelector]:
        """Selectors that in turn skip and select, never empty.

        >>> [(run.row_count, run.selects) for run in RowSelection.from_indices([2, 3], 4)]
        [(2, False), (2, True)]
        """
        position = 0
        # A memoryview hands out Python ints one by one: no list of all runs is built.
        for start, end in zip(self.starts.data, self.ends.data, strict=True):
            if start > position:
                yield RowSelector.skip(start - position)
            yield RowSelector.select(end - start)
            position = end
        if position < self.row_count:
            yield RowSelector.skip(self.row_count - position)

    def __contains__(self, row: SupportsIndex) -> bool:
        """Whether the row of this number is selected; one that is outside is not.

        >>> rows = RowSelection.from_indices([2, 3], 9)
        >>> 3 in rows, 4 in rows, 9 in rows
        (True, False, False)
        """
        if isinstance(row, bool) or not hasattr(row, "__index__"):
            raise TypeError(f"rows are looked for by their numbers, got {row!r}")
        number = operator.index(row)
        if not 0 <= number < self.row_count:
            return False
        runs_begun = int(np.searchsorted(self.starts, number, side="right"))
        return runs_begun > 0 and number < int(self.ends[runs_begun - 1])

    def ranges(self) -> Int64Array:
        """The runs as an array of shape (n, 2): start, and end (exclusive).

        >>> RowSelection.from_indices([1, 2, 5], 8).ranges().tolist()
        [[1, 3], [5, 6]]
        """
        return np.stack((self.starts, self.ends), axis=1)

    def mask(self) -> NDArray[np.bool_]:
        """A boolean for each row.

        >>> RowSelection.from_indices([1], 3).mask().tolist()
        [False, True, False]
        """
        return runs.mask_of(self.starts, self.ends, self.row_count)

    def bits(self) -> NDArray[np.uint8]:
        """A bit for each row, the lowest first; kept, for one who asks again."""
        bits = self._bits
        if bits is None:
            bits = runs.bits_of(self.starts, self.ends, self.row_count)
            object.__setattr__(self, "_bits", bits)
        return bits

    def indices(self) -> Int64Array:
        """The numbers of the selected rows, ascending.

        >>> RowSelection.from_ranges([(1, 3), (5, 6)], 8).indices().tolist()
        [1, 2, 5]
        """
        return runs.row_numbers(self.starts, self.ends)

    def and_then(self, other: RowSelection) -> RowSelection:
        """Those of the selected rows that `other`, a selection over just them, selects.

        >>> RowSelection.from_indices([1, 2, 5], 8).and_then(RowSelection.from_indices([0, 2], 3))
        RowSelection(2 of 8 rows: 1:2, 5:6)
        """
        if other.row_count != self.selected_count:
            wanted, given = self.selected_count, other.row_count
            raise ValueError(f"{wanted} rows are selected, but the selection of them has {given}")
        if not self.skipped_count:
            return other
        # A run of `other` is all of what is selected here between two cuts.
        here = self.starts, self.ends
        cuts = (runs.cuts_after(*here, counts) for counts in (other.starts, other.ends))
        edges = self._edges_with(*cuts)
        return self.of_runs(*runs.overlap(*edges), self.row_count)

    def intersection(self, other: RowSelection) -> RowSelection:
        """The rows that both select, also written `&`.

        >>> RowSelection.from_ranges([(0, 4)], 9) & RowSelection.from_ranges([(2, 9)], 9)
        RowSelection(2 of 9 rows: 2:4)
        """
        self._check_fits(other)
        if not (self.skipped_count and other.skipped_count):
            return self if self.skipped_count else other
        if not (self.selected_count and other.selected_count):
            return other if self.selected_count else self
        for one, many in ((self, other), (other, self)):
            if len(one.starts) == 1:
                return many.between(int(one.starts[0]), int(one.ends[0]))
        edges = self._edges_with(other.starts, other.ends)
        return self.of_runs(*runs.overlap(*edges), self.row_count)

    def union(self, other: RowSelection) -> RowSelection:
        """The rows that at least one selects, also written `|`.

        >>> RowSelection.from_ranges([(0, 4)], 9) | RowSelection.from_ranges([(2, 6)], 9)
        RowSelection(6 of 9 rows: 0:6)
        """
        self._check_fits(other)
        if not (self.selected_count and other.selected_count):
            return self if self.selected_count else other
        edges = self._edges_with(other.starts, other.ends)
        return self.of_runs(*runs.merge(*edges), self.row_count)

    def invert(self) -> RowSelection:
        """The rows that are not selected, also written `~`.

        >>> ~RowSelection.from_ranges([(2, 4)], 9)
        RowSelection(7 of 9 rows: 0:2, 4:9)
        """
        if not self.selected_count or not self.skipped_count:
            return self.none(self.row_count) if self.selected_count else self.all(self.row_count)
        gaps = runs.invert(self.starts, self.ends, self.row_count)
        return self.of_runs(*gaps, self.row_count)

    __and__, __or__, __invert__ = intersection, union, invert

    def concat(self, *others: RowSelection) -> RowSelection:
        """This selection followed by others, as those of consecutive blocks.

        >>> RowSelection.all(2).concat(RowSelection.all(1), RowSelection.none(4))
        RowSelection(3 of 7 rows: 0:3)
        """
        parts = [part for part in (self, *others) if part.row_count]
        if len(parts) < 2:
            return parts[0] if parts else self
        row_count = to_length(sum(part.row_count for part in parts))
        starts = np.concatenate([part.starts for part in parts])
        ends = np.concatenate([part.ends for part in parts])
        run = first_row = 0
        for part in parts:
            for edges in (starts, ends):
                edges[run : run + part.starts.size] += first_row
            run, first_row = run + part.starts.size, first_row + part.row_count
        return self.of_runs(*runs.merge(starts, ends), row_count)

    def slice(self, start: SupportsIndex, stop: SupportsIndex) -> RowSelection:
        """What is selected of the rows `start` to `stop`, counted from `start`.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).slice(3, 8)
        RowSelection(3 of 5 rows: 0:1, 3:5)
        """
        start, stop = to_row_count(start), to_row_count(stop)
        if not start <= stop <= self.row_count:
            raise ValueError(f"rows {start} to {stop} do not fit {self.row_count} rows")
        if stop - start == self.row_count:
            return self
        starts, ends = runs.between(self.starts, self.ends, start, stop)
        return self.of_runs(starts - start, ends - start, stop - start)

    def between(self, start: SupportsIndex, stop: SupportsIndex) -> RowSelection:
        """Only those of the rows `start` to `stop`, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).between(3, 8)
        RowSelection(3 of 10 rows: 3:4, 6:8)
        """
        kept = runs.between(self.starts, self.ends, to_row_count(start), to_row_count(stop))
        return self.of_runs(*kept, self.row_count)

    def split(self, row_count: SupportsIndex) -> tuple[RowSelection, RowSelection]:
        """The first `row_count` rows, and the rest.

        >>> RowSelection.from_ranges([(1, 4)], 6).split(2)
        (RowSelection(1 of 2 rows: 1:2), RowSelection(2 of 4 rows: 0:2))
        """
        return self.slice(0, row_count), self.slice(row_count, self.row_count)

    def offset(self, count: SupportsIndex) -> RowSelection:
        """Without the first `count` selected rows, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).offset(2)
        RowSelection(4 of 10 rows: 3:4, 6:9)
        """
        return self.between(self._cut_after(to_row_count(count)), self.row_count)

    def limit(self, count: SupportsIndex) -> RowSelection:
        """Only the first `count` selected rows, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).limit(4)
        RowSelection(4 of 10 rows: 1:4, 6:7)
        """
        return self.between(0, self._cut_after(to_row_count(count)))

    def last(self, count: SupportsIndex) -> RowSelection:
        """Only the last `count` selected rows, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).last(4)
        RowSelection(4 of 10 rows: 3:4, 6:9)
        """
        return self.offset(max(self.selected_count - to_row_count(count), 0))

    def counts_before(self, rows: ArrayLike) -> Int64Array:
        """How many selected rows lie before each of these rows.

        >>> RowSelection.from_ranges([(2, 5), (8, 9)], 10).counts_before([0, 3, 8, 10])
        array([0, 1, 3, 4])
        """
        return runs.counts_before(self.starts, self.ends, to_integers(rows, "row numbers"))

    def scan_ranges(self, page_locations: Sequence[Any] | NDArray[Any]) -> list[tuple[int, int]]:
        """`(offset, length)` pairs, in bytes, of the pages that hold a selected row, in page order.

        A page location is a triple (first row, offset, size), a row of an integer array of
        shape (n, 3), or an object with `first_row_index`, `offset`, `compressed_page_size`.

        >>> RowSelection.from_indices([12], 30).scan_ranges([(0, 4, 70), (10, 74, 50)])
        [(74, 50)]
        """
        first_rows, offsets, lengths = to_page_locations(page_locations).T
        boundaries = np.append(first_rows, self.row_count)
        hit = pages_with_rows(boundaries)
        runs_ended = np.searchsorted(self.ends, boundaries[:-1], side="right")
        hit &= np.searchsorted(self.starts, boundaries[1:], side="left") > runs_ended
        return list(zip(offsets[hit].tolist(), lengths[hit].tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        """Whether both select the same rows out of equally many."""
        if not isinstance(other, RowSelection):
            return NotImplemented
        same_starts = np.array_equal(self.starts, other.starts)
        same_ends = np.array_equal(self.ends, other.ends)
        return self.row_count == other.row_count and same_starts and same_ends

    def __hash__(self) -> int:
        """Hash by value."""
        return hash((self.row_count, hash(self.starts.tobytes()), hash(self.ends.tobytes())))

    def __reduce__(self) -> tuple[Callable[..., RowSelection], tuple[Any, ...]]:
        """Pickle the runs; the arrays come out writable, so they have to be frozen again."""
        return self.of_runs, (self.starts, self.ends, self.row_count)

    def __repr__(self) -> str:
        """Show the counts, and the first runs as slices."""
        shown = [f"{start}:{end}" for start, end in np.c_[self.starts[:4], self.ends[:4]]]
        if self.starts.size > 4:
            shown[3:] = ["...", f"{self.starts[-1]}:{self.ends[-1]}"]
        details = f": {', '.join(shown)}" if shown else ""
        return f"RowSelection({self.selected_count} of {self.row_count} rows{details})"

    def __str__(self) -> str:
        bar = text_bar(self.starts, self.ends, self.row_count)
        return f"|{bar}| {self.selected_count:,} of {self.row_count:,} rows"

    def _repr_html_(self) -> str:
        bar = html_bar(self.starts, self.ends, self.row_count)
        return f"{bar} {self.selected_count:,} of {self.row_count:,} rows"

    def _check_fits(self, other: RowSelection) -> None:
        if not isinstance(other, RowSelection):
            raise TypeError(f"a selection combines with a selection, got {type(other).__name__}")
        if self.row_count != other.row_count:
            one, two = self.row_count, other.row_count
            raise ValueError(f"a selection over {one} rows does not fit one over {two} rows")

    def _edges_with(self, starts: Int64Array, ends: Int64Array) -> Iterator[NDArray[Any]]:
        """Starts, then ends, of the runs here and of other runs, each in order by itself."""
        yield runs.sorted_edges(self.starts, starts, row_count=self.row_count)
        yield runs.sorted_edges(self.ends, ends, row_count=self.row_count)

    def _cut_after(self, count: int) -> int:
        """The row to cut at, so that just so many selected rows, or all, lie before the cut."""
        if count >= self.selected_count:
            return self.row_count
        return int(runs.cuts_after(self.starts, self.ends, np.array([count]))[0])


def _signed_count(selector: RowSelector) -> int:
    """How many rows are selected, or as a negative number how many are skipped."""
    if not isinstance(selector, RowSelector):
        raise TypeError(f"a RowSelection is made of RowSelectors, got {selector!r}")
    return selector.row_count if selector.selects else -selector.row_count
