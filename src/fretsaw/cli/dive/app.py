"""The viewer: breadcrumbs, what is known of the place, its table, a prompt, and the keys.

Everything that may read is a job of the reader, so that the screen never waits; what goes wrong is
told below the table, and one goes on from there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Footer, Input, Static

from fretsaw.cli.dive.file import Condition, ViewedFile
from fretsaw.cli.dive.places import Listing, Place, View, blocks, columns
from fretsaw.cli.dive.reader import Job, Reader
from fretsaw.cli.dive.table import WINDOW, WindowedTable


@dataclass(slots=True)
class _Step:
    """A place on the way here, and where the cursor was."""

    place: Place
    cursor: int = 0
    listing: Listing | None = None
    """None until it is made, and again when the condition changes."""


class _Done(Message):
    """The reader did a job."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job


class Viewer(App[None]):
    """Walks through one file."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #way { text-style: bold; height: 1; }
    #note, #filter { height: 1; color: $foreground 70%; }
    #filter { color: $warning; }
    #said { height: auto; max-height: 6; color: $foreground 70%; }
    #said.-error { color: $error; }
    #prompt { border: none; height: 1; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "out", "Back", show=False),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, path: str, condition: str | None, storage: Mapping[str, str]) -> None:
        super().__init__()
        self._path, self._storage, self._first_condition = path, storage, condition
        self.failure: Exception | None = None
        """What kept the file closed."""
        self._file: ViewedFile | None = None
        self._condition: Condition | None = None
        self._steps: list[_Step] = []
        self._sought = ""
        self._asks_for: Literal["names", "condition"] = "names"
        self._reader = Reader(self._deliver)
        self._jobs: list[Job] = []
        self._making: Job | None = None
        """Makes the place that one goes to."""

    def compose(self) -> ComposeResult:
        yield Static(id="way", markup=False)
        yield Static(id="note", markup=False)
        yield Static(id="filter", markup=False)
        yield WindowedTable()
        prompt = Input(id="prompt", select_on_focus=False)
        prompt.display = False
        yield prompt
        yield Static(id="said", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Open the file."""
        self._table.focus()
        self._show_way()
        self._start(lambda job: ViewedFile(self._path, self._storage), self._opened, self._failed)

    # Jobs

    @property
    def is_busy(self) -> bool:
        """Whether something is still to be read."""
        return bool(self._jobs)

    def _start(
        self,
        work: Callable[[Job], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> Job:
        job = Job(work, then, failed or self._tell)
        self._jobs.append(job)
        self._show_work()
        self._reader.submit(job)
        return job

    def _deliver(self, job: Job) -> None:
        self.post_message(_Done(job))

    @on(_Done)
    def _finish(self, message: _Done) -> None:
        if message.job in self._jobs:  # else nobody waits for it any more
            self._jobs.remove(message.job)
            self._show_work()
            message.job.finish()

    def _forget_jobs(self) -> None:
        for job in self._jobs:
            job.is_cancelled = True
        self._jobs.clear()
        self._table.forget_wish()
        self._say("")

    def _show_work(self) -> None:
        """Say that something is read, unless there is an error to read."""
        if not self.query_one("#said").has_class("-error"):
            self._say("reading …" if self._jobs else "")

    def _tell(self, error: Exception) -> None:
        self._say(str(error) or type(error).__name__, is_error=True)

    def _say(self, text: str, is_error: bool = False) -> None:
        said = self.query_one("#said", Static)
        said.set_class(is_error, "-error")
        said.update(Text(text))
        said.display = bool(text)

    # The file, and the way through it

    @property
    def _table(self) -> WindowedTable:
        return self.query_one(WindowedTable)

    def _opened(self, file: ViewedFile) -> None:
        self._file = file
        self._go(Place(file.name, blocks))
        if self._first_condition:
            self._hold(self._first_condition)

    def _failed(self, error: Exception) -> None:
        self.failure = error
        self._tell(error)

    def _go(self, place: Place, cursor: int = 0) -> None:
        """Go to a place behind the present one."""
        self._leave()
        step = _Step(place, cursor)

        def arrived(listing: Listing) -> None:
            step.listing = listing
            self._steps.append(step)
            self._show()

        self._make(step, arrived)

    def _return_to(self, depth: int, cursor: int | None = None) -> None:
        """Go back to a place on the way here."""
        self._leave()
        del self._steps[depth + 1 :]
        step = self._steps[-1]
        if cursor is not None:
            step.cursor = cursor
        self._show()
        if step.listing is None:
            self._remake()

    def _remake(self) -> None:
        step = self._steps[-1]

        def made(listing: Listing) -> None:
            step.listing = listing
            self._show()

        self._make(step, made)

    def _make(self, step: _Step, then: Callable[[Listing], None]) -> None:
        file, condition = self._file, self._condition
        assert file is not None
        make = step.place.make

        def failed(error: Exception) -> None:
            self._tell(error)
            self._table.ask()  # what was not waited for

        self._making = self._start(
            lambda job: make(View(file, condition, lambda: job.is_cancelled)), then, failed
        )

    def _leave(self) -> None:
        self._forget_jobs()
        if self._steps:
            self._steps[-1].cursor = self._table.cursor

    def _show(self) -> None:
        step = self._steps[-1]
        self._table.show(step.listing, step.cursor)
        self._show_way()
        self.refresh_bindings()

    def _show_way(self) -> None:
        titles = [step.place.title for step in self._steps] or [self._path]
        self.query_one("#way", Static).update(Text(" > ".join(titles), no_wrap=True))
        listing = self._steps[-1].listing if self._steps else None
        self.query_one("#note", Static).update(Text(listing.note if listing else ""))
        told = self.query_one("#filter", Static)
        told.display = self._condition is not None
        if self._condition is not None:
            rows = self._condition.rows
            told.update(
                Text(
                    f"filter: {self._condition.text} "
                    f"({rows.selected_count:,} of {rows.row_count:,} rows may match)"
                )
            )

    @on(WindowedTable.Wanted)
    def _read_window(self, message: WindowedTable.Wanted) -> None:
        listing, start = message.listing, message.start
        stop = min(start + WINDOW, listing.length)

        def failed(error: Exception) -> None:
            self._table.forget_wish()
            self._tell(error)

        self._start(
            lambda job: listing.cells(start, stop),
            lambda cells: self._table.give(listing, start, cells),
            failed,
        )

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        listing = self._steps[-1].listing if self._steps else None
        match action:
            case "step":
                return listing is not None and listing.step is not None
            case "dictionary":
                return listing is not None and listing.aside is not None
            case "kept":
                return listing is not None and listing.kept is not None
            case "search" | "filter":
                return self._file is not None
            case "find":
                return bool(self._sought)
        return True

    def action_step(self) -> None:
        """Into the entry under the cursor."""
        listing = self._table.listing
        if listing is not None and listing.step is not None and listing.length:
            self._go(listing.step(self._table.cursor))

    def action_dictionary(self) -> None:
        """To the dictionary of the entry under the cursor."""
        listing = self._table.listing
        if listing is not None and listing.aside is not None and listing.length:
            self._go(listing.aside(self._table.cursor))

    def action_out(self) -> None:
        """Out of the prompt, out of waiting for a place, or back by one place."""
        is_waiting = self._making in self._jobs and self._table.listing is not None
        if self._prompt.display:
            self._close_prompt()
        elif not is_waiting and len(self._steps) > 1:
            self._return_to(len(self._steps) - 2)
            return
        self._forget_jobs()
        self._table.ask()

    def action_kept(self, by: int) -> None:
        """To the next entry that the condition leaves."""
        listing = self._table.listing
        if listing is None or listing.kept is None:
            return
        found = np.flatnonzero(listing.kept)
        self._jump(found[found > self._table.cursor], found[found < self._table.cursor], by)

    def action_search(self) -> None:
        """Ask for a part of a column's name."""
        self._ask("names", "part of a column's name", self._sought)

    def action_filter(self) -> None:
        """Ask for a condition."""
        held = self._condition.text if self._condition else ""
        self._ask("condition", "SQL condition, such as fare > 100; nothing for all rows", held)

    # The prompt

    @property
    def _prompt(self) -> Input:
        return self.query_one("#prompt", Input)

    def _ask(self, what: Literal["names", "condition"], hint: str, text: str) -> None:
        self._asks_for = what
        prompt = self._prompt
        prompt.placeholder, prompt.value, prompt.display = hint, text, True
        prompt.cursor_position = len(text)
        prompt.focus()

    def _close_prompt(self) -> None:
        self._prompt.display = False
        self._table.focus()

    @on(Input.Submitted)
    def _answer(self, message: Input.Submitted) -> None:
        text = message.value.strip()
        if self._asks_for == "condition":
            self._hold(text)
            return
        self._close_prompt()
        self._sought = text
        self.refresh_bindings()
        if text:
            self.action_find(1)

    def _hold(self, text: str) -> None:
        """Hold a condition against the file; one that cannot be is left in the prompt."""
        file = self._file
        assert file is not None
        self._say("")

        def held(condition: Condition | None) -> None:
            self._close_prompt()
            self._condition = condition
            self._leave()
            for step in self._steps:
                step.listing = None
            self._show_way()
            self._remake()

        self._start(lambda job: file.condition(text) if text else None, held)

    # Searching

    def action_find(self, by: int) -> None:
        """To the next column whose name has what is sought in it."""
        listing, file = self._table.listing, self._file
        if listing is None or file is None or not self._sought:
            return
        self._say("")
        if listing.names is None:
            self._find_elsewhere(file)
            return
        found = _matches(listing.names, self._sought)
        here = self._table.cursor
        if len(found) == 0:
            self._say(f"no column has {self._sought!r} in its name", is_error=True)
        else:
            self._jump(found[found > here], found[found < here], by)

    def _find_elsewhere(self, file: ViewedFile) -> None:
        """Find a column where the columns are: in the block that one is in, or looks at."""
        found = _matches(file.names, self._sought)
        if len(found) == 0:
            self._say(f"no column has {self._sought!r} in its name", is_error=True)
        elif len(self._steps) > 1:
            self._return_to(1, int(found[0]))
        elif file.blocks:
            block = self._table.cursor
            place = Place(f"block {block}", lambda view: columns(view, block))
            self._go(place, int(found[0]))

    def _jump(self, behind: np.ndarray[Any, Any], before: np.ndarray[Any, Any], by: int) -> None:
        """To the nearest of these entries in a direction, or around the end."""
        around = np.concatenate((behind, before))
        if len(around):
            self._table.move_to(int(around[0 if by > 0 else -1]))


def _matches(names: Any, sought: str) -> np.ndarray[Any, Any]:
    """The numbers of the names that have a text in them, in whatever case."""
    lower = sought.lower()
    return np.array([i for i, name in enumerate(names) if lower in name.lower()], np.int64)
