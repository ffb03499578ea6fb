"""What the indexes of a file leave to be searched for the rows that match a condition.

Statistics decide whole blocks first, then Bloom filters and dictionaries; only for those that they
leave open are column indexes read, of many blocks at once. Out come blocks with the rows that may
match, and what is proven of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from fretsaw.engine.files import OpenFile
from fretsaw.engine.plan import BlockRows
from fretsaw.engine.probe import Open, bytes_of, probe
from fretsaw.model.blocks import Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import Pruned, is_tracing, record_pruned
from fretsaw.predicates.condition import Check, Condition, checks_of, simplified
from fretsaw.predicates.prune import Decisions, Proof, decide, decide_all, prove
from fretsaw.predicates.value_set import Booleans
from fretsaw.storage import requests

MOST_BLOCKS = 64
"""Indexes of no more blocks than this are read at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is left to be evaluated in a block."""

    condition: Condition
    proofs: dict[Check, Proof]
    pages: dict[int, PageIndex]
    """The pages of the leaves that the condition checks, by leaf index, as far as known."""
    bounds: dict[int, Bounds]
    """What the indexes say about these pages."""
    certain: RowSelection
    """The rows that surely match."""


@dataclass(frozen=True, slots=True, eq=False)
class Surveyed:
    """A block, the rows of it that may match, and how to find out; None: they all do."""

    selected: BlockRows
    search: Search | None

    @property
    def proven_count(self) -> int:
        """How many of the rows surely match."""
        rows = self.selected.rows
        return (rows if self.search is None else rows & self.search.certain).selected_count


@dataclass(slots=True, eq=False)
class _Searched:
    """A block that is left open, and what its indexes say."""

    left: Open
    proofs: dict[Check, Proof] = field(default_factory=dict)
    pages: dict[int, PageIndex] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)


def survey(
    file: OpenFile,
    condition: Condition,
    kept: Sequence[BlockRows],
    leaves: Callable[[], Sequence[SchemaNode]],
    few: bool,
    believes: bool,
) -> Iterator[Surveyed]:
    """The blocks that may hold a match, in the order given; `leaves` tells those of the result.

    Where `few` rows are needed, indexes are read for few blocks first. A survey that does not
    believe them proves nothing.
    """
    if isinstance(condition, bool):
        yield from (Surveyed(selected, None) for selected in kept if condition)
        return
    if not believes:
        yield from (Surveyed(selected, _unproven(selected, condition)) for selected in kept)
        return
    conditions = _by_statistics(file, condition, kept, leaves)
    waiting = [
        Open(selected, left)
        for selected, left in zip(kept, conditions, strict=True)
        if left is not False
    ]
    count = 1 if few else MOST_BLOCKS
    while waiting:
        group, waiting = waiting[:count], waiting[count:]
        yield from _by_pages(file, probe(file, group, leaves))
        count = min(2 * count, MOST_BLOCKS)


def _unproven(selected: BlockRows, condition: Condition) -> Search:
    """All that a condition checks is left to be evaluated."""
    every, none = (make(selected.block.num_rows) for make in (RowSelection.all, RowSelection.none))
    proofs = dict.fromkeys(checks_of(condition), Proof(every, none))
    return Search(condition, proofs, {}, {}, none)


def _by_statistics(
    file: OpenFile,
    condition: Condition,
    kept: Sequence[BlockRows],
    leaves: Callable[[], Sequence[SchemaNode]],
) -> list[Condition]:
    """The condition for each block, cut down to what statistics leave open."""
    blocks = [selected.block for selected in kept]
    decisions: dict[Check, Decisions] = {}
    for check in checks_of(condition):
        bounds = requests.run(file.reader.block_bounds(blocks, check.leaf), file.fetch)
        decisions[check] = decide(check, bounds)
    whole = decide_all(condition, decisions.__getitem__)
    conditions: list[Condition] = []
    for place in range(len(kept)):
        if whole.none[place]:
            conditions.append(False)
        elif whole.all[place]:
            conditions.append(True)
        else:
            conditions.append(simplified(condition, partial(_known, decisions, place)))
    if is_tracing():
        dropped = [b for b, is_none in zip(blocks, whole.none.tolist(), strict=True) if is_none]
        size = bytes_of(file, dropped, [*leaves(), *(check.leaf for check in decisions)])
        counts = (len(kept) - len(dropped), len(dropped))
        record_pruned(Pruned(file.name, "block", "statistics", *counts, size))
    return conditions


def _known(decisions: dict[Check, Decisions], place: int, check: Check) -> bool | None:
    if decisions[check].none[place]:
        return False
    return True if decisions[check].all[place] else None


def _by_pages(file: OpenFile, group: Sequence[Open]) -> Iterator[Surveyed]:
    """The rows that column indexes leave of some blocks."""
    blocks = {
        place: _Searched(left) for place, left in enumerate(group) if left.condition is not True
    }
    _read_indexes(file, list(blocks.values()))
    for place, left in enumerate(group):
        selected = left.selected
        if place not in blocks:
            yield Surveyed(selected, None)
            continue
        found = blocks[place]
        proof = prove(left.condition, found.proofs.__getitem__)
        rows = selected.rows & proof.possible
        if not rows.selects_any():
            continue
        search = Search(left.condition, found.proofs, found.pages, found.bounds, proof.certain)
        is_proven = not (rows & ~proof.certain).selects_any()
        yield Surveyed(replace(selected, rows=rows), None if is_proven else search)


def _read_indexes(file: OpenFile, blocks: Sequence[_Searched]) -> None:
    """Read the page indexes of the leaves that are checked, and note what they prove."""
    leaves: dict[tuple[int, bool], SchemaNode] = {}
    users: dict[tuple[int, bool], list[tuple[_Searched, list[Check]]]] = {}
    for block in blocks:
        checks: dict[tuple[int, bool], list[Check]] = {}
        for check in checks_of(block.left.condition):
            key = (check.leaf.leaf_index, check.leaf.as_stored)
            leaves[key] = check.leaf
            checks.setdefault(key, []).append(check)
        for key, of_leaf in checks.items():
            users.setdefault(key, []).append((block, of_leaf))
    steps = [
        file.reader.indexed_pages([block.left.selected.block for block, _ in users[key]], leaf)
        for key, leaf in leaves.items()
    ]
    indexed = requests.run_together(steps, file.fetch)
    for key, (pages, bounds) in zip(leaves, indexed, strict=True):
        decided: dict[Check, Decisions] = {}
        end = 0
        for (block, of_leaf), index in zip(users[key], pages, strict=True):
            possible, count = block.left.possible, block.left.selected.block.num_rows
            if index is None:
                every, no_row = RowSelection.all(count), RowSelection.none(count)
                for check in of_leaf:
                    block.proofs[check] = Proof(possible.get(check, every), no_row)
                continue
            block.pages[key[0]] = index
            begin, end = end, end + len(index.sizes)
            if not key[1]:
                block.bounds[key[0]] = bounds.between(begin, end)
            for check in of_leaf:
                if check not in decided:
                    decided[check] = decide(check, bounds)
                none, all_match = decided[check].none[begin:end], decided[check].all[begin:end]
                may = RowSelection.from_pages(~none, index.boundaries)
                if check in possible:
                    may &= possible[check]
                    if is_tracing():
                        rows = possible[check]
                        without = ~index.overlapping(rows.starts, rows.ends) & ~none
                        _record_pages(file.name, "Bloom filter", without, index)
                certain = RowSelection.from_pages(all_match, index.boundaries)
                block.proofs[check] = Proof(may, certain & may)
                if is_tracing():
                    _record_pages(file.name, file.reader.index_name, none, index)


def _record_pages(file: str, source: str, none: Booleans, index: PageIndex) -> None:
    dropped = int(none.sum())
    size = int(index.sizes[none].sum())
    kept = len(none) - dropped
    record_pruned(Pruned(file, "page", source, kept, dropped, size))
