"""Folders with links, and paths that the system refuses: an end, and an error of ours."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs


def saved(path: Path, number: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": [number]}), path)
    return path


def numbers(source: object) -> list[int]:
    found: list[int] = fs.scan(str(source)).to_arrow()["n"].to_pylist()
    return found


@pytest.mark.parametrize("pattern", ["", "**", "**/*.parquet", "*", "**/**/*.parquet"])
def test_links_to_their_own_folder_are_walked_once(tmp_path: Path, pattern: str) -> None:
    """Each level of two such links would double the paths."""
    for number in range(3):
        saved(tmp_path / f"{number}.parquet", number)
    (tmp_path / "a").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to(tmp_path)
    found = numbers(tmp_path / pattern)
    assert sorted(set(found)) == [0, 1, 2]
    assert len(found) <= 6  # `*` names the links themselves


def test_each_real_folder_is_walked_once(tmp_path: Path) -> None:
    """Links that lead on and on, without a circle, double the paths at each step too."""
    for number in range(30):
        saved(tmp_path / f"{number:02}" / "x.parquet", number)
        for name in ("left", "right") if number < 29 else ():
            (tmp_path / f"{number:02}" / name).symlink_to(tmp_path / f"{number + 1:02}")
    assert sorted(numbers(tmp_path)) == list(range(30))
    assert sorted(numbers(tmp_path / "**" / "x.parquet")) == list(range(30))


def test_a_linked_folder_is_walked(tmp_path: Path) -> None:
    saved(tmp_path / "elsewhere" / "deep" / "x.parquet", 7)
    lake = tmp_path / "lake"
    saved(lake / "y.parquet", 8)
    (lake / "linked").symlink_to(tmp_path / "elsewhere")
    assert numbers(lake) == [7, 8]
    assert numbers(lake / "**" / "*.parquet") == [7, 8]


def test_recursive_globs_name_files_at_any_depth(tmp_path: Path) -> None:
    for number, name in enumerate(("x", "a/x", "a/b/x", "c/x", "_no/x", "a/.no/x")):
        saved(tmp_path / f"{name}.parquet", number)
    expected = {
        "**": [2, 1, 3, 0],
        "**/x.parquet": [2, 1, 3, 0],
        "a/**/x.parquet": [2, 1],
        "**/b/*.parquet": [2],
        "**/[ac]/x.*": [1, 3],
        "*/**/x.parquet": [2, 1, 3],
        "{a,c}/**/*.parquet": [2, 1, 3],
    }
    for pattern, found in expected.items():
        assert numbers(tmp_path / pattern) == found, pattern


def test_paths_that_lead_nowhere_are_not_found(tmp_path: Path) -> None:
    file = saved(tmp_path / "x.parquet", 1)
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nothing")
    for path, why in (
        (circle, "circles"),
        (circle / "x.parquet", "circles"),
        (file / "x.parquet", "through a file"),
        (tmp_path / ("x" * 5_000), "too long"),
        (dangling, "no such file"),
        (f"{tmp_path}/\0.parquet", "no path"),
    ):
        for use in (fs.open, lambda path: fs.scan(path).count()):
            with pytest.raises(fs.SourceNotFoundError, match=why):
                use(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_folders_without_permission_are_storage_errors(tmp_path: Path) -> None:
    file = saved(tmp_path / "folder" / "x.parquet", 1)
    file.parent.chmod(0)
    try:
        for path in (file, file.parent):
            with pytest.raises(fs.StorageError, match="you may not read it"):
                fs.scan(path).count()
    finally:
        file.parent.chmod(0o700)


def test_a_folder_that_cannot_be_listed_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(fs.StorageError, match=f"{tmp_path}: you may not read it"):
        fs.scan(tmp_path).count()
