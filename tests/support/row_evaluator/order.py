"""How two values compare: literals as their columns have them, everything else by value."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.support.row_evaluator.kinds import DAY, Kind
from tests.support.row_evaluator.numbers import order, to_width
from tests.support.row_evaluator.trees import Node


def compared(one: Node, other: Node, sql: bool) -> Callable[[Any, Any], int]:
    """A function that says whether a value is below, equal to or above another."""
    if one.kind.name == "date" and other.kind.name == "local":
        return lambda x, y: plain_order(x * DAY, y)
    if one.kind.name == "local" and other.kind.name == "date":
        return lambda x, y: plain_order(x, y * DAY)
    if not one.kind.is_number:
        return plain_order
    if other.is_literal and other.extra is not None:
        value, signless = fitted(other.extra, one.kind, sql)
        return lambda x, _: order(x, value, signless)
    if one.is_literal and one.extra is not None:
        value, signless = fitted(one.extra, other.kind, sql)
        return lambda _, y: order(value, y, signless)
    return order


def plain_order(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def fitted(value: Any, kind: Kind, sql: bool) -> tuple[Any, bool]:
    """A literal as it compares with such a column, and whether it is a zero without a sign."""
    signless = value == 0 and (sql or not isinstance(value, float))
    if kind.name == "float":
        return to_width(value, kind.width), signless
    if kind.name == "decimal" and isinstance(value, float) and abs(value) < float("inf"):
        return Decimal(repr(value)), signless
    return value, signless
