"""Results as Arrow tables: leaves zipped into columns, beside values that all rows of a file share."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.model.arrays import take_rows
from fretsaw.model.nested import MisalignedLeaves
from fretsaw.model.selection import RowSelection


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
