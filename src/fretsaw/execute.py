"""Runs a plan piece by piece on threads, in order and in bounded memory.

A piece is some rows of one block. Its leaves are fetched, cut and decoded in groups, each a task
of the pool; the next pieces are under way while this one is consumed, within a bound of bytes.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fretsaw import formats, threads, trace
from fretsaw.files import OpenFile
from fretsaw.layout import Block, PageIndex
from fretsaw.plan import BlockRows, divide
from fretsaw.projection import Projection
from fretsaw.selection import RowSelection

GROUP_BYTES = 1 << 20
"""Leaves are decoded together, as one small file, up to this size."""
MOST_AHEAD = 16
"""No more pieces than this are begun ahead, however small they are."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockWork:
    """A block to be read: whose it is, which of its rows, and as which columns."""

    file: OpenFile
    selected: BlockRows
    projection: Projection
    first_row: int
    """Where the block begins in the whole scan."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    work: BlockWork
    rows: RowSelection
    pages: Sequence[PageIndex]

    @property
    def block(self) -> Block:
        return self.work.selected.block

    @property
    def decoded_bytes(self) -> float:
        return sum(index.width for index in self.pages) * self.rows.selected_count

    def leaf_bytes(self) -> list[int]:
        starts, ends = self.rows.starts, self.rows.ends
        return [int(index.sizes[index.overlapping(starts, ends)].sum()) for index in self.pages]

    def table(self, arrays: Sequence[pa.ChunkedArray]) -> pa.Table:
        return self.work.projection.table(arrays, self.rows, self.work.first_row)


def run(blocks: Iterable[BlockWork], piece_bytes: int) -> Iterator[pa.Table]:
    """Decode the selected rows of the blocks, in order, about two pieces ahead of the consumer."""
    pieces = _pieces(blocks, piece_bytes)
    under_way: deque[tuple[_Piece, list[threads.Task[list[pa.ChunkedArray]]]]] = deque()

    def begin_more() -> None:
        ahead = sum(piece.decoded_bytes for piece, _ in under_way)
        while ahead < 2 * piece_bytes and len(under_way) < MOST_AHEAD:
            piece = next(pieces, None)
            if piece is None:
                return
            under_way.append((piece, _start(piece)))
            ahead += piece.decoded_bytes

    try:
        begin_more()
        while under_way:
            piece, tasks = under_way[0]
            tables = [piece.table([array for task in tasks for array in task.result()])]
            under_way.popleft()
            del piece, tasks  # nothing stays alive here while the next pieces are decoded
            begin_more()
            yield tables.pop()
    finally:
        threads.abandon(task for _, tasks in under_way for task in tasks)


def _pieces(blocks: Iterable[BlockWork], piece_bytes: int) -> Iterator[_Piece]:
    for work in blocks:
        pages = work.file.pages_of(work.selected, work.projection.leaves, piece_bytes)
        for rows in divide(work.selected.rows, pages, piece_bytes):
            yield _Piece(work, rows, pages)


def _start(piece: _Piece) -> list[threads.Task[list[pa.ChunkedArray]]]:
    """Begin to decode a piece: a task for each group of leaves."""
    return [threads.start(_decode, piece, group) for group in _groups(piece.leaf_bytes())]


def _groups(sizes: Sequence[int]) -> Iterator[range]:
    """Neighbouring leaves that are decoded together."""
    begin, total = 0, 0
    for position, size in enumerate(sizes):
        if position > begin and total + size > GROUP_BYTES:
            yield range(begin, position)
            begin, total = position, 0
        total += size
    if begin < len(sizes):
        yield range(begin, len(sizes))


def _decode(piece: _Piece, group: range) -> list[pa.ChunkedArray]:
    """Fetch, cut and decode some leaves of a piece."""
    file, leaves = piece.work.file, piece.work.projection.leaves
    cuts = [
        file.reader.cut(piece.block, leaves[leaf], piece.pages[leaf], piece.rows) for leaf in group
    ]
    parts = formats.run_together(cuts, file.fetch)
    arrays = file.reader.decode(parts)
    if trace.is_tracing():
        for part in parts:
            trace.record_decode(part.count_pages(), part.rows)
            if part.fallback:
                path = ".".join(part.leaf.path)
                fallback = trace.Fallback(file.name, path, piece.block.ordinal, part.fallback)
                trace.record_fallback(fallback)
    return arrays
