"""What a file says about itself, as Arrow tables: its chunks, its pages, its dictionaries.

Metadata alone are read: footers, indexes, page headers where there are none, of a dictionary its
page. What nobody says, or what cannot be believed, is null.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from fretsaw.engine.files import OpenFile
from fretsaw.engine.paths import find_column
from fretsaw.formats.interface import ChunkFacts, ChunkPart, PageFacts
from fretsaw.model.blocks import Block, Bounds
from fretsaw.model.schema import Path, SchemaNode, spelled, value_type
from fretsaw.results.bound_values import bound_texts, bound_values
from fretsaw.storage import requests

_MOST_BLOCKS = 1000
"""As many are looked into at a time."""
_INT, _TEXT = pa.int64(), pa.string()
_CHUNKS = {
    "path": _TEXT,
    "block": _INT,
    "rows": _INT,
    "physical_type": _TEXT,
    "logical_type": _TEXT,
    "codec": _TEXT,
    "encodings": pa.list_(_TEXT),
    "offset": _INT,
    "compressed_size": _INT,
    "uncompressed_size": _INT,
    "values": _INT,
    "nulls": _INT,
    "nans": _INT,
    "min": None,
    "max": None,
    "is_exact": pa.bool_(),
    "has_dictionary": pa.bool_(),
    "dictionary_size": _INT,
    "has_page_index": pa.bool_(),
    "page_index_size": _INT,
    "has_bloom_filter": pa.bool_(),
    "bloom_filter_size": _INT,
}
_PAGES = {
    "path": _TEXT,
    "block": _INT,
    "page": _INT,
    "first_row": _INT,
    "rows": _INT,
    "offset": _INT,
    "size": _INT,
    "encoding": _TEXT,
    "min": None,
    "max": None,
    "nulls": _INT,
}


def chunk_table(file: OpenFile, columns: Sequence[Path]) -> pa.Table:
    """A row for each leaf of each block; bounds in their own type if one leaf alone is named."""
    leaves, is_typed = _leaves(file, columns)
    blocks = file.reader.blocks
    groups = [blocks[begin : begin + _MOST_BLOCKS] for begin in range(0, len(blocks), _MOST_BLOCKS)]
    found = [_empty(_CHUNKS, leaves, is_typed)]
    for group in groups if leaves else ():
        opened = file.open_blocks(group)
        table = _Rows(_CHUNKS, is_typed)
        for leaf in leaves:
            facts, bounds = requests.run(file.reader.describe_chunks(opened, leaf), file.fetch)
            table.add(_of_chunks(leaf, group, facts), leaf, bounds)
            table.columns["is_exact"] += _if_known(bounds, bounds.exact.tolist())
        # As they lie in the file: one block after the other.
        order = np.arange(len(leaves) * len(group)).reshape(len(leaves), len(group)).T.ravel()
        found.append(table.finished().take(order))
    return pa.concat_tables(found).combine_chunks()


def page_table(file: OpenFile, columns: Sequence[Path]) -> pa.Table:
    """A row for each page; bounds in their own type if one leaf alone is named."""
    leaves, is_typed = _leaves(file, columns)
    found = [_empty(_PAGES, leaves, is_typed)]
    for block in file.reader.blocks:
        if not block.num_rows or not leaves:
            continue
        (opened,) = file.open_blocks([block])
        steps = [opened.describe_pages(leaf) for leaf in leaves]
        table = _Rows(_PAGES, is_typed)
        described = requests.run(requests.together(steps), file.fetch)
        for leaf, facts in zip(leaves, described, strict=True):
            table.add(_of_pages(leaf, block, facts), leaf, facts.bounds)
        found.append(table.finished())
    return pa.concat_tables(found).combine_chunks()


def dictionary_table(file: OpenFile, column: Path, block: int) -> pa.Table:
    """The values of a dictionary, in the order in which pages refer to them."""
    _, leaf = find_column(file.reader, file.name, column)
    blocks, name = file.reader.blocks, spelled(column)
    if not leaf.is_leaf:
        below = ", ".join(repr(".".join(one.path)) for one in leaf.leaves())
        raise ValueError(
            f"{file.name}: {name!r} is no leaf, and only leaves have dictionaries: {below}"
        )
    if not 0 <= block < len(blocks):
        raise ValueError(
            f"{file.name}: has no block {block}; its {len(blocks)} blocks count from 0"
        )
    (opened,) = file.open_blocks([blocks[block]])
    values = requests.run(opened.entries(leaf), file.fetch) if blocks[block].num_rows else None
    if values is None:
        raise ValueError(
            f"{file.name}: column {name!r} has no dictionary in block {block}; "
            "chunks() says which have one"
        )
    return pa.table({"value": values})


class _Rows:
    """Rows of a table, leaf by leaf."""

    def __init__(self, schema: Mapping[str, pa.DataType | None], is_typed: bool) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in schema}
        self._schema = schema
        self._shown = bound_values if is_typed else bound_texts

    def add(self, facts: Mapping[str, Sequence[Any]], leaf: SchemaNode, bounds: Bounds) -> None:
        """The rows of one leaf."""
        for name, values in facts.items():
            self.columns[name] += values
        self.columns["min"].append(self._shown(bounds.lower, bounds.known, leaf))
        self.columns["max"].append(self._shown(bounds.upper, bounds.known, leaf))

    def finished(self) -> pa.Table:
        """All of them."""
        arrays = {
            name: pa.chunked_array(values) if kind is None else pa.array(values, kind)
            for (name, kind), values in zip(
                self._schema.items(), self.columns.values(), strict=True
            )
        }
        return pa.table(arrays)


def _of_chunks(
    leaf: SchemaNode, blocks: Sequence[Block], facts: Sequence[ChunkFacts]
) -> dict[str, Sequence[Any]]:
    count = len(blocks)
    told = ("codec", "encodings", "offset", "compressed_size", "uncompressed_size")
    counts = ("values", "nulls", "nans")
    found: dict[str, Sequence[Any]] = {
        "path": [".".join(leaf.path)] * count,
        "block": [block.ordinal for block in blocks],
        "rows": [block.num_rows for block in blocks],
        "physical_type": [leaf.physical_type] * count,
        "logical_type": [leaf.logical_type] * count,
        **{name: [getattr(fact, name) for fact in facts] for name in (*told, *counts)},
    }
    for part in get_args(ChunkPart):
        found[f"has_{part}"] = [None if part in f.untold else part in f.parts for f in facts]
        found[f"{part}_size"] = [fact.parts.get(part) for fact in facts]
    return found


def _of_pages(leaf: SchemaNode, block: Block, facts: PageFacts) -> dict[str, Sequence[Any]]:
    count = len(facts.sizes)
    return {
        "path": [".".join(leaf.path)] * count,
        "block": [block.ordinal] * count,
        "page": range(count),
        "first_row": [None if row is None else block.first_row + row for row in facts.first_rows],
        "rows": facts.rows,
        "offset": facts.offsets,
        "size": facts.sizes,
        "encoding": facts.encodings,
        "nulls": facts.nulls,
    }


def _if_known(bounds: Bounds, values: Sequence[bool]) -> list[bool | None]:
    known = bounds.known.tolist()
    return [value if is_known else None for value, is_known in zip(values, known, strict=True)]


def _leaves(file: OpenFile, columns: Sequence[Path]) -> tuple[list[SchemaNode], bool]:
    """The leaves of some columns, or of all; and whether one leaf alone is named."""
    if not columns:
        _, nodes = file.reader.describe(range(len(file.reader.field_names)))
    else:
        nodes = tuple(find_column(file.reader, file.name, path)[1] for path in columns)
    leaves = {leaf.leaf_index: leaf for node in nodes for leaf in node.leaves()}
    return list(leaves.values()), len(columns) == 1 and nodes[0].is_leaf


def _empty(
    schema: Mapping[str, pa.DataType | None], leaves: Sequence[SchemaNode], is_typed: bool
) -> pa.Table:
    bound = value_type(leaves[0]) if is_typed else pa.string()
    return pa.schema([(name, kind or bound) for name, kind in schema.items()]).empty_table()
