"""Schemas that no current writer makes: read where they have a meaning, else a format error.

A field that cannot be read is an error for whoever selects it, not for others.
"""

import datetime as dt
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import (
    BINARY,
    I32,
    LIST,
    META_DATA,
    PATH_IN_SCHEMA,
    SCHEMA,
    STRUCT,
    Crafted,
    Struct,
)
from tests.support.kernels import each_decoder

pytestmark = each_decoder("slow")

# Fields of SchemaElement
TYPE, REPETITION, NAME, CHILDREN, CONVERTED, LOGICAL = 1, 3, 4, 5, 6, 10
OPTIONAL, REPEATED = 1, 2
STRING, MAP, MAP_KEY_VALUE, ENUM = 0, 1, 2, 4  # of ConvertedType

MAPS = [[("k", 1)], None, [("x", 2), ("y", None)], []]


def written(table: pa.Table) -> Crafted:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False)
    return Crafted(sink.getvalue())


def elements(file: Crafted) -> dict[str, Struct]:
    return {e[NAME][1].decode(): e for e in file.footer[SCHEMA][1][1]}


def with_map() -> Crafted:
    maps = pa.array(MAPS, pa.map_(pa.string(), pa.int64()))
    return written(pa.table({"a": [1, 2, 3, 4], "m": maps, "b": ["x", "y", "z", "w"]}))


def with_optional_keys() -> Crafted:
    """A map whose keys may be null as far as the schema knows."""
    pairs = [None if m is None else [{"key": k, "value": v} for k, v in m] for m in MAPS]
    entry = pa.struct([("key", pa.string()), ("value", pa.int64())])
    lists = pa.array(pairs, pa.list_(pa.field("element", entry, nullable=False)))
    file = written(pa.table({"a": [1, 2, 3, 4], "m": lists, "b": ["x", "y", "z", "w"]}))
    schema = file.footer[SCHEMA][1][1]
    named = elements(file)
    schema.remove(named["element"])
    named["list"][CHILDREN] = (I32, 2)
    annotate(named["m"], converted=MAP)
    for leaf in ("key", "value"):
        for chunk in file.chunks(f"m.list.element.{leaf}"):
            path = [b"m", b"list", leaf.encode()]
            chunk[META_DATA][1][PATH_IN_SCHEMA] = (LIST, (BINARY, path))
    return file


def annotate(element: Struct, converted: int | None = None, *logical: int) -> None:
    for field in (CONVERTED, LOGICAL):
        element.pop(field, None)
    if converted is not None:
        element[CONVERTED] = (I32, converted)
    if logical:
        element[LOGICAL] = (STRUCT, {variant: (STRUCT, {}) for variant in logical})


def key_value_outside(file: Crafted) -> None:
    annotate(elements(file)["m"], MAP_KEY_VALUE)


def key_value_inside(file: Crafted) -> None:
    annotate(elements(file)["m"], MAP)
    annotate(elements(file)["key_value"], MAP_KEY_VALUE)


def key_value_everywhere(file: Crafted) -> None:
    key_value_inside(file)
    annotate(elements(file)["m"], MAP_KEY_VALUE)


def other_names(file: Crafted) -> None:
    for old, new in (("key_value", b"map"), ("key", b"k"), ("value", b"v")):
        elements(file)[old][NAME] = (BINARY, new)
    for column, new in (("key", b"k"), ("value", b"v")):
        for chunk in file.chunks(f"m.key_value.{column}"):
            chunk[META_DATA][1][PATH_IN_SCHEMA] = (LIST, (BINARY, [b"m", b"map", new]))


@pytest.mark.parametrize(
    "change", [key_value_outside, key_value_inside, key_value_everywhere, other_names]
)
def test_maps_of_old_spellings_are_maps(change: Callable[[Crafted], None]) -> None:
    file = with_map()
    change(file)
    check_map(file.to_bytes())


def test_keys_of_a_map_may_be_optional_in_the_schema() -> None:
    """pyarrow refuses the whole file."""
    data = with_optional_keys().to_bytes()
    with pytest.raises(pa.ArrowInvalid, match="required"):
        pq.read_table(io.BytesIO(data))
    check_map(data)


def check_map(data: bytes) -> None:
    scan = fs.scan(data)
    table = scan.to_arrow()
    table.validate(full=True)
    assert pa.types.is_map(table.schema.field("m").type)
    assert table["m"].to_pylist() == MAPS
    assert [row["m"] for row in scan] == MAPS
    assert scan.skip(2).head(1).to_arrow()["m"].to_pylist() == MAPS[2:3]
    assert scan.filter(col("m.value").any() == 2).to_arrow()["m"].to_pylist() == MAPS[2:3]
    assert scan.filter(col("m.key").any() == "k").count() == 1


def test_null_keys_are_a_format_error() -> None:
    pairs = [[{"key": None, "value": 1}], [{"key": "k", "value": 2}]]
    entry = pa.struct([("key", pa.string()), ("value", pa.int64())])
    lists = pa.array(pairs, pa.list_(pa.field("element", entry, nullable=False)))
    file = written(pa.table({"m": lists}))
    named = elements(file)
    file.footer[SCHEMA][1][1].remove(named["element"])
    named["list"][CHILDREN] = (I32, 2)
    annotate(named["m"], converted=MAP)
    for leaf in ("key", "value"):
        for chunk in file.chunks(f"m.list.element.{leaf}"):
            path = [b"m", b"list", leaf.encode()]
            chunk[META_DATA][1][PATH_IN_SCHEMA] = (LIST, (BINARY, path))
    with pytest.raises(fs.FileFormatError, match="null"):
        fs.scan(file.to_bytes()).to_arrow()


def test_what_only_claims_to_be_a_map_is_a_struct() -> None:
    file = with_map()
    annotate(elements(file)["m"])
    annotate(elements(file)["key_value"], MAP_KEY_VALUE)
    data = file.to_bytes()
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(data))
    entries = [None if m is None else [{"key": k, "value": v} for k, v in m] for m in MAPS]
    expected = [None if m is None else {"key_value": m} for m in entries]
    assert fs.scan(data).to_arrow()["m"].to_pylist() == expected


def unknown_type(file: Crafted) -> None:
    elements(file)["a"][TYPE] = (I32, 99)


def two_logical_types(file: Crafted) -> None:
    annotate(elements(file)["a"], None, 6, 14)


@pytest.mark.parametrize("change", [unknown_type, two_logical_types])
def test_a_field_that_cannot_be_read_leaves_the_others_alone(
    change: Callable[[Crafted], None],
) -> None:
    file = with_map()
    change(file)
    scan = fs.scan(file.to_bytes())
    assert scan.count() == 4
    assert scan.filter(col("b") == "y").count() == 1
    assert scan.select("b").to_arrow()["b"].to_pylist() == ["x", "y", "z", "w"]
    assert scan.select("m").tail(1).to_arrow()["m"].to_pylist() == [[]]
    with pytest.raises(fs.FileFormatError, match="'a'"):
        scan.select("a").to_arrow()
    for columns in (("a", "b"), ("a", "b", "m")):
        with pytest.raises(fs.FileFormatError, match="'a'"):
            scan.select(*columns).to_arrow()
    with pytest.raises(fs.FileFormatError, match="'a'"):
        scan.to_arrow()


def test_a_chunk_under_the_path_of_another_column_is_a_format_error() -> None:
    file = written(pa.table({"a": [1, 2], "b": [3, 4], "c": [5, 6]}))
    (first,), (second,) = file.chunks("a"), file.chunks("b")
    paths = [chunk[META_DATA][1][PATH_IN_SCHEMA] for chunk in (first, second)]
    first[META_DATA][1][PATH_IN_SCHEMA], second[META_DATA][1][PATH_IN_SCHEMA] = paths[::-1]
    data = file.to_bytes()
    for column in ("a", "b"):
        with pytest.raises(fs.FileFormatError, match=f"'{column}'.*names itself"):
            fs.scan(data).select(column).to_arrow()
    assert fs.scan(data).select("c").to_arrow()["c"].to_pylist() == [5, 6]


@pytest.mark.parametrize(("converted", "logical"), [(ENUM, ()), (None, (4,)), (ENUM, (4,))])
def test_enums_are_text_everywhere(converted: int | None, logical: tuple[int, ...]) -> None:
    words, lists = ["a", "b", None, "é"], [["a"], [], None, ["b", None]]
    file = written(pa.table({"e": words, "l": lists}))
    for element in elements(file).values():
        if element.get(CONVERTED) == (I32, STRING):
            annotate(element, converted, *logical)
    data = file.to_bytes()
    scan = fs.scan(data)
    assert scan.schema.types == [pa.string(), pa.list_(pa.string())]
    assert [row.as_dict() for row in scan] == [
        {"e": e, "l": items} for e, items in zip(words, lists, strict=True)
    ]
    assert [text for batch in scan.column("e") for text in batch.strings()] == words
    assert [text for batch in scan.column("l") for text in batch.strings()] == ["a", "b", None]
    for predicate in (col("e") == "b", "e = 'b'", col("e").is_in(["b"]), col("l").any() == "a"):
        assert scan.filter(predicate).count() == 1
    assert scan.filter(col("e").starts_with("é")).count() == 1
    with fs.open(io.BytesIO(data)) as opened:
        node = opened.schema.find("e")
    assert node is not None
    assert node.logical_type == "ENUM"


def test_enums_are_strings_in_spark() -> None:
    spark = pytest.importorskip("pyspark.sql.types")
    from fretsaw.spark.types import struct_type

    file = written(pa.table({"e": ["a"]}))
    annotate(elements(file)["e"], ENUM)
    (field,) = struct_type(fs.scan(file.to_bytes()).schema)
    assert field.dataType == spark.StringType()


GEOGRAPHY, GEOMETRY = 18, 17


@pytest.mark.parametrize(
    ("variant", "details", "expected"),
    [
        (GEOMETRY, {}, "GEOMETRY(OGC:CRS84)"),
        (GEOMETRY, {1: (BINARY, b"EPSG:4326")}, "GEOMETRY(EPSG:4326)"),
        (GEOGRAPHY, {}, "GEOGRAPHY(OGC:CRS84, SPHERICAL)"),
        (GEOGRAPHY, {2: (I32, 4)}, "GEOGRAPHY(OGC:CRS84, KARNEY)"),
        (GEOGRAPHY, {1: (BINARY, b"srid:7"), 2: (I32, 1)}, "GEOGRAPHY(srid:7, VINCENTY)"),
    ],
)
def test_shapes_on_the_earth_tell_their_coordinates(
    variant: int, details: Struct, expected: str
) -> None:
    file = written(pa.table({"g": pa.array([b"\x01", b"\x02"])}))
    elements(file)["g"][LOGICAL] = (STRUCT, {variant: (STRUCT, details)})
    with fs.open(io.BytesIO(file.to_bytes())) as opened:
        node = opened.schema.find("g")
    assert node is not None
    assert node.logical_type == expected


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_int96_takes_the_literals_that_its_rows_show(unit: Any) -> None:
    moments = [dt.datetime(2020, 1, 1), dt.datetime(1999, 3, 4, 5, 6, 7, 123_000), None]
    sink = io.BytesIO()
    table = pa.table({"x": pa.array(moments, pa.timestamp("ns"))})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    scan = fs.scan(sink.getvalue(), int96=unit)
    for row in scan.rows():
        if row["x"] is None:
            continue
        for literal in (row["x"], np.datetime64(row["x"]), row["x"].replace(tzinfo=dt.UTC)):
            found = scan.filter(col("x") == literal).to_arrow()["x"].to_pylist()
            assert len(found) == 1
            assert found[0].replace(tzinfo=None) == row["x"]
    assert scan.filter(col("x").is_in(moments[:2])).count() == 2
    assert scan.filter(col("x") > dt.datetime(2000, 1, 1)).count() == 1
    assert scan.filter(col("x") == dt.date(2020, 1, 1)).count() == 1
    east = dt.timezone(dt.timedelta(hours=2))
    assert scan.filter(col("x") == dt.datetime(2020, 1, 1, 2, tzinfo=east)).count() == 1
