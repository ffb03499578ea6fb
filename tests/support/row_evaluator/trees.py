"""Expression trees: nodes with their kinds, built by functions that know what gives what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.support.row_evaluator.kinds import (
    BOOL,
    DATE,
    DAY,
    DURATION,
    FLOAT,
    INT,
    LOCAL,
    TEXT,
    Kind,
    decimal_kind,
    digits_of,
    finer,
)

MOST_DIGITS = 76


@dataclass(frozen=True)
class Node:
    """An operation, what it gives, its operands, and what else it needs to know."""

    op: str
    kind: Kind
    args: tuple[Node, ...] = ()
    extra: Any = None

    def walk(self) -> Iterator[Node]:
        yield self
        for arg in self.args:
            yield from arg.walk()

    @property
    def is_literal(self) -> bool:
        return self.op == "literal"

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.args))
        extra = "" if self.extra is None else f"[{self.extra!r}]"
        return f"{self.op}{extra}({inner})" if self.args else f"{self.op}{extra}"


def column(path: tuple[str, ...], kind: Kind) -> Node:
    return Node("column", kind, extra=path)


def element(path: tuple[str, ...], kind: Kind) -> Node:
    return Node("element", kind, extra=path)


def literal(value: Any, kind: Kind) -> Node:
    return Node("literal", kind, extra=value)


def predicate(op: str, *args: Node, extra: Any = None) -> Node:
    return Node(op, BOOL, args, extra)


def arithmetic(sign: str, one: Node, other: Node) -> Node:
    return Node("arithmetic", arithmetic_kind(sign, one.kind, other.kind), (one, other), sign)


def arithmetic_kind(sign: str, one: Kind, other: Kind) -> Kind:
    if one.name == other.name == "text":
        return TEXT
    if sign == "/" or "float" in (one.name, other.name):
        return FLOAT
    if one.name == other.name == "int":
        return replace(INT, signed=one.signed or other.signed)
    (p, s), (q, t) = digits_of(one), digits_of(other)
    if sign in ("*", "//", "%"):
        return decimal_kind(p + q + 1, s + t)
    return decimal_kind(max(p - s, q - t) + max(s, t) + 1, max(s, t))


def moved(sign: str, one: Node, other: Node) -> Node:
    """A date, timestamp or duration and a duration; or the difference of two times."""
    return Node("moved", moved_kind(one, other), (one, other), sign)


def moved_kind(one: Node, other: Node) -> Kind:
    if other.kind.name != "duration":
        return replace(DURATION, unit=finer(one.kind.unit, other.kind.unit))
    if one.kind.name == "date":
        whole = other.is_literal and other.extra % DAY == 0
        return DATE if whole else replace(LOCAL, unit=finer("us", other.kind.unit))
    return replace(one.kind, unit=finer(one.kind.unit, other.kind.unit))


def function(op: str, one: Node, extra: Any = None) -> Node:
    return Node(op, function_kind(op, one.kind), (one,), extra)


def function_kind(op: str, kind: Kind) -> Kind:
    match op:
        case "length" | "part":
            return INT
        case "date":
            return DATE
        case "negative" | "abs" if kind.name == "int":
            return replace(INT, signed=kind.signed)
        case "round" if kind.name == "int":
            return INT if kind.signed else replace(INT, signed=False)
    return kind


def may_be_refused(tree: Node) -> bool:
    """Whether a decimal may have more digits than there are."""
    return any(node.kind.precision > MOST_DIGITS for node in tree.walk())
