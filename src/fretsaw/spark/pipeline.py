"""A scan as a job of Spark: planned, counted and read by tasks, with the same rows as the answer.

Files are cut into parts by byte range, sized by the bytes that survive pruning; where there are
many files, tasks read their footers. A window is exact: parts whose matches the indexes do not
tell are counted first, and only those inside the window are read.
"""

import itertools
import os
import pickle
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from fretsaw.engine.parts import ScanPart
from fretsaw.engine.query import Query, Window
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.target import union, without
from fretsaw.errors import CorruptFileWarning
from fretsaw.results.write.files import write_file
from fretsaw.results.write.formats import format_of, require_types
from fretsaw.results.write.places import Place, destination, name_of, part_of, staged_directory
from fretsaw.scan import Scan
from fretsaw.spark import tasks
from fretsaw.spark.report import Report, Reports
from fretsaw.spark.tasks import Settled
from fretsaw.spark.types import (
    arrow_schema,
    conform,
    has_times,
    require_no_times,
    schema_of_nodes,
    struct_type,
)
from fretsaw.spark.windows import WantedPart, inside
from fretsaw.spark.workers import require_workers
from fretsaw.storage.listing import Entry, Listing, picklable
from fretsaw.storage.location import Access
from fretsaw.storage.origins import is_file_object

T = TypeVar("T")

MANY_FILES = 256
"""Footers of more files than this are read by tasks."""
FILES_PER_TASK = 128
PART_BYTES = 4 << 20
"""A part has about so many bytes: few enough to be shared out evenly."""
LARGE_PART_BYTES = 32 << 20
"""The same of many files, which have parts enough."""
TASK_BYTES = 128 << 20
SMALL_TASK_BYTES = 32 << 20
OPEN_BYTES = 256 << 10
"""What it costs to open a part, as so many bytes to read."""


class Job:
    """A scan on Spark: planned once, then run as often as asked.

    `ordered` keeps the rows in the order of the files from task to task; without it the largest
    tasks come first. Corrupt files that a scan with `on_corrupt="skip"` leaves out are reported,
    and warned of once each.
    """

    def __init__(
        self,
        scan: Scan,
        spark: SparkSession,
        *,
        ordered: bool = True,
        target_bytes: int | None = None,
    ) -> None:
        if target_bytes is not None and target_bytes < 1:
            raise ValueError(f"target_bytes must be at least 1, not {target_bytes}")
        require_workers(spark)
        self._spark = spark
        self._ordered = ordered
        self._target_bytes = target_bytes
        self._reports = spark.sparkContext.accumulator(Report(), Reports())
        self._window = scan.request.query.window
        listing = _sendable(scan.request.listing())
        self._inputs = listing.entries
        self._access = scan.request.access
        self._warned: set[str] = set()
        self._settled, entries = self._settle(scan.request, listing)
        is_placed = listing.is_split or not scan.request.query.numbers_rows
        entries = entries if is_placed else self._placed(entries, scan.request.query)
        self._parts = [] if self._window.is_over else self._plan(entries)
        self.bytes = sum(part.bytes for part in self._parts)
        """How many bytes the tasks read, roughly: of the parts that survive pruning and, once they
        are counted, lie inside the window."""
        self._warn()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self._settled.schema

    @property
    def report(self) -> Report:
        """What was read so far: planning on the driver, and all tasks that ended."""
        return self._reports.value

    # Results ------------------------------------------------------------------------------------

    def dataframe(self) -> DataFrame:
        """The result as a data frame of Spark."""
        kind = struct_type(schema_of_nodes(self._settled.nodes))
        if not has_times(self._spark):
            require_no_times(kind)
        if not kind.fields:  # Arrow batches without columns have no rows in Spark
            return self._frame(partial(_only_rows, self._settled), self._tasks(), _ROW).select()
        work = partial(_conformed, self._settled, arrow_schema(kind))
        return self._frame(work, self._tasks(), kind)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Stream the result to the driver in bounded memory, with Arrow's types."""
        # The driver holds the rows of two tasks at a time.
        small_tasks = self._tasks(LARGE_PART_BYTES)
        frame = self._frame(partial(_serialized, self._settled), small_tasks, "batch binary")
        with _own_errors():
            for row in frame.toLocalIterator(prefetchPartitions=True):
                yield from pa.ipc.open_stream(row[0])
        self._warn()

    def write(self, path: str | os.PathLike[str], format: str, access: Access | None = None) -> int:
        """Write the result as a directory of files, complete or absent; gives the rows.

        A URL is reached by `access`, by default as those that are read.
        """
        place = destination(path, self._inputs, access or self._access)
        require_types(self.schema, name_of(place), format_of(path, format))
        with staged_directory(place) as stage:
            work = partial(_written, self._settled, stage, format)
            # Without a row there is a file all the same: it says what the columns are.
            rows = sum(self._run(work, list(enumerate(self._tasks() or [[]]))))
        self._warn()
        return rows

    def count(self) -> int:
        """How many rows the result has; reads no data page where metadata prove the answer."""
        uncounted = [wanted.part for wanted in self._wanted_parts if wanted.rows is None]
        known = sum(wanted.rows for wanted in self._wanted_parts if wanted.rows is not None)
        rows = known + sum(self._count(uncounted, Window()))
        self._warn()
        return rows

    def _warn(self) -> None:
        """Say which files were left out, each once."""
        for why in self.report.skipped:
            if why not in self._warned:
                self._warned.add(why)
                what = "it was left out, or ends there, as on_corrupt='skip' says"
                warnings.warn(f"{why}; {what}", CorruptFileWarning, stacklevel=3)

    # Planning -----------------------------------------------------------------------------------

    def _settle(self, request: ScanRequest, listing: Listing) -> tuple[Settled, Sequence[Entry]]:
        """Settle the columns: the first file does, or all together where some may lack them."""
        request = request.of_files(listing, request.target)
        any_may_add = request.missing_is_null and request.query.columns is None
        if any_may_add and request.target is None and not request.widens_types:
            entries = listing.entries
            without_files = request.of_files(replace(listing, entries=()), None)
            work = partial(tasks.all_columns, without_files)
            targets = self._of_files(work, entries) if len(entries) > MANY_FILES else []
            if targets:
                whole = without(union(targets, None), request.query.dropped_from_files)
                request = request.of_files(listing, whole)
        return tasks.settle(request, self.report)

    def _placed(self, entries: Sequence[Entry], query: Query) -> Sequence[Entry]:
        """The files with their first rows in the whole scan."""
        counted = self._of_files(partial(tasks.count_rows, self._settled), entries)
        *starts, total = itertools.accumulate((rows for _, rows in counted), initial=0)
        query.require_rows(total)
        return [
            replace(entry, first_row=start)
            for (entry, _), start in zip(counted, starts, strict=True)
        ]

    def _plan(self, entries: Sequence[Entry]) -> list[ScanPart]:
        size = LARGE_PART_BYTES if len(entries) > MANY_FILES else PART_BYTES
        target = min(size, self._target_bytes or size)
        return self._of_files(partial(tasks.plan_files, self._settled, target), entries)

    def _of_files(
        self, work: Callable[[Sequence[Entry], Report], list[T]], entries: Sequence[Entry]
    ) -> list[T]:
        """What is found out about each file: on the driver, or by tasks where there are many."""
        if len(entries) <= MANY_FILES:
            return work(entries, self.report)
        return self._run(work, _cut(entries, FILES_PER_TASK))

    # Windows ------------------------------------------------------------------------------------

    @cached_property
    def _wanted_parts(self) -> list[WantedPart]:
        """What is read of each part, in order: all of it, or what is inside the window."""
        backward = self._window.tail is not None
        parts = self._parts[::-1] if backward else self._parts
        # What is skipped is counted, all of it; of the rest, few parts may be enough.
        first = self._spark.sparkContext.defaultParallelism * (64 if self._window.skip else 8)
        waves = (first * 16**wave for wave in itertools.count())
        wanted_parts = list(inside(parts, self._window, self._count, waves))
        return wanted_parts[::-1] if backward else wanted_parts

    def _count(self, parts: Sequence[ScanPart], enough: Window) -> list[int]:
        """How many rows match in some parts; tasks count where indexes do not tell."""
        unknown = [part for part in parts if part.proven < part.rows]
        work = partial(tasks.count_matches, self._settled, enough)
        counted = iter(self._run(work, self._shared_out(unknown, unknown, TASK_BYTES)))
        return [part.rows if part.proven == part.rows else next(counted) for part in parts]

    # Tasks --------------------------------------------------------------------------------------

    def _tasks(self, most_bytes: int = TASK_BYTES) -> list[list[WantedPart]]:
        """What each task reads."""
        wanted_parts = self._wanted_parts
        self.bytes = sum(wanted.part.bytes for wanted in wanted_parts)
        shared = self._shared_out(
            wanted_parts, [wanted.part for wanted in wanted_parts], most_bytes
        )
        if not self._ordered:
            shared.sort(key=lambda share: -sum(wanted.part.bytes for wanted in share))
        return shared

    def _shared_out(
        self, items: Sequence[T], parts: Sequence[ScanPart], most_bytes: int
    ) -> list[list[T]]:
        """What is to be done with parts, shared out: enough tasks for all cores.

        Large tasks are two for each core, so that none waits long for another.
        """
        sizes = [OPEN_BYTES + part.bytes for part in parts]
        per_core = -(-sum(sizes) // self._spark.sparkContext.defaultParallelism)
        target = min(max(per_core // 2, SMALL_TASK_BYTES), per_core, most_bytes)
        return tasks.shared_out(items, sizes, self._target_bytes or target)

    def _run(self, work: Callable[[Any, Report], list[T]], shares: Sequence[Any]) -> list[T]:
        """What tasks found out about their shares, in order."""
        if not shares:
            return []
        reports = self._reports

        def run(share: Any) -> list[T]:
            report = Report()
            found = work(share, report)
            reports.add(report)
            return found

        with _own_errors():
            return self._spark.sparkContext.parallelize(shares, len(shares)).flatMap(run).collect()

    def _frame(
        self,
        work: Callable[[Sequence[WantedPart], Report], Iterator[pa.RecordBatch]],
        shares: Sequence[Sequence[WantedPart]],
        schema: StructType | str,
    ) -> DataFrame:
        """A data frame that has a task for each share of the work."""
        pickled = [pickle.dumps(share) for share in shares]
        reports = self._reports

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    report = Report()
                    yield from work(pickle.loads(pickled[number]), report)
                    reports.add(report)

        numbers = self._spark.range(0, len(pickled), 1, max(1, len(pickled)))
        return numbers.mapInArrow(run, schema)


# What tasks give back ---------------------------------------------------------------------------


def _conformed(
    settled: Settled, schema: pa.Schema, wanted_parts: Sequence[WantedPart], report: Report
) -> Iterator[pa.RecordBatch]:
    """Rows as Spark has them."""
    for batch in tasks.read(settled, wanted_parts, report):
        yield conform(batch, schema)


_ROW = "row boolean"


def _only_rows(
    settled: Settled, wanted_parts: Sequence[WantedPart], report: Report
) -> Iterator[pa.RecordBatch]:
    """Rows of which nothing is asked but that they are there."""
    for batch in tasks.read(settled, wanted_parts, report):
        yield pa.record_batch({"row": pa.nulls(batch.num_rows, pa.bool_())})


def _serialized(
    settled: Settled, wanted_parts: Sequence[WantedPart], report: Report
) -> Iterator[pa.RecordBatch]:
    """Rows as they are: each batch as a stream of Arrow."""
    for batch in tasks.read(settled, wanted_parts, report):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"batch": [sink.getvalue().to_pybytes()]})


def _written(
    settled: Settled,
    folder: Place,
    format: str,
    numbered: tuple[int, Sequence[WantedPart]],
    report: Report,
) -> list[int]:
    """Rows as a file; how many there are."""
    number, wanted_parts = numbered
    path = part_of(folder, f"part-{number:05d}.{format}")
    return [write_file(tasks.read(settled, wanted_parts, report), settled.schema, path, format)]


# Inside -----------------------------------------------------------------------------------------


def _cut(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _sendable(listing: Listing) -> Listing:
    """The files as tasks can have them."""
    if any(is_file_object(entry.origin) for entry in listing.entries):
        raise TypeError("an open file object cannot be sent to tasks: scan its path or its bytes")
    entries = (replace(entry, origin=picklable(entry.origin)) for entry in listing.entries)
    return replace(listing, entries=tuple(entries))


@contextmanager
def _own_errors() -> Iterator[None]:
    """An error of ours that failed a task is raised as it was there, not as Spark's."""
    try:
        yield
    except (PythonException, Py4JJavaError) as failure:
        found = re.search(r"^(fretsaw\.[\w.]+)\.(\w+Error): (.*)$", str(failure), re.MULTILINE)
        if found is None:
            raise
        module, name, message = found.groups()
        raise getattr(import_module(module), name)(message) from failure
