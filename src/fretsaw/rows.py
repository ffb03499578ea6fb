"""The row reader: tables as rows of Python objects, converted column by column."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from fretsaw.arrays import rows_within
from fretsaw.errors import ColumnNotFoundError
from fretsaw.objects import objects
from fretsaw.schema import SchemaNode

CONVERTED_BYTES = 256 << 10
"""Bytes of Arrow's that are converted at a time; as Python's objects they are many more."""


class Row(dict[str, Any]):
    """One row: the columns that were asked for, by name."""

    def __missing__(self, name: str) -> Any:
        raise ColumnNotFoundError(f"Column not in projection: {name}")

    def as_dict(self) -> dict[str, Any]:
        """The row as a plain dictionary."""
        return dict(self)


def rows_of(tables: Iterator[pa.Table], nodes: Sequence[SchemaNode]) -> Iterator[Row]:
    """The rows of tables, of which the `nodes` describe the columns."""
    names = [node.name for node in nodes]
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise ValueError(
            f"several columns are named {repeated!r}, and a row holds a name once: "
            f"read batches() instead"
        )
    return chain.from_iterable(_rows(batch, names, nodes) for batch in _batches(tables))


def _batches(tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Tables in batches of which all objects may be alive at once."""
    while (table := next(tables, None)) is not None:
        size = rows_within(CONVERTED_BYTES, table.num_rows, table.nbytes)
        yield from table.to_batches(max_chunksize=size)
        del table


def _rows(
    batch: pa.RecordBatch, names: Sequence[str], nodes: Sequence[SchemaNode]
) -> Iterator[Row]:
    if not nodes:
        return (Row() for _ in range(batch.num_rows))
    columns = [objects(column, node) for column, node in zip(batch.columns, nodes, strict=True)]
    return map(Row, map(zip, repeat(names), zip(*columns, strict=True)))
