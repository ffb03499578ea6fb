"""One reading of a scan: its files opened as far as needed, its columns settled, its rows found.

Windows and selections count over all files of the scan, so a file's share of them depends on the
files before it (for `tail`, on those behind it). A reading is used once and then forgotten.
"""

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from fretsaw.errors import ColumnNotFoundError
from fretsaw.execute import BlockWork, run
from fretsaw.files import OpenFile, open_in_order
from fretsaw.formats import ReadOptions
from fretsaw.plan import Amount, BlockPlan, FileRows, Plan, Query, block_plan, file_rows
from fretsaw.projection import Projection, Target, project, target_of, union
from fretsaw.schema import Path
from fretsaw.sources import Listing, nothing_in
from fretsaw.storage import source_name

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class FileShare:
    """A file of the scan, and what is read of it."""

    file: OpenFile
    first_row: int
    """Where the file begins in the whole scan."""
    selected: FileRows


class Reading:
    """The files, columns and rows of one scan."""

    def __init__(
        self,
        listing: Listing,
        options: ReadOptions,
        query: Query,
        missing_is_null: bool,
        opened: OpenFile | None = None,
    ) -> None:
        self._listing = listing
        self._options = options
        self._query = query
        self._missing_is_null = missing_is_null
        self._opened = opened
        self._most_rows = 0
        self._likely_files = 0

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self._projection(self._first).schema

    def tables(self, piece_bytes: int) -> Iterator[pa.Table]:
        """The result, in pieces of about so many bytes."""
        self.check()
        return run(self._blocks(), piece_bytes)

    def check(self) -> None:
        """Check what was asked for against the file that settles it; no data is read."""
        _ = self.schema

    def count(self) -> int:
        """How many rows the result has."""
        self.check()
        if self._query.selects_all and not self._query.window:
            self._likely_files = sys.maxsize
            return sum(file.num_rows for file in self._files())
        return sum(share.selected.selected_count for share in self.shares())

    def _blocks(self) -> Iterator[BlockWork]:
        for share in self.shares():
            if share.selected.kept:
                projection = self._projection(share.file)
                for selected in share.selected.kept:
                    first_row = share.first_row + selected.block.first_row
                    yield BlockWork(share.file, selected, projection, first_row)

    def plan(self, piece_bytes: int) -> Plan:
        """What would be read, and what is left out by what."""
        self.check()
        blocks: list[BlockPlan] = []
        dropped: dict[str, int] = {}
        opened, rows, size = 0, 0, 0
        for share in self.shares():
            file = share.file
            leaves = self._projection(file).leaves
            for selected in share.selected.kept:
                pages = file.pages_of(selected, leaves, piece_bytes)
                blocks.append(block_plan(file.name, selected, pages))
            for source, count in share.selected.dropped.items():
                dropped[source] = dropped.get(source, 0) + count
            opened, rows = opened + 1, rows + file.num_rows
            for block in file.reader.blocks:
                size += sum(int(chunk.sizes.sum()) for chunk in file.chunks(block, leaves))
        return Plan(
            files=tuple(source_name(entry.origin) for entry in self._listing.entries),
            files_opened=opened,
            columns=tuple(self.schema.names),
            blocks=tuple(blocks),
            dropped=dropped,
            rows=Amount(rows, sum(block.rows.kept for block in blocks)),
            bytes=Amount(size, sum(block.bytes.kept for block in blocks)),
            window=str(self._query.window),
        )

    # Columns ------------------------------------------------------------------------------------

    def _projection(self, file: OpenFile) -> Projection:
        return project(
            file.reader,
            file.name,
            self._target,
            self._listing.constants(file.entry),
            self._missing_is_null,
            self._query.row_index,
            self._query.file_path,
        )

    @cached_property
    def _target(self) -> Target:
        listing, columns = self._listing, self._query.columns
        if not self._missing_is_null:
            first = self._first
            return target_of(first.reader, first.name, columns, listing.partitions, listing.several)
        # Any file may be the first to have a column.
        targets = [
            target_of(file.reader, file.name, found, listing.partitions, listing.several)
            for file, found in self._where_found(columns)
        ]
        return union(targets, columns)

    def _where_found(
        self, columns: Sequence[Path] | None
    ) -> Iterator[tuple[OpenFile, Sequence[Path] | None]]:
        """For each file, the columns that no file before it has."""
        missing = list(columns or [])
        error: ColumnNotFoundError | None = None
        for file in self._files():
            if columns is None:
                yield file, None
                continue
            found = []
            for column in missing:
                try:
                    target_of(file.reader, file.name, [column], self._listing.partitions, True)
                    found.append(column)
                except ColumnNotFoundError as not_here:
                    error = error or not_here
            yield file, found
            missing = [column for column in missing if column not in found]
            if not missing:
                return
        if missing and error is not None:
            raise error

    # Files --------------------------------------------------------------------------------------

    def _files(self, backward: bool = False) -> Iterator[OpenFile]:
        """The files, opened in order as they are asked for."""
        entries, first = self._listing.entries, self._opened
        found: set[str | None] = {None}
        if first is not None:
            found.add(first.entry.found_in)
            entries = entries[entries.index(first.entry) + 1 :]
            if not backward:
                yield first
        ordered = entries[::-1] if backward else entries
        for file in open_in_order(ordered, self._options, lambda: self._likely_files):
            found.add(file.entry.found_in)
            yield file
        for entry in entries:
            if entry.found_in not in found:
                raise nothing_in(str(entry.found_in))
        if first is not None and backward:
            yield first

    def _expect(self, rows: int | None, file: OpenFile) -> None:
        """So many more rows are needed behind this file; None: all that there are."""
        self._most_rows = max(self._most_rows, file.num_rows, 1)
        self._likely_files = sys.maxsize if rows is None else rows // self._most_rows

    @cached_property
    def _first(self) -> OpenFile:
        """The first file, which settles the columns; it is not opened again."""
        if self._opened is None:
            self._opened = next(self._files())
        return self._opened

    def shares(self) -> Iterator[FileShare]:
        """What is read of each file, in order; files behind a window are not opened."""
        query, window = self._query, self._query.window
        if window.tail is not None:
            yield from self._tail_shares()
            return
        files = self._files()
        if query.rows is not None:
            files = _drained(self._needed_files(files))
        end = 0
        for file in files:
            start = _start(file, end)
            end = start + file.num_rows
            selected, window = file_rows(file.reader.blocks, start, query, window)
            self._expect(window.rows_needed, file)
            yield FileShare(file, start, selected)
            del file  # not to keep it open
            if window.is_over:
                return

    def _needed_files(self, files: Iterator[OpenFile]) -> list[OpenFile]:
        """The files up to the last row of `select_rows`, which must be in one of them."""
        needed, found, end = self._query.rows_needed, [], 0
        for file in files:
            file.source.rest()
            found.append(file)
            end = _start(file, end) + file.num_rows
            self._expect(needed - end, file)
            if end >= needed:
                break
        if not self._listing.is_split:  # a split has some of the rows only
            self._query.require_rows(end)
        return found

    def _tail_shares(self) -> Iterator[FileShare]:
        """The files from the end back to where the tail begins, in order."""
        query, window = self._query, self._query.window
        backward: Iterable[tuple[OpenFile, int]]
        if query.rows is None and query.row_index is None:
            backward = zip(self._files(backward=True), itertools.repeat(0))
        else:
            backward = self._placed_backward()
        shares: list[FileShare] = []
        for file, before in backward:
            file.source.rest()
            start = _start(file, before)
            selected, window = file_rows(file.reader.blocks, start, query, window)
            self._expect(window.rows_needed, file)
            shares.append(FileShare(file, start, selected))
            if window.is_over:
                break
        return _drained(shares[::-1])

    def _placed_backward(self) -> Iterator[tuple[OpenFile, int]]:
        """All files from the end on, and where each begins: counted from the beginning."""
        files = []
        for file in self._files():
            file.source.rest()
            files.append(file)
            self._expect(None, file)
        *starts, total = itertools.accumulate((file.num_rows for file in files), initial=0)
        if not self._listing.is_split:
            self._query.require_rows(total)
        return zip(reversed(files), reversed(starts), strict=True)


def _drained(items: list[T]) -> Iterator[T]:
    """The items in order, each let go of as it is handed out, so that files can close."""
    items.reverse()
    while items:
        yield items.pop()


def _start(file: OpenFile, running: int) -> int:
    """Where a file begins in the scan: settled for a split, else behind the files before it."""
    return running if file.entry.first_row is None else file.entry.first_row
