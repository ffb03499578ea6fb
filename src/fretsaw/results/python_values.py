"""Arrow arrays as lists of Python objects: what pyarrow's `to_pylist` gives, and then some.

Most types are pyarrow's to convert. What it converts value by value, or not at all, goes through
NumPy here: dates, times, decimals, half floats, UUIDs, and whatever is nested around them. A time
that Python's types cannot hold stays NumPy's.
"""

import datetime
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.model import arrays
from fretsaw.model.schema import SchemaNode, value_type
from fretsaw.results import numpy_values

Objects: TypeAlias = list[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]


def objects(array: pa.Array, node: SchemaNode) -> Objects:
    """The values of a column, or of a part of one."""
    if all(_converter(leaf) is None for leaf in node.leaves()):
        return list(array.to_pylist())
    if node.is_leaf:
        convert = _converter(node)
        return array.to_pylist() if convert is None else convert(arrays.plain_values(array))
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    found = _structs(array, node) if node.is_struct else _lists(array, node)
    return _with_nulls(found, array)


def _structs(array: pa.Array, node: SchemaNode) -> Objects:
    names = [child.name for child in node.children]
    fields = [objects(array.field(place), child) for place, child in enumerate(node.children)]
    return [dict(zip(names, values, strict=True)) for values in zip(*fields, strict=True)]


def _lists(array: pa.Array, node: SchemaNode) -> Objects:
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        items = objects(array.values, node.children[0])
        begins, sizes = array.offsets.to_numpy(), array.sizes.to_numpy()
        ends = (begins + sizes).tolist()
        return [items[begin:end] for begin, end in zip(begins.tolist(), ends, strict=True)]
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        offsets = np.arange(array.offset, array.offset + len(array) + 1) * size
    else:
        offsets = array.offsets.to_numpy()
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    parts = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    columns = [
        objects(part.slice(first, count), child)
        for part, child in zip(parts, node.children, strict=True)
    ]
    items = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    places = (offsets - first).tolist()
    return [items[begin:end] for begin, end in pairwise(places)]


def _with_nulls(found: Objects, array: pa.Array) -> Objects:
    if array.null_count:
        for place in np.flatnonzero(_is_null(array)).tolist():
            found[place] = None
    return found


def _is_null(array: pa.Array) -> Mask:
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


# Leaves -----------------------------------------------------------------------------------------


def _converter(leaf: SchemaNode) -> Callable[[pa.Array], Objects] | None:
    """What converts a leaf, if not pyarrow itself."""
    if leaf.logical_type == "UUID" or isinstance(leaf.arrow_type, pa.UuidType):
        return _uuids
    if pa.types.is_dictionary(leaf.arrow_type):
        return pa.Array.to_pylist  # type: ignore[no-any-return]
    for is_type, convert in _CONVERTERS:
        if is_type(value_type(leaf)):
            return convert
    return None


def _uuids(array: pa.Array) -> Objects:
    return [None if value is None else UUID(bytes=value) for value in array.to_pylist()]


def _decimals(array: pa.Array) -> Objects:
    return list(array.to_numpy(zero_copy_only=False))


def _half_floats(array: pa.Array) -> Objects:
    return _with_nulls(_numbers(array).tolist(), array)


def _dates(array: pa.Array) -> Objects:
    days = _numbers(array).astype("datetime64[D]")
    return _converted(array, days, days, _within(days, datetime.date.min, datetime.date.max))


def _datetimes(array: pa.Array) -> Objects:
    instants = _numbers(array)
    whole, fits = _in_microseconds(instants)
    first, last = datetime.datetime.min, datetime.datetime.max
    fits &= _within(whole, first, last)
    # Of nanoseconds, pyarrow would ask pandas, which has zones of its own.
    zone = array.type.tz and pa.scalar(0, pa.timestamp("us", array.type.tz)).as_py().tzinfo
    if not zone:
        return _converted(array, instants, whole, fits)

    def in_zone(value: datetime.datetime) -> datetime.datetime:
        return zone.fromutc(value.replace(tzinfo=zone))  # type: ignore[no-any-return]

    day = datetime.timedelta(1)  # a zone may be that far from UTC
    for place in np.flatnonzero(fits & ~_within(whole, first + day, last - day)).tolist():
        try:
            in_zone(whole[place].tolist())
        except OverflowError:
            fits[place] = False
    return _converted(array, instants, whole, fits, in_zone)


def _times(array: pa.Array) -> Objects:
    since_midnight = _numbers(array)
    whole, fits = _in_microseconds(since_midnight)
    fits &= (whole >= np.timedelta64(0)) & (whole < np.timedelta64(1, "D"))
    return _converted(array, since_midnight, whole, fits, lambda value: (_MIDNIGHT + value).time())


_MIDNIGHT = datetime.datetime.min


def _durations(array: pa.Array) -> Objects:
    durations = _numbers(array)
    whole, fits = _in_microseconds(durations)
    per_day = np.timedelta64(1, "D") // np.ones(1, whole.dtype)
    days = whole.view(np.int64) // per_day
    fits &= (days >= datetime.timedelta.min.days) & (days <= datetime.timedelta.max.days)
    fits &= ~np.isnat(whole)
    return _converted(array, durations, whole, fits)


_CONVERTERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Objects]], ...] = (
    (pa.types.is_date, _dates),
    (pa.types.is_timestamp, _datetimes),
    (pa.types.is_time, _times),
    (pa.types.is_duration, _durations),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_float16, _half_floats),
)


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    found = numpy_values.values(array)
    assert found is not None
    return found


def _in_microseconds(times: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Mask]:
    """Times in whole microseconds where they are finer, and which of them lose nothing by that."""
    if np.datetime_data(times.dtype)[0] != "ns":
        return times, np.ones(len(times), np.bool_)
    whole = times.astype(times.dtype.str.replace("ns", "us"))
    return whole, times.view(np.int64) % 1000 == 0


def _within(times: npt.NDArray[Any], least: Any, most: Any) -> Mask:
    """Which of the times Python's own types can hold."""
    unit = np.datetime_data(times.dtype)[0]
    kind: Any = times.dtype.type
    return np.asarray((times >= kind(least, unit)) & (times <= kind(most, unit)))


def _converted(
    array: pa.Array,
    times: npt.NDArray[Any],
    whole: npt.NDArray[Any],
    fits: Mask,
    finish: Callable[[Any], Any] | None = None,
) -> Objects:
    """Times as Python's own objects where they fit, else as NumPy's; None where null."""
    usable = fits & ~_is_null(array) if array.null_count else fits
    if not usable.all():
        whole = np.where(usable, whole, np.zeros(1, whole.dtype))
    found = whole.tolist()
    if finish is not None:
        found = [finish(value) for value in found]
    for place in np.flatnonzero(~fits).tolist():
        found[place] = times[place]
    return _with_nulls(found, array)
