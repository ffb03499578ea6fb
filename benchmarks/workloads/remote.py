"""Files in a store: the workloads of `trips` and `lake` on a server for S3, 30 ms away.

In: nothing but the samples. `versitygw`, a server for S3 in Go, is built once where Go is there,
and filled with them; a proxy in front of it delays each request, or limits the bytes of all
together. Contestants find it by the environment, as their users would. Out: workloads, which are
left out where there is no such server.
"""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa

from benchmarks.contestant import Contestant, Unsupported
from benchmarks.data.store import Sample, Scale, made_once
from benchmarks.ours import Fretsaw
from benchmarks.peers.arrow import Dataset
from benchmarks.peers.datafusion import DataFusion
from benchmarks.peers.polars import Polars
from benchmarks.workloads.lakes import LAKES
from benchmarks.workloads.trips import SCAN, TRIPS
from benchmarks.workloads.workload import Workload

SECONDS, BYTES_PER_SECOND = 0.03, 200e6
MODULE = "github.com/versity/versitygw/cmd/versitygw@latest"
BUCKET = "bench"
KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
PROXY = Path(__file__).parents[2] / "tests" / "support" / "proxy.py"


@cache
def _command() -> str | None:
    """The server, built if it is not there yet; None where there is no Go."""
    found = shutil.which("versitygw")
    if found is not None or shutil.which("go") is None:
        return found
    try:
        return str(made_once(Path(MODULE).name.partition("@")[0], _build))
    except subprocess.CalledProcessError:
        return None


def _build(path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        environment = {**os.environ, "GOBIN": str(Path(place).absolute())}
        subprocess.run(["go", "install", MODULE], env=environment, capture_output=True, check=True)
        shutil.move(Path(place, "versitygw"), path)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@cache
def _server() -> int:
    """The port of a server with an empty bucket, which ends with this process."""
    root = tempfile.mkdtemp(prefix="fretsaw-s3-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    data, beside = Path(root, "data", BUCKET), Path(root, "beside")
    data.mkdir(parents=True)
    beside.mkdir()
    port, command = _free_port(), _command()
    assert command is not None
    access, secret = KEYS.values()
    process = subprocess.Popen(
        [command, "--access", access, "--secret", secret, "--port", f"127.0.0.1:{port}",
         "posix", "--sidecar", str(beside), str(data.parent)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    atexit.register(process.wait)
    atexit.register(process.terminate)
    time.sleep(1)
    return port


@cache
def _proxy(seconds: float, rate: float) -> str:
    """The URL of a proxy in front of the server, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(PROXY), str(_server()), str(seconds), str(rate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(process.terminate)
    assert process.stdout is not None
    return f"http://127.0.0.1:{int(process.stdout.readline())}"


@cache
def _url(path: Path) -> str:
    """The URL of a file, or of a folder, that was put into the store."""
    from obstore.store import S3Store

    config: Any = {**KEYS, "AWS_ENDPOINT": f"http://127.0.0.1:{_server()}"}
    store = S3Store(BUCKET, config=config, client_options={"allow_http": True, "timeout": "10m"})
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            obstore.put(store, str(file.relative_to(path.parent)), file)
    return f"s3://{BUCKET}/{path.name}" + ("/" if path.is_dir() else "")


class _DataFusion(DataFusion):
    """DataFusion, which is told of the store by itself."""

    def __init__(self) -> None:
        super().__init__()
        from datafusion.object_store import AmazonS3

        access, secret = KEYS.values()
        store = AmazonS3(
            bucket_name=BUCKET,
            endpoint=os.environ["AWS_ENDPOINT_URL"],
            region="us-east-1",
            access_key_id=access,
            secret_access_key=secret,
            allow_http=True,
        )
        for context in (self._context, self._one_by_one):
            context.register_object_store("s3://", store, BUCKET)


def _contestants(seconds: float, rate: float) -> Callable[[], list[Contestant]]:
    def made() -> list[Contestant]:
        if _command() is None:
            return []
        os.environ.update(KEYS, AWS_REGION="us-east-1", AWS_ALLOW_HTTP="true")
        os.environ["AWS_ENDPOINT_URL"] = _proxy(seconds, rate)
        return [Fretsaw(), Polars(), _DataFusion(), Dataset()]

    return made


class _Place:
    """A URL where workloads expect the path of a sample."""

    def __init__(self, sample: Sample) -> None:
        self.path = _url(sample.path)
        self.rows = sample.rows
        self.files = sample.files


def _remote(workload: Workload, goal: float, seconds: float = SECONDS, rate: float = 0) -> Workload:
    """The same of files in the store."""

    def run(reader: Contestant, sample: Sample) -> pa.Table:
        place: Any = _Place(sample)
        return workload.run(reader, place)

    def sample(scale: Scale) -> Sample:
        if _command() is None:
            raise Unsupported("there is neither versitygw, a server for S3, nor Go to build it")
        return workload.sample(scale)

    return replace(
        workload,
        sample=sample,
        name=f"remote-{workload.name.removeprefix('lake-range') or 'lake'}",
        what=f"{workload.what}; in a store",
        goal=goal,
        run=run,
        contestants=_contestants(seconds, rate),
    )


def _chosen(workloads: tuple[Workload, ...], *names: str) -> list[Workload]:
    return [workload for workload in workloads if workload.name in names]


REMOTE = (
    *(_remote(one, 0.6) for one in _chosen(TRIPS, "range", "point", "offset", "tail")),
    *(_remote(one, 0.6) for one in _chosen(LAKES, "lake-range")),
    _remote(SCAN, 1.0, rate=BYTES_PER_SECOND),
)
