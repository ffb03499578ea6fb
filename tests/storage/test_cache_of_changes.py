"""Footers that are kept are never used for a file that has changed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fretsaw as fs
from fretsaw import col
from fretsaw.storage import descriptor
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
from tests.support.pages import assert_same

LONG_AGO = 1_000_000_000 * 10**9


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
