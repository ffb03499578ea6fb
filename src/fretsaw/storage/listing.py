"""From what a user names to the files of a scan, in order.

A path, a directory, a glob, bytes, a file object, or any iterable of these goes in; a `Listing` of
entries comes out, with the columns that Hive folders (`key=value`) make. No file is opened.
"""

import fnmatch
import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import TypeAlias, cast, overload

import pyarrow as pa

from fretsaw.errors import ColumnNotFoundError, SchemaMismatchError, SourceNotFoundError
from fretsaw.model.locks import Lock, importing
from fretsaw.storage.descriptor import cannot_open
from fretsaw.storage.hive import Hive, common_type, folder_values, folders_of, require_type
from fretsaw.storage.location import Access, Location, locate
from fretsaw.storage.origins import absolute, is_file_object
from fretsaw.storage.source import Identity, Origin, Version, source_name

_LOOKED_AT = 1000
"""Remote files that are looked at to find out whether folders are columns."""

Sources: TypeAlias = Origin | pa.Buffer | Iterable[Origin | pa.Buffer]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a scan."""

    origin: Origin
    partitions: tuple[tuple[str, str | None], ...] = ()
    """Keys and values of the Hive folders that it lies in."""
    found_in: str | None = None
    """The directory or glob that it was found in, where other files are passed over."""
    first_row: int | None = None
    """Its first row in the whole scan, where that is settled already."""
    identity: Identity | Version | None = None
    """Which file was planned with: no other one is read in its place."""


class Entries(Sequence[Entry]):
    """The files of a scan, listed as far as somebody looks at them."""

    def __init__(self, found: Iterable[Entry]) -> None:
        self._found = iter(found)
        self._known: list[Entry] = []
        self._lock = Lock()

    def has(self, position: int) -> bool:
        """Whether there are more files than so many."""
        with self._lock:
            self._known += islice(self._found, max(0, position + 1 - len(self._known)))
        return position < len(self._known)

    def first(self, count: int) -> list[Entry]:
        """So many files, or all if there are fewer."""
        self.has(count - 1)
        return self._known[:count]

    def __len__(self) -> int:
        self.has(sys.maxsize - 1)
        return len(self._known)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(at, slice):
            if at.stop is None and at.step is None and (at.start or 0) >= 0:
                return Entries(islice(iter(self), at.start or 0, None))
            return self._known[at] if len(self) else ()
        if at < 0:
            return self._known[at + len(self)]
        if not self.has(at):
            raise IndexError(at)
        return self._known[at]

    def __reduce__(self) -> tuple[type[tuple[Entry, ...]], tuple[list[Entry]]]:
        return tuple, (list(self),)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a scan, and the columns that their folders add."""

    name: str
    entries: Sequence[Entry]
    partitions: pa.Schema
    several: bool
    """Whether the scan is of more than one file."""
    is_split: bool = False
    """Whether this is only a part of the scan."""

    def constants(self, entry: Entry) -> dict[str, pa.Scalar]:
        """The values of an entry's folders, as the listing types them."""
        if not self.partitions.names:
            return {}
        values = dict(entry.partitions)
        return {
            field.name: folder_values([values.get(field.name)], field.type)[0]
            for field in self.partitions
        }

    def folder_values(self, name: str) -> pa.ChunkedArray:
        """The value of a folder's key for each entry."""
        values = [dict(entry.partitions).get(name) for entry in self.entries]
        return pa.chunked_array([folder_values(values, self.partitions.field(name).type)])

    def paths(self) -> pa.ChunkedArray:
        """What messages call each entry, and `with_file_path` shows of it."""
        return pa.chunked_array([[source_name(e.origin) for e in self.entries]], pa.string())

    def only(self, entry: Entry, first_row: int | None) -> "Listing":
        """This listing with one of its files, which begins at a row of the whole scan, if known."""
        return replace(self, entries=(replace(entry, first_row=first_row),), is_split=True)


def list_sources(origins: Sequence[Origin], hive: Hive = True) -> Listing:
    """The files that were named, in the order given; directories and globs sorted.

    `hive` says whether folders are columns, or which of them and of what types.
    """
    found: Iterator[Entry] = (entry for origin in origins for entry in _entries(origin))
    name = names_of(origins)
    if any(isinstance(origin, Location) for origin in origins):
        known = Entries(found)
        # As long as no folder is a column, nobody need know of all files.
        if hive is True and not any(one.partitions for one in known.first(_LOOKED_AT)):
            rest = (_without_folders(entry) for entry in known)
            return Listing(name, Entries(rest), pa.schema([]), known.has(1))
        if hive is False:
            plain = Entries(replace(entry, partitions=()) for entry in known)
            return Listing(name, plain, pa.schema([]), known.has(1))
        found = iter(known)
    entries = tuple(found)
    several = len(entries) > 1
    if hive is False:
        entries = tuple(replace(entry, partitions=()) for entry in entries)
        return Listing(name, entries, pa.schema([]), several)
    keys = dict.fromkeys(key for entry in entries for key, _ in entry.partitions)
    if hive is True:
        types = {
            key: common_type(dict(entry.partitions).get(key) for entry in entries) for key in keys
        }
        return Listing(name, entries, pa.schema(types), several)
    for key, kind in hive.items():
        if key not in keys:
            raise ColumnNotFoundError.among(key, keys, f"{name} (its folders)")
        values = dict.fromkeys(dict(entry.partitions).get(key) for entry in entries)
        require_type(list(values), key, kind, name)
    return Listing(name, entries, pa.schema(dict(hive)), several)


def _without_folders(entry: Entry) -> Entry:
    """A file of a scan whose first files lie in no folder that is a column; nor may this one."""
    if entry.partitions:
        raise SchemaMismatchError(
            f"{source_name(entry.origin)}: lies in a folder {entry.partitions[0][0]}=..., and the "
            f"first {_LOOKED_AT} files do not; say what folders are in fs.scan(..., hive=...), "
            "False or types by names"
        )
    return entry


def nothing_in(name: str) -> SourceNotFoundError:
    """The error for a directory or glob without a file to read."""
    return SourceNotFoundError(
        f"{name}: no Parquet or ORC file in it (names that begin with _ or . are left out); "
        "check the path"
    )


def origins_of(sources: Sources, access: Access | None = None) -> tuple[Origin, ...]:
    """What was named, one by one, with paths made absolute and URLs as `access` reaches them."""
    is_one = isinstance(sources, str | os.PathLike) or is_file_object(sources)
    is_one = is_one or _is_buffer(sources) or not isinstance(sources, Iterable)
    given = [sources] if is_one else list(cast(Iterable[object], sources))
    if not given:
        raise SourceNotFoundError("no sources were given: name at least one file")
    return tuple(origin_of(source, access) for source in given)


def origin_of(source: object, access: Access | None = None) -> Origin:
    """One source, with its path made absolute; a buffer of any kind as a view of its bytes."""
    is_known = isinstance(source, bytes | bytearray) or is_file_object(source)
    if not is_known and _is_buffer(source):
        return memoryview(source)  # type: ignore[arg-type]
    if isinstance(source, str) and not source:
        raise SourceNotFoundError('a source is a path, not empty text; "." is this folder')
    return absolute(cast(Origin, source), access)


def _is_buffer(source: object) -> bool:
    """Whether it has bytes to hand out, by the buffer protocol."""
    try:
        return memoryview(source).itemsize == 1  # type: ignore[arg-type]
    except TypeError:
        return False


def picklable(origin: Origin) -> Origin:
    """The origin as one that can be pickled; bytes that may change are copied."""
    return bytes(origin) if isinstance(origin, bytearray | memoryview) else origin


def names_of(origins: Sequence[Origin]) -> str:
    """What messages call the sources."""
    return ", ".join(map(source_name, origins[:3])) + (", ..." if len(origins) > 3 else "")


def _entries(origin: Origin) -> Iterator[Entry]:
    """The files that one origin names, in order."""
    if isinstance(origin, Location):
        yield from _remote_entries(origin)
        return
    if not isinstance(origin, str):
        yield Entry(origin)
        return
    if os.path.isdir(origin):
        root, paths = origin, list(_below(origin, set()))
    elif os.path.lexists(origin) or not _is_pattern(origin):
        yield Entry(origin)
        return
    else:
        root = folder_of(origin)
        paths = list(_matching(origin, root))
    if not paths:
        raise nothing_in(origin)
    for path in paths:
        yield Entry(path, folders_of(path, root), found_in=origin)


def _remote_entries(location: Location) -> Iterator[Entry]:
    """The files that a URL names, with their versions."""
    with importing:
        from fretsaw.storage.remote_listing import find_files, find_one
    if location.is_http:
        for url in alternatives(location.target):
            yield Entry(locate(url, location.access))
        return
    if not _is_pattern(location.target):
        found = find_one(location)
        if found is not None:
            yield Entry(location, identity=found)
            return
        root, steps = location, ["**"]
    else:
        root = location.folder(folder_of(location.target))
        steps = []
    patterns = [
        alternative[len(root.target) :].strip("/").split("/")
        for alternative in alternatives(location.target)
    ]
    is_empty = True
    for path, version in find_files(root):
        names = path.split("/")
        if any(name.startswith(("_", ".")) for name in names):
            continue
        if not steps and not any(_match_folder(names, pattern) for pattern in patterns):
            continue
        file = root.file(path)
        is_empty = False
        yield Entry(file, folders_of(file.url, root.url), location.url, identity=version)
    if is_empty:
        raise nothing_in(location.url)


def _match_folder(names: Sequence[str], steps: Sequence[str]) -> bool:
    """Whether a file, or a folder that it lies in, has the names of a glob."""
    return any(_match(names[:count], steps) for count in range(1, len(names) + 1))


Folders: TypeAlias = set[tuple[int, int]]
"""Devices and inodes of folders that were walked: links may lead back to them."""


def _below(folder: str, walked: Folders) -> Iterator[str]:
    """All files below a directory, sorted; hidden ones, by `_` or `.`, are left out.

    Each real folder is walked once, however many links lead to it.
    """
    try:
        status = os.stat(folder)
        with os.scandir(folder) as found:
            entries = sorted(found, key=attrgetter("name"))
    except OSError as error:
        raise cannot_open(folder, error) from None
    if (status.st_dev, status.st_ino) in walked:
        return
    walked.add((status.st_dev, status.st_ino))
    for entry in entries:
        if entry.name.startswith(("_", ".")):
            continue
        # Only what a link leads to is asked for: the folder says what all others are.
        is_folder = os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()
        if is_folder:
            yield from _below(entry.path, walked)
        else:
            yield entry.path


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _is_pattern(text: str) -> bool:
    return glob.has_magic(text) or _BRACES.search(text) is not None


def folder_of(pattern: str) -> str:
    """The folder below which a glob looks."""
    return os.path.dirname(re.split(r"[*?\[]|\{[^{}]*,", pattern, maxsplit=1)[0])


def alternatives(pattern: str) -> list[str]:
    """The globs that one with `{a,b}` stands for.

    >>> alternatives("{2023,2024}/*.{parquet,orc}")
    ['2023/*.parquet', '2023/*.orc', '2024/*.parquet', '2024/*.orc']
    """
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    before, behind = pattern[: found.start()], pattern[found.end() :]
    return [
        alternative
        for part in found[1].split(",")
        for alternative in alternatives(before + part + behind)
    ]


def _matching(pattern: str, root: str) -> Iterator[str]:
    """All files that match a glob, and those below the directories that do, sorted."""
    found: set[str] = set()
    for alternative in alternatives(pattern):
        is_recursive = "**" in alternative
        found.update(_matching_below(alternative, root) if is_recursive else glob.glob(alternative))
    walked: Folders = set()
    for path in sorted(found):
        if _is_hidden(path, root):
            continue
        if not os.path.isdir(path):
            yield path
        else:
            yield from _below(path, walked)


def _matching_below(pattern: str, root: str) -> Iterator[str]:
    """The files that match a glob with `**`, which stands for any number of folders."""
    start = pattern.partition("**")[0].rpartition(os.sep)[0]
    steps = pattern[len(start) + 1 :].split(os.sep)
    walked: Folders = set()
    for folder in sorted(glob.glob(start or os.sep)):
        if os.path.isdir(folder) and not _is_hidden(folder, root):
            for path in _below(folder, walked):
                names = path[len(folder.rstrip(os.sep)) + 1 :].split(os.sep)
                if _match(names, steps):
                    yield path


def _match(names: Sequence[str], steps: Sequence[str]) -> bool:
    """Whether the names of a path are those of a glob."""
    if not steps:
        return not names
    if steps[0] == "**":
        return _match(names, steps[1:]) or (bool(names) and _match(names[1:], steps))
    return bool(names) and fnmatch.fnmatchcase(names[0], steps[0]) and _match(names[1:], steps[1:])


def _is_hidden(path: str, root: str) -> bool:
    return any(name.startswith(("_", ".")) for name in path[len(root) :].split(os.sep))
