"""The pages of a column chunk: from its offset index, or from its page headers.

Out goes a `PageIndex` whose pages lie inside the chunk, in order, and whose rows are the block's;
or a column index that has as many pages.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fretsaw.formats import Steps
from fretsaw.layout import Int64s, PageIndex
from fretsaw.parquet import metadata
from fretsaw.parquet.pages import Page, hop


class InvalidIndex(ValueError):
    """What makes an offset index impossible."""


def offset_index(data: bytes, whole: PageIndex) -> PageIndex:
    """The pages of a chunk that has an offset index, given the chunk as one page."""
    try:
        index: Any = metadata.decode(metadata.OffsetIndex, data)
    except metadata.MalformedThrift as error:
        raise InvalidIndex(str(error)) from None
    locations = index.page_locations or []
    if not locations:
        raise InvalidIndex("it lists no pages")
    try:
        offsets, sizes, first_rows = np.array(
            [(page.offset, page.compressed_page_size, page.first_row_index) for page in locations],
            dtype=np.int64,
        ).T
    except TypeError:
        raise InvalidIndex("a page has no offset, size or first row") from None
    boundaries = np.concatenate((first_rows, whole.boundaries[-1:]))
    start, end = whole.offsets[0], whole.offsets[0] + whole.sizes[0]
    if boundaries[0] != 0 or (boundaries[1:] < boundaries[:-1]).any():
        raise InvalidIndex("its first rows do not run from 0 up to the row group's last row")
    if (offsets > end).any():
        raise InvalidIndex("a page begins behind the column chunk")
    ends = offsets + sizes
    if offsets[0] < start or ends[-1] > end or sizes.min() <= 0 or (ends[:-1] > offsets[1:]).any():
        raise InvalidIndex("its pages do not lie one after the other inside the column chunk")
    return _divided(whole, boundaries, offsets, sizes)


def column_index(data: bytes, pages: PageIndex) -> Any:
    """The column index of a chunk with these pages."""
    try:
        index: Any = metadata.decode(metadata.ColumnIndex, data)
    except metadata.MalformedThrift as error:
        raise InvalidIndex(str(error)) from None
    required = (index.null_pages, index.min_values, index.max_values)
    optional = [counts for counts in (index.null_counts, index.nan_counts) if counts is not None]
    count = len(pages.sizes)
    if any(values is None or len(values) != count for values in (*required, *optional)):
        raise InvalidIndex(f"its lists are not as long as the {count} pages of the column chunk")
    if ((pages.row_counts == 0) & ~np.array(index.null_pages, np.bool_)).any():
        raise InvalidIndex("a page that has values has no rows")
    return index


def hopped_index(whole: PageIndex, repeated: bool, until: int) -> Steps[PageIndex]:
    """The pages of a chunk without an offset index, up to the row `until`, by their headers.

    What lies behind is one page, which nobody wants. Where the headers do not tell the rows, the
    chunk stays whole.
    """
    start, end = int(whole.offsets[0]), int(whole.offsets[0] + whole.sizes[0])
    num_rows = int(whole.boundaries[-1])
    row = 0

    def enough(page: Page) -> bool:
        nonlocal row
        row += _rows(page, repeated) or 0
        return row >= until or (page.is_data and _rows(page, repeated) is None)

    pages = [page for page in (yield from hop(start, end, enough)) if page.is_data]
    if any(_rows(page, repeated) is None for page in pages):
        return replace(whole, reason="no offset index, and version 1 pages do not tell records")
    boundaries = np.cumsum([0, *(_rows(page, repeated) for page in pages)])
    offsets, sizes = [page.offset for page in pages], [page.size for page in pages]
    if row < num_rows and pages and offsets[-1] + sizes[-1] < end:
        boundaries = np.append(boundaries, num_rows)
        offsets.append(offsets[-1] + sizes[-1])
        sizes.append(end - offsets[-1])
    if boundaries[-1] != num_rows:
        raise InvalidIndex(f"pages of {boundaries[-1]} rows in a row group of {num_rows}")
    return _divided(whole, boundaries, np.array(offsets), np.array(sizes))


def _rows(page: Page, repeated: bool) -> int | None:
    return page.num_rows if repeated else page.num_values


def _divided(whole: PageIndex, boundaries: Int64s, offsets: Int64s, sizes: Int64s) -> PageIndex:
    """The chunk as its pages; what lies before them is the dictionary."""
    return replace(
        whole,
        boundaries=boundaries,
        offsets=offsets,
        sizes=sizes,
        dictionary_size=int(offsets[0] - whole.offsets[0]),
    )
