"""Plans one run of a scan: opens its files as far as they are needed, and plans each in turn.

Windows and selections count over all files of the scan, so what is read of a file depends on the
files before it (for `tail`, on those behind it). A planner is used once and then forgotten.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeVar

from fretsaw.engine.columns import Columns
from fretsaw.engine.corrupt_files import CorruptFiles
from fretsaw.engine.files import Files, OpenFile
from fretsaw.engine.plan import BlockPlan, FilePlan, Leaves, Placement, place, plan_files
from fretsaw.engine.pruning import by_paths
from fretsaw.engine.query import Window
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.row_numbers import in_file, last_of, possible_numbers, rows_numbered
from fretsaw.engine.verdicts import Verdict
from fretsaw.errors import FileFormatError, FretsawError
from fretsaw.model.schema import SchemaNode
from fretsaw.model.trace import record_pruned
from fretsaw.predicates.condition import Condition, leaves_of

MOST_FILES = 64
"""No more files than this are decided by their statistics at once."""

T = TypeVar("T")

Placed: TypeAlias = tuple[OpenFile, int, Placement]
"""A file, where it begins in the whole scan, and what position leaves of it."""


class Planner:
    """The files, columns and plans of one scan."""

    def __init__(self, request: ScanRequest) -> None:
        self.query = request.query
        self.listing = request.listing()
        if self.query.numbers_rows and self.listing.is_split and not self._knows_first_row:
            raise ValueError(
                "rows cannot be numbered in a split whose scan dropped files by their folders: "
                "call with_row_index() or select_rows() before splits()"
            )
        # Where paths decide, every row matches of the files that they leave.
        self.entries, self.verdicts, self.paths_decide = by_paths(self.listing, self.query)
        opened = request.opened
        if opened is not None and opened.source.closed:
            opened = None
        is_settled = request.target is not None
        for verdict in self.verdicts:
            record_pruned(verdict.told(self.listing.name))
        self.corrupt = CorruptFiles(request.skips_corrupt)
        self.files = Files(
            self.listing, self.entries, request.options, opened, is_settled, self.corrupt
        )
        self.columns = Columns(self.files, self.listing, request)
        self.believes_indexes = request.options.indexes
        self._planned = request.planned
        self._numbers = possible_numbers(self.query, self.listing.name)

    @property
    def _knows_first_row(self) -> bool:
        return self.listing.entries[0].first_row is not None

    @property
    def reads_whole_files(self) -> bool:
        """Whether all rows of all files are the result."""
        return self.query.selects_all and not self.query.window and self._planned is None

    @property
    def knows_places(self) -> bool:
        """Whether the first row of each plan is its place in the whole scan."""
        if self.listing.is_split:
            return self._knows_first_row
        has_all = self.entries is self.listing.entries
        return self.query.numbers_rows or has_all or len(self.entries) == len(self.listing.entries)

    def leaves_of(self, plan: FilePlan) -> list[SchemaNode]:
        """The leaves that are read of a file: those of the result and those that are checked."""
        leaves = [*self.columns.of(plan.file).leaves]
        leaves += leaves_of(plan.condition)
        return list({leaf.leaf_index: leaf for leaf in leaves}.values())

    def file_plans(self) -> Iterator[FilePlan]:
        """What is read of each file, in order, or from the end on for a tail under a predicate.

        Files behind a window are not opened.
        """
        for batch in self._batches():
            yield from self._plans(batch)

    def _batches(self) -> Iterator[list[Placed]]:
        """The files, more and more of them at a time where statistics of all are asked for."""
        needs_all = self.query.window.rows_needed is None
        asks = needs_all and self.query.predicate is not None and self._planned is None
        most, placed = 1, self.placements()
        while True:
            batch: list[Placed] = []
            failure: FretsawError | None = None
            try:
                for each in itertools.islice(placed, most):
                    if most > 1:
                        each[0].source.rest()
                    batch.append(each)
                    del each  # not to keep it open
            except FretsawError as error:  # which comes behind the rows of the files before
                failure = error
            is_last = len(batch) < most
            if batch:
                yield batch
            if failure is not None:
                raise failure
            if is_last:
                return
            if asks and not self.corrupt.may_skip:
                most = min(2 * most, MOST_FILES)

    def _plans(self, batch: list[Placed]) -> Iterator[FilePlan]:
        """What is read of some files; nothing of one that is corrupt and left out."""
        try:
            conditions = [(*placed, self._condition(*placed[:2])) for placed in batch]
            plans = plan_files(conditions, self.believes_indexes, self._planned)
            del conditions
        except FretsawError as error:
            if len(batch) > 1:  # rows of the files before the one that is wrong come first
                for placed in drained(batch):
                    yield from self._plans([placed])
                return
            if not self.corrupt.may_skip or not isinstance(error, FileFormatError):
                raise
            self.corrupt.leave_out(batch[0][0].entry, error)
            return
        batch.clear()
        yield from drained(plans)

    def _condition(self, file: OpenFile, start: int) -> Condition:
        """What is left to be checked of the rows of a file."""
        if self.corrupt.may_skip:
            self.columns.of(file)
        if self.query.predicate is None or self.paths_decide:
            return True
        condition = self.columns.condition(file)
        return condition if self._numbers is None else in_file(condition, start, file.num_rows)

    def block_plans(
        self, plan: FilePlan, few: bool, backward: bool, leaves: Leaves = tuple
    ) -> Iterable[tuple[list[BlockPlan], list[Verdict]]]:
        """What is read of the blocks of a file, some at a time, and what was dropped.

        Where corrupt files are left out, all indexes that are needed are read first: no row is
        given of a file of which one cannot be read.
        """
        groups = plan.block_plans(few, backward, leaves)
        if not self.corrupt.may_skip:
            return groups
        try:
            return list(groups)
        except FileFormatError as error:
            self.corrupt.leave_out(plan.file.entry, error)
            return []

    def placements(self) -> Iterator[Placed]:
        """What position leaves of each file, and where the file begins."""
        window = self.query.window
        if self.query.predicate is not None:
            yield from self._to_search()
        elif window.tail is not None:
            yield from self._tail()
        else:
            for file, start in self._placed():
                placement, window = self._place(file, start, window)
                self.files.expect(window.rows_needed, file)
                yield file, start, placement
                del file  # not to keep it open
                if window.is_over:
                    return

    def _place(self, file: OpenFile, start: int, window: Window) -> tuple[Placement, Window]:
        return place(file.reader.blocks, start, self.query, window, self._planned)

    def _to_search(self) -> Iterator[Placed]:
        """All files, from the end on for a tail: nobody knows yet which rows match."""
        placed = self._placed() if self.query.window.tail is None else self._backward()
        numbers = self._numbers
        last = None if numbers is None else last_of(numbers)
        for file, start in placed:
            placement, end = self._place(file, start, Window())[0], start + file.num_rows
            if numbers is not None:
                placement = placement.numbered(rows_numbered(numbers, start, end))
            yield file, start, placement
            del file  # not to keep it open
            if last is not None and last <= end and self.query.window.tail is None:
                return

    def _placed(self) -> Iterator[tuple[OpenFile, int]]:
        """The files that hold rows, and where each begins."""
        files = self.files.in_order()
        if self.query.rows is not None:
            files = drained(self._needed_files(files))
        elif self.query.window.rows_needed is None:
            self.files.expect_all()
        end = 0
        for file in files:
            start = _start(file, end)
            end = start + file.num_rows
            yield file, start
            del file  # not to keep it open

    def _needed_files(self, files: Iterator[OpenFile]) -> list[OpenFile]:
        """The files up to the last row of `select_rows`, which must be in one of them."""
        needed, found, end = self.query.rows_needed, [], 0
        for file in files:
            file.source.rest()
            found.append(file)
            end = _start(file, end) + file.num_rows
            self.files.expect(needed - end, file)
            if end >= needed:
                break
        if not self.listing.is_split:  # a split has some of the rows only
            self.query.require_rows(end)
        return found

    def _tail(self) -> Iterator[Placed]:
        """The files from the end back to where the tail begins, in order."""
        window = self.query.window
        placed: list[Placed] = []
        for file, start in self._backward():
            file.source.rest()
            placement, window = self._place(file, start, window)
            self.files.expect(window.rows_needed, file)
            placed.append((file, start, placement))
            if window.is_over:
                break
        return drained(placed[::-1])

    def _backward(self) -> Iterator[tuple[OpenFile, int]]:
        """The files from the end on, and where each begins, if anybody wants to know."""
        if not self.query.numbers_rows:
            return zip(self.files.in_order(backward=True), itertools.repeat(0))
        return self._placed_backward()

    def _placed_backward(self) -> Iterator[tuple[OpenFile, int]]:
        """All files from the end on, and where each begins: counted from the beginning."""
        files = []
        for file in self.files.in_order():
            file.source.rest()
            files.append(file)
            self.files.expect(None, file)
        starts, end = [], 0
        for file in files:
            starts.append(_start(file, end))
            end = starts[-1] + file.num_rows
        if not self.listing.is_split:
            self.query.require_rows(end)
        return zip(reversed(files), reversed(starts), strict=True)


def drained(items: list[T]) -> Iterator[T]:
    """The items in order, each let go of as it is handed out, with all that it keeps open."""
    items.reverse()
    while items:
        yield items.pop()


def _start(file: OpenFile, running: int) -> int:
    """Where a file begins in the scan: settled for a split, else behind the files before it."""
    return running if file.entry.first_row is None else file.entry.first_row
