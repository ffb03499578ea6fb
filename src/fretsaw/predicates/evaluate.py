"""Which rows match a check, by the decoded values of its leaf.

Comparisons run on the stored integers and floats in place, or in Arrow for strings; the floats'
total order is that of `fretsaw.predicates.value_set`.
"""

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.model.blocks import Bounds, Int64s
from fretsaw.model.locks import importing
from fretsaw.predicates.condition import Check
from fretsaw.predicates.value_set import (
    NAN_KEY,
    NOTHING,
    Booleans,
    ValueSet,
    float_at,
    float_keys,
    successor,
)

_FEW_CUTS = 4  # compared one by one; more are searched
_SMALL_PAGE = 300  # rows, below which pages of strings are cheaper to check together
_INTEGERS = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def matches(check: Check, column: pa.ChunkedArray) -> Booleans:
    """For each row of the leaf's chain, whether the check is true."""
    if column.num_chunks == 1:
        return _descend(check, column.chunk(0), 0)
    masks = [_descend(check, chunk, 0) for chunk in column.chunks]
    return np.concatenate([np.empty(0, np.bool_), *masks])


def page_outside(column: pa.ChunkedArray, page_starts: Int64s, bounds: Bounds) -> int | None:
    """The first page with a value outside of its bounds; page `i` begins at `page_starts[i]`."""
    array = column.combine_chunks()
    while pa.types.is_struct(array.type):
        array = array.flatten()[0]
    pages = np.flatnonzero(bounds.known & (page_starts[1:] > page_starts[:-1]))
    lower, upper = bounds.lower[pages], bounds.upper[pages]
    if len(array) < _SMALL_PAGE * len(pages) and _numbers(array) is None:
        array = _encoded(array)
    is_encoded = isinstance(array, pa.DictionaryArray)
    keys, entries = _ranks(array) if is_encoded else (_numbers(array), None)
    if keys is None:
        outside = [
            not _within(array.slice(start, end - start), low, high)
            for start, end, low, high in zip(
                page_starts[pages].tolist(),
                page_starts[pages + 1].tolist(),
                lower.tolist(),
                upper.tolist(),
                strict=True,
            )
        ]
        return next(
            (int(page) for page, is_out in zip(pages, outside, strict=True) if is_out), None
        )
    if array.null_count:
        valid = _valid(array)
        keys = keys[valid]
        page_starts = np.concatenate(([0], np.cumsum(valid)))[page_starts]
        pages = pages[page_starts[pages + 1] > page_starts[pages]]
        lower, upper = bounds.lower[pages], bounds.upper[pages]
    if not len(pages):
        return None
    # Of floats, the extremes of what is not NaN.
    lows = _per_page(np.fmin, keys, page_starts, pages)
    highs = _per_page(np.fmax, keys, page_starts, pages)
    if entries is not None:
        lows, highs = entries[lows], entries[highs]
    elif keys.dtype.kind == "f":
        lows, highs = float_keys(lows), float_keys(highs)
        lows[lows == NAN_KEY], highs[highs == NAN_KEY] = -NAN_KEY, -NAN_KEY
        lower = np.where(lows == -NAN_KEY, -NAN_KEY, lower)
    wrong = np.flatnonzero((lows < lower) | (highs > upper))
    return int(pages[wrong[0]]) if len(wrong) else None


def _encoded(array: pa.Array) -> pa.Array:
    """Strings and decimals as references to a dictionary, where Arrow can make one."""
    kind, types = array.type, pa.types
    can = types.is_string(kind) or types.is_binary(kind) or types.is_decimal128(kind)
    return array.dictionary_encode() if can else array


def _ranks(array: pa.DictionaryArray) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Dictionary-encoded values by the places of their entries in order, and the entries."""
    with importing:
        import pyarrow.compute as pc

    is_decimal = pa.types.is_decimal(array.dictionary.type)
    stored = array.dictionary if is_decimal else array.dictionary.cast(pa.binary())
    order = np.asarray(pc.array_sort_indices(stored))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order))
    entries = np.empty(len(order), object)
    sorted_entries = stored.take(pa.array(order))
    entries[:] = _unscaled(sorted_entries) if is_decimal else sorted_entries.to_pylist()
    indices = _stored(array.indices, np.dtype(array.indices.type.to_pandas_dtype()))
    return ranks.take(indices, mode="clip") if len(ranks) else indices, entries


def _unscaled(array: pa.Array) -> list[int]:
    """Decimals of 128 bits as the integers that they are stored as."""
    words = _stored(array, np.dtype((np.uint64, 2)))
    highs = words[:, 1].view(np.int64).tolist()
    return [high << 64 | low for low, high in zip(words[:, 0].tolist(), highs, strict=True)]


def _per_page(
    extreme: np.ufunc, keys: npt.NDArray[Any], page_starts: Int64s, pages: Int64s
) -> npt.NDArray[Any]:
    """The extreme of each of these pages, which hold values."""
    edges = np.column_stack((page_starts[pages], page_starts[pages + 1])).ravel()
    inside = edges if edges[-1] < len(keys) else edges[:-1]
    found: npt.NDArray[Any] = extreme.reduceat(keys, inside)[::2]
    return found


def _within(values: pa.Array, lower: Any, upper: Any) -> bool:
    inside = contained(ValueSet.between(lower, successor(upper)), values)
    return bool((inside | ~_valid(values)).all())


def _descend(check: Check, array: pa.Array, depth: int) -> Booleans:
    """The check below so many of the nodes above the column."""
    if depth == len(check.above):
        return _check(check, array)
    if check.above[depth] == "struct":
        return _descend(check, array.flatten()[0], depth + 1)
    offsets = np.asarray(array.offsets)
    inside = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    below = _descend(check, inside, depth + 1)
    true_before = np.concatenate(([0], np.cumsum(below)))
    true = np.diff(true_before[offsets - offsets[0]])
    found: Booleans = true > 0 if check.fold == "any" else true == np.diff(offsets)
    return found & _valid(array)


def _check(check: Check, array: pa.Array) -> Booleans:
    match check.values:
        case "null":
            return ~_valid(array)
        case "not null":
            return _valid(array)
        case "anything":
            return np.ones(len(array), np.bool_)
        case values:
            found = contained(values, array)
            return found & _valid(array) if array.null_count else found


def _valid(array: pa.Array) -> Booleans:
    if not array.null_count and not pa.types.is_union(array.type):  # its parts have the nulls
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid())


def contained(values: ValueSet, array: pa.Array) -> Booleans:
    """Whether each value is in the set; anything where there is none."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        found = contained(values, array.dictionary) & _valid(array.dictionary)
        return _of_entries(found, array.indices)
    if pa.types.is_null(array.type) or values == NOTHING:
        return np.zeros(len(array), np.bool_)
    numbers = _numbers(array)
    if numbers is not None:
        among = _among_floats if numbers.dtype.kind == "f" else _among_integers
        return among(values, numbers)
    if pa.types.is_decimal(array.type):
        return _among_decimals(values, array)
    return _among_strings(values, array)


def _numbers(array: pa.Array) -> npt.NDArray[Any] | None:
    """The values as stored integers or floats, if they are such; nulls are anything."""
    kind, types = array.type, pa.types
    if types.is_boolean(kind):
        return np.asarray(array.fill_null(False)).view(np.int8)
    if types.is_floating(kind):
        return _stored(array, np.dtype(kind.to_pandas_dtype()))
    if types.is_date64(kind):
        array, kind = array.cast(pa.date32()), pa.date32()
    is_number = types.is_primitive(kind) or types.is_decimal(kind)
    if not is_number or kind.bit_width > 64:
        return None
    dtype = np.dtype(_INTEGERS[kind.bit_width])
    if types.is_unsigned_integer(kind):
        dtype = np.dtype(f"u{dtype}")
    return _stored(array, dtype)


def _of_entries(found: Booleans, indices: pa.Array) -> Booleans:
    """What is true of dictionary entries, for each value that refers to one."""
    if not len(found):
        return np.zeros(len(indices), np.bool_)
    stored = _stored(indices, np.dtype(indices.type.to_pandas_dtype()))
    return found.take(stored, mode="clip")  # nulls refer to anything


def _stored(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values of a primitive array as they lie in memory, nulls as whatever is there."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    end = (array.offset + len(array)) * dtype.itemsize
    return np.frombuffer(buffer.slice(0, end), dtype)[array.offset :]


def _among_integers(values: ValueSet, stored: npt.NDArray[Any]) -> Booleans:
    cuts, begins_inside = values.within(stored.dtype)
    if len(cuts) == 2 and not begins_inside and cuts[1] == cuts[0] + 1:
        return np.asarray(stored == cuts[0])
    if len(cuts) > _FEW_CUTS:
        return _searched(np.array(cuts, stored.dtype), begins_inside, stored)
    return _alternating([stored >= cut for cut in cuts], begins_inside, len(stored))


def _among_floats(values: ValueSet, stored: npt.NDArray[Any]) -> Booleans:
    cuts, begins_inside = values.within(np.dtype(np.int64))
    if len(cuts) > _FEW_CUTS:
        return _searched(np.array(cuts), begins_inside, float_keys(stored))
    return _alternating([_from_float(cut, stored) for cut in cuts], begins_inside, len(stored))


def _from_float(cut: int, stored: npt.NDArray[Any]) -> Booleans:
    """The floats from a place of the total order on."""
    if cut > NAN_KEY:
        return np.zeros(len(stored), np.bool_)
    if cut == NAN_KEY:
        return np.asarray(np.isnan(stored))
    reached: Booleans = ~(stored < _at_or_above(float_at(cut), stored.dtype))  # NaN is not below
    if cut == 0:  # both zeros are equal there
        reached &= ~((stored == 0) & np.signbit(stored))
    return reached


def _at_or_above(value: float, dtype: np.dtype[Any]) -> Any:
    """The first float of a dtype that is not below the value."""
    with np.errstate(over="ignore", under="ignore"):
        here = dtype.type(value)
        return here if float(here) >= value else np.nextafter(here, dtype.type(np.inf))


def _among_decimals(values: ValueSet, array: pa.Array) -> Booleans:
    """Decimals of 128 and 256 bits: compared word by word, the highest first."""
    count = array.type.bit_width // 64
    words = _stored(array, np.dtype((np.uint64, count)))
    limit = 1 << (array.type.bit_width - 1)
    cuts = [min(max(cut, -limit), limit) for cut in values.cuts]
    reached = [
        np.full(len(array), cut < limit)
        if abs(cut) == limit
        else _from_words(cut % (2 * limit), words, count)
        for cut in cuts
    ]
    return _alternating(reached, values.begins_inside, len(array))


def _from_words(cut: int, words: npt.NDArray[np.uint64], count: int) -> Booleans:
    """The integers, in two's complement, from one on."""
    reached = np.ones(len(words), np.bool_)
    for place in range(count):
        word, here = words[:, place], np.uint64(cut >> (64 * place) & (2**64 - 1))
        if place == count - 1:
            word, here = word.view(np.int64), here.view(np.int64)
        reached = (word > here) | ((word == here) & reached)
    return reached


def _among_strings(values: ValueSet, array: pa.Array) -> Booleans:
    with importing:
        import pyarrow.compute as pc

    # Bytes compare as strings do, and a cut need not be text. There are no kernels for views.
    plain = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    kind = pa.binary() if plain else pa.large_binary()
    stored = array.cast(kind)
    points = values.points()
    if points is not None and len(points) == 1:
        found = np.asarray(pc.equal(stored, pa.scalar(points[0], kind)).fill_null(False))
        return found ^ values.begins_inside
    if points:
        found = np.asarray(pc.is_in(stored, value_set=pa.array(points, kind)))
        return found ^ values.begins_inside
    reached = [
        np.asarray(pc.greater_equal(stored, pa.scalar(cut, kind)).fill_null(False))
        for cut in values.cuts
    ]
    return _alternating(reached, values.begins_inside, len(array))


def _alternating(reached: list[Booleans], begins_inside: bool, count: int) -> Booleans:
    """Inside or outside changes with each cut that is reached."""
    if not reached:
        return np.full(count, begins_inside)
    inside: Booleans = reduce(np.logical_xor, reached)
    return ~inside if begins_inside else inside


def _searched(cuts: npt.NDArray[Any], begins_inside: bool, keys: npt.NDArray[Any]) -> Booleans:
    passed = np.searchsorted(cuts, keys, "right") & 1
    return passed.astype(np.bool_) ^ begins_inside
