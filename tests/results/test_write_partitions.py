"""Results as directories of Hive folders, read back by fretsaw, pyarrow and DuckDB."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.results.write import partitions

ROWS = 3_000
TABLE = pa.table(
    {
        "id": range(ROWS),
        "day": [dt.date(2025, 1, 1 + i % 5) for i in range(ROWS)],
        "city": [(None, "NYC", "L/A =%", "__HIVE_DEFAULT_PARTITION__")[i % 4] for i in range(ROWS)],
    }
)


@pytest.fixture
def scan(tmp_path: Path) -> fs.Scan:
    (tmp_path / "in").mkdir()
    pq.write_table(TABLE, tmp_path / "in" / "in.parquet", row_group_size=700)
    return fs.scan(tmp_path / "in" / "in.parquet")


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(["id", "day", "city"]).sort_by("id").to_pylist()
    return rows


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_folders_hold_the_rows_of_their_values(scan: fs.Scan, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    assert scan.write(out, format, partition_by=["day", "city"]) == ROWS
    assert in_order(fs.scan(out).to_arrow()) == TABLE.to_pylist()
    assert sorted(os.listdir(out)) == [f"day=2025-01-0{n}" for n in range(1, 6)]
    for path in out.rglob(f"*.{format}"):
        inside = fs.scan(path, hive=False).to_arrow()
        assert inside.column_names == ["id"]
        assert inside["id"].to_pylist() == sorted(inside["id"].to_pylist())
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]


def test_others_read_the_folders(scan: fs.Scan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plain = scan.filter("city is null or city = 'NYC'")
    count = plain.write(out, partition_by="city")
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("city", pa.string())])
    hive = ds.HivePartitioning(pa.schema([("city", pa.string())]))
    by_pyarrow = ds.dataset(out, schema, partitioning=hive).to_table()
    assert in_order(by_pyarrow) == plain.to_arrow().to_pylist()
    query = f"select count(*) from read_parquet('{out}/*/*.parquet') where city = 'NYC'"
    assert duckdb.execute(query).fetchall() == [(ROWS // 4,)]
    assert count == ROWS // 2


def test_options_hold_for_every_file(scan: fs.Scan, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "row_group_size": 100,
        "compression": "zstd",
        "bloom_filters": ["id"],
    }
    scan.write(tmp_path / "out", partition_by="day", **options)
    for path in (tmp_path / "out").rglob("*.parquet"):
        chunks = fs.open(path).chunks("id")
        assert set(chunks["rows"].to_pylist()) == {100}
        assert set(chunks["codec"].to_pylist()) == {"ZSTD"}
        assert all(chunks["has_bloom_filter"].to_pylist())


def test_what_is_held_back_is_bounded(
    scan: fs.Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_MOST_HELD", 1_000)
    scan.write(tmp_path / "out", partition_by="day")
    files = list((tmp_path / "out" / "day=2025-01-01").iterdir())
    assert len(files) > 1
    assert in_order(fs.scan(tmp_path / "out").to_arrow()) == TABLE.to_pylist()


def test_without_rows_a_file_has_the_columns(scan: fs.Scan, tmp_path: Path) -> None:
    assert scan.filter("id < 0").write(tmp_path / "out", partition_by="day") == 0
    assert fs.scan(tmp_path / "out").schema.names == TABLE.column_names


def test_a_directory_is_replaced_only_if_asked_for(scan: fs.Scan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(fs.NotWritableError, match="there are files in it already"):
        scan.write(out, partition_by="day")
    assert os.listdir(out) == ["mine.txt"]
    assert scan.write(out, partition_by="day", overwrite=True) == ROWS
    assert fs.scan(out).count() == ROWS
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_an_input_is_never_replaced(scan: fs.Scan, tmp_path: Path) -> None:
    before = (tmp_path / "in" / "in.parquet").read_bytes()
    with pytest.raises(fs.NotWritableError, match="is being read"):
        scan.write(tmp_path / "in", partition_by="day", overwrite=True)
    with pytest.raises(fs.NotWritableError, match="is being read"):
        fs.scan(tmp_path / "in").write(tmp_path / "in", partition_by="day", overwrite=True)
    assert (tmp_path / "in" / "in.parquet").read_bytes() == before


def test_a_damaged_input_leaves_what_was_there(tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.parquet", tmp_path / "out"
    pq.write_table(TABLE, bad, row_group_size=700, compression="none", use_dictionary=False)
    data = bytearray(bad.read_bytes())
    middle = pq.read_metadata(bad).row_group(3).column(0).data_page_offset
    data[middle : middle + 2_000] = bytes(2_000)
    bad.write_bytes(data)
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(fs.FileFormatError):
        fs.scan(bad).write(out, partition_by="day", overwrite=True)
    assert os.listdir(out) == ["mine.txt"]
    assert sorted(os.listdir(tmp_path)) == ["bad.parquet", "out"]


def test_columns_that_name_no_folders(scan: fs.Scan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(fs.ColumnNotFoundError, match="town"):
        scan.write(out, partition_by="town")
    with pytest.raises(ValueError, match="leave a column"):
        scan.select("day").write(out, partition_by="day")
    pq.write_table(
        pa.table({"e": ["a", ""], "f": [0.5, 1.5], "id": [1, 2]}), tmp_path / "e.parquet"
    )
    odd = fs.scan(tmp_path / "e.parquet")
    with pytest.raises(fs.NotWritableError, match="empty text"):
        odd.write(out, partition_by="e")
    with pytest.raises(fs.NotWritableError, match="'f' is double"):
        odd.write(out, partition_by="f")
    assert not out.exists()
