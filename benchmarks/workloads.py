"""The registry: every workload of reading, and everyone who takes part.

In: nothing. Out: `WORKLOADS`, each an entry that names its data, its goal and the call that
every contestant answers, and the contestants themselves. What rows and columns a workload
touches, and the condition that finds them, is said here too, so that `pages` can tell the fewest
bytes it takes. A new workload is one entry; if it asks something new, `contestant` gets a method
for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq

from benchmarks import data, peers
from benchmarks.contestant import Contestant, RowNumbers, Where
from benchmarks.data import Sample, Scale
from benchmarks.on_spark import FretsawOnSpark, OnSpark, Spark, SparkOrc
from benchmarks.orc_peers import PyarrowOrc, Pyorc
from benchmarks.ours import Fretsaw, FretsawByArrow

SUMMED = ("distance", "fare", "tip")
FEW_OF_MANY = ("f00010", "f05000", "f09990")
INSIDE = 7_000  # rows from where a row group begins to the inside of a page
START = datetime.fromisoformat(str(data.FIRST_PICKUP))
# 200,000 drivers at random; values follow a gamma distribution, and one in five is missing.
TENTH, HUNDREDTH = (Where("driver_id", (("<", below),)) for below in (20_000, 2_000))
THOUSANDTH = Where("value", ((">", 180.0),))
AROUND_MIDNIGHT = Where(
    "pickup_at", ((">=", datetime(2024, 5, 29, 23, 44)), ("<", datetime(2024, 5, 30, 0, 16)))
)
FIRST_DAY, END_DAY = date(2024, 5, 1), date(2024, 5, 11)
TEN_DAYS = Where(data.LAKE_KEY.name, ((">=", FIRST_DAY), ("<", END_DAY)))


@dataclass(frozen=True, slots=True)
class Workload:
    """One thing to read, for everybody: `goal` is fretsaw's time over that of the best peer."""

    name: str
    what: str
    goal: float
    sample: Callable[[Scale], Sample]
    run: Callable[[Contestant, Sample], pa.Table]
    rows: Callable[[Sample], RowNumbers] | None = None
    """The rows it needs, sorted; all of them if there is no function."""
    columns: Sequence[str] | None = None
    """The columns it needs; all of them if None."""
    tolerance: float = 0.0
    """How far floats may differ, relatively: sums depend on the order of adding."""
    where: Callable[[Sample], Where] | None = None
    """The condition that finds its rows in the files."""
    window: Literal["head", "tail"] | None = None
    """Whether its rows are the first or the last that match."""
    files: Callable[[Sample], Sequence[Path]] = lambda sample: sample.files
    """The files it needs."""
    contestants: Callable[[], list[Contestant]] | None = None
    """Who takes part, if not those of Parquet files."""
    ordered: bool = True
    """Whether the rows must come in the order of the files."""


def contestants() -> list[Contestant]:
    """fretsaw with each of its decoders, and then the peers."""
    return [
        Fretsaw(),
        FretsawByArrow(),
        peers.ParquetFile(),
        peers.Dataset(),
        peers.Polars(),
        peers.DuckDB(),
        peers.DataFusion(),
        Spark(),
    ]


def orc_contestants() -> list[Contestant]:
    """fretsaw, and then the peers that read ORC files."""
    return [Fretsaw(), PyarrowOrc(), Pyorc(), SparkOrc()]


def spark_contestants() -> list[Contestant]:
    """fretsaw as a source for Spark, and Spark's own."""
    return [FretsawOnSpark(), Spark()]


def _orc_trips(codec: str) -> Callable[[Scale], Sample]:
    return partial(data.trips_as_orc, codec=codec)


def _trips(codec: str) -> Callable[[Scale], Sample]:
    return partial(data.trips, codec=codec)


def _three_quarters(sample: Sample) -> int:
    return sample.rows * 3 // 4


@cache
def _random_rows(sample: Sample) -> RowNumbers:
    rng = np.random.default_rng(data.SEED)
    return np.sort(rng.choice(sample.rows, 1_000, replace=False)).astype(np.int64)


@cache
def _middle_of_a_file(sample: Sample) -> int:
    """Three quarters of the rows and half a file: not where one begins, which would be easy."""
    return _three_quarters(sample) + sample.rows // len(sample.files) // 2


def _pickup(row: int) -> datetime:
    """A time right before the pickup of this row of `trips`, and after that of the row before."""
    return START + timedelta(microseconds=row * data.PICKUP_GAP_US)


def _trip_id(row: int) -> int:
    return row * 3 + 1_000_000


def _five_minutes(sample: Sample) -> Where:
    start = _pickup(_inside(sample))
    return Where("pickup_at", ((">=", start), ("<", start + timedelta(minutes=5))))


def _one_trip(sample: Sample) -> Where:
    return Where("trip_id", (("==", _trip_id(_inside(sample))),))


@cache
def _one_token(sample: Sample) -> Where:
    """The unique string of a row within a page, which nothing but the file itself tells."""
    tokens = pq.read_table(sample.path, columns=["token"])["token"]
    return Where("token", (("==", tokens[_inside(sample)].as_py()),))


def _three_quarters_of_trips(sample: Sample) -> Where:
    """From an eighth to seven eighths, from within a page to within a page."""
    low, high = (sample.rows * eighths // 8 + INSIDE for eighths in (1, 7))
    return Where("pickup_at", ((">=", _pickup(low)), ("<", _pickup(high))))


def _two_thousand_events(sample: Sample) -> Where:
    start = START + timedelta(seconds=_inside(sample))
    return Where("at", ((">=", start), ("<", start + timedelta(seconds=2_000))))


def _ten_days(sample: Sample) -> list[Path]:
    """The files in the folders of these days."""
    days = {path: date.fromisoformat(path.parent.name.split("=")[1]) for path in sample.files}
    return [path for path, day in days.items() if FIRST_DAY <= day < END_DAY]


def _ids_around_midnight(sample: Sample) -> Where:
    """The last and the first ninetieth of two days, by the key, of which Spark knows bounds."""
    rows = sample.rows // len(sample.files)
    midnight = _three_quarters(sample) // rows * rows
    low, high = (_trip_id(midnight + rows // 90 * sign) for sign in (-1, 1))
    return Where("trip_id", ((">=", low), ("<", high)))


def _most_matches(sample: Sample) -> int:
    """About three quarters of the rows that match, if a tenth do."""
    return _three_quarters(sample) // 10


def _inside(sample: Sample) -> int:
    """A row three quarters in, and not where a row group or a page begins."""
    return _three_quarters(sample) + INSIDE


@cache
def _matching(sample: Sample, where: Where) -> RowNumbers:
    """The rows that match, found by reading the whole column."""
    table = pa.concat_tables(_column(file, where.column) for file in sample.files)
    numbered = table.append_column("row", pa.array(np.arange(len(table))))
    rows: RowNumbers = numbered.filter(where.of(pc.field(where.column)))["row"].to_numpy()
    return rows


def _column(file: Path, name: str) -> pa.Table:
    read = orc.read_table if file.suffix == ".orc" else pq.read_table
    return read(file, columns=[name])


def _all_rows(reader: Contestant, path: str, where: Where) -> pa.Table:
    return reader.filter(path, where)


def _one_row(reader: Contestant, path: str, where: Where) -> pa.Table:
    return reader.find(path, where)


def _filter(
    name: str,
    what: str,
    goal: float,
    sample: Callable[[Scale], Sample],
    where: Callable[[Sample], Where],
    run: Callable[[Contestant, str, Where], pa.Table] = _all_rows,
    part: slice = slice(None),
    window: Literal["head", "tail"] | None = None,
    columns: Sequence[str] | None = None,
) -> Workload:
    """What needs the rows that match a condition, or a part of them."""
    return Workload(
        name,
        what,
        goal,
        sample,
        lambda reader, sample: run(reader, str(sample.path), where(sample)),
        rows=lambda sample: _matching(sample, where(sample))[part],
        columns=columns,
        where=where,
        window=window,
    )


RANGE = _filter(
    "range",
    "5 minutes of the sorted timestamp, 1,140 rows, all columns",
    0.4,
    _trips("snappy"),
    _five_minutes,
)
OFFSET = Workload(
    "offset",
    "skip three quarters of the rows, head 10, all columns",
    0.3,
    _trips("snappy"),
    lambda reader, sample: reader.window(str(sample.path), _three_quarters(sample), 10),
    rows=lambda sample: np.arange(10) + _three_quarters(sample),
)
TAKE = Workload(
    "take",
    "1,000 row numbers at random, all columns",
    0.4,
    _trips("snappy"),
    lambda reader, sample: reader.take(str(sample.path), _random_rows(sample)),
    rows=_random_rows,
)
SCAN = Workload(
    "scan",
    "sum of 3 columns, streaming, full file",
    0.9,
    _trips("snappy"),
    lambda reader, sample: reader.sums(str(sample.path), SUMMED),
    columns=SUMMED,
    tolerance=1e-9,
)


def _scan(codec: str, goal: float) -> Workload:
    what = f"{SCAN.what}, {codec}"
    return replace(SCAN, name=f"{SCAN.name}-{codec}", what=what, goal=goal, sample=_trips(codec))


def _on_orc(workload: Workload, codec: str, goal: float) -> Workload:
    """The same on an ORC file."""
    return replace(
        workload,
        name=f"orc-{workload.name}-{codec}",
        what=f"{workload.what}, ORC, {codec}",
        goal=goal,
        sample=_orc_trips(codec),
        contestants=orc_contestants,
    )


def _on_spark(run: Callable[[OnSpark, str, Sample], pa.Table], **rest: Any) -> Workload:
    """Work on `lake` by those who run on Spark."""

    def run_there(reader: Contestant, sample: Sample) -> pa.Table:
        assert isinstance(reader, OnSpark)
        return run(reader, str(sample.path), sample)

    return Workload(run=run_there, sample=data.lake, contestants=spark_contestants, **rest)


WORKLOADS = (
    RANGE,
    _filter("point", "one value of a sorted key, all columns", 0.4, _trips("snappy"), _one_trip),
    _filter(
        "needle",
        "one value of an unsorted unique string, no Bloom filter, all columns",
        0.6,
        _trips("snappy"),
        _one_token,
        _one_row,
    ),
    _filter(
        "bloom",
        "one value of an unsorted unique string, with Bloom filters, all columns",
        0.5,
        data.trips_with_bloom,
        _one_token,
        _one_row,
    ),
    OFFSET,
    Workload(
        "tail",
        "last 10 rows, all columns",
        0.3,
        _trips("snappy"),
        lambda reader, sample: reader.tail(str(sample.path), 10),
        rows=lambda sample: np.arange(sample.rows - 10, sample.rows),
    ),
    _filter(
        "tail-filter",
        "last 10 rows that match a predicate, as 1% do at random, all columns",
        0.25,
        _trips("snappy"),
        lambda sample: HUNDREDTH,
        lambda reader, path, where: reader.filter_tail(path, where, 10),
        part=slice(-10, None),
        window="tail",
    ),
    _filter(
        "first",
        "first 100 rows that match a predicate, as 10% do at random, all columns",
        0.7,
        _trips("snappy"),
        lambda sample: TENTH,
        lambda reader, path, where: reader.filter_head(path, where, 100),
        part=slice(100),
        window="head",
    ),
    _filter(
        "sparse",
        "rows that match a predicate, as 1% do at random, all columns",
        0.8,
        _trips("snappy"),
        lambda sample: HUNDREDTH,
    ),
    _filter(
        "count",
        "how many rows are in three quarters of the sorted timestamp: metadata decides most pages",
        0.13,
        _trips("snappy"),
        _three_quarters_of_trips,
        lambda reader, path, where: reader.filter_count(path, where),
        columns=(),
    ),
    TAKE,
    _scan("snappy", 0.9),
    _scan("zstd", 0.9),
    _scan("gzip", 0.9),
    Workload(
        "rows",
        "a loop over the first 1% of the rows, as Python objects of all columns",
        0.4,
        _trips("snappy"),
        lambda reader, sample: reader.loop(str(sample.path), sample.rows // 100, "fare"),
        rows=lambda sample: np.arange(sample.rows // 100),
    ),
    Workload(
        "nested-rows",
        "the same over events: lists of structs, maps, structs",
        0.4,
        data.events,
        lambda reader, sample: reader.loop(str(sample.path), sample.rows // 100, "value"),
        rows=lambda sample: np.arange(sample.rows // 100),
    ),
    Workload(
        "wide",
        "3 of 10,000 columns",
        0.7,
        data.wide,
        lambda reader, sample: reader.read(str(sample.path), FEW_OF_MANY),
        columns=FEW_OF_MANY,
    ),
    Workload(
        "nested",
        "2,000 rows from three quarters in, all columns: lists of structs, maps, structs",
        0.4,
        data.events,
        lambda reader, sample: reader.window(str(sample.path), _three_quarters(sample), 2_000),
        rows=lambda sample: np.arange(2_000) + _three_quarters(sample),
    ),
    _filter(
        "nested-range",
        "2,000 seconds of the sorted timestamp of events, 2,000 rows, all columns",
        0.6,
        data.events,
        _two_thousand_events,
    ),
    _filter(
        "nested-rare",
        "events that match a predicate, as 0.1% do at random, all columns",
        0.8,
        data.events,
        lambda sample: THOUSANDTH,
    ),
    Workload(
        "lake-window",
        "200 files in Hive folders: skip three quarters of the rows, head 1,000, all columns",
        0.7,
        data.lake,
        lambda reader, sample: reader.folder_window(
            str(sample.path), data.LAKE_KEY, _middle_of_a_file(sample), 1_000
        ),
        rows=lambda sample: np.arange(1_000) + _middle_of_a_file(sample),
    ),
    _filter(
        "lake-range",
        "200 files in Hive folders: 32 minutes of the timestamp, in two of them, all columns",
        0.7,
        data.lake,
        lambda sample: AROUND_MIDNIGHT,
        lambda reader, path, where: reader.folder_filter(path, data.LAKE_KEY, where),
    ),
    Workload(
        "lake-plan",
        "200 files in Hive folders: how many rows, which is planning alone",
        0.7,
        data.lake,
        lambda reader, sample: reader.folder_count(str(sample.path), data.LAKE_KEY),
        columns=(),
    ),
    Workload(
        "lake-days",
        "200 files in Hive folders: how many rows in ten of them, which is planning alone",
        0.7,
        data.lake,
        lambda reader, sample: reader.folder_filter_count(
            str(sample.path), data.LAKE_KEY, TEN_DAYS
        ),
        columns=(),
        files=_ten_days,
    ),
    *(
        _on_orc(workload, codec, goal)
        for codec in ("zlib", "zstd")
        for workload, goal in ((RANGE, 0.15), (OFFSET, 0.8), (TAKE, 0.3), (SCAN, 0.6))
    ),
    _on_spark(
        lambda reader, path, sample: reader.folder_rows(path, _ids_around_midnight(sample)),
        name="spark-range",
        what="on Spark, 200 files in Hive folders: a range of the sorted key, in two, all columns",
        goal=0.5,
        rows=lambda sample: _matching(sample, _ids_around_midnight(sample)),
        where=_ids_around_midnight,
        ordered=False,
    ),
    _on_spark(
        lambda reader, path, sample: reader.folder_filter_window(
            path, TENTH, _most_matches(sample), 1_000
        ),
        name="spark-window",
        what="on Spark, 200 files in Hive folders: of the rows that match a predicate, as 10% do "
        "at random, skip three quarters, head 1,000, all columns",
        goal=0.5,
        rows=lambda sample: _matching(sample, TENTH)[_most_matches(sample) :][:1_000],
        where=lambda sample: TENTH,
        window="head",
    ),
)
