"""The thread that waits for remote stores, whoever asks.

All requests of a process are driven by one event loop on one thread, so that many are under way at
once, and whoever waits for them can be interrupted: synchronous calls of obstore cannot.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from fretsaw.errors import StorageError
from fretsaw.model.locks import Lock
from fretsaw.storage.interrupts import Abandoned, cancelled_by

T = TypeVar("T")

_starting = Lock()


class _Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.events = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fretsaw-remote", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.events)
        self.events.run_forever()

    def stop(self) -> None:
        """Let nothing run on while the interpreter ends."""
        if self.process == os.getpid():
            self.events.call_soon_threadsafe(self.events.stop)
            self._thread.join(timeout=1)


_loop: _Loop | None = None


def begin(work: Coroutine[Any, Any, T], name: str) -> "Future[T]":
    """Begin some work on the loop."""
    global _loop
    with _starting:
        if _loop is None:
            _loop = _Loop()
        loop = _loop
    if loop.process != os.getpid():
        work.close()
        # The threads of obstore are those of the parent, and cannot be started again.
        raise StorageError(
            f"{name}: this process was forked off one that had read remote files, and cannot read "
            'them itself; start processes by "spawn" or "forkserver", as '
            'multiprocessing.get_context("spawn") does'
        )
    return asyncio.run_coroutine_threadsafe(work, loop.events)


def result_of(future: "Future[T]") -> T:
    """What came of work that was begun; an interrupt of who waits ends the work."""
    try:
        with cancelled_by(future.cancel):
            return future.result()
    except CancelledError:
        raise Abandoned from None
    except BaseException:
        future.cancel()
        raise


def wait_for(work: Coroutine[Any, Any, T], name: str) -> T:
    """Begin some work, and wait for its result."""
    return result_of(begin(work, name))


async def all_of(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of several pieces of work; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
