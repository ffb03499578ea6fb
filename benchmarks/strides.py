"""The fewest bytes with which an ORC file can answer, worked out without fretsaw.

In: a path, the rows and the columns wanted, and the condition that finds them. Out: bytes of the
postscript and the footer, of the stripe statistics if there is a condition, of the footers of the
stripes in question, of the row indexes of the columns needed, and of the compression chunks that
hold a stride in question; a dictionary is needed whole. What is wanted whole needs no index. A
condition needs, in stripes that statistics leave open, the row index of its column and the strides
that this leaves open in turn. A stride ends where the next one begins: within that chunk, if any of
what is before, or of the run there, belongs to the stride.
For compressed files of integers, doubles, strings and timestamps, which is what the data has. Read
with just the parts of protobuf that matter here; numbers are those of `orc_proto.proto`.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cramjam
import numpy as np

from benchmarks.conditions import Tested
from benchmarks.contestant import RowNumbers
from benchmarks.limit import Piece
from benchmarks.need import Need
from benchmarks.pages import NO_ROWS, between, stored

INFLATE: Mapping[int, Callable[[bytes], bytes]] = {
    1: lambda data: zlib.decompress(data, -zlib.MAX_WBITS),
    5: lambda data: bytes(cramjam.zstd.decompress(data)),
}
CODECS = {1: "deflate", 5: "zstd"}
HEADER = 3  # bytes before what a chunk holds: a bit that says it is as it was, and its length
PRESENT, DATA, LENGTH, SECONDARY, ROW_INDEX = 0, 1, 2, 5, 6  # kinds of streams
INT, LONG, DOUBLE, STRING, TIMESTAMP = 3, 4, 6, 7, 9  # kinds of types
IN_CHUNK = 2  # numbers of every position: where a chunk begins, and a byte of what it holds
# Streams in the order of their positions, and how many more numbers say where in a run one is.
RUNS = ((DATA, 1),)
POSITIONS = {
    INT: RUNS,
    LONG: RUNS,
    DOUBLE: ((DATA, 0),),
    STRING: ((DATA, 0), (LENGTH, 1)),
    TIMESTAMP: ((DATA, 1), (SECONDARY, 1)),
}
DICTIONARIES = (1, 3)  # encodings of a string column, whose positions are then as those of integers


class _Message:
    """The fields of a protobuf message: those of all that is nested, once it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        at = 0
        while at < len(data):
            tag, at = _varint(data, at)
            value: int | bytes
            if tag & 7 == 0:
                value, at = _varint(data, at)
            else:
                length, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or _varint(data, at)
                value, at = data[at : at + length], at + length
            self._fields.setdefault(tag >> 3, []).append(value)

    def number(self, field: int) -> int:
        """The last one of the field, 0 if there is none."""
        value = self._fields.get(field, [0])[-1]
        assert isinstance(value, int)
        return value

    def has(self, field: int) -> bool:
        return field in self._fields

    def pieces(self, field: int) -> list[bytes]:
        return [value for value in self._fields.get(field, []) if isinstance(value, bytes)]

    def messages(self, field: int) -> list["_Message"]:
        return [_Message(piece) for piece in self.pieces(field)]

    def numbers(self, field: int) -> list[int]:
        """Packed numbers."""
        found: list[int] = []
        for piece in self.pieces(field):
            at = 0
            while at < len(piece):
                value, at = _varint(piece, at)
                found.append(value)
        return found


@dataclass(frozen=True, slots=True)
class _Stream:
    start: int
    length: int


def least_of_orc(
    path: Path,
    rows: RowNumbers | None = None,
    columns: Sequence[str] | None = None,
    where: Tested | None = None,
) -> Need:
    """What must be read for these rows (sorted; None: all) of these columns."""
    file = _File(path)
    total = Need(file.tail_bytes + (file.statistics_bytes if where is not None else 0))
    first = 0
    for number, stripe in enumerate(file.stripes):
        end = first + stripe.number(5)
        wanted = None if rows is None else between(rows, first, end)
        first = end
        tested = where if where is not None and file.is_open(where, number) else None
        if wanted is not None and len(wanted) == 0 and tested is None:
            continue
        total.bytes += stripe.number(4)
        for column, name in enumerate(file.names, start=1):
            chosen = wanted if columns is None or name in columns else NO_ROWS
            condition = tested if tested is not None and name in tested.columns else None
            total += file.column_need(stripe, column, chosen, condition)
    return total


class _File:
    """What the footers of a file say, and the bytes that parts of it take."""

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, np.uint8, "r")
        size = len(self._data)
        postscript_start = size - 1 - int(self._data[-1])
        postscript = _Message(self._bytes(postscript_start, size - 1))
        self._codec = postscript.number(2)
        footer_start = postscript_start - postscript.number(1)
        footer = self._section(footer_start, postscript.number(1))
        types = footer.messages(4)
        self.tail_bytes = size - footer_start
        self.statistics_bytes = postscript.number(5)
        self._statistics = self._section(
            footer_start - self.statistics_bytes, self.statistics_bytes
        ).messages(1)
        self._stride = footer.number(8)
        self._kinds = [each.number(1) for each in types]
        self.stripes = footer.messages(3)
        self.names = [name.decode() for name in types[0].pieces(3)]

    def is_open(self, where: Tested, stripe: int) -> bool:
        """Whether the statistics of a stripe leave open if all or none of its rows match."""
        statistics = self._statistics[stripe].messages(1)
        tested = (statistics[self.names.index(name) + 1] for name in where.columns)
        return all(_leaves_open(where, each) for each in tested)

    def column_need(
        self, stripe: _Message, column: int, rows: RowNumbers | None, where: Tested | None
    ) -> Need:
        """What one column of a stripe takes: its row index, and chunks of its streams."""
        if rows is not None and len(rows) == 0 and where is None:
            return Need()
        streams, encoding = self._streams(stripe, column)
        index = streams.pop(ROW_INDEX)
        if rows is None:
            return self._whole(streams.values())
        entries = self._section(index.start, index.length).messages(1)
        needed = {int(row) // self._stride for row in rows}
        if where is not None:
            statistics = enumerate(entry.messages(2)[0] for entry in entries)
            needed |= {number for number, each in statistics if _leaves_open(where, each)}
        total = Need(index.length)
        positions = [entry.numbers(1) for entry in entries]
        place = 0
        for kind, extra in _positions(self._kinds[column], encoding, PRESENT in streams):
            part = slice(place, place + IN_CHUNK + extra)
            place = part.stop
            starts = [position[part] for position in positions]
            total += self._chunks(streams.pop(kind), starts, needed)
        # What has no positions is a dictionary.
        total += self._whole(streams.values() if needed else ())
        return total

    def _streams(self, stripe: _Message, column: int) -> tuple[dict[int, _Stream], int]:
        """The streams of a column by their kinds, and its encoding."""
        start, index, data, length = (stripe.number(field) for field in (1, 2, 3, 4))
        footer = self._section(start + index + data, length)
        found: dict[int, _Stream] = {}
        for stream in footer.messages(1):
            if stream.number(2) == column:
                found[stream.number(1)] = _Stream(start, stream.number(3))
            start += stream.number(3)
        return found, footer.messages(2)[column].number(1)

    def _whole(self, streams: Iterable[_Stream]) -> Need:
        total = Need()
        for stream in streams:
            at, end = stream.start, stream.start + stream.length
            while at < end:
                chunk = self._chunk_need(at)
                total += chunk
                at += chunk.bytes
        return total

    def _chunks(self, stream: _Stream, starts: Sequence[Sequence[int]], strides: set[int]) -> Need:
        """The chunks of a stream that hold a part of these strides, each counted once."""
        total = Need()
        seen: dict[int, int] = {}
        for stride in strides:
            at = starts[stride][0]
            is_last = stride + 1 == len(starts)
            end, *within = (stream.length,) if is_last else starts[stride + 1]
            while at < end or (at == end and any(within)):
                if at not in seen:
                    chunk = self._chunk_need(stream.start + at)
                    total += chunk
                    seen[at] = chunk.bytes
                at += seen[at]
        return total

    def _chunk_need(self, at: int) -> Need:
        length, is_stored = self._chunk(at)
        total = Need(HEADER + length)
        if not is_stored:
            body = self._data[at + HEADER : at + HEADER + length].data
            size = len(INFLATE[self._codec](bytes(body)))
            total.pieces.append(Piece(body, CODECS[self._codec], size))
        return total

    def _section(self, start: int, length: int) -> _Message:
        """A message in as many chunks as it takes."""
        pieces: list[bytes] = []
        at = start
        while at < start + length:
            size, is_stored = self._chunk(at)
            at += HEADER
            piece = self._bytes(at, at + size)
            pieces.append(piece if is_stored else INFLATE[self._codec](piece))
            at += size
        return _Message(b"".join(pieces))

    def _chunk(self, at: int) -> tuple[int, bool]:
        header = int.from_bytes(self._bytes(at, at + HEADER), "little")
        return header >> 1, bool(header & 1)

    def _bytes(self, start: int, end: int) -> bytes:
        return self._data[start:end].tobytes()


def _positions(kind: int, encoding: int, has_nulls: bool) -> Iterator[tuple[int, int]]:
    """The streams that have positions, as in `POSITIONS`, which has them without nulls."""
    if has_nulls:
        yield PRESENT, 2
    yield from RUNS if kind == STRING and encoding in DICTIONARIES else POSITIONS[kind]


def _leaves_open(where: Tested, statistics: _Message) -> bool:
    """Whether rows with these statistics may match and may not match: known of times alone.

    Their bounds are in milliseconds, with what is finer left out.
    """
    bounds = statistics.messages(TIMESTAMP)
    if not bounds or not (bounds[0].has(3) and bounds[0].has(4)):
        return True
    least, most = (1_000 * _signed(bounds[0].number(field)) for field in (3, 4))
    return where.leaves_open(least, most + 999, statistics.number(10) != 0, stored)


def _signed(number: int) -> int:
    """A zigzag number."""
    return number >> 1 ^ -(number & 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
