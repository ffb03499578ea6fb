"""Arrays as another type that holds the same values: what a scan of several files gives.

Leaves are cast, lists get the layout of the wanted type, structs its fields in its order: a field
that is not there is null, one that is not wanted is left out.
"""

import numpy as np
import pyarrow as pa

from fretsaw.model.arrays import plain_values
from fretsaw.model.nested import NodeChain, array_of, list_items, validity_of
from fretsaw.model.widening import is_any_list


def converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column as a type that holds its values; `pa.ArrowInvalid` where it does not."""
    if column.type == kind:
        return column
    return pa.chunked_array([_converted(chunk, kind) for chunk in column.chunks], kind)


def chain_array(chain: NodeChain, array: pa.Array) -> pa.Array:
    """One leaf of a field as the array of its chain."""
    if len(chain) == 1:
        return array
    node, (below, *_) = chain[0], chain[1:]
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if node.is_struct:
        inside = chain_array(chain[1:], array.field(array.type.get_field_index(below.name)))
        kind = pa.struct([("item", inside.type)])
        return array_of(kind, len(array), [validity_of(array)], [inside])
    if pa.types.is_map(array.type):
        offsets, pairs = list_items(array)
        inside = chain_array(chain[1:], pairs.flatten()[0 if below is node.map_key else 1])
    elif pa.types.is_fixed_size_list(array.type):
        lengths = np.asarray(array.is_valid()) * array.type.list_size
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        inside = chain_array(chain[1:], array.flatten())
    else:
        offsets, inside = list_items(_converted(array, pa.list_(array.type.value_type)))
        inside = chain_array(chain[1:], inside)
    buffers = [validity_of(array), pa.py_buffer(offsets.astype(np.int32))]
    return array_of(pa.list_(inside.type), len(array), buffers, [inside])


def _converted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if isinstance(array, pa.ExtensionArray) and not isinstance(kind, pa.BaseExtensionType):
        array = array.storage
    types = pa.types
    if types.is_struct(kind):
        parts = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
        children = [
            _converted(parts[field.name], field.type)
            if field.name in parts
            else pa.nulls(len(array), field.type)
            for field in kind
        ]
        return array_of(kind, len(array), [validity_of(array)], children)
    if types.is_map(kind):
        offsets, pairs = list_items(array)
        pair = [_converted(*part) for part in zip(pairs.flatten(), _pair(kind), strict=True)]
        inside = pa.StructArray.from_arrays(pair, fields=[kind.key_field, kind.item_field])
        return array_of(kind, len(array), [validity_of(array), pa.py_buffer(offsets)], [inside])
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        inside = _converted(
            array.values.slice(array.offset * size, len(array) * size), kind.value_type
        )
        return array_of(kind, len(array), [validity_of(array)], [inside])
    return _as_list(array, kind) if is_any_list(kind) else _as_leaf(array, kind)


def _pair(kind: pa.DataType) -> tuple[pa.DataType, pa.DataType]:
    return kind.key_type, kind.item_type


def _as_list(array: pa.Array, kind: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_list_view(array.type) or types.is_large_list_view(array.type):
        array = array.cast(pa.large_list(array.type.value_field))
    offsets, inside = list_items(array)
    is_large = types.is_large_list(kind) or types.is_large_list_view(kind)
    stored = offsets.astype(np.int64 if is_large else np.int32)
    buffers = [validity_of(array), pa.py_buffer(stored)]
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        buffers = [validity_of(array), pa.py_buffer(stored[:-1]), pa.py_buffer(np.diff(stored))]
    return array_of(kind, len(array), buffers, [_converted(inside, kind.value_type)])


def _as_leaf(array: pa.Array, kind: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_dictionary(array.type):
        array = plain_values(array)
    if types.is_dictionary(kind):
        encoded = array.cast(kind.value_type).dictionary_encode()
        indices = encoded.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)
    if types.is_timestamp(kind) and types.is_timestamp(array.type):
        # A zone is only how instants are shown.
        return array.cast(pa.timestamp(kind.unit, array.type.tz)).view(kind)
    return array.cast(kind)
