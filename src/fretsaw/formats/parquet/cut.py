"""The cut: from the rows wanted of a column chunk to the bytes of the pages that hold them.

`cut` asks for the pages, checks their headers against the index, and asks for the dictionary if a
page uses it. The page bytes stay as they are.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fretsaw.formats.interface import Part
from fretsaw.formats.parquet.chunk import Chunk
from fretsaw.formats.parquet.pages import CorruptPage, Page, PageRun
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.selection import RowSelection
from fretsaw.storage.requests import Bets, Request, Steps
from fretsaw.storage.source import Range

_SMALL = 64 << 10
"""Bytes of a dictionary that may be read in vain."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Pages that are decoded as one column of a small file; the dictionary comes first.

    It is apart, unless the only run is the whole chunk.
    """

    chunk: Chunk
    dictionary: PageRun | None
    runs: list[PageRun]
    num_values: int
    rows: int
    """Rows to decode; Arrow stops behind them."""
    page_rows: int
    """Rows that the pages hold."""

    @property
    def is_exact(self) -> bool:
        """Whether to see that there is no row behind: only decoding tells where lists end."""
        return self.chunk.leaf.is_repeated

    @property
    def stored(self) -> list[PageRun]:
        """All pages, the dictionary first."""
        return self.runs if self.dictionary is None else [self.dictionary, *self.runs]

    @property
    def buffers(self) -> list[pa.Buffer]:
        """The bytes of all pages, as they are stored."""
        return [run.buffer for run in self.stored]

    @property
    def pages(self) -> list[Page]:
        """What the headers of all pages say."""
        return [page for run in self.stored for page in run.pages]

    def counts_of_runs(self) -> list[tuple[int, int]]:
        """How many values and rows each run of data pages has."""
        if len(self.runs) == 1:
            return [(self.num_values, self.page_rows)]
        counts = [sum(page.num_values for page in run.pages) for run in self.runs]
        return [(count, count) for count in counts]

    def without_empty_pages(self) -> "Segment":
        """The same without pages that have no value, where Arrow stops."""
        runs = []
        for run in self.stored:
            filled = [(p.offset, p.size) for p in run.pages if p.num_values or not p.is_data]
            runs += [PageRun(run.buffer.slice(*place)) for place in _adjoining(filled)]
        return replace(self, dictionary=None, runs=runs)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ParquetPart(Part):
    """The bytes of some pages of a chunk, and which of their rows are wanted."""

    chunk: Chunk
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    """The runs of wanted rows, counted over those of the pages."""
    pages: Int64s
    first_rows: Int64s
    """The pages, by their numbers in the index, and where they begin among these rows."""
    shared: RowSelection | None = None
    """The same runs, if other leaves have them too."""

    def count_pages(self) -> int:
        """How many data pages the part holds, as far as their headers tell."""
        with contextlib.suppress(CorruptPage):
            return sum(page.is_data for segment in self.segments for page in segment.pages)
        return 1

    def without_empty_pages(self) -> "ParquetPart | None":
        """The same without pages that have no value, where Arrow stops; None: it has no such."""
        segments = [segment.without_empty_pages() for segment in self.segments]
        before, after = (
            sum(buffer.size for segment in some for buffer in segment.buffers)
            for some in (self.segments, segments)
        )
        return replace(self, segments=segments) if after < before else None


def cut(
    chunk: Chunk, pages: PageIndex, rows: RowSelection, is_dictionary: Callable[[], bool]
) -> Steps[ParquetPart]:
    """The part of a chunk that holds the selected rows of its block.

    Where all of its pages use the dictionary, that is likely to be read as well.
    """
    if len(pages.sizes) == 1:
        return (yield from _whole(chunk, pages, rows))
    keep = pages.overlapping(rows.starts, rows.ends).nonzero()[0]
    if pages.records_go_on:
        keep = np.arange(pages.boundaries[:-1].searchsorted(rows.ends[-1], side="right"))
    if len(keep) == len(pages.sizes):
        return (yield from _whole(chunk, pages, rows))
    row_counts = pages.row_counts[keep]
    before = int(pages.offsets[0]) - chunk.start

    def bets() -> Sequence[Range]:
        is_likely = before and (before <= _SMALL or is_dictionary())
        return [(chunk.start, before)] if is_likely else []

    runs = yield from fetch_pages(chunk, pages, keep, bets)
    dictionary = None
    if any(page.uses_dictionary for run in runs for page in run.pages):
        dictionary = yield from fetch_dictionary(chunk, pages)
    # Where each kept page begins among the decoded rows, then where each run of wanted rows does.
    decoded_at = row_counts.cumsum() - row_counts
    first_rows = pages.boundaries[keep]
    page_of = first_rows.searchsorted(rows.starts, side="right") - 1
    starts = rows.starts - first_rows[page_of] + decoded_at[page_of]
    ends = starts + (rows.ends - rows.starts)
    if chunk.leaf.is_repeated:
        # Only the first page of a segment is known to start a record: a segment for each run.
        segments, counts = [], iter(row_counts.tolist())
        for run in runs:
            num_values = sum(page.num_values for page in run.pages)
            num_rows = sum(next(counts) for _ in run.pages)
            segments.append(Segment(chunk, dictionary, [run], num_values, num_rows, num_rows))
    else:
        page_rows = int(row_counts.sum())
        num_values = sum(page.num_values for run in runs for page in run.pages)
        segments = [Segment(chunk, dictionary, runs, num_values, int(ends[-1]), page_rows)]
    return ParquetPart(
        leaf=chunk.leaf,
        rows=sum(segment.rows for segment in segments),
        page_rows=sum(segment.page_rows for segment in segments),
        chunk=chunk,
        segments=segments,
        starts=starts,
        ends=ends,
        pages=keep,
        first_rows=decoded_at,
    )


def fetch_pages(
    chunk: Chunk, pages: PageIndex, keep: Int64s, bets: Bets = tuple
) -> Steps[list[PageRun]]:
    """Some pages of a chunk, neighbours as one run; their headers must agree with the index."""
    places = list(zip(pages.offsets[keep].tolist(), pages.sizes[keep].tolist(), strict=True))
    ranges = _adjoining(places)
    buffers = yield Request(ranges, "data", bets=bets)
    runs = [PageRun(buffer) for buffer in buffers]
    found = [
        (start + page.offset, page)
        for (start, _), run in zip(ranges, runs, strict=True)
        for page in run.pages
    ]
    _require_agreement(found, places, pages.row_counts[keep].tolist(), chunk.leaf.is_repeated)
    return runs


def fetch_dictionary(chunk: Chunk, pages: PageIndex) -> Steps[PageRun]:
    """What lies before the first data page."""
    (stored,) = yield Request([(chunk.start, int(pages.offsets[0]) - chunk.start)], "data")
    return PageRun(stored)


def _whole(chunk: Chunk, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
    (buffer,) = yield Request([(chunk.start, chunk.end - chunk.start)], "data")
    return whole_part(chunk, pages, rows, buffer)


def whole_part(
    chunk: Chunk, pages: PageIndex, rows: RowSelection, buffer: pa.Buffer
) -> ParquetPart:
    """The selected rows of a chunk all of which was fetched."""
    last = rows.row_count if chunk.leaf.is_repeated else int(rows.ends[-1])
    run = PageRun(buffer, chunk.num_values)
    return ParquetPart(
        leaf=chunk.leaf,
        rows=last,
        page_rows=rows.row_count,
        fallback=pages.reason if rows.skipped_count else None,
        chunk=chunk,
        segments=[Segment(chunk, None, [run], chunk.num_values, last, rows.row_count)],
        starts=rows.starts,
        ends=rows.ends,
        pages=np.arange(len(pages.sizes)),
        first_rows=pages.boundaries[:-1],
        shared=rows,
    )


def _adjoining(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The byte ranges of pages, with neighbours as one range."""
    ranges: list[tuple[int, int]] = []
    for offset, size in places:
        if ranges and sum(ranges[-1]) == offset:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + size)
        else:
            ranges.append((offset, size))
    return ranges


def _require_agreement(
    found: Sequence[tuple[int, Page]],
    places: Sequence[tuple[int, int]],
    row_counts: Sequence[int],
    repeated: bool,
) -> None:
    """The index and the headers of the pages must tell the same; offsets are those of the file."""
    if len(found) != len(places):
        raise CorruptPage(f"the index names {len(places)} pages where there are {len(found)}")
    for (offset, page), place, expected in zip(found, places, row_counts, strict=True):
        if (offset, page.size) != place or not page.is_data:
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
