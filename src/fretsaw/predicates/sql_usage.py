"""The functions of SQL text and how each is called, for who calls one that is not there."""

import difflib
from collections.abc import Sequence

_OF_TEXT = ("lower", "upper", "trim", "strip")
_OF_TIMES = (
    *("year", "month", "day", "hour", "minute", "second", "microsecond", "isodow", "weekday"),
    *("date",),
)
USAGE = {
    **{name: f"{name.upper()}(text)" for name in _OF_TEXT},
    **{name: f"{name.upper()}(time)" for name in _OF_TIMES},
    **{"length": "LENGTH(text, binary, list or map)", "abs": "ABS(number)"},
    **{"round": "ROUND(number, places)", "coalesce": "COALESCE(value, value, ...)"},
    **{"nullif": "NULLIF(value, value)", "regexp_matches": "REGEXP_MATCHES(text, 'regex')"},
    **{"starts_with": "STARTS_WITH(text, 'part')", "ends_with": "ENDS_WITH(text, 'part')"},
    **{"contains": "CONTAINS(text, 'part')", "isnan": "ISNAN(number)"},
    **{"date_trunc": "DATE_TRUNC('unit', time)", "extract": "EXTRACT(unit FROM time)"},
    **{"cast": "CAST(value AS type)", "try_cast": "TRY_CAST(value AS type)"},
    **{"list_contains": "LIST_CONTAINS(list, value)"},
}
"""How each function is called."""


def no_such_function(name: str, operands: Sequence[str]) -> str:
    """What to say of a call of a function that is not there, or not with such operands."""
    called = f"{name.upper()}({', '.join(operands)})"
    usage = USAGE.get(name.lower())
    if usage is not None:
        return f"there is no {called}: it is {usage}"
    near = difflib.get_close_matches(name.lower(), USAGE, 3)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(USAGE)}"
    return f"there is no function {called}; {hint}"
