"""How far a test goes: a few cases in every run, the others only in the deep runs."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def few_of(values: Iterable[Any], few: int = 1) -> list[Any]:
    """Values for `parametrize`, of which only the first few are tried outside of deep runs."""
    return [
        value if number < few else pytest.param(value, marks=pytest.mark.deep)
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
