"""How things show themselves: sizes as people say them, few of many names, bars and small tables.

Text goes to a terminal, HTML to a notebook; colours of the latter are those of the page around it.
"""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from fretsaw.model.runs import Int64Array

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_SHADES = " ░▒▓█"
_PARTS = 60
"""Into how many parts a bar divides the rows."""


def size(count: int) -> str:
    """A number of bytes as people say it.

    >>> size(153_600)
    '150 KB'
    """
    amount = float(count)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "bytes" else f"{amount:.1f} {unit}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names, or the first of many and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b, ... and 1 more'
    """
    shown = ", ".join(names[:most])
    return f"{shown}, ... and {len(names) - most:,} more" if len(names) > most else shown


def html_table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, as a small table."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def text_bar(starts: Int64Array, ends: Int64Array, total: int) -> str:
    """The runs from `starts` to `ends` of all rows as a bar: the more of a part, the darker it is.

    >>> text_bar(np.array([30]), np.array([45]), 60)
    '                              ███████████████               '
    """
    shares = _shares(starts, ends, total)
    # What is not empty shows, and only what is full is full.
    levels = np.ceil(shares * (len(_SHADES) - 2)).astype(int) + (shares >= 1)
    return "".join(_SHADES[level] for level in levels)


def html_bar(starts: Int64Array, ends: Int64Array, total: int) -> str:
    """The same as a picture."""
    parts = "".join(
        f'<rect x="{place}" width="1" height="1" fill-opacity="{max(share, 0.15):.2f}"/>'
        for place, share in enumerate(_shares(starts, ends, total).tolist())
        if share
    )
    return (
        f'<svg viewBox="0 0 {_PARTS} 1" preserveAspectRatio="none" fill="currentColor" '
        'style="width:30em;height:1em;border:1px solid currentColor">'
        f"{parts}</svg>"
    )


def _shares(starts: Int64Array, ends: Int64Array, total: int) -> NDArray[np.float64]:
    """Which share of each part of the rows is in the runs."""
    if not total:
        return np.zeros(_PARTS)
    selected = np.cumsum(ends - starts)
    before = np.stack((selected - (ends - starts), selected), axis=1).ravel()
    rows = np.concatenate(([0], np.stack((starts, ends), axis=1).ravel(), [total]))
    so_far = np.concatenate(([0], before, before[-1:] if len(before) else [0]))
    edges = np.linspace(0, total, _PARTS + 1)
    shares = np.diff(np.interp(edges, rows, so_far)) / (total / _PARTS)
    return np.where(shares > 1 - 1e-9, 1.0, np.where(shares < 1e-9, 0.0, shares))
