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
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from benchmarks import ours
from benchmarks.contestant import Contestant, Unsupported
from benchmarks.data import Sample, Scale
from benchmarks.pages import least_bytes
from benchmarks.workloads import Workload

OURS = ours.Fretsaw.name
OTHER_ROWS = "WRONG: other rows than the first peer returns"
MIN_ROUNDS = 5
MIN_ROUNDS_IF_SLOW = 3
MAX_ROUNDS = 200
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
    seconds: Mapping[str, float]
    left_out: Mapping[str, str] = field(default_factory=dict)
    reads: Reads | None = None

    @property
    def ratio(self) -> float | None:
        """fretsaw's time over that of the best peer."""
        peers = [seconds for name, seconds in self.seconds.items() if name != OURS]
        if OURS not in self.seconds or not peers:
            return None
        return self.seconds[OURS] / min(peers)

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
    timers = {name: timer(partial(workload.run, reader, sample)) for name, reader in able.items()}
    seconds = race(timers, budget)
    # The fewest bytes are worked out for Parquet files only.
    counted = OURS in able and workload.contestants is None
    reads = _reads(workload, able[OURS], sample) if counted else None
    return Result(workload.name, workload.what, workload.goal, seconds, left_out, reads)


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


def timer(call: Callable[[], object]) -> Timer:
    """Times a call, for which nothing is kept from the one before."""

    def timed() -> float:
        ours.forget()
        start = perf_counter()
        result = call()
        seconds = perf_counter() - start
        del result  # freeing it is nobody's work
        return seconds

    return timed


def _reads(workload: Workload, reader: Contestant, sample: Sample) -> Reads:
    requests, bytes_read = ours.traced(lambda: workload.run(reader, sample))
    least = least_bytes(
        workload.files(sample),
        workload.rows(sample) if workload.rows else None,
        workload.columns,
        workload.where(sample) if workload.where else None,
        workload.window,
    )
    return Reads(requests, bytes_read, least)


def _check(workload: Workload, contestants: Sequence[Contestant], sample: Sample) -> dict[str, str]:
    """Who is left out, and why: has no way to do it, or returns other rows."""
    answers: dict[str, pa.Table] = {}
    left_out: dict[str, str] = {}
    for reader in contestants:
        try:
            answers[reader.name] = workload.run(reader, sample)
        except Unsupported as reason:
            left_out[reader.name] = str(reason)
    expected = next((table for name, table in answers.items() if name != OURS), None)
    if expected is not None:
        for name, table in answers.items():
            if not same_rows(table, expected, workload.tolerance):
                left_out[name] = OTHER_ROWS
    return left_out


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
