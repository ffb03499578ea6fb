"""Patterns of text: as regular expressions, and by the text that they begin with."""

import re
from typing import NamedTuple

_PLAIN = re.compile(r"[0-9A-Za-z_ \-/:,;@#!'\"<>=&%~`]|[^\x00-\x7f]")
_QUANTIFIERS = ("*", "?", "{", "+")


class Beginning(NamedTuple):
    """The fixed text that a pattern begins with, and what the rest asks for."""

    text: str
    rest: str
    """"nothing" more may follow, "anything" may, or "pattern": more is to be tested."""


def like_units(pattern: str, escape: str | None) -> list[tuple[str, bool]]:
    """The characters of a pattern of LIKE, each with whether it is a wildcard."""
    units, escaped = [], False
    for character in pattern:
        if not escaped and character == escape:
            escaped = True
            continue
        units.append((character, character in "%_" and not escaped))
        escaped = False
    return units


def like_beginning(pattern: str, escape: str | None) -> Beginning:
    """What all texts of a pattern of LIKE begin with."""
    units = like_units(pattern, escape)
    wild = [place for place, (_, is_wild) in enumerate(units) if is_wild]
    first = wild[0] if wild else len(units)
    text = "".join(character for character, _ in units[:first])
    if not wild:
        return Beginning(text, "nothing")
    rest = {character for character, _ in units[first:]}
    is_open = rest == {"%"} and len(wild) == len(units) - first
    return Beginning(text, "anything" if is_open else "pattern")


def like_regex(pattern: str, escape: str | None) -> str:
    """A pattern of LIKE as a regular expression."""
    wild = {"%": ".*", "_": "."}
    units = like_units(pattern, escape)
    parts = [wild[character] if is_wild else _quoted(character) for character, is_wild in units]
    return f"(?s)^{''.join(parts)}$"


def regex_beginning(regex: str) -> str:
    """What all texts that a regular expression finds begin with, as far as it is plain to see."""
    if not regex.startswith("^") or "|" in regex or "(?" in regex or "\\Q" in regex:
        return ""
    text = ""
    for place, character in enumerate(regex[1:], 1):
        if not _PLAIN.fullmatch(character) or regex[place + 1 : place + 2] in _QUANTIFIERS[:3]:
            return text
        text += character
        if regex[place + 1 : place + 2] == "+":
            return text
    return text


def _quoted(character: str) -> str:
    if character.isalnum() or ord(character) > 127:
        return character
    return f"\\x{ord(character):02x}"
