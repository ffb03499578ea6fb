"""Results in stores: complete or absent, and never over what is being read."""

import io
import uuid
from pathlib import Path
from typing import Any

import fsspec
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support import servers
from tests.support.proxy import Fault, Proxy

TABLE = pa.table({"id": range(1000), "city": ["NYC", None] * 500})


class Place:
    """A folder in a bucket."""

    def __init__(self, proxy: Proxy) -> None:
        self.store = servers.store(proxy.upstream)
        self.prefix = uuid.uuid4().hex
        self.url = f"s3://{servers.BUCKET}/{self.prefix}"
        self.options = servers.options(proxy.port)

    def names(self) -> list[str]:
        listed = [meta for chunk in obstore.list(self.store, self.prefix) for meta in chunk]
        return sorted(meta["path"].removeprefix(self.prefix + "/") for meta in listed)

    def read(self, name: str) -> pa.Table:
        data = obstore.get(self.store, f"{self.prefix}/{name}").bytes()
        return pq.read_table(io.BytesIO(bytes(data)))


@pytest.fixture
def place(s3: Proxy) -> Place:
    return Place(s3)


@pytest.fixture
def local(tmp_path: Path) -> fs.Scan:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    return fs.scan(tmp_path / "a.parquet")


def test_a_result_is_written_to_a_url(place: Place, local: fs.Scan) -> None:
    where = local.filter("id < 10")
    assert where.write(f"{place.url}/x.parquet", storage_options=place.options) == 10
    assert place.names() == ["x.parquet"]
    assert place.read("x.parquet") == TABLE.slice(0, 10)
    remote = fs.scan(f"{place.url}/x.parquet", storage_options=place.options)
    assert remote.head(3).write(f"{place.url}/y.csv") == 3  # by the options of the scan
    assert place.names() == ["x.parquet", "y.csv"]


def test_inputs_are_not_written_over(place: Place, local: fs.Scan) -> None:
    local.write(f"{place.url}/a/x.parquet", storage_options=place.options)
    for source, target in (("/a/x.parquet", "/a/x.parquet"), ("/a", "/a/y.parquet"),
                           ("/a/*.parquet", "/a/y.parquet")):  # fmt: skip
        scan = fs.scan(place.url + source, storage_options=place.options)
        with pytest.raises(fs.NotWritableError, match="being read"):
            scan.write(place.url + target)
    assert place.names() == ["a/x.parquet"]


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=403, code="AccessDenied")])
def test_a_failed_upload_leaves_nothing(
    place: Place, local: fs.Scan, s3: Proxy, fault: Fault
) -> None:
    s3.spoil = lambda seen: fault if seen.method in ("PUT", "POST") else None
    with pytest.raises(fs.StorageError, match="its upload failed"):
        local.write(f"{place.url}/x.parquet", storage_options={**place.options, "max_retries": 1})
    assert place.names() == []


def test_a_result_that_fails_leaves_nothing(place: Place, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:600] = bytes(596)
    with pytest.raises(fs.FileFormatError):
        fs.scan(bytes(data)).write(f"{place.url}/x.parquet", storage_options=place.options)
    assert place.names() == []


def test_other_protocols_are_written_to(local: fs.Scan) -> None:
    root = uuid.uuid4().hex
    assert local.write(f"memory://{root}/x.parquet") == 1000
    system: Any = fsspec.filesystem("memory")
    assert system.find(f"/{root}") == [f"/{root}/x.parquet"]
    assert pq.read_table(io.BytesIO(system.cat(f"/{root}/x.parquet"))) == TABLE


def test_what_is_no_file_in_a_store_is_refused(local: fs.Scan, place: Place) -> None:
    with pytest.raises(fs.NotWritableError, match="is a bucket"):
        local.write(f"s3://{servers.BUCKET}/", "csv", storage_options=place.options)
    with pytest.raises(fs.NotWritableError, match="is a directory"):
        local.write(f"{place.url}/", "csv", storage_options=place.options)
