"""How the values of two columns compare, row by row and by value, whatever their types are.

Arrow compares only like with like: integers of other signs, floats beside integers, decimals of
far scales and times of other units are taken apart here into wholes and rests, which compare
exactly. Nulls are anything.
"""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.predicates import types
from fretsaw.predicates.value_set import Booleans, float_keys

Signs: TypeAlias = npt.NDArray[np.int8]
"""-1 where the left value is below the right one, 1 where it is above, else 0."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]]
_OPERATORS = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_NEAR = 1e-12  # doubles of decimals that are closer than this are compared exactly


def holds(operator: str, left: pa.Array, right: pa.Array) -> Booleans:
    """Whether a comparison of two columns is true; anything where one is null."""
    numbers = _like_numbers(left, right)
    if numbers is not None:
        return np.asarray(_OPERATORS[operator](*numbers))
    signs = compared(left, right)
    match operator:
        case "==":
            return np.asarray(signs == 0)
        case "!=":
            return np.asarray(signs != 0)
        case "<":
            return np.asarray(signs < 0)
        case "<=":
            return np.asarray(signs <= 0)
        case ">":
            return np.asarray(signs > 0)
        case _:
            return np.asarray(signs >= 0)


def _like_numbers(left: pa.Array, right: pa.Array) -> list[npt.NDArray[Any]] | None:
    """Integers of the same sign, or times of the same unit, which compare as they are stored."""
    kinds = left.type, right.type
    if all(map(pa.types.is_signed_integer, kinds)):
        return [_numpy(left), _numpy(right)]
    if all(map(types.is_clock, kinds)) and types.tick(kinds[0]) == types.tick(kinds[1]):
        return [_ticks(left), _ticks(right)]
    return None


def compared(left: pa.Array, right: pa.Array) -> Signs:
    """Where the left values stand beside the right ones."""
    kinds = left.type, right.type
    is_float = [pa.types.is_floating(kind) for kind in kinds]
    if all(is_float):
        return _signs(float_keys(_numpy(left)), float_keys(_numpy(right)))
    if is_float[0]:
        return -compared(right, left)
    if is_float[1]:
        decimals = pa.types.is_decimal(left.type)
        return (_decimals_with_floats if decimals else _integers_with_floats)(left, right)
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        return _decimals(*(array.cast(types.as_decimal(array.type)) for array in (left, right)))
    if pa.types.is_integer(left.type):
        return _integers(_numpy(left), _numpy(right))
    if types.is_clock(left.type):
        return _clocks(left, right)
    if pa.types.is_boolean(left.type):
        return _signs(_numpy(left).astype(np.int8), _numpy(right).astype(np.int8))
    stored = [array.cast(pa.large_binary()) for array in (left, right)]
    return _above_below(pc.greater(*stored), pc.less(*stored))


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    return np.asarray(array)


def _ticks(array: pa.Array) -> npt.NDArray[np.int64]:
    """Times as the integers that they are stored as."""
    narrow = array.type.bit_width == 32
    return _numpy(array.view(pa.int32() if narrow else pa.int64())).astype(np.int64, copy=False)


def _signs(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Signs:
    return (left > right).astype(np.int8) - (left < right).astype(np.int8)


def _above_below(above: pa.Array, below: pa.Array) -> Signs:
    return _numpy(above).astype(np.int8) - _numpy(below).astype(np.int8)


def _integers(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Signs:
    if left.dtype.kind == right.dtype.kind:
        return _signs(left, right)
    if left.dtype.kind == "u":
        return -_integers(right, left)
    beyond = right > np.uint64(2**63 - 1)
    return np.where(beyond, np.int8(-1), _signs(left, right.astype(np.int64)))


def _integers_with_floats(left: pa.Array, right: pa.Array) -> Signs:
    """Integers against doubles, by the whole part of these and whether there is more."""
    whole, floats = _numpy(left), _numpy(right)
    unsigned = whole.dtype.kind == "u"
    low, high = (0.0, 2.0**64) if unsigned else (-(2.0**63), 2.0**63)
    inside = (floats >= low) & (floats < high)
    floors = np.floor(np.where(inside, floats, 0.0))
    signs = _signs(whole, floors.astype(np.uint64 if unsigned else np.int64))
    signs = np.where((signs == 0) & inside & (floats > floors), np.int8(-1), signs)
    return np.where(inside, signs, np.where(floats < low, np.int8(1), np.int8(-1)))


def _decimals(left: pa.Array, right: pa.Array) -> Signs:
    wholes = max(array.type.precision - array.type.scale for array in (left, right))
    scale = max(left.type.scale, right.type.scale)
    if wholes + scale <= types.MOST_DIGITS:
        same = pa.decimal256(max(wholes + scale, 1), scale)
        left, right = left.cast(same), right.cast(same)
        return _above_below(pc.greater(left, right), pc.less(left, right))
    (left_whole, left_rest), (right_whole, right_rest) = map(_divided, (left, right))
    signs = _decimals(left_whole, right_whole)
    rests = [rest.cast(pa.decimal256(types.MOST_DIGITS, scale)) for rest in (left_rest, right_rest)]
    return np.where(signs == 0, _above_below(pc.greater(*rests), pc.less(*rests)), signs)


def _divided(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Decimals as the whole numbers at or below them and what is beyond."""
    scale = array.type.scale
    if scale == 0:
        return array, pa.repeat(pa.scalar(Decimal(0), pa.decimal256(1, 0)), len(array))
    wide = array.cast(pa.decimal256(types.MOST_DIGITS - 1, scale))
    floors = pc.floor(wide)
    return floors.cast(pa.decimal256(types.MOST_DIGITS - 1, 0)), pc.subtract(wide, floors)


def _decimals_with_floats(left: pa.Array, right: pa.Array) -> Signs:
    """Decimals against doubles; what is too close for doubles to tell apart, one by one."""
    floats, near = _numpy(right), _numpy(left.cast(pa.float64()))
    signs = _signs(near, floats)
    signs[np.isnan(floats)] = -1
    with np.errstate(invalid="ignore"):
        close = np.isfinite(floats) & (np.abs(near - floats) <= _NEAR * np.abs(floats))
    close &= np.asarray(left.is_valid()) & np.asarray(right.is_valid())
    places = np.flatnonzero(close)
    exact = [
        (Fraction(decimal) > Fraction(number)) - (Fraction(decimal) < Fraction(number))
        for decimal, number in zip(left.take(places).to_pylist(), floats[places], strict=True)
    ]
    signs[places] = exact
    return signs


def _clocks(left: pa.Array, right: pa.Array) -> Signs:
    """Times, by the coarser unit first and what the finer has beyond."""
    steps = types.tick(left.type), types.tick(right.type)
    if steps[0] < steps[1]:
        return -_clocks(right, left)
    whole, rest = np.divmod(_ticks(right), steps[0] // steps[1])
    signs = _signs(_ticks(left), whole)
    return np.where((signs == 0) & (rest > 0), np.int8(-1), signs)
