"""Finds the rows of a block that match: decodes the checked leaves as far as nothing is proven.

AND narrows the rows for its next part, OR passes on only the rows that are not found yet, so that
each leaf is decoded for as few pages as can be. First comes what is cheap and decides much, as far
as that was seen before. What was decoded is handed on, to be reused.
"""

from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from math import prod

import pyarrow as pa

from fretsaw.engine.decode import Decoded, Wanted, decode
from fretsaw.engine.decode import find as find_in
from fretsaw.engine.files import OpenFile
from fretsaw.engine.plan import BlockPlan
from fretsaw.errors import FileFormatError, PredicateError
from fretsaw.formats.interface import Found, OutsideBounds, Search
from fretsaw.model.blocks import Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.bound import ROW_NUMBER, NotComputable
from fretsaw.predicates.condition import (
    AnyCheck,
    Check,
    Computed,
    Condition,
    Every,
    InRows,
    Some,
    checks_of,
    leaves_of,
)
from fretsaw.predicates.evaluate import matches, page_outside
from fretsaw.predicates.rows import true_rows
from fretsaw.predicates.value_set import EVERYTHING, ValueSet
from fretsaw.storage import requests

WHOLE = 1 << 62
"""Bytes of a piece that is as large as it is: it was divided before."""
_RARE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The rows that match, and what was decoded to find them, by leaf index."""

    rows: RowSelection
    decoded: dict[int, Decoded]


class Selectivity:
    """How many of the rows that were evaluated matched so far."""

    def __init__(self) -> None:
        self._counts: dict[AnyCheck, tuple[int, int]] = {}

    def add(self, check: AnyCheck, rows: int, matching: int) -> None:
        """So many rows were evaluated, and so many of them matched."""
        before = self._counts.get(check, (0, 0))
        self._counts[check] = (before[0] + rows, before[1] + matching)

    def share(self, condition: Condition) -> float:
        """Which part of the rows is likely to match; a half if unknown."""
        match condition:
            case Check() | Computed():
                rows, matching = self._counts.get(condition, (0, 0))
                return (matching + 1) / (rows + 2)
            case Every(parts):
                return prod(map(self.share, parts))
            case Some(parts):
                return 1 - prod(1 - self.share(part) for part in parts)
            case InRows(rows):
                return rows.selected_count / rows.row_count
        return float(condition)


def find(
    file: OpenFile,
    plan: BlockPlan,
    rows: RowSelection,
    projected: Container[int],
    selectivity: Selectivity,
    kept: requests.Kept | None = None,
) -> Match:
    """Those of the rows that match; what is seen on the way adds to the selectivity.

    What is found in `projected` leaves, given by their indices, is decoded on the way.
    """
    finder = _Finder(file, plan, projected, selectivity, kept)
    certain = None if plan.certain is None else rows & plan.certain
    if certain is None or not certain.selects_any():
        return Match(finder.find(plan.condition, rows), finder.decoded)
    return Match(certain | finder.find(plan.condition, rows & ~certain), finder.decoded)


class _Finder:
    """One search: keeps what it decoded."""

    def __init__(
        self,
        file: OpenFile,
        plan: BlockPlan,
        projected: Container[int],
        selectivity: Selectivity,
        kept: requests.Kept | None,
    ) -> None:
        self._file = file
        self._block = plan.reader
        self._plan = plan
        self._projected = projected
        self._selectivity = selectivity
        self._kept = kept
        self.decoded: dict[int, Decoded] = {}
        self._stored: dict[int, Decoded] = {}

    def find(self, condition: Condition, rows: RowSelection) -> RowSelection:
        match condition:
            case Check() | Computed():
                return self._check(condition, rows)
            case Every(parts):
                for part in sorted(parts, key=partial(self._cost_to_drop, rows)):
                    rows = self.find(part, rows)
                return rows
            case Some(parts):
                found = RowSelection.none(rows.row_count)
                for part in sorted(parts, key=partial(self._cost_to_find, rows)):
                    found |= self.find(part, rows & ~found)
                return found
            case InRows(known):
                return rows & known
        return rows if condition else RowSelection.none(rows.row_count)

    def _check(self, check: AnyCheck, rows: RowSelection) -> RowSelection:
        proof = self._plan.proofs[check]
        certain = rows & proof.certain
        unproven = rows & proof.possible & ~proof.certain
        if not unproven.selects_any():
            return certain
        found = self._evaluated(check, unproven)
        self._selectivity.add(check, unproven.selected_count, found.selected_count)
        return certain | found

    def _evaluated(self, check: AnyCheck, rows: RowSelection) -> RowSelection:
        if isinstance(check, Check) and self._can_search(check):
            return self._searched(check, rows)
        try:
            true = true_rows(check, partial(self._values, rows=rows))
        except NotComputable as error:
            assert isinstance(check, Computed)  # comparisons are always computed
            names = ", ".join(repr(".".join(leaf.path)) for leaf in check.inputs)
            raise PredicateError(
                f"{self._file.name}: {check.text} cannot be computed for a row of column {names}: "
                f"{error}; leave such rows to another branch of fs.when(...)"
            ) from None
        return rows.and_then(RowSelection.from_filters([true]))

    def _can_search(self, check: Check) -> bool:
        """Whether the leaf is compared here alone, so that its values may stay where they are."""
        leaf = check.leaf
        compared = [other.leaf_index for other in leaves_of(self._plan.condition)]
        return check.on_leaf and not leaf.is_repeated and compared.count(leaf.leaf_index) == 1

    def _searched(self, check: Check, rows: RowSelection) -> RowSelection:
        """The rows that a format finds, or those that match among what it decodes."""
        leaf = check.leaf
        pages = self._pages(leaf, rows)
        values = check.values if isinstance(check.values, ValueSet) else EVERYTHING
        keeps = leaf.leaf_index in self._projected and not leaf.as_stored
        keeps = keeps and check.values != "null"
        bounds = None if leaf.as_stored else self._plan.bounds.get(leaf.leaf_index)
        wanted = Wanted(self._block, rows, [pages], self._kept)
        try:
            found = find_in(self._file, leaf, wanted, Search(values, keeps, bounds))
        except OutsideBounds as error:
            raise self._outside(leaf, error.args[0], pages) from None
        if isinstance(found, Found):
            true = rows.and_then(found.rows)
            if found.values is not None:
                self.decoded[leaf.leaf_index] = Decoded(true, found.values)
            return rows & ~true if check.values == "null" else true
        if bounds is not None:
            self._require_bounds(leaf, rows, found, pages, bounds)
        if not leaf.as_stored:
            self.decoded[leaf.leaf_index] = Decoded(rows, found)
        return rows.and_then(RowSelection.from_filters([matches(check, found)]))

    def _values(self, leaf: SchemaNode, rows: RowSelection) -> pa.ChunkedArray:
        if leaf.leaf_index == ROW_NUMBER:
            numbers = rows.indices() + self._plan.block.first_row
            return pa.chunked_array([pa.array(numbers, pa.int64())])
        kept = self._stored if leaf.as_stored else self.decoded
        before = kept.get(leaf.leaf_index)
        missing = rows if before is None else rows & ~before.rows
        if before is not None and not missing.selects_any():
            return before.of(rows)
        pages = self._pages(leaf, missing)
        wanted = Wanted(self._block, missing, [pages], self._kept)
        (values,) = decode(self._file, [leaf], [wanted])
        bounds = self._plan.bounds.get(leaf.leaf_index)
        if bounds is not None and not leaf.as_stored and not leaf.is_repeated:
            self._require_bounds(leaf, missing, values, pages, bounds)
        decoded = Decoded(missing, values)
        if before is not None:
            decoded = before.joined(decoded)
        kept[leaf.leaf_index] = decoded
        return decoded.of(rows)

    def _pages(self, leaf: SchemaNode, rows: RowSelection) -> PageIndex:
        known = self._plan.pages.get(leaf.leaf_index)
        if known is not None:
            return known
        ((pages,),) = self._file.pages_of([(self._block, rows)], [leaf], WHOLE)
        return pages

    def _require_bounds(
        self,
        leaf: SchemaNode,
        rows: RowSelection,
        values: pa.ChunkedArray,
        pages: PageIndex,
        bounds: Bounds,
    ) -> None:
        """What was decoded must lie within the bounds by which other pages are left out."""
        page = page_outside(values, rows.counts_before(pages.boundaries), bounds)
        if page is not None:
            raise self._outside(leaf, page, pages)

    def _outside(self, leaf: SchemaNode, page: int, pages: PageIndex) -> FileFormatError:
        source = pages.told_by or self._file.reader.index_name
        return FileFormatError(
            f"{self._file.name}: column {'.'.join(leaf.path)!r} in block "
            f"{self._plan.block.ordinal}: page {page} has values outside of the bounds that "
            f"the {source} claims; the file is corrupt, write it again"
        )

    def _cost_to_drop(self, rows: RowSelection, condition: Condition) -> float:
        """Bytes to decode for each row that does not match."""
        return self._cost(rows, condition) / max(1 - self._selectivity.share(condition), _RARE)

    def _cost_to_find(self, rows: RowSelection, condition: Condition) -> float:
        """Bytes to decode for each row that matches."""
        return self._cost(rows, condition) / max(self._selectivity.share(condition), _RARE)

    def _cost(self, rows: RowSelection, condition: Condition) -> float:
        """Bytes to decode for a condition, roughly."""
        total = 0.0
        for check in checks_of(condition):
            proof = self._plan.proofs[check]
            unproven = rows & proof.possible & ~proof.certain
            width = sum(self._block.whole_chunk(leaf).width for leaf in check.leaves)
            total += width * unproven.selected_count
        return total
