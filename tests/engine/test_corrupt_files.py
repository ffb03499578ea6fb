"""`on_corrupt="skip"`: files that cannot be read are left out, or end where they are damaged."""

import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col

ROWS, BLOCK = 40, 10


def parquet(first: int, **options: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": range(first, first + ROWS), "s": ["x" * 20] * ROWS})
    layout = {"row_group_size": BLOCK, "write_page_index": True, "write_page_checksum": True}
    pq.write_table(table, sink, compression="none", use_dictionary=False, **layout, **options)
    return sink.getvalue()


def orc(first: int) -> bytes:
    sink = io.BytesIO()
    pa.orc.write_table(pa.table({"n": range(first, first + ROWS), "s": ["x" * 20] * ROWS}), sink)
    return sink.getvalue()


def damaged_page(data: bytes, block: int, column: int = 0) -> bytes:
    """One bit flipped at the end of a chunk, which the page's checksum shows."""
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(block).column(column)
    place = chunk.data_page_offset + chunk.total_compressed_size - 1
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def damaged_index(data: bytes) -> bytes:
    """The page indexes, between the last chunk and the footer, are no Thrift any more."""
    begin, end = chunks_end(data), len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:begin] + b"\xff" * (end - begin) + data[end:]


def chunks_end(data: bytes) -> int:
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(ROWS // BLOCK - 1)
    chunk = group.column(group.num_columns - 1)
    return int(chunk.data_page_offset + chunk.total_compressed_size)


def lake(root: Path, *files: bytes) -> Path:
    for at, data in enumerate(files):
        (root / f"{at}.bin").write_bytes(data)
    return root


def numbers(scan: fs.Scan) -> list[int]:
    found: list[int] = scan.to_arrow()["n"].to_pylist()
    return found


def every_way(scan: fs.Scan, expected: list[int], name: str) -> None:
    """All readers give the same rows, and each warns once, of one file."""
    for read in (
        lambda: numbers(scan),
        lambda: [row["n"] for row in scan],
        lambda: [n for batch in scan.batches() for n in batch["n"].to_pylist()],
        lambda: [n for batch in scan.column("n") for n in batch.values.tolist()],
        lambda: scan.to_polars()["n"].to_list(),
    ):
        with fs.trace() as trace, pytest.warns(fs.CorruptFileWarning, match=name) as caught:
            assert read() == expected
        assert len(caught) == 1
        assert [Path(skipped.path).name for skipped in trace.skipped] == [name]
        assert name in trace.skipped[0].reason


BROKEN_FOOTERS = {
    "truncated": lambda data: data[:-20],
    "footer": lambda data: data[:-60] + b"\xff" * 50 + data[-10:],
    "only magic": lambda data: data[:4],
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("kind", sorted(BROKEN_FOOTERS))
@pytest.mark.parametrize("writer", [parquet, orc])
def test_a_file_without_a_footer_is_left_out(
    tmp_path: Path, place: int, kind: str, writer: Any
) -> None:
    files = [writer(100 * at) for at in range(3)]
    files[place] = BROKEN_FOOTERS[kind](files[place])
    lake(tmp_path, *files)
    kept = [100 * at + n for at in range(3) if at != place for n in range(ROWS)]
    scan, name = fs.scan(tmp_path, on_corrupt="skip"), f"{place}.bin"
    every_way(scan, kept, name)
    with pytest.warns(fs.CorruptFileWarning, match=name):
        assert scan.count() == len(kept)
    with pytest.warns(fs.CorruptFileWarning, match=name):
        assert numbers(scan.filter("n >= 35")) == [n for n in kept if n >= 35]
    with pytest.warns(fs.CorruptFileWarning, match=name):
        assert numbers(scan.skip(35).head(50)) == kept[35:85]
    with pytest.warns(fs.CorruptFileWarning, match=name):
        assert numbers(scan.with_row_index().filter("index >= 35").tail(50)) == kept[35:][-50:]
    with pytest.warns(fs.CorruptFileWarning, match=name):
        parts = scan.splits(1)
    assert [n for part in parts for n in numbers(pickle.loads(pickle.dumps(part)))] == kept
    with pytest.warns(fs.CorruptFileWarning, match=name):
        assert numbers(fs.scan(tmp_path, on_corrupt="skip", missing="null")) == kept
    with pytest.raises(fs.FileFormatError, match=name):
        fs.scan(tmp_path).count()


def test_a_window_that_ends_before_never_meets_the_file(tmp_path: Path) -> None:
    lake(tmp_path, parquet(0), parquet(100)[:-20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numbers(fs.scan(tmp_path, on_corrupt="skip").head(3)) == [0, 1, 2]


def test_where_nothing_is_left_the_error_is_that_of_the_first(tmp_path: Path) -> None:
    lake(tmp_path, parquet(0)[:-20], parquet(100)[:-20])
    with pytest.warns(fs.CorruptFileWarning), pytest.raises(fs.FileFormatError, match=r"0\.bin"):
        fs.scan(tmp_path, on_corrupt="skip").to_arrow()


def test_a_file_with_damaged_indexes_is_left_out_whole(tmp_path: Path) -> None:
    # Of a chunk of one page nobody would read an index.
    pages = {"data_page_size": 1, "write_batch_size": 2}
    damaged = damaged_index(parquet(100, **pages))
    lake(tmp_path, parquet(0), damaged, parquet(200))
    scan = fs.scan(tmp_path, on_corrupt="skip").filter(col("n").is_in([3, 103, 133, 203]))
    every_way(scan, [3, 203], "1.bin")
    with pytest.raises(fs.FileFormatError, match=r"1\.bin"):
        fs.scan(tmp_path).filter(col("n").is_in([3, 103, 133, 203])).to_arrow()


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_damage_in_pages_ends_the_file_there(tmp_path: Path, place: int, block: int) -> None:
    files = [parquet(100 * at) for at in range(3)]
    files[place] = damaged_page(files[place], block)
    lake(tmp_path, *files)
    kept = [100 * at + n for at in range(3) for n in range(ROWS if at != place else block * BLOCK)]
    name, scan = f"{place}.bin", fs.scan(tmp_path, on_corrupt="skip")
    every_way(scan, kept, name)
    every_way(scan.filter("n <> 3"), [n for n in kept if n != 3], name)
    matching = [n for n in kept if n not in (1, 101, 201)]
    searched = scan.filter("n not in (1, 101, 201)")
    with pytest.warns(fs.CorruptFileWarning, match=name):
        assert numbers(searched.head(115)) == matching
    if block == 0:  # elsewhere bounds prove the answer
        with pytest.warns(fs.CorruptFileWarning, match=name):
            assert searched.count() == len(matching)
    # What is not read is not seen to be damaged.
    assert scan.select("s").count() == 3 * ROWS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scan.select("s").to_arrow().num_rows == 3 * ROWS
    parts = scan.splits(1)
    with pytest.warns(fs.CorruptFileWarning, match=name):
        found = [n for part in parts for n in numbers(pickle.loads(pickle.dumps(part)))]
    # A part knows nothing of the others: only the block itself is lost.
    assert found == [
        n
        for n in (100 * at + n for at in range(3) for n in range(ROWS))
        if n not in range(100 * place + block * BLOCK, 100 * place + (block + 1) * BLOCK)
    ]
    with pytest.raises(fs.FileFormatError, match=name):
        fs.scan(tmp_path).to_arrow()


def test_damage_in_a_column_of_the_result_that_shows_behind_the_predicate(tmp_path: Path) -> None:
    lake(tmp_path, damaged_page(parquet(0), 1, column=1), parquet(100))
    scan = fs.scan(tmp_path, on_corrupt="skip").filter("n <> 3")
    expected = [n for n in range(BLOCK) if n != 3] + list(range(100, 100 + ROWS))
    with pytest.warns(fs.CorruptFileWarning):
        assert numbers(scan) == expected
    with pytest.warns(fs.CorruptFileWarning):
        assert numbers(scan.skip(5).head(10)) == expected[5:15]


def test_what_is_named_and_no_such_file_is_left_out_too(tmp_path: Path) -> None:
    lake(tmp_path, parquet(0))
    (tmp_path / "text").write_text("neither Parquet nor ORC, and longer than twelve bytes")
    sources = [tmp_path / "text", tmp_path / "0.bin"]
    with pytest.warns(fs.CorruptFileWarning, match="text"):
        assert numbers(fs.scan(sources, on_corrupt="skip")) == list(range(ROWS))
    with warnings.catch_warnings():  # in a folder it is passed over, as always
        warnings.simplefilter("error")
        assert numbers(fs.scan(tmp_path, on_corrupt="skip")) == list(range(ROWS))


def test_written_with_one_warning(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    lake(tmp_path / "lake", parquet(0)[:-20], parquet(100))
    target = tmp_path / "out.parquet"
    with pytest.warns(fs.CorruptFileWarning) as caught:
        assert fs.scan(tmp_path / "lake", on_corrupt="skip").write(target) == ROWS
    assert len(caught) == 1
    assert pq.read_table(target)["n"].to_pylist() == list(range(100, 100 + ROWS))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    lake(tmp_path, parquet(0))
    with pytest.raises(fs.SourceNotFoundError):
        fs.scan([tmp_path / "0.bin", tmp_path / "no"], on_corrupt="skip").to_arrow()
    with pytest.raises(ValueError, match="skip"):
        fs.scan(tmp_path, on_corrupt="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["footer", "page", "type"])
@pytest.mark.parametrize("at", [1, 3])
def test_the_error_of_a_file_comes_behind_the_rows_of_the_files_before(at: int, wrong: str) -> None:
    files = [parquet(ROWS * place) for place in range(5)]
    other = io.BytesIO()
    pq.write_table(pa.table({"n": ["x"], "s": ["y"]}), other)
    files[at] = {
        "footer": files[at][:-20] + b"\xff" * 12 + files[at][-8:],
        "page": damaged_page(files[at], 0),
        "type": other.getvalue(),
    }[wrong]
    expected, first = list(range(ROWS * at)), ROWS * at
    scan = fs.scan(files)
    conditions = [col("n") != first + 3, col("n") + 1 != first + 4, col("n") >= 0]
    for asked in [scan, *map(scan.filter, conditions)]:
        found: list[int] = []
        with pytest.raises(fs.FretsawError):
            found.extend(n for batch in asked.batches() for n in batch["n"].to_pylist())
        assert found == expected
        assert numbers(asked.head(first)) == expected
