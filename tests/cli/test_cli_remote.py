"""The command on URLs."""

import uuid
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import servers
from tests.support.commands import Run
from tests.support.proxy import Fault, Proxy


@pytest.fixture
def options(s3: Proxy) -> list[str]:
    pairs = servers.options(s3.port).items()
    return [word for pair in pairs for word in ("--storage-option", "=".join(pair))]


@pytest.fixture
def url(s3: Proxy, tmp_path: Path) -> str:
    name = uuid.uuid4().hex
    pq.write_table(pa.table({"id": range(100)}), tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    obstore.put(servers.store(s3.upstream), f"{name}/day=1/a.parquet", data)
    return f"s3://{servers.BUCKET}/{name}"


def names(s3: Proxy, url: str) -> list[str]:
    prefix = url.removeprefix(f"s3://{servers.BUCKET}/")
    found: Any = obstore.list(servers.store(s3.upstream), prefix)
    return sorted(meta["path"].removeprefix(prefix + "/") for chunk in found for meta in chunk)


def test_urls_are_read_by_options_or_the_environment(
    run: Run, url: str, s3: Proxy, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("select", url, "--where", "id > 97", *options)
    assert (ran.code, ran.out.decode().split()) == (0, ['"id","day"', "98,1", "99,1"])
    for name, value in servers.options(s3.port).items():
        monkeypatch.setenv(name.upper(), value)
    assert run("count", url + "/*/a.parquet").out == b"100\n"


def test_a_folder_in_a_store_gets_a_sign_of_success_last(
    run: Run, url: str, s3: Proxy, options: list[str]
) -> None:
    assert run("select", url, "--output", url + "-copy", *options).code == 0
    assert names(s3, url + "-copy") == ["_SUCCESS", "part-00000.parquet"]
    puts = [seen.path for seen in s3.seen if seen.method == "PUT"]
    assert puts[-1].endswith("_SUCCESS")
    again = run("select", url, "--output", url + "-copy", *options)
    assert again.code == 1
    assert "there are files in it already" in again.err
    s3.spoil = lambda seen: Fault(status=403) if "_SUCCESS" in seen.path else None
    assert run("select", url, "--output", url + "-failed", *options).code == 1
    assert names(s3, url + "-failed") == []


def test_no_secret_is_printed(run: Run, url: str, s3: Proxy, options: list[str]) -> None:
    explained = run("explain", url, "--run", *options)
    assert explained.code == 0
    s3.spoil = lambda seen: Fault(status=403, code="AccessDenied")
    refused = run("count", url, *options)
    assert refused.code == 1
    unknown = run("count", url, *options, "--storage-option", f"nonsense={servers.SECRET}")
    assert unknown.code == 1
    for ran in (explained, refused, unknown):
        assert servers.SECRET not in ran.out.decode() + ran.err
