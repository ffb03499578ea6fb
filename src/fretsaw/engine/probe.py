"""Whether blocks can hold the values that are looked for: Bloom filters, then dictionaries.

Both are read only for blocks that statistics leave open, and only for checks of single values. A
filter may be that of a whole block, or there may be one for each page.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fretsaw.engine.files import OpenFile
from fretsaw.engine.plan import BlockRows
from fretsaw.errors import FileFormatError
from fretsaw.model.blocks import Block
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.model.trace import Pruned, is_tracing, record_pruned
from fretsaw.predicates.condition import Check, Condition, checks_of, simplified
from fretsaw.predicates.evaluate import matches
from fretsaw.predicates.value_set import Key, ValueSet
from fretsaw.storage import requests
from fretsaw.storage.requests import Steps


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """A block, and what is left to be found out about its rows."""

    selected: BlockRows
    condition: Condition
    possible: dict[Check, RowSelection] = field(default_factory=dict)
    """The rows that may hold a value of a check, where a filter rules some out."""


MOST_VALUES = 1000
"""No more values than this are looked up one by one."""


def probe(
    file: OpenFile, group: Sequence[Open], leaves: Callable[[], Sequence[SchemaNode]]
) -> list[Open]:
    """Some blocks, as far as they can hold a value that is looked for."""
    left = list(group)
    for source, answer in (("Bloom filter", _by_bloom_filter), ("dictionary", _by_dictionary)):
        asked = [
            (place, check)
            for place, block in enumerate(left)
            for check in checks_of(block.condition)
            if _values(check)
        ]
        if not asked:
            break
        steps = [answer(file, left[place], check) for place, check in asked]
        answers = requests.run_together(steps, file.fetch)
        left = _without(left, asked, answers, source, file, leaves)
    return left


def bytes_of(file: OpenFile, blocks: Sequence[Block], leaves: Sequence[SchemaNode]) -> int:
    """Bytes of the chunks of these leaves, each counted once."""
    total = 0
    for leaf in {leaf.leaf_index: leaf for leaf in leaves}.values():
        for block in blocks:
            with contextlib.suppress(FileFormatError):  # nobody reads them
                total += int(file.reader.chunk(block, leaf).sizes.sum())
    return total


def _values(check: Check) -> Sequence[Key]:
    """The single values that a check is for, which a filter or dictionary may lack."""
    if not isinstance(check.values, ValueSet) or check.fold == "all":
        return ()
    return check.values.keys(MOST_VALUES)


def _by_bloom_filter(file: OpenFile, left: Open, check: Check) -> Steps[bool | None]:
    block = left.selected.block
    rows = yield from file.reader.bloom_rows(block, check.leaf, _values(check))
    if rows is None:
        return None
    left.possible[check] = rows
    return None if (rows & left.selected.rows).selects_any() else False


def _by_dictionary(file: OpenFile, left: Open, check: Check) -> Steps[bool | None]:
    block = left.selected.block
    entries = yield from file.reader.dictionary(block, check.leaf)
    if entries is None:
        return None
    found = matches(replace(check, above=(), fold=None), entries)
    if not found.any():
        return False
    bounds = yield from file.reader.block_bounds([block], check.leaf)
    never_null = bounds.null_counts[0] == 0
    return True if check.fold is None and never_null and found.all() else None


def _without(
    group: Sequence[Open],
    asked: Sequence[tuple[int, Check]],
    answers: Sequence[bool | None],
    source: str,
    file: OpenFile,
    leaves: Callable[[], Sequence[SchemaNode]],
) -> list[Open]:
    """What the answers leave of the blocks and of their conditions."""
    known = dict(zip(asked, answers, strict=True))
    left: list[Open] = []
    dropped = []
    for place, block in enumerate(group):
        rest = simplified(block.condition, lambda check, at=place: known.get((at, check)))  # type: ignore[misc]
        if rest is False:
            dropped.append(block.selected.block)
        else:
            left.append(replace(block, condition=rest))
    if is_tracing() and any(answer is not None for answer in answers):
        saved = bytes_of(file, dropped, [*leaves(), *(check.leaf for _, check in asked)])
        record_pruned(Pruned(file.name, "block", source, len(left), len(dropped), saved))
    return left
