"""A scan as the engine takes it: sources, options and query, before any file is opened.

Plain values that travel: a part of a scan is the same request with one file of its own, the columns
that the whole scan settled, and the blocks that were planned for it.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fretsaw.engine.query import Query
from fretsaw.formats.interface import ReadOptions
from fretsaw.model.selection import RowSelection
from fretsaw.storage.listing import Listing, list_sources
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
    target: "Target | None" = None
    """The columns of the scan that this is a part of."""
    planned: tuple[PlannedBlock, ...] | None = None
    """The blocks that are left of the one file of a part."""
    opened: "OpenFile | None" = None
    """The file, where it is open already."""

    def listing(self) -> Listing:
        """The files; directories are walked and globs matched anew each time."""
        return self.sources if isinstance(self.sources, Listing) else list_sources(self.sources)

    def of_files(self, listing: Listing, target: "Target | None") -> "ScanRequest":
        """The same of some of its files, with the columns of all once they are settled."""
        return replace(self, sources=listing, target=target, planned=None, opened=None)
