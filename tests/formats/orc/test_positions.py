"""Positions of strides that are wrong or missing: the rows are right, and the trace says why."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.depth import tiers
from tests.support.kernels import each_decoder
from tests.support.orc_craft import (
    ROW_INDEX,
    Crafted,
    read,
    written_at_once,
)

pytestmark = each_decoder("slow")

# Positions


STRIDE, STRIDES = 100, 20
ROWS = STRIDE * STRIDES


def positions_table() -> pa.Table:
    return pa.table(
        {
            "row": range(ROWS),
            "jump": [i * i * 7_919 % 10_007 for i in range(ROWS)],
            "flag": [i * i % 7 < 3 for i in range(ROWS)],
            "real": [math.sin(i) for i in range(ROWS)],
            "text": [f"word {i * 31 % 977}" for i in range(ROWS)],
            "gap": [None if i % 5 < 2 else i for i in range(ROWS)],
            "list": [list(range(i % 4)) for i in range(ROWS)],
            "tiny": pa.array([i * i % 101 for i in range(ROWS)], pa.int8()),
            "at": pa.array([i * 86_399_999_999 for i in range(ROWS)], pa.timestamp("ns")),
            "price": pa.array([Decimal(i * i) / 4 for i in range(ROWS)], pa.decimal128(20, 2)),
        }
    )


NUMBERS = {"row": 1, "jump": 2, "flag": 3, "real": 4, "text": 5, "gap": 6, "list": 7}
NUMBERS |= {"list.element": 8, "tiny": 9, "at": 10, "price": 11}
Move = Callable[[list[list[int]], int], list[int]]


def one_more(place: int, by: int = 1) -> Move:
    """Another number at a place, counted from the end."""

    def move(positions: list[list[int]], number: int) -> list[int]:
        changed = list(positions[number])
        changed[place] += by
        return changed

    return move


MOVES: Mapping[str, Move] = {
    "of the stride before": lambda positions, number: positions[number - 1],
    "of the stride behind": lambda positions, number: positions[number + 1],
    "of the beginning": lambda positions, number: positions[0],
    "one more at the end": one_more(-1),
    "one less at the end": one_more(-1, -1),
    "three more at the end": one_more(-1, 3),
    "one more in front": one_more(0),
    "beyond the stream": lambda positions, number: [p + 10**6 for p in positions[number]],
    "far beyond": lambda positions, number: [2**63 - 1 for _ in positions[number]],
    "too few": lambda positions, number: positions[number][:-1],
    "none": lambda positions, number: [],
    "too many": lambda positions, number: [*positions[number], 0, 0],
}


def misplaced(column: int, move: Move, strides: Sequence[int], codec: str) -> bytes:
    """A file in which some strides of a column begin elsewhere, says its row index."""
    file = Crafted(written_at_once(positions_table(), row_index_stride=STRIDE, compression=codec))
    (entries,) = file.strides(column)
    before = [entry["positions"] for entry in entries]
    changes: list[dict[str, Any]] = [{} for _ in before]
    for number in strides:
        wrong = [max(0, position) for position in move(before, number)]
        changes[number] = {"positions": wrong}
    data = file.set_strides(column, [changes]).to_bytes()
    assert read(data).equals(positions_table())
    return data


def window_checks(data: bytes, name: str, stride: int) -> list[Any]:
    """Windows and filters around a stride: what they give must be so; gives the fallbacks."""
    table = positions_table()
    fallbacks = []
    for first in (stride - 1, stride):
        scan = fs.scan(data).skip(first * STRIDE + 3).head(STRIDE - 7)
        with fs.trace() as trace:
            found = scan.to_arrow()
        assert found.equals(table.slice(first * STRIDE + 3, STRIDE - 7))
        fallbacks += trace.fallbacks
        rows = range(first * STRIDE + 50, first * STRIDE + 90)
        within = col("row").is_between(rows[0], rows[-1])
        with fs.trace() as trace:
            found = fs.scan(data).filter(within).select(name).to_arrow()
        assert found.equals(table.select([name]).slice(rows[0], len(rows)))
        fallbacks += trace.fallbacks
    return fallbacks


@pytest.mark.parametrize("move", MOVES)
@tiers(
    "path",
    ["jump", "real", "text", "gap", "list.element", "flag"],
    ["jump", "list.element"],
)
def test_wrong_positions_of_a_stride_are_no_error(path: str, move: str) -> None:
    data = misplaced(NUMBERS[path], MOVES[move], [9], "uncompressed")
    fallbacks = window_checks(data, path.split(".")[0], 9)
    # What is there beyond need may be left alone.
    assert move == "too many" or path in {each.column for each in fallbacks}
    assert all(each.reason for each in fallbacks)


@tiers("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"], (), ["zlib"])
@tiers("path", NUMBERS, (), ["text", "flag", "price"])
def test_wrong_positions_in_any_column_and_codec_are_no_error(path: str, codec: str) -> None:
    for move in MOVES.values():
        data = misplaced(NUMBERS[path], move, [9], codec)
        window_checks(data, path.split(".")[0], 9)


@pytest.mark.parametrize("path", ["row", "text"])
def test_positions_that_are_all_a_value_late_are_no_error(path: str) -> None:
    """Bounds and the lengths of texts tell that they are wrong."""
    data = misplaced(NUMBERS[path], one_more(-1), range(1, STRIDES), "uncompressed")
    window_checks(data, path, 9)


def test_right_positions_need_no_fallback() -> None:
    data = written_at_once(positions_table(), row_index_stride=STRIDE)
    for name in ("jump", "text", "gap", "list"):
        assert window_checks(data, name, 9) == []


def test_a_wrong_position_is_no_error_for_a_filter_on_its_column() -> None:
    for move in ("of the stride before", "one more at the end", "beyond the stream"):
        data = misplaced(NUMBERS["row"], MOVES[move], [9], "uncompressed")
        scan = fs.scan(data).filter(col("row").is_between(905, 915))
        with fs.trace() as trace:
            assert scan.select("row").to_arrow()["row"].to_pylist() == list(range(905, 916))
        assert [(each.column, each.block) for each in trace.fallbacks] == [("row", 0)]
        assert scan.count() == 11


def test_missing_row_indexes_of_one_column_are_no_error() -> None:
    file = Crafted(written_at_once(positions_table(), row_index_stride=STRIDE))
    data = file.drop_streams(ROW_INDEX, NUMBERS["text"]).to_bytes()
    assert read(data).equals(positions_table())
    window_checks(data, "text", 9)
    scan = fs.scan(data).filter(col("text") == "word 31").select("row")
    expected = [i for i in range(ROWS) if i * 31 % 977 == 31]
    assert scan.to_arrow()["row"].to_pylist() == expected
