"""Thousands of predicates on files of several writers against the oracle."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.depth import in_depth
from tests.support.kernels import each_decoder
from tests.support.oracle import And, Not, Or, Source, Test, Tree
from tests.support.predicate_checks import QUICK, SPARK, Case, check_many
from tests.support.predicate_data import (
    SCHEDULE,
    WRITERS,
    Predicates,
    fill,
    make_file,
    make_table,
)
from tests.support.writers import need, spark_file

pytestmark = each_decoder()

FIRST = [SCHEDULE.index(writer) for writer in WRITERS]
ONE_OF_EACH = len(WRITERS)
FILES = sorted(range(96), key=lambda number: number not in FIRST)
PREDICATES = 32


# Against the oracle


@pytest.mark.parametrize("number", in_depth(FILES, ONE_OF_EACH, QUICK))
def test_the_rows_are_those_of_the_oracle(number: int) -> None:
    writer, data = make_file(number)
    check_many(Case(data, number), PREDICATES, f"file {number} by {writer}")


CORPUS = (
    *("alltypes_plain", "alltypes_dictionary", "alltypes_tiny_pages", "binary", "nulls.snappy"),
    *("byte_array_decimal", "fixed_length_decimal", "int32_decimal", "int64_decimal"),
    *("float16_zeros_and_nans", "floating_orders_nan_count", "nan_in_stats", "single_nan"),
    *("binary_truncated_min_max", "data_index_bloom_encoding_stats"),
    *("nested_lists.snappy", "nested_maps.snappy", "null_list", "nonnullable.impala"),
    *("datapage_v2.snappy", "sort_columns", "fixed_length_byte_array", "old_list_structure"),
)


@pytest.mark.parametrize("name", CORPUS)
def test_files_by_other_writers_agree_with_the_oracle(name: str, corpus: Path) -> None:
    path = corpus / "parquet" / "data" / f"{name}.parquet"
    check_many(Case(path.read_bytes(), 0), 15, path.name)


SPARK_LAYOUTS = [
    ("PARQUET_1_0", "INT96", "false"),
    ("PARQUET_2_0", "TIMESTAMP_MICROS", "false"),
    ("PARQUET_1_0", "TIMESTAMP_MICROS", "true"),
    ("PARQUET_2_0", "INT96", "true"),
]


@pytest.mark.spark
def test_files_of_spark_agree_with_the_oracle(spark: Any, tmp_path: Path) -> None:
    # One test, so that tests in parallel do not start a JVM each.
    for number, layout in enumerate(SPARK_LAYOUTS * 2):
        source = tmp_path / f"{number}.parquet"
        pq.write_table(make_table(SPARK, np.random.default_rng([10, number])), source)
        frame = spark.read.parquet(str(source)).coalesce(1)
        path = spark_file(frame, tmp_path / f"spark-{number}", layout)
        check_many(Case(path.read_bytes(), number), PREDICATES, f"Spark file {number}")


# The oracle itself


def sql(tree: Tree, values: dict[str, Any]) -> str:
    """The condition for DuckDB; its literals become named parameters."""
    match tree:
        case Not(inner):
            return f"(NOT {sql(inner, values)})"
        case And(left, right) | Or(left, right):
            word = "AND" if isinstance(tree, And) else "OR"
            return f"({sql(left, values)} {word} {sql(right, values)})"
        case Test(path, test, arguments, fold):
            name = path[0]
            keys = [f"p{len(values) + i}" for i in range(len(arguments))]
            values.update(zip(keys, arguments, strict=True))
            marks = [f"${key}" for key in keys]
            value = "e" if fold else name
            text = {
                "is_null": f"{value} IS NULL",
                "is_not_null": f"{value} IS NOT NULL",
                "is_nan": f"isnan({value})",
                "is_in": f"{value} IN ({', '.join(marks)})",
                "is_between": f"{value} BETWEEN {' AND '.join(marks)}",
                "starts_with": f"starts_with({', '.join([value, *marks])})",
            }.get(test, " ".join([value, test, *marks]))
            return folded(name, f"({text})", fold) if fold else f"({text})"


def folded(name: str, text: str, fold: str) -> str:
    """Three-valued OR over a list; AND is the negation of OR over negations."""
    sign = "" if fold == "any" else "NOT "
    truths = f"[{sign}{text} FOR e IN {name}]"
    cases = f"WHEN {name} IS NULL THEN NULL WHEN list_contains({truths}, true) THEN true"
    unknown = f"len([1 FOR t IN {truths} IF t IS NULL]) > 0"
    return f"({sign}(CASE {cases} WHEN {unknown} THEN NULL ELSE false END))"


def in_duckdb(tree: Tree) -> bool:
    """Whether DuckDB means the same: its zeros are one, its numbers of two types are rounded."""
    match tree:
        case Not(inner):
            return in_duckdb(inner)
        case And(left, right) | Or(left, right):
            return in_duckdb(left) and in_duckdb(right)
        case Test(path, _, arguments, _):
            fit = {"f": (float,), "i": (int,), "l": (int,), "s": (str,), "d": (dt.date,)}
            kinds = (*fit.get(path[0], (dt.datetime,)), type(None))
            typed = all(type(argument) in kinds for argument in arguments)
            return typed and not any(a == 0 or a == 10**30 for a in arguments)


def test_the_oracle_agrees_with_duckdb_where_both_mean_the_same() -> None:
    rng = np.random.default_rng(11)
    kinds = {"i": pa.int32(), "f": pa.float64(), "s": pa.string(), "d": pa.date32()}
    kinds |= {"t": pa.timestamp("us"), "l": pa.list_(pa.int64())}
    arrays = [fill(pa.field(name, kind), 200, rng, extreme=False) for name, kind in kinds.items()]
    table = pa.table(arrays, names=list(kinds))
    table = table.filter((pc.field("f") != 0) | pc.field("f").is_null())
    source = Source(table)
    predicates = Predicates(source, 0)
    checked = 0
    with need("duckdb").connect() as connection:
        numbered = table.append_column("row", pa.array(range(table.num_rows)))
        connection.register("source", numbered)
        while checked < 150:
            tree = predicates.tree()
            if not in_duckdb(tree):
                continue
            values: dict[str, Any] = {}
            query = f"SELECT row FROM source WHERE {sql(tree, values)} ORDER BY row"
            found = connection.execute(query, values).fetchall()
            assert [row for (row,) in found] == source.matches(tree), tree
            checked += 1
