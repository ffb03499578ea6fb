"""The thrift records of Parquet files, with just the fields that matter here.

In: bytes. Out: a record, and how many bytes it takes. Field numbers are those of `parquet.thrift`.
"""

from typing import Any

from thrift.protocol.TBase import TBase
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer


def _record(name: str, *fields: tuple[Any, ...]) -> type:
    """A thrift struct of (number, type, name) or (number, type, name, type arguments)."""
    spec: list[tuple[Any, ...] | None] = [None] * (fields[-1][0] + 1)
    for number, kind, attribute, *arguments in fields:
        spec[number] = (number, kind, attribute, arguments[0] if arguments else None, None)
    defaults = {attribute: None for _, _, attribute, *_ in fields}
    return type(name, (TBase,), {**defaults, "thrift_spec": tuple(spec)})


def _one(record: Any) -> list[Any]:
    return [record, record.thrift_spec]


def _many(record: Any) -> tuple[Any, ...]:
    return (TType.STRUCT, _one(record), False)


_STRINGS = (TType.STRING, "UTF8", False)
_BYTES = (TType.STRING, "BINARY", False)

_Statistics = _record(
    "Statistics",
    (3, TType.I64, "null_count"),
    (5, TType.STRING, "max_value", "BINARY"),
    (6, TType.STRING, "min_value", "BINARY"),
)
_ColumnMetaData = _record(
    "ColumnMetaData",
    (1, TType.I32, "type"),
    (3, TType.LIST, "path_in_schema", _STRINGS),
    (4, TType.I32, "codec"),
    (7, TType.I64, "total_compressed_size"),
    (9, TType.I64, "data_page_offset"),
    (11, TType.I64, "dictionary_page_offset"),
    (12, TType.STRUCT, "statistics", _one(_Statistics)),
    (14, TType.I64, "bloom_filter_offset"),
    (15, TType.I32, "bloom_filter_length"),
)
_ColumnChunk = _record(
    "ColumnChunk",
    (3, TType.STRUCT, "meta_data", _one(_ColumnMetaData)),
    (4, TType.I64, "offset_index_offset"),
    (5, TType.I32, "offset_index_length"),
    (6, TType.I64, "column_index_offset"),
    (7, TType.I32, "column_index_length"),
)
_RowGroup = _record(
    "RowGroup",
    (1, TType.LIST, "columns", _many(_ColumnChunk)),
    (3, TType.I64, "num_rows"),
)
FileMetaData = _record("FileMetaData", (4, TType.LIST, "row_groups", _many(_RowGroup)))
_PageLocation = _record(
    "PageLocation",
    (1, TType.I64, "offset"),
    (2, TType.I32, "compressed_page_size"),
    (3, TType.I64, "first_row_index"),
)
OffsetIndex = _record("OffsetIndex", (1, TType.LIST, "page_locations", _many(_PageLocation)))
ColumnIndex = _record(
    "ColumnIndex",
    (2, TType.LIST, "min_values", _BYTES),
    (3, TType.LIST, "max_values", _BYTES),
    (5, TType.LIST, "null_counts", (TType.I64, None, False)),
)
_DataPageHeader = _record(
    "DataPageHeader",
    (1, TType.I32, "num_values"),
    (2, TType.I32, "encoding"),
    (5, TType.STRUCT, "statistics", _one(_Statistics)),
)
_DataPageHeaderV2 = _record(
    "DataPageHeaderV2",
    (1, TType.I32, "num_values"),
    (4, TType.I32, "encoding"),
    (5, TType.I32, "definition_levels_byte_length"),
    (6, TType.I32, "repetition_levels_byte_length"),
    (7, TType.BOOL, "is_compressed"),
    (8, TType.STRUCT, "statistics", _one(_Statistics)),
)
PageHeader = _record(
    "PageHeader",
    (2, TType.I32, "uncompressed_page_size"),
    (3, TType.I32, "compressed_page_size"),
    (5, TType.STRUCT, "data_page_header", _one(_DataPageHeader)),
    (8, TType.STRUCT, "data_page_header_v2", _one(_DataPageHeaderV2)),
)


def decode(record: type, data: bytes | memoryview) -> tuple[Any, int]:
    """The record that the bytes begin with, and where it ends."""
    transport = TMemoryBuffer(bytes(data))
    found = record()
    found.read(TCompactProtocolAccelerated(transport))
    return found, transport.cstringio_buf.tell()
