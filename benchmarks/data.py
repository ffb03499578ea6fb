"""Seeded data files, made on first use and kept below `benchmarks/.data/`.

In: a `Scale` (full or quick) and, for `trips`, a codec; for `grid` and `grids`, the shape itself.
Out: a `Sample`, the path of a complete file or folder and its shape. Tables are made block by
block, one row group at a time, so that memory stays low; a file or folder appears under its own
name only once it is whole. A new data set is a function that returns
`_keep(name, rows, schema, blocks, ...)`, or `_keep_folder(name, rows, files)` if it is many files.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

SEED = 20240229
VERSION = 2  # part of every file name: raise it when a maker changes, old files are then unused

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
LAKE_KEY = pa.field("day", pa.date32())
DAY_US = 86_400_000_000

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


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the data of a run is."""

    trips_rows: int
    trips_group: int
    wide_columns: int
    events_rows: int
    events_group: int
    lake_files: int
    lake_file_rows: int


FULL = Scale(
    trips_rows=10_000_000,
    trips_group=1_000_000,
    wide_columns=10_000,
    events_rows=2_000_000,
    events_group=200_000,
    lake_files=200,
    lake_file_rows=50_000,
)
# Row groups of 100,000 would be dictionary-encoded to their end, which full ones are not.
QUICK = Scale(
    trips_rows=1_000_000,
    trips_group=200_000,
    wide_columns=10_000,
    events_rows=400_000,
    events_group=200_000,
    lake_files=200,
    lake_file_rows=5_000,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A data file or a folder of them that is there, and how many rows it holds."""

    path: Path
    rows: int

    @property
    def files(self) -> list[Path]:
        """The file, or those in the folder in the order of their paths."""
        return sorted(self.path.rglob("*.parquet")) if self.path.is_dir() else [self.path]


def trips(scale: Scale, codec: str) -> Sample:
    """Taxi-like trips, sorted by `trip_id` and `pickup_at`, with a page index."""
    return _keep(
        f"trips-{scale.trips_rows}-{scale.trips_group}-{codec}",
        scale.trips_rows,
        TRIPS_SCHEMA,
        _trips_blocks(scale.trips_rows, scale.trips_group),
        codec,
    )


def trips_with_bloom(scale: Scale) -> Sample:
    """The same as `trips`, with Bloom filters on the unique strings."""
    return _keep(
        f"trips-{scale.trips_rows}-{scale.trips_group}-bloom",
        scale.trips_rows,
        TRIPS_SCHEMA,
        _trips_blocks(scale.trips_rows, scale.trips_group),
        "snappy",
        bloom_filter_options={"token": {"ndv": scale.trips_group, "fpp": 0.01}},
    )


def trips_as_orc(scale: Scale, codec: str) -> Sample:
    """The same as `trips` in an ORC file, with row indexes."""

    def write(path: Path) -> None:
        with orc.ORCWriter(str(path), compression=codec) as writer:
            for block in _trips_blocks(scale.trips_rows, scale.trips_group):
                writer.write(block)

    name = f"trips-{scale.trips_rows}-{scale.trips_group}-{codec}-v{VERSION}.orc"
    return Sample(_made_once(name, write), scale.trips_rows)


def wide(scale: Scale) -> Sample:
    """Very many columns of floats and few rows: what a footer costs."""
    names = [f"f{number:05d}" for number in range(scale.wide_columns)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    groups, group = 2, 1_000
    blocks = _wide_blocks(schema, groups, group)
    return _keep(f"wide-{scale.wide_columns}", groups * group, schema, blocks, "snappy")


def events(scale: Scale) -> Sample:
    """Events of a shop: lists of structs, a map, a struct in a struct, and three flat columns."""
    rows, group = scale.events_rows, scale.events_group
    starts = range(0, rows, group)
    blocks = (_events_block(first, min(group, rows - first)) for first in starts)
    return _keep(f"events-{rows}-{group}", rows, EVENTS_SCHEMA, blocks, "snappy")


def lake(scale: Scale) -> Sample:
    """Trips again, a file for each day in a Hive folder of its own."""
    files, rows = scale.lake_files, scale.lake_file_rows
    return _keep_folder(f"lake-{files}-{rows}", files * rows, _lake_files(files, rows))


def grid(groups: int, group: int, page: int, columns: int) -> Sample:
    """Row groups of `group` rows, pages of `page` rows: how cost grows with the shape of a file.

    Nothing is dictionary-encoded, so that every page costs the same.
    """
    return _keep(
        f"grid-{groups}-{group}-{page}-{columns}",
        groups * group,
        _grid_schema(columns),
        (_grid_block(number * group, group, columns) for number in range(groups)),
        "snappy",
        use_dictionary=False,
        max_rows_per_page=page,
        write_batch_size=min(page, 1_024),
    )


def grids(files: int, rows: int, columns: int) -> Sample:
    """Many files of a `grid`, one row group each."""
    blocks = (_grid_block(number * rows, rows, columns) for number in range(files))
    named = ((f"part-{number:05d}.parquet", block) for number, block in enumerate(blocks))
    name = f"grids-{files}-{rows}-{columns}"
    return _keep_folder(name, files * rows, named, use_dictionary=False)


def _keep(
    name: str,
    rows: int,
    schema: pa.Schema,
    blocks: Iterable[pa.Table],
    codec: str,
    **options: Any,
) -> Sample:
    """The file called `name`, written now if it is not there: a row group for each block."""

    def write(path: Path) -> None:
        _write(path, schema, blocks, codec, **options)

    return Sample(_made_once(f"{name}-v{VERSION}.parquet", write), rows)


def _keep_folder(
    name: str, rows: int, files: Iterable[tuple[str, pa.Table]], **options: Any
) -> Sample:
    """The folder called `name`, written now if it is not there: a row group for each file."""

    def write(folder: Path) -> None:
        for place, table in files:
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, table.schema, [table], "snappy", **options)

    return Sample(_made_once(f"{name}-v{VERSION}", write), rows)


def _made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The path of what `make` makes, which is there as a whole or not at all."""
    default = Path(__file__).parent / ".data"
    folder = Path(os.environ.get("FRETSAW_BENCH_DATA", default))
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{name}.{os.getpid()}.tmp"
        try:
            make(unfinished)
            unfinished.replace(path)
        finally:
            if unfinished.is_dir():
                shutil.rmtree(unfinished)
            else:
                unfinished.unlink(missing_ok=True)
    return path


def _write(
    path: Path, schema: pa.Schema, blocks: Iterable[pa.Table], codec: str, **options: Any
) -> None:
    with pq.ParquetWriter(
        path,
        schema,
        compression=codec,
        # zlib's own default: Arrow's 9 takes four times as long to write, and no other
        # time to read.
        compression_level=6 if codec == "gzip" else None,
        write_page_index=True,
        **options,
    ) as writer:
        for block in blocks:
            writer.write_table(block, row_group_size=block.num_rows)


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
        _tokens(row),
    ]
    return pa.Table.from_arrays(columns, schema=TRIPS_SCHEMA)


def _tokens(row: np.ndarray) -> pa.Array:
    """16 hexadecimal digits for each row, unique because splitmix64's mixer is a bijection."""
    mixed = row + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed = mixed ^ (mixed >> np.uint64(31))
    pairs = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], np.uint8)
    digits = pairs[mixed.view(np.uint8)]
    offsets = np.arange(len(row) + 1, dtype=np.int32) * 16
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), len(row), buffers)


def _grid_schema(columns: int) -> pa.Schema:
    """A sorted `key`, a `chance` below a million, then floats, integers and strings in turn."""
    kinds = (pa.float64(), pa.int64(), pa.string())
    others = [(f"c{number:05d}", kinds[number % len(kinds)]) for number in range(columns - 2)]
    return pa.schema([("key", pa.int64()), ("chance", pa.int32()), *others])


def _grid_block(first: int, count: int, columns: int) -> pa.Table:
    """The rows from `first` on; the same whatever the other blocks are."""
    rng = np.random.default_rng([SEED, first])
    schema = _grid_schema(columns)
    row = np.arange(first, first + count, dtype=np.uint64)
    arrays = [pa.array(row.astype(np.int64)), pa.array(rng.integers(0, 10**6, count, np.int32))]
    for kind in schema.types[len(arrays) :]:
        numbers = rng.integers(0, 2**62, count)
        if pa.types.is_string(kind):
            arrays.append(_tokens(numbers.astype(np.uint64)))
        else:
            arrays.append(pa.array(numbers / 2**62 if pa.types.is_floating(kind) else numbers))
    return pa.Table.from_arrays(arrays, schema=schema)


def _wide_blocks(schema: pa.Schema, groups: int, rows: int) -> Iterator[pa.Table]:
    for number in range(groups):
        rng = np.random.default_rng([SEED, number])
        columns = [pa.array(rng.random(rows)) for _ in schema]
        yield pa.Table.from_arrays(columns, schema=schema)


def _lake_files(files: int, rows: int) -> Iterator[tuple[str, pa.Table]]:
    for number in range(files):
        day = FIRST_PICKUP.astype("datetime64[D]") + number
        row = np.arange(number * rows, (number + 1) * rows, dtype=np.uint64)
        yield f"{LAKE_KEY.name}={day}/part-0.parquet", _trips_block(row, DAY_US // rows)


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
            _tokens(rng.integers(0, 500_000, total, np.uint64)),
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
