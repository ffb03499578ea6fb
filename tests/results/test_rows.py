"""Rows, against pyarrow's `to_pylist` with the exceptions that the contract makes.

`expected_rows` is pyarrow's answer with these exceptions; `fingerprint` tells values apart that
Python calls equal: 1, 1.0 and True, both zeros, decimals of other digits, zones of one offset.
"""

import copy
import datetime as dt
import gc
import io
import os
import pickle
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.formats.test_corpus import oracle, parameters, scan
from tests.support.nested_data import Kinds, nested_table, parquet_bytes, pyarrow_read
from tests.support.writers import need

MORE = int(os.environ.get("FRETSAW_MORE", "1"))

ROWS = 120
SEEDS = 12
UTC = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")
INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
NAN, INF = float("nan"), float("inf")
DAY = 86_400


# What is expected, and when two values are the same


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def is_clock(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind))


def has_clocks(kind: pa.DataType) -> bool:
    """Whether there are dates or times in it: pyarrow does not give them all as they should be."""
    if isinstance(kind, pa.BaseExtensionType):
        return has_clocks(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return has_clocks(kind.value_type)
    below = [kind.field(i).type for i in range(kind.num_fields)]
    return is_clock(kind) or any(map(has_clocks, below))


def expected_clock(scalar: Any) -> Any:
    """A date, time, timestamp or duration, as pyarrow gives it unless something would be lost."""
    if not scalar.is_valid:
        return None
    kind, raw = scalar.type, scalar.value
    unit = "D" if pa.types.is_date32(kind) else kind.unit
    has_day = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    lossless = np.array(raw, f"{'M8' if has_day else 'm8'}[{unit}]")[()]
    if unit == "ns" and raw % 1_000:
        return lossless
    if unit == "ns":
        scalar = scalar.cast(in_microseconds(kind))  # or pyarrow asks pandas, with its own zones
    try:
        return scalar.as_py()
    except OverflowError:
        return lossless


def in_microseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")


def expected_values(array: Any) -> list[Any]:
    """The Python values of an array of any type."""
    kind = array.type
    if not has_clocks(kind):
        return list(array.to_pylist())
    if is_clock(kind):
        return [expected_clock(scalar) for scalar in array]
    if pa.types.is_dictionary(kind):
        return expected_values(array.dictionary_decode())
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        columns = [expected_values(column) for column in array.flatten()]
        records = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        valid = array.is_valid().to_pylist()
        return [record if here else None for record, here in zip(records, valid, strict=True)]
    lists = [expected_values(item.values) if item.is_valid else None for item in array]
    if pa.types.is_map(kind):
        return [m if m is None else [(pair["key"], pair["value"]) for pair in m] for m in lists]
    return lists


def expected_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table of pyarrow as dicts."""
    columns = [
        [value for chunk in column.chunks for value in expected_values(chunk)]
        for column in table.columns
    ]
    if not columns:
        return [{} for _ in range(table.num_rows)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def fingerprint(value: Any) -> Any:
    """Equal for values that are the same in type and in every bit; fails for what is not plain."""
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, dt.date, dt.time, dt.timedelta, uuid.UUID):
        return kind, value
    if kind is float:
        return kind, "nan" if value != value else struct.pack("<d", value)
    if kind is Decimal:
        return kind, value.as_tuple()
    if kind is dt.datetime:
        return kind, value.replace(tzinfo=None, fold=0), value.utcoffset(), str(value.tzinfo)
    if kind in (np.datetime64, np.timedelta64):
        return kind, value.dtype.str, int(value.astype(np.int64))
    if kind in (list, tuple):
        return kind, [fingerprint(item) for item in value]
    assert kind is dict, f"{value!r} is a {kind}"
    return kind, [(key, fingerprint(item)) for key, item in value.items()]


def assert_rows(rows: Any, expected: list[dict[str, Any]]) -> None:
    """The same rows in the same order, with the same names in the same order."""
    found = list(rows)
    assert {type(row) for row in found} <= {fs.Row}
    assert len(found) == len(expected)
    for number, (row, wanted) in enumerate(zip(found, expected, strict=True)):
        assert list(row) == list(wanted), f"row {number}"
        for name, value in wanted.items():
            ours, theirs = fingerprint(row[name]), fingerprint(value)
            assert ours == theirs, f"row {number}, {name}: {row[name]!r} is not {value!r}"


def only_column(array: Any, **options: Any) -> list[Any]:
    """What the rows of a file with this one column hold."""
    rows = list(fs.scan(written(pa.table({"x": array}), **options)).rows())
    assert all(list(row) == ["x"] for row in rows)
    return [row["x"] for row in rows]


def assert_holds(array: Any, expected: list[Any], **options: Any) -> None:
    """Rows hold these values: of a column, and in lists, structs and maps of them."""
    assert fingerprint(only_column(array, **options)) == fingerprint(expected)
    offsets = pa.array([0, len(array)], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, array)
    assert fingerprint(only_column(lists, **options)) == fingerprint([expected])
    structs = pa.StructArray.from_arrays([array], ["v"])
    records = [{"v": value} for value in expected]
    assert fingerprint(only_column(structs, **options)) == fingerprint(records)
    maps = pa.MapArray.from_arrays(offsets, pa.array(range(len(array))), array)
    pairs = [list(enumerate(expected))]
    assert fingerprint(only_column(maps, **options)) == fingerprint(pairs)


def moment(number: int, unit: str) -> Any:
    """NumPy's point in time, so many units from the epoch on."""
    return np.array(number, f"M8[{unit}]")[()]


def counted(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    """The values of a type with dates or times that are stored as these numbers."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(numbers, width).view(kind)


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


@pytest.mark.parametrize("seed", range(SEEDS))
def test_rows_of_nested_tables(seed: int) -> None:
    assert_nested_rows(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + 25 * MORE))
def test_rows_of_more_nested_tables(seed: int) -> None:
    assert_nested_rows(seed)


@cache
def orders() -> tuple[bytes, list[dict[str, Any]]]:
    """Three row groups of 50, 50 and 20 rows in small pages, and the rows in them."""
    kinds = [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("at", pa.timestamp("us", "Europe/Berlin")),
        pa.field(
            "items", pa.list_(pa.struct({"price": pa.float64(), "tags": pa.list_(pa.string())}))
        ),
        pa.field("attrs", pa.map_(pa.string(), pa.decimal128(9, 2))),
    ]
    records: list[dict[str, Any]] = [
        {
            "row": i,
            "text": None if i % 7 == 3 else f"text {i % 10}",
            "at": None if i % 5 == 4 else dt.datetime(2024, 1, 1, tzinfo=BERLIN) + dt.timedelta(i),
            "items": None
            if i % 4 == 3
            else [{"price": i / 8, "tags": ["a"] * n} for n in range(i % 3)],
            "attrs": [("k", Decimal(i)), ("k", None)][: i % 3],
        }
        for i in range(ROWS)
    ]
    data = parquet_bytes(pa.Table.from_pylist(records, pa.schema(kinds)), write_page_index=True)
    return data, expected_rows(pyarrow_read(data))


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


# A row


PEOPLE: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada", "tags": ["x"], "home": {"city": "London"}},
    {"id": 2, "name": None, "tags": ["x"], "home": {"city": "London"}},
    {"id": 3, "name": "Bo", "tags": [], "home": None},
]


@cache
def people() -> bytes:
    return written(pa.Table.from_pylist(PEOPLE))


def first_row() -> fs.Row:
    return next(iter(fs.scan(people()).rows()))


def test_a_row_has_its_values_by_name() -> None:
    row = first_row()
    assert isinstance(row, fs.Row)
    assert (row["id"], row["name"], row["tags"]) == (1, "Ada", ["x"])
    assert row["home"] == {"city": "London"}
    assert type(row["home"]) is dict


def test_a_row_is_a_mapping_in_the_order_of_the_columns() -> None:
    row = first_row()
    assert len(row) == 4
    assert list(row) == list(row.keys()) == ["id", "name", "tags", "home"]
    assert list(row.values()) == list(PEOPLE[0].values())
    assert list(row.items()) == list(PEOPLE[0].items())
    assert isinstance(row, Mapping)
    assert "id" in row
    assert "age" not in row
    (chosen,) = fs.scan(people()).select("home", "id").head(1)
    assert list(chosen) == ["home", "id"]


@pytest.mark.parametrize("name", ["age", "home.city", "ID", "", "näme"])
def test_a_missing_column_is_a_key_error_that_prints_its_message(name: str) -> None:
    with pytest.raises(KeyError) as caught:
        first_row()[name]
    assert isinstance(caught.value, fs.ColumnNotFoundError)
    assert str(caught.value) == f"Column not in projection: {name}"


def test_columns_that_are_not_selected_are_missing() -> None:
    (row,) = fs.scan(people()).select("id").filter(col("name") == "Ada").rows()
    with pytest.raises(fs.ColumnNotFoundError) as caught:
        row["name"]
    assert str(caught.value) == "Column not in projection: name"
    assert row.get("name") is None


def test_get_has_a_default() -> None:
    rows = list(fs.scan(people()))
    assert rows[0].get("id") == rows[0].get("id", 7) == 1
    assert rows[0].get("age") is None
    assert rows[0].get("age", 7) == 7
    assert rows[1].get("name", "nobody") is None


def test_as_dict_is_a_plain_dict_of_its_own() -> None:
    row = first_row()
    plain = row.as_dict()
    assert type(plain) is dict
    assert plain == PEOPLE[0]
    assert list(plain) == list(PEOPLE[0])
    plain["id"] = 99
    assert row["id"] == 1


def test_rows_equal_dicts() -> None:
    first, second, third = fs.scan(people())
    assert first == PEOPLE[0]
    assert PEOPLE[1] == second
    assert third == {**PEOPLE[2]}
    assert first != second
    assert first != {**PEOPLE[0], "age": 1}
    assert {**first} == dict(first) == PEOPLE[0]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_rows_can_be_pickled(protocol: int) -> None:
    for row in fs.scan(orders()[0]).head(8):
        again = pickle.loads(pickle.dumps(row, protocol))
        assert type(again) is fs.Row
        assert fingerprint(dict(again)) == fingerprint(dict(row))
        with pytest.raises(fs.ColumnNotFoundError, match=r"^Column not in projection: age$"):
            again["age"]


def test_a_row_shows_its_values() -> None:
    assert all(text in repr(first_row()) for text in ("'id'", "'Ada'", "'London'"))


def test_rows_share_nothing_that_can_change() -> None:
    table = pa.table(
        {
            "list": pa.array([[1]] * 3),
            "struct": pa.array([{"l": [1]}] * 3),
            "map": pa.array([[("k", [1])]] * 3, pa.map_(pa.string(), pa.list_(pa.int64()))),
            "none": pa.array([[]] * 3, pa.list_(pa.int64())),
        }
    )
    source = fs.scan(written(table))
    expected = table.to_pylist()
    rows = list(source)
    rows[0]["list"].append(2)
    rows[0]["struct"]["l"].append(2)
    rows[0]["struct"]["other"] = 2
    rows[0]["map"][0][1].append(2)
    rows[0]["map"].append(("z", []))
    rows[0]["none"].append(2)
    assert rows[1:] == expected[1:]
    assert list(source) == expected


def test_rows_cannot_be_changed() -> None:
    row: Any = first_row()
    with pytest.raises(TypeError):
        row["id"] = 2
    with pytest.raises(TypeError):
        row["age"] = 2
    with pytest.raises(TypeError):
        del row["id"]
    assert row == PEOPLE[0]


def test_a_row_outlives_the_next_ones() -> None:
    iterator = iter(fs.scan(orders()[0]))
    first = next(iterator)
    before = fingerprint(dict(first))
    assert len(list(iterator)) == ROWS - 1
    assert fingerprint(dict(first)) == before == fingerprint(orders()[1][0])


# Values


@pytest.mark.parametrize("store_schema", [True, False])
def test_nanoseconds_are_datetimes_where_nothing_is_lost(store_schema: bool) -> None:
    noon = 1_709_208_000 * 10**9
    stamps = counted([0, noon + 5_000, noon + 5_001, -1, -1_000, None], pa.timestamp("ns"))
    expected = [
        dt.datetime(1970, 1, 1),
        dt.datetime(2024, 2, 29, 12, 0, 0, 5),
        np.datetime64(noon + 5_001, "ns"),
        np.datetime64(-1, "ns"),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        None,
    ]
    assert_holds(stamps, expected, store_schema=store_schema)


@pytest.mark.parametrize(
    ("zone", "local"),
    [
        ("UTC", dt.datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("Europe/Berlin", dt.datetime(2024, 2, 29, 13, tzinfo=BERLIN)),
        ("+05:30", dt.datetime(2024, 2, 29, 17, 30, tzinfo=INDIA)),
        ("Asia/Tokyo", dt.datetime(2024, 2, 29, 21, tzinfo=ZoneInfo("Asia/Tokyo"))),
    ],
)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_timestamps_are_in_their_zone(zone: str, local: dt.datetime, unit: str) -> None:
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    noon = 1_709_208_000 * per_second
    assert_holds(counted([noon, None], pa.timestamp(unit, zone)), [local, None])
    if unit == "ns":
        odd = counted([noon + 1, noon], pa.timestamp(unit, zone))
        assert_holds(odd, [np.datetime64(noon + 1, "ns"), local])


def test_instants_without_the_schema_of_arrow_are_in_utc() -> None:
    stamps = counted([1_709_208_000_000], pa.timestamp("ms", "Europe/Berlin"))
    assert_holds(stamps, [dt.datetime(2024, 2, 29, 12, tzinfo=UTC)], store_schema=False)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_hours_that_come_twice_are_told_apart(unit: str) -> None:
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    before = int(dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC).timestamp())
    spring = int(dt.datetime(2024, 3, 31, 1, 0, tzinfo=UTC).timestamp())
    seconds = [before, before + 3_600, spring - 1, spring]
    stamps = counted([s * per_second for s in seconds], pa.timestamp(unit, "Europe/Berlin"))
    found = only_column(stamps)
    assert [value.isoformat() for value in found] == [
        "2024-10-27T02:30:00+02:00",
        "2024-10-27T02:30:00+01:00",
        "2024-03-31T01:59:59+01:00",
        "2024-03-31T03:00:00+02:00",
    ]
    assert {type(value) for value in found} == {dt.datetime}


def test_times_and_durations_in_nanoseconds() -> None:
    last = DAY * 10**9 - 1_000
    times = counted([0, 1_000, 1_001, last, last + 999, None], pa.time64("ns"))
    expected = [
        dt.time(0),
        dt.time(0, 0, 0, 1),
        np.timedelta64(1_001, "ns"),
        dt.time(23, 59, 59, 999_999),
        np.timedelta64(last + 999, "ns"),
        None,
    ]
    assert_holds(times, expected)
    spans = counted([0, 1_000, 1_001, -1_000, -1, 2**63 - 1, None], pa.duration("ns"))
    expected = [
        dt.timedelta(0),
        dt.timedelta(microseconds=1),
        np.timedelta64(1_001, "ns"),
        dt.timedelta(microseconds=-1),
        np.timedelta64(-1, "ns"),
        np.timedelta64(2**63 - 1, "ns"),
        None,
    ]
    assert_holds(spans, expected)


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (pa.time32("s"), 3_661, dt.time(1, 1, 1)),
        (pa.time32("ms"), 1, dt.time(0, 0, 0, 1_000)),
        (pa.time64("us"), 1, dt.time(0, 0, 0, 1)),
        (pa.duration("s"), -1, dt.timedelta(seconds=-1)),
        (pa.duration("ms"), 1_500, dt.timedelta(seconds=1, milliseconds=500)),
        (pa.duration("us"), 2**53 + 1, dt.timedelta(microseconds=2**53 + 1)),
        (pa.timestamp("ms"), -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000)),
        (pa.timestamp("us"), 2**53 + 1, dt.datetime(2255, 6, 5, 23, 47, 34, 740_993)),
        (pa.date32(), -1, dt.date(1969, 12, 31)),
    ],
    ids=str,
)  # fmt: skip
def test_other_units_are_plain_python(kind: pa.DataType, number: int, expected: Any) -> None:
    assert_holds(counted([number, None], kind), [expected, None])


def test_dates_beyond_the_years_of_python_are_datetime64() -> None:
    first, last = -719_162, 2_932_896
    days = [first - 1, first, 0, None, last, last + 1, 2**31 - 1, -(2**31) + 1]
    expected = [
        np.datetime64(first - 1, "D"),
        dt.date(1, 1, 1),
        dt.date(1970, 1, 1),
        None,
        dt.date(9999, 12, 31),
        np.datetime64(last + 1, "D"),
        np.datetime64(2**31 - 1, "D"),
        np.datetime64(-(2**31) + 1, "D"),
    ]
    assert_holds(counted(days, pa.date32()), expected)


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_beyond_the_years_of_python_are_datetime64(unit: str, zone: str | None) -> None:
    per_second = {"ms": 10**3, "us": 10**6}[unit]
    first, end = -719_162 * DAY * per_second, 2_932_897 * DAY * per_second
    step = 10**6 // per_second
    moments = [first - 1, first, None, end - 1, end, 2**63 - 1, -(2**63) + 1]
    tzinfo = UTC if zone else None
    expected = [
        moment(first - 1, unit),
        dt.datetime(1, 1, 1, tzinfo=tzinfo),
        None,
        dt.datetime(9999, 12, 31, 23, 59, 59, 1_000_000 - step, tzinfo=tzinfo),
        moment(end, unit),
        moment(2**63 - 1, unit),
        moment(-(2**63) + 1, unit),
    ]
    assert_holds(counted(moments, pa.timestamp(unit, zone)), expected)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+05:30", "America/New_York"])
def test_zones_may_carry_a_timestamp_out_of_the_years_of_python(zone: str) -> None:
    first, end = -719_162 * DAY, 2_932_897 * DAY
    seconds = [first - 1, first, first + 43_200, end - 43_200, end - 1, end]
    stamps = counted([1_000 * s for s in seconds], pa.timestamp("ms", zone))
    expected = expected_values(stamps)
    kinds = {type(value) for value in expected}
    assert kinds == {np.datetime64, dt.datetime}
    assert_holds(stamps, expected)


CLOCKS = [
    *(pa.date32(), pa.time64("us"), pa.time64("ns")),
    *(pa.duration("ms"), pa.duration("us"), pa.duration("ns")),
    *(pa.timestamp(unit) for unit in ("ms", "us", "ns")),
    *(pa.timestamp(unit, "America/New_York") for unit in ("ms", "us", "ns")),
    *(pa.timestamp("us", zone) for zone in ("UTC", "+05:30", "-11:00", "Asia/Kathmandu")),
]


@pytest.mark.parametrize("kind", CLOCKS, ids=str)
def test_random_dates_and_times_near_and_far(kind: pa.DataType) -> None:
    rng = np.random.default_rng(8)
    wide, near = (2**31 - 1, 800_000) if kind.bit_width == 32 else (9 * 10**18, 10**17)
    if pa.types.is_time(kind):
        wide = near = 43_200 * (10**6 if kind.unit == "us" else 10**9)
    numbers = [*rng.integers(-wide, wide, 60).tolist(), *rng.integers(-near, near, 60).tolist()]
    numbers = [n // 1_000 * 1_000 if i % 2 else n for i, n in enumerate(numbers)]
    if pa.types.is_time(kind):
        numbers = [n + wide for n in numbers]
    array = counted([None if i % 10 == 9 else n for i, n in enumerate(numbers)], kind)
    assert_holds(array, expected_values(array))


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
def test_the_first_and_the_last_instant_of_python_are_datetimes(instant: str) -> None:
    expected = dt.datetime.fromisoformat(instant).replace(tzinfo=UTC)
    stamps = pa.array([instant]).cast(pa.timestamp("us")).cast(pa.int64())
    assert_holds(stamps.cast(pa.timestamp("us", "UTC")), [expected])


def test_durations_beyond_those_of_python_are_timedelta64() -> None:
    longest = 10**9 * DAY
    spans = counted([longest - 1, longest, -longest, None], pa.duration("s"))
    expected = [
        dt.timedelta(days=10**9 - 1, seconds=DAY - 1),
        np.timedelta64(longest, "s"),
        np.timedelta64(-longest, "s"),
        None,
    ]
    assert_holds(spans, expected)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_floats_are_floats_bit_by_bit(width: int) -> None:
    dtype = np.dtype(f"f{width // 8}")
    numbers = np.array([0.0, -0.0, NAN, INF, -INF, 0.1, 1.5], dtype)
    array = pa.array(numbers, mask=np.zeros(7, np.bool_))
    assert_holds(array, [float(number) for number in numbers])
    assert_holds(pa.array([1.5, None], pa.float64()).cast(array.type), [1.5, None])


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    ],
    ids=str,
)
def test_integers_are_ints_up_to_their_ends(kind: pa.DataType) -> None:
    limits = np.iinfo(kind.to_pandas_dtype())
    ends = [int(limits.min), int(limits.max), 0, 1]
    assert_holds(pa.array(ends, kind), ends)
    assert_holds(pa.array([None, *ends], kind), [None, *ends])


def test_booleans_are_bools() -> None:
    assert_holds(pa.array([True, False, None]), [True, False, None])
    assert_holds(pa.array([True, False] * 40), [True, False] * 40)


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize(
    "kind",
    [
        *(pa.decimal128(7, 2), pa.decimal128(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 2)),
        *(pa.decimal256(9, 2), pa.decimal32(7, 2), pa.decimal64(18, 2)),
    ],
    ids=str,
)
def test_decimals_keep_their_digits(kind: pa.DataType, as_integer: bool) -> None:
    end = Decimal((1, (9,) * kind.precision, -2))
    numbers = [Decimal("0.00"), Decimal("-1.50"), Decimal("100.00"), end, None]
    assert_holds(pa.array(numbers, kind), numbers, store_decimal_as_integer=as_integer)


def test_decimals_without_a_fraction() -> None:
    numbers = [Decimal(0), Decimal(10**37), Decimal(-100), None]
    assert_holds(pa.array(numbers, pa.decimal128(38, 0)), numbers)
    assert_holds(pa.array([Decimal("0.001")], pa.decimal128(3, 3)), [Decimal("0.001")])


WORDS = ["a", "", None, "é\U0010ffff", "a", "x" * 300, "\x00"]


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.string(), pa.large_string(), pa.string_view()),
        *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string())),
    ],
    ids=str,
)
@pytest.mark.parametrize("store_schema", [True, False])
def test_strings_are_strs(kind: pa.DataType, store_schema: bool) -> None:
    words = pa.array(WORDS)
    array = (
        words.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else words.cast(kind)
    )
    assert_holds(array, WORDS, store_schema=store_schema)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_binaries_are_bytes(kind: pa.DataType) -> None:
    blobs = [b"a", b"", None, b"\xff\x00", b"x" * 300]
    assert_holds(pa.array(blobs).cast(kind), blobs)


@pytest.mark.parametrize("width", [1, 5, 16])
def test_fixed_binaries_are_bytes(width: int) -> None:
    blobs = [b"\x00" * width, None, b"\xff" * width, b"a" * width]
    assert_holds(pa.array(blobs, pa.binary(width)), blobs)


KEYS = [uuid.UUID(int=1), None, uuid.UUID(int=2**128 - 1), uuid.UUID(int=0x1234 << 100)]


@pytest.mark.parametrize("store_schema", [True, False])
def test_uuids_are_uuids_with_and_without_the_extension(store_schema: bool) -> None:
    blobs = pa.array([key and key.bytes for key in KEYS], pa.binary(16))
    keys = pa.ExtensionArray.from_storage(pa.uuid(), blobs)
    assert_holds(keys, KEYS, store_schema=store_schema)


def test_uuids_by_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    values = ", ".join(f"('{key}'::uuid)" if key else "(NULL)" for key in KEYS)
    with need("duckdb").connect() as connection:
        query = f"SELECT k, [k, NULL] AS l, {{'k': k}} AS s FROM (VALUES {values}) t(k)"
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    expected = [{"k": key, "l": [key, None], "s": {"k": key}} for key in KEYS]
    assert_rows(fs.scan(path), expected)


def test_json_is_its_text() -> None:
    texts = ['{"a": 1}', None, "[1, 2]"]
    array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))
    assert_holds(array, texts)
    assert_holds(array, texts, store_schema=False)


def test_other_extensions_are_what_pyarrow_makes_of_them() -> None:
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, -1], pa.int8()))
    assert_holds(flags, [True, False, None, True])
    opaque = pa.opaque(pa.int32(), "kind", "vendor")
    numbers = pa.ExtensionArray.from_storage(opaque, pa.array([5, None], pa.int32()))
    assert_holds(numbers, [5, None])


def test_nulls_are_none() -> None:
    assert_holds(pa.nulls(3), [None, None, None])


def test_maps_are_lists_of_pairs_and_lose_nothing() -> None:
    maps: list[Any] = [[("b", 1), ("a", 2), ("b", None), ("b", 1)], [], None]
    array = pa.array(maps, pa.map_(pa.string(), pa.int64()))
    assert_holds(array, maps)
    keys: list[Any] = [[({"k": 1}, [1]), ({"k": 1}, None)], None]
    deep = pa.array(keys, pa.map_(pa.struct({"k": pa.int8()}), pa.list_(pa.int64())))
    assert_holds(deep, keys)


def test_lists_of_every_kind_are_lists() -> None:
    lists: list[Any] = [[1, None], None, [3, 4]]
    kinds = [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)]
    for kind in kinds:
        assert_holds(pa.array(lists, kind), lists)
    ragged: list[Any] = [[], None, [None], [[]], [[1], None, [2, 3]]]
    assert_holds(pa.array(ragged, pa.list_(pa.list_(pa.int64()))), ragged)


def test_structs_are_dicts_null_or_full_of_nulls() -> None:
    kind = pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string()})})
    structs: list[Any] = [
        {"a": 1, "b": {"c": "x"}},
        None,
        {"a": None, "b": None},
        {"a": None, "b": {"c": None}},
    ]
    assert_holds(pa.array(structs, kind), structs)


def test_everything_at_once_below_everything() -> None:
    key = uuid.UUID(int=7)
    kind = pa.list_(
        pa.list_(
            pa.struct(
                {
                    "m": pa.map_(pa.string(), pa.struct({"t": pa.timestamp("ns", "UTC")})),
                    "d": pa.decimal128(5, 1),
                    "f": pa.list_(pa.float32(), 2),
                }
            )
        )
    )
    value = [
        [{"m": [("a", {"t": 1_001}), ("a", {"t": 2_000})], "d": Decimal("1.5"), "f": [-0.0, None]}],
        None,
        [None, {"m": None, "d": None, "f": None}],
        [],
    ]
    pairs = [
        ("a", {"t": np.datetime64(1_001, "ns")}),
        ("a", {"t": dt.datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC)}),
    ]
    expected: list[Any] = [
        [{"m": pairs, "d": Decimal("1.5"), "f": [-0.0, None]}],
        None,
        [None, {"m": None, "d": None, "f": None}],
        [],
    ]
    assert_holds(pa.array([value, None, []], kind), [expected, None, []])
    keys = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([key.bytes], pa.binary(16)))
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), keys)
    assert_holds(lists, [[key]])


def test_int96_is_a_naive_datetime_as_pyarrow_gives_it() -> None:
    stamps = counted([1_709_208_000 * 10**9, None, 1_001], pa.timestamp("ns"))
    expected = [dt.datetime(2024, 2, 29, 12), None, np.datetime64(1_001, "ns")]
    options = {"use_deprecated_int96_timestamps": True, "store_schema": False}
    assert_holds(stamps, expected, **options)
    data = written(pa.table({"x": stamps}), **options)
    coerced = [row["x"] for row in fs.scan(data, int96="us")]
    micros = dt.datetime(1970, 1, 1, 0, 0, 0, 1)
    assert fingerprint(coerced) == fingerprint([dt.datetime(2024, 2, 29, 12), None, micros])


# Names that come twice


def test_columns_of_one_name_raise_and_say_what_to_do() -> None:
    data = written(pa.table([[1], [2], [3]], names=["a", "a", "b"]))
    for rows in (fs.scan(data).rows(), iter(fs.scan(data))):
        with pytest.raises(ValueError, match=r"(?s)\ba\b.*batches\(\)") as caught:
            next(rows)
        assert "select" in str(caught.value)
    assert_rows(fs.scan(data).select("b"), [{"b": 3}])
    assert_rows(fs.scan(data).select(), [{}])


@pytest.mark.parametrize("where", ["struct", "list", "map", "struct in a struct"])
def test_fields_of_one_name_raise(where: str) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["v", "v"])
    ends = pa.array([0, 1], pa.int32())
    column = {
        "struct": lambda: twice,
        "list": lambda: pa.ListArray.from_arrays(ends, twice),
        "map": lambda: pa.MapArray.from_arrays(ends, pa.array(["k"]), twice),
        "struct in a struct": lambda: pa.StructArray.from_arrays([twice], names=["in"]),
    }[where]()
    data = written(pa.table({"x": column, "b": [3]}))
    with pytest.raises(ValueError, match=r"batches\(\)"):
        next(iter(fs.scan(data)))
    assert_rows(fs.scan(data).select("b"), [{"b": 3}])


def test_one_name_in_two_structs_is_no_trouble() -> None:
    data = written(pa.table({"v": [{"v": 1}], "w": [{"v": [{"v": 2}]}]}))
    assert_rows(fs.scan(data), [{"v": {"v": 1}, "w": {"v": [{"v": 2}]}}])


# Errors


def test_names_and_types_are_checked_before_data_is_read() -> None:
    data, _ = orders()
    with fs.trace() as trace:
        with pytest.raises(fs.ColumnNotFoundError, match="text"):
            next(iter(fs.scan(data).select("txet").rows()))
        with pytest.raises(fs.PredicateTypeError, match="text"):
            next(iter(fs.scan(data).filter(col("text") == 1).rows()))
    assert trace.data_bytes == 0


def test_rows_before_a_damage_are_given_or_none(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table({"n": np.arange(20_000), "x": np.random.default_rng(1).normal(size=20_000)})
    options = {"row_group_size": 5_000, "use_dictionary": False, "write_page_checksum": True}
    data = bytearray(written(table, compression="none", **options))
    data[len(data) * 3 // 4] ^= 1
    path.write_bytes(bytes(data))
    found: list[int] = []
    with pytest.raises(fs.FileFormatError, match=r"file\.parquet"):
        found.extend(row["n"] for row in fs.scan(path))
    rows = iter(fs.scan(path))
    assert next(rows)["n"] == 0


# How much is read, and for how long


GROUPS, GROUP_ROWS, PAGE_ROWS = 40, 50_000, 5_000


@cache
def large() -> bytes:
    """Two million rows in 40 row groups and 800 pages of two columns."""
    total = GROUPS * GROUP_ROWS
    table = pa.table({"n": np.arange(total), "x": np.random.default_rng(6).normal(size=total)})
    options = {"max_rows_per_page": PAGE_ROWS, "write_batch_size": PAGE_ROWS}
    return written(
        table, row_group_size=GROUP_ROWS, use_dictionary=False, write_page_index=True, **options
    )


@pytest.mark.parametrize("count", [1, 10, 1_000])
def test_the_first_rows_do_not_decode_the_file(count: int) -> None:
    with fs.trace() as trace:
        rows = fs.scan(large()).rows()
        found = [row["n"] for row in islice(rows, count)]
        del rows
        gc.collect()
    assert found == list(range(count))
    pages = GROUPS * GROUP_ROWS // PAGE_ROWS * 2
    assert 0 < trace.pages_decoded <= pages // 4
    assert 0 < trace.data_bytes <= len(large()) // 2


@pytest.mark.parametrize("count", [1, PAGE_ROWS])
def test_head_decodes_the_pages_of_its_rows_only(count: int) -> None:
    with fs.trace() as trace:
        found = [row["n"] for row in fs.scan(large()).head(count)]
    assert found == list(range(count))
    assert trace.pages_decoded == 2
    with fs.trace() as trace:
        found = [row["n"] for row in fs.scan(large()).select("n").skip(77_777).head(1)]
    assert found == [77_777]
    assert trace.pages_decoded == 1


def test_a_filter_reads_other_columns_where_rows_match() -> None:
    with fs.trace() as trace:
        rows = list(fs.scan(large()).filter(col("n") == 1_234_567))
    assert [row["n"] for row in rows] == [1_234_567]
    assert trace.pages_decoded <= 3


def test_rows_need_as_little_work_as_batches() -> None:
    with fs.trace() as by_batch:
        total = sum(batch.num_rows for batch in fs.scan(large()).skip(77).head(90_000).batches())
    with fs.trace() as by_row:
        assert sum(1 for _ in fs.scan(large()).skip(77).head(90_000)) == total == 90_000
    assert by_row.pages_decoded == by_batch.pages_decoded
    assert by_row.data_bytes == by_batch.data_bytes


def test_no_columns_decode_nothing() -> None:
    with fs.trace() as trace:
        assert sum(1 for _ in fs.scan(large()).select().tail(90_000)) == 90_000
    assert trace.pages_decoded == trace.data_bytes == 0


def test_iterating_twice_gives_the_same_rows() -> None:
    data, whole = orders()
    source = fs.scan(data).filter(col("row") > 5)
    assert_rows(source, whole[6:])
    assert_rows(source, whole[6:])
    one, other = iter(source), source.rows()
    assert next(one) == next(other)
    assert iter(one) is one
    assert next(one) == whole[7]
    assert_rows(other, whole[7:])
    assert_rows(one, whole[8:])
    assert next(one, None) is None


def test_threads_may_have_a_reader_each() -> None:
    data, whole = orders()
    source = fs.scan(data)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: list(source.rows()), range(8)))
    for rows in results:
        assert_rows(rows, whole)


def patiently(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within a few seconds."""
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_abandoned_iterations_leave_no_threads_behind() -> None:
    source = fs.scan(large())
    assert sum(1 for _ in source.head(50_000)) == 50_000
    before = set(threading.enumerate())
    for taken in (0, 1, 10, 6_000) * 3:
        rows = source.rows()
        assert len(list(islice(rows, taken))) == taken
    del rows
    gc.collect()
    # The pool of the process starts its threads one by one, as they are needed.
    assert patiently(lambda: len(set(threading.enumerate()) - before) < pa.cpu_count())


def test_an_abandoned_iteration_ends_quietly_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(large())
    code = "import sys, fretsaw as fs; r = fs.scan(sys.argv[1]).rows(); print(next(r)['n'])"
    command = [sys.executable, "-W", "error", "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "0", "")


PEAK = """
import sys
import fretsaw as fs
rows = sum(len(row["blob"]) > 0 for row in fs.scan(sys.argv[1]))
status = open("/proc/self/status").read()
print(rows, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""
BLOB = 100_000


@pytest.mark.slow
def test_rows_of_a_large_file_need_no_more_memory_than_those_of_a_small_one(tmp_path: Path) -> None:
    peaks = []
    for rows in (600, 6_000):
        path = tmp_path / f"{rows}.parquet"
        kind = pa.schema({"blob": pa.binary()})
        with pq.ParquetWriter(path, kind, compression="zstd", use_dictionary=False) as writer:
            for start in range(0, rows, 100):
                blobs = [bytes([i % 251]) * BLOB for i in range(start, start + 100)]
                writer.write_table(pa.table({"blob": blobs}, schema=kind))
        command = [sys.executable, "-c", PEAK, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
        found, megabytes = map(int, done.stdout.split())
        assert found == rows
        peaks.append(megabytes)
    assert peaks[1] <= peaks[0] + 80, peaks


# Still a stream of Arrow


def interchange() -> Iterator[tuple[str, fs.Scan]]:
    data, _ = orders()
    plain = fs.scan(data).select("row", "text", "at", "items")
    yield "all", plain
    yield "filter", plain.filter(col("text") == "text 2")
    yield "window", plain.skip(45).head(10)
    yield "empty", plain.head(0)


@pytest.mark.parametrize("source", [pytest.param(s, id=name) for name, s in interchange()])
def test_pyarrow_and_polars_take_a_scan_as_a_stream(source: fs.Scan) -> None:
    expected = source.to_arrow()
    assert pa.table(source).equals(expected)
    assert pa.RecordBatchReader.from_stream(source).read_all().equals(expected)
    polars = need("polars")
    frame = polars.DataFrame(source)
    assert frame.equals(source.to_polars())
    assert frame.schema == source.to_polars().schema
    assert frame["row"].to_list() == expected["row"].to_pylist()


@pytest.mark.parametrize("source", [pytest.param(s, id=name) for name, s in interchange()])
def test_duckdb_takes_a_scan_as_a_stream(source: fs.Scan) -> None:
    with need("duckdb").connect() as connection:
        connection.register("source_of_rows", source)
        query = 'SELECT "row", text, len(items) FROM source_of_rows ORDER BY 1'
        found = connection.execute(query).fetchall()
    rows = source.to_arrow().to_pylist()
    counts = [row["items"] if row["items"] is None else len(row["items"]) for row in rows]
    expected = zip(rows, counts, strict=True)
    assert found == [(row["row"], row["text"], count) for row, count in expected]
