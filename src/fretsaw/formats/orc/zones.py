"""Zones that ORC times were written in: from seconds of 1970 to what a clock on the wall showed.

Where a zone changes its clocks is found out once, for the years that are looked at; from then on
everything repeats after 400 years. Before the first change, clocks are taken to show what they
showed after it (unless that was summer time), as Arrow's reader has it, not the time of the sun.
"""

import datetime as dt
import os
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from fretsaw.formats.orc.metadata import MalformedOrc
from fretsaw.model.blocks import Int64s

BASE = 1_420_070_400
"""The second of 1970 in UTC at which 2015 began, from which on times are counted."""
UTC = (b"UTC", b"GMT", b"Etc/UTC", b"Etc/GMT")

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_CYCLE = 146_097 * 86_400
"""Seconds of 400 years."""
_FIRST, _LAST = -4_102_444_800, 16_725_225_600
"""The years from 1840 to 2500 are looked at."""
_STEP = 7 * 86_400
"""No zone changes its clocks to and fro within a week."""


def base_of(name: bytes | None) -> int:
    """The second of 1970 in UTC from which on times of a zone are counted."""
    if name in UTC:
        return BASE
    seconds = np.array([BASE])
    # The clock showed midnight; what it is ahead of UTC at that moment is looked up from nearby.
    return int(BASE - (wall_clock(seconds, name) - seconds)[0])


def wall_clock(seconds: Int64s, name: bytes | None) -> Int64s:
    """What clocks of a zone showed at these seconds, as if it were UTC."""
    if name in UTC:
        return seconds
    changes, offsets = _changes(name)
    cycles = np.maximum(-((_LAST - 1 - seconds) // _CYCLE), 0)
    place = np.searchsorted(changes, seconds - cycles * _CYCLE, side="right")
    shown: Int64s = seconds + offsets[place]
    return shown


@cache
def _changes(name: bytes | None) -> tuple[Int64s, Int64s]:
    """When a zone changes its clocks, and what they are ahead of UTC before and after each."""
    zone = _zone(name)
    times = np.arange(_FIRST, _LAST + _STEP, _STEP)
    found = [_offset(zone, time) for time in times.tolist()]
    changes, offsets = [], [found[0]]
    for place in np.flatnonzero(np.diff(found)).tolist():
        low, high = int(times[place]), int(times[place + 1])
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(zone, middle) == found[place] else (low, middle)
        changes.append(high)
        offsets.append(found[place + 1])
    if changes and not _clock(zone, changes[0]).dst():
        offsets[0] = offsets[1]
    return np.array(changes, np.int64), np.array(offsets, np.int64)


def _offset(zone: dt.tzinfo, second: int) -> int:
    ahead = _clock(zone, second).utcoffset()
    return 0 if ahead is None else ahead.days * 86_400 + ahead.seconds


def _clock(zone: dt.tzinfo, second: int) -> dt.datetime:
    return (_EPOCH + dt.timedelta(seconds=second)).astimezone(zone)


def _zone(name: bytes | None) -> dt.tzinfo:
    """The zone of this name; without one, that of this machine."""
    if name is None:
        local, file = os.environ.get("TZ", "").lstrip(":"), Path("/etc/localtime")
        if local:
            return ZoneInfo(local)
        if not file.exists():
            return dt.UTC
        with file.open("rb") as opened:
            return ZoneInfo.from_file(opened)
    try:
        return ZoneInfo(name.decode())
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise MalformedOrc(f"its times are of a zone that is not known: {error}") from None
