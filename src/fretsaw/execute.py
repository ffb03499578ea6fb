"""Runs a query over a file: indexes where they are needed, then piece by piece on threads.

A piece is some rows of one block. Its leaves are fetched, cut and decoded in groups, each a task
of the pool; the next pieces are under way while this one is consumed, within a bound of bytes.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa

from fretsaw import formats, storage, trace
from fretsaw.layout import Block, PageIndex
from fretsaw.plan import PIECE_BYTES, BlockRows, divide, fits_whole
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection

GROUP_BYTES = 256 << 10
"""Leaves are decoded together, as one small file, up to this size."""
AHEAD_BYTES = 2 * PIECE_BYTES
"""Pieces are begun ahead of the consumer up to this size."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenFile:
    """A file whose footer is read."""

    source: storage.Source
    reader: formats.FileReader

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.source.name

    def fetch(self, ranges: Sequence[storage.Range], why: trace.Why) -> list[pa.Buffer]:
        """The bytes of these ranges."""
        return storage.fetch(self.source, ranges, why)

    def chunks(self, block: Block, leaves: Sequence[SchemaNode]) -> list[PageIndex]:
        """The chunks of these leaves as one page each: known from the footer."""
        return [self.reader.chunk(block, leaf) for leaf in leaves]

    def pages_of(self, selected: BlockRows, leaves: Sequence[SchemaNode]) -> list[PageIndex]:
        """The pages to plan with: no index is read where all of a block is wanted at once."""
        block, rows = selected.block, selected.rows
        chunks = self.chunks(block, leaves)
        if fits_whole(rows, chunks):
            return chunks
        until = int(rows.ends[-1])
        steps = [self.reader.page_index(block, leaf, until) for leaf in leaves]
        return formats.run_together(steps, self.fetch)

    def close(self) -> None:
        """Let go of the source."""
        self.source.close()


def open_file(origin: storage.Origin, options: formats.ReadOptions) -> OpenFile:
    """Open a source and read its footer."""
    source = storage.open_source(origin)
    try:
        fetch = partial(storage.fetch, source)
        steps = formats.open_file(source.name, source.size, source.tail, options)
        return OpenFile(source, formats.run(steps, fetch))
    except BaseException:
        source.close()
        raise


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Consecutive rows of the result: an array for each leaf."""

    first_row: int
    """Where the block begins in its file."""
    rows: RowSelection
    """Which rows of the block these are."""
    arrays: list[pa.ChunkedArray]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    block: Block
    rows: RowSelection
    pages: Sequence[PageIndex]

    @property
    def decoded_bytes(self) -> float:
        return sum(index.width for index in self.pages) * self.rows.selected_count

    def leaf_bytes(self) -> list[int]:
        starts, ends = self.rows.starts, self.rows.ends
        return [int(index.sizes[index.overlapping(starts, ends)].sum()) for index in self.pages]


def run(
    file: OpenFile, selected: Sequence[BlockRows], leaves: Sequence[SchemaNode]
) -> Iterator[Decoded]:
    """Decode the selected rows of a file, in order."""
    under_way: deque[tuple[_Piece, list[Future[list[pa.ChunkedArray]]]]] = deque()
    ahead = 0.0
    pieces = _pieces(file, selected, leaves)
    try:
        while True:
            while ahead < AHEAD_BYTES and (piece := next(pieces, None)) is not None:
                under_way.append((piece, _start(file, piece, leaves)))
                ahead += piece.decoded_bytes
            if not under_way:
                return
            piece, tasks = under_way[0]
            arrays = [array for task in tasks for array in task.result()]
            under_way.popleft()
            ahead -= piece.decoded_bytes
            yield Decoded(piece.block.first_row, piece.rows, arrays)
            del arrays, tasks, piece  # not to keep them while the next piece is decoded
    finally:
        # An early end: what has not begun does not begin, and nobody reads a closed file.
        tasks = [task for _, tasks in under_way for task in tasks]
        for task in tasks:
            task.cancel()
        wait(tasks)


def _pieces(
    file: OpenFile, selected: Sequence[BlockRows], leaves: Sequence[SchemaNode]
) -> Iterator[_Piece]:
    for part in selected:
        pages = file.pages_of(part, leaves)
        for rows in divide(part.rows, pages):
            yield _Piece(part.block, rows, pages)


def _start(
    file: OpenFile, piece: _Piece, leaves: Sequence[SchemaNode]
) -> list[Future[list[pa.ChunkedArray]]]:
    """Begin to decode a piece: a task for each group of leaves."""
    tasks = []
    for group in _groups(piece.leaf_bytes()):
        work = partial(_decode, file, piece, leaves, group)
        tasks.append(_pool().submit(copy_context().run, work))
    return tasks


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


def _decode(
    file: OpenFile, piece: _Piece, leaves: Sequence[SchemaNode], group: range
) -> list[pa.ChunkedArray]:
    """Fetch, cut and decode some leaves of a piece."""
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


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(pa.cpu_count(), thread_name_prefix="fretsaw")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: the child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
