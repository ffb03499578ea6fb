"""The thrift structures of a Parquet file, and their compact encoding.

Each structure names only the fields that are used here: unknown ones are skipped in C, so a
narrow structure is a fast one. Field numbers and types are those of the format's parquet.thrift.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any, TypeVar

# The decoder imports it at its first call; no process may be forked meanwhile.
import thrift.protocol.TBase  # noqa: F401
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType

Struct = TypeVar("Struct")

_LARGE = 100_000  # bytes of metadata that become thousands of objects

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
PLAIN, RLE_DICTIONARY = 0, 8
DICTIONARY_ENCODINGS = frozenset({2, RLE_DICTIONARY})
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
PHYSICAL_TYPES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
INT96 = PHYSICAL_TYPES.index("INT96")
CONVERTED_TYPES = (
    "STRING",
    "MAP",
    "MAP_KEY_VALUE",
    "LIST",
    "ENUM",
    "DECIMAL",
    "DATE",
    "TIME(MILLIS,UTC)",
    "TIME(MICROS,UTC)",
    "TIMESTAMP(MILLIS,UTC)",
    "TIMESTAMP(MICROS,UTC)",
    "INTEGER(8,unsigned)",
    "INTEGER(16,unsigned)",
    "INTEGER(32,unsigned)",
    "INTEGER(64,unsigned)",
    "INTEGER(8,signed)",
    "INTEGER(16,signed)",
    "INTEGER(32,signed)",
    "INTEGER(64,signed)",
    "JSON",
    "BSON",
    "INTERVAL",
)

_INT, _LONG, _TEXT, _BYTES, _BOOL = TType.I32, TType.I64, "text", "bytes", TType.BOOL


def _struct(name: str, /, **fields: tuple[int, Any]) -> Any:
    """A class with a thrift specification, from `field=(number, type)`.

    A type is a thrift type, one of these classes, or a list of one type. Fields that are absent
    are None by the class, so that the decoder need not run Python code for each instance.
    """
    spec: list[Any] = [None] * (1 + max((number for number, _ in fields.values()), default=-1))
    for field, (number, kind) in fields.items():
        spec[number] = (number, *_spec_of(kind, field), None)
    return type(name, (SimpleNamespace,), {**dict.fromkeys(fields), "thrift_spec": tuple(spec)})


def _spec_of(kind: Any, field: str) -> tuple[Any, str, Any]:
    match kind:
        case [item]:
            code, _, details = _spec_of(item, field)
            return TType.LIST, field, (code, details, False)
        case "text":
            return TType.STRING, field, "UTF8"
        case "bytes":
            return TType.STRING, field, "BINARY"
        case type() if hasattr(kind, "thrift_spec"):
            return TType.STRUCT, field, [kind, kind.thrift_spec]
        case _:
            return kind, field, None


Empty = _struct("Empty")
TimeUnit = _struct("TimeUnit", MILLIS=(1, Empty), MICROS=(2, Empty), NANOS=(3, Empty))
TimeType = _struct("TimeType", isAdjustedToUTC=(1, _BOOL), unit=(2, TimeUnit))
DecimalType = _struct("DecimalType", scale=(1, _INT), precision=(2, _INT))
IntType = _struct("IntType", bitWidth=(1, TType.BYTE), isSigned=(2, _BOOL))
VariantType = _struct("VariantType", specification_version=(1, TType.BYTE))
GeometryType = _struct("GeometryType", crs=(1, _TEXT))
GeographyType = _struct("GeographyType", crs=(1, _TEXT), algorithm=(2, _INT))
LogicalType = _struct(
    "LogicalType",
    STRING=(1, Empty),
    MAP=(2, Empty),
    LIST=(3, Empty),
    ENUM=(4, Empty),
    DECIMAL=(5, DecimalType),
    DATE=(6, Empty),
    TIME=(7, TimeType),
    TIMESTAMP=(8, TimeType),
    INTEGER=(10, IntType),
    UNKNOWN=(11, Empty),
    JSON=(12, Empty),
    BSON=(13, Empty),
    UUID=(14, Empty),
    FLOAT16=(15, Empty),
    VARIANT=(16, VariantType),
    GEOMETRY=(17, GeometryType),
    GEOGRAPHY=(18, GeographyType),
)
SchemaElement = _struct(
    "SchemaElement",
    type=(1, _INT),
    type_length=(2, _INT),
    repetition_type=(3, _INT),
    name=(4, _TEXT),
    num_children=(5, _INT),
    converted_type=(6, _INT),
    scale=(7, _INT),
    precision=(8, _INT),
    field_id=(9, _INT),
    logicalType=(10, LogicalType),
)
KeyValue = _struct("KeyValue", key=(1, _BYTES), value=(2, _BYTES))
SizeStatistics = _struct("SizeStatistics", unencoded_byte_array_data_bytes=(1, _LONG))
ColumnMetaData = _struct(
    "ColumnMetaData",
    type=(1, _INT),
    path_in_schema=(3, [_BYTES]),
    codec=(4, _INT),
    num_values=(5, _LONG),
    total_uncompressed_size=(6, _LONG),
    total_compressed_size=(7, _LONG),
    data_page_offset=(9, _LONG),
    dictionary_page_offset=(11, _LONG),
    size_statistics=(16, SizeStatistics),
)
ColumnChunk = _struct(
    "ColumnChunk",
    file_path=(1, _TEXT),
    meta_data=(3, ColumnMetaData),
    offset_index_offset=(4, _LONG),
    offset_index_length=(5, _INT),
    crypto_metadata=(8, Empty),
)
RowGroup = _struct(
    "RowGroup",
    columns=(1, [ColumnChunk]),
    total_byte_size=(2, _LONG),
    num_rows=(3, _LONG),
    file_offset=(5, _LONG),
    total_compressed_size=(6, _LONG),
)
FileMetaData = _struct(
    "FileMetaData",
    schema=(2, [SchemaElement]),
    num_rows=(3, _LONG),
    row_groups=(4, [RowGroup]),
    key_value_metadata=(5, [KeyValue]),
    created_by=(6, _TEXT),
)
# A chunk once more, for what only predicates need.
Statistics = _struct(
    "Statistics",
    max=(1, _BYTES),
    min=(2, _BYTES),
    null_count=(3, _LONG),
    max_value=(5, _BYTES),
    min_value=(6, _BYTES),
    is_max_value_exact=(7, _BOOL),
    is_min_value_exact=(8, _BOOL),
    nan_count=(9, _LONG),
)
IndexedColumn = _struct("IndexedColumn", num_values=(5, _LONG), statistics=(12, Statistics))
IndexedChunk = _struct(
    "IndexedChunk",
    meta_data=(3, IndexedColumn),
    column_index_offset=(6, _LONG),
    column_index_length=(7, _INT),
)
ColumnOrder = _struct("ColumnOrder", TYPE_ORDER=(1, Empty), IEEE_754_TOTAL_ORDER=(2, Empty))
ColumnOrders = _struct("ColumnOrders", column_orders=(7, [ColumnOrder]))
ColumnIndex = _struct(
    "ColumnIndex",
    null_pages=(1, [_BOOL]),
    min_values=(2, [_BYTES]),
    max_values=(3, [_BYTES]),
    null_counts=(5, [_LONG]),
    nan_counts=(8, [_LONG]),
)
ColumnIndexLevels = _struct("ColumnIndexLevels", definition_level_histograms=(7, [_LONG]))
# And once more, for what only tests of equality need.
PageEncodingStats = _struct(
    "PageEncodingStats", page_type=(1, _INT), encoding=(2, _INT), count=(3, _INT)
)
ProbedColumn = _struct(
    "ProbedColumn",
    encodings=(2, [_INT]),
    encoding_stats=(13, [PageEncodingStats]),
    bloom_filter_offset=(14, _LONG),
    bloom_filter_length=(15, _INT),
)
ProbedChunk = _struct("ProbedChunk", meta_data=(3, ProbedColumn))
_Only = _struct("_Only", ONLY=(1, Empty))
BloomFilterHeader = _struct(
    "BloomFilterHeader",
    numBytes=(1, _INT),
    algorithm=(2, _Only),
    hash=(3, _Only),
    compression=(4, _Only),
)
PageLocation = _struct(
    "PageLocation",
    offset=(1, _LONG),
    compressed_page_size=(2, _INT),
    first_row_index=(3, _LONG),
)
OffsetIndex = _struct("OffsetIndex", page_locations=(1, [PageLocation]))
DataPageHeader = _struct(
    "DataPageHeader",
    num_values=(1, _INT),
    encoding=(2, _INT),
    definition_level_encoding=(3, _INT),
    repetition_level_encoding=(4, _INT),
)
DataPageHeaderV2 = _struct(
    "DataPageHeaderV2",
    num_values=(1, _INT),
    num_nulls=(2, _INT),
    num_rows=(3, _INT),
    encoding=(4, _INT),
    definition_levels_byte_length=(5, _INT),
    repetition_levels_byte_length=(6, _INT),
    is_compressed=(7, _BOOL),
)
DictionaryPageHeader = _struct("DictionaryPageHeader", num_values=(1, _INT), encoding=(2, _INT))
# Read without statistics, and written again where pages are decompressed.
PageHeader = _struct(
    "PageHeader",
    type=(1, _INT),
    uncompressed_page_size=(2, _INT),
    compressed_page_size=(3, _INT),
    crc=(4, _INT),
    data_page_header=(5, DataPageHeader),
    dictionary_page_header=(7, DictionaryPageHeader),
    data_page_header_v2=(8, DataPageHeaderV2),
)

# The same with statistics, for chunks whose pages no column index describes.
ToldPageHeader = _struct(
    "ToldPageHeader",
    compressed_page_size=(3, _INT),
    data_page_header=(
        5,
        _struct(
            "ToldDataPage", num_values=(1, _INT), encoding=(2, _INT), statistics=(5, Statistics)
        ),
    ),
    dictionary_page_header=(7, DictionaryPageHeader),
    data_page_header_v2=(
        8,
        _struct(
            "ToldDataPageV2",
            num_values=(1, _INT),
            num_nulls=(2, _INT),
            num_rows=(3, _INT),
            encoding=(4, _INT),
            statistics=(8, Statistics),
        ),
    ),
)

# What a small file must contain of a chunk: more than what is read of one above.
SmallColumn = _struct(
    "SmallColumn",
    type=(1, _INT),
    encodings=(2, [_INT]),
    path_in_schema=(3, [_TEXT]),
    codec=(4, _INT),
    num_values=(5, _LONG),
    total_uncompressed_size=(6, _LONG),
    total_compressed_size=(7, _LONG),
    data_page_offset=(9, _LONG),
)
SmallChunk = _struct("SmallChunk", file_offset=(2, _LONG), meta_data=(3, SmallColumn))
SmallRowGroup = _struct(
    "SmallRowGroup", columns=(1, [SmallChunk]), total_byte_size=(2, _LONG), num_rows=(3, _LONG)
)
SmallFileMetaData = _struct(
    "SmallFileMetaData",
    version=(1, _INT),
    schema=(2, [SchemaElement]),
    num_rows=(3, _LONG),
    row_groups=(4, [SmallRowGroup]),
    key_value_metadata=(5, [KeyValue]),
    created_by=(6, _TEXT),
)


def footer_of(chunk: type[Any]) -> Any:
    """A footer of column chunks of this kind, and nothing else."""
    row_group = _struct("RowGroup", columns=(1, [chunk]))
    return _struct("FileMetaData", row_groups=(4, [row_group]))


_codec = TCompactProtocolAccelerated(None, fallback=False)


class MalformedThrift(ValueError):
    """Bytes that are not the structure they should be."""


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for garbage meanwhile: among thousands of new objects it takes half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class StructReader:
    """Decodes structures at any place of some bytes; to the decoder, protocol and transport."""

    def __init__(self, data: bytes) -> None:
        self.turn_to(data)

    @property
    def trans(self) -> "StructReader":
        """The transport; an attribute would be a cycle, which is freed late."""
        return self

    def turn_to(self, data: bytes) -> None:
        """Decode from other bytes."""
        self.cstringio_buf = BytesIO(data)
        # Neither a string nor a list can have more than there are bytes.
        self.string_length_limit = self.container_length_limit = self._size = len(data)

    def cstringio_refill(self, _prefix: bytes, _length: int) -> BytesIO:
        """What the decoder asks for behind the end."""
        raise EOFError

    def read(self, kind: type[Struct], offset: int = 0) -> tuple[Struct, int]:
        """The structure at `offset`, and its length in bytes."""
        if offset >= self._size:  # the C decoder crashes behind the end
            raise MalformedThrift(f"not a valid {kind.__name__}: it ends too early")
        stream = self.cstringio_buf
        stream.seek(offset)
        value = kind()
        spec = [kind, kind.thrift_spec]  # type: ignore[attr-defined]
        try:
            if self._size < _LARGE:
                _codec._fast_decode(value, self, spec)
            else:
                with _without_collection():
                    _codec._fast_decode(value, self, spec)
        except (
            EOFError,
            TypeError,
            OverflowError,
            ValueError,  # text that is not UTF-8, negative lengths
            TProtocolException,
        ) as error:
            reason = str(error) or "it ends too early"
            raise MalformedThrift(f"not a valid {kind.__name__}: {reason}") from error
        return value, stream.tell() - offset


def decode(kind: type[Struct], data: bytes) -> Struct:
    """The structure at the start of some bytes."""
    return StructReader(data).read(kind)[0]


def encode(value: Any) -> bytes:
    """The compact encoding of a structure."""
    encoded: bytes = _codec._fast_encode(value, [type(value), value.thrift_spec])
    return encoded


def footer_bytes(metadata: Any) -> bytes:
    """The end of a Parquet file. No reader asks for the magic at its start."""
    footer = encode(metadata)
    return b"".join((footer, len(footer).to_bytes(4, "little"), MAGIC))
