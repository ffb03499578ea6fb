"""Work on Spark, over `lake`."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from benchmarks.conditions import Where
from benchmarks.contestant import Contestant
from benchmarks.data.store import Sample
from benchmarks.data.trips import lake
from benchmarks.field import spark_contestants
from benchmarks.on_spark import OnSpark
from benchmarks.workloads.trips import TENTH, trip_id
from benchmarks.workloads.workload import Workload, matching, three_quarters


def _ids_around_midnight(sample: Sample) -> Where:
    """The last and the first ninetieth of two days, by the key, of which Spark knows bounds."""
    rows = sample.rows // len(sample.files)
    midnight = three_quarters(sample) // rows * rows
    low, high = (trip_id(midnight + rows // 90 * sign) for sign in (-1, 1))
    return Where("trip_id", ((">=", low), ("<", high)))


def _most_matches(sample: Sample) -> int:
    """About three quarters of the rows that match, if a tenth do."""
    return three_quarters(sample) // 10


def _on_spark(run: Callable[[OnSpark, str, Sample], pa.Table], **rest: Any) -> Workload:
    """Work on `lake` by those who run on Spark."""

    def run_there(reader: Contestant, sample: Sample) -> pa.Table:
        assert isinstance(reader, OnSpark)
        return run(reader, str(sample.path), sample)

    return Workload(run=run_there, sample=lake, contestants=spark_contestants, **rest)


SPARK = (
    _on_spark(
        lambda reader, path, sample: reader.folder_rows(path, _ids_around_midnight(sample)),
        name="spark-range",
        what="on Spark, 200 files in Hive folders: a range of the sorted key, in two, all columns",
        goal=0.5,
        rows=lambda sample: matching(sample, _ids_around_midnight(sample)),
        where=_ids_around_midnight,
        ordered=False,
    ),
    _on_spark(
        lambda reader, path, sample: reader.folder_filter_window(
            path, TENTH, _most_matches(sample), 1_000
        ),
        name="spark-window",
        what="on Spark, 200 files in Hive folders: of the rows that match a predicate, as 10% do "
        "at random, skip three quarters, head 1,000, all columns",
        goal=0.5,
        rows=lambda sample: matching(sample, TENTH)[_most_matches(sample) :][:1_000],
        where=lambda sample: TENTH,
        window="head",
    ),
)
