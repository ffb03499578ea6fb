"""What the tasks of a job do: plan files, count rows, read parts of the result.

A task runs the same scan that runs in-process, over files or parts of its own. What it read, and
what it skipped, goes into a report.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from fretsaw.engine.corrupt_files import CorruptFiles
from fretsaw.engine.files import OpenFile, open_in_order
from fretsaw.engine.parts import ScanPart, parts_of
from fretsaw.engine.planner import Planner
from fretsaw.engine.query import Window
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.target import Target, target_of, union
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

    def of(self, entries: Sequence[Entry]) -> ScanRequest:
        """The scan of some files."""
        listing = replace(self.listing, entries=tuple(entries), is_split=True)
        return self.request.of_files(listing, self.request.target)

    def part(self, part: ScanPart, window: Window) -> Scan:
        """The scan of a part of a file, and of the rows inside a window."""
        request = self.of([part.entry])
        query = replace(request.query, window=window)
        return Scan(replace(request, query=query, planned=part.blocks))


def settle(request: ScanRequest, report: Report) -> tuple[Settled, Sequence[Entry]]:
    """What all tasks will know of a scan, and its files, as far as their paths leave them."""
    with reported(report):
        planner = Planner(request)
        planner.columns.check()
    columns, listing = planner.columns, replace(planner.listing, entries=(), is_split=True)
    query = replace(request.query, window=Window())
    without_files = replace(request.of_files(listing, columns.target), query=query)
    settled = Settled(without_files, listing, columns.schema, columns.nodes)
    return settled, planner.entries


def all_columns(request: ScanRequest, entries: Sequence[Entry], report: Report) -> list[Target]:
    """All columns that some files have together."""
    listing = request.listing()
    with reported(report):
        targets = [
            target_of(file.reader, file.name, None, listing.partitions, listing.several)
            for file in _opened(request, entries)
        ]
    return [union(targets, None)] if targets else []


def count_rows(
    settled: Settled, entries: Sequence[Entry], report: Report
) -> list[tuple[Entry, int]]:
    """The files with their rows, matching or not; one that is skipped has none."""
    counts = [(entry, 0) for entry in entries]
    with reported(report):
        for place, entry in enumerate(entries):
            for file in _opened(settled.request, [entry]):
                counts[place] = (file.planned, file.num_rows)
    return counts


def plan_files(
    settled: Settled, target_bytes: int, entries: Sequence[Entry], report: Report
) -> list[ScanPart]:
    """The parts of some files that survive pruning, in order."""
    report.planned_files += len(entries)
    with reported(report, plans=True):
        return list(parts_of(settled.of(entries), target_bytes))


def count_matches(
    settled: Settled, enough: Window, parts: Sequence[ScanPart], report: Report
) -> list[int]:
    """How many rows of each part match, inside a window that is enough.

    Of data pages, only those are read that the indexes leave open.
    """
    with reported(report):
        return [settled.part(part, enough).count() for part in parts]


def read(
    settled: Settled, wanted_parts: Sequence[WantedPart], report: Report
) -> Iterator[pa.RecordBatch]:
    """The rows of some parts, in order."""
    with reported(report):
        for wanted in wanted_parts:
            for batch in settled.part(wanted.part, wanted.window).batches():
                report.rows += batch.num_rows
                yield batch
            report.planned_bytes += wanted.part.bytes
    report.tasks_done += 1


def _opened(request: ScanRequest, entries: Sequence[Entry]) -> Iterator[OpenFile]:
    """Some files, without those that are skipped."""
    corrupt = CorruptFiles(request.skips_corrupt)
    return open_in_order(entries, request.options, lambda: 0, corrupt=corrupt)


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
