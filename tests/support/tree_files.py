"""Small files of odd values by several writers, for random expression trees."""

import io
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.formats import by_pyarrow, by_pyorc, orc_blocks, parquet_blocks, pyarrow_read
from tests.support.row_evaluator.kinds import Kind, kind_of, rows_of
from tests.support.writers import by_fastparquet, need

ROWS, BLOCK = 48, 24
NAN, INF = math.nan, math.inf
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, 0.25, 100.0, -7.0, 3.0, NAN, INF, -INF]
DOUBLES = [*FLOATS, 1e300, -1e300, 1.7e308, 5e-324, 2.0**53, 2.0**63, -(2.0**63), 0.1, 1e10]
SMALL = [0, 1, -1, 2, 3, 5, 7, -7, 10, 12, -3, 100, 127, -128]
MIDDLE = [*SMALL, 2**31 - 1, -(2**31), 25, 45, -45, 1000]
LARGE = [*MIDDLE, 2**63 - 1, -(2**63), 2**62, -(2**62), 2**53 + 1, 2**32, 10**18]
UNSIGNED = [0, 1, 2, 3, 7, 10, 100, 255, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
CENTS = [Decimal(n).scaleb(-2) for n in (0, 1, -1, 10, 25, 50, 155, -245, 1000, 9999999, -300)]
LONG = [
    *(Decimal(text) for text in ("0", "1", "-1.5", "0.1", "0.0000000001", "2.5", "3.5", "-0.5")),
    *(Decimal(10) ** 27, -(Decimal(10) ** 27), Decimal("9" * 28 + "." + "9" * 10)),
]
TEXTS = [
    *("", "a", "abc", "ABC", "aBc", "a_c", "a%c", "%", "_", "\\", "abcabc", "b", "zebra\nline"),
    *(" pad ", "\ttab\n", "\u3000wide\u00a0", "5", "-3", "007", "1.5", "2024-02-29", "2023-02-29"),
    *(
        "Äpfel",
        "äpfel",
        "ÄPFEL",
        "Straße",
        "STRASSE",
        "ẞ",
        "\u212aelvin",
        "kelvin",
        "\u017fad",
        "sad",
    ),
    *(
        "İstanbul",
        "\u0131slak",
        "ΣΊΣΥΦΟΣ",
        "σίσυφος",
        "ǆ",
        "ǅ",
        "e\u0301",
        "é",
        "\u0345",
        "ﬃ",
        "漢字",
    ),
    *("🎸", "🎸🎸", "👩‍👩‍👧", "\U0001e922", "\x00", "a\x00b", "\uffff", "zz"),
]
DAYS = [0, 1, -1, 19782, 19781, 19783, 11016, 19722, 2932896, -719162, 18262, 365, -25567, 47482]
SECOND, HOUR = 1_000_000, 3_600_000_000
CLOCKS = [0, 1, 24 * HOUR - 1, 12 * HOUR, HOUR - 1, 3 * HOUR + 30 * 60 * SECOND, 23 * HOUR + 59]
TURNS = [
    *(1710054000, 1710050400, 1730610000, 1730613600, 1730617199),  # New York, 2024
    *(1289097029, 1289097091, 1289098000, 1268541061, 1289188800),  # St. John's, 2010
    *(1712415600, 1712417400, 1712419199, 1728142200, 1728142199, 1728144001),  # Lord Howe, 2024
    *(-2717650800, -5364662400, -2208988800, 4102444800, 2240524800, 951782400, 1709210096),
]
MOMENTS = [0, -1, 1, *(t * SECOND for t in TURNS), *(t * SECOND + 123_456 for t in TURNS)]
FAR = [*MOMENTS, -62_000_000_000 * SECOND, 253_370_764_800 * SECOND - 1, 32_503_680_000 * SECOND]
NANOS = [t * 1000 + n for t in MOMENTS if abs(t) < 2**62 // 1000 for n in (0, 1, 999)]
EDGES = [2**63 - 1, -9223372036 * 10**9]
ITEM = pa.struct([("price", pa.float64()), ("qty", pa.int32()), ("name", pa.string())])


def items(chance: random.Random) -> list[Any]:
    return [
        None
        if chance.random() < 0.15
        else {
            "price": chance.choice([*DOUBLES, None]),
            "qty": chance.choice([*SMALL, None]),
            "name": chance.choice([*TEXTS, None]),
        }
        for _ in range(chance.randrange(4))
    ]


def listed(pool: list[Any]) -> Callable[[random.Random], Any]:
    return lambda chance: [chance.choice([*pool, None]) for _ in range(chance.randrange(4))]


def mapped(chance: random.Random) -> list[Any]:
    keys = chance.sample(["k", "", "a", "é"], chance.randrange(4))
    return [(key, chance.choice([*LARGE, None])) for key in keys]


Pool = list[Any] | Callable[[random.Random], Any]
COLUMNS: dict[str, tuple[pa.DataType, Pool]] = {
    "i8": (pa.int8(), SMALL),
    "i32": (pa.int32(), MIDDLE),
    "i64": (pa.int64(), LARGE),
    "j64": (pa.int64(), LARGE),
    "n64": (pa.int64(), SMALL),
    "u8": (pa.uint8(), [0, 1, 2, 7, 255]),
    "u64": (pa.uint64(), UNSIGNED),
    "f16": (pa.float16(), [np.float16(x) for x in (*FLOATS, 0.1, 65504.0)]),
    "f32": (pa.float32(), [*FLOATS, 0.1, 3e38, 1e-45]),
    "f64": (pa.float64(), DOUBLES),
    "g64": (pa.float64(), DOUBLES),
    "d9": (pa.decimal128(9, 2), CENTS),
    "d38": (pa.decimal128(38, 10), LONG),
    "s": (pa.string(), TEXTS),
    "t": (pa.string(), TEXTS),
    "few": (pa.string(), ["abc", "ABC", "kelvin", "\u212aelvin"]),
    "code": (pa.dictionary(pa.int32(), pa.string()), ["abc", "ABC", "a_c", "b", ""]),
    "large": (pa.large_string(), TEXTS),
    "span": (pa.duration("us"), [0, 1, -1, SECOND, 86_400 * SECOND, -HOUR, 10**15]),
    "raw": (pa.binary(), [b"", b"a", b"ab", b"\x00", b"\xff\xfe", b"abc"]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), DAYS),
    "eve": (pa.date32(), DAYS),
    "clock": (pa.time64("us"), CLOCKS),
    "at": (pa.timestamp("us"), FAR),
    "on": (pa.timestamp("ns"), [*NANOS, *EDGES]),
    "ms": (pa.timestamp("ms"), [t // 1000 for t in FAR]),
    "utc": (pa.timestamp("us", "UTC"), FAR),
    "ny": (pa.timestamp("us", "America/New_York"), MOMENTS),
    "nf": (pa.timestamp("us", "America/St_Johns"), MOMENTS),
    "lh": (pa.timestamp("ns", "Australia/Lord_Howe"), NANOS),
    "xs": (pa.list_(pa.int32()), listed(MIDDLE)),
    "ys": (pa.list_(pa.string()), listed(TEXTS)),
    "items": (pa.list_(ITEM), items),
    "m": (pa.map_(pa.string(), pa.int64()), mapped),
    "st": (ITEM, lambda chance: (items(chance) or [None])[0]),
}


def made_table(seed: int, names: list[str]) -> pa.Table:
    """Columns of chosen values, one in nine of them null; every other one in order."""
    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(names):
        chance = random.Random(f"{seed} {name}")
        kind, pool = COLUMNS[name]
        if callable(pool):
            values = [pool(chance) for _ in range(ROWS)]
        else:
            values = chance.choices(pool, k=ROWS)
            if place % 2:
                values.sort(key=lambda value: (value != value, value))
        values = [None if chance.random() < 1 / 9 else value for value in values]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def by_parquet(table: pa.Table) -> bytes:
    options = {"write_page_index": True, "data_page_size": 64, "write_batch_size": 8}
    return parquet_blocks(table, [BLOCK] * (ROWS // BLOCK), **options)


def by_plain_parquet(table: pa.Table) -> bytes:
    """No dictionaries, one block, pages of the second version."""
    sink = io.BytesIO()
    options = {"use_dictionary": False, "data_page_version": "2.0", "data_page_size": 64}
    pq.write_table(table, sink, write_batch_size=8, write_page_index=True, **options)
    return sink.getvalue()


def by_duckdb(table: pa.Table) -> bytes:
    with TemporaryDirectory() as folder, need("duckdb").connect() as connection:
        path = Path(folder) / "file.parquet"
        connection.register("source", table)
        connection.execute(f"copy (from source) to '{path}' (format parquet)")
        return path.read_bytes()


def by_polars(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(sink, row_group_size=BLOCK)
    return sink.getvalue()


def by_pandas(table: pa.Table) -> bytes:
    """Integers have no nulls, which pandas would make floats of."""
    for place, field in enumerate(table.schema):
        if pa.types.is_integer(field.type):
            table = table.set_column(place, field.name, table[place].fill_null(0))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        by_fastparquet(table, path, 1)
        return path.read_bytes()


def in_orc(write: Callable[..., bytes]) -> Callable[[pa.Table], bytes]:
    return lambda table: orc_blocks(table, [BLOCK] * (ROWS // BLOCK), write, row_index_stride=1000)


# Types that only Arrow's own files tell apart.
ARROW = {"code", "large", "span"}
# ORC has no such types, and pyarrow reads its times in nanoseconds only.
NOT_IN_ORC = ARROW | {"u8", "u64", "f16", "clock", "ms", "at", "utc"}
DECIMALS, DAYS_AND_FAR_TIMES = {"d9", "d38"}, {"day", "eve", "at", "ms"}
WRITERS: dict[str, tuple[Callable[[pa.Table], bytes], set[str]]] = {
    "pyarrow": (by_parquet, set()),
    "plain": (by_plain_parquet, set()),
    "duckdb": (by_duckdb, {"f16", *ARROW}),
    "polars": (by_polars, {"f16", "m", *ARROW}),
    "fastparquet": (
        by_pandas,
        {
            "f16",
            "d9",
            "d38",
            "raw",
            "clock",
            "xs",
            "ys",
            "items",
            "m",
            "st",
            "day",
            "eve",
            "at",
            "ms",
        },
    ),
    "orc": (in_orc(by_pyarrow), NOT_IN_ORC),
    "pyorc": (in_orc(by_pyorc), NOT_IN_ORC),
}


@dataclass(frozen=True)
class TreeFile:
    """A file, what pyarrow reads of it as plain rows, and the kinds of its columns."""

    data: bytes
    rows: list[dict[str, Any]]
    kinds: dict[str, Kind]


@cache
def tree_file(writer: str) -> TreeFile:
    write, without = WRITERS[writer]
    table = made_table(list(WRITERS).index(writer), [n for n in COLUMNS if n not in without])
    data = write(table)
    read = pyarrow_read(data)
    kinds = {field.name: kind_of(field.type) for field in read.schema}
    return TreeFile(data, rows_of(read), kinds)
