"""Files of both formats in folders, and files that count as settled."""

from pathlib import Path

import pytest

from fretsaw.storage import descriptor
from tests.support.file_lists import put
from tests.support.formats import TURNS, writer_of


@pytest.fixture(params=sorted(TURNS))
def turns(request: pytest.FixtureRequest) -> str:
    """Which formats the files of a scan have."""
    name: str = request.param
    return name


@pytest.fixture
def tree(tmp_path: Path, turns: str) -> Path:
    """Files in folders whose values are in sorted order of their paths, and what is left out."""
    root = tmp_path / "tree"
    for at, name in enumerate(["a/1.parquet", "a/2.bin", "b/c/3", "b/d.parquet", "z.parquet"]):
        put(root / name, [10 * at, 10 * at + 1], writer_of(turns, at))
    for name in ["_x.parquet", ".x.parquet", "a/_metadata", "_tmp/x.parquet", "b/.git/x.parquet"]:
        put(root / name, [-1])
    (root / "readme.txt").write_text("not a Parquet file, and longer than twelve bytes")
    (root / "b" / "empty.txt").write_text("")
    return root


@pytest.fixture
def lake(tmp_path: Path, turns: str) -> Path:
    """Two levels of folders, in a folder whose name looks like one but is above."""
    root = tmp_path / "above=1" / "lake"
    for year in (2023, 2024):
        for city in ("NYC", "San%20Jose"):
            base = year * 10 + len(city)
            folder = root / f"year={year}" / f"city={city}"
            put(folder / "1.parquet", [base, base + 1], writer_of(turns, year))
            put(folder / "2.parquet", [base + 2], writer_of(turns, year + 1))
    return root


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled as soon as they are written."""
    monkeypatch.setattr(descriptor, "SETTLED_NS", 0)
