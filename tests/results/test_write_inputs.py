"""What is not written: types that a format lacks, options, the inputs of a scan."""

import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.results.write.files import write_file
from fretsaw.results.write.formats import FORMATS, format_of
from tests.support.written_files import BATCH, write_parts

SUFFIXES = {
    "x.parquet": "parquet",
    "x.orc": "orc",
    "x.csv": "csv",
    "x.json": "json",
    "x.jsonl": "json",
    "x.NDJSON": "json",
    "x.arrow": "arrow",
    "x.feather": "arrow",
    "x.ipc": "arrow",
    "x.csv.gz": "csv",
    "x.JSONL.gz": "json",
}


# What is refused


@pytest.mark.parametrize(("name", "format"), SUFFIXES.items())
def test_the_suffix_says_the_format(name: str, format: str) -> None:
    assert format_of(name) == format
    assert format_of(Path("folder.csv") / name) == format
    assert format_of(name, "orc") == "orc"


@pytest.mark.parametrize("name", ["x", "x.txt", "x.gz", "x.parquet.gz", ".parquet"])
def test_an_unknown_suffix_names_the_formats(tmp_path: Path, parts: list[Path], name: str) -> None:
    with pytest.raises(ValueError, match="'parquet', 'orc', 'csv', 'json', 'arrow'"):
        fs.scan(parts).write(tmp_path / name)
    with pytest.raises(ValueError, match="'parquet', 'orc', 'csv', 'json', 'arrow', not 'excel'"):
        fs.scan(parts).write(tmp_path / name, "excel")
    assert not list(tmp_path.iterdir())


UNION = pa.sparse_union([pa.field("a", pa.int64()), pa.field("b", pa.string())])
REFUSED = [
    ("csv", pa.list_(pa.int64())),
    ("csv", pa.struct([("a", pa.int64())])),
    ("csv", pa.map_(pa.string(), pa.int64())),
    ("csv", UNION),
    ("orc", pa.time64("us")),
    ("orc", pa.duration("s")),
    ("orc", pa.null()),
    ("orc", pa.decimal256(60, 2)),
    ("orc", pa.list_(pa.time32("ms"))),
    ("orc", pa.list_view(pa.int64())),
    ("json", UNION),
    ("json", pa.list_(UNION)),
    ("parquet", UNION),
    ("parquet", pa.struct([])),
]


@pytest.mark.parametrize(("format", "kind"), REFUSED, ids=str)
def test_what_a_format_cannot_hold_is_refused(
    tmp_path: Path, format: str, kind: pa.DataType
) -> None:
    schema = pa.schema([("fine", pa.int64()), ("the column", kind)])
    path = tmp_path / "out"
    path.write_text("what was there")

    batches = iter([BATCH])
    with pytest.raises(fs.FretsawError, match="no type for column 'the column'") as error:
        write_file(batches, schema, path, format)
    assert str(path) in str(error.value)
    assert str(kind) in str(error.value)
    assert "select()" in str(error.value)
    assert isinstance(error.value, ValueError)
    assert next(batches) is BATCH  # nothing was read
    assert path.read_text() == "what was there"
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_result_without_columns_is_refused(
    tmp_path: Path, parts: list[Path], format: str
) -> None:
    with pytest.raises(ValueError, match="no columns"):
        fs.scan(parts).select().write(tmp_path / "out", format)
    assert not list(tmp_path.iterdir())


def test_two_columns_of_one_name_are_refused_by_json(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(ValueError, match="several columns are called 'a'"):
        fs.scan(tmp_path / "in.parquet").write(tmp_path / "out.json")
    fs.scan(tmp_path / "in.parquet").write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == '"a","a"\n1,2\n'


@pytest.mark.parametrize("format", ["csv", "json"])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, format: str) -> None:
    raw = pa.array([b"fine", b"\xff\xfe"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    batch = pa.record_batch({"n": pa.array([1, 2]), "words": broken})
    with pytest.raises(fs.FretsawError, match="'words' holds what is no text"):
        write_file(iter([batch]), batch.schema, tmp_path / "out", format)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(tmp_path: Path, parts: list[Path]) -> None:
    scan = fs.scan(parts).select("id")
    with pytest.raises(fs.NotWritableError, match="missing: no such directory to write to; make"):
        scan.write(tmp_path / "missing" / "x.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a directory"):
        scan.write(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="is a pipe or device"):
        scan.write(tmp_path / "pipe.csv")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.csv").st_mode)
    with pytest.raises(TypeError, match="a path or a binary file object, not to a list"):
        scan.write([], "csv")  # type: ignore[arg-type]
    with pytest.raises(fs.NotWritableError, match="files of web servers are only read"):
        scan.write("https://example.com/x.csv")
    assert sorted(os.listdir(tmp_path)) == ["folder.csv", "pipe.csv"]


# Inputs


def test_an_input_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "data" / "in.parquet"
    source.parent.mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), source)
    before = source.read_bytes()
    (tmp_path / "link.parquet").symlink_to(source)
    os.link(source, tmp_path / "hard.parquet")
    (tmp_path / "folder").symlink_to(source.parent)
    monkeypatch.chdir(source.parent)
    names: list[str | Path] = [
        source,
        source.as_uri(),
        tmp_path / "link.parquet",
        tmp_path / "hard.parquet",
        tmp_path / "folder" / "in.parquet",
        Path("in.parquet"),
        Path("../data/./in.parquet"),
    ]
    for read in names:
        for written in names:
            with fs.trace() as t, pytest.raises(ValueError, match="is being read by the same scan"):
                fs.scan(["../link.parquet", read]).write(written)
            assert t.requests == 0
    with open(source, "rb") as file, pytest.raises(ValueError, match="is being read"):
        fs.scan(file).write(source)
    with fs.open(source) as opened, pytest.raises(ValueError, match="is being read"):
        opened.scan().write(source)
    for split in fs.scan(source).splits():
        with pytest.raises(ValueError, match="is being read"):
            split.write(source)
    assert source.read_bytes() == before
    assert os.listdir(source.parent) == ["in.parquet"]


def test_a_directory_that_is_read_is_not_written_into(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    write_parts(lake, pa.table({"a": range(10)}))
    (lake / "below").mkdir()
    (tmp_path / "alias").symlink_to(lake)
    before = sorted(os.listdir(lake))
    for source in (lake, tmp_path / "alias", tmp_path / "l*", f"{tmp_path}/**/*.parquet"):
        for name in ("lake/x.parquet", "lake/below/x.parquet", "alias/x.parquet"):
            with pytest.raises(ValueError, match="write to another directory"):
                fs.scan(str(source)).write(tmp_path / name)
    with pytest.raises(ValueError, match="write to another directory"):
        fs.scan(f"{lake}/*.parquet").write(lake / "all.parquet")
    assert sorted(os.listdir(lake)) == before
    fs.scan(f"{lake}/*.parquet").write(lake / "all.csv")
    fs.scan(lake).write(tmp_path / "lake.parquet")
    assert pq.read_table(tmp_path / "lake.parquet")["a"].to_pylist() == list(range(10))
