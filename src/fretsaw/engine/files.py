"""Open files: a source and the reader of its format.

`open_in_order` opens the files of a scan one after the other, a few ahead of the consumer, so that
many footers are on their way at once and files that nobody gets to stay closed.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import cast

import pyarrow as pa

from fretsaw.engine import threads
from fretsaw.engine.corrupt_files import CorruptFiles
from fretsaw.engine.pieces import fits_whole
from fretsaw.errors import FileFormatError
from fretsaw.formats import registry
from fretsaw.formats.interface import BlockReader, FileReader, ReadOptions
from fretsaw.model.blocks import Block, PageIndex
from fretsaw.model.locks import once
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage import footer_cache, requests
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.listing import Entry, Listing, nothing_in
from fretsaw.storage.origins import announce, open_source
from fretsaw.storage.requests import Request, Wave
from fretsaw.storage.source import Identity, Source

_MOST_AHEAD = 32
_MOST_ENDS = 128
"""Ends of remote files that are on their way."""
_SLOW = 0.005
"""Seconds to open a file: what is faster comes from memory, and threads would only cost."""
_AROUND = 64
"""Bytes to read with a footer that is as long as the one before: lengths, magic, a little more."""
_COMPARED = 4 << 10
"""Bytes at the end of a file that tell whether its footer is the one that is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenFile:
    """A file whose footer is read."""

    source: Source
    reader: FileReader
    entry: Entry

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.source.name

    @property
    def num_rows(self) -> int:
        """Rows of all blocks together, whatever else the footer claims."""
        return sum(block.num_rows for block in self.reader.blocks)

    @property
    def planned(self) -> Entry:
        """Its entry in a plan: no other file will be read in its place."""
        return replace(self.entry, identity=self.source.identity)

    def fetch(self, wave: Wave, allocate: Allocate = pa.allocate_buffer) -> list[pa.Buffer]:
        """The bytes of all ranges that are asked for at a time."""
        return requests.fetch(self.source, wave, allocate)

    def open_blocks(self, blocks: Sequence[Block]) -> Sequence[BlockReader]:
        """Open some blocks; what is found in them is kept as long as they are."""
        return requests.run(self.reader.open_blocks(blocks), self.fetch)

    def pages_of(
        self,
        blocks: Sequence[tuple[BlockReader, RowSelection]],
        leaves: Sequence[SchemaNode],
        piece_bytes: int,
    ) -> list[list[PageIndex]]:
        """The pages to plan with, of each leaf in each block; all indexes are read at once.

        None is read where all of a block is wanted and fits into one piece.
        """
        pages = [[block.whole_chunk(leaf) for leaf in leaves] for block, _ in blocks]
        divided = [
            number
            for number, ((_, rows), chunks) in enumerate(zip(blocks, pages, strict=True))
            if not fits_whole(rows, chunks, piece_bytes)
        ]
        steps = [
            block.page_indexes(leaves, int(rows.ends[-1]))
            for block, rows in (blocks[number] for number in divided)
        ]
        found = requests.run(requests.together(steps), self.fetch)
        for number, indexes in zip(divided, found, strict=True):
            pages[number] = indexes
        return pages


def open_entry(entry: Entry, options: ReadOptions, like: FileReader | None = None) -> OpenFile:
    """Open a source and read its footer; the schema may be `like` that of another file."""
    source = open_source(entry.origin, entry.identity)
    key = (source.name, source.identity, options)
    kept = cast(_Footer | None, footer_cache.FOOTERS.get(key)) if source.is_settled else None
    if kept is not None and kept.is_still_in(source):
        return OpenFile(source, kept.reader, entry)
    source.read_end()
    found: list[tuple[int, pa.Buffer]] = []

    def fetch(wave: Wave) -> list[pa.Buffer]:
        buffers = requests.fetch(source, wave)
        offsets = [offset for request in wave for offset, _ in request.all]
        found.extend(zip(offsets, buffers, strict=True))
        return buffers

    tail = source.tail if like is None else max(source.tail, like.footer_size + _AROUND)
    steps = registry.open_file(source.name, source.size, tail, options, like)
    reader = requests.run(steps, fetch)
    if source.is_settled:
        is_local = isinstance(source.identity, Identity)
        footer = _Footer(reader, _end_of(source.size, found) if is_local else b"")
        footer_cache.FOOTERS.put(key, footer, reader.footer_size)
    return OpenFile(source, reader, entry)


@dataclass(frozen=True, slots=True, eq=False)
class _Footer:
    """A footer that is kept, and the last bytes of its file.

    They are compared before it is believed: who writes through a mapping may move no times. The
    version of a remote file is proof enough.
    """

    reader: FileReader
    end: bytes

    def is_still_in(self, source: Source) -> bool:
        length = len(self.end)
        request = Request([(source.size - length, length)], "footer")
        (found,) = requests.fetch(source, [request])
        return bool(found.to_pybytes() == self.end)


def _end_of(size: int, found: Sequence[tuple[int, pa.Buffer]]) -> bytes:
    """The last bytes of a file, out of what was read of it, as many as are compared."""
    end = b""
    for offset, data in sorted(found, key=itemgetter(0), reverse=True):
        missing = size - len(end) - offset
        if 0 < missing <= data.size:
            first = max(0, missing - _COMPARED)  # of much data, little is compared
            end = data.slice(first, missing - first).to_pybytes() + end
    return end[-_COMPARED:]


def open_in_order(
    entries: Sequence[Entry],
    options: ReadOptions,
    likely: Callable[[], int],
    like: FileReader | None = None,
    passed_over: list[Entry] | None = None,
    corrupt: CorruptFiles | None = None,
) -> Iterator[OpenFile]:
    """Open files one after the other; what is no file to read in a directory is passed over.

    `likely` says how many files will surely be asked for behind the current one. Of the `corrupt`
    ones, those whose footers cannot be read are left out, if they may be.
    """
    others = [] if passed_over is None else passed_over
    waiting = _announced(entries, likely)
    ahead: deque[tuple[Entry, threads.Started[tuple[OpenFile | None, bool]]]] = deque()
    opened, is_slow = 0, False
    try:
        while True:
            # The more files were asked for, the more are opened ahead, if that is worth a thread.
            while is_slow and len(ahead) <= min(opened, likely(), _MOST_AHEAD):
                entry = next(waiting, None)
                if entry is None:
                    break
                task = threads.start(_timed, entry, options, like, others)
                ahead.append((entry, task))
            try:
                if ahead:
                    entry, task = ahead.popleft()
                    file, is_slow = task.result()
                else:
                    entry = next(waiting, None)
                    if entry is None:
                        return
                    file, is_slow = _timed(entry, options, like, others)
            except FileFormatError as error:
                if corrupt is None or entry is None or not corrupt.may_skip:
                    raise
                corrupt.leave_out(entry, error)
                file = None
            opened += 1
            if file is not None:
                like = file.reader
                yield file
            del file  # it is closed with the last piece of work that reads it
    finally:
        threads.abandon(task for _, task in ahead)
        waiting.close()


def _announced(entries: Sequence[Entry], likely: Callable[[], int]) -> Generator[Entry, None, None]:
    """The files, whose ends are on their way from afar as far as they are likely to be opened."""
    following = iter(entries)
    ahead: deque[tuple[Entry, Callable[[], None]]] = deque()
    try:
        while True:
            for entry in islice(following, max(0, 1 + min(likely(), _MOST_ENDS) - len(ahead))):
                ahead.append((entry, announce(entry.origin, entry.identity)))
            if not ahead:
                return
            yield ahead.popleft()[0]
    finally:
        for _, call_off in ahead:
            call_off()


def _timed(
    entry: Entry, options: ReadOptions, like: FileReader | None, passed_over: list[Entry]
) -> tuple[OpenFile | None, bool]:
    """A file that was opened, and whether that took long."""
    began = time.perf_counter()
    file = _open_if_readable(entry, options, like, passed_over)
    return file, time.perf_counter() - began > _SLOW


def _open_if_readable(
    entry: Entry, options: ReadOptions, like: FileReader | None, passed_over: list[Entry]
) -> OpenFile | None:
    try:
        return open_entry(entry, options, like)
    except FileFormatError as error:
        if entry.found_in is None or not error.is_other_format:
            raise
        passed_over.append(entry)
        return None


class Files:
    """The files of a scan, opened in order as they are asked for; the first is opened once.

    `entries` are those that folders leave of all that are listed.
    """

    def __init__(
        self,
        listing: Listing,
        entries: Sequence[Entry],
        options: ReadOptions,
        opened: OpenFile | None,
        is_settled: bool,
        corrupt: CorruptFiles,
    ) -> None:
        self._listing = listing
        self._entries = entries
        self._options = options
        self._opened = opened
        self._corrupt = corrupt
        # Folders may drop the very file that settles the columns; not those of a part of a scan.
        self._has_all = entries is listing.entries or len(entries) == len(listing.entries)
        self._settles_apart = not is_settled and not self._has_all
        self._most_rows = 0
        self._likely = 0
        self.passed_over: list[Entry] = []
        """What was found in directories and globs and is no file to read."""

    @once
    def settling(self) -> OpenFile:
        """The file that settles the columns: the first of all, whatever the predicate."""
        return self._first_listed() if self._settles_apart else self.first

    @once
    def first(self) -> OpenFile:
        """The first file that folders leave, or of all if they leave none; not opened again."""
        if self._opened is None:
            if self._settles_apart and self.settling.entry in self._entries:
                self._opened = self.settling
            else:
                self._opened = next(self.in_order(), None)
        if self._opened is None:  # none may match: the first says what the columns would be
            return self.settling if self._settles_apart else self._first_listed()
        return self._opened

    def in_order(self, backward: bool = False) -> Iterator[OpenFile]:
        """The files that folders leave, opened as they are asked for."""
        entries, first = self._entries, self._opened
        found: set[str | None] = set()
        if not self._has_all:
            found = {None, *(entry.found_in for entry in self._listing.entries)}
            found -= {entry.found_in for entry in entries}
        if first is not None:
            found.add(first.entry.found_in)
            entries = entries[entries.index(first.entry) + 1 :]
            if not backward:
                yield first
        ordered = entries[::-1] if backward else entries
        like = None if first is None else first.reader
        likely, others = (lambda: self._likely), self.passed_over
        for file in open_in_order(ordered, self._options, likely, like, others, self._corrupt):
            found.add(file.entry.found_in)
            yield file
        found |= {entry.found_in for entry in self._corrupt.entries}
        for entry in entries:
            if entry.found_in not in found and not self._listing.is_split:
                raise nothing_in(str(entry.found_in))
        if first is not None and backward:
            yield first

    def all_in_order(self) -> Iterator[OpenFile]:
        """All files, also those that their folders rule out."""
        entries = self._listing.entries
        if self._has_all:
            yield from self.in_order()
            return
        like = None
        if self._settles_apart:
            yield self.settling
            like = self.settling.reader
            entries = entries[entries.index(self.settling.entry) + 1 :]
        yield from open_in_order(
            entries, self._options, lambda: self._likely, like, corrupt=self._corrupt
        )

    def expect(self, rows: int | None, file: OpenFile) -> None:
        """So many more rows are needed behind this file; None: all that there are."""
        self._most_rows = max(self._most_rows, file.num_rows, 1)
        self._likely = sys.maxsize if rows is None else rows // self._most_rows

    def expect_all(self) -> None:
        """All files will be asked for."""
        self._likely = sys.maxsize

    def _first_listed(self) -> OpenFile:
        entries, corrupt = self._listing.entries, self._corrupt
        first = next(open_in_order(entries, self._options, lambda: 0, corrupt=corrupt), None)
        if first is None:
            raise corrupt.first_error or nothing_in(self._listing.name)
        return first
