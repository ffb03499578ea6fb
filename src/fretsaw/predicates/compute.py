"""Computes bound expressions on decoded columns, in Arrow's and NumPy's kernels.

Where a kernel means something else than the contract (division by zero, the least integer by -1,
zones, decimals of far scales), it is composed of some that do not. Choices compute each branch for
its own rows only, so that no row fails for a branch that it does not take.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.model.schema import SchemaNode
from fretsaw.predicates import temporal, types
from fretsaw.predicates.arithmetic import calculated, negated, of_sign
from fretsaw.predicates.bound import Bound, Host, NotComputable, without_structs
from fretsaw.predicates.casts import cast, converted, try_cast
from fretsaw.predicates.evaluate import contained
from fretsaw.predicates.ordering import holds
from fretsaw.predicates.rounding import rounded
from fretsaw.predicates.value_set import Booleans

Offsets: TypeAlias = npt.NDArray[np.int64]

_ON_TEXT = {
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "strip": pc.utf8_trim_whitespace,
    "trim": partial(pc.utf8_trim, characters=" "),
}


Key: TypeAlias = tuple[int, bool, Host | None]
"""A leaf by its index, whether it is as stored, and the innermost list whose elements it is of."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Decoded leaves: each by the rows, or by the elements that are the rows inside of a list."""

    count: int
    columns: Mapping[Key, pa.Array]

    def where(self, chosen: pa.Array) -> "Rows":
        """Some of the rows."""
        columns = {key: array.filter(chosen) for key, array in self.columns.items()}
        return Rows(pc.sum(chosen, min_count=0).as_py(), columns)


def rows_of(truth: Bound, count: int, decoded: Mapping[tuple[int, bool], pa.Array]) -> Rows:
    """What a bound expression needs of some decoded leaves."""
    return Rows(count, {key: decoded[key[:2]] for key in map(_key, truth.leaves())})


def whether_true(truth: Bound, rows: Rows) -> Booleans:
    """For each row, whether a bound predicate is true; raises `NotComputable`."""
    found = compute(truth, rows)
    return np.asarray(found.fill_null(False) if found.null_count else found)


def compute(value: Bound, rows: Rows) -> pa.Array:
    """The values of some rows, in the bound type; raises `NotComputable`."""
    try:
        return _compute(value, rows)
    except pa.ArrowInvalid as error:
        raise NotComputable(str(error)) from None


def _compute(value: Bound, rows: Rows) -> pa.Array:
    match value.function:
        case "literal":
            return pa.repeat(value.options[0], rows.count)
        case "leaf" | "element":
            return _plain(_inside(rows.columns[_key(value)], len(value.options[1])))
        case "any" | "all":
            return _fold(value, rows)
        case "nth" | "get":
            return _entry(value, rows)
        case "when":
            return _choose(value, rows)
        case "coalesce":
            return _first_of(value, rows)
        case "and" | "or" | "not":
            return _logic(value, rows)
    arrays = [_compute(operand, rows) for operand in value.operands]
    if pa.types.is_boolean(value.type) and value.function != "cast" and value.function != "as":
        return _test(value, arrays)
    match value.function:
        case "+" | "-" | "*" | "/" | "//" | "%":
            return calculated(value, arrays[0], arrays[1])
        case "shift":
            return _shift(value, arrays[0], arrays[1])
        case "join":
            texts = [array.cast(value.type) for array in arrays]
            return pc.binary_join_element_wise(*texts, pa.scalar("", value.type))
    return _apply(value, arrays[0])


def _inside(array: pa.Array, depth: int) -> pa.Array:
    """What lies below so many structs; below a null one all is null."""
    for _ in range(depth):
        array = array.flatten()[0]
    return array


def _plain(array: pa.Array) -> pa.Array:
    """Values without dictionaries and extensions."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _test(value: Bound, arrays: list[pa.Array]) -> pa.Array:
    array = arrays[0]
    match value.function:
        case "is null":
            return array.is_null()
        case "is not null":
            return array.is_valid()
        case "in":
            return _known(contained(value.options[0], array), array)
        case "true or null":
            return pc.if_else(array, array, pa.scalar(None, pa.bool_()))
        case "text":
            return _match(array, *value.options[:2])
        case "compare":
            left, right = arrays
            if pa.types.is_null(left.type) or pa.types.is_null(right.type):
                return pa.nulls(len(left), pa.bool_())
            alike = [converted(side, types.computed(side.type)) for side in arrays]
            return _known(holds(value.options[0], *alike), left, right)
    raise TypeError(f"not a test: {value.function}")


def _known(found: Booleans, *arrays: pa.Array) -> pa.Array:
    """What was found, and unknown where a value is null."""
    nulls = [np.asarray(array.is_null()) for array in arrays if array.null_count]
    return pa.array(found, mask=np.any(nulls, axis=0) if nulls else None)


def _match(array: pa.Array, test: str, pattern: str | bytes) -> pa.Array:
    array = array.cast(types.computed(array.type))
    match test:
        case "contains":
            return pc.match_substring(array, pattern)
        case "ends with":
            return pc.ends_with(array, pattern)
        case _:
            return pc.match_substring_regex(array, pattern, ignore_case=test == "ilike")


def _logic(value: Bound, rows: Rows) -> pa.Array:
    arrays = [_compute(operand, rows) for operand in value.operands]
    if value.function == "not":
        return pc.invert(arrays[0])
    join = pc.and_kleene if value.function == "and" else pc.or_kleene
    joint = arrays[0]
    for array in arrays[1:]:
        joint = join(joint, array)
    return joint


def _elements(leaf: Bound, host: Host, rows: Rows) -> pa.Array:
    """All elements of a list that a leaf holds, one list after the other."""
    lists = _inside(rows.columns[_key(leaf)], len(host.above))
    offsets = np.asarray(lists.offsets)
    return lists.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _fold(value: Bound, rows: Rows) -> pa.Array:
    """Three-valued OR or AND over the elements of each list; a null list is unknown."""
    lists, truth = _compute(value.operands[0], rows), value.operands[1]
    (host,) = value.options
    offsets = np.asarray(lists.offsets).astype(np.int64)
    parents = pa.array(np.repeat(np.arange(rows.count), np.diff(offsets)))
    columns = {
        _key(leaf): _elements(leaf, host, rows)
        if host in leaf.options[2]
        else rows.columns[_key(leaf)].take(parents)
        for leaf in truth.leaves()
    }
    found = _compute(truth, Rows(len(parents), columns))
    decisive = np.asarray(found.fill_null(False))
    if value.function == "all":
        decisive = np.asarray(pc.invert(found).fill_null(False))
    unknown = np.asarray(found.is_null())
    decided, undecided = (_per_list(which, offsets) > 0 for which in (decisive, unknown))
    result = decided if value.function == "any" else ~decided
    return pa.array(result, mask=(undecided & ~decided) | np.asarray(lists.is_null()))


def _per_list(which: Booleans, offsets: Offsets) -> Offsets:
    """How many of the elements of each list are such."""
    before = np.concatenate(([0], np.cumsum(which)))
    counts: Offsets = np.diff(before[offsets - offsets[0]])
    return counts


def _key(leaf: Bound) -> Key:
    node, _, hosts = leaf.options
    return node.leaf_index, node.as_stored, hosts[-1] if hosts else None


def _entry(value: Bound, rows: Rows) -> pa.Array:
    """The element at a place of each list, or the last value of a key of each map; else null."""
    lists = _compute(value.operands[0], rows)
    host, sought = value.options
    starts = np.asarray(lists.offsets).astype(np.int64)
    starts -= starts[0]
    *keys, held = (_held(operand, host, rows) for operand in value.operands[1:])
    if value.function == "nth":
        places = starts[:-1] + sought
        missing = places >= starts[1:]
    else:
        found = np.flatnonzero(contained(sought, keys[0]) & np.asarray(keys[0].is_valid()))
        places = np.full(rows.count, -1, np.int64)
        places[np.searchsorted(starts, found, "right") - 1] = found  # the last one stays
        missing = places < 0
    missing |= np.asarray(lists.is_null())
    return held.take(pa.array(places, mask=missing))


def _held(value: Bound, host: Host, rows: Rows) -> pa.Array:
    """What the elements of a list hold, one list after the other."""
    return _plain(_inside(_elements(value, host, rows), len(value.options[1])))


def _choose(value: Bound, rows: Rows) -> pa.Array:
    """The value of the first condition that is true; each is computed for its rows only."""
    count = len(value.operands) // 2
    conditions, values = value.operands[:count], value.operands[count:]
    left, parts, places = np.arange(rows.count), [], []
    for condition, branch in zip(conditions, values[:-1], strict=True):
        true = whether_true(condition, rows)
        parts.append(converted(_compute(branch, rows.where(pa.array(true))), value.type))
        places.append(left[true])
        rows, left = rows.where(pa.array(~true)), left[~true]
    parts.append(converted(_compute(values[-1], rows), value.type))
    return _scattered(parts, [*places, left])


def _first_of(value: Bound, rows: Rows) -> pa.Array:
    left, parts, places = np.arange(rows.count), [], []
    for operand in value.operands:
        part = converted(_compute(operand, rows), value.type)
        missing = np.asarray(part.is_null()) & (operand is not value.operands[-1])
        parts.append(part.filter(pa.array(~missing)))
        places.append(left[~missing])
        rows, left = rows.where(pa.array(missing)), left[missing]
    return _scattered(parts, places)


def _scattered(parts: list[pa.Array], places: list[Any]) -> pa.Array:
    """Parts put together, each value at its place."""
    order = np.concatenate(places)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(back))


def _shift(value: Bound, left: pa.Array, right: pa.Array) -> pa.Array:
    """Times moved by durations, and what lies between times."""
    step = types.tick(value.type)
    operate = pc.add_checked if value.options[0] == "+" else pc.subtract_checked
    ticks = operate(_ticks(left, step), _ticks(right, step))
    if pa.types.is_date(value.type):
        return ticks.cast(pa.int32()).view(value.type)
    return ticks.view(value.type)


def _ticks(array: pa.Array, step: int) -> pa.Array:
    """Times as multiples of so many nanoseconds."""
    narrow = array.type.bit_width == 32
    ticks = array.view(pa.int32() if narrow else pa.int64()).cast(pa.int64())
    own = types.tick(array.type)
    if own >= step:
        return ticks if own == step else pc.multiply_checked(ticks, own // step)
    return pc.divide(ticks, step // own)  # whole days


def _apply(value: Bound, array: pa.Array) -> pa.Array:
    kind, options = value.type, value.options
    match value.function:
        case "as":
            return converted(array, kind)
        case "negate" | "abs":
            if pa.types.is_duration(kind):
                return of_sign(value.function, array.view(pa.int64())).view(kind)
            unsigned = pa.types.is_uint64(array.type) and value.function == "negate"
            return negated(array) if unsigned else of_sign(value.function, converted(array, kind))
        case "round":
            return rounded(converted(array, kind), *options)
        case "lower" | "upper" | "strip" | "trim":
            return _ON_TEXT[value.function](converted(array, kind))
        case "count":
            return pc.list_value_length(array).cast(kind)
        case "length":
            array = converted(array, types.computed(array.type))
            is_text = types.is_text(array.type)
            return (pc.utf8_length if is_text else pc.binary_length)(array).cast(pa.int64())
        case "truncate":
            return temporal.truncated(array, *options)
        case "cast":
            return try_cast(array, kind) if "try" in options else cast(array, kind)
    return temporal.part(array, value.function).cast(kind)


def true_of_leaves(truth: Bound, columns: Sequence[tuple[SchemaNode, pa.ChunkedArray]]) -> Booleans:
    """For each row of some decoded leaves, whether a bound predicate is true."""
    arrays = {
        (leaf.leaf_index, leaf.as_stored): column.combine_chunks() for leaf, column in columns
    }
    ((key, first), *others) = arrays.items()
    if not others and isinstance(first, pa.DictionaryArray):
        with suppress(NotComputable):  # perhaps for an entry that no row has
            return _of_entries(truth, key, first)
    return whether_true(truth, rows_of(truth, len(first), arrays))


def _of_entries(truth: Bound, key: tuple[int, bool], array: pa.DictionaryArray) -> Booleans:
    """What is true of the entries of a dictionary and of null, for each value."""
    entries = pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)])
    found = whether_true(truth, rows_of(truth, len(entries), {key: entries}))
    places = array.indices.fill_null(len(entries) - 1) if array.null_count else array.indices
    return np.asarray(found[np.asarray(places)])


def true_of_values(truth: Bound, leaf: SchemaNode, values: pa.ChunkedArray) -> Booleans:
    """For some values of the only leaf of a bound predicate, whether it is true."""
    array, bare = _plain(values.combine_chunks()), without_structs(truth)
    decoded = {(leaf.leaf_index, leaf.as_stored): array}
    return whether_true(bare, rows_of(bare, len(array), decoded))
