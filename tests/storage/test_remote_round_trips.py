"""How often a store is asked, one request after the other, and for how many bytes."""

import io
import uuid
from collections.abc import Callable

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support import servers
from tests.support.proxy import Proxy, Seen

ROWS = 300_000
MOST_BYTES = 3_000_000


def longest_chain(seen: list[Seen]) -> int:
    """How many requests came one after the other: each began when the one before had ended."""
    ordered = sorted(seen, key=lambda one: one.began)
    chains: list[int] = []
    for one in ordered:
        before = [
            chain for chain, other in zip(chains, ordered, strict=False) if other.ended <= one.began
        ]
        chains.append(1 + max(before, default=0))
    return max(chains, default=0)


def table() -> pa.Table:
    random = np.random.default_rng(7)
    columns = {"n": np.arange(ROWS), "city": random.choice(["NYC", "LA", "SF"], ROWS)}
    return pa.table(columns | {f"x{at}": random.random(ROWS) for at in range(6)})


@pytest.fixture(scope="module")
def urls(s3_proxy: Proxy) -> dict[str, str]:
    prefix, store = uuid.uuid4().hex, servers.store(s3_proxy.upstream)
    found = {}
    for name in ("parquet", "orc"):
        sink = io.BytesIO()
        if name == "orc":
            orc.write_table(table(), sink, stripe_size=4 << 20, compression="zstd")
        else:
            pq.write_table(table(), sink, row_group_size=100_000, write_page_index=True,
                           data_page_size=64 << 10, use_dictionary=["city"])  # fmt: skip
        obstore.put(store, f"{prefix}/a.{name}", sink.getvalue())
        found[name] = f"s3://{servers.BUCKET}/{prefix}/a.{name}"
    return found


WORK: dict[str, Callable[[fs.Scan], pa.Table]] = {
    "range": lambda scan: scan.filter("n between 120000 and 120900").to_arrow(),
    "point": lambda scan: scan.filter("n = 120345").to_arrow(),
    "offset": lambda scan: scan.skip(220_000).head(10).to_arrow(),
    "tail": lambda scan: scan.tail(10).to_arrow(),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.parametrize("end", [512 << 10, 4 << 10], ids=["indexes in the end", "elsewhere"])
@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_round_trips_and_bytes_are_few(
    urls: dict[str, str],
    s3: Proxy,
    name: str,
    end: int,
    work: Callable[[fs.Scan], pa.Table],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fretsaw.storage import remote

    monkeypatch.setattr(remote, "UNKNOWN_SIZE", end)
    s3.delay = 0.05
    try:
        with fs.trace() as traced:
            found = work(fs.scan(urls[name], storage_options=servers.options(s3.port)))
    finally:
        s3.delay = 0
    assert found.equals(work(fs.scan(urls[name], storage_options=servers.options(s3.port))))
    whole = table()
    first = {"range": 120_000, "point": 120_345, "offset": 220_000, "tail": ROWS - 10}
    (kind,) = (known for known, one in WORK.items() if one is work)
    assert found == whole.slice(first[kind], found.num_rows)
    seen = s3.seen[: traced.requests]
    most = {"parquet": 3 if end > 100_000 else 4, "orc": 6}[name]
    assert longest_chain(seen) <= most
    assert traced.bytes_read == sum(one.sent for one in seen) <= MOST_BYTES


def test_files_of_a_folder_are_opened_side_by_side(s3: Proxy) -> None:
    prefix, store = uuid.uuid4().hex, servers.store(s3.upstream)
    for at in range(24):
        sink = io.BytesIO()
        pq.write_table(pa.table({"n": range(at * 100, at * 100 + 100)}), sink)
        obstore.put(store, f"{prefix}/day={at:02}/a.parquet", sink.getvalue())
    s3.clear()
    s3.delay = 0.05
    try:
        options = servers.options(s3.port)
        lake = fs.scan(f"s3://{servers.BUCKET}/{prefix}/", storage_options=options)
        assert lake.filter("n in (50, 1250)").select("n").to_arrow()["n"].to_pylist() == [50, 1250]
    finally:
        s3.delay = 0
    assert len(s3.seen) == 25
    assert longest_chain(s3.seen) <= 4
