"""What users write to choose rows: `col("fare") > 100`, combined with `&`, `|` and `~`.

A predicate is a tree of tests of single columns. It knows nothing of files: names, types and
literals are settled when it is resolved against the schema of each file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, TypeAlias

from fretsaw.errors import PredicateTypeError
from fretsaw.model.schema import Path, spelled

_DEEPEST = 100

Fold: TypeAlias = Literal["any", "all"]
Operator: TypeAlias = Literal[
    "==", "!=", "<", "<=", ">", ">=", "in", "between", "null", "not null", "nan", "starts with"
]


class Predicate:
    """A condition on rows; `&`, `|` and `~` combine them."""

    __slots__ = ()

    def __and__(self, other: "Predicate") -> "Predicate":
        if not isinstance(other, Predicate):
            return NotImplemented
        return And((*_parts(self, And), *_parts(other, And)), _deeper(self, other, kind=And))

    def __or__(self, other: "Predicate") -> "Predicate":
        if not isinstance(other, Predicate):
            return NotImplemented
        return Or((*_parts(self, Or), *_parts(other, Or)), _deeper(self, other, kind=Or))

    def __invert__(self) -> "Predicate":
        return self.part if isinstance(self, Not) else Not(self, _deeper(self, kind=Not))

    def __bool__(self) -> NoReturn:
        raise _has_no_truth()


@dataclass(frozen=True, slots=True, eq=False)
class Test(Predicate):
    """One column against one operand."""

    column: "Column"
    operator: Operator
    operand: Any = None

    def __repr__(self) -> str:
        match self.operator:
            case "in":
                return f"{self.column!r}.is_in({list(self.operand)!r})"
            case "between":
                low, high = self.operand
                return f"{self.column!r}.is_between({low!r}, {high!r})"
            case "starts with":
                return f"{self.column!r}.starts_with({self.operand!r})"
            case "null" | "not null" | "nan":
                return f"{self.column!r}.is_{self.operator.replace(' ', '_')}()"
            case _:
                return f"{self.column!r} {self.operator} {self.operand!r}"


@dataclass(frozen=True, slots=True, eq=False)
class And(Predicate):
    """Rows that match all parts."""

    parts: tuple[Predicate, ...]
    depth: int = 1

    def __repr__(self) -> str:
        return " & ".join(f"({part!r})" for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Or(Predicate):
    """Rows that match any part."""

    parts: tuple[Predicate, ...]
    depth: int = 1

    def __repr__(self) -> str:
        return " | ".join(f"({part!r})" for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Not(Predicate):
    """Rows for which the part is false; where it is unknown, so is this."""

    part: Predicate
    depth: int = 1

    def __repr__(self) -> str:
        return f"~({self.part!r})"


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column to be compared with values; made by `col`."""

    path: Path
    fold: Fold | None = None
    is_physical: bool = False

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

    def __and__(self, other: object) -> NoReturn:
        raise TypeError(
            f"{self!r} is no condition by itself, and & and | bind more tightly than comparisons: "
            "write (col('a') > 1) & (col('b') < 2), each comparison in parentheses"
        )

    __rand__ = __or__ = __ror__ = __and__

    def is_in(self, values: Iterable[Any]) -> Predicate:
        """One of these values; with None among them, as SQL's `IN`."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise TypeError(f"is_in() takes a list of values, not {values!r}")
        listed = tuple(values.to_pylist() if hasattr(values, "to_pylist") else values)
        for value in listed:
            if value is not None:
                self._require_value(value)
        return Test(self, "in", listed)

    def is_between(self, low: Any, high: Any) -> Predicate:
        """At least `low` and at most `high`."""
        for value in (low, high):
            self._require_value(value)
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
        if not isinstance(prefix, str | bytes):
            raise TypeError(f"starts_with() takes a str or bytes, not {prefix!r}")
        return Test(self, "starts with", prefix)

    def any(self) -> "Column":
        """Any element of a list or map: what is tested next holds for at least one."""
        return self._folded("any")

    def all(self) -> "Column":
        """All elements of a list or map: what is tested next holds for each of them."""
        return self._folded("all")

    @property
    def physical(self) -> "Column":
        """The stored integer, bytes or float instead of what it stands for."""
        return replace(self, is_physical=True)

    def _folded(self, fold: Fold) -> "Column":
        if self.fold is not None:
            raise TypeError(f"{self!r} is folded already: call any() or all() once")
        return replace(self, fold=fold)

    def _compared(self, operator: Operator, value: Any) -> Predicate:
        self._require_value(value)
        return Test(self, operator, value)

    def _require_value(self, value: Any) -> None:
        if value is None:
            raise TypeError(f"nothing compares with None: use {self!r}.is_null() or .is_not_null()")
        if isinstance(value, Column | Predicate):
            raise TypeError(f"{self!r} compares with a value, not with {value!r}")

    def __bool__(self) -> NoReturn:
        raise _has_no_truth()

    def __repr__(self) -> str:
        fold = f".{self.fold}()" if self.fold else ""
        return f"col({spelled(self.path)!r}){'.physical' if self.is_physical else ''}{fold}"


def col(path: Path) -> Column:
    """A column by name or path, to be compared with values.

    >>> (col("fare") > 100) & col("city").is_in(["NYC", "LA"])
    (col('fare') > 100) & (col('city').is_in(['NYC', 'LA']))
    """
    exact = isinstance(path, tuple) and all(isinstance(step, str) for step in path)
    if not exact and not isinstance(path, str):
        raise TypeError(f"a column is named by a str or a tuple of them, not {path!r}")
    return Column(path)


def columns_of(predicate: Predicate) -> dict[Path, None]:
    """The paths of all columns that a predicate tests, in order."""
    match predicate:
        case Test(column):
            return {column.path: None}
        case And(parts) | Or(parts):
            return {path: None for part in parts for path in columns_of(part)}
        case Not(part):
            return columns_of(part)
    raise TypeError(f"not a predicate: {predicate!r}")


def _parts(predicate: Predicate, kind: type[And] | type[Or]) -> tuple[Predicate, ...]:
    """Those of a chain: however it was put together, it is one list."""
    return predicate.parts if isinstance(predicate, kind) else (predicate,)


def _deeper(*predicates: Predicate, kind: type[Predicate]) -> int:
    """How deep a combination of some is, which must not be deeper than Python recurses."""
    depth = 1
    for part in predicates:
        if isinstance(part, And | Or | Not):
            depth = max(depth, part.depth + (not isinstance(part, kind)))
    if depth > _DEEPEST:
        raise PredicateTypeError(
            f"a predicate is nested more than {_DEEPEST} levels deep: say the same with fewer "
            "changes between & and |, or call filter() several times"
        )
    return depth


def _has_no_truth() -> TypeError:
    return TypeError(
        "a predicate is neither true nor false by itself: combine predicates with & | ~ "
        "(in parentheses) instead of and/or/not, and chained comparisons with is_between()"
    )
