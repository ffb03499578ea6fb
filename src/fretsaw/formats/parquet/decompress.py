"""Pages decompressed here: where we must look inside, or where Arrow would take longer.

Snappy by cramjam and gzip by isal take half of Arrow's time; other codecs gain nothing.
"""

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import pyarrow as pa

from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.pages import CorruptPage, Page, PageRun
from fretsaw.model.locks import importing

UNCOMPRESSED = 0
_SNAPPY, _GZIP, _BROTLI, _ZSTD, _LZ4_RAW = 1, 2, 4, 6, 7
LARGEST = 64 << 20
"""No more than this is decompressed at once, whatever pages claim to become."""
_MOST_GROWTH = {_SNAPPY: 24, _GZIP: 1040}  # by how much a codec can make a page smaller
_KEPT = 4 << 20  # bytes of memory that each thread keeps to look into pages
_NO_GAIN = 0.9  # what hardly got smaller is copied rather than decompressed


class NotDecompressed(ValueError):
    """A page that is not what it claims to be, or a codec that is not known here."""


class Packed(NamedTuple):
    """Compressed bytes, and how many they become."""

    data: pa.Buffer
    size: int
    codec: int

    def write_to(self, memory: memoryview) -> None:
        """Decompress into exactly as much memory as is needed."""
        if self.codec == _GZIP:
            memory[:] = _gunzip(self.data, self.size)
            return
        into = _decompressors().get(self.codec)
        try:
            if into is None or into(self.data, memory) != self.size:
                raise NotDecompressed("another size than the header tells, or another codec")
        except Exception as error:  # a damaged page: Arrow will tell what is wrong with it
            raise NotDecompressed(str(error)) from None


Piece: TypeAlias = pa.Buffer | bytes | Packed
"""Bytes of a page, as they are or still to be decompressed."""


def size_of(piece: Piece) -> int:
    """How many bytes a piece is in the end."""
    return len(piece) if isinstance(piece, bytes) else piece.size


def write(pieces: Sequence[Piece], buffer: pa.Buffer) -> None:
    """Write the pieces one behind the other."""
    memory, position = memoryview(buffer).cast("B"), 0
    for piece in pieces:
        place = memory[position : position + size_of(piece)]
        if isinstance(piece, Packed):
            piece.write_to(place)
        else:
            place[:] = memoryview(piece).cast("B")
        position += size_of(piece)


def pays(codec: int, compressed: int, uncompressed: int) -> bool:
    """Whether the pages of a chunk are decompressed faster here than by Arrow."""
    return codec == _GZIP or (codec == _SNAPPY and compressed < uncompressed * _NO_GAIN)


def unpacked(runs: Sequence[PageRun], codec: int, always: bool, verify: bool) -> list[Piece]:
    """Pages without compression: what to write one behind the other."""
    pieces: list[Piece] = []
    try:
        for run in runs:
            for page in run.pages:
                levels, body = contents(page, run.bytes_of(page), codec, always, verify)
                pieces += (_plain_header(page, levels.size + body.size), levels, body)
    except CorruptPage as error:
        raise NotDecompressed(str(error)) from None
    return pieces


def _plain_header(page: Page, size: int) -> bytes:
    """The header of the same page without compression; the one that is kept stays as it is."""
    told = {"crc": None, "compressed_page_size": size, "uncompressed_page_size": size}
    return metadata.encode(metadata.PageHeader(**{**vars(page.header), **told}))


def contents(
    page: Page, buffer: pa.Buffer, codec: int, always: bool, verify: bool
) -> tuple[pa.Buffer, pa.Buffer | Packed]:
    """What follows the header of a page: levels that are never compressed, and the rest.

    Where pages are `always` compressed, their header need not say so.
    """
    header: Any = page.header
    stored = buffer.slice(page.size - header.compressed_page_size)
    if verify and header.crc is not None and crc32(stored) != header.crc & 0xFFFF_FFFF:
        raise NotDecompressed("a wrong checksum")
    levels = 0
    if header.data_page_header_v2:
        details = header.data_page_header_v2
        lengths = (details.definition_levels_byte_length, details.repetition_levels_byte_length)
        levels = sum(max(0, length or 0) for length in lengths)
        codec = UNCOMPRESSED if details.is_compressed is False and not always else codec
    size = (header.uncompressed_page_size or 0) - levels
    if levels > stored.size or not 0 <= size <= LARGEST:
        raise NotDecompressed("impossible sizes")
    body = stored.slice(levels)
    if codec == UNCOMPRESSED:
        return stored.slice(0, levels), body
    if size > body.size * _MOST_GROWTH.get(codec, LARGEST):
        raise NotDecompressed("impossible sizes")
    return stored.slice(0, levels), Packed(body, size, codec)


def readable(body: pa.Buffer | Packed) -> bytes | bytearray:
    """The bytes of a page, to look at until the next page is looked at, and what lies behind."""
    return body.to_pybytes() if isinstance(body, pa.Buffer) else _memory.filled(body)


class _Memory(threading.local):
    """Memory of one thread, for one page."""

    def __init__(self) -> None:
        self._memory = bytearray()

    def filled(self, packed: Packed) -> bytearray:
        memory = self._memory
        if len(memory) < packed.size:
            memory = bytearray(packed.size)
            if packed.size <= _KEPT:
                self._memory = memory
        packed.write_to(memoryview(memory)[: packed.size])
        return memory


_memory = _Memory()


def _gunzip(data: pa.Buffer, size: int) -> bytes:
    with importing:
        from isal.isal_zlib import decompressobj

    stream = decompressobj(wbits=31)
    try:
        found: bytes = stream.decompress(data, max_length=size + 1)
    except Exception as error:
        raise NotDecompressed(str(error)) from None
    if len(found) != size or not stream.eof or stream.unused_data:
        raise NotDecompressed("another size than the header tells, or no end")
    return found


@cache
def _decompressors() -> dict[int, Callable[[Any, Any], int]]:
    with importing:
        import cramjam

    return {
        _SNAPPY: cramjam.snappy.decompress_raw_into,
        _BROTLI: cramjam.brotli.decompress_into,
        _ZSTD: cramjam.zstd.decompress_into,
        _LZ4_RAW: cramjam.lz4.decompress_block_into,
    }
