"""Filters, selections and windows in any order of calls against lists of rows.

The model is a list of rows, each with its file, its block and its physical number; predicates are
three-valued functions of a row, byte ranges are held against the metadata.
"""

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import fretsaw as fs
from fretsaw import col
from tests.support.depth import in_depth
from tests.support.kernels import each_decoder
from tests.support.pages import assert_same
from tests.support.scan_model import (
    ORC,
    PARQUET,
    SCHEMA,
    Condition,
    Lake,
    Row,
    Source,
    Truth,
    conditions,
    sayable_conditions,
)

pytestmark = each_decoder()

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
WINDOWS = frozenset({"skip", "head", "tail"})
COLUMNS = frozenset({"with_row_index", "with_file_path"})
SOURCES = (
    *("one", "hive", "list", "no index") * 2,
    *("one in ORC", "one by pyorc", "hive in ORC", "list in ORC", "no index in ORC"),
    *("mixed hive", "mixed list"),
)
WAYS = ("blocks", "bytes", "rows", "predicate", "text")
ONCE = WINDOWS | {"select", "select_rows"}


# Files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    """One file or several, with and without indexes, in a list and in Hive folders."""
    every_other = [pair[at % 2] for at, pair in enumerate(zip(PARQUET, ORC, strict=True))]
    parquet, orc, mixed = (
        Lake(tmp_path_factory.mktemp("combinations"), layouts)
        for layouts in (PARQUET, ORC, every_other)
    )
    return {
        "one": parquet.one(0),
        "no index": parquet.one(1),
        "list": parquet.listed(),
        "hive": parquet.hive(),
        "one in ORC": orc.one(0),
        "one by pyorc": orc.one(3),
        "no index in ORC": orc.one(1),
        "list in ORC": orc.listed(),
        "hive in ORC": orc.hive(),
        "mixed list": mixed.listed(),
        "mixed hive": mixed.hive(),
    }


# The machine


class Scans(RuleBasedStateMachine):
    """A scan, and the list of rows that it must return."""

    files: ClassVar[Mapping[str, Source]]
    choices: ClassVar[Sequence[str]] = SOURCES

    def __init__(self) -> None:
        super().__init__()
        self.called: set[str] = set()
        self.steps = 0
        self.matching: list[Row] = []
        self.amounts: dict[str, int] = {}
        self.names: tuple[str, ...] = tuple(SCHEMA.names)
        self.failed = False

    @initialize(data=st.data(), conditions=st.lists(conditions | sayable_conditions, max_size=2))
    def open(self, data: st.DataObject, conditions: list[Condition]) -> None:
        self.name = data.draw(st.sampled_from(self.choices), "source")
        self.source = self.files[self.name]
        self.scan = fs.scan(self.source.sources)
        self.unbelieving = fs.scan(self.source.sources, indexes=False)
        self.matching = list(self.source.rows)
        for condition, as_text in zip(conditions, (False, True), strict=False):
            text = condition.text if as_text else None
            self.keep("filter", text or condition.predicate, condition.of_row)

    def call(self, name: str, *arguments: Any) -> bool:
        """Make the call; if the contract forbids it here, see that it raises."""
        self.failed = True
        windows = self.called & WINDOWS
        late = name in ("filter", "select_rows") and bool(windows)
        again = name in ONCE and name in self.called
        mixed = name in WINDOWS and bool(windows) and "tail" in {name, *windows}
        reasons = ["before skip/head/tail"] * late + [name] * (again or mixed)
        if reasons:
            with pytest.raises(ValueError, match="|".join(reasons)):
                getattr(self.scan, name)(*arguments)
        else:
            self.scan = getattr(self.scan, name)(*arguments)
            self.unbelieving = getattr(self.unbelieving, name)(*arguments)
            self.called.add(name)
            self.steps += 1
        self.failed = False
        return not reasons

    def keep(self, name: str, argument: Any, wanted: Callable[[Row], Truth]) -> None:
        if self.call(name, argument):
            self.matching = [row for row in self.matching if wanted(row)]

    @precondition(lambda self: self.matching)  # what is empty stays empty
    @rule(ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=3), data=st.data())
    def narrow(self, ways: list[str], data: st.DataObject) -> None:
        for way in ways:
            if self.matching:
                self.narrow_by(way, data)

    def narrow_by(self, way: str, data: st.DataObject) -> None:
        match way:
            case "predicate":
                condition = data.draw(conditions)
                self.keep("filter", condition.predicate, condition.of_row)
            case "text":
                condition = data.draw(sayable_conditions)
                self.keep("filter", condition.text, condition.of_row)
            case "blocks":
                start = data.draw(st.sampled_from([0, -1, 1, 2]), "start")
                end = data.draw(st.sampled_from([3, 2, 1, 0, 9]), "end")
                self.keep("filter", fs.blocks(start, end), lambda row: start <= row.block < end)
            case "bytes":
                start, end, last = data.draw(self.byte_ranges(), "start, end, last block")
                predicate = fs.byte_range(start, end) & fs.blocks(0, last)
                self.keep(
                    "filter", predicate, lambda row: start <= row.middle < end and row.block < last
                )
            case "rows":
                rows, chosen = data.draw(self.selections())
                self.keep("select_rows", rows, lambda row: row.number in chosen)

    def byte_ranges(self) -> st.SearchStrategy[tuple[int, int, int]]:
        middles = sorted({row.middle for row in self.matching})
        start = st.sampled_from([middles[0], middles[0] + 1, -1, *middles])
        end = st.sampled_from([middles[-1] + 1, middles[-1], 1 << 40, *middles])
        return st.tuples(start, end, st.sampled_from([9, 2]))

    def selections(self) -> st.SearchStrategy[tuple[Any, set[int]]]:
        total = len(self.source.rows)
        numbers = st.lists(st.integers(0, total - 1), min_size=20, max_size=40)
        runs = st.lists(st.integers(1, 40), min_size=1, max_size=6)

        def selection(runs: list[int]) -> tuple[fs.RowSelection, set[int]]:
            mask = [at % 2 == 0 for at, length in enumerate(runs) for _ in range(length)][:total]
            chosen = {number for number, bit in enumerate(mask) if bit}
            return fs.RowSelection.from_filters([np.array(mask)]), chosen

        return numbers.map(lambda rows: (rows, set(rows))) | runs.map(selection)

    @precondition(lambda self: self.steps > 1)
    @rule(name=st.sampled_from(sorted(WINDOWS)), amount=st.sampled_from([3, 0, 1, 10, 30, 1 << 40]))
    def window(self, name: str, amount: int) -> None:
        if self.call(name, amount):
            self.amounts[name] = amount

    @precondition(lambda self: "select" not in self.called or self.steps > 3)
    @rule(names=st.lists(st.sampled_from(SCHEMA.names), unique=True))
    def select(self, names: list[str]) -> None:
        if self.call("select", *names):
            self.names = tuple(names)

    @precondition(lambda self: not self.called & COLUMNS)
    @rule(names=st.sampled_from([sorted(COLUMNS), ["with_row_index"], ["with_file_path"]]))
    def add_columns(self, names: list[str]) -> None:
        for name in names:
            self.call(name)

    def wanted(self) -> pa.Table:
        rows = self.matching[self.amounts.get("skip", 0) :]
        rows = rows[: self.amounts.get("head")]
        rows = rows[max(0, len(rows) - self.amounts.get("tail", len(rows))) :]
        numbers = pa.array([row.number for row in rows], pa.int64())
        table = self.source.table.take(numbers).select(self.names)
        if "with_row_index" in self.called:
            table = table.add_column(0, pa.field("index", pa.int64(), nullable=False), [numbers])
        if "with_file_path" in self.called:
            paths = pa.array([row.file for row in rows], pa.string())
            table = table.append_column(pa.field("path", pa.string(), nullable=False), [paths])
        return table

    def teardown(self) -> None:
        if not self.failed:
            self.check(self.scan, self.wanted())
            assert_same(self.unbelieving.to_arrow(), self.wanted())

    def check(self, scan: fs.Scan, wanted: pa.Table) -> None:
        assert_same(scan.to_arrow(), wanted)
        assert scan.count() == wanted.num_rows
        assert scan.schema.equals(wanted.schema)
        for size in (1, 7, None):
            batches = list(scan.batches(size))
            assert size is None or all(0 < batch.num_rows <= size for batch in batches)
            assert_same(pa.Table.from_batches(batches, scan.schema), wanted)
        with scan.to_reader() as reader:
            assert_same(reader.read_all(), wanted)
        assert_same(pickle.loads(pickle.dumps(scan)).to_arrow(), wanted)
        if self.called & WINDOWS:
            with pytest.raises(ValueError, match=r"window|skip|head|tail"):
                scan.splits()
            return
        plan = scan.plan()
        assert plan.proven <= wanted.num_rows <= plan.rows.kept <= plan.rows.total
        parts = [pickle.loads(pickle.dumps(part)) for part in scan.splits(target_bytes=1_500)]
        tables = [part.to_arrow() for part in parts]
        if wanted.num_columns:  # without columns, pyarrow's concatenation has no rows
            assert_same(pa.concat_tables([wanted.slice(0, 0), *tables]), wanted)
        assert sum(table.num_rows for table in tables) == wanted.num_rows
        assert sum(part.count() for part in parts) == wanted.num_rows


@pytest.mark.parametrize("start", in_depth(range(40), 1, 4))
def test_any_order_of_calls_agrees_with_lists_of_rows(files: dict[str, Source], start: int) -> None:
    Scans.files = files
    effort = settings(max_examples=12 * MORE, stateful_step_count=6, derandomize=True)
    run_state_machine_as_test(seed(start)(Scans), settings=effort)


@pytest.mark.parametrize("start", in_depth(range(50), 1, 4))
def test_filters_agree_with_functions_of_a_row(files: dict[str, Source], start: int) -> None:
    @seed(start)
    @settings(max_examples=40 * MORE, derandomize=True)
    @given(st.sampled_from(SOURCES), conditions)
    def check(name: str, condition: Condition) -> None:
        wanted = [row.number for row in files[name].rows if condition.of_row(row)]
        scan, every = (
            fs.scan(files[name].sources, indexes=believed).select().with_row_index()
            for believed in (True, False)
        )
        assert scan.filter(condition.predicate).to_arrow()["index"].to_pylist() == wanted
        assert every.filter(condition.predicate).to_arrow()["index"].to_pylist() == wanted
        assert scan.filter(condition.text or condition.predicate).count() == len(wanted)

    check()


# Physical rows


def test_take_reads_physical_rows(files: dict[str, Source]) -> None:
    for data in files.values():
        scan = fs.scan(data.sources)
        found = scan.with_row_index("row").filter((col("n") > 0) | col("s").is_null()).to_arrow()
        rows = found["row"].to_pylist()
        assert 0 < len(rows) < len(data.rows)
        assert_same(scan.take(rows), found.drop_columns("row"))
        again = [*reversed(rows), rows[0], rows[0]]
        assert_same(scan.take(again), data.table.take(again))
        for filtered in (scan.filter(col("n") > 0), scan.filter("n > 0").head(3)):
            with pytest.raises(ValueError, match="take"):
                filtered.take([0])
