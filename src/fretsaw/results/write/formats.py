"""The formats that results are written in: how each is called, and how it is streamed.

Record batches come in and go into a sink, gathered into pieces that suit the format. What a format
cannot hold is refused before anything is written.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from fretsaw.errors import NotWritableError
from fretsaw.results.write.json_lines import lines
from fretsaw.results.write.options import GZIPPED, WriteOptions, leaf_paths
from fretsaw.results.write.places import Pathlike
from fretsaw.results.write.text import csv_table, require_text
from fretsaw.results.write.types import (
    cast,
    empty_table,
    orc_schema,
    repeat_nulls,
    without_dictionaries,
)

Batches: TypeAlias = Iterator[pa.RecordBatch]

GROUP_ROWS, GROUP_BYTES = 1 << 20, 128 << 20
"""What a Parquet row group holds, roughly: rows, or bytes in memory."""
PIECE_ROWS, PIECE_BYTES = 64 << 10, 16 << 20
"""What is handed to the other formats in one go."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a format is called, known by its suffix, and written."""

    title: str
    suffixes: tuple[str, ...]
    write: Callable[[Batches, pa.Schema, pa.NativeFile, WriteOptions], None]
    instead: str
    """Formats that hold more types."""
    is_text: bool = False
    """Whether it may be compressed as a whole."""


def format_of(path: Pathlike | BinaryIO, format: str | None = None) -> str:
    """The format that is asked for, or that the path's suffix stands for."""
    known = ", ".join(map(repr, FORMATS))
    is_path = isinstance(path, str | os.PathLike)
    if not is_path and not callable(getattr(path, "write", None)):
        raise TypeError(
            f"a result is written to a path or a binary file object, not to a {type(path).__name__}"
        )
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {known}, not {format!r}")
        return format
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"a file object has no suffix that says a format; say format= {known}")
    name = os.fspath(path).lower()
    suffix = os.path.splitext(name.removesuffix(GZIPPED))[1]
    for known_format, how in FORMATS.items():
        if suffix in how.suffixes and (how.is_text or not name.endswith(GZIPPED)):
            return known_format
    raise ValueError(f"{os.fspath(path)}: no format is known by this name; say format= {known}")


def require_types(schema: pa.Schema, place: str, format: str) -> None:
    """Refuse what a format cannot hold: its writer is tried without any rows."""
    if not schema.names:
        raise NotWritableError(f"{place}: the result has no columns; select at least one")
    if format == "json" and len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise NotWritableError(f"{place}: several columns are called {twice!r}; select one of them")
    if _takes(schema, format):
        return
    for field in schema:
        if not _takes(pa.schema([field]), format):
            raise NotWritableError(
                f"{place}: {FORMATS[format].title} has no type for column {field.name!r}, which "
                f"is {field.type}; leave it out with select(), or write {FORMATS[format].instead}"
            )


def _takes(schema: pa.Schema, format: str) -> bool:
    try:
        FORMATS[format].write(iter(()), schema, pa.BufferOutputStream(), WriteOptions())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def _write_parquet(
    batches: Batches, schema: pa.Schema, sink: pa.NativeFile, options: WriteOptions
) -> None:
    rows = options.row_group_size
    # Filters are sized for as many distinct values as a row group may have.
    likely = {"ndv": rows or GROUP_ROWS}
    stored = leaf_paths(schema)
    blooms = {stored[name][1]: likely for name in options.bloom_filters} or None
    codec = options.codec("snappy")
    with pa.parquet.ParquetWriter(
        sink, schema, write_page_index=True, compression=codec, bloom_filter_options=blooms
    ) as writer:
        if rows is None:
            groups = _gathered(batches, schema, GROUP_ROWS, GROUP_BYTES)
        else:
            groups = _groups(batches, schema, rows)
        for table in groups:
            writer.write_table(table, row_group_size=table.num_rows)


def _write_orc(
    batches: Batches, schema: pa.Schema, sink: pa.NativeFile, options: WriteOptions
) -> None:
    stored = orc_schema(schema)
    codec = options.codec("snappy")
    numbers = leaf_paths(stored)
    blooms = [numbers[name][0] for name in options.bloom_filters] or None
    compression = "uncompressed" if codec == "none" else codec
    with pa.orc.ORCWriter(sink, compression=compression, bloom_filter_columns=blooms) as writer:
        writer.write(cast(empty_table(schema), stored))
        for table in _gathered(batches, schema):
            writer.write(repeat_nulls(cast(table, stored)))


def _write_arrow(
    batches: Batches, schema: pa.Schema, sink: pa.NativeFile, options: WriteOptions
) -> None:
    # A file has one dictionary for each column, and a stream does not know it beforehand.
    stored = without_dictionaries(schema)
    codec = options.codec("none")
    how = pa.ipc.IpcWriteOptions(compression=None if codec == "none" else codec)
    with pa.ipc.new_file(sink, stored, options=how) as writer:
        for table in _gathered(batches, schema):
            writer.write_table(cast(table, stored).combine_chunks())


def _write_csv(
    batches: Batches, schema: pa.Schema, sink: pa.NativeFile, options: WriteOptions
) -> None:
    stored = csv_table(empty_table(schema)).schema
    with _packed(sink, options) as packed, pa.csv.CSVWriter(packed, stored) as writer:
        for table in _gathered(batches, schema):
            require_text(table)
            writer.write_table(csv_table(table))


def _write_json(
    batches: Batches, schema: pa.Schema, sink: pa.NativeFile, options: WriteOptions
) -> None:
    lines(pa.RecordBatch.from_pylist([], schema))
    with _packed(sink, options) as packed:
        for table in _gathered(batches, schema):
            require_text(table)
            rows = max(1, PIECE_BYTES * table.num_rows // max(table.nbytes, 1))
            for batch in table.to_batches(max_chunksize=rows):
                packed.write(lines(batch))


@contextmanager
def _packed(sink: pa.NativeFile, options: WriteOptions) -> Iterator[pa.NativeFile]:
    """The sink, or what compresses all that goes into it."""
    if options.codec() != "gzip":
        yield sink
        return
    with pa.CompressedOutputStream(sink, "gzip") as packed:
        yield packed


def _groups(batches: Batches, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Tables of exactly so many rows, but for the last one."""
    rest = empty_table(schema)
    for table in _gathered(batches, schema, rows, GROUP_BYTES):
        rest = pa.concat_tables([rest, table])
        whole = rest.num_rows // rows * rows
        yield from (rest.slice(begin, rows) for begin in range(0, whole, rows))
        rest = rest.slice(whole)
    if rest.num_rows:
        yield rest


def _gathered(
    batches: Batches, schema: pa.Schema, rows: int = PIECE_ROWS, size: int = PIECE_BYTES
) -> Iterator[pa.Table]:
    """Tables of at least so many rows or bytes, but for the last one."""
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_rows >= rows or held_bytes >= size:
            yield pa.Table.from_batches(held, schema)
            held, held_rows, held_bytes = [], 0, 0
    if held_rows:
        yield pa.Table.from_batches(held, schema)


FORMATS = {
    "parquet": Format("Parquet", (".parquet",), _write_parquet, instead="Arrow"),
    "orc": Format("ORC", (".orc",), _write_orc, instead="Parquet or Arrow"),
    "csv": Format("CSV", (".csv",), _write_csv, "Parquet or JSON", is_text=True),
    "json": Format("JSON", (".json", ".jsonl", ".ndjson"), _write_json, "Arrow", is_text=True),
    "arrow": Format("Arrow IPC", (".arrow", ".feather", ".ipc"), _write_arrow, instead="Parquet"),
}
