"""The leaves of a scan's columns, side by side and not zipped: what column readers read.

`LeafNames` finds a leaf by path or number, a `LeafProjection` fills the leaves from one file, and
`Leaves` are some rows of them.
"""

import contextlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from fretsaw.engine.files import OpenFile
from fretsaw.engine.filling import FileColumns, Filling, null_of
from fretsaw.engine.planner import Planner
from fretsaw.engine.run import run
from fretsaw.errors import ColumnNotFoundError
from fretsaw.model.conversion import chain_array
from fretsaw.model.locks import once
from fretsaw.model.nested import (
    MisalignedLeaves,
    NodeChain,
    chain_type,
    chains_of,
    only_chunk,
    require_aligned,
)
from fretsaw.model.schema import Path, SchemaNode, spelled, with_nulls
from fretsaw.model.selection import RowSelection
from fretsaw.results.tables import assembled, filled, misaligned


class LeafNames:
    """The leaves of some columns, and the ways to name them."""

    def __init__(self, chains: Sequence[NodeChain]) -> None:
        self.chains = tuple(chains)
        self._places: dict[Path | int, int] = {}

    @classmethod
    def of(cls, fields: Sequence[SchemaNode]) -> "LeafNames":
        """All leaves of these fields, in order."""
        return cls([chain for field in fields for chain in chains_of(field)])

    @once
    def keys(self) -> tuple[Path | int, ...]:
        """What finds each leaf: its path, exactly if another one reads the same, or its number."""
        return tuple(self._key(place) for place in range(len(self.chains)))

    @once
    def _exact(self) -> dict[tuple[str, ...], int]:
        """The places of the leaves by their paths; the first of those with one path."""
        places: dict[tuple[str, ...], int] = {}
        for place, chain in enumerate(self.chains):
            places.setdefault(chain[-1].path, place)
        return places

    @once
    def _dotted(self) -> dict[str, int]:
        """The same by paths as they are written, unless a name has dots of its own."""
        if any("." in step for path in self._exact for step in path):
            return {}
        return {".".join(path): place for path, place in self._exact.items()}

    def place(self, leaf: Path | int) -> int:
        """Where a leaf stands: by its number, its path, or the name of a field that is but it."""
        if leaf not in self._places:
            self._places[leaf] = self._place(leaf)
        return self._places[leaf]

    def _place(self, leaf: Path | int) -> int:
        if not isinstance(leaf, str | tuple):
            number = operator.index(leaf)
            if not 0 <= number < len(self.chains):
                raise IndexError(f"leaf {number}: there are {len(self.chains)}, counted from 0")
            return number
        known = self._exact.get(leaf) if isinstance(leaf, tuple) else self._dotted.get(leaf)
        if known is not None:
            return known
        node = self._root.find(leaf)
        found = [] if node is None else list(node.leaves())
        if len(found) > 1:
            names = ", ".join(".".join(below.path) for below in found)
            raise ColumnNotFoundError(
                f"{spelled(leaf)!r} has {len(found)} leaves; name one: {names}"
            )
        for place, chain in enumerate(self.chains):
            if found and chain[-1] is found[0]:
                return place
        raise ColumnNotFoundError(f"Column not in projection: {spelled(leaf)}")

    def _key(self, place: int) -> Path | int:
        exact = self.chains[place][-1].path
        for path in (".".join(exact), exact):
            with contextlib.suppress(ColumnNotFoundError):
                if self.place(path) == place:
                    return path
        return place

    @once
    def _root(self) -> SchemaNode:
        fields = {id(chain[0]): chain[0] for chain in self.chains}
        return SchemaNode("", (), "struct", False, pa.null(), tuple(fields.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Leaves:
    """Some rows of leaves, each as an array of its chain."""

    names: LeafNames
    arrays: Sequence[pa.ChunkedArray]
    row_count: int


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLeaves:
    """The leaves of one column of the result, or some of them."""

    file: str
    column: Filling
    arrow_type: pa.DataType
    """Of the column in the result."""
    chains: tuple[NodeChain, ...]
    leaves: tuple[SchemaNode, ...]
    """What is decoded: the leaves themselves, or all of a column that is to be converted."""
    is_converted: bool
    is_whole: bool

    def only(self, place: int) -> "ColumnLeaves":
        """One of the leaves alone."""
        leaves = self.leaves if self.is_converted else self.leaves[place : place + 1]
        return replace(self, chains=(self.chains[place],), leaves=leaves, is_whole=False)

    def arrays(
        self, decoded: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> Sequence[pa.ChunkedArray]:
        """The array of each leaf's chain, of what was decoded or of what stands in its place."""
        column = self.column
        if not isinstance(column, SchemaNode):
            if len(self.chains) == 1 == len(self.chains[0]):
                return [pa.chunked_array([filled(column, rows, first_row)])]
            nulls = [null_of(chain_type(chain)) for chain in self.chains]  # the file lacks it
            return [pa.chunked_array([filled(null, rows, first_row)]) for null in nulls]
        if self.is_converted:
            whole = only_chunk(assembled(self.file, column, decoded, self.arrow_type))
            return [pa.chunked_array([chain_array(chain, whole)]) for chain in self.chains]
        if self.is_whole:
            try:
                require_aligned(column, [only_chunk(leaf) for leaf in decoded])
            except MisalignedLeaves as error:
                raise misaligned(self.file, error) from None
        return decoded


@dataclass(frozen=True, slots=True, eq=False)
class LeafProjection:
    """What is read of each row of a file, leaf by leaf."""

    names: LeafNames
    columns: tuple[ColumnLeaves, ...]

    @property
    def leaves(self) -> Sequence[SchemaNode]:
        """The leaves to decode."""
        return [leaf for column in self.columns for leaf in column.leaves]

    def only(self, place: int) -> "LeafProjection":
        """One of the leaves alone."""
        names = LeafNames([self.names.chains[place]])
        for column in self.columns:
            if place < len(column.chains):
                return LeafProjection(names, (column.only(place),))
            place -= len(column.chains)
        raise IndexError(place)

    def result(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> Leaves:
        """Decoded leaves, and what stands beside them."""
        remaining = iter(arrays)
        found: list[pa.ChunkedArray] = []
        for column in self.columns:
            decoded = [next(remaining) for _ in column.leaves]
            found += column.arrays(decoded, rows, first_row)
        return Leaves(self.names, found, rows.selected_count)


def apart(projection: FileColumns, names: LeafNames) -> LeafProjection:
    """The columns of a projection leaf by leaf; `names` are those of its fields."""
    chains = iter(names.chains)
    columns = []
    types = projection.schema.types
    for node, column, kind in zip(projection.nodes, projection.columns, types, strict=True):
        stored = column.arrow_type if isinstance(column, SchemaNode) else kind
        columns.append(
            ColumnLeaves(
                projection.file,
                column,
                kind,
                tuple(next(chains) for _ in node.leaves()),
                tuple(column.leaves()) if isinstance(column, SchemaNode) else (),
                is_converted=with_nulls(stored) != with_nulls(kind),
                is_whole=True,
            )
        )
    return LeafProjection(names, tuple(columns))


def stream(planner: Planner, piece_bytes: int, leaf: Path | int | None = None) -> Iterator[Leaves]:
    """The result leaf by leaf, of all leaves or of one, in pieces of about so many bytes."""
    planner.columns.check()
    names_of: dict[object, LeafNames] = {}

    def shape_of(file: OpenFile) -> LeafProjection:
        columns, key = planner.columns.of(file), file.reader.fields
        if key not in names_of:
            nodes = columns.nodes
            several = planner.listing.several
            names_of[key] = LeafNames.of([n.optional() for n in nodes] if several else nodes)
        leaves = apart(columns, names_of[key])
        return leaves if leaf is None else leaves.only(names_of[key].place(leaf))

    shape_of(planner.files.settling)  # to see whether there is such a leaf
    return run(planner, shape_of, piece_bytes)
