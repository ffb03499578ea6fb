"""Rows that the kernels decode are those of pyarrow, and those that Arrow decodes without them.

Every type, codec, pattern of nulls and pattern of rows, flat and nested, by two writers; what is
left to Arrow is listed, and is the same.
"""

import datetime as dt
import io
import zoneinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pytest

import fretsaw as fs
from fretsaw import col
from fretsaw.formats.kernels import load_kernels
from tests.support.decoding import assert_decoded, numbered
from tests.support.depth import in_depth, tiers
from tests.support.kernels import without_kernels
from tests.support.nested_data import nested_array
from tests.support.orc_files import (
    COMPRESSIONS,
    codec_of_pyorc,
    pyarrow_orc,
    pyorc_bytes,
    pyorc_table,
    writable,
)

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="there are no kernels to be tested")

ROWS, STRIDE = 700, 100
FLAT = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.date32(), pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
    *(pa.decimal128(5, 0), pa.decimal128(18, 4), pa.decimal128(19, 3), pa.decimal128(38, 10)),
)
NESTED = (
    pa.list_(pa.int64()),
    pa.list_(pa.string()),
    pa.map_(pa.string(), pa.float64()),
    pa.struct([("a", pa.int32()), ("b", pa.string())]),
    pa.list_(pa.list_(pa.bool_())),
    pa.list_(pa.struct([("x", pa.int16()), ("y", pa.list_(pa.timestamp("ns")))])),
    pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.decimal128(20, 2)))), ("n", pa.int8())]),
    pa.struct([("deep", pa.struct([("er", pa.struct([("est", pa.list_(pa.date32()))]))]))]),
)
SHARES = {"none": (0.0,), "some": (0.2,), "many": (0.9,), "all": (1.0,)}


def table_of(kinds: tuple[pa.DataType, ...], nulls: str, rng: np.random.Generator) -> pa.Table:
    fields = [pa.field(f"c{n}", kind) for n, kind in enumerate(kinds)]
    return numbered(fields, [nested_array(f.type, ROWS, rng, shares=SHARES[nulls]) for f in fields])


def written(table: pa.Table, writer: str, codec: str, **options: Any) -> bytes:
    if writer == "pyorc":
        sizes = {"compression_block_size": 1_024, "memory_block_size": 1_024}
        compression = codec_of_pyorc(codec)
        return pyorc_table(table, compression=compression, row_index_stride=STRIDE, **sizes)
    sink = io.BytesIO()
    options = {"compression": codec, "row_index_stride": STRIDE, **options}
    orc.write_table(writable(table), sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize(
    "nulls", ["some", *(pytest.param(n, marks=pytest.mark.slow) for n in ("none", "many", "all"))]
)
@tiers("codec", COMPRESSIONS, ("zlib",), ("zstd", "uncompressed"))
@pytest.mark.parametrize("writer", ["pyarrow", "pyorc"])
def test_flat_columns_of_all_types(writer: str, codec: str, nulls: str) -> None:
    rng = np.random.default_rng([COMPRESSIONS.index(codec), len(nulls)])
    # Of time zones, pyorc knows those of whole files.
    kinds = FLAT if writer == "pyarrow" else tuple(k for k in FLAT if k != FLAT[10])
    data = written(table_of(kinds, nulls, rng), writer, codec)
    assert_decoded(data, pyarrow_orc(data), rng)


@pytest.mark.parametrize("nulls", ["some", pytest.param("none", marks=pytest.mark.slow)])
@tiers("codec", COMPRESSIONS, ("zstd",), ("snappy", "uncompressed"))
@pytest.mark.parametrize("writer", ["pyarrow", "pyorc"])
def test_nested_columns(writer: str, codec: str, nulls: str) -> None:
    rng = np.random.default_rng([7, COMPRESSIONS.index(codec), len(nulls)])
    data = written(table_of(NESTED, nulls, rng), writer, codec)
    assert_decoded(data, pyarrow_orc(data), rng)


def runs(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Integers for which writers choose every kind of run."""
    place = np.arange(rows)
    outliers = rng.integers(0, 100, rows)
    outliers[rng.random(rows) < 0.02] = 2**45
    return {
        "sequence": place * 7 - 3_000,
        "falling": 10**12 - place * place,
        "repeated": place // 60,
        "constant": np.full(rows, -5),
        "random": rng.integers(-(2**63), 2**63 - 1, rows),
        "small": rng.integers(-3, 3, rows),
        "patched": outliers,
        "below zero and patched": outliers - 50,
        "differences": np.cumsum(rng.integers(0, 90, rows)),
        "mixed": np.where(place // 300 % 2, place, rng.integers(0, 2**20, rows)),
        "edges": np.where(place % 2, 2**63 - 1, -(2**63)),
    }


@pytest.mark.parametrize("seed", in_depth(range(40), fast=1, usual=3))
def test_integers_in_every_kind_of_run(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 2_600
    columns = {name: pa.array(values, pa.int64()) for name, values in runs(rng, rows).items()}
    gaps = pa.array(rng.random(rows) < 0.3)
    columns |= {f"{name}, nulls": pa.compute.if_else(gaps, None, c) for name, c in columns.items()}
    table = pa.table({"row": pa.array(range(rows), pa.int64()), **columns})
    stride = int(rng.choice([100, 700, 1_000]))
    data = written(table, "pyarrow", COMPRESSIONS[seed % 5], row_index_stride=stride)
    assert_decoded(data, pyarrow_orc(data), rng)


@pytest.mark.parametrize("distinct", [1, 7, 900])
def test_strings_of_a_dictionary(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    words = np.array([f"word {n}" * (n % 4) for n in range(distinct)])
    picked = words[rng.integers(distinct, size=ROWS)]
    table = numbered([pa.field("c", pa.string())], [pa.array(picked, mask=rng.random(ROWS) < 0.1)])
    data = written(table, "pyarrow", "zlib", dictionary_key_size_threshold=1.0)
    assert b"word" in data or distinct == 1 or len(data) < ROWS * 8
    assert_decoded(data, pyarrow_orc(data), rng)


def test_several_stripes_and_strides_that_end_in_the_middle() -> None:
    rng = np.random.default_rng(5)
    kinds = (pa.int64(), pa.string(), pa.list_(pa.string()), pa.bool_(), pa.decimal128(12, 3))
    fields = [pa.field(f"c{n}", kind) for n, kind in enumerate(kinds)]
    rows = 30_000
    table = numbered(fields, [nested_array(f.type, rows, rng, shares=(0.1,)) for f in fields])
    data = written(table, "pyarrow", "snappy", row_index_stride=1_017, stripe_size=100_000)
    assert orc.ORCFile(io.BytesIO(data)).nstripes > 2
    assert_decoded(data, pyarrow_orc(data), rng)


def test_scales_that_decimals_have_by_themselves() -> None:
    """pyorc writes each with the scale it comes with."""
    values = [Decimal("1.5"), Decimal("-2.25"), Decimal("7"), None, Decimal("0.125")] * 60
    schema = "struct<row:bigint,short:decimal(9,3),long:decimal(30,3)>"
    data = pyorc_bytes(schema, ((n, v, v) for n, v in enumerate(values)), row_index_stride=100)
    assert_decoded(data, pyarrow_orc(data), np.random.default_rng(1))


def test_what_is_left_to_arrow_is_the_same() -> None:
    """Unions, and times of zones other than UTC."""
    data = pyorc_bytes(
        "struct<row:bigint,u:uniontype<bigint,string>>",
        ((n, n if n % 3 else str(n)) for n in range(300)),
        row_index_stride=100,
    )
    expected = pyarrow_orc(data)
    with fs.trace() as seen:
        found = fs.scan(data).skip(120).head(9).to_arrow()
    assert found.to_pylist() == expected.slice(120, 9).to_pylist()
    assert seen.decoded_by["kernels"]
    assert seen.decoded_by["arrow"]
    times = [dt.datetime(1960 + n, 7, 1, n % 24, tzinfo=dt.UTC) for n in range(90)]
    data = pyorc_bytes(
        "struct<row:bigint,t:timestamp>",
        enumerate(times),
        timezone=zoneinfo.ZoneInfo("America/New_York"),
    )
    assert_decoded(data, pyarrow_orc(data), np.random.default_rng(2), by_arrow=True)


def test_a_filter_decodes_by_the_kernels_too() -> None:
    rng = np.random.default_rng(3)
    table = table_of((pa.int64(), pa.string()), "some", rng)
    data = written(table, "pyarrow", "zstd")
    condition = (col("c0") > 0) & col("c1").is_not_null()
    with fs.trace() as seen:
        found = fs.scan(data).filter(condition).to_arrow()
    expected = [r for r in table.to_pylist() if (r["c0"] or 0) > 0 and r["c1"] is not None]
    assert found.to_pylist() == expected
    assert not seen.decoded_by["arrow"]
    with without_kernels():
        assert fs.scan(data).filter(condition).to_arrow().equals(found)


def test_fewer_strides_are_decoded_than_there_are() -> None:
    table = table_of((pa.int64(),), "none", np.random.default_rng(4))
    data = written(table, "pyarrow", "zlib")
    with fs.trace() as seen:
        fs.scan(data).skip(250).head(100).to_arrow()
    assert dict(seen.decoded_by) == {"kernels": 4}
    assert seen.rows_decoded == 200
