"""What is computed of the columns of one file: expressions with their columns found and typed.

In go expressions and predicates, and a way to look columns up; out come trees of `Bound`, each
with the type of its values. What cannot be computed is refused here, before any data is read;
`compute` does the work.
"""

import datetime
from typing import Any, Protocol, Self

import pyarrow as pa

from fretsaw.model.locks import importing
from fretsaw.model.schema import SchemaNode
from fretsaw.predicates import patterns, types
from fretsaw.predicates.bound import Bound, Host, constant
from fretsaw.predicates.comparison import values_of
from fretsaw.predicates.expression import (
    Call,
    Column,
    Element,
    Elements,
    Expression,
    Fold,
    Test,
)
from fretsaw.predicates.functions import beside, bind_call
from fretsaw.predicates.literals import UnfitLiteral
from fretsaw.predicates.logic import And, Not, Or, Predicate
from fretsaw.predicates.text import Text

_TEXT_TESTS = {"ends with", "contains", "like", "ilike", "matches"}


class Columns(Protocol):
    """Where expressions find what they are computed of."""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The lists or maps around the element that is tested, from the outermost on."""

    def value(self, column: Column | Element) -> Bound:
        """The values of a column, or of the element that is tested."""

    def inside(self, column: Column | Element) -> "Self | None":
        """The same for an element of a list or map; None: there is none in this file."""

    def folded(self, column: Column, is_null_test: bool) -> "tuple[list[Self], Bound]":
        """The scopes of the lists around a column's elements, the outermost first, and these."""

    def entries(self, column: Column | Element) -> "tuple[Self, Bound | None, Bound] | None":
        """The scope of a list or map, its keys, if it has some, and values; None: there is none."""

    @property
    def lists(self) -> Bound:
        """The lists or maps whose elements are tested."""


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
            scope = find.inside(column)
            if scope is None:  # no such column in this file: null for every row
                return constant(pa.scalar(None, pa.bool_()))
            return _fold(fold, scope, bind_truth(inner, scope))
    raise TypeError(f"not a predicate: {predicate!r}")


def bind_value(expression: Any, find: Columns) -> Bound:
    """An expression, or a value that a user wrote."""
    match expression:
        case Column() | Element():
            return find.value(expression)
        case Call("get", (Column() | Element() as column,), (key, first)):
            return _bind_get(column, key, first, find)
        case Call("get"):
            raise UnfitLiteral("get() is for columns and elements")
        case Call("when", operands):
            *pairs, other = operands
            conditions = [bind_truth(condition, find) for condition in pairs[::2]]
            values = _alike([bind_value(value, find) for value in (*pairs[1::2], other)])
            return Bound("when", values[0].type, (*conditions, *values))
        case Call("coalesce", operands):
            values = _alike([bind_value(value, find) for value in operands])
            return Bound("coalesce", values[0].type, tuple(values))
        case Call("truth", (Predicate() as predicate,)):
            return bind_truth(predicate, find)
        case Call(function, operands, options):
            return bind_call(function, [bind_value(o, find) for o in operands], options)
    return constant(_scalar(expression), expression if isinstance(expression, Text) else None)


def _fold(fold: Fold, scope: Columns, truth: Bound) -> Bound:
    return Bound(fold, pa.bool_(), (scope.lists, truth), (scope.hosts[-1],))


def _bind_get(column: Column | Element, key: Any, first: int, find: Columns) -> Bound:
    """The value of a key of a map, or an element of a list whose elements count from `first`."""
    entries = find.entries(column)
    if entries is None:
        return constant(pa.scalar(None))
    scope, keys, values = entries
    host = scope.hosts[-1]
    if values.is_literal:  # a field that the elements lack in this file
        return values
    if keys is None:
        if isinstance(key, bool) or not isinstance(key, int) or key < first:
            raise UnfitLiteral(f"elements of a list are counted from {first}, not {key!r}")
        return Bound("nth", values.type, (scope.lists, values), (host, key - first))
    sought = values_of(Test(column, "==", key), keys.options[0])
    return Bound("get", values.type, (scope.lists, keys, values), (host, sought))


def _bind_test(test: Test, find: Columns) -> Bound:
    if isinstance(test.column, Column) and test.column.fold:
        scopes, elements = find.folded(test.column, test.operator in ("null", "not null"))
        if not scopes:  # no such column in this file: null for every row
            return constant(pa.scalar(None, pa.bool_()))
        truth = _bind_value_test(test, elements, find)
        for scope in reversed(scopes):
            truth = _fold(test.column.fold, scope, truth)
        return truth
    return _bind_value_test(test, bind_value(test.column, find), find)


def _bind_value_test(test: Test, value: Bound, find: Columns) -> Bound:
    truth = pa.bool_()
    if test.operator in ("null", "not null"):
        return Bound(f"is {test.operator}", truth, (value,))
    if pa.types.is_nested(value.type):
        raise UnfitLiteral(
            f"{test.column!r} is no single value, but {value.type}: "
            "only is_null() and is_not_null() work on it"
        )
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
    if value.function in ("leaf", "element"):
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
            kind = types.common(kind, beside(value, kind).type)
    return [
        value if value.type == kind else _converted(beside(value, kind), kind) for value in values
    ]


def _converted(value: Bound, kind: pa.DataType) -> Bound:
    return Bound("as", kind, (value,))


def _scalar(value: Any) -> pa.Scalar:
    if isinstance(value, datetime.timedelta) and not getattr(value, "nanoseconds", 0):
        microseconds = value // datetime.timedelta(microseconds=1)
        whole, rest = divmod(microseconds, 10**6)
        count, unit = (microseconds, "us") if rest else (whole, "s")
        return pa.scalar(count, pa.duration(unit))
    return types.scalar(value)
