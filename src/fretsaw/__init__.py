"""Read just the rows you ask for out of Parquet and ORC files.

>>> import fretsaw as fs, pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> path = tempfile.mkdtemp() + "/trips.parquet"
>>> pq.write_table(pa.table({"fare": range(1000)}), path, write_page_index=True)
>>> fs.scan(path).skip(500).head(2).to_arrow().to_pydict()
{'fare': [500, 501]}
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fretsaw.datafile import DataFile, open
from fretsaw.engine.summary import Plan
from fretsaw.errors import (
    ColumnNotFoundError,
    CorruptFileWarning,
    FileFormatError,
    FretsawError,
    NotWritableError,
    PredicateError,
    PredicateSyntaxError,
    PredicateTypeError,
    SchemaMismatchError,
    SourceNotFoundError,
    StorageError,
)
from fretsaw.model.block_predicates import BlockPredicate, blocks, byte_range
from fretsaw.model.blocks import Block
from fretsaw.model.locks import importing
from fretsaw.model.schema import SchemaNode
from fretsaw.model.selection import RowSelection, RowSelector
from fretsaw.model.trace import Trace, trace
from fretsaw.predicates.expression import Column, Expression, coalesce, col, element, when
from fretsaw.predicates.logic import Predicate
from fretsaw.scan import Scan, scan

if TYPE_CHECKING:
    from fretsaw.results.columns import ColumnBatch, ColumnBatches, Layer, LayerKind, Validity
    from fretsaw.results.rows import Row
    from fretsaw.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "Block",
    "BlockPredicate",
    "Column",
    "ColumnBatch",
    "ColumnBatches",
    "ColumnNotFoundError",
    "CorruptFileWarning",
    "DataFile",
    "Expression",
    "FileFormatError",
    "FretsawError",
    "Layer",
    "LayerKind",
    "NotWritableError",
    "Plan",
    "Predicate",
    "PredicateError",
    "PredicateSyntaxError",
    "PredicateTypeError",
    "Row",
    "RowSelection",
    "RowSelector",
    "Scan",
    "SchemaMismatchError",
    "SchemaNode",
    "SourceNotFoundError",
    "StorageError",
    "Trace",
    "Validity",
    "blocks",
    "byte_range",
    "coalesce",
    "col",
    "element",
    "open",
    "scan",
    "show_versions",
    "trace",
    "when",
]

_COLUMNS = ("ColumnBatch", "ColumnBatches", "Layer", "LayerKind", "Validity")
_IMPORTED_WHEN_USED = {
    **dict.fromkeys(_COLUMNS, "results.columns"),
    "Row": "results.rows",
    "show_versions": "versions",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with importing:
        return getattr(import_module(f"{__name__}.{_IMPORTED_WHEN_USED[name]}"), name)
