"""A table that holds only what is in sight: as many entries as you like, a few windows of texts.

It draws itself line by line, asks for the window of entries that it lacks, and is given them when
they are read. The first column and the header stay where they are.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fretsaw.cli.dive.places import Cells, Listing
from fretsaw.cli.preview import cut

WINDOW = 64
"""Entries that are read at a time."""
_MOST_WINDOWS = 16
_GAP = 2


class WindowedTable(ScrollView, can_focus=True):
    """The entries of a listing, with a cursor."""

    DEFAULT_CSS = """
    WindowedTable { height: 1fr; }
    WindowedTable > .table--header { text-style: bold; color: $accent; }
    WindowedTable > .table--cursor { background: $primary; color: $text; }
    WindowedTable > .table--dropped { color: $foreground 45%; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--header", "table--cursor", "table--dropped"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "app.step", "Open"),
        Binding("escape,backspace", "app.out", "Back"),
        Binding("slash", "app.search", "Search", key_display="/"),
        Binding("n", "app.find(1)", "Next"),
        Binding("N", "app.find(-1)", "Previous", show=False),
        Binding("f", "app.filter", "Filter"),
        Binding("tab", "app.kept(1)", "Next left", key_display="tab"),
        Binding("shift+tab", "app.kept(-1)", "Previous left", show=False),
        Binding("d", "app.dictionary", "Dictionary"),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "leaf(-1)", show=False),
        Binding("pagedown,space", "leaf(1)", show=False),
        Binding("home,g", "to(False)", show=False),
        Binding("end,G", "to(True)", show=False),
        Binding("left,h", "sideways(-1)", show=False),
        Binding("right,l", "sideways(1)", show=False),
    ]

    class Wanted(Message):
        """Entries came into sight whose texts are not there."""

        def __init__(self, listing: Listing, start: int) -> None:
            super().__init__()
            self.listing, self.start = listing, start

    def __init__(self) -> None:
        super().__init__()
        self.listing: Listing | None = None
        self.cursor = 0
        self._windows: dict[int, Cells] = {}
        self._widths: list[int] = []
        self._asked: int | None = None

    # What is shown

    def show(self, listing: Listing | None, cursor: int = 0) -> None:
        """Show another listing, with the cursor there."""
        self.listing = listing
        self.cursor = 0
        self._windows, self._asked = {}, None
        self._widths = [cell_len(cut(name, _widest(listing))) for name in _headers(listing)]
        self._measure()
        self.scroll_to(0, 0, animate=False)
        self.move_to(cursor)

    def give(self, listing: Listing, start: int, cells: Cells) -> None:
        """The texts of a window that was asked for."""
        if listing is not self.listing:
            return
        self._asked = None
        shown = [tuple(cut(text, listing.widest) for text in texts) for texts in cells]
        self._windows[start] = shown
        while len(self._windows) > _MOST_WINDOWS:
            del self._windows[max(self._windows, key=lambda kept: abs(kept - self.cursor))]
        for texts in shown:
            self._widths = [
                max(*both) for both in zip(self._widths, map(cell_len, texts), strict=True)
            ]
        self._measure()
        self.refresh()
        self.ask()

    @property
    def is_waiting(self) -> bool:
        """Whether texts that are in sight are still to come."""
        return self._asked is not None

    def text_at(self, entry: int) -> Sequence[str] | None:
        """The texts of an entry, if they are there."""
        window = self._windows.get(entry - entry % WINDOW, ())
        place = entry % WINDOW
        return window[place] if place < len(window) else None

    def forget_wish(self) -> None:
        """What was asked for cannot be had: ask again when the user moves."""
        self._asked = None

    def ask(self) -> None:
        """Ask for the first window that is in sight and not there, one at a time."""
        if self.listing is None or self._asked is not None:
            return
        top = max(self.scroll_offset.y, 0)
        bottom = min(top + max(self.size.height - 1, 1), self.listing.length)
        for start in range(top - top % WINDOW, bottom, WINDOW):
            if start not in self._windows:
                self._asked = start
                self.post_message(self.Wanted(self.listing, start))
                return

    def _measure(self) -> None:
        width = sum(self._widths) + _GAP * len(self._widths)
        self.virtual_size = Size(width, 1 + (self.listing.length if self.listing else 0))

    # Moving

    def move_to(self, entry: int) -> None:
        """Put the cursor on an entry, and the entry into sight."""
        length = self.listing.length if self.listing else 0
        self.cursor = max(0, min(entry, length - 1))
        shown = max(self.size.height - 1, 1)
        top = self.scroll_offset.y
        if not top <= self.cursor < top + shown:
            top = self.cursor if self.cursor < top else self.cursor - shown + 1
            self.scroll_to(y=top, animate=False)
        self.refresh()
        self.ask()

    def action_move(self, by: int) -> None:
        """Up or down."""
        self.move_to(self.cursor + by)

    def action_leaf(self, by: int) -> None:
        """A screen up or down."""
        self.move_to(self.cursor + by * max(self.size.height - 2, 1))

    def action_to(self, end: bool) -> None:
        """To the first or the last entry."""
        self.move_to(self.listing.length - 1 if end and self.listing else 0)

    def action_sideways(self, by: int) -> None:
        """A column to the left or to the right."""
        edges = [0]
        for width in self._widths[1:]:
            edges.append(edges[-1] + width + _GAP)
        here = self.scroll_offset.x
        beyond = [edge for edge in edges if (edge - here) * by > 0]
        if beyond:
            self.scroll_to(x=beyond[0] if by > 0 else beyond[-1], animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.ask()

    def on_resize(self) -> None:
        """More may be in sight now."""
        self.move_to(self.cursor)

    async def on_click(self, event: events.Click) -> None:
        """Go to an entry, and into it if the cursor is there already."""
        entry = self.scroll_offset.y + event.y - 1
        if self.listing is None or event.y == 0 or entry >= self.listing.length:
            return
        if entry == self.cursor:
            await self.run_action("app.step")
        else:
            self.move_to(entry)

    # Drawing

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        if self.listing is None:
            return Strip.blank(self.size.width, base)
        if y == 0:
            names = [cut(name, self.listing.widest) for name in self.listing.headers]
            return self._line(names, base + self.get_component_rich_style("table--header"))
        entry = self.scroll_offset.y + y - 1
        if entry >= self.listing.length:
            return Strip.blank(self.size.width, base)
        if entry == self.cursor:
            base += self.get_component_rich_style("table--cursor")
        elif self.listing.kept is not None and not self.listing.kept[entry]:
            base += self.get_component_rich_style("table--dropped")
        return self._line(self.text_at(entry) or ("…",), base)

    def _line(self, texts: Sequence[str], style: Style) -> Strip:
        cells = [
            set_cell_size(text, width) + " " * _GAP
            for text, width in zip(texts, self._widths, strict=False)
        ]
        fixed, moving = cells[0], "".join(cells[1:])
        room = max(self.size.width - cell_len(fixed), 0)
        begin = self.scroll_offset.x
        rest = Strip([Segment(moving, style)]).extend_cell_length(begin + room, style)
        first = Strip([Segment(fixed, style)])
        whole = Strip.join([first, rest.crop(begin, begin + room)])
        return whole.crop(0, self.size.width).apply_style(style)


def _headers(listing: Listing | None) -> Sequence[str]:
    return listing.headers if listing else ()


def _widest(listing: Listing | None) -> int:
    return listing.widest if listing else 0
