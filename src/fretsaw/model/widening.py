"""One type for what files store in several: the same values, or the narrowest type for all.

Types that only Arrow's hints tell apart (large, view, dictionary) are the same. What could lose a
value, such as int64 beside float64, has no wider type.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from fretsaw.model.schema import SchemaNode

_UNITS = ("s", "ms", "us", "ns")
_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""Bits of an integer that a float of so many bits holds exactly."""
_MOST_DIGITS = 76


class NoWiderType(TypeError):
    """Two types of a column that nothing holds both of; the message says which."""


def is_same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether only hints, and what is said about nulls, tell two types apart."""
    return bool(_plain(one) == _plain(other))


def merged(one: SchemaNode, other: SchemaNode, gains_fields: bool) -> SchemaNode:
    """The column that holds what both hold; structs may differ in their fields if they may gain."""
    for node, beside in ((one, other), (other, one)):
        if pa.types.is_null(node.arrow_type):  # it has no values to hold
            return beside.optional()
    if one.kind != other.kind:
        raise NoWiderType(f"{one.arrow_type} and {other.arrow_type}")
    same = one.physical_type == other.physical_type, one.logical_type == other.logical_type
    kept = replace(
        one,
        nullable=True,
        physical_type=one.physical_type if same[0] else None,
        logical_type=one.logical_type if same[1] else None,
    )
    if one.is_leaf:
        return replace(kept, arrow_type=_wider(one, other))
    children = _merged_children(one, other, gains_fields)
    before = [child.arrow_type for child in one.children]
    if before == [child.arrow_type for child in children]:
        return replace(kept, children=children)
    return replace(kept, children=children, arrow_type=_around(one.arrow_type, children))


def holds(wide: SchemaNode, node: SchemaNode, gains_fields: bool) -> bool:
    """Whether a column holds all that a file has of it; fields may be missing if it gains them."""
    if pa.types.is_null(node.arrow_type):
        return True
    if wide.kind != node.kind:
        return False
    if node.is_leaf:
        try:
            return is_same(wide.arrow_type, _wider(wide, node))
        except NoWiderType:
            return False
    known = {child.name: child for child in wide.children}
    same = known.keys() == {child.name for child in node.children}
    return (same or (node.is_struct and gains_fields)) and all(
        holds(known[child.name], child, gains_fields)
        for child in node.children
        if child.name in known
    )


def numbered(node: SchemaNode, first: int = 0) -> SchemaNode:
    """A tree that was put together of several files, with numbers for its leaves."""
    if node.is_leaf:
        return replace(node, leaf_index=first)
    children = []
    for child in node.children:
        children.append(numbered(child, first))
        first += len(list(child.leaves()))
    return replace(node, children=tuple(children))


def retyped(node: SchemaNode, like: SchemaNode) -> SchemaNode:
    """A file's node with the types that its leaves have in the whole scan."""
    if node.kind != like.kind:  # nulls of no type, beside something that has one
        return node
    if node.is_leaf:
        wide = like.arrow_type
        is_utc = pa.types.is_timestamp(wide) and wide.tz is not None
        return replace(node, arrow_type=wide, physical_type=None if is_utc else node.physical_type)
    known = {child.name: child for child in like.children}
    children = tuple(
        retyped(child, known[child.name]) if child.name in known else child
        for child in node.children
    )
    return replace(node, children=children)


def completed(node: SchemaNode, like: SchemaNode, index: int) -> SchemaNode:
    """A file's node with the fields that it lacks, whose leaves all have one index."""
    known = {child.name: child for child in node.children}
    children = tuple(
        completed(child, other, index)
        for child in node.children
        for other in [next((c for c in like.children if c.name == child.name), child)]
    )
    if node.is_struct and like.is_struct:
        missing = (child for child in like.children if child.name not in known)
        children += tuple(_renumbered(child, index) for child in missing)
    return replace(node, children=children)


def _renumbered(node: SchemaNode, index: int) -> SchemaNode:
    children = tuple(_renumbered(child, index) for child in node.children)
    return replace(node, children=children, leaf_index=index if node.is_leaf else node.leaf_index)


def _merged_children(
    one: SchemaNode, other: SchemaNode, gains_fields: bool
) -> tuple[SchemaNode, ...]:
    names, others = [c.name for c in one.children], [c.name for c in other.children]
    differ = names != others if not one.is_struct else set(names) != set(others)
    is_unclear = len(set(names)) < len(names) or len(set(others)) < len(others)
    if is_unclear or (differ and not (one.is_struct and gains_fields)):
        raise NoWiderType(f"{one.arrow_type} and {other.arrow_type}")
    known = {child.name: child for child in other.children}
    both = [
        merged(child, known[child.name], gains_fields) if child.name in known else child.optional()
        for child in one.children
    ]
    return (*both, *(child.optional() for child in other.children if child.name not in names))


def _around(before: pa.DataType, children: Sequence[SchemaNode]) -> pa.DataType:
    """The type of a struct, list or map that has these children now."""
    if isinstance(before, pa.BaseExtensionType):
        before = before.storage_type
    types = [child.arrow_type for child in children]
    if pa.types.is_struct(before):
        return pa.struct([(child.name, child.arrow_type) for child in children])
    if pa.types.is_map(before):
        return pa.map_(*types)
    element = before.value_field.with_type(types[0]).with_nullable(True)
    if pa.types.is_fixed_size_list(before):
        return pa.list_(element, before.list_size)
    return pa.large_list(element) if pa.types.is_large_list(before) else pa.list_(element)


def _wider(one: SchemaNode, other: SchemaNode) -> pa.DataType:
    """The narrowest type that holds the values of two leaves."""
    left, right, types = one.arrow_type, other.arrow_type, pa.types
    if is_same(left, right):
        return left
    both = (left, right)
    found: pa.DataType | None = None
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in both):
        found = _wider_number(left, right)
    elif all(types.is_integer(kind) or types.is_decimal(kind) for kind in both):
        found = _wider_decimal(*map(_as_decimal, both))
    elif all(map(types.is_timestamp, both)):
        found = _finer_timestamp(one, other)
    elif all(map(types.is_time, both)):
        unit = _finer(left.unit, right.unit)
        found = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    elif all(map(types.is_duration, both)):
        found = pa.duration(_finer(left.unit, right.unit))
    if found is None:
        raise NoWiderType(f"{left} and {right}")
    return found


def _wider_number(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    floats = [kind.bit_width for kind in (left, right) if pa.types.is_floating(kind)]
    if len(floats) == 2:
        return left if left.bit_width >= right.bit_width else right
    bits = [_integer_bits(kind) for kind in (left, right) if pa.types.is_integer(kind)]
    if floats:
        fitting = [size for size, exact in _EXACT_BITS.items() if exact >= bits[0]]
        wide = max(floats[0], min(fitting, default=128))
        return {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}.get(wide)
    if pa.types.is_unsigned_integer(left) and pa.types.is_unsigned_integer(right):
        return left if left.bit_width >= right.bit_width else right
    signed = {7: pa.int8(), 15: pa.int16(), 31: pa.int32(), 63: pa.int64()}
    return next((kind for size, kind in signed.items() if size >= max(bits)), None)


def _integer_bits(kind: pa.DataType) -> int:
    """Bits of the largest value."""
    return int(kind.bit_width) - (0 if pa.types.is_unsigned_integer(kind) else 1)


def _as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimals that hold all integers of a type; decimals are themselves."""
    if pa.types.is_decimal(kind):
        return kind
    return pa.decimal128(len(str(2 ** _integer_bits(kind))), 0)


def _wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    scale = max(left.scale, right.scale)
    digits = scale + max(left.precision - left.scale, right.precision - right.scale)
    if digits > _MOST_DIGITS:
        return None
    is_wide = digits > 38 or pa.types.is_decimal256(left) or pa.types.is_decimal256(right)
    return pa.decimal256(digits, scale) if is_wide else pa.decimal128(digits, scale)


def _finer_timestamp(one: SchemaNode, other: SchemaNode) -> pa.DataType | None:
    """The finer unit, in the zone of the first; INT96 is an instant, whatever its type says."""
    left, right = one.arrow_type, other.arrow_type
    for node, beside in ((one, right), (other, left)):
        if node.arrow_type.tz is None and beside.tz is not None and node.physical_type != "INT96":
            return None
    return pa.timestamp(_finer(left.unit, right.unit), left.tz or right.tz)


def _finer(one: str, other: str) -> str:
    return _UNITS[max(_UNITS.index(one), _UNITS.index(other))]


def is_any_list(kind: pa.DataType) -> bool:
    """Whether it is a list of any length, however it is laid out."""
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without hints, and with nulls allowed at every level."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if is_any_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type), kind.list_size)
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    return pa.binary() if types.is_large_binary(kind) or types.is_binary_view(kind) else kind
