"""Filters, selections and windows in any order of calls against lists of rows; when reading stops.

The model is a list of rows, each with its file, its block and its physical number; predicates are
three-valued functions of a row, byte ranges are held against the metadata. `FRETSAW_MORE`
multiplies how many orders of calls are tried.
"""

import math
import operator
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
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
from tests.support.formats import in_blocks, written
from tests.support.pages import assert_same

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
NULL = "__HIVE_DEFAULT_PARTITION__"
FIRST_DAY = date(2024, 1, 1)
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


@dataclass(frozen=True)
class Row:
    """Where a row lives, and what it holds."""

    number: int
    file: str
    block: int
    middle: int
    values: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Source:
    """What is scanned, and all that is in it."""

    sources: Any
    rows: Sequence[Row]
    table: pa.Table

    def __repr__(self) -> str:
        return f"Source({self.sources})"


# The last two are stored in some files and Hive folders of others.
SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "n": pa.int32(),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "d": pa.date32(),
        "m": pa.decimal128(9, 2),
        "tags": pa.list_(pa.int64()),
        "p": pa.struct({"q": pa.int32()}),
        "year": pa.int64(),
        "zone": pa.string(),
    }
)
HIVE = ("year", "zone")
FLOATS = (-math.inf, -1.5, -0.0, 0.0, 0.5, 2.0, math.inf, math.nan)
TEXTS = ("", "a", "ab", "b", "it's", "é")
ZONES = (None, "east", "west")


def sample(first: int, size: int, year: int, zone: str | None) -> pa.Table:
    """Rows of which some are null in each column; `k` and `d` go up from file to file."""
    rng = np.random.default_rng(first)
    numbers = range(first, first + size)

    def some(values: Sequence[Any]) -> list[Any]:
        picks = rng.integers(len(values), size=size)
        return [None if rng.random() < 0.2 else values[pick] for pick in picks]

    columns = {
        "k": [number // 2 for number in numbers],
        "n": some(range(-3, 4)),
        "x": some(FLOATS),
        "s": some(TEXTS),
        "b": some([True, False]),
        "d": [FIRST_DAY + timedelta(days=number // 3) for number in numbers],
        "m": some([Decimal(cents) / 4 for cents in range(-6, 7)]),
        "tags": some([[], [1], [None], [1, 2, 3], [2, None]]),
        "p": some([{"q": None}, {"q": 1}, {"q": 2}]),
        "year": [year] * size,
        "zone": [zone] * size,
    }
    return pa.table(columns, schema=SCHEMA)


def source(sources: Any, parts: Sequence[tuple[Path, pa.Table]]) -> Source:
    """The rows of these files, in this order."""
    rows: list[Row] = []
    for path, table in parts:
        values = table.to_pylist()
        for at, block in enumerate(in_blocks(path.read_bytes())):
            for row in block.rows:
                rows.append(Row(len(rows), str(path), at, block.midpoint, values[row]))
    return Source(sources, rows, pa.concat_tables([table for _, table in parts]))


PAGES = {"max_rows_per_page": 3, "write_batch_size": 1, "use_dictionary": ["s", "n"]}
INDEX = {**PAGES, "write_page_index": True}
NO_INDEX = {**PAGES, "write_page_index": False, "data_page_version": "2.0"}
Layout = tuple[str, tuple[int, ...], dict[str, Any]]
PARQUET: tuple[Layout, ...] = (
    ("parquet", (14, 1, 20, 0, 9), INDEX),
    ("parquet", (17, 13), NO_INDEX),
    ("parquet", (0,), INDEX),
    ("parquet", (6, 6, 6), {**INDEX, "store_decimal_as_integer": True}),
    ("parquet", (11,), {**PAGES, "write_statistics": False, "use_dictionary": True}),
)
STRIDES = {"row_index_stride": 3, "blooms": True}
OLD_RUNS = {"file_version": "0.11", "compression": "zlib", "dictionary_key_size_threshold": 1.0}
ORC: tuple[Layout, ...] = (
    ("orc", (14, 1, 20, 9), STRIDES),
    ("orc", (17, 13), {"row_index_stride": 0, "compression": "snappy"}),
    ("pyorc", (0,), STRIDES),
    ("pyorc", (6, 6, 6), {**STRIDES, "compression": "zstd", "dict_key_size_threshold": 1.0}),
    ("orc", (11,), {"row_index_stride": 4, **OLD_RUNS}),
)


class Lake:
    """The files of the layouts, with numbers for names and in Hive folders."""

    def __init__(self, root: Path, layouts: Sequence[Layout]) -> None:
        self.flat: list[tuple[Path, pa.Table]] = []
        self.folders: list[tuple[Path, pa.Table]] = []
        self._hive = root / "hive"
        first = 0
        for at, (writer, blocks, options) in enumerate(layouts):
            year, zone = 2023 + at // 2, ZONES[at % 3]
            table = sample(first, sum(blocks), year, zone)
            first += sum(blocks)
            folder = self._hive / f"year={year}" / f"zone={zone or NULL}"
            folder.mkdir(parents=True)
            self.flat.append((root / str(at), table))
            self.folders.append((folder / "data", table))
            stored = table.drop_columns(HIVE)
            self.flat[-1][0].write_bytes(written(table, writer, blocks, **options))
            self.folders[-1][0].write_bytes(written(stored, writer, blocks, **options))

    def one(self, at: int) -> Source:
        return source(self.flat[at][0], self.flat[at : at + 1])

    def listed(self) -> Source:
        """All files, the last one first."""
        backward = self.flat[::-1]
        return source([path for path, _ in backward], backward)

    def hive(self) -> Source:
        return source(self._hive, sorted(self.folders, key=lambda part: str(part[0])))


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


# Predicates, and what they say of a row

Truth = bool | None


@dataclass(frozen=True, repr=False)
class Condition:
    """A predicate in both notations (SQL lacks some), and the same as a function of a row."""

    predicate: fs.Predicate
    text: str | None
    holds: Callable[[Mapping[str, Any]], Truth]

    def of_row(self, row: Row) -> Truth:
        return self.holds(row.values)

    def __repr__(self) -> str:
        return f"<{self.predicate} or {self.text!r}>"


def both(one: Truth, other: Truth) -> Truth:
    return False if False in (one, other) else None if None in (one, other) else True


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def either(one: Truth, other: Truth) -> Truth:
    return negated(both(negated(one), negated(other)))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EQUALITIES = ("=", "!=")
LITERALS: dict[str, tuple[Any, ...]] = {
    "k": (-1, 0, 3, 7, 20, 31, 45, 60, 2**40, 7.5),
    "n": (-3, -1, 0, 1, 3, -(2**40), 0.5),
    "x": (*FLOATS, 0, 2),
    "s": (*TEXTS, "aa"),
    "b": (True, False),
    "d": tuple(FIRST_DAY + timedelta(days=days) for days in (-1, 0, 4, 9, 17, 30, 99)),
    "m": (Decimal("0.25"), Decimal("-1.5"), Decimal("0.251"), 1, 0.5),
    "p.q": (0, 1, 2),
    "year": (2023, 2024, 2025, 9),
    "zone": ("east", "west", "n"),
}


def value_at(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for step in path.split("."):
        value = None if value is None else value[step]
    return value


def ordered(value: Any, name: str) -> Any:
    """What compares as the contract says: floats in total order, everything else by value."""
    if name != "x":
        return value
    if math.isnan(value):
        return (1, 0.0, 0.0)
    return (0, float(value), math.copysign(1.0, value))


def sql(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case date():
            return f"'{value}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


def sayable(value: Any) -> bool:
    """Whether SQL text has a literal for it; a minus sign there is no part of a zero."""
    return not isinstance(value, float) or (math.isfinite(value) and str(value) != "-0.0")


def comparison(name: str, sign: str, literal: Any) -> Condition:
    compare = COMPARISONS[sign]

    def holds(row: Mapping[str, Any]) -> Truth:
        value = value_at(row, name)
        if value is None:
            return None
        return bool(compare(ordered(value, name), ordered(literal, name)))

    text = f"{name} {sign} {sql(literal)}" if sayable(literal) else None
    return Condition(compare(col(name), literal), text, holds)


def membership(name: str, literals: Sequence[Any]) -> Condition:
    def holds(row: Mapping[str, Any]) -> Truth:
        value = value_at(row, name)
        if value is None:
            return None
        wanted = [ordered(literal, name) for literal in literals if literal is not None]
        return True if ordered(value, name) in wanted else None if None in literals else False

    listed = f"{name} in ({', '.join(map(sql, literals))})"
    text = listed if all(map(sayable, literals)) else None
    return Condition(col(name).is_in(literals), text, holds)


def between(name: str, low: Any, high: Any) -> Condition:
    def holds(row: Mapping[str, Any]) -> Truth:
        value = value_at(row, name)
        if value is None:
            return None
        return bool(ordered(low, name) <= ordered(value, name) <= ordered(high, name))

    text = f"{name} between {sql(low)} and {sql(high)}" if sayable(low) and sayable(high) else None
    return Condition(col(name).is_between(low, high), text, holds)


def null_test(name: str, null: bool) -> Condition:
    predicate = col(name).is_null() if null else col(name).is_not_null()
    text = f"{name} is {'' if null else 'not '}null"
    return Condition(predicate, text, lambda row: (value_at(row, name) is None) == null)


def prefix(name: str, start: str) -> Condition:
    def holds(row: Mapping[str, Any]) -> Truth:
        value = value_at(row, name)
        return None if value is None else value.startswith(start)

    return Condition(col(name).starts_with(start), None, holds)


def elements(quantifier: str, sign: str, literal: int) -> Condition:
    compare = COMPARISONS[sign]

    def holds(row: Mapping[str, Any]) -> Truth:
        if row["tags"] is None:
            return None
        fold = either if quantifier == "any" else both
        truth: Truth = quantifier == "all"
        for tag in row["tags"]:
            truth = fold(truth, None if tag is None else bool(compare(tag, literal)))
        return truth

    leaf = col("tags").any() if quantifier == "any" else col("tags").all()
    return Condition(compare(leaf, literal), None, holds)


NAN_TEST = Condition(
    col("x").is_nan(), None, lambda row: None if row["x"] is None else math.isnan(row["x"])
)


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(sorted(LITERALS)))
    literal = st.sampled_from(LITERALS[name])
    match draw(st.sampled_from(["compare", "compare", "in", "between", "null", "other"])):
        case "in":
            literals = st.lists(literal, min_size=1, max_size=3)
            return membership(name, [*draw(literals), *draw(st.sampled_from([(), (), (None,)]))])
        case "between" if name != "b":
            return between(name, draw(literal), draw(literal))
        case "null":
            return null_test(draw(st.sampled_from([name, "tags", "p"])), draw(st.booleans()))
        case "other":
            quantified = [elements(q, sign, 2) for q in ("any", "all") for sign in ("=", ">")]
            return draw(st.sampled_from([NAN_TEST, prefix("s", "a"), *quantified]))
        case _:
            signs = EQUALITIES if name == "b" else sorted(COMPARISONS)
            return comparison(name, draw(st.sampled_from(signs)), draw(literal))


def joined(sign: str, one: Condition, other: Condition) -> Condition:
    texts = [part.text for part in (one, other)]
    text = None if None in texts else f" {sign} ".join(f"({text})" for text in texts)
    if sign == "and":
        predicate = one.predicate & other.predicate
        return Condition(predicate, text, lambda row: both(one.holds(row), other.holds(row)))
    predicate = one.predicate | other.predicate
    return Condition(predicate, text, lambda row: either(one.holds(row), other.holds(row)))


def inverted(one: Condition) -> Condition:
    text = None if one.text is None else f"not ({one.text})"
    return Condition(~one.predicate, text, lambda row: negated(one.holds(row)))


def grown(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    return st.builds(inverted, parts) | st.builds(
        joined, st.sampled_from(["or", "or", "and"]), parts, parts
    )


conditions = st.recursive(leaves(), grown, max_leaves=4)
sayable_conditions = st.recursive(
    leaves().filter(lambda leaf: leaf.text is not None), grown, max_leaves=4
)


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


@pytest.mark.slow
def test_any_order_of_calls_agrees_with_lists_of_rows(files: dict[str, Source]) -> None:
    Scans.files = files
    effort = settings(max_examples=70 * MORE, stateful_step_count=6, derandomize=True)
    run_state_machine_as_test(Scans, settings=effort)


@pytest.mark.slow
@settings(max_examples=250 * MORE, derandomize=True)
@given(st.sampled_from(SOURCES), conditions)
def test_filters_agree_with_functions_of_a_row(
    files: dict[str, Source], name: str, condition: Condition
) -> None:
    wanted = [row.number for row in files[name].rows if condition.of_row(row)]
    scan, every = (
        fs.scan(files[name].sources, indexes=believed).select().with_row_index()
        for believed in (True, False)
    )
    assert scan.filter(condition.predicate).to_arrow()["index"].to_pylist() == wanted
    assert every.filter(condition.predicate).to_arrow()["index"].to_pylist() == wanted
    assert scan.filter(condition.text or condition.predicate).count() == len(wanted)


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


# When reading stops

FILES = 200
PER_FILE = 20


def paths_of(trace: fs.Trace, why: str | None = None) -> set[str]:
    return {read.path for read in trace.log if why in (None, read.why)}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """200 files of 20 rows: `n` counts them all, `digit` is no help to an index."""
    root = tmp_path_factory.mktemp("many")
    paths = [root / f"{at:03}.parquet" for at in range(FILES)]
    for at, path in enumerate(paths):
        n = np.arange(at * PER_FILE, (at + 1) * PER_FILE)
        pq.write_table(pa.table({"n": n, "digit": n % 10, "other": -n}), path)
    return paths


PREDICATES = pytest.mark.parametrize("predicate", [col("digit") == 3, "digit = 3"], ids=repr)


@PREDICATES
def test_head_under_a_filter_opens_a_handful_of_files(many: list[Path], predicate: Any) -> None:
    scan = fs.scan(list(many)).filter(predicate)
    for window, wanted in ((scan.head(5), range(3, 53, 10)), (scan.skip(3).head(2), (33, 43))):
        for use in (fs.Scan.to_arrow, lambda scan: pa.Table.from_batches(scan.batches(2))):
            with fs.trace() as trace:
                assert use(window)["n"].to_pylist() == list(wanted)
            assert paths_of(trace) <= {str(path) for path in many[:10]}
            assert paths_of(trace, "data") <= {str(path) for path in many[:6]}


@PREDICATES
def test_count_of_a_head_under_a_filter_stops_too(many: list[Path], predicate: Any) -> None:
    with fs.trace() as trace:
        assert fs.scan(list(many)).filter(predicate).head(5).count() == 5
    assert paths_of(trace) <= {str(path) for path in many[:10]}


@PREDICATES
def test_tail_under_a_filter_opens_files_from_the_end(many: list[Path], predicate: Any) -> None:
    end = FILES * PER_FILE
    with fs.trace() as trace:
        found = fs.scan(many[0].parent).filter(predicate).tail(5).to_arrow()
    assert found["n"].to_pylist() == list(range(end - 47, end, 10))
    # The first file says what the columns are; nothing but its footer is read.
    assert paths_of(trace) <= {str(path) for path in (many[0], *many[-10:])}
    assert paths_of(trace, "data") <= {str(path) for path in many[-6:]}


def test_files_that_statistics_rule_out_are_read_no_further_than_their_footers(
    many: list[Path],
) -> None:
    scan = fs.scan(list(many)).filter(col("n").is_between(2_001, 2_022))
    with fs.trace() as trace:
        assert scan.to_arrow()["n"].to_pylist() == list(range(2_001, 2_023))
    assert paths_of(trace, "data") == {str(path) for path in many[100:102]}
    assert paths_of(trace, "index") <= {str(path) for path in many[100:102]}
    with fs.trace() as trace:
        assert scan.tail(2).to_arrow()["n"].to_pylist() == [2_021, 2_022]
    assert paths_of(trace, "data") == {str(many[101])}
    assert not paths_of(trace) & {str(path) for path in many[1:90]}


@pytest.fixture(scope="module")
def tall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of 50 blocks of 1,000 rows, 4 pages for each column; `n` is sorted."""
    n = np.arange(50_000)
    some = pa.array(n, mask=n % 1_000 < 250)
    table = pa.table({"n": n, "digit": n % 10, "other": n * 3, "some": some})
    path = tmp_path_factory.mktemp("tall") / "data.parquet"
    layout = {"row_group_size": 1_000, "max_rows_per_page": 250, "write_batch_size": 250}
    pq.write_table(table, path, write_page_index=True, compression="none", **layout)
    return path


def test_windows_under_a_filter_read_one_end_of_a_file(tall: Path) -> None:
    scan = fs.scan(tall).filter(col("digit") == 3)
    size = tall.stat().st_size
    with fs.trace() as trace:
        assert scan.head(4).to_arrow()["n"].to_pylist() == [3, 13, 23, 33]
    assert trace.data_bytes < size / 5
    assert all(read.offset < size / 5 for read in trace.log if read.why == "data")
    with fs.trace() as trace:
        assert scan.tail(4).to_arrow()["n"].to_pylist() == [49_963, 49_973, 49_983, 49_993]
    assert trace.data_bytes < size / 5
    assert all(read.offset > size * 3 / 5 for read in trace.log if read.why == "data")


DECIDED: dict[str, tuple[Any, int]] = {
    "all": (col("n") >= 0, 50_000),
    "none": (col("n") < 0, 0),
    "some blocks": (col("n") < 7_000, 7_000),
    "some pages": ((col("n") >= 7_250) & (col("n") < 9_500), 2_250),
    "text": ("n >= 7250 and not n >= 9500", 2_250),
    "either": ((col("n") < 250) | (col("n") >= 49_000), 1_250),
    "nulls": (col("some").is_null(), 12_500),
    "not null": (~col("some").is_null(), 37_500),
    "bounds and nulls": (col("some") < 1_000, 750),
    "wider than the type": (col("n") < 2**80, 50_000),
}


@pytest.mark.parametrize("name", DECIDED)
def test_count_that_metadata_decides_reads_no_data_page(name: str, tall: Path) -> None:
    predicate, rows = DECIDED[name]
    with fs.trace() as trace:
        assert fs.scan(tall).filter(predicate).count() == rows
    assert trace.data_bytes == trace.pages_decoded == 0
    with fs.trace() as trace:
        assert fs.scan(tall).filter(predicate).head(400).count() == min(rows, 400)
        assert fs.scan(tall).filter(predicate).tail(400).count() == min(rows, 400)
    assert trace.data_bytes == trace.pages_decoded == 0


def test_count_decodes_only_the_pages_that_metadata_leaves_open(tall: Path) -> None:
    with fs.trace() as trace:
        assert fs.scan(tall).filter(col("n").is_between(7_100, 30_100)).count() == 23_001
    assert trace.pages_decoded == 2


# Hive folders

YEARS = range(2015, 2025)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each year and zone; `n` is the same in all of them."""
    root = tmp_path_factory.mktemp("lake")
    for year in YEARS:
        for zone in ZONES:
            path = root / f"year={year}" / f"zone={zone or NULL}" / "data.parquet"
            path.parent.mkdir(parents=True)
            pq.write_table(pa.table({"n": range(10)}), path)
    return root


def of_lake(lake: Path, wanted: Callable[[int, str | None], bool]) -> set[str]:
    return {
        str(lake / f"year={year}" / f"zone={zone or NULL}" / "data.parquet")
        for year in YEARS
        for zone in ZONES
        if wanted(year, zone)
    }


DROPPING: dict[str, tuple[Any, Callable[[int, str | None], bool]]] = {
    "equal": (col("year") == 2024, lambda year, zone: year == 2024),
    "not equal": (col("zone") != "east", lambda year, zone: zone == "west"),
    "not": (~(col("zone") == "east"), lambda year, zone: zone == "west"),
    "text": ("year > 2020 and zone = 'east'", lambda year, zone: year > 2020 and zone == "east"),
    "in": (col("year").is_in([2016, 2018, 9]), lambda year, zone: year in (2016, 2018)),
    "null": (
        col("zone").is_null() & (col("year") < 2017),
        lambda year, zone: zone is None and year < 2017,
    ),
    "prefix": (col("zone").starts_with("w"), lambda year, zone: zone == "west"),
    "with a column": ((col("year") == 2019) & (col("n") >= 0), lambda year, zone: year == 2019),
    "twice": (
        ((col("year") == 2019) | (col("zone") == "east")) & (col("year") >= 2019),
        lambda year, zone: year == 2019 or (year > 2019 and zone == "east"),
    ),
    "each with a column": (
        ((col("year") == 2019) & (col("n") < 99)) | ((col("year") == 2020) & (col("n") >= 0)),
        lambda year, zone: year in (2019, 2020),
    ),
}


def opened_besides(kept: set[str], lake: Path, trace: fs.Trace) -> set[str]:
    """What was read of other files: the first of all settles the columns, by its footer."""
    first = min(of_lake(lake, lambda _year, _zone: True))
    return {read.path for read in trace.log if (read.path, read.why) != (first, "footer")} - kept


@pytest.mark.parametrize("name", DROPPING)
def test_files_are_dropped_by_their_folders_before_they_are_opened(name: str, lake: Path) -> None:
    predicate, wanted = DROPPING[name]
    kept = of_lake(lake, wanted)
    scan = fs.scan(lake).filter(predicate)
    with fs.trace() as trace:
        assert scan.with_file_path().to_arrow()["path"].unique().to_pylist() == sorted(kept)
    assert opened_besides(kept, lake, trace) == set()
    with fs.trace() as trace:
        assert scan.count() == 10 * len(kept)
    assert opened_besides(kept, lake, trace) == set()
    assert trace.data_bytes == 0
    with fs.trace() as trace:
        assert scan.tail(3).to_arrow()["n"].to_pylist() == [7, 8, 9]
        assert scan.head(3).to_arrow()["n"].to_pylist() == [0, 1, 2]
        assert scan.schema.names == ["n", "year", "zone"]
    assert opened_besides(kept, lake, trace) == set()


def test_splits_are_made_of_the_files_that_their_folders_keep(lake: Path) -> None:
    scan = fs.scan(lake).filter("year >= 2023 and zone = 'east'")
    with fs.trace() as trace:
        assert sum(part.count() for part in scan.splits()) == 20
    kept = of_lake(lake, lambda year, zone: year >= 2023 and zone == "east")
    assert kept <= paths_of(trace)
    assert opened_besides(kept, lake, trace) == set()


def test_row_numbers_count_the_files_that_are_dropped(lake: Path) -> None:
    scan = fs.scan(lake).filter(col("year") == 2016)
    assert scan.with_row_index().to_arrow()["index"].to_pylist() == list(range(30, 60))
    chosen = scan.select_rows([0, 29, 35, 59, 60, 299]).with_row_index().to_arrow()
    assert chosen["index"].to_pylist() == [35, 59]
    with pytest.raises(ValueError, match="300"):
        scan.select_rows([35, 300]).to_arrow()


def test_nothing_is_left_when_every_file_is_dropped(lake: Path) -> None:
    scan = fs.scan(lake).filter(col("year") > 3000)
    with fs.trace() as trace:
        assert scan.to_arrow().equals(fs.scan(lake).head(0).to_arrow())
        assert scan.count() == scan.tail(3).count() == 0
        assert list(scan.batches()) == []
    assert len(paths_of(trace)) <= 1
    assert trace.data_bytes == 0


def test_a_folder_in_one_branch_drops_no_file_that_the_other_may_need(lake: Path) -> None:
    scan = fs.scan(lake).filter((col("year") == 2019) | (col("n") == 4))
    assert scan.count() == 3 * 10 + 27
    years = scan.filter("zone = 'east'").to_arrow()["year"].to_pylist()
    assert years == sorted([*YEARS, *[2019] * 9])
