"""A proxy for HTTP on loopback, which delays, counts and spoils what goes through it.

As a command it serves benchmarks: `python proxy.py PORT DELAY [BYTES_PER_SECOND]` prints its port.
"""

import http.client
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_CHUNK = 256 << 10
_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")


@dataclass
class Seen:
    """A request that went through."""

    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    sent: int = 0
    """Bytes of the body that were sent back."""
    began: float = 0.0
    ended: float = 0.0

    @property
    def is_read(self) -> bool:
        """Whether it asked for bytes of a file."""
        return self.method == "GET" and "list-type" not in self.path


@dataclass
class Fault:
    """What is done to an answer instead of passing it on."""

    status: int | None = None
    """Answer with this status, and with this code in the body."""
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Break the connection off behind so many bytes of the body."""
    stall_after: int | None = None
    """Say nothing more behind so many bytes of the body."""
    whole: bool = False
    """Ignore that only a range was asked for."""


Spoil = Callable[[Seen], Fault | None]


class Proxy:
    """A server in front of another one."""

    def __init__(self, upstream: int, delay: float = 0, rate: float = 0) -> None:
        self.seen: list[Seen] = []
        self.spoil: Spoil = lambda seen: None
        self.delay = delay
        self.rate = rate
        self.upstream = upstream
        self._free = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def handle_any(self) -> None:
                outer.pass_on(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None:
                pass  # a client that went away

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def reads(self) -> list[Seen]:
        """The requests for bytes of files."""
        return [seen for seen in self.seen if seen.is_read]

    def clear(self) -> None:
        """Forget what was seen, and spoil nothing."""
        self.seen.clear()
        self.spoil = lambda seen: None

    def pass_on(self, client: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in client.headers.items()}
        seen = Seen(client.command, client.path, headers, began=time.monotonic())
        self.seen.append(seen)
        body = client.rfile.read(int(headers.get("content-length", 0)))
        if self.delay:
            time.sleep(self.delay)
        fault = self.spoil(seen) or Fault()
        try:
            if fault.status is not None:
                self._refuse(client, seen, fault)
            else:
                self._answer(client, seen, fault, body)
        finally:
            seen.ended = time.monotonic()

    def _refuse(self, client: BaseHTTPRequestHandler, seen: Seen, fault: Fault) -> None:
        assert fault.status is not None
        text = f"<Error><Code>{fault.code}</Code></Error>".encode() if fault.code else b""
        seen.status = fault.status
        client.send_response(fault.status)
        for name, value in fault.headers.items():
            client.send_header(name, value)
        client.send_header("Content-Length", str(len(text)))
        client.end_headers()
        client.wfile.write(text)

    def _answer(
        self, client: BaseHTTPRequestHandler, seen: Seen, fault: Fault, body: bytes
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        connection.putrequest(seen.method, seen.path, skip_host=True, skip_accept_encoding=True)
        for name, value in client.headers.items():
            if not (fault.whole and name.lower() == "range"):
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        seen.status = answer.status
        client.send_response(answer.status)
        length = int(answer.headers.get("Content-Length", 0))
        for name, value in answer.headers.items():
            if name.lower() not in (*_HOP, "date", "server"):
                client.send_header(name, value)
        client.send_header("Content-Length", str(length))
        client.end_headers()
        try:
            self._send(client, seen, fault, answer)
        finally:
            connection.close()

    def _send(
        self,
        client: BaseHTTPRequestHandler,
        seen: Seen,
        fault: Fault,
        answer: http.client.HTTPResponse,
    ) -> None:
        for most, is_stall in ((fault.cut_after, False), (fault.stall_after, True)):
            if most is None:
                continue
            data = answer.read(most)
            client.wfile.write(data)
            client.wfile.flush()
            seen.sent += len(data)
            if is_stall:
                self._over.wait(60)
            linger = struct.pack("ii", 1, 0)  # a reset, not an orderly end
            client.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            client.connection.close()
            client.close_connection = True
            return
        while data := answer.read(_CHUNK):
            self._throttle(len(data))
            client.wfile.write(data)
            seen.sent += len(data)

    def _throttle(self, size: int) -> None:
        """All answers together have so many bytes in a second."""
        if not self.rate:
            return
        with self._lock:
            now = time.monotonic()
            self._free = max(self._free, now) + size / self.rate
            pause = self._free - now - 0.002
        if pause > 0:
            time.sleep(pause)


if __name__ == "__main__":
    upstream, delay, *rate = map(float, sys.argv[1:])
    proxy = Proxy(int(upstream), delay, *rate)
    print(proxy.port, flush=True)
    sys.stdin.read()
