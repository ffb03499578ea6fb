"""Runs of bytes and integers: where one ends, and what is left of it behind some values.

A stride begins in the middle of a run nearly always, since writers do not end runs there. The rest
of that one run is written again as plain values; what follows stays as it is.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fretsaw.formats.orc.metadata import MalformedOrc

WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_WORD = (1 << 64) - 1
_LONGEST_VARINT = 63  # bits before the last byte of an integer
_MOST_BYTES, _MOST_V1 = 128, 128  # values of a run that holds them as they are

MOST_VALUES = 1 << 62
"""More than any stream has."""

UInt64s: TypeAlias = npt.NDArray[np.uint64]
Span: TypeAlias = tuple[int, int]
"""How many values a run has, and where it ends."""
Place: TypeAlias = tuple[int, int]
"""A run, and how many of its values come before."""


class NotEnough(ValueError):
    """A run that goes on behind the bytes that are there."""


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


def _after(span: Callable[[bytes, int], Span], data: bytes, begin: int, count: int) -> Place:
    size = len(data)
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


def shifted_bits(data: bytes, begin: int, skip: int, bits: int) -> bytes:
    """Bits from the middle of a byte on, as runs of bytes; `data` is all of the stream's rest."""
    unpacked = np.unpackbits(np.frombuffer(expanded_bytes(data, begin), np.uint8)[skip:])
    return _written_bytes(np.packbits(unpacked[bits:]).tobytes())


def expanded_bytes(data: bytes, begin: int = 0, most: int = MOST_VALUES) -> bytearray:
    """The bytes of all runs that are there whole, up to about so many."""
    found = bytearray()
    while begin + 1 < len(data) and len(found) < most:
        _, end = _byte_span(data, begin)
        if end > len(data):
            break
        found += _byte_values(data, begin)
        begin = end
    return found


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
        return control + 3, varint(data, begin + 2)[1]
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
        base = varint(data, begin + 2)[0]
        first = from_zigzag(base) if signed else base
        return [_encoded(first + place * delta, signed) for place in range(control + 3)]
    found, end = [], begin + 1
    for _ in range(256 - control):
        value, end = varint(data, end)
        found.append(value)
    return found


def _written_v1(values: Sequence[int]) -> bytes:
    parts = [values[begin : begin + _MOST_V1] for begin in range(0, len(values), _MOST_V1)]
    return b"".join(
        bytes([256 - len(part)]) + b"".join(map(_written_varint, part)) for part in parts
    )


# Integers, version 2 ----------------------------------------------------------------------------


def _after_v2(data: bytes, begin: int, count: int) -> Place:
    """The same as `_after`, without a call for each of the runs that there are most of."""
    size = len(data)
    try:
        while count:
            header = data[begin]
            if header < 64:  # a short repeat
                length = (header & 7) + 3
                end = begin + 2 + (header >> 3)
            elif header < 128:  # values as they are
                length = ((header & 1) << 8 | data[begin + 1]) + 1
                end = begin + 2 + (WIDTHS[header >> 1 & 31] * length + 7 >> 3)
            else:
                length, end = _span_v2(data, begin)
            if end > size:
                raise NotEnough
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
        return count, begin + 2 + _bytes_of(WIDTHS[code] * count)
    if kind == 2:
        return count, _patches(data, begin, count).end
    end = begin + 2
    for _ in range(2):  # a base and a first difference
        while data[end] > 127:
            end += 1
        end += 1
    return count, end + _bytes_of(WIDTHS[code] * max(count - 2, 0)) if code else end


def _values_v2(data: bytes, begin: int, signed: bool) -> UInt64s:
    header = data[begin]
    count, end = _span_v2(data, begin)
    match header >> 6:
        case 0:
            return np.full(count, int.from_bytes(data[begin + 1 : end], "big"), np.uint64)
        case 1:
            return _unpacked(data, begin + 2, WIDTHS[header >> 1 & 31], count)
        case 2:
            found = _patched(data, begin, count)
        case _:
            found = _differences(data, begin, count, signed)
    if not signed:
        return found
    return found << np.uint64(1) ^ (found.view(np.int64) >> 63).view(np.uint64)


def _differences(data: bytes, begin: int, count: int, signed: bool) -> UInt64s:
    code = data[begin] >> 1 & 31
    base, place = varint(data, begin + 2)
    step, place = varint(data, place)
    delta = from_zigzag(step)
    changes = np.full(count, delta & _WORD, np.uint64)
    changes[0] = (from_zigzag(base) if signed else base) & _WORD
    if code and count > 2:
        unpacked = _unpacked(data, place, WIDTHS[code], count - 2)
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
    width = WIDTHS[data[begin] >> 1 & 31]
    base_width, patch_width = (data[begin + 2] >> 5) + 1, WIDTHS[data[begin + 2] & 31]
    gap_width, patches = (data[begin + 3] >> 5) + 1, data[begin + 3] & 31
    packed = begin + 4 + base_width
    patched = packed + _bytes_of(width * count)
    entry = next((found for found in WIDTHS if found >= patch_width + gap_width), 64)
    end = patched + _bytes_of(entry * patches)
    return _Patches(base_width, packed, patch_width, patched, entry, patches, end)


def _patched(data: bytes, begin: int, count: int) -> UInt64s:
    width = WIDTHS[data[begin] >> 1 & 31]
    parts = _patches(data, begin, count)
    if width + parts.patch_width > _LONGEST_VARINT + 1:
        raise MalformedOrc("patches that no integer has room for")
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
    code, count = WIDTHS.index(8 * size), len(values) - 1
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


def varint(data: bytes, begin: int) -> tuple[int, int]:
    """An integer of as many bytes as it takes, and where it ends."""
    value = shift = 0
    while True:
        byte = data[begin]
        begin += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _WORD, begin
        shift += 7
        if shift > _LONGEST_VARINT:
            raise MalformedOrc("an integer that does not end")


def _written_varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def from_zigzag(value: int) -> int:
    """An integer with a sign, which is stored as its last bit."""
    return (value >> 1) ^ -(value & 1)


def _encoded(value: int, signed: bool) -> int:
    """A value as a run of plain ones holds it."""
    return (value << 1 ^ value >> 63) & _WORD if signed else value & _WORD
