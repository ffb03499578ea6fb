"""The options of `write`: codecs, row groups, Bloom filters, what is there, file objects."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col

ROWS = 2_500
TABLE = pa.table(
    {
        "id": pa.array([i * 7 % 5_000 * 2 for i in range(ROWS)], pa.int64()),
        "city": [f"city {i % 50}" for i in range(ROWS)],
        "xs": [[f"x{i}"] for i in range(ROWS)],
    }
)


@pytest.fixture
def scan(tmp_path: Path) -> fs.Scan:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(TABLE, folder / "in.parquet", row_group_size=700)
    return fs.scan(folder / "in.parquet")


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_parquet_has_the_codec_that_was_asked_for(
    scan: fs.Scan, tmp_path: Path, codec: str
) -> None:
    scan.write(tmp_path / "out.parquet", compression=codec)
    found = pq.read_metadata(tmp_path / "out.parquet").row_group(0).column(0).compression
    assert found == ("UNCOMPRESSED" if codec == "none" else codec.upper())
    assert pq.read_table(tmp_path / "out.parquet").equals(TABLE)


@pytest.mark.parametrize("codec", ["none", "snappy", "zlib", "lz4", "zstd"])
def test_orc_has_the_codec_that_was_asked_for(scan: fs.Scan, tmp_path: Path, codec: str) -> None:
    scan.write(tmp_path / "out.orc", compression=codec)
    found = orc.ORCFile(tmp_path / "out.orc").compression
    assert found == ("UNCOMPRESSED" if codec == "none" else codec.upper())


def test_arrow_is_compressed(scan: fs.Scan, tmp_path: Path) -> None:
    for codec in ("none", "lz4", "zstd"):
        scan.write(tmp_path / f"{codec}.arrow", compression=codec)
        assert pa.feather.read_table(tmp_path / f"{codec}.arrow").equals(TABLE)
    assert (tmp_path / "zstd.arrow").stat().st_size < (tmp_path / "none.arrow").stat().st_size


def test_text_is_gzipped_by_its_suffix_or_if_asked_for(scan: fs.Scan, tmp_path: Path) -> None:
    flat = scan.select("id", "city")
    flat.write(tmp_path / "a.csv.gz")
    flat.write(tmp_path / "b.csv", compression="gzip")
    flat.write(tmp_path / "c.csv")
    flat.write(tmp_path / "d.jsonl.gz")
    texts = [gzip.decompress((tmp_path / name).read_bytes()) for name in ("a.csv.gz", "b.csv")]
    assert texts == [(tmp_path / "c.csv").read_bytes()] * 2
    assert pa.csv.read_csv(tmp_path / "a.csv.gz").equals(TABLE.select(["id", "city"]))
    rows = gzip.decompress((tmp_path / "d.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(row) for row in rows] == TABLE.select(["id", "city"]).to_pylist()


def test_codecs_that_a_format_lacks_are_refused(scan: fs.Scan, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"compression of orc is one of .*'zlib'.*, not 'gzip'"):
        scan.write(tmp_path / "out.orc", compression="gzip")
    with pytest.raises(ValueError, match="not 'zstd'"):
        scan.select("id").write(tmp_path / "out.csv", compression="zstd")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("rows", [1, 333, 1_000, ROWS, 10_000])
def test_row_groups_have_as_many_rows_as_asked_for(
    scan: fs.Scan, tmp_path: Path, rows: int
) -> None:
    few = scan.head(20) if rows == 1 else scan
    count = few.write(tmp_path / "out.parquet", row_group_size=rows)
    found = [block.num_rows for block in fs.open(tmp_path / "out.parquet").blocks]
    assert sum(found) == count
    assert set(found[:-1]) <= {rows}
    assert found[-1] <= rows
    assert pq.read_table(tmp_path / "out.parquet").equals(TABLE.slice(0, count))


@pytest.mark.parametrize("rows", [0, -1, "many"])
def test_row_groups_that_cannot_be(scan: fs.Scan, tmp_path: Path, rows: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="row_group_size"):
        scan.write(tmp_path / "out.parquet", row_group_size=rows)
    with pytest.raises(ValueError, match="orc has no row groups"):
        scan.write(tmp_path / "out.orc", row_group_size=10)


def test_bloom_filters_of_parquet_rule_out_what_is_not_there(scan: fs.Scan, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    scan.write(path, bloom_filters=["id", "xs.element"], row_group_size=1_000)
    told = fs.open(path).chunks()
    has = dict(zip(told["path"].to_pylist(), told["has_bloom_filter"].to_pylist(), strict=True))
    assert has == {"id": True, "city": False, "xs.element": True}
    probe = f"select bloom_filter_excludes from parquet_bloom_probe('{path}', 'id', 4_001)"
    assert [row[0] for row in duckdb.execute(probe).fetchall()] == [True] * 3
    plan = fs.scan(path).filter(col("id") == 4_001).plan()
    assert plan.dropped == {"Bloom filter": 3}
    assert fs.scan(path).filter(col("id") == 14).count() == 1


def test_bloom_filters_of_orc_rule_out_what_is_not_there(scan: fs.Scan, tmp_path: Path) -> None:
    path = tmp_path / "out.orc"
    scan.write(path, bloom_filters=["id", "xs.element"])
    told = fs.open(path).chunks()
    has = dict(zip(told["path"].to_pylist(), told["has_bloom_filter"].to_pylist(), strict=True))
    assert has == {"id": True, "city": False, "xs.element": True}
    assert fs.scan(path).filter(col("id") == 4_001).plan().rows.kept == 0
    assert fs.scan(path).filter(col("id") == 14).count() == 1


def test_bloom_filters_that_cannot_be(scan: fs.Scan, tmp_path: Path) -> None:
    with pytest.raises(fs.ColumnNotFoundError, match="town"):
        scan.write(tmp_path / "out.parquet", bloom_filters=["town"])
    with pytest.raises(TypeError, match="bloom_filters are a list"):
        scan.write(tmp_path / "out.parquet", bloom_filters="id")
    with pytest.raises(ValueError, match="for Parquet and ORC"):
        scan.select("id").write(tmp_path / "out.csv", bloom_filters=["id"])


def test_what_is_there_is_replaced_only_if_asked_for(scan: fs.Scan, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with (
        fs.trace() as t,
        pytest.raises(fs.NotWritableError, match=r"out\.csv: is there already.*over"),
    ):
        scan.select("id").write(path)
    assert path.read_text() == "mine"
    assert t.data_bytes == 0
    assert scan.select("id").write(path, overwrite=True) == ROWS
    assert path.read_text() != "mine"
    with pytest.raises(fs.NotWritableError, match="is being read"):
        scan.write(tmp_path / "in" / "in.parquet", overwrite=True)


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json", "arrow"])
def test_a_file_object_gets_what_a_file_gets(scan: fs.Scan, tmp_path: Path, format: str) -> None:
    flat, sink = scan.select("id", "city"), io.BytesIO()
    sink.write(b"before")
    assert flat.write(sink, format) == ROWS
    flat.write(tmp_path / f"out.{format}")
    assert not sink.closed
    assert sink.getvalue() == b"before" + (tmp_path / f"out.{format}").read_bytes()


def test_file_objects_that_cannot_be_written(scan: fs.Scan, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="say format="):
        scan.write(io.BytesIO())
    with pytest.raises(TypeError, match="opened for text"):
        scan.write(io.StringIO(), "csv")  # type: ignore[arg-type]
    refused = pytest.raises(fs.NotWritableError, match="is being read by the same scan")
    with open(tmp_path / "in" / "in.parquet", "r+b") as file, refused:
        scan.write(file, "parquet")
    assert pq.read_table(tmp_path / "in" / "in.parquet").equals(TABLE)


def test_what_a_file_object_raises_is_raised(scan: fs.Scan) -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, _data: Any) -> int:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        scan.write(Full(), "parquet")  # type: ignore[arg-type]
