"""Long lists of plain literals in a condition given as text, taken out before it is parsed.

`IN` may have a hundred thousand values, which a parser takes seconds for. Each such list becomes
one name, and the places of the words behind it are put right again.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fretsaw.predicates.text import Text

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

_LONG = 2000
"""Characters of a text that may have a list worth the trouble."""
_NUMBERS = re.compile(r"\(\s*(?:-?[0-9]+\s*,\s*){99,}-?[0-9]+\s*\)")
_TEXTS = re.compile(r"\(\s*(?:'(?:[^']|'')*'\s*,\s*){99,}'(?:[^']|'')*'\s*\)")
_IN = re.compile(r"\bIN\s*(?=\()", re.IGNORECASE)
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/""", re.S)
_NAME = "\0"


@dataclass(frozen=True, slots=True)
class Lists:
    """A text with names for its long lists, what they hold, and where they were."""

    text: str
    values: dict[str, list[Any]] = field(default_factory=dict)
    ends: tuple[int, ...] = ()
    """Where the names end in the shorter text."""
    removed: tuple[int, ...] = ()
    """How many characters are missing up to there."""

    def put_right(self, tokens: list["Token"]) -> None:
        """The places that words have in the text as it was written."""
        if self.ends:
            for token in tokens:
                start, end = token.start, token.end
                token.start, token.end = self._place(start), self._place(end)

    def _place(self, place: int) -> int:
        before = bisect_right(self.ends, place)
        return place + (self.removed[before - 1] if before else 0)


def taken_out(text: str) -> Lists:
    """A text without its long lists; a short one has none."""
    if len(text) < _LONG:
        return Lists(text)
    found = [*_long_lists(text)]
    if not found:
        return Lists(text)
    values, parts, ends, lengths, behind = {}, [], [], [], 0
    for number, match in enumerate(found):
        name = f"{_NAME}{number}"
        values[name] = _values(match[0])
        parts += [text[behind : match.start()], f'("{name}")']
        ends.append(sum(map(len, parts)))
        lengths.append(len(match[0]) - len(parts[-1]))
        behind = match.end()
    short = "".join([*parts, text[behind:]])
    return Lists(short, values, tuple(ends), tuple(accumulate(lengths)))


def _long_lists(text: str) -> list[re.Match[str]]:
    """The long lists that are not in quotes or comments."""
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    found: list[re.Match[str]] = []
    for place in _IN.finditer(bare):
        match = _NUMBERS.match(text, place.end()) or _TEXTS.match(text, place.end())
        if match is not None and (not found or match.start() >= found[-1].end()):
            found.append(match)
    return found


def _values(listed: str) -> list[Any]:
    if "'" not in listed:
        return [int(number) for number in listed[1:-1].split(",")]
    return [Text(text[1:-1].replace("''", "'")) for text in _QUOTED.findall(listed)]
