"""How a command ends when it cannot go on: a message, an exit code, no traceback.

1 is an error, 2 (by click) a wrong use; 128 and a signal's number stand for being stopped by it,
a closed pipe included. What is none of these is a fault of fretsaw, and its traceback is shown.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from fretsaw.cli.advice import in_words_of_the_command
from fretsaw.errors import FretsawError

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end: as Ctrl-C does, so that nothing half-done is left."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def reporting() -> Iterator[None]:
    """Say what went wrong inside in a few words, and exit."""
    try:
        yield
    except BrokenPipeError:  # whoever read the rows has enough of them
        _exit(128 + signal.SIGPIPE)
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        _exit(128 + number, "interrupted" if number == signal.SIGINT else "stopped")
    except MemoryError as error:
        _exit(1, f"not enough memory{_because(error)}; select fewer columns")
    except FretsawError as error:
        _exit(1, in_words_of_the_command(str(error)))
    except OSError as error:
        _exit(1, _os_message(error))
    except ValueError as error:
        _exit(1, in_words_of_the_command(str(error)))


def _exit(code: int, message: str = "") -> None:
    """End the process; what nobody can be told any more is not told."""
    if message:
        with suppress(OSError):
            print(f"fretsaw: {message}", file=sys.stderr, flush=True)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        # Python would try again on its way out, and complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    sys.exit(code)


def _os_message(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror}"


def _because(error: BaseException) -> str:
    return f" ({error})" if str(error) else ""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Clean up when asked to end, unless somebody chose otherwise (nohup does)."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    ending = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in ending:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)
