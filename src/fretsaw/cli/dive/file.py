"""The file that is looked at, and the condition that is held against it.

What the file says is read when it is asked for, a few columns at a time, and the last answers are
kept: going back and forth reads nothing again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fretsaw
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection

Int64s = npt.NDArray[np.int64]
_ROW = "(row)"
"""A name that no condition means by accident."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition, and the rows that the file's indexes cannot rule out."""

    text: str
    rows: RowSelection

    def left(self, first_rows: npt.ArrayLike, counts: npt.ArrayLike) -> Int64s:
        """How many rows are left of those from `first_rows` on."""
        begins = np.asarray(first_rows, np.int64)
        ends = begins + np.asarray(counts, np.int64)
        return self.rows.counts_before(ends) - self.rows.counts_before(begins)


class ViewedFile:
    """An open file, asked by one thread at a time."""

    def __init__(self, path: str, storage: Mapping[str, str]) -> None:
        self.data = fretsaw.open(path, storage_options=storage or None)
        self.name = _last_part(path)
        self.blocks = self.data.blocks
        self.fields = self.data.schema.children
        self.leaves = tuple(self.data.schema.leaves())
        self.names = tuple(".".join(leaf.path) for leaf in self.leaves)
        self.chunks = lru_cache(32)(self._chunks)
        self.pages = lru_cache(2)(self._pages)
        self.dictionary = lru_cache(2)(self._dictionary)

    def _chunks(self, start: int, stop: int) -> pa.Table:
        """What the file says about some of its leaves in all blocks."""
        return self.data.chunks(*(leaf.path for leaf in self.leaves[start:stop]))

    def _pages(self, leaf: int) -> pa.Table:
        return self.data.pages(self.leaves[leaf].path)

    def _dictionary(self, leaf: int, block: int) -> pa.Table:
        return self.data.dictionary(self.leaves[leaf].path, block)

    def condition(self, text: str) -> Condition:
        """A condition, held against the indexes of the file."""
        return Condition(text, self.data.prune(text))

    def matching(
        self, condition: Condition, first: int, count: int, is_stopped: Callable[[], bool]
    ) -> Int64s:
        """The numbers of the rows that match, of so many from `first` on."""
        wanted = RowSelection.from_ranges([(first, first + count)], self.data.num_rows)
        scan = self.data.scan().filter(condition.text).select_rows(wanted)
        found = [np.empty(0, np.int64)]
        for batch in scan.select().with_row_index(_ROW).batches():
            if is_stopped():
                break
            found.append(batch.column(_ROW).to_numpy())
        return np.concatenate(found)

    def rows(self, numbers: npt.ArrayLike, nodes: tuple[SchemaNode, ...]) -> pa.Table:
        """Some columns of some rows."""
        scan = self.data.scan().select(*(node.path for node in nodes))
        return scan.select_rows(np.asarray(numbers, np.int64)).to_arrow()


def _last_part(path: str) -> str:
    """What a path ends with; what may be secret in a URL comes behind that.

    >>> _last_part("s3://lake/trips/a.parquet?signature=abc")
    'a.parquet'
    """
    whole = path.partition("?")[0] if "://" in path else path
    return whole.rstrip("/").rpartition("/")[2] or whole
