"""Events of a shop, nested."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data.store import SEED, Sample, Scale, keep, tokens
from benchmarks.data.trips import CITIES, FIRST_PICKUP

EVENTS_SCHEMA = pa.schema(
    [
        ("event_id", pa.int64()),
        ("at", pa.timestamp("us")),
        ("kind", pa.string()),
        (
            "user",
            pa.struct(
                [
                    ("id", pa.int64()),
                    ("name", pa.string()),
                    ("home", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
                ]
            ),
        ),
        (
            "items",
            pa.list_(
                pa.struct(
                    [
                        ("sku", pa.string()),
                        ("price", pa.float64()),
                        ("quantity", pa.int32()),
                        ("tags", pa.list_(pa.string())),
                    ]
                )
            ),
        ),
        ("attributes", pa.map_(pa.string(), pa.float64())),
        ("value", pa.float64()),
    ]
)
KINDS = pa.array(["view", "search", "add", "remove", "order", "return", "rate"])
TAGS = pa.array([f"tag {number}" for number in range(40)])
ATTRIBUTES = pa.array([f"attribute_{number:02d}" for number in range(24)])


def events(scale: Scale) -> Sample:
    """Events of a shop: lists of structs, a map, a struct in a struct, and three flat columns."""
    rows, group = scale.events_rows, scale.events_group
    starts = range(0, rows, group)
    blocks = (_events_block(first, min(group, rows - first)) for first in starts)
    return keep(f"events-{rows}-{group}", rows, EVENTS_SCHEMA, blocks, "snappy")


def _events_block(first: int, count: int) -> pa.Table:
    """The events with these row numbers; the same whatever the other blocks are."""
    rng = np.random.default_rng([SEED, first])
    row = np.arange(first, first + count, dtype=np.uint64)
    columns = [
        pa.array(row.astype(np.int64) * 7 + 5_000_000),
        pa.array(FIRST_PICKUP + row.astype(np.int64) * 1_000_000 + rng.integers(0, 10**6, count)),
        _drawn(rng, KINDS, count),
        _users(rng, count),
        _items(rng, count),
        _attributes(rng, count),
        pa.array(rng.gamma(2.0, 20.0, count), mask=rng.random(count) < 0.2),
    ]
    return pa.Table.from_arrays(columns, schema=EVENTS_SCHEMA)


def _users(rng: np.random.Generator, count: int) -> pa.Array:
    """One in ten has not signed in, one in five has told no home."""
    kind = EVENTS_SCHEMA.field("user").type
    home = pa.StructArray.from_arrays(
        [_drawn(rng, CITIES, count), pa.array(rng.integers(10_000, 99_999, count, np.int32))],
        fields=list(kind.field("home").type),
        mask=pa.array(rng.random(count) < 0.2),
    )
    number = rng.integers(0, 300_000, count)
    name = pc.binary_join_element_wise("user", pc.cast(pa.array(number), pa.string()), " ")
    return pa.StructArray.from_arrays(
        [pa.array(number), name, home],
        fields=list(kind),
        mask=pa.array(rng.random(count) < 0.1),
    )


def _items(rng: np.random.Generator, count: int) -> pa.Array:
    """None to six for each event, and none to three tags for each of them."""
    items = EVENTS_SCHEMA.field("items").type
    offsets = _offsets(rng, count, 6, nulls=0.1)
    total = offsets[-1].as_py()
    tag_offsets = _offsets(rng, total, 3, nulls=0.05)
    tags = pa.ListArray.from_arrays(tag_offsets, _drawn(rng, TAGS, tag_offsets[-1].as_py()))
    item = pa.StructArray.from_arrays(
        [
            tokens(rng.integers(0, 500_000, total, np.uint64)),
            pa.array(np.round(rng.lognormal(3.0, 1.0, total), 2), mask=rng.random(total) < 0.05),
            pa.array(rng.integers(1, 10, total, np.int32)),
            tags,
        ],
        fields=list(items.value_type),
    )
    return pa.ListArray.from_arrays(offsets, item, type=items)


def _attributes(rng: np.random.Generator, count: int) -> pa.Array:
    """None to four for each event; no event has the same twice."""
    offsets = _offsets(rng, count, 4, nulls=0.1)
    total = offsets[-1].as_py()
    keys = ATTRIBUTES.take(pa.array((np.arange(total) + rng.integers(0, 24)) % len(ATTRIBUTES)))
    values = pa.array(rng.normal(size=total), mask=rng.random(total) < 0.1)
    return pa.MapArray.from_arrays(offsets, keys, values)


def _offsets(rng: np.random.Generator, count: int, most: int, nulls: float) -> pa.Array:
    """Where `count` lists of up to `most` begin, and where the last one ends; some are null."""
    missing = rng.random(count) < nulls
    lengths = np.where(missing, 0, rng.integers(0, most + 1, count))
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.array(ends, mask=np.append(missing, False))


def _drawn(rng: np.random.Generator, values: pa.Array, count: int) -> pa.Array:
    return values.take(pa.array(rng.integers(0, len(values), count)))
