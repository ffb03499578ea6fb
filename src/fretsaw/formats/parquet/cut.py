"""The cut: from the rows wanted of a column chunk to the bytes of the pages that hold them.

`cut` asks for the pages, checks their headers against the index, and asks for the dictionary if a
page uses it. The page bytes stay as they are.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fretsaw.formats.parquet.chain import Chain
from fretsaw.formats.parquet.pages import MOST_EMPTY, CorruptPage, Page, walk
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.requests import Request, Steps

_FEW_ENTRIES = 4  # a dictionary of one entry for so many rows is small


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: one leaf of one row group, and where its bytes are."""

    leaf: SchemaNode
    chain: Chain
    physical_type: int
    block: int
    num_values: int
    codec: int
    unpacks: bool
    """Whether its pages are decompressed before Arrow decodes them."""
    start: int
    end: int
    always_compressed: bool
    """Whether pages are compressed even where they say that they are not."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Pages that are decoded as one column of a small file."""

    chunk: Chunk
    buffers: list[pa.Buffer]
    num_values: int
    rows: int
    """Rows to decode; Arrow stops behind them."""
    page_rows: int
    """Rows that the pages hold."""
    dictionary_entries: int = 0
    """Entries of the dictionary by which strings stay encoded until the wanted ones are picked."""

    @property
    def is_exact(self) -> bool:
        """Whether to see that there is no row behind: only decoding tells where lists end."""
        return self.chunk.leaf.is_repeated


@dataclass(frozen=True, slots=True, eq=False)
class ParquetPart:
    """The bytes of some pages of a chunk, and which of their rows are wanted."""

    chunk: Chunk
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    shared: RowSelection | None
    """The same runs, if other leaves have them too."""
    pages: int | None
    fallback: str | None
    stays_encoded: bool
    """Whether strings may stay dictionary-encoded."""

    @property
    def leaf(self) -> SchemaNode:
        return self.chunk.leaf

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def page_rows(self) -> int:
        """Rows that its pages hold."""
        return sum(segment.page_rows for segment in self.segments)

    def count_pages(self) -> int:
        """How many data pages the part holds, by hopping over the headers where need be."""
        if self.pages is not None:
            return self.pages
        (whole,) = self.segments
        return sum(page.is_data for page in walk(whole.buffers[0], whole.num_values))

    def holds_what_it_claims(self) -> bool:
        """Whether its pages have as many values as the chunk claims."""
        if self.pages is not None:  # this was checked when they were cut
            return True
        (whole,) = self.segments
        pages = walk(whole.buffers[0], whole.num_values, MOST_EMPTY)
        return sum(page.num_values for page in pages) == whole.num_values

    def without_empty_pages(self) -> "ParquetPart | None":
        """The same without pages that have no value, where Arrow stops; None: it has no such."""
        segments = [replace(s, buffers=_without_empty(s)) for s in self.segments]
        before, after = (
            sum(buffer.size for segment in some for buffer in segment.buffers)
            for some in (self.segments, segments)
        )
        return replace(self, segments=segments) if after < before else None


def _without_empty(segment: Segment) -> list[pa.Buffer]:
    """The bytes of the pages that have values, and of the dictionary."""
    left, buffers = segment.num_values, []
    for buffer in segment.buffers:
        pages = walk(buffer, left, MOST_EMPTY)
        left -= sum(page.num_values for page in pages)
        ranges, _ = _adjoining([(p.offset, p.size) for p in pages if p.num_values or not p.is_data])
        buffers += [buffer.slice(*place) for place in ranges]
    return buffers


def cut(chunk: Chunk, pages: PageIndex, rows: RowSelection, encoded: bool) -> Steps[ParquetPart]:
    """The part of a chunk that holds the selected rows of its block."""
    keep = pages.overlapping(rows.starts, rows.ends).nonzero()[0]
    if pages.records_go_on:
        keep = np.arange(pages.boundaries[:-1].searchsorted(rows.ends[-1], side="right"))
    if len(keep) == len(pages.sizes):
        return (yield from _whole(chunk, pages, rows, encoded))
    row_counts = pages.row_counts[keep]
    found, buffers, first_of_run = yield from fetch_pages(chunk, pages, keep)
    dictionary: list[pa.Buffer] = []
    if any(page.uses_dictionary for page in found):
        dictionary.append((yield from fetch_dictionary(chunk, pages)))
    # Where each kept page begins among the decoded rows, then where each run of wanted rows does.
    decoded_at = row_counts.cumsum() - row_counts
    first_rows = pages.boundaries[keep]
    page_of = first_rows.searchsorted(rows.starts, side="right") - 1
    starts = rows.starts - first_rows[page_of] + decoded_at[page_of]
    ends = starts + (rows.ends - rows.starts)
    if chunk.leaf.is_repeated:
        # Only the first page of a segment is known to start a record: a segment for each run.
        runs = zip(
            buffers,
            np.add.reduceat([page.num_values for page in found], first_of_run).tolist(),
            np.add.reduceat(row_counts, first_of_run).tolist(),
            strict=True,
        )
        segments = [
            Segment(chunk, [*dictionary, buffer], num_values, num_rows, num_rows)
            for buffer, num_values, num_rows in runs
        ]
    else:
        page_rows = int(row_counts.sum())
        entries = 0
        if dictionary and _is_text(chunk):
            entries = _small_dictionary([*walk(dictionary[0]), *found], page_rows)
        joined = Segment(
            chunk,
            [*dictionary, *buffers],
            sum(page.num_values for page in found),
            int(ends[-1]),
            page_rows,
            entries,
        )
        segments = [joined]
    return ParquetPart(chunk, segments, starts, ends, None, len(keep), None, encoded)


def fetch_pages(
    chunk: Chunk, pages: PageIndex, keep: Int64s
) -> Steps[tuple[list[Page], Sequence[pa.Buffer], list[int]]]:
    """Some pages of a chunk, as their headers tell and as the index must agree.

    Neighbours come in one buffer: which page is the first of each is told too.
    """
    places = list(zip(pages.offsets[keep].tolist(), pages.sizes[keep].tolist(), strict=True))
    ranges, first_of_run = _adjoining(places)
    buffers = yield Request(ranges, "data")
    found = [
        page._replace(offset=page.offset + start)
        for (start, _), buffer in zip(ranges, buffers, strict=True)
        for page in walk(buffer)
    ]
    _require_agreement(found, places, pages.row_counts[keep].tolist(), chunk.leaf.is_repeated)
    return found, buffers, first_of_run


def fetch_dictionary(chunk: Chunk, pages: PageIndex) -> Steps[pa.Buffer]:
    """What lies before the first data page."""
    (stored,) = yield Request([(chunk.start, int(pages.offsets[0]) - chunk.start)], "data")
    return stored


def _is_text(chunk: Chunk) -> bool:
    return chunk.chain.arrow_type in (pa.string(), pa.binary())


def _small_dictionary(pages: Sequence[Page], rows: int) -> int:
    """The entries of a dictionary that all pages refer to, if it is much smaller than they are.

    Then to decode them to an Arrow dictionary and to expand it once rows are picked costs less.
    """
    entries = sum(page.dictionary_entries or 0 for page in pages)
    refers = all(page.uses_dictionary for page in pages if page.is_data)
    return entries if refers and 0 < entries * _FEW_ENTRIES <= rows else 0


def _whole(chunk: Chunk, pages: PageIndex, rows: RowSelection, encoded: bool) -> Steps[ParquetPart]:
    (buffer,) = yield Request([(chunk.start, chunk.end - chunk.start)], "data")
    repeated = chunk.leaf.is_repeated
    last = rows.row_count if repeated else int(rows.ends[-1])
    entries = 0
    if not repeated and _is_text(chunk):
        with contextlib.suppress(CorruptPage):  # Arrow will tell what is wrong
            found = walk(buffer, chunk.num_values, MOST_EMPTY)
            entries = _small_dictionary(found, rows.row_count)
    whole = Segment(chunk, [buffer], chunk.num_values, last, rows.row_count, entries)
    fallback = pages.reason if rows.skipped_count else None
    return ParquetPart(chunk, [whole], rows.starts, rows.ends, rows, None, fallback, encoded)


def _adjoining(places: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """The byte ranges of pages, with neighbours as one range, and the first page of each."""
    ranges: list[tuple[int, int]] = []
    first_pages: list[int] = []
    for page, (offset, size) in enumerate(places):
        if ranges and sum(ranges[-1]) == offset:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + size)
        else:
            ranges.append((offset, size))
            first_pages.append(page)
    return ranges, first_pages


def _require_agreement(
    found: Sequence[Page],
    places: Sequence[tuple[int, int]],
    row_counts: Sequence[int],
    repeated: bool,
) -> None:
    """The index and the headers of the pages must tell the same."""
    if len(found) != len(places):
        raise CorruptPage(f"the index names {len(places)} pages where there are {len(found)}")
    for page, place, expected in zip(found, places, row_counts, strict=True):
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
