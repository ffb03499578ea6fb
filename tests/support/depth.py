"""How far a test goes: a few cases in every run, the others only in the deep runs."""

from collections.abc import Iterable
from typing import Any

import pytest


def few_of(values: Iterable[Any], few: int = 1) -> list[Any]:
    """Values for `parametrize`, of which only the first few are tried outside of deep runs."""
    return [
        value if number < few else pytest.param(value, marks=pytest.mark.deep)
        for number, value in enumerate(values)
    ]
