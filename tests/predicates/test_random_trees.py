"""Random expression trees on files of both formats by several writers, against the row evaluator.

Each tree is written in Python or as SQL text, with indexes or without, with the kernels or without:
the number of a tree says which. An error is right where some row cannot be computed, even one that
need not be; it is wanted where nothing could have ruled out such a row.
"""

import random
from collections import Counter
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest

import fretsaw as fs
from tests.support.depth import in_depth
from tests.support.kernels import without_kernels
from tests.support.random_trees import Trees
from tests.support.row_evaluator.evaluator import evaluate
from tests.support.row_evaluator.trees import Node, may_be_refused
from tests.support.tree_files import WRITERS, tree_file
from tests.support.tree_wording import Unsayable, as_python, as_sql

EACH = 250
BATCHES = 80


@cache
def scan_of(writer: str, indexes: bool, kernels: bool) -> fs.Scan:
    """One for all trees: the footer is read once."""
    with nullcontext() if kernels else without_kernels():
        return fs.open(tree_file(writer).data, indexes=indexes).scan()


def worded(tree: Node, sql: bool) -> tuple[Any, bool]:
    """The tree as SQL text or in Python, the other way if this one has no words for it."""
    for dialect in (sql, not sql):
        try:
            return (as_sql(tree) if dialect else as_python(tree)), dialect
        except Unsayable:
            continue
    return None, sql


def rows_found(scan: fs.Scan, predicate: Any, kernels: bool) -> list[int]:
    with nullcontext() if kernels else without_kernels():
        table = scan.filter(predicate).with_row_index("n").select().to_arrow()
    found: list[int] = table["n"].to_pylist()
    return found


def check(number: int) -> None:
    chance = random.Random(number)
    writer = chance.choice(list(WRITERS))
    sql, indexes, kernels = (chance.random() < 0.5 for _ in range(3))
    file = tree_file(writer)
    tree = Trees(chance, file.kinds).tree()
    predicate, sql = worded(tree, sql)
    if predicate is None:
        return
    case = f"tree {number} by {writer}, {indexes=}, {kernels=}: {predicate}"
    expected = evaluate(tree, file.rows, sql)
    try:
        found = rows_found(scan_of(writer, indexes, kernels), predicate, kernels)
    except fs.PredicateError:
        assert expected.may_fail, case
    except fs.PredicateTypeError as error:
        if "digits" not in str(error) or not may_be_refused(tree):
            error.add_note(case)
            raise
    except Exception as error:
        error.add_note(case)
        raise
    else:
        assert found == expected.rows, case
        assert indexes or not expected.failing, case


@pytest.mark.parametrize("batch", in_depth(range(BATCHES), 1, 2))
def test_the_rows_are_those_of_the_evaluator(batch: int) -> None:
    for number in range(batch * EACH, (batch + 1) * EACH):
        check(number)


def test_trees_are_of_every_kind_and_find_some_rows() -> None:
    seen: Counter[str] = Counter()
    for number in range(400):
        chance = random.Random(number)
        file = tree_file("pyarrow")
        tree = Trees(chance, file.kinds).tree()
        seen.update({f"{node.op} {node.kind.name}" for node in tree.walk()})
        predicate, sql = worded(tree, chance.random() < 0.5)
        outcome = evaluate(tree, file.rows, sql)
        seen["sql" if sql else "python"] += predicate is not None
        seen["some rows"] += 0 < len(outcome.rows) < len(file.rows)
        seen["fails"] += bool(outcome.failing)
    assert min(seen["sql"], seen["python"], seen["some rows"]) > 100
    assert seen["fails"] > 3
    assert len(seen) > 60
