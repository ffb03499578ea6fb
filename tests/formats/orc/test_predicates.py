"""Filters by value on ORC files: against the oracle row by row, and what they need not read."""

import datetime as dt
import io
import os
import pickle
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.formats.parquet.test_values_sought import assert_found
from tests.support import formats
from tests.support.formats import even
from tests.support.nested_data import Kinds
from tests.support.oracle import Source
from tests.support.orc_craft import Crafted, read, without_row_index, written, written_at_once
from tests.support.orc_files import type_count
from tests.support.predicate_cases import row_numbers
from tests.support.predicate_checks import Case, check_many
from tests.support.predicate_data import NUMBERS, Predicates, Writer, make_table
from tests.support.writers import need

MORE = int(os.environ.get("FRETSAW_MORE", "1"))
FILES, QUICK = 16 * MORE, 6
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
NAN, INF = float("nan"), float("inf")
UTC = dt.UTC

# Random files

FLAT = (
    *(*NUMBERS, pa.bool_(), pa.date32(), pa.string(), pa.binary()),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
)
NESTED = ("struct", "list", "map", "struct", "list")
# What pyorc takes: Python's own values.
PLAIN = (
    *(*NUMBERS, pa.bool_(), pa.date32(), pa.string(), pa.binary()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
)
NAMES = {
    **{pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"},
    **{pa.float32(): "float", pa.float64(): "double", pa.bool_(): "boolean", pa.date32(): "date"},
    **{pa.binary(): "binary", pa.timestamp("us"): "timestamp"},
    pa.timestamp("us", "UTC"): "timestamp with local time zone",
}
ZONES = ("UTC", "America/New_York", "Asia/Kolkata")


def bloom_columns(table: pa.Table, rng: np.random.Generator) -> list[int]:
    """Columns of any depth, often none, sometimes all."""
    chance = rng.choice([0.0, 0.5, 1.0])
    return [i for i in range(1, type_count(pa.struct(list(table.schema)))) if rng.random() < chance]


def by_pyarrow(table: pa.Table, rng: np.random.Generator) -> bytes:
    """Stripes and strides of a few rows, most of the time; any combination of the rest."""
    options = {
        "compression": str(rng.choice(CODECS)),
        "row_index_stride": int(rng.choice([5, 13, 40, 10_000])),
        "file_version": str(rng.choice(["0.11", "0.12", "0.12"])),
        "dictionary_key_size_threshold": float(rng.choice([0.0, 0.5, 1.0])),
        "bloom_filter_columns": bloom_columns(table, rng),
        "bloom_filter_fpp": float(rng.choice([0.01, 0.05, 0.5])),
    }
    rows = int(rng.choice([60, 110, table.num_rows]))
    data = written(table, rows, **options)
    return without_row_index(data) if rng.random() < 0.1 else data


def orc_name(kind: pa.DataType, rng: np.random.Generator) -> str:
    if pa.types.is_string(kind):
        return str(rng.choice(["string", "string", "varchar(7)", "varchar(80)", "char(7)"]))
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return NAMES[kind]


EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
SECOND, DAY = dt.timedelta(seconds=1), dt.timedelta(days=1)


def plain_values(column: pa.ChunkedArray) -> list[Any]:
    """Values as pyorc takes them: aware datetimes, also for wall clocks.

    None is within a day of the epoch: between that of the writer's zone and that of UTC the format
    is a second off.
    """
    values: list[Any] = column.to_pylist()
    if not pa.types.is_timestamp(column.type):
        return values
    instants = [None if value is None else value.replace(tzinfo=UTC) for value in values]
    return [v - 2 * DAY if v and abs(v - EPOCH) <= DAY else v for v in instants]


def by_pyorc(table: pa.Table, rng: np.random.Generator) -> bytes:
    pyorc = need("pyorc")
    names = [f"{item.name}:{orc_name(item.type, rng)}" for item in table.schema]
    kinds = pyorc.CompressionKind
    options = {
        "compression": rng.choice([kinds.NONE, kinds.ZLIB, kinds.SNAPPY, kinds.LZ4, kinds.ZSTD]),
        "batch_size": int(rng.choice([40, 90, 1_000])),
        "stripe_size": 1,
        "row_index_stride": int(rng.choice([0, 5, 13, 40, 10_000])),
        "dict_key_size_threshold": float(rng.choice([0.0, 1.0])),
        "timezone": ZoneInfo(str(rng.choice(ZONES))),
    }
    if options["row_index_stride"]:
        options["bloom_filter_columns"] = bloom_columns(table, rng)
    sink = io.BytesIO()
    with pyorc.Writer(sink, f"struct<{','.join(names)}>", **options) as writer:
        for row in zip(*map(plain_values, table.columns), strict=True):
            writer.write(row)
    return sink.getvalue()


WRITERS: dict[str, Writer] = {
    "pyarrow": Writer(by_pyarrow, Kinds(FLAT, NESTED), FLAT),
    "pyorc": Writer(by_pyorc, Kinds(PLAIN, ()), PLAIN),
}


def make_file(number: int) -> tuple[str, bytes]:
    """The writer and the bytes of a file."""
    rng = np.random.default_rng([17, number])
    name = "pyorc" if number % 3 == 2 else "pyarrow"
    return name, WRITERS[name].write(make_table(WRITERS[name], rng), rng)


class OrcCase(Case):
    """A file, the table that pyarrow reads from it, and random questions."""

    def __init__(self, data: bytes, seed: int) -> None:
        self._data = data
        self.source = Source(read(data))
        self.predicates = Predicates(self.source, seed)
        self._rng = np.random.default_rng([19, seed])
        self._ends = list(accumulate(Crafted(data).stripe_rows, initial=0))


@pytest.mark.parametrize(
    "number",
    [*range(QUICK), *(pytest.param(n, marks=pytest.mark.slow) for n in range(QUICK, FILES))],
)
def test_the_rows_are_those_of_the_oracle(number: int) -> None:
    writer, data = make_file(number)
    predicates = 18 if number < QUICK else 40
    check_many(OrcCase(data, number), predicates, f"file {number} by {writer}")


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 2 + 4 * MORE))]
)
def test_values_of_every_type_are_found(number: int) -> None:
    rng = np.random.default_rng([20, number])
    table = make_table(WRITERS["pyarrow" if number % 2 == 0 else "pyorc"], rng)
    options = {
        "row_index_stride": int(rng.choice([5, 13, 40])),
        "compression": str(rng.choice(CODECS)),
        "blooms": True,
    }
    if number % 2:
        plain = [pa.array(plain_values(column), column.type) for column in table.columns]
        table = pa.table(plain, names=table.column_names)
    blocks = even(table.num_rows, int(rng.choice([60, 110, 300])))
    data = formats.written(table, "pyorc" if number % 2 else "orc", blocks, **options)
    assert_found(Source(read(data)), data, rng)


SMALL = (
    *("TestOrcFile.test1", "TestOrcFile.testStringAndBinaryStatistics", "bad_bloom_filter_1.6.0"),
    *("TestOrcFile.testPredicatePushdown", "bloom_filter", "over1k_bloom", "orc_split_elim_new"),
)
LARGE = (
    *("TestOrcFile.testDate1900", "TestOrcFile.testSnappy", "TestOrcFile.testStripeLevelStats"),
    *("TestStringDictionary.testRowIndex", "decimal", "nulls-at-end-snappy"),
    *("orc_split_elim", "orc_split_elim_cpp"),
)


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
def test_files_by_other_writers_agree_with_the_oracle(name: str, corpus: Path) -> None:
    path = corpus / "orc" / f"{name}.orc"
    check_many(OrcCase(path.read_bytes(), 0), 10, path.name)


# Rules of predicates, on each way to write a file

Layout = Callable[[pa.Table], bytes]
LAYOUTS: dict[str, Layout] = {
    "strides of two": lambda table: written(table, 4, row_index_stride=2),
    "Bloom filters": lambda table: written(
        table,
        3,
        row_index_stride=1,
        compression="zstd",
        bloom_filter_columns=range(1, type_count(pa.struct(list(table.schema)))),
    ),
    "no row index": lambda table: without_row_index(written(table, 4, compression="zlib")),
    "one stride": lambda table: written_at_once(table, dictionary_key_size_threshold=1.0),
}


def matching(predicate: Any, **columns: Any) -> list[int]:
    """The rows that match, which must not depend on stripes, strides or indexes."""
    found: dict[str, list[int]] = {}
    for name, layout in LAYOUTS.items():
        data = layout(pa.table(columns))
        scan = fs.scan(data).filter(predicate)
        found[name] = row_numbers(scan)
        assert scan.count() == len(found[name]), name
        assert row_numbers(fs.scan(data, indexes=False).filter(predicate)) == found[name], name
    rows = found["one stride"]
    assert found == dict.fromkeys(LAYOUTS, rows)
    return rows


def rules(*cases: tuple[Any, list[int]]) -> pytest.MarkDecorator:
    """Parameters: predicates and the rows that they match."""
    return pytest.mark.parametrize(("predicate", "rows"), cases, ids=repr)


x = col("x")


@rules(
    (x == 2, [2, 5]),
    (x != 2, [1, 3]),
    (x <= 2, [1, 2, 5]),
    (x > 2, [3]),
    (x > 2**40, []),
    (x < 2**40, [1, 2, 3, 5]),
    (x == 1.5, []),
    (x.is_in([3, 1, 3, 7]), [1, 3]),
    (x.is_in([1, None]), [1]),
    (~x.is_in([1, None]), []),
    (x.is_in([]), []),
    (x.is_between(2, 3), [2, 3, 5]),
    (x.is_between(3, 2), []),
    (x.is_null(), [0, 4]),
    (x.is_not_null(), [1, 2, 3, 5]),
    ((x > 1) & (x < 3), [2, 5]),
    ((x == 1) | x.is_null(), [0, 1, 4]),
    (~(x == 2), [1, 3]),
    ("x in (1, 3) or x is null", [0, 1, 3, 4]),
    ("not (x between 2 and 3)", [1]),
)
def test_operators(predicate: Any, rows: list[int]) -> None:
    assert matching(predicate, x=pa.array([None, 1, 2, 3, None, 2], pa.int32())) == rows


@rules(
    (x == 0.0, [1]),
    (x == -0.0, [2]),
    (x < 0.0, [2, 5]),
    (x.is_in([0.0, -0.0]), [1, 2]),
    (x == NAN, [3]),
    (x != NAN, [1, 2, 4, 5]),
    (x > 1e300, [3, 4]),
    (x >= INF, [3, 4]),
    (x <= INF, [1, 2, 4, 5]),
    (x <= NAN, [1, 2, 3, 4, 5]),
    (x.is_nan(), [3]),
    (~x.is_nan(), [1, 2, 4, 5]),
    (~(x > 1e300), [1, 2, 5]),
)
def test_floats_are_in_total_order(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=[None, 0.0, -0.0, NAN, INF, -1.5]) == rows


WORDS = ["b", None, "", "ba", "é", "a", "bab"]


@rules(
    (x.starts_with("ba"), [3, 6]),
    (x.starts_with(""), [0, 2, 3, 4, 5, 6]),
    (~x.starts_with("b"), [2, 4, 5]),
    (x == "", [2]),
    (x >= "b", [0, 3, 4, 6]),
    ("x like 'b%'", [0, 3, 6]),
    ("x = 'é'", [4]),
)
def test_strings(predicate: Any, rows: list[int]) -> None:
    assert matching(predicate, x=WORDS) == rows
    binary = [None if word is None else word.encode() for word in WORDS]
    assert matching(predicate, x=pa.array(binary, pa.binary())) == rows


LISTS = [[1, 5], [], None, [None], [None, 7], [2], [9, 9]]


@rules(
    (x.any() > 4, [0, 4, 6]),
    (x.all() > 4, [1, 6]),
    (~(x.any() > 4), [1, 5]),
    (~(x.all() > 4), [0, 5]),
    (x.any() == 9, [6]),
    (x.any().is_null(), [3, 4]),
    (x.all().is_not_null(), [0, 1, 5, 6]),
    (x.is_null(), [2]),
    (x.any().is_in([7, 2]), [4, 5]),
)
def test_lists_are_folded(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=pa.array(LISTS, pa.list_(pa.int64()))) == rows


@rules(
    (col("m.value").any() > 4, [0, 4, 6]),
    (col("m.value").all() > 4, [1, 6]),
    (col("m.key").any() == "k1", [0, 4, 6]),
    (col("m.key").all() == "k0", [1, 3, 5]),
    (col("m").is_null(), [2]),
)
def test_keys_and_values_of_maps(predicate: fs.Predicate, rows: list[int]) -> None:
    pairs = [None if v is None else [(f"k{i}", e) for i, e in enumerate(v)] for v in LISTS]
    assert matching(predicate, m=pa.array(pairs, pa.map_(pa.string(), pa.int64()))) == rows


STRUCTS = [{"a": 1}, None, {"a": None}, {"a": 3}, None, None, {"a": 4}]


@rules(
    (col("x.a").is_null(), [1, 2, 4, 5]),
    (col("x.a").is_not_null(), [0, 3, 6]),
    (x.is_null(), [1, 4, 5]),
    (x.is_not_null(), [0, 2, 3, 6]),
    (col("x.a") > 1, [3, 6]),
    (~(col("x.a") > 1), [0]),
)
def test_fields_of_null_structs_are_null(predicate: fs.Predicate, rows: list[int]) -> None:
    assert matching(predicate, x=pa.array(STRUCTS, pa.struct([("a", pa.int64())]))) == rows


NOON = dt.datetime(2024, 2, 29, 12)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("fare > 100 and city in ('NYC', 'LA') and tip is not null", [0]),
        ("fare between 50 and 100 or tip is null", [1, 2, 3]),
        ("at >= '2024-02-29 12:00:00'", [1, 2]),
        ("at = '2024-02-29T21:00:00+09:00'", [1]),
        ("wall = '2024-02-29 12:00:00'", [1]),
        ("day = '2024-02-29'", [1]),
        ("price >= 1.50 and price < 2", [0, 1]),
    ],
)
def test_text_is_a_predicate(text: str, rows: list[int]) -> None:
    noon = NOON.replace(tzinfo=UTC)
    columns = {
        "fare": [120.0, 60.0, 200.0, None],
        "city": ["NYC", "LA", "NYC", None],
        "tip": [1, 2, None, None],
        "at": pa.array([noon - dt.timedelta(seconds=1), noon, noon + dt.timedelta(1), None]),
        "wall": pa.array([NOON - dt.timedelta(seconds=1), NOON, None, None]),
        "day": [dt.date(1999, 1, 1), NOON.date(), None, dt.date(2030, 1, 1)],
        "price": pa.array([Decimal("1.50"), Decimal("1.99"), 2, None], pa.decimal128(9, 2)),
    }
    assert matching(text, **columns) == rows


def test_a_wall_clock_takes_naive_datetimes_and_an_instant_aware_ones() -> None:
    noon = NOON.replace(tzinfo=UTC)
    table = pa.table({"wall": pa.array([NOON]), "at": pa.array([noon], pa.timestamp("us", "UTC"))})
    scan = fs.scan(written_at_once(table))
    for wrong in (col("wall") == noon, col("at") == NOON):
        with pytest.raises(fs.PredicateTypeError):
            scan.filter(wrong).to_arrow()
    assert scan.filter((col("wall") == NOON) & (col("at") == noon)).count() == 1


def test_names_and_literals_are_checked_before_data_is_read() -> None:
    scan = fs.scan(written_at_once(COUNTED))
    wrong = {fs.ColumnNotFoundError: col("k") == 1, fs.PredicateTypeError: col("n") == "one"}
    for error, predicate in wrong.items():
        with fs.trace() as trace, pytest.raises(error):
            scan.filter(predicate).to_arrow()
        assert trace.data_bytes == 0


# Windows, counts, several files

COUNTED = pa.table({"n": range(100), "m": [i % 7 for i in range(100)]})
THREES = [i for i in range(100) if i % 7 == 3]


def numbers(scan: fs.Scan) -> list[int]:
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found


@pytest.mark.parametrize(
    "codec", ["zstd", *(pytest.param(codec, marks=pytest.mark.slow) for codec in CODECS[:4])]
)
def test_windows_count_the_rows_that_match(codec: str) -> None:
    options = {"compression": codec, "row_index_stride": 7, "bloom_filter_columns": [2]}
    scan = fs.scan(written(COUNTED, 30, **options)).filter(col("m") == 3)
    assert numbers(scan) == THREES
    assert numbers(scan.head(3)) == THREES[:3]
    assert numbers(scan.tail(3)) == THREES[-3:]
    assert numbers(scan.skip(10)) == THREES[10:]
    assert numbers(scan.skip(2).head(4)) == numbers(scan.head(4).skip(2)) == THREES[2:6]
    assert numbers(scan.head(0)) == numbers(scan.tail(0)) == numbers(scan.skip(99)) == []
    assert numbers(scan.tail(99)) == THREES
    assert scan.skip(2).head(4).count() == scan.tail(4).count() == 4
    kept = scan.filter(fs.blocks(1, 3))
    assert numbers(kept.tail(2)) == [n for n in THREES if 30 <= n < 90][-2:]
    assert numbers(scan.select_rows(range(50))) == [n for n in THREES if n < 50]
    assert numbers(scan.filter(col("n") > 90)) == [94]
    assert scan.select().to_arrow().shape == (len(THREES), 0)


def test_filters_and_windows_run_over_files_of_both_formats(tmp_path: Path) -> None:
    orc, parquet, more = (tmp_path / name for name in ("a", "b", "c"))
    orc.write_bytes(written(COUNTED, 40, row_index_stride=10, bloom_filter_columns=[1]))
    pq.write_table(COUNTED, parquet, row_group_size=40)
    more.write_bytes(written(COUNTED, 25, row_index_stride=5, compression="zstd"))
    scan = fs.scan([orc, parquet, more]).filter(col("m") == 3)
    every = THREES * 3
    assert numbers(scan) == every
    assert scan.count() == len(every)
    assert numbers(scan.tail(17)) == every[-17:]
    assert numbers(scan.skip(12).head(20)) == every[12:32]
    assert numbers(scan.filter(col("n").is_in([3, 94]))) == [3, 94] * 3
    indexed = scan.with_row_index().with_file_path().skip(14).head(2).to_arrow()
    assert indexed["index"].to_pylist() == [100 + THREES[0], 100 + THREES[1]] == [103, 110]
    assert [Path(path) for path in indexed["path"].to_pylist()] == [parquet, parquet]


def test_a_scan_with_a_predicate_can_be_pickled(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(written(COUNTED, 30, row_index_stride=10))
    scan = fs.scan(path).filter((col("m") == 3) & col("n").is_in([3, np.int64(94), None]))
    assert numbers(pickle.loads(pickle.dumps(scan))) == numbers(scan) == [3, 94]


# What is not read

ROWS, STRIPE, STRIDE_ROWS = 30_000, 10_000, 500
GAP = range(12_000, 12_040)


@cache
def large_table() -> pa.Table:
    """Sorted; spread over all, but even; constant but for nulls in one stride; and long ones."""
    spread = np.arange(ROWS) * 7_919 % ROWS * 2
    return pa.table(
        {
            "n": np.arange(ROWS),
            "spread": spread,
            "word": [f"word {number:06}" for number in spread],
            "gap": [None if row in GAP else 1 for row in range(ROWS)],
            "wide": [f"{number:040}" for number in spread],
        }
    )


@cache
def large_file(codec: str, *blooms: int) -> bytes:
    options = {"compression": codec, "row_index_stride": STRIDE_ROWS}
    return written(large_table(), STRIPE, bloom_filter_columns=blooms, **options)


codecs = pytest.mark.parametrize("codec", CODECS)


def sources(trace: fs.Trace) -> set[str]:
    return {record.source for record in trace.pruned if record.dropped}


@codecs
def test_a_range_of_a_sorted_column_decodes_only_the_strides_that_can_match(codec: str) -> None:
    scan = fs.scan(large_file(codec)).filter(col("n").is_between(13_400, 14_100))
    with fs.trace() as trace:
        found = scan.select("n", "wide").to_arrow()
    assert found["n"].to_pylist() == list(range(13_400, 14_101))
    assert found.equals(large_table().select(["n", "wide"]).slice(13_400, 701))
    # Three of 60 strides, in two columns.
    assert trace.rows_decoded <= 2 * 3 * STRIDE_ROWS
    assert trace.pages_decoded == 2 * 3
    assert trace.fallbacks == []
    assert {"statistics", "row index"} <= sources(trace)
    assert trace.data_bytes < len(large_file(codec)) / 4


@codecs
def test_projected_columns_are_read_only_where_rows_match(codec: str) -> None:
    scan = fs.scan(large_file(codec)).filter(col("n") == 20_001).select("word")
    with fs.trace() as trace:
        assert scan.to_arrow()["word"].to_pylist() == [large_table()["word"][20_001].as_py()]
    assert trace.rows_decoded <= 2 * STRIDE_ROWS
    assert trace.pages_decoded == 2


def test_statistics_of_stripes_answer_what_lies_outside_of_them() -> None:
    scan = fs.scan(large_file("zstd"))
    cases = [(col("n") < 0, 0), (col("n") >= 0, ROWS), (col("n") < STRIPE, STRIPE)]
    cases += [(col("gap") == 2, 0), (col("n").is_null(), 0), (col("n").is_not_null(), ROWS)]
    for predicate, count in cases:
        with fs.trace() as trace:
            assert scan.filter(predicate).count() == count
        assert trace.data_bytes == 0, predicate


def test_strides_that_match_as_a_whole_are_counted_without_their_data() -> None:
    scan = fs.scan(large_file("zstd")).filter(col("n") >= STRIPE + 7 * STRIDE_ROWS)
    with fs.trace() as trace:
        assert scan.count() == ROWS - STRIPE - 7 * STRIDE_ROWS
    assert trace.data_bytes == 0


@pytest.mark.parametrize("name", ["spread", "word"])
def test_a_bloom_filter_skips_what_bounds_cannot(name: str) -> None:
    present = large_table()[name][17_003].as_py()
    absent = present + 1 if name == "spread" else f"{present[:-1]}{int(present[-1]) + 1}"
    with_filters, without = large_file("zstd", 2, 3), large_file("zstd")
    for value, rows in ((present, [17_003]), (absent, [])):
        decoded = {}
        for data in (with_filters, without):
            with fs.trace() as trace:
                scan = fs.scan(data).filter(col(name) == value).select("n")
                assert scan.to_arrow()["n"].to_pylist() == rows
            decoded[data] = trace.rows_decoded
            assert ("Bloom filter" in sources(trace)) == (data is with_filters)
        assert decoded[without] >= ROWS
        # Five in a hundred filters may be wrong: a few strides of 60, not most.
        assert decoded[with_filters] <= 15 * STRIDE_ROWS


def test_a_bloom_filter_skips_for_each_of_several_values() -> None:
    values = [large_table()["spread"][row].as_py() for row in (5, 11_000, 29_999)]
    scan = fs.scan(large_file("zstd", 2)).filter(col("spread").is_in([*values, 7, None]))
    with fs.trace() as trace:
        assert numbers(scan.select("n")) == [5, 11_000, 29_999]
    assert trace.rows_decoded <= 25 * STRIDE_ROWS
    assert "Bloom filter" in sources(trace)


def test_nulls_in_one_stride_are_found_there() -> None:
    scan = fs.scan(large_file("zstd")).filter(col("gap").is_null())
    with fs.trace() as trace:
        assert numbers(scan.select("n")) == list(GAP)
    assert trace.rows_decoded <= 2 * STRIDE_ROWS
    with fs.trace() as trace:
        assert scan.count() == len(GAP)
    assert trace.rows_decoded <= STRIDE_ROWS


def test_a_tail_with_a_filter_reads_from_the_end() -> None:
    scan = fs.scan(large_file("zstd")).filter(col("spread") >= 0).select("n").tail(10)
    with fs.trace() as trace:
        assert numbers(scan) == list(range(ROWS - 10, ROWS))
    assert trace.rows_decoded <= STRIPE


def test_a_head_with_a_filter_stops_when_it_has_its_rows() -> None:
    scan = fs.scan(large_file("zstd")).filter(col("spread") > 100).select("n").head(10)
    expected = [row for row, value in enumerate(large_table()["spread"].to_pylist()) if value > 100]
    with fs.trace() as trace:
        assert numbers(scan) == expected[:10]
    assert trace.rows_decoded <= STRIPE


def test_pruning_keeps_every_row_that_matches_and_reads_no_data() -> None:
    table, data = large_table(), large_file("zstd", 2, 3)
    spread = table["spread"][17_003].as_py()
    cases: list[tuple[fs.Predicate, list[int]]] = [
        (col("n") >= 29_900, list(range(29_900, ROWS))),
        (col("n").is_between(9_990, 10_010), list(range(9_990, 10_011))),
        (col("spread") == spread, [17_003]),
        (col("gap").is_null(), list(GAP)),
        ((col("n") < 600) | (col("n") == 15_000), [*range(600), 15_000]),
        ((col("n") < 600) & (col("n") > 15_000), []),
    ]
    with fs.open(data) as file:
        for predicate, rows in cases:
            with fs.trace() as trace:
                selection = file.prune(predicate)
            assert trace.data_bytes == 0
            assert selection.row_count == ROWS
            kept = set(selection.indices().tolist())
            assert set(rows) <= kept
            strides = {row // STRIDE_ROWS for row in kept}
            exact = {row // STRIDE_ROWS for row in rows}
            # A Bloom filter may be wrong about five strides in a hundred.
            assert len(strides) <= len(exact) + (12 if rows == [17_003] else 0)
            assert file.scan().select_rows(selection).filter(predicate).count() == len(rows)


def test_what_a_plan_says_it_drops_is_what_is_dropped() -> None:
    scan = fs.scan(large_file("zstd")).filter(col("n") == 20_001)
    assert "statistics" in scan.explain()
    with fs.trace() as trace:
        scan.to_arrow()
    dropped = {(r.level, r.source): r.dropped for r in trace.pruned}
    assert dropped["block", "statistics"] == 2
    assert dropped["page", "row index"] == STRIPE // STRIDE_ROWS - 1


# What pyorc writes


def pyorc_file(schema: str, rows: list[tuple[Any, ...]], **options: Any) -> bytes:
    pyorc = need("pyorc")
    sink = io.BytesIO()
    options = {"stripe_size": 1, "batch_size": 8, "row_index_stride": 4, **options}
    with pyorc.Writer(sink, f"struct<{schema}>", **options) as writer:
        writer.writerows(rows)
    return sink.getvalue()


@pytest.mark.parametrize("blooms", [[], [1]], ids=["bounds", "Bloom filter"])
def test_floats_that_were_narrowed_after_they_were_measured_are_found(blooms: list[int]) -> None:
    """The writer takes bounds and hashes of doubles, then stores them as floats."""
    data = pyorc_file("x:float", [(i / 10,) for i in range(32)], bloom_filter_columns=blooms)
    for row in range(1, 32, 5):
        scan = fs.scan(data)
        assert row_numbers(scan.filter(x == row / 10)) == [row]
        assert row_numbers(scan.filter(x >= row / 10)) == list(range(row, 32))
        assert row_numbers(scan.filter(x > row / 10)) == list(range(row + 1, 32))
        assert row_numbers(scan.filter(x <= row / 10)) == list(range(row + 1))
        assert row_numbers(scan.filter(x < row / 10)) == list(range(row))


@pytest.mark.parametrize("blooms", [[], [1, 2]], ids=["bounds", "Bloom filter"])
@pytest.mark.parametrize(
    "zone", ["America/New_York", *(pytest.param(z, marks=pytest.mark.slow) for z in ZONES[::2])]
)
def test_timestamps_are_found_whatever_the_zone_of_the_writer(zone: str, blooms: list[int]) -> None:
    start = dt.datetime(1969, 12, 20, 5, 0, 0, 1_500, UTC)
    steps = [dt.timedelta(days=i * 797, hours=i, microseconds=i * 333) for i in range(32)]
    data = pyorc_file(
        "wall:timestamp,at:timestamp with local time zone",
        [(start + step, start + step) for step in steps],
        timezone=ZoneInfo(zone),
        bloom_filter_columns=blooms,
    )
    table = read(data)
    millisecond = dt.timedelta(milliseconds=1)
    for name in ("wall", "at"):
        values = [value.to_pydatetime() for value in table[name].to_pylist()]
        column = col(name)
        for row in range(1, 32, 6):
            scan, value = fs.scan(data), values[row]
            assert row_numbers(scan.filter(column == value)) == [row]
            assert row_numbers(scan.filter(column == value + millisecond / 4)) == []
            assert row_numbers(scan.filter(column >= value)) == list(range(row, 32))
            assert row_numbers(scan.filter(column < value)) == list(range(row))
            around = column.is_between(value - millisecond, value + millisecond)
            assert row_numbers(scan.filter(around)) == [row]


@pytest.mark.parametrize("blooms", [[], [1, 2]], ids=["bounds", "Bloom filter"])
@pytest.mark.parametrize("zone", ZONES)
def test_times_around_the_epoch_are_found_where_they_are_read(zone: str, blooms: list[int]) -> None:
    """Some are stored a second off; statistics and Bloom filters know the true time."""
    values = [EPOCH - SECOND * 10 + dt.timedelta(milliseconds=327 * i) for i in range(48)]
    data = pyorc_file(
        "wall:timestamp,at:timestamp with local time zone",
        [(value, value) for value in values],
        timezone=ZoneInfo(zone),
        bloom_filter_columns=blooms,
    )
    table = read(data)
    for name in ("wall", "at"):
        found = [value.to_pydatetime() for value in table[name].to_pylist()]
        for value in found[26:36:2]:
            scan = fs.scan(data)
            same = [row for row, other in enumerate(found) if other == value]
            above = [row for row, other in enumerate(found) if other > value]
            assert row_numbers(scan.filter(col(name) == value)) == same
            assert row_numbers(scan.filter(col(name) > value)) == above
            assert row_numbers(scan.filter(col(name) <= value)) == sorted({*range(48)} - {*above})


@pytest.mark.parametrize("blooms", [[], [1, 2, 3]], ids=["bounds", "Bloom filter"])
def test_texts_of_a_fixed_or_a_largest_length(blooms: list[int]) -> None:
    words = [f"{letter}{i}" for letter in "abcdefgh" for i in (1, 22, 333, 4444)]
    schema = "c:char(4),v:varchar(2),s:string"
    data = pyorc_file(schema, [(w, w, w) for w in words], bloom_filter_columns=blooms)
    table = read(data)
    assert table["c"][0].as_py() == "a1  "
    for name in ("c", "v", "s"):
        values = table[name].to_pylist()
        for value in (*values[::5], "a1", "zz"):
            scan = fs.scan(data)
            same = [row for row, other in enumerate(values) if other == value]
            below = [row for row, other in enumerate(values) if other < value]
            begun = [row for row, other in enumerate(values) if other.startswith(value[:2])]
            assert row_numbers(scan.filter(col(name) == value)) == same
            assert row_numbers(scan.filter(col(name) < value)) == below
            assert row_numbers(scan.filter(col(name).starts_with(value[:2]))) == begun


@pytest.mark.parametrize("blooms", [[], [1, 2, 3]], ids=["bounds", "Bloom filter"])
def test_decimals_and_dates(blooms: list[int]) -> None:
    wide = Decimal("12345678901234567.123456789")
    day = dt.date(1969, 12, 25)
    rows = [((i - 16) * Decimal("0.25"), (i - 16) * wide, day + dt.timedelta(i)) for i in range(32)]
    schema = "d:decimal(9,2),w:decimal(38,9),t:date"
    scan = fs.scan(pyorc_file(schema, rows, bloom_filter_columns=blooms))
    for row in range(1, 32, 5):
        for name, value in zip(("d", "w", "t"), rows[row], strict=True):
            assert row_numbers(scan.filter(col(name) == value)) == [row]
            assert row_numbers(scan.filter(col(name) > value)) == list(range(row + 1, 32))
    assert row_numbers(scan.filter(col("d") == 1)) == [20]
    assert row_numbers(scan.filter(col("d").is_in([0.5, -0.25, 7.125]))) == [15, 18]
    assert row_numbers(scan.filter(col("w") == wide + Decimal("1E-9"))) == []
