"""What the tasks of a job read and skipped, gathered on the driver."""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from pyspark.accumulators import AccumulatorParam

from fretsaw.errors import CorruptFileWarning
from fretsaw.model.trace import trace


@dataclass(slots=True)
class Report:
    """What was read; each task adds its own when it ends."""

    rows: int = 0
    bytes_read: int = 0
    requests: int = 0
    pages_decoded: int = 0
    fallbacks: int = 0
    pruned: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What planning ruled out: how many files, blocks or pages, by which source."""
    planned_files: int = 0
    """Files whose footers were read to plan."""
    planned_bytes: int = 0
    """Of the bytes that were planned to be read, how many belong to parts that are done."""
    tasks_done: int = 0
    """Tasks that read parts of the result."""
    skipped: list[str] = field(default_factory=list)
    """The files that could not be read, or not to their end, and why."""

    def skip(self, why: str) -> None:
        """Note that a file was left out; several passes may meet the same one."""
        if why not in self.skipped:
            self.skipped.append(why)

    def __iadd__(self, other: "Report") -> "Report":
        for each in fields(self):
            if each.name != "skipped":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        for why in other.skipped:
            self.skip(why)
        return self


class Reports(AccumulatorParam[Report]):
    """How Spark adds reports up."""

    def zero(self, value: Report) -> Report:
        return Report()

    def addInPlace(self, value1: Report, value2: Report) -> Report:  # noqa: N802
        value1 += value2
        return value1


@contextmanager
def reported(report: Report, plans: bool = False) -> Iterator[None]:
    """Add to a report what is read inside; where it plans, also what it rules out."""
    with trace() as traced, warnings.catch_warnings():
        # Whoever reads the report learns of them, once for all tasks.
        warnings.simplefilter("ignore", CorruptFileWarning)
        try:
            yield
        finally:
            for skipped in traced.skipped:
                report.skip(skipped.reason)
            report.bytes_read += traced.bytes_read
            report.requests += traced.requests
            report.pages_decoded += traced.pages_decoded
            report.fallbacks += len(traced.fallbacks)
            for decision in traced.pruned if plans else ():
                if decision.dropped:
                    report.pruned[decision.level, decision.source] += decision.dropped
