"""Scans on Spark: the rows of the oracle, read by tasks.

Rows are held against DuckDB, lists and `spark.read`.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.support.formats import written
from tests.support.lake import Lake, assert_rows, random_request
from tests.support.orc_files import layout_of
from tests.support.pages import Span, row_groups

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")
from fretsaw.spark import pipeline
from fretsaw.spark.pipeline import Job
from tests.support.spark_files import FORMATS, many, numbers, put, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MORE = int(os.environ.get("FRETSAW_MORE", "1"))


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
