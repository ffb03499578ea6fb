"""Splits of files that differ: each has the columns of the whole scan, and knows its own rows."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import ROW_GROUPS, Reader, encoded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of both formats, none of which has all columns."""
    pq.write_table(pa.table({"a": [1, 2], "b": [1.5, None]}), tmp_path / "1.parquet")
    orc.write_table(pa.table({"a": [3, 4], "c": ["x", "y"]}), tmp_path / "2.orc")
    pq.write_table(pa.table({"c": ["z"], "a": [5]}), tmp_path / "3.parquet")
    return tmp_path


WHOLE = pa.table(
    {
        "a": [1, 2, 3, 4, 5],
        "b": [1.5, None, None, None, None],
        "c": [None, None, "x", "y", "z"],
    }
)


def splits(scan: fs.Scan) -> list[fs.Scan]:
    return [pickle.loads(pickle.dumps(split)) for split in scan.splits(target_bytes=1)]


def test_a_split_has_the_columns_of_all_files(folder: Path) -> None:
    parts = [split.to_arrow() for split in splits(fs.scan(folder, missing="null"))]
    assert len(parts) == 3
    assert pa.concat_tables(parts).equals(WHOLE)


def test_predicates_on_columns_that_a_file_lacks(folder: Path) -> None:
    scan = fs.scan(folder, missing="null").filter("b > 1 or c = 'x' or c is null").select("c", "b")
    parts = [split.to_arrow() for split in splits(scan)]
    kept = WHOLE.take([0, 1, 2]).select(["c", "b"])
    assert pa.concat_tables(parts).equals(kept)


def test_one_column_of_a_split_that_lacks_it(folder: Path) -> None:
    parts = splits(fs.scan(folder, missing="null"))
    found = [batch.arrow.to_pylist() for split in parts for batch in split.column("c")]
    assert [value for values in found for value in values] == WHOLE["c"].to_pylist()


def test_a_split_of_a_file_without_a_column_says_so(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    for scan in (fs.scan(tmp_path), fs.scan(tmp_path).select("a").filter(col("b") == 2)):
        first, second = splits(scan)
        assert first.count() == 1
        with pytest.raises(fs.SchemaMismatchError, match=r"2\.parquet: has no column 'b'"):
            second.to_arrow()


def test_a_split_of_a_file_with_another_type_says_so(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    _, second = splits(fs.scan(tmp_path))
    with pytest.raises(fs.SchemaMismatchError, match=r"2\.parquet: column 'a' is string here"):
        second.to_arrow()


def test_columns_can_be_chosen_of_a_split(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "1.parquet")
    [split] = splits(fs.scan(tmp_path / "1.parquet"))
    assert split.select("b").to_arrow().to_pydict() == {"b": [3, 4]}


def test_the_last_rows_of_a_split_are_numbered_in_the_whole_scan(tmp_path: Path) -> None:
    for place in range(3):
        rows = pa.table({"n": range(10 * place, 10 * place + 10)})
        pq.write_table(rows, tmp_path / f"{place}.parquet")
    scan = fs.scan(tmp_path).filter(col("n") != 25)
    last = splits(scan.with_row_index())[-1]
    assert last.tail(2).to_arrow().to_pydict() == {"index": [28, 29], "n": [28, 29]}
    chosen = splits(scan.select_rows([3, 24, 27, 29]))[-1]
    assert chosen.tail(2).to_arrow().to_pydict() == {"n": [27, 29]}
    assert chosen.tail(9).to_arrow().to_pydict() == {"n": [24, 27, 29]}


def reversed_row_groups(path: Path) -> Path:
    """A file whose footer lists its row groups from the last to the first."""
    pq.write_table(pa.table({"n": range(20)}), path, row_group_size=5)
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = Reader(data[-8 - size : -8]).struct()
    kind, (element, groups) = footer[ROW_GROUPS]
    footer[ROW_GROUPS] = (kind, (element, groups[::-1]))
    new = encoded(footer)
    path.write_bytes(data[: -8 - size] + new + len(new).to_bytes(4, "little") + b"PAR1")
    return path


def test_row_groups_that_lie_in_another_order_stay_in_one_split(tmp_path: Path) -> None:
    path = reversed_row_groups(tmp_path / "file.parquet")
    rows = pq.read_table(path)["n"].to_pylist()
    assert rows[:6] == [15, 16, 17, 18, 19, 10]
    parts = [split.to_arrow()["n"].to_pylist() for split in splits(fs.scan(path))]
    assert parts == [rows]
