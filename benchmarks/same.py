"""Whether two contestants returned the same rows."""

import numpy as np
import pyarrow as pa


def same_rows(one: pa.Table, other: pa.Table, tolerance: float) -> bool:
    """Equal in names, order, values and nulls, whatever flavour of type holds them."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    return all(
        _same_values(_plain(left), _plain(right), tolerance)
        for left, right in zip(one.columns, other.columns, strict=True)
    )


def _same_values(one: pa.Array, other: pa.Array, tolerance: float) -> bool:
    if tolerance and pa.types.is_floating(one.type):
        return np.allclose(one, other, rtol=tolerance, atol=0.0, equal_nan=True)
    return bool(one.equals(other))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array of the plainest type: contestants differ in the widths and units they choose."""
    return column.cast(_plain_type(column.type)).combine_chunks()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind
