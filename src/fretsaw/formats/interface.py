"""What a format answers: a file, the blocks that were opened in it, and parts to be decoded.

A format names byte ranges and is handed bytes; it never reads and never sees a predicate. Where it
needs bytes it yields a `Request` and is sent the buffers (`Steps`). What a format cannot do has a
default; what follows is all that one must do, and all that the engine needs to run any scan. The
docstring of the package shows a whole format.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from fretsaw.model.blocks import Block, Bounds, PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.value_set import ValueSet
from fretsaw.storage.buffer_pool import Allocate
from fretsaw.storage.requests import Steps, together
from fretsaw.storage.source import Range

Keys: TypeAlias = Sequence[int] | Sequence[bytes]
"""Values of one leaf, as `predicates.value_set` orders them."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part:
    """The bytes of one leaf's pages in one block, ready to be decoded on any thread."""

    leaf: SchemaNode
    rows: int
    """Rows up to the last one that was asked for, in the pages that it holds."""
    page_rows: int
    """Rows of all these pages."""
    fallback: str | None = None
    """Why more than the needed pages had to be taken."""

    def count_pages(self) -> int:
        """How many data pages it holds."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is looked for in a leaf."""

    values: ValueSet
    keeps_values: bool
    """Whether the values that are found are wanted, or only their rows."""
    bounds: Bounds | None = None
    """What is claimed of the pages by which the leaf is cut: found values must agree with it."""


class Found(NamedTuple):
    """What a search found."""

    rows: RowSelection
    """Of the rows that the part was cut for."""
    values: pa.ChunkedArray | None
    """The values of these rows, if they are kept."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChunkFacts:
    """What a file says about one leaf's chunk; None where it does not."""

    codec: str | None = None
    encodings: Sequence[str] = ()
    offset: int | None = None
    compressed_size: int | None = None
    uncompressed_size: int | None = None
    values: int | None = None
    """How many there are, nulls included."""
    nulls: int | None = None
    nans: int | None = None
    parts: Mapping["ChunkPart", int | None] = field(default_factory=dict)
    """What it has beside its pages, and how large that is, as far as known."""
    untold: Collection["ChunkPart"] = ()
    """Of what nobody says whether it has it."""


ChunkPart: TypeAlias = Literal["dictionary", "page_index", "bloom_filter"]
Told: TypeAlias = Sequence[int | None]
"""A number for each page; None where nobody says it."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PageFacts:
    """What a file says about the pages of one leaf's chunk."""

    first_rows: Told
    """Counted over the block."""
    rows: Told
    offsets: Told
    sizes: Told
    encodings: Sequence[str | None]
    nulls: Told
    bounds: Bounds


class BlockReader(ABC):
    """A block that was opened: it knows where its chunks are, and keeps what it read of them."""

    block: Block

    @abstractmethod
    def whole_chunk(self, leaf: SchemaNode) -> PageIndex:
        """The leaf's chunk as if it were one page: enough where all of its rows are wanted."""

    @abstractmethod
    def cut(self, leaf: SchemaNode, pages: PageIndex, rows: RowSelection) -> Steps[Part]:
        """The bytes that hold these rows of a leaf that has these pages."""

    def cut_leaves(
        self, leaves: Sequence[SchemaNode], pages: Sequence[PageIndex], rows: RowSelection
    ) -> Steps[list[Part]]:
        """The same of several leaves."""
        cuts = [self.cut(leaf, index, rows) for leaf, index in zip(leaves, pages, strict=True)]
        return together(cuts)

    def page_indexes(self, leaves: Sequence[SchemaNode], until: int) -> Steps[list[PageIndex]]:
        """The pages of several leaves, as `page_index` has them."""
        return together([self.page_index(leaf, until) for leaf in leaves])

    def page_index(self, leaf: SchemaNode, until: int) -> Steps[PageIndex]:
        """The pages of the leaf's chunk, at least those before the row `until`; or all as one."""
        yield from ()
        return replace(self.whole_chunk(leaf), reason="the format has no pages")

    def index_at(self, leaf: SchemaNode) -> Sequence[Range]:
        """Where that is stored which tells the pages of the leaf's chunk, if it is anywhere."""
        return ()

    def bloom_rows(self, leaf: SchemaNode, keys: Keys) -> Steps[RowSelection | None]:
        """The rows that may hold one of these values, by Bloom filters; None: there are none."""
        yield from ()
        return None

    def dictionary(self, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        """All values that the leaf's chunk has, where a dictionary is proven to hold them."""
        yield from ()
        return None

    def entries(self, leaf: SchemaNode) -> Steps[pa.ChunkedArray | None]:
        """The entries of a dictionary, whatever its size and whoever refers to it."""
        yield from ()
        return None

    def describe_pages(self, leaf: SchemaNode) -> Steps[PageFacts]:
        """What is known of the leaf's pages without reading one."""
        yield from ()
        whole, rows = self.whole_chunk(leaf), self.block.num_rows
        return PageFacts(
            first_rows=[0],
            rows=[rows],
            offsets=whole.offsets.tolist(),
            sizes=whole.sizes.tolist(),
            encodings=[None],
            nulls=[None],
            bounds=Bounds.unknown([rows]),
        )


class FileReader(ABC):
    """A file whose footer is read: what is in it, how to open its blocks, how to decode parts."""

    format: str
    index_name: str = "index"
    """What the format calls the bounds of its pages."""
    footer_size: int
    """Bytes of the footer, as it is stored."""
    blocks: Sequence[Block]
    field_names: Sequence[str]
    fields: Hashable
    """What is known of the schema: files with the same one may share it."""
    metadata: Mapping[bytes, bytes] = MappingProxyType({})
    """The key-value pairs of the footer."""
    tells_bounds: bool = False
    """Whether `bounds_of_files` says what footers know, of many files at once."""
    created_by: str | None = None
    """The library that wrote the file, as far as the file says so."""

    @abstractmethod
    def describe(self, positions: Sequence[int]) -> tuple[pa.Schema, tuple[SchemaNode, ...]]:
        """These top-level fields: their Arrow schema, as pyarrow gives it, and their trees."""

    @abstractmethod
    def open_blocks(self, blocks: Sequence[Block]) -> Steps[Sequence[BlockReader]]:
        """Find out where the chunks of these blocks are, as far as the footer does not say."""

    @abstractmethod
    def decode(self, leaves: Sequence[Sequence[Part]], allocate: Allocate) -> list[pa.ChunkedArray]:
        """For each leaf, an array of exactly the wanted rows of its parts, as its whole chain.

        A leaf's parts are those of different blocks. `allocate` gives memory to work with, of which
        nothing is left in the arrays. Raises `Misplaced` where an index misled the cut. What was
        decoded, and by whom, is told to the trace.
        """

    def find(self, part: Part, search: Search) -> Found | None:
        """The wanted rows of a part of a flat leaf whose values are in a set, and only these.

        None where that is not cheaper than to decode all and to look. Raises `OutsideBounds`.
        """
        return None

    def chunk_size(self, block: Block, leaf: SchemaNode) -> int:
        """Bytes of a leaf's chunk in a block that nobody opened, as far as the footer tells."""
        return block.compressed_size // max(1, len(self.field_names))

    def block_bounds(self, blocks: Sequence[Block], leaf: SchemaNode) -> Steps[Bounds]:
        """What the footer says about the values of a leaf, in each of these blocks."""
        yield from ()
        return Bounds.unknown([block.num_rows for block in blocks])

    @staticmethod
    def bounds_of_files(
        files: Sequence[tuple["FileReader", Sequence[Block]]], leaf: SchemaNode
    ) -> Bounds:
        """The same in blocks of files that share their fields, where no byte need be read."""
        raise NotImplementedError

    def describe_chunks(
        self, blocks: Sequence[BlockReader], leaf: SchemaNode
    ) -> Steps[tuple[Sequence[ChunkFacts], Bounds]]:
        """What is known of a leaf's chunks in blocks that were opened, and of their values."""
        wholes = [block.whole_chunk(leaf) for block in blocks]
        facts = [
            ChunkFacts(offset=int(w.offsets[0]), compressed_size=int(w.sizes[0])) for w in wholes
        ]
        return facts, (yield from self.block_bounds([block.block for block in blocks], leaf))

    def page_bounds(
        self, blocks: Sequence[BlockReader], leaf: SchemaNode
    ) -> Steps[tuple[Sequence[PageIndex | None], Bounds]]:
        """The pages of a leaf's chunks, and the bounds of all of these pages, one behind the other.

        None for a chunk that has no bounds for its pages.
        """
        yield from ()
        return [None] * len(blocks), Bounds.unknown([])


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file, where the user has a say."""

    indexes: bool = True
    """Believe what statistics, indexes, Bloom filters and dictionaries say about values."""
    verify: bool = True
    """Check page checksums where the file has them."""
    int96: Literal["ns", "us", "ms"] = "ns"
    """The unit that INT96 timestamps become."""
    timestamps: Literal["ns", "us"] = "ns"
    """The unit that times of ORC files become."""

    def __post_init__(self) -> None:
        if self.int96 not in ("ns", "us", "ms"):
            raise ValueError(f"int96 must be 'ns', 'us' or 'ms', not {self.int96!r}")
        if self.timestamps not in ("ns", "us"):
            raise ValueError(f"timestamps must be 'ns' or 'us', not {self.timestamps!r}")


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


class OutsideBounds(Exception):
    """A value that is not within the bounds of its page, whose number is the argument."""


class Misplaced(Exception):
    """Pages that are not where an index says: their chunks are to be decoded whole."""
