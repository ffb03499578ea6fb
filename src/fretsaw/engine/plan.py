"""The plan of a scan: for each file the blocks that are read, for each block the rows and why.

`FilePlan`s are made one file after the other, from footers alone: position first, then statistics.
A `BlockPlan` is made of one when a block is about to be read, with the indexes of its pages. These
are what runs, what `explain` prints, and what parts of a scan carry elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

import numpy as np

from fretsaw.engine import pruning
from fretsaw.engine.files import OpenFile
from fretsaw.engine.pruning import OpenBlock
from fretsaw.engine.query import Query, Window
from fretsaw.engine.request import PlannedBlock
from fretsaw.engine.row_numbers import in_block
from fretsaw.engine.verdicts import Verdict
from fretsaw.formats.interface import BlockReader
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.condition import AnyCheck, Condition, checks_of, simplified
from fretsaw.predicates.prune import Decisions, Proof, prove

Leaves: TypeAlias = Callable[[], Sequence[SchemaNode]]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """What position leaves of a file: the rows, the blocks that hold them, what dropped others."""

    rows: RowSelection
    """Counted over the file."""
    blocks: Sequence[Block]
    dropped: dict[str, int]
    """How many blocks were dropped by what."""

    def numbered(self, rows: RowSelection) -> "Placement":
        """What is left of it where only some rows have numbers that can match."""
        kept = _overlapping(self.blocks, left := self.rows & rows)
        dropped = dict(self.dropped)
        _note(dropped, "row numbers", len(self.blocks), len(kept))
        return Placement(left, kept, dropped)


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """What is read of a block: rows that may match, and what is left to be evaluated of them."""

    reader: BlockReader
    rows: RowSelection
    condition: Condition = True
    """True where all rows match."""
    certain: RowSelection | None = None
    """Of the rows to evaluate, those that surely match; None: nobody knows of any."""
    proofs: Mapping[AnyCheck, Proof] = field(default_factory=dict)
    pages: Mapping[int, PageIndex] = field(default_factory=dict)
    """The pages of the leaves that are checked, by leaf index, as far as known."""
    bounds: Mapping[int, Bounds] = field(default_factory=dict)
    """What the indexes say about these pages."""

    @property
    def block(self) -> Block:
        """What the footer says of it."""
        return self.reader.block

    @property
    def proven_count(self) -> int:
        """How many of the rows surely match."""
        return self.proven_rows.selected_count

    @property
    def proven_rows(self) -> RowSelection:
        """The rows that surely match."""
        if self.condition is True:
            return self.rows
        if self.certain is None:
            return RowSelection.none(self.rows.row_count)
        return self.rows & self.certain


@dataclass(frozen=True, slots=True, eq=False)
class FilePlan:
    """What is read of one file, as far as its footer tells: arrays over its blocks."""

    file: OpenFile
    first_row: int
    """Where the file begins in the whole scan."""
    placement: Placement
    condition: Condition
    decisions: Mapping[AnyCheck, Decisions]
    """What statistics prove about each check, in each block that position leaves."""
    whole: Decisions
    """The same about the condition."""
    planned: Mapping[int, PlannedBlock] | None = None
    """What was found out elsewhere, by the ordinals of the blocks."""

    def rows_of(self, block: Block) -> RowSelection:
        """The rows of a block that position leaves."""
        return self.placement.rows.slice(block.first_row, block.first_row + block.num_rows)

    def verdicts(self) -> list[Verdict]:
        """What statistics dropped, or the predicate by itself."""
        blocks = self.placement.blocks
        if self.condition is False and blocks:
            return [Verdict("block", "predicate", 0, len(blocks), blocks)]
        if not self.decisions:
            return []
        dropped = [blocks[place] for place in self.whole.none.nonzero()[0].tolist()]
        kept = len(blocks) - len(dropped)
        parts = [(c.text, int(of.none.sum()), len(blocks)) for c, of in self.decisions.items()]
        return [Verdict("block", "statistics", kept, len(dropped), dropped, parts=parts)]

    def block_plans(
        self, few: bool, backward: bool, leaves: Leaves = tuple
    ) -> Iterator[tuple[list[BlockPlan], list[Verdict]]]:
        """The blocks in which something may match, some at a time, and what was dropped.

        Where `few` rows are needed, indexes are read for few blocks first. What files that are far
        away say about the pages of the `leaves` of the result is asked for at the same time.
        """
        if self.planned is None and self.whole.none.all():
            return
        waiting = list(self._undecided())
        if backward:
            waiting.reverse()
        if self.planned is not None or not self.decisions:
            for undecided in waiting:
                plans = map(self._unproven, self._opened([undecided]))
                yield [plan for plan in plans if plan.rows.selects_any()], []
            return
        count = 1 if few else pruning.MOST_BLOCKS
        while waiting:
            group, waiting = waiting[:count], waiting[count:]
            opened = self._opened(group)
            if self.file.source.far:
                _read_indexes_ahead(self.file, opened, leaves())
            yield _planned(self.file, opened)
            count = min(2 * count, pruning.MOST_BLOCKS)

    def _undecided(self) -> Iterator[tuple[Block, Condition]]:
        """The blocks that statistics leave, with what they leave of the condition."""
        for place, block in enumerate(self.placement.blocks):
            here = in_block(self.condition, block.first_row, block.first_row + block.num_rows)
            if here is False:
                continue
            if self.planned is not None:
                rows, certain = self.rows_of(block), self.planned[block.ordinal].certain
                is_proven = not (rows & ~certain).selects_any()
                yield block, is_proven or here
            elif not self.whole.none[place]:
                is_proven = bool(self.whole.all[place])
                left = is_proven or simplified(here, partial(self._known, place))
                if left is not False:  # by the numbers of its rows and by statistics together
                    yield block, left

    def _opened(self, undecided: Sequence[tuple[Block, Condition]]) -> list[OpenBlock]:
        readers = self.file.open_blocks([block for block, _ in undecided])
        return [
            OpenBlock(reader, self.rows_of(block), condition)
            for reader, (block, condition) in zip(readers, undecided, strict=True)
        ]

    def _unproven(self, block: OpenBlock) -> BlockPlan:
        """A block of which no index is asked: nothing is known but what was found out elsewhere."""
        told = None if self.planned is None else self.planned[block.block.ordinal].certain
        if isinstance(block.condition, bool):
            return BlockPlan(block.reader, block.rows, block.condition, told)
        every = RowSelection.all(block.block.num_rows)
        nothing = Proof(every, RowSelection.none(every.row_count))
        proofs = dict.fromkeys(checks_of(block.condition), nothing)
        proof = prove(block.condition, proofs.__getitem__)  # the numbers of rows are known
        rows, certain = block.rows & proof.possible, proof.certain if told is None else told
        if not (rows & ~certain).selects_any():
            return BlockPlan(block.reader, rows)
        return BlockPlan(block.reader, rows, block.condition, certain, proofs)

    def _known(self, place: int, check: AnyCheck) -> bool | None:
        if check not in self.decisions:
            return None
        if self.decisions[check].none[place]:
            return False
        return True if self.decisions[check].all[place] else None


def plan_files(
    placed: Sequence[tuple[OpenFile, int, Placement, Condition]],
    believes_indexes: bool,
    planned: Sequence[PlannedBlock] | None = None,
) -> list[FilePlan]:
    """What is read of files, given what position leaves of them; or what was planned elsewhere.

    Statistics of files that share their fields and a condition are asked all at once.
    """
    plans: list[FilePlan] = []
    for key, group in groupby(placed, _shared if believes_indexes and planned is None else id):
        same = list(group)
        condition = same[0][-1]
        if isinstance(key, int) or isinstance(condition, bool):
            plans += (_plan_alone(*each, planned) for each in same)
            continue
        files = [(file, placement.blocks) for file, _, placement, _ in same]
        decisions, whole = pruning.by_statistics(condition, files)
        end = 0
        for file, first_row, placement, _ in same:
            begin, end = end, end + len(placement.blocks)
            own = {check: decided.between(begin, end) for check, decided in decisions.items()}
            proven = whole.between(begin, end)
            plans.append(FilePlan(file, first_row, placement, condition, own, proven))
    return plans


def _shared(placed: tuple[OpenFile, int, Placement, Condition]) -> object:
    """Files with the same are decided by their statistics all at once."""
    file, _, _, condition = placed
    return (id(file.reader.fields if file.reader.tells_bounds else file), id(condition))


def _plan_alone(
    file: OpenFile,
    first_row: int,
    placement: Placement,
    condition: Condition,
    planned: Sequence[PlannedBlock] | None,
) -> FilePlan:
    """What is read of a file of which no statistics are asked."""
    count = len(placement.blocks)
    if planned is not None:
        known = {block.ordinal: block for block in planned}
        unknown = Decisions.unknown(count)
        return FilePlan(file, first_row, placement, condition, {}, unknown, known)
    if isinstance(condition, bool) and count:
        every = np.full(count, condition)
        return FilePlan(file, first_row, placement, condition, {}, Decisions(~every, every))
    return FilePlan(file, first_row, placement, condition, {}, Decisions.unknown(count))


def _read_indexes_ahead(
    file: OpenFile, blocks: Sequence[OpenBlock], leaves: Sequence[SchemaNode]
) -> None:
    """Have on their way what tells the pages of these leaves, while others are looked at."""
    places = [place for block in blocks for leaf in leaves for place in block.reader.index_at(leaf)]
    if sum(length for _, length in places) <= file.source.far:
        file.source.read_ahead(places, "index")


def _planned(file: OpenFile, blocks: Sequence[OpenBlock]) -> tuple[list[BlockPlan], list[Verdict]]:
    """What single values and page indexes leave of some blocks."""
    left, verdicts = pruning.by_single_values(file, blocks)
    searched = [block for block in left if block.condition is not True]
    indexes, by_pages = pruning.by_pages(file, searched)
    indexed = dict(zip((block.block.ordinal for block in searched), indexes, strict=True))
    plans, dropped = [], []
    for block in left:
        if block.condition is True:
            plans.append(BlockPlan(block.reader, block.rows))
            continue
        index = indexed[block.block.ordinal]
        proof = prove(block.condition, index.proofs.__getitem__)
        rows = block.rows & proof.possible
        if not rows.selects_any():
            dropped.append(block.block)
        elif not (rows & ~proof.certain).selects_any():
            plans.append(BlockPlan(block.reader, rows))
        else:
            found = (proof.certain, index.proofs, index.pages, index.bounds)
            plans.append(BlockPlan(block.reader, rows, block.condition, *found))
    if dropped:  # whose bytes the verdicts on their pages count
        told_by = {index.told_by for found in indexes for index in found.pages.values()}
        source = next(filter(None, told_by), file.reader.index_name)
        by_pages.append(Verdict("block", source, len(plans), len(dropped)))
    return plans, verdicts + by_pages


def place(
    blocks: Sequence[Block],
    first_row: int,
    query: Query,
    window: Window,
    planned: Sequence[PlannedBlock] | None = None,
) -> tuple[Placement, Window]:
    """Apply block predicate, row selection and window to a file that begins at `first_row`.

    All but the window were applied to blocks that are `planned`. Gives the window that is left for
    the files that follow, too.
    """
    if planned is not None:
        return _place_planned(blocks, window, planned)
    total = sum(block.num_rows for block in blocks)
    skip = (window.skip or 0) - total
    if query.selects_all and skip >= 0 < total:  # there may be thousands of such files
        none = Placement(RowSelection.none(total), (), {"window": len(blocks)})
        return none, replace(window, skip=skip)
    dropped: dict[str, int] = {}
    kept = [block for block in blocks if block.num_rows]
    _note(dropped, "empty", len(blocks), len(kept))
    if query.rows is None and query.block_predicate is None and not window:
        return Placement(RowSelection.all(total), kept, dropped), window
    rows = query.rows_between(first_row, first_row + total)
    if query.block_predicate is not None:
        before, predicate = len(kept), query.block_predicate
        kept = [block for block in kept if predicate.keeps(block)]
        _note(dropped, "block predicate", before, len(kept))
        spans = [(block.first_row, block.first_row + block.num_rows) for block in kept]
        rows = rows.intersection(RowSelection.from_ranges(spans, total))
    if query.rows is not None:
        selected = _overlapping(kept, rows)
        _note(dropped, "row selection", len(kept), len(selected))
        kept = selected
    if window:
        rows, window = window.apply(rows)
        selected = _overlapping(kept, rows)
        _note(dropped, "window", len(kept), len(selected))
        kept = selected
    return Placement(rows, kept, dropped), window


def _place_planned(
    blocks: Sequence[Block], window: Window, planned: Sequence[PlannedBlock]
) -> tuple[Placement, Window]:
    known = {block.ordinal: block.rows for block in planned}
    rows = RowSelection().concat(
        *(known.get(block.ordinal, RowSelection.none(block.num_rows)) for block in blocks)
    )
    rows, window = window.apply(rows)
    kept = _overlapping([block for block in blocks if block.ordinal in known], rows)
    return Placement(rows, kept, {}), window


def _note(dropped: dict[str, int], source: str, before: int, after: int) -> None:
    if before > after:
        dropped[source] = before - after


def _overlapping(blocks: Sequence[Block], rows: RowSelection) -> list[Block]:
    """The blocks that hold a selected row."""
    first = np.array([block.first_row for block in blocks], dtype=np.int64)
    end = first + np.array([block.num_rows for block in blocks], dtype=np.int64)
    hit = np.searchsorted(rows.ends, first, "right") < np.searchsorted(rows.starts, end, "left")
    return [block for block, keep in zip(blocks, hit.tolist(), strict=True) if keep]
