"""Jobs on Spark: how they are planned, what they read, what they do with corrupt files and results.

Work is held against the report of a job, and against files whose other pages are destroyed.
"""

import io
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import in_blocks
from tests.support.lake import Lake, assert_rows

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")
from fretsaw.spark import pipeline
from fretsaw.spark.pipeline import Job
from tests.support.spark_files import FORMATS, many, numbers, opened, put, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SKIPPING = pytest.mark.filterwarnings("ignore::fretsaw.CorruptFileWarning")


# Planning, splits and tasks


@pytest.mark.parametrize("missing", ["error", "null"])
@pytest.mark.parametrize("format", FORMATS)
def test_footers_of_many_files_are_read_by_tasks(
    format: str, missing: Any, spark: Any, tmp_path: Path
) -> None:
    count = pipeline.MANY_FILES + 50
    folder = tmp_path / "files"
    originals = many(tmp_path / "originals", 2, format)
    folder.mkdir()
    for at in range(count):
        os.link(originals / f"{at % 2:05}", folder / f"{at:05}")
    with fs.trace() as trace:
        job = Job(fs.scan(folder, missing=missing).filter(col("n") != 3), spark)
        assert numbers(job.dataframe()) == [0, 1, 2, 4, 5, 6, 7, 8, 9] * (count // 2)
    assert len(opened(trace)) <= 3
    assert job.report.planned_files == count
    assert Job(fs.scan(folder, missing=missing).filter(col("n") > 3), spark).count() == 3 * count


@SKIPPING
def test_a_corrupt_file_among_many_is_found_by_tasks(spark: Any, tmp_path: Path) -> None:
    """Even where it is the one that would settle the columns."""
    count = pipeline.MANY_FILES + 20
    originals, folder = many(tmp_path / "originals", 1), tmp_path / "files"
    folder.mkdir()
    for at in range(1, count):
        os.link(originals / "00000", folder / f"{at:05}")
    (folder / "00000").write_bytes((originals / "00000").read_bytes()[:-20])
    with fs.trace() as trace:
        job = Job(fs.scan(folder, on_corrupt="skip"), spark)
        assert numbers(job.dataframe()) == [0, 1, 2, 3, 4] * (count - 1)
    assert len(opened(trace)) <= 5
    assert any("00000" in skipped for skipped in job.report.skipped)


def test_small_files_are_packed(planner: str, spark: Any, tmp_path: Path) -> None:
    job = Job(fs.scan(many(tmp_path, 60)), spark)
    frame = job.dataframe()
    assert frame.rdd.getNumPartitions() <= 8
    assert numbers(frame) == list(range(300))
    assert job.report.tasks_done <= 8


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of about 48 MB in each format, in twelve blocks; `n` rises."""
    rng = np.random.default_rng(1)
    rows = 3_000_000
    table = pa.table({"n": np.arange(rows), "x": rng.integers(-(2**62), 2**62, rows)})
    folder = tmp_path_factory.mktemp("large")
    pq.write_table(table, folder / "parquet", row_group_size=250_000, compression="none")
    orc.write_table(table, folder / "orc", stripe_size=2 << 20, compression="uncompressed")
    assert len(in_blocks((folder / "orc").read_bytes())) > 4
    return {format: folder / format for format in FORMATS}


@pytest.mark.parametrize("format", FORMATS)
def test_all_cores_work_on_one_large_file(
    format: str, large: dict[str, Path], spark: Any, tmp_path: Path
) -> None:
    marks = str(tmp_path)

    def marked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            yield batch
        if rows:
            Path(f"{marks}/{uuid4().hex}-{rows}").touch()

    job = Job(fs.scan(large[format]).select("x"), spark)
    frame = job.dataframe()
    assert frame.mapInArrow(marked, frame.schema).count() == 3_000_000
    assert job.report.tasks_done >= 2
    read = [int(mark.name.split("-")[1]) for mark in tmp_path.iterdir()]
    assert sum(read) == 3_000_000
    assert max(read) <= 2_000_000


@pytest.mark.parametrize("format", FORMATS)
def test_splits_are_sized_by_the_bytes_that_survive(
    format: str, large: dict[str, Path], spark: Any
) -> None:
    scan = fs.scan(large[format])
    whole, column = Job(scan, spark), Job(scan.select("x"), spark)
    few = Job(scan.filter(col("n") < 100_000), spark)
    assert few.bytes < column.bytes < whole.bytes <= large[format].stat().st_size
    assert few.bytes < whole.bytes / 4
    target = whole.bytes // 6
    parts = {
        job: Job(job_scan, spark, target_bytes=target).dataframe().rdd.getNumPartitions()
        for job, job_scan in [("whole", scan), ("few", scan.filter(col("n") < 100_000))]
    }
    assert parts["few"] <= 2
    assert 4 <= parts["whole"] <= 13


def test_folders_that_cannot_match_are_not_opened(planner: str, lake: Lake, spark: Any) -> None:
    job = Job(fs.scan(lake.root).filter("kind = 1 and fare is null").select("id"), spark)
    expected = lake.matching("kind = 1 and fare is null")
    assert numbers(job.dataframe(), "id") == expected
    assert job.report.planned_files == 3
    assert job.report.rows == len(expected)


# Corrupt files


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def data_wiped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = [cut_short, data_wiped, emptied]


@pytest.fixture(params=DAMAGES, ids=lambda damage: damage.__name__)
def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """Files of which the fourth is damaged."""
    folder = many(tmp_path, 8, rows=50)
    request.param(folder / "00003")
    return sorted(folder.iterdir())


def test_a_corrupt_file_fails_the_job_and_is_named(
    damaged: list[Path], planner: str, spark: Any
) -> None:
    with pytest.raises(Exception, match="00003"):
        fs.scan(damaged).to_spark(spark).toArrow()
    with pytest.raises(fs.FretsawError, match="00003"):
        list(Job(fs.scan(damaged), spark).batches())
    with pytest.raises(fs.FretsawError, match="00003"):
        Job(fs.scan(damaged).filter(col("n") != 155), spark).count()


@SKIPPING
def test_a_corrupt_file_can_be_skipped(damaged: list[Path], planner: str, spark: Any) -> None:
    scan = fs.scan(damaged, on_corrupt="skip")
    expected = [n for n in range(400) if n // 50 != 3]
    job = Job(scan, spark)
    assert numbers(job.dataframe()) == expected
    [skipped] = job.report.skipped
    assert str(damaged[3]) in skipped
    frame = scan.to_spark(spark)
    assert sorted(numbers(frame)) == expected
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", fs.CorruptFileWarning)
        job = Job(scan.filter(col("n") != 155), spark)
        assert job.count() == len(expected)
    told = [str(one.message) for one in caught if one.category is fs.CorruptFileWarning]
    assert len(told) == 1
    assert "00003" in told[0]
    assert any(str(damaged[3]) in skipped for skipped in job.report.skipped)


@SKIPPING
def test_windows_count_the_rows_of_the_other_files(
    damaged: list[Path], planner: str, spark: Any
) -> None:
    expected = [n for n in range(400) if n // 50 != 3 and n != 155][120:260]
    whole = fs.scan(damaged, on_corrupt="skip")
    scan = whole.filter(col("n") != 155).skip(120).head(140)
    assert numbers(Job(scan, spark).dataframe()) == expected


@SKIPPING
@pytest.mark.parametrize("damage", [cut_short, data_wiped])
def test_a_corrupt_first_file_is_skipped_in_a_folder_too(
    damage: Callable[[Path], None], planner: str, spark: Any, tmp_path: Path
) -> None:
    damage(many(tmp_path, 3, rows=50) / "00000")
    whole = fs.scan(tmp_path, on_corrupt="skip")
    job = Job(whole, spark)
    assert numbers(job.dataframe()) == list(range(50, 150))
    assert any("00000" in skipped for skipped in job.report.skipped)
    tail = whole.filter(col("n") != 60).tail(120)
    expected = [n for n in range(50, 150) if n != 60]
    assert numbers(tail.to_spark(spark, ordered=True)) == expected
    for path in tmp_path.iterdir():
        damage(path)
    with pytest.raises(fs.FretsawError, match=str(tmp_path)):
        Job(fs.scan(tmp_path).filter(col("n") != 60), spark).count()


def test_a_file_that_vanishes_is_named(planner: str, spark: Any, tmp_path: Path) -> None:
    frame = fs.scan(many(tmp_path, 4)).to_spark(spark)
    (tmp_path / "00002").unlink()
    with pytest.raises(Exception, match="00002"):
        frame.toArrow()


def test_files_that_disagree_are_no_corruption(planner: str, spark: Any, tmp_path: Path) -> None:
    many(tmp_path, 3)
    put(tmp_path / "00003", pa.table({"n": ["text"]}), "parquet", 1)
    with pytest.raises(Exception, match=r"00003.*'n'"):
        fs.scan(tmp_path, on_corrupt="skip").to_spark(spark).toArrow()
    pq.write_table(pa.table({"m": [1]}), tmp_path / "00003")
    with pytest.raises(Exception, match=r"00003.*'n'"):
        fs.scan(tmp_path).to_spark(spark).toArrow()


def test_mistakes_are_told_before_a_task_runs(planner: str, lake: Lake, spark: Any) -> None:
    scan = fs.scan(lake.root)
    with pytest.raises(fs.ColumnNotFoundError, match="fair"):
        scan.select("fair").to_spark(spark)
    with pytest.raises(fs.PredicateTypeError):
        scan.filter(col("id") == "x").to_spark(spark)
    with pytest.raises(ValueError, match="row"):
        scan.select_rows([len(lake.rows)]).to_spark(spark).toArrow()
    with pytest.raises(fs.SourceNotFoundError):
        fs.scan(lake.root / "nothing").to_spark(spark)


# Results at the driver, and as files


def test_batches_come_in_order_with_types_of_arrow(
    planner: str, spark: Any, tmp_path: Path
) -> None:
    kinds = {"u64": pa.uint64(), "f16": pa.float16(), "ns": pa.timestamp("ns")}
    kinds |= {"wide": pa.large_string(), "span": pa.duration("us")}
    values = pa.array(range(1_000), pa.int64())
    columns = [values.cast(kind) for kind in (pa.uint64(), pa.float16(), pa.timestamp("ns"))]
    table = pa.table([*columns, values.cast(pa.string()), values.cast(pa.duration("us"))], [*kinds])
    table = table.cast(pa.schema(kinds))
    for at in range(4):
        put(tmp_path / f"{at}", table.slice(at * 250, 250), "parquet", 60)
    job = Job(fs.scan(tmp_path).skip(10).head(900), spark, target_bytes=1)
    found = pa.Table.from_batches(job.batches(), job.schema)
    assert found.equals(table.slice(10, 900))
    assert job.report.rows == 900


@pytest.mark.parametrize("format", FORMATS)
def test_results_as_a_folder_of_files(
    format: str, planner: str, lake: Lake, spark: Any, tmp_path: Path
) -> None:
    scan = fs.scan(lake.root).filter("city = 'Oslo'").select("id", "price")
    expected = [
        {key: lake.rows[at][key] for key in ("id", "price")}
        for at in lake.matching("city = 'Oslo'")
    ]
    assert Job(scan, spark, target_bytes=4_000).write(tmp_path / "out", format) == len(expected)
    assert fs.scan(tmp_path / "out").to_arrow().to_pylist() == expected
    theirs = spark.read.format(format).load(f"{tmp_path}/out")
    assert_rows(rows_of(theirs), expected, ordered=False)


def test_a_job_that_fails_leaves_no_files(spark: Any, tmp_path: Path) -> None:
    folder = many(tmp_path / "in", 6, rows=50)
    data_wiped(folder / "00004")
    with pytest.raises(fs.FretsawError, match="00004"):
        Job(fs.scan(folder), spark, target_bytes=1).write(tmp_path / "out", "parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_job_can_be_made_of_an_unpickled_scan(lake: Lake, spark: Any) -> None:
    scan = pickle.loads(pickle.dumps(fs.scan(lake.root).filter("day < '2024-02-01'").tail(5)))
    expected = lake.matching("day < '2024-02-01'")[-5:]
    assert numbers(scan.to_spark(spark, ordered=True), "id") == expected


def test_splits_stay_what_they_are(spark: Any, tmp_path: Path) -> None:
    for place, extra in enumerate(("x", "y")):
        rows = range(10 * place, 10 * place + 10)
        table = pa.table({"n": rows, extra: rows})
        pq.write_table(table, tmp_path / f"{place}.parquet", row_group_size=5)
    scan = fs.scan(tmp_path, missing="null").filter(col("n") != 7)
    for whole in (scan.with_row_index(), scan.select_rows([1, 12, 19]), scan):
        for split in whole.splits(target_bytes=1):
            assert spark_rows(split, spark) == split.to_arrow().to_pylist()


def test_the_columns_of_many_files_are_the_same_whatever_folders_leave(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MANY_FILES", 1)
    for key, table in ((1, {"n": [1]}), (2, {"n": [2], "z": [3]}), (3, {"n": [4]})):
        (tmp_path / f"k={key}").mkdir()
        pq.write_table(pa.table(table), tmp_path / f"k={key}" / "file.parquet")
    for text in ("k <> 2", "k > 0", "k > 9"):
        scan = fs.scan(tmp_path, missing="null").filter(text)
        assert scan.to_spark(spark).columns == scan.schema.names == ["n", "z", "k"]
        assert spark_rows(scan, spark) == scan.to_arrow().to_pylist()


def test_bytes_of_any_kind_go_to_the_tasks(spark: Any) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": range(30)}), sink, row_group_size=10)
    for data in (sink.getvalue(), bytearray(sink.getvalue()), memoryview(sink.getvalue())):
        scan = fs.scan(data).filter(col("n") != 3).skip(4).head(20)
        assert spark_rows(scan, spark) == scan.to_arrow().to_pylist()


def spark_rows(scan: fs.Scan, spark: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in scan.to_spark(spark, ordered=True).collect()]
