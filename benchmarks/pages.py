"""The fewest bytes with which Parquet files can answer, worked out without fretsaw.

In: paths, the rows and the columns wanted. Out: bytes of the footers, of the offset indexes
that tell where the pages are, of the pages that hold a wanted row, and of the dictionaries
those pages need. A column chunk that is wanted whole needs no index; a file behind the last
wanted row needs no footer, one before it does, because its rows count. Read through `thrift`,
with specs of just the fields that matter here; field numbers are those of `parquet.thrift`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from thrift.protocol.TBase import TBase
from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.Thrift import TType
from thrift.TSerialization import deserialize

from benchmarks.contestant import RowNumbers

DICTIONARY_ENCODINGS = {2, 8}  # PLAIN_DICTIONARY, RLE_DICTIONARY
FOOTER_END = 8  # the footer's length and the magic bytes, at the very end of a file


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

_ColumnMetaData = _record(
    "ColumnMetaData",
    (3, TType.LIST, "path_in_schema", _STRINGS),
    (7, TType.I64, "total_compressed_size"),
    (11, TType.I64, "dictionary_page_offset"),
)
_ColumnChunk = _record(
    "ColumnChunk",
    (3, TType.STRUCT, "meta_data", _one(_ColumnMetaData)),
    (4, TType.I64, "offset_index_offset"),
    (5, TType.I32, "offset_index_length"),
)
_RowGroup = _record(
    "RowGroup",
    (1, TType.LIST, "columns", _many(_ColumnChunk)),
    (3, TType.I64, "num_rows"),
)
_FileMetaData = _record("FileMetaData", (4, TType.LIST, "row_groups", _many(_RowGroup)))
_PageLocation = _record(
    "PageLocation",
    (1, TType.I64, "offset"),
    (2, TType.I32, "compressed_page_size"),
    (3, TType.I64, "first_row_index"),
)
_OffsetIndex = _record("OffsetIndex", (1, TType.LIST, "page_locations", _many(_PageLocation)))
_DataPageHeader = _record("DataPageHeader", (2, TType.I32, "encoding"))
_DataPageHeaderV2 = _record("DataPageHeaderV2", (4, TType.I32, "encoding"))
_PageHeader = _record(
    "PageHeader",
    (5, TType.STRUCT, "data_page_header", _one(_DataPageHeader)),
    (8, TType.STRUCT, "data_page_header_v2", _one(_DataPageHeaderV2)),
)


def least_bytes(
    paths: Iterable[Path], rows: RowNumbers | None = None, columns: Sequence[str] | None = None
) -> int:
    """Bytes that must be read for these rows (sorted; None: all) of these columns."""
    total = first = 0
    for path in paths:
        if rows is not None and (len(rows) == 0 or rows[-1] < first):
            break
        with path.open("rb") as file:
            footer_length = _footer_length(file)
            file.seek(-FOOTER_END - footer_length, 2)
            footer = _decode(_FileMetaData, file.read(footer_length))
            total += FOOTER_END + footer_length
            for group in footer.row_groups:
                wanted = None if rows is None else _between(rows, first, first + group.num_rows)
                first += group.num_rows
                if wanted is not None and len(wanted) == 0:
                    continue
                for chunk in group.columns:
                    if columns is None or chunk.meta_data.path_in_schema[0] in columns:
                        total += _chunk_bytes(file, chunk, wanted)
    return total


def _between(rows: RowNumbers, first: int, end: int) -> RowNumbers:
    """The wanted rows of one row group, counted from its first."""
    low, high = np.searchsorted(rows, [first, end])
    return rows[low:high] - first


def _chunk_bytes(file: BinaryIO, chunk: Any, rows: RowNumbers | None) -> int:
    """What these rows of one column chunk cost: index, pages and perhaps the dictionary."""
    if rows is None:
        return int(chunk.meta_data.total_compressed_size)
    file.seek(chunk.offset_index_offset)
    index = _decode(_OffsetIndex, file.read(chunk.offset_index_length))
    pages = index.page_locations
    firsts = [page.first_row_index for page in pages]
    needed = np.unique(np.searchsorted(firsts, rows, side="right") - 1)
    total: int = chunk.offset_index_length
    total += sum(pages[number].compressed_page_size for number in needed)
    if any(_needs_dictionary(file, pages[number]) for number in needed):
        total += pages[0].offset - chunk.meta_data.dictionary_page_offset
    return total


def _needs_dictionary(file: BinaryIO, page: Any) -> bool:
    file.seek(page.offset)
    header = _decode(_PageHeader, file.read(page.compressed_page_size))
    data = header.data_page_header or header.data_page_header_v2
    return data.encoding in DICTIONARY_ENCODINGS


def _footer_length(file: BinaryIO) -> int:
    file.seek(-FOOTER_END, 2)
    return int.from_bytes(file.read(4), "little")


def _decode(record: type, data: bytes) -> Any:
    return deserialize(record(), data, TCompactProtocolAcceleratedFactory())
