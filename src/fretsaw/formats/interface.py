"""What a file format answers, and how it asks for bytes.

A format never reads. Where it needs bytes it yields a `Request` and is sent the buffers; `run`
drives such steps, one or several `together`. `registry` tells the format by magic bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.requests import Steps


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
