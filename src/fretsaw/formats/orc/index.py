"""The row indexes of a stripe: where its strides begin, and what they hold.

A row index has an entry for each stride: where the stride begins in each stream of the column, and
statistics. A position in a stream is the chunk it lies in and the bytes to skip there (without
compression only the bytes), then the values to skip in a run, then the bits in a byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.metadata import PRESENT, Codec, MalformedOrc
from fretsaw.formats.orc.streams import Coding, LeafStreams
from fretsaw.model.blocks import Block, Int64s, PageIndex

Place: TypeAlias = tuple[int, int, int, int]
"""Where a stride begins in a stream: chunk, bytes, values and bits to skip."""
_MOST = 1 << 62
_SKIPS = {"bytes": 0, "byte runs": 1, "signed": 1, "unsigned": 1, "bits": 2}


@dataclass(frozen=True, slots=True)
class Places:
    """Where the strides begin in a stream: decoded for those that somebody asks for."""

    entries: Any
    """Those of the row index of its column."""
    begin: int
    end: int
    """Which positions of an entry are those of the stream."""
    is_packed: bool

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, stride: int) -> Place:
        """Where a stride begins; what does not apply is 0."""
        chunk, *skips = self._stored(stride)
        inside = skips.pop(0) if self.is_packed else 0
        values, bits = (*skips, 0, 0)[:2]
        return chunk, inside, values, bits

    def chunk(self, stride: int) -> int:
        """Where the chunk that a stride begins in does."""
        return self._stored(stride)[0]

    def _stored(self, stride: int) -> list[int]:
        positions = self.entries[stride].positions
        if not stride and not positions:  # the first stride may leave them out
            return [0] * (self.end - self.begin)
        found: list[int] = positions[self.begin : self.end]
        if len(found) < self.end - self.begin:
            raise MalformedOrc(f"fewer than {self.end} positions in an entry")
        if max(found) > _MOST:
            raise MalformedOrc("positions that are no places in a file")
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Strides:
    """Where the strides of a leaf begin in the streams of its chain, and what is said of them."""

    positions: dict[tuple[int, int], Places]
    """By kind and column."""
    entries: Sequence[Any]
    """For each column of the chain, the entries of its row index."""

    @property
    def statistics(self) -> list[bytes]:
        """Of each stride, for the leaf itself."""
        return [entry.statistics for entry in self.entries[-1]]


def stride_boundaries(block: Block, stride: int) -> Int64s:
    """The rows at which the strides of a stripe begin, and the end."""
    return np.append(np.arange(0, block.num_rows, stride), block.num_rows)


def read_strides(streams: LeafStreams, stored: Sequence[bytes], boundaries: Int64s) -> Strides:
    """The strides of a leaf, by the row indexes of the columns of its chain."""
    stripe, codec, chain = streams.stripe, streams.codec, streams.chain
    if any(kind == "UNION" and (PRESENT, column) in stripe.streams for column, kind in chain):
        raise MalformedOrc("nulls of a union, for which writers store values")
    positions: dict[tuple[int, int], Places] = {}
    unpacked = [codec.unpacked(data) for data in stored]
    entries = [metadata.decode("RowIndex", data).entries for data in unpacked]
    for (column, kind), of_column in zip(chain, entries, strict=True):
        if len(of_column) != len(boundaries) - 1:
            raise MalformedOrc(f"{len(of_column)} entries for {len(boundaries) - 1} strides")
        begin = 0
        for stream, coding in stripe.positioned(column, kind):
            end = begin + _width(coding, codec)
            is_packed = codec.kind != metadata.NONE
            positions[stream, column] = Places(of_column, begin, end, is_packed)
            begin = end
    for (_, kind), outer, inner in zip(chain, unpacked, unpacked[1:], strict=False):
        if kind == "STRUCT" and (_all_value_counts(inner) > _all_value_counts(outer)).any():
            raise MalformedOrc("more values than there are structs that hold them")
    return Strides(positions, entries)


def divided(whole: PageIndex, boundaries: Int64s) -> PageIndex:
    """A chunk as its strides.

    As if rows were alike: exact sizes would take all positions, and strides share chunks anyway.
    """
    size = int(whole.sizes[0]) - whole.dictionary_size
    begins = (boundaries / max(int(boundaries[-1]), 1) * size).astype(np.int64)
    return replace(
        whole,
        boundaries=boundaries,
        offsets=whole.offsets[0] + begins[:-1],
        sizes=np.diff(begins),
    )


def _all_value_counts(row_index: bytes) -> Int64s:
    """How many values a column has in each stride, of all strides at once."""
    found = metadata.decode("CountedIndex", row_index).entries
    return np.array([min(one.statistics.number_of_values, _MOST) for one in found], np.int64)


def amounts(
    strides: Strides, streams: LeafStreams, stride: int, rows: int
) -> dict[tuple[int, int], int]:
    """How much of each stream a stride of so many rows has, in bytes or values; -1: not known."""
    found: dict[tuple[int, int], int] = {}
    items = rows
    for (column, kind), entries in zip(streams.chain, strides.entries, strict=True):
        statistics = metadata.decode("ColumnStatistics", entries[stride].statistics)
        count = int(statistics.number_of_values)
        for stream, coding in streams.stripe.positioned(column, kind):
            is_present = stream == PRESENT
            found[stream, column] = (
                items if is_present else _amount(kind, coding, count, statistics)
            )
        # How many items a list has is not known here, only how many lists there are.
        items = count if kind == "STRUCT" else -1
    return found


def _amount(kind: str, coding: Coding, count: int, statistics: Any) -> int:
    if coding != "bytes" or kind == "DECIMAL":
        return count
    if kind in ("FLOAT", "DOUBLE"):
        return count * (4 if kind == "FLOAT" else 8)
    stated = statistics.binary if kind == "BINARY" else statistics.strings
    return int(stated.sum) if stated.HasField("sum") else -1 if count else 0


def _width(coding: Coding, codec: Codec) -> int:
    return _SKIPS[coding] + (1 if codec.kind == metadata.NONE else 2)
