"""Rows as pyarrow's `to_pylist` gives them, with the exceptions that the contract makes.

`expected_rows` is pyarrow's answer with these exceptions; `fingerprint` tells values apart that
Python calls equal: 1, 1.0 and True, both zeros, decimals of other digits, zones of one offset.
"""

import datetime as dt
import io
import struct
import uuid
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fretsaw as fs
from tests.support.nested_data import parquet_bytes, pyarrow_read

ROWS = 120
UTC = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")


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


def counted(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    """The values of a type with dates or times that are stored as these numbers."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(numbers, width).view(kind)


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
