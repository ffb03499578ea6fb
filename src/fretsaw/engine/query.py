"""What a scan asks for: columns, predicates, rows, and a window over what they leave."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fretsaw.model.block_predicates import BlockPredicate
from fretsaw.model.blocks import Int64s
from fretsaw.model.schema import Path, spelled
from fretsaw.model.selection import RowSelection
from fretsaw.model.shown import listed
from fretsaw.predicates.logic import Predicate


@dataclass(frozen=True, slots=True)
class Window:
    """`skip`, `head` and `tail`: positions in the result set."""

    skip: int | None = None
    head: int | None = None
    tail: int | None = None

    def __bool__(self) -> bool:
        return (self.skip, self.head, self.tail) != (None, None, None)

    @property
    def is_over(self) -> bool:
        """Whether no row can follow."""
        return self.head == 0 or self.tail == 0

    @property
    def rows_needed(self) -> int | None:
        """How many rows of the result set the window still needs; None: all that there are."""
        if self.tail is not None:
            return self.tail
        return None if self.head is None else (self.skip or 0) + self.head

    def apply(self, rows: RowSelection) -> tuple[RowSelection, "Window"]:
        """The selected rows inside the window, and the window for the rows that follow.

        For a tail, what follows comes before: it is applied from the end.
        """
        if self.tail is not None:
            inside = rows.last(self.tail)
            return inside, Window(tail=self.tail - inside.selected_count)
        inside, skip, head = rows, self.skip, self.head
        if skip is not None:
            inside = inside.offset(skip)
            skip = max(0, skip - rows.selected_count)
        if head is not None:
            inside = inside.limit(head)
            head -= inside.selected_count
        return inside, Window(skip, head)

    def __str__(self) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in self.parts())

    def parts(self) -> list[tuple[str, int]]:
        """What it consists of, and how many rows each part counts."""
        counts = [("skip", self.skip), ("head", self.head), ("tail", self.tail)]
        return [(name, count) for name, count in counts if count is not None]


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What a scan asks for, before any file is opened."""

    columns: tuple[Path, ...] | None = None
    dropped: tuple[Path, ...] = ()
    """Of these columns, those that are left out."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Names in the result by those that the files have."""
    block_predicate: BlockPredicate | None = None
    predicate: Predicate | None = None
    rows: RowSelection | Int64s | None = None
    """A selection, or row numbers in order and without duplicates."""
    window: Window = field(default_factory=Window)
    row_index: str | None = None
    file_path: str | None = None

    def told(self) -> list[tuple[str, str]]:
        """What is asked for, part by part: the name of a part, and what it is."""
        renamed = [f"{old} as {new}" for old, new in self.renamed.items()]
        parts = []
        if self.columns is not None:
            parts.append(("select", listed([*map(spelled, self.columns)]) or "no columns"))
        if self.dropped:
            parts.append(("drop", listed([*map(spelled, self.dropped)])))
        if renamed:
            parts.append(("rename", listed(renamed)))
        if self.block_predicate is not None:
            parts.append(("in", str(self.block_predicate)))
        if self.predicate is not None:
            parts.append(("filter", repr(self.predicate)))
        if self.rows is not None:
            rows = self.rows
            count = rows.selected_count if isinstance(rows, RowSelection) else len(rows)
            parts.append(("select_rows", f"{count:,}"))
        parts += [(name, f"{count:,}") for name, count in self.window.parts()]
        added = [name for name in (self.row_index, self.file_path) if name is not None]
        return [*parts, ("with", listed(added))] if added else parts

    def with_blocks(self, predicate: BlockPredicate) -> "Query":
        """The same of fewer blocks."""
        before = self.block_predicate
        return replace(self, block_predicate=predicate if before is None else before & predicate)

    @property
    def dropped_from_files(self) -> tuple[Path, ...]:
        """What is left out of the columns that files and folders have."""
        own = (self.row_index, self.file_path)
        return tuple(path for path in self.dropped if spelled(path) not in own)

    @property
    def selects_all(self) -> bool:
        """Whether only the window chooses among rows."""
        return self.rows is None and self.block_predicate is None and self.predicate is None

    @property
    def numbers_rows(self) -> bool:
        """Whether it matters where a file begins in the whole scan."""
        return self.rows is not None or self.row_index is not None

    @property
    def rows_needed(self) -> int:
        """How many rows the data must have for `select_rows` to make sense."""
        if self.rows is None:
            return 0
        if isinstance(self.rows, RowSelection):
            return self.rows.row_count
        return int(self.rows[-1]) + 1 if len(self.rows) else 0

    def require_rows(self, total: int) -> None:
        """Check `select_rows` against the rows that there are."""
        if isinstance(self.rows, RowSelection):
            if self.rows.row_count > total:
                raise ValueError(
                    f"the selection is over {self.rows.row_count} rows, the data has {total}"
                )
        elif self.rows is not None and len(self.rows):
            for number in (int(self.rows[0]), int(self.rows[-1])):
                if not 0 <= number < total:
                    raise ValueError(f"row {number} is not in the data, which has {total} rows")

    def rows_between(self, start: int, end: int) -> RowSelection:
        """What `select_rows` selects of the rows from `start` to `end`, counted from there."""
        if self.rows is None:
            return RowSelection.all(end - start)
        if isinstance(self.rows, RowSelection):
            begin, stop = (min(row, self.rows.row_count) for row in (start, end))
            behind = RowSelection.none(end - start - (stop - begin))
            return self.rows.slice(begin, stop).concat(behind)
        first, last = np.searchsorted(self.rows, [start, end])
        return RowSelection.from_indices(self.rows[first:last] - start, end - start)
