"""What is computed of the columns of one file: expressions with their columns found and typed.

In go expressions and predicates, and a way to look columns up; out come trees of `Bound`, each
with the type of its values. What cannot be computed is refused here, before any data is read;
`compute` does the work.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from fretsaw.model.locks import importing
from fretsaw.model.schema import SchemaNode
from fretsaw.predicates import patterns, types
from fretsaw.predicates.comparison import values_of
from fretsaw.predicates.expression import (
    Call,
    Column,
    Element,
    Elements,
    Expression,
    Test,
)
from fretsaw.predicates.literals import UnfitLiteral
from fretsaw.predicates.logic import And, Not, Or, Predicate
from fretsaw.predicates.operations import UNITS

_PARTS_OF_DAYS = {"year", "month", "day", "weekday"}
_PARTS_OF_CLOCKS = {"hour", "minute", "second", "microsecond"}
_TEXT_TESTS = {"ends with", "contains", "like", "ilike", "matches"}


class NotComputable(ValueError):
    """A row for which there is no value: a result that does not fit, a cast that fails."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A value of each row: a leaf, a literal, or a function of others; tests are of booleans."""

    function: str
    type: pa.DataType
    operands: tuple["Bound", ...] = ()
    options: tuple[Any, ...] = ()

    @property
    def is_literal(self) -> bool:
        """Whether it is the same for all rows."""
        return self.function == "literal"

    def leaves(self) -> Iterator["Bound"]:
        """The leaves that it is computed of, as often as they occur."""
        if self.function in ("leaf", "element"):
            yield self
        for operand in self.operands:
            yield from operand.leaves()


class Columns(Protocol):
    """Where expressions find what they are computed of."""

    def value(self, column: Column | Element) -> Bound:
        """The values of a column, or of the element that is tested."""

    def inside(self, column: Column) -> "Columns":
        """The same inside of a list or map: what its elements have is found too."""

    def entries(self, column: Column) -> tuple[Bound, Bound] | None:
        """The keys and values of a map, or the elements of a list twice; None: there are none."""


def leaf_value(leaf: SchemaNode, above: tuple[str, ...], kind: pa.DataType) -> Bound:
    """The values of a leaf below some structs, or those of a struct by a leaf in it."""
    return Bound("leaf", kind, options=(leaf, above))


def constant(scalar: pa.Scalar) -> Bound:
    """A value that is the same for all rows."""
    return Bound("literal", scalar.type, options=(scalar,))


def without_structs(value: Bound) -> Bound:
    """The same of leaves that lie below nothing."""
    if value.function == "leaf":
        return replace(value, options=(value.options[0], ()))
    return replace(value, operands=tuple(map(without_structs, value.operands)))


def bind_truth(predicate: Predicate, find: Columns) -> Bound:
    """A predicate as a value: true, false, or null where it is unknown."""
    match predicate:
        case And(parts) | Or(parts):
            name = "and" if isinstance(predicate, And) else "or"
            return Bound(name, pa.bool_(), tuple(bind_truth(part, find) for part in parts))
        case Not(part):
            return Bound("not", pa.bool_(), (bind_truth(part, find),))
        case Test():
            return _bind_test(predicate, find)
        case Elements(column, fold, inner):
            lists = find.value(column)
            if lists.is_literal:  # no such column in this file: null for every row
                return constant(pa.scalar(None, pa.bool_()))
            return Bound(fold, pa.bool_(), (lists, bind_truth(inner, find.inside(column))))
    raise TypeError(f"not a predicate: {predicate!r}")


def bind_value(expression: Any, find: Columns) -> Bound:
    """An expression, or a value that a user wrote."""
    match expression:
        case Column() | Element():
            return find.value(expression)
        case Call("get", (Column() as column,), (key, first)):
            return _bind_get(column, key, first, find)
        case Call("when", operands):
            *pairs, other = operands
            conditions = [bind_truth(condition, find) for condition in pairs[::2]]
            values = _alike([bind_value(value, find) for value in (*pairs[1::2], other)])
            return Bound("when", values[0].type, (*conditions, *values))
        case Call("coalesce", operands):
            values = _alike([bind_value(value, find) for value in operands])
            return Bound("coalesce", values[0].type, tuple(values))
        case Call(function, operands, options):
            return _bind_call(function, [bind_value(o, find) for o in operands], options)
        case Predicate():
            return bind_truth(expression, find)
    return constant(_scalar(expression))


def _bind_get(column: Column, key: Any, first: int, find: Columns) -> Bound:
    """The value of a key of a map, or an element of a list whose elements count from `first`."""
    entries = find.entries(column)
    if entries is None:
        return constant(pa.scalar(None))
    keys, values = entries
    if keys is values:
        if isinstance(key, bool) or not isinstance(key, int) or key < first:
            raise UnfitLiteral(f"elements of a list are counted from {first}, not {key!r}")
        return Bound("nth", values.type, (values,), (key - first,))
    sought = values_of(Test(column, "==", key), keys.options[0])
    return Bound("get", values.type, (keys, values), (sought,))


def _bind_test(test: Test, find: Columns) -> Bound:
    value = bind_value(test.column, find)
    truth = pa.bool_()
    if test.operator in ("null", "not null"):
        return Bound(f"is {test.operator}", truth, (value,))
    if isinstance(test.operand, Expression):
        other = bind_value(test.operand, find)
        value, other = _comparable(value, other)
        return Bound("compare", truth, (value, other), (test.operator,))
    if pa.types.is_null(value.type):
        return constant(pa.scalar(None, truth))
    if test.operator in _TEXT_TESTS:
        return Bound("text", truth, (value,), _pattern(test, value.type))
    unknown = test.operator == "in" and None in test.operand
    found = Bound("in", truth, (value,), (values_of(test, _leaf_of(value)),))
    return Bound("true or null", truth, (found,)) if unknown else found


def _leaf_of(value: Bound) -> SchemaNode:
    """What says how a value compares with literals."""
    if value.function == "leaf":
        leaf: SchemaNode = value.options[0]
        return leaf
    return SchemaNode("expression", (), "leaf", True, value.type)


def _pattern(test: Test, kind: pa.DataType) -> tuple[str, str | bytes, str]:
    """The kernel and the pattern of a test of text, and what all such texts begin with."""
    if not types.is_text(kind) and not types.is_binary(kind):
        raise UnfitLiteral(f"{test.operator.replace(' ', '_')}() needs text")
    match test.operator:
        case "like":
            beginning = patterns.like_beginning(*test.operand).text
            return test.operator, patterns.like_regex(*test.operand), beginning
        case "ilike":
            return test.operator, patterns.like_regex(*test.operand), ""
        case "matches":
            _require_regex(test.operand)
            return test.operator, test.operand, patterns.regex_beginning(test.operand)
    if isinstance(test.operand, bytes) and types.is_text(kind):
        raise UnfitLiteral("it compares with a str")
    return test.operator, test.operand, ""


def _require_regex(regex: str) -> None:
    with importing:
        import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        raise UnfitLiteral(f"{regex!r} is no regular expression of RE2: {error}") from None


def _comparable(left: Bound, right: Bound) -> tuple[Bound, Bound]:
    """Two values that compare; literals of text become what they are compared with."""
    kinds = left.type, right.type
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return left, right
    for one_of in (types.is_number, types.is_text, types.is_binary, pa.types.is_boolean):
        if all(map(one_of, kinds)):
            return left, right
    if all(map(types.is_clock, kinds)):
        families = [types.clock_family(kind) for kind in kinds]
        if families[0] == families[1]:
            return left, right
        if "instant" in families:
            raise UnfitLiteral("one is in UTC, the other a local time: they do not compare")
    if any(map(types.is_binary, kinds)) and any(map(types.is_text, kinds)):
        return left, right
    raise UnfitLiteral(f"{left.type} and {right.type} do not compare: cast one of them")


def _alike(values: list[Bound]) -> list[Bound]:
    """Some values as one type."""
    kind = pa.null()
    for value in values:
        if not value.is_literal:
            kind = types.common(kind, value.type)
    for value in values:
        if value.is_literal:
            kind = types.common(kind, _beside(value, kind).type)
    return [
        value if value.type == kind else _converted(_beside(value, kind), kind) for value in values
    ]


def _converted(value: Bound, kind: pa.DataType) -> Bound:
    return Bound("as", kind, (value,))


def _beside(value: Bound, kind: pa.DataType) -> Bound:
    """A literal beside a type: a float beside a decimal is what it is spelled as."""
    if value.is_literal and pa.types.is_decimal(kind) and pa.types.is_floating(value.type):
        number = value.options[0].as_py()
        if np.isfinite(number):
            return constant(types.decimal_scalar(Decimal(repr(number))))
    return value


def _scalar(value: Any) -> pa.Scalar:
    if isinstance(value, datetime.timedelta) and not getattr(value, "nanoseconds", 0):
        microseconds = value // datetime.timedelta(microseconds=1)
        whole, rest = divmod(microseconds, 10**6)
        count, unit = (microseconds, "us") if rest else (whole, "s")
        return pa.scalar(count, pa.duration(unit))
    return types.scalar(value)


def _bind_call(function: str, operands: list[Bound], options: tuple[Any, ...]) -> Bound:
    if any(pa.types.is_null(operand.type) for operand in operands):
        return constant(pa.scalar(None))
    kind = operands[0].type
    match function:
        case "+" | "-" | "*" | "/" | "//" | "%":
            return _arithmetic(function, operands[0], operands[1], options)
        case "negate" | "abs" if types.is_number(kind) or pa.types.is_duration(kind):
            return Bound(function, types.computed(kind), tuple(operands))
        case "round" if types.is_number(kind):
            return Bound(function, types.computed(kind), tuple(operands), options)
        case "lower" | "upper" | "strip" if types.is_text(kind):
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
    kinds = left.type, right.type
    if all(map(types.is_number, kinds)):
        left, right = _beside(left, right.type), _beside(right, left.type)
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
    if function in ("//", "%") and not whole:
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
