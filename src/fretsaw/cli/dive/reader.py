"""Reads beside the screen: one thread that does jobs in turn, so that keys are always heard.

A thread of our own, and one that nobody waits for: who quits while a store is slow has quit.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Job:
    """Something to be read, and what to do with it then; cancelled, it is forgotten."""

    def __init__(
        self,
        work: Callable[["Job"], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.work, self.then, self.failed = work, then, failed
        self.is_cancelled = False
        self._result: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Do the work; on the reader's thread."""
        if self.is_cancelled:
            return
        try:
            self._result = self.work(self)
        except Exception as error:  # whatever it is, it is told on the screen
            self._error = error

    def finish(self) -> None:
        """Do what comes then; on the screen's thread."""
        if self.is_cancelled:
            return
        if self._error is None:
            self.then(self._result)
        else:
            self.failed(self._error)


class Reader:
    """The thread, and the jobs that wait for it."""

    def __init__(self, done: Callable[[Job], None]) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._done = done
        self._thread = threading.Thread(target=self._run, name="fretsaw-dive", daemon=True)

    def submit(self, job: Job) -> None:
        """Have a job done; `done` is called with it, on the reader's thread."""
        if not self._thread.is_alive():
            self._thread.start()
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            job.run()
            try:
                self._done(job)
            except RuntimeError:  # the screen is gone
                return
