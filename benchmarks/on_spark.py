"""Work on Spark: its own readers as a peer of everybody, and fretsaw as a source for it.

In and out: as `contestant` says. There is one session, in this process, with as many threads as
everybody has; it is started with the first call and kept. Without pyspark or Java every call
raises `Unsupported`. A JVM compiles what it has run a few times, so contestants that are `OnSpark`
are run a few times before they are timed.
Spark numbers the rows of Parquet files (`_metadata.row_index`), not those of ORC files. It pushes
down conditions on the times of ORC files, but not on local times of Parquet files, which `trips`
and `lake` have: so work that is for Spark asks for a range of the key.
"""

import importlib
import os
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import count as numbers
from typing import Any

import pyarrow as pa

import fretsaw as fs
from benchmarks import THREADS
from benchmarks.conditions import Condition, SqlDialect
from benchmarks.contestant import RowNumbers, Unsupported, added
from benchmarks.ours import Fretsaw, filtered, forget

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(THREADS),
    # Folders are listed by the driver: with a task for each it takes longer.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
VECTORED = "parquet.hadoop.vectored.io.enabled"
FILE, ROW = "_metadata.file_path", "_metadata.row_index"
BOTH_BUSY = 0.05  # seconds for which a task holds its worker, so that the next one gets another
GROUPS = numbers()


@cache
def session() -> Any:
    """The one session of this process."""
    if find_spec("pyspark") is None:
        raise Unsupported("pyspark is not installed")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise Unsupported("there is no Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = _pyspark("sql").SparkSession.builder.master(f"local[{THREADS}]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class OnSpark(ABC):
    """A contestant whose work runs on Spark, and what workloads for Spark ask of it."""

    @abstractmethod
    def folder_rows(self, folder: str, where: Condition) -> pa.Table:
        """The rows of all files that match, all columns, in no particular order."""

    @abstractmethod
    def folder_filter_window(
        self, folder: str, where: Condition, skip: int, count: int
    ) -> pa.Table:
        """Rows `skip` to `skip + count` of those that match in all files, in their order."""

    @abstractmethod
    def reads(self, work: Callable[[Any], object]) -> tuple[int, int]:
        """How many reads some work of this contestant makes (0: unknown), and of how many bytes."""

    def forget(self) -> None:
        """Let the next call open its files anew."""
        forget()


class Spark(OnSpark):
    """`spark.read.parquet`, and data frames."""

    name = "spark"
    dialect = SqlDialect("`", "TIMESTAMP_NTZ")

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        # `offset` and `limit` would send all rows before to one task.
        within = _functions().col(ROW).between(skip, skip + count - 1)
        return self._table(self._frame(path).filter(within))

    def tail(self, path: str, count: int) -> pa.Table:
        frame = self._frame(path)
        return self._from_rows(frame, frame.tail(count))

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        return self._table(self._frame(path).filter(_functions().col(ROW).isin(rows.tolist())))

    def sums(self, path: str, columns: Sequence[str]) -> pa.Table:
        frame = self._frame(path)
        booleans = {name for name, kind in frame.dtypes if kind == "boolean"}
        added_up = {name: _functions().col(name) for name in columns}
        numbers = {n: c.cast("int") if n in booleans else c for n, c in added_up.items()}
        totals = [_functions().sum(column).alias(name) for name, column in numbers.items()]
        return self._table(frame.agg(*totals))

    def sum_of_lists(self, path: str, column: str) -> pa.Table:
        elements = self._frame(path).select(_functions().explode(column).alias("element"))
        return self._table(elements.agg(_functions().sum("element").alias("sum")))

    def loop(self, path: str, count: int, column: str) -> pa.Table:
        return added(row[column] for row in self._frame(path).take(count))

    def read(self, path: str, columns: Sequence[str]) -> pa.Table:
        return self._table(self._frame(path).select(*columns))

    def filter(self, path: str, where: Condition, columns: Sequence[str] | None = None) -> pa.Table:
        frame = self._matching(path, where)
        return self._table(frame if columns is None else frame.select(*columns))

    def filter_in(self, path: str, column: str, values: pa.Array) -> pa.Table:
        wanted = session().createDataFrame(pa.table({column: values}))
        frame = self._frame(path)
        return self._table(
            frame.join(_functions().broadcast(wanted), column, "left_semi").select(*frame.columns)
        )

    def filter_text(self, path: str, condition: str) -> pa.Table:
        return self._table(self._frame(path).filter(condition))

    def find(self, path: str, where: Condition) -> pa.Table:
        return self.filter(path, where)

    def filter_head(self, path: str, where: Condition, count: int) -> pa.Table:
        # `take` looks at one partition after the other; `limit` would look at all.
        frame = self._matching(path, where)
        return self._from_rows(frame, frame.take(count))

    def filter_tail(self, path: str, where: Condition, count: int) -> pa.Table:
        frame = self._matching(path, where)
        return self._from_rows(frame, frame.tail(count))

    def filter_count(self, path: str, where: Condition) -> pa.Table:
        return pa.table({"count": [self._matching(path, where).count()]})

    def folder_window(self, folder: str, key: pa.Field, skip: int, count: int) -> pa.Table:
        return self._counted_window(self._frame(folder), skip, count)

    def folder_count(self, folder: str, key: pa.Field) -> pa.Table:
        return pa.table({"count": [self._frame(folder).count()]})

    def folder_filter(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        # Files are read by size, the largest first.
        return self._table(self._matching(folder, where).orderBy(FILE, ROW))

    def folder_filter_count(self, folder: str, key: pa.Field, where: Condition) -> pa.Table:
        return self.filter_count(folder, where)

    def folder_rows(self, folder: str, where: Condition) -> pa.Table:
        return self.filter(folder, where)

    def folder_filter_window(
        self, folder: str, where: Condition, skip: int, count: int
    ) -> pa.Table:
        return self._counted_window(self._matching(folder, where), skip, count)

    def drain(self, path: str) -> int:
        raise Unsupported("its memory is that of a JVM")

    def reads(self, work: Callable[[Any], object]) -> tuple[int, int]:
        context = session().sparkContext
        group = f"reads {next(GROUPS)}"
        context.setJobGroup(group, group)
        # What is read by several ranges at once is not counted.
        session().conf.set(VECTORED, "false")
        try:
            work(self)
        finally:
            session().conf.unset(VECTORED)
        scala = context._jsc.sc()
        scala.listenerBus().waitUntilEmpty()
        stages, tracker = scala.statusStore(), context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        done = {stage for job in jobs for stage in job.stageIds}
        return 0, sum(stages.lastStageAttempt(stage).inputBytes() for stage in done)

    def _counted_window(self, frame: Any, skip: int, count: int) -> pa.Table:
        """Rows by their number, files in the order of their paths.

        First how many rows each file has, and then the files with the wanted ones alone. A sort
        with `offset` and `limit` alone would keep all rows before them, with all their columns.
        """
        counts = frame.groupBy(FILE).count().collect()
        files: list[str] = []
        first = end = 0
        for file, rows in sorted(counts):
            if end + rows > skip and end < skip + count:
                first = first if files else end
                files.append(file)
            end += rows
        chosen = frame.filter(_functions().col(FILE).isin(files)).orderBy(FILE, ROW)
        return self._table(chosen.offset(skip - first).limit(count))

    def _frame(self, path: str) -> Any:
        return session().read.parquet(path)

    def _matching(self, path: str, where: Condition) -> Any:
        return self._frame(path).filter(where.of(self.dialect).text)

    def _table(self, frame: Any) -> pa.Table:
        return frame.toArrow()

    @staticmethod
    def _from_rows(frame: Any, rows: Iterable[Any]) -> pa.Table:
        schema = _pyspark("sql.pandas.types").to_arrow_schema(frame.schema)
        return pa.Table.from_pylist([row.asDict(recursive=True) for row in rows], schema)


class SparkOrc(Spark):
    """`spark.read.orc`: the times of ORC files are instants there."""

    dialect = SqlDialect("`")

    def window(self, path: str, skip: int, count: int) -> pa.Table:
        # In one partition: to gather the rows before takes longer than to read them.
        return self._table(self._frame(path).coalesce(1).offset(skip).limit(count))

    def take(self, path: str, rows: RowNumbers) -> pa.Table:
        raise Unsupported("it numbers the rows of Parquet files only")

    def _frame(self, path: str) -> Any:
        return session().read.orc(path)

    def _table(self, frame: Any) -> pa.Table:
        table = frame.toArrow()
        local = [
            each.with_type(pa.timestamp("us")) if pa.types.is_timestamp(each.type) else each
            for each in table.schema
        ]
        return table.cast(pa.schema(local))


class FretsawOnSpark(Fretsaw, OnSpark):
    """`Scan.to_spark`."""

    def folder_rows(self, folder: str, where: Condition) -> pa.Table:
        return self._collected(filtered(folder, where), ordered=False)

    def folder_filter_window(
        self, folder: str, where: Condition, skip: int, count: int
    ) -> pa.Table:
        return self._collected(filtered(folder, where).skip(skip).head(count), ordered=True)

    def reads(self, work: Callable[[Any], object]) -> tuple[int, int]:
        self.forget()
        counting = _Reporting()
        work(counting)
        return counting.requests, counting.bytes_read

    def forget(self) -> None:
        super().forget()
        workers = session().range(0, THREADS, 1, THREADS)
        workers.mapInArrow(_forget_there, "id long").collect()

    def _collected(self, scan: fs.Scan, ordered: bool) -> pa.Table:
        return scan.to_spark(session(), ordered=ordered).toArrow()


class _Reporting(FretsawOnSpark):
    """The same, with what the job says that it has read."""

    requests = bytes_read = 0

    def _collected(self, scan: fs.Scan, ordered: bool) -> pa.Table:
        from fretsaw.spark.pipeline import Job

        job = Job(scan, session(), ordered=ordered)
        table = job.dataframe().toArrow()
        self.requests, self.bytes_read = job.report.requests, job.report.bytes_read
        return table


def _forget_there(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    forget()
    time.sleep(BOTH_BUSY)
    yield from batches


def _functions() -> Any:
    session()  # which says what is missing
    return _pyspark("sql.functions")


def _pyspark(module: str) -> Any:
    return importlib.import_module(f"pyspark.{module}")
