"""Rows that the kernels decode are those of pyarrow, and those that Arrow decodes without them.

Every encoding, codec, type, pattern of nulls, pattern of rows and version of pages, by several
writers and by none; what is left to Arrow is listed, and is the same.
"""

import itertools
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.formats.kernels import load_kernels
from tests.support.craft import (
    BINARY,
    I32,
    LIST,
    META_DATA,
    PATH_IN_SCHEMA,
    SCHEMA,
    Crafted,
    Struct,
)
from tests.support.decoding import assert_decoded, numbered, parquet, pyarrow_read
from tests.support.depth import in_depth
from tests.support.encoders import Maker, hand_made
from tests.support.kernels import without_kernels
from tests.support.nested_data import (
    Kinds,
    assert_same_nested,
    nested_array,
    nested_table,
    parquet_bytes,
    rows_of,
)
from tests.support.page_craft import Pages, empty_page
from tests.support.pages import random_array
from tests.support.writers import need, spark_file

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="there are no kernels to be tested")

CODECS = ("snappy", "zstd", "none", "gzip", "lz4", "brotli")
VERSIONS = ("1.0", "2.0")
UNITS = ("s", "ms", "us", "ns")

INT32 = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms")),
)
INT64 = (
    *(pa.int64(), pa.uint64(), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Asia/Tokyo")),
    *map(pa.duration, UNITS),
)
DECIMALS = (
    *(pa.decimal128(1, 0), pa.decimal128(7, 2), pa.decimal128(9, 9)),
    *(pa.decimal128(10, 0), pa.decimal128(17, 4), pa.decimal128(18, 18)),
)
WIDE = (pa.decimal128(19, 3), pa.decimal128(38, 10), pa.decimal256(50, 9), pa.decimal256(76, 0))
FLOATS = (pa.float32(), pa.float64())
FIXED = (pa.float16(), pa.binary(1), pa.binary(5), pa.binary(16))
TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
EVERYTHING = (pa.bool_(), *INT32, *INT64, *DECIMALS, *WIDE, *FLOATS, *FIXED, *TEXTS)

NULLS = ("some", "required", "runs", "none", "all")

ENCODINGS: dict[str, tuple[Sequence[pa.DataType], dict[str, Any]]] = {
    "PLAIN": (EVERYTHING, {}),
    "dictionary": (EVERYTHING, {"use_dictionary": True}),
    "RLE": ((pa.bool_(),), {}),
    "DELTA_BINARY_PACKED": ((*INT32, *INT64, *DECIMALS), {"store_decimal_as_integer": True}),
    "DELTA_LENGTH_BYTE_ARRAY": (TEXTS, {}),
    "DELTA_BYTE_ARRAY": ((*TEXTS, *FIXED[1:], *DECIMALS, *WIDE), {}),
    "BYTE_STREAM_SPLIT": ((*FLOATS, *FIXED, *INT32, *INT64, *DECIMALS, *WIDE), {}),
}


def with_nulls(array: pa.Array, pattern: str, rng: np.random.Generator) -> pa.Array:
    """The array with nulls in its place here and there, in long runs, or everywhere."""
    rows = len(array)
    match pattern:
        case "all":
            gaps = np.ones(rows, bool)
        case "some":
            gaps = rng.random(rows) < 0.3
        case "runs":
            lengths = rng.integers(1, 150, size=rows)
            gaps = np.repeat(np.arange(rows) % 2 == 0, lengths)[:rows]
        case _:
            return array
    return array.take(pa.array(np.arange(rows), mask=gaps))


def columns_of(
    kinds: Sequence[pa.DataType], rows: int, turn: int, rng: np.random.Generator
) -> pa.Table:
    """Columns of all kinds, each with two patterns of nulls, others at every turn."""
    fields, arrays = [], []
    for number, (kind, step) in enumerate(itertools.product(kinds, (0, 1))):
        pattern = NULLS[(number + turn + step) % len(NULLS)]
        fields.append(pa.field(f"{number} {kind} {pattern}", kind, pattern != "required"))
        arrays.append(with_nulls(random_array(kind, rows, 0.0, rng), pattern, rng))
    return numbered(fields, arrays)


def layout(turn: int, codec: str, version: str) -> dict[str, Any]:
    """Options that change from turn to turn: indexes, checksums, small and large pages."""
    return {
        "compression": codec,
        "data_page_version": version,
        "write_page_index": turn % 3 != 0,
        "write_page_checksum": turn % 2 == 0,
        "row_group_size": (250, 400, 1_000)[turn % 3],
        "max_rows_per_page": (70, 1, 1_000, 33)[turn % 4],
        "write_batch_size": (10, 1, 64, 33)[turn % 4],
    }


def spelled(case: Sequence[Any]) -> str:
    return " ".join(map(str, case))


def combinations() -> list[Any]:
    """Encodings with codecs and versions; one of each encoding first, then one of each codec."""
    codecs = [(codec, version) for version in VERSIONS for codec in CODECS]
    return [
        (encoding, *codecs[(turn + number) % len(codecs)], turn + 3 * number)
        for turn in range(len(codecs))
        for number, encoding in enumerate(ENCODINGS)
    ]


@pytest.mark.parametrize(
    "case", in_depth(combinations(), len(ENCODINGS), 3 * len(ENCODINGS)), ids=spelled
)
def test_every_encoding_codec_type_and_pattern(case: tuple[str, str, str, int]) -> None:
    encoding, codec, version, turn = case
    rng = np.random.default_rng(turn)
    kinds, options = ENCODINGS[encoding]
    options = {"use_dictionary": False, **layout(turn, codec, version), **options}
    rows = 600 if options["max_rows_per_page"] > 1 else 40
    table = columns_of(kinds, rows, turn, rng)
    if encoding not in ("PLAIN", "dictionary"):
        names = table.column_names[1:]
        options["column_encoding"] = dict.fromkeys(names, encoding)
    data = parquet(table, **options)
    found = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    stored = "RLE_DICTIONARY" if encoding == "dictionary" else encoding
    assert stored in {e for i in range(1, found.num_columns) for e in found.column(i).encodings}
    assert_decoded(data, pyarrow_read(data), rng)


@pytest.mark.parametrize(
    "case", in_depth(itertools.product(range(40), VERSIONS), 4, 16), ids=spelled
)
def test_lists_maps_and_structs_of_any_shape(case: tuple[int, str]) -> None:
    seed, version = case
    options = layout(seed, CODECS[seed % len(CODECS)], version)
    del options["row_group_size"]
    table = nested_table(seed + 1_000, rows=150, depth=4)
    data = parquet_bytes(table, use_dictionary=seed % 2 == 0, **options)
    assert_decoded(data, pyarrow_read(data), np.random.default_rng(seed))


def nested_kinds() -> dict[str, pa.DataType]:
    """Lists of lists, of structs and of maps, required and optional at every level."""
    shapes: dict[str, pa.DataType] = {}
    for bits in itertools.product((True, False), repeat=3):
        outer, inner, leaf = bits
        for name, kind in (("int", pa.int32()), ("text", pa.string()), ("bool", pa.bool_())):
            item = pa.field("element", kind, leaf)
            lists = pa.list_(pa.field("element", pa.list_(item), inner))
            structs = pa.struct([pa.field("x", kind, leaf), pa.field("y", lists, outer)])
            label = f"{name} {bits}"
            shapes[f"lists {label}"] = lists
            shapes[f"structs {label}"] = pa.list_(pa.field("element", structs, inner))
            key = pa.field("key", pa.string(), nullable=False)
            shapes[f"maps {label}"] = pa.map_(key, pa.field("value", structs, inner))
            deep = pa.struct([pa.field("s", pa.struct([pa.field("t", kind, leaf)]), inner)])
            shapes[f"deep {label}"] = pa.struct([pa.field("r", deep, outer)])
    return shapes


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
@pytest.mark.parametrize("nulls", in_depth(((0.2, 0.7), (0.0,), (1.0,)), 0, 3), ids=str)
def test_nulls_and_empties_at_every_level(
    version: str, index: bool, nulls: Sequence[float]
) -> None:
    rng = np.random.default_rng(5)
    fields = [pa.field(name, kind) for name, kind in nested_kinds().items()]
    arrays = [nested_array(item.type, 110, rng, shares=nulls) for item in fields]
    data = parquet_bytes(
        numbered(fields, arrays), data_page_version=version, write_page_index=index
    )
    assert_decoded(data, pyarrow_read(data), rng, only=("all", "runs", "one", "every other"))


# Lists as they were written before there were three levels


def path_of(chunk: Struct, path: list[bytes]) -> None:
    chunk[META_DATA][1][PATH_IN_SCHEMA] = (LIST, (BINARY, path))


def two_levels(table: pa.Table, name: str) -> bytes:
    """Lists whose required items are what is repeated, below a group or without one."""
    file = Crafted(parquet(table, store_schema=False, max_rows_per_page=30, write_batch_size=5))
    elements = file.footer[SCHEMA][1][1]
    named = {element[4][1]: element for element in elements}
    elements.remove(named[b"list"])
    element = named[b"element"]
    element[3] = (I32, 2)  # repeated
    if table.schema.field(name).nullable:
        element[4] = (BINARY, b"array")
        below = [name.encode(), b"array"]
    else:
        elements.remove(named[name.encode()])
        element[4] = (BINARY, name.encode())
        below = [name.encode()]
    for group in file.footer[4][1][1]:
        for chunk in group[1][1][1][1:]:
            path = chunk[META_DATA][1][PATH_IN_SCHEMA][1][1]
            path_of(chunk, [*below, *path[3:]])
    return file.to_bytes()


@pytest.mark.parametrize("nullable", [True, False], ids=["list", "bare"])
@pytest.mark.parametrize(
    "kind",
    [pa.int32(), pa.string(), pa.struct([("a", pa.int64()), ("b", pa.string())])],
    ids=["int", "text", "struct"],
)
def test_lists_of_two_levels_and_of_one(kind: pa.DataType, nullable: bool) -> None:
    rng = np.random.default_rng(8)
    items = pa.field("element", kind, nullable=False)
    item = pa.field("x", pa.list_(items), nullable)
    table = numbered([item], [nested_array(item.type, 200, rng, nullable=nullable)])
    data = two_levels(table, "x")
    expected = pyarrow_read(data)
    assert expected["x"].to_pylist() == table["x"].to_pylist()
    assert_decoded(data, expected, rng)


# Pages that writers make seldom, or never


@pytest.mark.parametrize("seed", in_depth(range(300), 8, 40))
def test_pages_encoded_in_ways_that_no_writer_chooses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([1, 7, 100, 400]))
    near = rng.integers(0, 50, size=rows).cumsum().tolist()
    far = rng.integers(-(2**63), 2**63 - 1, size=rows, endpoint=True).tolist()
    words = [f"{'prefix' * (n % 3)}{n % 11}" for n in near]
    few = [word[-3:] for word in words]
    columns = {
        "near": pa.array(near, pa.int64()),
        "far": with_nulls(pa.array(far, pa.int64()), "some", rng),
        "words": with_nulls(pa.array(words), NULLS[seed % 5], rng),
        "few": with_nulls(pa.array(few), "some", rng),
        "one": pa.array(["same"] * rows),
        "flag": with_nulls(pa.array([n % 7 < 3 for n in near]), "runs", rng),
        "lists": nested_array(pa.list_(pa.int64()), rows, rng),
        "texts": nested_array(pa.list_(pa.string()), rows, rng),
        "flags": nested_array(pa.list_(pa.bool_()), rows, rng),
    }
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    fields[0] = fields[0].with_nullable(False)
    table = pa.table(list(columns.values()), schema=pa.schema(fields))
    maker = Maker(VERSIONS[seed % 2], CODECS[seed % len(CODECS)], rng, seed % 3 == 0)
    data = hand_made(table, ("few", "one", "texts"), maker)
    expected = pyarrow_read(data)
    assert_same_nested(expected.drop("row"), table)
    assert_decoded(data, expected, rng)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("codec", in_depth(CODECS, 1, 6))
def test_data_pages_without_a_value(codec: str, version: str) -> None:
    rng = np.random.default_rng(3)
    table = columns_of((*TEXTS[:1], pa.int64(), pa.bool_()), 300, 0, rng)
    items = pa.field("list", pa.list_(pa.int32()))
    table = table.append_column(items, nested_array(items.type, 300, rng))
    written = parquet_bytes(table, compression=codec, data_page_version=version)
    data = Pages(written).changed(empty_page)
    assert_decoded(data, pyarrow_read(written), rng)


@pytest.mark.parametrize("version", VERSIONS)
def test_dictionaries_that_are_given_up_in_the_middle_of_a_chunk(version: str) -> None:
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 3_000, size=6_000)
    items = nested_array(pa.list_(pa.string()), 6_000, rng)
    columns = {
        "n": pa.array(numbers, pa.int64()),
        "text": with_nulls(pa.array([f"word {n}" for n in numbers]), "some", rng),
        "price": pa.array([Decimal(int(n)) for n in numbers], pa.decimal128(30, 0)),
        "fixed": pa.array([b"%5d" % n for n in numbers], pa.binary(5)),
        "items": items,
    }
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    data = parquet(
        numbered(fields, list(columns.values())),
        dictionary_pagesize_limit=2_000,
        data_page_size=1_500,
        write_batch_size=50,
        data_page_version=version,
    )
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(1)
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(chunk.encodings)
    assert_decoded(data, pyarrow_read(data), rng)


@pytest.mark.parametrize("turn", range(4))
def test_old_names_of_dictionary_encodings(turn: int) -> None:
    rng = np.random.default_rng(turn)
    table = columns_of((pa.int32(), pa.string(), pa.float64(), pa.binary(5)), 300, turn, rng)
    data = parquet(table, version="1.0", **layout(turn, "snappy", "1.0"))
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(1)
    assert "PLAIN_DICTIONARY" in chunk.encodings
    assert_decoded(data, pyarrow_read(data), rng)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["PLAIN", "dictionary", "DELTA_BINARY_PACKED"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_page_of_a_million_values(version: str, encoding: str) -> None:
    rng = np.random.default_rng(4)
    rows = 1_000_000
    numbers = pa.array(rng.integers(0, 1_000, size=rows))
    fields = [pa.field("n", pa.int64()), pa.field("maybe", pa.int64())]
    arrays = [numbers, with_nulls(numbers, "some", rng)]
    names = {} if encoding == "dictionary" else {"use_dictionary": False}
    if encoding == "DELTA_BINARY_PACKED":
        names["column_encoding"] = dict.fromkeys(("n", "maybe"), encoding)  # type: ignore[assignment]
    data = parquet(
        numbered(fields, arrays),
        data_page_size=1 << 30,
        max_rows_per_page=rows,
        row_group_size=rows,
        data_page_version=version,
        **names,
    )
    assert_decoded(data, pyarrow_read(data), rng, only=("all", "scattered", "last", "filter"))


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_files_of_hardly_any_rows(rows: int) -> None:
    rng = np.random.default_rng(rows)
    fields = [pa.field("n", pa.int64()), pa.field("l", pa.list_(pa.string()))]
    arrays = [nested_array(item.type, rows, rng) for item in fields]
    data = parquet(numbered(fields, arrays))
    assert_decoded(data, pyarrow_read(data), rng)


# Types whose values are stored in ways that pyarrow does not write by itself


def test_decimals_stored_as_bytes_of_any_length() -> None:
    rng = np.random.default_rng(6)
    numbers = [int(rng.integers(-(2**62), 2**62)) >> int(rng.integers(62)) for _ in range(400)]
    big = [n * 10**18 for n in numbers]

    def signed(n: int) -> bytes:
        return n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True)

    for values, precision in ((numbers, 19), (big, 38), (big, 60)):
        stored = pa.array([None if n % 9 == 0 else signed(n) for n in values], pa.binary())
        written = parquet(
            numbered([pa.field("d", pa.binary())], [stored]),
            store_schema=False,
            max_rows_per_page=50,
            write_batch_size=10,
        )
        file = Crafted(written).set_type("d", converted_type=5, precision=precision, scale=4)
        data = file.to_bytes()
        expected = pyarrow_read(data)
        assert pa.types.is_decimal(expected.schema.field("d").type)
        assert_decoded(data, expected, rng)


@pytest.mark.parametrize("unit", UNITS[1:])
def test_int96(unit: str) -> None:
    rng = np.random.default_rng(7)
    moments = pa.array(rng.integers(-(2**61), 2**61, size=500), pa.timestamp("ns"))
    fields = [pa.field("a", moments.type), pa.field("b", moments.type)]
    arrays = [moments, with_nulls(moments, "some", rng)]
    data = parquet(
        numbered(fields, arrays),
        use_deprecated_int96_timestamps=True,
        max_rows_per_page=60,
        write_batch_size=10,
    )
    expected = pyarrow_read(data, coerce_int96_timestamp_unit=unit)
    assert_decoded(data, expected, rng, int96=unit)


# Other writers

FLAT = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()),
    *(pa.uint64(), pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.binary()),
    *(pa.decimal128(7, 2), pa.decimal128(17, 4), pa.decimal128(30, 5)),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns")),
)


@cache
def for_writers(seed: int, rows: int, branches: Sequence[str]) -> pa.Table:
    rng = np.random.default_rng(seed)
    kinds = Kinds(FLAT, tuple(branches))
    flat = columns_of(FLAT, rows, seed, rng)
    # Not every writer knows what is required.
    plain = pa.schema([item.with_nullable(True) for item in flat.schema])
    nested = nested_table(seed, rows, 3, 4, kinds).drop("row")
    free = flat.cast(plain)
    for item, column in zip(nested.schema, nested.columns, strict=True):
        free = free.append_column(item.with_nullable(True), column)
    return free


@pytest.mark.parametrize(
    "case",
    in_depth(itertools.product(range(3), CODECS, ("V1", "V2")), 1, 6),
    ids=spelled,
)
def test_files_by_duckdb(case: tuple[int, str, str], tmp_path: Path) -> None:
    seed, codec, version = case
    table = for_writers(seed, 3_000, ("struct", "list", "map"))
    path = tmp_path / "rows.parquet"
    codec = {"none": "uncompressed", "lz4": "lz4_raw"}.get(codec, codec)
    layout = f"FORMAT parquet, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version}, CODEC '{codec}'"
    with need("duckdb").connect() as connection:
        connection.register("source", table)
        connection.execute(f"COPY (FROM source) TO '{path}' ({layout})")
    data = path.read_bytes()
    assert_decoded(data, pyarrow_read(data), np.random.default_rng(seed))


@pytest.mark.parametrize("case", in_depth(itertools.product(range(4), CODECS), 1, 6), ids=spelled)
def test_files_by_polars(case: tuple[int, str], tmp_path: Path) -> None:
    seed, codec = case
    table = for_writers(seed, 1_000, ("struct", "list"))
    path = tmp_path / "rows.parquet"
    codec = "uncompressed" if codec == "none" else codec
    frame = need("polars").from_arrow(table)
    frame.write_parquet(path, compression=codec, row_group_size=600, data_page_size=500)
    data = path.read_bytes()
    assert_decoded(data, pyarrow_read(data), np.random.default_rng(seed))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize(("version", "stamps"), [("v1", "INT96"), ("v2", "TIMESTAMP_MICROS")])
def test_files_by_spark(spark: Any, tmp_path: Path, version: str, stamps: str, legacy: str) -> None:
    kinds = Kinds(tuple(kind for kind in FLAT if str(kind)[0] != "u" and kind != FLAT[-1]))
    rng = np.random.default_rng(9)
    table = columns_of(kinds.leaves, 500, 1, rng)
    item = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))]))
    table = table.append_column("items", nested_array(item, 500, rng))
    path = spark_file(
        spark.createDataFrame(table).coalesce(1), tmp_path / "rows", (version, stamps, legacy)
    )
    data = path.read_bytes()
    options = {"coerce_int96_timestamp_unit": "us"}
    assert_decoded(data, pyarrow_read(data, **options), rng, int96="us")


# What is left to Arrow

BY_ARROW = {
    "dictionaries of text": pa.dictionary(pa.int32(), pa.string()),
    "views of text": pa.string_view(),
    "views of bytes": pa.binary_view(),
    "decimals of 32 bits": pa.decimal32(7, 2),
    "decimals of 64 bits": pa.decimal64(15, 2),
    "UUIDs": pa.uuid(),
    "JSON": pa.json_(),
    "booleans of 8 bits": pa.bool8(),
    "nothing but nulls": pa.null(),
}


@pytest.mark.parametrize("name", BY_ARROW)
def test_what_is_left_to_arrow_is_the_same(name: str) -> None:
    rng = np.random.default_rng(1)
    array = random_array(BY_ARROW[name], 300, 0.2, rng)
    data = parquet(
        numbered([pa.field("x", array.type)], [array]), max_rows_per_page=40, write_batch_size=10
    )
    rows = sorted(rng.choice(300, size=70, replace=False).tolist())
    with fs.trace() as seen:
        found = fs.scan(data).select_rows(rows).to_arrow()
    assert seen.decoded_by["arrow"]
    assert seen.decoded_by["kernels"], "the column beside it is theirs"
    assert_same_nested(found, rows_of(pyarrow_read(data), rows))
    with without_kernels():
        assert_same_nested(fs.scan(data).select_rows(rows).to_arrow(), found)
