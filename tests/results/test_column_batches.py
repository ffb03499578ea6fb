"""Column readers: how large batches are, how long they live, and what is read for them."""

import gc
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.column_tables import (
    ROWS,
    SIZES,
    WIDE,
    heavy_file,
    heavy_scan,
    random_file,
    rows_at,
    source,
)
from tests.support.layers import (
    Array,
    arrays_of,
    assert_rebuilt,
    leaves_of,
    rebuild,
)
from tests.support.nested_data import parquet_bytes
from tests.support.pages import Chunk, row_groups

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


@cache
def heavy_chunks() -> tuple[Chunk, ...]:
    return tuple(chunk for group in row_groups(heavy_file()) for chunk in group.chunks)


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
