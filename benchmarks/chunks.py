"""The pages of a Parquet column chunk: where they are, what bounds say, and what is compressed.

In: a file in memory and the record of a chunk. Out: its pages, found by the offset index or, in a
file that has none, by walking from header to header, as anybody would have to.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import Any

from benchmarks.limit import Piece
from benchmarks.metadata import ColumnIndex, OffsetIndex, PageHeader, decode

CODECS = {1: "snappy", 2: "gzip", 6: "zstd"}
DICTIONARY_ENCODINGS = {2, 8}  # PLAIN_DICTIONARY, RLE_DICTIONARY
MOST_HEADER = 4_096  # bytes that hold a header of a page, whose bounds are short here

Bounds = tuple[bytes | None, bytes | None, int | None]
"""The least and the most value as they are stored, and how many are null, as far as known."""


@dataclass(frozen=True, slots=True)
class Page:
    """A data page with its header."""

    start: int
    length: int
    first_row: int
    bounds: Bounds
    to_find_next: int
    """Bytes that must be read of it, wanted or not, to know where the next one is."""


def find_pages(data: mmap, chunk: Any) -> list[Page]:
    """All data pages of a chunk; those of a chunk without an index must be flat."""
    return list(_listed(data, chunk) if chunk.offset_index_offset else _walked(data, chunk))


def statistics_of(record: Any) -> Bounds:
    """What the statistics of a chunk or a page say, if it has any."""
    if record is None:
        return None, None, None
    return record.min_value, record.max_value, record.null_count


def first_byte(chunk: Any) -> int:
    """Where a chunk begins: with its dictionary, if it has one."""
    known = chunk.meta_data
    return int(known.dictionary_page_offset or known.data_page_offset)


def needs_dictionary(data: mmap, page: Page) -> bool:
    """Whether the values of a page are in the dictionary."""
    header, _ = _header(data, page.start)
    return _of_data(header).encoding in DICTIONARY_ENCODINGS


def compressed_pieces(data: mmap, chunk: Any, start: int, end: int) -> Iterator[Piece]:
    """What is compressed in the pages, one after the other, between these bytes of a chunk."""
    codec = CODECS.get(chunk.meta_data.codec)
    view = memoryview(data)
    while codec is not None and start < end:
        header, length = _header(data, start)
        body = start + length
        start = body + header.compressed_page_size
        levels, is_compressed = 0, True
        if v2 := header.data_page_header_v2:
            levels = v2.definition_levels_byte_length + v2.repetition_levels_byte_length
            is_compressed = v2.is_compressed is not False
        if is_compressed and body + levels < start:
            size = header.uncompressed_page_size - levels
            yield Piece(view[body + levels : start], codec, size)


def _listed(data: mmap, chunk: Any) -> Iterator[Page]:
    start = chunk.offset_index_offset
    index, _ = decode(OffsetIndex, data[start : start + chunk.offset_index_length])
    locations = index.page_locations
    bounds: list[Bounds] = [(None, None, None)] * len(locations)
    if chunk.column_index_offset:
        start = chunk.column_index_offset
        known, _ = decode(ColumnIndex, data[start : start + chunk.column_index_length])
        nulls = known.null_counts or [None] * len(locations)
        bounds = list(zip(known.min_values, known.max_values, nulls, strict=True))
    for place, known in zip(locations, bounds, strict=True):
        yield Page(place.offset, place.compressed_page_size, place.first_row_index, known, 0)


def _walked(data: mmap, chunk: Any) -> Iterator[Page]:
    start = first_byte(chunk)
    end = start + chunk.meta_data.total_compressed_size
    row = 0
    while start < end:
        header, length = _header(data, start)
        whole = length + header.compressed_page_size
        if known := _of_data(header):
            yield Page(start, whole, row, statistics_of(known.statistics), length)
            row += known.num_values
        start += whole


def _header(data: mmap, start: int) -> tuple[Any, int]:
    return decode(PageHeader, data[start : start + MOST_HEADER])


def _of_data(header: Any) -> Any:
    return header.data_page_header or header.data_page_header_v2
