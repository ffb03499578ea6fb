"""Types as the formats hold them, and tables cast to them."""

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

from fretsaw.model.schema import with_leaves, with_nulls


def orc_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with types that ORC has for all values of its own, where there are such types."""
    # ORC has no required fields, and a required one cannot hold the nulls of its struct.
    leaves = _with_leaves(schema, _orc_leaf)
    return pa.schema([pa.field(field.name, with_nulls(field.type)) for field in leaves])


def without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """The schema with the types of the values that its dictionaries hold."""
    return _with_leaves(schema, _decoded)


def plain(kind: pa.DataType) -> pa.DataType:
    """What a dictionary, an extension or a view is in formats that have no such thing."""
    if types.is_dictionary(kind):
        return plain(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    if types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if types.is_binary_view(kind) else kind


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows; Arrow's own `empty_table` knows no unions."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the types of the schema; columns that have theirs are left alone."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def repeat_nulls(table: pa.Table) -> pa.Table:
    """The same table, in which what lies in a null struct is null itself.

    Arrow's ORC writer stores other values where it is not, and takes slices for the whole.
    """
    columns = [
        _with_outer_nulls(pa.concat_arrays(column.chunks))
        if types.is_nested(column.type) and column.num_chunks
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _with_outer_nulls(array: pa.Array) -> pa.Array:
    kind, validity = array.type, array.is_valid().buffers()[1] if array.null_count else None
    if types.is_struct(kind):
        if validity is not None and any(types.is_union(field.type) for field in kind):
            raise pa.ArrowNotImplementedError(
                "a null struct cannot hold a union, which has no nulls"
            )
        buffers, children = [validity], array.flatten()  # with the nulls of the struct
    elif types.is_fixed_size_list(kind):
        buffers, children = [validity], [array.values]
    elif types.is_nested(kind) and not types.is_union(kind):
        buffers, children = [validity, array.offsets.buffers()[1]], [array.values]
    else:
        return array
    inside = [_with_outer_nulls(child) for child in children]
    return pa.Array.from_buffers(kind, len(array), buffers, children=inside)


def _with_leaves(schema: pa.Schema, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    """The schema with other types for its leaves."""
    fields = [field.with_type(with_leaves(field.type, leaf)) for field in schema]
    return pa.schema(fields, schema.metadata)


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if types.is_dictionary(kind) else kind


def _orc_leaf(kind: pa.DataType) -> pa.DataType:
    """The ORC type that holds all values of a type, or the type itself."""
    kind = plain(kind)
    if types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return _WIDER_IN_ORC.get(kind, kind)


_WIDER_IN_ORC = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
