"""How many values a stream has, and how much the lengths in it are together.

Arrow's reader makes room for whatever lengths say, and crashes where they are below zero, so that
they are looked at before. Where runs begin is found for many of them at once.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fretsaw.formats.orc.metadata import MalformedOrc
from fretsaw.formats.orc.runs import (
    BYTE_RUNS,
    MOST_VALUES,
    WIDTHS,
    Runs,
    UInt64s,
    expanded_bytes,
    from_zigzag,
    integer_runs,
    varint,
)
from fretsaw.formats.orc.streams import Coding
from fretsaw.model.blocks import Int64s

_WINDOW = 64 << 10  # bytes of many runs that are looked through at once
_REPEAT = 4  # bytes of a run that is one number below 128 again and again, by differences of 0
_REPEATS = (0xC0, 0xC1)  # what such a run begins with
_SHORT, _PLAIN = 64, 128  # what repeats of few and values as they are begin with is below
_DIFFERENCES = 192  # and from here on those that are told by differences


def total_length(data: bytes, version: int, count: int, longest: int, enough: int) -> int:
    """What the first so many lengths are together: exact if that is more than `enough`.

    Each must be one: not below zero, and no more than the longest that there can be.
    """
    if version == 1:
        return _total_v1(data, count, longest)
    return _total_v2(data, count, longest, enough)


def count_values(data: bytes, coding: Coding, version: int) -> int:
    """How many values a stream has in runs that are there whole."""
    if coding in ("bits", "byte runs"):
        found = int(_begins(data, MOST_VALUES, BYTE_RUNS, 0)[1].sum())
        return 8 * found if coding == "bits" else found
    if version == 1:
        return int(_begins(data, MOST_VALUES, integer_runs(1, signed=False), 0)[1].sum())
    return int(_begins_v2(data, MOST_VALUES)[1].sum())


def count_ones(data: bytes, count: int) -> int:
    """How many of the first bits are set."""
    stored = np.frombuffer(expanded_bytes(data, most=count // 8 + 1), np.uint8)
    return int(np.unpackbits(stored, count=min(count, 8 * len(stored))).sum())


def has_beyond(data: bytes, version: int, most: int) -> bool:
    """Whether some integer with a sign is below zero or above `most`, which is below 64."""
    runs = integer_runs(version, signed=True)
    if version == 1:
        begins, _ = _begins(data, MOST_VALUES, runs, 0)
        return any(
            _is_odd_or_above(np.array(runs.values(data, begin), np.uint64), 2 * most).any()
            for begin in begins.tolist()
        )
    begins, _ = _begins_v2(data, MOST_VALUES)
    stored = np.frombuffer(data, np.uint8)
    header, second, third, fourth = (
        stored[np.minimum(begins + n, len(stored) - 1)] for n in range(_REPEAT)
    )
    is_repeat = np.isin(header, _REPEATS) & (fourth == 0) & ~_is_odd_or_above(third, 2 * most)
    is_short = (header < 8) & ~_is_odd_or_above(second, 2 * most)
    closer = begins[~is_repeat & ~is_short].tolist()
    return any(_is_odd_or_above(runs.values(data, begin), 2 * most).any() for begin in closer)


def _is_odd_or_above(stored: npt.NDArray[Any], most: int) -> npt.NDArray[np.bool_]:
    """Which integers, whose sign is the last bit, are below zero or above a limit."""
    found: npt.NDArray[np.bool_] = (stored & 1 == 1) | (stored > most)
    return found


# Version 1 --------------------------------------------------------------------------------------


def _total_v1(data: bytes, count: int, longest: int) -> int:
    runs, total = integer_runs(1, signed=False), 0
    for begin, size in zip(*_begins(data, count, runs, 0), strict=True):
        values = runs.values(data, int(begin))[:size]
        if max(values) > longest:
            raise _no_length()
        total += sum(values)
    return total


def _begins(data: bytes, count: int, runs: Runs, begin: int) -> tuple[Int64s, Int64s]:
    """Where runs begin, one by one, and how many of the first so many values each has."""
    begins, sizes = [], []
    try:
        while count > 0:
            size, end = runs.span(data, begin)
            if end > len(data):
                break
            begins.append(begin)
            sizes.append(min(size, count))
            begin, count = end, count - size
    except IndexError:  # the last run is cut off
        pass
    return np.array(begins, np.int64), np.array(sizes, np.int64)


# Version 2 --------------------------------------------------------------------------------------


def _total_v2(data: bytes, count: int, longest: int, enough: int) -> int:
    begins, sizes = _begins_v2(data, count)
    stored = np.frombuffer(data, np.uint8)
    header, second, third, fourth = (
        stored[np.minimum(begins + n, len(stored) - 1)] for n in range(_REPEAT)
    )
    is_plain = (header >= _SHORT) & (header < _PLAIN)
    is_repeat = np.isin(header, _REPEATS) & (third < 128) & (fourth == 0)
    most = np.where(header < 8, second, np.where(is_repeat, third, 0)).astype(np.float64)
    most[is_plain] = _largest()[header[is_plain]]
    if (most[~is_plain] > longest).any():
        raise _no_length()
    totals = most * sizes
    closer = (~is_plain & ~is_repeat & (header >= 8)) | (is_plain & (most > longest))
    for run in closer.nonzero()[0].tolist():
        totals[run] = _total_of_run(data, int(begins[run]), int(sizes[run]), longest)
    if float(totals.sum()) > enough:
        for run in (is_plain | (header >= _DIFFERENCES) & ~is_repeat).nonzero()[0].tolist():
            begin, size = int(begins[run]), int(sizes[run])
            if is_plain[run]:
                totals[run] = _total_of_packed(stored, begin, size)
            else:
                totals[run] = _values(data, begin, size).sum()
    return int(totals.sum())


def _total_of_run(data: bytes, begin: int, count: int, longest: int) -> int:
    """What lengths are together, or as much as they could be by their first and its changes."""
    header = data[begin]
    if header >= _DIFFERENCES:
        base, place = varint(data, begin + 2)
        step = from_zigzag(varint(data, place)[0])
        code = header >> 1 & 31
        steepest = max(abs(step), (1 << WIDTHS[code]) - 1 if code else 0) * (count - 1)
        if base - (steepest if step < 0 else 0) >= 0 and base + steepest <= longest:
            return count * (base + (steepest if step > 0 or code else 0))
    values = _values(data, begin, count)
    if int(values.max()) > longest:
        raise _no_length()
    return int(values.sum())


def _total_of_packed(stored: npt.NDArray[np.uint8], begin: int, count: int) -> float:
    """The sum of integers of so many bits each: that of each bit, times what it is worth."""
    width = WIDTHS[stored.item(begin) >> 1 & 31]
    packed = stored[begin + 2 : begin + 2 + (width * count + 7 >> 3)]
    ones = np.unpackbits(packed, count=width * count).reshape(count, width).sum(axis=0)
    return float(ones @ np.exp2(np.arange(width - 1, -1, -1)))


def _values(data: bytes, begin: int, count: int) -> UInt64s:
    values: UInt64s = integer_runs(2, signed=False).values(data, begin)
    return values[:count]


def _begins_v2(data: bytes, count: int) -> tuple[Int64s, Int64s]:
    """Where runs begin, and how many of the first so many values each has.

    Where a run would end is found for each byte as if one began there. From the first run on,
    every sixteenth then is found one by one, and those between them at once.
    """
    begins, sizes, begin = [], [], 0
    runs = integer_runs(2, signed=False)
    while count > 0 and len(data) - begin > _WINDOW + _REPEAT:
        lengths, ends = _spans(np.frombuffer(data, np.uint8, _WINDOW + _REPEAT, begin))
        following = np.append(np.minimum(ends, _WINDOW), _WINDOW)
        far = following
        for _ in range(4):
            far = far[far]
        steps, place = [], 0
        while place < _WINDOW:
            steps.append(place)
            distant = far.item(place)
            if distant != place:
                place = distant
                continue
            try:
                place = runs.span(data, begin + place)[1] - begin
            except IndexError:
                break
        is_run = np.zeros(_WINDOW + 1, np.bool_)
        between = np.array(steps)
        for _ in range(16):
            is_run[between] = True
            between = following[between]
        (found,) = is_run[:_WINDOW].nonzero()
        together, end = int(lengths[found].sum()), begin + max(place, int(ends[found[-1]]))
        if together > count or end > len(data) or place < _WINDOW:
            break
        begins.append(begin + found)
        sizes.append(lengths[found])
        begin, count = end, count - together
    rest = _begins(data, count, runs, begin)
    return np.concatenate([*begins, rest[0]]), np.concatenate([*sizes, rest[1]])


def _spans(window: npt.NDArray[np.uint8]) -> tuple[Int64s, Int64s]:
    """How many values a run has and where it ends, for each byte as if a run began there.

    Runs that take more to tell end where they begin.
    """
    header, second, third, fourth = (window[n : n + _WINDOW] for n in range(_REPEAT))
    lengths, sizes = (of[header.astype(np.int64) << 8 | second] for of in _spans_by_two_bytes())
    sizes[(header >= _REPEATS[0]) & (header <= _REPEATS[1]) & (third < 128) & (fourth == 0)] = (
        _REPEAT
    )
    return lengths, np.arange(_WINDOW) + sizes


@cache
def _spans_by_two_bytes() -> tuple[Int64s, Int64s]:
    """Values and bytes of the runs that begin with two bytes; 0 bytes if they do not tell."""
    header, second = np.divmod(np.arange(1 << 16), 256)
    lengths = ((header & 1) << 8 | second) + 1
    sizes = 2 + (np.array(WIDTHS)[header >> 1 & 31] * lengths + 7 >> 3)
    lengths, sizes = (
        np.where(header < _SHORT, (header & 7) + 3, lengths),
        np.where(header < _SHORT, 2 + (header >> 3), sizes),
    )
    return lengths, np.where(header < _PLAIN, sizes, 0)


@cache
def _largest() -> npt.NDArray[np.float64]:
    """By the first byte of a run, the largest value that its width has room for."""
    widths = np.array([WIDTHS[header >> 1 & 31] for header in range(256)], np.float64)
    largest: npt.NDArray[np.float64] = np.exp2(widths) - 1
    return largest


def _no_length() -> MalformedOrc:
    return MalformedOrc("lengths that are below zero, or larger than what there is")
