"""Files that differ in their columns and types are scanned as one."""

import io
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.file_lists import column, paths_of, put
from tests.support.formats import writer_of
from tests.support.pages import assert_same


def to_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


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
