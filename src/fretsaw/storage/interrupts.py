"""Reads that can be ended by whoever no longer waits for the work that they are for.

A piece of work on another thread has a `Scope`; what it reads from afar is known there until it is
done, so that work which nobody needs any more need not wait for a slow store.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from fretsaw.model.locks import Lock

Cancel: TypeAlias = Callable[[], object]


class Abandoned(Exception):
    """The work that a read was for is not needed any more."""


class Scope:
    """What is being read for one piece of work, and for all that it started."""

    def __init__(self) -> None:
        self._cancels: dict[int, Cancel] = {}
        self._lock = Lock()
        self._is_over = False

    def end(self) -> None:
        """End what is being read, and let nothing more begin."""
        with self._lock:
            self._is_over = True
            cancels = list(self._cancels.values())
        for cancel in cancels:
            cancel()

    def add(self, cancel: Cancel) -> None:
        """Something is being read, and this ends it."""
        with self._lock:
            if self._is_over:
                raise Abandoned
            self._cancels[id(cancel)] = cancel

    def remove(self, cancel: Cancel) -> None:
        """It is done."""
        with self._lock:
            self._cancels.pop(id(cancel), None)


scopes: ContextVar[tuple[Scope, ...]] = ContextVar("scopes", default=())
"""Those of the work that is done here, and of the work that started it."""


def enter(scope: Scope) -> None:
    """What is done in this context from now on belongs to the scope."""
    scopes.set((*scopes.get(), scope))


@contextmanager
def cancelled_by(cancel: Cancel) -> Iterator[None]:
    """Something is being read inside of the block."""
    active = scopes.get()
    try:
        for scope in active:
            scope.add(cancel)
        yield
    finally:
        for scope in active:
            scope.remove(cancel)
