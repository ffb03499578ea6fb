"""The `fretsaw` command, as a shell would use it: rows, tables, directories, plans.

Rows are compared with what the library reads, which other tests compare with other readers.
"""

import io
import json
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.cli import output
from fretsaw.storage import footer_cache
from tests.engine.test_unbelieved import parquet_bounds
from tests.support.commands import COMMAND, MANY, Ran, Run, contents, damage


def values(ran: Ran) -> list[dict[str, Any]]:
    """The rows that were printed as JSON."""
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


# Rows to stdout


def test_csv_is_what_comes_out_of_a_pipe(run: Run, trips: Path) -> None:
    ran = run("select", trips)
    assert ran.code == 0
    assert pyarrow.csv.read_csv(io.BytesIO(ran.out)).equals(fs.scan(trips).to_arrow())
    assert ran.out == run("select", trips, "--format", "csv").out


def test_json_lines_and_arrow_streams_are_the_same_rows(run: Run, trips: Path) -> None:
    expected = fs.scan(trips).to_arrow()
    assert values(run("select", trips, "--format", "json")) == expected.to_pylist()
    ran = run("select", trips, "--format", "arrow")
    assert pa.ipc.open_stream(ran.out).read_all().equals(expected)


@pytest.mark.parametrize("format", ["csv", "json"])
def test_stdout_and_files_have_the_same_bytes(
    run: Run, trips: Path, tmp_path: Path, format: str
) -> None:
    run("select", trips, "--format", format, "--output", tmp_path / "out")
    written = (tmp_path / "out" / f"part-00000.{format}").read_bytes()
    assert run("select", trips, "--format", format).out == written


def test_options_are_those_of_a_scan(run: Run, trips: Path) -> None:
    def rows(*options: object) -> list[dict[str, Any]]:
        return values(run("select", trips, "--format", "json", *options))

    scan = fs.scan(trips)
    matching = scan.filter("fare > 100").filter("city = 'LA'")
    where = ("--where", "fare > 100", "--where", "city = 'LA'")
    assert rows(*where) == matching.to_arrow().to_pylist()
    window = matching.skip(5).head(3).to_arrow().to_pylist()
    assert rows(*where, "--skip", 5, "--head", 3) == window
    assert rows(*where, "--tail", 4) == matching.tail(4).to_arrow().to_pylist()
    named = scan.select("city", "id", "fare").head(2).to_arrow().to_pylist()
    assert rows("--columns", "city, id", "--columns", "fare", "--head", 2) == named
    [row] = rows("--with-row-index", "--with-file-path", "--skip", 7_000, "--head", 1)
    assert (row["index"], row["path"]) == (7_000, str(trips / "1.parquet"))


def test_a_column_that_a_file_lacks_is_null_where_that_is_asked_for(
    run: Run, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2], "b": [3]}), tmp_path / "2.parquet")
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    assert values(run("select", *files, "--format", "json", "--missing", "null")) == [
        {"a": 1, "b": None},
        {"a": 2, "b": 3},
    ]
    assert run("select", *files, "--columns", "a,b").code == 1


def test_indexes_that_lie_are_not_believed_where_that_is_asked_for(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "lying.parquet").write_bytes(parquet_bounds(False))
    asked = (tmp_path, "--where", "x < 2")
    assert run("count", *asked).out == b"0\n"
    assert run("count", *asked, "--no-indexes").out == b"2\n"
    rows = values(run("select", *asked, "--no-indexes", "--format", "json"))
    assert rows == [{"x": 0}, {"x": 1}]
    assert b"indexes are not believed" in run("explain", *asked, "--no-indexes").out


def test_a_result_without_rows_has_its_header(run: Run, trips: Path) -> None:
    assert run("select", trips, "--head", 0).out == b'"id","fare","city"\n'
    assert run("select", trips, "--where", "id < 0", "--format", "json").out == b""


def test_nested_columns_go_to_json_and_csv_says_so(run: Run, tmp_path: Path) -> None:
    rows = [{"n": 1, "home": {"city": "NYC", "tags": ["a", None]}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "nested.parquet")
    assert values(run("select", tmp_path, "--format", "json")) == rows
    ran = run("select", tmp_path)
    assert (ran.code, ran.out) == (1, b"")
    assert "'home'" in ran.err
    assert "JSON" in ran.err


@pytest.mark.parametrize(("command", "window"), [("head", "--head"), ("tail", "--tail")])
def test_the_first_and_last_rows_have_commands(
    run: Run, trips: Path, command: str, window: str
) -> None:
    table = pq.read_table(trips)
    first = 0 if command == "head" else table.num_rows - 10
    rows = values(run(command, trips, "--format", "json"))
    assert rows == table.slice(first, 10).to_pylist()
    options = ("--where", "city = 'LA'", "--columns", "id", "--format", "json")
    assert (
        run(command, trips, "-n", 3, *options).out == run("select", trips, window, 3, *options).out
    )


# Tables


def test_a_table_has_some_rows_and_says_how_many_more_there_are(run: Run, trips: Path) -> None:
    lines = run("select", trips, "--format", "table").out.decode().splitlines()
    assert lines[0].split() == ["id", "fare", "city"]
    assert lines[1].split() == ["int64", "double", "string"]
    assert [line.split()[0] for line in lines[3:-1]] == [str(row) for row in range(40)]
    assert lines[3].split()[:2] == ["0", "null"]
    assert lines[-1].startswith("... and 9,960 more rows")


def test_a_table_of_rows_by_number_has_them_all(run: Run, trips: Path) -> None:
    for window in (("--head", 100), ("--tail", 100)):
        lines = run("select", trips, "--format", "table", *window).out.decode().splitlines()
        assert len(lines) == 3 + 100
    lines = run("select", trips, "--format", "table", "--head", 5_000).out.decode().splitlines()
    assert len(lines) == 3 + 1_000 + 1
    assert lines[-1].startswith("... and 4,000 more rows")


def test_cells_are_one_line_and_harmless(run: Run, tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["red\x1b[31m\nnext line", "x" * 200, None],
            "nested": [{"a": [1, None]}, None, {"a": []}],
            "ns": pa.array([1, None, 3], pa.timestamp("ns")),
            "flag": [True, False, None],
            "bytes": [b"\x00\xff", b"", None],
        }
    )
    pq.write_table(table, tmp_path / "odd.parquet")
    ran = run("select", tmp_path, "--format", "table")
    assert ran.code == 0, ran.err
    assert b"\x1b" not in ran.out
    lines = ran.out.decode().splitlines()
    assert len(lines) == 3 + 3
    assert r"red\x1b[31m\nnext line" in lines[3]
    assert "{a: [1, null]}" in lines[3]
    assert "00 ff" in lines[3]
    assert "x" * 39 + "…" in lines[4]
    assert "false" in lines[4]
    assert "1970-01-01 00:00:00.000000003" in lines[5]


# Terminals


@contextmanager
def terminal(
    *arguments: object, columns: int, stdout: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[bytes]]]:
    """The command on a terminal, at least its stderr, and what is seen there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"},
    )
    os.close(theirs)
    with process:
        yield process, iter(lambda: _read(ours), b"")
    os.close(ours)
    assert process.returncode == 0


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_gets_a_table_with_the_columns_that_fit(tmp_path: Path) -> None:
    table = pa.table({f"column {number}": ["some text"] for number in range(10)})
    pq.write_table(table, tmp_path / "wide.parquet")
    with terminal("select", tmp_path, columns=50) as (_, pieces):
        seen = b"".join(pieces).decode()
    assert "column 3" in seen
    assert "6 more columns: column 4, column 5" in seen
    assert "1 row in " in seen


@pytest.mark.slow
def test_a_terminal_sees_how_far_the_work_is(many: Path) -> None:
    arguments = ("select", many, "--format", "json")
    with terminal(*arguments, columns=120, stdout=subprocess.PIPE) as (process, pieces):
        assert process.stdout is not None
        seen = b""
        while b" rows, " not in seen:  # nobody takes the rows yet, so the work takes its time
            seen += next(pieces)
        assert process.stdout.read().count(b"\n") == MANY
        seen += b"".join(pieces)
    assert b"MB read" in seen
    assert b"1,000,000 rows in " in seen


def test_quiet_is_quiet_on_a_terminal(trips: Path) -> None:
    arguments = ("select", trips, "--quiet")
    with terminal(*arguments, columns=80, stdout=subprocess.DEVNULL) as (_, pieces):
        assert b"".join(pieces) == b""


# Directories


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_directory_holds_the_rows(run: Run, trips: Path, tmp_path: Path, format: str) -> None:
    ran = run(
        "select",
        trips,
        "--where",
        "id = 4 or id > 17",
        "--output",
        tmp_path / "out",
        "--format",
        format,
    )
    assert (ran.code, ran.out) == (0, b"")
    assert os.listdir(tmp_path) == ["out"]
    expected = fs.scan(trips).filter("id = 4 or id > 17").to_arrow()
    assert fs.scan(tmp_path / "out").to_arrow().equals(expected)


def test_large_results_become_several_files(
    run: Run, trips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PART_BYTES", 1)
    assert run("select", trips, "--output", tmp_path / "out").code == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(names) > 1
    assert names[:2] == ["part-00000.parquet", "part-00001.parquet"]
    assert fs.scan(tmp_path / "out").to_arrow().equals(fs.scan(trips).to_arrow())


def test_no_rows_are_a_file_that_has_the_columns(run: Run, trips: Path, tmp_path: Path) -> None:
    assert run("select", trips, "--where", "id < 0", "--output", tmp_path / "out").code == 0
    found = fs.scan(tmp_path / "out")
    assert found.count() == 0
    assert found.schema.names == ["id", "fare", "city"]


def test_a_directory_with_files_in_it_is_left_alone(run: Run, trips: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert run("select", trips, "--output", tmp_path / "out").code == 0
    before = contents(tmp_path)
    ran = run("select", trips, "--head", 1, "--output", tmp_path / "out")
    assert ran.code == 1
    assert "there are files in it already" in ran.err
    assert contents(tmp_path) == before


def test_inputs_are_never_touched(run: Run, trips: Path) -> None:
    before = contents(trips)
    for place in (trips, trips / "out", trips / "0.parquet"):
        ran = run("select", trips, "--output", place)
        assert ran.code == 1
        assert ran.err.startswith(f"fretsaw: {place}: ")
    assert contents(trips) == before


def test_a_job_that_fails_leaves_nothing(run: Run, trips: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("0.parquet", "1.parquet"):
        (tmp_path / "in" / name).write_bytes((trips / name).read_bytes())
    damage(tmp_path / "in" / "1.parquet")
    ran = run("select", tmp_path / "in", "--output", tmp_path / "out")
    assert ran.code == 1
    assert "1.parquet" in ran.err
    assert os.listdir(tmp_path) == ["in"]


# Counts and plans


def test_count_prints_a_number(run: Run, trips: Path) -> None:
    assert run("count", trips).out == b"10000\n"
    matching = fs.scan(trips).filter("fare > 100").count()
    assert run("count", trips, "--where", "fare > 100").out == b"%d\n" % matching
    assert run("count", trips, "--where", "fare > 100", "--head", 7).out == b"7\n"


def test_explain_prints_the_plan(run: Run, trips: Path) -> None:
    options = ("--where", "id > 9990", "--columns", "id")
    scan = fs.scan(trips).filter("id > 9990").select("id")
    planned = run("explain", trips, *options).out.decode()
    footer_cache.clear()
    assert planned == scan.explain() + "\n"
    text = run("explain", trips, *options, "--run").out.decode()
    assert "planned" in text
    assert "actual" in text
