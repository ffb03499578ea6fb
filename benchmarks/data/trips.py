"""Taxi-like trips: one file in several codecs and formats, and a lake of one file a day."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from benchmarks.data.store import SEED, VERSION, Sample, Scale, keep, keep_folder, made_once, tokens

FIRST_PICKUP = np.datetime64("2024-01-01T00:00:00", "us")
PICKUP_GAP_US = 300_000_000 // 1_140  # 1,140 rows in 5 minutes

TRIPS_SCHEMA = pa.schema(
    [
        ("trip_id", pa.int64()),
        ("pickup_at", pa.timestamp("us")),
        ("dropoff_at", pa.timestamp("us")),
        ("vendor", pa.string()),
        ("city", pa.string()),
        ("payment", pa.string()),
        ("driver_id", pa.int32()),
        ("passengers", pa.int32()),
        ("distance", pa.float64()),
        ("fare", pa.float64()),
        ("tip", pa.float64()),
        ("total", pa.float64()),
        ("rating", pa.int64()),
        ("token", pa.string()),
    ]
)
VENDORS = pa.array([f"vendor {letter}" for letter in "ABCDEF"])
CITIES = pa.array([f"city-{number:03d}" for number in range(120)])
PAYMENTS = pa.array(["card", "cash", "voucher", "dispute", "no charge"])
LOST = "-lost"
LAKE_KEY = pa.field("day", pa.date32())
DAY_US = 86_400_000_000


def trips(scale: Scale, codec: str) -> Sample:
    """Taxi-like trips, sorted by `trip_id` and `pickup_at`, with a page index."""
    return keep(
        f"trips-{scale.trips_rows}-{scale.trips_group}-{codec}",
        scale.trips_rows,
        TRIPS_SCHEMA,
        _trips_blocks(scale.trips_rows, scale.trips_group),
        codec,
    )


def trips_with_bloom(scale: Scale) -> Sample:
    """The same as `trips`, with Bloom filters on the unique strings."""
    return keep(
        f"trips-{scale.trips_rows}-{scale.trips_group}-bloom",
        scale.trips_rows,
        TRIPS_SCHEMA,
        _trips_blocks(scale.trips_rows, scale.trips_group),
        "snappy",
        bloom_filter_options={"token": {"ndv": scale.trips_group, "fpp": 0.01}},
    )


def trips_without_index(scale: Scale) -> Sample:
    """The same as `trips` without a page index."""
    return keep(
        f"trips-{scale.trips_rows}-{scale.trips_group}-noindex",
        scale.trips_rows,
        TRIPS_SCHEMA,
        _trips_blocks(scale.trips_rows, scale.trips_group),
        "snappy",
        write_page_index=False,
    )


def odd_trips(scale: Scale) -> Sample:
    """Trips again, with what real ones have: some that end before they begin, cost far too much
    for their distance, or lost something.
    """
    blocks = _trips_blocks(scale.trips_rows, scale.trips_group)
    return keep(
        f"odd-trips-{scale.trips_rows}-{scale.trips_group}",
        scale.trips_rows,
        TRIPS_SCHEMA,
        (_with_oddities(block) for block in blocks),
        "snappy",
    )


def trips_as_orc(scale: Scale, codec: str) -> Sample:
    """The same as `trips` in an ORC file, with row indexes."""

    def write(path: Path) -> None:
        with orc.ORCWriter(str(path), compression=codec) as writer:
            for block in _trips_blocks(scale.trips_rows, scale.trips_group):
                writer.write(block)

    name = f"trips-{scale.trips_rows}-{scale.trips_group}-{codec}-v{VERSION}.orc"
    return Sample(made_once(name, write), scale.trips_rows)


def lake(scale: Scale) -> Sample:
    """Trips again, a file for each day in a Hive folder of its own."""
    files, rows = scale.lake_files, scale.lake_file_rows
    return keep_folder(f"lake-{files}-{rows}", files * rows, _lake_files(files, rows))


def _trips_blocks(rows: int, group: int) -> Iterator[pa.Table]:
    for first in range(0, rows, group):
        yield _trips_block(np.arange(first, min(first + group, rows), dtype=np.uint64))


def _trips_block(row: np.ndarray, gap: int = PICKUP_GAP_US) -> pa.Table:
    """The trips with these row numbers, one every `gap`; the same whatever the other blocks are."""
    rng = np.random.default_rng([SEED, int(row[0])])
    count = len(row)
    jitter = rng.integers(0, gap, count)
    pickup = FIRST_PICKUP + (row.astype(np.int64) * gap + jitter)
    distance = rng.lognormal(1.0, 0.7, count)
    fare = np.round(3.0 + 2.5 * distance, 2)
    tip = np.round(fare * rng.choice([0.0, 0.1, 0.15, 0.2, 0.25], count), 2)
    by_card = rng.random(count) < 0.7
    seconds = (distance * rng.uniform(90, 240, count)).astype(np.int64)
    columns = [
        pa.array(row.astype(np.int64) * 3 + 1_000_000),
        pa.array(pickup),
        pa.array(pickup + seconds * 1_000_000),
        VENDORS.take(pa.array(rng.integers(0, len(VENDORS), count))),
        CITIES.take(pa.array(rng.integers(0, len(CITIES), count))),
        PAYMENTS.take(pa.array(np.where(by_card, 0, rng.integers(1, len(PAYMENTS), count)))),
        pa.array(rng.integers(1, 200_000, count, dtype=np.int32)),
        pa.array(rng.integers(1, 7, count, dtype=np.int32)),
        pa.array(distance),
        pa.array(fare),
        pa.array(tip, mask=~by_card),
        pa.array(np.round(fare + np.where(by_card, tip, 0.0), 2)),
        pa.array(rng.integers(1, 6, count), mask=rng.random(count) < 0.4),
        tokens(row),
    ]
    return pa.Table.from_arrays(columns, schema=TRIPS_SCHEMA)


def _with_oddities(block: pa.Table) -> pa.Table:
    """One in 1,000 ends before it begins, one in 200 has a fare of 25 for a distance of 1, and one
    in 1,000 has `LOST` at the end of its token."""
    rng = np.random.default_rng([SEED, block["trip_id"][0].as_py(), 1])
    early, dear, lost = (rng.random(len(block)) < share for share in (0.001, 0.005, 0.001))
    pickup, dropoff = block["pickup_at"].to_numpy(), block["dropoff_at"].to_numpy()
    fare = np.where(dear, np.round(25 * block["distance"].to_numpy() + 0.01, 2), block["fare"])
    cut = pc.binary_replace_slice(block["token"], 16 - len(LOST), 16, LOST)
    changed = {
        "dropoff_at": pa.array(np.where(early, pickup - (dropoff - pickup), dropoff)),
        "fare": pa.array(fare),
        "token": pc.if_else(pa.array(lost), cut, block["token"]),
    }
    for name, column in changed.items():
        block = block.set_column(block.schema.get_field_index(name), name, column)
    return block.cast(TRIPS_SCHEMA)


def _lake_files(files: int, rows: int) -> Iterator[tuple[str, pa.Table]]:
    for number in range(files):
        day = FIRST_PICKUP.astype("datetime64[D]") + number
        row = np.arange(number * rows, (number + 1) * rows, dtype=np.uint64)
        yield f"{LAKE_KEY.name}={day}/part-0.parquet", _trips_block(row, DAY_US // rows)
