"""A row group that was opened: the chunks of its leaves, and the pages that were found in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import BlockReader, Keys, PageFacts, Part
from fretsaw.formats.parquet.bloom import may_contain, stored_values
from fretsaw.formats.parquet.chunk import Chunk, UnreadableChunk, chunk_of
from fretsaw.formats.parquet.cut import ParquetPart, cut, whole_part
from fretsaw.formats.parquet.decode import decode_segments
from fretsaw.formats.parquet.dictionary import dictionary_segment, is_only_dictionary
from fretsaw.formats.parquet.file import ParquetFile
from fretsaw.formats.parquet.index import (
    Hopped,
    InvalidIndex,
    column_index,
    hop_rows,
    hopped_index,
    hopped_pages,
    offset_index,
    told_pages,
)
from fretsaw.formats.parquet.inside import page_facts
from fretsaw.formats.parquet.outline import StoredChunk
from fretsaw.formats.parquet.pages import Page
from fretsaw.formats.parquet.statistics import header_bounds, page_bounds, says_bounds
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.footer_cache import PAGES
from fretsaw.storage.requests import Request, Steps, together
from fretsaw.storage.source import Range

_DECODED_WIDTH = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}


class RowGroup(BlockReader):
    """A row group; what is found out about a leaf is kept by its number."""

    def __init__(self, file: ParquetFile, block: Block) -> None:
        self.block = block
        self._file = file
        self._chunks: dict[tuple[int, bool], Chunk] = {}
        self._places: dict[int, StoredChunk] = {}
        self._wholes: dict[int, PageIndex] = {}
        self._indexes: dict[int, PageIndex] = {}

    def whole_chunk(self, leaf: SchemaNode) -> PageIndex:
        known = self._wholes.get(leaf.leaf_index)
        if known is None:
            chunk = self._chunk(leaf)
            known = self._wholes[leaf.leaf_index] = PageIndex(
                boundaries=np.array([0, self.block.num_rows]),
                offsets=np.array([chunk.start]),
                sizes=np.array([chunk.end - chunk.start]),
                width=self._width(leaf),
            )
        return known

    def page_index(self, leaf: SchemaNode, until: int) -> Steps[PageIndex]:
        known = self._indexes.get(leaf.leaf_index)
        if known is not None:
            return known
        place = self._offset_index_place(leaf)
        if place is None:
            with self._file.errors.of(self.name_of(leaf)):
                return (yield from self._hopped(leaf, until))
        if self._is_one_page(leaf, place[1]):
            return self.whole_chunk(leaf)
        (data,) = yield Request([place], "index")
        return self._read_index(leaf, data)

    def _read_index(self, leaf: SchemaNode, data: pa.Buffer) -> PageIndex:
        try:
            return self.read_index(leaf, data)
        except InvalidIndex:
            with self._file.errors.of(f"the offset index of {self.name_of(leaf)}"):
                raise

    def page_indexes(self, leaves: Sequence[SchemaNode], until: int) -> Steps[list[PageIndex]]:
        asked: dict[int, tuple[SchemaNode, Range]] = {}
        for leaf in leaves:
            place = self._offset_index_place(leaf)
            if place is None:
                return (yield from super().page_indexes(leaves, until))
            is_known = leaf.leaf_index in self._indexes
            if not is_known and not self._is_one_page(leaf, place[1]):
                asked[leaf.leaf_index] = leaf, place
        if asked:
            found = yield Request([place for _, place in asked.values()], "index")
            for (leaf, _), data in zip(asked.values(), found, strict=True):
                self._read_index(leaf, data)
        return [self._indexes.get(leaf.leaf_index) or self.whole_chunk(leaf) for leaf in leaves]

    def index_at(self, leaf: SchemaNode) -> Sequence[Range]:
        place = self._offset_index_place(leaf)
        return () if place is None or self._is_one_page(leaf, place[1]) else (place,)

    def _hopped(self, leaf: SchemaNode, until: int) -> Steps[PageIndex]:
        """The pages by their headers: each chunk is gone through once, as far as is needed."""
        key = (self._file.token, self.block.ordinal, leaf.leaf_index)
        chunk, before = self._chunk(leaf), cast(Hopped | None, PAGES.get(key))
        verify = self._file.options.verify
        hopped = yield from hop_rows(chunk, self.block.num_rows, before, until, verify)
        if hopped is not None and hopped is not before:
            PAGES.put(key, hopped, hopped.nbytes)
        return hopped_index(self.whole_chunk(leaf), chunk, hopped)

    def bloom_rows(self, leaf: SchemaNode, keys: Keys) -> Steps[RowSelection | None]:
        column, order = self._file.probed(self.block, leaf), self._file.order(leaf)
        if column is None or not column.bloom_filter_offset or order is None:
            return None
        values = stored_values(keys, order)
        if values is None:
            return None
        with self._file.errors.of(f"the Bloom filter of {self.name_of(leaf)}"):
            place = (column.bloom_filter_offset, column.bloom_filter_length, self._file.size)
            may = yield from may_contain(*place, values)
        return None if may else RowSelection.none(self.block.num_rows)

    def dictionary(self, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        if not self._is_only_dictionary(leaf):
            return None
        return (yield from self.entries(leaf, whatever_size=False))

    def entries(
        self, leaf: SchemaNode, whatever_size: bool = True
    ) -> Steps[pa.ChunkedArray | None]:
        with self._file.errors.of(f"the dictionary of {self.name_of(leaf)}"):
            segment = yield from dictionary_segment(self._chunk(leaf), whatever_size)
            if segment is None:
                return None
            if not segment.rows:
                return pa.chunked_array([], leaf.arrow_type)
            # The page behind the dictionary is made up here, not by the writer.
            return decode_segments([segment], None, self._file.options, pa.allocate_buffer)[0]

    def describe_pages(self, leaf: SchemaNode) -> Steps[PageFacts]:
        chunk, index, bounds = self._chunk(leaf), None, None
        place = self._offset_index_place(leaf)
        if self.index_places(leaf):
            (index,), bounds = yield from bounds_of_pages(self._file, [self], leaf, every=True)
        elif place is not None:
            (data,) = yield Request([place], "index")
            index = self._read_index(leaf, data)
        with self._file.errors.of(self.name_of(leaf)):
            return (yield from page_facts(self._file, self.block, chunk, index, bounds))

    def cut(self, leaf: SchemaNode, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
        with self._file.errors.of(self.name_of(leaf)):
            is_dictionary = partial(self._is_only_dictionary, leaf)
            return (yield from cut(self._chunk(leaf), pages, rows, is_dictionary))

    def cut_leaves(
        self, leaves: Sequence[SchemaNode], pages: Sequence[PageIndex], rows: RowSelection
    ) -> Steps[list[Part]]:
        if any(len(index.sizes) > 1 for index in pages):
            return (yield from super().cut_leaves(leaves, pages, rows))
        chunks = [self._chunk(leaf) for leaf in leaves]
        places = [(chunk.start, chunk.end - chunk.start) for chunk in chunks]
        buffers = yield Request(places, "data")
        each = zip(chunks, pages, buffers, strict=True)
        return [whole_part(chunk, index, rows, buffer) for chunk, index, buffer in each]

    def name_of(self, leaf: SchemaNode) -> str:
        """What messages call the chunk of a leaf."""
        return chunk_name(leaf, self.block.ordinal)

    def index_places(self, leaf: SchemaNode) -> list[tuple[int, int]]:
        """Where the offset index and the column index of a leaf are, if there are both."""
        stored = self._file.indexed(self.block, leaf)
        columns = _place(stored.column_index_offset, stored.column_index_length)
        offsets = self._offset_index_place(leaf)
        return [offsets, columns] if offsets and columns else []

    def tells_all(self, leaf: SchemaNode) -> bool:
        """Whether statistics say what the indexes would: those of a chunk of one page."""
        column = self._file.indexed(self.block, leaf).meta_data
        place = self._offset_index_place(leaf)
        is_one_page = place is not None and self._is_one_page(leaf, place[1])
        return is_one_page and column is not None and says_bounds(column.statistics)

    def read_index(self, leaf: SchemaNode, offset_index_data: pa.Buffer) -> PageIndex:
        """The pages of a leaf by its offset index, kept for whoever asks next."""
        found = offset_index(offset_index_data.to_pybytes(), self.whole_chunk(leaf))
        self._indexes[leaf.leaf_index] = found
        return found

    def told_by_headers(self, leaf: SchemaNode) -> Steps[tuple[PageIndex, Bounds] | None]:
        """The pages of a chunk without any index, and what their headers say of their values."""
        if self._offset_index_place(leaf) is not None:
            return None
        key = (self._file.token, self.block.ordinal, leaf.leaf_index, leaf.as_stored, "told")
        known = cast(_Told | None, PAGES.get(key))
        if known is None:
            known = yield from self._read_headers(leaf)
            PAGES.put(key, known, known.nbytes)
        if known.index is None:
            return None
        self._indexes[leaf.leaf_index] = known.index
        (total,) = self._file.null_counts([self.block], leaf).tolist()
        order, trusts = self._file.order(leaf), self._file.trusts(leaf)
        bounds = header_bounds(known.pages, known.index.row_counts, order, trusts, total)
        return known.index, bounds

    def _read_headers(self, leaf: SchemaNode) -> Steps["_Told"]:
        if self._file.order(leaf) is None:
            return _Told((), None)
        try:
            chunk = self._chunk(leaf)
            pages = yield from told_pages(chunk)
            if pages is None:
                return _Told((), None)
            hopped = hopped_pages(chunk, pages)
            index = hopped_index(self.whole_chunk(leaf), chunk, hopped)
        except (FileFormatError, InvalidIndex):  # who reads the column will tell
            return _Told((), None)
        if len(index.sizes) != len(pages):  # rows that no page has
            return _Told((), None)
        key = (self._file.token, self.block.ordinal, leaf.leaf_index)
        PAGES.put(key, hopped, hopped.nbytes)
        return _Told(tuple(pages), replace(index, told_by="page headers"))

    def _chunk(self, leaf: SchemaNode) -> Chunk:
        """The chunk of a leaf, which is checked once."""
        known = self._chunks.get((leaf.leaf_index, leaf.as_stored))
        if known is None:
            file = self._file
            file.require(leaf)
            stored, chain = self._stored(leaf), file.fields.chain(leaf)
            try:
                known = chunk_of(stored, self.block, leaf, chain, file.size, file.missing_bytes)
            except UnreadableChunk as error:
                raise FileFormatError(f"{file.name}: {self.name_of(leaf)} {error}") from None
            self._chunks[leaf.leaf_index, leaf.as_stored] = known
        return known

    def _stored(self, leaf: SchemaNode) -> StoredChunk:
        known = self._places.get(leaf.leaf_index)
        if known is None:
            known = self._places[leaf.leaf_index] = self._file.stored(self.block, leaf)
        return known

    def _offset_index_place(self, leaf: SchemaNode) -> tuple[int, int] | None:
        stored = self._stored(leaf)
        return _place(stored.offset_index_offset, stored.offset_index_length)

    def _is_one_page(self, leaf: SchemaNode, index_length: int) -> bool:
        """Whether an offset index is too short to list two pages: then nobody need read it.

        Each of two would take 6 bytes and an offset no shorter than the first one's, all 3 more.
        """
        offset = self._stored(leaf).data_page_offset or 0
        offset_length = (max(1, (2 * offset).bit_length()) + 6) // 7
        return index_length < 15 + 2 * offset_length

    def _is_only_dictionary(self, leaf: SchemaNode) -> bool:
        column = self._file.probed(self.block, leaf)
        return column is not None and is_only_dictionary(column)

    def _width(self, leaf: SchemaNode) -> float:
        """Bytes of one decoded row; dictionaries make what is stored much smaller than that."""
        stored = self._stored(leaf)
        size = max(stored.uncompressed_size or 0, stored.unencoded_bytes or 0)
        stated = max(0, size) / max(1, self.block.num_rows)
        return max(stated, _DECODED_WIDTH.get(leaf.physical_type or "", 16))


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """The pages of a chunk, if their headers say what values they hold."""

    pages: Sequence[Page]
    index: PageIndex | None

    @property
    def nbytes(self) -> int:
        """How much memory this takes, roughly."""
        return 64 + 1000 * len(self.pages)


def bounds_of_pages(
    file: ParquetFile, row_groups: Sequence[RowGroup], leaf: SchemaNode, every: bool = False
) -> Steps[tuple[list[PageIndex | None], Bounds]]:
    """The pages of a leaf's chunks, and what column indexes or headers say of their values.

    All column indexes are turned into bounds at once; not `every` one is read, if it says nothing
    new.
    """
    places = [
        row_group.index_places(leaf) if every or not row_group.tells_all(leaf) else []
        for row_group in row_groups
    ]
    wanted = [place for both in places for place in both]
    buffers = iter((yield Request(wanted, "index")) if wanted else ())
    unindexed = [each for each, both in zip(row_groups, places, strict=True) if not both]
    steps = [row_group.told_by_headers(leaf) for row_group in unindexed]
    by_headers = iter((yield from together(steps)) if steps else ())
    if not wanted and len(row_groups) == 1:
        described = next(by_headers)
        return ([None], Bounds.unknown([])) if described is None else ([described[0]], described[1])
    pages: list[PageIndex | None] = []
    told: dict[int, Bounds] = {}
    indexed, indexes = [], []
    counts = [np.empty(0, np.int64)]
    for place, (row_group, both) in enumerate(zip(row_groups, places, strict=True)):
        if not both:
            described = next(by_headers)
            pages.append(None if described is None else described[0])
            if described is not None:
                told[place] = described[1]
            continue
        with file.errors.of(f"the page index of {row_group.name_of(leaf)}"):
            index = row_group.read_index(leaf, next(buffers))
            indexes.append(column_index(next(buffers).to_pybytes(), index))
        indexed.append(row_group.block)
        counts.append(index.row_counts)
        pages.append(index)
    totals = file.null_counts(indexed, leaf)
    order, trusts = file.order(leaf), file.trusts(leaf)
    bounds = page_bounds(indexes, np.concatenate(counts), order, trusts, totals)
    return pages, _in_order(pages, bounds, told) if told else bounds


def _in_order(
    pages: Sequence[PageIndex | None], indexed: Bounds, told: dict[int, Bounds]
) -> Bounds:
    """The bounds of all pages, of which some come from indexes and others from headers."""
    found, end = [], 0
    for place, index in enumerate(pages):
        if place in told:
            found.append(told[place])
        elif index is not None:
            begin, end = end, end + len(index.sizes)
            found.append(indexed.between(begin, end))
    return Bounds.joined(found)


def chunk_name(leaf: SchemaNode, row_group: int) -> str:
    """What messages call the chunk of a leaf."""
    return f"column {'.'.join(leaf.path)!r} in row group {row_group}"


def _place(offset: int | None, length: int | None) -> tuple[int, int] | None:
    return (offset, length) if offset and length else None
