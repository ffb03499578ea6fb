"""The same flat and nested data by five writers: rows and projections, against pyarrow's read."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.kernels import each_decoder
from tests.support.nested_data import (
    Kinds,
    assert_projection,
    assert_same_nested,
    nested_table,
    paths,
    rows_of,
    tree_of,
)
from tests.support.pages import random_array, row_groups
from tests.support.writers import by_fastparquet, need, spark_file

pytestmark = [pytest.mark.slow, each_decoder()]

COMMON = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(7, 2), pa.decimal128(17, 4), pa.decimal128(30, 5), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string(), pa.large_string(), pa.binary()),
)
MORE = (*COMMON, pa.uint8(), pa.uint32(), pa.uint64(), pa.timestamp("ns"))
PLAIN = ("struct", "list", "large_list")
PANDAS = (pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64(), pa.timestamp("ns"))

Write = Callable[[pa.Table, Path, Any], None]


@dataclass(frozen=True)
class Writer:
    """A library that writes Parquet: what it can express, whether it makes small pages."""

    write: Write
    kinds: Kinds
    small_pages: bool = True
    rows: int = 150
    seeds: tuple[int, ...] = tuple(range(8))


def by_pyarrow(table: pa.Table, path: Path, version: str) -> None:
    pages = {"data_page_size": 200, "write_batch_size": 8, "max_rows_per_page": 9}
    pq.write_table(table, path, row_group_size=60, data_page_version=version, **pages)


def by_duckdb(table: pa.Table, path: Path, version: str) -> None:
    options = f"FORMAT parquet, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version}"
    with need("duckdb").connect() as connection:
        connection.register("source", table)
        connection.execute(f"COPY (FROM source) TO '{path}' ({options})")


def by_polars(table: pa.Table, path: Path, compression: str) -> None:
    frame = need("polars").from_arrow(table)
    frame.write_parquet(path, compression=compression, row_group_size=60, data_page_size=200)


WRITERS = {
    "pyarrow": Writer(by_pyarrow, Kinds()),
    "duckdb": Writer(by_duckdb, Kinds(MORE, (*PLAIN, "map")), False, 5_000, (0, 1, 2)),
    "polars": Writer(by_polars, Kinds(MORE, (*PLAIN, "fixed_size_list"))),
    "fastparquet": Writer(by_fastparquet, Kinds((*PANDAS, pa.bool_(), pa.string()), ())),
}
OPTIONS: dict[str, tuple[Any, ...]] = {
    "pyarrow": ("1.0", "2.0"),
    "duckdb": ("V1", "V2"),
    "polars": ("zstd", "uncompressed"),
    "fastparquet": (1, 2),
}


def flat_table(kinds: Kinds, rows: int) -> pa.Table:
    """A column of every leaf type, with and without nulls."""
    rng = np.random.default_rng(4)
    shapes = [(kind, nulls) for kind in kinds.leaves for nulls in (0.0, 0.3)]
    columns = [random_array(kind, rows, nulls, rng) for kind, nulls in shapes]
    return pa.table(columns, [f"c{i}" for i in range(len(columns))])


def tables(writer: Writer) -> Iterator[pa.Table]:
    """The flat table, and nested ones if the writer can express any."""
    yield flat_table(writer.kinds, writer.rows)
    if writer.kinds.branches:
        for seed in writer.seeds:
            yield nested_table(seed, writer.rows, kinds=writer.kinds)


def has_small_pages(path: Path) -> bool:
    groups = row_groups(path.read_bytes())
    return any(len(chunk.pages) > 1 for group in groups for chunk in group.chunks)


def assert_read_as_pyarrow(path: Path, seed: int) -> None:
    """Whole, by position and by path: what pyarrow reads of the same file."""
    whole = pq.ParquetFile(path).read()
    scan, rng, total = fs.scan(path), random.Random(seed), whole.num_rows
    assert scan.schema.equals(whole.schema, check_metadata=True)
    assert_same_nested(scan.to_arrow(), whole)
    for _ in range(5):
        start, length = rng.randint(0, total), rng.choice([1, 10, 100, total])
        window = scan.skip(start).head(length).to_arrow()
        assert_same_nested(window, whole.slice(start, length))
    assert_same_nested(scan.tail(total // 3).to_arrow(), whole.slice(total - total // 3))
    rows = rng.sample(range(total), 12)
    assert_same_nested(scan.take(rows), rows_of(whole, rows))
    assert_same_nested(scan.select_rows(rows).to_arrow(), rows_of(whole, sorted(rows)))
    everywhere = [found for item in whole.schema for found in paths(item)]
    for _ in range(5):
        chosen = [rng.choice(everywhere) for _ in range(rng.randint(1, 4))]
        start, length = rng.randint(0, total), rng.choice([1, 10, 100])
        window = scan.select(*chosen).skip(start).head(length).to_arrow()
        assert_projection(window, whole.slice(start, length), tree_of(chosen))


@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name in WRITERS for option in OPTIONS[name]]
)
def test_files_are_what_pyarrow_reads(name: str, option: Any, tmp_path: Path) -> None:
    writer = WRITERS[name]
    for number, table in enumerate(tables(writer)):
        path = tmp_path / f"{number}.parquet"
        writer.write(table, path, option)
        assert pq.ParquetFile(path).metadata.num_rows == table.num_rows
        assert has_small_pages(path) == writer.small_pages
        assert_read_as_pyarrow(path, number)


def test_types_that_only_duckdb_writes(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    values = {
        "span": "to_days(i) + to_hours(3)",
        "id": "md5(i::varchar)::uuid",
        "mood": "if(i % 2 = 0, 'sad', 'ok')::enum('sad', 'ok')",
        "doc": """('{"i": ' || i || '}')::json""",
        "at": "'12:00:01.5+00'::timetz",
    }
    columns = ", ".join(
        f"{value} AS {name}, if(i % 5 = 0, NULL, [{value}, NULL]) AS {name}_list, "
        f"if(i % 3 = 0, NULL, {{'x': {value}, 'y': map {{i: {value}}}}}) AS {name}_struct"
        for name, value in values.items()
    )
    with need("duckdb").connect() as connection:
        query = f"SELECT {columns} FROM range(5000) source(i)"
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    assert_read_as_pyarrow(path, 0)


# Version of the pages, how timestamps are stored, whether lists are the two-level ones of old.
SPARK_LAYOUTS = [
    ("PARQUET_1_0", "INT96", "false"),
    ("PARQUET_2_0", "TIMESTAMP_MICROS", "false"),
    ("PARQUET_1_0", "TIMESTAMP_MICROS", "true"),
    ("PARQUET_2_0", "INT96", "true"),
]
SPARK_KINDS = Kinds(COMMON, (*PLAIN, "map"))
SPARK_SEEDS = range(4)
# Spark makes the results of expressions required where it can prove it: so do these.
REQUIRED = (
    "id",
    "named_struct('x', id, 'y', array(id, id + 1)) AS required",
    "if(id % 7 = 0, NULL, named_struct('x', id, 'y', cast(id AS string))) AS optional",
    "transform(sequence(0, id % 4), i -> named_struct('p', i * 1.5D, 'q', nullif(i, 2))) AS items",
    "map(cast(id AS string), array(named_struct('x', id)), 'k', array()) AS attrs",
    "if(id % 5 = 0, NULL, array(NULL, array(id), array())) AS lists",
    "timestamp_seconds(id) AS at",
)


@pytest.fixture(scope="session")
def spark_files(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files that Spark makes of the same data, in small pages, in every layout."""
    folder = tmp_path_factory.mktemp("spark")
    frames = [spark.range(0, 300, 1, 1).selectExpr(*REQUIRED)]
    sources = [nested_table(seed, 300, kinds=SPARK_KINDS) for seed in SPARK_SEEDS]
    for number, table in enumerate([flat_table(SPARK_KINDS, 300), *sources]):
        source = folder / f"source-{number}.parquet"
        pq.write_table(table, source)
        frames.append(spark.read.parquet(str(source)).coalesce(1))
    return [
        spark_file(frame, folder / f"{'-'.join(layout)}-{number}", layout)
        for layout in SPARK_LAYOUTS
        for number, frame in enumerate(frames)
    ]


@pytest.mark.spark
def test_files_of_spark_are_what_pyarrow_reads(spark_files: list[Path]) -> None:
    # One test, so that tests in parallel do not start a JVM each.
    assert len(spark_files) == len(SPARK_LAYOUTS) * (2 + len(SPARK_SEEDS))
    for number, path in enumerate(spark_files):
        assert has_small_pages(path), path
        assert_read_as_pyarrow(path, number)
