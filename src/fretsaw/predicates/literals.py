"""From the values that users write to keys: exactly, by the type of the column.

A literal becomes the edges of the values equal to it: the first key at or above it, and the first
key above it. Both are the same where the column cannot hold the value (1.5 among integers), so
that every comparison stays exact without rounding or wrapping.
"""

import datetime
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from fretsaw.model.schema import EITHER_ZONE, SchemaNode, value_type
from fretsaw.predicates.text import Text
from fretsaw.predicates.value_set import after_prefix, float_key, successor

Pair: TypeAlias = tuple[Any, Any]
"""The first key at or above a value, and the first above it."""

_ABOVE_ALL = 1 << 600  # above every integer that a column can hold
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NANOSECONDS: dict[str, int | Fraction] = {
    "W": 604_800 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
    "ps": Fraction(1, 10**3),
    "fs": Fraction(1, 10**6),
    "as": Fraction(1, 10**9),
}
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?",
    re.IGNORECASE,
)


class UnfitLiteral(TypeError):
    """A literal that does not fit its column; the message says what would."""


def edges(value: Any, leaf: SchemaNode) -> Pair:
    """The edges of a literal among the values of a leaf."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    arrow_type = value_type(leaf)
    for is_type, takes, convert in _CONVERSIONS:
        if is_type(arrow_type):
            if isinstance(value, Text):
                value = from_text(value.value, arrow_type)
            if isinstance(value, bool) and takes != "a bool":
                raise UnfitLiteral(f"it compares with {takes}")
            try:
                pair = convert(value, arrow_type)
            except (ValueError, ArithmeticError) as error:  # NaT, sNaN, a lone surrogate
                raise UnfitLiteral(f"{error}; it compares with {takes}") from None
            if pair is None:
                raise UnfitLiteral(f"it compares with {takes}")
            return pair
    raise UnfitLiteral("only is_null() and is_not_null() work on it")


def plain_keys(values: Sequence[Any], leaf: SchemaNode) -> set[Any] | None:
    """The keys of many values that need no converting, and None that has none; else None."""
    kinds = {*map(type, values)} - {type(None)}
    arrow_type = value_type(leaf)
    if kinds == {int} and pa.types.is_integer(arrow_type):
        return {*values} - {None}
    if kinds == {Text} and _is_string(arrow_type):
        values, kinds = [value and value.value for value in values], {str}
    if kinds == {str} and _is_string(arrow_type):
        with suppress(UnicodeEncodeError):  # a lone surrogate, which is told by itself
            return {value.encode() for value in {*values} - {None}}
    return None


def prefix_edges(prefix: str | bytes, leaf: SchemaNode) -> tuple[bytes, bytes | None]:
    """The first string that begins with a prefix, and the first behind them all, if there is."""
    arrow_type = value_type(leaf)
    is_text = _is_string(arrow_type)
    if not is_text and not _is_binary(arrow_type) and not _is_fixed_binary(arrow_type):
        raise UnfitLiteral("starts_with() needs a string or binary column")
    if is_text and isinstance(prefix, bytes):
        raise UnfitLiteral("it compares with a str")
    first = prefix.encode(errors="surrogatepass") if isinstance(prefix, str) else prefix
    return first, after_prefix(first)


def is_float(leaf: SchemaNode) -> bool:
    """Whether the values of a leaf are floating-point numbers."""
    return bool(pa.types.is_floating(value_type(leaf)))


def from_text(text: str, arrow_type: pa.DataType) -> Any:
    """A string of SQL text as a value of a column's type."""
    types = pa.types
    try:
        if types.is_integer(arrow_type) or types.is_decimal(arrow_type):
            return Decimal(text)
        if types.is_floating(arrow_type):
            return float(text) or 0  # a zero of SQL text has no sign
        if types.is_boolean(arrow_type):
            return {"true": True, "false": False}[text.strip().lower()]
        if types.is_date(arrow_type):
            return datetime.date.fromisoformat(text.strip())
        if types.is_timestamp(arrow_type):
            return _timestamp(text, in_utc=arrow_type.tz is not None)
        if types.is_time(arrow_type):
            return _timestamp(f"1970-01-01 {text.strip()}", in_utc=False)
        if _is_uuid(arrow_type):
            return UUID(text)
        return text.encode() if _is_binary(arrow_type) or _is_fixed_binary(arrow_type) else text
    except (ValueError, KeyError, InvalidOperation):
        raise UnfitLiteral(f"{text!r} cannot be converted to that") from None


def _timestamp(text: str, in_utc: bool) -> "Instant":
    """A timestamp as SQL text spells it; without an offset it is UTC on a column in UTC."""
    matched = _TIMESTAMP.fullmatch(text.strip())
    if matched is None:
        raise ValueError(text)
    date, time, fraction, offset = matched.groups()
    moment = datetime.datetime.fromisoformat(f"{date}T{time or '00:00'}{offset or ''}".upper())
    if moment.tzinfo is not None and not in_utc:
        raise UnfitLiteral("it is a local timestamp: leave out the offset")
    nanoseconds = _since_epoch(moment) + int((fraction or "0").ljust(9, "0"))
    return Instant(nanoseconds)


class Instant(int):
    """Nanoseconds since the epoch, or since midnight."""


def _whole(value: Any, arrow_type: pa.DataType) -> Pair | None:
    """A number among integers and decimals."""
    scale = arrow_type.scale if pa.types.is_decimal(arrow_type) else 0
    if isinstance(value, float) and pa.types.is_decimal(arrow_type):
        value = Decimal(repr(value))  # 0.1 is what it is spelled as
    if isinstance(value, float | Decimal):
        if value != value or value == float("inf"):
            return _ABOVE_ALL, _ABOVE_ALL
        if value == float("-inf"):
            return -_ABOVE_ALL, -_ABOVE_ALL
        if isinstance(value, Decimal) and not -1000 < value.adjusted() < 1000:
            # Too small or too large for any column; as a fraction it could fill the memory.
            near = _ABOVE_ALL if value.adjusted() > 0 else Fraction(1, 1 << 600)
            return _at(Fraction(near if value > 0 else -near)) if value else (0, 1)
    elif not isinstance(value, int):
        return None
    elif scale == 0:  # there may be a million of them
        return value, value + 1
    return _at(Fraction(value) * Fraction(10) ** scale)


def _at(number: Fraction) -> Pair:
    """A number among integers."""
    ceiling = -(-number.numerator // number.denominator)
    return ceiling, ceiling + 1 if number.denominator == 1 else ceiling


def _float(value: Any, arrow_type: pa.DataType) -> Pair | None:
    """A number rounded to the width of a column of floats."""
    if not isinstance(value, int | float | Decimal):
        return None
    try:
        wide = float(value)
    except OverflowError:
        wide = float("inf") if value > 0 else float("-inf")
    if np.isinf(wide) and not isinstance(value, float) and value == value and abs(value) != wide:
        near = float_key(wide) if wide > 0 else float_key(wide) + 1
        return near, near  # beyond all numbers that there are, and not infinite
    with np.errstate(over="ignore"):
        rounded = np.array(wide).astype(arrow_type.to_pandas_dtype())
    key = float_key(float(rounded))
    if isinstance(value, int | Decimal) and value == 0:  # without a sign it is both zeros
        return float_key(-0.0), float_key(0.0) + 1
    return key, key + 1


def _bool(value: Any, arrow_type: pa.DataType) -> Pair | None:
    return (int(value), int(value) + 1) if isinstance(value, bool) else None


def _string(value: Any, arrow_type: pa.DataType) -> Pair | None:
    return _bytes(value.encode(), arrow_type) if isinstance(value, str) else None


def _text_or_bytes(value: Any, arrow_type: pa.DataType) -> Pair | None:
    return _bytes(value.encode() if isinstance(value, str) else value, arrow_type)


def _bytes(value: Any, arrow_type: pa.DataType) -> Pair | None:
    if not isinstance(value, bytes | bytearray | memoryview):
        return None
    return bytes(value), successor(bytes(value))


def _uuid(value: Any, arrow_type: pa.DataType) -> Pair | None:
    return _bytes(value.bytes, arrow_type) if isinstance(value, UUID) else None


def _date(value: Any, arrow_type: pa.DataType) -> Pair | None:
    if isinstance(value, np.datetime64):
        return _at(_numpy_nanoseconds(value) / _NANOSECONDS["D"])
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        return None
    return _at(Fraction((value - datetime.date(1970, 1, 1)).days))


def _moment(value: Any, arrow_type: pa.DataType) -> Pair | None:
    """An instant, or the reading of a wall clock."""
    in_utc = arrow_type.tz is not None
    if arrow_type.tz == EITHER_ZONE:  # rows show what is in UTC without its zone
        in_utc = isinstance(value, datetime.datetime) and value.utcoffset() is not None
    nanoseconds: int | Fraction
    if isinstance(value, Instant):
        nanoseconds = int(value)
    elif isinstance(value, np.datetime64) and not in_utc:
        nanoseconds = _numpy_nanoseconds(value)
    elif isinstance(value, datetime.datetime) and (value.utcoffset() is not None) == in_utc:
        nanoseconds = _since_epoch(value)
    elif isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        if in_utc:
            raise UnfitLiteral("it is in UTC: use a datetime with a time zone, not a date")
        nanoseconds = _since_epoch(datetime.datetime.combine(value, datetime.time()))
    elif isinstance(value, datetime.datetime | np.datetime64):
        raise UnfitLiteral(
            "it is in UTC: use a datetime with a time zone (tzinfo=datetime.UTC)"
            if in_utc
            else "it is a local timestamp: use a datetime without a time zone"
        )
    else:
        return None
    return _at(Fraction(nanoseconds) * _PER_SECOND[arrow_type.unit] / 10**9)


def _time(value: Any, arrow_type: pa.DataType) -> Pair | None:
    if isinstance(value, datetime.time) and value.tzinfo is None:
        moment = datetime.datetime.combine(datetime.date(1970, 1, 1), value)
        value = Instant(_since_epoch(moment))
    if not isinstance(value, Instant):
        return None
    return _at(Fraction(value) * _PER_SECOND[arrow_type.unit] / 10**9)


def _duration(value: Any, arrow_type: pa.DataType) -> Pair | None:
    if isinstance(value, np.timedelta64):
        nanoseconds = _numpy_nanoseconds(value)
    elif isinstance(value, datetime.timedelta):
        nanoseconds = Fraction(_nanoseconds(value))
    else:
        return None
    return _at(nanoseconds * _PER_SECOND[arrow_type.unit] / 10**9)


def _since_epoch(moment: datetime.datetime) -> int:
    """Nanoseconds since 1970; pandas' timestamps have more of them than microseconds tell."""
    plain = datetime.datetime(
        *(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second),
        microsecond=moment.microsecond,
    )
    offset = moment.utcoffset() or datetime.timedelta()
    since = _nanoseconds(plain - datetime.datetime(1970, 1, 1)) - _nanoseconds(offset)
    return since + getattr(moment, "nanosecond", 0)


def _nanoseconds(delta: datetime.timedelta) -> int:
    whole = ((delta.days * 86_400 + delta.seconds) * 10**6 + delta.microseconds) * 1000
    return whole + getattr(delta, "nanoseconds", 0)


def _numpy_nanoseconds(value: np.datetime64 | np.timedelta64) -> Fraction:
    """NumPy's times in nanoseconds, whatever their unit."""
    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value) or (unit in ("Y", "M") and isinstance(value, np.timedelta64)):
        raise UnfitLiteral("NaT and months have no place in time")
    if unit in ("Y", "M"):
        if abs(int(value.astype(np.int64))) * step > 10**9:
            raise UnfitLiteral("a date so far away has no place in time")
        value, unit, step = value.astype("datetime64[D]"), "D", 1
    if unit not in _NANOSECONDS:
        raise UnfitLiteral("a time without a unit has no place in time")
    return Fraction(int(value.astype(np.int64))) * step * _NANOSECONDS[unit]


def _is_uuid(arrow_type: pa.DataType) -> bool:
    return isinstance(arrow_type, pa.UuidType)


def _is_string(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_string_view(arrow_type)
    )


def _is_binary(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(arrow_type)
        or types.is_large_binary(arrow_type)
        or types.is_binary_view(arrow_type)
    )


def _is_fixed_binary(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(arrow_type))


_CONVERSIONS: tuple[tuple[Callable[[Any], bool], str, Callable[[Any, Any], Pair | None]], ...] = (
    (pa.types.is_boolean, "a bool", _bool),
    (pa.types.is_integer, "an int, float or Decimal", _whole),
    (pa.types.is_floating, "a float, int or Decimal", _float),
    (pa.types.is_decimal, "a Decimal, int or float", _whole),
    (pa.types.is_date, "a datetime.date", _date),
    (pa.types.is_timestamp, "a datetime.datetime", _moment),
    (pa.types.is_time, "a datetime.time without a time zone", _time),
    (pa.types.is_duration, "a datetime.timedelta", _duration),
    (_is_uuid, "a uuid.UUID", _uuid),
    (_is_string, "a str", _string),
    (_is_binary, "bytes or a str", _text_or_bytes),
    (_is_fixed_binary, "bytes", _bytes),
)
