"""Traps for whoever believes an index: predicates in plain Python, kinds of columns, and checks.

Files of traps have columns `row` and `x` in pages of four rows and blocks of eight. `Predicate` is
an expression for the library and the same in Python, with SQL's three-valued logic; `KINDS` are
column types with values in their order; `check` and its kin hold a file against them.
"""

import math
import operator
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

import fretsaw as fs
from fretsaw import col

PAGE, BLOCK = 4, 8
RUNS = {"block": BLOCK, "page": PAGE}
NAN, INF = math.nan, math.inf

Truth = bool | None
Order = Callable[[Any], Any]


# Predicates, and what they mean


@dataclass(frozen=True)
class Predicate:
    """An expression for the library, and the same in plain Python."""

    label: str
    expression: Any
    holds: Callable[[Any], Truth]

    def __invert__(self) -> "Predicate":
        return Predicate(f"~({self.label})", ~self.expression, lambda v: negated(self.holds(v)))

    def __and__(self, other: "Predicate") -> "Predicate":
        both = f"({self.label}) & ({other.label})"
        expression = self.expression & other.expression
        return Predicate(both, expression, lambda v: all_of([self.holds(v), other.holds(v)]))

    def __or__(self, other: "Predicate") -> "Predicate":
        either = f"({self.label}) | ({other.label})"
        expression = self.expression | other.expression
        return Predicate(either, expression, lambda v: any_of([self.holds(v), other.holds(v)]))

    def rows(self, values: Sequence[Any]) -> list[int]:
        return [row for row, value in enumerate(values) if self.holds(value)]


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def any_of(truths: Iterable[Truth]) -> Truth:
    found = set(truths)
    return True if True in found else None if None in found else False


def all_of(truths: Iterable[Truth]) -> Truth:
    return negated(any_of(map(negated, truths)))


def unless_null(function: Callable[[Any], Truth]) -> Callable[[Any], Truth]:
    return lambda value: None if value is None else function(value)


def same(value: Any) -> Any:
    return value


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
X = col("x")


def compared(name: str, literal: Any, order: Order = same, subject: Any = X) -> Predicate:
    compare = COMPARISONS[name]
    holds = unless_null(lambda value: bool(compare(order(value), order(literal))))
    return Predicate(f"{name} {literal!r}", compare(subject, literal), holds)


def one_of(literals: Sequence[Any], order: Order = same, subject: Any = X) -> Predicate:
    """SQL's IN: with a null in the list, what is not found may still be that."""
    keys = [order(literal) for literal in literals if literal is not None]
    missing = None if None in literals else False
    holds = unless_null(lambda value: True if order(value) in keys else missing)
    return Predicate(f"is_in {literals!r}", subject.is_in(literals), holds)


def between(low: Any, high: Any, order: Order = same, subject: Any = X) -> Predicate:
    holds = unless_null(lambda value: bool(order(low) <= order(value) <= order(high)))
    return Predicate(f"is_between {low!r}, {high!r}", subject.is_between(low, high), holds)


def is_null(subject: Any = X) -> Predicate:
    return Predicate("is_null", subject.is_null(), lambda value: value is None)


def is_not_null(subject: Any = X) -> Predicate:
    return Predicate("is_not_null", subject.is_not_null(), lambda value: value is not None)


def is_nan() -> Predicate:
    return Predicate("is_nan", X.is_nan(), unless_null(math.isnan))


def begins(prefix: str) -> Predicate:
    holds = unless_null(lambda value: value.startswith(prefix))
    return Predicate(f"starts_with {prefix!r}", X.starts_with(prefix), holds)


def every_test(*literals: Any, order: Order = same, subject: Any = X) -> list[Predicate]:
    """Every test with each of the literals."""
    low, high = min(literals, key=order), max(literals, key=order)
    return [
        is_null(subject),
        is_not_null(subject),
        between(low, high, order, subject),
        one_of(literals, order, subject),
        one_of([high, None], order, subject),
        one_of([low], order, subject),
        *(compared(name, value, order, subject) for value in literals for name in COMPARISONS),
    ]


def both_ways(predicates: Iterable[Predicate]) -> list[Predicate]:
    """All of them and the negation of every other one: the rest would say the same again."""
    made = list(predicates)
    return [*made, *(~predicate for predicate in made[::2])]


def folded(fold: str, *literals: int, path: str = "x.element") -> list[Predicate]:
    """Every test of a list's elements, folded over them; for a null list it is UNKNOWN."""
    fold_truths = {"any": any_of, "all": all_of}[fold]

    def over_elements(holds: Callable[[Any], Truth]) -> Callable[[Any], Truth]:
        return unless_null(lambda elements: fold_truths(map(holds, elements)))

    return [
        Predicate(f"{fold} {test.label}", test.expression, over_elements(test.holds))
        for test in every_test(*literals, subject=getattr(col(path), fold)())
    ]


def map_test(test: Predicate) -> Predicate:
    """The test of a list for the values of a map."""
    return Predicate(
        test.label,
        test.expression,
        unless_null(lambda pairs: test.holds([value for _, value in pairs])),
    )


def of_field(test: Predicate) -> Predicate:
    """The test of a value for the field `a` of a struct."""
    return Predicate(test.label, test.expression, lambda v: test.holds(v and v["a"]))


# Kinds of columns


@dataclass(frozen=True)
class Kind:
    """A column type: `at` gives its values by number from 0 to 46, in the column's order."""

    type: pa.DataType
    at: Callable[[int], Any] = same
    odd: tuple[Any, ...] = ()
    order: Order = same
    pack: Callable[[Any], bytes] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def tests(self, *literals: Any) -> list[Predicate]:
        return every_test(*literals, order=self.order)

    def spread(self) -> list[Any]:
        """Four pages of values; numbers 0, 10, 20, 30 and 40 lie around and between them."""
        return [self.at(10 * page + i) for page in range(4) for i in (2, 8, 4, 6)]

    def gaps(self, level: str) -> list[Any]:
        """Literals that tell whole runs apart."""
        return [self.at(i) for i in ((0, 20, 40) if level == "block" else (0, 10, 40))]

    @property
    def is_float(self) -> bool:
        return bool(pa.types.is_floating(self.type))

    @property
    def is_bytes(self) -> bool:
        """Whether bounds are bytes without a meaning, which a writer may cut short."""
        return isinstance(self.at(0), str | bytes | UUID)


def integer_kind(kind: pa.DataType, first: int, step: int) -> Kind:
    odd = (2**70, -(2**70), 0.5)
    return Kind(kind, lambda i: first + i * step, odd)


def float_kind(kind: pa.DataType, code: str) -> Kind:
    """Sorts as Java's `Double.compare`, after the literal was rounded to the column's width."""

    def order(value: Any) -> Any:
        rounded = float(kind.to_pandas_dtype()(value))
        return (1,) if math.isnan(rounded) else (0, rounded, math.copysign(1, rounded))

    def pack(value: float) -> bytes:
        return struct.pack(f"<{code}", value)

    return Kind(kind, lambda i: (i - 20) * 1.5, (INF, -INF, NAN, 0), order, pack)


def timestamp_kind(unit: str, zone: str | None) -> Kind:
    start = datetime(1970, 1, 1, tzinfo=UTC if zone else None)
    odd = (datetime(9999, 1, 1, tzinfo=start.tzinfo), start + timedelta(microseconds=500))
    return Kind(pa.timestamp(unit, zone), lambda i: start + timedelta((i - 20) * 99), odd)


def decimal_kind(kind: pa.DataType, step: str, pack: Callable[[Any], bytes] | None = None) -> Kind:
    odd = (10**30, -(10**30), 0.5, Decimal("0.00000001"))
    options = {"store_decimal_as_integer": True}
    return Kind(kind, lambda i: (i - 20) * Decimal(step), odd, pack=pack, options=options)


def minimal(value: Decimal) -> bytes:
    """A decimal of scale 2 in as few bytes as it takes, big-endian and signed."""
    number = int(value.scaleb(2))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


KINDS = {
    "int8": integer_kind(pa.int8(), -90, 4),
    "int16": integer_kind(pa.int16(), -25_000, 1_200),
    "int32": integer_kind(pa.int32(), -(2**31), 90_000_000),
    "int64": integer_kind(pa.int64(), -(2**63), 4 * 10**17),
    "uint8": integer_kind(pa.uint8(), 0, 5),
    "uint16": integer_kind(pa.uint16(), 0, 1_400),
    "uint32": integer_kind(pa.uint32(), 0, 90_000_000),
    "uint64": integer_kind(pa.uint64(), 0, 4 * 10**17),
    "float16": float_kind(pa.float16(), "e"),
    "float32": float_kind(pa.float32(), "f"),
    "float64": float_kind(pa.float64(), "d"),
    "date": Kind(pa.date32(), lambda i: date(1970, 1, 1) + timedelta((i - 20) * 999)),
    "time in ms": Kind(pa.time32("ms"), lambda i: time(i // 3, i % 3, 7)),
    "time in us": Kind(pa.time64("us"), lambda i: time(i // 3, i % 3, 0, 7)),
    "timestamp in ms": timestamp_kind("ms", None),
    "timestamp in us": timestamp_kind("us", "UTC"),
    "timestamp in ns": timestamp_kind("ns", "UTC"),
    "decimal in INT32": decimal_kind(pa.decimal128(7, 2), "123.45"),
    "decimal in INT64": decimal_kind(pa.decimal128(17, 4), "12345678.9012"),
    "decimal in FLBA": decimal_kind(pa.decimal128(30, 5), "123456789012345678.90123"),
    "wide decimal in FLBA": decimal_kind(pa.decimal256(50, 0), "3" * 40),
    "decimal in BYTE_ARRAY": decimal_kind(pa.decimal128(12, 2), "12.34", minimal),
    "string": Kind(pa.string(), lambda i: chr(0x40 + 2900 * i) + "é"),
    "binary": Kind(pa.binary(), lambda i: bytes([5 * i, 7])),
    "fixed binary": Kind(pa.binary(3), lambda i: bytes([5 * i, 7, 200])),
    "uuid": Kind(pa.uuid(), lambda i: UUID(int=i * 5 << 120 | 7)),
}
INT, STRING, BOOLEAN = KINDS["int32"], KINDS["string"], Kind(pa.bool_())


def deceived(kind: Kind) -> list[Predicate]:
    """Tests of values from 2 to 38 that go wrong for who believes in bounds from 44 to 46."""
    low, high = kind.at(4), kind.at(36)
    predicates = [compared(name, kind.at(42), kind.order) for name in ("<", ">")]
    predicates += [compared("==", low, kind.order), between(low, high, kind.order)]
    return [*predicates, ~predicates[2]]


# Values that are often misjudged


def floats(text: str) -> list[float | None]:
    return [None if word == "null" else float(word) for word in text.split()]


MIXED = floats("1 nan 2 3  1.5 2.5 2 nan  -5 -4 null nan  7 8 9 10")
ONLY_NAN = floats("nan nan nan nan  nan nan nan nan  nan null nan nan  1 1 1 1")
ENDLESS = floats("-inf 1 nan inf  inf inf inf inf  -inf -inf -inf -inf  5 nan null 6")
ZEROS_BELOW = floats("-0.0 1 2 0.0  -0.0 3 3 3  0.0 0.0 0.0 0.0  -0.0 -0.0 -0.0 -0.0")
ZEROS_ABOVE = floats("0.0 -1 -2 -0.0  0.0 -3 -3 -3  -0.0 -0.0 -0.0 -0.0  0.0 0.0 0.0 0.0")
ONLY_ZEROS = floats("0.0 -0.0 0.0 0.0  -0.0 -0.0 0.0 -0.0  0.0 0.0 0.0 0.0  -0.0 -0.0 -0.0 -0.0")
TENTHS = floats("0.1 0.1 0.1 0.1  0.1 0.2 0.3 0.4  -0.1 -0.1 -0.1 -0.1  -0.1 -0.1 -0.1 -0.1")
SIGNED_NAN = floats("-nan 1 2 3  nan 1 2 3  -nan 1 2 3  nan 1 2 3")
GAPPED = [1, None, 3, 4, None, 6, 7, None, 11, 12, 13, 14, None, None, 17, 18]
GAPPED_TESTS = both_ways(every_test(0, 20))
NOTHING = [None] * 8 + [1, 2, None, 3] + [None] * 4
LISTS = [
    *([1], [], None, [None], [], [], [], []),
    *(None, None, None, None, [5], [6, 7], [8], [9]),
    *([5], [6, None], [7], [8], [5], [], [7], [8]),
    *([5], None, [7], [8], [1, 9], [None, None], [2], [None, 3]),
]
MAPS = [None if v is None else [(str(i), e) for i, e in enumerate(v)] for v in LISTS]
STRUCTS = [
    *(None, {"a": None}, {"a": 1}, {"a": 2}, None, None, None, None),
    *({"a": None}, {"a": None}, {"a": None}, {"a": None}, {"a": 5}, {"a": 6}, {"a": 7}, {"a": 8}),
]


# Checks


def runs_of(values: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def rows_of(scan: fs.Scan) -> list[int]:
    rows: list[int] = scan.select().with_row_index("at").to_arrow()["at"].to_pylist()
    return rows


def check(
    data: bytes, values: Sequence[Any], predicates: Iterable[Predicate], *, windows: bool = False
) -> None:
    """Exactly the matching rows, the right count, and no matching row pruned."""
    flaws = []
    with fs.open(data) as file:
        for predicate in predicates:
            expected = predicate.rows(values)
            scan = file.scan().filter(predicate.expression)
            pruned = set(expected) - set(file.prune(predicate.expression).indices().tolist())
            outcomes: dict[str, tuple[Any, Any]] = {
                "rows": (rows_of(scan), expected),
                "lost by prune": (sorted(pruned), []),
            }
            if not predicate.label.startswith("~"):
                outcomes["count"] = (scan.count(), len(expected))
            if windows:
                outcomes["head"] = (rows_of(scan.head(1)), expected[:1])
                outcomes["tail"] = (rows_of(scan.tail(2)), expected[-2:])
            for what, (found, right) in outcomes.items():
                if found != right:
                    flaws.append(f"{predicate.label}: {what} {found}, not {right}")
    assert not flaws, "\n".join(flaws)


def check_proven(
    data: bytes,
    values: Sequence[Any],
    predicates: Iterable[Predicate],
    level: str,
    exact: bool = True,
) -> None:
    """Where each run matches as a whole or not at all, the index alone gives the answer.

    Bounds that need not be exact rule rows out; they need not prove that all of them match.
    """
    flaws, tried = [], 0
    with fs.open(data) as file:
        for predicate in predicates:
            matching = {len(predicate.rows(run)) for run in runs_of(values, RUNS[level])}
            if not matching <= {0, RUNS[level]}:
                continue
            tried += 1
            expected = predicate.rows(values)
            with fs.trace() as trace:
                count = file.scan().filter(predicate.expression).count()
            kept = file.prune(predicate.expression).indices().tolist()
            if kept != expected:
                flaws.append(f"{predicate.label}: prune keeps {kept}, not {expected}")
            if count != len(expected):
                flaws.append(f"{predicate.label}: counts {count}, not {len(expected)}")
            if trace.data_bytes and (exact or not expected):
                flaws.append(f"{predicate.label}: count reads {trace.data_bytes} bytes of data")
    assert tried
    assert not flaws, "\n".join(flaws)


def check_or_refuse(
    data: bytes, values: Sequence[Any], predicates: Iterable[Predicate], *, by_index: bool = True
) -> None:
    """The right answer or an error that says so, never a wrong one.

    With `by_index` also where nothing is read that could contradict the index.
    """
    flaws = []
    for predicate in predicates:
        expected = [(row, values[row]) for row in predicate.rows(values)]
        scan = fs.scan(data).filter(predicate.expression)
        try:
            table = scan.to_arrow()
            found = list(zip(table["row"].to_pylist(), table["x"].to_pylist(), strict=True))
            count = scan.count() if by_index else len(expected)
        except fs.FileFormatError:
            continue
        if found != expected or count != len(expected):
            flaws.append(f"{predicate.label}: {count} rows, {found}, not {expected}")
    assert not flaws, "\n".join(flaws)
