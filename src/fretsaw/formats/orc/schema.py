"""From the flat list of an ORC file's types to the neutral tree.

Lists and maps are single nodes in both. A union is a leaf here: its values are decoded whole.
"""

from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from fretsaw.formats.orc.metadata import KINDS
from fretsaw.model.schema import SchemaNode


def field_node(
    types: Any, column: int, name: str, arrow_type: pa.DataType, leaf: int
) -> SchemaNode:
    """The tree of one top-level field, of which the first leaf has this number."""
    return _Walk(types, leaf).node(column, (name,), arrow_type, repeated=False)


def columns_below(types: Any, column: int) -> list[int]:
    """A column and all columns inside it."""
    end = column + 1
    pending = len(types[column].subtypes)
    while pending:
        pending += len(types[end].subtypes) - 1
        end += 1
    return list(range(column, end))


def leaf_count(types: Any, column: int) -> int:
    """How many leaves a column has; a union is one."""
    count, inside = 0, columns_below(types, column)
    place = 0
    while place < len(inside):
        found = types[inside[place]]
        if KINDS[found.kind] == "UNION":
            count += 1
            place += len(columns_below(types, inside[place]))
        else:
            count += not len(found.subtypes)
            place += 1
    return count


class _Walk:
    """A walk over the columns of one field, leaf by leaf."""

    def __init__(self, types: Any, leaf: int) -> None:
        self._types = types
        self._leaf = leaf

    def node(
        self, column: int, path: tuple[str, ...], arrow_type: pa.DataType, repeated: bool
    ) -> SchemaNode:
        found = self._types[column]
        kind = KINDS[found.kind]
        if kind not in ("STRUCT", "LIST", "MAP") or not len(found.subtypes):
            self._leaf += 1
            return SchemaNode(
                path[-1],
                path,
                "leaf",
                True,
                arrow_type,
                physical_type=kind,
                logical_type=_logical_type(kind, found),
                physical_path=path,
                leaf_index=self._leaf - 1,
                is_repeated=repeated,
            )
        names = {"LIST": ("element",), "MAP": ("key", "value")}.get(kind)
        names = names or tuple(name.decode() for name in found.field_names)
        inside = repeated or kind != "STRUCT"
        children = [
            self.node(child, (*path, name), _child_type(arrow_type, place), inside)
            for place, (child, name) in enumerate(zip(found.subtypes, names, strict=True))
        ]
        if kind == "MAP":
            children[0] = replace(children[0], nullable=False)
        nests: dict[str, Literal["struct", "list", "map"]] = {
            "STRUCT": "struct",
            "LIST": "list",
            "MAP": "map",
        }
        return SchemaNode(
            path[-1], path, nests[kind], True, arrow_type, tuple(children), physical_path=path
        )


def _logical_type(kind: str, found: Any) -> str | None:
    if kind == "DECIMAL":
        return f"DECIMAL({found.precision},{found.scale})"
    if kind in ("CHAR", "VARCHAR"):
        return f"{kind}({found.maximum_length})"
    return None


def _child_type(arrow_type: pa.DataType, place: int) -> pa.DataType:
    if pa.types.is_map(arrow_type):
        return arrow_type.item_type if place else arrow_type.key_type
    if pa.types.is_struct(arrow_type):
        return arrow_type.field(place).type
    return arrow_type.value_type
