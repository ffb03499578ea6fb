"""The places of a walk: the blocks of a file, columns of a block, pages of a column, values, a row.

A `Place` is where one can be; made (beside the screen, since that may read), it is a `Listing`: how
many entries there are, and the texts of any stretch of them, read when they come into sight.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.cli.dive.file import Condition, ViewedFile
from fretsaw.cli.preview import texts
from fretsaw.cli.progress import counted
from fretsaw.model.schema import SchemaNode
from fretsaw.model.shown import size

Cells = Sequence[Sequence[str]]
"""The texts of some entries, entry by entry."""
_NARROW, _WIDE = 40, 2_000


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at, and how."""

    file: ViewedFile
    condition: Condition | None
    is_stopped: Callable[[], bool] = lambda: False
    """Whether nobody waits any more for what is being made."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one can be: its name among the breadcrumbs, and how it is made."""

    title: str
    make: Callable[[View], "Listing"]


@dataclass(frozen=True, slots=True)
class Listing:
    """What there is to see at a place."""

    note: str
    headers: Sequence[str]
    length: int
    cells: Callable[[int, int], Cells]
    """The entries from one number up to another; this may read."""
    kept: npt.NDArray[np.bool_] | None = None
    """Which entries the condition leaves, where it can rule out some."""
    names: Sequence[str] | None = None
    """What can be searched."""
    step: Callable[[int], Place] | None = None
    """Where an entry leads to."""
    aside: Callable[[int], Place] | None = None
    """The dictionary of an entry."""
    widest: int = _NARROW


def blocks(view: View) -> Listing:
    """The blocks of the file."""
    file, data, condition = view.file, view.file.data, view.condition
    left = None
    if condition is not None:
        first_rows = [block.first_row for block in file.blocks]
        left = condition.left(first_rows, [block.num_rows for block in file.blocks])

    def cells(start: int, stop: int) -> Cells:
        found = file.blocks[start:stop]
        columns = {
            "block": [str(block.ordinal) for block in found],
            "rows": [f"{block.num_rows:,}" for block in found],
            "left": None if left is None else [f"{rows:,}" for rows in left[start:stop].tolist()],
            "first row": [f"{block.first_row:,}" for block in found],
            "size": [size(block.compressed_size) for block in found],
            "uncompressed": [_size(block.uncompressed_size) for block in found],
            "offset": [f"{block.offset:,}" for block in found],
        }
        return _rows(columns)

    writer = f", by {data.created_by}" if data.created_by else ""
    return Listing(
        f"{data.format}: {counted(data.num_rows, 'row')} in {counted(len(file.blocks), 'block')}, "
        f"{counted(len(file.leaves), 'column')}{writer}",
        _with_left(left, "block", "rows", "first row", "size", "uncompressed", "offset"),
        len(file.blocks),
        cells,
        None if left is None else left > 0,
        step=lambda block: Place(f"block {block}", lambda view: columns(view, block)),
    )


def columns(view: View, block: int) -> Listing:
    """The columns of a block."""
    file = view.file

    def cells(start: int, stop: int) -> Cells:
        table = file.chunks(start, stop)
        here = table.filter(pc.equal(table["block"], block))
        found = {
            "column": here["path"].to_pylist(),
            "type": [_type(leaf) for leaf in file.leaves[start:stop]],
            "size": [_size(bytes_) for bytes_ in here["compressed_size"].to_pylist()],
            "nulls": _numbers(here["nulls"]),
            "min": _texts(here["min"]),
            "max": _texts(here["max"]),
            "codec": _texts(here["codec"]),
            "encodings": [", ".join(names or ()) for names in here["encodings"].to_pylist()],
            "values": _numbers(here["values"]),
            "uncompressed": [_size(bytes_) for bytes_ in here["uncompressed_size"].to_pylist()],
        }
        for part in ("dictionary", "page_index", "bloom_filter"):
            found[part.replace("_", " ")] = _part_sizes(here, part)
        return _rows(found)

    stored = file.blocks[block]
    names = ("column", "type", "size", "nulls", "min", "max", "codec", "encodings", "values")
    return Listing(
        f"{counted(stored.num_rows, 'row')} from {stored.first_row:,}, "
        f"{size(stored.compressed_size)}{_left_of(view, stored.first_row, stored.num_rows)}",
        (*names, "uncompressed", "dictionary", "page index", "bloom filter"),
        len(file.leaves),
        cells,
        names=file.names,
        step=lambda leaf: Place(file.names[leaf], lambda view: pages(view, block, leaf)),
        aside=lambda leaf: Place(
            f"dictionary of {file.names[leaf]}", lambda view: dictionary(view, block, leaf)
        ),
    )


def pages(view: View, block: int, leaf: int) -> Listing:
    """The pages of a column in a block."""
    table, condition = view.file.pages(leaf), view.condition
    here = table.filter(pc.equal(table["block"], block))
    first_rows, counts = here["first_row"], here["rows"]
    left = kept = None
    if condition is not None:
        known = pc.and_(first_rows.is_valid(), counts.is_valid()).to_numpy()
        begins, rows = (column.fill_null(0).to_numpy() for column in (first_rows, counts))
        left = condition.left(begins, rows)
        kept = (left > 0) | ~known

    def cells(start: int, stop: int) -> Cells:
        found = here.slice(start, stop - start)
        columns = {
            "page": _numbers(found["page"]),
            "rows": _numbers(found["rows"]),
            "left": None if left is None else [f"{rows:,}" for rows in left[start:stop].tolist()],
            "first row": _numbers(found["first_row"]),
            "size": [_size(bytes_) for bytes_ in found["size"].to_pylist()],
            "nulls": _numbers(found["nulls"]),
            "min": _texts(found["min"]),
            "max": _texts(found["max"]),
            "encoding": _texts(found["encoding"]),
            "offset": _numbers(found["offset"]),
        }
        return _rows(columns)

    def step(page: int) -> Place:
        first, count = first_rows[page].as_py(), counts[page].as_py()
        if first is None or count is None:  # only the whole block is known to hold its rows
            whole = view.file.blocks[block]
            return Place("values", lambda view: values(view, leaf, whole.first_row, whole.num_rows))
        return Place(f"page {page}", lambda view: values(view, leaf, first, count))

    names = ("first row", "size", "nulls", "min", "max", "encoding", "offset")
    stored = view.file.blocks[block]
    return Listing(
        f"{_type(view.file.leaves[leaf])}, {counted(here.num_rows, 'page')}"
        f"{_left_of(view, stored.first_row, stored.num_rows)}",
        _with_left(left, "page", "rows", *names),
        here.num_rows,
        cells,
        kept,
        step=step,
        aside=lambda page: Place("dictionary", lambda view: dictionary(view, block, leaf)),
    )


def values(view: View, leaf: int, first: int, count: int) -> Listing:
    """The values of a column in so many rows from `first` on; of those that match, if asked."""
    file, node = view.file, view.file.leaves[leaf]
    note = f"{_type(node)}, {counted(count, 'row')} from {first:,}"
    rows: Sequence[int] | npt.NDArray[np.int64] = range(first, first + count)
    if view.condition is not None:
        rows = file.matching(view.condition, first, count, view.is_stopped)
        note += f", {counted(len(rows), 'row')} that match"

    def cells(start: int, stop: int) -> Cells:
        numbers = rows[start:stop]
        found = file.rows(numbers, (node,)).column(0)
        while pa.types.is_struct(found.type):  # the way to the leaf, if no list is on it
            found = pc.struct_field(found, 0)
        return _rows({"row": [f"{row:,}" for row in numbers], "value": _texts(found)})

    return Listing(
        note,
        ("row", node.path[-1] if len(node.path) == 1 else ".".join(node.path)),
        len(rows),
        cells,
        step=lambda entry: Place(
            f"row {rows[entry]:,}", lambda view: one_row(view, int(rows[entry]))
        ),
    )


def one_row(view: View, row: int) -> Listing:
    """All columns of a row."""
    fields = view.file.fields

    def cells(start: int, stop: int) -> Cells:
        here = fields[start:stop]
        found = view.file.rows([row], here)
        return _rows(
            {
                "column": [field.name for field in here],
                "type": [str(field.arrow_type) for field in here],
                "value": [_texts(column)[0] for column in found.columns],
            }
        )

    return Listing(
        counted(len(fields), "column"),
        ("column", "type", "value"),
        len(fields),
        cells,
        names=[field.name for field in fields],
        widest=_WIDE,
    )


def dictionary(view: View, block: int, leaf: int) -> Listing:
    """The values that the pages of a column refer to."""
    entries = view.file.dictionary(leaf, block)["value"]

    def cells(start: int, stop: int) -> Cells:
        found = entries.slice(start, stop - start)
        numbers = range(start, start + len(found))
        return _rows({"entry": [f"{number:,}" for number in numbers], "value": _texts(found)})

    note = f"{_type(view.file.leaves[leaf])}, {len(entries):,} different values"
    return Listing(note, ("entry", "value"), len(entries), cells, widest=_WIDE)


def _rows(columns: dict[str, list[str] | None]) -> Cells:
    return list(zip(*(column for column in columns.values() if column is not None), strict=True))


def _with_left(left: object, first: str, second: str, *others: str) -> Sequence[str]:
    return (first, second, *(() if left is None else ("may match",)), *others)


def _left_of(view: View, first: int, count: int) -> str:
    if view.condition is None:
        return ""
    return f", {int(view.condition.left([first], [count])[0]):,} rows may match"


def _type(leaf: SchemaNode) -> str:
    return leaf.logical_type or leaf.physical_type or str(leaf.arrow_type)


def _texts(values: pa.ChunkedArray) -> list[str]:
    return ["null" if text is None else text for text in texts(values)]


def _numbers(values: pa.ChunkedArray) -> list[str]:
    return ["?" if value is None else f"{value:,}" for value in values.to_pylist()]


def _size(count: int | None) -> str:
    return "?" if count is None else size(count)


def _part_sizes(chunks: pa.Table, part: str) -> list[str]:
    """How large a part of each chunk is, or whether there is one."""
    pairs = zip(
        *(chunks[name].to_pylist() for name in (f"has_{part}", f"{part}_size")), strict=True
    )
    return [_part_size(has, count) for has, count in pairs]


def _part_size(has: bool | None, count: int | None) -> str:
    if not has:
        return "?" if has is None else "no"
    return size(count) if count else "yes"
