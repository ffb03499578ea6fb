"""The functions that there are, by the types of their operands, and the types that they give."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from fretsaw.predicates import types
from fretsaw.predicates.bound import Bound, constant
from fretsaw.predicates.literals import UnfitLiteral
from fretsaw.predicates.operations import UNITS

_PARTS_OF_DAYS = {"year", "month", "day", "weekday"}
_PARTS_OF_CLOCKS = {"hour", "minute", "second", "microsecond"}


def bind_call(function: str, operands: list[Bound], options: tuple[Any, ...]) -> Bound:
    """A call of a function of bound operands."""
    if any(pa.types.is_null(operand.type) for operand in operands):
        return constant(pa.scalar(None))
    kind = operands[0].type
    match function:
        case "+" | "-" | "*" | "/" | "//" | "%":
            return _arithmetic(function, operands[0], operands[1], options)
        case "negate" if pa.types.is_uint64(kind):
            return Bound(function, pa.int64(), tuple(operands))
        case "negate" | "abs" if types.is_number(kind) or pa.types.is_duration(kind):
            return Bound(function, types.computed(kind), tuple(operands))
        case "round" if types.is_number(kind):
            return Bound(function, _rounded_type(kind, options[0]), tuple(operands), options)
        case "lower" | "upper" | "strip" | "trim" if types.is_text(kind):
            return Bound(function, types.computed(kind), tuple(operands))
        case "length" if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
            return Bound("count", pa.int64(), tuple(operands))
        case "length" if types.is_text(kind) or types.is_binary(kind):
            return Bound(function, pa.int64(), tuple(operands))
        case "cast":
            return Bound(function, _cast_target(kind, options[0]), tuple(operands), options)
    if _has_part(function, kind, options):
        results = {"date": pa.date32(), "truncate": kind}
        return Bound(function, results.get(function, pa.int64()), tuple(operands), options)
    raise UnfitLiteral(f"{_named(function)} does not work on {kind}")


def _named(function: str) -> str:
    return function if not function.isalpha() else f"{function}()"


def _rounded_type(kind: pa.DataType, places: int) -> pa.DataType:
    """The type of rounded numbers: a decimal may get one more digit."""
    if not pa.types.is_decimal(kind) or places >= kind.scale:
        return types.computed(kind)
    digits = max(kind.precision + 1, kind.scale - places + 1)
    return types.decimal(min(digits, types.MOST_DIGITS), kind.scale)


def _has_part(function: str, kind: pa.DataType, options: tuple[Any, ...]) -> bool:
    is_day = pa.types.is_date(kind)
    is_moment = pa.types.is_timestamp(kind)
    if function in _PARTS_OF_DAYS or function == "date":
        return bool(is_day or is_moment)
    if function in _PARTS_OF_CLOCKS:
        return bool(is_moment or pa.types.is_time(kind))
    if function == "truncate":
        return bool(is_moment or (is_day and options[0] in UNITS[: UNITS.index("hour")]))
    return False


def _cast_target(kind: pa.DataType, target: pa.DataType) -> pa.DataType:
    nested = pa.types.is_nested(target) or pa.types.is_nested(kind)
    if nested or pa.types.is_dictionary(target) or pa.types.is_null(target):
        raise UnfitLiteral(f"{kind} cannot be cast to {target}")
    return target


def _arithmetic(function: str, left: Bound, right: Bound, options: tuple[Any, ...]) -> Bound:
    left, right = _moment_beside(left, right.type), _moment_beside(right, left.type)
    kinds = left.type, right.type
    if all(map(types.is_number, kinds)):
        left, right = beside(left, right.type), beside(right, left.type)
        kind = _number_type(function, left, right)
        return Bound(function, kind, (left, right), options)
    if function == "+" and all(map(types.is_text, kinds)):
        return Bound("join", types.common(*kinds), (left, right))
    if all(map(types.is_clock, kinds)):
        moved = _clock_type(function, left, right)
        if moved is not None:
            return Bound("shift", moved, (left, right), (function,))
    raise UnfitLiteral(f"{function} does not work on {left.type} and {right.type}")


def _number_type(function: str, left: Bound, right: Bound) -> pa.DataType:
    kinds = left.type, right.type
    whole = all(map(pa.types.is_integer, kinds))
    if function == "/" or any(map(pa.types.is_floating, kinds)):
        return pa.float64()
    if not whole:
        return _decimal_type(function, *(_digits(value) for value in (left, right)))
    unsigned = [
        pa.types.is_uint64(value.type) or (value.is_literal and value.options[0].as_py() >= 0)
        for value in (left, right)
    ]
    return pa.uint64() if all(unsigned) and pa.uint64() in kinds else pa.int64()


def _digits(value: Bound) -> tuple[int, int]:
    """How many digits a value has at most, and how many of them behind the point."""
    if value.is_literal and pa.types.is_integer(value.type):
        return len(str(abs(value.options[0].as_py()))), 0
    kind = types.as_decimal(value.type)
    return kind.precision, kind.scale


def _decimal_type(function: str, left: tuple[int, int], right: tuple[int, int]) -> pa.DataType:
    if function == "*":
        return types.decimal(left[0] + right[0] + 1, left[1] + right[1])
    scale = max(left[1], right[1])
    if function == "//":
        return types.decimal(max(left[0] - left[1], 0) + right[1] + 1, 0)
    if function == "%":
        return types.decimal(max(right[0] - right[1], 0) + scale, scale)
    return types.decimal(max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale)


def _clock_type(function: str, left: Bound, right: Bound) -> pa.DataType | None:
    """The type of a sum or difference of times; None where there is no such."""
    kinds = left.type, right.type
    families = [types.clock_family(kind) for kind in kinds]
    if "time of day" in families and families != ["time of day"] * 2:
        return None
    clocks = [kind for kind in kinds if not pa.types.is_date(kind)]
    unit = min(clocks, key=types.tick).unit if clocks else "s"
    if function in "+-" and families == ["duration"] * 2:
        return pa.duration(unit)
    if function == "-" and families[0] == families[1]:
        return pa.duration(unit)
    if function == "+" and families[0] == "duration":
        return _clock_type("+", right, left)
    if function not in "+-" or families[1] != "duration" or families[0] == "time of day":
        return None
    if not pa.types.is_date(left.type):
        return pa.timestamp(unit, left.type.tz)
    by_days = right.is_literal and right.options[0].value * types.tick(right.type) % _DAY == 0
    return pa.date32() if by_days else pa.timestamp("us" if unit == "s" else unit)


_DAY = types.tick(pa.date32())


def beside(value: Bound, kind: pa.DataType) -> Bound:
    """A literal beside a type: a float beside a decimal is what it is spelled as."""
    if value.is_literal and value.options[1] is not None:
        return _text_beside(value, kind)
    if value.is_literal and pa.types.is_decimal(kind) and pa.types.is_floating(value.type):
        number = value.options[0].as_py()
        if np.isfinite(number):
            return constant(types.decimal_scalar(Decimal(repr(number))))
    return value


def _text_beside(value: Bound, kind: pa.DataType) -> Bound:
    """A string of SQL text is converted to what stands beside it, unless that is text."""
    if pa.types.is_null(kind) or types.is_text(kind) or types.is_binary(kind):
        return value
    return constant(types.text_scalar(value.options[1].value, kind))


def _moment_beside(value: Bound, kind: pa.DataType) -> Bound:
    """A TIMESTAMP of SQL text beside a column is one of its kind: in UTC, or on the wall clock."""
    is_moment = value.is_literal and value.options[1] is not None and value.options[1].is_moment
    return _text_beside(value, kind) if is_moment and pa.types.is_timestamp(kind) else value
