"""Rows of other writers' files and of nested tables, chosen in every way."""

import copy
import datetime as dt
import io
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.formats.test_corpus import oracle, parameters, scan
from tests.support.depth import in_depth
from tests.support.expected_rows import (
    BERLIN,
    ROWS,
    UTC,
    assert_rows,
    counted,
    expected_rows,
    fingerprint,
    orders,
    written,
)
from tests.support.nested_data import Kinds, nested_table, parquet_bytes, pyarrow_read

# Files by other writers


@pytest.mark.parametrize("path", parameters("whole"))
def test_rows_of_files_by_other_writers(path: Path) -> None:
    table = oracle(path)
    whole = expected_rows(table)
    assert_rows(scan(path, path).rows(), whole)
    assert_rows(scan(path, path), whole)
    total = table.num_rows
    assert_rows(scan(path, path).skip(total // 3).head(5), whole[total // 3 :][:5])
    assert_rows(scan(path, path).tail(3), whole[-3:])


@pytest.mark.parametrize("path", parameters("in part", "not at all"))
def test_rows_of_damaged_files_raise(path: Path) -> None:
    with pytest.raises(fs.FileFormatError, match=path.name):
        list(scan(path, path).rows())


def test_the_oracle_is_pyarrow_where_nothing_would_be_lost() -> None:
    table = pa.table(
        {
            "stamp": counted([0, None, 10**15], pa.timestamp("us", "Europe/Berlin")),
            "days": pa.array([[dt.date(2024, 2, 29)], None, []]),
            "map": pa.array([None, [(1, dt.time(1)), (1, None)], []], pa.map_("i4", "time64[us]")),
            "struct": pa.array([{"t": dt.timedelta(1), "n": [1]}, None, {"t": None, "n": None}]),
            "number": [1.5, None, -0.0],
        }
    )
    assert fingerprint(expected_rows(table)) == fingerprint(table.to_pylist())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        *((1, 1.0), (1, True), (0.0, -0.0), (0, False), ("a", b"a"), ([1], (1,))),
        *((Decimal("1.0"), Decimal("1.00")), ({"a": 1, "b": 2}, {"b": 2, "a": 1})),
        (dt.datetime(2024, 1, 1, tzinfo=BERLIN), dt.datetime(2023, 12, 31, 23, tzinfo=UTC)),
        (dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1)),
        (np.datetime64(1, "us"), np.datetime64(1_000, "ns")),
        (np.datetime64(1, "ns"), np.timedelta64(1, "ns")),
        (dt.datetime(2024, 1, 1), dt.date(2024, 1, 1)),
    ],
    ids=repr,
)
def test_the_comparison_tells_apart_what_python_calls_equal(left: Any, right: Any) -> None:
    assert fingerprint(left) != fingerprint(right)
    assert fingerprint([left]) == fingerprint([copy.deepcopy(left)])


# Nested tables, and every way to choose rows


ODD = Kinds(
    leaves=(
        *(pa.uuid(), pa.json_(), pa.float16(), pa.large_string(), pa.large_binary()),
        *(pa.duration("ns"), pa.duration("ms"), pa.time64("ns"), pa.time32("s"), pa.bool8()),
        *(pa.timestamp("ns"), pa.timestamp("ns", "+05:30"), pa.timestamp("ms", "Europe/Berlin")),
        *(pa.dictionary(pa.int32(), pa.string()), pa.decimal256(70, 3), pa.date32()),
    )
)
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"write_page_index": True},
    {"data_page_version": "2.0", "use_dictionary": False},
    {"write_page_index": True, "store_schema": False, "compression": "none"},
)


def assert_nested_rows(seed: int) -> None:
    kinds = ODD if seed % 2 else Kinds()
    table = nested_table(seed, ROWS, columns=3, depth=4, kinds=kinds)
    data = parquet_bytes(table, **LAYOUTS[seed % len(LAYOUTS)])
    whole = expected_rows(pyarrow_read(data))
    assert_rows(fs.scan(data).rows(), whole)
    start = seed * 7 % ROWS
    assert_rows(fs.scan(data).skip(start).head(9), whole[start:][:9])
    assert_rows(fs.scan(data).filter(col("row") >= 70), whole[70:])


@pytest.mark.parametrize("seed", in_depth(range(72), 6, 12))
def test_rows_of_nested_tables(seed: int) -> None:
    assert_nested_rows(seed)


Rows = list[dict[str, Any]]

CHOICES: dict[str, tuple[Callable[[fs.Scan], fs.Scan], Callable[[Rows], Rows]]] = {
    "all": (lambda s: s, lambda r: r),
    "skip": (lambda s: s.skip(33), lambda r: r[33:]),
    "head": (lambda s: s.head(51), lambda r: r[:51]),
    "window": (lambda s: s.skip(47).head(60), lambda r: r[47:107]),
    "head of none": (lambda s: s.head(0), lambda r: []),
    "past the end": (lambda s: s.skip(1_000).head(5), lambda r: []),
    "tail": (lambda s: s.tail(37), lambda r: r[-37:]),
    "tail of none": (lambda s: s.tail(0), lambda r: []),
    "tail of more": (lambda s: s.tail(1_000), lambda r: r),
    "blocks": (lambda s: s.filter(fs.blocks(1, 2)), lambda r: r[50:100]),
    "blocks, window": (lambda s: s.filter(fs.blocks(1, 3)).skip(1).head(60), lambda r: r[51:111]),
    "selected rows": (
        lambda s: s.select_rows([119, 3, 50, 49]),
        lambda r: [r[3], r[49], r[50], r[119]],
    ),
    "no selected rows": (lambda s: s.select_rows([]), lambda r: []),
    "selection": (
        lambda s: s.select_rows(fs.RowSelection.from_ranges([(10, 20), (60, 61)], ROWS)),
        lambda r: [*r[10:20], r[60]],
    ),
    "filter": (
        lambda s: s.filter(col("text") == "text 2"),
        lambda r: [row for row in r if row["text"] == "text 2"],
    ),
    "SQL": (
        lambda s: s.filter("row between 45 and 55 and text is not null"),
        lambda r: [row for row in r[45:56] if row["text"] is not None],
    ),
    "filter of none": (lambda s: s.filter(col("row") < 0), lambda r: []),
    "filter, window": (
        lambda s: s.filter(col("text").is_null()).skip(2).head(9),
        lambda r: [row for row in r if row["text"] is None][2:11],
    ),
    "filter, tail": (
        lambda s: s.filter(col("items").is_null()).tail(4),
        lambda r: [row for row in r if row["items"] is None][-4:],
    ),
    "filter on elements": (
        lambda s: s.filter(col("items.price").any() > 10),
        lambda r: [row for row in r if any(i["price"] > 10 for i in row["items"] or ())],
    ),
    "selected rows, filter, window": (
        lambda s: s.select_rows(range(40, 110)).filter(col("row") > 60).skip(3).head(30),
        lambda r: r[64:94],
    ),
    "columns": (
        lambda s: s.select("attrs", "row"),
        lambda r: [{"attrs": row["attrs"], "row": row["row"]} for row in r],
    ),
    "column of a filter left out": (
        lambda s: s.select("row").filter(col("text") == "text 5"),
        lambda r: [{"row": row["row"]} for row in r if row["text"] == "text 5"],
    ),
    "path": (
        lambda s: s.select("items.price").skip(48).head(4),
        lambda r: [
            {"items": row["items"] and [{"price": i["price"]} for i in row["items"]]}
            for row in r[48:52]
        ],
    ),
    "row index": (
        lambda s: s.select("text").with_row_index().skip(60).head(2),
        lambda r: [{"index": i, "text": r[i]["text"]} for i in (60, 61)],
    ),
    "row index, filter": (
        lambda s: s.select().with_row_index("n").filter(col("text") == "text 9"),
        lambda r: [{"n": row["row"]} for row in r if row["text"] == "text 9"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES)
def test_rows_are_those_that_the_scan_chooses(choice: str) -> None:
    data, whole = orders()
    chosen, expected = CHOICES[choice]
    assert_rows(chosen(fs.scan(data)).rows(), expected(whole))
    assert_rows(chosen(fs.scan(data)), expected(whole))


@pytest.mark.parametrize("choice", [name for name in CHOICES if "blocks" not in name])
def test_rows_of_several_files_are_one_after_the_other(choice: str, tmp_path: Path) -> None:
    data, whole = orders()
    chosen, expected = CHOICES[choice]
    paths = []
    for at, (start, end) in enumerate([(0, 17), (17, 17), (17, 90), (90, ROWS)]):
        paths.append(tmp_path / f"{at}.parquet")
        paths[-1].write_bytes(parquet_bytes(pyarrow_read(data).slice(start, end - start)))
    assert_rows(chosen(fs.scan(paths)), expected(whole))


@pytest.mark.parametrize("target", [1, 4_000, 10**9])
def test_rows_of_splits_are_the_rows(target: int) -> None:
    data, whole = orders()
    for name in ("all", "filter", "columns", "no selected rows"):
        chosen, expected = CHOICES[name]
        splits = chosen(fs.scan(data)).splits(target_bytes=target)
        assert_rows((row for split in splits for row in split.rows()), expected(whole))
        restored = [pickle.loads(pickle.dumps(split)) for split in splits]
        assert_rows((row for split in restored for row in split), expected(whole))


def test_block_predicates_are_for_each_file_by_itself() -> None:
    data, whole = orders()
    assert_rows(fs.scan([data, data]).filter(fs.blocks(2, 3)), whole[100:] * 2)


def test_file_path_is_the_last_column(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("b.parquet", "a.parquet")]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"n": [10 * number, 10 * number + 1]}), path)
    rows = fs.scan(paths).with_row_index().with_file_path().skip(1).head(2)
    assert_rows(
        rows,
        [{"index": 1, "n": 1, "path": str(paths[0])}, {"index": 2, "n": 10, "path": str(paths[1])}],
    )


def test_hive_folders_are_columns(tmp_path: Path) -> None:
    for year, day, city in [(2023, "2023-05-06", "x"), (2024, "2024-02-29", "7")]:
        folder = tmp_path / f"year={year}" / f"day={day}" / f"city={city}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": [year, None]}), folder / "file.parquet")
    first = {"year": 2023, "day": dt.date(2023, 5, 6), "city": "x"}
    last = {"year": 2024, "day": dt.date(2024, 2, 29), "city": "7"}
    expected = [
        {"n": 2023, **first},
        {"n": None, **first},
        {"n": 2024, **last},
        {"n": None, **last},
    ]
    assert_rows(fs.scan(tmp_path), expected)
    assert_rows(fs.scan(tmp_path).filter(col("day") > dt.date(2024, 1, 1)), expected[2:])
    assert_rows(fs.scan(tmp_path).select("city", "n").tail(1), [{"city": "7", "n": None}])


def test_columns_that_a_file_lacks_are_none() -> None:
    kind = pa.list_(pa.timestamp("ns"))
    first = written(pa.table({"a": [1, 2], "l": counted_lists([[1_000], [1_001, None]], kind)}))
    second = written(pa.table({"a": [3]}))
    rows = fs.scan([first, second, first], missing="null").skip(1)
    one = {"a": 1, "l": [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]}
    two = {"a": 2, "l": [np.datetime64(1_001, "ns"), None]}
    assert_rows(rows, [two, {"a": 3, "l": None}, one, two])


def counted_lists(numbers: list[list[int | None]], kind: pa.DataType) -> pa.Array:
    return pa.array(numbers, pa.list_(pa.int64())).cast(kind)


@pytest.mark.parametrize("groups", [0, 1])
def test_files_without_rows_have_none(groups: int) -> None:
    schema = pa.schema({"a": pa.int64(), "l": pa.list_(pa.struct({"v": pa.string()}))})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema) as writer:
        for _ in range(groups):
            writer.write_table(schema.empty_table())
    assert list(fs.scan(sink.getvalue()).rows()) == []
    assert list(fs.scan([sink.getvalue()] * 2).select().rows()) == []


def test_rows_without_columns_are_as_many_as_there_are() -> None:
    data, _ = orders()
    rows = list(fs.scan(data).select().rows())
    assert len(rows) == ROWS
    assert all(type(row) is fs.Row and len(row) == 0 and row == {} for row in rows)
    assert list(fs.scan(data).select().filter(col("row") >= 100)) == [{}] * 20
    assert list(fs.scan(data).select().skip(100).head(3)) == [{}] * 3
