"""What a format asks for, step by step, and what drives such steps.

A format never reads: it yields a `Request` and is sent the buffers. Steps that run together have
what they ask for fetched at once.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.model.locks import Lock
from fretsaw.model.trace import Why, record_read
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.source import Range, Source

LARGEST_READ = 64 << 20
MOST_KEPT = 32 << 20
"""Bytes that are kept for all pieces of a block."""


class Read(NamedTuple):
    """One read, and which of the requested ranges it serves (by their position)."""

    offset: int
    length: int
    serves: list[int]


def coalesce(ranges: Sequence[Range], gap: int, largest: int = LARGEST_READ) -> list[Read]:
    """The reads that serve all ranges: neighbours at most `gap` bytes apart become one read.

    A read grows no larger than `largest` by joining; a single range above that stays whole.

    >>> coalesce([(100, 10), (0, 50), (55, 5)], gap=10)
    [Read(offset=0, length=60, serves=[1, 2]), Read(offset=100, length=10, serves=[0])]
    """
    reads: list[Read] = []
    for position in sorted(range(len(ranges)), key=ranges.__getitem__):
        offset, length = ranges[position]
        if reads:
            start, so_far, serves = reads[-1]
            joined = max(start + so_far, offset + length) - start
            if offset <= start + so_far + gap and joined <= max(largest, so_far):
                reads[-1] = Read(start, joined, [*serves, position])
                continue
        reads.append(Read(offset, length, [position]))
    return reads


def fetch(
    source: Source, ranges: Sequence[Range], why: Why, allocate: Allocate = pa.allocate_buffer
) -> list[pa.Buffer]:
    """The bytes of each range, in the order asked; every read goes into the active traces."""
    for offset, length in ranges:
        if offset < 0 or length < 0 or offset + length > source.size:
            raise FileFormatError(
                f"{source.name}: {length} bytes at offset {offset} ({why}) lie outside of its "
                f"{source.size} bytes; it is truncated or corrupt, write or copy it again"
            )
    buffers: list[pa.Buffer] = [_EMPTY] * len(ranges)
    # Between two pieces of data may lie a column that nobody asked for: no gap is read there.
    for read in coalesce(ranges, 0 if why == "data" else source.gap):
        if read.length == 0:
            continue
        data = source.read(read.offset, read.length, allocate)
        record_read(source.name, read.offset, read.length, why)
        for position in read.serves:
            offset, length = ranges[position]
            buffers[position] = data.slice(offset - read.offset, length)
    return buffers


_EMPTY = pa.py_buffer(b"")


@dataclass(frozen=True, slots=True)
class Request:
    """Byte ranges (offset and length) that a format needs next, and what for."""

    ranges: Sequence[tuple[int, int]]
    why: Why
    common: Sequence[tuple[int, int]] = ()
    """Those that other pieces of the block need as well: their buffers come behind the others."""

    @property
    def all(self) -> list[tuple[int, int]]:
        """All ranges, in the order of their buffers."""
        return [*self.ranges, *self.common]


T = TypeVar("T")
Steps: TypeAlias = Generator[Request, Sequence[pa.Buffer], T]
Fetch: TypeAlias = Callable[[Sequence[tuple[int, int]], Any], list[pa.Buffer]]


def run(steps: Steps[T], fetch: Fetch) -> T:
    """Drive one run of steps to its result."""
    return run_together([steps], fetch)[0]


def together(many: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Several runs of steps as one: what they ask for at a time is one request."""
    results: dict[int, T] = {}
    asked: dict[int, Request] = {}

    def advance(position: int, buffers: Sequence[pa.Buffer] | None) -> None:
        try:
            asked[position] = many[position].send(cast(Sequence[pa.Buffer], buffers))
        except StopIteration as stop:
            results[position] = stop.value

    for position in range(len(many)):
        advance(position, None)
    while asked:
        wave, asked = asked, {}
        ranges = [place for request in wave.values() for place in request.ranges]
        buffers = iter((yield Request(ranges, next(iter(wave.values())).why)))
        for position, request in wave.items():
            advance(position, [next(buffers) for _ in request.ranges])
    return [results[position] for position in range(len(many))]


def run_together(many: Sequence[Steps[T]], fetch: Fetch) -> list[T]:
    """Drive several runs side by side: what they ask for at a time is fetched at once."""
    results: dict[int, T] = {}
    requests: dict[int, Request] = {}

    def advance(position: int, buffers: Sequence[pa.Buffer] | None) -> None:
        try:
            requests[position] = many[position].send(cast(Sequence[pa.Buffer], buffers))
        except StopIteration as stop:
            results[position] = stop.value

    for position in range(len(many)):
        advance(position, None)
    while requests:
        asked, requests = requests, {}
        for why in dict.fromkeys(request.why for request in asked.values()):
            group = {p: request for p, request in asked.items() if request.why == why}
            buffers = iter(fetch([r for request in group.values() for r in request.all], why))
            for position, request in group.items():
                advance(position, [next(buffers) for _ in request.all])
    return [results[position] for position in range(len(many))]


class Kept:
    """Bytes that several pieces of a block need, read by the first that comes.

    It is let go of with the last of these pieces.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], pa.Buffer] = {}
        self._room = MOST_KEPT
        self._lock = Lock()

    def get(
        self, ranges: Sequence[tuple[int, int]], why: Why, fetch: Fetch
    ) -> list[pa.Buffer] | None:
        """The bytes of these ranges; None if they are too many to be kept."""
        with self._lock:  # also while they are read: who needs them meanwhile waits for them
            missing = [one for one in ranges if one not in self._found]
            size = sum(length for _, length in missing)
            if size > self._room:
                return None
            if missing:
                self._found.update(zip(missing, fetch(missing, why), strict=True))
                self._room -= size
            return [self._found[one] for one in ranges]


def sharing(steps: Steps[T], kept: Kept | None, fetch: Fetch) -> Steps[T]:
    """The same steps, which ask only for what is not kept for all pieces of a block."""
    buffers: Sequence[pa.Buffer] | None = None
    while True:
        try:
            request = steps.send(cast(Sequence[pa.Buffer], buffers))
        except StopIteration as stop:
            return cast(T, stop.value)
        common = kept.get(request.common, request.why, fetch) if kept is not None else None
        if common is None:
            buffers = yield request
        else:
            buffers = [*(yield Request(request.ranges, request.why)), *common]
