"""Blocks chosen by where they live in a file: `byte_range`, `blocks`, and `&`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NoReturn

from fretsaw.model.blocks import Block


class BlockPredicate(ABC):
    """Chooses blocks by where they live in the file; `&` intersects two of them."""

    __slots__ = ()

    @abstractmethod
    def keeps(self, block: Block) -> bool:
        """Whether the block belongs to the scan."""

    def __and__(self, other: "BlockPredicate") -> "BlockPredicate":
        if not isinstance(other, BlockPredicate):
            raise self._combines_with_none()
        return _Both(self, other)

    def __rand__(self, other: object) -> NoReturn:
        raise self._combines_with_none()

    def __or__(self, other: object) -> NoReturn:
        raise self._combines_with_none()

    __ror__ = __or__

    def __invert__(self) -> NoReturn:
        raise self._combines_with_none()

    def __bool__(self) -> NoReturn:
        raise self._combines_with_none()

    def _combines_with_none(self) -> TypeError:
        return TypeError(
            f"{self!r} chooses blocks: only & combines it, and only with another block predicate; "
            "give it and conditions on columns to filter() one by one"
        )


@dataclass(frozen=True, slots=True, repr=False)
class _Both(BlockPredicate):
    left: BlockPredicate
    right: BlockPredicate

    def keeps(self, block: Block) -> bool:
        return self.left.keeps(block) and self.right.keeps(block)

    def __repr__(self) -> str:
        return f"{self.left!r} & {self.right!r}"


@dataclass(frozen=True, slots=True, repr=False)
class _ByteRange(BlockPredicate):
    start: int
    end: int

    def keeps(self, block: Block) -> bool:
        return self.start <= block.midpoint < self.end

    def __repr__(self) -> str:
        return f"byte_range({self.start}, {self.end})"


@dataclass(frozen=True, slots=True, repr=False)
class _Ordinals(BlockPredicate):
    start: int
    end: int

    def keeps(self, block: Block) -> bool:
        return self.start <= block.ordinal < self.end

    def __repr__(self) -> str:
        return f"blocks({self.start}, {self.end})"


def byte_range(start: int, end: int) -> BlockPredicate:
    """Keep the blocks whose midpoint lies in `[start, end)`.

    Disjoint ranges that cover a file put each of its blocks into exactly one of them, wherever
    the cuts fall. `end < start` is an empty range.

    >>> block = Block(0, 0, 10, offset=4, compressed_size=150, uncompressed_size=900)
    >>> byte_range(0, 100).keeps(block)
    True
    """
    return _ByteRange(start, end)


def blocks(start: int, end: int) -> BlockPredicate:
    """Keep the blocks with ordinals in `[start, end)`.

    >>> block = Block(3, 90, 10, offset=4, compressed_size=150, uncompressed_size=900)
    >>> blocks(0, 3).keeps(block)
    False
    """
    return _Ordinals(start, end)
