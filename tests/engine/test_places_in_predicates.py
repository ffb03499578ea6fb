"""Predicates on the columns that `with_row_index` and `with_file_path` add."""

import pickle
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import even, writer_of, written
from tests.support.lake import small_pages

COUNTS = (70, 0, 50, 1, 80)


@pytest.fixture(scope="module", params=["mixed", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    first = 0
    for at, count in enumerate(COUNTS):
        numbers = range(first, first + count)
        values = [None if n % 13 == 0 else n * 7 % 100 for n in numbers]
        strings = pa.array([f"s{n % 5}" for n in numbers], pa.string())
        table = pa.table({"v": pa.array(values, pa.int64()), "s": strings})
        folder = root / f"k={at // 2}"
        folder.mkdir(exist_ok=True)
        writer = writer_of(request.param, at)
        data = written(table, writer, even(count, 30) or [0], **small_pages(writer))
        (folder / f"{at}.bin").write_bytes(data)
        first += count
    return root


@pytest.fixture(scope="module")
def places(lake: Path) -> pa.Table:
    """All rows, with where they come from, as plain Python knows them."""
    rows: list[dict[str, Any]] = []
    for at, count in enumerate(COUNTS):
        for _ in range(count):
            n = len(rows)
            value = None if n % 13 == 0 else n * 7 % 100
            path = str(lake / f"k={at // 2}" / f"{at}.bin")
            rows.append({"index": n, "v": value, "s": f"s{n % 5}", "k": at // 2, "path": path})
    return pa.Table.from_pylist(rows)


CONDITIONS = [
    "index < 3",
    "index % 60 = 9",
    "index + 1 > 199 or v = index",
    "v - index > 80 and k < 2",
    "not (index - 1 < 195)",
    "coalesce(v, index) = 130",
    "case when k = 1 then index else 0 end = 71",
    "index % 7 = 3 and index < 40 and s = 's0'",
    "contains(path, '4.bin') and index % 2 = 1 and v > 50",
    "length(path) > 3 and index * index = 100",
    "lower(path) like '%2.bin' and v > 90",
    "index >= 198",
    "index = 70 or index = 120",
    "index between 69 and 71 and v > 50",
    "index < 10 or v = 49",
    "not (index > 5 and index < 190)",
    "(index < 30 and v > 90) or (index > 190 and s = 's1')",
    "not (index < 150 or v is not null)",
    "index in (0, 5, 69, 70, 200, 99999) and s <> 's0'",
    "index is null",
    "index is not null and v < 2",
    "index > 5000",
    "index < -1 or v = 7",
    "path like '{0}%' and v > 90",
    "path = '{1}' or v = 21",
    "not (path = '{1}') and index > 60 and index < 130",
    "k = 1 and index >= 70 and index < 75",
    "k = 2 or index < 4 or (path = '{1}' and v < 10)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_those_that_match(lake: Path, places: pa.Table, condition: str) -> None:
    condition = condition.format(lake / "k=0", lake / "k=1" / "2.bin")
    query = f"select index from places where {condition} order by index"
    rows = places.to_pylist()
    expected = [rows[number] for (number,) in duckdb.execute(query).fetchall()]
    scan = fs.scan(lake).with_row_index().with_file_path().filter(condition)
    assert scan.to_arrow().to_pylist() == [
        {n: row[n] for n in scan.schema.names} for row in expected
    ]
    assert scan.count() == len(expected)
    numbers = [row["index"] for row in expected]
    assert scan.tail(3).to_arrow()["index"].to_pylist() == numbers[-3:]
    assert scan.skip(1).head(3).to_arrow()["index"].to_pylist() == numbers[1:4]
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(target_bytes=1)]
    assert [n for part in parts for n in part.to_arrow()["index"].to_pylist()] == numbers
    assert scan.drop("index", "path").count() == len(expected)
    tested = fs.scan(lake, indexes=False).with_row_index().with_file_path().filter(condition)
    assert tested.to_arrow()["index"].to_pylist() == numbers
    if "index" not in condition:
        apart = fs.scan(lake).with_file_path().filter(condition)
        assert apart.to_arrow()["v"].to_pylist() == [row["v"] for row in expected]


def test_the_order_of_calls_does_not_matter(lake: Path) -> None:
    scan = fs.scan(lake).select("v").filter(col("row").is_between(3, 5)).with_row_index("row")
    assert scan.to_arrow().to_pydict() == {"row": [3, 4, 5], "v": [21, 28, 35]}


def test_only_pages_of_the_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    table = pa.table({"n": range(100_000), "m": range(100_000)})
    pq.write_table(
        table, path, write_page_index=True, max_rows_per_page=1000, row_group_size=50_000
    )
    for condition in (
        "index >= 60000 and index < 60010",
        "index % 60000 < 10 and index % 50000 >= 10000",
        "index in (60000, 60009)",
    ):
        with fs.trace() as by_number:
            scan = fs.scan(path).with_row_index().filter(condition)
            assert set(scan.to_arrow()["n"].to_pylist()) <= set(range(60_000, 60_010))
        with fs.trace() as by_selection:
            fs.scan(path).select_rows(range(60_000, 60_010)).to_arrow()
        assert by_number.data_bytes == by_selection.data_bytes
        assert by_number.pages_decoded == by_selection.pages_decoded == 2
    plan = scan.plan()
    assert plan.dropped == {"row numbers": 1}


def test_files_behind_the_last_number_are_not_opened(lake: Path) -> None:
    with fs.trace() as trace:
        assert fs.scan(lake).with_row_index().filter("index < 70 and v > 5").count() > 0
    assert {Path(read.path).name for read in trace.log} == {"0.bin"}


def test_files_are_dropped_by_their_paths_before_they_are_opened(lake: Path) -> None:
    wanted = str(lake / "k=1" / "2.bin")
    with fs.trace() as trace:
        scan = fs.scan(lake).with_file_path().filter((col("path") == wanted) & (col("v") >= 0))
        assert scan.select("v").count() > 40
    # The first of all settles the columns.
    assert {Path(read.path).name for read in trace.log} == {"0.bin", "2.bin"}
    assert [(p.level, p.source, p.dropped) for p in trace.pruned if p.level == "file"] == [
        ("file", "paths", len(COUNTS) - 1)
    ]


def test_a_name_that_a_file_has_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"index": [5, 6], "path": ["a", "b"], "n": [1, 2]}), tmp_path / "file")
    scan = fs.scan(tmp_path).select("n")
    assert scan.with_row_index().to_arrow().to_pydict() == {"index": [0, 1], "n": [1, 2]}
    with pytest.raises(ValueError, match="already"):
        scan.with_row_index().filter("index > 0").to_arrow()
    with pytest.raises(ValueError, match="already"):
        scan.with_file_path().filter("path = 'a'").to_arrow()
    assert scan.filter("index > 5 and path = 'b'").to_arrow().to_pydict() == {"n": [2]}


def test_a_number_is_no_text(lake: Path) -> None:
    with pytest.raises(fs.PredicateTypeError):
        fs.scan(lake).with_row_index().filter(col("index") == "x").to_arrow()
    with pytest.raises(fs.PredicateTypeError):
        fs.scan(lake).with_file_path().filter(col("path") > 7).to_arrow()
    with pytest.raises(fs.ColumnNotFoundError):
        fs.scan(lake).filter("index > 7").to_arrow()


@pytest.mark.parametrize("writer", ["parquet", "orc"])
def test_numbers_and_statistics_rule_a_block_out_together(writer: str) -> None:
    data = written(pa.table({"v": range(6)}), writer, [1] * 6)
    condition = (col("index") % 2 == 0) | (col("v") == 3)
    scan = fs.scan(data).with_row_index().filter(condition)
    assert scan.to_arrow()["v"].to_pylist() == [0, 2, 3, 4]
    assert scan.tail(2).to_arrow()["v"].to_pylist() == [3, 4]
    assert scan.count() == 4
