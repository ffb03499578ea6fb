"""Results as files: Parquet, ORC, CSV, JSON lines or Arrow, complete or absent.

Record batches come in and are streamed into a hidden sibling of the file, which takes the file's
name when it is complete. What a format cannot hold is refused before anything is written, and so
is a place that the scan reads. `staged_directory` does the same for a directory of files.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
from pyarrow import types

from fretsaw.errors import NotWritableError
from fretsaw.model.schema import with_leaves, with_nulls
from fretsaw.results.write.json_lines import bytes_as_text, lines, uuids_as_text
from fretsaw.storage.listing import Entry, alternatives, folder_of
from fretsaw.storage.origins import absolute
from fretsaw.storage.source import Origin

Batches: TypeAlias = Iterator[pa.RecordBatch]
Pathlike: TypeAlias = str | os.PathLike[str]

GROUP_ROWS, GROUP_BYTES = 1 << 20, 128 << 20
"""What a Parquet row group holds, roughly: rows, or bytes in memory."""
PIECE_ROWS, PIECE_BYTES = 64 << 10, 16 << 20
"""What is handed to the other formats in one go."""


def format_of(path: Pathlike, format: str | None = None) -> str:
    """The format that is asked for, or that the path's suffix stands for."""
    known = ", ".join(map(repr, FORMATS))
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {known}, not {format!r}")
        return format
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    for name, how in _FORMATS.items():
        if suffix in how.suffixes:
            return name
    raise ValueError(f"{os.fspath(path)}: no format is known by this name; say format= {known}")


def destination(path: Pathlike, inputs: Iterable[Entry] = ()) -> str:
    """The real path to write to, which is neither read by the scan nor found by its next run."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a result is written to a path, not to a {type(path).__name__}")
    place = os.path.realpath(str(absolute(path)))
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise NotWritableError(f"{folder}: no such directory to write to; make it first")
    inputs = list(inputs)
    for found_in in dict.fromkeys(entry.found_in for entry in inputs):
        if found_in is not None and _finds(found_in, place):
            raise NotWritableError(
                f"{place}: would be found in {found_in}, which is being read, by its next scan; "
                "write to another directory"
            )
    with suppress(FileNotFoundError):
        there = os.stat(place)
        if any(_is_file(entry.origin, there) for entry in inputs):
            raise NotWritableError(
                f"{place}: is being read by the same scan; write to another path, then rename it"
            )
    return place


def write_file(batches: Batches, schema: pa.Schema, path: Pathlike, format: str) -> int:
    """Write a file that is complete or absent; how many rows it has."""
    place = destination(path)
    if os.path.isdir(place):
        raise NotWritableError(f"{place}: is a directory; name a file in it")
    if os.path.exists(place) and not os.path.isfile(place):
        raise NotWritableError(f"{place}: is a pipe or device, not a file")
    how = _FORMATS[format]
    require_types(schema, place, format)
    rows = 0

    def counted() -> Batches:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    with _staged_file(place) as staging, pa.OSFile(staging, "wb") as sink:
        try:
            how.write(counted(), schema, sink)
        except pa.ArrowException as error:
            raise NotWritableError(f"{place}: cannot be written as {format}: {error}") from error
    return rows


@contextmanager
def staged_directory(path: Pathlike) -> Iterator[str]:
    """A hidden directory to write files into, which becomes `path` at the end of the block.

    It is removed if the block fails.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "parts")
    >>> with staged_directory(folder) as staging:
    ...     _ = pathlib.Path(staging, "part-0").write_text("data")
    ...     folder.exists()
    False
    >>> os.listdir(folder)
    ['part-0']
    """
    place = destination(path)
    if os.path.exists(place) and not os.path.isdir(place):
        raise NotWritableError(f"{place}: is a file; name a directory that is not there yet")
    if os.path.isdir(place) and os.listdir(place):
        raise NotWritableError(
            f"{place}: there are files in it already; remove them, or name another directory"
        )
    staging = _sibling(place)
    try:
        os.mkdir(staging)
        yield staging
        for name in os.listdir(staging):
            if name.startswith("."):  # of a writer that was killed while others went on
                os.unlink(os.path.join(staging, name))
        os.rename(staging, place)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


# Places ------------------------------------------------------------------------------------------


@contextmanager
def _staged_file(place: str) -> Iterator[str]:
    """A hidden file to write, which becomes the one at the place at the end of the block."""
    staging = _sibling(place)
    try:
        os.close(os.open(staging, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield staging
        if os.path.exists(place):
            shutil.copymode(place, staging)
        _flush(staging)
        os.replace(staging, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(staging)
        raise


def _sibling(place: str) -> str:
    """A new name that directory scans leave out, short enough whatever the place is called."""
    folder, name = os.path.split(place)
    return os.path.join(folder, f".{name[:50]}.{secrets.token_hex(6)}.tmp")


def _flush(path: str) -> None:
    """Have the bytes on the disk before the name says that they are there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _finds(found_in: str, place: str) -> bool:
    """Whether a scan of a directory or glob would find a file at the place."""
    if os.path.isdir(found_in):
        folder = os.path.realpath(found_in)
        return os.path.commonpath([folder, place]) == folder
    folder = folder_of(found_in)
    patterns = alternatives(os.path.realpath(folder) + found_in[len(folder) :])
    return any(_matches(place.split(os.sep), pattern.split(os.sep)) for pattern in patterns)


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a glob finds the path, or a directory that it lies in."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(path[start:], pattern[1:]) for start in range(len(path)))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


def _is_file(origin: Origin, there: os.stat_result) -> bool:
    """Whether the origin is the file that is there, by whatever name."""
    with suppress(OSError, AttributeError, ValueError):  # gone, or not a file of the system
        if isinstance(origin, str | os.PathLike):
            return os.path.samestat(os.stat(origin), there)
        if not isinstance(origin, bytes | bytearray | memoryview):
            return os.path.samestat(os.fstat(origin.fileno()), there)
    return False


# Formats -----------------------------------------------------------------------------------------


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
                f"{place}: {_FORMATS[format].title} has no type for column {field.name!r}, which "
                f"is {field.type}; leave it out with select(), or write {_FORMATS[format].instead}"
            )


def _takes(schema: pa.Schema, format: str) -> bool:
    try:
        _FORMATS[format].write(iter(()), schema, pa.BufferOutputStream())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def _write_parquet(batches: Batches, schema: pa.Schema, sink: pa.NativeFile) -> None:
    with pa.parquet.ParquetWriter(sink, schema, write_page_index=True) as writer:
        for table in _gathered(batches, schema, GROUP_ROWS, GROUP_BYTES):
            writer.write_table(table, row_group_size=table.num_rows)


def _write_orc(batches: Batches, schema: pa.Schema, sink: pa.NativeFile) -> None:
    # ORC has no required fields, and a required one cannot hold the nulls of its struct.
    leaves = _with_leaves(schema, _orc_leaf)
    stored = pa.schema([pa.field(field.name, with_nulls(field.type)) for field in leaves])
    with pa.orc.ORCWriter(sink, compression="snappy") as writer:
        writer.write(_cast(_nothing(schema), stored))
        for table in _gathered(batches, schema):
            writer.write(_repeating_nulls(_cast(table, stored)))


def _write_arrow(batches: Batches, schema: pa.Schema, sink: pa.NativeFile) -> None:
    # A file has one dictionary for each column, and a stream does not know it beforehand.
    stored = _with_leaves(schema, _decoded)
    with pa.ipc.new_file(sink, stored) as writer:
        for table in _gathered(batches, schema):
            writer.write_table(_cast(table, stored).combine_chunks())


def _write_csv(batches: Batches, schema: pa.Schema, sink: pa.NativeFile) -> None:
    stored = csv_table(_nothing(schema)).schema
    with pa.csv.CSVWriter(sink, stored) as writer:
        for table in _gathered(batches, schema):
            require_text(table)
            writer.write_table(csv_table(table))


def _write_json(batches: Batches, schema: pa.Schema, sink: pa.NativeFile) -> None:
    lines(pa.RecordBatch.from_pylist([], schema))
    for table in _gathered(batches, schema):
        require_text(table)
        rows = max(1, PIECE_BYTES * table.num_rows // max(table.nbytes, 1))
        for batch in table.to_batches(max_chunksize=rows):
            sink.write(lines(batch))


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


def _nothing(schema: pa.Schema) -> pa.Table:
    """A table without rows; `empty_table` knows no unions."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the types of the schema; columns that have theirs are left alone."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _repeating_nulls(table: pa.Table) -> pa.Table:
    """The same table, in which what lies in a null struct is null itself.

    Arrow's ORC writer stores other values where it is not, and takes slices for the whole.
    """
    columns = [
        _with_outer_nulls(pa.concat_arrays(column.chunks))
        if types.is_nested(column.type) and column.num_chunks
        else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _with_outer_nulls(array: pa.Array) -> pa.Array:
    kind, validity = array.type, array.is_valid().buffers()[1] if array.null_count else None
    if types.is_struct(kind):
        if validity is not None and any(types.is_union(field.type) for field in kind):
            raise pa.ArrowNotImplementedError(
                "a null struct cannot hold a union, which has no nulls"
            )
        buffers, children = [validity], array.flatten()  # with the nulls of the struct
    elif types.is_fixed_size_list(kind):
        buffers, children = [validity], [array.values]
    elif types.is_nested(kind) and not types.is_union(kind):
        buffers, children = [validity, array.offsets.buffers()[1]], [array.values]
    else:
        return array
    inside = [_with_outer_nulls(child) for child in children]
    return pa.Array.from_buffers(kind, len(array), buffers, children=inside)


def require_text(table: pa.Table) -> None:
    """Refuse what cannot be spelled: strings that are not UTF-8, times too far away."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {name!r} holds what is no text: {error}") from error
        if any(map(_is_far_away, column.chunks)):
            raise pa.ArrowInvalid(f"column {name!r} holds a time that has no text")


def _is_far_away(array: pa.Array) -> bool:
    """Whether there is a time that Arrow does not spell, of years beyond 32,767."""
    kind = array.type
    if types.is_dictionary(kind):
        return _is_far_away(array.dictionary)
    if isinstance(kind, pa.BaseExtensionType):
        return _is_far_away(array.storage)
    if types.is_map(kind):
        return _is_far_away(array.keys) or _is_far_away(array.items)
    if types.is_struct(kind):
        return any(map(_is_far_away, array.flatten()))
    if types.is_nested(kind):
        return _is_far_away(array.flatten())
    if not types.is_timestamp(kind) or array.null_count == len(array):
        return False
    ends = pc.min_max(array.cast(pa.int64())).as_py()
    most = (_LAST_YEAR - 1970) * 365 * 86_400 * _PER_SECOND[kind.unit]
    return bool(max(-ends["min"], ends["max"]) > most)


_LAST_YEAR = 32_767
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


# Types -------------------------------------------------------------------------------------------


def _with_leaves(schema: pa.Schema, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    """The schema with other types for its leaves."""
    fields = [field.with_type(with_leaves(field.type, leaf)) for field in schema]
    return pa.schema(fields, schema.metadata)


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if types.is_dictionary(kind) else kind


def _orc_leaf(kind: pa.DataType) -> pa.DataType:
    """The ORC type that holds all values of a type, or the type itself."""
    kind = _plain(kind)
    if types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    return _WIDER_IN_ORC.get(kind, kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    """What a dictionary, an extension or a view is in formats that have no such thing."""
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if types.is_binary_view(kind) else kind


def csv_table(table: pa.Table) -> pa.Table:
    """The columns as CSV has them."""
    columns = [_csv_column(column) for column in table.columns]
    if len(columns) == 1:
        # An empty line would be no row to most readers: a lone null is an empty string.
        columns = [columns[0].cast(pa.large_string()).fill_null("")]
    return pa.table(columns, table.column_names)


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type == pa.uuid():
        return _by_chunk(uuids_as_text, column)
    kind = _plain(column.type)
    column = column.cast(kind)
    if types.is_timestamp(kind) and kind.tz is not None:
        return column.cast(pa.timestamp(kind.unit, "UTC"))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _by_chunk(bytes_as_text, column)
    return column


def _by_chunk(function: Callable[[pa.Array], pa.Array], column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([function(chunk) for chunk in column.chunks], pa.large_string())


_WIDER_IN_ORC = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


@dataclass(frozen=True, slots=True)
class _Format:
    """How a format is called, known by its suffix, and written."""

    title: str
    suffixes: tuple[str, ...]
    write: Callable[[Batches, pa.Schema, pa.NativeFile], None]
    instead: str
    """Formats that hold more types."""


_FORMATS = {
    "parquet": _Format("Parquet", (".parquet",), _write_parquet, instead="Arrow"),
    "orc": _Format("ORC", (".orc",), _write_orc, instead="Parquet or Arrow"),
    "csv": _Format("CSV", (".csv",), _write_csv, instead="Parquet or JSON"),
    "json": _Format("JSON", (".json", ".jsonl", ".ndjson"), _write_json, instead="Arrow"),
    "arrow": _Format("Arrow IPC", (".arrow", ".feather", ".ipc"), _write_arrow, instead="Parquet"),
}
FORMATS = tuple(_FORMATS)
