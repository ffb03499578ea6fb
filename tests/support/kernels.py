"""The compiled kernels switched off for a while, in this process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

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
