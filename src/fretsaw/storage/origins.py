"""From a path, bytes or a file object to the source that reads it."""

import os
from urllib.parse import unquote, urlsplit

from fretsaw.errors import FretsawError
from fretsaw.storage.file_object import FileObject
from fretsaw.storage.local import LocalFile
from fretsaw.storage.memory import MemoryFile
from fretsaw.storage.source import Identity, Origin, Source, source_name


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
