"""The whole story on sample data: a few rows out of many, beside what pyarrow needs for them.

Run by `make demo`. The data is written below `demo-data/` in both formats, and stays there for a
second run. The same selection runs on Spark at the end, if there is Java.
"""

import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

import fretsaw as fs
from fretsaw import col

ROWS, BLOCK = 3_000_000, 500_000
ORDERS = 300_000
FOLDER = Path("demo-data")
SOME_DRIVER = "driver-0001234567"
FIVE_MINUTES = (datetime(2025, 1, 6), datetime(2025, 1, 6, 0, 5))

Source: TypeAlias = Path | io.FileIO


# Sample data ------------------------------------------------------------------------------------


def trips(block: int) -> pa.Table:
    """Taxi trips in the order of their times: numbers, a few names, a unique key, some nulls."""
    random = np.random.default_rng(block)
    first, count = block * BLOCK, BLOCK
    step = np.timedelta64(263_157_000, "ns")  # ORC has no other unit, so that both can be one scan
    keys = (np.arange(first, first + count) * 7_919) % ROWS
    tips = np.round(random.exponential(3, count), 2)
    return pa.table(
        {
            "pickup": np.datetime64("2025-01-01", "ns") + np.arange(first, first + count) * step,
            "passengers": random.integers(1, 7, count),
            "distance": np.round(random.exponential(3, count), 2),
            "fare": np.round(random.exponential(15, count), 2),
            "tip": pa.array(tips, mask=random.random(count) < 0.3),
            "zone": np.array([f"zone {i}" for i in range(265)])[random.integers(0, 265, count)],
            "driver": [f"driver-{key:010}" for key in keys],
        }
    )


def orders(block: int) -> pa.Table:
    """Orders with an address and a list of items each."""
    random = np.random.default_rng(block)
    counts = random.integers(0, 6, ORDERS)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    size = int(offsets[-1])
    fields = [random.integers(0, 5000, size), np.round(random.exponential(20, size), 2)]
    items = pa.StructArray.from_arrays([pa.array(field) for field in fields], ["sku", "price"])
    cities = pa.array(np.array(["Oslo", "Lima", "Kobe"])[random.integers(0, 3, ORDERS)])
    return pa.table(
        {
            "id": np.arange(block * ORDERS, (block + 1) * ORDERS),
            "address": pa.StructArray.from_arrays([cities, pa.array(counts)], ["city", "floor"]),
            "items": pa.ListArray.from_arrays(pa.array(offsets), items),
        }
    )


def sample(name: str, blocks: Iterable[pa.Table], key: str | None = None) -> Path:
    """A sample file, made once, with a Bloom filter for its key."""
    path = FOLDER / name
    if path.exists():
        return path
    FOLDER.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    first, *others = blocks
    if path.suffix == ".parquet":
        filters = {key: {"ndv": len(first), "fpp": 0.01}} if key else None
        writer = pq.ParquetWriter(
            unfinished, first.schema, write_page_index=True, bloom_filter_options=filters
        )
        with writer:
            for table in (first, *others):
                writer.write_table(table, row_group_size=len(table))
    else:
        leaves = [first.schema.get_field_index(key) + 1] if key else None
        settings = {"bloom_filter_columns": leaves, "bloom_filter_fpp": 0.01, "compression": "zstd"}
        with orc.ORCWriter(str(unfinished), stripe_size=16 << 20, **settings) as writer:
            for table in (first, *others):
                writer.write(table)
    unfinished.rename(path)
    return path


# Side by side -----------------------------------------------------------------------------------


class CountingFile(io.FileIO):
    """Counts the bytes that pyarrow reads."""

    bytes_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size) or b""
        self.bytes_read += len(data)
        return data


def timed(work: Callable[[], pa.Table]) -> tuple[pa.Table, float]:
    """The result, and the best of three times in milliseconds."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return result, min(times) * 1e3


def compare(title: str, path: Path, ours: fs.Scan, pyarrows: Callable[[Source], pa.Table]) -> None:
    """Run both, check that they agree, and print what each needed."""
    with fs.trace() as trace:
        ours.to_arrow()
    with CountingFile(path) as counting:
        pyarrows(counting)
    result, mine = timed(ours.to_arrow)
    expected, theirs = timed(lambda: pyarrows(path))
    if not result.cast(expected.schema).equals(expected):
        sys.exit(f"{title}: the rows differ from pyarrow's")
    print(
        f"  {title:<28}{result.num_rows:>6,} rows {mine:>9.1f} ms {size(trace.bytes_read):>8}"
        f" {theirs:>11.1f} ms {size(counting.bytes_read):>8}"
    )


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} KB"


# What a user of pyarrow does: read the row groups or stripes that may hold the rows, and filter.


def matching(source: Source, condition: pc.Expression) -> pa.Table:
    """The rows that match; row groups are pruned by statistics, stripes are not."""
    if is_parquet(source):
        return pq.read_table(source, filters=condition)
    return orc_file(source).read().filter(condition)


def window(source: Source, start: int, count: int, columns: list[str] | None = None) -> pa.Table:
    """Some neighbouring rows: of their row group, or of everything."""
    if not is_parquet(source):
        return orc_file(source).read(columns).slice(start, count)
    file = pq.ParquetFile(source)
    rows = file.metadata.row_group(0).num_rows
    return file.read_row_group(start // rows, columns).slice(start % rows, count)


def last(source: Source, condition: pc.Expression, count: int) -> pa.Table:
    """The last rows that match, by row groups or stripes from the end."""
    found: list[pa.Table] = []
    for block in blocks_from_the_end(source):
        found.insert(0, block.filter(condition))
        if sum(map(len, found)) >= count:
            break
    table = pa.concat_tables(found)
    return table.slice(len(table) - count)


def blocks_from_the_end(source: Source) -> Iterator[pa.Table]:
    if is_parquet(source):
        rows = pq.ParquetFile(source)
        yield from (rows.read_row_group(i) for i in reversed(range(rows.num_row_groups)))
    else:
        stripes = orc_file(source)
        for i in reversed(range(stripes.nstripes)):
            yield pa.Table.from_batches([stripes.read_stripe(i)])


def is_parquet(source: Source) -> bool:
    return str(source.name).endswith(".parquet")


def orc_file(source: Source) -> orc.ORCFile:
    return orc.ORCFile(str(source) if isinstance(source, Path) else source)


# The story --------------------------------------------------------------------------------------


def few_rows(trips_path: Path, orders_path: Path) -> None:
    """The same five selections in one of the formats."""
    with fs.open(trips_path) as file:
        blocks = "row groups" if file.format == "parquet" else "stripes"
        about = f"{file.num_rows:,} rows, {len(file.blocks)} {blocks}"
    print(f"\n{trips_path}: {about}, {trips_path.stat().st_size >> 20} MB")
    print(f"{'fretsaw':>50}{'pyarrow':>23}")
    scan, nested = fs.scan(trips_path), fs.scan(orders_path).select("id", "items")
    begin, end = FIVE_MINUTES
    pickup, driver = pc.field("pickup"), pc.field("driver")
    dear = (pc.field("fare") > 100) & (pc.field("zone") == "zone 7")
    compare(
        "a range of five minutes",
        trips_path,
        scan.filter((col("pickup") >= begin) & (col("pickup") < end)),
        lambda source: matching(source, (pickup >= begin) & (pickup < end)),
    )
    compare(
        "skip(2,345,678).head(20)",
        trips_path,
        scan.skip(2_345_678).head(20),
        lambda source: window(source, 2_345_678, 20),
    )
    compare(
        "the last 10 with a filter",
        trips_path,
        scan.filter("fare > 100 and zone = 'zone 7'").tail(10),
        lambda source: last(source, dear, 10),
    )
    compare(
        "a needle, Bloom filter",
        trips_path,
        scan.filter(col("driver") == SOME_DRIVER),
        lambda source: matching(source, driver == SOME_DRIVER),
    )
    compare(
        "20 rows of nested columns",
        orders_path,
        nested.skip(450_000).head(20),
        lambda source: window(source, 450_000, 20, ["id", "items"]),
    )


def on_spark(sources: list[Path]) -> None:
    """One selection over both files, in-process and on Spark."""
    print("\nThe same scan on Spark, over both files:")
    if shutil.which("java") is None:
        print("  skipped, there is no Java: sudo apt-get install openjdk-17-jre-headless")
        return
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("fretsaw demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        scan = fs.scan(sources).select("pickup", "fare", "zone").filter("fare > 120")
        for title, selected in (
            ("fare > 120", scan),
            ("the same, skip(100).head(50)", scan.skip(100).head(50)),
        ):
            begin = time.perf_counter()
            expected = selected.to_arrow()
            middle = time.perf_counter()
            found = selected.to_spark(spark, ordered=True).toArrow()
            seconds = time.perf_counter() - middle
            if not found.cast(expected.schema).equals(expected):
                sys.exit(f"{title}: the rows on Spark differ")
            print(
                f"  {title:<30} {found.num_rows:>5,} rows, the same: "
                f"in-process {middle - begin:.2f} s, on Spark {seconds:.2f} s"
            )
    finally:
        spark.stop()


def main() -> None:
    """Tell the story."""
    print("Sample data, made once ...", flush=True)
    both = {
        suffix: (
            sample(f"trips.{suffix}", map(trips, range(ROWS // BLOCK)), key="driver"),
            sample(f"orders.{suffix}", map(orders, range(2))),
        )
        for suffix in ("parquet", "orc")
    }
    print("The same rows, by fretsaw and by pyarrow: time, and bytes read.")
    for trips_path, orders_path in both.values():
        few_rows(trips_path, orders_path)

    begin, end = FIVE_MINUTES
    path, _ = both["parquet"]
    five_minutes = fs.scan(path).filter((col("pickup") >= begin) & (col("pickup") < end))
    print(f"\nWhat was planned and what happened:\n{five_minutes.explain(run=True)}")

    total, longest = 0.0, 0
    for batch in fs.scan(path).column("fare"):
        total += float(batch.values.sum())
        longest = max(longest, len(batch.values))
    print(f"\nA column, {longest:,} values at a time: fares add up to {total:,.2f}")

    output = FOLDER / "dear.parquet"
    rows = (
        fs.scan([path for path, _ in both.values()])
        .filter("fare > 150")
        .write(output, overwrite=True)
    )
    print(f"Written to {output}: {rows:,} rows of both files with a fare above 150")

    on_spark([path for path, _ in both.values()])


if __name__ == "__main__":
    main()
