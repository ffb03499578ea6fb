"""A column chunk: one leaf of one row group, held against the file before it is read."""

from dataclasses import dataclass

from fretsaw.formats.parquet.chain import Chain
from fretsaw.formats.parquet.outline import StoredChunk, chunk_start
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
    stored: StoredChunk, block: Block, leaf: SchemaNode, chain: Chain, size: int, more: int
) -> Chunk:
    """The chunk of a leaf, as the footer of a file of this size has it.

    It may go on for some bytes `more` than that says.
    """
    if stored.is_encrypted or not stored.has_column:
        raise UnreadableChunk("is encrypted; select other columns or decrypt it first")
    if stored.file_path:
        raise UnreadableChunk(f"is stored in another file, {stored.file_path!r}; scan that")
    start = chunk_start(stored)
    end = start + (stored.compressed_size or 0)
    values, codec, kind = stored.num_values, stored.codec, stored.physical_type
    if not 0 <= start < end <= size or values is None or values < 0:
        raise UnreadableChunk(
            f"claims {values} values in the bytes {start} to {end} of a file of {size}; "
            f"it is truncated or corrupt, write or copy it again"
        )
    if codec is None or kind is None or kind != chain.elements[-1].type:
        raise UnreadableChunk(
            "has no codec, or a type other than in the schema; "
            "it is corrupt, write or copy it again"
        )
    path = stored.path
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
    end = min(end + more, size)
    return Chunk(leaf, chain, kind, block.ordinal, values, codec, start, end)
