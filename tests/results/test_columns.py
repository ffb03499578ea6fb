"""Column readers: layers and leaf values, rebuilt and held against what pyarrow reads."""

import datetime as dt
import gc
import io
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.formats.test_corpus import oracle, parameters
from tests.formats.test_corpus import scan as corpus_scan
from tests.support.formats import nested_file, pyarrow_read
from tests.support.layers import (
    REPEATED,
    STRUCT,
    Array,
    Leaf,
    arrays_of,
    assert_arrow,
    assert_rebuilt,
    check_rules,
    check_validity,
    dtype_of,
    leaf_array,
    leaves_of,
    pieces,
    present,
    rebuild,
    storage_of,
)
from tests.support.nested_data import nested_array, nested_table, parquet_bytes
from tests.support.pages import Chunk, comparable, random_array, row_groups

ROWS = 120
SIZES = (1, 3, 64, 65, 1_000, None)
SCATTERED = [0, 3, 4, 49, 50, 51, 77, 98, 99, 100, 119]
NO_NULLS = fs.Validity.NO_NULLS

Lookup = str | tuple[str, ...] | int

# What to do with a scan of 120 rows, in row groups of 50, and the rows that are left.
CONTROLS: dict[str, tuple[Callable[[fs.Scan], fs.Scan], Sequence[int]]] = {
    "all": (lambda scan: scan, range(ROWS)),
    "filter": (lambda scan: scan.filter(col("row").is_between(17, 98)), range(17, 99)),
    "scattered filter": (lambda scan: scan.filter(col("row").is_in(SCATTERED)), SCATTERED),
    "window": (lambda scan: scan.skip(33).head(40), range(33, 73)),
    "tail": (lambda scan: scan.tail(31), range(89, ROWS)),
    "rows": (lambda scan: scan.select_rows(SCATTERED), SCATTERED),
    "all but some rows": (
        lambda scan: scan.select_rows(~fs.RowSelection.from_indices(SCATTERED, ROWS)),
        [row for row in range(ROWS) if row not in SCATTERED],
    ),
    "window of a filter": (
        lambda scan: scan.filter(col("row") != 60).skip(20).head(60),
        [*range(20, 60), *range(61, 81)],
    ),
    "tail of a filter": (
        lambda scan: scan.filter("row < 70 or row > 90").tail(40),
        [*range(59, 70), *range(91, ROWS)],
    ),
}
BLOCKS: tuple[Callable[[fs.Scan], fs.Scan], Sequence[int]] = (
    lambda scan: scan.filter(fs.blocks(1, 2)).skip(3),
    range(53, 100),
)
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"write_page_index": True},
    {"data_page_version": "2.0", "use_dictionary": False},
    {"store_schema": False, "compression": "none"},
    {"use_dictionary": False, "compression": "none", "write_page_index": True},
)


def source(table: pa.Table, **options: Any) -> fs.Scan:
    return fs.scan(parquet_bytes(table, **options))


def leaf_at(table: pa.Table, *path: str) -> Leaf:
    [found] = [leaf for leaf in leaves_of(table.schema) if leaf.path == path]
    return found


def rows_at(table: pa.Table, leaf: Leaf, rows: Iterable[int]) -> list[Any]:
    """What `to_pylist` gives for the leaf's column."""
    values = table.column(leaf.path[0]).to_pylist()
    return [values[row] for row in rows]


def assert_columns(
    scan: fs.Scan, table: pa.Table, rows: Sequence[int], size: int | None, *, arrow: bool = True
) -> None:
    """`columns` gives these rows of the table, leaf by leaf."""
    leaves = leaves_of(scan.schema)
    batches = list(scan.columns(size))
    assert sum(batch.record_count for batch in batches) == len(rows)
    for batch in batches:
        assert list(batch) == [leaf.name for leaf in leaves]
        assert all(batch.record_count == part.record_count for part in batch.values())
        assert 0 < batch.record_count <= (size or ROWS)
    for leaf in leaves:
        parts = [batch[leaf.path] for batch in batches]
        assert all(part.schema.path == leaf.path for part in parts)
        expected = rows_at(table, leaf, rows)
        assert_rebuilt(parts, leaf, expected)
        if arrow:
            assert_arrow(parts, leaf, expected)


def assert_column(
    scan: fs.Scan,
    lookup: Lookup,
    leaf: Leaf,
    expected: Sequence[Any],
    size: int | None = None,
) -> None:
    """`column` gives these values."""
    batches = list(scan.column(lookup, size))
    assert sum(batch.record_count for batch in batches) == len(expected)
    assert all(batch.record_count <= (size or len(expected)) for batch in batches)
    assert all(batch.schema.path == leaf.path for batch in batches)
    assert_rebuilt(batches, leaf, expected)
    assert_arrow(batches, leaf, expected)


ORC_LAYOUTS: tuple[dict[str, Any], ...] = (
    {"writer": "orc", "row_index_stride": 11, "blooms": True, "file_version": "0.11"},
    {"writer": "pyorc", "row_index_stride": 11, "compression": "zstd"},
    {"writer": "orc", "row_index_stride": 4, "compression": "zlib"},
    {"writer": "orc", "row_index_stride": 0},
)


@cache
def random_file(seed: int, file_format: str = "parquet") -> tuple[bytes, pa.Table]:
    layouts = LAYOUTS if file_format == "parquet" else ORC_LAYOUTS
    data = nested_file(seed, ROWS, **layouts[seed % len(layouts)])
    return data, pyarrow_read(data)


def random_files(parquet: range, orc: range) -> pytest.MarkDecorator:
    """Parameters: the formats of files and their seeds."""
    files = [*itertools.product(["parquet"], parquet), *itertools.product(["orc"], orc)]
    return pytest.mark.parametrize(("file_format", "seed"), files)


# Rebuilt out of layers


@pytest.mark.slow
@random_files(range(6), range(4))
def test_all_leaves_of_random_tables(file_format: str, seed: int) -> None:
    data, table = random_file(seed, file_format)
    for at, (apply, rows) in enumerate([*CONTROLS.values(), BLOCKS]):
        size = SIZES[(seed + at) % len(SIZES)]
        assert_columns(apply(fs.scan(data)), table, rows, size, arrow=at % 3 == 0)


@pytest.mark.slow
@random_files(range(12, 18), range(12, 16))
def test_each_leaf_of_random_tables(file_format: str, seed: int) -> None:
    data, table = random_file(seed, file_format)
    controls = [*CONTROLS.values(), BLOCKS]
    for at, leaf in enumerate(leaves_of(table.schema)):
        lookups: tuple[Lookup, ...] = (leaf.name, leaf.path, at)
        for turn, lookup in enumerate(lookups):
            apply, rows = controls[(seed + 3 * at + turn) % len(controls)]
            size = SIZES[(seed + at + turn) % len(SIZES)]
            expected = rows_at(table, leaf, rows)
            assert_column(apply(fs.scan(data)), lookup, leaf, expected, size)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 26))
def test_random_tables_in_several_files(seed: int) -> None:
    whole = nested_table(seed, ROWS)
    parts = [whole.slice(0, 37), whole.slice(0, 0), whole.slice(37, 1), whole.slice(38)]
    files: list[Any] = [
        parquet_bytes(part, **{**layout, "store_schema": True})
        for part, layout in zip(parts, LAYOUTS, strict=True)
    ]
    table = pa.concat_tables([pyarrow_read(data) for data in files])
    for at, (apply, rows) in enumerate(CONTROLS.values()):
        size = SIZES[(seed + at) % len(SIZES)]
        assert_columns(apply(fs.scan(files)), table, rows, size, arrow=False)


@pytest.mark.slow
@random_files(range(28, 30), range(28, 30))
def test_splits_of_random_tables(file_format: str, seed: int) -> None:
    data, table = random_file(seed, file_format)
    splits = fs.scan(data).filter(col("row") != 44).splits(target_bytes=1)
    assert len(splits) == 3
    rows = [row for row in range(ROWS) if row != 44]
    for leaf in leaves_of(table.schema):
        batches = [batch for split in splits for batch in split.column(leaf.path, 9)]
        assert_rebuilt(batches, leaf, rows_at(table, leaf, rows))


@pytest.mark.slow
@given(
    seed=st.integers(100, 2**32 - 1),
    file_format=st.sampled_from(["parquet", "parquet", "orc"]),
    name=st.sampled_from(sorted(CONTROLS)),
    size=st.sampled_from(SIZES),
)
def test_random_tables_at_random(seed: int, file_format: str, name: str, size: int | None) -> None:
    data, table = random_file(seed, file_format)
    apply, rows = CONTROLS[name]
    assert_columns(apply(fs.scan(data)), table, rows, size)
    leaves = leaves_of(table.schema)
    leaf = leaves[seed % len(leaves)]
    assert_column(apply(fs.scan(data)), leaf.path, leaf, rows_at(table, leaf, rows), size)


every_file = pytest.mark.parametrize("path", parameters("whole"))


def corpus_leaves(path: Path) -> list[Leaf]:
    """Leaves by the names that the library gives them: a map of keys alone is Arrow's list."""
    leaves = leaves_of(oracle(path).schema)
    alone = ("my_map_no_v", "element")
    return [Leaf(("my_map_no_v", "key"), x.fields) if x.path == alone else x for x in leaves]


@every_file
def test_leaves_of_files_by_other_writers(path: Path) -> None:
    table = oracle(path)
    batches = list(corpus_scan(path, path).columns())
    assert sum(batch.record_count for batch in batches) == table.num_rows
    for at, leaf in enumerate(corpus_leaves(path)):
        parts = [batch[at] for batch in batches]
        for part in parts:
            assert part.schema.path == leaf.path
            assert part.schema.arrow_type == leaf.kind
            check_rules(part, leaf)
        if len(leaf.path) > 1:
            continue
        expected = table.column(leaf.path[0])
        if not parts:
            assert table.num_rows == 0
            continue
        whole = pa.chunked_array([part.arrow for part in parts])
        assert comparable(whole).equals(comparable(expected)), leaf.name
        found = pa.chunked_array([plain(leaf_array(part, leaf.kind)) for part in parts])
        assert comparable(found).equals(without_nulls(expected)), leaf.name


def plain(array: pa.Array) -> pa.Array:
    """The array, or the storage of its extension type."""
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array


def without_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values that are there, comparable bit by bit."""
    chunks = [plain(chunk) for chunk in column.chunks]
    storage = pa.chunked_array(chunks, storage_of(column.type))
    return comparable(storage).drop_null()


def is_nested_file(path: Path | None) -> bool:
    return path is not None and any(pa.types.is_nested(item.type) for item in oracle(path).schema)


NESTED_FILES = [
    case for case in parameters("whole") if case.values[0] is None or is_nested_file(case.values[0])
]


@pytest.mark.parametrize("path", NESTED_FILES)
def test_nested_files_by_other_writers_are_rebuilt(path: Path) -> None:
    table = oracle(path)
    total = table.num_rows
    every = range(total)
    for at, leaf in enumerate(corpus_leaves(path)):
        for size in SIZES:
            assert_column(fs.scan(path), at, leaf, rows_at(table, leaf, every), size)
        for start in every:
            rest = rows_at(table, leaf, every[start:])
            assert_column(fs.scan(path).skip(start), leaf.path, leaf, rest)
            assert_column(fs.scan(path).tail(total - start), leaf.name, leaf, rest, 2)
            first = rows_at(table, leaf, every[start : start + 2])
            assert_column(fs.scan(path).skip(start).head(2), at, leaf, first, 1)
            odd = every[start % 2 :: 2]
            if odd:
                chosen = rows_at(table, leaf, odd)
                assert_column(fs.scan(path).select_rows(list(odd)), at, leaf, chosen, 3)


@pytest.mark.parametrize("path", NESTED_FILES)
def test_nested_files_by_other_writers_are_filtered_and_split(path: Path) -> None:
    table = oracle(path)
    for item in table.schema:
        if pa.types.is_nested(item.type):
            continue
        values = table.column(item.name).to_pylist()
        pivot = next((value for value in values[1:] if value is not None), None)
        if isinstance(pivot, bytes | None):
            continue
        scan = fs.scan(path).filter(col(item.name) == pivot)
        rows = [row for row, value in enumerate(values) if value == pivot]
        for at, leaf in enumerate(corpus_leaves(path)):
            assert_column(scan, at, leaf, rows_at(table, leaf, rows), 2)
    for at, leaf in enumerate(corpus_leaves(path)):
        batches = [b for split in fs.scan(path).splits(1) for b in split.column(at, 3)]
        assert_rebuilt(batches, leaf, rows_at(table, leaf, range(table.num_rows)))


@pytest.mark.parametrize("path", parameters("in part", "not at all"))
def test_files_that_pyarrow_cannot_read_raise(path: Path) -> None:
    with pytest.raises(fs.FileFormatError, match=path.name):
        list(corpus_scan(path, path).columns())


def test_filters_look_below_lists_and_at_what_is_not_selected() -> None:
    table = pa.table(
        {
            "items": [[{"p": 1, "q": "a"}], [{"p": 5, "q": "b"}, None], None, []],
            "s": [{"a": 1, "b": 2}, None, {"a": 3, "b": 4}, {"a": None, "b": 1}],
        }
    )
    scan = source(table)
    [batch] = scan.filter(col("items.p").any() > 2).column("items.q")
    assert batch.strings() == ["b", None]
    [batch] = scan.filter(col("s.a").is_not_null()).select("s.b").column(0)
    assert batch.values.tolist() == [2, 4]
    [batch] = scan.filter(col("s").is_null()).column("items.p")
    assert batch.layers[1].validity.mask().tolist() == [True, False]


def test_fixed_size_lists_hold_real_items_only() -> None:
    values = [[1, 2], None, [3, None], [5, 6]]
    table = pa.table({"x": pa.array(values, pa.list_(pa.int32(), 2))})
    [batch] = source(table).column("x")
    [layer] = batch.layers
    assert layer.kind is REPEATED
    assert layer.offsets.tolist() == [0, 2, 2, 4, 6]
    assert layer.validity.mask().tolist() == [True, False, True, True]
    assert batch.value_count == 6
    assert batch.leaf_validity.mask().tolist() == [True, True, True, False, True, True]
    assert batch.values[[0, 1, 2, 4, 5]].tolist() == [1, 2, 3, 5, 6]


def test_extension_types_over_lists_have_their_layers() -> None:
    kind = pa.fixed_shape_tensor(pa.int32(), (2,))
    storage = pa.array([[1, 2], [3, 4], None], pa.list_(pa.int32(), 2))
    table = pa.table({"t": pa.ExtensionArray.from_storage(kind, storage)})
    [batch] = source(table).column(0)
    [layer] = batch.layers
    assert (layer.kind, layer.offsets.tolist()) == (REPEATED, [0, 2, 4, 4])
    assert layer.validity.mask().tolist() == [True, True, False]
    assert batch.values.tolist() == [1, 2, 3, 4]


# Layers by hand


def only(values: Sequence[Any], item: pa.Field, lookup: Lookup = 0) -> fs.ColumnBatch:
    """The one batch of a leaf of a table of one column."""
    table = pa.table([pa.array(values, item.type)], schema=pa.schema([item]))
    [batch] = source(table).column(lookup)
    return batch


def optional(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind)


def required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def test_flat_column_has_no_layers() -> None:
    batch = only([1, None, 3], optional("x", pa.int64()))
    assert batch.layers == ()
    assert (batch.record_count, batch.value_count, batch.count(0)) == (3, 3, 3)
    assert batch.leaf_validity.mask().tolist() == [True, False, True]
    assert batch.values[[0, 2]].tolist() == [1, 3]
    assert batch.schema.name == "x"


X = pa.struct([optional("v", pa.int64())])
LAYERS: dict[str, tuple[pa.Field, tuple[fs.LayerKind, ...]]] = {
    "required leaf": (required("x", pa.int64()), ()),
    "optional leaf": (optional("x", pa.int64()), ()),
    "required struct": (required("x", X), ()),
    "optional struct": (optional("x", X), (STRUCT,)),
    "required list": (required("x", pa.list_(pa.int64())), (REPEATED,)),
    "optional list": (optional("x", pa.list_(pa.int64())), (REPEATED,)),
    "large list": (optional("x", pa.large_list(pa.int64())), (REPEATED,)),
    "fixed-size list": (optional("x", pa.list_(pa.int64(), 2)), (REPEATED,)),
    "map": (optional("x", pa.map_(pa.int64(), pa.int64())), (REPEATED,)),
    "struct in struct": (optional("x", pa.struct([optional("y", X)])), (STRUCT, STRUCT)),
    "required struct in optional": (optional("x", pa.struct([required("y", X)])), (STRUCT,)),
    "optional struct in required": (required("x", pa.struct([optional("y", X)])), (STRUCT,)),
    "list of structs": (optional("x", pa.list_(X)), (REPEATED, STRUCT)),
    "list of required structs": (optional("x", pa.list_(required("element", X))), (REPEATED,)),
    "list of lists": (optional("x", pa.list_(pa.list_(X))), (REPEATED, REPEATED, STRUCT)),
    "map of lists": (
        optional("x", pa.map_(pa.string(), pa.list_(pa.int64()))),
        (REPEATED, REPEATED),
    ),
    "struct of a list": (
        optional("x", pa.struct([required("y", pa.list_(pa.int64()))])),
        (STRUCT, REPEATED),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_kinds_of_layers(name: str) -> None:
    item, kinds = LAYERS[name]
    values = nested_array(item.type, 30, np.random.default_rng(1), nullable=item.nullable)
    table = pa.table([values], schema=pa.schema([item]))
    leaf = leaves_of(table.schema)[-1]
    batches = list(source(table).column(leaf.path, 20))
    assert [tuple(layer.kind for layer in batch.layers) for batch in batches] == [kinds] * 2
    assert_rebuilt(batches, leaf, table.column(0).to_pylist())


def test_null_and_empty_lists_contribute_no_items() -> None:
    batch = only([[1, 2], None, [], [3, None], []], optional("x", pa.list_(pa.int64())))
    [layer] = batch.layers
    assert layer.offsets.tolist() == [0, 2, 2, 2, 4, 4]
    assert layer.validity.mask().tolist() == [True, False, True, True, True]
    assert (batch.record_count, batch.value_count) == (5, 4)
    assert (batch.count(0), batch.count(1)) == (5, 4)
    assert batch.leaf_validity.mask().tolist() == [True, True, True, False]


def test_items_of_each_layer_are_those_of_the_offsets_above() -> None:
    values = [[[1], None, []], None, [], [[2, 3], [None]]]
    batch = only(values, optional("x", pa.list_(pa.list_(pa.int64()))))
    outer, inner = batch.layers
    assert outer.offsets.tolist() == [0, 3, 3, 3, 5]
    assert inner.offsets.tolist() == [0, 1, 1, 1, 3, 4]
    assert [batch.count(depth) for depth in range(3)] == [4, 5, 4]
    assert inner.validity.mask().tolist() == [True, False, True, True, True]


def test_all_below_a_null_struct_is_null() -> None:
    kind = pa.struct(
        [
            required("leaf", pa.int64()),
            required("items", pa.list_(pa.int64())),
            required("inner", X),
            optional("other", pa.struct([required("leaf", pa.int64())])),
        ]
    )
    some = {"leaf": 1, "items": [5], "inner": {"v": 2}, "other": None}
    full = {"leaf": 3, "items": [], "inner": {"v": None}, "other": {"leaf": 4}}
    table = pa.table({"x": pa.array([some, None, full], kind)})
    [batch] = source(table).columns()
    there = [True, False, True]
    for part in batch.values():
        assert part.layers[0].kind is STRUCT
        assert part.layers[0].validity.mask().tolist() == there
    assert batch["x.leaf"].leaf_validity.mask().tolist() == there
    assert batch["x.items"].layers[1].validity.mask().tolist() == there
    assert batch["x.items"].layers[1].offsets.tolist() == [0, 1, 1, 1]
    assert batch["x.items"].leaf_validity is NO_NULLS
    assert batch["x.inner.v"].leaf_validity.mask().tolist() == [True, False, False]
    assert batch["x.other.leaf"].layers[1].validity.mask().tolist() == [False, False, True]
    assert batch["x.other.leaf"].leaf_validity.mask().tolist() == [False, False, True]


def test_offsets_of_a_struct_are_a_type_error() -> None:
    [layer] = only([{"v": 1}], optional("x", X)).layers
    with pytest.raises(TypeError):
        _ = layer.offsets


def test_keys_and_values_of_a_map_are_in_lockstep() -> None:
    values = [[("a", 1), ("b", None)], None, [], [("c", 3)]]
    item = optional("m", pa.map_(pa.string(), pa.int64()))
    table = pa.table([pa.array(values, item.type)], schema=pa.schema([item]))
    [batch] = source(table).columns()
    keys, items = batch["m.key"], batch["m.value"]
    for part in (keys, items):
        assert part.value_count == 3
        assert part.layers[0].offsets.tolist() == [0, 2, 2, 2, 3]
        assert part.layers[0].validity.mask().tolist() == [True, False, True, True]
    assert keys.leaf_validity is NO_NULLS
    assert keys.strings() == ["a", "b", "c"]
    assert items.leaf_validity.mask().tolist() == [True, False, True]
    assert items.values[[0, 2]].tolist() == [1, 3]


def test_offsets_start_at_zero_in_each_batch() -> None:
    values = [[row] * (row % 4) for row in range(100)]
    table = pa.table({"x": pa.array(values, pa.list_(pa.int64()))})
    for batch in source(table).column("x", 7):
        assert batch.layers[0].offsets[0] == 0
        assert batch.layers[0].offsets[-1] == batch.value_count == len(batch.values)


# Validity


def test_no_nulls_is_shared_and_says_so() -> None:
    first = only([1, 2], optional("x", pa.int64()))
    other = only([[{"v": 1}]], optional("x", pa.list_(X)))
    validities = [first.leaf_validity, other.leaf_validity, *(x.validity for x in other.layers)]
    assert all(validity is NO_NULLS for validity in validities)
    assert NO_NULLS.words is None
    assert not NO_NULLS.has_nulls
    assert not NO_NULLS.is_null(10**9)
    assert NO_NULLS.is_not_null(0)
    mask = NO_NULLS.mask()
    assert (np.shape(mask), bool(mask)) == ((), True)
    assert np.array_equal(np.arange(3)[np.broadcast_to(mask, 3)], np.arange(3))


def test_batches_without_nulls_in_a_column_with_nulls() -> None:
    values = [None if row == 15 else row for row in range(40)]
    batches = list(source(pa.table({"x": values})).column("x", 10))
    starts = np.cumsum([0, *(batch.record_count for batch in batches)])
    for start, batch in zip(starts.tolist(), batches, strict=False):
        has_null = start <= 15 < start + batch.record_count
        assert (batch.leaf_validity is NO_NULLS) == (not has_null)
        assert batch.leaf_validity.has_nulls == has_null


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 129, 200])
def test_words_have_a_bit_for_each_value(count: int) -> None:
    rng = np.random.default_rng(count)
    values = [None if gap else 1 for gap in rng.random(count) < 0.4]
    values[-1] = None
    [batch] = source(pa.table({"x": pa.array(values, pa.int8())}), row_group_size=count).column("x")
    validity = batch.leaf_validity
    assert validity.words is not None
    assert validity.words.dtype == np.uint64
    assert len(validity.words) == (count + 63) // 64
    bits = [int(validity.words[at // 64]) >> (at % 64) & 1 for at in range(count)]
    assert [bool(bit) for bit in bits] == [value is not None for value in values]
    assert [validity.is_null(at) for at in range(count)] == [value is None for value in values]
    assert check_validity(validity, count).tolist() == [value is not None for value in values]


@pytest.mark.parametrize("at", [3, 64, -1])
def test_validity_outside_is_an_index_error(at: int) -> None:
    validity = only([1, None, 3], optional("x", pa.int64())).leaf_validity
    for ask in (validity.is_null, validity.is_not_null):
        with pytest.raises(IndexError):
            ask(at)


# Sizes of batches


@pytest.mark.parametrize("size", SIZES)
def test_batch_size_caps_records_and_not_values(size: int | None) -> None:
    values = [[row] * 50 for row in range(200)]
    table = pa.table({"n": range(200), "x": pa.array(values, pa.list_(pa.int64()))})
    batches = list(source(table, row_group_size=200).columns(size))
    assert sum(batch.record_count for batch in batches) == 200
    assert sum(batch["x"].value_count for batch in batches) == 10_000
    for batch in batches:
        assert 0 < batch.record_count <= (size or 200)
        # Records are whole: each list is there with all of its items.
        assert batch["x"].value_count == 50 * batch.record_count
        assert batch["x"].values.tolist() == np.repeat(batch["n"].values, 50).tolist()


def test_batch_size_is_reached() -> None:
    table = pa.table({"n": range(1_000)})
    counts = [batch.record_count for batch in source(table, row_group_size=1_000).column("n", 100)]
    assert counts == [100] * 10


def numbers(columns: int, rows: int) -> bytes:
    table = pa.table({f"c{at}": np.arange(rows) + at for at in range(columns)})
    layout = {"row_group_size": rows, "max_rows_per_page": 20_000, "write_batch_size": 1_024}
    return parquet_bytes(table, data_page_size=1 << 20, use_dictionary=False, **layout)


def test_wide_rows_come_in_smaller_batches() -> None:
    data = numbers(40, 60_000)
    narrow, wide = fs.scan(data).select("c3"), fs.scan(data)
    most = max(batch.record_count for batch in wide.columns())
    assert next(narrow.columns()).record_count > most
    # One leaf is read, however many there are beside it.
    assert next(wide.column("c3")).record_count > most


def test_batches_by_default_are_bounded_in_bytes() -> None:
    data = numbers(40, 60_000)
    for batch in fs.scan(data).columns():
        assert sum(part.values.nbytes for part in batch.values()) < 4 << 20
    for part in fs.scan(numbers(1, 1_000_000)).column("c0"):
        assert part.values.nbytes < 4 << 20


def test_batches_by_default_are_not_tiny() -> None:
    counts = [batch.record_count for batch in fs.scan(numbers(1, 100_000)).column(0)]
    assert sum(counts) == 100_000
    assert min(counts[:-1], default=100_000) >= 4_096


def test_batches_of_long_lists_and_strings_are_bounded_too() -> None:
    rows = 2_000
    ends = pa.array(np.arange(rows + 1) * 1_000, pa.int32())
    lists = pa.ListArray.from_arrays(ends, pa.array(np.arange(rows * 1_000)))
    table = pa.table({"l": lists, "s": ["x" * 8_000] * rows})
    scan = source(table, row_group_size=rows, use_dictionary=False, compression="none")
    for name in ("l", "s"):
        batches = list(scan.column(name))
        assert sum(batch.record_count for batch in batches) == rows
        assert all(max(x.nbytes for x in arrays_of(batch)) < 4 << 20 for batch in batches)


@pytest.mark.parametrize("size", [0, -1])
def test_batch_size_below_one_is_an_error_at_the_call(size: int) -> None:
    scan = fs.scan(io.BytesIO(b"never read"))
    with pytest.raises(ValueError, match="batch_size"):
        scan.column("x", size)
    with pytest.raises(ValueError, match="batch_size"):
        scan.columns(batch_size=size)


# Kept batches

KEPT_SEEDS = (1, 3, 4, 7)  # of them, layouts 1 and 3: plain values in pages without compression


def kept_arrays(batch: fs.ColumnBatch) -> list[tuple[Array, Array]]:
    """The arrays of a batch, each with a copy of it."""
    return [(array, array.copy()) for array in arrays_of(batch)]


@pytest.mark.parametrize("seed", KEPT_SEEDS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_kept_batches_do_not_change(seed: int, on_disk: bool, tmp_path: Path) -> None:
    data, table = random_file(seed)
    (tmp_path / "file").write_bytes(data)
    scan = fs.scan(tmp_path / "file" if on_disk else data).filter(col("row") != 30)
    kept = [(batch, list(map(kept_arrays, batch.values()))) for batch in scan.columns(7)]
    del scan
    gc.collect()
    assert sum(batch.record_count for batch, _ in kept) == ROWS - 1
    pairs = [pair for _, parts in kept for arrays in parts for pair in arrays]
    assert all(array.tobytes() == wanted.tobytes() for array, wanted in pairs)
    again = [array for batch, _ in kept for part in batch.values() for array in arrays_of(part)]
    for array, (_, wanted) in zip(again, pairs, strict=True):
        assert array.tobytes() == wanted.tobytes()
    rows = [row for row in range(ROWS) if row != 30]
    for leaf in leaves_of(table.schema):
        expected_rows = rows_at(table, leaf, rows)
        assert_rebuilt([batch[leaf.path] for batch, _ in kept], leaf, expected_rows)


@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_batches_share_no_memory_with_later_ones(seed: int) -> None:
    data, table = random_file(seed)
    for leaf in leaves_of(table.schema):
        kept = [arrays_of(batch) for batch in fs.scan(data).column(leaf.path, 30)]
        assert len(kept) > 2
        for at, arrays in enumerate(kept):
            for array in arrays:
                later = [other for others in kept[at + 1 :] for other in others]
                assert not any(np.shares_memory(array, other) for other in later), leaf.name


@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_writing_into_arrays_changes_nothing_else(seed: int) -> None:
    data, table = random_file(seed)
    leaves = leaves_of(table.schema)
    for _ in range(2):
        found: dict[str, list[Any]] = {leaf.name: [] for leaf in leaves}
        for batch in fs.scan(data).columns(16):
            for leaf in leaves:
                found[leaf.name] += rebuild(batch[leaf.path], leaf)
            for part in batch.values():
                for array in arrays_of(part):
                    if array.flags.writeable:
                        array.view(np.uint8).fill(0xFF)
        for leaf in leaves:
            wanted = leaf.records(rows_at(table, leaf, range(ROWS)))
            assert repr(found[leaf.name]) == repr(wanted), leaf.name


def test_batches_are_read_by_other_threads_while_the_reader_goes_on() -> None:
    data, table = random_file(4)
    for leaf in leaves_of(table.schema):
        with ThreadPoolExecutor(3) as pool:
            tasks = [pool.submit(rebuild, x, leaf) for x in fs.scan(data).column(leaf.path, 5)]
        found = [record for task in tasks for record in task.result()]
        assert repr(found) == repr(leaf.records(rows_at(table, leaf, range(ROWS)))), leaf.name


def test_readers_of_one_scan_do_not_disturb_each_other() -> None:
    scan = source(pa.table({"n": range(ROWS), "m": range(ROWS, 2 * ROWS)}))
    one, other, both = scan.column("n", 4), scan.column("m", 4), scan.columns(4)
    found: list[list[int]] = [[], [], []]
    for batches in zip(one, other, strict=True):
        for values, batch in zip(found, batches, strict=False):
            values += batch.values.tolist()
        found[2] += next(both)["n"].values.tolist()
    assert found == [[*range(ROWS)], [*range(ROWS, 2 * ROWS)], [*range(ROWS)]]


def test_readers_may_be_left_before_their_end() -> None:
    scan = source(pa.table({"n": range(ROWS)}))
    assert next(scan.column("n", 4)).record_count == 4
    assert next(scan.columns(4)).record_count == 4
    gc.collect()
    assert sum(batch.record_count for batch in scan.column("n", 50)) == ROWS


def test_readers_are_iterators() -> None:
    scan = source(pa.table({"n": range(3)}))
    for reader in (scan.column("n"), scan.columns()):
        assert iter(reader) is reader
        assert len(list(reader)) == 1
        assert next(reader, None) is None


# Work


WIDE = 400


@cache
def heavy_file() -> bytes:
    """Leaves of 400 KB each, in pages of 50 rows."""
    rng = np.random.default_rng(8)
    rows = [{name: rng.bytes(1_000) for name in "xyz"} for _ in range(WIDE)]
    kind = pa.struct(dict.fromkeys("xyz", pa.binary()))
    keyed = [[(row["x"], row["y"])] for row in rows]
    table = pa.table(
        {
            "id": np.arange(WIDE),
            "a": pa.array(rows, kind),
            "items": pa.array([[row] for row in rows], pa.list_(kind)),
            "m": pa.array(keyed, pa.map_(pa.binary(), pa.binary())),
        }
    )
    layout = {"row_group_size": WIDE // 2, "max_rows_per_page": 50, "use_dictionary": False}
    return parquet_bytes(
        table, data_page_size=1 << 20, write_page_index=True, compression="none", **layout
    )


@cache
def heavy_chunks() -> tuple[Chunk, ...]:
    return tuple(chunk for group in row_groups(heavy_file()) for chunk in group.chunks)


def heavy_scan() -> fs.Scan:
    return fs.scan(io.BytesIO(heavy_file()))


def fetched(trace: fs.Trace) -> set[str]:
    """The leaves of which bytes were read."""
    reads = [(read.offset, read.length) for read in trace.log if read.why == "data"]
    return {c.column for c in heavy_chunks() if any(c.span.overlaps(*read) for read in reads)}


@pytest.mark.parametrize(
    ("leaf", "physical"),
    [
        ("m.value", "m.key_value.value"),
        ("m.key", "m.key_value.key"),
        ("a.y", "a.y"),
        ("items.z", "items.list.element.z"),
        ("id", "id"),
    ],
)
def test_only_the_leaf_is_read(leaf: str, physical: str) -> None:
    with fs.trace() as trace:
        batches = list(heavy_scan().column(leaf))
    assert sum(batch.value_count for batch in batches) == WIDE
    assert fetched(trace) == {physical}
    mine = [chunk for chunk in heavy_chunks() if chunk.column == physical]
    assert trace.data_bytes == sum(chunk.span.end - chunk.span.start for chunk in mine)
    assert trace.pages_decoded == sum(len(chunk.pages) for chunk in mine)
    assert trace.fallbacks == []


@pytest.mark.parametrize(
    ("leaf", "physical"),
    [
        ("m.value", "m.key_value.value"),
        ("a.y", "a.y"),
        ("items.z", "items.list.element.z"),
    ],
)
def test_a_window_decodes_only_its_pages(leaf: str, physical: str) -> None:
    with fs.trace() as trace:
        [batch] = heavy_scan().skip(272).head(3).column(leaf)
    assert batch.record_count == 3
    assert fetched(trace) == {physical}
    assert trace.pages_decoded == 1
    assert trace.data_bytes < 60_000
    with fs.trace() as trace:
        batches = list(heavy_scan().skip(149).head(2).column(leaf))
    assert sum(batch.record_count for batch in batches) == 2
    assert trace.pages_decoded == 2
    assert trace.data_bytes < 120_000


WORK: dict[str, Callable[[fs.Scan], fs.Scan]] = {
    "all": lambda scan: scan,
    "window": lambda scan: scan.skip(120).head(170),
    "tail": lambda scan: scan.tail(30),
    "filter": lambda scan: scan.filter(col("id").is_between(60, 70)),
    "rows": lambda scan: scan.select_rows([3, 4, 399]),
    "block": lambda scan: scan.filter(fs.blocks(1, 2)),
}


@pytest.mark.parametrize("control", WORK)
@pytest.mark.parametrize("leaf", ["id", "a.y", "items.element.z"])
def test_column_reads_no_more_than_a_table_of_it(control: str, leaf: str) -> None:
    with fs.trace() as table_trace:
        table = WORK[control](heavy_scan()).select(leaf).to_arrow()
    with fs.trace() as trace:
        batches = list(WORK[control](heavy_scan()).column(leaf))
    assert sum(batch.record_count for batch in batches) == table.num_rows > 0
    assert 0 < trace.data_bytes <= table_trace.data_bytes
    assert 0 < trace.pages_decoded <= table_trace.pages_decoded


@pytest.mark.parametrize("control", WORK)
def test_columns_read_no_more_than_a_table_of_them(control: str) -> None:
    names = ["a.y", "m", "id"]
    with fs.trace() as table_trace:
        table = WORK[control](heavy_scan()).select(*names).to_arrow()
    with fs.trace() as trace:
        batches = list(WORK[control](heavy_scan()).select(*names).columns())
    assert sum(batch.record_count for batch in batches) == table.num_rows > 0
    assert 0 < trace.data_bytes <= table_trace.data_bytes
    assert 0 < trace.pages_decoded <= table_trace.pages_decoded


def test_nothing_is_read_before_the_first_batch_and_not_all_for_it() -> None:
    with fs.trace() as trace:
        reader = heavy_scan().column("a.x", 10)
        assert trace.data_bytes == 0
        assert next(reader).record_count == 10
    mine = sum(
        chunk.span.end - chunk.span.start for chunk in heavy_chunks() if chunk.column == "a.x"
    )
    assert 0 < trace.data_bytes <= mine // 2


def test_rows_without_columns_are_not_read() -> None:
    with fs.trace() as trace:
        batches = list(heavy_scan().select().skip(7).columns())
    assert sum(batch.record_count for batch in batches) == WIDE - 7
    assert trace.data_bytes == 0


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


def whole(value: Decimal) -> int:
    """The number without its point."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


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

ORDERS = pa.schema(
    [
        required("id", pa.int64()),
        optional("age", pa.int32()),
        optional(
            "a",
            pa.struct({"b": pa.int64(), "c": pa.string(), "d": pa.struct({"e": pa.int8()})}),
        ),
        optional("tags", pa.list_(pa.string())),
        optional("items", pa.list_(pa.struct({"price": pa.float64(), "name": pa.string()}))),
        optional("attrs", pa.map_(pa.string(), pa.struct({"x": pa.int64(), "y": pa.string()}))),
        optional("pairs", pa.map_(pa.struct({"x": pa.int8()}), pa.struct({"x": pa.int8()}))),
        optional("deep", pa.list_(pa.list_(pa.struct({"x": pa.int64(), "y": pa.bool_()})))),
        optional("p.q", pa.int64()),
        optional("p", pa.struct({"q": pa.string(), "r": pa.string()})),
        optional("s", pa.struct({"t.u": pa.int64(), "t": pa.struct({"u": pa.string()})})),
        optional("dot.ted", pa.struct({"plain": pa.int64(), "in.ner": pa.string()})),
    ]
)
# Fields whose leaves have dotted names of their own.
PLAIN = ["id", "age", "a", "tags", "items", "attrs", "pairs", "deep"]


@cache
def orders() -> tuple[bytes, pa.Table]:
    rng = np.random.default_rng(5)
    arrays = [nested_array(item.type, ROWS, rng, nullable=item.nullable) for item in ORDERS]
    data = parquet_bytes(pa.table(arrays, schema=ORDERS), row_group_size=ROWS)
    return data, pyarrow_read(data)


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


def lookup_error(lookup: Callable[[], Any]) -> fs.ColumnNotFoundError:
    """The error of a lookup, which happens before any data is read."""
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError) as caught:
        lookup()
    assert isinstance(caught.value, KeyError)
    assert trace.data_bytes == 0
    return caught.value


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


# Columns that no file holds, and files that differ


def put(path: Path, table: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(parquet_bytes(table))
    return path


def texts(batches: Iterable[fs.ColumnBatch]) -> list[str | None]:
    return [text for batch in batches for text in batch.strings()]


def values(batches: Iterable[fs.ColumnBatch]) -> list[Any]:
    return [value for batch in batches for value in batch.values.tolist()]


def test_row_index_and_file_path_are_leaves(tmp_path: Path) -> None:
    tables = [pa.table({"n": [5, 6, 7]}), pa.table({"n": [8, 9]})]
    paths: list[Any] = [put(tmp_path / str(at), table) for at, table in enumerate(tables)]
    scan = fs.scan(paths).with_row_index("row").with_file_path("file").filter(col("n") != 6)
    assert [list(batch) for batch in scan.columns()] == [["row", "n", "file"]] * 2
    for lookup in ("row", 0):
        assert values(scan.column(lookup)) == [0, 2, 3, 4]
    for lookup in ("file", 2):
        assert texts(scan.column(lookup, 1)) == [str(paths[0])] * 2 + [str(paths[1])] * 2
    assert values(scan.column(1)) == [5, 7, 8, 9]
    batch = next(scan.columns())
    assert batch["row"].values.dtype == np.int64
    assert batch["row"].leaf_validity is batch["file"].leaf_validity is NO_NULLS
    assert batch["row"].layers == batch["file"].layers == ()
    assert batch["file"].schema.name == "file"
    assert batch["row"].arrow.to_pylist() == [0, 2]


def test_row_index_alone_reads_no_data() -> None:
    with fs.trace() as trace:
        found = values(heavy_scan().select().with_row_index().skip(390).column(0))
        assert found == [*range(390, 400)]
        assert values(heavy_scan().with_row_index().tail(2).column("index")) == [398, 399]
    assert trace.data_bytes == 0


def test_hive_folders_are_leaves(tmp_path: Path) -> None:
    for year, day, rows in ((2023, "2024-02-29", 2), (2024, "2024-03-01", 3)):
        put(
            tmp_path / f"year={year}" / f"day={day}" / "city=São" / "x",
            pa.table({"n": range(rows)}),
        )
    put(
        tmp_path / "year=2025" / "day=__HIVE_DEFAULT_PARTITION__" / "city=b" / "x",
        pa.table({"n": [7]}),
    )
    scan = fs.scan(tmp_path).with_file_path().with_row_index()
    batches = list(scan.columns())
    assert [list(batch) for batch in batches] == [["index", "n", "year", "day", "city", "path"]] * 3
    assert [batch.record_count for batch in batches] == [2, 3, 1]
    assert values(batch["year"] for batch in batches) == [2023] * 2 + [2024] * 3 + [2025]
    assert batches[0][2].values.dtype == np.int64
    assert [batch["day"].leaf_validity is NO_NULLS for batch in batches] == [True, True, False]
    assert batches[1]["day"].values.tolist() == [dt.date(2024, 3, 1)] * 3
    assert batches[1]["day"].values.dtype == np.dtype("datetime64[D]")
    assert batches[2]["day"].leaf_validity.mask().tolist() == [False]
    assert texts(scan.filter("year < 2025").column("city", 2)) == ["São"] * 5
    assert values(scan.filter(col("year") == 2024).column("n")) == [0, 1, 2]


def test_batches_never_span_files() -> None:
    sizes = (3, 0, 5, 1, 40)
    tables = [pa.table({"n": pa.array([at] * size, pa.int64())}) for at, size in enumerate(sizes)]
    files: list[Any] = [parquet_bytes(table) for table in tables]
    for size in (None, 4, 1_000):
        batches = list(fs.scan(files).column("n", size))
        assert all(len(set(batch.values.tolist())) == 1 for batch in batches)
        assert values(batches) == [at for at, count in enumerate(sizes) for _ in range(count)]


MISSING = pa.schema(
    [
        required("id", pa.int64()),
        optional("flat", pa.string()),
        optional("tags", pa.list_(pa.int64())),
        optional("s", pa.struct([required("x", pa.int64()), optional("y", pa.list_(pa.int8()))])),
        optional("m", pa.map_(pa.string(), pa.float64())),
        optional("fixed", pa.list_(pa.int16(), 2)),
    ]
)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("size", [4, None])
def test_missing_columns_are_null(first: bool, size: int | None) -> None:
    rng = np.random.default_rng(2)
    arrays = [nested_array(item.type, 20, rng, nullable=item.nullable) for item in MISSING]
    full = pyarrow_read(parquet_bytes(pa.table(arrays, schema=MISSING)))
    bare = full.select(["id"]).slice(0, 9)
    files: list[Any] = [parquet_bytes(bare), parquet_bytes(full)]
    scan = fs.scan(files if first else files[::-1], missing="null")
    for leaf in leaves_of(scan.schema):
        there = rows_at(full, leaf, range(20))
        gone = there[:9] if leaf.name == "id" else [None] * 9
        expected = gone + there if first else there + gone
        assert_column(scan, leaf.path, leaf, expected, size)
        parts = [batch[leaf.path] for batch in scan.columns(size)]
        assert_rebuilt(parts, leaf, expected)
        if leaf.name != "id":
            empty = parts[0] if first else parts[-1]
            outer = empty.layers[0].validity if empty.layers else empty.leaf_validity
            assert outer.mask().tolist() == [False] * empty.record_count


def test_missing_columns_in_the_order_of_the_result(tmp_path: Path) -> None:
    one = put(tmp_path / "1", pa.table({"id": [1, 2], "old": ["x", "y"]}))
    two = put(tmp_path / "2", pa.table({"new": [0.5], "id": [3]}))
    scan = fs.scan(tmp_path, missing="null").with_file_path()
    first, second = scan.columns()
    assert list(first) == list(second) == ["id", "old", "new", "path"]
    assert first["old"].strings() == ["x", "y"]
    assert second["old"].strings() == [None]
    assert first["new"].leaf_validity.mask().tolist() == [False, False]
    assert first["new"].values.dtype == second["new"].values.dtype == np.float64
    assert second["new"].values.tolist() == [0.5]
    assert first["path"].strings() + second["path"].strings() == [str(one)] * 2 + [str(two)]


def test_required_column_that_a_file_lacks_is_null_there() -> None:
    table = pa.table(
        [pa.array([1]), pa.array([2])],
        schema=pa.schema([required("a", pa.int64()), required("b", pa.int64())]),
    )
    files: list[Any] = [parquet_bytes(table), parquet_bytes(table.select(["a"]))]
    there, gone = fs.scan(files, missing="null").column("b")
    assert (there.leaf_validity, there.values.tolist()) == (NO_NULLS, [2])
    assert gone.leaf_validity.mask().tolist() == [False]


def test_required_struct_that_a_file_lacks_is_null_there() -> None:
    item = required("s", pa.struct([required("x", pa.int64())]))
    table = pa.table(
        [pa.array([1]), pa.array([{"x": 2}], item.type)],
        schema=pa.schema([optional("id", pa.int64()), item]),
    )
    files: list[Any] = [parquet_bytes(table), parquet_bytes(table.select(["id"]))]
    scan = fs.scan(files, missing="null")
    assert scan.to_arrow()["s"].to_pylist() == [{"x": 2}, None]
    there, gone = scan.column("s.x")
    assert there.values.tolist() == [2]
    assert gone.leaf_validity.mask().tolist() == [False]
    # Null is the struct, and not only the field in it.
    assert [layer.kind for layer in gone.layers] == [STRUCT]
    assert gone.layers[0].validity.mask().tolist() == [False]


def test_arrow_arrays_of_several_files_have_the_type_of_the_result() -> None:
    strict, loose = (
        pa.schema(
            [
                pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable)])),
                pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable))),
            ]
        )
        for nullable in (False, True)
    )
    rows: list[dict[str, Any]] = [{"s": {"x": 1}, "l": [1, 2]}, {"s": None, "l": None}]
    files: list[Any] = [
        parquet_bytes(pa.Table.from_pylist(rows, schema)) for schema in (strict, loose)
    ]
    scan = fs.scan(files)
    for name in ("s", "l"):
        column = pa.chunked_array([batch.arrow for batch in scan.column(name)])
        assert column.type == scan.schema.field(name).type
        assert column.to_pylist() == [row[name] for row in rows] * 2


def test_values_that_may_be_null_in_one_file_only() -> None:
    one = pa.table([pa.array([1, 2])], schema=pa.schema([required("x", pa.int64())]))
    two = pa.table({"x": pa.array([None, 4], pa.int64())})
    for files in ([one, two], [two, one]):
        sources: list[Any] = [parquet_bytes(table) for table in files]
        found = [x.arrow.to_pylist() for x in fs.scan(sources).column("x")]
        assert found == [table["x"].to_pylist() for table in files]


# No rows, no columns


def test_scans_of_no_rows_have_no_batch() -> None:
    data, _ = orders()
    empties = [
        fs.scan(data).head(0),
        fs.scan(data).tail(0),
        fs.scan(data).skip(ROWS),
        fs.scan(data).select_rows([]),
        fs.scan(data).filter(col("id").is_null()),
        fs.scan(data).filter(fs.blocks(7, 9)),
        fs.scan(data).filter(fs.byte_range(5, 4)),
        fs.scan(parquet_bytes(ORDERS.empty_table())),
    ]
    for scan in empties:
        for lookup in ("age", "items.price", 0):
            assert list(scan.column(lookup)) == []
        assert list(scan.columns()) == []
        assert list(scan.select().columns()) == []


def test_lookups_in_scans_of_no_rows_raise_all_the_same() -> None:
    for scan in (fs.scan(orders()[0]).head(0), fs.scan(parquet_bytes(ORDERS.empty_table()))):
        lookup_error(lambda scan=scan: next(scan.column("zip")))  # type: ignore[misc]
        with pytest.raises(IndexError):
            next(scan.column(22))
        message = str(lookup_error(lambda scan=scan: next(scan.select("id").column("age"))))  # type: ignore[misc]
        assert message == "Column not in projection: age"


def test_filter_that_matches_late_gives_no_empty_batches() -> None:
    table = pa.table({"n": range(1_000), "l": [[at] for at in range(1_000)]})
    scan = source(table, row_group_size=100).filter(col("n").is_in([5, 905, 906]))
    assert [batch.record_count for batch in scan.column("l", 2) if not batch.record_count] == []
    assert values(scan.column("l", 2)) == [5, 905, 906]
    assert values(batch["n"] for batch in scan.columns()) == [5, 905, 906]


@pytest.mark.parametrize("size", SIZES)
def test_rows_without_columns(size: int | None) -> None:
    scan = fs.scan(random_file(0)[0]).select()
    for apply, rows in CONTROLS.values():
        batches = list(apply(scan).columns(size))
        assert sum(batch.record_count for batch in batches) == len(rows)
        assert all(0 < batch.record_count <= (size or ROWS) for batch in batches)
        assert all((len(batch), list(batch)) == (0, []) for batch in batches)


def test_nothing_is_found_where_no_column_is_selected() -> None:
    scan = fs.scan(orders()[0]).select()
    batch = next(scan.columns())
    for lookup in (lambda: batch["age"], lambda: next(scan.column("age"))):
        assert str(lookup_error(lookup)) == "Column not in projection: age"
    with pytest.raises(IndexError):
        next(scan.column(0))


def test_names_that_read_the_same_stay_apart() -> None:
    table = pa.table({"p.q": [1], "p": pa.array([{"q": 2}]), "r": [3]}).append_column("r", [[4]])
    [batch] = source(table).columns()
    assert list(batch) == ["p.q", ("p", "q"), "r", 3]
    assert [part.values.tolist() for part in batch.values()] == [[1], [2], [3], [4]]


def test_names_that_hide_a_leaf_do_not_hide_it_from_iteration() -> None:
    table = pa.table({"a.b": pa.array([{"x": 1, "y": 2}]), "a": pa.array([{"b": 3}])})
    [batch] = source(table).columns()
    assert list(batch) == ["a.b.x", "a.b.y", ("a", "b")]
    assert [part.values.tolist() for part in batch.values()] == [[1], [2], [3]]


def test_added_columns_are_found_by_exact_path() -> None:
    scan = source(pa.table({"a": [5, 6]})).with_row_index().with_file_path()
    assert [batch.values.tolist() for batch in scan.column(("index",))] == [[0, 1]]
    assert [batch.strings() for batch in scan.column(("path",))] == [["<bytes>"] * 2]


def test_missing_columns_of_extension_types_are_null() -> None:
    ids = pa.array([b"0" * 16], pa.uuid())
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), ids)
    files: list[Any] = [
        parquet_bytes(pa.table({"id": [1], "ids": nested})),
        parquet_bytes(pa.table({"id": [2]})),
    ]
    scan = fs.scan(files, missing="null")
    assert [batch.arrow.is_null().to_pylist() for batch in scan.column("ids")] == [[False], [True]]
    assert scan.to_arrow().column("ids").null_count == 1


def test_keys_and_values_of_different_maps_are_an_error() -> None:
    def stored(rows: list[list[tuple[str, int]]]) -> tuple[bytearray, slice]:
        table = pa.table({"m": pa.array(rows, pa.map_(pa.string(), pa.int64()))})
        data = parquet_bytes(table, compression="none", use_dictionary=False)
        values = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1)
        begin = values.data_page_offset
        return bytearray(data), slice(begin, begin + values.total_compressed_size)

    data, values = stored([[("a", 1), ("b", 2)], [("c", 3)]])
    other, others = stored([[("a", 1)], [("b", 2), ("c", 3)]])
    data[values] = other[others]
    assert [batch.values.tolist() for batch in fs.scan(bytes(data)).column("m.value")] == [
        [1, 2, 3]
    ]
    with pytest.raises(fs.FileFormatError, match="different lists"):
        list(fs.scan(bytes(data)).columns())


def test_arrays_of_a_batch_cannot_be_changed() -> None:
    table = pa.table({"b": [True, None, False], "l": [[1], None, [2, 3]], "s": ["x", "y", None]})
    for batch in source(table).columns(2):
        arrays = [
            batch["b"].values,
            batch["l"].values,
            batch["l"].layers[0].offsets,
            batch["s"].binary_values,
            batch["s"].binary_offsets,
        ]
        validities = [batch["b"].leaf_validity, batch["l"].layers[0].validity]
        arrays += [validity.words for validity in validities if validity.words is not None]
        assert not any(array.flags.writeable for array in arrays)
