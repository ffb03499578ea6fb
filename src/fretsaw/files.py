"""Open files: a source and the reader of its format.

`open_in_order` opens the files of a scan one after the other, a few ahead of the consumer, so that
many footers are on their way at once and files that nobody gets to stay closed.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import pyarrow as pa

from fretsaw import cache, formats, storage, threads
from fretsaw.formats import FileReader, ReadOptions
from fretsaw.layout import Block, PageIndex
from fretsaw.plan import BlockRows, fits_whole
from fretsaw.schema import SchemaNode
from fretsaw.scratch import Allocate
from fretsaw.sources import Entry
from fretsaw.trace import Why

_MOST_AHEAD = 32
_SLOW = 0.005
"""Seconds to open a file: what is faster comes from memory, and threads would only cost."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenFile:
    """A file whose footer is read."""

    source: storage.Source
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

    def fetch(
        self,
        ranges: Sequence[storage.Range],
        why: Why,
        allocate: Allocate = pa.allocate_buffer,
    ) -> list[pa.Buffer]:
        """The bytes of these ranges."""
        return storage.fetch(self.source, ranges, why, allocate)

    def chunks(self, block: Block, leaves: Sequence[SchemaNode]) -> list[PageIndex]:
        """The chunks of these leaves as one page each."""
        formats.run(self.reader.locate([block]), self.fetch)
        return [self.reader.chunk(block, leaf) for leaf in leaves]

    def pages_of(
        self,
        selected: BlockRows,
        leaves: Sequence[SchemaNode],
        piece_bytes: int,
        known: Mapping[int, PageIndex] | None = None,
    ) -> list[PageIndex]:
        """The pages to plan with: no index is read where all of a block is wanted at once.

        Some may be `known` already, by the index of their leaf.
        """
        return self.pages_of_each([(selected, known or {})], leaves, piece_bytes)[0]

    def pages_of_each(
        self,
        blocks: Sequence[tuple[BlockRows, Mapping[int, PageIndex]]],
        leaves: Sequence[SchemaNode],
        piece_bytes: int,
    ) -> list[list[PageIndex]]:
        """The same for several blocks, whose indexes are read at once."""
        formats.run(self.reader.locate([selected.block for selected, _ in blocks]), self.fetch)
        pages: list[list[PageIndex]] = []
        places: list[tuple[int, int]] = []
        steps = []
        for number, (selected, known) in enumerate(blocks):
            chunks = self.chunks(selected.block, leaves)
            pages.append(chunks)
            if fits_whole(selected.rows, chunks, piece_bytes):
                continue
            until = int(selected.rows.ends[-1])
            for place, (leaf, chunk) in enumerate(zip(leaves, chunks, strict=True)):
                if leaf.leaf_index in known:
                    chunks[place] = known[leaf.leaf_index]
                else:
                    places.append((number, place))
                    steps.append(self.reader.page_index(selected.block, leaf, chunk, until))
        found = formats.run_together(steps, self.fetch)
        for (number, place), index in zip(places, found, strict=True):
            pages[number][place] = index
        return pages


def open_file(entry: Entry, options: ReadOptions, like: FileReader | None = None) -> OpenFile:
    """Open a source and read its footer; the schema may be `like` that of another file."""
    source = storage.open_source(entry.origin)
    key = (source.version, options)
    reader = cast(FileReader | None, cache.FOOTERS.get(key))
    if reader is None:
        steps = formats.open_file(source.name, source.size, source.tail, options, like)
        reader = formats.run(steps, partial(storage.fetch, source))
        if source.version is not None:
            cache.FOOTERS.put(key, reader, reader.footer_size)
    return OpenFile(source, reader, entry)


def open_in_order(
    entries: Sequence[Entry],
    options: ReadOptions,
    likely: Callable[[], int],
    like: FileReader | None = None,
    passed_over: list[Entry] | None = None,
) -> Iterator[OpenFile]:
    """Open files one after the other; what is no file to read in a directory is passed over.

    `likely` says how many files will surely be asked for behind the current one.
    """
    others = [] if passed_over is None else passed_over
    waiting = iter(entries)
    ahead: deque[threads.Task[OpenFile | None]] = deque()
    opened, is_slow = 0, False
    try:
        while True:
            # The more files were asked for, the more are opened ahead, if that is worth a thread.
            while is_slow and len(ahead) <= min(opened, likely(), _MOST_AHEAD):
                entry = next(waiting, None)
                if entry is None:
                    break
                ahead.append(threads.start(_open_if_readable, entry, options, like, others))
            if ahead:
                file = ahead.popleft().result()
            else:
                entry = next(waiting, None)
                if entry is None:
                    return
                began = time.perf_counter()
                file = _open_if_readable(entry, options, like, others)
                is_slow = time.perf_counter() - began > _SLOW
            opened += 1
            if file is not None:
                like = file.reader
                yield file
            del file  # it is closed with the last piece of work that reads it
    finally:
        threads.abandon(ahead)


def _open_if_readable(
    entry: Entry, options: ReadOptions, like: FileReader | None, passed_over: list[Entry]
) -> OpenFile | None:
    try:
        return open_file(entry, options, like)
    except formats.UnknownFormatError:
        if entry.found_in is None:
            raise
        passed_over.append(entry)
        return None
