"""The `fretsaw` command on Spark."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import fretsaw as fs
from fretsaw.cli import output
from tests.support.commands import COMMAND, Run, contents, damage

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
