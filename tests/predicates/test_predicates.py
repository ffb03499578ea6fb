"""Predicates: literals that do not fit, lists and maps, physical values, scans, text."""

import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.predicate_cases import (
    DAY,
    HIGH,
    LAYOUTS,
    NAN,
    NOON,
    ONE,
    UTC,
    matching,
    numbers,
    rules,
    written,
    x,
)

# Literals that do not fit


TYPED = pa.table(
    {
        "number": pa.array([1]),
        "text": pa.array(["a"]),
        "blob": pa.array([b"a" * 16]),
        "fixed": pa.array([b"a" * 16], pa.binary(16)),
        "clock": pa.array([NOON], pa.timestamp("us")),
        "instant": pa.array([NOON], pa.timestamp("us", "UTC")),
        "day": pa.array([DAY]),
        "flag": pa.array([True]),
        "struct": pa.array([{"v": 1}]),
        "list": pa.array([[1]]),
        "items": pa.array([[{"price": 1}]]),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    }
)
USES: dict[str, Callable[[fs.Scan], object]] = {
    "to_arrow": fs.Scan.to_arrow,
    "count": fs.Scan.count,
    "batches": lambda scan: list(scan.batches()),
    "plan": fs.Scan.plan,
    "tail": lambda scan: scan.tail(1).to_arrow(),
    "schema": lambda scan: scan.schema,
    "to_reader": lambda scan: scan.to_reader(),
}


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (col("number") == "a", "number"),
        (col("number").is_in([1, "a"]), "number"),
        (col("number").is_between(0, b"a"), "number"),
        (col("number") == DAY, "number"),
        (col("number").starts_with("1"), "number"),
        (col("text") == 1, "text"),
        (col("text") == 1.5, "text"),
        (col("text") == Decimal(1), "text"),
        (col("text") == ONE, "text"),
        (col("text") == DAY, "text"),
        (col("text").is_nan(), "text"),
        (col("blob") == ONE, "blob"),
        (col("fixed") == ONE, "fixed"),
        (col("fixed") == Decimal(1), "fixed"),
        (col("flag") == "true", "flag"),
        (col("day") == "2024-02-29", "day"),
        (col("clock") == NOON.replace(tzinfo=UTC), "(?i)naive|without"),
        (col("clock") == pd.Timestamp(NOON, tz="UTC"), "(?i)naive|without"),
        (col("instant") == NOON, "(?i)aware|zone"),
        (col("instant") == pd.Timestamp(NOON), "(?i)aware|zone"),
        (col("clock") == pd.NaT, "clock"),
        (col("text") == "\ud800", "text"),
        (col("struct") == 1, "struct"),
        (col("list") == 1, r"\.any\(\).*\.all\(\)"),
        (col("list.element") == 1, r"\.any\(\).*\.all\(\)"),
        (col("items.price") == 1, r"\.any\(\).*\.all\(\)"),
        (col("items.element.price").is_null(), r"\.any\(\).*\.all\(\)"),
        (col("map.key") == "a", r"\.any\(\).*\.all\(\)"),
        (col("map.value").is_in([1]), r"\.any\(\).*\.all\(\)"),
        (~(col("number").is_null() | (col("text") == 1)), "text"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("use", sorted(USES))
def test_types_are_checked_before_data_is_read(
    use: str, predicate: fs.Predicate, message: str
) -> None:
    scan = fs.scan(written(TYPED)).filter(predicate)
    with fs.trace() as trace, pytest.raises(fs.PredicateTypeError, match=message) as raised:
        USES[use](scan)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, fs.FretsawError)
    assert trace.data_bytes == trace.pages_decoded == 0


@pytest.mark.parametrize("use", sorted(USES))
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nubmer", "number"),
        ("struct.w", "struct"),
        ("number.x", "number"),
        (("items", "v"), "items"),
    ],
    ids=str,
)
def test_names_are_checked_before_data_is_read(use: str, name: Any, message: str) -> None:
    scan = fs.scan(written(TYPED)).filter((col("number") == 1) | (col(name) == 1))
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError, match=message):
        USES[use](scan)
    assert trace.data_bytes == trace.pages_decoded == 0


# Lists and maps


NUMBERS = pa.array([None, [], [None], [1, None], [5, None], [1, 2], [5, 6], [1, 6]])


@rules(
    (x.any() > 3, [4, 6, 7]),
    (x.all() > 3, [1, 6]),
    (~(x.any() > 3), [1, 5]),
    (x.all() <= 3, [1, 5]),
    (~(x.all() > 3), [3, 5, 7]),
    (x.any() <= 3, [3, 5, 7]),
    (x.any() != 1, [4, 5, 6, 7]),
    (x.all() != 1, [1, 6]),
    (x.any().is_in([2, 6]), [5, 6, 7]),
    (x.any().is_in([2, None]), [5]),
    (x.all().is_in([2, None]), [1]),
    (x.all().is_between(1, 2), [1, 5]),
    (col("x.element").any().is_null(), [2, 3, 4]),
    (~col("x.element").any().is_null(), [1, 5, 6, 7]),
    (col("x.element").all().is_null(), [1, 2]),
    (col("x.element").all().is_not_null(), [1, 5, 6, 7]),
    (col("x.element").any() > 3, [4, 6, 7]),
    (col(("x", "element")).any() > 3, [4, 6, 7]),
    (col("x.list.element").any() > 3, [4, 6, 7]),
    (x.is_null(), [0]),
    ((x.any() > 3) & (x.any() < 3), [7]),
    ((x.any() > 5) | x.is_null(), [0, 6, 7]),
)
def test_lists_are_folded(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=NUMBERS) == rows


STRUCTS = [None, [], [None], [{"p": 1, "q": "a"}, {"p": 9, "q": None}], [{"p": None, "q": "z"}]]
GRID: list[Any] = [None, [], [None], [[]], [[1], None], [[1, 9], []], [[9], [None]], [[9], [8, 9]]]


@rules(
    (col("items.p").any() > 5, [3]),
    (col("items.p").all() > 5, [1]),
    (~(col("items.p").all() > 5), [3]),
    (col("items.element.q").any() == "z", [4]),
    (col("items.q").any().is_null(), [2, 3]),
    (col("items.list.element.p").all().is_null(), [1, 2, 4]),
    (col("items").is_null(), [0]),
    (col("items.element").any().is_null(), [2]),
    (col("in.tags.element").any() == "a", [3]),
    (col("in.tags.element").all() == "a", [2, 3]),
    (~(col("in.tags.element").any() == "a"), [2]),
    (col("in.tags").is_null(), [0, 1]),
)
def test_structs_in_lists_and_lists_in_structs(predicate: fs.Predicate, rows: list[int]) -> None:
    kind = pa.list_(pa.struct({"p": pa.int64(), "q": pa.string()}))
    inside: list[Any] = [None, {"tags": None}, {"tags": []}, {"tags": ["a"]}, {"tags": [None, "b"]}]
    tags = pa.array(inside, pa.struct({"tags": pa.list_(pa.string())}))
    assert matching(predicate, **{"items": pa.array(STRUCTS, kind), "in": tags}) == rows


@rules(
    (x.any() > 5, [5, 6, 7]),
    (x.all() > 5, [1, 3, 7]),
    (~(x.any() > 5), [1, 3]),
    (~(x.all() > 5), [4, 5]),
    (col("x.element.element").any() > 5, [5, 6, 7]),
    (col("x.element.element").any().is_null(), [6]),
    (col("x.element").any().is_null(), [2, 4]),
    (col("x.element").all().is_not_null(), [1, 3, 5, 6, 7]),
)
def test_every_level_of_a_list_is_folded(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=pa.array(GRID, pa.list_(pa.list_(pa.int64())))) == rows


@rules(
    (col("x.key").any() == "b", [2]),
    (col("x.key").all() == "a", [1, 3]),
    (col("x.value").any() > 1, [2]),
    (col("x.value").all() > 1, [1]),
    (col("x.value").any().is_null(), [3]),
    (col("x.key_value.key").any() == "b", [2]),
    (x.is_null(), [0]),
)
def test_maps_are_folded_by_key_or_value(predicate: fs.Predicate, rows: list[int]) -> None:
    maps = [None, [], [("a", 1), ("b", 2)], [("a", None)]]
    assert matching(predicate, x=pa.array(maps, pa.map_(pa.string(), pa.int64()))) == rows


def test_a_name_with_dots_is_matched_whole_first() -> None:
    columns = {"a": pa.array([{"b": 1}, {"b": 2}]), "a.b": pa.array([2, 1])}
    assert matching(col("a.b") == 1, **columns) == [1]
    assert matching(col(("a.b",)) == 1, **columns) == [1]
    assert matching(col(("a", "b")) == 1, **columns) == [0]


# Physical values


MILLISECONDS = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("array", "predicate", "rows"),
    [
        (pa.array([5, 7, None]).cast(MILLISECONDS), x.physical == 7, [1]),
        (pa.array([5, 7, None]).cast(MILLISECONDS), x.physical > 5, [1]),
        (pa.array([5, 7, None]).cast(MILLISECONDS), ~x.physical.is_in([5, None]), []),
        (pa.array([-5, 7, None]).cast(pa.timestamp("ns")), x.physical < 0, [0]),
        (pa.array([5, 7, None], pa.int32()).cast(pa.date32()), x.physical.is_between(5, 6), [0]),
        (pa.array([5, 7, None]).cast(pa.time64("us")), x.physical != 5, [1]),
        (pa.array([ONE.bytes, HIGH.bytes], pa.uuid()), x.physical == HIGH.bytes, [1]),
        (pa.array([ONE.bytes, HIGH.bytes], pa.uuid()), x.physical < b"\x7f", [0]),
        (pa.array(["é", "e"]), x.physical == b"\xc3\xa9", [0]),
        (pa.array(["é", "e"]), x.physical > b"\x7f", [0]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), x.physical == b"cd", [1]),
        (pa.array([0.0, -0.0, NAN]), x.physical == NAN, [2]),
        (pa.array([0.0, -0.0, NAN]), x.physical == 0.0, [0]),
        (pa.array([[5], [7]]).cast(pa.list_(MILLISECONDS)), x.physical.any() == 7, [1]),
        (pa.array([[5], [7]]).cast(pa.list_(MILLISECONDS)), x.any().physical == 7, [1]),
    ],
    ids=str,
)
def test_physical_compares_with_what_is_stored(
    array: pa.Array, predicate: fs.Predicate, rows: list[int]
) -> None:
    assert matching(predicate, x=array) == rows


def test_physical_decimals_are_unscaled_integers_or_bytes() -> None:
    table = pa.table({"x": pa.array([Decimal("-0.01"), Decimal("1.50")], pa.decimal128(7, 2))})
    stored = {True: 150, False: (150).to_bytes(4)}
    for as_integer, value in stored.items():
        data = written(table, store_decimal_as_integer=as_integer)
        found = fs.scan(data).filter(x.physical == value).to_arrow()
        assert found["x"].to_pylist() == [Decimal("1.50")]


@pytest.mark.parametrize(
    "predicate",
    [col("instant").physical == NOON.replace(tzinfo=UTC), col("text").physical == 1],
    ids=repr,
)
def test_physical_takes_no_logical_literals(predicate: fs.Predicate) -> None:
    with fs.trace() as trace, pytest.raises(fs.PredicateTypeError):
        fs.scan(written(TYPED)).filter(predicate).to_arrow()
    assert trace.data_bytes == 0


# Scans with predicates


COUNTED = pa.table({"n": range(100), "m": [i % 7 for i in range(100)]})
THREES = [i for i in range(100) if i % 7 == 3]


def test_windows_count_the_rows_that_match() -> None:
    for layout in LAYOUTS:
        scan = fs.scan(written(COUNTED, **{**layout, "row_group_size": 30})).filter(col("m") == 3)
        assert numbers(scan) == THREES
        assert numbers(scan.head(3)) == THREES[:3]
        assert numbers(scan.tail(3)) == THREES[-3:]
        assert numbers(scan.skip(10)) == THREES[10:]
        assert numbers(scan.skip(2).head(4)) == numbers(scan.head(4).skip(2)) == THREES[2:6]
        assert numbers(scan.head(0)) == numbers(scan.tail(0)) == numbers(scan.skip(99)) == []
        assert numbers(scan.tail(99)) == THREES
        assert scan.skip(2).head(4).count() == scan.tail(4).count() == 4
        kept = scan.filter(fs.blocks(1, 3))
        assert numbers(kept.tail(2)) == [n for n in THREES if 30 <= n < 90][-2:]
        assert numbers(scan.select_rows(range(50))) == [n for n in THREES if n < 50]


def test_filters_are_anded_and_come_before_windows() -> None:
    scan = fs.scan(written(COUNTED))
    assert numbers(scan.filter(col("m") == 3).filter(col("n") > 90)) == [94]
    for windowed in (scan.head(1), scan.tail(1), scan.skip(1)):
        with pytest.raises(ValueError, match="before skip/head/tail"):
            windowed.filter(col("m") == 3)


def test_columns_of_a_predicate_need_not_be_projected() -> None:
    scan = fs.scan(written(COUNTED)).filter(col("m") == 3)
    assert scan.select("n").to_arrow().to_pydict() == {"n": THREES}
    assert scan.select().to_arrow().shape == (len(THREES), 0)
    assert scan.schema.names == ["n", "m"]


def test_a_scan_with_a_predicate_can_be_pickled() -> None:
    scan = fs.scan(written(COUNTED)).filter(
        (col("m") == 3) & col("n").is_in([3, np.int64(94), None])
    )
    assert numbers(pickle.loads(pickle.dumps(scan))) == numbers(scan) == [3, 94]


def test_literals_are_resolved_for_each_file_by_itself(tmp_path: Path) -> None:
    values = [Decimal("-1.5"), 0, Decimal("1.5"), None]
    table = pa.table({"x": pa.array(values, pa.decimal128(7, 2))})
    for as_integer in (False, True):
        path = tmp_path / f"{as_integer}.parquet"
        pq.write_table(table, path, store_decimal_as_integer=as_integer, write_page_index=True)
    scan = fs.scan(tmp_path).with_row_index()
    cases = [(x > 1, [2, 6]), (x == Decimal("-1.5"), [0, 4]), (x < 0.5, [0, 1, 4, 5])]
    for predicate, rows in cases:
        assert scan.filter(predicate).to_arrow()["index"].to_pylist() == rows


def test_pruning_keeps_every_row_that_matches_and_reads_no_data(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(written(COUNTED, **LAYOUTS[0]))
    with fs.open(path) as file, fs.trace() as trace:
        selection = file.prune(col("n") >= 90)
    assert trace.data_bytes == 0
    assert set(range(90, 100)) <= set(selection.indices()) != set(range(100))
    assert selection.row_count == 100


# As text


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("fare > 100 and city in ('NYC', 'LA') and tip is not null", [0]),
        ("fare between 50 and 100 or tip is null", [1, 2, 3]),
        ("not (fare > 100)", [1]),
        ("city like 'N%'", [0, 2]),
        ("city != 'LA'", [0, 2]),
        ("at >= '2024-02-29 12:00:00'", [1, 2]),
        ("at = '2024-02-29T21:00:00+09:00'", [1]),
        ("day = '2024-02-29'", [1]),
    ],
)
def test_text_is_a_predicate(text: str, rows: list[int]) -> None:
    noon = NOON.replace(tzinfo=UTC)
    columns = {
        "fare": [120.0, 60.0, 200.0, None],
        "city": ["NYC", "LA", "NYC", None],
        "tip": [1, 2, None, None],
        "at": pa.array([noon - dt.timedelta(seconds=1), noon, noon + dt.timedelta(1), None]),
        "day": [dt.date(1999, 1, 1), DAY, None, dt.date(2030, 1, 1)],
    }
    assert matching(text, **columns) == rows


def test_text_that_is_no_condition_is_a_syntax_error() -> None:
    for text in ("n >", "n = = 1", "", "select 1"):
        with pytest.raises(fs.PredicateSyntaxError) as raised:
            fs.scan(written(COUNTED)).filter(text).to_arrow()
        assert isinstance(raised.value, ValueError)
