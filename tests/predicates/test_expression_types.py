"""Expressions on types that Arrow's kernels do not take, or take otherwise; all by value."""

import datetime as dt
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import written

NAN, INF = float("nan"), float("inf")
NUMBERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "u64": (pa.uint64(), [0, 2**63, 2**64 - 1, 5, 2**53 + 1, None]),
    "i64": (pa.int64(), [0, -(2**63), 2**63 - 1, 5, 2**53 + 1, 7]),
    "i8": (pa.int8(), [0, -1, 127, 5, 5, 7]),
    "f64": (pa.float64(), [-0.0, 2.0**63, -INF, 5.5, 2.0**53, NAN]),
    "f32": (pa.float32(), [0.5, -1.0, INF, 5.0, 2.0**53, 7.0]),
    "f16": (pa.float16(), [np.float16(n) for n in (0.5, -1, 2, 5, 7, 7)]),
    "small": (pa.decimal128(38, 38), [Decimal(n) / 8 for n in (0, 1, -1, 5, 7, 0)]),
    "large": (pa.decimal256(76, 0), [Decimal(n) for n in (0, 10**70, -(10**70), 5, 2**53 + 1, 7)]),
    "cents": (pa.decimal128(20, 2), [Decimal(n) for n in ("0", "-1.5", "2.25", "5.5", "5", "7")]),
}


def order(value: Any) -> tuple[int, Fraction]:
    number = float(value) if isinstance(value, np.floating) else value
    if isinstance(number, float) and (np.isnan(number) or np.isinf(number)):
        return (2 if np.isnan(number) else 1 if number > 0 else -1), Fraction(0)
    return 0, Fraction(number)


def rows_of(source: Any, predicate: Any, **options: Any) -> list[int]:
    scan = fs.scan(source, **options).filter(predicate).with_row_index("n").select()
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found


@pytest.fixture(scope="module")
def numbers() -> bytes:
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in NUMBERS.items()})
    return written(table, "parquet", [6])


@pytest.mark.parametrize("left", NUMBERS)
@pytest.mark.parametrize("right", NUMBERS)
def test_numbers_of_all_types_compare_by_value(left: str, right: str, numbers: bytes) -> None:
    pairs = list(zip(NUMBERS[left][1], NUMBERS[right][1], strict=True))
    known: list[Any] = [
        (row, *map(order, pair)) for row, pair in enumerate(pairs) if None not in pair
    ]
    assert rows_of(numbers, col(left) < col(right)) == [n for n, a, b in known if a < b]
    assert rows_of(numbers, col(left) >= col(right)) == [n for n, a, b in known if a >= b]
    assert rows_of(numbers, col(left) == col(right)) == [n for n, a, b in known if a == b]


def test_wide_decimals_are_exact_until_they_cannot_be(numbers: bytes) -> None:
    assert rows_of(numbers, col("cents") * col("cents") == Decimal("30.25")) == [3]
    assert rows_of(numbers, col("small") + 1 == Decimal("1.125")) == [1]
    with pytest.raises(fs.PredicateTypeError, match="digits"):
        rows_of(numbers, col("large") * col("cents") > 1)


def test_least_integers_overflow() -> None:
    data = written(pa.table({"x": pa.array([-(2**63), 4], pa.int64())}), "parquet", [2])
    for predicate in (-col("x") == 1, col("x").abs() == 1, col("x") // -1 == 1, col("x") - 1 == 1):
        with pytest.raises(fs.PredicateError, match="'x'"):
            rows_of(data, predicate)
    assert rows_of(data, col("x") % -1 == 0) == [0, 1]
    assert rows_of(data, "x // 3 = 1") == [1]


TEXTS = ["Ab", "aB", None, "x"]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_text_of_any_layout_is_computed_with(kind: pa.DataType) -> None:
    table = pa.table({"x": pa.array(TEXTS).cast(kind), "y": pa.array(["ab", "b", "c", "X"])})
    data = written(table, "parquet", [4])
    x, y = col("x"), col("y")
    assert rows_of(data, x.lower() == "ab") == [0, 1]
    assert rows_of(data, x.lower() == y) == [0]
    assert rows_of(data, x.upper() + y == "XX") == [3]
    assert rows_of(data, x.ilike("AB") & x.contains("b")) == [0]
    assert rows_of(data, ~x.ends_with("b")) == [1, 3]
    assert rows_of(data, x.length() == 1) == [3]


def test_binaries_have_patterns_and_lengths() -> None:
    data = written(pa.table({"x": [b"a\xffb", b"\xff", None]}), "parquet", [3])
    assert rows_of(data, col("x").contains(b"\xff")) == [0, 1]
    assert rows_of(data, col("x").length() == 3) == [0]
    with pytest.raises(fs.PredicateTypeError, match="lower"):
        rows_of(data, col("x").lower() == "a")


def test_times_of_other_units_compare_by_value() -> None:
    moment = dt.datetime(2024, 2, 29, 12)
    table = pa.table(
        {
            "s": pa.array([moment, moment], pa.timestamp("ms")),
            "ns": pa.array([moment, np.datetime64(moment, "ns") + 1], pa.timestamp("ns")),
            "day": pa.array([moment.date()] * 2),
            "utc": pa.array([moment, moment], pa.timestamp("us", "UTC")),
        }
    )
    data = written(table, "parquet", [2])
    assert rows_of(data, col("s") == col("ns")) == [0]
    assert rows_of(data, col("s") < col("ns")) == [1]
    assert rows_of(data, col("day") < col("s")) == [0, 1]
    assert rows_of(data, col("ns") - col("s") > dt.timedelta(0)) == [1]
    assert rows_of(data, col("day") + dt.timedelta(days=1) == dt.date(2024, 3, 1)) == [0, 1]
    assert rows_of(data, col("ns").cast("timestamp[s]") == moment) == [0, 1]
    with pytest.raises(fs.PredicateTypeError, match="in UTC"):
        rows_of(data, col("s") < col("utc"))


def test_casts_of_times_that_do_not_fit_fail() -> None:
    late = pa.array([dt.datetime(9999, 1, 1)], pa.timestamp("us"))
    data = written(pa.table({"x": late}), "parquet", [1])
    with pytest.raises(fs.PredicateError, match="'x'"):
        rows_of(data, col("x").cast("timestamp[ns]") > dt.datetime(2000, 1, 1))


def test_columns_of_folders_and_columns_that_files_lack_take_part(tmp_path: Path) -> None:
    for day, more in ((1, {}), (2, {"y": [5, 6]})):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        pq.write_table(pa.table({"x": [1, 2], **more}), folder / "a.parquet")
    assert rows_of(tmp_path, col("x") == col("day"), missing="null") == [0, 3]
    assert rows_of(tmp_path, col("day") * 2 > 2, missing="null") == [2, 3]
    assert rows_of(tmp_path, fs.coalesce(col("y"), 0) == 0, missing="null") == [0, 1]
    assert rows_of(tmp_path, col("x") + col("y") == 6, missing="null") == [2]
    assert rows_of(tmp_path, (col("x") + col("y")).is_null(), missing="null") == [0, 1]


def test_fields_of_structs_are_computed_with() -> None:
    struct = pa.array([{"a": 1, "b": 2}, None, {"a": 3, "b": None}])
    for writer in ("parquet", "orc"):
        data = written(pa.table({"s": struct, "x": [3, 3, 3]}), writer, [3])
        assert rows_of(data, col("s.a") + col("s.b") == col("x")) == [0]
        assert rows_of(data, col("s.a") * 2 > 4) == [2]
        empty = fs.when(col("s").is_null()).then(0).otherwise(col("s.a"))
        assert rows_of(data, empty == 0) == [1]


def test_scans_with_expressions_travel() -> None:
    data = written(pa.table({"x": range(10)}), "parquet", [5, 5])
    scan = fs.scan(data).filter("x % 3 = 1 and case when x > 5 then true else false end")
    assert pickle.loads(pickle.dumps(scan)).to_arrow()["x"].to_pylist() == [7]
    assert sum(part.count() for part in fs.scan(data).filter(col("x") * 2 > 9).splits(1)) == 5


x: Any = col("x")
y: Any = col("y")
when: Any = fs.when


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: x.any() + 1, "many values"),
        (lambda: (x > 1) + y, "is a condition"),
        (lambda: x.like(5), "pattern as str"),
        (lambda: x.like("a!", escape="!"), "ends with its escape"),
        (lambda: x.truncate("eon"), "year, quarter"),
        (lambda: x.cast(5), "Arrow type"),
        (lambda: x.round(0.5), "decimal places"),
        (lambda: when(1), "is expected"),
        (lambda: fs.coalesce(), "at least one"),
    ],
)
def test_mistakes_are_told_at_once(make: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        make()


@pytest.mark.parametrize(
    ("predicate", "says"),
    [
        (col("x") + "a" == 1, "does not work on"),
        (col("x").lower() == "a", "lower"),
        (col("x").year() == 1, "year"),
        (col("s") < col("x"), "do not compare"),
        (col("s").matches("(a"), "no regular expression"),
        (fs.coalesce(col("s"), col("x")) == 1, "in common"),
        (col("s"), "not a condition"),
    ],
    ids=repr,
)
def test_types_that_do_not_fit_are_told_before_data_is_read(predicate: Any, says: str) -> None:
    data = written(pa.table({"x": [1], "s": ["a"]}), "parquet", [1])
    with pytest.raises(fs.PredicateTypeError, match=says):
        fs.scan(data).filter(predicate).plan()
