"""Files in every layout, conditions on their rows, and lists of rows that say what is right."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import col
from tests.support.formats import in_blocks, written

NULL = "__HIVE_DEFAULT_PARTITION__"
FIRST_DAY = date(2024, 1, 1)


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
    "x": (*FLOATS, 2),
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
    """Whether SQL text has a literal for it; a zero there means both."""
    return not isinstance(value, float) or (math.isfinite(value) and value != 0)


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


def paths_of(trace: fs.Trace, why: str | None = None) -> set[str]:
    return {read.path for read in trace.log if why in (None, read.why)}
