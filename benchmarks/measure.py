"""Timing side by side, the same-rows check, bytes read and the time of imports.

In: a workload and its contestants. Out: a `Result`, the best time of each and what else there
is to say. Contestants run in turn, in an order that changes with every round, so that whatever
else the machine does meets them all; only the best time of each counts. Imports are timed in
fresh processes, where nothing has been loaded before.
"""

import gc
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks import ours
from benchmarks.contestant import Contestant, Unsupported
from benchmarks.data.store import Sample, Scale
from benchmarks.on_spark import OnSpark
from benchmarks.pages import least_bytes
from benchmarks.strides import least_orc_bytes
from benchmarks.workloads.workload import Workload

OURS = ours.Fretsaw.name
OTHER_ROWS = "WRONG: other rows than the first peer returns"
MIN_ROUNDS = 5
MIN_ROUNDS_IF_SLOW = 3
MAX_ROUNDS = 200
WARM_UPS = 2  # runs on Spark before those that count, besides the one that is checked
IMPORT_GOAL = 1.25
IMPORTS = {OURS: "import fretsaw", "pyarrow": "import pyarrow.parquet, numpy"}
IMPORT_SCRIPT = """
from time import perf_counter
start = perf_counter()
{statement}
print(perf_counter() - start)
"""

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Reads:
    """What fretsaw read, and the fewest bytes with which it could have been done."""

    requests: int
    bytes_read: int
    bytes_needed: int

    @property
    def ratio(self) -> float:
        """Bytes read over the fewest possible."""
        return self.bytes_read / self.bytes_needed


@dataclass(frozen=True, slots=True)
class Result:
    """What one workload came to: the best seconds of each contestant, and why some have none."""

    name: str
    what: str
    goal: float
    """The ratio to reach, or seconds if `goal_in_seconds`."""
    seconds: Mapping[str, float]
    left_out: Mapping[str, str] = field(default_factory=dict)
    reads: Reads | None = None
    goal_in_seconds: bool = False
    bytes_read: Mapping[str, int] = field(default_factory=dict)
    """What each contestant read, where that is known of the peers too: on Spark."""

    @property
    def ratio(self) -> float | None:
        """fretsaw's time over that of the best peer."""
        peers = [seconds for name, seconds in self.seconds.items() if name not in ours.OWN]
        if OURS not in self.seconds or not peers:
            return None
        return self.seconds[OURS] / min(peers)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None if there is nothing to hold against it."""
        reached = self.seconds.get(OURS) if self.goal_in_seconds else self.ratio
        return None if reached is None else reached <= self.goal

    @property
    def wrong(self) -> bool:
        """Whether anybody returned other rows than the first peer."""
        return OTHER_ROWS in self.left_out.values()


def measure(
    workload: Workload, contestants: Sequence[Contestant], scale: Scale, budget: float
) -> Result:
    """Check that all return the same rows, time those who do, count what fretsaw reads."""
    sample = workload.sample(scale)
    left_out = _check(workload, contestants, sample)
    able = {reader.name: reader for reader in contestants if reader.name not in left_out}
    timers = {name: _timer(workload, reader, sample) for name, reader in able.items()}
    seconds = race(timers, budget)
    result = Result(
        workload.name,
        workload.what,
        workload.goal,
        seconds,
        left_out,
        goal_in_seconds=workload.goal_in_seconds,
    )
    if OURS not in able:
        return result
    if not isinstance(able[OURS], OnSpark):
        counts = {OURS: ours.traced(partial(workload.run, able[OURS], sample))}
        bytes_read: dict[str, int] = {}
    else:
        there = {name: reader for name, reader in able.items() if isinstance(reader, OnSpark)}
        run = partial(_run, workload, sample)
        counts = {name: reader.reads(run) for name, reader in there.items()}
        bytes_read = {name: count for name, (_, count) in counts.items()}
    reads = Reads(*counts[OURS], _least_bytes(workload, sample))
    return replace(result, reads=reads, bytes_read=bytes_read)


def measure_import(names: Sequence[str], budget: float) -> Result:
    """How long the first import takes, in processes that have loaded nothing yet."""
    timers = {
        name: _import_timer(statement) for name, statement in IMPORTS.items() if name in names
    }
    what = "`import fretsaw` against `import pyarrow.parquet, numpy`"
    for timed in timers.values():
        timed()  # compiles what is not compiled yet
    return Result("import", what, IMPORT_GOAL, race(timers, 3 * budget))


def race(timers: Mapping[str, Timer], budget: float) -> dict[str, float]:
    """The best of several rounds for each: until its `budget` of seconds is used up."""
    times: dict[str, list[float]] = {name: [] for name in timers}
    order = random.Random(0)
    running = list(timers)
    gc.collect()
    gc.disable()
    try:
        while running:
            order.shuffle(running)
            for name in running:
                times[name].append(timers[name]())
            running = [name for name in running if not _enough(times[name], budget)]
    finally:
        gc.enable()
    return {name: min(of_one) for name, of_one in times.items()}


def _enough(times: Sequence[float], budget: float) -> bool:
    rounds, spent = len(times), sum(times)
    return (
        rounds >= MAX_ROUNDS
        or (rounds >= MIN_ROUNDS and spent >= budget)
        or (rounds >= MIN_ROUNDS_IF_SLOW and spent >= 2 * budget)
    )


def timer(call: Callable[[], object], forget: Callable[[], None] = ours.forget) -> Timer:
    """Times a call, for which nothing is kept from the one before."""

    def timed() -> float:
        forget()
        start = perf_counter()
        result = call()
        seconds = perf_counter() - start
        del result  # freeing it is nobody's work
        return seconds

    return timed


def _timer(workload: Workload, reader: Contestant, sample: Sample) -> Timer:
    call = partial(workload.run, reader, sample)
    if not isinstance(reader, OnSpark):
        return timer(call)
    for _ in range(WARM_UPS):
        call()
    return timer(call, reader.forget)


def _run(workload: Workload, sample: Sample, reader: Contestant) -> pa.Table:
    return workload.run(reader, sample)


def _least_bytes(workload: Workload, sample: Sample) -> int:
    rows = workload.rows(sample) if workload.rows else None
    where = workload.where(sample) if workload.where else None
    files = workload.files(sample)
    if sample.path.suffix == ".orc":
        return sum(least_orc_bytes(file, rows, workload.columns, where) for file in files)
    return least_bytes(files, rows, workload.columns, where, workload.window)


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
    expected = next((table for name, table in answers.items() if name not in ours.OWN), None)
    if expected is not None:
        for name, table in answers.items():
            if not same_rows(table, expected, workload.tolerance):
                left_out[name] = OTHER_ROWS
    return left_out


def _in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])


def same_rows(one: pa.Table, other: pa.Table, tolerance: float) -> bool:
    """Equal in names, order, values and nulls, whatever flavour of type holds them."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    return all(
        _same_values(_plain(left), _plain(right), tolerance)
        for left, right in zip(one.columns, other.columns, strict=True)
    )


def _same_values(one: pa.Array, other: pa.Array, tolerance: float) -> bool:
    if tolerance and pa.types.is_floating(one.type):
        return np.allclose(one, other, rtol=tolerance, atol=0.0, equal_nan=True)
    return bool(one.equals(other))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array of the plainest type: contestants differ in the widths and units they choose."""
    return column.cast(_plain_type(column.type)).combine_chunks()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def _import_timer(statement: str) -> Timer:
    command = [sys.executable, "-c", IMPORT_SCRIPT.format(statement=statement)]

    def timed() -> float:
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    return timed
