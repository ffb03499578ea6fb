"""Runs of bytes and integers: where one ends, and what is left of it behind some values.

A stride begins in the middle of a run nearly always, since writers do not end runs there. The rest
of that one run is written again as plain values; what follows stays as it is.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fretsaw.layout import Int64s

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_WORD = (1 << 64) - 1
_WINDOW = 64 << 10  # bytes of many runs that are looked through at once
_REPEAT = 4  # bytes of a run that is one number below 128 again and again, by differences of 0
_REPEATS = [0xC0, 0xC1]  # what such a run begins with
_MOST_BYTES, _MOST_V1 = 128, 128  # values of a run that holds them as they are

UInt64s: TypeAlias = npt.NDArray[np.uint64]
Span: TypeAlias = tuple[int, int]
"""How many values a run has, and where it ends."""
Place: TypeAlias = tuple[int, int]
"""A run, and how many of its values come before."""


class NotEnough(ValueError):
    """A run that goes on behind the bytes that are there."""


class _NoLengths(ValueError):
    """A run that holds what no length can be."""


class _Doubt(NamedTuple):
    """Which runs to look at closer, by their first byte, and what must not be true of them."""

    of: Sequence[bool]
    is_odd: Callable[[bytes, int, int], bool]


class Runs(NamedTuple):
    """One way to write runs: how to skip values, what a run holds, how plain ones are written."""

    after: Callable[[bytes, int, int], Place]
    """The run that so many values from a place on lead into, and how many of its values."""
    span: Callable[[bytes, int], Span]
    values: Callable[[bytes, int], Any]
    """As they are written: integers with a sign as zigzag."""
    written: Callable[[Any], bytes]


def integer_runs(version: int, signed: bool) -> Runs:
    """The runs of integers of one version of the encoding."""
    if version == 1:
        values = partial(_values_v1, signed=signed)
        return Runs(partial(_after, _span_v1), _span_v1, values, _written_v1)
    return Runs(_after_v2, _span_v2, partial(_values_v2, signed=signed), _written_v2)


def without(data: bytes, begin: int, count: int, runs: Runs) -> tuple[bytes, int]:
    """The rest of the run behind so many values from a place on, and where it ends."""
    place, left = runs.after(data, begin, count)
    if not left:
        return b"", place
    return runs.written(runs.values(data, place)[left:]), runs.span(data, place)[1]


def _after(
    span: Callable[[bytes, int], Span],
    data: bytes,
    begin: int,
    count: int,
    doubt: _Doubt | None = None,
) -> Place:
    size = len(data)
    try:
        while count:
            length, end = span(data, begin)
            if end > size:
                raise NotEnough
            if doubt and doubt.of[data[begin]] and doubt.is_odd(data, begin, end):
                raise _NoLengths
            if count < length:
                break
            count -= length
            begin = end
    except IndexError:
        raise NotEnough from None
    return begin, count


def shifted_bits(data: bytes, begin: int, skip: int, bits: int) -> bytes:
    """Bits from the middle of a byte on, as runs of bytes; `data` is all of the stream's rest."""
    found = bytearray()
    while begin + 1 < len(data):
        _, end = _byte_span(data, begin)
        if end > len(data):
            break
        found += _byte_values(data, begin)
        begin = end
    unpacked = np.unpackbits(np.frombuffer(found, np.uint8)[skip:])
    return _written_bytes(np.packbits(unpacked[bits:]).tobytes())


def has_no_lengths(data: bytes, version: int, count: int, most: int) -> bool:
    """Whether some of the first unsigned integers cannot be lengths: below zero, or too large."""
    try:
        if version == 1:
            doubt = _Doubt([True] * 256, partial(_is_odd_v1, most=most))
            _after(_span_v1, data, 0, count, doubt)
        else:
            doubt = _Doubt(_doubtful_v2(most), partial(_is_odd_v2, most=most))
            left = _looked_through_v2(data, count, doubt) if most >= 127 else (0, count)
            _after_v2(data, *left, doubt)
    except NotEnough:  # the last run is cut off: Arrow will tell if it is needed
        return False
    except _NoLengths:
        return True
    return False


def _is_odd_v1(data: bytes, begin: int, end: int, most: int) -> bool:
    if data[begin] < 128:
        delta = int.from_bytes(data[begin + 1 : begin + 2], "big", signed=True)
        base = _varint(data, begin + 2)[0]
        last = base + delta * (data[begin] + 2)
        return not (0 <= base <= most and 0 <= last <= most)
    return end - begin > 5 * (256 - data[begin]) or max(_values_v1(data, begin, False)) > most


def _doubtful_v2(most: int) -> list[bool]:
    """By the first byte of a run, whether it may hold more than `most`, or less than nothing."""
    bits = most.bit_length()
    short = [8 * ((header >> 3) + 1) >= bits for header in range(64)]
    plain = [_WIDTHS[header >> 1 & 31] > bits for header in range(64)]
    return short + plain + [True] * 128


def _looked_through_v2(data: bytes, count: int, doubt: _Doubt) -> Place:
    """Look at so many values, as far as they can be taken together: where the rest begins.

    Where a run would end is found for each byte as if one began there. From the first run on,
    every sixteenth then is found one by one, and those between them at once.
    """
    begin, doubtful = 0, np.array(doubt.of)
    doubtful[_REPEATS] = False
    while count and len(data) - begin > _WINDOW + _REPEAT:
        lengths, ends = _spans_v2(np.frombuffer(data, np.uint8, _WINDOW + _REPEAT, begin))
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
                place = _span_v2(data, begin + place)[1] - begin
            except IndexError:
                return begin, count
        is_run = np.zeros(_WINDOW + 1, np.bool_)
        between = np.array(steps)
        for _ in range(16):
            is_run[between] = True
            between = following[between]
        (runs,) = is_run[:_WINDOW].nonzero()
        looked_at, end = int(lengths[runs].sum()), begin + max(place, int(ends[runs[-1]]))
        if looked_at > count or end > len(data):
            break
        closer = doubtful[np.frombuffer(data, np.uint8)[begin + runs]] | (ends[runs] == runs)
        for run in (begin + runs[closer]).tolist():
            if doubt.is_odd(data, run, _span_v2(data, run)[1]):
                raise _NoLengths
        begin, count = end, count - looked_at
    return begin, count


def _spans_v2(window: npt.NDArray[np.uint8]) -> tuple[Int64s, Int64s]:
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
    sizes = 2 + (np.array(_WIDTHS)[header >> 1 & 31] * lengths + 7 >> 3)
    lengths, sizes = (
        np.where(header < 64, (header & 7) + 3, lengths),
        np.where(header < 64, 2 + (header >> 3), sizes),
    )
    return lengths, np.where(header < 128, sizes, 0)


def _is_odd_v2(data: bytes, begin: int, end: int, most: int) -> bool:
    header = data[begin]
    kind = header >> 6
    if kind == 0:
        return int.from_bytes(data[begin + 1 : end], "big") > most
    if kind == 2 and _patches(data, begin, 1).patch_width + _WIDTHS[header >> 1 & 31] > 64:
        return True
    if kind == 3:
        base, place = _varint(data, begin + 2)
        step = _from_zigzag(_varint(data, place)[0])
        code, count = header >> 1 & 31, (header & 1) << 8 | data[begin + 1]
        # As far as the differences could lead, before they are looked at.
        steepest = max(abs(step), (1 << _WIDTHS[code]) - 1 if code else 0) * count
        if base - (steepest if step < 0 else 0) >= 0 and base + steepest <= most:
            return False
    return int(_values_v2(data, begin, False).max()) > most


# Bytes ------------------------------------------------------------------------------------------


def _byte_span(data: bytes, begin: int) -> Span:
    control = data[begin]
    return (control + 3, begin + 2) if control < 128 else (256 - control, begin + 257 - control)


def _byte_values(data: bytes, begin: int) -> bytes:
    count, end = _byte_span(data, begin)
    return data[begin + 1 : end] * (count if data[begin] < 128 else 1)


def _written_bytes(values: Sequence[int]) -> bytes:
    data = bytes(values)
    parts = [data[begin : begin + _MOST_BYTES] for begin in range(0, len(data), _MOST_BYTES)]
    return b"".join(bytes([256 - len(part)]) + part for part in parts)


BYTE_RUNS = Runs(partial(_after, _byte_span), _byte_span, _byte_values, _written_bytes)
"""Those of bytes, and of bits in them."""


# Integers, version 1 ----------------------------------------------------------------------------


def _span_v1(data: bytes, begin: int) -> Span:
    control = data[begin]
    if control < 128:
        return control + 3, _varint(data, begin + 2)[1]
    end = begin + 1
    for _ in range(256 - control):
        while data[end] > 127:
            end += 1
        end += 1
    return 256 - control, end


def _values_v1(data: bytes, begin: int, signed: bool) -> list[int]:
    control = data[begin]
    if control < 128:
        delta = int.from_bytes(data[begin + 1 : begin + 2], "big", signed=True)
        base = _varint(data, begin + 2)[0]
        first = _from_zigzag(base) if signed else base
        return [_encoded(first + place * delta, signed) for place in range(control + 3)]
    found, end = [], begin + 1
    for _ in range(256 - control):
        value, end = _varint(data, end)
        found.append(value)
    return found


def _written_v1(values: Sequence[int]) -> bytes:
    parts = [values[begin : begin + _MOST_V1] for begin in range(0, len(values), _MOST_V1)]
    return b"".join(
        bytes([256 - len(part)]) + b"".join(map(_written_varint, part)) for part in parts
    )


# Integers, version 2 ----------------------------------------------------------------------------


def _after_v2(data: bytes, begin: int, count: int, doubt: _Doubt | None = None) -> Place:
    """The same as `_after`, without a call for each of the runs that there are most of."""
    size, doubtful = len(data), doubt.of if doubt else None
    try:
        while count:
            header = data[begin]
            if header < 64:  # a short repeat
                length = (header & 7) + 3
                end = begin + 2 + (header >> 3)
            elif header < 128:  # values as they are
                length = ((header & 1) << 8 | data[begin + 1]) + 1
                end = begin + 2 + (_WIDTHS[header >> 1 & 31] * length + 7 >> 3)
            else:
                length, end = _span_v2(data, begin)
            if end > size:
                raise NotEnough
            if doubtful and doubtful[header] and doubt and doubt.is_odd(data, begin, end):
                raise _NoLengths
            if count < length:
                break
            count -= length
            begin = end
    except IndexError:
        raise NotEnough from None
    return begin, count


def _span_v2(data: bytes, begin: int) -> Span:
    header = data[begin]
    kind = header >> 6
    if kind == 0:
        return (header & 7) + 3, begin + 2 + (header >> 3 & 7)
    count = ((header & 1) << 8 | data[begin + 1]) + 1
    code = header >> 1 & 31
    if kind == 1:
        return count, begin + 2 + _bytes_of(_WIDTHS[code] * count)
    if kind == 2:
        return count, _patches(data, begin, count).end
    end = begin + 2
    for _ in range(2):  # a base and a first difference
        while data[end] > 127:
            end += 1
        end += 1
    return count, end + _bytes_of(_WIDTHS[code] * max(count - 2, 0)) if code else end


def _values_v2(data: bytes, begin: int, signed: bool) -> UInt64s:
    header = data[begin]
    count, end = _span_v2(data, begin)
    match header >> 6:
        case 0:
            return np.full(count, int.from_bytes(data[begin + 1 : end], "big"), np.uint64)
        case 1:
            return _unpacked(data, begin + 2, _WIDTHS[header >> 1 & 31], count)
        case 2:
            found = _patched(data, begin, count)
        case _:
            found = _differences(data, begin, count, signed)
    if not signed:
        return found
    return found << np.uint64(1) ^ (found.view(np.int64) >> 63).view(np.uint64)


def _differences(data: bytes, begin: int, count: int, signed: bool) -> UInt64s:
    code = data[begin] >> 1 & 31
    base, place = _varint(data, begin + 2)
    step, place = _varint(data, place)
    delta = _from_zigzag(step)
    changes = np.full(count, delta & _WORD, np.uint64)
    changes[0] = (_from_zigzag(base) if signed else base) & _WORD
    if code and count > 2:
        unpacked = _unpacked(data, place, _WIDTHS[code], count - 2)
        changes[2:] = -unpacked if delta < 0 else unpacked
    return changes.cumsum(dtype=np.uint64)


class _Patches(NamedTuple):
    """Where the parts of a run with patches are: packed values, and high bits of some."""

    base_width: int
    packed: int
    patch_width: int
    patched: int
    entry_width: int
    patches: int
    end: int


def _patches(data: bytes, begin: int, count: int) -> _Patches:
    width = _WIDTHS[data[begin] >> 1 & 31]
    base_width, patch_width = (data[begin + 2] >> 5) + 1, _WIDTHS[data[begin + 2] & 31]
    gap_width, patches = (data[begin + 3] >> 5) + 1, data[begin + 3] & 31
    packed = begin + 4 + base_width
    patched = packed + _bytes_of(width * count)
    entry = next((found for found in _WIDTHS if found >= patch_width + gap_width), 64)
    end = patched + _bytes_of(entry * patches)
    return _Patches(base_width, packed, patch_width, patched, entry, patches, end)


def _patched(data: bytes, begin: int, count: int) -> UInt64s:
    width = _WIDTHS[data[begin] >> 1 & 31]
    parts = _patches(data, begin, count)
    base = int.from_bytes(data[begin + 4 : parts.packed], "big")
    sign = 1 << (parts.base_width * 8 - 1)
    if base & sign:
        base = -(base & (sign - 1))
    found, place = _unpacked(data, parts.packed, width, count), 0
    for patch in _unpacked(data, parts.patched, parts.entry_width, parts.patches).tolist():
        place += patch >> parts.patch_width
        if place < count:
            found[place] |= np.uint64((patch & ((1 << parts.patch_width) - 1)) << width & _WORD)
    return found + np.uint64(base & _WORD)


def _written_v2(values: UInt64s) -> bytes:
    """Values of no more than one run."""
    size = max(-(-int(values.max()).bit_length() // 8), 1)
    code, count = _WIDTHS.index(8 * size), len(values) - 1
    plain = values.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - size :]
    return bytes([0x40 | code << 1 | count >> 8, count & 255]) + plain.tobytes()


# Bits -------------------------------------------------------------------------------------------


def _bytes_of(bits: int) -> int:
    return (bits + 7) >> 3


def _unpacked(data: bytes, begin: int, width: int, count: int) -> UInt64s:
    """Integers of a width in bits, the highest bit first."""
    stored = np.frombuffer(data, np.uint8, _bytes_of(width * count), begin)
    bits = np.zeros((count, 64), np.uint8)
    bits[:, 64 - width :] = np.unpackbits(stored, count=width * count).reshape(count, width)
    return np.packbits(bits, axis=1).view(">u8").astype(np.uint64).ravel()


def _varint(data: bytes, begin: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[begin]
        begin += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _WORD, begin
        shift += 7


def _written_varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _from_zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _encoded(value: int, signed: bool) -> int:
    """A value as a run of plain ones holds it."""
    return (value << 1 ^ value >> 63) & _WORD if signed else value & _WORD
