"""The columns a scan asks for, and how the files of the scan fill them.

A `Target` says which columns the result has; it is settled by the first files. A `Projection` fills
them from one file: with leaves to decode and zip, with values of the file's folders, or with nulls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import pyarrow as pa

from fretsaw.engine.paths import READ_ALL, SCAN_ALONE, RepeatedNameError, lacks_column
from fretsaw.engine.target import Target, made_up, require_unique, resolved_field
from fretsaw.errors import ColumnNotFoundError, SchemaMismatchError
from fretsaw.formats.interface import FileReader
from fretsaw.model.nested import MisalignedLeaves, assemble, only_chunk
from fretsaw.model.schema import SchemaNode, with_nulls
from fretsaw.model.selection import RowSelection
from fretsaw.results.tables import filled, misaligned, only_rows

Filling: TypeAlias = SchemaNode | pa.Scalar | Literal["row index"]
"""What a column is filled with: a node to read, the value it has in all of a file, or numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """What is read of each row of a file, and how it is put together."""

    file: str
    schema: pa.Schema
    nodes: tuple[SchemaNode, ...]
    """The tree of each column; of one that the file lacks, as another file has it."""
    columns: tuple[Filling, ...]
    leaves: tuple[SchemaNode, ...]

    def of_file(self, file: str, constants: Mapping[str, pa.Scalar]) -> "Projection":
        """The same for another file with the same schema, and with values of its own."""
        columns = tuple(
            constants.get(name, column) if isinstance(column, pa.Scalar) else column
            for name, column in zip(self.schema.names, self.columns, strict=True)
        )
        return replace(self, file=file, columns=columns)

    def result(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> pa.Table:
        """Decoded leaves as a table; `rows` are counted from `first_row` of the scan."""
        remaining = iter(arrays)
        columns = []
        for column, arrow_type in zip(self.columns, self.schema.types, strict=True):
            if isinstance(column, SchemaNode):
                leaves = [next(remaining) for _ in column.leaves()]
                columns.append(self._assembled(column, leaves, arrow_type))
            else:
                columns.append(filled(column, rows, first_row))
        if columns:
            return pa.Table.from_arrays(columns, schema=self.schema)
        return only_rows(rows.selected_count, self.schema)

    def _assembled(
        self, node: SchemaNode, leaves: Sequence[pa.ChunkedArray], arrow_type: pa.DataType
    ) -> pa.ChunkedArray:
        if node.is_leaf:
            column = leaves[0]
        else:
            try:
                whole = [only_chunk(leaf) for leaf in leaves]
                column = pa.chunked_array([assemble(node, whole)])
            except MisalignedLeaves as error:
                raise misaligned(self.file, error) from None
        # Files may differ in what their types say about nulls.
        return column if column.type == arrow_type else column.cast(arrow_type)


def null_of(arrow_type: pa.DataType) -> pa.Scalar:
    """A null of any type; `pa.scalar` knows no lists of extension types."""
    return pa.nulls(1, arrow_type)[0]


class RowCount:
    """Only how many rows there are: nothing is made for each, since a file may claim any number."""

    leaves: Sequence[SchemaNode] = ()

    def result(self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int) -> int:
        """How many rows are selected."""
        return rows.selected_count


def project(
    reader: FileReader,
    file: str,
    target: Target,
    constants: Mapping[str, pa.Scalar],
    missing_is_null: bool,
    row_index: str | None,
    file_path: str | None,
) -> Projection:
    """Fill the target's columns from one file; its path is among the `constants`."""
    columns: list[Filling] = []
    schema = target.schema
    if tuple(reader.field_names) == target.names:
        columns = list(reader.describe(range(len(schema)))[1])
    else:
        own = [p for p, name in enumerate(reader.field_names) if name in schema.names]
        reader.describe(own)  # all at once
        require_unique(schema.names, target.source)
        hint = READ_ALL if file == target.source else SCAN_ALONE
        for field, paths in zip(schema, target.asked, strict=True):
            if field.name in target.partitions:
                columns.append(constants[field.name])
                continue
            try:
                columns.append(resolved_field(reader, file, paths, hint)[1])
            except RepeatedNameError:
                raise
            except ColumnNotFoundError as error:
                if not missing_is_null:
                    if file == target.source:
                        raise error
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
    return Projection(file, schema, tuple(nodes), tuple(columns), tuple(leaves))


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
