"""A standalone cluster on loopback: how the package gets there, and processes that are killed.

The master and two workers are started through pyspark's own `spark-class`, drivers by
`spark-submit`: see `spark_driver.py` for what they run. Tests of memory need no cluster.
"""

import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.formats import written
from tests.support.lake import Lake, assert_rows, random_request
from tests.support.writers import missing

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

pytestmark = [pytest.mark.spark, pytest.mark.deep]

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
DRIVER = Path(__file__).parents[1] / "support" / "spark_driver.py"
PACKAGE = Path(fs.__file__).parent
PATIENCE = 600
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}


def program(name: str) -> str:
    """A script of pyspark's."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        missing("Java, which Spark needs,")
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).with_name("bin") / name)


def environment(python: str) -> dict[str, str]:
    """That of this process, but without paths on which Python could find the package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    return {**kept, **local, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}


def wait_for(what: str, done: Callable[[], Any]) -> Any:
    """What it gives once it gives anything."""
    end = time.monotonic() + PATIENCE
    while not (found := done()):
        assert time.monotonic() < end, f"no {what} after {PATIENCE} seconds"
        time.sleep(0.05)
    return found


# Processes


def parent(pid: int) -> int:
    return int(stat_of(pid)[1])


def stat_of(pid: int) -> list[str]:
    """State, parent and so on; the name before them may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_gone(pid: int) -> bool:
    try:
        return stat_of(pid)[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def children(pid: int) -> list[int]:
    return [each for each in processes() if not is_gone(each) and parent(each) == pid]


def reads_from(pid: int, folder: Path) -> bool:
    """Whether it has a file of the folder open."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if descriptor.readlink().is_relative_to(folder):
                return True
        except FileNotFoundError:
            continue
    return False


@contextmanager
def running(
    command: list[str], log: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards, and all that it started."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True
        )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


# The cluster and its drivers


@dataclass(frozen=True)
class Cluster:
    """A master with two workers, each of one core."""

    master: str
    folder: Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    start = [program("spark-class"), "org.apache.spark.deploy"]
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    master, log = f"spark://127.0.0.1:{port}", folder / "master.log"
    env = environment(sys.executable)
    workers = [folder / f"worker-{number}" for number in range(2)]

    def daemon(name: str, options: list[str], log: Path) -> Any:
        command = [start[0], f"{start[1]}.{name}", *here, *options]
        return running(command, log, env)

    def worker(work: Path) -> Any:
        options = ["--cores", "1", "--memory", "1g", "--work-dir", str(work), master]
        return daemon("worker.Worker", options, work.with_suffix(".log"))

    with daemon("master.Master", ["--port", str(port)], log):
        wait_for("master", lambda: "I have been elected leader" in log.read_text())
        with worker(workers[0]), worker(workers[1]):
            wait_for("workers", lambda: log.read_text().count("Registering worker") == 2)
            yield Cluster(master, folder)


def submit(
    folder: Path, master: str, *arguments: str, options: list[str] | None = None, python: str = ""
) -> "Driver":
    """Run a program of `spark_driver.py`."""
    result = folder / "result.pickle"
    settings = [word for item in SETTINGS.items() for word in ("--conf", "=".join(item))]
    command = [program("spark-submit"), "--master", master, *settings, *(options or [])]
    command += [str(DRIVER), *arguments, str(result)]
    return Driver(command, environment(python or sys.executable), folder / "driver.log", result)


@dataclass(frozen=True)
class Driver:
    """A process that leaves a result."""

    command: list[str]
    env: dict[str, str]
    log: Path
    result: Path

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        with running(self.command, self.log, self.env) as process:
            yield process

    def finish(self, process: subprocess.Popen[bytes]) -> Any:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"a driver hangs:\n{self.log.read_text()}")
        assert process.returncode == 0, self.log.read_text()
        return pickle.loads(self.result.read_bytes())

    def run(self) -> Any:
        with self.started() as process:
            return self.finish(process)


# The same rows


def test_random_scans_on_a_cluster(cluster: Cluster, lake: Lake, tmp_path: Path) -> None:
    """With fretsaw installed there, as it is here."""
    requests = [random_request(lake, random.Random(seed)) for seed in range(8 * MORE)]
    asked = [
        (each.scan, each.ordered, each.target_bytes, 0 if each.planned_by_tasks else 1_000)
        for each in requests
    ]
    (tmp_path / "requests").write_bytes(pickle.dumps(asked))
    found = submit(tmp_path, cluster.master, "rows", f"{tmp_path}/requests").run()
    for request, rows in zip(requests, found, strict=True):
        assert_rows(rows, request.rows, request.ordered)


# How it gets there


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with everything that is installed here, except fretsaw."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for source in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for path in Path(source).iterdir():
            if "fretsaw" not in path.name and path.suffix != ".pth":
                (site / path.name).symlink_to(path)
    python = str(folder / "bin" / "python")
    env = environment(python)
    assert subprocess.run([python, "-c", "import pyarrow, thrift"], env=env).returncode == 0
    missing = subprocess.run([python, "-c", "import fretsaw"], env=env, capture_output=True)
    assert b"No module named 'fretsaw'" in missing.stderr
    return python


def packed(folder: Path, format: str) -> str:
    """The package in an archive, as `pip install --target` without dependencies lays it out."""
    target = folder / "target"
    shutil.copytree(PACKAGE, target / "fretsaw", ignore=shutil.ignore_patterns("__pycache__"))
    return shutil.make_archive(str(folder / "fretsaw"), format, target)


def assert_read_from(found: dict[str, Any], lake: Lake, driver: str, executor: str) -> None:
    assert driver in found["driver"]
    assert {executor in task["package"] for task in found["tasks"]} == {True}
    assert sum(task["rows"] for task in found["tasks"]) == len(lake.rows)
    assert len({task["folder"] for task in found["tasks"]}) == 2, "each executor has a folder"


def test_sent_as_a_zip(cluster: Cluster, lake: Lake, elsewhere: str, tmp_path: Path) -> None:
    options = ["--py-files", packed(tmp_path, "zip")]
    arguments = ("places", str(lake.root))
    driver = submit(tmp_path, cluster.master, *arguments, options=options, python=elsewhere)
    assert_read_from(driver.run(), lake, "fretsaw.zip", "fretsaw.zip")


def test_sent_as_an_archive(cluster: Cluster, lake: Lake, elsewhere: str, tmp_path: Path) -> None:
    archive = packed(tmp_path, "gztar")
    options = ["--archives", f"{archive}#packages"]
    options += ["--conf", "spark.executorEnv.PYTHONPATH=packages"]
    options += ["--conf", f"spark.pyspark.python={elsewhere}"]
    options += ["--conf", f"spark.pyspark.driver.python={sys.executable}"]
    found = submit(tmp_path, cluster.master, "places", str(lake.root), options=options).run()
    assert_read_from(found, lake, str(PACKAGE), f"{cluster.folder}/worker-")
    assert all("/packages/fretsaw/" in task["package"] for task in found["tasks"])


# Processes that are killed


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of 12 MB: more than fits into the pipes between two processes."""
    folder = tmp_path_factory.mktemp("numbers")
    for at in range(2):
        values = np.random.default_rng(at).integers(-(2**62), 2**62, 1_500_000)
        pq.write_table(pa.table({"n": values}), folder / f"{at}.parquet", row_group_size=25_000)
    return folder


def python_worker(pid: int, folder: Path) -> int:
    """Of the siblings of a Python worker, one that feeds such a worker.

    It has a file open, or, if it has read all that it was given, has worked more than the others.
    """
    siblings = [each for each in children(parent(pid)) if each != pid]
    found = max(siblings, key=lambda each: (reads_from(each, folder), work_of(each)))
    assert b"pyspark" in Path(f"/proc/{found}/cmdline").read_bytes()
    return found


def work_of(pid: int) -> int:
    """Processor time that a process has used, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def executor(pid: int, folder: Path) -> int:
    """The executor that has started the Python workers."""
    found = parent(parent(pid))
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{found}/cmdline").read_bytes()
    return found


@pytest.mark.parametrize("victim", [python_worker, executor])
def test_a_process_that_is_killed(
    victim: Callable[[int, Path], int], cluster: Cluster, numbers: Path, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    driver = submit(tmp_path, cluster.master, "held", str(numbers), str(marks))
    with driver.started() as process:
        waiting = lambda: (marks / "pid").exists() or process.poll() is not None  # noqa: E731
        wait_for("task", waiting)
        assert process.poll() is None, driver.log.read_text()
        pid = victim(int((marks / "pid").read_text()), numbers)
        os.kill(pid, signal.SIGKILL)
        wait_for("death", lambda: is_gone(pid))
        (marks / "go").touch()
        found, rows = driver.finish(process)
    assert (marks / "attempt-1").exists()
    assert found.equals(pq.read_table(numbers)["n"].combine_chunks())
    assert rows == len(found)


# Many files


def make_many(folder: Path, count: int) -> None:
    """Small files with the numbers to 20, five each: most are the same under other names."""
    distinct = [folder.with_name(f"{folder.name}-{at}") for at in range(4)]
    for at, path in enumerate(distinct):
        table = pa.table({"n": pa.array(range(at * 5, at * 5 + 5), pa.int64())})
        path.write_bytes(written(table, ("parquet", "orc")[at % 2], [5]))
    folder.mkdir()
    for at in range(count):
        os.link(distinct[at % 4], folder / f"{at:06}")


def test_the_memory_of_a_driver_stays_flat(tmp_path: Path) -> None:
    peaks = []
    for count in (1_000, 10_000):
        folder = tmp_path / f"{count}"
        make_many(folder, count)
        expected = [n for n in range(20) if n != 3] * (count // 4)
        window = (len(expected) - 17, 10)
        found = submit(tmp_path, "local[2]", "peak", str(folder), *map(str, window)).run()
        assert found["found"].to_pylist() == expected[-17:-7]
        assert found["counted"] == window[1]
        assert found["planned_files"] == count
        assert found["opened_here"] <= 3
        peaks.append(found["bytes"])
    assert peaks[1] - peaks[0] < 40 << 20, peaks
