"""The fewest bytes with which Parquet files can answer, worked out without fretsaw.

In: paths, the rows and the columns wanted, and the condition that finds them. Out: bytes of the
footers, of the offset indexes that tell where the pages are, of the pages that hold a wanted row,
and of the dictionaries those pages need. A column chunk that is wanted whole needs no index; a
file behind the last wanted row needs no footer, one before it does, because its rows count. A
condition needs, in blocks that statistics leave open, the column index and the pages of its
column that this leaves open in turn: up to the last wanted row for a head, from the first one on
for a tail. Where a Bloom filter can tell, its header and one block of it are needed, and nothing
more of a row group without the value; where a dictionary can, the dictionary. Read through
`thrift`, with specs of just the fields that matter here; field numbers are those of
`parquet.thrift`.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from thrift.protocol.TBase import TBase
from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.Thrift import TType
from thrift.TSerialization import deserialize

from benchmarks import bloom
from benchmarks.conditions import Tested
from benchmarks.contestant import RowNumbers

DICTIONARY_ENCODINGS = {2, 8}  # PLAIN_DICTIONARY, RLE_DICTIONARY
INTEGERS = {1: "<i4", 2: "<i8"}  # INT32, INT64; bounds of floats leave NaN out and prove little
STRINGS = 6  # BYTE_ARRAY; the writer of the data shortens no bounds
NO_ROWS: RowNumbers = np.empty(0, np.int64)
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
_FileMetaData = _record("FileMetaData", (4, TType.LIST, "row_groups", _many(_RowGroup)))
_PageLocation = _record(
    "PageLocation",
    (1, TType.I64, "offset"),
    (2, TType.I32, "compressed_page_size"),
    (3, TType.I64, "first_row_index"),
)
_OffsetIndex = _record("OffsetIndex", (1, TType.LIST, "page_locations", _many(_PageLocation)))
_ColumnIndex = _record(
    "ColumnIndex",
    (2, TType.LIST, "min_values", (TType.STRING, "BINARY", False)),
    (3, TType.LIST, "max_values", (TType.STRING, "BINARY", False)),
    (5, TType.LIST, "null_counts", (TType.I64, None, False)),
)
_DataPageHeader = _record("DataPageHeader", (2, TType.I32, "encoding"))
_DataPageHeaderV2 = _record("DataPageHeaderV2", (4, TType.I32, "encoding"))
_PageHeader = _record(
    "PageHeader",
    (5, TType.STRUCT, "data_page_header", _one(_DataPageHeader)),
    (8, TType.STRUCT, "data_page_header_v2", _one(_DataPageHeaderV2)),
)


def least_bytes(
    paths: Iterable[Path],
    rows: RowNumbers | None = None,
    columns: Sequence[str] | None = None,
    where: Tested | None = None,
    window: Literal["head", "tail"] | None = None,
) -> int:
    """Bytes that must be read for these rows (sorted; None: all) of these columns.

    `where` is the condition that the rows match, `window` says if they are its first or last.
    """
    start, end = _looked_at(rows, where, window)
    total = first = 0
    for path in paths:
        if first >= end:
            break
        with path.open("rb") as file:
            footer_length = _footer_length(file)
            file.seek(-FOOTER_END - footer_length, 2)
            footer = _decode(_FileMetaData, file.read(footer_length))
            needed = FOOTER_END + footer_length
            for group in footer.row_groups:
                wanted = None if rows is None else between(rows, first, first + group.num_rows)
                look = (start - first, end - first)
                for chunk in group.columns:
                    name = chunk.meta_data.path_in_schema[0]
                    projected = columns is None or name in columns
                    tested = where if where is not None and name in where.columns else None
                    if projected or tested:
                        chosen = wanted if projected else NO_ROWS
                        needed += _chunk_bytes(file, chunk, group.num_rows, chosen, tested, look)
                first += group.num_rows
            total += needed if first > start else 0
    return total


def _looked_at(
    rows: RowNumbers | None, where: Tested | None, window: str | None
) -> tuple[float, float]:
    """The rows `[start, end)` outside of which nothing need be known."""
    if rows is None or (where is not None and window is None):
        return 0, math.inf
    if window == "tail":
        return (rows[0] if len(rows) else 0), math.inf
    return 0, (rows[-1] + 1 if len(rows) else 0)


def between(rows: RowNumbers, first: int, end: int) -> RowNumbers:
    """The wanted rows of one block, counted from its first."""
    low, high = np.searchsorted(rows, [first, end])
    return rows[low:high] - first


def _chunk_bytes(
    file: BinaryIO,
    chunk: Any,
    group_rows: int,
    rows: RowNumbers | None,
    where: Tested | None,
    look: tuple[float, float],
) -> int:
    """What one column chunk costs: indexes, pages and perhaps the dictionary.

    Pages are needed for the wanted rows and, if `where` is a condition on this column, for those
    of the rows looked at of which bounds do not tell whether they match.
    """
    if rows is None:
        return int(chunk.meta_data.total_compressed_size)
    overlaps = look[0] < group_rows and look[1] > 0
    if where is not None and not (overlaps and _is_open(where, chunk, *_statistics(chunk))):
        where = None  # the footer decides
    total: int = 0
    if where is not None and _has_bloom_filter(where, chunk):
        total += bloom.header_bytes(chunk.meta_data.bloom_filter_length) + bloom.PROBE_BYTES
        where = where if _passes_bloom_filter(file, chunk, where) else None
    if where is not None and where.by_dictionary:
        total += chunk.meta_data.data_page_offset - chunk.meta_data.dictionary_page_offset
        where = None
    if len(rows) == 0 and where is None:
        return total
    file.seek(chunk.offset_index_offset)
    index = _decode(_OffsetIndex, file.read(chunk.offset_index_length))
    pages = index.page_locations
    firsts = np.array([page.first_row_index for page in pages])
    total += chunk.offset_index_length
    needed = set(np.searchsorted(firsts, rows, side="right") - 1)
    if where is not None:
        total += chunk.column_index_length
        ends = np.append(firsts[1:], group_rows)
        seen = np.flatnonzero((firsts < look[1]) & (ends > look[0]))
        needed |= set(seen) & _open_pages(file, chunk, where)
    total += sum(pages[number].compressed_page_size for number in needed)
    if any(_needs_dictionary(file, pages[number]) for number in needed):
        total += pages[0].offset - chunk.meta_data.dictionary_page_offset
    return total


def _has_bloom_filter(where: Tested, chunk: Any) -> bool:
    """Whether there is one that can tell: they know equal values alone."""
    return where.only_value() is not None and chunk.meta_data.bloom_filter_offset is not None


def _passes_bloom_filter(file: BinaryIO, chunk: Any, where: Tested) -> bool:
    kind = INTEGERS.get(chunk.meta_data.type)
    raw = stored(where.only_value())
    data = raw if kind is None else np.array(raw, kind).tobytes()
    place = chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length
    return bloom.may_hold(file, *place, data)


def _open_pages(file: BinaryIO, chunk: Any, where: Tested) -> set[int]:
    """The pages of which the column index does not tell whether all or none of the rows match."""
    file.seek(chunk.column_index_offset)
    index = _decode(_ColumnIndex, file.read(chunk.column_index_length))
    bounds = zip(index.min_values, index.max_values, index.null_counts, strict=True)
    return {number for number, page in enumerate(bounds) if _is_open(where, chunk, *page)}


def _statistics(chunk: Any) -> tuple[bytes, bytes, int]:
    statistics = chunk.meta_data.statistics
    return statistics.min_value, statistics.max_value, statistics.null_count


def _is_open(where: Tested, chunk: Any, low: bytes, high: bytes, nulls: int) -> bool:
    """Whether rows between these bounds may match and may not match."""
    kind = chunk.meta_data.type
    if not low or kind not in {*INTEGERS, STRINGS}:
        return True
    least, most = (
        bound if kind == STRINGS else int(np.frombuffer(bound, INTEGERS[kind])[0])
        for bound in (low, high)
    )
    return where.leaves_open(least, most, nulls > 0, stored)


def stored(value: Any) -> Any:
    """A value as the file stores it: microseconds for a timestamp, bytes for a string."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime):
        return int(np.datetime64(value, "us").astype(np.int64))
    return int(value)


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
