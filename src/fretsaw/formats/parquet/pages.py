"""Page headers: what the pages of a chunk say about themselves.

`hop` goes from header to header and asks for little more than these; `walk` does so in memory.
Nothing is decompressed or decoded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fretsaw.formats.kernels import load_kernels
from fretsaw.formats.parquet import metadata
from fretsaw.model.locks import once
from fretsaw.storage.requests import Request, Steps, run

_HEADER_BYTES = 256  # enough for most page headers
MOST_EMPTY = 1000
"""Pages without values that a chunk may have to be looked into; the rest is left to Arrow."""


class CorruptPage(ValueError):
    """A page that contradicts what the file says about it."""


class Page(NamedTuple):
    """What the header of a page says; `size` includes the header."""

    offset: int
    size: int
    is_data: bool
    num_values: int
    num_rows: int | None
    """Records that begin in the page; version 2 of data pages says so."""
    uses_dictionary: bool
    dictionary_entries: int | None = None
    """How many entries a dictionary page has."""
    header: Any = None

    @property
    def statistics(self) -> Any:
        """What a header that was read with statistics says about the values of a data page."""
        details = self.header.data_page_header or self.header.data_page_header_v2
        return details.statistics


class PageRun:
    """Pages one behind the other in one buffer; their headers are parsed once and kept.

    They are all pages of the buffer, or those that hold its first values.
    """

    def __init__(self, buffer: pa.Buffer, num_values: int | None = None) -> None:
        self.buffer = buffer
        self._num_values = num_values

    @once
    def pages(self) -> list[Page]:
        """What the headers say; offsets count from the start of the buffer."""
        if self._num_values is not None:
            return walk(self.buffer, self._num_values, MOST_EMPTY)
        parsed = _parsed(self.buffer)
        return walk(self.buffer) if parsed is None else parsed

    def bytes_of(self, page: Page) -> pa.Buffer:
        """Header and body of one of the pages."""
        if page.offset + page.size > self.buffer.size:
            raise CorruptPage("a page that goes on behind its chunk")
        return self.buffer.slice(page.offset, page.size)


def _parsed(buffer: pa.Buffer) -> list[Page] | None:
    """All pages of a buffer as the kernels tell them, without their headers; None: they do not."""
    kernels = load_kernels()
    told = None if kernels is None else kernels.parse_pages(buffer)
    if told is None:
        return None
    pages = np.frombuffer(told, np.int64).reshape(-1, 7).tolist()
    return [
        Page(at, size, bool(data), values, _told(rows), bool(refers), _told(entries))
        for at, size, data, values, rows, refers, entries in pages
    ]


def _told(count: int) -> int | None:
    return None if count < 0 else count


def walk(
    buffer: pa.Buffer, num_values: int | None = None, most_empty: int | None = None
) -> list[Page]:
    """The pages of a buffer, one behind the other, or those that hold its first values.

    Offsets count from the start of the buffer. More pages without a value than `most_empty` are an
    error: it would take long to look at all that fit into a chunk.
    """
    values = empty = 0

    def is_last(page: Page) -> bool:
        nonlocal values, empty
        values += page.num_values
        empty += not page.num_values
        if most_empty is not None and empty > most_empty:
            raise CorruptPage(f"{empty} pages without a value")
        return num_values is not None and values >= num_values

    return run(hop(0, buffer.size, is_last), lambda wave: [buffer.slice(wave[0].ranges[0][0])])


def hop(
    start: int,
    end: int,
    enough: Callable[[Page], bool],
    kind: type[Any] = metadata.PageHeader,
) -> Steps[list[Page]]:
    """The pages between two bytes of a file, from few bytes around each header of this kind.

    Stops behind the first page that is `enough`; the offsets are those of the file. Where a source
    had rather read on over pages than be asked again, one read serves more and more headers.
    """
    pages: list[Page] = []
    reader = metadata.StructReader(b"")
    base = known = offset = start  # the bytes from base to known are at hand
    length = _HEADER_BYTES
    count = 0
    while offset < end:
        if offset >= known:
            needed = min(length, end - offset)
            likely = range(0)
            if pages and pages[-1].is_data:  # a dictionary says nothing about the next page
                step = pages[-1].size
                likely = range(offset + step, min(offset + count * step, end - needed) + 1, step)
            (buffer,) = yield Request([(offset, needed)], "index", likely=likely)
            base, known = offset, offset + buffer.size
            reader.turn_to(buffer.to_pybytes())
            count = 2 * count or 1
        try:
            page = _page(reader, offset - base, kind)
        except metadata.MalformedThrift as error:
            if known == end and base == offset:
                raise CorruptPage(f"{error}, at byte {offset}") from None
            if base == offset:
                length *= 16  # a header with long statistics
            known = offset
            continue
        length = _HEADER_BYTES
        pages.append(page._replace(offset=offset) if base else page)
        offset += page.size
        if enough(pages[-1]):
            break
    return pages


def _page(reader: metadata.StructReader, offset: int, kind: type[Any]) -> Page:
    header: Any
    header, length = reader.read(kind, offset)
    body = header.compressed_page_size
    details = header.data_page_header or header.data_page_header_v2
    if body is None or body < 0 or (details is not None and (details.num_values or 0) < 0):
        raise CorruptPage("a page header with impossible sizes")
    return Page(
        offset,
        length + body,
        details is not None,
        details.num_values or 0 if details is not None else 0,
        header.data_page_header_v2.num_rows if header.data_page_header_v2 else None,
        details is not None and details.encoding in metadata.DICTIONARY_ENCODINGS,
        header.dictionary_page_header.num_values if header.dictionary_page_header else None,
        header,
    )
