"""The bytes of a file, held in memory."""

from collections.abc import Sequence

import pyarrow as pa

from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.source import Identity, Near, Range, source_name


class MemoryFile(Near):
    """The bytes of a file, held in memory."""

    gap = 0
    identity: Identity | None = None
    is_settled = False

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.name = source_name(data)
        self.closed = False
        self._buffer = pa.py_buffer(data)
        self.size = self._buffer.size

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        return [self._buffer.slice(offset, length) for offset, length in ranges]

    def close(self) -> None:
        self.closed = True
