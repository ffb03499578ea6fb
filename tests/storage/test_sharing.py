"""Files, file objects and scans that several threads and results use at once.

The moments in which they could meet are made long: reads are slow, and seeks are apart from reads.
What is right is told by the table that was written.
"""

import io
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import even, written

each_format = pytest.mark.parametrize("writer", ["parquet", "orc"])
ROWS = 4_000


def table_of(number: int) -> pa.Table:
    """Tables of other numbers have other values in files of as many bytes."""
    rows = np.arange(ROWS) + 1_000_000 * (number + 1)
    return pa.table({"n": rows, "text": [f"row {row}" for row in rows]})


def data_of(number: int, writer: str) -> bytes:
    return written(table_of(number), writer, even(ROWS, 500))


def saved(folder: Path, number: int, writer: str) -> Path:
    path = folder / f"{number}.data"
    path.write_bytes(data_of(number, writer))
    return path


@pytest.fixture
def _slow_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the moment in which a read begins and its first byte, others have their turn."""
    read = os.preadv

    def late(*arguments: Any) -> int:
        time.sleep(0.0005)
        return read(*arguments)

    monkeypatch.setattr(os, "preadv", late)


slow_reads = pytest.mark.usefixtures("_slow_reads")


class Slow(io.BytesIO):
    """A file object that others can reach between a seek and the read behind it."""

    __slots__ = ()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        position = super().seek(offset, whence)
        time.sleep(0.0005)
        return position


class Unhashable(Slow):
    """One that is equal to others, and that no dictionary takes."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


class Proxy:
    """The least that a file object can be; nothing can refer to it weakly."""

    __slots__ = ("_file",)

    def __init__(self, data: bytes) -> None:
        self._file = Slow(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


def run_at_once(works: Iterable[Callable[[], None]]) -> None:
    """Each on a thread of its own; what one raises is raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def check(scan: fs.Scan, table: pa.Table, turn: int) -> None:
    """One of the ways to read a scan; some let the file rest before they read."""
    first = 37 * turn % (ROWS - 100)
    match turn % 5:
        case 0:
            assert scan.tail(100).to_arrow().equals(table.slice(ROWS - 100))
        case 1:
            rows = np.arange(first, first + 90, 7)
            assert scan.take(rows).equals(table.take(pa.array(rows)))
        case 2:
            assert scan.skip(first).head(80).to_arrow().equals(table.slice(first, 80))
        case 3:
            low = table["n"][first].as_py()
            found = scan.filter((col("n") >= low) & (col("n") < low + 50)).to_arrow()
            assert found.equals(table.slice(first, 50))
        case 4:
            assert pa.Table.from_batches(scan.batches(batch_size=900)).equals(table)


@each_format
@slow_reads
def test_threads_share_an_open_file_while_it_rests_and_others_are_opened(
    writer: str, tmp_path: Path
) -> None:
    paths = [saved(tmp_path, number, writer) for number in range(3)]
    tables = [table_of(number) for number in range(3)]
    with fs.open(paths[0]) as shared:

        def use_shared(worker: int) -> Callable[[], None]:
            def work() -> None:
                for turn in range(12):
                    check(shared.scan(), tables[0], worker + turn)

            return work

        def open_others(worker: int) -> Callable[[], None]:
            def work() -> None:
                for turn in range(12):
                    number = 1 + (worker + turn) % 2
                    with fs.open(paths[number]) as other:
                        check(other.scan(), tables[number], turn)

            return work

        run_at_once([*map(use_shared, range(4)), *map(open_others, range(2))])


@each_format
@slow_reads
def test_threads_share_a_scan_of_several_files(writer: str, tmp_path: Path) -> None:
    paths = [saved(tmp_path, number, writer) for number in range(3)]
    whole = pa.concat_tables([table_of(number) for number in range(3)])
    scan = fs.scan(paths)

    def use(worker: int) -> Callable[[], None]:
        def work() -> None:
            for turn in range(6):
                rows = np.arange(11 * (worker + turn), len(whole), 997)
                assert scan.take(rows).equals(whole.take(pa.array(rows)))
                assert scan.tail(5_000).to_arrow().equals(whole.slice(len(whole) - 5_000))

        return work

    run_at_once(map(use, range(4)))


@each_format
@slow_reads
def test_a_file_is_closed_for_its_user_while_another_thread_still_reads(
    writer: str, tmp_path: Path
) -> None:
    paths = [saved(tmp_path, number, writer) for number in range(2)]
    for _ in range(10):
        shared = fs.open(paths[0])
        streams = [shared.scan().batches(batch_size=300) for _ in range(3)]
        first = [next(stream) for stream in streams]

        def drain(place: int, streams: Any = streams, first: Any = first) -> Callable[[], None]:
            def work() -> None:
                found = pa.Table.from_batches([first[place], *streams[place]])
                assert found.equals(table_of(0))

            return work

        def close(shared: fs.DataFile = shared) -> None:
            shared.close()
            for _ in range(5):
                with fs.open(paths[1]) as other:
                    check(other.scan(), table_of(1), 2)

        run_at_once([*map(drain, range(3)), close])


KINDS = ("path", "bytes", "bytearray", "file", "raw file", "slow", "unhashable", "proxy")


@pytest.fixture(params=[(kind, writer) for kind in KINDS for writer in ("parquet", "orc")], ids=str)
def source(request: Any, tmp_path: Path) -> Iterator[Any]:
    """The first table, as whatever can be scanned."""
    kind, writer = request.param
    data, path = data_of(0, writer), saved(tmp_path, 0, writer)
    with path.open("rb") as file, path.open("rb", buffering=0) as raw:
        yield {
            "path": path,
            "bytes": data,
            "bytearray": bytearray(data),
            "file": file,
            "raw file": raw,
            "slow": Slow(data),
            "unhashable": Unhashable(data),
            "proxy": Proxy(data),
        }[kind]


def test_a_stream_and_a_tail_of_one_scan_at_once(source: Any) -> None:
    """In one thread, and by one open file too: each result has its own rows."""
    table = table_of(0)
    scan = fs.scan(source)
    with fs.open(source) as opened:
        for one in (scan, opened.scan()):
            found = []
            for batch in one.batches(batch_size=700):
                found.append(batch)
                assert one.tail(3).to_arrow().equals(table.slice(ROWS - 3))
                assert opened.scan().head(2).to_arrow().equals(table.slice(0, 2))
            assert pa.Table.from_batches(found).equals(table)


def test_scans_splits_and_open_files_of_one_source_on_threads(source: Any) -> None:
    table = table_of(0)
    shared = fs.scan(source)

    def scan_shared() -> None:
        for turn in range(5):
            check(shared, table, turn)

    def scan_anew() -> None:
        for turn in range(5):
            check(fs.scan(source), table, turn)

    def scan_splits() -> None:
        parts = [split.to_arrow() for split in fs.scan(source).splits(target_bytes=8_000)]
        assert pa.concat_tables(parts).equals(table)

    def open_it() -> None:
        with fs.open(source) as opened:
            for turn in range(5):
                check(opened.scan(), table, turn)

    run_at_once([scan_shared, scan_anew, scan_splits, open_it, scan_shared])


def test_descriptors_are_closed_with_their_last_reader(tmp_path: Path) -> None:
    path = saved(tmp_path, 0, "parquet")
    opened = path.open("rb")
    before = len(os.listdir("/proc/self/fd"))
    for source in (path, opened):
        stream = fs.scan(source).batches(batch_size=100)
        next(stream)
        with fs.open(source) as file:
            check(file.scan(), table_of(0), 1)
        fs.scan(source).tail(3).to_arrow()
        del stream, file
        assert len(os.listdir("/proc/self/fd")) == before
    assert not opened.closed
    opened.close()


# What cannot be read from


@pytest.mark.parametrize("use", [fs.open, lambda source: fs.scan(source).count()])
def test_a_file_object_that_cannot_be_read_is_told_so(use: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, 0, "parquet")
    closed, closed_bytes = path.open("rb"), io.BytesIO(data_of(0, "parquet"))
    closed.close()
    closed_bytes.close()
    for source in (closed, closed_bytes):
        with pytest.raises(fs.FretsawError, match="is closed"):
            use(source)
    for text in (path.open(encoding="latin-1"), io.StringIO("text")):
        with text, pytest.raises(fs.FretsawError, match='as text; open it with mode "rb"'):
            use(text)
    with (tmp_path / "new").open("wb") as file, pytest.raises(fs.FretsawError, match="for reading"):
        use(file)
    reading, writing = os.pipe()
    unseekable = pytest.raises(fs.FretsawError, match="cannot seek")
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb"), unseekable:
        use(pipe)


def test_a_file_object_closed_between_two_reads_is_told_so() -> None:
    source = io.BytesIO(data_of(0, "parquet"))
    with fs.open(source) as file:
        source.close()
        with pytest.raises(fs.FretsawError, match="is closed"):
            file.scan().to_arrow()


# What is handed out


@each_format
def test_metadata_cannot_be_written_to(writer: str, tmp_path: Path) -> None:
    table = table_of(0).replace_schema_metadata({"mine": "yes"})
    path = tmp_path / "a.data"
    path.write_bytes(written(table, writer, [ROWS]))
    with fs.open(path) as file:
        before = dict(file.metadata)
        with pytest.raises(TypeError):
            file.metadata[b"mine"] = b"no"  # type: ignore[index]
        assert dict(file.metadata) == before
        selection = file.prune(col("n") > 0)
        for array in (selection.starts, selection.ends):
            assert not array.flags.writeable
        with pytest.raises(AttributeError):
            file.blocks[0].num_rows = 3  # type: ignore[misc]
