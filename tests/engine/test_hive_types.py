"""`hive=`: whether folders are columns, which of them, and of what types."""

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.file_lists import put


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for at, (code, day) in enumerate([("01", "2024-01-31"), ("10", "2024-02-01")]):
        put(tmp_path / f"p={code}" / f"day={day}" / "file", [at])
    put(tmp_path / "p=02" / "day=__HIVE_DEFAULT_PARTITION__" / "file", [2])
    return tmp_path


def rows(scan: fs.Scan) -> list[dict[str, Any]]:
    assert scan.to_arrow().schema.equals(scan.schema)
    found: list[dict[str, Any]] = scan.to_arrow().to_pylist()
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(1)]
    assert [row for part in parts for row in part.to_arrow().to_pylist()] == found
    assert [row.as_dict() for row in scan] == found
    return found


def test_folders_may_be_mere_folders(lake: Path) -> None:
    assert rows(fs.scan(lake, hive=False)) == [{"n": 0}, {"n": 2}, {"n": 1}]
    assert rows(fs.scan(lake, hive={})) == [{"n": 0}, {"n": 2}, {"n": 1}]
    with pytest.raises(fs.ColumnNotFoundError, match="'p'"):
        fs.scan(lake, hive=False).filter("p = 1").to_arrow()


def test_a_column_of_the_file_counts_where_folders_do_not(tmp_path: Path) -> None:
    put(tmp_path / "n=7" / "file", [1])
    assert rows(fs.scan(tmp_path)) == [{"n": 7}]
    assert rows(fs.scan(tmp_path, hive=False)) == [{"n": 1}]


def test_folders_of_given_types(lake: Path) -> None:
    scan = fs.scan(lake, hive={"p": pa.string()})
    assert rows(scan) == [{"n": 0, "p": "01"}, {"n": 2, "p": "02"}, {"n": 1, "p": "10"}]
    with fs.trace() as trace:
        assert rows(scan.filter(col("p") == "10")) == [{"n": 1, "p": "10"}]
    assert not [read for read in trace.log if read.why == "data" and "p=10" not in read.path]
    both = fs.scan(lake, hive={"day": pa.date32(), "p": pa.int16()})
    assert both.schema.names == ["n", "day", "p"]
    assert both.schema.types == [pa.int64(), pa.date32(), pa.int16()]
    assert rows(both)[0] == {"n": 0, "day": dt.date(2024, 1, 31), "p": 1}
    assert rows(both.filter("day < '2024-02-01'"))[0]["n"] == 0
    assert both.filter("day is null").select("n").to_arrow()["n"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.float64(), 1.0),
        (pa.uint8(), 1),
        (pa.decimal128(5, 2), Decimal("1.00")),
        (pa.large_string(), "01"),
    ],
    ids=str,
)
def test_any_type_that_text_can_be(lake: Path, kind: pa.DataType, value: Any) -> None:
    scan = fs.scan(lake, hive={"p": kind})
    assert scan.schema.field("p").type == kind
    assert rows(scan)[0] == {"n": 0, "p": value}
    assert scan.filter(col("p") == value).count() == 1


def test_what_folders_are_not(lake: Path) -> None:
    with pytest.raises(fs.SchemaMismatchError, match="day=2024-01-31 is no int64"):
        fs.scan(lake, hive={"day": pa.int64()}).to_arrow()
    with pytest.raises(fs.ColumnNotFoundError, match="did you mean 'day'"):
        fs.scan(lake, hive={"days": pa.string()}).to_arrow()
    for wrong in ("no", {"p": "string"}, {1: pa.string()}, None):
        with pytest.raises(TypeError, match="hive"):
            fs.scan(lake, hive=wrong)  # type: ignore[arg-type]
