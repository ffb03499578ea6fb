"""Ratios, goals, limits and records of the harness."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import limit, race, record, report
from benchmarks.conditions import Where
from benchmarks.limit import Piece, measure_limit
from benchmarks.record import Record
from benchmarks.result import FAILED, OTHER_ROWS, Reads, Result

RESULT = Result(
    "range",
    "a range",
    0.4,
    {"fretsaw": 0.003, "by arrow": 0.001, "polars": 0.006, "duckdb": 0.012},
    ["fretsaw", "by arrow", "pyarrow", "polars", "duckdb"],
    {"pyarrow": "has no filter"},
    Reads(3, 110, 100),
    0.002,
)


def test_the_ratio_is_of_the_kernels_to_the_best_peer() -> None:
    assert RESULT.ratio == pytest.approx(0.5)
    assert RESULT.met is False
    assert replace(RESULT, goal=0.5).met is True


def test_a_goal_of_seconds_is_held_against_the_time() -> None:
    assert replace(RESULT, goal=0.01, goal_in_seconds=True).met is True
    assert replace(RESULT, goal=0.001, goal_in_seconds=True).met is False


def test_without_a_peer_there_is_no_ratio() -> None:
    alone = replace(RESULT, seconds={"fretsaw": 1.0, "by arrow": 2.0})
    assert alone.ratio is None
    assert alone.met is None


def test_the_limit_is_what_the_time_is_a_multiple_of() -> None:
    assert RESULT.to_limit == pytest.approx(1.5)
    assert replace(RESULT, limit=None).to_limit is None


def test_who_fails_or_returns_other_rows_is_wrong() -> None:
    assert not RESULT.wrong
    assert replace(RESULT, left_out={"polars": OTHER_ROWS}).wrong
    assert replace(RESULT, left_out={"polars": f"{FAILED} ValueError: no"}).wrong


@pytest.mark.parametrize(
    ("tests", "bounds", "is_open"),
    [
        ([("==", 5)], (1, 9), True),
        ([("==", 5)], (6, 9), False),
        ([("==", 5)], (5, 5), False),
        ([("<", 5)], (1, 4), False),
        ([("<", 5)], (1, 5), True),
        ([(">=", 5), ("<", 9)], (5, 8), False),
        ([(">=", 5), ("<", 9)], (5, 9), True),
        ([(">=", 5), ("<", 9)], (9, 12), False),
    ],
)
def test_bounds_leave_open_what_they_do_not_decide(
    tests: list[tuple[str, int]], bounds: tuple[int, int], is_open: bool
) -> None:
    where = Where("x", tuple(tests))
    assert where.leaves_open(*bounds, False, int) is is_open


def test_nulls_leave_open_what_all_values_match() -> None:
    assert Where("x", (("<", 5),)).leaves_open(1, 4, True, int)
    assert not Where("x", (("<", 5),)).leaves_open(6, 9, True, int)


def test_who_is_far_behind_has_few_rounds() -> None:
    rounds = {"fast": 0, "slow": 0}

    def timer(name: str, seconds: float) -> race.Timer:
        def timed() -> float:
            rounds[name] += 1
            return seconds

        return timed

    timers = {"fast": timer("fast", 0.01), "slow": timer("slow", 1.0)}
    assert race.race(timers, 0.2, hopeless=5.0) == {"fast": 0.01, "slow": 1.0}
    assert rounds["slow"] == race.TRIES
    assert rounds["fast"] == 20


@pytest.mark.parametrize("codec", list(limit.LIBRARIES))
def test_every_library_decompresses_all_pieces(codec: str) -> None:
    values = bytes(range(256)) * 40
    packed = pa.Codec("gzip" if codec == "deflate" else codec).compress(values, asbytes=True)
    data = packed[10:-8] if codec == "deflate" else packed  # without the header and the check
    pieces = [Piece(memoryview(data), codec, len(values))] * 5
    seconds = measure_limit(pieces, 0.0)
    assert seconds is not None
    assert seconds > 0
    for make in limit.LIBRARIES[codec]:
        made: Any = make(len(values))(memoryview(data), len(values))
        assert (made if isinstance(made, int) else len(made)) == len(values)


def test_pieces_of_no_codec_have_no_limit() -> None:
    assert measure_limit([], 1.0) is None


def test_a_record_is_the_same_after_it_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    kept = Record("2026-01-01", "2 cores").with_run(
        "2026-01-01", [RESULT], {"curve": "| % |"}, ["range", "curve"]
    )
    record.save(kept, path)
    assert record.load("4 cores", path) == kept
    assert record.load("4 cores", tmp_path / "none.json") == Record(machine="4 cores")


def test_a_run_of_one_workload_replaces_its_own_row_and_says_when(tmp_path: Path) -> None:
    order = ["point", "range", "curve"]
    whole = Record("2026-01-01", "2 cores").with_run(
        "2026-01-01", [RESULT, replace(RESULT, name="point")], {"curve": "| % |"}, order
    )
    faster = replace(RESULT, seconds={**RESULT.seconds, "fretsaw": 0.0006})
    now = whole.with_run("2026-02-02", [faster], {}, order)
    assert [result.name for result in now.results] == ["point", "range"]
    path = tmp_path / "RESULTS.md"
    report.write(now, dict.fromkeys(order, ""), path)
    text = path.read_text()
    assert "the whole run on 2026-01-01" in text
    assert "- range: of a run on 2026-02-02" in text
    (row,) = (line for line in text.splitlines() if line.startswith("| range "))
    assert [cell.strip() for cell in row.split("|")[2:11]] == [
        *("0.6", "1", "-", "6", "12"),
        *("0.10", "0.4", "yes", "2"),
    ]
    assert "- pyarrow in point, range: has no filter" in text
    assert "| % |" in text


def test_a_workload_that_is_gone_leaves_the_record() -> None:
    record_of_one = Record().with_run("2026-01-01", [RESULT], {}, ["range"])
    assert record_of_one.with_run("2026-01-02", [], {}, ["point"]) == Record(results=[])
