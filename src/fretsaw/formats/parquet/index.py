"""The pages of a column chunk: from its offset index, or from its page headers.

Out goes a `PageIndex` whose pages lie inside the chunk, in order, and whose rows are the block's;
or a column index that has as many pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fretsaw.formats.kernels import load_kernels
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.chunk import Chunk
from fretsaw.formats.parquet.decompress import NotDecompressed, body_of
from fretsaw.formats.parquet.levels import UnknownLevels, count_records
from fretsaw.formats.parquet.pages import CorruptPage, Page, hop
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.predicates.value_set import Booleans
from fretsaw.storage.requests import Request, Steps

_SMALL_PAGE = 8 << 10  # the header of which costs more than it may save
_MOST_ASKED = 256  # pages of a chunk whose headers are asked only for what they say of values
_MOST_COUNTED = 8 << 20  # bytes of pages that are decompressed only to count their records


class InvalidIndex(ValueError):
    """What makes an offset index impossible."""


def offset_index(data: bytes, whole: PageIndex) -> PageIndex:
    """The pages of a chunk that has an offset index, given the chunk as one page."""
    start, num_rows = int(whole.offsets[0]), int(whole.boundaries[-1])
    end = start + int(whole.sizes[0])
    kernels = load_kernels()
    parsed = None if kernels is None else kernels.parse_page_places(data, num_rows, start, end)
    if parsed is not None:
        numbers = np.frombuffer(parsed, np.int64)
        count = len(numbers) // 3
        places = numbers[count + 1 : 2 * count + 1], numbers[2 * count + 1 :]
        return _divided(whole, numbers[: count + 1], *places)
    offsets, sizes, first_rows = _locations(data)
    if not len(offsets):
        raise InvalidIndex("it lists no pages")
    boundaries = np.concatenate((first_rows, whole.boundaries[-1:]))
    if boundaries[0] != 0 or (boundaries[1:] < boundaries[:-1]).any():
        raise InvalidIndex("its first rows do not run from 0 up to the row group's last row")
    if (offsets > end).any():
        raise InvalidIndex("a page begins behind the column chunk")
    ends = offsets + sizes
    if offsets[0] < start or ends[-1] > end or sizes.min() <= 0 or (ends[:-1] > offsets[1:]).any():
        raise InvalidIndex("its pages do not lie one after the other inside the column chunk")
    return _divided(whole, boundaries, offsets, sizes)


def _locations(data: bytes) -> Int64s:
    """The offsets of pages, their sizes, their first rows."""
    try:
        index: Any = metadata.decode(metadata.OffsetIndex, data)
    except metadata.MalformedThrift as error:
        raise InvalidIndex(str(error)) from None
    pages = index.page_locations or []
    places = [(page.offset, page.compressed_page_size, page.first_row_index) for page in pages]
    try:
        return np.array(places, np.int64).reshape(-1, 3).T
    except TypeError:
        raise InvalidIndex("a page has no offset, size or first row") from None


class ColumnIndex(NamedTuple):
    """What a column index says about each page of a chunk."""

    null_pages: Booleans
    min_values: list[bytes]
    max_values: list[bytes]
    null_counts: Int64s | None
    nan_counts: Int64s | None
    levels: Int64s | None
    """How many values there are at each definition level, if there are null pages."""


def column_index(data: bytes, pages: PageIndex) -> ColumnIndex:
    """The column index of a chunk with these pages."""
    lists = _lists(data)
    count = len(pages.sizes)
    required, optional = lists[:3], [counts for counts in lists[3:5] if counts is not None]
    if any(values is None or len(values) != count for values in (*required, *optional)):
        raise InvalidIndex(f"its lists are not as long as the {count} pages of the column chunk")
    index = ColumnIndex(*lists)
    if ((pages.row_counts == 0) & ~index.null_pages).any():
        raise InvalidIndex("a page that has values has no rows")
    return index


def _lists(data: bytes) -> list[Any]:
    """The lists of a column index that are there: by the kernels, or else by thrift."""
    kernels = load_kernels()
    index: Any = None if kernels is None else kernels.parse_column_index(data)
    as_array: Any = np.frombuffer
    levels = index
    if index is None:
        as_array = np.array
        try:
            index = metadata.decode(metadata.ColumnIndex, data)
            if any(index.null_pages or ()):
                levels = metadata.decode(metadata.ColumnIndexLevels, data)
        except metadata.MalformedThrift as error:
            raise InvalidIndex(str(error)) from None

    def array(values: Any, dtype: Any = np.int64) -> Any:
        return None if values is None else as_array(values, dtype)

    nulls = array(index.null_pages, np.bool_)
    return [
        nulls,
        index.min_values,
        index.max_values,
        array(index.null_counts),
        array(index.nan_counts),
        array(levels.definition_level_histograms) if nulls is not None and nulls.any() else None,
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Hopped:
    """The data pages of a chunk without an offset index, as far as their headers were read."""

    offsets: Int64s
    sizes: Int64s
    row_counts: Int64s
    """Records that begin in each page."""
    end: int
    """Where the next header is."""
    counted: bool = False
    """Whether records were counted by their levels, so that one may go on in the next page."""

    @property
    def num_rows(self) -> int:
        """Rows that begin in all these pages."""
        return int(self.row_counts.sum())

    @property
    def nbytes(self) -> int:
        """How much memory this takes."""
        return 3 * self.offsets.nbytes

    def followed_by(self, pages: Sequence[Page], row_counts: Sequence[int]) -> "Hopped":
        """These pages and the data pages among the next ones, which have so many rows."""
        data = [page for page in pages if page.is_data]
        return replace(
            self,
            offsets=_appended(self.offsets, [page.offset for page in data]),
            sizes=_appended(self.sizes, [page.size for page in data]),
            row_counts=_appended(self.row_counts, row_counts),
            end=pages[-1].offset + pages[-1].size if pages else self.end,
        )


def told_pages(chunk: Chunk) -> Steps[list[Page] | None]:
    """All data pages of a chunk, if their own headers say what values they hold.

    None as soon as one does not, where they do not tell their rows, where the chunk is one page, or
    where pages are so small or so many that to ask for their headers costs more than it may save.
    """
    told, values, headers = True, 0, 0

    def enough(page: Page) -> bool:
        nonlocal told, values, headers
        values += page.num_values
        headers += 1
        if page.is_data:
            is_only = values >= chunk.num_values and headers <= 2
            is_small = page.size <= _SMALL_PAGE and values < chunk.num_values
            says_rows = rows_of(page, chunk.leaf.is_repeated) is not None
            told = page.statistics is not None and says_rows and not is_small and not is_only
        return not told or values >= chunk.num_values or headers > _MOST_ASKED

    try:
        pages = yield from hop(chunk.start, chunk.end, enough, metadata.ToldPageHeader)
    except CorruptPage:  # who reads the page will tell
        return None
    data = [page for page in pages if page.is_data]
    return data if told and values == chunk.num_values else None


def hopped_pages(chunk: Chunk, pages: Sequence[Page]) -> Hopped:
    """All data pages of a chunk, whose headers tell their rows."""
    empty = np.empty(0, np.int64)
    row_counts = [rows_of(page, chunk.leaf.is_repeated) or 0 for page in pages]
    return Hopped(empty, empty, empty, chunk.start).followed_by(pages, row_counts)


def hop_rows(
    chunk: Chunk, num_rows: int, known: Hopped | None, until: int, verify: bool
) -> Steps[Hopped | None]:
    """The pages of a chunk up to the row `until`, or a little further, from where they are known.

    None where the headers do not tell the rows and the levels of the pages do not either, or where
    to count them takes as much as to read the chunk.
    """
    if known is None:
        empty = np.empty(0, np.int64)
        known = Hopped(empty, empty, empty, chunk.start)
    is_worth_counting = until / max(1, num_rows) <= _most_counted(chunk) / _size(chunk)
    if known.counted:
        if known.num_rows <= until and not is_worth_counting:
            return None
        return (yield from _count_records(chunk, known, until, verify))
    row, repeated = known.num_rows, chunk.leaf.is_repeated
    if row >= until:
        return known
    untold = False

    def enough(page: Page) -> bool:
        nonlocal row, untold
        rows = rows_of(page, repeated)
        untold = page.is_data and rows is None
        row += rows or 0
        return row >= until or untold

    pages = yield from hop(known.end, chunk.end, enough)
    if untold:
        pages.pop()
    row_counts = [rows_of(page, repeated) or 0 for page in pages if page.is_data]
    known = known.followed_by(pages, row_counts)
    if untold:
        if not is_worth_counting:
            return None
        counting = replace(known, counted=True)
        return (yield from _count_records(chunk, counting, until, verify))
    return known


def hopped_index(whole: PageIndex, chunk: Chunk, hopped: Hopped | None) -> PageIndex:
    """The chunk as pages; what lies behind those that are known is one page, which nobody wants."""
    if hopped is None:
        return replace(whole, reason="no offset index, and version 1 pages do not tell records")
    num_rows, end = int(whole.boundaries[-1]), chunk.end
    boundaries = _appended(np.zeros(1, np.int64), np.cumsum(hopped.row_counts))
    offsets, sizes = hopped.offsets, hopped.sizes
    if boundaries[-1] < num_rows and len(offsets) and hopped.end < end:
        boundaries = _appended(boundaries, [num_rows])
        offsets = _appended(offsets, [hopped.end])
        sizes = _appended(sizes, [end - hopped.end])
    if boundaries[-1] != num_rows:
        raise InvalidIndex(f"pages of {boundaries[-1]} rows in a row group of {num_rows}")
    divided = _divided(whole, boundaries, offsets, sizes)
    return replace(divided, records_go_on=hopped.counted)


def _count_records(chunk: Chunk, known: Hopped, until: int, verify: bool) -> Steps[Hopped | None]:
    """The pages up to the one where the record `until` begins, by their repetition levels."""
    most = chunk.start + _most_counted(chunk)
    highest = sum(e.repetition_type == metadata.REPEATED for e in chunk.chain.elements)
    at_once = 1
    while known.num_rows <= until:
        ahead = 0

        def enough(page: Page, most: int = at_once) -> bool:
            nonlocal ahead
            ahead += page.is_data
            return ahead >= most

        pages = yield from hop(known.end, chunk.end, enough)
        data = [page for page in pages if page.is_data]
        if not data or data[-1].offset + data[-1].size > most:
            return None
        begin = data[0].offset
        (stored,) = yield Request([(begin, data[-1].offset + data[-1].size - begin)], "index")
        try:
            row_counts = [
                _records(chunk, page, stored.slice(page.offset - begin, page.size), highest, verify)
                for page in data
            ]
        except (NotDecompressed, UnknownLevels):  # Arrow will tell what is wrong
            return None
        known = known.followed_by(pages, row_counts)
        at_once *= 2
    return known


def _size(chunk: Chunk) -> int:
    return chunk.end - chunk.start


def _most_counted(chunk: Chunk) -> int:
    """Up to how many of its bytes counting records is cheaper than reading the whole chunk."""
    return min(_MOST_COUNTED, _size(chunk) // 2)


def _records(chunk: Chunk, page: Page, stored: pa.Buffer, highest: int, verify: bool) -> int:
    """How many records begin in a page."""
    if page.num_rows is not None:
        return page.num_rows
    if page.header.data_page_header is None:
        raise UnknownLevels("a page of version 2 that does not tell its rows")
    encoding = page.header.data_page_header.repetition_level_encoding
    body = memoryview(body_of(page, stored, chunk.codec, verify)).cast("B")
    return count_records(body, page.num_values, encoding, highest)


def rows_of(page: Page, repeated: bool) -> int | None:
    """How many rows a page has by its header, if that says it."""
    return page.num_rows if repeated else page.num_values


def _appended(numbers: Int64s, more: Int64s | Sequence[int]) -> Int64s:
    return np.concatenate((numbers, np.array(more, np.int64)))


def _divided(whole: PageIndex, boundaries: Int64s, offsets: Int64s, sizes: Int64s) -> PageIndex:
    """The chunk as its pages; what lies before them is the dictionary."""
    before = int(offsets[0]) - int(whole.offsets[0])
    return PageIndex(boundaries, offsets, sizes, whole.width, dictionary_size=before)
