"""Spark as the engine of a command: its session, and a job in it."""

import atexit
import logging
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fretsaw.cli.engines import is_submitted
from fretsaw.cli.options import CommandOptions
from fretsaw.cli.output import Target, write_target
from fretsaw.cli.progress import Status, left_out, was_skipped
from fretsaw.cli.reads import file_size
from fretsaw.errors import CorruptFileWarning, FretsawError
from fretsaw.spark.pipeline import Job

_SETTINGS: dict[str, Any] = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}


@contextmanager
def on_spark(options: CommandOptions, master: str | None) -> Iterator["OnSpark"]:
    """The engine that runs on Spark, in the session there is or in one of its own."""
    try:
        yield OnSpark(options, master)
    except (PySparkException, Py4JError) as error:
        raise FretsawError(f"Spark: {_gist(str(error))}") from error


class OnSpark:
    """Reads by tasks of Spark."""

    def __init__(self, options: CommandOptions, master: str | None) -> None:
        self._files = options.files()
        self._total = sum(map(file_size, self._files))
        self._access = options.access
        self._scan = options.scan()  # what is wrong with it is told before Spark is started
        # The summary says what was skipped.
        warnings.simplefilter("ignore", CorruptFileWarning)
        self._job = Job(self._scan, _session(master))
        self._counted: int | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._job.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self._job.batches()

    def count(self) -> int:
        self._counted = self._job.count()
        return self._counted

    def write(self, target: Target) -> None:
        if target.is_file:  # by one writer: rows come here, in their order
            write_target(self.batches(), self.schema, self._files, target, self._access)
        elif target.overwrite:
            raise FretsawError(
                f"{target.path}: a directory that Spark writes is a new one: leave out --overwrite "
                "and name another, or name a file by its suffix"
            )
        else:
            self._job.write(target.path, target.format, self._access)

    def explain(self, run: bool) -> str:
        text = str(self._scan.plan())
        if not run:
            return text
        began = time.perf_counter()
        for _ in self.batches():
            pass
        return f"{text}\n  on Spark: {self.status().summary(time.perf_counter() - began)}"

    def status(self) -> Status:
        report, planned = self._job.report, self._job.bytes
        return Status(
            report.rows if self._counted is None else self._counted,
            report.bytes_read,
            self._total,
            report.requests,
            share=report.planned_bytes / planned if planned else None,
            tasks=report.tasks_done,
            left_out=[*left_out(report.pruned), *map(was_skipped, report.skipped)],
        )


def _session(master: str | None) -> SparkSession:
    """The session of whoever called, or of spark-submit; else one that ends with the process."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("fretsaw")
    if is_submitted():  # logs and master are those of spark-submit
        session = builder.getOrCreate()
    else:
        session = _own_session(builder.config(map=_SETTINGS), master)
    atexit.register(session.stop)
    return session


def _own_session(builder: SparkSession.Builder, master: str | None) -> SparkSession:
    # py4j logs what an interrupt interrupts, with a traceback, unless somebody else handles it.
    logging.getLogger().addHandler(logging.NullHandler())
    with tempfile.TemporaryFile() as log, _stderr_to(log):
        try:
            return (builder.master(master) if master else builder).getOrCreate()
        except Exception as error:
            raise FretsawError(f"Spark does not start: {_reason(log, error)}") from error


@contextmanager
def _stderr_to(log: BinaryIO) -> Iterator[None]:
    """Have processes that are started inside write their errors to a file.

    Spark logs a trace of every task that fails, where a command says what is wrong in one line.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reason(log: BinaryIO, error: Exception) -> str:
    """Why Spark did not start: what Java said last, and what Python made of it."""
    log.seek(0)
    said = log.read().decode(errors="replace").strip()
    return "; ".join([_gist(str(error)), *([_gist(said)] if said else [])])


def _gist(text: str) -> str:
    """The line that says what is wrong: the last that names an error, else the first.

    >>> _gist("A task failed:\\nTraceback:\\n  File x\\nOSError: No space left\\n SQLSTATE: 38000")
    'OSError: No space left'
    """
    named = re.findall(r"^(?:.* )?[\w.]*(?:Error|Exception)\b: .+", text, re.MULTILINE)
    return str(named[-1]) if named else text.strip().partition("\n")[0]
