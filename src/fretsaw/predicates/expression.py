"""What users write to choose rows: `col("fare") > 100`, `col("end") < col("start") + hour`.

An expression is a column or a call of a function on expressions and values; testing it gives a
predicate. Neither knows of files: names, types and literals are settled when a predicate is
resolved against the schema of each file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, overload

import pyarrow as pa

from fretsaw.errors import PredicateTypeError
from fretsaw.model.schema import Path, spelled
from fretsaw.predicates.logic import And, Not, Or, Predicate
from fretsaw.predicates.operations import Operations, Operator

_DEEPEST = 150

Fold: TypeAlias = Literal["any", "all"]
_INFIX = {"+", "-", "*", "/", "//", "%"}


class Expression(Operations):
    """A value of each row: a column, or what is computed of columns; made by `col`."""

    __slots__ = ()

    def _call(self, function: str, *operands: Any, options: tuple[Any, ...] = ()) -> "Expression":
        return call(function, *operands, options=options)

    def _test(self, operator: Operator, operand: Any = None) -> Predicate:
        return Test(self, operator, operand)


@dataclass(frozen=True, slots=True, eq=False)
class Column(Expression):
    """A column to be tested or computed with; made by `col`."""

    path: Path
    fold: Fold | None = None
    is_physical: bool = False

    @overload
    def any(self) -> "Column": ...
    @overload
    def any(self, predicate: Predicate | Expression) -> Predicate: ...
    def any(self, predicate: Predicate | Expression | None = None) -> "Column | Predicate":
        """Any element of a list or map: the predicate, or what is tested next, holds for one.

        >>> col("items").any((element("price") > 10) & (element("qty") > 2))
        col('items').any((element('price') > 10) & (element('qty') > 2))
        """
        if predicate is not None:
            return Elements(self, "any", as_predicate(predicate))
        return self._folded("any")

    @overload
    def all(self) -> "Column": ...
    @overload
    def all(self, predicate: Predicate | Expression) -> Predicate: ...
    def all(self, predicate: Predicate | Expression | None = None) -> "Column | Predicate":
        """All elements of a list or map: the predicate, or what is tested next, holds for each."""
        if predicate is not None:
            return Elements(self, "all", as_predicate(predicate))
        return self._folded("all")

    def get(self, key: Any) -> "Expression":
        """The value of a key of a map, or an element of a list, counted from 0; null if none."""
        return call("get", self, options=(key, 0))

    @property
    def physical(self) -> "Column":
        """The stored integer, bytes or float instead of what it stands for."""
        return replace(self, is_physical=True)

    def _folded(self, fold: Fold) -> "Column":
        if self.fold is not None:
            raise TypeError(f"{self!r} is folded already: call any() or all() once")
        return replace(self, fold=fold)

    def __repr__(self) -> str:
        fold = f".{self.fold}()" if self.fold else ""
        return f"col({spelled(self.path)!r}){'.physical' if self.is_physical else ''}{fold}"


@dataclass(frozen=True, slots=True, eq=False)
class Element(Expression):
    """The element that is tested by `any` or `all`, or a field of it; made by `element`."""

    path: tuple[str, ...] = ()

    def any(self, predicate: Predicate | Expression) -> Predicate:
        """Any element of a list or map in this one: `element` is then what that one holds.

        >>> col("orders").any(element("items").any(element("price") > 10))
        col('orders').any(element('items').any(element('price') > 10))
        """
        return Elements(self, "any", as_predicate(predicate))

    def all(self, predicate: Predicate | Expression) -> Predicate:
        """All elements of a list or map in this one."""
        return Elements(self, "all", as_predicate(predicate))

    def get(self, key: Any) -> "Expression":
        """The value of a key of a map in this one, or an element of a list; null if none."""
        return call("get", self, options=(key, 0))

    def __repr__(self) -> str:
        return f"element({'.'.join(self.path)!r})" if self.path else "element()"


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expression):
    """A function of expressions and values; `when` also takes predicates."""

    function: str
    operands: tuple[Any, ...]
    options: tuple[Any, ...] = ()
    """What is the same for all rows: digits, units, types."""
    depth: int = 1

    def __repr__(self) -> str:
        shown = [repr(operand) for operand in self.operands]
        match self.function:
            case infix if infix in _INFIX:
                return f"({f' {infix} '.join(shown)})"
            case "negate":
                return f"(-{shown[0]})"
            case "truth":
                return f"({shown[0]})"
            case "coalesce":
                return f"coalesce({', '.join(shown)})"
            case "when":
                pairs = zip(shown[:-1:2], shown[1:-1:2], strict=True)
                chain = ".".join(f"when({condition}).then({value})" for condition, value in pairs)
                return f"{chain}.otherwise({shown[-1]})"
        if self.function == "get" and self.options[1]:
            return f"{shown[0]}[{self.options[0]!r}]"
        options = [repr(str(o) if isinstance(o, pa.DataType) else o) for o in self.options[:1]]
        return f"{shown[0]}.{self.function}({', '.join(options)})"


@dataclass(frozen=True, slots=True, eq=False)
class Test(Predicate):
    """One expression against one operand, which may hold expressions."""

    column: Expression
    operator: Operator
    operand: Any = None

    def __repr__(self) -> str:
        match self.operator:
            case "in":
                return f"{self.column!r}.is_in({list(self.operand)!r})"
            case "between":
                low, high = self.operand
                return f"{self.column!r}.is_between({low!r}, {high!r})"
            case "like" | "ilike":
                pattern, escape = self.operand
                more = "" if escape is None else f", escape={escape!r}"
                return f"{self.column!r}.{self.operator}({pattern!r}{more})"
            case "starts with" | "ends with" | "contains" | "matches":
                return f"{self.column!r}.{self.operator.replace(' ', '_')}({self.operand!r})"
            case "null" | "not null" | "nan":
                return f"{self.column!r}.is_{self.operator.replace(' ', '_')}()"
            case _:
                return f"{self.column!r} {self.operator} {self.operand!r}"


@dataclass(frozen=True, slots=True, eq=False)
class Elements(Predicate):
    """Any or all elements of a list or map for which a predicate holds."""

    column: Column | Element
    fold: Fold
    predicate: Predicate

    def __repr__(self) -> str:
        return f"{self.column!r}.{self.fold}({self.predicate!r})"


@dataclass(frozen=True, slots=True)
class When:
    """The beginning of a choice: `when(p).then(x)`, then `.when(...)` again or `.otherwise(y)`."""

    chosen: tuple[Any, ...]

    def then(self, value: Any) -> "Then":
        """The value where the condition is true, and none before was."""
        return Then((*self.chosen, value))


@dataclass(frozen=True, slots=True)
class Then:
    """A choice that lacks its other cases."""

    chosen: tuple[Any, ...]

    def when(self, predicate: Predicate | Expression) -> When:
        """Another case, for rows for which none before was true."""
        return When((*self.chosen, as_predicate(predicate)))

    def otherwise(self, value: Any) -> Expression:
        """The value of all other rows, which may be None."""
        return call("when", *self.chosen, value)


def col(path: Path) -> Column:
    """A column by name or path, to be compared with values and columns, and computed with.

    >>> (col("fare") > 100) & col("city").is_in(["NYC", "LA"])
    (col('fare') > 100) & (col('city').is_in(['NYC', 'LA']))
    >>> (col("end") - col("start")) / 60 > col("limit")
    ((col('end') - col('start')) / 60) > col('limit')
    """
    exact = isinstance(path, tuple) and all(isinstance(step, str) for step in path)
    if not exact and not isinstance(path, str):
        raise TypeError(f"a column is named by a str or a tuple of them, not {path!r}")
    return Column(path)


def element(path: Path = ()) -> Element:
    """The element that `any` or `all` tests, or a field of it; a map's have `key` and `value`.

    >>> col("scores").all(element() >= 0)
    col('scores').all(element() >= 0)
    """
    return Element(tuple(path.split(".")) if isinstance(path, str) else tuple(path))


def coalesce(*values: Any) -> Expression:
    """The first of some values that is not null.

    >>> coalesce(col("tip"), 0) > 5
    coalesce(col('tip'), 0) > 5
    """
    if not values:
        raise TypeError("coalesce() takes at least one value")
    return call("coalesce", *values)


def when(predicate: Predicate | Expression) -> When:
    """A choice by conditions: the value of the first that is true.

    >>> when(col("a") > 0).then(col("a")).otherwise(col("b")) < 7
    when(col('a') > 0).then(col('a')).otherwise(col('b')) < 7
    """
    return When((as_predicate(predicate),))


def call(function: str, *operands: Any, options: tuple[Any, ...] = ()) -> Call:
    """A function of some operands, no deeper than Python recurses."""
    depth = 1
    for operand in operands:
        if isinstance(operand, Column) and operand.fold:
            raise TypeError(
                f"{operand!r} is many values: test them as they are, or test each element"
            )
        if isinstance(operand, Predicate) and function not in ("when", "truth"):
            raise TypeError(f"{operand!r} is a condition, not a value to compute with")
        if isinstance(operand, Call):
            depth = max(depth, operand.depth + 1)
    if depth > _DEEPEST:
        raise PredicateTypeError(f"an expression is nested more than {_DEEPEST} levels deep")
    return Call(function, operands, options, depth)


def as_predicate(given: Predicate | Expression) -> Predicate:
    """A predicate, or an expression of booleans as one."""
    if isinstance(given, Predicate):
        return given
    if not isinstance(given, Expression):
        raise TypeError(f"a predicate such as col('fare') > 100 is expected, not {given!r}")
    return Test(given, "==", True)


def is_bare(test: Test) -> bool:
    """Whether a test is a value that stands for itself, as booleans may."""
    return test.operator == "==" and test.operand is True


def columns_of(predicate: Predicate) -> dict[Path, None]:
    """The paths of all columns that a predicate tests, in order."""
    return {column.path: None for column in _columns(predicate)}


def expressions_in(test: Test) -> Iterator[Expression]:
    """The expressions that a test compares."""
    yield test.column
    if isinstance(test.operand, Expression):
        yield test.operand


def _columns(part: Any) -> Iterator[Column]:
    match part:
        case Column():
            yield part
        case Call(_, operands):
            for operand in operands:
                yield from _columns(operand)
        case Test():
            for expression in expressions_in(part):
                yield from _columns(expression)
        case And(parts) | Or(parts):
            for inner in parts:
                yield from _columns(inner)
        case Not(inner):
            yield from _columns(inner)
        case Elements(column, _, inner):
            yield from _columns(column)
            yield from _columns(inner)
