"""The `fretsaw` command, as a shell would use it: rows, messages, exit codes, what is left behind.

Rows are compared with what the library reads, which other tests compare with other readers.
"""

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.cli import main, output
from fretsaw.storage import footer_cache
from tests.engine.test_unbelieved import parquet_bounds

ROWS, MANY = 10_000, 1_000_000
COMMAND = [sys.executable, "-m", "fretsaw.cli"]


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: bytes
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsysbinary: Any) -> Run:
    """Runs the command in this process."""

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        written = capsysbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, written.out, written.err.decode())

    return run


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of two files."""
    folder = tmp_path_factory.mktemp("trips")
    table = pa.table(
        {
            "id": range(ROWS),
            "fare": [None if row % 7 == 0 else row / 4 for row in range(ROWS)],
            "city": [("NYC", "LA", 'a "quoted", name')[row % 3] for row in range(ROWS)],
        }
    )
    for number in range(2):
        part = table.slice(number * ROWS // 2, ROWS // 2)
        path = folder / f"{number}.parquet"
        pq.write_table(part, path, row_group_size=1_000, write_page_index=True)
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with more rows than anybody waits for: as text, they take seconds."""
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    pq.write_table(pa.table({name: np.arange(MANY) for name in "abc"}), path)
    return path


def values(ran: Ran) -> list[dict[str, Any]]:
    """The rows that were printed as JSON."""
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


# Rows to stdout ---------------------------------------------------------------------------------


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


# Tables -----------------------------------------------------------------------------------------


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


# Terminals --------------------------------------------------------------------------------------


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


# Directories ------------------------------------------------------------------------------------


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


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def damage(path: Path) -> None:
    """Overwrite the header of the first page."""
    data = bytearray(path.read_bytes())
    data[4:24] = b"\xff" * 20
    path.write_bytes(data)


# Counts and plans -------------------------------------------------------------------------------


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


# What is said -----------------------------------------------------------------------------------


def test_a_summary_goes_to_stderr(run: Run, trips: Path) -> None:
    ran = run("select", trips, "--where", "id >= 9990")
    footer_cache.clear()
    with fs.trace() as traced:
        scan = fs.scan(trips).filter("id >= 9990")
        assert scan.schema.names
        assert list(scan.batches())
    [line] = ran.err.splitlines()
    assert line.startswith("10 rows in ")
    assert f" in {traced.requests} requests; left out 9 blocks by statistics" in line
    assert run("select", trips, "--quiet").err == ""
    assert run("count", trips, "-q").err == ""
    assert run("count", trips).err.startswith("10,000 rows in ")


MISTAKES = [
    (1, ["select", "{trips}", "--where", "fare >< 3"], "fare >< 3"),
    (1, ["select", "{trips}", "--where", "fares > 3"], "did you mean 'fare'"),
    (1, ["select", "{trips}", "--where", "fare > 'x'"], "cannot be converted"),
    (1, ["select", "{trips}", "--columns", "fares"], "did you mean 'fare'"),
    (1, ["select", "{trips}/none.parquet"], "none.parquet: no such file"),
    (1, ["count", "{trips}/*.orc"], "no Parquet or ORC file"),
    (1, ["select", "{trips}", "--output", "{trips}/no/where"], "no such directory"),
    (1, ["explain", "s3://bucket/key"], "not supported"),
    (2, ["select", "{trips}", "--format", "parquet"], "--output"),
    (2, ["select", "{trips}", "--format", "table", "--output", "x"], "--output"),
    (2, ["select", "{trips}", "--format", "xml"], "xml"),
    (2, ["select", "{trips}", "--tail", "1", "--skip", "1"], "--tail excludes"),
    (2, ["count", "{trips}", "--head", "-1"], "--head"),
    (2, ["count", "{trips}", "--master", "local"], "--engine spark"),
    (2, ["select"], "SOURCES"),
    (2, ["selct", "{trips}"], "selct"),
]


@pytest.mark.parametrize(("code", "arguments", "message"), MISTAKES)
def test_mistakes_are_told_in_a_few_words(
    run: Run, trips: Path, code: int, arguments: list[str], message: str
) -> None:
    ran = run(*(argument.format(trips=trips) for argument in arguments))
    assert (ran.code, ran.out) == (code, b"")
    assert message in ran.err
    assert "Traceback" not in ran.err
    if code == 1:
        first, *place = ran.err.splitlines()
        assert first.startswith("fretsaw: ")
        assert not place or place[-1].strip() == "^"  # points into the condition


def test_damaged_files_are_named(run: Run, trips: Path, tmp_path: Path) -> None:
    whole = (trips / "0.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    (tmp_path / "page.parquet").write_bytes(whole)
    damage(tmp_path / "page.parquet")
    (tmp_path / "text.parquet").write_text("this is no Parquet file")
    for name in ("cut", "page", "text"):
        ran = run("select", tmp_path / f"{name}.parquet", "--format", "json")
        assert ran.code == 1
        [line] = ran.err.splitlines()
        assert f"{name}.parquet" in line


def test_help_and_version(run: Run) -> None:
    assert b"select" in run("--help").out
    assert b"--where" in run("select", "-h").out
    assert run("--version").out.decode() == f"fretsaw {fs.__version__}\n"
    assert run().code == 2


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'pandas', 'polars', 'pyspark', 'sqlglot', 'pyarrow.parquet', 'rich.progress'}"
    code = (
        "import sys\nfrom fretsaw.cli import main\n"
        "try: main(['--help'])\n"
        f"except SystemExit: print({heavy} & set(sys.modules) or 'none')"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert shown.splitlines()[-1] == "none"


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [("typer", "'--help'", "cli"), ("py4j", "'count', '.', '--engine', 'spark'", "spark")],
)
def test_what_is_not_installed_is_named(module: str, arguments: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        f"from fretsaw.cli import main; main([{arguments}])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 1
    [line] = ran.stderr.splitlines()
    assert module in line
    assert f": pip install 'fretsaw[{extra}]'" in line


# Pipes, signals, full disks ---------------------------------------------------------------------


def started(*arguments: object) -> subprocess.Popen[bytes]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("format", ["csv", "json", "arrow"])
def test_a_closed_pipe_ends_it_quietly(many: Path, format: str) -> None:
    process = started("select", many, "--format", format)
    assert process.stdout is not None
    assert process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 128 + signal.SIGPIPE


def test_a_full_disk_is_told(many: Path) -> None:
    for arguments in (["select", str(many), "--format", "csv"], ["count", str(many)]):
        with open("/dev/full", "wb") as full:
            ran = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE)
        assert (ran.returncode, ran.stderr) == (1, b"fretsaw: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_stream(many: Path, number: signal.Signals) -> None:
    process = started("select", many, "--format", "json")
    assert process.stdout is not None
    assert process.stdout.read(10)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 128 + number
    assert err in (b"fretsaw: interrupted\n", b"fretsaw: stopped\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_job_that_is_stopped_leaves_no_result(
    many: Path, tmp_path: Path, number: signal.Signals
) -> None:
    process = started("select", many, "--format", "json", "--output", tmp_path / "out")
    deadline = time.monotonic() + 30
    while not any(tmp_path.rglob("*.tmp/.*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert b"Traceback" not in err
    left = os.listdir(tmp_path)
    if number == signal.SIGKILL:
        assert all(name.startswith(".out.") for name in left)
        with pytest.raises(fs.SourceNotFoundError):
            fs.scan(tmp_path).count()
    else:
        assert left == []
    # What was left does not stand in the way.
    again = subprocess.run([*COMMAND, "select", many, "--head", "1", "--output", tmp_path / "out"])
    assert again.returncode == 0
    assert fs.scan(tmp_path / "out").count() == 1


# Spark ------------------------------------------------------------------------------------------

ON_SPARK = ("--engine", "spark")


@pytest.mark.spark
@pytest.mark.parametrize("format", ["csv", "json", "arrow"])
def test_spark_gives_the_same_rows(run: Run, spark: Any, trips: Path, format: str) -> None:
    for options in (
        (),
        ("--where", "fare > 100 and city = 'LA'", "--skip", 5, "--head", 100),
        ("--columns", "city,id", "--tail", 6_000, "--with-row-index", "--with-file-path"),
        ("--where", "id < 0"),
    ):
        here = run("select", trips, "--format", format, *options)
        there = run("select", trips, "--format", format, *options, *ON_SPARK)
        assert there.code == 0, there.err
        if format == "arrow":  # batches may be cut elsewhere
            tables = [pa.ipc.open_stream(ran.out).read_all() for ran in (here, there)]
            assert tables[0].equals(tables[1])
        else:
            assert there.out == here.out


@pytest.mark.spark
def test_spark_counts_shows_and_explains(run: Run, spark: Any, trips: Path) -> None:
    where = ("--where", "fare > 100")
    expected = fs.scan(trips).filter("fare > 100").count()
    ran = run("count", trips, *where, *ON_SPARK)
    assert ran.out == b"%d\n" % expected
    assert ran.err.startswith(f"{expected:,} rows in ")
    table = run("select", trips, *where, "--format", "table")
    assert run("select", trips, *where, "--format", "table", *ON_SPARK).out == table.out
    text = run("explain", trips, *where, "--run", *ON_SPARK).out.decode()
    assert "filter  col('fare') > 100" in text
    assert f"on Spark: {expected:,} rows in " in text


@pytest.mark.spark
def test_spark_writes_directories(run: Run, spark: Any, trips: Path, tmp_path: Path) -> None:
    ran = run("select", trips, "--where", "id > 17", "--output", tmp_path / "out", *ON_SPARK)
    assert (ran.code, ran.out) == (0, b"")
    assert "9,982 rows in " in ran.err
    assert os.listdir(tmp_path) == ["out"]
    expected = fs.scan(trips).filter("id > 17").to_arrow()
    assert fs.scan(tmp_path / "out").to_arrow().equals(expected)
    before = contents(tmp_path) | contents(trips)
    for place in (tmp_path / "out", trips, trips / "out"):
        assert run("select", trips, "--output", place, *ON_SPARK).code == 1
    assert contents(tmp_path) | contents(trips) == before


@pytest.mark.spark
def test_spark_tells_mistakes_in_a_line(run: Run, spark: Any, trips: Path, tmp_path: Path) -> None:
    (tmp_path / "0.parquet").write_bytes((trips / "0.parquet").read_bytes())
    damage(tmp_path / "0.parquet")
    for arguments, message in (
        ((tmp_path,), "0.parquet"),
        ((tmp_path, "--output", tmp_path.with_name("out")), "0.parquet"),
        ((trips, "--columns", "fares"), "did you mean 'fare'"),
        ((trips / "none",), "no such file"),
    ):
        ran = run("select", *arguments, *ON_SPARK)
        assert (ran.code, len(ran.err.splitlines())) == (1, 1), ran.err
        assert message in ran.err
    assert not tmp_path.with_name("out").exists()


@pytest.mark.spark
def test_a_session_of_its_own_is_quiet(spark: Any, trips: Path, tmp_path: Path) -> None:
    (tmp_path / "0.parquet").write_bytes((trips / "0.parquet").read_bytes())
    damage(tmp_path / "0.parquet")
    command = [*COMMAND, "select", str(tmp_path), *ON_SPARK, "--master", "local[1]"]
    environment = {key: os.environ[key] for key in os.environ if not key.startswith("PYSPARK_")}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 1
    [line] = ran.stderr.splitlines()
    assert line.startswith("fretsaw: ")
    assert "0.parquet" in line


@pytest.mark.spark
def test_spark_submit_runs_the_same_command(spark: Any, trips: Path) -> None:
    submit = Path(sys.modules["pyspark"].__file__ or "").parent / "bin" / "spark-submit"
    script = Path(output.__file__).parent / "__main__.py"
    environment = {key: os.environ[key] for key in os.environ if key != "PYSPARK_GATEWAY_PORT"}
    ran = subprocess.run(
        [submit, "--master", "local[1]", script, "count", trips, "--where", "id >= 9000"],
        capture_output=True,
        env=environment | {"PYSPARK_PYTHON": sys.executable},
    )
    # Nothing but the number: spark-submit sends what goes to stderr to stdout, too.
    assert (ran.returncode, ran.stdout) == (0, b"1000\n"), ran.stderr.decode()
