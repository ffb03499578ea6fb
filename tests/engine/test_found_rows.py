"""Where the rows that match come from: proven pieces, reused columns, pages that are searched."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from fretsaw.engine import run, threads
from tests.formats.parquet.test_values_sought import bloomed
from tests.support.craft import Crafted
from tests.support.kernels import each_decoder

pytestmark = each_decoder("slow")


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("first", [0, 10], ids=["proven", "compared"])
def test_a_tail_comes_from_the_end_of_a_block_in_pieces(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["fretsaw.scan"], "STREAM_PIECE", 4_000)
    table = pa.table({"x": range(20_000), "y": range(20_000)})
    data = written(table, write_page_index=True, data_page_size=1_000, write_batch_size=100)
    batches = fs.scan(data).filter(col("x") >= first).tail(5).batches()
    assert [x for batch in batches for x in batch["x"].to_pylist()] == list(range(19_995, 20_000))


def test_columns_decoded_in_many_turns_are_few_chunks() -> None:
    random = np.random.default_rng(0)
    table = pa.table({name: random.integers(0, 10, 50_000) for name in "ab"})
    found = fs.scan(written(table)).filter((col("a") < 5) | (col("b") < 5)).to_arrow()
    expected = table.filter(pa.array((table["a"].to_numpy() < 5) | (table["b"].to_numpy() < 5)))
    assert found.equals(expected)
    assert max(column.num_chunks for column in found.columns) < 100


@pytest.mark.parametrize("verify", [True, False])
def test_pages_that_are_searched_have_their_checksums_verified(verify: bool) -> None:
    table = pa.table({"s": [f"value {i:05}" for i in range(1_000)]})
    options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    data = bytearray(written(table, write_page_checksum=True, **options))
    data[data.index(b"value 00777")] ^= 1
    damaged = fs.scan(bytes(data), verify=verify).filter(col("s") == "value 00777")
    if verify:
        with pytest.raises(fs.FileFormatError, match="CRC"):
            damaged.count()
    else:
        assert damaged.count() == 0


@pytest.mark.parametrize("count", [1, 3])
def test_a_block_that_is_alone_is_searched_in_as_many_parts_as_there_are_threads(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LEAST_SHARE", 1_000)
    monkeypatch.setattr(threads, "count", lambda: count)
    words = np.random.default_rng(0).permutation([f"value {i:05}" for i in range(10_000)])
    table = pa.table({"s": words, "n": range(10_000)})
    options = {"use_dictionary": False, "write_page_index": True}
    data = written(table, data_page_size=4_000, write_batch_size=100, **options)
    with fs.trace() as trace:
        found = fs.scan(data).filter(col("s") == words[7_000]).to_arrow()
    assert found.to_pylist() == [{"s": words[7_000], "n": 7_000}]
    column = pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)
    start, size = column.data_page_offset, column.total_compressed_size
    read = [event for event in trace.log if event.why == "data"]
    searched = [event.length for event in read if start <= event.offset < start + size]
    assert (len(searched), sum(searched)) == (count, size)


@pytest.mark.parametrize("length", [0, 5, 7])
def test_a_length_that_strings_do_not_have_is_not_believed(length: int) -> None:
    words = [f"word {i:04}" for i in range(100)]
    data = Crafted(bloomed(words)).set_type("x", type_length=length).to_bytes()
    assert fs.scan(data).filter(col("x") == words[20]).count() == 1


def test_types_of_sources_without_a_name_are_compared() -> None:
    sources = [written(pa.table({"x": [1]})), written(pa.table({"x": [2.5]}))]
    with pytest.raises(fs.SchemaMismatchError, match="double"):
        fs.scan(sources).to_arrow()


def test_all_files_ruled_out_by_their_folders_leave_the_columns(tmp_path: Path) -> None:
    for year in (1, 2):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"x": [year]}), tmp_path / f"year={year}" / "part.parquet")
    for missing in ("error", "null"):
        scan = fs.scan(tmp_path, missing=missing).filter(col("year") == 3)
        assert scan.to_arrow().schema.names == ["x", "year"]
        assert scan.count() == 0


def test_plans_name_the_source_that_dropped_a_block() -> None:
    values = sorted(f"word {i:04}" for i in range(400))
    data = bloomed(values[::2], row_group_size=50)
    plan = fs.scan(data).filter(col("x").is_in([values[1], values[399]])).plan()
    assert plan.dropped == {"statistics": 3, "Bloom filter": 1}
    assert fs.scan(data).filter(col("x").is_in([])).plan().dropped == {"predicate": 4}


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_tail_over_several_blocks_keeps_the_order_of_the_rows(
    format: str, tmp_path: Path
) -> None:
    values = list(range(4_000))
    for at in range(2):
        table = pa.table({"x": values[at * 2_000 : (at + 1) * 2_000]})
        path = tmp_path / f"{at}.{format}"
        if format == "parquet":
            pq.write_table(table, path, row_group_size=300)
        else:
            pa.orc.write_table(table, path, stripe_size=1, batch_size=300)
    matching = [value for value in values if value % 2_000 not in (7, 1_999)]
    scan = fs.scan(tmp_path).filter(~col("x").is_in([7, 1_999, 2_007, 3_999]))
    for count in (1, 299, 1_000, 2_500, 5_000):
        found = scan.tail(count).to_arrow()["x"].to_pylist()
        assert found == matching[-count:]
