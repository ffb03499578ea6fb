"""The row reader: tables as rows of Python objects, converted column by column."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from fretsaw.errors import ColumnNotFoundError, not_text
from fretsaw.model.arrays import rows_within
from fretsaw.model.schema import SchemaNode
from fretsaw.results.python_values import objects

CONVERTED_BYTES = 256 << 10
"""Bytes of Arrow's that are converted at a time; as Python's objects they are many more."""


class Row(Mapping[str, Any]):
    """One row: the columns that were asked for, by name."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[Any]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[self._places[name]]
        except KeyError:
            raise ColumnNotFoundError(f"Column not in projection: {name}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def as_dict(self) -> dict[str, Any]:
        """The row as a dictionary."""
        return dict(zip(self._places, self._values, strict=True))

    def __repr__(self) -> str:
        return f"Row({self.as_dict()})"


def rows_of(tables: Iterator[pa.Table], nodes: Sequence[SchemaNode], source: str) -> Iterator[Row]:
    """The rows of tables, of which the `nodes` describe the columns, and `source` the files."""
    _require_distinct(nodes, "columns")
    return chain.from_iterable(_rows(batch, nodes, source) for batch in _batches(tables))


def _require_distinct(nodes: Sequence[SchemaNode], what: str) -> None:
    """A dictionary holds a name once, at every level."""
    for name, count in Counter(node.name for node in nodes).items():
        if count > 1:
            raise ValueError(
                f"{count} {what} are named {name!r}, and a row can hold one of them: "
                f"select() others, or read batches()"
            )
    for node in nodes:
        _require_distinct(node.children, f"fields of {'.'.join(node.path)!r}")


def _batches(tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Tables in batches of which all objects may be alive at once."""
    while (table := next(tables, None)) is not None:
        size = rows_within(CONVERTED_BYTES, table.num_rows, table.nbytes)
        yield from table.to_batches(max_chunksize=size)
        del table  # it does not stay alive while the next one is decoded


def _rows(batch: pa.RecordBatch, nodes: Sequence[SchemaNode], source: str) -> Iterator[Row]:
    places = {node.name: place for place, node in enumerate(nodes)}
    if not nodes:
        return (Row(places, ()) for _ in range(batch.num_rows))
    columns = []
    for column, node in zip(batch.columns, nodes, strict=True):
        try:
            columns.append(objects(column, node))
        except UnicodeDecodeError as error:
            raise not_text(source, node.name) from error
    return map(Row, repeat(places), zip(*columns, strict=True))
