"""Values as other types: those that hold them, and casts as users ask for, which may fail."""

import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.predicates import temporal, types
from fretsaw.predicates.bound import NotComputable


def converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values in a type that holds them."""
    if array.type == kind or isinstance(kind, pa.BaseExtensionType):
        return array
    if pa.types.is_floating(kind) and pa.types.is_decimal(array.type):
        return array.cast(pa.float64()).cast(kind)
    if pa.types.is_floating(kind):
        return array.cast(kind, safe=False)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp(kind.unit, array.type.tz)).view(kind)
    return array.cast(kind)


def cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values as another type: fractions are cut off, what is out of range fails."""
    if array.type == kind:
        return array
    try:
        if pa.types.is_floating(array.type) and pa.types.is_integer(kind):
            return pc.trunc(converted(array, pa.float64())).cast(kind)
        if pa.types.is_decimal(array.type) and pa.types.is_integer(kind):
            return pc.trunc(array).cast(kind)
        if pa.types.is_floating(kind):
            return array.cast(kind, safe=False)
        if types.is_clock(array.type) and types.is_clock(kind):
            if pa.types.is_date(kind):
                array = temporal.wall_clock(array)
            return pc.cast(array, options=pc.CastOptions(kind, allow_time_truncate=True))
        if pa.types.is_decimal(array.type) and pa.types.is_decimal(kind):
            rounded = pc.round(array, min(kind.scale, array.type.scale), "half_to_even")
            return rounded.cast(kind)
        if pa.types.is_integer(array.type) and pa.types.is_decimal(kind):
            digits = types.as_decimal(array.type).precision + kind.scale
            if digits <= types.MOST_DIGITS:  # all integers of the type fit, then those there are
                return array.cast(pa.decimal256(digits, kind.scale)).cast(kind)
        return array.cast(kind)
    except pa.ArrowNotImplementedError:
        raise NotComputable(f"{array.type} cannot be cast to {kind}") from None


def try_cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values as another type, null where that fails; each distinct one is tried."""
    try:
        return cast(array, kind)
    except (pa.ArrowInvalid, NotComputable):
        if len(array) == 1:
            return pa.nulls(1, kind)
    encoded = array.dictionary_encode()
    entries, middle = encoded.dictionary, len(encoded.dictionary) // 2
    if not middle:
        return pa.nulls(len(array), kind)
    halves = [try_cast(half, kind) for half in (entries.slice(0, middle), entries.slice(middle))]
    return pa.concat_arrays(halves).take(encoded.indices)
