"""A result as a directory of Hive folders: `day=2025-01-01/part-00000.parquet`, complete or absent.

Rows of a folder keep their order. What is held back until it makes a file is bounded, so a folder
may have several.
"""

import os
from collections.abc import Iterable, Sequence
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from fretsaw.errors import ColumnNotFoundError, NotWritableError
from fretsaw.results.write.files import write_file
from fretsaw.results.write.formats import Batches, require_types
from fretsaw.results.write.options import WriteOptions
from fretsaw.results.write.places import Place, name_of, staged_directory
from fretsaw.results.write.text import csv_column
from fretsaw.storage.hive import HIVE_NULL
from fretsaw.storage.listing import Entry

_MOST_HELD = 256 << 20
"""Bytes of all folders together that are held back."""


def write_partitioned(
    batches: Batches,
    schema: pa.Schema,
    place: Place,
    format: str,
    keys: Sequence[str],
    options: WriteOptions,
    overwrite: bool,
) -> int:
    """Write a directory with a folder for each value of these columns; how many rows it has."""
    if not isinstance(place, str):
        raise NotWritableError(f"{name_of(place)}: folders of columns are written to local paths")
    inside = _require_keys(schema, keys, place)
    require_types(inside, place, format)
    options.require(format, inside, place)
    rows = 0
    with staged_directory(place, overwrite) as staging:
        folders = _Folders(str(staging), inside, format, options)
        for batch in batches:
            rows += batch.num_rows
            folders.add(batch, keys)
        folders.flush_all()
        if not rows:  # one file says what the columns are
            write_file(iter(()), schema, os.path.join(str(staging), f"part-00000.{format}"), format)
    return rows


def require_no_input_in(place: Place, inputs: Iterable[Entry]) -> None:
    """Refuse a directory in which a file lies that the scan reads."""
    for entry in inputs:
        if isinstance(place, str) and isinstance(entry.origin, str | os.PathLike):
            path = os.path.realpath(entry.origin)
            if path.startswith(os.path.join(place, "")):
                raise NotWritableError(f"{place}: {path} is being read; write to another directory")


def _require_keys(schema: pa.Schema, keys: Sequence[str], place: str) -> pa.Schema:
    """The columns that are left for the files."""
    for key in keys:
        if key not in schema.names:
            raise ColumnNotFoundError.among(key, schema.names, place)
        kind = schema.field(key).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise NotWritableError(f"{place}: column {key!r} is {kind}, which names no folder")
    if len({*keys}) < len(keys) or len(keys) == len(schema.names):
        raise ValueError(f"partition_by={[*keys]!r}: name each once, and leave a column for files")
    return pa.schema([field for field in schema if field.name not in keys], schema.metadata)


class _Folders:
    """The folders of a directory, and the rows of each that are not written yet."""

    def __init__(self, root: str, schema: pa.Schema, format: str, options: WriteOptions) -> None:
        self._root = root
        self._schema = schema
        self._format = format
        self._options = options
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._sizes: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def add(self, batch: pa.RecordBatch, keys: Sequence[str]) -> None:
        """Hold the rows of a batch back, each in its folder."""
        names = _folder_names(batch, keys, self._root).dictionary_encode()
        order = pc.array_sort_indices(names.indices)
        ordered = batch.select(self._schema.names).take(order)
        begin = 0
        counts = pc.value_counts(names.indices.take(order))
        for number, count in zip(*(counts.field(i).to_pylist() for i in (0, 1)), strict=True):
            folder, rows = names.dictionary[number].as_py(), ordered.slice(begin, count)
            self._held.setdefault(folder, []).append(rows)
            self._sizes[folder] = self._sizes.get(folder, 0) + rows.nbytes
            begin += count
        while sum(self._sizes.values()) > _MOST_HELD:
            self._flush(max(self._sizes, key=self._sizes.__getitem__))

    def flush_all(self) -> None:
        """Write what is left."""
        for folder in list(self._held):
            self._flush(folder)

    def _flush(self, folder: str) -> None:
        number = self._counts.get(folder, 0)
        self._counts[folder] = number + 1
        path = os.path.join(self._root, folder)
        os.makedirs(path, exist_ok=True)
        batches = iter(self._held.pop(folder))
        del self._sizes[folder]
        file = os.path.join(path, f"part-{number:05}.{self._format}")
        write_file(batches, self._schema, file, self._format, self._options)


def _folder_names(batch: pa.RecordBatch, keys: Sequence[str], place: str) -> pa.Array:
    """For each row, the folder that it goes into."""
    parts = []
    for key in keys:
        texts = csv_column(pa.chunked_array([batch.column(key)])).cast(pa.string())
        encoded = texts.combine_chunks().dictionary_encode()
        if "" in (values := encoded.dictionary.to_pylist()):
            raise NotWritableError(
                f"{place}: column {key!r} holds empty text, which names no folder"
            )
        named = pa.array(
            [f"{quote(key, safe='')}={_quoted(value)}" for value in values], pa.string()
        )
        null = f"{quote(key, safe='')}={HIVE_NULL}"
        parts.append(named.take(encoded.indices).fill_null(null))
    return pc.binary_join_element_wise(*parts, "/")


def _quoted(value: str) -> str:
    """The name of a folder; one that would mean null is spelled so that it does not."""
    name = quote(value, safe="")
    return f"%{ord(name[0]):02X}{name[1:]}" if name == HIVE_NULL else name
