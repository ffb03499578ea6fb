"""The limit: how long decompression alone takes of the pages that a workload can not do without.

In: pieces, each a compressed part of a file in memory. Out: seconds, on as many threads as
everybody has, each of which decompresses into memory that it uses again; of several libraries the
fastest. Nothing is planned, read, checked or decoded: whoever returns these rows can hardly take
less time, and what takes much more spends it on something else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import cramjam
import pyarrow as pa
from isal import isal_zlib

from benchmarks import THREADS
from benchmarks.race import race, timer

GZIP, DEFLATE = 31, -15  # what zlib calls the formats
LIMIT_BUDGET = 0.25  # of that of a contestant, for each library


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file that is compressed by itself, and how many bytes it has without."""

    data: memoryview
    codec: str
    size: int


Decompress = Callable[[memoryview, int], object]
Make = Callable[[int], Decompress]
"""Makes what one thread uses, for pieces of at most so many bytes."""


def _by_arrow(codec: str) -> Make:
    return lambda room: pa.Codec(codec).decompress


def _by_cramjam(into: Callable[[memoryview, bytearray], int]) -> Make:
    def make(room: int) -> Decompress:
        memory = bytearray(room)
        return lambda data, size: into(data, memory)

    return make


def _by_isal(wbits: int) -> Make:
    return lambda room: lambda data, size: isal_zlib.decompress(data, wbits=wbits, bufsize=size)


LIBRARIES: Mapping[str, Sequence[Make]] = {
    "snappy": (_by_arrow("snappy"), _by_cramjam(cramjam.snappy.decompress_raw_into)),
    "zstd": (_by_arrow("zstd"), _by_cramjam(cramjam.zstd.decompress_into)),
    "gzip": (_by_arrow("gzip"), _by_isal(GZIP)),
    "deflate": (_by_isal(DEFLATE),),
}


def measure_limit(pieces: Sequence[Piece], budget: float) -> float | None:
    """Seconds to decompress all of them; None if they are not compressed, or by several codecs."""
    codecs = {piece.codec for piece in pieces}
    if len(codecs) != 1:
        return None
    libraries = LIBRARIES[codecs.pop()]
    room = max(piece.size for piece in pieces)
    with ThreadPoolExecutor(THREADS) as pool:
        timers = {}
        for number, make in enumerate(libraries):
            workers = [make(room) for _ in range(THREADS)]
            timers[str(number)] = timer(partial(_decompress, pieces, workers, pool))
        return min(race(timers, LIMIT_BUDGET * budget).values())


def _decompress(
    pieces: Sequence[Piece], workers: Sequence[Decompress], pool: ThreadPoolExecutor
) -> None:
    left = iter(pieces)  # shared: whoever is free takes the next one
    list(pool.map(partial(_work, left), workers))


def _work(pieces: Iterator[Piece], decompress: Decompress) -> None:
    for piece in pieces:
        decompress(piece.data, piece.size)
