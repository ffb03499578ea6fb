"""Times in microseconds, of their seconds and nanoseconds that Arrow decoded as integers.

Arrow's own times have nanoseconds, and no room for the years before 1677 and after 2262.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fretsaw.formats.orc.cut import OrcPart
from fretsaw.formats.orc.metadata import MalformedOrc
from fretsaw.formats.orc.zones import UTC, base_of, wall_clock
from fretsaw.model.blocks import Int64s

_MOST_OF_OLD = 999_999
"""With more nanoseconds than these, seconds before 1970 are written one too high."""
_MOST_SECONDS = (1 << 63) // 10**6 - 1


def times(
    parts: Sequence[OrcPart], seconds: pa.ChunkedArray, nanoseconds: pa.ChunkedArray
) -> pa.ChunkedArray:
    """The times of a leaf, as its chain."""
    arrays, before, leaf = [], 0, parts[0].leaf
    for part in parts:
        zone = UTC[0] if leaf.physical_type == "TIMESTAMP_INSTANT" else part.streams.stripe.timezone
        plain, rest = (
            pa.concat_arrays(column.slice(before, part.rows).chunks)
            for column in (seconds, nanoseconds)
        )
        arrays.append(_chain(plain, rest, zone, leaf.arrow_type))
        before += part.rows
    return pa.chunked_array(arrays)


def _chain(seconds: pa.Array, rest: pa.Array, zone: bytes | None, kind: pa.DataType) -> pa.Array:
    """The chain of times; that of their seconds and that of the rest are alike."""
    seconds, rest = (pa.concat_arrays([array]) for array in (seconds, rest))  # without an offset
    mask = seconds.is_null() if seconds.null_count else None
    if pa.types.is_struct(seconds.type):
        inner = _chain(seconds.field(0), rest.field(0), zone, kind)
        fields = [pa.field(seconds.type.field(0).name, inner.type)]
        return pa.StructArray.from_arrays([inner], fields=fields, mask=mask)
    if pa.types.is_list(seconds.type):
        inner = _chain(seconds.values, rest.values, zone, kind)
        return pa.ListArray.from_arrays(seconds.offsets, inner, mask=mask)
    plain, stored = (array.fill_null(0).to_numpy() for array in (seconds, rest))
    is_null = seconds.is_null().to_numpy(zero_copy_only=False)
    return pa.array(microseconds(plain, stored, zone), pa.int64(), mask=is_null).cast(kind)


def microseconds(seconds: Int64s, stored: Int64s, zone: bytes | None) -> Int64s:
    """Times since 1970, of their seconds and of nanoseconds as they are stored.

    These have no sign and end with a count of zeros; they come as if they had one.
    """
    plain = (stored << 1) ^ (stored >> 63)
    zeros = plain & 7
    nanoseconds = (plain >> 3) * np.where(zeros, 10 ** (zeros + 1), 1)
    since = wall_clock(seconds + base_of(zone), zone)
    since = since - ((since < 0) & (nanoseconds > _MOST_OF_OLD))
    # Some writers count nanoseconds back from the second above.
    if ((np.abs(nanoseconds) >= 10**9) | (np.abs(since) > _MOST_SECONDS)).any():
        raise MalformedOrc("times that are none")
    found: Int64s = since * 10**6 + nanoseconds // 1_000
    return found
