"""Conditions as text, and the expressions that they stand for."""

from fretsaw import Predicate
from fretsaw.predicates.expression import columns_of
from fretsaw.predicates.sql import parse


def same(text: str, expected: Predicate) -> None:
    """The text reads as the expression, down to how its paths are spelled."""
    read = parse(text)
    assert repr(read) == repr(expected)
    assert list(columns_of(read)) == list(columns_of(expected))
