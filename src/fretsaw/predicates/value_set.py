"""Sets of values of an ordered type: what a test of a column comes down to.

Every comparison is a set of keys, and a set is the places where it begins and ends. Keys are
Python ints (numbers, dates, times, floats by their place in the total order) or bytes (strings),
so that one algebra serves all types, in pruning as in evaluation.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Key: TypeAlias = Any
"""An int or bytes, never both in one set."""
Edges: TypeAlias = tuple[Key | None, Key | None]
"""The first key of a range and the first behind it; None where there is no such end."""
Booleans: TypeAlias = npt.NDArray[np.bool_]

NAN_KEY: int = struct.unpack("<q", struct.pack("<d", float("inf")))[0] + 1
"""All NaNs are one value, above positive infinity."""


def float_key(value: float) -> int:
    """The place of a float in the total order: -0.0 below +0.0, NaN above all.

    >>> float_key(-0.0), float_key(0.0)
    (-1, 0)
    """
    if value != value:
        return NAN_KEY
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF


def float_at(key: int) -> float:
    """The float at a place of the total order.

    >>> float_at(float_key(1.5))
    1.5
    """
    bits = key if key >= 0 else key ^ 0x7FFF_FFFF_FFFF_FFFF
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value


def float_keys(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The places of many floats."""
    bits = values.astype(np.float64).view(np.int64)
    keys = np.where(bits >= 0, bits, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF))
    return np.where(np.isnan(values), np.int64(NAN_KEY), keys)


def successor(key: Key) -> Key:
    """The next key: nothing lies between."""
    return key + b"\0" if isinstance(key, bytes) else key + 1


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with a prefix, if there is one.

    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"\\xff")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Keys between cuts: each cut is the first key on its other side.

    >>> small = ValueSet.between(None, 10)
    >>> 9 in small, 10 in small, 10 in ~small
    (True, False, True)
    """

    cuts: tuple[Key, ...]
    begins_inside: bool = False
    """Whether the keys before the first cut are in the set."""

    @classmethod
    def between(cls, first: Key | None, behind: Key | None) -> "ValueSet":
        """The keys of one range; None where it has no end."""
        if first is not None and behind is not None and first >= behind:
            return NOTHING
        return cls(tuple(cut for cut in (first, behind) if cut is not None), first is None)

    @classmethod
    def among(cls, ranges: Iterable[Edges]) -> "ValueSet":
        """The keys of many ranges that have both ends."""
        cuts: list[Key] = []
        for first, behind in sorted(edges for edges in ranges if edges[0] != edges[1]):
            if cuts and first <= cuts[-1]:
                cuts[-1] = max(cuts[-1], behind)
            else:
                cuts += (first, behind)
        return cls(tuple(cuts))

    @classmethod
    def of_points(cls, keys: Iterable[Key]) -> "ValueSet":
        """Some single keys."""
        firsts = sorted(keys)
        if not firsts:
            return NOTHING
        step: Key = b"\0" if isinstance(firsts[0], bytes) else 1
        behinds = [key + step for key in firsts]
        # What ends where the next begins is one range.
        cuts = [firsts[0]]
        for behind, first in zip(behinds, firsts[1:], strict=False):
            if behind != first:
                cuts += (behind, first)
        return cls((*cuts, behinds[-1]))

    def __invert__(self) -> "ValueSet":
        return ValueSet(self.cuts, not self.begins_inside)

    def __and__(self, other: "ValueSet") -> "ValueSet":
        return self._combined(other, lambda here, there: here and there)

    def __or__(self, other: "ValueSet") -> "ValueSet":
        return self._combined(other, lambda here, there: here or there)

    def _combined(self, other: "ValueSet", both: Callable[[bool, bool], bool]) -> "ValueSet":
        begins = inside = both(self.begins_inside, other.begins_inside)
        cuts = []
        for cut in sorted({*self.cuts, *other.cuts}):
            if both(cut in self, cut in other) != inside:
                cuts.append(cut)
                inside = not inside
        return ValueSet(tuple(cuts), begins)

    def __contains__(self, key: Key) -> bool:
        return self.begins_inside ^ bool(bisect_right(self.cuts, key) & 1)

    def points(self) -> Sequence[Key] | None:
        """The keys, if the set is some single ones, or if all but some single ones."""
        firsts, behinds = self.cuts[::2], self.cuts[1::2]
        if len(firsts) == len(behinds) and all(map(_is_next, firsts, behinds)):
            return firsts
        return None

    def keys(self, most: int) -> Sequence[Key]:
        """All keys of the set, one by one, if they are that few; else none."""
        if len(self.cuts) > 2 * most:
            return ()
        firsts, behinds = self.cuts[::2], self.cuts[1::2]
        if self.begins_inside or len(firsts) != len(behinds):
            return ()
        if firsts and isinstance(firsts[0], bytes):
            return self.points() or ()
        if sum(behinds) - sum(firsts) > most:
            return ()
        return [key for edges in zip(firsts, behinds, strict=True) for key in range(*edges)]

    def within(self, dtype: np.dtype[Any]) -> tuple[list[Key], bool]:
        """Cuts and beginning for keys of a dtype, whose range no cut leaves."""
        if dtype.kind == "O":
            return list(self.cuts), self.begins_inside
        info = np.iinfo(dtype)
        before = bisect_right(self.cuts, int(info.min))
        end = bisect_right(self.cuts, int(info.max))
        return list(self.cuts[before:end]), self.begins_inside ^ bool(before & 1)

    def decide(self, lower: npt.NDArray[Any], upper: npt.NDArray[Any]) -> tuple[Booleans, Booleans]:
        """For ranges from `lower` to `upper`: which are wholly outside, and which inside."""
        cuts, begins_inside = self.within(lower.dtype)
        places = np.array(cuts, dtype=lower.dtype)
        before = np.searchsorted(places, lower, "right")
        undivided = before == np.searchsorted(places, upper, "right")
        inside = (before & 1).astype(np.bool_) ^ begins_inside
        return undivided & ~inside, undivided & inside


NOTHING = ValueSet(())
EVERYTHING = ~NOTHING


def _is_next(key: Key, following: Key) -> bool:
    return bool(following == successor(key))
