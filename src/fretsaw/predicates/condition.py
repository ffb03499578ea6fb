"""What a predicate is for one file: checks of leaves under AND and OR, without negations.

A check says for a row whether it is true; false and unknown need no telling apart any more, since
only true rows are returned.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, TypeAlias

import pyarrow as pa

from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.bound import ROW_NUMBER, Bound
from fretsaw.predicates.expression import Fold
from fretsaw.predicates.value_set import NOTHING, ValueSet

Values: TypeAlias = ValueSet | Literal["null", "not null", "anything"]
"""Values that are in a set, are null or are not, or are anything, null too."""

_OTHER_FOLD: dict[Fold | None, Fold | None] = {None: None, "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A column whose value is in a set, or is null or is not."""

    leaf: SchemaNode
    """The leaf to decode: the column itself, or one below it."""
    above: tuple[str, ...]
    """The kinds of nodes that the column lies in, from the top: "struct", "list" or "map"."""
    values: Values
    fold: Fold | None = None
    on_leaf: bool = True
    """Whether the leaf is the column itself."""
    text: str = ""
    """As the user wrote it."""

    def __invert__(self) -> "Check":
        values: Values
        match self.values:
            case "null":
                values = "not null"
            case "not null":
                values = "null"
            case "anything":
                values = NOTHING
            case some:
                values = ~some
        return replace(self, values=values, fold=_OTHER_FOLD[self.fold])

    @property
    def leaves(self) -> tuple[SchemaNode, ...]:
        """The leaves to decode."""
        return (self.leaf,)

    def _joins(self, fold: Fold) -> object:
        """Checks of which this is the same become one of their joint values."""
        if isinstance(self.values, ValueSet) and self.fold in (None, fold):
            return self.leaf.leaf_index, self.leaf.as_stored, self.fold
        return id(self)


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """A test of what is computed of some leaves; it knows itself what a null makes of it."""

    truth: Bound
    text: str
    """As the user wrote it."""
    inputs: tuple[SchemaNode, ...]
    """The leaves that it is computed of, each once; the numbers of rows may be among them."""
    sure: "Check | None" = None
    """A check of one leaf that is true only where this is."""

    @property
    def leaves(self) -> tuple[SchemaNode, ...]:
        """The leaves to decode."""
        return tuple(leaf for leaf in self.inputs if leaf.leaf_index != ROW_NUMBER)

    @property
    def only_leaf(self) -> SchemaNode | None:
        """The leaf whose values alone decide, if there is one: not those of what it lies in."""
        if len(self.inputs) > 1 or not self.leaves or self.leaves[0].is_repeated:
            return None
        nested = any(pa.types.is_nested(leaf.type) for leaf in self.truth.leaves())
        return None if nested else self.leaves[0]


@dataclass(frozen=True, slots=True)
class Every:
    """True where all parts are."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Some:
    """True where any part is."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True, eq=False)
class InRows:
    """True for these rows of a file or block, whatever they hold."""

    rows: RowSelection


AnyCheck: TypeAlias = Check | Computed
Condition: TypeAlias = AnyCheck | Every | Some | InRows | bool


def every(parts: Iterable[Condition]) -> Condition:
    """All of the parts, as simply as can be said."""
    return _combined(parts, Every)


def some(parts: Iterable[Condition]) -> Condition:
    """Any of the parts, as simply as can be said."""
    return _combined(parts, Some)


def leaves_of(condition: Condition) -> list[SchemaNode]:
    """The leaves of all checks of a condition, as often as they are checked."""
    return [leaf for check in checks_of(condition) for leaf in check.leaves]


def checks_of(condition: Condition) -> Iterator[AnyCheck]:
    """All checks of a condition."""
    match condition:
        case Check() | Computed():
            yield condition
        case Every(parts) | Some(parts):
            for part in parts:
                yield from checks_of(part)


def simplified(condition: Condition, known: Callable[[AnyCheck], bool | None]) -> Condition:
    """The condition without the checks whose answer is known."""
    match condition:
        case Check() | Computed():
            answer = known(condition)
            return condition if answer is None else answer
        case Every(parts):
            return every(simplified(part, known) for part in parts)
        case Some(parts):
            return some(simplified(part, known) for part in parts)
    return condition


def _combined(parts: Iterable[Condition], kind: type[Every] | type[Some]) -> Condition:
    neutral = kind is Every
    joining: dict[object, list[Condition]] = {}
    for part in parts:
        if part is not neutral and isinstance(part, bool):
            return part
        for inner in part.parts if isinstance(part, kind) else (part,):
            if isinstance(inner, Check):
                key = inner._joins("all" if neutral else "any")
                joining.setdefault(key, []).append(inner)
            elif not isinstance(inner, bool):
                joining[id(inner)] = [inner]
    joined = [_joined(same, neutral) for same in joining.values()]
    if len(joined) > 1:
        return kind(tuple(joined))
    return joined[0] if joined else neutral


def _joined(same: Sequence[Condition], both: bool) -> Condition:
    """Checks of one leaf as one check of their joint values."""
    first = same[0]
    sets = [check.values for check in same if isinstance(check, Check)]
    values = [one for one in sets if isinstance(one, ValueSet)]
    if len(values) < 2 or not isinstance(first, Check):
        return first
    while len(values) > 1:  # in pairs: there may be thousands
        values = [
            left & right if both else left | right
            for left, right in zip_longest(values[::2], values[1::2], fillvalue=values[-1])
        ]
    texts = dict.fromkeys(check.text for check in same if isinstance(check, Check))
    return replace(first, values=values[0], text=(" and " if both else " or ").join(texts))
