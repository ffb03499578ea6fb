"""Bloom filters of Parquet files, probed without fretsaw.

In: a file in memory, where a filter lies in it, and a value as it is stored. Out: whether a column
chunk may hold the value. `PROBE_BYTES` and the header are all that must be read for that; the
numbers are those of the format's split block filter with XXH64.
"""

from mmap import mmap

import xxhash

PROBE_BYTES = 32  # one block of eight words
WORD_BITS = 32
SALT = (
    *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
    *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
)


def header_bytes(length: int) -> int:
    """What is before the blocks of a filter of this length: its header is shorter than a block."""
    return length % PROBE_BYTES


def may_hold(data: mmap, offset: int, length: int, value: bytes) -> bool:
    """Whether the filter has all eight bits of the value, each in a word of its block."""
    digest = xxhash.xxh64_intdigest(value)
    block = (digest >> WORD_BITS) * (length // PROBE_BYTES) >> WORD_BITS
    start = offset + header_bytes(length) + block * PROBE_BYTES
    words = memoryview(data[start : start + PROBE_BYTES]).cast("I")
    low = digest % 2**WORD_BITS
    return all(
        word >> (low * salt % 2**WORD_BITS >> 27) & 1
        for word, salt in zip(words, SALT, strict=True)
    )
