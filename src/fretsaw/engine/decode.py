"""Leaves of blocks, fetched, cut, and decoded or searched."""

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from fretsaw.engine.files import OpenFile
from fretsaw.errors import FretsawError
from fretsaw.formats.interface import BlockReader, Found, Misplaced, Part, Search
from fretsaw.model.arrays import interleaved, pick
from fretsaw.model.blocks import PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import Fallback, record_fallback
from fretsaw.storage import buffer_pool, requests
from fretsaw.storage.source import Range


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Rows of a leaf that are in memory."""

    rows: RowSelection
    values: pa.ChunkedArray

    def of(self, rows: RowSelection) -> pa.ChunkedArray:
        """The values of some of the rows."""
        if rows is self.rows:
            return self.values
        starts = self.rows.counts_before(rows.starts)
        return pick(self.values, starts, starts + (rows.ends - rows.starts))

    def joined(self, other: "Decoded") -> "Decoded":
        """These rows and others."""
        values = [(one.rows, one.values) for one in (self, other)]
        return Decoded(self.rows | other.rows, interleaved(values))


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Rows of a block to decode, and the pages of some leaves."""

    reader: BlockReader
    rows: RowSelection
    pages: Sequence[PageIndex]
    kept: requests.Kept | None = None
    """Where the block is read in several pieces: what they have in common."""


def decode(
    file: OpenFile,
    leaves: Sequence[SchemaNode],
    wanted: Sequence[Wanted],
) -> list[pa.ChunkedArray]:
    """Fetch, cut and decode some leaves of blocks."""
    with buffer_pool.lease() as allocate:
        # Apart, so that nothing refers to the memory any more when the lease ends.
        return _decode(file, leaves, wanted, allocate)


def read_ahead(
    file: OpenFile,
    leaves: Sequence[SchemaNode],
    wanted: Sequence[Wanted],
    most: int,
    decoded: Container[int] = (),
) -> None:
    """Have on its way what is asked for first to decode some leaves, if that is not too much.

    Those that are `decoded` already, by their indices, need nothing more.
    """
    places: list[Range] = []
    for place, leaf in enumerate(leaves):
        for some in wanted if leaf.leaf_index not in decoded else ():
            steps = some.reader.cut(leaf, some.pages[place], some.rows)
            with suppress(FretsawError):  # who reads it says what is wrong
                for request in requests.wave_of(next(steps, ())):
                    places += [*request.all, *request.bets()]
            steps.close()
    if sum(length for _, length in places) <= most:
        file.source.read_ahead(places, "data")


def find(
    file: OpenFile, leaf: SchemaNode, wanted: Wanted, search: Search
) -> Found | pa.ChunkedArray:
    """Fetch and cut a leaf of a block, and search it; where that is not possible, decode it."""
    with buffer_pool.lease() as allocate:
        return _find(file, leaf, wanted, search, allocate)


def _find(
    file: OpenFile,
    leaf: SchemaNode,
    wanted: Wanted,
    search: Search,
    allocate: buffer_pool.Allocate,
) -> Found | pa.ChunkedArray:
    ((part,),) = by_leaf = _cut(file, [leaf], [wanted], allocate)
    found = file.reader.find(part, search)
    if found is None:
        (array,) = _decode_parts(file, [leaf], [wanted], by_leaf, allocate)
        return array
    _record_fallbacks(file, by_leaf, [wanted])
    return found


def _cut(
    file: OpenFile,
    leaves: Sequence[SchemaNode],
    wanted: Sequence[Wanted],
    allocate: buffer_pool.Allocate,
) -> list[list[Part]]:
    """The parts of each leaf."""
    cuts = []
    for some in wanted:
        cut = some.reader.cut_leaves(leaves, some.pages, some.rows)
        cuts.append(cut if some.kept is None else requests.sharing(cut, some.kept, file.fetch))
    steps = requests.together(cuts)
    by_block = requests.run(steps, partial(file.fetch, allocate=allocate))
    return [list(parts) for parts in zip(*by_block, strict=True)]


def _decode(
    file: OpenFile,
    leaves: Sequence[SchemaNode],
    wanted: Sequence[Wanted],
    allocate: buffer_pool.Allocate,
) -> list[pa.ChunkedArray]:
    parts = _cut(file, leaves, wanted, allocate)
    return _decode_parts(file, leaves, wanted, parts, allocate)


def _decode_parts(
    file: OpenFile,
    leaves: Sequence[SchemaNode],
    wanted: Sequence[Wanted],
    by_leaf: Sequence[Sequence[Part]],
    allocate: buffer_pool.Allocate,
) -> list[pa.ChunkedArray]:
    try:
        arrays = file.reader.decode(by_leaf, allocate)
    except Misplaced as error:
        whole = [
            replace(
                some,
                pages=[
                    replace(some.reader.whole_chunk(leaf), reason=str(error)) for leaf in leaves
                ],
            )
            for some in wanted
        ]
        return _decode(file, leaves, whole, allocate)
    _record_fallbacks(file, by_leaf, wanted)
    return arrays


def _record_fallbacks(
    file: OpenFile, by_leaf: Sequence[Sequence[Part]], wanted: Sequence[Wanted]
) -> None:
    for parts in by_leaf:
        for part, some in zip(parts, wanted, strict=True):
            if part.fallback:
                path = ".".join(part.leaf.path)
                record_fallback(Fallback(file.name, path, some.reader.block.ordinal, part.fallback))
