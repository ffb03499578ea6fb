"""The public face: what `fretsaw` exports, and nothing else."""

import subprocess
import sys

import fretsaw as fs


def test_exports_are_pinned() -> None:
    assert set(fs.__all__) == {
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
        "Plan",
        "Predicate",
        "NotWritableError",
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
    }
    assert all(hasattr(fs, name) for name in fs.__all__)


def test_errors_are_the_builtins_that_users_catch() -> None:
    assert issubclass(fs.SourceNotFoundError, FileNotFoundError)
    assert issubclass(fs.StorageError, OSError)
    assert issubclass(fs.ColumnNotFoundError, KeyError)
    assert issubclass(fs.PredicateTypeError, TypeError)
    assert issubclass(fs.PredicateSyntaxError, ValueError)
    for name in fs.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(fs, name), fs.FretsawError)


def test_import_is_light() -> None:
    heavy = "{'pandas', 'polars', 'pyspark', 'sqlglot', 'google.protobuf', 'obstore', 'rich'}"
    code = f"import sys, fretsaw; print({heavy} & set(sys.modules) or 'none')"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "none"
