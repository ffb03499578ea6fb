"""ORC files whose metadata says something else than their data: what no well-behaved writer makes.

In: the bytes of an ORC file. Out: the same streams of data under other statistics, row indexes,
Bloom filters, footers. Protobuf messages are `{field: [values]}`, so that nothing is lost on the
way, known or not: a varint is an int, a fixed64 a `Fixed`, everything else bytes. Changes are by
name: `None` takes a field out. Metadata of compressed files is written as chunks of original bytes.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import cramjam
import pyarrow as pa
import pyarrow.orc as orc

Message = dict[int, list[Any]]
Changes = Mapping[str, Any]

# Field numbers of PostScript, Footer, StripeInformation, StripeFooter, Stream
FOOTER_LENGTH, COMPRESSION, BLOCK_SIZE, METADATA_LENGTH = 1, 2, 3, 5
HEADER_LENGTH, CONTENT_LENGTH, STRIPES, TYPES, ROWS, STATISTICS, STRIDE = 1, 2, 3, 4, 6, 7, 8
WRITER, SOFTWARE_VERSION = 9, 12
OFFSET, INDEX_LENGTH, DATA_LENGTH, STRIPE_FOOTER_LENGTH, STRIPE_ROWS = 1, 2, 3, 4, 5
STREAMS = 1
KIND, COLUMN, LENGTH = 1, 2, 3
SUBTYPES, NAMES = 2, 3
ENCODINGS, ENCODING = 2, 1
# Kinds of streams
DATA, ROW_INDEX, BLOOM_FILTER, BLOOM_FILTER_UTF8 = 1, 6, 7, 8
INDEX_KINDS = (ROW_INDEX, BLOOM_FILTER, BLOOM_FILTER_UTF8)
POSITIONS, ENTRY_STATISTICS = 1, 2
BITSET, UTF8_BITSET = 2, 3
CODECS: Mapping[int, Callable[[bytes, int], bytes]] = {
    1: lambda body, size: zlib.decompress(body, -15, size),
    2: lambda body, size: bytes(cramjam.snappy.decompress_raw(body)),
    4: lambda body, size: bytes(cramjam.lz4.decompress_block(body, output_len=size)),
    5: lambda body, size: bytes(cramjam.zstd.decompress(body)),
}


# The wire format


class Fixed(bytes):
    """Eight bytes as they are: a double or a fixed64."""


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position


def parsed(data: bytes) -> Message:
    """The fields of a message."""
    fields: Message = {}
    position = 0
    while position < len(data):
        key, position = read_varint(data, position)
        value: Any
        match key & 7:
            case 0:
                value, position = read_varint(data, position)
            case 1:
                value, position = Fixed(data[position : position + 8]), position + 8
            case 2:
                size, position = read_varint(data, position)
                value, position = data[position : position + size], position + size
            case kind:
                raise ValueError(f"no ORC file has a field of wire type {kind}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def encoded(message: Message) -> bytes:
    """A message in the wire format, fields in the order of their numbers."""
    parts = []
    for number, values in sorted(message.items()):
        for value in values:
            if isinstance(value, int):
                parts.append(varint(number << 3) + varint(value))
            elif isinstance(value, Fixed):
                parts.append(varint(number << 3 | 1) + value)
            else:
                parts.append(varint(number << 3 | 2) + varint(len(value)) + value)
    return b"".join(parts)


def packed(numbers: Iterable[int]) -> bytes:
    return b"".join(map(varint, numbers))


def unpacked(data: bytes) -> list[int]:
    numbers, position = [], 0
    while position < len(data):
        number, position = read_varint(data, position)
        numbers.append(number)
    return numbers


def opened(data: bytes, codec: int, block: int) -> bytes:
    """Bytes without their compression: chunks whose headers say how long and whether as is."""
    if not codec:
        return data
    parts = []
    position = 0
    while position < len(data):
        header = int.from_bytes(data[position : position + 3], "little")
        body = data[position + 3 : position + 3 + (header >> 1)]
        parts.append(body if header & 1 else CODECS[codec](body, block))
        position += 3 + (header >> 1)
    return b"".join(parts)


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def unzigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)


# Statistics by name


@dataclass(frozen=True)
class Fact:
    """Where a fact stands in ColumnStatistics, and how it is written."""

    path: tuple[int, ...]
    write: Callable[[Any], Any] = int
    read: Callable[[Any], Any] = int


def signed(*path: int) -> Fact:
    return Fact(path, zigzag, unzigzag)


def double(*path: int) -> Fact:
    return Fact(
        path, lambda value: Fixed(struct.pack("<d", value)), lambda raw: struct.unpack("<d", raw)[0]
    )


def text(*path: int) -> Fact:
    return Fact(
        path, lambda value: value if isinstance(value, bytes) else value.encode(), bytes.decode
    )


FACTS: Mapping[str, Fact] = {
    "values": Fact((1,)),
    "has_null": Fact((10,), int, bool),
    **{f"int_{name}": signed(2, i) for i, name in enumerate(("min", "max", "sum"), 1)},
    **{f"double_{name}": double(3, i) for i, name in enumerate(("min", "max", "sum"), 1)},
    "string_min": text(4, 1),
    "string_max": text(4, 2),
    "string_sum": signed(4, 3),
    "string_lower": text(4, 4),
    "string_upper": text(4, 5),
    "trues": Fact((5, 1), lambda count: packed([count]), lambda raw: unpacked(raw)[0]),
    **{f"decimal_{name}": text(6, i) for i, name in enumerate(("min", "max", "sum"), 1)},
    "date_min": signed(7, 1),
    "date_max": signed(7, 2),
    "binary_sum": signed(8, 1),
    "local_min": signed(9, 1),
    "local_max": signed(9, 2),
    "utc_min": signed(9, 3),
    "utc_max": signed(9, 4),
    "min_nanos": Fact((9, 5)),
    "max_nanos": Fact((9, 6)),
}
# Facts that make up the message of one type; a change to `None` takes it out as a whole
GROUPS = {
    **{"int": 2, "double": 3, "string": 4, "bool": 5, "decimal": 6, "date": 7},
    **{"binary": 8, "timestamp": 9},
}


def facts(statistics: bytes) -> dict[str, Any]:
    """What a ColumnStatistics says, by name."""
    message = parsed(statistics)
    found = {}
    for name, fact in FACTS.items():
        inner = message
        if len(fact.path) == 2:
            inner = parsed(message[fact.path[0]][0]) if fact.path[0] in message else {}
        if fact.path[-1] in inner:
            found[name] = fact.read(inner[fact.path[-1]][0])
    return found


def restated(statistics: bytes, changes: Changes) -> bytes:
    """A ColumnStatistics with some facts changed, or taken out: `None`."""
    message = parsed(statistics)
    for name, value in changes.items():
        if name in GROUPS:
            assert value is None, f"{name} can only be taken out"
            message.pop(GROUPS[name], None)
            continue
        fact = FACTS[name]
        inner = message
        if len(fact.path) == 2:
            inner = parsed(message[fact.path[0]][0]) if fact.path[0] in message else {}
        inner.pop(fact.path[-1], None)
        if value is not None:
            inner[fact.path[-1]] = [fact.write(value)]
        if len(fact.path) == 2:
            message[fact.path[0]] = [encoded(inner)]
    return encoded(message)


# Files


def written(table: pa.Table, rows: int, **options: Any) -> bytes:
    """A file by pyarrow in stripes of so many rows, whatever the size of their bytes."""
    starts = range(0, table.num_rows, rows) if table.num_rows > rows else ()
    # Copies: pyarrow loses the offset of a sliced struct.
    numbers = pa.array(range(table.num_rows))
    parts = [table.take(numbers[at : at + rows]) for at in starts]
    pieces = [written_at_once(part, **options) for part in parts]
    return joined(written_at_once(table, **options), pieces)


def joined(whole: bytes, pieces: Sequence[bytes]) -> bytes:
    """A file with the stripes of others, if any, which have the same rows by the same writer."""
    file, others = Crafted(whole), [Crafted(piece) for piece in pieces]
    if others:
        file.stripes = [stripe for other in others for stripe in other.stripes]
        file.metadata = {1: [each for other in others for each in other.metadata[1]]}
    return file.to_bytes()


def without_row_index(data: bytes) -> bytes:
    file = Crafted(data)
    for stripe in file.stripes:
        stripe.streams = [stream for stream in stripe.streams if stream.kind != ROW_INDEX]
    file.footer[STRIDE] = [0]
    return file.to_bytes()


def written_at_once(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink, **options)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read(data: bytes) -> pa.Table:
    return orc.ORCFile(pa.BufferReader(data)).read()


@dataclass
class Stream:
    """A stream of a stripe: its kind, its column, its bytes as they are in the file."""

    kind: int
    column: int
    body: bytes


@dataclass
class Stripe:
    """A stripe taken apart."""

    information: Message
    footer: Message
    streams: list[Stream]

    def stream(self, kind: int, column: int) -> Stream:
        found = [s for s in self.streams if (s.kind, s.column) == (kind, column)]
        assert found, f"no stream of kind {kind} for column {column}"
        return found[0]


class Crafted:
    """A file under change: each method changes one thing and gives the file back.

    Columns are numbers: the root is 0, below it they count depth first.
    """

    def __init__(self, data: bytes) -> None:
        end = len(data) - 1 - data[-1]
        self.postscript = parsed(data[end:-1])
        self._codec = self.postscript.get(COMPRESSION, [0])[0]
        self._block = self.postscript.get(BLOCK_SIZE, [0])[0]
        start = end - self.postscript[FOOTER_LENGTH][0]
        self.footer = parsed(self._opened(data[start:end]))
        size = self.postscript.get(METADATA_LENGTH, [0])[0]
        self.metadata = parsed(self._opened(data[start - size : start]))
        self.stripes = [self._stripe(data, parsed(raw)) for raw in self.footer.get(STRIPES, [])]

    def _stripe(self, data: bytes, information: Message) -> Stripe:
        position = information[OFFSET][0]
        middle = position + sum(
            information.get(field, [0])[0] for field in (INDEX_LENGTH, DATA_LENGTH)
        )
        end = middle + information[STRIPE_FOOTER_LENGTH][0]
        footer = parsed(self._opened(data[middle:end]))
        streams = []
        for raw in footer.pop(STREAMS, []):
            stream = parsed(raw)
            kind, column, size = (stream.get(field, [0])[0] for field in (KIND, COLUMN, LENGTH))
            streams.append(Stream(kind, column, data[position : position + size]))
            position += size
        return Stripe(information, footer, streams)

    def to_bytes(self) -> bytes:
        """The file put together again; lengths and offsets are what they must be."""
        parts = [b"ORC"]
        infos = []
        for stripe in self.stripes:
            ordered = sorted(stripe.streams, key=lambda stream: stream.kind not in INDEX_KINDS)
            sizes = [
                sum(len(s.body) for s in ordered if (s.kind in INDEX_KINDS) == is_index)
                for is_index in (True, False)
            ]
            listed = [
                encoded({KIND: [s.kind], COLUMN: [s.column], LENGTH: [len(s.body)]})
                for s in ordered
            ]
            footer = self._closed(encoded({**stripe.footer, STREAMS: listed}))
            where: Message = {
                OFFSET: [sum(map(len, parts))],
                INDEX_LENGTH: [sizes[0]],
                DATA_LENGTH: [sizes[1]],
                STRIPE_FOOTER_LENGTH: [len(footer)],
            }
            infos.append(encoded({**stripe.information, **where}))
            parts += [stream.body for stream in ordered] + [footer]
        content = sum(map(len, parts))
        metadata = self._closed(encoded(self.metadata))
        places: Message = {HEADER_LENGTH: [3], CONTENT_LENGTH: [content], STRIPES: infos}
        footer = self._closed(encoded({**self.footer, **places}))
        lengths: Message = {FOOTER_LENGTH: [len(footer)], METADATA_LENGTH: [len(metadata)]}
        tail = encoded({**self.postscript, **lengths})
        return b"".join([*parts, metadata, footer, tail, bytes([len(tail)])])

    # What it says

    @property
    def stripe_rows(self) -> list[int]:
        return [stripe.information[STRIPE_ROWS][0] for stripe in self.stripes]

    def stripe_statistics(self, column: int) -> list[dict[str, Any]]:
        """What the file's metadata says of the column, by stripe."""
        messages = [parsed(raw)[1] for raw in self.metadata.get(1, [])]
        return [facts(columns[column]) for columns in messages]

    def strides(self, column: int) -> list[list[dict[str, Any]]]:
        """What the row indexes say, by stripe and stride; with the positions."""
        return [
            [
                {
                    **facts(entry.get(ENTRY_STATISTICS, [b""])[0]),
                    "positions": self._positions(entry),
                }
                for entry in self._entries(stripe.stream(ROW_INDEX, column))
            ]
            for stripe in self.stripes
        ]

    # What it is to say

    def set_stripe_statistics(self, column: int, changes: Sequence[Changes | None]) -> Self:
        """Change the statistics of the column in each stripe, or empty them: `None`."""
        for number, change in enumerate(changes):
            columns = parsed(self.metadata[1][number])
            before = columns[1][column]
            columns[1][column] = b"" if change is None else restated(before, change)
            self.metadata[1][number] = encoded(columns)
        return self

    def set_file_statistics(self, column: int, change: Changes | None) -> Self:
        before = self.footer[STATISTICS][column]
        self.footer[STATISTICS][column] = b"" if change is None else restated(before, change)
        return self

    def drop_stripe_statistics(self) -> Self:
        """The metadata section says nothing at all."""
        self.metadata = {}
        return self

    def set_strides(self, column: int, changes: Sequence[Sequence[Changes | None]]) -> Self:
        """Change each stride's statistics, or take them out: `None`; `positions` are numbers."""
        for stripe, of_stripe in zip(self.stripes, changes, strict=True):
            stream = stripe.stream(ROW_INDEX, column)
            entries = self._entries(stream)
            for entry, change in zip(entries, of_stripe, strict=True):
                if change is None:
                    entry.pop(ENTRY_STATISTICS, None)
                    continue
                told = dict(change)
                if "positions" in told:
                    entry[POSITIONS] = [packed(told.pop("positions"))]
                if told:
                    before = entry.get(ENTRY_STATISTICS, [b""])[0]
                    entry[ENTRY_STATISTICS] = [restated(before, told)]
            stream.body = self._closed(encoded({1: [encoded(entry) for entry in entries]}))
        return self

    def keep_entries(self, column: int, count: int) -> Self:
        """Only the first entries of each row index of the column."""
        for stripe in self.stripes:
            stream = stripe.stream(ROW_INDEX, column)
            entries = self._entries(stream)[:count]
            stream.body = self._closed(encoded({1: [encoded(entry) for entry in entries]}))
        return self

    def drop_streams(self, kind: int, column: int) -> Self:
        for stripe in self.stripes:
            stripe.streams.remove(stripe.stream(kind, column))
        return self

    def change_streams(self, kind: int, column: int, change: Callable[[bytes], bytes]) -> Self:
        """Another body for the stream of each stripe, from the bytes without their compression."""
        for stripe in self.stripes:
            stream = stripe.stream(kind, column)
            stream.body = self._closed(change(self._opened(stream.body)))
        return self

    def set_bloom_kind(self, kind: int, column: int) -> Self:
        """Make BLOOM_FILTER of BLOOM_FILTER_UTF8: the bits in the field that goes with it."""
        for stripe in self.stripes:
            stream = stripe.stream(BLOOM_FILTER_UTF8, column)
            stream.kind = kind
            filters = [parsed(raw) for raw in parsed(self._opened(stream.body))[1]]
            for each in filters if kind == BLOOM_FILTER else ():
                (bits,) = each.pop(UTF8_BITSET)
                each[BITSET] = [Fixed(bits[i : i + 8]) for i in range(0, len(bits), 8)]
            stream.body = self._closed(encoded({1: [encoded(each) for each in filters]}))
        return self

    def empty_blooms(self, column: int) -> Self:
        """Bloom filters that say of every value that it is not there."""
        for stripe in self.stripes:
            stream = stripe.stream(BLOOM_FILTER_UTF8, column)
            filters = [parsed(raw) for raw in parsed(self._opened(stream.body))[1]]
            for each in filters:
                each[UTF8_BITSET] = [bytes(len(each[UTF8_BITSET][0]))]
            stream.body = self._closed(encoded({1: [encoded(each) for each in filters]}))
        return self

    def set_writer(self, writer: int | None, version: str | None) -> Self:
        """Who wrote the file: 0 is Java, 1 is C++."""
        for field, value in ((WRITER, writer), (SOFTWARE_VERSION, version)):
            self.footer.pop(field, None)
            if value is not None:
                self.footer[field] = [value.encode() if isinstance(value, str) else value]
        return self

    def set_types(self, change: Callable[[list[Message]], list[Message]]) -> Self:
        types = change([parsed(raw) for raw in self.footer[TYPES]])
        self.footer[TYPES] = [encoded(each) for each in types]
        return self

    # Bytes

    def _entries(self, stream: Stream) -> list[Message]:
        return [parsed(raw) for raw in parsed(self._opened(stream.body)).get(1, [])]

    @staticmethod
    def _positions(entry: Message) -> list[int]:
        found: list[int] = []
        for value in entry.get(POSITIONS, []):
            found += [value] if isinstance(value, int) else unpacked(value)
        return found

    def _opened(self, data: bytes) -> bytes:
        return opened(data, self._codec, self._block)

    def _closed(self, data: bytes) -> bytes:
        """Bytes as a compressed file has them, in chunks that say they are not compressed."""
        if not self._codec:
            return data
        pieces = [data[i : i + self._block] for i in range(0, len(data), self._block)]
        return b"".join((len(p) << 1 | 1).to_bytes(3, "little") + p for p in pieces)
