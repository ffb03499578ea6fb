"""What the tests hold against the library: where pages lie, and when two tables are the same.

`row_groups` reads the footer, the offset indexes and every page header with `thrift` and specs
of its own. In: the bytes of a file. Out: row groups of chunks of pages, with byte ranges and row
numbers. Only for files with a footer that is in the clear and correct; rows of flat columns only.
`assert_same` compares tables, `random_array` makes values of any flat type.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

# Values of Parquet's enums PageType and Encoding.
DICTIONARY_PAGE = 2
DATA_PAGES = (0, 3)
DICTIONARY_ENCODINGS = (2, 8)

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}

THRIFT_TYPES = {"i32": TType.I32, "i64": TType.I64, "bytes": TType.STRING}


def structure(name: str, **fields: tuple[int, Any]) -> type:
    """A class that thrift's decoder can fill: `field=(id, type)`, other fields are skipped.

    A type is "i32", "i64", "bytes", another structure, or a list of one of them.
    """

    def argument(kind: Any) -> tuple[int, Any]:
        match kind:
            case str():
                return THRIFT_TYPES[kind], "BINARY" if kind == "bytes" else None
            case [element]:
                element_type, detail = argument(element)
                return TType.LIST, (element_type, detail, False)
            case _:
                return TType.STRUCT, [kind, kind.thrift_spec]

    spec: list[Any] = [None] * (1 + max(number for number, _ in fields.values()))
    for label, (number, kind) in fields.items():
        spec[number] = (number, argument(kind)[0], label, argument(kind)[1], None)
    # Old versions of thrift hand the fields to the constructor.
    bases = (SimpleNamespace,)
    return type(name, bases, {**dict.fromkeys(fields), "thrift_spec": tuple(spec)})


ColumnMetaData = structure(
    "ColumnMetaData",
    path_in_schema=(3, ["bytes"]),
    total_compressed_size=(7, "i64"),
    data_page_offset=(9, "i64"),
    dictionary_page_offset=(11, "i64"),
)
ColumnChunk = structure(
    "ColumnChunk",
    meta_data=(3, ColumnMetaData),
    offset_index_offset=(4, "i64"),
    offset_index_length=(5, "i32"),
)
RowGroupMetaData = structure("RowGroup", columns=(1, [ColumnChunk]), num_rows=(3, "i64"))
FileMetaData = structure("FileMetaData", row_groups=(4, [RowGroupMetaData]))
PageLocation = structure("PageLocation", offset=(1, "i64"), first_row_index=(3, "i64"))
OffsetIndex = structure("OffsetIndex", page_locations=(1, [PageLocation]))
ValueHeader = structure("DataPageHeader", num_values=(1, "i32"), encoding=(2, "i32"))
ValueHeaderV2 = structure("DataPageHeaderV2", num_values=(1, "i32"), encoding=(4, "i32"))
PageHeader = structure(
    "PageHeader",
    type=(1, "i32"),
    compressed_page_size=(3, "i32"),
    v1=(5, ValueHeader),
    v2=(8, ValueHeaderV2),
)


@dataclass(frozen=True)
class Span:
    """Bytes `[start, end)` of a file."""

    start: int
    end: int

    def covers(self, offset: int, length: int) -> bool:
        return self.start <= offset and offset + length <= self.end

    def overlaps(self, offset: int, length: int) -> bool:
        return offset < self.end and self.start < offset + length


@dataclass(frozen=True)
class Page:
    """A data page with its header, and the rows `[first_row, end_row)` of the file in it."""

    span: Span
    first_row: int
    end_row: int
    uses_dictionary: bool


@dataclass(frozen=True)
class Chunk:
    """A column in a row group."""

    column: str
    span: Span
    dictionary: Span | None
    offset_index: Span | None
    pages: tuple[Page, ...] = field(repr=False)

    def pages_with(self, first_row: int, end_row: int) -> list[Page]:
        """The pages with at least one row of `[first_row, end_row)`."""
        return [p for p in self.pages if max(first_row, p.first_row) < min(end_row, p.end_row)]


@dataclass(frozen=True)
class RowGroup:
    """Rows `[first_row, end_row)` of the file."""

    first_row: int
    end_row: int
    chunks: tuple[Chunk, ...] = field(repr=False)

    @property
    def span(self) -> Span:
        return Span(min(c.span.start for c in self.chunks), max(c.span.end for c in self.chunks))

    @property
    def midpoint(self) -> int:
        """Start of the first column chunk plus half of the compressed size of all."""
        return self.chunks[0].span.start + sum(c.span.end - c.span.start for c in self.chunks) // 2


def decode(structure_type: type, data: bytes, position: int = 0) -> tuple[Any, int]:
    """The structure at a position of the bytes, and where it ends."""
    transport = TMemoryBuffer(data)
    transport.cstringio_buf.seek(position)
    protocol = TCompactProtocolAccelerated(transport, fallback=False)
    result = structure_type()
    spec: Any = structure_type
    protocol._fast_decode(result, protocol, [spec, spec.thrift_spec])
    return result, transport.cstringio_buf.tell()


def footer_span(data: bytes) -> Span:
    """Where the footer's metadata lies, without the length and the magic bytes behind it."""
    length = int.from_bytes(data[-8:-4], "little")
    return Span(len(data) - 8 - length, len(data) - 8)


def row_groups(data: bytes) -> tuple[RowGroup, ...]:
    """All row groups of a file, with their pages."""
    footer, _ = decode(FileMetaData, data[footer_span(data).start :])
    groups: list[RowGroup] = []
    first_row = 0
    for group in footer.row_groups:
        chunks = tuple(read_chunk(data, chunk, first_row) for chunk in group.columns)
        groups.append(RowGroup(first_row, first_row + group.num_rows, chunks))
        first_row += group.num_rows
    return tuple(groups)


def read_chunk(data: bytes, chunk: Any, first_row: int) -> Chunk:
    """One chunk and its pages; the offset index says the rows, or else the page headers."""
    meta = chunk.meta_data
    # A writer that has no page of a kind leaves its offset out or writes 0.
    start = min(filter(None, (meta.data_page_offset, meta.dictionary_page_offset)))
    span = Span(start, start + meta.total_compressed_size)
    offset_index = None
    first_rows: dict[int, int] = {}
    if chunk.offset_index_offset is not None:
        end = chunk.offset_index_offset + chunk.offset_index_length
        offset_index = Span(chunk.offset_index_offset, end)
        index, _ = decode(OffsetIndex, data[offset_index.start : offset_index.end])
        first_rows = {p.offset: first_row + p.first_row_index for p in index.page_locations}
    pages: list[Page] = []
    dictionary = None
    for page_span, header in read_pages(data[span.start : span.end], span.start):
        if header.type == DICTIONARY_PAGE:
            dictionary = page_span
        elif header.type in DATA_PAGES:
            values = header.v1 or header.v2
            row = first_rows.get(page_span.start, pages[-1].end_row if pages else first_row)
            encoded = values.encoding in DICTIONARY_ENCODINGS
            pages.append(Page(page_span, row, row + values.num_values, encoded))
    column = ".".join(name.decode() for name in meta.path_in_schema)
    return Chunk(column, span, dictionary, offset_index, tuple(pages))


def read_pages(data: bytes, start: int) -> Iterator[tuple[Span, Any]]:
    """The pages of a chunk, whose bytes `data` begin at `start` in the file."""
    position = 0
    while position < len(data):
        header, body = decode(PageHeader, data, position)
        end = body + header.compressed_page_size
        yield Span(start + position, start + end), header
        position = end


def boundaries(groups: tuple[RowGroup, ...]) -> list[int]:
    """The row numbers where a page of any column or a row group begins or ends."""
    found = {0}
    for group in groups:
        found |= {group.first_row, group.end_row}
        found |= {page.first_row for chunk in group.chunks for page in chunk.pages}
    return sorted(found)


def assert_same(actual: pa.Table, expected: pa.Table) -> None:
    """Same names, types, nullability and values in the same order; floats bit by bit."""
    actual.validate(full=True)
    assert actual.schema.equals(expected.schema), f"{actual.schema}\nis not\n{expected.schema}"
    assert actual.num_rows == expected.num_rows
    for name, ours, theirs in zip(
        expected.column_names, actual.columns, expected.columns, strict=True
    ):
        assert comparable(ours).equals(comparable(theirs)), f"{name}: {ours}\nis not\n{theirs}"


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column so that `equals` is about values alone: NaN equals itself, -0.0 is not 0.0."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        return comparable(pa.chunked_array(chunks, kind.storage_type))
    if pa.types.is_dictionary(kind):
        chunks = [chunk.dictionary_decode() for chunk in column.chunks]
        return comparable(pa.chunked_array(chunks, kind.value_type))
    if pa.types.is_floating(kind):
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width]
        return pa.chunked_array([chunk.view(bits) for chunk in column.chunks], bits)
    return column


def random_value(kind: pa.DataType, rng: np.random.Generator) -> Any:
    """A value that `pa.array` turns into this type."""
    if pa.types.is_boolean(kind):
        return bool(rng.integers(2))
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return int(rng.integers(limits.min, limits.max, dtype=limits.dtype, endpoint=True))
    if pa.types.is_floating(kind):
        special = [np.nan, -0.0, 0.0, np.inf, -np.inf]
        value = rng.choice(special) if rng.random() < 0.3 else rng.normal()
        return kind.to_pandas_dtype()(value)
    if pa.types.is_decimal(kind):
        digits = "".join(map(str, rng.integers(10, size=kind.precision)))
        return Decimal((int(rng.integers(2)), tuple(map(int, digits)), -kind.scale))
    if pa.types.is_date(kind):
        return int(rng.integers(-30_000, 30_000)) * (PER_DAY["ms"] if kind == pa.date64() else 1)
    if pa.types.is_time(kind):
        return int(rng.integers(PER_DAY[kind.unit]))
    if pa.types.is_temporal(kind):
        return int(rng.integers(-(10**9), 10**9))
    if pa.types.is_fixed_size_binary(kind):
        return rng.bytes(kind.byte_width)
    return "é" * int(rng.integers(4)) + str(rng.integers(10**6))


def random_array(kind: pa.DataType, rows: int, nulls: float, rng: np.random.Generator) -> pa.Array:
    """Values of a type, repetitions among them, some of them null."""
    if isinstance(kind, pa.BaseExtensionType):
        storage = random_array(kind.storage_type, rows, nulls, rng)
        return pa.ExtensionArray.from_storage(kind, storage)
    if pa.types.is_dictionary(kind):
        return random_array(kind.value_type, rows, nulls, rng).dictionary_encode().cast(kind)
    if pa.types.is_null(kind):
        return pa.nulls(rows)
    pool = [random_value(kind, rng) for _ in range(100)]
    picks = rng.integers(100, size=rows)
    gaps = rng.random(rows) < nulls
    return pa.array(
        [None if gap else pool[pick] for gap, pick in zip(gaps, picks, strict=True)], kind
    )
