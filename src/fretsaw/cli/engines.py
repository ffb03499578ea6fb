"""Who does the work: this process, or Spark. Both give the same rows, in the same order.

An engine is opened for the options of a command, and says at any time what it has read so far.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from fretsaw.cli.options import CommandOptions
from fretsaw.cli.progress import Status
from fretsaw.cli.reads import Reads
from fretsaw.errors import CorruptFileWarning, FretsawError
from fretsaw.model.trace import trace

if TYPE_CHECKING:
    from fretsaw.cli.output import Target


class Engine(Protocol):
    """What a command needs of an engine."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, streamed."""

    def count(self) -> int:
        """How many rows there are."""

    def write(self, target: "Target") -> None:
        """The rows as a file or a directory of files, complete or absent."""

    def explain(self, run: bool) -> str:
        """What would be read, and with `run` what was, as text."""

    def status(self) -> Status:
        """What was done so far."""


@dataclass(frozen=True, slots=True)
class Engines:
    """Opens the engine that was asked for."""

    on_spark: bool
    master: str | None = None
    """Where Spark runs, if spark-submit has not settled that."""
    quiet: bool = False
    """Whether nobody wants to know what is read."""

    @contextmanager
    def open(self, options: CommandOptions) -> Iterator[Engine]:
        """An engine for what is asked for."""
        if self.on_spark:
            with _on_spark(options, self.master) as engine:
                yield engine
        elif self.quiet:
            yield Local(options, None)
        else:
            # The summary says what was skipped.
            warnings.simplefilter("ignore", CorruptFileWarning)
            with trace() as traced:
                reads = Reads(traced, options.files(), reads_all=not options.has_window)
                yield Local(options, reads)


def is_submitted() -> bool:
    """Whether spark-submit started this process: then stderr goes where stdout goes."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _on_spark(options: CommandOptions, master: str | None) -> AbstractContextManager[Engine]:
    try:
        from fretsaw.cli.spark import on_spark
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("fretsaw"):
            raise
        raise FretsawError(
            f"there is no {missing.name} for --engine spark: pip install 'fretsaw[spark]'"
        ) from None
    return on_spark(options, master)


class Local:
    """Reads in this process."""

    def __init__(self, options: CommandOptions, reads: Reads | None) -> None:
        self._options = options
        self._scan = options.scan()
        self._reads = reads
        self._rows = 0

    @property
    def schema(self) -> pa.Schema:
        return self._scan.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._scan.batches():
            self._rows += batch.num_rows
            if self._reads is not None:
                self._reads.sum_up()
            yield batch

    def count(self) -> int:
        self._rows = self._scan.count()
        return self._rows

    def write(self, target: "Target") -> None:
        from fretsaw.cli.output import write_target

        write_target(
            self.batches(), self.schema, self._options.files(), target, self._options.access
        )

    def explain(self, run: bool) -> str:
        return self._scan.explain(run)

    def status(self) -> Status:
        return Status() if self._reads is None else self._reads.status(self._rows)
