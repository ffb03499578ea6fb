"""Which pages may hold a string: searched for in the decompressed bytes, before any decoding.

A plain page stores a string as its length and its bytes; a page that refers to the dictionary has
it only if the dictionary has. Other encodings are left to Arrow.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.chunk import Chunk
from fretsaw.formats.parquet.cut import fetch_dictionary, fetch_pages
from fretsaw.formats.parquet.decompress import NotDecompressed, contents, readable
from fretsaw.formats.parquet.pages import CorruptPage, Page, PageRun
from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.value_set import Booleans
from fretsaw.storage.requests import Steps

_LENGTH_BYTES = 4
_SAMPLE = 4  # pages that are searched first


def needles(keys: Sequence[bytes], physical_type: str) -> list[bytes] | None:
    """The bytes by which values are found in plain pages, if their type has such."""
    if physical_type == "BYTE_ARRAY":
        return [len(key).to_bytes(_LENGTH_BYTES, "little") + key for key in keys]
    return list(keys) if physical_type == "FIXED_LEN_BYTE_ARRAY" and all(keys) else None


def rows_of_pages(
    chunk: Chunk, pages: PageIndex, rows: RowSelection, wanted: Sequence[bytes], verify: bool
) -> Steps[RowSelection]:
    """The rows without those of pages that hold none of the needles.

    All of them, if the first pages that are searched hold some: then others will, too. A page with
    a wrong checksum is kept, if that is to be verified: Arrow will tell.
    """
    if not rows.selects_any() or pages.records_go_on:
        return rows
    search = _Search(chunk, wanted, verify)
    keep = pages.overlapping(rows.starts, rows.ends).nonzero()[0]
    sample = yield from search.holding(pages, keep[:_SAMPLE])
    if sum(sample) * 2 > len(sample):
        return rows
    rest = yield from search.holding(pages, keep[_SAMPLE:])
    holding: Booleans = np.zeros(len(pages.sizes), np.bool_)
    holding[keep] = [*sample, *rest]
    return rows & RowSelection.from_pages(holding, pages.boundaries)


class _Search:
    """A search for needles in the pages of a chunk."""

    def __init__(self, chunk: Chunk, wanted: Sequence[bytes], verify: bool) -> None:
        self._chunk = chunk
        self._wanted = wanted
        self._verify = verify
        self._in_dictionary: bool | None = None

    def holding(self, pages: PageIndex, keep: Int64s) -> Steps[list[bool]]:
        """Whether each of these pages may hold one of the needles."""
        if not len(keep):
            return []
        runs = yield from fetch_pages(self._chunk, pages, keep)
        uses_dictionary = any(page.uses_dictionary for run in runs for page in run.pages)
        if self._in_dictionary is None and uses_dictionary:
            stored = yield from fetch_dictionary(self._chunk, pages)
            self._in_dictionary = self._are_in_dictionary(stored)
        return [
            bool(self._in_dictionary) if page.uses_dictionary else self._holds(run, page)
            for run in runs
            for page in run.pages
        ]

    def _are_in_dictionary(self, stored: PageRun) -> bool:
        # None at all is for Arrow to complain about.
        return not stored.pages or any(self._holds(stored, page) for page in stored.pages)

    def _holds(self, run: PageRun, page: Page) -> bool:
        header: Any = page.header
        details = header.data_page_header or header.data_page_header_v2
        if details is not None and details.encoding != metadata.PLAIN:
            return True
        try:
            how = (self._chunk.codec, self._chunk.always_compressed, self._verify)
            _, body = contents(page, run.bytes_of(page), *how)
            memory = readable(body)
        except (CorruptPage, NotDecompressed):
            return True
        return any(memory.find(needle, 0, body.size) >= 0 for needle in self._wanted)
