"""The footer of a Parquet file: found, decoded and checked.

In comes the end of the file, out goes a `Footer`: its outline with the row groups as blocks and the
schema elements divided into top-level fields. Nothing in it is believed before it fits into the
file.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.outline import NO_TYPE, Outline, RowGroup, read_outline
from fretsaw.model.blocks import Block, Int64s
from fretsaw.storage.requests import Request, Steps

_TRAILER = 8  # the footer's length in four bytes, then the magic
_SIGNATURE = 28  # behind a footer in the clear of a file with encrypted columns


@dataclass(frozen=True, slots=True)
class FieldSpans:
    """The top-level fields: for each its schema elements from one to another, its first leaf."""

    begins: Int64s
    ends: Int64s
    leaves: Int64s
    num_leaves: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says about itself, before any index is read."""

    outline: Outline
    spans: FieldSpans
    blocks: tuple[Block, ...]
    key_values: dict[bytes, bytes]
    data: bytes
    """The footer as it is stored."""


def read_footer(name: str, size: int, tail: pa.Buffer, like: Footer | None = None) -> Steps[Footer]:
    """Decode the footer; `tail` is the end of the file, as much of it as is at hand.

    If its schema is that of another one, they share their spans.
    """
    known = tail.to_pybytes()
    trailer = known[-_TRAILER:]
    if trailer.endswith(metadata.ENCRYPTED_MAGIC):
        raise FileFormatError(
            f"{name}: its footer is encrypted; fretsaw has no keys, decrypt the file first"
        )
    length = int.from_bytes(trailer[:4], "little")
    end = size - _TRAILER
    if len(trailer) < _TRAILER or length > end:
        raise FileFormatError(
            f"{name}: claims a footer of {length} bytes in a file of {size}; "
            f"it is truncated or corrupt, write or copy it again"
        )
    stored = known[-_TRAILER - length : -_TRAILER]
    if len(stored) < length:
        (missing,) = yield Request([(end - length, length - len(stored))], "footer")
        stored = missing.to_pybytes() + stored
    try:
        outline = read_outline(stored)
        if length - outline.length not in (0, _SIGNATURE):
            raise _Invalid(f"it ends after {outline.length} of its {length} bytes")
        return _checked(size, outline, stored, like)
    except (metadata.MalformedThrift, _Invalid) as error:
        raise FileFormatError(
            f"{name}: the footer at offset {end - length} is corrupt ({error}); "
            f"write or copy the file again"
        ) from None


class _Invalid(ValueError):
    """What makes a footer impossible."""


def _checked(size: int, outline: Outline, stored: bytes, like: Footer | None) -> Footer:
    if outline.num_rows is None:
        raise _Invalid("the number of rows is missing")
    if like is not None and outline.has_schema_of(like.outline):
        spans = like.spans
    else:
        spans = _spans(outline)
    first_row = 0
    blocks = []
    for ordinal, group in enumerate(outline.row_groups):
        block = _block(outline, ordinal, first_row, group, spans.num_leaves, size)
        blocks.append(block)
        first_row += block.num_rows
    return Footer(
        outline=outline,
        spans=spans,
        blocks=tuple(blocks),
        key_values={key: value or b"" for key, value in outline.key_values if key},
        data=stored,
    )


def _spans(outline: Outline) -> FieldSpans:
    names, types, children = outline.names, outline.types, outline.children
    if not names:
        raise _Invalid("the schema is empty")
    if None in names[1:]:
        raise _Invalid(f"schema element {names.index(None, 1)} has no name")
    below, is_leaf = children[1:], children[1:] == 0
    impossible = (below < 0) | (is_leaf & (types[1:] == NO_TYPE))
    if impossible.any():
        position = 1 + int(impossible.argmax())
        raise _Invalid(f"schema element {names[position]!r} is a group without children")
    # A field ends where one element more was met than its groups, and those before it, wait for.
    waiting = np.minimum.accumulate(np.concatenate(([0], np.cumsum(below - 1))))
    ends = 2 + np.flatnonzero(np.diff(waiting))
    begins = np.concatenate(([1], ends))
    if len(ends) != children[0] or begins[-1] != len(names):
        raise _Invalid("the schema has another number of elements than its groups claim")
    leaves = np.concatenate(([0], np.cumsum(is_leaf)))
    return FieldSpans(begins[:-1], ends, leaves[begins[:-1] - 1], int(leaves[-1]))


def _block(
    outline: Outline, ordinal: int, first_row: int, group: RowGroup, leaves: int, size: int
) -> Block:
    if group.num_columns != leaves:
        raise _Invalid(f"row group {ordinal} does not have the {leaves} columns of the schema")
    num_rows, compressed = group.num_rows, group.total_compressed_size
    if num_rows is None or num_rows < 0 or first_row + num_rows >= 1 << 63:
        raise _Invalid(f"row group {ordinal} claims {num_rows} rows")
    offset = (group.file_offset or 0) if group.start is None else group.start
    if not num_rows or compressed is None:
        chunks = [outline.chunk(metadata.ColumnChunk, ordinal, leaf) for leaf in range(leaves)]
        columns = [chunk.meta_data for chunk in chunks if chunk.meta_data]
        if not num_rows and any(column.num_values for column in columns):
            raise _Invalid(f"row group {ordinal} claims no rows, but has values")
        if compressed is None:
            compressed = sum(column.total_compressed_size or 0 for column in columns)
    if not 0 <= compressed <= size:
        raise _Invalid(f"row group {ordinal} claims {compressed} bytes")
    if not 0 <= offset <= size:
        raise _Invalid(f"row group {ordinal} begins at {offset}")
    return Block(
        ordinal, first_row, num_rows, offset, compressed, max(0, group.total_byte_size or 0)
    )
