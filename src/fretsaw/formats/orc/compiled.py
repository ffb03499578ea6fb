"""Leaves decoded by the compiled kernels: from streams to Arrow arrays of just the wanted rows.

In come the parts that were cut, out come arrays of the chain's type. What the kernels do not know,
and what they find damaged, they leave to Arrow, which decides what is wrong with it. The first
stride of what an index led to is decoded whole and held against the index there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

from fretsaw.formats.kernels import chain_array, load_kernels
from fretsaw.formats.orc.cut import OrcPart, Segment
from fretsaw.formats.orc.statistics import claim_of
from fretsaw.formats.orc.streams import Columns
from fretsaw.model.schema import SchemaNode
from fretsaw.model.trace import record_decode

_BASE = 1_420_070_400
"""The second of 1970 that times count from: that at which 2015 began."""
_UTC = (b"UTC", b"GMT", b"Etc/UTC", b"Etc/GMT")
_FORMS = {
    "BOOLEAN": "bits",
    "BYTE": "int8",
    "SHORT": "int16",
    "INT": "int32",
    "LONG": "int64",
    "DATE": "int32",
    "FLOAT": "float",
    "DOUBLE": "double",
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR", "BINARY"), "bytes"),
}
_NOWHERE = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """A leaf as the kernels know it, and the type of its chain."""

    leaf: Any
    arrow_type: pa.DataType
    depth: int

    def array(self, column: Any) -> pa.Array:
        """The buffers of a column of this leaf and of the layers around it, as one array."""
        return chain_array(column, self.arrow_type, iter([True] * self.depth))


class CompiledDecoder:
    """Decodes the leaves of one file; what all their parts have in common is found out once."""

    def __init__(self, kernels: ModuleType) -> None:
        self._kernels = kernels
        self._known: dict[int, _Described | None] = {}

    def decode(self, leaves: Sequence[Sequence[OrcPart]]) -> list[pa.ChunkedArray | None]:
        """For each leaf, an array of exactly the wanted rows of its parts; None: not by kernels."""
        arrays: list[pa.ChunkedArray | None] = [None] * len(leaves)
        described = [(place, self._described(parts)) for place, parts in enumerate(leaves)]
        mine = [(place, leaf) for place, leaf in described if leaf is not None]
        wanted = [(leaf.leaf, [self._part(part) for part in leaves[place]]) for place, leaf in mine]
        for (place, leaf), column in zip(mine, self._kernels.decode_orc(wanted), strict=True):
            if isinstance(column, self._kernels.Column):
                array = leaf.array(column)
                strides = sum(part.strides for part in leaves[place])
                record_decode(strides, len(array), by="kernels")
                arrays[place] = pa.chunked_array([array])
        return arrays

    def _described(self, parts: Sequence[OrcPart]) -> _Described | None:
        """What the kernels need to know of a leaf, if they can decode these parts."""
        leaf = parts[0].leaf
        if leaf.leaf_index not in self._known:
            self._known[leaf.leaf_index] = self._describe(leaf, parts[0].streams.chain)
        is_local = leaf.physical_type == "TIMESTAMP"
        if is_local and any(part.streams.stripe.timezone not in _UTC for part in parts):
            return None
        return self._known[leaf.leaf_index]

    def _describe(self, leaf: SchemaNode, chain: Columns) -> _Described | None:
        kind, scale, precision = leaf.arrow_type, 0, 0
        form = _FORMS.get(leaf.physical_type or "")
        if pa.types.is_timestamp(kind):
            form = f"timestamp[{kind.unit}]"
        elif pa.types.is_decimal128(kind) and leaf.logical_type != "DECIMAL(0,0)":
            form, scale, precision = "decimal128", kind.scale, kind.precision
        if form is None:
            return None
        above = [column_kind for _, column_kind in chain[:-1]]
        described = self._kernels.OrcLeaf(above, form, scale=scale, precision=precision)
        for column_kind in reversed(above):
            inner = pa.field("item", kind)
            kind = pa.struct([inner]) if column_kind == "STRUCT" else pa.list_(inner)
        return _Described(described, kind, len(above))

    def _part(self, part: OrcPart) -> tuple[Any, ...]:
        """The streams of a part and its wanted rows, as the kernels take them."""
        streams = part.streams
        stripe, codec = streams.stripe, streams.codec
        places = {column: place for place, (column, _) in enumerate(streams.chain)}
        encodings = [
            (
                stripe.runs(column),
                stripe.encodings[column].dictionary_size if stripe.has_dictionary(column) else None,
            )
            for column in places
        ]
        whole = part.segments[0].streams if part.claims is None else {}
        dictionaries = [
            (places[column], kind, data)
            for (kind, column), data in (part.dictionaries or whole).items()
        ]
        claims = part.claims or [()] * len(part.segments)
        segments = [
            self._segment(segment, places, statistics, part.leaf)
            for segment, statistics in zip(part.segments, claims, strict=True)
        ]
        packing = (codec.kind, codec.block_size)
        return packing, encodings, _BASE, dictionaries, segments, part.starts, part.ends

    def _segment(
        self,
        segment: Segment,
        places: dict[int, int],
        statistics: Sequence[bytes],
        leaf: SchemaNode,
    ) -> tuple[Any, ...]:
        if not statistics:
            whole = [
                (places[column], kind, data, _NOWHERE, None)
                for (kind, column), data in segment.streams.items()
            ]
            return segment.rows, whole, None
        cut = [
            (
                places[c.column],
                c.kind,
                segment.streams[c.kind, c.column],
                (0, *c.begin[1:]),
                None if c.following is None else (c.following[0] - c.begin[0], *c.following[1:]),
            )
            for c in segment.cuts
        ]
        claim = claim_of(statistics[0], leaf)
        bounds = None
        if claim.bounds is not None:
            order, lower, upper = claim.bounds
            bounds = self._kernels.Claims(order, [0], [lower], [upper])
        claimed = (segment.first_rows, claim.count, claim.total, bounds)
        return segment.rows, cut, claimed


def compiled_decoder() -> CompiledDecoder | None:
    """A decoder by the kernels, if there are any."""
    kernels = load_kernels()
    return None if kernels is None else CompiledDecoder(kernels)
