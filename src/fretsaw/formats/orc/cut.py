"""The cut: from the rows wanted of a leaf to the bytes of the strides that hold them.

Of each stream of the leaf's chain, the chunks from the first stride's position on up to the next
stride's are taken. The first chunk is decompressed, what comes before the stride dropped, and the
rest written as it is; the other chunks stay untouched. Consecutive strides become one stripe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from fretsaw.formats.interface import Part
from fretsaw.formats.orc.index import Strides
from fretsaw.formats.orc.metadata import MalformedOrc, Pieces
from fretsaw.formats.orc.sizes import require_sizes
from fretsaw.formats.orc.stream_cut import CannotCut, begun, stream_cuts
from fretsaw.formats.orc.streams import LeafStreams
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.selection import RowSelection
from fretsaw.storage.requests import Request, Steps

_MANY = 0.3
"""From this share of the strides on, taking a stripe whole is cheaper than many cuts."""
_FEW_CUTS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows that become a stripe of a small file: the streams of one leaf's chain."""

    rows: int
    streams: dict[tuple[int, int], Pieces]
    """By kind and column."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OrcPart(Part):
    """The bytes of some strides of a leaf, and which of their rows are wanted; all are decoded."""

    block: int
    streams: LeafStreams
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    strides: int
    claims: Sequence[bytes] | None = None
    """The statistics of its strides, if they were cut out of a stripe."""

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
            segments = yield from _segments(streams, strides, pages, stretches)
        except (CannotCut, MalformedOrc) as error:
            reason: str | None = f"the row index does not fit its streams ({error})"
        else:
            starts, ends = _within(pages, keep, rows)
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
                claims=[strides.entries[-1][stride].statistics for stride in keep.tolist()],
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
    stored = {
        key: streams.codec.within(_bytes_of(buffer))
        for key, buffer in zip(data, buffers, strict=True)
    }
    require_sizes(streams, rows, stored, is_cut=False)
    return Segment(rows, stored)


def _segments(
    streams: LeafStreams,
    strides: Strides,
    pages: PageIndex,
    stretches: Sequence[tuple[int, int]],
) -> Steps[list[Segment]]:
    """The streams of each stretch of strides."""
    codec, row_counts = streams.codec, pages.row_counts
    cuts = [
        list(stream_cuts(streams, strides, first, last, int(row_counts[first])))
        for first, last in stretches
    ]
    shared = streams.dictionaries
    ranges = [(c.offset, c.length) for run in cuts for c in run]
    buffers = iter((yield Request(ranges, "data", common=list(shared.values()))))
    stored = [[_bytes_of(next(buffers)) for _ in run] for run in cuts]
    dictionaries = {key: codec.within(_bytes_of(next(buffers))) for key in shared}
    segments = []
    for (first, last), run, data_of_run in zip(stretches, cuts, stored, strict=True):
        begun_streams = {
            (c.kind, c.column): begun(c, data, codec)
            for c, data in zip(run, data_of_run, strict=True)
        }
        begun_streams |= dictionaries
        rows = int(pages.boundaries[last] - pages.boundaries[first])
        require_sizes(streams, rows, begun_streams, is_cut=True)
        segments.append(Segment(rows, begun_streams))
    return segments


def _bytes_of(buffer: pa.Buffer) -> memoryview:
    return memoryview(buffer).cast("B")
