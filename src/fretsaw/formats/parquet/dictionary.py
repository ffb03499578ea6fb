"""The dictionary of a column chunk: all values that the chunk has, if every page refers to it.

The dictionary page is decoded by Arrow like any other: behind it comes a made-up data page that
refers to each entry once.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.chain import only_leaf
from fretsaw.formats.parquet.chunk import Chunk
from fretsaw.formats.parquet.cut import Segment
from fretsaw.formats.parquet.pages import CorruptPage, PageRun, hop
from fretsaw.storage.requests import Request, Steps

_MOST_ENTRIES = 1 << 20
_MOST_PACKED = 1000
"""No codec makes entries, which all differ, smaller than a byte for so many of them."""
_SMALL_PART = 4  # a dictionary is worth reading if it is this part of its chunk, or less


def is_only_dictionary(column: Any) -> bool:
    """Whether the metadata of a chunk prove that every data page refers to the dictionary."""
    stats = column.encoding_stats or []
    # A page of an unknown type may hold data, too.
    data_pages = [each for each in stats if each.page_type != metadata.DICTIONARY_PAGE]
    return bool(data_pages) and all(
        each.page_type in (metadata.DATA_PAGE, metadata.DATA_PAGE_V2)
        and each.encoding in metadata.DICTIONARY_ENCODINGS
        and (each.count or 0) > 0
        for each in data_pages
    )


def dictionary_segment(chunk: Chunk, whatever_size: bool = False) -> Steps[Segment | None]:
    """The entries of the chunk's dictionary, to be decoded; None if it is missing or large."""
    first, *_ = yield from hop(chunk.start, chunk.end, lambda _: True)
    entries = first.dictionary_entries
    size = chunk.end - chunk.start
    if entries is None or not (entries or whatever_size):
        return None
    if whatever_size:
        if entries > min(chunk.num_values, first.size * _MOST_PACKED):
            raise CorruptPage(f"a dictionary page of {first.size} bytes claims {entries} entries")
    elif entries > min(chunk.num_values, _MOST_ENTRIES) or first.size * _SMALL_PART > size:
        return None
    (page,) = yield Request([(chunk.start, first.size)], "dictionary")
    leaf = replace(chunk.leaf, is_repeated=False)
    chain = only_leaf(chunk.chain, leaf.arrow_type)
    alone = replace(chunk, leaf=leaf, chain=chain)
    pages = [PageRun(_each_entry_once(entries))]
    return Segment(alone, PageRun(page), pages, entries, entries, entries)


def _each_entry_once(entries: int) -> pa.Buffer:
    """A data page of version 2, not compressed, that refers to the entries in order."""
    width = max(1, (entries - 1).bit_length())
    indices = np.zeros(-(-entries // 8) * 8, np.uint32)
    indices[:entries] = np.arange(entries)
    bits = (indices[:, None] >> np.arange(width, dtype=np.uint32)) & 1
    packed = np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()
    # One bit-packed run of so many groups of eight values.
    body = bytes([width]) + _varint(len(indices) // 8 << 1 | 1) + packed
    header = metadata.PageHeader(
        type=metadata.DATA_PAGE_V2,
        uncompressed_page_size=len(body),
        compressed_page_size=len(body),
        data_page_header_v2=metadata.DataPageHeaderV2(
            num_values=entries,
            num_nulls=0,
            num_rows=entries,
            encoding=metadata.RLE_DICTIONARY,
            definition_levels_byte_length=0,
            repetition_levels_byte_length=0,
            is_compressed=False,
        ),
    )
    return pa.py_buffer(metadata.encode(header) + body)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])
