"""Ranges that are asked for at a time are read at once, in the same order in every process."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.storage.memory import MemoryFile
from fretsaw.storage.requests import Request, Steps, fetch, run, together

DATA = bytes(np.random.default_rng(3).integers(0, 256, 100_000, np.uint8))


class Counting(MemoryFile):
    """Remembers what it was asked for at a time."""

    def __init__(self, gap: int = 0, data_gap: int = 0) -> None:
        super().__init__(DATA)
        self.gap = gap
        self.data_gap = data_gap
        self.waves: list[list[tuple[int, int]]] = []

    def read_ranges(self, ranges: Sequence[tuple[int, int]], allocate: object) -> list[pa.Buffer]:
        self.waves.append(list(ranges))
        return super().read_ranges(ranges, pa.allocate_buffer)


def ask(*requests: Request) -> Steps[list[bytes]]:
    found = []
    for request in requests:
        buffers = yield request
        assert len(buffers) == len(request.all)
        found += [buffer.to_pybytes() for buffer in buffers]
    return found


def expected(*ranges: tuple[int, int]) -> list[bytes]:
    return [DATA[offset : offset + length] for offset, length in ranges]


def test_what_is_wanted_for_several_reasons_is_read_in_one_wave() -> None:
    source = Counting()
    steps = [
        ask(Request([(5_000, 10), (0, 10)], "data"), Request([(50, 5)], "index")),
        ask(Request([(90_000, 8)], "footer")),
        ask(Request([(10, 20)], "data", common=[(70_000, 4)])),
        ask(Request([], "index"), Request([(60, 3)], "dictionary")),
        ask(),
    ]
    with fs.trace() as t:
        found = run(together(steps), lambda wave: fetch(source, wave))
    assert found == [
        expected((5_000, 10), (0, 10), (50, 5)),
        expected((90_000, 8)),
        expected((10, 20), (70_000, 4)),
        expected((60, 3)),
        [],
    ]
    assert source.waves == [
        [(0, 30), (5_000, 10), (70_000, 4), (90_000, 8)],
        [(50, 5), (60, 3)],
    ]
    assert [(event.offset, event.why) for event in t.log] == [
        (0, "data"),
        (5_000, "data"),
        (70_000, "data"),
        (90_000, "footer"),
        (50, "index"),
        (60, "dictionary"),
    ]


def test_steps_that_run_together_may_be_made_of_such() -> None:
    source = Counting()
    inner = together([ask(Request([(n, 2)], "index"), Request([(n, 3)], "data")) for n in (8, 4)])
    outer = together([inner, together([ask(Request([(900, 1)], "footer"))])])
    found = run(outer, lambda wave: fetch(source, wave))
    assert found == [
        [expected((8, 2), (8, 3)), expected((4, 2), (4, 3))],
        [expected((900, 1))],
    ]
    assert source.waves == [[(4, 2), (8, 2), (900, 1)], [(4, 3), (8, 3)]]


@pytest.mark.parametrize(("gap", "data_gap"), [(0, 0), (100, 0), (0, 100), (100, 100)])
def test_each_source_says_which_gaps_are_read_along(gap: int, data_gap: int) -> None:
    source = Counting(gap, data_gap)
    ranges = [(0, 10), (60, 10), (171, 10)]
    for why, own in (("index", gap), ("data", data_gap)):
        (found,) = run(
            together([ask(Request(ranges, why))]),  # type: ignore[arg-type]
            lambda wave: fetch(source, wave),
        )
        assert found == expected(*ranges)
        assert source.waves.pop() == ([(0, 70), (171, 10)] if own else ranges)


@pytest.mark.parametrize("gap", [0, 100, 1_000, 1 << 20])
def test_a_source_reads_on_where_it_had_rather_not_be_asked_again(gap: int) -> None:
    source = Counting(gap)
    likely = range(1_500, 10_000, 500)
    (buffer,) = fetch(source, [Request([(1_000, 50)], "index", likely=likely)])
    assert buffer.to_pybytes() == DATA[1_000 : 1_000 + buffer.size]
    assert buffer.size == (50 if gap < 450 else 9_500 - 1_000 + 50)


def test_headers_of_small_pages_are_read_as_the_source_likes_it(tmp_path: Path) -> None:
    table = pa.table({"x": np.random.default_rng(1).random(200_000)})
    by_pages = {}
    for kilobytes in (2, 32):
        path = tmp_path / f"{kilobytes}.parquet"
        pq.write_table(
            table,
            path,
            use_dictionary=False,
            compression="none",
            data_page_size=kilobytes << 10,
            write_batch_size=kilobytes << 7,
        )
        with fs.trace() as t:
            found = fs.scan(path).skip(190_000).head(5).to_arrow()
        assert found.equals(table.slice(190_000, 5))
        by_pages[kilobytes] = t
    small, large = by_pages[2], by_pages[32]
    assert small.requests < 60  # some 700 pages lie before the rows
    assert 40 < large.requests < 60  # one for each of the pages
    assert large.index_bytes <= 256 * large.requests


LOG = """
import sys
import fretsaw as fs
from fretsaw.engine import threads

threads.SLOW = 1e9  # a slow moment would move work to the pool
for path in sys.argv[1:]:
    data = open(path, "rb").read()  # of which no footer is kept, however old it is
    with fs.trace() as t:
        fs.scan(data).filter("n > 2100 and t = 'k7' or d = 3.5 or t in ('a', 'zz')").to_arrow()
        fs.scan(data).select("l", "s", "t").take([5, 4_000, 17])
    print([(event.offset, event.length, event.why) for event in t.log])
"""


@pytest.mark.slow
def test_the_order_of_reads_is_the_same_in_every_process(tmp_path: Path) -> None:
    count = 5_000
    table = pa.table(
        {
            "n": range(count),
            "t": [f"k{n % 11}" for n in range(count)],
            "d": [n / 2 for n in range(count)],
            "l": [[n, n + 1] for n in range(count)],
            "s": [{"a": n, "b": {"c": str(n), "d": [n]}} for n in range(count)],
        }
    )
    paths = [str(tmp_path / name) for name in ("a.parquet", "b.parquet", "c.orc")]
    options = {"row_group_size": 1_000, "data_page_size": 1_024, "write_batch_size": 100}
    pq.write_table(table, paths[0], write_page_index=True, **options)
    pq.write_table(table, paths[1], bloom_filter_options={"t": True}, **options)
    orc.write_table(table, paths[2], stripe_size=1 << 14, row_index_stride=1_000)
    logs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", LOG, *paths]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=100
        )
        logs.add(done.stdout)
    assert len(logs) == 1
