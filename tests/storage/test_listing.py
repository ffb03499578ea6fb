"""Lists, globs, directories and Hive folders: which files a scan has, in which order."""

import array
import io
import pickle
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from tests.support.file_lists import column, put
from tests.support.pages import assert_same

NULL = "__HIVE_DEFAULT_PARTITION__"


# Where files come from


def test_directories_are_every_file_below_in_sorted_order(tree: Path) -> None:
    expected = [0, 1, 10, 11, 20, 21, 30, 31, 40, 41]
    sources: tuple[Any, ...] = (tree, str(tree), f"{tree}/", [tree], (str(tree),))
    for source in sources:
        assert column(fs.scan(source)) == expected
    assert column(fs.scan([tree / "b", tree / "a"])) == [20, 21, 30, 31, 0, 1, 10, 11]


GLOBS = {
    "*.parquet": [40, 41],
    "a/*": [0, 1, 10, 11],
    "a/?.parquet": [0, 1],
    "[ab]/*.parquet": [0, 1, 30, 31],
    "**/*.parquet": [0, 1, 30, 31, 40, 41],
    "b/**/3": [20, 21],
    "{a,b}/*.parquet": [0, 1, 30, 31],
    "{b/d,a/1}.{parquet,orc}": [0, 1, 30, 31],
    "{a,{b,missing}}/*": [0, 1, 10, 11, 20, 21, 30, 31],
    "{z.parquet,z.parquet,a/2.bin}": [10, 11, 40, 41],
    "{b/,}*.parquet": [30, 31, 40, 41],
}


@pytest.mark.parametrize("pattern", GLOBS)
def test_globs(tree: Path, pattern: str) -> None:
    expected = GLOBS[pattern]
    assert column(fs.scan(f"{tree}/{pattern}")) == expected
    assert column(fs.scan([f"{tree}/{pattern}", tree / "z.parquet"])) == [*expected, 40, 41]


def test_braces_in_the_name_of_a_file_are_just_that(tmp_path: Path) -> None:
    put(tmp_path / "{a,b}.parquet", [1])
    put(tmp_path / "_{x}" / "a.parquet", [2])
    assert column(fs.scan(f"{tmp_path}/{{a,b}}.parquet")) == [1]
    assert column(fs.scan(f"{tmp_path}/_{{x}}/*.parquet")) == [2]


def test_anything_that_can_be_iterated_over_is_a_list_of_sources(tree: Path) -> None:
    paths = [tree / "b" / "d.parquet", tree / "a" / "1.parquet"]
    for sources in (iter(paths), dict.fromkeys(paths), map(str, paths), (path for path in paths)):
        scan = fs.scan(sources)
        assert column(scan) == [30, 31, 0, 1]
        assert scan.count() == 4  # and once more, though an iterator is used up
    assert sorted(column(fs.scan((tree / "a").glob("*.parquet")))) == [0, 1]
    with pytest.raises(fs.SourceNotFoundError, match="no sources were given"):
        fs.scan(tree.glob("nothing*"))


def test_anything_with_the_buffer_protocol_is_the_bytes_of_a_file(tree: Path) -> None:
    data = (tree / "a" / "1.parquet").read_bytes()
    buffers = [
        *(data, bytearray(data), memoryview(data), pa.py_buffer(data), array.array("B", data)),
        *(np.frombuffer(data, np.uint8), io.BytesIO(data).getbuffer()),
    ]
    for buffer in buffers:
        scan = fs.scan(buffer)
        assert column(scan) == column(fs.scan([buffer])) == [0, 1]
        assert column(pickle.loads(pickle.dumps(scan))) == [0, 1]
        assert [column(pickle.loads(pickle.dumps(part))) for part in scan.splits(1)] == [[0, 1]]
        with fs.open(buffer) as file:
            assert file.num_rows == 2
    assert column(fs.scan(buffers)) == [0, 1] * len(buffers)


def test_lists_keep_their_order_and_mix_paths_with_bytes(tree: Path) -> None:
    first, last = tree / "a" / "1.parquet", tree / "z.parquet"
    opened = io.BytesIO(last.read_bytes())
    scan = fs.scan([last, first.read_bytes(), str(first), opened, tree / "a"])
    assert column(scan) == [40, 41, 0, 1, 0, 1, 40, 41, 0, 1, 10, 11]
    assert scan.count() == 12
    assert scan.skip(3).head(4).to_arrow()["n"].to_pylist() == [1, 0, 1, 40]
    assert scan.take([6, 0, 3])["n"].to_pylist() == [40, 40, 1]


NOTHING = ["nothing.parquet", "*.parquet", "nothing/*.parquet", "**/*.parquet", "empty"]


@pytest.mark.parametrize("name", [*NOTHING, "text", "texts", "text/*", "texts/*"])
def test_no_file_is_an_error(name: str, tmp_path: Path) -> None:
    for folder, count in (("empty", 0), ("text", 1), ("texts", 2)):
        (tmp_path / folder).mkdir()
        for at in range(count):
            (tmp_path / folder / f"readme {at}.txt").write_text("only text, and more text")
    source = f"{tmp_path}/{name}"
    good = put(tmp_path / "data", [1])
    for use in (fs.Scan.to_arrow, fs.Scan.count, lambda scan: scan.schema):
        with pytest.raises(fs.SourceNotFoundError, match=tmp_path.name) as caught:
            use(fs.scan(source))
        assert isinstance(caught.value, FileNotFoundError)
    with pytest.raises(fs.SourceNotFoundError, match=tmp_path.name):
        fs.scan([good, source]).to_arrow()


def test_no_source_is_an_error() -> None:
    with pytest.raises(fs.SourceNotFoundError):
        fs.scan([]).to_arrow()


@pytest.mark.parametrize("texts", ["0", "z", "01", "yz", "0z"])
def test_other_files_are_passed_over_wherever_they_are(texts: str, tmp_path: Path) -> None:
    put(tmp_path / "a", [1])
    for name in texts:
        (tmp_path / name).write_text("only text, and more text")
    scan = fs.scan(tmp_path)
    assert (column(scan), scan.count(), scan.schema.names) == ([1], 1, ["n"])
    assert (column(scan.tail(1)), column(scan.skip(1)), column(scan.head(2))) == ([1], [], [1])
    assert (column(scan.select_rows([0])), scan.take([0])["n"].to_pylist()) == ([1], [1])
    assert (scan.plan().rows.total, len(scan.splits())) == (1, 1)


def test_explain_counts_data_files_only(tree: Path) -> None:
    scan = fs.scan(tree)
    names = ["a/1.parquet", "a/2.bin", "b/c/3", "b/d.parquet", "z.parquet"]
    assert scan.plan().files == tuple(str(tree / name) for name in names)
    assert "scan of 5 files, of which 5 were opened\n" in scan.explain()
    assert "scan of 5 files, of which 5 were opened\n" in scan.filter("n > 10").explain(run=True)
    (tree / "a" / "notes.txt").write_text("neither, and longer than twelve bytes")
    (tree / "a" / "2.bin").unlink()
    assert f"scan of {tree}/a/1.parquet\n" in fs.scan(tree / "a").explain()


def test_truncated_file_in_a_directory_is_not_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", [1])
    whole = put(tmp_path / "b.parquet", [2]).read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 12):
        (tmp_path / "b.parquet").write_bytes(whole[:length])
        for source in (tmp_path, f"{tmp_path}/*.parquet"):
            for use in (fs.Scan.to_arrow, fs.Scan.count):
                with pytest.raises(fs.FileFormatError, match=r"b\.parquet"):
                    use(fs.scan(source))


def test_file_that_is_named_must_be_parquet(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("not a Parquet file at all, only text")
    with pytest.raises(fs.FileFormatError, match=r"readme\.txt"):
        fs.scan([put(tmp_path / "a.parquet", [1]), tmp_path / "readme.txt"]).to_arrow()


# Hive folders


@pytest.mark.parametrize(
    ("folders", "kind", "expected"),
    [
        (["1", "-20", "007"], pa.int64(), {1, -20, 7}),
        (["1", NULL], pa.int64(), {1, None}),
        (["2024-02-29", "1999-12-31"], pa.date32(), {date(2024, 2, 29), date(1999, 12, 31)}),
        (["2024-02-29", NULL], pa.date32(), {date(2024, 2, 29), None}),
        (["2024-02-29", "7"], pa.string(), {"2024-02-29", "7"}),
        (["2024-02-30", "2024-02-29"], pa.string(), {"2024-02-30", "2024-02-29"}),
        (["1", "1.5", NULL], pa.string(), {"1", "1.5", None}),
        (["New%20York", "a%3Db%2Fc", "%C3%A9", "100%25"], pa.string(), None),
        ([str(2**63), "1"], pa.string(), {str(2**63), "1"}),
        ([str(-(2**63)), str(2**63 - 1)], pa.int64(), {-(2**63), 2**63 - 1}),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else None,
)
def test_hive_values_have_a_type(
    folders: list[str], kind: pa.DataType, expected: set[Any] | None, tmp_path: Path
) -> None:
    for folder in folders:
        put(tmp_path / f"key={folder}" / "data.parquet", [1])
    scan = fs.scan(tmp_path)
    assert scan.schema.equals(pa.schema({"n": pa.int64(), "key": kind}))
    assert set(column(scan, "key")) == (expected or {"New York", "a=b/c", "é", "100%"})
    assert scan.to_arrow().schema.equals(scan.schema)


CITIES = (("NYC", 3), ("San Jose", 10))


def lake_table() -> pa.Table:
    rows = [(y, c, y * 10 + w + i) for y in (2023, 2024) for c, w in CITIES for i in range(3)]
    years, cities, values = zip(*rows, strict=True)
    return pa.table({"n": values, "year": pa.array(years, pa.int64()), "city": cities})


def test_hive_folders_are_the_last_columns(lake: Path) -> None:
    assert_same(fs.scan(lake).to_arrow(), lake_table())
    assert_same(fs.scan(lake).skip(2).head(7).to_arrow(), lake_table().slice(2, 7))
    assert_same(fs.scan(lake).tail(4).to_arrow(), lake_table().slice(8))
    assert_same(fs.scan(lake).take([11, 0, 3, 3]), lake_table().take([11, 0, 3, 3]))
    assert_same(pa.Table.from_batches(fs.scan(lake).batches(2)), lake_table())
    indexed = fs.scan(lake).with_row_index().with_file_path().select_rows([5, 7]).to_arrow()
    assert indexed.column_names == ["index", "n", "year", "city", "path"]
    assert_same(indexed.select(["n", "year", "city"]), lake_table().take([5, 7]))
    assert indexed["index"].to_pylist() == [5, 7]


@pytest.mark.parametrize("names", [["city"], ["year", "n"], ["city", "year"]], ids="-".join)
def test_hive_columns_are_selected_by_name(names: list[str], lake: Path) -> None:
    with fs.trace() as trace:
        result = fs.scan(lake).select(*names).skip(1).to_arrow()
    assert_same(result, lake_table().select(names).slice(1))
    assert (trace.data_bytes > 0) == ("n" in names)
    with pytest.raises(fs.ColumnNotFoundError, match="city"):
        fs.scan(lake).select("citi").to_arrow()
