"""Where samples are kept, how large they are, and what their makers share."""

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20240229
VERSION = 2  # part of every file name: raise it when a maker changes, old files are then unused


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the data of a run is."""

    trips_rows: int
    trips_group: int
    wide_columns: int
    events_rows: int
    events_group: int
    lake_files: int
    lake_file_rows: int


FULL = Scale(
    trips_rows=10_000_000,
    trips_group=1_000_000,
    wide_columns=10_000,
    events_rows=2_000_000,
    events_group=200_000,
    lake_files=200,
    lake_file_rows=50_000,
)
# Row groups of 100,000 would be dictionary-encoded to their end, which full ones are not.
QUICK = Scale(
    trips_rows=1_000_000,
    trips_group=200_000,
    wide_columns=10_000,
    events_rows=400_000,
    events_group=200_000,
    lake_files=200,
    lake_file_rows=5_000,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A data file or a folder of them that is there, and how many rows it holds."""

    path: Path
    rows: int

    @property
    def files(self) -> list[Path]:
        """The file, or those in the folder in the order of their paths."""
        return sorted(self.path.rglob("*.parquet")) if self.path.is_dir() else [self.path]


def keep(
    name: str,
    rows: int,
    schema: pa.Schema,
    blocks: Iterable[pa.Table],
    codec: str,
    **options: Any,
) -> Sample:
    """The file called `name`, written now if it is not there: a row group for each block."""

    def write(path: Path) -> None:
        _write(path, schema, blocks, codec, **options)

    return Sample(made_once(f"{name}-v{VERSION}.parquet", write), rows)


def keep_folder(
    name: str, rows: int, files: Iterable[tuple[str, pa.Table]], **options: Any
) -> Sample:
    """The folder called `name`, written now if it is not there: a row group for each file."""

    def write(folder: Path) -> None:
        for place, table in files:
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, table.schema, [table], "snappy", **options)

    return Sample(made_once(f"{name}-v{VERSION}", write), rows)


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The path of what `make` makes, which is there as a whole or not at all."""
    default = Path(__file__).parents[1] / ".data"
    folder = Path(os.environ.get("FRETSAW_BENCH_DATA", default))
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{name}.{os.getpid()}.tmp"
        try:
            make(unfinished)
            unfinished.replace(path)
        finally:
            if unfinished.is_dir():
                shutil.rmtree(unfinished)
            else:
                unfinished.unlink(missing_ok=True)
    return path


def _write(
    path: Path, schema: pa.Schema, blocks: Iterable[pa.Table], codec: str, **options: Any
) -> None:
    with pq.ParquetWriter(
        path,
        schema,
        compression=codec,
        # zlib's own default: Arrow's 9 takes four times as long to write, and no other
        # time to read.
        compression_level=6 if codec == "gzip" else None,
        **{"write_page_index": True, **options},
    ) as writer:
        for block in blocks:
            writer.write_table(block, row_group_size=block.num_rows)


def tokens(row: np.ndarray) -> pa.Array:
    """16 hexadecimal digits for each row, unique because splitmix64's mixer is a bijection."""
    mixed = row + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed = mixed ^ (mixed >> np.uint64(31))
    pairs = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], np.uint8)
    digits = pairs[mixed.view(np.uint8)]
    offsets = np.arange(len(row) + 1, dtype=np.int32) * 16
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.string(), len(row), buffers)
