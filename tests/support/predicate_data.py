"""Seeded random tables, files of them by several writers, and random predicates on them.

`make_file` gives the bytes of a file: any number makes another one, always the same. Columns are
sorted, clustered, constant or random, so that the bounds of pages differ, with nulls here and
there or for whole pages. `Predicates` makes trees whose literals come from the data or lie beside.
"""

import datetime as dt
import io
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import oracle
from tests.support.nested_data import Kinds, is_fixed, map_keys, paths, random_field
from tests.support.oracle import NAN, NANOSECONDS, And, Not, Or, Source, Test, Tree
from tests.support.writers import by_fastparquet, need

UUID = pa.uuid()
NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(7, 2), pa.decimal128(17, 4), pa.decimal128(30, 5), pa.decimal128(38, 0)),
)
UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
COMMON = (
    *(*NUMBERS, pa.bool_(), pa.date32(), pa.string(), pa.binary()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
)
STAMPS = tuple(pa.timestamp(unit, zone) for unit in NANOSECONDS for zone in (None, "Asia/Tokyo"))
EVERYTHING = (
    *(*COMMON, *UNSIGNED, *STAMPS, UUID, pa.float16(), pa.decimal256(50, 9), pa.date64()),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.large_string()),
    *(pa.large_binary(), pa.binary(5), pa.binary(1)),
)
FLAT_ONLY = (pa.dictionary(pa.int32(), pa.string()),)
PANDAS = (
    *(pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64(), pa.timestamp("ns")),
    *(pa.bool_(), pa.string()),
)
SHAPES = ("random", "sorted", "clustered", "constant")
GAPS = ("none", "few", "runs", "many", "all")
LONG = "prefix " * 12


# Values


def bounded(numbers: Sequence[int], low: int, high: int) -> list[int]:
    return sorted({min(max(number, low), high) for number in numbers})


def integers(low: int, high: int, rng: np.random.Generator) -> list[int]:
    """The ends, what lies around zero, and both dense and scattered numbers."""
    base = int(rng.integers(-(10**6), 10**6))
    dense = [base + int(step) for step in rng.integers(0, 60, 30)]
    wide = [low + int(part * (high - low)) for part in rng.random(10)]
    return bounded([low, low + 1, -2, -1, 0, 1, 2, *dense, *wide, high - 1, high], low, high)


def floats(kind: pa.DataType, rng: np.random.Generator) -> Any:
    """Zeros, infinities, subnormals, numbers, and NaNs with many bit patterns."""
    width = kind.bit_width
    dtype = oracle.float_dtype(kind)
    fraction = {16: 10, 32: 23, 64: 52}[width]
    infinity = ((1 << (width - 1 - fraction)) - 1) << fraction
    odd = [0, 1, 2, (1 << fraction) - 1, 1 << fraction, infinity - 1, infinity, infinity + 1]
    odd += [infinity + (1 << (fraction - 1)), infinity + (1 << (fraction - 1)) + 5]
    bits = [bit | sign for bit in odd for sign in (0, 1 << (width - 1))]
    plain = [0.1, -0.1, 1.0, -1.0, 1.5, 100.0, *rng.normal(size=30), *rng.normal(50, 3, size=20)]
    values = np.concatenate([np.array(bits, f"u{width // 8}").view(dtype), np.array(plain, dtype)])
    return sorted(values, key=oracle.float_rank)


def texts(rng: np.random.Generator) -> list[str]:
    """The empty one, high code points, zeros, and long common prefixes."""
    odd = ["", "\x00", "a", "a\x00", "aa", "\x7f", "é", "ÿ", "\ud7ff", "\uffff", "\U0010ffff"]
    odd += [LONG, *(LONG + tail for tail in ("", "a", "b", "ÿ", "\U0010ffff", "\uffff" * 9))]
    odd += ["\U0010ffff" * 20, "\U0010ffff" * 20 + "a"]
    words = ["".join(rng.choice(list("abcxyz"), size=rng.integers(1, 9))) for _ in range(40)]
    return sorted({*odd, *words}, key=str.encode)


def blobs(rng: np.random.Generator, width: int | None) -> list[bytes]:
    odd = [b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff" * 70, b"\xfe\xff"]
    odd += [b"", b"x" * 70, b"x" * 70 + b"\xff", b"x" * 70 + b"y", b"\xc3\xa9", b"text"]
    found = {*odd, *(rng.bytes(int(rng.integers(1, 6))) for _ in range(30))}
    if width is not None:
        found = {(blob * width + bytes(width))[:width] for blob in found}
    return sorted(found)


def pool(kind: pa.DataType, rng: np.random.Generator, *, extreme: bool) -> pa.Array:
    """Different values of a type in the order that predicates know."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pool(kind.storage_type, rng, extreme=extreme))
    if pa.types.is_boolean(kind):
        return pa.array([False, True])
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return pa.array(integers(int(limits.min), int(limits.max), rng), kind)
    if pa.types.is_floating(kind):
        return pa.array(floats(kind, rng), kind)
    if pa.types.is_decimal(kind):
        end = 10**kind.precision - 1
        return pa.array([decimal(n, kind.scale) for n in integers(-end, end, rng)], kind)
    if pa.types.is_timestamp(kind):
        # Seconds are stored as milliseconds; not every writer knows the last years of int64.
        end = (2**63 - 1) // (1_000 if kind.unit == "s" else 1)
        end = end if extreme else min(end, 9 * 10**18 // NANOSECONDS[kind.unit])
        return pa.array(integers(-end, end, rng), pa.int64()).cast(kind)
    if pa.types.is_date(kind):
        end = 2**31 - 1 if extreme and kind == pa.date32() else 700_000
        days = integers(-end, end, rng)
        return pa.array(days, pa.int32()).cast(pa.date32()).cast(kind)
    if pa.types.is_time(kind):
        end = 86_400 * 10**9 // NANOSECONDS[kind.unit] - 1
        numbers = bounded([*range(20), *integers(0, end, rng)], 0, end)
        return pa.array(numbers, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array(blobs(rng, kind.byte_width), kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array(blobs(rng, None), kind)
    return pa.array(texts(rng), kind)


def decimal(unscaled: int, scale: int) -> Decimal:
    """An exact decimal, whatever the precision of the context."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def picks(count: int, rows: int, shape: str, rng: np.random.Generator) -> Any:
    """Which of `count` ordered values each row has."""
    run = int(rng.integers(10, 60))
    match shape:
        case "sorted":
            found = np.sort(rng.integers(count, size=rows))
            return found if rng.random() < 0.7 else found[::-1]
        case "clustered":
            bases = np.repeat(rng.integers(count, size=rows // run + 1), run)[:rows]
            return np.minimum(bases + rng.integers(0, 4, size=rows), count - 1)
        case "constant":
            return np.repeat(rng.integers(count, size=rows // run + 1), run)[:rows]
        case _:
            return rng.integers(count, size=rows)


def gaps(rows: int, rng: np.random.Generator, *, nullable: bool) -> Any:
    """Which rows are null."""
    shares = {"few": 0.05, "runs": 0.5, "many": 0.7, "all": 1.0}
    chance = shares.get(str(rng.choice(GAPS, p=(0.3, 0.3, 0.25, 0.1, 0.05))), 0.0)
    run = int(rng.integers(10, 60)) if chance == shares["runs"] else 1
    return np.repeat(rng.random(rows // run + 1) < chance, run)[:rows] & nullable


def fill(item: pa.Field, rows: int, rng: np.random.Generator, *, extreme: bool) -> pa.Array:
    """Values for a field of any depth."""
    kind = item.type
    if isinstance(kind, pa.BaseExtensionType):
        storage = fill(item.with_type(kind.storage_type), rows, rng, extreme=extreme)
        return pa.ExtensionArray.from_storage(kind, storage)
    if pa.types.is_dictionary(kind):
        return fill(item.with_type(kind.value_type), rows, rng, extreme=extreme).cast(kind)
    nulls = gaps(rows, rng, nullable=item.nullable)
    if not pa.types.is_nested(kind):
        values = pool(kind, rng, extreme=extreme)
        chosen = picks(len(values), rows, str(rng.choice(SHAPES)), rng)
        return values.take(pa.array(chosen, pa.int64(), mask=nulls))
    # Arrow's constructors want no mask at all where nothing is null.
    mask = pa.array(nulls) if nulls.any() else None
    if pa.types.is_struct(kind):
        children = [fill(child, rows, rng, extreme=extreme) for child in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if is_fixed(kind):
        values = fill(kind.value_field, rows * kind.list_size, rng, extreme=extreme)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)
    lengths = rng.choice([0, 1, 2, 3, 9], size=rows, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    ends = np.concatenate([[0], np.cumsum(np.where(nulls, 0, lengths))])
    if pa.types.is_map(kind):
        names = map_keys(kind.key_type, int(ends[-1]), rng)
        values = fill(kind.item_field, int(ends[-1]), rng, extreme=extreme)
        offsets = pa.array(ends, pa.int32())
        return pa.MapArray.from_arrays(offsets, names, values, type=kind, mask=mask)
    large = pa.types.is_large_list(kind)
    offsets = pa.array(ends, pa.int64() if large else pa.int32())
    values = fill(kind.value_field, int(ends[-1]), rng, extreme=extreme)
    builder = pa.LargeListArray if large else pa.ListArray
    return builder.from_arrays(offsets, values, type=kind, mask=mask)


# Files


@dataclass(frozen=True)
class Writer:
    """A library that writes Parquet: the types it knows and the rows that make it cut pages."""

    write: Callable[[pa.Table, np.random.Generator], bytes]
    kinds: Kinds
    flat: tuple[pa.DataType, ...]
    rows: int = 220
    extreme: bool = False


def by_pyarrow(table: pa.Table, rng: np.random.Generator, **fixed: Any) -> bytes:
    """Pages of a few values, most of the time; any combination of indexes and encodings."""
    options: dict[str, Any] = {
        "row_group_size": int(rng.choice([60, 110, 110, table.num_rows])),
        "data_page_version": str(rng.choice(["1.0", "2.0"])),
        "data_page_size": int(rng.choice([30, 100, 1_000])),
        "write_batch_size": int(rng.choice([1, 8, 20])),
        "max_rows_per_page": int(rng.choice([5, 13, 20_000])),
        "write_page_index": bool(rng.random() < 0.7),
        "write_statistics": bool(rng.random() < 0.8),
        "use_dictionary": bool(rng.random() < 0.5),
        "compression": str(rng.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"])),
        "store_decimal_as_integer": bool(rng.random() < 0.5),
        "write_page_checksum": bool(rng.random() < 0.3),
    }
    if rng.random() < 0.3:
        options["dictionary_pagesize_limit"] = 50
    if rng.random() < 0.3:
        # A claim that nobody checked.
        claims = [pq.SortingColumn(i, descending=bool(i % 2)) for i in range(3)]
        options["sorting_columns"] = claims
    if rng.random() < 0.4:
        names = [leaf.path for leaf in leaves(table) if leaf.physical_type != "BOOLEAN"]
        options["bloom_filter_options"] = {name: {"ndv": 100} for name in names}
    sink = io.BytesIO()
    pq.write_table(table, sink, **options, **fixed)
    return sink.getvalue()


def leaves(table: pa.Table) -> Any:
    """The columns that Parquet makes of a table."""
    sink = io.BytesIO()
    pq.write_table(table[:0], sink)
    return pq.ParquetFile(sink).schema


def by_pyarrow_int96(table: pa.Table, rng: np.random.Generator) -> bytes:
    # Without the schema of Arrow, which says that a wall clock was meant.
    return by_pyarrow(table, rng, use_deprecated_int96_timestamps=True, store_schema=False)


def through_file(write: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        write(path)
        return path.read_bytes()


def by_duckdb(table: pa.Table, rng: np.random.Generator) -> bytes:
    version, codec = rng.choice(["V1", "V2"]), rng.choice(["zstd", "snappy", "uncompressed"])
    options = f"FORMAT parquet, ROW_GROUP_SIZE 2048, PARQUET_VERSION {version}, COMPRESSION {codec}"

    def write(path: Path) -> None:
        with need("duckdb").connect() as connection:
            connection.register("source", table)
            connection.execute(f"COPY (FROM source) TO '{path}' ({options})")

    return through_file(write)


def by_polars(table: pa.Table, rng: np.random.Generator) -> bytes:
    sink = io.BytesIO()
    need("polars").from_arrow(table).write_parquet(
        sink,
        compression=str(rng.choice(["zstd", "snappy", "uncompressed"])),
        statistics=[True, False, "full"][rng.integers(3)],
        row_group_size=int(rng.choice([60, 110, 400])),
        data_page_size=int(rng.choice([100, 500])),
    )
    return sink.getvalue()


def by_fast(table: pa.Table, rng: np.random.Generator) -> bytes:
    version = int(rng.integers(1, 3))
    return through_file(lambda path: by_fastparquet(table, path, version))


NESTED = ("struct", "list", "large_list", "list", "struct")
MORE = (*COMMON, *UNSIGNED, pa.timestamp("ns"), pa.large_string(), pa.time64("us"))
WRITERS: dict[str, Writer] = {
    "pyarrow": Writer(
        by_pyarrow,
        Kinds(EVERYTHING, (*NESTED, "fixed_size_list", "map")),
        (*EVERYTHING, *FLAT_ONLY),
        extreme=True,
    ),
    "int96": Writer(
        by_pyarrow_int96,
        Kinds((pa.timestamp("ns"), pa.timestamp("us"), pa.int64()), NESTED),
        (*STAMPS, pa.int32()),
    ),
    "polars": Writer(
        by_polars,
        Kinds((*MORE, pa.timestamp("ms"), pa.time64("ns")), (*NESTED, "fixed_size_list")),
        (*MORE, pa.timestamp("ms"), pa.time64("ns"), *FLAT_ONLY),
    ),
    "duckdb": Writer(by_duckdb, Kinds((*MORE, UUID), (*NESTED, "map")), (*MORE, UUID), 2_500),
    "fastparquet": Writer(by_fast, Kinds(PANDAS, ()), PANDAS),
}
# Of twelve files, so many by each writer: DuckDB's are large, and take long to check.
SCHEDULE = (
    *(*["pyarrow"] * 3, "polars", *["pyarrow"] * 2, "int96"),
    *("fastparquet", *["pyarrow"] * 2, "polars", "duckdb"),
)


def make_table(writer: Writer, rng: np.random.Generator) -> pa.Table:
    """A required row number, columns of flat types, then nested ones if the writer knows any."""
    kinds = enumerate(writer.flat[i] for i in rng.permutation(len(writer.flat))[:9])
    fields = [pa.field(f"c{i}", kind, bool(rng.random() < 0.8)) for i, kind in kinds]
    if writer.kinds.branches:
        fields += [nested_field(f"n{i}", writer.kinds, rng) for i in range(4)]
    rows = writer.rows + int(rng.integers(50))
    arrays = [fill(item, rows, rng, extreme=writer.extreme) for item in fields]
    number = pa.field("row", pa.int64(), nullable=False)
    return pa.table([pa.array(range(rows)), *arrays], schema=pa.schema([number, *fields]))


def nested_field(name: str, kinds: Kinds, rng: np.random.Generator) -> pa.Field:
    while True:
        item = random_field(name, int(rng.integers(1, 4)), kinds, rng)
        if pa.types.is_nested(item.type):
            return item


def make_file(number: int) -> tuple[str, bytes]:
    """The writer and the bytes of a file."""
    rng = np.random.default_rng([7, number])
    name = SCHEDULE[number % len(SCHEDULE)]
    return name, WRITERS[name].write(make_table(WRITERS[name], rng), rng)


def leaf_paths(schema: pa.Schema) -> list[oracle.Path]:
    """The leaves in the order of Parquet's columns."""
    return [path for path in all_paths(schema) if not pa.types.is_nested(type_at(schema, path))]


def all_paths(schema: pa.Schema) -> list[oracle.Path]:
    return [path for item in schema for path in paths(item)]


def type_at(schema: pa.Schema, path: oracle.Path) -> pa.DataType:
    kind = schema.field(path[0]).type
    for step in path[1:]:
        kind, _ = oracle.below(kind, step)
    return kind


def open_source(data: bytes) -> Source:
    """The table as pyarrow reads it; INT96 columns are instants."""
    file = pq.ParquetFile(io.BytesIO(data))
    table = file.read()
    columns = zip(leaf_paths(table.schema), file.schema, strict=True)
    return Source(table, [path for path, leaf in columns if leaf.physical_type == "INT96"])


# Predicates


class Predicates:
    """Random predicates on a table."""

    def __init__(self, source: Source, seed: int) -> None:
        self._source = source
        self._rng = np.random.default_rng([8, seed])
        self._paths = [p for p in all_paths(source.table.schema) if known(source.kind(p))]

    def tree(self, depth: int = 3) -> Tree:
        """A predicate at most so deep, often less."""
        chance = self._rng.random()
        if depth == 0 or chance < 0.45:
            return self.test(self._pick(self._paths))
        if chance < 0.65:
            return Not(self.tree(depth - 1))
        left, right = self.tree(depth - 1), self.tree(depth - 1)
        return And(left, right) if chance < 0.8 else Or(left, right)

    def test(self, path: oracle.Path) -> Test:
        """A test of what is at the end of a path."""
        kind = self._source.kind(path)
        fold = self._pick(("any", "all")) if self._source.repeats(path) else None
        operators = ["is_null", "is_not_null"]
        if not pa.types.is_nested(kind):
            operators += [*oracle.COMPARISONS, *oracle.COMPARISONS, *["is_in", "is_between"] * 3]
        if pa.types.is_floating(kind):
            operators += ["is_nan"] * 2
        if is_text(kind):
            operators += ["starts_with"] * 4
        operator = str(self._pick(operators))
        keys = self._source.values(path)
        arguments = [self._literal(kind, keys) for _ in range(self._count(operator))]
        if operator == "starts_with":
            arguments = [argument[: self._pick((0, 1, 2, 66, 999))] for argument in arguments]
        elif operator == "is_between" and self._rng.random() < 0.8:
            arguments.sort(key=lambda literal: oracle.literal_key(literal, kind))
        elif operator == "is_in" and self._rng.random() < 0.2:
            arguments.append(None)
        return Test(path, operator, tuple(arguments), fold)

    def _count(self, operator: str) -> int:
        if operator == "is_in":
            return int(self._rng.integers(1, 6))
        return {"is_null": 0, "is_not_null": 0, "is_nan": 0, "is_between": 2}.get(operator, 1)

    def _pick(self, things: Sequence[Any]) -> Any:
        return things[int(self._rng.integers(len(things)))]

    def _literal(self, kind: pa.DataType, keys: Sequence[Any]) -> Any:
        """A value of the data, a neighbour of one, or one beyond all of them."""
        key = self._pick(keys) if keys else None
        return self._pick(list(literals(kind, key)))


def known(kind: pa.DataType) -> bool:
    """Whether the oracle knows what comparing the type means."""
    unknown = (pa.types.is_null, pa.types.is_duration, pa.types.is_interval)
    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind == UUID)
    return not any(test(kind) for test in unknown)


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    return bool(large or pa.types.is_string(kind) or pa.types.is_binary(kind))


def literals(kind: pa.DataType, key: Any) -> Iterator[Any]:
    """Literals for a type, around the value with this key; without one, around some value."""
    if isinstance(kind, pa.BaseExtensionType):
        number = int.from_bytes(key or b"")
        near = bounded([number - 1, number, number + 1], 0, 2**128 - 1)
        yield from (uuid.UUID(int=n) for n in near)
    elif pa.types.is_dictionary(kind):
        yield from literals(kind.value_type, key)
    elif pa.types.is_boolean(kind):
        yield from (False, True, np.bool_(True))
    elif pa.types.is_integer(kind):
        yield from integer_literals(key or 0)
    elif pa.types.is_decimal(kind):
        yield from decimal_literals(kind.scale, int((key or 0) * 10**kind.scale))
    elif pa.types.is_floating(kind):
        yield from float_literals(kind, key or 0)
    elif pa.types.is_timestamp(kind):
        yield from timestamp_literals(kind, key or 0)
    elif pa.types.is_date(kind):
        low, high = (day.toordinal() - oracle.EPOCH for day in (dt.date.min, dt.date.max))
        days = bounded([(key or 0) + step for step in (-1, 0, 0, 1)], low, high)
        yield from (dt.date.fromordinal(day + oracle.EPOCH) for day in days)
    elif pa.types.is_time(kind):
        steps = (0, 0, 0, NANOSECONDS[kind.unit], -NANOSECONDS[kind.unit], 1_000, -1_000)
        last = 86_400 * 10**6 - 1
        for moment in bounded([((key or 0) + step) // 1_000 for step in steps], 0, last):
            yield (dt.datetime.min + dt.timedelta(microseconds=moment)).time()
    elif pa.types.is_fixed_size_binary(kind):
        yield from byte_literals(key or b"")
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield from text_literals((key or b"").decode())
    else:
        yield from byte_literals(key or b"")
        yield from ("é", "text", "")


def integer_literals(key: int) -> Iterator[Any]:
    yield from (key, key, key, key - 1, key + 1, Decimal(key), 2**40, -(2**40), 2**63, 2**64 + 1)
    yield from (-(2**63) - 1, 10**30, Decimal("0.5"), -0.5, 1e300, float("-inf"), float("inf"))
    if int(float(key)) == key:
        yield from (float(key), np.float64(key))
    if abs(key) < 2**50:
        yield from (key + 0.5, key - 0.5, np.int64(key), Decimal(key) + Decimal("0.1"))


def decimal_literals(scale: int, unscaled: int) -> Iterator[Any]:
    yield from (decimal(unscaled + step, scale) for step in (0, 0, 0, -1, 1))
    yield from (decimal(unscaled * 10 + step, scale + 1) for step in (0, 5, -5, 1))
    yield from (0, -1, 10**40, -(10**60), 0.5, 1e40, Decimal("1E+50"), Decimal("-0.0"))
    whole = unscaled // 10**scale
    yield from (whole, whole + 1)
    if abs(whole) < 2**40:
        yield from (float(whole), whole + 0.25, np.int64(whole))


def float_literals(kind: pa.DataType, key: int) -> Iterator[Any]:
    yield from (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 0, 1, 0.1, 1e300, 1e-300)
    last = oracle.float_rank(oracle.float_dtype(kind).type(np.inf))
    ranks = bounded([key - 1, key, key + 1] if key != NAN else [last], -last - 1, last)
    for value in [oracle.float_at(rank, kind) for rank in ranks] * 3:
        yield float(value)
        yield value
        # What it was rounded from, or would be, for all columns but those of doubles.
        yield float(value) * (1 + 1e-12)
        if value == np.floor(value) and abs(value) < 2**11:
            yield from (int(value), Decimal(int(value)), np.int16(value))


def timestamp_literals(kind: pa.DataType, key: int) -> Iterator[Any]:
    """Naive for a wall clock, else aware, at some offset; beyond the years of Python: its ends."""
    unit = NANOSECONDS[kind.unit]
    low = oracle.instant(dt.datetime.min) + 10**14
    high = oracle.instant(dt.datetime.max) - 10**14
    zones = [dt.UTC, dt.timezone(dt.timedelta(hours=-7)), dt.timezone(dt.timedelta(minutes=345))]
    steps = (0, 0, 0, unit, -unit, 1, -1, 1_000, -1_000, unit // 2)
    for number, step in enumerate(steps):
        moment = min(max(key + step, low), high)
        naive = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=moment // 1_000)
        zone = zones[number % 3] if kind.tz else None
        yield naive.replace(tzinfo=dt.UTC).astimezone(zone) if zone else naive
        if -(2**63) < moment < 2**63:
            yield pd.Timestamp(moment, unit="ns", tz="UTC" if zone else None)
            if not zone:
                yield np.datetime64(moment, "ns")
                yield np.datetime64(moment // 10**9, "s")


def text_literals(value: str) -> Iterator[Any]:
    yield from (value, value, value, value + "\x00", value[:-1], value[:66])
    yield from ("", "a", LONG, "\U0010ffff", "\ue000", LONG + "\U0010ffff")
    if value and value[-1] < "\ud000":
        # NumPy's own text loses zeros at its end.
        yield np.str_(value[:-1] + chr(ord(value[-1]) + 1))


def byte_literals(value: bytes) -> Iterator[bytes]:
    yield from (value, value, value, value + b"\x00", value[:-1], b"", b"\xff", b"\xff" * 80)
    if value and value[-1] < 255:
        yield value[:-1] + bytes([value[-1] + 1])
