"""Files of one shape or another: very wide, or grids to see how cost grows."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.data.store import SEED, Sample, Scale, keep, keep_folder, tokens


def wide(scale: Scale) -> Sample:
    """Very many columns of floats and few rows: what a footer costs."""
    names = [f"f{number:05d}" for number in range(scale.wide_columns)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    groups, group = 2, 1_000
    blocks = _wide_blocks(schema, groups, group)
    return keep(f"wide-{scale.wide_columns}", groups * group, schema, blocks, "snappy")


def grid(groups: int, group: int, page: int, columns: int) -> Sample:
    """Row groups of `group` rows, pages of `page` rows: how cost grows with the shape of a file.

    Nothing is dictionary-encoded, so that every page costs the same.
    """
    return keep(
        f"grid-{groups}-{group}-{page}-{columns}",
        groups * group,
        _grid_schema(columns),
        (_grid_block(number * group, group, columns) for number in range(groups)),
        "snappy",
        use_dictionary=False,
        max_rows_per_page=page,
        write_batch_size=min(page, 1_024),
    )


def grids(files: int, rows: int, columns: int) -> Sample:
    """Many files of a `grid`, one row group each."""
    blocks = (_grid_block(number * rows, rows, columns) for number in range(files))
    named = ((f"part-{number:05d}.parquet", block) for number, block in enumerate(blocks))
    name = f"grids-{files}-{rows}-{columns}"
    return keep_folder(name, files * rows, named, use_dictionary=False)


def _grid_schema(columns: int) -> pa.Schema:
    """A sorted `key`, a `chance` below a million, then floats, integers and strings in turn."""
    kinds = (pa.float64(), pa.int64(), pa.string())
    others = [(f"c{number:05d}", kinds[number % len(kinds)]) for number in range(columns - 2)]
    return pa.schema([("key", pa.int64()), ("chance", pa.int32()), *others])


def _grid_block(first: int, count: int, columns: int) -> pa.Table:
    """The rows from `first` on; the same whatever the other blocks are."""
    rng = np.random.default_rng([SEED, first])
    schema = _grid_schema(columns)
    row = np.arange(first, first + count, dtype=np.uint64)
    arrays = [pa.array(row.astype(np.int64)), pa.array(rng.integers(0, 10**6, count, np.int32))]
    for kind in schema.types[len(arrays) :]:
        numbers = rng.integers(0, 2**62, count)
        if pa.types.is_string(kind):
            arrays.append(tokens(numbers.astype(np.uint64)))
        else:
            arrays.append(pa.array(numbers / 2**62 if pa.types.is_floating(kind) else numbers))
    return pa.Table.from_arrays(arrays, schema=schema)


def _wide_blocks(schema: pa.Schema, groups: int, rows: int) -> Iterator[pa.Table]:
    for number in range(groups):
        rng = np.random.default_rng([SEED, number])
        columns = [pa.array(rng.random(rows)) for _ in schema]
        yield pa.Table.from_arrays(columns, schema=schema)
