"""`drop` and `rename`: which columns a result has, and what they are called."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.file_lists import put
from tests.support.formats import writer_of

ROWS: list[dict[str, Any]] = [
    {
        "id": at,
        "spot": {"x": at, "y": f"y{at}"},
        "items": [{"name": "saw", "price": at / 2}],
        "city": "Oslo",
    }
    for at in range(6)
]


@pytest.fixture
def lake(tmp_path: Path, turns: str) -> Path:
    for part in (0, 1):
        table = pa.Table.from_pylist(ROWS[3 * part : 3 * part + 3])
        put(tmp_path / f"part={part}" / "file", table, writer_of(turns, part))
    return tmp_path


def whole() -> list[dict[str, Any]]:
    return [{**row, "part": at // 3} for at, row in enumerate(ROWS)]


def test_all_but_some_columns(lake: Path) -> None:
    expected = [{"id": r["id"], "items": r["items"], "part": r["part"]} for r in whole()]
    scan = fs.scan(lake)
    for dropped in (
        scan.drop("spot", "city"),
        scan.drop(["spot", "city"]),
        scan.drop(col("spot")).drop("city"),
        scan.drop("city", "spot", "city"),
        scan.select("id", "city", "items", "spot", "part").drop("city", "spot"),
    ):
        assert dropped.to_arrow().to_pylist() == expected
        assert [row.as_dict() for row in dropped] == expected
        assert dropped.schema.equals(dropped.to_arrow().schema)
        parts = [pickle.loads(pickle.dumps(part)) for part in dropped.splits(1)]
        assert [row for part in parts for row in part.to_arrow().to_pylist()] == expected
    assert scan.drop("part", "id").schema.names == ["spot", "items", "city"]
    assert scan.drop("id", "spot", "items", "city", "part").count() == 6
    assert scan.drop("city").filter("city = 'Oslo' and id > 4").to_arrow().num_rows == 1


def test_parts_of_a_column_are_dropped_and_not_read(lake: Path) -> None:
    scan = fs.scan(lake).drop("spot.y", "items.element.price", "city", "part")
    expected = [
        {"id": row["id"], "spot": {"x": row["spot"]["x"]}, "items": [{"name": "saw"}]}
        for row in ROWS
    ]
    assert scan.to_arrow().to_pylist() == expected
    assert [leaf for batch in scan.columns() for leaf in batch][:3] == [
        "id",
        "spot.x",
        "items.element.name",
    ]


def test_only_what_is_left_is_read(tmp_path: Path) -> None:
    put(tmp_path / "file", pa.table({"a": range(1000), "b": [str(n) for n in range(1000)]}))
    with fs.trace() as whole:
        fs.scan(tmp_path).select("a").to_arrow()
    with fs.trace() as trace:
        fs.scan(tmp_path).drop("b").to_arrow()
    assert trace.data_bytes == whole.data_bytes


def test_what_is_not_there_cannot_be_dropped(lake: Path) -> None:
    for unknown in ("cities", "spot.z", ("spot.x",)):
        with pytest.raises(fs.ColumnNotFoundError):
            fs.scan(lake).drop(unknown).to_arrow()
    with pytest.raises(fs.ColumnNotFoundError, match="city"):
        fs.scan(lake).select("id").drop("city").to_arrow()
    with pytest.raises(TypeError):
        fs.scan(lake).drop(3)  # type: ignore[arg-type]


def test_a_map_is_dropped_as_a_whole(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.struct({"x": pa.int64(), "y": pa.int64()}))
    pairs = pa.array([[("k", {"x": 1, "y": 2})]], kind)
    put(tmp_path / "file", pa.table({"m": pairs, "n": [1]}))
    scan = fs.scan(tmp_path)
    assert scan.drop("m").to_arrow().to_pylist() == [{"n": 1}]
    assert scan.drop("m.value.y", "n").to_arrow().to_pylist() == [{"m": [("k", {"x": 1})]}]
    for part in ("m.key", "m.value"):
        with pytest.raises(ValueError, match="map"):
            scan.drop(part).to_arrow()


def test_where_rows_come_from_can_be_tested_and_dropped(lake: Path) -> None:
    scan = fs.scan(lake).select("id").with_row_index().with_file_path()
    assert scan.drop("index").schema.names == ["id", "path"]
    assert scan.drop("path", "index").to_arrow().to_pylist() == [{"id": n} for n in range(6)]


def test_new_names_for_columns_of_the_result(lake: Path) -> None:
    names = {"id": "number", "spot": "place", "part": "folder", "index": "row"}
    scan = fs.scan(lake).with_row_index().rename(names)
    expected = [
        {
            "row": at,
            "number": row["id"],
            "place": row["spot"],
            "items": row["items"],
            "city": row["city"],
            "folder": row["part"],
        }
        for at, row in enumerate(whole())
    ]
    assert scan.to_arrow().to_pylist() == expected
    assert [row.as_dict() for row in scan] == expected
    assert scan.filter("id > 3 and part = 1 and spot.x < 5").to_arrow().to_pylist() == [expected[4]]
    assert scan.schema.equals(scan.to_arrow().schema)
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(1)]
    assert [row for part in parts for row in part.to_arrow().to_pylist()] == expected
    values = [value for batch in scan.column("place.y") for value in batch.strings()]
    assert values == [row["spot"]["y"] for row in ROWS]
    with pytest.raises(fs.ColumnNotFoundError, match="spot"):
        list(scan.column("spot.y"))
    for batch in scan.columns():
        assert "place.x" in list(batch)
        with pytest.raises(KeyError, match="id"):
            batch["id"]


def test_two_columns_can_change_names(tmp_path: Path) -> None:
    put(tmp_path / "file", pa.table({"a": [1], "b": ["x"]}))
    scan = fs.scan(tmp_path).rename({"a": "b", "b": "a"})
    assert scan.to_arrow().to_pylist() == [{"b": 1, "a": "x"}]
    assert [batch["a"].strings() for batch in scan.columns()] == [["x"]]
    assert scan.filter("a = 1").count() == 1


def test_names_that_cannot_be_given(lake: Path) -> None:
    scan = fs.scan(lake)
    with pytest.raises(fs.ColumnNotFoundError, match="cities"):
        scan.rename({"cities": "towns"}).to_arrow()
    with pytest.raises(fs.ColumnNotFoundError, match="city"):
        scan.select("id").rename({"city": "town"}).to_arrow()
    for names in ({"id": "city"}, {"id": "part"}, {"id": "x", "city": "x"}):
        with pytest.raises(ValueError, match="already"):
            scan.rename(names).to_arrow()
    with pytest.raises(ValueError, match="before"):
        scan.rename({"id": "a"}).rename({"city": "b"})
    with pytest.raises(TypeError):
        scan.rename([("id", "a")])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        scan.rename({"id": 1})  # type: ignore[dict-item]
