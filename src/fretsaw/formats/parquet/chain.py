"""The chain of one leaf: its ancestors and itself, as a column of a small file.

Arrow decodes a single leaf of a nested column into its whole ancestor chain, if the chain is
spelled so that Arrow takes it alone: every list and map becomes a LIST of either three levels or
two, and every struct has one field. The definition and repetition levels stay what they were.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.metadata import OPTIONAL, REPEATED, REQUIRED, SchemaElement
from fretsaw.model.schema import SchemaNode

_LIST = metadata.LogicalType(LIST=metadata.Empty())
_ONLY_FIELD = "item"


@dataclass(frozen=True, slots=True)
class Chain:
    """A leaf as a column of a small file."""

    elements: tuple[Any, ...]
    arrow_type: pa.DataType
    is_inferred: bool
    """Whether Arrow finds this type by the Parquet types alone."""

    def as_stored(self) -> "Chain":
        """The same without what the leaf's values stand for."""
        leaf = self.elements[-1]
        kept = ("type", "type_length", "repetition_type", "name")
        plain = SchemaElement(**{name: getattr(leaf, name) for name in kept})
        stored = _STORED_AS.get(leaf.type, pa.binary(leaf.type_length or -1))
        return Chain((*self.elements[:-1], plain), _with_leaf(self.arrow_type, stored), True)

    def named(self, name: str) -> list[Any]:
        """The schema elements of a column of this name."""
        first, *rest = self.elements
        return [SchemaElement(**{**vars(first), "name": name}), *rest]

    def path(self, name: str) -> list[str]:
        """The path of the leaf in a column of this name."""
        return [name, *(element.name for element in self.elements[1:])]


_STORED_AS = {
    metadata.PHYSICAL_TYPES.index(name): arrow_type
    for name, arrow_type in (
        ("BOOLEAN", pa.bool_()),
        ("INT32", pa.int32()),
        ("INT64", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("BYTE_ARRAY", pa.binary()),
    )
}


def _with_leaf(arrow_type: pa.DataType, leaf: pa.DataType) -> pa.DataType:
    """The type of a chain that ends in another leaf."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(_ONLY_FIELD, _with_leaf(arrow_type.field(0).type, leaf))])
    if pa.types.is_list(arrow_type):
        return pa.list_(_with_leaf(arrow_type.value_type, leaf))
    return leaf


def chain(field: SchemaNode, leaf: SchemaNode, element: Any) -> Chain:
    """The chain from a top-level field to one of its leaves, which `element` describes."""
    elements, arrow_type = _below(field, leaf, element, OPTIONAL if field.nullable else REQUIRED)
    return Chain(tuple(elements), arrow_type, _is_inferred(leaf.arrow_type))


def only_leaf(of: Chain, arrow_type: pa.DataType) -> Chain:
    """The leaf of a chain by itself, never null."""
    element = SchemaElement(**{**vars(of.elements[-1]), "repetition_type": REQUIRED})
    return Chain((element,), arrow_type, of.is_inferred)


def _below(
    node: SchemaNode, leaf: SchemaNode, element: Any, repetition: int
) -> tuple[list[Any], pa.DataType]:
    """The chain from a node on, and its Arrow type."""
    if node.is_leaf:
        named = {**vars(element), "name": _ONLY_FIELD, "repetition_type": repetition}
        return [SchemaElement(**named)], node.arrow_type
    child = next(child for child in node.children if leaf in child.leaves())
    child_repetition = OPTIONAL if child.nullable else REQUIRED
    if node.is_struct:
        rest, inner = _below(child, leaf, element, child_repetition)
        return [_group(repetition), *rest], pa.struct([pa.field(_ONLY_FIELD, inner)])
    # How many names the format puts between the node and its element: a wrapper and the element
    # itself, the element alone (two-level lists), or nothing (a repeated field by itself).
    between = len(child.physical_path) - len(node.physical_path)
    if between == 2:
        rest, item = _below(child, leaf, element, child_repetition)
        elements = [_group(repetition, _LIST), _group(REPEATED, name="list"), *rest]
    else:
        rest, item = _below(child, leaf, element, REPEATED)
        rest[0].name = "array"  # by this name a repeated group is the element, whatever it holds
        elements = [_group(repetition, _LIST), *rest] if between else rest
    return elements, pa.list_(item)


def _group(repetition: int, logical: Any = None, name: str = _ONLY_FIELD) -> Any:
    return SchemaElement(
        name=name,
        repetition_type=repetition,
        num_children=1,
        converted_type=None if logical is None else metadata.CONVERTED_TYPES.index("LIST"),
        logicalType=logical,
    )


def _is_inferred(arrow_type: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(arrow_type):
        return arrow_type.tz in (None, "UTC")
    told = (
        types.is_integer,
        types.is_boolean,
        types.is_float32,
        types.is_float64,
        types.is_string,
        types.is_binary,
        types.is_date32,
        types.is_decimal128,
    )
    return any(is_type(arrow_type) for is_type in told)
