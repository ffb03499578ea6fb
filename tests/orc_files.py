"""ORC files for the tests: written by pyarrow and by pyorc, and what their footers say.

`orc_bytes` and `pyorc_bytes` write, `pyarrow_orc` is what pyarrow reads of the same bytes.
`layout_of` reads the postscript, the footer and the stripe footers with a reader of protobuf's
wire format of its own. In: the bytes of a file. Out: stripes with their rows, the byte ranges of
their streams and the encodings of their columns, and the rows in a stride.
`assert_same_rows` compares tables of any type that pyarrow reads, unions among them.
"""

import datetime as dt
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.orc as orc
import pyorc

from tests.nested_data import assert_same_nested, steps
from tests.pages import Span

COMPRESSIONS = ("uncompressed", "zlib", "snappy", "zstd", "lz4")


class Kind(IntEnum):
    """What is in a stream."""

    PRESENT = 0
    DATA = 1
    LENGTH = 2
    DICTIONARY_DATA = 3
    DICTIONARY_COUNT = 4
    SECONDARY = 5
    ROW_INDEX = 6
    BLOOM_FILTER = 7
    BLOOM_FILTER_UTF8 = 8
    ENCRYPTED_INDEX = 9
    ENCRYPTED_DATA = 10
    STRIPE_STATISTICS = 100
    FILE_STATISTICS = 101


INDEXES = (Kind.ROW_INDEX, Kind.BLOOM_FILTER, Kind.BLOOM_FILTER_UTF8, Kind.ENCRYPTED_INDEX)
ENCODINGS = ("direct", "dictionary", "direct v2", "dictionary v2")


@dataclass(frozen=True)
class Stream:
    """Bytes of a column of a stripe; columns are type ids, the root is 0."""

    kind: Kind
    column: int
    span: Span


@dataclass(frozen=True)
class Stripe:
    """Rows `[first_row, end_row)` of the file, and where they lie."""

    first_row: int
    end_row: int
    span: Span
    streams: tuple[Stream, ...] = field(repr=False)
    encodings: tuple[str, ...] = field(repr=False)

    @property
    def midpoint(self) -> int:
        """The offset plus half of index, data and footer."""
        return self.span.start + (self.span.end - self.span.start) // 2

    def data(self, *columns: int) -> list[Span]:
        """The streams of values of these columns, or of all."""
        wanted = [s for s in self.streams if s.kind not in INDEXES]
        return [s.span for s in wanted if not columns or s.column in columns]


@dataclass(frozen=True)
class Layout:
    """What a file says about itself."""

    stripes: tuple[Stripe, ...]
    stride: int
    compression: str

    @property
    def rows(self) -> int:
        return self.stripes[-1].end_row if self.stripes else 0

    @property
    def has_index(self) -> bool:
        return any(s.kind is Kind.ROW_INDEX for stripe in self.stripes for s in stripe.streams)

    def strides(self) -> list[range]:
        """The rows of each stride; a stripe is one where there is no row index."""
        found: list[range] = []
        for stripe in self.stripes:
            step = self.stride or max(stripe.end_row - stripe.first_row, 1)
            starts = range(stripe.first_row, stripe.end_row, step)
            found += [range(start, min(start + step, stripe.end_row)) for start in starts]
        return found

    def boundaries(self) -> list[int]:
        """The rows where a stride or a stripe begins or ends."""
        return sorted({0, self.rows} | {rows.start for rows in self.strides()})


# Reading footers


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(message: bytes) -> Iterator[tuple[int, Any, int]]:
    """The fields of a protobuf message: number, value and where it ends.

    Numbers are `int`, all else is `bytes`.
    """
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value: Any
        if tag & 7 == 0:
            value, at = varint(message, at)
        else:
            length, at = {1: (8, at), 5: (4, at)}.get(tag & 7) or varint(message, at)
            value, at = message[at : at + length], at + length
        yield tag >> 3, value, at


def numbers(message: bytes) -> dict[int, int]:
    """The fields of a message that are numbers, the last of each; 0 is not written by some."""
    return {number: value for number, value, _ in fields(message) if isinstance(value, int)}


def messages(message: bytes, number: int) -> list[bytes]:
    return [value for at, value, _ in fields(message) if at == number and isinstance(value, bytes)]


def lz4_block(data: bytes) -> bytes:
    return bytes(cramjam.lz4.decompress_block(data, output_len=1 << 20))


# By their numbers in the postscript; 3 is LZO.
CODECS: dict[int, tuple[str, Callable[[bytes], bytes]]] = {
    0: ("uncompressed", bytes),
    1: ("zlib", lambda data: zlib.decompress(data, -zlib.MAX_WBITS)),
    2: ("snappy", lambda data: bytes(cramjam.snappy.decompress_raw(data))),
    4: ("lz4", lz4_block),
    5: ("zstd", lambda data: bytes(cramjam.zstd.decompress(data))),
}


def decompressed(data: bytes, codec: int) -> bytes:
    """A section of a file, chunk by chunk: three bytes say the length and whether it is stored."""
    if codec == 0:
        return data
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        piece, at = data[at + 3 : at + 3 + (header >> 1)], at + 3 + (header >> 1)
        pieces.append(piece if header & 1 else CODECS[codec][1](piece))
    return b"".join(pieces)


def layout_of(data: bytes) -> Layout:
    """The stripes of a file, as the footers have them."""
    end = len(data) - 1 - data[-1]
    postscript = numbers(data[end:-1])
    codec = postscript.get(2, 0)
    footer = decompressed(data[end - postscript[1] : end], codec)
    stripes: list[Stripe] = []
    for information in messages(footer, 3):
        first_row = stripes[-1].end_row if stripes else 0
        stripes.append(read_stripe(data, numbers(information), codec, first_row))
    return Layout(tuple(stripes), numbers(footer).get(8, 0), CODECS[codec][0])


def read_stripe(data: bytes, said: dict[int, int], codec: int, first_row: int) -> Stripe:
    offset, index, values, footer, rows = (said.get(number, 0) for number in range(1, 6))
    end = offset + index + values + footer
    message = decompressed(data[end - footer : end], codec)
    streams: list[Stream] = []
    at = offset
    for entry in map(numbers, messages(message, 1)):
        kind, length = Kind(entry.get(1, 0)), entry.get(3, 0)
        streams.append(Stream(kind, entry.get(2, 0), Span(at, at + length)))
        at += length
    encodings = tuple(ENCODINGS[numbers(entry).get(1, 0)] for entry in messages(message, 2))
    return Stripe(first_row, first_row + rows, Span(offset, end), tuple(streams), encodings)


# Writing


def orc_bytes(table: pa.Table, *, stripe_rows: int | None = None, **options: Any) -> bytes:
    """The table as pyarrow writes it, where it can with a stripe for so many rows.

    It can without compression or with a dictionary: only what is encoded counts for a stripe.
    """
    sink = io.BytesIO()
    if stripe_rows is None or table.num_rows == 0:
        orc.write_table(writable(table), sink, **options)
        return sink.getvalue()
    with orc.ORCWriter(sink, **{**options, "stripe_size": 1, "batch_size": stripe_rows}) as writer:
        for start in range(0, table.num_rows, stripe_rows):
            writer.write(writable(table.slice(start, stripe_rows)))
    return sink.getvalue()


def writable(table: pa.Table) -> pa.Table:
    """The same rows in arrays of their own, in which nothing is below a null and all may be null.

    pyarrow's writer does not look at the offsets of slices of structs, and writes what is below
    null structs, which no reader expects.
    """
    arrays = [
        bare(pa.array(column.to_pylist(), column.type))
        if pa.types.is_nested(column.type)
        else column
        for column in table.columns
    ]
    given = zip(table.schema, arrays, strict=True)
    return pa.table(arrays, schema=pa.schema([item.with_type(new.type) for item, new in given]))


def bare(array: pa.Array) -> pa.Array:
    """The array with nulls below null structs, at every depth."""
    kind, mask = array.type, array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        names = [item.name for item in kind]
        return pa.StructArray.from_arrays(list(map(bare, array.flatten())), names, mask=mask)
    if pa.types.is_map(kind):
        keys, items = array.keys, bare(array.items)
        return pa.MapArray.from_arrays(array.offsets, keys, items, mask=mask)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, bare(array.values), mask=mask)
    return array


def pyorc_bytes(
    schema: str, rows: Iterable[Any], metadata: dict[str, bytes] | None = None, **options: Any
) -> bytes:
    """The rows, tuples or where they are structs within structs dicts, as pyorc writes them."""
    sink = io.BytesIO()
    with pyorc.Writer(sink, schema, **options) as writer:
        writer.set_user_metadata(**metadata or {})
        for row in rows:
            writer.write(row)
    return sink.getvalue()


def orc_type(kind: pa.DataType) -> str:
    """An Arrow type as ORC spells it."""
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{item.name}:{orc_type(item.type)}' for item in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{orc_type(kind.key_type)},{orc_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{orc_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamp with local time zone"
    return ORC_NAMES[kind]


ORC_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.binary(): "binary",
}


def pyorc_value(value: Any, kind: pa.DataType) -> Any:
    """What `to_pylist` gives, as pyorc takes it: structs are tuples, maps dicts, times aware."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(pyorc_value(value[item.name], item.type) for item in kind)
    if pa.types.is_map(kind):
        return {key: pyorc_value(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [pyorc_value(element, kind.value_type) for element in value]
    if pa.types.is_timestamp(kind):
        return value.replace(tzinfo=dt.UTC)
    return value


def pyorc_table(table: pa.Table, **options: Any) -> bytes:
    """The table as pyorc writes it."""
    kind = pa.struct(list(table.schema))
    rows = (pyorc_value(row, kind) for row in table.to_pylist(maps_as_pydicts=None))
    return pyorc_bytes(orc_type(kind), rows, **options)


def small_chunks(size: int, compression: str, **options: Any) -> dict[str, Any]:
    """Options for pyorc that compress so many bytes at a time, at least 32."""
    kind = pyorc.CompressionKind[compression.upper().replace("UNCOMPRESSED", "NONE")]
    sizes = {"compression_block_size": size, "memory_block_size": size}
    return {"compression": kind, **sizes, **options}


def pyarrow_orc(data: bytes) -> pa.Table:
    """What pyarrow reads of the same bytes."""
    return orc.ORCFile(io.BytesIO(data)).read()


def with_row_count(data: bytes, rows: int) -> bytes:
    """The file with this number of rows in its footer, which must not be compressed."""
    end = len(data) - 1 - data[-1]
    start = end - numbers(data[end:-1])[1]
    changed = bytearray(data)
    for number, value, value_end in fields(data[start:end]):
        if number == 6:
            size = len(rewritten_varint(value))
            piece = rewritten_varint(rows, size)
            changed[start + value_end - size : start + value_end] = piece
    return bytes(changed)


def with_positions(
    data: bytes, column: int, entry: int, change: Callable[[list[int]], list[int]]
) -> bytes:
    """The file with other positions in an entry of a row index of its first stripe.

    Only for files that are not compressed. No position may need more bytes than before.
    """
    [stripe, *_], changed = layout_of(data).stripes, bytearray(data)
    [index] = [s for s in stripe.streams if (s.kind, s.column) == (Kind.ROW_INDEX, column)]
    entries = list(fields(data[index.span.start : index.span.end]))
    _, message, entry_end = entries[entry]
    for number, packed, end in fields(message):
        if number == 1:
            start = index.span.start + entry_end - len(message) + end - len(packed)
            changed[start : start + len(packed)] = rewritten(packed, change)
    return bytes(changed)


def rewritten(packed: bytes, change: Callable[[list[int]], list[int]]) -> bytes:
    """Packed numbers with other values, each as long as it was."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(packed):
        value, end = varint(packed, at)
        found.append((value, end - at))
        at = end
    values = change([value for value, _ in found])
    sizes = [size for _, size in found]
    return b"".join(map(rewritten_varint, values, sizes))


def rewritten_varint(value: int, size: int = 0) -> bytes:
    """A number in this many bytes, which may be more than needed."""
    size = size or max(1, -(-value.bit_length() // 7))
    assert 0 <= value < 1 << 7 * size
    more = [0x80] * (size - 1) + [0]
    return bytes((value >> 7 * i) & 0x7F | bit for i, bit in enumerate(more))


# Comparing


def has_union(kind: pa.DataType) -> bool:
    return bool(pa.types.is_union(kind)) or any(has_union(item.type) for _, item in steps(kind))


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """Same names, types, nullability and values; unions are compared as Python objects."""
    unions = {i for i, item in enumerate(expected.schema) if has_union(item.type)}
    assert actual.schema.equals(expected.schema), f"{actual.schema}\nis not\n{expected.schema}"
    for at in unions:
        assert repr(actual.column(at).to_pylist()) == repr(expected.column(at).to_pylist())
    rest = [at for at in range(expected.num_columns) if at not in unions]
    assert_same_nested(actual.select(rest), expected.select(rest))
    assert actual.num_rows == expected.num_rows
