"""The cut: from the rows wanted of a leaf to the bytes of the strides that hold them.

Of each stream of the leaf's chain, the chunks from the first stride's position on up to the next
stride's are taken. The first chunk is decompressed, what comes before the stride dropped, and the
rest written as it is; the other chunks stay untouched. Consecutive strides become one stripe.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.index import Coding, Place, Places, StridePages, Stripe, amounts
from fretsaw.formats.orc.metadata import DATA, NONE, Codec, MalformedOrc, Pieces
from fretsaw.formats.orc.runs import BYTE_RUNS, NotEnough, Runs, integer_runs, shifted_bits, without
from fretsaw.formats.orc.sizes import require_sizes
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.requests import Request, Steps

T = TypeVar("T")

_LONGEST_RUN = 8 << 10  # bytes of the longest run, which may go on in the next chunk
_MANY = 0.3
"""From this share of the strides on, taking a stripe whole is cheaper than many cuts."""
_FEW_CUTS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Rows that become a stripe of a small file: the streams of one leaf's chain."""

    rows: int
    streams: Mapping[tuple[int, int], Pieces]
    """By kind and column."""


@dataclass(frozen=True, slots=True, eq=False)
class OrcPart:
    """The bytes of some strides of a leaf, and which of their rows are wanted."""

    leaf: SchemaNode
    columns: tuple[int, ...]
    """Those of its chain."""
    block: int
    stripe: Stripe
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    strides: int
    fallback: str | None
    claims: Sequence[bytes] | None
    """The statistics of its strides, if they were cut out of a stripe."""

    @property
    def rows(self) -> int:
        """Rows that its strides hold: all are decoded."""
        return sum(segment.rows for segment in self.segments)

    @property
    def page_rows(self) -> int:
        return self.rows

    def count_pages(self) -> int:
        """How many strides it holds."""
        return self.strides


@dataclass(frozen=True, slots=True)
class _Cut:
    """A stream of some strides: where it begins, and what it is."""

    kind: int
    column: int
    coding: Coding
    is_decimals: bool
    begin: Place
    following: Place | None
    """Where the stride behind the first begins; None at the end of the stream."""
    amount: int
    """What lies between the two, in bytes or values; -1 if that is not known."""
    offset: int
    length: int
    is_last: bool
    """Whether it reaches the end of the stream."""


class CannotCut(ValueError):
    """Positions that do not fit what the streams hold."""


def cut(
    leaf: SchemaNode,
    chain: Sequence[tuple[int, str]],
    unions: Mapping[int, int],
    block: int,
    stripe: Stripe,
    pages: PageIndex,
    rows: RowSelection,
    codec: Codec,
    stride: int,
) -> Steps[OrcPart]:
    """The part of a stripe that holds the selected rows of a leaf."""
    columns = tuple(column for column, _ in chain)
    keep = pages.overlapping(rows.starts, rows.ends).nonzero()[0]
    if isinstance(pages, StridePages) and _pays(stretches := _stretches(keep), len(pages.sizes)):
        try:
            segments = yield from _segments(chain, unions, stripe, pages, stretches, codec)
        except (CannotCut, MalformedOrc) as error:
            reason: str | None = f"the row index does not fit its streams ({error})"
        else:
            starts, ends = _within(pages, keep, rows)
            return OrcPart(
                leaf,
                columns,
                block,
                stripe,
                segments,
                starts,
                ends,
                len(keep),
                None,
                [pages.entries[-1][stride].statistics for stride in keep.tolist()],
            )
    elif len(keep) < len(pages.sizes):
        reason = "many strides, here and there: the whole stripe is cheaper"
    else:
        reason = pages.reason
    whole = yield from _whole(chain, unions, stripe, int(pages.boundaries[-1]), codec)
    strides = -(-int(pages.boundaries[-1]) // stride) if stride else 1
    return OrcPart(
        leaf, columns, block, stripe, [whole], rows.starts, rows.ends, strides, reason, None
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


def _whole(
    chain: Sequence[tuple[int, str]],
    unions: Mapping[int, int],
    stripe: Stripe,
    rows: int,
    codec: Codec,
) -> Steps[Segment]:
    """All streams of a chain as they are."""
    columns = {column for column, _ in chain}
    wanted = [
        (kind, column)
        for kind, column in stripe.streams
        if column in columns and kind < metadata.ROW_INDEX
    ]
    buffers = yield Request([], "data", common=[stripe.streams[key] for key in wanted])
    streams: dict[tuple[int, int], Pieces] = {}
    for key, buffer in zip(wanted, buffers, strict=True):
        streams[key] = codec.within(_bytes_of(buffer))
    require_sizes(chain, unions, stripe, rows, streams, codec, is_cut=False)
    return Segment(rows, streams)


def _segments(
    chain: Sequence[tuple[int, str]],
    unions: Mapping[int, int],
    stripe: Stripe,
    pages: StridePages,
    stretches: Sequence[tuple[int, int]],
    codec: Codec,
) -> Steps[list[Segment]]:
    """The streams of each stretch of strides."""
    cuts = [list(_cuts(chain, stripe, pages, first, last, codec)) for first, last in stretches]
    shared = [
        (kind, column)
        for column, _ in chain
        for kind in stripe.dictionary(column)
        if (kind, column) in stripe.streams
    ]
    ranges = [(c.offset, c.length) for run in cuts for c in run]
    common = [stripe.streams[key] for key in shared]
    buffers = iter((yield Request(ranges, "data", common)))
    stored = [[_bytes_of(next(buffers)) for _ in run] for run in cuts]
    dictionaries: dict[tuple[int, int], Pieces] = {}
    for key in shared:
        dictionaries[key] = codec.within(_bytes_of(next(buffers)))
    segments = []
    for (first, last), run, data_of_run in zip(stretches, cuts, stored, strict=True):
        streams: dict[tuple[int, int], Pieces] = {
            (c.kind, c.column): _begun(c, data, codec, _version(c, stripe))
            for c, data in zip(run, data_of_run, strict=True)
        }
        streams |= dictionaries
        rows = int(pages.boundaries[last] - pages.boundaries[first])
        require_sizes(chain, unions, stripe, rows, streams, codec, is_cut=True)
        segments.append(Segment(rows, streams))
    return segments


def _bytes_of(buffer: pa.Buffer) -> memoryview:
    return memoryview(buffer).cast("B")


def _cuts(
    chain: Sequence[tuple[int, str]],
    stripe: Stripe,
    pages: StridePages,
    first: int,
    last: int,
    codec: Codec,
) -> Iterator[_Cut]:
    """What is read of each stream for the strides from `first` up to `last`."""
    in_first = amounts(pages, stripe, chain, first)
    for column, column_kind in chain:
        for kind, coding in stripe.positioned(column, column_kind):
            stream = stripe.streams.get((kind, column))
            if stream is None:
                continue
            places = pages.positions[kind, column]
            begin = places[first]
            end = _end(places, last, stream.length, coding, codec)
            if not begin[0] <= end <= stream.length:
                raise CannotCut("positions that no stream has")
            yield _Cut(
                kind,
                column,
                coding,
                column_kind == "DECIMAL",
                begin,
                places[first + 1] if first + 1 < len(places) else None,
                in_first[kind, column],
                stream.offset + begin[0],
                end - begin[0],
                end == stream.length,
            )


def _end(places: Places, last: int, length: int, coding: Coding, codec: Codec) -> int:
    """Up to where a stream is read for the strides before `last`."""
    if last >= len(places):
        return length
    chunk, inside, values, bits = places[last]
    in_run = coding != "bytes" and bool(values or bits)
    if codec.kind == NONE:
        return min(chunk + (_LONGEST_RUN if in_run else 0), length)
    if not inside and not in_run:
        return chunk
    # Later strides begin in later chunks: the first such place is behind this chunk.
    for _ in range(1 + (in_run and inside + _LONGEST_RUN >= codec.block_size)):
        later = bisect_right(range(len(places)), chunk, lo=last, key=places.chunk)
        if later == len(places):
            return length
        chunk = places.chunk(later)
    return chunk


class _Head:
    """The beginning of a stream, decompressed as far as somebody looked."""

    def __init__(self, data: memoryview, codec: Codec, is_last: bool) -> None:
        self._stored = data
        self._codec = codec
        # In front of the stream's end, the last chunk may be cut off.
        found = metadata.chunks if is_last else metadata.whole_chunks
        self._chunks = found(data) if codec.kind != NONE else iter(())
        self.begins = {0: 0}
        """Where chunks begin: from their place in the stream to that in the data."""
        self.data = bytes(data) if codec.kind == NONE else b""
        self.end = len(data) if codec.kind == NONE else 0
        """Up to where the stream is decompressed."""
        self.grow()

    def grow(self) -> bool:
        """Decompress one more chunk, if there is one."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self.data += self._codec.decompressed(self._stored, chunk)
        self.end = chunk.end
        self.begins[chunk.end] = len(self.data)
        return True

    def place(self, chunk: int, inside: int) -> int:
        """Where a position is in the data."""
        if self._codec.kind == NONE:
            return chunk
        while chunk not in self.begins or self.begins[chunk] + inside > len(self.data):
            if not self.grow():
                break
        if chunk not in self.begins or self.begins[chunk] + inside > len(self.data):
            raise CannotCut("a position that is none")
        return self.begins[chunk] + inside

    def grown(self, find: Callable[[bytes], T]) -> T:
        """What is found in the data, of which there must be enough."""
        while True:
            try:
                return find(self.data)
            except NotEnough:
                if not self.grow():
                    raise CannotCut("a run that does not end") from None

    def rest(self) -> memoryview:
        """The chunks that nobody looked at, as they are stored."""
        end = self.end
        for chunk in self._chunks:
            end = chunk.end
        return self._stored[self.end : end]


def _begun(c: _Cut, data: memoryview, codec: Codec, version: int) -> Pieces:
    """A stream that begins with the first value of the strides."""
    if not data:
        if c.amount > 0:
            raise CannotCut("an empty stream")
        return []
    head = _Head(data, codec, c.is_last)
    _require_amount(c, head, version)
    skip = head.place(0, c.begin[1])
    values, bits = c.begin[2:]
    if bits:
        while head.grow():
            pass
        return [codec.as_stored(shifted_bits(head.data, skip, values, bits))]
    rest = head.data[skip:]
    if values and c.coding != "bytes":
        runs = _runs(c.coding, version)
        again, end = head.grown(lambda data: without(data, skip, values, runs))
        rest = again + head.data[end:]
    return [codec.as_stored(rest), head.rest()]


def _require_amount(c: _Cut, head: _Head, version: int) -> None:
    """The first stride must have as much as its statistics say, up to where the next one begins.

    Some writers recorded wrong positions; this is how they are found out.
    """
    if c.amount < 0:
        return
    skip = head.place(0, c.begin[1])
    if c.following is None:
        while head.grow():
            pass
        target, values, bits = len(head.data), 0, 0
    else:
        target = head.place(c.following[0] - c.begin[0], c.following[1])
        values, bits = c.following[2:]
    if c.coding == "bytes":
        between = head.data[skip:target]
        before = head.data[skip - 1 : skip] + head.data[target - 1 : target]
        if c.is_decimals and max(before, default=0) > 127:
            raise CannotCut("a stride that begins in the midst of a value")
        found = _count_varints(between) if c.is_decimals else len(between)
        if found != c.amount or target < skip:
            raise CannotCut("a stride of another size")
        return
    amount, more = c.amount + c.begin[2], 0
    if c.coding == "bits":
        amount, more = divmod(8 * c.begin[2] + c.begin[3] + c.amount, 8)
        if c.following is None and more:
            amount, more = amount + 1, 0
    runs = _runs(c.coding, version)
    reached = head.grown(lambda data: runs.after(data, skip, amount))
    expected = head.grown(lambda data: runs.after(data, target, values))
    if (reached, more) != (expected, bits):
        raise CannotCut("a stride of another length")


def _count_varints(data: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) < 128))


def _version(c: _Cut, stripe: Stripe) -> int:
    """Which version of run-length encoding a stream has; decimals in runs have the second."""
    return 2 if c.is_decimals and c.kind == DATA else stripe.runs(c.column)


def _runs(coding: Coding, version: int) -> Runs:
    """How the values of a stream are written."""
    if coding in ("bits", "byte runs"):
        return BYTE_RUNS
    return integer_runs(version, coding == "signed")
