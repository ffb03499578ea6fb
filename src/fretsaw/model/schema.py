"""The schema of a file as a tree, the same for every format.

Lists and maps are single nodes with their element, key and value below them, whatever wrappers
the format stores around these. A leaf is a primitive column; leaves are numbered in file order.
"""

import copyreg
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

Path: TypeAlias = str | tuple[str, ...]
"""How users name a column: `"a.b"`, or exactly, `("a", "b")`."""


def _pickled_list(kind: pa.FixedSizeListType) -> tuple[Callable[..., pa.DataType], tuple[Any, ...]]:
    return pa.list_, (kind.value_field, kind.list_size)


def _pickled_map(kind: pa.MapType) -> tuple[Callable[..., pa.DataType], tuple[Any, ...]]:
    return pa.map_, (kind.key_field, kind.item_field, kind.keys_sorted)


# pyarrow's pickles forget names and nullability of elements, and that keys are sorted.
copyreg.pickle(pa.FixedSizeListType, _pickled_list)
copyreg.pickle(pa.MapType, _pickled_map)


def spelled(path: Path) -> str:
    """A path as messages show it."""
    return path if isinstance(path, str) else ".".join(path)


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """A column, or a part of one."""

    name: str
    path: tuple[str, ...]
    """The names from the root to here; list and map steps are `element`, `key` and `value`."""
    kind: Literal["leaf", "struct", "list", "map"]
    nullable: bool
    arrow_type: pa.DataType
    children: tuple["SchemaNode", ...] = ()
    physical_type: str | None = None
    logical_type: str | None = None
    physical_path: tuple[str, ...] = ()
    """The names as the format itself spells them."""
    leaf_index: int = -1
    is_repeated: bool = False
    """Whether a leaf lies below a list or map, so that a row may have any number of values."""
    as_stored: bool = False
    """Whether a leaf is read as its physical type, whatever it stands for."""

    @property
    def is_leaf(self) -> bool:
        """Whether this is a primitive column."""
        return self.kind == "leaf"

    @property
    def is_struct(self) -> bool:
        """Whether this is a group of named fields."""
        return self.kind == "struct"

    @property
    def is_list(self) -> bool:
        """Whether this is a list."""
        return self.kind == "list"

    @property
    def is_map(self) -> bool:
        """Whether this is a map."""
        return self.kind == "map"

    @property
    def list_element(self) -> "SchemaNode | None":
        """The element of a list, `None` for anything else."""
        return self.children[0] if self.is_list and self.children else None

    @property
    def map_key(self) -> "SchemaNode | None":
        """The key of a map, `None` for anything else."""
        return self.children[0] if self.is_map and self.children else None

    @property
    def map_value(self) -> "SchemaNode | None":
        """The value of a map, `None` for anything else and for a map of keys alone."""
        return self.children[1] if self.is_map and len(self.children) > 1 else None

    def find(self, path: Path) -> "SchemaNode | None":
        """The node at the end of a path from here: `"a.b"`, or exactly, `("a", "b")`.

        A name that contains dots is matched whole first. Steps into lists and maps may be left out
        where that is unambiguous, and the format's own spelling of them is understood.
        """
        if isinstance(path, str):
            return self._find(tuple(path.split(".")), dotted=True)
        return self._find(path, dotted=False)

    def _find(self, steps: tuple[str, ...], dotted: bool) -> "SchemaNode | None":
        if not steps:
            return self
        spelled: list[tuple[tuple[str, ...], SchemaNode]] = []
        for child in self.children:
            stored = child.physical_path[len(self.physical_path) :]
            for names in {(child.name,), stored} - {()}:
                whole = tuple(".".join(names).split(".")) if dotted else names
                spelled.append((whole, child))
        for names, child in sorted(spelled, key=lambda pair: -len(pair[0])):
            if steps[: len(names)] == names:
                found = child._find(steps[len(names) :], dotted)
                if found is not None:
                    return found
        if self.is_list or self.is_map:
            shortcuts = [child._find(steps, dotted) for child in self.children]
            reached = [node for node in shortcuts if node is not None]
            return reached[0] if len(reached) == 1 else None
        return None

    def pruned(self, keep: Container[int]) -> "SchemaNode":
        """This node with only those of its leaves whose index is in `keep`.

        A map keeps its key: there is no map without one.
        """
        if self.is_leaf:
            return self
        children = tuple(
            child.pruned(keep) if any(leaf.leaf_index in keep for leaf in child.leaves()) else child
            for child in self.children
            if self.is_map or any(leaf.leaf_index in keep for leaf in child.leaves())
        )
        return replace(self, children=children, arrow_type=type_with(self, children))

    def renamed(self, name: str) -> "SchemaNode":
        """This top-level node, and all below it, by another name of the column."""
        if name == self.path[0]:
            return self
        return replace(
            self,
            name=name if len(self.path) == 1 else self.name,
            path=(name, *self.path[1:]),
            physical_path=(name, *self.physical_path[1:]),
            children=tuple(child.renamed(name) for child in self.children),
        )

    def optional(self) -> "SchemaNode":
        """This node with nulls allowed at every level, save a map's keys."""
        children = [child.optional() for child in self.children]
        if self.is_map:
            children[0] = replace(children[0], nullable=False)
        arrow_type = with_nulls(self.arrow_type)
        return replace(self, nullable=True, arrow_type=arrow_type, children=tuple(children))

    def leaves(self) -> Iterator["SchemaNode"]:
        """All leaves below this node, in file order; a leaf is its own only leaf."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        types = self.logical_type or self.physical_type or self.kind
        yield f"{'  ' * depth}{self.name}: {types}{'' if self.nullable else ' required'}"
        for child in self.children:
            yield from child._lines(depth + 1)


EITHER_ZONE = "+00:00"
"""UTC, as the zone of instants that rows show as a wall clock: literals of both kinds fit."""


def value_type(leaf: SchemaNode) -> pa.DataType:
    """The Arrow type that says how values of a leaf compare.

    Dictionaries and extensions compare as what they hold, save UUIDs; INT96 is an instant.
    """
    arrow_type = leaf.arrow_type
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if leaf.logical_type == "UUID":
        return pa.uuid()
    if isinstance(arrow_type, pa.BaseExtensionType) and not isinstance(arrow_type, pa.UuidType):
        return arrow_type.storage_type
    if leaf.physical_type == "INT96" and pa.types.is_timestamp(arrow_type):
        return pa.timestamp(arrow_type.unit, EITHER_ZONE)
    return arrow_type


def type_with(node: SchemaNode, children: tuple[SchemaNode, ...]) -> pa.DataType:
    """The type of a node that has only these children left."""
    before = node.arrow_type
    if len(children) == len(node.children) and all(
        new.arrow_type == old.arrow_type for new, old in zip(children, node.children, strict=True)
    ):
        return before
    if isinstance(before, pa.BaseExtensionType):
        before = before.storage_type
    if node.is_struct:
        places = {child.path: place for place, child in enumerate(node.children)}
        return pa.struct(
            [before.field(places[child.path]).with_type(child.arrow_type) for child in children]
        )
    if pa.types.is_map(before):
        key, item = (child.arrow_type for child in children)
        return pa.map_(before.key_field.with_type(key), before.item_field.with_type(item))
    element = before.value_field.with_type(children[0].arrow_type)
    if pa.types.is_fixed_size_list(before):
        return pa.list_(element, before.list_size)
    return pa.large_list(element) if pa.types.is_large_list(before) else pa.list_(element)


def with_leaves(arrow_type: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with other types for its leaves."""

    def other(field: pa.Field) -> pa.Field:
        return field.with_type(with_leaves(field.type, leaf))

    kind = arrow_type
    if pa.types.is_struct(kind):
        return pa.struct([other(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(other(kind.key_field), other(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(other(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(other(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(other(kind.value_field), kind.list_size)
    return leaf(kind)


def with_nulls(arrow_type: pa.DataType) -> pa.DataType:
    """The type with nulls allowed at every level: what files may differ in."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(f.name, with_nulls(f.type)) for f in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(with_nulls(arrow_type.key_type), with_nulls(arrow_type.item_type))
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(_nullable(arrow_type.value_field), arrow_type.list_size)
    if pa.types.is_list(arrow_type):
        return pa.list_(_nullable(arrow_type.value_field))
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(_nullable(arrow_type.value_field))
    return arrow_type


def _nullable(field: pa.Field) -> pa.Field:
    return pa.field(field.name, with_nulls(field.type))
