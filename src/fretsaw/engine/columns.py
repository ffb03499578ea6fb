"""The columns of the result: settled once, then filled by each file of the scan.

A `FileColumns` says what one file gives: leaves to decode, values of its folders, or nulls; files
with one schema share it, and the condition that the predicate becomes for them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from fretsaw.engine.files import Files, OpenFile
from fretsaw.engine.paths import (
    READ_ALL,
    SCAN_ALONE,
    TEST_ANOTHER,
    find_column,
    lacks_column,
)
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.target import Target, made_up, require_unique, resolved_field, target_of, union
from fretsaw.errors import ColumnNotFoundError, SchemaMismatchError
from fretsaw.formats.interface import FileReader
from fretsaw.model.locks import once
from fretsaw.model.schema import Path, SchemaNode, spelled, with_nulls
from fretsaw.predicates.bind import Found, resolve
from fretsaw.predicates.condition import Condition
from fretsaw.predicates.expression import columns_of
from fretsaw.storage.listing import Listing

Filling: TypeAlias = SchemaNode | pa.Scalar | Literal["row index"]
"""What a column is filled with: a node to read, the value it has in all of a file, or numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class FileColumns:
    """What a file gives to each column of the result."""

    file: str
    schema: pa.Schema
    nodes: tuple[SchemaNode, ...]
    """The tree of each column; of one that the file lacks, as another file has it."""
    columns: tuple[Filling, ...]
    leaves: tuple[SchemaNode, ...]

    def of_file(self, file: str, constants: Mapping[str, pa.Scalar]) -> "FileColumns":
        """The same for another file with the same schema, and with values of its own."""
        columns = tuple(
            constants.get(name, column) if isinstance(column, pa.Scalar) else column
            for name, column in zip(self.schema.names, self.columns, strict=True)
        )
        return replace(self, file=file, columns=columns)


def null_of(arrow_type: pa.DataType) -> pa.Scalar:
    """A null of any type; `pa.scalar` knows no lists of extension types."""
    return pa.nulls(1, arrow_type)[0]


def fill(
    reader: FileReader,
    file: str,
    target: Target,
    constants: Mapping[str, pa.Scalar],
    missing_is_null: bool,
    row_index: str | None,
    file_path: str | None,
) -> FileColumns:
    """Fill the target's columns from one file; its path is among the `constants`."""
    columns: list[Filling] = []
    schema = target.schema
    if tuple(reader.field_names) == target.names:
        columns = list(reader.describe(range(len(schema)))[1])
    else:
        wanted = set(schema.names)
        own = [p for p, name in enumerate(reader.field_names) if name in wanted]
        reader.describe(own)  # all at once
        require_unique(schema.names, target.source)
        hint = READ_ALL if file == target.source else SCAN_ALONE
        for field, paths in zip(schema, target.asked, strict=True):
            if field.name in target.partitions:
                columns.append(constants[field.name])
                continue
            try:
                columns.append(resolved_field(reader, file, paths, hint)[1])
            except ColumnNotFoundError as error:
                if error.is_ambiguous:
                    raise
                if not missing_is_null:
                    if file == target.source:
                        raise
                    raise lacks_column(file, field.name, target.source) from None
                columns.append(null_of(field.type))
    _require_same_types(columns, file, target)
    leaves = [leaf for c in columns if isinstance(c, SchemaNode) for leaf in c.leaves()]
    nodes = [
        column if isinstance(column, SchemaNode) else node
        for column, node in zip(columns, target.nodes, strict=True)
    ]
    _require_new(file, schema.names, row_index, file_path)
    if row_index is not None:
        field = pa.field(row_index, pa.int64(), nullable=False)
        schema = schema.insert(0, field)
        nodes.insert(0, made_up(field))
        columns.insert(0, "row index")
    if file_path is not None:
        field = pa.field(file_path, pa.string(), nullable=False)
        schema = schema.append(field)
        nodes.append(made_up(field))
        columns.append(constants[file_path])
    return FileColumns(file, schema, tuple(nodes), tuple(columns), tuple(leaves))


def _require_same_types(columns: Sequence[Filling], file: str, target: Target) -> None:
    for field, column in zip(target.schema, columns, strict=True):
        if isinstance(column, SchemaNode) and with_nulls(column.arrow_type) != with_nulls(
            field.type
        ):
            raise SchemaMismatchError(
                f"{file}: column {field.name!r} is {column.arrow_type} here and {field.type} in "
                f"{target.source}; cast one of them, or scan them apart"
            )


def _require_new(
    file: str, names: Sequence[str], row_index: str | None, file_path: str | None
) -> None:
    for name in (row_index, file_path):
        if name is not None and (name in names or row_index == file_path):
            raise ValueError(f"{file}: there is a column {name!r} already; choose another name")


class Columns:
    """The columns of a scan: settled once, then how each file fills them and checks its rows."""

    def __init__(self, files: Files, listing: Listing, request: ScanRequest) -> None:
        self._files = files
        self._listing = listing
        self._query = request.query
        self._missing_is_null = request.missing_is_null
        self._settled = request.target
        self._of_schema: dict[object, FileColumns] = {}
        self._conditions: dict[object, Condition] = {}

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
            if self._missing_is_null and not self._listing.is_split:
                for file, _ in self._where_found(self._checked, TEST_ANOTHER):
                    self.condition(file)
            self.condition(self._files.first)

    def of(self, file: OpenFile) -> FileColumns:
        """How one file fills the columns; files with the same schema share it."""
        constants = self._listing.constants(file.entry)
        if self._query.file_path is not None:
            constants[self._query.file_path] = pa.scalar(file.name)
        same = self._of_schema.get(file.reader.fields)
        if same is not None:
            return same.of_file(file.name, constants)
        found = fill(
            file.reader,
            file.name,
            self.target,
            constants,
            self._missing_is_null,
            self._query.row_index,
            self._query.file_path,
        )
        self._of_schema[file.reader.fields] = found
        return found

    def condition(self, file: OpenFile) -> Condition:
        """The predicate for one file; files with the same schema and folders share it."""
        assert self._query.predicate is not None
        constants = {}
        if any(spelled(path) in self._listing.partitions.names for path in self._checked):
            constants = self._listing.constants(file.entry)
        key = (file.reader.fields, *(value.as_py() for value in constants.values()))
        if key in self._conditions:
            return self._conditions[key]

        def find(path: Path) -> Found:
            if spelled(path) in constants:
                return constants[spelled(path)]
            try:
                return find_column(file.reader, file.name, path, TEST_ANOTHER)
            except ColumnNotFoundError as error:
                if error.is_ambiguous:
                    raise
                if self._missing_is_null:
                    return pa.scalar(None)
                if self._settled is None and file is self._files.first:
                    raise
                raise lacks_column(file.name, spelled(path), self.target.source) from None

        self._conditions[key] = resolve(self._query.predicate, find, file.name)
        return self._conditions[key]

    @once
    def target(self) -> Target:
        """The columns of the result; a part of a scan has those of the whole."""
        if self._settled is not None:
            return self._settled
        listing, columns = self._listing, self._query.columns
        if self._missing_is_null:
            # Any file may be the first to have a column.
            targets = [
                target_of(file.reader, file.name, found, listing.partitions, listing.several)
                for file, found in self._where_found(columns)
            ]
            if targets:
                return union(targets, columns)
        first = self._files.settling
        return target_of(first.reader, first.name, columns, listing.partitions, listing.several)

    @once
    def _checked(self) -> Sequence[Path]:
        """The columns that the predicate tests."""
        return [] if self._query.predicate is None else list(columns_of(self._query.predicate))

    def _where_found(
        self, columns: Sequence[Path] | None, if_repeated: str = READ_ALL
    ) -> Iterator[tuple[OpenFile, Sequence[Path] | None]]:
        """For each file, the columns that no file before it has; no predicate leaves one out."""
        missing = list(columns or [])
        error: ColumnNotFoundError | None = None
        for file in self._files.all_in_order():
            if columns is None:
                yield file, None
                continue
            found = []
            for column in missing:
                try:
                    if spelled(column) not in self._listing.partitions.names:
                        find_column(file.reader, file.name, column, if_repeated)
                    found.append(column)
                except ColumnNotFoundError as not_here:
                    if not_here.is_ambiguous:
                        raise
                    error = error or not_here
            yield file, found
            missing = [column for column in missing if column not in found]
            if not missing:
                return
        if missing and error is not None:
            raise error
