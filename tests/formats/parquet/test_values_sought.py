"""Values sought by `==` and `is_in`: through Bloom filters, dictionaries and the bytes of pages.

No shortcut may lose a row: files of every encoding, by three writers, against the oracle or plain
Python. Where a value is absent, work is saved. Metadata that are odd, contradictory or damaged
give the right rows or an error.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import I32, I64, LIST, META_DATA, STRUCT, Crafted, Reader, Struct, encoded
from tests.support.kernels import each_decoder
from tests.support.oracle import And, Fold, Not, Or, Source, Test, Tree
from tests.support.pages import row_groups
from tests.support.predicate_cases import row_numbers
from tests.support.predicate_checks import SPARK, expression
from tests.support.predicate_data import (
    WRITERS,
    by_duckdb,
    leaf_paths,
    literals,
    make_table,
    open_source,
)
from tests.support.trap_files import array_of
from tests.support.traps import KINDS, Kind, minimal

NAN = float("nan")
CODECS = ("none", "snappy", "zstd", "gzip", "brotli", "lz4")
ENCODINGS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False},
    "dictionary": {"use_dictionary": True},
    "mixed": {"dictionary_pagesize_limit": 30, "write_batch_size": 4},
    "delta": {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}},
    "delta length": {"use_dictionary": False, "column_encoding": {"x": "DELTA_LENGTH_BYTE_ARRAY"}},
}
# Fields of ColumnMetaData: the first data page, the dictionary, the Bloom filter and its length
DATA_PAGE_AT, DICTIONARY_AT, BLOOM_AT = 9, 11, 14
WORDS = [f"value {2 * i:05}" for i in np.random.default_rng(16).permutation(4_000)]
FEW_WORDS = [WORDS[i % 40] for i in range(20_000)]
ABSENT = ["value 00201", "value 04001", "value 07001"]
x = col("x")

each_encoding = pytest.mark.parametrize("encoding", ["plain", "dictionary", "mixed"])


def written(values: Any, encoding: str = "dictionary", **options: Any) -> bytes:
    """The values as column `x` beside a row number, in small pages."""
    sink = io.BytesIO()
    table = pa.table({"row": pa.array(range(len(values))), "x": values})
    layout = {"write_page_index": True, "max_rows_per_page": 16, **ENCODINGS[encoding]}
    pq.write_table(table, sink, **layout | options)
    return sink.getvalue()


def bloomed(values: Any, encoding: str = "plain", **options: Any) -> bytes:
    filters = {"x": {"ndv": options.get("row_group_size", 100), "fpp": 0.0001}}
    return written(values, encoding, bloom_filter_options=filters, **options)


def described(data: bytes, kind: Kind) -> bytes:
    """The file, with the annotation of decimals that pyarrow does not write."""
    if kind.pack is not minimal:
        return data
    return Crafted(data).set_type("x", converted_type=5, scale=2, precision=12).to_bytes()


def found(data: bytes, predicate: fs.Predicate) -> list[int]:
    return row_numbers(fs.scan(data).filter(predicate))


def found_or_refused(data: bytes, predicate: fs.Predicate) -> Any:
    try:
        return found(data, predicate)
    except fs.FileFormatError:
        return "refused"


def traced(data: bytes, predicate: fs.Predicate) -> tuple[list[int], fs.Trace]:
    with fs.trace() as trace:
        rows = found(data, predicate)
    return rows, trace


def dropped_by(trace: fs.Trace, source: str) -> int:
    return sum(record.dropped for record in trace.pruned if record.source == source)


def rows_of(values: Sequence[Any], *sought: Any) -> list[int]:
    return [row for row, value in enumerate(values) if value is not None and value in sought]


def has_filter(data: bytes) -> bool:
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    return any(chunk.bloom_filter_offset is not None for chunk in chunks)


# Every type, by three writers, against the oracle


def seeking(source: Source, rng: np.random.Generator) -> Iterator[Tree]:
    """For each leaf, tests for values that are there, for their neighbours and for strangers."""
    some = Test((source.table.schema.names[0],), "is_not_null")
    for path in leaf_paths(source.table.schema):
        fold: Fold | None = "any" if source.repeats(path) else None
        keys = source.values(path)
        for _ in range(2):
            key = keys[rng.integers(len(keys))] if keys else None
            known = list(literals(source.kind(path), key))
            picks = [known[i] for i in rng.integers(len(known), size=rng.integers(2, 6))]
            one, few = Test(path, "==", (picks[0],), fold), Test(path, "is_in", tuple(picks), fold)
            trees = (one, few, Not(one), And(few, some), Or(Not(some), one), And(Not(one), few))
            yield from (trees[i] for i in rng.permutation(len(trees))[:3])
        yield Test(path, "is_in", (*picks, None), fold)


def assert_found(source: Source, data: bytes, rng: np.random.Generator) -> None:
    """The rows of the oracle, with indexes and without; what these leave of the file has them."""
    with fs.open(io.BytesIO(data)) as file:
        for tree in seeking(source, rng):
            rows = source.matches(tree)
            assert found(data, expression(tree)) == rows, tree
            every = fs.scan(data, indexes=False).filter(expression(tree))
            assert row_numbers(every) == rows, tree
            assert set(rows) <= set(file.prune(expression(tree)).indices().tolist()), tree


def by_pyarrow(table: pa.Table, rng: np.random.Generator) -> bytes:
    """A Bloom filter for each leaf that can have one, encodings as they come."""
    sink = io.BytesIO()
    pq.write_table(table.slice(0, 0), sink)
    leaves = list(pq.ParquetFile(sink).schema)
    able = [leaf.path for leaf in leaves if leaf.physical_type != "BOOLEAN"]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    size = {"ndv": int(rng.choice([10, 300])), "fpp": float(rng.choice([0.5, 0.01]))}
    delta = str(rng.choice(["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]))
    encodings: list[dict[str, Any]] = [
        {"use_dictionary": False, "column_encoding": dict.fromkeys(texts, delta)},
        {"use_dictionary": False},
        {"use_dictionary": True},
        {"dictionary_pagesize_limit": int(rng.choice([20, 60, 200]))},
    ]
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        **encodings[rng.integers(len(encodings))],
        compression=str(rng.choice(CODECS)),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        row_group_size=int(rng.choice([60, 110, 300])),
        max_rows_per_page=int(rng.choice([5, 13, 20_000])),
        write_batch_size=int(rng.choice([1, 8, 20])),
        write_statistics=bool(rng.random() < 0.5),
        write_page_index=bool(rng.random() < 0.5),
        store_decimal_as_integer=bool(rng.random() < 0.7),
        bloom_filter_options=dict.fromkeys(able, size),
    )
    return sink.getvalue()


FILES: list[Any] = [("pyarrow", number) for number in range(7)] + [("duckdb", 0)]
SLOW = [pytest.param(*file, marks=pytest.mark.slow) for file in FILES[2:]]


@pytest.mark.slow
@pytest.mark.parametrize(("writer", "number"), FILES[:2] + SLOW)
@each_decoder("fast")
def test_values_of_every_type_are_found(writer: str, number: int) -> None:
    rng = np.random.default_rng([12, number])
    write = by_pyarrow if writer == "pyarrow" else by_duckdb
    data = write(make_table(WRITERS[writer], rng), rng)
    assert has_filter(data)
    assert_found(open_source(data), data, rng)


@pytest.mark.spark
def test_values_in_files_of_spark_are_found(spark: Any, tmp_path: Path) -> None:
    # One test, so that tests in parallel do not start a JVM each.
    for number in range(4):
        rng = np.random.default_rng([14, number])
        source, folder = tmp_path / f"{number}.parquet", tmp_path / f"spark-{number}"
        table = make_table(SPARK, rng)
        zeros = rng.choice([0.0, -0.0, 1.0, NAN, -1.0], table.num_rows)
        pq.write_table(table.append_column("zero", pa.array(zeros)), source)
        settings = {
            "parquet.bloom.filter.enabled#zero": "true",
            "parquet.bloom.filter.expected.ndv#zero": "300",
            "parquet.enable.dictionary": str(number % 2 == 0).lower(),
            "parquet.page.row.count.limit": "20",
            "parquet.page.size.row.check.min": "10",
        }
        settings |= {f"parquet.bloom.filter.enabled#c{i}": "true" for i in range(9)}
        spark.read.parquet(str(source)).coalesce(1).write.options(**settings).parquet(str(folder))
        (path,) = folder.glob("*.parquet")
        data = path.read_bytes()
        # Where a dictionary has all the values, it writes no filter.
        assert has_filter(data) or number % 2 == 0
        assert_found(open_source(data), data, rng)
        for predicate, sought in ((col("zero") == 0.0, "0.0"), (col("zero") == -0.0, "-0.0")):
            assert found(data, predicate) == rows_of([str(zero) for zero in zeros], sought)


@each_encoding
@pytest.mark.parametrize("name", KINDS)
def test_each_value_is_found_and_its_neighbours_are_not(name: str, encoding: str) -> None:
    kind = KINDS[name]
    values = [kind.at(2 * i % 46) if i % 7 else None for i in range(60)]
    options = {**kind.options, "row_group_size": 30}
    data = described(bloomed(array_of(values, kind), encoding, **options), kind)
    for number in (4, 17, 26, 45):
        rows = rows_of(values, kind.at(number))
        assert bool(rows) == (number % 2 == 0)
        assert found(data, x == kind.at(number)) == rows
        assert found(data, x.is_in([kind.at(number | 1), kind.at(number)])) == rows
        others = set(rows_of(values, *values)) - set(rows)
        assert found(data, ~(x == kind.at(number))) == sorted(others)


# Text that looks like what lies around it


# The last one is, byte by byte, the end of the first, the length of the second, and the second.
ADJACENT = ["\x08\x00\x00\x00b", "abc", "b\x03\x00\x00\x00abc"]


def confusable(seed: int) -> list[str | None]:
    """Short strings of the characters that lengths are made of, and strings within strings."""
    rng = np.random.default_rng([15, seed])
    letters = list("\x00\x00\x00\x01\x02\x04a")
    words = ["".join(rng.choice(letters, size=rng.integers(6))) for _ in range(40)]
    gaps = rng.random(60) < 0.3 * (seed % 3)
    chosen = [words[i] for i in rng.integers(len(words), size=60)]
    tail = ["\x04\x00\x00\x00"] * 5 + ["", "\x01\x00\x00\x00a", "a", *ADJACENT[: 2 + seed % 2]]
    return [None if gap else word for gap, word in zip(gaps, chosen, strict=True)] + tail


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@each_decoder("fast")
def test_text_is_found_as_a_whole_value(encoding: str, version: str) -> None:
    for seed, codec in enumerate(CODECS):
        values = confusable(seed)
        column = pa.array(values).cast(pa.string() if seed % 4 < 2 else pa.binary())
        options = {"compression": codec, "data_page_version": version, "write_statistics": False}
        data = written(column, encoding, **options)
        needles = [
            *sorted(set(filter(None, values)))[::8],
            ADJACENT[2],
            "\x04\x00\x00\x00",
            "",
            "a",
        ]
        for number, needle in enumerate(needles):
            few = needles[number : number + 1 + number % 5]
            assert found(data, x == needle) == rows_of(values, needle), (codec, needle)
            assert found(data, x.is_in([*few, None])) == rows_of(values, *few), (codec, few)


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@each_decoder("fast")
def test_values_longer_than_64_kb_are_found(encoding: str, codec: str) -> None:
    long = "0123456789" * 7_000
    values = ["", long, long[1:], long[:65_536], long + "!", "!" + long, "0" * 65_535, "9"] * 2
    data = written(values, encoding, compression=codec, max_rows_per_page=3)
    for needle in (*values[:8], long[:65_535], long[2:], "0" * 65_536):
        assert found(data, x == needle) == rows_of(values, needle)
    assert found(data, x.is_in([long, "9", "absent"])) == [1, 7, 9, 15]


# Work that is saved


@pytest.mark.parametrize("predicate", [x == ABSENT[0], x.is_in(ABSENT)], ids=repr)
def test_absent_values_read_no_data_where_bloom_filters_are(predicate: fs.Predicate) -> None:
    data = bloomed(WORDS, row_group_size=1_000)
    rows, trace = traced(data, predicate & (col("row") >= 0))
    assert (rows, trace.data_bytes, trace.pages_decoded) == ([], 0, 0)
    assert dropped_by(trace, "Bloom filter") == 4
    assert trace.index_bytes <= 4 * (64 + 32 * len(ABSENT))
    with fs.trace() as trace:
        assert fs.scan(data).filter(predicate).count() == 0
    assert trace.data_bytes == 0
    rows, trace = traced(data, predicate | (x == WORDS[2_345]))
    assert (rows, dropped_by(trace, "Bloom filter")) == ([2_345], 3)
    chunk = row_groups(data)[2].chunks[1].span
    assert all(chunk.covers(read.offset, read.length) for read in trace.log if read.why == "data")


def test_bloom_filters_are_read_only_where_statistics_leave_blocks_open() -> None:
    data = bloomed([10 * i for i in range(400)], row_group_size=100)
    _, trace = traced(data, x == 5_000)
    assert (trace.index_bytes, trace.data_bytes) == (0, 0)
    _, trace = traced(data, x == 1_501)
    assert (dropped_by(trace, "statistics"), dropped_by(trace, "Bloom filter")) == (3, 1)
    assert (trace.index_bytes <= 96, trace.data_bytes) == (True, 0)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_absent_values_decode_no_page_where_dictionaries_are(codec: str) -> None:
    data = written(FEW_WORDS, row_group_size=5_000, max_rows_per_page=500, compression=codec)
    dictionaries = [group.chunks[1].dictionary for group in row_groups(data)]
    sizes = sum(span.end - span.start for span in dictionaries if span)
    absent = sorted(WORDS[:40])[20] + "!"
    for predicate in (x == absent, x.is_in([absent, absent + "!", None])):
        rows, trace = traced(data, predicate)
        assert (rows, trace.pages_decoded, dropped_by(trace, "dictionary")) == ([], 0, 4)
        assert trace.data_bytes + trace.index_bytes <= sizes + 4 * 256
    assert found(data, x == WORDS[7]) == list(range(7, 20_000, 40))


def test_dictionaries_of_more_than_a_quarter_of_their_chunk_are_not_asked() -> None:
    rows, trace = traced(written(WORDS, row_group_size=1_000), x == ABSENT[0])
    assert (rows, dropped_by(trace, "dictionary")) == ([], 0)


# Traps: what is equal has not always the same bytes, and literals have not the column's type


@each_encoding
@pytest.mark.parametrize("size", [2, 4, 8])
@each_decoder("fast")
def test_nans_are_one_and_zeros_are_two(size: int, encoding: str) -> None:
    infinity, one, two, zero = np.array([np.inf, 1, 2, -0.0], f"f{size}").view(f"u{size}").tolist()
    nans = [infinity + 1, infinity + 2, infinity + 77, 2 * zero - 1, 2 * zero - 5]
    bits = np.array([*nans, 0, one, zero, two] * 3, f"u{size}")
    stored = pa.array(bits.view(f"f{size}"))
    assert np.isnan(stored.to_numpy()[:5]).all()
    data = bloomed(stored, encoding, row_group_size=9)
    cases: list[tuple[fs.Predicate, list[int]]] = [
        (x == NAN, [0, 1, 2, 3, 4]),
        (x.is_in([1.0, NAN]), [0, 1, 2, 3, 4, 6]),
        (x == 0.0, [5]),
        (x == -0.0, [7]),
        (x.is_in([0.0, -0.0]), [5, 7]),
        (~x.is_in([NAN, 0.0]), [6, 7, 8]),
        (x == 1.5, []),
    ]
    for predicate, rows in cases:
        assert found(data, predicate) == [9 * group + row for group in range(3) for row in rows]


@each_encoding
@pytest.mark.parametrize(
    ("kind", "predicate", "rows"),
    [
        (pa.int32(), x.is_in([2**32 + 5, 7, 2**70]), [7]),
        (pa.int32(), x.is_in([5, 6, 7]), [5, 6, 7]),
        (pa.int32(), ~x.is_in([5, None]), []),
        (pa.int8(), x.is_in([256 + 5, 3]), [3]),
        (pa.uint8(), x.is_in([-251, 256 + 5, 4]), [4]),
        (pa.uint32(), x == 5 - 2**32, []),
        (pa.int64(), x.is_in([2**64 + 5, 1.5, 5.0, Decimal(7)]), [5, 7]),
        (pa.decimal128(9, 2), x.is_in([Decimal("5.000"), 7, 8.0, Decimal("9.001")]), [5, 7, 8]),
        (pa.decimal128(30, 2), x.is_in([Decimal("5.0"), 10**50, Decimal("1E+1")]), [5, 10]),
        (pa.timestamp("us"), x.physical.is_in([5, 7]), [5, 7]),
        (pa.date32(), x.physical == 5, [5]),
    ],
    ids=repr,
)
def test_literals_are_sought_by_value(
    kind: pa.DataType, predicate: fs.Predicate, rows: list[int], encoding: str
) -> None:
    numbers = pa.array(range(100), pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
    values = numbers.cast(pa.decimal128(12, 0)) if pa.types.is_decimal(kind) else numbers
    assert found(bloomed(values.cast(kind), encoding, row_group_size=50), predicate) == rows


@each_encoding
@each_decoder("fast")
def test_thousands_of_values_are_sought_at_once(encoding: str) -> None:
    values: list[str | None] = [*WORDS[:300], None]
    data = bloomed(values, encoding, row_group_size=90)
    sought = [f"value {i:05}" for i in range(0, 8_000, 3)]
    rows = rows_of(values, *sought)
    assert found(data, x.is_in(sought)) == found(data, x.is_in([*sought, None])) == rows
    assert found(data, ~x.is_in(sought)) == [row for row in range(300) if row not in rows]
    assert found(data, x.is_in([value + "!" for value in sought])) == []


@each_encoding
@each_decoder("fast")
def test_decimals_of_more_bytes_than_they_need_are_found(encoding: str) -> None:
    numbers = [5, -5, 5, 256, 0, -5, 0, 1] * 4
    stored = ["05", "fb", "000005", "0100", "00", "fffffb", "0000", "0001"] * 4
    column = pa.array([bytes.fromhex(text) for text in stored], pa.binary())
    data = bloomed(column, encoding, write_statistics=False, store_schema=False)
    data = described(data, KINDS["decimal in BYTE_ARRAY"])
    for number in (5, -5, 0, 1, 256, 2):
        literal = Decimal(number).scaleb(-2)
        assert found(data, x == literal) == rows_of(numbers, number)
        assert found(data, x.is_in([literal, Decimal("9.99")])) == rows_of(numbers, number)


# Traps: metadata


class Filtered(Crafted):
    """A file whose chunks of `x` are described in another way."""

    def metas(self) -> list[Struct]:
        return [chunk[META_DATA][1] for chunk in self.chunks("x")]

    def set_field(self, number: int, field: tuple[int, Any] | None) -> Self:
        """A field of the chunks' metadata, or none."""
        for meta in self.metas():
            meta.pop(number, None)
            if field is not None:
                meta[number] = field
        return self

    def set_filter(self, header: Struct | bytes, size: int = 32) -> Self:
        """Other Bloom filters, which hold nothing; changes of their header, or all its bytes."""
        for meta in self.metas():
            before = Reader(self.body, meta[BLOOM_AT][1]).struct()
            raw = header if isinstance(header, bytes) else encoded({**before, **header})
            self._append(meta, BLOOM_AT, raw + bytes(size))
        return self


MIXED = [f"text {i % 3}" for i in range(60)] + [f"text 1 {i:03}" for i in range(60)]


def stats_of(*pages: tuple[int, int, int | None]) -> tuple[int, Any]:
    """How many pages have which type and encoding; a count may be absent."""
    fields = [
        {at: (I32, number) for at, number in enumerate(page, 1) if number is not None}
        for page in pages
    ]
    return 13, (LIST, (STRUCT, fields))


# What the metadata say: their encodings (field 2) and how many pages have which (field 13)
NO_STATS, NO_ENCODINGS = (13, None), (2, None)
MIXED_CHANGES: dict[str, list[tuple[int, Any]]] = {
    "as written": [],
    "no stats": [NO_STATS],
    "no stats, no encodings": [NO_STATS, NO_ENCODINGS],
    "no stats, encodings that lie": [NO_STATS, (2, (LIST, (I32, [3, 8])))],
    "no stats, encodings that lie as of old": [NO_STATS, (2, (LIST, (I32, [2, 3])))],
    "empty stats": [(13, (LIST, (STRUCT, [])))],
    "stats of an index page": [stats_of((2, 0, 1), (0, 8, 4), (1, 0, 4))],
    "stats of an unknown page": [stats_of((2, 0, 1), (0, 8, 4), (3, 8, 4), (9, 0, 4))],
    "stats of an unknown page in the dictionary": [stats_of((2, 0, 1), (0, 8, 4), (9, 8, 4))],
    "stats of no page": [stats_of((2, 0, 1), (0, 8, 0))],
    "stats without a count": [stats_of((2, 0, 1), (0, 8, None))],
    "no encodings": [NO_ENCODINGS],
    "encodings that lie": [(2, (LIST, (I32, [3, 8])))],
    "encodings that lie as of old": [(2, (LIST, (I32, [2, 3])))],
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("change", MIXED_CHANGES)
def test_values_beyond_the_dictionary_are_found(change: str, version: str) -> None:
    data = written(MIXED, "mixed", data_page_version=version, write_page_index=False)
    assert {page.uses_dictionary for page in row_groups(data)[0].chunks[1].pages} == {True, False}
    file = Filtered(data)
    for number, field in MIXED_CHANGES[change]:
        file.set_field(number, field)
    for value in ("text 1 050", "text 1 059", "text 1", "text 2", "text 1 5"):
        expected = (rows_of(MIXED, value), "refused")
        assert found_or_refused(file.to_bytes(), x == value) in expected


NULLABLE = [[None, "yes", "no"][i] for i in np.random.default_rng(3).integers(3, size=4_000)]
COUNTS_THAT_PROVE_NOTHING: dict[str, dict[str, Any] | None] = {
    "no statistics": None,
    "no count": {"null_count": None},
    "negative": {"null_count": -1},
    "more than rows": {"null_count": 4_001},
    "zero by an old writer": {"null_count": 0},
}


@pytest.mark.parametrize("counts", COUNTS_THAT_PROVE_NOTHING)
def test_a_dictionary_without_null_does_not_prove_that_there_is_none(counts: str) -> None:
    file = Filtered(written(NULLABLE, "dictionary", write_page_index=False))
    file.set_statistics("x", [COUNTS_THAT_PROVE_NOTHING[counts]])
    if "writer" in counts:
        file.set_created_by("parquet-mr version 1.8.1")
    data = file.to_bytes()
    valid = [row for row, value in enumerate(NULLABLE) if value is not None]
    nulls = [row for row, value in enumerate(NULLABLE) if value is None]
    assert found(data, x.is_in(["yes", "no"])) == found(data, x.is_not_null()) == valid
    assert found(data, x == "yes") == rows_of(NULLABLE, "yes")
    assert found(data, (x == "maybe") | x.is_null()) == found(data, x.is_null()) == nulls
    assert found(data, x != "maybe") == valid
    assert found(data, ~x.is_in(["maybe", None])) == []


@pytest.mark.parametrize("has_nan", [True, False])
def test_a_dictionary_tells_nan_and_zeros_apart(has_nan: bool) -> None:
    among = [0.0, 1.5, 2.5, NAN if has_nan else 3.5]
    values = [among[i] for i in np.random.default_rng(5).integers(4, size=4_000)]
    data = written(values, "dictionary", write_page_index=False)
    nans = [row for row, value in enumerate(values) if value != value]
    zeros = [row for row, value in enumerate(values) if value == 0]
    assert found(data, x.is_nan()) == found(data, x == NAN) == nans
    assert found(data, x == -0.0) == []
    assert found(data, x == 0) == found(data, x == 0.0) == zeros
    assert found(data, x.is_in([-0.0, 2.0])) == []


def test_a_dictionary_says_nothing_of_empty_and_null_lists() -> None:
    kinds: list[Any] = [None, [], [1], [1, 2], [None], [2, None]]
    values = [kinds[i] for i in np.random.default_rng(6).integers(6, size=4_000)]
    array = pa.array(values, pa.list_(pa.int64()))
    data = written(array, "dictionary", write_page_index=False, write_statistics=False)

    def rows(holds: Callable[[Any], bool]) -> list[int]:
        return [row for row, value in enumerate(values) if value is not None and holds(value)]

    element = col("x.element")
    assert found(data, element.any() == 7) == []
    assert found(data, element.all() == 7) == rows(lambda elements: elements == [])
    assert found(data, element.any().is_in([1, 2])) == rows(lambda e: 1 in e or 2 in e)
    every = rows(lambda elements: None not in elements)
    assert found(data, element.all().is_in([1, 2])) == every
    assert found(data, ~(element.any() == 7)) == every


@pytest.mark.parametrize("place", [None, (I64, 0)], ids=["absent", "zero"])
@pytest.mark.parametrize("stats", [True, False])
@pytest.mark.parametrize("encoding", ["plain", "dictionary"])
def test_the_first_page_tells_whether_there_is_a_dictionary(
    encoding: str, stats: bool, place: tuple[int, int] | None
) -> None:
    values = FEW_WORDS[:5_000]
    file = Filtered(written(values, encoding, write_page_index=False, max_rows_per_page=500))
    for meta in file.metas():
        assert (DICTIONARY_AT in meta) == (encoding == "dictionary")
        meta[DATA_PAGE_AT] = meta.get(DICTIONARY_AT, meta[DATA_PAGE_AT])
    file.set_field(DICTIONARY_AT, place)
    if not stats:
        file.set_field(*NO_STATS)
    for value in (WORDS[3], WORDS[39], WORDS[3] + "!"):
        assert found(file.to_bytes(), x == value) == rows_of(values, value)


@pytest.mark.parametrize("length", [True, False])
def test_bloom_filters_need_no_length_in_the_metadata(length: bool) -> None:
    file = Filtered(bloomed(WORDS[:100]))
    data = (file if length else file.set_field(BLOOM_AT + 1, None)).to_bytes()
    rows, trace = traced(data, x == sorted(WORDS[:100])[50] + "!")
    assert (rows, trace.data_bytes, dropped_by(trace, "Bloom filter")) == ([], 0, 1)
    assert [found(data, x == value) for value in WORDS[:100]] == [[row] for row in range(100)]


@pytest.mark.parametrize("number", [2, 3, 4], ids=["algorithm", "hash", "compression"])
@pytest.mark.parametrize("union", [{7: (STRUCT, {})}, {}], ids=["new", "empty"])
def test_bloom_filters_of_an_unknown_kind_are_ignored(number: int, union: Struct) -> None:
    file = bloomed(WORDS[:100])
    data = Filtered(file).set_filter({1: (I32, 32), number: (STRUCT, union)}, 32).to_bytes()
    assert found(data, x == WORDS[40]) == found(data, x.is_in([WORDS[40], "absent"])) == [40]
    # Of a known kind, the same filter is believed: it holds nothing.
    known = Filtered(file).set_filter({1: (I32, 32)}, 32)
    assert found(known.to_bytes(), x == WORDS[40]) == []


def sized(claimed: int, size: int) -> Callable[[Filtered], Filtered]:
    """A filter that says to have so many bytes and has others."""
    return lambda file: file.set_filter({1: (I32, claimed)}, size)


def placed(field: int, value: int) -> Callable[[Filtered], Filtered]:
    """A filter whose place or length is another."""
    return lambda file: file.set_field(field, (I64 if field == BLOOM_AT else I32, value))


DAMAGE: Mapping[str, Callable[[Filtered], Filtered]] = {
    "beyond the file": placed(BLOOM_AT, 10**6),
    "before the file": placed(BLOOM_AT, -5),
    "in the pages": placed(BLOOM_AT, 20),
    "of negative length": placed(BLOOM_AT + 1, -1),
    "of no length": placed(BLOOM_AT + 1, 0),
    "longer than the file": placed(BLOOM_AT + 1, 2**31 - 1),
    "33 bytes": sized(33, 33),
    "no bytes": sized(0, 0),
    "less than none": sized(-32, 32),
    "more than the file has": sized(2**31 - 32, 32),
    "more than the metadata say": sized(64, 32),
    "less than the metadata say": sized(32, 64),
    "undecodable": lambda file: file.set_filter(b"\xff" * 60),
    "a number without end": lambda file: file.set_filter(b"\x15" + b"\xff" * 60),
    "structs without end": lambda file: file.set_filter(b"\x1c" * 5_000),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_bloom_filters_lose_no_row(damage: str) -> None:
    data = DAMAGE[damage](Filtered(bloomed(WORDS[:100]))).to_bytes()
    assert found_or_refused(data, x == WORDS[40]) in ([40], "refused")
    assert found_or_refused(data, x.is_in([WORDS[7], WORDS[90], "v"])) in ([7, 90], "refused")
    assert found(data, x >= max(WORDS[:100])) == rows_of(WORDS[:100], max(WORDS[:100]))
