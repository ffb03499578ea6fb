"""Options of the command for files that differ, and for those that cannot be read."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.commands import Run


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for at, kind in enumerate((pa.int32(), pa.int64())):
        folder = tmp_path / f"code=0{at}"
        folder.mkdir()
        table = pa.table({"n": pa.array([at, 10 + at], kind), "s": ["x", "y"]})
        pq.write_table(table, folder / "file.parquet")
    return tmp_path


def rows(run: Run, *arguments: object) -> list[dict[str, Any]]:
    ran = run("select", *arguments, "--format", "json", "-q")
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_types_and_folders(run: Run, lake: Path) -> None:
    refused = run("select", lake, "--format", "json")
    assert refused.code == 1
    assert "SchemaMismatch" in refused.err or "widen" in refused.err
    found = rows(run, lake, "--types", "widen", "--drop", "s")
    assert found == [
        {"n": 0, "code": 0},
        {"n": 10, "code": 0},
        {"n": 1, "code": 1},
        {"n": 11, "code": 1},
    ]
    named = rows(run, lake, "--types", "widen", "--no-hive", "--rename", "n=number", "--tail", 1)
    assert named == [{"number": 11, "s": "y"}]
    assert run("count", lake, "--types", "widen", "--where", "n > 9").out.strip() == b"2"


def test_places_can_be_tested(run: Run, lake: Path) -> None:
    options = ("--types", "widen", "--columns", "n", "--with-row-index", "--with-file-path")
    found = rows(run, lake, *options, "--where", "index >= 1", "--where", "index < 3")
    assert [(row["index"], row["n"]) for row in found] == [(1, 10), (2, 1)]
    path = lake / "code=01" / "file.parquet"
    assert [row["n"] for row in rows(run, lake, *options, "--where", f"path = '{path}'")] == [1, 11]


def test_corrupt_files_are_left_out_and_said_to_be(run: Run, lake: Path) -> None:
    path = lake / "code=00" / "file.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    assert run("count", lake).code == 1
    ran = run("count", lake, "--on-corrupt", "skip")
    assert (ran.code, ran.out.strip()) == (0, b"2")
    assert str(path) in ran.err
    assert "skipped" in ran.err


def test_mistakes(run: Run, lake: Path) -> None:
    for wrong in (["--rename", "n"], ["--rename", "=m"], ["--drop", ""], ["--drop", "m"]):
        ran = run("select", lake, "--types", "widen", *wrong)
        assert ran.code != 0
        assert ran.err
