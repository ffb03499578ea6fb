"""The user's scan: what to read, and the ways to have it.

A `Scan` is a source and a query: immutable, cheap, and nothing is read until a result is asked
for. Each result opens the file, resolves the query against it, and runs it.
"""

import operator
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa

from fretsaw.arguments import (
    Named,
    Rows,
    require_batch_size,
    to_count,
    to_hive,
    to_names,
    to_paths,
    to_predicate,
    to_row_numbers,
)
from fretsaw.engine.request import ScanRequest
from fretsaw.engine.summary import Plan
from fretsaw.formats.interface import ReadOptions
from fretsaw.model.block_predicates import BlockPredicate
from fretsaw.model.locks import importing
from fretsaw.model.runs import unique
from fretsaw.model.schema import Path
from fretsaw.model.selection import RowSelection
from fretsaw.model.shown import html_table
from fretsaw.model.trace import trace
from fretsaw.predicates.expression import Expression
from fretsaw.predicates.logic import Predicate
from fretsaw.storage.hive import Hive
from fretsaw.storage.listing import Listing, Sources, names_of, origins_of
from fretsaw.storage.location import Access, StorageOptions

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from fretsaw.engine.planner import Planner
    from fretsaw.results.columns import ColumnBatch, ColumnBatches
    from fretsaw.results.rows import Row

# What runs a scan is imported when one is run: half of the time to import all of this.

BATCH_ROWS = 128 << 10
STREAM_PIECE = 16 << 20
"""Bytes that are decoded in one go, roughly, where memory is to be bounded."""
WHOLE_PIECE = 256 << 20
"""The same where everything is kept in memory anyway."""


def scan(
    sources: Sources,
    *,
    storage_options: StorageOptions = None,
    missing: Literal["error", "null"] = "error",
    types: Literal["same", "widen"] = "same",
    hive: Hive = True,
    on_corrupt: Literal["error", "skip"] = "error",
    indexes: bool = True,
    verify: bool = True,
    int96: Literal["ns", "us", "ms"] = "ns",
    timestamps: Literal["ns", "us"] = "ns",
) -> "Scan":
    """Describe what to read of a file, a directory, a glob, or several; nothing is read yet.

    URLs are as good as paths; `storage_options` say how to reach them, `docs/remote.md` which.
    `missing="null"` reads a column that a file lacks as null there, `types="widen"` one that files
    store in several types as the narrowest that holds them all. `hive=False` takes folders named
    `key=value` for mere folders, `hive={"day": pa.string()}` says which are columns and of what
    types. `on_corrupt="skip"` leaves out files that cannot be read, with a warning for each.
    `indexes=False` believes no index of a file and tests every row, `verify` checks page checksums
    where a file has them, `int96` is the unit that INT96 timestamps become, `timestamps` that of
    ORC's: microseconds reach from the year 1 to 9999, nanoseconds from 1677 to 2262.

    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> path = tempfile.mkdtemp() + "/numbers.parquet"
    >>> pq.write_table(pa.table({"n": range(100)}), path)
    >>> scan(path).skip(40).head(3).to_arrow().to_pydict()
    {'n': [40, 41, 42]}
    """
    if missing not in ("error", "null"):
        raise ValueError(f"missing must be 'error' or 'null', not {missing!r}")
    if types not in ("same", "widen"):
        raise ValueError(f"types must be 'same' or 'widen', not {types!r}")
    if on_corrupt not in ("error", "skip"):
        raise ValueError(f"on_corrupt must be 'error' or 'skip', not {on_corrupt!r}")
    return Scan(
        ScanRequest(
            origins_of(sources, Access.of(storage_options)),
            ReadOptions(indexes, verify, int96, timestamps),
            missing_is_null=missing == "null",
            widens_types=types == "widen",
            skips_corrupt=on_corrupt == "skip",
            hive=to_hive(hive),
        )
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scan:
    """What to read of a source: columns, rows and where they live. Immutable and cheap.

    Every method gives a new scan or a result; iterate over `batches()`, or hand the scan itself
    to anything that takes an Arrow stream.
    """

    request: ScanRequest
    """The same as the engine takes it."""

    # What to read -------------------------------------------------------------------------------

    def select(self, *columns: Named | list[Named]) -> "Scan":
        """Read only these columns, in this order; no argument: no columns, only rows."""
        if self.request.query.columns is not None:
            raise ValueError("select() was called before: name all columns in one call")
        return self._with(columns=to_paths(columns))

    def drop(self, *columns: Named | list[Named]) -> "Scan":
        """Read all but these columns, or parts of them by their paths; several calls add up.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/trips.parquet"
        >>> pq.write_table(pa.table({"id": [7], "fare": [9.5], "tip": [1.0]}), path)
        >>> scan(path).drop("tip").to_arrow().to_pylist()
        [{'id': 7, 'fare': 9.5}]
        """
        return self._with(dropped=(*self.request.query.dropped, *to_paths(columns)))

    def rename(self, names: Mapping[str, str]) -> "Scan":
        """Give columns of the result other names; all else goes by those that the files have.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/trips.parquet"
        >>> pq.write_table(pa.table({"id": [7, 8], "fare": [9.5, 12.0]}), path)
        >>> scan(path).rename({"fare": "price"}).filter("fare > 10").to_arrow().to_pylist()
        [{'id': 8, 'price': 12.0}]
        """
        if self.request.query.renamed:
            raise ValueError("rename() was called before: give all new names in one call")
        return self._with(renamed=to_names(names))

    def filter(self, *predicates: "Predicate | Expression | BlockPredicate | str") -> "Scan":
        """Read only the rows that match all, of the blocks that are kept; several calls are ANDed.

        A predicate is written with `col(...)`, or as an SQL condition; `fs.byte_range(...)` and
        `fs.blocks(...)` keep whole blocks.
        """
        self._require_no_window()
        return reduce(Scan._filter, predicates, self)

    def _filter(self, predicate: "Predicate | Expression | BlockPredicate | str") -> "Scan":
        query = self.request.query
        if isinstance(predicate, BlockPredicate):
            kept = query.block_predicate
            return self._with(block_predicate=predicate if kept is None else kept & predicate)
        if isinstance(predicate, str):
            with importing:
                from fretsaw.predicates.sql import parse

            predicate = parse(predicate)
        predicate = to_predicate(predicate)
        before = query.predicate
        return self._with(predicate=predicate if before is None else before & predicate)

    def select_rows(self, rows: Rows) -> "Scan":
        """Read only these rows: a `RowSelection`, or physical row numbers as a set."""
        self._require_no_window()
        if self.request.query.rows is not None:
            raise ValueError("select_rows() was called before: combine the selections with &")
        numbers = rows if isinstance(rows, RowSelection) else unique(to_row_numbers(rows))
        return self._with(rows=numbers)

    def skip(self, n: int) -> "Scan":
        """Leave out the first `n` rows of the result set (SQL's OFFSET)."""
        if self.request.query.window.skip is not None:
            raise ValueError("skip() was called before: a scan has one")
        return self._with_window(skip=to_count("skip", n))

    def head(self, n: int = 5) -> "Scan":
        """At most the first `n` rows of the result set, behind those skipped (SQL's LIMIT)."""
        if self.request.query.window.head is not None:
            raise ValueError("head() was called before: a scan has one")
        return self._with_window(head=to_count("head", n))

    def tail(self, n: int = 5) -> "Scan":
        """At most the last `n` rows of the result set."""
        if self.request.query.window.tail is not None:
            raise ValueError("tail() was called before: a scan has one")
        return self._with_window(tail=to_count("tail", n))

    def with_row_index(self, name: str = "index") -> "Scan":
        """Add the physical row number as the first column, int64."""
        if self.request.query.row_index is not None:
            raise ValueError("with_row_index() was called before")
        return self._with(row_index=name)

    def with_file_path(self, name: str = "path") -> "Scan":
        """Add the path of the row's file as the last column."""
        if self.request.query.file_path is not None:
            raise ValueError("with_file_path() was called before")
        return self._with(file_path=name)

    # Results ------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        columns = self._planner().columns
        columns.check()
        return columns.schema

    def batches(self, batch_size: int | None = None) -> Iterator[pa.RecordBatch]:
        """Stream the result as record batches, in bounded memory.

        `batch_size` caps the rows of a batch.
        """
        require_batch_size(batch_size)
        with importing:
            from fretsaw.results import tables

        return tables.to_batches(self._tables(), min(batch_size or BATCH_ROWS, sys.maxsize))

    def rows(self) -> Iterator["Row"]:
        """Stream the result row by row, as Python objects.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/trips.parquet"
        >>> pq.write_table(pa.table({"id": [7, 8], "city": ["NYC", None]}), path)
        >>> [(row["id"], row["city"]) for row in scan(path)]
        [(7, 'NYC'), (8, None)]
        """
        return chain.from_iterable(self._rows())

    def __iter__(self) -> Iterator["Row"]:
        return self.rows()

    def column(self, leaf: Path | int, batch_size: int | None = None) -> Iterator["ColumnBatch"]:
        """Stream one leaf, by its path or its number, as NumPy arrays.

        `batch_size` caps the records of a batch; by default as many as fit a processor's cache.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/trips.parquet"
        >>> pq.write_table(pa.table({"fare": [7.5, 12.0], "city": ["NYC", "LA"]}), path)
        >>> sum(batch.values.sum() for batch in scan(path).column("fare"))
        np.float64(19.5)
        """
        require_batch_size(batch_size)
        known = leaf if isinstance(leaf, str | tuple) else operator.index(leaf)
        return (batch[0] for batch in self._only(known)._column_batches(known, batch_size))

    def columns(self, batch_size: int | None = None) -> Iterator["ColumnBatches"]:
        """Stream all leaves of the result side by side, as NumPy arrays.

        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> path = tempfile.mkdtemp() + "/trips.parquet"
        >>> pq.write_table(pa.table({"fare": [7.5, 12.0], "tip": [1.0, 2.0]}), path)
        >>> for batch in scan(path).columns():
        ...     (batch["fare"].values + batch["tip"].values).tolist()
        [8.5, 14.0]
        """
        require_batch_size(batch_size)
        return self._column_batches(None, batch_size)

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the result as a `pyarrow.RecordBatchReader`."""
        with importing:
            from fretsaw.results import tables

        planner = self._planner()
        pieces = tables.stream(planner, STREAM_PIECE)  # of the same files as the schema
        batches = tables.to_batches(pieces, BATCH_ROWS)
        return pa.RecordBatchReader.from_batches(planner.columns.schema, batches)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The whole result as an Arrow table."""
        with importing:
            from fretsaw.results import tables

        return tables.whole(self._planner(), WHOLE_PIECE)

    def to_pandas(self) -> "pd.DataFrame":
        """The whole result as a pandas data frame."""
        with importing:
            from fretsaw.results import pandas_frame

        return pandas_frame.from_table(self.to_arrow(), names_of(self.request.origins))

    def to_polars(self) -> "pl.DataFrame":
        """The whole result as a polars data frame."""
        with importing:
            import polars as pl

        return pl.DataFrame(self.to_arrow())

    def take(self, rows: Rows) -> pa.Table:
        """Exactly these physical rows, in this order, duplicates and all."""
        query = self.request.query
        if not query.selects_all or query.window:
            raise ValueError(
                "take() reads physical rows by their numbers; leave out filter(), select_rows(), "
                "skip(), head() and tail(), or use select_rows() instead of take()"
            )
        numbers = rows.indices() if isinstance(rows, RowSelection) else to_row_numbers(rows)
        distinct = unique(numbers)
        found = self._with(rows=distinct).to_arrow()
        if np.array_equal(distinct, numbers):
            return found
        with importing:
            from fretsaw.results.tables import take

        return take(found, np.searchsorted(distinct, numbers))

    def count(self) -> int:
        """How many rows the scan returns; reads no data page where metadata prove the answer."""
        with importing:
            from fretsaw.results import tables

        return tables.count(self._planner())

    def plan(self) -> Plan:
        """What would be read, and what is left out by what."""
        with importing:
            from fretsaw.engine.explain import summarize

        return summarize(self.request, WHOLE_PIECE)

    def explain(self, run: bool = False) -> str:
        """The plan as text; with `run`, the scan is run and what happened stands beside it."""
        with importing:
            from fretsaw.engine.explain import summarize
            from fretsaw.engine.plan_text import compare

        if not run:
            return str(self.plan())
        # All pages are told apart, so that their number can be compared with those decoded.
        plan = summarize(self.request, 0)
        with trace() as actual:
            rows = sum(batch.num_rows for batch in self.batches())
        return compare(plan, rows, actual)

    def write(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        format: str | None = None,
        *,
        compression: str | None = None,
        row_group_size: int | None = None,
        bloom_filters: Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
        overwrite: bool = False,
        storage_options: StorageOptions = None,
    ) -> int:
        """Write the result to a file, which is complete or absent; how many rows it has.

        The format is "parquet", "orc", "csv", "json" (lines) or "arrow", by default what the
        path's suffix says (`.csv.gz` too). A URL is reached by `storage_options`, by default those
        of the scan; a binary file object keeps what was written and stays open. What is there
        already is replaced only with `overwrite`, an input never. `row_group_size` counts rows,
        `bloom_filters` names the columns that get one. With `partition_by` the target is a
        directory, complete or absent, with a Hive folder for each value of these columns.

        >>> import pathlib, pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> pq.write_table(pa.table({"id": [7, 8], "city": ["NYC", None]}), folder / "a.parquet")
        >>> scan(folder / "a.parquet").write(folder / "a.jsonl")
        2
        >>> print((folder / "a.jsonl").read_text(), end="")
        {"id":7,"city":"NYC"}
        {"id":8,"city":null}
        """
        with importing:
            from fretsaw.results.write.files import write_file, write_object
            from fretsaw.results.write.formats import format_of
            from fretsaw.results.write.options import WriteOptions
            from fretsaw.results.write.partitions import require_no_input_in, write_partitioned
            from fretsaw.results.write.places import destination, file_object

        options = WriteOptions(compression, row_group_size, bloom_filters)
        keys = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        chosen = format_of(target, format or "parquet" if keys else format)
        listing = self.request.listing()
        if not isinstance(target, str | os.PathLike):
            if keys:
                raise ValueError("partition_by needs a directory, not a file object")
            sink = file_object(target, listing.entries)
            return write_object(*self._streamed(listing), sink, chosen, options)
        access = self.request.access if storage_options is None else Access.of(storage_options)
        place = destination(target, listing.entries, access)
        if keys:
            require_no_input_in(place, listing.entries)
            written = self._streamed(listing)
            return write_partitioned(*written, place, chosen, keys, options, overwrite)
        return write_file(*self._streamed(listing), place, chosen, options, overwrite)

    def splits(self, target_bytes: int = 128 << 20) -> list["Scan"]:
        """Scans that partition this one by byte range, each of about `target_bytes`."""
        if self.request.query.window:
            raise ValueError("a scan with skip(), head() or tail() cannot be split: split it first")
        if target_bytes < 1:
            raise ValueError(f"target_bytes must be at least 1, not {target_bytes}")
        with importing:
            from fretsaw.engine.parts import splits_of

        return [Scan(part) for part in splits_of(self.request, target_bytes)]

    def to_spark(self, spark: "SparkSession", ordered: bool = False) -> "DataFrame":
        """The result as a data frame of Spark: planned now, read by its tasks when it is used.

        `ordered` keeps the rows in the order of the files.
        """
        with importing:
            from fretsaw.spark.pipeline import Job

        return Job(self, spark, ordered=ordered).dataframe()

    # Inside -------------------------------------------------------------------------------------

    def _planner(self) -> "Planner":
        with importing:
            from fretsaw.engine.planner import Planner

        return Planner(self.request)

    def _tables(self) -> Iterator[pa.Table]:
        with importing:
            from fretsaw.results import tables

        yield from tables.stream(self._planner(), STREAM_PIECE)

    def _streamed(self, listing: Listing) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
        """The batches of the files that were listed, and their schema."""
        with importing:
            from fretsaw.results import tables

        planner = Scan(replace(self.request, sources=listing))._planner()
        batches = tables.to_batches(tables.stream(planner, STREAM_PIECE), BATCH_ROWS)
        return batches, planner.columns.schema

    def _rows(self) -> Iterator[Iterator["Row"]]:
        with importing:
            from fretsaw.results import rows, tables

        planner = self._planner()
        pieces = tables.stream(planner, STREAM_PIECE)
        yield rows.rows_of(pieces, planner.columns.nodes, planner.listing.name)

    def _column_batches(
        self, leaf: Path | int | None, batch_size: int | None
    ) -> Iterator["ColumnBatches"]:
        with importing:
            from fretsaw.results import columns, leaves

        pieces = leaves.stream(self._planner(), STREAM_PIECE, leaf)
        yield from columns.column_batches(pieces, batch_size)

    def _only(self, leaf: Path | int) -> "Scan":
        """The same scan without columns that nobody looks at."""
        query = self.request.query
        may_lack_it = self.request.target is not None and self.request.missing_is_null
        is_all = query.columns is None and not query.dropped and not query.renamed
        if not is_all or may_lack_it or not isinstance(leaf, str | tuple):
            return self
        name = leaf if isinstance(leaf, str) else ".".join(leaf)
        is_extra = name in (query.row_index, query.file_path)
        return self._with(columns=() if is_extra else (leaf,))

    def _with(self, **changes: Any) -> "Scan":
        request = self.request
        target = None if {"columns", "dropped"} & changes.keys() else request.target
        query = replace(request.query, **changes)
        return Scan(replace(request, query=query, target=target))

    def _with_window(self, **change: int) -> "Scan":
        window = replace(self.request.query.window, **change)
        if window.tail is not None and (window.skip is not None or window.head is not None):
            raise ValueError("tail() excludes skip() and head()")
        return self._with(window=window)

    def _require_no_window(self) -> None:
        if self.request.query.window:
            raise ValueError("filter before skip/head/tail: they count the rows that match")

    def __reduce__(self) -> tuple[Any, ...]:
        return Scan, (self.request.picklable(),)

    def __repr__(self) -> str:
        parts = "".join(f", {name} {what}" for name, what in self.request.query.told())
        return f"Scan({names_of(self.request.origins)!r}{parts})"

    def _repr_html_(self) -> str:
        return html_table(f"scan of {names_of(self.request.origins)}", self.request.query.told())
