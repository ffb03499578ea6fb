"""Which rows: sets of row numbers, stored as runs, with an algebra that is linear in the runs.

In come masks, row numbers, ranges or verdicts on pages, from users and from indexes alike.
Out go the runs, masks or row numbers that readers follow, and the byte ranges of the pages
that hold a selected row. A selection knows how many rows it speaks about: two that do not
fit each other are an error, never padded. It knows nothing of files and reads nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Int64Array = NDArray[np.int64]

_INT64_MAX = 2**63 - 1
_MANY_EDGES = 8  # one in so many rows


@dataclass(frozen=True, slots=True)
class RowSelector:
    """So many consecutive rows, all of them selected or all of them skipped."""

    row_count: int
    selects: bool

    def __post_init__(self) -> None:
        """Check the count; a NumPy integer becomes an int."""
        object.__setattr__(self, "row_count", _length(self.row_count))

    @classmethod
    def select(cls, row_count: SupportsIndex) -> RowSelector:
        """Select the next `row_count` rows."""
        return cls(_length(row_count), True)

    @classmethod
    def skip(cls, row_count: SupportsIndex) -> RowSelector:
        """Skip the next `row_count` rows."""
        return cls(_length(row_count), False)


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
            raise ValueError(f"the selectors hold more than {_INT64_MAX} rows")
        ends = edges[selects]
        np.subtract(ends, starts, out=starts)
        self._freeze(*_merge(starts, ends), int(edges.max(initial=0)))

    @classmethod
    def _of_runs(cls, starts: NDArray[Any], ends: NDArray[Any], row_count: int) -> RowSelection:
        """Wrap runs that are in order and neither empty nor adjoining."""
        selection = cls.__new__(cls)
        selection._freeze(starts, ends, row_count)
        return selection

    def _freeze(self, starts: NDArray[Any], ends: NDArray[Any], row_count: int) -> None:
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        ends = np.ascontiguousarray(ends, dtype=np.int64)
        starts.setflags(write=False)
        ends.setflags(write=False)
        # Either sum may wrap around 2**64; their difference, taken modulo 2**64, is exact.
        selected_count = (int(ends.sum()) - int(starts.sum())) % 2**64
        values = (starts, ends, row_count, selected_count, None)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def all(cls, row_count: SupportsIndex) -> RowSelection:
        """Every one of `row_count` rows."""
        return cls.none(row_count).invert()

    @classmethod
    def none(cls, row_count: SupportsIndex) -> RowSelection:
        """Not one of `row_count` rows."""
        return cls._of_runs(np.empty(0), np.empty(0), _length(row_count))

    @classmethod
    def from_filters(cls, arrays: Iterable[ArrayLike]) -> RowSelection:
        """Rows where consecutive boolean arrays (NumPy, Arrow, lists) are true.

        >>> RowSelection.from_filters([[True, False], [False, True, True]])
        RowSelection(3 of 5 rows: 0:1, 3:5)
        """
        return cls().concat(*map(cls._from_mask, arrays))

    @classmethod
    def _from_mask(cls, values: ArrayLike) -> RowSelection:
        mask = _booleans(values, "a filter")
        framed = np.zeros(mask.size + 2, dtype=np.bool_)
        framed[1:-1] = mask
        edges = np.flatnonzero(framed[1:] != framed[:-1])
        selection = cls._of_runs(edges[0::2], edges[1::2], mask.size)
        if edges.size * _MANY_EDGES > mask.size:  # then they are asked for, and cost more later
            object.__setattr__(selection, "_bits", _packed(mask))
        return selection

    @classmethod
    def from_ranges(cls, ranges: ArrayLike, total: SupportsIndex) -> RowSelection:
        """Rows in any of the `(start, end)` ranges, which may overlap, of `total` rows.

        >>> RowSelection.from_ranges([(6, 8), (1, 3), (2, 4)], 10)
        RowSelection(5 of 10 rows: 1:4, 6:8)
        """
        total = _length(total)
        starts, ends = _integers(ranges, "ranges", (2,)).T
        wrong = np.flatnonzero((starts < 0) | (ends < starts) | (ends > total))
        if wrong.size:
            start, end = starts[wrong[0]], ends[wrong[0]]
            raise ValueError(f"the range from {start} to {end} does not fit {total} rows")
        kept = starts < ends
        edges = cls.none(total)._edges_with(starts[kept], ends[kept])
        return cls._of_runs(*_merge(*edges), total)

    @classmethod
    def from_indices(cls, rows: ArrayLike, total: SupportsIndex) -> RowSelection:
        """The rows with these numbers, in any order, repeated or not, of `total` rows.

        >>> RowSelection.from_indices([7, 2, 1, 2], 10)
        RowSelection(3 of 10 rows: 1:3, 7:8)
        """
        total = _length(total)
        starts = np.sort(_integers(rows, "row numbers"), kind="stable")
        for outermost in starts[[0, -1]] if starts.size else ():
            if not 0 <= outermost < total:
                raise ValueError(f"row number {outermost} is outside of {total} rows")
        return cls._of_runs(*_merge(starts, starts + 1), total)

    @classmethod
    def from_pages(cls, keep: ArrayLike, boundaries: ArrayLike) -> RowSelection:
        """The rows of the kept pages; page i holds rows `boundaries[i]` to `boundaries[i + 1]`.

        >>> RowSelection.from_pages([True, False, True], [0, 10, 20, 25])
        RowSelection(15 of 25 rows: 0:10, 20:25)
        """
        kept, edges = _booleans(keep, "keep"), _integers(boundaries, "page boundaries")
        if edges.size != kept.size + 1:
            raise ValueError(f"{kept.size} pages need one boundary more, got {edges.size}")
        kept = kept & _holds_rows(edges)
        return cls._of_runs(*_merge(edges[:-1][kept], edges[1:][kept]), int(edges[-1]))

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
        return _mask_of(self.starts, self.ends, self.row_count)

    def bits(self) -> NDArray[np.uint8]:
        """A bit for each row, the lowest first; kept, for one who asks again."""
        bits = self._bits
        if bits is None:
            bits = bits_of(self.starts, self.ends, self.row_count)
            object.__setattr__(self, "_bits", bits)
        return bits

    def indices(self) -> Int64Array:
        """The numbers of the selected rows, ascending.

        >>> RowSelection.from_ranges([(1, 3), (5, 6)], 8).indices().tolist()
        [1, 2, 5]
        """
        rows = np.ones(self.selected_count, np.int64)
        if rows.size:
            rows[0] = self.starts[0]
            rows[self._selected_up_to_runs()[:-1]] += self.starts[1:] - self.ends[:-1]
        return np.cumsum(rows, out=rows)

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
        edges = self._edges_with(self._cuts_after(other.starts), self._cuts_after(other.ends))
        return self._of_runs(*_overlap(*edges), self.row_count)

    def intersection(self, other: RowSelection) -> RowSelection:
        """The rows that both select, also written `&`.

        >>> RowSelection.from_ranges([(0, 4)], 9) & RowSelection.from_ranges([(2, 9)], 9)
        RowSelection(2 of 9 rows: 2:4)
        """
        self._check_fits(other)
        if not (self.skipped_count and other.skipped_count):
            return self if self.skipped_count else other
        edges = self._edges_with(other.starts, other.ends)
        return self._of_runs(*_overlap(*edges), self.row_count)

    def union(self, other: RowSelection) -> RowSelection:
        """The rows that at least one selects, also written `|`.

        >>> RowSelection.from_ranges([(0, 4)], 9) | RowSelection.from_ranges([(2, 6)], 9)
        RowSelection(6 of 9 rows: 0:6)
        """
        self._check_fits(other)
        if not (self.selected_count and other.selected_count):
            return self if self.selected_count else other
        edges = self._edges_with(other.starts, other.ends)
        return self._of_runs(*_merge(*edges), self.row_count)

    def invert(self) -> RowSelection:
        """The rows that are not selected, also written `~`.

        >>> ~RowSelection.from_ranges([(2, 4)], 9)
        RowSelection(7 of 9 rows: 0:2, 4:9)
        """
        starts, ends = np.append(0, self.ends), np.append(self.starts, self.row_count)
        # Only the first and the last gap can be empty: runs never adjoin.
        inner = slice(int(ends[0] == 0), ends.size - int(starts[-1] == self.row_count))
        return self._of_runs(starts[inner], ends[inner], self.row_count)

    __and__, __or__, __invert__ = intersection, union, invert

    def concat(self, *others: RowSelection) -> RowSelection:
        """This selection followed by others, as those of consecutive blocks.

        >>> RowSelection.all(2).concat(RowSelection.all(1), RowSelection.none(4))
        RowSelection(3 of 7 rows: 0:3)
        """
        parts = [part for part in (self, *others) if part.row_count]
        if len(parts) < 2:
            return parts[0] if parts else self
        row_count = _length(sum(part.row_count for part in parts))
        starts = np.concatenate([part.starts for part in parts])
        ends = np.concatenate([part.ends for part in parts])
        run = first_row = 0
        for part in parts:
            for edges in (starts, ends):
                edges[run : run + part.starts.size] += first_row
            run, first_row = run + part.starts.size, first_row + part.row_count
        return self._of_runs(*_merge(starts, ends), row_count)

    def slice(self, start: SupportsIndex, stop: SupportsIndex) -> RowSelection:
        """What is selected of the rows `start` to `stop`, counted from `start`.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).slice(3, 8)
        RowSelection(3 of 5 rows: 0:1, 3:5)
        """
        start, stop = _count(start), _count(stop)
        if not start <= stop <= self.row_count:
            raise ValueError(f"rows {start} to {stop} do not fit {self.row_count} rows")
        starts, ends = self._runs_between(start, stop)
        return self._of_runs(starts - start, ends - start, stop - start)

    def between(self, start: SupportsIndex, stop: SupportsIndex) -> RowSelection:
        """Only those of the rows `start` to `stop`, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).between(3, 8)
        RowSelection(3 of 10 rows: 3:4, 6:8)
        """
        return self._of_runs(*self._runs_between(_count(start), _count(stop)), self.row_count)

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
        runs = self._runs_between(self._cut_after(_count(count)), self.row_count)
        return self._of_runs(*runs, self.row_count)

    def limit(self, count: SupportsIndex) -> RowSelection:
        """Only the first `count` selected rows, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).limit(4)
        RowSelection(4 of 10 rows: 1:4, 6:7)
        """
        return self._of_runs(*self._runs_between(0, self._cut_after(_count(count))), self.row_count)

    def last(self, count: SupportsIndex) -> RowSelection:
        """Only the last `count` selected rows, over as many rows as before.

        >>> RowSelection.from_ranges([(1, 4), (6, 9)], 10).last(4)
        RowSelection(4 of 10 rows: 3:4, 6:9)
        """
        return self.offset(max(self.selected_count - _count(count), 0))

    def counts_before(self, rows: ArrayLike) -> Int64Array:
        """How many selected rows lie before each of these rows.

        >>> RowSelection.from_ranges([(2, 5), (8, 9)], 10).counts_before([0, 3, 8, 10])
        array([0, 1, 3, 4])
        """
        places = _integers(rows, "row numbers")
        if not self.starts.size:
            return np.zeros(places.size, dtype=np.int64)
        run = np.maximum(np.searchsorted(self.starts, places, side="right") - 1, 0)
        behind = np.clip(self.ends[run] - places, 0, self.ends[run] - self.starts[run])
        before: Int64Array = self._selected_up_to_runs()[run] - behind
        return before

    def scan_ranges(self, page_locations: Sequence[Any] | NDArray[Any]) -> list[tuple[int, int]]:
        """`(offset, length)` pairs, in bytes, of the pages that hold a selected row, in page order.

        A page location is a triple (first row, offset, size), a row of an integer array of
        shape (n, 3), or an object with `first_row_index`, `offset`, `compressed_page_size`.

        >>> RowSelection.from_indices([12], 30).scan_ranges([(0, 4, 70), (10, 74, 50)])
        [(74, 50)]
        """
        if len(page_locations) and hasattr(page_locations[0], "first_row_index"):
            fields = operator.attrgetter("first_row_index", "offset", "compressed_page_size")
            page_locations = list(map(fields, page_locations))
        first_rows, offsets, lengths = _integers(page_locations, "page locations", (3,)).T
        edges = np.append(first_rows, self.row_count)
        hit = _holds_rows(edges)
        runs_ended = np.searchsorted(self.ends, edges[:-1], side="right")
        hit &= np.searchsorted(self.starts, edges[1:], side="left") > runs_ended
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
        return self._of_runs, (self.starts, self.ends, self.row_count)

    def __repr__(self) -> str:
        """Show the counts, and the first runs as slices."""
        runs = [f"{start}:{end}" for start, end in np.c_[self.starts[:4], self.ends[:4]]]
        if self.starts.size > 4:
            runs[3:] = ["...", f"{self.starts[-1]}:{self.ends[-1]}"]
        details = f": {', '.join(runs)}" if runs else ""
        return f"RowSelection({self.selected_count} of {self.row_count} rows{details})"

    def _check_fits(self, other: RowSelection) -> None:
        if not isinstance(other, RowSelection):
            raise TypeError(f"a selection combines with a selection, got {type(other).__name__}")
        if self.row_count != other.row_count:
            one, two = self.row_count, other.row_count
            raise ValueError(f"a selection over {one} rows does not fit one over {two} rows")

    def _edges_with(self, *runs: Int64Array) -> Iterator[NDArray[Any]]:
        """Starts, then ends, of the runs here and of other runs, each in order by itself."""
        # Half the memory, and less time, for all but the largest data.
        dtype = np.int32 if self.row_count <= np.iinfo(np.int32).max else np.int64
        for edges in zip((self.starts, self.ends), runs, strict=True):
            joined = np.concatenate(edges, dtype=dtype, casting="same_kind")
            joined.sort(kind="stable")  # a linear merge, where both are in order
            yield joined

    def _selected_up_to_runs(self) -> Int64Array:
        """How many rows are selected up to the end of each run."""
        lengths = self.ends - self.starts
        return np.cumsum(lengths, out=lengths)

    def _cuts_after(self, counts: Int64Array) -> Int64Array:
        """Rows to cut at, so that just so many selected rows lie before each cut."""
        selected = self._selected_up_to_runs()
        runs = np.searchsorted(selected, counts, side="left")
        return (self.ends - selected)[runs] + counts

    def _cut_after(self, count: int) -> int:
        """As `_cuts_after` for one count, which may exceed what is selected."""
        if count >= self.selected_count:
            return self.row_count
        return int(self._cuts_after(np.array([count]))[0])

    def _runs_between(self, start: int, stop: int) -> tuple[Int64Array, Int64Array]:
        """The runs, or parts of them, that lie in the rows `start` to `stop`."""
        first = np.searchsorted(self.ends, start, side="right")
        # No rows are in no run, not even where they are in the middle of one.
        last = np.searchsorted(self.starts, stop, side="left") if start < stop else first
        return np.maximum(self.starts[first:last], start), np.minimum(self.ends[first:last], stop)


def _signed_count(selector: RowSelector) -> int:
    """How many rows are selected, or as a negative number how many are skipped."""
    if not isinstance(selector, RowSelector):
        raise TypeError(f"a RowSelection is made of RowSelectors, got {selector!r}")
    return selector.row_count if selector.selects else -selector.row_count


def _count(value: SupportsIndex) -> int:
    if isinstance(value, bool):
        raise TypeError(f"a number of rows must be an integer, got {value}")
    count = operator.index(value)
    if count < 0:
        raise ValueError(f"a number of rows must not be negative, got {count}")
    return count


def _length(value: SupportsIndex) -> int:
    count = _count(value)
    if count > _INT64_MAX:
        raise ValueError(f"a selection has at most {_INT64_MAX} rows, got {count}")
    return count


def _integers(values: ArrayLike, name: str, row_shape: tuple[int, ...] = ()) -> Int64Array:
    """`values` as int64, where nothing was rounded, wrapped or taken for a number."""
    array = np.asarray(values)
    if not array.size:  # np.asarray([]) is one-dimensional and float
        return np.empty((0, *row_shape), np.int64)
    if array.ndim == 0 or array.shape[1:] != row_shape:
        raise ValueError(f"{name} must be of shape {('n', *row_shape)}, got {array.shape}")
    if array.dtype.kind in "ufO":  # where NumPy puts Python ints beyond int64
        for extreme in (array.min(), array.max()):
            if extreme < -(2**63) or extreme >= 2**63:
                raise ValueError(f"{name} must fit 64 bits, got {extreme:.0f}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def _booleans(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise TypeError(f"{name} must be a one-dimensional boolean array, got {values!r}")
    if np.ma.is_masked(values) or array.dtype == object:  # Arrow's nulls make an object array
        raise ValueError(f"{name} must not hold a null: a row is selected or not")
    if array.size and array.dtype != bool:
        raise TypeError(f"{name} must be boolean, got {array.dtype}")
    return array.astype(bool, copy=False)


def _holds_rows(edges: Int64Array) -> NDArray[np.bool_]:
    """Which pages hold a row; page i spans the rows `edges[i]` to `edges[i + 1]`."""
    if edges[0] != 0:
        raise ValueError(f"the first page must start at row 0, not at row {edges[0]}")
    falls = np.flatnonzero(edges[1:] < edges[:-1])
    if falls.size:
        before, after = edges[falls[0]], edges[falls[0] + 1]
        raise ValueError(f"pages must be in row order, but row {after} follows row {before}")
    return edges[:-1] < edges[1:]


def bits_of(starts: Int64Array, ends: Int64Array, row_count: int) -> NDArray[np.uint8]:
    """A bit for each row, the lowest first: set in the disjoint runs from `starts` to `ends`."""
    return _packed(_mask_of(starts, ends, row_count))


def _packed(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    bits = np.packbits(mask, bitorder="little")
    bits.setflags(write=False)
    return bits


def _mask_of(starts: Int64Array, ends: Int64Array, row_count: int) -> NDArray[np.bool_]:
    """A boolean for each row; a run may end where the next one starts."""
    steps = np.zeros(row_count + 1, np.int8)
    steps[starts] = 1
    steps[ends] -= 1
    return np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)


def _merge(starts: NDArray[Any], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Join runs that overlap or adjoin; starts and ends are each in order by itself.

    Where start i lies past end i - 1, the i runs that started before have all ended: a gap.
    """
    gaps = starts[1:] > ends[:-1]
    if gaps.all():
        return starts, ends
    return starts[np.append(True, gaps)], ends[np.append(gaps, True)]


def _overlap(starts: NDArray[Any], ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where two runs overlap, and never three; starts and ends are each in order by itself."""
    # Of the runs that started before start i, only one can be open still: until end i - 1.
    shared = starts[1:] < ends[:-1]
    return starts[1:][shared], ends[:-1][shared]
