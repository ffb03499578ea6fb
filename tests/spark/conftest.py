"""A lake for jobs on Spark, and who plans them."""

import pytest

from tests.support.lake import Lake, make_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture(params=["driver", "tasks"])
def planner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who reads the footers."""
    pipeline = pytest.importorskip("fretsaw.spark.pipeline")
    monkeypatch.setattr(pipeline, "MANY_FILES", 1_000_000 if request.param == "driver" else 0)
    monkeypatch.setattr(pipeline, "FILES_PER_TASK", 2)
    name: str = request.param
    return name
