"""Programs that drive Spark in a process of their own: a process has only one Spark context.

`spark-submit spark_driver.py PROGRAM ARGUMENT...`; the last argument is where the result goes, in a
pickle. The tests of clusters run them. Nothing of the tests is imported, as it is not on executors.
"""

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

import fretsaw as fs
from fretsaw.spark import pipeline
from fretsaw.spark.pipeline import Job

Batches = Iterator[pa.RecordBatch]

PATIENCE = 240


def context() -> TaskContext:
    found = TaskContext.get()
    assert found is not None
    return found


def rows(spark: SparkSession, requests: str) -> list[Any]:
    """The rows of scans; each comes with whether it is ordered, and how to plan it."""
    found = []
    for scan, ordered, target_bytes, many_files in pickle.loads(Path(requests).read_bytes()):
        pipeline.MANY_FILES = many_files
        job = Job(scan, spark, ordered=ordered, target_bytes=target_bytes)
        frame = job.dataframe()
        found.append(frame.toArrow().to_pylist() if frame.columns else [{}] * frame.count())
    return found


def places(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Where the driver and each task found the package, in which folder the task ran, its rows."""

    def described(batches: Batches) -> Batches:
        import fretsaw

        for batch in batches:
            columns = {"package": fretsaw.__file__, "folder": os.getcwd(), "rows": batch.num_rows}
            yield pa.RecordBatch.from_pylist([columns])

    frame = Job(fs.scan(folder), spark, target_bytes=1).dataframe()
    found = frame.mapInArrow(described, "package string, folder string, rows bigint")
    return {"driver": fs.__file__, "tasks": found.toArrow().to_pylist()}


def held(spark: SparkSession, folder: str, marks: str) -> list[Any]:
    """The numbers in some files, and the report of the job.

    The first task to run waits with its first batch until it is let go, or is killed meanwhile.
    """

    def waiting(batches: Batches) -> Batches:
        task = context()
        for number, batch in enumerate(batches):
            if number == 0 and task.partitionId() == 0:
                Path(marks, f"attempt-{task.attemptNumber()}").touch()
                if task.attemptNumber() == 0:
                    hold()
            yield batch

    def hold() -> None:
        Path(marks, "pid.tmp").write_text(str(os.getpid()))
        Path(marks, "pid.tmp").rename(Path(marks, "pid"))
        end = time.monotonic() + PATIENCE
        while not Path(marks, "go").exists() and time.monotonic() < end:
            time.sleep(0.05)

    job = Job(fs.scan(folder), spark, ordered=True, target_bytes=16 << 20)
    frame = job.dataframe()
    found = frame.mapInArrow(waiting, frame.schema).toArrow()["n"].combine_chunks()
    return [found, job.report.rows]


def peak(spark: SparkSession, folder: str, skip: str, head: str) -> dict[str, Any]:
    """What it takes a driver to plan, count and read a window over many files."""
    scan = fs.scan(folder).filter(fs.col("n") != 3).skip(int(skip)).head(int(head))
    with fs.trace() as trace:
        job = Job(scan, spark)
        found = job.dataframe().toArrow()["n"].combine_chunks()
        counted = job.count()
    status = Path("/proc/self/status").read_text()
    return {
        "found": found,
        "counted": counted,
        "planned_files": job.report.planned_files,
        "opened_here": len({read.path for read in trace.log}),
        "bytes": int(status.split("VmHWM:")[1].split()[0]) << 10,
    }


PROGRAMS: dict[str, Callable[..., Any]] = {
    program.__name__: program for program in (rows, places, held, peak)
}


def main() -> None:
    name, *arguments, result = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    Path(result).write_bytes(pickle.dumps(PROGRAMS[name](spark, *arguments)))
    spark.stop()


if __name__ == "__main__":
    main()
