"""Block predicates: which blocks a byte range keeps, and what that does to a scan."""

import io
import itertools
import operator
import pickle
import random
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.formats import in_blocks, written

EVERYWHERE = (-(2**70), 2**70)


def numbered(first: int, count: int) -> pa.Table:
    """Rows whose id is their number in the file, and columns with and without a dictionary."""
    ids = range(first, first + count)
    names = [None if i % 7 == 3 else f"name {i % 5}" for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})


def file_of(blocks: Sequence[int], writer: str = "parquet", **options: Any) -> bytes:
    """A file with a block for each size, zero included in Parquet."""
    return written(numbered(0, sum(blocks)), writer, blocks, **options)


SEVERAL = (40, 3, 500, 1, 77, 40, 12)
FILES = {
    "one block": file_of([40], write_page_index=True),
    "several blocks": file_of(SEVERAL, write_page_index=True),
    "several blocks, no dictionary, not compressed": file_of(
        [5, 9, 1, 200, 30], write_page_index=True, use_dictionary=False, compression="none"
    ),
    "empty blocks between": file_of([0, 6, 0, 0, 4, 0], write_page_index=True),
    "no blocks": file_of([], write_page_index=True),
    "several stripes": file_of(SEVERAL, "orc", row_index_stride=16, blooms=True),
    "several stripes, compressed": file_of(
        [5, 9, 1, 200, 30], "pyorc", row_index_stride=50, compression="zlib"
    ),
    "several stripes, no row index": file_of(SEVERAL, "pyorc", row_index_stride=0),
    "no stripes": file_of([], "orc"),
}
files = st.sampled_from(sorted(FILES)).map(FILES.__getitem__)
several = pytest.mark.parametrize("name", ["several blocks", "several stripes"])
bounds = st.integers(-50, 12_000) | st.integers(-(2**70), 2**70)


def ids_of(scan: fs.Scan) -> list[int]:
    ids: list[int] = scan.to_arrow()["id"].to_pylist()
    return ids


def kept(data: bytes, start: int, end: int) -> list[int]:
    """The ids that a byte range must return."""
    blocks = in_blocks(data)
    return [row for block in blocks if start <= block.midpoint < end for row in block.rows]


@pytest.mark.slow
@given(files, st.lists(bounds, max_size=12))
@example(FILES["several blocks"], [])
@example(FILES["several blocks"], [0, 0, 4, 4])
@example(FILES["no blocks"], [10])
def test_any_partition_returns_every_row_once_and_in_order(data: bytes, cuts: list[int]) -> None:
    edges = [EVERYWHERE[0], *sorted(cuts), EVERYWHERE[1]]
    parts = [fs.scan(data).filter(fs.byte_range(*pair)) for pair in itertools.pairwise(edges)]
    assert [row for part in parts for row in ids_of(part)] == ids_of(fs.scan(data))
    assert sum(part.count() for part in parts) == fs.scan(data).count()


@pytest.mark.slow
@given(files, st.lists(st.integers(0, 2_000), min_size=1, max_size=12))
def test_a_partition_of_just_the_bytes_of_the_file_loses_nothing(
    data: bytes, lengths: list[int]
) -> None:
    ends = [min(end, len(data)) for end in itertools.accumulate(lengths)]
    edges = [0, *ends, len(data)]
    parts = [fs.scan(data).filter(fs.byte_range(*pair)) for pair in itertools.pairwise(edges)]
    assert [row for part in parts for row in ids_of(part)] == ids_of(fs.scan(data))


@given(files, bounds, bounds)
def test_a_range_keeps_the_blocks_whose_midpoint_is_inside(
    data: bytes, start: int, end: int
) -> None:
    scan = fs.scan(data).filter(fs.byte_range(start, end))
    assert ids_of(scan) == kept(data, start, end)
    assert scan.count() == len(kept(data, start, end))


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_midpoint_itself_decides(name: str) -> None:
    data = FILES[name]
    for midpoint in [block.midpoint for block in in_blocks(data)]:
        for start, end in [(midpoint, midpoint + 1), (midpoint + 1, 2**63), (-(2**63), midpoint)]:
            scan = fs.scan(data).filter(fs.byte_range(start, end))
            assert ids_of(scan) == kept(data, start, end)


@several
@pytest.mark.parametrize(("start", "end"), [(9, 9), (9, 3), (0, -1), (2**70, -(2**70)), (0, 0)])
def test_an_empty_range_gives_no_rows_and_no_error(name: str, start: int, end: int) -> None:
    scan = fs.scan(FILES[name]).filter(fs.byte_range(start, end))
    assert ids_of(scan) == []
    assert scan.count() == 0
    assert scan.schema == numbered(0, 0).schema


@several
def test_bounds_may_be_numpy_integers(name: str) -> None:
    data = FILES[name]
    limits = np.iinfo(np.int64)
    whole = fs.byte_range(np.int64(limits.min), np.int64(limits.max))  # type: ignore[arg-type]
    assert ids_of(fs.scan(data).filter(whole)) == ids_of(fs.scan(data))
    half = fs.byte_range(np.int32(0), np.int32(len(data) // 2))  # type: ignore[arg-type]
    assert ids_of(fs.scan(data).filter(half)) == kept(data, 0, len(data) // 2)


@given(files, st.integers(-3, 10) | bounds, st.integers(-3, 10) | bounds)
def test_blocks_keeps_by_ordinal(data: bytes, start: int, end: int) -> None:
    wanted = [
        row
        for ordinal, block in enumerate(in_blocks(data))
        if start <= ordinal < end
        for row in block.rows
    ]
    assert ids_of(fs.scan(data).filter(fs.blocks(start, end))) == wanted


ranges = st.tuples(st.sampled_from([fs.byte_range, fs.blocks]), bounds, bounds)


@pytest.mark.slow
@given(files, st.lists(ranges, min_size=2, max_size=4))
def test_and_intersects_like_several_filters(
    data: bytes, parts: list[tuple[Callable[[int, int], fs.BlockPredicate], int, int]]
) -> None:
    predicates = [make(start, end) for make, start, end in parts]
    alone = [set(ids_of(fs.scan(data).filter(predicate))) for predicate in predicates]
    wanted = sorted(set.intersection(*alone))
    assert ids_of(fs.scan(data).filter(reduce(operator.and_, predicates))) == wanted
    assert ids_of(reduce(fs.Scan.filter, predicates, fs.scan(data))) == wanted


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "or": lambda one: one | fs.byte_range(0, 10),
    "not": lambda one: ~one,
    "a condition behind it": lambda one: one & (fs.col("id") > 3),
    "a condition before it": lambda one: (fs.col("id") > 3) & one,
    "a condition or it": lambda one: (fs.col("id") > 3) | one,
    "without parentheses": lambda one: one & fs.col("id") > 3,
    "text": lambda one: one & "id > 3",
    "text before it": lambda one: "id > 3" & one,
    "the word and": lambda one: one and fs.col("id") > 3,
    "the word or": lambda one: one or fs.col("id") > 3,
    "the word not": lambda one: not one,
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
@pytest.mark.parametrize("one", [fs.blocks(0, 1), fs.byte_range(0, 9) & fs.blocks(0, 1)], ids=repr)
def test_and_is_the_only_way_to_combine(one: Any, mistake: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"blocks\(0, 1\) chooses blocks: only & .* to filter\(\)"):
        mistake(one)
    assert ids_of(fs.scan(FILES["several blocks"]).filter(one).filter("id > 3")) == [
        row for row in ids_of(fs.scan(FILES["several blocks"]).filter(one)) if row > 3
    ]


@given(files, bounds, bounds, st.sets(st.integers(0, 999)))
def test_selected_rows_are_those_inside_the_kept_blocks(
    data: bytes, start: int, end: int, numbers: set[int]
) -> None:
    total = fs.scan(data).count()
    rows = sorted(number for number in numbers if number < total)
    predicate = fs.byte_range(start, end)
    wanted = sorted(set(kept(data, start, end)) & set(rows))
    assert ids_of(fs.scan(data).filter(predicate).select_rows(rows)) == wanted
    assert ids_of(fs.scan(data).select_rows(rows).filter(predicate)) == wanted


@given(files, bounds, bounds, st.integers(0, 600), st.integers(0, 600))
def test_windows_count_over_the_kept_blocks(
    data: bytes, start: int, end: int, skip: int, count: int
) -> None:
    scan = fs.scan(data).filter(fs.byte_range(start, end))
    wanted = kept(data, start, end)
    assert ids_of(scan.skip(skip)) == wanted[skip:]
    assert ids_of(scan.head(count)) == wanted[:count]
    assert ids_of(scan.skip(skip).head(count)) == wanted[skip : skip + count]
    assert ids_of(scan.tail(count)) == wanted[max(0, len(wanted) - count) :]


@several
def test_row_numbers_stay_those_of_the_file(name: str) -> None:
    scan = fs.scan(FILES[name]).filter(fs.blocks(2, 4)).with_row_index()
    table = scan.to_arrow()
    assert table["index"].to_pylist() == table["id"].to_pylist() == list(range(43, 544))


# Splits


def all_ids(scans: Sequence[fs.Scan]) -> list[int]:
    return [row for scan in scans for row in ids_of(scan)]


@settings(max_examples=60)
@given(files, st.integers(1, 20_000) | st.just(2**70), bounds, bounds)
def test_splits_partition_a_scan(data: bytes, target: int, start: int, end: int) -> None:
    scan = fs.scan(data)
    assert all_ids(scan.splits(target_bytes=target)) == ids_of(scan)
    narrow = scan.filter(fs.byte_range(start, end)).select_rows(range(0, scan.count(), 3))
    assert all_ids(narrow.splits(target_bytes=target)) == ids_of(narrow)


@several
def test_splits_follow_the_target(name: str) -> None:
    data = FILES[name]
    assert len(fs.scan(data).splits(target_bytes=2**40)) == 1
    assert len(fs.scan(data).splits()) == 1
    sizes = [len(fs.scan(data).splits(target_bytes=target)) for target in (1, 1_000, 4_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0


@several
def test_splits_keep_the_columns_and_are_picklable(name: str, tmp_path: Path) -> None:
    path = tmp_path / "blocks"
    path.write_bytes(FILES[name])
    for source in (path, str(path), FILES[name]):
        scan = fs.scan(source).select("name").with_row_index("row")
        splits = scan.splits(target_bytes=1_000)
        assert len(splits) > 1
        copies: list[fs.Scan] = pickle.loads(pickle.dumps(splits))
        assert pa.concat_tables([copy.to_arrow() for copy in copies]).equals(scan.to_arrow())
        assert all(copy.schema == scan.schema for copy in copies)


@several
def test_a_split_can_be_narrowed_further(name: str) -> None:
    splits = fs.scan(FILES[name]).splits(target_bytes=1_000)
    for split in splits:
        rows = ids_of(split)
        assert ids_of(split.skip(2).head(3)) == rows[2:5]
        assert ids_of(split.select_rows(rows[:1])) == rows[:1]


@pytest.mark.parametrize(
    "scan",
    [
        fs.scan(FILES["several blocks"]).skip(1),
        fs.scan(FILES["several blocks"]).head(1),
        fs.scan(FILES["several blocks"]).tail(1),
        fs.scan(FILES["no blocks"]).skip(0),
        fs.scan(FILES["several stripes"]).tail(1),
    ],
    ids=["skip", "head", "tail", "skip nothing", "tail of stripes"],
)
def test_a_window_cannot_be_split(scan: fs.Scan) -> None:
    with pytest.raises(ValueError, match="split"):
        scan.splits(target_bytes=100)


@pytest.mark.parametrize("target", [0, -1])
def test_a_target_must_be_positive(target: int) -> None:
    with pytest.raises(ValueError, match="target_bytes"):
        fs.scan(FILES["one block"]).splits(target_bytes=target)


# Odd files


@pytest.mark.parametrize("rows", [0, 10])
def test_a_file_without_columns(rows: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(rows)}).select([]), sink, row_group_size=4)
    data = sink.getvalue()
    total = pq.read_metadata(io.BytesIO(data)).num_rows
    cuts = [EVERYWHERE[0], 0, *range(1, len(data), 7), len(data), EVERYWHERE[1]]
    parts = [fs.scan(data).filter(fs.byte_range(*pair)) for pair in itertools.pairwise(cuts)]
    assert fs.scan(data).count() == sum(part.count() for part in parts) == total
    tables = [part.to_arrow() for part in parts]
    assert sum(table.num_rows for table in tables) == total
    assert {table.num_columns for table in tables} == {0}
    indexed = [part.with_row_index().to_arrow()["index"].to_pylist() for part in parts]
    assert list(itertools.chain(*indexed)) == list(range(total))


def test_files_by_other_writers(corpus: Path) -> None:
    compared = 0
    for path in sorted((corpus / "parquet" / "data").glob("*.parquet")):
        try:
            blocks = in_blocks(path.read_bytes())
        except pa.ArrowInvalid:  # no oracle
            continue
        size = path.stat().st_size
        seeded = random.Random(path.name)
        cuts = sorted(seeded.randrange(-10, size + 10) for _ in range(4))
        edges = [-100, *cuts, *[block.midpoint for block in blocks][:20], size + 100]
        counts = []
        for start, end in itertools.pairwise(sorted(edges)):
            counts.append(fs.scan(path).filter(fs.byte_range(start, end)).count())
            wanted = sum(len(block.rows) for block in blocks if start <= block.midpoint < end)
            assert counts[-1] == wanted, f"{path.name}: bytes {start} to {end}"
        assert sum(counts) == fs.scan(path).count(), path.name
        compared += 1
    assert compared > 30
