"""The same on a real server for S3, `versitygw`, which checks signatures: where it is installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest

import fretsaw as fs
from tests.storage.test_remote import large, parquet
from tests.support import servers
from tests.support.proxy import Proxy

pytestmark = pytest.mark.deep
MODULE = "github.com/versity/versitygw/cmd/versitygw@latest"


@pytest.fixture(scope="module")
def versity(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    command = shutil.which("versitygw", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")
    if command is None and shutil.which("go"):
        environment = {**os.environ, "GOBIN": f"{sys.prefix}/bin"}
        subprocess.run(["go", "install", MODULE], env=environment, capture_output=True, check=True)
        command = f"{sys.prefix}/bin/versitygw"
    if command is None:
        pytest.skip("there is neither versitygw nor Go to build it")
    root = tmp_path_factory.mktemp("versity")
    beside = root / "beside"
    beside.mkdir()
    (root / "data" / servers.BUCKET).mkdir(parents=True)
    port = servers.free_port()
    arguments = ["--access", "tester", "--secret", servers.SECRET, "--port", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [command, *arguments, "posix", "--sidecar", str(beside), str(root / "data")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    servers.wait_for(port, process)
    proxy = Proxy(port)
    yield proxy
    proxy.close()
    process.terminate()
    process.wait(10)


def test_lakes_are_read_and_written(versity: Proxy, tmp_path: Path) -> None:
    store, options = servers.store(versity.upstream), servers.options(versity.port)
    for day in (1, 2):
        path = tmp_path / f"day={day}" / "a.parquet"
        path.parent.mkdir()
        path.write_bytes(parquet(day * 5000))
        obstore.put(store, f"trips/day={day}/a.parquet", path)
    root = f"s3://{servers.BUCKET}/trips"
    for below in ("", "/", "/*/a.parquet", "/day={1,2}", "/day=1/a.parquet"):
        remote = fs.scan(root + below, storage_options=options)
        local = fs.scan(str(tmp_path) + below)
        assert remote.to_arrow() == local.to_arrow()
        assert (
            remote.filter("n % 7 = 0").tail(9).to_arrow()
            == local.filter("n % 7 = 0").tail(9).to_arrow()
        )
    whole = fs.scan(root, storage_options=options)
    target = f"s3://{servers.BUCKET}/all.parquet"
    assert whole.write(target) == 2000
    assert fs.scan(target, storage_options=options).to_arrow() == whole.to_arrow()


def test_changes_and_wrong_keys_are_errors(versity: Proxy) -> None:
    store, options = servers.store(versity.upstream), servers.options(versity.port)
    obstore.put(store, "a.parquet", large(0))
    url = f"s3://{servers.BUCKET}/a.parquet"
    with fs.open(url, storage_options=options) as file:
        obstore.put(store, "a.parquet", large(7))
        with pytest.raises(fs.StorageError, match="the file changed"):
            file.scan().filter("n < 10").to_arrow()
    wrong = {**options, "aws_secret_access_key": "wrong"}
    with pytest.raises(fs.StorageError, match="tried once: the secret key is refused"):
        fs.scan(url, storage_options=wrong).count()
    unknown = {**options, "aws_access_key_id": "nobody"}
    with pytest.raises(fs.StorageError, match="XAdminUserNotFound"):
        fs.scan(url, storage_options=unknown).count()
