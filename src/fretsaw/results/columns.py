"""Column readers: leaves in batches of NumPy arrays, with the layers that lie around them.

A batch holds some records whole. Nothing is converted before it is asked for, and nothing that a
batch hands out is written to afterwards: keep it, or give it to another thread.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.errors import not_text
from fretsaw.model import arrays
from fretsaw.model.arrays import rows_within
from fretsaw.model.nested import NodeChain, Words, field_of, layers_of
from fretsaw.model.schema import Path, SchemaNode
from fretsaw.results import numpy_values
from fretsaw.results.leaves import LeafNames, Leaves

BATCH_BYTES = 2 << 20
"""All leaves of a batch together stay within the cache of a processor, unless told otherwise."""
_WORD = 64


class Validity:
    """Which items of a layer or leaf are present, a bit for each."""

    __slots__ = ("_count", "words")

    NO_NULLS: ClassVar["Validity"]
    """The one that all share where nothing is null."""

    def __init__(self, words: Words | None, count: int) -> None:
        self.words = words
        """The bits, 64 in a word, set if present; None without nulls."""
        self._count = count

    @property
    def has_nulls(self) -> bool:
        """Whether any item is null."""
        return self.words is not None

    def is_null(self, i: int) -> bool:
        """Whether an item is null."""
        return not self.is_not_null(i)

    def is_not_null(self, i: int) -> bool:
        """Whether an item is present."""
        if self.words is None:
            return True
        place = operator.index(i)
        if not 0 <= place < self._count:
            raise IndexError(f"item {place} of {self._count}")
        return bool(int(self.words[place // _WORD]) >> place % _WORD & 1)

    def mask(self) -> npt.NDArray[np.bool_]:
        """A boolean for each item, true if present; without nulls a single one for all."""
        if self.words is None:
            return np.array(True)
        bits = np.unpackbits(self.words.view(np.uint8), count=self._count, bitorder="little")
        return bits.view(np.bool_)

    def __reduce__(self) -> tuple[Any, ...]:
        return _validity, (self.words, self._count)

    def __repr__(self) -> str:
        if self.words is None:
            return "Validity.NO_NULLS"
        return f"Validity({self._count - int(self.mask().sum())} of {self._count} are null)"


Validity.NO_NULLS = Validity(None, 0)


class LayerKind(Enum):
    """What a layer is."""

    STRUCT = "struct"
    """An optional struct: there or not."""
    REPEATED = "repeated"
    """A list or a map: any number of items, or not there."""


class Layer:
    """An optional struct, a list or a map around a leaf."""

    __slots__ = ("_offsets", "kind", "validity")

    def __init__(
        self, kind: LayerKind, validity: Validity, offsets: npt.NDArray[Any] | None = None
    ) -> None:
        self.kind = kind
        self.validity = validity
        self._offsets = offsets

    @property
    def offsets(self) -> npt.NDArray[Any]:
        """Where each list begins among the items of the next layer, and where the last one ends."""
        if self._offsets is None:
            raise TypeError("a struct has no offsets: only a REPEATED layer has")
        return self._offsets

    def __repr__(self) -> str:
        return f"Layer({self.kind.name}, {self.validity})"


class ColumnBatch:
    """Some records of one leaf."""

    __slots__ = ("_array", "_binary", "_chain", "_layers", "_leaf", "_present", "_values")

    def __init__(self, chain: NodeChain, array: pa.Array) -> None:
        self._chain = chain
        self._array = array
        self._layers, leaf, self._present = layers_of(chain, array)
        self._leaf = arrays.plain_values(leaf)
        self._values: npt.NDArray[Any] | None = None
        self._binary: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None

    @property
    def schema(self) -> SchemaNode:
        """The leaf in the schema of the scan."""
        return self._chain[-1]

    @property
    def record_count(self) -> int:
        """How many records there are."""
        return len(self._array)

    @property
    def value_count(self) -> int:
        """How many values the leaf has in them; below a list, any number."""
        return len(self._leaf)

    def count(self, k: int) -> int:
        """How many items layer `k` has; behind the last layer, how many values the leaf has."""
        count = self.record_count
        for layer in self._layers[: range(len(self._layers) + 1)[k]]:
            count = count if layer.offsets is None else int(layer.offsets[-1])
        return count

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The optional structs, lists and maps around the leaf, the outermost first."""
        return tuple(
            Layer(
                LayerKind.STRUCT if offsets is None else LayerKind.REPEATED,
                _validity(present, self.count(k)),
                offsets,
            )
            for k, (present, offsets) in enumerate(self._layers)
        )

    @property
    def leaf_validity(self) -> Validity:
        """Which values are present; one in a null struct is null."""
        return _validity(self._present, self.value_count)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values, undefined where null."""
        if self._values is None:
            self._values = numpy_values.values(self._leaf)
        if self._values is None:
            raise TypeError(
                f"{self._name} is {self.schema.arrow_type}: read binary_values and binary_offsets"
            )
        return self._values

    @property
    def binary_values(self) -> npt.NDArray[np.uint8]:
        """The bytes of all values, one behind the other."""
        return self._bytes()[0]

    @property
    def binary_offsets(self) -> npt.NDArray[Any]:
        """Where each value begins in `binary_values`, and where the last one ends."""
        return self._bytes()[1]

    def strings(self) -> list[str | None]:
        """The values as strings."""
        if pa.types.is_decimal(self._leaf.type):
            raise TypeError(f"{self._name} is {self.schema.arrow_type}: read values or rows()")
        try:
            return [value if value is None else value.decode() for value in self.binaries()]
        except UnicodeDecodeError as error:
            raise not_text("", ".".join(self.schema.path)) from error

    def binaries(self) -> list[bytes | None]:
        """The values as bytes."""
        data, offsets = self.binary_values.tobytes(), self.binary_offsets.tolist()
        found: list[bytes | None] = [data[begin:end] for begin, end in pairwise(offsets)]
        if self._present is not None:
            for place in np.flatnonzero(~self.leaf_validity.mask()).tolist():
                found[place] = None
        return found

    @property
    def arrow(self) -> pa.Array:
        """The records as an Arrow array, nested as the layers are."""
        return field_of(self._chain, self._array)

    def _bytes(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if self._binary is None:
            self._binary = numpy_values.binary(self._leaf)
        if self._binary is None:
            raise TypeError(f"{self._name} is {self.schema.arrow_type}: read values")
        return self._binary

    @property
    def _name(self) -> str:
        return repr(".".join(self.schema.path))

    def __repr__(self) -> str:
        return f"ColumnBatch({self._name}, {self.record_count:,} records)"


class ColumnBatches(Mapping[Path | int, ColumnBatch]):
    """The same records of several leaves, by path: `batch["fare"]`, or by number."""

    def __init__(self, names: LeafNames, arrays: Sequence[pa.Array], record_count: int) -> None:
        self._names = names
        self._arrays = arrays
        self._batches: dict[int, ColumnBatch] = {}
        self.record_count = record_count
        """How many records there are."""

    def __getitem__(self, leaf: Path | int) -> ColumnBatch:
        place = self._names.place(leaf)
        if place not in self._batches:
            batch = ColumnBatch(self._names.chains[place], self._arrays[place])
            return self._batches.setdefault(place, batch)
        return self._batches[place]

    def __iter__(self) -> Iterator[Path | int]:
        return iter(self._names.keys)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"ColumnBatches({len(self)} leaves, {self.record_count:,} records)"


def column_batches(pieces: Iterator[Leaves], batch_size: int | None) -> Iterator[ColumnBatches]:
    """Leaves in batches of at most so many records; None: of as many as fit the cache."""
    while (piece := next(pieces, None)) is not None:
        size = min(batch_size or _fitting(piece), max(piece.row_count, 1))
        columns = [c.chunk(0) if c.num_chunks == 1 else c for c in piece.arrays]
        for start in range(0, piece.row_count, size):
            arrays = [_slice(column, start, size) for column in columns]
            yield ColumnBatches(piece.names, arrays, min(size, piece.row_count - start))
            del arrays
        del piece, columns  # they do not stay alive while the next ones are decoded


def _fitting(piece: Leaves) -> int:
    """How many records fit the cache: whole bytes of bits, where there are enough."""
    size = sum(column.nbytes for column in piece.arrays)
    fitting = rows_within(BATCH_BYTES, piece.row_count, size)
    return fitting - fitting % 8 if fitting > 8 else fitting


def _slice(column: pa.Array | pa.ChunkedArray, start: int, length: int) -> pa.Array:
    part = column.slice(start, length)
    return pa.concat_arrays(part.chunks) if isinstance(part, pa.ChunkedArray) else part


def _validity(present: Words | None, count: int) -> Validity:
    return Validity.NO_NULLS if present is None else Validity(present, count)
