"""The first rows of a result as a table for a terminal: as many columns as fit, cells cut short."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fretsaw.cli.progress import counted
from fretsaw.results.write.json_lines import lines

USUAL_ROWS = 40
MOST_ROWS = 1_000
"""Of those that were asked for by number."""
_CELL = 40
_TYPE = 24
_BETWEEN = 2


def first_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema, rows: int) -> pa.Table:
    """At most so many of the first rows."""
    found: list[pa.RecordBatch] = []
    left = rows
    for batch in batches:
        found.append(batch.slice(0, left))
        left -= found[-1].num_rows
        if left == 0:
            break
    return pa.Table.from_batches(found, schema)


def show(rows: pa.Table) -> None:
    """Print rows as a table; columns that do not fit on the terminal are named below it."""
    console = Console(highlight=False)
    columns = [_column(*pair) for pair in zip(rows.schema, rows.columns, strict=True)]
    shown = _fitting(columns, console.width) if console.is_terminal else columns
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in shown:
        header = Text(column.name).append(f"\n{column.type}", "dim")
        table.add_column(
            header,
            justify="right" if column.is_number else "left",
            no_wrap=True,
            min_width=column.width,
        )
    for cells in zip(*(column.cells for column in shown), strict=True):
        table.add_row(*(Text("null", "dim") if cell is None else Text(cell) for cell in cells))
    console.width = max(console.width, _width(shown))
    if shown:
        console.print(table)
    if hidden := columns[len(shown) :]:
        names = ", ".join(column.name for column in hidden)
        console.print(Text(f"{counted(len(hidden), 'more column')}: {names}", "dim"))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as text, no wider than a cell may be."""

    name: str
    type: str
    is_number: bool
    cells: Sequence[str | None]

    @property
    def width(self) -> int:
        texts = (self.name, self.type, *(cell or "null" for cell in self.cells))
        return max(map(cell_len, texts))


def _column(field: pa.Field, values: pa.ChunkedArray) -> _Column:
    kind = field.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    cells = [None if text is None else cut(text, _CELL) for text in texts(values)]
    name, type_name = cut(field.name, _CELL), cut(str(kind), _TYPE)
    return _Column(name, type_name, is_number, cells)


def _fitting(columns: Sequence[_Column], width: int) -> Sequence[_Column]:
    """The first columns, as many as fit, and one at least."""
    shown = len(columns)
    while shown > 1 and _width(columns[:shown]) > width:
        shown -= 1
    return columns[:shown]


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.width + _BETWEEN for column in columns)


def cut(text: str, width: int) -> str:
    """A text on one line and no wider than that, without what a terminal would obey."""
    shown = text[: width + 1]
    if not shown.isprintable():
        shown = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
        )
    return shown if cell_len(shown) <= width else set_cell_size(shown, width - 1) + "…"


def texts(values: pa.ChunkedArray) -> list[str | None]:
    """Each value as a person would write it."""
    if pa.types.is_temporal(values.type) and not pa.types.is_interval(values.type):
        return values.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    try:
        found = values.to_pylist()
    except OverflowError:  # a time beyond the years of Python, inside of something
        cells = (lines(batch) for batch in pa.table({"": values}).to_batches())
        text = b"".join(map(bytes, cells)).decode()
        return [line.removeprefix('{"":').removesuffix("}") for line in text.splitlines()]
    return [None if value is None else _text(value) for value in found]


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case bytes():
            return value[:_CELL].hex(" ")
        case dict():
            return "{" + ", ".join(f"{key}: {_text(held)}" for key, held in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_text, value[:_CELL])) + "]"
        case tuple():
            return ": ".join(map(_text, value))
    return str(value)
