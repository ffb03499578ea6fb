"""Damaged pages give an error or rows, with the kernels as without: no crash, no hang, no flood."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fretsaw.formats.kernels import load_kernels
from tests.support.decoding import parquet
from tests.support.nested_data import nested_array
from tests.support.page_damage import Case, check

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(load_kernels() is None, reason="there are no kernels to be tested"),
]

ROWS = 120
CODECS = ("none", "snappy", "zstd", "none", "gzip", "lz4", "brotli")
DEEP_SHARDS = 10

LISTS = pa.list_(pa.field("element", pa.list_(pa.string())))
ITEMS = pa.list_(pa.struct([("x", pa.int32())]))
# What a column holds, and how it is encoded; "" is a dictionary.
SHAPES: tuple[tuple[pa.DataType, str], ...] = (
    *((pa.bool_(), encoding) for encoding in ("PLAIN", "RLE")),
    *((pa.int8(), encoding) for encoding in ("PLAIN", "", "DELTA_BINARY_PACKED")),
    *((pa.int32(), encoding) for encoding in ("PLAIN", "DELTA_BINARY_PACKED")),
    *((pa.int64(), encoding) for encoding in ("", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")),
    *((pa.float64(), encoding) for encoding in ("PLAIN", "", "BYTE_STREAM_SPLIT")),
    *((pa.string(), encoding) for encoding in ("PLAIN", "")),
    *((pa.string(), encoding) for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")),
    *((pa.large_binary(), encoding) for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY")),
    *((pa.binary(5), encoding) for encoding in ("PLAIN", "", "DELTA_BYTE_ARRAY")),
    *((pa.decimal128(20, 3), encoding) for encoding in ("PLAIN", "", "BYTE_STREAM_SPLIT")),
    *((pa.timestamp("ns"), encoding) for encoding in ("PLAIN", "")),  # as INT96
    *((ITEMS, encoding) for encoding in ("PLAIN", "", "DELTA_BINARY_PACKED")),
    *((LISTS, encoding) for encoding in ("PLAIN", "", "DELTA_LENGTH_BYTE_ARRAY")),
)


def options_of(kind: pa.DataType, encoding: str, number: int) -> dict[str, Any]:
    path = {LISTS: "x.list.element.list.element", ITEMS: "x.list.element.x"}.get(kind, "x")
    return {
        "use_dictionary": not encoding,
        "column_encoding": {path: encoding} if encoding else None,
        "data_page_version": ("1.0", "2.0")[number % 2],
        "write_page_checksum": number % 7 == 0,
        "write_page_index": number % 3 == 0,
        "use_deprecated_int96_timestamps": kind == pa.timestamp("ns"),
        "max_rows_per_page": 40,
        "write_batch_size": 20,
    }


def files(folder: Path) -> Iterator[Path]:
    """Files of one column each, by the names of their codecs."""
    rng = np.random.default_rng(11)
    both = itertools.product((0, 1), enumerate(SHAPES))
    for number, (turn, (place, (kind, encoding))) in enumerate(both):
        nullable = (place + turn) % 4 != 0
        array = nested_array(kind, ROWS, rng, nullable=nullable, shares=(0.2,))
        table = pa.table([array], schema=pa.schema([pa.field("x", kind, nullable)]))
        codec = CODECS[number % len(CODECS)]
        path = folder / f"{codec} {number} {encoding or 'dictionary'}.parquet"
        options = options_of(kind, encoding, place + turn)
        path.write_bytes(parquet(table, compression=codec, **options))
        yield path


def cases(folder: Path, seeds: range) -> list[Case]:
    return [(str(path), seed) for path in files(folder) for seed in seeds]


@pytest.mark.parametrize("shard", range(2))
def test_some_damage_of_pages_of_every_kind(tmp_path: Path, shard: int) -> None:
    seeds = range(5 * shard, 5 * shard + 5)
    ended = check(cases(tmp_path, seeds))
    assert ended["same"] > 100
    assert ended["both fail"] > 100


@pytest.mark.deep
@pytest.mark.parametrize("shard", range(DEEP_SHARDS))
def test_much_damage_of_pages_of_every_kind(tmp_path: Path, shard: int) -> None:
    many = cases(tmp_path, range(1_000 + 32 * shard, 1_000 + 32 * shard + 32))
    assert len(many) * DEEP_SHARDS > 20_000
    check(many)
