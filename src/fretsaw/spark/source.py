"""The Python Data Source: `spark.read.format("fretsaw")`.

Spark asks a Python worker for the schema, hands it the filters that it would like to have applied,
and asks for partitions; tasks then read one partition each. Planning happens in that worker,
without a session: it opens a few files, never many.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NoReturn

import pyarrow as pa
import pyspark.sql.types as spark
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from fretsaw.engine.parts import ScanPart
from fretsaw.engine.query import Window
from fretsaw.errors import FretsawError
from fretsaw.model.schema import SchemaNode
from fretsaw.spark import tasks
from fretsaw.spark.filters import as_stored, translate
from fretsaw.spark.options import Options, parse_options
from fretsaw.spark.projection import paths_of
from fretsaw.spark.report import Report
from fretsaw.spark.tasks import Settled
from fretsaw.spark.types import (
    arrow_schema,
    conform,
    require_no_times,
    schema_of_nodes,
    struct_type,
)
from fretsaw.spark.windows import WantedPart, inside
from fretsaw.storage.listing import Entry
from fretsaw.storage.origins import open_source
from fretsaw.storage.source import Version

FEW_FILES = 64
"""So many files are opened to plan; of more than these only the sizes are looked at."""

_log = logging.getLogger("fretsaw")

KEEPS_SCANS_APART = hasattr(DataSourceReader, "pushLimit")
"""Whether Spark plans every use of a loaded DataFrame by itself.

Before Spark 5, which pushes limits too, all of them share the plan that was made last, with the
filters that were pushed then: a query without a filter returns the rows of the one before it.
"""


class FretsawDataSource(DataSource):
    """Parquet and ORC files, read by fretsaw and filtered by Spark."""

    @classmethod
    def name(cls) -> str:
        """What `spark.read.format` calls it."""
        return "fretsaw"

    has_times = True
    """Whether the session that it was registered with may have columns of times."""

    def schema(self) -> spark.StructType:
        """The columns that are read if the user gives no schema."""
        found = struct_type(schema_of_nodes(_columns(parse_options(self.options))))
        if not self.has_times:
            require_no_times(found)
        return found

    def streamReader(self, schema: spark.StructType) -> NoReturn:  # noqa: N802
        """Refuse to stream: files are read as they are, once."""
        raise FretsawError(
            "fretsaw does not stream: use spark.read instead of spark.readStream, or stream with "
            "Spark's own parquet and orc formats"
        )

    def reader(self, schema: spark.StructType) -> "FretsawReader":
        """A reader of these columns."""
        return FretsawReader(parse_options(self.options), schema)


class FilteringDataSource(FretsawDataSource):
    """The same, with the filters that Spark pushes applied where the files are read."""

    def reader(self, schema: spark.StructType) -> "FilteringReader":
        """A reader of these columns."""
        return FilteringReader(parse_options(self.options), schema)


class Share(InputPartition):
    """What one task reads: parts that were planned, or whole files to plan by itself."""

    def __init__(
        self,
        settled: Settled,
        wanted_parts: Sequence[WantedPart] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        super().__init__(None)
        self.settled = settled
        self.wanted_parts = wanted_parts
        self.entries = entries


class FretsawReader(DataSourceReader):
    """Plans a read, and reads its partitions."""

    def __init__(self, options: Options, schema: spark.StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        nodes = _columns(options)
        self._stored = {new: old for old, new in options.renamed.items()}
        """The names that files have, by those of the result."""
        paths = [
            (self._stored.get(first, first), *below)
            for first, *below in paths_of(schema, nodes, options.missing)
        ]
        self._nodes = [node.renamed(self._stored.get(node.name, node.name)) for node in nodes]
        chosen = {path[0] for path in paths}
        names = {old: new for old, new in options.renamed.items() if old in chosen}
        self._scan = options.scan().select(*paths)
        if names:
            self._scan = self._scan.rename(names)

    def partitions(self) -> Sequence[InputPartition]:
        """What the tasks read, in the order of the rows."""
        report = Report()
        settled, entries = tasks.settle(self._scan.request, report)
        window, target = self._options.window, self._options.split_bytes
        if len(entries) > FEW_FILES and not window:
            packed = tasks.shared_out(entries, list(map(_size, entries)), target)
            _log_skipped(report)
            return [Share(settled, entries=group) for group in packed]

        def parts() -> Iterator[ScanPart]:
            step = -1 if window.tail is not None else 1
            for entry in entries[::step]:
                yield from tasks.plan_files(settled, target, [entry], report)[::step]

        def count(parts: Sequence[ScanPart], enough: Window) -> list[int]:
            return [
                part.rows
                if part.rows == part.proven
                else tasks.count_matches(settled, enough, [part], report)[0]
                for part in parts
            ]

        wanted_parts = list(inside(parts(), window, count, repeat(1)))
        if window.tail is not None:
            wanted_parts.reverse()
        _log_skipped(report)
        shared = tasks.shared_out(
            wanted_parts, [wanted.part.bytes for wanted in wanted_parts], target
        )
        return [Share(settled, group) for group in shared] or [Share(settled)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, in the schema that Spark expects."""
        assert isinstance(partition, Share)
        report = Report()
        settled, wanted_parts = partition.settled, partition.wanted_parts
        if partition.entries:
            parts = tasks.plan_files(settled, self._options.split_bytes, partition.entries, report)
            wanted_parts = [WantedPart(part, Window()) for part in parts]
        for batch in tasks.read(settled, wanted_parts, report):
            yield conform(batch, self._schema)
        _log_skipped(report)


class FilteringReader(FretsawReader):
    """A reader that takes filters, if Spark has any."""

    @property
    def pushFilters(self) -> Any:  # noqa: N802
        """Takes the filters that can be applied exactly, and gives back the others."""
        return _PushFilters(self)

    def push(self, filters: Sequence[Filter]) -> Iterator[Filter]:
        """Take what can be applied exactly, and give back the rest."""
        for pushed in filters:
            # A window counts rows before Spark filters them.
            stored = as_stored(pushed, self._stored)
            predicate = None if self._options.window else translate(stored, self._nodes)
            if predicate is None:
                yield pushed
            else:
                self._scan = self._scan.filter(predicate)


class _PushFilters:
    """`pushFilters` of a reader that does not insist on it.

    While the setting is off, Spark refuses readers with a `pushFilters` of their own, which it
    tells by the function behind the method, and does not call it.
    """

    def __init__(self, reader: FilteringReader) -> None:
        self.__func__ = DataSourceReader.pushFilters
        self._reader = reader

    def __call__(self, filters: Sequence[Filter]) -> Iterable[Filter]:
        return list(self._reader.push(filters))


def _columns(options: Options) -> Sequence[SchemaNode]:
    """The trees of the columns that the options ask for."""
    scan = options.scan() if options.columns is None else options.scan().select(*options.columns)
    if options.dropped:
        scan = scan.drop(*options.dropped)
    if options.renamed:
        scan = scan.rename(options.renamed)
    settled, _ = tasks.settle(scan.request, Report())
    return settled.nodes


def _size(entry: Entry) -> int:
    if isinstance(entry.identity, Version):
        return entry.identity.size
    source = open_source(entry.origin)
    source.close()
    return source.size


def _log_skipped(report: Report) -> None:
    for why in report.skipped:
        _log.warning("left out, as onCorrupt=skip says: %s", why)
