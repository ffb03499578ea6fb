"""What a file says about itself, free of any format: its blocks, and the pages of each leaf.

A `Block` is a row group or a stripe, a `PageIndex` the row boundaries and places of one leaf's
pages in one block. Block predicates (`byte_range`, `blocks`) choose blocks by where they live.
The planner reads these; the formats make them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """A row group (Parquet) or stripe (ORC): rows that are stored together.

    `first_row` counts from the start of the file; `offset` and the sizes are in bytes. Of a
    compressed stripe the uncompressed size is None: ORC does not say it.
    """

    ordinal: int
    first_row: int
    num_rows: int
    offset: int
    compressed_size: int
    uncompressed_size: int | None

    @property
    def midpoint(self) -> int:
        """The byte that decides to which byte range the block belongs."""
        return self.offset + self.compressed_size // 2


def row_counts(blocks: Sequence[Block]) -> Int64s:
    """How many rows each of some blocks has."""
    return np.array([block.num_rows for block in blocks], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PageIndex:
    """The pages of one leaf in one block: where their rows begin, where their bytes are.

    `boundaries` has one entry more than there are pages: page `i` holds the rows from
    `boundaries[i]` to `boundaries[i + 1]` of its block. Where nothing finer than the whole chunk
    is known, the chunk is the one page and `reason` says why.
    """

    boundaries: Int64s
    offsets: Int64s
    sizes: Int64s
    width: float
    """Estimated bytes of one decoded row."""
    reason: str | None = None
    dictionary_size: int = 0
    """Bytes before the first page, which any of the pages may need."""
    records_go_on: bool = False
    """Whether the last record of a page may end in a later one: then all pages before are needed,
    and those up to the one where the next record begins."""

    told_by: str | None = None
    """What says the bounds of these pages, where it is not the index of the format."""

    def overlapping(self, starts: Int64s, ends: Int64s) -> npt.NDArray[np.bool_]:
        """Which pages hold a row of the sorted, disjoint runs from `starts` to `ends`."""
        runs_before = ends.searchsorted(self.boundaries[:-1], side="right")
        runs_until = starts.searchsorted(self.boundaries[1:], side="left")
        return runs_before < runs_until

    @property
    def row_counts(self) -> Int64s:
        """How many rows each page has."""
        return self.boundaries[1:] - self.boundaries[:-1]

    def hit(self, starts: Int64s, ends: Int64s) -> tuple[int, int]:
        """The bytes and the rows of all pages that hold a row of some runs, of which there is one.

        The runs are sorted and disjoint.
        """
        if len(self.sizes) == 1:
            return int(self.sizes[0]), int(self.boundaries[1])
        pages = self.overlapping(starts, ends)
        return int(self.sizes[pages].sum()), int(self.row_counts[pages].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What the indexes say about the values of one leaf, in many blocks or pages at once.

    Keys are those of `predicates.value_set`; where a bound is not `known` it may be anything.
    """

    lower: npt.NDArray[Any]
    upper: npt.NDArray[Any]
    known: npt.NDArray[np.bool_]
    exact: npt.NDArray[np.bool_]
    """Whether the bounds are values, not only enclose them."""
    all_null: npt.NDArray[np.bool_]
    """Whether there is no value."""
    nan_free: npt.NDArray[np.bool_]
    """Whether there is no NaN; without that, bounds say nothing of NaNs."""
    null_counts: Int64s
    """How many are null; -1 where that is not known."""
    row_counts: Int64s

    def __len__(self) -> int:
        return len(self.known)

    @classmethod
    def unknown(cls, row_counts: Sequence[int]) -> "Bounds":
        """Bounds of blocks or pages of which nothing is known but their rows."""
        no, zeros = np.zeros(len(row_counts), np.bool_), np.zeros(len(row_counts), np.int64)
        return cls(zeros, zeros, no, no, no, no, zeros - 1, np.array(row_counts, np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Bounds"]) -> "Bounds":
        """The bounds of blocks or pages that follow each other."""
        return cls(
            *(np.concatenate([getattr(p, part.name) for p in parts]) for part in fields(cls))
        )

    def between(self, begin: int, end: int) -> "Bounds":
        """The bounds of some of the blocks or pages."""
        parts = (getattr(self, part.name)[begin:end] for part in fields(self))
        return Bounds(*parts)
