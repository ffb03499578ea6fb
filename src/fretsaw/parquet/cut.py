"""The cut: from chosen pages of a column chunk to a small Parquet file for Arrow.

`cut` asks for the bytes of the pages that hold the selected rows and checks their headers against
the index; `decode` wraps such parts as one small file, a column each, and has pyarrow read it.
The page bytes stay as they are; only a new footer is written.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fretsaw.arrays import pick
from fretsaw.formats import ReadOptions, Request, Steps
from fretsaw.layout import Int64s, PageIndex
from fretsaw.parquet import metadata
from fretsaw.parquet.pages import CorruptPage, Page, walk
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection

ARROW_SCHEMA = b"ARROW:schema"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: one leaf of one row group, and where its bytes are."""

    leaf: SchemaNode
    element: Any
    arrow_hint: pa.Field | None
    block: int
    num_values: int
    codec: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class ParquetPart:
    """The bytes of some pages of a chunk, and which of their rows are wanted."""

    chunk: Chunk
    buffers: list[pa.Buffer]
    num_values: int
    starts: Int64s
    ends: Int64s
    pages: int | None
    fallback: str | None

    @property
    def leaf(self) -> SchemaNode:
        return self.chunk.leaf

    @property
    def size(self) -> int:
        return sum(buffer.size for buffer in self.buffers)

    @property
    def rows(self) -> int:
        """Rows to decode: Arrow stops after the last one that is wanted."""
        return int(self.ends[-1])

    def count_pages(self) -> int:
        """How many data pages the part holds, by hopping over the headers where need be."""
        if self.pages is not None:
            return self.pages
        count, values = 0, 0
        for page in walk(self.buffers[0]):
            count += page.is_data
            values += page.num_values
            if values >= self.num_values:
                break
        return count


def cut(chunk: Chunk, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
    """The part of a chunk that holds the selected rows of its block."""
    keep = np.flatnonzero(pages.overlapping(rows.starts, rows.ends))
    if len(keep) == len(pages.sizes):
        (whole,) = yield Request([(chunk.start, chunk.end - chunk.start)], "data")
        some = rows.selected_count < rows.row_count
        return ParquetPart(
            chunk,
            [whole],
            chunk.num_values,
            rows.starts,
            rows.ends,
            pages=None,
            fallback=pages.reason if some else None,
        )
    offsets, sizes = pages.offsets[keep], pages.sizes[keep]
    ranges = _adjoining(offsets, sizes)
    buffers = list((yield Request(ranges, "data")))
    row_counts = np.diff(pages.boundaries)[keep]
    found = [
        page._replace(offset=page.offset + start)
        for (start, _), buffer in zip(ranges, buffers, strict=True)
        for page in walk(buffer)
    ]
    _require_agreement(found, offsets, sizes, row_counts)
    uses_dictionary = any(page.uses_dictionary for page in found)
    if uses_dictionary:
        first_page = int(pages.offsets[0])
        (dictionary,) = yield Request([(chunk.start, first_page - chunk.start)], "data")
        buffers.insert(0, dictionary)
    # Where each kept page begins among the decoded rows, then where each run of wanted rows does.
    decoded_at = np.cumsum(row_counts) - row_counts
    first_rows = pages.boundaries[keep]
    page_of = np.searchsorted(first_rows, rows.starts, side="right") - 1
    starts = rows.starts - first_rows[page_of] + decoded_at[page_of]
    return ParquetPart(
        chunk,
        buffers,
        int(row_counts.sum()),
        starts,
        starts + (rows.ends - rows.starts),
        pages=len(keep),
        fallback=None,
    )


def _adjoining(offsets: Int64s, sizes: Int64s) -> list[tuple[int, int]]:
    """The byte ranges of pages, with neighbours as one range."""
    first = np.concatenate(([True], offsets[1:] != (offsets + sizes)[:-1]))
    last = np.append(first[1:], True)
    begin, end = offsets[first], (offsets + sizes)[last]
    return list(zip(begin.tolist(), (end - begin).tolist(), strict=True))


def _require_agreement(
    found: Sequence[Page], offsets: Int64s, sizes: Int64s, row_counts: Int64s
) -> None:
    """The index and the headers of the pages must tell the same."""
    if len(found) != len(offsets):
        raise CorruptPage(f"the index names {len(offsets)} pages where there are {len(found)}")
    for page, offset, size, rows in zip(
        found, offsets.tolist(), sizes.tolist(), row_counts.tolist(), strict=True
    ):
        if (page.offset, page.size) != (offset, size) or not page.is_data:
            raise CorruptPage(
                f"the index names a data page of {size} bytes at offset {offset}, "
                "the page headers do not"
            )
        if page.num_values != rows:
            raise CorruptPage(
                f"the page at offset {offset} has {page.num_values} rows by its "
                f"header and {rows} by the index"
            )


def decode(
    parts: Sequence[ParquetPart], created_by: str | None, options: ReadOptions
) -> list[pa.ChunkedArray]:
    """For each part, an array of exactly the rows that are wanted of it."""
    body, footer = small_file(parts, created_by)
    file = open_small(body, footer, options)
    arrays = []
    for name, part in enumerate(parts):
        column = _read_column(file, name, part)
        if part.chunk.element.type == metadata.INT96 and options.int96 == "ns":
            exact = open_small(body, footer, replace(options, int96="us"))
            _require_nanoseconds(column, _read_column(exact, name, part))
        arrays.append(pick(column, part.starts, part.ends))
    return arrays


def _read_column(file: pq.ParquetFile, name: int, part: ParquetPart) -> pa.ChunkedArray:
    column = file.read_row_group(0, columns=[str(name)], use_threads=False).column(0)
    if len(column) < part.rows:
        raise CorruptPage(f"{len(column)} rows decoded where there should be {part.rows}")
    # Damaged pages can decode into dictionary indices that point outside of the dictionary.
    column.validate(full=pa.types.is_dictionary(column.type))
    return column


def _require_nanoseconds(column: pa.ChunkedArray, exact: pa.ChunkedArray) -> None:
    """INT96 reaches further than 64 bits of nanoseconds, and Arrow wraps around silently."""
    nanoseconds, microseconds = (
        array.cast(pa.int64()).fill_null(0).to_numpy() for array in (column, exact)
    )
    if (nanoseconds // 1000 != microseconds).any():
        raise CorruptPage(
            "INT96 timestamps that do not fit into nanoseconds; "
            'read them as microseconds with fs.scan(..., int96="us")'
        )


def small_file(
    parts: Sequence[ParquetPart], created_by: str | None
) -> tuple[pa.Buffer, pq.FileMetaData]:
    """The bytes of all parts, and metadata that shows them as the columns "0", "1", ..."""
    buffers = [buffer for part in parts for buffer in part.buffers]
    body = buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))
    columns, position = [], 0
    for name, part in enumerate(parts):
        # The dictionary page comes first, where there is one: Arrow tells it by its header. To
        # name its offset is impossible at 0, which means that there is none.
        column = metadata.make(
            metadata.SmallColumn,
            type=part.chunk.element.type,
            encodings=[],
            path_in_schema=[str(name)],
            codec=part.chunk.codec,
            num_values=part.num_values,
            total_uncompressed_size=0,
            total_compressed_size=part.size,
            data_page_offset=position,
        )
        columns.append(metadata.make(metadata.SmallChunk, file_offset=0, meta_data=column))
        position += part.size
    footer = schema_footer(
        [[_named(part.chunk.element, str(name))] for name, part in enumerate(parts)],
        [part.chunk.arrow_hint for part in parts],
    )
    # Arrow stops at the row group's rows, which is all that is wanted of the longest part.
    footer.num_rows = max(part.rows for part in parts)
    footer.row_groups = [
        metadata.make(
            metadata.SmallRowGroup, columns=columns, total_byte_size=0, num_rows=footer.num_rows
        )
    ]
    footer.created_by = created_by  # Arrow works around bugs of old writers by their name
    return body, pq.read_metadata(pa.BufferReader(metadata.file_bytes(footer)))


def schema_footer(fields: Sequence[Sequence[Any]], hints: Sequence[pa.Field | None]) -> Any:
    """A footer of no rows with these top-level fields, each given by its schema elements.

    Arrow's own schema comes along, cut to these fields: left whole, Arrow would not apply it.
    """
    root = metadata.make(metadata.SchemaElement, name="schema", num_children=len(fields))
    key_values = []
    if any(hint is not None for hint in hints):
        known = [hint if hint is not None else pa.field("", pa.null()) for hint in hints]
        encoded = base64.b64encode(pa.schema(known).serialize())
        key_values.append(metadata.make(metadata.KeyValue, key=ARROW_SCHEMA, value=encoded))
    return metadata.make(
        metadata.SmallFileMetaData,
        version=2,
        schema=[root, *(element for field in fields for element in field)],
        num_rows=0,
        row_groups=[],
        key_value_metadata=key_values,
    )


def open_small(body: pa.Buffer, footer: pq.FileMetaData, options: ReadOptions) -> pq.ParquetFile:
    """The small file, opened by pyarrow."""
    return pq.ParquetFile(
        pa.BufferReader(body),
        metadata=footer,
        pre_buffer=False,
        page_checksum_verification=options.verify,
        coerce_int96_timestamp_unit=options.int96,
    )


def _named(element: Any, name: str) -> Any:
    return metadata.make(metadata.SchemaElement, **{**vars(element), "name": name})
