"""Literals that compare with a value: odd ones, and often one that occurs in the files."""

import random
from dataclasses import replace

from tests.support.row_evaluator.kinds import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    LOCAL,
    TEXT,
    TIME,
    decimal_of_literal,
)
from tests.support.row_evaluator.trees import Node, literal
from tests.support.tree_files import (
    CENTS,
    CLOCKS,
    DAYS,
    FLOATS,
    LARGE,
    LONG,
    MIDDLE,
    MOMENTS,
    SMALL,
    TEXTS,
)

FRACTIONS = [0.1, 1e300, 3e38, 1e-45, 65504.0, -0.1]
DAY, HOUR = 86_400 * 10**9, 3600 * 10**9
SPANS = [0, 1000, -1000, 10**6, DAY, -DAY, HOUR, 90 * 60 * 10**9, 10**16]


def odds(chance: random.Random, share: float) -> bool:
    return chance.random() < share


def literal_like(chance: random.Random, one: Node) -> Node:
    """A literal of the same family: a choice of others has a type that nobody lays down."""
    found = literal_for(chance, one)
    while one.kind.name in ("int", "decimal") and isinstance(found.extra, float):
        found = literal_for(chance, one)
    return found


def literal_for(chance: random.Random, one: Node) -> Node:
    """A literal that compares with a value, often one that occurs."""
    kind = one.kind
    match kind.name:
        case "int":
            pool = LARGE if kind.width == 64 else MIDDLE
            extra = [2**40, 2**64, -(2**70)] if one.op == "column" else []
            number = chance.choice([*pool, *SMALL, *extra])
            if odds(chance, 0.1):
                return literal(chance.choice((0.5, 1.5, -2.5)), FLOAT)
            return literal(number, INT)
        case "float":
            plain = one.op in ("column", "element") or kind.width == 64
            if odds(chance, 0.2):
                return literal(chance.choice((0, 1, -7, 100)), INT)
            return literal(chance.choice([*FLOATS, *(FRACTIONS if plain else [])]), FLOAT)
        case "decimal":
            if odds(chance, 0.2):
                return literal(chance.choice(SMALL), INT)
            if odds(chance, 0.2):
                return literal(chance.choice((0.1, 0.5, -2.45, 1.55)), FLOAT)
            exact = chance.choice([*CENTS, *LONG])
            return literal(exact, decimal_of_literal(exact))
        case "text":
            return literal(chance.choice(TEXTS), TEXT)
        case "date":
            return literal(chance.choice(DAYS), DATE)
        case "time":
            return literal(chance.choice(CLOCKS) * 1000, TIME)
        case "local":
            return literal(chance.choice(MOMENTS) * 1000, LOCAL)
        case "instant":
            return literal(chance.choice(MOMENTS) * 1000, replace(kind, zone="UTC"))
        case "duration":
            return literal(chance.choice(SPANS), DURATION)
        case "bool":
            return literal(odds(chance, 0.5), BOOL)
    return literal(chance.choice((b"", b"a", b"\xff", b"abc")), kind)
