"""The `fretsaw` command in this process and in one of its own."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROWS, MANY = 10_000, 1_000_000
COMMAND = [sys.executable, "-m", "fretsaw.cli"]


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: bytes
    err: str


Run = Callable[..., Ran]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def damage(path: Path) -> None:
    """Overwrite the header of the first page."""
    data = bytearray(path.read_bytes())
    data[4:24] = b"\xff" * 20
    path.write_bytes(data)
