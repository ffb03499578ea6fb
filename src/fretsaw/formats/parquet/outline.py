"""The footer as it is stored, parsed by the kernels or decoded by thrift, with the same values.

The kernels find out where schema elements and column chunks are, and only those that somebody asks
for are decoded. Without them, and for a footer that they refuse, thrift decodes all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from fretsaw.formats.kernels import load_kernels
from fretsaw.formats.parquet import metadata
from fretsaw.model.blocks import Int64s
from fretsaw.model.locks import once

NO_TYPE = -(1 << 63)
"""The physical type of a schema element that has none."""


class RowGroup(NamedTuple):
    """What a row group says about all of its column chunks."""

    num_columns: int | None
    total_byte_size: int | None
    num_rows: int | None
    file_offset: int | None
    total_compressed_size: int | None
    start: int | None
    """Where its first column chunk begins, as far as that is said."""


class StoredChunk(NamedTuple):
    """Where a column chunk is and what it holds, as the footer says it."""

    file_path: str | None
    is_encrypted: bool
    offset_index_offset: int | None
    offset_index_length: int | None
    has_column: bool
    """Whether it is described at all; what follows is None where it is not."""
    physical_type: int | None
    path: list[bytes] | None
    codec: int | None
    num_values: int | None
    uncompressed_size: int | None
    compressed_size: int | None
    data_page_offset: int | None
    dictionary_page_offset: int | None
    unencoded_bytes: int | None
    """Bytes of strings once they are decoded."""

    @classmethod
    def of(cls, chunk: Any) -> "StoredChunk":
        """What thrift decoded."""
        column = chunk.meta_data or metadata.ColumnMetaData()
        sizes = column.size_statistics
        return cls(
            chunk.file_path,
            chunk.crypto_metadata is not None,
            chunk.offset_index_offset,
            chunk.offset_index_length,
            chunk.meta_data is not None,
            column.type,
            column.path_in_schema,
            column.codec,
            column.num_values,
            column.total_uncompressed_size,
            column.total_compressed_size,
            column.data_page_offset,
            column.dictionary_page_offset,
            None if sizes is None else sizes.unencoded_byte_array_data_bytes,
        )


def chunk_start(column: Any) -> int:
    """Where a column chunk begins: at its dictionary page, if it has one.

    An offset of 0 means that there is none, and one behind the data is not believed.
    """
    data: int = column.data_page_offset or 0
    dictionary: int = column.dictionary_page_offset or 0
    return dictionary if 0 < dictionary < data else data


class ParsedOutline:
    """A footer that the kernels parsed; nothing in it is checked yet."""

    def __init__(self, data: bytes, parsed: Any, parse_chunk: Callable[..., Any]) -> None:
        self.length: int = parsed.length
        self.num_rows: int | None = parsed.num_rows
        self.created_by: str | None = parsed.created_by
        self.key_values = parsed.key_values
        self.row_groups = list(map(RowGroup._make, parsed.row_groups))
        self._data = data
        self._parsed = parsed
        self._parse_chunk = parse_chunk
        self._chunks: dict[tuple[type, int, int], Any] = {}

    @property
    def names(self) -> Sequence[str | None]:
        """Those of all schema elements."""
        names: list[str | None] = self._parsed.names
        return names

    @property
    def types(self) -> Int64s:
        """Their physical types, or `NO_TYPE`."""
        return np.frombuffer(self._parsed.types, np.int64)

    @property
    def children(self) -> Int64s:
        """How many children each has."""
        return np.frombuffer(self._parsed.children, np.int64)

    @property
    def column_orders(self) -> Sequence[int]:
        """For each leaf whether its order is a known one."""
        return memoryview(self._parsed.column_orders)

    def elements(self, begin: int, end: int) -> list[Any]:
        """Some schema elements."""
        spans = self._elements[2 * begin : 2 * end].tolist()
        stored = map(self._data.__getitem__, map(slice, spans[::2], spans[1::2]))
        return [metadata.decode(metadata.SchemaElement, element) for element in stored]

    def chunk(self, kind: type[Any], row_group: int, leaf: int) -> Any:
        """A column chunk, as a structure of this kind."""
        key = kind, row_group, leaf
        known = self._chunks.get(key)
        if known is None:
            begin, end = self._place(row_group, leaf)
            known = self._chunks[key] = metadata.decode(kind, self._data[begin:end])
        return known

    def stored(self, row_group: int, leaf: int) -> StoredChunk:
        """Where a column chunk is."""
        parsed = self._parse_chunk(self._data, *self._place(row_group, leaf))
        if parsed is None:
            return StoredChunk.of(self.chunk(metadata.ColumnChunk, row_group, leaf))
        return cast(StoredChunk, parsed)

    def _place(self, row_group: int, leaf: int) -> memoryview:
        place = row_group * (self.row_groups[0].num_columns or 0) + leaf
        return self._places[2 * place : 2 * place + 2]

    def has_schema_of(self, other: "Outline") -> bool:
        """Whether the schema elements are those of another footer."""
        return isinstance(other, ParsedOutline) and self._schema == other._schema

    @once
    def _places(self) -> memoryview:
        """Where each column chunk begins and ends."""
        return memoryview(self._parsed.chunks).cast("q")

    @once
    def _elements(self) -> memoryview:
        """Where each schema element begins and ends."""
        return memoryview(self._parsed.elements).cast("q")

    @once
    def _schema(self) -> bytes:
        """The schema elements as they are stored."""
        places = self._elements
        return self._data[places[0] : places[-1]] if len(places) else b""


class DecodedOutline:
    """The same, if thrift decoded all of it."""

    def __init__(self, data: bytes) -> None:
        decoded: Any
        decoded, self.length = metadata.StructReader(data).read(metadata.FileMetaData)
        groups = decoded.row_groups
        if decoded.schema is None or groups is None:
            raise metadata.MalformedThrift("the schema or the row groups are missing")
        self.num_rows: int | None = decoded.num_rows
        self.created_by: str | None = decoded.created_by
        self.key_values = [(kv.key, kv.value) for kv in decoded.key_value_metadata or []]
        self.row_groups = [
            RowGroup(
                None if group.columns is None else len(group.columns),
                group.total_byte_size,
                group.num_rows,
                group.file_offset,
                group.total_compressed_size,
                _start(group.columns),
            )
            for group in groups
        ]
        self._data = data
        self._elements: list[Any] = decoded.schema
        self._footers: dict[type, Any] = {metadata.ColumnChunk: decoded}

    @property
    def names(self) -> Sequence[str | None]:
        return [element.name for element in self._elements]

    @property
    def types(self) -> Int64s:
        types = [NO_TYPE if element.type is None else element.type for element in self._elements]
        return np.array(types, np.int64)

    @property
    def children(self) -> Int64s:
        return np.array([element.num_children or 0 for element in self._elements], np.int64)

    @once
    def column_orders(self) -> Sequence[int]:
        footer: Any = metadata.decode(metadata.ColumnOrders, self._data)
        return [bool(vars(order)) for order in footer.column_orders or []]

    def elements(self, begin: int, end: int) -> list[Any]:
        return self._elements[begin:end]

    def chunk(self, kind: type[Any], row_group: int, leaf: int) -> Any:
        footer = self._footers.get(kind)
        if footer is None:
            footer = metadata.decode(metadata.footer_of(kind), self._data)
            self._footers[kind] = footer
        return footer.row_groups[row_group].columns[leaf]

    def stored(self, row_group: int, leaf: int) -> StoredChunk:
        return StoredChunk.of(self.chunk(metadata.ColumnChunk, row_group, leaf))

    def has_schema_of(self, other: "Outline") -> bool:
        return isinstance(other, DecodedOutline) and self._elements == other._elements


def _start(columns: Sequence[Any] | None) -> int | None:
    first = columns[0].meta_data if columns else None
    return chunk_start(first) if first else None


Outline: TypeAlias = ParsedOutline | DecodedOutline


def read_outline(data: bytes) -> Outline:
    """The footer at the start of some bytes."""
    kernels = load_kernels()
    parsed = None if kernels is None else kernels.parse_footer(data)
    if kernels is None or parsed is None:
        return DecodedOutline(data)
    return ParsedOutline(data, parsed, kernels.parse_chunk)
