"""What is written again as other files, and what pyarrow reads of it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.written_files import rich, write_parts


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_parts(tmp_path_factory.mktemp("input"), rich())


@pytest.fixture(scope="module")
def read(parts: list[Path]) -> pa.Table:
    """What pyarrow reads of the input."""
    return pa.concat_tables(map(pq.read_table, parts))
