"""The command in this process, and files for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fretsaw.cli import main
from tests.support.commands import MANY, ROWS, Ran, Run


@pytest.fixture
def run(capsysbinary: Any) -> Run:
    """Runs the command in this process."""

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        written = capsysbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, written.out, written.err.decode())

    return run


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of two files."""
    folder = tmp_path_factory.mktemp("trips")
    table = pa.table(
        {
            "id": range(ROWS),
            "fare": [None if row % 7 == 0 else row / 4 for row in range(ROWS)],
            "city": [("NYC", "LA", 'a "quoted", name')[row % 3] for row in range(ROWS)],
        }
    )
    for number in range(2):
        part = table.slice(number * ROWS // 2, ROWS // 2)
        path = folder / f"{number}.parquet"
        pq.write_table(part, path, row_group_size=1_000, write_page_index=True)
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with more rows than anybody waits for: as text, they take seconds."""
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    pq.write_table(pa.table({name: np.arange(MANY) for name in "abc"}), path)
    return path
