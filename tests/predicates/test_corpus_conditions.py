"""Conditions of every kind on the files of other writers, against DuckDB on what pyarrow reads."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.writers import need

INTEGERS = (
    *("{} % 3 = 1", "{} + 1 > 5", "abs({}) < 10", "{} between 1 and 100", "{} in (0, 1, 2)"),
    *("cast({} as double) / 2 > 1.5", "cast({} as varchar) like '1%'", "coalesce({}, 0) = 0"),
    *("{} is distinct from 1", "case when {} > 3 then 1 else 0 end = 1"),
)
FLOATS = (
    *("{} > 0.5", "{} * 2 < 3", "abs({}) > 1", "not isnan({})", "round({}) = 1", "{} = 0"),
    "{0} is not null and {0} <= 1",
)
DECIMALS = (
    "{} > 1",
    "{} + 1 < 10.5",
    "{} * 2 = 4",
    "round({}) = 2",
    "abs({}) >= 0.5",
    "{} % 2 = 1",
)
TEXTS = (
    *("{} like '%a%'", "lower({}) < 'm'", "length({}) > 5", "{} || 'x' like '%1x'"),
    *(
        "regexp_matches({}, '^[A-Z]')",
        "{} ilike 'A%'",
        "upper({0}) = {0}",
        "{0} is null or {0} = ''",
    ),
)
TIMES = (
    *("year({}) > 2000", "month({}) = 1", "{} < '2010-01-01'", "extract(day from {}) = 1"),
    *("date_trunc('month', {}) < '2009-04-02'", "isodow({}) = 7"),
)
NESTED = ("{} is null", "{} is not null")


def conditions(field: pa.Field) -> list[str]:
    types, kind = pa.types, field.type
    tests: tuple[str, ...] = NESTED
    for holds, forms in (
        (types.is_integer, INTEGERS),
        (types.is_floating, FLOATS),
        (types.is_decimal, DECIMALS),
        (types.is_string, TEXTS),
        (types.is_temporal, TIMES),
        (types.is_boolean, ("{}", "not {}", "{} is not true")),
    ):
        if holds(kind) and not types.is_time(kind):
            tests = forms
    name = '"' + field.name.replace('"', '""') + '"'
    return [test.format(name) for test in tests]


def table_of(path: Path) -> pa.Table | None:
    try:
        read = orc.read_table if path.suffix == ".orc" else pq.read_table
        return read(path)
    except (OSError, pa.ArrowException):
        return None


def counts(path: Path, table: pa.Table) -> dict[str, tuple[Any, Any]]:
    """What each condition counts in DuckDB and here; what DuckDB cannot say is left out."""
    duckdb = need("duckdb")
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    known = [field for field in table.schema if field.type != pa.float16()]
    if not known:
        return {}
    connection.register("source", table.select([field.name for field in known]))
    found = {}
    for text in [text for field in known for text in conditions(field)]:
        try:
            row = connection.execute(f"select count(*) from source where {text}").fetchone()
        except duckdb.Error:
            continue
        try:
            found[text] = row[0], fs.scan(path).filter(text).count()
        except fs.PredicateError as error:
            if "overflow" not in str(error):  # DuckDB may compute otherwise, and never meet it
                raise
    return found


@pytest.mark.deep
def test_conditions_count_what_duckdb_counts_in_files_of_other_writers(corpus: Path) -> None:
    compared = 0
    for path in sorted([*corpus.glob("parquet/data/*.parquet"), *corpus.glob("orc/*.orc")]):
        table = table_of(path)
        if table is None or not table.num_rows or "corrupt" in path.name or "int96" in path.name:
            continue
        for text, (theirs, ours) in counts(path, table).items():
            assert ours == theirs, f"{path.name}: {text}"
            compared += 1
    assert compared > 2_000
