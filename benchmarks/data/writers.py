"""Trips as other writers store them, each with its own defaults: codec, encodings, sizes of pages
and row groups, and whether there is a page index.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import polars as pl

from benchmarks.data.store import VERSION, Sample, Scale, made_once
from benchmarks.data.trips import trips
from benchmarks.on_spark import session


def trips_by(scale: Scale, writer: str) -> Sample:
    """The rows of `trips` in their order, in one file by one of `WRITERS`."""
    name = f"trips-{scale.trips_rows}-{scale.trips_group}-by-{writer}-v{VERSION}.parquet"
    source = str(trips(scale, "snappy").path)
    return Sample(made_once(name, lambda path: WRITERS[writer](source, path)), scale.trips_rows)


def _by_duckdb(source: str, path: Path) -> None:
    rows = f"SELECT * FROM read_parquet('{source}')"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")


def _by_polars(source: str, path: Path) -> None:
    pl.scan_parquet(source).sink_parquet(path)


def _by_spark(source: str, path: Path) -> None:
    folder = path.with_suffix(".folder")
    # One task reads the file in order and writes one file.
    session().conf.set("spark.sql.files.maxPartitionBytes", str(2**40))
    try:
        session().read.parquet(source).coalesce(1).write.parquet(str(folder))
        (part,) = folder.glob("*.parquet")
        part.replace(path)
    finally:
        session().conf.unset("spark.sql.files.maxPartitionBytes")
        shutil.rmtree(folder, ignore_errors=True)


WRITERS: Mapping[str, Callable[[str, Path], None]] = {
    "duckdb": _by_duckdb,
    "spark": _by_spark,
    "polars": _by_polars,
}
