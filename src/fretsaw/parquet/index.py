"""Offset indexes: the pages of a column chunk, checked against the chunk.

In comes the thrift index, out goes a `PageIndex` whose pages lie inside the chunk, in order, and
whose rows are the block's.
"""

from typing import Any

import numpy as np

from fretsaw.layout import PageIndex
from fretsaw.parquet import metadata


class InvalidIndex(ValueError):
    """What makes an offset index impossible."""


def page_index(data: bytes, num_rows: int, start: int, end: int, width: float) -> PageIndex:
    """The pages of a chunk that lies between the bytes `start` and `end` of its file."""
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
        ).T.copy()
    except TypeError:
        raise InvalidIndex("a page has no offset, size or first row") from None
    boundaries = np.append(first_rows, num_rows)
    if boundaries[0] != 0 or (np.diff(boundaries) < 0).any():
        raise InvalidIndex("its first rows do not run from 0 up to the row group's last row")
    ends = offsets + sizes
    if (
        offsets[0] < start
        or ends[-1] > end
        or (sizes <= 0).any()
        or (ends[:-1] > offsets[1:]).any()
    ):
        raise InvalidIndex("its pages do not lie one after the other inside the column chunk")
    return PageIndex(boundaries, offsets, sizes, width)
