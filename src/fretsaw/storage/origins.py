"""From a path, a URL, bytes or a file object to the source that reads it."""

import os
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from fretsaw.errors import FretsawError
from fretsaw.model.locks import importing
from fretsaw.storage.file_object import FileObject
from fretsaw.storage.local import LocalFile
from fretsaw.storage.location import Access, Location, is_url, locate
from fretsaw.storage.memory import MemoryFile
from fretsaw.storage.source import Identity, Origin, Source, Version, source_name


def is_file_object(origin: object) -> bool:
    """Whether the origin is an open file, which can be neither reopened nor pickled."""
    return hasattr(origin, "read") and hasattr(origin, "seek")


def absolute(origin: Origin, access: Access | None = None) -> Origin:
    """The origin with its path made absolute: a scan means the same wherever it is run later.

    `access` says how URLs are reached; where a store was handed over, paths are paths in it.
    """
    if isinstance(origin, str | os.PathLike):
        text, is_text = os.fspath(origin), isinstance(origin, str)
        if is_text and (is_url(text) or (access is not None and access.store is not None)):
            return locate(text, access or Access())
        return os.path.abspath(_local_path(text))
    is_known = isinstance(origin, bytes | bytearray | memoryview | Location)
    if is_known or is_file_object(origin):
        return origin
    if hasattr(origin, "read"):
        raise FretsawError(f"{source_name(origin)}: cannot seek; give its bytes, or a binary file")
    raise TypeError(
        f"cannot read a {type(origin).__name__}: name a path, or give bytes or a binary file object"
    )


def open_source(origin: Origin, expected: Identity | Version | None = None) -> Source:
    """The source for an absolute path, a URL, bytes or a file object.

    A path or URL must be that of the file that is `expected`, if any is.
    """
    if isinstance(origin, Location):
        return _open_remote(origin, expected if isinstance(expected, Version) else None)
    if isinstance(origin, str | os.PathLike):
        known = expected if isinstance(expected, Identity) else None
        return LocalFile(os.fspath(origin), known)
    if isinstance(origin, bytes | bytearray | memoryview):
        return MemoryFile(origin)
    return FileObject(origin)


def announce(origin: Origin, version: Identity | Version | None) -> Callable[[], None]:
    """Have the end of a remote file on its way before it is opened; gives what calls that off."""
    if not isinstance(origin, Location) or not isinstance(version, Version):
        return _nothing
    source = _open_remote(origin, version)
    if not source.far:
        return _nothing
    source.begin_end()
    return source.forget_end


def _nothing() -> None:
    pass


def _open_remote(location: Location, expected: Version | None) -> Source:
    with importing:  # what reads from afar is imported when it is needed
        from fretsaw.storage.attempts import Missing, missing
        from fretsaw.storage.file_system import FileSystemFile
        from fretsaw.storage.remote import RemoteFile
        from fretsaw.storage.stores import is_for_obstore
    kind = RemoteFile if is_for_obstore(location) else FileSystemFile
    try:
        return kind(location, expected)
    except Missing:
        raise missing(location.url) from None


def _local_path(text: str) -> str:
    return unquote(urlsplit(text).path) if "://" in text else os.path.expanduser(text)
