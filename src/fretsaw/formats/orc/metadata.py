"""The protobuf messages of an ORC file, and the chunks that its streams are compressed in.

Messages name only the fields that are used here. Field numbers and types are those of the
specification; strings are bytes, since nobody promises that they are UTF-8, and messages that few
ask for stay bytes until then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from isal import isal_zlib

MAGIC = b"ORC"

PRESENT, DATA, LENGTH, DICTIONARY_DATA, _, SECONDARY, ROW_INDEX, BLOOM_FILTER, BLOOM_FILTER_UTF8 = (
    range(9)
)
DIRECT, DICTIONARY, DIRECT_V2, DICTIONARY_V2 = range(4)
NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD = range(6)
KINDS = (
    *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "STRING", "BINARY"),
    *("TIMESTAMP", "LIST", "MAP", "STRUCT", "UNION", "DECIMAL", "DATE", "VARCHAR", "CHAR"),
    "TIMESTAMP_INSTANT",
)

_HEADER = 3  # bytes before each chunk: its length, and whether it is stored as it is
_LARGEST_CHUNK = 1 << 23
_LARGEST_MESSAGE = 256 << 20

_CODEC_ERRORS: tuple[Any, ...] = (cramjam.DecompressionError, isal_zlib.error)

_MESSAGES = {
    "PostScript": (
        "1 footer_length uint64, 2 compression uint32, 3 block_size uint64, 4 version uint32*, "
        "5 metadata_length uint64, 6 writer_version uint32, 8000 magic bytes"
    ),
    "StripeInformation": (
        "1 offset uint64, 2 index_length uint64, 3 data_length uint64, 4 footer_length uint64, "
        "5 number_of_rows uint64"
    ),
    "Type": (
        "1 kind uint32, 2 subtypes uint32*, 3 field_names bytes+, 4 maximum_length uint32, "
        "5 precision uint32, 6 scale uint32"
    ),
    "UserMetadataItem": "1 name bytes, 2 value bytes",
    "Footer": (
        "1 header_length uint64, 2 content_length uint64, 3 stripes StripeInformation+, "
        "4 types Type+, 5 metadata UserMetadataItem+, 6 number_of_rows uint64, "
        "8 row_index_stride uint32, 9 writer uint32, 10 encryption bytes, 11 calendar uint32, "
        "12 software_version bytes"
    ),
    "StripeStatistics": "1 columns bytes+",
    "Metadata": "1 stripes StripeStatistics+",
    "Stream": "1 kind uint32, 2 column uint32, 3 length uint64",
    "ColumnEncoding": "1 kind uint32, 2 dictionary_size uint32, 3 bloom_encoding uint32",
    "StripeFooter": "1 streams Stream+, 2 columns ColumnEncoding+, 3 timezone bytes",
    "IntegerStatistics": "1 minimum sint64, 2 maximum sint64, 3 sum sint64",
    "DoubleStatistics": "1 minimum double, 2 maximum double, 3 sum double",
    "StringStatistics": (
        "1 minimum bytes, 2 maximum bytes, 3 sum sint64, 4 lower_bound bytes, 5 upper_bound bytes"
    ),
    "BinaryStatistics": "1 sum sint64",
    "BucketStatistics": "1 count uint64*",
    "DecimalStatistics": "1 minimum bytes, 2 maximum bytes, 3 sum bytes",
    "DateStatistics": "1 minimum sint32, 2 maximum sint32",
    "TimestampStatistics": (
        "1 minimum sint64, 2 maximum sint64, 3 minimum_utc sint64, 4 maximum_utc sint64"
    ),
    "ColumnStatistics": (
        "1 number_of_values uint64, 2 integers IntegerStatistics, 3 doubles DoubleStatistics, "
        "4 strings StringStatistics, 5 buckets BucketStatistics, 6 decimals DecimalStatistics, "
        "7 dates DateStatistics, 8 binary BinaryStatistics, 9 timestamps TimestampStatistics, "
        "10 has_null bool"
    ),
    "RowIndexEntry": "1 positions uint64*, 2 statistics bytes",
    "RowIndex": "1 entries RowIndexEntry+",
    "ValueCount": "1 number_of_values uint64",
    "CountedEntry": "2 statistics ValueCount",
    "CountedIndex": "1 entries CountedEntry+",
    "BloomFilter": "1 hash_functions uint32, 3 bits bytes",
    "BloomFilterIndex": "1 filters BloomFilter+",
}


Pieces: TypeAlias = Sequence[bytes | memoryview]
"""Bytes of a stream, one piece behind the other, as far as can be those that were read."""


class MalformedOrc(ValueError):
    """Bytes that are not what the format says they are."""


def _declared() -> dict[str, Any]:
    """The message classes: `*` is repeated and packed, `+` repeated."""
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="fretsaw/orc.proto", package="fretsaw.orc")
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for field in fields.split(", "):
            number, name, kind = field.split(" ")
            repeated = kind[-1] in "*+"
            base = kind.rstrip("*+")
            added = declared.field.add(number=int(number), name=name)
            added.label = field_type.LABEL_REPEATED if repeated else field_type.LABEL_OPTIONAL
            if base in _MESSAGES:
                added.type, added.type_name = field_type.TYPE_MESSAGE, f".fretsaw.orc.{base}"
            else:
                added.type = getattr(field_type, f"TYPE_{base.upper()}")
            if kind.endswith("*"):
                added.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"fretsaw.orc.{name}"))
        for name in _MESSAGES
    }


messages = _declared()
"""The classes of all messages, by name."""


def decode(name: str, data: bytes) -> Any:
    """A message of this name."""
    try:
        return messages[name].FromString(data)
    except DecodeError as error:
        raise MalformedOrc(f"{name} is no valid protobuf: {error}") from None


@dataclass(frozen=True, slots=True)
class Codec:
    """How the streams of a file are compressed, and how large a chunk may become."""

    kind: int
    block_size: int

    def unpacked(self, stored: bytes) -> bytes:
        """All of a stream."""
        if self.kind == NONE:
            return stored
        found, size = [], 0
        for chunk in chunks(stored):
            found.append(self.decompressed(stored, chunk))
            size += len(found[-1])
            if size > _LARGEST_MESSAGE:
                raise MalformedOrc(f"it has more than {_LARGEST_MESSAGE} bytes")
        return b"".join(found)

    def unpacked_pieces(self, pieces: Pieces) -> bytes:
        """All of a stream that comes in pieces."""
        return self.unpacked(b"".join(pieces))

    def most_bytes(self, pieces: Pieces) -> int:
        """How many bytes a stream can have at most."""
        if self.kind == NONE:
            return sum(map(len, pieces))
        return self.block_size * sum(1 for piece in pieces for _ in chunks(piece))

    def size(self, pieces: Pieces) -> int:
        """How many bytes a stream has."""
        if self.kind == NONE:
            return sum(map(len, pieces))
        return sum(len(self.decompressed(piece, c)) for piece in pieces for c in chunks(piece))

    def within(self, stored: memoryview) -> Pieces:
        """A stream whose chunks end where it does: Arrow would read what lies behind.

        The header of the last one may claim more if all of it is there nevertheless.
        """
        if self.kind == NONE:
            return [stored]
        end = 0
        try:
            for chunk in chunks(stored):
                end = chunk.end
        except MalformedOrc as too_long:
            last = stored[end:]
            if last[0] & 1 or len(last) <= _HEADER:
                raise
            try:
                self.decompressed(last, Chunk(0, len(last), is_original=False))
            except MalformedOrc:
                raise too_long from None
            header = (len(last) - _HEADER << 1).to_bytes(_HEADER, "little")
            return [stored[:end], header + last[_HEADER:].tobytes()]
        return [stored]

    def decompressed(self, stored: bytes | memoryview, chunk: "Chunk") -> bytes:
        """One chunk of a stream."""
        data = bytes(stored[chunk.begin + _HEADER : chunk.end])
        if chunk.is_original:
            return data
        try:
            return self._decompressed(data)
        except (*_CODEC_ERRORS, ValueError) as error:
            raise MalformedOrc(f"a chunk cannot be decompressed: {error}") from None

    def _decompressed(self, data: bytes) -> bytes:
        if self.kind == ZLIB:
            stream = isal_zlib.decompressobj(-15)
            found = bytes(stream.decompress(data, self.block_size))
            if not stream.eof and (stream.decompress(stream.unconsumed_tail, 1) or not stream.eof):
                raise MalformedOrc("a chunk does not end where it should")
            return found
        room = bytearray(self.block_size)
        if self.kind == SNAPPY:
            size = cramjam.snappy.decompress_raw_into(data, room)
        elif self.kind == LZ4:
            size = cramjam.lz4.decompress_block_into(data, room, output_len=self.block_size)
        elif self.kind == ZSTD:
            size = cramjam.zstd.decompress_into(data, room)
        else:
            raise MalformedOrc(f"its compression, {self.kind}, is not supported")
        return bytes(memoryview(room)[:size])

    def as_stored(self, data: bytes) -> bytes:
        """Bytes as chunks that are stored as they are."""
        if self.kind == NONE:
            return data
        most = min(self.block_size, _LARGEST_CHUNK - 1)
        parts = [data[begin : begin + most] for begin in range(0, len(data), most)]
        return b"".join((len(p) << 1 | 1).to_bytes(_HEADER, "little") + p for p in parts)


class Chunk(NamedTuple):
    """Where a chunk of a stream begins, header included, and ends."""

    begin: int
    end: int
    is_original: bool


def chunks(stored: bytes | memoryview) -> Iterator[Chunk]:
    """The chunks of a stream."""
    begin = 0
    while begin < len(stored):
        header = int.from_bytes(stored[begin : begin + _HEADER], "little")
        end = begin + _HEADER + (header >> 1)
        if end > len(stored):
            raise MalformedOrc(f"a chunk at {begin} ends behind the {len(stored)} bytes")
        yield Chunk(begin, end, bool(header & 1))
        begin = end


def whole_chunks(stored: memoryview) -> Iterator[Chunk]:
    """The chunks that are there from beginning to end, of a stream that is cut off somewhere."""
    try:
        yield from chunks(stored)
    except MalformedOrc:
        return


def codec_of(kind: int, block_size: int) -> Codec:
    """The codec of a file, if there can be such a one."""
    if kind != NONE and not 0 < block_size <= _LARGEST_CHUNK:
        raise MalformedOrc(f"it claims compression blocks of {block_size} bytes")
    return Codec(kind, block_size)
