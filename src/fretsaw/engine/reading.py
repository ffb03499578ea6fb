"""One reading of a scan: its files opened as far as needed, its columns settled, its rows found.

Windows and selections count over all files of the scan, so a file's share of them depends on the
files before it (for `tail`, on those behind it). A reading is used once and then forgotten.
"""

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from fretsaw.engine.columns import Projection, RowCount, project
from fretsaw.engine.files import OpenFile, open_in_order
from fretsaw.engine.paths import (
    READ_ALL,
    TEST_ANOTHER,
    RepeatedNameError,
    find_column,
    lacks_column,
)
from fretsaw.engine.plan import FileRows, file_rows
from fretsaw.engine.query import Query, Window
from fretsaw.engine.run import BlockWork, Execution, Shape
from fretsaw.engine.survey import Surveyed, survey
from fretsaw.engine.target import Target, target_of, union
from fretsaw.errors import ColumnNotFoundError
from fretsaw.formats.interface import ReadOptions
from fretsaw.model.locks import once
from fretsaw.model.schema import Path, SchemaNode, spelled
from fretsaw.model.trace import Pruned, record_pruned
from fretsaw.predicates.bind import Found, resolve
from fretsaw.predicates.condition import Condition
from fretsaw.predicates.evaluate import whether_true
from fretsaw.predicates.expression import columns_of
from fretsaw.results.leaves import LeafNames, LeafProjection, Leaves, apart
from fretsaw.results.tables import concat
from fretsaw.storage.listing import Entry, Listing, nothing_in

COUNT_PIECE = 64 << 20
"""Bytes of checked columns that are decoded in one go to count."""

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
        settled: Target | None = None,
    ) -> None:
        self.listing = listing
        self._options = options
        self.query = query
        self._missing_is_null = missing_is_null
        self._opened = opened
        self._settled = settled
        if query.numbers_rows and listing.is_split and listing.entries[0].first_row is None:
            raise ValueError(
                "rows cannot be numbered in a split whose scan dropped files by their folders: "
                "call with_row_index() or select_rows() before splits()"
            )
        self.passed_over: list[Entry] = []
        """What was found in directories and globs and is no file to read."""
        self._projections: dict[object, Projection] = {}
        self._leaf_names: dict[object, LeafNames] = {}
        self._conditions: dict[object, Condition] = {}
        self._most_rows = 0
        self._likely_files = 0

    @once
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self.projection(self._settling).schema

    @property
    def nodes(self) -> Sequence[SchemaNode]:
        """The tree of each column of the result."""
        return self.projection(self._settling).nodes

    def tables(self, piece_bytes: int) -> Iterator[pa.Table]:
        """The result, in pieces of about so many bytes."""
        self.check()
        return self._run(self.projection, piece_bytes)

    def leaves(self, piece_bytes: int, leaf: Path | int | None = None) -> Iterator[Leaves]:
        """The result leaf by leaf, of all leaves or of one."""
        self.check()
        self._apart(self._settling, leaf)  # to see whether there is such a leaf
        return self._run(lambda file: self._apart(file, leaf), piece_bytes)

    def table(self, piece_bytes: int) -> pa.Table:
        """All of the result."""
        return concat(list(self.tables(piece_bytes)), self.schema)

    def check(self) -> None:
        """Check what was asked for against the file that settles it; no data is read."""
        _ = self.schema
        if self.query.predicate is not None:
            if self._missing_is_null and not self.listing.is_split:
                for file, _ in self._where_found(self._checked, TEST_ANOTHER):
                    self.condition(file)
            self.condition(self._first)

    def count(self) -> int:
        """How many rows the result has."""
        self.check()
        if self.query.predicate is not None:
            return sum(self._run(lambda _: RowCount(), COUNT_PIECE))
        if self.query.selects_all and not self.query.window:
            self._likely_files = sys.maxsize
            return sum(file.num_rows for file in self._files())
        return sum(share.selected.selected_count for share in self.shares())

    def _run(self, shape_of: Callable[[OpenFile], Shape[T]], piece_bytes: int) -> Iterator[T]:
        query = self.query
        # Without a predicate the window is in the shares already.
        window = Window() if query.predicate is None else query.window
        results = Execution(self._work(shape_of), window, piece_bytes).results()
        if window.tail is None:
            return results
        return iter(list(results)[::-1])

    def _work(self, shape_of: Callable[[OpenFile], Shape[T]]) -> Iterator[BlockWork[T]]:
        """The blocks to read, in order; from the end on for a tail under a predicate."""
        for share in self.shares():
            shape: Shape[T] | None = None
            for surveyed in self.surveyed(share, shape_of):
                shape = shape or shape_of(share.file)
                selected = surveyed.selected
                first_row = share.first_row + selected.block.first_row
                yield BlockWork(share.file, selected, surveyed.search, shape, first_row)

    def surveyed(
        self, share: FileShare, shape_of: Callable[[OpenFile], Shape[object]]
    ) -> Iterator[Surveyed]:
        """The blocks of a file in which something may match."""
        window, kept = self.query.window, share.selected.kept
        if self.query.predicate is None:
            return iter([Surveyed(selected, None) for selected in kept])
        ordered = kept if window.tail is None else kept[::-1]
        few = window.rows_needed is not None
        condition = self.condition(share.file)
        return survey(
            share.file,
            condition,
            ordered,
            lambda: shape_of(share.file).leaves,
            few,
            self.believes_indexes,
        )

    @property
    def believes_indexes(self) -> bool:
        """Whether what indexes say about values counts."""
        return self._options.indexes

    def condition(self, file: OpenFile) -> Condition:
        """The predicate for one file; files with the same schema and folders share it."""
        assert self.query.predicate is not None
        constants = {}
        if any(spelled(path) in self.listing.partitions.names for path in self._checked):
            constants = self.listing.constants(file.entry)
        key = (file.reader.fields, *(value.as_py() for value in constants.values()))
        if key in self._conditions:
            return self._conditions[key]

        def find(path: Path) -> Found:
            if spelled(path) in constants:
                return constants[spelled(path)]
            try:
                return find_column(file.reader, file.name, path, TEST_ANOTHER)
            except RepeatedNameError:
                raise
            except ColumnNotFoundError:
                if self._missing_is_null:
                    return pa.scalar(None)
                if self._settled is None and file is self._first:
                    raise
                raise lacks_column(file.name, spelled(path), self.target.source) from None

        self._conditions[key] = resolve(self.query.predicate, find, file.name)
        return self._conditions[key]

    @once
    def _checked(self) -> Sequence[Path]:
        """The columns that the predicate tests."""
        return [] if self.query.predicate is None else list(columns_of(self.query.predicate))

    # Columns ------------------------------------------------------------------------------------

    def projection(self, file: OpenFile) -> Projection:
        """How one file fills the columns; files with the same schema share it."""
        constants = self.listing.constants(file.entry)
        if self.query.file_path is not None:
            constants[self.query.file_path] = pa.scalar(file.name)
        same = self._projections.get(file.reader.fields)
        if same is not None:
            return same.of_file(file.name, constants)
        projection = project(
            file.reader,
            file.name,
            self.target,
            constants,
            self._missing_is_null,
            self.query.row_index,
            self.query.file_path,
        )
        self._projections[file.reader.fields] = projection
        return projection

    def _apart(self, file: OpenFile, leaf: Path | int | None) -> LeafProjection:
        """The same leaf by leaf, of all leaves or of one."""
        projection = self.projection(file)
        names = self._leaf_names.get(file.reader.fields)
        if names is None:
            several, nodes = self.listing.several, projection.nodes
            names = LeafNames.of([node.optional() for node in nodes] if several else nodes)
            self._leaf_names[file.reader.fields] = names
        leaves = apart(projection, names)
        return leaves if leaf is None else leaves.only(names.place(leaf))

    @once
    def target(self) -> Target:
        """The columns of the result; a part of a scan has those of the whole."""
        if self._settled is not None:
            return self._settled
        listing, columns = self.listing, self.query.columns
        if self._missing_is_null:
            # Any file may be the first to have a column.
            targets = [
                target_of(file.reader, file.name, found, listing.partitions, listing.several)
                for file, found in self._where_found(columns)
            ]
            if targets:
                return union(targets, columns)
        first = self._settling
        return target_of(first.reader, first.name, columns, listing.partitions, listing.several)

    def _where_found(
        self, columns: Sequence[Path] | None, if_repeated: str = READ_ALL
    ) -> Iterator[tuple[OpenFile, Sequence[Path] | None]]:
        """For each file, the columns that no file before it has; no predicate leaves one out."""
        missing = list(columns or [])
        error: ColumnNotFoundError | None = None
        for file in self._all_files():
            if columns is None:
                yield file, None
                continue
            found = []
            for column in missing:
                try:
                    if spelled(column) not in self.listing.partitions.names:
                        find_column(file.reader, file.name, column, if_repeated)
                    found.append(column)
                except RepeatedNameError:
                    raise
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
        """The files that folders leave, opened in order as they are asked for."""
        entries, first = self.entries, self._opened
        found = {None, *(entry.found_in for entry in self.listing.entries)}
        found -= {entry.found_in for entry in entries}
        if first is not None:
            found.add(first.entry.found_in)
            entries = entries[entries.index(first.entry) + 1 :]
            if not backward:
                yield first
        ordered = entries[::-1] if backward else entries
        like = None if first is None else first.reader
        likely, others = (lambda: self._likely_files), self.passed_over
        for file in open_in_order(ordered, self._options, likely, like, others):
            found.add(file.entry.found_in)
            yield file
        for entry in entries:
            if entry.found_in not in found and not self.listing.is_split:
                raise nothing_in(str(entry.found_in))
        if first is not None and backward:
            yield first

    def _all_files(self) -> Iterator[OpenFile]:
        """All files, also those that their folders rule out."""
        entries = self.listing.entries
        if len(self.entries) == len(entries):
            yield from self._files()
            return
        like = None
        if self._settles_apart:
            yield self._settling
            like = self._settling.reader
            entries = entries[entries.index(self._settling.entry) + 1 :]
        yield from open_in_order(entries, self._options, lambda: self._likely_files, like)

    @once
    def entries(self) -> Sequence[Entry]:
        """The files that the values of their folders do not rule out."""
        listing, predicate = self.listing, self.query.predicate
        if predicate is None or not listing.partitions.names or self.query.numbers_rows:
            return listing.entries
        nodes = {
            field.name: SchemaNode(
                field.name, (field.name,), "leaf", True, field.type, leaf_index=n
            )
            for n, field in enumerate(listing.partitions)
        }

        def find(path: Path) -> Found | None:
            node = nodes.get(spelled(path))
            return None if node is None else (node, node)

        condition = resolve(predicate, find, listing.name)
        if isinstance(condition, bool):
            return listing.entries if condition else ()
        true = whether_true(condition, lambda leaf: listing.folder_values(leaf.name))
        kept = tuple(entry for entry, may in zip(listing.entries, true, strict=True) if may)
        dropped = len(listing.entries) - len(kept)
        record_pruned(Pruned(listing.name, "file", "folders", len(kept), dropped, 0))
        return kept

    def _expect(self, rows: int | None, file: OpenFile) -> None:
        """So many more rows are needed behind this file; None: all that there are."""
        self._most_rows = max(self._most_rows, file.num_rows, 1)
        self._likely_files = sys.maxsize if rows is None else rows // self._most_rows

    @property
    def _settles_apart(self) -> bool:
        """Whether folders may drop the very file that settles the columns.

        Those of a part of a scan are settled already.
        """
        return self._settled is None and len(self.entries) < len(self.listing.entries)

    @once
    def _settling(self) -> OpenFile:
        """The file that settles the columns: the first of all, whatever the predicate."""
        return self._first_listed() if self._settles_apart else self._first

    @once
    def _first(self) -> OpenFile:
        """The first file that folders leave, or of all if they leave none; not opened again."""
        if self._opened is None:
            if self._settles_apart and self._settling.entry in self.entries:
                self._opened = self._settling
            else:
                self._opened = next(self._files(), None)
        if self._opened is None:  # none may match: the first says what the columns would be
            return self._settling if self._settles_apart else self._first_listed()
        return self._opened

    def _first_listed(self) -> OpenFile:
        first = next(open_in_order(self.listing.entries, self._options, lambda: 0), None)
        if first is None:
            raise nothing_in(self.listing.name)
        return first

    @property
    def knows_places(self) -> bool:
        """Whether the first row of each share is its place in the whole scan."""
        if self.listing.is_split:
            return self.listing.entries[0].first_row is not None
        return self.query.numbers_rows or len(self.entries) == len(self.listing.entries)

    def shares(self) -> Iterator[FileShare]:
        """What is read of each file, in order; files behind a window are not opened."""
        query, window = self.query, self.query.window
        if query.predicate is not None:
            yield from self._shares_to_search()
            return
        if window.tail is not None:
            yield from self._tail_shares()
            return
        for file, start in self._placed():
            selected, window = file_rows(file.reader.blocks, start, query, window)
            self._expect(window.rows_needed, file)
            yield FileShare(file, start, selected)
            del file  # not to keep it open
            if window.is_over:
                return

    def _shares_to_search(self) -> Iterator[FileShare]:
        """All files, from the end on for a tail: nobody knows yet which rows match."""
        query = self.query
        placed = self._placed() if query.window.tail is None else self._backward()
        for file, start in placed:
            selected, _ = file_rows(file.reader.blocks, start, query, Window())
            yield FileShare(file, start, selected)
            del file  # not to keep it open

    def _placed(self) -> Iterator[tuple[OpenFile, int]]:
        """The files that hold rows, and where each begins."""
        files = self._files()
        if self.query.rows is not None:
            files = _drained(self._needed_files(files))
        elif self.query.window.rows_needed is None:
            self._likely_files = sys.maxsize
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
            self._expect(needed - end, file)
            if end >= needed:
                break
        if not self.listing.is_split:  # a split has some of the rows only
            self.query.require_rows(end)
        return found

    def _tail_shares(self) -> Iterator[FileShare]:
        """The files from the end back to where the tail begins, in order."""
        query, window = self.query, self.query.window
        shares: list[FileShare] = []
        for file, start in self._backward():
            file.source.rest()
            selected, window = file_rows(file.reader.blocks, start, query, window)
            self._expect(window.rows_needed, file)
            shares.append(FileShare(file, start, selected))
            if window.is_over:
                break
        return _drained(shares[::-1])

    def _backward(self) -> Iterator[tuple[OpenFile, int]]:
        """The files from the end on, and where each begins, if anybody wants to know."""
        if not self.query.numbers_rows:
            return zip(self._files(backward=True), itertools.repeat(0))
        return self._placed_backward()

    def _placed_backward(self) -> Iterator[tuple[OpenFile, int]]:
        """All files from the end on, and where each begins: counted from the beginning."""
        files = []
        for file in self._files():
            file.source.rest()
            files.append(file)
            self._expect(None, file)
        starts, end = [], 0
        for file in files:
            starts.append(_start(file, end))
            end = starts[-1] + file.num_rows
        if not self.listing.is_split:
            self.query.require_rows(end)
        return zip(reversed(files), reversed(starts), strict=True)


def _drained(items: list[T]) -> Iterator[T]:
    """The items in order, each let go of as it is handed out, so that files can close."""
    items.reverse()
    while items:
        yield items.pop()


def _start(file: OpenFile, running: int) -> int:
    """Where a file begins in the scan: settled for a split, else behind the files before it."""
    return running if file.entry.first_row is None else file.entry.first_row
