"""What a reading would read: its plan, the parts to share out, the rows that indexes leave.

Files are opened and indexes read, never data pages; what each source of proofs dropped is taken
from a trace of that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fretsaw.engine.columns import RowCount
from fretsaw.engine.files import OpenFile
from fretsaw.engine.parts import byte_ranges
from fretsaw.engine.plan import Amount, BlockRows, FilePlan, Plan, block_plan
from fretsaw.engine.reading import FileShare, Reading
from fretsaw.engine.survey import Surveyed
from fretsaw.model.block_predicates import byte_range
from fretsaw.model.blocks import PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import Pruned, trace
from fretsaw.predicates.condition import checks_of
from fretsaw.storage.listing import Entry
from fretsaw.storage.source import source_name


def plan_of(reading: Reading, piece_bytes: int) -> Plan:
    """What would be read, in pieces of about so many bytes, and what is left out by what."""
    query = reading.query
    with trace() as pruning:
        reading.check()
        files = [_file_plan(reading, share, piece_bytes) for share in reading.shares()]
    dropped: dict[str, int] = {}
    for file in files:
        for source, count in file.dropped.items():
            dropped[source] = dropped.get(source, 0) + count
    blocks = tuple(block for file in files for block in file.blocks)
    passed_over = {source_name(entry.origin) for entry in reading.passed_over}
    names = (source_name(entry.origin) for entry in reading.listing.entries)
    return Plan(
        files=tuple(name for name in names if name not in passed_over),
        files_opened=len(files),
        columns=tuple(reading.schema.names),
        blocks=blocks,
        dropped=dropped,
        rows=Amount(sum(f.rows for f in files), sum(block.rows.kept for block in blocks)),
        bytes=Amount(sum(f.bytes for f in files), sum(block.bytes.kept for block in blocks)),
        window=str(query.window),
        predicate="" if query.predicate is None else repr(query.predicate),
        indexes=reading.believes_indexes,
        proven=sum(file.proven for file in files),
        pruned=tuple(pruning.pruned),
        planning_bytes=pruning.bytes_by_reason(),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A byte range of one file, and what is read of it at most."""

    entry: Entry
    start: int
    end: int
    bytes: int
    """Roughly, of the pages that may hold a match."""
    rows: int
    """How many may match."""
    proven: int
    """Of these, how many surely do."""


def parts_of(reading: Reading, target_bytes: int) -> Iterator[Part]:
    """The files cut between blocks into parts of about so many bytes that survive pruning."""
    for share in reading.shares():
        file, leaves = share.file, _leaves(reading, share.file)
        surveyed = list(reading.surveyed(share, reading.projection))
        blocks = [part.selected.block for part in surveyed]
        sizes = [_bytes_left(file, part.selected, leaves) for part in surveyed]
        for start, end in byte_ranges(blocks, sizes, target_bytes):
            inside = byte_range(start, end)
            places = [place for place, block in enumerate(blocks) if inside.keeps(block)]
            yield Part(
                file.planned,
                start,
                end,
                bytes=sum(sizes[place] for place in places),
                rows=sum(surveyed[place].selected.rows.selected_count for place in places),
                proven=sum(surveyed[place].proven_count for place in places),
            )


def _bytes_left(file: OpenFile, selected: BlockRows, leaves: list[SchemaNode]) -> int:
    whole = sum(int(chunk.sizes.sum()) for chunk in file.chunks(selected.block, leaves))
    return max(1, whole * selected.rows.selected_count // selected.block.num_rows)


def rows_left(reading: Reading) -> RowSelection:
    """The rows of the one file of a reading that its indexes cannot rule out."""
    reading.check()
    (share,) = reading.shares()
    kept = {
        part.selected.block.ordinal: part.selected.rows
        for part in reading.surveyed(share, lambda _: RowCount())
    }
    return RowSelection().concat(
        *(
            kept.get(block.ordinal, RowSelection.none(block.num_rows))
            for block in share.file.reader.blocks
        )
    )


def _file_plan(reading: Reading, share: FileShare, piece_bytes: int) -> FilePlan:
    file = share.file
    leaves = _leaves(reading, file)
    with trace() as pruning:
        surveyed = list(reading.surveyed(share, reading.projection))
    not_kept = len(share.selected.kept) - len(surveyed)
    return FilePlan(
        blocks=[
            block_plan(file.name, part.selected, _pages(reading, file, part, piece_bytes))
            for part in surveyed
        ],
        dropped=share.selected.dropped | _dropped_by(pruning.pruned, not_kept),
        rows=file.num_rows,
        bytes=sum(
            int(chunk.sizes.sum())
            for block in file.reader.blocks
            if block.num_rows
            for chunk in file.chunks(block, leaves)
        ),
        proven=sum(part.proven_count for part in surveyed),
    )


def _pages(
    reading: Reading, file: OpenFile, part: Surveyed, piece_bytes: int
) -> Sequence[PageIndex]:
    """The pages of a block that hold its rows: of the result, and of what is left to be checked."""
    search = part.search
    checks = [] if search is None else checks_of(search.condition)
    leaves = [*reading.projection(file).leaves, *(check.leaf for check in checks)]
    known = {} if search is None else search.pages
    return file.pages_of(part.selected, _distinct(leaves), piece_bytes, known)


def _leaves(reading: Reading, file: OpenFile) -> list[SchemaNode]:
    """The leaves that are read of a file: those of the result and those that are checked."""
    leaves = list(reading.projection(file).leaves)
    if reading.query.predicate is not None:
        leaves += [check.leaf for check in checks_of(reading.condition(file))]
    return _distinct(leaves)


def _distinct(leaves: Sequence[SchemaNode]) -> list[SchemaNode]:
    return list({leaf.leaf_index: leaf for leaf in leaves}.values())


def _dropped_by(pruned: list[Pruned], blocks: int) -> dict[str, int]:
    """Which source dropped how many of so many blocks: what none claims, the pages did, if any."""
    dropped: dict[str, int] = {}
    for source in pruned:
        if source.level == "block" and source.dropped:
            dropped[source.source] = dropped.get(source.source, 0) + source.dropped
            blocks -= source.dropped
    if blocks:
        by_pages = [source.source for source in pruned if source.level == "page"]
        dropped[by_pages[0] if by_pages else "predicate"] = blocks
    return dropped
