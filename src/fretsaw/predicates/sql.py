"""A condition given as text, `"fare > 100 and city in ('NYC', 'LA')"`, as a predicate.

sqlglot parses; what has no counterpart among the predicates is an error that points at its place.
Numbers stay exact, and string literals become `Text`, which each column converts to its own type.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache, reduce
from itertools import accumulate, islice
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any, ClassVar

from fretsaw.errors import PredicateSyntaxError
from fretsaw.model.locks import importing
from fretsaw.predicates.expression import Column, Fold, Test, col
from fretsaw.predicates.logic import Predicate
from fretsaw.predicates.text import Text

if TYPE_CHECKING:
    from sqlglot.expressions import Expr
    from sqlglot.tokenizer_core import Token
    from sqlglot.tokens import Tokenizer


# All other words are names: a column may be called `order` or `end` without quotes.
_KEYWORDS = {
    *("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "LIKE", "ESCAPE", "NULL", "TRUE", "FALSE", "AS"),
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "DECIMAL", "NUMERIC"),
}
_SUPPORTED = (
    "a condition compares columns with values by = != < <= > >=, IN, BETWEEN, LIKE 'prefix%' or "
    'IS NULL, joined by AND, OR, NOT; names that are not plain words go in "double quotes"'
)
_REFUSED = {";": "one condition is expected, without a semicolon"} | dict.fromkeys(
    ["IF", "CASE"], 'this is not supported; a column of that name goes in "double quotes"'
)
_COMPARISONS: dict[str, Callable[[Any, Any], Predicate]]
_COMPARISONS = {"eq": eq, "neq": ne, "lt": lt, "lte": le, "gt": gt, "gte": ge}
_OPERANDS = {"this", "table", "db", "catalog", "expression", "expressions", "low", "high", "to"}
_OPERANDS |= {"negate", "is_string"}
_DAY, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,%d})?)?"
_MOMENT = f"{_DAY}([ T]{_CLOCK % 9}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?"
_LITERALS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "INT": ("[0-9]+", int),
    "DECIMAL": (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", Decimal),
    "DATE": (_DAY, date.fromisoformat),
    "TIME": (_CLOCK % 6, time.fromisoformat),
    # Only checked here: whether it is in UTC, and its nanoseconds, are the column's to know.
    "TIMESTAMP": (_MOMENT, lambda text: datetime.fromisoformat(text) and Text(text)),
    "TIMESTAMPTZ": (_MOMENT, lambda text: datetime.fromisoformat(text) and Text(text)),
}
_CLOSED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""", re.S)


def parse(text: str) -> Predicate:
    """The predicate that a condition in SQL stands for.

    >>> parse("fare > 100 and tip is not null")
    (col('fare') > 100) & (col('tip').is_not_null())
    """
    with importing:
        from sqlglot.expressions import Condition
        from sqlglot.parser import Parser

    try:
        tokens = _tokenizer()().tokenize(text)
    except Exception:
        unclosed = re.search("['\"`]|/[*]", _CLOSED.sub(lambda whole: " " * len(whole[0]), text))
        start = unclosed.start() if unclosed else 0
        raise _error(text, start, "the quote or comment that begins here does not end") from None
    for token in tokens:
        if token.token_type.name in {"VAR", "SEMICOLON"} and token.text.upper() in _REFUSED:
            raise _error(text, token.start, _REFUSED[token.text.upper()])
    if not tokens:
        raise _error(text, 0, f"the condition is empty; {_SUPPORTED}")
    try:
        parsed = Parser().parse_into(Condition, tokens, text)
        (root,) = (node for node in parsed if node is not None)
    except Exception as error:  # garbage makes the parser fail in more ways than it declares
        raise _error(text, *_failure(tokens, error)) from None
    try:
        return _Reader(text, tokens, root).predicate(root)
    except RecursionError as error:
        raise _error(text, *_failure(tokens, error)) from None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns the parsed nodes of one text into predicates."""

    text: str
    tokens: list["Token"]
    root: "Expr"

    def predicate(self, node: "Expr") -> Predicate:
        self.reject_extras(node)
        match node.key:
            case "paren":
                return self.predicate(node.this)
            case "and" | "or" as joint:
                parts = []  # collected in a loop, since a chain may be thousands long
                while node.key == joint:
                    parts.append(node.expression)
                    node = node.this
                read = [self.predicate(part) for part in (node, *reversed(parts))]
                return reduce(and_ if joint == "and" else or_, read)
            case "not":
                return self.negated(self.predicate(node.this), node.this)
            case key if key in _COMPARISONS:  # Python itself mirrors `5 < column`
                if _is_column(node.this):
                    return _COMPARISONS[key](self.column(node.this), self.value(node.expression))
                return _COMPARISONS[key](self.value(node.this), self.column(node.expression))
            case "in":
                items = [_bare(item) for item in node.expressions]
                listed = [None if item.key == "null" else self.value(item) for item in items]
                return self.column(node.this).is_in(listed)
            case "between":
                low, high = self.value(node.args["low"]), self.value(node.args["high"])
                return self.column(node.this).is_between(low, high)
            case "is":
                column, state = self.column(node.this), _bare(node.expression)
                if state.key == "null":
                    return column.is_null()
                if state.key == "boolean" and column.fold is None:
                    return (column == bool(state.this)) & column.is_not_null()
            case "like":
                return self.like(node, "")
            case "escape" if node.this.key == "like":
                escape = self.value(node.expression)
                if isinstance(escape, Text) and len(escape.value) == 1:
                    return self.like(node.this, escape.value)
            case "column" | "dot":
                problem = "a column alone is no condition: write = TRUE or IS NOT NULL behind it"
                raise self.error(node, problem)
        raise self.error(node, f"this is no condition; {_SUPPORTED}")

    def negated(self, part: Predicate, node: "Expr") -> Predicate:
        if (
            not isinstance(part, Test)
            or not isinstance(part.column, Column)
            or node.key not in {"is", "in", "between", "like", "escape"}
        ):
            return ~part
        fold, is_null = part.column.fold, part.operator == "null"
        if fold is None:
            return part.column.is_not_null() if is_null else ~part
        # `ANY(x) NOT IN` asks for an element that is not listed, `NOT ANY(x) IN` for none that is.
        end = max(name.meta["end"] for name in node.walk() if name.key == "identifier")
        behind = (token for token in self.tokens if token.start > end and token.text != ")")
        if all(token.token_type.name != "NOT" for token in islice(behind, 2)):
            return ~part
        other = replace(part.column, fold="all" if fold == "any" else "any")
        return part.column.is_not_null() if is_null else ~replace(part, column=other)

    def like(self, node: "Expr", escape: str) -> Predicate:
        pattern = self.value(node.expression)
        if not isinstance(pattern, Text):
            raise self.error(node.expression, "LIKE takes a pattern in 'single quotes'")
        units = re.findall(f"(?:{re.escape(escape)})?.", pattern.value, re.DOTALL)
        wild = [place for place, unit in enumerate(units) if unit in {"%", "_"}]
        if wild not in ([], [len(units) - 1]) or units[-1:] in (["_"], [escape]):
            problem = r"LIKE finds prefixes, so only one % at the end; else LIKE 'a\_b%' ESCAPE '\'"
            raise self.error(node.expression, problem)
        prefix = "".join(unit[-1] for unit in units[: len(units) - len(wild)])
        column = self.column(node.this)
        test = column.starts_with(prefix) if wild else column == Text(prefix)
        return self.negated(test, node) if node.args.get("negate") else test

    def column(self, node: "Expr") -> Column:
        fold: Fold | None = None
        node = _bare(node)
        if node.key == "any" and node.this.key == "paren":
            node, fold = _bare(node.this), "any"
        elif node.key == "anonymous" and _is_column(node) and len(node.expressions) == 1:
            node, fold = _bare(node.expressions[0]), "all"
        base, parts = node, []
        while base.key == "dot":
            parts.append(base.expression)
            base = base.this
        parts += [base.args.get(part) for part in ("this", "table", "db", "catalog")]
        names = [part for part in reversed(parts) if part is not None]
        if base.key != "column" or any(name.key != "identifier" for name in names):
            raise self.error(node, f"a column is expected here; {_SUPPORTED}")
        path = tuple(str(name.this) for name in names)
        is_exact = any(name.args.get("quoted") for name in names)
        is_exact &= len(path) > 1 or "." in path[0]
        return replace(col(path if is_exact else ".".join(path)), fold=fold)

    def value(self, node: "Expr") -> Any:
        match node.key:
            case "paren":
                return self.value(node.this)
            case "literal" if node.is_string:
                return Text(node.this)
            case "literal":
                return self.converted(node, "INT" if node.this.isdecimal() else "DECIMAL")
            case "boolean":
                return bool(node.this)
            case "neg":
                number = self.value(node.this)
                if isinstance(number, Decimal):
                    return number.copy_negate()  # exact, and it keeps the sign of zero
                if isinstance(number, int) and not isinstance(number, bool):
                    return -number
            case "cast" if node.this.is_string and not node.args["to"].expressions:
                self.reject_extras(node)
                return self.converted(node.this, node.args["to"].this.name)
            case "null":
                raise self.error(node, "nothing compares with NULL: write IS NULL or IS NOT NULL")
            case _ if _is_column(node):
                problem = "a value is expected here, not a column; strings go in 'single quotes'"
                raise self.error(node, problem)
        problem = "this is no plain value: functions, arithmetic and subqueries are not supported"
        raise self.error(node, f"{problem}; {_SUPPORTED}")

    def converted(self, node: "Expr", type_name: str) -> Any:
        """The value that the characters of a literal stand for."""
        pattern, convert = _LITERALS.get(type_name, ("(?!)", str))
        try:
            if re.fullmatch(pattern, node.this):
                return convert(node.this)
        except (ValueError, ArithmeticError):
            pass
        spelled = "12, 1.5, DATE '2024-02-29', TIME '13:00:00', TIMESTAMP '2024-02-29 13:00:00.5'"
        raise self.error(node, f"this is no valid {type_name}; values are spelled {spelled}")

    def reject_extras(self, node: "Expr") -> None:
        for name, operand in node.args.items():
            if operand and name not in _OPERANDS:
                place = operand if hasattr(operand, "walk") else node
                raise self.error(place, f"this is not supported; {_SUPPORTED}")

    def error(self, node: "Expr", problem: str) -> PredicateSyntaxError:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if node.key == "null":  # carries no place, but its word does
            places = (token.start for token in self.tokens if token.token_type.name == "NULL")
            nulls = self.root.find_all(type(node), bfs=False)
            starts = [place for place, null in zip(places, nulls, strict=False) if null is node]
        if not starts and node.parent is not None:
            return self.error(node.parent, problem)
        return _error(self.text, min(starts, default=0), problem)


def _bare(node: "Expr") -> "Expr":
    while node.key == "paren":
        node = node.this
    return node


def _is_column(node: "Expr") -> bool:
    node = _bare(node)
    is_all = node.key == "anonymous" and node.name.upper() == "ALL"
    return is_all or node.key in {"column", "dot", "any"}


@cache
def _tokenizer() -> "type[Tokenizer]":
    with importing:
        from sqlglot import tokens

    class Words(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        KEYWORDS: ClassVar = {
            word: token
            for word, token in tokens.Tokenizer.KEYWORDS.items()
            if word in _KEYWORDS or not word[:1].isalpha()
        }

    return Words


def _failure(tokens: list["Token"], error: Exception) -> tuple[int, str]:
    """Where the parser failed, and why."""
    if isinstance(error, RecursionError):
        depths = list(accumulate((token.text == "(") - (token.text == ")") for token in tokens))
        return tokens[depths.index(max(depths))].start, "the condition is nested too deeply"
    details = (getattr(error, "errors", None) or [{}])[0]
    place = (details.get("line"), details.get("col"))
    token = next((token for token in tokens if (token.line, token.col) == place), tokens[-1])
    description = details.get("description") or ""
    if token is tokens[-1] and token.text != ")" and not description.startswith("Invalid"):
        return token.end + 1, f"the condition ends too early; {_SUPPORTED}"
    problem = "`)` is expected here" if description == "Expecting )" else "this cannot be read here"
    return token.start, f"{problem}; {_SUPPORTED}"


def _error(text: str, start: int, problem: str) -> PredicateSyntaxError:
    """The error, with the line of the text around a place and a caret below it."""
    first = max(text.rfind("\n", 0, start) + 1, start - 60)
    line = text[first : start + 60].split("\n")[0].rstrip()
    indent = re.sub(r"[^\t]", " ", text[first:start])
    return PredicateSyntaxError(f"{problem}\n  {line}\n  {indent}^")
