"""Random access to the bytes of one file: what a source offers, and how files are told apart."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO, Protocol, TypeAlias

import pyarrow as pa

from fretsaw.storage.buffer_pool import Allocate

Range: TypeAlias = tuple[int, int]
"""Offset and length, in bytes."""

Origin: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""What a user may name as a source of bytes."""


class Source(Protocol):
    """Random access to the bytes of one file, from any thread."""

    name: str
    size: int
    gap: int
    """Bytes between two pieces of metadata that had rather be read along than left out."""
    data_gap: int
    """The same between two pieces of data, where a column may lie that nobody asked for."""
    tail: int
    """Bytes to read at the end of the file before anything is known about it."""
    closed: bool
    """Whether somebody let go of it."""
    identity: "Identity | None"
    """Tells the file from every other that may be opened in its place; None: there is none."""
    is_settled: bool
    """Whether another identity is sure as soon as the file changes."""

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        """Exactly these bytes; the caller has checked that they lie inside the file.

        The ranges are those of one wave: a source may read them side by side. Where bytes are
        copied, `allocate` gives the memory.
        """
        ...

    def rest(self) -> None:
        """Hold no descriptor until the next read."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a local file from another one, and from itself once it has changed."""

    machine: str
    device: int
    inode: int
    size: int
    modified: int
    changed: int
    """The times of its content and of its inode, in nanoseconds."""

    @classmethod
    def of(cls, status: os.stat_result) -> "Identity":
        """The identity of a file that is open here."""
        times = (status.st_mtime_ns, status.st_ctime_ns)
        return cls(machine_name(), status.st_dev, status.st_ino, status.st_size, *times)

    def is_of(self, other: "Identity") -> bool:
        """Whether both are of one file; each machine numbers those of a shared disk by itself."""
        if self.machine == other.machine:
            return self == other
        return (self.size, self.modified) == (other.size, other.modified)


@cache
def machine_name() -> str:
    """What tells this machine from others, as far as they share files."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return platform.node()


def source_name(origin: Origin) -> str:
    """What messages call a source."""
    if isinstance(origin, str | os.PathLike):
        return os.fspath(origin)
    if isinstance(origin, bytes | bytearray | memoryview):
        return "<bytes>"
    name = getattr(origin, "name", None)
    return name if isinstance(name, str) else "<file object>"
