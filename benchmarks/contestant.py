"""What a contestant must be able to do, so that workloads need not know which one it is.

In: the path of a file, or of a folder of files, and what is wanted of it. Out: a `pyarrow.Table`
with the rows in file order, so that the answers of all contestants can be compared. Each call
opens the files anew. A folder has Hive folders (`key=value`) in it, in the order of their names
and with one file each; `key` is the column which they make, the last one.
A contestant that has no way to do a piece of work raises `Unsupported` with the reason, which
the table then shows.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RowNumbers = npt.NDArray[np.int64]


class Unsupported(Exception):
    """The contestant can not do this work; the message says why."""


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

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        """These columns, all rows."""

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        """Rows `skip` to `skip + count` of all files, all columns and `key`."""

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        """One row, `count`: how many rows all files have."""

    def drain(self, path: str) -> int:
        """Stream all columns in little memory, drop the batches, return the number of rows."""
