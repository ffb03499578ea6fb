"""How one file fills the columns of the result: leaves to decode, values of its folders, nulls."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from fretsaw.engine.paths import (
    READ_ALL,
    SCAN_ALONE,
    lacks_column,
    name_is_taken,
    types_differ,
)
from fretsaw.engine.query import Query
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.target import Target, made_up, require_unique, resolved_field
from fretsaw.errors import ColumnNotFoundError
from fretsaw.formats.interface import FileReader
from fretsaw.model.schema import SchemaNode, spelled, with_nulls
from fretsaw.model.widening import NoWiderType, holds, is_same, merged

Filling: TypeAlias = SchemaNode | pa.Scalar | Literal["row index"]
"""What a column is filled with: a node to read, the value it has in all of a file, or numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class FileColumns:
    """What a file gives to each column of the result."""

    file: str
    schema: pa.Schema
    nodes: tuple[SchemaNode, ...]
    """The tree of each column, by its name in the result; of one that the file lacks, or has in
    another type, that of the whole scan."""
    columns: tuple[Filling, ...]
    leaves: tuple[SchemaNode, ...]
    """Those of all columns that are read."""
    names: tuple[str, ...]
    """What files and folders call the columns."""

    def of_file(self, file: str, constants: Mapping[str, pa.Scalar]) -> "FileColumns":
        """The same for another file with the same schema, and with values of its own."""
        columns = tuple(
            constants.get(name, column) if isinstance(column, pa.Scalar) else column
            for name, column in zip(self.names, self.columns, strict=True)
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
    request: ScanRequest,
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
        for field, node, paths in zip(schema, target.nodes, target.asked, strict=True):
            if field.name in target.partitions:
                columns.append(constants[field.name])
                continue
            try:
                columns.append(resolved_field(reader, file, paths, hint)[1])
            except ColumnNotFoundError as error:
                if error.is_ambiguous:
                    raise
                if not request.missing_is_null:
                    if file == target.source:
                        raise
                    raise lacks_column(file, field.name, target.source) from None
                found = None
                if request.widens_types:
                    found = _found_parts(reader, file, node)
                columns.append(null_of(field.type) if found is None else found)
    _require_fitting(columns, file, target, request)
    leaves = [leaf for c in columns if isinstance(c, SchemaNode) for leaf in c.leaves()]
    nodes = [
        column
        if isinstance(column, SchemaNode) and with_nulls(column.arrow_type) == with_nulls(kind)
        else node
        for column, node, kind in zip(columns, target.nodes, schema.types, strict=True)
    ]
    names = tuple(schema.names)
    filled = FileColumns(file, schema, tuple(nodes), tuple(columns), tuple(leaves), names)
    query = request.query
    return _renamed(_with_places(filled, constants, query), query.renamed)


def _with_places(
    filled: FileColumns, constants: Mapping[str, pa.Scalar], query: Query
) -> FileColumns:
    """The columns and, as far as they are asked for, where each row comes from."""
    schema, nodes, columns = filled.schema, list(filled.nodes), list(filled.columns)
    row_index, file_path = query.row_index, query.file_path
    dropped = set(map(spelled, query.dropped))
    for name in (row_index, file_path):
        if name is not None and (name in schema.names or row_index == file_path):
            raise name_is_taken(filled.file, name)
    if row_index is not None and row_index not in dropped:
        field = pa.field(row_index, pa.int64(), nullable=False)
        schema = schema.insert(0, field)
        nodes.insert(0, made_up(field))
        columns.insert(0, "row index")
    if file_path is not None and file_path not in dropped:
        field = pa.field(file_path, pa.string(), nullable=False)
        schema = schema.append(field)
        nodes.append(made_up(field))
        columns.append(constants[file_path])
    return replace(
        filled,
        schema=schema,
        nodes=tuple(nodes),
        columns=tuple(columns),
        names=tuple(schema.names),
    )


def _renamed(filled: FileColumns, names: Mapping[str, str]) -> FileColumns:
    """The columns by the names that the result is to have."""
    if not names:
        return filled
    before = filled.names
    for name in names:
        if before.count(name) > 1:
            raise ColumnNotFoundError.ambiguous(name, before.count(name), filled.file, READ_ALL)
        if name not in before:
            raise ColumnNotFoundError.among(name, before, filled.file)
    after = [names.get(name, name) for name in before]
    for name in names.values():
        if after.count(name) > 1:
            raise name_is_taken(filled.file, name)
    return replace(
        filled,
        schema=pa.schema(
            [field.with_name(name) for field, name in zip(filled.schema, after, strict=True)],
            filled.schema.metadata,
        ),
        nodes=tuple(node.renamed(name) for node, name in zip(filled.nodes, after, strict=True)),
    )


def _found_parts(reader: FileReader, file: str, wanted: SchemaNode) -> SchemaNode | None:
    """What a file has of a column of which it lacks parts, or what tells which of them are null.

    None if it has no such column at all.
    """
    if reader.field_names.count(wanted.name) != 1:
        return None
    _, (top,) = reader.describe([reader.field_names.index(wanted.name)])
    found = [_nearest(top, leaf.path[1:]).path for leaf in wanted.leaves()]
    return resolved_field(reader, file, found)[1]


def _nearest(top: SchemaNode, path: tuple[str, ...]) -> SchemaNode:
    """A leaf, or the one that is easiest to read of what there is around it."""
    around = top.find(path)
    while around is None:
        path = path[:-1]
        around = top.find(path)
    return min(around.leaves(), key=lambda leaf: (leaf.is_repeated, len(leaf.path)))


def _require_fitting(
    columns: Sequence[Filling], file: str, target: Target, request: ScanRequest
) -> None:
    """Refuse a type that the column of the result does not hold."""
    for field, node, column in zip(target.schema, target.nodes, columns, strict=True):
        if not isinstance(column, SchemaNode) or is_same(column.arrow_type, field.type):
            continue
        gains_fields = request.missing_is_null
        if request.widens_types and holds(node, column, gains_fields):
            continue
        hint = ""
        if not request.widens_types:
            with suppress(NoWiderType):
                merged(node, column, gains_fields)
                hint = 'read a type that holds both with fs.scan(..., types="widen"), '
        types = f"{column.arrow_type} here and {field.type}"
        raise types_differ(file, field.name, types, target.source, hint)
