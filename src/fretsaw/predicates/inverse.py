"""What a test of a computed value says of the columns that it is computed of.

Where the computation rises or falls with its only column, the places where a set of results
begins and ends have places in the column, which are searched for by computing some values. What
comes out are sets of the column's values: those outside of which the test is never true, and those
for which it surely is. What one element must hold, one of its list's must hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from fretsaw.model.schema import SchemaNode
from fretsaw.predicates import compute, types
from fretsaw.predicates.bound import Bound, NotComputable
from fretsaw.predicates.evaluate import contained
from fretsaw.predicates.value_set import (
    EVERYTHING,
    NAN_KEY,
    NOTHING,
    ValueSet,
    after_prefix,
    float_at,
    float_key,
)

_PROBES = 256
_DAYS_OF_YEARS = (-719_162, 2_932_896)  # from the year 1 to 9999
_SECONDS_OF_ZONES = 2 * 86_400
_SEEDS = [sign << bits for bits in (16, 31, 40, 48, 56, 60, 62, 63) for sign in (1, -1)]


@dataclass(frozen=True, slots=True)
class Slope:
    """A value that rises (1) or falls (-1) with a leaf, as the clocks of a zone do or exactly."""

    leaf: Bound
    sign: int
    zoned: bool = False


@dataclass(frozen=True, slots=True)
class Implied:
    """What a test says of the values of a leaf."""

    leaf: Bound
    values: ValueSet
    """Outside of these it is never true."""
    sure: ValueSet = NOTHING
    """For these it is true."""

    @property
    def is_exact(self) -> bool:
        """Whether it is a test of the leaf's own values."""
        return self.values == self.sure


def implied(truth: Bound) -> Implied | None:
    """A leaf and the values without which a test is not true; None: nothing is known of them."""
    found = _of_test(truth, negated=False)
    return None if found is None or found.leaf.function == "element" else found


def implied_in_lists(truth: Bound, negated: bool = False) -> Iterator[Implied]:
    """For tests of elements: leaves of which one element at least has one of these values."""
    match truth.function:
        case "not":
            yield from implied_in_lists(truth.operands[0], not negated)
        case ("any" | "all") as fold if (fold == "all") == negated:
            yield from _of_element(truth.operands[1], negated)
        case "in":
            yield from _of_entry(truth, negated)


def _of_element(truth: Bound, negated: bool) -> Iterator[Implied]:
    """What an element must hold for which a test is true, or false if it is negated."""
    match truth.function:
        case "not":
            yield from _of_element(truth.operands[0], not negated)
        case ("and" | "or") as joint if (joint == "or") == negated:
            for part in truth.operands:
                yield from _of_element(part, negated)
        case _:
            found = _of_test(truth, negated)
            if found is not None and found.leaf.function == "element":
                yield found
            yield from implied_in_lists(truth, negated)


def _of_entry(truth: Bound, negated: bool) -> Iterator[Implied]:
    """What the element at a place, or the value of a key, must be."""
    (entry,) = truth.operands
    if entry.function not in ("nth", "get"):
        return
    held, wanted = entry.operands[-1], truth.options[0]
    if not pa.types.is_nested(held.type):
        yield Implied(held, ~wanted if negated else wanted)
    if entry.function == "get":
        yield Implied(entry.operands[1], entry.options[1])


def _of_test(truth: Bound, negated: bool) -> Implied | None:
    if truth.function == "not":
        return _of_test(truth.operands[0], not negated)
    if truth.function == "true or null" and not negated:
        return _of_test(truth.operands[0], negated)
    if truth.function == "text" and not negated and _is_leaf(truth.operands[0]):
        beginning = truth.options[2].encode(errors="surrogatepass")
        values = ValueSet.between(beginning, after_prefix(beginning))
        return Implied(truth.operands[0], values) if beginning else None
    if truth.function != "in":
        return None
    (value,), wanted = truth.operands, truth.options[0]
    wanted = ~wanted if negated else wanted
    if _is_leaf(value):
        return Implied(value, wanted, wanted)
    slope = slope_of(value)
    try:
        return None if slope is None else _before(value, slope, wanted)
    except NotComputable:
        return None


def _is_leaf(value: Bound) -> bool:
    return value.function in ("leaf", "element")


def slope_of(value: Bound) -> Slope | None:
    """How a value goes with the only column that it is computed of, if it goes one way."""
    if _is_leaf(value):
        return Slope(value, 1) if _has_probes(value.type) else None
    moving = [operand for operand in value.operands if not operand.is_literal]
    inner = slope_of(moving[0]) if len(moving) == 1 else None
    if inner is None:
        return None
    match value.function:
        case "+" | "shift" if value.function == "+" or value.options == ("+",):
            return inner if _is_finite(value) else None
        case "-" | "shift":
            falls = value.operands[1] is moving[0]
            return (
                replace(inner, sign=-inner.sign if falls else inner.sign)
                if _is_finite(value)
                else None
            )
        case "*" | "/" if value.function == "*" or value.operands[0] is moving[0]:
            # Doubles of decimals may be off by a little, and not rise.
            is_double = value.function == "/" and pa.types.is_decimal(moving[0].type)
            return None if is_double else _scaled(value, inner)
        case "negate":
            return replace(inner, sign=-inner.sign)
        case "year" | "date" | "truncate":
            zone = getattr(moving[0].type, "tz", None)
            return replace(inner, zoned=inner.zoned or zone not in (None, "UTC", "+00:00"))
        case "as":
            return inner
        case "cast" if _widens(moving[0].type, value.type):
            return inner
    return None


def _is_finite(value: Bound) -> bool:
    return all(np.isfinite(_number(operand)) for operand in value.operands if operand.is_literal)


def _scaled(value: Bound, inner: Slope) -> Slope | None:
    (factor,) = (_number(operand) for operand in value.operands if operand.is_literal)
    if not factor or not np.isfinite(factor):
        return None
    return inner if factor > 0 else replace(inner, sign=-inner.sign)


def _number(literal: Bound) -> float:
    scalar = literal.options[0]
    if types.is_number(scalar.type):
        return float(scalar.as_py())
    return 1.0


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_integer(source):
        return bool(pa.types.is_int64(target) or pa.types.is_float64(target))
    if pa.types.is_floating(source):
        return bool(pa.types.is_float64(target))
    return bool(pa.types.is_date(source) and pa.types.is_timestamp(target))


def _has_probes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in (*tests, pa.types.is_date, pa.types.is_timestamp))


def _before(value: Bound, slope: Slope, wanted: ValueSet) -> Implied | None:
    """The values of a leaf whose results may be wanted, and those whose results are."""
    low, high = _domain(value, slope.leaf)
    cuts, begins_inside = [], wanted.begins_inside
    for cut in wanted.cuts:
        from_cut = ValueSet.between(cut, None)
        cuts.append(_first(value, slope, from_cut if slope.sign > 0 else ~from_cut, low, high))
    if slope.sign < 0:
        cuts.reverse()
        begins_inside ^= bool(len(cuts) & 1)
    ranges = _ranges(cuts, begins_inside, low, high + 1)
    sure = NOTHING if slope.zoned else ValueSet.among(ranges)
    if slope.zoned:
        day = _SECONDS_OF_ZONES * 10**9 // types.tick(slope.leaf.type)
        ranges = [(first - day, behind + day) for first, behind in ranges]
    if pa.types.is_floating(slope.leaf.type):
        high = NAN_KEY
        is_wanted = bool(contained(wanted, _computed(value, slope.leaf, [NAN_KEY]))[0])
        ranges += [(NAN_KEY, NAN_KEY + 1)] if is_wanted else []
        sure = ValueSet.among(ranges)
    # Nothing is known of what lies outside of the values that can be computed.
    known = ValueSet.between(low, high + 1)
    inside = ValueSet.among(ranges)
    if (low, high) == _all_keys(slope.leaf.type) and not slope.zoned:
        return Implied(slope.leaf, inside, inside)
    values = inside | ~known
    return None if values == EVERYTHING and sure == NOTHING else Implied(slope.leaf, values, sure)


def _all_keys(kind: pa.DataType) -> tuple[int, int] | None:
    """The first and the last key of a type, if no value has another."""
    if pa.types.is_floating(kind):
        return float_key(-np.inf), NAN_KEY
    if not pa.types.is_integer(kind):
        return None
    info = np.iinfo(kind.to_pandas_dtype())
    return int(info.min), int(info.max)


def _ranges(
    cuts: Sequence[int], begins_inside: bool, low: int, behind: int
) -> list[tuple[int, int]]:
    """The ranges between cuts that are inside."""
    edges = [low, *cuts, behind]
    pairs = pairwise(edges)
    chosen = [pair for place, pair in enumerate(pairs) if (place % 2 == 0) == begins_inside]
    return [pair for pair in chosen if pair[0] < pair[1]]


def _domain(value: Bound, leaf: Bound) -> tuple[int, int]:
    """The first and the last key of a leaf that surely can be computed."""
    kind = leaf.type
    if pa.types.is_floating(kind):
        return float_key(-np.inf), NAN_KEY - 1
    if pa.types.is_date(kind):
        return _DAYS_OF_YEARS
    if pa.types.is_timestamp(kind):
        day = types.tick(pa.date32()) // types.tick(kind)
        most = (1 << 62) // day
        first, last = (min(max(days, -most), most) for days in _DAYS_OF_YEARS)
        return first * day, last * day
    all_keys = _all_keys(kind)
    most = 10**kind.precision - 1 if pa.types.is_decimal(kind) else 0
    low, high = all_keys or (-most, most)
    if _can_compute(value, leaf, low) and _can_compute(value, leaf, high):
        return low, high
    for seed in (0, *_SEEDS):
        if low <= seed <= high and _can_compute(value, leaf, seed):
            return _last(value, leaf, seed, low), _last(value, leaf, seed, high)
    raise NotComputable("no value can be computed")


def _last(value: Bound, leaf: Bound, good: int, end: int) -> int:
    """The last key from a computable one on to an end for which a result does not overflow."""
    if _can_compute(value, leaf, end):
        return end
    while abs(end - good) > 1:
        middle = (good + end) // 2
        if _can_compute(value, leaf, middle):
            good = middle
        else:
            end = middle
    return good


def _can_compute(value: Bound, leaf: Bound, key: int) -> bool:
    try:
        _computed(value, leaf, [key])
    except (NotComputable, OverflowError):
        return False
    return True


def _first(value: Bound, slope: Slope, wanted: ValueSet, low: int, high: int) -> int:
    """The first key from which on the results are wanted; behind all where none is."""
    behind = high + 1
    while low < behind:
        step = max(1, -(-(behind - low) // _PROBES))
        keys = list(range(low, behind, step))
        results = _computed(value, slope.leaf, keys)
        reached = np.flatnonzero(contained(wanted, results))
        place = int(reached[0]) if len(reached) else len(keys)
        if place < len(keys):
            behind = keys[place]
        low = keys[place - 1] + 1 if place else behind
    return behind


def _computed(value: Bound, leaf: Bound, keys: Sequence[int]) -> pa.Array:
    """What is computed of some keys of a leaf."""
    node: SchemaNode = leaf.options[0]
    array = _values(keys, leaf.type)
    for _ in leaf.options[1]:
        array = pa.StructArray.from_arrays([array], [node.name])
    decoded = {(node.leaf_index, node.as_stored): array}
    return compute.compute(value, compute.rows_of(value, len(keys), decoded))


def _values(keys: Sequence[int], kind: pa.DataType) -> pa.Array:
    values: list[Any]
    if pa.types.is_floating(kind):
        return pa.array([float_at(key) for key in keys], pa.float64())
    if pa.types.is_decimal(kind):
        with localcontext(prec=100):
            values = [Decimal(key).scaleb(-kind.scale) for key in keys]
        return pa.array(values, pa.decimal256(76, kind.scale)).cast(types.computed(kind))
    if pa.types.is_integer(kind):
        return pa.array(keys, types.computed(kind))
    if pa.types.is_date(kind):
        return pa.array(keys, pa.int32()).view(pa.date32())
    return pa.array(keys, pa.int64()).view(kind)
