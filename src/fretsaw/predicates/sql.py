"""A condition given as text, `"fare > 100 and city in ('NYC', 'LA')"`, as a predicate.

sqlglot parses what `sql_words` makes of the text, `sql_reader` turns its nodes into predicates;
what has no counterpart among these is an error that points at its place.
"""

from itertools import accumulate
from typing import TYPE_CHECKING

from fretsaw.model.locks import importing
from fretsaw.predicates.logic import Predicate
from fretsaw.predicates.sql_lists import taken_out
from fretsaw.predicates.sql_reader import Reader
from fretsaw.predicates.sql_usage import no_such_function
from fretsaw.predicates.sql_values import SUPPORTED
from fretsaw.predicates.sql_words import syntax_error, words

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token


def parse(text: str) -> Predicate:
    """The predicate that a condition in SQL stands for.

    >>> parse("fare > 100 and tip is not null")
    (col('fare') > 100) & (col('tip').is_not_null())
    >>> parse("year(day) = 2024 and lower(city) like 'new%'")
    (col('day').year() == 2024) & (col('city').lower().starts_with('new'))
    """
    with importing:
        from sqlglot.expressions import Condition
        from sqlglot.parser import Parser

    lists = taken_out(text)
    tokens = words(lists.text)
    lists.put_right(tokens)
    if not tokens:
        raise syntax_error(text, 0, f"the condition is empty; {SUPPORTED}")
    try:
        parsed = Parser().parse_into(Condition, tokens, text)
        (root,) = (node for node in parsed if node is not None)
    except Exception as error:  # garbage makes the parser fail in more ways than it declares
        raise syntax_error(text, *_failure(tokens, error)) from None
    try:
        return Reader(text, tokens, root, lists.values).predicate(root)
    except RecursionError as error:
        raise syntax_error(text, *_failure(tokens, error)) from None


def _failure(tokens: list["Token"], error: Exception) -> tuple[int, str]:
    """Where the parser failed, and why."""
    if isinstance(error, RecursionError):
        depths = list(accumulate((token.text == "(") - (token.text == ")") for token in tokens))
        return tokens[depths.index(max(depths))].start, "the condition is nested too deeply"
    details = (getattr(error, "errors", None) or [{}])[0]
    place = (details.get("line"), details.get("col"))
    token = next((token for token in tokens if (token.line, token.col) == place), tokens[-1])
    description = details.get("description") or ""
    if "arguments" in description or description.startswith("Required keyword"):
        called = _called(tokens, token)
        if called is not None:
            return called
    if token.text.upper() == "OVER":
        return token.start, "a window function is not in a condition on rows"
    if token is tokens[-1] and token.text != ")" and not description.startswith("Invalid"):
        return token.end + 1, f"the condition ends too early; {SUPPORTED}"
    problem = "`)` is expected here" if description == "Expecting )" else "this cannot be read here"
    return token.start, f"{problem}; {SUPPORTED}"


def _called(tokens: list["Token"], end: "Token") -> tuple[int, str] | None:
    """Where the call of a function that ends at a word begins, and what is wrong with it."""
    depth, operands, last = 0, 0, len(tokens) and tokens.index(end)
    for place in range(last, 0, -1):
        text = tokens[place].text
        depth += (text == ")") - (text == "(")
        operands += text == "," and depth == 1
        if depth == 0 and text == "(":
            name = tokens[place - 1]
            count = operands + 1 if place + 1 < last else 0
            return name.start, no_such_function(name.text, ["..."] * count)
    return None
