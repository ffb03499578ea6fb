"""Leaves zipped into nested fields, and the layers that lie around a leaf.

Each leaf comes as an Arrow array of its own chain: the lists and structs above it, with the
offsets and validity of each. The leaves of a field share these, so the field is made of the first
leaf's layers around all leaves side by side; no value is touched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.model.arrays import locked, take
from fretsaw.model.schema import SchemaNode, type_with

NodeChain: TypeAlias = tuple[SchemaNode, ...]
"""The nodes from a field down to one of its leaves."""
Words: TypeAlias = npt.NDArray[np.uint64]
"""A bit for each item, set where it is present."""


class MisalignedLeaves(ValueError):
    """Leaves of one field that disagree about its lists."""


class LayerArrays(NamedTuple):
    """An optional struct or a list above a leaf: what is present, and where each list begins."""

    present: Words | None
    offsets: npt.NDArray[np.int32] | None


def chains_of(field: SchemaNode) -> Iterator[NodeChain]:
    """The chains of all leaves of a field."""
    if field.is_leaf:
        yield (field,)
    for child in field.children:
        for below in chains_of(child):
            yield (field, *below)


def chain_type(chain: NodeChain) -> pa.DataType:
    """The type of the array of a chain: every list and map is a list."""
    *above, leaf = chain
    arrow_type = leaf.arrow_type
    for node in reversed(above):
        arrow_type = pa.struct([("item", arrow_type)]) if node.is_struct else pa.list_(arrow_type)
    return arrow_type


def field_of(chain: NodeChain, array: pa.Array) -> pa.Array:
    """The field of a chain as if it had no other leaf; a map of keys or values alone is a list."""
    *above, node = chain
    for parent in reversed(above):
        if parent.is_map:
            item = pa.list_(pa.field(node.name, node.arrow_type, node.nullable))
            node = replace(parent, kind="list", children=(node,), arrow_type=item)
        else:
            node = replace(parent, children=(node,), arrow_type=type_with(parent, (node,)))
    return assemble(node, [array])


def layers_of(
    chain: NodeChain, array: pa.Array
) -> tuple[list[LayerArrays], pa.Array, Words | None]:
    """The layers above a leaf, the leaf itself, and which of its values are present.

    What lies in a null struct is null too, up to the next list.
    """
    layers: list[LayerArrays] = []
    outside: Words | None = None
    for node in chain[:-1]:
        present = _present(array, outside)
        if node.is_struct:
            if node.nullable:
                layers.append(LayerArrays(present, None))
            outside, array = present, array.field(0)
        else:
            offsets, array = list_items(array)
            layers.append(LayerArrays(present, offsets))
            outside = None
    return layers, array, _present(array, outside)


def _present(array: pa.Array, outside: Words | None) -> Words | None:
    """Which items are there, if not all are; `outside` says the same of the struct around them."""
    if not array.null_count:
        return outside
    count, begin, bits = -(-len(array) // 8), array.offset, array.buffers()[0]
    if bits is None or begin % 8:
        begin, bits = 0, array.is_valid().buffers()[1]
    words = np.zeros(-(-count // 8), np.uint64)
    words.view(np.uint8)[:count] = np.frombuffer(bits, np.uint8, count, begin // 8)
    return locked(words if outside is None else words & outside)


def list_items(lists: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Where each list begins, from 0, and what lies inside."""
    offsets = lists.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    rebased = offsets - first if first else offsets
    return locked(rebased), lists.values.slice(first, last - first)


def assemble(node: SchemaNode, leaves: Sequence[pa.Array]) -> pa.Array:
    """The array of a field, from the arrays of its leaves in the order of the tree."""
    arrow_type = node.arrow_type
    if isinstance(arrow_type, pa.BaseExtensionType) and not node.is_leaf:
        storage = _zip(node, arrow_type.storage_type, leaves)
        return pa.ExtensionArray.from_storage(arrow_type, storage)
    return _zip(node, arrow_type, leaves)


def only_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def require_aligned(node: SchemaNode, leaves: Sequence[pa.Array]) -> None:
    """Leaves of a field must agree about its lists."""
    if len(leaves) == 1:
        return
    if node.is_struct:
        below = [leaf.field(0) for leaf in leaves]
    else:
        _, below = _lists(node, leaves)
    remaining = iter(below)
    for child in node.children:
        require_aligned(child, [next(remaining) for _ in child.leaves()])


def _zip(node: SchemaNode, arrow_type: pa.DataType, leaves: Sequence[pa.Array]) -> pa.Array:
    first = leaves[0]
    if node.is_leaf:
        return first
    if any(len(leaf) != len(first) for leaf in leaves):
        raise MisalignedLeaves(f"the leaves of {'.'.join(node.path)!r} have different lengths")
    if node.is_struct:
        below = [leaf.field(0) for leaf in leaves]
        return array_of(arrow_type, len(first), [validity_of(first)], _children(node, below))
    offsets, items = _lists(node, leaves)
    children = _children(node, items)
    if pa.types.is_fixed_size_list(arrow_type):
        return _fixed_size(arrow_type, first, offsets, children[0])
    if pa.types.is_map(arrow_type):
        if children[0].null_count:  # Arrow ends the process for such a map
            raise MisalignedLeaves(f"keys of the map {'.'.join(node.path)!r} are null")
        fields = [arrow_type.key_field, arrow_type.item_field]
        children = [pa.StructArray.from_arrays(children, fields=fields)]
    wide = pa.types.is_large_list(arrow_type) or pa.types.is_large_list_view(arrow_type)
    stored = offsets.astype(np.int64) if wide else offsets
    buffers = [validity_of(first), pa.py_buffer(stored)]
    if pa.types.is_list_view(arrow_type) or pa.types.is_large_list_view(arrow_type):
        buffers.append(pa.py_buffer(np.diff(stored)))  # how long each list is
    return array_of(arrow_type, len(first), buffers, children)


def _children(node: SchemaNode, leaves: Sequence[pa.Array]) -> list[pa.Array]:
    """The arrays of a node's children, from the leaves below them."""
    remaining = iter(leaves)
    return [assemble(child, [next(remaining) for _ in child.leaves()]) for child in node.children]


def _lists(
    node: SchemaNode, leaves: Sequence[pa.Array]
) -> tuple[npt.NDArray[np.int32], list[pa.Array]]:
    """The offsets that all leaves of a list share, from 0, and what lies inside the list."""
    shared: npt.NDArray[np.int32] | None = None
    items = []
    for leaf in leaves:
        offsets, inside = list_items(leaf)
        if shared is None:
            shared = offsets
        elif not np.array_equal(shared, offsets):
            raise MisalignedLeaves(f"the leaves of {'.'.join(node.path)!r} are of different lists")
        items.append(inside)
    assert shared is not None
    return shared, items


def _fixed_size(
    arrow_type: pa.DataType, first: pa.Array, offsets: npt.NDArray[np.int32], values: pa.Array
) -> pa.Array:
    """Lists of one size; a null list takes its place in the values all the same."""
    size, lengths = arrow_type.list_size, np.diff(offsets)
    present = first.is_valid().to_numpy(zero_copy_only=False)
    if (lengths[present] != size).any():
        raise MisalignedLeaves(f"lists that are not of size {size}, as {arrow_type} says")
    if not present.all():
        places = (offsets[:-1, None] + np.arange(size)).ravel()
        values = take(values, pa.array(places, mask=np.repeat(~present, size)))
    return array_of(arrow_type, len(first), [validity_of(first)], [values])


def validity_of(array: pa.Array) -> pa.Buffer | None:
    """The bits of what is present, from the first item on; None where all is."""
    return array.is_valid().buffers()[1] if array.null_count else None


def array_of(
    arrow_type: pa.DataType,
    length: int,
    buffers: list[pa.Buffer | None],
    children: list[pa.Array],
) -> pa.Array:
    """An array of its buffers, around its children."""
    return pa.Array.from_buffers(arrow_type, length, buffers, children=children)
