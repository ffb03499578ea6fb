"""ORC files that Spark writes: small strides, Bloom filters, every codec."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import fretsaw as fs
from fretsaw import col
from tests.engine.test_combinations import MORE, Scans
from tests.formats.orc.test_predicates import OrcCase
from tests.formats.parquet.test_values_sought import assert_found
from tests.support.formats import in_blocks, pyarrow_read
from tests.support.nested_data import Kinds
from tests.support.oracle import Source
from tests.support.predicate_checks import check_many
from tests.support.predicate_data import COMMON, Writer, by_pyarrow, make_table
from tests.support.scan_model import ZONES, sample, source

pytestmark = pytest.mark.spark

SPARK = Writer(by_pyarrow, Kinds(COMMON, ("struct", "list", "map")), COMMON, rows=2_500)
ROWS, STRIDE = 6_000, 1_000
TABLE = pa.table(
    {
        "row": pa.array(range(ROWS), pa.int64()),
        "key": pa.array([row * 7919 % 10_007 for row in range(ROWS)], pa.int32()),
        "name": [None if row % 11 == 0 else f"name {row * 31 % 997}" for row in range(ROWS)],
        "real": [float("nan") if row == 4_321 else row / 7 for row in range(ROWS)],
        "price": pa.array([Decimal(row) / 100 for row in range(ROWS)], pa.decimal128(12, 2)),
        "at": pa.array(
            [datetime(2024, 1, 1 + row % 28, row % 24) for row in range(ROWS)], pa.timestamp("us")
        ),
        "tags": [None if row % 5 == 0 else [f"t{row % 3}"] * (row % 4) for row in range(ROWS)],
        "home": [
            None if row % 6 == 0 else {"city": f"c{row % 9}", "zip": row} for row in range(ROWS)
        ],
    }
)


@pytest.fixture(scope="module", params=["zlib", "snappy", "zstd", "none"])
def written(request: Any, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    instants = TABLE.column("at").cast(pa.timestamp("us", "UTC"))  # others it writes as integers
    source = TABLE.set_column(TABLE.schema.get_field_index("at"), "at", instants)
    folder = tmp_path_factory.mktemp("orc")
    return by_spark(spark, source, folder, request.param, ["key", "name"])


def by_spark(
    spark: Any, table: pa.Table, folder: Path, codec: str, blooms: Sequence[str], **options: str
) -> Path:
    """The file that Spark makes of a table: the strides are the smallest that it takes."""
    pq.write_table(table, folder / "source.parquet")
    frame = spark.read.parquet(str(folder / "source.parquet")).coalesce(1)
    settings = {
        "compression": codec,
        "orc.row.index.stride": str(STRIDE),
        "orc.bloom.filter.columns": ",".join(blooms),
        "orc.bloom.filter.fpp": "0.01",
    }
    frame.write.options(**settings | options).orc(str(folder / "out"))
    [path] = (folder / "out").glob("*.orc")
    return Path(path)


def test_all_rows_and_every_stride_are_those_of_pyarrow(written: Path) -> None:
    expected = orc.ORCFile(written).read().combine_chunks()
    assert expected.num_rows == ROWS
    assert repr(fs.scan(written).to_arrow().to_pylist()) == repr(expected.to_pylist())
    for first in range(0, ROWS, STRIDE):
        with fs.trace() as trace:
            found = fs.scan(written).skip(first).head(STRIDE).to_arrow()
        assert repr(found.to_pylist()) == repr(expected.slice(first, STRIDE).to_pylist())
        assert trace.fallbacks == []


def test_a_bloom_filter_leaves_few_strides(written: Path) -> None:
    wanted = 4_242 * 7919 % 10_007
    with fs.trace() as trace:
        found = fs.scan(written).filter(col("key") == wanted).select("row").to_arrow()
    assert found.column("row").to_pylist() == [4_242]
    assert any(each.source == "Bloom filter" and each.dropped for each in trace.pruned)
    assert trace.rows_decoded <= 2 * 2 * STRIDE


def test_bloom_filters_of_decimals_and_binaries(spark: Any, tmp_path: Path) -> None:
    spread = [row * 7919 % 10_007 - 5_000 for row in range(ROWS)]
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "price": (pa.decimal128(12, 2), [Decimal(n) / 100 for n in spread]),
        "round": (pa.decimal128(12, 4), [Decimal(n * 10) for n in spread]),
        "whole": (pa.decimal128(20, 0), [Decimal(n * 100) for n in spread]),
        "long": (pa.decimal128(38, 6), [Decimal(n) * 10**20 / 8 for n in spread]),
        "blob": (pa.binary(), [f"b{n}".encode() for n in spread]),
    }
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    path = by_spark(spark, table, tmp_path, "zstd", list(columns))
    for name, (_, values) in columns.items():
        for value in [*values[::611], values[spread.index(0)]]:
            found = fs.scan(path).filter(col(name) == value).with_row_index("at").to_arrow()
            assert found["at"].to_pylist() == [n for n, v in enumerate(values) if v == value]
            with fs.open(path) as file:
                kept = len(file.prune(col(name) == value).indices())
            assert kept <= 2 * STRIDE


@pytest.mark.parametrize(
    ("condition", "matches"),
    [
        ("row between 2500 and 2510", lambda row: 2500 <= row["row"] <= 2510),
        ("name = 'name 31'", lambda row: row["name"] == "name 31"),
        ("name is null and row > 5000", lambda row: row["name"] is None and row["row"] > 5000),
        ("real > 856", lambda row: row["real"] > 856 or row["real"] != row["real"]),
        ("price = 12.34", lambda row: row["price"] == Decimal("12.34")),
        ("at < timestamp '2024-01-01 03:00:00'", lambda row: row["at"] < datetime(2024, 1, 1, 3)),
        (
            "home.city = 'c4' and row < 99",
            lambda row: row["row"] < 99 and row["home"] and row["home"]["city"] == "c4",
        ),
    ],
)
def test_predicates_find_what_the_rows_say(written: Path, condition: str, matches: Any) -> None:
    expected = [row["row"] for row in TABLE.to_pylist() if matches(row)]
    assert expected
    scan = fs.scan(written).filter(condition)
    assert scan.select("row").to_arrow().column("row").to_pylist() == expected
    assert scan.count() == len(expected)


# What holds for other writers, too


SMALL_STRIPES = {"orc.stripe.row.count": "2000"}


def test_random_predicates_agree_with_the_oracle(spark: Any, tmp_path: Path) -> None:
    for number, codec in enumerate(["zlib", "zstd", "none"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = make_table(SPARK, np.random.default_rng([21, number]))
        blooms = [name for name in table.column_names if name.startswith("c")]
        path = by_spark(spark, table, folder, codec, blooms, **SMALL_STRIPES)
        data = path.read_bytes()
        assert len(in_blocks(data)) > 1
        check_many(OrcCase(data, number), 12, f"Spark file {number}")
        assert_found(Source(pyarrow_read(data)), data, np.random.default_rng([22, number]))


def test_any_order_of_calls_agrees_with_lists_of_rows(spark: Any, tmp_path: Path) -> None:
    parts = []
    stripes: list[dict[str, str]] = [{}, {"orc.stripe.row.count": "1000"}]
    for at, options in enumerate(stripes):
        folder = tmp_path / str(at)
        folder.mkdir()
        table = sample(1_300 * at, 1_300, 2023 + at, ZONES[at])
        blooms = ["k", "n", "x", "s", "d"]
        parts.append((by_spark(spark, table, folder, "zlib", blooms, **options), table))

    class ScansOfSpark(Scans):
        files: ClassVar = {
            "one": source(parts[0][0], parts[:1]),
            "two": source([path for path, _ in parts], parts),
        }
        choices: ClassVar = ("one", "two")

    effort = settings(max_examples=10 * MORE, stateful_step_count=6, derandomize=True)
    run_state_machine_as_test(ScansOfSpark, settings=effort)
