"""The compiled kernels switched off for a while, in this process, and tests that run both ways."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from unittest.mock import patch

import pytest

from fretsaw.formats.kernels import load_kernels


@contextmanager
def without_kernels() -> Iterator[None]:
    """Everything goes the way through Arrow, as where the kernels are not installed."""
    with patch.dict(os.environ, FRETSAW_KERNELS="0"):
        load_kernels.cache_clear()
        try:
            yield
        finally:
            load_kernels.cache_clear()


DECODERS = ("kernels", "arrow")
MORE = int(os.environ.get("FRETSAW_MORE", "1"))


def each_decoder(arrow: Literal["fast", "slow", "deep"] = "deep") -> pytest.MarkDecorator:
    """Tests that run with the kernels and again without them, the latter in this kind of run.

    Deep runs do so where `FRETSAW_MORE` asks for more than usual.
    """
    return pytest.mark.decoders(arrow=arrow)


def parametrize_decoders(metafunc: pytest.Metafunc) -> None:
    """Run what is marked so with each decoder, where there are kernels."""
    mark = metafunc.definition.get_closest_marker("decoders")
    if mark is None or load_kernels() is None:
        return
    tier = mark.kwargs["arrow"]
    if tier == "deep" and MORE == 1:
        return
    marks = () if tier == "fast" else getattr(pytest.mark, tier)
    kernels, arrow = DECODERS
    decoders = [kernels, pytest.param(arrow, marks=marks)]
    metafunc.parametrize("decoder", decoders, indirect=True)
