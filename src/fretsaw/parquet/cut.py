"""The cut: from the rows wanted of a column chunk to the bytes of the pages that hold them.

`cut` asks for the pages, checks their headers against the index, and asks for the dictionary if a
page uses it. The page bytes stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fretsaw.formats import Request, Steps
from fretsaw.layout import Int64s, PageIndex
from fretsaw.parquet.chain import Chain
from fretsaw.parquet.pages import CorruptPage, Page, walk
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection

_FEW = 8  # one wanted row in this many is few


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: one leaf of one row group, and where its bytes are."""

    leaf: SchemaNode
    chain: Chain
    physical_type: int
    block: int
    num_values: int
    codec: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Pages that are decoded as one column of a small file."""

    chunk: Chunk
    buffers: list[pa.Buffer]
    num_values: int
    rows: int
    """Rows to decode; Arrow stops behind them."""
    is_exact: bool
    """Whether there must be no row behind them."""
    keeps_dictionary: bool = False
    """Whether strings stay dictionary-encoded until the few that are wanted are picked."""

    @property
    def size(self) -> int:
        return sum(buffer.size for buffer in self.buffers)


@dataclass(frozen=True, slots=True, eq=False)
class ParquetPart:
    """The bytes of some pages of a chunk, and which of their rows are wanted."""

    chunk: Chunk
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    pages: int | None
    fallback: str | None

    @property
    def leaf(self) -> SchemaNode:
        return self.chunk.leaf

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    def count_pages(self) -> int:
        """How many data pages the part holds, by hopping over the headers where need be."""
        if self.pages is not None:
            return self.pages
        (whole,) = self.segments
        count, values = 0, 0
        for page in walk(whole.buffers[0]):
            count += page.is_data
            values += page.num_values
            if values >= whole.num_values:
                break
        return count


def cut(chunk: Chunk, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
    """The part of a chunk that holds the selected rows of its block."""
    keep = np.flatnonzero(pages.overlapping(rows.starts, rows.ends))
    if len(keep) == len(pages.sizes):
        return (yield from _whole(chunk, pages, rows))
    ranges, first_of_run = _adjoining(pages.offsets[keep], pages.sizes[keep])
    buffers = yield Request(ranges, "data")
    found = [
        page._replace(offset=page.offset + start)
        for (start, _), buffer in zip(ranges, buffers, strict=True)
        for page in walk(buffer)
    ]
    _require_agreement(found, pages, keep, chunk.leaf.is_repeated)
    dictionary: list[pa.Buffer] = []
    if any(page.uses_dictionary for page in found):
        first_page = int(pages.offsets[0])
        dictionary = list((yield Request([(chunk.start, first_page - chunk.start)], "data")))
    # Where each kept page begins among the decoded rows, then where each run of wanted rows does.
    row_counts = np.diff(pages.boundaries)[keep]
    decoded_at = np.cumsum(row_counts) - row_counts
    first_rows = pages.boundaries[keep]
    page_of = np.searchsorted(first_rows, rows.starts, side="right") - 1
    starts = rows.starts - first_rows[page_of] + decoded_at[page_of]
    ends = starts + (rows.ends - rows.starts)
    values = np.array([page.num_values for page in found])
    if chunk.leaf.is_repeated:
        # Only the first page of a segment is known to start a record: a segment for each run.
        runs = zip(
            buffers,
            np.add.reduceat(values, first_of_run).tolist(),
            np.add.reduceat(row_counts, first_of_run).tolist(),
            strict=True,
        )
        segments = [
            Segment(chunk, [*dictionary, buffer], num_values, num_rows, is_exact=True)
            for buffer, num_values, num_rows in runs
        ]
    else:
        few = rows.selected_count * _FEW < row_counts.sum()
        joined = Segment(
            chunk,
            [*dictionary, *buffers],
            int(values.sum()),
            int(ends[-1]),
            is_exact=False,
            keeps_dictionary=few and _is_text(chunk) and all(p.uses_dictionary for p in found),
        )
        segments = [joined]
    return ParquetPart(chunk, segments, starts, ends, pages=len(keep), fallback=None)


def _is_text(chunk: Chunk) -> bool:
    arrow_type = chunk.chain.arrow_type
    return arrow_type in (pa.string(), pa.binary())


def _whole(chunk: Chunk, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
    buffers = yield Request([(chunk.start, chunk.end - chunk.start)], "data")
    repeated = chunk.leaf.is_repeated
    last = rows.row_count if repeated else int(rows.ends[-1])
    whole = Segment(chunk, list(buffers), chunk.num_values, last, is_exact=repeated)
    fallback = pages.reason if rows.skipped_count else None
    return ParquetPart(chunk, [whole], rows.starts, rows.ends, pages=None, fallback=fallback)


def _adjoining(offsets: Int64s, sizes: Int64s) -> tuple[list[tuple[int, int]], Int64s]:
    """The byte ranges of pages, with neighbours as one range, and the first page of each."""
    is_first = np.concatenate(([True], offsets[1:] != (offsets + sizes)[:-1]))
    begin, end = offsets[is_first], (offsets + sizes)[np.append(is_first[1:], True)]
    return list(zip(begin.tolist(), (end - begin).tolist(), strict=True)), np.flatnonzero(is_first)


def _require_agreement(
    found: Sequence[Page], pages: PageIndex, keep: Int64s, repeated: bool
) -> None:
    """The index and the headers of the pages must tell the same."""
    if len(found) != len(keep):
        raise CorruptPage(f"the index names {len(keep)} pages where there are {len(found)}")
    rows = np.diff(pages.boundaries)[keep].tolist()
    places = zip(pages.offsets[keep].tolist(), pages.sizes[keep].tolist(), strict=True)
    for page, place, expected in zip(found, places, rows, strict=True):
        if (page.offset, page.size) != place or not page.is_data:
            raise CorruptPage(
                f"the index names a data page of {place[1]} bytes at offset {place[0]}, "
                f"the page headers do not"
            )
        told = page.num_rows if repeated else page.num_values
        if told is not None and told != expected:
            raise CorruptPage(
                f"the page at offset {place[0]} has {told} rows by its header and {expected} "
                f"by the index"
            )
