"""Nested files: `events`."""

from datetime import datetime, timedelta

import numpy as np

from benchmarks.conditions import Where
from benchmarks.data.events import events
from benchmarks.data.store import Sample
from benchmarks.data.trips import FIRST_PICKUP
from benchmarks.workloads.workload import Workload, filter_workload, inside, three_quarters

START = datetime.fromisoformat(str(FIRST_PICKUP))
# Values follow a gamma distribution, and one in five is missing.
THOUSANDTH = Where("value", ((">", 180.0),))


def _two_thousand_events(sample: Sample) -> Where:
    start = START + timedelta(seconds=inside(sample))
    return Where("at", ((">=", start), ("<", start + timedelta(seconds=2_000))))


NESTED = (
    Workload(
        "nested-rows",
        "a loop over the first 1% of the events: lists of structs, maps, structs",
        0.4,
        events,
        lambda reader, sample: reader.loop(str(sample.path), sample.rows // 100, "value"),
        rows=lambda sample: np.arange(sample.rows // 100),
    ),
    Workload(
        "nested",
        "2,000 rows from three quarters in, all columns: lists of structs, maps, structs",
        0.4,
        events,
        lambda reader, sample: reader.window(str(sample.path), three_quarters(sample), 2_000),
        rows=lambda sample: np.arange(2_000) + three_quarters(sample),
    ),
    filter_workload(
        "nested-range",
        "2,000 seconds of the sorted timestamp of events, 2,000 rows, all columns",
        0.6,
        events,
        _two_thousand_events,
    ),
    filter_workload(
        "nested-rare",
        "events that match a predicate, as 0.1% do at random, all columns",
        0.8,
        events,
        lambda sample: THOUSANDTH,
    ),
)
