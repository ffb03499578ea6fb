"""Predicates on columns that files store in several types: they mean the same in every file.

Literals are bound to the type that holds all, as if every file had it; the values that are looked
for then become those of the type that one file stores.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from fretsaw.errors import PredicateTypeError
from fretsaw.model.schema import SchemaNode, value_type
from fretsaw.model.widening import is_same, retyped
from fretsaw.predicates.condition import Check, Computed, Condition, Every, Some, every, some
from fretsaw.predicates.value_set import NAN_KEY, NOTHING, ValueSet, float_at, float_key

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_BEYOND = 1 << 600
"""Above every integer that a column can hold."""


def as_widened(
    top: SchemaNode, node: SchemaNode, wide: SchemaNode
) -> tuple[SchemaNode, SchemaNode]:
    """A column of a file, and the field that it lies in, with the types of the whole scan."""
    typed = retyped(node, wide) if node.kind == wide.kind else node
    return _with_node(top, typed), typed


def as_stored(condition: Condition, leaves: Mapping[int, SchemaNode]) -> Condition:
    """A condition on columns of the whole scan for the leaves of one file, by their indices."""
    match condition:
        case Check():
            return _stored(condition, leaves.get(condition.leaf.leaf_index))
        case Computed():
            for leaf in condition.leaves:
                _require_same(leaf, leaves.get(leaf.leaf_index), condition.text)
        case Every(parts):
            return every(as_stored(part, leaves) for part in parts)
        case Some(parts):
            return some(as_stored(part, leaves) for part in parts)
    return condition


def _require_same(leaf: SchemaNode, own: SchemaNode | None, text: str) -> None:
    """What is computed needs the type that a file stores."""
    if own is not None and not leaf.as_stored and not is_same(leaf.arrow_type, own.arrow_type):
        raise PredicateTypeError(
            f"{text}: {'.'.join(leaf.path)!r} is {own.arrow_type} in one file and "
            f"{leaf.arrow_type} in others; compare the column itself, or scan these files apart"
        )


def _with_node(top: SchemaNode, node: SchemaNode) -> SchemaNode:
    """A tree in which a node stands in the place of the one with its path."""
    if top.path == node.path:
        return node
    children = tuple(
        _with_node(child, node) if child.path == node.path[: len(child.path)] else child
        for child in top.children
    )
    return replace(top, children=children)


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
    if types.is_floating(wide) and types.is_integer(stored):
        return _moved(values, _first_integer)
    if types.is_floating(wide) and stored.bit_width < wide.bit_width:
        dtype = np.dtype(stored.to_pandas_dtype())
        return _moved(values, lambda cut: _first_float(cut, dtype))
    if types.is_decimal(wide):
        return _divided(values, 10 ** (wide.scale - stored.scale))
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
