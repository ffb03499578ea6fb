"""The row-by-row evaluator: what a tree is for one row, in plain Python, as the contract has it.

A tree becomes functions of a row. Values are Python's (`None` is null); what cannot be computed is
`FAILED`, and noted, since the library may evaluate it or not. A predicate is a set of truths: one
of `TRUE`, `FALSE` and `UNKNOWN`, or several where it depends on something that failed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.support.row_evaluator.functions import function_of
from tests.support.row_evaluator.kinds import Kind
from tests.support.row_evaluator.numbers import Failed
from tests.support.row_evaluator.order import compared
from tests.support.row_evaluator.trees import Node

FAILED = object()
FALSE, TRUE, UNKNOWN = 1, 2, 4
ANYTHING = FALSE | TRUE | UNKNOWN
SINGLE = (FALSE, TRUE, UNKNOWN)
Row = dict[str, Any]
Function = Callable[[Row], Any]


def table_of(combine: Callable[[int, int], int]) -> list[list[int]]:
    """What sets of truths give, of what single ones give."""

    def together(one: int, other: int) -> int:
        result = 0
        for left in SINGLE:
            for right in SINGLE:
                if one & left and other & right:
                    result |= combine(left, right)
        return result

    return [[together(one, other) for other in range(8)] for one in range(8)]


# False is below unknown is below true.
RANK = {FALSE: 0, UNKNOWN: 1, TRUE: 2}
AND = table_of(lambda one, other: min(one, other, key=RANK.__getitem__))
OR = table_of(lambda one, other: max(one, other, key=RANK.__getitem__))
NOT = [(m & UNKNOWN) | (FALSE if m & TRUE else 0) | (TRUE if m & FALSE else 0) for m in range(8)]
VALUES = {FALSE: False, TRUE: True, UNKNOWN: None}
SIGNS: dict[str, tuple[int, ...]] = {
    "==": (0,),
    "!=": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
}
ELEMENT = "\0element"


def truth_of(value: Any) -> int:
    if value is None:
        return UNKNOWN
    if value is FAILED:
        return ANYTHING
    return TRUE if value else FALSE


@dataclass
class Evaluator:
    """Functions of a row in one of the two dialects, Python's expressions or SQL text."""

    sql: bool
    trouble: list[bool] = field(default_factory=list)

    def truth(self, node: Node) -> Function:
        """The set of truths that a predicate may have for a row."""
        match node.op:
            case "and" | "or":
                table = AND if node.op == "and" else OR
                one, other = map(self.truth, node.args)
                return lambda row: table[one(row)][other(row)]
            case "not":
                inner = self.truth(node.args[0])
                return lambda row: NOT[inner(row)]
            case "compare":
                return self.compare(node.extra, *node.args)
            case "between":
                tested, low, high = node.args
                above, below = self.compare(">=", tested, low), self.compare("<=", tested, high)
                return lambda row: AND[above(row)][below(row)]
            case "in":
                return self.membership(node.args[0], node.args[1:])
            case "null":
                value = self.value(node.args[0])
                return lambda row: self.is_null(value(row), node.extra)
            case "distinct":
                return self.distinct(node.args[0], node.args[1], node.extra)
            case "fold":
                return self.fold(node)
        value = self.value(node)
        return lambda row: truth_of(value(row))

    def compare(self, sign: str, one: Node, other: Node) -> Function:
        wanted, ordered = SIGNS[sign], compared(one, other, self.sql)
        left, right = self.value(one), self.value(other)

        def run(row: Row) -> int:
            x, y = left(row), right(row)
            if x is None or y is None:
                return UNKNOWN
            if x is FAILED or y is FAILED:
                return ANYTHING
            return TRUE if ordered(x, y) in wanted else FALSE

        return run

    def membership(self, one: Node, items: tuple[Node, ...]) -> Function:
        tests = [self.compare("==", one, item) for item in items]

        def run(row: Row) -> int:
            found = FALSE
            for test in tests:
                found = OR[found][test(row)]
            return found

        return run

    def is_null(self, value: Any, wanted: bool) -> int:
        if value is FAILED:
            return TRUE | FALSE
        return TRUE if (value is None) == wanted else FALSE

    def distinct(self, one: Node, other: Node, negated: bool) -> Function:
        ordered = compared(one, other, self.sql)
        left, right = self.value(one), self.value(other)

        def run(row: Row) -> int:
            x, y = left(row), right(row)
            if x is FAILED or y is FAILED:
                return TRUE | FALSE
            same = x is y if x is None or y is None else ordered(x, y) == 0
            return TRUE if same == negated else FALSE

        return run

    def fold(self, node: Node) -> Function:
        """Whether some elements, or all, pass a test: of an empty list none and all."""
        table, empty = (OR, FALSE) if node.extra[0] == "any" else (AND, TRUE)
        listed, test = self.value(node.args[0]), self.truth(node.args[1])

        def run(row: Row) -> int:
            items = listed(row)
            if items is None:
                return UNKNOWN
            result = empty
            for item in items:
                row[ELEMENT] = item
                result = table[result][test(row)]
            return result

        return run

    def value(self, node: Node) -> Function:
        """The value of an expression for a row."""
        match node.op:
            case "column" | "element":
                return reading(node)
            case "literal":
                # SQL spells numbers as decimals, whose zero has no sign.
                value = 0.0 if self.sql and str(node.extra) == "-0.0" else node.extra
                return lambda row: value
            case "coalesce":
                return self.coalesce(node)
            case "when":
                return self.choice(node)
        if node.op in ("and", "or", "not", "compare", "between", "in", "null", "distinct", "fold"):
            truth = self.truth(node)
            return lambda row: VALUES.get(truth(row), FAILED)
        return self.lifted(
            function_of(node, self.sql, self.trouble), [self.value(arg) for arg in node.args]
        )

    def lifted(self, function: Callable[..., Any], args: list[Function]) -> Function:
        """Nulls go through, and so does what failed."""

        def run(row: Row) -> Any:
            values = [arg(row) for arg in args]
            for value in values:
                if value is None:
                    return None
            for value in values:
                if value is FAILED:
                    return FAILED
            try:
                return function(*values)
            except Failed:
                self.trouble.append(True)
                return FAILED

        return run

    def coalesce(self, node: Node) -> Function:
        choices = [self.as_kind(arg, node.kind) for arg in node.args]

        def run(row: Row) -> Any:
            values = [choice(row) for choice in choices]
            return next((value for value in values if value is not None), None)

        return run

    def choice(self, node: Node) -> Function:
        *pairs, last = node.args
        tests = [self.truth(test) for test in pairs[::2]]
        values = [self.as_kind(value, node.kind) for value in pairs[1::2]]
        otherwise = self.as_kind(last, node.kind)

        def run(row: Row) -> Any:
            results = [value(row) for value in values]
            rest = otherwise(row)
            for test, result in zip([test(row) for test in tests], results, strict=True):
                if test == TRUE:
                    return result
                if test & TRUE:
                    return FAILED
            return rest

        return run

    def as_kind(self, node: Node, kind: Kind) -> Function:
        convert = {"float": float, "decimal": Decimal}.get(kind.name)
        if node.is_literal and convert and node.extra is not None:
            number = convert(node.extra)
            return lambda row: number
        return self.value(node)


def reading(node: Node) -> Function:
    """A column or an element, or a field of it; a null struct has null fields."""
    first, *steps = node.extra if node.op == "column" else (ELEMENT, *node.extra)
    if not steps:
        return lambda row: row[first]

    def run(row: Row) -> Any:
        value = row[first]
        for step in steps:
            value = None if value is None else value[step]
        return value

    return run


@dataclass(frozen=True)
class Outcome:
    """The rows that match, those that are an error or left out, and whether one may be raised."""

    rows: list[int]
    failing: list[int]
    may_fail: bool


def evaluate(tree: Node, rows: list[Row], sql: bool) -> Outcome:
    evaluator = Evaluator(sql)
    truth = evaluator.truth(tree)
    found = [truth(row) for row in rows]
    return Outcome(
        [number for number, mask in enumerate(found) if mask == TRUE],
        [number for number, mask in enumerate(found) if mask & TRUE and mask != TRUE],
        bool(evaluator.trouble),
    )
