"""Memory that is used again: fresh memory costs as much as decompressing into it.

Pieces of a scan are read and decompressed into leased memory, from which Arrow copies the values.
What still refers to a lease when it ends keeps its memory, which then is not used again.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa

Allocate: TypeAlias = Callable[[int], pa.Buffer]
"""Gives memory of so many bytes, to be written to."""

SMALL = 64 << 10
"""Less than this is not worth a lease."""
LARGEST = 128 << 20
KEPT = 128 << 20
"""Bytes that are kept for the next scan."""
_ALIGNMENT = 64

pa.allocate_buffer(1)  # Arrow's memory pool is made at its first use; no fork may come meanwhile


class Lease:
    """One stretch of memory, given out from its beginning to its end."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._given = 0

    def allocate(self, size: int) -> pa.Buffer:
        start = self._given
        if size < SMALL or start + size > LARGEST:
            return pa.allocate_buffer(size)
        self._given += size + -size % _ALIGNMENT
        if start + size > len(self._memory):
            return pa.allocate_buffer(size)
        return pa.py_buffer(memoryview(self._memory)[start : start + size])

    @property
    def size(self) -> int:
        return len(self._memory)

    def is_free_again(self) -> bool:
        """Begin anew, as large as was asked for; not if somebody still refers to the memory."""
        given, self._given = self._given, 0
        try:
            self._memory.append(0)  # refused while a buffer refers to it
        except BufferError:
            return False
        del self._memory[-1]
        if given > len(self._memory):
            self._memory = bytearray(given)
        return True


FREE: list[Lease] = []
"""What nobody leases at the moment."""


@contextmanager
def lease() -> Iterator[Allocate]:
    """Memory for one piece of work, which must not hand on what it allocates."""
    try:
        mine = FREE.pop()
    except IndexError:
        mine = Lease()
    yield mine.allocate
    if mine.is_free_again():
        FREE.append(mine)


def release() -> None:
    """A scan is over: keep little of the memory that nobody leases at the moment."""
    kept = 0
    for free in FREE.copy():
        if kept + free.size <= KEPT:
            kept += free.size
        else:
            with contextlib.suppress(ValueError):  # somebody leased it meanwhile
                FREE.remove(free)
