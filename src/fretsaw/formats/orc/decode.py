"""The small file: streams that were cut out, under new footers, for pyarrow to read.

Each leaf becomes a field of its own, with the columns of its chain around it; maps become lists,
since a map cannot be without its keys. Each segment becomes a stripe.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.orc

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.cut import OrcPart
from fretsaw.formats.orc.footer import Footer
from fretsaw.formats.orc.metadata import KINDS, NONE, Codec, messages
from fretsaw.storage.buffer_pool import Allocate

_LIST, _MAP, _STRUCT = KINDS.index("LIST"), KINDS.index("MAP"), KINDS.index("STRUCT")
_DECIMAL = KINDS.index("DECIMAL")
_VERSION = (0, 12)
_UNSTABLE = (1, 9999)
"""Where this version of the format differs: short decimals are runs of integers."""


def empty_file(types: Any, columns: Sequence[int]) -> pa.Buffer:
    """A file of no rows with these top-level columns as its fields."""
    root = messages["Type"](kind=_STRUCT)
    found = [root]
    for place, column in enumerate(columns):
        root.field_names.append(str(place).encode())
        root.subtypes.append(len(found))
        _copy(types, column, found)
    footer = messages["Footer"](header_length=len(metadata.MAGIC), types=found)
    return pa.py_buffer(metadata.MAGIC + _ending(footer, Codec(NONE, 0), 0, _VERSION))


def _copy(types: Any, column: int, found: list[Any]) -> None:
    """A column and those inside it, under new numbers."""
    copied = messages["Type"]()
    copied.CopyFrom(types[column])
    del copied.subtypes[:]
    found.append(copied)
    for child in types[column].subtypes:
        copied.subtypes.append(len(found))
        _copy(types, child, found)


def decode(
    leaves: Sequence[Sequence[OrcPart]], footer: Footer, allocate: Allocate
) -> list[pa.ChunkedArray]:
    """For each leaf, an array of all rows of its segments, as its chain."""
    found: list[pa.ChunkedArray | None] = [None] * len(leaves)
    # Stripes have rows in common: leaves that are cut in other ways are files of their own.
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, parts in enumerate(leaves):
        rows = tuple(segment.rows for part in parts for segment in part.segments)
        groups.setdefault(rows, []).append(place)
    for rows, places in groups.items():
        body = _small_file([leaves[place] for place in places], rows, footer, allocate)
        table = pa.orc.ORCFile(pa.BufferReader(body)).read()
        for place, column in zip(places, table.columns, strict=True):
            column.validate()
            found[place] = column
    return [column for column in found if column is not None]


def _small_file(
    leaves: Sequence[Sequence[OrcPart]],
    rows: Sequence[int],
    footer: Footer,
    allocate: Allocate,
) -> pa.Buffer:
    """A file with the fields "0", "1", ..., and a stripe for each segment."""
    types, numbers = _types([parts[0] for parts in leaves], footer)
    pieces: list[bytes | memoryview] = [metadata.MAGIC]
    position = len(metadata.MAGIC)
    message = messages["Footer"](
        header_length=position,
        types=types,
        number_of_rows=sum(rows),
        writer=footer.message.writer,
        calendar=footer.message.calendar,
        software_version=footer.message.software_version,
    )
    segments = [[(p, segment) for p in parts for segment in p.segments] for parts in leaves]
    for stripe, count in enumerate(rows):
        parts = [of_leaf[stripe] for of_leaf in segments]
        stripe_footer = messages["StripeFooter"](timezone=parts[0][0].streams.stripe.timezone)
        stripe_footer.columns.add()  # the root
        size = 0
        for (part, segment), renumbered in zip(parts, numbers, strict=True):
            for column in part.columns:
                stripe_footer.columns.append(part.streams.stripe.encodings[column])
            for (kind, column), data in segment.streams.items():
                length = sum(map(len, data))
                stripe_footer.streams.add(kind=kind, column=renumbered[column], length=length)
                pieces += data
                size += length
        end = footer.codec.as_stored(stripe_footer.SerializeToString())
        pieces.append(end)
        message.stripes.add(
            offset=position, data_length=size, footer_length=len(end), number_of_rows=count
        )
        position += size + len(end)
    message.content_length = position
    is_unstable = tuple(footer.postscript.version) == _UNSTABLE
    has_decimals = any(one.kind == _DECIMAL for one in types)  # Arrow warns of it
    version = _UNSTABLE if is_unstable and has_decimals else _VERSION
    pieces.append(_ending(message, footer.codec, footer.postscript.writer_version, version))
    body = allocate(sum(map(len, pieces)))
    view, place = memoryview(body).cast("B"), 0
    for piece in pieces:
        view[place : place + len(piece)] = piece
        place += len(piece)
    return body


def _types(parts: Sequence[OrcPart], footer: Footer) -> tuple[list[Any], list[dict[int, int]]]:
    """The types of a small file, and the new numbers of the columns of each leaf."""
    root = messages["Type"](kind=_STRUCT)
    types, numbers = [root], []
    for place, part in enumerate(parts):
        root.field_names.append(str(place).encode())
        root.subtypes.append(len(types))
        renumbered = {column: len(types) + n for n, column in enumerate(part.columns)}
        for column in part.columns:
            stored = footer.types[column]
            copied = messages["Type"]()
            copied.CopyFrom(stored)
            inside = [(n, child) for n, child in enumerate(stored.subtypes) if child in renumbered]
            del copied.subtypes[:]
            copied.subtypes.extend(renumbered[child] for _, child in inside)
            if stored.kind == _STRUCT:
                del copied.field_names[:]
                copied.field_names.extend(stored.field_names[n] for n, _ in inside)
            if stored.kind == _MAP and len(inside) < len(stored.subtypes):
                copied.kind = _LIST
            types.append(copied)
        numbers.append(renumbered)
    return types, numbers


def _ending(footer: Any, codec: Codec, writer_version: int, version: Sequence[int]) -> bytes:
    """Footer and postscript."""
    stored = codec.as_stored(footer.SerializeToString())
    postscript = messages["PostScript"](
        footer_length=len(stored),
        compression=codec.kind,
        block_size=codec.block_size,
        version=version,
        metadata_length=0,
        writer_version=writer_version,
        magic=metadata.MAGIC,
    )
    last = bytes(postscript.SerializeToString())
    return stored + last + bytes([len(last)])
