"""What the row groups of a file have in common: its footer, its fields, its writer, its options."""

import binascii
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from fretsaw.formats.interface import ReadOptions
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.fields import Fields
from fretsaw.formats.parquet.footer import Footer
from fretsaw.formats.parquet.index import InvalidIndex
from fretsaw.formats.parquet.outline import StoredChunk
from fretsaw.formats.parquet.pages import CorruptPage
from fretsaw.formats.parquet.schema import Ambiguous
from fretsaw.formats.parquet.statistics import (
    Order,
    Trusts,
    chunk_bounds,
    chunk_null_counts,
)
from fretsaw.formats.parquet.writer import writer_of
from fretsaw.formats.shared import Translation
from fretsaw.model.blocks import Block, Bounds, Int64s, row_counts
from fretsaw.model.schema import SchemaNode

_CORRUPT = (Ambiguous, CorruptPage, InvalidIndex, metadata.MalformedThrift, binascii.Error)


class ParquetFile:
    """A file whose footer is read."""

    def __init__(
        self, name: str, size: int, footer: Footer, fields: Fields, options: ReadOptions
    ) -> None:
        self.name = name
        self.size = size
        self.footer = footer
        self.fields = fields
        self.options = options
        self.writer = writer_of(footer.outline.created_by)
        self.missing_bytes = self.writer.missing_bytes
        self.errors = Translation(name, _CORRUPT)
        self.token = object()
        """By what the pages of its chunks are kept."""

    def stored(self, block: Block, leaf: SchemaNode) -> StoredChunk:
        """Where a chunk is, as the footer says it."""
        try:
            return self.footer.outline.stored(block.ordinal, leaf.leaf_index)
        except metadata.MalformedThrift:
            with self.errors.of("its footer"):
                raise

    def require(self, leaf: SchemaNode) -> None:
        """Raise what is wrong with the field of a leaf, if something is."""
        if self.fields.has_unreadable:
            with self.errors.of(f"column {'.'.join(leaf.path)!r}"):
                self.fields.require(leaf)

    def indexed(self, block: Block, leaf: SchemaNode) -> Any:
        """What the footer says about the values of a chunk, and where its indexes are."""
        return self._chunk(metadata.IndexedChunk, block, leaf)

    def probed(self, block: Block, leaf: SchemaNode) -> Any:
        """What the footer says about the Bloom filter and the dictionary of a chunk."""
        return self._chunk(metadata.ProbedChunk, block, leaf).meta_data

    def _chunk(self, kind: type[Any], block: Block, leaf: SchemaNode) -> Any:
        try:
            return self.footer.outline.chunk(kind, block.ordinal, leaf.leaf_index)
        except metadata.MalformedThrift:
            with self.errors.of("its footer"):
                raise

    def order(self, leaf: SchemaNode) -> Order | None:
        """How the values of a leaf are ordered, if they are."""
        return self.fields.order(leaf)

    def trusts(self, leaf: SchemaNode) -> Trusts:
        """What can be believed of what the file says about the values of a leaf."""
        try:
            orders = self.footer.outline.column_orders
        except metadata.MalformedThrift:
            with self.errors.of("its footer"):
                raise
        is_known = leaf.leaf_index < len(orders) and bool(orders[leaf.leaf_index])
        return self.fields.trusts(leaf, is_known, self.footer.outline.created_by)

    def null_counts(self, blocks: Sequence[Block], leaf: SchemaNode) -> Int64s:
        """How many nulls each of a leaf's chunks has; -1 where that is not known."""
        chunks = [self.indexed(block, leaf) for block in blocks]
        return chunk_null_counts(chunks, row_counts(blocks), self.trusts(leaf))


def chunk_bounds_of(
    files: Sequence[tuple[ParquetFile, Sequence[Block]]], leaf: SchemaNode
) -> Bounds:
    """What footers say about the values of a leaf's chunks, in files that share their fields."""
    order, alike = files[0][0].order(leaf), []
    for trusts, group in groupby(files, lambda each: each[0].trusts(leaf)):
        each = [(file, block) for file, blocks in group for block in blocks]
        chunks = [file.indexed(block, leaf) for file, block in each]
        rows = row_counts([block for _, block in each])
        alike.append(chunk_bounds(chunks, rows, order, trusts))
    return alike[0] if len(alike) == 1 else Bounds.joined(alike)
