"""Read just the rows you ask for out of Parquet files.

>>> import fretsaw as fs, pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> path = tempfile.mkdtemp() + "/trips.parquet"
>>> pq.write_table(pa.table({"fare": range(1000)}), path, write_page_index=True)
>>> fs.scan(path).skip(500).head(2).to_arrow().to_pydict()
{'fare': [500, 501]}
"""

from fretsaw.errors import (
    ColumnNotFoundError,
    FileFormatError,
    FretsawError,
    PredicateSyntaxError,
    PredicateTypeError,
    SchemaMismatchError,
    SourceNotFoundError,
)
from fretsaw.layout import Block, BlockPredicate, blocks, byte_range
from fretsaw.plan import Plan
from fretsaw.predicate import Column, Predicate, col
from fretsaw.scan import DataFile, Scan, open, scan
from fretsaw.schema import SchemaNode
from fretsaw.selection import RowSelection, RowSelector
from fretsaw.trace import Trace, trace

__version__ = "0.1.0"

__all__ = [
    "Block",
    "BlockPredicate",
    "Column",
    "ColumnNotFoundError",
    "DataFile",
    "FileFormatError",
    "FretsawError",
    "Plan",
    "Predicate",
    "PredicateSyntaxError",
    "PredicateTypeError",
    "RowSelection",
    "RowSelector",
    "Scan",
    "SchemaMismatchError",
    "SchemaNode",
    "SourceNotFoundError",
    "Trace",
    "blocks",
    "byte_range",
    "col",
    "open",
    "scan",
    "trace",
]
