"""A Parquet file as the planner and the execution see it: the four answers of a format.

Ties together the footer, the schema tree, the offset indexes and the cut, and turns what is wrong
with a file into a `FileFormatError` that names the file, the column and the row group.
"""

import binascii
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import ReadOptions
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.bloom import may_contain, stored_values
from fretsaw.formats.parquet.byte_search import needles, rows_of_pages
from fretsaw.formats.parquet.cut import Chunk, ParquetPart, cut
from fretsaw.formats.parquet.decode import ARROW_SCHEMA, OutOfRange, decode, decode_columns
from fretsaw.formats.parquet.decompress import pays
from fretsaw.formats.parquet.dictionary import dictionary_segment, is_only_dictionary
from fretsaw.formats.parquet.fields import Fields
from fretsaw.formats.parquet.footer import Footer, chunk_start, read_footer
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
from fretsaw.formats.parquet.pages import CorruptPage, Page
from fretsaw.formats.parquet.schema import Ambiguous
from fretsaw.formats.parquet.statistics import (
    Order,
    Trusts,
    chunk_bounds,
    chunk_null_counts,
    counts_nulls,
    definition_levels,
    header_bounds,
    order_of,
    page_bounds,
)
from fretsaw.formats.parquet.writer import writer_of
from fretsaw.model.arrays import joined
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.locks import once
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.footer_cache import PAGES
from fretsaw.storage.requests import Request, Steps, together

_DECODED_WIDTH = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}

# pyarrow raises an OSError for pages that it cannot decode.
_ARROW_ERRORS = (pa.ArrowException, OSError, MemoryError)


def open_file(
    name: str, size: int, tail: pa.Buffer, options: ReadOptions, like: object
) -> Steps["ParquetReader"]:
    """Read the footer of a Parquet file; if it is `like` another one, they share their fields."""
    footer = yield from read_footer(name, size, tail)
    if isinstance(like, ParquetReader) and like.fields.fit(footer):
        return ParquetReader(name, size, footer, like.fields, options)
    return ParquetReader(name, size, footer, Fields(footer, options), options)


class ParquetReader:
    """One Parquet file; implements `fretsaw.formats.FileReader`."""

    format = "parquet"
    index_name = "column index"

    def __init__(
        self, name: str, size: int, footer: Footer, fields: Fields, options: ReadOptions
    ) -> None:
        self.footer_size = len(footer.data)
        self.blocks = footer.blocks
        self.fields = fields
        self.field_names = fields.names
        self._name = name
        self._size = size
        self._footer = footer
        self._options = options
        self._wholes: dict[tuple[int, int], PageIndex] = {}
        self._writer = writer_of(footer.created_by)
        self._token = object()

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The key-value pairs of the footer."""
        return self._footer.key_values

    @property
    def created_by(self) -> str | None:
        """The library that wrote the file."""
        return self._footer.created_by

    def describe(self, positions: Sequence[int]) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
        names = [repr(self.field_names[position]) for position in positions]
        with self._translated(f"column {names[0]}" if len(names) == 1 else "its schema"):
            known = self.fields.describe(positions)
        own = {key: value for key, value in self.metadata.items() if key != ARROW_SCHEMA}
        return pa.schema([field for field, _ in known], own), tuple(node for _, node in known)

    def locate(self, blocks: Sequence[Block]) -> Steps[None]:
        yield from ()

    def chunk(self, block: Block, leaf: SchemaNode) -> PageIndex:
        key = (block.ordinal, leaf.leaf_index)
        if key not in self._wholes:
            chunk = self._chunk(block, leaf)
            self._wholes[key] = PageIndex(
                boundaries=np.array([0, block.num_rows]),
                offsets=np.array([chunk.start]),
                sizes=np.array([chunk.end - chunk.start]),
                width=self._width(block, leaf),
            )
        return self._wholes[key]

    def page_index(
        self, block: Block, leaf: SchemaNode, whole: PageIndex, until: int
    ) -> Steps[PageIndex]:
        place = self._offset_index_place(block, leaf)
        if place is None:
            with self._translated(_at(leaf, block.ordinal)):
                return (yield from self._hopped(block, leaf, whole, until))
        (data,) = yield Request([place], "index")
        with self._translated(f"the offset index of {_at(leaf, block.ordinal)}"):
            return offset_index(data.to_pybytes(), whole)

    def _hopped(
        self, block: Block, leaf: SchemaNode, whole: PageIndex, until: int
    ) -> Steps[PageIndex]:
        """The pages by their headers: each chunk is gone through once, as far as is needed."""
        key = (self._token, block.ordinal, leaf.leaf_index)
        chunk, before = self._chunk(block, leaf), cast(Hopped | None, PAGES.get(key))
        verify = self._options.verify
        hopped = yield from hop_rows(chunk, block.num_rows, before, until, verify)
        if hopped is not None and hopped is not before:
            PAGES.put(key, hopped, hopped.nbytes)
        return hopped_index(whole, chunk, hopped)

    def block_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        yield from ()
        chunks = [self._indexed(block, leaf) for block in blocks]
        row_counts = np.array([block.num_rows for block in blocks], np.int64)
        return chunk_bounds(chunks, row_counts, self._order(leaf), self._trusts(leaf))

    def indexed_pages(
        self, blocks: Sequence[Block], leaf: SchemaNode
    ) -> Steps[tuple[list[PageIndex | None], Bounds]]:
        places = [self._page_index_places(block, leaf) for block in blocks]
        wanted = [place for both in places for place in both]
        buffers = iter((yield Request(wanted, "index")) if wanted else ())
        pages: list[PageIndex | None] = []
        indexes = []
        unindexed = [block for block, both in zip(blocks, places, strict=True) if not both]
        steps = [self._told_by_headers(block, leaf) for block in unindexed]
        by_headers = iter((yield from together(steps)) if steps else ())
        told: dict[int, Bounds] = {}
        for place, (block, both) in enumerate(zip(blocks, places, strict=True)):
            if not both:
                described = next(by_headers)
                pages.append(None if described is None else described[0])
                if described is not None:
                    told[place] = described[1]
                continue
            with self._translated(f"the page index of {_at(leaf, block.ordinal)}"):
                index = offset_index(next(buffers).to_pybytes(), self.chunk(block, leaf))
                indexes.append(column_index(next(buffers).to_pybytes(), index))
            pages.append(index)
        indexed = [(b, p) for b, p in zip(blocks, pages, strict=True) if p and not p.told_by]
        trusts = self._trusts(leaf)
        totals = chunk_null_counts(
            [self._indexed(block, leaf) for block, _ in indexed],
            np.array([block.num_rows for block, _ in indexed], np.int64),
            trusts,
        )
        row_counts = [np.empty(0, np.int64), *(index.row_counts for _, index in indexed)]
        bounds = page_bounds(indexes, np.concatenate(row_counts), self._order(leaf), trusts, totals)
        return pages, _in_order(pages, bounds, told) if told else bounds

    def _told_by_headers(
        self, block: Block, leaf: SchemaNode
    ) -> Steps[tuple[PageIndex, Bounds] | None]:
        """The pages of a chunk without any index, and what their headers say of their values."""
        key = (self._token, block.ordinal, leaf.leaf_index, leaf.as_stored, "told")
        known = cast(_Told | None, PAGES.get(key))
        order, trusts = self._order(leaf), self._trusts(leaf)
        if known is None:
            known = yield from self._read_headers(block, leaf)
            PAGES.put(key, known, known.nbytes)
        if known.index is None:
            return None
        row_counts, chunk = known.index.row_counts, [self._indexed(block, leaf)]
        (total,) = chunk_null_counts(chunk, np.array([block.num_rows]), trusts).tolist()
        return known.index, header_bounds(known.pages, row_counts, order, trusts, total)

    def _read_headers(self, block: Block, leaf: SchemaNode) -> Steps["_Told"]:
        if self._offset_index_place(block, leaf) is not None or self._order(leaf) is None:
            return _Told((), None)
        try:
            chunk = self._chunk(block, leaf)
            pages = yield from told_pages(chunk)
            if pages is None:
                return _Told((), None)
            hopped = hopped_pages(chunk, pages)
            index = hopped_index(self.chunk(block, leaf), chunk, hopped)
        except (FileFormatError, InvalidIndex):  # who reads the column will tell
            return _Told((), None)
        if len(index.sizes) != len(pages):  # rows that no page has
            return _Told((), None)
        PAGES.put((self._token, block.ordinal, leaf.leaf_index), hopped, hopped.nbytes)
        return _Told(tuple(pages), replace(index, told_by="page headers"))

    def bloom_rows(
        self, block: Block, leaf: SchemaNode, keys: Sequence[Any]
    ) -> Steps[RowSelection | None]:
        column, order = self._probed(block, leaf), self._order(leaf)
        if column is None or not column.bloom_filter_offset or order is None:
            return None
        values = stored_values(keys, order)
        if values is None:
            return None
        with self._translated(f"the Bloom filter of {_at(leaf, block.ordinal)}"):
            place = (column.bloom_filter_offset, column.bloom_filter_length, self._size)
            may = yield from may_contain(*place, values)
        return None if may else RowSelection.none(block.num_rows)

    def dictionary(self, block: Block, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        if not self._is_only_dictionary(block, leaf):
            return None
        with self._translated(f"the dictionary of {_at(leaf, block.ordinal)}"):
            segment = yield from dictionary_segment(self._chunk(block, leaf))
            if segment is None:
                return None
            # The page behind the dictionary is made up here, not by the writer.
            return decode_columns([[segment]], None, self._options, pa.allocate_buffer)[0]

    def narrowed(
        self,
        block: Block,
        leaf: SchemaNode,
        pages: PageIndex,
        rows: RowSelection,
        keys: Sequence[Any],
    ) -> Steps[RowSelection]:
        order = self._order(leaf)
        if order is None or order.kind != "bytes" or self._is_only_dictionary(block, leaf):
            return rows
        wanted = needles(keys, leaf.physical_type or "")
        if wanted is None:
            return rows
        with self._translated(_at(leaf, block.ordinal)):
            chunk, verify = self._chunk(block, leaf), self._options.verify
            return (yield from rows_of_pages(chunk, pages, rows, wanted, verify))

    def cut(
        self,
        block: Block,
        leaf: SchemaNode,
        pages: PageIndex,
        rows: RowSelection,
        encoded: bool = False,
    ) -> Steps[ParquetPart]:
        with self._translated(_at(leaf, block.ordinal)):
            return (yield from cut(self._chunk(block, leaf), pages, rows, encoded))

    def decode(
        self, leaves: Sequence[Sequence[ParquetPart]], allocate: Allocate
    ) -> list[pa.ChunkedArray]:
        try:
            for parts in leaves:
                if len(parts) > 1:
                    _require_values(parts)
            return decode(leaves, self._footer.created_by, self._options, allocate)
        except (*_ARROW_ERRORS, CorruptPage, OutOfRange):
            if sum(map(len, leaves)) > 1:  # to find out which one it is
                each = [[self.decode([[part]], allocate)[0] for part in parts] for parts in leaves]
                return [joined(arrays) for arrays in each]
            ((part,),) = leaves
            with self._translated(_at(part.leaf, part.chunk.block)):
                filled = part.without_empty_pages()
                if filled is None:
                    raise
                return decode([[filled]], self._footer.created_by, self._options, allocate)

    def _chunk(self, block: Block, leaf: SchemaNode) -> Chunk:
        stored = self._footer.row_groups[block.ordinal].columns[leaf.leaf_index]
        place = _at(leaf, block.ordinal)
        with self._translated(f"column {'.'.join(leaf.path)!r}"):
            self.fields.require(leaf)
        if stored.crypto_metadata is not None or stored.meta_data is None:
            raise FileFormatError(
                f"{self._name}: {place} is encrypted; select other columns or decrypt it first"
            )
        if stored.file_path:
            raise FileFormatError(
                f"{self._name}: {place} is stored in another file, {stored.file_path!r}; scan that"
            )
        column = stored.meta_data
        start = chunk_start(column)
        end = start + (column.total_compressed_size or 0)
        values = column.num_values
        if not 0 <= start < end <= self._size or values is None or values < 0:
            raise FileFormatError(
                f"{self._name}: {place} claims {values} values in the bytes {start} to {end} of a "
                f"file of {self._size}; it is truncated or corrupt, write or copy it again"
            )
        leaf_chain = self.fields.chain(leaf)
        if column.codec is None or column.type != leaf_chain.elements[-1].type:
            raise FileFormatError(
                f"{self._name}: {place} has no codec, or a type other than in the schema; "
                f"it is corrupt, write or copy it again"
            )
        path = column.path_in_schema
        if path is not None and path != [name.encode() for name in leaf.physical_path]:
            stored_path = b".".join(path).decode(errors="replace")
            raise FileFormatError(
                f"{self._name}: {place} names itself {stored_path!r}; "
                f"the footer is corrupt, write or copy the file again"
            )
        if values != block.num_rows and not leaf.is_repeated:
            raise FileFormatError(
                f"{self._name}: {place} claims {values} values for {block.num_rows} rows; "
                f"it is corrupt, write or copy it again"
            )
        return Chunk(
            leaf=leaf,
            chain=leaf_chain,
            physical_type=column.type,
            block=block.ordinal,
            num_values=values,
            codec=column.codec,
            unpacks=pays(column.codec, end - start, column.total_uncompressed_size or 0),
            start=start,
            end=min(end + self._writer.missing_bytes, self._size),
            always_compressed=self._writer.always_compresses,
        )

    def _offset_index_place(self, block: Block, leaf: SchemaNode) -> tuple[int, int] | None:
        stored = self._footer.row_groups[block.ordinal].columns[leaf.leaf_index]
        return _place(stored.offset_index_offset, stored.offset_index_length)

    def _page_index_places(self, block: Block, leaf: SchemaNode) -> list[tuple[int, int]]:
        """Where the offset index and the column index are, if there are both."""
        stored = self._indexed(block, leaf)
        columns = _place(stored.column_index_offset, stored.column_index_length)
        offsets = self._offset_index_place(block, leaf)
        return [offsets, columns] if offsets and columns else []

    def _indexed(self, block: Block, leaf: SchemaNode) -> Any:
        return self._indexed_footer.row_groups[block.ordinal].columns[leaf.leaf_index]

    @once
    def _indexed_footer(self) -> Any:
        """What the footer says about values: only predicates need it."""
        with self._translated("its footer"):
            return metadata.decode(metadata.IndexedFileMetaData, self._footer.data)

    def _is_only_dictionary(self, block: Block, leaf: SchemaNode) -> bool:
        column = self._probed(block, leaf)
        return column is not None and is_only_dictionary(column)

    def _probed(self, block: Block, leaf: SchemaNode) -> Any:
        row_group = self._probed_footer.row_groups[block.ordinal]
        return row_group.columns[leaf.leaf_index].meta_data

    @once
    def _probed_footer(self) -> Any:
        """What the footer says about Bloom filters and dictionaries."""
        with self._translated("its footer"):
            return metadata.decode(metadata.ProbedFileMetaData, self._footer.data)

    def _order(self, leaf: SchemaNode) -> Order | None:
        return order_of(self.fields.element(leaf), leaf)

    def _trusts(self, leaf: SchemaNode) -> Trusts:
        orders = self._indexed_footer.column_orders or []
        known = leaf.leaf_index < len(orders) and bool(vars(orders[leaf.leaf_index]))
        levels = definition_levels(self.fields.chain(leaf).elements)
        order = self._order(leaf)
        if self._writer.compares_signed and order is not None and not order.was_defined:
            known = False
        return Trusts(
            column_order=known,
            counts_nulls=counts_nulls(self._footer.created_by),
            no_nulls=levels == 1,
            flat=not leaf.is_repeated,
            levels=levels,
        )

    def _width(self, block: Block, leaf: SchemaNode) -> float:
        """Bytes of one decoded row; dictionaries make what is stored much smaller than that."""
        stored = self._footer.row_groups[block.ordinal].columns[leaf.leaf_index].meta_data
        size = stored.total_uncompressed_size or 0
        if stored.size_statistics is not None:
            size = max(size, stored.size_statistics.unencoded_byte_array_data_bytes or 0)
        stated = max(0, size) / max(1, block.num_rows)
        return max(stated, _DECODED_WIDTH.get(leaf.physical_type or "", 16))

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Turn what pyarrow and the checks of this package raise into the error of the contract."""
        try:
            yield
        except OutOfRange as error:
            raise FileFormatError(f"{self._name}: {what} has {error}") from None
        except (
            Ambiguous,
            CorruptPage,
            InvalidIndex,
            metadata.MalformedThrift,
            binascii.Error,
        ) as error:
            raise FileFormatError(
                f"{self._name}: {what} is corrupt: {error}; write or copy the file again"
            ) from None
        except _ARROW_ERRORS as error:
            raise FileFormatError(
                f"{self._name}: {what} cannot be read: {' '.join(str(error).split()).rstrip('.')}; "
                f"the file is corrupt or uses what pyarrow {pa.__version__} does not support"
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """The pages of a chunk, if their headers say what values they hold."""

    pages: Sequence[Page]
    index: PageIndex | None

    @property
    def nbytes(self) -> int:
        """How much memory this takes, roughly."""
        return 64 + 1000 * len(self.pages)


def _in_order(
    pages: Sequence[PageIndex | None], indexed: Bounds, told: Mapping[int, Bounds]
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


def _require_values(parts: Sequence[ParquetPart]) -> None:
    """One chunk must not go on where another one is expected to begin."""
    for part in parts:
        if not part.holds_what_it_claims():
            raise CorruptPage(f"its pages do not hold the {part.page_rows} values of the chunk")


def _place(offset: int | None, length: int | None) -> tuple[int, int] | None:
    return (offset, length) if offset and length else None


def _at(leaf: SchemaNode, block: int) -> str:
    return f"column {'.'.join(leaf.path)!r} in row group {block}"
