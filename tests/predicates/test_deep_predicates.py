"""Predicates of thousands of parts: read, or refused by an error that says why."""

import pickle
from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col

VALUES = range(100)
MANY = (1_000, 5_000)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("deep") / "x.parquet")
    pq.write_table(pa.table({"x": VALUES}), path)
    return path


def negated(times: int) -> Any:
    return reduce(lambda predicate, _: ~predicate, range(times), col("x") == 5)


def alternating(times: int) -> Any:
    predicate = col("x") == 5
    for i in range(times):
        predicate = (predicate | (col("x") == i)) & (col("x") >= 0)
    return predicate


CHAINS: dict[str, tuple[Callable[[int], Any], Callable[[int, int], bool]]] = {
    "or": (lambda n: reduce(or_, [col("x") == 2 * i for i in range(n)]), lambda x, n: x % 2 == 0),
    "and": (lambda n: reduce(and_, [col("x") != 2 * i for i in range(n)]), lambda x, n: x % 2 == 1),
    "or, from the end": (
        lambda n: reduce(lambda rest, i: (col("x") == 2 * i) | rest, range(n), col("x") == 1),
        lambda x, n: x % 2 == 0 or x == 1,
    ),
    "not": (negated, lambda x, n: (x == 5) == (n % 2 == 0)),
    "SQL": (lambda n: " or ".join(f"x = {2 * i}" for i in range(n)), lambda x, n: x % 2 == 0),
}


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("name", CHAINS)
def test_long_chains_are_read_and_pickled(path: str, name: str, count: int) -> None:
    make, is_match = CHAINS[name]
    scan = fs.scan(path).filter(make(count))
    expected = [x for x in VALUES if is_match(x, count)]
    assert scan.to_arrow()["x"].to_pylist() == expected
    copies = [pickle.loads(pickle.dumps(split)) for split in scan.splits()]
    assert [x for copy in copies for x in copy.to_arrow()["x"].to_pylist()] == expected


@pytest.mark.parametrize("count", MANY)
def test_what_is_nested_too_deep_is_refused(path: str, count: int) -> None:
    with pytest.raises(fs.PredicateTypeError, match="levels deep"):
        alternating(count)
    for text in ("not " * count + "x = 1", "(" * count + "x = 1" + ")" * count):
        with pytest.raises(fs.PredicateSyntaxError, match="nested too deeply"):
            fs.scan(path).filter(text).count()


def test_what_is_nested_within_the_limit_is_read(path: str) -> None:
    scan = pickle.loads(pickle.dumps(fs.scan(path).filter(alternating(45))))
    assert scan.to_arrow()["x"].to_pylist() == list(range(45))
