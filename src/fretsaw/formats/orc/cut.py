"""The cut: from the rows wanted of a leaf to the bytes of the strides that hold them.

Of each stream of the leaf's chain, the chunks from the first stride's position on up to the next
stride's are taken, as they are stored. Consecutive strides are one segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

from fretsaw.formats.interface import Part
from fretsaw.formats.orc.index import Strides
from fretsaw.formats.orc.metadata import MalformedOrc
from fretsaw.formats.orc.stream_cut import CannotCut, StreamCut, stream_cuts
from fretsaw.formats.orc.streams import LeafStreams
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.selection import RowSelection
from fretsaw.storage.requests import Request, Steps

_MANY = 0.3
"""From this share of the strides on, taking a stripe whole is cheaper than many cuts."""
_FEW_CUTS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows that follow each other: the streams of one leaf's chain, as far as they are read."""

    rows: int
    streams: dict[tuple[int, int], memoryview]
    """By kind and column, without dictionaries if it is cut out."""
    cuts: Sequence[StreamCut] = ()
    """How its streams begin, in their order, if it is cut out of a stripe."""
    first_rows: int = 0
    """The rows of its first stride, if it is cut out of a stripe."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OrcPart(Part):
    """The bytes of some strides of a leaf, and which of their rows are wanted."""

    block: int
    streams: LeafStreams
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    strides: int
    dictionaries: dict[tuple[int, int], memoryview] = field(default_factory=dict)
    """Streams that all segments need, if they were cut out of a stripe."""
    claims: Sequence[Sequence[bytes]] | None = None
    """Of each segment the statistics of its strides, if they were cut out of a stripe."""

    @property
    def columns(self) -> list[int]:
        """Those of its chain."""
        return [column for column, _ in self.streams.chain]

    def count_pages(self) -> int:
        """How many strides it holds."""
        return self.strides


def cut(
    streams: LeafStreams,
    block: int,
    strides: Strides | None,
    pages: PageIndex,
    rows: RowSelection,
    stride_rows: int,
) -> Steps[OrcPart]:
    """The part of a stripe that holds the selected rows of a leaf."""
    keep = pages.overlapping(rows.starts, rows.ends).nonzero()[0]
    if strides is not None and _pays(stretches := _stretches(keep), len(pages.sizes)):
        try:
            cuts = _cuts(streams, strides, pages, stretches)
        except (CannotCut, MalformedOrc) as error:
            reason: str | None = f"the row index does not fit its streams ({error})"
        else:
            segments, dictionaries = yield from _segments(streams, pages, stretches, cuts)
            starts, ends = _within(pages, keep, rows)
            entries = strides.entries[-1]
            held = sum(segment.rows for segment in segments)
            return OrcPart(
                leaf=streams.leaf,
                rows=held,
                page_rows=held,
                block=block,
                streams=streams,
                segments=segments,
                starts=starts,
                ends=ends,
                strides=len(keep),
                dictionaries=dictionaries,
                claims=[[e.statistics for e in entries[slice(*s)]] for s in stretches],
            )
    elif len(keep) < len(pages.sizes):
        reason = "many strides, here and there: the whole stripe is cheaper"
    else:
        reason = pages.reason
    held = int(pages.boundaries[-1])
    return OrcPart(
        leaf=streams.leaf,
        rows=held,
        page_rows=held,
        fallback=reason,
        block=block,
        streams=streams,
        segments=[(yield from _whole(streams, held))],
        starts=rows.starts,
        ends=rows.ends,
        strides=-(-held // stride_rows) if stride_rows else 1,
    )


def _stretches(keep: Int64s) -> list[tuple[int, int]]:
    """Strides that follow each other: the first, and that behind the last."""
    gaps = (keep[1:] > keep[:-1] + 1).nonzero()[0] + 1
    bounds = [0, *gaps.tolist(), len(keep)]
    return [(int(keep[begin]), int(keep[end - 1]) + 1) for begin, end in pairwise(bounds)]


def _pays(stretches: Sequence[tuple[int, int]], count: int) -> bool:
    kept = sum(last - first for first, last in stretches)
    return kept < count and (len(stretches) <= _FEW_CUTS or kept < _MANY * count)


def _within(pages: PageIndex, keep: Int64s, rows: RowSelection) -> tuple[Int64s, Int64s]:
    """Where the wanted rows are among those of the kept strides."""
    counts = pages.row_counts[keep]
    decoded_at = counts.cumsum() - counts
    first_rows = pages.boundaries[keep]
    place = first_rows.searchsorted(rows.starts, side="right") - 1
    # A run of rows may go on in the next stride, which is kept then too.
    starts = rows.starts - first_rows[place] + decoded_at[place]
    return starts, starts + (rows.ends - rows.starts)


def _whole(streams: LeafStreams, rows: int) -> Steps[Segment]:
    """All streams of a chain as they are."""
    data = streams.data
    buffers = yield Request([], "data", common=list(data.values()))
    return Segment(rows, dict(zip(data, map(_bytes_of, buffers), strict=True)))


def _cuts(
    streams: LeafStreams,
    strides: Strides,
    pages: PageIndex,
    stretches: Sequence[tuple[int, int]],
) -> list[list[StreamCut]]:
    """How the streams of each stretch of strides begin."""
    row_counts = pages.row_counts
    return [
        list(stream_cuts(streams, strides, first, last, int(row_counts[first])))
        for first, last in stretches
    ]


def _segments(
    streams: LeafStreams,
    pages: PageIndex,
    stretches: Sequence[tuple[int, int]],
    cuts: Sequence[Sequence[StreamCut]],
) -> Steps[tuple[list[Segment], dict[tuple[int, int], memoryview]]]:
    """The streams of each stretch of strides, and the dictionaries that all of them need."""
    shared = streams.dictionaries
    ranges = [(c.offset, c.length) for run in cuts for c in run]
    buffers = iter((yield Request(ranges, "data", common=list(shared.values()))))
    boundaries = pages.boundaries
    segments = [
        Segment(
            rows=int(boundaries[last] - boundaries[first]),
            streams={(c.kind, c.column): _bytes_of(next(buffers)) for c in run},
            cuts=run,
            first_rows=int(boundaries[first + 1] - boundaries[first]),
        )
        for (first, last), run in zip(stretches, cuts, strict=True)
    ]
    return segments, {key: _bytes_of(next(buffers)) for key in shared}


def _bytes_of(buffer: pa.Buffer) -> memoryview:
    return memoryview(buffer).cast("B")
