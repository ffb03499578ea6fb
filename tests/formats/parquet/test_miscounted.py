"""Parquet files whose counts are dropped, off or impossible: the rows are those without indexes.

Random files by several writers; in each, counts of the footer and of the column indexes are
changed, the pages stay as they are. Only changes that can be seen to contradict something are made
here: bounds beside a count that leaves no values, levels, the pages beside their chunk, the rows. A
count that lies and agrees with all that is read beside it cannot be told from the truth: less
nulls in the statistics alone, no NaN where there is one, all null where there are no bounds.
"""

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.craft import (
    COLUMN_INDEX,
    COLUMN_INDEX_AT,
    COLUMNS,
    I64,
    META_DATA,
    ROW_GROUPS,
    STATISTICS,
    STATISTICS_OF_CHUNK,
    STRUCT,
    Crafted,
    Reader,
    Struct,
    changed,
    encoded,
    named,
)
from tests.support.predicate_cases import row_numbers
from tests.support.predicate_checks import QUICK, expression
from tests.support.predicate_data import Predicates, make_file, open_source

PHYSICAL_TYPE, NUM_VALUES = 1, 5  # fields of ColumnMetaData
INTEGERS = (0, 1, 2)  # BOOLEAN, INT32, INT64: every value of these has bounds
BOUNDS = ("min", "max", "min_value", "max_value")
DEEP_FILES = 400

Change = Callable[[dict[str, Any], Struct, np.random.Generator], dict[str, Any]]


def with_bounds(stats: Mapping[str, Any]) -> bool:
    return any(name in stats for name in BOUNDS)


def all_null_beside_bounds(
    stats: dict[str, Any], meta: Struct, rng: np.random.Generator
) -> dict[str, Any]:
    return {"null_count": meta[NUM_VALUES][1]} if with_bounds(stats) else {}


def zero_beside_nothing(
    stats: dict[str, Any], meta: Struct, rng: np.random.Generator
) -> dict[str, Any]:
    if meta[PHYSICAL_TYPE][1] not in INTEGERS:
        return {}
    return {**dict.fromkeys(BOUNDS), "null_count": 0}


# What becomes of the statistics of a chunk
IN_STATISTICS: Mapping[str, Change] = {
    "counts dropped": lambda stats, meta, rng: {"null_count": None, "nan_count": None},
    "bounds dropped": lambda stats, meta, rng: dict.fromkeys(BOUNDS),
    "negative": lambda stats, meta, rng: {"null_count": -int(rng.integers(1, 9)), "nan_count": -1},
    "more than values": lambda stats, meta, rng: {"null_count": meta[NUM_VALUES][1] + 1},
    "all null beside bounds": all_null_beside_bounds,
    "zero beside nothing": zero_beside_nothing,
}


def off_by_one(index: dict[str, Any], meta: Struct, rng: np.random.Generator) -> dict[str, Any]:
    """One page has a null more or less than it has, and the chunk has as many as ever."""
    stats = named(STATISTICS, meta.get(STATISTICS_OF_CHUNK, (STRUCT, {}))[1])
    if "null_counts" not in index or stats.get("null_count") != sum(index["null_counts"]):
        return {}
    counts = list(index["null_counts"])
    counts[rng.integers(len(counts))] += int(rng.choice([-1, 1]))
    return {"null_counts": counts}


def zeroed(index: dict[str, Any], meta: Struct, rng: np.random.Generator) -> dict[str, Any]:
    if not off_by_one(index, meta, rng):
        return {}
    return {"null_counts": [0] * len(index["null_counts"])}


def null_beside_bounds(
    index: dict[str, Any], meta: Struct, rng: np.random.Generator
) -> dict[str, Any]:
    pages = [
        bool(null or (low + high and rng.random() < 0.5))
        for null, low, high in zip(
            index["null_pages"], index["min_values"], index["max_values"], strict=True
        )
    ]
    kept = rng.choice(["null_counts", "nan_counts", "boundary_order"])
    return {"null_pages": pages, **({} if kept == "null_counts" else {"null_counts": None})}


def levels_at_random(
    index: dict[str, Any], meta: Struct, rng: np.random.Generator
) -> dict[str, Any]:
    names = [name for name in index if name.endswith("histograms")]
    return {name: rng.integers(-2, 9, len(index[name])).tolist() for name in names}


# What becomes of a column index
IN_COLUMN_INDEX: Mapping[str, Change] = {
    "dropped": lambda index, meta, rng: {"null_counts": None, "nan_counts": None},
    "levels dropped": lambda index, meta, rng: {
        "repetition_level_histograms": None,
        "definition_level_histograms": None,
    },
    "off by one": off_by_one,
    "zeroed": zeroed,
    "negative": lambda index, meta, rng: {"null_counts": [-1] * len(index["null_pages"])},
    "more than rows": lambda index, meta, rng: {"null_counts": [10**9] * len(index["null_pages"])},
    "null beside bounds": null_beside_bounds,
    "none is null": lambda index, meta, rng: {"null_pages": [False] * len(index["null_pages"])},
    "levels at random": levels_at_random,
}


class Miscounted(Crafted):
    """A file in which the counts of some chunks are changed."""

    def change_counts(self, rng: np.random.Generator) -> list[str]:
        """What was changed."""
        made = []
        for group in self.footer[ROW_GROUPS][1][1]:
            for chunk in group[COLUMNS][1][1]:
                # Never both: the one is what the other can be seen to contradict.
                if rng.random() < 0.5:
                    made.append(self._change_index(chunk, rng))
                elif rng.random() < 0.8:
                    made.append(self._change_statistics(chunk[META_DATA][1], rng))
                if rng.random() < 0.02:
                    values = chunk[META_DATA][1][NUM_VALUES][1]
                    chunk[META_DATA][1][NUM_VALUES] = (I64, values + int(rng.choice([-1, 1])))
        return made

    def _change_statistics(self, meta: Struct, rng: np.random.Generator) -> str:
        before = meta.get(STATISTICS_OF_CHUNK, (STRUCT, {}))[1]
        name = str(rng.choice(list(IN_STATISTICS)))
        after = IN_STATISTICS[name](named(STATISTICS, before), meta, rng)
        meta[STATISTICS_OF_CHUNK] = (STRUCT, changed(STATISTICS, before, after))
        return name

    def _change_index(self, chunk: Struct, rng: np.random.Generator) -> str:
        if COLUMN_INDEX_AT not in chunk:
            return "nothing"
        before = Reader(self.body, chunk[COLUMN_INDEX_AT][1]).struct()
        name = str(rng.choice(list(IN_COLUMN_INDEX)))
        after = IN_COLUMN_INDEX[name](named(COLUMN_INDEX, before), chunk[META_DATA][1], rng)
        self._append(chunk, COLUMN_INDEX_AT, encoded(changed(COLUMN_INDEX, before, after)))
        return name


@pytest.mark.parametrize(
    "number",
    [*range(QUICK), *(pytest.param(n, marks=pytest.mark.deep) for n in range(QUICK, DEEP_FILES))],
)
def test_counts_that_contradict_something_lose_and_add_no_row(number: int) -> None:
    _, data = make_file(number)
    source, rng = open_source(data), np.random.default_rng([41, number])
    predicates = Predicates(source, number)
    for _ in range(1 if number < QUICK else 3):
        file = Miscounted(data)
        made = file.change_counts(rng)
        for _ in range(8):
            tree = predicates.tree()
            believing, unbelieving = (
                fs.scan(file.to_bytes(), indexes=believed).filter(expression(tree))
                for believed in (True, False)
            )
            try:
                every = row_numbers(unbelieving)
            except fs.FileFormatError:  # a number of values that is not that of the rows
                continue
            assert every == source.matches(tree)
            try:
                found = row_numbers(believing)
            except fs.FileFormatError as error:  # pages without rows that are said to hold values
                if "a page that has values has no rows" not in str(error):
                    raise
                continue
            assert found == every, (tree, made)


def test_a_page_with_as_many_nulls_as_rows_below_a_list_is_not_null() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"xs": [[1, None], [2, None]]}), sink, write_page_index=True)
    claim = {"null_pages": [True], "null_counts": [2], "min_values": [b""], "max_values": [b""]}
    file = Crafted(sink.getvalue()).set_column_index("xs.list.element", [claim])
    data = file.set_statistics("xs.list.element", [None]).to_bytes()
    assert row_numbers(fs.scan(data).filter(fs.col("xs").any() == 1)) == [0]
