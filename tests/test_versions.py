"""What `show_versions` prints, held against what is installed."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fretsaw as fs


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    fs.show_versions()
    lines = capsys.readouterr().out.splitlines()
    return {name: found.strip() for name, _, found in (line.partition(" ") for line in lines)}


def test_versions_are_those_of_the_modules(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys)
    assert found["fretsaw"] == fs.__version__
    assert found["pyarrow"] == pa.__version__
    assert found["numpy"] == np.__version__
    assert found["Python"].split()[0] == platform.python_version()
    assert found["platform"] == platform.platform()


def test_packages_that_are_not_there_are_left_out_and_kernels_said_to_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as alone:
        alone.setattr(sys, "path", [str(tmp_path)])
        alone.delenv("JAVA_HOME", raising=False)
        alone.setenv("PATH", str(tmp_path))
        for package in ("pyarrow", "numpy"):
            install(tmp_path, package, "9.9")
        found = shown(capsys)
    assert {"pyspark", "Java"}.isdisjoint(found)
    assert found["pyarrow"] == "9.9"
    assert "not installed" in found["kernels"]
    assert "pip install ./kernels" in found["kernels"]


def install(folder: Path, package: str, version: str) -> None:
    """Leave what an installer leaves of a package."""
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")


@pytest.mark.parametrize(
    ("setting", "said"), [("0", "7.1, turned off by FRETSAW_KERNELS=0"), ("1", "7.1")]
)
def test_kernels_that_are_turned_off_are_said_to_be(
    setting: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(tmp_path, "fretsaw-kernels", "7.1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FRETSAW_KERNELS", setting)
    assert shown(capsys)["kernels"] == said


def test_java_is_what_its_home_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "jre"
    home.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert shown(capsys)["Java"] == f"of unknown version, in {home}"
    (home / "release").write_text('IMPLEMENTOR="Somebody"\nJAVA_VERSION="21.0.2"\n')
    assert shown(capsys)["Java"] == f"21.0.2, in {home}"


def test_nothing_is_imported_or_started_for_it() -> None:
    code = "import fretsaw as fs, sys; fs.show_versions(); print('pyspark' in sys.modules)"
    environment = {**os.environ, "JAVA_HOME": "/no/such/java"}
    output = subprocess.check_output([sys.executable, "-c", code], text=True, env=environment)
    assert output.endswith("False\n")
    if any(found.metadata["Name"] == "pyspark" for found in metadata.distributions()):
        assert f"pyspark   {metadata.version('pyspark')}\n" in output
