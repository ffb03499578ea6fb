"""From Parquet's flat list of schema elements to the neutral tree.

Lists and maps follow the format's backward-compatibility rules: which of the wrappers around an
element are stored differs between writers, the tree is the same.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.parquet.metadata import (
    CONVERTED_TYPES,
    OPTIONAL,
    PHYSICAL_TYPES,
    REPEATED,
    REQUIRED,
    Empty,
    LogicalType,
    SchemaElement,
)
from fretsaw.model.schema import SchemaNode

_DEEPEST = 100  # a hostile file could nest deeper than Python recurses


def field_node(elements: Sequence[Any], leaf: int, arrow_type: pa.DataType) -> SchemaNode:
    """The tree of one top-level field with these elements, whose first leaf has this number."""
    return _Walk(elements, leaf).field(_Place(), arrow_type)


_MAPS = ("MAP", "MAP_KEY_VALUE")
_BYTE_ARRAY = PHYSICAL_TYPES.index("BYTE_ARRAY")
_DEFAULT_CRS = "OGC:CRS84"
_EDGES = ("SPHERICAL", "VINCENTY", "THOMAS", "ANDOYER", "KARNEY")


class Ambiguous(ValueError):
    """A logical type that is several at once."""


def for_arrow(elements: Sequence[Any]) -> list[Any]:
    """The elements of a field as Arrow takes them: what is read here may be spelled otherwise.

    An ENUM is text, keys of a map are required, and what only claims to be a map is a group.
    """
    spelled = [as_text(element) for element in elements]
    for place, element in enumerate(elements):
        if not element.num_children or logical_type(element) not in _MAPS:
            continue
        if _is_map(element, elements[place + 1]):
            spelled[place + 2] = _with(spelled[place + 2], repetition_type=REQUIRED)
        else:
            spelled[place] = _with(element, converted_type=None, logicalType=None)
    return spelled


def as_text(element: Any) -> Any:
    """The element, as text if it is an ENUM."""
    if element.num_children or logical_type(element) != "ENUM" or element.type != _BYTE_ARRAY:
        return element
    text = LogicalType(STRING=Empty())
    return _with(element, converted_type=CONVERTED_TYPES.index("STRING"), logicalType=text)


def _with(element: Any, **changes: Any) -> Any:
    return SchemaElement(**{**vars(element), **changes})


def _is_map(group: Any, wrapper: Any) -> bool:
    """Whether the group that is annotated as a map is built like one."""
    is_wrapped = group.num_children == 1 and wrapper.repetition_type == REPEATED
    return is_wrapped and wrapper.num_children in (1, 2)


def logical_type(element: Any) -> str | None:
    """The logical type by name, with its parameters; converted types count as what they became."""
    variants = vars(element.logicalType) if element.logicalType else {}
    if len(variants) > 1:
        raise Ambiguous(f"{element.name!r} is {' and '.join(variants)} at once")
    for name, details in variants.items():
        match name:
            case "DECIMAL":
                return f"DECIMAL({details.precision},{details.scale})"
            case "TIME" | "TIMESTAMP":
                unit = next(iter(vars(details.unit)), "?")
                return f"{name}({unit},{'UTC' if details.isAdjustedToUTC else 'local'})"
            case "INTEGER":
                return f"INTEGER({details.bitWidth},{'' if details.isSigned else 'un'}signed)"
            case "GEOMETRY":
                return f"GEOMETRY({details.crs or _DEFAULT_CRS})"
            case "GEOGRAPHY":
                algorithm = details.algorithm or 0
                edges = _EDGES[algorithm] if 0 <= algorithm < len(_EDGES) else "?"
                return f"GEOGRAPHY({details.crs or _DEFAULT_CRS}, {edges})"
            case _:
                return str(name)
    converted = element.converted_type
    if converted is None or not 0 <= converted < len(CONVERTED_TYPES):
        return None
    name = CONVERTED_TYPES[converted]
    return f"DECIMAL({element.precision},{element.scale or 0})" if name == "DECIMAL" else name


class _Place(NamedTuple):
    """Where the walk is: the path of the node, what lies above it as stored, and whether a list."""

    path: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    repeated: bool = False

    def step(self, name: str, *stored: str, repeated: bool = False) -> "_Place":
        """One step down in the tree, past so many stored names."""
        return _Place((*self.path, name), (*self.above, *stored), self.repeated or repeated)


class _Walk:
    """A walk over the elements of one field, leaf by leaf."""

    def __init__(self, elements: Sequence[Any], leaf: int) -> None:
        self._elements = elements
        self._position = 0
        self._leaf = leaf

    def field(self, group: _Place, arrow_type: pa.DataType) -> SchemaNode:
        """A field of a group: a repeated one without annotation is a list by itself."""
        element = self._elements[self._position]
        place = group.step(element.name)
        if element.repetition_type != REPEATED:
            return self._node(place, arrow_type, element.repetition_type == OPTIONAL)
        item = place.step("element", repeated=True)
        child = self._node(item, _child_type(arrow_type, 0), nullable=False)
        return SchemaNode(
            element.name,
            place.path,
            "list",
            nullable=False,
            arrow_type=arrow_type,
            children=(child,),
            physical_path=child.physical_path,
        )

    def _node(self, place: _Place, arrow_type: pa.DataType, nullable: bool) -> SchemaNode:
        """The element at the cursor, whatever its repetition."""
        element = self._elements[self._position]
        logical = logical_type(element)
        stored = (*place.above, element.name)
        self._position += 1
        if len(stored) > _DEEPEST:
            raise FileFormatError(f"{place.path[0]!r} is nested more than {_DEEPEST} levels deep")
        if not element.num_children:
            known = 0 <= element.type < len(PHYSICAL_TYPES)
            self._leaf += 1
            return SchemaNode(
                place.path[-1],
                place.path,
                "leaf",
                nullable,
                arrow_type,
                physical_type=PHYSICAL_TYPES[element.type] if known else "UNKNOWN",
                logical_type=logical,
                physical_path=stored,
                leaf_index=self._leaf - 1,
                is_repeated=place.repeated,
            )
        here = place._replace(above=stored)
        wrapper = self._elements[self._position]
        wraps = element.num_children == 1 and wrapper.repetition_type == REPEATED
        kind: Literal["struct", "list", "map"] = "struct"
        children: tuple[SchemaNode, ...]
        if logical == "LIST" and wraps:
            kind, children = "list", (self._list_element(element, here, arrow_type),)
        elif logical in _MAPS and _is_map(element, wrapper):
            kind, children = "map", self._map_entries(here, arrow_type)
        else:
            children = tuple(
                self.field(here, _child_type(arrow_type, i)) for i in range(element.num_children)
            )
        return SchemaNode(
            place.path[-1],
            place.path,
            kind,
            nullable,
            arrow_type,
            children,
            logical_type=logical,
            physical_path=stored,
        )

    def _list_element(self, outer: Any, place: _Place, arrow_type: pa.DataType) -> SchemaNode:
        """The element below a LIST: the repeated child itself in two-level lists, or its field."""
        repeated = self._elements[self._position]
        item_type = _child_type(arrow_type, 0)
        two_levels = (
            repeated.num_children != 1
            or repeated.name in ("array", f"{outer.name}_tuple")
            or self._elements[self._position + 1].repetition_type == REPEATED
        )
        if two_levels:
            return self._node(place.step("element", repeated=True), item_type, nullable=False)
        self._position += 1
        nullable = self._elements[self._position].repetition_type == OPTIONAL
        return self._node(place.step("element", repeated.name, repeated=True), item_type, nullable)

    def _map_entries(self, place: _Place, arrow_type: pa.DataType) -> tuple[SchemaNode, ...]:
        entries = self._elements[self._position]
        self._position += 1
        nodes = []
        for i, name in enumerate(("key", "value")[: entries.num_children]):
            nullable = self._elements[self._position].repetition_type == OPTIONAL
            step = place.step(name, entries.name, repeated=True)
            nodes.append(self._node(step, _child_type(arrow_type, i), nullable))
        return tuple(nodes)


def _child_type(arrow_type: pa.DataType, position: int) -> pa.DataType:
    """The type of a child, as deep as Arrow's type goes along with the schema."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pa.types.is_map(arrow_type):
        return arrow_type.item_type if position else arrow_type.key_type
    if pa.types.is_struct(arrow_type) and position < arrow_type.num_fields:
        return arrow_type.field(position).type
    return getattr(arrow_type, "value_type", arrow_type)
