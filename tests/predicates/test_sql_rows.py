"""Conditions as text: any that can be written is read back, and finds the rows of DuckDB."""

import datetime
import io
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fretsaw as fs
from fretsaw import Predicate, col
from fretsaw.predicates.sql import parse
from fretsaw.predicates.text import Text
from tests.support.conditions import same

# Anything that can be written


Pair = tuple[Predicate, str]


def quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


@st.composite
def columns(draw: st.DrawFn) -> tuple[Any, str]:
    """A column, and how it is written."""
    plain = st.from_regex(r"col_[a-z0-9]{0,3}", fullmatch=True).map(lambda name: (name, name))
    odd = st.tuples(st.text(max_size=5), st.sampled_from('"`'))
    parts = draw(
        st.lists(plain, min_size=1, max_size=6)
        | st.lists(plain | odd.map(lambda pair: (pair[0], quoted(*pair))), min_size=2, max_size=6)
    )
    names, written = tuple(name for name, _ in parts), ".".join(text for _, text in parts)
    column = col(".".join(names) if all(name == text for name, text in parts) else names)
    fold = draw(st.sampled_from(["", "", "any", "all"]))
    return (getattr(column, fold)(), f"{fold}({written})") if fold else (column, written)


SIGNED = st.integers() | st.decimals(allow_nan=False, allow_infinity=False).filter(
    lambda number: not str(number).lstrip("-").isdecimal()
)
VALUES: st.SearchStrategy[tuple[Any, str]] = st.one_of(
    SIGNED.map(lambda number: (number, str(number))),
    st.booleans().map(lambda value: (value, str(value).upper())),
    st.text(max_size=8).map(lambda text: (Text(text), quoted(text, "'"))),
    st.dates().map(lambda day: (day, f"DATE '{day}'")),
    st.times().map(lambda clock: (clock.replace(fold=0), f"TIME '{clock}'")),
    st.datetimes().map(lambda moment: (Text(str(moment)), f"TIMESTAMP '{moment}'")),
)
MIRRORED = {"=": "=", "!=": "!=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARE: dict[str, Callable[[Any, Any], Predicate]] = {
    "=": lambda column, value: column == value,
    "!=": lambda column, value: column != value,
    "<>": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}


@st.composite
def single_tests(draw: st.DrawFn) -> Pair:
    """A test of one column, and how it is written."""
    column, name = draw(columns())
    match draw(st.sampled_from(["compare", "mirror", "in", "between", "like", "null"])):
        case "compare":
            sign, (value, text) = draw(st.sampled_from(sorted(COMPARE))), draw(VALUES)
            return COMPARE[sign](column, value), f"{name} {sign} {text}"
        case "mirror":
            sign, (value, text) = draw(st.sampled_from(sorted(COMPARE))), draw(VALUES)
            return COMPARE[sign](column, value), f"{text} {MIRRORED[sign]} {name}"
        case "in":
            items = draw(st.lists(VALUES | st.just((None, "NULL")), min_size=1, max_size=4))
            listed = ", ".join(text for _, text in items)
            return column.is_in([value for value, _ in items]), f"{name} IN ({listed})"
        case "between":
            (low, low_text), (high, high_text) = draw(VALUES), draw(VALUES)
            return column.is_between(low, high), f"{name} BETWEEN {low_text} AND {high_text}"
        case "like":
            prefix = draw(st.text(max_size=6) | st.text("a%_!", max_size=6))
            pattern = re.sub("([%_!])", r"!\1", prefix) + "%"
            return column.starts_with(prefix), f"{name} LIKE {quoted(pattern, chr(39))} ESCAPE '!'"
    if draw(st.booleans()):
        return column.is_null(), f"{name} IS NULL"
    return column.is_not_null(), f"{name} IS NOT NULL"


def joined(pairs: list[Pair]) -> list[Pair]:
    parts, texts = tuple(part for part, _ in pairs), [f"({text})" for _, text in pairs]
    joined = [reduce(and_, parts), reduce(or_, parts)]
    return list(zip(joined, [" and ".join(texts), " OR ".join(texts)], strict=True))


CONDITIONS: st.SearchStrategy[Pair] = st.recursive(
    single_tests(),
    lambda inner: (
        inner.map(lambda pair: (~pair[0], f"NOT ({pair[1]})"))
        | st.lists(inner, min_size=2, max_size=4).map(joined).flatmap(st.sampled_from)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(CONDITIONS)
def test_what_is_written_is_what_is_read(pair: Pair) -> None:
    expected, text = pair
    same(text, expected)


WORDS = st.sampled_from(
    [
        *(
            "a",
            "b.c",
            '"d e"',
            "1",
            "-2.5",
            "'x'",
            "'y%'",
            "null",
            "true",
            "any(",
            "all(",
            "(",
            ")",
        ),
        *("=", "!=", "<", ">=", "and", "or", "not", "in", "is", "between", "like", "escape", ","),
        *("date", "time", "timestamp", "cast(", "as", "if", "case", "when", "select", "exists("),
        *("*", "+", "-", ".", "[", "]", "{", "}", ":", "?", "@", "$", "#", "||", "::", "->", ";"),
        *("--", "/*", "*/", "'", '"', "`", "\n", "interval", "with", "values", "insert", "show"),
    ]
)


@settings(max_examples=300)
@given(st.text() | st.lists(WORDS, max_size=12).map(" ".join) | st.binary().map(repr))
@example("\ud800 = 1")
@example("a = '\ud800'")
@example("a = \0")
@example("a = ²")
@example("a = ٣")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(parse(text), Predicate)
    except fs.PredicateSyntaxError as error:
        message, line, below = str(error).rsplit("\n", 2)
        assert message
        assert len(below) <= len(line) + len(text) + 1


# The rows that they find


IDS = [uuid.UUID(int=n * 2**90 + n) for n in range(8)]
START = datetime.datetime(2024, 2, 28, 22, 30)
MOMENTS = [START + datetime.timedelta(hours=n, microseconds=n) for n in range(8)]


def with_null(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([*values, None], kind)


TABLE = pa.table(
    {
        "id": pa.array(range(9), pa.int32()),
        "i": with_null([-3, -1, 0, 1, 2, 5, 8, 1000], pa.int64()),
        "f": with_null([-2.5, -1.0, 0.5, 1.0, 1.5, 3.25, 1e10, float("nan")], pa.float64()),
        "d": with_null([Decimal(n) / 4 for n in range(-3, 5)], pa.decimal128(9, 2)),
        "s": with_null(["", "a", "ab", "a_b", "a%b", "it's", "5", "é"], pa.string()),
        "day": with_null([moment.date() for moment in MOMENTS], pa.date32()),
        "local": with_null(MOMENTS, pa.timestamp("us")),
        "utc": with_null(MOMENTS, pa.timestamp("us", "UTC")),
        "clock": with_null([moment.time() for moment in MOMENTS], pa.time64("us")),
        "yes": with_null([True, False] * 4, pa.bool_()),
        "u": with_null([value.bytes for value in IDS], pa.uuid()),
        "a b": with_null([1, 2] * 4, pa.int8()),
    }
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "table.parquet"
    pq.write_table(TABLE, path, row_group_size=4, write_page_index=True)
    return path


@pytest.fixture(scope="module")
def database(file: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    connection.execute(f"create table t as from read_parquet('{file}')")
    return connection


TEXTS = [
    "i > 1",
    "1 >= i",
    "i = '5'",
    "i in ('5', 1, null)",
    "i not in (5, null)",
    "i not in (5, 1)",
    "i between '-1' and 2",
    "not (i between -1 and 2)",
    "i != 5 or i is null",
    "i < 99999999999999999999",
    "f = '1.5'",
    "f > 1.5",
    "f <= '1e10'",
    "f = 'nan'",
    "not f > 1.0",
    "d = '0.25'",
    "d >= 0.25 and d < DECIMAL '1'",
    "d in (-0.75, '0.5')",
    "s = 'a'",
    "s >= 'a'",
    "s like 'a%'",
    "s not like 'a%'",
    "s like 'a!_%' escape '!'",
    "s like 'it''s'",
    "s in ('5', 'é', '')",
    "day = '2024-02-29'",
    "day > DATE '2024-02-28'",
    "day between '2024-02-28' and CAST('2024-02-28' AS DATE)",
    "local = '2024-02-28 23:30:00.000001'",
    "local >= TIMESTAMP '2024-02-29 00:30:00.000002'",
    "local < '2024-02-29'",
    "utc = '2024-02-28 23:30:00.000001'",
    "utc = '2024-02-29 01:30:00.000001+02'",
    "local >= DATE '2024-02-29'",
    "utc > TIMESTAMPTZ '2024-02-29 00:00:00Z'",
    "clock >= '23:00:00'",
    "clock < TIME '02:30:00.5'",
    "yes = true",
    "yes = 'false'",
    "yes is true",
    "yes is not true",
    "not yes = true",
    f"u = '{IDS[3]}'",
    f"u in ('{IDS[1]}', '{IDS[7]}')",
    f"u > '{IDS[4]}'",
    '"a b" = 2 and i is not null',
    "i > 0 and s like 'a%' or f < 0",
    "not (i > 0 or f < 0) and day is not null",
    "i is null and s is null",
]


@pytest.mark.parametrize("text", TEXTS)
def test_rows_are_those_that_duckdb_finds(
    text: str, file: Path, database: duckdb.DuckDBPyConnection
) -> None:
    expected = database.execute(f"select id from t where {text} order by id").fetchall()
    found = fs.scan(file).filter(text).to_arrow()["id"].to_pylist()
    assert found == [row[0] for row in expected]


@settings(max_examples=60)
@given(
    st.recursive(
        st.sampled_from(TEXTS),
        lambda inner: (
            inner.map(lambda text: f"not ({text})")
            | st.tuples(
                inner, st.sampled_from([" and ", " or ", " and not ", " or not "]), inner
            ).map("".join)
        ),
        max_leaves=5,
    )
)
def test_connected_texts_find_what_duckdb_finds(
    file: Path, database: duckdb.DuckDBPyConnection, text: str
) -> None:
    expected = database.execute(f"select id from t where {text} order by id").fetchall()
    found = fs.scan(file).filter(text).to_arrow()["id"].to_pylist()
    assert found == [row[0] for row in expected]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("any(x.element) > 4", [3, 4]),
        ("all(x.element) > 4", [1, 4]),
        ("any(x.element) in (5)", [3, 4]),
        ("any(x.element) not in (5)", [2, 3, 4]),
        ("not any(x.element) in (5)", [1]),
        ("all(x.element) not in (1)", [1, 4]),
        ("any(x.element) is null", [2]),
        ("any(x.element) is not null", [2, 3, 4]),
        ("not any(x.element) is null", [1, 3, 4]),
    ],
)
def test_folds_find_rows_by_their_elements(text: str, rows: list[int]) -> None:
    lists = [None, [], [1, None], [1, 5], [5, 6]]
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(5), "x": pa.array(lists, pa.list_(pa.int32()))}), sink)
    assert fs.scan(sink.getvalue()).filter(text).to_arrow()["id"].to_pylist() == rows


def test_a_text_that_does_not_fit_its_column_is_a_type_error(file: Path) -> None:
    for text in ("i = 'x'", "day = 'today'", "u = 'x'", "yes = 'maybe'", "local = '2024-02-29Z'"):
        with pytest.raises(fs.PredicateTypeError):
            fs.scan(file).filter(text).to_arrow()


def test_filter_points_at_the_place_in_the_text(file: Path) -> None:
    with pytest.raises(fs.PredicateSyntaxError, match=r"IS NOT NULL\n  i = null\n      \^"):
        fs.scan(file).filter("i = null")
