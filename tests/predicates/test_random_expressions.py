"""Random expressions on files of both formats against the oracle, with indexes and without."""

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from tests.support.depth import in_depth
from tests.support.expression_cases import Expressions, as_predicate, make_table
from tests.support.expression_oracle import Node, NoValue, compared_in, truth_of
from tests.support.formats import written

ROWS, BLOCK, EACH = 160, 40, 50


@cache
def made(number: int) -> tuple[bytes, list[dict[str, Any]]]:
    table = make_table(np.random.default_rng([20, number]), ROWS)
    if number % 2:
        return written(table, "orc", [BLOCK] * (ROWS // BLOCK)), table.to_pylist()
    options = {"write_page_index": True, "data_page_size": 64, "write_batch_size": 8}
    data = written(table, "parquet", [BLOCK] * (ROWS // BLOCK), **options)
    return data, table.to_pylist()


def expected(tree: Node, rows: list[dict[str, Any]]) -> tuple[list[int], bool]:
    """The rows that match, and whether some row cannot be computed."""
    found, fails = [], False
    for number, row in enumerate(rows):
        with suppress(NoValue):
            if truth_of(tree, row):
                found.append(number)
        for test in compared_in(tree):
            try:
                truth_of(test, row)
            except NoValue:
                fails = True
    return found, fails


def rows_of(data: bytes, predicate: fs.Predicate, indexes: bool) -> list[int]:
    scan = fs.scan(data, indexes=indexes).filter(predicate).with_row_index("n").select()
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found


@pytest.mark.parametrize("number", in_depth(range(100), 5, 20))
def test_the_rows_are_those_of_the_oracle(number: int) -> None:
    data, rows = made(number % 4)
    expressions = Expressions(number)
    for _ in range(EACH):
        tree = expressions.predicate()
        try:
            predicate = as_predicate(tree)
        except TypeError:  # of two literals, Python made a value
            continue
        found, fails = expected(tree, rows)
        for indexes in (True, False):
            try:
                assert rows_of(data, predicate, indexes) == found, tree
            except fs.PredicateError:
                assert fails, tree
            except fs.PredicateTypeError as error:
                if "digits" not in str(error):
                    raise
            except Exception as error:
                error.add_note(str(tree))
                raise


def test_the_trees_are_of_every_kind() -> None:
    seen: set[str] = set()

    def note(node: Any) -> None:
        if isinstance(node, tuple):
            seen.add(node[0])
            for part in node[1:]:
                note(part)

    expressions = Expressions(0)
    for _ in range(2000):
        note(expressions.predicate())
    assert len(seen) > 40
    assert pa.types.is_decimal(make_table(np.random.default_rng(0), 1)["d"].type)
