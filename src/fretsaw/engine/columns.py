"""The columns of the result: settled once, then filled by each file of the scan.

Files with one schema share how they fill the columns (`FileColumns`), and the condition that the
predicate becomes for them.
"""

from collections.abc import Container, Sequence
from dataclasses import replace

import pyarrow as pa

from fretsaw.engine.files import Files, OpenFile
from fretsaw.engine.filling import FileColumns, fill
from fretsaw.engine.paths import READ_ALL, TEST_ANOTHER, find_column, lacks_column, name_is_taken
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.row_numbers import number_node
from fretsaw.engine.target import Target, target_of, tested_part, union, widest, without
from fretsaw.engine.widened_tests import as_stored, tested_column
from fretsaw.errors import ColumnNotFoundError
from fretsaw.model.locks import once
from fretsaw.model.schema import Path, SchemaNode, spelled
from fretsaw.predicates.bind import resolve
from fretsaw.predicates.columns import Found
from fretsaw.predicates.condition import Condition
from fretsaw.predicates.expression import columns_of
from fretsaw.storage.listing import Listing


class Columns:
    """The columns of a scan: settled once, then how each file fills them and checks its rows."""

    def __init__(self, files: Files, listing: Listing, request: ScanRequest) -> None:
        self._files = files
        self._listing = listing
        self._query = request.query
        self._request = request
        self._missing_is_null = request.missing_is_null
        self._settled = request.target
        self._of_schema: dict[object, FileColumns] = {}
        self._conditions: dict[object, Condition] = {}
        self._introducing: list[OpenFile] = []
        """Files that are the first to have a column that is tested."""

    @once
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self.of(self._files.settling).schema

    @property
    def nodes(self) -> Sequence[SchemaNode]:
        """The tree of each column of the result."""
        return self.of(self._files.settling).nodes

    def check(self) -> None:
        """Check what was asked for against the file that settles it; no data is read."""
        _ = self.schema
        if self._query.predicate is not None:
            while self._introducing:
                self.condition(self._introducing.pop())
            self.condition(self._files.first)

    def of(self, file: OpenFile) -> FileColumns:
        """How one file fills the columns; files with the same schema share it."""
        constants = self._listing.constants(file.entry)
        if self._query.file_path is not None:
            constants[self._query.file_path] = pa.scalar(file.name)
        same = self._of_schema.get(file.reader.fields)
        if same is not None:
            return same.of_file(file.name, constants)
        found = fill(file.reader, file.name, self.target, constants, self._request)
        self._of_schema[file.reader.fields] = found
        return found

    def condition(self, file: OpenFile) -> Condition:
        """The predicate for one file; files with the same schema and folders share it."""
        assert self._query.predicate is not None
        constants = {}
        row_index, file_path = self._query.row_index, self._query.file_path
        if not self._checked_names.isdisjoint(self._listing.partitions.names):
            constants = self._listing.constants(file.entry)
        if file_path is not None and file_path in self._checked_names:
            constants[file_path] = pa.scalar(file.name)
        key = (file.reader.fields, *(value.as_py() for value in constants.values()))
        if key in self._conditions:
            return self._conditions[key]
        leaves: dict[int, SchemaNode] = {}

        def find(path: Path) -> Found:
            name = spelled(path)
            if name in (row_index, file_path) and name in file.reader.field_names:
                raise name_is_taken(file.name, name)
            if name == row_index:
                return (node := number_node(name)), node
            if name in constants:
                return constants[name]
            try:
                found = tested_column(file, path, tested.get(path), self._request)
            except ColumnNotFoundError as error:
                if error.is_ambiguous:
                    raise
                if self._missing_is_null:
                    return pa.scalar(None)
                if self._settled is None and file is self._files.first:
                    raise
                raise lacks_column(file.name, name, self.target.source) from None
            if found is None:
                return pa.scalar(None)
            own = file.reader.describe([file.reader.field_names.index(found[0].name)])[1][0]
            leaves.update((leaf.leaf_index, leaf) for leaf in own.leaves())
            return found

        tested = dict(self.target.tested)
        resolved = resolve(self._query.predicate, find, file.name)
        self._conditions[key] = as_stored(resolved, leaves)
        return self._conditions[key]

    @once
    def target(self) -> Target:
        """The columns of the result; a part of a scan has those of the whole."""
        if self._settled is not None:
            return self._settled
        return without(self._whole_target(), self._query.dropped_from_files)

    def _whole_target(self) -> Target:
        """The columns of the result and those that are dropped from it."""
        listing, columns = self._listing, self._query.columns
        if self._request.widens_types and listing.several:
            return self._widened_target()
        if self._missing_is_null:
            return self._found_target()
        first = self._files.settling
        return target_of(first.reader, first.name, columns, listing.partitions, listing.several)

    def _found_target(self) -> Target:
        """The columns of all files, and what the predicate tests; any may be the first to have one.

        Files are opened up to the first that lacks nothing that those before it lack.
        """
        listing, columns = self._listing, self._query.columns
        wanted = _Search(columns or (), listing.partitions.names)
        checked = _Search(self._checked, self._made, TEST_ANOTHER)
        targets: list[Target] = []
        tested: dict[Path, SchemaNode] = {}
        for file in self._files.all_in_order():
            found = None if columns is None else wanted.found_in(file)
            target = target_of(file.reader, file.name, found, listing.partitions, listing.several)
            targets.append(target)
            new = checked.found_in(file)
            for path in new:
                if spelled(path) not in self._made:
                    tested[path] = tested_part(file.reader, file.name, path)
            if new:
                self._introducing.append(file)
            if columns is not None and not wanted.missing and not checked.missing:
                break
        wanted.require_all()
        checked.require_all()
        return replace(union(targets, columns), tested=tuple(tested.items()))

    def _widened_target(self) -> Target:
        """The columns with types that hold what every file has, and what the predicate tests."""
        partitions, columns = self._listing.partitions, self._query.columns
        targets: list[Target] = []
        tested: dict[Path, SchemaNode] = {}
        wanted = _Search(columns or (), partitions.names)
        checked = _Search(self._checked, self._made, TEST_ANOTHER)
        for file in self._files.all_in_order():
            found: Sequence[Path] | None = columns
            if columns is not None and (targets or self._missing_is_null):
                wanted.found_in(file)
                found = [column for column in columns if wanted.has(file, column)]
            targets.append(target_of(file.reader, file.name, found, partitions, True))
            if checked.found_in(file):
                self._introducing.append(file)
            for path in self._checked:
                if spelled(path) not in self._made and checked.has(file, path):
                    node = tested_part(file.reader, file.name, path)
                    widest(tested, path, node, file.name, self._missing_is_null)
        if self._missing_is_null:
            wanted.require_all()
            checked.require_all()
        whole = union(targets, columns, self._missing_is_null, widens_types=True)
        return replace(whole, tested=tuple(tested.items()))

    @once
    def _checked(self) -> Sequence[Path]:
        """The columns that the predicate tests."""
        return [] if self._query.predicate is None else list(columns_of(self._query.predicate))

    @once
    def _checked_names(self) -> frozenset[str]:
        return frozenset(map(spelled, self._checked))

    @once
    def _made(self) -> Container[str]:
        """The columns that predicates find though no file has them."""
        added = filter(None, (self._query.row_index, self._query.file_path))
        return frozenset((*self._listing.partitions.names, *added))


class _Search:
    """Columns that are looked for in one file after the other."""

    def __init__(
        self, columns: Sequence[Path], made: Container[str], if_repeated: str = READ_ALL
    ) -> None:
        self.missing = list(columns)
        """Those that no file has so far."""
        self._made = made
        self._if_repeated = if_repeated
        self._error: ColumnNotFoundError | None = None

    def has(self, file: OpenFile, column: Path) -> bool:
        """Whether a file has a column, or it is made for it."""
        try:
            if spelled(column) not in self._made:
                find_column(file.reader, file.name, column, self._if_repeated)
        except ColumnNotFoundError as error:
            if error.is_ambiguous:
                raise
            self._error = self._error or error
            return False
        return True

    def found_in(self, file: OpenFile) -> list[Path]:
        """Those of the missing columns that a file has."""
        found = [column for column in self.missing if self.has(file, column)]
        self.missing = [column for column in self.missing if column not in found]
        return found

    def require_all(self) -> None:
        """Refuse a column that no file has."""
        if self.missing and self._error is not None:
            raise self._error
