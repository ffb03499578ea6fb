"""Parts of a scan: byte ranges of its files, to be read apart from each other, elsewhere or later.

`splits` are cut by the sizes of blocks alone. `parts_of` plans first: its parts are sized by what
survives pruning, and carry the plans of their blocks, so that nobody prunes these again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fretsaw.engine.plan import BlockPlan
from fretsaw.engine.planner import Planner
from fretsaw.engine.request import PlannedBlock, ScanRequest
from fretsaw.engine.verdicts import tell
from fretsaw.model.block_predicates import byte_range
from fretsaw.model.blocks import Block
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.storage.listing import Entry


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Some blocks of one file, and what is read of them at most."""

    entry: Entry
    blocks: tuple[PlannedBlock, ...]
    bytes: int
    """Roughly, of the pages that may hold a match."""
    rows: int
    """How many may match."""
    proven: int
    """Of these, how many surely do."""


def parts_of(request: ScanRequest, target_bytes: int) -> Iterator[ScanPart]:
    """The files cut between blocks into parts of about so many bytes that survive pruning."""
    planner = Planner(request)
    for plan in planner.file_plans():
        told = partial(planner.leaves_of, plan)
        leaves = told()
        tell(plan.file, plan.verdicts(), told)
        blocks: list[Block] = []
        planned: list[PlannedBlock] = []
        sizes: list[int] = []
        for group, verdicts in planner.block_plans(plan, few=False, backward=False):
            tell(plan.file, verdicts, told)
            for block in group:  # what it has read is let go of with the group
                blocks.append(block.block)
                planned.append(PlannedBlock(block.block.ordinal, block.rows, block.proven_rows))
                sizes.append(_bytes_left(block, leaves))
        for start, end in byte_ranges(blocks, sizes, target_bytes):
            inside = byte_range(start, end)
            places = [place for place, block in enumerate(blocks) if inside.keeps(block)]
            kept = [planned[place] for place in places]
            yield ScanPart(
                plan.file.planned,
                tuple(kept),
                bytes=sum(sizes[place] for place in places),
                rows=sum(block.rows.selected_count for block in kept),
                proven=sum(block.certain.selected_count for block in kept),
            )


def splits_of(request: ScanRequest, target_bytes: int) -> Iterator[ScanRequest]:
    """Requests that partition one by byte range, each of about so many bytes; nothing is pruned."""
    planner = Planner(request)
    planner.columns.check()
    for file, first_row, placement in planner.placements():
        known = first_row if planner.knows_places else None
        listing = planner.listing.only(file.planned, known)
        part = request.of_files(listing, planner.columns.target)
        sizes = [block.compressed_size for block in placement.blocks]
        for start, end in byte_ranges(placement.blocks, sizes, target_bytes):
            query = part.query.with_blocks(byte_range(start, end))
            yield replace(part, query=query)


def _bytes_left(block: BlockPlan, leaves: Sequence[SchemaNode]) -> int:
    whole = sum(int(block.reader.whole_chunk(leaf).sizes.sum()) for leaf in leaves)
    return max(1, whole * block.rows.selected_count // block.block.num_rows)


def byte_ranges(
    blocks: Sequence[Block], sizes: Sequence[int], target: int
) -> Iterator[tuple[int, int]]:
    """Adjoining byte ranges that divide the blocks, about `target` of their `sizes` in each.

    Blocks that lie in another order than that of their rows stay in one range.
    """
    ordered = list(zip(blocks, sizes, strict=True))
    midpoints = [block.midpoint for block in blocks]
    if midpoints != sorted(midpoints):
        yield min(0, *midpoints), max(midpoints) + 1
        return
    start, size = 0, 0
    for position, (block, block_size) in enumerate(ordered):
        if size == 0:
            start = max(start, min(block.offset, block.midpoint))
        size += block_size
        if position + 1 == len(ordered):
            yield start, max(block.midpoint + 1, block.offset + block.compressed_size)
            return
        following, following_size = ordered[position + 1]
        # A cut is nearer to the target here than behind the next block, and divides the two.
        if size + following_size // 2 > target and following.midpoint > block.midpoint:
            end = following.offset if following.offset > block.midpoint else following.midpoint
            yield start, end
            start, size = end, 0


def rows_left(request: ScanRequest) -> RowSelection:
    """The rows of the one file of a request that its indexes cannot rule out."""
    planner = Planner(request)
    planner.columns.check()
    (plan,) = planner.file_plans()
    leaves = partial(planner.leaves_of, plan)
    tell(plan.file, plan.verdicts(), leaves)
    kept: dict[int, RowSelection] = {}
    for group, verdicts in plan.block_plans(few=False, backward=False):
        tell(plan.file, verdicts, leaves)
        kept |= {block.block.ordinal: block.rows for block in group}
    return RowSelection().concat(
        *(
            kept.get(block.ordinal, RowSelection.none(block.num_rows))
            for block in plan.file.reader.blocks
        )
    )
