"""Files for jobs on Spark, and the rows of its data frames."""

from pathlib import Path
from typing import Any

import pyarrow as pa

import fretsaw as fs
from tests.support.formats import even, written
from tests.support.lake import Row

FORMATS = ("parquet", "orc")


def rows_of(frame: Any) -> list[Row]:
    if not frame.columns:
        return [{}] * frame.count()
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def numbers(frame: Any, name: str = "n") -> list[Any]:
    return [row[name] for row in rows_of(frame)]


def put(path: Path, table: pa.Table, format: str, block: int, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written(table, format, even(table.num_rows, block), **options))
    return path


def many(folder: Path, count: int, format: str = "parquet", rows: int = 5) -> Path:
    """Small files whose column `n` counts on from file to file."""
    for at in range(count):
        table = pa.table({"n": pa.array(range(at * rows, (at + 1) * rows), pa.int64())})
        put(folder / f"{at:05}", table, format, rows)
    return folder


def opened(trace: fs.Trace) -> set[str]:
    return {read.path for read in trace.log}
