"""The peers, each in the fastest exact way that its documentation offers.

In and out: as `contestant` says. Connections and contexts are made once, as their users do;
whatever they would remember of a file between two calls is turned off, because each timed call
is to open the file anew. Where a peer has several ways to do a thing, the fastest one that
returns the right rows in the right order is here, and a comment names the runner-up.
"""

from collections.abc import Sequence
from datetime import date, datetime
from itertools import chain, islice, pairwise
from typing import Any

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from datafusion import functions as dff

from benchmarks import THREADS
from benchmarks.contestant import RowNumbers, Unsupported, Where, added

NO_FILTER = "a ParquetFile has no filter; pyarrow's way is dataset"


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
        totals = dict.fromkeys(columns, 0.0)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=columns)
            for name in columns:
                totals[name] += pc.sum(table[name]).as_py() or 0.0
        return pa.table({name: [total] for name, total in totals.items()})

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        # Batches of 8,192 rows are the fastest of 1,024 to 65,536.
        batches = pq.ParquetFile(path).iter_batches(batch_size=8_192)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        return added(row[column] for row in islice(rows, count))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return pq.ParquetFile(path, pre_buffer=False).read(columns=columns)

    def filter(self, path: str, where: Where, columns: Sequence[str] | None = None) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def find(self, path: str, where: Where) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_head(self, path: str, where: Where, count: int) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_tail(self, path: str, where: Where, count: int) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def filter_count(self, path: str, where: Where) -> pa.Table:
        raise Unsupported(NO_FILTER)

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        raise Unsupported("a ParquetFile is one file; pyarrow's way is dataset")

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        raise Unsupported("a ParquetFile is one file; pyarrow's way is dataset")

    def folder_filter(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        raise Unsupported("a ParquetFile is one file; pyarrow's way is dataset")

    def folder_filter_count(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        raise Unsupported("a ParquetFile is one file; pyarrow's way is dataset")

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

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        batches = ds.dataset(path).to_batches(batch_size=8_192, batch_readahead=2)
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        return added(row[column] for row in islice(rows, count))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return ds.dataset(path).to_table(columns=list(columns))

    def filter(self, path: str, where: Where, columns: Sequence[str] | None = None) -> pa.Table:
        names = None if columns is None else list(columns)
        return ds.dataset(path).to_table(names, filter=self._expression(where))

    def find(self, path: str, where: Where) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Where, count: int) -> pa.Table:
        # Batches of its own size take longer.
        expression = self._expression(where)
        return ds.dataset(path).head(count, filter=expression, batch_size=20 * count)

    def filter_tail(self, path: str, where: Where, count: int) -> pa.Table:
        # Row group by row group, from the last one backward.
        (fragment,) = ds.dataset(path).get_fragments()
        parts: list[pa.Table] = []
        for part in reversed(fragment.split_by_row_group()):
            parts.insert(0, part.to_table(filter=self._expression(where)))
            if sum(table.num_rows for table in parts) >= count:
                break
        table = pa.concat_tables(parts)
        return table.slice(max(0, table.num_rows - count))

    def filter_count(self, path: str, where: Where) -> pa.Table:
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

    def folder_filter(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        return self._folder(folder, key).to_table(filter=self._expression(where))

    def folder_filter_count(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
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
    def _expression(where: Where) -> pc.Expression:
        return where.of(pc.field(where.column))


class Polars:
    """`scan_parquet` on the streaming engine: here as fast as the other, or faster."""

    name = "polars"

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        return self._collect(pl.scan_parquet(path).slice(skip, count))

    def tail(self, path: str, count: int) -> pa.Table:
        return self._collect(pl.scan_parquet(path).tail(count))

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        # A semi join; `is_in` takes about as long, `gather` three times.
        wanted = pl.LazyFrame({"row": rows.astype(np.uint32)})
        numbered = pl.scan_parquet(path, row_index_name="row")
        joined = numbered.join(wanted, on="row", how="semi", maintain_order="left")
        return self._collect(joined.drop("row"))

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        return self._collect(pl.scan_parquet(path).select(pl.col(columns).sum()))

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        frame = pl.scan_parquet(path).head(count).collect(engine="streaming")
        return added(row[column] for row in frame.iter_rows(named=True))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        # No predicate, so no use for statistics: without them 10,000 columns take 15% less.
        return self._collect(pl.scan_parquet(path, use_statistics=False).select(columns))

    def filter(self, path: str, where: Where, columns: Sequence[str] | None = None) -> pa.Table:
        matching = pl.scan_parquet(path).filter(where.of(pl.col(where.column)))
        return self._collect(matching if columns is None else matching.select(columns))

    def find(self, path: str, where: Where) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Where, count: int) -> pa.Table:
        matching = pl.scan_parquet(path).filter(where.of(pl.col(where.column)))
        return self._collect(matching.head(count))

    def filter_tail(self, path: str, where: Where, count: int) -> pa.Table:
        # First where the last ones begin, from one column alone: a fifth of the time of `tail`.
        matches = where.of(pl.col(where.column))
        numbered = pl.scan_parquet(path, row_index_name="row").filter(matches)
        rows = numbered.select("row").tail(count).collect(engine="streaming")
        first = rows.item(0, 0) if rows.height else 0
        return self._collect(pl.scan_parquet(path).slice(first).filter(matches))

    def filter_count(self, path: str, where: Where) -> pa.Table:
        matching = pl.scan_parquet(path).filter(where.of(pl.col(where.column)))
        return self._collect(matching.select(pl.len().alias("count")))

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        return self._collect(self._folder(folder).slice(skip, count))

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return self._collect(self._folder(folder).select(pl.len().alias("count")))

    def folder_filter(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        frame = pl.scan_parquet(folder, hive_partitioning=True)
        return self._collect(frame.filter(where.of(pl.col(where.column))))

    def folder_filter_count(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        matching = self._folder(folder).filter(where.of(pl.col(where.column)))
        return self._collect(matching.select(pl.len().alias("count")))

    def drain(self, path: str) -> int:
        batches = pl.scan_parquet(path).collect_batches(engine="streaming")
        return sum(batch.height for batch in batches)

    @staticmethod
    def _folder(folder: str) -> pl.LazyFrame:
        # Without statistics it takes a tenth less here too.
        return pl.scan_parquet(folder, hive_partitioning=True, use_statistics=False)

    @staticmethod
    def _collect(frame: pl.LazyFrame) -> pa.Table:
        return frame.collect(engine="streaming").to_arrow()


class DuckDB:
    """SQL over `read_parquet`; `file_row_number` prunes row groups, LIMIT/OFFSET does not."""

    name = "duckdb"

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {THREADS}")
        # Both caches would keep parts of the file from one timed call to the next.
        self._connection.execute("SET enable_external_file_cache = false")
        self._connection.execute("SET parquet_metadata_cache = false")

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        # A third faster than LIMIT/OFFSET.
        where = f"file_row_number BETWEEN {skip} AND {skip + count - 1}"
        return self._query(f"SELECT * FROM {_quoted(path)} WHERE {where}")

    def tail(self, path: str, count: int) -> pa.Table:
        total = f"(SELECT count(*) FROM {_quoted(path)})"
        where = f"file_row_number >= {total} - {count}"
        return self._query(f"SELECT * FROM {_quoted(path)} WHERE {where}")

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        # A semi join; a list of 1,000 literals takes longer. The order needs saying: without
        # it the rows come as the threads finish.
        self._connection.register("wanted", pa.table({"row": rows}))
        where = 'file_row_number IN (SELECT "row" FROM wanted) ORDER BY file_row_number'
        return self._query(f"SELECT * FROM {_quoted(path)} WHERE {where}")

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        totals = ", ".join(f'sum("{name}") AS "{name}"' for name in columns)
        return self._query(f"SELECT {totals} FROM {_quoted(path)}")

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        # Its rows are tuples, which others have to give names to.
        rows = self._connection.execute(f"SELECT * FROM {_quoted(path)} LIMIT {count}")
        place = [name for name, *_ in rows.description].index(column)
        return added(row[place] for row in rows.fetchall())

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        names = ", ".join(f'"{name}"' for name in columns)
        return self._query(f"SELECT {names} FROM {_quoted(path)}")

    def filter(self, path: str, where: Where, columns: Sequence[str] | None = None) -> pa.Table:
        names = "*" if columns is None else ", ".join(f'"{name}"' for name in columns)
        return self._query(f"SELECT {names} FROM {_quoted(path)} WHERE {_sql(where)}")

    def find(self, path: str, where: Where) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Where, count: int) -> pa.Table:
        return self._query(f"SELECT * FROM {_quoted(path)} WHERE {_sql(where)} LIMIT {count}")

    def filter_tail(self, path: str, where: Where, count: int) -> pa.Table:
        # The numbers first, and then a join with them, takes as long.
        last = f"WHERE {_sql(where)} ORDER BY file_row_number DESC LIMIT {count}"
        numbered = f"SELECT *, file_row_number FROM {_quoted(path)} {last}"
        ordered = f"SELECT * EXCLUDE file_row_number FROM ({numbered}) ORDER BY file_row_number"
        return self._query(ordered)

    def filter_count(self, path: str, where: Where) -> pa.Table:
        return self._query(f'SELECT count(*) AS "count" FROM {_quoted(path)} WHERE {_sql(where)}')

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        # In the order of the paths, because it preserves the order of insertion. Counting with
        # `parquet_file_metadata`, then `file_row_number` in one file, takes a third longer.
        return self._query(f"SELECT * FROM {_folder(folder)} LIMIT {count} OFFSET {skip}")

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return self._query(f'SELECT count(*) AS "count" FROM {_folder(folder)}')

    def folder_filter(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        return self._query(f"SELECT * FROM {_folder(folder)} WHERE {_sql(where)}")

    def folder_filter_count(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        rows = 'count(*) AS "count"'
        return self._query(f"SELECT {rows} FROM {_folder(folder)} WHERE {_sql(where)}")

    def drain(self, path: str) -> int:
        reader = self._connection.sql(f"SELECT * FROM {_quoted(path)}").to_arrow_reader()
        return sum(batch.num_rows for batch in reader)

    def _query(self, text: str) -> pa.Table:
        return self._connection.sql(text).to_arrow_table()


class DataFusion:
    """DataFrames over `read_parquet`, with filters pushed down into the decoder."""

    name = "datafusion"

    def __init__(self) -> None:
        options = {
            "datafusion.execution.parquet.pushdown_filters": "true",
            # Reading the statistics of every column beforehand helps none of the workloads.
            "datafusion.execution.collect_statistics": "false",
        }
        self._context, self._one_by_one = (
            datafusion.SessionContext(
                datafusion.SessionConfig(options).with_target_partitions(partitions)
            )
            for partitions in (THREADS, 1)
        )
        # All three would keep footers or listings from one timed call to the next.
        for cache in ("metadata_cache", "list_files_cache", "file_statistics_cache"):
            for context in (self._context, self._one_by_one):
                context.sql(f"SET datafusion.runtime.{cache}_limit = '0'").collect()

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        # `limit` over two partitions takes rows in no particular order, over one it is slower,
        # except with nested columns: half the time there, and still twenty times the best.
        row = dff.file_row_index()
        within = row.between(datafusion.lit(skip), datafusion.lit(skip + count - 1))
        return self._ordered(self._context.read_parquet(path).filter(within))

    def tail(self, path: str, count: int) -> pa.Table:
        # Not `DataFrame.tail`: it is a `limit`, see above.
        frame = self._context.read_parquet(path)
        first = datafusion.lit(frame.count() - count)
        return self._ordered(frame.filter(dff.file_row_index() >= first))

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        # A join on `file_row_index` is not possible, so a list.
        wanted = [datafusion.lit(row) for row in rows.tolist()]
        frame = self._context.read_parquet(path)
        return self._ordered(frame.filter(dff.in_list(dff.file_row_index(), wanted)))

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        totals = [dff.sum(datafusion.col(name)).alias(name) for name in columns]
        return self._context.read_parquet(path).aggregate([], totals).to_arrow_table()

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        raise Unsupported("rows are pyarrow's, of its batches")

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return self._context.read_parquet(path).select(*columns).to_arrow_table()

    def filter(self, path: str, where: Where, columns: Sequence[str] | None = None) -> pa.Table:
        # One partition keeps the order: two and a sort take a third longer for few rows, and as
        # long for a hundred thousand.
        frame = self._matching(self._one_by_one, path, where)
        return (frame if columns is None else frame.select(*columns)).to_arrow_table()

    def find(self, path: str, where: Where) -> pa.Table:
        # One row has no order to keep.
        return self._matching(self._context, path, where).to_arrow_table()

    def filter_head(self, path: str, where: Where, count: int) -> pa.Table:
        return self._matching(self._one_by_one, path, where).limit(count).to_arrow_table()

    def filter_tail(self, path: str, where: Where, count: int) -> pa.Table:
        # The numbers first, and then the rows from the least of them on, takes as long.
        row = datafusion.col("row")
        numbered = self._matching(self._context, path, where).with_column(
            "row", dff.file_row_index()
        )
        last = numbered.sort(row.sort(ascending=False)).limit(count)
        return last.sort(row.sort()).drop("row").to_arrow_table()

    def filter_count(self, path: str, where: Where) -> pa.Table:
        rows = dff.count_star().alias("count")
        return self._matching(self._context, path, where).aggregate([], [rows]).to_arrow_table()

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        # `limit` over two partitions takes rows in no particular order, over one it takes three
        # times as long. So rows are counted by folder, which has one file, and then taken by
        # their number in it.
        frame = self._folder(folder, key)
        column, row = datafusion.col(key.name), dff.file_row_index()
        counts = frame.aggregate([column], [dff.count_star().alias("rows")]).to_arrow_table()
        within = datafusion.lit(False)
        for value, rows in zip(*counts.sort_by(key.name).to_pydict().values(), strict=True):
            if skip < rows and count:
                taken = min(count, rows - skip)
                span = row.between(datafusion.lit(skip), datafusion.lit(skip + taken - 1))
                within = within | ((column == datafusion.lit(value)) & span)
                count -= taken
            skip = max(skip - rows, 0)
        return frame.filter(within).sort(column.sort(), row.sort()).to_arrow_table()

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        rows = dff.count_star().alias("count")
        return self._folder(folder, key).aggregate([], [rows]).to_arrow_table()

    def folder_filter(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        order = datafusion.col(key.name).sort(), dff.file_row_index().sort()
        frame = self._folder(folder, key).filter(self._expression(where))
        return frame.sort(*order).to_arrow_table()

    def folder_filter_count(self, folder: str, key: pa.Field, where: Where) -> pa.Table:
        rows = dff.count_star().alias("count")
        frame = self._folder(folder, key).filter(self._expression(where))
        return frame.aggregate([], [rows]).to_arrow_table()

    def drain(self, path: str) -> int:
        stream = self._context.read_parquet(path).execute_stream()
        return sum(batch.to_pyarrow().num_rows for batch in stream)

    def _folder(self, folder: str, key: pa.Field) -> datafusion.DataFrame:
        return self._context.read_parquet(folder, table_partition_cols=[(key.name, key.type)])

    @classmethod
    def _matching(
        cls, context: datafusion.SessionContext, path: str, where: Where
    ) -> datafusion.DataFrame:
        return context.read_parquet(path).filter(cls._expression(where))

    @staticmethod
    def _expression(where: Where) -> datafusion.Expr:
        condition: datafusion.Expr = where.of(datafusion.col(where.column), datafusion.lit)
        return condition

    @staticmethod
    def _ordered(frame: datafusion.DataFrame) -> pa.Table:
        return frame.sort(dff.file_row_index().sort()).to_arrow_table()


def _group_bounds(file: pq.ParquetFile) -> RowNumbers:
    """The number of the first row of each row group, and of all rows."""
    metadata = file.metadata
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return np.cumsum([0, *counts], dtype=np.int64)


def _quoted(path: str) -> str:
    escaped = path.replace("'", "''")
    return f"read_parquet('{escaped}')"


def _folder(path: str) -> str:
    escaped = path.replace("'", "''")
    return f"read_parquet('{escaped}/*/*.parquet', hive_partitioning = true)"


def _sql(where: Where) -> str:
    tests = [f'"{where.column}" {sign} {_sql_literal(value)}' for sign, value in where.tests]
    return " AND ".join(tests)


def _sql_literal(value: Any) -> str:
    match value:
        case datetime():
            return f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)
