"""What a workload is, and what the makers of workloads share.

What rows and columns a workload touches, and the condition that finds them, is said in it too, so
that `pages` can tell the fewest bytes it takes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from benchmarks.conditions import Condition, Tested
from benchmarks.contestant import Contestant, RowNumbers
from benchmarks.data.store import SEED, Sample, Scale
from benchmarks.peers.arrow import ARROW

INSIDE = 7_000  # rows from where a row group begins to the inside of a page


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing to read, for everybody."""

    name: str
    what: str
    goal: float
    """fretsaw's time over that of the best peer, or seconds if `goal_in_seconds`."""
    sample: Callable[[Scale], Sample]
    run: Callable[[Contestant, Sample], pa.Table]
    rows: Callable[[Sample], RowNumbers] | None = None
    """The rows it needs, sorted; all of them if there is no function."""
    columns: Sequence[str] | None = None
    """The columns it needs; all of them if None."""
    tolerance: float = 0.0
    """How far floats may differ, relatively: sums depend on the order of adding."""
    where: Callable[[Sample], Tested] | None = None
    """The condition that finds its rows in the files."""
    window: Literal["head", "tail"] | None = None
    """Whether its rows are the first or the last that match."""
    files: Callable[[Sample], Sequence[Path]] = lambda sample: sample.files
    """The files it needs."""
    contestants: Callable[[], list[Contestant]] | None = None
    """Who takes part, if not those of Parquet files."""
    goal_in_seconds: bool = False
    ordered: bool = True
    """Whether the rows must come in the order of the files."""


def three_quarters(sample: Sample) -> int:
    """The number of a row three quarters in."""
    return sample.rows * 3 // 4


def inside(sample: Sample) -> int:
    """A row three quarters in, and not where a row group or a page begins."""
    return three_quarters(sample) + INSIDE


@cache
def random_rows(sample: Sample) -> RowNumbers:
    """1,000 rows at random, in order."""
    rng = np.random.default_rng(SEED)
    return np.sort(rng.choice(sample.rows, 1_000, replace=False)).astype(np.int64)


@cache
def matching(sample: Sample, where: Condition) -> RowNumbers:
    """The rows that match, found by reading the whole columns."""
    table = pa.concat_tables(_columns(file, where.columns) for file in sample.files)
    numbered = table.append_column("row", pa.array(np.arange(len(table))))
    rows: RowNumbers = numbered.filter(where.of(ARROW))["row"].to_numpy()
    return rows


def _columns(file: Path, names: Sequence[str]) -> pa.Table:
    read = orc.read_table if file.suffix == ".orc" else pq.read_table
    return read(file, columns=list(names))


def _all_rows(reader: Contestant, path: str, where: Condition) -> pa.Table:
    return reader.filter(path, where)


def _one_row(reader: Contestant, path: str, where: Condition) -> pa.Table:
    return reader.find(path, where)


def filter_workload(
    name: str,
    what: str,
    goal: float,
    sample: Callable[[Scale], Sample],
    where: Callable[[Sample], Condition],
    run: Callable[[Contestant, str, Condition], pa.Table] = _all_rows,
    part: slice = slice(None),
    window: Literal["head", "tail"] | None = None,
    columns: Sequence[str] | None = None,
) -> Workload:
    """What needs the rows that match a condition, or a part of them."""
    return Workload(
        name,
        what,
        goal,
        sample,
        lambda reader, sample: run(reader, str(sample.path), where(sample)),
        rows=lambda sample: matching(sample, where(sample))[part],
        columns=columns,
        where=where,
        window=window,
    )
