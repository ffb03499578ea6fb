"""Rows picked out of Arrow arrays by runs, and how many to take at a time."""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.model.blocks import Int64s
from fretsaw.model.runs import bits_of
from fretsaw.model.schema import with_leaves
from fretsaw.model.selection import RowSelection

Array: TypeAlias = npt.NDArray[Any]

_MOST_ROWS = 128 << 10
_MOST_TURNS = 64  # two arrays that take turns more often are copied into one, not sliced
_DENSE = 8  # one wanted row in this many: from there a mask is cheaper, and a slice wastes little


def pick(
    column: pa.ChunkedArray, starts: Int64s, ends: Int64s, shared: RowSelection | None = None
) -> pa.ChunkedArray:
    """The rows of the sorted, disjoint runs from `starts` to `ends`.

    A few rows out of many are copied, so that they do not keep the many alive. `shared` are the
    same runs, if they are picked from other columns too.
    """
    wanted = int((ends - starts).sum())
    if wanted == len(column):
        return column
    if len(starts) == 1:
        run = column.slice(int(starts[0]), wanted)
        few = wanted * _DENSE < len(column)
        return pa.chunked_array([pa.concat_arrays(run.chunks)], column.type) if few else run
    if wanted * _DENSE > len(column) and not _has_views(column.type):
        bits = bits_of(starts, ends, len(column)) if shared is None else shared.bits()
        mask = pa.BooleanArray.from_buffers(pa.bool_(), len(column), [None, pa.py_buffer(bits)])
        return column.filter(mask)
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return take_rows(column, np.arange(wanted) + np.repeat(starts - before, lengths))


def rows_within(limit: int, rows: int, size: int) -> int:
    """How many rows to take at a time, out of those of `size` bytes, to stay within a limit."""
    return max(min(limit * rows // max(size, 1), _MOST_ROWS), 1)


def joined(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Columns of one type, one behind the other."""
    if len(columns) == 1:
        return columns[0]
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, columns[0].type)


def interleaved(pieces: Sequence[tuple[RowSelection, pa.ChunkedArray]]) -> pa.ChunkedArray:
    """Arrays of disjoint rows as one, in the order of the rows."""
    if len(pieces) == 1:
        return pieces[0][1]
    selections = [rows for rows, _ in pieces]
    arrays = [array for _, array in pieces]
    starts = np.concatenate([rows.starts for rows in selections])
    counts = np.concatenate([rows.ends - rows.starts for rows in selections])
    owners = np.repeat(range(len(selections)), [len(rows.starts) for rows in selections])
    order = np.argsort(starts)
    owners, counts = owners[order], counts[order]
    first_of_turn = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(first_of_turn) > _MOST_TURNS:
        return _merged(np.repeat(owners, counts), arrays)
    lengths = np.add.reduceat(counts, first_of_turn)
    taken = [0] * len(arrays)
    chunks = []
    for owner, length in zip(owners[first_of_turn].tolist(), lengths.tolist(), strict=True):
        chunks += arrays[owner].slice(taken[owner], length).chunks
        taken[owner] += length
    return pa.chunked_array(chunks, arrays[0].type)


def _merged(owners: Int64s, arrays: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Arrays as one, in which each row comes from the array that owns it."""
    places = np.empty(len(owners), np.int64)
    before = 0
    for owner, array in enumerate(arrays):
        places[owners == owner] = np.arange(before, before + len(array))
        before += len(array)
    chunks = [chunk for array in arrays for chunk in array.chunks]
    return take_rows(pa.chunked_array(chunks, arrays[0].type), places)


def take_rows(column: pa.ChunkedArray, rows: Int64s) -> pa.ChunkedArray:
    """Rows by their numbers, in any order."""
    return take(column, pa.array(rows))


def _has_views(arrow_type: pa.DataType) -> bool:
    """Arrow has no kernels that filter views."""
    return bool(without_views(arrow_type) != arrow_type)


Items = TypeVar("Items", pa.Array, pa.ChunkedArray)


def plain_values(array: pa.Array) -> pa.Array:
    """What dictionaries, extensions and views stand for."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type.id == _DICTIONARY:
        array = take(array.dictionary, array.indices)
    if array.type.id in _WITHOUT_VIEWS:
        array = array.cast(_WITHOUT_VIEWS[array.type.id])
    return array


_DICTIONARY = pa.dictionary(pa.int32(), pa.string()).id
_WITHOUT_VIEWS = {pa.string_view().id: pa.large_string(), pa.binary_view().id: pa.large_binary()}
"""What holds the same as views, by their ids."""


def take(array: Items, places: pa.Array) -> Items:
    """Items by their places, in any order; Arrow has no kernels that take from views."""
    plain = without_views(array.type)
    if plain == array.type:
        return array.take(places)
    return array.cast(plain).take(places).cast(array.type)


def without_views(arrow_type: pa.DataType) -> pa.DataType:
    """The type with what holds the same in the place of views, at any depth."""
    return with_leaves(arrow_type, lambda leaf: _WITHOUT_VIEWS.get(leaf.id, leaf))


def locked(view: Array) -> Array:
    """An array that others look at too: nobody may write into it."""
    view.flags.writeable = False
    return view
