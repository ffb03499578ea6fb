"""Where rows go: to stdout as they come, or to a file or directory, complete or absent."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv

from fretsaw.results.write.files import write_file
from fretsaw.results.write.formats import format_of, require_types
from fretsaw.results.write.json_lines import lines
from fretsaw.results.write.partitions import require_no_input_in
from fretsaw.results.write.places import destination, part_of, staged_directory
from fretsaw.results.write.text import csv_table, require_text
from fretsaw.storage.listing import Entry
from fretsaw.storage.location import Access

PART_BYTES = 256 << 20
"""What one file of a directory holds, roughly, as it is in memory."""


def write_stdout(batches: Iterator[pa.RecordBatch], schema: pa.Schema, format: str) -> None:
    """Write rows to stdout, each batch as soon as it is there."""
    out = sys.stdout.buffer
    if format == "arrow":
        _write_arrow(batches, schema, out)
        return
    require_types(schema, "stdout", format)
    if format == "csv":
        out.write(_csv_text(schema.empty_table(), header=True))
    for batch in batches:
        table = pa.Table.from_batches([batch])
        require_text(table)
        out.write(lines(batch) if format == "json" else _csv_text(table, header=False))
        out.flush()
    out.flush()


@dataclass(frozen=True, slots=True)
class Target:
    """A file or a directory to write, and how."""

    path: str
    format: str
    is_file: bool
    overwrite: bool = False

    @classmethod
    def at(cls, path: str, format: str | None = None, overwrite: bool = False) -> "Target":
        """What a path stands for: a file, if its suffix is that of a format."""
        try:
            suffix = format_of(path)
        except ValueError:
            suffix = None
        return cls(path, format or suffix or "parquet", suffix is not None, overwrite)


def write_target(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    inputs: Sequence[Entry],
    target: Target,
    access: Access | None = None,
) -> None:
    """Write rows to a file or into a directory; without any, a file says what the columns are."""
    place = destination(target.path, inputs, access)
    if target.is_file:
        write_file(batches, schema, place, target.format, overwrite=target.overwrite)
        return
    require_no_input_in(place, inputs)
    with staged_directory(place, target.overwrite) as folder:
        first, number = next(batches, None), 0
        while first is not None or number == 0:
            part = part_of(folder, f"part-{number:05}.{target.format}")
            write_file(_part(first, batches), schema, part, target.format)
            first, number = next(batches, None), number + 1


def _part(
    first: pa.RecordBatch | None, others: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches of one file: the first, and as many others as it can hold."""
    held, batch = 0, first
    while batch is not None:
        held += batch.nbytes
        yield batch
        batch = next(others, None) if held < PART_BYTES else None


def _csv_text(table: pa.Table, header: bool) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(csv_table(table), sink, pa.csv.WriteOptions(include_header=header))
    return sink.getvalue()


def _write_arrow(batches: Iterator[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> None:
    with pa.ipc.new_stream(pa.PythonFile(out, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            out.flush()
