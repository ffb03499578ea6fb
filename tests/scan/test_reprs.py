"""How scans, plans, traces and selections show themselves, in a terminal and in a notebook."""

import html
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "trips.parquet"
    table = pa.table({"id": range(1_000), "fare": np.arange(1_000) / 4, "<b>": ["x"] * 1_000})
    pq.write_table(table, file, row_group_size=100, write_page_index=True)
    return file


def text_of(page: str) -> str:
    """What a browser would show of well-formed HTML."""
    return " ".join(ElementTree.fromstring(f"<div>{page}</div>").itertext())


def test_a_scan_shows_its_columns_and_its_condition(path: Path) -> None:
    scan = fs.scan(path).select("id", "fare").filter(col("fare") > 100).skip(5).head(1_000)
    shown = repr(scan)
    assert shown.startswith("Scan(")
    assert str(path) in shown
    for part in ("select id, fare", repr(col("fare") > 100), "skip 5", "head 1,000"):
        assert part in shown
        assert part.split()[-1] in text_of(scan._repr_html_())
    assert "\n" not in shown


def test_few_of_many_columns_are_shown(path: Path) -> None:
    shown = repr(fs.scan(path).select([f"c{i}" for i in range(500)]))
    assert "c7, ... and 492 more" in shown
    assert "c8" not in shown
    assert "no columns" in repr(fs.scan(path).select())


def test_other_parts_of_a_scan_are_shown(path: Path) -> None:
    scan = fs.scan(path).drop("id").rename({"fare": "price"}).select_rows([3, 5]).with_row_index()
    shown = repr(scan)
    for part in ("drop id", "rename fare as price", "select_rows 2", "with index"):
        assert part in shown
    assert "in blocks(0, 3)" in repr(fs.scan(path).filter(fs.blocks(0, 3)))


def test_nothing_is_read_to_show_a_scan() -> None:
    with fs.trace() as t:
        scan = fs.scan("not/there.parquet").filter("a > 1")
        assert "not/there.parquet" in repr(scan) + scan._repr_html_()
    assert t.requests == 0


def test_a_plan_as_text_is_what_explain_says(path: Path) -> None:
    scan = fs.scan(path).filter("fare > 200").select("id")
    assert str(scan.plan()) == scan.explain()


def test_a_plan_in_a_notebook_has_its_numbers(path: Path) -> None:
    plan = fs.scan(path).filter("id > 800").select("id").plan()
    shown = text_of(plan._repr_html_())
    assert f"{plan.block_count.kept} of {plan.block_count.total}" in shown
    assert f"{plan.rows.kept} of {plan.rows.total:,}" in shown
    assert "blocks dropped by statistics" in shown


def test_what_is_no_html_is_escaped(path: Path) -> None:
    scan = fs.scan(path).select("<b>").filter(col("<b>") == "</table><script>")
    for page in (scan._repr_html_(), scan.plan()._repr_html_()):
        assert "<script" not in page
        assert "</table><script>" in html.unescape(page)
        assert "<b>" in text_of(page)


def test_a_trace_is_short(path: Path) -> None:
    with fs.trace() as t:
        fs.scan(path).filter("fare > 200").to_arrow()
    shown = repr(t)
    assert re.fullmatch(r"Trace\(.*\)", shown)
    assert len(shown) < 120
    assert f"{t.requests:,} requests" in shown
    assert f"{t.pages_decoded:,} pages decoded" in shown
    assert f"{t.requests:,}" in text_of(t._repr_html_())


def test_a_selection_is_a_bar() -> None:
    half = fs.RowSelection.from_ranges([(0, 600), (900, 901)], 1_200)
    bar = str(half).split("|")[1]
    assert bar[:30] == "█" * 30
    assert set(bar[30:45]) | set(bar[46:]) == {" "}
    assert bar[45] not in " █"
    assert str(half).endswith("601 of 1,200 rows")
    shares = ElementTree.fromstring(f"<div>{half._repr_html_()}</div>").iter("rect")
    assert [int(rect.attrib["x"]) for rect in shares] == [*range(30), 45]


@pytest.mark.parametrize("rows", [0, 1, 7, 59, 61])
def test_bars_of_few_rows(rows: int) -> None:
    everything, nothing = fs.RowSelection.all(rows), fs.RowSelection.none(rows)
    assert set(str(everything).split("|")[1]) == ({"█"} if rows else {" "})
    assert set(str(nothing).split("|")[1]) == {" "}
