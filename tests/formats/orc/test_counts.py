"""Counts of ORC's statistics that are empty, absent or wrong: no row is lost or added by them.

Writers without an index leave statistics empty: no values and no nulls, in stripes that have rows.
An entry that contradicts itself proves nothing, its bounds included. The oracle is plain Python
for crafted files, and for random ones three-valued logic over what pyarrow reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.formats.orc.test_predicates import OrcCase, make_file
from tests.support import orc_craft
from tests.support.depth import tiers
from tests.support.kernels import each_decoder
from tests.support.orc_craft import ROW_INDEX, STATISTICS, TYPES, Crafted, facts, read, restated
from tests.support.orc_files import pyorc_bytes
from tests.support.predicate_checks import check_many
from tests.support.trap_files import OrcTraps
from tests.support.traps import (
    BLOCK,
    GAPPED,
    GAPPED_TESTS,
    KINDS,
    LISTS,
    PAGE,
    RUNS,
    STRUCTS,
    Kind,
    both_ways,
    check,
    every_test,
    folded,
    is_not_null,
    is_null,
    of_field,
    runs_of,
)

pytestmark = each_decoder("slow")

levels = pytest.mark.parametrize("level", RUNS)
EMPTY: dict[str, Any] = {"values": 0, "has_null": False}
CLEARED = dict.fromkeys(orc_craft.GROUPS)
"""Without what belongs to a type: bounds, sums, counts of what is true."""
NUMBERS = [*range(1, 9), 1_001, *range(1_002, 1_009)]


def told(
    values: Sequence[Any], kind: pa.DataType, level: str, change: Mapping[str, Any], column: int = 2
) -> bytes:
    """A file with these facts in every entry of one level, and none at the other."""
    table = pa.table({"row": range(len(values)), "x": pa.array(values, kind)})
    file = Crafted(orc_craft.written(table, BLOCK, row_index_stride=PAGE))
    stripes = runs_of(values, BLOCK)
    file.set_file_statistics(column, change)
    of_stripes = [change if level == "block" else None for _ in stripes]
    file.set_stripe_statistics(column, of_stripes)
    of_stride = change if level == "page" else None
    file.set_strides(column, [[of_stride for _ in runs_of(s, PAGE)] for s in stripes])
    return file.to_bytes()


# Statistics that were left empty


@pytest.mark.parametrize("stride", [0, 10_000], ids=["no strides", "strides"])
def test_statistics_that_a_writer_without_an_index_left_empty_prove_nothing(stride: int) -> None:
    table = pa.table({"int1": NUMBERS, "name": [f"n{n}" for n in NUMBERS]})
    file = Crafted(orc_craft.without_row_index(orc_craft.written(table, BLOCK)))
    file.footer[orc_craft.STRIDE] = [stride]
    for column in (1, 2):
        file.set_file_statistics(column, CLEARED | EMPTY)
        file.set_stripe_statistics(column, [CLEARED | EMPTY] * 2)
    scan = fs.scan(file.to_bytes())
    above = scan.filter(col("int1") > 1000)
    assert above.to_arrow()["int1"].to_pylist() == [n for n in NUMBERS if n > 1000]
    assert above.count() == 8
    for name in ("int1", "name"):
        assert scan.filter(col(name).is_null()).count() == 0
        assert scan.filter(col(name).is_null()).to_arrow().num_rows == 0
        assert scan.filter(col(name).is_not_null()).count() == len(NUMBERS)


@levels
@tiers("name", [*OrcTraps.kinds, "bool"], ["string"], ["float64", "bool", "decimal in FLBA"])
def test_empty_statistics_of_any_type_prove_nothing(name: str, level: str) -> None:
    kind = Kind(pa.bool_()) if name == "bool" else KINDS[name]
    values = [True, False] * 8 if name == "bool" else [kind.at(i) for i in range(16)]
    literals = [False, True] if name == "bool" else [values[3], values[12]]
    tests = every_test(*literals, order=kind.order)
    check(told(values, kind.type, level, CLEARED | EMPTY), values, tests)


# Statistics that contradict themselves

WRONG: dict[str, Mapping[str, Any]] = {
    "emptied, bounds left": {"values": 0, "has_null": False},
    "no values, yet bounds": {"values": 0},
    "no values, yet bounds and nulls": {"values": 0, "has_null": True},
    "no values, nothing said of nulls": {**CLEARED, "values": 0, "has_null": None},
    "more values than rows": {"values": 1_000},
    "more values than rows, no nulls": {"values": 1_000, "has_null": False},
    "as many values as rows, and nulls": {"values": PAGE, "has_null": True},
    "no nulls, and fewer values than rows": {"values": 1, "has_null": False},
    "one value less, no nulls": {"values": PAGE - 1, "has_null": False},
    "no count": {"values": None},
    "no count, no nulls": {"values": None, "has_null": False},
    "no count, some nulls": {"values": None, "has_null": True},
    "nothing said of nulls": {"has_null": None},
    "as many values as rows, nothing said of nulls": {"values": PAGE, "has_null": None},
    "neither": {"values": None, "has_null": None},
}
FEW = ("emptied, bounds left", "no values, yet bounds and nulls", "more values than rows")


@levels
@tiers(
    "wrong", WRONG, FEW[:1], [*FEW, "no nulls, and fewer values than rows", "no count, no nulls"]
)
@pytest.mark.parametrize("values", [GAPPED, NUMBERS], ids=["some null", "none null"])
def test_counts_that_contradict_each_other_prove_nothing(
    values: Sequence[Any], wrong: str, level: str
) -> None:
    change = dict(WRONG[wrong])
    if change.get("values") in (PAGE, PAGE - 1) and level == "block":
        change["values"] += BLOCK - PAGE
    data = told(values, pa.int32(), level, change)
    check(data, values, both_ways(every_test(4, 1_000)), windows=True)


@levels
@pytest.mark.parametrize("bounds", [(500, 600), (-9, -9)])
def test_the_bounds_of_a_contradiction_are_none(bounds: tuple[int, int], level: str) -> None:
    """They would rule out rows that are there."""
    change = {**EMPTY, "int_min": bounds[0], "int_max": bounds[1]}
    check(told(GAPPED, pa.int32(), level, change), GAPPED, GAPPED_TESTS)
    more = {**change, "values": 9, "has_null": True}
    check(told(GAPPED, pa.int32(), level, more), GAPPED, GAPPED_TESTS)


@levels
def test_a_count_of_trues_says_nothing_of_falses_beside_nulls(level: str) -> None:
    """One value less, and all of them seem to be true."""
    values = [True, True, False, None, True, True, False, None] * 2
    changes = {"page": {"values": 2}, "block": {"values": 4}}
    tests = both_ways(every_test(False, True))
    check(told(values, pa.bool_(), level, changes[level]), values, tests)


# Inside structs, lists and maps

STRUCT = pa.struct([("a", pa.int32())])
WHOLE = [{"a": n} for n in NUMBERS]


@levels
@tiers("wrong", ["left empty", *WRONG], (), ["left empty", *FEW])
@pytest.mark.parametrize("values", [STRUCTS, WHOLE], ids=["some null", "none null"])
def test_counts_inside_a_struct_are_those_of_structs_that_are_not_null(
    values: Sequence[Any], wrong: str, level: str
) -> None:
    change = CLEARED | EMPTY if wrong == "left empty" else WRONG[wrong]
    tests = [of_field(test) for test in every_test(2, 1_000, subject=col("x.a"))]
    tests = both_ways([*tests, is_null(), is_not_null()])
    for column in (2, 3):
        check(told(values, STRUCT, level, change, column), values, tests)


@levels
@tiers("wrong", ["left empty", *WRONG], (), ["left empty", *FEW])
def test_counts_below_a_list_are_those_of_elements(wrong: str, level: str) -> None:
    change = CLEARED | EMPTY if wrong == "left empty" else WRONG[wrong]
    tests = both_ways([*folded("any", 6), *folded("all", 6), is_null(), is_not_null()])
    for column in (2, 3):
        check(told(LISTS, pa.list_(pa.int32()), level, change, column), LISTS, tests)


def test_statistics_of_the_file_prove_nothing_of_its_stripes() -> None:
    table = pa.table({"row": range(16), "x": GAPPED})
    file = Crafted(orc_craft.written(table, BLOCK, row_index_stride=PAGE))
    for change in (CLEARED | EMPTY, {"values": 0, "has_null": True}, {"values": 16}):
        file.set_file_statistics(2, change)
        check(file.to_bytes(), GAPPED, GAPPED_TESTS)


@levels
def test_counts_that_agree_still_prove(level: str) -> None:
    values = [None] * 8 + list(range(1, 9)) + [None] * 8
    data = told(values, pa.int32(), level, {})
    for test in (is_null(), is_not_null()):
        with fs.trace() as trace:
            found = fs.scan(data).filter(test.expression).count()
        assert found == len(test.rows(values))
        assert trace.data_bytes == 0


# Unions


@pytest.mark.parametrize("stride", [1, 3, 10_000])
def test_nulls_of_a_union_are_those_of_its_rows(stride: int) -> None:
    """A union is null where it has no value, and where the value that it has is null."""
    values = [1, "x", None, None, None, 2, "yy", 3, None, "z", 4, 5]
    data = pyorc_bytes(
        "struct<row:int,u:uniontype<int,string>,us:array<uniontype<int,string>>>",
        [(n, value, [value, 7]) for n, value in enumerate(values)],
        row_index_stride=stride,
    )
    scan = fs.scan(data)
    rows = [row["u"] for row in scan.rows()]
    assert rows == read(data)["u"].to_pylist()
    null, rest = (
        [n for n, v in enumerate(rows) if (v is None) == is_so] for is_so in (True, False)
    )
    for predicate, expected in (
        (col("u").is_null(), null),
        (col("u").is_not_null(), rest),
        (~col("u").is_null(), rest),
        (col("us").any().is_null(), null),
        (col("us").all().is_not_null(), rest),
    ):
        found = scan.filter(predicate)
        assert found.to_arrow()["row"].to_pylist() == expected
        assert found.count() == len(expected)
        assert found.tail(2).to_arrow()["row"].to_pylist() == expected[-2:]


def test_nulls_of_a_union_are_read_as_in_the_whole_file() -> None:
    """Writers store something for them, and count it where the strides begin."""
    values = [1, "x", None, None, None, 2, "yy", 3, None, "z", 4, 5]
    data = pyorc_bytes(
        "struct<u:uniontype<int,string>>", [(v,) for v in values], row_index_stride=3
    )
    whole = read(data)["u"].to_pylist()
    for first in range(0, 12, 3):
        with fs.trace() as trace:
            part = fs.scan(data).skip(first).head(3).to_arrow()
        assert part["u"].to_pylist() == whole[first : first + 3]
        assert [each.reason for each in trace.fallbacks] == [
            "an unusable row index (nulls of a union, for which writers store values)"
        ]


# Random files whose counts are wrong


def count_changes(found: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
    """One thing that is wrong about counts, or nothing."""
    values = found.get("values", 0)
    changes: list[Mapping[str, Any]] = [
        {"values": None},
        {"has_null": None},
        {"values": None, "has_null": None},
        {"values": 0},
        {"values": 0, "has_null": False},
        {"values": 0, "has_null": None},
        CLEARED | EMPTY,
        {"values": values + 1},
        {"values": max(values - 1, 0)},
        {"values": values + 1, "has_null": None},
        {"values": max(values - 1, 0), "has_null": None},
        {"has_null": not found.get("has_null")},
        {"values": 1 << 40},
    ]
    change = changes[int(rng.integers(len(changes)))]
    after = {**found, **change}
    silent = ("values", "has_null", "positions")
    empty = ("trues", "int_sum", "double_sum", "string_sum", "binary_sum", "decimal_sum")
    evidence = any(
        fact is not None and (fact or name not in empty)
        for name, fact in after.items()
        if name not in silent
    )
    # With nothing else in it, an entry of nulls only is one.
    is_lie = after.get("values") == 0 and after.get("has_null") and not evidence
    return {} if is_lie or rng.random() < 0.3 else change


def with_wrong_counts(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with other counts in the statistics of any column, at all levels."""
    file = Crafted(data)

    def changed(statistics: bytes) -> bytes:
        return restated(statistics, count_changes(facts(statistics), rng))

    for column in range(len(file.footer[TYPES])):
        if STATISTICS in file.footer:
            file.footer[STATISTICS][column] = changed(file.footer[STATISTICS][column])
        of_stripes = [count_changes(found, rng) for found in file.stripe_statistics(column)]
        file.set_stripe_statistics(column, of_stripes)
        streams = [s for stripe in file.stripes for s in stripe.streams]
        if any((s.kind, s.column) == (ROW_INDEX, column) for s in streams):
            of_strides = [
                [count_changes(found, rng) for found in stripe] for stripe in file.strides(column)
            ]
            file.set_strides(column, of_strides)
    return file.to_bytes()


def check_wrong_counts(number: int, predicates: int) -> None:
    writer, data = make_file(number)
    damaged = with_wrong_counts(data, np.random.default_rng([31, number]))
    assert read(damaged).equals(read(data)) or "nan" in repr(read(data).to_pylist())
    check_many(OrcCase(damaged, number), predicates, f"file {number} by {writer}")


@tiers("number", range(100, 108), range(100, 102), range(102, 105))
def test_wrong_counts_in_random_files_lose_and_add_no_row(number: int) -> None:
    check_wrong_counts(number, 12)


@pytest.mark.deep
@pytest.mark.parametrize("shard", range(10))
def test_wrong_counts_in_many_random_files_lose_and_add_no_row(shard: int) -> None:
    for number in range(200 + 100 * shard, 300 + 100 * shard):
        check_wrong_counts(number, 12)
