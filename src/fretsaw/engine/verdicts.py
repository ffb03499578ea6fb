"""What each source of proofs dropped of a scan, as planning returns it and traces are told."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from fretsaw.engine.files import OpenFile
from fretsaw.errors import FileFormatError
from fretsaw.model.blocks import Block
from fretsaw.model.schema import SchemaNode
from fretsaw.model.trace import Pruned, is_tracing, record_pruned


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What one source of proofs kept and dropped, of files, blocks or the pages of a check."""

    level: Literal["file", "block", "page"]
    source: str
    kept: int
    dropped: int
    blocks: Sequence[Block] = ()
    """The blocks that were dropped."""
    page_bytes: int = 0
    """Bytes of the pages that were dropped."""
    parts: Sequence[tuple[str, int, int]] = ()
    """What each part of the condition, by its text, ruled out by itself, and of how many."""

    def told(
        self, name: str, file: OpenFile | None = None, leaves: Sequence[SchemaNode] = ()
    ) -> Pruned:
        """The verdict with the bytes that it saves, where these leaves of a file would be read."""
        saved = self.page_bytes
        if file is not None:
            saved += _chunk_bytes(file, self.blocks, leaves)
        return Pruned(name, self.level, self.source, self.kept, self.dropped, saved)


def tell(
    file: OpenFile, verdicts: Sequence[Verdict], leaves: Callable[[], Sequence[SchemaNode]]
) -> None:
    """Let whoever traces know what was dropped of a file of which these leaves are read."""
    if verdicts and is_tracing():
        read = leaves()
        for verdict in verdicts:
            record_pruned(verdict.told(file.name, file, read))


def _chunk_bytes(file: OpenFile, blocks: Sequence[Block], leaves: Sequence[SchemaNode]) -> int:
    """Bytes of the chunks of these leaves, each counted once."""
    total = 0
    for leaf in {leaf.leaf_index: leaf for leaf in leaves}.values():
        for block in blocks:
            with suppress(FileFormatError):  # nobody reads them
                total += file.reader.chunk_size(block, leaf)
    return total
