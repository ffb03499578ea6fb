"""What a test of a computed value says of the column that it is computed of.

Where the computation rises or falls with its only column, the places where a set of results
begins and ends have places in the column, which are searched for by computing some values. What
comes out is a set of the column's values outside of which the test is never true: for pruning.
"""

from collections.abc import Sequence
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
    ValueSet,
    after_prefix,
    float_at,
    float_key,
)

_PROBES = 256
_DAYS_OF_YEARS = (-719_162, 2_932_896)  # from the year 1 to 9999
_SECONDS_OF_ZONES = 2 * 86_400
_RANGES = [1 << bits for bits in (63, 62, 60, 56, 52, 48, 40, 31, 16)]


@dataclass(frozen=True, slots=True)
class Slope:
    """A value that rises (1) or falls (-1) with a leaf, as the clocks of a zone do or exactly."""

    leaf: Bound
    sign: int
    zoned: bool = False


def implied(truth: Bound) -> tuple[Bound, ValueSet] | None:
    """A leaf and the values without which a test is not true; None: nothing is known of them."""
    negated = truth.function == "not"
    test = truth.operands[0] if negated else truth
    if test.function == "text" and not negated and test.operands[0].function == "leaf":
        beginning = test.options[2].encode(errors="surrogatepass")
        values = ValueSet.between(beginning, after_prefix(beginning))
        return (test.operands[0], values) if beginning else None
    if test.function != "in" or test.operands[0].function == "leaf":
        return None
    slope = slope_of(test.operands[0])
    if slope is None:
        return None
    wanted = test.options[0]
    try:
        values = _before(test.operands[0], slope, ~wanted if negated else wanted)
    except NotComputable:
        return None
    return None if values == EVERYTHING else (slope.leaf, values)


def slope_of(value: Bound) -> Slope | None:
    """How a value goes with the only column that it is computed of, if it goes one way."""
    if value.function == "leaf":
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
            return _scaled(value, inner)
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


def _before(value: Bound, slope: Slope, wanted: ValueSet) -> ValueSet:
    """The values of a leaf whose results may be wanted."""
    low, high = _domain(value, slope.leaf)
    cuts, begins_inside = [], wanted.begins_inside
    for cut in wanted.cuts:
        from_cut = ValueSet.between(cut, None)
        cuts.append(_first(value, slope, from_cut if slope.sign > 0 else ~from_cut, low, high))
    if slope.sign < 0:
        cuts.reverse()
        begins_inside ^= bool(len(cuts) & 1)
    ranges = _ranges(cuts, begins_inside, low, high + 1)
    if slope.zoned:
        day = _SECONDS_OF_ZONES * 10**9 // types.tick(slope.leaf.type)
        ranges = [(first - day, behind + day) for first, behind in ranges]
    inside = ValueSet.among(ranges)
    # Nothing is known of what lies outside of the values that can be computed.
    return inside | ~ValueSet.between(low, high + 1)


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
    least = 0 if pa.types.is_unsigned_integer(kind) else -1
    most = 10**kind.precision if pa.types.is_decimal(kind) else _RANGES[0]
    if pa.types.is_integer(kind):
        most = min(most, 1 << (kind.bit_width - (least != 0)))
    for limit in [most, *(limit for limit in _RANGES if limit < most)]:
        low, high = least * (limit - 1), limit - 1
        try:
            _computed(value, leaf, [low, high])
        except (NotComputable, OverflowError):
            continue
        return low, high
    raise NotComputable("no value can be computed")


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
