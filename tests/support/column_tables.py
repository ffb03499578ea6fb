"""Tables and windows for tests of column readers, which hold them against what pyarrow reads."""

import io
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import nested_file, pyarrow_read
from tests.support.layers import (
    Leaf,
    assert_arrow,
    assert_rebuilt,
    storage_of,
)
from tests.support.nested_data import nested_array, parquet_bytes
from tests.support.pages import comparable

ROWS = 120
SIZES = (1, 3, 64, 65, 1_000, None)
SCATTERED = [0, 3, 4, 49, 50, 51, 77, 98, 99, 100, 119]
NO_NULLS = fs.Validity.NO_NULLS

Lookup = str | tuple[str, ...] | int

# What to do with a scan of 120 rows, in row groups of 50, and the rows that are left.
CONTROLS: dict[str, tuple[Callable[[fs.Scan], fs.Scan], Sequence[int]]] = {
    "all": (lambda scan: scan, range(ROWS)),
    "filter": (lambda scan: scan.filter(col("row").is_between(17, 98)), range(17, 99)),
    "scattered filter": (lambda scan: scan.filter(col("row").is_in(SCATTERED)), SCATTERED),
    "window": (lambda scan: scan.skip(33).head(40), range(33, 73)),
    "tail": (lambda scan: scan.tail(31), range(89, ROWS)),
    "rows": (lambda scan: scan.select_rows(SCATTERED), SCATTERED),
    "all but some rows": (
        lambda scan: scan.select_rows(~fs.RowSelection.from_indices(SCATTERED, ROWS)),
        [row for row in range(ROWS) if row not in SCATTERED],
    ),
    "window of a filter": (
        lambda scan: scan.filter(col("row") != 60).skip(20).head(60),
        [*range(20, 60), *range(61, 81)],
    ),
    "tail of a filter": (
        lambda scan: scan.filter("row < 70 or row > 90").tail(40),
        [*range(59, 70), *range(91, ROWS)],
    ),
}
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"write_page_index": True},
    {"data_page_version": "2.0", "use_dictionary": False},
    {"store_schema": False, "compression": "none"},
    {"use_dictionary": False, "compression": "none", "write_page_index": True},
)


def source(table: pa.Table, **options: Any) -> fs.Scan:
    return fs.scan(parquet_bytes(table, **options))


def rows_at(table: pa.Table, leaf: Leaf, rows: Iterable[int]) -> list[Any]:
    """What `to_pylist` gives for the leaf's column."""
    values = table.column(leaf.path[0]).to_pylist()
    return [values[row] for row in rows]


def assert_column(
    scan: fs.Scan,
    lookup: Lookup,
    leaf: Leaf,
    expected: Sequence[Any],
    size: int | None = None,
) -> None:
    """`column` gives these values."""
    batches = list(scan.column(lookup, size))
    assert sum(batch.record_count for batch in batches) == len(expected)
    assert all(batch.record_count <= (size or len(expected)) for batch in batches)
    assert all(batch.schema.path == leaf.path for batch in batches)
    assert_rebuilt(batches, leaf, expected)
    assert_arrow(batches, leaf, expected)


ORC_LAYOUTS: tuple[dict[str, Any], ...] = (
    {"writer": "orc", "row_index_stride": 11, "blooms": True, "file_version": "0.11"},
    {"writer": "pyorc", "row_index_stride": 11, "compression": "zstd"},
    {"writer": "orc", "row_index_stride": 4, "compression": "zlib"},
    {"writer": "orc", "row_index_stride": 0},
)


@cache
def random_file(seed: int, file_format: str = "parquet") -> tuple[bytes, pa.Table]:
    layouts = LAYOUTS if file_format == "parquet" else ORC_LAYOUTS
    data = nested_file(seed, ROWS, **layouts[seed % len(layouts)])
    return data, pyarrow_read(data)


def plain(array: pa.Array) -> pa.Array:
    """The array, or the storage of its extension type."""
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array


def without_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values that are there, comparable bit by bit."""
    chunks = [plain(chunk) for chunk in column.chunks]
    storage = pa.chunked_array(chunks, storage_of(column.type))
    return comparable(storage).drop_null()


def optional(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind)


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


WIDE = 400


@cache
def heavy_file() -> bytes:
    """Leaves of 400 KB each, in pages of 50 rows."""
    rng = np.random.default_rng(8)
    rows = [{name: rng.bytes(1_000) for name in "xyz"} for _ in range(WIDE)]
    kind = pa.struct(dict.fromkeys("xyz", pa.binary()))
    keyed = [[(row["x"], row["y"])] for row in rows]
    table = pa.table(
        {
            "id": np.arange(WIDE),
            "a": pa.array(rows, kind),
            "items": pa.array([[row] for row in rows], pa.list_(kind)),
            "m": pa.array(keyed, pa.map_(pa.binary(), pa.binary())),
        }
    )
    layout = {"row_group_size": WIDE // 2, "max_rows_per_page": 50, "use_dictionary": False}
    return parquet_bytes(
        table, data_page_size=1 << 20, write_page_index=True, compression="none", **layout
    )


def heavy_scan() -> fs.Scan:
    return fs.scan(io.BytesIO(heavy_file()))


def whole(value: Decimal) -> int:
    """The number without its point."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


ORDERS = pa.schema(
    [
        required("id", pa.int64()),
        optional("age", pa.int32()),
        optional(
            "a",
            pa.struct({"b": pa.int64(), "c": pa.string(), "d": pa.struct({"e": pa.int8()})}),
        ),
        optional("tags", pa.list_(pa.string())),
        optional("items", pa.list_(pa.struct({"price": pa.float64(), "name": pa.string()}))),
        optional("attrs", pa.map_(pa.string(), pa.struct({"x": pa.int64(), "y": pa.string()}))),
        optional("pairs", pa.map_(pa.struct({"x": pa.int8()}), pa.struct({"x": pa.int8()}))),
        optional("deep", pa.list_(pa.list_(pa.struct({"x": pa.int64(), "y": pa.bool_()})))),
        optional("p.q", pa.int64()),
        optional("p", pa.struct({"q": pa.string(), "r": pa.string()})),
        optional("s", pa.struct({"t.u": pa.int64(), "t": pa.struct({"u": pa.string()})})),
        optional("dot.ted", pa.struct({"plain": pa.int64(), "in.ner": pa.string()})),
    ]
)


@cache
def orders() -> tuple[bytes, pa.Table]:
    rng = np.random.default_rng(5)
    arrays = [nested_array(item.type, ROWS, rng, nullable=item.nullable) for item in ORDERS]
    data = parquet_bytes(pa.table(arrays, schema=ORDERS), row_group_size=ROWS)
    return data, pyarrow_read(data)


def lookup_error(lookup: Callable[[], Any]) -> fs.ColumnNotFoundError:
    """The error of a lookup, which happens before any data is read."""
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError) as caught:
        lookup()
    assert isinstance(caught.value, KeyError)
    assert trace.data_bytes == 0
    return caught.value


def values(batches: Iterable[fs.ColumnBatch]) -> list[Any]:
    return [value for batch in batches for value in batch.values.tolist()]
