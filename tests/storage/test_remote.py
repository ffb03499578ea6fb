"""Remote files: the same rows as local ones, in as many requests and bytes as the trace says."""

import io
import pickle
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import fsspec
import obstore
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
import fretsaw.cache
from tests.support import servers
from tests.support.proxy import Proxy, Seen

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def parquet(first: int, count: int = 1000) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": range(first, first + count), "t": [f"row {n}" for n in range(count)]})
    pq.write_table(
        table, sink, row_group_size=400, write_page_index=True, data_page_size=500,
        use_dictionary=False,
    )  # fmt: skip
    return sink.getvalue()


class Lake:
    """The same files in a folder here and in a bucket."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self.folder = folder
        self.options = servers.options(proxy.port)
        self.proxy = proxy
        self._store = servers.store(proxy.upstream)
        self._prefix = uuid.uuid4().hex
        self.url = f"s3://{servers.BUCKET}/{self._prefix}"

    def put(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        obstore.put(self._store, f"{self._prefix}/{name}", data)
        return f"{self.url}/{name}"

    def scan(self, *names: str) -> fs.Scan:
        urls = [self.url + name for name in names]
        return fs.scan(urls if len(urls) > 1 else urls[0], storage_options=self.options)

    def local(self, *names: str) -> fs.Scan:
        return fs.scan([str(self.folder) + name for name in names])


@pytest.fixture
def lake(tmp_path: Path, s3: Proxy) -> Lake:
    fretsaw.cache.clear()
    return Lake(tmp_path / "lake", s3)


@pytest.fixture
def full(lake: Lake) -> Lake:
    for at, day in enumerate(["day=1", "day=2", "day=x%20y"]):
        for number in range(2):
            name = f"{day}/part-{number}.parquet"
            lake.put(name, parquet(10_000 * at + 2_000 * number))
    lake.put("day=1/_hidden.parquet", b"not read")
    lake.put("_SUCCESS", b"")
    lake.put("readme.txt", b"not a Parquet file, and longer than twelve bytes")
    return lake


@pytest.mark.parametrize(
    "names",
    [
        ["/day=1/part-0.parquet"],
        [""],
        ["/"],
        ["/day=2"],
        ["/*/part-1.parquet"],
        ["/day={1,2}/*.parquet"],
        ["/**/part-[0].parquet"],
        ["/day=?"],
        ["/day=2/part-1.parquet", "/day=1"],
    ],
    ids=repr,
)
def test_urls_give_the_rows_of_paths(full: Lake, names: list[str]) -> None:
    found, expected = full.scan(*names), full.local(*names)
    assert found.to_arrow().equals(expected.to_arrow())
    assert found.schema == expected.schema
    where = "n % 1000 between 390 and 410"
    assert found.filter(where).to_arrow() == expected.filter(where).to_arrow()
    assert found.skip(390).head(30).to_arrow() == expected.skip(390).head(30).to_arrow()
    assert found.tail(5).to_arrow() == expected.tail(5).to_arrow()
    assert found.count() == expected.count()


def test_urls_and_paths_mix(full: Lake) -> None:
    url, path = f"{full.url}/day=1", str(full.folder / "day=2")
    found = fs.scan([url, path, url], storage_options=full.options).select("n").to_arrow()
    expected = full.local("/day=1", "/day=2", "/day=1").select("n").to_arrow()
    assert found == expected


def test_the_trace_counts_what_the_server_sees(full: Lake) -> None:
    for scan in (
        full.scan(""),
        full.scan("").filter("n between 2100 and 2110"),
        full.scan("/day=1/part-1.parquet").tail(3),
    ):
        fretsaw.cache.clear()
        full.proxy.seen.clear()
        with fs.trace() as t:
            scan.to_arrow()
        reads = [seen for seen in full.proxy.reads if seen.status != 404]  # a folder is no file
        assert (t.requests, t.bytes_read) == (len(reads), sum(seen.sent for seen in reads))


def test_the_end_of_a_file_comes_with_the_first_request(lake: Lake) -> None:
    lake.put("a.parquet", parquet(0))
    scan = lake.scan("/a.parquet").filter("n = 500")
    assert scan.to_arrow()["n"].to_pylist() == [500]
    (only,) = lake.proxy.seen
    assert only.headers["range"].startswith("bytes=-")


def test_a_file_that_is_unchanged_is_not_read_again(lake: Lake) -> None:
    lake.put("a.parquet", parquet(0))
    scan = lake.scan("/a.parquet").filter("n = 500")
    scan.to_arrow()
    lake.proxy.seen.clear()
    assert scan.to_arrow().num_rows == 1
    assert [(seen.status, seen.sent) for seen in lake.proxy.seen] == [(304, 0)]
    lake.proxy.seen.clear()
    lake.scan("").filter("n = 500").to_arrow()
    (list_request,) = (seen for seen in lake.proxy.seen if "list-type" in seen.path)
    assert not lake.proxy.reads[:-1], list_request  # but for the question whether it is a file


def test_a_new_version_is_read_by_the_next_scan(lake: Lake) -> None:
    lake.put("a.parquet", parquet(0))
    scan = lake.scan("/a.parquet").filter("n < 3 or n > 5000")
    assert scan.count() == 3
    lake.put("a.parquet", parquet(6000))
    assert scan.count() == 1000


def large(first: int) -> bytes:
    """A file whose pages do not come along with its end."""
    sink = io.BytesIO()
    values = pa.array(range(first, first + 300_000))
    pq.write_table(
        pa.table({"n": values, "m": values}), sink, use_dictionary=False, compression="none",
        row_group_size=100_000, write_page_index=True,
    )  # fmt: skip
    return sink.getvalue()


def test_a_file_that_changes_while_it_is_read_is_an_error(lake: Lake) -> None:
    lake.put("a.parquet", large(0))
    with fs.open(f"{lake.url}/a.parquet", storage_options=lake.options) as file:
        lake.put("a.parquet", large(7))
        with pytest.raises(fs.StorageError, match=r"a\.parquet: the file changed"):
            file.scan().filter("n < 10").to_arrow()


def test_parts_read_the_version_that_was_planned(lake: Lake) -> None:
    lake.put("a.parquet", large(0))
    parts = pickle.loads(pickle.dumps(lake.scan("/a.parquet").splits(1 << 20)))
    assert sum(part.count() for part in parts) == 300_000
    lake.put("a.parquet", large(5))
    fretsaw.cache.clear()
    with pytest.raises(fs.StorageError, match="the file changed"):
        parts[0].to_arrow()


def test_a_file_that_is_removed_while_it_is_read_is_an_error(lake: Lake) -> None:
    lake.put("a.parquet", large(0))
    with fs.open(f"{lake.url}/a.parquet", storage_options=lake.options) as file:
        obstore.delete(lake._store, f"{lake._prefix}/a.parquet")
        with pytest.raises(fs.StorageError, match="it is gone"):
            file.scan().head(3).to_arrow()


def test_what_is_not_there_is_not_found(lake: Lake) -> None:
    with pytest.raises(fs.SourceNotFoundError, match="none: no Parquet or ORC file"):
        lake.scan("/none").count()
    with pytest.raises(fs.SourceNotFoundError, match=r"\*\.parquet: no Parquet or ORC file"):
        lake.scan("/*.parquet").count()
    with pytest.raises(fs.SourceNotFoundError, match="no such file"):
        fs.open(f"{lake.url}/none.parquet", storage_options=lake.options)
    with pytest.raises(fs.SourceNotFoundError, match="no such bucket"):
        fs.scan("s3://nobody-has-this/x", storage_options=lake.options).count()
    lake.put("empty.parquet", b"")
    with pytest.raises(fs.FileFormatError, match="is empty"):
        lake.scan("/empty.parquet").count()


def test_stores_and_file_systems_can_be_handed_over(lake: Lake) -> None:
    lake.put("day=1/a.parquet", parquet(0))
    expected = lake.local("").to_arrow()
    found = fs.scan(lake._prefix, storage_options=lake._store)
    assert found.to_arrow() == expected
    paths = found.with_file_path().head(1).to_arrow()["path"].to_pylist()
    assert paths == [f"{lake.url}/day=1/a.parquet"]
    assert pickle.loads(pickle.dumps(found)).count() == 1000
    memory: Any = obstore.store.MemoryStore()
    obstore.put(memory, "x/day=1/a.parquet", parquet(0))
    assert fs.scan("x/*", storage_options=memory).select("n").to_arrow() == expected.select(["n"])
    system = fsspec.filesystem("memory")
    system.pipe(f"/{lake._prefix}/day=1/a.parquet", parquet(0))
    assert fs.scan(f"/{lake._prefix}", storage_options=system).to_arrow() == expected


def test_other_protocols_are_read_by_fsspec(tmp_path: Path) -> None:
    system = fsspec.filesystem("memory")
    root = uuid.uuid4().hex
    for day in (1, 2):
        system.pipe(f"/{root}/day={day}/a.parquet", parquet(day))
    lake = fs.scan(f"memory://{root}")
    assert lake.filter("day = 2").select("n").head(2).to_arrow().to_pydict() == {"n": [2, 3]}
    assert fs.scan(f"memory://{root}/*/a.parquet").count() == 2000
    assert fs.scan(f"memory://{root}/day={{1,2}}/a.parquet").count() == 2000
    with fs.open(f"memory://{root}/day=1/a.parquet") as file:
        system.pipe(f"/{root}/day=1/a.parquet", parquet(5))
        with pytest.raises(fs.StorageError, match="the file changed"):
            file.scan().to_arrow()
    with pytest.raises(fs.SourceNotFoundError, match="no Parquet or ORC file"):
        fs.scan(f"memory://{root}/none").count()
    with pytest.raises(fs.StorageError, match="no protocol that fsspec knows"):
        fs.scan("nonsense://x/y").count()


def test_web_servers_serve_files() -> None:
    server = servers.RangeServer()
    try:
        server.files = {"/a b.parquet": b"", "/a%20b.parquet": parquet(0), "/c": parquet(7)}
        expected = pq.read_table(io.BytesIO(parquet(0)))
        for has_tags in (True, False):
            server.has_tags = has_tags
            fretsaw.cache.clear()
            url = f"{server.url}/a%20b.parquet"
            assert fs.scan(url).to_arrow() == expected
            assert fs.scan(f"{server.url}/{{a%20b.parquet,c}}").count() == 2000
            assert fs.scan(f"{server.url}/moved/a%20b.parquet").count() == 1000
            assert fs.scan(url + "?signature=x").filter("n = 3").count() == 1
            server.files["/d"] = large(0)
            with fs.open(f"{server.url}/d") as file:
                server.files["/d"] = large(0)[:-4] + b"PAR2"
                if not has_tags:
                    server.files["/d"] += b"longer"
                with pytest.raises(fs.StorageError, match="the file changed"):
                    file.scan().filter("n < 10").to_arrow()
        with pytest.raises(fs.SourceNotFoundError, match="no such file"):
            fs.scan(f"{server.url}/none").count()
        server.has_ranges = False
        fretsaw.cache.clear()
        with pytest.raises(fs.StorageError, match="does not answer range requests"):
            fs.scan(f"{server.url}/c").count()
    finally:
        server.close()


def test_what_reads_from_afar_is_imported_when_a_url_asks(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(parquet(0))
    program = (
        "import sys, fretsaw as fs; fs.scan(sys.argv[1]).to_arrow(); "
        "print({'obstore', 'fsspec', 'asyncio', 'fretsaw.storage.remote'} & set(sys.modules))"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "a.parquet")]
    assert subprocess.check_output(arguments, text=True).strip() == "set()"


def test_requests_side_by_side_are_bounded(full: Lake) -> None:
    full.proxy.delay = 0.02
    try:
        options = {**full.options, "max_requests": 2}
        fs.scan(full.url, storage_options=options).to_arrow()
    finally:
        full.proxy.delay = 0
    reads: list[Seen] = full.proxy.reads
    assert len(reads) > 4
    for one in reads:
        assert sum(o.began <= one.began < o.ended for o in reads if o is not one) < 2 + 1


@pytest.mark.deep
def test_first_rows_need_no_full_listing(lake: Lake) -> None:
    """Against a server that pages: the second page is asked for only if it is needed."""
    names = [f"part-{number:04}.parquet" for number in range(1100)]
    data = parquet(0, 10)
    for name in names:
        obstore.put(lake._store, f"{lake._prefix}/{name}", data)
    for hive in (True, False):
        lake.proxy.seen.clear()
        scan = fs.scan(f"{lake.url}/", storage_options=lake.options, hive=hive)
        assert scan.head(3).to_arrow().num_rows == 3
        lists = [seen for seen in lake.proxy.seen if "list-type" in seen.path]
        assert len(lists) == 1
        assert len(lake.proxy.reads) <= 2
    obstore.put(lake._store, f"{lake._prefix}/z/day=1/a.parquet", data)
    with pytest.raises(fs.SchemaMismatchError, match="lies in a folder day="):
        fs.scan(f"{lake.url}/", storage_options=lake.options).count()


def test_streams_without_bytes_are_not_asked_for() -> None:
    numbers = [n * 0x9E3779B97F4A7C15 % (1 << 63) for n in range(20_000)]
    nulls = pa.nulls(len(numbers), pa.list_(pa.int64()))  # whose lengths and items are no bytes
    table = pa.table({"t": nulls, "n": numbers})
    sink = io.BytesIO()
    pa.orc.write_table(table, sink, compression="uncompressed")
    assert len(sink.getvalue()) > 128 << 10  # so that not all of it comes with the end
    memory: Any = obstore.store.MemoryStore()
    obstore.put(memory, "x/a.orc", sink.getvalue())
    assert fs.scan("x/", storage_options=memory).to_arrow().equals(table)
