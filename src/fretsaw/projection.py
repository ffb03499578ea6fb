"""The columns a scan asks for, resolved against one file.

Names go in; leaves to decode, the Arrow schema of the result, and a way to build its tables from
the decoded leaves come out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from fretsaw.errors import ColumnNotFoundError, FileFormatError
from fretsaw.formats import FileReader
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection

Column = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """What is read of each row, and how it is put together."""

    leaves: tuple[SchemaNode, ...]
    schema: pa.Schema
    row_index: bool

    @classmethod
    def of(
        cls, reader: FileReader, file: str, columns: Sequence[Column] | None, row_index: str | None
    ) -> "Projection":
        """Resolve the names that were asked for, all columns if none were."""
        positions = _positions(reader.field_names, columns, file)
        schema, nodes = reader.describe(positions)
        for node in nodes:
            if not node.is_flat:
                raise FileFormatError(
                    f"{file}: column {node.name!r} is nested ({node.arrow_type}), which is not "
                    f"supported yet; select() flat columns"
                )
        if row_index is not None:
            if row_index in schema.names:
                raise ValueError(
                    f"{file}: there is a column {row_index!r} already; "
                    f"give with_row_index() another name"
                )
            schema = schema.insert(0, pa.field(row_index, pa.int64(), nullable=False))
        return cls(nodes, schema, row_index is not None)

    def table(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> pa.Table:
        """Decoded leaves as a table; `rows` are counted from `first_row` of the data."""
        columns = list(arrays)
        if self.row_index:
            columns.insert(0, pa.chunked_array([rows.indices() + first_row]))
        if columns:
            return pa.Table.from_arrays(columns, schema=self.schema)
        # Rows of no columns: a table cannot be told how many, a batch of a struct can.
        struct = pa.nulls(rows.selected_count, pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(struct)], self.schema)

    def concat(self, tables: Sequence[pa.Table]) -> pa.Table:
        """All tables as one."""
        if self.schema.names and tables:
            return pa.concat_tables(tables)
        batches = [batch for table in tables for batch in table.to_batches()]
        return pa.Table.from_batches(batches, self.schema)


def _positions(names: Sequence[str], columns: Sequence[Column] | None, file: str) -> Sequence[int]:
    if columns is None:
        return range(len(names))
    # A column that is named twice is read once, at the place of the first.
    return list(dict.fromkeys(_position(names, column, file) for column in columns))


def _position(names: Sequence[str], column: Column, file: str) -> int:
    name = column if isinstance(column, str) else ".".join(column)
    found = [position for position, known in enumerate(names) if known == name]
    if not found or (not isinstance(column, str) and len(column) > 1):
        raise ColumnNotFoundError.among(name, names, file)
    if len(found) > 1:
        raise ColumnNotFoundError(
            f"{file}: {len(found)} columns are named {name!r}; leave out select() to read them all"
        )
    return found[0]
