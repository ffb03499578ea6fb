"""When reading stops: windows, counts and statistics that leave files and pages unread."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.scan_model import paths_of

FILES = 200
PER_FILE = 20


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """200 files of 20 rows: `n` counts them all, `digit` is no help to an index."""
    root = tmp_path_factory.mktemp("many")
    paths = [root / f"{at:03}.parquet" for at in range(FILES)]
    for at, path in enumerate(paths):
        n = np.arange(at * PER_FILE, (at + 1) * PER_FILE)
        pq.write_table(pa.table({"n": n, "digit": n % 10, "other": -n}), path)
    return paths


PREDICATES = pytest.mark.parametrize("predicate", [col("digit") == 3, "digit = 3"], ids=repr)


@PREDICATES
def test_head_under_a_filter_opens_a_handful_of_files(many: list[Path], predicate: Any) -> None:
    scan = fs.scan(list(many)).filter(predicate)
    for window, wanted in ((scan.head(5), range(3, 53, 10)), (scan.skip(3).head(2), (33, 43))):
        for use in (fs.Scan.to_arrow, lambda scan: pa.Table.from_batches(scan.batches(2))):
            with fs.trace() as trace:
                assert use(window)["n"].to_pylist() == list(wanted)
            assert paths_of(trace) <= {str(path) for path in many[:10]}
            assert paths_of(trace, "data") <= {str(path) for path in many[:6]}


@PREDICATES
def test_count_of_a_head_under_a_filter_stops_too(many: list[Path], predicate: Any) -> None:
    with fs.trace() as trace:
        assert fs.scan(list(many)).filter(predicate).head(5).count() == 5
    assert paths_of(trace) <= {str(path) for path in many[:10]}


@PREDICATES
def test_tail_under_a_filter_opens_files_from_the_end(many: list[Path], predicate: Any) -> None:
    end = FILES * PER_FILE
    with fs.trace() as trace:
        found = fs.scan(many[0].parent).filter(predicate).tail(5).to_arrow()
    assert found["n"].to_pylist() == list(range(end - 47, end, 10))
    # The first file says what the columns are; nothing but its footer is read.
    assert paths_of(trace) <= {str(path) for path in (many[0], *many[-10:])}
    assert paths_of(trace, "data") <= {str(path) for path in many[-6:]}


def test_files_that_statistics_rule_out_are_read_no_further_than_their_footers(
    many: list[Path],
) -> None:
    scan = fs.scan(list(many)).filter(col("n").is_between(2_001, 2_022))
    with fs.trace() as trace:
        assert scan.to_arrow()["n"].to_pylist() == list(range(2_001, 2_023))
    assert paths_of(trace, "data") == {str(path) for path in many[100:102]}
    assert paths_of(trace, "index") <= {str(path) for path in many[100:102]}
    with fs.trace() as trace:
        assert scan.tail(2).to_arrow()["n"].to_pylist() == [2_021, 2_022]
    assert paths_of(trace, "data") == {str(many[101])}
    assert not paths_of(trace) & {str(path) for path in many[1:90]}


@pytest.fixture(scope="module")
def tall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of 50 blocks of 1,000 rows, 4 pages for each column; `n` is sorted."""
    n = np.arange(50_000)
    some = pa.array(n, mask=n % 1_000 < 250)
    table = pa.table({"n": n, "digit": n % 10, "other": n * 3, "some": some})
    path = tmp_path_factory.mktemp("tall") / "data.parquet"
    layout = {"row_group_size": 1_000, "max_rows_per_page": 250, "write_batch_size": 250}
    pq.write_table(table, path, write_page_index=True, compression="none", **layout)
    return path


def test_windows_under_a_filter_read_one_end_of_a_file(tall: Path) -> None:
    scan = fs.scan(tall).filter(col("digit") == 3)
    size = tall.stat().st_size
    with fs.trace() as trace:
        assert scan.head(4).to_arrow()["n"].to_pylist() == [3, 13, 23, 33]
    assert trace.data_bytes < size / 5
    assert all(read.offset < size / 5 for read in trace.log if read.why == "data")
    with fs.trace() as trace:
        assert scan.tail(4).to_arrow()["n"].to_pylist() == [49_963, 49_973, 49_983, 49_993]
    assert trace.data_bytes < size / 5
    assert all(read.offset > size * 3 / 5 for read in trace.log if read.why == "data")


DECIDED: dict[str, tuple[Any, int]] = {
    "all": (col("n") >= 0, 50_000),
    "none": (col("n") < 0, 0),
    "some blocks": (col("n") < 7_000, 7_000),
    "some pages": ((col("n") >= 7_250) & (col("n") < 9_500), 2_250),
    "text": ("n >= 7250 and not n >= 9500", 2_250),
    "either": ((col("n") < 250) | (col("n") >= 49_000), 1_250),
    "nulls": (col("some").is_null(), 12_500),
    "not null": (~col("some").is_null(), 37_500),
    "bounds and nulls": (col("some") < 1_000, 750),
    "wider than the type": (col("n") < 2**80, 50_000),
}


@pytest.mark.parametrize("name", DECIDED)
def test_count_that_metadata_decides_reads_no_data_page(name: str, tall: Path) -> None:
    predicate, rows = DECIDED[name]
    with fs.trace() as trace:
        assert fs.scan(tall).filter(predicate).count() == rows
    assert trace.data_bytes == trace.pages_decoded == 0
    with fs.trace() as trace:
        assert fs.scan(tall).filter(predicate).head(400).count() == min(rows, 400)
        assert fs.scan(tall).filter(predicate).tail(400).count() == min(rows, 400)
    assert trace.data_bytes == trace.pages_decoded == 0


def test_count_decodes_only_the_pages_that_metadata_leaves_open(tall: Path) -> None:
    with fs.trace() as trace:
        assert fs.scan(tall).filter(col("n").is_between(7_100, 30_100)).count() == 23_001
    assert trace.pages_decoded == 2
