"""Tables as files of both formats, in the blocks that a test asks for, and where these lie.

`written` is for tests of what holds for Parquet and ORC alike: the writer is a parameter. Options
are those of the writer, except that ORC by pyorc takes the names of codecs that pyarrow takes, that
both take `row_index_stride=0` for no row index, and `blooms=True` for filters on every column.
`in_blocks` are the blocks of a file with their midpoints, `pyarrow_read` is its table.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.nested_data import Kinds, nested_table, parquet_bytes
from tests.support.orc_craft import joined, without_row_index
from tests.support.orc_files import (
    codec_of_pyorc,
    layout_of,
    orc_bytes,
    pyarrow_orc,
    pyorc_table,
    type_count,
)

ORC_LEAVES = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(7, 2), pa.decimal128(17, 4), pa.decimal128(30, 5), pa.date32(), pa.string()),
    *(pa.binary(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
)
MORE_LEAVES = (
    *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
    *(pa.large_string(), pa.large_binary(), pa.binary(5)),
)
ORC_KINDS = Kinds((*ORC_LEAVES, *MORE_LEAVES), ("struct", "list", "map"))
PYORC_KINDS = Kinds(ORC_LEAVES, ORC_KINDS.branches)

# Which writers the files of a scan are by, in turn.
TURNS: dict[str, tuple[str, ...]] = {
    "parquet": ("parquet",),
    "orc": ("orc", "pyorc"),
    "mixed": ("orc", "parquet", "pyorc", "parquet"),
}


def writer_of(turns: str, ordinal: int) -> str:
    """The writer of one of the files of a scan."""
    return TURNS[turns][ordinal % len(TURNS[turns])]


# Writing


def written(table: pa.Table, writer: str, blocks: Sequence[int], **options: Any) -> bytes:
    """The table in blocks of so many rows: where it is none, Parquet has a block, ORC has not."""
    match writer:
        case "parquet":
            return parquet_blocks(table, blocks, **options)
        case "orc":
            return orc_blocks(table, blocks, by_pyarrow, **options)
        case "pyorc":
            return orc_blocks(table, blocks, by_pyorc, **options)
    raise ValueError(f"nobody writes {writer}")


def even(rows: int, block: int) -> list[int]:
    """The sizes of blocks of so many rows, of which the last may have less."""
    return [min(block, rows - first) for first in range(0, rows, block)]


def slices(table: pa.Table, blocks: Sequence[int]) -> Iterator[pa.Table]:
    assert sum(blocks) == table.num_rows
    for first, end in pairwise(accumulate(blocks, initial=0)):
        yield table.slice(first, end - first)


def parquet_blocks(table: pa.Table, blocks: Sequence[int], **options: Any) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        for part in slices(table, blocks):
            writer.write_table(part, row_group_size=max(part.num_rows, 1))
    return sink.getvalue()


def orc_blocks(
    table: pa.Table,
    blocks: Sequence[int],
    write: Callable[..., bytes],
    *,
    blooms: bool = False,
    **options: Any,
) -> bytes:
    """No writer cuts stripes after so many rows: these are out of a file each."""
    if blooms:
        columns = range(1, type_count(pa.struct(list(table.schema))))
        options["bloom_filter_columns"] = columns
    one = partial(write, **options)
    parts = [part for part in slices(table, blocks) if part.num_rows]
    return joined(one(table), [one(part) for part in parts] if len(parts) > 1 else [])


def by_pyarrow(table: pa.Table, row_index_stride: int = 10_000, **options: Any) -> bytes:
    if row_index_stride:
        return orc_bytes(table, row_index_stride=row_index_stride, **options)
    return without_row_index(orc_bytes(table, **options))


def by_pyorc(table: pa.Table, compression: str = "zlib", **options: Any) -> bytes:
    return pyorc_table(table, compression=codec_of_pyorc(compression), **options)


def nested_file(seed: int, rows: int, writer: str = "parquet", **options: Any) -> bytes:
    """A random table of the types that the writer knows, in small pages and several blocks."""
    if writer == "parquet":
        return parquet_bytes(nested_table(seed, rows), **options)
    kinds = PYORC_KINDS if writer == "pyorc" else ORC_KINDS
    return written(nested_table(seed, rows, kinds=kinds), writer, even(rows, 50), **options)


# Reading


@dataclass(frozen=True)
class Block:
    """Rows of a file, and the byte that says which range they are in."""

    rows: range
    midpoint: int


def is_orc(data: bytes) -> bool:
    return data[:3] == b"ORC"


def in_blocks(data: bytes) -> list[Block]:
    """The blocks as pyarrow or the footers have them."""
    if is_orc(data):
        stripes = layout_of(data).stripes
        return [Block(range(s.first_row, s.end_row), s.midpoint) for s in stripes]
    metadata = pq.read_metadata(io.BytesIO(data))
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    ends = accumulate((group.num_rows for group in groups), initial=0)
    rows = [range(first, end) for first, end in pairwise(ends)]
    return list(map(Block, rows, map(midpoint, groups)))


def midpoint(group: pq.RowGroupMetaData) -> int:
    """The rule: start of the first chunk, its dictionary included, and half of all the chunks."""
    chunks = [group.column(leaf) for leaf in range(group.num_columns)]
    # Some writers say 0 where there is no dictionary page, or no page at all.
    starts = [chunks[0].data_page_offset, chunks[0].dictionary_page_offset]
    start = min((offset for offset in starts if offset), default=0)
    return int(start + sum(chunk.total_compressed_size for chunk in chunks) // 2)


def pyarrow_read(data: bytes) -> pa.Table:
    """What pyarrow reads of the same bytes."""
    return pyarrow_orc(data) if is_orc(data) else pq.ParquetFile(io.BytesIO(data)).read()
