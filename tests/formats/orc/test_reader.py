"""ORC files: the corpus, every type and encoding, rows by position and work, against pyarrow."""

import datetime as dt
import gzip
import io
import itertools
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.model.test_schema import check_against_arrow
from tests.model.test_trace import METADATA_USES, assert_data_only_from, counting, size_of, traced
from tests.support.expected_rows import assert_rows, expected_rows
from tests.support.formats import by_pyarrow, by_pyorc
from tests.support.layers import assert_arrow, assert_rebuilt, leaves_of
from tests.support.nested_data import (
    Kinds,
    Tree,
    assert_projection,
    nested_array,
    nested_table,
    paths,
    tree_of,
)
from tests.support.orc_craft import Crafted
from tests.support.orc_files import (
    COMPRESSIONS,
    ORC_NAMES,
    Kind,
    Layout,
    assert_same_rows,
    has_union,
    layout_of,
    orc_bytes,
    pyarrow_orc,
    pyorc_bytes,
    pyorc_table,
    small_chunks,
    with_positions,
    with_row_count,
)
from tests.support.pages import Span, assert_same, random_array

ROWS = 700
STRIDE = 53
STRIPE = 300

LEAVES: tuple[pa.DataType, ...] = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(5, 2), pa.decimal128(18, 4), pa.decimal128(19, 0), pa.decimal128(38, 10)),
    *(pa.date32(), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")),
    *(pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin"), pa.string(), pa.binary()),
    *(pa.large_string(), pa.large_binary(), pa.binary(7)),
)

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
KINDS = Kinds(leaves=LEAVES, branches=("struct", "list", "map"))


# What every file must give


def rows_of(table: pa.Table, rows: Any) -> pa.Table:
    """These rows in this order; `pa.Table.take` does not know unions in lists."""
    return pa.concat_tables([table.slice(0, 0), *(table.slice(int(row), 1) for row in rows)])


def assert_whole(source: Any, expected: pa.Table) -> None:
    scan = fs.scan(source)
    assert_same_rows(scan.to_arrow(), expected)
    assert scan.schema.equals(expected.schema)
    assert scan.count() == expected.num_rows


def assert_every_stride(source: Any, expected: pa.Table, layout: Layout) -> None:
    """Each stride by itself."""
    for rows in layout.strides():
        window = fs.scan(source).skip(rows.start).head(len(rows))
        assert_same_rows(window.to_arrow(), expected.slice(rows.start, len(rows)))


def near_boundaries(layout: Layout, limit: int) -> list[int]:
    """Row numbers on, one before and one after the ends of strides and stripes; about so many."""
    near = {at + step for at in layout.boundaries() for step in (-1, 0, 1)}
    found = sorted(at for at in near if 0 <= at <= layout.rows)
    if len(found) <= limit:
        return found
    rng = random.Random(layout.rows)
    stripe = rng.choice(layout.stripes)
    return sorted({*rng.sample(found, limit), stripe.first_row, stripe.end_row - 1, found[-2]})


def assert_windows(source: Any, expected: pa.Table, layout: Layout, limit: int) -> None:
    """Windows and tails that begin or end at and around the boundaries of strides and stripes."""
    near = near_boundaries(layout, limit)
    rng = random.Random(expected.num_rows)
    for start in near:
        length = rng.choice([0, 1, 2, layout.stride or 10, expected.num_rows])
        window = fs.scan(source).skip(start).head(length)
        assert_same_rows(window.to_arrow(), expected.slice(start, length))
    for start, end in zip(near[::3], near[1::3], strict=False):
        window = fs.scan(source).head(end - start).skip(start)
        assert_same_rows(window.to_arrow(), expected.slice(start, end - start))
    for start in near[::4]:
        tail = fs.scan(source).tail(expected.num_rows - start)
        assert_same_rows(tail.to_arrow(), expected.slice(start))


def assert_chosen_rows(source: Any, expected: pa.Table, layout: Layout, limit: int) -> None:
    """Selections as arrays and as runs, and rows taken in any order."""
    total = expected.num_rows
    rows = np.array([row for row in near_boundaries(layout, limit) if row < total], np.int64)
    scan = fs.scan(source)
    wanted = rows_of(expected, rows)
    assert_same_rows(scan.select_rows(rows[::-1]).to_arrow(), wanted)
    selection = fs.RowSelection.from_indices(rows, total)
    assert_same_rows(scan.select_rows(selection).to_arrow(), wanted)
    rest = [expected.slice(start, end - start) for start, end in (~selection).ranges()]
    without = pa.concat_tables([expected.slice(0, 0), *rest])
    assert_same_rows(scan.select_rows(~selection).to_arrow(), without)
    order = [*rows, *rows[::2]]
    random.Random(total).shuffle(order)
    assert_same_rows(scan.take(order), rows_of(expected, order))


def assert_stripes(source: Any, expected: pa.Table, layout: Layout) -> None:
    """Stripes by their bytes and by their number, and partitions into both."""
    scan = fs.scan(source)
    some = random.Random(layout.rows).sample(
        list(enumerate(layout.stripes)), min(5, len(layout.stripes))
    )
    for number, stripe in some:
        mine = expected.slice(stripe.first_row, stripe.end_row - stripe.first_row)
        here = fs.byte_range(stripe.midpoint, stripe.midpoint + 1)
        assert_same_rows(scan.filter(here).to_arrow(), mine)
        assert_same_rows(scan.filter(fs.blocks(number, number + 1)).to_arrow(), mine)
        assert_same_rows(scan.filter(here).skip(1).head(2).to_arrow(), mine.slice(1, 2))
        assert scan.filter(fs.byte_range(stripe.midpoint, stripe.midpoint)).count() == 0
        before = scan.filter(fs.byte_range(-(2**63), stripe.midpoint))
        assert before.count() == stripe.first_row
    cuts = sorted({-(2**63), 0, *(stripe.midpoint for stripe in layout.stripes[:4]), 2**63})
    parts = [scan.filter(fs.byte_range(*pair)) for pair in itertools.pairwise(cuts)]
    assert_same_rows(pa.concat_tables([part.to_arrow() for part in parts]), expected)
    for target in (1, 10_000, 2**40):
        splits = scan.splits(target_bytes=target)
        assert sum(split.count() for split in splits) == expected.num_rows
        tables = [split.to_arrow() for split in splits] or [expected.slice(0, 0)]
        assert_same_rows(pa.concat_tables(tables), expected)
    assert len(scan.splits(target_bytes=2**40)) <= 1


def assert_same_by_position(source: Any, expected: pa.Table, layout: Layout, limit: int) -> None:
    assert_whole(source, expected)
    assert_every_stride(source, expected, layout)
    assert_windows(source, expected, layout, limit)
    assert_chosen_rows(source, expected, layout, limit)


def assert_written(data: bytes, limit: int = 3) -> None:
    """A file gives at every position what pyarrow gives."""
    assert_same_by_position(data, pyarrow_orc(data), layout_of(data), limit)


# Files by other writers


@cache
def corpus_files() -> tuple[Path, ...]:
    """Every ORC file of the corpus; none where it is not at hand."""
    root = os.environ.get("FRETSAW_CORPUS")
    return () if root is None else tuple(sorted((Path(root) / "orc").rglob("*.orc")))


def parameters(wanted: Callable[[Path], bool], slow: Collection[str] = ()) -> list[Any]:
    """Files for `parametrize`; one that is skipped where there is no corpus."""
    chosen = [path for path in corpus_files() if wanted(path)]
    if chosen:
        marks = {name: [pytest.mark.slow] for name in slow}
        return [pytest.param(p, id=p.name, marks=marks.get(p.name, [])) for p in chosen]
    reason = "FRETSAW_CORPUS is not set: no files by other writers to read"
    return [pytest.param(None, id="no-corpus", marks=pytest.mark.skip(reason=reason))]


def is_bad(path: Path) -> bool:
    return path.parent.name == "corrupt" or path.name == "zero.orc"


def json_of(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.orc')}.jsn.gz")


every_file = pytest.mark.parametrize("path", parameters(lambda path: not is_bad(path)))


@cache
def oracle(path: Path) -> pa.Table:
    return orc.ORCFile(path).read()


@cache
def corpus_layout(path: Path) -> Layout:
    return layout_of(path.read_bytes())


def test_the_corpus_has_its_files(corpus: Path) -> None:
    files = list((corpus / "orc").rglob("*.orc"))
    assert len(files) == len(corpus_files()) >= 20
    assert sum(map(is_bad, files)) == 5


@every_file
def test_whole_file_is_what_pyarrow_reads(path: Path) -> None:
    assert_whole(path, oracle(path))


@every_file
def test_open_tells_what_is_in_the_file(path: Path) -> None:
    file, layout = orc.ORCFile(path), corpus_layout(path)
    with fs.open(path) as opened:
        assert (opened.format, opened.num_rows) == ("orc", file.nrows)
        assert len(opened.blocks) == file.nstripes
        assert opened.metadata == dict(file.metadata)
        for number, (block, stripe) in enumerate(zip(opened.blocks, layout.stripes, strict=True)):
            rows = stripe.end_row - stripe.first_row
            assert (block.ordinal, block.first_row, block.num_rows) == (
                number,
                stripe.first_row,
                rows,
            )
            assert (block.offset, block.midpoint) == (stripe.span.start, stripe.midpoint)
            stored = stripe.span.end - stripe.span.start
            assert block.compressed_size == stored
            # ORC says nothing of what compressed streams become.
            is_plain = layout.compression == "uncompressed"
            assert block.uncompressed_size == (stored if is_plain else None)
            assert file.read_stripe(number).num_rows == rows
        assert_same_rows(opened.scan().to_arrow(), oracle(path))


@every_file
def test_nulls_and_values_of_every_column_are_those_of_pyarrow(path: Path) -> None:
    """With and without what the indexes say, rows and counts."""
    table = oracle(path)
    for name in table.column_names:
        column = table[name]
        if has_union(column.type):  # pyarrow's kernels do not take them
            continue
        null = np.flatnonzero(column.is_null().to_numpy()).tolist()
        asked: list[tuple[Any, list[int]]] = [(col((name,)).is_null(), null)]
        value = column[len(column) // 2].as_py() if len(column) else None
        if value is not None and not pa.types.is_nested(column.type) and value == value:
            same = pc.equal(column, column[len(column) // 2]).fill_null(False)
            asked.append((col((name,)) == value, np.flatnonzero(same.to_numpy()).tolist()))
        for predicate, rows in asked:
            for indexes in (True, False):
                scan = fs.scan(path, indexes=indexes).filter(predicate)
                assert scan.count() == len(rows)
                found = scan.select().with_row_index("at").to_arrow()["at"].to_pylist()
                assert found == rows, (name, predicate, indexes)


@every_file
def test_the_schema_is_that_of_pyarrow(path: Path) -> None:
    expected = orc.ORCFile(path).schema
    with fs.open(path) as file:
        assert file.schema.is_struct
        assert [node.name for node in file.schema.children] == expected.names
        for node, item in zip(file.schema.children, expected, strict=True):
            check_against_arrow(node, item, (item.name,))


# Tens of thousands of lines each, which take long to parse.
MANY_LINES = (
    *("TestOrcFile.testDate1900.orc", "nulls-at-end-snappy.orc", "orc_split_elim_cpp.orc"),
    *("orc_split_elim_new.orc", "TestStringDictionary.testRowIndex.orc"),
)


def from_json(value: Any, kind: pa.DataType) -> Any:
    """A value of a JSON line, in a form that `pa.array` takes for the type."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {item.name: from_json(value[item.name], item.type) for item in kind}
    if pa.types.is_map(kind):
        pairs = [(pair["key"], pair["value"]) for pair in value]
        return [(from_json(k, kind.key_type), from_json(v, kind.item_type)) for k, v in pairs]
    if pa.types.is_list(kind):
        return [from_json(element, kind.value_type) for element in value]
    if pa.types.is_timestamp(kind):
        return np.datetime64(value, "ns")
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return round(Decimal(value), kind.scale)
    return bytes(value) if pa.types.is_binary(kind) else value


@pytest.mark.parametrize(
    "path",
    parameters(lambda path: not is_bad(path) and json_of(path).exists(), slow=MANY_LINES),
)
def test_values_are_those_of_the_lines_beside_the_file(path: Path) -> None:
    result = fs.scan(path).to_arrow()
    with gzip.open(json_of(path), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line, parse_float=Decimal) for line in lines]
    assert result.num_rows == len(rows)
    assert all(list(row) == result.column_names for row in rows[:10])
    for item in result.schema:
        wanted = pa.array([from_json(row[item.name], item.type) for row in rows], item.type)
        found = result[item.name].combine_chunks()
        if pa.types.is_float32(item.type):
            # Seven digits, which is not all that a float has.
            assert found.is_null().equals(wanted.is_null())
            assert np.allclose(found.drop_null(), wanted.drop_null(), rtol=1e-6, atol=0)
        else:
            assert_same_rows(*(pa.table({item.name: array}) for array in (found, wanted)))


@every_file
def test_every_stride_alone(path: Path) -> None:
    assert_every_stride(path, oracle(path), corpus_layout(path))


@every_file
def test_windows_around_every_stride_and_stripe(path: Path) -> None:
    expected = oracle(path)
    assert_windows(path, expected, corpus_layout(path), 12)
    past = expected.num_rows + 1
    for empty in (fs.scan(path).skip(past), fs.scan(path).tail(0), fs.scan(path).head(0)):
        assert_same_rows(empty.to_arrow(), expected.slice(0, 0))
    assert_same_rows(fs.scan(path).tail(past).to_arrow(), expected)


@every_file
def test_rows_chosen_around_every_stride_and_stripe(path: Path) -> None:
    assert_chosen_rows(path, oracle(path), corpus_layout(path), 20)


@every_file
def test_stripes_by_bytes_by_number_and_as_splits(path: Path) -> None:
    assert_stripes(path, oracle(path), corpus_layout(path))


@every_file
def test_each_column_alone_in_the_middle(path: Path) -> None:
    expected = oracle(path)
    middle = expected.num_rows // 2
    for name in expected.column_names:
        window = fs.scan(path).select(name).skip(middle).head(9).to_arrow()
        assert_same_rows(window, expected.select([name]).slice(middle, 9))


@every_file
def test_rows_and_leaves_of_files_by_other_writers(path: Path) -> None:
    whole = oracle(path)
    expected = whole.slice(max(0, whole.num_rows // 2 - 20), 40)
    scan = fs.scan(path).skip(max(0, whole.num_rows // 2 - 20)).head(40)
    assert_rows(scan.rows(), expected_rows(expected))
    for leaf in leaves_of(expected.schema):
        batches = list(scan.column(leaf.path, batch_size=9))
        values = expected[leaf.path[0]].to_pylist()
        assert_rebuilt(batches, leaf, values)
        assert_arrow(batches, leaf, values)


@pytest.mark.parametrize("path", parameters(is_bad))
def test_damaged_files_raise_and_name_the_file(path: Path) -> None:
    uses: tuple[Callable[[fs.Scan], Any], ...] = (
        lambda scan: scan.to_arrow(),
        lambda scan: list(scan.rows()),
        lambda scan: scan.skip(2).head(1).to_arrow(),
    )
    for use in uses:
        with pytest.raises(fs.FileFormatError, match=path.name):
            use(fs.scan(path))


@pytest.mark.parametrize("write", [by_pyarrow, by_pyorc])
def test_a_file_says_who_wrote_it(write: Callable[..., bytes]) -> None:
    data = write(pa.table({"n": [1]}))
    with fs.open(data) as file:
        assert file.created_by == orc.ORCFile(io.BytesIO(data)).software_version


@pytest.mark.parametrize(
    ("number", "version", "says"),
    [
        (0, [b"1.9.4"], "ORC Java 1.9.4"),
        (0, [], "ORC Java"),
        (4, [b"435"], "Trino 435"),
        (77, [b"3"], "ORC writer 77 3"),
        (2**32 - 1, [], "ORC writer 4294967295"),
        (1, [b"\xff"], "ORC C++ \ufffd"),
    ],
)
def test_writers_have_names(number: int, version: list[bytes], says: str) -> None:
    crafted = Crafted(by_pyarrow(pa.table({"n": [1]})))
    crafted.footer |= {9: [number], 12: version}
    with fs.open(crafted.to_bytes()) as file:
        assert file.created_by == says


def test_the_empty_file_raises_when_it_is_opened(corpus: Path) -> None:
    path = corpus / "orc" / "zero.orc"
    assert path.stat().st_size == 0
    with pytest.raises(fs.FileFormatError, match=r"zero\.orc"):
        fs.open(path)
    with pytest.raises(fs.FileFormatError):
        fs.scan(path).count()


@pytest.mark.parametrize("path", parameters(lambda path: path.parent.name == "corrupt"))
def test_good_columns_beside_bad_ones_are_what_pyarrow_reads(path: Path) -> None:
    file = orc.ORCFile(path)
    for name in file.schema.names:
        try:
            expected = file.read(columns=[name])
        except OSError:
            with pytest.raises(fs.FileFormatError, match=path.name):
                fs.scan(path).select(name).to_arrow()
            continue
        scan = fs.scan(path).select(name)
        assert_same_rows(scan.to_arrow(), expected)
        assert_same_rows(scan.skip(3).head(5).to_arrow(), expected.slice(3, 5))


# Types


def clocks(kind: pa.DataType, rows: int, nulls: float, rng: np.random.Generator) -> pa.Array:
    """Times over two centuries, some of whole seconds, some of every digit."""
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
    seconds = rng.integers(-3_000_000_000, 4_000_000_000, size=rows)
    fraction = rng.integers(10**digits, size=rows)
    kept = 10 ** rng.integers(digits + 1, size=rows)
    numbers = seconds * 10**digits + fraction // kept * kept
    return pa.array(numbers, pa.int64(), mask=rng.random(rows) < nulls).view(kind)


def values_of(kind: pa.DataType, rows: int, nulls: float, rng: np.random.Generator) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return clocks(kind, rows, nulls, rng)
    return random_array(kind, rows, nulls, rng)


@cache
def flat_columns() -> pa.Table:
    """A column of each flat type, some without nulls, and of strings that all differ."""
    rng = np.random.default_rng(7)
    names = [f"c{at}" for at in range(len(LEAVES))]
    arrays = [values_of(kind, ROWS, at % 3 * 0.2, rng) for at, kind in enumerate(LEAVES)]
    unique = [f"{row:06d}" * (row % 4) for row in range(ROWS)]
    return pa.table([*arrays, unique, range(ROWS)], names=[*names, "unique", "n"])


def quick_some(cases: Iterable[tuple[Any, ...]], quick: int) -> list[Any]:
    """Cases for `parametrize`; all but one in so many are left to the slow tests."""
    return [
        pytest.param(*case, marks=pytest.mark.slow if at % quick else ())
        for at, case in enumerate(cases)
    ]


FLAT = [
    (kind, ("0.12", "0.11")[(at + turn) % 2]) for turn in (0, 1) for at, kind in enumerate(LEAVES)
]


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        pytest.param(*case, marks=pytest.mark.slow if at >= len(LEAVES) else ())
        for at, case in enumerate(FLAT)
    ],
    ids=str,
)
def test_every_flat_type(kind: pa.DataType, version: str) -> None:
    rng = np.random.default_rng(3)
    columns = {f"{nulls:.0%}": values_of(kind, ROWS, nulls, rng) for nulls in (0.0, 0.2, 1.0)}
    data = orc_bytes(
        pa.table(columns),
        file_version=version,
        row_index_stride=70,
        compression="zlib" if version == "0.12" else "uncompressed",
        stripe_rows=STRIPE,
    )
    result = fs.scan(data).to_arrow()
    assert [column.null_count for column in result.columns][::2] == [0, ROWS]
    assert_written(data, limit=1)


WAYS = itertools.product(COMPRESSIONS, ["0.11", "0.12"], ["direct", "dictionary"])


@pytest.mark.parametrize(("compression", "version", "strings"), quick_some(WAYS, 3))
@pytest.mark.slow
def test_every_way_pyarrow_writes(compression: str, version: str, strings: str) -> None:
    names = ["c0", "c1", "c4", "c6", "c8", "c10", "c15", "c18", "c19", "unique"]
    table = flat_columns().select(names)
    data = orc_bytes(
        table,
        compression=compression,
        file_version=version,
        dictionary_key_size_threshold=float(strings == "dictionary"),
        row_index_stride=STRIDE,
        stripe_rows=STRIPE,
    )
    layout = layout_of(data)
    assert layout.compression == compression
    text = layout.stripes[0].encodings[1 + names.index("c18")]
    assert text == (strings if version == "0.11" else f"{strings} v2")
    if compression == "uncompressed" or strings == "dictionary":
        assert len(layout.stripes) == 3
    assert_written(data)


CHUNKS = itertools.product(COMPRESSIONS, (32, 100, 1_024))


@pytest.mark.parametrize(("compression", "size"), quick_some(CHUNKS, 4))
@pytest.mark.slow
def test_runs_and_values_cross_small_chunks(compression: str, size: int) -> None:
    rng = random.Random(size)
    rows = [
        (
            number,
            rng.getrandbits(63) - 2**62,
            None if number % 5 == 0 else rng.random(),
            number % 3 == 0,
            f"text {number // 10}" * rng.randrange(4),
            [rng.randrange(100) for _ in range(rng.randrange(4))],
            None if number % 7 == 0 else rng.randbytes(rng.randrange(40)),
            Decimal(rng.randrange(10**9)) / 100,
        )
        for number in range(ROWS)
    ]
    data = pyorc_bytes(
        "struct<n:bigint,r:bigint,x:double,b:boolean,s:string,l:array<int>,y:binary,d:decimal(12,2)>",
        rows,
        **small_chunks(size, compression, row_index_stride=STRIDE, stripe_size=8_000),
        batch_size=100,
        dict_key_size_threshold=float(size == 100),
    )
    layout = layout_of(data)
    assert len(layout.stripes) > 1
    assert_written(data)
    assert_stripes(data, pyarrow_orc(data), layout)


def runs(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Integers that the encoders put into each kind of run, and all kinds in turn."""
    found = {
        "constant": np.full(rows, 7),
        "zero": np.zeros(rows, np.int64),
        "short repeats": np.repeat(rng.integers(-(2**40), 2**40, rows), rng.integers(1, 9, rows)),
        "long repeats": np.repeat(rng.integers(-9, 9, rows), rng.integers(1, 700, rows)),
        "ascending": np.arange(rows) * 3 - rows,
        "descending": -np.arange(rows),
        "uneven steps": np.cumsum(rng.integers(1, 50, rows)),
        "falling unevenly": -np.cumsum(rng.integers(0, 2**20, rows)),
        "few bits": rng.integers(0, 4, rows),
        "signed": rng.integers(-1_000, 1_000, rows),
        "all bits": rng.integers(-(2**63), 2**63 - 1, rows),
        "outliers": np.where(rng.random(rows) < 0.02, 2**45, rng.integers(0, 100, rows)),
        "negative outliers": np.where(rng.random(rows) < 0.02, -(2**60), rng.integers(9, 99, rows)),
        "ends": rng.choice([-(2**63), 2**63 - 1, 0], rows),
    }
    pieces = [found[name][at * 41 : at * 41 + 90] for at, name in enumerate(found)]
    turns = np.concatenate(pieces * (rows // 1_000 + 1))
    return {name: values[:rows] for name, values in {**found, "in turn": turns}.items()}


@pytest.mark.parametrize("stride", [37, pytest.param(100, marks=pytest.mark.slow), 512])
@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.slow
def test_every_kind_of_run_is_cut_at_every_stride(version: str, stride: int) -> None:
    rng = np.random.default_rng(stride)
    rows = 2_000
    numbers = runs(rng, rows)
    gaps = rng.random(rows) < 0.3
    columns: dict[str, Any] = {
        **numbers,
        **{f"{name}, nulls": pa.array(values, mask=gaps) for name, values in numbers.items()},
        "small": pa.array(numbers["in turn"] % 2**15, pa.int16()),
        "day": pa.array(numbers["in turn"] % 2**15, pa.int32(), mask=gaps).view(pa.date32()),
    }
    for name in ("constant", "long repeats", "few bits", "signed", "in turn"):
        columns[f"bytes {name}"] = pa.array(numbers[name] % 128, pa.int8())
        columns[f"bytes {name}, nulls"] = pa.array(numbers[name] % 128, pa.int8(), mask=gaps)
        columns[f"bits {name}"] = numbers[name] % 2 == 0
        columns[f"bits {name}, nulls"] = pa.array(numbers[name] % 2 == 0, mask=gaps)
    data = orc_bytes(pa.table(columns), file_version=version, row_index_stride=stride)
    expected, layout = pyarrow_orc(data), layout_of(data)
    assert len(layout.strides()) == -(-rows // stride)
    assert_whole(data, expected)
    strides = layout.strides()
    for rows_in in [*strides[:3], *strides[6::7], strides[-1]]:
        window = fs.scan(data).skip(rows_in.start).head(len(rows_in))
        assert_same_rows(window.to_arrow(), expected.slice(rows_in.start, len(rows_in)))
    # Pieces between strides that are left out.
    chosen = [row for rows_in in strides[1::4] for row in rows_in[:3]]
    assert_same_rows(fs.scan(data).select_rows(chosen).to_arrow(), expected.take(chosen))


@pytest.mark.parametrize("stride", [1, 8, ROWS, 10_000])
def test_strides_of_any_length(stride: int) -> None:
    table = flat_columns().select(["c0", "c4", "c8", "c15", "c18", "unique", "n"])
    data = orc_bytes(table, row_index_stride=stride, stripe_rows=250)
    assert layout_of(data).stride == stride
    some = range(0, ROWS, 61)
    expected = pyarrow_orc(data)
    assert_whole(data, expected)
    for start in some:
        window = fs.scan(data).skip(start).head(5).to_arrow()
        assert_same_rows(window, expected.slice(start, 5))
    assert_chosen_rows(data, expected, layout_of(data), 20)


@pytest.mark.parametrize("nulls", ["first", "last", "in the middle", "every other stride"])
def test_whole_strides_of_nulls(nulls: str) -> None:
    stride = np.arange(ROWS) // 50
    gaps = {
        "first": stride < 4,
        "last": stride > 9,
        "in the middle": (stride > 3) & (stride < 11),
        "every other stride": stride % 2 == 0,
    }[nulls]
    rng = np.random.default_rng(2)
    arrays = {}
    for kind in (pa.bool_(), pa.int8(), pa.int64(), pa.float64(), pa.string(), pa.decimal128(9, 2)):
        values = values_of(kind, ROWS, 0.0, rng).to_pylist()
        filled = [None if gap else value for gap, value in zip(gaps, values, strict=True)]
        arrays[str(kind)] = pa.array(filled, kind)
    arrays["list"] = pa.array([None if gap else [1, 2] for gap in gaps])
    arrays["struct"] = pa.array([None if gap else {"a": at} for at, gap in enumerate(gaps)])
    data = orc_bytes(
        pa.table(arrays),
        row_index_stride=50,
        stripe_rows=250,
        dictionary_key_size_threshold=float(nulls == "last"),
    )
    if nulls == "last":
        # Until the first null there is no stream that says which values are there.
        first, *_, last = layout_of(data).stripes
        assert Kind.PRESENT not in {stream.kind for stream in first.streams}
        assert Kind.PRESENT in {stream.kind for stream in last.streams}
    assert_written(data)


@pytest.mark.parametrize(
    "compression", ["uncompressed", "zlib", pytest.param("lz4", marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_long_strings(compression: str) -> None:
    rng = np.random.default_rng(4)
    # Longer than a chunk of a compressed stream, which has 64 KB.
    lengths = rng.choice([0, 1, 100, 5_000, 70_000, 150_000], size=60)
    text = ["".join(map(chr, rng.integers(97, 123, size=length))) for length in lengths]
    columns = {"text": text, "bytes": [rng.bytes(length) for length in lengths], "n": range(60)}
    for threshold in (0.0, 1.0):
        data = orc_bytes(
            pa.table(columns),
            compression=compression,
            row_index_stride=7,
            dictionary_key_size_threshold=threshold,
        )
        expected = pyarrow_orc(data)
        assert_same_rows(expected, pa.table(columns))
        assert_whole(data, expected)
        assert_every_stride(data, expected, layout_of(data))
        assert_same_rows(fs.scan(data).take([59, 0, 33]), expected.take([59, 0, 33]))


def test_floats_keep_every_bit() -> None:
    rng = np.random.default_rng(11)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1.5]
    bits = np.concatenate([rng.integers(2**62, size=300).view(np.float64), odd])
    narrow = rng.integers(2**31, size=307, dtype=np.int32).view(np.float32)
    data = orc_bytes(pa.table({"double": bits, "float": narrow}), row_index_stride=20)
    assert_written(data)


ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")


@pytest.mark.parametrize("zone", ZONES)
def test_timestamps_are_wall_clocks_or_instants_whatever_the_zone_of_the_writer(zone: str) -> None:
    writer = ZoneInfo(zone)
    # The hours around the changes of summer time among them, and times before 1970.
    walls = [
        *(dt.datetime(2021, 11, 7, 0, 30) + dt.timedelta(minutes=30 * at) for at in range(6)),
        *(dt.datetime(2021, 3, 14) + dt.timedelta(hours=at) for at in range(6)),
        *(dt.datetime(1900 + at, 7, 1 + at % 28, 12, 0, 0, at * 1_001) for at in range(130)),
    ]
    seen = [wall.replace(tzinfo=writer) for wall in walls]
    data = pyorc_bytes(
        "struct<wall:timestamp,instant:timestamp with local time zone>",
        [(None, None) if at % 9 == 8 else (time, time) for at, time in enumerate(seen)],
        timezone=writer,
        row_index_stride=10,
    )
    table = fs.scan(data).to_arrow()
    assert table.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC")]
    calm = [at for at in range(12, len(walls)) if at % 9 != 8]
    taken = fs.scan(data).take(calm)
    stored = taken["wall"].cast(pa.timestamp("us")).to_pylist()
    assert stored == [walls[at] for at in calm]
    instants = taken["instant"].cast(pa.timestamp("us", "UTC")).to_pylist()
    assert instants == [seen[at].astimezone(dt.UTC) for at in calm]
    assert_written(data)


def test_wall_clocks_do_not_depend_on_the_zone_of_the_reader() -> None:
    walls = [dt.datetime(2020, 1 + at % 12, 1, 2, 30, tzinfo=dt.UTC) for at in range(60)]
    data = pyorc_bytes(
        "struct<wall:timestamp,instant:timestamp with local time zone>",
        [(wall, wall) for wall in walls],
        row_index_stride=7,
    )
    scan = fs.scan(data).skip(31).head(9)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).to_arrow())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(scan),
        env={**os.environ, "TZ": "America/Los_Angeles"},
        capture_output=True,
    )
    assert run.stdout.decode().strip() == str(scan.to_arrow()).strip(), run.stderr
    assert scan.to_arrow()["wall"].to_pylist() == [w.replace(tzinfo=None) for w in walls[31:40]]


def test_times_beyond_nanoseconds_raise_where_they_are() -> None:
    times = [dt.datetime(2020 if at < 50 else 3000, 1, 1, tzinfo=dt.UTC) for at in range(60)]
    data = pyorc_bytes("struct<n:int,at:timestamp>", enumerate(times), row_index_stride=10)
    with pytest.raises(pa.ArrowInvalid, match="out of range"):
        pyarrow_orc(data)
    with pytest.raises(fs.FileFormatError, match="'at'"):
        fs.scan(data).to_arrow()
    with pytest.raises(fs.FileFormatError, match="'at'"):
        fs.scan(data).skip(55).head(1).to_arrow()
    assert fs.scan(data).skip(20).head(2).to_arrow()["n"].to_pylist() == [20, 21]
    assert fs.scan(data).select("n").skip(55).to_arrow()["n"].to_pylist() == [*range(55, 60)]


def pyorc_rows(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(count)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    return [
        (
            maybe("ab"[: number % 3]),
            maybe(f"long text {number}"),
            maybe(dt.date(1850, 1, 1) + dt.timedelta(days=97 * number)),
            maybe(number % 256 - 128),
            maybe(Decimal(number * 7_919 % 10**5) / 100),
            maybe(Decimal(rng.getrandbits(100) - 2**99).scaleb(-10)),
            maybe(rng.random() < 0.5),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_types_that_pyarrow_does_not_write(compression: str) -> None:
    kinds = (
        "char(5)",
        "varchar(8)",
        "date",
        "tinyint",
        "decimal(7,2)",
        "decimal(38,10)",
        "boolean",
    )
    schema = ",".join(f"c{at}:{kind}" for at, kind in enumerate(kinds))
    for threshold in (0.0, 1.0):
        data = pyorc_bytes(
            f"struct<{schema}>",
            pyorc_rows(300),
            dict_key_size_threshold=threshold,
            **small_chunks(256, compression, row_index_stride=23),
        )
        assert fs.scan(data).schema.types == [
            *(pa.string(), pa.string(), pa.date32(), pa.int8()),
            *(pa.decimal128(7, 2), pa.decimal128(38, 10), pa.bool_()),
        ]
        assert_written(data)


UNIONS: dict[str, tuple[str, list[Any]]] = {
    "flat": ("uniontype<int,string,double>", [1, "x", 2.5, None, "yy"]),
    "in a list": ("array<uniontype<int,string>>", [[1, "a", None], [], None, ["b"]]),
    "in a struct": ("struct<a:int,u:uniontype<bigint,string>>", [(1, "x"), (2, 3), None]),
    # No nulls: liborc does not read them back where a part of the union is a list.
    "of lists": ("uniontype<array<int>,string>", [[1, 2], "x", [], "yy"]),
}


@pytest.mark.parametrize("shape", UNIONS)
def test_unions(shape: str) -> None:
    kind, values = UNIONS[shape]
    rows = [(number, values[number * number % 11 % len(values)]) for number in range(200)]
    data = pyorc_bytes(f"struct<n:int,u:{kind}>", rows, row_index_stride=15)
    assert_written(data, limit=8)
    expected = pyarrow_orc(data)
    assert_same_rows(fs.scan(data).select("n").skip(31).to_arrow(), expected.select(["n"])[31:])
    assert_same_rows(fs.scan(data).select("u").skip(31).to_arrow(), expected.select(["u"])[31:])
    found = [row.as_dict() for row in fs.scan(data).skip(31).head(9).rows()]
    assert found == expected[31:40].to_pylist()


# Nested columns


@cache
def nested_file(seed: int) -> bytes:
    options: dict[str, Any] = {
        "compression": COMPRESSIONS[seed % len(COMPRESSIONS)],
        "file_version": "0.11" if seed % 3 == 0 else "0.12",
        "dictionary_key_size_threshold": float(seed % 2),
        "row_index_stride": (21, 16, 30)[seed % 3],
    }
    table = nested_table(seed, rows=240, columns=3, depth=3, kinds=KINDS)
    return orc_bytes(table, stripe_rows=100 if seed % 2 else None, **options)


seeds = pytest.mark.parametrize("seed", range(8))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_nested_tables_at_every_position(seed: int) -> None:
    assert_written(nested_file(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 4 + 10 * MORE))
def test_more_nested_tables_at_every_position(seed: int) -> None:
    data = nested_file(seed)
    assert_written(data, limit=30)
    assert_stripes(data, pyarrow_orc(data), layout_of(data))


@pytest.mark.parametrize("seed", [8, 10, 12, 18, 46, 52, 64, 67, 69, 70, 73])
@pytest.mark.slow
def test_positions_that_count_values_below_null_structs_are_no_error(seed: int) -> None:
    # pyarrow writes what null structs hide and counts it in the positions; readers do not. The
    # counts of these files show it.
    sink = io.BytesIO()
    table = nested_table(seed, rows=240, columns=3, depth=3, kinds=KINDS)
    orc.write_table(table, sink, row_index_stride=16, file_version="0.12")
    data = sink.getvalue()
    assert_every_stride(data, pyarrow_orc(data), layout_of(data))


NO_FIXED = tuple(kind for kind in LEAVES if pa.types.is_primitive(kind) or kind in ORC_NAMES)


def nested_by_pyorc(seed: int) -> bytes:
    leaves = tuple(k for k in NO_FIXED if not pa.types.is_timestamp(k) or k.unit == "us")
    table = nested_table(seed, rows=240, columns=3, depth=3, kinds=Kinds(leaves, KINDS.branches))
    options = {"row_index_stride": (9, 20)[seed % 2], "stripe_size": 3_000, "batch_size": 50}
    chunks = small_chunks((32, 64, 300)[seed % 3], COMPRESSIONS[seed % len(COMPRESSIONS)])
    return pyorc_table(table, dict_key_size_threshold=float(seed % 4 == 1), **chunks, **options)


@pytest.mark.parametrize(
    "seed",
    [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 2 + 8 * MORE))],
)
@pytest.mark.slow
def test_nested_tables_in_small_chunks(seed: int) -> None:
    assert_written(nested_by_pyorc(seed))


@seeds
def test_random_projections_of_nested_tables(seed: int) -> None:
    data = nested_file(seed)
    whole = pyarrow_orc(data)
    rng = random.Random(seed)
    everywhere = [path for item in whole.schema for path in paths(item)]
    for _ in range(5):
        chosen = [rng.choice(everywhere) for _ in range(rng.randint(1, 4))]
        # A map that is cut to its keys has no type in Arrow.
        chosen = [path for path in chosen if path[-1] != "key"] or [("row",)]
        columns = [".".join(path) if rng.random() < 0.5 else path for path in chosen]
        start, length = rng.randrange(240), rng.choice([1, 20, 240])
        window = fs.scan(data).select(*columns).skip(start).head(length)
        assert_projection(window.to_arrow(), whole.slice(start, length), tree_of(chosen))


@seeds
@pytest.mark.slow
def test_leaves_of_nested_tables_are_rebuilt_from_their_layers(seed: int) -> None:
    data = nested_file(seed)
    start, length = seed * 11 % 200, 35
    whole = pyarrow_orc(data)
    expected = whole.slice(start, length)
    scan = fs.scan(data).skip(start).head(length)
    size = (None, 1, 8)[seed % 3]
    together = list(scan.columns(batch_size=size))
    assert sum(batch.record_count for batch in together) == length
    for leaf in leaves_of(whole.schema):
        values = expected[leaf.path[0]].to_pylist()
        batches = list(scan.column(leaf.path, batch_size=size))
        assert_rebuilt(batches, leaf, values)
        assert_arrow(batches, leaf, values)
        assert_rebuilt([batch[leaf.path] for batch in together], leaf, values)


@seeds
def test_rows_of_nested_tables(seed: int) -> None:
    data = nested_file(seed)
    start = seed * 13 % 200
    expected = expected_rows(pyarrow_orc(data).slice(start, 25))
    assert_rows(fs.scan(data).skip(start).head(25).rows(), expected)
    assert_rows(fs.scan(data).skip(start).head(25), expected)


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.slow
def test_long_lists(version: str) -> None:
    rng = np.random.default_rng(13)
    lengths = rng.choice([0, 1, 700, 3_000], size=40, p=[0.2, 0.3, 0.3, 0.2])
    values = [rng.integers(0, 10, size=length).tolist() for length in lengths]
    table = pa.table(
        {
            "numbers": values,
            "flags": [[value % 2 == 0 for value in items] for items in values],
            "texts": [[None if v == 3 else f"t{v}" for v in items] for items in values],
            "maps": pa.array(
                [list(enumerate(items)) for items in values], pa.map_(pa.int32(), pa.int64())
            ),
            "deep": [[items[:5], None, items] for items in values],
        }
    )
    data = orc_bytes(table, row_index_stride=3, file_version=version, compression="zlib")
    assert_written(data, limit=2)


@pytest.mark.slow
def test_null_and_empty_at_every_level() -> None:
    kind = pa.list_(pa.struct({"a": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.string())}))
    values: list[Any] = [
        *(None, [], [None], [{"a": None, "m": None}], [{"a": [], "m": []}]),
        *([{"a": [None], "m": [("k", None)]}], [{"a": [1, None, 2], "m": [("k", "v"), ("l", "")]}]),
        *([None, {"a": [3], "m": None}, None], [{"a": None, "m": [("x", "y")]}, None]),
    ]
    order = random.Random(1).choices(range(len(values)), k=300)
    table = pa.table({"x": pa.array([values[at] for at in order], kind), "n": range(300)})
    for compression in ("uncompressed", "zlib"):
        data = orc_bytes(table, row_index_stride=23, compression=compression)
        assert fs.scan(data).to_arrow()["x"].to_pylist() == [values[at] for at in order]
        assert_written(data)


ORDERS = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.struct({"b": pa.int64(), "c": pa.string(), "d": pa.struct({"e": pa.int8()})})),
        ("items", pa.list_(pa.struct({"price": pa.float64(), "name": pa.string()}))),
        ("attrs", pa.map_(pa.string(), pa.struct({"x": pa.int64(), "y": pa.string()}))),
        ("deep", pa.list_(pa.list_(pa.struct({"x": pa.int64(), "y": pa.bool_()})))),
        ("p.q", pa.int64()),
        ("p", pa.struct({"q": pa.string(), "r": pa.string()})),
    ]
)


@cache
def orders() -> tuple[bytes, pa.Table]:
    rng = np.random.default_rng(5)
    arrays = [nested_array(f.type, 240, rng, nullable=f.nullable) for f in ORDERS]
    data = orc_bytes(pa.table(arrays, schema=ORDERS), row_index_stride=16)
    return data, pyarrow_orc(data)


PATHS: list[tuple[list[Any], dict[str, Tree]]] = [
    (["a"], {"a": None}),
    (["a.b"], {"a": {"b": None}}),
    (["a.d.e"], {"a": {"d": {"e": None}}}),
    ([("a", "c")], {"a": {"c": None}}),
    (["a.b", "id", "a.d.e"], {"a": {"b": None, "d": {"e": None}}, "id": None}),
    (["items.element.price"], {"items": {"element": {"price": None}}}),
    (["items.price"], {"items": {"element": {"price": None}}}),
    (["items.price", "a.c", "items.name"], {"items": None, "a": {"c": None}}),
    ([("items", "element", "name")], {"items": {"element": {"name": None}}}),
    (["items.element"], {"items": None}),
    (["attrs.value.x"], {"attrs": {"value": {"x": None}}}),
    (["attrs.x"], {"attrs": {"value": {"x": None}}}),
    (["attrs.value"], {"attrs": None}),
    (["deep.element.element.x"], {"deep": {"element": {"element": {"x": None}}}}),
    (["deep.x"], {"deep": {"element": {"element": {"x": None}}}}),
    (["p.q"], {"p.q": None}),
    ([("p", "q")], {"p": {"q": None}}),
    (["p.r", "p.q"], {"p": {"r": None}, "p.q": None}),
]


@pytest.mark.parametrize(("columns", "tree"), PATHS, ids=str)
def test_paths_give_structs_with_just_the_chosen_fields(
    columns: list[Any], tree: dict[str, Tree]
) -> None:
    data, whole = orders()
    scan = fs.scan(data).select(*columns)
    assert scan.schema.names == list(tree)
    assert_projection(scan.to_arrow(), whole, tree)
    assert_projection(scan.skip(33).head(7).to_arrow(), whole.slice(33, 7), tree)


@pytest.mark.parametrize(
    "column", ["b", "a.x", "items.x", "a.element", "attrs.z", "items.key", "", ("a.b",)]
)
def test_unknown_paths_raise_before_any_data_is_read(column: str | tuple[str, ...]) -> None:
    data, _ = orders()
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError):
        fs.scan(data).select("id", column).to_arrow()
    assert trace.data_bytes == 0


def test_the_schema_of_nested_columns() -> None:
    data, whole = orders()
    with fs.open(data) as file:
        for node, item in zip(file.schema.children, whole.schema, strict=True):
            check_against_arrow(node, item, (item.name,))


# What a file may look like


def test_files_without_rows() -> None:
    expected = flat_columns().slice(0, 0)
    data = orc_bytes(expected)
    wanted = pyarrow_orc(data)
    scan = fs.scan(data)
    with fs.open(data) as file:
        assert (file.num_rows, list(file.blocks)) == (0, [])
    for empty in (scan, scan.skip(1), scan.head(3), scan.tail(3), scan.select_rows([])):
        assert_same_rows(empty.to_arrow(), wanted)
        assert empty.count() == 0
    assert_same_rows(scan.take([]), wanted)
    assert list(scan.rows()) == []
    assert list(scan.column("n")) == []


def test_rows_without_columns() -> None:
    data = orc_bytes(flat_columns().select(["n"]), row_index_stride=50, stripe_rows=250)
    scan = fs.scan(data).select()
    assert scan.to_arrow().num_rows == scan.count() == ROWS
    assert scan.skip(650).to_arrow().num_rows == 50
    assert scan.take([3, 3, 600]).num_rows == 3
    assert scan.with_row_index().skip(698).to_arrow().to_pydict() == {"index": [698, 699]}


def test_a_file_of_an_empty_struct_has_its_rows() -> None:
    data = pyorc_bytes("struct<>", [()] * 30)
    assert fs.scan(data).count() == fs.scan(data).to_arrow().num_rows == 30
    assert fs.scan(data).skip(20).head(3).to_arrow().num_rows == 3


@pytest.mark.parametrize("schema", ["bigint", "array<int>", "map<int,int>"])
def test_a_file_without_a_struct_on_top_raises(schema: str) -> None:
    row = {"bigint": 1, "array<int>": [1], "map<int,int>": {1: 1}}[schema]
    with pytest.raises(fs.FileFormatError, match="struct"):
        fs.scan(pyorc_bytes(schema, [row])).to_arrow()


def test_metadata_is_that_of_pyarrow() -> None:
    data = pyorc_bytes("struct<a:int>", [(1,)], metadata={"owner": b"a test"})
    with fs.open(data) as file:
        assert file.metadata == {b"owner": b"a test"}
    assert fs.scan(data).schema.metadata == {b"owner": b"a test"}
    assert fs.scan(data).to_arrow().schema.equals(pyarrow_orc(data).schema, check_metadata=True)


def test_attributes_of_columns_are_their_metadata() -> None:
    item = pa.field("a", pa.int64(), metadata={"unit": "mm"})
    data = orc_bytes(pa.table({"a": range(90)}, schema=pa.schema([item])), row_index_stride=10)
    assert pyarrow_orc(data).schema.field("a").metadata == {b"unit": b"mm"}
    window = fs.scan(data).skip(31).head(2).to_arrow()
    assert window.schema.field("a").metadata == {b"unit": b"mm"}


def test_names_with_dots_and_names_that_repeat() -> None:
    names = ["a.b", "a", "", "\n", "ünï", "a`b", "twice", "twice"]
    table = pa.table([pa.array(range(i, i + 90)) for i in range(8)], names=names)
    data = orc_bytes(table, row_index_stride=10)
    assert pyarrow_orc(data).column_names == names
    assert_same(fs.scan(data).skip(38).head(4).to_arrow(), table[38:42])
    chosen = fs.scan(data).select("", "a.b", "ünï").tail(60).to_arrow()
    assert_same_rows(chosen, table.select(["", "a.b", "ünï"])[30:])


def test_the_number_of_rows_is_the_sum_over_the_stripes() -> None:
    honest = small_file()
    for claimed in (0, 1, ROWS - 1, 2_000):
        data = with_row_count(honest, claimed)
        assert orc.ORCFile(io.BytesIO(data)).nrows == claimed
        with fs.open(data) as file:
            assert file.num_rows == ROWS
        assert fs.scan(data).count() == ROWS
        assert_same_rows(fs.scan(data).skip(ROWS - 5).to_arrow(), pyarrow_orc(honest)[-5:])


def test_bloom_filters_are_passed_over() -> None:
    table = flat_columns().select(["n", "c18"])
    data = orc_bytes(table, row_index_stride=50, bloom_filter_columns=[1, 2])
    [stripe] = layout_of(data).stripes
    blooms = [s.span for s in stripe.streams if s.kind is Kind.BLOOM_FILTER_UTF8]
    assert len(blooms) == 2
    assert_written(data)
    with traced(data) as (scan, trace):
        scan.skip(120).head(5).to_arrow()
    assert "Bloom filter" not in {read.why for read in trace.log}


@pytest.mark.slow
@given(
    rows=st.integers(0, 120),
    stripe=st.integers(1, 60),
    stride=st.integers(1, 40),
    version=st.sampled_from(["0.11", "0.12"]),
    skip=st.integers(0, 130),
    length=st.integers(0, 130),
)
@settings(max_examples=60)
def test_any_window_of_any_layout(
    rows: int, stripe: int, stride: int, version: str, skip: int, length: int
) -> None:
    table = flat_columns().select(["n", "c18", "c0", "c7"]).slice(0, rows)
    data = orc_bytes(table, stripe_rows=stripe, row_index_stride=stride, file_version=version)
    expected = pyarrow_orc(data)
    scan = fs.scan(data).with_row_index("row")
    window = scan.skip(skip).head(length).to_arrow()
    assert window.column_names == ["row", "n", "c18", "c0", "c7"]
    assert window["row"].type == pa.int64()
    assert window["row"].to_pylist() == list(range(rows))[skip : skip + length]
    assert_same_rows(window.drop_columns(["row"]), expected.slice(skip, length))
    tail = scan.tail(length).to_arrow().drop_columns(["row"])
    assert_same_rows(tail, expected.slice(max(0, rows - length)))
    assert scan.skip(skip).head(length).count() == window.num_rows


# Sources and results


@cache
def small_file() -> bytes:
    table = flat_columns().select(["n", "c18", "c6", "unique"])
    return orc_bytes(table, row_index_stride=STRIDE, stripe_rows=STRIPE)


def test_sources_of_every_kind(tmp_path: Path) -> None:
    data = small_file()
    expected = pyarrow_orc(data)
    path = tmp_path / "a file.parquet"
    path.write_bytes(data)
    with path.open("rb") as opened:
        sources: list[Any] = [path, str(path), path.as_uri(), data, bytearray(data)]
        for source in (*sources, memoryview(data), io.BytesIO(data), opened):
            assert_same_rows(fs.scan(source).skip(290).head(20).to_arrow(), expected[290:310])
            with fs.open(source) as file:
                assert file.format == "orc"
                assert_same_rows(file.scan().tail(3).to_arrow(), expected[-3:])
        assert not opened.closed


def test_scans_can_be_pickled_and_run_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "data.orc"
    path.write_bytes(small_file())
    code = "import pickle, sys; s = pickle.load(sys.stdin.buffer); print(s.to_arrow()['n'])"
    for source in (path, small_file()):
        scan = fs.scan(source).select("c18", "n").skip(299).head(2)
        pickled = pickle.dumps(scan)
        assert_same_rows(pickle.loads(pickled).to_arrow(), scan.to_arrow())
    run = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True)
    assert run.stdout.decode().split() == str(scan.to_arrow()["n"]).split(), run.stderr
    splits = fs.scan(path).splits(target_bytes=5_000)
    assert len(splits) > 1
    copies: list[fs.Scan] = pickle.loads(pickle.dumps(splits))
    tables = [copy.to_arrow() for copy in copies]
    assert_same_rows(pa.concat_tables(tables), pyarrow_orc(small_file()))
    with path.open("rb") as opened, pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(fs.scan(opened))


def test_streams_and_frames() -> None:
    scan, expected = fs.scan(small_file()).skip(290).head(30), pyarrow_orc(small_file())[290:320]
    assert_same_rows(scan.to_reader().read_all(), expected)
    assert_same_rows(pa.table(scan), expected)
    assert scan.to_polars().equals(pl.DataFrame(expected))
    assert scan.to_pandas().equals(expected.to_pandas())


@pytest.mark.parametrize("size", [1, 16, 1_000])
def test_batches_are_capped_and_complete(size: int) -> None:
    scan = fs.scan(small_file()).skip(5).head(400)
    batches = list(scan.batches(batch_size=size))
    assert all(0 < batch.num_rows <= size for batch in batches)
    assert_same_rows(pa.Table.from_batches(batches), pyarrow_orc(small_file())[5:405])


def test_row_index_is_the_physical_row() -> None:
    scan = fs.scan(small_file()).select("n").with_row_index("row")
    wanted = [5, 299, 300, 301, 650]
    assert scan.select_rows(wanted).to_arrow().to_pydict() == {"row": wanted, "n": wanted}
    second = scan.filter(fs.blocks(1, 2)).skip(1).head(2).to_arrow()
    assert second.to_pydict() == {"row": [301, 302], "n": [301, 302]}
    assert scan.take([9, 650, 9]).to_pydict() == {"row": [9, 650, 9], "n": [9, 650, 9]}


# Several files, of one format or of both


def numbered(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "n": pa.array(ids, pa.int64()),
            "x": pa.array([None if i % 7 == 0 else i / 3 for i in ids], pa.float64()),
            "s": pa.array([None if i % 5 == 0 else f"s{i % 40}" for i in ids], pa.string()),
        }
    )


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_index=True, **options)
    return sink.getvalue()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Five files, of Parquet and of ORC in turn, whose names say nothing; 100 rows each."""
    for at in range(5):
        table = numbered(100 * at, 100)
        small = {"row_group_size": 30, "max_rows_per_page": 7}
        parquet, in_orc = parquet_bytes(table, **small), orc_bytes(table, row_index_stride=7)
        (tmp_path / f"{at}.data").write_bytes(in_orc if at % 2 else parquet)
    (tmp_path / "readme.txt").write_text("neither Parquet nor ORC, and longer than twelve bytes")
    return tmp_path


def test_parquet_and_orc_in_one_scan(lake: Path) -> None:
    expected = numbered(0, 500)
    scan = fs.scan(lake)
    assert_same_rows(scan.to_arrow(), expected)
    for start in (0, 95, 99, 100, 199, 250, 499):
        for length in (1, 5, 120):
            window = scan.skip(start).head(length).to_arrow()
            assert_same_rows(window, expected.slice(start, length))
        assert_same_rows(scan.tail(500 - start).to_arrow(), expected.slice(start))
    rows = [3, 99, 100, 150, 299, 300, 499]
    assert_same_rows(scan.select_rows(rows).to_arrow(), expected.take(rows))
    assert_same_rows(scan.take([*rows[::-1], 3]), expected.take([*rows[::-1], 3]))
    assert scan.count() == 500
    for target in (1, 2_000, 2**40):
        parts = [split.to_arrow() for split in scan.splits(target_bytes=target)]
        assert_same_rows(pa.concat_tables(parts), expected)
    first = scan.filter(fs.blocks(0, 1)).select("n").to_arrow()["n"].to_pylist()
    assert first == [*range(30), *range(100, 200), *range(200, 230), *range(300, 430)]


def test_readers_of_parquet_and_orc_in_one_scan(lake: Path) -> None:
    expected = numbered(0, 500).slice(80, 250)
    scan = fs.scan(lake).skip(80).head(250)
    assert_rows(scan.rows(), expected_rows(expected))
    for leaf in leaves_of(expected.schema):
        batches = list(scan.column(leaf.path))
        assert_rebuilt(batches, leaf, expected[leaf.path[0]].to_pylist())
    assert_same_rows(pa.Table.from_batches(scan.batches(17)), expected)


def test_nested_columns_of_both_formats() -> None:
    table = pa.table(
        {
            "items": pa.array([[{"a": 1, "b": "x"}], None, []] * 20),
            "attrs": pa.array([[("k", 1.5)], [], None] * 20, pa.map_(pa.string(), pa.float64())),
        }
    )
    sources = [parquet_bytes(table), orc_bytes(table, row_index_stride=7)]
    for scan in (fs.scan(sources), fs.scan(sources[::-1])):
        assert scan.to_arrow().to_pylist() == table.to_pylist() * 2
        window = scan.select("items.b").skip(50).head(30).to_arrow()
        wanted = fs.scan(sources[:1] * 2).select("items.b").skip(50).head(30).to_arrow()
        assert window.to_pylist() == wanted.to_pylist()
        assert scan.schema.equals(scan.to_arrow().schema)


def test_file_paths_and_row_numbers(lake: Path) -> None:
    scan = fs.scan(lake).select("n").with_row_index().with_file_path()
    table = scan.skip(98).head(4).to_arrow()
    assert table["index"].to_pylist() == table["n"].to_pylist() == [98, 99, 100, 101]
    assert [Path(path).name for path in table["path"].to_pylist()] == ["0.data"] * 2 + [
        "1.data"
    ] * 2


def test_lists_of_orc_files_in_any_order_and_form(lake: Path) -> None:
    one, three = lake / "1.data", lake / "3.data"
    scan = fs.scan([three, one.read_bytes(), str(one)])
    numbers = [*range(300, 400), *range(100, 200), *range(100, 200)]
    assert scan.to_arrow()["n"].to_pylist() == numbers
    assert scan.skip(98).head(4).to_arrow()["n"].to_pylist() == numbers[98:102]


@pytest.mark.parametrize(
    ("in_parquet", "in_orc"),
    [
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.int32()),
        (pa.float32(), pa.float64()),
        (pa.string(), pa.binary()),
        (pa.string(), pa.int64()),
        (pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ns")),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
    ],
    ids=str,
)
def test_types_that_differ_between_formats_are_a_mismatch(
    in_parquet: pa.DataType, in_orc: pa.DataType
) -> None:
    one = parquet_bytes(pa.table({"a": [1], "v": pa.nulls(1, in_parquet)}))
    two = orc_bytes(pa.table({"a": [2], "v": pa.nulls(1, in_orc)}))
    for sources in ([one, two], [two, one]):
        with pytest.raises(fs.SchemaMismatchError, match="v"):
            fs.scan(sources).to_arrow()
        assert sorted(fs.scan(sources).select("a").to_arrow()["a"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("formats", ["orc orc", "orc parquet", "parquet orc"])
def test_missing_columns_are_null_or_a_mismatch(formats: str, tmp_path: Path) -> None:
    write = {"orc": orc_bytes, "parquet": parquet_bytes}
    first, second = (write[name] for name in formats.split())
    (tmp_path / "1").write_bytes(first(numbered(0, 50)))
    (tmp_path / "2").write_bytes(second(numbered(50, 50).select(["s", "n"])))
    with pytest.raises(fs.SchemaMismatchError, match="x"):
        fs.scan(tmp_path).to_arrow()
    table = fs.scan(tmp_path, missing="null").skip(40).to_arrow()
    whole = numbered(0, 100)
    gone = pa.concat_arrays([whole["x"].combine_chunks()[:50], pa.nulls(50, pa.float64())])
    assert_same_rows(table, whole.set_column(1, "x", gone).slice(40))


def test_hive_folders_of_both_formats(tmp_path: Path) -> None:
    for year, write in ((2023, orc_bytes), (2024, parquet_bytes), (2025, orc_bytes)):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        (folder / "part-0").write_bytes(write(numbered(10 * year, 20)))
        (folder / "_SUCCESS").write_bytes(b"")
    scan = fs.scan(tmp_path)
    table = scan.to_arrow()
    assert table.schema.field("year").type == pa.int64()
    assert table["year"].to_pylist() == [2023] * 20 + [2024] * 20 + [2025] * 20
    assert [n // 10 for n in table["n"].to_pylist()[::20]] == [2023, 2024, 2025]
    assert_same_rows(scan.skip(18).head(30).to_arrow(), table.slice(18, 30))
    assert_same_rows(scan.select("year", "n").tail(25).to_arrow(), table.select(["year", "n"])[35:])


# Work


LARGE = 400_000
LARGE_STRIDE = 10_000


@cache
def large_file(compression: str = "uncompressed") -> bytes:
    """One stripe of 40 strides; a column is far larger than what it pays to read in one go."""
    rng = np.random.default_rng(9)
    columns = {
        "n": rng.permutation(LARGE),
        "x": rng.normal(size=LARGE),
        "s": pa.array(rng.integers(10**9, size=LARGE)).cast(pa.string()),
        "small": rng.integers(0, 2_000, size=LARGE),
    }
    return orc_bytes(pa.table(columns), row_index_stride=LARGE_STRIDE, compression=compression)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib"])
@pytest.mark.parametrize(
    ("start", "strides"), [(205_000, 1), (209_500, 2), (0, 1), (399_000, 1), (210_000, 1)]
)
def test_a_window_decodes_only_the_strides_that_hold_it(
    start: int, strides: int, compression: str
) -> None:
    data = large_file(compression)
    [stripe] = layout_of(data).stripes
    expected = pyarrow_orc(data).select(["n"])
    with traced(data) as (scan, trace):
        window = scan.select("n").skip(start).head(1_000).to_arrow()
    assert_same_rows(window, expected.slice(start, 1_000))
    assert trace.fallbacks == []
    assert trace.pages_decoded == strides
    assert 1_000 <= trace.rows_decoded <= strides * LARGE_STRIDE
    assert_data_only_from(trace, stripe.data(1))
    share = size_of(stripe.data(1)) * strides // 40
    # A stride begins and ends within a chunk of 64 KB.
    assert trace.data_bytes <= share + 3 * 65_536
    indexes = [s.span for s in stripe.streams if s.kind is Kind.ROW_INDEX]
    assert 0 < trace.index_bytes <= size_of(indexes) + 10_000


def test_each_leaf_is_decoded_for_its_strides_only() -> None:
    data = large_file()
    expected = pyarrow_orc(data)
    with traced(data) as (scan, trace):
        window = scan.skip(123_400).head(100).to_arrow()
    assert_same_rows(window, expected.slice(123_400, 100))
    assert trace.pages_decoded == 4
    assert 400 <= trace.rows_decoded <= 4 * LARGE_STRIDE
    assert trace.bytes_read < len(data) / 8
    assert trace.fallbacks == []


def test_scattered_rows_decode_their_strides_only() -> None:
    data = large_file()
    rows = [15, 111_111, 111_112, 250_000, 399_999]
    expected = pyarrow_orc(data).select(["n", "s"]).take(rows)
    uses: tuple[Callable[[fs.Scan], Any], ...] = (
        lambda scan: scan.select_rows(rows).to_arrow(),
        lambda scan: scan.take(rows),
    )
    for use in uses:
        with traced(data) as (scan, trace):
            assert_same_rows(use(scan.select("n", "s")), expected)
        assert trace.pages_decoded == 2 * 4
        assert trace.rows_decoded <= 2 * 4 * LARGE_STRIDE
        assert trace.fallbacks == []


@pytest.mark.parametrize("columns", [("n",), ("s",), ("x", "small"), ("small", "n")], ids="-".join)
def test_columns_that_are_not_selected_are_not_read(columns: tuple[str, ...]) -> None:
    data = large_file()
    [stripe] = layout_of(data).stripes
    ids = [1 + ["n", "x", "s", "small"].index(name) for name in columns]
    uses: tuple[Callable[[fs.Scan], Any], ...] = (
        lambda scan: scan.to_arrow(),
        lambda scan: scan.skip(31_000).head(50).to_arrow(),
        lambda scan: list(scan.columns(batch_size=100_000)),
    )
    for use in uses:
        with traced(data) as (scan, trace):
            use(scan.select(*columns))
        assert_data_only_from(trace, stripe.data(*ids))
        assert trace.data_bytes > 0


@cache
def striped_file() -> bytes:
    """Stripes of 5,000 rows and 100 KB or more."""
    rng = np.random.default_rng(10)
    table = pa.table({"n": rng.permutation(40_000), "x": rng.normal(size=40_000)})
    return orc_bytes(table, row_index_stride=500, stripe_rows=5_000)


STRIPED_USES: dict[str, tuple[Callable[[fs.Scan], Any], set[int]]] = {
    "window": (lambda scan: scan.skip(12_000).head(700).to_arrow(), {2}),
    "window over two": (lambda scan: scan.skip(14_900).head(200).to_arrow(), {2, 3}),
    "tail": (lambda scan: scan.tail(5_100).to_arrow(), {6, 7}),
    "head": (lambda scan: scan.head(3).to_arrow(), {0}),
    "rows": (lambda scan: scan.select_rows([3, 26_000, 39_999]).to_arrow(), {0, 5, 7}),
    "take": (lambda scan: scan.take([26_000, 3, 26_000]), {0, 5}),
    "blocks": (lambda scan: scan.filter(fs.blocks(3, 5)).to_arrow(), {3, 4}),
    "blocks and window": (lambda scan: scan.filter(fs.blocks(3, 5)).skip(6_000).to_arrow(), {4}),
}


@pytest.mark.parametrize("use", STRIPED_USES)
def test_other_stripes_are_not_read(use: str) -> None:
    data = striped_file()
    stripes = layout_of(data).stripes
    assert len(stripes) == 8
    read, wanted = STRIPED_USES[use]
    with traced(data) as (scan, trace):
        read(scan)
    assert trace.fallbacks == []
    assert trace.data_bytes > 0
    assert_data_only_from(trace, [span for at in wanted for span in [stripes[at].span]])
    for at in set(range(8)) - wanted:
        inner = Span(stripes[at].span.start, stripes[at].span.end)
        touched = [r for r in trace.log if inner.overlaps(r.offset, r.length) and r.why != "footer"]
        assert touched == []


def test_byte_ranges_read_their_stripes_only() -> None:
    data = striped_file()
    for stripe in layout_of(data).stripes[::3]:
        with traced(data) as (scan, trace):
            here = fs.byte_range(stripe.midpoint, stripe.midpoint + 1)
            assert scan.filter(here).to_arrow().num_rows == 5_000
        assert_data_only_from(trace, [stripe.span])
        assert trace.rows_decoded == 2 * 5_000


def test_the_whole_file_is_read_and_decoded_once() -> None:
    data = striped_file()
    stripes = layout_of(data).stripes
    with traced(data) as (scan, trace):
        scan.to_arrow()
    assert trace.rows_decoded == 2 * 40_000
    assert trace.fallbacks == []
    assert size_of(s for stripe in stripes for s in stripe.data()) <= trace.data_bytes
    assert trace.data_bytes <= size_of(stripe.span for stripe in stripes)
    assert trace.bytes_read < 1.2 * len(data)


ALL_USES: dict[str, Callable[[fs.Scan], Any]] = {
    **METADATA_USES,
    "whole": lambda scan: scan.to_arrow(),
    "window": lambda scan: scan.skip(250).head(400).to_arrow(),
    "small window": lambda scan: scan.skip(250).head(4).to_arrow(),
    "tail": lambda scan: scan.tail(3).to_arrow(),
    "projection": lambda scan: scan.select("unique", "n").skip(10).to_arrow(),
    "selected rows": lambda scan: scan.select_rows([5, 299, 300, 699]).to_arrow(),
    "take": lambda scan: scan.take([699, 0, 699, 400]),
    "byte range": lambda scan: scan.filter(fs.byte_range(0, 20_000)).to_arrow(),
    "batches": lambda scan: list(scan.skip(5).batches(batch_size=100)),
    "rows": lambda scan: list(scan.skip(5).head(9).rows()),
    "column": lambda scan: list(scan.skip(300).head(9).column("unique")),
    "stream": lambda scan: pa.table(scan),
    "explain": lambda scan: scan.skip(3).explain(),
    "splits": lambda scan: scan.splits(target_bytes=1),
}


@pytest.mark.parametrize("index", [True, False], ids=["row index", "no row index"])
@pytest.mark.parametrize("use", ALL_USES)
def test_the_trace_is_what_the_file_saw(use: str, index: bool) -> None:
    data = small_file() if index else unindexed_file()
    with traced(data) as (scan, trace):
        ALL_USES[use](scan)
    assert trace.footer_bytes > 0
    whys = {"footer", "index", "Bloom filter", "dictionary", "data"}
    assert {read.why for read in trace.log} <= whys


@pytest.mark.parametrize("use", METADATA_USES)
def test_metadata_answers_without_index_or_data(use: str) -> None:
    with traced(small_file()) as (scan, trace):
        METADATA_USES[use](scan)
    assert trace.index_bytes == trace.data_bytes == trace.pages_decoded == trace.rows_decoded == 0


def test_plan_and_explain_say_what_will_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data.orc"
    path.write_bytes(striped_file())
    scan = fs.scan(path).skip(12_100).head(300)
    with fs.trace() as planning:
        plan, text = scan.plan(), scan.explain()
    with fs.trace() as reading:
        scan.to_arrow()
    assert planning.data_bytes == 0
    assert (plan.rows.kept, plan.rows.total) == (300, 40_000)
    assert (plan.block_count.kept, plan.block_count.total) == (1, 8)
    assert (plan.pages.kept, plan.pages.total) == (2, 20)
    assert plan.dropped == {"window": 7}
    assert 0 < plan.bytes.kept < plan.bytes.total / 10
    # Where a run ends is only known once it is read.
    assert plan.bytes.kept <= reading.data_bytes <= plan.bytes.kept + 2 * 10_000
    assert "300 of 40,000" in text
    assert "1 of 8" in text


def test_scans_read_nothing_until_asked(tmp_path: Path) -> None:
    path = tmp_path / "data.orc"
    path.write_bytes(small_file())
    with fs.trace() as trace:
        fs.scan(path).select("n").filter(fs.blocks(0, 1)).select_rows([1, 2]).skip(1).head(1)
    assert trace.requests == 0


def test_an_open_file_reads_its_footer_once() -> None:
    with fs.open(counting(small_file())) as opened, fs.trace() as trace:
        opened.scan().head(3).to_arrow()
        opened.scan().tail(3).to_arrow()
    tail = layout_of(small_file()).stripes[-1].span.end
    assert trace.data_bytes > 0
    assert all(read.offset < tail for read in trace.log)


def test_the_first_rows_do_not_decode_the_file() -> None:
    with fs.trace() as trace:
        rows = list(itertools.islice(fs.scan(striped_file()).rows(), 3))
    assert len(rows) == 3
    assert trace.rows_decoded < 2 * 40_000


@pytest.mark.parametrize("leaf", ["items.element.price", "attrs.value.x", "a.d.e"])
def test_a_nested_leaf_is_decoded_for_its_strides_only(leaf: str) -> None:
    rng = np.random.default_rng(6)
    arrays = [nested_array(f.type, 4_000, rng, nullable=f.nullable) for f in ORDERS]
    data = orc_bytes(pa.table(arrays, schema=ORDERS), row_index_stride=100)
    expected = pyarrow_orc(data).slice(2_050, 40)
    with traced(data) as (scan, trace):
        batches = list(scan.skip(2_050).head(40).column(leaf))
    [found] = [item for item in leaves_of(expected.schema) if item.name == leaf]
    assert_rebuilt(batches, found, expected[found.path[0]].to_pylist())
    assert trace.pages_decoded == 1
    assert trace.rows_decoded <= 100
    assert trace.fallbacks == []


# Without row indexes, and with wrong ones


@cache
def unindexed_file(compression: str = "zlib") -> bytes:
    """Stripes without a row index, of a few hundred rows."""
    table = flat_columns().select(["n", "c18", "c6", "unique"])
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return pyorc_bytes(
        "struct<n:bigint,c18:string,c6:double,unique:string>",
        rows,
        **small_chunks(256, compression, row_index_stride=0, stripe_size=4_000, batch_size=100),
    )


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_without_row_indexes(compression: str) -> None:
    data = unindexed_file(compression)
    layout = layout_of(data)
    assert (layout.stride, layout.has_index) == (0, False)
    assert len(layout.stripes) > 1
    expected = pyarrow_orc(data)
    assert_written(data)
    assert_stripes(data, expected, layout)


def test_fallbacks_name_the_stripes_that_are_read_whole_and_why(tmp_path: Path) -> None:
    path = tmp_path / "data.orc"
    path.write_bytes(unindexed_file())
    stripes = layout_of(unindexed_file()).stripes
    with fs.trace() as trace:
        fs.scan(path).select("n", "unique").skip(stripes[1].first_row + 5).head(3).to_arrow()
    found = {(fallback.path, fallback.column, fallback.block) for fallback in trace.fallbacks}
    assert found == {(str(path), "n", 1), (str(path), "unique", 1)}
    assert all("row index" in fallback.reason for fallback in trace.fallbacks)
    assert_data_only_from(trace, [stripes[1].span])
    with fs.trace() as trace:
        fs.scan(path).to_arrow()
        fs.scan(path).filter(fs.blocks(1, 2)).to_arrow()
        fs.scan(path).skip(stripes[1].first_row).to_arrow()
        fs.scan(path).skip(5).count()
    assert trace.fallbacks == []


@cache
def ordered_file() -> bytes:
    """One stripe of 40 strides that is not compressed, so that its positions can be changed."""
    rng = np.random.default_rng(12)
    gaps = rng.random(4_000) < 0.3
    table = pa.table(
        {
            "n": rng.permutation(4_000),
            "gaps": pa.array(rng.permutation(4_000), mask=gaps),
            "s": pa.array(rng.integers(10**9, size=4_000)).cast(pa.string()),
            "x": rng.normal(size=4_000),
        }
    )
    return orc_bytes(table, row_index_stride=100)


WRONG: dict[str, Callable[[list[int]], list[int]]] = {
    "zero": lambda found: [0] * len(found),
    "one value on": lambda found: [*found[:-1], (found[-1] + 1) % 128],
    "one byte on": lambda found: [found[0] + 1, *found[1:]],
    "one byte back": lambda found: [found[0] - 1, *found[1:]],
    "far on": lambda found: [2**14 - 1 if at > 127 else at for at in found],
    "last turned": lambda found: [*found[:-1], found[-1] ^ 0x55],
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("column", ["n", "gaps", "s", "x"])
def test_wrong_positions_are_no_error(column: str, wrong: str) -> None:
    expected = pyarrow_orc(ordered_file()).select([column])
    number = 1 + pyarrow_orc(ordered_file()).column_names.index(column)
    data = with_positions(ordered_file(), number, 20, WRONG[wrong])
    assert data != ordered_file()
    scan = fs.scan(data).select(column)
    for start in (1_900, 2_000, 2_050, 2_100):
        assert_same_rows(scan.skip(start).head(20).to_arrow(), expected.slice(start, 20))
    assert_same_rows(scan.to_arrow(), expected)
    with fs.trace() as trace:
        scan.skip(2_010).head(20).to_arrow()
    assert [(fallback.column, fallback.block) for fallback in trace.fallbacks] == [(column, 0)]
    assert all(fallback.reason for fallback in trace.fallbacks)


# Damage


def lengths(data: bytes) -> Sequence[int]:
    end = len(data)
    return [*range(12), 100, end // 3, end // 2, end - 300, *range(end - 30, end)]


def test_truncated_files_raise_and_name_the_file(tmp_path: Path) -> None:
    data = small_file()
    path = tmp_path / "short.orc"
    for length in lengths(data):
        path.write_bytes(data[:length])
        with pytest.raises(fs.FileFormatError, match=r"short\.orc"):
            fs.scan(path).to_arrow()


def test_a_truncated_file_in_a_directory_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.orc").write_bytes(small_file())
    for length in (len(small_file()) - 1, len(small_file()) // 2):
        (tmp_path / "b.orc").write_bytes(small_file()[:length])
        with pytest.raises(fs.FileFormatError, match=r"b\.orc"):
            fs.scan(tmp_path).to_arrow()


@pytest.mark.parametrize("compression", ["uncompressed", "zlib"])
@pytest.mark.slow
def test_turned_bytes_give_rows_or_a_format_error(compression: str) -> None:
    table = flat_columns().select(["n", "c18", "c0", "c8"]).slice(0, 300)
    data = orc_bytes(table, row_index_stride=20, compression=compression)
    rng = random.Random(compression)
    refused = 0
    for _ in range(100):
        at = (
            rng.randrange(3, len(data)) if rng.random() < 0.5 else len(data) - rng.randrange(1, 400)
        )
        damaged = bytearray(data)
        damaged[at] ^= rng.randrange(1, 256)
        try:
            fs.scan(bytes(damaged)).skip(rng.randrange(280)).head(5).to_arrow().validate()
        except (fs.FileFormatError, fs.ColumnNotFoundError):
            refused += 1
    assert refused > 10
