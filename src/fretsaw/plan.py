"""From a query and what files say about themselves to what is read: plain data, no I/O.

`block_rows` applies the positional controls to the blocks of a file, `divide` cuts the rows of a
block into pieces that fit into memory, and `Plan` says what is kept and what is dropped by what.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fretsaw.layout import Block, BlockPredicate, Int64s, PageIndex
from fretsaw.selection import RowSelection

PIECE_BYTES = 32 << 20
"""How large a piece may become once it is decoded, roughly."""


@dataclass(frozen=True, slots=True)
class Window:
    """`skip`, `head` and `tail`: positions in the result set."""

    skip: int | None = None
    head: int | None = None
    tail: int | None = None

    def __bool__(self) -> bool:
        return self != Window()

    def apply(self, rows: RowSelection) -> RowSelection:
        """The selected rows inside the window."""
        if self.tail is not None:
            return rows.last(self.tail)
        if self.skip:
            rows = rows.offset(self.skip)
        return rows if self.head is None else rows.limit(self.head)

    def __str__(self) -> str:
        parts = [("skip", self.skip), ("head", self.head), ("tail", self.tail)]
        return ", ".join(f"{name} {count:,}" for name, count in parts if count is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What a scan asks for, before any file is opened."""

    columns: tuple[str | tuple[str, ...], ...] | None = None
    block_predicate: BlockPredicate | None = None
    rows: RowSelection | Int64s | None = None
    window: Window = field(default_factory=Window)
    row_index: str | None = None

    def __str__(self) -> str:
        parts = []
        if self.columns is not None:
            parts.append(f"select {len(self.columns)}")
        if self.block_predicate is not None:
            parts.append(str(self.block_predicate))
        if self.rows is not None:
            parts.append("selected rows")
        if self.window:
            parts.append(str(self.window))
        return "".join(f", {part}" for part in parts)

    def physical_rows(self, total: int) -> RowSelection:
        """The rows named by `select_rows`, of `total` rows that there are."""
        if self.rows is None:
            return RowSelection.all(total)
        if not isinstance(self.rows, RowSelection):
            return RowSelection.from_indices(self.rows, total)
        missing = total - self.rows.row_count
        if missing < 0:
            raise ValueError(
                f"the selection is over {self.rows.row_count:,} rows, the data has {total:,}"
            )
        return self.rows.concat(RowSelection.none(missing)) if missing else self.rows


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


def file_rows(blocks: Sequence[Block], query: Query) -> FileRows:
    """Apply block predicate, row selection and window, in this order."""
    total = sum(block.num_rows for block in blocks)
    dropped: dict[str, int] = {}
    kept = [block for block in blocks if block.num_rows]
    _note(dropped, "empty", len(blocks), len(kept))
    rows = query.physical_rows(total)
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
    if query.window:
        rows = query.window.apply(rows)
        selected = _overlapping(kept, rows)
        _note(dropped, "window", len(kept), len(selected))
        kept = selected
    cut = [
        BlockRows(block, rows.slice(block.first_row, block.first_row + block.num_rows))
        for block in kept
    ]
    return FileRows(tuple(cut), dropped)


def _note(dropped: dict[str, int], source: str, before: int, after: int) -> None:
    if before > after:
        dropped[source] = before - after


def _overlapping(blocks: Sequence[Block], rows: RowSelection) -> list[Block]:
    """The blocks that hold a selected row."""
    first = np.array([block.first_row for block in blocks], dtype=np.int64)
    end = first + np.array([block.num_rows for block in blocks], dtype=np.int64)
    hit = np.searchsorted(rows.ends, first, "right") < np.searchsorted(rows.starts, end, "left")
    return [block for block, keep in zip(blocks, hit.tolist(), strict=True) if keep]


def fits_whole(rows: RowSelection, chunks: Sequence[PageIndex]) -> bool:
    """Whether all rows of a block are wanted and fit into one piece: then no index is needed."""
    if rows.skipped_count:
        return False
    return sum(chunk.width for chunk in chunks) * rows.row_count <= 2 * PIECE_BYTES


def divide(rows: RowSelection, pages: Sequence[PageIndex]) -> list[RowSelection]:
    """Divide the rows of a block into pieces that fit into memory.

    The cuts are made where they cost least: a page on both sides of a cut is decoded twice.
    """
    begin, end = int(rows.starts[0]), int(rows.ends[-1])
    density = rows.selected_count / (end - begin)
    widths = [index.width for index in pages]
    widest = max([sum(widths) * density, *widths], default=0)
    target = max(1, int(PIECE_BYTES / widest)) if widest else end - begin
    if end - begin <= 2 * target:
        return [rows]
    cuts, costs = _cheap_cuts(pages, begin, end)
    pieces = []
    while end - begin > 2 * target:
        far_enough = int(np.searchsorted(cuts, begin + target // 2, "right"))
        near = int(np.searchsorted(cuts, begin + target, "right"))
        if far_enough == len(cuts):
            break
        choice = far_enough
        if near > far_enough:
            cheapest = costs[far_enough:near][::-1].argmin()
            choice = near - 1 - int(cheapest)
        cut = int(cuts[choice])
        pieces.append(_between(rows, begin, cut))
        begin = cut
    pieces.append(_between(rows, begin, end))
    return [piece for piece in pieces if piece.selects_any()]


def _cheap_cuts(pages: Sequence[PageIndex], begin: int, end: int) -> tuple[Int64s, Int64s]:
    """Rows where a cut costs little, and how many bytes would be decoded twice there."""
    rows = np.unique(np.concatenate([index.boundaries for index in pages]))
    rows = rows[(rows > begin) & (rows < end)]
    costs = np.zeros(len(rows))
    for index in pages:
        page = np.searchsorted(index.boundaries, rows, "right") - 1
        inside = index.boundaries[page] != rows
        costs += inside * np.diff(index.boundaries, append=0)[page] * index.width
    cheap = costs <= PIECE_BYTES / 4
    return rows[cheap], costs[cheap].astype(np.int64)


def _between(rows: RowSelection, begin: int, end: int) -> RowSelection:
    return rows.intersection(RowSelection.from_ranges([(begin, end)], rows.row_count))


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
    """What is read of one block: pages and bytes are those of the projected columns."""

    file: str
    ordinal: int
    rows: Amount
    pages: Amount
    bytes: Amount


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan will read, and why not the rest."""

    files: tuple[str, ...]
    columns: tuple[str, ...]
    columns_total: int
    blocks: tuple[BlockPlan, ...]
    """The blocks that are read."""
    dropped: dict[str, int]
    """How many blocks were dropped by what."""
    rows: Amount
    bytes: Amount
    """Bytes of the projected columns, in all blocks and in the pages that are read."""
    window: str = ""

    @property
    def block_count(self) -> Amount:
        """How many blocks there are and how many are read."""
        kept = len(self.blocks)
        return Amount(kept + sum(self.dropped.values()), kept)

    @property
    def pages(self) -> Amount:
        """Pages of the projected columns in the blocks that are read."""
        return Amount(
            sum(block.pages.total for block in self.blocks),
            sum(block.pages.kept for block in self.blocks),
        )


def block_plan(file: str, selected: BlockRows, pages: Sequence[PageIndex]) -> BlockPlan:
    """What is read of a block, given the pages of the projected leaves."""
    rows = selected.rows
    hits = [index.overlapping(rows.starts, rows.ends) for index in pages]
    return BlockPlan(
        file=file,
        ordinal=selected.block.ordinal,
        rows=Amount(selected.block.num_rows, rows.selected_count),
        pages=Amount(sum(map(len, hits)), sum(int(hit.sum()) for hit in hits)),
        bytes=Amount(
            sum(int(index.sizes.sum()) for index in pages),
            sum(int(index.sizes[hit].sum()) for index, hit in zip(pages, hits, strict=True)),
        ),
    )
