"""Values as SQL text spells them: numbers, dates, times, intervals, the names of types."""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fretsaw.predicates.text import Text

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

SPELLINGS = "12, 1.5, DATE '2024-02-29', TIME '13:00:00', TIMESTAMP '2024-02-29 13:00:00.5'"
_DAY, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,%d})?)?"
_MOMENT = f"{_DAY}([ T]{_CLOCK % 9}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?"


_LITERALS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "INT": ("[0-9]+", int),
    "DECIMAL": (r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", Decimal),
    "DATE": (_DAY, date.fromisoformat),
    "TIME": (_CLOCK % 6, time.fromisoformat),
    # Only checked here: whether it is in UTC, and its nanoseconds, are the column's to know.
    "TIMESTAMP": (_MOMENT, lambda text: datetime.fromisoformat(text) and Text(text, True)),
    "TIMESTAMPTZ": (_MOMENT, lambda text: datetime.fromisoformat(text) and Text(text, True)),
}
_TYPES = {
    **{"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()},
    **{"UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINT": pa.uint32()},
    **{"UBIGINT": pa.uint64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64()},
    **{"VARCHAR": pa.string(), "TEXT": pa.string(), "CHAR": pa.string(), "BOOLEAN": pa.bool_()},
    **{"DATE": pa.date32(), "TIME": pa.time64("us"), "TIMESTAMP": pa.timestamp("us")},
    **{"TIMESTAMPTZ": pa.timestamp("us", "UTC"), "BINARY": pa.binary(), "VARBINARY": pa.binary()},
}
TYPES = f"types are {', '.join(_TYPES)} and DECIMAL(digits, places)"
_UNITS = {
    **{"MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6},
    **{"HOUR": 3_600 * 10**6, "DAY": 86_400 * 10**6, "WEEK": 7 * 86_400 * 10**6},
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


@dataclass(frozen=True, slots=True)
class Months:
    """An interval that is not always equally long."""

    count: int


def is_literal(target: "Expr") -> bool:
    """Whether a string that is cast to this type is just another spelling of a literal."""
    return target.this.name in _LITERALS and not target.expressions


def value(text: str, type_name: str) -> Any:
    """The value that the characters of a literal stand for; `ValueError` where there is none."""
    pattern, convert = _LITERALS[type_name]
    if not re.fullmatch(pattern, text):
        raise ValueError(text)
    return convert(text)


def arrow_type(target: "Expr") -> pa.DataType | None:
    """The type that SQL text names; None: there is no such."""
    name = getattr(target.this, "name", "")
    if name != "DECIMAL":
        return None if target.expressions and name not in ("VARCHAR", "CHAR") else _TYPES.get(name)
    numbers = [int(part.name) for part in target.expressions] or [18, 3]
    digits, places = [*numbers, 0][:2]
    if not 0 < digits <= 76 or not 0 <= places <= digits:
        return None
    return (pa.decimal128 if digits <= 38 else pa.decimal256)(digits, places)


def interval(amount: str, unit: str) -> timedelta | Months | None:
    """A span of time, `INTERVAL '3 days'`; None: it is no such."""
    words = f"{amount} {unit}".split()
    name = words[1].upper().removesuffix("S") if len(words) == 2 else ""
    if not re.fullmatch("[+-]?[0-9]{1,9}", words[0] if words else ""):
        return None
    if name in _MONTHS:
        return Months(int(words[0]) * _MONTHS[name])
    try:
        return timedelta(microseconds=int(words[0]) * _UNITS[name]) if name in _UNITS else None
    except OverflowError:
        return None


def calculated(function: str, left: Any, right: Any) -> Any:
    """What two literals come to, where that is exact and known without a column; else None."""
    numbers = [side for side in (left, right) if isinstance(side, int | Decimal)]
    if len(numbers) == 2 and function in "+-*" and not any(isinstance(n, bool) for n in numbers):
        with localcontext(prec=200):
            result = {"+": lambda: left + right, "-": lambda: left - right}.get(
                function, lambda: left * right
            )()
        return result or 0
    if isinstance(left, timedelta | Months) and function == "+":
        left, right = right, left
    if function in "+-" and isinstance(right, timedelta | Months):
        return _shifted(left, right, 1 if function == "+" else -1)
    return None


def _shifted(moment: Any, by: timedelta | Months, sign: int) -> Any:
    """A date or a timestamp of the text, moved; None for what is no such literal."""
    if isinstance(moment, Text):
        zone = datetime.fromisoformat(moment.value)
        return Text(_moved(zone, by, sign).isoformat(" "), is_moment=True)
    if isinstance(moment, date):
        midnight = datetime(moment.year, moment.month, moment.day)
        moved = _moved(midnight, by, sign)
        return moved.date() if moved.time() == time() else Text(moved.isoformat(" "), True)
    return None


def _moved(moment: datetime, by: timedelta | Months, sign: int) -> datetime:
    if isinstance(by, timedelta):
        return moment + sign * by
    years, month = divmod(moment.year * 12 + moment.month - 1 + sign * by.count, 12)
    last = monthrange(years, month + 1)[1]
    return moment.replace(year=years, month=month + 1, day=min(moment.day, last))
