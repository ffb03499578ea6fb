"""What a scan reads and decodes: the trace, against a file that counts and the page headers."""

import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.formats import by_pyarrow, orc_blocks, parquet_blocks
from tests.support.pages import Chunk, RowGroup, Span, boundaries, footer_span, row_groups

ROWS = 1_000
COLUMNS = ("n", "same", "text", "noise", "wide")


class CountingFile(io.RawIOBase):
    """A file in memory that writes down every read: offset and length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.reads: list[tuple[int, int]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._data)}
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._position : self._position + len(buffer)]
        buffer[: len(piece)] = piece
        self.reads.append((self._position, len(piece)))
        self._position += len(piece)
        return len(piece)


def counting(data: bytes) -> Any:
    """The counting file, for parameters that want a `BinaryIO`."""
    return CountingFile(data)


@cache
def small_file(**options: Any) -> bytes:
    """Row groups of 300 rows; each column has its own page boundaries, `same` a tiny chunk."""
    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "n": np.arange(ROWS),
            "same": np.zeros(ROWS, dtype=np.bool_),
            "text": [f"word {i % 90}" for i in range(ROWS)],
            "noise": rng.normal(size=ROWS),
            "wide": [rng.bytes(40) for _ in range(ROWS)],
        }
    )
    return written(table, 300, **{"data_page_size": 400, "write_batch_size": 16, **options})


@cache
def large_file() -> bytes:
    """Two row groups of 1 MB with pages of 64 KB: nobody fetches the gap between two pages."""
    rng = np.random.default_rng(3)
    columns = {name: [rng.bytes(1_000) for _ in range(ROWS)] for name in ("left", "right")}
    layout = {"max_rows_per_page": 64, "write_batch_size": 64}
    return written(pa.table(columns), 500, use_dictionary=False, **layout)


@cache
def fallen_back_file() -> bytes:
    """A column with a large dictionary that its later pages no longer use."""
    rng = np.random.default_rng(4)
    table = pa.table({"s": [rng.bytes(500) for _ in range(2 * ROWS)]})
    layout = {"max_rows_per_page": 100, "write_batch_size": 100}
    return written(table, 5 * ROWS, dictionary_pagesize_limit=300_000, **layout)


def written(table: pa.Table, group: int, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=group, **{"write_page_index": True, **options})
    return file.getvalue()


@contextmanager
def traced(data: bytes) -> Iterator[tuple[fs.Scan, fs.Trace]]:
    """A scan and the trace of what is done with it, which must agree with the file that counts."""
    file = counting(data)
    with fs.trace() as trace:
        yield fs.scan(file), trace
    assert sorted((read.offset, read.length) for read in trace.log) == sorted(file.reads)
    assert trace.requests == len(file.reads)
    assert trace.bytes_read == sum(length for _, length in file.reads)
    assert trace.bytes_read == trace.footer_bytes + trace.index_bytes + trace.data_bytes


def chunks_of(groups: Iterable[RowGroup], *columns: str) -> list[Chunk]:
    return [chunk for group in groups for chunk in group.chunks if chunk.column in columns]


def size_of(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


def assert_data_only_from(trace: fs.Trace, allowed: Iterable[Span]) -> None:
    """Every byte that was read for data belongs to one of the spans."""
    merged: list[Span] = []
    for span in sorted(allowed, key=lambda span: span.start):
        if merged and span.start == merged[-1].end:
            span = Span(merged.pop().start, span.end)
        merged.append(span)
    for read in trace.log:
        inside = any(span.covers(read.offset, read.length) for span in merged)
        assert read.why != "data" or inside, (read, merged)


USES: dict[str, Callable[[fs.Scan], Any]] = {
    "whole": lambda scan: scan.to_arrow(),
    "window": lambda scan: scan.skip(250).head(400).to_arrow(),
    "tail": lambda scan: scan.tail(3).to_arrow(),
    "projection": lambda scan: scan.select("wide", "n").skip(10).to_arrow(),
    "selected rows": lambda scan: scan.select_rows([5, 299, 300, 999]).to_arrow(),
    "take": lambda scan: scan.take([999, 0, 999, 400]),
    "byte range": lambda scan: scan.filter(fs.byte_range(0, 20_000)).to_arrow(),
    "batches": lambda scan: list(scan.skip(5).batches(batch_size=100)),
    "reader": lambda scan: scan.to_reader().read_all(),
    "stream": lambda scan: pa.table(scan),
    "explain": lambda scan: scan.skip(3).explain(),
}
METADATA_USES: dict[str, Callable[[fs.Scan], Any]] = {
    "schema": lambda scan: scan.schema,
    "count": lambda scan: scan.count(),
    "count of a window": lambda scan: scan.skip(10).head(500).count(),
    "count of a tail": lambda scan: scan.tail(10).count(),
    "count of rows": lambda scan: scan.select_rows([1, 500]).count(),
    "count in blocks": lambda scan: scan.filter(fs.blocks(1, 2)).skip(7).count(),
    "no columns": lambda scan: scan.select().skip(7).to_arrow(),
    "row index alone": lambda scan: scan.select().with_row_index().tail(7).to_arrow(),
}


@pytest.mark.parametrize("index", [True, False], ids=["page index", "no page index"])
@pytest.mark.parametrize("use", [*USES, *METADATA_USES])
def test_log_is_what_the_file_saw(use: str, index: bool) -> None:
    data = small_file(write_page_index=index)
    with traced(data) as (scan, trace):
        {**USES, **METADATA_USES}[use](scan)
    assert trace.footer_bytes >= size_of([footer_span(data)])
    assert {read.why for read in trace.log} <= {
        "footer",
        "index",
        "Bloom filter",
        "dictionary",
        "data",
    }


def test_log_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(small_file())
    with fs.trace() as trace:
        fs.scan(path).head(3).to_arrow()
    assert {read.path for read in trace.log} == {str(path)}


@pytest.mark.parametrize("use", METADATA_USES)
def test_metadata_answers_without_index_or_data(use: str) -> None:
    with traced(small_file()) as (scan, trace):
        METADATA_USES[use](scan)
    assert trace.index_bytes == trace.data_bytes == trace.pages_decoded == trace.rows_decoded == 0
    for group in row_groups(small_file()):
        assert not any(group.span.overlaps(read.offset, read.length) for read in trace.log)


@pytest.mark.parametrize("columns", [COLUMNS, ("n",), ("noise", "wide")], ids="-".join)
def test_windows_decode_only_the_pages_that_overlap(columns: tuple[str, ...]) -> None:
    groups = row_groups(small_file())
    rng = np.random.default_rng(6)
    for boundary in rng.choice(boundaries(groups)[1:-1], size=15):
        skip, length = int(boundary) + int(rng.integers(-1, 2)), int(rng.integers(1, 400))
        end = min(skip + length, ROWS)
        touched = [g for g in groups if max(skip, g.first_row) < min(end, g.end_row)]
        chunks = chunks_of(touched, *columns)
        expected = [page for chunk in chunks for page in chunk.pages_with(skip, end)]
        with traced(small_file()) as (scan, trace):
            scan.select(*columns).skip(skip).head(length).to_arrow()
        assert trace.pages_decoded == len(expected)
        assert trace.rows_decoded >= (end - skip) * len(columns)
        assert trace.rows_decoded <= sum(page.end_row - page.first_row for page in expected)
        assert trace.fallbacks == []
        assert_data_only_from(trace, [chunk.span for chunk in chunks])


@pytest.mark.parametrize("rows", [1, 5, 60, 130, 500])
def test_tails_decode_only_the_pages_that_overlap(rows: int) -> None:
    touched = [group for group in row_groups(small_file()) if group.end_row > ROWS - rows]
    chunks = chunks_of(touched, *COLUMNS)
    with traced(small_file()) as (scan, trace):
        scan.tail(rows).to_arrow()
    assert trace.pages_decoded == sum(len(c.pages_with(ROWS - rows, ROWS)) for c in chunks)
    assert_data_only_from(trace, [chunk.span for chunk in chunks])


@pytest.mark.parametrize("window", [(0, ROWS), (100, 700)], ids=["whole", "window"])
@pytest.mark.parametrize("columns", [("n", "text"), ("noise", "n"), ("same",)], ids="-".join)
def test_projection_never_fetches_another_column(
    columns: tuple[str, ...], window: tuple[int, int]
) -> None:
    chunks = chunks_of(row_groups(small_file()), *columns)
    with traced(small_file()) as (scan, trace):
        scan.select(*columns).skip(window[0]).head(window[1]).to_arrow()
    assert_data_only_from(trace, [chunk.span for chunk in chunks])


def test_row_groups_between_those_selected_are_not_fetched() -> None:
    data = written(pa.table({"n": range(100)}), 10)
    groups = row_groups(data)
    for wanted in ([5, 25], [0, 99, 45], [11, 31, 51, 71]):
        spans = [groups[row // 10].span for row in wanted]
        with traced(data) as (scan, trace):
            assert scan.select_rows(wanted).to_arrow()["n"].to_pylist() == sorted(wanted)
            assert scan.take(wanted)["n"].to_pylist() == wanted
        assert_data_only_from(trace, spans)


@pytest.mark.parametrize("rows", [[0], [130, 131, 640], [499, 500], [999, 70, 70, 320]], ids=str)
def test_single_rows_fetch_only_their_pages(rows: list[int]) -> None:
    chunks = chunks_of(row_groups(large_file()), "left", "right")
    pages = {page for chunk in chunks for row in rows for page in chunk.pages_with(row, row + 1)}
    selection = fs.RowSelection.from_indices(sorted(set(rows)), ROWS)
    uses: tuple[Callable[[fs.Scan], Any], ...] = (
        lambda scan: scan.take(rows),
        lambda scan: scan.select_rows(rows).to_arrow(),
        lambda scan: scan.select_rows(selection).to_arrow(),
    )
    for use in uses:
        with traced(large_file()) as (scan, trace):
            use(scan)
        assert trace.pages_decoded == len(pages)
        assert_data_only_from(trace, [page.span for page in pages])
        assert trace.data_bytes == size_of(page.span for page in pages)


def test_dictionary_is_fetched_only_for_pages_that_use_it() -> None:
    (chunk,) = chunks_of(row_groups(fallen_back_file()), "s")
    dictionary = chunk.dictionary
    assert dictionary is not None
    assert {page.uses_dictionary for page in chunk.pages} == {True, False}
    for page in (chunk.pages[0], chunk.pages[-1]):
        with traced(fallen_back_file()) as (scan, trace):
            scan.skip(page.first_row + 1).head(2).to_arrow()
        fetched = any(dictionary.overlaps(read.offset, read.length) for read in trace.log)
        assert fetched == page.uses_dictionary
        assert trace.pages_decoded == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda scan: scan,
        lambda scan: scan.filter(fs.blocks(1, 3)),
        lambda scan: scan.skip(300).head(600),
        lambda scan: scan.tail(100),
    ],
    ids=["whole", "blocks", "window", "tail"],
)
def test_whole_row_groups_need_no_index(use: Callable[[fs.Scan], fs.Scan]) -> None:
    with traced(small_file()) as (scan, trace):
        use(scan).to_arrow()
    assert trace.index_bytes == 0
    assert trace.fallbacks == []


@pytest.mark.parametrize("page_rows", [50, 100])
def test_chunks_of_one_page_need_no_index(page_rows: int) -> None:
    table = pa.table({"n": range(1000), "s": [f"{i:09}" for i in range(1000)]})
    pages = {"data_page_size": 1, "write_batch_size": page_rows, "use_dictionary": False}
    data = written(table, 100, **pages)
    picked = fs.RowSelection.from_indices([7, 8, 560], 1000)
    uses: list[Callable[[fs.Scan], fs.Scan]] = [
        lambda scan: scan.select_rows(picked),
        lambda scan: scan.filter(fs.col("n").is_in([7, 8, 560])),
    ]
    for use in uses:
        with traced(data) as (scan, trace):
            assert use(scan).to_arrow().equals(table.take([7, 8, 560]))
        assert (trace.index_bytes == 0) == (page_rows == 100)
        assert trace.fallbacks == []


def test_whole_file_is_read_and_decoded_once() -> None:
    chunks = chunks_of(row_groups(small_file()), *COLUMNS)
    with traced(small_file()) as (scan, trace):
        scan.to_arrow()
    assert trace.data_bytes == size_of(chunk.span for chunk in chunks)
    assert trace.pages_decoded == sum(len(chunk.pages) for chunk in chunks)
    assert trace.rows_decoded == ROWS * len(COLUMNS)


def test_fallbacks_say_where_a_window_reads_more_and_why(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    columns = {"n": range(ROWS), "tags": [[i] * (i % 3) for i in range(ROWS)]}
    path.write_bytes(written(pa.table(columns), 300, write_page_index=False))
    with fs.trace() as trace:
        fs.scan(path).skip(250).head(400).to_arrow()
    # Row group 1 is read whole, the others are not; the pages of `n` say their rows themselves.
    found = {(fallback.path, fallback.column, fallback.block) for fallback in trace.fallbacks}
    assert found == {(str(path), "tags.element", block) for block in (0, 2)}
    assert all("offset index" in fallback.reason for fallback in trace.fallbacks)
    with fs.trace() as trace:
        fs.scan(path).to_arrow()
        fs.scan(path).filter(fs.blocks(1, 2)).to_arrow()
        fs.scan(path).skip(5).count()
    assert trace.fallbacks == []


def test_flat_columns_without_offset_index_need_no_fallback() -> None:
    data = small_file(write_page_index=False)
    touched = row_groups(data)[:3]
    with traced(data) as (scan, trace):
        scan.skip(250).head(400).to_arrow()
    chunks = chunks_of(touched, *COLUMNS)
    assert trace.fallbacks == []
    assert trace.pages_decoded == sum(len(chunk.pages_with(250, 650)) for chunk in chunks)


def test_open_file_reads_its_footer_once() -> None:
    with fs.open(counting(small_file())) as opened, fs.trace() as trace:
        opened.scan().head(3).to_arrow()
        opened.scan().tail(3).to_arrow()
    assert trace.footer_bytes == 0
    assert trace.data_bytes > 0


def test_plan_and_explain_say_what_will_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(large_file())
    chunks = chunks_of(row_groups(large_file()), "left", "right")
    pages = [page for chunk in chunks[:2] for page in chunk.pages_with(100, 140)]
    scan = fs.scan(path).select("right", "left").skip(100).head(40)
    with fs.trace() as planning:
        plan, text = scan.plan(), scan.explain()
    with fs.trace() as reading:
        scan.to_arrow()
    assert planning.data_bytes == 0
    assert (plan.rows.kept, plan.rows.total) == (40, ROWS)
    assert (plan.block_count.kept, plan.block_count.total) == (1, 2)
    assert plan.pages.kept == len(pages)
    assert plan.pages.total == sum(len(chunk.pages) for chunk in chunks[:2])
    assert plan.bytes.kept == reading.data_bytes == size_of(page.span for page in pages)
    assert plan.bytes.total == size_of(chunk.span for chunk in chunks)
    assert plan.dropped == {"window": 1}
    assert fs.scan(path).filter(fs.blocks(1, 2)).plan().dropped == {"block predicate": 1}
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert str(path) in lines["scan"]
    assert "right, left" in lines["columns"]
    assert "40 of 1,000" in lines["rows"]
    assert "1 of 2" in lines["blocks"]
    assert f"{plan.pages.kept} of {plan.pages.total}" in lines["pages"]


def two_columns(layout: str) -> tuple[bytes, int]:
    """Two columns in no order, and how many pages or strides they have together."""
    numbers = np.random.default_rng(3).integers(0, 1000, 4000)
    table = pa.table({"a": numbers, "b": numbers % 7})
    if layout == "strides":
        data = orc_blocks(table, [2500, 1500], by_pyarrow, row_index_stride=1000)
        return data, 2 * (3 + 2)
    small: dict[str, Any] = {"data_page_size": 1000, "write_batch_size": 100}
    indexed = layout == "page index"
    data = parquet_blocks(
        table, [2500, 1500], write_page_index=indexed, use_dictionary=False, **small
    )
    return data, sum(len(chunk.pages) for chunk in chunks_of(row_groups(data), "a", "b"))


@pytest.mark.parametrize("layout", ["page index", "no page index", "strides"])
def test_planned_pages_are_those_of_the_predicate_too(layout: str) -> None:
    data, pages = two_columns(layout)
    text = fs.scan(data).select("b").filter("a > 200").explain(run=True)
    *_, (_, planned, actual) = (line.split() for line in text.splitlines() if "pages  " in line)
    assert int(planned) == int(actual) == pages
    proven = fs.scan(data).select("b").filter("a >= 0").explain(run=True)
    *_, (_, planned, actual) = (line.split() for line in proven.splitlines() if "pages  " in line)
    assert int(planned) == int(actual) == pages // 2


def test_nested_traces_both_count() -> None:
    scan = fs.scan(small_file())
    with fs.trace() as outer:
        scan.head(1).to_arrow()
        with fs.trace() as inner:
            scan.tail(1).to_arrow()
        assert outer.log[-inner.requests :] == inner.log
        assert outer.requests > inner.requests > 0
        assert outer.pages_decoded == 2 * inner.pages_decoded == 2 * len(COLUMNS)
        before = inner.bytes_read
        scan.to_arrow()
    assert inner.bytes_read == before
    total = outer.bytes_read
    scan.to_arrow()
    assert outer.bytes_read == total


def test_trace_does_not_see_other_threads() -> None:
    scan = fs.scan(small_file())
    with fs.trace() as trace:
        thread = threading.Thread(target=scan.to_arrow)
        thread.start()
        thread.join()
    assert trace.requests == trace.pages_decoded == trace.rows_decoded == 0


def test_traces_of_threads_at_work_together_do_not_mix() -> None:
    with traced(small_file()) as (scan, alone):
        scan.skip(10).to_arrow()
    decoded: list[int] = []

    def work() -> None:
        for _ in range(10):
            with traced(small_file()) as (scan, trace):
                scan.skip(10).to_arrow()
            decoded.append(trace.pages_decoded)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert decoded == [alone.pages_decoded] * 40
