"""What old writers got wrong, by the name that they left in the footer: read as Arrow reads it."""

import io
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import I64, META_DATA, Crafted
from tests.support.kernels import each_decoder
from tests.support.page_craft import Pages, empty_page, hidden_compression
from tests.support.pages import assert_same

pytestmark = each_decoder("slow")

CODECS = ("none", "snappy", "gzip", "zstd", "brotli", "lz4")
FALSE_FLAGS = ("parquet-cpp version 1.5.1-SNAPSHOT", "parquet-cpp", "parquet-cpp version 1")
TRUE_FLAGS = ("parquet-cpp version 2.0.0", "parquet-cpp-arrow version 1.0.0", "PARQUET-CPP", None)


@cache
def table() -> pa.Table:
    numbers = np.random.default_rng(3).integers(0, 12, 3_000).tolist()
    return pa.table(
        {
            "n": numbers,
            "few": [f"word {n}" for n in numbers],
            "text": [f"some words, number {n} of them" for n in range(3_000)],
            "maybe": pa.array([None if n % 5 == 0 else n / 3 for n in numbers]),
            "list": [[n, n + 1][: n % 3] for n in numbers],
        }
    )


def written(codec: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(),
        sink,
        compression=codec,
        row_group_size=2_000,
        use_dictionary=["few", "list.list.element"],
        data_page_size=4_000,
        **options,
    )
    return sink.getvalue()


@cache
def with_false_flags(codec: str) -> bytes:
    return Pages(written(codec, data_page_version="2.0")).changed(hidden_compression(codec))


def assert_read(data: bytes) -> None:
    """All rows, windows, and rows that are sought by every way there is."""
    scan = fs.scan(data)
    assert_same(scan.to_arrow(), table())
    assert_same(scan.skip(1_700).head(600).to_arrow(), table().slice(1_700, 600))
    sought = {"n": 7, "few": "word 7", "text": "some words, number 2345 of them", "maybe": 7 / 3}
    for name, value in sought.items():
        found = scan.filter(col(name) == value).to_arrow()
        assert_same(found, table().filter(pc.equal(table()[name], value)))
    assert scan.filter(col("few") == "word 70").count() == 0
    sevens = table()["n"].to_pylist().count(7)
    assert scan.filter(col("few").is_in(["word 7", "no"])).count() == sevens


@pytest.mark.parametrize("writer", FALSE_FLAGS)
@pytest.mark.parametrize("codec", CODECS)
def test_pages_of_the_first_cpp_writers_are_compressed_whatever_they_say(
    codec: str, writer: str
) -> None:
    data = Crafted(with_false_flags(codec)).set_created_by(writer).to_bytes()
    assert_same(pq.read_table(io.BytesIO(data)), table())
    assert_read(data)


@pytest.mark.parametrize("writer", TRUE_FLAGS)
def test_the_flags_of_other_writers_are_believed(writer: str | None) -> None:
    data = Crafted(with_false_flags("snappy")).set_created_by(writer).to_bytes()
    with pytest.raises(OSError, match=r"."):
        pq.read_table(io.BytesIO(data))
    with pytest.raises(fs.FileFormatError):
        fs.scan(data).to_arrow()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
def test_dictionaries_of_the_first_cpp_writers_are_read(codec: str, version: str) -> None:
    data = Pages(written(codec, data_page_version=version)).changed(hidden_compression(codec))
    data = Crafted(data).set_created_by("parquet-cpp version 1.5.0").to_bytes()
    with fs.trace() as t:
        assert fs.scan(data).filter(col("few") == "word 7x").count() == 0
    assert any(read.why == "dictionary" for read in t.log)
    assert_read(data)


@pytest.mark.parametrize("codec", CODECS)
def test_chunks_of_early_parquet_mr_are_longer_than_they_say(codec: str) -> None:
    """The header of the dictionary page was left out of a chunk's size."""
    file = Crafted(written(codec, data_page_version="1.0"))
    for chunk in file.chunks("few"):
        meta = chunk[META_DATA][1]
        meta[7] = (I64, meta[7][1] - 14)
    data = file.set_created_by("parquet-mr version 1.2.8 (build 0ab)").to_bytes()
    assert_same(pq.read_table(io.BytesIO(data)), table())
    assert_read(data)


@pytest.mark.parametrize(
    ("writer", "believed"),
    [
        ("parquet-mr version 1.9.0 (build x)", False),
        ("parquet-mr version 1.10.0", True),
        ("parquet-cpp version 1.2.0", False),
        ("parquet-cpp version 1.3.0", True),
        ("parquet-mr", False),
        (None, True),
    ],
)
def test_bounds_of_bytes_by_writers_that_compared_them_as_signed_prove_nothing(
    writer: str | None, believed: bool
) -> None:
    sink = io.BytesIO()
    values = pa.table({"s": ["a", "b", "é"], "n": [1, 2, 3]})
    pq.write_table(values, sink, use_dictionary=False)
    file = Crafted(sink.getvalue()).set_created_by(writer)
    file.set_statistics("s", [{"min_value": b"\xc3\xa9", "max_value": b"\xc3\xaa"}])
    data = file.to_bytes()
    assert fs.scan(data).filter(col("s") == "b").count() == (0 if believed else 1)
    with fs.open(io.BytesIO(data)) as opened:
        assert opened.prune(col("n") == 9).selected_count == 0


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
def test_data_pages_without_a_value_are_passed_over(codec: str, version: str) -> None:
    """In front of each page, so that the first of every chunk is one; pyarrow stops there."""
    data = Pages(written(codec, data_page_version=version)).changed(empty_page)
    assert_read(data)
    found = fs.scan(data).filter(col("list").any() == 7).to_arrow()
    expected = [7 in numbers for numbers in table()["list"].to_pylist()]
    assert_same(found, table().filter(pa.array(expected)))


@pytest.mark.parametrize("writer", ["parquet-mr version 1.2.8 (build 0ab)", "someone", None])
def test_a_file_says_who_wrote_it(writer: str | None) -> None:
    data = Crafted(written("snappy")).set_created_by(writer).to_bytes()
    with fs.open(data) as file:
        assert file.created_by == writer
