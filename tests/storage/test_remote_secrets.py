"""Secrets of storage options and URLs are shown nowhere."""

import io
import logging
import traceback
import uuid
from pathlib import Path

import fsspec
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
import fretsaw.cache
from tests.support import servers
from tests.support.proxy import Fault, Proxy


@pytest.fixture
def url(s3: Proxy) -> str:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": range(100)}), sink)
    name = uuid.uuid4().hex
    obstore.put(servers.store(s3.upstream), f"{name}/a.parquet", sink.getvalue())
    return f"s3://{servers.BUCKET}/{name}/a.parquet"


def test_options_are_in_no_repr_plan_log_or_error(
    url: str, s3: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    options = servers.options(s3.port)
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG), fs.trace() as traced:
        scan = fs.scan(url, storage_options=options).filter("n > 3")
        scan.to_arrow()
        shown += [repr(scan), str(scan), repr(scan.request), repr(scan.plan()), scan.explain()]
        shown += [scan.explain(True), repr(traced), repr(scan.splits())]
        with fs.open(url, storage_options=options) as file:
            shown += [repr(file), repr(file.schema)]
        for fault in (
            Fault(status=403, code="AccessDenied"),
            Fault(status=503),
            Fault(cut_after=3),
        ):
            fretsaw.cache.clear()
            s3.spoil = lambda seen, fault=fault: fault  # type: ignore[misc]
            with pytest.raises(fs.StorageError) as caught:
                fs.scan(url, storage_options={**options, "max_retries": 1}).count()
            shown += ["".join(traceback.format_exception(caught.value))]
        s3.clear()
        for name in ("nonsense", "max_requests", "aws_endpoint_url", "timeout"):
            with pytest.raises((ValueError, fs.FretsawError)) as wrongly:
                fs.scan(
                    url, storage_options={**options, "max_retries": 0, name: servers.SECRET}
                ).count()
            shown += ["".join(traceback.format_exception_only(wrongly.value))]
        with pytest.raises(TypeError) as mistaken:
            fs.scan(url, storage_options=servers.SECRET)
        shown += [str(mistaken.value)]
    shown.append(caplog.text)
    assert all(servers.SECRET not in text for text in shown)


def test_secrets_of_urls_are_not_shown() -> None:
    server = servers.RangeServer()
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": range(100)}), sink)
    server.files["/a.parquet"] = sink.getvalue()
    try:
        place = server.url.removeprefix("http://")
        url = f"http://user:{servers.SECRET}@{place}/a.parquet?signature={servers.SECRET}"
        scan = fs.scan(url).with_file_path()
        assert scan.head(1).to_arrow()["path"].to_pylist() == [f"{server.url}/a.parquet"]
        with pytest.raises(fs.SourceNotFoundError) as caught:
            fs.scan(url.replace("a.parquet", "b")).count()
        for text in (repr(scan), scan.explain(), str(caught.value)):
            assert servers.SECRET not in text
    finally:
        server.close()


def test_chains_of_protocols_are_urls_and_show_no_secret() -> None:
    with fsspec.filesystem("memory").open("/chained/a.parquet", "wb") as file:
        pq.write_table(pa.table({"n": range(100)}), file)
    assert fs.scan("simplecache::memory://chained/a.parquet").count() == 100
    with pytest.raises(fs.FretsawError, match="nowhere::https://host/a") as caught:
        fs.scan(f"nowhere::https://user:{servers.SECRET}@host/a").count()
    assert servers.SECRET not in str(caught.value)


def test_profiles_are_resolved(
    url: str, s3: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    credentials, config = tmp_path / "credentials", tmp_path / "config"
    keys = "aws_access_key_id = tester\naws_secret_access_key = x\n"
    credentials.write_text(f"[mine]\n{keys}[other]\n{keys}")
    config.write_text(
        f"[profile mine]\nregion = us-east-1\nendpoint_url = {s3.url}\n[profile sso]\na=b"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    assert fs.scan(url, storage_options={"aws_profile": "mine"}).count() == 100
    assert "Credential=tester/" in s3.seen[-1].headers["authorization"]
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert fs.scan(url).count() == 100
    with pytest.raises(fs.StorageError, match="no profile 'none'"):
        fs.scan(url, storage_options={"aws_profile": "none"}).count()
    with pytest.raises(fs.StorageError, match="has no aws_access_key_id"):
        fs.scan(url, storage_options={"aws_profile": "sso"}).count()
