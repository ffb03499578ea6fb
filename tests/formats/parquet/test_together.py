"""Small blocks are decoded together, as one small file: the rows stay those of each block."""

import io
import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support import formats
from tests.support.formats import even, writer_of
from tests.support.kernels import each_decoder, without_kernels

pytestmark = each_decoder()

MORE = range(3, 3 + 6 * int(os.environ.get("FRETSAW_MORE", "1")))
POOL = pa.proxy_memory_pool(pa.default_memory_pool())  # must outlive what is allocated in it
CODECS = ("snappy", "gzip", "zstd", "none")


def written(table: pa.Table, **layout: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **{"write_page_index": True, **layout})
    return file.getvalue()


def mixed_table(rng: np.random.Generator, rows: int, first: int) -> pa.Table:
    """Columns whose pages differ in every way: encodings, nulls, sizes, lists among them."""

    def some(values: Any, share: float) -> pa.Array:
        return pa.array(values, mask=rng.random(rows) < share)

    lists = [[int(v)] * int(v % 4) if v % 5 else None for v in rng.integers(0, 30, rows)]
    return pa.table(
        {
            "n": np.arange(first, first + rows),
            "few": some([f"s{v}" for v in rng.integers(0, 5, rows)], 0.2),
            "many": [f"string {v}" * int(v % 3) for v in rng.integers(0, 10**6, rows)],
            "number": some(rng.integers(0, 100, rows), rng.choice([0, 0.3, 0.95])),
            "flag": some(rng.random(rows) < 0.5, 0.1),
            "list": pa.array(lists, pa.list_(pa.int64())),
            "struct": [{"a": int(v), "b": f"x{v % 4}"} for v in rng.integers(0, 50, rows)],
            "step": np.arange(first, first + rows) // max(1, rows // 20),
        }
    )


def random_file(rng: np.random.Generator, table: pa.Table, writer: str) -> bytes:
    """The table in small blocks, pages of any size, with and without indexes."""
    blocks = even(len(table), int(rng.choice([7, 50, 100, 333])))
    layout = random_pages(rng) if writer == "parquet" else random_strides(rng)
    return formats.written(table, writer, blocks, **layout)


def random_strides(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "row_index_stride": int(rng.choice([0, 5, 33, 10_000], p=[0.1, 0.4, 0.3, 0.2])),
        "compression": str(rng.choice(["uncompressed", "zlib", "snappy", "zstd", "lz4"])),
        "blooms": bool(rng.random() < 0.5),
    }


def random_pages(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "data_page_size": int(rng.choice([64, 500, 1 << 20])),
        "write_batch_size": int(rng.choice([5, 50, 1024])),
        "data_page_version": str(rng.choice(["1.0", "2.0"])),
        "write_page_index": bool(rng.random() < 0.6),
        "write_statistics": bool(rng.random() < 0.8),
        "dictionary_pagesize_limit": int(rng.choice([20, 1 << 20])),
        "compression": str(rng.choice(CODECS)),
    }


PREDICATES: tuple[tuple[fs.Predicate, Callable[[pa.Table], pa.Array]], ...] = (
    (col("number") < 40, lambda t: pc.less(t["number"], 40)),
    (col("few") == "s1", lambda t: pc.equal(t["few"], "s1")),
    (col("step") >= 10, lambda t: pc.greater_equal(t["step"], 10)),
    (
        (col("step") < 3) | (col("few") == "s0"),
        lambda t: pc.or_kleene(pc.less(t["step"], 3), pc.equal(t["few"], "s0")),
    ),
    (col("struct.a") < 20, lambda t: pc.less(pc.struct_field(t["struct"], "a"), 20)),
)


def random_query(
    rng: np.random.Generator, scan: fs.Scan, expected: pa.Table
) -> tuple[fs.Scan, pa.Table]:
    """Rows, a predicate, a window: each maybe; and the same done to a table."""
    if rng.random() < 0.4:
        rows = np.arange(rng.integers(0, len(expected)), len(expected), rng.choice([1, 3, 20]))
        scan, expected = scan.select_rows(rows), expected.take(pa.array(rows))
    if rng.random() < 0.6:
        predicate, mask = PREDICATES[rng.integers(len(PREDICATES))]
        scan, expected = scan.filter(predicate), expected.filter(mask(expected))
    skip, count = (int(n) for n in rng.choice([0, 1, 10, 100, 700], 2))
    match rng.integers(4):
        case 0:
            return scan.skip(skip).head(count), expected.slice(min(skip, len(expected)), count)
        case 1:
            return scan.tail(count), expected.slice(max(0, len(expected) - count))
        case 2:
            return scan.skip(skip), expected.slice(min(skip, len(expected)))
    return scan, expected


@pytest.mark.parametrize(
    ("turns", "seed"),
    [
        *itertools.product(["parquet"], range(8)),
        *itertools.product(["orc", "mixed"], range(3)),
        *(
            pytest.param(turns, seed, marks=pytest.mark.slow)
            for turns, seeds in (("parquet", range(8, 30)), ("orc", MORE), ("mixed", MORE))
            for seed in seeds
        ),
    ],
)
def test_rows_of_many_small_blocks_are_those_of_pyarrow(
    turns: str, seed: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng([8, seed])
    tables: list[pa.Table] = []
    for number in range(rng.integers(1, 4)):
        first = sum(map(len, tables))
        tables.append(mixed_table(rng, int(rng.integers(1, 1200)), first))
        data = random_file(rng, tables[-1], writer_of(turns, seed + number))
        (tmp_path / f"{number}.data").write_bytes(data)
    whole = pa.concat_tables(tables)
    whole = whole.add_column(0, "index", pa.array(np.arange(len(whole))))
    for _ in range(6):
        names = rng.permutation(tables[0].column_names)[: rng.integers(1, 8)].tolist()
        scan = fs.scan(sorted(tmp_path.iterdir())).select(*names).with_row_index()
        query, expected = random_query(rng, scan, whole)
        expected = expected.select(["index", *names])
        found = query.to_arrow()
        assert found.to_pydict() == expected.to_pydict()
        assert query.count() == len(expected)


@pytest.fixture(scope="module")
def one_block() -> bytes:
    """A block of many pages, of which predicates leave all open."""
    rows = np.arange(100_000)
    table = pa.table({"n": rows, "m": rows % 1000, "s": [f"s{n % 7}" for n in rows]})
    return written(table, row_group_size=len(rows), max_rows_per_page=1_000)


@pytest.mark.parametrize("count", [1, 5, 50, 500, 5_000])
def test_pieces_of_one_block_stay_apart(one_block: bytes, count: int) -> None:
    n = np.arange(100_000)
    expected = n[n % 1000 < 10][:count].tolist()
    scan = fs.scan(one_block).filter(col("m") < 10).head(count)
    assert scan.to_arrow()["n"].to_pylist() == expected
    assert scan.count() == min(count, len(expected))
    sparse = fs.scan(one_block).select_rows(n[::50]).filter(col("m") < 100).head(count)
    assert sparse.to_arrow()["n"].to_pylist() == n[::50][n[::50] % 1000 < 100][:count].tolist()


def test_pieces_of_one_large_block_are_streamed_in_order() -> None:
    rows = np.arange(6_000_000)
    data = written(pa.table({"n": rows}), row_group_size=len(rows), use_dictionary=False)
    wanted = np.concatenate([np.arange(at, at + 1_000) for at in range(0, len(rows), 1_500_000)])
    batches = fs.scan(data).select_rows(wanted).batches()
    assert np.concatenate([batch["n"] for batch in batches]).tolist() == wanted.tolist()


def test_few_rows_of_many_blocks_take_one_small_file_each_megabyte(tmp_path: Path) -> None:
    """Fewer reads than blocks: what several blocks need is read and decoded at once."""
    rows = np.arange(100_000)
    path = tmp_path / "many.parquet"
    path.write_bytes(written(pa.table({"n": rows, "m": -rows}), row_group_size=500))
    wanted = rows[::500] + 3
    with fs.trace() as trace:
        found = fs.scan(path).take(wanted)
    assert found.to_pydict() == {"n": wanted.tolist(), "m": (-wanted).tolist()}
    indexes = [read for read in trace.log if read.why == "index"]
    assert len(indexes) < 200 / 4


def test_the_trace_counts_rows_that_arrow_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = 0
    read = pq.ParquetFile.read_row_groups

    def counting(file: pq.ParquetFile, *arguments: Any, **options: Any) -> pa.Table:
        nonlocal decoded
        table = read(file, *arguments, **options)
        decoded += table.num_rows * table.num_columns
        return table

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counting)
    data = written(pa.table({"n": range(10_000), "m": range(10_000)}), row_group_size=500)
    with without_kernels(), fs.trace() as trace:
        fs.scan(data).take(np.arange(4, 10_000, 500))
    assert trace.rows_decoded == decoded > 0


def test_large_pages_of_many_blocks_are_not_held_at_once(tmp_path: Path) -> None:
    """One row of each block, where each block is one page: memory is that of few blocks."""
    path = tmp_path / "large.parquet"
    rng = np.random.default_rng(3)
    layout = {"row_group_size": 100_000, "data_page_size": 1 << 30, "max_rows_per_page": 1 << 30}
    table = pa.table({"x": rng.random(4_000_000)})
    path.write_bytes(written(table, use_dictionary=False, compression="gzip", **layout))
    rows = np.arange(0, len(table), 100_000)
    before = pa.default_memory_pool()
    pa.set_memory_pool(POOL)
    try:
        found = fs.scan(path).take(rows)
    finally:
        pa.set_memory_pool(before)
    assert found.equals(table.take(pa.array(rows)))
    assert 0 < POOL.max_memory() < 10 * 800_000


def test_the_first_batch_does_not_wait_for_the_next_match() -> None:
    values = np.zeros(200_000, np.int64)
    values[7] = 1
    table = pa.table({"m": values, "n": range(len(values))})
    data = written(table, row_group_size=500, write_statistics=False, write_page_index=False)
    with fs.trace() as trace:
        batches = fs.scan(data).filter(col("m") == 1).batches()
        assert next(iter(batches))["n"].to_pylist() == [7]
        read = trace.data_bytes
    assert read < len(data) / 2
    assert list(batches) == []


def categories() -> pa.Array:
    values = np.random.default_rng(5).integers(0, 3, 5_000)
    names = pa.array(["low", "mid", "high", "never"])
    return pa.DictionaryArray.from_arrays(pa.array(values, pa.int8()), names, ordered=True)


def test_categories_stay_what_they_are() -> None:
    table = pa.table({"c": categories(), "k": np.arange(5_000) % 10})
    data = written(table, row_group_size=5_000, max_rows_per_page=500)
    expected = pq.read_table(io.BytesIO(data))
    for scan, rows in (
        (fs.scan(data), slice(None)),
        (fs.scan(data).skip(700).head(9), slice(700, 709)),
    ):
        found = scan.to_arrow()
        assert found.schema.field("c").type == expected.schema.field("c").type
        assert found["c"].to_pylist() == expected["c"].to_pylist()[rows]
    assert fs.scan(data).to_arrow()["c"].chunk(0).dictionary == expected["c"].chunk(0).dictionary
    either = fs.scan(data).filter((col("k") == 3) | (col("c") == "mid")).to_arrow()
    mask = pc.or_(pc.equal(expected["k"], 3), pc.equal(expected["c"].cast(pa.string()), "mid"))
    assert either.to_pydict() == expected.filter(mask).to_pydict()


@pytest.mark.parametrize("codec", CODECS)
def test_chunks_of_writers_that_understate_their_size(codec: str) -> None:
    """Of old writers' chunks some bytes of the next one are read along, which are no page."""
    rows = np.arange(20_000)
    table = pa.table({"a": rows % 50, "s": [f"val{n % 30}" for n in rows], "b": rows})
    data = written(table, compression=codec, row_group_size=5_000, write_page_index=False)
    (new,) = set(re.findall(rb"parquet-cpp-arrow version [0-9.]+", data))
    old = data.replace(new, b"parquet-mr version 1.2.8".ljust(len(new)))
    assert fs.scan(old).to_arrow().equals(pq.read_table(io.BytesIO(old)))
