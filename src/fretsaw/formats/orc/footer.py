"""The end of an ORC file: postscript, footer and where its stripes are, found and checked.

In comes the end of the file, out goes a `Footer`. Nothing in it is believed before it fits into
the file.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.metadata import Codec, MalformedOrc
from fretsaw.model.blocks import Block
from fretsaw.storage.requests import Request, Steps

_DEEPEST = 100  # a hostile file could nest deeper than Python recurses


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says about itself, before any stripe is looked into."""

    types: Any
    """The types of all columns, in pre-order; the first is the root."""
    stripes: Any
    blocks: tuple[Block, ...]
    stride: int
    """Rows for each entry of a row index; 0 if there are none."""
    codec: Codec
    postscript: Any
    message: Any
    """All of the footer."""
    statistics_place: tuple[int, int]
    """Where the statistics of the stripes are."""
    size: int


def read_footer(name: str, size: int, tail: pa.Buffer) -> Steps[Footer]:
    """Decode the footer; `tail` is the end of the file, as much of it as is at hand."""
    end = tail.to_pybytes()
    length = end[-1]
    if length + 1 > len(end) and length < size:
        (tail,) = yield Request([(size - length - 1, length + 1)], "footer")
        end = tail.to_pybytes()
    try:
        if length + 1 > len(end):
            raise MalformedOrc(f"it claims a postscript of {length} bytes")
        postscript = metadata.decode("PostScript", end[-1 - length : -1])
        if postscript.compression == metadata.LZO:
            raise FileFormatError(
                f"{name}: is compressed with LZO, which fretsaw does not read; "
                f"write it with zlib, zstd, snappy or lz4"
            )
        codec = metadata.codec_of(postscript.compression, postscript.block_size)
        before = size - 1 - length
        begin = before - postscript.footer_length
        statistics = (begin - postscript.metadata_length, postscript.metadata_length)
        if statistics[0] < 0:
            raise MalformedOrc(f"it claims a footer of {postscript.footer_length} bytes")
        if size - begin > len(end):
            (stored,) = yield Request([(begin, postscript.footer_length)], "footer")
        else:
            stored = tail.slice(len(end) - (size - begin), postscript.footer_length)
        message = metadata.decode("Footer", codec.unpacked(stored.to_pybytes()))
        _require_tree(message.types)
        _require_all_stripes(message, statistics[0])
        return Footer(
            types=message.types,
            stripes=message.stripes,
            blocks=_blocks(message.stripes, size, codec),
            stride=message.row_index_stride,
            codec=codec,
            postscript=postscript,
            message=message,
            statistics_place=statistics,
            size=size - begin,
        )
    except MalformedOrc as error:
        raise FileFormatError(
            f"{name}: its footer is corrupt ({error}); write or copy the file again"
        ) from None


def _blocks(stripes: Any, size: int, codec: Codec) -> tuple[Block, ...]:
    blocks: list[Block] = []
    first_row = 0
    for ordinal, stripe in enumerate(stripes):
        stored = stripe.index_length + stripe.data_length + stripe.footer_length
        if stripe.offset + stored > size or first_row + stripe.number_of_rows >= 1 << 63:
            raise MalformedOrc(
                f"stripe {ordinal} claims {stripe.number_of_rows} rows in {stored} bytes at "
                f"{stripe.offset}"
            )
        if not stripe.HasField("number_of_rows") or not stripe.HasField("footer_length"):
            raise MalformedOrc(f"stripe {ordinal} does not say how many rows it has, or no footer")
        if stripe.number_of_rows and not stripe.footer_length:
            raise MalformedOrc(f"stripe {ordinal} has no footer")
        plain = stored if codec.kind == metadata.NONE else None
        blocks.append(
            Block(ordinal, first_row, stripe.number_of_rows, stripe.offset, stored, plain)
        )
        first_row += stripe.number_of_rows
    return tuple(blocks)


def _require_all_stripes(footer: Any, end: int) -> None:
    """Too few rows and bytes that belong to no stripe: a damaged footer hides one."""
    stripes = footer.stripes
    rows = sum(stripe.number_of_rows for stripe in stripes)
    covered = sum(s.index_length + s.data_length + s.footer_length for s in stripes)
    fewer = rows < footer.number_of_rows or not stripes
    if fewer and covered + len(metadata.MAGIC) < end:
        raise MalformedOrc(f"it names stripes of {rows} rows out of {footer.number_of_rows}")


def _require_tree(types: Any) -> None:
    """Columns are numbered in pre-order: each is the child of one that comes before it."""
    if not types or metadata.KINDS.index("STRUCT") != types[0].kind:
        raise MalformedOrc("its root is no struct")
    following = [(0, 0)]
    for column, found in enumerate(types):
        expected, depth = following.pop() if following else (-1, 0)
        if expected != column or len(following) > len(types):
            raise MalformedOrc(f"column {column} is in no order")
        if depth > _DEEPEST:
            raise MalformedOrc(f"column {column} is nested more than {_DEEPEST} levels deep")
        kind = metadata.KINDS[found.kind] if found.kind < len(metadata.KINDS) else ""
        children = {"LIST": 1, "MAP": 2}.get(kind)
        nests = kind in ("LIST", "MAP", "STRUCT", "UNION")
        if not kind or (children or len(found.subtypes)) != len(found.subtypes):
            raise MalformedOrc(f"column {column} is of no known type")
        if (not nests and len(found.subtypes)) or (
            kind == "STRUCT" and len(found.field_names) != len(found.subtypes)
        ):
            raise MalformedOrc(f"column {column} has fields that it cannot have")
        if any(_is_no_text(name) for name in found.field_names):
            raise MalformedOrc(f"column {column} has fields whose names are no text")
        following += [(child, depth + 1) for child in reversed(found.subtypes)]
    if following:
        raise MalformedOrc(f"column {following[-1][0]} is missing")


def _is_no_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return True
    return False
