"""Who wrote a file, by the name and version in its footer, and what old writers got wrong.

Arrow works around the same faults; what is read here without Arrow must do so too.
"""

import re
from functools import lru_cache
from typing import NamedTuple

_NUMBERS = re.compile(r"\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?")
_SHORT_CHUNKS = ("parquet-mr", (1, 2, 9))
_FALSE_FLAGS = ("parquet-cpp", (2, 0, 0))
_SIGNED_BOUNDS = (("parquet-mr", (1, 10, 0)), ("parquet-cpp", (1, 3, 0)))
_MISSING_BYTES = 100


class Writer(NamedTuple):
    """A writer, as its files name it; a version that they do not tell is the lowest."""

    name: str
    version: tuple[int, int, int]

    def is_before(self, name: str, version: tuple[int, int, int]) -> bool:
        """Whether this is a version of that writer from before another one."""
        return self.name == name and self.version < version

    @property
    def missing_bytes(self) -> int:
        """How many bytes a chunk may have beyond the size that is noted.

        The header of the dictionary page was left out of it.
        """
        return _MISSING_BYTES if self.is_before(*_SHORT_CHUNKS) else 0

    @property
    def always_compresses(self) -> bool:
        """Whether pages of version 2 are compressed even if they say that they are not."""
        return self.is_before(*_FALSE_FLAGS)

    @property
    def compares_signed(self) -> bool:
        """Whether bounds were found by comparing everything as signed: wrong for bytes."""
        return any(self.is_before(*fixed) for fixed in _SIGNED_BOUNDS)


@lru_cache
def writer_of(created_by: str | None) -> Writer:
    """The writer that a footer names, such as `parquet-mr version 1.10.1 (build 0ab)`."""
    name, _, version = (created_by or "").partition(" version ")
    found = _NUMBERS.match(version)
    major, minor, patch = (int(number or 0) for number in found.groups()) if found else (0, 0, 0)
    return Writer(name.strip(), (major, minor, patch))
