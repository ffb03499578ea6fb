"""Types of the row evaluator, and the rows of a table as plain Python values.

Numbers are `int`, `float` and `Decimal`; days are counted from 1970, times of day, timestamps and
durations are nanoseconds as `int`, whatever unit the column has. A kind says what they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400 * 10**9


@dataclass(frozen=True)
class Kind:
    """What a value is: its family, and what tells members of the family apart."""

    name: str
    width: int = 64
    signed: bool = True
    precision: int = 0
    scale: int = 0
    unit: str = "us"
    zone: str | None = None
    element: Kind | None = None
    fields: tuple[tuple[str, Kind], ...] = ()

    @property
    def is_number(self) -> bool:
        return self.name in ("int", "float", "decimal")

    @property
    def is_nested(self) -> bool:
        return self.name in ("list", "map", "struct")

    def field(self, name: str) -> Kind:
        return dict(self.fields)[name]


BOOL, INT, FLOAT, TEXT, BYTES = (Kind(name) for name in ("bool", "int", "float", "text", "bytes"))
DATE, TIME, LOCAL, DURATION = (Kind(name) for name in ("date", "time", "local", "duration"))
UTC = Kind("instant", zone="UTC")


def decimal_kind(precision: int, scale: int) -> Kind:
    return Kind("decimal", precision=precision, scale=scale)


def int_range(kind: Kind) -> tuple[int, int]:
    if kind.signed:
        return -(2 ** (kind.width - 1)), 2 ** (kind.width - 1) - 1
    return 0, 2**kind.width - 1


def finer(one: str, other: str) -> str:
    return min(one, other, key=UNITS.__getitem__)


def kind_of(kind: pa.DataType) -> Kind:
    """The kind of an Arrow type."""
    types = pa.types
    match kind:
        case _ if types.is_dictionary(kind):
            return kind_of(kind.value_type)
        case _ if types.is_boolean(kind):
            return BOOL
        case _ if types.is_integer(kind):
            return Kind("int", kind.bit_width, types.is_signed_integer(kind))
        case _ if types.is_floating(kind):
            return Kind("float", kind.bit_width)
        case _ if types.is_decimal(kind):
            return decimal_kind(kind.precision, kind.scale)
        case _ if types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view():
            return TEXT
        case _ if types.is_date(kind):
            return DATE
        case _ if types.is_time(kind):
            return replace(TIME, unit=kind.unit)
        case _ if types.is_timestamp(kind):
            name = "local" if kind.tz is None else "instant"
            return Kind(name, unit=kind.unit, zone=kind.tz)
        case _ if types.is_duration(kind):
            return replace(DURATION, unit=kind.unit)
        case _ if types.is_map(kind):
            fields = (("key", kind_of(kind.key_type)), ("value", kind_of(kind.item_type)))
            return Kind("map", element=Kind("struct", fields=fields))
        case _ if types.is_list(kind) or types.is_large_list(kind):
            return Kind("list", element=kind_of(kind.value_type))
        case _ if types.is_struct(kind):
            return Kind("struct", fields=tuple((f.name, kind_of(f.type)) for f in kind))
    return BYTES


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column: times as integers, so that nothing is lost or rounded."""
    kind = kind_of(column.type)
    if kind.is_nested:
        return [plain(value, column.type) for value in column.to_pylist()]
    if kind.name == "date":
        return list(column.cast(pa.date32()).cast(pa.int32()).to_pylist())
    if kind.name in ("time", "local", "instant", "duration"):
        width = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
        stored = column.cast(width).to_pylist()
        return [None if value is None else value * UNITS[kind.unit] for value in stored]
    values: list[Any] = column.to_pylist()
    if kind.name == "float":
        return [None if value is None else float(value) for value in values]
    return values


def plain(value: Any, kind: pa.DataType) -> Any:
    """A nested value: structs as dicts, lists and maps as lists; no times are in there."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [{"key": key, "value": item} for key, item in value]
    if isinstance(value, list):
        return [plain(item, kind.value_type) for item in value]
    return value


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    columns = {name: plain_values(table[name]) for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def digits_of(kind: Kind) -> tuple[int, int]:
    """How many digits an exact number may have, and how many of them behind the point."""
    if kind.name == "int":
        return 19 if kind.signed else 20, 0
    return kind.precision, kind.scale


def decimal_of_literal(value: Decimal) -> Kind:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return decimal_kind(max(len(digits) + max(exponent, 0), scale, 1), scale)
