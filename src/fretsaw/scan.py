"""The user's face: `open` and `scan`, `DataFile` and `Scan`.

A `Scan` is a source and a query: immutable, cheap, and nothing is read until a result is asked
for. Each result opens the file, resolves the query against it, and runs it.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.execute import OpenFile, open_file, run
from fretsaw.explain import explain
from fretsaw.formats import ReadOptions
from fretsaw.layout import Block, BlockPredicate, Int64s, byte_range
from fretsaw.plan import Amount, Plan, Query, block_plan, file_rows
from fretsaw.projection import Projection
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection
from fretsaw.storage import Origin, absolute, is_file_object

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Rows: TypeAlias = RowSelection | Sequence[int] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray

BATCH_ROWS = 128 << 10


def open(path: Origin) -> "DataFile":
    """Open one file and read its footer.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> path = tempfile.mkdtemp() + "/numbers.parquet"
    >>> pq.write_table(pa.table({"n": range(100)}), path, row_group_size=40)
    >>> with open(path) as file:
    ...     file.format, file.num_rows, len(file.blocks)
    ('parquet', 100, 3)
    """
    origin = absolute(path)
    return DataFile(origin, open_file(origin, ReadOptions()))


def scan(
    sources: Origin,
    *,
    verify: bool = True,
    int96: Literal["ns", "us", "ms"] = "ns",
) -> "Scan":
    """Describe what to read of a file; nothing is read yet.

    `verify` checks page checksums where the file has them, `int96` is the unit that INT96
    timestamps become.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> path = tempfile.mkdtemp() + "/numbers.parquet"
    >>> pq.write_table(pa.table({"n": range(100)}), path)
    >>> scan(path).skip(40).head(3).to_arrow().to_pydict()
    {'n': [40, 41, 42]}
    """
    if int96 not in ("ns", "us", "ms"):
        raise ValueError(f"int96 must be 'ns', 'us' or 'ms', not {int96!r}")
    return Scan(absolute(sources), ReadOptions(verify=verify, int96=int96))


class DataFile:
    """One open file, and what it says about itself. A context manager."""

    def __init__(self, origin: Origin, file: OpenFile) -> None:
        self._origin = origin
        self._file = file

    @property
    def format(self) -> str:
        """The format's name, `"parquet"`."""
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
        return sum(block.num_rows for block in self.blocks)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The row groups of the file."""
        return tuple(self._file.reader.blocks)

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """The key-value pairs that the writer left in the footer."""
        return self._file.reader.metadata

    def scan(self) -> "Scan":
        """A scan of this file; while the file is open, its footer is not read again."""
        return Scan(self._origin, ReadOptions(), self._file)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan:
    """What to read of a source: columns, rows and where they live. Immutable and cheap.

    Every method gives a new scan or a result; iterate over `batches()`, or hand the scan itself
    to anything that takes an Arrow stream.
    """

    _origin: Origin
    _options: ReadOptions
    _opened: OpenFile | None = None
    _query: Query = field(default_factory=Query)

    # What to read -------------------------------------------------------------------------------

    def select(self, *columns: str | tuple[str, ...]) -> "Scan":
        """Read only these columns, in this order; no argument: no columns, only rows."""
        if self._query.columns is not None:
            raise ValueError("select() was called before: name all columns in one call")
        for column in columns:
            exact = isinstance(column, tuple) and all(isinstance(step, str) for step in column)
            if not exact and not isinstance(column, str):
                raise TypeError(f"a column is named by a str or a tuple of them, not {column!r}")
        return self._with(columns=columns)

    def filter(self, predicate: BlockPredicate) -> "Scan":
        """Read only the blocks that the predicate keeps; several calls are ANDed."""
        self._require_no_window()
        if not isinstance(predicate, BlockPredicate):
            raise TypeError(
                f"filter() takes a block predicate, fs.byte_range(...) or fs.blocks(...), "
                f"not {type(predicate).__name__}"
            )
        before = self._query.block_predicate
        return self._with(block_predicate=predicate if before is None else before & predicate)

    def select_rows(self, rows: Rows) -> "Scan":
        """Read only these rows: a `RowSelection`, or physical row numbers as a set."""
        self._require_no_window()
        if self._query.rows is not None:
            raise ValueError("select_rows() was called before: combine the selections with &")
        return self._with(rows=rows if isinstance(rows, RowSelection) else _row_numbers(rows))

    def skip(self, n: int) -> "Scan":
        """Leave out the first `n` rows of the result set (SQL's OFFSET)."""
        if self._query.window.skip is not None:
            raise ValueError("skip() was called before")
        return self._with_window(skip=_count("skip", n))

    def head(self, n: int) -> "Scan":
        """At most the first `n` rows of the result set, behind those skipped (SQL's LIMIT)."""
        if self._query.window.head is not None:
            raise ValueError("head() was called before")
        return self._with_window(head=_count("head", n))

    def tail(self, n: int) -> "Scan":
        """At most the last `n` rows of the result set."""
        if self._query.window.tail is not None:
            raise ValueError("tail() was called before")
        return self._with_window(tail=_count("tail", n))

    def with_row_index(self, name: str = "index") -> "Scan":
        """Add the physical row number as the first column, int64."""
        if self._query.row_index is not None:
            raise ValueError("with_row_index() was called before")
        return self._with(row_index=name)

    # Results ------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        with self._open() as file:
            return self._projection(file).schema

    def batches(self, batch_size: int | None = None) -> Iterator[pa.RecordBatch]:
        """Stream the result as record batches, in bounded memory.

        `batch_size` caps the rows of a batch.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        return self._batches(batch_size or BATCH_ROWS)

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the result as a `pyarrow.RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The whole result as an Arrow table."""
        with self._open() as file:
            projection = self._projection(file)
            return projection.concat(list(self._tables(file, projection)))

    def to_pandas(self) -> "pd.DataFrame":
        """The whole result as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """The whole result as a polars data frame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def take(self, rows: Rows) -> pa.Table:
        """Exactly these physical rows, in this order, duplicates and all."""
        query = self._query
        if query.rows is not None or query.window or query.block_predicate is not None:
            raise ValueError(
                "take() reads physical rows by their numbers; leave out filter(), select_rows(), "
                "skip(), head() and tail(), or use select_rows() instead of take()"
            )
        numbers = rows.indices() if isinstance(rows, RowSelection) else _row_numbers(rows)
        unique, positions = np.unique(numbers, return_inverse=True)
        found = self._with(rows=unique).to_arrow()
        in_order = len(unique) == len(numbers) and bool((np.diff(positions) > 0).all())
        return found if in_order else found.take(pa.array(positions))

    def count(self) -> int:
        """How many rows the scan returns; reads the footer only."""
        with self._open() as file:
            selected = file_rows(file.reader.blocks, self._query).kept
            return sum(part.rows.selected_count for part in selected)

    def plan(self) -> Plan:
        """What would be read, and what is left out by what."""
        with self._open() as file:
            leaves = self._projection(file).leaves
            found = file_rows(file.reader.blocks, self._query)
            kept = tuple(
                block_plan(file.name, part, file.pages_of(part, leaves)) for part in found.kept
            )
            chunks = [chunk for block in file.reader.blocks for chunk in file.chunks(block, leaves)]
            return Plan(
                files=(file.name,),
                columns=tuple(leaf.name for leaf in leaves),
                columns_total=len(file.reader.field_names),
                blocks=kept,
                dropped=found.dropped,
                rows=Amount(
                    sum(block.num_rows for block in file.reader.blocks),
                    sum(block.rows.kept for block in kept),
                ),
                bytes=Amount(
                    sum(int(chunk.sizes.sum()) for chunk in chunks),
                    sum(block.bytes.kept for block in kept),
                ),
                window=str(self._query.window),
            )

    def explain(self) -> str:
        """The plan as text."""
        return explain(self.plan())

    def splits(self, target_bytes: int = 128 << 20) -> list["Scan"]:
        """Scans that partition this one by byte range, each of about `target_bytes`."""
        if self._query.window:
            raise ValueError("a scan with skip(), head() or tail() cannot be split: split it first")
        if target_bytes < 1:
            raise ValueError(f"target_bytes must be at least 1, not {target_bytes}")
        with self._open() as file:
            kept = [part.block for part in file_rows(file.reader.blocks, self._query).kept]
        return [
            self.filter(byte_range(start, end)) for start, end in _byte_ranges(kept, target_bytes)
        ]

    # Inside -------------------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[OpenFile]:
        if self._opened is not None and not self._opened.source.closed:
            yield self._opened
            return
        file = open_file(self._origin, self._options)
        try:
            yield file
        finally:
            file.close()

    def _projection(self, file: OpenFile) -> Projection:
        return Projection.of(file.reader, file.name, self._query.columns, self._query.row_index)

    def _tables(self, file: OpenFile, projection: Projection) -> Iterator[pa.Table]:
        selected = file_rows(file.reader.blocks, self._query).kept
        for decoded in run(file, selected, projection.leaves):
            yield projection.table(decoded.arrays, decoded.rows, decoded.first_row)

    def _batches(self, batch_size: int) -> Iterator[pa.RecordBatch]:
        with self._open() as file:
            for table in self._tables(file, self._projection(file)):
                yield from table.to_batches(max_chunksize=batch_size)

    def _with(self, **changes: Any) -> "Scan":
        return replace(self, _query=replace(self._query, **changes))

    def _with_window(self, **change: int) -> "Scan":
        window = replace(self._query.window, **change)
        if window.tail is not None and (window.skip is not None or window.head is not None):
            raise ValueError("tail() excludes skip() and head()")
        return self._with(window=window)

    def _require_no_window(self) -> None:
        if self._query.window:
            raise ValueError("filter before skip/head/tail: they count the rows that match")

    def __reduce__(self) -> tuple[Any, ...]:
        if is_file_object(self._origin):
            raise TypeError("a scan of an open file cannot be pickled: scan its path or its bytes")
        return Scan, (self._origin, self._options, None, self._query)

    def __repr__(self) -> str:
        origin = self._origin if isinstance(self._origin, str) else type(self._origin).__name__
        return f"Scan({origin!r}{self._query})"


def _count(name: str, n: int) -> int:
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"{name}({count}): a number of rows cannot be negative")
    return count


def _row_numbers(rows: Sequence[int] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray) -> Int64s:
    """Row numbers as an array of their own, whatever they came in."""
    numbers = np.array(rows)
    if numbers.size == 0:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise TypeError(
            f"row numbers are a one-dimensional array of integers, not {numbers.ndim}-dimensional "
            f"{numbers.dtype}; make a mask into rows with RowSelection.from_filters([mask])"
        )
    return numbers.astype(np.int64)


def _byte_ranges(blocks: Sequence[Block], target: int) -> Iterator[tuple[int, int]]:
    """Byte ranges around the midpoints of neighbouring blocks, about `target` bytes of them."""
    ordered = sorted(blocks, key=lambda block: block.midpoint)
    start, size = 0, 0
    for position, block in enumerate(ordered):
        size += block.compressed_size
        following = ordered[position + 1] if position + 1 < len(ordered) else None
        # A cut is nearer to the target here than behind the next block, and divides the two.
        if following is None or (
            size + following.compressed_size // 2 > target and following.midpoint > block.midpoint
        ):
            yield ordered[start].midpoint, block.midpoint + 1
            start, size = position + 1, 0
