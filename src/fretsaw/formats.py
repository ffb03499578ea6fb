"""What a file format answers, and how it asks for bytes.

A format never reads. Where it needs bytes it yields a `Request` and is sent the buffers; `run`
and `run_together` drive such steps. `format_of` tells the format by magic bytes, never by name.
"""

import importlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.layout import Block, Bounds, PageIndex
from fretsaw.locks import importing
from fretsaw.schema import SchemaNode
from fretsaw.scratch import Allocate
from fretsaw.selection import RowSelection
from fretsaw.trace import Why


@dataclass(frozen=True, slots=True)
class Request:
    """Byte ranges (offset and length) that a format needs next, and what for."""

    ranges: Sequence[tuple[int, int]]
    why: Why


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file, where the user has a say."""

    indexes: bool = True
    """Believe what statistics, indexes, Bloom filters and dictionaries say about values."""
    verify: bool = True
    """Check page checksums where the file has them."""
    int96: Literal["ns", "us", "ms"] = "ns"
    """The unit that INT96 timestamps become."""

    def __post_init__(self) -> None:
        if self.int96 not in ("ns", "us", "ms"):
            raise ValueError(f"int96 must be 'ns', 'us' or 'ms', not {self.int96!r}")


T = TypeVar("T")
Steps: TypeAlias = Generator[Request, Sequence[pa.Buffer], T]
Fetch: TypeAlias = Callable[[Sequence[tuple[int, int]], Any], list[pa.Buffer]]


class Part(Protocol):
    """The bytes of one leaf's pages, ready to be decoded on any thread."""

    leaf: SchemaNode
    rows: int
    """Rows up to the last one that was asked for, in the pages that it holds."""
    page_rows: int
    """Rows of all these pages."""
    fallback: str | None
    """Why more than the needed pages had to be taken."""

    def count_pages(self) -> int:
        """How many data pages it holds."""
        ...


class FileReader(Protocol):
    """One file of some format: what is in it, and how to cut leaves out of it."""

    format: str
    index_name: str
    """What the format calls the bounds of its pages."""
    footer_size: int
    """Bytes of the footer, as it is stored."""
    blocks: Sequence[Block]
    metadata: Mapping[bytes, bytes]
    field_names: Sequence[str]
    fields: Any
    """What is known of the schema: files with the same schema may share it."""

    @property
    def created_by(self) -> str | None:
        """The library that wrote the file, as far as the file says so."""
        ...

    def describe(self, positions: Sequence[int]) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
        """These top-level fields: their Arrow schema, as pyarrow gives it, and their trees."""
        ...

    def locate(self, blocks: Sequence[Block]) -> Steps[None]:
        """Find out where the chunks of these blocks are, if the footer does not say."""
        ...

    def chunk(self, block: Block, leaf: SchemaNode) -> PageIndex:
        """The leaf's chunk as if it were one page: enough where all of its rows are wanted.

        The block was located before.
        """
        ...

    def page_index(
        self, block: Block, leaf: SchemaNode, whole: PageIndex, until: int
    ) -> Steps[PageIndex]:
        """The pages of the leaf's chunk, at least those before the row `until`.

        The whole chunk as one page, with a reason, where nothing finer is known.
        """
        ...

    def block_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        """What the footer says about the values of a leaf, in each of these blocks."""
        ...

    def indexed_pages(
        self, blocks: Sequence[Block], leaf: SchemaNode
    ) -> Steps[tuple[list[PageIndex | None], Bounds]]:
        """The pages of a leaf's chunks, and the bounds of all of these pages.

        None for a chunk that has no bounds for its pages.
        """
        ...

    def bloom_rows(
        self, block: Block, leaf: SchemaNode, keys: Sequence[Any]
    ) -> Steps[RowSelection | None]:
        """The rows of a block that may hold one of these values, by Bloom filters if there are."""
        ...

    def dictionary(self, block: Block, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        """All values that a leaf's chunk has, where a dictionary is proven to hold them."""
        ...

    def narrowed(
        self,
        block: Block,
        leaf: SchemaNode,
        pages: PageIndex,
        rows: RowSelection,
        keys: Sequence[Any],
    ) -> Steps[RowSelection]:
        """The rows without those of pages that hold none of these values, as far as is cheap."""
        ...

    def cut(
        self,
        block: Block,
        leaf: SchemaNode,
        pages: PageIndex,
        rows: RowSelection,
        encoded: bool = False,
    ) -> Steps[Part]:
        """The bytes that hold the selected rows of the leaf.

        Where strings may stay `encoded`, they are decoded as Arrow dictionaries if stored so.
        """
        ...

    def decode(self, leaves: Sequence[Sequence[Any]], allocate: Allocate) -> list[pa.ChunkedArray]:
        """For each leaf, an array of exactly the selected rows of its parts.

        The parts are those of different blocks, as many for each leaf. `allocate` gives memory to
        work with, of which nothing is left in the arrays. Raises `Misplaced` where an index
        misled the cut.
        """
        ...


class FormatModule(Protocol):
    """The module `reader` of a format's package."""

    def open_file(
        self,
        name: str,
        size: int,
        tail: pa.Buffer,
        options: ReadOptions,
        like: FileReader | None,
    ) -> Steps[FileReader]:
        """Read the footer; `tail` is the end of the file, as much as was read to tell it.

        A file with the same schema may be `like` it, and share what is known of the schema.
        """
        ...


class Misplaced(Exception):
    """Pages that are not where an index says: their chunks are to be decoded whole."""


class UnknownFormatError(FileFormatError):
    """Neither the beginning nor the end of a file is that of a known format."""


_PARQUET_MAGIC = (b"PAR1", b"PARE")
_ORC_MAGIC = b"ORC"


def open_file(
    name: str, size: int, tail_size: int, options: ReadOptions, like: FileReader | None
) -> Steps[FileReader]:
    """Tell the format by the magic bytes and read the footer."""
    if size == 0:
        raise UnknownFormatError(f"{name}: is empty (0 bytes); no Parquet or ORC file is")
    length = min(size, tail_size)
    (tail,) = yield Request([(size - length, length)], "footer")
    end = tail.to_pybytes()[-4:]
    if end in _PARQUET_MAGIC:
        module = "fretsaw.parquet.reader"
    elif end[:3] == _ORC_MAGIC:  # behind it, the length of the postscript
        module = "fretsaw.orc.reader"
    else:
        raise (yield from _not_known(name, size))
    with importing:
        format_module = cast(FormatModule, importlib.import_module(module))
    return (yield from format_module.open_file(name, size, tail, options, like))


def _not_known(name: str, size: int) -> Steps[FileFormatError]:
    """The error for a file that does not end like one of a known format."""
    (head,) = yield Request([(0, min(size, 4))], "footer")
    begin = head.to_pybytes()
    for format_name, is_so in (
        ("a Parquet", begin in _PARQUET_MAGIC),
        ("an ORC", begin[:3] == _ORC_MAGIC),
    ):
        if is_so:
            return FileFormatError(
                f"{name}: begins like {format_name} file but does not end like one; "
                f"it is truncated at byte {size}, write or copy it again"
            )
    return UnknownFormatError(f"{name}: is not a Parquet or ORC file (no magic bytes at its end)")


def run(steps: Steps[T], fetch: Fetch) -> T:
    """Drive one run of steps to its result."""
    return run_together([steps], fetch)[0]


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
        for why in {request.why for request in asked.values()}:
            group = {p: request for p, request in asked.items() if request.why == why}
            buffers = iter(fetch([r for request in group.values() for r in request.ranges], why))
            for position, request in group.items():
                advance(position, [next(buffers) for _ in request.ranges])
    return [results[position] for position in range(len(many))]
