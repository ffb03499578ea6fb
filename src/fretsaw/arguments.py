"""What users tell a scan, checked: columns, predicates, rows and counts.

What is no such thing is a `TypeError` or `ValueError` that says what was given and what would do.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.model.blocks import Int64s
from fretsaw.model.schema import Path, spelled
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.expression import Column, Expression, as_predicate
from fretsaw.predicates.logic import Predicate
from fretsaw.storage.hive import Hive

Named: TypeAlias = Path | Column
"""How a user names a column of a projection."""
Rows: TypeAlias = RowSelection | Sequence[int] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray


def to_paths(columns: Sequence[Named | list[Named]]) -> tuple[Path, ...]:
    """The paths of columns that are named one by one or in lists."""
    paths: list[Path] = []
    for column in columns:
        if isinstance(column, list):
            paths += to_paths(column)
            continue
        path = column.path if isinstance(column, Column) else column
        exact = isinstance(path, tuple) and all(isinstance(step, str) for step in path)
        if not exact and not isinstance(path, str):
            raise TypeError(f"a column is named by a str or a tuple of them, not {column!r}")
        if isinstance(column, Column) and (column.fold or column.is_physical):
            raise TypeError(f"{column!r} is for predicates; select {spelled(path)!r}")
        paths.append(path)
    return tuple(paths)


def to_names(names: Mapping[str, str]) -> dict[str, str]:
    """Old and new names of columns."""
    if not isinstance(names, Mapping):
        raise TypeError(f'rename() takes names by names, {{"old": "new"}}, not {names!r}')
    for name in (*names, *names.values()):
        if not isinstance(name, str):
            raise TypeError(f"a column is renamed from a str to a str, not {name!r}")
    return dict(names)


def to_hive(hive: Hive) -> Hive:
    """Whether folders are columns, or which of them and of what types."""
    if isinstance(hive, bool):
        return hive
    is_typed = isinstance(hive, Mapping) and all(
        isinstance(key, str) and isinstance(kind, pa.DataType) for key, kind in hive.items()
    )
    if not is_typed:
        raise TypeError(f'hive is True, False, or types by names, {{"day": pa.string()}}: {hive!r}')
    return dict(hive)


def to_predicate(given: object) -> Predicate:
    """A condition on values; an expression of booleans is one."""
    if not isinstance(given, Predicate | Expression):
        hint = "; did you leave out () or .otherwise(...)?" if isinstance(given, bool) else ""
        raise TypeError(
            f"filter() takes a predicate such as col('fare') > 100 or 'fare > 100', or a block "
            f"predicate, fs.byte_range(...) or fs.blocks(...), not {given!r}{hint}"
        )
    return as_predicate(given)


def to_row_numbers(rows: Sequence[int] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray) -> Int64s:
    """Row numbers as an array of their own, whatever they came in."""
    numbers = np.array(rows)
    if numbers.size == 0:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise TypeError(
            f"row numbers are a one-dimensional array of integers, not {numbers.ndim}-dimensional "
            f"{numbers.dtype}; make a mask into rows with RowSelection.from_filters([mask])"
        )
    return numbers.astype(np.int64)


def to_count(name: str, n: int) -> int:
    """The number of rows that a method of this name was called with."""
    if not hasattr(n, "__index__"):
        raise TypeError(f"{name}({n!r}): a number of rows is an int")
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"{name}({count}): a number of rows cannot be negative")
    return count


def require_batch_size(batch_size: int | None) -> None:
    """Refuse batches without rows."""
    if batch_size is None:
        return
    if not hasattr(batch_size, "__index__"):
        raise TypeError(f"batch_size must be an int, not {batch_size!r}")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
