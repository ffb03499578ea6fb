"""What a process may be forked in the midst of: locks, imports, values that are computed once.

A forked child has one thread, and nobody there lets go of what the other threads of its parent
held. So locks are new in a child, and a fork waits until an import that is under way is done.
"""

# Forks first wait for ours and then for the locks of these two, which an import may need.
import concurrent.futures.thread  # noqa: F401
import contextlib
import logging  # noqa: F401
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds that a fork waits for an import, which surely is done sooner."""


class Lock:
    """A lock that is open in a forked child, whoever held it; its owner may take it again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()

importing = Lock()
"""Held around imports inside of functions."""


class once(Generic[T]):  # noqa: N801
    """A property that is computed at its first use; `cached_property` locks in Python 3.11."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "once[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "T | once[T]":
        if instance is None:
            return self
        # Threads that compute it at once all get the value of the first.
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value


def _before() -> None:
    importing._lock.acquire(timeout=_PATIENCE)


def _after_in_parent() -> None:
    with contextlib.suppress(RuntimeError):  # out of patience
        importing._lock.release()


def _after_in_child() -> None:
    for lock in _locks:
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
