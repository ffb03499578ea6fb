"""Bodies of pages decompressed by Arrow, where somebody must look into them."""

from typing import Any
from zlib import crc32

import pyarrow as pa

from fretsaw.formats.parquet.pages import Page

UNCOMPRESSED = 0
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
LARGEST = 64 << 20
"""No page becomes more than this, whatever it claims."""
_MOST_GROWTH = {1: 24, 2: 1040}  # by how much a codec can make a page smaller


class NotDecompressed(ValueError):
    """A page that is not what it claims to be, or a codec that is not known here."""


def body_of(page: Page, buffer: pa.Buffer, codec: int, verify: bool) -> pa.Buffer:
    """What follows the header of a data page of version 1, levels and values, decompressed."""
    header: Any = page.header
    stored = buffer.slice(page.size - header.compressed_page_size)
    if verify and header.crc is not None and crc32(stored) != header.crc & 0xFFFF_FFFF:
        raise NotDecompressed("a wrong checksum")
    if codec == UNCOMPRESSED:
        return stored
    size = header.uncompressed_page_size or 0
    possible = stored.size * _MOST_GROWTH.get(codec, LARGEST)
    if codec not in _CODECS or not 0 <= size <= min(possible, LARGEST):
        raise NotDecompressed("impossible sizes, or another codec")
    try:
        return pa.Codec(_CODECS[codec]).decompress(stored, size)
    except (pa.ArrowException, OSError) as error:
        raise NotDecompressed(str(error)) from None
