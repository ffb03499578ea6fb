"""The kernels are used where they can be, and missed only in speed."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.formats.kernels import PROTOCOL, load_kernels
from tests.support.kernels import without_kernels

ROWS = 1_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"id": range(ROWS)}), path, write_page_index=True)
    return path


def run(script: str, module: str | None, tmp_path: Path, **environment: str) -> str:
    """What a fresh process prints that finds this text as the module of the kernels."""
    packages = tmp_path / "packages"
    packages.mkdir()
    if module is not None:
        (packages / "fretsaw_kernels.py").write_text(module)
    inherited = {name: value for name, value in os.environ.items() if name != "FRETSAW_KERNELS"}
    source = str(Path(fs.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**inherited, "PYTHONPATH": f"{packages}{os.pathsep}{source}", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


LOAD = (
    "from fretsaw.formats.kernels import load_kernels\n"
    "print('loaded', load_kernels() is not None, load_kernels() is load_kernels())"
)


def test_kernels_of_the_same_protocol_are_used(tmp_path: Path) -> None:
    assert run(LOAD, f"PROTOCOL = {PROTOCOL}", tmp_path) == "loaded True True\n"


def test_the_variable_turns_them_off(tmp_path: Path) -> None:
    module = f"PROTOCOL = {PROTOCOL}"
    assert run(LOAD, module, tmp_path, FRETSAW_KERNELS="0") == "loaded False True\n"


def test_without_them_there_is_no_word(tmp_path: Path) -> None:
    # A None in sys.modules is how Python marks a module that is not there.
    absent = "import sys; sys.modules['fretsaw_kernels'] = None\n" + LOAD
    assert run(absent, None, tmp_path) == "loaded False True\n"


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (f"PROTOCOL = {PROTOCOL + 1}", f"speak protocol {PROTOCOL + 1}"),
        ("", "speak protocol None"),
        ("raise ImportError('libc is too old')", "cannot be imported (libc is too old)"),
    ],
    ids=["other protocol", "no protocol", "broken"],
)
def test_kernels_that_do_not_fit_are_left_alone_with_one_warning(
    module: str, reason: str, tmp_path: Path, path: str
) -> None:
    script = LOAD + f"\nimport fretsaw as fs\nprint(fs.scan({path!r}).to_arrow().num_rows)"
    printed = run(script, module, tmp_path)
    assert "loaded False True" in printed
    assert f"{ROWS}\n" in printed
    assert printed.count("RuntimeWarning") == 1
    assert reason in printed
    assert "pip install ./kernels" in printed


def test_importing_fretsaw_does_not_import_them(tmp_path: Path) -> None:
    script = "import sys, fretsaw; print('fretsaw_kernels' in sys.modules)"
    assert run(script, f"PROTOCOL = {PROTOCOL}", tmp_path) == "False\n"


def test_they_can_be_switched_off_for_a_while() -> None:
    before = load_kernels()
    with without_kernels():
        assert load_kernels() is None
    assert load_kernels() is before
