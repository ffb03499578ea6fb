"""ORC files: `trips` once more."""

from dataclasses import replace
from functools import partial

from benchmarks.data.trips import trips_as_orc
from benchmarks.field import orc_contestants
from benchmarks.workloads.trips import OFFSET, RANGE, SCAN, TAKE
from benchmarks.workloads.workload import Workload


def _on_orc(workload: Workload, codec: str, goal: float) -> Workload:
    """The same on an ORC file."""
    return replace(
        workload,
        name=f"orc-{workload.name}-{codec}",
        what=f"{workload.what}, ORC, {codec}",
        goal=goal,
        sample=partial(trips_as_orc, codec=codec),
        contestants=orc_contestants,
    )


ORC = tuple(
    _on_orc(workload, codec, goal)
    for codec in ("zlib", "zstd")
    for workload, goal in ((RANGE, 0.15), (OFFSET, 0.8), (TAKE, 0.3), (SCAN, 0.6))
)
