"""Streaming needs as much memory for a large file as for a small one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.depth import in_depth

pytestmark = pytest.mark.slow

PIECE = 100_000
SMALL = 16  # pieces: a small file is larger than what streaming holds at a time
LARGE = (60, 160)
SLACK = 80  # what the allocator keeps back for each thread differs from run to run by some 50 MB
LAYOUTS = ("many blocks", "one block")

# The high-water mark of this process alone: `ru_maxrss` would count the parent's from before exec.
MEASURE = """
import sys
import fretsaw as fs
rows = {how}
status = open("/proc/self/status").read()
print(rows, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""
BATCHES = "sum(batch.num_rows for batch in fs.scan(sys.argv[1]).batches())"
WINDOW = "sum(batch.num_rows for batch in fs.scan(sys.argv[1]).skip(1_000).batches(10_000))"
COLUMNS = "sum(len(batch['id'].values) for batch in fs.scan(sys.argv[1]).columns())"
ROWS = "sum(1 for row in fs.scan(sys.argv[1]).select('city').rows())"
AT_ONCE = "fs.scan(sys.argv[1]).select('id', 'code', 'city').to_arrow().num_rows"


def piece() -> pa.Table:
    seeded = np.random.default_rng(1)
    cities = [f"a city of many letters, number {number}" for number in range(500)]
    return pa.table(
        {
            "id": np.arange(PIECE) // 20,
            "when": pa.array(np.arange(PIECE) // 20 * 1_000, pa.timestamp("us")),
            "amount": seeded.integers(0, 10_000, PIECE) / 100,
            "code": seeded.integers(0, 10_000, PIECE),
            "city": pa.array([cities[number] for number in seeded.integers(0, 500, PIECE)]),
            "flag": seeded.integers(0, 2, PIECE).astype(bool),
        }
    )


def write(path: Path, pieces: int, layout: str) -> Path:
    """Row groups of two pieces each, or a single one with all of them."""
    rows = PIECE * (2 if layout == "many blocks" else pieces)
    table = pa.concat_tables([piece()] * pieces)
    options = {"use_dictionary": False, "compression": "zstd", "write_page_index": True}
    pq.write_table(table, path, row_group_size=rows, **options)
    assert pq.read_metadata(path).num_row_groups == (pieces // 2 if layout == "many blocks" else 1)
    assert path.stat().st_size < 150e6
    return path


def peak(how: str, path: Path, rows: int) -> int:
    """The megabytes that a fresh process needs at most."""
    command = [sys.executable, "-c", MEASURE.format(how=how), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    found, megabytes = map(int, done.stdout.split())
    assert found == rows
    return megabytes


@pytest.mark.parametrize("pieces", in_depth(LARGE, 1, 1))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_streaming_a_large_file_needs_no_more_than_a_small_one(
    tmp_path: Path, layout: str, pieces: int
) -> None:
    small = write(tmp_path / "small.parquet", SMALL, layout)
    large = write(tmp_path / "large.parquet", pieces, layout)
    enough = peak(BATCHES, small, SMALL * PIECE) + SLACK
    total = pieces * PIECE
    for how, rows in ((BATCHES, total), (WINDOW, total - 1_000), (COLUMNS, total), (ROWS, total)):
        once = peak(how, large, rows)
        assert once <= enough or peak(how, large, rows) <= enough, f"{how}: {once} > {enough} MB"
    assert peak(AT_ONCE, large, total) > enough  # or else nothing was measured
