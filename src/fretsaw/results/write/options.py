"""How a file is written, where the user has a say: codec, row groups, Bloom filters."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from fretsaw.errors import ColumnNotFoundError

GZIPPED = ".gz"
"""The suffix of text that is compressed as a whole."""
_CODECS = {
    "parquet": ("none", "snappy", "gzip", "brotli", "lz4", "zstd"),
    "orc": ("none", "snappy", "zlib", "lz4", "zstd"),
    "arrow": ("none", "lz4", "zstd"),
    "csv": ("none", "gzip"),
    "json": ("none", "gzip"),
}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What was asked for; None is what suits the format."""

    compression: str | None = None
    row_group_size: int | None = None
    """Rows of a row group of Parquet, the last one apart."""
    bloom_filters: Sequence[str] = ()
    """The columns that get one: leaves, by their paths."""

    def __post_init__(self) -> None:
        if isinstance(self.bloom_filters, str):
            raise TypeError(f"bloom_filters are a list of columns, not {self.bloom_filters!r}")
        size = self.row_group_size
        if size is not None and not hasattr(size, "__index__"):
            raise TypeError(f"row_group_size is a number of rows, not {size!r}")
        if size is not None and size < 1:
            raise ValueError(f"row_group_size must be at least 1, not {size}")

    def require(self, format: str, schema: pa.Schema, place: str) -> None:
        """Refuse what a format does not have, before anything is written."""
        codecs = _CODECS[format]
        if self.compression is not None and self.compression not in codecs:
            known = ", ".join(map(repr, codecs))
            raise ValueError(f"compression of {format} is one of {known}, not {self.compression!r}")
        if self.row_group_size is not None and format != "parquet":
            raise ValueError(f"row_group_size is for Parquet; {format} has no row groups")
        if self.bloom_filters and format not in ("parquet", "orc"):
            raise ValueError(f"bloom_filters are for Parquet and ORC; {format} has none")
        leaves = leaf_paths(schema)
        for name in self.bloom_filters:
            if name not in leaves:
                raise ColumnNotFoundError.among(name, list(leaves), place)

    def codec(self, default: str | None = None) -> str | None:
        """The codec to write with, as pyarrow calls it."""
        return default if self.compression is None else self.compression


def leaf_paths(schema: pa.Schema) -> dict[str, tuple[int, str]]:
    """The leaves of a schema by their paths: their numbers as types of ORC, and Parquet's spelling.

    >>> leaf_paths(pa.schema([("a", pa.int64()), ("xs", pa.list_(pa.string()))]))
    {'a': (1, 'a'), 'xs.element': (3, 'xs.list.element')}
    """
    found: dict[str, tuple[int, str]] = {}
    count = 0

    def visit(kind: pa.DataType, path: str, stored: str) -> None:
        nonlocal count
        count += 1
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            for field in kind:
                visit(field.type, f"{path}.{field.name}", f"{stored}.{field.name}")
        elif pa.types.is_map(kind):
            visit(kind.key_type, f"{path}.key", f"{stored}.key_value.key")
            visit(kind.item_type, f"{path}.value", f"{stored}.key_value.value")
        elif pa.types.is_nested(kind) and not pa.types.is_union(kind):
            visit(kind.value_type, f"{path}.element", f"{stored}.list.element")
        else:
            found[path] = count, stored

    for field in schema:
        visit(field.type, field.name, field.name)
    return found
