"""Files of Spark beside those of others, and files that differ, as one scan on Spark."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MOMENT = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


def test_files_of_spark_beside_wider_ones(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("select 1 as n, 'a' as s, timestamp '2024-05-01 12:00:00' as at")
    frame.coalesce(1).write.parquet(str(tmp_path / "k=01"))
    (tmp_path / "k=02").mkdir()
    text = pa.array(["b"], pa.large_string())
    at = pa.array([MOMENT], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"n": [1 << 40], "s": text, "at": at}), tmp_path / "k=02" / "file")
    scan = fs.scan(tmp_path, types="widen", hive={"k": pa.string()}, int96="us")
    expected = [
        {"n": 1, "s": "a", "at": MOMENT, "k": "01"},
        {"n": 1 << 40, "s": "b", "at": MOMENT, "k": "02"},
    ]
    assert scan.to_arrow().to_pylist() == expected
    found = scan.to_spark(spark, ordered=True)
    assert found.toArrow().select(["n", "s", "k"]).to_pylist() == [
        {name: row[name] for name in ("n", "s", "k")} for row in expected
    ]
    assert scan.filter("n > 3000000000").to_spark(spark).count() == 1
    chosen = scan.with_row_index().filter("index = 1").drop("at", "index").rename({"n": "m"})
    rows = chosen.to_spark(spark).toArrow().to_pylist()
    assert rows == [{"m": 1 << 40, "s": "b", "k": "02"}]
