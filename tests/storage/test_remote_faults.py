"""What goes wrong on the way: tried again, or one error that says what, where and how often."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import obstore
import pytest

import fretsaw as fs
import fretsaw.cache
from tests.storage.test_remote import large
from tests.support import servers
from tests.support.proxy import Fault, Proxy, Seen


@pytest.fixture(scope="module")
def url(s3_proxy: Proxy) -> str:
    name = uuid.uuid4().hex
    obstore.put(servers.store(s3_proxy.upstream), f"{name}/a.parquet", large(0))
    return f"s3://{servers.BUCKET}/{name}/a.parquet"


def scan(url: str, proxy: Proxy, **more: object) -> fs.Scan:
    return fs.scan(url, storage_options={**servers.options(proxy.port), **more})


def first(count: int, fault: Fault) -> Callable[[Seen], Fault | None]:
    """The fault for the first requests, and none for those that follow."""
    left = [fault] * count
    return lambda seen: left.pop() if left else None


TRANSIENT = {
    "cut before the body": Fault(cut_after=0),
    "cut in the middle": Fault(cut_after=1000),
    "429": Fault(status=429, code="SlowDown"),
    "500": Fault(status=500, code="InternalError"),
    "503": Fault(status=503, code="ServiceUnavailable"),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_what_passes_is_tried_again(url: str, s3: Proxy, fault: Fault) -> None:
    expected = scan(url, s3).filter("n between 7 and 9").to_arrow()
    unspoilt = len(s3.seen)
    fretsaw.cache.clear()
    s3.clear()
    s3.spoil = first(2, fault)
    assert scan(url, s3).filter("n between 7 and 9").to_arrow() == expected
    assert len(s3.seen) == unspoilt + 2


def test_answers_that_stall_are_given_up_and_asked_for_again(url: str, s3: Proxy) -> None:
    for behind in (0, 1000):
        fretsaw.cache.clear()
        s3.clear()
        s3.spoil = first(1, Fault(stall_after=behind))
        assert scan(url, s3, read_timeout="200ms").filter("n = 7").count() == 1
        assert len(s3.seen) == 3


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_what_does_not_pass_is_an_error_in_the_end(url: str, s3: Proxy, fault: Fault) -> None:
    s3.spoil = lambda seen: fault
    with pytest.raises(fs.StorageError, match="its end failed, tried 3 times in") as caught:
        scan(url, s3, max_retries=2).count()
    assert str(caught.value).startswith(url)
    if fault.status:
        assert f"status {fault.status} ({fault.code})" in str(caught.value)


def test_a_deadline_ends_all_tries(url: str, s3: Proxy) -> None:
    s3.spoil = lambda seen: Fault(status=503)
    began = time.monotonic()
    with pytest.raises(fs.StorageError, match=r"tried \d+ times"):
        scan(url, s3, max_retries=1000, retry_timeout=0.7).count()
    assert time.monotonic() - began < 5
    s3.spoil = lambda seen: Fault(stall_after=10)
    with pytest.raises(fs.StorageError, match="does not answer in time"):
        scan(url, s3, retry_timeout=0.3).count()


FINAL = {
    "credentials": (Fault(status=403, code="InvalidAccessKeyId"), "check aws_access_key_id"),
    "signature": (Fault(status=403, code="SignatureDoesNotMatch"), "check aws_secret_access_key"),
    "permission": (Fault(status=403, code="AccessDenied"), r"\(AccessDenied\)"),
    "token": (Fault(status=400, code="ExpiredToken"), "the token has expired"),
    "region": (Fault(status=301, code="PermanentRedirect"), "check the region, the endpoint"),
}


@pytest.mark.parametrize(("fault", "message"), FINAL.values(), ids=FINAL)
def test_what_cannot_pass_is_tried_once(url: str, s3: Proxy, fault: Fault, message: str) -> None:
    s3.spoil = lambda seen: fault
    with pytest.raises(fs.StorageError, match=message) as caught:
        scan(url, s3).count()
    assert str(caught.value).startswith(f"{url}: its end failed, tried once")
    assert len([seen for seen in s3.seen if seen.method == "GET"]) == 1


def test_a_name_is_not_taken_for_a_status(url: str, s3: Proxy) -> None:
    odd = url.rpartition("/")[0] + "/status code: 200.parquet"
    s3.spoil = lambda seen: Fault(status=403, code="AccessDenied")
    with pytest.raises(fs.StorageError, match=r"the credentials are refused or do not suffice"):
        scan(odd, s3).count()


def test_a_store_without_ranges_is_an_error(url: str, s3: Proxy) -> None:
    s3.spoil = lambda seen: Fault(whole=True)
    with pytest.raises(fs.StorageError, match="does not answer range requests"):
        scan(url, s3).count()


def test_listings_are_tried_again_and_go_on(url: str, s3: Proxy) -> None:
    s3.spoil = first(1, Fault(status=503))
    folder = url.rpartition("/")[0] + "/"
    assert scan(folder, s3).filter("n = 7").count() == 1
    s3.spoil = lambda seen: Fault(status=503) if "list-type" in seen.path else None
    with pytest.raises(fs.StorageError, match="its listing failed, tried 2 times"):
        scan(folder, s3, max_retries=1).count()


def test_a_store_that_nobody_answers_for_is_an_error() -> None:
    options: dict[str, str] = {**servers.options(servers.free_port()), "max_retries": "1"}
    with pytest.raises(fs.StorageError, match="tried 2 times"):
        fs.scan("s3://bucket/key", storage_options=options).count()
    secure = {**options, "aws_endpoint_url": options["aws_endpoint_url"].replace("http", "https")}
    with pytest.raises(fs.StorageError, match="s3://bucket/key"):
        fs.scan("s3://bucket/key", storage_options=secure).count()


@pytest.fixture
def tls_port(tmp_path: Path) -> Iterator[int]:
    """A server whose certificate nobody trusts."""
    certificate = tmp_path / "certificate.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=127.0.0.1", "-keyout", str(certificate), "-out", str(tmp_path / "c.pem")],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl is needed to make a certificate")
    program = f"""
        import http.server, ssl
        server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain({str(tmp_path / "c.pem")!r}, {str(certificate)!r})
        server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_port, flush=True)
        server.serve_forever()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    yield int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_certificate_that_is_not_trusted_is_an_error(tls_port: int) -> None:
    with pytest.raises(fs.StorageError, match="its TLS certificate is not trusted"):
        fs.scan(f"https://127.0.0.1:{tls_port}/a.parquet").count()


@pytest.mark.slow
def test_an_interrupt_ends_at_once_and_leaves_nothing_running(url: str, s3: Proxy) -> None:
    program = f"""
        import os, signal, sys, threading, time
        import fretsaw as fs
        options = {servers.options(s3.port)!r}
        scan = fs.scan({url!r}, storage_options=options)
        if sys.argv[1] == "data":
            scan.head(1).count()  # the end is known
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        print("waiting", flush=True)
        try:
            scan.to_arrow()
        except KeyboardInterrupt:
            print("interrupted", threading.active_count() < 20, flush=True)
    """
    for place in ("end", "data"):
        s3.clear()
        s3.spoil = lambda seen, place=place: (  # type: ignore[misc]
            None
            if place == "data" and seen.headers["range"].startswith("bytes=-")
            else Fault(stall_after=0)
        )
        began = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), place],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert "interrupted True" in run.stdout, run.stderr
        assert time.monotonic() - began < 15, "the stall would last longer"


@pytest.mark.slow
def test_forked_processes_say_that_they_cannot_read(url: str, s3: Proxy) -> None:
    wanted = scan(url, s3)
    assert wanted.count() == 300_000
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            wanted.count()
        except fs.StorageError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.05)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert "forked off" in pipe.read()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(count, (wanted,)) == 300_000


def count(wanted: fs.Scan) -> int:
    return wanted.count()
