"""Footers that are kept: read once for as long as a file is the same.

What was read is told by the trace, what is right by pyarrow. `Recent` is held against a list.
"""

import io
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from fretsaw.storage import footer_cache
from fretsaw.storage.footer_cache import Recent
from tests.support.footers import (
    MOMENT,
    ROWS,
    USES,
    assert_kept,
    assert_read_anew,
    is_anew,
    read,
    saved,
    settled,
    table_of,
    written,
)
from tests.support.pages import assert_same, row_groups


def footer_size(path: Path) -> int:
    size: int = pq.read_metadata(path).serialized_size
    return size


# What is kept


@settled
def test_the_second_scan_of_a_file_reads_no_footer(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    first, before = read(path)
    assert before.footer_bytes >= footer_size(path)
    for _ in range(3):
        second, trace = read(path)
        assert not is_anew(trace)
        logs = ([e for e in log if e.why != "footer"] for log in (trace.log, before.log))
        assert sorted(next(logs)) == sorted(next(logs))
        assert_same(second, first)
        assert second.schema.metadata == first.schema.metadata == {b"origin": b"0000000"}
    assert_same(second, table_of())


@settled
def test_scans_of_every_kind_share_what_is_kept(tmp_path: Path) -> None:
    """In any order: what one asks of the footer does not change what another gets."""
    path = saved(tmp_path / "a.parquet", table_of())
    expected = {}
    for name, use in USES.items():
        footer_cache.clear()
        expected[name] = use(fs.scan(path))
    rng = np.random.default_rng(1)
    for _ in range(5):
        footer_cache.clear()
        fs.scan(path).head(0).to_arrow()
        with fs.trace() as trace:
            for name in rng.permutation(list(USES)).tolist():
                assert USES[name](fs.scan(path)) == expected[name], name
        assert not is_anew(trace)


@settled
def test_open_files_share_what_is_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    with fs.trace() as trace, fs.open(path) as file:
        assert file.num_rows == ROWS
        assert file.metadata[b"origin"] == b"0000000"
        assert [block.num_rows for block in file.blocks] == [200, 200, 100]
        assert_same(file.scan().to_arrow(), table_of())
    assert not is_anew(trace)


@settled
def test_files_of_a_folder_are_kept(tmp_path: Path, monkeypatch: Any) -> None:
    tables = [table_of(1_000 * number) for number in range(5)]
    for number, table in enumerate(tables):
        saved(tmp_path / f"{number}.parquet", table)
    whole = pa.concat_tables(tables)
    for source in (tmp_path, str(tmp_path / "*.parquet"), sorted(tmp_path.iterdir())):
        footer_cache.clear()
        first, before = read(source)
        second, trace = read(source)
        assert is_anew(before)
        assert not is_anew(trace)
        assert first["n"].equals(whole["n"])
        assert second.equals(first)
    # One of them is new, the others are as they were.
    time.sleep(MOMENT)
    tables[2] = table_of(7_000)
    path = saved(tmp_path / "2.parquet", tables[2])
    anew: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(footer_cache.FOOTERS, "put", lambda *given: anew.append(given))
        third, _ = read(tmp_path)
    assert third["n"].equals(pa.concat_tables(tables)["n"])
    assert [key[0] for key, _, _ in anew] == [str(path)]


@settled
def test_files_are_told_apart_by_their_paths(tmp_path: Path, monkeypatch: Any) -> None:
    for name, first in (("a", 0), ("b", 5_000)):
        (tmp_path / name).mkdir()
        saved(tmp_path / name / "same.parquet", table_of(first))
    for name, first in (("a", 0), ("b", 5_000), ("a", 0), ("b", 5_000)):
        monkeypatch.chdir(tmp_path / name)
        found, _ = read("same.parquet")
        assert_same(found, table_of(first))
    link = tmp_path / "link.parquet"
    link.symlink_to(tmp_path / "a" / "same.parquet")
    assert_same(read(link)[0], table_of(0))
    link.unlink()
    link.symlink_to(tmp_path / "b" / "same.parquet")
    assert_same(read(link)[0], table_of(5_000))


@settled
def test_what_is_in_memory_is_never_kept() -> None:
    for first in (0, 5_000, 0):
        data = written(table_of(first))
        for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
            for _ in range(2):
                found, trace = read(source)
                assert is_anew(trace)
                assert_same(found, table_of(first))


@settled
def test_file_objects_are_never_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    for _ in range(2):
        with path.open("rb") as file:
            found, trace = read(file)
        assert is_anew(trace)
        assert_same(found, table_of())


@settled
def test_bytes_that_change_in_place_are_read_anew() -> None:
    data = bytearray(written(table_of(0)))
    assert_same(read(data)[0], table_of(0))
    data[:] = written(table_of(5_000))
    assert_same(read(data)[0], table_of(5_000))


@settled
def test_pickled_scans_work_with_and_without_what_is_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    scan = fs.scan(path).filter(col("n") >= 490)
    fresh = pickle.dumps(scan)
    assert_same(scan.to_arrow(), table_of(490, 10).replace_schema_metadata(scan.schema.metadata))
    used = pickle.dumps(scan)
    for stored in (fresh, used):
        for forget in (False, True):
            if forget:
                footer_cache.clear()
            with fs.trace() as trace:
                assert pickle.loads(stored).to_arrow().equals(scan.to_arrow())
            assert is_anew(trace) == forget
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).to_arrow()['n'].to_pylist())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=used, capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().strip() == str(list(range(490, 500)))


@settled
def test_threads_scan_the_same_files_at_once(tmp_path: Path) -> None:
    tables = [table_of(1_000 * number) for number in range(4)]
    paths = [saved(tmp_path / f"{n}.parquet", table) for n, table in enumerate(tables)]
    workers = 8
    together = threading.Barrier(workers)
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            together.wait()
            for turn in range(24):
                number = (worker * 5 + turn) % 4
                if turn % 6 == worker:
                    footer_cache.clear()
                scan = fs.scan(paths[number])
                assert_same(scan.to_arrow(), tables[number])
                sought = fs.col("n") == 1_000 * number + turn
                assert scan.filter(sought).to_arrow()["n"].to_pylist() == [1_000 * number + turn]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


# Read options


@settled
def test_units_of_int96_are_told_apart(tmp_path: Path) -> None:
    times = pa.array(np.arange(ROWS) * 1_234_567_000_000, pa.timestamp("ns"))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": times}), path, use_deprecated_int96_timestamps=True)
    for unit in ("ns", "us", "ms", "us", "ns"):
        expected = pq.read_table(path, coerce_int96_timestamp_unit=unit)
        for _ in range(2):
            found, trace = read(path, int96=unit)
            assert_same(found, expected)
        assert not is_anew(trace)


@settled
def test_scans_that_verify_are_told_from_those_that_do_not(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    layout = {"write_page_checksum": True, "use_dictionary": False}
    data = bytearray(written(table_of(), **layout))
    page = row_groups(bytes(data))[0].chunks[0].pages[0]
    data[page.span.end - 1] ^= 1
    path.write_bytes(data)
    wrong = pq.read_table(path)
    assert not wrong.equals(table_of())
    for _ in range(2):
        assert_same(read(path, verify=False)[0], wrong)
        with pytest.raises(fs.FileFormatError, match=r"a\.parquet"):
            read(path, verify=True)


# The bound


@settled
def test_the_least_recently_used_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {name: table_of(1_000 * place) for place, name in enumerate("abcd")}
    paths = {name: saved(tmp_path / name, table) for name, table in tables.items()}
    monkeypatch.setattr(footer_cache, "FOOTERS", Recent(2 * max(map(footer_size, paths.values()))))

    def is_kept(name: str) -> bool:
        found, trace = read(paths[name])
        assert_same(found, tables[name])
        return not is_anew(trace)

    assert [is_kept(name) for name in "abab"] == [False, False, True, True]
    assert [is_kept(name) for name in "ac"] == [True, False]  # b goes
    assert [is_kept(name) for name in "acb"] == [True, True, False]  # a goes
    assert [is_kept(name) for name in "cba"] == [True, True, False]  # c goes
    assert [is_kept(name) for name in "bad"] == [True, True, False]


@settled
def test_a_footer_larger_than_the_bound_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    monkeypatch.setattr(footer_cache, "FOOTERS", Recent(footer_size(path) - 1))
    for _ in range(3):
        assert_read_anew(path, table_of())
    monkeypatch.setattr(footer_cache, "FOOTERS", Recent(footer_size(path)))
    read(path)
    assert_kept(path, table_of())


@settled
def test_clear_forgets_everything(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"{n}.parquet", table_of(1_000 * n)) for n in range(3)]
    for path in paths:
        read(path)
    footer_cache.clear()
    for number, path in enumerate(paths):
        assert_read_anew(path, table_of(1_000 * number))
        assert_kept(path, table_of(1_000 * number))


uses = st.tuples(st.integers(0, 4), st.integers(1, 4))

steps = st.lists(st.one_of(*[uses] * 9, st.just("clear")), min_size=10, max_size=50)


@pytest.mark.slow
@given(st.integers(3, 12), steps)
@settings(max_examples=300)
def test_recent_keeps_what_was_used_last(most: int, steps: list[Any]) -> None:
    """A list of keys in the order of their use; from its end on, as many as fit."""
    recent: Recent[tuple[int, int]] = Recent(most)
    model: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        if step == "clear":
            recent.clear()
            model.clear()
            continue
        key, size = step
        known = next((pair for pair in model if pair[0] == key), None)
        found = recent.get(key)
        assert (found is None) == (known is None), (number, step)
        if known is not None:
            assert found is not None
            assert found[0] == key
            model.remove(known)
            model.append(known)
        elif size <= most:
            recent.put(key, (key, number), size)
            model.append((key, size))
            while sum(kept for _, kept in model) > most:
                model.pop(0)
        else:
            recent.put(key, (key, number), size)  # too large: drops nothing
    assert {key for key in range(5) if recent.get(key)} == {key for key, _ in model}


def test_recent_counts_a_key_once() -> None:
    recent: Recent[str] = Recent(10)
    recent.put("other", "other", 5)
    for _ in range(5):
        recent.put("key", "value", 5)
    assert recent.get("key") == "value"
    assert recent.get("other") == "other"


def test_recent_may_be_used_by_many_threads() -> None:
    recent: Recent[int] = Recent(50)
    flaws: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for key in rng.integers(0, 30, 3_000).tolist():
                found = recent.get(key)
                if found is None:
                    recent.put(key, key * 7, 5)
                elif found != key * 7:
                    flaws.append((key, found))
        except BaseException as error:
            flaws.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert flaws == []
    assert sum(recent.get(key) is not None for key in range(30)) == 10
