"""The columns a scan asks for, resolved against one file.

Names go in; leaves to decode, the Arrow schema of the result, and a way to build its tables from
the decoded leaves come out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fretsaw.errors import ColumnNotFoundError, FileFormatError
from fretsaw.formats import FileReader
from fretsaw.nested import MisalignedLeaves, assemble
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection

Column = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """What is read of each row, and how it is put together."""

    file: str
    fields: tuple[SchemaNode, ...]
    leaves: tuple[SchemaNode, ...]
    schema: pa.Schema
    row_index: bool

    @classmethod
    def of(
        cls, reader: FileReader, file: str, columns: Sequence[Column] | None, row_index: str | None
    ) -> "Projection":
        """Resolve the names that were asked for, all columns if none were."""
        if columns is None:
            schema, fields = reader.describe(range(len(reader.field_names)))
        else:
            schema, fields = _select(reader, file, columns)
        if row_index is not None:
            if row_index in schema.names:
                raise ValueError(
                    f"{file}: there is a column {row_index!r} already; "
                    f"give with_row_index() another name"
                )
            schema = schema.insert(0, pa.field(row_index, pa.int64(), nullable=False))
        leaves = tuple(leaf for field in fields for leaf in field.leaves())
        return cls(file, fields, leaves, schema, row_index is not None)

    def table(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> pa.Table:
        """Decoded leaves as a table; `rows` are counted from `first_row` of the data."""
        remaining = iter(arrays)
        columns = [
            self._column(field, [next(remaining) for _ in field.leaves()]) for field in self.fields
        ]
        if self.row_index:
            columns.insert(0, pa.chunked_array([rows.indices() + first_row]))
        if columns:
            return pa.Table.from_arrays(columns, schema=self.schema)
        # Rows of no columns: a table cannot be told how many, a batch of a struct can.
        struct = pa.nulls(rows.selected_count, pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(struct)], self.schema)

    def _column(self, field: SchemaNode, leaves: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
        if field.is_leaf:
            return leaves[0]
        try:
            whole = [leaf.combine_chunks() for leaf in leaves]
            return pa.chunked_array([assemble(field, whole)])
        except MisalignedLeaves as error:
            raise FileFormatError(
                f"{self.file}: {error}; the file is corrupt, write or copy it again"
            ) from None

    def concat(self, tables: Sequence[pa.Table]) -> pa.Table:
        """All tables as one."""
        if self.schema.names and tables:
            return pa.concat_tables(tables)
        batches = [batch for table in tables for batch in table.to_batches()]
        return pa.Table.from_batches(batches, self.schema)


def _select(
    reader: FileReader, file: str, columns: Sequence[Column]
) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
    """The fields that hold these columns, cut to them, at the place of the first of each."""
    names = reader.field_names
    found = [(*_top_level(names, column, file), column) for column in columns]
    positions = list(dict.fromkeys(position for position, _, _ in found))
    schema, nodes = reader.describe(positions)
    wanted: list[set[int]] = [set() for _ in positions]
    for position, below, column in found:
        place = positions.index(position)
        node = nodes[place].find(below) if below else nodes[place]
        if node is None:
            known = [".".join(leaf.path) for leaf in nodes[place].leaves()]
            raise ColumnNotFoundError.among(_spelled(column), known, file)
        wanted[place].update(leaf.leaf_index for leaf in node.leaves())
    fields = tuple(node.pruned(keep) for node, keep in zip(nodes, wanted, strict=True))
    cut = [old.with_type(new.arrow_type) for old, new in zip(schema, fields, strict=True)]
    return pa.schema(cut, schema.metadata), fields


def _top_level(names: Sequence[str], column: Column, file: str) -> tuple[int, Column]:
    """The top-level field that a column lies in, and the path below it.

    A name that contains dots is matched whole first.
    """
    for name, below in _divisions(column):
        found = [position for position, known in enumerate(names) if known == name]
        if len(found) > 1:
            raise ColumnNotFoundError(
                f"{file}: {len(found)} columns are named {name!r}; "
                f"leave out select() to read them all"
            )
        if found:
            return found[0], below
    raise ColumnNotFoundError.among(_spelled(column), names, file)


def _divisions(column: Column) -> Iterator[tuple[str, Column]]:
    """What may be the name of the top-level field, longest first, and what is left then."""
    if isinstance(column, tuple):
        yield from [(column[0], column[1:])] if column else []
        return
    steps = column.split(".")
    for count in range(len(steps), 0, -1):
        yield ".".join(steps[:count]), ".".join(steps[count:])


def _spelled(column: Column) -> str:
    return column if isinstance(column, str) else ".".join(column)
