"""Other libraries that write files: whether they are there, and how several tests use them."""

import importlib
import os
import warnings
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest


def missing(what: str) -> NoReturn:
    """A writer that is missing fails CI; it may be missing on a user's machine."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing: its files cannot be tested")
    pytest.skip(f"{what} is missing: its files are not tested")


def need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        missing(module)


def by_fastparquet(table: pa.Table, path: Path, page_version: int) -> None:
    fastparquet = need("fastparquet")
    frame = table.to_pandas()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # It calls what pandas has deprecated.
        warnings.simplefilter("ignore")
        patch.setattr(fastparquet.writer, "DATAPAGE_VERSION", page_version)
        patch.setattr(fastparquet.writer, "MAX_PAGE_SIZE", 300)
        fastparquet.write(str(path), frame, row_group_offsets=60, compression="SNAPPY")


def spark_file(frame: Any, folder: Path, layout: tuple[str, str, str]) -> Path:
    version, stamps, legacy = layout
    settings = frame.sparkSession.conf
    settings.set("spark.sql.parquet.outputTimestampType", stamps)
    settings.set("spark.sql.parquet.writeLegacyFormat", legacy)
    pages = {
        "parquet.page.size": "256",
        "parquet.page.row.count.limit": "20",
        "parquet.page.size.row.check.min": "10",
        "parquet.writer.version": version,
    }
    frame.write.options(**pages).parquet(str(folder))
    (path,) = folder.glob("*.parquet")
    return path
