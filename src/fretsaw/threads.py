"""The pool of threads on which files are opened and leaves decoded.

Tasks never wait for each other, so the pool cannot lock up. A task runs in the context of whoever
started it, so that traces see its work.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

T = TypeVar("T")
Task: TypeAlias = Future[T]


def start(work: Callable[..., T], *arguments: Any) -> Task[T]:
    """Begin some work on the pool."""
    return _pool().submit(copy_context().run, work, *arguments)


def abandon(tasks: Iterable[Task[Any]]) -> None:
    """Nobody needs these any more: what has not begun does not begin, the rest is waited for."""
    begun = [task for task in tasks if not task.cancel()]
    wait(begun)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(pa.cpu_count(), thread_name_prefix="fretsaw")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: the child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
