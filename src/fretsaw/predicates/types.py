"""What types the values of expressions have: kinds of Arrow types, and what two have in common.

Integers compute as int64 (uint64 beside its like), floats as float64, decimals as decimals that
hold every result; texts and times stay what they are.
"""

import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from fretsaw.predicates.literals import Instant, UnfitLiteral, from_text
from fretsaw.predicates.text import Text

MOST_DIGITS = 76
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9


def is_text(kind: pa.DataType) -> bool:
    """Strings of any layout."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Bytes of any layout, UUIDs among them."""
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
        or isinstance(kind, pa.UuidType)
    )


def is_number(kind: pa.DataType) -> bool:
    """Integers, floats and decimals."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_clock(kind: pa.DataType) -> bool:
    """What counts units of time: dates, timestamps, times of day, durations."""
    types = pa.types
    return bool(types.is_temporal(kind) and not types.is_interval(kind))


def tick(kind: pa.DataType) -> int:
    """Nanoseconds of one unit of a type of time."""
    return _DAY if pa.types.is_date(kind) else NANOSECONDS[kind.unit]


def computed(kind: pa.DataType) -> pa.DataType:
    """The type as which the values of a type are computed with."""
    types = pa.types
    if types.is_integer(kind):
        return pa.uint64() if types.is_uint64(kind) else pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_decimal(kind):
        return decimal(kind.precision, kind.scale)
    if types.is_date(kind):
        return pa.date32()
    if is_text(kind):
        return pa.string() if types.is_string(kind) else pa.large_string()
    if is_binary(kind) and not isinstance(kind, pa.UuidType):
        plain = types.is_binary(kind) or types.is_fixed_size_binary(kind)
        return pa.binary() if plain else pa.large_binary()
    return kind


def decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal type of so many digits, with so many of them behind the point."""
    if precision > MOST_DIGITS:
        raise UnfitLiteral(
            f"the result could have {precision} digits, of at most {MOST_DIGITS}: "
            "cast to a decimal of fewer digits or to float64 before"
        )
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds all integers of a type; a decimal is itself."""
    if pa.types.is_decimal(kind):
        return kind
    return pa.decimal128(20 if pa.types.is_uint64(kind) else 19, 0)


def common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that holds the values of both."""
    types = pa.types
    left, right = computed(left), computed(right)
    if left == right or types.is_null(right):
        return left
    if types.is_null(left):
        return right
    if is_number(left) and is_number(right):
        if types.is_floating(left) or types.is_floating(right):
            return pa.float64()
        left, right = as_decimal(left), as_decimal(right)
        scale = max(left.scale, right.scale)
        return decimal(
            max(left.precision - left.scale, right.precision - right.scale) + scale, scale
        )
    if is_text(left) and is_text(right):
        return pa.large_string()
    if is_binary(left) and is_binary(right):
        return pa.large_binary()
    if is_clock(left) and is_clock(right) and clock_family(left) == clock_family(right):
        zone = getattr(left, "tz", None)
        unit = min(left, right, key=tick).unit
        if types.is_duration(left):
            return pa.duration(unit)
        if types.is_time(left):
            return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
        return pa.timestamp(unit, zone)
    raise UnfitLiteral(f"{left} and {right} have no type in common: cast one of them")


def clock_family(kind: pa.DataType) -> str:
    """Which types of time compare with each other."""
    types = pa.types
    if types.is_timestamp(kind):
        return "instant" if kind.tz is not None else "wall clock"
    if types.is_date(kind):
        return "wall clock"
    return "duration" if types.is_duration(kind) else "time of day"


def scalar(value: Any) -> pa.Scalar:
    """A value that a user wrote, in the type that it has by itself."""
    if isinstance(value, Text):
        if not value.is_moment:
            return pa.scalar(value.value, pa.string())
        zoned = datetime.datetime.fromisoformat(value.value).tzinfo is not None
        return text_scalar(value.value, pa.timestamp("us", "UTC" if zoned else None))
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    match value:
        case bool() | str() | bytes() | datetime.date() | datetime.time() | datetime.timedelta():
            pass
        case int() if -(2**63) <= value < 2**64:
            return pa.scalar(value, pa.int64() if value < 2**63 else pa.uint64())
        case int():
            return decimal_scalar(Decimal(value))
        case Decimal() if value.is_finite():
            is_far = abs(value.adjusted()) > MOST_DIGITS  # 1e300, which only floats compute with
            return pa.scalar(float(value)) if is_far and value else decimal_scalar(value)
        case UUID():
            return pa.scalar(value.bytes, pa.binary(16))
    try:
        return pa.scalar(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnfitLiteral(f"{value!r} is no value to compute with: {error}") from None


def text_scalar(text: str, kind: pa.DataType) -> pa.Scalar:
    """A string literal of SQL text as a value of the type that stands beside it."""
    value = from_text(text, kind)
    if not isinstance(value, Instant):
        return scalar(value)
    unit, count = ("ns", int(value)) if value % 1000 else ("us", value // 1000)
    is_time = pa.types.is_time(kind)
    return pa.scalar(count, pa.time64(unit) if is_time else pa.timestamp(unit, kind.tz))


def decimal_scalar(value: Decimal) -> pa.Scalar:
    """A decimal number with just the digits that it has."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(1, len(digits) + max(0, exponent), scale)
    plain = f"{value:f}" if precision <= MOST_DIGITS else "0"
    return pa.scalar(Decimal(plain), decimal(precision, scale))
