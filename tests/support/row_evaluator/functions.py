"""What operations make of values that are there; `None` and failures are the evaluator's."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.support.row_evaluator import texts
from tests.support.row_evaluator.calendar import clock_of, first_day, part_of, truncated
from tests.support.row_evaluator.casts import cast
from tests.support.row_evaluator.kinds import DAY, UNITS, Kind
from tests.support.row_evaluator.numbers import Failed, arithmetic, checked, rounded, signless
from tests.support.row_evaluator.order import compared
from tests.support.row_evaluator.trees import Node


def function_of(node: Node, sql: bool, trouble: list[bool]) -> Callable[..., Any]:
    """What an operation makes of values that are there."""
    kind, extra = node.args[0].kind, node.extra
    match node.op:
        case "arithmetic" if node.kind.name == "text":
            return lambda one, other: one + other
        case "arithmetic":
            signed = all(arg.kind.signed for arg in node.args if arg.kind.name == "int")
            compute: Callable[..., Any] = arithmetic(extra, sql, node.kind, signed, trouble)
            return compute
        case "moved":
            return moving(node, trouble)
        case "negative" if kind.name == "int":
            return lambda value: checked(-value, (value,), kind.signed, trouble)
        case "negative":
            return lambda value: signless(value.copy_negate()) if kind.name == "decimal" else -value
        case "abs" if kind.name == "int":
            return lambda value: checked(abs(value), (value,), kind.signed, trouble)
        case "abs":
            return lambda value: value.copy_abs() if kind.name == "decimal" else abs(value)
        case "round":
            return lambda value: round_to(value, extra, kind, sql, trouble)
        case "part" if kind.name == "date":
            return lambda day: part_of(extra, day * DAY)
        case "part":
            return lambda value: part_of(extra, clock_of(value, kind.zone))
        case "date":
            return lambda value: clock_of(value, kind.zone) // DAY
        case "truncate" if kind.name == "date":
            return lambda day: first_day(extra, day)
        case "truncate":
            return lambda value: fitting(truncated(extra, value, kind.zone), kind)
        case "cast":
            return cast(kind, node.kind)
        case "try_cast":
            return trying(cast(kind, node.kind))
        case "get":
            return getting(kind, extra)
        case "nullif":
            ordered = compared(node.args[0], node.args[1], sql)
            return lambda one, other: None if ordered(one, other) == 0 else one
        case "nan":
            return lambda value: value != value
    return texts.function(node.op, extra, sql)


def round_to(value: Any, digits: int, kind: Kind, sql: bool, trouble: list[bool]) -> Any:
    near = rounded(value, digits, kind, sql)
    if kind.name == "int":
        return checked(near, (value,), kind.signed, trouble)
    if kind.name == "decimal" and abs(near) >= Decimal(10) ** (kind.precision - kind.scale):
        trouble.append(True)
    return near


def moving(node: Node, trouble: list[bool]) -> Callable[..., Any]:
    times = [DAY if arg.kind.name == "date" else 1 for arg in node.args]
    sign = 1 if node.extra == "+" else -1
    unit = UNITS[node.kind.unit]
    days = node.kind.name == "date"

    def run(x: int, y: int) -> int:
        result = x * times[0] + sign * y * times[1]
        if days:
            if abs(result // DAY) >= 2**31:
                raise Failed("too far a day")
            return result // DAY
        fitting(result, node.kind)
        if max(abs(x * times[0]), abs(y * times[1])) // unit >= 2**63:
            trouble.append(True)
        return result

    return run


def trying(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(value: Any) -> Any:
        try:
            return function(value)
        except Failed:
            return None

    return run


def getting(kind: Kind, key: Any) -> Callable[..., Any]:
    if kind.name == "map":
        return lambda items: next(
            (item["value"] for item in reversed(items) if item["key"] == key), None
        )
    return lambda items: items[key] if 0 <= key < len(items) else None


def fitting(value: int, kind: Kind) -> int:
    """A time that 64 bits of its unit hold."""
    if not -(2**63) <= value // UNITS[kind.unit] < 2**63:
        raise Failed("too far a time")
    return value
