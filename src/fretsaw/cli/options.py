"""What a command asks for, and the scan that reads it."""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fretsaw.scan import Scan, scan
from fretsaw.storage.listing import Entry, list_sources, origins_of
from fretsaw.storage.location import Access


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """Files, columns and rows, as options name them."""

    sources: Sequence[str | bytes]
    """Paths and URLs, and what came through standard input."""
    where: Sequence[str] = ()
    columns: Sequence[str] | None = None
    skip: int | None = None
    head: int | None = None
    tail: int | None = None
    missing: Literal["error", "null"] = "error"
    row_index: bool = False
    file_path: bool = False
    on_corrupt: Literal["error", "skip"] = "error"
    indexes: bool = True
    types: Literal["same", "widen"] = "same"
    hive: bool = True
    dropped: Sequence[str] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How URLs are reached."""
    timestamps: Literal["ns", "us"] = "ns"
    int96: Literal["ns", "us", "ms"] = "ns"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "CommandOptions":
        """What was given on the command line, by the names of these fields."""
        named = dict(given)
        sources = read_sources(named.pop("sources"))
        hive, indexes = not named.pop("no_hive"), not named.pop("no_indexes")
        return cls(sources, hive=hive, indexes=indexes, **named)

    @property
    def access(self) -> Access:
        """The same, as the storage takes it."""
        return Access.of(self.storage)

    def files(self) -> Sequence[Entry]:
        """The files that were named, in the order in which they are read."""
        return list_sources(origins_of(list(self.sources), self.access)).entries

    @property
    def has_window(self) -> bool:
        """Whether only so many rows are wanted."""
        return self.head is not None or self.tail is not None

    def scan(self) -> Scan:
        """The scan that reads this; no file is opened yet."""
        if "" in self.sources:
            raise ValueError("a source is the path of a file or directory, or a glob, not empty")
        asked = scan(
            list(self.sources),
            storage_options=self.storage,
            missing=self.missing,
            types=self.types,
            hive=self.hive,
            on_corrupt=self.on_corrupt,
            indexes=self.indexes,
            timestamps=self.timestamps,
            int96=self.int96,
        )
        if self.columns is not None:
            asked = asked.select(*self.columns)
        if self.dropped:
            asked = asked.drop(*self.dropped)
        if self.renamed:
            asked = asked.rename(self.renamed)
        for condition in self.where:
            asked = asked.filter(condition)
        if self.skip is not None:
            asked = asked.skip(self.skip)
        if self.head is not None:
            asked = asked.head(self.head)
        if self.tail is not None:
            asked = asked.tail(self.tail)
        if self.row_index:
            asked = asked.with_row_index()
        return asked.with_file_path() if self.file_path else asked

    def at_most(self, rows: int) -> "CommandOptions":
        """The same for so many of its first rows; a tail is found as a whole."""
        if self.tail is not None:
            return self
        return replace(self, head=rows if self.head is None else min(rows, self.head))


def read_sources(names: Sequence[str]) -> list[str | bytes]:
    """The sources by their names; `-` is all that comes through standard input."""
    if names.count("-") > 1:
        raise ValueError("standard input can be read once: name - once")
    if "-" in names and (sys.stdin is None or sys.stdin.isatty()):
        raise ValueError("there is no file on standard input: fretsaw ... - < FILE")
    return [sys.stdin.buffer.read() if name == "-" else name for name in names]


def new_names(pairs: Sequence[str]) -> dict[str, str]:
    """The names in pairs such as `old=new`.

    >>> new_names(["fare=price", "a=b=c"])
    {'fare': 'price', 'a': 'b=c'}
    """
    return _by_name(pairs, "--rename: a name, =, and the new one, as in fare=price")


def storage_options(pairs: Sequence[str]) -> dict[str, str]:
    """The options of a store in pairs such as `aws_region=eu-central-1`."""
    usage = "--storage-option: a name, =, and the value, as in aws_region=eu-central-1"
    return _by_name(pairs, usage)


def _by_name(pairs: Sequence[str], usage: str) -> dict[str, str]:
    divided = [pair.partition("=") for pair in pairs]
    if not all(name and value for name, _, value in divided):
        raise ValueError(usage)
    return {name: value for name, _, value in divided}


def column_names(lists: Sequence[str], option: str = "--columns") -> list[str] | None:
    """The names in lists such as `a,b.c`; one that has a comma itself goes in double quotes.

    >>> column_names(["id, address.city", '"last, first"'])
    ['id', 'address.city', 'last, first']
    >>> column_names([]) is None
    True
    """
    try:
        names = [name for row in csv.reader(lists, skipinitialspace=True) for name in row]
    except csv.Error:
        raise ValueError(f"{option}: names with commas between them, on one line") from None
    if "" in names or (lists and not names):
        raise ValueError(f"{option}: a name is empty; leave the option out for all columns")
    return [name.strip() for name in names] or None
