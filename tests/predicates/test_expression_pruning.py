"""What indexes prove about expressions: enough to leave blocks out, and never a row too much.

Each trap has a value right at the edge of what is ruled out: one step too far loses a row.
"""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.formats import written

NAN, INF = float("nan"), float("inf")
NEW_YORK = pa.timestamp("us", "America/New_York")


def rows_of(data: bytes, predicate: Any, indexes: bool = True) -> list[int]:
    scan = fs.scan(data, indexes=indexes).filter(predicate).with_row_index("n").select()
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found


def blocks_left(data: bytes, predicate: Any) -> list[int]:
    return [block.ordinal for block in fs.scan(data).filter(predicate).plan().blocks]


def file_of(writer: str, size: int = 2, **columns: Any) -> bytes:
    table = pa.table(columns)
    options = {"use_dictionary": False} if writer == "parquet" else {}
    return written(table, writer, [size] * (table.num_rows // size), **options)


def assert_pruned(data: bytes, predicate: Any, blocks: Sequence[int]) -> None:
    assert rows_of(data, predicate) == rows_of(data, predicate, indexes=False)
    assert blocks_left(data, predicate) == list(blocks)


both = pytest.mark.parametrize("writer", ["parquet", "orc"])
x = col("x")


@both
@pytest.mark.parametrize(
    ("predicate", "blocks"),
    [
        (x + 1 > 5, [2, 3]),
        (x + 1 >= 5, [2, 3]),
        (x + 1 > 6, [3]),
        (x - 2 < 0, [0]),
        (10 - x >= 8, [0, 1]),
        (x * 2 == 4, [1]),
        (x * 2 == 5, []),
        (x * -2 <= -10, [2, 3]),
        (-x > -2, [0]),
        (x / 2 >= 3.5, [3]),
        (x.cast("float64") <= 1.5, [0]),
        (x * 0 == 0, [0, 1, 2, 3]),
        (~(x + 1 > 5), [0, 1, 2]),
        ("x + 1 > 5 and x * 3 < 18", [2]),
    ],
    ids=repr,
)
def test_arithmetic_is_inverted_on_the_bounds(
    writer: str, predicate: Any, blocks: list[int]
) -> None:
    data = file_of(writer, x=pa.array(range(8), pa.int64()))
    assert_pruned(data, predicate, blocks)


def assert_certain(data: bytes, predicate: Any, certain: int) -> None:
    """So many rows surely match by the indexes alone, and no row does that should not."""
    assert rows_of(data, predicate) == rows_of(data, predicate, indexes=False)
    assert fs.scan(data).filter(predicate).plan().proven == certain


@both
@pytest.mark.parametrize(
    ("kind", "predicate", "certain"),
    [
        (pa.int32(), x + 1 > 5, 2),
        (pa.int32(), x + 1 >= 5, 4),
        (pa.int64(), x + 1 > 4, 4),
        (pa.int64(), x * -2 <= -8, 4),
        (pa.int64(), ~(x * 2 > 6), 4),
        (pa.int64(), 7 - x == 7, 0),
        (pa.int64(), (x - 3).is_in([3, 4, None]), 2),
    ],
    ids=repr,
)
def test_arithmetic_proves_that_all_match(
    writer: str, kind: pa.DataType, predicate: Any, certain: int
) -> None:
    assert_certain(file_of(writer, x=pa.array(range(8), kind)), predicate, certain)


@both
def test_a_null_keeps_a_block_from_being_certain(writer: str) -> None:
    data = file_of(writer, x=pa.array([1, 2, 3, None, 5, 6], pa.int64()))
    assert_certain(data, x + 1 > 1, 4)


def test_a_nan_keeps_a_block_from_being_certain() -> None:
    data = file_of("parquet", x=pa.array([1.0, 2.0, 3.0, NAN], pa.float64()))
    assert rows_of(data, x * 2 < 100) == [0, 1, 2]
    assert rows_of(data, x * -2 > -100) == [0, 1, 2, 3]
    assert rows_of(data, ~(x * 2 < 100)) == [3]


def test_times_of_utc_prove_that_all_match_and_those_of_zones_do_not() -> None:
    instants = [dt.datetime(2024, 6, day, tzinfo=dt.UTC) for day in (1, 2)]
    data = file_of("parquet", x=pa.array(instants, pa.timestamp("us", "UTC")))
    assert_certain(data, x.year() == 2024, 2)
    assert_certain(file_of("parquet", x=pa.array(instants, NEW_YORK)), x.year() == 2024, 0)


def test_integers_near_the_end_of_64_bits_are_inverted() -> None:
    most = 2**63 - 1
    near = [most - 5, most - 4, most - 2, most - 1]
    data = file_of("parquet", 1, x=pa.array(near, pa.int64()))
    assert_pruned(data, x + 1 > most - 2, [2, 3])
    assert_pruned(data, x - 1 == most - 6, [0])
    unsigned = file_of("parquet", 1, x=pa.array([2**64 - 3, 2**64 - 2, 2**64 - 1], pa.uint64()))
    assert_pruned(unsigned, x - 1 >= 2**64 - 3, [1, 2])


LISTS: list[Any] = [[1, 2], [], [3], None, [None, 9], [4]]


@both
@pytest.mark.parametrize(
    ("predicate", "blocks"),
    [
        (x.any(fs.element() > 4), [2]),
        (x.any((fs.element() > 2) & (fs.element() % 2 == 1)), [1, 2]),
        (x.any(fs.element() * 2 == 4), [0]),
        (~x.all(fs.element() <= 4), [2]),
        (x.all(fs.element() > 4), [0, 1, 2]),
        (~x.any(fs.element() <= 4), [0, 1, 2]),
        (x.get(0) == 3, [1]),
        (~(x.get(0) < 4), [2]),
        (x.get(0).is_null(), [0, 1, 2]),
        (x.any((fs.element() > 8) | fs.element().is_null()), [0, 1, 2]),
    ],
    ids=repr,
)
def test_elements_are_ruled_out_by_bounds(writer: str, predicate: Any, blocks: list[int]) -> None:
    assert_pruned(file_of(writer, x=pa.array(LISTS, pa.list_(pa.int64()))), predicate, blocks)


@both
def test_keys_and_fields_of_elements_are_ruled_out_by_bounds(writer: str) -> None:
    maps = [[("a", 1)], [("b", 2)], [("a", 5)], [("c", 0)]]
    pairs = [[{"p": 1, "q": 9}], [{"p": 9, "q": 1}], [{"p": 9, "q": 9}], [{"p": 0, "q": 0}]]
    data = file_of(
        writer,
        1,
        x=pa.array(maps, pa.map_(pa.string(), pa.int64())),
        y=pa.array(pairs, pa.list_(pa.struct({"p": pa.int64(), "q": pa.int64()}))),
    )
    assert_pruned(data, x.get("b") > 0, [1])
    assert_pruned(data, x.get("a") > 2, [2])
    assert_pruned(data, x.any((fs.element("key") == "a") & (fs.element("value") < 5)), [0])
    both_high = col("y").any((fs.element("p") > 5) & (fs.element("q") > 5))
    assert_pruned(data, both_high, [2])


def test_bounds_at_the_ends_of_integers_spare_nothing_that_matches() -> None:
    data = file_of("parquet", 1, x=pa.array([-(2**63), 0, 2**62, 2**63 - 1], pa.int64()))
    with pytest.raises(fs.PredicateError, match=r"column 'x'.*overflow"):
        rows_of(data, x + 1 > 5)
    assert rows_of(data, (x + 1 == 1) & (x < 2**62)) == [1]


@both
def test_floats_are_inverted_in_their_own_order(writer: str) -> None:
    floats = [-INF, -1.0, -0.0, 0.0, 0.1, 0.2, 1.0, INF]
    data = file_of(writer, x=pa.array(floats, pa.float64()))
    for predicate in (
        x + 0.1 >= 0.30000000000000004,
        x * 2 == 0,
        -x > -0.2,
        x - 1 < -0.9,
        x * 3 > 0.3,
    ):
        assert rows_of(data, predicate) == rows_of(data, predicate, indexes=False), predicate
    assert 0 not in blocks_left(data, (x + 0.1 >= 5) & (x < 10))


@both
def test_nans_are_not_ruled_out_by_falling_expressions(writer: str) -> None:
    data = file_of(writer, x=pa.array([1.0, 2.0, 3.0, NAN, 5.0, 6.0], pa.float64()))
    assert rows_of(data, -x > -2) == [0, 3]


@both
def test_decimals_are_inverted_by_their_digits(writer: str) -> None:
    decimals = [Decimal(n) / 100 for n in range(8)]
    data = file_of(writer, x=pa.array(decimals, pa.decimal128(9, 2)))
    assert_pruned(data, x * 2 >= Decimal("0.07"), [2, 3])
    assert_pruned(data, x + Decimal("0.005") < Decimal("0.02"), [0])


DAYS = [dt.datetime(2023, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 1, 1)]
DAYS += [dt.datetime(2024, 12, 31, 23, 59, 59, 999999), dt.datetime(2025, 1, 1)]


@both
@pytest.mark.parametrize(
    ("predicate", "blocks"),
    [
        (x.year() == 2024, [1, 2]),
        (x.year() < 2024, [0]),
        (x.date() == dt.date(2024, 1, 1), [1]),
        (x.truncate("month") == dt.datetime(2024, 12, 1), [2]),
        (x + dt.timedelta(microseconds=1) >= dt.datetime(2025, 1, 1), [2, 3]),
        (x - dt.timedelta(days=365) > dt.datetime(2023, 12, 31), [2, 3]),
    ],
    ids=repr,
)
def test_times_are_inverted_to_the_tick(writer: str, predicate: Any, blocks: list[int]) -> None:
    data = file_of(writer, 1, x=pa.array(DAYS, pa.timestamp("us")))
    found = blocks_left(data, predicate)
    assert rows_of(data, predicate) == rows_of(data, predicate, indexes=False)
    # Bounds of ORC are widened by a millisecond.
    assert found == blocks if writer == "parquet" else set(blocks) <= set(found)


def test_zones_are_widened_by_two_days() -> None:
    instants = [dt.datetime(2024, 1, day, 4, 59, tzinfo=dt.UTC) for day in (1, 2, 5, 20)]
    data = file_of("parquet", 1, x=pa.array(instants, NEW_YORK))
    assert_pruned(data, x.date() == dt.date(2023, 12, 31), [0, 1])
    assert rows_of(data, x.date() == dt.date(2023, 12, 31)) == [0]
    # The hour that the clocks have twice.
    twice = [dt.datetime(2024, 11, 3, hour, 30, tzinfo=dt.UTC) for hour in (4, 5, 6, 7)]
    data = file_of("parquet", 1, x=pa.array(twice, NEW_YORK))
    first = dt.datetime(2024, 11, 3, 5, tzinfo=dt.UTC)
    assert rows_of(data, x.truncate("hour") == first) == [1]
    assert rows_of(data, x.truncate("hour") == first + dt.timedelta(hours=1)) == [2]
    assert rows_of(data, x.hour() == 1) == [1, 2]
    assert rows_of(data, x.truncate("day") == dt.datetime(2024, 11, 3, 4, tzinfo=dt.UTC)) == [
        0,
        1,
        2,
        3,
    ]


def test_a_day_that_begins_late_begins_at_its_first_instant() -> None:
    zone = pa.timestamp("us", "America/Sao_Paulo")  # without midnight on 4 November 2018
    noon = dt.datetime(2018, 11, 4, 12, tzinfo=dt.UTC)
    data = file_of("parquet", 1, x=pa.array([noon], zone))
    assert rows_of(data, x.truncate("day") == dt.datetime(2018, 11, 4, 3, tzinfo=dt.UTC)) == [0]


TEXTS = ["a", "ab", "abc", "abd", "ab\U0010ffff", "ac", "b", "ba"]


@both
@pytest.mark.parametrize(
    ("predicate", "blocks"),
    [
        (x.like("ab%"), [0, 1, 2]),
        (x.like("ab_"), [0, 1, 2]),
        (x.like("ab%c"), [0, 1, 2]),
        (x.like("abc"), [1]),
        (x.matches("^ab"), [0, 1, 2]),
        (x.matches("^abc*"), [0, 1, 2]),
        (x.matches("^abx?"), [0, 1, 2]),
        ("x ~ '^b'", [3]),
    ],
    ids=repr,
)
def test_fixed_beginnings_of_patterns_are_ranges(
    writer: str, predicate: Any, blocks: list[int]
) -> None:
    table = pa.table({"x": TEXTS})
    options = {"use_dictionary": False} if writer == "parquet" else {}
    data = written(table, writer, [2] * 4, **options)
    assert_pruned(data, predicate, blocks)


@pytest.mark.parametrize("regex", ["ab", "^ab|b", "(?i)^AB", "^(ab)?", "^a*", "^.b", "[ab]"])
def test_other_patterns_are_no_ranges(regex: str) -> None:
    table = pa.table({"x": TEXTS})
    data = written(table, "parquet", [2] * 4, use_dictionary=False)
    assert_pruned(data, x.matches(regex), [0, 1, 2, 3])


@both
@pytest.mark.parametrize(
    ("predicate", "blocks"),
    [
        (x < col("y"), [1, 2, 3]),
        (x <= col("y"), [0, 1, 2, 3]),
        (x > col("y"), [0, 1]),
        (x >= col("y"), [0, 1, 2]),
        (x == col("y"), [0, 1, 2]),
        (~(x < col("y")), [0, 1, 2]),
        (~(x == col("y")), [0, 1, 2, 3]),
    ],
    ids=repr,
)
def test_two_columns_are_compared_by_both_bounds(
    writer: str, predicate: Any, blocks: list[int]
) -> None:
    columns = {"x": [5, 6, 1, 9, 2, 3, 1, 2], "y": [4, 5, 2, 8, 3, 7, 3, 4]}
    data = file_of(writer, **{name: pa.array(v, pa.int64()) for name, v in columns.items()})
    assert_pruned(data, predicate, blocks)


@pytest.mark.parametrize("writer", ["parquet", "orc"])
def test_two_columns_are_compared_by_the_bounds_of_pages_that_line_up(writer: str) -> None:
    first, second = [*range(4000)], [*range(1000, 2000), *range(1000, 2000), *range(2001, 4001)]
    options: dict[str, Any] = {"row_index_stride": 1000}
    if writer == "parquet":
        options = {"write_page_index": True, "data_page_size": 1, "write_batch_size": 1000}
        options |= {"use_dictionary": False}
    table = pa.table({"x": pa.array(first), "y": pa.array(second)})
    data = written(table, writer, [4000], **options)
    y = col("y")
    for predicate in (x < y, x <= y, x == y, x > y, x >= y, x != y, ~(x < y)):
        assert rows_of(data, predicate) == rows_of(data, predicate, indexes=False), predicate
    with fs.open(data) as file:
        assert file.prune(x > y).indices().tolist() == [*range(1000, 4000)]
        assert file.prune(y - 1000 == x).selected_count == 4000
        assert file.prune(x == y).indices().tolist() == [*range(1000, 4000)]


def test_two_columns_with_nulls_nans_and_other_signs_lose_nothing() -> None:
    columns = {
        "a": pa.array([1, None, 3, None], pa.int64()),
        "b": pa.array([2**63 + 1, 5, 2**64 - 1, 0], pa.uint64()),
        "f": pa.array([1.0, NAN, 3.0, -0.0], pa.float64()),
        "g": pa.array([0.5, 2.0, NAN, 0.0], pa.float64()),
    }
    data = file_of("parquet", 1, **columns)
    assert rows_of(data, col("a") < col("b")) == [0, 2]
    assert rows_of(data, col("a") >= col("b")) == []
    assert rows_of(data, col("f") > col("g")) == [0, 1]
    assert rows_of(data, col("f") < col("g")) == [2, 3]
    assert rows_of(data, col("f") != col("g")) == [0, 1, 2, 3]


def test_what_every_row_matches_is_not_evaluated() -> None:
    data = file_of("parquet", x=pa.array([1, 2, 3, 4]), y=pa.array([5, 6, 7, 8]))
    with fs.trace() as trace:
        assert fs.scan(data).filter(x < col("y")).count() == 4
    assert trace.data_bytes == 0


def test_dictionaries_decide_any_test_of_one_column_null_included() -> None:
    pairs = [("Ab", "aB"), ("x", "y"), (None, "y"), (None, None)]
    table = pa.table({"x": [text for pair in pairs for text in pair * 4000]})
    data = written(table, "parquet", [8000] * 4, compression="none")
    assert_pruned(data, x.ilike("AB"), [0])
    assert_pruned(data, x.lower().contains("y"), [1, 2])
    # A null is one more entry.
    missing = [*range(16_000, 24_000, 2), *range(24_000, 32_000)]
    assert rows_of(data, fs.coalesce(x, "none") == "none") == missing
    assert rows_of(data, x.length().is_null()) == missing


def test_an_entry_that_fails_proves_nothing() -> None:
    data = written(pa.table({"x": ["1", "x", "2", "2"]}), "parquet", [2, 2])
    with pytest.raises(fs.PredicateError):
        rows_of(data, x.cast("int64") == 1)
    assert rows_of(data, fs.when(x != "x").then(x).otherwise(None).cast("int64") == 2) == [2, 3]


def test_explain_names_what_dropped_blocks() -> None:
    texts = ["Ab", "aB"] * 4000 + ["x", "y"] * 4000
    data = written(pa.table({"x": texts}), "parquet", [8000, 8000], compression="none")
    assert "dropped 1 by dictionary" in fs.scan(data).filter(x.ilike("AB")).explain()
    assert "dropped 1 by statistics" in fs.scan(data).filter(x.like("x%y")).explain()


def test_explain_names_what_each_part_ruled_out() -> None:
    count = 4000
    table = pa.table(
        {
            "i": pa.array(range(count), pa.int32()),
            "city": ["NYC" if n < 2000 else "LA" for n in range(count)],
            "s": [str(n * 7919 % count) for n in range(count)],
            "j": pa.array([count - n for n in range(count)], pa.int32()),
        }
    )
    data = written(
        table, "parquet", [1000] * 4, write_page_index=True, max_rows_per_page=100,
        use_dictionary=["city"],
    )  # fmt: skip
    lower, part, below = col("city").lower() == "la", col("s").contains("11"), col("i") < col("j")
    plan = fs.scan(data).filter((col("i") + 1 > 1500) & lower & part & below).plan()
    found = {part.text: [proof for proof in part.proofs if proof[2]] for part in plan.parts}
    assert found == {
        repr(col("i") + 1 > 1500): [("statistics", "block", 1, 4)],
        repr(lower): [("dictionary", "block", 1, 1)],
        repr(part): [],
        repr(below): [("statistics", "block", 2, 4)],
    }
    text = fs.scan(data).filter((col("i") + 1 > 1500) & part).explain()
    assert f"{col('i') + 1 > 1500!r}: 1 of 4 blocks ruled out by statistics" in text
    assert f"{part!r}: nothing rules out a row before it is tested" in text


@pytest.mark.parametrize(
    ("predicate", "blocks", "proven"),
    [
        (col("x").is_between(51, 59), [1], 0),
        (col("x").is_between(11, 49), [], 0),
        (col("x").is_between(11, 50), [0], 0),
        (col("x") != 55, [0, 1], 4000),
        (~col("x").is_between(52, 58), [0, 1], 4000),
        (col("x") > 55, [0, 1], 0),
        (~col("x").is_between(52, 54), [0, 1], 4000),
    ],
    ids=repr,
)
def test_ranges_ask_the_dictionary(predicate: Any, blocks: list[int], proven: int) -> None:
    # Bounds are 10 to 90 in both, what lies between decides; a null is never certain.
    values = [10, 50, 60, 90] * 1000 + [10, 55, None, 90] * 1000
    data = written(pa.table({"x": pa.array(values, pa.int64())}), "parquet", [4000, 4000])
    assert rows_of(data, predicate) == rows_of(data, predicate, indexes=False)
    plan = fs.scan(data).filter(predicate).plan()
    assert [block.ordinal for block in plan.blocks] == blocks
    assert plan.proven == proven
