"""What a file says about its chunks and pages, for people: names in place of numbers.

In come a chunk and what its indexes say; where these are silent, the headers of its pages are read.
No page is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fretsaw.formats.interface import ChunkFacts, ChunkPart, PageFacts
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.chunk import Chunk
from fretsaw.formats.parquet.file import ParquetFile, chunk_bounds_of
from fretsaw.formats.parquet.index import rows_of
from fretsaw.formats.parquet.outline import StoredChunk, chunk_start
from fretsaw.formats.parquet.pages import CorruptPage, Page, hop
from fretsaw.formats.parquet.statistics import header_bounds
from fretsaw.formats.shared import known_counts, number_name
from fretsaw.model.blocks import Block, Bounds, Int64s, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.storage.requests import Steps, together

_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
_ENCODINGS = (
    "PLAIN",
    "GROUP_VAR_INT",
    "PLAIN_DICTIONARY",
    "RLE",
    "BIT_PACKED",
    "DELTA_BINARY_PACKED",
    "DELTA_LENGTH_BYTE_ARRAY",
    "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY",
    "BYTE_STREAM_SPLIT",
)


def chunk_facts(
    file: ParquetFile, blocks: Sequence[Block], leaf: SchemaNode
) -> tuple[list[ChunkFacts], Bounds]:
    """What the footer says about a leaf's chunks; little where they are encrypted."""
    bounds = Bounds.unknown([block.num_rows for block in blocks])
    if file.fields.is_readable(leaf):
        bounds = chunk_bounds_of([(file, blocks)], leaf)
        nulls = known_counts(file.null_counts(blocks, leaf))
    else:
        nulls = [None] * len(blocks)
    return [_facts(file, *of_block, leaf) for of_block in zip(blocks, nulls, strict=True)], bounds


def _facts(file: ParquetFile, block: Block, nulls: int | None, leaf: SchemaNode) -> ChunkFacts:
    stored, indexed = file.stored(block, leaf), file.indexed(block, leaf)
    probed = file.probed(block, leaf)
    if not stored.has_column or probed is None or stored.is_encrypted:
        return ChunkFacts()
    statistics = indexed.meta_data.statistics
    is_float = leaf.physical_type in ("FLOAT", "DOUBLE") or leaf.logical_type == "FLOAT16"
    return ChunkFacts(
        codec=None if stored.codec is None else number_name(_CODECS, stored.codec),
        encodings=[number_name(_ENCODINGS, number) for number in probed.encodings or ()],
        offset=chunk_start(stored),
        compressed_size=stored.compressed_size,
        uncompressed_size=stored.uncompressed_size,
        values=stored.num_values,
        nulls=nulls,
        nans=statistics.nan_count if statistics is not None and is_float else None,
        parts=(parts := _parts(stored, indexed, probed)),
        untold=_untold(parts, probed),
    )


def _untold(parts: Mapping[ChunkPart, int | None], probed: Any) -> Sequence[ChunkPart]:
    """Some writers do not say where a dictionary is, others name an encoding that no page has."""
    may_refer = metadata.DICTIONARY_ENCODINGS & {*(probed.encodings or ())}
    return ("dictionary",) if may_refer and "dictionary" not in parts else ()


def _parts(stored: StoredChunk, indexed: Any, probed: Any) -> dict[ChunkPart, int | None]:
    """What a chunk has beside its pages."""
    found: dict[ChunkPart, int | None] = {}
    begin, data = chunk_start(stored), stored.data_page_offset or 0
    if begin < data:
        found["dictionary"] = data - begin
    if stored.offset_index_offset and stored.offset_index_length:
        found["page_index"] = stored.offset_index_length + (indexed.column_index_length or 0)
    if probed.bloom_filter_offset:
        found["bloom_filter"] = probed.bloom_filter_length
    return found


def page_facts(
    file: ParquetFile,
    block: Block,
    chunk: Chunk,
    index: PageIndex | None,
    bounds: Bounds | None,
) -> Steps[PageFacts]:
    """What is known of the pages of a chunk: by its indexes, or by their headers."""
    encoding = _only_encoding(file.probed(block, chunk.leaf))
    if index is not None and bounds is not None and encoding is not None:
        encodings: list[str | None] = [encoding] * len(index.sizes)
        return _indexed_facts(index, bounds, encodings)
    if index is None:
        pages = yield from _all_headers(chunk)
        return _header_facts(file, block, chunk, pages)
    places = zip(index.offsets.tolist(), (index.offsets + index.sizes).tolist(), strict=True)
    steps = [hop(begin, end, lambda _: True, metadata.ToldPageHeader) for begin, end in places]
    pages = [found[0] for found in (yield from together(steps))]
    if bounds is None:
        bounds = _header_bounds(file, block, chunk, pages, index.row_counts)
    return _indexed_facts(index, bounds, list(map(_encoding, pages)))


def _all_headers(chunk: Chunk) -> Steps[list[Page]]:
    values = 0

    def enough(page: Page) -> bool:
        nonlocal values
        values += page.num_values
        return values >= chunk.num_values

    pages = yield from hop(chunk.start, chunk.end, enough, metadata.ToldPageHeader)
    if values != chunk.num_values:
        raise CorruptPage(f"pages of {values} values in a column chunk of {chunk.num_values}")
    return [page for page in pages if page.is_data]


def _indexed_facts(index: PageIndex, bounds: Bounds, encodings: Sequence[str | None]) -> PageFacts:
    return PageFacts(
        first_rows=index.boundaries[:-1].tolist(),
        rows=index.row_counts.tolist(),
        offsets=index.offsets.tolist(),
        sizes=index.sizes.tolist(),
        encodings=encodings,
        nulls=known_counts(bounds.null_counts),
        bounds=bounds,
    )


def _header_facts(
    file: ParquetFile, block: Block, chunk: Chunk, pages: Sequence[Page]
) -> PageFacts:
    counts = [rows_of(page, chunk.leaf.is_repeated) for page in pages]
    first_rows: list[int | None] = [0]
    for count in counts[:-1]:
        before = first_rows[-1]
        first_rows.append(None if before is None or count is None else before + count)
    rows = np.array([count or 0 for count in counts], np.int64)
    bounds = Bounds.unknown(rows.tolist())
    if None not in counts:
        bounds = _header_bounds(file, block, chunk, pages, rows)
    return PageFacts(
        first_rows=first_rows[: len(pages)],
        rows=counts,
        offsets=[page.offset for page in pages],
        sizes=[page.size for page in pages],
        encodings=list(map(_encoding, pages)),
        nulls=known_counts(bounds.null_counts),
        bounds=bounds,
    )


def _header_bounds(
    file: ParquetFile, block: Block, chunk: Chunk, pages: Sequence[Page], rows: Int64s
) -> Bounds:
    """What the headers of pages say of their values, if they all do."""
    if any(not page.is_data or page.statistics is None for page in pages):
        return Bounds.unknown(rows.tolist())
    leaf = chunk.leaf
    (total,) = file.null_counts([block], leaf).tolist()
    return header_bounds(pages, rows, file.order(leaf), file.trusts(leaf), total)


def _only_encoding(probed: Any) -> str | None:
    """The encoding of all data pages of a chunk, if its metadata say that it is one."""
    stats = (probed and probed.encoding_stats) or []
    found = {s.encoding for s in stats if s.page_type != metadata.DICTIONARY_PAGE}
    number = found.pop() if len(found) == 1 else None
    return None if number is None else number_name(_ENCODINGS, number)


def _encoding(page: Page) -> str | None:
    details = page.header.data_page_header or page.header.data_page_header_v2
    number = None if details is None else details.encoding
    return None if number is None else number_name(_ENCODINGS, number)
