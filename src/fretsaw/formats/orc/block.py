"""A stripe that was opened: the streams of its leaves, and the strides that were found in them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa

from fretsaw.formats.interface import BlockReader, ChunkFacts, Keys, PageFacts
from fretsaw.formats.orc import bloom
from fretsaw.formats.orc.cut import OrcPart, cut
from fretsaw.formats.orc.decode import decode
from fretsaw.formats.orc.dictionary import dictionary_part
from fretsaw.formats.orc.file import OrcFile
from fretsaw.formats.orc.index import Strides, divided, read_strides, stride_boundaries
from fretsaw.formats.orc.inside import chunk_facts, stride_facts
from fretsaw.formats.orc.metadata import BLOOM_FILTER_UTF8, ROW_INDEX, MalformedOrc
from fretsaw.formats.orc.statistics import bounds_of
from fretsaw.formats.orc.streams import LeafStreams, Stream, Stripe, read_stripe
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.footer_cache import PAGES
from fretsaw.storage.requests import Request, Steps
from fretsaw.storage.source import Range

_WIDTHS = {"BOOLEAN": 1, "BYTE": 1, "SHORT": 2, "INT": 4, "FLOAT": 4, "DATE": 4, "LONG": 8}
_STREAM_BYTES = 300
"""What a stream of a stripe that is kept takes in memory, roughly."""


class StripeReader(BlockReader):
    """A stripe; what is found out about a leaf is kept by its number."""

    def __init__(self, file: OrcFile, block: Block, stripe: Stripe) -> None:
        self.block = block
        self._file = file
        self._stripe = stripe
        self._wholes: dict[int, PageIndex] = {}
        self._indexes: dict[int, tuple[PageIndex, Strides | None]] = {}

    def whole_chunk(self, leaf: SchemaNode) -> PageIndex:
        known = self._wholes.get(leaf.leaf_index)
        if known is None:
            streams = self._streams(leaf)
            data = streams.data.values()
            size = sum(stream.length for stream in data)
            stated = size / max(1, self.block.num_rows)
            known = self._wholes[leaf.leaf_index] = PageIndex(
                boundaries=np.array([0, self.block.num_rows]),
                offsets=np.array([min((s.offset for s in data), default=self.block.offset)]),
                sizes=np.array([size]),
                width=max(stated, _WIDTHS.get(leaf.physical_type or "", 16)),
                dictionary_size=sum(s.length for s in streams.dictionaries.values()),
            )
        return known

    def page_index(self, leaf: SchemaNode, until: int) -> Steps[PageIndex]:
        places = self.index_places(leaf)
        if leaf.leaf_index not in self._indexes and places is None:
            return replace(self.whole_chunk(leaf), reason="no row index")
        if leaf.leaf_index not in self._indexes:
            self.read_index(leaf, (yield Request(places or (), "index")))
        return self._indexes[leaf.leaf_index][0]

    def index_at(self, leaf: SchemaNode) -> Sequence[Range]:
        return self.index_places(leaf) or ()

    def bloom_rows(self, leaf: SchemaNode, keys: Keys) -> Steps[RowSelection | None]:
        wanted, footer = bloom.hashes(keys, leaf), self._file.footer
        if wanted is None or not bloom.is_trusted(footer, leaf) or not self._has_strides:
            return None
        column = self._file.fields.chain(leaf).leaf[0]
        stream = self._stripe.streams.get((BLOOM_FILTER_UTF8, column))
        if stream is None:
            return None
        (stored,) = yield Request([stream], "Bloom filter")
        boundaries = stride_boundaries(self.block, footer.stride)
        with self._file.errors.of(f"the Bloom filter of {chunk_name(leaf, self.block.ordinal)}"):
            data = footer.codec.unpacked(stored.to_pybytes())
            keep = bloom.may_hold(data, wanted, len(boundaries) - 1)
        if keep is None:
            return None
        if any(kind == "STRUCT" for _, kind in self._file.chain(leaf)):
            # Values that null structs hide are hashed in their strides, and read in later ones.
            keep[:] = keep.any()
        return RowSelection.from_pages(keep, boundaries)

    def entries(self, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        with self._file.errors.of(f"the dictionary of {chunk_name(leaf, self.block.ordinal)}"):
            part = yield from dictionary_part(self._streams(leaf), self.block.ordinal)
            if part is None:
                return None
            return decode([[part]], self._file.footer, pa.allocate_buffer)[0]

    def describe_pages(self, leaf: SchemaNode) -> Steps[PageFacts]:
        (index,), bounds = yield from bounds_of_strides([self], leaf)
        _, strides = self._indexes.get(leaf.leaf_index, (None, None))
        if index is None or strides is None:
            index, bounds = self.whole_chunk(leaf), Bounds.unknown([self.block.num_rows])
        return stride_facts(self._streams(leaf), strides, index, bounds)

    def describe_chunk(
        self, leaf: SchemaNode, statistics: bytes | None, bounds: Bounds
    ) -> ChunkFacts:
        """What is known of a leaf's chunk, given what the file says of its values."""
        whole = self.whole_chunk(leaf)
        return chunk_facts(self._streams(leaf), self.block, whole, statistics, bounds)

    def cut(self, leaf: SchemaNode, pages: PageIndex, rows: RowSelection) -> Steps[OrcPart]:
        _, strides = self._indexes.get(leaf.leaf_index, (None, None))
        streams, ordinal = self._streams(leaf), self.block.ordinal
        with self._file.errors.of(chunk_name(leaf, ordinal)):
            stride = self._file.footer.stride
            return (yield from cut(streams, ordinal, strides, pages, rows, stride))

    def index_places(self, leaf: SchemaNode) -> list[Stream] | None:
        """Where the row indexes of a leaf's chain are, if all are there."""
        chain = self._file.chain(leaf)
        found = [self._stripe.streams.get((ROW_INDEX, column)) for column, _ in chain]
        places = [stream for stream in found if stream is not None]
        return places if len(places) == len(found) and self._has_strides else None

    def read_index(
        self, leaf: SchemaNode, stored: Sequence[pa.Buffer]
    ) -> tuple[PageIndex, Strides | None]:
        """The strides of a leaf by its row indexes, kept for the cut and whoever asks next."""
        whole = self.whole_chunk(leaf)
        boundaries = stride_boundaries(self.block, self._file.footer.stride)
        data = [buffer.to_pybytes() for buffer in stored]
        found: tuple[PageIndex, Strides | None]
        try:
            strides = read_strides(self._streams(leaf), data, boundaries)
            found = divided(whole, boundaries), strides
        except MalformedOrc as error:
            found = replace(whole, reason=f"an unusable row index ({error})"), None
        self._indexes[leaf.leaf_index] = found
        return found

    @property
    def _has_strides(self) -> bool:
        return self._file.has_strides(self.block)

    def _streams(self, leaf: SchemaNode) -> LeafStreams:
        file = self._file
        unions, codec = file.fields.union_sizes, file.footer.codec
        return LeafStreams(leaf, file.chain(leaf), unions, self._stripe, codec)


def open_stripes(file: OrcFile, blocks: Sequence[Block]) -> Steps[list[StripeReader]]:
    """Read the footers of stripes, as far as they are not kept."""
    keys = [(file.token, block.ordinal) for block in blocks]
    found = {key: cast(Stripe, kept) for key in keys if (kept := PAGES.get(key)) is not None}
    missing = [block for block, key in zip(blocks, keys, strict=True) if key not in found]
    stored = [file.footer.stripes[block.ordinal] for block in missing]
    ends = [s.offset + s.index_length + s.data_length for s in stored]
    ranges = [(end, s.footer_length) for end, s in zip(ends, stored, strict=True)]
    buffers = (yield Request(ranges, "footer")) if ranges else ()
    codec, columns = file.footer.codec, len(file.footer.types)
    for block, end, buffer in zip(missing, ends, buffers, strict=True):
        with file.errors.of(f"the footer of stripe {block.ordinal}"):
            stripe = read_stripe(buffer.to_pybytes(), codec, block, end, columns)
        found[file.token, block.ordinal] = stripe
        PAGES.put((file.token, block.ordinal), stripe, _STREAM_BYTES * len(stripe.streams))
    stripes = [found[key] for key in keys]
    return [StripeReader(file, *pair) for pair in zip(blocks, stripes, strict=True)]


def chunk_size(file: OrcFile, block: Block, leaf: SchemaNode) -> int:
    """Bytes of a leaf in a stripe; about as many as others have, where its footer is not kept."""
    kept = cast(Stripe | None, PAGES.get((file.token, block.ordinal)))
    if kept is None:
        return block.compressed_size // max(1, len(file.footer.types) - 1)
    return int(StripeReader(file, block, kept).whole_chunk(leaf).sizes[0])


def bounds_of_strides(
    stripes: Sequence[StripeReader], leaf: SchemaNode
) -> Steps[tuple[list[PageIndex | None], Bounds]]:
    """The strides of a leaf's chunks, and what row indexes say of their values."""
    places = [stripe.index_places(leaf) for stripe in stripes]
    wanted = [place for of_stripe in places for place in of_stripe or ()]
    buffers = iter((yield Request(wanted, "index")) if wanted else ())
    pages: list[PageIndex | None] = []
    statistics: list[bytes | None] = []
    counts = [np.empty(0, np.int64)]
    for stripe, of_stripe in zip(stripes, places, strict=True):
        if of_stripe is None:
            pages.append(None)
            continue
        index, strides = stripe.read_index(leaf, [next(buffers) for _ in of_stripe])
        statistics += [None] if strides is None else strides.statistics
        counts.append(index.row_counts)
        pages.append(index)
    return pages, bounds_of(statistics, np.concatenate(counts), leaf)


def chunk_name(leaf: SchemaNode, stripe: int) -> str:
    """What messages call the chunk of a leaf."""
    return f"column {'.'.join(leaf.path)!r} in stripe {stripe}"
