"""One workload: the check that all return the same rows, times, bytes read and the limit.

In: a workload and its contestants. Out: a `Result`, the best time of each and what else there
is to say.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from benchmarks import ours
from benchmarks.contestant import Contestant, Unsupported
from benchmarks.data.store import Sample, Scale
from benchmarks.limit import measure_limit
from benchmarks.need import Need
from benchmarks.on_spark import OnSpark
from benchmarks.pages import least_of_parquet
from benchmarks.race import HOPELESS, Timer, race, timer
from benchmarks.result import FAILED, OTHER_ROWS, OURS, Reads, Result
from benchmarks.same import same_rows
from benchmarks.strides import least_of_orc
from benchmarks.workloads.workload import Workload

WARM_UPS = 2  # runs on Spark before those that count, besides the one that is checked
WARM_SECONDS = 3.0  # a run that takes longer compiles what it needs by itself


def measure(
    workload: Workload, contestants: Sequence[Contestant], scale: Scale, budget: float
) -> Result:
    """Check that all return the same rows, time those who do, count what fretsaw reads."""
    sample = workload.sample(scale)
    left_out = _check(workload, contestants, sample)
    able = {reader.name: reader for reader in contestants if reader.name not in left_out}
    timers = {name: _timer(workload, reader, sample) for name, reader in able.items()}
    seconds = race(timers, budget, HOPELESS)
    result = Result(
        workload.name,
        workload.what,
        workload.goal,
        seconds,
        [reader.name for reader in contestants],
        left_out,
        goal_in_seconds=workload.goal_in_seconds,
    )
    if OURS not in able:
        return result
    need = _least(workload, sample)
    if not isinstance(able[OURS], OnSpark):
        counts = {OURS: ours.traced(partial(workload.run, able[OURS], sample))}
        bytes_read: dict[str, int] = {}
        limit = measure_limit(need.pieces, budget)
    else:
        limit = None
        there = {name: reader for name, reader in able.items() if isinstance(reader, OnSpark)}
        run = partial(_run, workload, sample)
        counts = {name: reader.reads(run) for name, reader in there.items()}
        bytes_read = {name: count for name, (_, count) in counts.items()}
    reads = Reads(*counts[OURS], need.bytes)
    return replace(result, reads=reads, bytes_read=bytes_read, limit=limit)


def _timer(workload: Workload, reader: Contestant, sample: Sample) -> Timer:
    call = partial(workload.run, reader, sample)
    if not isinstance(reader, OnSpark):
        return timer(call)
    timed = timer(call, reader.forget)
    for _ in range(WARM_UPS):
        if timed() > WARM_SECONDS:
            break
    return timed


def _run(workload: Workload, sample: Sample, reader: Contestant) -> pa.Table:
    return workload.run(reader, sample)


def _least(workload: Workload, sample: Sample) -> Need:
    rows = workload.rows(sample) if workload.rows else None
    where = workload.where(sample) if workload.where else None
    files = workload.files(sample)
    if sample.path.suffix != ".orc":
        return least_of_parquet(files, rows, workload.columns, where, workload.window)
    (file,) = files
    return least_of_orc(file, rows, workload.columns, where)


def _check(workload: Workload, contestants: Sequence[Contestant], sample: Sample) -> dict[str, str]:
    """Who is left out, and why: has no way to do it, or returns other rows."""
    answers: dict[str, pa.Table] = {}
    left_out: dict[str, str] = {}
    for reader in contestants:
        try:
            table = workload.run(reader, sample)
            answers[reader.name] = table if workload.ordered else _in_order(table)
        except Unsupported as reason:
            left_out[reader.name] = str(reason)
        except Exception as error:  # one that fails must not end a run of all
            left_out[reader.name] = f"{FAILED} {type(error).__name__}: {str(error).splitlines()[0]}"
    expected = next((table for name, table in answers.items() if name not in ours.OWN), None)
    if expected is not None:
        for name, table in answers.items():
            if not same_rows(table, expected, workload.tolerance):
                left_out[name] = OTHER_ROWS
    return left_out


def _in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])
