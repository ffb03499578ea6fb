"""Conditions as text: each form against the expression it stands for, and what is refused."""

import datetime
import logging
import re
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

import fretsaw as fs
from fretsaw import Predicate, col
from fretsaw.predicates.logic import And, Or
from fretsaw.predicates.sql import parse
from fretsaw.predicates.text import Text
from tests.support.conditions import same

A, B, C = col("a") == 1, col("b") == 2, col("c") == 3
DAY = datetime.date(2024, 2, 29)


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
        *("order", "select", "from", "group", "end", "left", "index", "user", "current_time"),
        *("date", "time", "timestamp", "decimal", "interval", "all", "values", "table", "call"),
        *("show", "with", "key", "value", "element", "type", "default", "next", "isnull", "xor"),
    ],
)
def test_words_that_conditions_do_not_need_are_names(word: str) -> None:
    same(f"{word} = 1 and a.{word} is null", (col(word) == 1) & col(f"a.{word}").is_null())


HOUR = datetime.timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", col("a") < col("b")),
        ("a + 1 > b * 2", col("a") + 1 > col("b") * 2),
        ("-a / b = 0.5", -col("a") / col("b") == Decimal("0.5")),
        ("end < start", col("end") < col("start")),
        ("a > 5 * 2 - 1", col("a") > 9),
        ("a in (b, 1)", col("a").is_in([col("b"), 1])),
        ("a between b and 7", col("a").is_between(col("b"), 7)),
        ("s || 'x' = t", col("s") + Text("x") == col("t")),
        ("flag", col("flag") == True),  # noqa: E712
        ("not flag and a.b", ~(col("flag") == True) & (col("a.b") == True)),  # noqa: E712
        ("lower(strip(s)) = 'x'", col("s").strip().lower() == Text("x")),
        ("length(s) > abs(a)", col("s").length() > col("a").abs()),
        ("s like '%x_'", col("s").like("%x_")),
        ("s ilike 'X%'", col("s").ilike("X%")),
        ("s not like '%!%' escape '!'", ~col("s").like("%!%", escape="!")),
        ("s ~ '^a+'", col("s").matches("^a+")),
        ("regexp_matches(s, 'a|b')", col("s").matches("a|b")),
        (
            "starts_with(s, 'a') or ends_with(s, 'b')",
            col("s").starts_with("a") | col("s").ends_with("b"),
        ),
        ("contains(s, 'a') and isnan(f)", col("s").contains("a") & col("f").is_nan()),
        ("extract(year from ts) = 2024", col("ts").year() == 2024),
        (
            "isodow(ts) = 7 and microsecond(ts) = 1",
            (col("ts").weekday() == 7) & (col("ts").microsecond() == 1),
        ),
        ("date_trunc('hour', ts) = ts", col("ts").truncate("hour") == col("ts")),
        ("date(ts) = day", col("ts").date() == col("day")),
        ("ts - interval '1 hour' > ts2", col("ts") - HOUR > col("ts2")),
        ("ts > ts2 + interval 3600 seconds", col("ts") > col("ts2") + HOUR),
        ("d > date '2024-01-31' + interval 1 month", col("d") > DAY),
        ("d > date '2024-03-31' - interval '31 days'", col("d") > DAY),
        ("a = 0x1F", col("a") == 31),
        ("cast(s as int) = 1", col("s").cast("int32") == 1),
        ("s::double = 1", col("s").cast("float64") == 1),
        ("coalesce(a, b, 0) = 1", fs.coalesce(col("a"), col("b"), 0) == 1),
        ("coalesce(a, null) = 1", fs.coalesce(col("a"), None) == 1),
        (
            "case when a > 1 then b else 2 end = 3",
            fs.when(col("a") > 1).then(col("b")).otherwise(2) == 3,
        ),
        ("case a when 1 then 2 end = 3", fs.when(col("a") == 1).then(2).otherwise(None) == 3),
    ],
)
def test_expressions_read_as_those_of_python(text: str, expected: Predicate) -> None:
    same(text, expected)


def test_the_current_date_is_that_of_the_scan() -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    same("d < current_date", col("d") < today)
    same("d < current_date - interval 7 day", col("d") < today - datetime.timedelta(days=7))
    same('d < "current_date"', col("d") < col("current_date"))


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
        ("¦1", "compares columns"),
        ("a = any(¦b)", "not a column"),
        ("any(a) = ¦b", "not a column"),
        ("¦loer(a) = 'x'", "did you mean lower"),
        ("a = ¦substr('x', 1)", "there are lower, upper"),
        ("¦count(a) > 1", "not in a condition on rows"),
        ("b = 1 or ¦sum(a) > 1", "not in a condition on rows"),
        ("exists(¦select 1)", "not in a condition on rows"),
        ("a > ¦b + interval '1' month", "literals only"),
        ("a > b + interval ¦'x' day", "INTERVAL 3 DAY"),
        ("cast(¦a as blah) = 1", "types are"),
        ("¦date_trunc('eon', a) = a", "year, quarter"),
        ("a ~ ¦5", "single quotes"),
        ("a < -¦'x'", "compares columns"),
        ("¦a < b < c", "compares columns"),
        ("¦a = 1 = true", "compares columns"),
        ("a in (¦select b from c)", "not in a condition on rows"),
        ("a in ¦b", "not supported"),
        ("¦a between symmetric 2 and 1", "not supported"),
        ("a = ¦if(b, 1, 2)", "double quotes"),
        ("¦IF > 5", "double quotes"),
        ("¦a is 5", "compares columns"),
        ("any(¦a) is true", "compares columns"),
        ("any(any(¦a)) = 1", "a column is expected"),
        ("any(¦a, b) = 1", "a column is expected"),
        ("¦a.5 = 1", "a column is expected"),
        ("¦a.* = 1", "a column is expected"),
        ("a like ¦'x!' escape '!'", "ends with its escape"),
        ("¦a like 'x' escape '!!'", "compares columns"),
        ("a like ¦5", "single quotes"),
        ("a = ¦1e", "no valid DECIMAL"),
        ("a = " + "¦" + "9" * 5_000, "no valid INT"),
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


@pytest.mark.parametrize("count", [3, 99, 100, 5000])
def test_long_lists_are_read_like_short_ones(count: int) -> None:
    numbers, names = range(-5, count - 5), [f"it''s {n}, (x)" for n in range(count)]
    quoted = ", ".join(f"'{name}'" for name in names)
    condition = (
        f"s = 'in (1, 2' and i in ({', '.join(map(str, numbers))}) and \"n\" not in ( {quoted})"
        " -- in (1)"
    )
    texts = [Text(name.replace("''", "'")) for name in names]
    expected = (
        (col("s") == Text("in (1, 2")) & col("i").is_in(list(numbers)) & ~col("n").is_in(texts)
    )
    assert repr(fs.scan("x").filter(condition)) == repr(fs.scan("x").filter(expected))


def test_errors_behind_long_lists_point_at_their_place() -> None:
    condition = f"i in ({', '.join(map(str, range(5000)))}) and uper(s) = 'X'"
    with pytest.raises(fs.PredicateSyntaxError, match=r"did you mean upper") as raised:
        fs.scan("x").filter(condition)
    _, line, caret = str(raised.value).split("\n")
    assert line[caret.index("^") :].startswith("uper(s)")
