"""Footers that are kept: read once for as long as a file is the same, and never for a new one.

What was read is told by the trace, what is right by pyarrow. `Recent` is held against a list.
"""

import io
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
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
from fretsaw.storage import descriptor, footer_cache
from fretsaw.storage.footer_cache import Recent
from tests.support.pages import assert_same, row_groups

ROWS = 500
LONG_AGO = 1_000_000_000 * 10**9
MOMENT = 0.03
"""Seconds after which the clock of every file system has moved on."""
TRAILER = 8
"""Bytes that say where a footer begins."""
COMPARED = 4_096
"""Bytes at the end of a file that tell whether a footer that is kept is still in it."""


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled as soon as they are written."""
    monkeypatch.setattr(descriptor, "SETTLED_NS", 0)


settled = pytest.mark.usefixtures("_settled")


def table_of(first: int = 0, rows: int = ROWS) -> pa.Table:
    """Tables of as many rows become files of as many bytes."""
    numbers = np.arange(first, first + rows)
    table = pa.table({"n": numbers, "text": [f"row {number:07}" for number in numbers]})
    return table.replace_schema_metadata({"origin": f"{first:07}"})


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    layout = {"row_group_size": 200, "write_page_index": True, "compression": "none"}
    pq.write_table(table, sink, **layout | options)
    return sink.getvalue()


def saved(path: Path, table: pa.Table, **options: Any) -> Path:
    path.write_bytes(written(table, **options))
    return path


def read(*sources: Any, **options: Any) -> tuple[pa.Table, fs.Trace]:
    """What a scan gives, and what it read."""
    with fs.trace() as trace:
        table = fs.scan(list(sources) if len(sources) > 1 else sources[0], **options).to_arrow()
    return table, trace


def is_anew(trace: fs.Trace) -> bool:
    """Whether a footer was looked for: what is kept is only compared, by one small read."""
    lengths = [event.length for event in trace.log if event.why == "footer"]
    return TRAILER in lengths or max(lengths, default=0) > COMPARED


def assert_kept(path: Path, table: pa.Table) -> None:
    found, trace = read(path)
    assert not is_anew(trace)
    assert sum(event.why == "footer" for event in trace.log) == 1
    assert trace.data_bytes > 0
    assert_same(found, table)


def assert_read_anew(path: Path, table: pa.Table) -> None:
    found, trace = read(path)
    assert is_anew(trace)
    assert_same(found, table)


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


USES: dict[str, Callable[[fs.Scan], Any]] = {
    "schema": lambda scan: (scan.schema, scan.schema.metadata),
    "count": lambda scan: scan.count(),
    "window": lambda scan: scan.skip(150).head(100).to_arrow(),
    "tail": lambda scan: scan.tail(7).to_arrow(),
    "take": lambda scan: scan.take([400, 3, 3]),
    "filter": lambda scan: scan.filter((col("n") > 190) & (col("n") < 210)).to_arrow(),
    "other filter": lambda scan: scan.filter(col("text") == "row 0000333").to_arrow(),
    "row index": lambda scan: scan.select().with_row_index().tail(3).to_arrow(),
    "plan": lambda scan: scan.filter(col("n") < 20).plan().blocks,
    "batches": lambda scan: list(scan.batches(batch_size=90)),
}


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
def test_files_of_a_folder_are_kept(tmp_path: Path) -> None:
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
    third, trace = read(tmp_path)
    assert third["n"].equals(pa.concat_tables(tables)["n"])
    anew = {event.path for event in trace.log if event.length == TRAILER}
    assert anew == {str(path)}


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


# Files that change


def replaced(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


def replaced_with_its_times(path: Path, data: bytes) -> None:
    before = path.stat()
    replaced(path, data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def rewritten(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def rewritten_with_its_times(path: Path, data: bytes) -> None:
    before = path.stat()
    rewritten(path, data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def deleted_and_written(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


CHANGES = (
    replaced,
    replaced_with_its_times,
    rewritten,
    rewritten_with_its_times,
    deleted_and_written,
)
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@each_change
@pytest.mark.parametrize("same_size", [True, False])
@settled
def test_a_changed_file_is_read_anew(
    tmp_path: Path, change: Callable[[Path, bytes], None], same_size: bool
) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    assert_kept(path, table_of())
    for turn in range(1, 4):
        time.sleep(MOMENT)
        table = table_of(1_000 * turn, ROWS if same_size else ROWS + 100 * turn)
        size = path.stat().st_size
        change(path, written(table))
        assert (path.stat().st_size == size) == same_size
        assert_read_anew(path, table)
        assert_kept(path, table)


@each_change
def test_a_file_that_changes_within_a_moment_is_read_anew(
    tmp_path: Path, change: Callable[[Path, bytes], None]
) -> None:
    """As often as one can: times alone would not tell the versions apart."""
    path = saved(tmp_path / "a.parquet", table_of())
    for turn in range(60):
        table = table_of(1_000 * turn)
        change(path, written(table))
        found, trace = read(path)
        assert found["n"].equals(table["n"])
        assert is_anew(trace)


@each_change
def test_a_scan_made_before_a_change_reads_the_new_file(
    tmp_path: Path, change: Callable[[Path, bytes], None]
) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    scan = fs.scan(path).filter(col("n") >= 0)
    scan.to_arrow()
    change(path, written(table_of(3_000, 700)))
    assert scan.to_arrow()["n"].to_pylist() == list(range(3_000, 3_700))
    assert scan.count() == 700


def test_young_files_are_not_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    for _ in range(2):
        assert_read_anew(path, table_of())
    # The content may be as old as it likes: the change of times is young.
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    for _ in range(2):
        assert_read_anew(path, table_of())
    ahead = time.time_ns() + 3_600 * 10**9
    os.utime(path, ns=(ahead, ahead))
    for _ in range(2):
        assert_read_anew(path, table_of())


def test_files_are_kept_once_they_are_not_young_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    for _ in range(2):
        assert_read_anew(path, table_of())
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + descriptor.SETTLED_NS)
    assert_read_anew(path, table_of())
    assert_kept(path, table_of())


@settled
def test_other_names_and_rights_may_be_read_anew_but_stay_right(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    moved = path.rename(tmp_path / "b.parquet")
    with pytest.raises(fs.SourceNotFoundError):
        read(path)
    assert_same(read(moved)[0], table_of())
    moved.chmod(0o600)
    assert_same(read(moved)[0], table_of())
    os.link(moved, path)
    assert_same(read(path)[0], table_of())


@settled
def test_a_deleted_file_is_not_found(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    scan = fs.scan(path)
    scan.to_arrow()
    path.unlink()
    for use in (scan.to_arrow, scan.count, lambda: scan.schema, lambda: fs.scan(path).plan()):
        with pytest.raises(fs.SourceNotFoundError, match=r"a\.parquet"):
            use()


@settled
def test_a_file_that_became_a_folder_is_not_read_as_a_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    path.unlink()
    path.mkdir()
    saved(path / "b.parquet", table_of(9_000))
    assert read(path)[0]["n"].equals(table_of(9_000)["n"])


@settled
@pytest.mark.parametrize("cut", [1, 8, 100, 4_000])
def test_a_truncated_file_is_a_format_error(tmp_path: Path, cut: int) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    time.sleep(MOMENT)
    before = path.stat()
    os.truncate(path, before.st_size - cut)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    for name in ("window", "count", "schema", "filter"):
        with pytest.raises(fs.FileFormatError, match=r"a\.parquet"):
            USES[name](fs.scan(path))
    path.write_bytes(written(table_of(1_000)))
    assert_same(read(path)[0], table_of(1_000))


@settled
def test_an_appended_file_is_read_anew(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    read(path)
    time.sleep(MOMENT)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(fs.FileFormatError, match=r"a\.parquet"):
        read(path)
    # As a writer does that appends a row group: new data, then a new footer.
    whole = written(table_of(0, 600), row_group_size=200)
    path.write_bytes(whole)
    assert_same(read(path)[0], table_of(0, 600))


@settled
def test_a_footer_that_was_refused_is_not_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", table_of())
    data = bytearray(path.read_bytes())
    data[-12] ^= 0xFF
    data[-40:-30] = bytes(10)
    path.write_bytes(data[:-9] + data[-8:])
    for _ in range(2):
        with pytest.raises(fs.FileFormatError, match=r"a\.parquet"):
            read(path)
    time.sleep(MOMENT)
    saved(path, table_of(2_000))
    assert_same(read(path)[0], table_of(2_000))


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
