"""The schema of a file as a tree, the same for every format.

Lists and maps are single nodes with their element, key and value below them, whatever wrappers
the format stores around these. A leaf is a primitive column; leaves are numbered in file order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa


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

    def leaves(self) -> Iterator["SchemaNode"]:
        """All leaves below this node, in file order; a leaf is its own only leaf."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    @property
    def is_flat(self) -> bool:
        """Whether this is a leaf at the top level that is not repeated."""
        return self.is_leaf and len(self.path) == 1

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        types = self.logical_type or self.physical_type or self.kind
        yield f"{'  ' * depth}{self.name}: {types}{'' if self.nullable else ' required'}"
        for child in self.children:
            yield from child._lines(depth + 1)
