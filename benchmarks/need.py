"""What must be read for an answer, whatever the format: how much, and which parts to decompress."""

from dataclasses import dataclass, field
from typing import Self

from benchmarks.limit import Piece


@dataclass(slots=True)
class Need:
    """Bytes, and the compressed ones among them."""

    bytes: int = 0
    pieces: list[Piece] = field(default_factory=list)

    def __iadd__(self, other: Self) -> Self:
        self.bytes += other.bytes
        self.pieces += other.pieces
        return self
