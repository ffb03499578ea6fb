"""Where a result may be written: a file or a directory that is complete or absent.

What is written goes into a hidden sibling, which takes the name when it is complete. A place that
the scan reads, or that its next run would find, is refused before anything is written.
"""

import io
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, TypeAlias, cast

from fretsaw.errors import FileFormatError, NotWritableError, SourceNotFoundError
from fretsaw.model.locks import importing
from fretsaw.storage.listing import Entry, alternatives, folder_of
from fretsaw.storage.location import Access, Location
from fretsaw.storage.origins import absolute, open_source
from fretsaw.storage.source import Origin, source_name

Pathlike: TypeAlias = str | os.PathLike[str]
Place: TypeAlias = str | Location
"""A real path, or a place in a store."""


def destination(
    path: Pathlike | Location, inputs: Iterable[Entry] = (), access: Access | None = None
) -> Place:
    """The place to write to, which is neither read by the scan nor found by its next run.

    `access` says how URLs are reached.
    """
    if not isinstance(path, str | os.PathLike | Location):
        raise TypeError(f"a result is written to a path, not to a {type(path).__name__}")
    named = absolute(path, access)
    if isinstance(named, Location):
        return _remote_destination(named, inputs)
    place = os.path.realpath(str(named))
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


def _remote_destination(place: Location, inputs: Iterable[Entry]) -> Location:
    with importing:
        from fretsaw.storage.uploads import require_writable
    require_writable(place)
    steps = place.url.rstrip("/").split("/")
    for entry in inputs:
        if source_name(entry.origin) == place.url:
            raise NotWritableError(f"{place.url}: is being read by the same scan; name another")
        patterns = [] if entry.found_in is None else alternatives(entry.found_in.rstrip("/"))
        if any(_matches(steps, pattern.split("/")) for pattern in patterns):
            raise NotWritableError(
                f"{place.url}: would be found in {entry.found_in}, which is being read, by its "
                "next scan; write to another folder"
            )
    return place


def require_absent(place: Place) -> None:
    """Refuse a place where there is a file already."""
    if isinstance(place, Location):
        try:
            open_source(place).close()
        except SourceNotFoundError:
            return
        except FileFormatError:  # it is there, whatever it is
            pass
    elif not os.path.isfile(place):
        return
    raise NotWritableError(
        f"{name_of(place)}: is there already; name another file, or replace it with overwrite=True"
    )


def file_object(target: Any, inputs: Iterable[Entry]) -> BinaryIO:
    """A binary file object to write to, which is none of the files that the scan reads."""
    if isinstance(target, io.TextIOBase):
        raise TypeError(f"{object_name(target)}: is opened for text; open it for bytes, with 'wb'")
    try:
        there = os.fstat(target.fileno())
    except (OSError, AttributeError, ValueError):  # no file of the system
        return cast(BinaryIO, target)
    if any(_is_file(entry.origin, there) for entry in inputs):
        name = object_name(target)
        raise NotWritableError(f"{name}: is being read by the same scan; write to another")
    return cast(BinaryIO, target)


def object_name(target: object) -> str:
    """What messages call a file object."""
    return str(getattr(target, "name", "a file object"))


def name_of(place: Place) -> str:
    """What messages call a place."""
    return source_name(place)


def part_of(folder: Place, name: str) -> Place:
    """A file in a folder."""
    return folder.file(name) if isinstance(folder, Location) else os.path.join(folder, name)


@contextmanager
def staged_file(place: Place) -> Iterator[str]:
    """A hidden file to write, which becomes the one at the place at the end of the block."""
    if isinstance(place, Location):
        with importing:
            from fretsaw.storage.uploads import upload
        with tempfile.TemporaryDirectory(prefix="fretsaw-") as folder:
            yield (path := os.path.join(folder, "file"))
            upload(path, place)
        return
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
def staged_directory(path: Pathlike | Location, overwrite: bool = False) -> Iterator[Place]:
    """A hidden directory to write files into, which becomes `path` at the end of the block.

    It is removed if the block fails. With `overwrite` it takes the place of one with files in it,
    which are then removed. In a store files cannot be renamed together: there the folder
    is written to as it is, and gets a file `_SUCCESS` at the end.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "parts")
    >>> with staged_directory(folder) as staging:
    ...     _ = pathlib.Path(str(staging), "part-0").write_text("data")
    ...     folder.exists()
    False
    >>> os.listdir(folder)
    ['part-0']
    """
    place = destination(path)
    if isinstance(place, Location):
        with _folder_in_store(place):
            yield place
        return
    if os.path.exists(place) and not os.path.isdir(place):
        raise NotWritableError(f"{place}: is a file; name a directory that is not there yet")
    if not overwrite and os.path.isdir(place) and os.listdir(place):
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
        if overwrite and os.path.isdir(place):
            _exchange(staging, place)
        else:
            os.rename(staging, place)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _exchange(staging: str, place: str) -> None:
    """Put a directory in the place of another, which is removed; or leave that where it is."""
    old = _sibling(place)
    os.rename(place, old)
    try:
        os.rename(staging, place)
    except BaseException:
        os.rename(old, place)
        raise
    shutil.rmtree(old)


@contextmanager
def _folder_in_store(folder: Location) -> Iterator[None]:
    with importing:
        from fretsaw.storage.uploads import is_empty, remove_below
    if not is_empty(folder):
        raise NotWritableError(
            f"{folder.url}: there are files in it already; remove them, or name another folder"
        )
    try:
        yield
        with staged_file(folder.file("_SUCCESS")) as path, open(path, "wb"):
            pass
    except BaseException:
        with suppress(Exception):  # the first error says what happened
            remove_below(folder)
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
