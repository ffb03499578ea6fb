"""Windows across many files: rows against lists, work against the trace."""

import gc
import os
import pickle
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
import fretsaw.cache
from tests.support.file_lists import column, part, paths_of, put
from tests.support.formats import TURNS, writer_of
from tests.support.pages import assert_same

FILES = 2_000
ROWS_PER_FILE = 5
PAGES = 100 * 4 * 2


# Windows across files


every_turn = st.sampled_from(sorted(TURNS))

file_sizes = st.lists(st.integers(0, 12), min_size=1, max_size=6)


@pytest.mark.slow
@given(every_turn, file_sizes, st.sampled_from([1, 3, 5]), st.data())
def test_scans_across_files_agree_with_lists(
    turns: str, sizes: list[int], group: int, data: st.DataObject
) -> None:
    sources: list[Any] = [
        part(at, size, group, writer_of(turns, at)) for at, size in enumerate(sizes)
    ]
    scan = fs.scan(sources).with_row_index()
    local = [(at, row) for at, size in enumerate(sizes) for row in range(size)]
    rows = [(index, 100 * at + row) for index, (at, row) in enumerate(local)]
    if data.draw(st.booleans(), "blocks"):
        # Of each file by itself.
        start = data.draw(st.integers(0, 4))
        end = data.draw(st.integers(start, 4))
        scan = scan.filter(fs.blocks(start, end))
        rows = [r for r, (_, row) in zip(rows, local, strict=True) if start <= row // group < end]
    if bool(local) and data.draw(st.booleans(), "select rows"):
        chosen = data.draw(st.lists(st.integers(0, len(local) - 1)))
        scan = scan.select_rows(chosen)
        rows = [row for row in rows if row[0] in set(chosen)]
    count = st.integers(0, len(local) + 2)
    match data.draw(st.sampled_from(["none", "window", "skip", "tail"])):
        case "window":
            skip, head = data.draw(count), data.draw(count)
            scan, rows = scan.head(head).skip(skip), rows[skip : skip + head]
        case "skip":
            skip = data.draw(count)
            scan, rows = scan.skip(skip), rows[skip:]
        case "tail":
            tail = data.draw(count)
            scan, rows = scan.tail(tail), rows[len(rows) - tail :] if tail < len(rows) else rows
    expected = {"index": [row[0] for row in rows], "id": [row[1] for row in rows]}
    assert scan.to_arrow().to_pydict() == expected
    assert scan.count() == len(rows)
    streamed = pa.Table.from_batches(scan.batches(3), scan.schema)
    assert streamed.to_pydict() == expected


@pytest.mark.slow
@given(every_turn, file_sizes, st.data())
def test_take_across_files_agrees_with_lists(
    turns: str, sizes: list[int], data: st.DataObject
) -> None:
    scan = fs.scan([part(at, size, 5, writer_of(turns, at)) for at, size in enumerate(sizes)])
    ids = [100 * at + row for at, size in enumerate(sizes) for row in range(size)]
    rows = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=8)) if ids else []
    assert scan.take(rows)["id"].to_pylist() == [ids[row] for row in rows]
    with pytest.raises((IndexError, ValueError)):
        scan.take([*rows, len(ids)])
    with pytest.raises((IndexError, ValueError)):
        scan.select_rows([*rows, len(ids)]).to_arrow()


def test_selections_across_files_may_be_shorter_but_not_longer(tree: Path) -> None:
    shorter = fs.RowSelection.from_indices([1, 2, 5], 6)
    assert column(fs.scan(tree).select_rows(shorter)) == [1, 10, 21]
    with pytest.raises(ValueError, match=r"1[01]"):
        fs.scan(tree).select_rows(fs.RowSelection.all(11)).to_arrow()


@pytest.mark.parametrize("writer", ["parquet", "orc", "pyorc"])
def test_byte_ranges_apply_to_each_file_by_itself(writer: str) -> None:
    data = part(0, 12, 5, writer)
    cuts = range(0, len(data), 10)
    kept = [fs.scan([data] * 2).filter(fs.byte_range(0, cut)).count() for cut in cuts]
    assert kept == sorted(kept)
    assert set(kept) == {0, 10, 20, 24}


@pytest.mark.parametrize("target", [1, 300, 10**9])
def test_splits_of_several_files_partition_the_scan(lake: Path, turns: str, target: int) -> None:
    put(lake / "year=2024" / "city=NYC" / "3.parquet", [], writer_of(turns, 0))
    whole = fs.scan(lake).with_row_index().with_file_path()
    for scan in (whole, whole.select("city", "n"), whole.filter(fs.blocks(0, 1)).select("year")):
        splits = [pickle.loads(pickle.dumps(each)) for each in scan.splits(target_bytes=target)]
        parts = [split.to_arrow() for split in splits]
        together = pa.concat_tables(parts).sort_by("index")
        assert_same(together, scan.to_arrow())
        assert sum(split.count() for split in splits) == scan.count()
    assert len(whole.splits(target_bytes=1)) >= 8


# How much work


@pytest.fixture(scope="session")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 files, the same one by many names."""
    root = tmp_path_factory.mktemp("many")
    first = put(root / "00000.parquet", list(range(ROWS_PER_FILE)))
    for at in range(1, FILES):
        os.link(first, root / f"{at:05}.parquet")
    return root


def name_at(root: Path, ordinal: int, digits: int = 5) -> str:
    return str(root / f"{ordinal:0{digits}}.parquet")


def test_head_of_many_files_opens_a_handful(small_files: Path) -> None:
    with fs.trace() as trace:
        assert column(fs.scan(small_files).head(10)) == [*range(5), *range(5)]
    assert len(paths_of(trace)) <= 5
    assert paths_of(trace, "data") == [name_at(small_files, 0), name_at(small_files, 1)]
    with fs.trace() as trace:
        assert fs.scan(small_files).schema.names == ["n"]
    assert len(paths_of(trace)) <= 5


def test_footers_of_many_files_are_read_at_one_go(tmp_path: Path) -> None:
    """All but the first, whose length nobody knows; little else is read along."""
    paths = [put(tmp_path / f"{at}.parquet", list(range(at, at + 5))) for at in range(30)]
    needed = sum(8 + pq.read_metadata(path).serialized_size for path in paths)
    for scan in (fs.scan(tmp_path), fs.scan(tmp_path).filter(fs.col("n") > 100)):
        fretsaw.cache.clear()
        with fs.trace() as trace:
            scan.count()
        assert trace.requests == len(paths) + 1
        assert needed <= trace.bytes_read <= needed + 64 * len(paths)


@pytest.mark.parametrize("longer", [7, 500])
def test_footers_of_other_lengths_are_read_whole(tmp_path: Path, longer: int) -> None:
    for at in range(6):
        note = {"note": "x" * longer * (at % 3)}
        put(tmp_path / f"{at}.parquet", pa.table({"n": [at]}).replace_schema_metadata(note))
    with fs.trace() as trace:
        assert column(fs.scan(tmp_path).filter(fs.col("n") != 3)) == [0, 1, 2, 4, 5]
    footers = [read for read in trace.log if read.why == "footer"]
    places = [(read.path, read.offset + n) for read in footers for n in range(read.length)]
    assert len(places) == len(set(places))  # nothing is read twice


def test_files_are_judged_by_their_own_statistics(tmp_path: Path) -> None:
    """Some at once, of files with one schema, two, and two conditions."""
    rng = np.random.default_rng(5)
    values = [sorted(rng.integers(0, 1_000, 4).tolist()) for _ in range(200)]
    for at, numbers in enumerate(values):
        names = ["n", "other"] if at % 50 == 7 else ["n"]
        table = pa.table({name: pa.array(numbers, pa.int64()) for name in names})
        put(tmp_path / f"{at:03}.parquet", table)
    for low in (0, 300, 990):
        expected = [n for numbers in values for n in numbers if low <= n < low + 20]
        scan = fs.scan(tmp_path).select("n").filter(fs.col("n").is_between(low, low + 19))
        with fs.trace() as trace:
            assert column(scan) == expected
        hit = {at for at, own in enumerate(values) if own[0] < low + 20 and own[-1] >= low}
        read = {name_at(tmp_path, at, 3) for at in hit}
        assert set(paths_of(trace, "data")) == read
        assert scan.count() == len(expected)


def test_count_of_many_files_reads_only_footers(small_files: Path) -> None:
    with fs.trace() as trace:
        assert fs.scan(small_files).count() == FILES * ROWS_PER_FILE
    assert {read.why for read in trace.log} == {"footer"}
    assert len(paths_of(trace)) == FILES
    assert trace.pages_decoded == 0


def test_tail_of_many_files_opens_only_those_at_the_end(small_files: Path) -> None:
    with fs.trace() as trace:
        assert column(fs.scan(small_files).tail(7)) == [3, 4, *range(5)]
    assert paths_of(trace, "data") == [name_at(small_files, at) for at in (FILES - 2, FILES - 1)]
    # The first file says what the columns are and their order; nothing but its footer is read.
    last = {name_at(small_files, at) for at in range(FILES - 5, FILES)}
    assert set(paths_of(trace)) <= last | {name_at(small_files, 0)}


def test_windows_count_files_before_them_and_never_open_those_behind(small_files: Path) -> None:
    with fs.trace() as trace:
        assert column(fs.scan(small_files).skip(501).head(7)) == [1, 2, 3, 4, 0, 1, 2]
    assert paths_of(trace, "data") == [name_at(small_files, 100), name_at(small_files, 101)]
    assert max(paths_of(trace)) == name_at(small_files, 101)
    before = [read for read in trace.log if read.path < name_at(small_files, 100)]
    assert {read.why for read in before} == {"footer"}


@pytest.mark.slow
def test_rows_of_many_files_come_from_their_files_only(small_files: Path) -> None:
    rows = [9_999, 3, 5_002]
    wanted = [name_at(small_files, at) for at in (0, 1_000, 1_999)]
    with fs.trace() as trace:
        assert fs.scan(small_files).take(rows)["n"].to_pylist() == [4, 3, 2]
    assert paths_of(trace, "data") == wanted
    with fs.trace() as trace:
        assert column(fs.scan(small_files).select_rows(rows)) == [3, 2, 4]
    assert paths_of(trace, "data") == wanted


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """The process may open a hundred files more than it has."""
    gc.collect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


OPENING: dict[str, Callable[[fs.Scan], Any]] = {
    "whole": lambda scan: scan.to_arrow(),
    "stream": lambda scan: [batch.num_rows for batch in scan.batches()],
    "one batch": lambda scan: next(scan.batches()),
    "count": lambda scan: scan.count(),
    "window": lambda scan: scan.skip(700).head(1_200).to_arrow(),
    "tail": lambda scan: scan.tail(1_800).to_arrow(),
    "select_rows": lambda scan: scan.select_rows(range(0, 2_500, 4)).to_arrow(),
    "take": lambda scan: scan.take(list(range(2_499, 0, -4))),
    "blocks": lambda scan: scan.filter(fs.blocks(0, 1)).skip(10).to_arrow(),
    "plan": lambda scan: scan.skip(10).plan(),
    "splits": lambda scan: scan.splits(),
}


@pytest.mark.slow
@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("use", OPENING.values(), ids=OPENING.keys())
def test_open_files_do_not_grow_with_the_files_of_a_scan(
    use: Callable[[fs.Scan], Any], small_files: Path
) -> None:
    before = open_files()
    use(fs.scan([name_at(small_files, at) for at in range(500)]))
    gc.collect()
    assert open_files() <= before + 1


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 row groups of four pages for each of two columns."""
    values = np.random.default_rng(21).normal(size=2_000_000)
    path = tmp_path_factory.mktemp("large") / "data.parquet"
    layout = {"row_group_size": 20_000, "max_rows_per_page": 5_000, "use_dictionary": False}
    pq.write_table(pa.table({"x": values, "y": -values}), path, compression="none", **layout)
    return path


def assert_at_rest(trace: fs.Trace) -> None:
    """What was under way ends soon, and then nothing more is read or decoded."""
    deadline = time.monotonic() + 10
    seen = None
    while seen != (trace.requests, trace.pages_decoded):
        assert time.monotonic() < deadline
        seen = (trace.requests, trace.pages_decoded)
        time.sleep(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 20])
@pytest.mark.parametrize("closing_it", [True, False], ids=["closed", "dropped"])
def test_closing_a_stream_early_stops_the_work(
    large_file: Path, files: int, closing_it: bool
) -> None:
    scan = fs.scan([large_file] * files)
    streams: list[Callable[[], Any]] = [scan.batches, lambda: scan.batches(100), scan.to_reader]
    for stream in streams:
        with fs.trace() as trace:
            batches = stream()
            assert next(iter(batches)).num_rows > 0
            if closing_it:
                batches.close()
            else:
                del batches
                gc.collect()
            assert_at_rest(trace)
        assert 0 < trace.pages_decoded < PAGES / 4
        assert trace.data_bytes < large_file.stat().st_size / 4
