"""Files that their Hive folders rule out are not opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.scan_model import NULL, ZONES, paths_of

YEARS = range(2015, 2025)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each year and zone; `n` is the same in all of them."""
    root = tmp_path_factory.mktemp("lake")
    for year in YEARS:
        for zone in ZONES:
            path = root / f"year={year}" / f"zone={zone or NULL}" / "data.parquet"
            path.parent.mkdir(parents=True)
            pq.write_table(pa.table({"n": range(10)}), path)
    return root


def of_lake(lake: Path, wanted: Callable[[int, str | None], bool]) -> set[str]:
    return {
        str(lake / f"year={year}" / f"zone={zone or NULL}" / "data.parquet")
        for year in YEARS
        for zone in ZONES
        if wanted(year, zone)
    }


DROPPING: dict[str, tuple[Any, Callable[[int, str | None], bool]]] = {
    "equal": (col("year") == 2024, lambda year, zone: year == 2024),
    "not equal": (col("zone") != "east", lambda year, zone: zone == "west"),
    "not": (~(col("zone") == "east"), lambda year, zone: zone == "west"),
    "text": ("year > 2020 and zone = 'east'", lambda year, zone: year > 2020 and zone == "east"),
    "in": (col("year").is_in([2016, 2018, 9]), lambda year, zone: year in (2016, 2018)),
    "null": (
        col("zone").is_null() & (col("year") < 2017),
        lambda year, zone: zone is None and year < 2017,
    ),
    "prefix": (col("zone").starts_with("w"), lambda year, zone: zone == "west"),
    "with a column": ((col("year") == 2019) & (col("n") >= 0), lambda year, zone: year == 2019),
    "twice": (
        ((col("year") == 2019) | (col("zone") == "east")) & (col("year") >= 2019),
        lambda year, zone: year == 2019 or (year > 2019 and zone == "east"),
    ),
    "each with a column": (
        ((col("year") == 2019) & (col("n") < 99)) | ((col("year") == 2020) & (col("n") >= 0)),
        lambda year, zone: year in (2019, 2020),
    ),
}


def opened_besides(kept: set[str], lake: Path, trace: fs.Trace) -> set[str]:
    """What was read of other files: the first of all settles the columns, by its footer."""
    first = min(of_lake(lake, lambda _year, _zone: True))
    return {read.path for read in trace.log if (read.path, read.why) != (first, "footer")} - kept


@pytest.mark.parametrize("name", DROPPING)
def test_files_are_dropped_by_their_folders_before_they_are_opened(name: str, lake: Path) -> None:
    predicate, wanted = DROPPING[name]
    kept = of_lake(lake, wanted)
    scan = fs.scan(lake).filter(predicate)
    with fs.trace() as trace:
        assert scan.with_file_path().to_arrow()["path"].unique().to_pylist() == sorted(kept)
    assert opened_besides(kept, lake, trace) == set()
    with fs.trace() as trace:
        assert scan.count() == 10 * len(kept)
    assert opened_besides(kept, lake, trace) == set()
    assert trace.data_bytes == 0
    with fs.trace() as trace:
        assert scan.tail(3).to_arrow()["n"].to_pylist() == [7, 8, 9]
        assert scan.head(3).to_arrow()["n"].to_pylist() == [0, 1, 2]
        assert scan.schema.names == ["n", "year", "zone"]
    assert opened_besides(kept, lake, trace) == set()


def test_splits_are_made_of_the_files_that_their_folders_keep(lake: Path) -> None:
    scan = fs.scan(lake).filter("year >= 2023 and zone = 'east'")
    with fs.trace() as trace:
        assert sum(part.count() for part in scan.splits()) == 20
    kept = of_lake(lake, lambda year, zone: year >= 2023 and zone == "east")
    assert kept <= paths_of(trace)
    assert opened_besides(kept, lake, trace) == set()


def test_row_numbers_count_the_files_that_are_dropped(lake: Path) -> None:
    scan = fs.scan(lake).filter(col("year") == 2016)
    assert scan.with_row_index().to_arrow()["index"].to_pylist() == list(range(30, 60))
    chosen = scan.select_rows([0, 29, 35, 59, 60, 299]).with_row_index().to_arrow()
    assert chosen["index"].to_pylist() == [35, 59]
    with pytest.raises(ValueError, match="300"):
        scan.select_rows([35, 300]).to_arrow()


def test_nothing_is_left_when_every_file_is_dropped(lake: Path) -> None:
    scan = fs.scan(lake).filter(col("year") > 3000)
    with fs.trace() as trace:
        assert scan.to_arrow().equals(fs.scan(lake).head(0).to_arrow())
        assert scan.count() == scan.tail(3).count() == 0
        assert list(scan.batches()) == []
    assert len(paths_of(trace)) <= 1
    assert trace.data_bytes == 0


def test_a_folder_in_one_branch_drops_no_file_that_the_other_may_need(lake: Path) -> None:
    scan = fs.scan(lake).filter((col("year") == 2019) | (col("n") == 4))
    assert scan.count() == 3 * 10 + 27
    years = scan.filter("zone = 'east'").to_arrow()["year"].to_pylist()
    assert years == sorted([*YEARS, *[2019] * 9])
