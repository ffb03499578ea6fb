"""Random expressions over a table of every kind, as trees of the oracle and as the library's."""

import datetime as dt
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import fretsaw as fs
from fretsaw import col
from tests.support.expression_oracle import Node

INTEGERS, FLOATS, DECIMALS = ("i", "j", "b"), ("f", "g"), ("d", "e")
TEXTS, TIMES, DATES = ("s", "t"), ("ts", "tm"), ("day",)
KINDS = {
    "i": pa.int64(),
    "j": pa.int32(),
    "b": pa.int8(),
    "f": pa.float64(),
    "g": pa.float32(),
    "d": pa.decimal128(9, 2),
    "e": pa.decimal128(20, 4),
    "s": pa.string(),
    "t": pa.string(),
    "ts": pa.timestamp("us"),
    "tm": pa.timestamp("ms"),
    "day": pa.date32(),
    "flag": pa.bool_(),
}
WORDS = ("", "a", "ab", "Ab", "aXb", "a%b", "a_b", " pad ", "É", "zebra", "Zebra crossing", "\n")
SYMBOLS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def make_table(rng: np.random.Generator, rows: int) -> pa.Table:
    """Values that often meet: few different ones, and nulls, in runs that prune."""
    arrays = []
    for name, kind in KINDS.items():
        picked = sorted(rng.integers(0, 40, rows).tolist()) if rng.random() < 0.5 else None
        picked = picked or rng.integers(0, 40, rows).tolist()
        values = [value_like(name, number) for number in picked]
        gone = rng.random(rows) < 0.15
        arrays.append(pa.array([None if g else v for g, v in zip(gone, values, strict=True)], kind))
    return pa.table(arrays, names=list(KINDS))


def value_like(name: str, number: int) -> Any:
    if name in INTEGERS:
        extreme = {39: 2**63 - 1, 38: -(2**63), 37: 2**53 + 1} if name == "i" else {}
        return extreme.get(number, number - 20)
    if name in FLOATS:
        odd = {0: float("nan"), 1: float("inf"), 2: -0.0, 3: float("-inf"), 4: float(2**53)}
        return odd.get(number, (number - 20) / 4)
    if name in DECIMALS:
        return Decimal(number - 20) / (4 if name == "d" else 8)
    if name in TEXTS:
        return WORDS[number % len(WORDS)]
    if name in TIMES:
        micro = 1_500 if name == "ts" else 2_000
        moment = dt.datetime(2023, 12, 30) + dt.timedelta(hours=7 * number, microseconds=micro)
        return dt.datetime(1969, 12, 31, 23, 59, 59) if number == 5 else moment
    if name == "day":
        return dt.date(2023, 12, 28) + dt.timedelta(days=number // 3)
    return number % 2 == 0


class Expressions:
    """Random trees, in which types fit."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([21, seed])

    def predicate(self, depth: int = 2) -> Node:
        if depth and self._rng.random() < 0.4:
            joint = self._one("and", "or", "not")
            if joint == "not":
                return ("not", self.predicate(depth - 1))
            return (joint, self.predicate(depth - 1), self.predicate(depth - 1))
        match self._one("number", "number", "number", "text", "text", "time", "time", "null"):
            case "number":
                return (self._one(*SYMBOLS), self.number(2), self.number(1, literal=True))
            case "text":
                test = self._one("contains", "ends_with", "starts_with", "like", "ilike", "cmp")
                if test == "cmp":
                    return (self._one(*SYMBOLS), self.text(2), self.text(1))
                patterns = ("a%", "%b", "a_b", "A%", "%a%b%", "_", "zebra%g", "É")
                operand = self._one(*(patterns if test.endswith("like") else WORDS[:10]))
                return (test, self.text(1), operand)
            case "time":
                if self._rng.random() < 0.3:
                    return (self._one(*SYMBOLS), self.part(), ("value", self._int(0, 30)))
                return (self._one(*SYMBOLS), self.time(2), self.time(1))
            case _:
                return ("is_null", self.number(2))

    def number(self, depth: int, literal: bool = False) -> Node:
        if literal and self._rng.random() < 0.4:
            return ("value", self._one(0, 1, -3, 2, 0.5, Decimal("0.25"), 1.75))
        if not depth or self._rng.random() < 0.3:
            return ("col", self._one(*INTEGERS, *FLOATS, *DECIMALS))
        function = self._one(*ARITHMETIC, "negate", "abs", "round", "length", "coalesce", "when")
        match function:
            case "negate" | "abs":
                return (function, self.number(depth - 1))
            case "round":
                return (function, ("col", self._one(*FLOATS, *DECIMALS)), self._int(0, 1))
            case "length":
                return (function, self.text(depth - 1))
            case "coalesce":
                return (function, ("col", self._one(*INTEGERS)), ("col", self._one(*INTEGERS)))
            case "when":
                chosen = ("col", self._one(*INTEGERS)), ("col", self._one(*INTEGERS))
                return (function, self.predicate(0), *chosen)
        if self._rng.random() < 0.1:
            return ("int8", ("col", self._one("i", "j", "f", "g")))
        return (function, self.number(depth - 1), self.number(depth - 1, literal=True))

    def text(self, depth: int) -> Node:
        if not depth or self._rng.random() < 0.4:
            return ("col", self._one(*TEXTS))
        function = self._one("lower", "upper", "strip", "+", "coalesce")
        if function in ("+", "coalesce"):
            return (function, self.text(depth - 1), ("value", self._one(*WORDS)))
        return (function, self.text(depth - 1))

    def time(self, depth: int) -> Node:
        if self._rng.random() < 0.2:
            return ("col", "day")
        if not depth or self._rng.random() < 0.4:
            return ("col", self._one(*TIMES))
        match self._one("date", "truncate", "+", "-"):
            case "date":
                return ("date", ("col", self._one(*TIMES)))
            case "truncate":
                unit = self._one("year", "month", "day", "hour", "second")
                return ("truncate", ("col", self._one(*TIMES)), unit)
            case sign:
                shift = self._one(dt.timedelta(hours=5), dt.timedelta(days=2, microseconds=7))
                return (sign, ("col", self._one(*TIMES)), ("value", shift))

    def part(self) -> Node:
        parts = ("year", "month", "day", "hour", "minute", "second", "microsecond", "weekday")
        return (self._one(*parts), ("col", self._one(*TIMES)))

    def _one(self, *choices: Any) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    def _int(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))


def as_value(node: Node) -> Any:
    """The library's expression for a tree."""
    match node:
        case ("col", name):
            return col(name)
        case ("value", literal):
            return literal
        case ("coalesce", *parts):
            return fs.coalesce(*map(as_value, parts))
        case ("when", condition, then, other):
            return fs.when(as_predicate(condition)).then(as_value(then)).otherwise(as_value(other))
        case ("negate", part):
            return -as_value(part)
        case ("int8", part):
            return as_value(part).cast("int8")
        case (function, left, right) if function in ARITHMETIC:
            return ARITHMETIC[function](as_value(left), as_value(right))
    function, part, *options = node
    return getattr(as_value(part), function)(*options)


def as_predicate(node: Node) -> Any:
    """The library's predicate for a tree."""
    match node:
        case ("not", part):
            return ~as_predicate(part)
        case ("and", left, right):
            return as_predicate(left) & as_predicate(right)
        case ("or", left, right):
            return as_predicate(left) | as_predicate(right)
        case ("is_null", part):
            return as_value(part).is_null()
        case (test, left, right) if test in SYMBOLS:
            return getattr(operator, SYMBOLS[test])(as_value(left), as_value(right))
    test, part, text = node
    return getattr(as_value(part), test)(text)
