"""Bloom filters of ORC that are used, and those that must not be: an empty one loses rows."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.depth import tiers
from tests.support.orc_craft import (
    BLOOM_FILTER,
    BLOOM_FILTER_UTF8,
    Crafted,
    Message,
    encoded,
    parsed,
    read,
)
from tests.support.trap_files import COLUMN, Change, OrcTraps, crafted_orc, statistics_of
from tests.support.traps import (
    BLOCK,
    KINDS,
    LISTS,
    NAN,
    PAGE,
    RUNS,
    Kind,
    X,
    both_ways,
    check,
    check_or_refuse,
    compared,
    floats,
    folded,
    is_nan,
    is_null,
    one_of,
    rows_of,
    runs_of,
    same,
)

pytestmark = pytest.mark.slow

INT, STRING, DOUBLE, BINARY = (KINDS[name] for name in ("int32", "string", "float64", "binary"))
NAMES = OrcTraps.kinds
VARCHAR, CHAR = 16, 17
FEW = ("int32", "float64", "string")

levels = pytest.mark.parametrize("level", RUNS)


# Timestamps


START = datetime(2020, 1, 1)
CLOCK = Kind(pa.timestamp("ns"), lambda i: START + timedelta(days=i))
INSTANT = Kind(pa.timestamp("ns", "UTC"), lambda i: (START + timedelta(days=i)).replace(tzinfo=UTC))
clocks = pytest.mark.parametrize("kind", [CLOCK, INSTANT], ids=["wall clock", "instant"])


# Bloom filters


def bloomed(values: Sequence[Any], kind: Kind, change: Change = same, **options: Any) -> bytes:
    """A file whose Bloom filters are the only source that could tell values apart."""

    def changed(file: Crafted) -> None:
        file.set_strides(COLUMN, [[None] * len(runs_of(s, PAGE)) for s in runs_of(values, BLOCK)])
        change(file)

    options["bloom_filter_columns"] = [COLUMN]
    return crafted_orc(values, kind, "block", lambda run: None, changed, **options)


def dropped_by(source: str, trace: fs.Trace) -> int:
    return sum(record.dropped for record in trace.pruned if record.source == source)


@tiers("codec", ["uncompressed", "zlib"], ["zlib"])
@tiers("name", [name for name in NAMES if name not in ("int8", "float32")], FEW)
def test_a_bloom_filter_rules_out_what_it_does_not_hold(name: str, codec: str) -> None:
    kind = KINDS[name]
    first = 24 if statistics_of(kind) == "utc" else 0  # behind 1970
    values = [kind.at(first + i) for i in range(0, 32, 2) for _ in range(2)]
    data = bloomed(values, kind, compression=codec)
    tests = [compared("==", kind.at(first + i), kind.order) for i in range(20)]
    check(data, values, tests)
    kept = 0
    with fs.open(data) as file, fs.trace() as trace:
        for test in tests:
            kept += len(file.prune(test.expression).indices())
    assert trace.data_bytes == 0
    if statistics_of(kind) != "utc":
        # Each value is in one stride or in none; five filters in a hundred may be wrong.
        assert kept <= PAGE * (10 + 24)
        assert dropped_by("Bloom filter", trace) > 0


@pytest.mark.parametrize("name", ["int8", "float32"])
def test_bloom_filters_of_tiny_integers_and_of_floats_lose_no_row(name: str) -> None:
    """The C++ writer hashes bytes that it has overwritten, and floats before they are narrowed."""
    kind = KINDS[name]
    values = [kind.at(i) for i in range(16)]
    check(bloomed(values, kind), values, [compared("==", v, kind.order) for v in values])
    check(bloomed(values, kind, empty_and(same)), values, [compared("==", values[3], kind.order)])


def test_an_empty_bloom_filter_is_believed_where_it_may_be() -> None:
    """It lies, and whoever uses it shows that: the other tests rely on that."""
    values = [INT.at(i) for i in range(16)]
    data = bloomed(values, INT, lambda file: file.empty_blooms(COLUMN))
    assert rows_of(fs.scan(data).filter(INT.at(3) == X)) == []
    assert rows_of(fs.scan(data).filter(X.is_in([INT.at(3), INT.at(9)]))) == []
    assert rows_of(fs.scan(data).filter(INT.at(3) != X)) == [i for i in range(16) if i != 3]
    assert rows_of(fs.scan(data).filter(X.is_between(INT.at(3), INT.at(4)))) == [3, 4]


def empty_and(change: Change) -> Change:
    def changed(file: Crafted) -> None:
        file.empty_blooms(COLUMN)
        change(file)

    return changed


def by(writer: int | None, version: str | None) -> Change:
    return empty_and(lambda file: file.set_writer(writer, version))


UNTRUSTED: Mapping[str, Change] = {
    "BLOOM_FILTER": empty_and(lambda file: file.set_bloom_kind(BLOOM_FILTER, COLUMN)),
    "C++ without a version": by(1, None),
    # 1.6.11 and 1.7.0 are on the list of ORC's own readers, too.
    **{
        f"C++ {version}": by(1, version)
        for version in (
            *("1.6.0", "1.6.9", "1.6.10", "1.6.10-SNAPSHOT", "1.5.13", "1.6.11", "1.7.0"),
            "1.7.0-SNAPSHOT",
        )
    },
}


@pytest.mark.parametrize("source", UNTRUSTED)
@tiers("name", ["int32", "string", "float64", "date"], (), ["string"])
def test_bloom_filters_that_are_not_to_be_trusted_prove_nothing(name: str, source: str) -> None:
    kind = KINDS[name]
    data = bloomed(kind.spread(), kind, UNTRUSTED[source])
    literals = [kind.at(i) for i in (2, 26, 27)]
    tests = [*(compared("==", v, kind.order) for v in literals), one_of(literals, kind.order)]
    check(data, kind.spread(), both_ways(tests))


@pytest.mark.parametrize(
    "writer",
    [(1, "1.6.12"), (1, "1.7.1"), (1, "1.10.0"), (1, "2.0.0"), (0, None), (0, "1.6.3"), (None, "")],
    ids=str,
)
def test_bloom_filters_of_other_writers_are_used(writer: tuple[int | None, str | None]) -> None:
    data = bloomed(INT.spread(), INT, by(*writer))
    assert rows_of(fs.scan(data).filter(INT.at(2) == X)) == []


def test_the_corpus_file_with_bad_bloom_filters_loses_no_row(corpus: Path) -> None:
    path = corpus / "orc" / "bad_bloom_filter_1.6.0.orc"
    table = read(path.read_bytes())
    for name in table.column_names:
        values = table[name].to_pylist()
        for value in {v for v in values if v is not None}:
            rows = [row for row, other in enumerate(values) if other == value]
            assert rows_of(fs.scan(path).filter(col(name) == value)) == rows
            assert rows_of(fs.scan(path).filter(col(name).is_in([value]))) == rows


@clocks
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(timedelta(days=1), id="days", marks=pytest.mark.slow),
        pytest.param(timedelta(microseconds=300_333), id="microseconds"),
    ],
)
def test_timestamps_before_1970_are_not_looked_up(kind: Kind, step: timedelta) -> None:
    """Writers differ in how they cut them to milliseconds."""
    start = kind.at(0).replace(year=1970) - 12 * step
    values = [start + i * step for i in range(16)]
    before = [*(compared("==", value) for value in values[:12]), one_of(values[:3])]
    check(bloomed(values, kind, empty_and(same)), values, both_ways(before))
    check(bloomed(values, kind), values, [compared("==", value) for value in values])
    mixed = one_of([values[5], values[14]])
    check(bloomed(values, kind), values, [mixed])


@clocks
def test_timestamps_that_share_a_millisecond_are_told_apart(kind: Kind) -> None:
    values = [kind.at(i // 4) + timedelta(microseconds=i % 4) for i in range(16)]
    literals = [*values, kind.at(0) + timedelta(microseconds=7), kind.at(9)]
    check(bloomed(values, kind), values, [compared("==", value) for value in literals])


def test_a_nan_is_not_looked_up() -> None:
    values = floats("nan 1 2 3  4 nan 5 6  7 8 9 10  -nan 11 12 13")
    order = DOUBLE.order
    tests = [compared("==", NAN, order), one_of([NAN], order), one_of([NAN, 99.0], order), is_nan()]
    for change in (same, empty_and(same)):
        data = bloomed(values, DOUBLE, change)
        check(data, values, both_ways(tests))


def test_each_zero_is_found() -> None:
    values = floats("0.0 1 2 3  -0.0 4 5 6  7 8 9 10  -0.0 0.0 12 13")
    tests = [compared("==", zero, DOUBLE.order) for zero in (0.0, -0.0)]
    tests += [one_of([0.0], DOUBLE.order), one_of([-0.0, 5.0], DOUBLE.order)]
    data = bloomed(values, DOUBLE)
    check(data, values, both_ways(tests))
    # A zero without a sign is both.
    assert fs.scan(data).filter(col("x") == 0).count() == 4


@pytest.mark.parametrize("name", ["int16", "int64", "float64", "decimal in FLBA", "date"])
def test_literals_of_another_type_are_looked_up_as_the_value_that_is_stored(name: str) -> None:
    kind = KINDS[name] if name != "float64" else Kind(pa.float64(), float, order=DOUBLE.order)
    values = [kind.at(i) for i in range(16)]
    literals: list[Any] = values[::3]
    if name in ("int16", "int64"):
        literals += [Decimal(values[5]), float(values[0]), 0.5, 2**70]
    elif name == "float64":
        literals += [3, Decimal(4)]
    elif "decimal" in name:
        values[3], values[7] = Decimal("5.00000"), Decimal("-0.5")
        literals = [*values[::3], 5, 5.0, -0.5, Decimal("5"), 10**30]
    check(bloomed(values, kind), values, [compared("==", value) for value in literals])


def test_empty_and_long_strings_are_found() -> None:
    values = ["", "a", "é", "\x00", "x" * 7, "x" * 8, "x" * 9, "x" * 70]
    values += ["😀" * 3, "a\x00", "\x7f\x80", "p" * 16, "p" * 17, "p" * 15, "q", "\uffff"]
    tests = [compared("==", value) for value in (*values, "b", "x" * 6)]
    for threshold in (0.0, 1.0):
        data = bloomed(values, STRING, dictionary_key_size_threshold=threshold)
        check(data, values, both_ways(tests))


def test_nulls_do_not_disturb_bloom_filters() -> None:
    values = [None, 1, None, 3, None, None, None, None, 5, 6, None, 7, 8, 9, 10, None]
    tests = both_ways([*(compared("==", i) for i in (1, 3, 4, 10)), one_of([3, None]), is_null()])
    check(bloomed(values, INT), values, tests)


def test_bloom_filters_below_lists_and_maps() -> None:
    data = crafted_orc(
        LISTS, Kind(pa.list_(pa.int32())), "page", column=3, bloom_filter_columns=[3]
    )
    check(data, LISTS, both_ways([*folded("any", 7), *folded("all", 9)]))


def filters_changed(change: Callable[[list[Message]], list[Message]]) -> Change:
    def changed(body: bytes) -> bytes:
        made = change([parsed(raw) for raw in parsed(body)[1]])
        return encoded({1: [encoded(each) for each in made]})

    return lambda file: file.change_streams(BLOOM_FILTER_UTF8, COLUMN, changed)


ODD_FILTERS: Mapping[str, Callable[[list[Message]], list[Message]]] = {
    "no filters": lambda filters: [],
    "a filter too few": lambda filters: filters[:-1],
    "no bits": lambda filters: [{**each, 3: [b""]} for each in filters],
    "bits absent": lambda filters: [{1: each[1]} for each in filters],
    "no hash functions": lambda filters: [{**each, 1: [0]} for each in filters],
    "hash functions absent": lambda filters: [{3: each[3]} for each in filters],
    "a billion hash functions": lambda filters: [{**each, 1: [10**9]} for each in filters],
    "half a word of bits": lambda filters: [{**each, 3: [each[3][0][:-4]]} for each in filters],
}


@pytest.mark.parametrize("name", ODD_FILTERS)
def test_odd_bloom_filters_are_an_error_or_prove_nothing(name: str) -> None:
    values = [INT.at(i) for i in range(16)]
    data = bloomed(values, INT, filters_changed(ODD_FILTERS[name]))
    check_or_refuse(data, values, [compared("==", value) for value in values[::3]])
