"""pyarrow's two ways to read: a `ParquetFile`, and a dataset."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.conditions import Condition, Dialect
from benchmarks.contestant import RowNumbers, Unsupported, added

NO_FILTER = "a ParquetFile has no filter; pyarrow's way is dataset"
ONE_FILE = "a ParquetFile is one file; pyarrow's way is dataset"


class ArrowDialect(Dialect):
    """Expressions of datasets."""

    def column(self, name: str) -> Any:
        return pc.field(name)

    def contains(self, text: Any, part: str) -> Any:
        return pc.match_substring(text, part)

    def lower(self, text: Any) -> Any:
        return pc.utf8_lower(text)


ARROW = ArrowDialect()


class ParquetFile:
    """`pyarrow.parquet.ParquetFile`: the finest grain it offers is the row group."""

    name = "pyarrow"

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        return self._window(pq.ParquetFile(path), skip, skip + count)

    def tail(self, path: str, count: int) -> pa.Table:
        file = pq.ParquetFile(path)
        return self._window(file, file.metadata.num_rows - count, file.metadata.num_rows)

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        # Row group by row group; column by column takes twice as long, batches no less.
        file = pq.ParquetFile(path)
        bounds = _group_bounds(file)
        parts = []
        for group, (first, end) in enumerate(pairwise(bounds)):
            wanted = rows[(rows >= first) & (rows < end)] - first
            if len(wanted):
                parts.append(file.read_row_group(group).take(pa.array(wanted)))
        return pa.concat_tables(parts)

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        # Row group by row group; `iter_batches` is slower at every batch size.
        file = pq.ParquetFile(path)
        totals: dict[str, Any] = dict.fromkeys(columns, 0)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=columns)
            for name in columns:
                totals[name] += pc.sum(table[name]).as_py() or 0
        return pa.table({name: [total] for name, total in totals.items()})

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        file = pq.ParquetFile(path)
        groups = range(file.num_row_groups)
        tables = (file.read_row_group(group, columns=[column]) for group in groups)
        return _sum_of_lists(table[column] for table in tables)

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        # Batches of 8,192 rows are the fastest of 1,024 to 65,536.
        batches = pq.ParquetFile(path).iter_batches(batch_size=8_192)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        return added(row[column] for row in islice(rows, count))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return pq.ParquetFile(path, pre_buffer=False).read(columns=columns)

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_text(self, path: str, condition: str) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def find(self, path: str, where: Condition) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        raise Unsupported(ONE_FILE)

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        raise Unsupported(ONE_FILE)

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        raise Unsupported(ONE_FILE)

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        raise Unsupported(ONE_FILE)

    def drain(self, path: str) -> int:
        # With pre_buffer, its default, it would hold the compressed bytes of the whole file.
        batches = pq.ParquetFile(path, pre_buffer=False).iter_batches()
        return sum(batch.num_rows for batch in batches)

    @staticmethod
    def _window(file: pq.ParquetFile, start: int, stop: int) -> pa.Table:
        # One batch that ends with the last row wanted: nothing behind it is decoded. Half the
        # time of `read_row_group` and a slice.
        bounds = _group_bounds(file)
        first, last = np.searchsorted(bounds, [start, stop - 1], side="right") - 1
        needed = stop - bounds[first]
        batches, seen = [], 0
        groups = range(int(first), int(last) + 1)
        for batch in file.iter_batches(batch_size=int(needed), row_groups=groups):
            batches.append(batch)
            seen += batch.num_rows
            if seen >= needed:
                break
        return pa.Table.from_batches(batches).slice(start - bounds[first], stop - start)


class Dataset:
    """`pyarrow.dataset`: scans in parallel batches, knows no positions but `take`."""

    name = "dataset"

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        raise Unsupported("a dataset has no offset; pyarrow's way is ParquetFile")

    def tail(self, path: str, count: int) -> pa.Table:
        raise Unsupported("a dataset has no tail; pyarrow's way is ParquetFile")

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        return ds.dataset(path).take(pa.array(rows))

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        scan = acero.ScanNodeOptions(ds.dataset(path), columns=list(columns))
        total = acero.AggregateNodeOptions([(name, "sum", None, name) for name in columns])
        plan = [acero.Declaration("scan", scan), acero.Declaration("aggregate", total)]
        return acero.Declaration.from_sequence(plan).to_table()

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        batches = ds.dataset(path).to_batches(columns=[column])
        return _sum_of_lists(batch[column] for batch in batches)

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        batches = ds.dataset(path).to_batches(batch_size=8_192, batch_readahead=2)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        return added(row[column] for row in islice(rows, count))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return ds.dataset(path).to_table(columns=list(columns))

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        names = None if columns is None else list(columns)
        return ds.dataset(path).to_table(names, filter=self._expression(where))

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        return ds.dataset(path).to_table(filter=pc.field(column).isin(values))

    def filter_text(self, path: str, condition: str) -> pa.Table:
        raise Unsupported("pyarrow reads no SQL")

    def find(self, path: str, where: Condition) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        # Batches of its own size take longer.
        expression = self._expression(where)
        return ds.dataset(path).head(count, filter=expression, batch_size=20 * count)

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        # Row group by row group, from the last one backward.
        (fragment,) = ds.dataset(path).get_fragments()
        parts: list[pa.Table] = []
        for part in reversed(fragment.split_by_row_group()):
            parts.insert(0, part.to_table(filter=self._expression(where)))
            if sum(table.num_rows for table in parts) >= count:
                break
        table = pa.concat_tables(parts)
        return table.slice(max(0, table.num_rows - count))

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        return pa.table({"count": [ds.dataset(path).count_rows(filter=self._expression(where))]})

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        # File by file, each by its metadata alone until the first that is wanted: a thirtieth
        # of the time of `take` over the whole dataset.
        dataset = self._folder(folder, key)
        fragments = sorted(dataset.get_fragments(), key=lambda fragment: fragment.path)
        parts = []
        for fragment in fragments:
            rows = fragment.count_rows()
            if skip < rows:
                table = fragment.to_table(schema=dataset.schema)
                parts.append(table.slice(skip, count))
                count -= parts[-1].num_rows
                if count == 0:
                    break
            skip = max(skip - rows, 0)
        return pa.concat_tables(parts)

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return pa.table({"count": [self._folder(folder, key).count_rows()]})

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        return self._folder(folder, key).to_table(filter=self._expression(where))

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        rows = self._folder(folder, key).count_rows(filter=self._expression(where))
        return pa.table({"count": [rows]})

    def drain(self, path: str) -> int:
        options = ds.ParquetFragmentScanOptions(pre_buffer=False)
        batches = ds.dataset(path).to_batches(fragment_scan_options=options)
        return sum(batch.num_rows for batch in batches)

    @staticmethod
    def _folder(folder: str, key: pa.Field) -> ds.Dataset:
        return ds.dataset(folder, partitioning=ds.partitioning(pa.schema([key]), flavor="hive"))

    @staticmethod
    def _expression(where: Condition) -> pc.Expression:
        return where.of(ARROW)


def _group_bounds(file: pq.ParquetFile) -> RowNumbers:
    """The number of the first row of each row group, and of all rows."""
    metadata = file.metadata
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return np.cumsum([0, *counts], dtype=np.int64)


def _sum_of_lists(columns: Iterable[Any]) -> pa.Table:
    totals = (pc.sum(pc.list_flatten(column)).as_py() for column in columns)
    return pa.table({"sum": [sum(total or 0.0 for total in totals)]})
