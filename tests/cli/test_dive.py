"""The viewer, walked through by its keys; what it shows is held against pyarrow."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from fretsaw.cli.dive.app import Viewer
from fretsaw.cli.dive.table import WindowedTable
from fretsaw.errors import FileFormatError, SourceNotFoundError
from tests.support.commands import Run

ROWS, GROUP = 4_000, 1_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table(
        {
            "id": range(ROWS),
            "city": [("NYC", "LA", None)[row % 3] for row in range(ROWS)],
            "place": [{"x": row * 2, "y": -row} for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Path:
    path = tmp_path_factory.mktemp("dive") / "a.parquet"
    pq.write_table(table, path, row_group_size=GROUP, max_rows_per_page=250, write_page_index=True)
    return path


class Walk:
    """A viewer under way: keys in, texts out."""

    def __init__(self, viewer: Viewer, pilot: Pilot[None]) -> None:
        self.viewer, self.pilot = viewer, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until all that is in sight has been read."""
        for _ in range(1_000):
            await self.pilot.pause(0.01)
            if not self.viewer.is_busy and not self.table.is_waiting:
                return
        raise AssertionError("the viewer never came to rest")

    async def answer(self, key: str, text: str) -> None:
        """Open a prompt by its key and answer it."""
        await self.press(key)
        self.viewer.query_one("#prompt", Input).value = text
        await self.press("enter")

    @property
    def table(self) -> WindowedTable:
        return self.viewer.query_one(WindowedTable)

    def column(self, header: str) -> list[str]:
        """What a column of the table on the screen shows, from the first entry on."""
        listing = self.table.listing
        assert listing is not None
        place = list(listing.headers).index(header)
        entries = (self.table.text_at(entry) for entry in range(listing.length))
        return [texts[place] for texts in entries if texts is not None]

    def text(self, name: str) -> str:
        return str(self.viewer.query_one(f"#{name}", Static).content)


def dive(
    path: object, steps: Callable[[Walk], Awaitable[None]], condition: str | None = None
) -> Viewer:
    """Look at a file by these steps."""
    viewer = Viewer(str(path), condition, {})

    async def run() -> None:
        async with viewer.run_test(size=(120, 40)) as pilot:
            walk = Walk(viewer, pilot)
            await walk.settle()
            await steps(walk)

    asyncio.run(run())
    return viewer


def test_walks_from_the_file_to_a_row(parquet: Path, table: pa.Table) -> None:
    metadata = pq.read_metadata(parquet)

    async def steps(walk: Walk) -> None:
        groups = [metadata.row_group(ordinal) for ordinal in range(metadata.num_row_groups)]
        assert walk.column("rows") == [f"{group.num_rows:,}" for group in groups]
        await walk.press("down", "enter")
        chunks = [groups[1].column(leaf) for leaf in range(metadata.num_columns)]
        assert walk.column("column") == [chunk.path_in_schema for chunk in chunks]
        assert walk.column("nulls") == [str(chunk.statistics.null_count) for chunk in chunks]
        assert walk.column("min") == [str(chunk.statistics.min) for chunk in chunks]
        await walk.press("enter")
        assert walk.column("first row") == ["1,000", "1,250", "1,500", "1,750"]
        await walk.press("down", "enter")
        shown = walk.column("id")
        assert shown == [str(number) for number in range(1_250, 1_250 + len(shown))]
        await walk.press("down", "enter")
        assert walk.text("way") == "a.parquet > block 1 > id > page 1 > row 1,251"
        row = table.slice(1_251, 1).to_pylist()[0]
        assert walk.column("column") == list(row)
        assert walk.column("value")[:2] == [str(row["id"]), row["city"] or "null"]

    dive(parquet, steps)


def test_goes_back_to_where_the_cursor_was(parquet: Path) -> None:
    async def steps(walk: Walk) -> None:
        await walk.press("down", "down", "enter", "down", "enter")
        await walk.press("escape")
        assert (walk.text("way"), walk.table.cursor) == ("a.parquet > block 2", 1)
        await walk.press("backspace")
        assert (walk.text("way"), walk.table.cursor) == ("a.parquet", 2)
        await walk.press("escape")
        assert walk.text("way") == "a.parquet"

    dive(parquet, steps)


def test_searches_names_of_columns(parquet: Path) -> None:
    async def steps(walk: Walk) -> None:
        await walk.answer("slash", "place")
        assert walk.text("way") == "a.parquet > block 0"
        assert walk.column("column")[walk.table.cursor] == "place.x"
        await walk.press("n")
        assert walk.column("column")[walk.table.cursor] == "place.y"
        await walk.answer("slash", "nowhere")
        assert "nowhere" in walk.text("said")

    dive(parquet, steps)


def test_a_filter_tells_what_may_match_and_shows_what_does(parquet: Path) -> None:
    async def steps(walk: Walk) -> None:
        await walk.answer("f", "id between 2300 and 2600 and city = 'LA'")
        listing = walk.table.listing
        assert listing is not None
        assert listing.kept is not None
        assert listing.kept.tolist() == [False, False, True, False]
        await walk.press("tab")
        assert walk.table.cursor == 2
        await walk.press("enter", "enter")
        assert walk.column("may match") == ["0", "250", "250", "0"]
        await walk.press("tab", "enter")
        matching = [str(row) for row in range(2_300, 2_500) if row % 3 == 1]
        shown = walk.column("id")
        assert shown == matching[: len(shown)]
        assert f"{len(matching)} rows that match" in walk.text("note")
        await walk.answer("f", "")
        assert walk.table.listing is not None
        assert walk.table.listing.length == 250

    dive(parquet, steps)


def test_a_condition_that_cannot_be_is_told_and_can_be_mended(parquet: Path) -> None:
    async def steps(walk: Walk) -> None:
        await walk.answer("f", "idd > 3")
        assert "idd" in walk.text("said")
        prompt = walk.viewer.query_one("#prompt", Input)
        assert prompt.has_focus
        prompt.value = "id > 3500"
        await walk.press("enter")
        assert walk.table.has_focus
        assert walk.column("may match") == ["0", "0", "0", "500"]

    dive(parquet, steps)


def test_orc_has_strides_for_pages(tmp_path: Path, table: pa.Table) -> None:
    path = tmp_path / "a.orc"
    po.write_table(table, path, row_index_stride=1_000)

    async def steps(walk: Walk) -> None:
        assert walk.column("rows") == [f"{ROWS:,}"]
        await walk.press("enter", "enter")
        assert walk.column("min") == ["0", "1000", "2000", "3000"]
        await walk.press("end", "enter")
        assert walk.column("id")[:3] == ["3000", "3001", "3002"]

    dive(path, steps)


def test_of_many_columns_only_those_in_sight_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    names = [f"column_{number}" for number in range(1_000)]
    pq.write_table(pa.table({name: [number] for number, name in enumerate(names)}), path)

    async def steps(walk: Walk) -> None:
        await walk.press("enter", "end")
        assert walk.table.text_at(999) is not None
        assert walk.table.text_at(500) is None
        assert walk.column("column")[-1] == names[-1]

    dive(path, steps)


def test_what_cannot_be_opened_is_told_on_the_screen(tmp_path: Path, parquet: Path) -> None:
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(parquet.read_bytes()[:-100])

    async def steps(walk: Walk) -> None:
        assert str(walk.viewer.failure) == walk.text("said")
        await walk.press("enter", "f", "escape", "q")

    assert isinstance(dive(damaged, steps).failure, FileFormatError)
    assert isinstance(dive(tmp_path / "none.parquet", steps).failure, SourceNotFoundError)


def test_needs_a_terminal(run: Run, parquet: Path) -> None:
    ran = run("dive", parquet)
    assert ran.code == 1
    assert "dive needs a terminal" in ran.err
