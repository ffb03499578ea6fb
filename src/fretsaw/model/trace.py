"""`fs.trace()`: counts what was read and decoded, and logs every read with its reason.

The storage layer records reads, the running execution what it decoded. A trace sees the work of
its own thread and of the workers that do it on that thread's behalf, nobody else's.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from fretsaw.model.locks import Lock
from fretsaw.model.shown import html_table, size

Decoder: TypeAlias = Literal["kernels", "arrow"]
Why: TypeAlias = Literal["footer", "index", "Bloom filter", "dictionary", "data"]


class ReadEvent(NamedTuple):
    """One read: which bytes of which file, and what they were wanted for."""

    path: str
    offset: int
    length: int
    why: Why


class Fallback(NamedTuple):
    """A whole chunk that was decoded for a part of its rows, and the reason."""

    path: str
    column: str
    block: int
    reason: str


class Skipped(NamedTuple):
    """A file that was left out, or whose rows ended early, and the error that said why."""

    path: str
    reason: str


class Pruned(NamedTuple):
    """What one source of proofs left of the files or blocks, or for one check of the pages.

    Pages that one check drops may be read all the same, for another one or for the result.
    """

    path: str
    level: Literal["file", "block", "page"]
    source: str
    kept: int
    dropped: int
    bytes_saved: int


@dataclass(slots=True, eq=False, repr=False)
class Trace:
    """What happened since the trace began."""

    log: list[ReadEvent] = field(default_factory=list)
    pages_decoded: int = 0
    rows_decoded: int = 0
    """Rows of single leaves: ten rows of three flat columns count thirty."""
    decoded_by: Counter[Decoder] = field(default_factory=Counter)
    """How many of the pages were decoded by the compiled kernels, and how many by Arrow."""
    fallbacks: list[Fallback] = field(default_factory=list)
    pruned: list[Pruned] = field(default_factory=list)
    """What was dropped before it was read, by which source."""
    skipped: list[Skipped] = field(default_factory=list)
    """Corrupt files that `on_corrupt="skip"` left out, or ended where they are damaged."""

    @property
    def requests(self) -> int:
        """How many reads there were."""
        return len(self.log)

    @property
    def bytes_read(self) -> int:
        """The bytes of all reads."""
        return sum(event.length for event in self.log)

    @property
    def footer_bytes(self) -> int:
        """Bytes read for footers."""
        return self.bytes_by_reason().get("footer", 0)

    @property
    def index_bytes(self) -> int:
        """Bytes read for page indexes, for Bloom filters, and for dictionaries to search in."""
        return self.bytes_read - self.footer_bytes - self.data_bytes

    @property
    def data_bytes(self) -> int:
        """Bytes read for data pages and the dictionaries that they refer to."""
        return self.bytes_by_reason().get("data", 0)

    def __repr__(self) -> str:
        return f"Trace({', '.join(f'{text} {name}' for name, text in self._told())})"

    def _repr_html_(self) -> str:
        read = [(f"bytes for {why}", size(n)) for why, n in self.bytes_by_reason().items()]
        return html_table("trace", [*self._told(), *read])

    def _told(self) -> list[tuple[str, str]]:
        """What it counted, in a few numbers."""
        counts = [
            ("requests", f"{self.requests:,}"),
            ("read", size(self.bytes_read)),
            ("pages decoded", f"{self.pages_decoded:,}"),
            ("rows decoded", f"{self.rows_decoded:,}"),
        ]
        rare = {"fallbacks": len(self.fallbacks), "files skipped": len(self.skipped)}
        return counts + [(name, f"{count:,}") for name, count in rare.items() if count]

    def bytes_by_reason(self) -> dict[Why, int]:
        """How many bytes were read for what."""
        totals: dict[Why, int] = {}
        for event in self.log:
            totals[event.why] = totals.get(event.why, 0) + event.length
        return totals


_counting = Lock()
_active: ContextVar[tuple[Trace, ...]] = ContextVar("active_traces", default=())


@contextmanager
def trace() -> Iterator[Trace]:
    """Count what is read and decoded inside the `with` block.

    >>> with trace() as t:
    ...     pass
    >>> t.requests, t.bytes_read
    (0, 0)
    """
    started = Trace()
    token = _active.set((*_active.get(), started))
    try:
        yield started
    finally:
        _active.reset(token)


def is_tracing() -> bool:
    """Whether anybody counts: some numbers cost work that nobody else wants."""
    return bool(_active.get())


def record_read(path: str, offset: int, length: int, why: Why) -> None:
    """Log one read."""
    for active in _active.get():
        active.log.append(ReadEvent(path, offset, length, why))


def record_decode(pages: int, rows: int, by: Decoder) -> None:
    """Count pages and the rows decoded from them."""
    for active in _active.get():
        with _counting:
            active.pages_decoded += pages
            active.rows_decoded += rows
            active.decoded_by[by] += pages


def record_fallback(fallback: Fallback) -> None:
    """Note that a whole chunk was decoded for a part of its rows."""
    for active in _active.get():
        active.fallbacks.append(fallback)


def record_skipped(skipped: Skipped) -> None:
    """Note that a corrupt file was left out, or ended early."""
    for active in _active.get():
        active.skipped.append(skipped)


def record_pruned(pruned: Pruned) -> None:
    """Note what a source of proofs decided."""
    for active in _active.get():
        active.pruned.append(pruned)
