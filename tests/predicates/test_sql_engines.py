"""Conditions on odd data find the rows that other engines find, except where the docs say why."""

import io

import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.sql_conditions import CONDITIONS, TABLE
from tests.support.sql_engines import (
    REFUSED,
    Found,
    by_duckdb,
    by_polars,
    differences,
    documented,
)

# Those that neither DuckDB nor polars takes and means as we do, by the rules.
BY_RULE = {
    "i = 0x7": [3],
    "i > 0x0A": [6, 7],
    "startswith(s, 'a')": [0, 2, 3, 9],
    "endswith(s, 'c')": [0, 2, 3, 9],
    "microsecond(ts) = 123456": [0],
    "extract(microsecond from ts) = 123456": [0],
    "not list_contains(xs, 1)": [1, 3, 6, 7],
    "not array_contains(xs, 1)": [1, 3, 6, 7],
    "u8 + 1 = 256": [1],
    "e = z": [0, 2, 3, 8],
    "e < z": [7, 9],
}


@pytest.fixture(scope="module")
def ours() -> dict[str, list[int]]:
    buffer = io.BytesIO()
    pq.write_table(TABLE, buffer, row_group_size=3)
    scan = fs.open(buffer.getvalue()).scan().select("n")
    return {text: scan.filter(text).to_arrow()["n"].to_pylist() for text in CONDITIONS}


@pytest.fixture(scope="module")
def theirs() -> dict[str, dict[str, Found]]:
    engines = {"DuckDB": by_duckdb(TABLE), "polars": by_polars(TABLE)}
    return {name: {text: run(text) for text in CONDITIONS} for name, run in engines.items()}


@pytest.mark.parametrize(("engine", "most"), [("DuckDB", 320), ("polars", 290)])
def test_rows_are_those_of_other_engines_except_as_documented(
    engine: str, most: int, ours: dict[str, list[int]], theirs: dict[str, dict[str, Found]]
) -> None:
    found = theirs[engine]
    assert differences(ours, found, documented()[engine]) == {}
    assert sum(rows != REFUSED for rows in found.values()) >= most


def test_what_no_engine_confirms_follows_the_rules(
    ours: dict[str, list[int]], theirs: dict[str, dict[str, Found]]
) -> None:
    alone = [text for text in CONDITIONS if all(ours[text] != e[text] for e in theirs.values())]
    assert {text: ours[text] for text in alone} == BY_RULE
