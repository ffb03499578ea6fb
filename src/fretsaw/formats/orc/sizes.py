"""Sizes that streams claim, held against what they have before Arrow makes room for them.

A stripe says how many rows it has, a dictionary how many entries, lengths how many bytes or items
there are. What is small next to the bytes that are stored is believed; the rest is counted.
"""

from collections.abc import Mapping

import numpy as np

from fretsaw.formats.orc.lengths import count_ones, count_values, has_beyond, total_length
from fretsaw.formats.orc.metadata import (
    DATA,
    DICTIONARY_DATA,
    LENGTH,
    PRESENT,
    SECONDARY,
    MalformedOrc,
    Pieces,
)
from fretsaw.formats.orc.runs import MOST_VALUES, expanded_bytes
from fretsaw.formats.orc.streams import LeafStreams

_LONGEST_LIST = (1 << 31) - 1
_FREE_ITEMS, _FREE_BYTES = 4 << 20, 32 << 20
_UNPACKED = 16
"""So many bytes or items for each byte that is stored, and the few above, cost no harm."""
_MOST_SCALE = 38
_NESTED = ("LIST", "MAP")


def require_sizes(
    leaf: LeafStreams, rows: int, streams: Mapping[tuple[int, int], Pieces], is_cut: bool
) -> None:
    """The streams of a chain must have what they claim.

    Streams that were cut out may go on behind the rows: what lies there is not looked at.
    """
    held = _Held(leaf, streams)
    held.require_rows(rows)
    for place, (column, kind) in enumerate(leaf.chain):
        if (LENGTH, column) in streams:
            count = held.values(place, rows) if is_cut else MOST_VALUES
            if leaf.stripe.has_dictionary(column):
                held.require_dictionary(column)
            elif kind in _NESTED:
                held.require_items(place, count)
            else:
                held.require_bytes(column, DATA, count)
        if kind == "DECIMAL" and (SECONDARY, column) in streams:
            held.require_scales(column)
        if kind == "UNION":
            held.require_tags(column, leaf.unions[column])


class _Held:
    """What the streams of a chain have."""

    def __init__(self, leaf: LeafStreams, streams: Mapping[tuple[int, int], Pieces]) -> None:
        self._chain = leaf.chain
        self._stripe = leaf.stripe
        self._streams = streams
        self._codec = leaf.codec

    def require_rows(self, rows: int) -> None:
        if rows <= _FREE_ITEMS + _UNPACKED * self._stored():
            return
        most = self._items(0)
        if most is not None and rows > most:
            raise MalformedOrc(f"it claims {rows} rows and has {most}")

    def require_dictionary(self, column: int) -> None:
        size = int(self._stripe.encodings[column].dictionary_size)
        if size > _FREE_ITEMS:
            lengths = self._unpacked(LENGTH, column)
            found = count_values(lengths, "unsigned", self._stripe.runs(column))
            if size > found:
                raise MalformedOrc(f"a dictionary claims {size} entries and has {found}")
        self.require_bytes(column, DICTIONARY_DATA, size)

    def require_bytes(self, column: int, kind: int, count: int) -> None:
        """The lengths of strings, of which the bytes are in another stream."""
        inside = self._streams.get((kind, column), ())
        most = self._codec.most_bytes(inside)
        enough = _FREE_BYTES + _UNPACKED * sum(map(len, inside))
        total = self._total(column, count, most, enough)
        if total > enough and (total > most or total > self._codec.size(inside)):
            raise MalformedOrc(f"strings of {total} bytes in a stream that has fewer")

    def require_items(self, place: int, count: int) -> None:
        """The lengths of lists, whose items are in the columns behind them."""
        column = self._chain[place][0]
        enough = _FREE_ITEMS + _UNPACKED * self._stored(column + 1)
        total = self._total(column, count, _LONGEST_LIST, enough)
        if total > enough:
            most = self._items(place + 1)
            if most is not None and total > most:
                raise MalformedOrc(f"lists of {total} items, of which there are {most}")

    def require_tags(self, column: int, children: int) -> None:
        """Tags of a union must be those of its children: Arrow takes them for places."""
        tags = expanded_bytes(self._unpacked(DATA, column))
        if np.frombuffer(tags, np.uint8).max(initial=0) >= max(children, 1):
            raise MalformedOrc("a union has values of a type that it does not have")

    def require_scales(self, column: int) -> None:
        """Scales of decimals: Arrow multiplies by ten so many times, below zero for ever."""
        if has_beyond(self._unpacked(SECONDARY, column), self._stripe.runs(column), _MOST_SCALE):
            raise MalformedOrc("decimals of a scale that none has")

    def values(self, place: int, rows: int) -> int:
        """How many values a column of the chain has in the first so many rows, nulls left out."""
        count = rows
        for column, kind in self._chain[: place + 1]:
            above = self._chain[place][0] != column
            if kind == "UNION" and above:
                return MOST_VALUES
            if (PRESENT, column) in self._streams:
                count = count_ones(self._unpacked(PRESENT, column), count)
            if kind in _NESTED and above:
                count = self._total(column, count, _LONGEST_LIST, 0)
        return count

    def _items(self, place: int) -> int | None:
        """How many values a column has, nulls included; None if its streams do not tell."""
        column, kind = self._chain[place]
        if (PRESENT, column) in self._streams:
            return count_values(self._unpacked(PRESENT, column), "bits", 1)
        if kind == "STRUCT":
            return self._items(place + 1) if place + 1 < len(self._chain) else None
        if kind in ("FLOAT", "DOUBLE"):
            size = self._codec.size(self._streams.get((DATA, column), ()))
            return size // (4 if kind == "FLOAT" else 8)
        stream, coding = self._stripe.positioned(column, kind)[
            -1
        ]  # of several, the last is one of runs
        is_short_decimal = kind == "DECIMAL" and stream == DATA
        version = 2 if is_short_decimal else self._stripe.runs(column)
        return count_values(self._unpacked(stream, column), coding, version)

    def _total(self, column: int, count: int, longest: int, enough: int) -> int:
        lengths = self._unpacked(LENGTH, column)
        return total_length(lengths, self._stripe.runs(column), count, longest, enough)

    def _stored(self, from_column: int = 0) -> int:
        """Bytes of the streams from a column on, as they are stored."""
        return sum(
            sum(map(len, pieces))
            for (_, column), pieces in self._streams.items()
            if column >= from_column
        )

    def _unpacked(self, kind: int, column: int) -> bytes:
        return self._codec.unpacked_pieces(self._streams.get((kind, column), ()))
