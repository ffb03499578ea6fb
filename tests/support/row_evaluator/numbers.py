"""Numbers by the rules: order, rounding to a width, arithmetic in 64 bits, exact decimals."""

import math
import struct
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

from tests.support.row_evaluator.kinds import Kind, int_range

WIDE = Context(prec=400)
LOW, HIGH = -(2**63), 2**63 - 1
FORMATS = {16: "<e", 32: "<f", 64: "<d"}


class Failed(Exception):
    """A row that cannot be computed."""


def to_width(value: Any, width: int) -> float:
    """The nearest float of a width."""
    number = float(value)
    if width == 64 or math.isinf(number) or math.isnan(number):
        return number
    try:
        (near,) = struct.unpack(FORMATS[width], struct.pack(FORMATS[width], number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(near)


def order(one: Any, other: Any, signless: bool = False) -> int:
    """Below, equal or above: by value, NaN above all, and -0.0 below 0.0 if both carry signs."""
    nans = one != one, other != other
    if any(nans):
        return int(nans[0]) - int(nans[1])
    if one == other:
        if one == 0 and not signless and isinstance(one, float) and isinstance(other, float):
            return int(math.copysign(0.5, one) - math.copysign(0.5, other))
        return 0
    return -1 if one < other else 1


def signless(value: Decimal) -> Decimal:
    """A decimal of a column: its zero has no sign."""
    return value or value.copy_abs()


# Arithmetic


def divide(one: Any, other: Any) -> float:
    """The division of doubles, with infinities and NaN."""
    over, under = float(one), float(other)
    if under:
        return over / under
    if over == 0 or math.isnan(over) or math.isnan(under):
        return math.nan
    return math.copysign(math.inf, over) * math.copysign(1, under)


def floor_quotient(one: Any, other: Any) -> Any:
    return one // other


def cut_quotient(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        quotient = one / other
        return quotient if math.isinf(quotient) or quotient != quotient else cut(quotient)
    whole = abs(one) // abs(other)
    return whole if (one < 0) == (other < 0) else -whole


def cut(value: float) -> float:
    return math.copysign(float(math.trunc(value)), value)


def floor_rest(one: Any, other: Any) -> Any:
    return one % other


def cut_rest(one: Any, other: Any) -> Any:
    if not isinstance(one, float):
        return abs(one) % abs(other) * (-1 if one < 0 else 1)
    if math.isinf(one) or one != one or other != other:
        return math.nan
    return math.fmod(one, other)


EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
}
EXACT_DECIMAL: dict[str, Callable[[Any, Any], Any]] = {
    "+": WIDE.add,
    "-": WIDE.subtract,
    "*": WIDE.multiply,
}
PARTIAL = {
    ("//", False): floor_quotient,
    ("//", True): cut_quotient,
    ("%", False): floor_rest,
    ("%", True): cut_rest,
}


def exact_partial(sign: str, sql: bool, one: Decimal, other: Decimal) -> Decimal | None:
    """A quotient or a rest of decimals, as that of integers of the same unit."""
    if not other:
        return None
    places = max(-int(number.as_tuple().exponent) for number in (one, other))
    left, right = (int(number.scaleb(places, WIDE)) for number in (one, other))
    result = Decimal(PARTIAL[sign, sql](left, right))
    return result if sign == "//" else signless(result.scaleb(-places, WIDE))


def arithmetic(sign: str, sql: bool, kind: Kind, signed: bool, unsure: list[bool]) -> Any:
    """The function of two numbers that gives one of this kind.

    Where unsigned integers are involved, the contract does not say which 64 bits are meant: what
    not both of them hold is exact or an error, which is noted.
    """
    if sign == "/":
        return divide
    if kind.name == "decimal" and (sign, sql) in PARTIAL:
        return lambda one, other: exact_partial(sign, sql, Decimal(one), Decimal(other))
    if kind.name == "decimal":
        return lambda one, other: signless(EXACT_DECIMAL[sign](Decimal(one), Decimal(other)))
    partial = PARTIAL.get((sign, sql))
    whole = kind.name == "int"
    convert: Any = int if whole else float
    function = partial or EXACT[sign]

    def compute(one: Any, other: Any) -> Any:
        left, right = convert(one), convert(other)
        if partial and right == 0:
            return None
        result = function(left, right)
        return checked(result, (left, right), signed, unsure) if whole else result

    return compute


def checked(result: int, operands: tuple[int, ...], signed: bool, unsure: list[bool]) -> int:
    """An integer that fits 64 bits."""
    if signed:
        if not LOW <= result <= HIGH:
            raise Failed(f"{result} does not fit 64 bits")
        return result
    if any(not 0 <= number <= HIGH for number in (result, *operands)):
        unsure.append(True)
    return result


# Rounding and casts


def rounded(value: Any, digits: int, kind: Kind, sql: bool) -> Any:
    """Half to even in Python, half away from zero in SQL."""
    if kind.name == "float" and (math.isinf(value) or math.isnan(value)):
        return value
    mode = ROUND_HALF_UP if sql else ROUND_HALF_EVEN
    near = Decimal(value).quantize(Decimal(1).scaleb(-digits), mode, WIDE)
    if kind.name == "float":
        return math.copysign(to_width(near, kind.width), value)
    return int(near) if kind.name == "int" else signless(near)


def to_int(value: Any, kind: Kind) -> int:
    """An integer of this kind; fractions are cut off."""
    try:
        whole = int(value)
    except (ValueError, OverflowError) as error:
        raise Failed(str(error)) from error
    low, high = int_range(kind)
    if not low <= whole <= high:
        raise Failed(f"{whole} does not fit")
    return whole


def to_decimal(value: Any, kind: Kind) -> Decimal:
    """A decimal with these digits; the rest is cut off."""
    near = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), ROUND_DOWN, WIDE)
    if abs(near) >= Decimal(10) ** (kind.precision - kind.scale):
        raise Failed(f"{value} has too many digits")
    return signless(near)
