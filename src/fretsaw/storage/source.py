"""Random access to the bytes of one file: what a source offers, and how files are told apart."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO, Protocol, TypeAlias

import pyarrow as pa

from fretsaw.model.trace import Why
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.location import Location

Range: TypeAlias = tuple[int, int]
"""Offset and length, in bytes."""

Origin: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | Location
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
    far: int
    """Bytes that had rather be read in vain than waited for once more; 0: it is near."""
    closed: bool
    """Whether somebody let go of it."""
    is_settled: bool
    """Whether another identity is sure as soon as the file changes."""

    @property
    def identity(self) -> "Identity | Version | None":
        """Tells the file from every other that may be opened in its place; None: there is none."""
        ...

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        """Exactly these bytes; the caller has checked that they lie inside the file.

        The ranges are those of one wave: a source may read them side by side. Where bytes are
        copied, `allocate` gives the memory.
        """
        ...

    def holds(self, place: Range) -> bool:
        """Whether a range is in memory already, or on its way."""
        ...

    def held(self, place: Range) -> pa.Buffer:
        """The bytes of a range that it holds; waits for what is on its way."""
        ...

    def read_end(self) -> None:
        """Hold the end of the file if it is far away: all metadata may lie there."""
        ...

    def begin_end(self) -> None:
        """Begin to read the end of the file: somebody will open it soon."""
        ...

    def forget_end(self) -> None:
        """Nobody will open the file: its end need not come."""
        ...

    def read_ahead(self, ranges: Sequence[Range], why: Why) -> None:
        """Begin to read what is likely to be asked for, if the file is far away."""
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


@dataclass(frozen=True, slots=True)
class Version:
    """What tells a remote file from itself once it has changed."""

    size: int
    tag: str | None
    """Its ETag, or what else the store gives each version, without quotes."""
    modified: str | None

    def is_of(self, other: "Version") -> bool:
        """Whether both are the same version, as far as both are told."""
        if self.size != other.size:
            return False
        if self.tag is not None and other.tag is not None:
            return self.tag == other.tag
        return self.modified == other.modified

    @property
    def is_exact(self) -> bool:
        """Whether the store gives every version another tag, byte by byte."""
        return self.tag is not None and not self.tag.startswith("W/")


class Near:
    """What sources have in common that hold nothing and are not waited for."""

    gap = 4 << 10
    data_gap = 0
    tail = 8
    far = 0

    def holds(self, place: Range) -> bool:
        return False

    def held(self, place: Range) -> pa.Buffer:
        raise LookupError

    def read_end(self) -> None:
        pass

    def begin_end(self) -> None:
        pass

    def forget_end(self) -> None:
        pass

    def read_ahead(self, ranges: Sequence[Range], why: Why) -> None:
        pass

    def rest(self) -> None:
        pass


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """The last bytes of a file, in memory."""

    version: Version
    data: pa.Buffer

    def get(self, place: Range) -> pa.Buffer | None:
        """The bytes of a range; None if they begin before what is here."""
        begin = place[0] - (self.version.size - self.data.size)
        return self.data.slice(begin, place[1]) if begin >= 0 else None


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
    if isinstance(origin, Location):
        return origin.url
    if isinstance(origin, str | os.PathLike):
        return os.fspath(origin)
    if isinstance(origin, bytes | bytearray | memoryview):
        return "<bytes>"
    name = getattr(origin, "name", None)
    return name if isinstance(name, str) else "<file object>"
