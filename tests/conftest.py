"""What all tests share: Hypothesis profiles, the corpus of files by other writers, one Spark."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from fretsaw.storage import footer_cache
from tests.support import servers
from tests.support.kernels import parametrize_decoders, without_kernels
from tests.support.proxy import Proxy
from tests.support.writers import missing, need

settings.register_profile("default", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("FRETSAW_HYPOTHESIS", "default"))

CORPUS = Path(os.environ["FRETSAW_CORPUS"]) if "FRETSAW_CORPUS" in os.environ else None
SPARK_CONFIG = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.timeType.enabled": "true",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker does all that needs Spark, and begins with it, while others do the rest."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if item.path.name == "command-line.md":  # a fresh process for every line
            item.add_marker("slow")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize_decoders(metafunc)


@pytest.fixture(autouse=True)
def decoder(request: pytest.FixtureRequest) -> Iterator[None]:
    """Who decodes: the kernels, where there are some, unless a test is run without them."""
    if getattr(request, "param", None) != "arrow":
        yield
        return
    with without_kernels():
        yield


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of Parquet and ORC files by other writers."""
    if CORPUS is None:
        pytest.skip("FRETSAW_CORPUS is not set: no files by other writers to read")
    return CORPUS


@pytest.fixture(scope="session")
def s3_proxy() -> Iterator[Proxy]:
    """A server for S3, behind a proxy that counts."""
    command = servers.moto()
    if command is None:
        pytest.skip("there is no server for S3: `make test` installs one")
    with servers.s3_server(command) as port:
        proxy = Proxy(port)
        yield proxy
        proxy.close()


@pytest.fixture
def s3(s3_proxy: Proxy) -> Proxy:
    """The same, with nothing seen or spoilt yet."""
    s3_proxy.clear()
    return s3_proxy


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The one Spark session of a process."""
    sql = need("pyspark.sql")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        missing("Java, which Spark needs,")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master("local[2]")
        session = builder.config(map=SPARK_CONFIG).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def _no_memory_of_other_tests() -> None:
    """Every test reads its files as if for the first time."""
    footer_cache.clear()
