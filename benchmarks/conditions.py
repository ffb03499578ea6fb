"""Conditions that rows must match, said once for all contestants.

In: the columns, signs and values of a condition. Out: an expression in the terms of a contestant,
which has a `Dialect`: what its columns, its literals and its functions are. Signs are Python's
operators in all of them; those whose conditions are text have `Sql` for it.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from typing import Any

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    ">=": operator.ge,
}


class Dialect(ABC):
    """How a contestant says things."""

    @abstractmethod
    def column(self, name: str) -> Any:
        """The column of this name."""

    def literal(self, value: Any) -> Any:
        """A Python value."""
        return value

    @abstractmethod
    def contains(self, text: Any, part: str) -> Any:
        """Whether `part` is anywhere in a text."""

    @abstractmethod
    def lower(self, text: Any) -> Any:
        """A text in lower case."""


class Tested(ABC):
    """What must be read to test a condition: which columns, and where bounds leave it open."""

    by_dictionary = False
    """Whether dictionaries that hold all values rule out every row, in the data it is for."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that are tested."""

    def leaves_open(
        self, least: Any, most: Any, has_nulls: bool, stored: Callable[[Any], Any]
    ) -> bool:
        """Whether values between these bounds, as they are `stored`, may and may not match."""
        return True

    def only_value(self) -> Any:
        """The one value that matches, if this is a test of equality; else None."""
        return None


class Condition(Tested):
    """What a contestant can be asked to filter by."""

    @abstractmethod
    def of(self, dialect: Dialect) -> Any:
        """The condition in the terms of a contestant."""


@dataclass(frozen=True)
class Where(Condition):
    """A condition on one column: all tests hold, each a sign of `SIGNS` and a value."""

    column: str
    tests: tuple[tuple[str, Any], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def of(self, dialect: Dialect) -> Any:
        column = dialect.column(self.column)
        parts = [SIGNS[sign](column, dialect.literal(value)) for sign, value in self.tests]
        return reduce(operator.and_, parts)

    def leaves_open(
        self, least: Any, most: Any, has_nulls: bool, stored: Callable[[Any], Any]
    ) -> bool:
        matches = [_match(sign, stored(value), least, most) for sign, value in self.tests]
        return not (any(match is False for match in matches) or (all(matches) and not has_nulls))

    def only_value(self) -> Any:
        match self.tests:
            case (("==", value),):
                return value
        return None


@dataclass(frozen=True)
class Expression(Condition):
    """A condition of any kind, of which bounds prove nothing in the data that it is for."""

    tested: tuple[str, ...]
    say: Callable[[Dialect], Any]
    by_dictionary: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return self.tested

    def of(self, dialect: Dialect) -> Any:
        return self.say(dialect)


@dataclass(frozen=True)
class Listed(Tested):
    """One of so many values of a column that some are between the bounds of every page."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


def _match(sign: str, value: Any, least: Any, most: Any) -> bool | None:
    """Whether all (True), none (False) or some (None) of the values between bounds match."""
    if sign == "==" and least <= value <= most and least < most:
        return None
    ends = {bool(SIGNS[sign](bound, value)) for bound in (least, most)}
    return ends.pop() if len(ends) == 1 else None


@dataclass(frozen=True, eq=False, slots=True)
class Sql:
    """A piece of SQL, which operators make longer."""

    text: str

    def __and__(self, other: "Sql") -> "Sql":
        return self._with("AND", other)

    def __truediv__(self, other: "Sql") -> "Sql":
        return self._with("/", other)

    def __lt__(self, other: "Sql") -> "Sql":
        return self._with("<", other)

    def __gt__(self, other: "Sql") -> "Sql":
        return self._with(">", other)

    def __ge__(self, other: "Sql") -> "Sql":
        return self._with(">=", other)

    def __eq__(self, other: Any) -> Any:
        return self._with("=", other)

    def __hash__(self) -> int:
        return hash(self.text)

    def _with(self, sign: str, other: "Sql") -> "Sql":
        return Sql(f"({self.text} {sign} {other.text})")


@dataclass(frozen=True, slots=True)
class SqlDialect(Dialect):
    """SQL, as far as engines agree on it."""

    quote: str = '"'
    timestamp: str = "TIMESTAMP"

    def column(self, name: str) -> Sql:
        return Sql(f"{self.quote}{name}{self.quote}")

    def literal(self, value: Any) -> Sql:
        match value:
            case datetime():
                return Sql(f"{self.timestamp} '{value}'")
            case date():
                return Sql(f"DATE '{value}'")
            case str():
                return Sql("'" + value.replace("'", "''") + "'")
            case float():
                return Sql(f"{value:.17e}")  # an exponent makes it a double everywhere
            case _:
                return Sql(str(value))

    def contains(self, text: Sql, part: str) -> Sql:
        return Sql(f"contains({text.text}, {self.literal(part).text})")

    def lower(self, text: Sql) -> Sql:
        return Sql(f"lower({text.text})")
