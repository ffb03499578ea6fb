"""Late materialisation with judgement: what is cheap and decides much comes first.

Measured as work, never as time: what the trace says was read and decoded, against the page headers
and against a scan without the filter. Which rows are right, pyarrow says.
"""

import io
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from fretsaw.engine import threads
from fretsaw.storage import descriptor
from tests.support.pages import Chunk, assert_same, row_groups

pytestmark = pytest.mark.slow

GROUPS, GROUP_ROWS, PAGE_ROWS = 10, 4_000, 250
ROWS = GROUPS * GROUP_ROWS
HITS = 100
"""Rows of each row group that the costly check tells from the others: all in its first page."""
WORKERS = 2

Filter = Callable[[pa.Table], pa.ChunkedArray]


@pytest.fixture(autouse=True)
def _few_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks that are begun at once know nothing of each other: no more of them than here."""
    with ThreadPoolExecutor(WORKERS) as pool:
        monkeypatch.setattr(threads, "pool", lambda: pool)
        yield


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    layout = {"max_rows_per_page": PAGE_ROWS, "write_batch_size": 50, "write_page_index": True}
    pq.write_table(table, sink, **layout | options)
    return sink.getvalue()


def read(scan: fs.Scan) -> tuple[pa.Table, fs.Trace]:
    with fs.trace() as trace:
        table = scan.to_arrow()
    return table, trace


def counted(scan: fs.Scan) -> tuple[int, fs.Trace]:
    with fs.trace() as trace:
        count = scan.count()
    return count, trace


def chunks(data: bytes, *columns: str) -> list[Chunk]:
    return [c for group in row_groups(data) for c in group.chunks if c.column in columns]


def size(data: bytes, *columns: str) -> int:
    return sum(chunk.span.end - chunk.span.start for chunk in chunks(data, *columns))


def assert_no_byte_twice(trace: fs.Trace) -> None:
    reads = sorted((read.offset, read.length) for read in trace.log if read.why == "data")
    for (start, length), (following, _) in itertools.pairwise(reads):
        assert start + length <= following, "read twice"


# The order of checks


def ordinary_table() -> pa.Table:
    rng = np.random.default_rng(1)
    first = np.arange(ROWS) % GROUP_ROWS < HITS
    tails = rng.integers(0, 10**9, ROWS)
    texts = [
        f"{'hit' if hit else 'miss'} {'x' * 30}{tail:09}"
        for hit, tail in zip(first.tolist(), tails.tolist(), strict=True)
    ]
    return pa.table(
        {
            "cheap": pa.array(rng.integers(0, 1_000, ROWS), pa.int32()),
            "costly": texts,
            "some": pa.array(rng.integers(0, 4, ROWS), pa.int64(), mask=rng.random(ROWS) < 0.2),
            "other": rng.normal(size=ROWS),
        }
    )


@cache
def ordinary() -> tuple[pa.Table, bytes]:
    """Nothing in the file proves anything about its values."""
    table = ordinary_table()
    layout = {"write_statistics": False, "use_dictionary": False}
    return table, written(table, row_group_size=GROUP_ROWS, **layout)


def decoded_of_cheap(predicate: fs.Predicate, rows: int) -> float:
    """For which part of the rows the cheap column is decoded; the costly one is for all."""
    count, trace = counted(fs.scan(ordinary()[1]).filter(predicate))
    assert count == rows
    assert trace.rows_decoded >= ROWS
    return (trace.rows_decoded - ROWS) / ROWS


def both_ways(one: fs.Predicate, other: fs.Predicate, word: str) -> list[fs.Predicate]:
    return [one & other, other & one] if word == "and" else [one | other, other | one]


def test_a_cheap_check_that_never_decides_comes_last_under_and() -> None:
    always, selective = col("cheap") >= 0, col("costly").starts_with("hit")
    for predicate in both_ways(always, selective, "and"):
        assert decoded_of_cheap(predicate, GROUPS * HITS) < 0.4


def test_a_cheap_check_that_never_decides_comes_last_under_or() -> None:
    never, nearly_all = col("cheap") < 0, col("costly").starts_with("miss")
    for predicate in both_ways(never, nearly_all, "or"):
        assert decoded_of_cheap(predicate, ROWS - GROUPS * HITS) < 0.4


def test_what_is_below_another_operator_is_judged_as_a_whole() -> None:
    cheap, costly = col("cheap"), col("costly")
    always = (cheap < 500) | (cheap >= 500) | (cheap == 7)
    assert decoded_of_cheap(always & costly.starts_with("hit"), GROUPS * HITS) < 0.4
    never = (cheap < 500) & (cheap > 600) & (cheap != 7)
    misses = ROWS - GROUPS * HITS
    assert decoded_of_cheap(never | costly.starts_with("miss"), misses) < 0.4


def test_a_cheap_check_that_decides_stays_first() -> None:
    table, data = ordinary()
    number = int(table["cheap"][10].as_py())
    count, trace = counted(fs.scan(data).filter((col("cheap") == number) & (col("costly") > "m")))
    expected = table.filter((pc.field("cheap") == number) & (pc.field("costly") > "m"))
    assert count == expected.num_rows
    # The costly column: only the pages with one of the few rows.
    assert trace.rows_decoded < ROWS + ROWS * 0.3
    assert trace.data_bytes < size(data, "cheap") + size(data, "costly") * 0.3


def test_experience_of_one_scan_is_none_of_the_next() -> None:
    """What is selective in one scan may not be so in another."""
    _, data = ordinary()
    hits, misses = col("costly").starts_with("hit"), col("costly").starts_with("miss")
    always = col("cheap") >= 0
    works = []
    for predicate in (always & hits, always & misses, always & hits, always & misses):
        count, trace = counted(fs.scan(data).filter(predicate))
        works.append((count, trace.rows_decoded > ROWS * 1.5))
    hit_work, miss_work = (GROUPS * HITS, False), (ROWS - GROUPS * HITS, True)
    assert works == [hit_work, miss_work, hit_work, miss_work]


PARTS: dict[str, tuple[fs.Predicate, Filter]] = {
    "always": (col("cheap") >= 0, lambda t: pc.greater_equal(t["cheap"], 0)),
    "never": (col("cheap") < 0, lambda t: pc.less(t["cheap"], 0)),
    "half": (col("cheap") < 500, lambda t: pc.less(t["cheap"], 500)),
    "hit": (col("costly").starts_with("hit"), lambda t: pc.starts_with(t["costly"], "hit")),
    "later": (col("costly") > "miss", lambda t: pc.greater(t["costly"], "miss")),
    "one": (col("some") == 1, lambda t: pc.equal(t["some"], 1)),
    "not two": (~(col("some") == 2), lambda t: pc.not_equal(t["some"], 2)),
    "unknown": (col("some").is_null(), lambda t: pc.is_null(t["some"])),
}
# Three checks, joined in any order: A & B & C, A | B | C, (A | B) & C, (A & B) | C
SHAPES: dict[str, Callable[..., Any]] = {
    "and": lambda both, either, a, b, c: both(both(a, b), c),
    "or": lambda both, either, a, b, c: either(either(a, b), c),
    "and of or": lambda both, either, a, b, c: both(either(a, b), c),
    "or of and": lambda both, either, a, b, c: either(both(a, b), c),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_the_same_in_every_order(shape: str) -> None:
    table, data = ordinary()
    join = SHAPES[shape]
    rng = np.random.default_rng(3)
    every = list(itertools.combinations(PARTS, 3))
    for names in (every[place] for place in rng.choice(len(every), 5, replace=False)):
        for order in itertools.permutations(names):
            theirs = [PARTS[name][1](table) for name in order]
            mask = join(pc.and_kleene, pc.or_kleene, *theirs)
            ours = [PARTS[name][0] for name in order]
            predicate = join(operator.and_, operator.or_, *ours)
            found, _ = read(fs.scan(data).filter(predicate).select("other", "some"))
            assert_same(found, table.filter(mask).select(["other", "some"]))


def test_windows_over_the_matches_are_the_same_in_every_order() -> None:
    table, data = ordinary()
    mask = pc.and_(pc.starts_with(table["costly"], "hit"), pc.less(table["cheap"], 500))
    expected = table.filter(mask)
    one, other = col("costly").starts_with("hit"), col("cheap") < 500
    for predicate in both_ways(one, other, "and"):
        scan = fs.scan(data).filter(predicate)
        assert_same(scan.skip(100).head(150).to_arrow(), expected.slice(100, 150))
        assert_same(scan.tail(70).to_arrow(), expected.slice(expected.num_rows - 70))
        assert_same(pa.Table.from_batches(scan.batches(64)), expected)


# Strings that are looked for in many pages

MANY = 400_000
WORDS = 2_000


@cache
def plain_strings(everywhere: bool) -> tuple[pa.Table, bytes]:
    """One row group; a word in every page, and one in a single page."""
    rng = np.random.default_rng(4)
    words = np.array([f"word {word:05}" for word in range(WORDS)])
    text = words[rng.integers(0, WORDS, MANY)]
    if everywhere:
        text[:: PAGE_ROWS * 2] = "everywhere"
    text[MANY // 2 + 5] = "once"
    table = pa.table({"text": text, "n": np.arange(MANY), "noise": rng.normal(size=MANY)})
    layout = {"use_dictionary": False, "max_rows_per_page": 5_000, "compression": "none"}
    return table, written(table, **layout, write_statistics=False, write_batch_size=1_000)


@pytest.mark.parametrize("sought", [["everywhere"], ["everywhere", "once", "nowhere"]], ids=str)
@pytest.mark.parametrize("columns", [(), ("text",), ("n",)], ids=str)
def test_strings_in_every_page_are_not_sought_and_then_read_again(
    columns: tuple[str, ...], sought: list[str]
) -> None:
    table, data = plain_strings(everywhere=True)
    expected = table.filter(pc.is_in(table["text"], pa.array(sought)))
    found, trace = read(fs.scan(data).filter(col("text").is_in(sought)).select(*columns))
    assert found.num_rows == expected.num_rows
    assert found.select(columns).equals(expected.select(columns))
    others = size(data, *(name for name in columns if name != "text"))
    assert trace.data_bytes < 1.2 * size(data, "text") + others


@pytest.mark.parametrize("columns", [(), ("text",), ("n", "noise")], ids=str)
def test_for_a_string_in_one_page_other_columns_decode_that_page_alone(
    columns: tuple[str, ...],
) -> None:
    table, data = plain_strings(everywhere=False)
    row = MANY // 2 + 5
    others = [chunk for chunk in chunks(data, *columns) if chunk.column != "text"]
    pages = [page for chunk in others for page in chunk.pages_with(row, row + 1)]
    (sought,) = chunks(data, "text")
    found, trace = read(fs.scan(data).filter(col("text") == "once").select(*columns))
    assert found.select(columns).equals(table.slice(row, 1).select(columns))
    assert trace.pages_decoded == len(sought.pages) + len(pages)
    read_pages = sum(page.span.end - page.span.start for page in pages)
    assert trace.data_bytes <= size(data, "text") + read_pages


def test_a_string_in_no_page_reads_no_other_column() -> None:
    _, data = plain_strings(everywhere=False)
    found, trace = read(fs.scan(data).filter(col("text") == "nowhere"))
    assert (found.num_rows, trace.rows_decoded) == (0, MANY)
    assert trace.data_bytes <= size(data, "text")


# As much as is needed of each column, and once

KINDS = ("few words", "numbers", "words")
SHARES = (0.0, 0.0005, 0.01, 0.25, 0.5, 0.99, 1.0)


@cache
def graded(layout: str) -> tuple[pa.Table, bytes]:
    """Every column has a value for each share of the rows, in order or mixed.

    Value k is that of the rows whose rank among all lies between the shares k - 1 and k.
    """
    rng = np.random.default_rng(5)
    rank = (np.arange(ROWS) + 0.5) / ROWS
    if layout == "mixed":
        rank = rng.permutation(rank)
    grade = np.searchsorted(SHARES, rank)
    nulls = rng.random(ROWS) < 0.1
    fill = rng.integers(0, 10**6, ROWS).tolist()
    words = [f"{g} {tail:06} and some more" for g, tail in zip(grade.tolist(), fill, strict=True)]
    table = pa.table(
        {
            "few words": [f"{g} some word" for g in grade.tolist()],
            "numbers": pa.array(grade * 10, pa.int64(), mask=nulls),
            "words": words,
            "other": rng.normal(size=ROWS),
        }
    )
    encoding = {"use_dictionary": ["few words"], "row_group_size": GROUP_ROWS * 4}
    return table, written(table, **encoding)


def up_to(kind: str, grade: int) -> tuple[fs.Predicate, Filter]:
    """The rows of all grades up to this one."""
    if kind == "numbers":
        return col(kind) <= grade * 10, lambda t: pc.less_equal(t[kind], grade * 10)
    return col(kind) < f"{grade + 1}", lambda t: pc.less(t[kind], f"{grade + 1}")


@pytest.mark.parametrize("layout", ["in order", "mixed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", [True, False], ids=["indexed", "no index"])
def test_a_filter_never_reads_more_than_no_filter(kind: str, layout: str, index: bool) -> None:
    table, data = graded(layout)
    if not index:
        options = {"write_page_index": False, "write_statistics": False}
        encoding = {"use_dictionary": ["few words"], "row_group_size": GROUP_ROWS * 4}
        data = written(table, **encoding, **options)
    for columns in (("other",), (kind, "other"), ("other", kind), (kind,)):
        _, whole = read(fs.scan(data).select(*{kind: 0, **dict.fromkeys(columns)}))
        for grade in range(len(SHARES)):
            predicate, mask = up_to(kind, grade)
            found, trace = read(fs.scan(data).filter(predicate).select(*columns))
            assert_same(found, table.filter(mask(table)).select(columns))
            assert trace.data_bytes <= whole.data_bytes
            assert trace.bytes_read <= whole.bytes_read + trace.index_bytes
            assert trace.rows_decoded <= whole.rows_decoded
            assert trace.pages_decoded <= whole.pages_decoded
            assert_no_byte_twice(trace)


@pytest.mark.parametrize("kind", KINDS)
def test_equalities_never_read_more_than_no_filter(kind: str) -> None:
    table, data = graded("mixed")
    _, whole = read(fs.scan(data).select(kind, "other"))
    values = [v for v in table[kind].unique().to_pylist() if v is not None]
    for value in [*values[:8], *values[-8:], 5 if kind == "numbers" else "5 nothing"]:
        found, trace = read(fs.scan(data).filter(col(kind) == value).select(kind, "other"))
        mask = pc.equal(table[kind], value)
        assert_same(found, table.filter(mask).select([kind, "other"]))
        assert trace.data_bytes <= whole.data_bytes
        assert_no_byte_twice(trace)


def test_few_matches_in_order_read_few_pages() -> None:
    """What is selective is worth it: a hundredth of the rows is not half of the bytes."""
    table, data = graded("in order")
    for kind in KINDS:
        predicate, mask = up_to(kind, 2)
        found, trace = read(fs.scan(data).filter(predicate).select("other"))
        assert found.num_rows == table.filter(mask(table)).num_rows > 0
        assert trace.data_bytes < 0.1 * size(data, kind, "other")


@pytest.mark.parametrize("kind", KINDS)
def test_a_checked_column_of_the_result_is_read_once(kind: str) -> None:
    """Every page has matches, so that every byte is read; none is read twice."""
    table, data = graded("mixed")
    predicate, mask = up_to(kind, 4)
    wanted = table.filter(mask(table))
    for columns in ((kind, "other"), ("other", kind), (kind,)):
        found, trace = read(fs.scan(data).filter(predicate).select(*columns))
        assert_same(found, wanted.select(columns))
        assert trace.data_bytes == size(data, *columns)
        assert trace.rows_decoded <= ROWS * len(columns)
        assert trace.pages_decoded == sum(len(c.pages) for c in chunks(data, *columns))


def test_two_checks_of_one_column_read_it_once() -> None:
    table, data = graded("mixed")
    numbers = table["numbers"]
    for predicate, mask in (
        (
            (col("numbers") > 10) & (col("numbers") != 40),
            pc.and_(pc.greater(numbers, 10), pc.not_equal(numbers, 40)),
        ),
        (
            (col("numbers") == 30) | (col("numbers") == 50),
            pc.or_(pc.equal(numbers, 30), pc.equal(numbers, 50)),
        ),
        (
            ((col("numbers") > 30) | col("numbers").is_null()) & (col("words") < "6"),
            pc.and_kleene(
                pc.or_kleene(pc.greater(numbers, 30), pc.is_null(numbers)),
                pc.less(table["words"], "6"),
            ),
        ),
    ):
        found, trace = read(fs.scan(data).filter(predicate).select("numbers", "other", "words"))
        assert_same(found, table.filter(mask).select(["numbers", "other", "words"]))
        assert trace.data_bytes <= size(data, "numbers", "words", "other")
        assert_no_byte_twice(trace)


@cache
def ascending() -> tuple[pa.Table, bytes]:
    """One row group, in order, with a large dictionary; the column index proves nearly all."""
    table = pa.table({"x": np.arange(ROWS) // 2, "y": np.arange(ROWS) % 4})
    return table, written(table, use_dictionary=["x"])


def test_rows_are_right_where_checks_are_proven_for_different_pages() -> None:
    """Of one column, some pages are decoded for one check, others for another or for none."""
    table, data = ascending()
    x, y, end = col("x"), col("y"), ROWS // 2
    for low, high in ((100, end - 100), (3_333, 3_400), (end - 7, 10), (1, end)):
        for ours, theirs in (
            (
                (x < low) | ((x > high) & (y == 1)),
                (pc.field("x") < low) | ((pc.field("x") > high) & (pc.field("y") == 1)),
            ),
            (
                ((x < low) & (y == 3)) | ((x > high) & (y < 2)),
                ((pc.field("x") < low) & (pc.field("y") == 3))
                | ((pc.field("x") > high) & (pc.field("y") < 2)),
            ),
        ):
            found, _ = read(fs.scan(data).filter(ours))
            assert_same(found, table.filter(theirs))


# Plans tell what planning reads


def planned_table() -> pa.Table:
    rng = np.random.default_rng(6)
    return pa.table(
        {
            "n": np.arange(ROWS),
            "key": rng.permutation(ROWS) * 2,
            "word": [f"word {word * 2}" for word in rng.integers(0, 60, ROWS).tolist()],
            "lists": [[i] * (i % 3) for i in range(ROWS)],
        }
    )


@cache
def planned(index: bool) -> bytes:
    filters = {"key": {"ndv": GROUP_ROWS, "fpp": 0.001}}
    layout = {"row_group_size": GROUP_ROWS, "use_dictionary": ["word"], "write_page_index": index}
    return written(planned_table(), bloom_filter_options=filters, **layout)


PLANS: dict[str, tuple[Callable[[fs.Scan], fs.Scan], set[str]]] = {
    "whole": (lambda scan: scan, set()),
    "window": (lambda scan: scan.skip(100).head(5_000), {"index"}),
    "tail": (lambda scan: scan.tail(10), {"index"}),
    "rows": (lambda scan: scan.select_rows([5, 9_000]), {"index"}),
    "range": (lambda scan: scan.filter((col("n") > 300) & (col("n") < 320)), {"index"}),
    "no block": (lambda scan: scan.filter(col("n") < 0), set()),
    "Bloom filter": (lambda scan: scan.filter(col("key") == 301), {"Bloom filter"}),
    "in a block": (lambda scan: scan.filter(col("key") == 300), {"Bloom filter", "index"}),
    "dictionary": (lambda scan: scan.filter(col("word") == "word 7"), {"dictionary"}),
    "a word": (lambda scan: scan.filter(col("word") == "word 8"), {"dictionary"}),
    "both": (
        lambda scan: scan.filter((col("key") == 300) & (col("word") == "word 7")),
        {"Bloom filter"},
    ),
    "text": (lambda scan: scan.filter("key in (301, 303) or word = 'word 7'"), {"dictionary"}),
    "few columns": (lambda scan: scan.select("lists").filter(col("n") == 77), {"index"}),
}


def by_reason(trace: fs.Trace) -> dict[str, int]:
    totals: dict[str, int] = {}
    for event in trace.log:
        totals[event.why] = totals.get(event.why, 0) + event.length
    return totals


@pytest.mark.parametrize("index", [True, False], ids=["indexed", "no index"])
@pytest.mark.parametrize("name", PLANS)
def test_planning_bytes_are_what_a_trace_of_planning_says(name: str, index: bool) -> None:
    use, reasons = PLANS[name]
    with fs.trace() as trace:
        plan = use(fs.scan(planned(index))).plan()
    assert plan.planning_bytes == by_reason(trace)
    assert all(plan.planning_bytes.values())
    assert "data" not in plan.planning_bytes
    assert trace.pages_decoded == trace.rows_decoded == trace.data_bytes == 0
    assert "footer" in plan.planning_bytes
    if index:
        assert reasons <= plan.planning_bytes.keys()
    if not reasons:
        assert plan.planning_bytes.keys() == {"footer"}


@pytest.mark.parametrize("name", PLANS)
def test_plans_read_no_index_that_the_scan_does_not(name: str) -> None:
    """Filters and dictionaries that a plan asks are asked by the scan as well, and no others."""
    use, _ = PLANS[name]
    scan = use(fs.scan(planned(True)))
    plan = scan.plan()
    _, trace = read(scan)
    for why in ("footer", "Bloom filter", "dictionary"):
        assert plan.planning_bytes.get(why, 0) == by_reason(trace).get(why, 0)


def test_a_trace_around_sees_planning_as_well() -> None:
    with fs.trace() as outer:
        plans = [fs.scan(planned(True)).filter(col("n") == n).plan() for n in (3, 9_000)]
    total = sum(sum(plan.planning_bytes.values()) for plan in plans)
    assert outer.bytes_read == total


def test_plans_of_several_files_count_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: Sequence[str] = ("a", "b", "c")
    for name in names:
        (tmp_path / name).write_bytes(planned(True))
    scan = fs.scan(tmp_path).filter(col("key") == 301)
    alone = fs.scan(tmp_path / "a").filter(col("key") == 301).plan().planning_bytes
    together = dict(scan.plan().planning_bytes)
    # With footers that are likely to be as long as the first, a little more is read.
    more = together.pop("footer") - 3 * alone["footer"]
    assert 0 <= more <= 2 * 64
    assert together == {why: 3 * count for why, count in alone.items() if why != "footer"}
    # Of a footer that is kept, only its end is compared.
    monkeypatch.setattr(descriptor, "SETTLED_NS", 0)
    scan.plan()
    assert alone["footer"] > 4 << 10
    alone["footer"] = 4 << 10
    assert scan.plan().planning_bytes == {why: 3 * count for why, count in alone.items()}


def test_explain_tells_what_planning_reads() -> None:
    scan = fs.scan(planned(True)).filter(col("key") == 301)
    text = scan.explain()
    assert "Bloom filter" in text
    assert "footer" in text
