"""The reader of ORC files: answers the questions of `formats.FileReader`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import Misplaced, ReadOptions
from fretsaw.formats.orc import bloom, metadata
from fretsaw.formats.orc.cut import OrcPart, cut
from fretsaw.formats.orc.decode import decode
from fretsaw.formats.orc.fields import Fields
from fretsaw.formats.orc.footer import Footer, read_footer
from fretsaw.formats.orc.index import (
    StridePages,
    Stripe,
    read_stripe,
    stride_boundaries,
    stride_pages,
)
from fretsaw.formats.orc.metadata import BLOOM_FILTER_UTF8, KINDS, ROW_INDEX, MalformedOrc
from fretsaw.formats.orc.statistics import bounds_of, hold
from fretsaw.model.arrays import joined, pick
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.requests import Request, Steps

_WIDTHS = {"BOOLEAN": 1, "BYTE": 1, "SHORT": 2, "INT": 4, "FLOAT": 4, "DATE": 4, "LONG": 8}

_WRITERS = ("ORC Java", "ORC C++", "Presto", "Scritchley Go", "Trino", "CUDF")
"""What the format calls its writers, by their numbers."""

_MOST_PACKED = 1000
"""No codec makes an entry of a row index smaller than a byte for so many of them."""

# pyarrow raises an OSError for streams that it cannot decode.
_ARROW_ERRORS = (pa.ArrowException, OSError, MemoryError)


def open_file(
    name: str, size: int, tail: pa.Buffer, options: ReadOptions, like: object
) -> Steps["OrcReader"]:
    """Read the footer of an ORC file; if it is `like` another one, they share their fields."""
    footer = yield from read_footer(name, size, tail)
    if isinstance(like, OrcReader) and like.fields.fit(footer):
        return OrcReader(name, footer, like.fields)
    return OrcReader(name, footer, Fields(footer))


class OrcReader:
    """One ORC file; implements `fretsaw.formats.FileReader`."""

    format = "orc"
    index_name = "row index"

    def __init__(self, name: str, footer: Footer, fields: Fields) -> None:
        self.footer_size = footer.size
        self.blocks = footer.blocks
        self.fields = fields
        self.field_names = fields.names
        self._name = name
        self._footer = footer
        self._stripes: dict[int, Stripe] = {}
        self._chains: dict[int, list[tuple[int, str]]] = {}
        self._statistics: Any = None

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The key-value pairs of the footer."""
        return {item.name: item.value for item in self._footer.message.metadata}

    @property
    def created_by(self) -> str:
        """The library that wrote the file, and its version if the file says so."""
        message = self._footer.message
        number = message.writer
        name = _WRITERS[number] if number < len(_WRITERS) else f"ORC writer {number}"
        return f"{name} {message.software_version.decode(errors='replace')}".rstrip()

    def describe(self, positions: Sequence[int]) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
        with self._translated("its schema"):
            known = self.fields.describe(positions)
        schema = pa.schema([field for field, _ in known], self.metadata or None)
        return schema, tuple(node for _, node in known)

    def locate(self, blocks: Sequence[Block]) -> Steps[None]:
        missing = [block for block in blocks if block.ordinal not in self._stripes]
        if not missing:
            return
        stripes = [self._footer.stripes[block.ordinal] for block in missing]
        ends = [s.offset + s.index_length + s.data_length for s in stripes]
        ranges = [(end, s.footer_length) for end, s in zip(ends, stripes, strict=True)]
        buffers = yield Request(ranges, "footer")
        for block, end, stored in zip(missing, ends, buffers, strict=True):
            with self._translated(f"the footer of stripe {block.ordinal}"):
                count = len(self._footer.types)
                self._stripes[block.ordinal] = read_stripe(
                    stored.to_pybytes(), self._footer.codec, block, end, count
                )

    def chunk(self, block: Block, leaf: SchemaNode) -> PageIndex:
        stripe = self._stripes.get(block.ordinal)
        if stripe is None:  # nobody reads it: about its size
            return self._guessed(block)
        columns = set(self.fields.chain(leaf).columns)
        found = [
            stream
            for (kind, column), stream in stripe.streams.items()
            if column in columns and kind < ROW_INDEX
        ]
        size = sum(stream.length for stream in found)
        stated = size / max(1, block.num_rows)
        return PageIndex(
            boundaries=np.array([0, block.num_rows]),
            offsets=np.array([min((s.offset for s in found), default=block.offset)]),
            sizes=np.array([size]),
            width=max(stated, _WIDTHS.get(leaf.physical_type or "", 16)),
            dictionary_size=sum(
                stripe.streams[kind, column].length
                for column in columns
                for kind in stripe.dictionary(column)
                if (kind, column) in stripe.streams
            ),
        )

    def _guessed(self, block: Block) -> PageIndex:
        size = block.compressed_size // max(1, len(self._footer.types) - 1)
        rows = np.array([0, block.num_rows])
        return PageIndex(rows, np.array([block.offset]), np.array([size]), 1.0)

    def page_index(
        self, block: Block, leaf: SchemaNode, whole: PageIndex, until: int
    ) -> Steps[PageIndex]:
        places = self._row_index_places(block, leaf)
        if places is None:
            return _only(whole, "no row index")
        buffers = yield Request(places, "index")
        return self._strides(block, leaf, whole, buffers)

    def block_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        if self._statistics is None:
            place, length = self._footer.statistics_place
            stored = b""
            if length:
                (buffer,) = yield Request([(place, length)], "footer")
                stored = buffer.to_pybytes()
            with self._translated("its stripe statistics"):
                data = self._footer.codec.unpacked(stored)
                self._statistics = metadata.decode("Metadata", data)
        stripes = self._statistics.stripes
        column = self.fields.chain(leaf).leaf[0]
        found: list[bytes | None] = [None] * len(blocks)
        if len(stripes) == len(self.blocks):
            for place, block in enumerate(blocks):
                columns = stripes[block.ordinal].columns
                found[place] = columns[column] if column < len(columns) else None
        return bounds_of(found, np.array([block.num_rows for block in blocks], np.int64), leaf)

    def indexed_pages(
        self, blocks: Sequence[Block], leaf: SchemaNode
    ) -> Steps[tuple[list[PageIndex | None], Bounds]]:
        yield from self.locate(blocks)
        places = [self._row_index_places(block, leaf) for block in blocks]
        wanted = [place for of_block in places for place in of_block or ()]
        buffers = iter((yield Request(wanted, "index")) if wanted else ())
        pages: list[PageIndex | None] = []
        statistics: list[bytes | None] = []
        counts = [np.empty(0, np.int64)]
        for block, of_block in zip(blocks, places, strict=True):
            if of_block is None:
                pages.append(None)
                continue
            stored = [next(buffers) for _ in of_block]
            index = self._strides(block, leaf, self.chunk(block, leaf), stored)
            statistics += index.statistics if isinstance(index, StridePages) else [None]
            counts.append(index.row_counts)
            pages.append(index)
        return pages, bounds_of(statistics, np.concatenate(counts), leaf)

    def bloom_rows(
        self, block: Block, leaf: SchemaNode, keys: Sequence[Any]
    ) -> Steps[RowSelection | None]:
        wanted = bloom.hashes(keys, leaf)
        trusted = bloom.is_trusted(self._footer, leaf) and self._is_believable(block)
        if wanted is None or not self._footer.stride or not trusted:
            return None
        yield from self.locate([block])
        stream = self._stripes[block.ordinal].streams.get(
            (BLOOM_FILTER_UTF8, self.fields.chain(leaf).leaf[0])
        )
        if stream is None:
            return None
        (stored,) = yield Request([stream], "Bloom filter")
        boundaries = stride_boundaries(block, self._footer.stride)
        with self._translated(f"the Bloom filter of {_at(leaf, block.ordinal)}"):
            data = self._footer.codec.unpacked(stored.to_pybytes())
            keep = bloom.may_hold(data, wanted, len(boundaries) - 1)
        if keep is None:
            return None
        if any(kind == "STRUCT" for _, kind in self._chain(leaf)):
            # Values that null structs hide are hashed in their strides, and read in later ones.
            keep[:] = keep.any()
        return RowSelection.from_pages(keep, boundaries)

    def dictionary(self, block: Block, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        yield from ()
        return None

    def narrowed(
        self,
        block: Block,
        leaf: SchemaNode,
        pages: PageIndex,
        rows: RowSelection,
        keys: Sequence[Any],
    ) -> Steps[RowSelection]:
        yield from ()
        return rows

    def cut(
        self,
        block: Block,
        leaf: SchemaNode,
        pages: PageIndex,
        rows: RowSelection,
        encoded: bool = False,
    ) -> Steps[OrcPart]:
        stripe, footer = self._stripes[block.ordinal], self._footer
        with self._translated(_at(leaf, block.ordinal)):
            return (
                yield from cut(
                    leaf,
                    self._chain(leaf),
                    self.fields.union_sizes,
                    block.ordinal,
                    stripe,
                    pages,
                    rows,
                    footer.codec,
                    footer.stride,
                )
            )

    def decode(
        self, leaves: Sequence[Sequence[OrcPart]], allocate: Allocate
    ) -> list[pa.ChunkedArray]:
        try:
            columns = decode(leaves, self._footer, allocate)
            for parts, column in zip(leaves, columns, strict=True):
                _require_claims(parts, column)
            return [_picked(*pair) for pair in zip(leaves, columns, strict=True)]
        except (*_ARROW_ERRORS, Misplaced):
            if sum(map(len, leaves)) > 1:  # to find out which one it is
                each = [[self.decode([[part]], allocate)[0] for part in parts] for parts in leaves]
                return [joined(arrays) for arrays in each]
            ((part,),) = leaves
            if part.claims is not None:
                raise Misplaced("a row index that does not fit its streams") from None
            with self._translated(_at(part.leaf, part.block)):
                raise

    def _chain(self, leaf: SchemaNode) -> list[tuple[int, str]]:
        """The columns of a leaf's chain, and their kinds."""
        known = self._chains.get(leaf.leaf_index)
        if known is None:
            columns, types = self.fields.chain(leaf).columns, self._footer.types
            known = [(column, KINDS[types[column].kind]) for column in columns]
            self._chains[leaf.leaf_index] = known
        return known

    def _row_index_places(self, block: Block, leaf: SchemaNode) -> list[tuple[int, int]] | None:
        """Where the row indexes of a leaf's chain are, if all are there."""
        streams, stride = self._stripes[block.ordinal].streams, self._footer.stride
        found = [streams.get((ROW_INDEX, column)) for column, _ in self._chain(leaf)]
        places = [stream for stream in found if stream is not None]
        if not stride or len(places) < len(found) or not self._is_believable(block):
            return None
        return list(places)

    def _is_believable(self, block: Block) -> bool:
        """Whether the index of a stripe is large enough for all the strides that it claims."""
        return block.num_rows <= block.compressed_size * _MOST_PACKED * self._footer.stride

    def _strides(
        self, block: Block, leaf: SchemaNode, whole: PageIndex, stored: Sequence[pa.Buffer]
    ) -> PageIndex:
        try:
            return stride_pages(
                block,
                self._stripes[block.ordinal],
                self._chain(leaf),
                [data.to_pybytes() for data in stored],
                self._footer.stride,
                self._footer.codec,
                whole,
            )
        except MalformedOrc as error:
            return _only(whole, f"an unusable row index ({error})")

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Turn what pyarrow and the checks of this package raise into the error of the contract."""
        try:
            yield
        except MalformedOrc as error:
            raise FileFormatError(
                f"{self._name}: {what} is corrupt: {error}; write or copy the file again"
            ) from None
        except _ARROW_ERRORS as error:
            raise FileFormatError(
                f"{self._name}: {what} cannot be read: {' '.join(str(error).split()).rstrip('.')}; "
                f"the file is corrupt or uses what pyarrow {pa.__version__} does not support"
            ) from error


def _require_claims(parts: Sequence[OrcPart], column: pa.ChunkedArray) -> None:
    """What is decoded must be what the row index says, or it led to other values."""
    before = 0
    for part in parts:
        rows, before = column.slice(before, part.rows), before + part.rows
        # Arrow does not tell how many values a union has.
        if part.claims is None or part.leaf.physical_type == "UNION":
            continue
        if not hold(part.claims, _innermost(rows), part.leaf):
            raise Misplaced("a row index that does not fit its streams")


def _innermost(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The leaf at the end of a chain, without what lies in null structs and lists."""
    chunks = []
    for chunk in column.chunks:
        array = chunk
        while pa.types.is_struct(array.type) or pa.types.is_list(array.type):
            array = array.flatten()[0] if pa.types.is_struct(array.type) else array.flatten()
        chunks.append(array)
    return pa.chunked_array(chunks)


def _picked(parts: Sequence[OrcPart], column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The wanted rows of a leaf, of all that was decoded."""
    before = np.cumsum([0, *(part.rows for part in parts)])
    starts = np.concatenate([p.starts + n for p, n in zip(parts, before, strict=False)])
    ends = np.concatenate([p.ends + n for p, n in zip(parts, before, strict=False)])
    return pick(column, starts, ends)


def _only(whole: PageIndex, reason: str) -> PageIndex:
    return PageIndex(
        whole.boundaries, whole.offsets, whole.sizes, whole.width, reason, whole.dictionary_size
    )


def _at(leaf: SchemaNode, block: int) -> str:
    return f"column {'.'.join(leaf.path)!r} in stripe {block}"
