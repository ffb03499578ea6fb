"""Conditions of every kind, on `odd_trips`, and long lists of values, on `trips`."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pyarrow as pa

from benchmarks.conditions import Expression, Listed
from benchmarks.contestant import Contestant, RowNumbers
from benchmarks.data.store import SEED, Sample, tokens
from benchmarks.data.trips import LOST, odd_trips, trips
from benchmarks.workloads.trips import trip_id
from benchmarks.workloads.workload import Workload, filter_workload, random_rows

GOAL, LISTED_GOAL = 0.9, 0.5  # a ratio, and seconds
LISTED = 100_000
CONTAINS = Expression(("token",), lambda say: say.contains(say.column("token"), LOST))
PRICE = Expression(
    ("fare", "distance"),
    lambda say: say.column("fare") / say.column("distance") > say.literal(20.0),
)
TWO_COLUMNS = Expression(
    ("dropoff_at", "pickup_at"), lambda say: say.column("dropoff_at") < say.column("pickup_at")
)
LOWER = Expression(
    ("city",),
    lambda say: say.lower(say.column("city")) == say.literal("nyc"),
    by_dictionary=True,
)


def _listed(sample: Sample, of_rows: Callable[[RowNumbers], pa.Array]) -> pa.Array:
    """The values of 1,000 rows and of many that the file has not, in no order."""
    beyond = sample.rows + np.arange(LISTED)
    rows = np.concatenate([random_rows(sample), beyond])[:LISTED]
    return of_rows(np.random.default_rng(SEED).permutation(rows))


@cache
def _ids(sample: Sample) -> pa.Array:
    """Those that the file has not are between those that it has."""

    def of_rows(row: RowNumbers) -> pa.Array:
        beyond = row - sample.rows
        neighbours = beyond * sample.rows // LISTED
        return pa.array(np.where(beyond < 0, trip_id(row), trip_id(neighbours) + 1))

    return _listed(sample, of_rows)


@cache
def _tokens(sample: Sample) -> pa.Array:
    return _listed(sample, lambda row: tokens(row.astype(np.uint64)))


@cache
def _text(sample: Sample) -> str:
    return f"trip_id IN ({', '.join(map(str, _ids(sample).to_pylist()))})"


def _in(
    name: str, what: str, column: str, run: Callable[[Contestant, Sample], pa.Table]
) -> Workload:
    return Workload(
        name,
        f"{what}, of which the file has 1,000, all columns",
        LISTED_GOAL,
        partial(trips, codec="snappy"),
        run,
        rows=random_rows,
        where=lambda sample: Listed(column),
        goal_in_seconds=True,
    )


PREDICATES = (
    filter_workload(
        "like",
        "a part of an unsorted unique string, that 0.1% have, all columns",
        GOAL,
        odd_trips,
        lambda sample: CONTAINS,
    ),
    filter_workload(
        "expression",
        "fare / distance > 20, as 0.5% have, all columns",
        GOAL,
        odd_trips,
        lambda sample: PRICE,
    ),
    filter_workload(
        "two-columns",
        "one column below another one, as in 0.1%, all columns",
        GOAL,
        odd_trips,
        lambda sample: TWO_COLUMNS,
    ),
    filter_workload(
        "lower",
        "lower(city) = 'nyc', which no entry of a dictionary is, all columns",
        GOAL,
        odd_trips,
        lambda sample: LOWER,
    ),
    _in(
        "in-integers",
        "one of 100,000 integers",
        "trip_id",
        lambda reader, sample: reader.filter_in(str(sample.path), "trip_id", _ids(sample)),
    ),
    _in(
        "in-strings",
        "one of 100,000 strings",
        "token",
        lambda reader, sample: reader.filter_in(str(sample.path), "token", _tokens(sample)),
    ),
    _in(
        "in-text",
        "one of 100,000 integers, in SQL",
        "trip_id",
        lambda reader, sample: reader.filter_text(str(sample.path), _text(sample)),
    ),
)
