"""Files of a run that cannot be read, or not to their end, where that is to be no error.

Who reads asks `may_skip`, and notes what is left out: once for each file it becomes a warning and
an entry of the trace.
"""

import warnings

from fretsaw.errors import CorruptFileWarning, FileFormatError
from fretsaw.model.trace import Skipped, record_skipped
from fretsaw.storage.listing import Entry
from fretsaw.storage.source import source_name


class CorruptFiles:
    """What one run leaves out."""

    def __init__(self, may_skip: bool) -> None:
        self.may_skip = may_skip
        """Whether corrupt files are left out; else they are errors."""
        self.entries: list[Entry] = []
        self.first_error: FileFormatError | None = None

    def leave_out(self, entry: Entry, error: FileFormatError) -> None:
        """Note that nothing of a file is read."""
        self._note(entry, error, "the file was left out, as on_corrupt='skip' says")

    def end(self, entry: Entry, error: FileFormatError) -> None:
        """Note that a file ends where it is damaged."""
        self._note(entry, error, "its rows end there, as on_corrupt='skip' says")

    def _note(self, entry: Entry, error: FileFormatError, what: str) -> None:
        if any(entry is known for known in self.entries):
            return
        self.entries.append(entry)
        self.first_error = self.first_error or error
        record_skipped(Skipped(source_name(entry.origin), str(error)))
        warnings.warn(f"{error}; {what}", CorruptFileWarning, stacklevel=2)
