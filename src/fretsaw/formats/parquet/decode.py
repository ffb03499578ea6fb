"""The small file: pages that were cut out, under a new footer, for pyarrow to read.

Pages of leaves of one row group become columns of a small Parquet file in memory; pyarrow decodes
it, and the rows that are wanted are picked. Nothing but the footer is written.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fretsaw.formats.interface import ReadOptions
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.cut import ParquetPart, Segment
from fretsaw.formats.parquet.pages import CorruptPage
from fretsaw.formats.shared import OutOfRange
from fretsaw.model.arrays import joined, pick
from fretsaw.storage.buffer_pool import Allocate

ARROW_SCHEMA = b"ARROW:schema"


def decode(
    leaves: Sequence[Sequence[ParquetPart]],
    created_by: str | None,
    options: ReadOptions,
    allocate: Allocate,
) -> list[pa.ChunkedArray]:
    """For each leaf, an array of exactly the rows that are wanted of its parts, as its chain."""
    together: dict[tuple[int, bool], list[Segment]] = {}
    for parts in leaves:
        for part in parts:
            for segment in part.segments:
                key = segment.chunk.block, segment.is_exact
                together.setdefault(key, []).append(segment)
    decoded: dict[Segment, pa.ChunkedArray] = {}
    for segments in together.values():
        arrays = decode_segments(segments, created_by, options, allocate)
        decoded |= zip(segments, arrays, strict=True)
    return [joined([_picked(part, decoded) for part in parts]) for parts in leaves]


def _picked(part: ParquetPart, decoded: dict[Segment, pa.ChunkedArray]) -> pa.ChunkedArray:
    """The wanted rows of a part, of all that was decoded."""
    column = joined([decoded[segment] for segment in part.segments])
    return pick(column, part.starts, part.ends, part.shared)


def decode_segments(
    segments: Sequence[Segment],
    created_by: str | None,
    options: ReadOptions,
    allocate: Allocate,
) -> list[pa.ChunkedArray]:
    """For each segment, what its pages hold, as far as it is wanted."""
    body, footer = _small_file(segments, created_by, allocate)
    arrays = _read_columns(open_small(body, footer, options), segments)
    int96 = [segment.chunk.physical_type == metadata.INT96 for segment in segments]
    if options.int96 == "ns" and any(int96):
        exact = _read_columns(open_small(body, footer, replace(options, int96="us")), segments)
        for is_int96, array, wide in zip(int96, arrays, exact, strict=True):
            if is_int96:
                _require_nanoseconds(array, wide)
    return arrays


def _read_columns(file: pq.ParquetFile, segments: Sequence[Segment]) -> list[pa.ChunkedArray]:
    most = file.metadata.num_rows
    # Columns of one length are a table, and one call is cheaper than many.
    lengths: dict[int, list[int]] = {}
    for name, segment in enumerate(segments):
        lengths.setdefault(min(most, segment.page_rows), []).append(name)
    found: dict[int, pa.ChunkedArray] = {}
    for names in lengths.values():
        # Not on Arrow's own threads: a process that ends soon after may abort in their clean-up.
        table = file.read_row_groups([0], columns=list(map(str, names)), use_threads=False)
        found |= zip(names, table.columns, strict=True)
    arrays = [found[name] for name in range(len(segments))]
    for segment, array in zip(segments, arrays, strict=True):
        rows, wanted = len(array), segment.rows
        if rows < wanted or (segment.is_exact and rows > wanted):
            raise CorruptPage(f"{rows} rows decoded where there should be {wanted}")
        # Damaged pages can decode into dictionary indices that point outside of the dictionary.
        array.validate(full=pa.types.is_dictionary(array.type))
    return arrays


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


def _small_file(
    segments: Sequence[Segment], created_by: str | None, allocate: Allocate
) -> tuple[pa.Buffer, pq.FileMetaData | None]:
    """A file with the columns "0", "1", ...

    Where there is but one buffer it is not copied, and the metadata are apart.
    """
    chains = [segment.chunk.chain for segment in segments]
    hint = None
    if not all(chain.is_inferred for chain in chains):
        hint = pa.schema([pa.field(str(name), c.arrow_type) for name, c in enumerate(chains)])
    footer = schema_footer([chain.named(str(name)) for name, chain in enumerate(chains)], hint)
    chunks = []
    pieces: list[pa.Buffer] = []
    position = 0
    for name, segment in enumerate(segments):
        size = sum(buffer.size for buffer in segment.buffers)
        chunks.append(_small_chunk(segment, size, chains[name].path(str(name)), position))
        position += size
        pieces += segment.buffers
    # Arrow stops at this number of rows: just behind what is wanted of the longest column.
    rows = max(segment.rows + segment.is_exact for segment in segments)
    footer.row_groups.append(
        metadata.SmallRowGroup(columns=chunks, total_byte_size=0, num_rows=rows)
    )
    footer.num_rows = rows
    footer.created_by = created_by  # Arrow works around bugs of old writers by their name
    end = pa.py_buffer(metadata.footer_bytes(footer))
    if len(pieces) == 1:
        return pieces[0], pq.read_metadata(pa.BufferReader(end))
    body = allocate(position + end.size)
    memory, position = memoryview(body).cast("B"), 0
    for piece in (*pieces, end):
        memory[position : position + piece.size] = memoryview(piece).cast("B")
        position += piece.size
    return body, None


def _small_chunk(segment: Segment, size: int, path: list[str], position: int) -> Any:
    # The dictionary page comes first, where there is one: Arrow tells it by its header. To name
    # its offset is impossible at 0, which means that there is none.
    column = metadata.SmallColumn(
        type=segment.chunk.physical_type,
        encodings=[],
        path_in_schema=path,
        codec=segment.chunk.codec,
        num_values=segment.num_values,
        total_uncompressed_size=0,
        total_compressed_size=size,
        data_page_offset=position,
    )
    return metadata.SmallChunk(file_offset=0, meta_data=column)


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
    body: pa.Buffer, footer: pq.FileMetaData | None, options: ReadOptions
) -> pq.ParquetFile:
    """The small file, opened by pyarrow."""
    return pq.ParquetFile(
        pa.BufferReader(body),
        metadata=footer,
        pre_buffer=False,
        page_checksum_verification=options.verify,
        coerce_int96_timestamp_unit=options.int96,
    )
