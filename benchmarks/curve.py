"""Time against the share of rows that match, from none to all of them.

In: contestants, fretsaw's `Plain` among them, and a scale. Out: a `Point` for each share and
each projection: how many rows match, and the best seconds of each contestant. What matters is
fretsaw's time over that of `Plain`: a predicate should never cost more than reading everything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from benchmarks.conditions import Condition, Where
from benchmarks.contestant import Contestant, Unsupported
from benchmarks.data.store import Scale
from benchmarks.data.trips import trips
from benchmarks.ours import OWN, Fretsaw, Plain
from benchmarks.race import HOPELESS, race, timer
from benchmarks.result import OURS
from benchmarks.same import same_rows

PERCENTS = (0, 0.01, 0.1, 1, 5, 10, 25, 50, 75, 90, 99, 100)
PROJECTIONS: Mapping[str, tuple[str, ...] | None] = {
    "3 columns": ("distance", "fare", "city"),
    "all columns": None,
}
DRIVERS = 199_999  # numbered from 1 on, all as often at random
COMPARED = (
    1_000_000  # rows at the end of a result: to compare ten million takes longer than reading
)


@dataclass(frozen=True, slots=True)
class Point:
    """What a predicate of which `percent` of the rows match costs each contestant."""

    projection: str
    percent: float
    rows: int
    seconds: Mapping[str, float]
    wrong: Sequence[str] = ()
    """Who returned other rows than the first peer."""

    @property
    def to_plain(self) -> float | None:
        """fretsaw's time over that of reading everything and filtering."""
        return self._ratio([Plain.name])

    @property
    def to_best_peer(self) -> float | None:
        """fretsaw's time over that of the best peer."""
        return self._ratio([name for name in self.seconds if name not in (*OWN, Plain.name)])

    def _ratio(self, names: Sequence[str]) -> float | None:
        others = [self.seconds[name] for name in names if name in self.seconds]
        return self.seconds[OURS] / min(others) if others and OURS in self.seconds else None


def measure_curve(
    contestants: Sequence[Contestant], scale: Scale, budget: float
) -> Iterator[Point]:
    """Every point as soon as it is known."""
    path = str(trips(scale, "snappy").path)
    for projection, columns in PROJECTIONS.items():
        for percent in PERCENTS:
            where = _where(percent)
            rows, able, wrong = _check(contestants, path, where, columns)
            timers = {
                name: timer(partial(reader.filter, path, where, columns))
                for name, reader in able.items()
            }
            yield Point(projection, percent, rows, race(timers, budget, HOPELESS), wrong)


def _where(percent: float) -> Where:
    """A condition that so many rows match, and that bounds of pages hardly ever decide."""
    if percent == 0:
        # Every number of a driver between the bounds is there, but no distance is so round.
        return Where("distance", (("==", 2.5),))
    return Where("driver_id", (("<", 1 + round(DRIVERS * percent / 100)),))


def _check(
    contestants: Sequence[Contestant], path: str, where: Condition, columns: Sequence[str] | None
) -> tuple[int, dict[str, Contestant], list[str]]:
    """How many rows match, who can tell, and who returns other rows than the first peer."""
    able: dict[str, Contestant] = {}
    wrong: list[str] = []
    expected: pa.Table | None = None
    rows = 0
    for reader in sorted(contestants, key=lambda reader: isinstance(reader, Fretsaw)):
        try:
            table = reader.filter(path, where, columns)
        except Unsupported:
            continue
        count, end = table.num_rows, table.slice(max(0, table.num_rows - COMPARED))
        if expected is None:
            rows, expected = count, end
        if count == rows and same_rows(end, expected, 0.0):
            able[reader.name] = reader
        else:
            wrong.append(reader.name)
    return rows, able, wrong
