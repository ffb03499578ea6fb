"""Parts of times and their beginnings, in any year and zone, by the rules of the calendar.

Days and nanoseconds are counted from 1970. Zones are Python's `zoneinfo`; years that `datetime` has
not are moved by 400 years, after which the calendar and the rules of all zones repeat.
"""

import datetime as dt
from functools import cache
from zoneinfo import ZoneInfo

from tests.support.row_evaluator.kinds import DAY

SECOND = 10**9
CYCLE = 146_097
EPOCH = dt.date(1970, 1, 1).toordinal()
MOMENT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
CLOCK = {"hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND}
WITHIN = {"hour": 24, "minute": 60, "second": 60}


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month."""
    cycles, rest = divmod(day + EPOCH - 1, CYCLE)
    date = dt.date.fromordinal(rest + 1)
    return date.year + 400 * cycles, date.month, date.day


def day_number(year: int, month: int, day: int) -> int:
    cycles, rest = divmod(year - 1, 400)
    return dt.date(rest + 1, month, day).toordinal() + cycles * CYCLE - EPOCH


@cache
def offset(second: int, zone: str) -> int:
    """How many seconds the clocks of a zone are ahead at an instant."""
    day = second // 86_400
    year = civil(day)[0]
    if not 3 <= year <= 9997:
        return offset(second + (400 if year < 3 else -400) // 400 * CYCLE * 86_400, zone)
    ahead = (MOMENT + dt.timedelta(seconds=second)).astimezone(ZoneInfo(zone)).utcoffset()
    assert ahead is not None
    return ahead.days * 86_400 + ahead.seconds


def clock_of(instant: int, zone: str | None) -> int:
    """What the clocks of the zone show."""
    return instant if zone is None else instant + offset(instant // SECOND, zone) * SECOND


def part_of(name: str, clock: int) -> int:
    day, rest = divmod(clock, DAY)
    if name in CLOCK:
        return rest // CLOCK[name] % WITHIN[name]
    if name == "microsecond":
        return rest % SECOND // 1000
    if name == "weekday":
        return (day + 3) % 7 + 1
    return civil(day)[("year", "month", "day").index(name)]


def first_day(unit: str, day: int) -> int:
    """The day on which a year, quarter, month, week or day begins."""
    year, month, _ = civil(day)
    match unit:
        case "year":
            return day_number(year, 1, 1)
        case "quarter":
            return day_number(year, (month - 1) // 3 * 3 + 1, 1)
        case "month":
            return day_number(year, month, 1)
        case "week":
            return day - (day + 3) % 7
    return day


def beginning(unit: str, clock: int) -> int:
    if unit in CLOCK:
        return clock // CLOCK[unit] * CLOCK[unit]
    return first_day(unit, clock // DAY) * DAY


def truncated(unit: str, instant: int, zone: str | None) -> int:
    """The instant at which the unit begins that an instant lies in.

    Where the zone has the beginning twice, it is the last before the instant; a beginning that the
    clocks jump over is the instant of the jump.
    """
    if zone is None:
        return beginning(unit, instant)
    clock = beginning(unit, clock_of(instant, zone))
    around = clock // SECOND
    offsets = {offset(second, zone) for second in (around - 86_400, around + 86_400)}
    found = [clock - ahead * SECOND for ahead in (*offsets, offset(instant // SECOND, zone))]
    at = [start for start in found if start <= instant and clock_of(start, zone) == clock]
    return max(at) if at else jump_before(instant // SECOND, zone) * SECOND


def jump_before(second: int, zone: str) -> int:
    """The instant at which the clocks of a zone were set to what they are at a later one."""
    before, after = second - 86_400, second
    while after - before > 1:
        middle = (before + after) // 2
        if offset(middle, zone) == offset(second, zone):
            after = middle
        else:
            before = middle
    return after
