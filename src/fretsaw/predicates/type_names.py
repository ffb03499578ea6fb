"""Arrow types by the names that they print: `int32`, `timestamp[us, tz=UTC]`, `decimal(9, 2)`."""

import difflib
import re

import pyarrow as pa

from fretsaw.errors import PredicateTypeError

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "string", "large_string", "binary", "large_binary"),
    *("date32", "date64", "time32[s]", "time32[ms]", "time64[us]", "time64[ns]"),
    *("timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", "timestamp[us, tz=UTC]"),
    *("duration[s]", "duration[ms]", "duration[us]", "duration[ns]", "decimal(9, 2)"),
)
_DECIMAL = re.compile(r"decimal(128|256)?\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns),\s*(?:tz=)?(\S+)\]")


def type_named(name: str) -> pa.DataType:
    """The type of a name; `PredicateTypeError` names those that are near.

    >>> type_named("decimal(9, 2)")
    Decimal128Type(decimal128(9, 2))
    """
    if found := _DECIMAL.fullmatch(name):
        digits, places = int(found[2]), int(found[3] or 0)
        if 0 < digits <= 76:
            is_wide = digits > 38 or found[1] == "256"
            return (pa.decimal256 if is_wide else pa.decimal128)(digits, places)
    if found := _ZONED.fullmatch(name):
        return pa.timestamp(found[1], found[2])
    try:
        return pa.type_for_alias(name)
    except ValueError:
        near = difflib.get_close_matches(name, _NAMES, 3) or _NAMES
        raise PredicateTypeError(
            f"there is no type {name!r} to cast to; there are {', '.join(near)}, or any Arrow type"
        ) from None
