"""Results as files: record batches streamed into a place, in a format."""

import os

import pyarrow as pa

from fretsaw.errors import NotWritableError
from fretsaw.results.write.formats import FORMATS, Batches, require_types
from fretsaw.results.write.places import Pathlike, Place, destination, name_of, staged_file


def write_file(batches: Batches, schema: pa.Schema, path: Pathlike | Place, format: str) -> int:
    """Write a file that is complete or absent; how many rows it has."""
    place = destination(path)
    name = name_of(place)
    if name.endswith("/") or (isinstance(place, str) and os.path.isdir(place)):
        raise NotWritableError(f"{name}: is a directory; name a file in it")
    if isinstance(place, str) and os.path.exists(place) and not os.path.isfile(place):
        raise NotWritableError(f"{name}: is a pipe or device, not a file")
    require_types(schema, name, format)
    rows = 0

    def counted() -> Batches:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    with staged_file(place) as staging, pa.OSFile(staging, "wb") as sink:
        try:
            FORMATS[format].write(counted(), schema, sink)
        except pa.ArrowException as error:
            raise NotWritableError(f"{name}: cannot be written as {format}: {error}") from error
    return rows
