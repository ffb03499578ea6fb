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
from fretsaw.parquet.chain import Chain
from fretsaw.parquet.pages import CorruptPage, Page, walk
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection

ARROW_SCHEMA = b"ARROW:schema"
_FEW = 8  # one wanted row in this many is few


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: one leaf of one row group, and where its bytes are."""

    leaf: SchemaNode
    chain: Chain
    physical_type: int
    block: int
    num_values: int
    codec: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Pages that are decoded as one column of a small file."""

    chunk: Chunk
    buffers: list[pa.Buffer]
    num_values: int
    rows: int
    """Rows to decode; Arrow stops behind them."""
    is_exact: bool
    """Whether there must be no row behind them."""
    keeps_dictionary: bool = False
    """Whether strings stay dictionary-encoded until the few that are wanted are picked."""

    @property
    def size(self) -> int:
        return sum(buffer.size for buffer in self.buffers)


@dataclass(frozen=True, slots=True, eq=False)
class ParquetPart:
    """The bytes of some pages of a chunk, and which of their rows are wanted."""

    chunk: Chunk
    segments: list[Segment]
    starts: Int64s
    ends: Int64s
    pages: int | None
    fallback: str | None

    @property
    def leaf(self) -> SchemaNode:
        return self.chunk.leaf

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    def count_pages(self) -> int:
        """How many data pages the part holds, by hopping over the headers where need be."""
        if self.pages is not None:
            return self.pages
        (whole,) = self.segments
        count, values = 0, 0
        for page in walk(whole.buffers[0]):
            count += page.is_data
            values += page.num_values
            if values >= whole.num_values:
                break
        return count


class OutOfRange(ValueError):
    """Values that the type they are read as cannot hold."""


def cut(chunk: Chunk, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
    """The part of a chunk that holds the selected rows of its block."""
    keep = np.flatnonzero(pages.overlapping(rows.starts, rows.ends))
    if len(keep) == len(pages.sizes):
        return (yield from _whole(chunk, pages, rows))
    ranges, first_of_run = _adjoining(pages.offsets[keep], pages.sizes[keep])
    buffers = yield Request(ranges, "data")
    found = [
        page._replace(offset=page.offset + start)
        for (start, _), buffer in zip(ranges, buffers, strict=True)
        for page in walk(buffer)
    ]
    _require_agreement(found, pages, keep, chunk.leaf.is_repeated)
    dictionary: list[pa.Buffer] = []
    if any(page.uses_dictionary for page in found):
        first_page = int(pages.offsets[0])
        dictionary = list((yield Request([(chunk.start, first_page - chunk.start)], "data")))
    # Where each kept page begins among the decoded rows, then where each run of wanted rows does.
    row_counts = np.diff(pages.boundaries)[keep]
    decoded_at = np.cumsum(row_counts) - row_counts
    first_rows = pages.boundaries[keep]
    page_of = np.searchsorted(first_rows, rows.starts, side="right") - 1
    starts = rows.starts - first_rows[page_of] + decoded_at[page_of]
    ends = starts + (rows.ends - rows.starts)
    values = np.array([page.num_values for page in found])
    if chunk.leaf.is_repeated:
        # Only the first page of a segment is known to start a record: a segment for each run.
        runs = zip(
            buffers,
            np.add.reduceat(values, first_of_run).tolist(),
            np.add.reduceat(row_counts, first_of_run).tolist(),
            strict=True,
        )
        segments = [
            Segment(chunk, [*dictionary, buffer], num_values, num_rows, is_exact=True)
            for buffer, num_values, num_rows in runs
        ]
    else:
        few = rows.selected_count * _FEW < row_counts.sum()
        joined = Segment(
            chunk,
            [*dictionary, *buffers],
            int(values.sum()),
            int(ends[-1]),
            is_exact=False,
            keeps_dictionary=few and _is_text(chunk) and all(p.uses_dictionary for p in found),
        )
        segments = [joined]
    return ParquetPart(chunk, segments, starts, ends, pages=len(keep), fallback=None)


def _is_text(chunk: Chunk) -> bool:
    arrow_type = chunk.chain.arrow_type
    return arrow_type in (pa.string(), pa.binary())


def _whole(chunk: Chunk, pages: PageIndex, rows: RowSelection) -> Steps[ParquetPart]:
    buffers = yield Request([(chunk.start, chunk.end - chunk.start)], "data")
    repeated = chunk.leaf.is_repeated
    last = rows.row_count if repeated else int(rows.ends[-1])
    whole = Segment(chunk, list(buffers), chunk.num_values, last, is_exact=repeated)
    fallback = pages.reason if rows.skipped_count else None
    return ParquetPart(chunk, [whole], rows.starts, rows.ends, pages=None, fallback=fallback)


def _adjoining(offsets: Int64s, sizes: Int64s) -> tuple[list[tuple[int, int]], Int64s]:
    """The byte ranges of pages, with neighbours as one range, and the first page of each."""
    is_first = np.concatenate(([True], offsets[1:] != (offsets + sizes)[:-1]))
    begin, end = offsets[is_first], (offsets + sizes)[np.append(is_first[1:], True)]
    return list(zip(begin.tolist(), (end - begin).tolist(), strict=True)), np.flatnonzero(is_first)


def _require_agreement(
    found: Sequence[Page], pages: PageIndex, keep: Int64s, repeated: bool
) -> None:
    """The index and the headers of the pages must tell the same."""
    if len(found) != len(keep):
        raise CorruptPage(f"the index names {len(keep)} pages where there are {len(found)}")
    rows = np.diff(pages.boundaries)[keep].tolist()
    places = zip(pages.offsets[keep].tolist(), pages.sizes[keep].tolist(), strict=True)
    for page, place, expected in zip(found, places, rows, strict=True):
        if (page.offset, page.size) != place or not page.is_data:
            raise CorruptPage(
                f"the index names a data page of {place[1]} bytes at offset {place[0]}, "
                f"the page headers do not"
            )
        told = page.num_rows if repeated else page.num_values
        if told is not None and told != expected:
            raise CorruptPage(
                f"the page at offset {place[0]} has {told} rows by its header and {expected} "
                f"by the index"
            )


def decode(
    parts: Sequence[ParquetPart], created_by: str | None, options: ReadOptions
) -> list[pa.ChunkedArray]:
    """For each part, an array of exactly the rows that are wanted of it, as its leaf's chain."""
    segments = [segment for part in parts for segment in part.segments]
    columns: dict[Segment, pa.ChunkedArray] = {}
    # A small file has one number of rows for all of its columns.
    for is_exact in (False, True):
        together = [segment for segment in segments if segment.is_exact == is_exact]
        if together:
            decoded = _decode_together(together, created_by, options)
            columns |= zip(together, decoded, strict=True)
    arrays = []
    for part in parts:
        chunks = [chunk for segment in part.segments for chunk in columns[segment].chunks]
        column = pa.chunked_array(chunks, columns[part.segments[0]].type)
        picked = pick(column, part.starts, part.ends)
        expand = part.segments[0].keeps_dictionary
        arrays.append(picked.cast(part.chunk.chain.arrow_type) if expand else picked)
    return arrays


def _decode_together(
    segments: Sequence[Segment], created_by: str | None, options: ReadOptions
) -> list[pa.ChunkedArray]:
    body, footer = small_file(segments, created_by)
    dictionaries = [str(name) for name, s in enumerate(segments) if s.keeps_dictionary]
    file = open_small(body, footer, options, dictionaries)
    columns = [_read_column(file, name, segment) for name, segment in enumerate(segments)]
    if options.int96 == "ns" and any(s.chunk.physical_type == metadata.INT96 for s in segments):
        exact = open_small(body, footer, replace(options, int96="us"))
        for name, segment in enumerate(segments):
            if segment.chunk.physical_type == metadata.INT96:
                _require_nanoseconds(columns[name], _read_column(exact, name, segment))
    return columns


def _read_column(file: pq.ParquetFile, name: int, segment: Segment) -> pa.ChunkedArray:
    column = file.read_row_group(0, columns=[str(name)], use_threads=False).column(0)
    if len(column) < segment.rows or (segment.is_exact and len(column) > segment.rows):
        raise CorruptPage(f"{len(column)} rows decoded where there should be {segment.rows}")
    # Damaged pages can decode into dictionary indices that point outside of the dictionary.
    column.validate(full=pa.types.is_dictionary(column.type))
    return column


def _require_nanoseconds(column: pa.ChunkedArray, exact: pa.ChunkedArray) -> None:
    """INT96 reaches further than 64 bits of nanoseconds, and Arrow wraps around silently."""
    nanoseconds, microseconds = (
        np.concatenate([_innermost(chunk).cast(pa.int64()).fill_null(0) for chunk in array.chunks])
        for array in (column, exact)
    )
    if (nanoseconds // 1000 != microseconds).any():
        raise OutOfRange(
            "INT96 timestamps that do not fit into nanoseconds; "
            'read them as microseconds with fs.scan(..., int96="us")'
        )


def _innermost(array: pa.Array) -> pa.Array:
    """The leaf at the end of a chain."""
    while pa.types.is_nested(array.type):
        array = array.field(0) if pa.types.is_struct(array.type) else array.values
    return array


def small_file(
    segments: Sequence[Segment], created_by: str | None
) -> tuple[pa.Buffer, pq.FileMetaData]:
    """The bytes of all segments, and metadata that shows them as the columns "0", "1", ..."""
    buffers = [buffer for segment in segments for buffer in segment.buffers]
    body = buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))
    columns, position = [], 0
    for name, segment in enumerate(segments):
        chunk = segment.chunk
        # The dictionary page comes first, where there is one: Arrow tells it by its header. To
        # name its offset is impossible at 0, which means that there is none.
        column = metadata.SmallColumn(
            type=chunk.physical_type,
            encodings=[],
            path_in_schema=chunk.chain.path(str(name)),
            codec=chunk.codec,
            num_values=segment.num_values,
            total_uncompressed_size=0,
            total_compressed_size=segment.size,
            data_page_offset=position,
        )
        columns.append(metadata.SmallChunk(file_offset=0, meta_data=column))
        position += segment.size
    chains = [segment.chunk.chain for segment in segments]
    hint = None
    if not all(chain.is_inferred for chain in chains):
        hint = pa.schema([pa.field(str(name), c.arrow_type) for name, c in enumerate(chains)])
    footer = schema_footer([chain.named(str(name)) for name, chain in enumerate(chains)], hint)
    # Arrow stops at the row group's rows: just behind what is wanted of the longest segment.
    footer.num_rows = max(segment.rows + segment.is_exact for segment in segments)
    footer.row_groups = [
        metadata.SmallRowGroup(columns=columns, total_byte_size=0, num_rows=footer.num_rows)
    ]
    footer.created_by = created_by  # Arrow works around bugs of old writers by their name
    return body, pq.read_metadata(pa.BufferReader(metadata.file_bytes(footer)))


def schema_footer(fields: Sequence[Sequence[Any]], arrow_schema: pa.Schema | None) -> Any:
    """A footer of no rows with these top-level fields, each given by its schema elements.

    Arrow's own schema comes along, cut to these fields: left whole, Arrow would not apply it.
    """
    root = metadata.SchemaElement(name="schema", num_children=len(fields))
    key_values = []
    if arrow_schema is not None:
        encoded = base64.b64encode(arrow_schema.serialize())
        key_values.append(metadata.KeyValue(key=ARROW_SCHEMA, value=encoded))
    return metadata.SmallFileMetaData(
        version=2,
        schema=[root, *(element for field in fields for element in field)],
        num_rows=0,
        row_groups=[],
        key_value_metadata=key_values,
    )


def open_small(
    body: pa.Buffer,
    footer: pq.FileMetaData,
    options: ReadOptions,
    dictionaries: Sequence[str] = (),
) -> pq.ParquetFile:
    """The small file, opened by pyarrow; some columns stay dictionary-encoded."""
    return pq.ParquetFile(
        pa.BufferReader(body),
        metadata=footer,
        read_dictionary=list(dictionaries) or None,
        pre_buffer=False,
        page_checksum_verification=options.verify,
        coerce_int96_timestamp_unit=options.int96,
    )
