"""Runs of bytes and integers: where one ends, and what is left of it behind some values.

A stride begins in the middle of a run nearly always, since writers do not end runs there. The rest
of that one run is written again as plain values; what follows stays as it is.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_WORD = (1 << 64) - 1
_LONGEST = {"bytes": 128, 1: 128, 2: 512}  # values in a run as they are


class NotEnough(ValueError):
    """A run that goes on behind the bytes that are there."""


class Run(NamedTuple):
    """A run: how many values it has, where it ends, and the values as they are written."""

    values_count: int
    end: int
    values: Callable[[], Sequence[int]]


def skip_bytes(data: bytes, begin: int, count: int) -> tuple[bytes, int]:
    """The rest of the byte run behind so many values from a place on, and where it ends."""
    return _skip(data, begin, count, _byte_run, byte_runs)


def skip_integers(
    data: bytes, begin: int, count: int, version: int, signed: bool
) -> tuple[bytes, int]:
    """The same for integers."""
    read, write = (_run_v1, _written_v1) if version == 1 else (_run_v2, _written_v2)
    return _skip(data, begin, count, lambda data, begin: read(data, begin, signed), write)


def _skip(
    data: bytes,
    begin: int,
    count: int,
    read: Callable[[bytes, int], Run],
    write: Callable[[Sequence[int]], bytes],
) -> tuple[bytes, int]:
    place, left = _after(data, begin, count, read)
    if not left:
        return b"", place
    run = read(data, place)
    return write(run.values()[left:]), run.end


def bytes_after(data: bytes, begin: int, count: int) -> tuple[int, int]:
    """The run that so many bytes from a place on lead into, and how many of its values."""
    return _after(data, begin, count, _byte_run)


def integers_after(
    data: bytes, begin: int, count: int, version: int, signed: bool
) -> tuple[int, int]:
    """The same for integers."""
    read = _run_v1 if version == 1 else _run_v2
    return _after(data, begin, count, lambda data, begin: read(data, begin, signed))


def _after(
    data: bytes, begin: int, count: int, read: Callable[[bytes, int], Run]
) -> tuple[int, int]:
    while count:
        try:
            run = read(data, begin)
        except IndexError:
            raise NotEnough from None
        if run.end > len(data):
            raise NotEnough
        if count < run.values_count:
            break
        count -= run.values_count
        begin = run.end
    return begin, count


def byte_runs(values: Sequence[int]) -> bytes:
    """Bytes as runs of bytes as they are."""
    data, most = bytes(values), _LONGEST["bytes"]
    parts = [data[begin : begin + most] for begin in range(0, len(data), most)]
    return b"".join(bytes([256 - len(part)]) + part for part in parts)


def shifted_bits(data: bytes, begin: int, skip: int, bits: int) -> bytes:
    """Bits from the middle of a byte on, as runs of bytes; `data` is all of the stream's rest."""
    found = bytearray()
    while begin < len(data):
        try:
            run = _byte_run(data, begin)
        except IndexError:
            break
        if run.end > len(data):
            break
        found += bytes(run.values())
        begin = run.end
    unpacked = np.unpackbits(np.frombuffer(found, np.uint8)[skip:])
    return byte_runs(np.packbits(unpacked[bits:]).tobytes())


def _byte_run(data: bytes, begin: int) -> Run:
    control = data[begin]
    if control < 128:
        value = data[begin + 1]
        return Run(control + 3, begin + 2, lambda: bytes([value]) * (control + 3))
    count = 256 - control
    end = begin + 1 + count
    return Run(count, end, lambda: data[begin + 1 : end])


def _run_v1(data: bytes, begin: int, signed: bool) -> Run:
    control = data[begin]
    if control < 128:
        count, delta = control + 3, int.from_bytes(data[begin + 1 : begin + 2], "big", signed=True)
        base, end = _varint(data, begin + 2)

        def values() -> list[int]:
            first = _from_zigzag(base) if signed else base
            return [_encoded(first + place * delta, signed) for place in range(count)]

        return Run(count, end, values)
    found, end = [], begin + 1
    for _ in range(256 - control):
        value, end = _varint(data, end)
        found.append(value)
    return Run(len(found), end, lambda: found)


def _written_v1(values: Sequence[int]) -> bytes:
    most = _LONGEST[1]
    parts = [values[begin : begin + most] for begin in range(0, len(values), most)]
    return b"".join(
        bytes([256 - len(part)]) + b"".join(map(_written_varint, part)) for part in parts
    )


def _run_v2(data: bytes, begin: int, signed: bool) -> Run:
    header = data[begin]
    match header >> 6:
        case 0:
            return _short_repeat(data, begin)
        case 1:
            count, width = _length(data, begin), _WIDTHS[header >> 1 & 31]
            end = begin + 2 + _bytes_of(width * count)
            return Run(count, end, lambda: _unpacked(data, begin + 2, width, count))
        case 2:
            return _patched(data, begin, signed)
    return _delta(data, begin, signed)


def _short_repeat(data: bytes, begin: int) -> Run:
    header = data[begin]
    end, count = begin + 2 + (header >> 3 & 7), (header & 7) + 3
    return Run(count, end, lambda: [int.from_bytes(data[begin + 1 : end], "big")] * count)


def _delta(data: bytes, begin: int, signed: bool) -> Run:
    count, code = _length(data, begin), data[begin] >> 1 & 31
    width = _WIDTHS[code] if code else 0
    base, place = _varint(data, begin + 2)
    step, place = _varint(data, place)
    end = place + _bytes_of(width * (count - 2)) if width else place

    def values() -> list[int]:
        value, delta = _from_zigzag(base) if signed else base, _from_zigzag(step)
        found = [value, value + delta]
        if not width:
            found = [value + place * delta for place in range(count)]
        else:
            for change in _unpacked(data, place, width, count - 2):
                found.append(found[-1] + (-change if delta < 0 else change))
        return [_encoded(value, signed) for value in found[:count]]

    return Run(count, end, values)


def _patched(data: bytes, begin: int, signed: bool) -> Run:
    count, width = _length(data, begin), _WIDTHS[data[begin] >> 1 & 31]
    base_width, patch_width = (data[begin + 2] >> 5) + 1, _WIDTHS[data[begin + 2] & 31]
    gap_width, patches = (data[begin + 3] >> 5) + 1, data[begin + 3] & 31
    packed = begin + 4 + base_width
    patched = packed + _bytes_of(width * count)
    entry = next((w for w in _WIDTHS if w >= patch_width + gap_width), 64)
    end = patched + _bytes_of(entry * patches)

    def values() -> list[int]:
        base, sign = int.from_bytes(data[begin + 4 : packed], "big"), 1 << (base_width * 8 - 1)
        if base & sign:
            base = -(base & (sign - 1))
        found, place = _unpacked(data, packed, width, count), 0
        for patch in _unpacked(data, patched, entry, patches):
            place += patch >> patch_width
            if place < count:
                found[place] |= (patch & ((1 << patch_width) - 1)) << width
        return [_encoded(base + value, signed) for value in found]

    return Run(count, end, values)


def _written_v2(values: Sequence[int]) -> bytes:
    written, most = b"", _LONGEST[2]
    for begin in range(0, len(values), most):
        part = values[begin : begin + most]
        size = max(-(-max(part).bit_length() // 8), 1)
        code, count = _WIDTHS.index(8 * size), len(part) - 1
        written += bytes([0x40 | code << 1 | count >> 8, count & 255])
        written += b"".join(value.to_bytes(size, "big") for value in part)
    return written


def _length(data: bytes, begin: int) -> int:
    return ((data[begin] & 1) << 8 | data[begin + 1]) + 1


def _bytes_of(bits: int) -> int:
    return -(-bits // 8)


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
