"""What a session of Spark lacks is told in one line before a job: packages, times, streams."""

import datetime as dt
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs

pytest.importorskip("pyspark")

from fretsaw.spark import register
from fretsaw.spark.types import TIMES_SETTING, SparkTypeError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOON = dt.time(12)

# The package is found by the driver alone: its folder is not on the path that tasks inherit.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession
import fretsaw as fs
from fretsaw.spark import register
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for use in (fs.scan(sys.argv[2]).to_spark, register):
    try:
        use(spark)
    except fs.FretsawError as error:
        print(error)
"""


@pytest.mark.parametrize("lacking", ["packages", "a Python"])
def test_workers_that_cannot_do_the_work_are_found_before_the_job(
    lacking: str, spark: Any, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    if lacking == "packages":
        venv.create(bare, symlinks=True)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    python = str(bare / "bin" / "python")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(Path(fs.__file__).parents[1]), "n.parquet"],
        env={**kept, "PYSPARK_PYTHON": python},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    first, second = ended.stdout.splitlines()
    assert first == second
    assert python in first
    assert f"set PYSPARK_PYTHON={sys.executable} before the session starts" in first
    if lacking == "packages":
        assert "which lacks fretsaw, pyarrow, numpy: " in first


def test_workers_are_asked_once(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    fs.scan(tmp_path).to_spark(spark)
    spark.sparkContext.setJobGroup("asked once", "")
    try:
        fs.scan(tmp_path).to_spark(spark)
        register(spark)
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("asked once")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.fixture
def without_times(spark: Any) -> Iterator[Any]:
    spark.conf.set(TIMES_SETTING, "false")
    register(spark)
    yield spark
    spark.conf.set(TIMES_SETTING, "true")
    register(spark)


COLUMNS = {
    "at": pa.array([NOON], pa.time64("us")),
    "all": pa.array([[NOON]], pa.list_(pa.time32("ms"))),
    "in": pa.array([{"n": 1, "at": NOON}], pa.struct({"n": pa.int64(), "at": pa.time64("ns")})),
}


@pytest.mark.parametrize(("name", "said"), [("at", "at"), ("all", "all.element"), ("in", "in.at")])
def test_a_time_that_a_session_does_without_is_named_and_other_columns_load(
    name: str, said: str, without_times: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "times.parquet")
    pq.write_table(pa.table({"n": [7], name: COLUMNS[name]}), path)
    says = rf"column '{said}' is a TIME, .* set spark.sql.timeType.enabled to true first"
    with pytest.raises(SparkTypeError, match=says):
        fs.scan(path).to_spark(without_times)
    read = without_times.read.format("fretsaw")
    with pytest.raises(Exception, match=says):
        read.load(path).count()
    frames = (
        fs.scan(path).select("n").to_spark(without_times),
        read.schema("n bigint").load(path),
        read.option("columns", "n").load(path),
    )
    for frame in frames:
        assert [tuple(row) for row in frame.collect()] == [(7,)]
        assert frame.count() == 1
    without_times.conf.set(TIMES_SETTING, "true")
    assert fs.scan(path).to_spark(without_times).count() == 1


def test_a_stream_is_refused_in_a_line(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    register(spark)
    frame = spark.readStream.format("fretsaw").load(str(tmp_path))

    def run() -> None:
        frame.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination(60)

    with pytest.raises(Exception, match=r"does not stream: use spark\.read instead") as error:
        run()
    assert "NOT_IMPLEMENTED" not in str(error.value)
