"""Random predicates on a file, and the rows that the oracle finds."""

import io
import operator
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fretsaw as fs
from fretsaw import col
from tests.support.nested_data import Kinds, assert_same_nested
from tests.support.oracle import And, Not, Or, Test, Tree
from tests.support.predicate_cases import (
    row_numbers,
)
from tests.support.predicate_data import (
    COMMON,
    NESTED,
    Predicates,
    Writer,
    by_pyarrow,
    open_source,
)

QUICK = 12  # a file of each writer


SPARK = Writer(by_pyarrow, Kinds(COMMON, (*NESTED, "map")), COMMON)


def expression(tree: Tree) -> fs.Predicate:
    """The predicate of the library for a tree of the oracle."""
    match tree:
        case Not(inner):
            return ~expression(inner)
        case And(left, right):
            return expression(left) & expression(right)
        case Or(left, right):
            return expression(left) | expression(right)
        case Test(path, name, arguments, fold):
            column: Any = col(".".join(path))
            if fold:
                column = getattr(column, fold)()
            symbols = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
            if name in symbols:
                made: fs.Predicate = getattr(operator, symbols[name])(column, *arguments)
            elif name == "is_in":
                made = column.is_in(list(arguments))
            else:
                made = getattr(column, name)(*arguments)
            return made


class Case:
    """A file, its oracle, and random ways to ask for the rows that match."""

    def __init__(self, data: bytes, seed: int) -> None:
        self._data = data
        self.source = open_source(data)
        self.predicates = Predicates(self.source, seed)
        self._rng = np.random.default_rng([9, seed])
        file = pq.ParquetFile(io.BytesIO(data)).metadata
        sizes = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._ends = list(accumulate(sizes, initial=0))

    def check(self, tree: Tree) -> None:
        """All rows, then, often, another question about the same predicate."""
        predicate, rows = expression(tree), self.source.matches(tree)
        scan = fs.scan(self._data).filter(predicate)
        assert row_numbers(scan) == rows
        assert row_numbers(fs.scan(self._data, indexes=False).filter(predicate)) == rows
        chance = self._rng.random()
        if chance < 0.1:
            with fs.open(self._data) as file:
                assert set(rows) <= set(file.prune(predicate).indices().tolist())
        if chance < 0.45:
            return
        scan, rows = self._windowed(*self._restricted(scan, rows))
        if chance < 0.6:
            assert scan.count() == len(rows)
        else:
            self._check_values(scan, rows)

    def _restricted(self, scan: fs.Scan, rows: list[int]) -> tuple[fs.Scan, list[int]]:
        total = self._ends[-1]
        match self._rng.integers(8):
            case 0:
                start, end = sorted(int(n) for n in self._rng.integers(len(self._ends), size=2))
                kept = range(self._ends[start], self._ends[end])
                return scan.filter(fs.blocks(start, end)), [row for row in rows if row in kept]
            case 1:
                chosen = set(self._rng.integers(total, size=self._rng.integers(total + 1)).tolist())
                return scan.select_rows(sorted(chosen)), [row for row in rows if row in chosen]
            case 2:
                tree = self.predicates.tree(1)
                also = set(self.source.matches(tree))
                return scan.filter(expression(tree)), [row for row in rows if row in also]
            case _:
                return scan, rows

    def _windowed(self, scan: fs.Scan, rows: list[int]) -> tuple[fs.Scan, list[int]]:
        sizes = (0, 1, 3, len(rows) // 2, len(rows), len(rows) + 5)
        first, second = (int(n) for n in self._rng.choice(sizes, size=2))
        match self._rng.integers(8):
            case 0:
                return scan.head(first), rows[:first]
            case 1:
                return scan.tail(first), rows[max(0, len(rows) - first) :]
            case 2:
                return scan.skip(first), rows[first:]
            case 3:
                return scan.skip(first).head(second), rows[first:][:second]
            case 4:
                return scan.head(second).skip(first), rows[first:][:second]
            case _:
                return scan, rows

    def _check_values(self, scan: fs.Scan, rows: list[int]) -> None:
        table = self.source.table
        names = [item.name for item in table.schema if can_take(item.type)]
        chosen = self._rng.permutation(names)[: self._rng.integers(4)].tolist()
        asked = scan.select(*chosen).with_row_index("physical row")
        if self._rng.random() < 0.3:
            batches = asked.batches(int(self._rng.integers(1, 50)))
            found = pa.Table.from_batches(batches, asked.schema)
        else:
            found = asked.to_arrow()
        assert found["physical row"].to_pylist() == rows
        assert found.column_names == ["physical row", *chosen]
        if chosen:
            wanted = table.select(chosen).take(pa.array(rows, pa.int64()))
            assert_same_nested(found.select(chosen), wanted)


def can_take(kind: pa.DataType) -> bool:
    """Whether pyarrow's `take` knows the type: no lists of extension types."""
    return not (pa.types.is_nested(kind) and "extension" in str(kind))


def check_many(case: Case, count: int, where: str) -> None:
    """Random predicates on a file; a failure names the file and the predicate."""
    for number in range(count):
        tree = case.predicates.tree()
        try:
            case.check(tree)
        except Exception as error:
            error.add_note(f"{where}, predicate {number}: {tree}")
            raise
