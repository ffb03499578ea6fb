"""What other engines make of a condition, and in which their rows are known to differ.

An engine gives rows, or `REFUSED` for what it has no words for, or `FAILED` for rows that it cannot
compute. The differences are those of the table in `docs/predicates.md`.
"""

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa

from tests.support.writers import need

REFUSED, FAILED = "refused", "failed"
Found = list[int] | str
DOCUMENT = Path(__file__).parents[2] / "docs" / "predicates.md"
ROW = re.compile(r"^\| `(?P<condition>[^`]+)` \| (?P<engines>[^|]+) \| (?P<reason>[^|]+) \|$")


def documented() -> dict[str, dict[str, str]]:
    """For each engine the conditions that it means otherwise, and why."""
    found: dict[str, dict[str, str]] = {"DuckDB": {}, "Spark": {}, "polars": {}}
    for line in DOCUMENT.read_text().splitlines():
        if row := ROW.match(line):
            for engine in row["engines"].split(", "):
                found.get(engine, {})[row["condition"]] = row["reason"]
    return found


def by_duckdb(table: pa.Table) -> Callable[[str], Found]:
    duckdb = need("duckdb")
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.register("source", table)

    def run(condition: str) -> Found:
        query = f"select n from source where {condition} order by n"
        try:
            return [row for (row,) in connection.execute(query).fetchall()]
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
            return REFUSED
        except duckdb.Error:
            return FAILED

    return run


def by_polars(table: pa.Table) -> Callable[[str], Found]:
    """It has no maps, and checks all that it knows of a condition before it computes a row."""
    frame = pl.from_arrow(table.drop(["m"]))
    assert isinstance(frame, pl.DataFrame)
    context = pl.SQLContext(odd=frame)

    def run(condition: str) -> Found:
        try:
            found = context.execute(f"select n from odd where {condition}").collect()
        except pl.exceptions.PolarsError:
            return REFUSED
        return found["n"].to_list()

    return run


def differences(
    ours: dict[str, list[int]], theirs: dict[str, Found], listed: dict[str, str]
) -> dict[str, str]:
    """What the documents say wrongly: differences that they lack, and those that are none."""
    wrong = {}
    for condition, rows in ours.items():
        other = theirs[condition]
        if other == REFUSED:
            continue
        if other != rows and condition not in listed:
            wrong[condition] = f"not listed: {rows} here, {other} there"
        elif other == rows and condition in listed:
            wrong[condition] = "listed, but the rows are the same"
    for condition in listed:
        if theirs.get(condition, REFUSED) == REFUSED:
            wrong[condition] = "listed, but not compared"
    return wrong
