"""Runs of rows: the algebra that a `RowSelection` is made of, on arrays and linear in the runs.

Run i goes from `starts[i]` up to before `ends[i]`. Where nothing else is said, runs are in order
and neither empty nor adjoining, so that equal sets of rows have equal arrays.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64Array: TypeAlias = NDArray[np.int64]
RowRuns: TypeAlias = tuple[NDArray[Any], NDArray[Any]]

_ZERO = np.zeros(1, np.int64)


def unique(values: Int64Array) -> Int64Array:
    """The values in order, each once.

    NumPy's own imports a module at its first call, in the midst of which a process may be forked.

    >>> unique(np.array([3, 1, 3]))
    array([1, 3])
    """
    ordered = np.sort(values)
    is_new = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def runs_of(mask: NDArray[np.bool_]) -> RowRuns:
    """The runs of rows that a mask is true for."""
    framed = np.zeros(mask.size + 2, dtype=np.bool_)
    framed[1:-1] = mask
    edges = np.flatnonzero(framed[1:] != framed[:-1])
    return edges[0::2], edges[1::2]


def merge(starts: NDArray[Any], ends: NDArray[Any]) -> RowRuns:
    """Join runs that overlap or adjoin; starts and ends are each in order by itself.

    Where start i lies past end i - 1, the i runs that started before have all ended: a gap.
    """
    gaps = starts[1:] > ends[:-1]
    if gaps.all():
        return starts, ends
    return starts[np.append(True, gaps)], ends[np.append(gaps, True)]


def overlap(starts: NDArray[Any], ends: NDArray[Any]) -> RowRuns:
    """Where two runs overlap, and never three; starts and ends are each in order by itself."""
    # Of the runs that started before start i, only one can be open still: until end i - 1.
    shared = starts[1:] < ends[:-1]
    return starts[1:][shared], ends[:-1][shared]


def sorted_edges(*edges: Int64Array, row_count: int) -> NDArray[Any]:
    """The starts, or the ends, of several sets of runs in one order."""
    # Half the memory, and less time, for all but the largest data.
    dtype = np.int32 if row_count <= np.iinfo(np.int32).max else np.int64
    joined = np.concatenate(edges, dtype=dtype, casting="same_kind")
    joined.sort(kind="stable")  # a linear merge, where all are in order
    return joined


def invert(starts: Int64Array, ends: Int64Array, row_count: int) -> RowRuns:
    """The runs of the other rows."""
    starts, ends = np.concatenate((_ZERO, ends)), np.concatenate((starts, (row_count,)))
    # Only the first and the last gap can be empty: runs never adjoin.
    inner = slice(int(ends[0] == 0), ends.size - int(starts[-1] == row_count))
    return starts[inner], ends[inner]


def between(starts: Int64Array, ends: Int64Array, start: int, stop: int) -> RowRuns:
    """The runs, or parts of them, that lie in the rows `start` to `stop`."""
    first = ends.searchsorted(start, side="right")
    # No rows are in no run, not even where they are in the middle of one.
    last = starts.searchsorted(stop, side="left") if start < stop else first
    return np.maximum(starts[first:last], start), np.minimum(ends[first:last], stop)


def count_in(starts: Int64Array, ends: Int64Array) -> int:
    """How many rows are in the runs."""
    if len(starts) < 2:
        return int(ends[0]) - int(starts[0]) if len(starts) else 0
    # Either sum may wrap around 2**64; their difference, taken modulo 2**64, is exact.
    return (int(ends.sum()) - int(starts.sum())) % 2**64


def counts_up_to_ends(starts: Int64Array, ends: Int64Array) -> Int64Array:
    """How many rows of runs lie up to the end of each run."""
    lengths = ends - starts
    return np.cumsum(lengths, out=lengths)


def counts_before(starts: Int64Array, ends: Int64Array, rows: Int64Array) -> Int64Array:
    """How many rows of runs lie before each of these rows."""
    if not starts.size:
        return np.zeros(rows.size, dtype=np.int64)
    run = np.maximum(starts.searchsorted(rows, side="right") - 1, 0)
    ends_of = ends[run]
    behind = np.minimum(np.maximum(ends_of - rows, 0), ends_of - starts[run])
    before: Int64Array = counts_up_to_ends(starts, ends)[run] - behind
    return before


def cuts_after(starts: Int64Array, ends: Int64Array, counts: Int64Array) -> Int64Array:
    """Rows to cut at, so that just so many rows of runs lie before each cut."""
    counts_at_ends = counts_up_to_ends(starts, ends)
    run = counts_at_ends.searchsorted(counts, side="left")
    return (ends - counts_at_ends)[run] + counts


def row_numbers(starts: Int64Array, ends: Int64Array) -> Int64Array:
    """The numbers of the rows in the runs, ascending."""
    rows = np.ones(count_in(starts, ends), np.int64)
    if rows.size:
        rows[0] = starts[0]
        rows[counts_up_to_ends(starts, ends)[:-1]] += starts[1:] - ends[:-1]
    return np.cumsum(rows, out=rows)


def mask_of(starts: Int64Array, ends: Int64Array, row_count: int) -> NDArray[np.bool_]:
    """A boolean for each row; a run may end where the next one starts."""
    steps = np.zeros(row_count + 1, np.int8)
    steps[starts] = 1
    steps[ends] -= 1
    return np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)


def bits_of(starts: Int64Array, ends: Int64Array, row_count: int) -> NDArray[np.uint8]:
    """A bit for each row, the lowest first; a run may end where the next one starts."""
    return pack(mask_of(starts, ends, row_count))


def pack(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A bit for each boolean, the lowest first; nobody may write into them."""
    bits = np.packbits(mask, bitorder="little")
    bits.setflags(write=False)
    return bits
