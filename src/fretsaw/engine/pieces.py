"""How much is decoded at a time: the rows of a block cut into pieces that fit into memory."""

from collections.abc import Iterator, Sequence

import numpy as np

from fretsaw.model.blocks import Int64s, PageIndex
from fretsaw.model.runs import unique
from fretsaw.model.selection import RowSelection


def fits_whole(rows: RowSelection, chunks: Sequence[PageIndex], piece_bytes: int) -> bool:
    """Whether all rows of a block are wanted and fit into one piece: then no index is needed."""
    if rows.skipped_count:
        return False
    return sum(chunk.width for chunk in chunks) * rows.row_count <= 2 * piece_bytes


def decoded_bytes(
    rows: RowSelection, pages: Sequence[PageIndex], width: float | None = None
) -> float:
    """Memory that it takes, roughly: that of the rows, or of all pages of a leaf between them."""
    between = int(rows.ends[-1] - rows.starts[0])
    widths = [index.width for index in pages]
    return max((width or sum(widths)) * rows.selected_count, *(w * between for w in widths), 1)


def divide(
    rows: RowSelection, pages: Sequence[PageIndex], piece_bytes: int, width: float | None = None
) -> list[RowSelection]:
    """Divide the rows of a block into pieces of about so many bytes once they are decoded.

    The cuts are made where they cost least: a page on both sides of a cut is decoded twice. A row
    has the bytes of the pages' leaves, or `width` where others will be decoded too.
    """
    begin, end = int(rows.starts[0]), int(rows.ends[-1])
    target = max(1, int(piece_bytes * (end - begin) / decoded_bytes(rows, pages, width)))
    if end - begin <= 2 * target:
        return [rows]
    cuts, costs = _cheap_cuts(pages, begin, end, most=piece_bytes / 4)
    pieces = []
    while end - begin > 2 * target:
        far_enough = int(np.searchsorted(cuts, begin + target // 2, "right"))
        near = int(np.searchsorted(cuts, begin + target, "right"))
        if far_enough == len(cuts):
            break
        choice = far_enough
        if near > far_enough:
            cheapest = costs[far_enough:near][::-1].argmin()
            choice = near - 1 - int(cheapest)
        cut = int(cuts[choice])
        pieces.append(rows.between(begin, cut))
        begin = cut
    pieces.append(rows.between(begin, end))
    return [piece for piece in pieces if piece.selects_any()]


def ramp(
    rows: RowSelection, pages: Sequence[PageIndex], first: float, most: float, backward: bool
) -> Iterator[RowSelection]:
    """Divide the rows of a block where few of them may be enough: each piece twice the one before.

    The first has about `first` rows, none many more than `most`; cuts are made between pages.
    """
    begin, end = int(rows.starts[0]), int(rows.ends[-1])
    cuts = unique(np.concatenate([index.boundaries for index in pages]))
    cuts = cuts[(cuts > begin) & (cuts < end)]
    while begin < end:
        if backward:
            at = int(np.searchsorted(cuts, end - first, "right")) - 1
            cut = max(begin, int(cuts[at])) if at >= 0 else begin
            piece = rows.between(cut, end)
            end = cut
        else:
            at = int(np.searchsorted(cuts, begin + first, "left"))
            cut = int(cuts[at]) if at < len(cuts) else end
            piece = rows.between(begin, cut)
            begin = cut
        first = min(2 * first, max(first, most))
        if piece.selects_any():
            yield piece


def _cheap_cuts(
    pages: Sequence[PageIndex], begin: int, end: int, most: float
) -> tuple[Int64s, Int64s]:
    """Rows where a cut costs no more than `most`, and how many bytes are decoded twice there."""
    rows = unique(np.concatenate([index.boundaries for index in pages]))
    rows = rows[(rows > begin) & (rows < end)]
    costs = np.zeros(len(rows))
    for index in pages:
        page = np.searchsorted(index.boundaries, rows, "right") - 1
        inside = index.boundaries[page] != rows
        costs += inside * np.diff(index.boundaries, append=0)[page] * index.width
    cheap = costs <= most
    return rows[cheap], costs[cheap].astype(np.int64)
