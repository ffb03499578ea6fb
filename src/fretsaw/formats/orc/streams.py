"""The streams of a stripe: where they are, and what each holds.

A stripe's footer names its streams in the order in which they lie, and how its columns are encoded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.metadata import (
    DATA,
    DICTIONARY,
    DICTIONARY_DATA,
    DICTIONARY_V2,
    DIRECT,
    LENGTH,
    PRESENT,
    ROW_INDEX,
    SECONDARY,
    Codec,
    MalformedOrc,
)
from fretsaw.model.blocks import Block
from fretsaw.model.schema import SchemaNode

Coding: TypeAlias = Literal["bytes", "byte runs", "bits", "signed", "unsigned"]
"""What a stream holds: bytes as they are, or runs of bytes, bits or integers."""
Columns: TypeAlias = Sequence[tuple[int, str]]
"""The columns of a leaf's chain, from its field down, and their kinds."""


class Stream(NamedTuple):
    """Where a stream is in the file."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Stripe:
    """The streams and encodings of a stripe."""

    streams: dict[tuple[int, int], Stream]
    """By kind and column."""
    encodings: Any
    timezone: bytes | None

    def encoding(self, column: int) -> int:
        """How a column is encoded."""
        return int(self.encodings[column].kind)

    def has_dictionary(self, column: int) -> bool:
        """Whether the values of a column are entries of a dictionary."""
        return self.encoding(column) in (DICTIONARY, DICTIONARY_V2)

    def runs(self, column: int) -> int:
        """Which version of run-length encoding its integers have."""
        return 1 if self.encoding(column) in (DIRECT, DICTIONARY) else 2

    def positioned(self, column: int, kind: str) -> list[tuple[int, Coding]]:
        """The streams that positions of a column point into, in their order."""
        found = list(_layout(kind, self.has_dictionary(column)))
        if kind == "DECIMAL" and (SECONDARY, column) not in self.streams:
            found = [(DATA, "signed")]
        if (PRESENT, column) in self.streams:
            found.insert(0, (PRESENT, "bits"))
        return found

    def dictionary(self, column: int) -> list[int]:
        """The streams of a column that every stride needs."""
        return [DICTIONARY_DATA, LENGTH] if self.has_dictionary(column) else []


def _layout(kind: str, has_dictionary: bool) -> Sequence[tuple[int, Coding]]:
    match kind:
        case "BOOLEAN":
            return [(DATA, "bits")]
        case "BYTE" | "UNION":
            return [(DATA, "byte runs")]
        case "SHORT" | "INT" | "LONG" | "DATE":
            return [(DATA, "signed")]
        case "FLOAT" | "DOUBLE":
            return [(DATA, "bytes")]
        case "STRING" | "VARCHAR" | "CHAR" if has_dictionary:
            return [(DATA, "unsigned")]
        case "STRING" | "VARCHAR" | "CHAR" | "BINARY":
            return [(DATA, "bytes"), (LENGTH, "unsigned")]
        case "TIMESTAMP" | "TIMESTAMP_INSTANT":
            return [(DATA, "signed"), (SECONDARY, "unsigned")]
        case "LIST" | "MAP":
            return [(LENGTH, "unsigned")]
        case "DECIMAL":
            return [(DATA, "bytes"), (SECONDARY, "signed")]
    return []


def read_stripe(stored: bytes, codec: Codec, block: Block, data_end: int, columns: int) -> Stripe:
    """The footer of a stripe whose streams end at `data_end`."""
    message = metadata.decode("StripeFooter", codec.unpacked(stored))
    if len(message.columns) != columns:
        raise MalformedOrc(f"it has {len(message.columns)} encodings for {columns} columns")
    streams: dict[tuple[int, int], Stream] = {}
    offset = block.offset
    for stream in message.streams:
        if offset + stream.length > data_end:
            raise MalformedOrc(f"a stream of column {stream.column} ends behind the stripe")
        if stream.HasField("kind"):
            streams.setdefault((stream.kind, stream.column), Stream(offset, stream.length))
        offset += stream.length
    timezone = message.timezone if message.HasField("timezone") else None
    return Stripe(streams, message.columns, timezone)


@dataclass(frozen=True, slots=True, eq=False)
class LeafStreams:
    """The streams of one leaf's chain in a stripe."""

    leaf: SchemaNode
    chain: Columns
    unions: Mapping[int, int]
    """How many types the values of each union have."""
    stripe: Stripe
    codec: Codec

    @property
    def data(self) -> dict[tuple[int, int], Stream]:
        """Those that hold values, by kind and column."""
        columns = {column for column, _ in self.chain}
        return {
            (kind, column): stream
            for (kind, column), stream in self.stripe.streams.items()
            if column in columns and kind < ROW_INDEX
        }

    @property
    def dictionaries(self) -> dict[tuple[int, int], Stream]:
        """Those that every stride needs."""
        streams = self.stripe.streams
        return {
            (kind, column): streams[kind, column]
            for column, _ in self.chain
            for kind in self.stripe.dictionary(column)
            if (kind, column) in streams
        }
