"""Which pages may hold a string: searched for in the decompressed bytes, before any decoding.

A plain page stores a string as its length and its bytes; a page that refers to the dictionary has
it only if the dictionary has. Other encodings are left to Arrow.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fretsaw.formats import Request, Steps
from fretsaw.layout import PageIndex
from fretsaw.parquet import metadata
from fretsaw.parquet.cut import Chunk, fetch_pages
from fretsaw.parquet.decompress import NotDecompressed, contents, readable
from fretsaw.parquet.pages import Page, walk
from fretsaw.selection import RowSelection
from fretsaw.values import Booleans

_LENGTH_BYTES = 4


def needles(keys: Sequence[bytes], physical_type: str) -> list[bytes] | None:
    """The bytes by which values are found in plain pages, if their type has such."""
    if physical_type == "BYTE_ARRAY":
        return [len(key).to_bytes(_LENGTH_BYTES, "little") + key for key in keys]
    return list(keys) if physical_type == "FIXED_LEN_BYTE_ARRAY" and all(keys) else None


def rows_of_pages(
    chunk: Chunk, pages: PageIndex, rows: RowSelection, wanted: Sequence[bytes], verify: bool
) -> Steps[RowSelection]:
    """The rows without those of pages that hold none of the needles.

    A page with a wrong checksum is kept, if that is to be verified: Arrow will tell.
    """
    keep = pages.overlapping(rows.starts, rows.ends).nonzero()[0]
    found, buffers, first_of_run = yield from fetch_pages(chunk, pages, keep)
    in_dictionary = True
    if any(page.uses_dictionary for page in found):
        (stored,) = yield Request([(chunk.start, int(pages.offsets[0]) - chunk.start)], "data")
        entries = list(walk(stored))  # none at all is for Arrow to complain about
        in_dictionary = not entries or any(
            _holds(p, stored.slice(p.offset, p.size), chunk, wanted, verify) for p in entries
        )
    holding: Booleans = np.zeros(len(pages.sizes), np.bool_)
    runs = np.searchsorted(first_of_run, np.arange(len(found)), "right") - 1
    for place, page, run in zip(keep.tolist(), found, runs.tolist(), strict=True):
        if page.uses_dictionary:
            holding[place] = in_dictionary
        else:
            start = page.offset - found[first_of_run[run]].offset
            body = buffers[run].slice(start, page.size)
            holding[place] = _holds(page, body, chunk, wanted, verify)
    return rows & RowSelection.from_pages(holding, pages.boundaries)


def _holds(
    page: Page, buffer: pa.Buffer, chunk: Chunk, wanted: Sequence[bytes], verify: bool
) -> bool:
    """Whether a page may hold one of the needles."""
    header: Any = page.header
    details = header.data_page_header or header.data_page_header_v2
    if details is not None and details.encoding != metadata.PLAIN:
        return True
    try:
        _, body = contents(page, buffer, chunk.codec, verify)
        memory = readable(body)
    except NotDecompressed:
        return True
    return any(memory.find(needle, 0, body.size) >= 0 for needle in wanted)
