"""What was read of the ends of files and of page headers, kept for the next who asks.

A file is the same if its path, place, size, times and last bytes are; one that has just been
written is not kept, since its times could not tell the next version apart. `clear` forgets all.
"""

import os
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from fretsaw.model.locks import Lock
from fretsaw.storage.source import End

T = TypeVar("T")

MOST_BYTES = 8 << 20
"""Bytes of footers that are kept, as they are stored; decoded they take some ten times as much."""


class Recent(Generic[T]):
    """The values that were used last, up to a total size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """What is kept for the key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: T, size: int) -> None:
        """Keep a value, and drop those that were not used for longest."""
        with self._lock:
            if size > self._most:
                return
            self._total -= self._kept.pop(key, (None, 0))[1]
            self._kept[key] = (value, size)
            self._total += size
            while self._total > self._most:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._total -= dropped

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._kept.clear()
            self._total = 0


FOOTERS: Recent[object] = Recent(MOST_BYTES)
PAGES: Recent[object] = Recent(MOST_BYTES)
"""Where pages are, of chunks without an index."""
ENDS: Recent[End] = Recent(64 << 20)
"""The ends of remote files, by version: footers and indexes lie there."""

if hasattr(os, "register_at_fork"):
    # Another thread may have been in the midst of a change; locks are open again by now.
    os.register_at_fork(after_in_child=FOOTERS.clear)
    os.register_at_fork(after_in_child=PAGES.clear)
    os.register_at_fork(after_in_child=ENDS.clear)


def clear() -> None:
    """Forget all files: the next scan reads their footers again.

    >>> import fretsaw.cache
    >>> fretsaw.cache.clear()
    """
    FOOTERS.clear()
    PAGES.clear()
    ENDS.clear()
