"""How far a test goes: a few cases in every run, some more in `make test`, all in deep runs."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def in_depth(values: Iterable[Any], fast: int, usual: int) -> list[Any]:
    """Values for `parametrize`: those of every run, of `make test` only, and of deep runs only."""
    return [
        value
        if number < fast
        else pytest.param(value, marks=pytest.mark.slow if number < usual else pytest.mark.deep)
        for number, value in enumerate(values)
    ]


def tiers(
    argument: str,
    values: Iterable[Any],
    quick: Collection[Any] = (),
    often: Collection[Any] | None = None,
) -> pytest.MarkDecorator:
    """Parameters: some for every run, some for those that may be slow, the rest for deep ones."""

    def marks(value: Any) -> Any:
        if value in quick:
            return ()
        return pytest.mark.slow if often is None or value in often else pytest.mark.deep

    return pytest.mark.parametrize(argument, [pytest.param(v, marks=marks(v)) for v in values])
