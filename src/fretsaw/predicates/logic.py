"""Conditions on rows and how they combine: `&`, `|` and `~` of predicates.

A predicate is a tree; it knows nothing of files. What it tests is in `expression`.
"""

from dataclasses import dataclass
from typing import Any, NoReturn

from fretsaw.errors import PredicateTypeError

_DEEPEST = 100


class Predicate:
    """A condition on rows; `&`, `|` and `~` combine them."""

    __slots__ = ()

    def __and__(self, other: object) -> "Predicate":
        if not isinstance(other, Predicate):
            return _not_implemented(self, other)  # type: ignore[no-any-return]
        return And((*_parts(self, And), *_parts(other, And)), _deeper(self, other, kind=And))

    def __or__(self, other: object) -> "Predicate":
        if not isinstance(other, Predicate):
            return _not_implemented(self, other)  # type: ignore[no-any-return]
        return Or((*_parts(self, Or), *_parts(other, Or)), _deeper(self, other, kind=Or))

    def __invert__(self) -> "Predicate":
        return self.part if isinstance(self, Not) else Not(self, _deeper(self, kind=Not))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Predicate):
            raise _has_no_value(self, other)
        return self is other

    def __lt__(self, other: object) -> NoReturn:
        raise _has_no_value(self, other)

    __le__ = __gt__ = __ge__ = __lt__
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise has_no_truth()


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


def has_no_truth() -> TypeError:
    """The error for who asks whether a predicate is true."""
    return TypeError(
        "a predicate is neither true nor false by itself: combine predicates with & | ~ "
        "(in parentheses) instead of and/or/not, and chained comparisons with is_between()"
    )


def _not_implemented(predicate: Predicate, other: object) -> Any:
    """What `&` and `|` leave to the other side, unless it is a plain value."""
    if other is None or isinstance(other, bool | int | float | str):
        raise TypeError(
            f"{predicate!r} combines with other predicates, not with {other!r}; a condition as "
            "text goes into filter() by itself"
        )
    return NotImplemented


def _has_no_value(predicate: Predicate, other: object) -> TypeError:
    part = predicate.parts[-1] if isinstance(predicate, And | Or) else predicate
    return TypeError(
        f"{part!r} is no condition to compare with {other!r}: & and | bind more tightly than "
        "comparisons: write (col('a') > 1) & (col('b') < 2), each in parentheses"
    )


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
