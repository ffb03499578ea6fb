"""Bounds as values of their column, and as text: keys turned back into what they stand for."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from fretsaw.model.schema import SchemaNode, value_type
from fretsaw.predicates.value_set import Booleans, float_at
from fretsaw.results.write.text import csv_column


def bound_values(keys: npt.NDArray[Any], known: Booleans, leaf: SchemaNode) -> pa.Array:
    """Keys as values of a leaf's type; null where they are not known."""
    kind = value_type(leaf)
    told = [key if is_known else None for key, is_known in zip(keys, known.tolist(), strict=True)]
    if all(key is None for key in told):
        return pa.nulls(len(told), kind)
    if types.is_floating(kind):
        floats = [None if key is None else float_at(int(key)) for key in told]
        if types.is_float16(kind):
            return pa.array([None if f is None else np.float16(f) for f in floats], kind)
        return pa.array(floats, kind)
    if types.is_boolean(kind):
        return pa.array([None if key is None else bool(key) for key in told], kind)
    if types.is_decimal(kind):
        with localcontext(prec=100):
            unscaled = [None if key is None else Decimal(int(key)) for key in told]
            return pa.array([u if u is None else u.scaleb(-kind.scale) for u in unscaled], kind)
    if types.is_integer(kind):
        return pa.array(told, kind)
    if types.is_temporal(kind):
        stored = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(told, stored).view(kind)
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, pa.array(told, pa.binary(16)))
    if _is_text(kind):
        return pa.array([None if key is None else _as_text(key) for key in told], kind)
    return pa.array(told, kind)


def bound_texts(keys: npt.NDArray[Any], known: Booleans, leaf: SchemaNode) -> pa.Array:
    """The same as text; bytes that are none in hexadecimal digits."""
    values = bound_values(keys, known, leaf)
    kind = values.type
    if types.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.array(
            [None if v is None else _spelled(v) for v in values.to_pylist()], pa.string()
        )
    return csv_column(pa.chunked_array([values])).cast(pa.string()).combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    return any((types.is_string(kind), types.is_large_string(kind), types.is_string_view(kind)))


def _as_text(bound: bytes) -> str:
    """A bound may be cut off in the middle of a character."""
    return bound.decode(errors="backslashreplace")


def _spelled(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
    return text if text.isprintable() else f"0x{value.hex()}"
