"""What a reading would read: its plan, and the rows that indexes leave of one file.

Files are opened and indexes read, never data pages; what each source of proofs dropped is taken
from a trace of that.
"""

from fretsaw.condition import checks_of
from fretsaw.plan import Amount, FilePlan, Plan, block_plan
from fretsaw.projection import NO_COLUMNS
from fretsaw.reading import FileShare, Reading
from fretsaw.selection import RowSelection
from fretsaw.storage import source_name
from fretsaw.trace import Pruned, trace


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
    return Plan(
        files=tuple(source_name(entry.origin) for entry in reading.listing.entries),
        files_opened=len(files),
        columns=tuple(reading.schema.names),
        blocks=blocks,
        dropped=dropped,
        rows=Amount(sum(f.rows for f in files), sum(block.rows.kept for block in blocks)),
        bytes=Amount(sum(f.bytes for f in files), sum(block.bytes.kept for block in blocks)),
        window=str(query.window),
        predicate="" if query.predicate is None else repr(query.predicate),
        proven=sum(file.proven for file in files),
        pruned=tuple(pruning.pruned),
        planning_bytes=pruning.bytes_by_reason(),
    )


def rows_left(reading: Reading) -> RowSelection:
    """The rows of the one file of a reading that its indexes cannot rule out."""
    reading.check()
    (share,) = reading.shares()
    kept = {
        part.selected.block.ordinal: part.selected.rows
        for part in reading.surveyed(share, lambda _: NO_COLUMNS)
    }
    return RowSelection().concat(
        *(
            kept.get(block.ordinal, RowSelection.none(block.num_rows))
            for block in share.file.reader.blocks
        )
    )


def _file_plan(reading: Reading, share: FileShare, piece_bytes: int) -> FilePlan:
    file = share.file
    leaves = list(reading.projection(file).leaves)
    with trace() as pruning:
        surveyed = list(reading.surveyed(share, reading.projection))
    if reading.query.predicate is not None:
        checked = [check.leaf for check in checks_of(reading.condition(file))]
        leaves = list({leaf.leaf_index: leaf for leaf in (*leaves, *checked)}.values())
    not_kept = len(share.selected.kept) - len(surveyed)
    return FilePlan(
        blocks=[
            block_plan(file.name, part.selected, file.pages_of(part.selected, leaves, piece_bytes))
            for part in surveyed
        ],
        dropped=share.selected.dropped | _dropped_by(pruning.pruned, not_kept),
        rows=file.num_rows,
        bytes=sum(
            int(chunk.sizes.sum())
            for block in file.reader.blocks
            for chunk in file.chunks(block, leaves)
        ),
        proven=sum(part.proven_count for part in surveyed),
    )


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
