"""Leaves as NumPy arrays: which Arrow type becomes which, without a copy where the layouts agree.

`values` are of a fixed width; `binary` are bytes, one value behind the other, and where each of
them begins. What stands in the place of a null is undefined.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from fretsaw.model.arrays import Array, locked

_MOST_DIGITS = 18
"""Decimals of so many digits fit into 64 bits."""


def values(array: pa.Array) -> Array | None:
    """The values of a plain leaf; None if they are not of a fixed width that NumPy knows."""
    arrow_type = array.type
    dtype = _SAME.get(arrow_type.id)
    if dtype is not None:
        return _stored(array, dtype)
    if pa.types.is_boolean(arrow_type):
        return _booleans(array)
    if pa.types.is_null(arrow_type):
        return np.zeros(len(array), np.uint8)
    if pa.types.is_decimal(arrow_type):
        # Little-endian: the lowest of the words holds a number of few digits whole.
        words = _stored(array, np.dtype(f"i{min(arrow_type.byte_width, 8)}"))
        lowest = words[:: max(arrow_type.byte_width // 8, 1)]
        few = arrow_type.precision <= _MOST_DIGITS
        return lowest.astype(np.int64, copy=False) if few else None
    dtype = _time(arrow_type)
    if dtype is None:
        return None
    if dtype.itemsize == arrow_type.byte_width:
        return _stored(array, dtype)
    return _stored(array, np.dtype(np.int32)).astype(dtype)


_NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
)
_SAME: dict[int, np.dtype[Any]] = {
    number.id: np.dtype(number.to_pandas_dtype()) for number in _NUMBERS
}


def binary(array: pa.Array) -> tuple[Array, Array] | None:
    """The bytes of a plain leaf and the offsets of its values, from 0; None if it has none."""
    arrow_type = array.type
    if pa.types.is_fixed_size_binary(arrow_type) or pa.types.is_decimal(arrow_type):
        width = arrow_type.byte_width
        return _stored(array, np.dtype(np.uint8)), np.arange(len(array) + 1) * width
    if pa.types.is_binary(arrow_type) or pa.types.is_string(arrow_type):
        index = "i4"
    elif pa.types.is_large_binary(arrow_type) or pa.types.is_large_string(arrow_type):
        index = "i8"
    else:
        return None
    _, starts, data = array.buffers()
    if not len(array):
        return np.empty(0, np.uint8), np.zeros(1, index)
    offsets = np.frombuffer(starts, index, len(array) + 1, array.offset * int(index[1]))
    first, last = int(offsets[0]), int(offsets[-1])
    stored = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[first:last]
    return locked(stored), locked(offsets - first if first else offsets)


def _stored(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The buffer of an array of a fixed width, as so many items of a type as fit."""
    width, buffer = array.type.byte_width, array.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype)
    count = len(array) * width // dtype.itemsize
    return locked(np.frombuffer(buffer, dtype, count, array.offset * width))


def _booleans(array: pa.Array) -> Array:
    buffer, begin = array.buffers()[1], array.offset
    if buffer is None:
        return np.empty(0, np.bool_)
    packed = np.frombuffer(buffer, np.uint8)[begin // 8 : -(-(begin + len(array)) // 8)]
    bits = np.unpackbits(packed, bitorder="little")
    return locked(bits[begin % 8 : begin % 8 + len(array)].view(np.bool_))


def _time(arrow_type: pa.DataType) -> np.dtype[Any] | None:
    types, name = pa.types, None
    if types.is_date32(arrow_type):
        name = "datetime64[D]"
    elif types.is_date64(arrow_type):
        name = "datetime64[ms]"
    elif types.is_timestamp(arrow_type):
        name = f"datetime64[{arrow_type.unit}]"
    elif types.is_time(arrow_type) or types.is_duration(arrow_type):
        name = f"timedelta64[{arrow_type.unit}]"
    return None if name is None else np.dtype(name)
