"""Stripes that are read in several pieces: what the pieces have in common is read once."""

import sys
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.kernels import each_decoder
from tests.support.orc_craft import read
from tests.support.orc_files import codec_of_pyorc, pyorc_table, with_positions

pytestmark = each_decoder("slow")

ROWS, STRIDE, WORDS = 30_000, 500, 15_000
PIECE, BLOCK = 192 << 10, 2 << 10


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["fretsaw.scan"], "STREAM_PIECE", PIECE)


@cache
def made(codec: str) -> bytes:
    """One stripe of two columns with large dictionaries."""
    rng = np.random.default_rng(5)
    words = np.array([rng.bytes(20).hex() for _ in range(WORDS)])
    names, others = (words[rng.integers(0, WORDS, ROWS)] for _ in range(2))
    return pyorc_table(
        pa.table({"id": range(ROWS), "name": names, "other": others}),
        compression=codec_of_pyorc(codec),
        compression_block_size=BLOCK,
        memory_block_size=BLOCK,
        row_index_stride=STRIDE,
        dict_key_size_threshold=1.0,
    )


def streamed(scan: fs.Scan) -> tuple[pa.Table, int, fs.Trace]:
    """The rows in the pieces of a stream, how many there were, and what was read."""
    with fs.trace() as trace:
        batches = list(scan.batches())
    return pa.Table.from_batches(batches), len(batches), trace


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "zstd"])
@pytest.mark.parametrize(
    "condition", [None, col("id") >= 0, col("name") != "none"], ids=["all", "id", "name"]
)
def test_dictionaries_are_read_once_for_all_pieces(codec: str, condition: Any) -> None:
    data = made(codec)
    scan = fs.scan(data) if condition is None else fs.scan(data).filter(condition)
    rows, pieces, trace = streamed(scan)
    assert rows.equals(read(data))
    assert pieces > 4
    assert trace.bytes_read <= 1.1 * len(data)


def test_dictionaries_are_read_once_from_the_end_on() -> None:
    data = made("zstd")
    rows, _, trace = streamed(fs.scan(data).filter(col("name") != "none").tail(20_000))
    assert rows.equals(read(data).slice(10_000))
    assert trace.bytes_read <= 1.1 * len(data)


def test_streams_without_usable_positions_are_read_once_for_all_pieces() -> None:
    """Each piece tries its strides first, and then takes the streams whole, which one reads."""
    intact = made("uncompressed")
    data = intact
    for stride in range(1, ROWS // STRIDE):
        data = with_positions(data, 2, stride, lambda found: [0] * len(found))
    rows, pieces, trace = streamed(fs.scan(data))
    assert rows.equals(read(intact))
    assert pieces > 4
    assert len([one for one in trace.fallbacks if one.column == "name"]) == pieces
    assert trace.bytes_read <= 1.3 * len(data)


def test_strides_here_and_there_are_read_once_for_all_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So many strides that each of two pieces takes the stripe whole."""
    monkeypatch.setattr(sys.modules["fretsaw.scan"], "STREAM_PIECE", 420_000)
    data = made("uncompressed")
    chosen = np.arange(ROWS)[np.arange(ROWS) // STRIDE % 5 < 4]
    rows, pieces, trace = streamed(fs.scan(data).select("name", "other").select_rows(chosen))
    assert rows.equals(read(data).select(["name", "other"]).take(chosen))
    assert pieces > 1
    reasons = [one.reason for one in trace.fallbacks if "here and there" in one.reason]
    assert len(reasons) == 2 * pieces
    assert trace.bytes_read <= 1.1 * len(data)


def test_a_window_reads_its_dictionary_along_with_its_strides() -> None:
    """Where there is one piece only, nothing is read apart from the rest."""
    data = made("zstd")
    with fs.trace() as trace:
        rows = fs.scan(data).select("name").skip(20_500).head(10).to_arrow()
    assert rows.equals(read(data).select(["name"]).slice(20_500, 10))
    assert len([one for one in trace.log if one.why == "data"]) <= 2
