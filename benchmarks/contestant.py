"""What a contestant must be able to do, so that workloads need not know which one it is.

In: the path of a file, or of a folder of files, and what is wanted of it. Out: a `pyarrow.Table`
with the rows in file order, so that the answers of all contestants can be compared. Each call
opens the files anew. A folder has Hive folders (`key=value`) in it, in the order of their names
and with one file each; `key` is the column which they make, the last one. A condition is one
of `conditions`, which each contestant turns into an expression of its own.
A contestant that has no way to do a piece of work raises `Unsupported` with the reason, which
the table then shows.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.conditions import Condition

RowNumbers = npt.NDArray[np.int64]


class Unsupported(Exception):
    """The contestant can not do this work; the message says why."""


def added(values: Iterable[float | None]) -> pa.Table:
    """The sum of values that come one by one, and how many there were."""
    total, count = 0.0, 0
    for value in values:
        total += value or 0.0
        count += 1
    return pa.table({"total": [total], "count": [count]})


class Contestant(Protocol):
    """One reader of Parquet files, in the way its users are told to use it."""

    name: str

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        """Rows `skip` to `skip + count`, all columns."""

    def tail(self, path: str, count: int) -> pa.Table:
        """The last `count` rows, all columns; how many there are is not known beforehand."""

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        """The rows with these numbers, which are sorted and unique, all columns."""

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        """One row: the sum of each column over the whole file, streaming."""

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        """One row, `sum`: the sum of the elements of all lists in a column of floats, streaming."""

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        """One row: the sum of a column, `added` up in a loop over the first `count` rows, which
        come as Python objects of all columns, by name."""

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        """These columns, all rows."""

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows that match, these columns of them; all columns if None."""

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        """The rows whose column has one of these many values, all columns."""

    def filter_text(self, path: str, condition: str) -> pa.Table:
        """The rows that match a condition in SQL, all columns."""

    def find(self, path: str, where: Condition) -> pa.Table:
        """The one row that matches, all columns; nobody is told that there is only one."""

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        """The first `count` rows that match, all columns."""

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        """The last `count` rows that match, all columns."""

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        """One row, `count`: how many rows match."""

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        """Rows `skip` to `skip + count` of all files, all columns and `key`."""

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        """One row, `count`: how many rows all files have."""

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        """The rows of all files that match, all columns and `key`."""

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        """One row, `count`: how many rows of all files match, where `key` may be tested."""

    def drain(self, path: str) -> int:
        """Stream all columns in little memory, drop the batches, return the number of rows."""
