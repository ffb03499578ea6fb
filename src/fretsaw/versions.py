"""What is installed, as it is asked for in a report of a problem."""

import os
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import fretsaw


def show_versions() -> None:
    """Print the versions of fretsaw, of its kernels, and of what they work with.

    >>> show_versions()  # doctest: +ELLIPSIS
    fretsaw   ...
    kernels   ...
    pyarrow   ...
    numpy     ...
    Python    ...
    platform  ...
    """
    for name, found in _versions():
        print(f"{name:<9} {found}")


def _versions() -> Iterator[tuple[str, str]]:
    yield "fretsaw", fretsaw.__version__
    yield "kernels", _kernels()
    yield "pyarrow", version("pyarrow")
    yield "numpy", version("numpy")
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "platform", platform.platform()
    pyspark, java = _installed("pyspark"), _java()
    if pyspark is not None:
        yield "pyspark", pyspark
    if java is not None:
        yield "Java", java


def _kernels() -> str:
    """Whether the compiled kernels are there, and are used."""
    kernels = _installed("fretsaw-kernels")
    if kernels is None:
        return "not installed: everything works, only slower; pip install ./kernels adds them"
    if os.environ.get("FRETSAW_KERNELS") == "0":
        return f"{kernels}, turned off by FRETSAW_KERNELS=0"
    return kernels


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> str | None:
    """The Java that Spark would start, as it says of itself in a file: nothing is started."""
    home, command = os.environ.get("JAVA_HOME"), shutil.which("java")
    if not home:
        if command is None:
            return None
        home = os.path.dirname(os.path.dirname(os.path.realpath(command)))
    try:
        with open(os.path.join(home, "release"), encoding="utf-8") as release:
            told = dict(line.strip().partition("=")[::2] for line in release)
    except OSError:
        return f"of unknown version, in {home}"
    return f"{told.get('JAVA_VERSION', 'of unknown version').strip(chr(34))}, in {home}"
