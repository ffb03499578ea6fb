"""What an expression means, row by row, in plain Python: written from the rules alone.

Expressions are tuples, `("+", ("col", "a"), ("value", 1))`; rows are dicts of Python values.
`value_of` gives the value of an expression, `truth_of` that of a predicate: True, False or None.
`NoValue` is raised where a row cannot be computed.
"""

import datetime as dt
import math
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Node = tuple[Any, ...]

LEAST, MOST = -(2**63), 2**63 - 1


class NoValue(Exception):
    """The row has no value: an overflow, or a cast that fails."""


def whole(number: int) -> int:
    if not LEAST <= number <= MOST:
        raise NoValue(number)
    return number


def as_float(number: Any) -> float:
    return float(number)


def truncated(moment: dt.datetime, unit: str) -> dt.datetime:
    names = ["year", "month", "day", "hour", "minute", "second"]
    kept = [getattr(moment, name) for name in names[: names.index(unit) + 1]]
    return dt.datetime(*[*kept, *[1, 1, 1][len(kept) : 3]])


def divided(left: Any, right: Any, function: str) -> Any:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        return whole(left // right if function == "//" else left % right)
    left, right = as_float(left), as_float(right)
    if math.isnan(left) or math.isnan(right) or math.isinf(left):
        return math.nan
    return left // right if function == "//" else left % right


def quotient(left: Any, right: Any) -> float:
    left, right = as_float(left), as_float(right)
    if right != 0:
        return float(left / right)
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def calculated(function: str, left: Any, right: Any) -> Any:
    if function == "/":
        return quotient(left, right)
    if function in ("//", "%"):
        return divided(left, right, function)
    if isinstance(left, Decimal) != isinstance(right, Decimal):
        if isinstance(left, float) or isinstance(right, float):
            left, right = as_float(left), as_float(right)
        else:
            left, right = Decimal(left), Decimal(right)
    elif isinstance(left, float) != isinstance(right, float) and not isinstance(left, str):
        left, right = as_float(left), as_float(right)
    with localcontext(prec=200):
        found = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}
        result = found[function]()
    return whole(result) if isinstance(result, int) else result


def value_of(node: Node, row: Row) -> Any:
    match node:
        case ("col", name):
            return row[name]
        case ("value", literal):
            return literal
        case ("coalesce", *parts):
            return next((v for v in (value_of(part, row) for part in parts) if v is not None), None)
        case ("when", condition, then, other):
            return value_of(then if truth_of(condition, row) else other, row)
        case (function, left, right) if function in ("+", "-", "*", "/", "//", "%"):
            first, second = value_of(left, row), value_of(right, row)
            if first is None or second is None:
                return None
            if right[0] == "value" and isinstance(second, float) and isinstance(first, Decimal):
                second = Decimal(repr(second))  # a literal beside a decimal is its spelling
            return calculated(function, first, second)
    function, inner, *options = node
    value = value_of(inner, row)
    return None if value is None else applied(function, value, options)


def applied(function: str, value: Any, options: list[Any]) -> Any:
    match function:
        case "negate":
            return whole(-value) if isinstance(value, int) else -value
        case "abs":
            return whole(abs(value)) if isinstance(value, int) else abs(value)
        case "round":
            if isinstance(value, Decimal):
                return value.quantize(Decimal(1).scaleb(-options[0]), ROUND_HALF_EVEN)
            return value if math.isnan(value) or math.isinf(value) else round(value, options[0])
        case "lower" | "upper":
            return getattr(value, function)()
        case "strip":
            return value.strip()
        case "length":
            return len(value)
        case "weekday":
            return value.isoweekday()
        case "date":
            return value.date()
        case "truncate":
            return truncated(value, options[0])
        case "int8":
            if isinstance(value, float):
                if not -129 < value < 128:
                    raise NoValue(value)
                value = math.trunc(value)
            if not -128 <= value < 128:
                raise NoValue(value)
            return value
    return getattr(value, function)


def order(value: Any) -> Any:
    """A key for the total order of numbers: NaN above all."""
    if isinstance(value, float):
        if math.isnan(value):
            return (2, 0, 0)
        if math.isinf(value):
            return (1 if value > 0 else -1, 0, 0)
    if isinstance(value, int | float | Decimal):
        return (0, Fraction(value), 0)
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time())
    return value.encode() if isinstance(value, str) else value


def is_signed_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0


def compared(operator: str, left: Any, right: Any) -> bool:
    first, second = order(left), order(right)
    if is_signed_zero(left) and is_signed_zero(right):
        first, second = math.copysign(1, left), math.copysign(1, right)
    found: dict[str, bool] = {
        "==": first == second,
        "!=": first != second,
        "<": first < second,
        "<=": first <= second,
        ">": first > second,
        ">=": first >= second,
    }
    return found[operator]


def like(text: str, pattern: str, ignore_case: bool) -> bool:
    parts = [{"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern]
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return re.fullmatch("".join(parts), text, flags) is not None


def compared_in(node: Node) -> Iterator[Node]:
    """The tests that a predicate joins."""
    match node:
        case ("not", part):
            yield from compared_in(part)
        case ("and" | "or", left, right):
            yield from compared_in(left)
            yield from compared_in(right)
        case _:
            yield node


def truth_of(node: Node, row: Row) -> bool | None:
    match node:
        case ("not", part):
            truth = truth_of(part, row)
            return None if truth is None else not truth
        case ("and" | "or" as joint, left, right):
            decisive, truths, failure = joint == "or", set(), None
            for part in (left, right):
                try:
                    truths.add(truth_of(part, row))
                except NoValue as error:
                    failure = error
            if failure is not None and decisive not in truths:
                raise failure  # else one part may spare the other
            return decisive if decisive in truths else None if None in truths else not decisive
        case ("is_null", part):
            return value_of(part, row) is None
        case ("contains" | "ends_with" | "starts_with" | "like" | "ilike" as test, part, text):
            value = value_of(part, row)
            if value is None:
                return None
            match test:
                case "contains":
                    return text in value
                case "ends_with":
                    return bool(value.endswith(text))
                case "starts_with":
                    return bool(value.startswith(text))
            return like(value, text, test == "ilike")
        case (operator, left, right):
            values = value_of(left, row), value_of(right, row)
            return None if None in values else compared(operator, *values)
    raise TypeError(node)
