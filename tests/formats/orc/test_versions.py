"""Versions of the ORC format that are not in common use, read as pyarrow reads them."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support import orc_craft
from tests.support.orc_craft import KIND, Crafted, Message, packed, read

VERSION = 4  # of PostScript
PRECISION, SCALE = 5, 6  # of Type
DECIMAL = 14
UNSTABLE = (1, 9999)
ROWS, STRIPE, STRIDE = 400, 200, 20
UNSCALED = [None if row % 7 == 3 else row * row * 37 - 40_000 for row in range(ROWS)]
PRICES = [None if n is None else Decimal(n) / 100 for n in UNSCALED]


def in_version(file: Crafted, version: Sequence[int] | None) -> bytes:
    file.postscript.pop(VERSION, None)
    if version is not None:
        file.postscript[VERSION] = [packed(version)]
    return file.to_bytes()


def short_decimals(column: int) -> Callable[[list[Message]], list[Message]]:
    """Make decimals of a column of integers: in the unstable version both are stored alike."""

    def change(types: list[Message]) -> list[Message]:
        types[column] |= {KIND: [DECIMAL], PRECISION: [18], SCALE: [2]}
        return types

    return change


def unstable(values: Any, column: int, **options: Any) -> bytes:
    table = pa.table({"row": range(ROWS), "x": values})
    file = Crafted(orc_craft.written(table, STRIPE, row_index_stride=STRIDE, **options))
    file.set_types(short_decimals(column))
    return in_version(file, UNSTABLE)


@pytest.mark.parametrize("codec", ["uncompressed", "zlib"])
def test_short_decimals_of_the_unstable_version_are_read_in_strides(codec: str) -> None:
    data = unstable(pa.array(UNSCALED, pa.int64()), 2, compression=codec)
    whole = read(data)
    assert whole["x"].to_pylist() == PRICES
    assert fs.scan(data).to_arrow().equals(whole)
    for first in (0, 19, 150, 199, 390):
        with fs.trace() as trace:
            part = fs.scan(data).skip(first).head(15).to_arrow()
        assert part.equals(whole.slice(first, 15))
        assert trace.fallbacks == []
        assert trace.rows_decoded < 2 * 3 * STRIDE
    wanted = PRICES[123]
    found = fs.scan(data).filter(col("x") == wanted).to_arrow()
    assert found["row"].to_pylist() == [n for n, price in enumerate(PRICES) if price == wanted]
    assert fs.scan(data).filter(col("x").is_null()).count() == PRICES.count(None)


@pytest.mark.parametrize(
    ("values", "column", "of_row"),
    [
        (pa.array([{"a": n} for n in UNSCALED]), 3, lambda price: {"a": price}),
        (pa.array([[n, 5] for n in UNSCALED]), 3, lambda price: [price, Decimal("0.05")]),
    ],
    ids=["in a struct", "in a list"],
)
def test_short_decimals_inside_of_others(
    values: pa.Array, column: int, of_row: Callable[[Decimal | None], Any]
) -> None:
    data = unstable(values, column)
    rows = [of_row(price) for price in PRICES]
    assert read(data)["x"].to_pylist() == rows
    assert fs.scan(data).to_arrow()["x"].to_pylist() == rows
    assert fs.scan(data).skip(133).head(9).to_arrow()["x"].to_pylist() == rows[133:142]


def test_other_columns_of_the_unstable_version(capfd: pytest.CaptureFixture[str]) -> None:
    """Long decimals are stored as ever; what has no decimals is read without a warning."""
    table = pa.table(
        {"row": range(ROWS), "s": map(str, UNSCALED), "d": pa.array(PRICES, pa.decimal128(30, 2))}
    )
    data = in_version(Crafted(orc_craft.written(table, STRIPE, row_index_stride=STRIDE)), UNSTABLE)
    assert read(data).equals(table)
    assert fs.scan(data).to_arrow().equals(table)
    assert fs.scan(data).skip(150).head(9).to_arrow().equals(table.slice(150, 9))
    capfd.readouterr()
    assert fs.scan(data).select("row", "s").to_arrow().num_rows == ROWS
    assert "UNSTABLE" not in capfd.readouterr().err


@pytest.mark.parametrize("version", [None, (0, 11), (0, 12), (1, 0), (0,)])
def test_files_of_any_other_version_or_none(version: Sequence[int] | None) -> None:
    table = pa.table({"row": range(ROWS), "x": pa.array(PRICES, pa.decimal128(9, 2))})
    file = Crafted(orc_craft.written(table, STRIPE, row_index_stride=STRIDE))
    data = in_version(file, version)
    assert read(data).equals(table)
    assert fs.scan(data).to_arrow().equals(table)
    with fs.trace() as trace:
        assert fs.scan(data).skip(195).head(9).to_arrow().equals(table.slice(195, 9))
    assert trace.fallbacks == []
