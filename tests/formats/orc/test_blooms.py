"""Bloom filters of ORC on decimals and binaries: what they rule out, and that no row is lost.

Writers hash decimals as text: most without the zeros at its end, which is not what the column's
scale would give. Files are those of pyarrow's writer, and crafted ones for other spellings.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support import orc_craft
from tests.support.orc_craft import BLOOM_FILTER_UTF8, Crafted

X = 2  # the column of `x`
ROWS, STRIDE = 640, 20
SPREAD = [number * 7919 % 10_007 - 5_000 for number in range(ROWS)]
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "short decimals": (pa.decimal128(9, 2), [Decimal(n) / 100 for n in SPREAD]),
    "round decimals": (pa.decimal128(9, 2), [Decimal(n * 10) for n in SPREAD]),
    "whole decimals": (pa.decimal128(12, 0), [Decimal(n * 100) for n in SPREAD]),
    "long decimals": (pa.decimal128(38, 5), [Decimal(n) * 10**25 / 8 for n in SPREAD]),
    "small decimals": (pa.decimal128(6, 6), [Decimal(n) / 10**5 for n in SPREAD]),
    "binaries": (pa.binary(), [str(n).encode() + bytes(n % 3) for n in SPREAD]),
}
Change = Callable[[Crafted], object]


def made(kind: pa.DataType, values: Sequence[Any], change: Change = lambda file: None) -> bytes:
    """Strides that all have the same bounds, so that only filters tell them apart."""
    table = pa.table({"row": range(len(values)), "x": pa.array(values, kind)})
    options: dict[str, Any] = {"row_index_stride": STRIDE, "bloom_filter_columns": [X]}
    file = Crafted(orc_craft.written(table, len(values) // 2, bloom_filter_fpp=0.01, **options))
    change(file)
    return file.to_bytes()


def rows(data: bytes, value: Any) -> list[int]:
    scan = fs.scan(data).filter(col("x") == value)
    found: list[int] = scan.to_arrow()["row"].to_pylist()
    assert scan.count() == len(found)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_every_value_is_found_and_few_strides_are_read_for_it(name: str) -> None:
    kind, values = KINDS[name]
    data = made(kind, values)
    for value in values[::31]:
        expected = [row for row, other in enumerate(values) if other == value]
        assert rows(data, value) == expected
        with fs.open(data) as file:
            kept = len(file.prune(col("x") == value).indices())
        assert STRIDE * len(expected) <= kept <= STRIDE * (len(expected) + 6)
    absent = b"none" if pa.types.is_binary(kind) else max(values) - 1
    assert absent not in values
    assert rows(data, absent) == []


@pytest.mark.parametrize("literal", [5, 5.0, Decimal("5"), Decimal("5.000"), Decimal("5.0000000")])
def test_a_decimal_is_found_however_the_literal_is_spelled(literal: Any) -> None:
    for kind in (pa.decimal128(9, 2), pa.decimal128(30, 4), pa.decimal128(9, 0)):
        values = [Decimal(n) for n in range(40)]
        assert rows(made(kind, values), literal) == [5]


@pytest.mark.parametrize("value", ["0", "-0.5", "0.07", "100", "-100", "10.10", "99999.99"])
def test_decimals_that_are_easily_misspelled_are_found(value: str) -> None:
    values = [Decimal(n) / 7 for n in range(STRIDE * 4)]
    values = [each.quantize(Decimal("0.01")) for each in values]
    values[33] = Decimal(value)
    expected = [row for row, each in enumerate(values) if each == Decimal(value)]
    assert rows(made(pa.decimal128(9, 2), values), Decimal(value)) == expected


def spelled(values: Sequence[Decimal], spell: Callable[[Decimal], str]) -> Change:
    """Filters over decimals as text, taken from a column of text."""
    texts = pa.table({"row": range(len(values)), "x": [spell(value) for value in values]})

    def change(file: Crafted) -> None:
        options: dict[str, Any] = {"row_index_stride": STRIDE, "bloom_filter_columns": [X]}
        other = Crafted(orc_craft.written(texts, len(values) // 2, **options))
        for stripe, source in zip(file.stripes, other.stripes, strict=True):
            body = source.stream(BLOOM_FILTER_UTF8, X).body
            stripe.stream(BLOOM_FILTER_UTF8, X).body = body

    return change


SPELLINGS: dict[str, Callable[[Decimal], str]] = {
    "all digits of the type": lambda value: f"{value:.2f}",
    "without zeros at the end": lambda value: (
        f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_decimals_are_found_with_or_without_zeros_at_the_end(spelling: str) -> None:
    kind, values = KINDS["short decimals"]
    data = made(kind, values, spelled(values, SPELLINGS[spelling]))
    for value in values[::17]:
        assert rows(data, value) == [row for row, other in enumerate(values) if other == value]


@pytest.mark.parametrize("writer", [2, 3, 4, 5, 99])
@pytest.mark.parametrize("name", ["short decimals", "binaries"])
def test_what_other_writers_hash_is_not_known(name: str, writer: int) -> None:
    """Their filters here are empty: whoever believes them loses the row."""
    kind, values = KINDS[name]
    data = made(kind, values, lambda file: file.empty_blooms(X).set_writer(writer, None))
    assert rows(data, values[77]) == [77]


@pytest.mark.parametrize("writer", [None, 0])
@pytest.mark.parametrize("name", ["short decimals", "binaries"])
def test_filters_of_java_are_used(name: str, writer: int | None) -> None:
    kind, values = KINDS[name]
    data = made(kind, values, lambda file: file.empty_blooms(X).set_writer(writer, None))
    assert rows(data, values[77]) == []


@pytest.mark.parametrize("shape", ["list", "struct"])
def test_filters_below_lists_and_structs(shape: str) -> None:
    kind, values = KINDS["short decimals"]
    if shape == "list":
        nested = pa.array([[value, None] for value in values], pa.list_(kind))
        field: Any = col("x.element").any()
    else:
        nested = pa.array([{"a": value} for value in values], pa.struct([("a", kind)]))
        field = col("x.a")
    table = pa.table({"row": range(ROWS), "x": nested})
    options: dict[str, Any] = {"row_index_stride": STRIDE, "bloom_filter_columns": [3]}
    data = orc_craft.written(table, ROWS // 2, **options)
    for value in values[::61]:
        found = fs.scan(data).filter(field == value).to_arrow()["row"].to_pylist()
        assert found == [row for row, other in enumerate(values) if other == value]


def test_values_that_null_structs_hide_do_not_mislead_filters() -> None:
    """As pyarrow writes them: every reader finds later values in their place."""
    inner = pa.StructArray.from_arrays(
        [pa.array(range(80), pa.int32())], names=["a"], mask=pa.array([False, True] * 40)
    )
    table = pa.table({"row": range(80), "x": pa.StructArray.from_arrays([inner], names=["s"])})
    options: dict[str, Any] = {"row_index_stride": 8, "bloom_filter_columns": [4]}
    data = orc_craft.written_at_once(table, **options)
    values = [row["s"] and row["s"]["a"] for row in orc_craft.read(data)["x"].to_pylist()]
    for value in range(0, 80, 3):
        found = fs.scan(data).filter(col("x.s.a") == value).to_arrow()["row"].to_pylist()
        assert found == [row for row, other in enumerate(values) if other == value]
