"""Column readers: layers and leaf values, rebuilt and held against what pyarrow reads."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.formats.test_corpus import oracle, parameters
from tests.formats.test_corpus import scan as corpus_scan
from tests.support.column_tables import (
    CONTROLS,
    LAYOUTS,
    NO_NULLS,
    ROWS,
    SIZES,
    Lookup,
    assert_column,
    optional,
    plain,
    random_file,
    required,
    rows_at,
    source,
    without_nulls,
)
from tests.support.depth import in_depth
from tests.support.formats import pyarrow_read
from tests.support.kernels import each_decoder
from tests.support.layers import (
    REPEATED,
    STRUCT,
    Leaf,
    assert_arrow,
    assert_rebuilt,
    check_rules,
    check_validity,
    leaf_array,
    leaves_of,
)
from tests.support.nested_data import nested_array, nested_table, parquet_bytes
from tests.support.pages import comparable

pytestmark = each_decoder()

BLOCKS: tuple[Callable[[fs.Scan], fs.Scan], Sequence[int]] = (
    lambda scan: scan.filter(fs.blocks(1, 2)).skip(3),
    range(53, 100),
)


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


each_format = pytest.mark.parametrize("file_format", ["parquet", "orc"])


# Rebuilt out of layers


@each_format
@pytest.mark.parametrize("seed", in_depth(range(12), 1, 4))
def test_all_leaves_of_random_tables(file_format: str, seed: int) -> None:
    data, table = random_file(seed, file_format)
    for at, (apply, rows) in enumerate([*CONTROLS.values(), BLOCKS]):
        size = SIZES[(seed + at) % len(SIZES)]
        assert_columns(apply(fs.scan(data)), table, rows, size, arrow=at % 3 == 0)


@each_format
@pytest.mark.parametrize("seed", in_depth(range(12, 24), 1, 4))
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
@pytest.mark.parametrize("seed", in_depth(range(24, 28), 1, 1))
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
@each_format
@pytest.mark.parametrize("seed", in_depth(range(28, 34), 1, 1))
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
