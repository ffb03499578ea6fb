"""The peers that read ORC files; for the rest, see `peers`.

Neither has the work that no workload on ORC asks for: that is inherited, and never called.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.orc as orc
import pyorc
from pyorc.predicates import PredicateColumn

from benchmarks.conditions import SIGNS, Condition, Dialect, Where
from benchmarks.contestant import RowNumbers, Unsupported
from benchmarks.data.trips import TRIPS_SCHEMA
from benchmarks.peers.arrow import ARROW, ParquetFile


class PyarrowOrc(ParquetFile):
    """`ORCFile`, stripe by stripe, and `dataset` for conditions."""

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        # How many rows a stripe has is not told: the narrowest column is read to count them.
        file = orc.ORCFile(path)
        for stripe in range(file.nstripes):
            rows = file.read_stripe(stripe, columns=["passengers"]).num_rows
            if skip < rows:
                batch = file.read_stripe(stripe).slice(skip, count)
                return pa.Table.from_batches([batch])
            skip -= rows
        raise Unsupported("no such rows")

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        return orc.ORCFile(path).read().take(pa.array(rows))

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        file = orc.ORCFile(path)
        totals = dict.fromkeys(columns, 0.0)
        for stripe in range(file.nstripes):
            batch = file.read_stripe(stripe, columns=list(columns))
            for name in columns:
                totals[name] += pc.sum(batch[name]).as_py() or 0.0
        return pa.table({name: [total] for name, total in totals.items()})

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        return ds.dataset(path, format="orc").to_table(filter=where.of(ARROW))


class PyorcDialect(Dialect):
    """Predicates of pyorc, on times alone."""

    def column(self, name: str) -> Any:
        return PredicateColumn(pyorc.TypeKind.TIMESTAMP, name)

    def literal(self, value: Any) -> Any:
        return value.replace(tzinfo=UTC)

    def contains(self, text: Any, part: str) -> Any:
        raise Unsupported("a predicate of pyorc compares")

    def lower(self, text: Any) -> Any:
        raise Unsupported("a predicate of pyorc compares")


class Pyorc(ParquetFile):
    """pyorc: seeks to rows, skips strides by a predicate, gives rows as tuples."""

    name = "pyorc"

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        with open(path, "rb") as file:
            reader = pyorc.Reader(file)
            reader.seek(skip)
            return _table(reader.read(count))

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        found = []
        with open(path, "rb") as file:
            reader = pyorc.Reader(file)
            for row in rows.tolist():
                reader.seek(row)
                found += reader.read(1)
        return _table(found)

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        raise Unsupported("values come one by one, as Python objects")

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        assert isinstance(where, Where)
        place = TRIPS_SCHEMA.names.index(where.column)
        with open(path, "rb") as file:
            reader = pyorc.Reader(file, predicate=where.of(PyorcDialect()))
            # It leaves out strides that cannot match; the rows of others are left to us.
            return _table([row for row in reader if _matches(where, row[place])])


def _table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = [
        pa.array([_naive(value) for value in column], field.type)
        for field, column in zip(TRIPS_SCHEMA, zip(*rows, strict=True), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=TRIPS_SCHEMA)


def _matches(where: Where, value: Any) -> bool:
    value = _naive(value)
    return all(SIGNS[sign](value, bound) for sign, bound in where.tests)


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
