"""."""

from collections.abc import Iterator, Sequence

from fretsaw.model.blocks import Block


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
