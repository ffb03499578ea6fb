"""A lake of both formats in Hive folders, random scans of it, and the rows that they must give.

Which rows match, DuckDB says, of the tables that the files were written from; windows are slices of
a list. Scans can be pickled with their rows, to be run by a driver in another process.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import fretsaw as fs
from fretsaw import col
from tests.support.formats import in_blocks, written

Row = dict[str, Any]

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "fare": pa.float64(),
        "price": pa.decimal128(9, 2),
        "city": pa.string(),
        "day": pa.date32(),
        "tags": pa.list_(pa.string()),
        "spot": pa.struct({"x": pa.int32(), "y": pa.string()}),
    }
)
CITIES = ("Bergen", "Oslo", "Oslo East", "Tromsø", None)
FIRST_DAY = date(2024, 1, 1)
# The writer, rows and rows of a block of each file; the fourth has none, the sixth only one.
FILES = (
    ("parquet", 300, 70),
    ("orc", 260, 50),
    ("parquet", 240, 240),
    ("parquet", 0, 1),
    ("pyorc", 310, 90),
    ("parquet", 1, 1),
    ("orc", 150, 40),
    ("parquet", 180, 60),
    ("pyorc", 90, 30),
)
FILES_PER_FOLDER = 3


@dataclass(frozen=True)
class Lake:
    """A folder, the rows in it, and for each where it lies."""

    root: Path
    rows: list[Row]
    places: pa.Table

    def matching(self, condition: str) -> list[int]:
        """The row numbers where an SQL condition is true."""
        import duckdb

        with duckdb.connect() as connection:
            connection.register("places", self.places)
            query = f"SELECT pos FROM places WHERE {condition} ORDER BY pos"
            return [found for (found,) in connection.execute(query).fetchall()]


@dataclass(frozen=True)
class Request:
    """A scan, how to run it, and its rows."""

    scan: fs.Scan
    rows: list[Row]
    ordered: bool
    target_bytes: int | None
    planned_by_tasks: bool


def make_lake(root: Path) -> Lake:
    """Write the files; values are random but for `id`, which rises."""
    rng = random.Random(8)
    rows: list[Row] = []
    places: list[Row] = []
    for number, (writer, count, block) in enumerate(FILES):
        kind = number // FILES_PER_FOLDER
        path = root / f"kind={kind}" / f"part-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = len(rows)
        found = [random_row(first + at, rng) for at in range(count)]
        table = pa.Table.from_pylist(found, schema=SCHEMA)
        sizes = [min(block, count - start) for start in range(0, count, block)]
        path.write_bytes(data := written(table, writer, sizes, **small_pages(writer)))
        rows += [{**row, "kind": kind} for row in found]
        for ordinal, place in enumerate(in_blocks(data)):
            where = {"kind": kind, "path": str(path), "block": ordinal, "mid": place.midpoint}
            places += [{**found[at], **where, "pos": first + at} for at in place.rows]
    assert len(places) == len(rows)
    columns = {"kind": pa.int64(), "path": pa.string(), "block": pa.int64(), "mid": pa.int64()}
    schema = pa.schema([*SCHEMA, *pa.schema({**columns, "pos": pa.int64()})])
    return Lake(root, rows, pa.Table.from_pylist(places, schema=schema))


def small_pages(writer: str) -> dict[str, Any]:
    if writer == "parquet":
        return {"write_page_index": True, "max_rows_per_page": 20, "write_batch_size": 10}
    return {"row_index_stride": 1000} if writer == "orc" else {}


def random_row(number: int, rng: random.Random) -> Row:
    tags = [rng.choice(["a", "b", "c", None]) for _ in range(rng.randint(0, 3))]
    spot = {"x": rng.randint(-5, 5), "y": rng.choice(["n", "s", None])}
    return {
        "id": number,
        "fare": rng.choice([None, float("nan"), rng.randint(0, 400) / 8]),
        "price": Decimal(rng.randint(-500, 500)).scaleb(-2),
        "city": rng.choice(CITIES),
        "day": FIRST_DAY + timedelta(days=number // 10),
        "tags": rng.choice([tags, tags, None]),
        "spot": rng.choice([spot, spot, None]),
    }


# Scans


def random_request(lake: Lake, rng: random.Random) -> Request:
    scan = fs.scan(lake.root)
    conditions: list[str] = []
    for _ in range(rng.choice([0, 1, 1, 2])):
        predicate, condition = random_predicate(lake, rng)
        scan = scan.filter(predicate)
        conditions.append(f"({condition})")
    total = len(lake.rows)
    positions = lake.matching(" and ".join(conditions) or "true")
    if rng.random() < 0.2:
        chosen = set(rng.sample(range(total), rng.choice([0, 5, total // 2])))
        scan = scan.select_rows(sorted(chosen))
        positions = [position for position in positions if position in chosen]
    scan, positions = windowed(scan, positions, rng)
    paths = lake.places["path"]
    names, scan = projected(scan, rng)
    rows = [projection(lake.rows[position], names) for position in positions]
    if rng.random() < 0.3:
        scan = scan.with_row_index()
        rows = [{"index": at, **row} for at, row in zip(positions, rows, strict=True)]
    if rng.random() < 0.3:
        scan = scan.with_file_path()
        rows = [{**row, "path": paths[at].as_py()} for at, row in zip(positions, rows, strict=True)]
    target_bytes = rng.choice([None, 1, 3_000])
    return Request(scan, rows, rng.random() < 0.5, target_bytes, rng.random() < 0.5)


def random_predicate(lake: Lake, rng: random.Random) -> tuple[Any, str]:
    """What fretsaw is given, and the same for DuckDB."""
    if rng.random() < 0.25:
        return block_predicate(rng)
    if rng.random() < 0.2:
        tag = rng.choice("abcd")
        return col("tags").any() == tag, f"list_bool_or([tag = '{tag}' for tag in tags])"
    if rng.random() < 0.1:
        return col("fare").is_nan(), "isnan(fare)"
    text = random_condition(len(lake.rows), rng)
    if rng.random() < 0.4:
        text = f"{text} {rng.choice(['and', 'or'])} {random_condition(len(lake.rows), rng)}"
    if rng.random() < 0.2:
        text = f"not ({text})"
    return text, text


def block_predicate(rng: random.Random) -> tuple[Any, str]:
    if rng.random() < 0.5:
        first, last = rng.randint(-1, 4), rng.randint(0, 5)
        return fs.blocks(first, last), f"block >= {first} and block < {last}"
    start, end = rng.randint(-100, 9_000), rng.randint(0, 20_000)
    return fs.byte_range(start, end), f"mid >= {start} and mid < {end}"


def random_condition(total: int, rng: random.Random) -> str:
    first = rng.randint(-5, total + 5)
    day = FIRST_DAY + timedelta(days=rng.randint(0, total // 10))
    conditions = [
        f"id {rng.choice(['<', '>=', '=', '!='])} {first}",
        f"id between {first} and {first + rng.choice([0, 30, 600])}",
        f"fare {rng.choice(['<', '<=', '>', '!='])} {rng.randint(0, 400) / 8}",
        f"fare is {rng.choice(['', 'not '])}null",
        f"price > {Decimal(rng.randint(-500, 500)).scaleb(-2)}",
        f"city in ('Oslo', '{rng.choice(['Tromsø', 'Nowhere'])}')",
        f"city like '{rng.choice(['Os', 'Oslo ', 'X'])}%'",
        f"day <= '{day}'",
        f"spot.x {rng.choice(['<', '='])} {rng.randint(-5, 5)}",
        f"kind {rng.choice(['=', '!=', '>'])} {rng.randint(0, 3)}",
    ]
    return rng.choice(conditions)


def windowed(scan: fs.Scan, positions: list[int], rng: random.Random) -> tuple[fs.Scan, list[int]]:
    def count() -> int:
        return rng.choice([0, 1, rng.randint(0, len(positions) + 3), rng.randint(0, 60)])

    skip, head = count(), count()
    match rng.choice(["all", "skip", "head", "both", "both", "tail"]):
        case "skip":
            return scan.skip(skip), positions[skip:]
        case "head":
            return scan.head(head), positions[:head]
        case "both":
            return scan.skip(skip).head(head), positions[skip : skip + head]
        case "tail":
            return scan.tail(head), positions[max(len(positions) - head, 0) :]
    return scan, positions


def projected(scan: fs.Scan, rng: random.Random) -> tuple[list[str], fs.Scan]:
    everything = [*SCHEMA.names, "kind"]
    if rng.random() < 0.4:
        return everything, scan
    inside = [*everything, "spot.x"]
    inside.remove("spot")
    names = rng.sample(rng.choice([everything, inside]), rng.choice([0, 1, 2, 4]))
    return names, scan.select(*names)


def projection(row: Row, names: list[str]) -> Row:
    found = {name: row[name] for name in names if name != "spot.x"}
    if "spot.x" in names:
        found["spot"] = row["spot"] and {"x": row["spot"]["x"]}
    return found


# Comparing


def comparable(rows: list[Row], ordered: bool) -> list[Row]:
    """Rows that can be compared for equality, in which NaN equals itself."""
    found = [
        {name: value if value == value else "NaN" for name, value in row.items()} for row in rows
    ]
    return found if ordered else sorted(found, key=lambda row: repr(sorted(row.items())))


def assert_rows(actual: list[Row], expected: list[Row], ordered: bool) -> None:
    assert len(actual) == len(expected)
    assert comparable(actual, ordered) == comparable(expected, ordered)


def files_of(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.is_file())
