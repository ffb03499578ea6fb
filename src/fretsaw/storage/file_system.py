"""Files of every other protocol, read by `fsspec`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from fretsaw.errors import StorageError
from fretsaw.model.locks import importing
from fretsaw.storage.attempts import Missing, failure
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.descriptor import WHILE_READ, changed
from fretsaw.storage.location import Location
from fretsaw.storage.source import Near, Range, Version

_TAGS = ("ETag", "etag", "e_tag", "version_id", "generation", "sha256", "md5", "checksum")
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")


class FileSystemFile(Near):
    """A file of a file system of fsspec; `expected` is its version where that was planned.

    Raises `Missing` if there is none.
    """

    gap = 256 << 10
    data_gap = 64 << 10

    def __init__(self, location: Location, expected: Version | None = None) -> None:
        self.name = location.url
        self.closed = False
        self._system, self._path = system_of(location)
        self._version = self._told()
        self.identity: Version | None = self._version
        self.size = self._version.size
        self.is_settled = self._version.is_exact
        if expected is not None and not self._version.is_of(expected):
            raise changed(self.name, "since the scan was planned; plan it anew")

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        starts = [offset for offset, _ in ranges]
        ends = [offset + length for offset, length in ranges]
        try:
            with translated(self.name, f"{len(ranges)} ranges"):
                found = self._system.cat_ranges([self._path] * len(ranges), starts, ends)
            # Protocols have no common way to ask for a version: it is compared behind each read.
            version = self._told()
        except Missing:
            raise changed(self.name, "while it was read: it is gone; check the URL") from None
        is_whole = [len(data) for data in found] == [length for _, length in ranges]
        if not is_whole or not version.is_of(self._version):
            raise changed(self.name, WHILE_READ)
        return [pa.py_buffer(data) for data in found]

    def close(self) -> None:
        self.closed = True

    def _told(self) -> Version:
        with translated(self.name, "its size"):
            self._system.invalidate_cache(self._system._parent(self._path))
            told = self._system.info(self._path)
        if told.get("type") == "directory" or told.get("size") is None:
            raise Missing
        return version_told(told)


def version_told(told: dict[str, Any]) -> Version:
    """The version that a file system tells of a file."""
    tag = next((str(told[name]) for name in _TAGS if told.get(name)), None)
    modified = next((str(told[name]) for name in _TIMES if told.get(name)), None)
    return Version(int(told["size"]), tag, modified)


def system_of(location: Location) -> tuple[Any, str]:
    """The file system that a location is in, and its path there."""
    if location.access.store is not None:
        return location.access.store, location.target
    with importing:
        try:
            import fsspec
        except ImportError:
            raise StorageError(
                f"{location.url}: reading URLs needs fsspec; pip install 'fretsaw[remote]'"
            ) from None
    try:
        system, path = fsspec.core.url_to_fs(location.target, **location.access.options)
    except ImportError as error:
        raise StorageError(f"{location.url}: {error}") from None
    except Exception as error:
        known = location.scheme in fsspec.available_protocols()
        reason = f"its storage options cannot be used ({type(error).__name__}); check them"
        if not known:
            reason = f"{location.scheme} is no protocol that fsspec knows; check the URL"
        raise StorageError(f"{location.url}: {reason}") from None
    return system, path


@contextmanager
def translated(name: str, asked: str) -> Iterator[None]:
    """What a file system raises, as an error of ours that quotes none of its secrets."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise Missing from None
    except Missing:
        raise
    except PermissionError:
        raise failure(name, asked, "you may not read it; check the credentials") from None
    except Exception as error:
        number = getattr(error, "errno", None)
        shown = type(error).__name__ + (f" {number}" if number else "")
        raise failure(name, asked, f"{shown}; check the URL, the options and the network") from None
