"""What is under way in a run: rows that are being searched, found and decoded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from fretsaw.engine import threads
from fretsaw.engine.decode import Decoded, Wanted, decode
from fretsaw.engine.files import OpenFile
from fretsaw.engine.filter import Match
from fretsaw.engine.plan import BlockPlan
from fretsaw.engine.query import Window
from fretsaw.model.arrays import interleaved, joined
from fretsaw.model.blocks import Block, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.requests import Kept

GROUP_BYTES = 1 << 20
"""Leaves are decoded together, as one small file, up to this size."""

T_co = TypeVar("T_co", covariant=True)


class Shape(Protocol[T_co]):
    """What is read of each row, and what becomes of it."""

    @property
    def leaves(self) -> Sequence[SchemaNode]:
        """The leaves to decode."""

    def result(self, arrays: Sequence[pa.ChunkedArray], rows: RowSelection, first_row: int) -> T_co:
        """Decoded leaves put together; `rows` are counted from `first_row` of the scan."""


@dataclass(frozen=True, slots=True, eq=False)
class ShapedBlock(Generic[T_co]):
    """The plan of a block, and the shape that its rows are read in."""

    file: OpenFile
    plan: BlockPlan
    shape: Shape[T_co]
    first_row: int
    """Where the block begins in the whole scan."""

    @property
    def block(self) -> Block:
        return self.plan.block


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows of a block, in which the matching ones are being found."""

    work: ShapedBlock[Any]
    rows: RowSelection
    pages: list[PageIndex] | None
    """The pages of the leaves of the result, where they are known already."""
    size: float
    """Bytes once they are decoded."""
    finding: threads.Task[Match] | None
    kept: Kept | None = None
    """What it has in common with other pieces of the block."""

    def match(self) -> Match:
        return Match(self.rows, {}) if self.finding is None else self.finding.result()

    def is_ready(self, may_work: bool) -> bool:
        """Whether the matches can be had without waiting, or by work that may be done here."""
        is_here = may_work and isinstance(self.finding, threads.Deferred)
        return self.finding is None or is_here or self.finding.done()


@dataclass(frozen=True, slots=True, eq=False)
class FoundRows:
    """Rows of a block to decode, and what is decoded of them already."""

    work: ShapedBlock[Any]
    wanted: Wanted
    decoded: dict[int, Decoded]
    stored: list[int]
    """Bytes of the pages of each leaf."""
    size: float
    """Bytes of these pages once they are decoded."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows of one or more blocks of a file that are being decoded."""

    found: list[FoundRows]
    tasks: list["Decoding"]
    size: float
    window: Window
    """What was left of the window before these rows."""

    def result(self) -> Any:
        first = self.found[0].work
        arrays: list[pa.ChunkedArray] = [None] * len(first.shape.leaves)
        for places, task in self.tasks:
            for place, array in zip(places, task.result(), strict=True):
                arrays[place] = array
        return first.shape.result(arrays, self._rows(), first.first_row)

    def _rows(self) -> RowSelection:
        """The rows of all blocks, counted from where the first one begins."""
        if len(self.found) == 1:
            return self.found[0].wanted.rows
        parts: list[RowSelection] = []
        end = self.found[0].work.first_row
        for some in self.found:
            begin = some.work.first_row
            parts += (RowSelection.none(begin - end), some.wanted.rows)
            end = begin + some.work.block.num_rows
        return RowSelection().concat(*parts)


def found_rows(
    work: ShapedBlock[Any],
    rows: RowSelection,
    pages: Sequence[PageIndex],
    decoded: dict[int, Decoded],
    kept: Kept | None,
) -> FoundRows:
    """Rows to decode, and how many bytes their pages are."""
    hits = [index.hit(rows.starts, rows.ends) for index in pages]
    stored = [size for size, _ in hits]
    size = sum(index.width * count for index, (_, count) in zip(pages, hits, strict=True))
    return FoundRows(work, Wanted(work.plan.reader, rows, pages, kept), decoded, stored, size)


Decoding: TypeAlias = tuple[Sequence[int], threads.Task[list[pa.ChunkedArray]]]
"""Some leaves by their places in the shape, and what decodes them."""


def start_decoding(found: Sequence[FoundRows], starter: threads.Starter) -> Iterator[Decoding]:
    """Begin to decode rows: a task for each group of leaves."""
    file, leaves = found[0].work.file, found[0].work.shape.leaves
    sizes = [sum(of_leaf) for of_leaf in zip(*(some.stored for some in found), strict=True)]
    missing = []
    for place, leaf in enumerate(leaves):
        before = [some.decoded.get(leaf.leaf_index) for some in found]
        if any(before):
            wanted = [_only(some.wanted, [place]) for some in found]
            yield [place], starter.start(sizes[place], _reuse, file, leaf, wanted, before)
        else:
            missing.append(place)
    for group in _groups(missing, sizes):
        wanted = [_only(some.wanted, group) for some in found]
        size = sum(sizes[place] for place in group)
        read = [leaves[place] for place in group]
        yield group, starter.start(size, decode, file, read, wanted)


def _only(wanted: Wanted, places: Sequence[int]) -> Wanted:
    """The same of some leaves."""
    pages = [wanted.pages[place] for place in places]
    return Wanted(wanted.reader, wanted.rows, pages, wanted.kept)


def _groups(places: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Leaves that are decoded together."""
    group: list[int] = []
    total = 0
    for place in places:
        if group and total + sizes[place] > GROUP_BYTES:
            yield group
            group, total = [], 0
        group.append(place)
        total += sizes[place]
    if group:
        yield group


def _reuse(
    file: OpenFile, leaf: SchemaNode, wanted: Sequence[Wanted], before: Sequence[Decoded | None]
) -> list[pa.ChunkedArray]:
    """A leaf of which some rows are decoded already."""
    return [joined([_completed(file, leaf, *pair) for pair in zip(wanted, before, strict=True)])]


def _completed(
    file: OpenFile, leaf: SchemaNode, wanted: Wanted, before: Decoded | None
) -> pa.ChunkedArray:
    """What is decoded already, and what is missing."""
    rows = wanted.rows
    if before is not None and before.rows is rows:
        return before.values
    known = rows & before.rows if before is not None else RowSelection.none(rows.row_count)
    missing = rows & ~known
    pieces = []
    if before is not None and known.selects_any():
        pieces.append((known, before.of(known)))
    if missing.selects_any():
        (values,) = decode(file, [leaf], [replace(wanted, rows=missing)])
        pieces.append((missing, values))
    return interleaved(pieces)
