"""The values of rows: each type is the Python object that the contract says."""

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from tests.support.expected_rows import (
    BERLIN,
    UTC,
    assert_rows,
    counted,
    expected_values,
    fingerprint,
    written,
)
from tests.support.writers import need

INDIA = dt.timezone(dt.timedelta(hours=5, minutes=30))
NAN, INF = float("nan"), float("inf")
DAY = 86_400


# What is expected, and when two values are the same


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
