"""ORC files that Spark writes: small strides, Bloom filters, every codec."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.test_writers import spark

__all__ = ["spark"]

pytestmark = pytest.mark.spark

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
    folder = tmp_path_factory.mktemp("orc")
    instants = TABLE.column("at").cast(pa.timestamp("us", "UTC"))  # others it writes as integers
    source = TABLE.set_column(TABLE.schema.get_field_index("at"), "at", instants)
    pq.write_table(source, folder / "source.parquet")
    frame = spark.read.parquet(str(folder / "source.parquet")).coalesce(1)
    settings = {
        "compression": request.param,
        "orc.row.index.stride": str(STRIDE),
        "orc.bloom.filter.columns": "key,name",
        "orc.bloom.filter.fpp": "0.01",
    }
    frame.write.options(**settings).orc(str(folder / "out"))
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
