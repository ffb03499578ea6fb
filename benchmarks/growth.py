"""How fretsaw's time and memory grow with the rows that match and with the shape of the files.

In: the dimensions, each with its sizes over two decades or more and a scan of a seeded grid for
each size. Out: a `Growth` for each: seconds of the whole and of planning alone, megabytes at the
peak, and the exponents of the last sizes: 1 is linear, above it something is done too often. Linux
only, as `memory`; the module is also what a process runs in which memory is measured.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fretsaw as fs
from benchmarks.data import grids
from benchmarks.data.store import Sample
from benchmarks.memory import resident
from benchmarks.race import race, timer

FITTED = 3  # sizes that an exponent is fitted to, the largest ones: small ones are all overhead
ROWS, PAGE, COLUMNS = 1_000_000, 20_000, 5
FEW = fs.col("chance") < 10_000  # one in a hundred, at random
LEAST_MEGABYTES = 0.1  # less is noise


@dataclass(frozen=True, slots=True)
class Dimension:
    """Something that grows, and the scan of each size of it."""

    name: str
    what: str
    sizes: Sequence[int]
    scan: Callable[[int], fs.Scan]


@dataclass(frozen=True, slots=True)
class Growth:
    """What a dimension came to, a number for each size."""

    dimension: Dimension
    seconds: Sequence[float]
    planning: Sequence[float]
    """Seconds of `plan()` alone."""
    megabytes: Sequence[float]

    @property
    def planning_share(self) -> float:
        """Planning over the whole, of the largest size."""
        return self.planning[-1] / self.seconds[-1]

    def exponent(self, costs: Sequence[float]) -> float:
        """The slope of costs over sizes, both as logarithms, at the large end."""
        sizes = np.log(self.dimension.sizes[-FITTED:])
        return float(np.polyfit(sizes, np.log(costs[-FITTED:]), 1)[0])


def measure_growth(budget: float) -> Iterator[Growth]:
    """Every dimension as soon as it is known; `budget` is of seconds for each time in it."""
    for dimension in DIMENSIONS:
        scans = [dimension.scan(size) for size in dimension.sizes]
        times = [race({"all": timer(s.to_arrow), "plan": timer(s.plan)}, budget) for s in scans]
        yield Growth(
            dimension,
            [time["all"] for time in times],
            [time["plan"] for time in times],
            [_peak(dimension, size) for size in dimension.sizes],
        )


def _peak(dimension: Dimension, size: int) -> float:
    """Megabytes that a scan takes at its peak, in a process of its own."""
    place = DIMENSIONS.index(dimension)
    command = [sys.executable, "-m", __name__, str(place), str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def _peak_here(dimension: Dimension, size: int) -> float:
    """What the process holds at most, above what it holds after a scan of the smallest size."""
    dimension.scan(dimension.sizes[0]).to_arrow()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    table = dimension.scan(size).to_arrow()
    after = resident("VmHWM")
    del table
    return max(after - before, LEAST_MEGABYTES)


def _large() -> fs.Scan:
    return fs.scan(str(grids.grid(4, ROWS // 4, PAGE, COLUMNS).path))


def _few_of(sample: Sample) -> fs.Scan:
    return fs.scan(str(sample.path)).filter(FEW)


DIMENSIONS = (
    Dimension(
        "rows in a run",
        f"rows that match, one after the other, of {ROWS:,} in 4 row groups",
        (100, 1_000, 10_000, 100_000, 1_000_000),
        lambda size: _large().filter(fs.col("key") < size),
    ),
    Dimension(
        "rows at random",
        f"rows that match, here and there, of {ROWS:,} in 4 row groups",
        (50, 500, 5_000, 50_000, 500_000),
        lambda size: _large().filter(fs.col("chance") < size),
    ),
    Dimension(
        "row groups",
        "row groups of 1,000 rows each, of which 1% match",
        (1, 5, 20, 100, 500),
        lambda size: _few_of(grids.grid(size, 1_000, PAGE, COLUMNS)),
    ),
    Dimension(
        "pages",
        "pages of 200 rows each in one row group, of which 1% match",
        (1, 6, 32, 178, 1_000),
        lambda size: _few_of(grids.grid(1, size * 200, 200, COLUMNS)),
    ),
    Dimension(
        "columns",
        "columns, all of them read, of 1,000 rows, of which 1% match",
        (10, 41, 173, 720, 3_000),
        lambda size: _few_of(grids.grid(1, 1_000, PAGE, size)),
    ),
    Dimension(
        "files",
        "files of 1,000 rows each, of which 1% match",
        (1, 5, 20, 100, 500),
        lambda size: _few_of(grids.grids(size, 1_000, COLUMNS)),
    ),
)

if __name__ == "__main__":
    print(_peak_here(DIMENSIONS[int(sys.argv[1])], int(sys.argv[2])))
