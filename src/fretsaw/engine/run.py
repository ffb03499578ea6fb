"""Runs a plan piece by piece on threads, in order and in bounded memory.

A piece is some rows of one block, or of several small ones. Where a condition is left, the rows
that match are found first; the window is laid over them, and only then are the leaves of the result
fetched, cut and decoded, in groups. The next pieces are under way while this one is consumed,
within a bound of bytes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from fretsaw.engine import threads
from fretsaw.engine.corrupt_files import CorruptFiles
from fretsaw.engine.decode import Decoded, Wanted, read_ahead
from fretsaw.engine.files import OpenFile
from fretsaw.engine.filter import Selectivity, find
from fretsaw.engine.pieces import decoded_bytes, divide, ramp
from fretsaw.engine.planner import Planner, drained
from fretsaw.engine.query import Window
from fretsaw.engine.under_way import (
    Candidates,
    FoundRows,
    Piece,
    Shape,
    ShapedBlock,
    found_rows,
    start_decoding,
)
from fretsaw.engine.verdicts import tell
from fretsaw.errors import FileFormatError, FretsawError
from fretsaw.model.blocks import PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import is_tracing
from fretsaw.predicates.condition import leaves_of
from fretsaw.storage import buffer_pool
from fretsaw.storage.requests import Kept

FIRST_AHEAD, MOST_AHEAD = 4, 16
"""No more pieces than this are begun ahead, however small: few until many were asked for."""
TOGETHER_BYTES = 1 << 20
"""Blocks of a file are decoded together, as one small file, up to this size of their pages."""
MOST_TOGETHER = 64
LEAST_SHARE = 4 << 20
"""Bytes to search, once they are decoded, for which a thread of its own is worth another piece."""


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def run(
    planner: Planner, shape_of: Callable[[OpenFile], Shape[T]], piece_bytes: int
) -> Iterator[T]:
    """The result of a scan, in order, in pieces of about so many bytes."""
    # Without a predicate the window is in the plans already.
    window = Window() if planner.query.predicate is None else planner.query.window
    blocks = _shaped(planner, shape_of)
    results = Execution(blocks, window, piece_bytes, planner.corrupt).results()
    return results if window.tail is None else iter(list(results)[::-1])


def _shaped(planner: Planner, shape_of: Callable[[OpenFile], Shape[T]]) -> Iterator[ShapedBlock[T]]:
    """The blocks to read, in order; from the end on for a tail under a predicate."""
    window = planner.query.window
    backward = planner.query.predicate is not None and window.tail is not None
    for plan in planner.file_plans():
        if not plan.placement.blocks:
            del plan  # not to keep the file open
            continue
        checked = leaves_of(plan.condition)
        shape: Shape[T] | None = None

        def leaves(
            file: OpenFile = plan.file, more: list[SchemaNode] = checked
        ) -> list[SchemaNode]:
            return [*shape_of(file).leaves, *more]

        # Nobody asks what files without a match would give.
        if plan.condition is not False and is_tracing():
            tell(plan.file, plan.verdicts(), leaves)
        few = window.rows_needed is not None
        for blocks, verdicts in planner.block_plans(plan, few, backward, leaves):
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
        self,
        blocks: Iterable[ShapedBlock[T_co]],
        window: Window,
        piece_bytes: int,
        corrupt: CorruptFiles,
    ) -> None:
        self._window = window
        self._corrupt = corrupt
        self._ended: list[OpenFile] = []
        """Files of which nothing more is read, since they are damaged."""
        self._failure: FretsawError | None = None
        """What went wrong ahead of the consumer, behind all that is under way."""
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
        self._candidates: deque[Candidates] = deque()
        self._pieces: deque[Piece] = deque()

    def results(self) -> Iterator[T_co]:
        """The result, in order (for a tail from its end on), some pieces ahead of the consumer."""
        try:
            self._advance(may_wait=True)
            while self._pieces:
                results = self._finished(self._pieces[0])
                self._pieces.popleft()
                self._asked += 1
                self._advance(may_wait=False)
                if results:
                    yield results.pop()
                self._advance(may_wait=True)
            if self._failure is not None and not self._window.is_over:
                raise self._failure
        finally:
            finding = [c.finding for c in self._candidates if c.finding is not None]
            decoding = [task for piece in self._pieces for _, task in piece.tasks]
            threads.abandon([*finding, *decoding])
            self._failure = None  # whose traceback keeps all of this
            buffer_pool.release()

    def _finished(self, piece: Piece) -> list[T_co]:
        """The result of a piece; none if it is damaged, and that is where its file ends."""
        try:
            return [piece.result()]
        except FileFormatError as error:
            if not self._corrupt.may_skip:
                raise
            file = piece.found[0].work.file
            self._window = piece.window
            self._end(file, error)
            self._forget_candidates(file)
            behind = [other for other in self._pieces if other is not piece]
            self._pieces = deque([piece])
            for other in behind:
                if other.found[0].work.file is file:
                    threads.abandon(task for _, task in other.tasks)
                else:
                    self._pieces.append(other)
            return []

    def _end(self, file: OpenFile, error: FileFormatError) -> None:
        """Take no more blocks of a file."""
        self._corrupt.end(file.entry, error)
        self._ended.append(file)

    def _forget_candidates(self, file: OpenFile) -> None:
        """What waits behind the damage of a file is not read."""
        waiting, self._candidates = self._candidates, deque()
        for candidates in waiting:
            if candidates.work.file is not file:
                self._candidates.append(candidates)
            elif candidates.finding is not None:
                threads.abandon([candidates.finding])

    def _advance(self, may_wait: bool) -> None:
        """Begin as much as memory allows, and wait only where nothing is under way yet."""
        while not self._window.is_over:
            if self._pieces and self._corrupt.may_skip and self._window:
                return  # what is damaged takes no place in the window
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
            together, window = self._next_together(may_wait), self._window
            try:
                self._decode(together)
            except FretsawError as error:
                if isinstance(error, FileFormatError) and self._corrupt.may_skip:
                    self._end(together[0].work.file, error)
                    self._forget_candidates(together[0].work.file)
                    continue
                self._window = window
                self._fail(error)

    def _fail(self, error: FretsawError) -> None:
        """Begin nothing more; the error comes behind the rows that were found before it."""
        findings = [c.finding for c in self._candidates if c.finding is not None]
        threads.abandon(findings)
        self._candidates.clear()
        self._waiting = iter(())
        self._failure = error

    def _find_more(self) -> None:
        """Begin to search the next rows, as far as they are surely or likely needed."""
        size = sum(candidates.size for candidates in self._candidates)
        rows = sum(candidates.rows.selected_count for candidates in self._candidates)
        while size < 2 * self._piece_bytes and not self._is_enough(size):
            needed = self._window.rows_needed
            if needed is not None and rows >= needed:
                return
            try:
                following = next(self._waiting, None)
            except FretsawError as error:  # which comes behind the rows of the files before
                self._failure, following = error, None
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

    def _next_together(self, may_work: bool) -> list[Candidates]:
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
        # The blocks of a tail come last first; of what may be damaged each is read by itself.
        if self._window.tail is None and not self._corrupt.may_skip:
            self._together = min(2 * self._together, MOST_TOGETHER)
        return together

    def _decode(self, together: Sequence[Candidates]) -> None:
        """Begin to decode what matches and lies inside the window."""
        window = self._window
        kept: list[tuple[Candidates, RowSelection, dict[int, Decoded]]] = []
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
        group: list[FoundRows] = []
        for candidates, rows, decoded in kept:
            known = next(read) if candidates.pages is None else candidates.pages
            some = found_rows(candidates.work, rows, known, decoded, candidates.kept)
            if group and sum(other.size for other in group) + some.size > TOGETHER_BYTES:
                self._begin(group, window)
                group = []
            group.append(some)
        self._begin(group, window)

    def _pages_along(self, work: ShapedBlock[T_co]) -> list[PageIndex] | None:
        """The pages of the result, if they may be read along with those that are searched."""
        if not work.file.source.far:
            return None
        self._starter.is_slow = True
        asked = [(work.plan.reader, work.plan.rows)]
        (pages,) = work.file.pages_of(asked, work.shape.leaves, self._piece_bytes)
        return pages

    def _begin(self, found: list[FoundRows], window: Window) -> None:
        file = found[0].work.file
        if file.source.far:
            self._starter.is_slow = True
            decoded = {leaf for some in found for leaf in some.decoded}
            wanted = [some.wanted for some in found]
            read_ahead(file, found[0].work.shape.leaves, wanted, self._piece_bytes, decoded)
        tasks = list(start_decoding(found, self._starter))
        self._pieces.append(Piece(found, tasks, sum(some.size for some in found), window))

    def _divided(self, blocks: Iterable[ShapedBlock[T_co]]) -> Iterator[Candidates]:
        for work in blocks:
            if work.file in self._ended:
                continue
            try:
                for candidates in self._candidates_of(work):
                    yield candidates
                    if work.file in self._ended:
                        break
            except FileFormatError as error:
                if not self._corrupt.may_skip:
                    raise
                self._end(work.file, error)

    def _searched_pages(self, work: ShapedBlock[T_co], piece_bytes: int) -> list[PageIndex]:
        """The pages to search: those that planning knows, or of a block that is small the whole."""
        plan, leaves = work.plan, leaves_of(work.plan.condition)
        known = [plan.pages[leaf.leaf_index] for leaf in leaves if leaf.leaf_index in plan.pages]
        if len(known) == len(leaves):
            return known
        (pages,) = work.file.pages_of([(plan.reader, plan.rows)], leaves, piece_bytes)
        return pages

    def _share(self, searched: float, size: float) -> int:
        """Bytes of a piece to search: where nothing else is under way, all threads search a block.

        It may be the only one. `searched` are the bytes of what is searched, `size` of all.
        """
        count = threads.count()
        if self._candidates or self._pieces or searched < count * LEAST_SHARE:
            return self._piece_bytes
        return min(self._piece_bytes, int(size / count) - 1)

    def _candidates_of(self, work: ShapedBlock[T_co]) -> Iterator[Candidates]:
        """The rows of a block in pieces, in which matches are being found."""
        leaves, rows, reader = work.shape.leaves, work.plan.rows, work.plan.reader
        chunks = [reader.whole_chunk(leaf) for leaf in leaves]
        if work.plan.condition is True:
            size = decoded_bytes(rows, chunks)
            if size <= self._piece_bytes:
                yield Candidates(work, rows, None, size, None)
                return
            (pages,) = work.file.pages_of([(reader, rows)], leaves, self._piece_bytes)
            proven = divide(rows, pages, self._piece_bytes)
            kept = Kept() if len(proven) > 1 else None
            for piece in proven if self._window.tail is None else proven[::-1]:
                size = decoded_bytes(piece, pages)
                yield Candidates(work, piece, pages, size, None, kept)
            return
        # Where few rows may be enough, pages are worth knowing even of whole blocks.
        few = self._window.rows_needed is not None
        searched = self._searched_pages(work, 0 if few else self._piece_bytes)
        width = max(sum(index.width for index in (*searched, *chunks)), 1)
        most, backward = self._piece_bytes / width, self._window.tail is not None
        pieces: Iterable[RowSelection]
        if few:
            pieces, kept = ramp(rows, searched, self._reach, most, backward), Kept()
        else:
            share = self._share(decoded_bytes(rows, searched), width * rows.selected_count)
            pieces = divided = divide(rows, searched, share, width)
            kept = Kept() if len(divided) > 1 else None
        projected = {leaf.leaf_index for leaf in leaves}
        along = self._pages_along(work)
        for piece in pieces:
            if along is not None and piece.selects_any():
                wanted = Wanted(reader, piece, along)
                read_ahead(work.file, leaves, [wanted], work.file.source.far)
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
            yield Candidates(work, piece, None, size, finding, kept)
