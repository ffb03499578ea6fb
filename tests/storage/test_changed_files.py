"""Files that change between two looks at them: an error that says so, never rows of both.

A file may be replaced while it rests, rewritten under an open descriptor, changed between plan and
task, or written through a mapping that moves no times. The rule itself is the oracle: all rows are
those of one version, or there is a `StorageError`.
"""

import mmap
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from fretsaw.storage import descriptor, footer_cache, local, source
from tests.support.formats import even, written

each_format = pytest.mark.parametrize("writer", ["parquet", "orc"])
ROWS = 2_000
MOMENT = 0.02
"""Seconds after which the clock of every file system has moved on."""


def table_of(first: int, rows: int = ROWS) -> pa.Table:
    numbers = np.arange(first, first + rows)
    return pa.table({"n": numbers, "text": [f"row {number:07}" for number in numbers]})


def data_of(first: int, writer: str, rows: int = ROWS) -> bytes:
    codec = {"parquet": "none"}.get(writer, "uncompressed")
    return written(table_of(first, rows), writer, even(rows, 500), compression=codec)


def replaced(path: Path, data: bytes) -> None:
    other = path.with_name("_other")
    other.write_bytes(data)
    os.replace(other, path)


def replaced_with_its_times(path: Path, data: bytes) -> None:
    before = path.stat()
    replaced(path, data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def rewritten(path: Path, data: bytes) -> None:
    time.sleep(MOMENT)
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


CHANGES = (replaced, replaced_with_its_times, rewritten)
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
changed = pytest.raises(fs.StorageError, match=r"\d\.data: the file changed .*; ")


READS: dict[str, Callable[[fs.Scan], Any]] = {
    "tail": lambda scan: scan.tail(3 * ROWS - 1).to_arrow(),
    "take": lambda scan: scan.take([5, 2 * ROWS + 5]),
    "numbered tail": lambda scan: scan.with_row_index().filter(col("n") >= 0).tail(9).to_arrow(),
    "stream": lambda scan: list(scan.select_rows([5, 3 * ROWS - 1]).batches()),
}


@each_format
@each_change
@pytest.mark.parametrize("read", READS)
def test_a_file_of_a_scan_that_changes_at_rest_is_not_read_on(
    tmp_path: Path,
    writer: str,
    change: Callable[[Path, bytes], None],
    read: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever looks for the place of a row lets files rest, and reads each in its turn."""
    paths = [tmp_path / f"{number}.data" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(data_of(10_000 * number, writer))
    rested: list[str] = []
    rest = local.LocalFile.rest

    def rest_and_change(source: local.LocalFile) -> None:
        rest(source)
        rested.append(source.name)
        if len(rested) == len(paths):
            change(paths[2], data_of(70_000, writer))

    monkeypatch.setattr(local.LocalFile, "rest", rest_and_change)
    with changed:
        READS[read](fs.scan(paths))
    assert len(set(rested)) == 3


@each_format
@each_change
@pytest.mark.parametrize("rows", [ROWS, ROWS + 500])
def test_an_open_file_that_changes_at_rest_is_not_read_on(
    tmp_path: Path, writer: str, change: Callable[[Path, bytes], None], rows: int
) -> None:
    path = tmp_path / "0.data"
    path.write_bytes(data_of(0, writer))
    with fs.open(path) as file:
        assert file.scan().tail(ROWS).count() == ROWS  # lets the file rest
        change(path, data_of(80_000, writer, rows))
        for _ in range(2):
            with changed:
                file.scan().to_arrow()
    assert fs.scan(path).to_arrow().equals(table_of(80_000, rows))


@each_format
def test_a_file_that_is_replaced_under_its_reader_is_read_to_its_end(
    tmp_path: Path, writer: str
) -> None:
    """The descriptor is that of the old file, all of which is still there."""
    path = tmp_path / "0.data"
    path.write_bytes(data_of(0, writer))
    with fs.open(path) as file:
        replaced(path, data_of(50_000, writer))
        assert file.scan().to_arrow().equals(table_of(0))
        assert file.scan().filter(col("n") == 700).count() == 1


@each_format
def test_a_file_that_is_rewritten_under_its_reader_has_changed(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "0.data"
    for data in (data_of(50_000, writer), data_of(50_000, writer, ROWS + 700), b""):
        path.write_bytes(data_of(0, writer))
        with fs.open(path) as file, path.open("rb") as user_file, fs.open(user_file) as by_object:
            rewritten(path, data)
            for opened in (file, by_object):
                for scan in (opened.scan(), opened.scan().tail(3), opened.scan().select_rows([7])):
                    with changed:
                        scan.to_arrow()


@each_format
@each_change
@pytest.mark.parametrize("travels", [True, False])
def test_splits_read_the_file_that_was_planned_or_none(
    tmp_path: Path, writer: str, change: Callable[[Path, bytes], None], travels: bool
) -> None:
    paths = [tmp_path / f"{number}.data" for number in range(2)]
    for number, path in enumerate(paths):
        path.write_bytes(data_of(10_000 * number, writer))
    splits = fs.scan(paths).with_row_index().splits(target_bytes=10_000)
    assert len(splits) > 2
    if travels:
        splits = pickle.loads(pickle.dumps(splits))
    parts = [split.to_arrow() for split in splits]
    assert pa.concat_tables(parts)["n"].to_pylist() == [*range(ROWS), *range(10_000, 12_000)]
    change(paths[1], data_of(60_000, writer))
    for split, part in zip(splits, parts, strict=True):
        if part["n"][0].as_py() < ROWS:
            assert split.to_arrow().equals(part)
            continue
        for use in (split.to_arrow, split.count, lambda split=split: split.schema):
            with changed:
                use()
        with changed:
            split.splits()


@each_format
def test_splits_of_another_machine_know_a_file_by_size_and_time(
    tmp_path: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is shared, its numbers are not."""
    path = tmp_path / "0.data"
    path.write_bytes(data_of(0, writer))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(source, "machine_name", lambda: "another one")
        elsewhere.setattr(os, "fstat", _renumbered(os.fstat))
        splits = fs.scan(path).splits()
    assert pa.concat_tables([split.to_arrow() for split in splits]).equals(table_of(0))
    rewritten(path, data_of(60_000, writer))
    with changed:
        splits[0].to_arrow()


def _renumbered(fstat: Callable[[int], os.stat_result]) -> Callable[[int], Any]:
    class Renumbered:
        def __init__(self, number: int) -> None:
            self._status = fstat(number)
            self.st_dev, self.st_ino, self.st_ctime_ns = 1, 2, 3

        def __getattr__(self, name: str) -> Any:
            return getattr(self._status, name)

    return Renumbered


def test_a_removed_file_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "0.data"
    path.write_bytes(data_of(0, "parquet"))
    (split,) = fs.scan(path).splits()
    path.unlink()
    with pytest.raises(fs.SourceNotFoundError, match=r"0\.data"):
        split.to_arrow()


@each_format
def test_a_stream_has_the_columns_of_the_rows_in_it(tmp_path: Path, writer: str) -> None:
    """A reader's schema and its batches are of one version of the file."""
    path = tmp_path / "0.data"
    path.write_bytes(data_of(0, writer))
    reader = fs.scan(path).to_reader()
    replaced(path, written(pa.table({"n": ["other"] * 9}), writer, [9]))
    assert reader.read_all().equals(table_of(0))


# Through a mapping


def rewrite_mapped(path: Path, data: bytes) -> None:
    """Write through a mapping, and leave no trace in the times, as some file systems do."""
    before = path.stat()
    assert before.st_size == len(data)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = data
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@each_format
def test_a_footer_is_not_believed_once_the_file_is_rewritten_through_a_mapping(
    tmp_path: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptor, "SETTLED_NS", 0)
    status = os.fstat

    def without_changed(number: int) -> Any:
        found = status(number)
        times = {"st_mtime_ns": found.st_mtime_ns, "st_ctime_ns": 0}
        return os.stat_result(tuple(found), times)

    monkeypatch.setattr(os, "fstat", without_changed)
    footer_cache.clear()
    path = tmp_path / "0.data"
    path.write_bytes(data_of(2_000_000, writer))
    for low in (2_000_000, 2_010_000, 2_020_000):
        # The first scan keeps the footer, the second finds it.
        for _ in range(2):
            found = fs.scan(path).filter(col("n") >= low + 1_900).to_arrow()
            assert found.equals(table_of(low).slice(1_900))
        rewrite_mapped(path, data_of(low + 10_000, writer))


def test_what_is_kept_costs_one_small_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptor, "SETTLED_NS", 0)
    path = tmp_path / "0.data"
    table = pa.table({f"column {number}": range(100) for number in range(200)})
    path.write_bytes(written(table, "parquet", even(100, 10)))
    fs.scan(path).count()
    with fs.trace() as trace:
        assert fs.scan(path).count() == 100
    ((_, offset, length, why),) = trace.log
    assert (offset + length, why) == (path.stat().st_size, "footer")
    assert length <= 4_096
