"""Whole quotients of decimals and what they leave, exactly: on the integers that are stored."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.predicates import types

_DIGITS_OF_WORDS = 18


def divided(
    function: str, left: pa.Array, right: pa.Array, kind: pa.DataType, truncates: bool
) -> pa.Array:
    """The quotient or the rest, floored or truncated; null where the divisor is zero."""
    sides = [array.cast(types.as_decimal(array.type)) for array in (left, right)]
    scale = max(side.type.scale for side in sides)
    dividend, divisor = (_unscaled(side, scale) for side in sides)
    unknown = np.asarray(left.is_null()) | np.asarray(right.is_null()) | (divisor == 0)
    divisor = np.where(unknown, 1, divisor)
    if dividend.dtype != divisor.dtype:
        dividend, divisor = dividend.astype(object), divisor.astype(object)
    quotient = dividend // divisor
    if truncates:
        quotient = quotient + ((quotient < 0) & (quotient * divisor != dividend))
    found = quotient if function == "//" else dividend - quotient * divisor
    return _scaled(found, unknown, kind)


def _unscaled(array: pa.Array, scale: int) -> npt.NDArray[Any]:
    """Decimals as integers at a scale; nulls are zero."""
    digits = array.type.precision - array.type.scale + scale
    array = array.fill_null(Decimal(0))
    if digits <= _DIGITS_OF_WORDS:
        words = array.cast(pa.decimal128(38, scale))
        stored = np.frombuffer(words.buffers()[1], np.int64)
        return stored[2 * words.offset : 2 * (words.offset + len(words)) : 2]
    with localcontext(prec=200):
        numbers = [int(value.scaleb(scale)) for value in array.to_pylist()]
    found = np.empty(len(numbers), object)
    found[:] = numbers
    return found


def _scaled(found: npt.NDArray[Any], unknown: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Integers at the scale of a type as its values."""
    if found.dtype != object:
        words = np.column_stack((found, found >> 63))  # the sign fills the upper word
        buffers = [None, pa.py_buffer(np.ascontiguousarray(words))]
        array = pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(found), buffers)
        return pa.compute.if_else(pa.array(~unknown), array, None).cast(kind)
    with localcontext(prec=200):
        values = [Decimal(int(number)).scaleb(-kind.scale) for number in found]
    return pa.array(values, kind, mask=unknown)
