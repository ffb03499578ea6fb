"""Files by many writers, read in whole and by position, against pyarrow."""

import os
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.kernels import each_decoder
from tests.support.pages import RowGroup, assert_same, boundaries, row_groups

pytestmark = each_decoder("slow")

OFFSETS_PER_FILE = 60
MANY_BOUNDARIES = 10_000

# Its strings are more than 2 GB, beyond what the 32-bit offsets of pyarrow's arrays can say.
# Thousands of pages: every boundary of them takes seconds.
MANY_PAGES = ("overflow_i16_page_cnt.parquet", "alltypes_tiny_pages.parquet")
TOO_LARGE = "large_string_map.brotli.parquet"


@dataclass(frozen=True)
class Exceptional:
    """A file that is not read as it is: the error says `message`, the options read it."""

    reason: str
    message: str
    options: dict[str, Any]
    pyarrow_options: dict[str, Any] = field(default_factory=dict)
    columns: list[str] | None = None


EXCEPTIONS = {
    "int96_from_spark.parquet": Exceptional(
        reason="years beyond the nanoseconds of int64, which pyarrow wraps without a word",
        message='int96="us"',
        options={"int96": "us"},
        pyarrow_options={"coerce_int96_timestamp_unit": "us"},
    ),
    "encrypt_columns_plaintext_footer.parquet.encrypted": Exceptional(
        reason="a column of random INT96, most of them beyond the nanoseconds of int64",
        message='int96="us"',
        options={"int96": "us"},
        pyarrow_options={"coerce_int96_timestamp_unit": "us"},
        columns=["int96_field"],
    ),
    "datapage_v1-corrupt-checksum.parquet": Exceptional(
        reason="two pages do not have the checksum in their header",
        message="checksum",
        options={"verify": False},
    ),
    "rle-dict-uncompressed-corrupt-checksum.parquet": Exceptional(
        reason="the dictionary page does not have the checksum in its header",
        message="checksum",
        options={"verify": False},
    ),
}


@cache
def corpus_files() -> tuple[Path, ...]:
    """Every Parquet file of the corpus; none where it is not at hand."""
    root = os.environ.get("FRETSAW_CORPUS")
    if root is None:
        return ()
    found = sorted((Path(root) / "parquet").rglob("*.parquet*"))
    return tuple(path for path in found if path.suffix in (".parquet", ".encrypted"))


@cache
def kind_of(path: Path) -> str:
    """Whether pyarrow reads the file: "whole", "in part" (its footer at least) or "not at all"."""
    if path.name == TOO_LARGE:
        return "too large"
    try:
        file = pyarrow_file(path)
    except (pa.ArrowException, OSError):
        return "not at all"
    try:
        file.read()
    except (pa.ArrowException, OSError):
        return "in part"
    return "whole"


READ_ONLY_HERE = frozenset({"incorrect_map_schema.parquet"})
"""Keys of a map may be null by the schema: refused by pyarrow, read here."""


def parameters(*kinds: str, without: Collection[str] = ()) -> list[Any]:
    """Files of these kinds for `parametrize`; one that is skipped where there is no corpus."""
    left_out = READ_ONLY_HERE.union(without)
    chosen = [p for p in corpus_files() if kind_of(p) in kinds and p.name not in left_out]
    if chosen:
        slow = {name: [pytest.mark.slow] for name in MANY_PAGES}
        return [pytest.param(p, id=p.name, marks=slow.get(p.name, [])) for p in chosen]
    reason = "FRETSAW_CORPUS is not set: no files by other writers to read"
    return [pytest.param(None, id="no-corpus", marks=pytest.mark.skip(reason=reason))]


def pyarrow_file(path: Path) -> pq.ParquetFile:
    options = EXCEPTIONS[path.name].pyarrow_options if path.name in EXCEPTIONS else {}
    return pq.ParquetFile(path, **options)


every_file = pytest.mark.parametrize("path", parameters("whole"))
every_plain_file = pytest.mark.parametrize("path", parameters("whole", without=EXCEPTIONS))


@cache
def oracle(path: Path) -> pa.Table:
    """What pyarrow reads."""
    return pyarrow_file(path).read()


def scan(source: Path | bytes, path: Path) -> fs.Scan:
    """A scan of the file, or of its bytes, with the options that it needs."""
    options = EXCEPTIONS[path.name].options if path.name in EXCEPTIONS else {}
    return fs.scan(source, **options)


@cache
def groups_of(path: Path) -> tuple[RowGroup, ...]:
    return row_groups(path.read_bytes())


def offsets_of(path: Path) -> list[int]:
    """Row numbers on, one before and one after page and row-group boundaries."""
    total = oracle(path).num_rows
    near = {at + step for at in boundaries(groups_of(path)) for step in (-1, 0, 1)}
    offsets = sorted(at for at in near if 0 <= at <= total)
    # Without an index, every window walks over the headers before it.
    limit = OFFSETS_PER_FILE if len(offsets) < MANY_BOUNDARIES else OFFSETS_PER_FILE // 6
    if len(offsets) > limit:
        chosen = random.Random(path.name).sample(offsets, limit - 4)
        offsets = sorted({*chosen, *offsets[:2], *offsets[-2:]})
    return offsets


@every_plain_file
def test_whole_file_is_what_pyarrow_reads(path: Path) -> None:
    expected = oracle(path)
    assert_same(fs.scan(path).to_arrow(), expected)
    assert fs.scan(path).schema.equals(expected.schema, check_metadata=True)
    assert fs.scan(path).count() == expected.num_rows
    with fs.open(path) as file:
        assert (file.format, file.num_rows) == ("parquet", expected.num_rows)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_listed_exceptions_raise_and_read_with_the_option_that_helps(
    name: str, corpus: Path
) -> None:
    path = corpus / "parquet" / "data" / name
    case = EXCEPTIONS[name]
    expected = pyarrow_file(path).read(columns=case.columns)
    columns = expected.column_names
    with pytest.raises(fs.FileFormatError) as caught:
        fs.scan(path).select(*columns).to_arrow()
    assert case.message in str(caught.value)
    assert name in str(caught.value)
    assert_same(fs.scan(path, **case.options).select(*columns).to_arrow(), expected)


@pytest.mark.parametrize("path", parameters("in part", "not at all"))
def test_files_that_pyarrow_cannot_read_raise(path: Path) -> None:
    with pytest.raises(fs.FileFormatError, match=path.name):
        scan(path, path).to_arrow()


@pytest.mark.parametrize("path", parameters("in part"))
def test_good_columns_beside_bad_ones_are_what_pyarrow_reads(path: Path) -> None:
    file = pyarrow_file(path)
    rows = sum(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))
    good: list[str] = []
    for name in file.schema_arrow.names:
        try:
            expected = file.read(columns=[name])
        except (pa.ArrowException, OSError):
            expected = None
        if expected is None or expected.num_rows != rows:
            with pytest.raises(fs.FileFormatError, match=f"{name}|the footer"):
                scan(path, path).select(name).to_arrow()
        else:
            good.append(name)
            assert_same(scan(path, path).select(name).to_arrow(), expected)
    if good:
        together = file.read(columns=good).select(good)
        assert_same(scan(path, path).select(*good).skip(1).to_arrow(), together.slice(1))


def test_a_file_of_more_than_2_gb_has_its_schema_and_its_count(corpus: Path) -> None:
    path = corpus / "parquet" / "data" / TOO_LARGE
    file = pq.ParquetFile(path)
    assert fs.scan(path).schema.equals(file.schema_arrow)
    assert fs.scan(path).count() == file.metadata.num_rows


@every_file
def test_windows_around_every_boundary(path: Path) -> None:
    expected = oracle(path)
    rng = random.Random(path.name)
    for offset in offsets_of(path):
        length = rng.choice([0, 1, 2, 10, 1_000, expected.num_rows])
        whole = scan(path, path)
        assert_same(whole.skip(offset).head(length).to_arrow(), expected.slice(offset, length))


@every_file
def test_tails_around_every_boundary(path: Path) -> None:
    expected = oracle(path)
    for offset in offsets_of(path)[::3]:
        result = scan(path, path).tail(expected.num_rows - offset).to_arrow()
        assert_same(result, expected.slice(offset))


@every_file
def test_windows_between_neighbouring_boundaries(path: Path) -> None:
    expected = oracle(path)
    offsets = offsets_of(path)
    data = path.read_bytes()
    for start, end in zip(offsets[::3], offsets[1::3], strict=False):
        result = scan(data, path).head(end - start).skip(start).to_arrow()
        assert_same(result, expected.slice(start, end - start))


@every_file
def test_windows_past_the_end_are_empty(path: Path) -> None:
    expected = oracle(path)
    past = expected.num_rows + 1
    assert_same(scan(path, path).skip(past).to_arrow(), expected.slice(0, 0))
    assert_same(scan(path, path).head(past).to_arrow(), expected)
    assert_same(scan(path, path).tail(past).to_arrow(), expected)
    assert_same(scan(path, path).tail(0).to_arrow(), expected.slice(0, 0))


@every_file
def test_selected_rows_around_every_boundary(path: Path) -> None:
    expected = oracle(path)
    total = expected.num_rows
    rows = np.array([row for row in offsets_of(path) if row < total], dtype=np.int64)
    wanted = expected.take(rows)
    assert_same(scan(path, path).select_rows(rows[::-1]).to_arrow(), wanted)
    selection = fs.RowSelection.from_indices(rows, total)
    assert_same(scan(path, path).select_rows(selection).to_arrow(), wanted)
    rest = np.setdiff1d(np.arange(total), rows)
    assert_same(scan(path, path).select_rows(~selection).to_arrow(), expected.take(rest))


@every_file
def test_take_keeps_order_and_duplicates(path: Path) -> None:
    expected = oracle(path)
    rows = [row for row in offsets_of(path) if row < expected.num_rows] * 2
    random.Random(path.name).shuffle(rows)
    assert_same(scan(path, path).take(rows), expected.take(pa.array(rows, pa.int64())))


@every_file
def test_byte_ranges_keep_blocks_by_their_midpoint(path: Path) -> None:
    expected = oracle(path)
    for group in random.Random(path.name).sample(groups_of(path), min(8, len(groups_of(path)))):
        mine = expected.slice(group.first_row, group.end_row - group.first_row)
        here = fs.byte_range(group.midpoint, group.midpoint + 1)
        assert_same(scan(path, path).filter(here).to_arrow(), mine)
        assert scan(path, path).filter(fs.byte_range(group.midpoint, group.midpoint)).count() == 0


@every_file
def test_byte_ranges_partition_the_file(path: Path) -> None:
    expected = oracle(path)
    rng = random.Random(path.name)
    size = path.stat().st_size
    cuts = sorted(rng.randrange(size) for _ in range(3))
    bounds = [-(2**63), *cuts, *(group.midpoint for group in groups_of(path)[:3]), 2**63]
    parts = [
        scan(path, path).filter(fs.byte_range(start, end)).to_arrow()
        for start, end in zip(sorted(bounds), sorted(bounds)[1:], strict=False)
    ]
    assert_same(pa.concat_tables(parts), expected)


@every_file
def test_blocks_keep_row_groups_by_ordinal(path: Path) -> None:
    expected = oracle(path)
    groups = groups_of(path)
    rng = random.Random(path.name)
    for start in sorted({0, len(groups) - 1, rng.randrange(len(groups))}):
        end = rng.randint(start + 1, len(groups))
        kept = scan(path, path).filter(fs.blocks(start, end))
        first, last = groups[start].first_row, groups[end - 1].end_row
        assert_same(kept.to_arrow(), expected.slice(first, last - first))
        # A window counts the rows of the blocks that are kept.
        assert_same(kept.skip(1).head(2).to_arrow(), expected.slice(first, last - first)[1:3])
