"""Results as files: record batches streamed into a place or a file object, in a format."""

import os
from dataclasses import replace
from typing import BinaryIO, cast

import pyarrow as pa

from fretsaw.errors import NotWritableError
from fretsaw.results.write.formats import FORMATS, Batches, require_types
from fretsaw.results.write.options import GZIPPED, WriteOptions
from fretsaw.results.write.places import (
    Pathlike,
    Place,
    destination,
    name_of,
    object_name,
    require_absent,
    staged_file,
)

_PLAIN = WriteOptions()


def write_file(
    batches: Batches,
    schema: pa.Schema,
    path: Pathlike | Place,
    format: str,
    options: WriteOptions = _PLAIN,
    overwrite: bool = True,
) -> int:
    """Write a file that is complete or absent; how many rows it has."""
    place = destination(path)
    name = name_of(place)
    if name.endswith("/") or (isinstance(place, str) and os.path.isdir(place)):
        raise NotWritableError(f"{name}: is a directory; name a file in it")
    if isinstance(place, str) and os.path.exists(place) and not os.path.isfile(place):
        raise NotWritableError(f"{name}: is a pipe or device, not a file")
    if not overwrite:
        require_absent(place)
    if name.lower().endswith(GZIPPED) and options.compression is None:
        options = replace(options, compression="gzip")
    _require(schema, name, format, options)
    counted = _Counted(batches)
    with staged_file(place) as staging, pa.OSFile(staging, "wb") as sink:
        _write(counted, schema, sink, name, format, options)
    return counted.rows


def write_object(
    batches: Batches,
    schema: pa.Schema,
    target: BinaryIO,
    format: str,
    options: WriteOptions,
) -> int:
    """Write into a binary file object, which stays open and keeps what was written."""
    name = object_name(target)
    _require(schema, name, format, options)
    counted = _Counted(batches)
    with pa.PythonFile(cast(BinaryIO, _Lent(target)), "w") as sink:
        _write(counted, schema, sink, name, format, options)
    return counted.rows


def _require(schema: pa.Schema, name: str, format: str, options: WriteOptions) -> None:
    require_types(schema, name, format)
    options.require(format, schema, name)


def _write(
    batches: Batches,
    schema: pa.Schema,
    sink: pa.NativeFile,
    name: str,
    format: str,
    options: WriteOptions,
) -> None:
    try:
        FORMATS[format].write(batches, schema, sink, options)
    except pa.ArrowException as error:
        raise NotWritableError(f"{name}: cannot be written as {format}: {error}") from error


class _Counted(Batches):
    """Batches, and how many rows went by."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self.rows = 0

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        return batch


class _Lent:
    """A file object of somebody else: it is not closed, only flushed."""

    closed = False

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.write = target.write

    def flush(self) -> None:
        """Pass on what the object holds back, if it can."""
        getattr(self._target, "flush", lambda: None)()

    def close(self) -> None:
        """Leave it open."""
        self.flush()
