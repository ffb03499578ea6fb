"""The command line: which workloads, whose, how large; then the table and the picture.

In: arguments, see `python -m benchmarks --help`. Out: tables on standard output, progress on
standard error, and `results.png`, `curve.png`, `growth.png`; in full size and with all contestants
also `RESULTS.md`, as a whole or in the rows of these workloads. The
exit status is 1 if anybody returned wrong rows, never because of a missed goal.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from time import perf_counter

import pyarrow as pa

from benchmarks import THREADS, pictures, record, report
from benchmarks.contestant import Contestant, Unsupported
from benchmarks.curve import PERCENTS, Point, measure_curve
from benchmarks.data.store import FULL, QUICK, Scale
from benchmarks.data.trips import trips
from benchmarks.field import contestants
from benchmarks.growth import DIMENSIONS, Growth, measure_growth
from benchmarks.imports import measure_import
from benchmarks.measure import measure
from benchmarks.memory import measure_memory
from benchmarks.on_spark import OnSpark
from benchmarks.ours import Plain
from benchmarks.result import OURS, Result
from benchmarks.workloads import WORKLOADS

IMPORT, MEMORY, CURVE, GROWTH = "import", "memory", "curve", "growth"
FULL_BUDGET, QUICK_BUDGET = 1.5, 1.0  # seconds of timed runs for each contestant


def main() -> int:
    """Run what the arguments ask for."""
    arguments = _arguments()
    if arguments.list:
        for name, what in _catalogue().items():
            print(f"{name:16} {what}")
        return 0
    pa.set_cpu_count(THREADS)
    if os.getloadavg()[0] > 0.5:
        _say("the machine is busy with other things, which makes times longer and less fair")
    started = perf_counter()
    names = _chosen(arguments.work)
    scale = QUICK if arguments.quick else FULL
    budget = arguments.budget or (QUICK_BUDGET if arguments.quick else FULL_BUDGET)
    results = _results(names, arguments.only, scale, budget)
    sections, curve_is_right = _sections(names, arguments.only, scale, budget)
    print("\n\n".join(part for part in (report.tables(results), *sections.values()) if part))
    is_kept = not (arguments.quick or arguments.only)
    known = _remember(results, sections, not arguments.work) if is_kept else results
    pictures.draw_ratios(known)
    _say(f"{(perf_counter() - started) / 60:.1f} minutes")
    return 1 if any(result.wrong for result in results) or not curve_is_right else 0


def _results(
    names: Sequence[str], only: Sequence[str] | None, scale: Scale, budget: float
) -> list[Result]:
    results: list[Result] = []
    for workload in WORKLOADS:
        if workload.name in names:
            started = perf_counter()
            able = (workload.contestants or contestants)()
            able = [reader for reader in able if _wanted(reader.name, only)]
            try:
                results.append(measure(workload, able, scale, budget))
            except Unsupported as reason:
                _say(f"{workload.name} is left out: {reason}")
            _say(f"{workload.name}: {perf_counter() - started:.0f} s")
    if IMPORT in names:
        _say(f"{IMPORT} ...")
        results.append(measure_import(only, budget))
    return results


def _sections(
    names: Sequence[str], only: Sequence[str] | None, scale: Scale, budget: float
) -> tuple[dict[str, str], bool]:
    """The tables of what is more than a ratio, and whether all rows in them were right."""
    readers = [r for r in contestants() if _wanted(r.name, only) and not isinstance(r, OnSpark)]
    sections: dict[str, str] = {}
    points: list[Point] = []
    if sys.platform != "linux":
        names = [name for name in names if name not in (MEMORY, GROWTH)]
    if MEMORY in names:
        _say(f"{MEMORY} ...")
        used = measure_memory(readers, trips(scale, "snappy").path)
        sections[MEMORY] = report.memory_table(used)
    if CURVE in names:
        lines = [*readers, *([Plain()] if _wanted(Plain.name, only) else [])]
        points = _curve(lines, scale, budget / 2)
        sections[CURVE] = report.curve_tables(points)
    if GROWTH in names and _wanted(OURS, only):
        sections[GROWTH] = report.growth_table(_growths(budget / 4))
    return sections, not any(point.wrong for point in points)


def _remember(
    results: Sequence[Result], sections: Mapping[str, str], is_whole: bool
) -> Sequence[Result]:
    """Write down what was found out, and return the results of all runs."""
    today = date.today().isoformat()
    machine = report.machine()
    before = record.Record(today, machine) if is_whole else record.load(machine)
    now = before.with_run(today, results, sections, list(_catalogue()))
    record.save(now)
    report.write(now, _catalogue())
    return now.results


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
    parser.add_argument("--budget", type=float, help="seconds of timed runs for each contestant")
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
