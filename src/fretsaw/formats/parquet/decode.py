"""The small file: pages that were cut out, under a new footer, for pyarrow to read.

Pages of one or more row groups become columns of one small Parquet file in memory, in as many row
groups, since dictionaries differ; pyarrow decodes it, and the rows that are wanted are picked.
Nothing but the footer is written, and new headers for pages that are decompressed on the way.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fretsaw.formats.interface import ReadOptions
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.cut import ParquetPart, Segment
from fretsaw.formats.parquet.decompress import (
    LARGEST,
    UNCOMPRESSED,
    NotDecompressed,
    Packed,
    Piece,
    size_of,
    unpacked,
    write,
)
from fretsaw.formats.parquet.pages import CorruptPage
from fretsaw.formats.shared import OutOfRange
from fretsaw.model.arrays import expanded, joined, pick
from fretsaw.storage.buffer_pool import Allocate

ARROW_SCHEMA = b"ARROW:schema"


class _RepeatedEntries(ValueError):
    """A dictionary that Arrow does not keep as it is stored."""


Column: TypeAlias = Sequence[Segment]
"""What becomes one column of a small file: a segment in each of its row groups."""


def decode(
    leaves: Sequence[Sequence[ParquetPart]],
    created_by: str | None,
    options: ReadOptions,
    allocate: Allocate,
) -> list[pa.ChunkedArray]:
    """For each leaf, an array of exactly the rows that are wanted of its parts, as its chain."""
    # A list may go on in the next row group: segments of a repeated leaf are columns of their own.
    columns: list[Column] = []
    for parts in leaves:
        segments = [segment for part in parts for segment in part.segments]
        if segments[0].is_exact:
            columns += [[segment] for segment in segments]
        else:
            columns.append(segments)
    decoded: dict[Segment, pa.ChunkedArray] = {}
    for is_exact in (False, True):
        together = [column for column in columns if column[0].is_exact == is_exact]
        if together:
            arrays = decode_columns(together, created_by, options, allocate)
            decoded |= zip((column[0] for column in together), arrays, strict=True)
    return [_picked(parts, decoded) for parts in leaves]


def _picked(
    parts: Sequence[ParquetPart], decoded: dict[Segment, pa.ChunkedArray]
) -> pa.ChunkedArray:
    """The wanted rows of a leaf, of all that was decoded."""
    column = joined([decoded[s] for part in parts for s in part.segments if s in decoded])
    if len(parts) == 1:
        (only,) = parts
        picked = pick(column, only.starts, only.ends, only.shared)
    else:
        before = np.cumsum([0, *(part.page_rows for part in parts)])
        starts = np.concatenate([p.starts + n for p, n in zip(parts, before, strict=False)])
        ends = np.concatenate([p.ends + n for p, n in zip(parts, before, strict=False)])
        picked = pick(column, starts, ends)
    if parts[0].stays_encoded:
        return picked
    return expanded(picked, parts[0].chunk.chain.arrow_type)


def decode_columns(
    columns: Sequence[Column],
    created_by: str | None,
    options: ReadOptions,
    allocate: Allocate,
) -> list[pa.ChunkedArray]:
    """For each column, what its pages hold, as far as it is wanted."""
    try:
        pages = [[_pages(segment, options.verify) for segment in column] for column in columns]
        body, footer = _small_file(columns, pages, created_by, allocate)
    except NotDecompressed:  # Arrow will tell what is wrong with them
        pages = [[_Pages(s.chunk.codec, s.buffers) for s in column] for column in columns]
        body, footer = _small_file(columns, pages, created_by, allocate)
    dictionaries = [
        str(name)
        for name, column in enumerate(columns)
        if all(segment.dictionary_entries for segment in column)
    ]
    try:
        arrays = _read_columns(open_small(body, footer, options, dictionaries), columns)
    except _RepeatedEntries:
        arrays = _read_columns(open_small(body, footer, options), columns)
    int96 = [column[0].chunk.physical_type == metadata.INT96 for column in columns]
    if options.int96 == "ns" and any(int96):
        exact = _read_columns(open_small(body, footer, replace(options, int96="us")), columns)
        for is_int96, array, wide in zip(int96, arrays, exact, strict=True):
            if is_int96:
                _require_nanoseconds(array, wide)
    return arrays


def _read_columns(file: pq.ParquetFile, columns: Sequence[Column]) -> list[pa.ChunkedArray]:
    groups = list(range(file.num_row_groups))
    most = file.metadata.num_rows
    # Columns of one length are a table, and one call is cheaper than many.
    lengths: dict[int, list[int]] = {}
    for name, column in enumerate(columns):
        length = min(most, sum(segment.page_rows for segment in column))
        lengths.setdefault(length, []).append(name)
    found: dict[int, pa.ChunkedArray] = {}
    for names in lengths.values():
        # Not on Arrow's own threads: a process that ends soon after may abort in their clean-up.
        table = file.read_row_groups(groups, columns=list(map(str, names)), use_threads=False)
        found |= zip(names, table.columns, strict=True)
    arrays = [found[name] for name in range(len(columns))]
    for column, array in zip(columns, arrays, strict=True):
        rows, wanted = len(array), _rows_of(column)
        if rows < wanted or (column[0].is_exact and rows > wanted):
            raise CorruptPage(f"{rows} rows decoded where there should be {wanted}")
        if pa.types.is_dictionary(array.type) and column[0].dictionary_entries:
            _require_all_entries(column, array)
        # Damaged pages can decode into dictionary indices that point outside of the dictionary.
        array.validate(full=pa.types.is_dictionary(array.type))
    return arrays


def _require_all_entries(column: Column, array: pa.ChunkedArray) -> None:
    """Arrow drops repeated entries from a dictionary, and leaves the indices as they were."""
    stored = [segment.dictionary_entries for segment in column]
    if [len(chunk.dictionary) for chunk in array.chunks] != stored:
        raise _RepeatedEntries


def _rows_of(column: Column) -> int:
    """Rows to decode: all up to the last segment, of which the end may be left out."""
    return sum(segment.page_rows for segment in column[:-1]) + column[-1].rows


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


class _Pages(NamedTuple):
    """The pages of a column of a small file, and the codec that they are left with."""

    codec: int
    pieces: Sequence[Piece]

    @property
    def size(self) -> int:
        return sum(map(size_of, self.pieces))


def _pages(segment: Segment, verify: bool) -> _Pages:
    chunk = segment.chunk
    if not chunk.unpacks:
        return _Pages(chunk.codec, segment.buffers)
    how = (chunk.codec, chunk.always_compressed, verify)
    return _Pages(UNCOMPRESSED, unpacked(segment.stored, *how))


def _small_file(
    columns: Sequence[Column],
    pages: Sequence[Sequence[_Pages]],
    created_by: str | None,
    allocate: Allocate,
) -> tuple[pa.Buffer, pq.FileMetaData | None]:
    """A file with the columns "0", "1", ...

    Where there is but one buffer it is not copied, and the metadata are apart.
    """
    chains = [column[0].chunk.chain for column in columns]
    hint = None
    if not all(chain.is_inferred for chain in chains):
        hint = pa.schema([pa.field(str(name), c.arrow_type) for name, c in enumerate(chains)])
    footer = schema_footer([chain.named(str(name)) for name, chain in enumerate(chains)], hint)
    pieces: list[Piece] = []
    position = 0
    for group in range(len(columns[0])):
        chunks = []
        for name, (column, stored) in enumerate(zip(columns, pages, strict=True)):
            path = chains[name].path(str(name))
            chunks.append(_small_chunk(column[group], stored[group], path, position))
            position += stored[group].size
            pieces += stored[group].pieces
        # Arrow stops at this number of rows: just behind what is wanted of the longest column.
        is_last = group == len(columns[0]) - 1
        rows = max(
            c[group].rows + c[group].is_exact if is_last else c[group].page_rows for c in columns
        )
        footer.row_groups.append(
            metadata.SmallRowGroup(columns=chunks, total_byte_size=0, num_rows=rows)
        )
        footer.num_rows += rows
    footer.created_by = created_by  # Arrow works around bugs of old writers by their name
    end = metadata.footer_bytes(footer)
    if len(pieces) == 1 and isinstance(pieces[0], pa.Buffer):
        return pieces[0], pq.read_metadata(pa.BufferReader(end))
    if position > LARGEST and any(isinstance(piece, Packed) for piece in pieces):
        raise NotDecompressed("more than is decompressed at once")
    body = allocate(position + len(end))
    write([*pieces, end], body)
    return body, None


def _small_chunk(segment: Segment, pages: _Pages, path: list[str], position: int) -> Any:
    # The dictionary page comes first, where there is one: Arrow tells it by its header. To name
    # its offset is impossible at 0, which means that there is none.
    column = metadata.SmallColumn(
        type=segment.chunk.physical_type,
        encodings=[],
        path_in_schema=path,
        codec=pages.codec,
        num_values=segment.num_values,
        total_uncompressed_size=0,
        total_compressed_size=pages.size,
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
