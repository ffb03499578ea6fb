"""Turns the nodes that sqlglot parsed of a value into columns, literals and expressions.

Numbers stay exact, and string literals become `Text`, which each column converts to its own type.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fretsaw.errors import PredicateSyntaxError, PredicateTypeError
from fretsaw.predicates import sql_literals
from fretsaw.predicates.expression import Column, Expression, Fold, call, coalesce, col, when
from fretsaw.predicates.logic import Predicate
from fretsaw.predicates.operations import UNITS
from fretsaw.predicates.sql_usage import USAGE, no_such_function
from fretsaw.predicates.sql_words import AGGREGATE, SUBQUERY, syntax_error
from fretsaw.predicates.text import Text

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token

SUPPORTED = (
    "a condition compares columns with values by = != < <= > >=, IN, BETWEEN, LIKE or IS NULL, "
    'joined by AND, OR, NOT; names that are not plain words go in "double quotes"'
)
_OPERANDS = {"this", "table", "db", "catalog", "expression", "expressions", "low", "high", "to"}
_OPERANDS |= {"negate", "is_string", "typed", "safe", "decimals", "unit", "ifs", "default", "_type"}
_CONDITIONS = {"eq", "neq", "lt", "lte", "gt", "gte", "and", "or", "not", "is", "in", "between"}
_CONDITIONS |= {"like", "ilike", "escape", "regexplike", "nullsafeeq", "nullsafeneq"}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mod": "%"}
_FUNCTIONS = {
    **{name: name for name in ("lower", "upper", "abs", "year", "month", "day", "hour")},
    **{name: name for name in ("minute", "second", "microsecond", "date", "length")},
    **{"trim": "trim", "strip": "strip", "len": "length", "char_length": "length"},
    **{"dayofweekiso": "weekday", "isodow": "weekday", "weekday": "weekday"},
    **{"dayofmonth": "day", "tsordstodate": "date", "microseconds": "microsecond"},
}
TESTS = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}


@dataclass(frozen=True, slots=True)
class Values(ABC):
    """Turns the parsed nodes of one text into values."""

    text: str
    tokens: list["Token"]
    root: "Expr"
    lists: Mapping[str, list[Any]] = field(default_factory=dict)
    """What the names hold that stand for long lists."""

    @abstractmethod
    def predicate(self, node: "Expr") -> Predicate:
        """A node as a condition."""

    def tested(self, node: "Expr") -> Any:
        """A side of a comparison: a column, perhaps folded, an expression or a value."""
        return self.column(node) if is_fold(node) else self.value(node)

    def expression(self, node: "Expr") -> Expression:
        """What is tested."""
        value = self.tested(node)
        return value if isinstance(value, Expression) else coalesce(value)

    def column(self, node: "Expr") -> Column:
        fold: Fold | None = None
        node = bare(node)
        if node.key == "any" and node.this.key == "paren":
            node, fold = bare(node.this), "any"
        elif is_fold(node) and len(node.expressions) == 1:
            node, fold = bare(node.expressions[0]), "all"
        return replace(self.path(node, node, []), fold=fold)

    def path(self, node: "Expr", base: "Expr", parts: list["Expr"]) -> Column:
        """The column that a node names by a base and what is below it, the innermost first."""
        while base.key == "dot":
            parts.append(base.expression)
            base = base.this
        around = (base.args.get(part) for part in ("this", "table", "db", "catalog"))
        names = [*parts, *(part for part in around if part is not None)][::-1]
        if base.key != "column" or any(name.key != "identifier" for name in names):
            raise self.error(node, f"a column is expected here; {SUPPORTED}")
        path = tuple(str(name.this) for name in names)
        is_exact = any(name.args.get("quoted") for name in names)
        is_exact &= len(path) > 1 or "." in path[0]
        return col(path if is_exact else ".".join(path))

    def value(self, node: "Expr") -> Any:
        """An expression or a value."""
        try:
            return self.read(node)
        except (TypeError, ValueError) as error:
            if isinstance(error, PredicateSyntaxError | PredicateTypeError):
                raise
            raise self.error(node, str(error)) from None

    def read(self, node: "Expr") -> Any:
        self.reject_extras(node)
        match node.key:
            case "paren":
                return self.value(node.this)
            case "literal" if node.is_string:
                return Text(node.this)
            case "literal":
                return self.converted(node, "INT" if node.this.isdecimal() else "DECIMAL")
            case "hexstring":
                return int(node.this, 16)
            case "boolean":
                return bool(node.this)
            case "neg":
                number = self.value(node.this)
                if isinstance(number, Expression):
                    return -number
                if isinstance(number, int | Decimal) and not isinstance(number, bool):
                    return number.copy_negate() if isinstance(number, Decimal) else -number
                raise self.error(node, f"this is no number; {SUPPORTED}")
            case "cast" if node.this.is_string and sql_literals.is_literal(node.args["to"]):
                return self.converted(node.this, node.args["to"].this.name)
            case "cast" | "trycast":
                kind = sql_literals.arrow_type(node.args["to"])
                if kind is None:
                    raise self.error(node, f"there is no such type; {sql_literals.TYPES}")
                options = (kind, "try") if node.key == "trycast" else (kind,)
                return call("cast", self.value(node.this), options=options)
            case "null":
                raise self.error(node, "nothing compares with NULL: write IS NULL or IS NOT NULL")
            case "interval":
                return self.interval(node)
            case key if key in _ARITHMETIC:
                return self.arithmetic(node, _ARITHMETIC[key])
            case "dpipe":
                return call("+", self.value(node.this), self.value(node.expression))
            case "column" if _is_word(node, "current_date"):
                return datetime.now(UTC).date()
            case "column" | "dot" | "bracket":
                return self.entry(node)
            case "any":
                raise self.error(node, f"a column is expected here, ANY is not; {SUPPORTED}")
            case key if (key in _CONDITIONS and not _is_chained(node)) or _is_test(node):
                return call("truth", self.predicate(node))
        return self.function(node)

    def entry(self, node: "Expr") -> Expression:
        """A column, or of a list or map what one element has: `items[1].price`."""
        base, below = node, []
        while base.key == "dot":
            below.append(base.expression)
            base = base.this
        if base.key != "bracket" or len(base.expressions) != 1:
            return self.column(node)
        key = self.value(base.expressions[0])
        if isinstance(key, Expression):
            raise self.error(node, "a key or a place is a value here, not a column")
        return call("get", self.path(node, base.this, below), options=(key, 1))

    def function(self, node: "Expr") -> Any:
        """A call of a function."""
        name = node.name.lower() if node.key == "anonymous" else node.key
        match name:
            case "round":
                digits = node.args.get("decimals")
                places = 0 if digits is None else self.value(digits)
                if not isinstance(places, int):
                    raise self.error(node, "ROUND takes a number of decimal places")
                mode = "half_towards_infinity"
                return call("round", self.value(node.this), options=(places, mode))
            case "coalesce":
                return coalesce(*map(self.branch, (node.this, *node.expressions)))
            case "nullif":
                value, other = self.value(node.this), self.value(node.expression)
                return when(coalesce(value) == other).then(None).otherwise(value)
            case "case":
                return self.case(node)
            case "extract":
                return self.part(node, node.this.name.lower(), node.expression)
            case "datetrunc" | "timestamptrunc":
                unit = node.args["unit"].name.lower()
                if unit not in UNITS:
                    raise self.error(node, f"DATE_TRUNC takes one of {', '.join(UNITS)}")
                return call("truncate", self.value(node.this), options=(unit,))
        if name in _FUNCTIONS:
            operands = node.expressions if node.key == "anonymous" else [node.this]
            if len(operands) == 1 and node.args.get("expression") is None:
                if name in ("date", "tsordstodate") and operands[0].is_string:
                    return self.converted(operands[0], "DATE")
                return call(_FUNCTIONS[name], self.value(operands[0]))
        raise self.unknown(node)

    def part(self, node: "Expr", name: str, value: "Expr") -> Any:
        if name not in _FUNCTIONS or name not in USAGE:
            raise self.error(node, f"there is no part {name.upper()} of a time")
        return call(_FUNCTIONS[name], self.value(value))

    def case(self, node: "Expr") -> Any:
        """The choices of a CASE, of conditions or of values."""
        chosen: list[Any] = []
        for choice in node.args["ifs"]:
            if node.this is None:
                condition = self.predicate(choice.this)
            else:
                condition = self.expression(node.this) == self.value(choice.this)
            chosen += (condition, self.branch(choice.args["true"]))
        default = node.args.get("default")
        return call("when", *chosen, None if default is None else self.branch(default))

    def branch(self, node: "Expr") -> Any:
        """A value that may be NULL."""
        return None if bare(node).key == "null" else self.value(node)

    def arithmetic(self, node: "Expr", function: str) -> Any:
        left, right = self.value(node.this), self.value(node.expression)
        known = sql_literals.calculated(function, left, right)
        if known is not None:
            return known
        if any(isinstance(side, sql_literals.Months) for side in (left, right)):
            raise self.error(node, "months and years differ in length: add them to literals only")
        return call(function, left, right, options=("truncate",) if function in "//%" else ())

    def interval(self, node: "Expr") -> Any:
        unit = node.args.get("unit")
        amount = node.this.name if node.this is not None else ""
        found = sql_literals.interval(amount, unit.name if unit is not None else "")
        if found is None:
            raise self.error(node, "an interval is spelled INTERVAL 3 DAY or INTERVAL '3 days'")
        return found

    def string(self, node: "Expr") -> str:
        text = self.value(node)
        if not isinstance(text, Text):
            raise self.error(node, "text in 'single quotes' is expected here")
        return text.value

    def converted(self, node: "Expr", type_name: str) -> Any:
        """The value that the characters of a literal stand for."""
        try:
            return sql_literals.value(node.this, type_name)
        except (ValueError, ArithmeticError):
            problem = f"this is no valid {type_name}; values are spelled {sql_literals.SPELLINGS}"
            raise self.error(node, problem) from None

    def unknown(self, node: "Expr") -> PredicateSyntaxError:
        """The error for what is no function, or none of one row."""
        kinds = {kind.__name__ for kind in type(node).__mro__}
        if kinds & {"AggFunc", "Window", "Query", "Subquery", "Exists", "In"}:
            is_query = kinds & {"Query", "Subquery", "Exists", "In"}
            return self.error(node, SUBQUERY if is_query else AGGREGATE)
        if "Func" not in kinds:
            return self.error(node, f"this is no condition and no value; {SUPPORTED}")
        operands = [
            operand
            for part in node.args.values()
            for operand in (part if isinstance(part, list) else [part])
            if hasattr(operand, "walk")
        ]
        name, start = self.called(node)
        problem = no_such_function(name, [_kind(operand) for operand in operands])
        return syntax_error(self.text, start, problem)

    def called(self, node: "Expr") -> tuple[str, int]:
        """The name of a function as it is written, and its place."""
        first = min((p.meta["start"] for p in node.walk() if "start" in p.meta), default=0)
        places = [n for n, token in enumerate(self.tokens) if token.start <= first]
        for place in reversed(places):
            if place + 1 < len(self.tokens) and self.tokens[place + 1].text == "(":
                return self.tokens[place].text, self.tokens[place].start
        return str(getattr(node, "sql_name", str)()), first

    def reject_extras(self, node: "Expr") -> None:
        for name, operand in node.args.items():
            if operand and name not in _OPERANDS:
                if _is_function(node):
                    raise self.unknown(node)
                place = operand if hasattr(operand, "walk") else node
                raise self.error(place, f"this is not supported; {SUPPORTED}")

    def error(self, node: "Expr", problem: str) -> PredicateSyntaxError:
        """The error at the place of a node."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if node.key == "null":  # carries no place, but its word does
            places = (token.start for token in self.tokens if token.token_type.name == "NULL")
            nulls = self.root.find_all(type(node), bfs=False)
            starts = [place for place, null in zip(places, nulls, strict=False) if null is node]
        if not starts and node.parent is not None:
            return self.error(node.parent, problem)
        return syntax_error(self.text, min(starts, default=0), problem)


def bare(node: "Expr") -> "Expr":
    """A node without the parentheses around it."""
    while node.key == "paren":
        node = node.this
    return node


def is_fold(node: "Expr") -> bool:
    """Whether it is ANY(column) or ALL(column)."""
    node = bare(node)
    return node.key == "any" or (node.key == "anonymous" and node.name.upper() == "ALL")


def is_folded(value: Any) -> bool:
    """Whether it is the elements of a column."""
    return isinstance(value, Column) and value.fold is not None


def _kind(node: "Expr") -> str:
    """What stands as an operand."""
    node = bare(node)
    if node.key == "literal":
        return "text" if node.is_string else "number"
    if node.key in ("column", "dot"):
        return "column"
    return "condition" if node.key in _CONDITIONS else "expression"


def _is_chained(node: "Expr") -> bool:
    """Whether a comparison is compared without parentheses, `a < b < c`."""
    return node.parent is not None and node.parent.key in ("eq", "neq", "lt", "lte", "gt", "gte")


def _is_test(node: "Expr") -> bool:
    """Whether it is a function that is a condition."""
    if node.key == "anonymous":
        known = node.name.lower() in ("list_contains", "regexp_matches")
        return known and len(node.expressions) == 2
    return node.key in (*TESTS, "isnan", "arraycontains")


def _is_function(node: "Expr") -> bool:
    return any(kind.__name__ in ("Func", "Window") for kind in type(node).__mro__)


def _is_word(node: "Expr", word: str) -> bool:
    """Whether a column is a word of SQL, neither quoted nor in a path."""
    name = node.this
    alone = node.args.get("table") is None and name.key == "identifier"
    return bool(alone and not name.args.get("quoted") and str(name.this).lower() == word)
