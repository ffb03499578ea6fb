"""Files whose pages are changed one by one: what no writer makes any more, or never made.

In: the bytes of a Parquet file. Out: the same file with other pages in the place of each page.
"""

import zlib
from collections.abc import Callable

import pyarrow as pa

from tests.support.craft import (
    COLUMNS,
    I32,
    I64,
    META_DATA,
    ROW_GROUPS,
    STRUCT,
    Reader,
    Struct,
    encoded,
)
from tests.support.pages import DICTIONARY_PAGE, PageHeader, decode

# Fields of PageHeader
UNCOMPRESSED_SIZE, COMPRESSED_SIZE, CRC, V1, V2 = 2, 3, 4, 5, 8

Change = Callable[[Struct, bytes], list[tuple[Struct, bytes]]]
"""From the header and the body of a page to those of the pages in its place."""


class Pages:
    """A file under change, page by page: headers as Thrift structs, bodies as they are stored."""

    def __init__(self, data: bytes) -> None:
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        self._data = data
        self._footer = Reader(data, start).struct()

    def changed(self, change: Change) -> bytes:
        """The file with each page replaced by some; page indexes are left out."""
        out = bytearray(b"PAR1")
        for group in self._footer[ROW_GROUPS][1][1]:
            sizes = 0
            for chunk in group[COLUMNS][1][1]:
                for index in range(4, 8):
                    chunk.pop(index, None)
                meta = chunk[META_DATA][1]
                sizes += self._rewrite(meta, out, change)
            group[6] = (I64, sizes)
            group.pop(5, None)
        footer = encoded(self._footer)
        return bytes(out) + footer + len(footer).to_bytes(4, "little") + b"PAR1"

    def _rewrite(self, meta: Struct, out: bytearray, change: Change) -> int:
        starts = [meta[field][1] for field in (9, 11) if field in meta and meta[field][1]]
        position, begin = min(starts), len(out)
        end, claimed = position + meta[7][1], 0
        meta.pop(11, None)
        meta[9] = (I64, begin)
        while position < end:
            header = Reader(self._data, position).struct()
            _, body = decode(PageHeader, self._data[:end], position)
            position = body + header[3][1]
            for new_header, new_body in change(header, self._data[body:position]):
                if header[1][1] == DICTIONARY_PAGE:
                    meta[11] = (I64, len(out))
                elif meta[9][1] <= meta.get(11, (I64, -1))[1]:
                    meta[9] = (I64, len(out))
                out += encoded(new_header) + new_body
                claimed += new_header[UNCOMPRESSED_SIZE][1]
        # So that the chunk counts as one that got smaller, where its pages do.
        meta[6] = (I64, max(meta[6][1], claimed))
        meta[7] = (I64, len(out) - begin)
        return len(out) - begin


def is_compressed(header: Struct, body: bytes) -> bool:
    return bool(body) and (V2 not in header or header[V2][1].get(7, (0, True))[1])


def levels_of(header: Struct) -> int:
    """Bytes in front of what is compressed."""
    return header[V2][1][5][1] + header[V2][1][6][1] if V2 in header else 0


def resized(header: Struct, body: bytes) -> tuple[Struct, bytes]:
    """A page with another body, and the checksum that belongs to it."""
    new = {**header, COMPRESSED_SIZE: (I32, len(body))}
    if CRC in header:
        crc = zlib.crc32(body)
        new[CRC] = (I32, crc - (1 << 32) if crc >> 31 else crc)
    return new, body


def empty_page(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
    """A data page without a single value, in front of each data page."""
    if header[1][1] == DICTIONARY_PAGE:
        return [(header, body)]
    new = dict(header)
    new.pop(CRC, None)
    if V2 in header:
        none = dict.fromkeys((1, 2, 3, 5, 6), (I32, 0))
        new[V2] = (STRUCT, {**header[V2][1], **none, 7: (1, False)})
    else:
        new[V1] = (STRUCT, {**header[V1][1], 1: (I32, 0)})
    new |= {UNCOMPRESSED_SIZE: (I32, 0), COMPRESSED_SIZE: (I32, 0)}
    return [(new, b""), (header, body)]


def hidden_compression(codec: str) -> Change:
    """Pages of version 2 that are all compressed and say that they are not."""
    arrow_codec = "lz4_raw" if codec == "lz4" else codec

    def change(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        if V2 not in header:
            return [(header, body)]
        if not is_compressed(header, body) and codec != "none":
            levels = levels_of(header)
            packed = pa.compress(body[levels:], arrow_codec, asbytes=True)
            header, body = resized(header, body[:levels] + packed)
        return [({**header, V2: (STRUCT, {**header[V2][1], 7: (1, False)})}, body)]

    return change
