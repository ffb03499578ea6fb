"""Runs a plan piece by piece on threads, in order and in bounded memory.

A piece is some rows of one block, or of several small ones. Where a condition is left, the rows
that match are found first; the window is laid over them, and only then are the leaves of the result
fetched, cut and decoded, in groups. The next pieces are under way while this one is consumed,
within a bound of bytes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from fretsaw.engine import threads
from fretsaw.engine.decode import Decoded, Wanted, decode
from fretsaw.engine.files import OpenFile
from fretsaw.engine.filter import Match, Selectivity, find
from fretsaw.engine.pieces import decoded_bytes, divide, ramp
from fretsaw.engine.plan import BlockPlan
from fretsaw.engine.planner import Planner, drained
from fretsaw.engine.pruning import tell
from fretsaw.engine.query import Window
from fretsaw.model.arrays import interleaved, joined
from fretsaw.model.blocks import Block, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.condition import leaves_of
from fretsaw.storage import buffer_pool
from fretsaw.storage.requests import Kept

GROUP_BYTES = 1 << 20
"""Leaves are decoded together, as one small file, up to this size."""
FIRST_AHEAD, MOST_AHEAD = 4, 16
"""No more pieces than this are begun ahead, however small: few until many were asked for."""
TOGETHER_BYTES = 1 << 20
"""Blocks of a file are decoded together, as one small file, up to this size of their pages."""
MOST_TOGETHER = 64


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Shape(Protocol[T_co]):
    """What is read of each row, and what becomes of it."""

    @property
    def leaves(self) -> Sequence[SchemaNode]:
        """The leaves to decode."""

    def result(self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int) -> T_co:
        """Decoded leaves put together; `rows` are counted from `first_row` of the scan."""


@dataclass(frozen=True, slots=True, eq=False)
class ShapedBlock(Generic[T_co]):
    """The plan of a block, and the shape that its rows are read in."""

    file: OpenFile
    plan: BlockPlan
    shape: Shape[T_co]
    first_row: int
    """Where the block begins in the whole scan."""

    @property
    def block(self) -> Block:
        return self.plan.block


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Rows of a block, in which the matching ones are being found."""

    work: ShapedBlock[Any]
    rows: RowSelection
    pages: list[PageIndex] | None
    """The pages of the leaves of the result, where they are known already."""
    size: float
    """Bytes once they are decoded."""
    finding: threads.Task[Match] | None
    kept: Kept | None = None
    """What it has in common with other pieces of the block."""

    def match(self) -> Match:
        return Match(self.rows, {}) if self.finding is None else self.finding.result()

    def is_ready(self, may_work: bool) -> bool:
        """Whether the matches can be had without waiting, or by work that may be done here."""
        is_here = may_work and isinstance(self.finding, threads.Deferred)
        return self.finding is None or is_here or self.finding.done()


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Rows of a block to decode, and what is decoded of them already."""

    work: ShapedBlock[Any]
    wanted: Wanted
    decoded: dict[int, Decoded]
    stored: list[int]
    """Bytes of the pages of each leaf."""
    size: float
    """Bytes of these pages once they are decoded."""


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Rows of one or more blocks of a file that are being decoded."""

    found: list[_Found]
    tasks: list[threads.Task[list[pa.ChunkedArray]]]
    size: float

    def result(self) -> Any:
        arrays = [array for task in self.tasks for array in task.result()]
        first = self.found[0].work
        return first.shape.result(arrays, self._rows(), first.first_row)

    def _rows(self) -> RowSelection:
        """The rows of all blocks, counted from where the first one begins."""
        parts: list[RowSelection] = []
        end = self.found[0].work.first_row
        for some in self.found:
            begin = some.work.first_row
            parts += (RowSelection.none(begin - end), some.wanted.rows)
            end = begin + some.work.block.num_rows
        return RowSelection().concat(*parts)


def run(
    planner: Planner, shape_of: Callable[[OpenFile], Shape[T]], piece_bytes: int
) -> Iterator[T]:
    """The result of a scan, in order, in pieces of about so many bytes."""
    # Without a predicate the window is in the plans already.
    window = Window() if planner.query.predicate is None else planner.query.window
    results = Execution(_shaped(planner, shape_of), window, piece_bytes).results()
    return results if window.tail is None else iter(list(results)[::-1])


def _shaped(planner: Planner, shape_of: Callable[[OpenFile], Shape[T]]) -> Iterator[ShapedBlock[T]]:
    """The blocks to read, in order; from the end on for a tail under a predicate."""
    window = planner.query.window
    backward = planner.query.predicate is not None and window.tail is not None
    for plan in planner.file_plans():
        checked = leaves_of(plan.condition)
        shape: Shape[T] | None = None

        def leaves(
            file: OpenFile = plan.file, more: list[SchemaNode] = checked
        ) -> list[SchemaNode]:
            return [*shape_of(file).leaves, *more]

        if plan.condition is not False:  # nobody asks what files without a match would give
            tell(plan.file, plan.verdicts(), leaves)
        for blocks, verdicts in plan.block_plans(window.rows_needed is not None, backward):
            tell(plan.file, verdicts, leaves)
            for block in drained(blocks):
                shape = shape or shape_of(plan.file)
                first_row = plan.first_row + block.block.first_row
                yield ShapedBlock(plan.file, block, shape, first_row)
                del block  # not to keep what it has read
        del plan, leaves  # not to keep the file open


class Execution(Generic[T_co]):
    """The running execution of a scan: what is under way, and what is left of the window."""

    def __init__(
        self, blocks: Iterable[ShapedBlock[T_co]], window: Window, piece_bytes: int
    ) -> None:
        self._window = window
        self._piece_bytes = piece_bytes
        self._reach = float(max(window.rows_needed or 0, 1))
        """Rows to search next where few may be enough."""
        self._asked = 0
        """Pieces that were asked for."""
        self._together = 1
        """Blocks to decode together; more and more, since the first rows may be enough."""
        self._selectivity = Selectivity()
        self._starter = threads.Starter()
        self._waiting = self._divided(blocks)
        self._candidates: deque[_Candidates] = deque()
        self._pieces: deque[_Piece] = deque()

    def results(self) -> Iterator[T_co]:
        """The result, in order (for a tail from its end on), some pieces ahead of the consumer."""
        try:
            self._advance(may_wait=True)
            while self._pieces:
                results = [self._pieces[0].result()]
                self._pieces.popleft()
                self._asked += 1
                self._advance(may_wait=False)
                yield results.pop()
                self._advance(may_wait=True)
        finally:
            finding = [c.finding for c in self._candidates if c.finding is not None]
            decoding = [task for piece in self._pieces for task in piece.tasks]
            threads.abandon([*finding, *decoding])
            buffer_pool.release()

    def _advance(self, may_wait: bool) -> None:
        """Begin as much as memory allows, and wait only where nothing is under way yet."""
        while not self._window.is_over:
            self._find_more()
            if not self._candidates:
                return
            ahead = sum(piece.size for piece in self._pieces)
            most = min(MOST_AHEAD, FIRST_AHEAD + 2 * self._asked)
            is_full = ahead >= 2 * self._piece_bytes or len(self._pieces) >= most
            if self._pieces and is_full:
                return
            if not self._candidates[0].is_ready(may_wait) and (self._pieces or not may_wait):
                return
            self._decode(self._next_together(may_wait))

    def _find_more(self) -> None:
        """Begin to search the next rows, as far as they are surely or likely needed."""
        size = sum(candidates.size for candidates in self._candidates)
        rows = sum(candidates.rows.selected_count for candidates in self._candidates)
        while size < 2 * self._piece_bytes and not self._is_enough(size):
            needed = self._window.rows_needed
            if needed is not None and rows >= needed:
                return
            following = next(self._waiting, None)
            if following is None:
                return
            self._candidates.append(following)
            size += following.size
            rows += following.rows.selected_count

    def _is_enough(self, size: float) -> bool:
        """Whether no more candidates are worth beginning: files are open meanwhile."""
        count = len(self._candidates)
        if count < MOST_AHEAD:
            return False
        is_one_file = self._candidates[0].work.file is self._candidates[-1].work.file
        return not is_one_file or size > TOGETHER_BYTES or count >= self._together

    def _next_together(self, may_work: bool) -> list[_Candidates]:
        """The next candidates: small ones of several blocks of a file are decoded together."""
        together = [self._candidates.popleft()]
        size = together[0].size
        while self._candidates and len(together) < self._together:
            following = self._candidates[0]
            size += following.size
            before, work = together[-1].work, following.work
            is_next_block = work.file is before.file and work is not before
            is_ready = following.is_ready(may_work)
            if not is_next_block or not is_ready or size > TOGETHER_BYTES:
                break
            together.append(self._candidates.popleft())
        if self._window.tail is None:  # the blocks of a tail come last first
            self._together = min(2 * self._together, MOST_TOGETHER)
        return together

    def _decode(self, together: Sequence[_Candidates]) -> None:
        """Begin to decode what matches and lies inside the window."""
        kept: list[tuple[_Candidates, RowSelection, dict[int, Decoded]]] = []
        for candidates in together:
            match = candidates.match()
            rows = match.rows
            if self._window:
                rows, self._window = self._window.apply(rows)
            if rows.selects_any():
                kept.append((candidates, rows, match.decoded))
        if not kept:
            return
        first = together[0].work
        unknown = [(c.work.plan.reader, rows) for c, rows, _ in kept if c.pages is None]
        read = iter(first.file.pages_of(unknown, first.shape.leaves, self._piece_bytes))
        group: list[_Found] = []
        for candidates, rows, decoded in kept:
            known = next(read) if candidates.pages is None else candidates.pages
            some = _found(candidates.work, rows, known, decoded, candidates.kept)
            if group and sum(other.size for other in group) + some.size > TOGETHER_BYTES:
                self._begin(group)
                group = []
            group.append(some)
        self._begin(group)

    def _begin(self, found: list[_Found]) -> None:
        tasks = list(_start(found, self._starter))
        self._pieces.append(_Piece(found, tasks, sum(some.size for some in found)))

    def _divided(self, blocks: Iterable[ShapedBlock[T_co]]) -> Iterator[_Candidates]:
        for work in blocks:
            leaves, rows, reader = work.shape.leaves, work.plan.rows, work.plan.reader
            chunks = [reader.whole_chunk(leaf) for leaf in leaves]
            if work.plan.condition is True:
                size = decoded_bytes(rows, chunks)
                if size <= self._piece_bytes:
                    yield _Candidates(work, rows, None, size, None)
                    continue
                (pages,) = work.file.pages_of([(reader, rows)], leaves, self._piece_bytes)
                proven = divide(rows, pages, self._piece_bytes)
                kept = Kept() if len(proven) > 1 else None
                for piece in proven if self._window.tail is None else proven[::-1]:
                    size = decoded_bytes(piece, pages)
                    yield _Candidates(work, piece, pages, size, None, kept)
                continue
            # Where few rows may be enough, pages are worth knowing even of whole blocks.
            few = self._window.rows_needed is not None
            (searched,) = work.file.pages_of(
                [(reader, rows)],
                leaves_of(work.plan.condition),
                0 if few else self._piece_bytes,
            )
            width = sum(index.width for index in (*searched, *chunks))
            most, backward = self._piece_bytes / width, self._window.tail is not None
            pieces: Iterable[RowSelection]
            if few:
                pieces, kept = ramp(rows, searched, self._reach, most, backward), Kept()
            else:
                pieces = divided = divide(rows, searched, self._piece_bytes, width)
                kept = Kept() if len(divided) > 1 else None
            projected = {leaf.leaf_index for leaf in leaves}
            for piece in pieces:
                self._reach = min(2 * self._reach, max(self._reach, most))
                finding = self._starter.start(
                    decoded_bytes(piece, searched),
                    find,
                    work.file,
                    work.plan,
                    piece,
                    projected,
                    self._selectivity,
                    kept,
                )
                size = decoded_bytes(piece, searched, width)
                yield _Candidates(work, piece, None, size, finding, kept)


def _found(
    work: ShapedBlock[Any],
    rows: RowSelection,
    pages: Sequence[PageIndex],
    decoded: dict[int, Decoded],
    kept: Kept | None,
) -> _Found:
    hits = [index.overlapping(rows.starts, rows.ends) for index in pages]
    both = list(zip(pages, hits, strict=True))
    stored = [int(index.sizes[hit].sum()) for index, hit in both]
    size = sum(index.width * float(index.row_counts[hit].sum()) for index, hit in both)
    return _Found(work, Wanted(work.plan.reader, rows, pages, kept), decoded, stored, size)


def _start(
    found: Sequence[_Found], starter: threads.Starter
) -> Iterator[threads.Task[list[pa.ChunkedArray]]]:
    """Begin to decode rows: a task for each group of leaves."""
    file, leaves = found[0].work.file, found[0].work.shape.leaves
    sizes = [sum(of_leaf) for of_leaf in zip(*(some.stored for some in found), strict=True)]
    is_decoded = [any(leaf.leaf_index in some.decoded for some in found) for leaf in leaves]
    for group in _groups(sizes, is_decoded):
        part = slice(group.start, group.stop)
        wanted = [replace(some.wanted, pages=some.wanted.pages[part]) for some in found]
        if is_decoded[group.start]:
            leaf = leaves[group.start]
            before = [some.decoded.get(leaf.leaf_index) for some in found]
            yield starter.start(sizes[group.start], _reuse, file, leaf, wanted, before)
        else:
            yield starter.start(sum(sizes[part]), decode, file, leaves[part], wanted)


def _groups(sizes: Sequence[int], is_decoded: Sequence[bool]) -> Iterator[range]:
    """Neighbouring leaves that are decoded together; one that is decoded already stays alone."""
    begin, total = 0, 0
    for position, size in enumerate(sizes):
        alone = is_decoded[position] or is_decoded[begin]
        if position > begin and (alone or total + size > GROUP_BYTES):
            yield range(begin, position)
            begin, total = position, 0
        total += size
    if sizes:
        yield range(begin, len(sizes))


def _reuse(
    file: OpenFile, leaf: SchemaNode, wanted: Sequence[Wanted], before: Sequence[Decoded | None]
) -> list[pa.ChunkedArray]:
    """A leaf of which some rows are decoded already."""
    return [joined([_completed(file, leaf, *pair) for pair in zip(wanted, before, strict=True)])]


def _completed(
    file: OpenFile, leaf: SchemaNode, wanted: Wanted, before: Decoded | None
) -> pa.ChunkedArray:
    """What is decoded already, and what is missing."""
    rows = wanted.rows
    known = rows & before.rows if before is not None else RowSelection.none(rows.row_count)
    missing = rows & ~known
    pieces = []
    if before is not None and known.selects_any():
        pieces.append((known, before.of(known)))
    if missing.selects_any():
        (values,) = decode(file, [leaf], [replace(wanted, rows=missing)])
        pieces.append((missing, values))
    return interleaved(pieces)
