"""Bounds of values: from the statistics of stripes and from those of strides.

What is stored becomes keys in the order of the column. A bound counts as known only where the
format can be trusted with it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.metadata import MalformedOrc
from fretsaw.model.blocks import Bounds, Int64s
from fretsaw.model.schema import SchemaNode
from fretsaw.predicates.value_set import NAN_KEY, after_prefix, float_key

_DAY = 86_400  # seconds
_DECIMAL = re.compile(rb"(-?[0-9]{1,80})(?:\.([0-9]{0,80}))?")
_EXACT = Context(prec=100)
_MANY = 1 << 16
"""Values at either end of what was cut out that are held against bounds: to compare all is slow."""
_WRAP = 1 << 64
"""Sums that differ by a multiple of this are the same where both have wrapped around."""
_INTEGERS = ("BYTE", "SHORT", "INT", "LONG")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_INSTANT")
_WITHOUT_BOUNDS = ("BOOLEAN", "CHAR")
"""What has no bounds, or some with other padding."""


class _Known(NamedTuple):
    lower: Any
    upper: Any
    exact: bool = True
    nan_free: bool = True


def bounds_of(stored: Sequence[bytes | None], row_counts: Int64s, leaf: SchemaNode) -> Bounds:
    """What statistics say about a leaf, in blocks or strides of so many rows each."""
    found = [_decoded(statistics) for statistics in stored]
    values = np.array([-1 if s is None else _number_of_values(s) for s in found], np.int64)
    nulls = np.array([-1 if s is None else _has_null(s) for s in found], np.int8)
    empty = [_tell_of_values(found[place]) for place in np.flatnonzero(values == 0)]
    wrong = _contradict(values, nulls, row_counts, leaf)
    wrong[values == 0] |= np.array(empty, np.bool_)
    # Below a list counts are those of elements, and the tags of a union are not its values.
    counted = ~wrong & np.array([not leaf.is_repeated and leaf.physical_type != "UNION"])
    only = counted & (nulls == 1) & (values == 0)
    # Some writers count values in null structs too: only of a field itself is the rest null.
    none = counted & (nulls == 0) & (values > 0) & np.array([len(leaf.path) == 1])
    known = [
        None if s is None or is_wrong else _known(s, leaf, without_nulls)
        for s, is_wrong, without_nulls in zip(found, wrong.tolist(), none.tolist(), strict=True)
    ]
    keys = [bounds or _Known(*_nothing(leaf)) for bounds in known]
    return Bounds(
        lower=_keys([bounds.lower for bounds in keys], leaf),
        upper=_keys([bounds.upper for bounds in keys], leaf),
        known=np.array([bounds is not None for bounds in known], np.bool_),
        exact=np.array([bounds.exact for bounds in keys], np.bool_),
        all_null=only,
        nan_free=np.array([bounds.nan_free for bounds in keys], np.bool_),
        null_counts=np.where(only, row_counts, np.where(none, 0, -1)),
        row_counts=row_counts,
    )


def count_values(stored: bytes | None) -> int | None:
    """How many values there are, nulls included, where that is said: where none is null."""
    statistics = _decoded(stored)
    if statistics is None or _has_null(statistics) or _number_of_values(statistics) < 0:
        return None
    return _number_of_values(statistics)


def count_nulls(stored: Sequence[bytes | None], row_counts: Int64s, leaf: SchemaNode) -> Int64s:
    """How many nulls a leaf has; -1 where that is not known.

    Of a field itself what is no value is null; inside of structs, writers count in other ways.
    """
    if len(leaf.path) > 1 or leaf.is_repeated or leaf.physical_type == "UNION":
        return bounds_of(stored, row_counts, leaf).null_counts
    found = [_decoded(statistics) for statistics in stored]
    values = np.array([-1 if s is None else _number_of_values(s) for s in found], np.int64)
    nulls = np.array([-1 if s is None else _has_null(s) for s in found], np.int8)
    wrong = _contradict(values, nulls, row_counts, leaf) | (values < 0)
    return np.where(wrong, -1, row_counts - values)


def _contradict(
    values: Int64s, nulls: npt.NDArray[np.int8], row_counts: Int64s, leaf: SchemaNode
) -> npt.NDArray[np.bool_]:
    """Where counts contradict the rows; -1 is what is not said.

    Writers without an index leave counts empty: no values and no nulls, yet rows.
    """
    if leaf.is_repeated:
        return np.zeros(len(values), np.bool_)
    wrong: npt.NDArray[np.bool_] = values + (nulls == 1) > row_counts
    if len(leaf.path) == 1:  # null structs have no values, and count no nulls
        wrong |= (nulls == 0) & (values < row_counts)
    wrong &= values >= 0
    return wrong


def _tell_of_values(statistics: Any) -> bool:
    """Whether statistics have what only values can have brought there."""
    bounded = (
        statistics.integers,
        statistics.doubles,
        statistics.strings,
        statistics.decimals,
        statistics.dates,
        statistics.timestamps,
    )
    sums = (
        statistics.integers.sum,
        statistics.doubles.sum,
        statistics.strings.sum,
        statistics.binary.sum,
    )
    return (
        any(one.HasField("minimum") or one.HasField("maximum") for one in bounded)
        or any(total != 0 for total in sums)
        or any(statistics.buckets.count)
        or statistics.timestamps.HasField("minimum_utc")
        or statistics.strings.HasField("lower_bound")
    )


def hold(stored: Sequence[bytes], values: pa.ChunkedArray, leaf: SchemaNode) -> bool:
    """Whether strides with these statistics can have these values, which are all of a leaf's."""
    found = [_decoded(statistics) for statistics in stored]
    counts = [0 if statistics is None else _number_of_values(statistics) for statistics in found]
    if sum(counts) != len(values) - values.null_count:
        return False
    if not counts or not sum(counts):
        return True
    totals = [_total(s, leaf) for s, count in zip(found, counts, strict=True) if count]
    stated = [total for total in totals if total is not None]
    if len(stated) == len(totals) and (sum(stated) - _total_of(values, leaf)) % _WRAP:
        return False
    if leaf.physical_type in _WITHOUT_BOUNDS:
        return True
    known = [_known(s, leaf, False) for s, count in zip(found, counts, strict=True) if count]
    bounds = [one for one in known if one is not None]
    if not bounds or len(bounds) < len(known):
        return True
    lower, upper = min(one.lower for one in bounds), max(one.upper for one in bounds)
    few = values
    if len(values) > 2 * _MANY:  # what begins at a wrong place shows at its ends
        few = pa.chunked_array(
            [*values.slice(0, _MANY).chunks, *values.slice(len(values) - _MANY).chunks]
        )
    if few.null_count == len(few):
        return True
    least, most = _extremes(few, leaf)
    return bool(lower <= least and most <= upper)


@dataclass(frozen=True, slots=True)
class Claim:
    """What statistics say of a stride, for who decodes it: none of it may be wrong."""

    count: int
    total: int | None
    """As 64 bits without a sign."""
    bounds: tuple[str, Any, Any] | None
    """The order of the keys, and the lowest and highest of them."""


def claim_of(stored: bytes, leaf: SchemaNode) -> Claim:
    """The statistics of a stride."""
    statistics = _decoded(stored)
    count = 0 if statistics is None else _number_of_values(statistics) % _WRAP
    if statistics is None or not count:
        return Claim(count, None, None)
    total = _total(statistics, leaf)
    known = None
    if leaf.physical_type not in _WITHOUT_BOUNDS:
        known = _known(statistics, leaf, False)
    if known is None:
        bounds = None
    elif _is_bytes(leaf):
        bounds = ("bytes", known.lower, known.upper)
    else:
        bounds = ("float" if _is_float(leaf) else "signed", known.lower, known.upper)
    return Claim(count, None if total is None else total % _WRAP, bounds)


def _extremes(values: pa.ChunkedArray, leaf: SchemaNode) -> tuple[Any, Any]:
    """The least and the largest of some values, as keys."""
    stored = {"DATE": pa.int32(), **dict.fromkeys(_TIMESTAMPS, pa.int64())}
    if _is_bytes(leaf):
        values = values.cast(pa.binary())
    elif leaf.physical_type in stored:
        values = values.cast(stored[leaf.physical_type])
    found = pc.min_max(values)
    pair = found["min"].as_py(), found["max"].as_py()
    if _is_float(leaf):
        return float_key(pair[0]), float_key(pair[1])
    return (_unscaled(pair[0], leaf), _unscaled(pair[1], leaf)) if _is_decimal(leaf) else pair


def _total(statistics: Any, leaf: SchemaNode) -> int | None:
    """What values are together: their sum, their bytes, or how many are true.

    Those of floats depend on the order in which they were added.
    """
    match leaf.physical_type:
        case "BYTE" | "SHORT" | "INT" | "LONG":
            stated = statistics.integers
        case "STRING" | "VARCHAR":
            stated = statistics.strings
        case "BINARY":
            stated = statistics.binary
        case "BOOLEAN":
            counts = statistics.buckets.count
            return int(counts[0]) if len(counts) == 1 else None
        case "DECIMAL":
            stored = statistics.decimals.sum
            return _scaled(stored, leaf.arrow_type.scale) if stored else None
        case _:
            return None
    return int(stated.sum) if stated.HasField("sum") else None


def _total_of(values: pa.ChunkedArray, leaf: SchemaNode) -> int:
    """The same of what was decoded; sums may have wrapped around."""
    total = pc.sum(pc.binary_length(values) if _is_bytes(leaf) else values).as_py()
    return _unscaled(total, leaf) if _is_decimal(leaf) else int(total)


def _unscaled(value: Decimal, leaf: SchemaNode) -> int:
    return int(value.scaleb(leaf.arrow_type.scale, _EXACT))


def _decoded(stored: bytes | None) -> Any:
    if not stored:
        return None
    try:
        return metadata.decode("ColumnStatistics", stored)
    except MalformedOrc:
        return None


def _number_of_values(statistics: Any) -> int:
    counted = statistics.HasField("number_of_values")
    return min(int(statistics.number_of_values), 1 << 62) if counted else -1


def _has_null(statistics: Any) -> int:
    """Whether there are nulls; -1 if that is not said."""
    return int(statistics.has_null) if statistics.HasField("has_null") else -1


def _nothing(leaf: SchemaNode) -> tuple[Any, Any, bool, bool]:
    """Bounds that say nothing."""
    key: Any = b"" if _is_bytes(leaf) else 0
    return key, key, False, not _is_float(leaf)


def _known(statistics: Any, leaf: SchemaNode, without_nulls: bool) -> _Known | None:
    kind = leaf.physical_type or ""
    bounds: _Known | None = None
    if kind in _INTEGERS:
        bounds = _both(statistics.integers, statistics.HasField("integers"))
    elif kind == "DATE":
        bounds = _both(statistics.dates, statistics.HasField("dates"))
    elif kind == "BOOLEAN":
        bounds = _booleans(statistics, without_nulls)
    elif _is_float(leaf):
        bounds = _floats(statistics.doubles, leaf.physical_type == "FLOAT")
    elif kind in ("STRING", "VARCHAR", "CHAR"):
        bounds = _strings(statistics.strings)
    elif kind == "DECIMAL":
        bounds = _decimals(statistics.decimals, leaf.arrow_type.scale)
    elif kind in _TIMESTAMPS:
        bounds = _timestamps(statistics.timestamps, per_second(leaf))
    return bounds if bounds is not None and bounds.lower <= bounds.upper else None


def _both(statistics: Any, there: bool) -> _Known | None:
    if not there or not (statistics.HasField("minimum") and statistics.HasField("maximum")):
        return None
    return _Known(statistics.minimum, statistics.maximum)


def _booleans(statistics: Any, without_nulls: bool) -> _Known | None:
    """Only what is true is counted: the rest is false where nothing else can be."""
    counts, values = statistics.buckets.count, _number_of_values(statistics)
    if len(counts) != 1 or not values > 0 or counts[0] > values:
        return None
    return _Known(int(without_nulls and counts[0] == values), int(counts[0] > 0))


def _floats(statistics: Any, is_narrow: bool) -> _Known | None:
    """Without a NaN, which a sum shows: writers leave other values out of the bounds beside one.

    A zero stands for both. Some writers take bounds of 32 bits before they narrow the values.
    """
    bounds = _both(statistics, True)
    if bounds is None or not statistics.HasField("sum") or math.isnan(statistics.sum):
        return None
    pair = (bounds.lower, bounds.upper)
    with np.errstate(over="ignore"):
        lower, upper = (float_key(float(np.float32(b)) if is_narrow else b) for b in pair)
    if NAN_KEY in (lower, upper):
        return None
    exact = not is_narrow
    nan_free = bool(np.isfinite(statistics.sum))
    return _Known(-1 if lower == 0 else lower, 0 if upper == -1 else upper, exact, nan_free)


def _strings(statistics: Any) -> _Known | None:
    lower = upper = None
    exact = statistics.HasField("minimum") and statistics.HasField("maximum")
    if statistics.HasField("minimum"):
        lower = statistics.minimum
    elif statistics.HasField("lower_bound"):
        lower = statistics.lower_bound
    if statistics.HasField("maximum"):
        upper = statistics.maximum
    elif statistics.HasField("upper_bound"):
        upper = statistics.upper_bound
    if lower is None or upper is None:
        return None
    if lower == upper and not exact:  # one beginning of many values
        upper = after_prefix(lower)
    return None if upper is None else _Known(lower, upper, exact)


def _decimals(statistics: Any, scale: int) -> _Known | None:
    bounds = _both(statistics, True)
    if bounds is None:
        return None
    lower, upper = (_scaled(text, scale) for text in (bounds.lower, bounds.upper))
    return None if lower is None or upper is None else _Known(lower, upper)


def _scaled(text: bytes, scale: int) -> int | None:
    """A decimal as an integer, if it has no more digits behind the point than its type."""
    number = _DECIMAL.fullmatch(text)
    if number is None:
        return None
    whole, digits = number.group(1), (number.group(2) or b"").rstrip(b"0")
    return int(whole + digits.ljust(scale, b"0")) if len(digits) <= scale else None


def per_second(leaf: SchemaNode) -> int:
    """How many of its units a second has, of a leaf of times."""
    return 10**6 if leaf.arrow_type.unit == "us" else 10**9


def _timestamps(statistics: Any, second: int) -> _Known | None:
    """In milliseconds, cut off: the values lie within one more on either side.

    Near 1970 readers take some times for a second later or earlier than they were written.
    """
    if not (statistics.HasField("minimum_utc") and statistics.HasField("maximum_utc")):
        return None
    lower = (statistics.minimum_utc - 1) * second // 1_000
    upper = (statistics.maximum_utc + 2) * second // 1_000
    if lower < _DAY * second and upper > -_DAY * second:
        lower, upper = lower - second, upper + second
    limits = np.iinfo(np.int64)
    if lower < limits.min or upper > limits.max:
        return None
    return _Known(lower, upper, exact=False)


def _is_float(leaf: SchemaNode) -> bool:
    return leaf.physical_type in ("FLOAT", "DOUBLE")


def _is_decimal(leaf: SchemaNode) -> bool:
    return leaf.physical_type == "DECIMAL"


def _is_bytes(leaf: SchemaNode) -> bool:
    return leaf.physical_type in ("STRING", "VARCHAR", "CHAR", "BINARY")


def _keys(values: Sequence[Any], leaf: SchemaNode) -> npt.NDArray[Any]:
    if _is_bytes(leaf) or pa.types.is_decimal(leaf.arrow_type):
        keys = np.empty(len(values), object)
        keys[:] = values
        return keys
    return np.array(values, np.int64)
