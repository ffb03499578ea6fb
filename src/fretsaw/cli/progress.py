"""What is said on stderr while rows are read and when they have been: a bar, and one line.

An engine says how far it is as a `Status`, at any time and from any thread.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fretsaw.model.shown import size

PATIENCE = 1.0
"""Seconds before a bar is shown: what is quicker needs none."""
_EVERY = 0.1
_TELLING = 0.01
"""The share of the work from which the rest can be told; the last is read ahead."""


@dataclass(frozen=True, slots=True)
class Status:
    """What an engine has done so far."""

    rows: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    """Of all files that were named."""
    requests: int = 0
    share: float | None = None
    """Of the work, what is done; None where nobody knows."""
    tasks: int = 0
    left_out: Sequence[str] = ()
    """What was ruled out before it was read, and what could not be read."""

    def behind(self, other: "Status") -> "Status":
        """This, and what was read for the other before it."""
        return replace(
            self,
            bytes_read=other.bytes_read + self.bytes_read,
            requests=other.requests + self.requests,
            tasks=other.tasks + self.tasks,
        )

    def progress(self, seconds: float) -> str:
        """How far the work is after so long, and how long the rest will take.

        >>> Status(41_000, 2_000_000, share=0.25).progress(20)
        '41,000 rows, 1.9 MB read, 1 min 0 s left'
        """
        parts = [counted(self.rows, "row"), f"{size(self.bytes_read)} read"]
        if self.share is not None and _TELLING < self.share < 1 - _TELLING:
            parts.append(f"{duration(seconds / self.share - seconds)} left")
        return ", ".join(parts)

    def summary(self, seconds: float) -> str:
        """What was read and what was not, in one line.

        >>> Status(41, 2_000_000, 90_000_000, 7, left_out=["3 blocks by statistics"]).summary(0.21)
        '41 rows in 0.21 s; read 1.9 MB of 86 MB in 7 requests; left out 3 blocks by statistics'
        """
        parts = [
            f"{counted(self.rows, 'row')} in {duration(seconds)}",
            f"read {size(self.bytes_read)} of {size(self.bytes_total)} "
            f"in {counted(self.requests, 'request')}"
            + (f" by {counted(self.tasks, 'task')}" if self.tasks else ""),
        ]
        if self.left_out:
            parts.append(f"left out {', '.join(self.left_out)}")
        return "; ".join(parts)


def was_skipped(why: str) -> str:
    """What is said of a corrupt file that was left out."""
    return f"{why}; it was skipped"


def left_out(dropped: Mapping[tuple[str, str], int]) -> list[str]:
    """What was ruled out, of which level by which source.

    >>> left_out({("block", "statistics"): 3})
    ['3 blocks by statistics']
    """
    return [f"{counted(count, level)} by {source}" for (level, source), count in dropped.items()]


class Reporter:
    """Says how far the work is, if anybody wants to know: `beside_rows`, it would be in the way."""

    def __init__(self, quiet: bool, beside_rows: bool = False) -> None:
        self._quiet = quiet
        self._shows_bars = sys.stderr.isatty() and not quiet and not beside_rows
        self._began = time.perf_counter()

    @contextmanager
    def watch(self, status: Callable[[], Status]) -> Iterator[None]:
        """Show a bar for the work inside, if it takes long enough and stderr is a terminal."""
        if not self._shows_bars:
            yield
            return
        done = threading.Event()
        bar = threading.Thread(target=_show_bar, args=(status, done), daemon=True)
        bar.start()
        try:
            yield
        finally:
            done.set()
            bar.join()

    def summarize(self, status: Status) -> None:
        """Say what was done."""
        if not self._quiet:
            summary = status.summary(time.perf_counter() - self._began)
            print(summary, file=sys.stderr, flush=True)


def _show_bar(status: Callable[[], Status], done: threading.Event) -> None:
    began = time.perf_counter()
    if done.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        BarColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        shown = bar.add_task("", total=None)
        while True:
            now = status()
            text = now.progress(time.perf_counter() - began)
            if now.share is None:
                bar.update(shown, description=text)
            else:
                bar.update(shown, description=text, total=1, completed=min(now.share, 1))
            if done.wait(_EVERY):
                return


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.1234), duration(75.4)
    ('0.12 s', '1 min 15 s')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"
