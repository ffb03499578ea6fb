"""Predicates on columns that files store in several types: they mean the same in every file.

Literals are bound to the type that holds all, as if every file had it; the values that are looked
for then become those of the type that one file stores.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from fretsaw.engine.files import OpenFile
from fretsaw.engine.paths import TEST_ANOTHER, find_column, top_level
from fretsaw.engine.request import ScanRequest
from fretsaw.errors import ColumnNotFoundError
from fretsaw.model.schema import Path, SchemaNode, value_type
from fretsaw.model.widening import completed, is_same, retyped
from fretsaw.predicates.bound import ABSENT, Bound
from fretsaw.predicates.columns import steps_to
from fretsaw.predicates.condition import Check, Computed, Condition, Every, Some, every, some
from fretsaw.predicates.value_set import NAN_KEY, NOTHING, ValueSet, float_at, float_key

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_BEYOND = 1 << 600
"""Above every integer that a column can hold."""


def tested_column(
    file: OpenFile, path: Path, wide: SchemaNode | None, request: ScanRequest
) -> tuple[SchemaNode, SchemaNode] | None:
    """A column of a file and the field that it lies in, as the whole scan has them.

    What the file lacks inside of a field is there as an absent one; None: it has no such field.
    """
    reader = file.reader
    try:
        top, node = find_column(reader, file.name, path, TEST_ANOTHER)
    except ColumnNotFoundError as error:
        if error.is_ambiguous or wide is None or reader.field_names.count(wide.name) != 1:
            raise
        _, (top,) = reader.describe([reader.field_names.index(wide.name)])
        if pa.types.is_null(top.arrow_type):
            return None
        if not request.missing_is_null:
            raise
        _, below = top_level([wide.name], path, file.name)
        found = wide if below is None else wide.find(below)
        if found is None:
            raise
        node = found
    if wide is None:
        return top, node
    if request.missing_is_null:
        top = completed(top, wide, ABSENT)
    if request.widens_types:
        top = retyped(top, wide)
    *_, node = steps_to(top, node)
    return top, node


def as_stored(condition: Condition, leaves: Mapping[int, SchemaNode]) -> Condition:
    """A condition on columns of the whole scan for the leaves of one file, by their indices."""
    match condition:
        case Check():
            return _stored(condition, leaves.get(condition.leaf.leaf_index))
        case Computed(truth, inputs=inputs, sure=sure):
            own = tuple(_own(leaf, leaves) for leaf in inputs)
            stored = None if sure is None else _stored(sure, leaves.get(sure.leaf.leaf_index))
            return replace(
                condition,
                truth=_of_stored(truth, leaves),
                inputs=own,
                sure=stored if isinstance(stored, Check) else None,
            )
        case Every(parts):
            return every(as_stored(part, leaves) for part in parts)
        case Some(parts):
            return some(as_stored(part, leaves) for part in parts)
    return condition


def _own(leaf: SchemaNode, leaves: Mapping[int, SchemaNode]) -> SchemaNode:
    """A leaf as a file stores it."""
    return leaf if leaf.as_stored else leaves.get(leaf.leaf_index, leaf)


def _of_stored(value: Bound, leaves: Mapping[int, SchemaNode]) -> Bound:
    """What is computed of leaves of the whole scan, of those of one file."""
    if value.function not in ("leaf", "element"):
        return replace(value, operands=tuple(_of_stored(o, leaves) for o in value.operands))
    leaf, *rest = value.options
    own = _own(leaf, leaves)
    if is_same(leaf.arrow_type, own.arrow_type):
        return replace(value, options=(own, *rest))
    if pa.types.is_nested(value.type):
        return replace(value, options=(own, *rest))
    stored = replace(value, type=value_type(own), options=(own, *rest))
    return Bound("as", value.type, (stored,))


def _stored(check: Check, leaf: SchemaNode | None) -> Condition:
    if leaf is None or check.leaf.as_stored or check.leaf == leaf:
        return check
    if not isinstance(check.values, ValueSet):
        return replace(check, leaf=leaf)
    values = _of_type(check.values, value_type(check.leaf), value_type(leaf))
    if values == NOTHING and check.fold != "all":
        return False
    return replace(check, leaf=leaf, values=values)


def _of_type(values: ValueSet, wide: pa.DataType, stored: pa.DataType) -> ValueSet:
    """The values of a type that are in a set of values of one that holds them all."""
    types = pa.types
    if types.is_null(stored):
        return NOTHING
    if types.is_floating(wide) and types.is_integer(stored):
        return _moved(values, _first_integer)
    if types.is_floating(wide) and stored.bit_width < wide.bit_width:
        dtype = np.dtype(stored.to_pandas_dtype())
        return _moved(values, lambda cut: _first_float(cut, dtype))
    if types.is_decimal(wide):
        scale = stored.scale if types.is_decimal(stored) else 0
        return _divided(values, 10 ** (wide.scale - scale))
    if types.is_timestamp(wide) or types.is_time(wide) or types.is_duration(wide):
        return _divided(values, _PER_SECOND[wide.unit] // _PER_SECOND[stored.unit])
    return values


def _divided(values: ValueSet, factor: int) -> ValueSet:
    """The numbers whose multiples are in a set."""
    return values if factor == 1 else _moved(values, lambda cut: -(-cut // factor))


def _moved(values: ValueSet, first: Callable[[int], int]) -> ValueSet:
    """A set whose cuts are the first values that are not below those there were."""
    cuts: list[int] = []
    for cut in map(first, values.cuts):
        if cuts and cuts[-1] == cut:  # nothing lies between the two
            cuts.pop()
        else:
            cuts.append(cut)
    return ValueSet(tuple(cuts), values.begins_inside)


def _first_integer(cut: int) -> int:
    """The first integer that is not below a place in the order of floats."""
    if cut >= NAN_KEY:
        return _BEYOND
    value = float_at(cut)
    if abs(value) == float("inf"):
        return _BEYOND if value > 0 else -_BEYOND
    whole = int(value)
    return whole + 1 if whole < value else whole


def _first_float(cut: int, dtype: np.dtype[np.floating]) -> int:
    """The place of the first float of a narrower type that is not below a place."""
    if cut >= NAN_KEY:
        return cut
    value = float_at(cut)
    with np.errstate(over="ignore", under="ignore"):
        near = dtype.type(value)
        # NumPy would round the value before it compares them.
        reached = float(near) >= value
        return float_key(float(near if reached else np.nextafter(near, dtype.type(np.inf))))
