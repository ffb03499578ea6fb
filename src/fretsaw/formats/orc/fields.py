"""The top-level fields of a schema: what Arrow makes of them, their trees and the chains below.

Fields are described when somebody asks for them. Files with the same schema share them, so that
Arrow is asked once for many files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.orc

from fretsaw.formats.orc.decode import empty_file
from fretsaw.formats.orc.footer import Footer
from fretsaw.formats.orc.metadata import KINDS
from fretsaw.formats.orc.schema import columns_below, field_node, leaf_count
from fretsaw.model.schema import SchemaNode


@dataclass(frozen=True, slots=True)
class Chain:
    """The columns that hold a leaf, from its field down."""

    above: tuple[int, ...]
    leaf: tuple[int, ...]
    """The column of the leaf; of a union, with all inside it."""

    @property
    def columns(self) -> tuple[int, ...]:
        """All of them."""
        return (*self.above, *self.leaf)


class Fields:
    """The fields of all files with one schema."""

    def __init__(self, footer: Footer, unit: Literal["ns", "us"]) -> None:
        self.types = footer.types
        self._unit = unit
        root = footer.types[0]
        self.names = [name.decode() for name in root.field_names]
        self._columns = list(root.subtypes)
        self._described: dict[int, tuple[pa.Field, SchemaNode]] = {}
        self._chains: dict[int, Chain] = {}
        self.union_sizes = {
            column: len(found.subtypes)
            for column, found in enumerate(self.types)
            if KINDS[found.kind] == "UNION"
        }
        """How many types the values of each union have."""
        self._first_leaves = [0]
        for column in self._columns:
            self._first_leaves.append(self._first_leaves[-1] + leaf_count(self.types, column))

    def fit(self, footer: Footer) -> bool:
        """Whether a file has these fields."""
        return list(footer.types) == list(self.types)

    def describe(self, positions: Sequence[int]) -> list[tuple[pa.Field, SchemaNode]]:
        """These fields as pyarrow gives them, and their trees."""
        missing = [position for position in positions if position not in self._described]
        if missing:
            columns = [self._columns[position] for position in missing]
            names = [self.names[position] for position in missing]
            schema = pa.orc.ORCFile(pa.BufferReader(empty_file(self.types, columns))).schema
            fields = [field.with_type(_with_unit(field.type, self._unit)) for field in schema]
            for position, column, name, field in zip(missing, columns, names, fields, strict=True):
                leaf = self._first_leaves[position]
                node = field_node(self.types, column, name, field.type, leaf)
                self._note_chains(node, column, ())
                self._described[position] = field.with_name(name), node
        return [self._described[position] for position in positions]

    def chain(self, leaf: SchemaNode) -> Chain:
        """The chain of a leaf that was described."""
        return self._chains[leaf.leaf_index]

    def _note_chains(self, node: SchemaNode, column: int, above: tuple[int, ...]) -> None:
        if node.is_leaf:
            leaf = tuple(columns_below(self.types, column))
            self._chains[node.leaf_index] = Chain(above, leaf)
            return
        for child, below in zip(node.children, self.types[column].subtypes, strict=True):
            self._note_chains(child, below, (*above, column))


def _with_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    """A type whose times have this unit."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(unit, kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_unit(field.type, unit)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(*(_with_unit(inner, unit) for inner in (kind.key_type, kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_unit(kind.value_type, unit)))
    return kind
