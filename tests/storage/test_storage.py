"""Bytes by ranges: joining reads, file objects of all manners, files that change underneath."""

import io
import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw.storage.requests import coalesce

Range = tuple[int, int]

TABLE = pa.table(
    {
        "id": range(5_000),
        "text": [f"row {i}" for i in range(5_000)],
        "half": [i / 2 for i in range(5_000)],
    }
)


def written() -> bytes:
    sink = io.BytesIO()
    options = {"data_page_size": 4_096, "write_batch_size": 256, "use_dictionary": False}
    pq.write_table(TABLE, sink, row_group_size=2_000, write_page_index=True, **options)
    return sink.getvalue()


DATA = written()

# Joining ranges


overlapping = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=15)
gaps = st.integers(0, 60)
limits = st.integers(1, 120)


@st.composite
def disjoint(draw: st.DrawFn) -> list[Range]:
    """Ranges that share no byte, in any order."""
    pieces = draw(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40)), max_size=15))
    ranges = []
    position = 0
    for gap, length in pieces:
        ranges.append((position + gap, length))
        position += gap + length
    return draw(st.permutations(ranges))


@given(overlapping | disjoint(), gaps, limits)
def test_every_range_is_served_by_exactly_one_read_that_holds_it(
    ranges: list[Range], gap: int, largest: int
) -> None:
    reads = coalesce(ranges, gap=gap, largest=largest)
    assert sorted(number for read in reads for number in read.serves) == list(range(len(ranges)))
    for read in reads:
        for number in read.serves:
            offset, length = ranges[number]
            assert read.offset <= offset
            assert offset + length <= read.offset + read.length


@given(overlapping | disjoint(), gaps, limits)
def test_reads_are_sorted_and_hold_nothing_around_their_ranges(
    ranges: list[Range], gap: int, largest: int
) -> None:
    reads = coalesce(ranges, gap=gap, largest=largest)
    assert [read.offset for read in reads] == sorted(read.offset for read in reads)
    for read in reads:
        served = [ranges[number] for number in read.serves]
        assert read.offset == min(offset for offset, _ in served)
        assert read.offset + read.length == max(offset + length for offset, length in served)


@given(overlapping | disjoint(), gaps, limits)
def test_gaps_and_sizes_stay_within_their_limits(
    ranges: list[Range], gap: int, largest: int
) -> None:
    for read in coalesce(ranges, gap=gap, largest=largest):
        served = sorted(ranges[number] for number in read.serves)
        assert read.length <= largest or len(served) == 1 or read.length == served[0][1]
        reached = served[0][0]
        for offset, length in served:
            assert offset - reached <= gap
            reached = max(reached, offset + length)


@given(disjoint(), gaps, limits)
def test_disjoint_ranges_are_never_read_twice(ranges: list[Range], gap: int, largest: int) -> None:
    reads = coalesce(ranges, gap=gap, largest=largest)
    for one, other in itertools.pairwise(reads):
        assert one.offset + one.length <= other.offset
        # Neighbours that were close enough stay apart only because of the size.
        joined = other.offset + other.length - one.offset
        close = other.offset - (one.offset + one.length) <= gap
        first = min(ranges[number] for number in other.serves)
        reach = first[0] + first[1] - one.offset
        assert not close or joined > largest or reach > largest


@given(disjoint(), gaps, limits, st.randoms(use_true_random=False))
def test_the_order_of_the_ranges_does_not_matter(
    ranges: list[Range], gap: int, largest: int, seeded: Random
) -> None:
    shuffled = seeded.sample(ranges, len(ranges))
    one, other = coalesce(ranges, gap=gap, largest=largest), coalesce(shuffled, gap, largest)
    assert [(read.offset, read.length) for read in one] == [
        (read.offset, read.length) for read in other
    ]
    assert [sorted(ranges[number] for number in read.serves) for read in one] == [
        sorted(shuffled[number] for number in read.serves) for read in other
    ]


def test_without_limits_close_ranges_become_one_read() -> None:
    assert coalesce([], gap=10) == []
    (read,) = coalesce([(90, 10), (0, 80)], gap=10)
    assert (read.offset, read.length) == (0, 100)
    assert len(coalesce([(91, 10), (0, 80)], gap=10)) == 2
    assert len(coalesce([(0, 2**40), (2**40, 2**40)], gap=0)) == 2


# File objects


class Stingy(io.BytesIO):
    """Gives at most a few bytes at a time, as sockets and pipes do."""

    def read(self, size: int | None = -1, /) -> bytes:
        size = -1 if size is None else size
        return super().read(min(size, 100) if size >= 0 else 100)

    def readinto(self, buffer: object, /) -> int:
        view = memoryview(buffer)[:100]  # type: ignore[arg-type]
        return super().readinto(view)


class Unbuffered(io.RawIOBase):
    """Only what a raw binary file must have: `readinto` and `seek`."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def readinto(self, buffer: object, /) -> int:
        return self._inner.readinto(memoryview(buffer)[:333])  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [io.BytesIO, Stingy, Unbuffered], ids=lambda make: make.__name__)
def test_short_reads_are_read_to_the_end(make: Callable[[bytes], io.BytesIO]) -> None:
    assert fs.scan(make(DATA)).to_arrow().equals(TABLE)
    assert fs.scan(make(DATA)).skip(2_990).head(20).to_arrow().equals(TABLE.slice(2_990, 20))
    with fs.open(make(DATA)) as file:
        assert file.num_rows == 5_000
        assert file.scan().tail(1).to_arrow().equals(TABLE.slice(4_999))


def test_the_position_of_a_file_object_does_not_matter() -> None:
    source = io.BytesIO(DATA)
    source.seek(17)
    scan = fs.scan(source)
    assert scan.head(3).to_arrow().equals(TABLE.slice(0, 3))
    source.seek(99)
    assert scan.tail(3).to_arrow().equals(TABLE.slice(4_997))
    assert not source.closed


def test_bytes_come_in_any_buffer(tmp_path: Path) -> None:
    for source in (DATA, bytearray(DATA), memoryview(DATA), memoryview(b"xx" + DATA)[2:]):
        assert fs.scan(source).to_arrow().equals(TABLE)
    path = tmp_path / "no suffix that helps.txt"
    path.write_bytes(DATA)
    with path.open("rb") as file, path.open("rb", buffering=0) as raw:
        for opened in (file, raw):
            assert fs.scan(opened).to_arrow().equals(TABLE)
            assert not opened.closed
    for name in (path, str(path)):
        assert fs.scan(name).to_arrow().equals(TABLE)


def test_scans_of_one_file_object_may_run_at_the_same_time() -> None:
    scan = fs.scan(io.BytesIO(DATA))
    found: dict[int, pa.Table] = {}

    def read(first: int) -> None:
        found[first] = scan.skip(first).head(700).to_arrow()

    threads = [threading.Thread(target=read, args=(first,)) for first in range(0, 5_000, 250)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(table.equals(TABLE.slice(first, 700)) for first, table in found.items())


class Counting(io.BytesIO):
    """Remembers every read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[Range] = []

    def read(self, size: int | None = -1, /) -> bytes:
        offset = self.tell()
        data = super().read(size)
        self.reads.append((offset, len(data)))
        return data

    def readinto(self, buffer: object, /) -> int:
        offset = self.tell()
        length = super().readinto(buffer)  # type: ignore[arg-type]
        self.reads.append((offset, length))
        return length


def test_the_trace_tells_what_was_read() -> None:
    source = Counting(DATA)
    with fs.trace() as trace:
        fs.scan(source).select("id").skip(2_500).head(10).to_arrow()
        fs.scan(source).count()
        fs.scan(source).to_arrow()
    reads = sorted(read for read in source.reads if read[1])
    assert sorted((event.offset, event.length) for event in trace.log) == reads
    assert trace.requests == len(reads)
    assert trace.bytes_read == sum(length for _, length in reads)
    parts = trace.footer_bytes + trace.index_bytes + trace.data_bytes
    assert parts == trace.bytes_read
    assert trace.data_bytes > 0


# Files that change


def test_a_file_cut_off_while_open_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "cut off.parquet"
    footer = int.from_bytes(DATA[-8:-4], "little") + 8
    for length in (0, 1, 4, 100, len(DATA) // 3, len(DATA) // 2, len(DATA) - footer):
        path.write_bytes(DATA)
        with fs.open(path) as file:
            os.truncate(path, length)
            for scan in (file.scan(), file.scan().tail(5), file.scan().select_rows([2_500])):
                with pytest.raises(fs.StorageError, match=r"cut off\.parquet: the file changed"):
                    scan.to_arrow()
            with pytest.raises(fs.StorageError, match=r"cut off\.parquet: the file changed"):
                list(file.scan().batches())
            assert file.scan().count() == 5_000


def test_a_file_cut_off_between_batches_gives_its_rows_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut off.parquet"
    for seen in (1, 5, 20, 45):
        path.write_bytes(DATA)
        batches = fs.scan(path).batches(batch_size=100)
        found = list(itertools.islice(batches, seen))
        os.truncate(path, 10)
        # What was fetched ahead may still be given, but only as it was.
        failed = False
        try:
            found.extend(batches)
        except fs.StorageError:
            failed = True
        table = pa.Table.from_batches(found)
        assert table.equals(TABLE.slice(0, table.num_rows))
        assert failed or table.num_rows == 5_000


def test_a_file_object_that_ends_early_has_changed() -> None:
    source = io.BytesIO(DATA)
    with fs.open(source) as file:
        source.truncate(500)
        with pytest.raises(fs.StorageError, match="changed while it was read"):
            file.scan().to_arrow()
