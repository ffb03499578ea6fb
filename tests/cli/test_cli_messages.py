"""What the `fretsaw` command says, its exit codes, what it leaves behind."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.storage import footer_cache
from tests.support.commands import COMMAND, Run, damage

# What is said


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
    (1, ["explain", "nonsense://bucket/key"], "no protocol that fsspec knows"),
    (1, ["count", "{trips}", "--storage-option", "nothing"], "aws_region=eu-central-1"),
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


def test_advice_names_options_of_the_command(run: Run, tmp_path: Path) -> None:
    for name, table in (("a", {"n": [1]}), ("b", {"n": [1], "m": [2]})):
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    a, b = tmp_path / "a.parquet", tmp_path / "b.parquet"
    wider = tmp_path / "wider.parquet"
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), wider)
    nested = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"n": [[1]]}), nested)
    for arguments, advice in (
        (("select", b, a, "--columns", "m"), "--missing null"),
        (("select", a, wider), "--types widen"),
        (("select", a, "--output", b), "--overwrite"),
        (("select", nested, "--format", "csv"), "--drop"),
    ):
        ran = run(*arguments)
        assert ran.code == 1
        assert advice in ran.err
        assert not re.search(r"fs\.|\w\(\)|\w=[\"'T]", ran.err), ran.err


@pytest.mark.parametrize("command", ["select", "head", "tail", "count", "explain", "completion"])
def test_help_fits_a_screen_and_has_an_example(run: Run, command: str) -> None:
    lines = run(command, "--help").out.decode().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert any(line.strip().startswith("Example: ") for line in lines)


@pytest.mark.parametrize("module", ["fretsaw", "fretsaw.cli"])
def test_the_command_is_a_module_too(module: str) -> None:
    shown = subprocess.check_output([sys.executable, "-m", module, "--version"], text=True)
    assert shown == f"fretsaw {fs.__version__}\n"


def test_shells_are_told_how_a_line_goes_on(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert b"_FRETSAW_COMPLETE" in run("completion", shell).out
    asked = {"_FRETSAW_COMPLETE": "bash_complete", "COMP_WORDS": "fretsaw sel", "COMP_CWORD": "1"}
    found = subprocess.check_output(COMMAND, env={**os.environ, **asked}, text=True)
    assert found == "plain,select\n"


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
    [("click", "'--help'", "cli"), ("py4j", "'count', '.', '--engine', 'spark'", "spark")],
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


# Pipes, signals, full disks


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
