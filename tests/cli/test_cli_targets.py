"""Where the command reads from and writes to: standard input, files by suffix, directories."""

import io
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from tests.support.commands import COMMAND, Run, contents


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_standard_input_is_a_source(tmp_path: Path, format: str) -> None:
    table = pa.table({"id": range(100)})
    sink = io.BytesIO()
    if format == "parquet":
        pq.write_table(table, sink)
    else:
        pyarrow.orc.write_table(table, sink)
    for arguments, expected in (
        (["count", "-"], b"100\n"),
        (["select", "-", "--where", "id > 97", "--format", "json"], b'{"id":98}\n{"id":99}\n'),
        (["tail", "-", "-n", "1", "--format", "json"], b'{"id":99}\n'),
    ):
        ran = subprocess.run([*COMMAND, *arguments], input=sink.getvalue(), capture_output=True)
        assert (ran.returncode, ran.stdout) == (0, expected), ran.stderr


def test_standard_input_is_read_once_and_named(tmp_path: Path) -> None:
    twice = subprocess.run([*COMMAND, "count", "-", "-"], input=b"", capture_output=True)
    assert twice.returncode == 1
    assert b"name - once" in twice.stderr
    wrong = subprocess.run([*COMMAND, "count", "-"], input=b"no such thing", capture_output=True)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith(b"fretsaw: standard input: ")


@pytest.mark.parametrize("suffix", ["parquet", "orc", "arrow", "csv", "jsonl", "csv.gz"])
def test_a_suffix_makes_it_one_file(run: Run, trips: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    assert run("select", trips, "--head", 5, "--output", path).code == 0
    assert path.is_file()
    if suffix == "parquet":
        assert pq.read_table(path)["id"].to_pylist() == [0, 1, 2, 3, 4]
    elif suffix == "orc":
        assert pyarrow.orc.read_table(path)["id"].to_pylist() == [0, 1, 2, 3, 4]
    elif suffix == "csv.gz":
        assert path.read_bytes()[:2] == b"\x1f\x8b"


def test_a_slash_or_no_suffix_makes_it_a_directory(run: Run, trips: Path, tmp_path: Path) -> None:
    for name in ("plain", "x.parquet/"):
        assert run("select", trips, "--head", 5, "--output", f"{tmp_path}/{name}").code == 0
        assert (tmp_path / name / "part-00000.parquet").is_file()


def test_what_is_there_is_replaced_only_when_asked_for(
    run: Run, trips: Path, tmp_path: Path
) -> None:
    for name in ("x.parquet", "folder"):
        asked = ("select", trips, "--output", tmp_path / name)
        assert run(*asked, "--head", 5).code == 0
        before = contents(tmp_path)
        assert run(*asked, "--head", 3).code == 1
        assert contents(tmp_path) == before
        assert run(*asked, "--head", 3, "--overwrite").code == 0
        assert pq.read_table(tmp_path / name).num_rows == 3
    assert run("select", trips, "--overwrite").code == 2


def test_inputs_are_not_overwritten_even_when_asked_for(run: Run, trips: Path) -> None:
    before = contents(trips)
    for place in (trips, trips / "0.parquet"):
        assert run("select", trips / "0.parquet", "--output", place, "--overwrite").code == 1
    assert contents(trips) == before
