"""The leaves of a scan's columns, side by side and not zipped: what column readers read.

`LeafNames` finds a leaf by path or number, a `LeafProjection` fills the leaves from one file, and
`Leaves` are some rows of them.
"""

import contextlib
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fretsaw.engine.files import OpenFile
from fretsaw.engine.filling import FileColumns, Filling, null_of
from fretsaw.engine.planner import Planner
from fretsaw.engine.run import run
from fretsaw.errors import ColumnNotFoundError
from fretsaw.model.locks import once
from fretsaw.model.nested import (
    MisalignedLeaves,
    NodeChain,
    chain_type,
    chains_of,
    only_chunk,
    require_aligned,
)
from fretsaw.model.schema import Path, SchemaNode, spelled
from fretsaw.model.selection import RowSelection
from fretsaw.results.tables import filled, misaligned


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
class LeafProjection:
    """What is read of each row of a file, leaf by leaf."""

    file: str
    fields: tuple[SchemaNode, ...]
    """The fields of which all leaves are read."""
    names: LeafNames
    columns: tuple[Filling, ...]
    leaves: tuple[SchemaNode, ...]

    def only(self, place: int) -> "LeafProjection":
        """One of the leaves alone."""
        column = self.columns[place]
        leaves = (column,) if isinstance(column, SchemaNode) else ()
        names = LeafNames([self.names.chains[place]])
        return LeafProjection(self.file, (), names, (column,), leaves)

    def result(
        self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int
    ) -> Leaves:
        """Decoded leaves, and what stands beside them."""
        remaining = iter(arrays)
        columns = [
            next(remaining)
            if isinstance(column, SchemaNode)
            else pa.chunked_array([filled(column, rows, first_row)])
            for column in self.columns
        ]
        of_fields = iter(arrays)
        for field in self.fields:
            leaves = [next(of_fields) for _ in field.leaves()]
            try:
                require_aligned(field, [only_chunk(leaf) for leaf in leaves])
            except MisalignedLeaves as error:
                raise misaligned(self.file, error) from None
        return Leaves(self.names, columns, rows.selected_count)


def apart(projection: FileColumns, names: LeafNames) -> LeafProjection:
    """The columns of a projection leaf by leaf; `names` are those of its fields."""
    chains = iter(names.chains)
    columns: list[Filling] = []
    for node, column in zip(projection.nodes, projection.columns, strict=True):
        if isinstance(column, SchemaNode):
            columns += column.leaves()
            for _ in column.leaves():
                next(chains)
            continue
        for _ in node.leaves():
            chain = next(chains)
            if len(chain) > 1:  # a nested column that the file lacks
                columns.append(null_of(chain_type(chain)))
            else:
                columns.append(column)
    fields = tuple(column for column in projection.columns if isinstance(column, SchemaNode))
    return LeafProjection(projection.file, fields, names, tuple(columns), projection.leaves)


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
