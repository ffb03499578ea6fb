"""The main job, end to end: sample data, then a few rows out of many, beside what pyarrow needs.

Run by `make demo`. Everything is written below `demo-data/` and stays there for a second run.
"""

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import fretsaw as fs
from fretsaw import col

ROWS, BLOCK = 4_000_000, 1_000_000
FOLDER = Path("demo-data")


def trips(rows: int, seed: int) -> pa.Table:
    """Taxi trips: numbers, times, a few names, and a column with nulls."""
    random = np.random.default_rng(seed)
    zones = np.array([f"zone {i}" for i in range(265)])
    start = np.datetime64("2025-01-01", "us") + np.arange(rows) * np.timedelta64(263_157, "us")
    return pa.table(
        {
            "pickup": start + seed * rows * np.timedelta64(263_157, "us"),
            "passengers": random.integers(1, 7, rows),
            "distance": np.round(random.exponential(3, rows), 2),
            "fare": np.round(random.exponential(15, rows), 2),
            "tip": pa.array(
                np.round(random.exponential(3, rows), 2), mask=random.random(rows) < 0.3
            ),
            "zone": zones[random.integers(0, 265, rows)],
            "driver": random.integers(0, 1 << 60, rows),
        }
    )


def sample() -> Path:
    """The sample file, made once."""
    path = FOLDER / "trips.parquet"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with pq.ParquetWriter(unfinished, trips(1, 0).schema, write_page_index=True) as writer:
            for block in range(ROWS // BLOCK):
                writer.write_table(trips(BLOCK, block), row_group_size=BLOCK)
        unfinished.rename(path)
    return path


def orders(rows: int) -> pa.Table:
    """Orders with an address and a list of items each."""
    random = np.random.default_rng(3)
    counts = random.integers(0, 6, rows)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    size = int(offsets[-1])
    fields = [random.integers(0, 5000, size), np.round(random.exponential(20, size), 2)]
    items = pa.StructArray.from_arrays([pa.array(field) for field in fields], ["sku", "price"])
    cities = pa.array(np.array(["Oslo", "Lima", "Kobe"])[random.integers(0, 3, rows)])
    return pa.table(
        {
            "id": np.arange(rows),
            "address": pa.StructArray.from_arrays([cities, pa.array(counts)], ["city", "floor"]),
            "items": pa.ListArray.from_arrays(pa.array(offsets), items),
        }
    )


def lake() -> Path:
    """Orders in folders, one for each day."""
    folder = FOLDER / "orders"
    for day in range(1, 8):
        path = folder / f"day=2025-01-{day:02}" / "part-0.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(orders(100_000), path, write_page_index=True)
    return folder


def timed(work: Callable[[], pa.Table]) -> tuple[pa.Table, float]:
    """The result, and the best of five times in milliseconds."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return result, min(times) * 1e3


def compare(title: str, ours: Callable[[], pa.Table], pyarrows: Callable[[], pa.Table]) -> None:
    """Run both, check that they agree, and print what each needed."""
    with fs.trace() as trace:
        ours()
    result, mine = timed(ours)
    expected, theirs = timed(pyarrows)
    if not result.cast(expected.schema).equals(expected):
        raise SystemExit(f"{title}: the rows differ from pyarrow's")
    print(
        f"  {title:<34} {result.num_rows:>6,} rows   fretsaw {mine:>7.1f} ms, "
        f"{trace.bytes_read / 1024:>7,.0f} KB   pyarrow {theirs:>7.1f} ms"
    )


def read_row_group(path: Path, ordinal: int) -> pa.Table:
    """What a pyarrow user does for a few rows: read the row group that holds them."""
    return pq.ParquetFile(path).read_row_group(ordinal)


def read_part(folder: Path, day: str, columns: list[str]) -> pa.Table:
    """The same for a file in a folder."""
    return pq.ParquetFile(folder / f"day={day}" / "part-0.parquet").read(columns=columns)


def main() -> None:
    """Tell the story."""
    path = sample()
    size = path.stat().st_size
    with fs.open(path) as file:
        print(f"{path}: {file.num_rows:,} rows, {len(file.blocks)} row groups, {size >> 20} MB\n")

    scan = fs.scan(path)
    offset = 2 * BLOCK + 345_678
    rows = np.sort(np.random.default_rng(7).choice(ROWS, 100, replace=False))
    print("The same rows, by fretsaw and by pyarrow:")
    compare(
        "skip(2,345,678).head(20)",
        lambda: scan.skip(offset).head(20).to_arrow(),
        lambda: read_row_group(path, 2).slice(345_678, 20),
    )
    compare(
        "tail(10)",
        lambda: scan.tail(10).to_arrow(),
        lambda: read_row_group(path, 3).slice(BLOCK - 10),
    )
    compare(
        "tail(10), two columns",
        lambda: scan.select("pickup", "fare").tail(10).to_arrow(),
        lambda: pq.ParquetFile(path).read_row_group(3, ["pickup", "fare"]).slice(BLOCK - 10),
    )
    five_minutes = (col("pickup") >= datetime(2025, 1, 8)) & (
        col("pickup") < datetime(2025, 1, 8, 0, 5)
    )
    compare(
        "five minutes of pickups",
        lambda: scan.filter(five_minutes).to_arrow(),
        lambda: pq.read_table(
            path,
            filters=(pc.field("pickup") >= datetime(2025, 1, 8))
            & (pc.field("pickup") < datetime(2025, 1, 8, 0, 5)),
        ),
    )
    compare(
        "first 10 with fare > 100, as SQL",
        lambda: scan.filter("fare > 100 and zone = 'zone 7'").head(10).to_arrow(),
        lambda: pq.read_table(
            path, filters=(pc.field("fare") > 100) & (pc.field("zone") == "zone 7")
        ).slice(0, 10),
    )
    compare(
        "take(100 row numbers)", lambda: scan.take(rows), lambda: pq.read_table(path).take(rows)
    )
    compare("everything", scan.to_arrow, lambda: pq.read_table(path))

    folder = lake()
    days = fs.scan(folder)
    print(f"\n{folder}: {days.count():,} rows in folders, of {', '.join(days.schema.names)}")
    compare(
        "skip(450,000).head(20), nested",
        lambda: days.select("id", "items").skip(450_000).head(20).to_arrow(),
        lambda: read_part(folder, "2025-01-05", ["id", "items"]).slice(50_000, 20),
    )
    on_a_day = days.filter("day = '2025-01-03' and any(items.price) > 200")
    print(f"  orders of a day with an item above 200: {on_a_day.count():,}")
    print(f"  the last row: {days.select('address.city', 'day').tail(1).to_arrow().to_pylist()[0]}")

    print("\nThe file in four splits, as four readers would take them:")
    for split in scan.splits(size // 4):
        print(f"  {split!r}: {split.count():,} rows")

    print(f"\n{scan.filter(five_minutes).explain(run=True)}")

    total, longest = 0.0, 0
    for batch in scan.select("fare").batches():
        total += float(batch.column(0).to_numpy().sum())
        longest = max(longest, batch.num_rows)
    print(f"\nStreamed in batches of up to {longest:,} rows: fares add up to {total:,.2f}")


if __name__ == "__main__":
    main()
