"""The reader of ORC files: answers what `formats.interface` asks of a format."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from fretsaw.formats.interface import (
    BlockReader,
    ChunkFacts,
    FileReader,
    Misplaced,
    Part,
    ReadOptions,
)
from fretsaw.formats.orc.block import (
    StripeReader,
    bounds_of_strides,
    chunk_name,
    chunk_size,
    open_stripes,
)
from fretsaw.formats.orc.compiled import compiled_decoder
from fretsaw.formats.orc.cut import OrcPart
from fretsaw.formats.orc.decode import decode
from fretsaw.formats.orc.fields import Fields
from fretsaw.formats.orc.file import OrcFile
from fretsaw.formats.orc.footer import Footer, read_footer
from fretsaw.formats.orc.metadata import MalformedOrc
from fretsaw.formats.orc.statistics import bounds_of, hold
from fretsaw.formats.orc.stream_cut import CannotCut
from fretsaw.formats.shared import ARROW_ERRORS, Leaves, OutOfRange, decode_together
from fretsaw.model.arrays import pick
from fretsaw.model.blocks import Block, Bounds, PageIndex, row_counts
from fretsaw.model.schema import SchemaNode
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.requests import Steps

_WRITERS = ("ORC Java", "ORC C++", "Presto", "Scritchley Go", "Trino", "CUDF")
"""What the format calls its writers, by their numbers."""
_OUT_OF_RANGE = "out of range for nanosecond resolution"
"""What Arrow says of times before 1677 and after 2262."""
_FAILURES = (*ARROW_ERRORS, CannotCut, MalformedOrc)


def open_file(
    name: str, size: int, tail: pa.Buffer, options: ReadOptions, like: FileReader | None
) -> Steps["OrcReader"]:
    """Read the footer of an ORC file; if it is `like` another one, they share their fields."""
    footer = yield from read_footer(name, size, tail)
    if isinstance(like, OrcReader) and like.fields.fit(footer):
        fields = like.fields
    else:
        fields = Fields(footer, options.timestamps)
    return OrcReader(OrcFile(name, footer, fields))


class OrcReader(FileReader):
    """One ORC file."""

    format = "orc"
    index_name = "row index"

    def __init__(self, file: OrcFile) -> None:
        self._file = file
        self._compiled = compiled_decoder()
        self.footer_size = file.footer.size
        self.blocks = file.footer.blocks
        self.fields: Fields = file.fields
        self.field_names = file.fields.names
        self.metadata = {item.name: item.value for item in file.footer.message.metadata}
        self.created_by = _writer_of(file.footer)

    def describe(self, positions: Sequence[int]) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
        with self._file.errors.of("its schema"):
            known = self.fields.describe(positions)
        schema = pa.schema([field for field, _ in known], self.metadata or None)
        return schema, tuple(node for _, node in known)

    def open_blocks(self, blocks: Sequence[Block]) -> Steps[list[StripeReader]]:
        return open_stripes(self._file, blocks)

    def chunk_size(self, block: Block, leaf: SchemaNode) -> int:
        return chunk_size(self._file, block, leaf)

    def block_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        return self._file.stripe_bounds(blocks, leaf)

    def describe_chunks(
        self, blocks: Sequence[BlockReader], leaf: SchemaNode
    ) -> Steps[tuple[list[ChunkFacts], Bounds]]:
        stripes, of_file = cast(Sequence[StripeReader], blocks), [block.block for block in blocks]
        stored = yield from self._file.stripe_statistics(of_file, leaf)
        bounds = bounds_of(stored, row_counts(of_file), leaf)
        facts = [
            stripe.describe_chunk(leaf, statistics, bounds.between(place, place + 1))
            for place, (stripe, statistics) in enumerate(zip(stripes, stored, strict=True))
        ]
        return facts, bounds

    def page_bounds(
        self, blocks: Sequence[BlockReader], leaf: SchemaNode
    ) -> Steps[tuple[list[PageIndex | None], Bounds]]:
        return bounds_of_strides(cast(Sequence[StripeReader], blocks), leaf)

    def decode(self, leaves: Sequence[Sequence[Part]], allocate: Allocate) -> list[pa.ChunkedArray]:
        parts = cast(Leaves[OrcPart], leaves)
        if self._compiled is None:
            return self._decode_by_arrow(parts, allocate)
        by_kernels = self._compiled.decode(parts)
        rest = [part for part, array in zip(parts, by_kernels, strict=True) if array is None]
        by_arrow = iter(self._decode_by_arrow(rest, allocate) if rest else ())
        return [next(by_arrow) if array is None else array for array in by_kernels]

    def _decode_by_arrow(self, parts: Leaves[OrcPart], allocate: Allocate) -> list[pa.ChunkedArray]:
        def decode_all(leaves: Leaves[OrcPart]) -> list[pa.ChunkedArray]:
            columns = decode(leaves, self._file.footer, allocate)
            for parts, column in zip(leaves, columns, strict=True):
                _require_claims(parts, column)
            return [_picked(*pair) for pair in zip(leaves, columns, strict=True)]

        return decode_together(parts, decode_all, _FAILURES, self._raise)

    def _raise(self, part: OrcPart, error: Exception) -> pa.ChunkedArray:
        """What is wrong with a part: the index that led to it, or its own bytes."""
        if part.claims is not None:
            why = f" ({error})" if isinstance(error, CannotCut | MalformedOrc) else ""
            raise Misplaced(f"the row index does not fit its streams{why}") from None
        with self._file.errors.of(chunk_name(part.leaf, part.block)):
            if _OUT_OF_RANGE in str(error):
                raise OutOfRange(
                    "times that do not fit into nanoseconds; "
                    'read them as microseconds with fs.scan(..., timestamps="us")'
                )
            raise error


def _writer_of(footer: Footer) -> str:
    """The library that wrote a file, and its version if the file says so."""
    number, version = footer.message.writer, footer.message.software_version
    name = _WRITERS[number] if number < len(_WRITERS) else f"ORC writer {number}"
    return f"{name} {version.decode(errors='replace')}".rstrip()


def _require_claims(parts: Sequence[OrcPart], column: pa.ChunkedArray) -> None:
    """What is decoded must be what the row index says, or it led to other values."""
    before = 0
    for part in parts:
        rows, before = column.slice(before, part.rows), before + part.rows
        # Arrow does not tell how many values a union has.
        if part.claims is None or part.leaf.physical_type == "UNION":
            continue
        claims = [statistics for segment in part.claims for statistics in segment]
        if not hold(claims, _innermost(rows), part.leaf):
            raise CannotCut("values that are not those of its statistics")


def _innermost(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The leaf at the end of a chain, without what lies in null structs and lists."""
    chunks = []
    for chunk in column.chunks:
        array = chunk
        while pa.types.is_struct(array.type) or pa.types.is_list(array.type):
            array = array.flatten()[0] if pa.types.is_struct(array.type) else array.flatten()
        chunks.append(array)
    return pa.chunked_array(chunks)


def _picked(parts: Sequence[OrcPart], column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The wanted rows of a leaf, of all that was decoded."""
    before = np.cumsum([0, *(part.rows for part in parts)])
    starts = np.concatenate([p.starts + n for p, n in zip(parts, before, strict=False)])
    ends = np.concatenate([p.ends + n for p, n in zip(parts, before, strict=False)])
    return pick(column, starts, ends)
