"""Whether the Python that Spark starts for its tasks can run them, found out before it has to.

`require_workers` runs one tiny task, once for each context: a worker that lacks a package would
otherwise fail in the middle of a job, pages of tracebacks away from what to do about it.
"""

import sys
from collections.abc import Callable
from weakref import WeakSet

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fretsaw.errors import FretsawError

_able: WeakSet[SparkContext] = WeakSet()
_NEEDED = ("fretsaw", "pyarrow", "numpy")


class SparkWorkerError(FretsawError, RuntimeError):
    """Spark's tasks run in a Python that cannot do their work."""


def require_workers(spark: SparkSession) -> None:
    """Check that a task finds what it needs to import; what was found is not asked again."""
    context = spark.sparkContext
    if context in _able:
        return
    try:
        (found,) = context.parallelize([_NEEDED], 1).map(_lacking()).collect()
    except (PySparkException, Py4JJavaError) as failure:
        raise SparkWorkerError(
            f"Spark cannot run {context.pythonExec} for its tasks ({_reason(failure)}): {_advice()}"
        ) from failure
    executable, lacking = found
    if lacking:
        raise SparkWorkerError(
            f"Spark runs {executable} for its tasks, which lacks {', '.join(lacking)}: {_advice()}"
        )
    _able.add(context)


def _lacking() -> Callable[[tuple[str, ...]], tuple[str, list[str]]]:
    """What a task does to find out; made here, so that it is sent whole and not by its name."""

    def lacking(needed: tuple[str, ...]) -> tuple[str, list[str]]:
        import sys
        from importlib.util import find_spec

        return sys.executable, [name for name in needed if find_spec(name) is None]

    return lacking


def _reason(failure: Exception) -> str:
    """The one line of a failure that says why."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    telling = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (telling or lines)[-1].split("Exception: ")[-1]


def _advice() -> str:
    return (
        f"set PYSPARK_PYTHON={sys.executable} before the session starts (on a cluster, "
        "spark.pyspark.python to a Python there that has fretsaw)"
    )
