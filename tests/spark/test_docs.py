"""The examples of docs/spark.md, run in a session as they stand there."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def trips(first: int) -> pa.Table:
    rows = range(first, first + 500)
    return pa.table(
        {
            "id": rows,
            "fare": [float(row % 150) for row in rows],
            "tip": [None if row % 9 == 0 else 1.5 for row in rows],
            "address": [{"city": f"city {row % 7}", "floor": row % 3} for row in rows],
        }
    )


def test_the_examples_run_and_say_the_truth(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trips").mkdir()
    pq.write_table(trips(0), tmp_path / "trips" / "1.parquet", row_group_size=100)
    orc.write_table(trips(500), tmp_path / "trips" / "2.orc")
    dear = [row for row in range(1000) if row % 150 > 100]
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) >= 4
    names: dict[str, Any] = {"spark": spark}
    for example in examples:
        exec(example.replace('"/data/', f'"{tmp_path}/'), names)
    assert names["frame"].count() == sum(row in dear or row % 9 == 0 for row in range(1000))
    assert [row.id for row in names["rows"]] == dear[-5:]
    assert fs.scan(tmp_path / "dear").to_arrow()["id"].to_pylist() == dear[10:60]
    assert names["job"].count() == 50
    assert names["trips"].columns == ["id", "fare", "address"]
    assert names["trips"].count() == names["frame"].count()
    assert "avg(fare)" in capfd.readouterr().out
