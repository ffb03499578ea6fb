"""DuckDB: SQL over `read_parquet`."""

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from benchmarks import THREADS
from benchmarks.conditions import Condition, SqlDialect
from benchmarks.contestant import RowNumbers, added

SQL = SqlDialect()


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

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        return self._query(f'SELECT sum(list_sum("{column}")) AS "sum" FROM {_quoted(path)}')

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        # Its rows are tuples, which others have to give names to.
        rows = self._connection.execute(f"SELECT * FROM {_quoted(path)} LIMIT {count}")
        place = [name for name, *_ in rows.description].index(column)
        return added(row[place] for row in rows.fetchall())

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        names = ", ".join(f'"{name}"' for name in columns)
        return self._query(f"SELECT {names} FROM {_quoted(path)}")

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        names = "*" if columns is None else ", ".join(f'"{name}"' for name in columns)
        return self._query(f"SELECT {names} FROM {_quoted(path)} WHERE {_sql(where)}")

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        self._connection.register("listed", pa.table({"value": values}))
        return self.filter_text(path, f'"{column}" IN (SELECT value FROM listed)')

    def filter_text(self, path: str, condition: str) -> pa.Table:
        # A long list becomes a join, which does not keep the order.
        where = f"WHERE {condition} ORDER BY file_row_number"
        return self._query(f"SELECT * FROM {_quoted(path)} {where}")

    def find(self, path: str, where: Condition) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        return self._query(f"SELECT * FROM {_quoted(path)} WHERE {_sql(where)} LIMIT {count}")

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        # The numbers first, and then a join with them, takes as long.
        last = f"WHERE {_sql(where)} ORDER BY file_row_number DESC LIMIT {count}"
        numbered = f"SELECT *, file_row_number FROM {_quoted(path)} {last}"
        ordered = f"SELECT * EXCLUDE file_row_number FROM ({numbered}) ORDER BY file_row_number"
        return self._query(ordered)

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        return self._query(f'SELECT count(*) AS "count" FROM {_quoted(path)} WHERE {_sql(where)}')

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        # In the order of the paths, because it preserves the order of insertion. Counting with
        # `parquet_file_metadata`, then `file_row_number` in one file, takes a third longer.
        return self._query(f"SELECT * FROM {_folder(folder)} LIMIT {count} OFFSET {skip}")

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return self._query(f'SELECT count(*) AS "count" FROM {_folder(folder)}')

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        return self._query(f"SELECT * FROM {_folder(folder)} WHERE {_sql(where)}")

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        rows = 'count(*) AS "count"'
        return self._query(f"SELECT {rows} FROM {_folder(folder)} WHERE {_sql(where)}")

    def drain(self, path: str) -> int:
        reader = self._connection.sql(f"SELECT * FROM {_quoted(path)}").to_arrow_reader()
        return sum(batch.num_rows for batch in reader)

    def _query(self, text: str) -> pa.Table:
        return self._connection.sql(text).to_arrow_table()


def _quoted(path: str) -> str:
    escaped = path.replace("'", "''")
    return f"read_parquet('{escaped}')"


def _folder(path: str) -> str:
    escaped = path.replace("'", "''")
    return f"read_parquet('{escaped}/*/*.parquet', hive_partitioning = true)"


def _sql(where: Condition) -> str:
    condition: str = where.of(SQL).text
    return condition
