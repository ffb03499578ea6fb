"""What was read of the ends of files and of page headers, kept for the next who asks.

A file is the same if its path, place, size and times are; one that has just been written is not
kept, since its times could not tell the next version apart. `clear` forgets everything.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_BYTES = 8 << 20
"""Bytes of footers that are kept, as they are stored; decoded they take some ten times as much."""


class Recent(Generic[T]):
    """The values that were used last, up to a total size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Keep nothing, in a forked process: nobody there would let go of a lock that was held."""
        self._lock = threading.Lock()
        self.clear()

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

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FOOTERS.renew)
    os.register_at_fork(after_in_child=PAGES.renew)


def clear() -> None:
    """Forget all files: the next scan reads their footers again.

    >>> import fretsaw.cache
    >>> fretsaw.cache.clear()
    """
    FOOTERS.clear()
    PAGES.clear()
