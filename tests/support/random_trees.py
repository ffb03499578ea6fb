"""Random expression trees over the columns of a file, of every kind that the contract lists.

Where the contract leaves a choice (a fraction in a literal beside a computed float of fewer bits,
the type of a choice between others), trees do not ask.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.support.random_literals import SPANS, literal_for, literal_like
from tests.support.row_evaluator.kinds import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    TEXT,
    Kind,
    decimal_kind,
    decimal_of_literal,
)
from tests.support.row_evaluator.trees import (
    Node,
    arithmetic,
    column,
    element,
    function,
    literal,
    moved,
    predicate,
)
from tests.support.tree_files import CENTS, FLOATS, SMALL

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
PATTERNS = ["a%", "%c", "a_c", "%", "", "_", "%b%", "__", "A%", "%ä%", "k%", "s%", "%\n%", "5"]
ESCAPED = ["a!_c", "a!%%", "!%", "!!", "%!_%"]
REGEXES = [
    "^a",
    "c$",
    "b|z",
    "[A-Z]{2}",
    "^ab?c$",
    "^$",
    ".",
    "\\d+",
    "^(a|Ä)",
    "ä",
    "a.c",
    "^\\w+$",
]
PIECES = ["", "a", "b", "abc", "ä", "Ä", "🎸", "\n", "%", "\x00", "5", " "]
PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond", "weekday")
UNITS_OF_TIME = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
FAMILIES = (
    *("int", "float", "decimal", "text", "date", "local", "instant", "time", "bytes", "bool"),
    "duration",
)


@dataclass
class Trees:
    """Trees of one seed over columns of these kinds."""

    chance: random.Random
    kinds: dict[str, Kind]
    depth: int = 4

    def tree(self) -> Node:
        return self.predicate(self.depth)

    def pick(self, values: Any) -> Any:
        return self.chance.choice(list(values))

    def odds(self, share: float) -> bool:
        return self.chance.random() < share

    def paths(self, family: str) -> list[Node]:
        found = []
        for name, kind in self.kinds.items():
            if kind.name == family:
                found.append(column((name,), kind))
            elif kind.name == "struct":
                fields = [(field, inner) for field, inner in kind.fields if inner.name == family]
                found += [column((name, field), inner) for field, inner in fields]
        return found

    def a_column(self, family: str) -> Node:
        return self.chance.choice(self.paths(family))

    def numeric(self) -> str:
        return self.chance.choice([f for f in ("int", "float", "decimal") if self.paths(f)])

    # Predicates

    def predicate(self, depth: int) -> Node:
        if depth > 1 and self.odds(0.45):
            return self.connected(depth)
        families = [family for family in FAMILIES if self.paths(family)]
        match self.chance.randrange(20):
            case 0 | 1:
                return self.null_test(depth)
            case 2 | 3 | 4:
                return self.text_test(depth)
            case 5 | 6 if self.lists():
                return self.fold()
            case 7:
                return predicate("nan", self.a_column("float"))
            case 8 if self.paths("bool"):
                return self.a_column("bool")
            case 9:
                return self.distinct(self.pick(families), depth)
            case 10 | 11:
                return self.membership(self.pick(families), depth)
            case 12:
                return self.between(self.pick(families), depth)
        return self.comparison(self.pick(families), depth)

    def connected(self, depth: int) -> Node:
        op = self.pick(("and", "or", "not", "and", "or"))
        if op == "not":
            return predicate("not", self.predicate(depth - 1))
        return predicate(op, self.predicate(depth - 1), self.predicate(depth - 1))

    def comparison(self, family: str, depth: int) -> Node:
        one = self.value(family, depth - 1)
        other = self.partner(one, depth) if self.odds(0.45) else self.literal_for(one)
        if self.odds(0.15):
            one, other = other, one
        return predicate("compare", one, other, extra=self.pick(COMPARISONS))

    def partner(self, one: Node, depth: int) -> Node:
        """Something of a kind that compares with this one."""
        if one.kind.is_number:
            return self.value(self.numeric(), depth - 1)
        if one.kind.name == "date" and self.paths("local") and self.odds(0.3):
            return self.value("local", depth - 1)
        if one.kind.name == "duration":
            return self.literal_for(one)
        return self.value(one.kind.name, depth - 1)

    def distinct(self, family: str, depth: int) -> Node:
        one = self.value(family, depth - 1)
        other = self.value(family, depth - 1) if self.odds(0.5) else self.literal_for(one)
        if family == "bool" and self.odds(0.5):
            other = self.predicate(depth - 1)
        return predicate("distinct", one, other, extra=self.odds(0.5))

    def membership(self, family: str, depth: int) -> Node:
        one = self.value(family, depth - 1)
        items = [self.literal_for(one) for _ in range(self.chance.randint(1, 4))]
        if self.odds(0.2):
            items.append(literal(None, one.kind))
        if self.odds(0.2):
            items.append(self.value(family, depth - 1))
        return predicate("in", one, *items)

    def between(self, family: str, depth: int) -> Node:
        one = self.value(family, depth - 1)
        return predicate("between", one, self.literal_for(one), self.literal_for(one))

    def null_test(self, depth: int) -> Node:
        if self.odds(0.2):
            one = self.predicate(depth - 1)
        elif self.odds(0.3):
            one = column((self.pick(self.kinds),), BOOL)
        else:
            one = self.value(self.pick(("int", "float", "text")), depth - 1)
        return predicate("null", one, extra=self.odds(0.5))

    def text_test(self, depth: int) -> Node:
        one = self.value("text", depth - 1)
        match self.chance.randrange(5):
            case 0:
                op = self.pick(("starts_with", "ends_with", "contains"))
                return predicate(op, one, extra=self.pick(PIECES))
            case 1:
                return predicate("matches", one, extra=self.pick(REGEXES))
            case 2:
                return predicate("like", one, extra=(self.pick(ESCAPED), "!", self.odds(0.3)))
        # The dotted and the dotless i are the ones that folding by characters leaves open.
        return predicate("like", one, extra=(self.pick(PATTERNS), None, self.odds(0.4)))

    # Lists and maps

    def lists(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind.name in ("list", "map")]

    def fold(self) -> Node:
        name = self.pick(self.lists())
        kind = self.kinds[name]
        inner = kind.element
        assert inner is not None
        which = self.pick(("any", "all"))
        fields = inner.fields or (((), inner),)
        if self.odds(0.4):
            field, leaf = self.pick(fields)
            one = element((field,) if field else (), leaf)
            test = predicate("compare", one, self.literal_for(one), extra=self.pick(COMPARISONS))
            if kind.name == "list" and not field and test.extra == "==" and which == "any":
                return predicate("fold", column((name,), kind), test, extra=(which, "contains"))
            return predicate("fold", column((name,), kind), test, extra=(which, "plain"))
        tests = []
        for _ in range(self.chance.randint(1, 2)):
            field, leaf = self.pick(fields)
            one = element((field,) if field else (), leaf)
            tests.append(self.element_test(one))
        test = tests[0]
        if len(tests) > 1:
            test = predicate(self.pick(("and", "or")), *tests)
        if self.odds(0.2):
            test = predicate("not", test)
        return predicate("fold", column((name,), kind), test, extra=(which, "each"))

    def element_test(self, one: Node) -> Node:
        if self.odds(0.15):
            return predicate("null", one, extra=self.odds(0.5))
        if one.kind.name == "text" and self.odds(0.5):
            op = self.pick(("starts_with", "contains"))
            return predicate(op, function(self.pick(("lower", "upper")), one), extra="a")
        if one.kind.name == "int" and self.odds(0.5):
            one = arithmetic(self.pick("+-%"), one, literal(self.pick(SMALL), INT))
        return predicate("compare", one, self.literal_for(one), extra=self.pick(COMPARISONS))

    # Values

    def value(self, family: str, depth: int) -> Node:
        paths = self.paths(family)
        if depth <= 0 or self.odds(0.25):
            return self.a_column(family) if paths else self.made(family, 1)
        return self.made(family, depth)

    def made(self, family: str, depth: int) -> Node:
        if self.odds(0.12) and self.paths(family):
            return self.chosen(family, depth)
        maker = getattr(self, f"made_{family}", None)
        made: Node = maker(depth - 1) if maker else self.a_column(family)
        return made

    def chosen(self, family: str, depth: int) -> Node:
        one, other = self.pick(self.paths(family)), self.value(family, depth - 1)
        if one.kind.name in ("local", "instant", "time", "decimal"):
            other = one if self.odds(0.5) else self.literal_like(one)
        kind = one.kind if family != "int" else replace(INT, signed=one.kind.signed)
        if family == "int" and not (one.kind.signed and other.kind.signed):
            other = self.literal_like(one) if self.odds(0.5) else one
            if other.is_literal:
                other = literal(abs(other.extra) % 2**31, INT)
        match self.chance.randrange(3):
            case 0:
                last = self.literal_like(one) if self.odds(0.5) else other
                return Node("coalesce", kind, (one, last))
            case 1:
                return Node("when", kind, (self.predicate(1), one, other))
        last = literal(None, kind) if self.odds(0.4) else other
        return Node("when", kind, (self.predicate(1), one, self.predicate(1), other, last))

    def made_int(self, depth: int) -> Node:
        match self.chance.randrange(12):
            case 0:
                return function("length", self.value("text", depth))
            case 1 if self.lists():
                name = self.pick(self.lists())
                return function("length", column((name,), self.kinds[name]))
            case 2 | 3:
                return self.part(depth)
            case 4:
                return function(self.pick(("negative", "abs")), self.value("int", depth))
            case 5:
                return function("round", self.value("int", depth), self.pick((0, 1, -1, -2)))
            case 6:
                return self.cast_to_int(depth)
            case 7 if self.getters("int"):
                return self.chance.choice(self.getters("int"))
        one = self.value("int", depth)
        other = self.value("int", depth) if self.odds(0.5) else literal(self.pick(SMALL), INT)
        if other.is_literal and not one.kind.signed:
            other = literal(abs(other.extra), replace(INT, signed=False))
        if other.is_literal and self.odds(0.2):
            one, other = other, one
        return arithmetic(self.pick(("+", "-", "*", "//", "%")), one, other)

    def getters(self, family: str) -> list[Node]:
        found = []
        for name in self.lists():
            kind = self.kinds[name]
            assert kind.element is not None
            inner = kind.element.field("value") if kind.name == "map" else kind.element
            if inner.name == family:
                key = self.pick(("k", "", "é")) if kind.name == "map" else self.pick((0, 1, 5))
                found.append(Node("get", inner, (column((name,), kind),), key))
        return found

    def part(self, depth: int) -> Node:
        family = self.pick([f for f in ("date", "local", "instant", "time") if self.paths(f)])
        names = {"date": (*PARTS[:3], "weekday"), "time": PARTS[3:7]}.get(family, PARTS)
        return function("part", self.value(family, depth), self.pick(names))

    def cast_to_int(self, depth: int) -> Node:
        target = Kind("int", self.pick((8, 32, 64)))
        source = self.value(self.pick(("int", "float", "text")), depth)
        return Node(self.pick(("cast", "try_cast")), target, (source,))

    def made_float(self, depth: int) -> Node:
        match self.chance.randrange(10):
            case 0:
                return function(self.pick(("negative", "abs")), self.value("float", depth))
            case 1:
                return function("round", self.value("float", depth), self.pick((0, 1, -1)))
            case 2:
                source = self.pick([*self.paths("int"), *self.paths("decimal")])
                return Node("cast", FLOAT, (source,))
            case 3 | 4:
                one, other = (self.value(self.numeric(), depth) for _ in range(2))
                return arithmetic("/", one, other)
        one = self.value("float", depth)
        other = self.a_column(self.numeric())
        if self.odds(0.4):
            other = literal(self.pick([x for x in FLOATS if x == x]), FLOAT)
        return arithmetic(self.pick(("+", "-", "*", "/", "//", "%")), one, other)

    def made_decimal(self, depth: int) -> Node:
        match self.chance.randrange(6):
            case 0:
                return function(self.pick(("negative", "abs")), self.value("decimal", depth))
            case 1:
                return function("round", self.value("decimal", depth), self.pick((0, 1, 2)))
            case 2:
                source = self.pick(self.paths("int"))
                return Node("cast", decimal_kind(20, 2), (source,))
        one = self.value("decimal", depth)
        other = self.pick([*self.paths("decimal"), *self.paths("int")])
        if self.odds(0.4):
            number = self.pick(CENTS)
            other = literal(number, decimal_of_literal(number))
        return arithmetic(self.pick(("+", "-", "*", "+", "-", "*", "//", "%")), one, other)

    def made_text(self, depth: int) -> Node:
        match self.chance.randrange(5):
            case 0:
                source = self.pick([*self.paths("int"), *self.paths("date")])
                return Node("cast", TEXT, (source,))
            case 1 if self.getters("text"):
                return self.chance.choice(self.getters("text"))
            case 2 | 3:
                op = self.pick(("lower", "upper", "strip"))
                return function(op, self.value("text", depth))
        one = self.value("text", depth)
        other = literal(self.pick(PIECES), TEXT) if self.odds(0.6) else self.value("text", depth)
        return arithmetic("+", one, other)

    def made_date(self, depth: int) -> Node:
        match self.chance.randrange(4):
            case 0:
                families = [f for f in ("local", "instant") if self.paths(f)]
                return function("date", self.value(self.pick(families), depth))
            case 1:
                one = self.value("date", depth)
                return function("truncate", one, self.pick(UNITS_OF_TIME[:4]))
            case 2 if self.paths("local"):
                return Node("cast", DATE, (self.value("local", depth),))
        days = literal(self.pick((0, 1, -1, 30, -400)) * 86_400 * 10**9, DURATION)
        return moved(self.pick("+-"), self.value("date", depth), days)

    def made_local(self, depth: int) -> Node:
        return self.made_moment("local", depth)

    def made_instant(self, depth: int) -> Node:
        return self.made_moment("instant", depth)

    def made_moment(self, family: str, depth: int) -> Node:
        one = self.value(family, depth)
        if self.odds(0.5):
            return function("truncate", one, self.pick(UNITS_OF_TIME))
        if self.paths("duration") and self.odds(0.3):
            return moved(self.pick("+-"), one, self.a_column("duration"))
        return moved(self.pick("+-"), one, literal(self.pick(SPANS), DURATION))

    def made_duration(self, depth: int) -> Node:
        family = self.pick([f for f in ("date", "local", "instant") if self.paths(f)])
        return moved("-", self.value(family, depth), self.value(family, depth))

    def literal_like(self, one: Node) -> Node:
        return literal_like(self.chance, one)

    def literal_for(self, one: Node) -> Node:
        return literal_for(self.chance, one)
