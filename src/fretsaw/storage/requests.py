"""What a format asks for, step by step, and what drives such steps.

A format never reads: it yields a `Request` and is sent the buffers. Steps that run `together` ask
for a wave of requests at a time, whose ranges are fetched at once, whatever they are for.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import accumulate, islice
from operator import itemgetter
from typing import NamedTuple, TypeAlias, TypeVar, cast

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.model.locks import Lock
from fretsaw.model.trace import Why, record_read
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.source import Range, Source

LARGEST_READ = 64 << 20
_MOST_GAPS = 16
"""A request reads on over no more bytes than so many gaps have."""
MOST_KEPT = 32 << 20
"""Bytes that are kept for all pieces of a block."""


Bets: TypeAlias = Callable[[], Sequence[Range]]


class Request(NamedTuple):
    """Byte ranges (offset and length) that a format needs next, and what for."""

    ranges: Sequence[Range]
    why: Why
    common: Sequence[Range] = ()
    """Those that other pieces of the block need as well: their buffers come behind the others."""
    likely: range = range(0)
    """Where further ranges, as long as the last one, may be asked for next.

    The buffer of the last range goes on over these if the source had rather read on to them than be
    asked again.
    """

    bets: Bets = tuple
    """Ranges that are likely to be asked for next: read along where that costs a wait."""

    @property
    def all(self) -> list[Range]:
        """All ranges, in the order of their buffers."""
        return [*self.ranges, *self.common]


T = TypeVar("T")
Wave: TypeAlias = Sequence[Request]
"""What is asked for at a time."""
Steps: TypeAlias = Generator[Request | Wave, Sequence[pa.Buffer], T]
Fetch: TypeAlias = Callable[[Wave], list[pa.Buffer]]
"""Gives the buffers of all ranges of a wave, one request after the other."""


def run(steps: Steps[T], fetch: Fetch) -> T:
    """Drive steps to their result."""
    buffers: Sequence[pa.Buffer] | None = None
    while True:
        try:
            asked = steps.send(cast(Sequence[pa.Buffer], buffers))
        except StopIteration as stop:
            return cast(T, stop.value)
        buffers = fetch(wave_of(asked))


def together(many: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Several runs of steps as one: what they ask for at a time is one wave."""
    results: dict[int, T] = {}
    waves: dict[int, Wave] = {}

    def advance(position: int, buffers: Sequence[pa.Buffer] | None) -> None:
        try:
            waves[position] = wave_of(many[position].send(cast(Sequence[pa.Buffer], buffers)))
        except StopIteration as stop:
            results[position] = stop.value

    for position in range(len(many)):
        advance(position, None)
    while waves:
        asked, waves = waves, {}
        buffers = iter((yield [request for wave in asked.values() for request in wave]))
        for position, wave in asked.items():
            count = sum(len(request.all) for request in wave)
            advance(position, list(islice(buffers, count)))
    return [results[position] for position in range(len(many))]


def wave_of(asked: Request | Wave) -> Wave:
    """What is asked for, be it one request or several."""
    return (asked,) if isinstance(asked, Request) else asked


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
                serves.append(position)
                reads[-1] = Read(start, joined, serves)
                continue
        reads.append(Read(offset, length, [position]))
    return reads


def fetch(source: Source, wave: Wave, allocate: Allocate = pa.allocate_buffer) -> list[pa.Buffer]:
    """The bytes of each range of a wave; every read goes into the active traces.

    All that is to be read is handed to the source at once. Ranges are joined with others that are
    wanted for the same reason; what lies in the end of the file that is in memory is not read.
    """
    if not source.far:
        return _read(source, wave, allocate)
    here: list[bool] = []
    rest: list[Request] = []
    for request in wave:
        _require_inside(source, request.all, request.why)
        held = [source.holds(place) for place in request.all]
        here += held
        count = len(request.ranges)
        missing = [
            [place for place, is_here in zip(places, flags, strict=True) if not is_here]
            for places, flags in (
                (request.ranges, held[:count]),
                (request.common, held[count:]),
            )
        ]
        reads_on = request.likely and missing[0][-1:] == list(request.ranges[-1:])
        likely = request.likely if reads_on else range(0)
        rest.append(Request(missing[0], request.why, missing[1], likely))
    bets = [place for request in wave for place in request.bets()]
    source.read_ahead(_worth_a_bet(bets, source), "data")
    read = iter(_read(source, [one for one in rest if one.ranges or one.common], allocate))
    places = (place for request in wave for place in request.all)
    return [
        source.held(place) if is_here else next(read)
        for place, is_here in zip(places, here, strict=True)
    ]


def _worth_a_bet(places: list[Range], source: Source) -> list[Range]:
    """The shortest of some ranges, as many as cost less than another wait."""
    places.sort(key=itemgetter(1))
    sizes = accumulate(length for _, length in places)
    return [place for place, total in zip(places, sizes, strict=True) if total <= source.far]


def _read(source: Source, wave: Wave, allocate: Allocate) -> list[pa.Buffer]:
    if not wave:
        return []
    if len(wave) == 1 and len(wave[0].ranges) == 1 and not (wave[0].common or wave[0].likely):
        return _fetch_one(source, wave[0].ranges[0], wave[0].why, allocate)
    wanted: dict[Why, list[Range]] = {}
    for request in wave:
        ranges = wanted.setdefault(request.why, [])
        ranges += request.ranges
        if request.likely:
            ranges[-1] = _read_on(ranges[-1], request.likely, source.gap)
        ranges += request.common
    reads: list[tuple[Why, Read]] = []
    for why, ranges in wanted.items():
        _require_inside(source, ranges, why)
        gap = source.data_gap if why == "data" else source.gap
        reads += [(why, read) for read in coalesce(ranges, gap) if read.length]
    found = source.read_ranges([(offset, length) for _, (offset, length, _) in reads], allocate)
    buffers = {why: [_EMPTY] * len(ranges) for why, ranges in wanted.items()}
    for (why, (begin, size, serves)), data in zip(reads, found, strict=True):
        record_read(source.name, begin, size, why)
        for position in serves:
            offset, length = wanted[why][position]
            buffers[why][position] = data.slice(offset - begin, length)
    if len(buffers) == 1:
        return buffers.popitem()[1]
    following = {why: iter(found) for why, found in buffers.items()}
    return [next(following[request.why]) for request in wave for _ in request.all]


_EMPTY = pa.py_buffer(b"")


def _fetch_one(source: Source, place: Range, why: Why, allocate: Allocate) -> list[pa.Buffer]:
    """The same of a single range: thousands of small files have no other."""
    _require_inside(source, [place], why)
    offset, length = place
    if not length:
        return [_EMPTY]
    found = source.read_ranges([place], allocate)
    record_read(source.name, offset, length, why)
    return found


def _read_on(place: Range, likely: range, gap: int) -> Range:
    """A range, with likely ones behind it if these lie within the gap of one another."""
    offset, length = place
    if likely.step > length + gap:
        return place
    count = min(len(likely), 1 + _MOST_GAPS * gap // likely.step)
    return offset, likely[count - 1] + length - offset


def _require_inside(source: Source, ranges: Sequence[Range], why: Why) -> None:
    for offset, length in ranges:
        if offset < 0 or length < 0 or offset + length > source.size:
            raise FileFormatError(
                f"{source.name}: {length} bytes at offset {offset} ({why}) lie outside of its "
                f"{source.size} bytes; it is truncated or corrupt, write or copy it again"
            )


class Kept:
    """Bytes that several pieces of a block need, read by the first that comes.

    It is let go of with the last of these pieces.
    """

    def __init__(self) -> None:
        self._found: dict[Range, pa.Buffer] = {}
        self._room = MOST_KEPT
        self._lock = Lock()

    def get(self, ranges: Sequence[Range], why: Why, fetch: Fetch) -> list[pa.Buffer] | None:
        """The bytes of these ranges; None if they are too many to be kept."""
        with self._lock:  # also while they are read: who needs them meanwhile waits for them
            missing = [one for one in ranges if one not in self._found]
            size = sum(length for _, length in missing)
            if size > self._room:
                return None
            if missing:
                self._found.update(zip(missing, fetch([Request(missing, why)]), strict=True))
                self._room -= size
            return [self._found[one] for one in ranges]


def sharing(steps: Steps[T], kept: Kept, fetch: Fetch) -> Steps[T]:
    """The same steps, which ask only for what is not kept for all pieces of a block."""
    buffers: Sequence[pa.Buffer] | None = None
    while True:
        try:
            wave = wave_of(steps.send(cast(Sequence[pa.Buffer], buffers)))
        except StopIteration as stop:
            return cast(T, stop.value)
        shared = [kept.get(request.common, request.why, fetch) for request in wave]
        both = list(zip(wave, shared, strict=True))
        rest = [r if common is None else r._replace(common=()) for r, common in both]
        read = iter((yield rest))
        buffers = []
        for request, common in zip(rest, shared, strict=True):
            buffers += [*islice(read, len(request.all)), *(common or ())]
