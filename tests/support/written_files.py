"""Scans to be written, and what other libraries read of the files."""

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1_000
PARTS = 2
BATCH = pa.record_batch({"n": pa.array(range(100_000)), "s": ["some text"] * 100_000})


def some(make: Callable[[int], Any], seed: int) -> list[Any]:
    """A value for each row, one in seven of them null."""
    chance = random.Random(seed)
    return [None if chance.random() < 1 / 7 else make(row) for row in range(ROWS)]


def rich() -> pa.Table:
    """All kinds of columns, nested ones too."""
    floats = [0.1, 1.0, -0.0, 1e300, 5e-324, math.nan, math.inf, -math.inf, 123456789.125]
    texts = [
        "",
        "plain",
        'a "quoted" word',
        "back\\slash",
        "two\nlines\r",
        "\x00\x1f\x7f",
        "é, 漢字 🎸",
    ]
    start = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    nested = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])
    items = pa.list_(pa.struct([("price", pa.decimal128(12, 2)), ("tags", pa.list_(pa.string()))]))
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "flag": some(lambda row: row % 3 == 0, 1),
            "small": pa.array(some(lambda row: row % 256 - 128, 2), pa.int8()),
            "float": some(lambda row: floats[row % len(floats)], 3),
            "single": pa.array(some(lambda row: row / 7, 4), pa.float32()),
            "text": some(lambda row: texts[row % len(texts)], 5),
            "amount": pa.array(some(lambda row: Decimal(row) / 100, 6), pa.decimal128(30, 2)),
            "day": some(lambda row: dt.date(1900, 1, 1) + dt.timedelta(row * 30), 7),
            "clock": pa.array(some(lambda row: row * 25_000_001, 8), pa.time64("us")),
            "when": some(lambda row: start + dt.timedelta(seconds=row * 7_919.5), 9),
            "at": pa.array(
                some(lambda row: row * 10**12 - 1, 10), pa.timestamp("us", "Asia/Tokyo")
            ),
            "raw": pa.array(some(lambda row: bytes(range(row % 9)), 11), pa.binary()),
            "fixed": pa.array(some(lambda row: row.to_bytes(3, "big"), 12), pa.binary(3)),
            "kind": pa.array(some(lambda row: f"kind {row % 5}", 13)).dictionary_encode(),
            "list": pa.array(some(lambda row: [None, *range(row % 4)], 14), pa.list_(pa.int32())),
            "nested": pa.array(
                some(lambda row: {"x": row, "y": {"z": f"{row}"} if row % 5 else None}, 15), nested
            ),
            "map": pa.array(
                some(lambda row: [(f"k{key}", key or None) for key in range(row % 3)], 16),
                pa.map_(pa.string(), pa.int64()),
            ),
            "items": pa.array(
                some(lambda row: [_item(row), None][: row % 3], 17),
                items,
            ),
        }
    )


def _item(row: int) -> dict[str, Any]:
    return {"price": Decimal(row) / 4, "tags": ["a", None, f'"{row}"'][: row % 4]}


def write_parts(folder: Path, table: pa.Table) -> list[Path]:
    """The table as several Parquet files of several row groups."""
    folder.mkdir(exist_ok=True)
    size = -(-table.num_rows // PARTS)
    paths = [folder / f"part-{part}.parquet" for part in range(PARTS)]
    for part, path in enumerate(paths):
        piece = table.slice(part * size, size)
        pq.write_table(piece, path, row_group_size=230, write_page_index=True)
    return paths
