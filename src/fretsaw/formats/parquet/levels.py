"""Repetition levels of a page: how many records begin in it.

Version 1 of data pages does not say so in the header. Levels lie in front of the values, as runs
of one level or of packed bits; a record begins wherever the level is 0.
"""

from typing import Literal

import numpy as np

_RLE, _BIT_PACKED = 3, 4
_LENGTH_BYTES = 4


class UnknownLevels(ValueError):
    """Levels that are damaged, or encoded in a way that is not known here."""


def count_records(body: memoryview, num_values: int, encoding: int | None, highest: int) -> int:
    """How many of the first levels of a page are 0, of levels up to `highest`."""
    width = highest.bit_length()
    if encoding == _BIT_PACKED:
        return _zeros(body[: (num_values * width + 7) // 8], num_values, width, "big")
    if encoding != _RLE:
        raise UnknownLevels(f"levels in the encoding {encoding}")
    length = int.from_bytes(body[:_LENGTH_BYTES], "little")
    return _zeros_of_runs(body[_LENGTH_BYTES : _LENGTH_BYTES + length], num_values, width)


def _zeros_of_runs(runs: memoryview, left: int, width: int) -> int:
    position = zeros = 0
    value_bytes = (width + 7) // 8
    while left:
        header, position = _varint(runs, position)
        groups = header >> 1
        if header & 1:
            count = min(left, groups * 8)
            packed = runs[position : position + groups * width]
            zeros += _zeros(packed, count, width, "little")
            position += groups * width
        else:
            count = min(left, groups)
            if not any(runs[position : position + value_bytes]):
                zeros += count
            position += value_bytes
        if not count or position > len(runs):
            raise UnknownLevels("runs that end too early")
        left -= count
    return zeros


def _zeros(packed: memoryview, count: int, width: int, order: Literal["big", "little"]) -> int:
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder=order)
    if len(bits) < count * width:
        raise UnknownLevels("fewer levels than values")
    levels = bits[: count * width].reshape(count, width)
    return int(count - np.count_nonzero(levels.any(axis=1)))


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
    raise UnknownLevels("runs that end too early")
