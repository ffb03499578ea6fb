"""The type table, row by row: for every type that Parquet stores, what it takes and what it gives.

Each `Case` is a column as a file stores it. By hand beside it: the rows, the literals that find
their rows, literals that do not fit, and what the column reader has, in NumPy or as bytes.
"""

import datetime as dt
import io
import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import Crafted
from tests.support.kernels import each_decoder
from tests.support.writers import by_fastparquet, need

pytestmark = each_decoder()

NAN, INF = float("nan"), float("inf")
UTC = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)
CLOCK = dt.time(12, 30)
SPAN = dt.timedelta(1)
KEY = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
HIGH_KEY = uuid.UUID(int=2**128 - 1)
NOON_SECONDS = 1_709_208_000
NOON_DAYS = 19_782

# What is no number, no text, no binary, no point in time, no span of time
NOT_NUMBERS = ("1", b"1", DAY, NOON, NOON_UTC, CLOCK, SPAN, KEY)
NOT_TEXT = (b"a", 1, 1.5, Decimal(1), True, DAY, NOON, CLOCK, SPAN, KEY)
NOT_BINARY = (1, 1.5, Decimal(1), True, DAY, NOON, CLOCK, SPAN, KEY)
NOT_TIME = ("2024-02-29", b"a", 1, 1.5, Decimal(1), True, KEY)

# Parquet's ConvertedType, for annotations that pyarrow does not write
UTF8, ENUM, DECIMAL, DATE, TIME_MILLIS, TIME_MICROS = 0, 4, 5, 6, 7, 8
TIMESTAMP_MILLIS, TIMESTAMP_MICROS, UINT_8, INT_8, JSON, BSON, INTERVAL = 9, 10, 11, 15, 19, 20, 21

LAYOUTS: tuple[dict[str, Any], ...] = (
    {"write_page_index": True, "max_rows_per_page": 2, "write_batch_size": 1},
    {"write_page_index": True, "data_page_version": "2.0", "row_group_size": 2},
    {"write_statistics": False, "use_dictionary": False},
)


@dataclass(frozen=True)
class Case:
    """A column `x` in a file, and all that is said about it.

    `values` has what is not null, `binary` all that there are. `finds` has literals with the rows
    that they find. `changes` to the annotation are made after pyarrow has written the file.
    """

    array: Any
    physical: str
    logical: str
    arrow: Any
    rows: Sequence[Any]
    finds: Sequence[tuple[Any, list[int]]] = ()
    rejects: Sequence[Any] = ()
    values: Any = None
    binary: Sequence[bytes | None] | None = None
    width: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)

    def written(self, layout: dict[str, Any] | None = None) -> bytes:
        """The file, with the column by itself."""
        return self._write(pa.table({"x": self.array}), "x", layout or {})

    def written_as_list(self) -> bytes:
        """A file with one row, whose list `x` has all the values."""
        offsets = pa.array([0, len(self.array)], pa.int32())
        lists = pa.ListArray.from_arrays(offsets, self.array)
        return self._write(pa.table({"x": lists}), "element", {})

    def _write(self, table: pa.Table, column: str, layout: dict[str, Any]) -> bytes:
        sink = io.BytesIO()
        # Bounds by the order of the old annotation would be wrong ones.
        unknown = {"store_schema": False, "write_statistics": False} if self.changes else {}
        pq.write_table(table, sink, **{**layout, **self.options, **unknown})
        if not self.changes:
            return sink.getvalue()
        return Crafted(sink.getvalue()).set_type(column, **self.changes).to_bytes()


def stored(numbers: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """The values of a type with dates or times that Arrow stores as these numbers."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(numbers, width).view(kind)


def extension(kind: Any, values: Sequence[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def integers(kind: pa.DataType, dtype: str, physical: str, low: int, high: int) -> Case:
    logical = {"int32": "None", "int64": "None"}.get(
        str(kind), f"Int(bitWidth={kind.bit_width}, isSigned={'false' if low == 0 else 'true'})"
    )
    return Case(
        array=pa.array([low, 5, None, high], kind),
        physical=physical,
        logical=logical,
        arrow=kind,
        rows=[low, 5, None, high],
        finds=[
            *((low, [0]), (5, [1]), (high, [3]), (low - 1, []), (high + 1, [])),
            *((5.0, [1]), (5.5, []), (INF, []), (NAN, [])),
            *((Decimal("5.00"), [1]), (Decimal("5.01"), []), (Decimal(high), [3])),
            *((np.int8(5), [1]), (np.uint64(5), [1]), (np.float32(5), [1]), (np.float64(5.5), [])),
        ],
        rejects=NOT_NUMBERS,
        values=np.array([low, 5, high], dtype),
    )


def floats(kind: pa.DataType, dtype: str, physical: str, logical: str, tenth: float) -> Case:
    numbers = np.array([1.5, -0.0, 0.0, NAN, INF, 0.1], dtype)
    mask = np.array([False] * 6 + [True])
    return Case(
        array=pa.array(np.append(numbers, numbers[:1]), kind, mask=mask),
        physical=physical,
        logical=logical,
        arrow=kind,
        rows=[1.5, -0.0, 0.0, NAN, INF, tenth, None],
        finds=[
            *((1.5, [0]), (-0.0, [1]), (0.0, [2]), (NAN, [3]), (INF, [4]), (0.1, [5]), (-INF, [])),
            *((0, [1, 2]), (1, []), (Decimal("1.5"), [0]), (np.float64(1.5), [0]), (tenth, [5])),
            *((np.float16(1.5), [0]), (np.int64(0), [1, 2])),
        ],
        rejects=NOT_NUMBERS,
        values=numbers,
    )


def decimals(
    kind: pa.DataType, physical: str, digits: int, *, as_integer: bool = False, width: int = 16
) -> Case:
    """Decimals with two digits behind the point; the unscaled numbers are these."""
    end = 10**digits - 1
    numbers = [-10_000, 1, None, 0, end]
    largest = Decimal((0, (9,) * digits, -2))
    return Case(
        array=pa.array([Decimal(-100), Decimal("0.01"), None, Decimal(0), largest], kind),
        physical=physical,
        logical=f"Decimal(precision={digits}, scale=2)",
        arrow=kind,
        rows=[Decimal("-100.00"), Decimal("0.01"), None, Decimal("0.00"), largest],
        finds=[
            *((Decimal("-100"), [0]), (Decimal("-1E+2"), [0]), (-100, [0]), (-100.0, [0])),
            *((Decimal("0.010"), [1]), (Decimal("0.011"), []), (0.01, [1]), (0, [3]), (0.0, [3])),
            *((largest, [4]), (largest + 1, []), (np.int64(-100), [0]), (10**90, [])),
        ],
        rejects=NOT_NUMBERS,
        values=np.array([-10_000, 1, 0, end], "i8") if digits <= 18 else None,
        binary=[n if n is None else n.to_bytes(width, "little", signed=True) for n in numbers],
        width=width,
        options={"store_decimal_as_integer": as_integer},
    )


def decimals_as_bytes(digits: int, arrow: pa.DataType, width: int) -> Case:
    numbers = [256, -1, None, 0, -129]
    blobs = [b"\x01\x00", b"\xff", None, b"\x00", b"\xff\xff\x7f"]
    return Case(
        array=pa.array(blobs),
        physical="BYTE_ARRAY",
        logical=f"Decimal(precision={digits}, scale=2)",
        arrow=arrow,
        rows=[Decimal("2.56"), Decimal("-0.01"), None, Decimal("0.00"), Decimal("-1.29")],
        finds=[
            *((Decimal("2.56"), [0]), (Decimal("-0.010"), [1]), (0, [3]), (0.0, [3]), (2.56, [0])),
            *((Decimal("-1.29"), [4]), (Decimal("655.35"), [])),
        ],
        rejects=NOT_NUMBERS,
        values=np.array([256, -1, 0, -129], "i8") if digits <= 18 else None,
        binary=[n if n is None else n.to_bytes(width, "little", signed=True) for n in numbers],
        width=width,
        changes={"converted_type": DECIMAL, "precision": digits, "scale": 2},
    )


TEXTS = ["a", "é", "", None, "a\x00"]
TEXT_BYTES = [b"a", b"\xc3\xa9", b"", None, b"a\x00"]


def texts(array: Any, arrow: Any, **more: Any) -> Case:
    return Case(
        array=array,
        physical="BYTE_ARRAY",
        logical="String",
        arrow=arrow,
        rows=TEXTS,
        finds=[("a", [0]), ("é", [1]), ("", [2]), ("a\x00", [4]), ("A", []), (np.str_("é"), [1])],
        rejects=NOT_TEXT,
        binary=TEXT_BYTES,
        **more,
    )


BLOBS = [b"a", b"\xff\x00", b"", None, b"\xc3\xa9"]


def blobs(array: Any, arrow: Any, **more: Any) -> Case:
    return Case(
        array=array,
        physical="BYTE_ARRAY",
        arrow=arrow,
        rows=BLOBS,
        finds=[
            *((b"a", [0]), (b"\xff\x00", [1]), (b"", [2]), (b"\xc3\xa9", [4]), (b"b", [])),
            *(("a", [0]), ("é", [4]), ("", [2]), ("ÿ", [])),
        ],
        rejects=NOT_BINARY,
        binary=BLOBS,
        **{"logical": "None", **more},
    )


def uuids(**options: Any) -> Case:
    keys = [KEY, None, HIGH_KEY]
    return Case(
        array=extension(pa.uuid(), [key and key.bytes for key in keys]),
        physical="FIXED_LEN_BYTE_ARRAY",
        logical="UUID",
        arrow=pa.uuid(),
        rows=keys,
        finds=[(KEY, [0]), (HIGH_KEY, [2]), (uuid.UUID(int=0), [])],
        rejects=(str(KEY), KEY.bytes, KEY.int, DAY, 1.5, Decimal(1)),
        binary=[None if key is None else key.bytes for key in keys],
        width=16,
        options=options,
    )


def dates(array: Any, **more: Any) -> Case:
    return Case(
        array=array,
        physical="INT32",
        logical="Date",
        arrow=pa.date32(),
        rows=[DAY, None, dt.date(1969, 12, 31), np.datetime64(2_932_897, "D")],
        finds=[
            *((DAY, [0]), (dt.date(1969, 12, 31), [2]), (dt.date(2024, 3, 1), [])),
            *((dt.date.max, []), (np.datetime64("2024-02-29", "D"), [0])),
        ],
        rejects=(*NOT_TIME, CLOCK, SPAN),
        values=np.array([NOON_DAYS, -1, 2_932_897], "M8[D]"),
        **more,
    )


def times(kind: Any, array: Any, physical: str, per_second: int, **more: Any) -> Case:
    half_past = (12 * 60 + 30) * 60 * per_second
    unit = {10**3: "milliseconds", 10**6: "microseconds", 10**9: "nanoseconds"}[per_second]
    last = 86_400 * per_second - 1
    last_row = {
        10**3: dt.time(23, 59, 59, 999_000),
        10**6: dt.time(23, 59, 59, 999_999),
        10**9: np.timedelta64(last, "ns"),
    }[per_second]
    adjusted = "true" if "changes" in more else "false"
    return Case(
        array=array,
        physical=physical,
        logical=f"Time(isAdjustedToUTC={adjusted}, timeUnit={unit})",
        arrow=kind,
        rows=[CLOCK, dt.time(0), None, last_row],
        finds=[
            *((CLOCK, [0]), (dt.time(0), [1]), (dt.time(0, 0, 0, 1), [])),
            (dt.time(23, 59, 59, 999_999), [3] if per_second == 10**6 else []),
        ],
        rejects=("12:30", *NOT_TIME, DAY, NOON),
        values=np.array([half_past, 0, last], f"m8[{kind.unit}]"),
        **more,
    )


def half_past_twelve(kind: Any, per_second: int) -> pa.Array:
    numbers = [45_000 * per_second, 0, None, 86_400 * per_second - 1]
    return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64())


def local_stamps(unit: str, per_second: int, **more: Any) -> Case:
    noon = NOON_SECONDS * per_second
    step = 10**6 // per_second
    before: Any = dt.datetime(1969, 12, 31, 23, 59, 59, 1_000_000 - step) if step else None
    kind = pa.timestamp(unit)
    name = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit]
    return Case(
        array=stored([noon, None, -1], kind),
        physical="INT64",
        logical=f"Timestamp(isAdjustedToUTC=false, timeUnit={name}",
        arrow=kind,
        rows=[NOON, None, before or np.datetime64(-1, "ns")],
        finds=[
            *((NOON, [0]), (pd.Timestamp(NOON), [0]), (np.datetime64(NOON, "s"), [0])),
            *((NOON + dt.timedelta(microseconds=1), []), (np.array(-1, f"M8[{unit}]")[()], [2])),
            *((pd.Timestamp(1, unit="ns"), []), (dt.datetime.max, []), (DAY, [])),
        ],
        rejects=(*NOT_TIME, NOON_UTC, pd.Timestamp(NOON_UTC), CLOCK, SPAN),
        values=np.array([noon, -1], f"M8[{unit}]"),
        **more,
    )


def instants(unit: str, per_second: int, zone: str, **more: Any) -> Case:
    noon = NOON_SECONDS * per_second
    step = 10**6 // per_second
    tzinfo = ZoneInfo(zone)
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 1_000_000 - (step or 1), tzinfo=dt.UTC)
    kind = pa.timestamp(unit, zone)
    name = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit]
    tokyo = NOON_UTC.astimezone(dt.timezone(dt.timedelta(hours=9)))
    return Case(
        **{
            "array": stored([noon, None, -1], kind),
            "physical": "INT64",
            "logical": f"Timestamp(isAdjustedToUTC=true, timeUnit={name}",
            "arrow": kind,
            "rows": [
                NOON_UTC.astimezone(tzinfo),
                None,
                before.astimezone(tzinfo) if step else np.datetime64(-1, "ns"),
            ],
            "finds": [
                *((NOON_UTC, [0]), (tokyo, [0]), (pd.Timestamp(tokyo), [0])),
                *((NOON_UTC + dt.timedelta(microseconds=1), []), (before, [2] if step else [])),
                (NOON.replace(tzinfo=BERLIN), []),
            ],
            "rejects": (*NOT_TIME, NOON, pd.Timestamp(NOON), CLOCK, SPAN),
            "values": np.array([noon, -1], f"M8[{unit}]"),
            **more,
        }
    )


def int96() -> Case:
    noon = NOON_SECONDS * 10**9
    return Case(
        array=stored([noon, None, -1], pa.timestamp("ns")),
        physical="INT96",
        logical="None",
        arrow=pa.timestamp("ns"),
        rows=[NOON, None, np.datetime64(-1, "ns")],
        finds=[
            (NOON_UTC, [0]),
            (NOON, [0]),
            (np.datetime64(-1, "ns"), [2]),
            (pd.Timestamp(-1, unit="ns", tz="UTC"), [2]),
            (NOON_UTC + SPAN, []),
        ],
        rejects=(*NOT_TIME, CLOCK, SPAN),
        values=np.array([noon, -1], "M8[ns]"),
        options={"use_deprecated_int96_timestamps": True, "store_schema": False},
    )


def durations(unit: str, per_second: int) -> Case:
    minute = 60 * per_second
    odd: Any = dt.timedelta(microseconds=-(10**6 // per_second))
    kind = pa.duration(unit)
    return Case(
        array=stored([minute, None, -1, 0], kind),
        physical="INT64",
        logical="None",
        arrow=kind,
        rows=[
            dt.timedelta(minutes=1),
            None,
            odd if odd else np.timedelta64(-1, "ns"),
            dt.timedelta(0),
        ],
        finds=[
            *((dt.timedelta(minutes=1), [0]), (dt.timedelta(0), [3]), (dt.timedelta(1), [])),
            *((np.timedelta64(60, "s"), [0]), (np.array(-1, f"m8[{unit}]")[()], [2])),
        ],
        rejects=("1 minute", b"a", DAY, NOON, CLOCK, KEY),
        values=np.array([minute, -1, 0], f"m8[{unit}]"),
    )


def crafted(array: Any, annotation: int, **more: Any) -> dict[str, Any]:
    return {"array": array, "changes": {"converted_type": annotation}, **more}


STRINGS = pa.array(TEXTS)
FIXED = [b"\x00ab", None, b"\xff\xff\xff"]
SPANS = [b"\x01" + bytes(11), None, b"\xff" * 12]
SMALL = pa.array([-128, 127, None], pa.int32())

CASES: dict[str, Case] = {
    "BOOLEAN": Case(
        array=pa.array([True, False, None]),
        physical="BOOLEAN",
        logical="None",
        arrow=pa.bool_(),
        rows=[True, False, None],
        finds=[(True, [0]), (False, [1]), (np.bool_(True), [0])],
        rejects=("true", b"\x01", 1.5, Decimal(1), DAY, NOON, CLOCK, KEY),
        values=np.array([True, False]),
    ),
    "INT8": integers(pa.int8(), "i1", "INT32", -(2**7), 2**7 - 1),
    "INT16": integers(pa.int16(), "i2", "INT32", -(2**15), 2**15 - 1),
    "INT32": integers(pa.int32(), "i4", "INT32", -(2**31), 2**31 - 1),
    "INT64": integers(pa.int64(), "i8", "INT64", -(2**63), 2**63 - 1),
    "UINT8": integers(pa.uint8(), "u1", "INT32", 0, 2**8 - 1),
    "UINT16": integers(pa.uint16(), "u2", "INT32", 0, 2**16 - 1),
    "UINT32": integers(pa.uint32(), "u4", "INT32", 0, 2**32 - 1),
    "UINT64": integers(pa.uint64(), "u8", "INT64", 0, 2**64 - 1),
    "INT_8 of old": Case(
        physical="INT32",
        logical="Int(bitWidth=8, isSigned=true)",
        arrow=pa.int8(),
        rows=[-128, 127, None],
        finds=[(-128, [0]), (127, [1]), (128, [])],
        rejects=NOT_NUMBERS,
        values=np.array([-128, 127], "i1"),
        **crafted(SMALL, INT_8),
    ),
    "FLOAT16": floats(pa.float16(), "f2", "FIXED_LEN_BYTE_ARRAY", "Float16", 0.0999755859375),
    "FLOAT": floats(pa.float32(), "f4", "FLOAT", "None", 0.10000000149011612),
    "DOUBLE": floats(pa.float64(), "f8", "DOUBLE", "None", 0.1),
    "DECIMAL(9) as INT32": decimals(pa.decimal128(9, 2), "INT32", 9, as_integer=True),
    "DECIMAL(18) as INT64": decimals(pa.decimal128(18, 2), "INT64", 18, as_integer=True),
    "DECIMAL(9) as fixed": decimals(pa.decimal128(9, 2), "FIXED_LEN_BYTE_ARRAY", 9),
    "DECIMAL(18) as fixed": decimals(pa.decimal128(18, 2), "FIXED_LEN_BYTE_ARRAY", 18),
    "DECIMAL(19) as fixed": decimals(pa.decimal128(19, 2), "FIXED_LEN_BYTE_ARRAY", 19),
    "DECIMAL(38) as fixed": decimals(pa.decimal128(38, 2), "FIXED_LEN_BYTE_ARRAY", 38),
    "DECIMAL(76) as fixed": decimals(pa.decimal256(76, 2), "FIXED_LEN_BYTE_ARRAY", 76, width=32),
    "DECIMAL(10), 256 bits": decimals(pa.decimal256(10, 2), "FIXED_LEN_BYTE_ARRAY", 10, width=32),
    "DECIMAL(10) as bytes": decimals_as_bytes(10, pa.decimal128(10, 2), 16),
    "DECIMAL(30) as bytes": decimals_as_bytes(30, pa.decimal128(30, 2), 16),
    "DECIMAL(60) as bytes": decimals_as_bytes(60, pa.decimal256(60, 2), 32),
    "STRING": texts(STRINGS, pa.string()),
    "STRING, large": texts(STRINGS.cast(pa.large_string()), pa.large_string()),
    "STRING, view": texts(STRINGS.cast(pa.string_view()), pa.string_view()),
    "STRING, dictionary": texts(
        STRINGS.dictionary_encode(), pa.dictionary(pa.int32(), pa.string())
    ),
    "UTF8 of old": texts(**crafted(pa.array(TEXT_BYTES), UTF8, arrow=pa.string())),
    "ENUM": Case(
        physical="BYTE_ARRAY",
        logical="Enum",
        arrow=pa.string(),
        rows=TEXTS,
        finds=[("a", [0]), ("é", [1]), ("b", [])],
        rejects=NOT_TEXT[1:],
        binary=TEXT_BYTES,
        **crafted(pa.array(TEXT_BYTES), ENUM),
    ),
    "JSON": Case(
        array=extension(pa.json_(), ['{"a": 1}', None, "[]"]),
        physical="BYTE_ARRAY",
        logical="JSON",
        arrow=pa.json_(),
        rows=['{"a": 1}', None, "[]"],
        finds=[('{"a": 1}', [0]), ("[]", [2]), ('{"a":1}', [])],
        rejects=NOT_TEXT[1:],
        binary=[b'{"a": 1}', None, b"[]"],
    ),
    "BSON": blobs(**crafted(pa.array(BLOBS), BSON, arrow=pa.binary(), logical="BSON")),
    "BINARY": blobs(pa.array(BLOBS), pa.binary()),
    "BINARY, large": blobs(pa.array(BLOBS, pa.large_binary()), pa.large_binary()),
    "BINARY, view": blobs(pa.array(BLOBS).cast(pa.binary_view()), pa.binary_view()),
    "BINARY, fixed": Case(
        array=pa.array(FIXED, pa.binary(3)),
        physical="FIXED_LEN_BYTE_ARRAY",
        logical="None",
        arrow=pa.binary(3),
        rows=FIXED,
        finds=[(b"\x00ab", [0]), (b"\xff\xff\xff", [2]), (b"", []), (b"\x00abc", [])],
        rejects=NOT_BINARY,
        binary=FIXED,
        width=3,
    ),
    "UUID": uuids(),
    "UUID, without Arrow's schema": uuids(store_schema=False),
    "INTERVAL": Case(
        physical="FIXED_LEN_BYTE_ARRAY",
        logical="Interval",
        arrow=pa.binary(12),
        rows=SPANS,
        binary=SPANS,
        width=12,
        **crafted(pa.array(SPANS, pa.binary(12)), INTERVAL),
    ),
    "DATE": dates(stored([NOON_DAYS, None, -1, 2_932_897], pa.date32())),
    "DATE of old": dates(
        **crafted(pa.array([NOON_DAYS, None, -1, 2_932_897], pa.int32()), DATE)
    ),
    "TIME in ms": times(
        pa.time32("ms"), half_past_twelve(pa.time32("ms"), 10**3).view("time32[ms]"), "INT32", 10**3
    ),
    "TIME in us": times(
        pa.time64("us"), half_past_twelve(pa.time64("us"), 10**6).view("time64[us]"), "INT64", 10**6
    ),
    "TIME in ns": times(
        pa.time64("ns"), half_past_twelve(pa.time64("ns"), 10**9).view("time64[ns]"), "INT64", 10**9
    ),
    "TIME_MILLIS of old": times(
        pa.time32("ms"),
        physical="INT32",
        per_second=10**3,
        **crafted(half_past_twelve(pa.time32("ms"), 10**3), TIME_MILLIS),
    ),
    "TIME_MICROS of old": times(
        pa.time64("us"),
        physical="INT64",
        per_second=10**6,
        **crafted(half_past_twelve(pa.time64("us"), 10**6), TIME_MICROS),
    ),
    "TIMESTAMP in ms, local": local_stamps("ms", 10**3),
    "TIMESTAMP in us, local": local_stamps("us", 10**6),
    "TIMESTAMP in ns, local": local_stamps("ns", 10**9),
    "TIMESTAMP in ms, UTC": instants("ms", 10**3, "UTC"),
    "TIMESTAMP in us, UTC": instants("us", 10**6, "UTC"),
    "TIMESTAMP in ns, UTC": instants("ns", 10**9, "UTC"),
    "TIMESTAMP in ms, Berlin": instants("ms", 10**3, "Europe/Berlin"),
    "TIMESTAMP in us, Berlin": instants("us", 10**6, "Europe/Berlin"),
    "TIMESTAMP in ns, Berlin": instants("ns", 10**9, "Europe/Berlin"),
    "TIMESTAMP_MILLIS of old": instants(
        "ms", 10**3, "UTC", **crafted(pa.array([NOON_SECONDS * 10**3, None, -1]), TIMESTAMP_MILLIS)
    ),
    "TIMESTAMP_MICROS of old": instants(
        "us", 10**6, "UTC", **crafted(pa.array([NOON_SECONDS * 10**6, None, -1]), TIMESTAMP_MICROS)
    ),
    "INT96": int96(),
    "duration in s": durations("s", 1),
    "duration in ms": durations("ms", 10**3),
    "duration in us": durations("us", 10**6),
    "duration in ns": durations("ns", 10**9),
    "null": Case(
        array=pa.nulls(3),
        physical="INT32",
        logical="Null",
        arrow=pa.null(),
        rows=[None, None, None],
        values=np.array([], "u1"),
    ),
    "bool8, an extension": Case(
        array=extension(pa.bool8(), [1, None, 0]),
        physical="INT32",
        logical="Int(bitWidth=8, isSigned=true)",
        arrow=pa.bool8(),
        rows=[True, None, False],
        values=np.array([1, 0], "i1"),
    ),
    "opaque, an extension": Case(
        array=extension(pa.opaque(pa.int32(), "kind", "vendor"), [7, None, -1]),
        physical="INT32",
        logical="None",
        arrow=pa.opaque(pa.int32(), "kind", "vendor"),
        rows=[7, None, -1],
        values=np.array([7, -1], "i4"),
    ),
    "integers, dictionary": Case(
        array=pa.array([7, None, -1], pa.int16()).dictionary_encode(),
        physical="INT32",
        logical="Int(bitWidth=16, isSigned=true)",
        arrow=pa.int16(),
        rows=[7, None, -1],
        finds=[(7, [0]), (-1, [2]), (8, [])],
        rejects=NOT_NUMBERS,
        values=np.array([7, -1], "i2"),
    ),
}  # fmt: skip


def is_binary(case: Case) -> bool:
    """Whether its values are bytes or text; decimals only have their bytes beside them."""
    return case.binary is not None and not case.logical.startswith("Decimal")


every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
cases_with_values = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name) for name, case in CASES.items() if case.values is not None],
)
cases_with_bytes = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name) for name, case in CASES.items() if case.binary is not None],
)
cases_of_bytes_alone = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name) for name, case in CASES.items() if is_binary(case)],
)
cases_of_no_bytes = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name) for name, case in CASES.items() if case.binary is None],
)


# Helpers


def same(value: Any, expected: Any) -> bool:
    """Whether two values are of one type and the same in every bit that matters."""
    if type(value) is not type(expected):
        return False
    if isinstance(expected, float):
        return struct.pack("<d", value) == struct.pack("<d", expected) or value != value
    if isinstance(expected, dt.datetime):
        zones = (str(value.tzinfo), str(expected.tzinfo))
        return (
            bool(value == expected) and zones[0] == zones[1] and value.tzname() == expected.tzname()
        )
    if isinstance(expected, Decimal):
        return bool(value.as_tuple() == expected.as_tuple())
    if isinstance(expected, np.generic):
        return value.dtype == expected.dtype and bool(value == expected)
    return bool(value == expected)


def assert_values(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        assert same(value, wanted), f"{value!r} is not {wanted!r}"


def only_batch(data: bytes, column: Any = "x") -> fs.ColumnBatch:
    (batch,) = fs.scan(data).column(column)
    return batch


def presence(case: Case) -> Any:
    return np.array([row is not None for row in case.rows])


def assert_array(found: Any, case: Case) -> None:
    """The values that are not null, bit by bit, in an array of the right type."""
    assert isinstance(found, np.ndarray)
    assert found.shape == (len(case.rows),)
    assert found.dtype == case.values.dtype
    assert found[presence(case)].tobytes() == case.values.tobytes()


def assert_buffers(batch: fs.ColumnBatch, case: Case) -> None:
    """The bytes of every value that is not null, and offsets into them from zero on."""
    data, offsets = batch.binary_values, batch.binary_offsets
    assert isinstance(data, np.ndarray)
    assert data.dtype == np.uint8
    assert data.ndim == 1
    assert offsets.dtype in (np.int32, np.int64)
    assert len(offsets) == len(case.rows) + 1
    assert offsets[0] == 0
    assert offsets[-1] == len(data)
    assert (np.diff(offsets) >= 0).all()
    if case.width is not None:
        assert offsets.tolist() == [case.width * i for i in range(len(case.rows) + 1)]
    for i, wanted in enumerate(case.binary or ()):
        if wanted is not None:
            assert data[offsets[i] : offsets[i + 1]].tobytes() == wanted


def assert_validity(validity: fs.Validity, case: Case) -> None:
    here = presence(case)
    assert np.array_equal(np.broadcast_to(validity.mask(), here.shape), here)
    assert validity.has_nulls == (not here.all())
    assert [validity.is_null(i) for i in range(len(here))] == (~here).tolist()


def found_rows(scan: fs.Scan) -> list[int]:
    rows: list[int] = scan.select().with_row_index().to_arrow()["index"].to_pylist()
    return rows


# The table


@every_case
def test_the_file_stores_what_the_case_says(case: Case) -> None:
    for layout in ({}, *LAYOUTS):
        file = pq.ParquetFile(io.BytesIO(case.written(layout)))
        column = file.schema.column(0)
        assert column.physical_type == case.physical
        assert str(column.logical_type).startswith(case.logical)
        assert file.metadata.num_rows == len(case.rows)
    leaf = only_batch(case.written()).schema
    assert (leaf.name, leaf.is_leaf, leaf.physical_type) == ("x", True, case.physical)


@every_case
def test_literals_find_their_rows(case: Case) -> None:
    for layout in (LAYOUTS[0], LAYOUTS[-1]):
        scan = fs.scan(case.written(layout))
        for literal, rows in case.finds:
            assert found_rows(scan.filter(col("x") == literal)) == rows, repr(literal)


@every_case
def test_literals_find_the_other_rows(case: Case) -> None:
    scan = fs.scan(case.written(LAYOUTS[0]))
    for literal, rows in case.finds[::3]:
        others = [i for i, row in enumerate(case.rows) if row is not None and i not in rows]
        assert found_rows(scan.filter(col("x") != literal)) == others, repr(literal)
        assert found_rows(scan.filter(~col("x").is_in([literal]))) == others, repr(literal)


@every_case
def test_literals_that_do_not_fit_raise(case: Case) -> None:
    scan = fs.scan(case.written())
    for literal in case.rejects:
        with pytest.raises(fs.PredicateTypeError, match="x"):
            scan.filter(col("x") == literal).count()


@every_case
def test_nulls_are_found(case: Case) -> None:
    scan = fs.scan(case.written(LAYOUTS[0]))
    gaps = [i for i, row in enumerate(case.rows) if row is None]
    assert found_rows(scan.filter(col("x").is_null())) == gaps


@every_case
def test_rows_hold_python_values(case: Case) -> None:
    for layout in ({}, *LAYOUTS):
        assert_values([row["x"] for row in fs.scan(case.written(layout))], case.rows)


@every_case
def test_lists_of_the_type_hold_the_same(case: Case) -> None:
    data = case.written_as_list()
    (row,) = fs.scan(data)
    assert_values(row["x"], case.rows)
    for literal, rows in case.finds[:4]:
        found = fs.scan(data).filter(col("x.element").any() == literal).count()
        assert found == bool(rows), repr(literal)


@every_case
def test_columns_know_their_nulls(case: Case) -> None:
    batch = only_batch(case.written())
    assert (batch.record_count, batch.value_count, batch.layers) == (len(case.rows),) * 2 + ((),)
    assert_validity(batch.leaf_validity, case)
    assert batch.arrow.is_valid().to_pylist() == presence(case).tolist()
    assert batch.arrow.type == case.arrow or batch.arrow.type == CASES_AS_DECODED.get(case.arrow)
    nested = only_batch(case.written_as_list())
    assert (nested.record_count, nested.value_count) == (1, len(case.rows))
    assert [layer.kind for layer in nested.layers] == [fs.LayerKind.REPEATED]
    assert_validity(nested.leaf_validity, case)


CASES_AS_DECODED: dict[pa.DataType, pa.DataType] = {
    pa.dictionary(pa.int32(), pa.string()): pa.string(),
}


@cases_with_values
def test_columns_are_typed_arrays(case: Case) -> None:
    for layout in ({}, *LAYOUTS):
        batches = list(fs.scan(case.written(layout)).column("x", len(case.rows)))
        assert_array(np.concatenate([batch.values for batch in batches]), case)
        assert {batch.values.dtype for batch in batches} == {case.values.dtype}
    assert_array(only_batch(case.written_as_list()).values, case)


@cases_with_bytes
def test_binary_columns_are_buffers(case: Case) -> None:
    assert_buffers(only_batch(case.written()), case)
    assert_buffers(only_batch(case.written(LAYOUTS[0])), case)
    assert_buffers(only_batch(case.written_as_list()), case)


@cases_of_bytes_alone
def test_values_of_binary_columns_point_to_the_buffers(case: Case) -> None:
    batch = only_batch(case.written())
    with pytest.raises(TypeError, match="binary_values"):
        _ = batch.values


@pytest.mark.parametrize("name", ["DECIMAL(19) as fixed", "DECIMAL(60) as bytes"])
def test_values_of_wide_decimals_point_to_the_buffers(name: str) -> None:
    batch = only_batch(CASES[name].written())
    with pytest.raises(TypeError, match="binary_values"):
        _ = batch.values


@cases_of_no_bytes
def test_buffers_are_for_binary_columns(case: Case) -> None:
    batch = only_batch(case.written())
    for use in ("binary_values", "binary_offsets"):
        with pytest.raises(TypeError):
            getattr(batch, use)
    for method in (batch.strings, batch.binaries):
        with pytest.raises(TypeError):
            method()


@cases_of_bytes_alone
def test_strings_and_binaries_are_python_objects(case: Case) -> None:
    batch = only_batch(case.written())
    assert_values(batch.binaries(), list(case.binary or ()))
    if isinstance(case.rows[0], str):
        assert_values(batch.strings(), case.rows)


def test_strings_of_enums_are_their_names() -> None:
    assert_values(only_batch(CASES["ENUM"].written()).strings(), TEXTS)


def test_strings_of_plain_binaries_are_their_utf8() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": pa.array([b"a", None, "é".encode()])}), sink)
    assert only_batch(sink.getvalue()).strings() == ["a", None, "é"]


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2)], ids=str)
@pytest.mark.parametrize("as_integer", [True, False])
def test_narrow_decimals_are_integers_of_64_bits(kind: pa.DataType, as_integer: bool) -> None:
    sink = io.BytesIO()
    table = pa.table({"x": pa.array([Decimal("-1.50"), None, Decimal(3)], kind)})
    pq.write_table(table, sink, store_decimal_as_integer=as_integer)
    values = only_batch(sink.getvalue()).values
    assert values.dtype == np.int64
    assert (values[0], values[2]) == (-150, 300)
    rows = [row["x"] for row in fs.scan(sink.getvalue())]
    assert_values(rows, [Decimal("-1.50"), None, Decimal("3.00")])
    assert found_rows(fs.scan(sink.getvalue()).filter(col("x") == Decimal("-1.5"))) == [0]


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_int96_in_another_unit(unit: Literal["ms", "us"]) -> None:
    data = CASES["INT96"].written()
    scan = fs.scan(data, int96=unit)
    (batch,) = scan.column("x")
    assert batch.values.dtype == np.dtype(f"M8[{unit}]")
    assert batch.values[0] == np.datetime64(NOON)
    assert_values([row["x"] for row in scan.head(2)], [NOON, None])
    assert found_rows(scan.filter(col("x") == NOON_UTC)) == [0]


# Other writers


def test_types_by_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    columns = {
        "key": f"'{KEY}'::uuid",
        "doc": """'{"a": 1}'::json""",
        "mood": "'ok'::enum('sad', 'ok')",
        "span": "interval '2 months 3 days 5 milliseconds'",
        "at": "'12:30:00+00'::timetz",
        "ns": "make_timestamp_ns(1001)",
        "instant": "'2024-02-29 12:00:00+00'::timestamptz",
        "price": "-1.50::decimal(9, 2)",
        "wide": "12345678901234567890.5::decimal(30, 1)",
        "tiny": "200::utinyint",
        "blob": r"'\xFF\x00'::blob",
    }
    query = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    with need("duckdb").connect() as connection:
        connection.execute(f"COPY (SELECT {query}) TO '{path}' (FORMAT parquet)")
    (row,) = fs.scan(path)
    interval = struct.pack("<III", 2, 3, 5)
    expected = {
        "key": KEY,
        "doc": '{"a": 1}',
        "mood": "ok",
        "span": interval,
        "at": CLOCK,
        "ns": np.datetime64(1_001, "ns"),
        "instant": NOON.replace(tzinfo=UTC),
        "price": Decimal("-1.50"),
        "wide": Decimal("12345678901234567890.5"),
        "tiny": 200,
        "blob": b"\xff\x00",
    }
    assert list(row) == list(expected)
    assert_values(list(row.values()), list(expected.values()))
    (batch,) = fs.scan(path).columns()
    assert batch["span"].binaries() == [interval]
    assert batch["key"].binaries() == [KEY.bytes]
    assert batch["mood"].strings() == ["ok"]
    assert batch["ns"].values.tolist() == [1_001]
    assert batch["instant"].values == np.array([NOON], "M8[us]")
    assert batch["price"].values.dtype == np.int64
    assert batch["price"].values.tolist() == [-150]
    assert batch["tiny"].values.dtype == np.uint8
    assert batch["tiny"].values.tolist() == [200]
    wide = batch["wide"].binary_values.tobytes()
    assert int.from_bytes(wide, "little", signed=True) == 123_456_789_012_345_678_905
    literals = {"key": KEY, "doc": '{"a": 1}', "mood": "ok", "instant": NOON_UTC, "tiny": 200}
    for name, literal in literals.items():
        assert fs.scan(path).filter(col(name) == literal).count() == 1, name


def test_types_by_polars(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    polars = need("polars")
    values: dict[str, Any] = {
        "time": CLOCK,
        "span": dt.timedelta(minutes=1),
        "stamp": NOON,
        "day": DAY,
        "price": Decimal("1.50"),
        "text": "é",
        "blob": b"\xff",
        "float": -0.0,
        "flag": True,
        "list": [1, None],
        "struct": {"a": 1, "b": None},
    }
    frame = polars.DataFrame([values], schema_overrides={"price": polars.Decimal(9, 2)})
    frame = frame.with_columns(polars.col("text").cast(polars.Categorical).alias("kind"))
    frame.write_parquet(path)
    (row,) = fs.scan(path)
    assert list(row) == [*values, "kind"]
    assert_values([row[name] for name in values], list(values.values()))
    assert row["kind"] == "é"
    (batch,) = fs.scan(path).select("time", "span", "kind").columns()
    assert batch["time"].values == np.array([45_000 * 10**9], "m8[ns]")
    assert batch["span"].values == np.array([60 * 10**6], "m8[us]")
    assert batch["kind"].strings() == ["é"]
    assert fs.scan(path).filter(col("kind") == "é").count() == 1
    assert fs.scan(path).filter(col("span") == dt.timedelta(minutes=1)).count() == 1


@pytest.mark.parametrize("pages", [1, 2])
def test_types_by_fastparquet(pages: int, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    table = pa.table(
        {
            "small": pa.array([1, -2], pa.int8()),
            "float": pa.array([0.5, -0.0], pa.float32()),
            "stamp": stored([NOON_SECONDS * 10**9, 1_001], pa.timestamp("ns")),
            "flag": [True, False],
            "text": ["é", ""],
        }
    )
    by_fastparquet(table, path, pages)
    rows = list(fs.scan(path))
    expected = [
        [1, 0.5, NOON, True, "é"],
        [-2, -0.0, np.datetime64(1_001, "ns"), False, ""],
    ]
    for row, wanted in zip(rows, expected, strict=True):
        assert_values(list(row.values()), wanted)
    (batch,) = fs.scan(path).columns()
    assert batch["small"].values.dtype == np.int8
    assert batch["small"].values.tolist() == [1, -2]
    assert batch["stamp"].values.tolist() == [NOON_SECONDS * 10**9, 1_001]
    assert batch["text"].strings() == ["é", ""]
