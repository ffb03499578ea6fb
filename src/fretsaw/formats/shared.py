"""What all formats do alike where a file is wrong: one error, and the search for the culprit."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import Part
from fretsaw.model.arrays import joined
from fretsaw.model.blocks import Int64s
from fretsaw.model.trace import is_tracing, record_decode

ARROW_ERRORS = (pa.ArrowException, OSError, MemoryError)
"""What pyarrow raises for bytes that it cannot decode."""

PartT = TypeVar("PartT", bound=Part)
Leaves: TypeAlias = Sequence[Sequence[PartT]]
"""For each leaf, its parts."""


class OutOfRange(ValueError):
    """Values that the type they are read as cannot hold."""


@dataclass(frozen=True, slots=True)
class Translation:
    """From what pyarrow and a format raise to the error of the contract, which names the file."""

    file: str
    corrupt: tuple[type[Exception], ...]
    """What the format's own checks raise."""

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Translate what is raised while something is read of the file."""
        try:
            yield
        except OutOfRange as error:
            raise FileFormatError(f"{self.file}: {what} has {error}") from None
        except self.corrupt as error:
            raise FileFormatError(
                f"{self.file}: {what} is corrupt: {error}; write or copy the file again"
            ) from None
        except ARROW_ERRORS as error:
            raise FileFormatError(
                f"{self.file}: {what} cannot be read: {' '.join(str(error).split()).rstrip('.')}; "
                f"the file is corrupt or uses what pyarrow {pa.__version__} does not support"
            ) from error


def number_name(names: Sequence[str], number: int) -> str:
    """What a format calls one of its numbered things; a number from the future has no name."""
    return names[number] if 0 <= number < len(names) else f"UNKNOWN({number})"


def known_counts(counts: Int64s) -> list[int | None]:
    """Counts of which some are -1, which stands for unknown ones."""
    return [None if count < 0 else count for count in counts.tolist()]


def decode_together(
    leaves: Leaves[PartT],
    decode: Callable[[Leaves[PartT]], list[pa.ChunkedArray]],
    failures: tuple[type[Exception], ...],
    explain: Callable[[PartT, Exception], pa.ChunkedArray],
) -> list[pa.ChunkedArray]:
    """Decode leaves together; where that fails, each part alone, to find out which one it is.

    To `explain` a part that fails is to raise what is wrong with it, or to decode it otherwise.
    """
    try:
        arrays = decode(leaves)
    except failures as error:
        if sum(map(len, leaves)) == 1:
            arrays = [explain(leaves[0][0], error)]
            _record(leaves)
            return arrays
    else:
        _record(leaves)
        return arrays
    each = [
        [decode_together([[part]], decode, failures, explain)[0] for part in parts]
        for parts in leaves
    ]
    return [joined(arrays) for arrays in each]


def _record(leaves: Leaves[PartT]) -> None:
    """Tell what Arrow decoded."""
    if is_tracing():
        for parts in leaves:
            for part in parts:
                record_decode(part.count_pages(), part.rows, by="arrow")
