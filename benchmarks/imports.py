"""The time of imports, in fresh processes, where nothing has been loaded before."""

import subprocess
import sys
from collections.abc import Sequence

from benchmarks.race import Timer, race
from benchmarks.result import OURS, Result

IMPORT_GOAL = 1.25
IMPORTS = {OURS: "import fretsaw", "pyarrow": "import pyarrow.parquet, numpy"}
IMPORT_SCRIPT = """
from time import perf_counter
start = perf_counter()
{statement}
print(perf_counter() - start)
"""


def measure_import(only: Sequence[str] | None, budget: float) -> Result:
    """How long the first import takes, in processes that have loaded nothing yet."""
    wanted = {name: text for name, text in IMPORTS.items() if not only or name in only}
    timers = {name: _import_timer(statement) for name, statement in wanted.items()}
    what = "`import fretsaw` against `import pyarrow.parquet, numpy`"
    for timed in timers.values():
        timed()  # compiles what is not compiled yet
    return Result("import", what, IMPORT_GOAL, race(timers, 3 * budget), list(timers))


def _import_timer(statement: str) -> Timer:
    command = [sys.executable, "-c", IMPORT_SCRIPT.format(statement=statement)]

    def timed() -> float:
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    return timed
