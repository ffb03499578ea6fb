"""Byte sources: byte ranges in, buffers out.

A source is opened from a path, `bytes` or a binary file object. `coalesce` decides which ranges
become one read (pure), `fetch` reads them and writes every read into the active traces.
"""

import errno
import io
import os
import platform
import stat
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from fretsaw.errors import FileFormatError, FretsawError, SourceNotFoundError, StorageError
from fretsaw.locks import Lock
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
    identity: "Identity | None"
    """Tells the file from every other that may be opened in its place; None: there is none."""
    is_settled: bool
    """Whether another identity is sure as soon as the file changes."""

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        """Exactly these bytes; the caller has checked that they lie inside the file.

        Where they are copied, `allocate` gives the memory.
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
        return cls(_machine(), status.st_dev, status.st_ino, status.st_size, *times)

    def is_of(self, other: "Identity") -> bool:
        """Whether both are of one file; each machine numbers those of a shared disk by itself."""
        if self.machine == other.machine:
            return self == other
        return (self.size, self.modified) == (other.size, other.modified)


class _Descriptor:
    """An open file of the system, closed when nobody refers to it any more.

    Whoever reads refers to it, so that its number cannot become that of another file meanwhile.
    """

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        weakref.finalize(self, os.close, number)


class LocalFile:
    """A file on a local disk, read by position; `expected` is what it was when it was planned."""

    gap = 4 << 10
    tail = 8

    def __init__(self, path: str, expected: Identity | None = None) -> None:
        self.name = path
        self.closed = False
        self._descriptor: _Descriptor | None = _opened(path)
        status = os.fstat(self._descriptor.number)
        self.size = status.st_size
        self._opened_as = Identity.of(status)
        self.identity: Identity | None = self._opened_as
        self.is_settled = _is_settled(status)
        if expected is not None and not self._opened_as.is_of(expected):
            raise _changed(path, "since the scan was planned; plan it anew")

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        descriptor = self._descriptor or self._reopened()
        try:
            return _read_at(self.name, descriptor.number, self._opened_as, offset, length, allocate)
        finally:
            del descriptor  # which closes it if it was put to rest; an error may keep this frame

    def _reopened(self) -> _Descriptor:
        descriptor = _opened(self.name)
        if Identity.of(os.fstat(descriptor.number)) != self._opened_as:
            raise _changed(self.name, _WHILE_READ)
        if not self.closed:
            self._descriptor = descriptor
        return descriptor

    def rest(self) -> None:
        self._descriptor = None

    def close(self) -> None:
        self.closed = True
        self._descriptor = None


class MemoryFile:
    """The bytes of a file, held in memory."""

    gap = 0
    tail = 8
    identity: Identity | None = None
    is_settled = False

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


class _Shared:
    """A file object, and the lock of whoever moves its position, in whichever scan."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.lock = Lock()


# By identity: a file object need be neither hashable nor weakly referable. It lives as long as
# what is shared of it, so nothing else can have its number.
_shared: weakref.WeakValueDictionary[int, _Shared] = weakref.WeakValueDictionary()
_sharing = Lock()


def _share(file: BinaryIO) -> _Shared:
    with _sharing:
        known = _shared.get(id(file))
        if known is None:
            known = _shared[id(file)] = _Shared(file)
        return known


class FileObject:
    """A seekable binary file object; it stays the user's to close."""

    gap = 4 << 10
    tail = 8
    identity: Identity | None = None
    is_settled = False

    def __init__(self, file: BinaryIO) -> None:
        self.closed = False
        self.name = source_name(file)
        _require_binary(file, self.name)
        self._shared = _share(file)
        # A forked child shares the position of a file of the system: these are read without it.
        self._descriptor = _duplicate(file)
        if self._descriptor is not None:
            self._opened_as = Identity.of(os.fstat(self._descriptor.number))
            self.size = self._opened_as.size
            return
        with self._shared.lock:
            self.size = file.seek(0, io.SEEK_END)

    def read(self, offset: int, length: int, allocate: Allocate) -> pa.Buffer:
        if self._descriptor is not None:
            number = self._descriptor.number
            return _read_at(self.name, number, self._opened_as, offset, length, allocate)
        file = self._shared.file
        with self._shared.lock:
            _require_open(file, self.name)
            file.seek(offset)
            data = file.read(length)
            if not isinstance(data, bytes):
                raise _opened_as_text(self.name)
            while len(data) < length:
                more = file.read(length - len(data))
                if not more:
                    raise _changed(self.name, _WHILE_READ)
                data += more
        return pa.py_buffer(data)

    def rest(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def _read_at(
    name: str,
    number: int,
    before: Identity,
    offset: int,
    length: int,
    allocate: Allocate,
) -> pa.Buffer:
    """Bytes of an open file of the system, which must still be what it was."""
    # Not through a memory map: a file that is truncated meanwhile would kill the process.
    buffer = allocate(length)
    view = memoryview(buffer)
    done = count = 0
    try:
        while done < length:
            count = os.preadv(number, [view[done:]], offset + done)
            if count == 0:
                break
            done += count
        status = os.fstat(number)
    except OSError as error:
        raise StorageError(
            f"{name}: {error.strerror} (at byte {offset + done}); check the disk, and read it again"
        ) from error
    # Not the time of its inode: that of a file which was only replaced is another one too.
    if done < length or (status.st_size, status.st_mtime_ns) != (before.size, before.modified):
        raise _changed(name, _WHILE_READ)
    return buffer


def _opened(path: str) -> _Descriptor:
    """A file of the system, open to be read."""
    try:
        # Without O_NONBLOCK a named pipe would wait for its writer.
        descriptor = _Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except (OSError, ValueError) as error:
        raise cannot_open(path, error) from None
    mode = os.fstat(descriptor.number).st_mode
    if stat.S_ISDIR(mode):
        raise SourceNotFoundError(f"{path}: is a directory; name a file, or scan() it")
    if not stat.S_ISREG(mode):
        raise FileFormatError(f"{path}: is a pipe or device, not a file")
    return descriptor


def cannot_open(path: str, error: OSError | ValueError) -> FretsawError:
    """The error for a path that the system refuses, be it of a file or of a folder."""
    if isinstance(error, ValueError):  # a null character, or what is no text
        return SourceNotFoundError(f"{path!r}: no path can be like this; check it")
    match error.errno:
        case errno.ENOENT:
            return SourceNotFoundError(f"{path}: no such file; check the path")
        case errno.ENOTDIR:
            return SourceNotFoundError(f"{path}: leads through a file, not a folder; check it")
        case errno.ELOOP:
            return SourceNotFoundError(f"{path}: its links lead in circles; mend them")
        case errno.ENAMETOOLONG:
            return SourceNotFoundError(f"{path}: the path is too long; check it")
        case errno.EACCES | errno.EPERM:
            return StorageError(f"{path}: you may not read it; ask for the permission")
        case errno.EMFILE | errno.ENFILE:
            return StorageError(f"{path}: too many files are open; close some, or raise the limit")
    return StorageError(f"{path}: {error.strerror}; check the disk, and read it again")


def _duplicate(file: BinaryIO) -> _Descriptor | None:
    """A descriptor of our own for what is a file of the system and nothing else."""
    raw = file.raw if type(file) is io.BufferedReader else file
    if type(raw) is not io.FileIO:
        return None
    descriptor = _Descriptor(os.dup(raw.fileno()))
    return descriptor if stat.S_ISREG(os.fstat(descriptor.number).st_mode) else None


def _require_binary(file: BinaryIO, name: str) -> None:
    """A file object that cannot be read from is refused before it fails in its own way."""
    _require_open(file, name)
    if isinstance(cast(object, file), io.TextIOBase):
        raise _opened_as_text(name)
    if not _can(file, "readable"):
        raise FretsawError(f'{name}: is not opened for reading; open it with mode "rb"')
    if not _can(file, "seekable"):
        raise FretsawError(f"{name}: cannot seek; give its bytes, or copy it into a file")


def _opened_as_text(name: str) -> FretsawError:
    return FretsawError(f'{name}: is opened as text; open it with mode "rb"')


def _require_open(file: BinaryIO, name: str) -> None:
    if getattr(file, "closed", False) is True:
        raise FretsawError(f"{name}: the file object is closed; open it again, or scan its path")


def _can(file: BinaryIO, what: str) -> bool:
    """What a file object says that it can do; one that says nothing is believed to."""
    says = getattr(file, what, None)
    return not callable(says) or says() is not False


def _is_settled(status: os.stat_result) -> bool:
    """Whether a change of the file would show: one within the same moment may not."""
    return time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) >= SETTLED_NS


@cache
def _machine() -> str:
    """What tells this machine from others, as far as they share files."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return platform.node()


_WHILE_READ = "while it was read; read it again once nobody writes to it"


def _changed(name: str, when: str) -> StorageError:
    return StorageError(f"{name}: the file changed {when}")


def is_file_object(origin: object) -> bool:
    """Whether the origin is an open file, which can be neither reopened nor pickled."""
    return hasattr(origin, "read") and hasattr(origin, "seek")


def absolute(origin: Origin) -> Origin:
    """The origin with its path made absolute: a scan means the same wherever it is run later."""
    if isinstance(origin, str | os.PathLike):
        return os.path.abspath(_local_path(os.fspath(origin)))
    if isinstance(origin, bytes | bytearray | memoryview) or is_file_object(origin):
        return origin
    if hasattr(origin, "read"):
        raise FretsawError(f"{source_name(origin)}: cannot seek; give its bytes, or a binary file")
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


def open_source(origin: Origin, expected: Identity | None = None) -> Source:
    """The source for an absolute path, bytes or a file object.

    A path must be that of the file that is `expected`, if any is.
    """
    if isinstance(origin, str | os.PathLike):
        return LocalFile(os.fspath(origin), expected)
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
