"""What comes out: tables, and `RESULTS.md`.

In: the results of a run, or the `record` of many. Out: Markdown that reads as well on a terminal,
one row for each workload, share of a curve or dimension of growth; and, after a run in full size,
all of the record in `RESULTS.md`.
"""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks import THREADS
from benchmarks.curve import Point
from benchmarks.growth import Growth
from benchmarks.memory import Memory
from benchmarks.ours import Plain
from benchmarks.record import Record
from benchmarks.result import FAILED, OTHER_ROWS, OURS, Result

FOLDER = Path(__file__).parent
PACKAGES = ("fretsaw", "pyarrow", "polars", "duckdb", "datafusion", "pyorc", "pyspark", "numpy")
BYTES_GOAL = 1.1
MEMORY_GOAL = 250


def tables(results: Sequence[Result]) -> str:
    """A table for each field of contestants, and why some of them have no time in it."""
    fields = dict.fromkeys(tuple(result.contestants) for result in results)
    parts = []
    for contestants in fields:
        there = [result for result in results if tuple(result.contestants) == contestants]
        parts += [_table(there, contestants), _notes(there)]
    return _joined([*parts, _bytes_table(results)])


def _table(results: Sequence[Result], contestants: Sequence[str]) -> str:
    """One row for each workload: times in milliseconds, the ratio, the goal and the limit."""
    head = ["workload", *(f"{name} ms" for name in contestants)]
    head += ["ratio", "goal", "met", "limit ms", "to limit", "requests", "bytes ratio"]
    return _markdown(head, [_row(result, contestants) for result in results])


def _row(result: Result, contestants: Sequence[str]) -> list[str]:
    times = [_milliseconds(result, name) for name in contestants]
    ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
    goal = f"{result.goal:g}{' s' if result.goal_in_seconds else ''}"
    met = {None: "", True: "yes", False: "no"}[result.met]
    limit = "" if result.limit is None else f"{result.limit * 1e3:.4g}"
    to_limit = "" if result.to_limit is None else _short(result.to_limit)
    reads = result.reads
    work = [str(reads.requests), f"{reads.ratio:.2f}"] if reads else ["", ""]
    return [result.name, *times, ratio, goal, met, limit, to_limit, *work]


def _notes(results: Sequence[Result]) -> str:
    """Why a contestant has no time in the table, a line each."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for name, reason in result.left_out.items():
            reasons.setdefault((name, reason), []).append(result.name)
    return "\n".join(
        f"- {name} in {', '.join(works)}: {reason}" for (name, reason), works in reasons.items()
    )


def _bytes_table(results: Sequence[Result]) -> str:
    """What was read on Spark by each contestant, where that is known."""
    counted = [result for result in results if result.bytes_read]
    if not counted:
        return ""
    names = list(dict.fromkeys(name for result in counted for name in result.bytes_read))
    rows = []
    for result in counted:
        read = [result.bytes_read.get(name) for name in names]
        rows.append([result.name, *("" if n is None else f"{n / 1e6:.3f}" for n in read)])
    return _markdown(["bytes read", *(f"{name} MB" for name in names)], rows)


def memory_table(memory: Mapping[str, Memory]) -> str:
    """Peak memory of a streaming scan of all columns; the goal is for fretsaw's absolute peak."""
    rows = []
    for name, used in memory.items():
        above = f"{used.peak - used.imports:.0f}"
        if name == OURS:
            met = "yes" if used.peak < MEMORY_GOAL else "no"
            rows.append([name, above, f"{used.peak:.0f}", str(MEMORY_GOAL), met])
        else:
            # All peers are imported together, so their absolute peak says nothing.
            rows.append([name, above, "", "", ""])
    return _markdown(["streaming scan", "above imports MB", "peak MB", "goal", "met"], rows)


def curve_tables(points: Sequence[Point]) -> str:
    """A table for each projection, a row for each share of the rows."""
    seen = dict.fromkeys(name for p in points for name in (*p.seconds, *p.wrong))
    names = sorted(seen, key=lambda name: (name != OURS, name != Plain.name))
    tables = []
    for projection in dict.fromkeys(point.projection for point in points):
        head = [f"{projection}, % that match", "rows", *(f"{name} ms" for name in names)]
        head += [f"to {Plain.name}", "to best peer"]
        rows = []
        for point in (point for point in points if point.projection == projection):
            times = [_curve_time(point, name) for name in names]
            ratios = [point.to_plain, point.to_best_peer]
            shown = ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
            rows.append([f"{point.percent:g}", str(point.rows), *times, *shown])
        tables.append(_markdown(head, rows))
    return "\n\n".join(tables)


def growth_table(growths: Sequence[Growth]) -> str:
    """A row for each dimension: its ends, the exponents, and how much of it is planning."""
    head = ["growth", "from", "to", "ms", "ms", "exponent", "planning", "MB", "MB", "exponent"]
    rows = []
    for growth in growths:
        sizes, seconds, megabytes = growth.dimension.sizes, growth.seconds, growth.megabytes
        rows.append(
            [
                growth.dimension.what,
                *(f"{sizes[end]:,}" for end in (0, -1)),
                *(f"{seconds[end] * 1e3:.4g}" for end in (0, -1)),
                f"{growth.exponent(seconds):.2f}",
                f"{growth.planning_share:.0%}",
                *(f"{megabytes[end]:.3g}" for end in (0, -1)),
                f"{growth.exponent(megabytes):.2f}",
            ]
        )
    return _markdown(head, rows)


def write(record: Record, works: Mapping[str, str], path: Path = FOLDER / "RESULTS.md") -> None:
    """What is known of all workloads, when it was found out, what they are and where they ran."""
    listed = "\n".join(f"- `{name}`: {what}" for name, what in works.items())
    days = record.other_days().items()
    since = "\n".join(f"- {', '.join(names)}: of a run on {day}" for day, names in days)
    head = (
        f"# Results of the whole run on {record.date}\n\n"
        if record.date
        else "# Results of single runs\n\n"
    ) + (
        "Written by `make bench`. Best time of several rounds, all contestants in turn in one\n"
        f"run, warm file cache, {THREADS} threads each, everybody checked to return the same\n"
        f"rows. Ratio: {OURS} to the best peer, below 1.0 is ahead. Limit: decompression alone.\n"
        f"Bytes ratio: bytes read to the fewest possible, goal {BYTES_GOAL}."
    )
    places = f"## Workloads\n\n{listed}\n\n## Machine\n\n{record.machine}\n"
    shown = [record.sections[name] for name in works if name in record.sections]
    path.write_text(_joined([head, since, tables(record.results), *shown, places]))


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)


def machine() -> str:
    """Cores, memory and versions, nothing that names it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    there = [package for package in PACKAGES if find_spec(package)]
    versions = ", ".join(f"{package} {version(package)}" for package in there)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB of memory, "
        f"{platform.system()}, Python {platform.python_version()}; {versions}."
    )


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _milliseconds(result: Result, name: str) -> str:
    if name in result.left_out:
        reason = result.left_out[name]
        return "WRONG" if reason == OTHER_ROWS else "FAILED" if reason.startswith(FAILED) else "-"
    seconds = result.seconds.get(name)
    return "" if seconds is None else f"{seconds * 1e3:.4g}"


def _curve_time(point: Point, name: str) -> str:
    if name in point.wrong:
        return "WRONG"
    return f"{point.seconds[name] * 1e3:.4g}" if name in point.seconds else ""


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [_line(head, widths), _line(rule, widths), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    others = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join([first, *others])} |"
