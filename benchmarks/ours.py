"""fretsaw as a contestant: every piece of work through the public API alone.

In and out: as `contestant` says. What fretsaw keeps between two calls is dropped by `forget`
before each timed run. `FretsawByArrow` does without the kernels; `Plain` is fretsaw without its
predicates, for `curve` to compare with. `traced` runs a call and counts its reads, apart from the
timed runs.
"""

import os
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

import fretsaw as fs
from benchmarks.conditions import Condition, Dialect, Where
from benchmarks.contestant import RowNumbers, added
from fretsaw.formats.kernels import load_kernels
from fretsaw.storage import footer_cache

COMPARISONS: dict[str, Callable[[Any, Any], pa.Array]] = {
    "==": pc.equal,
    "<": pc.less,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class FretsawDialect(Dialect):
    """Predicates of fretsaw."""

    def column(self, name: str) -> Any:
        return fs.col(name)

    def contains(self, text: Any, part: str) -> Any:
        return text.contains(part)

    def lower(self, text: Any) -> Any:
        return text.lower()


FRETSAW = FretsawDialect()


class Fretsaw:
    """`fs.scan`, and what hangs on it."""

    name = "fretsaw"

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        return fs.scan(path).skip(skip).head(count).to_arrow()

    def tail(self, path: str, count: int) -> pa.Table:
        return fs.scan(path).tail(count).to_arrow()

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        return fs.scan(path).take(rows)

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        totals: dict[str, Any] = dict.fromkeys(columns, 0)
        for batch in fs.scan(path).select(*columns).batches():
            for name in columns:
                totals[name] += pc.sum(batch[name]).as_py() or 0
        return pa.table({name: [total] for name, total in totals.items()})

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        batches = fs.scan(path).select(column).batches()
        return pa.table(
            {"sum": [sum(pc.sum(batch[column].flatten()).as_py() for batch in batches)]}
        )

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        return added(row[column] for row in fs.scan(path).head(count))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return fs.scan(path).select(*columns).to_arrow()

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        return _selected(filtered(path, where), columns).to_arrow()

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        return fs.scan(path).filter(fs.col(column).is_in(values)).to_arrow()

    def filter_text(self, path: str, condition: str) -> pa.Table:
        return fs.scan(path).filter(condition).to_arrow()

    def find(self, path: str, where: Condition) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        return filtered(path, where).head(count).to_arrow()

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        return filtered(path, where).tail(count).to_arrow()

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        return pa.table({"count": [filtered(path, where).count()]})

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        return self.window(folder, skip, count)

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return pa.table({"count": [fs.scan(folder).count()]})

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        return self.filter(folder, where)

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        return self.filter_count(folder, where)

    def drain(self, path: str) -> int:
        return sum(batch.num_rows for batch in fs.scan(path).batches())


class FretsawByArrow(Fretsaw):
    """The same without the compiled kernels: every call is made with these turned off."""

    name = "by arrow"


def _by_arrow(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with patch.dict(os.environ, FRETSAW_KERNELS="0"):
            load_kernels.cache_clear()
            try:
                return method(*arguments)
            finally:
                load_kernels.cache_clear()

    return call


for _name, _method in vars(Fretsaw).items():
    if callable(_method) and not _name.startswith("_"):
        setattr(FretsawByArrow, _name, _by_arrow(_method))

OWN = (Fretsaw.name, FretsawByArrow.name)
"""Who is not a peer."""


class Plain(Fretsaw):
    """What one would do without predicates: read everything, filter each batch with pyarrow."""

    name = "plain"

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        assert isinstance(where, Where)
        read = None if columns is None else list(dict.fromkeys([*columns, where.column]))
        scan = _selected(fs.scan(path), read)
        # With three columns, a mask takes a quarter less time than an expression.
        batches = [batch.filter(_mask(batch, where)) for batch in scan.batches()]
        table = pa.Table.from_batches(batches, scan.schema)
        return table if columns is None else table.select(columns)


def filtered(path: str, where: Condition) -> fs.Scan:
    """A scan of the rows that match."""
    return fs.scan(path).filter(where.of(FRETSAW))


def _mask(batch: pa.RecordBatch, where: Where) -> pa.Array:
    column = batch[where.column]
    return reduce(pc.and_, [COMPARISONS[sign](column, value) for sign, value in where.tests])


def _selected(scan: fs.Scan, columns: Sequence[str] | None) -> fs.Scan:
    return scan if columns is None else scan.select(*columns)


def forget() -> None:
    """Let the next call open its files anew."""
    footer_cache.clear()


def traced(call: Callable[[], object]) -> tuple[int, int]:
    """How many reads `call` makes, and how many bytes they fetch."""
    forget()
    with fs.trace() as trace:
        call()
    return trace.requests, trace.bytes_read
