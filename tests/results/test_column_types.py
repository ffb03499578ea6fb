"""Column readers: the values of each type, and columns by their names."""

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from tests.support.column_tables import (
    ROWS,
    Lookup,
    assert_column,
    lookup_error,
    orders,
    plain,
    required,
    rows_at,
    source,
    whole,
    without_nulls,
)
from tests.support.formats import pyarrow_read
from tests.support.kernels import each_decoder
from tests.support.layers import (
    Leaf,
    assert_arrow,
    assert_rebuilt,
    check_rules,
    dtype_of,
    leaf_array,
    leaves_of,
    pieces,
    present,
    storage_of,
)
from tests.support.nested_data import nested_array, parquet_bytes
from tests.support.pages import comparable, random_array

pytestmark = each_decoder()


def leaf_at(table: pa.Table, *path: str) -> Leaf:
    [found] = [leaf for leaf in leaves_of(table.schema) if leaf.path == path]
    return found


# Types


VALUES: tuple[tuple[pa.DataType, str], ...] = (
    *((pa.bool_(), "bool"), (pa.int8(), "int8"), (pa.int16(), "int16"), (pa.int32(), "int32")),
    *((pa.int64(), "int64"), (pa.uint8(), "uint8"), (pa.uint16(), "uint16")),
    *((pa.uint32(), "uint32"), (pa.uint64(), "uint64"), (pa.float16(), "float16")),
    *((pa.float32(), "float32"), (pa.float64(), "float64"), (pa.date32(), "datetime64[D]")),
    *((pa.timestamp(unit), f"datetime64[{unit}]") for unit in ("ms", "us", "ns")),
    *((pa.timestamp(unit, "UTC"), f"datetime64[{unit}]") for unit in ("ms", "us", "ns")),
    (pa.timestamp("us", "Asia/Tokyo"), "datetime64[us]"),
    *((pa.time32("ms"), "timedelta64[ms]"), (pa.time64("us"), "timedelta64[us]")),
    (pa.time64("ns"), "timedelta64[ns]"),
    *((pa.duration(unit), f"timedelta64[{unit}]") for unit in ("s", "ms", "us", "ns")),
    *((pa.decimal32(5, 2), "int64"), (pa.decimal64(12, 2), "int64")),
    *((pa.decimal128(1, 0), "int64"), (pa.decimal128(18, 3), "int64")),
    (pa.decimal256(12, 3), "int64"),
    *((pa.bool8(), "int8"), (pa.opaque(pa.int32(), "kind", "vendor"), "int32")),
    (pa.null(), "uint8"),
)
BYTES: tuple[pa.DataType, ...] = (
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(5)),
    *(pa.uuid(), pa.json_(), pa.opaque(pa.string(), "k", "v")),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.binary())),
    *(pa.decimal128(19, 2), pa.decimal128(38, 5), pa.decimal256(50, 9)),
)
TYPES = (*(kind for kind, _ in VALUES), *BYTES)


@cache
def typed_file(kind: pa.DataType, **options: Any) -> tuple[bytes, pa.Table]:
    """A type by itself, in a struct, in a list and required."""
    rng = np.random.default_rng(6)
    nothing = random_array(kind, 0, 0.0, rng)
    columns = {
        "x": random_array(kind, ROWS, 0.3, rng),
        "s": nested_array(pa.struct({"x": kind}), ROWS, rng),
        "l": nested_array(pa.list_(kind), ROWS, rng),
        "empty": pa.ListArray.from_arrays(pa.array([None] + [0] * ROWS, pa.int32()), nothing),
    }
    table = pa.table(columns)
    if not pa.types.is_null(kind):
        full = required("full", kind)
        table = table.append_column(full, random_array(kind, ROWS, 0.0, rng))
    # pyarrow does not read lists of dictionaries out of several row groups.
    data = parquet_bytes(table, row_group_size=ROWS, **options)
    return data, pyarrow_read(data)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_leaves_of_each_type(kind: pa.DataType) -> None:
    data, table = typed_file(kind)
    assert table.schema.field("x").type == kind
    batches = list(fs.scan(data).columns(50))
    for leaf in leaves_of(table.schema):
        parts = [batch[leaf.path] for batch in batches]
        for part in parts:
            check_rules(part, leaf)
        if leaf.path[0] in ("x", "full"):
            found = pa.chunked_array([plain(leaf_array(part, kind)) for part in parts])
            assert comparable(found).equals(without_nulls(table.column(leaf.path[0])))
            whole = pa.chunked_array([part.arrow for part in parts])
            assert whole.type == kind
            assert comparable(whole).equals(comparable(table.column(leaf.path[0])))
        else:
            expected = table.column(leaf.path[0]).to_pylist()
            assert_rebuilt(parts, leaf, expected)
            assert_arrow(parts, leaf, expected)


@pytest.mark.parametrize(("kind", "dtype"), VALUES, ids=str)
def test_dtype_of_values(kind: pa.DataType, dtype: str) -> None:
    data, table = typed_file(kind)
    for leaf in leaves_of(table.schema):
        for batch in fs.scan(data).column(leaf.path, 50):
            assert isinstance(batch.values, np.ndarray)
            assert batch.values.dtype == np.dtype(dtype) == dtype_of(kind)
            assert batch.values.shape == (batch.value_count,)


@pytest.mark.parametrize("kind", BYTES, ids=str)
def test_values_of_bytes_are_a_type_error(kind: pa.DataType) -> None:
    data, _ = typed_file(kind)
    for name in ("x", "s.x", "l.element", "empty.element"):
        for batch in fs.scan(data).column(name, 50):
            with pytest.raises(TypeError, match="binary_values"):
                _ = batch.values


@pytest.mark.parametrize(
    "kind", [kind for kind, _ in VALUES if not pa.types.is_decimal(kind)], ids=str
)
def test_bytes_of_what_is_not_binary_are_a_type_error(kind: pa.DataType) -> None:
    data, _ = typed_file(kind)
    for name in ("x", "l"):
        batch = next(fs.scan(data).column(name))
        uses: tuple[Callable[[fs.ColumnBatch], Any], ...] = (
            lambda batch: batch.binary_values,
            lambda batch: batch.binary_offsets,
            lambda batch: batch.strings(),
            lambda batch: batch.binaries(),
        )
        for use in uses:
            with pytest.raises(TypeError):
                use(batch)


DECIMALS = [kind for kind in TYPES if pa.types.is_decimal(kind)]


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
@pytest.mark.parametrize("as_integer", [False, True])
def test_bytes_of_decimals_are_those_of_arrow(kind: pa.DataType, as_integer: bool) -> None:
    data, table = typed_file(kind, store_decimal_as_integer=as_integer)
    width = 32 if pa.types.is_decimal256(kind) else 16
    found: list[int] = []
    for batch in fs.scan(data).column("x", 50):
        if kind.bit_width >= 128:
            assert np.array_equal(batch.binary_offsets, width * np.arange(batch.value_count + 1))
            assert len(batch.binary_values) == width * batch.value_count
        here = present(batch.leaf_validity, batch.value_count)
        found += [int.from_bytes(x, "little", signed=True) for x in pieces(batch, here)]
    assert found == [whole(value) for value in table.column("x").to_pylist() if value is not None]


@pytest.mark.parametrize("kind", [pa.binary(5), pa.uuid()], ids=str)
def test_offsets_of_fixed_size_bytes_are_uniform(kind: pa.DataType) -> None:
    data, _ = typed_file(kind)
    width = storage_of(kind).byte_width
    for name in ("x", "s.x", "l.element", "full"):
        for batch in fs.scan(data).column(name, 50):
            assert batch.binary_offsets.tolist() == [
                width * at for at in range(batch.value_count + 1)
            ]
            assert batch.binary_values.shape == (width * batch.value_count,)


@pytest.mark.parametrize("kind", [kind for kind in BYTES if kind not in DECIMALS], ids=str)
def test_slices_of_binary_values_are_the_bytes(kind: pa.DataType) -> None:
    data, table = typed_file(kind)
    expected = as_bytes(table.column("x"))
    found: list[bytes | None] = []
    for batch in fs.scan(data).column("x", 50):
        values, offsets = batch.binary_values, batch.binary_offsets
        assert values.dtype == np.uint8
        assert (offsets[0], offsets[-1], len(offsets)) == (0, len(values), batch.value_count + 1)
        here = present(batch.leaf_validity, batch.value_count)
        sliced = [
            values[offsets[at] : offsets[at + 1]].tobytes() if here[at] else None
            for at in range(batch.value_count)
        ]
        assert batch.binaries() == sliced
        found += sliced
    assert found == expected


def as_bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    values = [value for chunk in column.chunks for value in plain(chunk).to_pylist()]
    return [value.encode() if isinstance(value, str) else value for value in values]


TEXTS = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.json_()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
]


@pytest.mark.parametrize("kind", [*TEXTS, pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_strings_are_python_strings_and_none(kind: pa.DataType) -> None:
    values = ["é", None, "", "three"]
    array = pa.array(values, pa.string()).cast(storage_of(kind))
    if isinstance(kind, pa.BaseExtensionType):
        array = pa.ExtensionArray.from_storage(kind, array)
    [batch] = source(pa.table({"x": array})).column("x")
    assert batch.strings() == values
    assert batch.binaries() == ["é".encode(), None, b"", b"three"]
    assert batch.arrow.type == kind
    with pytest.raises(TypeError, match="binary_values"):
        _ = batch.values


def test_strings_below_lists_and_structs() -> None:
    values = [[{"x": "a"}, None], None, [], [{"x": None}, {"x": "bc"}]]
    kind = pa.list_(pa.struct({"x": pa.string()}))
    [batch] = source(pa.table({"l": pa.array(values, kind)})).column("l")
    assert batch.strings() == ["a", None, None, "bc"]
    assert batch.binaries() == [b"a", None, None, b"bc"]


def first_value(value: Any, kind: pa.DataType, **options: Any) -> Any:
    [batch] = source(pa.table({"x": pa.array([value], kind)}), **options).column("x")
    return batch.values[0]


def test_timestamps_with_a_zone_are_instants_in_utc() -> None:
    tokyo = dt.timezone(dt.timedelta(hours=9))
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123, tokyo)
    found = first_value(moment, pa.timestamp("us", "Asia/Tokyo"))
    assert found == np.datetime64("2024-05-05T22:08:09.000123")
    local = first_value(moment.replace(tzinfo=None), pa.timestamp("us"))
    assert local == np.datetime64("2024-05-06T07:08:09.000123")


def test_dates_and_times_of_day() -> None:
    assert first_value(dt.date(1969, 12, 31), pa.date32()) == np.datetime64("1969-12-31")
    since = (3 * 3600 + 4 * 60 + 5) * 1_000_000 + 6
    assert first_value(dt.time(3, 4, 5, 6), pa.time64("us")) == np.timedelta64(since, "us")
    assert first_value(dt.timedelta(days=-1), pa.duration("s")) == np.timedelta64(-86_400, "s")


@pytest.mark.parametrize("integer", [False, True])
def test_decimals_of_few_digits_are_unscaled(integer: bool) -> None:
    for text, kind in (("-12.34", pa.decimal128(9, 2)), ("9" * 18, pa.decimal128(18, 0))):
        found = first_value(Decimal(text), kind, store_decimal_as_integer=integer)
        assert found == int(text.replace(".", ""))


def test_int96_is_a_timestamp_in_the_unit_asked_for() -> None:
    stamps = pa.array([0, None, 1_700_000_000_123_456_789, -1], pa.timestamp("ns"))
    nested = pa.array([[stamps[0]], [], None, [stamps[2], stamps[3]]], pa.list_(stamps.type))
    table = pa.table({"x": stamps, "l": nested})
    data = parquet_bytes(table, use_deprecated_int96_timestamps=True)
    [batch] = fs.scan(data).columns()
    whole = np.array([0, 1_700_000_000_123_456_789, -1], "datetime64[ns]")
    assert batch["x"].values.dtype == np.dtype("datetime64[ns]")
    assert np.array_equal(batch["x"].values[[0, 2, 3]], whole)
    assert np.array_equal(batch["l"].values, whole)
    [batch] = fs.scan(data, int96="us").columns()
    assert batch["x"].values.dtype == np.dtype("datetime64[us]")
    assert batch["x"].values[2] == np.datetime64(1_700_000_000_123_456, "us")


def test_uuids_are_sixteen_bytes_whatever_arrow_calls_them() -> None:
    ids = [UUID(int=7), None, UUID(int=2**127 + 5)]
    storage = pa.array([x.bytes if x else None for x in ids], pa.binary(16))
    table = pa.table({"x": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    for store_schema in (True, False):
        [batch] = source(table, store_schema=store_schema).column("x")
        assert batch.binaries() == [x.bytes if x else None for x in ids]
        assert batch.binary_offsets.tolist() == [0, 16, 32, 48]
        with pytest.raises(TypeError, match="binary_values"):
            _ = batch.values


def test_arrow_of_one_part_of_a_map_is_a_list_of_it() -> None:
    values = [[("a", 1), ("b", None)], None, []]
    table = pa.table({"m": pa.array(values, pa.map_(pa.string(), pa.int64()))})
    [batch] = source(table).columns()
    assert batch["m.key"].arrow.to_pylist() == [["a", "b"], None, []]
    assert batch["m.value"].arrow.to_pylist() == [[1, None], None, []]
    for part, kind in ((batch["m.key"], pa.string()), (batch["m.value"], pa.int64())):
        assert pa.types.is_list(part.arrow.type)
        assert part.arrow.type.value_type == kind


def test_arrow_of_one_field_of_a_struct_is_a_struct_of_it() -> None:
    table = pa.table({"s": [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]})
    [batch] = source(table).column("s.x")
    assert batch.arrow.equals(pa.array([{"x": 1}, None, {"x": None}], pa.struct({"x": pa.int64()})))


# Lookups


# Fields whose leaves have dotted names of their own.
PLAIN = ["id", "age", "a", "tags", "items", "attrs", "pairs", "deep"]
LOOKUPS: tuple[tuple[Lookup, tuple[str, ...]], ...] = (
    ("id", ("id",)),
    (("age",), ("age",)),
    ("a.b", ("a", "b")),
    (("a", "c"), ("a", "c")),
    ("a.d", ("a", "d", "e")),
    (("a", "d"), ("a", "d", "e")),
    ("a.d.e", ("a", "d", "e")),
    ("tags", ("tags", "element")),
    ("tags.element", ("tags", "element")),
    ("tags.list.element", ("tags", "element")),
    ("items.price", ("items", "element", "price")),
    ("items.element.name", ("items", "element", "name")),
    ("items.list.element.price", ("items", "element", "price")),
    (("items", "element", "name"), ("items", "element", "name")),
    ("attrs.key", ("attrs", "key")),
    ("attrs.key_value.key", ("attrs", "key")),
    ("attrs.value.x", ("attrs", "value", "x")),
    ("attrs.y", ("attrs", "value", "y")),
    ("attrs.key_value.value.y", ("attrs", "value", "y")),
    ("pairs.key.x", ("pairs", "key", "x")),
    ("pairs.value", ("pairs", "value", "x")),
    ("deep.x", ("deep", "element", "element", "x")),
    ("deep.element.y", ("deep", "element", "element", "y")),
    ("deep.list.element.list.element.x", ("deep", "element", "element", "x")),
    ("p.q", ("p.q",)),
    (("p", "q"), ("p", "q")),
    ("p.r", ("p", "r")),
    ("s.t.u", ("s", "t.u")),
    (("s", "t", "u"), ("s", "t", "u")),
    (("s", "t"), ("s", "t", "u")),
    ("dot.ted.in.ner", ("dot.ted", "in.ner")),
    (("dot.ted", "plain"), ("dot.ted", "plain")),
)


@pytest.mark.parametrize(("lookup", "path"), LOOKUPS, ids=str)
def test_leaves_by_path(lookup: Lookup, path: tuple[str, ...]) -> None:
    data, table = orders()
    leaf = leaf_at(table, *path)
    expected = rows_at(table, leaf, range(ROWS))
    assert_column(fs.scan(data), lookup, leaf, expected, 50)
    parts = [batch[lookup] for batch in fs.scan(data).columns(50)]
    assert all(part.schema.path == path for part in parts)
    assert_rebuilt(parts, leaf, expected)


def test_leaves_by_their_place_in_the_result() -> None:
    data, table = orders()
    [batch] = fs.scan(data).columns(ROWS)
    leaves = leaves_of(table.schema)
    assert len(leaves) == 22
    for at, leaf in enumerate(leaves):
        assert batch[at].schema.path == leaf.path
        assert next(fs.scan(data).column(at)).schema.path == leaf.path


def test_places_count_what_is_selected() -> None:
    data, _ = orders()
    scan = fs.scan(data).select("deep.y", "age", "attrs.x")
    paths = [
        ("deep", "element", "element", "y"),
        ("age",),
        ("attrs", "key"),
        ("attrs", "value", "x"),
    ]
    batch = next(scan.columns())
    assert [batch[at].schema.path for at in range(4)] == paths
    assert [next(scan.column(at)).schema.path for at in range(4)] == paths
    assert list(batch) == [".".join(path) for path in paths]
    with pytest.raises(IndexError):
        next(scan.column(4))


def test_column_batches_are_a_mapping() -> None:
    data, table = orders()
    names = [leaf.name for leaf in leaves_of(table.select(PLAIN).schema)]
    batch = next(fs.scan(data).select(*PLAIN).columns())
    assert isinstance(batch, fs.ColumnBatches)
    assert isinstance(batch, Mapping)
    assert list(batch) == list(batch.keys()) == names
    assert "items.element.price" in names
    assert len(batch) == len(names) == len(list(batch.values()))
    assert [
        name for name, part in batch.items() if part.schema.path == tuple(str(name).split("."))
    ] == names
    assert all(isinstance(part, fs.ColumnBatch) for part in dict(batch).values())
    assert all(key in batch for key in ("id", "items.price", ("a", "b"), "tags"))
    assert not any(key in batch for key in ("zip", "items.zip", ("a.b",)))
    assert batch.get("zip") is None
    found = batch.get("age")
    assert found is not None
    assert found.record_count == batch.record_count == ROWS


def test_a_struct_with_one_selected_leaf_is_that_leaf() -> None:
    data, _ = orders()
    scan = fs.scan(data).select("a.c", "items.name")
    batch = next(scan.columns())
    assert batch["a"].schema.path == next(scan.column("a")).schema.path == ("a", "c")
    assert batch["items"].schema.path == ("items", "element", "name")


@pytest.mark.parametrize("name", ["age", "a.b", "items.element.price", "tags"])
def test_column_that_is_not_selected(name: str) -> None:
    data, _ = orders()
    scan = fs.scan(data).select("id", "a.c", "items.name")
    message = f"Column not in projection: {name}"
    assert str(lookup_error(lambda: next(scan.column(name)))) == message
    batch = next(scan.columns())
    assert str(lookup_error(lambda: batch[name])) == message


def test_key_that_no_file_has_is_not_in_the_projection_of_a_batch() -> None:
    batch = next(fs.scan(orders()[0]).columns())
    assert str(lookup_error(lambda: batch["zip"])) == "Column not in projection: zip"


def test_unknown_column_lists_near_names() -> None:
    scan = fs.scan(orders()[0])
    for name, near in (("tagz", "tags"), ("a.bb", "a.b"), ("atrs", "attrs")):
        message = str(lookup_error(lambda name=name: next(scan.column(name))))  # type: ignore[misc]
        assert name in message
        assert near in message.replace(name, "")


@pytest.mark.parametrize(
    ("name", "leaves"),
    [
        ("a", ["a.b", "a.c", "a.d.e"]),
        ("items", ["items.element.price", "items.element.name"]),
        ("attrs", ["attrs.key", "attrs.value.x", "attrs.value.y"]),
        ("attrs.value", ["attrs.value.x", "attrs.value.y"]),
    ],
)
def test_a_field_with_several_leaves_names_them(name: str, leaves: list[str]) -> None:
    scan = fs.scan(orders()[0])
    message = str(lookup_error(lambda: next(scan.column(name))))
    assert all(leaf in message for leaf in leaves)
    batch = next(scan.columns())
    lookup_error(lambda: batch[name])
    assert name not in batch


@pytest.mark.parametrize("lookup", ["pairs.x", "a.x", "id.x", "", (), ("a.b",), "a..b"])
def test_paths_that_lead_nowhere_or_to_two_places(lookup: str | tuple[str, ...]) -> None:
    scan = fs.scan(orders()[0])
    lookup_error(lambda: next(scan.column(lookup)))
    batch = next(scan.columns())
    lookup_error(lambda: batch[lookup])


@pytest.mark.parametrize("place", [-1, 22, 10**9])
def test_places_outside_are_index_errors(place: int) -> None:
    scan = fs.scan(orders()[0])
    with pytest.raises(IndexError):
        next(scan.column(place))
    batch = next(scan.columns())
    with pytest.raises(LookupError):
        batch[place]


@pytest.mark.parametrize("lookup", [None, 1.5, b"id", ["id"]])
def test_lookups_by_other_things_are_type_errors(lookup: Any) -> None:
    scan = fs.scan(orders()[0])
    with pytest.raises(TypeError):
        next(scan.column(lookup))
    batch = next(scan.columns())
    with pytest.raises(TypeError):
        batch[lookup]
