"""What indexes prove about a condition: NONE, SOME or ALL of a block or page match.

Only proofs count. Decisions are made for all blocks, or all pages of all blocks, at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from fretsaw.model.blocks import Bounds
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.bound import Bound
from fretsaw.predicates.condition import AnyCheck, Check, Computed, Condition, Every, InRows, Some
from fretsaw.predicates.operations import Comparison
from fretsaw.predicates.value_set import NAN_KEY, Booleans, ValueSet

_OPPOSITE: dict[Comparison, Comparison]
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """For each block or page: whether nothing there can match, and whether everything does."""

    none: Booleans
    all: Booleans

    @classmethod
    def unknown(cls, count: int) -> "Decisions":
        """Nothing is proven."""
        return cls(np.zeros(count, np.bool_), np.zeros(count, np.bool_))

    def between(self, begin: int, end: int) -> "Decisions":
        """Those for some of the blocks or pages."""
        return Decisions(self.none[begin:end], self.all[begin:end])


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """The rows of a block that may match, and those of them that surely do."""

    possible: RowSelection
    certain: RowSelection


def decide(check: Check, bounds: Bounds) -> Decisions:
    """What the bounds of a leaf prove about a check of it."""
    if not isinstance(check.values, ValueSet):
        return _decide_nulls(check, bounds)
    if check.fold == "all":  # true for empty lists, of which bounds know nothing
        return Decisions.unknown(len(bounds))
    if not bounds.known.any():
        return Decisions(bounds.all_null, np.zeros(len(bounds), np.bool_))
    outside, inside = check.values.decide(bounds.lower, bounds.upper)
    if not bounds.nan_free.all():
        if NAN_KEY in check.values:
            outside &= bounds.nan_free
        else:
            inside &= bounds.nan_free
    none = bounds.all_null | (bounds.known & outside)
    if check.fold == "any":
        return Decisions(none, np.zeros(len(bounds), np.bool_))
    sure = bounds.known & bounds.exact & (bounds.null_counts == 0)
    return Decisions(none, sure & inside)


def pair_of(check: Computed) -> tuple[SchemaNode, SchemaNode, Comparison] | None:
    """The two leaves that a test compares, if their bounds compare as their values do."""
    negated = check.truth.function == "not"
    test = check.truth.operands[0] if negated else check.truth
    sides = [_as_stored(side) for side in test.operands]
    if test.function != "compare" or any(side.function != "leaf" for side in sides):
        return None
    left, right = sides
    leaves = [side.options[0] for side in sides]
    if any(leaf.is_repeated or leaf.as_stored or leaf.leaf_index < 0 for leaf in leaves):
        return None
    kinds = {_key_kind(side.type) for side in sides}
    operator: Comparison = test.options[0]
    if len(kinds) > 1 or None in kinds:
        return None
    return left.options[0], right.options[0], _OPPOSITE[operator] if negated else operator


def _as_stored(value: Bound) -> Bound:
    """A value as a file stores it, where only its type is another one: the order is the same."""
    return value.operands[0] if value.function == "as" else value


def _key_kind(kind: pa.DataType) -> object:
    """Types with the same have keys that compare as their values do; None: no bounds are asked."""
    tests = pa.types
    if tests.is_integer(kind):
        return "integer"
    if tests.is_floating(kind):
        return "float"
    if tests.is_decimal(kind):
        return "decimal", kind.scale
    if tests.is_date(kind):
        return "date"
    if tests.is_timestamp(kind):
        return "timestamp", kind.unit, kind.tz is None
    return "text" if tests.is_string(kind) or tests.is_large_string(kind) else None


def decide_pair(operator: Comparison, left: Bounds, right: Bounds) -> Decisions:
    """What the bounds of two leaves prove about a comparison of theirs."""
    places = np.flatnonzero(left.known & right.known & left.nan_free & right.nan_free)
    keys = [(side.lower[places], side.upper[places]) for side in (left, right)]
    if keys[0][0].dtype != keys[1][0].dtype:  # NumPy would compare some as floats
        keys = [(low.astype(object), high.astype(object)) for low, high in keys]
    (left_low, left_high), (right_low, right_high) = keys
    below, never_below = left_high < right_low, left_low >= right_high
    above, never_above = left_low > right_high, left_high <= right_low
    exact = (left.exact & right.exact)[places]
    same = exact & (left_low == left_high) & (right_low == right_high) & (left_low == right_low)
    outside, inside = {
        "<": (never_below, below),
        "<=": (above, never_above),
        ">": (never_above, above),
        ">=": (below, never_below),
        "==": (below | above, same),
        "!=": (same, below | above),
    }[operator]
    none = left.all_null | right.all_null
    none[places] |= outside.astype(np.bool_)
    sure = np.zeros(len(left), np.bool_)
    sure[places] = exact & inside.astype(np.bool_)
    return Decisions(none, sure & (left.null_counts == 0) & (right.null_counts == 0))


def _decide_nulls(check: Check, bounds: Bounds) -> Decisions:
    if check.leaf.is_repeated:  # null and empty lists are counted too
        return Decisions.unknown(len(bounds))
    without = bounds.null_counts == 0
    # A struct need not be null where all values below it are.
    only = (bounds.null_counts == bounds.row_counts) & check.on_leaf
    return Decisions(without, only) if check.values == "null" else Decisions(only, without)


def decide_all(
    condition: Condition, of_check: Callable[[AnyCheck | InRows], Decisions]
) -> Decisions:
    """What is proven about a condition, given what is proven about its checks."""
    match condition:
        case Check() | Computed() | InRows():
            return of_check(condition)
        case Every(parts):
            decided = [decide_all(part, of_check) for part in parts]
            return Decisions(
                np.any([part.none for part in decided], axis=0),
                np.all([part.all for part in decided], axis=0),
            )
        case Some(parts):
            decided = [decide_all(part, of_check) for part in parts]
            return Decisions(
                np.all([part.none for part in decided], axis=0),
                np.any([part.all for part in decided], axis=0),
            )
    raise TypeError(f"not a condition with checks: {condition!r}")


def prove(condition: Condition, of_check: Callable[[AnyCheck], Proof]) -> Proof:
    """The rows of a block that may match a condition, given those of its checks."""
    match condition:
        case Check() | Computed():
            return of_check(condition)
        case InRows(rows):
            return Proof(rows, rows)
        case Every(parts):
            join = RowSelection.intersection
        case Some(parts):
            join = RowSelection.union
        case _:
            raise TypeError(f"not a condition with checks: {condition!r}")
    proofs = [prove(part, of_check) for part in parts]
    return Proof(
        reduce(join, [proof.possible for proof in proofs]),
        reduce(join, [proof.certain for proof in proofs]),
    )
