"""Pages decompressed where we must look inside, into memory that each thread uses again."""

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_UNCOMPRESSED, _SNAPPY, _GZIP, _BROTLI, _ZSTD, _LZ4_RAW = 0, 1, 2, 4, 6, 7
_LARGEST = 64 << 20  # what a page claims to become is not believed beyond this


class _Scratch(threading.local):
    """Memory of one thread."""

    def __init__(self) -> None:
        self.memory = bytearray()

    def of_size(self, size: int) -> bytearray:
        if len(self.memory) < size:
            self.memory = bytearray(size)
        return self.memory


_scratch = _Scratch()


def decompress(codec: int, data: pa.Buffer, size: int) -> tuple[bytes | bytearray, int] | None:
    """The bytes of a page, as long as nothing else is decompressed, and how many they are.

    None where the codec is not known, or the page is not what it claims to be.
    """
    if codec == _UNCOMPRESSED:
        return data.to_pybytes(), data.size
    if not 0 < size <= _LARGEST:
        return None
    if codec == _GZIP:
        return _gunzip(data, size)
    into = _decompressors().get(codec)
    if into is None:
        return None
    memory = _scratch.of_size(size)
    try:
        return (memory, size) if into(data, memoryview(memory)[:size]) == size else None
    except Exception:  # a damaged page: Arrow will tell what is wrong with it
        return None


def _gunzip(data: pa.Buffer, size: int) -> tuple[bytes, int] | None:
    from isal.isal_zlib import decompressobj

    try:
        found = decompressobj(wbits=31).decompress(data, max_length=size + 1)
    except Exception:
        return None
    return (found, size) if len(found) == size else None


def _decompressors() -> dict[int, Callable[[Any, Any], int]]:
    import cramjam

    return {
        _SNAPPY: cramjam.snappy.decompress_raw_into,
        _BROTLI: cramjam.brotli.decompress_into,
        _ZSTD: cramjam.zstd.decompress_into,
        _LZ4_RAW: cramjam.lz4.decompress_block_into,
    }
