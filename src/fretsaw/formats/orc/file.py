"""What the stripes of a file have in common: its footer, its fields, their statistics."""

from collections.abc import Sequence
from typing import Any

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.fields import Fields
from fretsaw.formats.orc.footer import Footer
from fretsaw.formats.orc.metadata import KINDS, MalformedOrc
from fretsaw.formats.orc.statistics import bounds_of
from fretsaw.formats.orc.streams import Columns
from fretsaw.formats.shared import Translation
from fretsaw.model.blocks import Block, Bounds, row_counts
from fretsaw.model.schema import SchemaNode
from fretsaw.storage.requests import Request, Steps

_MOST_PACKED = 1000
"""No codec makes an entry of a row index smaller than a byte for so many of them."""


class OrcFile:
    """A file whose footer is read."""

    def __init__(self, name: str, footer: Footer, fields: Fields) -> None:
        self.footer = footer
        self.fields = fields
        self.errors = Translation(name, (MalformedOrc,))
        self.token = object()
        """By what the footers of its stripes are kept."""
        self._chains: dict[int, Columns] = {}
        self._statistics: Any = None

    def chain(self, leaf: SchemaNode) -> Columns:
        """The columns of a leaf's chain, and their kinds."""
        known = self._chains.get(leaf.leaf_index)
        if known is None:
            columns, types = self.fields.chain(leaf).columns, self.footer.types
            known = [(column, KINDS[types[column].kind]) for column in columns]
            self._chains[leaf.leaf_index] = known
        return known

    def has_strides(self, block: Block) -> bool:
        """Whether stripes have strides, and this one is large enough for all that it claims."""
        stride = self.footer.stride
        return bool(stride) and block.num_rows <= block.compressed_size * _MOST_PACKED * stride

    def stripe_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        """What the statistics of stripes say about the values of a leaf."""
        stored = yield from self.stripe_statistics(blocks, leaf)
        return bounds_of(stored, row_counts(blocks), leaf)

    def stripe_statistics(
        self, blocks: Sequence[Block], leaf: SchemaNode
    ) -> Steps[list[bytes | None]]:
        """The statistics of a leaf in each of some stripes, as they are stored."""
        if self._statistics is None:
            place, length = self.footer.statistics_place
            stored = b""
            if length:
                (buffer,) = yield Request([(place, length)], "footer")
                stored = buffer.to_pybytes()
            with self.errors.of("its stripe statistics"):
                data = self.footer.codec.unpacked(stored)
                self._statistics = metadata.decode("Metadata", data)
        stripes = self._statistics.stripes
        column = self.fields.chain(leaf).leaf[0]
        found: list[bytes | None] = [None] * len(blocks)
        if len(stripes) == len(self.footer.blocks):
            for place, block in enumerate(blocks):
                columns = stripes[block.ordinal].columns
                found[place] = columns[column] if column < len(columns) else None
        return found
