"""Random nested tables, and what the tests hold against projections into them.

`nested_table` makes a table out of a seed: structs, lists, large and fixed-size lists and maps to
any depth, leaves of many types, required and optional, null and empty at every level.
`prune` and `prune_type` cut Python values and Arrow types down to a `Tree` of paths.
`assert_same_nested` compares tables of any depth, floats bit by bit.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.pages import comparable, random_array

LEAVES: tuple[pa.DataType, ...] = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16()),
    *(pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(7, 2), pa.decimal128(17, 4), pa.decimal128(30, 5), pa.decimal256(50, 9)),
    *(pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin")),
    *(pa.timestamp("s", "America/New_York"), pa.date32(), pa.time32("ms"), pa.time64("ns")),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(5)),
)
BRANCHES = ("struct", "list", "large_list", "fixed_size_list", "map")
KEYS: tuple[pa.DataType, ...] = (pa.string(), pa.int32(), pa.binary(), pa.date32(), pa.int64())
NULLS = (0.0, 0.2, 0.6)
LENGTHS = (0, 1, 2, 3, 17)
LENGTH_CHANCES = (0.3, 0.35, 0.2, 0.13, 0.02)


@dataclass(frozen=True)
class Kinds:
    """The types that a table may have, for writers that do not know them all."""

    leaves: tuple[pa.DataType, ...] = LEAVES
    branches: tuple[str, ...] = BRANCHES


ALL_KINDS = Kinds()

# A path to each kept field, one step at a time; None keeps all that is below.
Tree = Mapping[str, "Tree"] | None


def random_type(depth: int, kinds: Kinds, rng: np.random.Generator) -> pa.DataType:
    """A type with at most `depth` levels of nesting."""
    if depth == 0 or rng.random() < 0.2:
        return kinds.leaves[rng.integers(len(kinds.leaves))]
    below = depth - 1
    match kinds.branches[rng.integers(len(kinds.branches))]:
        case "struct":
            fields = [random_field(f"f{i}", below, kinds, rng) for i in range(rng.integers(1, 4))]
            # pyarrow cannot read a required fixed-size list that is missing with its struct.
            return pa.struct([f.with_nullable(f.nullable or is_fixed(f.type)) for f in fields])
        case "list":
            return pa.list_(random_field("element", below, kinds, rng))
        case "large_list":
            return pa.large_list(random_field("element", below, kinds, rng))
        case "fixed_size_list":
            return pa.list_(random_field("element", below, kinds, rng), int(rng.integers(1, 4)))
        case _:
            key = pa.field("key", KEYS[rng.integers(len(KEYS))], nullable=False)
            return pa.map_(key, random_field("value", below, kinds, rng))


def is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind))


def random_field(name: str, depth: int, kinds: Kinds, rng: np.random.Generator) -> pa.Field:
    return pa.field(name, random_type(depth, kinds, rng), nullable=bool(rng.random() < 0.7))


def nested_array(
    kind: pa.DataType,
    rows: int,
    rng: np.random.Generator,
    *,
    nullable: bool = True,
    shares: Sequence[float] = NULLS,
) -> pa.Array:
    """Values of a type of any depth; one of the `shares` of them is null where they may be."""
    nulls = float(rng.choice(shares)) if nullable else 0.0
    if not pa.types.is_nested(kind):
        return random_array(kind, rows, nulls, rng)
    gaps = rng.random(rows) < nulls
    # Arrow's constructors want no mask at all where nothing is null.
    mask = pa.array(gaps) if gaps.any() else None
    if pa.types.is_struct(kind):
        columns = [of_field(f, rows, rng, shares) for f in kind]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)
    if is_fixed(kind):
        values = of_field(kind.value_field, rows * kind.list_size, rng, shares)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)
    counts = np.where(gaps, 0, rng.choice(LENGTHS, size=rows, p=LENGTH_CHANCES))
    ends = np.concatenate([[0], np.cumsum(counts)])
    count = int(ends[-1])
    if pa.types.is_map(kind):
        keys = map_keys(kind.key_type, count, rng)
        items = of_field(kind.item_field, count, rng, shares)
        offsets = pa.array(ends, pa.int32())
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=mask)
    large = pa.types.is_large_list(kind)
    offsets = pa.array(ends, pa.int64() if large else pa.int32())
    values = of_field(kind.value_field, count, rng, shares)
    builder = pa.LargeListArray if large else pa.ListArray
    return builder.from_arrays(offsets, values, type=kind, mask=mask)


def map_keys(kind: pa.DataType, count: int, rng: np.random.Generator) -> pa.Array:
    """Keys that come again, but not within a map: not every writer takes that."""
    if kind not in KEYS:
        return nested_array(kind, count, rng, nullable=False)
    numbers = pa.array(np.arange(count) % 50, pa.int32())
    return (numbers.cast(pa.string()) if kind == pa.binary() else numbers).cast(kind)


def of_field(
    item: pa.Field, rows: int, rng: np.random.Generator, shares: Sequence[float] = NULLS
) -> pa.Array:
    return nested_array(item.type, rows, rng, nullable=item.nullable, shares=shares)


def nested_table(
    seed: int, rows: int = 120, columns: int = 3, depth: int = 5, kinds: Kinds = ALL_KINDS
) -> pa.Table:
    """A table with a required row number and random columns, always the same for a seed."""
    rng = np.random.default_rng(seed)
    fields = [random_field(f"c{i}", depth, kinds, rng) for i in range(columns)]
    arrays = [of_field(item, rows, rng) for item in fields]
    number = pa.field("row", pa.int64(), nullable=False)
    return pa.table([pa.array(range(rows)), *arrays], schema=pa.schema([number, *fields]))


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """The table as pyarrow writes it, in small pages and several row groups."""
    small = {"row_group_size": 50, "data_page_size": 100, "write_batch_size": 8}
    sink = io.BytesIO()
    pq.write_table(table, sink, **{**small, "max_rows_per_page": 11, **options})
    return sink.getvalue()


def pyarrow_read(data: bytes, **options: Any) -> pa.Table:
    """What pyarrow reads of the same bytes."""
    return pq.ParquetFile(io.BytesIO(data), **options).read()


def steps(kind: pa.DataType) -> Iterator[tuple[str, pa.Field]]:
    """The steps that a path may take below a type, and the fields they lead to."""
    if pa.types.is_struct(kind):
        yield from ((item.name, item) for item in kind)
    elif pa.types.is_map(kind):
        yield "key", kind.key_field
        yield "value", kind.item_field
    elif pa.types.is_nested(kind):
        yield "element", kind.value_field


def paths(item: pa.Field) -> Iterator[tuple[str, ...]]:
    """The path of a field and of every field below it."""
    yield (item.name,)
    for step, below in steps(item.type):
        yield from ((item.name, step, *path[1:]) for path in paths(below))


def tree_of(chosen: Sequence[Sequence[str]]) -> dict[str, Tree]:
    """The merged paths, each field at the place of the first path into it."""
    heads = dict.fromkeys(path[0] for path in chosen)
    below = {head: [path[1:] for path in chosen if path[0] == head] for head in heads}
    return {head: tree_of(rest) if all(rest) else None for head, rest in below.items()}


def prune_type(kind: pa.DataType, tree: Tree) -> pa.DataType:
    """The type with only the fields of the tree; a map keeps its key."""
    if tree is None:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([prune_field(f, tree[f.name]) for f in kind if f.name in tree])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, prune_field(kind.item_field, tree.get("value")))
    element = prune_field(kind.value_field, tree["element"])
    if is_fixed(kind):
        return pa.list_(element, kind.list_size)
    return pa.large_list(element) if pa.types.is_large_list(kind) else pa.list_(element)


def prune_field(item: pa.Field, tree: Tree) -> pa.Field:
    return item.with_type(prune_type(item.type, tree))


def prune(value: Any, kind: pa.DataType, tree: Tree) -> Any:
    """What `to_pylist` gives for a value, with only the fields of the tree."""
    if value is None or tree is None:
        return value
    if pa.types.is_struct(kind):
        return {f.name: prune(value[f.name], f.type, tree[f.name]) for f in kind if f.name in tree}
    if pa.types.is_map(kind):
        return [(key, prune(item, kind.item_type, tree.get("value"))) for key, item in value]
    return [prune(element, kind.value_type, tree["element"]) for element in value]


def assert_projection(actual: pa.Table, whole: pa.Table, tree: Mapping[str, Tree]) -> None:
    """The columns and values of the whole table that the tree names, and nothing else."""
    actual.validate(full=True)
    fields = [prune_field(whole.schema.field(name), below) for name, below in tree.items()]
    expected = pa.schema(fields)
    assert actual.schema.equals(expected), f"{actual.schema}\nis not\n{expected}"
    for name, below in tree.items():
        kind = whole.schema.field(name).type
        wanted = [prune(value, kind, below) for value in whole.column(name).to_pylist()]
        # As text, so that NaN equals itself and -0.0 is not 0.0.
        assert repr(actual.column(name).to_pylist()) == repr(wanted), name


def assert_same_nested(actual: pa.Table, expected: pa.Table) -> None:
    """Same names, types, nullability and values at every level; floats bit by bit."""
    actual.validate(full=True)
    assert actual.schema.equals(expected.schema), f"{actual.schema}\nis not\n{expected.schema}"
    assert actual.num_rows == expected.num_rows
    for name in expected.column_names:
        ours, theirs = (whole_array(table.column(name)) for table in (actual, expected))
        assert_same_values(ours, theirs, name)


def whole_array(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, column.type)


def assert_same_values(ours: pa.Array, theirs: pa.Array, where: str) -> None:
    """Level by level: which are null, how long the lists are, then what is in them."""
    kind = theirs.type
    assert ours.is_null().equals(theirs.is_null()), f"{where}: not the same nulls"
    if isinstance(kind, pa.BaseExtensionType) and pa.types.is_nested(kind.storage_type):
        assert_same_values(ours.storage, theirs.storage, where)
    elif pa.types.is_struct(kind):
        for item, left, right in zip(kind, ours.flatten(), theirs.flatten(), strict=True):
            assert_same_values(left, right, f"{where}.{item.name}")
    elif pa.types.is_nested(kind):
        left, right = lengths(ours), lengths(theirs)
        assert np.array_equal(left, right), f"{where}: not the same lengths"
        if not left.any():
            return  # Arrow cannot flatten lists of extension types to nothing.
        for step, left, right in zip(dict(steps(kind)), items(ours), items(theirs), strict=True):
            assert_same_values(left, right, f"{where}.{step}")
    else:
        left, right = (comparable(pa.chunked_array([array])) for array in (ours, theirs))
        assert left.equals(right), f"{where}: {ours}\nis not\n{theirs}"


def lengths(array: pa.Array) -> Any:
    """How long the lists or maps are that are not null."""
    if is_fixed(array.type):
        return np.full(len(array) - array.null_count, array.type.list_size)
    return np.diff(array.offsets)[array.is_valid().to_numpy(zero_copy_only=False)]


def items(array: pa.Array) -> list[pa.Array]:
    """The elements of lists, or the keys and the values of maps, that are not null."""
    if not pa.types.is_map(array.type):
        return [array.flatten()]
    offsets = pa.array(np.asarray(array.offsets))
    columns = (array.keys, array.items)
    lists = [pa.ListArray.from_arrays(offsets, c, mask=array.is_null()) for c in columns]
    return [column.flatten() for column in lists]


def rows_of(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """These rows in this order; `pa.Table.take` does not know lists of extension types."""
    return pa.concat_tables([table.slice(row, 1) for row in rows] or [table.slice(0, 0)])
