"""Conditions on the numbers of rows: selections, not values to read.

Where a predicate tests the column that `with_row_index` adds, each such check becomes the rows of a
file, and of its blocks, for which it is true. What no condition on values can add to rules out
files and blocks before anything else is asked of them.
"""

from bisect import bisect_left, bisect_right
from contextlib import suppress
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa

from fretsaw.engine.query import Query
from fretsaw.model.schema import Path, SchemaNode, spelled
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.bind import resolve
from fretsaw.predicates.bound import ROW_NUMBER, Bound, NotComputable, constant
from fretsaw.predicates.columns import Found
from fretsaw.predicates.condition import (
    Check,
    Computed,
    Condition,
    Every,
    InRows,
    Some,
    every,
    some,
)
from fretsaw.predicates.expression import columns_of
from fretsaw.predicates.rows import true_rows
from fretsaw.predicates.value_set import EVERYTHING, NOTHING, Booleans, ValueSet


def number_node(name: str) -> SchemaNode:
    """The column of row numbers, as predicates see it."""
    return SchemaNode(name, (name,), "leaf", False, pa.int64(), leaf_index=ROW_NUMBER)


def possible_numbers(query: Query, source: str) -> ValueSet | None:
    """The row numbers that can match, whatever the rows hold; None: nothing is asked of them."""
    name, predicate = query.row_index, query.predicate
    if name is None or predicate is None or name not in map(spelled, columns_of(predicate)):
        return None

    def find(path: Path) -> Found | None:
        node = number_node(name)
        return (node, node) if spelled(path) == name else None

    return _numbers(resolve(predicate, find, source))


def last_of(numbers: ValueSet) -> int | None:
    """The first number behind all of them; None if there is none."""
    is_bounded = len(numbers.cuts) % 2 == int(numbers.begins_inside)
    return (numbers.cuts[-1] if numbers.cuts else 0) if is_bounded else None


def rows_numbered(numbers: ValueSet, start: int, end: int) -> RowSelection:
    """The rows from `start` to `end` that have one of the numbers, counted from there."""
    if start == end:
        return RowSelection()
    inside = numbers.cuts[bisect_right(numbers.cuts, start) : bisect_left(numbers.cuts, end)]
    edges = [cut - start for cut in inside]
    if start in numbers:
        edges.insert(0, 0)
    if len(edges) % 2:
        edges.append(end - start)
    ranges = zip(edges[::2], edges[1::2], strict=True)
    return RowSelection.from_ranges(list(ranges), end - start)


def in_file(condition: Condition, first_row: int, total: int) -> Condition:
    """A condition for the rows of a file that begins at `first_row`."""
    match condition:
        case Check() if condition.leaf.leaf_index == ROW_NUMBER:
            return _only(rows_numbered(_numbers(condition), first_row, first_row + total))
        case Computed(truth, inputs=inputs) if first_row:
            if any(leaf.leaf_index == ROW_NUMBER for leaf in inputs):
                return replace(condition, truth=_numbered_from(truth, first_row))
        case Every(parts):
            return every(in_file(part, first_row, total) for part in parts)
        case Some(parts):
            return some(in_file(part, first_row, total) for part in parts)
    return condition


def in_block(condition: Condition, start: int, end: int) -> Condition:
    """A condition for the rows of a file, for those from `start` to `end` alone."""
    match condition:
        case InRows(rows):
            return _only(rows.slice(start, end))
        case Computed(leaves=()):
            with suppress(NotComputable):  # told with its file when the row is evaluated
                return _only(RowSelection.from_filters([_true_of(condition, start, end)]))
        case Every(parts):
            return every(in_block(part, start, end) for part in parts)
        case Some(parts):
            return some(in_block(part, start, end) for part in parts)
    return condition


def _numbered_from(value: Bound, first_row: int) -> Bound:
    """What is computed of the numbers of rows in a file, of those in the whole scan."""
    if value.function == "leaf" and value.options[0].leaf_index == ROW_NUMBER:
        return Bound("+", pa.int64(), (value, constant(pa.scalar(first_row))))
    operands = tuple(_numbered_from(operand, first_row) for operand in value.operands)
    return replace(value, operands=operands)


def _true_of(condition: Computed, start: int, end: int) -> Booleans:
    """For each row of a file from `start` to `end`, whether what its number alone decides is so."""
    numbers = pa.chunked_array([pa.array(np.arange(start, end))])
    return true_rows(condition, lambda _: numbers)


def _only(rows: RowSelection) -> Condition:
    """The condition that is true for some rows."""
    return rows.selects_any() if rows.selected_count in (0, rows.row_count) else InRows(rows)


def _numbers(condition: Condition) -> ValueSet:
    """The numbers for which a condition, of which only numbers are known, can be true."""
    match condition:
        case Check(values=ValueSet() as values):
            return values
        case Check(values=values):
            return NOTHING if values == "null" else EVERYTHING
        case Computed():
            return EVERYTHING
        case Every(parts):
            return reduce(ValueSet.__and__, map(_numbers, parts))
        case Some(parts):
            return reduce(ValueSet.__or__, map(_numbers, parts))
    return EVERYTHING if condition else NOTHING
