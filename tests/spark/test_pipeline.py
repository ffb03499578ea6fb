"""Scans on Spark: the rows of the oracle, read by tasks, and what is read to find them.

Rows are held against DuckDB, lists and `spark.read`; work against the report of a job, and against
files whose other pages are destroyed. `FRETSAW_MORE` multiplies the random scans.
"""

import io
import os
import pickle
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.support.formats import even, in_blocks, written
from tests.support.lake import Lake, Row, assert_rows, make_lake, random_request
from tests.support.orc_files import layout_of
from tests.support.pages import Span, row_groups

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

from fretsaw.spark import pipeline
from fretsaw.spark.pipeline import Job

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
FORMATS = ("parquet", "orc")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture(params=["driver", "tasks"])
def planner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads the footers."""
    monkeypatch.setattr(pipeline, "MANY_FILES", 1_000_000 if request.param == "driver" else 0)
    monkeypatch.setattr(pipeline, "FILES_PER_TASK", 2)
    name: str = request.param
    return name


def rows_of(frame: Any) -> list[Row]:
    if not frame.columns:
        return [{}] * frame.count()
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def numbers(frame: Any, name: str = "n") -> list[Any]:
    return [row[name] for row in rows_of(frame)]


def put(path: Path, table: pa.Table, format: str, block: int, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written(table, format, even(table.num_rows, block), **options))
    return path


def many(folder: Path, count: int, format: str = "parquet", rows: int = 5) -> Path:
    """Small files whose column `n` counts on from file to file."""
    for at in range(count):
        table = pa.table({"n": pa.array(range(at * rows, (at + 1) * rows), pa.int64())})
        put(folder / f"{at:05}", table, format, rows)
    return folder


# The same rows


@settings(max_examples=25 * MORE, phases=[Phase.generate])  # a seed cannot be shrunk
@given(seed=st.integers(0, 2**32))
def test_random_scans(seed: int, lake: Lake, spark: Any) -> None:
    rng = random.Random(seed)
    request = random_request(lake, rng)
    ordered, target = request.ordered, request.target_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "MANY_FILES", 0 if request.planned_by_tasks else 1_000)
        job = Job(request.scan, spark, ordered=ordered, target_bytes=target)
        assert_rows(rows_of(job.dataframe()), request.rows, ordered)
        if rng.random() < 0.3:
            assert Job(request.scan, spark, target_bytes=target).count() == len(request.rows)
    in_process = request.scan.to_arrow()
    if in_process.num_columns:
        assert_rows(in_process.to_pylist(), request.rows, True)
    assert job.schema == in_process.schema


@pytest.mark.parametrize("ordered", [True, False])
def test_the_method_of_a_scan(ordered: bool, lake: Lake, spark: Any) -> None:
    scan = fs.scan(lake.root).filter(col("fare") > 20).select("id", "tags", "spot.x", "kind")
    found = scan.skip(100).head(300)
    kept = lake.matching("fare > 20")[100:400]
    expected = [
        {**{name: lake.rows[at][name] for name in ("id", "tags", "kind")}, "spot": spot}
        for at in kept
        for spot in [lake.rows[at]["spot"] and {"x": lake.rows[at]["spot"]["x"]}]
    ]
    frame = found.to_spark(spark, ordered=ordered)
    assert frame.columns == ["id", "tags", "spot", "kind"]
    for _ in range(2):  # it can be used again
        assert_rows(rows_of(frame), expected, ordered)


def test_data_frames_are_like_any_other(lake: Lake, spark: Any) -> None:
    frame = fs.scan(lake.root).select("kind", "id").to_spark(spark)
    sums = {row["kind"]: row["sum(id)"] for row in frame.groupBy("kind").sum("id").collect()}
    expected: dict[int, int] = {}
    for row in lake.rows:
        expected[row["kind"]] = expected.get(row["kind"], 0) + row["id"]
    assert sums == expected
    joined = frame.join(frame.where("id % 2 = 0").withColumnRenamed("kind", "other"), "id")
    assert joined.count() == (len(lake.rows) + 1) // 2


def test_files_by_spark(spark: Any, tmp_path: Path) -> None:
    source = spark.range(0, 8_000, 1, 4).selectExpr(
        "id",
        "if(id % 7 = 0, NULL, cast(id % 100 AS string)) AS text",
        "named_struct('b', id, 'a', array(id, NULL)) AS nested",
        "map(cast(id AS string), id * 1.5D) AS scores",
        "cast(id AS decimal(12, 3)) AS price",
        "timestamp_seconds(id) AS at",
    )
    for format in FORMATS:
        source.write.format(format).save(f"{tmp_path}/{format}")
        theirs = spark.read.format(format).load(f"{tmp_path}/{format}")
        condition, names = "text >= '5' and id > 2500", ("nested", "scores", "price", "at")
        ours = fs.scan(f"{tmp_path}/{format}").filter(condition).select(*names).to_spark(spark)
        theirs = theirs.where(condition).select(*names)
        if format == "orc":  # as whose wall clock Spark stores its instants
            theirs = theirs.selectExpr(*names[:-1], "cast(at AS timestamp_ntz) AS at")
        assert ours.dtypes == theirs.dtypes
        assert sorted(rows_of(ours), key=str) == sorted(rows_of(theirs), key=str)


def test_bytes_are_read_by_tasks_too(spark: Any) -> None:
    table = pa.table({"n": range(100)})
    data = [written(table, format, [50, 50]) for format in FORMATS]
    assert numbers(fs.scan(data).skip(90).head(20).to_spark(spark, ordered=True)) == [
        *range(90, 100),
        *range(10),
    ]


def test_an_open_file_cannot_go_to_the_tasks(spark: Any, tmp_path: Path) -> None:
    path = put(tmp_path / "file", pa.table({"n": range(10)}), "parquet", 5)
    with path.open("rb") as opened, pytest.raises((ValueError, TypeError), match="file object"):
        fs.scan(opened).to_spark(spark)


def test_files_that_have_not_all_columns(planner: str, spark: Any, tmp_path: Path) -> None:
    tables = [
        pa.table({"a": [1, 2], "b": [1.5, None]}),
        pa.table({"c": ["x", "y"], "a": [3, 4]}),
        pa.table({"b": [0.5], "a": [5]}),
        pa.table({"d": [True], "a": [6]}),
    ]
    for at, table in enumerate(tables):
        put(tmp_path / f"{at}", table, FORMATS[at % 2], 1)
    whole = pa.concat_tables(tables, promote_options="default").to_pylist()
    scan = fs.scan(tmp_path, missing="null")
    assert rows_of(scan.to_spark(spark, ordered=True)) == whole
    frame = scan.filter("b is null or c = 'x'").skip(1).to_spark(spark, ordered=True)
    assert rows_of(frame) == [row for row in whole if row["b"] is None][1:]


def test_folders_and_other_files(planner: str, spark: Any, tmp_path: Path) -> None:
    """What a folder's value is, and which files count, is settled by all of them together."""
    keys = ["1", "2", "__HIVE_DEFAULT_PARTITION__", "x"]
    for at, key in enumerate(keys):
        put(tmp_path / f"key={key}" / "b", pa.table({"n": [at]}), FORMATS[at % 2], 1)
        (tmp_path / f"key={key}" / "a.txt").write_text("not a file of data, though a long one")
        (tmp_path / f"key={key}" / "_c").write_text("PAR1")
    found = rows_of(fs.scan(tmp_path).to_spark(spark, ordered=True))
    expected = [*enumerate(["1", "2", None, "x"])]
    assert [(row["n"], row["key"]) for row in found] == expected
    scan = fs.scan(tmp_path).filter("key >= '2'").with_row_index().tail(5)
    found = rows_of(scan.to_spark(spark, ordered=True))
    assert found == [{"index": 1, "n": 1, "key": "2"}, {"index": 3, "n": 3, "key": "x"}]


def test_a_file_may_be_listed_twice(planner: str, spark: Any, tmp_path: Path) -> None:
    paths = sorted(many(tmp_path, 3).iterdir())
    scan = fs.scan([paths[2], paths[0], paths[2], paths[0]])
    expected = [*range(10, 15), *range(5)] * 2
    assert numbers(scan.to_spark(spark, ordered=True)) == expected
    job = Job(scan.filter(col("n") != 2).skip(3).head(11), spark, target_bytes=1)
    assert numbers(job.dataframe()) == [n for n in expected if n != 2][3:14]
    assert job.count() == 11


# Windows and counts


BOUNDS = (0, 1, 4, 5, 6, 49, 50, 51, 100)


def test_windows_at_the_edges_of_files(planner: str, spark: Any, tmp_path: Path) -> None:
    scan = fs.scan(many(tmp_path, 10)).filter(col("n") >= 0)
    rng = random.Random(planner)
    windows = [(skip, head) for skip in BOUNDS for head in BOUNDS]
    for skip, head in rng.sample(windows, min(4 * MORE, len(windows))):
        found = Job(scan.skip(skip).head(head), spark, target_bytes=1)
        assert numbers(found.dataframe()) == list(range(50))[skip : skip + head]
        assert found.count() == len(range(50)[skip : skip + head])
    for count in rng.sample(BOUNDS, 2):
        found = Job(scan.tail(count), spark, target_bytes=1)
        assert numbers(found.dataframe()) == list(range(50))[max(50 - count, 0) :]
        assert found.count() == min(count, 50)


def test_rows_of_a_tail_are_numbered_over_all_files(
    planner: str, spark: Any, tmp_path: Path
) -> None:
    scan = fs.scan(many(tmp_path, 4)).filter(col("n") != 16)
    tail = scan.with_row_index().tail(7).to_spark(spark, ordered=True)
    expected = [12, 13, 14, 15, 17, 18, 19]
    assert rows_of(tail) == [{"index": n, "n": n} for n in expected]
    chosen = scan.select_rows([1, 6, 13, 16, 19]).tail(3).to_spark(spark, ordered=True)
    assert numbers(chosen) == [6, 13, 19]


def test_nothing_matches(planner: str, lake: Lake, spark: Any) -> None:
    for scan in (
        fs.scan(lake.root).filter(col("kind") == 99),
        fs.scan(lake.root).filter(col("id") < 0),
        fs.scan(lake.root).filter((col("city") == "Oslo") & (col("city") == "Bergen")),
        fs.scan(lake.root).head(0),
        fs.scan(lake.root).filter(col("id") < 10).skip(10),
        fs.scan(lake.root).tail(0),
    ):
        job = Job(scan.select("id", "spot.y"), spark)
        frame = job.dataframe()
        assert frame.dtypes == [("id", "bigint"), ("spot", "struct<y:string>")]
        assert rows_of(frame) == []
        assert job.count() == 0


@pytest.fixture(scope="module")
def sorted_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of four files, four blocks each: `key` rises by one, `text` is large."""
    return {format: sorted_files_of(format, tmp_path_factory.mktemp(format)) for format in FORMATS}


ROWS, BLOCK, PAGE = 40_000, 10_000, 1_000


def sorted_table(first: int) -> pa.Table:
    rng = np.random.default_rng(first)
    texts = rng.integers(33, 126, (ROWS, 40), dtype=np.uint8).tobytes().decode("ascii")
    values = [texts[at : at + 40] for at in range(0, len(texts), 40)]
    return pa.table({"key": np.arange(first, first + ROWS), "text": values})


def sorted_files_of(format: str, folder: Path) -> Path:
    options: dict[str, Any] = {"compression": "uncompressed", "row_index_stride": PAGE}
    if format == "parquet":
        options = {"compression": "none", "use_dictionary": False, "max_rows_per_page": PAGE}
        options |= {"write_page_index": True, "write_batch_size": PAGE, "write_page_checksum": True}
    for at in range(4):
        put(folder / f"{at}", sorted_table(at * ROWS), format, BLOCK, **options)
    return folder


@pytest.mark.parametrize("format", FORMATS)
def test_a_count_decodes_only_undecided_pages(
    format: str, planner: str, sorted_files: dict[str, Path], spark: Any
) -> None:
    scan = fs.scan(sorted_files[format])
    size = sum(path.stat().st_size for path in sorted_files[format].iterdir())
    first, last = ROWS + 5_500, 2 * ROWS + 17_500
    job = Job(scan.filter(col("key").is_between(first, last)), spark)
    assert job.count() == last - first + 1
    assert job.report.pages_decoded == 2
    assert job.report.bytes_read < size / 40
    decided = [
        (scan, 4 * ROWS),
        (scan.filter(col("key") >= ROWS), 3 * ROWS),
        (scan.skip(17).head(ROWS), ROWS),
    ]
    for each, rows in decided:
        job = Job(each, spark)
        assert job.count() == rows
        assert job.report.pages_decoded == 0
        assert job.report.bytes_read < size / 40


def wipe(path: Path, keep: Callable[[str, Span, range], bool]) -> None:
    """Destroy the pages of a Parquet file which are not to be read."""
    data = bytearray(path.read_bytes())
    for group in row_groups(bytes(data)):
        for chunk in group.chunks:
            for page in chunk.pages:
                if not keep(chunk.column, page.span, range(page.first_row, page.end_row)):
                    data[page.span.start : page.span.end] = bytes(page.span.end - page.span.start)
    path.write_bytes(data)


def test_a_window_reads_no_page_outside_of_it(planner: str, spark: Any, tmp_path: Path) -> None:
    folder = sorted_files_of("parquet", tmp_path)
    first, last, skip, head = ROWS + 5_500, 2 * ROWS + 17_500, 40_000, 2_500
    expected = [text for at in range(4) for text in sorted_table(at * ROWS)["text"].to_pylist()]
    for at, path in enumerate(sorted(folder.iterdir())):

        def keep(column: str, span: Span, rows: range, at: int = at) -> bool:
            lies = range(at * ROWS + rows.start, at * ROWS + rows.stop)
            if column == "key":
                return first in lies or last in lies
            return max(first + skip, lies.start) < min(first + skip + head, lies.stop)

        wipe(path, keep)
    scan = fs.scan(folder).filter(col("key").is_between(first, last)).select("text")
    job = Job(scan.skip(skip).head(head), spark)
    texts = numbers(job.dataframe(), "text")
    assert texts == expected[first + skip : first + skip + head]
    assert job.count() == head
    with pytest.raises(Exception, match=str(folder)):
        Job(scan, spark).dataframe().toArrow()


@pytest.mark.parametrize("window", ["head", "skip", "tail"])
def test_blocks_outside_of_a_window_are_not_read(
    window: str, planner: str, spark: Any, tmp_path: Path
) -> None:
    folder = sorted_files_of("orc", tmp_path)
    kept = {"head": range(8_000), "skip": range(90_000, 91_000), "tail": range(151_000, 160_000)}
    wanted = kept[window]
    for at, path in enumerate(sorted(folder.iterdir())):
        data = bytearray(path.read_bytes())
        for stripe in layout_of(bytes(data)).stripes:
            lies = range(at * ROWS + stripe.first_row, at * ROWS + stripe.end_row)
            if max(wanted.start, lies.start) >= min(wanted.stop, lies.stop):
                for stream in stripe.streams:
                    span = stream.span
                    data[span.start : span.end] = bytes(span.end - span.start)
        path.write_bytes(data)
    scan = fs.scan(folder)
    windows = {
        "head": scan.head(len(wanted)),
        "skip": scan.skip(wanted.start).head(len(wanted)),
        "tail": scan.tail(len(wanted)),
    }
    job = Job(windows[window], spark)
    assert numbers(job.dataframe(), "key") == list(wanted)
    assert job.count() == len(wanted)


# Planning, splits and tasks


def opened(trace: fs.Trace) -> set[str]:
    return {read.path for read in trace.log}


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


def test_a_corrupt_file_among_many_is_found_by_tasks(spark: Any, tmp_path: Path) -> None:
    """Even where it is the one that would settle the columns."""
    count = pipeline.MANY_FILES + 20
    originals, folder = many(tmp_path / "originals", 1), tmp_path / "files"
    folder.mkdir()
    for at in range(1, count):
        os.link(originals / "00000", folder / f"{at:05}")
    (folder / "00000").write_bytes((originals / "00000").read_bytes()[:-20])
    with fs.trace() as trace:
        job = Job(fs.scan(folder), spark, on_corrupt="skip")
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


def test_a_corrupt_file_can_be_skipped(damaged: list[Path], planner: str, spark: Any) -> None:
    scan = fs.scan(damaged)
    expected = [n for n in range(400) if n // 50 != 3]
    job = Job(scan, spark, on_corrupt="skip")
    assert numbers(job.dataframe()) == expected
    [skipped] = job.report.skipped
    assert str(damaged[3]) in skipped
    frame = scan.to_spark(spark, on_corrupt="skip")
    assert sorted(numbers(frame)) == expected
    job = Job(scan.filter(col("n") != 155), spark, on_corrupt="skip")
    assert job.count() == len(expected)
    assert any(str(damaged[3]) in skipped for skipped in job.report.skipped)


def test_windows_count_the_rows_of_the_other_files(
    damaged: list[Path], planner: str, spark: Any
) -> None:
    expected = [n for n in range(400) if n // 50 != 3 and n != 155][120:260]
    scan = fs.scan(damaged).filter(col("n") != 155).skip(120).head(140)
    assert numbers(Job(scan, spark, on_corrupt="skip").dataframe()) == expected


@pytest.mark.parametrize("damage", [cut_short, data_wiped])
def test_a_corrupt_first_file_is_skipped_in_a_folder_too(
    damage: Callable[[Path], None], planner: str, spark: Any, tmp_path: Path
) -> None:
    damage(many(tmp_path, 3, rows=50) / "00000")
    job = Job(fs.scan(tmp_path), spark, on_corrupt="skip")
    assert numbers(job.dataframe()) == list(range(50, 150))
    assert any("00000" in skipped for skipped in job.report.skipped)
    tail = fs.scan(tmp_path).filter(col("n") != 60).tail(120)
    expected = [n for n in range(50, 150) if n != 60]
    assert numbers(tail.to_spark(spark, ordered=True, on_corrupt="skip")) == expected
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
        fs.scan(tmp_path).to_spark(spark, on_corrupt="skip").toArrow()
    pq.write_table(pa.table({"m": [1]}), tmp_path / "00003")
    with pytest.raises(Exception, match=r"00003.*'n'"):
        fs.scan(tmp_path).to_spark(spark).toArrow()


def test_mistakes_are_told_before_a_task_runs(planner: str, lake: Lake, spark: Any) -> None:
    scan = fs.scan(lake.root)
    with pytest.raises(fs.ColumnNotFoundError, match="fair"):
        scan.select("fair").to_spark(spark)
    with pytest.raises(fs.PredicateTypeError):
        scan.filter(col("id") == "x").to_spark(spark)
    with pytest.raises(ValueError, match="skip"):
        scan.to_spark(spark, on_corrupt="ignore")  # type: ignore[arg-type]
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
