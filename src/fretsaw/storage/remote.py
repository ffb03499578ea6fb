"""Files of object stores and web servers, read by `obstore`.

Every request carries the version of the file that was opened: rows of two versions are never mixed.
The end of the file comes with the first request, and its size and version with it, unless a listing
told them.
"""

import os
import re
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa

from fretsaw.model.locks import importing
from fretsaw.model.trace import Why, record_read
from fretsaw.storage.attempts import (
    Changed,
    Missing,
    NoRanges,
    ShortBody,
    Unchanged,
    attempt,
    no_ranges,
)
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.descriptor import changed
from fretsaw.storage.footer_cache import ENDS
from fretsaw.storage.location import Location
from fretsaw.storage.loop import all_of, begin, result_of, wait_for
from fretsaw.storage.requests import coalesce
from fretsaw.storage.source import End, Range, Version
from fretsaw.storage.stores import bucket_of

if TYPE_CHECKING:
    from obstore import GetOptions

T = TypeVar("T")

UNKNOWN_SIZE = 512 << 10
"""What is asked for of a file of which nothing is known: a round trip is worth more."""
_LEAST_END, _MOST_END, _SHARE = 64 << 10, 1 << 20, 64
_SINCE = "since it was opened, listed or planned; scan it again"


def end_size(size: int) -> int:
    """How much of the end of a file of this size is read before anything else."""
    return min(size, max(_LEAST_END, min(_MOST_END, size // _SHARE)))


@dataclass(slots=True, eq=False)
class _Coming:
    """Bytes that were asked for before they are needed."""

    offset: int
    length: int
    data: "Future[pa.Buffer]"
    uses: int
    """How many ranges are still to be taken out of it."""


class _EndOnItsWay(NamedTuple):
    """The end of a file that will be opened soon."""

    version: Version
    data: "Future[pa.Buffer]"


_MOST_AHEAD = 32 << 20
"""Bytes of a file that are held because they were likely to be asked for."""
_ENDS_ON_THEIR_WAY: dict[Hashable, _EndOnItsWay] = {}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ENDS_ON_THEIR_WAY.clear)


class RemoteFile:
    """A file of a store; `expected` is its version where that was listed or planned.

    Raises `Missing` if there is none.
    """

    gap = 256 << 10
    data_gap = 64 << 10
    tail = 8
    far = 5 << 19
    _ahead: Sequence["_Coming"] = ()
    """What is on its way."""

    def __init__(self, location: Location, expected: Version | None = None) -> None:
        self.name = location.url
        self.closed = False
        self._bucket, self._key = bucket_of(location)
        self._kept_as = (location.target, *location.access.key)
        self.identity: Version | None = expected or self._found()
        self._version: Version = self.identity
        self.size = self._version.size
        self.is_settled = self._version.is_exact

    @property
    def _end(self) -> End | None:
        kept = ENDS.get(self._kept_as)
        return kept if kept is not None and kept.version == self._version else None

    def holds(self, place: Range) -> bool:
        if not place[1]:  # no store gives no bytes
            return True
        end = self._end
        return (end is not None and end.get(place) is not None) or self._coming(place) is not None

    def held(self, place: Range) -> pa.Buffer:
        if not place[1]:
            return pa.py_buffer(b"")
        coming = self._coming(place)
        if coming is not None:
            coming.uses -= 1
            if not coming.uses:
                self._ahead = tuple(one for one in self._ahead if one is not coming)
            data = self._translated(lambda: result_of(coming.data))
            return data.slice(place[0] - coming.offset, place[1])
        end = self._end
        found = None if end is None else end.get(place)
        if found is None:  # it was forgotten meanwhile
            (found,) = self.read_ranges([place], pa.allocate_buffer)
        return found

    def read_end(self) -> None:
        if not self.size or self._end is not None:
            return
        begun = _ENDS_ON_THEIR_WAY.pop(self._kept_as, None)
        if begun is not None and begun.version == self._version:
            data = self._translated(lambda: result_of(begun.data))
        else:
            length = end_size(self.size)
            (data,) = self.read_ranges([(self.size - length, length)], pa.allocate_buffer)
        self._keep(End(self._version, data))

    def begin_end(self) -> None:
        if self.size and self._end is None and self._kept_as not in _ENDS_ON_THEIR_WAY:
            length = end_size(self.size)
            work = self._range(self.size - length, length)
            begun = _EndOnItsWay(self._version, begin(work, self.name))
            _ENDS_ON_THEIR_WAY[self._kept_as] = begun

    def forget_end(self) -> None:
        begun = _ENDS_ON_THEIR_WAY.pop(self._kept_as, None)
        if begun is not None:
            begun.data.cancel()

    def read_ahead(self, ranges: Sequence[Range], why: Why) -> None:
        missing = [place for place in ranges if place[1] and not self.holds(place)]
        size = sum(one.length for one in self._ahead)
        for offset, length, serves in coalesce(missing, self.data_gap):
            size += length
            if size > _MOST_AHEAD:
                return  # it is read when it is needed
            record_read(self.name, offset, length, why)
            data = begin(self._range(offset, length), self.name)
            self._ahead = (*self._ahead, _Coming(offset, length, data, len(serves)))

    def read_ranges(self, ranges: Sequence[Range], allocate: Allocate) -> list[pa.Buffer]:
        works = [self._range(offset, length) for offset, length in ranges]
        return self._translated(lambda: wait_for(all_of(works), self.name))

    def _coming(self, place: Range) -> "_Coming | None":
        end = sum(place)
        ahead = self._ahead
        return next((c for c in ahead if c.offset <= place[0] and end <= c.offset + c.length), None)

    def _translated(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except Changed:
            raise changed(self.name, _SINCE) from None
        except NoRanges:
            raise no_ranges(self.name) from None
        except Missing:
            raise changed(self.name, "while it was read: it is gone; check the URL") from None

    def rest(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def __del__(self) -> None:
        for coming in self._ahead:  # nobody is left who could ask for it
            coming.data.cancel()

    def _keep(self, end: End) -> None:
        size = end.version.size
        record_read(self.name, size - end.data.size, end.data.size, "footer")
        ENDS.put(self._kept_as, end, end.data.size)

    def _found(self) -> Version:
        """The version that is there now; its end is read on the way, unless it is known."""
        kept = ENDS.get(self._kept_as)
        try:
            end = wait_for(self._opened(kept), self.name)
        except Unchanged:
            assert kept is not None
            record_read(self.name, kept.version.size, 0, "footer")
            return kept.version
        except Changed:
            raise Missing from None
        except NoRanges:
            raise no_ranges(self.name) from None
        self._keep(end)
        return end.version

    async def _opened(self, kept: End | None) -> End:
        if self._bucket.knows_suffixes:
            options: GetOptions = {"range": {"suffix": UNKNOWN_SIZE}}
            if kept is not None and kept.version.is_exact:
                options["if_none_match"] = _quoted(kept.version)
            try:
                return End(*await self._get(options, "its end"))
            except NoRanges:
                version = await self._head()
                if version.size:
                    raise
                return End(version, pa.py_buffer(b""))  # of which there is no end to ask for
        version = await self._head()
        if not version.size:
            return End(version, pa.py_buffer(b""))
        length = end_size(version.size)
        return End(version, await self._range(version.size - length, length, version))

    async def _head(self) -> Version:
        async def ask() -> Version:
            async with self._bucket.slots:
                return version_of(await _obstore().head_async(self._bucket.store, self._key))

        return await attempt(translated(ask), self.name, "its size", self._bucket.policy)

    async def _range(self, offset: int, length: int, version: Version | None = None) -> pa.Buffer:
        known = version or self._version
        options: GetOptions = {"range": (offset, offset + length)}
        if known.is_exact:
            options["if_match"] = _quoted(known)
        found, data = await self._get(options, f"{length} bytes at offset {offset}", length)
        if not found.is_of(known):
            raise Changed
        return data

    async def _get(
        self, options: "GetOptions", asked: str, length: int | None = None
    ) -> tuple[Version, pa.Buffer]:
        async def ask() -> tuple[Version, pa.Buffer]:
            async with self._bucket.slots:
                answer = await _obstore().get_async(self._bucket.store, self._key, options=options)
                data = pa.py_buffer(await answer.bytes_async())
            begin, end = answer.range
            if data.size != end - begin:
                raise ShortBody
            version = version_of(answer.meta)
            if length is not None and data.size != length:
                raise Changed if version.size < begin + length else ShortBody
            return version, data

        return await attempt(translated(ask), self.name, asked, self._bucket.policy)


def version_of(meta: Any) -> Version:
    """The version that an answer or a listing tells."""
    tag, modified = meta.get("e_tag"), meta.get("last_modified")
    if tag is not None and not tag.startswith("W/"):
        tag = tag.strip('"')
    is_told = modified is not None and modified.timestamp() > 0
    return Version(meta["size"], tag or None, modified.isoformat() if is_told else None)


def _quoted(version: Version) -> str:
    return f'"{version.tag}"'


def translated(ask: Any) -> Any:
    """The same work, whose errors say what happened to the file."""

    async def work() -> Any:
        try:
            return await ask()
        except _obstore().exceptions.PreconditionError:
            raise Changed from None
        except _obstore().exceptions.NotModifiedError:
            raise Unchanged from None
        except (FileNotFoundError, _obstore().exceptions.NotFoundError) as error:
            if "NoSuchBucket" in str(error):
                raise
            raise Missing from None
        except _obstore().exceptions.BaseError as error:
            if re.search(r"NotPartial|RangeNotSupported|status code: 416", str(error)):
                raise NoRanges from None
            raise

    return work


def _obstore() -> Any:
    with importing:
        import obstore
    return obstore
