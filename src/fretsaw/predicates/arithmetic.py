"""Arithmetic of decoded columns of numbers, by Arrow's kernels as far as they mean the same.

Integers that do not fit are an error, quotients by zero are null, decimals are exact.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.predicates import decimals, types
from fretsaw.predicates.bound import Bound, NotComputable
from fretsaw.predicates.casts import converted

_ON_NUMBERS = {
    "+": (pc.add_checked, pc.add),
    "-": (pc.subtract_checked, pc.subtract),
    "*": (pc.multiply_checked, pc.multiply),
}


def calculated(value: Bound, left: pa.Array, right: pa.Array) -> pa.Array:
    """What a bound operator gives for two columns of numbers."""
    kind, function = value.type, value.function
    if pa.types.is_decimal(kind) and function in ("//", "%"):
        return decimals.divided(function, left, right, kind, truncates="truncate" in value.options)
    if pa.types.is_decimal(kind):
        wide = [_wide(converted(array, types.as_decimal(array.type))) for array in (left, right)]
        return _ON_NUMBERS[function][1](*wide).cast(kind)
    if left.type != right.type and (left.null_count or right.null_count):
        # A value beside a null is not computed with, so it need not fit.
        known = pc.and_(left.is_valid(), right.is_valid())
        left, right = (
            pc.if_else(known, side, pa.scalar(None, side.type)) for side in (left, right)
        )
    left, right = converted(left, kind), converted(right, kind)
    if function in _ON_NUMBERS:
        checked, plain = _ON_NUMBERS[function]
        return (plain if pa.types.is_floating(kind) else checked)(left, right)
    if function == "/":
        return pc.divide(left, right)
    return _divide(function, left, right, truncates="truncate" in value.options)


def _wide(array: pa.Array) -> pa.Array:
    return array.cast(pa.decimal256(array.type.precision, array.type.scale))


def _divide(function: str, left: pa.Array, right: pa.Array, truncates: bool) -> pa.Array:
    """Whole quotients and what they leave; null where the divisor is zero."""
    dividend, divisor = (np.asarray(array.fill_null(1)) for array in (left, right))
    unknown = np.asarray(left.is_null()) | np.asarray(right.is_null()) | (divisor == 0)
    divisor = np.where(divisor == 0, divisor.dtype.type(1), divisor)
    with np.errstate(all="ignore"):
        if function == "%":
            found = (np.fmod if truncates else np.mod)(dividend, divisor)
        elif divisor.dtype.kind == "f":
            found = (
                np.trunc(dividend / divisor) if truncates else np.floor_divide(dividend, divisor)
            )
        else:
            found = np.floor_divide(dividend, divisor)
            least = np.iinfo(dividend.dtype).min
            if least and ((dividend == least) & (divisor == -1) & ~unknown).any():
                raise NotComputable("overflow")
            if truncates:
                found += (found < 0) & (found * divisor != dividend)
    return pa.array(found, mask=unknown)


def of_sign(function: str, array: pa.Array) -> pa.Array:
    """Numbers without their sign, or with the other one."""
    if pa.types.is_decimal(array.type):
        return (pc.abs if function == "abs" else pc.negate)(array)
    return (pc.abs_checked if function == "abs" else pc.negate_checked)(array)


def negated(array: pa.Array) -> pa.Array:
    """Integers without a sign, with one."""
    values = np.asarray(array.fill_null(0))
    if (values > np.uint64(2**63)).any():
        raise NotComputable("overflow")
    return pa.array((~values + np.uint64(1)).view(np.int64), mask=np.asarray(array.is_null()))
