"""Processes that are forked while others of their threads scan: each child can scan by itself.

Children have a deadline, after which they are killed and the test fails.
"""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import even, written

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]
ROWS = 3_000
TABLE = pa.table({"n": np.arange(ROWS), "text": [f"row {n}" for n in range(ROWS)]})
DEADLINE = 20.0
"""Seconds, of which a child needs a few hundredths."""


def saved(folder: Path) -> list[Path]:
    paths = []
    for writer in ("parquet", "orc"):
        paths.append(folder / f"a.{writer}")
        paths[-1].write_bytes(written(TABLE, writer, even(ROWS, 500)))
    return paths


def check(source: Any) -> None:
    """Results of several kinds, with pieces on threads and without."""
    scan = source.scan() if isinstance(source, fs.DataFile) else fs.scan(source)
    assert scan.filter(col("n") >= 2_990).to_arrow().equals(TABLE.slice(2_990))
    assert scan.tail(7).to_arrow().equals(TABLE.slice(ROWS - 7))
    assert pa.Table.from_batches(scan.batches(batch_size=700)).equals(TABLE)


def in_child(work: Callable[[], None]) -> int:
    """Fork a child that does some work; gives its process."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def require_success(process: int) -> None:
    """The child ends well, within its time."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError("the child hangs")


@contextmanager
def under_load(*works: Callable[[], None]) -> Iterator[None]:
    """Threads that do some work over and over."""
    over = threading.Event()
    errors: list[BaseException] = []

    def repeat(work: Callable[[], None]) -> None:
        try:
            while not over.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in running:
            thread.join()
    assert errors == []


def fork_under_load(folder: Path, forks: int) -> None:
    paths = saved(folder)
    memory = io.BytesIO(paths[0].read_bytes())
    with paths[1].open("rb") as file, fs.open(paths[0]) as opened:
        sources: list[Any] = [*paths, memory, file, opened]

        def scan_all() -> None:
            with fs.trace():
                for source in sources:
                    check(source)

        with under_load(scan_all, scan_all), fs.trace():
            for number in range(0, forks, 2):
                children = [
                    in_child(lambda place=place: check(sources[place % len(sources)]))  # type: ignore[misc]
                    for place in (number, number + 1)
                ]
                for child in children:
                    require_success(child)


def test_children_forked_under_load_scan(tmp_path: Path) -> None:
    fork_under_load(tmp_path, 20)


@pytest.mark.deep
def test_many_children_forked_under_load_scan(tmp_path: Path) -> None:
    fork_under_load(tmp_path, 400)


def test_a_child_goes_on_with_what_its_parent_began(tmp_path: Path) -> None:
    """What the threads of the parent would have done is done by the child."""
    rows = np.arange(400_000)
    table = pa.table({"n": rows, "m": rows % 7})
    path = tmp_path / "large.parquet"
    path.write_bytes(written(table, "parquet", even(len(rows), 20_000)))
    expected = table.filter(pa.array(rows % 7 == 3))
    for scan in (fs.scan(path).filter(col("m") == 3), fs.scan([path]).filter(col("m") == 3)):
        stream = scan.batches(batch_size=10_000)
        first = next(stream)

        def go_on(stream: Any = stream, first: Any = first) -> None:
            assert pa.Table.from_batches([first, *stream]).equals(expected)

        def leave(stream: Any = stream) -> None:
            stream.close()

        children = [in_child(go_on), in_child(leave)]
        for child in children:
            require_success(child)
        go_on()


FIRST_USE = """
import importlib.abc, os, signal, sys, threading, time
import fretsaw as fs

wanted, path = sys.argv[1:]
begun = threading.Event()

class Late(importlib.abc.MetaPathFinder):
    "Makes the import of a module last."
    def find_spec(self, name, path=None, target=None):
        if name == wanted and threading.current_thread() is not threading.main_thread():
            begun.set()
            time.sleep(0.2)

sys.meta_path.insert(0, Late())

def use():
    scan = fs.scan(path)
    scan.filter("n >= 10").tail(3).to_arrow()
    next(scan.column("n")), next(scan.rows()), scan.count(), scan.explain()

thread = threading.Thread(target=use)
thread.start()
assert begun.wait(20), "nobody imports it"
child = os.fork()
if not child:
    signal.alarm(15)  # a child that hangs ends
    use()
    os._exit(0)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

MODULES = {
    "fretsaw.engine.planner": "parquet",
    "fretsaw.engine.files": "parquet",
    "fretsaw.results.columns": "parquet",
    "fretsaw.results.rows": "parquet",
    "fretsaw.engine.explain": "parquet",
    "fretsaw.formats.parquet.reader": "parquet",
    "fretsaw.formats.orc.reader": "orc",
    "google.protobuf": "orc",
    "sqlglot": "parquet",
}


FEW = ("fretsaw.engine.planner", "fretsaw.formats.orc.reader", "sqlglot")


@pytest.mark.parametrize(
    "module",
    [*FEW, *(pytest.param(name, marks=pytest.mark.deep) for name in MODULES if name not in FEW)],
)
def test_a_child_forked_during_an_import_scans(module: str, tmp_path: Path) -> None:
    saved(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", FIRST_USE, module]
    subprocess.run([*command, str(tmp_path / f"a.{MODULES[module]}")], check=True, timeout=DEADLINE)


def counted(path: str) -> int:
    return fs.scan(path).filter(col("n") < 100).count()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_scan_while_their_parent_does(method: str, tmp_path: Path) -> None:
    paths = saved(tmp_path)
    make_pool = multiprocessing.get_context(method).Pool
    with under_load(lambda: check(paths[0])), make_pool(2) as pool:
        found = pool.map_async(counted, [str(path) for path in paths * 3])
        assert found.get(timeout=3 * DEADLINE) == [100] * 6
