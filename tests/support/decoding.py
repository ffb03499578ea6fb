"""Rows that the kernels decode, held against pyarrow's and against those that Arrow decodes alone.

`ways` are patterns of rows and how a scan is asked for them; `assert_decoded` reads a file in each
of them and wants the same rows, types and bits from all, and every page decoded by the kernels.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fretsaw as fs
from fretsaw import col
from fretsaw.formats.kernels import load_kernels
from tests.support.kernels import without_kernels
from tests.support.nested_data import assert_same_nested

Read = Callable[[fs.Scan], pa.Table]
Way = tuple[str, Read, Sequence[int] | np.ndarray[Any, Any]]

ROW = pa.field("row", pa.int64(), nullable=False)
"""Files have the number of each row in their first column, for filters."""


def numbered(fields: Sequence[pa.Field], arrays: Sequence[pa.Array]) -> pa.Table:
    """A table of these columns behind one with the numbers of the rows."""
    rows = pa.array(range(len(arrays[0])), pa.int64())
    return pa.table([rows, *arrays], schema=pa.schema([ROW, *fields]))


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def pyarrow_read(data: bytes, **options: Any) -> pa.Table:
    return pq.read_table(io.BytesIO(data), **options)


def ways(rows: int, rng: np.random.Generator) -> Iterator[Way]:
    """Patterns of rows: how to ask for them, and which they are."""

    def selected(chosen: Any) -> Read:
        return lambda scan: scan.select_rows(chosen).to_arrow()

    everything = np.arange(rows)
    yield "all", lambda scan: scan.to_arrow(), everything
    yield "none", selected([]), []
    if not rows:
        return
    one = int(rng.integers(rows))
    begin, end = np.sort(rng.integers(rows + 1, size=2)).tolist()
    starts = np.sort(rng.choice(rows, size=min(rows, 6), replace=False))
    runs = np.concatenate([np.arange(at, min(at + 9, rows)) for at in starts])
    scattered = np.flatnonzero(rng.random(rows) < 0.1)
    taken = rng.integers(rows, size=15)
    mixed = np.sort(rng.choice(rows, size=min(rows, 20), replace=False)).tolist()
    yield "one", selected([one]), [one]
    yield "runs", selected(np.unique(runs)), np.unique(runs)
    yield "every other", selected(everything[one % 2 :: 2]), everything[one % 2 :: 2]
    yield "scattered", selected(scattered), scattered
    yield "last", lambda scan: scan.tail(1).to_arrow(), [rows - 1]
    yield (
        "window",
        lambda scan: scan.skip(begin).head(end - begin).to_arrow(),
        range(begin, end),
    )
    yield "taken", lambda scan: scan.take(taken), taken
    yield "filter", lambda scan: scan.filter(col("row").is_in(mixed)).to_arrow(), mixed
    yield (
        "filter of a window",
        lambda scan: scan.select_rows(range(begin, rows)).filter(col("row") <= end).to_arrow(),
        range(begin, min(end + 1, rows)),
    )


def assert_decoded(
    data: bytes,
    expected: pa.Table,
    rng: np.random.Generator,
    *,
    only: Sequence[str] = (),
    by_arrow: bool = False,
    **options: Any,
) -> None:
    """All ways give these rows, with the kernels and without, and the kernels do all of it.

    `by_arrow` says that some pages are known to be none of theirs.
    """
    for name, read, rows in ways(expected.num_rows, rng):
        if only and name not in only:
            continue
        wanted = expected.take(pa.array(rows, pa.int64()))
        with fs.trace() as seen:
            assert_same_nested(read(fs.scan(data, **options)), wanted)
        if load_kernels() is not None:
            pages = dict(seen.decoded_by)
            assert bool(pages.get("arrow")) == (by_arrow and len(rows) > 0), f"{name}: {pages}"
            assert pages.get("kernels") or not len(rows), f"{name}: {pages}"
        with without_kernels(), fs.trace() as seen:
            assert_same_nested(read(fs.scan(data, **options)), wanted)
        assert not seen.decoded_by["kernels"], name
