"""polars: `scan_parquet`, and what hangs on it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.conditions import Condition, Dialect
from benchmarks.contestant import RowNumbers, added


class PolarsDialect(Dialect):
    """Expressions of polars."""

    def column(self, name: str) -> Any:
        return pl.col(name)

    def contains(self, text: Any, part: str) -> Any:
        return text.str.contains(part, literal=True)

    def lower(self, text: Any) -> Any:
        return text.str.to_lowercase()


POLARS = PolarsDialect()


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

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        total = pl.col(column).list.sum().sum().alias("sum").cast(pl.Float64)
        return self._collect(pl.scan_parquet(path).select(total))

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        frame = pl.scan_parquet(path).head(count).collect(engine="streaming")
        return added(row[column] for row in frame.iter_rows(named=True))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        # No predicate, so no use for statistics: without them 10,000 columns take 15% less.
        return self._collect(pl.scan_parquet(path, use_statistics=False).select(columns))

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        matching = pl.scan_parquet(path).filter(where.of(POLARS))
        return self._collect(matching if columns is None else matching.select(columns))

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        # A semi join takes half as long again.
        wanted = pl.Series(values).implode()
        return self._collect(pl.scan_parquet(path).filter(pl.col(column).is_in(wanted)))

    def filter_text(self, path: str, condition: str) -> pa.Table:
        return self._collect(pl.scan_parquet(path).filter(pl.sql_expr(condition)))

    def find(self, path: str, where: Condition) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        matching = pl.scan_parquet(path).filter(where.of(POLARS))
        return self._collect(matching.head(count))

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        # First where the last ones begin, from one column alone: a fifth of the time of `tail`.
        matches = where.of(POLARS)
        numbered = pl.scan_parquet(path, row_index_name="row").filter(matches)
        rows = numbered.select("row").tail(count).collect(engine="streaming")
        first = rows.item(0, 0) if rows.height else 0
        return self._collect(pl.scan_parquet(path).slice(first).filter(matches))

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        matching = pl.scan_parquet(path).filter(where.of(POLARS))
        return self._collect(matching.select(pl.len().alias("count")))

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        return self._collect(self._folder(folder).slice(skip, count))

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return self._collect(self._folder(folder).select(pl.len().alias("count")))

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        frame = pl.scan_parquet(folder, hive_partitioning=True)
        return self._collect(frame.filter(where.of(POLARS)))

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        matching = self._folder(folder).filter(where.of(POLARS))
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
