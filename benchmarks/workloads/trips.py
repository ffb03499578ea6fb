"""Flat files: `trips` by positions, conditions and whole, and one file of very many columns."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.conditions import Condition, Where
from benchmarks.contestant import Contestant
from benchmarks.data.grids import wide
from benchmarks.data.store import Sample, Scale
from benchmarks.data.trips import FIRST_PICKUP, PICKUP_GAP_US, trips, trips_with_bloom
from benchmarks.workloads.workload import (
    INSIDE,
    Workload,
    filter_workload,
    inside,
    random_rows,
    three_quarters,
)

SUMMED = ("distance", "fare", "tip")
FEW_OF_MANY = ("f00010", "f05000", "f09990")
START = datetime.fromisoformat(str(FIRST_PICKUP))
# 200,000 drivers at random.
TENTH, HUNDREDTH = (Where("driver_id", (("<", below),)) for below in (20_000, 2_000))


def _trips(codec: str) -> Callable[[Scale], Sample]:
    return partial(trips, codec=codec)


def _pickup(row: int) -> datetime:
    """A time right before the pickup of this row of `trips`, and after that of the row before."""
    return START + timedelta(microseconds=row * PICKUP_GAP_US)


def trip_id(row: Any) -> Any:
    """The key of a row, or of an array of them."""
    return row * 3 + 1_000_000


def _five_minutes(sample: Sample) -> Where:
    start = _pickup(inside(sample))
    return Where("pickup_at", ((">=", start), ("<", start + timedelta(minutes=5))))


def _one_trip(sample: Sample) -> Where:
    return Where("trip_id", (("==", trip_id(inside(sample))),))


@cache
def _one_token(sample: Sample) -> Where:
    """The unique string of a row within a page, which nothing but the file itself tells."""
    tokens = pq.read_table(sample.path, columns=["token"])["token"]
    return Where("token", (("==", tokens[inside(sample)].as_py()),))


def _three_quarters_of_trips(sample: Sample) -> Where:
    """From an eighth to seven eighths, from within a page to within a page."""
    low, high = (sample.rows * eighths // 8 + INSIDE for eighths in (1, 7))
    return Where("pickup_at", ((">=", _pickup(low)), ("<", _pickup(high))))


def _one_row(reader: Contestant, path: str, where: Condition) -> pa.Table:
    return reader.find(path, where)


RANGE = filter_workload(
    "range",
    "5 minutes of the sorted timestamp, 1,140 rows, all columns",
    0.4,
    _trips("snappy"),
    _five_minutes,
)
SPARSE = filter_workload(
    "sparse",
    "rows that match a predicate, as 1% do at random, all columns",
    0.8,
    _trips("snappy"),
    lambda sample: HUNDREDTH,
)
OFFSET = Workload(
    "offset",
    "skip three quarters of the rows, head 10, all columns",
    0.3,
    _trips("snappy"),
    lambda reader, sample: reader.window(str(sample.path), three_quarters(sample), 10),
    rows=lambda sample: np.arange(10) + three_quarters(sample),
)
TAKE = Workload(
    "take",
    "1,000 row numbers at random, all columns",
    0.4,
    _trips("snappy"),
    lambda reader, sample: reader.take(str(sample.path), random_rows(sample)),
    rows=random_rows,
)
SCAN = Workload(
    "scan",
    "sum of 3 columns, streaming, full file",
    0.9,
    _trips("snappy"),
    lambda reader, sample: reader.sums(str(sample.path), SUMMED),
    columns=SUMMED,
    tolerance=1e-9,
)


def _scan(codec: str, goal: float) -> Workload:
    what = f"{SCAN.what}, {codec}"
    return replace(SCAN, name=f"{SCAN.name}-{codec}", what=what, goal=goal, sample=_trips(codec))


TRIPS = (
    RANGE,
    filter_workload(
        "point", "one value of a sorted key, all columns", 0.4, _trips("snappy"), _one_trip
    ),
    filter_workload(
        "needle",
        "one value of an unsorted unique string, no Bloom filter, all columns",
        0.6,
        _trips("snappy"),
        _one_token,
        _one_row,
    ),
    filter_workload(
        "bloom",
        "one value of an unsorted unique string, with Bloom filters, all columns",
        0.5,
        trips_with_bloom,
        _one_token,
        _one_row,
    ),
    OFFSET,
    Workload(
        "tail",
        "last 10 rows, all columns",
        0.3,
        _trips("snappy"),
        lambda reader, sample: reader.tail(str(sample.path), 10),
        rows=lambda sample: np.arange(sample.rows - 10, sample.rows),
    ),
    filter_workload(
        "tail-filter",
        "last 10 rows that match a predicate, as 1% do at random, all columns",
        0.25,
        _trips("snappy"),
        lambda sample: HUNDREDTH,
        lambda reader, path, where: reader.filter_tail(path, where, 10),
        part=slice(-10, None),
        window="tail",
    ),
    filter_workload(
        "first",
        "first 100 rows that match a predicate, as 10% do at random, all columns",
        0.7,
        _trips("snappy"),
        lambda sample: TENTH,
        lambda reader, path, where: reader.filter_head(path, where, 100),
        part=slice(100),
        window="head",
    ),
    SPARSE,
    filter_workload(
        "count",
        "how many rows are in three quarters of the sorted timestamp: metadata decides most pages",
        0.13,
        _trips("snappy"),
        _three_quarters_of_trips,
        lambda reader, path, where: reader.filter_count(path, where),
        columns=(),
    ),
    TAKE,
    _scan("snappy", 0.9),
    _scan("zstd", 0.9),
    _scan("gzip", 0.9),
    Workload(
        "rows",
        "a loop over the first 1% of the rows, as Python objects of all columns",
        0.4,
        _trips("snappy"),
        lambda reader, sample: reader.loop(str(sample.path), sample.rows // 100, "fare"),
        rows=lambda sample: np.arange(sample.rows // 100),
    ),
    Workload(
        "wide",
        "3 of 10,000 columns",
        0.7,
        wide,
        lambda reader, sample: reader.read(str(sample.path), FEW_OF_MANY),
        columns=FEW_OF_MANY,
    ),
)
