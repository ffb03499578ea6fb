"""Remote files on Spark: tasks read by themselves, and no plan shows a secret."""

import io
import json
import uuid
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support import servers
from tests.support.proxy import Proxy

pytestmark = pytest.mark.spark


@pytest.fixture
def url(s3: Proxy) -> str:
    name, store = uuid.uuid4().hex, servers.store(s3.upstream)
    for day in (1, 2):
        sink = io.BytesIO()
        pq.write_table(pa.table({"n": range(day * 1000, day * 1000 + 100)}), sink)
        obstore.put(store, f"{name}/day={day}/a.parquet", sink.getvalue())
    return f"s3://{servers.BUCKET}/{name}"


def shown(frame: Any) -> str:
    execution = frame._jdf.queryExecution()
    return f"{execution.toString()}{execution.logical().toJSON()}"


def test_frames_are_read_by_tasks(spark: Any, s3: Proxy, url: str) -> None:
    scan = fs.scan(url, storage_options=servers.options(s3.port)).filter("n % 100 < 2")
    frame = scan.to_spark(spark)
    rows = sorted((row.n, row.day) for row in frame.collect())
    assert rows == [(1000, 1), (1001, 1), (2000, 2), (2001, 2)]
    assert servers.SECRET not in shown(frame)


def test_the_data_source_takes_options(spark: Any, s3: Proxy, url: str) -> None:
    from fretsaw.spark import register

    register(spark)
    reader = spark.read.format("fretsaw").option("filter", "n % 100 < 2")
    reader = reader.option("storageOptions", json.dumps(servers.options(s3.port)))
    frame = reader.load(url)
    assert sorted(row.n for row in frame.collect()) == [1000, 1001, 2000, 2001]
    assert servers.SECRET not in shown(frame)
    with pytest.raises(Exception, match="texts by names, as JSON") as caught:
        spark.read.format("fretsaw").option("storageOptions", servers.SECRET).load(url).count()
    assert servers.SECRET not in str(caught.value)


def test_a_job_writes_to_a_store(spark: Any, s3: Proxy, url: str) -> None:
    from fretsaw.spark.pipeline import Job

    scan = fs.scan(url, storage_options=servers.options(s3.port))
    assert Job(scan, spark).write(url + "-copy", "parquet") == 200
    prefix = url.removeprefix(f"s3://{servers.BUCKET}/") + "-copy"
    listed: Any = obstore.list(servers.store(s3.upstream), prefix)
    names = sorted(meta["path"].rpartition("/")[2] for chunk in listed for meta in chunk)
    assert names[0] == "_SUCCESS"
    assert fs.scan(url + "-copy", storage_options=servers.options(s3.port)).count() == 200
