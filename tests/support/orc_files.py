"""ORC files for the tests: written by pyarrow and by pyorc, and what their footers say.

`orc_bytes` and `pyorc_bytes` write, `pyarrow_orc` is what pyarrow reads of the same bytes.
`layout_of` reads the postscript, the footer and the stripe footers. In: the bytes of a file. Out:
stripes with their rows, the byte ranges of their streams and the encodings of their columns, and
the rows in a stride.
`assert_same_rows` compares tables of any type that pyarrow reads, unions among them.
"""

import datetime as dt
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyorc

from tests.support.nested_data import assert_same_nested, steps
from tests.support.orc_craft import (
    BLOCK_SIZE,
    COLUMN,
    COMPRESSION,
    DATA_LENGTH,
    ENCODING,
    ENCODINGS,
    FOOTER_LENGTH,
    INDEX_LENGTH,
    KIND,
    LENGTH,
    OFFSET,
    ROWS,
    STREAMS,
    STRIDE,
    STRIPE_FOOTER_LENGTH,
    STRIPE_ROWS,
    STRIPES,
    Changes,
    Crafted,
    Message,
    opened,
    parsed,
)
from tests.support.pages import Span

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
ENCODING_NAMES = ("direct", "dictionary", "direct v2", "dictionary v2")
CODEC_NAMES = ("uncompressed", "zlib", "snappy", "lzo", "lz4", "zstd")
STRIPE_LENGTHS = (INDEX_LENGTH, DATA_LENGTH, STRIPE_FOOTER_LENGTH)


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


def number(message: Message, field: int) -> int:
    """A field that is a number; 0 is not written by some."""
    value: int = message.get(field, [0])[-1]
    return value


def layout_of(data: bytes) -> Layout:
    """The stripes of a file, as the footers have them."""
    end = len(data) - 1 - data[-1]
    postscript = parsed(data[end:-1])
    codec, block = number(postscript, COMPRESSION), number(postscript, BLOCK_SIZE)
    footer = parsed(opened(data[end - number(postscript, FOOTER_LENGTH) : end], codec, block))
    stripes: list[Stripe] = []
    for information in map(parsed, footer.get(STRIPES, [])):
        first_row = stripes[-1].end_row if stripes else 0
        lengths = [number(information, field) for field in STRIPE_LENGTHS]
        offset = number(information, OFFSET)
        span = Span(offset, offset + sum(lengths))
        message = parsed(opened(data[span.end - lengths[-1] : span.end], codec, block))
        streams = tuple(streams_of(message, offset))
        encodings = [ENCODING_NAMES[number(parsed(m), ENCODING)] for m in message[ENCODINGS]]
        end_row = first_row + number(information, STRIPE_ROWS)
        stripes.append(Stripe(first_row, end_row, span, streams, tuple(encodings)))
    return Layout(tuple(stripes), number(footer, STRIDE), CODEC_NAMES[codec])


def streams_of(footer: Message, offset: int) -> Iterator[Stream]:
    """The streams of a stripe, one behind the other."""
    for entry in map(parsed, footer.get(STREAMS, [])):
        end = offset + number(entry, LENGTH)
        yield Stream(Kind(number(entry, KIND)), number(entry, COLUMN), Span(offset, end))
        offset = end


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
        return f"struct<{','.join(f'`{item.name}`:{orc_type(item.type)}' for item in kind)}>"
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
    sizes = {"compression_block_size": size, "memory_block_size": size}
    return {"compression": codec_of_pyorc(compression), **sizes, **options}


def codec_of_pyorc(name: str) -> pyorc.CompressionKind:
    return pyorc.CompressionKind[name.upper().replace("UNCOMPRESSED", "NONE")]


def type_count(kind: pa.DataType) -> int:
    """How many of the numbers of ORC's columns a type takes."""
    return 1 + sum(type_count(item.type) for _, item in steps(kind))


def pyarrow_orc(data: bytes) -> pa.Table:
    """What pyarrow reads of the same bytes."""
    return orc.ORCFile(io.BytesIO(data)).read()


def with_row_count(data: bytes, rows: int) -> bytes:
    """The file with this number of rows in its footer."""
    file = Crafted(data)
    file.footer[ROWS] = [rows]
    return file.to_bytes()


def with_positions(
    data: bytes, column: int, entry: int, change: Callable[[list[int]], list[int]]
) -> bytes:
    """The file with other positions in an entry of a row index of its first stripe."""
    file = Crafted(data)
    strides = file.strides(column)
    changes: list[list[Changes]] = [[{} for _ in stripe] for stripe in strides]
    changes[0][entry] = {"positions": change(strides[0][entry]["positions"])}
    return file.set_strides(column, changes).to_bytes()


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
