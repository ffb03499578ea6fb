"""The footer of a Parquet file: found, decoded and checked.

In comes the end of the file, out goes a `Footer`: the thrift metadata with its row groups as
blocks and its schema elements divided into top-level fields. Nothing in it is believed before it
fits into the file.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.parquet import metadata
from fretsaw.model.blocks import Block
from fretsaw.storage.requests import Request, Steps

_TRAILER = 8  # the footer's length in four bytes, then the magic
_SIGNATURE = 28  # behind a footer in the clear of a file with encrypted columns


class FieldSpan(NamedTuple):
    """The schema elements of a top-level field, from `element` to `end`, and its first leaf."""

    element: int
    end: int
    leaf: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says about itself, before any index is read."""

    elements: list[Any]
    fields: list[FieldSpan]
    row_groups: list[Any]
    blocks: tuple[Block, ...]
    key_values: dict[bytes, bytes]
    created_by: str | None
    data: bytes
    """The footer as it is stored."""


def read_footer(name: str, size: int, tail: pa.Buffer) -> Steps[Footer]:
    """Decode the footer; `tail` is the end of the file, as much of it as is at hand."""
    trailer = tail.to_pybytes()[-_TRAILER:]
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
    if length + _TRAILER > tail.size:
        (data,) = yield Request([(end - length, length)], "footer")
    else:
        data = tail.slice(tail.size - _TRAILER - length, length)
    try:
        decoded: Any
        stored = data.to_pybytes()
        decoded, read = metadata.StructReader(stored).read(metadata.FileMetaData)
        if length - read not in (0, _SIGNATURE):
            raise _Invalid(f"it ends after {read} of its {length} bytes")
        return _checked(size, decoded, stored)
    except (metadata.MalformedThrift, _Invalid) as error:
        raise FileFormatError(
            f"{name}: the footer at offset {end - length} is corrupt ({error}); "
            f"write or copy the file again"
        ) from None


class _Invalid(ValueError):
    """What makes a footer impossible."""


def _checked(size: int, decoded: Any, stored: bytes) -> Footer:
    if decoded.schema is None or decoded.row_groups is None or decoded.num_rows is None:
        raise _Invalid("the schema, the row groups or their rows are missing")
    elements, row_groups = decoded.schema, decoded.row_groups
    fields, leaves = _fields(elements)
    first_row = 0
    blocks = []
    for ordinal, group in enumerate(row_groups):
        block = _block(ordinal, first_row, group, leaves, size)
        blocks.append(block)
        first_row += block.num_rows
    return Footer(
        elements=elements,
        fields=fields,
        row_groups=row_groups,
        blocks=tuple(blocks),
        key_values={kv.key: kv.value or b"" for kv in decoded.key_value_metadata or [] if kv.key},
        created_by=decoded.created_by,
        data=stored,
    )


def _fields(elements: list[Any]) -> tuple[list[FieldSpan], int]:
    """The spans of the top-level fields, and how many leaves there are."""
    if not elements:
        raise _Invalid("the schema is empty")
    if not any(element.num_children for element in elements[1:]):  # there may be thousands
        return _flat_fields(elements)
    fields = []
    position, leaf = 1, 0
    for _ in range(elements[0].num_children or 0):
        begin, first_leaf, pending = position, leaf, 1
        while pending:
            if position == len(elements):
                raise _Invalid("the schema has fewer elements than its groups claim")
            element = elements[position]
            if element.name is None:
                raise _Invalid(f"schema element {position} has no name")
            children = element.num_children or 0
            if children < 0 or (not children and element.type is None):
                raise _Invalid(f"schema element {element.name!r} is a group without children")
            leaf += not children
            pending += children - 1
            position += 1
        fields.append(FieldSpan(begin, position, first_leaf))
    if position != len(elements):
        raise _Invalid("the schema has more elements than its groups claim")
    return fields, leaf


def _flat_fields(elements: list[Any]) -> tuple[list[FieldSpan], int]:
    count = len(elements) - 1
    if count != (elements[0].num_children or 0):
        raise _Invalid("the schema has another number of elements than its root claims")
    if any(element.name is None or element.type is None for element in elements[1:]):
        raise _Invalid("a schema element has no name or no type")
    return [FieldSpan(leaf + 1, leaf + 2, leaf) for leaf in range(count)], count


def _block(ordinal: int, first_row: int, group: Any, leaves: int, size: int) -> Block:
    columns = group.columns
    if columns is None or len(columns) != leaves:
        raise _Invalid(f"row group {ordinal} does not have the {leaves} columns of the schema")
    num_rows = group.num_rows
    if num_rows is None or num_rows < 0 or first_row + num_rows >= 1 << 63:
        raise _Invalid(f"row group {ordinal} claims {num_rows} rows")
    if not num_rows and any(c.meta_data and c.meta_data.num_values for c in columns):
        raise _Invalid(f"row group {ordinal} claims no rows, but has values")
    compressed = group.total_compressed_size
    if compressed is None:
        sizes = [c.meta_data.total_compressed_size or 0 for c in columns if c.meta_data]
        compressed = sum(sizes)
    if not 0 <= compressed <= size:
        raise _Invalid(f"row group {ordinal} claims {compressed} bytes")
    first = columns[0].meta_data if columns else None
    offset = chunk_start(first) if first else group.file_offset or 0
    if not 0 <= offset <= size:
        raise _Invalid(f"row group {ordinal} begins at {offset}")
    return Block(
        ordinal, first_row, num_rows, offset, compressed, max(0, group.total_byte_size or 0)
    )


def chunk_start(column: Any) -> int:
    """Where a column chunk begins: at its dictionary page, if it has one.

    An offset of 0 means that there is none, and one behind the data is not believed.
    """
    data: int = column.data_page_offset or 0
    dictionary: int = column.dictionary_page_offset or 0
    return dictionary if 0 < dictionary < data else data
