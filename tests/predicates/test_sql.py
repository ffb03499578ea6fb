"""Conditions as text: each form against the expression it stands for, then against DuckDB."""

import datetime
import io
import logging
import re
import subprocess
import sys
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
from fretsaw.predicates.expression import And, Or, columns_of
from fretsaw.predicates.sql import parse
from fretsaw.predicates.text import Text

A, B, C = col("a") == 1, col("b") == 2, col("c") == 3
DAY = datetime.date(2024, 2, 29)


def same(text: str, expected: Predicate) -> None:
    """The text reads as the expression, down to how its paths are spelled."""
    read = parse(text)
    assert repr(read) == repr(expected)
    assert list(columns_of(read)) == list(columns_of(expected))


# What can be written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", col("a") == 1),
        ("a == 1", col("a") == 1),
        ("a != 1", col("a") != 1),
        ("a <> 1", col("a") != 1),
        ("a < 1", col("a") < 1),
        ("a <= 1", col("a") <= 1),
        ("a > 1", col("a") > 1),
        ("a >= 1", col("a") >= 1),
        ("a>1", col("a") > 1),
    ],
)
def test_comparisons(text: str, expected: Predicate) -> None:
    same(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 = a", col("a") == 5),
        ("5 != a", col("a") != 5),
        ("5 < a", col("a") > 5),
        ("5 <= a", col("a") >= 5),
        ("5 > a", col("a") < 5),
        ("-5 >= a", col("a") <= -5),
        ("'x' < a", col("a") > Text("x")),
        ("1.5 < a", col("a") > Decimal("1.5")),
        ("DATE '2024-02-29' <= a", col("a") >= DAY),
        ("TIME '01:02' <= a", col("a") >= datetime.time(1, 2)),
        ("true = a", col("a") == True),  # noqa: E712
    ],
)
def test_a_value_on_the_left_mirrors_the_comparison(text: str, expected: Predicate) -> None:
    same(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 and b = 2", A & B),
        ("a = 1 AND b = 2 And c = 3", And((A, B, C))),
        ("a = 1 or b = 2 or c = 3", Or((A, B, C))),
        ("a = 1 or b = 2 and c = 3", A | (B & C)),
        ("(a = 1 or b = 2) and c = 3", (A | B) & C),
        ("a = 1 and (b = 2 and c = 3)", A & (B & C)),
        ("not a = 1 and b = 2", ~A & B),
        ("not (a = 1 and b = 2)", ~(A & B)),
        ("not not a = 1", ~~A),
        ("(((a))) = ((1))", A),
        ("  a\n=\t1  ", A),
        ("a = 1 -- it's\n and /* ; */ b = 2", A & B),
    ],
)
def test_connectives_bind_as_in_sql(text: str, expected: Predicate) -> None:
    same(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a in (1, 2)", col("a").is_in([1, 2])),
        ("a in ('x', null, (-1))", col("a").is_in([Text("x"), None, -1])),
        ("a not in (1, NULL)", ~col("a").is_in([1, None])),
        ("a in ()", col("a").is_in([])),
        ("a between 1 and 2 and b = 2", col("a").is_between(1, 2) & B),
        ("a not between -1 and 1.5", ~col("a").is_between(-1, Decimal("1.5"))),
        ("a is null", col("a").is_null()),
        ("a is not null", col("a").is_not_null()),
        ("not a is null", col("a").is_not_null()),
        ("not (a is null)", ~col("a").is_null()),
        ("a is true", (col("a") == True) & col("a").is_not_null()),  # noqa: E712
        ("a is not false", ~((col("a") == False) & col("a").is_not_null())),  # noqa: E712
    ],
)
def test_lists_ranges_and_nulls(text: str, expected: Predicate) -> None:
    same(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a like 'it''s%'", col("a").starts_with("it's")),
        ("a like '%'", col("a").starts_with("")),
        ("a not like 'x%'", ~col("a").starts_with("x")),
        ("a like 'x'", col("a") == Text("x")),
        ("a not like ''", ~(col("a") == Text(""))),
        (r"a like 'x\%'", col("a").starts_with("x\\")),
        (r"a like 'x\_\%%' escape '\'", col("a").starts_with("x_%")),
        ("a not like 'x!!!%' escape '!'", ~(col("a") == Text("x!%"))),
        ("not a like 'x!%%' escape '!'", ~col("a").starts_with("x%")),
    ],
)
def test_like_is_a_prefix_or_an_equality(text: str, expected: Predicate) -> None:
    same(text, expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("+7", 7),
        ("- 7", -7),
        ("-(7)", -7),
        ("99999999999999999999999", 99999999999999999999999),
        ("1.50", Decimal("1.50")),
        ("1.", Decimal("1")),
        (".5", Decimal("0.5")),
        ("-0.0", Decimal("-0.0")),
        ("1e3", Decimal("1e3")),
        ("2.5E-3", Decimal("0.0025")),
        ("1e999", Decimal("1e999")),
        # More digits than the default context of decimal, and than a float.
        ("-0.1234567890123456789012345678901234567890123456789", None),
        ("true", True),
        ("FALSE", False),
        ("'it''s'", Text("it's")),
        ("''", Text("")),
        ("'a\nb\\n'", Text("a\nb\\n")),
        ("DATE '2024-02-29'", DAY),
        ("date'2024-02-29'", DAY),
        ("CAST('2024-02-29' AS DATE)", DAY),
        ("'2024-02-29'::date", DAY),
        ("TIME '13:14:15.000001'", datetime.time(13, 14, 15, 1)),
        ("DECIMAL '1.50'", Decimal("1.50")),
        ("NUMERIC '-1'", Decimal(-1)),
        ("TIMESTAMP '2024-02-29'", Text("2024-02-29")),
        ("TIMESTAMP '2024-02-29 13:14'", Text("2024-02-29 13:14")),
        ("TIMESTAMP '2024-02-29T13:14:15.123456789'", Text("2024-02-29T13:14:15.123456789")),
        ("TIMESTAMPTZ '2024-02-29 13:14:15+02'", Text("2024-02-29 13:14:15+02")),
        ("TIMESTAMP WITH TIME ZONE '2024-02-29 13:14:15Z'", Text("2024-02-29 13:14:15Z")),
    ],
)
def test_literals_are_exact(text: str, value: Any) -> None:
    expected = Decimal(text) if value is None else value
    same(f"a = {text}", col("a") == expected)
    same(f"a in ({text})", col("a").is_in([expected]))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fare", "fare"),
        ("CamelCase", "CamelCase"),
        ("größe", "größe"),
        ("a.b.c.d.e.f", "a.b.c.d.e.f"),
        ("a . b", "a.b"),
        ("items.list.element.key.value", "items.list.element.key.value"),
        ('"a b"', "a b"),
        ("`a b`", "a b"),
        ('"say ""hi"""', 'say "hi"'),
        ("`a``b`", "a`b"),
        ('"a.b"', ("a.b",)),
        ('"a.b".c', ("a.b", "c")),
        ('a."b.c".`d`', ("a", "b.c", "d")),
        ('"a"."b"', ("a", "b")),
        ('"a".b.c.d.e.f', ("a", "b", "c", "d", "e", "f")),
        *((f'"{word}"', word) for word in ("and", "NULL", "if", "any", "1", "")),
    ],
)
def test_names_keep_their_case_and_quoted_parts_are_exact(
    text: str, path: str | tuple[str, ...]
) -> None:
    same(f"{text} > 1", col(path) > 1)
    same(f"1 < {text} and {text} is not null", (col(path) > 1) & col(path).is_not_null())


@pytest.mark.parametrize(
    "word",
    [
        *("order", "select", "from", "group", "end", "left", "index", "user", "current_date"),
        *("date", "time", "timestamp", "decimal", "interval", "all", "values", "table", "call"),
        *("show", "with", "key", "value", "element", "type", "default", "next", "isnull", "xor"),
    ],
)
def test_words_that_conditions_do_not_need_are_names(word: str) -> None:
    same(f"{word} = 1 and a.{word} is null", (col(word) == 1) & col(f"a.{word}").is_null())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ANY(i.price) > 10", col("i.price").any() > 10),
        ("all(i.price) > 10", col("i.price").all() > 10),
        ("10 < any(i.price)", col("i.price").any() > 10),
        ("10 = ALL (i.price)", col("i.price").all() == 10),
        ('any("a.b".c) != 1', col(("a.b", "c")).any() != 1),
        ("any(x) in (1)", col("x").any().is_in([1])),
        ("all(x) between 1 and 2", col("x").all().is_between(1, 2)),
        ("any(x) like 'y%'", col("x").any().starts_with("y")),
        ("all(x) is null", col("x").all().is_null()),
    ],
)
def test_any_and_all_fold_the_elements_of_lists(text: str, expected: Predicate) -> None:
    same(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Behind the column NOT belongs to the test of each element, before it to the whole.
        ("any(x) not in (1)", ~col("x").all().is_in([1])),
        ("not any(x) in (1)", ~col("x").any().is_in([1])),
        ("not any(x) not in (1)", ~~col("x").all().is_in([1])),
        ("all(x) not between 1 and 2", ~col("x").any().is_between(1, 2)),
        ("not (all(x)) between 1 and 2", ~col("x").all().is_between(1, 2)),
        ("any((x)) not like 'y%'", ~col("x").all().starts_with("y")),
        ("not any(x) like 'y%'", ~col("x").any().starts_with("y")),
        ("any(x) not like 'y!_%' escape '!'", ~col("x").all().starts_with("y_")),
        ("not any(x) like 'y!_%' escape '!'", ~col("x").any().starts_with("y_")),
        ("any(x) not like 'y'", ~(col("x").all() == Text("y"))),
        ("any(x) is not null", col("x").any().is_not_null()),
        ("not any(x) is null", ~col("x").any().is_null()),
        ("not any(x) = 1", ~(col("x").any() == 1)),
    ],
)
def test_not_behind_a_folded_column_is_about_its_elements(text: str, expected: Predicate) -> None:
    same(text, expected)


def test_long_chains_and_lists_are_read_in_one_piece() -> None:
    read = parse(" or ".join(f"a = {n}" for n in range(5_000)))
    assert isinstance(read, Or)
    assert len(read.parts) == 5_000
    same(f"a in ({', '.join(map(str, range(5_000)))})", col("a").is_in(range(5_000)))
    same(f"a{'.b' * 500} = 1", col("a" + ".b" * 500) == 1)


# What cannot


def failure(text: str) -> tuple[str, str, int]:
    """The message of a text that cannot be read, the line that it shows, the place of the caret."""
    with pytest.raises(fs.PredicateSyntaxError) as caught:
        parse(text)
    message, line, below = str(caught.value).rsplit("\n", 2)
    assert line.startswith("  ")
    assert re.fullmatch(r"\s*\^", below)
    return message, line[2:], len(below) - 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        # The caret belongs below the character behind the mark.
        ("a = ¦NULL", "IS NULL"),
        ("b is null and a != ¦null and c is null", "IS NULL"),
        ("¦null = a", "IS NULL"),
        ("a between 1 and ¦null", "IS NULL"),
        ("¦a", "= TRUE"),
        ("b = 2 and ¦a.b", "= TRUE"),
        ("not ¦a", "= TRUE"),
        ("¦true", "compares columns"),
        ("¦1", "compares columns"),
        ("a = ¦b", "not a column"),
        ('a = ¦"x"', "single quotes"),
        ("a in (1, ¦b)", "not a column"),
        ("a = any(¦b)", "not a column"),
        ("1 = ¦1", "a column is expected"),
        ("¦1 in (1)", "a column is expected"),
        ("¦upper(a) = 'x'", "functions"),
        ("a = ¦upper('x')", "functions"),
        ("¦isnan(a)", "compares columns"),
        ("¦a + 1 > 5", "arithmetic"),
        ("a > ¦5 * 2", "arithmetic"),
        ("a < -¦'x'", "compares columns"),
        ("¦a < b < c", "compares columns"),
        ("¦a = 1 = true", "compares columns"),
        ("a in (select ¦b from c)", "compares columns"),
        ("a in ¦b", "not supported"),
        ("¦a between symmetric 2 and 1", "not supported"),
        ("¦case when a then 1 end = 1", "double quotes"),
        ("a = ¦if(b, 1, 2)", "double quotes"),
        ("¦IF > 5", "double quotes"),
        ("¦a[0] = 1", "compares columns"),
        ("¦a::int = 1", "compares columns"),
        ("¦a <=> 1", "compares columns"),
        ("¦a is distinct from 1", "compares columns"),
        ("¦a is 5", "compares columns"),
        ("any(¦a) is true", "compares columns"),
        ("any(any(¦a)) = 1", "a column is expected"),
        ("any(¦a, b) = 1", "a column is expected"),
        ("¦a.5 = 1", "a column is expected"),
        ("¦a.* = 1", "a column is expected"),
        ("a like ¦'%x'", "prefixes"),
        ("a like ¦'x_'", "prefixes"),
        ("a like ¦'x%%'", "ESCAPE"),
        ("a like ¦'x!' escape '!'", "prefixes"),
        ("¦a like 'x' escape '!!'", "compares columns"),
        ("a like ¦5", "single quotes"),
        ("a ¦ilike 'x%'", "compares columns"),
        ("a = ¦1e", "no valid DECIMAL"),
        ("a = " + "¦" + "9" * 5_000, "no valid INT"),
        ("a = 0¦x1F", "compares columns"),
        ("a = DATE ¦'2024-02-30'", "no valid DATE"),
        ("a = DATE ¦'2024-W01-1'", "no valid DATE"),
        ("a = TIME ¦'25:00'", "no valid TIME"),
        ("a = TIME ¦'10:00:00.123456789'", "no valid TIME"),
        ("a = TIMESTAMP ¦'yesterday'", "no valid TIMESTAMP"),
        ("a = TIMESTAMP ¦'2024-02-30 10:00'", "no valid TIMESTAMP"),
        ("a = DECIMAL ¦'nan'", "no valid DECIMAL"),
        ("a = 1 ¦b", "compares columns"),
        ("a = 1¦)", "compares columns"),
        ("a = 1¦; b = 2", "one condition"),
        ("a = 1¦;", "one condition"),
        ("select ¦1", "compares columns"),
        ("a = ¦= 1", "compares columns"),
        ("a =¦", "ends too early"),
        ("a = 1 and¦", "ends too early"),
        ("(a = 1¦", "ends too early"),
        ("a in (1, 2¦", "ends too early"),
        ("a = 1 and ¦)", "compares columns"),
        ("a = ¦'abc", "does not end"),
        ("a = 'x' and ¦\"b = 'y'", "does not end"),
        ("a = 1 ¦/* b = 2", "does not end"),
        ("¦", "empty"),
        ("¦ \n ", "empty"),
        ("¦-- nothing", "empty"),
        ("größe = ¦null", "IS NULL"),
    ],
)
def test_errors_point_at_the_place_and_say_what_to_write(text: str, says: str) -> None:
    place, text = text.index("¦"), text.replace("¦", "")
    message, line, caret = failure(text)
    assert says in message
    assert caret == place
    assert text.startswith(line) or len(text) > 60


def test_errors_show_the_line_with_its_tabs() -> None:
    with pytest.raises(fs.PredicateSyntaxError) as caught:
        parse("a = 1\n\tand b =\tnull\nand c = 3")
    assert str(caught.value).split("\n")[1:] == ["  \tand b =\tnull", "  \t       \t^"]


def test_errors_show_a_part_of_a_long_line() -> None:
    text = "a = 1 and " * 50 + "b = null" + " and a = 1" * 50
    _, line, caret = failure(text)
    assert len(line) < 150
    assert line[caret:].startswith("null and")


@pytest.mark.parametrize(
    "text",
    ["(" * 10_000 + "a = 1" + ")" * 10_000, "(" * 10_000, "not " * 10_000 + "a = 1", "f(" * 10_000],
    ids=["closed", "open", "not", "functions"],
)
def test_nesting_without_bound_is_an_error(text: str) -> None:
    assert "nested too deeply" in failure(text)[0]


def test_nothing_of_the_parser_shows(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for text in ("if > 5", "a = ", "show tables", "insert into a values (1)", "a = 'x"):
            with pytest.raises(fs.PredicateSyntaxError) as caught:
                parse(text)
            assert "sqlglot" not in str(caught.value)
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not caplog.records


def test_the_parser_is_loaded_when_a_text_is() -> None:
    code = "import sys, fretsaw.predicates.sql; print('sqlglot' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


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
