"""What users write to choose rows: `col("fare") > 100`, `col("end") < col("start") + hour`.

An expression is a column or a call of a function on expressions and values; testing it gives a
predicate. Neither knows of files: names, types and literals are settled when a predicate is
resolved against the schema of each file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, TypeAlias, overload

import pyarrow as pa

from fretsaw.errors import PredicateTypeError
from fretsaw.model.schema import Path, spelled
from fretsaw.predicates.logic import And, Not, Or, Predicate, has_no_truth

_DEEPEST = 150

Fold: TypeAlias = Literal["any", "all"]
Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]
TextTest: TypeAlias = Literal["starts with", "ends with", "contains", "like", "ilike", "matches"]
Operator: TypeAlias = Comparison | TextTest | Literal["in", "between", "null", "not null", "nan"]
UNITS = (
    *("year", "quarter", "month", "week", "day"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
"""What times are truncated to, the longest first."""
_INFIX = {"+", "-", "*", "/", "//", "%"}


class Expression:
    """A value of each row: a column, or what is computed of columns; made by `col`."""

    __slots__ = ()

    def __eq__(self, value: Any) -> Predicate:  # type: ignore[override]
        return self._compared("==", value)

    def __ne__(self, value: Any) -> Predicate:  # type: ignore[override]
        return self._compared("!=", value)

    def __lt__(self, value: Any) -> Predicate:
        return self._compared("<", value)

    def __le__(self, value: Any) -> Predicate:
        return self._compared("<=", value)

    def __gt__(self, value: Any) -> Predicate:
        return self._compared(">", value)

    def __ge__(self, value: Any) -> Predicate:
        return self._compared(">=", value)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> "Expression":
        return call("+", self, other)

    def __radd__(self, other: Any) -> "Expression":
        return call("+", other, self)

    def __sub__(self, other: Any) -> "Expression":
        return call("-", self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return call("-", other, self)

    def __mul__(self, other: Any) -> "Expression":
        return call("*", self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return call("*", other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return call("/", self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return call("/", other, self)

    def __floordiv__(self, other: Any) -> "Expression":
        return call("//", self, other)

    def __rfloordiv__(self, other: Any) -> "Expression":
        return call("//", other, self)

    def __mod__(self, other: Any) -> "Expression":
        return call("%", self, other)

    def __rmod__(self, other: Any) -> "Expression":
        return call("%", other, self)

    def __neg__(self) -> "Expression":
        return call("negate", self)

    def __and__(self, other: object) -> Predicate:
        return self._condition(other) & _condition(other)

    def __rand__(self, other: object) -> Predicate:
        return _condition(other, self) & self._condition(other)

    def __or__(self, other: object) -> Predicate:
        return self._condition(other) | _condition(other)

    def __ror__(self, other: object) -> Predicate:
        return _condition(other, self) | self._condition(other)

    def __invert__(self) -> Predicate:
        return ~as_predicate(self)

    def is_in(self, values: Iterable[Any]) -> Predicate:
        """One of these values; with None among them, as SQL's `IN`."""
        if isinstance(values, str | bytes | Expression) or not isinstance(values, Iterable):
            raise TypeError(f"is_in() takes a list of values, not {values!r}")
        listed = tuple(values.to_pylist() if hasattr(values, "to_pylist") else values)
        for value in listed:
            if value is not None:
                self._require_value(value)
        plain = tuple(value for value in listed if not isinstance(value, Expression))
        found: Predicate = Test(self, "in", plain)
        for other in listed:
            if isinstance(other, Expression):
                found |= self._compared("==", other)
        return found

    def is_between(self, low: Any, high: Any) -> Predicate:
        """At least `low` and at most `high`."""
        for value in (low, high):
            self._require_value(value)
        if isinstance(low, Expression) or isinstance(high, Expression):
            return self._compared(">=", low) & self._compared("<=", high)
        return Test(self, "between", (low, high))

    def is_null(self) -> Predicate:
        """Null: of a leaf, a struct, a list or a map."""
        return Test(self, "null")

    def is_not_null(self) -> Predicate:
        """Not null."""
        return Test(self, "not null")

    def is_nan(self) -> Predicate:
        """A floating-point number that is not a number."""
        return Test(self, "nan")

    def starts_with(self, prefix: str | bytes) -> Predicate:
        """A string or binary that begins with the prefix."""
        return self._text_test("starts with", prefix)

    def ends_with(self, suffix: str | bytes) -> Predicate:
        """A string or binary that ends with the suffix."""
        return self._text_test("ends with", suffix)

    def contains(self, part: str | bytes) -> Predicate:
        """A string or binary that has the part somewhere."""
        return self._text_test("contains", part)

    def like(self, pattern: str, escape: str | None = None) -> Predicate:
        """Text of SQL's pattern: `%` is any text, `_` any character; `escape` takes their meaning.

        >>> col("code").like("A!_%", escape="!")
        col('code').like('A!_%', escape='!')
        """
        return self._like("like", pattern, escape)

    def ilike(self, pattern: str, escape: str | None = None) -> Predicate:
        """As `like`, whatever the case of letters."""
        return self._like("ilike", pattern, escape)

    def matches(self, regex: str) -> Predicate:
        """Text in which a regular expression (RE2) is found anywhere."""
        if not isinstance(regex, str):
            raise TypeError(f"matches() takes a regular expression as str, not {regex!r}")
        return Test(self, "matches", regex)

    def cast(self, type: pa.DataType | str) -> "Expression":
        """The value as another type; one that does not fit is a `PredicateError`.

        >>> col("code").cast("int32") > 7
        col('code').cast('int32') > 7
        """
        kind = pa.type_for_alias(type) if isinstance(type, str) else type
        if not isinstance(kind, pa.DataType):
            raise TypeError(f"cast() takes an Arrow type or its name, not {type!r}")
        return Call("cast", (self,), (kind,))

    def abs(self) -> "Expression":
        """The value without its sign."""
        return call("abs", self)

    def round(self, n: int = 0) -> "Expression":
        """Rounded to so many decimal places, halves to the even neighbour."""
        return call("round", self, options=(_whole("round", n), "half_to_even"))

    def lower(self) -> "Expression":
        """Text in lower case."""
        return call("lower", self)

    def upper(self) -> "Expression":
        """Text in upper case."""
        return call("upper", self)

    def strip(self) -> "Expression":
        """Text without white space around it."""
        return call("strip", self)

    def length(self) -> "Expression":
        """Characters of a text, bytes of a binary, elements of a list or map."""
        return call("length", self)

    def year(self) -> "Expression":
        """The year of a date or timestamp, in its own zone as all parts of it."""
        return call("year", self)

    def month(self) -> "Expression":
        """The month, 1 to 12."""
        return call("month", self)

    def day(self) -> "Expression":
        """The day of the month, 1 to 31."""
        return call("day", self)

    def hour(self) -> "Expression":
        """The hour, 0 to 23."""
        return call("hour", self)

    def minute(self) -> "Expression":
        """The minute, 0 to 59."""
        return call("minute", self)

    def second(self) -> "Expression":
        """The second, 0 to 59."""
        return call("second", self)

    def microsecond(self) -> "Expression":
        """The microsecond, 0 to 999,999."""
        return call("microsecond", self)

    def weekday(self) -> "Expression":
        """The day of the week, from Monday, 1, to Sunday, 7."""
        return call("weekday", self)

    def date(self) -> "Expression":
        """The date of a timestamp."""
        return call("date", self)

    def truncate(self, unit: str) -> "Expression":
        """The beginning of the year, month, hour, ... in which a time lies."""
        if unit not in UNITS:
            raise ValueError(f"truncate() takes one of {', '.join(UNITS)}, not {unit!r}")
        return call("truncate", self, options=(unit,))

    def _like(self, operator: Operator, pattern: str, escape: str | None) -> Predicate:
        if not isinstance(pattern, str):
            raise TypeError(f"{operator}() takes a pattern as str, not {pattern!r}")
        if escape is not None and len(escape) != 1:
            raise ValueError(f"an escape is one character, not {escape!r}")
        if escape and _ends_open(pattern, escape):
            raise ValueError(f"the pattern {pattern!r} ends with its escape {escape!r}")
        return Test(self, operator, (pattern, escape))

    def _text_test(self, operator: TextTest, text: Any) -> Predicate:
        if not isinstance(text, str | bytes):
            name = operator.replace(" ", "_")
            raise TypeError(f"{name}() takes a str or bytes, not {text!r}")
        return Test(self, operator, text)

    def _compared(self, operator: Operator, value: Any) -> Predicate:
        self._require_value(value)
        return Test(self, operator, value)

    def _require_value(self, value: Any) -> None:
        if value is None:
            raise TypeError(f"nothing compares with None: use {self!r}.is_null() or .is_not_null()")
        if isinstance(value, Predicate):
            raise TypeError(f"{self!r} compares with a value, not with {value!r}")

    def _condition(self, other: object) -> Predicate:
        """This as a part of a condition, beside another."""
        if not isinstance(other, Expression | Predicate):
            raise TypeError(
                f"{self!r} is no condition beside {other!r}, and & and | bind more tightly than "
                "comparisons: write (col('a') > 1) & (col('b') < 2), each in parentheses"
            )
        return as_predicate(self)

    def __bool__(self) -> NoReturn:
        raise has_no_truth()


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

    column: Column
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
        if isinstance(operand, Predicate) and function != "when":
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
            yield column
            yield from _columns(inner)


def _condition(other: object, beside: Expression | None = None) -> Predicate:
    if beside is not None:
        beside._condition(other)
    assert isinstance(other, Predicate | Expression)
    return as_predicate(other)


def _whole(function: str, n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or abs(n) > 100:
        raise TypeError(f"{function}() takes a number of decimal places, not {n!r}")
    return n


def _ends_open(pattern: str, escape: str) -> bool:
    """Whether the pattern ends with an escape that escapes nothing."""
    return (len(pattern) - len(pattern.rstrip(escape))) % 2 == 1
