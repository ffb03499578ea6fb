"""The top-level fields of a schema: what Arrow makes of them, their trees and the chains below.

Fields are described when somebody asks for them. Files with the same schema share them, so that
Arrow is asked once for many files.
"""

import base64
from collections.abc import Sequence
from typing import Any, SupportsIndex

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import ReadOptions
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.arrow_hint import peek_field
from fretsaw.formats.parquet.chain import Chain, chain
from fretsaw.formats.parquet.compiled import CompiledDecoder, compiled_decoder
from fretsaw.formats.parquet.decode import ARROW_SCHEMA, open_small, schema_footer
from fretsaw.formats.parquet.footer import Footer
from fretsaw.formats.parquet.schema import Ambiguous, as_text, field_node, for_arrow
from fretsaw.formats.parquet.statistics import (
    Order,
    Trusts,
    counts_nulls,
    definition_levels,
    order_of,
)
from fretsaw.formats.parquet.writer import writer_of
from fretsaw.model.locks import once
from fretsaw.model.schema import SchemaNode

_MANY = 32  # one field in so many is worth looking for by itself
# What Arrow raises for a schema that it does not take, and what is raised here.
_REFUSED = (pa.ArrowException, OSError, Ambiguous, FileFormatError)


class Names(list[str]):
    """The names of fields, each looked up without a walk over all: there may be ten thousand."""

    @once
    def _places(self) -> dict[str, int]:
        """The first place of each."""
        last = len(self) - 1
        return dict(zip(reversed(self), range(last, -1, -1), strict=True))

    def count(self, name: str) -> int:
        if len(self._places) == len(self):
            return int(name in self._places)
        return super().count(name)

    def index(self, name: str, *between: SupportsIndex) -> int:
        return super().index(name, *between) if between else self._places[name]


class Fields:
    """The fields of all files with one schema."""

    def __init__(self, footer: Footer, options: ReadOptions) -> None:
        names, begins = footer.outline.names, footer.spans.begins.tolist()
        self.names = Names(str(names[begin]) for begin in begins)
        self.footer = footer
        """That of one of the files."""
        self._encoded = footer.key_values.get(ARROW_SCHEMA)
        self._options = options
        self._described: dict[int, tuple[pa.Field, SchemaNode]] = {}
        self._unreadable: dict[int, Exception] = {}
        self._leaves: dict[int, tuple[Any, Chain]] = {}
        self._orders: dict[tuple[int, bool], Order | None] = {}
        self._trusts: dict[tuple[int, bool, bool, str | None], Trusts] = {}
        self._decoders: dict[bool, CompiledDecoder | None] = {}

    def fit(self, footer: Footer) -> bool:
        """Whether a file has these fields."""
        same_hint = footer.key_values.get(ARROW_SCHEMA) == self._encoded
        return same_hint and footer.spans is self.footer.spans

    def describe(self, positions: Sequence[int]) -> list[tuple[pa.Field, SchemaNode]]:
        """These fields as pyarrow gives them, and their trees."""
        known = {**self._described, **self._unreadable}
        missing = [position for position in positions if position not in known]
        if missing:
            try:
                self._describe(missing)
            except _REFUSED:  # to find out which one it is
                for position in missing:
                    self._describe_alone(position)
        if positions and all(position in self._unreadable for position in positions):
            raise self._unreadable[positions[0]]
        return [self._described.get(position) or self._blank(position) for position in positions]

    @property
    def has_unreadable(self) -> bool:
        """Whether there are fields, of those that were described, that cannot be read."""
        return bool(self._unreadable)

    def require(self, leaf: SchemaNode) -> None:
        """Raise what is wrong with the field of a leaf, if something is."""
        for position, error in self._unreadable.items():
            if self.footer.spans.leaves[position] == leaf.leaf_index:
                raise error

    def is_readable(self, leaf: SchemaNode) -> bool:
        """Whether a leaf that was described is one that Arrow takes."""
        return leaf.leaf_index in self._leaves

    def chain(self, leaf: SchemaNode) -> Chain:
        """The chain of a leaf that was described."""
        _, found = self._leaves[leaf.leaf_index]
        return found.as_stored() if leaf.as_stored else found

    def order(self, leaf: SchemaNode) -> Order | None:
        """How the values of a leaf that was described are ordered, if they are."""
        key = leaf.leaf_index, leaf.as_stored
        if key not in self._orders:
            self._orders[key] = order_of(self._leaves[leaf.leaf_index][0], leaf)
        return self._orders[key]

    def trusts(self, leaf: SchemaNode, is_ordered: bool, created_by: str | None) -> Trusts:
        """What can be believed of what a file says about the values of a leaf.

        `is_ordered` says whether the file claims an order that is known.
        """
        key = leaf.leaf_index, leaf.as_stored, is_ordered, created_by
        if key not in self._trusts:
            levels, order = definition_levels(self.chain(leaf).elements), self.order(leaf)
            is_old = order is not None and not order.was_defined
            self._trusts[key] = Trusts(
                column_order=is_ordered and not (is_old and writer_of(created_by).compares_signed),
                counts_nulls=counts_nulls(created_by),
                no_nulls=levels == 1,
                flat=not leaf.is_repeated,
                levels=levels,
            )
        return self._trusts[key]

    def decoder(self, always_compressed: bool) -> CompiledDecoder | None:
        """What decodes the leaves by the kernels, if there are any."""
        if always_compressed not in self._decoders:
            decoder = compiled_decoder(self._options.verify, always_compressed)
            self._decoders[always_compressed] = decoder
        return self._decoders[always_compressed]

    def _describe_alone(self, position: int) -> None:
        """Describe a field that may be one that cannot be read: it is of no use, others are."""
        try:
            self._describe([position])
        except _REFUSED as error:
            self._unreadable[position] = error

    def _blank(self, position: int) -> tuple[pa.Field, SchemaNode]:
        """A field that stands for one that cannot be read, until somebody reads it."""
        name, kind = self.names[position], pa.null()
        leaf = int(self.footer.spans.leaves[position])
        node = SchemaNode(name, (name,), "leaf", True, kind, (), "UNKNOWN", leaf_index=leaf)
        return pa.field(name, kind), node

    def _describe(self, positions: Sequence[int]) -> None:
        """Have Arrow say what it makes of these fields, and walk their elements."""
        spans, outline = self.footer.spans, self.footer.outline
        stored = [outline.elements(spans.begins[place], spans.ends[place]) for place in positions]
        elements = [for_arrow(field) for field in stored]
        hint = self._hint(positions)
        empty = pa.py_buffer(metadata.footer_bytes(schema_footer(elements, hint)))
        schema = open_small(empty, None, self._options).schema_arrow
        for position, own, field in zip(positions, stored, schema, strict=True):
            node = field_node(own, int(spans.leaves[position]), field.type)
            leaves = (element for element in own if not element.num_children)
            for leaf, element in zip(node.leaves(), leaves, strict=False):
                self._leaves[leaf.leaf_index] = element, chain(node, leaf, as_text(element))
            self._described[position] = field, node

    def _hint(self, positions: Sequence[int]) -> pa.Schema | None:
        """What the writer's Arrow schema says of these fields."""
        if self._encoded is not None and len(positions) * _MANY < len(self.names):
            names, encoded = self.names, self._encoded
            fields = [peek_field(encoded, p, len(names), names[p]) for p in positions]
            if all(field is not None for field in fields):
                return pa.schema(fields)
        known = self._arrow_schema
        return None if known is None else pa.schema([known.field(place) for place in positions])

    @once
    def _arrow_schema(self) -> pa.Schema | None:
        """The Arrow schema that the writer left in the file, if it fits the file."""
        if self._encoded is None:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self._encoded)))
        return schema if len(schema) == len(self.names) else None
