"""A new format needs its reader and an entry in the registry: the engine runs every scan on it.

The reader is the toy of `fretsaw.formats`, taken out of the docstring; the oracles are NumPy and
pyarrow, on the arrays that its files are written from.
"""

import doctest
import json
import pickle
import re
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
import fretsaw.cache
import fretsaw.formats
from fretsaw import col
from fretsaw.formats import interface, registry
from fretsaw.storage import descriptor

MAGIC = b"TOY1"
BLOCKS = (700, 0, 1, 1299, 500)
ROWS = sum(BLOCKS)
EXAMPLES = doctest.DocTestParser().get_examples(fretsaw.formats.__doc__ or "")


def toy_table(first: int = 0, rows: int = ROWS) -> pa.Table:
    """Rows whose id is their number, and values in no order."""
    rng = np.random.default_rng(first + 7)
    columns = {
        "id": np.arange(first, first + rows),
        "n": rng.integers(0, 100, rows),
        "big": rng.integers(-(2**63), 2**63 - 1, rows),
    }
    return pa.table(columns, schema=pa.schema([pa.field(c, pa.int64(), False) for c in columns]))


def toy_bytes(table: pa.Table, blocks: Sequence[int]) -> bytes:
    """The table as a file of the format, in blocks of so many rows."""
    assert sum(blocks) == table.num_rows
    values = b"".join(
        table[name].to_numpy()[first:end].astype("<i8").tobytes()
        for first, end in pairwise(accumulate(blocks, initial=0))
        for name in table.column_names
    )
    footer = json.dumps({"names": table.column_names, "row_counts": list(blocks)}).encode()
    return MAGIC + values + footer + len(footer).to_bytes(4, "little") + MAGIC


TABLE = toy_table()
FILE = toy_bytes(TABLE, BLOCKS)
EMPTY = toy_bytes(TABLE.slice(0, 0), [])


@pytest.fixture(scope="module")
def toy() -> ModuleType:
    """The example as a module."""
    module = ModuleType("toy")
    for example in EXAMPLES:
        exec(example.source, module.__dict__)
    return module


@pytest.fixture(autouse=True)
def _registered(toy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toy", toy)
    entry = registry.Format("a toy", (MAGIC,), "toy")
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, entry))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.toy"
    path.write_bytes(FILE)
    return path


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    found.validate(full=True)
    assert found.schema.equals(expected.schema)
    assert found.equals(expected)


# The example itself


def test_it_answers_what_is_abstract_and_nothing_else(toy: ModuleType) -> None:
    for answers, asked in (
        (toy.ToyReader, interface.FileReader),
        (toy.ToyBlock, interface.BlockReader),
    ):
        methods = {name for name, value in vars(answers).items() if callable(value)}
        assert methods - {"__init__"} == asked.__abstractmethods__


def test_it_is_short() -> None:
    sources = [example.source for example in EXAMPLES]
    last = next(n for n, source in enumerate(sources) if source.startswith("def open_file"))
    assert sum(source.count("\n") for source in sources[: last + 1]) <= 60


# One file


def test_an_open_file_says_what_is_in_it(path: Path) -> None:
    with fs.open(path) as file:
        assert (file.format, file.num_rows, dict(file.metadata)) == ("toy", ROWS, {})
        assert file.created_by is None
        assert [block.num_rows for block in file.blocks] == list(BLOCKS)
        assert [node.name for node in file.schema.children] == TABLE.column_names
        assert file.prune(col("n") > 50) == fs.RowSelection.all(ROWS)
        assert_same(file.scan().to_arrow(), TABLE)


def test_all_of_it(path: Path) -> None:
    scan = fs.scan(path)
    assert_same(scan.to_arrow(), TABLE)
    assert_same(fs.scan(FILE).to_arrow(), TABLE)
    assert_same(scan.to_reader().read_all(), TABLE)
    assert scan.schema.equals(TABLE.schema)
    assert scan.count() == ROWS


def test_some_columns_in_any_order(path: Path) -> None:
    assert_same(fs.scan(path).select("big", "id").to_arrow(), TABLE.select(["big", "id"]))
    assert fs.scan(path).select().to_arrow().num_rows == ROWS


CONDITIONS: dict[str, tuple[Any, Callable[[pa.Table], Any]]] = {
    "a value": (col("n") == 17, lambda t: pc.equal(t["n"], 17)),
    "a range": (
        col("id").is_between(650, 750),
        lambda t: pc.is_in(t["id"], pa.array(range(650, 751))),
    ),
    "some values": (col("n").is_in([3, 5, 300]), lambda t: pc.is_in(t["n"], pa.array([3, 5, 300]))),
    "SQL": ("n < 40 AND big > 0", lambda t: pc.and_(pc.less(t["n"], 40), pc.greater(t["big"], 0))),
    "OR": (
        "n = 1 OR id >= 2400",
        lambda t: pc.or_(pc.equal(t["n"], 1), pc.greater_equal(t["id"], 2400)),
    ),
    "NOT": (~(col("n") < 90), lambda t: pc.greater_equal(t["n"], 90)),
    "no row": ("n > 100", lambda t: pc.greater(t["n"], 100)),
    "every row": ("id IS NOT NULL", lambda t: pc.is_valid(t["id"])),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_that_match(path: Path, name: str) -> None:
    condition, oracle = CONDITIONS[name]
    matching = TABLE.filter(oracle(TABLE))
    for indexes in (True, False):
        scan = fs.scan(path, indexes=indexes).filter(condition)
        assert_same(scan.to_arrow(), matching)
        assert_same(scan.select("big").to_arrow(), matching.select(["big"]))
        assert_same(scan.skip(3).head(20).to_arrow(), matching.slice(3, 20))
        last = matching.slice(max(0, matching.num_rows - 20))
        assert_same(scan.tail(20).to_arrow(), last)
        assert scan.count() == matching.num_rows


@pytest.mark.parametrize("skip", [0, 1, 699, 700, 701, 2499, 2500, 9000])
@pytest.mark.parametrize("count", [0, 1, 2, 800, 9000])
def test_windows(path: Path, skip: int, count: int) -> None:
    scan = fs.scan(path)
    assert_same(scan.skip(skip).head(count).to_arrow(), TABLE.slice(skip, count))
    assert_same(scan.tail(count).to_arrow(), TABLE.slice(max(0, ROWS - count)))
    assert scan.skip(skip).head(count).count() == max(0, min(count, ROWS - skip))


def test_rows_by_their_numbers(path: Path) -> None:
    rng = np.random.default_rng(1)
    for count in (1, 10, 1000):
        numbers = rng.choice(ROWS, count, replace=False)
        chosen = fs.scan(path).select_rows(numbers)
        assert_same(chosen.to_arrow(), TABLE.take(np.sort(numbers)))
        few = chosen.filter(col("n") < 50).to_arrow()
        expected = TABLE.take(np.sort(numbers))
        assert_same(few, expected.filter(pc.less(expected["n"], 50)))
    repeated = rng.integers(0, ROWS, 50)
    assert_same(fs.scan(path).take(repeated), TABLE.take(repeated))


def test_numbered_rows(path: Path) -> None:
    found = fs.scan(path).filter("n = 17").with_row_index("row").select("n").to_arrow()
    rows = np.flatnonzero(TABLE["n"].to_numpy() == 17)
    assert found["row"].to_pylist() == rows.tolist()
    assert set(found["n"].to_pylist()) == {17}


def test_streams(path: Path) -> None:
    batches = list(fs.scan(path).batches(batch_size=333))
    assert max(batch.num_rows for batch in batches) <= 333
    assert_same(pa.Table.from_batches(batches), TABLE)
    matching = TABLE.filter(pc.less(TABLE["n"], 5))
    rows = [row.as_dict() for row in fs.scan(path).filter("n < 5").rows()]
    assert rows == matching.to_pylist()


def test_column_readers(path: Path) -> None:
    values = np.concatenate([batch.values for batch in fs.scan(path).column("big")])
    assert values.tolist() == TABLE["big"].to_pylist()
    sums = [
        int((batch["id"].values + batch["n"].values).sum())
        for batch in fs.scan(path).filter("n > 30").columns(batch_size=100)
    ]
    rows = TABLE.filter(pc.greater(TABLE["n"], 30))
    assert sum(sums) == pc.sum(rows["id"]).as_py() + pc.sum(rows["n"]).as_py()


def test_a_result_is_written(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "some.parquet"
    matching = TABLE.filter(pc.less(TABLE["n"], 20))
    assert fs.scan(path).filter("n < 20").write(target) == matching.num_rows
    assert_same(pq.read_table(target), matching)


def test_byte_ranges_partition_the_blocks(path: Path) -> None:
    cuts = [0, 1, len(FILE) // 3, len(FILE) // 2, len(FILE)]
    parts = [fs.scan(path).filter(fs.byte_range(*pair)).to_arrow() for pair in pairwise(cuts)]
    assert_same(pa.concat_tables(parts), TABLE)
    # The rule: a block is where its middle is. Here only the first block's lies before a third.
    ends = [4 + 24 * rows for rows in accumulate(BLOCKS)]
    assert ends[0] // 2 < cuts[2] < (ends[2] + ends[3]) // 2
    assert_same(fs.scan(path).filter(fs.byte_range(0, 1000)).to_arrow(), TABLE.slice(0, 0))
    assert_same(fs.scan(path).filter(fs.blocks(3, 4)).to_arrow(), TABLE.slice(701, 1299))


@pytest.mark.parametrize("target", [1, 20_000, 1 << 30])
def test_splits(path: Path, target: int) -> None:
    splits = fs.scan(path).filter("n < 70").with_row_index().splits(target)
    parts = [pickle.loads(pickle.dumps(split)).to_arrow() for split in splits]
    assert {1: 4, 20_000: 3, 1 << 30: 1}[target] == len(parts)
    found = pa.concat_tables(parts)
    kept = pc.less(TABLE["n"], 70)
    assert_same(found.drop(["index"]), TABLE.filter(kept))
    assert found["index"].to_pylist() == np.flatnonzero(kept.to_numpy()).tolist()


def test_plans_and_their_text(path: Path) -> None:
    scan = fs.scan(path).select("id").skip(800).head(10)
    plan = scan.plan()
    assert (plan.rows.total, plan.rows.kept) == (ROWS, 10)
    assert [block.ordinal for block in plan.blocks] == [3]
    assert plan.dropped == {"empty": 1, "window": 3}
    assert plan.bytes.total == 8 * ROWS
    assert plan.bytes.kept == 8 * 1299
    assert "10 of 2,500" in scan.explain()
    text = fs.scan(path).filter("n = 17").explain(run=True)
    matching = int((TABLE["n"].to_numpy() == 17).sum())
    assert re.search(rf"^ +rows +{ROWS:,} +{matching}$", text, re.MULTILINE)


# What is read


def test_reads_no_more_than_it_names(path: Path) -> None:
    footer = len(FILE) - 24 * ROWS - len(MAGIC)
    with fs.trace() as t:
        assert fs.scan(path).count() == ROWS
    assert (t.requests, t.bytes_read, t.data_bytes) == (2, footer, 0)
    fretsaw.cache.clear()
    with fs.trace() as t:
        fs.scan(path).to_arrow()
    assert (t.bytes_read, t.data_bytes) == (len(FILE) - len(MAGIC), 24 * ROWS)
    assert not t.fallbacks
    with fs.trace() as t:
        fs.scan(path).select("n").skip(800).head(10).to_arrow()
    (read,) = [event for event in t.log if event.why == "data"]
    # Behind the blocks before it, the column before it and the rows that are skipped.
    assert (read.offset, read.length) == (4 + 24 * 701 + 8 * 1299 + 8 * 99, 80)


def test_a_footer_is_kept_until_the_file_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptor, "SETTLED_NS", 0)  # files are settled once they are written
    fs.scan(path).count()
    with fs.trace() as t:
        assert fs.scan(path).count() == ROWS
    assert t.requests == 1
    path.write_bytes(toy_bytes(TABLE.slice(0, 5), [5]))
    assert_same(fs.scan(path).to_arrow(), TABLE.slice(0, 5))


def test_other_columns_are_read_between_matches_only(path: Path) -> None:
    with fs.trace() as t:
        found = fs.scan(path).filter("id >= 1000 AND id < 1010").select("big").to_arrow()
    assert found.equals(TABLE.select(["big"]).slice(1000, 10))
    assert t.data_bytes == 8 * ROWS + 8 * 10


# Several files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of the format, one without rows, and a Parquet file between them."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "1.toy").write_bytes(FILE)
    (folder / "2.toy").write_bytes(EMPTY)
    pq.write_table(toy_table(ROWS, 900), folder / "3.parquet", row_group_size=400)
    (folder / "4.toy").write_bytes(toy_bytes(toy_table(ROWS + 900, 50), [20, 30]))
    return folder


MIXED = pa.concat_tables([TABLE, toy_table(ROWS, 900), toy_table(ROWS + 900, 50)]).cast(
    pa.schema([(name, pa.int64()) for name in TABLE.column_names])  # any file may have nulls
)


def test_files_of_two_formats_in_one_scan(folder: Path) -> None:
    scan = fs.scan(folder)
    found = scan.to_arrow()
    assert found.equals(MIXED)
    assert scan.count() == MIXED.num_rows
    matching = MIXED.filter(pc.less(MIXED["n"], 10))
    assert scan.filter(col("n") < 10).to_arrow().equals(matching)
    assert scan.filter("n < 10").tail(30).to_arrow().equals(matching.slice(matching.num_rows - 30))
    assert scan.skip(2400).head(1010).to_arrow().equals(MIXED.slice(2400, 1010))
    assert scan.tail(60).to_arrow().equals(MIXED.slice(MIXED.num_rows - 60))
    numbers = [0, 2499, 2500, 3399, 3400, 3449]
    assert scan.select_rows(numbers).to_arrow().equals(MIXED.take(numbers))
    assert scan.take(numbers[::-1]).equals(MIXED.take(numbers[::-1]))
    numbered = scan.filter("n = 3").with_row_index().to_arrow()
    assert numbered["index"].to_pylist() == numbered["id"].to_pylist()
    paths = scan.with_file_path().select("id").to_arrow()["path"].to_pylist()
    assert [Path(path).name for path in paths] == (
        ["1.toy"] * ROWS + ["3.parquet"] * 900 + ["4.toy"] * 50
    )
    parts = [split.to_arrow() for split in scan.splits(5000)]
    assert pa.concat_tables(parts).equals(MIXED)
    assert [row["id"] for row in scan] == MIXED["id"].to_pylist()
    values = np.concatenate([batch.values for batch in scan.column("n")])
    assert values.tolist() == MIXED["n"].to_pylist()


def test_a_column_that_only_some_files_have(tmp_path: Path) -> None:
    (tmp_path / "1.toy").write_bytes(toy_bytes(TABLE.select(["id"]).slice(0, 3), [3]))
    (tmp_path / "2.toy").write_bytes(toy_bytes(TABLE.select(["n", "id"]).slice(3, 2), [2]))
    found = fs.scan(tmp_path, missing="null").select("id", "n").to_arrow()
    last = TABLE["n"].slice(3, 2).to_pylist()
    assert found.to_pydict() == {"id": [0, 1, 2, 3, 4], "n": [None, None, None, *last]}
    with pytest.raises(fs.SchemaMismatchError, match=r"2\.toy|1\.toy"):
        fs.scan([tmp_path / "2.toy", tmp_path / "1.toy"]).to_arrow()


# What is empty or damaged


def test_files_without_rows() -> None:
    for data in (EMPTY, toy_bytes(TABLE.slice(0, 0), [0, 0])):
        scan = fs.scan(data)
        assert_same(scan.to_arrow(), TABLE.slice(0, 0))
        assert_same(scan.filter("n = 1").to_arrow(), TABLE.slice(0, 0))
        assert (scan.count(), scan.splits(), list(scan.rows())) == (0, [], [])
        assert "0 of 0" in scan.explain()


SMALL = toy_bytes(toy_table(0, 5), [2, 3])


def test_truncated_files() -> None:
    for size in range(len(SMALL)):
        with pytest.raises(fs.FileFormatError) as error:
            fs.scan(SMALL[:size]).to_arrow()
        # The magic bytes alone are a beginning and an end, without a footer between them.
        begins_only = "begins like a toy file but does not end like one"
        assert (begins_only in str(error.value)) == (size > len(MAGIC))


def test_files_that_lack_bytes_before_their_end() -> None:
    for missing in range(1, len(SMALL) - 8):
        with pytest.raises(fs.FileFormatError, match=r"<bytes>: .*(truncated|corrupt)"):
            fs.scan(SMALL[:4] + SMALL[4 + missing :]).to_arrow()


def test_a_file_of_no_format_at_all() -> None:
    with pytest.raises(fs.FileFormatError, match="not a Parquet or an ORC or a toy file"):
        fs.scan(b"something else").to_arrow()
