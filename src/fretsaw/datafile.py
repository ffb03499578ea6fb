"""One open file: `open` and `DataFile`."""

from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from fretsaw.arguments import Named, to_paths
from fretsaw.engine.request import ScanRequest
from fretsaw.formats.interface import ReadOptions
from fretsaw.model.blocks import Block
from fretsaw.model.locks import importing
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection
from fretsaw.predicates.logic import Predicate
from fretsaw.scan import Scan
from fretsaw.storage.listing import Entry, Listing, origin_of
from fretsaw.storage.location import Access, StorageOptions
from fretsaw.storage.source import Origin

if TYPE_CHECKING:
    from fretsaw.engine.files import OpenFile


def open(
    path: Origin | pa.Buffer,
    *,
    storage_options: StorageOptions = None,
    indexes: bool = True,
    verify: bool = True,
    int96: Literal["ns", "us", "ms"] = "ns",
    timestamps: Literal["ns", "us"] = "ns",
) -> "DataFile":
    """Open one file and read its footer; the options are those of `scan`.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> path = tempfile.mkdtemp() + "/numbers.parquet"
    >>> pq.write_table(pa.table({"n": range(100)}), path, row_group_size=40)
    >>> with open(path) as file:
    ...     file.format, file.num_rows, len(file.blocks)
    ('parquet', 100, 3)
    """
    with importing:
        from fretsaw.engine.files import open_entry

    options = ReadOptions(indexes, verify, int96, timestamps)
    return DataFile(
        open_entry(Entry(origin_of(path, Access.of(storage_options))), options), options
    )


class DataFile:
    """One open file, and what it says about itself. A context manager."""

    def __init__(self, file: "OpenFile", options: ReadOptions) -> None:
        self._file = file
        self._options = options

    @property
    def format(self) -> str:
        """The format's name, `"parquet"` or `"orc"`."""
        return self._file.reader.format

    @property
    def schema(self) -> SchemaNode:
        """The root of the schema tree; its children are the top-level columns."""
        positions = range(len(self._file.reader.field_names))
        schema, nodes = self._file.reader.describe(positions)
        return SchemaNode("", (), "struct", False, pa.struct(list(schema)), nodes)

    @property
    def num_rows(self) -> int:
        """Rows of all blocks together."""
        return self._file.num_rows

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The row groups or stripes of the file."""
        return tuple(self._file.reader.blocks)

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The key-value pairs that the writer left in the footer; read-only."""
        return MappingProxyType(self._file.reader.metadata)

    @property
    def created_by(self) -> str | None:
        """The library that wrote the file, with its version; None if the file does not say."""
        return self._file.reader.created_by

    def scan(self) -> "Scan":
        """A scan of this file; while the file is open, its footer is not read again."""
        alone = Listing(self._file.name, (self._file.entry,), pa.schema([]), several=False)
        return Scan(ScanRequest(alone, self._options, opened=self._file))

    def prune(self, predicate: Predicate | str) -> RowSelection:
        """The rows that the file's own indexes cannot rule out; no data page is read."""
        with importing:
            from fretsaw.engine.parts import rows_left

        return rows_left(self.scan().filter(predicate).request)

    def chunks(self, *columns: Named | list[Named]) -> pa.Table:
        """What the file says about each leaf of each block; of these columns, or of all.

        Bounds are text, or values of the column's own type where one leaf alone is named. What the
        file does not say, or what cannot be believed, is null. Only metadata are read.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/numbers.parquet"
        >>> pq.write_table(pa.table({"n": range(100)}), path, row_group_size=40)
        >>> with open(path) as file:
        ...     file.chunks("n").select(["block", "rows", "min", "max"]).to_pylist()[1]
        {'block': 1, 'rows': 40, 'min': 40, 'max': 79}
        """
        with importing:
            from fretsaw.results.inside import chunk_table

        return chunk_table(self._file, to_paths(columns))

    def pages(self, *columns: Named | list[Named]) -> pa.Table:
        """What the file says about each page (Parquet) or stride (ORC) of these columns, or of all.

        `first_row` counts over the file. Bounds are as those of `chunks()`. Indexes are read, and
        page headers where there are none, never a page.
        """
        with importing:
            from fretsaw.results.inside import page_table

        return page_table(self._file, to_paths(columns))

    def dictionary(self, column: Named, block: int) -> pa.Table:
        """The values of a leaf's dictionary in a block, as the column `value`.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/cities.parquet"
        >>> pq.write_table(pa.table({"city": ["NYC", "LA", "NYC"]}), path)
        >>> with open(path) as file:
        ...     file.dictionary("city", 0).to_pydict()
        {'value': ['NYC', 'LA']}
        """
        with importing:
            from fretsaw.results.inside import dictionary_table

        (path,) = to_paths([column])
        return dictionary_table(self._file, path, block)

    def close(self) -> None:
        """Let go of the file."""
        self._file.source.close()

    def __enter__(self) -> "DataFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DataFile({self._file.name!r}, {self.format}, {self.num_rows:,} rows)"
