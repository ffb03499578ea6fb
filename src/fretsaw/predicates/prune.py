"""What indexes prove about a condition: NONE, SOME or ALL of a block or page match.

Only proofs count. Decisions are made for all blocks, or all pages of all blocks, at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from fretsaw.model.blocks import Bounds
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.condition import AnyCheck, Check, Computed, Condition, Every, Some
from fretsaw.predicates.value_set import NAN_KEY, Booleans, ValueSet


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """For each block or page: whether nothing there can match, and whether everything does."""

    none: Booleans
    all: Booleans

    @classmethod
    def unknown(cls, count: int) -> "Decisions":
        """Nothing is proven."""
        return cls(np.zeros(count, np.bool_), np.zeros(count, np.bool_))


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


def _decide_nulls(check: Check, bounds: Bounds) -> Decisions:
    if check.leaf.is_repeated:  # null and empty lists are counted too
        return Decisions.unknown(len(bounds))
    without = bounds.null_counts == 0
    # A struct need not be null where all values below it are.
    only = (bounds.null_counts == bounds.row_counts) & check.on_leaf
    return Decisions(without, only) if check.values == "null" else Decisions(only, without)


def decide_all(condition: Condition, of_check: Callable[[AnyCheck], Decisions]) -> Decisions:
    """What is proven about a condition, given what is proven about its checks."""
    match condition:
        case Check() | Computed():
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
