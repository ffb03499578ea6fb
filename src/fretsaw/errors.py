"""The exception tree: every error of fretsaw names the file and says what to do.

Where a builtin exception is what users would catch (`FileNotFoundError`, `KeyError`, ...), the
error is that builtin too.
"""

import difflib
from collections.abc import Iterable


class FretsawError(Exception):
    """Base of all errors that fretsaw raises on purpose."""


class SourceNotFoundError(FretsawError, FileNotFoundError):
    """There is no such path, or no Parquet or ORC file in a directory or glob."""


class StorageError(FretsawError, OSError):
    """A file cannot be reached, or changed while it was read."""


class FileFormatError(FretsawError):
    """A file is not Parquet or ORC, or is truncated, corrupt, encrypted or unsupported."""

    is_other_format = False
    """Whether the file neither begins nor ends like one of Parquet or ORC."""

    @classmethod
    def other_format(cls, message: str) -> "FileFormatError":
        """The error for a file of which nothing says that it is Parquet or ORC."""
        error = cls(message)
        error.is_other_format = True
        return error


class CorruptFileWarning(UserWarning):
    """A file was left out, or its rows end early, since it is corrupt: `on_corrupt="skip"`."""


def not_text(source: str, column: str) -> FileFormatError:
    """The error for strings that are not UTF-8: Arrow passes them on, Python cannot hold them."""
    where = f"{source}: " if source else ""
    return FileFormatError(
        f"{where}column {column!r} holds strings that are not UTF-8; read them as bytes, with "
        f"binaries() of column({column!r}), or as they are with to_arrow()"
    )


class ColumnNotFoundError(FretsawError, KeyError):
    """A column is not in the file, and the message lists near names; or several have the name."""

    is_ambiguous = False
    """Whether there are several columns of the name, which does not tell them apart."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument.
        return str(self.args[0]) if self.args else ""

    @classmethod
    def among(cls, name: str, names: Iterable[str], file: str) -> "ColumnNotFoundError":
        """The error for a `name` that is not one of `names`."""
        known = list(names)
        near = _near(name, known)
        hint = f"did you mean {', '.join(map(repr, near))}?" if near else _overview(known)
        return cls(f"{file}: no column {name!r}; {hint}")

    @classmethod
    def ambiguous(cls, name: str, count: int, file: str, hint: str) -> "ColumnNotFoundError":
        """The error for so many columns of one name, and what to do about it."""
        error = cls(
            f"{file}: {count} columns are named {name!r}, which does not tell them apart; {hint}"
        )
        error.is_ambiguous = True
        return error


class PredicateTypeError(FretsawError, TypeError):
    """A literal does not fit the type of its column."""


class PredicateSyntaxError(FretsawError, ValueError):
    """A condition given as text cannot be parsed; the message points at the place."""


class PredicateError(FretsawError):
    """A row for which an expression cannot be computed: an overflow, or a cast that fails."""


class SchemaMismatchError(FretsawError):
    """Files of one scan disagree about a column."""


class NotWritableError(FretsawError, ValueError):
    """A result cannot be written there, or not in that format."""


def _near(name: str, names: list[str]) -> list[str]:
    """The names that are most like one, whatever their case."""
    spellings: dict[str, list[str]] = {}
    for known in dict.fromkeys(names):
        spellings.setdefault(known.casefold(), []).append(known)
    close = difflib.get_close_matches(name.casefold(), spellings, n=3, cutoff=0.6)
    return [known for folded in close for known in spellings[folded]][:3]


def _overview(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return f"the columns are {shown}{', ...' if len(names) > 8 else ''}" if names else "it has none"
