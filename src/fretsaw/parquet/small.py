"""The small file: pages that were cut out, under a new footer, for pyarrow to read.

Each segment of pages becomes a column of one small Parquet file in memory; pyarrow decodes it, and
the rows that are wanted are picked. Nothing but the footer is written, and new
headers for pages that are decompressed on the way.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fretsaw.arrays import expanded, pick
from fretsaw.formats import ReadOptions
from fretsaw.parquet import metadata
from fretsaw.parquet.cut import ParquetPart, Segment
from fretsaw.parquet.decompress import (
    UNCOMPRESSED,
    NotDecompressed,
    Piece,
    size_of,
    unpacked,
    write,
)
from fretsaw.parquet.pages import CorruptPage
from fretsaw.scratch import Allocate

ARROW_SCHEMA = b"ARROW:schema"


class OutOfRange(ValueError):
    """Values that the type they are read as cannot hold."""


def decode(
    parts: Sequence[ParquetPart],
    created_by: str | None,
    options: ReadOptions,
    allocate: Allocate,
) -> list[pa.ChunkedArray]:
    """For each part, an array of exactly the rows that are wanted of it, as its leaf's chain."""
    segments = [segment for part in parts for segment in part.segments]
    columns: dict[Segment, pa.ChunkedArray] = {}
    # A small file has one number of rows for all of its columns.
    for is_exact in (False, True):
        together = [segment for segment in segments if segment.is_exact == is_exact]
        if together:
            decoded = decode_segments(together, created_by, options, allocate)
            columns |= zip(together, decoded, strict=True)
    arrays = []
    for part in parts:
        chunks = [chunk for segment in part.segments for chunk in columns[segment].chunks]
        column = pa.chunked_array(chunks, columns[part.segments[0]].type)
        picked = pick(column, part.starts, part.ends, part.shared)
        expand = part.segments[0].keeps_dictionary and not part.encoded
        arrays.append(expanded(picked) if expand else picked)
    return arrays


def decode_segments(
    segments: Sequence[Segment],
    created_by: str | None,
    options: ReadOptions,
    allocate: Allocate,
) -> list[pa.ChunkedArray]:
    """For each segment, what its pages hold, as far as it is wanted."""
    try:
        pages = [_pages(segment, options.verify) for segment in segments]
        body, footer = _small_file(segments, pages, created_by, allocate)
    except NotDecompressed:  # Arrow will tell what is wrong with them
        pages = [Pages(segment.chunk.codec, segment.buffers) for segment in segments]
        body, footer = _small_file(segments, pages, created_by, allocate)
    dictionaries = [str(name) for name, s in enumerate(segments) if s.keeps_dictionary]
    columns = _read_columns(open_small(body, footer, options, dictionaries), segments)
    if options.int96 == "ns" and any(s.chunk.physical_type == metadata.INT96 for s in segments):
        exact = _read_columns(open_small(body, footer, replace(options, int96="us")), segments)
        for segment, column, wide in zip(segments, columns, exact, strict=True):
            if segment.chunk.physical_type == metadata.INT96:
                _require_nanoseconds(column, wide)
    return columns


def _read_columns(file: pq.ParquetFile, segments: Sequence[Segment]) -> list[pa.ChunkedArray]:
    most = max(segment.rows + segment.is_exact for segment in segments)
    # Columns of one length are a table, and one call is cheaper than many.
    lengths: dict[int, list[int]] = {}
    for name, segment in enumerate(segments):
        lengths.setdefault(min(most, segment.page_rows), []).append(name)
    found: dict[int, pa.ChunkedArray] = {}
    for names in lengths.values():
        # Not on Arrow's own threads: a process that ends soon after may abort in their clean-up.
        table = file.read_row_group(0, columns=[str(name) for name in names], use_threads=False)
        found |= zip(names, table.columns, strict=True)
    columns = [found[name] for name in range(len(segments))]
    for segment, column in zip(segments, columns, strict=True):
        rows = len(column)
        if rows < segment.rows or (segment.is_exact and rows > segment.rows):
            raise CorruptPage(f"{rows} rows decoded where there should be {segment.rows}")
        # Damaged pages can decode into dictionary indices that point outside of the dictionary.
        column.validate(full=pa.types.is_dictionary(column.type))
    return columns


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


class Pages(NamedTuple):
    """The pages of a column of a small file, and the codec that they are left with."""

    codec: int
    pieces: Sequence[Piece]

    @property
    def size(self) -> int:
        return sum(map(size_of, self.pieces))


def _pages(segment: Segment, verify: bool) -> Pages:
    chunk = segment.chunk
    if not chunk.unpacks:
        return Pages(chunk.codec, segment.buffers)
    return Pages(UNCOMPRESSED, unpacked(segment.buffers, chunk.codec, verify))


def _small_file(
    segments: Sequence[Segment],
    pages: Sequence[Pages],
    created_by: str | None,
    allocate: Allocate,
) -> tuple[pa.Buffer, pq.FileMetaData | None]:
    """A file with the segments as the columns "0", "1", ...

    Where there is but one buffer it is not copied, and the metadata are apart.
    """
    columns, position = [], 0
    for name, (segment, stored) in enumerate(zip(segments, pages, strict=True)):
        chunk = segment.chunk
        # The dictionary page comes first, where there is one: Arrow tells it by its header. To
        # name its offset is impossible at 0, which means that there is none.
        column = metadata.SmallColumn(
            type=chunk.physical_type,
            encodings=[],
            path_in_schema=chunk.chain.path(str(name)),
            codec=stored.codec,
            num_values=segment.num_values,
            total_uncompressed_size=0,
            total_compressed_size=stored.size,
            data_page_offset=position,
        )
        columns.append(metadata.SmallChunk(file_offset=0, meta_data=column))
        position += stored.size
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
    end = metadata.footer_bytes(footer)
    pieces = [piece for stored in pages for piece in stored.pieces]
    if len(pieces) == 1 and isinstance(pieces[0], pa.Buffer):
        return pieces[0], pq.read_metadata(pa.BufferReader(end))
    body = allocate(position + len(end))
    write([*pieces, end], body)
    return body, None


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
    footer: pq.FileMetaData | None,
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
