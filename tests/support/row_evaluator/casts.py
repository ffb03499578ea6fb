"""Values as another type, or the failure to be one."""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.support.row_evaluator.calendar import EPOCH, civil, clock_of
from tests.support.row_evaluator.kinds import DAY, Kind
from tests.support.row_evaluator.numbers import Failed, to_decimal, to_int, to_width


def cast(source: Kind, target: Kind) -> Callable[[Any], Any]:
    match source.name, target.name:
        case "text", "int":
            return lambda text: to_int(number_in(text, r"-?\d+"), target)
        case "text", "float":
            return lambda text: to_width(number_in(text, r"-?\d+(\.\d+)?"), target.width)
        case "text", "decimal":
            return lambda text: to_decimal(number_in(text, r"-?\d+(\.\d+)?"), target)
        case "text", "date":
            return day_in
        case _, "int":
            return lambda value: to_int(value, target)
        case _, "float":
            return lambda value: to_width(value, target.width)
        case _, "decimal":
            return lambda value: to_decimal(value, target)
        case "bool", "text":
            return lambda value: "true" if value else "false"
        case "date", "text":
            return lambda day: "{:04}-{:02}-{:02}".format(*civil(day))
        case "int", "text":
            return str
        case "decimal", "text":
            return lambda value: f"{value:f}"
        case "date", "local":
            return lambda day: day * DAY
        case "local" | "instant", "date":
            return lambda value: clock_of(value, source.zone) // DAY
        case _ if source.name == target.name:
            return lambda value: value
    raise NotImplementedError(f"{source} as {target}")


def number_in(text: str, form: str) -> Decimal:
    if not re.fullmatch(form, text, re.ASCII):
        raise Failed(f"{text!r} is no number")
    return Decimal(text)


def day_in(text: str) -> int:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise Failed(f"{text!r} is no date")
    try:
        return dt.date.fromisoformat(text).toordinal() - EPOCH
    except ValueError as error:
        raise Failed(str(error)) from error
