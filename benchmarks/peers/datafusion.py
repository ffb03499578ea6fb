"""DataFusion: data frames over `read_parquet`."""

from collections.abc import Sequence
from typing import Any

import datafusion
import pyarrow as pa
from datafusion import functions as dff

from benchmarks import THREADS
from benchmarks.conditions import Condition, Dialect, Expression
from benchmarks.contestant import RowNumbers, Unsupported


class DataFusionDialect(Dialect):
    """Expressions of DataFusion."""

    def column(self, name: str) -> Any:
        return datafusion.col(name)

    def literal(self, value: Any) -> Any:
        return datafusion.lit(value)

    def contains(self, text: Any, part: str) -> Any:
        return dff.contains(text, datafusion.lit(part))

    def lower(self, text: Any) -> Any:
        return dff.lower(text)


DATAFUSION = DataFusionDialect()


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
        frame = self._context.read_parquet(path)
        totals = [dff.sum(_number(frame, name)).alias(name) for name in columns]
        return frame.aggregate([], totals).to_arrow_table()

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        elements = self._context.read_parquet(path).select(column).unnest_columns(column)
        total = dff.sum(datafusion.col(column)).alias("sum")
        return elements.aggregate([], [total]).to_arrow_table()

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        raise Unsupported("rows are pyarrow's, of its batches")

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return self._context.read_parquet(path).select(*columns).to_arrow_table()

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        # One partition keeps the order: two and a sort take a third longer for few rows, and as
        # long for a hundred thousand; but a third less where the condition itself costs much.
        if isinstance(where, Expression):
            frame = self._matching(self._context, path, where).sort(dff.file_row_index().sort())
        else:
            frame = self._matching(self._one_by_one, path, where)
        return (frame if columns is None else frame.select(*columns)).to_arrow_table()

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        # A list of literals takes seconds to make; without the sort, over one partition, the join
        # takes three times as long.
        wanted = self._context.from_arrow(pa.table({"value": values}))
        numbered = self._context.read_parquet(path).with_column("row", dff.file_row_index())
        found = numbered.join(wanted, left_on=column, right_on="value", how="semi")
        return found.sort(datafusion.col("row").sort()).drop("row").to_arrow_table()

    def filter_text(self, path: str, condition: str) -> pa.Table:
        return self._one_by_one.read_parquet(path).filter(condition).to_arrow_table()

    def find(self, path: str, where: Condition) -> pa.Table:
        # One row has no order to keep.
        return self._matching(self._context, path, where).to_arrow_table()

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        return self._matching(self._one_by_one, path, where).limit(count).to_arrow_table()

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        # The numbers first, and then the rows from the least of them on, takes as long.
        row = datafusion.col("row")
        numbered = self._matching(self._context, path, where).with_column(
            "row", dff.file_row_index()
        )
        last = numbered.sort(row.sort(ascending=False)).limit(count)
        return last.sort(row.sort()).drop("row").to_arrow_table()

    def filter_count(self, path: str, where: Condition) -> pa.Table:
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

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        order = datafusion.col(key.name).sort(), dff.file_row_index().sort()
        frame = self._folder(folder, key).filter(self._expression(where))
        return frame.sort(*order).to_arrow_table()

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
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
        cls, context: datafusion.SessionContext, path: str, where: Condition
    ) -> datafusion.DataFrame:
        return context.read_parquet(path).filter(cls._expression(where))

    @staticmethod
    def _expression(where: Condition) -> datafusion.Expr:
        condition: datafusion.Expr = where.of(DATAFUSION)
        return condition

    @staticmethod
    def _ordered(frame: datafusion.DataFrame) -> pa.Table:
        return frame.sort(dff.file_row_index().sort()).to_arrow_table()


def _number(frame: datafusion.DataFrame, name: str) -> datafusion.Expr:
    """A column to add up: it has no sum of booleans."""
    column = datafusion.col(name)
    is_boolean = pa.types.is_boolean(frame.schema().field(name).type)
    return column.cast(pa.int32()) if is_boolean else column
