"""Page headers: a walk from header to header over consecutive pages.

In comes a buffer that begins with a page, out comes what each header says, without decompressing
or decoding anything.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from fretsaw.parquet import metadata


class CorruptPage(ValueError):
    """A page that contradicts what the file says about it."""


class Page(NamedTuple):
    """What the header of a page says; `size` includes the header."""

    offset: int
    size: int
    is_data: bool
    num_values: int
    uses_dictionary: bool


def walk(buffer: pa.Buffer) -> Iterator[Page]:
    """The pages of a buffer, one behind the other; offsets count from its start."""
    data = buffer.to_pybytes()
    reader = metadata.StructReader(data)
    offset = 0
    while offset < len(data):
        try:
            header: Any
            header, length = reader.read(metadata.PageHeader, offset)
        except metadata.MalformedThrift as error:
            raise CorruptPage(str(error)) from None
        body = header.compressed_page_size
        details = header.data_page_header or header.data_page_header_v2
        if body is None or body < 0 or (details is not None and (details.num_values or 0) < 0):
            raise CorruptPage(f"a page header with impossible sizes at byte {offset}")
        yield Page(
            offset,
            length + body,
            details is not None,
            details.num_values or 0 if details is not None else 0,
            details is not None and details.encoding in metadata.DICTIONARY_ENCODINGS,
        )
        offset += length + body
