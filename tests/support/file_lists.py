"""Several files, and the rows in them."""

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import fretsaw as fs
from tests.support.formats import even, written


def put(path: Path, content: pa.Table | list[int], writer: str = "parquet") -> Path:
    """Write a table, or a column `n`, below folders that need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"n": pa.array(content, pa.int64())}) if isinstance(content, list) else content
    path.write_bytes(written(table, writer, [table.num_rows]))
    return path


def column(scan: fs.Scan, name: str = "n") -> list[Any]:
    values: list[Any] = scan.to_arrow()[name].to_pylist()
    return values


def paths_of(trace: fs.Trace, why: str | None = None) -> list[str]:
    """The files that were read, in order of their names."""
    return sorted({read.path for read in trace.log if why in (None, read.why)})


@cache
def part(ordinal: int, size: int, group: int, writer: str = "parquet") -> bytes:
    table = pa.table({"id": pa.array(range(100 * ordinal, 100 * ordinal + size), pa.int64())})
    strides = {"row_index_stride": 2, "blooms": ordinal % 2 == 0}
    pages = {"max_rows_per_page": 2, "write_batch_size": 1, "write_page_index": ordinal % 2 == 0}
    layout = pages if writer == "parquet" else strides
    return written(table, writer, even(size, group), **layout)
