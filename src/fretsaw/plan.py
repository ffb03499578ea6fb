"""From a query and what files say about themselves to what is read: plain data, no I/O.

`block_rows` applies the positional controls to the blocks of a file, `divide` cuts the rows of a
block into pieces that fit into memory, and `Plan` says what is kept and what is dropped by what.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fretsaw.layout import Block, BlockPredicate, Int64s, PageIndex
from fretsaw.predicate import Predicate
from fretsaw.selection import RowSelection
from fretsaw.trace import Pruned, Why


@dataclass(frozen=True, slots=True)
class Window:
    """`skip`, `head` and `tail`: positions in the result set."""

    skip: int | None = None
    head: int | None = None
    tail: int | None = None

    def __bool__(self) -> bool:
        return self != Window()

    @property
    def is_over(self) -> bool:
        """Whether no row can follow."""
        return self.head == 0 or self.tail == 0

    @property
    def rows_needed(self) -> int | None:
        """How many rows of the result set the window still needs; None: all that there are."""
        if self.tail is not None:
            return self.tail
        return None if self.head is None else (self.skip or 0) + self.head

    def apply(self, rows: RowSelection) -> tuple[RowSelection, "Window"]:
        """The selected rows inside the window, and the window for the rows that follow.

        For a tail, what follows comes before: it is applied from the end.
        """
        if self.tail is not None:
            inside = rows.last(self.tail)
            return inside, Window(tail=self.tail - inside.selected_count)
        inside, skip, head = rows, self.skip, self.head
        if skip is not None:
            inside = inside.offset(skip)
            skip = max(0, skip - rows.selected_count)
        if head is not None:
            inside = inside.limit(head)
            head -= inside.selected_count
        return inside, Window(skip, head)

    def __str__(self) -> str:
        parts = [("skip", self.skip), ("head", self.head), ("tail", self.tail)]
        return ", ".join(f"{name} {count:,}" for name, count in parts if count is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What a scan asks for, before any file is opened."""

    columns: tuple[str | tuple[str, ...], ...] | None = None
    block_predicate: BlockPredicate | None = None
    predicate: Predicate | None = None
    rows: RowSelection | Int64s | None = None
    """A selection, or row numbers in order and without duplicates."""
    window: Window = field(default_factory=Window)
    row_index: str | None = None
    file_path: str | None = None

    def __str__(self) -> str:
        parts = []
        if self.columns is not None:
            parts.append(f"select {len(self.columns)}")
        if self.block_predicate is not None:
            parts.append(str(self.block_predicate))
        if self.predicate is not None:
            parts.append(repr(self.predicate))
        if self.rows is not None:
            parts.append("selected rows")
        if self.window:
            parts.append(str(self.window))
        return "".join(f", {part}" for part in parts)

    @property
    def selects_all(self) -> bool:
        """Whether only the window chooses among rows."""
        return self.rows is None and self.block_predicate is None and self.predicate is None

    @property
    def numbers_rows(self) -> bool:
        """Whether it matters where a file begins in the whole scan."""
        return self.rows is not None or self.row_index is not None

    @property
    def rows_needed(self) -> int:
        """How many rows the data must have for `select_rows` to make sense."""
        if self.rows is None:
            return 0
        if isinstance(self.rows, RowSelection):
            return self.rows.row_count
        return int(self.rows[-1]) + 1 if len(self.rows) else 0

    def require_rows(self, total: int) -> None:
        """Check `select_rows` against the rows that there are."""
        if isinstance(self.rows, RowSelection):
            if self.rows.row_count > total:
                raise ValueError(
                    f"the selection is over {self.rows.row_count} rows, the data has {total}"
                )
        elif self.rows is not None and len(self.rows):
            for number in (int(self.rows[0]), int(self.rows[-1])):
                if not 0 <= number < total:
                    raise ValueError(f"row {number} is not in the data, which has {total} rows")

    def rows_between(self, start: int, end: int) -> RowSelection:
        """What `select_rows` selects of the rows from `start` to `end`, counted from there."""
        if self.rows is None:
            return RowSelection.all(end - start)
        if isinstance(self.rows, RowSelection):
            begin, stop = (min(row, self.rows.row_count) for row in (start, end))
            behind = RowSelection.none(end - start - (stop - begin))
            return self.rows.slice(begin, stop).concat(behind)
        first, last = np.searchsorted(self.rows, [start, end])
        return RowSelection.from_indices(self.rows[first:last] - start, end - start)


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


def fits_whole(rows: RowSelection, chunks: Sequence[PageIndex], piece_bytes: int) -> bool:
    """Whether all rows of a block are wanted and fit into one piece: then no index is needed."""
    if rows.skipped_count:
        return False
    return sum(chunk.width for chunk in chunks) * rows.row_count <= 2 * piece_bytes


def decoded_bytes(
    rows: RowSelection, pages: Sequence[PageIndex], width: float | None = None
) -> float:
    """Memory that it takes, roughly: that of the rows, or of all pages of a leaf between them."""
    between = int(rows.ends[-1] - rows.starts[0])
    widths = [index.width for index in pages]
    return max((width or sum(widths)) * rows.selected_count, *(w * between for w in widths), 1)


def divide(
    rows: RowSelection, pages: Sequence[PageIndex], piece_bytes: int, width: float | None = None
) -> list[RowSelection]:
    """Divide the rows of a block into pieces of about so many bytes once they are decoded.

    The cuts are made where they cost least: a page on both sides of a cut is decoded twice. A row
    has the bytes of the pages' leaves, or `width` where others will be decoded too.
    """
    begin, end = int(rows.starts[0]), int(rows.ends[-1])
    target = max(1, int(piece_bytes * (end - begin) / decoded_bytes(rows, pages, width)))
    if end - begin <= 2 * target:
        return [rows]
    cuts, costs = _cheap_cuts(pages, begin, end, most=piece_bytes / 4)
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
        pieces.append(rows.between(begin, cut))
        begin = cut
    pieces.append(rows.between(begin, end))
    return [piece for piece in pieces if piece.selects_any()]


def ramp(
    rows: RowSelection, pages: Sequence[PageIndex], first: float, most: float, backward: bool
) -> Iterator[RowSelection]:
    """Divide the rows of a block where few of them may be enough: each piece twice the one before.

    The first has about `first` rows, none many more than `most`; cuts are made between pages.
    """
    begin, end = int(rows.starts[0]), int(rows.ends[-1])
    cuts = np.unique(np.concatenate([index.boundaries for index in pages]))
    cuts = cuts[(cuts > begin) & (cuts < end)]
    while begin < end:
        if backward:
            at = int(np.searchsorted(cuts, end - first, "right")) - 1
            cut = max(begin, int(cuts[at])) if at >= 0 else begin
            piece = rows.between(cut, end)
            end = cut
        else:
            at = int(np.searchsorted(cuts, begin + first, "left"))
            cut = int(cuts[at]) if at < len(cuts) else end
            piece = rows.between(begin, cut)
            begin = cut
        first = min(2 * first, max(first, most))
        if piece.selects_any():
            yield piece


def _cheap_cuts(
    pages: Sequence[PageIndex], begin: int, end: int, most: float
) -> tuple[Int64s, Int64s]:
    """Rows where a cut costs no more than `most`, and how many bytes are decoded twice there."""
    rows = np.unique(np.concatenate([index.boundaries for index in pages]))
    rows = rows[(rows > begin) & (rows < end)]
    costs = np.zeros(len(rows))
    for index in pages:
        page = np.searchsorted(index.boundaries, rows, "right") - 1
        inside = index.boundaries[page] != rows
        costs += inside * np.diff(index.boundaries, append=0)[page] * index.width
    cheap = costs <= most
    return rows[cheap], costs[cheap].astype(np.int64)


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
