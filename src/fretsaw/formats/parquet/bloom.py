"""Bloom filters of column chunks: split blocks of 256 bits, probed with XXH64 of stored values.

Of a filter, only its header and the blocks that the values fall into are asked for.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fretsaw.formats.parquet import metadata
from fretsaw.formats.parquet.index import InvalidIndex
from fretsaw.formats.parquet.statistics import Order
from fretsaw.model.locks import importing
from fretsaw.predicates.value_set import NAN_KEY, Key, float_at
from fretsaw.storage.requests import Request, Steps

_HEADER_BYTES = 64  # a header is shorter than this
_BLOCK_BYTES = 32
_SALT = np.array(
    [
        *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
        *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
    ],
    np.uint32,
)


def stored_values(keys: Iterable[Key], order: Order) -> list[bytes] | None:
    """The values as a filter has hashed them; None if one may be stored in several ways.

    What the column cannot hold is left out.
    """
    values = []
    for key in keys:
        try:
            match order.kind:
                case "int" | "uint":
                    assert order.width is not None
                    values.append(key.to_bytes(order.width, "little", signed=order.kind == "int"))
                case "float" if key != NAN_KEY:
                    code = {2: "<e", 4: "<f", 8: "<d"}[order.width or 8]
                    values.append(struct.pack(code, float_at(key)))
                case "bytes":
                    if order.width in (None, len(key)):
                        values.append(key)
                case "decimal" if order.width is not None:
                    values.append(key.to_bytes(order.width, "big", signed=True))
                case _:
                    return None
        except OverflowError:
            continue
    return values


def may_contain(offset: int, stated: int | None, end: int, values: Sequence[bytes]) -> Steps[bool]:
    """Whether the filter at an offset may contain one of the values; False is a proof.

    The filter ends before `end`, and has the `stated` length if the metadata give it.
    """
    with importing:
        import xxhash

    (data,) = yield Request([(offset, max(0, min(_HEADER_BYTES, end - offset)))], "Bloom filter")
    header: Any
    try:
        reader = metadata.StructReader(data.to_pybytes())
        header, length = reader.read(metadata.BloomFilterHeader)
    except metadata.MalformedThrift as error:
        raise InvalidIndex(str(error)) from None
    size = header.numBytes
    if size is None or size <= 0 or size % _BLOCK_BYTES or offset + length + size > end:
        raise InvalidIndex(f"a Bloom filter of {size} bytes")
    known = (header.algorithm, header.hash, header.compression)
    if not all(union is not None and vars(union) for union in known):
        return True  # a kind of filter from the future
    if stated is not None and stated != length + size:
        raise InvalidIndex(f"it has {length + size} bytes, and {stated} by the metadata")
    hashes = [xxhash.xxh64_intdigest(value) for value in values]
    places = [(h >> 32) * (size // _BLOCK_BYTES) >> 32 for h in hashes]
    ranges = [(offset + length + place * _BLOCK_BYTES, _BLOCK_BYTES) for place in places]
    blocks = yield Request(ranges, "Bloom filter")
    for h, block in zip(hashes, blocks, strict=True):
        bits = np.uint32(1) << (np.uint32(h & 0xFFFF_FFFF) * _SALT >> np.uint32(27))
        if (np.frombuffer(block, "<u4") & bits == bits).all():
            return True
    return False
