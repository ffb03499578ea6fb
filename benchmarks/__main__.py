"""The command line: which workloads, whose, how large; then the table and the picture.

In: arguments, see `python -m benchmarks --help`. Out: tables on standard output, progress on
standard error, `results.png`, `curve.png`, `growth.png`, and `RESULTS.md` after a full run. The
exit status is 1 if anybody returned wrong rows, never because of a missed goal.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import pyarrow as pa

from benchmarks import THREADS, pictures, report
from benchmarks.contestant import Contestant, Unsupported
from benchmarks.curve import PERCENTS, Point, measure_curve
from benchmarks.data.store import FULL, QUICK, Scale
from benchmarks.data.trips import trips
from benchmarks.field import contestants, orc_contestants
from benchmarks.growth import DIMENSIONS, Growth, measure_growth
from benchmarks.imports import measure_import
from benchmarks.measure import measure
from benchmarks.memory import measure_memory
from benchmarks.on_spark import OnSpark
from benchmarks.ours import Plain
from benchmarks.result import OURS, Result
from benchmarks.workloads import WORKLOADS

IMPORT, MEMORY, CURVE, GROWTH = "import", "memory", "curve", "growth"
FULL_BUDGET, QUICK_BUDGET = 2.0, 1.0  # seconds of timed runs for each contestant


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _arguments()
    if arguments.list:
        for name, what in _catalogue().items():
            print(f"{name:12} {what}")
        return 0
    pa.set_cpu_count(THREADS)
    if os.getloadavg()[0] > 0.5:
        _say("the machine is busy with other things, which makes times longer and less fair")
    names = _chosen(arguments.work)
    readers = [reader for reader in contestants() if _wanted(reader.name, arguments.only)]
    in_process = [reader for reader in readers if not isinstance(reader, OnSpark)]
    scale, budget = (QUICK, QUICK_BUDGET) if arguments.quick else (FULL, FULL_BUDGET)

    results: list[Result] = []
    for workload in WORKLOADS:
        if workload.name in names:
            _say(f"{workload.name} ...")
            own = workload.contestants and workload.contestants()
            able = [r for r in own if _wanted(r.name, arguments.only)] if own else readers
            try:
                results.append(measure(workload, able, scale, budget))
            except Unsupported as reason:
                _say(f"{workload.name} is left out: {reason}")
    named = [*readers, *(r for r in orc_contestants() if _wanted(r.name, arguments.only))]
    taking_part = list(dict.fromkeys(reader.name for reader in named))
    if IMPORT in names:
        _say(f"{IMPORT} ...")
        results.append(measure_import(taking_part, budget))
    parts = [report.table(results, taking_part), report.notes(results)] if results else []
    parts.append(report.bytes_table(results))
    if MEMORY in names and sys.platform == "linux":
        _say(f"{MEMORY} ...")
        parts.append(report.memory_table(measure_memory(in_process, trips(scale, "snappy").path)))
    points: list[Point] = []
    if CURVE in names:
        lines = [*in_process, *([Plain()] if _wanted(Plain.name, arguments.only) else [])]
        points = _curve(lines, scale, budget / 2)
        parts.append(report.curve_tables(points))
    if GROWTH in names and _wanted(OURS, arguments.only):
        parts.append(report.growth_table(_growths(budget / 4)))

    text = "\n\n".join(part for part in parts if part)
    print(text)
    report.draw(results)
    everything = not (arguments.quick or arguments.work or arguments.only)
    if everything or arguments.write:
        works = {name: what for name, what in _catalogue().items() if name in names}
        report.write(text, works)
    wrong = any(result.wrong for result in results) or any(point.wrong for point in points)
    return 1 if wrong else 0


def _curve(lines: Sequence[Contestant], scale: Scale, budget: float) -> list[Point]:
    points = []
    for point in measure_curve(lines, scale, budget):
        _say(f"{CURVE}: {point.projection}, {point.percent:g}% done")
        points.append(point)
    pictures.draw_curve(points)
    return points


def _growths(budget: float) -> list[Growth]:
    growths = []
    for growth in measure_growth(budget):
        _say(f"{GROWTH}: {growth.dimension.name} done")
        growths.append(growth)
    pictures.draw_growth(growths)
    return growths


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--work", type=_names, help="workloads, or groups of them: scan,take")
    parser.add_argument("--only", type=_names, help="contestants: polars,duckdb")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--list", action="store_true", help="name the workloads and stop")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md in any case")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _catalogue() -> dict[str, str]:
    """Every workload there is, and what it does."""
    return {
        **{workload.name: workload.what for workload in WORKLOADS},
        IMPORT: f"import {OURS} against import pyarrow.parquet, numpy",
        MEMORY: "peak memory of a streaming scan of all columns",
        CURVE: f"a predicate that {PERCENTS[0]} to {PERCENTS[-1]}% match, of 3 and of all columns",
        GROWTH: f"time and memory against {', '.join(one.name for one in DIMENSIONS)}",
    }


def _chosen(work: Sequence[str] | None) -> list[str]:
    """The workloads of these names; `scan` means all whose name begins with `scan-`."""
    known = list(_catalogue())
    if not work:
        return known
    chosen = [k for k in known if any(k == name or k.startswith(f"{name}-") for name in work)]
    if not chosen:
        sys.exit(f"no such workload: {', '.join(work)}; there are {', '.join(known)}")
    return chosen


def _wanted(name: str, only: Sequence[str] | None) -> bool:
    return not only or name in only


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
