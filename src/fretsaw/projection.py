"""The columns a scan asks for, and how the files of the scan fill them.

A `Target` says which columns the result has; it is settled by the first files. A `Projection` fills
them from one file: with leaves to decode and zip, with values of the file's folders, or with nulls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.arrays import take_rows
from fretsaw.errors import ColumnNotFoundError, FileFormatError, SchemaMismatchError
from fretsaw.formats import FileReader
from fretsaw.nested import MisalignedLeaves, assemble
from fretsaw.schema import Path, SchemaNode, spelled
from fretsaw.selection import RowSelection


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The columns of the result, in order."""

    schema: pa.Schema
    asked: tuple[tuple[Path, ...], ...]
    """For each column, the paths by which it was asked for."""
    partitions: frozenset[str]
    """Those that come from folders."""
    source: str
    """The file that settled it, for messages."""
    names: tuple[str, ...] | None = None
    """The names of a file of which all columns are asked for, and nothing else."""


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """What is read of each row of a file, and how it is put together."""

    file: str
    schema: pa.Schema
    columns: tuple[SchemaNode | pa.Scalar, ...]
    """For each column, the field to read, or the value that it has in all of the file."""
    leaves: tuple[SchemaNode, ...]
    row_index: bool
    file_path: bool

    def of_file(self, file: str, constants: Mapping[str, pa.Scalar]) -> "Projection":
        """The same for another file with the same schema, and with values of its own folders."""
        fields = self.schema.names[self.row_index :]
        columns = tuple(
            column if isinstance(column, SchemaNode) else constants.get(name, column)
            for name, column in zip(fields, self.columns, strict=False)
        )
        return replace(self, file=file, columns=columns)

    def table(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> pa.Table:
        """Decoded leaves as a table; `rows` are counted from `first_row` of the scan."""
        count = rows.selected_count
        remaining = iter(arrays)
        columns: list[pa.ChunkedArray | pa.Array] = []
        if self.row_index:
            columns.append(pa.array(rows.indices() + first_row))
        for column in self.columns:
            if isinstance(column, SchemaNode):
                leaves = [next(remaining) for _ in column.leaves()]
                field = self.schema.field(len(columns))
                columns.append(self._assembled(column, leaves, field.type))
            else:
                columns.append(pa.repeat(column, count))
        if self.file_path:
            columns.append(pa.repeat(pa.scalar(self.file), count))
        if columns:
            return pa.Table.from_arrays(columns, schema=self.schema)
        return _only_rows(count, self.schema)

    def _assembled(
        self, node: SchemaNode, leaves: Sequence[pa.ChunkedArray], arrow_type: pa.DataType
    ) -> pa.ChunkedArray:
        if node.is_leaf:
            column = leaves[0]
        else:
            try:
                whole = [leaf.combine_chunks() for leaf in leaves]
                column = pa.chunked_array([assemble(node, whole)])
            except MisalignedLeaves as error:
                raise FileFormatError(
                    f"{self.file}: {error}; the file is corrupt, write or copy it again"
                ) from None
        # Files may differ in what their types say about nulls.
        return column if column.type == arrow_type else column.cast(arrow_type)


NO_COLUMNS = Projection("", pa.schema([]), (), (), row_index=False, file_path=False)
"""Only rows, to be counted."""


def concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """All tables as one."""
    if not schema.names:
        return _only_rows(sum(table.num_rows for table in tables), schema)
    return pa.concat_tables(tables) if tables else schema.empty_table()


def take(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Rows of a table by their numbers, in any order."""
    if not table.schema.names:
        return _only_rows(len(rows), table.schema)
    columns = [take_rows(column, rows) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _only_rows(count: int, schema: pa.Schema) -> pa.Table:
    """Rows of no columns: a table cannot be told how many, a batch of a struct can."""
    batch = pa.RecordBatch.from_struct_array(pa.nulls(count, pa.struct([])))
    return pa.Table.from_batches([batch], schema)


def target_of(
    reader: FileReader,
    file: str,
    columns: Sequence[Path] | None,
    partitions: pa.Schema,
    several: bool,
) -> Target:
    """Settle the columns by one file; all of its columns and folders, if none were named."""
    fields: list[pa.Field] = []
    asked: list[tuple[Path, ...]] = []
    if columns is None:
        own = [p for p, name in enumerate(reader.field_names) if name not in partitions.names]
        schema, _ = reader.describe(own)
        fields = [*schema, *partitions]
        asked = [((field.name,),) for field in fields]
    else:
        names = reader.field_names
        groups = _grouped(columns, names, partitions.names, file)
        reader.describe([names.index(top) for top in groups if top not in partitions.names])
        for top, paths in groups.items():
            if top in partitions.names:
                fields.append(partitions.field(top))
            else:
                fields.append(_resolve(reader, file, paths)[0])
            asked.append(tuple(paths))
        schema, _ = reader.describe([])
    if several:
        fields = [field.with_nullable(True).with_type(_nullable(field.type)) for field in fields]
    return Target(
        pa.schema(fields, schema.metadata),
        tuple(asked),
        frozenset(partitions.names),
        file,
        names=tuple(reader.field_names) if columns is None and not partitions.names else None,
    )


def union(targets: Sequence[Target], columns: Sequence[Path] | None) -> Target:
    """The columns of all targets, in the order in which they were asked for."""
    fields: dict[str, tuple[pa.Field, tuple[Path, ...]]] = {}
    for target in targets:
        for field, paths in zip(target.schema, target.asked, strict=True):
            fields.setdefault(field.name, (field, paths))
    partitions = targets[0].partitions
    if columns is None:
        # Folders come last, behind the columns of all files.
        ordered = sorted(fields.values(), key=lambda column: column[0].name in partitions)
    else:
        asked_at = {column: place for place, column in reversed(list(enumerate(columns)))}
        ordered = sorted(fields.values(), key=lambda column: asked_at[column[1][0]])
    schema = pa.schema([field for field, _ in ordered], targets[0].schema.metadata)
    return Target(schema, tuple(paths for _, paths in ordered), partitions, targets[0].source)


def project(
    reader: FileReader,
    file: str,
    target: Target,
    constants: Mapping[str, pa.Scalar],
    missing_is_null: bool,
    row_index: str | None,
    file_path: str | None,
) -> Projection:
    """Fill the target's columns from one file."""
    columns: list[SchemaNode | pa.Scalar] = []
    schema = target.schema
    if tuple(reader.field_names) == target.names:
        columns = list(reader.describe(range(len(schema)))[1])
    else:
        own = [p for p, name in enumerate(reader.field_names) if name in schema.names]
        reader.describe(own)  # all at once
        for field, paths in zip(schema, target.asked, strict=True):
            if field.name in target.partitions:
                columns.append(constants[field.name])
                continue
            try:
                columns.append(_resolve(reader, file, paths)[1])
            except ColumnNotFoundError as error:
                if not missing_is_null:
                    if file == target.source:
                        raise error
                    raise lacks_column(file, field.name, target.source) from None
                columns.append(pa.scalar(None, field.type))
    _require_same_types(columns, file, target)
    leaves = [leaf for c in columns if isinstance(c, SchemaNode) for leaf in c.leaves()]
    schema = _with_extras(schema, file, row_index, file_path)
    return Projection(
        file, schema, tuple(columns), tuple(leaves), row_index is not None, file_path is not None
    )


def find_column(reader: FileReader, file: str, path: Path) -> tuple[SchemaNode, SchemaNode]:
    """The node that a path names, and the top-level field that it lies in."""
    position, below = _top_level(reader.field_names, path, file)
    _, (top,) = reader.describe([position])
    node = top if below is None else top.find(below)
    if node is None:
        known = [".".join(leaf.path) for leaf in top.leaves()]
        raise ColumnNotFoundError.among(spelled(path), known, file)
    return top, node


def _require_same_types(
    columns: Sequence[SchemaNode | pa.Scalar], file: str, target: Target
) -> None:
    for field, column in zip(target.schema, columns, strict=True):
        if isinstance(column, SchemaNode) and _nullable(column.arrow_type) != _nullable(field.type):
            raise SchemaMismatchError(
                f"{file}: column {field.name!r} is {column.arrow_type} here and {field.type} in "
                f"{target.source}; cast one of them, or scan them apart"
            )


def lacks_column(file: str, name: str, source: str) -> SchemaMismatchError:
    """The error for a file without a column that another file of the scan has."""
    return SchemaMismatchError(
        f"{file}: has no column {name!r}, which {source} has; "
        f'read it as null there with fs.scan(..., missing="null"), or select() other columns'
    )


def _with_extras(
    schema: pa.Schema, file: str, row_index: str | None, file_path: str | None
) -> pa.Schema:
    for name in (row_index, file_path):
        if name is not None and (name in schema.names or row_index == file_path):
            raise ValueError(f"{file}: there is a column {name!r} already; choose another name")
    if row_index is not None:
        schema = schema.insert(0, pa.field(row_index, pa.int64(), nullable=False))
    if file_path is not None:
        schema = schema.append(pa.field(file_path, pa.string(), nullable=False))
    return schema


def _grouped(
    columns: Sequence[Path], names: Sequence[str], partitions: Sequence[str], file: str
) -> dict[str, list[Path]]:
    """The columns by the top-level field that they lie in, at the place of the first of each."""
    groups: dict[str, list[Path]] = {}
    for column in columns:
        folder = column if isinstance(column, str) else ".".join(column)
        top = folder if folder in partitions else names[_top_level(names, column, file)[0]]
        groups.setdefault(top, []).append(column)
    return groups


def _resolve(reader: FileReader, file: str, columns: Sequence[Path]) -> tuple[pa.Field, SchemaNode]:
    """The one field that holds these columns, cut to them."""
    wanted: set[int] = set()
    for column in columns:
        top, node = find_column(reader, file, column)
        wanted.update(leaf.leaf_index for leaf in node.leaves())
    pruned = top.pruned(wanted)
    schema, _ = reader.describe([reader.field_names.index(top.name)])
    return schema.field(0).with_type(pruned.arrow_type), pruned


def _top_level(names: Sequence[str], column: Path, file: str) -> tuple[int, Path | None]:
    """The top-level field that a column lies in, and the path below it, if there is one.

    A name that contains dots is matched whole first.
    """
    for name, below in _divisions(column):
        count = names.count(name)
        if count > 1:
            raise ColumnNotFoundError(
                f"{file}: {count} columns are named {name!r}; leave out select() to read them all"
            )
        if count:
            return names.index(name), below
    raise ColumnNotFoundError.among(spelled(column), names, file)


def _divisions(column: Path) -> Iterator[tuple[str, Path | None]]:
    """What may be the name of the top-level field, longest first, and what is left then."""
    if isinstance(column, tuple):
        yield from [(column[0], column[1:] or None)] if column else []
        return
    yield column, None
    steps = column.split(".")
    for count in range(len(steps) - 1, 0, -1):
        yield ".".join(steps[:count]), ".".join(steps[count:])


def _nullable(arrow_type: pa.DataType) -> pa.DataType:
    """The type with nulls allowed at every level: what files may differ in."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(_nullable(arrow_type.key_type), _nullable(arrow_type.item_type))
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(_nullable(arrow_type.value_type), arrow_type.list_size)
    if pa.types.is_list(arrow_type):
        return pa.list_(_nullable(arrow_type.value_type))
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(_nullable(arrow_type.value_type))
    return arrow_type
