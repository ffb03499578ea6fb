"""Columns of kinds that trips have none of: decimals, booleans, lists of floats."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.data.store import SEED, Sample, Scale, keep

KINDS_SCHEMA = pa.schema(
    [
        ("price", pa.decimal128(12, 2)),
        ("paid", pa.bool_()),
        ("samples", pa.list_(pa.float32())),
    ]
)


def kinds(scale: Scale) -> Sample:
    """Half as many rows as `trips` have: no two prices in a row are related, one in ten is not
    known to be paid, lists have none to eight elements.
    """
    rows, group = scale.trips_rows // 2, scale.trips_group // 2
    blocks = _blocks(rows, group)
    return keep(f"kinds-{rows}-{group}", rows, KINDS_SCHEMA, blocks, "snappy")


def _blocks(rows: int, group: int) -> Iterator[pa.Table]:
    for first in range(0, rows, group):
        rng = np.random.default_rng([SEED, first])
        cents = rng.integers(-(10**6), 10**9, group)
        wide = np.stack([cents, cents >> 63], axis=1)  # both halves of 128 bits
        price = pa.Array.from_buffers(
            KINDS_SCHEMA.field("price").type, group, [None, pa.py_buffer(wide)]
        )
        paid = pa.array(rng.random(group) < 0.7, mask=rng.random(group) < 0.1)
        ends = np.concatenate([[0], np.cumsum(rng.integers(0, 9, group))]).astype(np.int32)
        elements = pa.array(rng.normal(100, 20, ends[-1]).astype(np.float32))
        lists = pa.ListArray.from_arrays(pa.array(ends), elements)
        yield pa.Table.from_arrays([price, paid, lists], schema=KINDS_SCHEMA)
