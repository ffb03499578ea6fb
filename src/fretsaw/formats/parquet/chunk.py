"""A column chunk: one leaf of one row group, held against the file before it is read."""

from dataclasses import dataclass
from typing import Any

from fretsaw.formats.parquet.chain import Chain
from fretsaw.formats.parquet.outline import chunk_start
from fretsaw.formats.parquet.writer import Writer
from fretsaw.model.blocks import Block
from fretsaw.model.schema import SchemaNode


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: one leaf of one row group, and where its bytes are."""

    leaf: SchemaNode
    chain: Chain
    physical_type: int
    block: int
    num_values: int
    codec: int
    start: int
    end: int


class UnreadableChunk(ValueError):
    """What keeps a chunk from being read, and what to do about it."""


def chunk_of(
    stored: Any, block: Block, leaf: SchemaNode, chain: Chain, size: int, writer: Writer
) -> Chunk:
    """The chunk of a leaf, as the footer of a file of this size has it."""
    if stored.crypto_metadata is not None or stored.meta_data is None:
        raise UnreadableChunk("is encrypted; select other columns or decrypt it first")
    if stored.file_path:
        raise UnreadableChunk(f"is stored in another file, {stored.file_path!r}; scan that")
    column = stored.meta_data
    start = chunk_start(column)
    end = start + (column.total_compressed_size or 0)
    values = column.num_values
    if not 0 <= start < end <= size or values is None or values < 0:
        raise UnreadableChunk(
            f"claims {values} values in the bytes {start} to {end} of a file of {size}; "
            f"it is truncated or corrupt, write or copy it again"
        )
    if column.codec is None or column.type != chain.elements[-1].type:
        raise UnreadableChunk(
            "has no codec, or a type other than in the schema; "
            "it is corrupt, write or copy it again"
        )
    path = column.path_in_schema
    if path is not None and path != [name.encode() for name in leaf.physical_path]:
        raise UnreadableChunk(
            f"names itself {b'.'.join(path).decode(errors='replace')!r}; "
            f"the footer is corrupt, write or copy the file again"
        )
    if values != block.num_rows and not leaf.is_repeated:
        raise UnreadableChunk(
            f"claims {values} values for {block.num_rows} rows; "
            f"it is corrupt, write or copy it again"
        )
    return Chunk(
        leaf=leaf,
        chain=chain,
        physical_type=column.type,
        block=block.ordinal,
        num_values=values,
        codec=column.codec,
        start=start,
        end=min(end + writer.missing_bytes, size),
    )
