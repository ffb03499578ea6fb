"""Results as Arrow tables: leaves zipped into columns, beside what all rows of a file share."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.engine.filling import FileColumns
from fretsaw.engine.planner import Planner
from fretsaw.engine.run import run
from fretsaw.errors import FileFormatError, SchemaMismatchError
from fretsaw.model.arrays import take_rows
from fretsaw.model.conversion import converted
from fretsaw.model.nested import MisalignedLeaves, assemble, only_chunk
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection

COUNT_PIECE = 64 << 20
"""Bytes of checked columns that are decoded in one go to count."""


@dataclass(frozen=True, slots=True, eq=False)
class TableShape:
    """Rows of a file as a table."""

    columns: FileColumns

    @property
    def leaves(self) -> Sequence[SchemaNode]:
        return self.columns.leaves

    def result(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> pa.Table:
        """Decoded leaves as a table; `rows` are counted from `first_row` of the scan."""
        remaining = iter(arrays)
        columns = []
        for column, arrow_type in zip(self.columns.columns, self.columns.schema.types, strict=True):
            if isinstance(column, SchemaNode):
                leaves = [next(remaining) for _ in column.leaves()]
                columns.append(assembled(self.columns.file, column, leaves, arrow_type))
            else:
                columns.append(filled(column, rows, first_row))
        if columns:
            return pa.Table.from_arrays(columns, schema=self.columns.schema)
        return only_rows(rows.selected_count, self.columns.schema)


def assembled(
    file: str, node: SchemaNode, leaves: Sequence[pa.ChunkedArray], arrow_type: pa.DataType
) -> pa.ChunkedArray:
    """The column of a file that these leaves are, as the type that it has in the result."""
    if node.is_leaf:
        column = leaves[0]
    else:
        try:
            whole = [only_chunk(leaf) for leaf in leaves]
            column = pa.chunked_array([assemble(node, whole)])
        except MisalignedLeaves as error:
            raise misaligned(file, error) from None
    try:
        return converted(column, arrow_type)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"{file}: column {node.name!r} is {column.type} here, and one of its values does not "
            f"fit {arrow_type}, which it is in the whole scan ({error}); scan the file apart"
        ) from None


class RowCount:
    """Only how many rows there are: nothing is made for each, since a file may claim any number."""

    leaves: Sequence[SchemaNode] = ()

    def result(self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int) -> int:
        """How many rows are selected."""
        return rows.selected_count


def stream(planner: Planner, piece_bytes: int) -> Iterator[pa.Table]:
    """The result, in pieces of about so many bytes."""
    planner.columns.check()
    return run(planner, lambda file: TableShape(planner.columns.of(file)), piece_bytes)


def whole(planner: Planner, piece_bytes: int) -> pa.Table:
    """All of the result."""
    return concat(list(stream(planner, piece_bytes)), planner.columns.schema)


def count(planner: Planner) -> int:
    """How many rows the result has."""
    planner.columns.check()
    query = planner.query
    if query.predicate is not None and (query.window or not planner.paths_decide):
        return sum(run(planner, lambda _: RowCount(), COUNT_PIECE))
    if planner.reads_whole_files:
        planner.files.expect_all()
        return sum(file.num_rows for file in planner.files.in_order())
    return sum(placement.rows.selected_count for _, _, placement in planner.placements())


def to_batches(tables: Iterator[pa.Table], batch_size: int) -> Iterator[pa.RecordBatch]:
    """Tables as batches of at most so many rows."""
    while (table := next(tables, None)) is not None:
        batches = deque(table.to_batches(max_chunksize=batch_size))
        del table  # neither it nor a batch stays alive while the next ones are decoded
        while batches:
            yield batches.popleft()


def filled(
    column: pa.Scalar | Literal["row index"], rows: RowSelection, first_row: int
) -> pa.Array:
    """A column that is not read: one value for all rows, or their numbers."""
    if isinstance(column, pa.Scalar):
        count = rows.selected_count
        return pa.repeat(column, count) if column.is_valid else pa.nulls(count, column.type)
    return pa.array(rows.indices() + first_row)


def misaligned(file: str, error: MisalignedLeaves) -> FileFormatError:
    """The error for leaves of one field that do not fit together."""
    return FileFormatError(f"{file}: {error}; the file is corrupt, write or copy it again")


def concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """All tables as one."""
    if not schema.names:
        return only_rows(sum(table.num_rows for table in tables), schema)
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


def take(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Rows of a table by their numbers, in any order."""
    if not table.schema.names:
        return only_rows(len(rows), table.schema)
    columns = [take_rows(column, rows) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def only_rows(count: int, schema: pa.Schema) -> pa.Table:
    """Rows of no columns: a table cannot be told how many, a batch of a struct can."""
    batch = pa.RecordBatch.from_struct_array(pa.nulls(count, pa.struct([])))
    return pa.Table.from_batches([batch], schema)
