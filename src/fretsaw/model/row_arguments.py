"""Rows as users hand them over, checked: counts, row numbers, masks and places of pages.

What comes out are ints and NumPy arrays in which nothing was rounded, wrapped or taken for a
number; what does not fit is a `TypeError` or `ValueError` that says what was given.
"""

import operator
import sys
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fretsaw.model.runs import Int64Array

INT64_MAX = 2**63 - 1


def to_row_count(value: SupportsIndex) -> int:
    """A number of rows."""
    if isinstance(value, bool):
        raise TypeError(f"a number of rows must be an integer, got {value}")
    count = operator.index(value)
    if count < 0:
        raise ValueError(f"a number of rows must not be negative, got {count}")
    return count


def to_length(value: SupportsIndex) -> int:
    """The number of rows that a selection speaks about."""
    count = to_row_count(value)
    if count > INT64_MAX:
        raise ValueError(f"a selection has at most {INT64_MAX} rows, got {count}")
    return count


def to_integers(values: ArrayLike, name: str, row_shape: tuple[int, ...] = ()) -> Int64Array:
    """An array of int64, a row of it for each of the values."""
    array = np.asarray(values)
    if not array.size:  # np.asarray([]) is one-dimensional and float
        return np.empty((0, *row_shape), np.int64)
    if array.ndim == 0 or array.shape[1:] != row_shape:
        raise ValueError(f"{name} must be of shape {('n', *row_shape)}, got {array.shape}")
    if array.dtype.kind in "ufO":  # where NumPy puts Python ints beyond int64
        for extreme in (array.min(), array.max()):
            if extreme < -(2**63) or extreme >= 2**63:
                raise ValueError(f"{name} must fit 64 bits, got {extreme:.0f}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    return array.astype(np.int64, copy=False)


def to_booleans(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    """An array of booleans."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise TypeError(f"{name} must be a one-dimensional boolean array, got {values!r}")
    is_masked = "numpy.ma" in sys.modules and np.ma.is_masked(values)
    if is_masked or array.dtype == object:  # Arrow's nulls make an object array
        raise ValueError(f"{name} must not hold a null: a row is selected or not")
    if array.size and array.dtype != bool:
        raise TypeError(f"{name} must be boolean, got {array.dtype}")
    return array.astype(bool, copy=False)


def to_page_locations(locations: Sequence[Any] | NDArray[Any]) -> Int64Array:
    """The first row, the offset and the size of each page."""
    if len(locations) and hasattr(locations[0], "first_row_index"):
        fields = operator.attrgetter("first_row_index", "offset", "compressed_page_size")
        locations = list(map(fields, locations))
    return to_integers(locations, "page locations", (3,))


def pages_with_rows(boundaries: Int64Array) -> NDArray[np.bool_]:
    """Which pages hold a row; page i has the rows `boundaries[i]` to `boundaries[i + 1]`."""
    if boundaries[0] != 0:
        raise ValueError(f"the first page must start at row 0, not at row {boundaries[0]}")
    falls = np.flatnonzero(boundaries[1:] < boundaries[:-1])
    if falls.size:
        before, after = boundaries[falls[0]], boundaries[falls[0] + 1]
        raise ValueError(f"pages must be in row order, but row {after} follows row {before}")
    return boundaries[:-1] < boundaries[1:]
