"""Runs of bytes and integers: where one ends, and what is left of it behind some values.

A stride begins in the middle of a run nearly always, since writers do not end runs there. The rest
of that one run is written again as plain values; what follows stays as it is.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_WORD = (1 << 64) - 1
_MOST_BYTES, _MOST_V1, _MOST_V2 = 128, 128, 512  # values of a run that holds them as they are


class NotEnough(ValueError):
    """A run that goes on behind the bytes that are there."""


Span: TypeAlias = tuple[int, int]
"""How many values a run has, and where it ends."""


class Runs(NamedTuple):
    """One way to write runs: where they end, what they hold, and how plain values are written."""

    span: Callable[[bytes, int], Span]
    values: Callable[[bytes, int], Sequence[int]]
    """As they are written: integers with a sign as zigzag."""
    written: Callable[[Sequence[int]], bytes]


def integer_runs(version: int, signed: bool) -> Runs:
    """The runs of integers of one version of the encoding."""
    if version == 1:
        return Runs(_span_v1, lambda data, at: _values_v1(data, at, signed), _written_v1)
    return Runs(_span_v2, lambda data, at: _values_v2(data, at, signed), _written_v2)


def after(data: bytes, begin: int, count: int, runs: Runs) -> tuple[int, int]:
    """The run that so many values from a place on lead into, and how many of its values."""
    span, size = runs.span, len(data)
    try:
        while count:
            length, end = span(data, begin)
            if end > size:
                raise NotEnough
            if count < length:
                break
            count -= length
            begin = end
    except IndexError:
        raise NotEnough from None
    return begin, count


def without(data: bytes, begin: int, count: int, runs: Runs) -> tuple[bytes, int]:
    """The rest of the run behind so many values from a place on, and where it ends."""
    place, left = after(data, begin, count, runs)
    if not left:
        return b"", place
    return runs.written(runs.values(data, place)[left:]), runs.span(data, place)[1]


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
    span, odd = (_span_v1, _odd_v1) if version == 1 else (_span_v2, _odd_v2)
    begin, size = 0, len(data)
    try:
        while begin < size and count > 0:
            length, end = span(data, begin)
            if end > size:
                break
            if odd(data, begin, end, most):
                return True
            begin, count = end, count - length
    except IndexError:  # the last run is cut off: Arrow will tell if it is needed
        pass
    return False


def _odd_v1(data: bytes, begin: int, end: int, most: int) -> bool:
    if data[begin] < 128:
        delta = int.from_bytes(data[begin + 1 : begin + 2], "big", signed=True)
        base = _varint(data, begin + 2)[0]
        last = base + delta * (data[begin] + 2)
        return not (0 <= base <= most and 0 <= last <= most)
    return end - begin > 5 * (256 - data[begin]) or max(_values_v1(data, begin, False)) > most


def _odd_v2(data: bytes, begin: int, end: int, most: int) -> bool:
    header = data[begin]
    kind, code = header >> 6, header >> 1 & 31
    if kind == 0:
        return int.from_bytes(data[begin + 1 : end], "big") > most
    if kind == 1:
        return _WIDTHS[code] > most.bit_length() and max(_values_v2(data, begin, False)) > most
    count = _span_v2(data, begin)[0]
    if kind == 2:
        found = _patched(data, begin, count)
        return not 0 <= min(found) <= max(found) <= most
    base, place = _varint(data, begin + 2)
    step = _from_zigzag(_varint(data, place)[0])
    # As far as the differences could lead, before they are looked at.
    steepest = max(abs(step), (1 << _WIDTHS[code]) - 1 if code else 0) * (count - 1)
    if base - (steepest if step < 0 else 0) >= 0 and base + steepest <= most:
        return False
    found = _differences(data, begin, count, False)
    return not 0 <= min(found) <= max(found) <= most


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


BYTE_RUNS = Runs(_byte_span, _byte_values, _written_bytes)
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


def _span_v2(data: bytes, begin: int) -> Span:
    header = data[begin]
    kind = header >> 6
    if kind == 0:  # a short repeat
        return (header & 7) + 3, begin + 2 + (header >> 3 & 7)
    count = ((header & 1) << 8 | data[begin + 1]) + 1
    code = header >> 1 & 31
    if kind == 1:  # values as they are
        return count, begin + 2 + _bytes_of(_WIDTHS[code] * count)
    if kind == 2:
        return count, _patches(data, begin, count).end
    end = _varint(data, _varint(data, begin + 2)[1])[1]  # a base and a first difference
    return count, end + _bytes_of(_WIDTHS[code] * (count - 2)) if code else end


def _values_v2(data: bytes, begin: int, signed: bool) -> list[int]:
    header = data[begin]
    count, end = _span_v2(data, begin)
    match header >> 6:
        case 0:
            return [int.from_bytes(data[begin + 1 : end], "big")] * count
        case 1:
            return _unpacked(data, begin + 2, _WIDTHS[header >> 1 & 31], count)
        case 2:
            found = _patched(data, begin, count)
        case _:
            found = _differences(data, begin, count, signed)
    return [_encoded(value, signed) for value in found]


def _differences(data: bytes, begin: int, count: int, signed: bool) -> list[int]:
    code = data[begin] >> 1 & 31
    base, place = _varint(data, begin + 2)
    step, place = _varint(data, place)
    value, delta = _from_zigzag(base) if signed else base, _from_zigzag(step)
    if not code:
        return [value + number * delta for number in range(count)]
    found = [value, value + delta]
    for change in _unpacked(data, place, _WIDTHS[code], count - 2):
        found.append(found[-1] + (-change if delta < 0 else change))
    return found[:count]


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


def _patched(data: bytes, begin: int, count: int) -> list[int]:
    width = _WIDTHS[data[begin] >> 1 & 31]
    parts = _patches(data, begin, count)
    base = int.from_bytes(data[begin + 4 : parts.packed], "big")
    sign = 1 << (parts.base_width * 8 - 1)
    if base & sign:
        base = -(base & (sign - 1))
    found, place = _unpacked(data, parts.packed, width, count), 0
    for patch in _unpacked(data, parts.patched, parts.entry_width, parts.patches):
        place += patch >> parts.patch_width
        if place < count:
            found[place] |= (patch & ((1 << parts.patch_width) - 1)) << width
    return [base + value for value in found]


def _written_v2(values: Sequence[int]) -> bytes:
    written = b""
    for begin in range(0, len(values), _MOST_V2):
        part = values[begin : begin + _MOST_V2]
        size = max(-(-max(part).bit_length() // 8), 1)
        code, count = _WIDTHS.index(8 * size), len(part) - 1
        written += bytes([0x40 | code << 1 | count >> 8, count & 255])
        written += b"".join(value.to_bytes(size, "big") for value in part)
    return written


# Bits -------------------------------------------------------------------------------------------


def _bytes_of(bits: int) -> int:
    return (bits + 7) >> 3


def _unpacked(data: bytes, begin: int, width: int, count: int) -> list[int]:
    """Integers of a width in bits, the highest bit first."""
    size = _bytes_of(width * count)
    whole = int.from_bytes(data[begin : begin + size], "big") >> (size * 8 - width * count)
    mask = (1 << width) - 1
    return [whole >> (width * (count - 1 - place)) & mask for place in range(count)]


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
