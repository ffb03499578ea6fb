"""From a query and what files say about themselves to what is read: plain data, no I/O.

`block_rows` applies the positional controls to the blocks of a file, `divide` cuts the rows of a
block into pieces that fit into memory, and `Plan` says what is kept and what is dropped by what.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fretsaw.engine.query import Query, Window
from fretsaw.model.blocks import Block, PageIndex
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import Pruned, Why


@dataclass(frozen=True, slots=True, eq=False)
class BlockRows:
    """A block, and the rows of it that are read."""

    block: Block
    rows: RowSelection


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """The blocks of a file that are read, and how many were dropped by what."""

    kept: tuple[BlockRows, ...]
    dropped: dict[str, int]

    @property
    def selected_count(self) -> int:
        """How many rows are read."""
        return sum(part.rows.selected_count for part in self.kept)


def file_rows(
    blocks: Sequence[Block], first_row: int, query: Query, window: Window
) -> tuple[FileRows, Window]:
    """Apply block predicate, row selection and window to a file that begins at `first_row`.

    Gives the window that is left for the files that follow, too.
    """
    total = sum(block.num_rows for block in blocks)
    skip = (window.skip or 0) - total
    if query.selects_all and skip >= 0 < total:  # there may be thousands of such files
        return FileRows((), {"window": len(blocks)}), replace(window, skip=skip)
    dropped: dict[str, int] = {}
    kept = [block for block in blocks if block.num_rows]
    _note(dropped, "empty", len(blocks), len(kept))
    if query.rows is None and query.block_predicate is None and not window:
        whole = (BlockRows(block, RowSelection.all(block.num_rows)) for block in kept)
        return FileRows(tuple(whole), dropped), window
    rows = query.rows_between(first_row, first_row + total)
    if query.block_predicate is not None:
        before, predicate = len(kept), query.block_predicate
        kept = [block for block in kept if predicate.keeps(block)]
        _note(dropped, "block predicate", before, len(kept))
        spans = [(block.first_row, block.first_row + block.num_rows) for block in kept]
        rows = rows.intersection(RowSelection.from_ranges(spans, total))
    if query.rows is not None:
        selected = _overlapping(kept, rows)
        _note(dropped, "row selection", len(kept), len(selected))
        kept = selected
    if window:
        rows, window = window.apply(rows)
        selected = _overlapping(kept, rows)
        _note(dropped, "window", len(kept), len(selected))
        kept = selected
    cut = [
        BlockRows(block, rows.slice(block.first_row, block.first_row + block.num_rows))
        for block in kept
    ]
    return FileRows(tuple(cut), dropped), window


def _note(dropped: dict[str, int], source: str, before: int, after: int) -> None:
    if before > after:
        dropped[source] = before - after


def _overlapping(blocks: Sequence[Block], rows: RowSelection) -> list[Block]:
    """The blocks that hold a selected row."""
    first = np.array([block.first_row for block in blocks], dtype=np.int64)
    end = first + np.array([block.num_rows for block in blocks], dtype=np.int64)
    hit = np.searchsorted(rows.ends, first, "right") < np.searchsorted(rows.starts, end, "left")
    return [block for block, keep in zip(blocks, hit.tolist(), strict=True) if keep]


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
class BlockPlan:
    """What is read of one block: pages and bytes are those of the columns that are read."""

    file: str
    ordinal: int
    rows: Amount
    pages: Amount
    bytes: Amount


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What is read of one file; `rows` and `bytes` are all that there are."""

    blocks: list[BlockPlan]
    dropped: dict[str, int]
    rows: int
    bytes: int
    proven: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan will read, and why not the rest."""

    files: tuple[str, ...]
    """What of a directory is neither Parquet nor ORC is left out, as far as it was looked at."""
    columns: tuple[str, ...]
    blocks: tuple[BlockPlan, ...]
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
    planning_bytes: dict[Why, int] = field(default_factory=dict)
    """What is read besides these pages, to plan: bytes of footers, indexes, Bloom filters and
    dictionaries."""

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


def block_plan(file: str, selected: BlockRows, pages: Sequence[PageIndex]) -> BlockPlan:
    """What is read of a block, given the pages of the projected leaves."""
    rows = selected.rows
    hits = [index.overlapping(rows.starts, rows.ends) for index in pages]
    kept = list(zip(pages, hits, strict=True))
    return BlockPlan(
        file=file,
        ordinal=selected.block.ordinal,
        rows=Amount(selected.block.num_rows, rows.selected_count),
        pages=Amount(sum(map(len, hits)), sum(int(hit.sum()) for hit in hits)),
        bytes=Amount(
            sum(index.dictionary_size + int(index.sizes.sum()) for index in pages),
            sum(index.dictionary_size + int(index.sizes[hit].sum()) for index, hit in kept),
        ),
    )
