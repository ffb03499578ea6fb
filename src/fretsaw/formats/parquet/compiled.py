"""Leaves decoded by the compiled kernels: from pages to Arrow arrays of just the wanted rows.

In come the parts that were cut, out come arrays of the chain's type. What the kernels do not know,
and what they find damaged, they leave to Arrow, which decides what is wrong with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from fretsaw.formats.interface import Found, OutsideBounds, Search
from fretsaw.formats.kernels import chain_array, load_kernels
from fretsaw.formats.parquet.chain import Chain
from fretsaw.formats.parquet.cut import ParquetPart
from fretsaw.formats.parquet.metadata import OPTIONAL, PHYSICAL_TYPES, REPEATED
from fretsaw.formats.parquet.schema import logical_type
from fretsaw.formats.parquet.statistics import Order, keeps_unit
from fretsaw.model.blocks import Bounds, Int64s
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import record_decode
from fretsaw.predicates.value_set import ValueSet

Layer: TypeAlias = Sequence[int]
"""The definition level from which on an optional struct is there; of a list also the one from which
on it has an item, and its repetition level. A required struct has none."""


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """A leaf as the kernels know it, and how its buffers become an array."""

    leaf: Any
    arrow_type: pa.DataType
    layers: Sequence[Layer]

    def array(self, column: Any) -> pa.Array:
        """The buffers of a column of this leaf and of the layers around it, as one array."""
        return chain_array(column, self.arrow_type, map(bool, self.layers))


class CompiledDecoder:
    """Decodes leaves of one schema; what all their parts have in common is found out once."""

    def __init__(self, kernels: ModuleType, verify: bool, always_compressed: bool) -> None:
        self._kernels = kernels
        self._how = {"verify": verify, "always_compressed": always_compressed}
        self._known: dict[tuple[int, bool], _Described | None] = {}
        self._last: tuple[ValueSet, tuple[str, bool], Any] | None = None

    def decode(self, leaves: Sequence[Sequence[ParquetPart]]) -> list[pa.ChunkedArray | None]:
        """For each leaf, an array of exactly the wanted rows of its parts; None: not by kernels."""
        arrays: list[pa.ChunkedArray | None] = [None] * len(leaves)
        described = [(place, self._described(parts[0])) for place, parts in enumerate(leaves)]
        mine = [(place, leaf) for place, leaf in described if leaf is not None]
        wanted = [
            (leaf.leaf, [kernel_part(part) for part in leaves[place]]) for place, leaf in mine
        ]
        for (place, leaf), column in zip(mine, self._kernels.decode(wanted), strict=True):
            if isinstance(column, self._kernels.Column):
                array = leaf.array(column)
                record_decode(column.pages, len(array), by="kernels")
                arrays[place] = pa.chunked_array([array])
        return arrays

    def find(self, part: ParquetPart, search: Search, order: Order | None) -> Found | None:
        """The rows of a part whose values are in a set; None: not by kernels."""
        leaf = self._described(part)
        if leaf is None or part.leaf.is_repeated or (order is None and search.values.cuts):
            return None
        kind = "signed" if order is None else _ORDERS[order.kind]
        wanted = self._search(kind, search)
        claims, pages = self._claims(part, kind, search.bounds)
        (column,) = self._kernels.decode(
            [(leaf.leaf, [kernel_part(part)])], searches=[wanted], claims=[[claims]]
        )
        if not isinstance(column, self._kernels.Column):
            if column.claim is not None:
                raise OutsideBounds(int(pages[column.claim]))
            return None
        starts, ends = (np.frombuffer(edges, np.int64) for edges in column.matches)
        total = int((part.ends - part.starts).sum())
        rows = RowSelection.of_runs(starts, ends, total)
        record_decode(column.pages, total, by="kernels")
        values = pa.chunked_array([leaf.array(column)]) if search.keeps_values else None
        return Found(rows, values)

    def _search(self, kind: str, search: Search) -> Any:
        """A set as the kernels know it; it may have very many values, so the last one is kept."""
        values, key, last = search.values, (kind, search.keeps_values), self._last
        if last is not None and last[0] is values and last[1] == key:
            return last[2]
        made = self._kernels.Search(
            kind, values.cuts, values.begins_inside, keeps_values=search.keeps_values
        )
        self._last = (values, key, made)
        return made

    def _claims(self, part: ParquetPart, kind: str, bounds: Bounds | None) -> tuple[Any, Int64s]:
        """What bounds say of the pages of a part, and which pages these are."""
        if bounds is None:
            return None, part.pages
        known = bounds.known[part.pages]
        pages = part.pages[known]
        claims = self._kernels.Claims(
            kind,
            part.first_rows[known].tolist(),
            bounds.lower[pages].tolist(),
            bounds.upper[pages].tolist(),
        )
        return claims, pages

    def _described(self, part: ParquetPart) -> _Described | None:
        """What the kernels need to know of a leaf, if they can decode it."""
        key = (part.leaf.leaf_index, part.leaf.as_stored)
        if key not in self._known:
            self._known[key] = self._describe(part.chunk.chain)
        return self._known[key]

    def _describe(self, chain: Chain) -> _Described | None:
        element = chain.elements[-1]
        target = target_of(innermost(chain.arrow_type), element)
        if target is None:
            return None
        layers, max_definition, max_repetition = levels_of(chain)
        described = self._kernels.Leaf(
            element.type,
            target,
            type_length=element.type_length or 0,
            max_definition=max_definition,
            max_repetition=max_repetition,
            layers=[layer for layer in layers if layer],
            **self._how,
        )
        return _Described(described, chain.arrow_type, layers)


_ORDERS = {
    "bool": "signed",
    "int": "signed",
    "decimal": "signed",
    "uint": "unsigned",
    "float": "float",
    "bytes": "bytes",
}
"""What the kernels call the orders of keys."""


def compiled_decoder(verify: bool, always_compressed: bool) -> CompiledDecoder | None:
    """A decoder by the kernels, if there are any."""
    kernels = load_kernels()
    return None if kernels is None else CompiledDecoder(kernels, verify, always_compressed)


def kernel_part(part: ParquetPart) -> tuple[Any, ...]:
    """The pages of a part and its wanted rows, as the kernels take them."""
    dictionary = part.segments[0].dictionary
    segments = [
        (run.buffer, *counts)
        for segment in part.segments
        for run, counts in zip(segment.runs, segment.counts_of_runs(), strict=True)
    ]
    stored = None if dictionary is None else dictionary.buffer
    return part.chunk.codec, stored, segments, part.starts, part.ends


def levels_of(chain: Chain) -> tuple[list[Layer], int, int]:
    """The layers of a chain from the row down, and its highest definition and repetition level."""
    layers: list[Layer] = []
    definition = repetition = 0
    elements = iter(chain.elements)
    kind = chain.arrow_type
    element = next(elements)
    while pa.types.is_nested(kind):
        is_optional = element.repetition_type == OPTIONAL
        definition += is_optional
        if pa.types.is_struct(kind):
            layers.append((definition,) if is_optional else ())
            kind = kind.field(0).type
            element = next(elements)
            continue
        repeated = element if element.repetition_type == REPEATED else next(elements)
        layers.append((definition, definition + 1, repetition + 1))
        definition, repetition = definition + 1, repetition + 1
        kind = kind.value_type
        # Of three levels the element comes next; of fewer it is what is repeated.
        element = next(elements) if repeated.name == "list" else repeated
    definition += element.repetition_type == OPTIONAL
    return layers, definition, repetition


def target_of(kind: pa.DataType, element: Any) -> str | None:
    """What the kernels make of stored values to have this Arrow type; None: they cannot."""
    types, physical = pa.types, PHYSICAL_TYPES[element.type]
    match physical:
        case "BOOLEAN" if types.is_boolean(kind):
            return "bits"
        case "INT96" if types.is_timestamp(kind) and kind.unit != "s":
            return f"timestamp[{kind.unit}]"
        case "BYTE_ARRAY" if types.is_string(kind) or types.is_binary(kind):
            return "bytes"
        case "BYTE_ARRAY" if types.is_large_string(kind) or types.is_large_binary(kind):
            return "large_bytes"
        case "INT32" if types.is_integer(kind) and kind.bit_width < 32:
            return f"int{kind.bit_width}"
        case "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY" | "BYTE_ARRAY" if types.is_decimal(kind):
            return str(kind).partition("(")[0] if kind.bit_width >= 128 else None
        case "FIXED_LEN_BYTE_ARRAY" if types.is_fixed_size_binary(kind):
            return "copy" if kind.byte_width == element.type_length else None
        case "FIXED_LEN_BYTE_ARRAY" if types.is_float16(kind):
            return "copy" if element.type_length == kind.byte_width else None
        case "INT32" | "INT64" if types.is_timestamp(kind) or types.is_time(kind):
            same = keeps_unit(str(logical_type(element)), kind)
            return "copy" if same and kind.bit_width == _BITS[physical] else None
    return "copy" if kind in _COPIED.get(physical, ()) else None


_BITS = {"INT32": 32, "INT64": 64}
_COPIED = {
    "INT32": (pa.int32(), pa.uint32(), pa.date32()),
    "INT64": (pa.int64(), pa.uint64(), *map(pa.duration, ("s", "ms", "us", "ns"))),
    "FLOAT": (pa.float32(),),
    "DOUBLE": (pa.float64(),),
}


def innermost(kind: pa.DataType) -> pa.DataType:
    """The type of the leaf at the end of a chain."""
    while pa.types.is_nested(kind):
        kind = kind.field(0).type if pa.types.is_struct(kind) else kind.value_type
    return kind
