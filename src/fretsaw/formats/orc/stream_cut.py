"""One stream from a stride on: which of its bytes are read, and how it begins there.

The first chunk is decompressed, what comes before the stride dropped, and the rest written as it
is; the other chunks stay untouched.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.index import Place, Places, Strides, amounts
from fretsaw.formats.orc.metadata import DATA, NONE, Codec, Pieces
from fretsaw.formats.orc.runs import BYTE_RUNS, NotEnough, Runs, integer_runs, shifted_bits, without
from fretsaw.formats.orc.streams import Coding, LeafStreams

T = TypeVar("T")

_LONGEST_RUN = 8 << 10  # bytes of the longest run, which may go on in the next chunk


@dataclass(frozen=True, slots=True)
class StreamCut:
    """A stream of some strides: where it begins, and what it is."""

    kind: int
    column: int
    coding: Coding
    version: int
    """Which version of run-length encoding it has."""
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


def stream_cuts(
    streams: LeafStreams, strides: Strides, first: int, last: int, first_rows: int
) -> Iterator[StreamCut]:
    """What is read of each stream for strides up to `last`, of which the first has so many rows."""
    stripe = streams.stripe
    in_first = amounts(strides, streams, first, first_rows)
    for column, column_kind in streams.chain:
        for kind, coding in stripe.positioned(column, column_kind):
            stream = stripe.streams.get((kind, column))
            if stream is None:
                continue
            places = strides.positions[kind, column]
            begin = places[first]
            end = _end(places, last, stream.length, coding, streams.codec)
            following = places[first + 1] if first + 1 < len(places) else None
            if not begin[0] <= end <= stream.length or (following and following[0] < begin[0]):
                raise CannotCut("positions that no stream has")
            is_decimals = column_kind == "DECIMAL"
            # Decimals in runs have the second version of run-length encoding.
            version = 2 if is_decimals and kind == DATA else stripe.runs(column)
            yield StreamCut(
                kind,
                column,
                coding,
                version,
                is_decimals,
                begin,
                following,
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


def begun(c: StreamCut, data: memoryview, codec: Codec) -> Pieces:
    """A stream that begins with the first value of the strides."""
    if not data:
        if c.amount > 0:
            raise CannotCut("an empty stream")
        return []
    head = _Head(data, codec, c.is_last)
    _require_amount(c, head)
    skip = head.place(0, c.begin[1])
    values, bits = c.begin[2:]
    if bits:
        while head.grow():
            pass
        return [codec.as_stored(shifted_bits(head.data, skip, values, bits))]
    rest = head.data[skip:]
    if values and c.coding != "bytes":
        runs = _runs(c.coding, c.version)
        again, end = head.grown(lambda data: without(data, skip, values, runs))
        rest = again + head.data[end:]
    return [codec.as_stored(rest), head.rest()]


def _require_amount(c: StreamCut, head: _Head) -> None:
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
    runs = _runs(c.coding, c.version)
    reached = head.grown(lambda data: runs.after(data, skip, amount))
    expected = head.grown(lambda data: runs.after(data, target, values))
    if (reached, more) != (expected, bits):
        raise CannotCut("a stride of another length")


def _count_varints(data: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) < 128))


def _runs(coding: Coding, version: int) -> Runs:
    """How the values of a stream are written."""
    if coding in ("bits", "byte runs"):
        return BYTE_RUNS
    return integer_runs(version, coding == "signed")
