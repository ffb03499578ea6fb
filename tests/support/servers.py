"""Servers on loopback that tests read from: one for S3, one for files by HTTP."""

import contextlib
import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECRET = "aHiddenKeyThatNobodyMaySee"
BUCKET = "lake"


def options(port: int) -> dict[str, str]:
    """How to reach a server for S3."""
    return {
        "aws_access_key_id": "tester",
        "aws_secret_access_key": SECRET,
        "aws_endpoint_url": f"http://127.0.0.1:{port}",
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }


def store(port: int) -> Any:
    """A store of obstore, by which tests put what is read: not the code that is tested."""
    from obstore.store import S3Store

    config: Any = {name: value for name, value in options(port).items() if "allow" not in name}
    return S3Store(BUCKET, config=config, client_options={"allow_http": True})


def moto() -> Path | None:
    """The server for S3 of `moto`, which `make` installs in an environment of its own."""
    places = [os.environ.get("FRETSAW_MOTO"), Path(sys.prefix, "moto", "bin", "moto_server")]
    return next((Path(place) for place in places if place and Path(place).exists()), None)


@contextlib.contextmanager
def s3_server(command: Path) -> Iterator[int]:
    """A server for S3 with an empty bucket; its port."""
    port = free_port()
    process = subprocess.Popen(
        [str(command), "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, process)
        place = f"http://127.0.0.1:{port}/{BUCKET}"
        with urllib.request.urlopen(urllib.request.Request(place, method="PUT"), timeout=30):
            pass
        yield port
    finally:
        process.terminate()
        process.wait(10)


def wait_for(port: int, process: "subprocess.Popen[Any]") -> None:
    """Until somebody answers there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError("the server for S3 did not start")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class RangeServer:
    """Files by HTTP, with ranges and conditions as RFC 9110 has them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.has_tags = True
        self.has_ranges = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def answer(self) -> None:
                outer.answer(self)

            do_GET = do_HEAD = answer  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, client: BaseHTTPRequestHandler) -> None:
        path = client.path.partition("?")[0]
        if path.startswith("/moved/"):
            self._send(client, 302, {"Location": path.removeprefix("/moved")})
            return
        if path not in self.files:
            self._send(client, 404, {})
            return
        data = self.files[path]
        tag = f'"{hashlib.md5(data).hexdigest()}"'
        headers = {"Last-Modified": formatdate(1_700_000_000 + len(data) % 1000, usegmt=True)}
        if self.has_tags:
            headers["ETag"] = tag
        wanted = client.headers
        if wanted.get("If-Match", tag) != tag:
            self._send(client, 412, headers)
        elif wanted.get("If-None-Match") == tag:
            self._send(client, 304, headers)
        elif "Range" in wanted and self.has_ranges:
            first, _, last = wanted["Range"].removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, len(data) - int(last))
            end = min(len(data), int(last) + 1) if first and last else len(data)
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            self._send(client, 206, headers, data[begin:end])
        else:
            self._send(client, 200, headers, data)

    def _send(
        self,
        client: BaseHTTPRequestHandler,
        status: int,
        headers: dict[str, str],
        data: bytes = b"",
    ) -> None:
        client.send_response(status)
        for name, value in headers.items():
            client.send_header(name, value)
        client.send_header("Content-Length", str(len(data)))
        client.end_headers()
        if client.command != "HEAD":
            client.wfile.write(data)
