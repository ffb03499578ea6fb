"""Seekable binary file objects: one lock for one object, whoever reads it."""

import io
import weakref
from collections.abc import Sequence
from typing import BinaryIO, cast

import pyarrow as pa

from fretsaw.errors import FretsawError
from fretsaw.model.locks import Lock
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.descriptor import WHILE_READ, changed, duplicate, read_ranges
from fretsaw.storage.source import Identity, Near, Range, source_name


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


class FileObject(Near):
    """A seekable binary file object; it stays the user's to close."""

    identity: Identity | None = None
    is_settled = False

    def __init__(self, file: BinaryIO) -> None:
        self.closed = False
        self.name = source_name(file)
        _require_binary(file, self.name)
        self._shared = _share(file)
        # A forked child shares the position of a file of the system: these are read without it.
        self._descriptor = duplicate(file)
        if self._descriptor is not None:
            self._opened_as = Identity.of(self._descriptor.status)
            self.size = self._opened_as.size
            return
        with self._shared.lock:
            self.size = file.seek(0, io.SEEK_END)

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        if self._descriptor is not None:
            number = self._descriptor.number
            return read_ranges(self.name, number, self._opened_as, ranges, allocate)
        with self._shared.lock:
            return [self._read(offset, length) for offset, length in ranges]

    def _read(self, offset: int, length: int) -> pa.Buffer:
        file = self._shared.file
        _require_open(file, self.name)
        file.seek(offset)
        data = file.read(length)
        if not isinstance(data, bytes):
            raise _opened_as_text(self.name)
        while len(data) < length:
            more = file.read(length - len(data))
            if not more:
                raise changed(self.name, WHILE_READ)
            data += more
        return pa.py_buffer(data)

    def close(self) -> None:
        self.closed = True


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
