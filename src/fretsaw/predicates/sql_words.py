"""The words of a condition given as text: which are SQL's, and which are names.

A column may be called `order` or `end` without quotes, so words of SQL are such only where they
mean something: `end` in a CASE, `interval` before a number, `from` behind `distinct`, types
behind AS.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from fretsaw.errors import PredicateSyntaxError
from fretsaw.model.locks import importing

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token, TokenType
    from sqlglot.tokens import Tokenizer

_KEYWORDS = {
    *("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "LIKE", "ILIKE", "ESCAPE", "NULL", "AS"),
    *("TRUE", "FALSE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "DECIMAL", "NUMERIC"),
}
_IN_CASE = {"WHEN", "THEN", "ELSE", "END"}
_CLOSED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""", re.S)
SUBQUERY = "a subquery is not in a condition on rows: run it first, and filter by its result"
AGGREGATE = "an aggregate is not in a condition on rows: it is of many rows, a condition of one"
_REFUSED = {
    ";": "one condition is expected, without a semicolon",
    "IF": 'this is not supported, write CASE; a column of that name goes in "double quotes"',
}


def words(text: str) -> list["Token"]:
    """The words of a condition, those of SQL told from names."""
    try:
        tokens = _tokenizer()().tokenize(text)
    except Exception:
        unclosed = re.search("['\"`]|/[*]", _CLOSED.sub(lambda whole: " " * len(whole[0]), text))
        start = unclosed.start() if unclosed else 0
        problem = "the quote or comment that begins here does not end"
        raise syntax_error(text, start, problem) from None
    kinds, open_cases = _kinds(), 0
    spelled = ["" if t.token_type.name == "IDENTIFIER" else t.text.upper() for t in tokens]
    for place, (token, word) in enumerate(zip(tokens, spelled, strict=True)):
        kind = token.token_type.name
        before = spelled[place - 1] if place else ""
        behind = spelled[place + 1] if place + 1 < len(tokens) else ""
        if kind in {"VAR", "SEMICOLON"} and word in _REFUSED:
            raise syntax_error(text, token.start, _REFUSED[word])
        if kind != "VAR":
            continue
        if word == "SELECT" and before == "(":
            raise syntax_error(text, token.start, SUBQUERY)
        if word == "DISTINCT" and before == "(":
            raise syntax_error(text, tokens[place - 2].start, AGGREGATE)
        open_cases += word == "CASE"
        open_cases -= word == "END" and open_cases > 0
        is_word = (
            (word in _IN_CASE and (open_cases > 0 or word == "END") and "CASE" in spelled[:place])
            or (word == "INTERVAL" and _is_amount(tokens, place + 1))
            or (word == "DISTINCT" and behind == "FROM")
            or (word == "FROM" and (before == "DISTINCT" or _is_extract(spelled, place)))
            or before in {"AS", "::"}
        )
        if is_word and word in kinds:
            token.token_type = kinds[word]
    return tokens


def syntax_error(text: str, start: int, problem: str) -> PredicateSyntaxError:
    """The error, with the line of the text around a place and a caret below it."""
    first = max(text.rfind("\n", 0, start) + 1, start - 60)
    line = text[first : start + 60].split("\n")[0].rstrip()
    indent = re.sub(r"[^\t]", " ", text[first:start])
    return PredicateSyntaxError(f"{problem}\n  {line}\n  {indent}^")


def _is_amount(tokens: list["Token"], place: int) -> bool:
    return place < len(tokens) and tokens[place].token_type.name in {"NUMBER", "STRING"}


def _is_extract(spelled: list[str], place: int) -> bool:
    return spelled[max(0, place - 3) : place - 1] == ["EXTRACT", "("]


@cache
def _kinds() -> dict[str, "TokenType"]:
    """What SQL's words are, by their spelling."""
    with importing:
        from sqlglot import tokens

    return dict(tokens.Tokenizer.KEYWORDS)


@cache
def _tokenizer() -> "type[Tokenizer]":
    with importing:
        from sqlglot import tokens

    class Words(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("0x", ""), ("0X", "")]
        KEYWORDS: ClassVar = {
            word: token
            for word, token in tokens.Tokenizer.KEYWORDS.items()
            if word in _KEYWORDS or not word[:1].isalpha()
        } | {"//": tokens.Tokenizer.KEYWORDS["DIV"], "~": tokens.Tokenizer.KEYWORDS["RLIKE"]}

    return Words
