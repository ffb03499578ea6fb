"""The store that the examples of `remote.md` read from: a server of the tests, on this machine."""

import io
from collections.abc import Iterator
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fretsaw.storage import footer_cache
from tests.support import servers

# They belong to the generator of the site, which `make docs` installs.
collect_ignore = ["hooks.py", "sessions.py"]


@pytest.fixture(autouse=True)
def _store(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> Iterator[None]:
    if request.path.name != "remote.md":
        yield
        return
    command = servers.moto()
    if command is None:
        pytest.skip("there is no server for S3: `make test` installs one")
    with servers.s3_server(command) as port:
        for day in (1, 2):
            obstore.put(servers.store(port), f"trips/day={day}/a.parquet", _trips(day))
        doctest_namespace["endpoint"] = f"http://127.0.0.1:{port}"
        doctest_namespace["parquet_bytes"] = _trips(1)
        footer_cache.clear()
        yield


def _trips(day: int) -> bytes:
    sink = io.BytesIO()
    first = 100 * day - 100
    fares = pa.array([float(fare) for fare in range(100)])
    pq.write_table(pa.table({"id": range(first, first + 100), "fare": fares}), sink)
    return sink.getvalue()
