"""Bad input gives the contract's errors and nothing else: no crash, no hang, no flood."""

import io
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.Thrift import TType

import fretsaw as fs
from tests.support.hostile import Bench, Place, Raw, changed, check, decoded, encoded, variants
from tests.support.kernels import each_decoder

pytestmark = [pytest.mark.slow, each_decoder()]

# Sample files

TABLE = pa.table({"id": range(60), "text": [f"row {i % 9}" for i in range(60)]})


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    sink = io.BytesIO()
    options = {"row_group_size": 40, "write_page_index": True, "data_page_size": 64, **options}
    pq.write_table(table, sink, write_batch_size=5, store_schema=False, **options)
    return sink.getvalue()


def parts_of(data: bytes) -> tuple[bytes, bytes]:
    """Everything before the footer, and the footer."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:start], data[start:-8]


def assembled(body: bytes, footer: bytes, length: int | None = None) -> bytes:
    claimed = len(footer) if length is None else length
    return body + footer + claimed.to_bytes(4, "little") + b"PAR1"


DATA = written()
BODY, FOOTER = parts_of(DATA)


def test_what_is_not_parquet_is_a_format_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    seeded = random.Random(7)
    bench.add("empty", b"")
    bench.add("text", b"id,text\n" + b"1,one\n" * 200)
    for size in (*range(1, 13), 1_000, 70_000):
        bench.add(f"{size} random bytes", seeded.randbytes(size))
        bench.add(f"{size} zeros", bytes(size))
        bench.add(f"{size} bytes of magic", (b"PAR1" * size)[:size])
        bench.add(f"{size} random bytes between magic", b"PAR1" + seeded.randbytes(size) + b"PAR1")
    bench.add("no magic at the start", b"XXXX" + DATA[4:-4] + b"XXXX")
    for length in (
        0,
        1,
        len(FOOTER) - 1,
        len(DATA) - 8,
        len(DATA) - 7,
        len(DATA),
        2**31,
        2**32 - 1,
    ):
        bench.add(f"footer length {length}", assembled(BODY, FOOTER, length))
    check(bench.cases, must_fail=True)


def test_a_truncated_file_is_a_format_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path, DATA)
    path = tmp_path / "whole.parquet"
    path.write_bytes(DATA)
    for cut in itertools.chain(range(0, len(BODY), 37), range(len(BODY), len(DATA))):
        bench.change(f"cut at {cut}", path, cut=cut)
    for end in range(len(FOOTER)):
        bench.add(f"{end} bytes of footer", assembled(BODY, FOOTER[:end]))
    check(bench.cases, must_fail=True)


def test_deep_and_wide_footers_are_format_errors(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    footer, _ = decoded(FOOTER)
    root, leaf = footer[2][1][1][0], footer[2][1][1][1]
    for depth in (100, 10_000, 1_000_000):
        unknown = {99: (TType.STRUCT, Raw(b"\x1c" * depth + b"\x00" * (depth + 1)))}
        bench.add(f"{depth} structs", assembled(BODY, b"\x1c" * depth + b"\x00" * (depth + 1)))
        bench.add(f"{depth} lists", assembled(BODY, b"\x19" * depth + b"\x05\x00\x00"))
        if depth > 100:
            bench.add(f"{depth} unknown", assembled(BODY, encoded({**footer, **unknown})))
    for depth in (1_000, 50_000):
        group = {**root, 3: (TType.I32, 0), 5: (TType.I32, 1)}
        chain = (TType.LIST, (TType.STRUCT, [group] * depth + [leaf]))
        bench.add(f"{depth} groups", assembled(BODY, encoded({**footer, 2: chain})))
    check(bench.cases, must_fail=True)


@pytest.mark.parametrize("shard", range(2))
def test_a_footer_that_lies_gives_an_error_or_the_right_rows(tmp_path: Path, shard: int) -> None:
    bench = Bench(tmp_path, DATA)
    footer, length = decoded(FOOTER)
    assert length == len(FOOTER)
    assert encoded(footer) == FOOTER
    for name, struct in itertools.islice(variants(footer), shard, None, 2):
        bench.add(name, assembled(BODY, encoded(struct)))
    assert len(bench.cases) > 400
    check(bench.cases)


def test_a_block_that_claims_other_rows_than_its_pages_hold_is_a_format_error(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, DATA)
    footer, _ = decoded(FOOTER)
    for block, rows in itertools.product((0, 1), (-1, 0, 1, 19, 21, 39, 41, 2**31, 2**62)):
        struct = changed(footer, (4, block, 3), rows)
        bench.add(f"{rows} rows in block {block}", assembled(BODY, encoded(struct)))
    check(bench.cases, must_fail=True)


def test_an_offset_index_that_lies_gives_an_error_or_the_right_rows(tmp_path: Path) -> None:
    footer, _ = decoded(FOOTER)
    for column in (0, 1):
        bench = Bench(tmp_path, DATA)
        chunk: Place = (4, 0, 1, column)
        offset = footer[4][1][1][0][1][1][1][column][4][1]
        index, _ = decoded(DATA[offset:])
        pages = index[1][1][1]
        assert len(pages) > 4
        moved = changed(footer, (*chunk, 4), len(BODY))
        swapped = (index[1][1][0], [pages[0], pages[2], pages[1], *pages[3:]])
        doubled = (index[1][1][0], [*pages[:2], *pages[1:]])
        others = [
            ("swapped", changed(index, (1,), swapped)),
            ("doubled", changed(index, (1,), doubled)),
        ]
        for name, struct in itertools.chain(variants(index), others):
            data = encoded(struct)
            located = encoded(changed(moved, (*chunk, 5), len(data)))
            bench.add(name, assembled(BODY + data, located), windows=12)
        check(bench.cases)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_page_header_that_lies_gives_an_error_or_the_right_rows(
    tmp_path: Path, version: str, dictionary: bool
) -> None:
    layout = {"data_page_version": version, "use_dictionary": dictionary, "compression": "snappy"}
    data = written(TABLE.select(["text"]), write_page_index=False, data_page_size=10_000, **layout)
    bench = Bench(tmp_path, data)
    body, footer_bytes = parts_of(data)
    footer, _ = decoded(footer_bytes)
    header, length = decoded(body[4:])
    chunk: Place = (4, 0, 1, 0, 3)
    offsets = footer[4][1][1][0][1][1][1][0][3][1]
    # The header is moved behind the data, so that its length may change.
    size = offsets[7][1]
    for name, struct in variants(header):
        page = encoded(struct) + body[4 + length : 4 + size]
        moved = changed(footer, (*chunk, 7), len(page))
        for field in (9, 11):
            if field in offsets:
                start = len(body) + (offsets[field][1] - 4)
                start += (len(page) - size) * (start > len(body))
                moved = changed(moved, (*chunk, field), start)
        bench.add(name, assembled(body + page, encoded(moved)))
    check(bench.cases)


def readable_files(corpus: Path) -> Iterator[Path]:
    for path in sorted((corpus / "parquet").rglob("*.parquet")):
        if path.name == "large_string_map.brotli.parquet":  # two gigabytes, and no mistake
            continue
        try:
            pq.read_schema(path)
        except (pa.ArrowException, OSError):
            continue
        yield path


def flipped(corpus: Path, tmp_path: Path, count: int, shard: int = 0, shards: int = 1) -> Bench:
    """So much damage to each file, every other time where the metadata is."""
    bench = Bench(tmp_path)
    for path in itertools.islice(readable_files(corpus), shard, None, shards):
        seeded = random.Random(path.name)
        data = path.read_bytes()
        starts = (len(parts_of(data)[0]), 0)
        for number in range(count):
            offset = seeded.randrange(starts[number % 2], len(data))
            change = seeded.choice([1 << seeded.randrange(8), seeded.randrange(1, 256)])
            name = f"{path.name} {number}: {offset} ^ {change}"
            windows = int(number < 60) + int(number < 60 and len(data) < 500_000)
            bench.change(name, path, flip=[offset, change], windows=windows)
    return bench


def test_a_few_flipped_bytes_give_an_error_or_what_pyarrow_reads(
    corpus: Path, tmp_path: Path
) -> None:
    bench = flipped(corpus, tmp_path, 4)
    assert len(bench.cases) > 180
    check(bench.cases)


@pytest.mark.deep
@pytest.mark.parametrize("shard", range(6))
def test_a_flipped_byte_gives_an_error_or_what_pyarrow_reads(
    corpus: Path, tmp_path: Path, shard: int
) -> None:
    bench = flipped(corpus, tmp_path, 200, shard, 6)
    assert len(bench.cases) > 1_500
    check(bench.cases)


def test_a_truncated_file_of_another_writer_is_a_format_error(corpus: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for path in readable_files(corpus):
        seeded = random.Random(path.name)
        size = path.stat().st_size
        for cut in (size - 1, size - 5, *(seeded.randrange(size) for _ in range(8))):
            bench.change(f"{path.name} cut at {cut}", path, cut=cut)
    check(bench.cases, must_fail=True)


def test_files_by_other_writers_that_are_broken_or_cut_off(corpus: Path, tmp_path: Path) -> None:
    broken, cut = Bench(tmp_path), Bench(tmp_path)
    for path in sorted((corpus / "parquet" / "bad_data").glob("*.parquet")):
        broken.change(path.name, path)
    for path in readable_files(corpus):
        size = path.stat().st_size
        for length in sorted({1, size // 3, size // 2, size - 9, size - 8, size - 4, size - 1}):
            cut.change(f"{path.name} {length}", path, cut=length)
    check(broken.cases)
    check(cut.cases, must_fail=True)


# Without limits: nothing here is dangerous


def test_the_blocks_say_how_many_rows_there_are() -> None:
    footer, _ = decoded(FOOTER)
    for claim in (0, 59, 2**40, -1):
        data = assembled(BODY, encoded(changed(footer, (3,), claim)))
        with fs.open(data) as file:
            assert file.num_rows == file.scan().count() == 60
            assert file.scan().to_arrow().equals(TABLE)


def test_encrypted_files_and_wrong_checksums_are_named_as_such(corpus: Path) -> None:
    folder = corpus / "parquet" / "data"
    partly = folder / "encrypt_columns_plaintext_footer.parquet.encrypted"
    for path in sorted({*folder.glob("*.encrypted")} - {partly}):
        with pytest.raises(fs.FileFormatError, match=rf"{path.name}.*encrypted"):
            fs.scan(path).to_arrow()
    clear = ["boolean_field", "int32_field", "ba_field", "flba_field"]
    assert fs.scan(partly).select(*clear).to_arrow().equals(pq.read_table(partly, columns=clear))
    with pytest.raises(fs.FileFormatError, match=r"float_field.*is encrypted"):
        fs.scan(partly).select("boolean_field", "float_field").to_arrow()
    for name in ("datapage_v1-corrupt-checksum", "rle-dict-uncompressed-corrupt-checksum"):
        path = folder / f"{name}.parquet"
        with pytest.raises(fs.FileFormatError, match=rf"{name}.*(?i:checksum|CRC)"):
            fs.scan(path).to_arrow()
        assert fs.scan(path, verify=False).to_arrow().equals(pq.read_table(path))


def test_an_unknown_column_is_a_key_error_that_reads_well(tmp_path: Path) -> None:
    path = tmp_path / "columns.parquet"
    path.write_bytes(DATA)
    with pytest.raises(fs.ColumnNotFoundError) as caught:
        fs.scan(path).select("id", "txet").to_arrow()
    message = str(caught.value)
    assert isinstance(caught.value, KeyError)
    assert "'txet'" in message
    assert "'text'" in message
    assert "columns.parquet" in message
    assert not message.startswith(("'", '"'))
    assert "\\" not in message


@pytest.mark.parametrize("kind", [str, Path])
def test_a_missing_path_is_a_file_not_found_error(tmp_path: Path, kind: type) -> None:
    path = kind(tmp_path / "missing.parquet")
    scan = fs.scan(path)  # reads nothing yet
    for use in (lambda: fs.open(path), scan.count, scan.to_arrow, lambda: scan.schema):
        with pytest.raises(fs.SourceNotFoundError, match=r"missing\.parquet") as caught:
            use()
        assert isinstance(caught.value, FileNotFoundError)
        assert isinstance(caught.value, fs.FretsawError)


def test_a_directory_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(fs.SourceNotFoundError, match=tmp_path.name):
        fs.scan(tmp_path).to_arrow()


@pytest.mark.parametrize("source", [3, None, 1.5, object()], ids=type)
def test_what_cannot_be_read_from_is_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError):
        fs.scan(source).to_arrow()
    with pytest.raises(TypeError):
        fs.open(source)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "locked.parquet"
    path.write_bytes(DATA)
    path.chmod(0)
    with pytest.raises(fs.StorageError, match=r"locked\.parquet: you may not read it"):
        fs.scan(path).to_arrow()


class Failing(io.BytesIO):
    """Raises an error of its own at the nth read."""

    def __init__(self, error: BaseException, healthy_reads: int) -> None:
        super().__init__(DATA)
        self._error, self._healthy = error, healthy_reads

    def read(self, size: int | None = -1, /) -> bytes:
        self._healthy -= 1
        if self._healthy < 0:
            raise self._error
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


ERRORS = [PermissionError(13, "mine"), EOFError("mine"), ValueError("mine"), KeyError("mine")]
ERRORS += [pa.ArrowInvalid("mine"), IndexError("mine"), TypeError("mine"), OverflowError("mine")]


@pytest.mark.parametrize(
    "error", [*ERRORS, MemoryError("mine"), KeyboardInterrupt("mine")], ids=repr
)
@pytest.mark.parametrize("healthy_reads", range(3))
def test_an_error_of_a_file_object_is_not_dressed_up(
    error: BaseException, healthy_reads: int
) -> None:
    with pytest.raises(type(error)) as caught:
        fs.scan(Failing(error, healthy_reads)).to_arrow()
    assert caught.value is error
