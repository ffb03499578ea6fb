"""Runs a plan piece by piece on threads, in order and in bounded memory.

A piece is some rows of one block. Where a condition is left, the rows that match are found first;
the window is laid over them, and only then are the leaves of the result fetched, cut and decoded,
in groups. The next pieces are under way while this one is consumed, within a bound of bytes.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fretsaw import scratch, threads
from fretsaw.arrays import take_rows
from fretsaw.condition import checks_of
from fretsaw.files import OpenFile
from fretsaw.layout import Block, Int64s, PageIndex
from fretsaw.plan import BlockRows, Window, divide, ramp
from fretsaw.projection import Projection
from fretsaw.schema import SchemaNode
from fretsaw.search import Decoded, Experience, Match, decode, find
from fretsaw.selection import RowSelection
from fretsaw.survey import Search

GROUP_BYTES = 1 << 20
"""Leaves are decoded together, as one small file, up to this size."""
MOST_AHEAD = 16
"""No more pieces than this are begun ahead, however small they are."""
MOST_TURNS = 64
"""Two arrays that take turns more often than this are copied into one, not sliced."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockWork:
    """A block to be read: whose it is, which of its rows, and as which columns."""

    file: OpenFile
    selected: BlockRows
    search: Search | None
    """How to find the rows that match; None: all that are selected do."""
    projection: Projection
    first_row: int
    """Where the block begins in the whole scan."""

    @property
    def block(self) -> Block:
        return self.selected.block


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Rows of a block, in which the matching ones are being found."""

    work: BlockWork
    rows: RowSelection
    pages: list[PageIndex] | None
    """The pages of the leaves of the result, where they are known already."""
    width: float
    finding: threads.Task[Match] | None

    def match(self) -> Match:
        return Match(self.rows, {}) if self.finding is None else self.finding.result()


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Rows of a block that are being decoded."""

    work: BlockWork
    rows: RowSelection
    tasks: list[threads.Task[list[pa.ChunkedArray]]]
    decoded_bytes: float

    def table(self) -> pa.Table:
        arrays = [array for task in self.tasks for array in task.result()]
        return self.work.projection.table(arrays, self.rows, self.work.first_row)


class Execution:
    """The running execution of a scan: what is under way, and what is left of the window."""

    def __init__(self, blocks: Iterable[BlockWork], window: Window, piece_bytes: int) -> None:
        self._window = window
        self._piece_bytes = piece_bytes
        self._reach = float(max(window.rows_needed or 0, 1))
        """Rows to search next where few may be enough."""
        self._experience = Experience()
        self._waiting = self._divided(blocks)
        self._candidates: deque[_Candidates] = deque()
        self._pieces: deque[_Piece] = deque()

    def tables(self) -> Iterator[pa.Table]:
        """The result, in order (for a tail from its end on), some pieces ahead of the consumer."""
        try:
            self._advance()
            while self._pieces:
                tables = [self._pieces[0].table()]
                self._pieces.popleft()
                self._advance()
                yield tables.pop()
        finally:
            finding = [c.finding for c in self._candidates if c.finding is not None]
            decoding = [task for piece in self._pieces for task in piece.tasks]
            threads.abandon([*finding, *decoding])
            scratch.release()

    def _advance(self) -> None:
        """Begin as much as memory allows, and wait only where nothing is under way yet."""
        while not self._window.is_over:
            self._find_more()
            if not self._candidates:
                return
            front = self._candidates[0]
            ahead = sum(piece.decoded_bytes for piece in self._pieces)
            is_full = ahead >= 2 * self._piece_bytes or len(self._pieces) >= MOST_AHEAD
            is_found = front.finding is None or front.finding.done()
            if self._pieces and (is_full or not is_found):
                return
            self._candidates.popleft()
            self._decode(front)

    def _find_more(self) -> None:
        """Begin to search the next rows, as far as they are surely or likely needed."""
        size = sum(c.width * c.rows.selected_count for c in self._candidates)
        rows = sum(c.rows.selected_count for c in self._candidates)
        while size < 2 * self._piece_bytes and len(self._candidates) < MOST_AHEAD:
            needed = self._window.rows_needed
            if needed is not None and rows >= needed:
                return
            following = next(self._waiting, None)
            if following is None:
                return
            self._candidates.append(following)
            size += following.width * following.rows.selected_count
            rows += following.rows.selected_count

    def _decode(self, candidates: _Candidates) -> None:
        """Begin to decode what matches and lies inside the window."""
        work, found = candidates.work, candidates.match()
        rows = found.rows
        if self._window:
            rows, self._window = self._window.apply(rows)
        if not rows.selects_any():
            return
        leaves = work.projection.leaves
        pages = candidates.pages
        if pages is None:
            known = work.search.pages if work.search else {}
            selected = replace(work.selected, rows=rows)
            pages = work.file.pages_of(selected, leaves, self._piece_bytes, known)
        tasks = list(_start(work, pages, rows, found.decoded))
        size = sum(index.width for index in pages) * rows.selected_count
        self._pieces.append(_Piece(work, rows, tasks, size))

    def _divided(self, blocks: Iterable[BlockWork]) -> Iterator[_Candidates]:
        for work in blocks:
            leaves, rows = work.projection.leaves, work.selected.rows
            if work.search is None:
                pages = work.file.pages_of(work.selected, leaves, self._piece_bytes)
                width = sum(index.width for index in pages)
                proven = divide(rows, pages, self._piece_bytes)
                for piece in proven if self._window.tail is None else proven[::-1]:
                    yield _Candidates(work, piece, pages, width, None)
                continue
            # Where few rows may be enough, pages are worth knowing even of whole blocks.
            few = self._window.rows_needed is not None
            searched = work.file.pages_of(
                work.selected,
                [check.leaf for check in checks_of(work.search.condition)],
                0 if few else self._piece_bytes,
                work.search.pages,
            )
            chunks = work.file.chunks(work.block, leaves)
            width = sum(index.width for index in (*searched, *chunks))
            if not few:
                pieces = divide(rows, searched, self._piece_bytes, width)
            else:
                most, backward = self._piece_bytes / width, self._window.tail is not None
                pieces = ramp(rows, searched, self._reach, most, backward)
                self._reach = min(self._reach * 2 ** min(len(pieces), 60), max(self._reach, most))
            for piece in pieces:
                finding = threads.start(
                    find, work.file, work.block, work.search, piece, self._experience
                )
                yield _Candidates(work, piece, None, width, finding)


def _start(
    work: BlockWork, pages: Sequence[PageIndex], rows: RowSelection, decoded: dict[int, Decoded]
) -> Iterator[threads.Task[list[pa.ChunkedArray]]]:
    """Begin to decode rows: a task for each group of leaves."""
    sizes = [int(i.sizes[i.overlapping(rows.starts, rows.ends)].sum()) for i in pages]
    leaves = work.projection.leaves
    for group in _groups(leaves, sizes, decoded):
        first = leaves[group.start]
        if first.leaf_index in decoded:
            before = decoded[first.leaf_index]
            yield threads.start(_reuse, work, first, pages[group.start], rows, before)
        else:
            part = slice(group.start, group.stop)
            yield threads.start(decode, work.file, work.block, leaves[part], pages[part], rows)


def _groups(
    leaves: Sequence[SchemaNode], sizes: Sequence[int], decoded: dict[int, Decoded]
) -> Iterator[range]:
    """Neighbouring leaves that are decoded together; one that is decoded already stays alone."""
    begin, total, alone = 0, 0, False
    for position, (leaf, size) in enumerate(zip(leaves, sizes, strict=True)):
        is_decoded = leaf.leaf_index in decoded
        if position > begin and (alone or is_decoded or total + size > GROUP_BYTES):
            yield range(begin, position)
            begin, total = position, 0
        alone = is_decoded
        total += size
    if begin < len(sizes):
        yield range(begin, len(sizes))


def _reuse(
    work: BlockWork, leaf: SchemaNode, pages: PageIndex, rows: RowSelection, before: Decoded
) -> list[pa.ChunkedArray]:
    """A leaf of which some rows are decoded already."""
    missing = rows & ~before.rows
    if not missing.selects_any():
        return [before.plain(leaf, rows)]
    (decoded,) = decode(work.file, work.block, [leaf], [pages], missing)
    known = rows & before.rows
    if not known.selects_any():
        return [decoded]
    return [_interleaved([known, missing], [before.plain(leaf, known), decoded])]


def _interleaved(
    selections: Sequence[RowSelection], arrays: Sequence[pa.ChunkedArray]
) -> pa.ChunkedArray:
    """Arrays of disjoint rows as one, in the order of the rows."""
    starts = np.concatenate([rows.starts for rows in selections])
    counts = np.concatenate([rows.ends - rows.starts for rows in selections])
    owners = np.repeat(range(len(selections)), [len(rows.starts) for rows in selections])
    order = np.argsort(starts)
    owners, counts = owners[order], counts[order]
    first_of_turn = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(first_of_turn) > MOST_TURNS:
        return _merged(np.repeat(owners, counts), arrays)
    lengths = np.add.reduceat(counts, first_of_turn)
    taken = [0] * len(arrays)
    chunks = []
    for owner, length in zip(owners[first_of_turn].tolist(), lengths.tolist(), strict=True):
        chunks += arrays[owner].slice(taken[owner], length).chunks
        taken[owner] += length
    return pa.chunked_array(chunks, arrays[0].type)


def _merged(owners: Int64s, arrays: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Arrays as one, in which each row comes from the array that owns it."""
    places = np.empty(len(owners), np.int64)
    before = 0
    for owner, array in enumerate(arrays):
        places[owners == owner] = np.arange(before, before + len(array))
        before += len(array)
    chunks = [chunk for array in arrays for chunk in array.chunks]
    return take_rows(pa.chunked_array(chunks, arrays[0].type), places)
