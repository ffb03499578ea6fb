"""Parts and beginnings of times around all kinds of changes that zones made to their clocks."""

import datetime as dt
import io
import random
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import Expression, col
from tests.support.depth import in_depth
from tests.support.row_evaluator.calendar import clock_of, offset, part_of, truncated

# Days that begin twice or at one, half an hour, a day left out, seconds, many changes, two hours.
ZONES = [
    *("America/St_Johns", "Africa/Monrovia", "Australia/Lord_Howe", "America/Havana"),
    *("America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "Pacific/Apia", "America/New_York"),
    *("Europe/Dublin", "Asia/Kathmandu", "Antarctica/Troll", "Pacific/Kwajalein"),
    *("Europe/Amsterdam", "Asia/Tehran", "UTC"),
]
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
PARTS = ("year", "month", "day", "hour", "minute", "second", "weekday")
FIRST, LAST, WEEK, SECOND = -2_208_988_800, 2_145_916_800, 7 * 86_400, 10**9
NEAR = (-90_000, -86_400, -3_601, -3_600, -1_801, -1, 0, 1, 1_799, 1_800, 3_600, 50_000, 86_399)


def changes(zone: str) -> list[int]:
    """The instants at which the clocks were set, as far as a week apart."""
    found = []
    for start in range(FIRST, LAST, WEEK):
        low, high = start, start + WEEK
        if offset(low, zone) == offset(high, zone):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if offset(middle, zone) == offset(start, zone) else (low, middle)
            )
        found.append(high)
    return found or [0]


def rows_by_value(scan: fs.Scan, expression: Expression, values: list[object]) -> None:
    """For each value that an expression has, it is found in exactly its rows."""
    rows = defaultdict(list)
    for number, value in enumerate(values):
        rows[value].append(number)
    for value, expected in rows.items():
        found = scan.filter(expression == value).with_row_index("n").select().to_arrow()
        assert found["n"].to_pylist() == expected, (expression, value)


@pytest.mark.parametrize("zone", in_depth(ZONES, 1, 3))
def test_parts_and_beginnings_are_those_of_the_zone(zone: str) -> None:
    all_changes = changes(zone)
    chosen = random.Random(zone).sample(all_changes, min(12, len(all_changes)))
    instants = [(change + near) * SECOND + 123_456_000 for change in chosen for near in NEAR]
    times = pa.array([instant // 1000 for instant in instants], pa.timestamp("us", zone))
    buffer = io.BytesIO()
    pq.write_table(pa.table({"t": times}), buffer)
    scan, t = fs.open(buffer.getvalue()).scan(), col("t")
    for part in PARTS:
        values = [part_of(part, clock_of(instant, zone)) for instant in instants]
        rows_by_value(scan, getattr(t, part)(), list(values))
    for unit in UNITS:
        past = [instant - truncated(unit, instant, zone) for instant in instants]
        spans = [dt.timedelta(microseconds=span // 1000) for span in past]
        rows_by_value(scan, t - t.truncate(unit), list(spans))
