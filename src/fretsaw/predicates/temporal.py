"""Parts of times and their beginnings, as the clocks of their zones show them."""

import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.predicates.bound import NotComputable

_PARTS = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def part(array: pa.Array, name: str) -> pa.Array:
    """A part of each date, time or timestamp, as int64."""
    array = wall_clock(array)
    match name:
        case "weekday":
            return pc.day_of_week(array, count_from_zero=False, week_start=1)
        case "microsecond":
            thousands = pc.multiply(pc.millisecond(array), 1000)
            return pc.add(thousands, pc.microsecond(array))
        case "date":
            return array.cast(pa.date32())
    return _PARTS[name](array)


def wall_clock(array: pa.Array) -> pa.Array:
    """What clocks show at some instants; times without a zone are that already."""
    zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
    return pc.local_timestamp(array) if zoned else array


def truncated(array: pa.Array, unit: str) -> pa.Array:
    """The beginning of the unit in which each time lies, in its own type.

    Of an hour that a zone has twice it is the one that the instant lies in; a beginning that a
    zone leaves out is the first instant behind it.
    """
    wall = wall_clock(array)
    floors = pc.floor_temporal(wall, unit=unit)
    if pc.any(pc.greater(floors, wall)).as_py():  # it wrapped
        raise NotComputable(f"the {unit} begins before the first time that {array.type} has")
    zone = getattr(array.type, "tz", None)
    if zone is None:
        return floors.cast(array.type)
    first, last = (
        pc.assume_timezone(floors, zone, ambiguous=which, nonexistent="latest")
        for which in ("earliest", "latest")
    )
    return pc.if_else(pc.less_equal(last, array), last, first).cast(array.type)
