"""Conditions on odd data on Spark: Spark SQL, filters that it pushes, and the option `filter`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.sql_conditions import CONDITIONS, TABLE
from tests.support.sql_engines import FAILED, REFUSED, Found, differences, documented

pytest.importorskip("pyspark")

from pyspark.errors import AnalysisException, PySparkException

from fretsaw.spark import register

pytestmark = pytest.mark.spark
LISTED = documented()["Spark"]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conditions") / "odd.parquet"
    pq.write_table(TABLE, path, row_group_size=3, write_page_index=True)
    return path


@pytest.fixture(scope="module")
def ours(file: Path) -> dict[str, list[int]]:
    scan = fs.open(file).scan().select("n")
    return {text: scan.filter(text).to_arrow()["n"].to_pylist() for text in CONDITIONS}


@pytest.fixture(scope="module")
def odd(spark: Any, file: Path) -> Iterator[Any]:
    """The rows in Spark's hands, without the bounds, which leave NaN out and mislead it."""
    pruning = "spark.sql.inMemoryColumnarStorage.partitionPruning"
    before = spark.conf.get(pruning)
    spark.conf.set(pruning, "false")
    frame = spark.read.parquet(str(file)).coalesce(1).cache()
    frame.createOrReplaceTempView("odd")
    yield frame
    frame.unpersist()
    spark.conf.set(pruning, before)


# What Spark has no words for.
UNKNOWN = [
    *(
        "i // k = 0",
        "i // 2 = -3",
        "i // 0 is null",
        "g // 2 = 1",
        "d // 2 = 1",
        "d // 0.1 = 1",
        "i = 0x7",
        "i > 0x0A",
    ),
    *("cast(i as varchar) = '7'", "cast(day as varchar) = '2024-02-29'", "i::varchar = '7'"),
    *("regexp_matches(s, '^a')", "regexp_matches(s, 'b|z')", "regexp_matches(s, '[A-Z]{3}')"),
    *("regexp_matches(s, 'c$')", "s ~ 'b'", "starts_with(s, 'a')", "ends_with(s, 'c')"),
    *("isodow(ts) = 4", "extract(isodow from day) = 7", "microsecond(ts) = 123456"),
    *("extract(microsecond from ts) = 123456", "list_contains(xs, 1)"),
    *("not list_contains(xs, 1)", "length(xs) = 2", "len(xs) = 2"),
]


@pytest.fixture(scope="module")
def theirs(spark: Any, odd: Any) -> dict[str, Found]:
    """What Spark SQL finds, in one query for all that it knows and that does not fail."""
    together = [text for text in CONDITIONS if text not in LISTED and text not in UNKNOWN]
    tests = ", ".join(f"({text}) as c{number}" for number, text in enumerate(together))
    rows = spark.sql(f"select n, {tests} from odd order by n").collect()
    found: dict[str, Found] = {
        text: [row["n"] for row in rows if row[f"c{number}"]]
        for number, text in enumerate(together)
    }
    for text in (*LISTED, *UNKNOWN):
        try:
            rows = spark.sql(f"select n from odd where {text} order by n").collect()
            found[text] = [row["n"] for row in rows]
        except AnalysisException:
            found[text] = REFUSED
        except PySparkException:
            found[text] = FAILED
    return found


def test_rows_are_those_of_spark_sql_except_as_documented(
    ours: dict[str, list[int]], theirs: dict[str, Found]
) -> None:
    assert differences(ours, theirs, LISTED) == {}
    assert {text for text, found in theirs.items() if found == REFUSED} == set(UNKNOWN)


# What Spark shows to a source: comparisons of a column with a value, and null tests.
SIMPLE = [
    *("i > 1", "i in (7, 1, null)", "i not in (7, 1)", "i != 7", "i is null", "i = 7.0"),
    *(
        "z = 0",
        "z = 0.0",
        "z = -0.0",
        "z < 0",
        "z <= 0",
        "z != 0",
        "z > 1",
        "not z > 1",
        "z in (0)",
    ),
    *("d = 0.1", "d >= 0.1 and d < 1.56", "s = 'abc'", "s like 'a%'", "s not like 'a%'"),
    *("day = '2024-02-29'", "ts >= TIMESTAMP '2024-02-28 01:00:00'", "b", "not b", "p.x > 3"),
]


@pytest.mark.deep
def test_pushed_filters_find_the_rows_of_spark_sql(spark: Any, odd: Any, file: Path) -> None:
    before = spark.conf.get(PUSHDOWN, "false")
    spark.conf.set(PUSHDOWN, "true")
    register(spark, push_filters=True)
    try:
        for text in SIMPLE:
            pushed = spark.read.format("fretsaw").load(str(file)).where(text).select("n")
            found = sorted(row["n"] for row in pushed.collect())
            assert found == sorted(row["n"] for row in odd.where(text).collect()), text
    finally:
        spark.conf.set(PUSHDOWN, before)
        register(spark, push_filters=False)


@pytest.mark.deep
def test_the_option_finds_the_rows_of_spark_sql(
    spark: Any, file: Path, theirs: dict[str, Found]
) -> None:
    register(spark)
    some = [text for text, found in theirs.items() if isinstance(found, list)][::16]
    for text in [text for text in some if text not in LISTED]:
        frame = spark.read.format("fretsaw").option("filter", text).load(str(file))
        assert sorted(row["n"] for row in frame.select("n").collect()) == theirs[text], text
