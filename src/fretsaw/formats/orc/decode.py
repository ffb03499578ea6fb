"""The small file: streams that were cut out, under new footers, for pyarrow to read.

Each leaf becomes a field of its own, with the columns of its chain around it; maps become lists,
since a map cannot be without its keys. Each segment becomes a stripe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.orc

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.cut import OrcPart
from fretsaw.formats.orc.footer import Footer
from fretsaw.formats.orc.metadata import DATA, KINDS, NONE, SECONDARY, Codec, Pieces, messages
from fretsaw.formats.orc.sizes import require_sizes
from fretsaw.formats.orc.stream_cut import begun
from fretsaw.formats.orc.times import times
from fretsaw.storage.buffer_pool import Allocate

Streams: TypeAlias = dict[tuple[int, int], Pieces]
"""By kind and column."""

_LIST, _MAP, _STRUCT = KINDS.index("LIST"), KINDS.index("MAP"), KINDS.index("STRUCT")
_DECIMAL, _LONG = KINDS.index("DECIMAL"), KINDS.index("LONG")
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


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """A leaf of a small file."""

    parts: Sequence[OrcPart]
    streams: Sequence[Streams]
    """Of all segments of its parts."""
    is_number: bool = False
    """Whether its values are taken for integers."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Those of its segments."""
        return tuple(segment.rows for part in self.parts for segment in part.segments)


def decode(
    leaves: Sequence[Sequence[OrcPart]], footer: Footer, allocate: Allocate
) -> list[pa.ChunkedArray]:
    """For each leaf, an array of all rows of its segments, as its chain."""
    stored = [_stored(parts) for parts in leaves]
    columns = iter(_decoded([one for of_leaf in stored for one in of_leaf], footer, allocate))
    found = []
    for parts, of_leaf in zip(leaves, stored, strict=True):
        values = [next(columns) for _ in of_leaf]
        found.append(values[0] if len(values) == 1 else times(parts, *values))
    return found


def _stored(parts: Sequence[OrcPart]) -> list[_Stored]:
    """A leaf of a small file; of times that Arrow has no room for, their seconds and the rest."""
    streams = [of_segment for part in parts for of_segment in _begun(part)]
    kind = parts[0].leaf.arrow_type
    if not pa.types.is_timestamp(kind) or kind.unit == "ns":
        return [_Stored(parts, streams)]
    column = parts[0].columns[-1]
    both = ((DATA, SECONDARY), (SECONDARY, DATA))
    return [
        _Stored(parts, [_as_data(one, column, *kinds) for one in streams], is_number=True)
        for kinds in both
    ]


def _as_data(streams: Streams, column: int, kept: int, left: int) -> Streams:
    """The streams of a column of which one becomes its data and another is left out."""
    return {
        (DATA if key == (kept, column) else key[0], key[1]): data
        for key, data in streams.items()
        if key != (left, column)
    }


def _decoded(
    stored: Sequence[_Stored], footer: Footer, allocate: Allocate
) -> list[pa.ChunkedArray]:
    """For each leaf of a small file, an array of all its rows."""
    found: list[pa.ChunkedArray | None] = [None] * len(stored)
    # Stripes have rows in common: leaves that are cut in other ways are files of their own.
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, one in enumerate(stored):
        groups.setdefault(one.rows, []).append(place)
    for rows, places in groups.items():
        body = _small_file([stored[place] for place in places], rows, footer, allocate)
        table = pa.orc.ORCFile(pa.BufferReader(body)).read()
        for place, column in zip(places, table.columns, strict=True):
            column.validate()
            found[place] = column
    return [column for column in found if column is not None]


def _begun(part: OrcPart) -> list[Streams]:
    """For each segment of a part its streams, which begin with its first value."""
    codec = part.streams.codec
    dictionaries = {key: codec.within(data) for key, data in part.dictionaries.items()}
    found = []
    for segment in part.segments:
        stored = segment.streams
        streams: Streams
        if part.claims is not None:
            starts = [(c, stored[c.kind, c.column]) for c in segment.cuts]
            streams = {(c.kind, c.column): begun(c, data, codec) for c, data in starts}
        else:
            streams = {key: codec.within(data) for key, data in stored.items()}
        streams |= dictionaries
        require_sizes(part.streams, segment.rows, streams, is_cut=part.claims is not None)
        found.append(streams)
    return found


def _small_file(
    stored: Sequence[_Stored], rows: Sequence[int], footer: Footer, allocate: Allocate
) -> pa.Buffer:
    """A file with the fields "0", "1", ..., and a stripe for each segment."""
    types, numbers = _types(stored, footer)
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
    segments = [
        list(zip([p for p in one.parts for _ in p.segments], one.streams, strict=True))
        for one in stored
    ]
    for stripe, count in enumerate(rows):
        parts = [of_leaf[stripe] for of_leaf in segments]
        stripe_footer = messages["StripeFooter"](timezone=parts[0][0].streams.stripe.timezone)
        stripe_footer.columns.add()  # the root
        size = 0
        for (part, of_segment), renumbered in zip(parts, numbers, strict=True):
            for column in part.columns:
                stripe_footer.columns.append(part.streams.stripe.encodings[column])
            for (kind, column), data in of_segment.items():
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


def _types(leaves: Sequence[_Stored], footer: Footer) -> tuple[list[Any], list[dict[int, int]]]:
    """The types of a small file, and the new numbers of the columns of each leaf."""
    root = messages["Type"](kind=_STRUCT)
    types, numbers = [root], []
    for place, leaf in enumerate(leaves):
        part = leaf.parts[0]
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
        if leaf.is_number:
            types[-1].kind = _LONG
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
