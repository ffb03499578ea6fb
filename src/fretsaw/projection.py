"""The columns a scan asks for, and how the files of the scan fill them.

A `Target` says which columns the result has; it is settled by the first files. A `Projection` fills
them from one file: with leaves to decode and zip, with values of the file's folders, or with nulls.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.arrays import take_rows
from fretsaw.errors import ColumnNotFoundError, FileFormatError, SchemaMismatchError
from fretsaw.formats import FileReader
from fretsaw.nested import MisalignedLeaves, assemble, only_chunk
from fretsaw.schema import Path, SchemaNode, spelled, with_nulls
from fretsaw.selection import RowSelection

READ_ALL = "leave out select() to read them all, or name one by the number of its leaf, column(0)"
TEST_ANOTHER = "test another column, or filter what to_arrow() gives of them all"
SCAN_ALONE = "files are matched by name: scan this one alone, by its path"

Filling: TypeAlias = SchemaNode | pa.Scalar | Literal["row index"]
"""What a column is filled with: a node to read, the value it has in all of a file, or numbers."""


class RepeatedNameError(ColumnNotFoundError):
    """Several columns have the name that was asked for: it is neither there nor missing."""

    @classmethod
    def of(cls, name: str, count: int, file: str, hint: str) -> "RepeatedNameError":
        """The error for so many columns of one name, and what to do about it."""
        return cls(
            f"{file}: {count} columns are named {name!r}, which does not tell them apart; {hint}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The columns of the result, in order."""

    schema: pa.Schema
    nodes: tuple[SchemaNode, ...]
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
        return _only_rows(rows.selected_count, self.schema)

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


def filled(
    column: pa.Scalar | Literal["row index"], rows: RowSelection, first_row: int
) -> pa.Array:
    """A column that is not read: one value for all rows, or their numbers."""
    if isinstance(column, pa.Scalar):
        count = rows.selected_count
        return pa.repeat(column, count) if column.is_valid else pa.nulls(count, column.type)
    return pa.array(rows.indices() + first_row)


def null_of(arrow_type: pa.DataType) -> pa.Scalar:
    """A null of any type; `pa.scalar` knows no lists of extension types."""
    return pa.nulls(1, arrow_type)[0]


def misaligned(file: str, error: MisalignedLeaves) -> FileFormatError:
    """The error for leaves of one field that do not fit together."""
    return FileFormatError(f"{file}: {error}; the file is corrupt, write or copy it again")


class RowCount:
    """Only how many rows there are: nothing is made for each, since a file may claim any number."""

    leaves: Sequence[SchemaNode] = ()

    def result(self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int) -> int:
        """How many rows are selected."""
        return rows.selected_count


def concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """All tables as one."""
    if not schema.names:
        return _only_rows(sum(table.num_rows for table in tables), schema)
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


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
    nodes: list[SchemaNode] = []
    asked: list[tuple[Path, ...]] = []
    if columns is None:
        own = [p for p, name in enumerate(reader.field_names) if name not in partitions.names]
        schema, described = reader.describe(own)
        fields = [*schema, *partitions]
        nodes = [*described, *map(_made_up, partitions)]
        asked = [((field.name,),) for field in fields]
    else:
        names = reader.field_names
        groups = _grouped(columns, names, partitions.names, file)
        reader.describe([names.index(top) for top in groups if top not in partitions.names])
        for top, paths in groups.items():
            field, node = (
                (partitions.field(top), _made_up(partitions.field(top)))
                if top in partitions.names
                else _resolve(reader, file, paths)
            )
            fields.append(field)
            nodes.append(node)
            asked.append(tuple(paths))
        schema, _ = reader.describe([])
    if several:
        fields = [field.with_nullable(True).with_type(with_nulls(field.type)) for field in fields]
    return Target(
        pa.schema(fields, schema.metadata),
        tuple(nodes),
        tuple(asked),
        frozenset(partitions.names),
        file,
        names=tuple(reader.field_names) if columns is None and not partitions.names else None,
    )


def union(targets: Sequence[Target], columns: Sequence[Path] | None) -> Target:
    """The columns of all targets, in the order in which they were asked for."""
    first = targets[0]
    if first.names is not None and all(target.names == first.names for target in targets):
        return first
    for target in targets:
        _require_unique(target.schema.names, target.source)
    fields: dict[str, tuple[pa.Field, SchemaNode, tuple[Path, ...]]] = {}
    for target in targets:
        for field, node, paths in zip(target.schema, target.nodes, target.asked, strict=True):
            fields.setdefault(field.name, (field, node, paths))
    partitions = first.partitions
    if columns is None:
        # Folders come last, behind the columns of all files.
        ordered = sorted(fields.values(), key=lambda column: column[0].name in partitions)
    else:
        asked_at = {column: place for place, column in reversed(list(enumerate(columns)))}
        ordered = sorted(fields.values(), key=lambda column: asked_at[column[2][0]])
    schema = pa.schema([field for field, _, _ in ordered], first.schema.metadata)
    return Target(
        schema,
        tuple(node for _, node, _ in ordered),
        tuple(paths for _, _, paths in ordered),
        partitions,
        first.source,
    )


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
        _require_unique(schema.names, target.source)
        hint = READ_ALL if file == target.source else SCAN_ALONE
        for field, paths in zip(schema, target.asked, strict=True):
            if field.name in target.partitions:
                columns.append(constants[field.name])
                continue
            try:
                columns.append(_resolve(reader, file, paths, hint)[1])
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
        nodes.insert(0, _made_up(field))
        columns.insert(0, "row index")
    if file_path is not None:
        field = pa.field(file_path, pa.string(), nullable=False)
        schema = schema.append(field)
        nodes.append(_made_up(field))
        columns.append(constants[file_path])
    return Projection(file, schema, tuple(nodes), tuple(columns), tuple(leaves))


def find_column(
    reader: FileReader, file: str, path: Path, if_repeated: str = READ_ALL
) -> tuple[SchemaNode, SchemaNode]:
    """The node that a path names, and the top-level field that it lies in."""
    position, below = _top_level(reader.field_names, path, file, if_repeated)
    _, (top,) = reader.describe([position])
    node = top if below is None else top.find(below)
    if node is None:
        known = [".".join(leaf.path) for leaf in top.leaves()]
        raise ColumnNotFoundError.among(spelled(path), known, file)
    return top, node


def _require_same_types(columns: Sequence[Filling], file: str, target: Target) -> None:
    for field, column in zip(target.schema, columns, strict=True):
        if isinstance(column, SchemaNode) and with_nulls(column.arrow_type) != with_nulls(
            field.type
        ):
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


def _require_new(
    file: str, names: Sequence[str], row_index: str | None, file_path: str | None
) -> None:
    for name in (row_index, file_path):
        if name is not None and (name in names or row_index == file_path):
            raise ValueError(f"{file}: there is a column {name!r} already; choose another name")


def _made_up(field: pa.Field) -> SchemaNode:
    """The node of a column that no file has."""
    return SchemaNode(field.name, (field.name,), "leaf", field.nullable, field.type)


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


def _resolve(
    reader: FileReader, file: str, columns: Sequence[Path], if_repeated: str = READ_ALL
) -> tuple[pa.Field, SchemaNode]:
    """The one field that holds these columns, cut to them."""
    wanted: set[int] = set()
    for column in columns:
        top, node = find_column(reader, file, column, if_repeated)
        wanted.update(leaf.leaf_index for leaf in node.leaves())
    pruned = top.pruned(wanted)
    schema, _ = reader.describe([reader.field_names.index(top.name)])
    return schema.field(0).with_type(pruned.arrow_type), pruned


def _require_unique(names: Sequence[str], file: str) -> None:
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise RepeatedNameError.of(name, count, file, SCAN_ALONE)


def _top_level(
    names: Sequence[str], column: Path, file: str, if_repeated: str = READ_ALL
) -> tuple[int, Path | None]:
    """The top-level field that a column lies in, and the path below it, if there is one.

    A name that contains dots is matched whole first.
    """
    for name, below in _divisions(column):
        count = names.count(name)
        if count > 1:
            raise RepeatedNameError.of(name, count, file, if_repeated)
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
