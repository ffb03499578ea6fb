"""What all tests share: Hypothesis profiles and the corpus of files by other writers."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from fretsaw.storage import footer_cache

settings.register_profile("default", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("FRETSAW_HYPOTHESIS", "default"))

CORPUS = Path(os.environ["FRETSAW_CORPUS"]) if "FRETSAW_CORPUS" in os.environ else None


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of Parquet and ORC files by other writers."""
    if CORPUS is None:
        pytest.skip("FRETSAW_CORPUS is not set: no files by other writers to read")
    return CORPUS


@pytest.fixture(autouse=True)
def _no_memory_of_other_tests() -> None:
    """Every test reads its files as if for the first time."""
    footer_cache.clear()
