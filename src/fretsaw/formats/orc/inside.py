"""What a file says about its chunks and strides, for people: names in place of numbers."""

from itertools import pairwise

from fretsaw.formats.interface import ChunkFacts, ChunkPart, PageFacts
from fretsaw.formats.orc.index import Places, Strides
from fretsaw.formats.orc.metadata import (
    BLOOM_FILTER,
    BLOOM_FILTER_UTF8,
    DATA,
    NONE,
    ROW_INDEX,
    MalformedOrc,
)
from fretsaw.formats.orc.statistics import count_nulls, count_values
from fretsaw.formats.orc.streams import LeafStreams, Stream
from fretsaw.formats.shared import known_counts, number_name
from fretsaw.model.blocks import Block, Bounds, PageIndex

_CODECS = ("NONE", "ZLIB", "SNAPPY", "LZO", "LZ4", "ZSTD")
_ENCODINGS = ("DIRECT", "DICTIONARY", "DIRECT_V2", "DICTIONARY_V2")


def chunk_facts(
    streams: LeafStreams,
    block: Block,
    whole: PageIndex,
    statistics: bytes | None,
    bounds: Bounds,
) -> ChunkFacts:
    """What the footers say about a leaf in a stripe; sizes are those of its chain's streams."""
    leaf, size = streams.leaf, int(whole.sizes[0])
    is_float = leaf.physical_type in ("FLOAT", "DOUBLE")
    (nulls,) = known_counts(count_nulls([statistics], bounds.row_counts, leaf))
    return ChunkFacts(
        codec=_CODECS[streams.codec.kind],
        encodings=[encoding_name(streams)],
        offset=int(whole.offsets[0]) if size else None,
        compressed_size=size,
        uncompressed_size=size if streams.codec.kind == NONE else None,
        values=count_values(statistics) if leaf.is_repeated else block.num_rows,
        nulls=nulls,
        nans=0 if is_float and bounds.nan_free[0] else None,
        parts=_parts(streams, whole),
    )


def _parts(streams: LeafStreams, whole: PageIndex) -> dict[ChunkPart, int | None]:
    found: dict[ChunkPart, int | None] = {}
    column, stored = streams.chain[-1][0], streams.stripe.streams
    if streams.dictionaries:
        found["dictionary"] = whole.dictionary_size
    if (ROW_INDEX, column) in stored:
        found["page_index"] = stored[ROW_INDEX, column].length
    for kind in (BLOOM_FILTER, BLOOM_FILTER_UTF8):
        if (kind, column) in stored:
            found["bloom_filter"] = stored[kind, column].length
    return found


def encoding_name(streams: LeafStreams) -> str:
    """How the values of a leaf are encoded in a stripe."""
    return number_name(_ENCODINGS, streams.stripe.encoding(streams.chain[-1][0]))


def stride_facts(
    streams: LeafStreams, strides: Strides | None, index: PageIndex, bounds: Bounds
) -> PageFacts:
    """What the row index says about the strides of a leaf; without one the stripe is a stride.

    Strides share the chunks that streams are compressed in: one belongs to the stride in which it
    begins.
    """
    count = len(index.sizes)
    offsets: list[int | None] = index.offsets.tolist()
    sizes: list[int | None] = index.sizes.tolist()
    nulls: list[int | None] = [None] * count
    if strides is not None:
        offsets = sizes = [None] * count
        try:
            begins = {
                key: _begins(places, streams.stripe.streams[key])
                for key, places in strides.positions.items()
                if key in streams.stripe.streams
            }
            column = streams.chain[-1][0]
            if (DATA, column) in begins:
                offsets = [*begins[DATA, column][:-1]]
            together = [sum(steps) for steps in zip(*map(_steps, begins.values()), strict=True)]
            sizes = [size if size >= 0 else None for size in together] or [0] * count
        except MalformedOrc:  # positions that are wrong are no error: who reads does without
            pass
        nulls = known_counts(count_nulls(strides.statistics, bounds.row_counts, streams.leaf))
    return PageFacts(
        first_rows=index.boundaries[:-1].tolist(),
        rows=index.row_counts.tolist(),
        offsets=offsets,
        sizes=sizes,
        encodings=[encoding_name(streams)] * count,
        nulls=nulls,
        bounds=bounds,
    )


def _begins(places: Places, stream: Stream) -> list[int]:
    """Where strides begin in a stream, as places in the file, and where it ends."""
    begins = [stream.offset + places.chunk(stride) for stride in range(len(places))]
    return [*begins, stream.offset + stream.length]


def _steps(begins: list[int]) -> list[int]:
    return [end - begin for begin, end in pairwise(begins)]
