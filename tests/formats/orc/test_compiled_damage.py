"""Damaged streams give an error or rows, with the kernels as without.

What they take of memory and time, `test_sizes` looks at in processes of their own.
"""

from collections import Counter

import pyarrow as pa
import pytest

import fretsaw as fs
from fretsaw.formats.kernels import load_kernels
from tests.support.depth import in_depth
from tests.support.kernels import without_kernels
from tests.support.orc_damage import COUNT, damaged

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="there are no kernels to be tested")

SHARD = 20


def read(scan: fs.Scan) -> pa.Table | None:
    """The rows, or None for a file that is told to be damaged."""
    try:
        return scan.to_arrow()
    except fs.FileFormatError:
        return None


@pytest.mark.parametrize("shard", in_depth(range(60), fast=1, usual=4))
def test_damaged_streams_are_the_same_for_both_decoders(shard: int) -> None:
    ended: Counter[str] = Counter()
    for seed in range(70_000 + SHARD * shard, 70_000 + SHARD * (shard + 1)):
        what, data, _ = damaged(seed)
        first = seed * 37 % COUNT
        whole = fs.scan(data)
        for name, scan in (("all", whole), ("window", whole.skip(first).head(9))):
            with fs.trace() as seen:
                found = read(scan)
            with without_kernels(), fs.trace() as alone:
                expected = read(scan)
            assert not alone.decoded_by["kernels"]
            # Kernels do not decode rows that nobody wants, and so do not see what is wrong there.
            assert found is not None or expected is None, what
            if name == "all":
                assert (found is None) == (expected is None), what
            if found is not None and expected is not None:
                assert found.equals(expected), what
            ended["failed" if found is None else "read"] += 1
            ended["kernels"] += seen.decoded_by["kernels"]
    assert min(ended["failed"], ended["read"], ended["kernels"]) > 0
