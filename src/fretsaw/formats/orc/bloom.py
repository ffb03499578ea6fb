"""Bloom filters of strides: which of them cannot hold any of some values.

The filters are those of Guava with Murmur3 and a hash of 64-bit integers by Thomas Wang, as the
format's BLOOM_FILTER_UTF8 streams have them.
"""

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fretsaw.formats.orc import metadata
from fretsaw.formats.orc.footer import Footer
from fretsaw.formats.orc.statistics import per_second
from fretsaw.model.schema import SchemaNode
from fretsaw.predicates.value_set import NAN_KEY, float_at

_WORD = (1 << 64) - 1
_SEED = 104729
_JAVA, _CPP = 0, 1
_HASHED_WRONGLY = ((1, 6, 11), (1, 7, 0))  # ORC-1024: the C++ writer before them, and they
_VERSION = re.compile(rb"(\d+)\.(\d+)\.(\d+)")
_DAY = 86_400  # seconds


def is_trusted(footer: Footer, leaf: SchemaNode) -> bool:
    """Whether the writer's filters can be believed."""
    writer = footer.message.writer
    if leaf.physical_type in ("BINARY", "DECIMAL") and writer not in (_JAVA, _CPP):
        return False  # nobody says what others hash
    if writer != _CPP:
        return True
    version = _VERSION.match(footer.message.software_version)
    if version is None:
        return False
    number = tuple(map(int, version.groups()))
    return number > _HASHED_WRONGLY[0] and number not in _HASHED_WRONGLY


def hashes(keys: Sequence[Any], leaf: SchemaNode) -> list[int] | None:
    """All hashes that some keys may have; None if one has none, so that filters prove nothing."""
    kind = leaf.physical_type
    if kind in ("SHORT", "INT", "LONG", "DATE"):  # of bytes, some writers hash others
        return [_integer_hash(key) for key in keys]
    if kind in ("STRING", "VARCHAR", "BINARY"):
        return [_bytes_hash(key) for key in keys]
    if kind == "DECIMAL":
        return [_bytes_hash(text) for key in keys for text in _texts(key, leaf.arrow_type.scale)]
    if kind == "DOUBLE":  # of 32 bits, some writers hash what it was before
        if NAN_KEY in keys:
            return None  # NaNs differ in their bits
        bits = [struct.unpack("<q", struct.pack("<d", float_at(key)))[0] for key in keys]
        return [_integer_hash(value) for value in bits]
    if kind in ("TIMESTAMP", "TIMESTAMP_INSTANT"):
        second = per_second(leaf)
        if any(key < _DAY * second for key in keys):
            return None  # writers round times before 1970, and what is near, in different ways
        return [_integer_hash(key // (second // 1_000)) for key in keys]
    return None


def _texts(unscaled: int, scale: int) -> set[bytes]:
    """How writers spell a decimal: with all digits of its type, or without zeros at the end."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    point = len(digits) - scale
    sign, whole, rest = "-" if unscaled < 0 else "", digits[:point], digits[point:]
    spelled = (f"{whole}.{tail}" if tail else whole for tail in (rest, rest.rstrip("0")))
    return {f"{sign}{text}".encode() for text in spelled}


def may_hold(stored: bytes, wanted: Sequence[int], strides: int) -> npt.NDArray[np.bool_] | None:
    """Which strides may hold a value of one of these hashes, by a stream of filters."""
    filters = metadata.decode("BloomFilterIndex", stored).filters
    if len(filters) != strides:
        return None
    return np.array([any(_has(f, value) for value in wanted) for f in filters], np.bool_)


def _has(bloom_filter: Any, value: int) -> bool:
    bits = bloom_filter.bits
    count, functions = 8 * len(bits), bloom_filter.hash_functions
    if not count or count % 64 or not 0 < functions < 1000:
        return True
    first, second = _signed(value), _signed(value >> 32)
    for number in range(1, functions + 1):
        combined = _signed(first + number * second)
        place = (~combined if combined < 0 else combined) % count
        if not bits[place >> 3] >> (place & 7) & 1:
            return False
    return True


def _signed(value: int) -> int:
    """The lowest 32 bits as a signed number."""
    low = value & 0xFFFF_FFFF
    return low - (1 << 32) if low >> 31 else low


def _integer_hash(key: int) -> int:
    """Thomas Wang's hash of 64 bits; shifts to the right keep the sign."""

    def word(value: int) -> int:
        value &= _WORD
        return value - (1 << 64) if value >> 63 else value

    key = word(~key + (key << 21))
    key = word(key ^ (key >> 24))
    key = word(key + (key << 3) + (key << 8))
    key = word(key ^ (key >> 14))
    key = word(key + (key << 2) + (key << 4))
    key = word(key ^ (key >> 28))
    return (key + (key << 31)) & _WORD


def _bytes_hash(data: bytes) -> int:
    """The first 64 bits of Murmur3 in the variant of the format."""
    c1, c2, found = 0x87C3_7B91_1142_53D5, 0x4CF5_AD43_2745_937F, _SEED

    def mixed(block: bytes) -> int:
        return _rotated(int.from_bytes(block, "little") * c1 & _WORD, 31) * c2 & _WORD

    whole = len(data) & ~7
    for begin in range(0, whole, 8):
        found ^= mixed(data[begin : begin + 8])
        found = (_rotated(found, 27) * 5 + 0x52DC_E729) & _WORD
    if data[whole:]:
        found ^= mixed(data[whole:])
    found ^= len(data)
    for factor in (0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53):
        found ^= found >> 33
        found = found * factor & _WORD
    return found ^ found >> 33


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _WORD
