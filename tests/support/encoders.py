"""Pages as no writer makes them: encoders that choose at random among all that the format allows.

Runs of any length, bits wider than they must be, blocks of any size, prefixes shorter than they
could be. `Column` is a column with its levels; `hand_made` is a file of such columns, in which each
chunk is cut into pages at random.
"""

import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.craft import I32, STRUCT, TRUE, Struct
from tests.support.decoding import numbered, parquet
from tests.support.page_craft import UNCOMPRESSED_SIZE, V1, V2, Pages, resized
from tests.support.pages import DICTIONARY_PAGE

PLAIN, RLE, DELTA_BINARY, DELTA_LENGTH, DELTA_BYTES, RLE_DICTIONARY, SPLIT = 0, 3, 5, 6, 7, 8, 9
DICTIONARY = 7  # the field of a page header

Chance = np.random.Generator
Encode = Callable[[Sequence[Any], Chance], bytes]


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def packed(values: Sequence[int], width: int) -> bytes:
    """Values of so many bits, the lowest first."""
    bits = sum(value << at * width for at, value in enumerate(values))
    return bits.to_bytes((len(values) * width + 7) // 8, "little")


def hybrid(values: Sequence[int], width: int, rng: Chance) -> bytes:
    """Runs of equal values and runs of packed ones, wherever both are possible either of them."""
    out, at = b"", 0
    while at < len(values):
        equal = 1
        while at + equal < len(values) and values[at + equal] == values[at]:
            equal += 1
        if rng.random() < (0.8 if equal > 8 else 0.2):
            equal = int(rng.integers(1, equal + 1)) if rng.random() < 0.3 else equal
            out += varint(equal << 1) + values[at].to_bytes((width + 7) // 8, "little")
            at += equal
        else:
            groups = int(rng.integers(1, 12))
            chosen = values[at : at + 8 * groups]
            groups = (len(chosen) + 7) // 8
            padding = [0] * (8 * groups - len(chosen))
            out += varint(groups << 1 | 1) + packed([*chosen, *padding], width)
            at += len(chosen)
    return out


def delta(values: Sequence[int], bits: int, rng: Chance) -> bytes:
    """Blocks of any size, miniblocks that may be wider than they must be."""
    minis = int(rng.choice([1, 2, 4, 8]))
    each = int(rng.choice([32, 64, 96])) if minis > 2 else 128 // minis
    block = minis * each
    block += -block % 128  # of which miniblocks are an equal part
    each = block // minis
    out = varint(block) + varint(minis) + varint(len(values)) + zigzag(values[0] if values else 0)
    modulus = 1 << bits
    steps = [(b - a) % modulus for a, b in itertools.pairwise(values)]
    signed = [step - modulus if step >> (bits - 1) else step for step in steps]
    for first in range(0, len(signed), block):
        chunk = signed[first : first + block]
        low = min(chunk)
        out_minis, widths = b"", []
        for at in range(0, block, each):
            mini = [(step - low) % modulus for step in chunk[at : at + each]]
            width = max((step.bit_length() for step in mini), default=0)
            if mini and rng.random() < 0.3:
                width = int(rng.integers(width, bits + 1))
            elif not mini:
                width = int(rng.choice([0, 5]))  # of what is not there, any number may be told
            widths.append(width)
            out_minis += packed([*mini, *[0] * (each - len(mini))], width) if mini else b""
        out += zigzag(low) + bytes(widths) + out_minis
    return out


def plain_int64(values: Sequence[int], _: Chance) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def plain_text(values: Sequence[bytes], _: Chance) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def plain_bool(values: Sequence[bool], _: Chance) -> bytes:
    return packed([int(value) for value in values], 1)


def run_bool(values: Sequence[bool], rng: Chance) -> bytes:
    runs = hybrid([int(value) for value in values], 1, rng)
    return struct.pack("<I", len(runs)) + runs


def delta_length(values: Sequence[bytes], rng: Chance) -> bytes:
    return delta([len(value) for value in values], 32, rng) + b"".join(values)


def delta_bytes(values: Sequence[bytes], rng: Chance) -> bytes:
    shared, before = [], b""
    for value in values:
        most = 0
        while most < min(len(value), len(before)) and value[most] == before[most]:
            most += 1
        shared.append(int(rng.integers(most + 1)) if rng.random() < 0.3 else most)
        before = value
    rest = [value[size:] for value, size in zip(values, shared, strict=True)]
    return delta(shared, 32, rng) + delta_length(rest, rng)


def split(values: Sequence[int], rng: Chance) -> bytes:
    whole = plain_int64(values, rng)
    return b"".join(whole[at::8] for at in range(8))


ENCODERS: dict[str, dict[int, Encode]] = {
    "int64": {
        PLAIN: plain_int64,
        SPLIT: split,
        DELTA_BINARY: lambda values, rng: delta(values, 64, rng),
    },
    "string": {PLAIN: plain_text, DELTA_LENGTH: delta_length, DELTA_BYTES: delta_bytes},
    "bool": {PLAIN: plain_bool, RLE: run_bool},
}


@dataclass(frozen=True)
class Column:
    """Values, an entry for each slot: which row it begins, its levels, and its value if it has one.

    The repetition is 0 where a row begins.
    """

    kind: str
    repetitions: Sequence[int]
    definitions: Sequence[int]
    values: Sequence[Any]
    max_repetition: int
    max_definition: int
    dictionary: bool = False

    def slots_of(self, first: int, end: int) -> Iterator[Any]:
        """The values of slots, without those of slots that have none."""
        for slot in range(first, end):
            if self.definitions[slot] == self.max_definition:
                yield self.values[slot]


def column_of(array: pa.Array, nullable: bool, dictionary: bool = False) -> Column:
    """The levels and values of a flat column, or of optional lists of optional items."""
    if not pa.types.is_list(array.type):
        values = [v.encode() if isinstance(v, str) else v for v in array.to_pylist()]
        levels = [int(value is not None and nullable) for value in values]
        kind = str(array.type)
        return Column(kind, [0] * len(values), levels, values, 0, int(nullable), dictionary)
    repetitions: list[int] = []
    definitions: list[int] = []
    items: list[Any] = []
    for row in array.to_pylist():
        slots = row if row else [None]
        repetitions += [0] + [1] * (len(slots) - 1)
        items += [item.encode() if isinstance(item, str) else item for item in slots]
        definitions += [int(row is not None)] if not row else [2 + (i is not None) for i in row]
    kind = str(array.type.value_type)
    return Column(kind, repetitions, definitions, items, 1, 3, dictionary)


@dataclass(frozen=True)
class Maker:
    """Makes pages of columns, in one version and with one codec."""

    version: str
    codec: str
    rng: Chance
    checksums: bool = False

    def pages(self, column: Column) -> list[tuple[Struct, bytes]]:
        """The data pages of a chunk; each begins a row."""
        starts = [slot for slot, level in enumerate(column.repetitions) if level == 0]
        some = self.rng.choice(starts, size=min(len(starts), 6), replace=False).tolist()
        cuts = sorted({0, *some, len(column.repetitions)})
        distinct = sorted({*column.slots_of(0, len(column.values))})
        return [self._data(column, distinct, first, end) for first, end in itertools.pairwise(cuts)]

    def dictionary(self, column: Column) -> tuple[Struct, bytes]:
        values = sorted({*column.slots_of(0, len(column.values))})
        body = ENCODERS[column.kind][PLAIN](values, self.rng)
        details = {1: (I32, len(values)), 2: (I32, PLAIN)}
        return self._stored({1: (I32, DICTIONARY_PAGE), DICTIONARY: (STRUCT, details)}, b"", body)

    def _data(
        self, column: Column, distinct: list[Any], first: int, end: int
    ) -> tuple[Struct, bytes]:
        values = list(column.slots_of(first, end))
        encoding = int(self.rng.choice(list(ENCODERS[column.kind])))
        if column.dictionary and self.rng.random() < 0.7:
            encoding = RLE_DICTIONARY
            indices = [distinct.index(value) for value in values]
            least = max(len(distinct) - 1, 0).bit_length()
            width = int(self.rng.integers(least, 33)) if self.rng.random() < 0.3 else least
            body = bytes([width]) + hybrid(indices, width, self.rng)
        else:
            body = ENCODERS[column.kind][encoding](values, self.rng)
        slots = end - first
        repetitions = self._levels(column.repetitions[first:end], column.max_repetition)
        definitions = self._levels(column.definitions[first:end], column.max_definition)
        if self.version == "2.0":
            details: Struct = {
                1: (I32, slots),
                2: (I32, slots - len(values)),
                3: (I32, column.repetitions[first:end].count(0)),
                4: (I32, encoding),
                5: (I32, len(definitions)),
                6: (I32, len(repetitions)),
            }
            header: Struct = {1: (I32, 3), V2: (STRUCT, details)}
            return self._stored(header, repetitions + definitions, body)
        details = {1: (I32, slots), 2: (I32, encoding), 3: (I32, RLE), 4: (I32, RLE)}
        parts = [struct.pack("<I", len(part)) + part for part in (repetitions, definitions) if part]
        return self._stored({1: (I32, 0), V1: (STRUCT, details)}, b"", b"".join([*parts, body]))

    def _levels(self, levels: Sequence[int], highest: int) -> bytes:
        return hybrid(levels, highest.bit_length(), self.rng) if highest else b""

    def _stored(self, header: Struct, levels: bytes, body: bytes) -> tuple[Struct, bytes]:
        """A page as it stands in the file; some of version 2 are not compressed and say so."""
        header = {**header, UNCOMPRESSED_SIZE: (I32, len(levels) + len(body))}
        if self.checksums:
            header[4] = (I32, 0)
        is_packed = self.codec != "none"
        if V2 in header and is_packed and self.rng.random() < 0.3:
            header[V2] = (STRUCT, {**header[V2][1], 7: (TRUE, False)})
            is_packed = False
        codec = "lz4_raw" if self.codec == "lz4" else self.codec
        stored = pa.compress(body, codec, asbytes=True) if is_packed else body
        return resized(header, levels + stored)


def hand_made(table: pa.Table, dictionaries: Sequence[str], maker: Maker) -> bytes:
    """A file of this table in one row group, page by page encoded at random."""
    whole = numbered(list(table.schema), [column.combine_chunks() for column in table.columns])
    paths = [
        name + ".list.element" if pa.types.is_list(whole.schema.field(name).type) else name
        for name in dictionaries
    ]
    template = parquet(
        whole,
        use_dictionary=paths,
        compression=maker.codec,
        data_page_size=1 << 30,
        write_statistics=False,
    )
    columns = iter(
        [
            column_of(whole[item.name].combine_chunks(), item.nullable, item.name in dictionaries)
            for item in whole.schema
        ]
    )
    begun: list[Column] = []

    def change(header: Struct, _: bytes) -> list[tuple[Struct, bytes]]:
        if header[1][1] == DICTIONARY_PAGE:
            begun.append(next(columns))
            return [maker.dictionary(begun[-1])]
        return maker.pages(begun.pop() if begun else next(columns))

    return Pages(template).changed(change)
