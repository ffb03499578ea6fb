"""What metadata leave of files, blocks and pages, and what dropped the rest.

Paths and folders decide files, statistics whole blocks of a file at once. Only for blocks that
these leave open are Bloom filters and dictionaries read, and only then page indexes, of many blocks
together.
Every step returns verdicts: what it dropped, and by which source of proofs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from fretsaw.engine.files import OpenFile
from fretsaw.engine.paths import name_is_taken
from fretsaw.engine.query import Query
from fretsaw.engine.verdicts import Verdict
from fretsaw.formats.interface import BlockReader
from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import Path, SchemaNode, spelled
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.bind import resolve
from fretsaw.predicates.columns import Found
from fretsaw.predicates.condition import (
    AnyCheck,
    Check,
    Computed,
    Condition,
    InRows,
    checks_of,
    simplified,
)
from fretsaw.predicates.evaluate import matches
from fretsaw.predicates.expression import columns_of
from fretsaw.predicates.prune import (
    Decisions,
    Proof,
    decide,
    decide_all,
    decide_pair,
    pair_of,
)
from fretsaw.predicates.rows import true_of_entries, true_rows
from fretsaw.predicates.value_set import Booleans, Key, ValueSet
from fretsaw.storage import requests
from fretsaw.storage.listing import Entry, Listing
from fretsaw.storage.requests import Steps

MOST_BLOCKS = 64
"""Indexes of no more blocks than this are read at once."""
MOST_VALUES = 1000
"""No more values than this are looked up one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenBlock:
    """A block that statistics leave undecided: what is left to be found out about its rows."""

    reader: BlockReader
    rows: RowSelection
    condition: Condition
    possible: dict[AnyCheck, RowSelection] = field(default_factory=dict)
    """The rows that may hold a value of a check, where a filter rules some out."""

    @property
    def block(self) -> Block:
        """What the footer says of it."""
        return self.reader.block


@dataclass(frozen=True, slots=True, eq=False)
class Indexed:
    """What the page indexes of a block say about the leaves that are checked."""

    proofs: dict[AnyCheck, Proof] = field(default_factory=dict)
    pages: dict[int, PageIndex] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)


def by_paths(listing: Listing, query: Query) -> tuple[Sequence[Entry], list[Verdict], bool]:
    """The files that neither their paths nor the values of their folders rule out.

    And whether nothing is left to be asked of these.
    """
    predicate, path_name, fields = query.predicate, query.file_path, list(listing.partitions)
    if predicate is None or query.numbers_rows:
        return listing.entries, [], False
    if path_name is not None:
        if path_name in listing.partitions.names:
            raise name_is_taken(listing.name, path_name)
        fields.append(pa.field(path_name, pa.string(), nullable=False))
    tested = set(map(spelled, columns_of(predicate)))
    nodes = {
        field.name: SchemaNode(field.name, (field.name,), "leaf", True, field.type, leaf_index=n)
        for n, field in enumerate(fields)
        if field.name in tested
    }
    if not nodes:
        return listing.entries, [], False

    def find(path: Path) -> Found | None:
        node = nodes.get(spelled(path))
        return None if node is None else (node, node)

    condition = resolve(predicate, find, listing.name)
    if isinstance(condition, bool):
        return listing.entries if condition else (), [], False

    def values(leaf: SchemaNode) -> pa.ChunkedArray:
        return listing.paths() if leaf.name == path_name else listing.folder_values(leaf.name)

    true = true_rows(condition, values)
    kept = tuple(entry for entry, may in zip(listing.entries, true, strict=True) if may)
    source = "paths" if path_name in nodes else "folders"
    dropped = Verdict("file", source, len(kept), len(listing.entries) - len(kept))
    return kept, [dropped], len(nodes) == len(tested) and path_name not in nodes


Blocks: TypeAlias = Sequence[tuple[OpenFile, Sequence[Block]]]
"""Some blocks of files that share their fields."""


def by_statistics(
    condition: Condition, files: Blocks
) -> tuple[dict[AnyCheck, Decisions], Decisions]:
    """What statistics prove about each check of a condition, and about all of it, in each block."""
    decisions: dict[AnyCheck, Decisions] = {}
    for check in checks_of(condition):
        if isinstance(check, Computed):
            decisions[check] = _of_computed(files, check)
        else:
            decisions[check] = decide(check, _bounds(files, check.leaf))
    blocks = [block for _, own in files for block in own]

    def decided(part: AnyCheck | InRows) -> Decisions:
        return _by_numbers(part, blocks) if isinstance(part, InRows) else decisions[part]

    return decisions, decide_all(condition, decided)


def _by_numbers(numbers: InRows, blocks: Sequence[Block]) -> Decisions:
    """Which blocks have none of some rows of their file, and which have no others."""
    edges = np.array([(b.first_row, b.first_row + b.num_rows) for b in blocks], np.int64)
    before = numbers.rows.counts_before(edges.reshape(-1, 2).ravel()).reshape(-1, 2)
    counts = before[:, 1] - before[:, 0]
    return Decisions(counts == 0, counts == [block.num_rows for block in blocks])


def _bounds(files: Blocks, leaf: SchemaNode) -> Bounds:
    first, blocks = files[0]
    if first.reader.tells_bounds:
        return first.reader.bounds_of_files([(file.reader, own) for file, own in files], leaf)
    assert len(files) == 1
    return requests.run(first.reader.block_bounds(blocks, leaf), first.fetch)


def _of_computed(files: Blocks, check: Computed) -> Decisions:
    """What the statistics of two leaves prove about a comparison of theirs, or those of one."""
    leaf, pair = check.only_leaf, pair_of(check)
    count = sum(len(own) for _, own in files)
    if leaf is not None:
        bounds = _bounds(files, leaf)
        entries = pa.chunked_array([], leaf.arrow_type)
        true = true_of_entries(check, entries, may_be_null=True) if bounds.all_null.any() else None
        nothing = np.zeros(count, np.bool_)
        sure = nothing if check.sure is None else decide(check.sure, bounds).all
        return Decisions(
            bounds.all_null if true is False else nothing,
            bounds.all_null | sure if true else sure,
        )
    if pair is None:
        return Decisions.unknown(count)
    left, right = (_bounds(files, leaf) for leaf in pair[:2])
    return decide_pair(pair[2], left, right)


def by_single_values(
    file: OpenFile, blocks: Sequence[OpenBlock]
) -> tuple[list[OpenBlock], list[Verdict]]:
    """Some blocks, as far as they can hold a value that is looked for."""
    left, verdicts = list(blocks), []
    for source, answer in (("Bloom filter", _by_bloom_filter), ("dictionary", _by_dictionary)):
        asked = [
            (place, check)
            for place, block in enumerate(left)
            for check in checks_of(block.condition)
            if (_asks_entries(file, check) if source == "dictionary" else _single_values(check))
        ]
        if not asked:
            continue
        steps = [answer(file, left[place], check) for place, check in asked]
        answers: dict[tuple[int, AnyCheck], bool | None]
        answers = dict(zip(asked, requests.run(requests.together(steps), file.fetch), strict=True))
        rest = [
            simplified(block.condition, partial(_answer, answers, place))
            for place, block in enumerate(left)
        ]
        dropped = [b.block for b, c in zip(left, rest, strict=True) if c is False]
        left = [
            replace(block, condition=condition)
            for block, condition in zip(left, rest, strict=True)
            if condition is not False
        ]
        if any(answer is not None for answer in answers.values()):
            told = [(check.text, int(answer is False), 1) for (_, check), answer in answers.items()]
            verdicts.append(Verdict("block", source, len(left), len(dropped), dropped, parts=told))
    return left, verdicts


def by_pages(file: OpenFile, blocks: Sequence[OpenBlock]) -> tuple[list[Indexed], list[Verdict]]:
    """What the page indexes of the leaves that are checked prove in each of some blocks."""
    found = [Indexed() for _ in blocks]
    leaves: dict[tuple[int, bool], SchemaNode] = {}
    users: dict[tuple[int, bool], list[tuple[int, list[Check]]]] = {}
    for place, block in enumerate(blocks):
        checks: dict[tuple[int, bool], list[Check]] = {}
        every = RowSelection.all(block.block.num_rows)
        for check in checks_of(block.condition):
            if isinstance(check, Computed):
                nothing = RowSelection.none(every.row_count)
                found[place].proofs[check] = Proof(every, nothing)
                bounded = [] if check.sure is None else [check.sure.leaf]
                for leaf in (*(pair_of(check) or ())[:2], *bounded):
                    checks.setdefault((leaf.leaf_index, leaf.as_stored), [])
                    leaves[leaf.leaf_index, leaf.as_stored] = leaf
                continue
            key = (check.leaf.leaf_index, check.leaf.as_stored)
            leaves[key] = check.leaf
            checks.setdefault(key, []).append(check)
        for key, of_leaf in checks.items():
            users.setdefault(key, []).append((place, of_leaf))
    steps = [
        file.reader.page_bounds([blocks[place].reader for place, _ in users[key]], leaf)
        for key, leaf in leaves.items()
    ]
    verdicts: list[Verdict] = []
    indexed = requests.run(requests.together(steps), file.fetch)
    for key, (pages, bounds) in zip(leaves, indexed, strict=True):
        decided: dict[Check, Decisions] = {}
        end = 0
        for (place, of_leaf), index in zip(users[key], pages, strict=True):
            block, possible = blocks[place], blocks[place].possible
            if index is None:
                every = RowSelection.all(block.block.num_rows)
                for check in of_leaf:
                    may = possible.get(check, every)
                    found[place].proofs[check] = Proof(may, RowSelection.none(every.row_count))
                continue
            found[place].pages[key[0]] = index
            begin, end = end, end + len(index.sizes)
            if not key[1]:
                found[place].bounds[key[0]] = bounds.between(begin, end)
            for check in of_leaf:
                if check not in decided:
                    decided[check] = decide(check, bounds)
                none, all_match = decided[check].none[begin:end], decided[check].all[begin:end]
                may = RowSelection.from_pages(~none, index.boundaries)
                if check in possible:
                    rows = possible[check]
                    may &= rows
                    without = ~index.overlapping(rows.starts, rows.ends) & ~none
                    verdicts.append(_of_pages("Bloom filter", without, index, check.text))
                certain = RowSelection.from_pages(all_match, index.boundaries)
                found[place].proofs[check] = Proof(may, certain & may)
                source = index.told_by or file.reader.index_name
                verdicts.append(_of_pages(source, none, index, check.text))
    for block, indexed_block in zip(blocks, found, strict=True):
        verdicts += _by_both_pages(file, block.condition, indexed_block)
    return found, verdicts


def _by_both_pages(file: OpenFile, condition: Condition, found: Indexed) -> list[Verdict]:
    """What the pages of two leaves prove about a comparison of theirs, where they line up."""
    verdicts = []
    for check in checks_of(condition):
        if isinstance(check, Computed) and check.sure is not None:
            _by_sure_pages(check, check.sure, found)
        pair = pair_of(check) if isinstance(check, Computed) else None
        if pair is None or any(leaf.leaf_index not in found.bounds for leaf in pair[:2]):
            continue
        left, right = (found.pages[leaf.leaf_index] for leaf in pair[:2])
        if not np.array_equal(left.boundaries, right.boundaries):
            continue
        bounds = [found.bounds[leaf.leaf_index] for leaf in pair[:2]]
        decided = decide_pair(pair[2], *bounds)
        may = RowSelection.from_pages(~decided.none, left.boundaries)
        certain = RowSelection.from_pages(decided.all, left.boundaries)
        found.proofs[check] = Proof(may, certain & may)
        source = left.told_by or file.reader.index_name
        told = (check.text, "")  # of the two columns, one tells
        verdicts += [
            _of_pages(source, decided.none, index, text)
            for index, text in zip((left, right), told, strict=True)
        ]
    return verdicts


def _by_sure_pages(check: Computed, sure: Check, found: Indexed) -> None:
    """The pages of which bounds prove that all of their rows match."""
    place = sure.leaf.leaf_index
    if place in found.bounds:
        certain = decide(sure, found.bounds[place]).all
        rows = RowSelection.from_pages(certain, found.pages[place].boundaries)
        found.proofs[check] = Proof(found.proofs[check].possible, rows)


def _answer(
    answers: Mapping[tuple[int, AnyCheck], bool | None], place: int, check: AnyCheck
) -> bool | None:
    return answers.get((place, check))


def _asks_entries(file: OpenFile, check: AnyCheck) -> bool:
    """Whether a test is decided by the entries of a dictionary, and perhaps null.

    For ranges, which bounds decide mostly, it is not worth a round trip.
    """
    if isinstance(check, Computed):
        return check.only_leaf is not None
    is_of_values = check.on_leaf and isinstance(check.values, ValueSet) and check.fold != "all"
    return is_of_values and (not file.source.far or bool(_single_values(check)))


def _single_values(check: AnyCheck) -> Sequence[Key]:
    """The single values that a check is for, which a filter or dictionary may lack."""
    if isinstance(check, Computed):
        return ()
    if not isinstance(check.values, ValueSet) or check.fold == "all":
        return ()
    return check.values.keys(MOST_VALUES)


def _by_bloom_filter(file: OpenFile, open_block: OpenBlock, check: AnyCheck) -> Steps[bool | None]:
    assert isinstance(check, Check)
    rows = yield from open_block.reader.bloom_rows(check.leaf, _single_values(check))
    if rows is None:
        return None
    open_block.possible[check] = rows
    return None if (rows & open_block.rows).selects_any() else False


def _by_dictionary(file: OpenFile, open_block: OpenBlock, check: AnyCheck) -> Steps[bool | None]:
    (leaf,) = check.leaves
    entries = yield from open_block.reader.dictionary(leaf)
    if entries is None:
        return None
    if isinstance(check, Computed):
        bounds = yield from file.reader.block_bounds([open_block.block], leaf)
        return true_of_entries(check, entries, may_be_null=bounds.null_counts[0] != 0)
    found = matches(replace(check, above=(), fold=None), entries)
    if not found.any():
        return False
    bounds = yield from file.reader.block_bounds([open_block.block], check.leaf)
    never_null = bounds.null_counts[0] == 0
    return True if check.fold is None and never_null and found.all() else None


def _of_pages(source: str, none: Booleans, index: PageIndex, text: str) -> Verdict:
    dropped = int(none.sum())
    size = int(index.sizes[none].sum())
    parts = [(text, dropped, len(none))] if text else []
    return Verdict("page", source, len(none) - dropped, dropped, page_bytes=size, parts=parts)
