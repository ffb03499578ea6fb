"""Lists, globs, directories and Hive folders: rows against lists, work against the trace."""

import array
import gc
import io
import os
import pickle
import resource
import time
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.formats import TURNS, even, writer_of, written
from tests.support.pages import assert_same

FILES = 2_000
ROWS_PER_FILE = 5
PAGES = 100 * 4 * 2
NULL = "__HIVE_DEFAULT_PARTITION__"


def to_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def put(path: Path, content: pa.Table | list[int], writer: str = "parquet") -> Path:
    """Write a table, or a column `n`, below folders that need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"n": pa.array(content, pa.int64())}) if isinstance(content, list) else content
    path.write_bytes(written(table, writer, [table.num_rows]))
    return path


@pytest.fixture(params=sorted(TURNS))
def turns(request: pytest.FixtureRequest) -> str:
    """Which formats the files of a scan have."""
    name: str = request.param
    return name


def column(scan: fs.Scan, name: str = "n") -> list[Any]:
    values: list[Any] = scan.to_arrow()[name].to_pylist()
    return values


def paths_of(trace: fs.Trace, why: str | None = None) -> list[str]:
    """The files that were read, in order of their names."""
    return sorted({read.path for read in trace.log if why in (None, read.why)})


# Where files come from


@pytest.fixture
def tree(tmp_path: Path, turns: str) -> Path:
    """Files in folders whose values are in sorted order of their paths, and what is left out."""
    root = tmp_path / "tree"
    for at, name in enumerate(["a/1.parquet", "a/2.bin", "b/c/3", "b/d.parquet", "z.parquet"]):
        put(root / name, [10 * at, 10 * at + 1], writer_of(turns, at))
    for name in ["_x.parquet", ".x.parquet", "a/_metadata", "_tmp/x.parquet", "b/.git/x.parquet"]:
        put(root / name, [-1])
    (root / "readme.txt").write_text("not a Parquet file, and longer than twelve bytes")
    (root / "b" / "empty.txt").write_text("")
    return root


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


@pytest.fixture
def lake(tmp_path: Path, turns: str) -> Path:
    """Two levels of folders, in a folder whose name looks like one but is above."""
    root = tmp_path / "above=1" / "lake"
    for year in (2023, 2024):
        for city in ("NYC", "San%20Jose"):
            base = year * 10 + len(city)
            folder = root / f"year={year}" / f"city={city}"
            put(folder / "1.parquet", [base, base + 1], writer_of(turns, year))
            put(folder / "2.parquet", [base + 2], writer_of(turns, year + 1))
    return root


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


# Files that differ


def test_columns_are_matched_by_name_whatever_their_order_and_nullability(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("b", pa.string()), pa.field("a", pa.int64(), nullable=False)])
    one = pa.table({"a": [1, None], "b": ["x", "y"]})
    two = pa.table({"b": ["z", None], "a": [3, 4]}, schema=schema)
    rows = {"a": [1, None, 3, 4], "b": ["x", "y", "z", None]}
    scan = fs.scan([put(tmp_path / "1", one), put(tmp_path / "2", two)])
    assert scan.to_arrow().to_pydict() == rows
    assert scan.to_arrow().column_names == ["a", "b"]
    assert fs.scan([tmp_path / "2", tmp_path / "1"]).to_arrow().column_names == ["b", "a"]
    # A required column first, then one with nulls: no table may claim that it has none.
    turned = fs.scan([tmp_path / "2", tmp_path / "1"]).to_arrow()
    assert turned.schema.field("a").nullable
    assert turned.to_pydict() == {"b": ["z", None, "x", "y"], "a": [3, 4, 1, None]}


ORDERS = {1: ["b", "a"], 2: ["a", "b", "c"], 3: ["c", "a", "b"]}
PREDICATES = ["k > 0", "k = 2", "k >= 2", "k <> 1 and a > 20", "k in (1, 3)", "k > 9", "a > 0"]


@pytest.fixture
def ordered_otherwise(tmp_path: Path, turns: str) -> Path:
    """A file in each folder, with its columns in an order of its own; the first lacks one."""
    for turn, (key, names) in enumerate(ORDERS.items()):
        table = pa.table({name: pa.array([key * 10, key * 10 + 1]) for name in names})
        put(tmp_path / f"k={key}" / "file", table, writer_of(turns, turn))
    return tmp_path


@pytest.mark.parametrize(("missing", "names"), [("error", ["b", "a"]), ("null", ["b", "a", "c"])])
@pytest.mark.parametrize("text", PREDICATES)
def test_a_predicate_changes_no_column(
    ordered_otherwise: Path, text: str, missing: Literal["error", "null"], names: list[str]
) -> None:
    whole = fs.scan(ordered_otherwise, missing=missing)
    expected = [
        {**{name: a if name in ORDERS[key] else None for name in names}, "k": key}
        for key in ORDERS
        for a in (key * 10, key * 10 + 1)
        if duckdb.execute(f"select 1 from (select {key} as k, {a} as a) where {text}").fetchall()
    ]
    scan = whole.filter(text)
    assert whole.schema.names == [*names, "k"]
    assert scan.schema.equals(whole.schema)
    assert scan.to_arrow().schema.equals(whole.schema)
    assert scan.to_arrow().to_pylist() == expected
    assert scan.count() == len(expected)
    assert [row.as_dict() for row in scan] == expected
    assert scan.tail(1).to_arrow().to_pylist() == expected[-1:]
    assert all(list(batch) == whole.schema.names for batch in scan.columns())
    parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(target_bytes=1)]
    assert all(part.to_arrow().schema.equals(whole.schema) for part in parts)
    assert [row for part in parts for row in part.to_arrow().to_pylist()] == expected


def test_of_files_that_folders_drop_only_the_first_is_opened(
    ordered_otherwise: Path,
) -> None:
    with fs.trace() as trace:
        assert fs.scan(ordered_otherwise).filter("k = 3").to_arrow().num_rows == 2
    opened = {ordered_otherwise / f"k={key}" / "file" for key in (1, 3)}
    assert {Path(path) for path in paths_of(trace)} == opened
    assert {Path(path) for path in paths_of(trace, "data")} == {ordered_otherwise / "k=3" / "file"}
    footers = [(read.path, read.offset) for read in trace.log if read.why == "footer"]
    assert len(footers) == len(set(footers))


def test_a_file_that_folders_drop_does_not_say_what_a_predicate_tests(tmp_path: Path) -> None:
    put(tmp_path / "k=1" / "file", pa.table({"n": [1], "x": ["text"]}))
    put(tmp_path / "k=2" / "file", pa.table({"n": [2], "x": [7], "y": [8]}))
    scan = fs.scan(tmp_path).select("n")
    assert column(scan.filter("k = 2 and x > 6")) == [2]
    assert column(scan.filter("k = 2 and y > 6")) == [2]
    with pytest.raises(fs.PredicateTypeError):
        scan.filter("k > 0 and x > 6").to_arrow()


def test_one_type_may_be_stored_in_several_ways() -> None:
    table = pa.table({"d": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2))})
    one, two = (to_bytes(table, store_decimal_as_integer=flag) for flag in (True, False))
    assert_same(fs.scan([one, two]).to_arrow(), pa.concat_tables([table, table]))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (pa.int64(), pa.int32()),
        (pa.int64(), pa.string()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.list_(pa.int64()), pa.list_(pa.string())),
        (pa.int64(), pa.list_(pa.int64())),
        (pa.struct({"x": pa.int64()}), pa.struct({"x": pa.string()})),
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", ["error", "null"])
def test_types_that_differ_are_a_mismatch(
    one: pa.DataType, two: pa.DataType, missing: Any, tmp_path: Path
) -> None:
    for name, kind in (("1.parquet", one), ("2.parquet", two)):
        put(tmp_path / name, pa.table({"n": [1], "value": pa.nulls(1, kind)}))
    with fs.trace() as trace, pytest.raises(fs.SchemaMismatchError, match="value") as caught:
        fs.scan(tmp_path, missing=missing).to_arrow()
    assert "2.parquet" in str(caught.value)
    assert paths_of(trace, "data") in ([], [str(tmp_path / "1.parquet")])
    # A window that ends before the other file never looks at it.
    if missing == "error":
        assert fs.scan(tmp_path).head(1).to_arrow()["value"].type == one


@pytest.fixture
def differing(tmp_path: Path, turns: str) -> list[Any]:
    lists = pa.array([[1, 2], None], pa.list_(pa.int64()))
    tables = [
        pa.table({"id": [1, 2], "old": ["x", "y"]}),
        pa.table({"tags": lists, "id": [3, 4]}),
        pa.table({"new": [0.5], "id": [5], "old": ["z"]}),
    ]
    numbered = enumerate(tables)
    return [put(tmp_path / str(at), table, writer_of(turns, at)) for at, table in numbered]


def test_missing_column_is_a_mismatch_unless_it_is_null(differing: list[Any]) -> None:
    with pytest.raises(fs.SchemaMismatchError, match="old") as caught:
        fs.scan(differing).to_arrow()
    assert str(differing[1]) in str(caught.value)
    assert column(fs.scan(differing).select("id"), "id") == [1, 2, 3, 4, 5]
    scan = fs.scan(differing, missing="null")
    assert scan.to_arrow().to_pydict() == {
        "id": [1, 2, 3, 4, 5],
        "old": ["x", "y", None, None, "z"],
        "tags": [None, None, [1, 2], None, None],
        "new": [None, None, None, None, 0.5],
    }
    assert scan.to_arrow().schema.equals(scan.schema)
    assert scan.select("new", "old").skip(1).head(3).to_arrow().to_pydict() == {
        "new": [None] * 3,
        "old": ["y", None, None],
    }
    assert scan.select("tags").tail(4).to_arrow()["tags"].to_pylist() == [None, [1, 2], None, None]
    assert scan.take([4, 0, 2]).to_pydict()["new"] == [0.5, None, None]
    with pytest.raises(fs.ColumnNotFoundError, match="newer"):
        scan.select("newer").to_arrow()


def test_file_paths_and_row_numbers(tmp_path: Path, turns: str) -> None:
    numbers = (2, 0, 3)
    paths: list[Any] = [
        put(tmp_path / str(n), list(range(n)), writer_of(turns, at)) for at, n in enumerate(numbers)
    ]
    scan = fs.scan(paths).with_file_path("file").with_row_index("row")
    assert scan.schema.names == ["row", "n", "file"]
    files = [str(paths[0])] * 2 + [str(paths[2])] * 3
    table = pa.table({"row": range(5), "n": [0, 1, 0, 1, 2], "file": files})
    assert scan.to_arrow().to_pydict() == table.to_pydict()
    assert scan.schema.field("row").type == pa.int64()
    assert scan.schema.field("file").type == pa.string()
    assert scan.tail(4).to_arrow().to_pydict() == table.slice(1).to_pydict()
    assert scan.take([4, 1]).to_pydict() == table.take([4, 1]).to_pydict()
    alone = fs.scan(paths).select().with_file_path().skip(1).to_arrow()
    assert alone.to_pydict() == {"path": files[1:]}


# Windows across files


@cache
def part(ordinal: int, size: int, group: int, writer: str = "parquet") -> bytes:
    table = pa.table({"id": pa.array(range(100 * ordinal, 100 * ordinal + size), pa.int64())})
    strides = {"row_index_stride": 2, "blooms": ordinal % 2 == 0}
    pages = {"max_rows_per_page": 2, "write_batch_size": 1, "write_page_index": ordinal % 2 == 0}
    layout = pages if writer == "parquet" else strides
    return written(table, writer, even(size, group), **layout)


every_turn = st.sampled_from(sorted(TURNS))
file_sizes = st.lists(st.integers(0, 12), min_size=1, max_size=6)


@pytest.mark.slow
@given(every_turn, file_sizes, st.sampled_from([1, 3, 5]), st.data())
def test_scans_across_files_agree_with_lists(
    turns: str, sizes: list[int], group: int, data: st.DataObject
) -> None:
    sources: list[Any] = [
        part(at, size, group, writer_of(turns, at)) for at, size in enumerate(sizes)
    ]
    scan = fs.scan(sources).with_row_index()
    local = [(at, row) for at, size in enumerate(sizes) for row in range(size)]
    rows = [(index, 100 * at + row) for index, (at, row) in enumerate(local)]
    if data.draw(st.booleans(), "blocks"):
        # Of each file by itself.
        start = data.draw(st.integers(0, 4))
        end = data.draw(st.integers(start, 4))
        scan = scan.filter(fs.blocks(start, end))
        rows = [r for r, (_, row) in zip(rows, local, strict=True) if start <= row // group < end]
    if bool(local) and data.draw(st.booleans(), "select rows"):
        chosen = data.draw(st.lists(st.integers(0, len(local) - 1)))
        scan = scan.select_rows(chosen)
        rows = [row for row in rows if row[0] in set(chosen)]
    count = st.integers(0, len(local) + 2)
    match data.draw(st.sampled_from(["none", "window", "skip", "tail"])):
        case "window":
            skip, head = data.draw(count), data.draw(count)
            scan, rows = scan.head(head).skip(skip), rows[skip : skip + head]
        case "skip":
            skip = data.draw(count)
            scan, rows = scan.skip(skip), rows[skip:]
        case "tail":
            tail = data.draw(count)
            scan, rows = scan.tail(tail), rows[len(rows) - tail :] if tail < len(rows) else rows
    expected = {"index": [row[0] for row in rows], "id": [row[1] for row in rows]}
    assert scan.to_arrow().to_pydict() == expected
    assert scan.count() == len(rows)
    streamed = pa.Table.from_batches(scan.batches(3), scan.schema)
    assert streamed.to_pydict() == expected


@pytest.mark.slow
@given(every_turn, file_sizes, st.data())
def test_take_across_files_agrees_with_lists(
    turns: str, sizes: list[int], data: st.DataObject
) -> None:
    scan = fs.scan([part(at, size, 5, writer_of(turns, at)) for at, size in enumerate(sizes)])
    ids = [100 * at + row for at, size in enumerate(sizes) for row in range(size)]
    rows = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=8)) if ids else []
    assert scan.take(rows)["id"].to_pylist() == [ids[row] for row in rows]
    with pytest.raises((IndexError, ValueError)):
        scan.take([*rows, len(ids)])
    with pytest.raises((IndexError, ValueError)):
        scan.select_rows([*rows, len(ids)]).to_arrow()


def test_selections_across_files_may_be_shorter_but_not_longer(tree: Path) -> None:
    shorter = fs.RowSelection.from_indices([1, 2, 5], 6)
    assert column(fs.scan(tree).select_rows(shorter)) == [1, 10, 21]
    with pytest.raises(ValueError, match=r"1[01]"):
        fs.scan(tree).select_rows(fs.RowSelection.all(11)).to_arrow()


@pytest.mark.parametrize("writer", ["parquet", "orc", "pyorc"])
def test_byte_ranges_apply_to_each_file_by_itself(writer: str) -> None:
    data = part(0, 12, 5, writer)
    cuts = range(0, len(data), 10)
    kept = [fs.scan([data] * 2).filter(fs.byte_range(0, cut)).count() for cut in cuts]
    assert kept == sorted(kept)
    assert set(kept) == {0, 10, 20, 24}


@pytest.mark.parametrize("target", [1, 300, 10**9])
def test_splits_of_several_files_partition_the_scan(lake: Path, turns: str, target: int) -> None:
    put(lake / "year=2024" / "city=NYC" / "3.parquet", [], writer_of(turns, 0))
    whole = fs.scan(lake).with_row_index().with_file_path()
    for scan in (whole, whole.select("city", "n"), whole.filter(fs.blocks(0, 1)).select("year")):
        splits = [pickle.loads(pickle.dumps(each)) for each in scan.splits(target_bytes=target)]
        parts = [split.to_arrow() for split in splits]
        together = pa.concat_tables(parts).sort_by("index")
        assert_same(together, scan.to_arrow())
        assert sum(split.count() for split in splits) == scan.count()
    assert len(whole.splits(target_bytes=1)) >= 8


# How much work


@pytest.fixture(scope="session")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 files, the same one by many names."""
    root = tmp_path_factory.mktemp("many")
    first = put(root / "00000.parquet", list(range(ROWS_PER_FILE)))
    for at in range(1, FILES):
        os.link(first, root / f"{at:05}.parquet")
    return root


def name_at(root: Path, ordinal: int) -> str:
    return str(root / f"{ordinal:05}.parquet")


def test_head_of_many_files_opens_a_handful(small_files: Path) -> None:
    with fs.trace() as trace:
        assert column(fs.scan(small_files).head(10)) == [*range(5), *range(5)]
    assert len(paths_of(trace)) <= 5
    assert paths_of(trace, "data") == [name_at(small_files, 0), name_at(small_files, 1)]
    with fs.trace() as trace:
        assert fs.scan(small_files).schema.names == ["n"]
    assert len(paths_of(trace)) <= 5


def test_count_of_many_files_reads_only_footers(small_files: Path) -> None:
    with fs.trace() as trace:
        assert fs.scan(small_files).count() == FILES * ROWS_PER_FILE
    assert {read.why for read in trace.log} == {"footer"}
    assert len(paths_of(trace)) == FILES
    assert trace.pages_decoded == 0


def test_tail_of_many_files_opens_only_those_at_the_end(small_files: Path) -> None:
    with fs.trace() as trace:
        assert column(fs.scan(small_files).tail(7)) == [3, 4, *range(5)]
    assert paths_of(trace, "data") == [name_at(small_files, at) for at in (FILES - 2, FILES - 1)]
    # The first file says what the columns are and their order; nothing but its footer is read.
    last = {name_at(small_files, at) for at in range(FILES - 5, FILES)}
    assert set(paths_of(trace)) <= last | {name_at(small_files, 0)}


def test_windows_count_files_before_them_and_never_open_those_behind(small_files: Path) -> None:
    with fs.trace() as trace:
        assert column(fs.scan(small_files).skip(501).head(7)) == [1, 2, 3, 4, 0, 1, 2]
    assert paths_of(trace, "data") == [name_at(small_files, 100), name_at(small_files, 101)]
    assert max(paths_of(trace)) == name_at(small_files, 101)
    before = [read for read in trace.log if read.path < name_at(small_files, 100)]
    assert {read.why for read in before} == {"footer"}


@pytest.mark.slow
def test_rows_of_many_files_come_from_their_files_only(small_files: Path) -> None:
    rows = [9_999, 3, 5_002]
    wanted = [name_at(small_files, at) for at in (0, 1_000, 1_999)]
    with fs.trace() as trace:
        assert fs.scan(small_files).take(rows)["n"].to_pylist() == [4, 3, 2]
    assert paths_of(trace, "data") == wanted
    with fs.trace() as trace:
        assert column(fs.scan(small_files).select_rows(rows)) == [3, 2, 4]
    assert paths_of(trace, "data") == wanted


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """The process may open a hundred files more than it has."""
    gc.collect()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


OPENING: dict[str, Callable[[fs.Scan], Any]] = {
    "whole": lambda scan: scan.to_arrow(),
    "stream": lambda scan: [batch.num_rows for batch in scan.batches()],
    "one batch": lambda scan: next(scan.batches()),
    "count": lambda scan: scan.count(),
    "window": lambda scan: scan.skip(700).head(1_200).to_arrow(),
    "tail": lambda scan: scan.tail(1_800).to_arrow(),
    "select_rows": lambda scan: scan.select_rows(range(0, 2_500, 4)).to_arrow(),
    "take": lambda scan: scan.take(list(range(2_499, 0, -4))),
    "blocks": lambda scan: scan.filter(fs.blocks(0, 1)).skip(10).to_arrow(),
    "plan": lambda scan: scan.skip(10).plan(),
    "splits": lambda scan: scan.splits(),
}


@pytest.mark.slow
@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("use", OPENING.values(), ids=OPENING.keys())
def test_open_files_do_not_grow_with_the_files_of_a_scan(
    use: Callable[[fs.Scan], Any], small_files: Path
) -> None:
    before = open_files()
    use(fs.scan([name_at(small_files, at) for at in range(500)]))
    gc.collect()
    assert open_files() <= before + 1


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 row groups of four pages for each of two columns."""
    values = np.random.default_rng(21).normal(size=2_000_000)
    path = tmp_path_factory.mktemp("large") / "data.parquet"
    layout = {"row_group_size": 20_000, "max_rows_per_page": 5_000, "use_dictionary": False}
    pq.write_table(pa.table({"x": values, "y": -values}), path, compression="none", **layout)
    return path


def assert_at_rest(trace: fs.Trace) -> None:
    """What was under way ends soon, and then nothing more is read or decoded."""
    deadline = time.monotonic() + 10
    seen = None
    while seen != (trace.requests, trace.pages_decoded):
        assert time.monotonic() < deadline
        seen = (trace.requests, trace.pages_decoded)
        time.sleep(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 20])
@pytest.mark.parametrize("closing_it", [True, False], ids=["closed", "dropped"])
def test_closing_a_stream_early_stops_the_work(
    large_file: Path, files: int, closing_it: bool
) -> None:
    scan = fs.scan([large_file] * files)
    streams: list[Callable[[], Any]] = [scan.batches, lambda: scan.batches(100), scan.to_reader]
    for stream in streams:
        with fs.trace() as trace:
            batches = stream()
            assert next(iter(batches)).num_rows > 0
            if closing_it:
                batches.close()
            else:
                del batches
                gc.collect()
            assert_at_rest(trace)
        assert 0 < trace.pages_decoded < PAGES / 4
        assert trace.data_bytes < large_file.stat().st_size / 4
