"""Metadata say the same whoever parses them, the kernels or thrift, and damaged ones too."""

import io
import os
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.formats.kernels import load_kernels
from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.index import InvalidIndex, column_index, offset_index
from fretsaw.formats.parquet.outline import (
    DecodedOutline,
    ParsedOutline,
    StoredChunk,
    read_outline,
)
from fretsaw.model.blocks import PageIndex
from tests.support.depth import in_depth
from tests.support.kernels import without_kernels

KINDS = (metadata.ColumnChunk, metadata.IndexedChunk, metadata.ProbedChunk)
CORPUS = os.environ.get("FRETSAW_CORPUS")
CHANGES = 1_500
ROWS = 60

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="there are no kernels")


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_index=True, **options)
    return sink.getvalue()


@cache
def sound() -> bytes:
    """Two row groups of several pages: numbers, text, nulls, lists, a map, a struct."""
    row = range(ROWS)
    table = pa.table(
        {
            "id": row,
            "half": [None if n % 7 == 3 else n / 2 for n in row],
            "text": [f"text {n}" for n in row],
            "none": pa.nulls(ROWS, pa.int32()),
            "price": pa.array([Decimal(n) for n in row], pa.decimal128(9, 2)),
            "when": pa.array(row, pa.timestamp("us")),
            "list": [list(range(n % 4)) for n in row],
            "struct": [{"x": n, "y": {"z": str(n)}} for n in row],
            "map": pa.array([[("k", n)] for n in row], pa.map_(pa.string(), pa.int64())),
        },
        metadata={"who": "me"},
    )
    return written(table, row_group_size=ROWS // 2, max_rows_per_page=8, write_batch_size=4)


def footer_of(data: bytes) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    return data[len(data) - 8 - length : -8]


def all_of(footer: bytes) -> Any:
    """Everything that a footer says, or None where it is refused."""
    try:
        outline = read_outline(footer)
        counts = {group.num_columns for group in outline.row_groups}
        places = [
            (group, leaf)
            for group in range(len(outline.row_groups))
            for leaf in range(counts.copy().pop() or 0)
            if len(counts) == 1
        ]
        chunks = [outline.chunk(kind, *place) for kind in KINDS for place in places]
        stored = [outline.stored(*place) for place in places]
        told = [[getattr(each, name) for name in StoredChunk._fields] for each in stored]
        orders = [bool(order) for order in outline.column_orders]
    except metadata.MalformedThrift:
        return None
    if None in outline.names:  # refused by whoever looks at the schema
        return None
    says = (outline.length, outline.num_rows, outline.created_by, list(outline.key_values))
    lists = (list(outline.names), outline.types.tolist(), outline.children.tolist())
    elements = outline.elements(0, len(outline.names))
    return (*says, *lists, list(outline.row_groups), orders, elements, chunks, told)


def changed(data: bytes, seed: int) -> Iterator[bytes]:
    """The bytes with one or a few of them changed, left out or put in; and what is cut off."""
    yield from (data[:end] for end in range(len(data)))
    rng = random.Random(seed)
    for _ in range(CHANGES):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            at = rng.randrange(len(damaged))
            match rng.randrange(4):
                case 0:
                    damaged[at] ^= 1 << rng.randrange(8)
                case 1:
                    damaged[at] = rng.randrange(256)
                case 2:
                    del damaged[at]
                case 3:
                    damaged.insert(at, rng.choice((0, 0x80, 0xFF, rng.randrange(256))))
        yield bytes(damaged)


def same_either_way(tell: Callable[[bytes], Any], versions: Iterator[bytes]) -> int:
    """How many versions are read by both the kernels and thrift; each to the same values."""
    versions_kept = list(versions)
    parsed = [tell(version) for version in versions_kept]
    with without_kernels():
        for version, by_kernels in zip(versions_kept, parsed, strict=True):
            assert tell(version) == by_kernels, version.hex()
    return sum(found is not None for found in parsed)


def test_a_footer_says_the_same_to_kernels_and_thrift() -> None:
    footer = footer_of(sound())
    assert isinstance(read_outline(footer), ParsedOutline)
    assert same_either_way(all_of, iter([footer])) == 1
    with without_kernels():
        assert isinstance(read_outline(footer), DecodedOutline)


@pytest.mark.skipif(CORPUS is None, reason="FRETSAW_CORPUS is not set")
def test_footers_of_other_writers_say_the_same() -> None:
    files = (path.read_bytes() for path in Path(str(CORPUS)).rglob("*.parquet"))
    footers = [footer_of(data) for data in files if data.endswith(b"PAR1")]
    assert same_either_way(all_of, iter(footers)) > len(footers) * 0.9
    parsed = [isinstance(read_outline(f), ParsedOutline) for f in footers if all_of(f)]
    assert all(parsed)


@pytest.mark.parametrize("seed", in_depth(range(40), 1, 4))
def test_a_damaged_footer_says_the_same_or_is_refused_by_both(seed: int) -> None:
    assert same_either_way(all_of, changed(footer_of(sound()), seed)) > 0


def indexes() -> tuple[bytes, bytes, PageIndex]:
    """The offset index and the column index of the column `half`, and its chunk as one page."""
    data = sound()
    chunk = read_outline(footer_of(data)).chunk(metadata.ColumnChunk, 0, 1)
    other = read_outline(footer_of(data)).chunk(metadata.IndexedChunk, 0, 1)
    column = chunk.meta_data
    start = column.dictionary_page_offset or column.data_page_offset
    whole = PageIndex(
        boundaries=np.array([0, ROWS // 2]),
        offsets=np.array([start]),
        sizes=np.array([column.total_compressed_size]),
        width=8.0,
    )
    offsets = data[chunk.offset_index_offset :][: chunk.offset_index_length]
    return offsets, data[other.column_index_offset :][: other.column_index_length], whole


@pytest.mark.parametrize("seed", in_depth(range(40), 1, 4))
def test_a_damaged_offset_index_says_the_same_or_is_refused_by_both(seed: int) -> None:
    stored, _, whole = indexes()

    def pages_of(data: bytes) -> Any:
        try:
            pages = offset_index(data, whole)
        except InvalidIndex as error:
            return None if "not a valid" in str(error) else str(error)
        return pages.boundaries.tolist(), pages.offsets.tolist(), pages.sizes.tolist()

    assert isinstance(pages_of(stored), tuple)
    assert same_either_way(pages_of, changed(stored, seed)) > 0


@pytest.mark.parametrize("seed", in_depth(range(40), 1, 4))
def test_a_damaged_column_index_says_the_same_or_is_refused_by_both(seed: int) -> None:
    offsets, stored, whole = indexes()
    pages = offset_index(offsets, whole)

    def bounds_of(data: bytes) -> Any:
        try:
            index = column_index(data, pages)
        except InvalidIndex as error:
            return None if "not a valid" in str(error) else str(error)
        return [x.tolist() if isinstance(x, np.ndarray) else x for x in index]

    assert isinstance(bounds_of(stored), list)
    assert same_either_way(bounds_of, changed(stored, seed)) > 0


@pytest.mark.parametrize("seed", in_depth(range(20), 1, 2))
def test_files_with_a_damaged_footer_give_the_same_rows_or_errors(seed: int) -> None:
    data = sound()
    body, footer = data[: -8 - len(footer_of(data))], footer_of(data)

    def rows_of(changed: bytes) -> Any:
        file = b"".join((body, changed, len(changed).to_bytes(4, "little"), b"PAR1"))
        try:
            return fs.scan(file).select("id", "text").filter(fs.col("id") > 40).to_arrow()
        except fs.FretsawError as error:
            return type(error), str(error)

    versions = random.Random(seed).sample(list(changed(footer, seed)), 150)
    assert same_either_way(rows_of, iter(versions)) > 0


@pytest.mark.parametrize("groups", [1, 3])
def test_columns_that_nobody_asks_for_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    decoded = 0
    read = metadata.StructReader.read

    def counting(self: metadata.StructReader, *arguments: Any) -> Any:
        nonlocal decoded
        decoded += 1
        return read(self, *arguments)

    def count(columns: int) -> int:
        nonlocal decoded
        table = pa.table({f"c{n}": [n, n + 1, n + 2] for n in range(columns)})
        data = written(table, row_group_size=-(-3 // groups))
        decoded = 0
        asked = ["c1", "c20", f"c{columns - 1}"]
        found = fs.scan(data).select(*asked).filter(fs.col("c20") >= 21).to_arrow()
        assert found.equals(table.select(asked).slice(1))
        return decoded

    monkeypatch.setattr(metadata.StructReader, "read", counting)
    assert count(30) == count(900) < 100
