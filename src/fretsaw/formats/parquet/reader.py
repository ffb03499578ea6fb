"""The reader of Parquet files: answers what `formats.interface` asks of a format."""

from collections.abc import Sequence
from typing import cast

import pyarrow as pa

from fretsaw.formats.interface import (
    BlockReader,
    ChunkFacts,
    FileReader,
    Found,
    Part,
    ReadOptions,
    Search,
)
from fretsaw.formats.parquet.block import RowGroup, bounds_of_pages, chunk_name
from fretsaw.formats.parquet.cut import ParquetPart
from fretsaw.formats.parquet.decode import ARROW_SCHEMA, decode
from fretsaw.formats.parquet.fields import Fields
from fretsaw.formats.parquet.file import ParquetFile, chunk_bounds_of
from fretsaw.formats.parquet.footer import read_footer
from fretsaw.formats.parquet.inside import chunk_facts
from fretsaw.formats.parquet.pages import CorruptPage
from fretsaw.formats.shared import ARROW_ERRORS, Leaves, OutOfRange, decode_together
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.requests import Steps

_FAILURES = (*ARROW_ERRORS, CorruptPage, OutOfRange)


def open_file(
    name: str, size: int, tail: pa.Buffer, options: ReadOptions, like: FileReader | None
) -> Steps["ParquetReader"]:
    """Read the footer of a Parquet file; if it is `like` another one, they share their fields."""
    known = like.fields if isinstance(like, ParquetReader) else None
    footer = yield from read_footer(name, size, tail, None if known is None else known.footer)
    fields = known if known is not None and known.fit(footer) else Fields(footer, options)
    return ParquetReader(ParquetFile(name, size, footer, fields, options))


class ParquetReader(FileReader):
    """One Parquet file."""

    format = "parquet"
    index_name = "column index"
    tells_bounds = True

    def __init__(self, file: ParquetFile) -> None:
        self._file = file
        self._compiled = file.fields.decoder(file.writer.always_compresses)
        self.footer_size = len(file.footer.data)
        self.blocks = file.footer.blocks
        self.fields: Fields = file.fields
        self.field_names = file.fields.names
        self.metadata = file.footer.key_values
        self.created_by = file.footer.outline.created_by

    def describe(self, positions: Sequence[int]) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
        names = [repr(self.field_names[position]) for position in positions]
        with self._file.errors.of(f"column {names[0]}" if len(names) == 1 else "its schema"):
            known = self.fields.describe(positions)
        own = {key: value for key, value in self.metadata.items() if key != ARROW_SCHEMA}
        return pa.schema([field for field, _ in known], own), tuple(node for _, node in known)

    def open_blocks(self, blocks: Sequence[Block]) -> Steps[list[RowGroup]]:
        yield from ()
        return [RowGroup(self._file, block) for block in blocks]

    def chunk_size(self, block: Block, leaf: SchemaNode) -> int:
        return int(RowGroup(self._file, block).whole_chunk(leaf).sizes[0])

    def block_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        yield from ()
        return self.bounds_of_files([(self, blocks)], leaf)

    @staticmethod
    def bounds_of_files(
        files: Sequence[tuple[FileReader, Sequence[Block]]], leaf: SchemaNode
    ) -> Bounds:
        own = cast(Sequence[tuple[ParquetReader, Sequence[Block]]], files)
        return chunk_bounds_of([(reader._file, blocks) for reader, blocks in own], leaf)

    def describe_chunks(
        self, blocks: Sequence[BlockReader], leaf: SchemaNode
    ) -> Steps[tuple[list[ChunkFacts], Bounds]]:
        yield from ()
        return chunk_facts(self._file, [block.block for block in blocks], leaf)

    def page_bounds(
        self, blocks: Sequence[BlockReader], leaf: SchemaNode
    ) -> Steps[tuple[list[PageIndex | None], Bounds]]:
        return bounds_of_pages(self._file, cast(Sequence[RowGroup], blocks), leaf)

    def decode(self, leaves: Sequence[Sequence[Part]], allocate: Allocate) -> list[pa.ChunkedArray]:
        parts = cast(Leaves[ParquetPart], leaves)
        if self._compiled is None:
            return self._decode_by_arrow(parts, allocate)
        arrays = self._compiled.decode(parts)
        missing = [place for place, array in enumerate(arrays) if array is None]
        if missing:
            by_arrow = self._decode_by_arrow([parts[place] for place in missing], allocate)
            for place, array in zip(missing, by_arrow, strict=True):
                arrays[place] = array
        return cast(list[pa.ChunkedArray], arrays)

    def find(self, part: Part, search: Search) -> Found | None:
        if self._compiled is None:
            return None
        return self._compiled.find(cast(ParquetPart, part), search, self._file.order(part.leaf))

    def _decode_by_arrow(
        self, parts: Leaves[ParquetPart], allocate: Allocate
    ) -> list[pa.ChunkedArray]:
        how = (self.created_by, self._file.options, allocate)

        def decode_all(leaves: Leaves[ParquetPart]) -> list[pa.ChunkedArray]:
            return decode(leaves, *how)

        def decode_alone(part: ParquetPart, error: Exception) -> pa.ChunkedArray:
            with self._file.errors.of(chunk_name(part.leaf, part.chunk.block)):
                filled = part.without_empty_pages()
                if filled is None:
                    raise error
                return decode([[filled]], *how)[0]

        return decode_together(parts, decode_all, _FAILURES, decode_alone)
