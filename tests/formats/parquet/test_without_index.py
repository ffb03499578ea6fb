"""Files without an offset index: pages are found by their headers, or the trace says why not."""

import importlib
import io
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.support.kernels import each_decoder, without_kernels
from tests.support.pages import (
    Chunk,
    Page,
    RowGroup,
    Span,
    assert_same,
    boundaries,
    decode,
    footer_span,
    row_groups,
    structure,
)

pytestmark = each_decoder()

ROWS = 1_000
FLAT = ("n", "same", "text", "gaps", "wide", "point")
REPEATED = ("tags", "sizes", "grid", "items")
VERSIONS = ("1.0", "2.0")

# More than any reader's first guess at the length of a header, and less than the pages here.
LONG_HEADER = 4_000

RowsOfPage = structure("DataPageHeaderV2", num_values=(1, "i32"), num_rows=(3, "i32"))
RowsHeader = structure(
    "PageHeader", type=(1, "i32"), compressed_page_size=(3, "i32"), v2=(8, RowsOfPage)
)

V1_RECORDS = "no offset index, and version 1 pages do not tell records"

# The corpus files where a window of one row reads a whole chunk, and why.
FALLBACKS = {
    "ARROW-GH-41317.parquet": V1_RECORDS,
    "ARROW-GH-41321.parquet": V1_RECORDS,
    "nested_lists.snappy.parquet": V1_RECORDS,
    "nested_maps.snappy.parquet": V1_RECORDS,
    "repeated_no_annotation.parquet": V1_RECORDS,
}
# A row of it is 1 GB.
TOO_LARGE = "large_string_map.brotli.parquet"


def written(table: pa.Table, group: int, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=group, **options)
    return file.getvalue()


@cache
def sample() -> pa.Table:
    """Leaves that are flat, also in a struct, and leaves that repeat."""
    rng = np.random.default_rng(11)
    point = pa.StructArray.from_arrays(
        [pa.array(rng.normal(size=ROWS)), pa.array([f"p{i % 30}" for i in range(ROWS)])],
        names=["x", "label"],
        mask=pa.array(rng.random(ROWS) < 0.2),
    )
    lists = [None if i % 11 == 0 else [f"t{i}"] * (i % 4) for i in range(ROWS)]
    maps = [None if i % 13 == 0 else [(f"k{j}", i) for j in range(i % 3)] for i in range(ROWS)]
    grid: list[Any] = [[[i, None]] * (i % 2) + [None, []] for i in range(ROWS)]
    items = [[{"price": i, "name": None}] * (i % 3) for i in range(ROWS)]
    return pa.table(
        {
            "n": np.arange(ROWS),
            "same": np.zeros(ROWS, dtype=np.bool_),
            "text": [f"word {i % 90}" for i in range(ROWS)],
            "gaps": pa.array(range(ROWS), mask=rng.random(ROWS) < 0.4),
            "wide": [rng.bytes(40) for _ in range(ROWS)],
            "point": point,
            "tags": lists,
            "sizes": pa.array(maps, pa.map_(pa.string(), pa.int64())),
            "grid": pa.array(grid, pa.list_(pa.list_(pa.int32()))),
            "items": pa.array(
                items, pa.list_(pa.struct({"price": pa.int64(), "name": pa.string()}))
            ),
        }
    )


@cache
def sample_file(version: str) -> bytes:
    layout = {"data_page_size": 300, "write_batch_size": 16}
    return written(sample(), 300, data_page_version=version, **layout)


@cache
def large_file(version: str) -> bytes:
    """Two row groups of 1 MB in two columns, in pages of 64 KB."""
    rng = np.random.default_rng(12)
    columns = {name: [rng.bytes(1_000) for _ in range(2_000)] for name in ("left", "right")}
    layout = {"max_rows_per_page": 64, "write_batch_size": 64, "use_dictionary": False}
    return written(pa.table(columns), 1_000, data_page_version=version, **layout)


def pages_of(data: bytes, chunk: Chunk, first_row: int) -> list[Page]:
    """The pages of a chunk with rows as the headers of version 2 tell them, of any leaf."""
    pages: list[Page] = []
    position, row = chunk.span.start, first_row
    while position < chunk.span.end:
        header, body = decode(RowsHeader, data, position)
        end = body + header.compressed_page_size
        if header.v2 is not None:
            pages.append(Page(Span(position, end), row, row + header.v2.num_rows, False))
            row += header.v2.num_rows
        position = end
    return pages


def pages_between(pages: list[Page], start: int, end: int) -> int:
    """How many pages have rows of `[start, end)`; pages without rows in their midst count."""
    found = [at for at, page in enumerate(pages) if start < page.end_row and page.first_row < end]
    found = [at for at in found if pages[at].first_row < pages[at].end_row]
    return found[-1] - found[0] + 1 if found else 0


def is_of(chunk: Chunk, columns: tuple[str, ...]) -> bool:
    return chunk.column.split(".")[0] in columns


def overlapping(
    groups: tuple[RowGroup, ...], start: int, end: int, columns: tuple[str, ...]
) -> list[Page]:
    """The pages of flat leaves with a row of `[start, end)`."""
    chunks = [chunk for group in groups for chunk in group.chunks if is_of(chunk, columns)]
    return [page for chunk in chunks for page in chunk.pages_with(start, end)]


def size_of(pages: list[Page]) -> int:
    return sum(page.span.end - page.span.start for page in pages)


def windows(groups: tuple[RowGroup, ...], count: int, seed: int) -> list[tuple[int, int]]:
    """Windows `[start, end)` that begin at, one before or one after a page boundary."""
    rng = np.random.default_rng(seed)
    total = groups[-1].end_row
    starts = rng.choice([b for b in boundaries(groups) if 0 < b < total], size=count)
    starts += rng.integers(-1, 2, size=count)
    ends = starts + rng.choice([1, 2, 17, 120, 400], size=count)
    return [(int(a), min(int(b), total)) for a, b in zip(starts, ends, strict=True) if a < total]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("columns", [FLAT, ("n",), ("wide", "point")], ids="-".join)
def test_windows_of_flat_leaves_decode_only_the_pages_that_overlap(
    columns: tuple[str, ...], version: str
) -> None:
    data = sample_file(version)
    groups = row_groups(data)
    assert all(chunk.offset_index is None for group in groups for chunk in group.chunks)
    for start, end in windows(groups, 12, 1):
        with fs.trace() as trace:
            result = fs.scan(data).select(*columns).skip(start).head(end - start).to_arrow()
        expected = sample().select(columns).slice(start, end - start)
        assert_same(result, expected)
        assert trace.pages_decoded == len(overlapping(groups, start, end, columns))
        assert trace.fallbacks == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rows", [1, 7, 130, 450])
def test_tails_of_flat_leaves_decode_only_the_pages_that_overlap(rows: int, version: str) -> None:
    data = sample_file(version)
    with fs.trace() as trace:
        result = fs.scan(data).select(*FLAT).tail(rows).to_arrow()
    assert_same(result, sample().select(FLAT).slice(ROWS - rows))
    assert trace.pages_decoded == len(overlapping(row_groups(data), ROWS - rows, ROWS, FLAT))
    assert trace.fallbacks == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rows", [[0], [130, 131, 1640], [999, 1000], [1999, 70, 70, 320]], ids=str)
def test_single_rows_fetch_only_their_pages(rows: list[int], version: str) -> None:
    data = large_file(version)
    groups = row_groups(data)
    found = {p for row in rows for p in overlapping(groups, row, row + 1, ("left", "right"))}
    chunks = sum(g.span.end - g.span.start for g in groups)
    uses: tuple[Callable[[fs.Scan], Any], ...] = (
        lambda scan: scan.take(rows),
        lambda scan: scan.select_rows(rows).to_arrow(),
    )
    for use in uses:
        with fs.trace() as trace:
            use(fs.scan(data))
        assert trace.pages_decoded == len(found)
        assert trace.data_bytes == size_of(list(found))
        assert trace.index_bytes < chunks / 20
        assert trace.fallbacks == []


@pytest.mark.parametrize("version", VERSIONS)
def test_windows_over_large_pages_read_far_less_than_the_chunks(version: str) -> None:
    data = large_file(version)
    groups = row_groups(data)
    for start, length in ((0, 10), (500, 40), (990, 20), (1_990, 10)):
        with fs.trace() as trace:
            fs.scan(data).select("left").skip(start).head(length).to_arrow()
        pages = overlapping(groups, start, start + length, ("left",))
        assert trace.pages_decoded == len(pages)
        assert trace.data_bytes == size_of(pages)
        headers = trace.bytes_read - trace.data_bytes - trace.footer_bytes
        assert headers < (groups[0].chunks[0].span.end - groups[0].chunks[0].span.start) / 10
        # Pages are found through headers: nothing else of the file is looked at.
        left = [chunk.span for group in groups for chunk in group.chunks if chunk.column == "left"]
        for read in trace.log:
            inside = any(span.covers(read.offset, read.length) for span in left)
            assert inside or read.offset >= footer_span(data).start, read


@pytest.mark.parametrize("column", REPEATED)
def test_windows_of_repeated_leaves_in_v2_pages_decode_only_the_pages_that_overlap(
    column: str,
) -> None:
    data = sample_file("2.0")
    chunks = [
        pages_of(data, chunk, group.first_row)
        for group in row_groups(data)
        for chunk in group.chunks
        if is_of(chunk, (column,))
    ]
    assert any(len(pages) > 3 for pages in chunks)
    near = {page.first_row + step for pages in chunks for page in pages for step in (-1, 0, 1)}
    for start in sorted(near)[1:-1:5]:
        for length in (1, 30):
            end = min(start + length, ROWS)
            with fs.trace() as trace:
                result = fs.scan(data).select(column).skip(start).head(length).to_arrow()
            assert_same(result, sample().select([column]).slice(start, length))
            wanted = sum(pages_between(pages, start, end) for pages in chunks)
            empty = sum(page.first_row == page.end_row for pages in chunks for page in pages)
            assert wanted - empty <= trace.pages_decoded <= wanted, (start, length)
            assert trace.fallbacks == []


def test_late_rows_of_repeated_leaves_in_v1_pages_need_the_chunk_and_the_trace_says_why(
    tmp_path: Path,
) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(sample_file("1.0"))
    (first, *_) = row_groups(sample_file("1.0"))
    scan = fs.scan(path).select("n", "tags", "items").skip(240).head(3)
    with fs.trace() as compiled:
        assert_same(scan.to_arrow(), sample().select(["n", "tags", "items"]).slice(240, 3))
    with without_kernels(), fs.trace() as trace:
        assert_same(scan.to_arrow(), sample().select(["n", "tags", "items"]).slice(240, 3))
    assert compiled.pages_decoded <= trace.pages_decoded
    assert compiled.fallbacks == trace.fallbacks
    repeated = [chunk for chunk in first.chunks if is_of(chunk, ("tags", "items"))]
    whole = sum(len(chunk.pages) for chunk in repeated)
    assert trace.pages_decoded == whole + len(overlapping((first,), 240, 243, ("n",)))
    leaves = {"tags.element", "items.element.price", "items.element.name"}
    found = {(each.path, each.column, each.block) for each in trace.fallbacks}
    assert found == {(str(path), leaf, 0) for leaf in leaves}
    assert {each.reason for each in trace.fallbacks} == {V1_RECORDS}
    with fs.trace() as trace:
        fs.scan(path).select("tags").skip(300).head(300).to_arrow()
        fs.scan(path).select("tags").filter(fs.blocks(1, 2)).to_arrow()
        fs.scan(path).select("tags").skip(5).count()
    assert trace.fallbacks == [], "whole row groups are not read for want of an index"


@pytest.mark.parametrize("version", VERSIONS)
def test_page_headers_longer_than_a_first_guess(version: str) -> None:
    """The statistics in each header are two strings of 3,600 bytes; every third page is short."""
    words = ["s" if i // 8 % 3 == 0 else f"{i:06}" * 600 for i in range(240)]
    table = pa.table({"text": words, "n": range(240)})
    layout = {"max_rows_per_page": 8, "write_batch_size": 8, "use_dictionary": False}
    data = written(table, 160, data_page_version=version, **layout)
    groups = row_groups(data)
    header, body = decode(RowsHeader, data, groups[0].chunks[0].pages[1].span.start)
    assert header.type in (0, 3)
    assert body - groups[0].chunks[0].pages[1].span.start > LONG_HEADER
    for start in range(0, 240, 7):
        with fs.trace() as trace:
            result = fs.scan(data).skip(start).head(9).to_arrow()
        assert_same(result, table.slice(start, 9))
        assert trace.pages_decoded == len(overlapping(groups, start, start + 9, ("text", "n")))
        assert trace.fallbacks == []


@given(st.sampled_from(VERSIONS), st.integers(0, ROWS), st.integers(0, ROWS), st.data())
def test_random_windows_and_rows_equal_the_slices(
    version: str, start: int, length: int, draw: st.DataObject
) -> None:
    columns = draw.draw(
        st.lists(st.sampled_from(FLAT + REPEATED), min_size=1, max_size=3, unique=True)
    )
    rows = draw.draw(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=6))
    scan = fs.scan(sample_file(version)).select(*columns)
    expected = sample().select(columns)
    assert_same(scan.skip(start).head(length).to_arrow(), expected.slice(start, length))
    assert_same(scan.take(rows), expected.take(pa.array(rows, pa.int64())))
    assert_same(scan.select_rows(rows).to_arrow(), expected.take(sorted(set(rows))))


# Other writers


def writer(name: str) -> Any:
    """The module of a writer: it may be missing on a user's machine, not in CI."""
    return importlib.import_module(name) if "CI" in os.environ else pytest.importorskip(name)


def table_for_writers(nested: bool) -> pa.Table:
    rng = np.random.default_rng(13)
    table = pa.table(
        {
            "n": np.arange(5_000),
            "text": [None if i % 7 == 0 else f"w{i % 50}" for i in range(5_000)],
            "noise": rng.normal(size=5_000),
            "flag": rng.random(5_000) < 0.5,
        }
    )
    if nested:
        table = table.append_column("list", pa.array([[i] * (i % 3) for i in range(5_000)]))
        table = table.append_column("point", pa.array([{"x": i} for i in range(5_000)]))
    return table


def write_with_duckdb(table: pa.Table, path: Path) -> None:
    writer("duckdb").from_arrow(table).write_parquet(str(path), row_group_size=2_048)


def write_with_polars(table: pa.Table, path: Path) -> None:
    frame = writer("polars").from_arrow(table)
    frame.write_parquet(path, row_group_size=2_048, data_page_size=2_000)


def write_with_fastparquet(table: pa.Table, path: Path) -> None:
    frame = table.select(["n", "text", "noise", "flag"]).to_pandas()
    writer("fastparquet").write(str(path), frame, row_group_offsets=2_048)


WRITERS = (write_with_duckdb, write_with_polars, write_with_fastparquet)


# fastparquet asks pandas for an option that pandas no longer likes.
@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.split("_")[-1])
def test_files_of_writers_without_an_index(
    write: Callable[[pa.Table, Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "data.parquet"
    write(table_for_writers(nested=True), path)
    expected = pq.read_table(path)
    groups = row_groups(path.read_bytes())
    flat = tuple(name for name in expected.column_names if name != "list")
    indexed = groups[0].chunks[0].offset_index is not None
    for start, end in [*windows(groups, 10, 2), (0, 1), (4_999, 5_000), (2_000, 4_500)]:
        window = expected.slice(start, end - start)
        with fs.trace() as trace:
            result = fs.scan(path).select(*flat).skip(start).head(end - start).to_arrow()
        assert_same(result, window.select(flat))
        assert trace.fallbacks == []
        # With an index of its own, a page ends where the next one begins: as the values say.
        assert trace.pages_decoded == len(overlapping(groups, start, end, flat))
        with fs.trace() as trace:
            assert_same(fs.scan(path).skip(start).head(end - start).to_arrow(), window)
        assert indexed <= (trace.fallbacks == [])
        assert {each.column for each in trace.fallbacks} <= {"list.element"}


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
def test_duckdb_and_fastparquet_write_no_offset_index(tmp_path: Path) -> None:
    for write in (write_with_duckdb, write_with_fastparquet):
        path = tmp_path / f"{write.__name__}.parquet"
        write(table_for_writers(nested=True), path)
        groups = row_groups(path.read_bytes())
        assert {chunk.offset_index for group in groups for chunk in group.chunks} == {None}


# The corpus


def reasons_in(path: Path) -> set[str]:
    """Why windows of one row fall back: the first, one in the middle, the last of each column."""
    scan = fs.scan(path, int96="us", verify=False)
    reasons: set[str] = set()
    try:
        total, names = scan.count(), scan.schema.names
    except fs.FileFormatError:
        return reasons
    for name in names:
        for row in {0, total // 2, max(total - 1, 0)}:
            with fs.trace() as trace:
                try:
                    scan.select(name).skip(row).head(1).to_arrow()
                except fs.FileFormatError:
                    continue
            reasons |= {each.reason for each in trace.fallbacks}
    return reasons


@pytest.mark.slow
def test_corpus_files_that_fall_back_are_listed(corpus: Path) -> None:
    files = [p for p in sorted((corpus / "parquet").rglob("*.parquet*")) if p.name != TOO_LARGE]
    found = {path.name: reasons_in(path) for path in files}
    assert {name: reasons for name, reasons in found.items() if reasons} == {
        name: {reason} for name, reason in FALLBACKS.items()
    }


def growing_lists(rows: int) -> pa.Table:
    """Lists that go on over many pages, short ones, empty ones and nulls."""
    rng = np.random.default_rng(11)
    lengths = np.where(rng.random(rows) < 0.01, 3_000, rng.integers(0, 6, rows)).tolist()
    lists = [None if i % 13 == 5 else rng.integers(0, 99, n) for i, n in enumerate(lengths)]
    nested = [None if xs is None else [xs[:2], None, xs[2:3]] for xs in lists]
    return pa.table(
        {
            "numbers": pa.array(lists, pa.list_(pa.int64())),
            "nested": pa.array(nested, pa.list_(pa.list_(pa.int64()))),
        }
    )


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_first_records_of_repeated_leaves_in_v1_pages_are_counted(
    codec: str, dictionary: bool
) -> None:
    """Where a record ends is not told by the headers, but by the levels of the pages."""
    table = growing_lists(6_000)
    data = written(
        table,
        6_000,
        compression=codec,
        use_dictionary=dictionary,
        data_page_version="1.0",
        data_page_size=2_000,
        write_batch_size=128,
    )
    for start, length in ((0, 1), (0, 10), (3, 200), (150, 1), (700, 300), (2_990, 10)):
        with fs.trace() as trace:
            result = fs.scan(data).skip(start).head(length).to_arrow()
        assert_same(result, table.slice(start, length))
        if start + length <= 1_000:
            assert trace.fallbacks == []
            assert trace.bytes_read - trace.footer_bytes < len(data) * 0.6
    found = fs.scan(data).filter(col("numbers").any() == 7).head(3).to_arrow()
    holding = [xs is not None and 7 in xs for xs in table["numbers"].to_pylist()]
    assert_same(found, table.filter(pa.array(holding)).slice(0, 3))


def test_ten_lists_of_many_are_a_small_part_of_the_file() -> None:
    table = pa.table({"xs": [[n, n + 1, n * 7919] for n in range(100_000)]})
    layout = {"data_page_size": 20_000, "use_dictionary": False}
    data = written(table, 100_000, data_page_version="1.0", **layout)
    with fs.trace() as trace:
        assert_same(fs.scan(data).head(10).to_arrow(), table.slice(0, 10))
    assert trace.fallbacks == []
    assert trace.data_bytes + trace.index_bytes < len(data) / 10


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nested", [False, True])
def test_headers_of_small_pages_are_read_once_and_many_at_a_time(
    version: str, nested: bool, tmp_path: Path
) -> None:
    numbers = np.random.default_rng(5).integers(0, 1 << 40, 150_000)
    flat = pa.array(numbers)
    lists = pa.ListArray.from_arrays(np.arange(0, 150_001, 3), flat)
    table = pa.table({"n": lists if nested else flat})
    path = tmp_path / "data.parquet"
    layout = {"data_page_size": 4_000, "write_batch_size": 256, "use_dictionary": False}
    path.write_bytes(written(table, len(table), data_page_version=version, **layout))
    ((chunk,),) = (group.chunks for group in row_groups(path.read_bytes()))
    size, pages = chunk.span.end - chunk.span.start, len(chunk.pages)
    assert pages > 200
    with fs.trace() as trace:
        batches = list(fs.scan(path).batches(1_000))
    assert_same(pa.Table.from_batches(batches), table)
    with fs.trace() as trace:
        scan = fs.scan(path).filter(col("n").any() >= 0 if nested else col("n") >= 0)
        assert scan.skip(len(table) // 3).head(len(table) // 3).to_arrow().num_rows
    if nested and version == "1.0":
        return
    assert trace.index_bytes <= size * 1.1
    headers = [read for read in trace.log if read.why == "index"]
    assert len(headers) < pages / 5
    with fs.open(path) as file, fs.trace() as trace:
        for start in range(0, len(table), len(table) // 20):
            assert_same(file.scan().skip(start).head(5).to_arrow(), table.slice(start, 5))
    assert sum(read.length for read in trace.log if read.why == "index") <= size * 1.2
