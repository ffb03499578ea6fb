"""Open descriptors, which live as long as anybody reads, and the errors of files that change."""

import errno
import io
import os
import stat
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO

import pyarrow as pa

from fretsaw.errors import FileFormatError, FretsawError, SourceNotFoundError, StorageError
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.source import Identity, Range

SETTLED_NS = 2_000_000_000
"""A file that changed less than this ago may change once more without a newer time."""


class Descriptor:
    """An open file of the system, closed when nobody refers to it any more.

    Whoever reads refers to it, so that its number cannot become that of another file meanwhile.
    """

    __slots__ = ("number", "status")

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = os.fstat(number)
        """What the file was when it was opened."""

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


def read_ranges(
    name: str, number: int, before: Identity, ranges: Sequence[Range], allocate: Allocate
) -> list[pa.Buffer]:
    """Bytes of an open file of the system, which must still be what it was."""
    # Not through a memory map: a file that is truncated meanwhile would kill the process.
    buffers = []
    at = missing = 0
    try:
        for at, length in ranges:
            buffer = allocate(length)
            buffers.append(buffer)
            done = count = os.preadv(number, [buffer], at)
            while count and done < length:
                count = os.preadv(number, [memoryview(buffer)[done:]], at + done)
                done += count
            missing += length - done
        status = os.fstat(number)
    except OSError as error:
        raise StorageError(
            f"{name}: {error.strerror} (at byte {at}); check the disk, and read it again"
        ) from error
    # Not the time of its inode: that of a file which was only replaced is another one too.
    if missing or (status.st_size, status.st_mtime_ns) != (before.size, before.modified):
        raise changed(name, WHILE_READ)
    return buffers


def open_path(path: str) -> Descriptor:
    """A file of the system, open to be read."""
    try:
        # Without O_NONBLOCK a named pipe would wait for its writer.
        descriptor = Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except (OSError, ValueError) as error:
        raise cannot_open(path, error) from None
    mode = descriptor.status.st_mode
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


def duplicate(file: BinaryIO) -> Descriptor | None:
    """A descriptor of our own for what is a file of the system and nothing else."""
    raw = file.raw if type(file) is io.BufferedReader else file
    if type(raw) is not io.FileIO:
        return None
    descriptor = Descriptor(os.dup(raw.fileno()))
    return descriptor if stat.S_ISREG(descriptor.status.st_mode) else None


def is_settled(status: os.stat_result) -> bool:
    """Whether a change of the file would show: one within the same moment may not."""
    return time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) >= SETTLED_NS


WHILE_READ = "while it was read; read it again once nobody writes to it"


def changed(name: str, when: str) -> StorageError:
    """The error for a file that is not what it was."""
    return StorageError(f"{name}: the file changed {when}")
