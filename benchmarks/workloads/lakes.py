"""Many files in Hive folders: `lake`."""

from datetime import date, datetime
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.conditions import Where
from benchmarks.data.store import Sample
from benchmarks.data.trips import LAKE_KEY, lake
from benchmarks.workloads.workload import Workload, filter_workload, three_quarters

AROUND_MIDNIGHT = Where(
    "pickup_at", ((">=", datetime(2024, 5, 29, 23, 44)), ("<", datetime(2024, 5, 30, 0, 16)))
)
FIRST_DAY, END_DAY = date(2024, 5, 1), date(2024, 5, 11)
TEN_DAYS = Where(LAKE_KEY.name, ((">=", FIRST_DAY), ("<", END_DAY)))


@cache
def _middle_of_a_file(sample: Sample) -> int:
    """Three quarters of the rows and half a file: not where one begins, which would be easy."""
    return three_quarters(sample) + sample.rows // len(sample.files) // 2


def _ten_days(sample: Sample) -> list[Path]:
    """The files in the folders of these days."""
    days = {path: date.fromisoformat(path.parent.name.split("=")[1]) for path in sample.files}
    return [path for path, day in days.items() if FIRST_DAY <= day < END_DAY]


LAKES = (
    Workload(
        "lake-window",
        "200 files in Hive folders: skip three quarters of the rows, head 1,000, all columns",
        0.7,
        lake,
        lambda reader, sample: reader.folder_window(
            str(sample.path), LAKE_KEY, _middle_of_a_file(sample), 1_000
        ),
        rows=lambda sample: np.arange(1_000) + _middle_of_a_file(sample),
    ),
    filter_workload(
        "lake-range",
        "200 files in Hive folders: 32 minutes of the timestamp, in two of them, all columns",
        0.7,
        lake,
        lambda sample: AROUND_MIDNIGHT,
        lambda reader, path, where: reader.folder_filter(path, LAKE_KEY, where),
    ),
    Workload(
        "lake-plan",
        "200 files in Hive folders: how many rows, which is planning alone",
        0.7,
        lake,
        lambda reader, sample: reader.folder_count(str(sample.path), LAKE_KEY),
        columns=(),
    ),
    Workload(
        "lake-days",
        "200 files in Hive folders: how many rows in ten of them, which is planning alone",
        0.7,
        lake,
        lambda reader, sample: reader.folder_filter_count(str(sample.path), LAKE_KEY, TEN_DAYS),
        columns=(),
        files=_ten_days,
    ),
)
