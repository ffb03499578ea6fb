"""Text and bytes: parts, patterns and case, character by character.

Case is what Arrow makes of it, by definition; patterns are matched without its help.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@cache
def lower(text: str) -> str:
    return str(pc.utf8_lower(pa.scalar(text)))


@cache
def upper(text: str) -> str:
    return str(pc.utf8_upper(pa.scalar(text)))


def like(pattern: str, escape: str | None, any_case: bool) -> Callable[[str], bool]:
    """Whether a text has SQL's pattern, from its beginning to its end."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    compiled = re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if any_case else 0))
    return lambda text: compiled.fullmatch(text) is not None


def matches(regex: str) -> Callable[[str], bool]:
    """RE2's `$` is the end of the text only; its classes are those of ASCII."""
    compiled = re.compile(regex.replace("$", r"\Z"), re.ASCII)
    return lambda text: compiled.search(text) is not None


def function(op: str, extra: Any, sql: bool) -> Callable[[Any], Any]:
    match op:
        case "lower":
            return lower
        case "upper":
            return upper
        case "strip":
            return lambda text: text.strip(" ") if sql else text.strip()
        case "length":
            return len
        case "starts_with":
            return lambda text: text.startswith(extra)
        case "ends_with":
            return lambda text: text.endswith(extra)
        case "contains":
            return lambda text: extra in text
        case "like":
            return like(*extra)
        case "matches":
            return matches(extra)
    raise NotImplementedError(op)
