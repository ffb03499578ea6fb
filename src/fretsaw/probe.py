"""Whether blocks can hold the values that are looked for: Bloom filters, then dictionaries.

Both are read only for blocks that statistics leave open, and only for checks of single values.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from fretsaw import formats
from fretsaw.condition import Check, Condition, checks_of, simplified
from fretsaw.errors import FileFormatError
from fretsaw.files import OpenFile
from fretsaw.formats import Steps
from fretsaw.layout import Block
from fretsaw.matching import matches
from fretsaw.plan import BlockRows
from fretsaw.schema import SchemaNode
from fretsaw.trace import Pruned, is_tracing, record_pruned
from fretsaw.values import Key, ValueSet

Open: TypeAlias = tuple[BlockRows, Condition]
"""A block, and what is left to be found out about its rows."""

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
            for place, (_, condition) in enumerate(left)
            for check in checks_of(condition)
            if _values(check)
        ]
        if not asked:
            break
        steps = [answer(file, left[place][0].block, check) for place, check in asked]
        answers = formats.run_together(steps, file.fetch)
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


def _by_bloom_filter(file: OpenFile, block: Block, check: Check) -> Steps[bool | None]:
    excluded = yield from file.reader.bloom_excludes(block, check.leaf, _values(check))
    return False if excluded else None


def _by_dictionary(file: OpenFile, block: Block, check: Check) -> Steps[bool | None]:
    entries = yield from file.reader.dictionary(block, check.leaf)
    if entries is None:
        return None
    found = matches(replace(check, above=(), fold=None), entries)
    if not found.any():
        return False
    never_null = file.reader.block_bounds([block], check.leaf).null_counts[0] == 0
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
    for place, (selected, condition) in enumerate(group):
        rest = simplified(condition, lambda check, place=place: known.get((place, check)))  # type: ignore[misc]
        if rest is False:
            dropped.append(selected.block)
        else:
            left.append((selected, rest))
    if is_tracing() and any(answer is not None for answer in answers):
        saved = bytes_of(file, dropped, [*leaves(), *(check.leaf for _, check in asked)])
        record_pruned(Pruned(file.name, "block", source, len(left), len(dropped), saved))
    return left
