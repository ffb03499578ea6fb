"""Structs, lists and maps of any depth: rows and projections, against pyarrow's read."""

import io
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.formats import nested_file, pyarrow_read
from tests.support.kernels import each_decoder
from tests.support.nested_data import (
    Tree,
    assert_projection,
    assert_same_nested,
    nested_array,
    parquet_bytes,
    paths,
    rows_of,
    tree_of,
)
from tests.support.pages import row_groups

pytestmark = [pytest.mark.slow, each_decoder()]

ROWS = 120
seeds = st.integers(0, 2**32 - 1)
pages = st.fixed_dictionaries(
    {
        "writer": st.just("parquet"),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "write_page_index": st.booleans(),
        "use_dictionary": st.booleans(),
        "store_schema": st.booleans(),
        "compression": st.sampled_from(["none", "snappy"]),
    }
)
strides = st.fixed_dictionaries(
    {
        "writer": st.sampled_from(["orc", "orc", "pyorc"]),
        "row_index_stride": st.sampled_from([11, 4, 0]),
        "compression": st.sampled_from(["uncompressed", "zlib", "zstd"]),
        "blooms": st.booleans(),
    }
)
layouts = st.one_of(pages, pages, strides)


def written(seed: int, layout: dict[str, Any]) -> bytes:
    return nested_file(seed, ROWS, **layout)


@given(seed=seeds, layout=layouts)
def test_whole_tables_are_what_pyarrow_reads(seed: int, layout: dict[str, Any]) -> None:
    data = written(seed, layout)
    expected = pyarrow_read(data)
    scan = fs.scan(data)
    assert scan.schema.equals(expected.schema, check_metadata=True)
    assert scan.count() == ROWS
    assert_same_nested(scan.to_arrow(), expected)


@given(seed=seeds, layout=layouts)
def test_windows_are_slices(seed: int, layout: dict[str, Any]) -> None:
    data = written(seed, layout)
    expected = pyarrow_read(data)
    rng = random.Random(seed)
    for _ in range(3):
        start, length = rng.randint(0, ROWS), rng.choice([0, 1, 7, ROWS])
        window = fs.scan(data).skip(start).head(length).to_arrow()
        assert_same_nested(window, expected.slice(start, length))
        assert_same_nested(fs.scan(data).tail(start).to_arrow(), expected.slice(ROWS - start))


@given(seed=seeds, layout=layouts)
def test_selected_rows_and_taken_rows(seed: int, layout: dict[str, Any]) -> None:
    data = written(seed, layout)
    expected = pyarrow_read(data)
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(ROWS) < rng.choice([0.02, 0.3, 0.9]))
    assert_same_nested(fs.scan(data).select_rows(chosen).to_arrow(), expected.take(chosen))
    rest = ~fs.RowSelection.from_indices(chosen, ROWS)
    assert_same_nested(
        fs.scan(data).select_rows(rest).skip(1).to_arrow(), expected.take(rest.indices()).slice(1)
    )
    rows = rng.integers(ROWS, size=10)
    assert_same_nested(fs.scan(data).take(rows), expected.take(rows))


@given(seed=seeds, layout=layouts, batch_size=st.sampled_from([1, 7, 50, 1_000]))
def test_batches_are_capped_and_complete(
    seed: int, layout: dict[str, Any], batch_size: int
) -> None:
    data = written(seed, layout)
    expected = pyarrow_read(data)
    batches = list(fs.scan(data).skip(3).batches(batch_size))
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    assert_same_nested(pa.Table.from_batches(batches, expected.schema), expected.slice(3))


@given(seed=seeds, layout=layouts, target=st.sampled_from([1, 3_000, 10**9]))
def test_splits_partition_the_rows(seed: int, layout: dict[str, Any], target: int) -> None:
    data = written(seed, layout)
    parts = [split.to_arrow() for split in fs.scan(data).splits(target_bytes=target)]
    assert_same_nested(pa.concat_tables(parts), pyarrow_read(data))


@given(seed=seeds, layout=layouts)
def test_random_projections_at_random_windows(seed: int, layout: dict[str, Any]) -> None:
    data = written(seed, layout)
    whole = pyarrow_read(data)
    rng = random.Random(seed)
    everywhere = [path for item in whole.schema for path in paths(item)]
    for _ in range(3):
        chosen = [rng.choice(everywhere) for _ in range(rng.randint(1, 4))]
        columns = [".".join(path) if rng.random() < 0.5 else path for path in chosen]
        start, length = rng.randint(0, ROWS), rng.choice([1, 20, ROWS])
        window = fs.scan(data).select(*columns).skip(start).head(length)
        assert_projection(window.to_arrow(), whole.slice(start, length), tree_of(chosen))


ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("a", pa.struct({"b": pa.int64(), "c": pa.string(), "d": pa.struct({"e": pa.int8()})})),
        ("items", pa.list_(pa.struct({"price": pa.float64(), "name": pa.string()}))),
        ("attrs", pa.map_(pa.string(), pa.struct({"x": pa.int64(), "y": pa.string()}))),
        ("pairs", pa.map_(pa.struct({"x": pa.int8()}), pa.struct({"x": pa.int8()}))),
        ("deep", pa.list_(pa.list_(pa.struct({"x": pa.int64(), "y": pa.bool_()})))),
        ("odd", pa.list_(pa.struct({"element": pa.int8(), "list": pa.int8(), "z": pa.int8()}))),
        ("p.q", pa.int64()),
        ("p", pa.struct({"q": pa.string(), "r": pa.string()})),
        ("s", pa.struct({"t.u": pa.int64(), "t": pa.struct({"u": pa.string()})})),
        ("dot.ted", pa.struct({"plain": pa.int64(), "in.ner": pa.string()})),
    ]
)


@cache
def orders() -> tuple[bytes, pa.Table]:
    rng = np.random.default_rng(5)
    arrays = [nested_array(f.type, ROWS, rng, nullable=f.nullable) for f in ORDERS]
    data = parquet_bytes(pa.table(arrays, schema=ORDERS), write_page_index=True)
    return data, pyarrow_read(data)


@pytest.mark.parametrize(
    ("columns", "tree"),
    [
        (["a"], {"a": None}),
        (["a.b"], {"a": {"b": None}}),
        (["a.d"], {"a": {"d": None}}),
        (["a.d.e"], {"a": {"d": {"e": None}}}),
        ([("a", "c")], {"a": {"c": None}}),
        (["a.b", "id", "a.d.e"], {"a": {"b": None, "d": {"e": None}}, "id": None}),
        (["items.price", "a.c", "items.name"], {"items": None, "a": {"c": None}}),
        (["a", "id", "a.b"], {"a": None, "id": None}),
        (["a.b", "a"], {"a": None}),
        (["items.element"], {"items": None}),
        (["items.element.price"], {"items": {"element": {"price": None}}}),
        (["items.price"], {"items": {"element": {"price": None}}}),
        (["items.list.element.price"], {"items": {"element": {"price": None}}}),
        ([("items", "element", "name")], {"items": {"element": {"name": None}}}),
        (["attrs.value"], {"attrs": None}),
        (["attrs.value.x"], {"attrs": {"value": {"x": None}}}),
        (["attrs.x"], {"attrs": {"value": {"x": None}}}),
        (["attrs.key_value.value.x"], {"attrs": {"value": {"x": None}}}),
        (["attrs.key_value.key", "attrs.y"], {"attrs": {"value": {"y": None}}}),
        (["pairs.value.x"], {"pairs": None}),
        (["deep.element.element.x"], {"deep": {"element": {"element": {"x": None}}}}),
        (["deep.element.x"], {"deep": {"element": {"element": {"x": None}}}}),
        (["deep.x"], {"deep": {"element": {"element": {"x": None}}}}),
        (["deep.list.element.list.element.y"], {"deep": {"element": {"element": {"y": None}}}}),
        (["odd.element"], {"odd": None}),
        (["odd.element.element"], {"odd": {"element": {"element": None}}}),
        (["odd.element.list"], {"odd": {"element": {"list": None}}}),
        (["odd.list.element.list"], {"odd": {"element": {"list": None}}}),
        (["odd.z"], {"odd": {"element": {"z": None}}}),
        (["p.q"], {"p.q": None}),
        ([("p.q",)], {"p.q": None}),
        ([("p", "q")], {"p": {"q": None}}),
        (["p.r", "p.q"], {"p": {"r": None}, "p.q": None}),
        (["s.t.u"], {"s": {"t.u": None}}),
        ([("s", "t.u")], {"s": {"t.u": None}}),
        ([("s", "t", "u")], {"s": {"t": {"u": None}}}),
        (["dot.ted"], {"dot.ted": None}),
        (["dot.ted.plain"], {"dot.ted": {"plain": None}}),
        (["dot.ted.in.ner"], {"dot.ted": {"in.ner": None}}),
        ([("dot.ted", "in.ner")], {"dot.ted": {"in.ner": None}}),
    ],
    ids=str,
)
def test_paths_give_structs_with_just_the_chosen_fields(
    columns: list[Any], tree: dict[str, Tree]
) -> None:
    data, whole = orders()
    scan = fs.scan(data).select(*columns)
    assert_projection(scan.to_arrow(), whole, tree)
    assert_projection(scan.skip(33).head(40).to_arrow(), whole.slice(33, 40), tree)
    assert scan.schema.names == list(tree)


def test_no_columns_leave_only_rows() -> None:
    result = fs.scan(orders()[0]).select().skip(100).to_arrow()
    assert (result.num_rows, result.num_columns) == (ROWS - 100, 0)


def test_path_to_the_key_keeps_the_keys_of_the_map() -> None:
    data, whole = orders()
    result = fs.scan(data).select("attrs.key").to_arrow().column("attrs")
    assert pa.types.is_map(result.type)
    ours, theirs = (column.to_pylist() for column in (result, whole.column("attrs")))
    for mine, wanted in zip(ours, theirs, strict=True):
        assert (mine is None) == (wanted is None)
        assert [pair[0] for pair in mine or []] == [pair[0] for pair in wanted or []]


@pytest.mark.parametrize(
    "column",
    [
        *("b", "a.x", "a.b.c", "id.x", "items.x", "items.element.x", "items.list.element.x"),
        *("a.element", "attrs.z", "attrs.element", "items.key", "A.b", "a..b", ".a", "a.", ""),
        *("p.q.r", "deep.z", "pairs.x"),
        *(("a.b",), ("a", "b", "c"), ("p", "q.r"), ("dot", "ted"), ("s", "t.u", "v"), ()),
    ],
)
def test_unknown_and_ambiguous_paths_raise_before_any_data_is_read(
    column: str | tuple[str, ...],
) -> None:
    data, _ = orders()
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError):
        fs.scan(data).select("id", column).to_arrow()
    assert trace.data_bytes == 0


@pytest.mark.parametrize(
    ("columns", "leaves"),
    [
        (["a.y"], {"a.y"}),
        (["items.x"], {"items.list.element.x"}),
        (["items.x", "a.z"], {"items.list.element.x", "a.z"}),
        (["m.y"], {"m.key_value.key", "m.key_value.value.y"}),
    ],
)
def test_only_the_leaves_asked_for_are_fetched(columns: list[str], leaves: set[str]) -> None:
    rng = np.random.default_rng(8)
    rows = [{name: rng.bytes(2_000) for name in "xyz"} for _ in range(1_000)]
    kind = pa.struct(dict.fromkeys("xyz", pa.binary()))
    table = pa.table(
        {
            "a": pa.array(rows, kind),
            "items": pa.array([[row] for row in rows], pa.list_(kind)),
            "m": pa.array([[(1, row)] for row in rows], pa.map_(pa.int64(), kind)),
        }
    )
    data = parquet_bytes(
        table, row_group_size=1_000, use_dictionary=False, max_rows_per_page=50,
        write_page_index=True, compression="none",
    )  # fmt: skip
    chunks = {chunk.column: chunk for chunk in row_groups(data)[0].chunks}
    with fs.trace() as trace:
        window = fs.scan(data).select(*columns).skip(520).head(3).to_arrow()
    assert window.num_rows == 3
    reads = [(read.offset, read.length) for read in trace.log if read.why == "data"]
    fetched = {name for name, c in chunks.items() if any(c.span.overlaps(*r) for r in reads)}
    assert fetched == leaves
    assert trace.pages_decoded == len(leaves)
    assert trace.data_bytes < 150_000 * len(leaves)
    assert trace.fallbacks == []


LEGACY = (
    *("old_list_structure", "map_no_value", "repeated_no_annotation", "nonnullable.impala"),
    *("nested_lists.snappy", "nested_maps.snappy", "null_list", "nulls.snappy"),
    *("datapage_v2.snappy", "unknown-logical-type"),
)
legacy_files = pytest.mark.parametrize("name", LEGACY)


def legacy_file(corpus: Path, name: str) -> tuple[Path, pa.Table]:
    path = corpus / "parquet" / "data" / f"{name}.parquet"
    return path, pq.ParquetFile(path).read()


@legacy_files
def test_legacy_encodings_at_every_window(corpus: Path, name: str) -> None:
    path, expected = legacy_file(corpus, name)
    total = expected.num_rows
    assert fs.scan(path).count() == total
    assert fs.scan(path).schema.equals(expected.schema, check_metadata=True)
    for start in range(total + 1):
        for length in range(total - start + 1):
            window = fs.scan(path).skip(start).head(length).to_arrow()
            assert_same_nested(window, expected.slice(start, length))
        assert_same_nested(fs.scan(path).tail(total - start).to_arrow(), expected.slice(start))
        some = [*range(start), *range(start + 1, total)]
        order = pa.array(some[::-1] + some, pa.int64())
        assert_same_nested(fs.scan(path).take(order), expected.take(order))


@legacy_files
def test_every_path_into_legacy_encodings(corpus: Path, name: str) -> None:
    path, whole = legacy_file(corpus, name)
    # A map without values is a list to pyarrow; its one step is `key` all the same.
    items = [item for item in whole.schema if item.name != "my_map_no_v"]
    for chosen in [found for item in items for found in paths(item)]:
        assert_projection(fs.scan(path).select(chosen).to_arrow(), whole, tree_of([chosen]))


@pytest.mark.parametrize(
    ("name", "path", "chosen"),
    [
        ("old_list_structure", "a.array.array", "a.element.element"),
        ("map_no_value", "my_map.key_value.value", "my_map.value"),
        ("map_no_value", "my_map_no_v.key_value.key", "my_map_no_v"),
        ("map_no_value", "my_map_no_v.key", "my_map_no_v"),
        ("repeated_no_annotation", "phoneNumbers.phone.kind", "phoneNumbers.phone.element.kind"),
        ("nested_lists.snappy", "a.list.element.list.element.list.element", "a.element.element"),
        ("nonnullable.impala", "int_array_array.list.element.list.element", "int_array_array"),
    ],
)
def test_physical_spelling_of_legacy_paths(corpus: Path, name: str, path: str, chosen: str) -> None:
    file, whole = legacy_file(corpus, name)
    result = fs.scan(file).select(path).to_arrow()
    assert_projection(result, whole, tree_of([chosen.split(".")]))


def test_optional_map_keys_are_keys(corpus: Path) -> None:
    path = corpus / "parquet" / "data" / "incorrect_map_schema.parquet"
    (row,) = fs.scan(path).rows()
    assert row["my_map"] == [("parent", "another"), ("name", "report")]


def test_fixed_size_lists_that_pyarrow_refuses_raise() -> None:
    kind = pa.struct([pa.field("x", pa.list_(pa.int8(), 2), nullable=False)])
    data = parquet_bytes(pa.table({"s": pa.array([{"x": [1, 2]}, None], kind)}))
    with pytest.raises(pa.ArrowInvalid):
        pyarrow_read(data)
    with pytest.raises(fs.FileFormatError):
        fs.scan(data).to_arrow()


DECIMALS = [pa.decimal128(5, 2), pa.decimal128(18, 3), pa.decimal128(38, 9), pa.decimal256(60, 4)]
STAMPS = [pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "Asia/Tokyo")]
SPECIAL = [
    *(pa.uuid(), pa.json_(), pa.bool8(), pa.opaque(pa.int32(), "kind", "vendor"), pa.float16()),
    *(pa.large_string(), pa.large_binary(), pa.null()),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.int64())),
    *(pa.duration("us"), pa.date64(), pa.time32("s"), pa.binary(12)),
]


@pytest.mark.parametrize(
    ("leaf", "options"),
    [
        *((kind, {}) for kind in [*SPECIAL, *DECIMALS, *STAMPS]),
        *((kind, {"store_decimal_as_integer": True}) for kind in DECIMALS),
        *((kind, {"use_deprecated_int96_timestamps": True}) for kind in STAMPS),
    ],
    ids=str,
)
def test_special_leaves_below_every_kind_of_parent(
    leaf: pa.DataType, options: dict[str, Any]
) -> None:
    rng = np.random.default_rng(9)
    parents = [
        *(pa.list_(leaf), pa.large_list(leaf), pa.list_(leaf, 2), pa.struct({"x": leaf})),
        *(pa.map_(pa.string(), leaf), pa.list_(pa.struct({"x": pa.list_(leaf), "y": leaf}))),
    ]
    columns = {f"c{i}": nested_array(kind, 60, rng) for i, kind in enumerate(parents)}
    for store_schema in (True, False):
        data = parquet_bytes(
            pa.table(columns), row_group_size=60, store_schema=store_schema, **options
        )
        expected = pyarrow_read(data)
        assert fs.scan(data).schema.equals(expected.schema, check_metadata=True)
        assert_same_nested(fs.scan(data).to_arrow(), expected)
        assert_same_nested(fs.scan(data).skip(13).head(44).to_arrow(), expected.slice(13, 44))
        assert_same_nested(fs.scan(data).take([59, 3, 3]), rows_of(expected, [59, 3, 3]))


class Celsius(pa.ExtensionType):  # type: ignore[misc]
    """A type of the user's own, which Python cannot hash."""

    def __init__(self) -> None:
        super().__init__(pa.float64(), "tests.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "Celsius":
        return cls()


def test_types_of_the_users_own_are_picked_by_row() -> None:
    pa.register_extension_type(Celsius())
    try:
        degrees = pa.ExtensionArray.from_storage(Celsius(), pa.array([0.5 * n for n in range(100)]))
        buffer = io.BytesIO()
        pq.write_table(pa.table({"k": range(100), "c": degrees}), buffer)
        scan = fs.scan(buffer.getvalue())
        assert scan.take([7, 3]).column("c").to_pylist() == [3.5, 1.5]
        found = scan.filter("k > 97 or k = 1").to_arrow()
        assert found.schema.field("c").type == Celsius()
        assert found.column("c").to_pylist() == [0.5, 49.0, 49.5]
    finally:
        pa.unregister_extension_type("tests.celsius")
