"""Rows are a stream: how much is read for them, for how long, and as Arrow."""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.expected_rows import assert_rows, orders, written
from tests.support.writers import need

# How much is read, and for how long


GROUPS, GROUP_ROWS, PAGE_ROWS = 40, 50_000, 5_000


@cache
def large() -> bytes:
    """Two million rows in 40 row groups and 800 pages of two columns."""
    total = GROUPS * GROUP_ROWS
    table = pa.table({"n": np.arange(total), "x": np.random.default_rng(6).normal(size=total)})
    options = {"max_rows_per_page": PAGE_ROWS, "write_batch_size": PAGE_ROWS}
    return written(
        table, row_group_size=GROUP_ROWS, use_dictionary=False, write_page_index=True, **options
    )


@pytest.mark.parametrize("count", [1, 10, 1_000])
def test_the_first_rows_do_not_decode_the_file(count: int) -> None:
    with fs.trace() as trace:
        rows = fs.scan(large()).rows()
        found = [row["n"] for row in islice(rows, count)]
        del rows
        gc.collect()
    assert found == list(range(count))
    pages = GROUPS * GROUP_ROWS // PAGE_ROWS * 2
    assert 0 < trace.pages_decoded <= pages // 4
    assert 0 < trace.data_bytes <= len(large()) // 2


@pytest.mark.parametrize("count", [1, PAGE_ROWS])
def test_head_decodes_the_pages_of_its_rows_only(count: int) -> None:
    with fs.trace() as trace:
        found = [row["n"] for row in fs.scan(large()).head(count)]
    assert found == list(range(count))
    assert trace.pages_decoded == 2
    with fs.trace() as trace:
        found = [row["n"] for row in fs.scan(large()).select("n").skip(77_777).head(1)]
    assert found == [77_777]
    assert trace.pages_decoded == 1


def test_a_filter_reads_other_columns_where_rows_match() -> None:
    with fs.trace() as trace:
        rows = list(fs.scan(large()).filter(col("n") == 1_234_567))
    assert [row["n"] for row in rows] == [1_234_567]
    assert trace.pages_decoded <= 3


def test_rows_need_as_little_work_as_batches() -> None:
    with fs.trace() as by_batch:
        total = sum(batch.num_rows for batch in fs.scan(large()).skip(77).head(90_000).batches())
    with fs.trace() as by_row:
        assert sum(1 for _ in fs.scan(large()).skip(77).head(90_000)) == total == 90_000
    assert by_row.pages_decoded == by_batch.pages_decoded
    assert by_row.data_bytes == by_batch.data_bytes


def test_no_columns_decode_nothing() -> None:
    with fs.trace() as trace:
        assert sum(1 for _ in fs.scan(large()).select().tail(90_000)) == 90_000
    assert trace.pages_decoded == trace.data_bytes == 0


def test_iterating_twice_gives_the_same_rows() -> None:
    data, whole = orders()
    source = fs.scan(data).filter(col("row") > 5)
    assert_rows(source, whole[6:])
    assert_rows(source, whole[6:])
    one, other = iter(source), source.rows()
    assert next(one) == next(other)
    assert iter(one) is one
    assert next(one) == whole[7]
    assert_rows(other, whole[7:])
    assert_rows(one, whole[8:])
    assert next(one, None) is None


def test_threads_may_have_a_reader_each() -> None:
    data, whole = orders()
    source = fs.scan(data)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: list(source.rows()), range(8)))
    for rows in results:
        assert_rows(rows, whole)


def patiently(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within a few seconds."""
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_abandoned_iterations_leave_no_threads_behind() -> None:
    source = fs.scan(large())
    assert sum(1 for _ in source.head(50_000)) == 50_000
    before = set(threading.enumerate())
    for taken in (0, 1, 10, 6_000) * 3:
        rows = source.rows()
        assert len(list(islice(rows, taken))) == taken
    del rows
    gc.collect()
    # The pool of the process starts its threads one by one, as they are needed.
    assert patiently(lambda: len(set(threading.enumerate()) - before) < pa.cpu_count())


def test_an_abandoned_iteration_ends_quietly_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(large())
    code = "import sys, fretsaw as fs; r = fs.scan(sys.argv[1]).rows(); print(next(r)['n'])"
    command = [sys.executable, "-W", "error", "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "0", "")


PEAK = """
import sys
import fretsaw as fs
rows = sum(len(row["blob"]) > 0 for row in fs.scan(sys.argv[1]))
status = open("/proc/self/status").read()
print(rows, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""

BLOB = 100_000


@pytest.mark.slow
def test_rows_of_a_large_file_need_no_more_memory_than_those_of_a_small_one(tmp_path: Path) -> None:
    peaks = []
    for rows in (600, 6_000):
        path = tmp_path / f"{rows}.parquet"
        kind = pa.schema({"blob": pa.binary()})
        with pq.ParquetWriter(path, kind, compression="zstd", use_dictionary=False) as writer:
            for start in range(0, rows, 100):
                blobs = [bytes([i % 251]) * BLOB for i in range(start, start + 100)]
                writer.write_table(pa.table({"blob": blobs}, schema=kind))
        command = [sys.executable, "-c", PEAK, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
        found, megabytes = map(int, done.stdout.split())
        assert found == rows
        peaks.append(megabytes)
    assert peaks[1] <= peaks[0] + 80, peaks


# Still a stream of Arrow


def interchange() -> Iterator[tuple[str, fs.Scan]]:
    data, _ = orders()
    plain = fs.scan(data).select("row", "text", "at", "items")
    yield "all", plain
    yield "filter", plain.filter(col("text") == "text 2")
    yield "window", plain.skip(45).head(10)
    yield "empty", plain.head(0)


@pytest.mark.parametrize("source", [pytest.param(s, id=name) for name, s in interchange()])
def test_pyarrow_and_polars_take_a_scan_as_a_stream(source: fs.Scan) -> None:
    expected = source.to_arrow()
    assert pa.table(source).equals(expected)
    assert pa.RecordBatchReader.from_stream(source).read_all().equals(expected)
    polars = need("polars")
    frame = polars.DataFrame(source)
    assert frame.equals(source.to_polars())
    assert frame.schema == source.to_polars().schema
    assert frame["row"].to_list() == expected["row"].to_pylist()


@pytest.mark.parametrize("source", [pytest.param(s, id=name) for name, s in interchange()])
def test_duckdb_takes_a_scan_as_a_stream(source: fs.Scan) -> None:
    with need("duckdb").connect() as connection:
        connection.register("source_of_rows", source)
        query = 'SELECT "row", text, len(items) FROM source_of_rows ORDER BY 1'
        found = connection.execute(query).fetchall()
    rows = source.to_arrow().to_pylist()
    counts = [row["items"] if row["items"] is None else len(row["items"]) for row in rows]
    expected = zip(rows, counts, strict=True)
    assert found == [(row["row"], row["text"], count) for row, count in expected]
