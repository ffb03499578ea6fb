"""Compiled decoders for fretsaw; `fretsaw.formats.kernels` is who calls them."""

import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias, final

from typing_extensions import Buffer as Readable

PROTOCOL: int
__version__: str

_Target: TypeAlias = Literal[
    "copy",
    "int8",
    "int16",
    "bits",
    "bytes",
    "large_bytes",
    "decimal128",
    "decimal256",
    "timestamp[ns]",
    "timestamp[us]",
    "timestamp[ms]",
]
"""What values become: `copy` keeps the stored bytes (numbers, FLBA), `int8` and `int16` the lowest
ones of INT32, `bits` are booleans, `bytes` have 32-bit offsets and `large_bytes` 64-bit ones,
decimals come of INT32, INT64, FLBA or BYTE_ARRAY, timestamps of INT96."""

_Layer: TypeAlias = Sequence[int]
"""`[definition]` is an optional struct, there from this definition level on; `[definition, item,
repetition]` a list, there from the first level on and with an item from the second on. Required
structs have no levels and are left out."""

_Segment: TypeAlias = tuple[Readable, int, int]
"""Pages one behind the other, of which the first begins a row; how many values and rows they have.
What follows these values is ignored."""

_Part: TypeAlias = tuple[int, Readable | None, Sequence[_Segment], Readable, Readable]
"""One column chunk: codec, dictionary page (None: none, or it is the first page of the first
segment), segments, and the wanted rows as starts and ends (int64), counted over all segments."""

@final
class Leaf:
    """What all parts of a leaf have in common; it may be used for any number of calls."""

    def __new__(
        cls,
        physical_type: int,
        target: _Target,
        *,
        type_length: int = 0,
        max_definition: int = 0,
        max_repetition: int = 0,
        layers: Sequence[_Layer] = ...,
        utf8: bool = False,
        always_compressed: bool = False,
        verify: bool = False,
    ) -> Leaf:
        """A leaf of this physical type, below these layers from the row down.

        `utf8` demands that strings be valid, `always_compressed` that pages of version 2 are
        decompressed whatever they say, `verify` that checksums are right.
        """

_Order: TypeAlias = Literal["signed", "unsigned", "float", "bytes"]
"""How values compare: integers, decimals and booleans, floats by their place in the total order of
doubles, byte arrays."""

@final
class Search:
    """A set of values that rows must have, as `fretsaw.predicates.value_set` has it."""

    def __new__(
        cls,
        order: _Order,
        cuts: Sequence[int] | Sequence[bytes],
        begins_inside: bool,
        *,
        keeps_values: bool = True,
    ) -> Search:
        """The keys between cuts; without `keeps_values` rows are found and not decoded."""

@final
class Claims:
    """The bounds of pages of a part, which are held against the values of wanted rows."""

    def __new__(
        cls,
        order: _Order,
        rows: Sequence[int],
        lower: Sequence[int] | Sequence[bytes],
        upper: Sequence[int] | Sequence[bytes],
    ) -> Claims:
        """For pages by their first rows in the part, ascending: the lowest and highest key."""

@final
class Buffer:
    """Memory that was filled here; `pyarrow.py_buffer` takes it without a copy."""

    def __len__(self) -> int: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Column:
    """The wanted rows of a leaf, of all its parts in one."""

    @property
    def layers(self) -> list[tuple[int, int, Buffer | None, Buffer | None]]:
        """For each layer: length, null count, validity if there are nulls, offsets of a list."""

    @property
    def length(self) -> int: ...
    @property
    def null_count(self) -> int: ...
    @property
    def buffers(self) -> list[Buffer | None]:
        """What `pyarrow.Array.from_buffers` takes for the leaf itself: validity, offsets, data."""

    @property
    def pages(self) -> int:
        """Data pages that were decoded."""

    @property
    def matches(self) -> tuple[Buffer, Buffer] | None:
        """Of a search: starts and ends (int64) of the rows found, among all that were wanted."""

@final
class Refused:
    """Why there are no rows of a leaf."""

    @property
    def kind(self) -> Literal["not_mine", "corrupt", "out_of_range", "outside"]:
        """Not known here, damaged, more than the target holds, or not as was claimed."""

    @property
    def reason(self) -> str: ...
    @property
    def part(self) -> int:
        """Which part it was found in."""

    @property
    def claim(self) -> int | None:
        """Which claim of the part is wrong, where it is one."""

_RowGroup: TypeAlias = tuple[int, int | None, int | None, int | None, int | None, int | None]
"""How many columns it has, its bytes, its rows, its offset, its compressed bytes, and where its
first column chunk begins."""

@final
class Footer:
    """A footer, and where its schema elements and column chunks are; numbers are int64."""

    @property
    def length(self) -> int: ...
    @property
    def num_rows(self) -> int | None: ...
    @property
    def created_by(self) -> str | None: ...
    @property
    def key_values(self) -> list[tuple[bytes | None, bytes | None]]: ...
    @property
    def names(self) -> list[str]:
        """The names of all schema elements."""

    @property
    def types(self) -> Buffer:
        """Their physical types; the lowest number where there is none."""

    @property
    def children(self) -> Buffer:
        """How many children each has."""

    @property
    def elements(self) -> Buffer:
        """Where each begins and ends."""

    @property
    def row_groups(self) -> list[_RowGroup]: ...
    @property
    def chunks(self) -> Buffer:
        """Where the chunks of all row groups begin and end."""

    @property
    def column_orders(self) -> Buffer:
        """For each leaf whether its order is a known one (bytes)."""

def parse_footer(data: Readable) -> Footer | None:
    """What a footer says above its column chunks; None if it is unusual or damaged."""

@final
class Chunk:
    """What a column chunk says, as the format names it."""

    @property
    def file_path(self) -> str | None: ...
    @property
    def is_encrypted(self) -> bool: ...
    @property
    def offset_index_offset(self) -> int | None: ...
    @property
    def offset_index_length(self) -> int | None: ...
    @property
    def has_column(self) -> bool:
        """Whether it is described at all; what follows is None where it is not."""

    @property
    def physical_type(self) -> int | None: ...
    @property
    def path(self) -> list[bytes] | None: ...
    @property
    def codec(self) -> int | None: ...
    @property
    def num_values(self) -> int | None: ...
    @property
    def uncompressed_size(self) -> int | None: ...
    @property
    def compressed_size(self) -> int | None: ...
    @property
    def data_page_offset(self) -> int | None: ...
    @property
    def dictionary_page_offset(self) -> int | None: ...
    @property
    def unencoded_bytes(self) -> int | None:
        """Bytes of strings once they are decoded."""

def parse_chunk(data: Readable, begin: int, end: int) -> Chunk | None:
    """The column chunk between two bytes of a footer; None if it is unusual or damaged."""

def parse_pages(data: Readable) -> Buffer | None:
    """What the headers of all pages of a buffer say, or None: seven numbers (int64) for each.

    Where it begins, its size with the header, whether it holds data, its values, its rows (-1: not
    told), whether it refers to a dictionary, the entries of one (-1: it is none).
    """

def parse_page_places(data: Readable, num_rows: int, begin: int, end: int) -> Buffer | None:
    """The first rows of all pages and the last row, then offsets, then sizes (int64), or None.

    None also if they do not lie one after the other between the bytes `begin` and `end`, or do not
    hold so many rows.
    """

@final
class ColumnIndex:
    """What the pages of a chunk hold; what is missing is None."""

    @property
    def null_pages(self) -> Buffer | None:
        """Whether each page is null (bytes)."""

    @property
    def min_values(self) -> list[bytes] | None: ...
    @property
    def max_values(self) -> list[bytes] | None: ...
    @property
    def null_counts(self) -> Buffer | None: ...
    @property
    def definition_level_histograms(self) -> Buffer | None: ...
    @property
    def nan_counts(self) -> Buffer | None: ...

def parse_column_index(data: Readable) -> ColumnIndex | None:
    """The lists of a column index, or None."""

def decode(
    leaves: Sequence[tuple[Leaf, Sequence[_Part]]],
    *,
    searches: Sequence[Search | None] = ...,
    claims: Sequence[Sequence[Claims | None]] = ...,
) -> list[Column | Refused]:
    """For each leaf the rows that are wanted of its parts, without the interpreter's lock.

    Of a leaf with a search, only the rows that are found come back; a part may have claims.
    """

_Form: TypeAlias = Literal[
    "bits",
    "int8",
    "int16",
    "int32",
    "int64",
    "float",
    "double",
    "bytes",
    "timestamp[ns]",
    "timestamp[us]",
    "decimal128",
]

@final
class OrcLeaf:
    """What all parts of a leaf of an ORC file have in common."""

    def __new__(
        cls,
        above: Sequence[Literal["STRUCT", "LIST", "MAP"]],
        form: _Form,
        *,
        scale: int = 0,
        precision: int = 0,
    ) -> OrcLeaf:
        """A leaf below these columns from the row down; decimals have a scale and a precision."""

_Place: TypeAlias = tuple[int, int, int, int]
"""Where a value is: its chunk, from the first byte at hand on, then bytes, values, bits to skip."""

_OrcStream: TypeAlias = tuple[int, int, Readable, _Place, _Place | None]
"""The column in the chain, the kind of stream, its bytes, its first value, and where the stride
behind the first begins (None: nothing follows)."""

_OrcClaim: TypeAlias = tuple[int, int, int | None, Claims | None]
"""Of the first stride: rows, values, their total as 64 bits, bounds."""

_OrcSegment: TypeAlias = tuple[int, Sequence[_OrcStream], _OrcClaim | None]
"""Rows that follow each other; what is claimed is held against them, where an index led there."""

_OrcPart: TypeAlias = tuple[
    tuple[int, int],
    Sequence[tuple[int, int | None]],
    int,
    Sequence[tuple[int, int, Readable]],
    Sequence[_OrcSegment],
    Readable,
    Readable,
]
"""One stripe: codec and block size; of each column the version of its runs and the size of its
dictionary; the second that times count from; streams of dictionaries; segments; and the wanted rows
as starts and ends (int64), counted over all segments."""

def decode_orc(leaves: Sequence[tuple[OrcLeaf, Sequence[_OrcPart]]]) -> list[Column | Refused]:
    """For each leaf the rows that are wanted of its parts, without the interpreter's lock."""
