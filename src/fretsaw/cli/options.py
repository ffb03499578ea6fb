"""What a command asks for, and the scan that reads it."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fretsaw.scan import Scan, scan


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """Files, columns and rows, as options name them."""

    sources: Sequence[str]
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

    @property
    def has_window(self) -> bool:
        """Whether only so many rows are wanted."""
        return self.head is not None or self.tail is not None

    def scan(self) -> Scan:
        """The scan that reads this; no file is opened yet."""
        if "" in self.sources:
            raise ValueError("a source is the path of a file or directory, or a glob, not empty")
        asked = scan(list(self.sources), missing=self.missing, indexes=self.indexes)
        if self.columns is not None:
            asked = asked.select(*self.columns)
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


def column_names(lists: Sequence[str]) -> list[str] | None:
    """The names in lists such as `a,b.c`; one that has a comma itself goes in double quotes.

    >>> column_names(["id, address.city", '"last, first"'])
    ['id', 'address.city', 'last, first']
    >>> column_names([]) is None
    True
    """
    try:
        names = [name for row in csv.reader(lists, skipinitialspace=True) for name in row]
    except csv.Error:
        raise ValueError("--columns: names with commas between them, on one line") from None
    if "" in names or (lists and not names):
        raise ValueError("--columns: a name is empty; leave the option out for all columns")
    return [name.strip() for name in names] or None
