"""Where a result may be written: a file or a directory that is complete or absent.

What is written goes into a hidden sibling, which takes the name when it is complete. A place that
the scan reads, or that its next run would find, is refused before anything is written.
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import TypeAlias

from fretsaw.errors import NotWritableError
from fretsaw.storage.listing import Entry, alternatives, folder_of
from fretsaw.storage.location import Location
from fretsaw.storage.origins import absolute
from fretsaw.storage.source import Origin

Pathlike: TypeAlias = str | os.PathLike[str]


def destination(path: Pathlike, inputs: Iterable[Entry] = ()) -> str:
    """The real path to write to, which is neither read by the scan nor found by its next run."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a result is written to a path, not to a {type(path).__name__}")
    place = os.path.realpath(str(absolute(path)))
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise NotWritableError(f"{folder}: no such directory to write to; make it first")
    inputs = list(inputs)
    for found_in in dict.fromkeys(entry.found_in for entry in inputs):
        if found_in is not None and _finds(found_in, place):
            raise NotWritableError(
                f"{place}: would be found in {found_in}, which is being read, by its next scan; "
                "write to another directory"
            )
    with suppress(FileNotFoundError):
        there = os.stat(place)
        if any(_is_file(entry.origin, there) for entry in inputs):
            raise NotWritableError(
                f"{place}: is being read by the same scan; write to another path, then rename it"
            )
    return place


@contextmanager
def staged_file(place: str) -> Iterator[str]:
    """A hidden file to write, which becomes the one at the place at the end of the block."""
    staging = _sibling(place)
    try:
        os.close(os.open(staging, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield staging
        if os.path.exists(place):
            shutil.copymode(place, staging)
        _flush(staging)
        os.replace(staging, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(staging)
        raise


@contextmanager
def staged_directory(path: Pathlike) -> Iterator[str]:
    """A hidden directory to write files into, which becomes `path` at the end of the block.

    It is removed if the block fails.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "parts")
    >>> with staged_directory(folder) as staging:
    ...     _ = pathlib.Path(staging, "part-0").write_text("data")
    ...     folder.exists()
    False
    >>> os.listdir(folder)
    ['part-0']
    """
    place = destination(path)
    if os.path.exists(place) and not os.path.isdir(place):
        raise NotWritableError(f"{place}: is a file; name a directory that is not there yet")
    if os.path.isdir(place) and os.listdir(place):
        raise NotWritableError(
            f"{place}: there are files in it already; remove them, or name another directory"
        )
    staging = _sibling(place)
    try:
        os.mkdir(staging)
        yield staging
        for name in os.listdir(staging):
            if name.startswith("."):  # of a writer that was killed while others went on
                os.unlink(os.path.join(staging, name))
        os.rename(staging, place)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _sibling(place: str) -> str:
    """A new name that directory scans leave out, short enough whatever the place is called."""
    folder, name = os.path.split(place)
    return os.path.join(folder, f".{name[:50]}.{secrets.token_hex(6)}.tmp")


def _flush(path: str) -> None:
    """Have the bytes on the disk before the name says that they are there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _finds(found_in: str, place: str) -> bool:
    """Whether a scan of a directory or glob would find a file at the place."""
    if os.path.isdir(found_in):
        folder = os.path.realpath(found_in)
        return os.path.commonpath([folder, place]) == folder
    folder = folder_of(found_in)
    patterns = alternatives(os.path.realpath(folder) + found_in[len(folder) :])
    return any(_matches(place.split(os.sep), pattern.split(os.sep)) for pattern in patterns)


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a glob finds the path, or a directory that it lies in."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(path[start:], pattern[1:]) for start in range(len(path)))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def _is_file(origin: Origin, there: os.stat_result) -> bool:
    """Whether the origin is the file that is there, by whatever name."""
    with suppress(OSError, AttributeError, ValueError):  # gone, or not a file of the system
        if isinstance(origin, str | os.PathLike):
            return os.path.samestat(os.stat(origin), there)
        if not isinstance(origin, bytes | bytearray | memoryview | Location):
            return os.path.samestat(os.fstat(origin.fileno()), there)
    return False
