"""The registry: every workload of reading, and everyone who takes part.

In: nothing. Out: `WORKLOADS`, each an entry that names its data, its goal and the call that
every contestant answers, and the contestants themselves. What rows and columns a workload
touches is said here too, so that `pages` can tell the fewest bytes it takes. A new workload is
one entry; if it asks something new, `contestant` gets a method for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa

from benchmarks import data, peers
from benchmarks.contestant import Contestant, RowNumbers
from benchmarks.data import Sample, Scale
from benchmarks.ours import Fretsaw

SUMMED = ("distance", "fare", "tip")
FEW_OF_MANY = ("f00010", "f05000", "f09990")


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing to read, for everybody: `goal` is fretsaw's time over that of the best peer."""

    name: str
    what: str
    goal: float
    sample: Callable[[Scale], Sample]
    run: Callable[[Contestant, Sample], pa.Table]
    rows: Callable[[Sample], RowNumbers] | None = None
    """The rows it needs, sorted; all of them if there is no function."""
    columns: Sequence[str] | None = None
    """The columns it needs; all of them if None."""
    tolerance: float = 0.0
    """How far floats may differ, relatively: sums depend on the order of adding."""


def contestants() -> list[Contestant]:
    """fretsaw, and then the peers."""
    return [
        Fretsaw(),
        peers.ParquetFile(),
        peers.Dataset(),
        peers.Polars(),
        peers.DuckDB(),
        peers.DataFusion(),
    ]


def _trips(codec: str) -> Callable[[Scale], Sample]:
    return partial(data.trips, codec=codec)


def _three_quarters(sample: Sample) -> int:
    return sample.rows * 3 // 4


@cache
def _random_rows(sample: Sample) -> RowNumbers:
    rng = np.random.default_rng(data.SEED)
    return np.sort(rng.choice(sample.rows, 1_000, replace=False)).astype(np.int64)


@cache
def _middle_of_a_file(sample: Sample) -> int:
    """Three quarters of the rows and half a file: not where one begins, which would be easy."""
    return _three_quarters(sample) + sample.rows // len(sample.files) // 2


def _scan(codec: str, goal: float) -> Workload:
    return Workload(
        f"scan-{codec}",
        f"sum of 3 columns, streaming, full file, {codec}",
        goal,
        _trips(codec),
        lambda reader, sample: reader.sums(str(sample.path), SUMMED),
        columns=SUMMED,
        tolerance=1e-9,
    )


WORKLOADS = (
    Workload(
        "offset",
        "skip three quarters of the rows, head 10, all columns",
        0.4,
        _trips("snappy"),
        lambda reader, sample: reader.window(str(sample.path), _three_quarters(sample), 10),
        rows=lambda sample: np.arange(10) + _three_quarters(sample),
    ),
    Workload(
        "tail",
        "last 10 rows, all columns",
        0.4,
        _trips("snappy"),
        lambda reader, sample: reader.tail(str(sample.path), 10),
        rows=lambda sample: np.arange(sample.rows - 10, sample.rows),
    ),
    Workload(
        "take",
        "1,000 row numbers at random, all columns",
        0.5,
        _trips("snappy"),
        lambda reader, sample: reader.take(str(sample.path), _random_rows(sample)),
        rows=_random_rows,
    ),
    _scan("snappy", 1.0),
    _scan("zstd", 1.0),
    _scan("gzip", 0.6),
    Workload(
        "wide",
        "3 of 10,000 columns",
        1.0,
        data.wide,
        lambda reader, sample: reader.read(str(sample.path), FEW_OF_MANY),
        columns=FEW_OF_MANY,
    ),
    Workload(
        "nested",
        "2,000 rows from three quarters in, all columns: lists of structs, maps, structs",
        0.5,
        data.events,
        lambda reader, sample: reader.window(str(sample.path), _three_quarters(sample), 2_000),
        rows=lambda sample: np.arange(2_000) + _three_quarters(sample),
    ),
    Workload(
        "lake-window",
        "200 files in Hive folders: skip three quarters of the rows, head 1,000, all columns",
        0.5,
        data.lake,
        lambda reader, sample: reader.folder_window(
            str(sample.path), data.LAKE_KEY, _middle_of_a_file(sample), 1_000
        ),
        rows=lambda sample: np.arange(1_000) + _middle_of_a_file(sample),
    ),
    Workload(
        "lake-plan",
        "200 files in Hive folders: how many rows, which is planning alone",
        0.5,
        data.lake,
        lambda reader, sample: reader.folder_count(str(sample.path), data.LAKE_KEY),
        columns=(),
    ),
)
