"""Written files are complete or absent, in directories too, and need little memory."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.results.write.files import write_file
from fretsaw.results.write.formats import FORMATS
from fretsaw.results.write.places import staged_directory
from tests.support.written_files import BATCH, ROWS, write_parts

# Complete or absent


class Stopped(BaseException):
    """Not an error: a request to stop."""


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, OSError, pa.ArrowInvalid])
@pytest.mark.parametrize("format", FORMATS)
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, format: str, error: type[BaseException]
) -> None:
    seen: list[str] = []

    def failing() -> Iterator[pa.RecordBatch]:
        yield from [BATCH] * 3
        seen.extend(sorted(os.listdir(tmp_path)))
        raise error("stop")

    path = tmp_path / "out"
    for before in (None, b"what was there"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises((error, fs.FretsawError), match="stop"):
            write_file(failing(), BATCH.schema, path, format)
        assert os.listdir(tmp_path) == ([] if before is None else ["out"])
    assert path.read_bytes() == b"what was there"
    assert seen[0].startswith(".out.")
    assert len(seen) == 3


def test_a_damaged_input_leaves_nothing(tmp_path: Path, parts: list[Path]) -> None:
    good, bad = parts[0], tmp_path / "bad.parquet"
    data = bytearray(parts[1].read_bytes())
    data[4:2_000] = bytes(1_996)
    bad.write_bytes(data)
    with pytest.raises(fs.FileFormatError):
        fs.scan([good, bad]).write(tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["bad.parquet"]


def test_a_complete_file_takes_the_place_of_the_old_one(tmp_path: Path, parts: list[Path]) -> None:
    path, link = tmp_path / "real.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path.name)
    reader = open(path)  # noqa: SIM115
    fs.scan(parts).select("id").head(1).write(link, overwrite=True)
    assert reader.read() == "old"
    reader.close()
    assert link.is_symlink()
    assert path.read_text() == '"id"\n"0"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    fs.scan(parts).select("id").write(tmp_path / "new.csv")
    (tmp_path / "plain").touch()
    assert (tmp_path / "new.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_names_may_be_long_and_strange(tmp_path: Path, parts: list[Path]) -> None:
    for name in ("漢" * 83 + ".csv", "a" * 251 + ".csv", "with space and % [x].csv", "~.csv"):
        assert fs.scan(parts).select("id").write(tmp_path / name) == ROWS
        assert os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()


ENDLESS = """
import sys
import numpy as np
import pyarrow as pa
from fretsaw.results.write.files import write_file
from fretsaw.results.write.places import staged_directory

batch = pa.record_batch({"n": np.random.default_rng(1).integers(0, 2**62, 200_000)})

def endless():
    while True:
        yield batch

path, format, whole = sys.argv[1:]
if whole == "directory":
    with staged_directory(path) as staging:
        assert isinstance(staging, str)
        write_file(iter([batch]), batch.schema, staging + "/part-0", format)
        write_file(endless(), batch.schema, staging + "/part-1", format)
else:
    write_file(endless(), batch.schema, path, format)
"""


@pytest.mark.parametrize(
    ("format", "whole"),
    [
        ("parquet", "file"),
        ("parquet", "directory"),
        pytest.param("orc", "file", marks=pytest.mark.slow),
    ],
)
def test_a_killed_process_leaves_nothing_that_is_read(
    tmp_path: Path, format: str, whole: str
) -> None:
    folder = tmp_path / "lake"
    write_parts(folder, pa.table({"n": range(10)}))
    command = [sys.executable, "-c", ENDLESS, str(folder / "out"), format, whole]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_bytes(process, folder)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert hidden_bytes(folder) >= 5_000_000
    assert not (folder / "out").exists()
    assert fs.scan(folder).select("n").to_arrow()["n"].to_pylist() == list(range(10))


def wait_for_bytes(process: subprocess.Popen[str], folder: Path) -> None:
    """Until the process has written some of its file."""
    for _ in range(6_000):
        if hidden_bytes(folder) >= 5_000_000:
            return
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    raise AssertionError("nothing is being written")


def hidden_bytes(folder: Path) -> int:
    """Bytes below a directory in what is hidden."""
    found = 0
    for path in folder.rglob("*"):
        if any(name.startswith(".") for name in path.relative_to(folder).parts):
            try:
                found += path.stat().st_size
            except FileNotFoundError:
                continue
    return found


@pytest.mark.slow
def test_an_interrupted_process_cleans_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "out"), "parquet", "file"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_bytes(process, tmp_path)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert not list(tmp_path.iterdir())


# Directories


def test_a_directory_is_there_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    with staged_directory(path) as staging:
        assert isinstance(staging, str)
        write_file(iter([BATCH]), BATCH.schema, Path(staging) / "part-0.parquet", "parquet")
        assert os.path.dirname(staging) == str(tmp_path)
        assert os.path.basename(staging).startswith(".parts.")
        assert not path.exists()
        with pytest.raises(fs.SourceNotFoundError):
            fs.scan(tmp_path).count()
    assert os.listdir(tmp_path) == ["parts"]
    assert fs.scan(path).count() == 100_000


def test_an_empty_directory_may_be_there_already(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    path.mkdir()
    with staged_directory(path) as staging:
        assert isinstance(staging, str)
        Path(staging, "part").touch()
    assert os.listdir(path) == ["part"]


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt, OSError])
def test_a_directory_is_absent_after_a_failure(tmp_path: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        with staged_directory(tmp_path / "parts") as staging:
            assert isinstance(staging, str)
            Path(staging, "below").mkdir()
            Path(staging, "below", "part").touch()
            raise error

    with pytest.raises(error):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    path.mkdir()
    (path / "mine").touch()
    with pytest.raises(ValueError, match="there are files in it already"), staged_directory(path):
        raise AssertionError("no work is to be done")
    with pytest.raises(ValueError, match="is a file"), staged_directory(path / "mine"):
        raise AssertionError("no work is to be done")
    with pytest.raises(fs.NotWritableError), staged_directory(tmp_path / "no" / "parts"):
        raise AssertionError("no work is to be done")
    assert os.listdir(path) == ["mine"]


# Memory


MEASURE = """
import sys
import numpy as np
import pyarrow as pa
from fretsaw.results.write.files import write_file

path, format, count = sys.argv[1:]
words = pa.array([f"some words, number {number}" for number in range(50_000)])
batch = pa.record_batch({"n": np.arange(50_000), "x": np.arange(50_000) / 7, "s": words})
rows = write_file((batch for _ in range(int(count))), batch.schema, path, format)
status = open("/proc/self/status").read()
print(rows, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_large_result_needs_no_more_memory(tmp_path: Path, format: str) -> None:
    peaks = []
    for count in (60, 150):  # 170 MB and 420 MB
        command = [sys.executable, "-c", MEASURE, str(tmp_path / "out"), format, str(count)]
        rows, megabytes = map(int, subprocess.check_output(command, text=True).split())
        assert rows == 50_000 * count
        peaks.append(megabytes)
    assert peaks[1] <= peaks[0] + 80, peaks


@pytest.mark.parametrize("format", ["json", "csv"])
def test_times_that_have_no_text_are_refused(format: str, tmp_path: Path) -> None:
    far = pa.table({"t": pa.array([0, 2**62], pa.timestamp("us"))})
    pq.write_table(far, tmp_path / "far.parquet")
    with pytest.raises(fs.NotWritableError, match="column 't' holds a time that has no text"):
        fs.scan(tmp_path / "far.parquet").write(tmp_path / "out", format)
    assert not (tmp_path / "out").exists()


def test_what_a_killed_writer_left_is_not_published(tmp_path: Path) -> None:
    with staged_directory(tmp_path / "out") as staging:
        assert isinstance(staging, str)
        Path(staging, "part-0").write_text("whole")
        Path(staging, ".part-1.tmp").write_text("hal")
    assert os.listdir(tmp_path / "out") == ["part-0"]


def test_a_glob_with_braces_finds_its_own_output(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    scan = fs.scan(f"{tmp_path}/{{a,b}}.parquet")
    with pytest.raises(fs.NotWritableError, match=r"b\.parquet"):
        scan.write(tmp_path / "b.parquet")
    assert scan.write(tmp_path / "c.parquet") == 1


def test_a_glob_through_a_link_finds_its_own_output(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "real" / "a.parquet")
    scan = fs.scan(f"{tmp_path}/link/*.parquet")
    for folder in ("link", "real"):
        with pytest.raises(fs.NotWritableError, match="would be found"):
            scan.write(tmp_path / folder / "b.parquet")
