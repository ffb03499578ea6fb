"""What the harness says must be read, against files whose pages are known by their writer."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from benchmarks.conditions import Listed, Where
from benchmarks.need import Need
from benchmarks.pages import least_of_parquet
from benchmarks.strides import least_of_orc

ROWS, PAGE = 10_000, 1_000
PAGE_BYTES = PAGE * 8
MOST_OVERHEAD = 120  # bytes of a page's header, and of what else it has besides its values
TABLE = pa.table(
    {"key": np.arange(ROWS), "value": np.random.default_rng(1).integers(0, 1_000, ROWS)},
    schema=pa.schema(
        [pa.field("key", pa.int64(), nullable=False), pa.field("value", pa.int64(), nullable=False)]
    ),
)


def write(folder: Path, **options: Any) -> Path:
    path = folder / "file.parquet"
    settings = {"compression": "none", "use_dictionary": False, "write_page_index": True}
    pages = {"max_rows_per_page": PAGE, "write_batch_size": PAGE}
    pq.write_table(TABLE, path, row_group_size=ROWS // 2, **{**settings, **pages, **options})
    return path


def need(path: Path, rows: list[int] | None, *rest: Any) -> Need:
    wanted = None if rows is None else np.array(rows, np.int64)
    return least_of_parquet([path], wanted, *rest)


def decompressed(found: Need) -> bytes:
    parts = [pa.Codec(p.codec).decompress(p.data, p.size, asbytes=True) for p in found.pieces]
    assert all(len(part) == p.size for part, p in zip(parts, found.pieces, strict=True))
    return b"".join(parts)


def footer_bytes(path: Path) -> int:
    return int(pq.ParquetFile(path).metadata.serialized_size) + 8


def test_all_rows_are_the_footer_and_the_chunks(tmp_path: Path) -> None:
    path = write(tmp_path)
    metadata = pq.ParquetFile(path).metadata
    chunks = [metadata.row_group(g).column(0) for g in range(metadata.num_row_groups)]
    sizes = sum(chunk.total_compressed_size for chunk in chunks)
    assert need(path, None, ["key"]).bytes == footer_bytes(path) + sizes


@pytest.mark.parametrize("index", [True, False])
def test_every_page_with_a_wanted_row_counts_once(tmp_path: Path, index: bool) -> None:
    path = write(tmp_path, write_page_index=index)
    one = need(path, [0], ["key"]).bytes
    same = need(path, [0, 1, PAGE - 1], ["key"]).bytes
    two = need(path, [0, PAGE], ["key"]).bytes
    assert one == same
    assert PAGE_BYTES <= two - one <= PAGE_BYTES + MOST_OVERHEAD


def test_without_an_index_the_headers_before_a_page_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, write_page_index=False)
    first, third = (need(path, [row], ["key"]).bytes for row in (0, 2 * PAGE))
    assert 0 < third - first <= 2 * MOST_OVERHEAD


@pytest.mark.parametrize("index", [True, False])
def test_a_condition_needs_the_pages_that_bounds_leave_open(tmp_path: Path, index: bool) -> None:
    path = write(tmp_path, write_page_index=index)
    where = Where("key", ((">=", PAGE + 5), ("<", 3 * PAGE)))
    rows = list(range(PAGE + 5, 3 * PAGE))
    counted = need(path, rows, (), where).bytes - footer_bytes(path)
    # Of the second page alone it is open which rows match: the third matches as a whole.
    assert PAGE_BYTES <= counted <= PAGE_BYTES + 10 * MOST_OVERHEAD


def test_a_long_list_of_values_leaves_all_pages_open(tmp_path: Path) -> None:
    path = write(tmp_path)
    counted = need(path, [], (), Listed("key")).bytes
    assert counted >= footer_bytes(path) + ROWS * 8


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip"])
def test_pieces_are_the_values_of_the_pages(tmp_path: Path, codec: str, version: str) -> None:
    path = write(tmp_path, compression=codec, data_page_version=version)
    rows = [2 * PAGE, 2 * PAGE + 1, 7 * PAGE]
    found = np.frombuffer(decompressed(need(path, rows, ["value"])), np.int64)
    values = TABLE["value"].to_numpy()
    expected = [values[start : start + PAGE] for start in (2 * PAGE, 7 * PAGE)]
    np.testing.assert_array_equal(found, np.concatenate(expected))


def test_the_dictionary_is_a_piece_where_a_page_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"city": ["nyc", "ams"] * 50}), path, write_page_index=True)
    found = need(path, [3], ["city"])
    assert b"nyc" in decompressed(found)
    assert len(found.pieces) == 2


def test_uncompressed_pages_have_no_pieces(tmp_path: Path) -> None:
    assert need(write(tmp_path), None).pieces == []


@pytest.mark.parametrize("codec", ["zlib", "zstd"])
def test_strides_with_a_wanted_row_are_pieces(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "file.orc"
    noise = pa.table({"noise": np.random.default_rng(2).random(50_000)})
    orc.write_table(noise, path, compression=codec, row_index_stride=10_000)
    whole, some = (
        least_of_orc(path, None if rows is None else np.array(rows, np.int64))
        for rows in (None, [25_000])
    )
    assert sum(piece.size for piece in whole.pieces) >= 50_000 * 8
    # The chunks that a stride lies in, at most one too many on either side of 256 KB each.
    assert 10_000 * 8 <= sum(piece.size for piece in some.pieces) < 10_000 * 8 + 3 * 2**18
    assert some.bytes < whole.bytes < path.stat().st_size
