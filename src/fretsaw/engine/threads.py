"""The pool of threads on which files are opened and leaves decoded.

Tasks wait only for others that have begun, so the pool cannot lock up. A task runs in the context
of whoever started it, so that traces see its work. What is too small for a thread is done where it
is needed.
"""

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache, partial
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa

from fretsaw.storage.interrupts import Scope, enter

T = TypeVar("T")

_SMALL = 256 << 10
"""Bytes to decode: below, handing over to a thread costs more than it saves."""
SLOW = 0.002
"""Seconds that small work may wait for its bytes before it is worth a thread."""


class Deferred(Generic[T]):
    """Work that is done when its result is asked for, once."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._result: list[T] = []

    def result(self) -> T:
        """Do the work, or remember what came of it."""
        if self._work is not None:
            work, self._work = self._work, None
            self._result.append(work())
        return self._result[0]

    def done(self) -> bool:
        """Whether the work is done."""
        return self._work is None

    def cancel(self) -> bool:
        """Never begin."""
        return True

    def end(self) -> None:
        """It has not begun, or is done."""

    def wait(self) -> None:
        """Nobody else does it."""


class Started(Generic[T]):
    """Work that was begun on the pool.

    In a forked child the pool is gone, and all that it knew: the work is done where it is needed.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        context = copy_context()
        self._scope = Scope()
        context.run(enter, self._scope)
        self._process = os.getpid()
        self._future = pool().submit(context.run, work)
        self._here = Deferred(lambda: context.copy().run(work))

    def result(self) -> T:
        """What came of it; waits for it."""
        return self._future.result() if self._is_pooled else self._here.result()

    def done(self) -> bool:
        """Whether the result is there."""
        return self._future.done() if self._is_pooled else self._here.done()

    def cancel(self) -> bool:
        """Never begin; False if it has begun."""
        return self._future.cancel() if self._is_pooled else self._here.cancel()

    def end(self) -> None:
        """Nobody needs it any more: what it reads from afar is not waited for."""
        self._scope.end()

    def wait(self) -> None:
        """Until it is done, well or not."""
        if self._is_pooled:
            wait([self._future])

    @property
    def _is_pooled(self) -> bool:
        return self._process == os.getpid()


Task: TypeAlias = Started[T] | Deferred[T]


class Starter:
    """Starts tasks: small ones not on the pool, as long as they do not wait for slow storage."""

    def __init__(self) -> None:
        self.is_slow = False
        """Whether what is read is waited for."""

    def start(self, size: float, work: Callable[..., T], *arguments: Any) -> Task[T]:
        """Begin some work that decodes about so many bytes, now or when it is needed."""
        if size > _SMALL or self.is_slow:
            return start(work, *arguments)
        run = copy_context().run
        return Deferred(partial(self._timed, partial(run, work, *arguments)))

    def _timed(self, work: Callable[[], T]) -> T:
        began, busy = time.perf_counter(), time.thread_time()
        result = work()
        waited = (time.perf_counter() - began) - (time.thread_time() - busy)
        self.is_slow |= waited > SLOW
        return result


def start(work: Callable[..., T], *arguments: Any) -> Started[T]:
    """Begin some work on the pool."""
    return Started(partial(work, *arguments))


def side_by_side(first: Callable[[], T], second: Callable[[], T]) -> tuple[T, T]:
    """Do both, the second one on the pool if a thread is free: this may be called from there."""
    task = start(second)
    try:
        result = first()
    except BaseException:
        abandon([task])
        raise
    return result, second() if task.cancel() else task.result()


def abandon(tasks: Iterable[Task[Any]]) -> None:
    """Nobody needs these any more: what has not begun does not begin, the rest is waited for."""
    begun = [task for task in tasks if not task.cancel()]
    for task in begun:
        task.end()
    for task in begun:
        task.wait()


def count() -> int:
    """How many threads there are."""
    return int(pa.cpu_count())


@cache
def pool() -> ThreadPoolExecutor:
    """The threads of this process."""
    return ThreadPoolExecutor(count(), thread_name_prefix="fretsaw")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: the child starts its own.
    os.register_at_fork(after_in_child=pool.cache_clear)
