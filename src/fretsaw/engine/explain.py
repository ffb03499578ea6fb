"""What a scan would read, in numbers: what is read, what is not, and what decided it.

Made of the same plans that a run takes; files are opened and indexes read, never data pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fretsaw.engine.files import OpenFile
from fretsaw.engine.plan import BlockPlan, FilePlan
from fretsaw.engine.planner import Planner
from fretsaw.engine.pruning import MOST_BLOCKS
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.summary import Amount, BlockSummary, PartSummary, Plan
from fretsaw.engine.verdicts import Verdict
from fretsaw.model.blocks import PageIndex
from fretsaw.model.schema import SchemaNode
from fretsaw.model.trace import Pruned, record_pruned, trace
from fretsaw.predicates.condition import checks_of, leaves_of
from fretsaw.storage.source import source_name


@dataclass(frozen=True, slots=True)
class _FileSummary:
    """What is read of one file; `rows` and `bytes` are all that there are."""

    blocks: list[BlockSummary]
    dropped: dict[str, int]
    rows: int
    bytes: int
    proven: int
    pruned: list[Pruned]
    parts: dict[str, dict[tuple[str, str], tuple[int, int]]]
    """What each part of the condition ruled out, by source and level."""


def summarize(request: ScanRequest, piece_bytes: int) -> Plan:
    """What would be read, in pieces of about so many bytes, and what is left out by what."""
    query = request.query
    with trace() as reads:
        planner = Planner(request)
        planner.columns.check()
        files = [_of_file(planner, plan, piece_bytes) for plan in planner.file_plans()]
    dropped: dict[str, int] = {}
    for file in files:
        for source, count in file.dropped.items():
            dropped[source] = dropped.get(source, 0) + count
    blocks = tuple(block for file in files for block in file.blocks)
    passed_over = {source_name(entry.origin) for entry in planner.files.passed_over}
    names = (source_name(entry.origin) for entry in planner.listing.entries)
    folders = [verdict.told(planner.listing.name) for verdict in planner.verdicts]
    return Plan(
        files=tuple(name for name in names if name not in passed_over),
        files_opened=len(files),
        columns=tuple(planner.columns.schema.names),
        blocks=blocks,
        dropped=dropped,
        rows=Amount(sum(f.rows for f in files), sum(block.rows.kept for block in blocks)),
        bytes=Amount(sum(f.bytes for f in files), sum(block.bytes.kept for block in blocks)),
        window=str(query.window),
        predicate="" if query.predicate is None else repr(query.predicate),
        indexes=planner.believes_indexes,
        proven=sum(file.proven for file in files),
        pruned=(*folders, *(pruned for file in files for pruned in file.pruned)),
        parts=_parts(files),
        planning_bytes=reads.bytes_by_reason(),
    )


def _of_file(planner: Planner, plan: FilePlan, piece_bytes: int) -> _FileSummary:
    file, leaves = plan.file, planner.leaves_of(plan)
    verdicts = plan.verdicts()
    blocks: list[BlockSummary] = []
    proven = 0
    backward = planner.query.predicate is not None and planner.query.window.tail is not None
    for group, dropped_there in planner.block_plans(plan, few=False, backward=backward):
        verdicts += dropped_there
        for block in group:  # what it has read is let go of with the group
            pages = _pages(planner, plan, block, piece_bytes)
            blocks.append(_of_block(file.name, block, pages))
            proven += block.proven_count
    dropped = dict(plan.placement.dropped)
    for verdict in verdicts:
        if verdict.level == "block" and verdict.dropped:
            dropped[verdict.source] = dropped.get(verdict.source, 0) + verdict.dropped
    return _FileSummary(
        blocks=blocks,
        dropped=dropped,
        rows=file.num_rows,
        bytes=_all_bytes(file, leaves),
        proven=proven,
        pruned=_told(plan, verdicts, leaves),
        parts=_of_parts(plan, verdicts),
    )


def _of_parts(
    plan: FilePlan, verdicts: Sequence[Verdict]
) -> dict[str, dict[tuple[str, str], tuple[int, int]]]:
    """What each part of the condition of a file ruled out, by source and level."""
    parts: dict[str, dict[tuple[str, str], tuple[int, int]]]
    parts = {check.text: {} for check in checks_of(plan.condition)}
    for verdict in verdicts:
        for text, dropped, asked in verdict.parts:
            proofs = parts.setdefault(text, {})
            before = proofs.get((verdict.source, verdict.level), (0, 0))
            proofs[verdict.source, verdict.level] = (before[0] + dropped, before[1] + asked)
    return parts


def _parts(files: Sequence[_FileSummary]) -> tuple[PartSummary, ...]:
    """The parts of the condition of all files together."""
    totals: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for file in files:
        for text, proofs in file.parts.items():
            total = totals.setdefault(text, {})
            for key, (dropped, asked) in proofs.items():
                before = total.get(key, (0, 0))
                total[key] = (before[0] + dropped, before[1] + asked)
    return tuple(
        PartSummary(text, tuple((*key, *counts) for key, counts in proofs.items()))
        for text, proofs in totals.items()
        # What a test says of its column may be one with what others say of it.
        if proofs or not any(text in other for other in totals if other != text)
    )


def _all_bytes(file: OpenFile, leaves: Sequence[SchemaNode]) -> int:
    """Bytes of these leaves in all blocks of a file."""
    total, blocks = 0, [block for block in file.reader.blocks if block.num_rows]
    for begin in range(0, len(blocks), MOST_BLOCKS):
        for reader in file.open_blocks(blocks[begin : begin + MOST_BLOCKS]):
            total += sum(int(reader.whole_chunk(leaf).sizes.sum()) for leaf in leaves)
    return total


def _pages(
    planner: Planner, plan: FilePlan, block: BlockPlan, piece_bytes: int
) -> Sequence[PageIndex]:
    """The pages of a block that hold its rows: of the result, and of what is left to be checked."""
    checked = leaves_of(block.condition)
    leaves = [*planner.columns.of(plan.file).leaves, *checked]
    distinct = list({leaf.leaf_index: leaf for leaf in leaves}.values())
    (pages,) = plan.file.pages_of([(block.reader, block.rows)], distinct, piece_bytes)
    return pages


def _of_block(file: str, plan: BlockPlan, pages: Sequence[PageIndex]) -> BlockSummary:
    """What is read of a block, given the pages of the leaves that are read."""
    rows = plan.rows
    hits = [index.overlapping(rows.starts, rows.ends) for index in pages]
    kept = list(zip(pages, hits, strict=True))
    return BlockSummary(
        file=file,
        ordinal=plan.block.ordinal,
        rows=Amount(plan.block.num_rows, rows.selected_count),
        pages=Amount(sum(map(len, hits)), sum(int(hit.sum()) for hit in hits)),
        bytes=Amount(
            sum(index.dictionary_size + int(index.sizes.sum()) for index in pages),
            sum(index.dictionary_size + int(index.sizes[hit].sum()) for index, hit in kept),
        ),
    )


def _told(
    plan: FilePlan, verdicts: Sequence[Verdict], leaves: Sequence[SchemaNode]
) -> list[Pruned]:
    """What was dropped of a file, which whoever traces learns too."""
    if plan.condition is False:
        return []
    pruned = [verdict.told(plan.file.name, plan.file, leaves) for verdict in verdicts]
    for record in pruned:
        record_pruned(record)
    return pruned
