"""Byte sources: byte ranges in, buffers out.

A source is opened from a path, `bytes` or a binary file object. `coalesce` decides which ranges
become one read (pure), `fetch` reads them and writes every read into the active traces.
"""

import io
import os
import stat
import threading
import time
import weakref
from collections.abc import Hashable, Sequence
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from fretsaw.errors import FileFormatError, FretsawError, SourceNotFoundError
from fretsaw.scratch import Allocate
from fretsaw.trace import Why, record_read

Range: TypeAlias = tuple[int, int]
"""Offset and length, in bytes."""

Origin: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""What a user may name as a source of bytes."""

LARGEST_READ = 64 << 20
SETTLED_NS = 2_000_000_000
"""A file that changed less than this ago may change once more without a newer time."""


class Source(Protocol):
    """Random access to the bytes of one file, from any thread."""

    name: str
    size: int
    gap: int
    """Bytes between two pieces of an index that are cheaper to read along than to leave out."""
    tail: int
    """Bytes to read at the end of the file before anything is known about it."""
    closed: bool
    """Whether somebody let go of it."""
    version: Hashable | None
    """What differs as soon as the bytes do; None if nothing does so surely."""

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        """Exactly these bytes; the caller has checked that they lie inside the file.

        Where they are copied, `allocate` gives the memory.
        """
        ...

    def rest(self) -> None:
        """Hold no descriptor until the next read; nobody is reading now."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class LocalFile:
    """A file on a local disk, read by position."""

    gap = 4 << 10
    tail = 8

    def __init__(self, path: str) -> None:
        self.name = path
        self.closed = False
        self._lock = threading.Lock()
        self._open()
        status = os.fstat(self._descriptor)
        self.size = status.st_size
        self.version = _version(path, status)

    def _open(self) -> None:
        try:
            # Without O_NONBLOCK a named pipe would wait for its writer.
            self._descriptor = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise SourceNotFoundError(f"{self.name}: no such file; check the path") from None
        # Closed at rest, by hand, or with the last piece of work that reads the file.
        self._close = weakref.finalize(self, os.close, self._descriptor)
        mode = os.fstat(self._descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise SourceNotFoundError(f"{self.name}: is a directory; name a file, or scan() it")
        if not stat.S_ISREG(mode):
            raise FileFormatError(f"{self.name}: is a pipe or device, not a file")

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        with self._lock:
            if not self._close.alive:
                self._open()
        # Not through a memory map: a file that is truncated meanwhile would kill the process.
        buffer = allocate(length)
        view = memoryview(buffer)
        done = 0
        while done < length:
            count = os.preadv(self._descriptor, [view[done:]], offset + done)
            if count == 0:
                raise _too_short(self.name, offset + done)
            done += count
        return buffer

    def rest(self) -> None:
        self._close()

    def close(self) -> None:
        self.closed = True
        self._close()


class MemoryFile:
    """The bytes of a file, held in memory."""

    gap = 0
    tail = 8
    version: Hashable | None = None

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.name = source_name(data)
        self.closed = False
        self._buffer = pa.py_buffer(data)
        self.size = self._buffer.size

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        return self._buffer.slice(offset, length)

    def rest(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class FileObject:
    """A seekable binary file object; it stays the user's to close."""

    gap = 4 << 10
    tail = 8
    version: Hashable | None = None

    def __init__(self, file: BinaryIO) -> None:
        self.closed = False
        self._file = file
        self._lock = threading.Lock()
        self.name = source_name(file)
        self.size = file.seek(0, io.SEEK_END)

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        with self._lock:
            self._file.seek(offset)
            data = self._file.read(length)
            while len(data) < length:
                more = self._file.read(length - len(data))
                if not more:
                    raise _too_short(self.name, offset + len(data))
                data += more
        return pa.py_buffer(data)

    def rest(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def _version(path: str, status: os.stat_result) -> Hashable | None:
    """Tells one version of a file from the next, unless that may come within the same moment."""
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - changed < SETTLED_NS:
        return None
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (path, status.st_dev, status.st_ino, status.st_size, *times)


def is_file_object(origin: object) -> bool:
    """Whether the origin is an open file, which can be neither reopened nor pickled."""
    return hasattr(origin, "read") and hasattr(origin, "seek")


def absolute(origin: Origin) -> Origin:
    """The origin with its path made absolute: a scan means the same wherever it is run later."""
    if isinstance(origin, str | os.PathLike):
        return os.path.abspath(_local_path(os.fspath(origin)))
    if isinstance(origin, bytes | bytearray | memoryview) or is_file_object(origin):
        return origin
    raise TypeError(
        f"cannot read a {type(origin).__name__}: name a path, or give bytes or a binary file object"
    )


def source_name(origin: Origin) -> str:
    """What messages call a source."""
    if isinstance(origin, str | os.PathLike):
        return os.fspath(origin)
    if isinstance(origin, bytes | bytearray | memoryview):
        return "<bytes>"
    name = getattr(origin, "name", None)
    return name if isinstance(name, str) else "<file object>"


def open_source(origin: Origin) -> Source:
    """The source for an absolute path, bytes or a file object."""
    if isinstance(origin, str | os.PathLike):
        return LocalFile(os.fspath(origin))
    if isinstance(origin, bytes | bytearray | memoryview):
        return MemoryFile(origin)
    return FileObject(origin)


def _local_path(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    if not separator:
        return os.path.expanduser(text)
    if scheme != "file":
        raise FretsawError(
            f"{text}: {scheme} URLs are not supported; open it as a file object, or copy it here"
        )
    return unquote(urlsplit(text).path)


class Read(NamedTuple):
    """One read, and which of the requested ranges it serves (by their position)."""

    offset: int
    length: int
    serves: list[int]


def coalesce(ranges: Sequence[Range], gap: int, largest: int = LARGEST_READ) -> list[Read]:
    """The reads that serve all ranges: neighbours at most `gap` bytes apart become one read.

    A read grows no larger than `largest` by joining; a single range above that stays whole.

    >>> coalesce([(100, 10), (0, 50), (55, 5)], gap=10)
    [Read(offset=0, length=60, serves=[1, 2]), Read(offset=100, length=10, serves=[0])]
    """
    reads: list[Read] = []
    for position in sorted(range(len(ranges)), key=ranges.__getitem__):
        offset, length = ranges[position]
        if reads:
            start, so_far, serves = reads[-1]
            joined = max(start + so_far, offset + length) - start
            if offset <= start + so_far + gap and joined <= max(largest, so_far):
                reads[-1] = Read(start, joined, [*serves, position])
                continue
        reads.append(Read(offset, length, [position]))
    return reads


def fetch(
    source: Source, ranges: Sequence[Range], why: Why, allocate: Allocate = pa.allocate_buffer
) -> list[pa.Buffer]:
    """The bytes of each range, in the order asked; every read goes into the active traces."""
    for offset, length in ranges:
        if offset < 0 or length < 0 or offset + length > source.size:
            raise FileFormatError(
                f"{source.name}: {length} bytes at offset {offset} ({why}) lie outside of its "
                f"{source.size} bytes; it is truncated or corrupt, write or copy it again"
            )
    buffers: list[pa.Buffer] = [_EMPTY] * len(ranges)
    # Between two pieces of data may lie a column that nobody asked for: no gap is read there.
    for read in coalesce(ranges, 0 if why == "data" else source.gap):
        if read.length == 0:
            continue
        data = source.read(read.offset, read.length, allocate)
        record_read(source.name, read.offset, read.length, why)
        for position in read.serves:
            offset, length = ranges[position]
            buffers[position] = data.slice(offset - read.offset, length)
    return buffers


_EMPTY = pa.py_buffer(b"")


def _too_short(name: str, end: int) -> FileFormatError:
    return FileFormatError(f"{name}: ends at byte {end}, was it truncated while being read?")
