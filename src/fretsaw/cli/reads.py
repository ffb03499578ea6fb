"""What a scan in this process has read so far: a trace, counted as it grows and then forgotten.

A trace keeps every read; a scan of many files makes millions of them. The files of the scan, one
behind the other, are also the way that it goes: its latest read of data says how far it is.
"""

import os
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from fretsaw.cli.progress import Status, left_out, was_skipped
from fretsaw.model.trace import Trace
from fretsaw.storage.listing import Entry
from fretsaw.storage.source import Version, source_name

T = TypeVar("T")


class Reads:
    """The reads of a trace, summed up."""

    def __init__(self, trace: Trace, files: Sequence[Entry], reads_all: bool) -> None:
        self._trace = trace
        self._begins: dict[str, int] = {}
        """Where each file would begin if they were one."""
        self._total = 0
        for file in files:
            self._begins[source_name(file.origin)] = self._total
            self._total += file_size(file)
        self._reads_all = reads_all
        self._lock = threading.Lock()
        self._bytes = 0
        self._requests = 0
        self._reached = 0
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._skipped: dict[str, None] = {}

    def status(self, rows: int) -> Status:
        """What was read until now, for so many rows."""
        self.sum_up()
        with self._lock:
            known = self._reads_all and self._total > 0
            return Status(
                rows,
                self._bytes,
                self._total,
                self._requests,
                share=self._reached / self._total if known else None,
                left_out=[*left_out(self._left_out), *map(was_skipped, self._skipped)],
            )

    def sum_up(self) -> None:
        """Count what was read since the last time, and forget the reads."""
        with self._lock:
            for event in _taken(self._trace.log):
                self._requests += 1
                self._bytes += event.length
                if event.why == "data":
                    place = self._begins.get(event.path, 0) + event.offset + event.length
                    self._reached = max(self._reached, place)
            for skipped in _taken(self._trace.skipped):
                self._skipped[skipped.reason] = None
            for decision in _taken(self._trace.pruned):
                if decision.dropped:
                    self._left_out[decision.level, decision.source] += decision.dropped


def _taken(items: list[T]) -> list[T]:
    """What was in a list to which others append meanwhile."""
    taken = items[:]
    del items[: len(taken)]
    return taken


def file_size(file: Entry) -> int:
    """How many bytes a file has; one that is not there is for others to complain about."""
    if isinstance(file.identity, Version):
        return file.identity.size
    path = str(file.origin)
    return os.path.getsize(path) if os.path.exists(path) else 0
