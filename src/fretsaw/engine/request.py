"""A scan as the engine takes it: sources, options and query, before any file is opened.

Plain values that travel: a part of a scan is the same request with one file of its own, the columns
that the whole scan settled, and the blocks that were planned for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fretsaw.engine.query import Query
from fretsaw.formats.interface import ReadOptions
from fretsaw.model.selection import RowSelection
from fretsaw.storage.hive import Hive
from fretsaw.storage.listing import Listing, list_sources, picklable
from fretsaw.storage.location import Access, Location
from fretsaw.storage.origins import is_file_object
from fretsaw.storage.source import Origin

if TYPE_CHECKING:
    from fretsaw.engine.files import OpenFile
    from fretsaw.engine.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class PlannedBlock:
    """What the indexes left of a block when it was planned elsewhere."""

    ordinal: int
    rows: RowSelection
    """The rows that may match."""
    certain: RowSelection
    """Those of them that surely do."""


@dataclass(frozen=True, slots=True, eq=False)
class ScanRequest:
    """What to read, and of what."""

    sources: tuple[Origin, ...] | Listing
    options: ReadOptions
    query: Query = field(default_factory=Query)
    missing_is_null: bool = False
    """Whether a column that a file lacks is null there."""
    widens_types: bool = False
    """Whether a column that files store in several types has one that holds them all."""
    skips_corrupt: bool = False
    """Whether files that cannot be read are left out."""
    hive: Hive = True
    """Which folders are columns."""
    target: "Target | None" = None
    """The columns of the scan that this is a part of."""
    planned: tuple[PlannedBlock, ...] | None = None
    """The blocks that are left of the one file of a part."""
    opened: "OpenFile | None" = None
    """The file, where it is open already."""

    def listing(self) -> Listing:
        """The files; directories are walked and globs matched anew each time."""
        if isinstance(self.sources, Listing):
            return self.sources
        return list_sources(self.sources, self.hive)

    @property
    def origins(self) -> Sequence[Origin]:
        """What is read, or is looked for files."""
        if isinstance(self.sources, Listing):
            return [entry.origin for entry in self.sources.entries]
        return self.sources

    @property
    def access(self) -> Access | None:
        """How its URLs are reached, if it has any."""
        remote = (origin.access for origin in self.origins if isinstance(origin, Location))
        return next(remote, None)

    def picklable(self) -> "ScanRequest":
        """The same without anything that belongs to this process."""
        if any(map(is_file_object, self.origins)):
            raise TypeError("a scan of an open file cannot be pickled: scan its path or its bytes")
        sources = self.sources
        if isinstance(sources, Listing):
            entries = (replace(e, origin=picklable(e.origin)) for e in sources.entries)
            return replace(self, sources=replace(sources, entries=tuple(entries)), opened=None)
        return replace(self, sources=tuple(map(picklable, sources)), opened=None)

    def of_files(self, listing: Listing, target: "Target | None") -> "ScanRequest":
        """The same of some of its files, with the columns of all once they are settled."""
        return replace(self, sources=listing, target=target, planned=None, opened=None)
