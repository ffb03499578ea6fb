"""What can be written of a value: operators, tests and functions, `col("fare").round(1) > 100`.

Each makes a node of the tree that `expression` has: a call of a function, or a test.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import pyarrow as pa

from fretsaw.predicates.logic import Predicate, has_no_truth
from fretsaw.predicates.text import Text
from fretsaw.predicates.type_names import type_named

if TYPE_CHECKING:
    from fretsaw.predicates.expression import Expression

Comparison: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]
TextTest: TypeAlias = Literal["starts with", "ends with", "contains", "like", "ilike", "matches"]
Operator: TypeAlias = Comparison | TextTest | Literal["in", "between", "null", "not null", "nan"]
UNITS = (
    *("year", "quarter", "month", "week", "day"),
    *("hour", "minute", "second", "millisecond", "microsecond"),
)
"""What times are truncated to, the longest first."""
_PLAIN = {int, float, str, bytes, bool, Text, Decimal, type(None)}


class Operations:
    """What can be written of a value: operators, tests and functions."""

    __slots__ = ()

    def _call(self, function: str, *operands: Any, options: tuple[Any, ...] = ()) -> "Expression":
        """A function of some operands."""
        raise NotImplementedError

    def _test(self, operator: Operator, operand: Any = None) -> Predicate:
        """A test of this."""
        raise NotImplementedError

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
        return self._call("+", self, other)

    def __radd__(self, other: Any) -> "Expression":
        return self._call("+", other, self)

    def __sub__(self, other: Any) -> "Expression":
        return self._call("-", self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return self._call("-", other, self)

    def __mul__(self, other: Any) -> "Expression":
        return self._call("*", self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return self._call("*", other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return self._call("/", self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return self._call("/", other, self)

    def __floordiv__(self, other: Any) -> "Expression":
        return self._call("//", self, other)

    def __rfloordiv__(self, other: Any) -> "Expression":
        return self._call("//", other, self)

    def __mod__(self, other: Any) -> "Expression":
        return self._call("%", self, other)

    def __rmod__(self, other: Any) -> "Expression":
        return self._call("%", other, self)

    def __neg__(self) -> "Expression":
        return self._call("negate", self)

    def __abs__(self) -> "Expression":
        return self.abs()

    def __round__(self, n: int = 0) -> "Expression":
        return self.round(n)

    def __and__(self, other: object) -> Predicate:
        own, others = self._conditions(other)
        return own & others

    def __rand__(self, other: object) -> Predicate:
        own, others = self._conditions(other)
        return others & own

    def __or__(self, other: object) -> Predicate:
        own, others = self._conditions(other)
        return own | others

    def __ror__(self, other: object) -> Predicate:
        own, others = self._conditions(other)
        return others | own

    def __invert__(self) -> Predicate:
        return ~self._test("==", True)

    def is_in(self, values: Iterable[Any]) -> Predicate:
        """One of these values; with None among them, as SQL's `IN`."""
        if isinstance(values, str | bytes | Operations) or not isinstance(values, Iterable):
            raise TypeError(f"is_in() takes a list of values, not {values!r}")
        listed = tuple(values.to_pylist() if hasattr(values, "to_pylist") else values)
        if {*map(type, listed)} <= _PLAIN:  # there may be a million of them
            return self._test("in", listed)
        for value in listed:
            if value is not None:
                self._require_value(value)
        plain = tuple(value for value in listed if not isinstance(value, Operations))
        found = self._test("in", plain)
        for other in listed:
            if isinstance(other, Operations):
                found |= self._compared("==", other)
        return found

    def is_between(self, low: Any, high: Any) -> Predicate:
        """At least `low` and at most `high`."""
        for value in (low, high):
            self._require_value(value)
        if isinstance(low, Operations) or isinstance(high, Operations):
            return self._compared(">=", low) & self._compared("<=", high)
        return self._test("between", (low, high))

    def is_null(self) -> Predicate:
        """Null: of a leaf, a struct, a list or a map."""
        return self._test("null")

    def is_not_null(self) -> Predicate:
        """Not null."""
        return self._test("not null")

    def is_nan(self) -> Predicate:
        """A floating-point number that is not a number."""
        return self._test("nan")

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

        >>> from fretsaw import col
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
        return self._test("matches", regex)

    def cast(self, type: pa.DataType | str) -> "Expression":
        """The value as another type; one that does not fit is a `PredicateError`.

        >>> from fretsaw import col
        >>> col("code").cast("int32") > 7
        col('code').cast('int32') > 7
        """
        kind = type_named(type) if isinstance(type, str) else type
        if not isinstance(kind, pa.DataType):
            raise TypeError(f"cast() takes an Arrow type or its name, not {type!r}")
        return self._call("cast", self, options=(kind,))

    def abs(self) -> "Expression":
        """The value without its sign."""
        return self._call("abs", self)

    def round(self, n: int = 0) -> "Expression":
        """Rounded to so many decimal places, halves to the even neighbour."""
        return self._call("round", self, options=(_whole("round", n), "half_to_even"))

    def lower(self) -> "Expression":
        """Text in lower case."""
        return self._call("lower", self)

    def upper(self) -> "Expression":
        """Text in upper case."""
        return self._call("upper", self)

    def strip(self) -> "Expression":
        """Text without white space around it."""
        return self._call("strip", self)

    def length(self) -> "Expression":
        """Characters of a text, bytes of a binary, elements of a list or map."""
        return self._call("length", self)

    def year(self) -> "Expression":
        """The year of a date or timestamp, in its own zone as all parts of it."""
        return self._call("year", self)

    def month(self) -> "Expression":
        """The month, 1 to 12."""
        return self._call("month", self)

    def day(self) -> "Expression":
        """The day of the month, 1 to 31."""
        return self._call("day", self)

    def hour(self) -> "Expression":
        """The hour, 0 to 23."""
        return self._call("hour", self)

    def minute(self) -> "Expression":
        """The minute, 0 to 59."""
        return self._call("minute", self)

    def second(self) -> "Expression":
        """The second, 0 to 59."""
        return self._call("second", self)

    def microsecond(self) -> "Expression":
        """The microsecond, 0 to 999,999."""
        return self._call("microsecond", self)

    def weekday(self) -> "Expression":
        """The day of the week, from Monday, 1, to Sunday, 7."""
        return self._call("weekday", self)

    def date(self) -> "Expression":
        """The date of a timestamp."""
        return self._call("date", self)

    def truncate(self, unit: str) -> "Expression":
        """The beginning of the year, month, hour, ... in which a time lies."""
        if unit not in UNITS:
            raise ValueError(f"truncate() takes one of {', '.join(UNITS)}, not {unit!r}")
        return self._call("truncate", self, options=(unit,))

    def _like(self, operator: Operator, pattern: str, escape: str | None) -> Predicate:
        if not isinstance(pattern, str):
            raise TypeError(f"{operator}() takes a pattern as str, not {pattern!r}")
        if escape is not None and len(escape) != 1:
            raise ValueError(f"an escape is one character, not {escape!r}")
        if escape and _ends_open(pattern, escape):
            raise ValueError(f"the pattern {pattern!r} ends with its escape {escape!r}")
        return self._test(operator, (pattern, escape))

    def _text_test(self, operator: TextTest, text: Any) -> Predicate:
        if not isinstance(text, str | bytes):
            name = operator.replace(" ", "_")
            hint = f"; is it an element of a list? {self!r}.any() == {text!r}"
            raise TypeError(f"{name}() takes a str or bytes, not {text!r}{hint}")
        return self._test(operator, text)

    def _compared(self, operator: Operator, value: Any) -> Predicate:
        self._require_value(value)
        return self._test(operator, value)

    def _require_value(self, value: Any) -> None:
        if value is None:
            raise TypeError(f"nothing compares with None: use {self!r}.is_null() or .is_not_null()")
        if isinstance(value, Predicate):
            raise TypeError(f"{self!r} compares with a value, not with {value!r}")

    def _conditions(self, other: object) -> tuple[Predicate, Predicate]:
        """This and another as parts of a condition."""
        if not isinstance(other, Operations | Predicate):
            raise TypeError(
                f"{self!r} is no condition beside {other!r}, and & and | bind more tightly than "
                "comparisons: write (col('a') > 1) & (col('b') < 2), each in parentheses"
            )
        others = other if isinstance(other, Predicate) else other._test("==", True)
        return self._test("==", True), others

    def __bool__(self) -> NoReturn:
        raise has_no_truth()


def _whole(function: str, n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or abs(n) > 100:
        problem = f"takes a number of decimal places from -100 to 100, not {n!r}"
        raise TypeError(f"{function}() {problem}")
    return n


def _ends_open(pattern: str, escape: str) -> bool:
    """Whether the pattern ends with an escape that escapes nothing."""
    return (len(pattern) - len(pattern.rstrip(escape))) % 2 == 1
