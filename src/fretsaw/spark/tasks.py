"""What the tasks of a job do: plan files, count rows, read parts of the result.

A task runs the same scan that runs in-process, over files or parts of its own. What it read, and
what it skipped, goes into a report.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from fretsaw.engine.files import open_in_order
from fretsaw.engine.parts import ScanPart, parts_of
from fretsaw.engine.planner import Planner
from fretsaw.engine.query import Window
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.target import Target, target_of, union
from fretsaw.errors import FileFormatError
from fretsaw.model.schema import SchemaNode
from fretsaw.scan import Scan
from fretsaw.spark.report import Report, reported
from fretsaw.spark.windows import WantedPart
from fretsaw.storage.listing import Entry, Listing

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A scan without its files and its window: what all tasks know of it."""

    request: ScanRequest
    listing: Listing
    schema: pa.Schema
    """Of the result, in Arrow."""
    nodes: Sequence[SchemaNode]
    """The trees of its columns."""
    skip_corrupt: bool

    def of(self, entries: Sequence[Entry]) -> ScanRequest:
        """The scan of some files."""
        listing = replace(self.listing, entries=tuple(entries), is_split=True)
        return self.request.of_files(listing, self.request.target)

    def part(self, part: ScanPart, window: Window) -> Scan:
        """The scan of a part of a file, and of the rows inside a window."""
        request = self.of([part.entry])
        query = replace(request.query, window=window)
        return Scan(replace(request, query=query, planned=part.blocks))


def settle(
    request: ScanRequest, skip_corrupt: bool, report: Report
) -> tuple[Settled, Sequence[Entry]]:
    """What all tasks will know of a scan, and its files, as far as their folders leave them."""
    with reported(report):
        planner = Planner(request)
        try:
            planner.columns.check()
        except FileFormatError:
            first_settles = not request.missing_is_null or request.target is not None
            readable: tuple[Entry, ...] = ()
            if skip_corrupt:
                entries = planner.listing.entries
                readable = _readable(entries, request, first_settles, report)
            if not readable:
                raise
            listing = replace(planner.listing, entries=readable)
            planner = Planner(request.of_files(listing, request.target))
            planner.columns.check()
    columns, listing = planner.columns, replace(planner.listing, entries=(), is_split=True)
    query = replace(request.query, window=Window())
    without_files = replace(request.of_files(listing, columns.target), query=query)
    settled = Settled(without_files, listing, columns.schema, columns.nodes, skip_corrupt)
    return settled, planner.entries


def all_columns(
    request: ScanRequest, skip_corrupt: bool, entries: Sequence[Entry], report: Report
) -> list[Target]:
    """All columns that some files have together."""
    listing, targets = request.listing(), []
    with reported(report):
        for entry in entries:
            with _skipping(skip_corrupt, report):
                targets += [
                    target_of(file.reader, file.name, None, listing.partitions, listing.several)
                    for file in open_in_order([entry], request.options, lambda: 0)
                ]
    return [union(targets, None)] if targets else []


def count_rows(
    settled: Settled, entries: Sequence[Entry], report: Report
) -> list[tuple[Entry, int]]:
    """The files with their rows, matching or not; one that is skipped has none."""
    counts = [(entry, 0) for entry in entries]
    with reported(report):
        for place, entry in enumerate(entries):
            with _skipping(settled.skip_corrupt, report):
                files = open_in_order([entry], settled.request.options, lambda: 0)
                for file in files:
                    counts[place] = (file.planned, file.num_rows)
    return counts


def plan_files(
    settled: Settled, target_bytes: int, entries: Sequence[Entry], report: Report
) -> list[ScanPart]:
    """The parts of some files that survive pruning, in order."""
    report.planned_files += len(entries)
    with reported(report, plans=True):
        try:
            return list(parts_of(settled.of(entries), target_bytes))
        except FileFormatError:
            if not settled.skip_corrupt:
                raise
        parts: list[ScanPart] = []
        for entry in entries:
            with _skipping(settled.skip_corrupt, report):
                parts += parts_of(settled.of([entry]), target_bytes)
        return parts


def count_matches(
    settled: Settled, enough: Window, parts: Sequence[ScanPart], report: Report
) -> list[int]:
    """How many rows of each part match, inside a window that is enough.

    Of data pages, only those are read that the indexes leave open.
    """
    counts = [0] * len(parts)
    with reported(report):
        for place, part in enumerate(parts):
            with _skipping(settled.skip_corrupt, report):
                counts[place] = settled.part(part, enough).count()
    return counts


def read(
    settled: Settled, wanted_parts: Sequence[WantedPart], report: Report
) -> Iterator[pa.RecordBatch]:
    """The rows of some parts, in order."""
    with reported(report):
        for wanted in wanted_parts:
            with _skipping(settled.skip_corrupt, report):
                for batch in settled.part(wanted.part, wanted.window).batches():
                    report.rows += batch.num_rows
                    yield batch
            report.planned_bytes += wanted.part.bytes
    report.tasks_done += 1


def _readable(
    entries: Sequence[Entry], request: ScanRequest, from_first: bool, report: Report
) -> tuple[Entry, ...]:
    """The files whose footers can be read, or all that follow the first such file."""
    readable: list[Entry] = []
    for place, entry in enumerate(entries):
        with _skipping(True, report):
            if list(open_in_order([entry], request.options, lambda: 0)):
                readable.append(entry)
                if from_first:
                    return tuple(entries[place:])
    return tuple(readable)


def shared_out(items: Sequence[T], sizes: Sequence[int], target: int) -> list[list[T]]:
    """Neighbours put together, as evenly as they come, about `target` bytes in each group."""
    groups: list[list[T]] = []
    left = 0.0
    for item, size in zip(items, sizes, strict=True):
        if left < size / 2:
            groups.append([])
            left = target
        groups[-1].append(item)
        left -= size
    return groups


@contextmanager
def _skipping(skip_corrupt: bool, report: Report) -> Iterator[None]:
    """Leave out what is corrupt, where that was asked for, and report it."""
    try:
        yield
    except FileFormatError as error:
        if not skip_corrupt:
            raise
        report.skip(str(error))
