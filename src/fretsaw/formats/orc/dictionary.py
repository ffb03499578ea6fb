"""The dictionary of a stripe: its streams, and a made-up one that refers to each entry once."""

from dataclasses import replace

import numpy as np

from fretsaw.formats.orc.cut import OrcPart, Segment
from fretsaw.formats.orc.metadata import DATA, MalformedOrc
from fretsaw.formats.orc.runs import integer_runs
from fretsaw.formats.orc.streams import LeafStreams
from fretsaw.storage.requests import Request, Steps

_LONGEST_RUN = 128
_MOST_PACKED = 1000
"""No codec makes entries, which all differ, smaller than a byte for so many of them."""


def dictionary_part(streams: LeafStreams, block: int) -> Steps[OrcPart | None]:
    """The entries of a leaf's dictionary, to be decoded; None where there is none."""
    column = streams.chain[-1][0]
    stripe = streams.stripe
    if not stripe.has_dictionary(column):
        return None
    entries = int(stripe.encodings[column].dictionary_size)
    alone = replace(streams, chain=streams.chain[-1:])
    stored = alone.dictionaries
    size = sum(stream.length for stream in stored.values())
    if entries > size * _MOST_PACKED:
        raise MalformedOrc(f"{size} bytes that claim {entries} entries")
    buffers = yield Request(list(stored.values()), "dictionary")
    segment = {
        key: memoryview(buffer).cast("B") for key, buffer in zip(stored, buffers, strict=True)
    }
    write = integer_runs(stripe.runs(column), signed=False).written
    numbers = np.arange(entries, dtype=np.uint64)
    runs = (numbers[begin : begin + _LONGEST_RUN] for begin in range(0, entries, _LONGEST_RUN))
    references = b"".join(write(run) for run in runs)
    segment[DATA, column] = memoryview(streams.codec.as_stored(references))
    every = np.array([0]), np.array([entries])
    return OrcPart(
        leaf=replace(streams.leaf, is_repeated=False),
        rows=entries,
        page_rows=entries,
        block=block,
        streams=alone,
        segments=[Segment(entries, segment)],
        starts=every[0],
        ends=every[1],
        strides=0,
    )
