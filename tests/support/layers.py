"""Python objects out of the layers of column batches, and the rules that every batch keeps.

A `Leaf` is a path through an Arrow schema. `Leaf.records` cuts what pyarrow's `to_pylist` gives
down to it: a struct that may be null becomes a tuple of one, a list or map a list. `rebuild` makes
the same of a batch, out of its layers, offsets, validities and leaf values alone. `check_rules`
holds a batch against the rules for layers, whatever the data.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import fretsaw as fs
from tests.support.nested_data import steps

Array = NDArray[Any]

STRUCT, REPEATED = fs.LayerKind.STRUCT, fs.LayerKind.REPEATED
# As many items are asked one by one; of more, the first and the last.
ONE_BY_ONE = 70


@dataclass(frozen=True)
class Leaf:
    """A leaf of a schema: the steps to it, and the field at each step."""

    path: tuple[str, ...]
    fields: tuple[pa.Field, ...]

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def kind(self) -> pa.DataType:
        return self.fields[-1].type

    @property
    def layers(self) -> tuple[fs.LayerKind, ...]:
        """The layers that its batches have."""
        above = self.fields[:-1]
        repeated = [not pa.types.is_struct(storage_of(item.type)) for item in above]
        found = [
            REPEATED if repeats else STRUCT
            for item, repeats in zip(above, repeated, strict=True)
            if repeats or item.nullable
        ]
        return tuple(found)

    def records(self, values: Iterable[Any]) -> list[Any]:
        """The leaf's part of values of `to_pylist`, to compare with what `rebuild` gives."""
        return [self._record(value, 0) for value in values]

    def _record(self, value: Any, depth: int) -> Any:
        if value is None or depth == len(self.fields) - 1:
            return value
        kind, step = storage_of(self.fields[depth].type), self.path[depth + 1]
        if pa.types.is_struct(kind):
            inner = self._record(value[step], depth + 1)
            return (inner,) if self.fields[depth].nullable else inner
        if pa.types.is_map(kind):
            value = [pair[step == "value"] for pair in value]
        return [self._record(item, depth + 1) for item in value]

    def cut(self, value: Any, depth: int = 0) -> Any:
        """The leaf's part of a value of `to_pylist`, as Arrow holds it: structs are dicts."""
        if value is None or depth == len(self.fields) - 1:
            return value
        kind, step = storage_of(self.fields[depth].type), self.path[depth + 1]
        if pa.types.is_struct(kind):
            return {step: self.cut(value[step], depth + 1)}
        if pa.types.is_map(kind):
            value = [pair[step == "value"] for pair in value]
        return [self.cut(item, depth + 1) for item in value]

    def check_type(self, kind: pa.DataType, depth: int = 0) -> None:
        """The type of an Arrow array is that of the schema, cut to this leaf."""
        wanted = self.fields[depth].type
        if depth == len(self.fields) - 1:
            assert kind == wanted, self.path
            return
        wanted, below = storage_of(wanted), self.fields[depth + 1]
        kind = storage_of(kind)
        if pa.types.is_struct(wanted):
            assert pa.types.is_struct(kind)
            [inner] = kind
            assert inner.name == below.name
        else:
            assert pa.types.is_large_list(kind) == pa.types.is_large_list(wanted)
            inner = kind.value_field
            assert pa.types.is_map(wanted) or inner.name == below.name
        assert inner.nullable == below.nullable
        self.check_type(inner.type, depth + 1)


def storage_of(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def leaves_of(schema: Iterable[pa.Field]) -> list[Leaf]:
    """Every leaf of a schema, in order."""

    def walk(item: pa.Field, path: tuple[str, ...], above: tuple[pa.Field, ...]) -> Iterator[Leaf]:
        below = list(steps(storage_of(item.type)))
        if not below:
            yield Leaf(path, (*above, item))
        for step, inner in below:
            yield from walk(inner, (*path, step), (*above, item))

    return [leaf for item in schema for leaf in walk(item, (item.name,), ())]


def present(validity: fs.Validity, count: int) -> Array:
    """Which of so many items are not null."""
    return np.broadcast_to(validity.mask(), (count,))


def rebuild(batch: fs.ColumnBatch, leaf: Leaf) -> list[Any]:
    """The records of a batch, out of layers and leaf values."""
    items = expanded(leaf_array(batch, leaf.kind), present(batch.leaf_validity, batch.value_count))
    for layer in reversed(batch.layers):
        if layer.kind is STRUCT:
            records: list[Any] = [(item,) for item in items]
        else:
            records = [items[start:end] for start, end in pairwise(layer.offsets.tolist())]
        here = present(layer.validity, len(records))
        items = [record if there else None for record, there in zip(records, here, strict=True)]
    return items


def expanded(array: pa.Array, mask: Array) -> list[Any]:
    """The values of the array where the mask is set, None elsewhere."""
    values = iter(array.to_pylist())
    items = [next(values) if there else None for there in mask]
    assert next(values, items) is items
    return items


def leaf_array(batch: fs.ColumnBatch, kind: pa.DataType) -> pa.Array:
    """The leaf values that are not null, as an Arrow array of the type."""
    here = present(batch.leaf_validity, batch.value_count)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, leaf_array(batch, kind.storage_type))
    if pa.types.is_dictionary(kind):
        return leaf_array(batch, kind.value_type)
    if pa.types.is_null(kind):
        assert not here.any()
        assert batch.values.dtype == np.uint8
        assert not batch.values.any()
        return pa.nulls(0)
    if pa.types.is_decimal(kind):
        numbers = [int.from_bytes(piece, "little", signed=True) for piece in pieces(batch, here)]
        if kind.precision <= 18:
            assert batch.values.dtype == np.int64
            assert batch.values[here].tolist() == numbers
        return pa.array([unscaled(number, kind.scale) for number in numbers], kind)
    if is_binary(kind):
        found = pieces(batch, here)
        text = [piece.decode() for piece in found] if is_text(kind) else found
        return pa.array(text, kind)
    values = batch.values
    assert (values.dtype, values.shape) == (dtype_of(kind), (batch.value_count,))
    values = values[here]
    if not pa.types.is_temporal(kind):
        return pa.array(values, kind)
    numbers = pa.array(values.view(np.int64))
    return numbers.cast(pa.int32()).view(kind) if kind.bit_width == 32 else numbers.view(kind)


def pieces(batch: fs.ColumnBatch, here: Array) -> list[bytes]:
    """The bytes of the leaf values that are not null."""
    data, offsets = batch.binary_values, batch.binary_offsets
    assert data.dtype == np.uint8
    assert len(offsets) == batch.value_count + 1
    assert (offsets[0], offsets[-1]) == (0, len(data))
    assert (np.diff(offsets) >= 0).all()
    spans = zip(pairwise(offsets.tolist()), here, strict=True)
    return [data[start:end].tobytes() for (start, end), there in spans if there]


def unscaled(number: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -scale))


def is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_binary(kind: pa.DataType) -> bool:
    """Whether the bytes of each value are what a batch holds, decimals aside."""
    variable = (pa.binary(), pa.large_binary(), pa.binary_view())
    return is_text(kind) or kind in variable or pa.types.is_fixed_size_binary(kind)


def dtype_of(kind: pa.DataType) -> Any:
    """The dtype of `.values` for types that are not binary."""
    if isinstance(kind, pa.BaseExtensionType):
        return dtype_of(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return dtype_of(kind.value_type)
    if pa.types.is_date32(kind):
        return np.dtype("datetime64[D]")
    if pa.types.is_date64(kind):
        return np.dtype("datetime64[ms]")
    if pa.types.is_timestamp(kind):
        return np.dtype(f"datetime64[{kind.unit}]")
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return np.dtype(f"timedelta64[{kind.unit}]")
    if pa.types.is_decimal(kind):
        return np.dtype(np.int64)
    if pa.types.is_null(kind):
        return np.dtype(np.uint8)
    return np.dtype(kind.to_pandas_dtype())


# Rules


def check_rules(batch: fs.ColumnBatch, leaf: Leaf) -> None:
    """What holds for every batch of a leaf."""
    assert batch.schema.is_leaf
    assert batch.schema.name == leaf.path[-1]
    layers = batch.layers
    assert isinstance(layers, tuple)
    assert tuple(layer.kind for layer in layers) == leaf.layers
    assert batch.record_count > 0
    assert batch.count(0) == batch.record_count
    assert batch.count(len(layers)) == batch.value_count
    # Below a null struct all is null, up to the next list.
    gone = np.zeros(batch.record_count, np.bool_)
    for depth, layer in enumerate(layers):
        count = batch.count(depth)
        here = check_validity(layer.validity, count)
        assert not (here & gone).any()
        if layer.kind is STRUCT:
            assert batch.count(depth + 1) == count
            gone = ~here
        else:
            offsets = layer.offsets
            assert offsets.dtype == np.int32
            assert offsets.shape == (count + 1,)
            assert offsets[0] == 0
            assert offsets[-1] == batch.count(depth + 1)
            lengths = np.diff(offsets)
            assert (lengths >= 0).all()
            assert not lengths[~here].any()
            gone = np.zeros(batch.count(depth + 1), np.bool_)
    here = check_validity(batch.leaf_validity, batch.value_count)
    assert not (here & gone).any()
    if not leaf.fields[-1].nullable:
        assert np.array_equal(here, ~gone)


def check_validity(validity: fs.Validity, count: int) -> Array:
    """The validity of so many items agrees with itself; which are not null."""
    here = present(validity, count)
    shown = range(count) if count <= ONE_BY_ONE else (0, 1, 63, 64, count - 2, count - 1)
    for at in shown:
        assert validity.is_null(at) == (not here[at])
        assert validity.is_not_null(at) == here[at]
    if here.all():
        assert validity is fs.Validity.NO_NULLS
        assert validity.words is None
        assert not validity.has_nulls
        return here
    assert validity is not fs.Validity.NO_NULLS
    assert validity.has_nulls
    mask, words = validity.mask(), validity.words
    assert mask.dtype == np.bool_
    assert mask.shape == (count,)
    assert words is not None
    assert words.dtype == np.uint64
    assert words.shape == ((count + 63) // 64,)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    assert np.array_equal(bits[:count].astype(np.bool_), mask)
    return here


def arrays_of(batch: fs.ColumnBatch) -> list[Array]:
    """Every array that a batch hands out."""
    found: list[Array] = []
    for validity in (batch.leaf_validity, *(layer.validity for layer in batch.layers)):
        if validity.words is not None:
            found += [validity.words, validity.mask()]
    found += [layer.offsets for layer in batch.layers if layer.kind is REPEATED]
    for name in ("values", "binary_values", "binary_offsets"):
        try:
            found.append(getattr(batch, name))
        except TypeError:
            continue
    return found


def assert_rebuilt(batches: Sequence[fs.ColumnBatch], leaf: Leaf, values: Iterable[Any]) -> None:
    """The batches keep the rules, and are these values of `to_pylist`."""
    found: list[Any] = []
    for batch in batches:
        check_rules(batch, leaf)
        found += rebuild(batch, leaf)
    # As text, so that NaN equals itself and -0.0 is not 0.0.
    assert repr(found) == repr(leaf.records(values)), leaf.name


def assert_arrow(batches: Sequence[fs.ColumnBatch], leaf: Leaf, values: Iterable[Any]) -> None:
    """The Arrow arrays of the batches are these values of `to_pylist`, cut to the leaf."""
    found: list[Any] = []
    for batch in batches:
        array = batch.arrow
        array.validate(full=True)
        assert len(array) == batch.record_count
        leaf.check_type(array.type)
        found += array.to_pylist()
    assert repr(found) == repr([leaf.cut(value) for value in values]), leaf.name
