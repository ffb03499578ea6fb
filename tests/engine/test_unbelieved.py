"""`indexes=False`: files whose indexes lie, read as if they had none.

Each file has rows `x` from 0 on in several blocks and pages, and an index that denies them.
Believed, it loses rows, so that a test here cannot pass by luck.
"""

import io
import pickle
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support import craft, orc_craft
from tests.support.kernels import each_decoder
from tests.support.orc_files import pyorc_table

pytestmark = each_decoder("slow")

ROWS, BLOCK, PAGE = 40, 20, 5
x = col("x")
NUMBERS = pa.table({"x": pa.array(range(ROWS), pa.int64())})
WORDS = [f"{row:02}" * 40 for row in range(ROWS)]


def parquet_file(table: pa.Table = NUMBERS, **options: Any) -> craft.Crafted:
    sink = io.BytesIO()
    pages: dict[str, Any] = {
        "max_rows_per_page": PAGE,
        "write_batch_size": 1,
        "write_page_index": True,
    }
    plain = {"use_dictionary": False, "bloom_filter_options": {"x": {"ndv": BLOCK, "fpp": 0.01}}}
    pq.write_table(table, sink, **{"row_group_size": BLOCK, **pages, **plain, **options})
    return craft.Crafted(sink.getvalue())


def parquet_bounds(count: bool) -> bytes:
    """Statistics and column indexes of other values, or of none."""
    low, high = struct.pack("<q", 1_000), struct.pack("<q", 2_000)
    pages = BLOCK // PAGE
    index: dict[str, Any] = {"min_values": [low] * pages, "max_values": [high] * pages}
    stats: dict[str, Any] = {"min_value": low, "max_value": high}
    if count:
        stats = {"null_count": BLOCK, "min_value": None, "max_value": None}
        index = {"null_pages": [True] * pages, "null_counts": [PAGE] * pages}
        index |= {"min_values": [b""] * pages, "max_values": [b""] * pages}
    file = parquet_file().set_statistics("x", [stats] * 2)
    return file.set_column_index("x", [index] * 2).to_bytes()


def parquet_bloom_filter() -> bytes:
    file = parquet_file()
    for chunk in file.chunks("x"):
        meta = chunk[craft.META_DATA][1]
        start, length = meta[14][1], meta[15][1]
        bits = file.body[start + length - 32 : start + length]
        assert any(bits)
        file.body = file.body[: start + length - 32] + bytes(32) + file.body[start + length :]
    return file.to_bytes()


def parquet_dictionary() -> bytes:
    """The dictionary holds the first words only, and the metadata call every page encoded by it."""
    table = pa.table({"x": [WORDS[0]] * 20 + WORDS + WORDS})
    small = {"use_dictionary": True, "dictionary_pagesize_limit": 80, "row_group_size": 200}
    file = parquet_file(table, bloom_filter_options=None, write_statistics=False, **small)
    for chunk in file.chunks("x"):
        kinds = chunk[craft.META_DATA][1][13][1][1]
        assert len(kinds) > 2
        kinds[:] = [kind for kind in kinds if kind[1][1] == 2 or kind[2][1] != 0]
    return file.set_column_index("x", [None]).to_bytes()


def orc_bounds(count: bool) -> bytes:
    lie: dict[str, Any] = {"int_min": 1_000, "int_max": 2_000, "int_sum": 1_500 * PAGE}
    if count:
        lie = {"values": 0, "has_null": 1, "int": None}
    file = orc_craft.Crafted(orc_craft.written(NUMBERS, BLOCK, row_index_stride=PAGE))
    strides = [[lie] * (BLOCK // PAGE)] * 2
    return file.set_stripe_statistics(1, [lie] * 2).set_strides(1, strides).to_bytes()


def orc_bloom_filter() -> bytes:
    data = pyorc_table(NUMBERS, row_index_stride=PAGE, bloom_filter_columns=[1])
    return orc_craft.Crafted(data).empty_blooms(1).to_bytes()


LIES: Mapping[str, tuple[Callable[[], bytes], Any]] = {
    "bounds, Parquet": (lambda: parquet_bounds(False), x < 25),
    "counts, Parquet": (lambda: parquet_bounds(True), x < 25),
    "Bloom filter, Parquet": (parquet_bloom_filter, x.is_in([7, 24])),
    "dictionary, Parquet": (parquet_dictionary, x == WORDS[30]),
    "bounds, ORC": (lambda: orc_bounds(False), x < 25),
    "counts, ORC": (lambda: orc_bounds(True), x < 25),
    "Bloom filter, ORC": (orc_bloom_filter, x.is_in([7, 24])),
}
MATCHING = {
    **{name: list(range(25)) for name in LIES},
    **{name: [7, 24] for name in LIES if "Bloom" in name},
    "dictionary, Parquet": [20 + 30, 20 + ROWS + 30],
}
lies = pytest.mark.parametrize("lie", LIES)


def rows_of(scan: fs.Scan) -> list[int]:
    rows: list[int] = scan.select().with_row_index().to_arrow()["index"].to_pylist()
    return rows


@lies
def test_an_index_that_lies_is_not_asked(lie: str) -> None:
    make, predicate = LIES[lie]
    data, wanted = make(), MATCHING[lie]
    assert rows_of(fs.scan(data).filter(predicate)) == []
    scan = fs.scan(data, indexes=False).filter(predicate)
    with fs.trace() as t:
        assert rows_of(scan) == wanted
    assert t.pruned == []
    for few in (1, 2, len(wanted)):
        assert rows_of(scan.head(few)) == wanted[:few]
        assert rows_of(scan.tail(few)) == wanted[-few:]
    assert rows_of(scan.select_rows(range(3, 30))) == [row for row in wanted if 3 <= row < 30]
    assert scan.count() == len(wanted)
    assert rows_of(pickle.loads(pickle.dumps(scan))) == wanted
    numbered = scan.with_row_index()
    parts = [part.to_arrow()["index"].to_pylist() for part in numbered.splits(target_bytes=1)]
    assert [row for part in parts for row in part] == wanted


@lies
def test_plans_know_that_nothing_is_proven(lie: str) -> None:
    make, predicate = LIES[lie]
    data = make()
    scan = fs.scan(data, indexes=False)
    total = scan.count()
    plan = scan.filter(predicate).plan()
    assert (plan.rows.kept, plan.proven, plan.dropped, plan.pruned) == (total, 0, {}, ())
    assert "indexes are not believed" in scan.filter(predicate).explain()
    assert "indexes are not believed" not in fs.scan(data).filter(predicate).explain()
    assert "indexes are not believed" not in scan.explain()


@lies
def test_an_open_file_takes_the_same_options(lie: str) -> None:
    make, predicate = LIES[lie]
    data = make()
    with fs.open(data, indexes=False) as file:
        assert file.prune(predicate) == fs.RowSelection.all(file.num_rows)
        assert rows_of(file.scan().filter(predicate)) == MATCHING[lie]
    with fs.open(data) as file:
        assert file.prune(predicate) == fs.RowSelection.none(file.num_rows)


def test_options_of_an_open_file_are_checked() -> None:
    with pytest.raises(ValueError, match="int96 must be"):
        fs.open(b"", int96="s")  # type: ignore[arg-type]


def test_values_are_not_held_against_bounds_that_are_not_believed() -> None:
    low, high = struct.pack("<q", 0), struct.pack("<q", 2)
    index = {"min_values": [low] * 4, "max_values": [high] * 4}
    data = parquet_file().set_column_index("x", [index] * 2).to_bytes()
    with pytest.raises(fs.FileFormatError, match="outside of the bounds"):
        fs.scan(data).filter(x == 2).to_arrow()
    assert rows_of(fs.scan(data, indexes=False).filter(x == 2)) == [2]


def test_what_no_value_can_be_is_still_known() -> None:
    with fs.trace() as t:
        assert fs.scan(parquet_bounds(False), indexes=False).filter(x == 1.5).count() == 0
    assert t.data_bytes == 0


def test_folders_still_drop_files(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        (folder / "a.parquet").write_bytes(parquet_bounds(False))
    scan = fs.scan(tmp_path, indexes=False).filter((col("day") == 2) & (x < 25))
    with fs.trace() as t:
        assert scan.select("day").to_arrow()["day"].to_pylist() == [2] * 25
    # The first file settles the columns, by its footer.
    assert {Path(read.path).parent.name for read in t.log if read.why != "footer"} == {"day=2"}
