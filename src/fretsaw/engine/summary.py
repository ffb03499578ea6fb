"""A plan in numbers: blocks, rows, pages and bytes, those that are read and what dropped others."""

from dataclasses import dataclass, field

from fretsaw.engine.plan_text import explain
from fretsaw.model.shown import html_table, listed, size
from fretsaw.model.trace import Pruned, Why


@dataclass(frozen=True, slots=True)
class Amount:
    """So many of something: of all there are, and of those that are read."""

    total: int
    kept: int

    @property
    def dropped(self) -> int:
        """How many are not read."""
        return self.total - self.kept


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """What is read of one block: pages and bytes are those of the columns that are read."""

    file: str
    ordinal: int
    rows: Amount
    pages: Amount
    bytes: Amount


@dataclass(frozen=True, slots=True)
class PartSummary:
    """A part of the condition, and what rules out where it cannot be true."""

    text: str
    proofs: tuple[tuple[str, str, int, int], ...]
    """For each source and level: how many are ruled out by this part alone, and of how many."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan will read, and why not the rest."""

    files: tuple[str, ...]
    """What of a directory is neither Parquet nor ORC is left out, as far as it was looked at."""
    columns: tuple[str, ...]
    blocks: tuple[BlockSummary, ...]
    """The blocks that are read."""
    dropped: dict[str, int]
    """How many blocks were dropped by what."""
    rows: Amount
    bytes: Amount
    """Bytes of the columns that are read, in the files that were opened and in the pages to read.

    Dictionaries are among them; they are read only for pages that use them. Under a predicate
    these are the pages that may hold a match: those without one are not read of other columns.
    """
    window: str = ""
    predicate: str = ""
    indexes: bool = True
    """Whether indexes are believed; without that, all that position leaves is tested."""
    files_opened: int = 1
    proven: int = 0
    """Of the rows kept, how many surely match: they are not evaluated."""
    pruned: tuple[Pruned, ...] = ()
    """What each source of proofs kept and dropped, of files, blocks and pages."""
    parts: tuple[PartSummary, ...] = ()
    """The parts of the condition, each with what it rules out."""
    planning_bytes: dict[Why, int] = field(default_factory=dict)
    """What is read besides these pages, to plan: bytes of footers, indexes, Bloom filters and
    dictionaries."""

    def __str__(self) -> str:
        return explain(self)

    def _repr_html_(self) -> str:
        amounts = {"blocks": self.block_count, "pages": self.pages, "rows": self.rows}
        read = [(name, f"{a.kept:,} of {a.total:,}") for name, a in amounts.items()]
        kept, total = size(self.bytes.kept), size(self.bytes.total)
        dropped = [(f"blocks dropped by {by}", f"{n:,}") for by, n in self.dropped.items()]
        asked = [("columns", listed(self.columns) or "only rows")]
        asked += [("filter", self.predicate)] if self.predicate else []
        asked += [("window", self.window)] if self.window else []
        rows = [*asked, *read, ("bytes", f"{kept} of {total}"), *dropped]
        return html_table(f"scan of {listed(self.files, 1)}", rows)

    @property
    def block_count(self) -> Amount:
        """How many blocks there are and how many are read."""
        kept = len(self.blocks)
        return Amount(kept + sum(self.dropped.values()), kept)

    @property
    def pages(self) -> Amount:
        """Pages of the columns that are read, those of the predicate too, in these blocks.

        Of a block that is read whole a column counts as one: no index is read for it.
        """
        return Amount(
            sum(block.pages.total for block in self.blocks),
            sum(block.pages.kept for block in self.blocks),
        )
