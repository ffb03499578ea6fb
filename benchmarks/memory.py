"""Peak memory of a streaming scan of all columns, each contestant in a process of its own.

In: contestants and a path. Out: megabytes that the process held at most, and those it held
before it began to read. This module is also what such a process runs: it imports the module of
its contestant and nothing else, drains the file and prints both numbers. Linux only, because
`ru_maxrss` would begin with what the process that starts it holds.
"""

import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from benchmarks import THREADS
from benchmarks.contestant import Contestant

RUNS = 3


class Memory(NamedTuple):
    """Megabytes at the peak, and after the imports alone."""

    peak: float
    imports: float


def measure_memory(contestants: Iterable[Contestant], path: Path) -> dict[str, Memory]:
    """The worst of several runs for each, because threads do not meet in the same way twice."""
    return {
        reader.name: max(_drain_elsewhere(reader, path) for _ in range(RUNS))
        for reader in contestants
    }


def _drain_elsewhere(reader: Contestant, path: Path) -> Memory:
    kind = type(reader)
    command = [sys.executable, "-m", __name__, kind.__module__, kind.__name__, str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    imports, peak = done.stdout.split()
    return Memory(float(peak), float(imports))


def _drain_here(module: str, kind: str, path: str) -> None:
    pa.set_cpu_count(THREADS)
    reader: Contestant = getattr(import_module(module), kind)()
    imports = resident("VmHWM")
    reader.drain(path)
    print(imports, resident("VmHWM"))


def resident(kind: str) -> float:
    """Megabytes that this process holds (`VmRSS`), or held at most (`VmHWM`)."""
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith(kind))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    _drain_here(*sys.argv[1:])
