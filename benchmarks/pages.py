"""What Parquet files must be read for an answer, at the least, worked out without fretsaw.

In: paths, the rows and the columns wanted, and the condition that finds them. Out: bytes of the
footers, of the offset indexes that tell where the pages are, of the pages that hold a wanted row,
and of the dictionaries those pages need. A column chunk that is wanted whole needs no index; a
file behind the last wanted row needs no footer, one before it does, because its rows count. A
condition needs, in blocks that statistics leave open, the column index and the pages of its
column that this leaves open in turn: up to the last wanted row for a head, from the first one on
for a tail. In a chunk without an index all headers of pages up to the last that is needed are
read. Where a Bloom filter can tell, its header and one block of it are needed, and nothing more of
a row group without the value; where a dictionary can, the dictionary.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks import bloom
from benchmarks.chunks import (
    Bounds,
    compressed_pieces,
    find_pages,
    first_byte,
    needs_dictionary,
    statistics_of,
)
from benchmarks.conditions import Tested
from benchmarks.contestant import RowNumbers
from benchmarks.metadata import FileMetaData, decode
from benchmarks.need import Need

INTEGERS = {1: "<i4", 2: "<i8"}  # INT32, INT64; bounds of floats leave NaN out and prove little
STRINGS = 6  # BYTE_ARRAY; the writer of the data shortens no bounds
NO_ROWS: RowNumbers = np.empty(0, np.int64)
FOOTER_END = 8  # the footer's length and the magic bytes, at the very end of a file


def least_of_parquet(
    paths: Iterable[Path],
    rows: RowNumbers | None = None,
    columns: Sequence[str] | None = None,
    where: Tested | None = None,
    window: Literal["head", "tail"] | None = None,
) -> Need:
    """What must be read for these rows (sorted; None: all) of these columns.

    `where` is the condition that the rows match, `window` says if they are its first or last.
    """
    start, end = _looked_at(rows, where, window)
    total = Need()
    first = 0
    for path in paths:
        if first >= end:
            break
        with path.open("rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
        length = int.from_bytes(data[-FOOTER_END:-4], "little")
        footer, _ = decode(FileMetaData, data[-FOOTER_END - length : -FOOTER_END])
        needed = Need(FOOTER_END + length)
        for group in footer.row_groups:
            wanted = None if rows is None else between(rows, first, first + group.num_rows)
            look = (start - first, end - first)
            for chunk in group.columns:
                name = chunk.meta_data.path_in_schema[0]
                projected = columns is None or name in columns
                tested = where if where is not None and name in where.columns else None
                if projected or tested:
                    chosen = wanted if projected else NO_ROWS
                    needed += _least_of_chunk(data, chunk, group.num_rows, chosen, tested, look)
            first += group.num_rows
        if first > start:
            total += needed
    return total


def _looked_at(
    rows: RowNumbers | None, where: Tested | None, window: str | None
) -> tuple[float, float]:
    """The rows `[start, end)` outside of which nothing need be known."""
    if rows is None or (where is not None and window is None):
        return 0, math.inf
    if window == "tail":
        return (rows[0] if len(rows) else 0), math.inf
    return 0, (rows[-1] + 1 if len(rows) else 0)


def between(rows: RowNumbers, first: int, end: int) -> RowNumbers:
    """The wanted rows of one block, counted from its first."""
    low, high = np.searchsorted(rows, [first, end])
    return rows[low:high] - first


def _least_of_chunk(
    data: mmap,
    chunk: Any,
    group_rows: int,
    rows: RowNumbers | None,
    where: Tested | None,
    look: tuple[float, float],
) -> Need:
    """What one column chunk takes: indexes, pages and perhaps the dictionary.

    Pages are needed for the wanted rows and, if `where` is a condition on this column, for those
    of the rows looked at of which bounds do not tell whether they match.
    """
    known = chunk.meta_data
    begin = first_byte(chunk)
    if rows is None:
        return _stretch(data, chunk, begin, begin + known.total_compressed_size)
    overlaps = look[0] < group_rows and look[1] > 0
    if where is not None and not (
        overlaps and _is_open(where, chunk, statistics_of(known.statistics))
    ):
        where = None  # the footer decides
    total = Need()
    if where is not None and _has_bloom_filter(where, chunk):
        total.bytes += bloom.header_bytes(known.bloom_filter_length) + bloom.PROBE_BYTES
        where = where if _passes_bloom_filter(data, chunk, where) else None
    if where is not None and where.by_dictionary:
        total += _stretch(data, chunk, begin, known.data_page_offset)
        where = None
    if len(rows) == 0 and where is None:
        return total
    pages = find_pages(data, chunk)
    total.bytes += chunk.offset_index_length or 0
    firsts = np.array([page.first_row for page in pages])
    needed = set(np.searchsorted(firsts, rows, side="right") - 1)
    if where is not None:
        total.bytes += chunk.column_index_length or 0
        ends = np.append(firsts[1:], group_rows)
        seen = np.flatnonzero((firsts < look[1]) & (ends > look[0]))
        needed |= {number for number in seen if _is_open(where, chunk, pages[number].bounds)}
    for page in (pages[number] for number in sorted(needed)):
        total += _stretch(data, chunk, page.start, page.start + page.length)
    total.bytes += sum(
        page.to_find_next
        for number, page in enumerate(pages[: max(needed, default=0)])
        if number not in needed
    )
    if any(needs_dictionary(data, pages[number]) for number in needed):
        total += _stretch(data, chunk, begin, pages[0].start)
    return total


def _stretch(data: mmap, chunk: Any, start: int, end: int) -> Need:
    """Pages that are read as they lie there."""
    return Need(end - start, list(compressed_pieces(data, chunk, start, end)))


def _has_bloom_filter(where: Tested, chunk: Any) -> bool:
    """Whether there is one that can tell: they know equal values alone."""
    return where.only_value() is not None and chunk.meta_data.bloom_filter_offset is not None


def _passes_bloom_filter(data: mmap, chunk: Any, where: Tested) -> bool:
    kind = INTEGERS.get(chunk.meta_data.type)
    raw = stored(where.only_value())
    value = raw if kind is None else np.array(raw, kind).tobytes()
    place = chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length
    return bloom.may_hold(data, *place, value)


def _is_open(where: Tested, chunk: Any, bounds: Bounds) -> bool:
    """Whether rows between these bounds may match and may not match."""
    low, high, nulls = bounds
    kind = chunk.meta_data.type
    if not low or not high or kind not in {*INTEGERS, STRINGS}:
        return True
    least, most = (
        bound if kind == STRINGS else int(np.frombuffer(bound, INTEGERS[kind])[0])
        for bound in (low, high)
    )
    return where.leaves_open(least, most, nulls != 0, stored)


def stored(value: Any) -> Any:
    """A value as the file stores it: microseconds for a timestamp, bytes for a string."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime):
        return int(np.datetime64(value, "us").astype(np.int64))
    return int(value)
