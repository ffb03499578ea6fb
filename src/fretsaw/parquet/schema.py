"""From Parquet's flat list of schema elements to the neutral tree.

Lists and maps follow the format's backward-compatibility rules: which of the wrappers around an
element are stored differs between writers, the tree is the same.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.parquet.footer import FieldSpan
from fretsaw.parquet.metadata import (
    CONVERTED_TYPES,
    OPTIONAL,
    PHYSICAL_TYPES,
    REPEATED,
)
from fretsaw.schema import SchemaNode

_DEEPEST = 100  # a hostile file could nest deeper than Python recurses


def field_node(elements: Sequence[Any], span: FieldSpan, arrow_type: pa.DataType) -> SchemaNode:
    """The tree of one top-level field."""
    return _Walk(elements, span).field((), (), arrow_type)


def logical_type(element: Any) -> str | None:
    """The logical type by name, with its parameters; converted types count as what they became."""
    for name, details in vars(element.logicalType).items() if element.logicalType else ():
        match name:
            case "DECIMAL":
                return f"DECIMAL({details.precision},{details.scale})"
            case "TIME" | "TIMESTAMP":
                unit = next(iter(vars(details.unit)), "?")
                return f"{name}({unit},{'UTC' if details.isAdjustedToUTC else 'local'})"
            case "INTEGER":
                return f"INTEGER({details.bitWidth},{'' if details.isSigned else 'un'}signed)"
            case _:
                return str(name)
    converted = element.converted_type
    if converted is None or not 0 <= converted < len(CONVERTED_TYPES):
        return None
    name = CONVERTED_TYPES[converted]
    return f"DECIMAL({element.precision},{element.scale or 0})" if name == "DECIMAL" else name


class _Walk:
    """A walk over the elements of one field, leaf by leaf."""

    def __init__(self, elements: Sequence[Any], span: FieldSpan) -> None:
        self._elements = elements
        self._position = span.element
        self._leaf = span.leaf

    def field(
        self, parent: tuple[str, ...], above: tuple[str, ...], arrow_type: pa.DataType
    ) -> SchemaNode:
        """A field of a group: a repeated one without annotation is a list by itself."""
        element = self._elements[self._position]
        path = (*parent, element.name)
        if element.repetition_type != REPEATED:
            nullable = element.repetition_type == OPTIONAL
            return self._node(element.name, path, above, arrow_type, nullable)
        item = self._node(
            "element", (*path, "element"), above, _child_type(arrow_type, 0), nullable=False
        )
        return SchemaNode(
            element.name, path, "list", False, arrow_type, (item,), physical_path=item.physical_path
        )

    def _node(
        self,
        name: str,
        path: tuple[str, ...],
        above: tuple[str, ...],
        arrow_type: pa.DataType,
        nullable: bool,
    ) -> SchemaNode:
        """The element at the cursor, whatever its repetition."""
        element = self._elements[self._position]
        here = (*above, element.name)
        logical = logical_type(element)
        self._position += 1
        if len(here) > _DEEPEST:
            raise FileFormatError(f"column {path[0]!r} is nested more than {_DEEPEST} levels deep")
        if not element.num_children:
            physical = element.type if 0 <= element.type < len(PHYSICAL_TYPES) else None
            self._leaf += 1
            return SchemaNode(
                name,
                path,
                "leaf",
                nullable,
                arrow_type,
                physical_type=PHYSICAL_TYPES[physical] if physical is not None else "UNKNOWN",
                logical_type=logical,
                physical_path=here,
                leaf_index=self._leaf - 1,
            )
        wrapper = self._elements[self._position]
        wraps = element.num_children == 1 and wrapper.repetition_type == REPEATED
        if logical == "LIST" and wraps:
            kind = "list"
            children: tuple[SchemaNode, ...] = (
                self._list_element(element, path, here, arrow_type),
            )
        elif logical in ("MAP", "MAP_KEY_VALUE") and wraps and wrapper.num_children in (1, 2):
            kind = "map"
            children = self._map_entries(path, here, arrow_type)
        else:
            kind = "struct"
            children = tuple(
                self.field(path, here, _child_type(arrow_type, i))
                for i in range(element.num_children)
            )
        return SchemaNode(
            name,
            path,
            kind,  # type: ignore[arg-type]
            nullable,
            arrow_type,
            children,
            logical_type=logical,
            physical_path=here,
        )

    def _list_element(
        self, outer: Any, parent: tuple[str, ...], above: tuple[str, ...], arrow_type: pa.DataType
    ) -> SchemaNode:
        """The element below a LIST: the repeated child itself in two-level lists, or its field."""
        repeated = self._elements[self._position]
        item_type = _child_type(arrow_type, 0)
        path = (*parent, "element")
        legacy = (
            repeated.num_children != 1
            or repeated.name in ("array", f"{outer.name}_tuple")
            or self._elements[self._position + 1].repetition_type == REPEATED
        )
        if legacy:
            return self._node("element", path, above, item_type, nullable=False)
        self._position += 1
        nullable = self._elements[self._position].repetition_type == OPTIONAL
        return self._node("element", path, (*above, repeated.name), item_type, nullable)

    def _map_entries(
        self, parent: tuple[str, ...], above: tuple[str, ...], arrow_type: pa.DataType
    ) -> tuple[SchemaNode, ...]:
        entries = self._elements[self._position]
        self._position += 1
        nodes = []
        for i, name in enumerate(("key", "value")[: entries.num_children]):
            nullable = self._elements[self._position].repetition_type == OPTIONAL
            nodes.append(
                self._node(
                    name,
                    (*parent, name),
                    (*above, entries.name),
                    _child_type(arrow_type, i),
                    nullable,
                )
            )
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
