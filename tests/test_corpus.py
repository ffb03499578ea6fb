"""Files by many writers, read in whole and by position, against pyarrow."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pages import RowGroup, assert_same, boundaries, row_groups

import fretsaw as fs

OFFSETS_PER_FILE = 60


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


def is_flat(item: pa.Field) -> bool:
    return not pa.types.is_nested(item.type)


@cache
def kind_of(path: Path) -> str:
    """Whether pyarrow reads the file, and whether all its columns are flat."""
    try:
        file = pq.ParquetFile(path)
        if not all(map(is_flat, file.schema_arrow)):
            return "nested"
        file.read()
    except (pa.ArrowException, OSError):
        return "unreadable"
    return "flat"


def parameters(*kinds: str, without: Sequence[str] = ()) -> list[Any]:
    """Files of these kinds for `parametrize`; one that is skipped where there is no corpus."""
    chosen = [p for p in corpus_files() if kind_of(p) in kinds and p.name not in without]
    if chosen:
        return [pytest.param(path, id=path.name) for path in chosen]
    reason = "FRETSAW_CORPUS is not set: no files by other writers to read"
    return [pytest.param(None, id="no-corpus", marks=pytest.mark.skip(reason=reason))]


flat_files = pytest.mark.parametrize("path", parameters("flat"))
plain_flat_files = pytest.mark.parametrize("path", parameters("flat", without=list(EXCEPTIONS)))


def pyarrow_file(path: Path) -> pq.ParquetFile:
    options = EXCEPTIONS[path.name].pyarrow_options if path.name in EXCEPTIONS else {}
    return pq.ParquetFile(path, **options)


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
    if len(offsets) > OFFSETS_PER_FILE:
        chosen = random.Random(path.name).sample(offsets, OFFSETS_PER_FILE - 4)
        offsets = sorted({*chosen, *offsets[:2], *offsets[-2:]})
    return offsets


@plain_flat_files
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


@pytest.mark.parametrize("path", parameters("unreadable"))
def test_files_that_pyarrow_cannot_read_raise(path: Path) -> None:
    with pytest.raises(fs.FileFormatError, match=path.name):
        fs.scan(path).to_arrow()


@pytest.mark.parametrize("path", parameters("nested"))
def test_nested_columns_are_refused(path: Path) -> None:
    with pytest.raises(fs.FileFormatError, match=r"nested.*not supported yet") as caught:
        fs.scan(path).to_arrow()
    assert path.name in str(caught.value)


@pytest.mark.parametrize("path", parameters("nested"))
def test_flat_columns_beside_nested_ones_are_what_pyarrow_reads(path: Path) -> None:
    file = pyarrow_file(path)
    rows = sum(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))
    good: list[str] = []
    for name in [item.name for item in file.schema_arrow if is_flat(item)]:
        try:
            expected = file.read(columns=[name])
        except (pa.ArrowException, OSError):
            expected = None
        if expected is None or expected.num_rows != rows:
            with pytest.raises(fs.FileFormatError, match=name):
                scan(path, path).select(name).to_arrow()
        else:
            good.append(name)
            assert_same(scan(path, path).select(name).to_arrow(), expected)
    if good:
        together = file.read(columns=good).select(good)
        assert_same(scan(path, path).select(*good).skip(1).to_arrow(), together.slice(1))


@flat_files
def test_windows_around_every_boundary(path: Path) -> None:
    expected = oracle(path)
    rng = random.Random(path.name)
    for offset in offsets_of(path):
        length = rng.choice([0, 1, 2, 10, 1_000, expected.num_rows])
        whole = scan(path, path)
        assert_same(whole.skip(offset).head(length).to_arrow(), expected.slice(offset, length))


@flat_files
def test_tails_around_every_boundary(path: Path) -> None:
    expected = oracle(path)
    for offset in offsets_of(path)[::3]:
        result = scan(path, path).tail(expected.num_rows - offset).to_arrow()
        assert_same(result, expected.slice(offset))


@flat_files
def test_windows_between_neighbouring_boundaries(path: Path) -> None:
    expected = oracle(path)
    offsets = offsets_of(path)
    data = path.read_bytes()
    for start, end in zip(offsets[::3], offsets[1::3], strict=False):
        result = scan(data, path).head(end - start).skip(start).to_arrow()
        assert_same(result, expected.slice(start, end - start))


@flat_files
def test_windows_past_the_end_are_empty(path: Path) -> None:
    expected = oracle(path)
    past = expected.num_rows + 1
    assert_same(scan(path, path).skip(past).to_arrow(), expected.slice(0, 0))
    assert_same(scan(path, path).head(past).to_arrow(), expected)
    assert_same(scan(path, path).tail(past).to_arrow(), expected)
    assert_same(scan(path, path).tail(0).to_arrow(), expected.slice(0, 0))


@flat_files
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


@flat_files
def test_take_keeps_order_and_duplicates(path: Path) -> None:
    expected = oracle(path)
    rows = [row for row in offsets_of(path) if row < expected.num_rows] * 2
    random.Random(path.name).shuffle(rows)
    assert_same(scan(path, path).take(rows), expected.take(pa.array(rows, pa.int64())))


@flat_files
def test_byte_ranges_keep_blocks_by_their_midpoint(path: Path) -> None:
    expected = oracle(path)
    for group in random.Random(path.name).sample(groups_of(path), min(8, len(groups_of(path)))):
        mine = expected.slice(group.first_row, group.end_row - group.first_row)
        here = fs.byte_range(group.midpoint, group.midpoint + 1)
        assert_same(scan(path, path).filter(here).to_arrow(), mine)
        assert scan(path, path).filter(fs.byte_range(group.midpoint, group.midpoint)).count() == 0


@flat_files
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


@flat_files
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
