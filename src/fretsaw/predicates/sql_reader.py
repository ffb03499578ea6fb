"""Turns the nodes that sqlglot parsed of a condition into predicates."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any

from fretsaw.predicates.expression import Column, Expression, Test, as_predicate, coalesce
from fretsaw.predicates.logic import Predicate
from fretsaw.predicates.patterns import like_beginning
from fretsaw.predicates.sql_values import SUPPORTED, TESTS, Values, bare, is_folded
from fretsaw.predicates.text import Text

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_COMPARISONS: dict[str, Callable[[Any, Any], Predicate]]
_COMPARISONS = {"eq": eq, "neq": ne, "lt": lt, "lte": le, "gt": gt, "gte": ge}


@dataclass(frozen=True, slots=True)
class Reader(Values):
    """Turns the parsed nodes of one text into predicates."""

    def predicate(self, node: "Expr") -> Predicate:
        """A node as a condition."""
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
                left, right = self.tested(node.this), self.tested(node.expression)
                if not isinstance(left, Expression) and not isinstance(right, Expression):
                    left = coalesce(left)
                if is_folded(left) and isinstance(right, Expression):
                    raise self.error(node.expression, "a value is expected here, not a column")
                if is_folded(right) and isinstance(left, Expression):
                    problem = "a value is expected beside ANY and ALL, not a column"
                    raise self.error(node.expression, problem)
                return _COMPARISONS[key](left, right)
            case "nullsafeeq" | "nullsafeneq":
                same = self.same(node.this, node.expression)
                return same if node.key == "nullsafeeq" else ~same
            case "in" if not node.args.get("query"):
                items = [bare(item) for item in node.expressions]
                if len(items) == 1 and items[0].name in self.lists:
                    return self.expression(node.this).is_in(self.lists[items[0].name])
                listed = [None if item.key == "null" else self.value(item) for item in items]
                return self.expression(node.this).is_in(listed)
            case "between":
                low, high = self.value(node.args["low"]), self.value(node.args["high"])
                return self.expression(node.this).is_between(low, high)
            case "is":
                value, state = self.expression(node.this), bare(node.expression)
                if state.key == "null":
                    return value.is_null()
                if state.key == "boolean" and not is_folded(value):
                    return (value == bool(state.this)) & value.is_not_null()
                raise self.error(node, f"this is no condition; {SUPPORTED}")
            case "like" | "ilike":
                return self.like(node, None)
            case "escape" if node.this.key in ("like", "ilike"):
                escape = self.value(node.expression)
                if isinstance(escape, Text) and len(escape.value) == 1:
                    return self.like(node.this, escape.value)
                raise self.error(
                    node, f"this is no condition, ESCAPE takes one character; {SUPPORTED}"
                )
            case "regexplike":
                return self.expression(node.this).matches(self.string(node.expression))
            case "isnan":
                return self.expression(node.this).is_nan()
            case key if key in TESTS:
                test = getattr(self.expression(node.this), TESTS[key])
                return test(self.string(node.expression))  # type: ignore[no-any-return]
            case "arraycontains":
                return _COMPARISONS["eq"](self.column(node.this).any(), self.value(node.expression))
            case "anonymous" if node.name.lower() == "list_contains":
                if len(node.expressions) == 2:
                    listed, value = node.expressions
                    return _COMPARISONS["eq"](self.column(listed).any(), self.value(value))
            case "anonymous" if node.name.lower() == "regexp_matches":
                if len(node.expressions) == 2:
                    value, regex = node.expressions
                    return self.expression(value).matches(self.string(regex))
            case "boolean":
                return coalesce(True) == bool(node.this)
            case "literal" | "null" | "neg" | "hexstring" | "interval":
                raise self.error(node, f"this is no condition; {SUPPORTED}")
        return as_predicate(self.expression(node))

    def negated(self, part: Predicate, node: "Expr") -> Predicate:
        tests = {"is", "in", "between", "like", "ilike", "escape"}
        if not isinstance(part, Test) or node.key not in tests:
            return ~part
        fold = part.column.fold if isinstance(part.column, Column) else None
        is_null = part.operator == "null"
        if fold is None or not isinstance(part.column, Column):
            return part.column.is_not_null() if is_null else ~part
        # `ANY(x) NOT IN` asks for an element that is not listed, `NOT ANY(x) IN` for none that is.
        end = max(name.meta["end"] for name in node.walk() if name.key == "identifier")
        behind = (token for token in self.tokens if token.start > end and token.text != ")")
        if all(token.token_type.name != "NOT" for token in islice(behind, 2)):
            return ~part
        other = replace(part.column, fold="all" if fold == "any" else "any")
        return part.column.is_not_null() if is_null else ~replace(part, column=other)

    def like(self, node: "Expr", escape: str | None) -> Predicate:
        pattern = self.value(node.expression)
        if not isinstance(pattern, Text):
            raise self.error(node.expression, "LIKE takes a pattern in 'single quotes'")
        value = self.expression(node.this)
        try:
            test = (value.like if node.key == "like" else value.ilike)(pattern.value, escape)
        except ValueError as error:
            raise self.error(node.expression, str(error)) from None
        if node.key == "like":
            beginning, rest = like_beginning(pattern.value, escape)
            if rest == "nothing":
                test = value == Text(beginning)
            elif rest == "anything":
                test = value.starts_with(beginning)
        return self.negated(test, node) if node.args.get("negate") else test

    def same(self, left: "Expr", right: "Expr") -> Predicate:
        """Both null, or both not and equal: never unknown."""
        sides = [self.value(node) for node in (left, right) if bare(node).key != "null"]
        sides.sort(key=lambda side: not isinstance(side, Expression))
        first, *others = sides or [True]
        first = first if isinstance(first, Expression) else coalesce(first)
        if not others:
            return first.is_null() if sides else as_predicate(coalesce(True))
        (second,) = others
        equal = _COMPARISONS["eq"](first, second)
        if not isinstance(second, Expression):
            return equal & first.is_not_null()
        known = first.is_not_null() & second.is_not_null()
        return (equal & known) | (first.is_null() & second.is_null())
