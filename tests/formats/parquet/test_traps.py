"""What an index may prove, and what it must not: files made so that one step too far loses a row.

Files have columns `row` and `x` in pages of four rows and blocks of eight. What is said of a run
of values is crafted: in the footer's statistics for blocks, in the column index for pages. Every
predicate is held against plain Python with SQL's three-valued logic.
"""

import io
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
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.craft import (
    COLUMN_INDEX_AT,
    I32,
    I64,
    IEEE754_ORDER,
    META_DATA,
    UNHEARD_ORDER,
    Crafted,
)

pytestmark = pytest.mark.slow

PAGE, BLOCK = 4, 8
RUNS = {"block": BLOCK, "page": PAGE}
NAN, INF = math.nan, math.inf

Truth = bool | None
Order = Callable[[Any], Any]
Facts = Mapping[str, Any]
Describe = Callable[[Sequence[Any]], Facts]
Change = Callable[[Crafted], object]

levels = pytest.mark.parametrize("level", ["block", "page"])


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

    def stored(self, value: Any) -> bytes:
        """The value as a bound; by default as pyarrow writes it."""
        if self.pack:
            return self.pack(value)
        bound: bytes = written([value], self).statistics("x")[0]["min_value"]
        return bound

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
# One of each physical type and order: enough where no bound is used
FEW = (
    *("int32", "uint32", "int64", "uint64", "float16", "float64", "date", "timestamp in us"),
    *("decimal in INT32", "decimal in FLBA", "decimal in BYTE_ARRAY"),
    *("string", "binary", "fixed binary", "uuid"),
)


# Files


def array_of(values: Sequence[Any], kind: Kind) -> pa.Array:
    if kind.pack is minimal:
        return pa.array([None if v is None else minimal(v) for v in values], pa.binary())
    if kind.type == pa.uuid():
        storage = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind.type, storage)
    return pa.array(values, kind.type)


def written(values: Sequence[Any], kind: Kind) -> Crafted:
    """The file as pyarrow writes it, without dictionaries, which would be a second source."""
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"row": range(len(values)), "x": array_of(values, kind)}),
        buffer,
        row_group_size=BLOCK,
        max_rows_per_page=PAGE,
        write_batch_size=1,
        write_page_index=True,
        use_dictionary=False,
        store_schema=False,
        **kind.options,
    )
    file = Crafted(buffer.getvalue())
    if kind.pack is minimal:
        file.set_type("x", converted_type=5, scale=2, precision=12)
    return file


def runs_of(values: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def crafted(
    values: Sequence[Any],
    kind: Kind,
    level: str,
    describe: Describe | None = None,
    change: Change = same,
    column: str = "x",
) -> bytes:
    """A file that has bounds and counts at one level only, as described there."""
    file = written(values, kind)
    if describe is None:
        describe = honest(kind) if kind.pack else always()
    blocks = runs_of(values, BLOCK)
    nothing = [None for _ in blocks]
    if level == "block":
        file.set_column_index(column, nothing)
        facts = [describe(block) for block in blocks]
        only_for_pages = ("null_page",)
        file.set_statistics(
            column, [{k: v for k, v in f.items() if k not in only_for_pages} for f in facts]
        )
    else:
        before = zip(blocks, file.column_index(column), strict=True)
        indexes = [column_index(runs_of(block, PAGE), old, describe) for block, old in before]
        file.set_statistics(column, nothing).set_column_index(column, indexes)
    change(file)
    return file.to_bytes()


def column_index(pages: Sequence[Sequence[Any]], before: Facts, describe: Describe) -> Facts:
    """A column index as before, but for what is described; without a fact for all, without it."""
    nulls = [sum(value is None for value in page) for page in pages]
    index = {
        "null_pages": [count == len(page) for count, page in zip(nulls, pages, strict=True)],
        "min_values": [b"" for _ in pages],
        "max_values": [b"" for _ in pages],
        "boundary_order": 0,
        "null_counts": nulls,
        "nan_counts": [None for _ in pages],
        **before,
    }
    for number, page in enumerate(pages):
        facts = {"null_page": index["null_pages"][number], **describe(page)}
        for fact in facts.keys() & {"null_page", "null_count", "nan_count"}:
            index[fact + "s"][number] = facts[fact]
        for fact in facts.keys() & {"min_value", "max_value"}:
            index[fact + "s"][number] = facts[fact] or b""
    return {name: None if isinstance(v, list) and None in v else v for name, v in index.items()}


def always(**facts: Any) -> Describe:
    return lambda run: facts


def plus(describe: Describe, **facts: Any) -> Describe:
    """The description with some facts changed, or taken out: `None`."""
    return lambda run: {**describe(run), **facts}


OLD_BOUNDS = {"min": None, "max": None}


def honest(kind: Kind) -> Describe:
    """The true bounds of what is not null or NaN, the true number of nulls."""

    def describe(run: Sequence[Any]) -> Facts:
        present = [value for value in run if value is not None]
        solid = [value for value in present if not kind.is_float or not math.isnan(value)]
        low = kind.stored(min(solid, key=kind.order)) if solid else None
        high = kind.stored(max(solid, key=kind.order)) if solid else None
        nulls = {"null_count": len(run) - len(present), "null_page": not present}
        return {**OLD_BOUNDS, "min_value": low, "max_value": high, **nulls}

    return describe


def says(low: bytes, high: bytes, **more: Any) -> Describe:
    """The same bounds for all."""
    return always(**OLD_BOUNDS, min_value=low, max_value=high, **more)


# Checks


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


@dataclass(frozen=True)
class Trap:
    """Values, what an index says of them, and the tests that this might lead astray."""

    kind: Kind
    values: Sequence[Any]
    tests: Sequence[Predicate]
    describe: Describe | None = None
    change: Change = same
    levels: tuple[str, ...] = ("block", "page")

    def check(self, level: str, *, windows: bool = False) -> None:
        data = crafted(self.values, self.kind, level, self.describe, self.change)
        check(data, self.values, self.tests, windows=windows)


def traps(cases: Mapping[str, Trap]) -> pytest.MarkDecorator:
    """Each trap at each level where it can be set."""
    parameters = [
        pytest.param(trap, level, id=f"{name}, {level}")
        for name, trap in cases.items()
        for level in trap.levels
    ]
    return pytest.mark.parametrize(("trap", "level"), parameters)


# Bounds of integers, dates, times, timestamps, decimals and strings


@pytest.mark.slow
@levels
@pytest.mark.parametrize("name", KINDS)
def test_bounds_prove_in_the_order_of_the_column(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    predicates = kind.tests(*kind.gaps(level))
    edges = [("<=", 8), (">", 8), ("<", 12), (">=", 12)]
    predicates += [compared(name, kind.at(i), kind.order) for name, i in edges]
    if name == "string":
        predicates += [begins(prefix) for prefix in ("\U0010ffff", *kind.gaps(level))]
    describe = plus(honest(kind), nan_count=0) if kind.is_float else None
    data = crafted(values, kind, level, describe)
    exact = level == "block" or not kind.is_bytes
    check_proven(data, values, both_ways(predicates), level, exact)


@pytest.mark.slow
@levels
@pytest.mark.parametrize("name", KINDS)
def test_bounds_lose_no_row_within_them(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    values[1] = values[11] = values[12] = None
    predicates = kind.tests(kind.at(36), *kind.odd)
    check(crafted(values, kind, level), values, predicates)


@levels
def test_equal_bounds_prove_equality(level: str) -> None:
    values = [1] * 8 + [2] * 8
    check_proven(crafted(values, INT, level), values, both_ways(every_test(1, 2, 3)), level)


def test_exact_equal_bounds_prove_equality_of_strings() -> None:
    values = ["one"] * 8 + ["two"] * 8
    check_proven(
        crafted(values, STRING, "block"), values, both_ways(every_test("one", "two")), "block"
    )


@levels
def test_booleans(level: str) -> None:
    predicates = both_ways(
        [
            *(compared(name, value) for name in ("==", "!=") for value in (True, False)),
            *(one_of(values) for values in ([True], [False, None], [True, False])),
            is_null(),
        ]
    )
    mixed = [True] * 4 + [False] * 4 + [True, False, None, True] + [None] * 4
    for describe in (None, says(b"", b""), says(bytes(2), bytes(2)), says(b"\1", b"\0")):
        check(crafted(mixed, BOOLEAN, level, describe), mixed, predicates)
    pure = [True] * 8 + [False] * 8 + [None] * 8
    check_proven(crafted(pure, BOOLEAN, level), pure, predicates, level)


@levels
@pytest.mark.parametrize(
    "name", ["decimal in FLBA", "decimal in BYTE_ARRAY", "decimal in INT32", "float16", "date"]
)
def test_stored_values_have_an_order_of_their_own(name: str, level: str) -> None:
    """Bytes compare as bytes, though the bounds are those of numbers."""
    kind = KINDS[name]
    values = kind.spread()

    def stored(value: Any) -> bytes | int:
        bound = kind.stored(value)
        is_integer = name in ("decimal in INT32", "date")
        return int.from_bytes(bound, "little", signed=True) if is_integer else bound

    describe = plus(honest(kind), nan_count=0) if kind.is_float else None
    predicates = [
        Predicate(test.label, test.expression, lambda v, holds=test.holds: holds(stored(v)))  # type: ignore[misc]
        for test in every_test(*(stored(kind.at(i)) for i in (4, 10, 30)), subject=X.physical)
    ]
    check(crafted(values, kind, level, describe), values, both_ways(predicates))


@pytest.mark.parametrize("name", ["int32", "uint32", "string", "decimal in FLBA"])
def test_pages_that_are_ruled_out_are_not_decoded(name: str) -> None:
    kind = KINDS[name]
    scan = fs.scan(crafted(kind.spread(), kind, "page")).filter(
        compared(">", kind.at(30)).expression
    )
    with fs.trace() as trace:
        assert scan.to_arrow()["row"].to_pylist() == [12, 13, 14, 15]
    assert trace.pages_decoded == 2
    assert trace.index_bytes > 0


def deceived(kind: Kind) -> list[Predicate]:
    """Tests of values from 2 to 38 that go wrong for who believes in bounds from 44 to 46."""
    low, high = kind.at(4), kind.at(36)
    predicates = [compared(name, kind.at(42), kind.order) for name in ("<", ">")]
    predicates += [compared("==", low, kind.order), between(low, high, kind.order)]
    return [*predicates, ~predicates[2]]


def column_orders(order: int | None) -> Change:
    return lambda file: file.set_column_orders(order)


CUTS: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda bound: b"",
    "a byte short": lambda bound: bound[:-1],
    "a byte short in front": lambda bound: bound[1:],
    "a byte long": lambda bound: bound + bound[-1:],
    "of twice the width": lambda bound: bound + bytes(len(bound)),
    "of twice the width in front": lambda bound: bytes(len(bound)) + bound,
}


CUT_KINDS = ("int32", "int64", "float16", "float64", "decimal in FLBA", "fixed binary", "uuid")


def lies() -> dict[str, Trap]:
    """Wrong bounds, each with a reason not to believe it."""
    cases = {}
    for name in FEW:
        kind = KINDS[name]
        low, high = kind.stored(kind.at(44)), kind.stored(kind.at(46))
        more = {"nan_count": 0} if kind.is_float else {}
        ways: dict[str, tuple[Describe, Change]] = {
            "column order absent": (says(low, high, **more), column_orders(None)),
            "column order unheard of": (says(low, high, **more), column_orders(UNHEARD_ORDER)),
            "min above max": (says(high, low, **more), same),
        }
        for cut in CUTS if name in CUT_KINDS else ["empty"] if kind.pack is minimal else []:
            ways[f"bounds {cut}"] = says(CUTS[cut](low), CUTS[cut](high), **more), same
        for way, (describe, change) in ways.items():
            trap = Trap(kind, kind.spread(), deceived(kind), describe, change)
            cases[f"{name}: {way}"] = trap
    return cases


@pytest.mark.slow
@traps(lies())
def test_bounds_that_prove_nothing(trap: Trap, level: str) -> None:
    trap.check(level)


INEXACT = {"is_min_value_exact": False, "is_max_value_exact": False}
UNSURE = {"is_min_value_exact": None, "is_max_value_exact": None}
UNDEFINED = (
    *("uint8", "uint32", "uint64", "decimal in FLBA", "decimal in BYTE_ARRAY", "string"),
    *("wide decimal in FLBA", "binary", "fixed binary", "uuid", "float16"),
)
exactness = pytest.mark.parametrize("unsure", [INEXACT, UNSURE], ids=["inexact", "unsaid"])
ordered = pytest.mark.parametrize("order", [1, None], ids=["ordered", "column order absent"])


def deprecated(describe: Describe) -> Describe:
    """The bounds in the fields that were used before orders were defined."""

    def moved(run: Sequence[Any]) -> Facts:
        facts = describe(run)
        bounds = {"min": facts["min_value"], "max": facts["max_value"]}
        return {**facts, **UNSURE, **bounds, "min_value": None, "max_value": None}

    return moved


@ordered
@pytest.mark.parametrize("name", UNDEFINED)
def test_deprecated_bounds_of_undefined_order_prove_nothing(name: str, order: int | None) -> None:
    kind = KINDS[name]
    more = {"nan_count": 0} if kind.is_float else {}
    lie = says(kind.stored(kind.at(44)), kind.stored(kind.at(46)), **more)
    change = column_orders(order)
    Trap(kind, kind.spread(), deceived(kind), deprecated(lie), change).check("block")


@ordered
@pytest.mark.parametrize(
    "name", ["int8", "int32", "int64", "date", "timestamp in us", "decimal in INT32"]
)
def test_deprecated_bounds_of_signed_order_prove(name: str, order: int | None) -> None:
    kind = KINDS[name]
    values = kind.spread()
    describe = deprecated(honest(kind))
    data = crafted(values, kind, "block", describe, column_orders(order))
    check_proven(data, values, both_ways(kind.tests(*kind.gaps("block"))), "block")


def test_deprecated_bounds_do_not_replace_the_others() -> None:
    bad = {"min": STRING.stored(STRING.at(44)), "max": STRING.stored(STRING.at(46))}
    describe = plus(honest(STRING), **bad)
    Trap(STRING, STRING.spread(), deceived(STRING), describe).check("block")


ONE_SIDED = {
    f"{name} without {bound}": Trap(
        KINDS[name],
        KINDS[name].spread(),
        both_ways(KINDS[name].tests(*(KINDS[name].at(i) for i in (0, 10, 24, 40)))),
        plus(honest(KINDS[name]), **{bound: None}),
    )
    for name in ("int64", "float64", "string")
    for bound in ("min_value", "max_value")
}


@traps(ONE_SIDED)
def test_one_bound_says_nothing_of_the_other_side(trap: Trap, level: str) -> None:
    trap.check(level)


@levels
def test_int96_has_no_order(level: str) -> None:
    first_day = 2_458_850  # the Julian day of the date below
    start = datetime(2020, 1, 1, tzinfo=UTC)
    options = {"use_deprecated_int96_timestamps": True}
    kind = Kind(pa.timestamp("ns", "UTC"), lambda i: start + timedelta(i), options=options)
    lie = says(*(struct.pack("<qi", 0, first_day + i) for i in (44, 46)), null_count=0)
    Trap(kind, kind.spread(), deceived(kind), lie).check(level)


# Truncated bounds

LONG = "p" * 70
CUT, AFTER_CUT = LONG[:64], LONG[:63] + "q"
LONG_VALUES = [LONG + end for end in "abcdefgh"] + ["p" + end for end in "abcd"] + [CUT, LONG] * 2
LONG_PREFIXES = ("", "p", "pa", CUT, LONG + "a", LONG + "z", AFTER_CUT)
LONG_TESTS = [*every_test(CUT, LONG + "b", AFTER_CUT), *map(begins, LONG_PREFIXES)]
ACCENTS = ["é" * 40 + end for end in "abcdefgh"] + ["é" * 31 + end for end in "wxyz€é😀\uffff"]
ACCENT_TESTS = [
    *every_test("é" * 31, "é" * 40 + "c", "é" * 31 + "😀"),
    *map(begins, ("é" * 31, "é" * 32, "é" * 31 + "€", "é" * 31 + "\uffff")),
]
TOP = "\U0010ffff"
TOPMOST = [TOP * 20 + end for end in "abcdefgh"] * 2
TOPMOST_TESTS = [
    *every_test(TOP * 20, TOP * 20 + "c", TOP * 21),
    *(begins(TOP * count) for count in (1, 16, 20, 21)),
]
SHORT = ["a", "a", "ab", "ac", "b", "ba", "bb", "c"] * 2
SHORT_TESTS = [*every_test("a", "ab", "b", "c", "d"), *map(begins, ("a", "ab", "b", "c", "d"))]
ONE_VALUE = [LONG + "a"] * 8 + [LONG + "b"] * 8
EQUALITIES = both_ways(
    [compared("==", CUT), compared("!=", CUT), one_of([CUT]), one_of([CUT, None])]
)


def cut_to(size: int, **more: bool | None) -> Describe:
    """Bounds of at most so many bytes, the upper one counted up in its last byte."""

    def describe(run: Sequence[str]) -> Facts:
        present = [value.encode() for value in run]
        low, high = min(present), max(present)
        if len(high) > size:
            high = high[: size - 1] + bytes([high[size - 1] + 1])
        return {"min_value": low[:size], "max_value": high, **more}

    return describe


def cut_strings(values: Sequence[str], predicates: Sequence[Predicate], describe: Describe) -> Trap:
    return Trap(STRING, values, both_ways(predicates), describe)


TRUNCATED = {
    "inexact": cut_strings(LONG_VALUES, LONG_TESTS, cut_to(64, **INEXACT)),
    "exactness absent": cut_strings(LONG_VALUES, LONG_TESTS, cut_to(64, **UNSURE)),
    "cut to a byte": cut_strings(LONG_VALUES, LONG_TESTS, cut_to(1, **UNSURE)),
    "only min is exact": cut_strings(
        SHORT, SHORT_TESTS, cut_to(1, is_min_value_exact=True, is_max_value_exact=False)
    ),
    "within a character": cut_strings(ACCENTS, ACCENT_TESTS, cut_to(63, **INEXACT)),
    "after the highest character": cut_strings(TOPMOST, TOPMOST_TESTS, cut_to(64, **UNSURE)),
}


@traps(TRUNCATED)
def test_truncated_bounds_are_no_values(trap: Trap, level: str) -> None:
    trap.check(level)


@levels
@exactness
def test_equal_truncated_bounds_prove_no_equality(unsure: Facts, level: str) -> None:
    """The upper one is no bound of the values: who decodes them may say so."""
    data = crafted(ONE_VALUE, STRING, level, says(CUT.encode(), CUT.encode(), **unsure))
    check_or_refuse(data, ONE_VALUE, EQUALITIES)


@levels
@exactness
def test_truncated_bounds_rule_out(unsure: Facts, level: str) -> None:
    values = [letter * 70 + str(i) for letter in "bdfh" for i in range(4)]
    literals = ("a" * 70, "e" * 70, "e", "i", *(["c" * 70] if level == "page" else []))
    predicates = both_ways([*every_test(*literals), *map(begins, literals)])
    data = crafted(values, STRING, level, cut_to(64, **unsure))
    check_proven(data, values, predicates, level, exact=False)


@levels
def test_bytes_without_a_successor(level: str) -> None:
    endings = [b"\xff" * 3, b"\xff\xff", b"\xff", b"", b"\x7f", b"\x80", b"\xfe\xff", b"\xff\x00"]
    predicates = both_ways(every_test(b"\xff", b"\xff\xff", b"", b"\x80", b"\x00"))
    Trap(KINDS["binary"], endings * 2, predicates).check(level)


# Float bounds


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


def counting_nan(describe: Describe) -> Describe:
    def counted(run: Sequence[Any]) -> Facts:
        nans = sum(value is not None and math.isnan(value) for value in run)
        return {**describe(run), "nan_count": nans}

    return counted


def zero_as_bound(kind: Kind, zero: float) -> Describe:
    """True bounds, but for the sign of a zero."""

    def describe(run: Sequence[float]) -> Facts:
        low, high = (kind.stored(bound or zero) for bound in (min(run), max(run)))
        return {"min_value": low, "max_value": high, "nan_count": 0}

    return describe


def float_traps(kind: Kind) -> dict[str, Trap]:
    true, nan = honest(kind), kind.stored(NAN)
    minus_nan = kind.stored(-NAN)
    plus_zero, minus_zero = kind.stored(0.0), kind.stored(-0.0)

    def trap(
        values: Sequence[Any], literals: Sequence[float], describe: Describe, **more: Any
    ) -> Trap:
        predicates = both_ways([*kind.tests(*literals), is_nan()])
        return Trap(kind, values, predicates, describe, **more)

    some = (NAN, 2.0, 100.0)
    zeros = (0, -0.0)
    ieee = column_orders(IEEE754_ORDER)
    return {
        "NaN within finite bounds": trap(MIXED, some, true),
        "NaN counted": trap(MIXED, some, counting_nan(true)),
        "NaN as both bounds": trap(MIXED, some, plus(true, min_value=nan, max_value=nan)),
        "NaN as min": trap(MIXED, some, plus(true, min_value=nan)),
        "NaN as max": trap(MIXED, some, plus(true, max_value=nan)),
        "NaN of either sign": trap(SIGNED_NAN, some, says(minus_nan, nan)),
        "NaN counted in bounds": trap(SIGNED_NAN, some, counting_nan(says(minus_nan, nan))),
        "NaN in its IEEE place": trap(
            SIGNED_NAN, some, counting_nan(says(minus_nan, nan)), change=ieee
        ),
        "only NaN, no bounds": trap(ONLY_NAN, (NAN, 1.0, 2.0), true),
        "only NaN, counted": trap(ONLY_NAN, (NAN, 1.0, 2.0), counting_nan(true)),
        "infinite bounds": trap(ENDLESS, (INF, -INF, NAN, 5.0), true),
        "literal of another width": trap(TENTHS, (0.1, -0.1, 0.2), counting_nan(true)),
        "+0.0 as min, -0.0 inside": trap(ZEROS_BELOW, zeros, zero_as_bound(kind, 0.0)),
        "-0.0 as max, +0.0 inside": trap(ZEROS_ABOVE, zeros, zero_as_bound(kind, -0.0)),
        "+0.0 as both bounds": trap(ONLY_ZEROS, zeros, zero_as_bound(kind, 0.0)),
        "-0.0 as both bounds": trap(ONLY_ZEROS, zeros, zero_as_bound(kind, -0.0)),
        "+0.0 as min, -0.0 as max": trap(
            ONLY_ZEROS, zeros, says(plus_zero, minus_zero, nan_count=0)
        ),
        "NaN within deprecated bounds": trap(MIXED, some, deprecated(true), levels=("block",)),
    }


FEW_FLOATS = ("NaN within finite bounds", "NaN as max", "literal of another width", "+0.0 as min")
FLOATS = {
    f"{name}: {label}": trap
    for name in ("float16", "float32", "float64")
    for label, trap in float_traps(KINDS[name]).items()
    if name == "float64" or label.startswith(FEW_FLOATS)
}


@pytest.mark.slow
@traps(FLOATS)
def test_float_bounds_hold_for_what_is_not_nan(trap: Trap, level: str) -> None:
    trap.check(level)


@levels
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_float_bounds_rule_out_below_without_a_count_of_nan(name: str, level: str) -> None:
    kind = KINDS[name]
    values = kind.spread()
    gaps = kind.gaps(level)
    predicates = [compared(test, gap, kind.order) for test in ("<", "<=", "==") for gap in gaps]
    predicates += [~compared(test, gap, kind.order) for test in (">", ">=", "!=") for gap in gaps]
    predicates += [between(gaps[0], gaps[1], kind.order), one_of(gaps, kind.order)]
    data = crafted(values, kind, level, honest(kind))
    check_proven(data, values, predicates, level, exact=False)


@pytest.mark.parametrize("values", [MIXED, ONLY_NAN, ENDLESS], ids=["some", "most", "few"])
def test_pages_of_nan_have_no_column_index(values: list[float | None]) -> None:
    """As pyarrow has it: one block with, one without, both with statistics."""
    kind = KINDS["float64"]
    predicates = both_ways([*kind.tests(NAN, 1.0, 0.0), is_nan()])
    check(written(values, kind).to_bytes(), values, predicates)


@levels
def test_no_nan_is_proven_by_its_count(level: str) -> None:
    kind = KINDS["float64"]
    values = kind.spread()
    data = crafted(values, kind, level, plus(honest(kind), nan_count=0))
    check_proven(data, values, both_ways([is_nan(), *kind.tests(NAN)]), level)


# Null counts

GAPPED = [1, None, 3, 4, None, 6, 7, None, 11, 12, 13, 14, None, None, 17, 18]
GAPPED_TESTS = both_ways(every_test(0, 20))
UNDERCOUNTING = (
    "parquet-mr version 1.9.0",
    "parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)",
    "parquet-mr version 1.9.1-SNAPSHOT",
    "parquet-cpp-arrow version 5.0.0",
    "parquet-cpp-arrow version 2.0.0-SNAPSHOT",
)
COUNTING = (
    "parquet-mr version 1.10.0",
    "parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)",
    "parquet-cpp-arrow version 6.0.0",
    "parquet-cpp-arrow version 10.0.1-SNAPSHOT",
    "parquet-rs version 53.0.0",
)


def created_by(writer: str) -> Change:
    return lambda file: file.set_created_by(writer)


NOTHING = [None] * 8 + [1, 2, None, 3] + [None] * 4
NULLS = {
    "count absent": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=None)),
    "all null, count absent": Trap(INT, NOTHING, GAPPED_TESTS, always(null_count=None)),
    "all null, undercounted": Trap(
        INT, NOTHING, GAPPED_TESTS, always(null_count=0), created_by(UNDERCOUNTING[0])
    ),
    **{
        f"undercounted by {writer[:28]}": Trap(
            INT, GAPPED, GAPPED_TESTS, always(null_count=0), created_by(writer)
        )
        for writer in UNDERCOUNTING
    },
}


NO_BOUNDS = {**OLD_BOUNDS, "min_value": None, "max_value": None}
FULL = [1, 2, 3, 4, 5, 6, 7, 8, 2, 2, 2, 2, 3, 0, 1, 9]


def counting_one_less(run: Sequence[Any]) -> Facts:
    """One null is left out of the count, the first of the run."""
    return {"null_count": max(0, sum(value is None for value in run) - 1)}


def totals(values: Sequence[Any]) -> Change:
    """The true number of nulls in the statistics of blocks, and nothing else there."""
    counts = [sum(value is None for value in block) for block in runs_of(values, BLOCK)]
    facts = [{**NO_BOUNDS, "null_count": count} for count in counts]
    return lambda file: file.set_statistics("x", facts)


NULLS |= {
    "negative count": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=-1)),
    "very negative count": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=-(2**63))),
    "more nulls than rows": Trap(INT, GAPPED, GAPPED_TESTS, always(null_count=BLOCK + 1)),
    "a count of zero by default": Trap(
        INT, GAPPED, GAPPED_TESTS, always(null_count=0, **NO_BOUNDS)
    ),
    "decimals, a count of zero by default": Trap(
        KINDS["decimal in FLBA"],
        [None, Decimal(1), None, Decimal(2)] * 4,
        both_ways(every_test(Decimal(0), Decimal(20))),
        always(null_count=0, **NO_BOUNDS),
    ),
    "all null by the count, bounds deny it": Trap(
        INT, FULL, GAPPED_TESTS, lambda run: {**honest(INT)(run), "null_count": len(run)}
    ),
    "all null by the count, deprecated bounds deny it": Trap(
        INT,
        FULL,
        GAPPED_TESTS,
        lambda run: {**deprecated(honest(INT))(run), "null_count": len(run)},
        levels=("block",),
    ),
    "all null by the count, one bound denies it": Trap(
        INT,
        FULL,
        GAPPED_TESTS,
        lambda run: {**NO_BOUNDS, "max_value": INT.stored(9), "null_count": len(run)},
        levels=("block",),
    ),
    "pages that have less nulls than their block": Trap(
        INT, GAPPED, GAPPED_TESTS, counting_one_less, totals(GAPPED), levels=("page",)
    ),
}


@traps(NULLS)
def test_null_counts_that_prove_nothing(trap: Trap, level: str) -> None:
    trap.check(level)


NUM_VALUES = 5  # the field of ColumnMetaData


@pytest.mark.parametrize("count", [0, 3, BLOCK + 1, -1, None])
def test_counts_of_values_other_than_the_rows_prove_nothing(count: int | None) -> None:
    def change(file: Crafted) -> None:
        for chunk in file.chunks("x"):
            chunk[META_DATA][1].pop(NUM_VALUES)
            if count is not None:
                chunk[META_DATA][1][NUM_VALUES] = (I64, count)

    for nulls in (count, BLOCK, 0):
        describe = always(null_count=nulls, **NO_BOUNDS)
        for values in (FULL, GAPPED):
            data = crafted(values, INT, "block", describe, change)
            check_or_refuse(data, values, GAPPED_TESTS)


@levels
@pytest.mark.parametrize("writer", COUNTING)
def test_null_counts_prove(writer: str, level: str) -> None:
    values = [None] * 8 + [1, 2, 3, 4, 5, 6, 7, 8] + [None] * 8
    data = crafted(values, INT, level, change=created_by(writer))
    check_proven(data, values, both_ways(every_test(0, 9)), level)


@levels
def test_nulls_leave_comparisons_to_the_rows(level: str) -> None:
    Trap(INT, GAPPED, GAPPED_TESTS).check(level)


@levels
def test_proofs_combine_in_three_valued_logic(level: str) -> None:
    single = both_ways(every_test(0, 12))
    pairs = list(zip(single, single[5:], strict=False))
    combined = [pair for a, b in pairs for pair in (a & b, a | b, ~(a & b), ~(a | ~b))]
    check(crafted(GAPPED, INT, level), GAPPED, combined)


# null_pages, and what else the column index says

COMPARED = both_ways(test for test in every_test(-1, 0, 6) if "null" not in test.label)
FILLED = [1, 2, 3, 4, 5, 6, 7, 8, 2, 2, 2, 2, None, 0, 1, None]
HOLLOW = [1, 2, 3, 4, None, None, None, None, None, 6, None, None, 5, 6, 7, 8]
ALL_TESTS = both_ways(every_test(-1, 0, 6))
EMPTY = {"min_value": b"", "max_value": b""}
INT_TRUE = honest(INT)


def page_trap(values: Sequence[Any], predicates: Sequence[Predicate], describe: Describe) -> Trap:
    return Trap(INT, values, predicates, describe, levels=("page",))


NULL_PAGES = {
    "claimed null, counts deny it": page_trap(FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True)),
    "claimed null and no bounds, counts deny it": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, **EMPTY)
    ),
    "claimed filled, counts deny it": page_trap(FILLED, COMPARED, plus(INT_TRUE, null_count=PAGE)),
    "claimed null, negative counts": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=-1, **EMPTY)
    ),
    "claimed null, more nulls than rows": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=PAGE + 1, **EMPTY)
    ),
    "claimed null, bounds deny it": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=PAGE)
    ),
    "claimed null, no counts, bounds deny it": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, null_page=True, null_count=None)
    ),
    "claimed null, the block has no nulls": Trap(
        INT,
        FULL,
        ALL_TESTS,
        plus(INT_TRUE, null_page=True, null_count=PAGE, **EMPTY),
        totals(FULL),
        levels=("page",),
    ),
    "claimed null, levels deny it": Trap(
        INT,
        FULL,
        ALL_TESTS,
        plus(INT_TRUE, null_page=True, null_count=PAGE, **EMPTY),
        lambda file: file.set_column_index(
            "x", [{"definition_level_histograms": [0, PAGE, 0, PAGE]}] * 2
        ),
        levels=("page",),
    ),
    "filled, empty bounds, counts of zero": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, **EMPTY, null_count=0)
    ),
    "null, claimed filled": page_trap(HOLLOW, ALL_TESTS, plus(INT_TRUE, null_page=False)),
    "null, claimed filled, no counts": page_trap(
        HOLLOW, ALL_TESTS, plus(INT_TRUE, null_page=False, null_count=None)
    ),
    "null, counts absent": page_trap(HOLLOW, ALL_TESTS, plus(INT_TRUE, null_count=None)),
    "filled, empty bounds": page_trap(FILLED, ALL_TESTS, plus(INT_TRUE, **EMPTY)),
    "filled, empty bounds, no counts": page_trap(
        FILLED, ALL_TESTS, plus(INT_TRUE, **EMPTY, null_count=None)
    ),
    "filled strings, empty bounds": Trap(
        STRING,
        ["", "", "a", "b", "c", "d", "e", "f"] * 2,
        both_ways([*every_test("", "b", "z"), begins(""), begins("b")]),
        plus(honest(STRING), **EMPTY),
        levels=("page",),
    ),
    "empty strings only": Trap(
        STRING, [""] * 8 + ["a"] * 4 + [""] * 4, both_ways([*every_test("", "a"), begins("")])
    ),
}


@traps(NULL_PAGES)
def test_contradictions_of_null_pages_prove_nothing(trap: Trap, level: str) -> None:
    trap.check(level)


@levels
def test_null_pages_are_ruled_out(level: str) -> None:
    values = [None] * 4 + [1, 2, 3, 4] + [None] * 8
    run = RUNS[level]
    data = crafted(values, INT, level)
    with fs.open(data) as file:
        kept = file.prune(X < 10).indices().tolist()
    assert kept == list(range(0 if run == BLOCK else 4, 8))
    check(data, values, both_ways(every_test(2, 10)))


# Below lists, maps and structs

LISTS = [
    *([1], [], None, [None], [], [], [], []),
    *(None, None, None, None, [5], [6, 7], [8], [9]),
    *([5], [6, None], [7], [8], [5], [], [7], [8]),
    *([5], None, [7], [8], [1, 9], [None, None], [2], [None, 3]),
]
LIST = Kind(pa.list_(pa.int32()))
MAP = Kind(pa.map_(pa.string(), pa.int32()))
MAPS = [None if v is None else [(str(i), e) for i, e in enumerate(v)] for v in LISTS]
IN_LIST, IN_MAP = "x.list.element", "x.key_value.value"
ANY, ALL = folded("any", 0, 10), folded("all", 0, 10)


def map_test(test: Predicate) -> Predicate:
    """The test of a list for the values of a map."""
    return Predicate(
        test.label,
        test.expression,
        unless_null(lambda pairs: test.holds([value for _, value in pairs])),
    )


@levels
@pytest.mark.parametrize("count", ["true", "absent", "undercounted"])
def test_null_counts_below_a_list_count_lists_too(count: str, level: str) -> None:
    describe = always() if count == "true" else always(null_count=0 if count[0] == "u" else None)
    change = created_by(UNDERCOUNTING[0]) if count == "undercounted" else same
    data = crafted(LISTS, LIST, level, describe, change, IN_LIST)
    check(data, LISTS, both_ways([*ANY, *ALL, is_null(), is_not_null()]))


@levels
def test_a_count_of_no_nulls_below_a_list_says_nothing_of_lists(level: str) -> None:
    """Writers differ in whether a null or an empty list counts."""
    nulls = [test for test in ANY if "null" in test.label]
    predicates = [*ALL, *(~test for test in ANY), *both_ways(nulls), is_null(), is_not_null()]
    data = crafted(LISTS, LIST, level, always(null_count=0), column=IN_LIST)
    check(data, LISTS, predicates)


# As many nulls as rows in each page, and values beside them.
SPARSE = [[row, None] for row in range(16)]


@pytest.mark.parametrize("levels", ["absent", "true", "too few", "negative", "zero"])
@pytest.mark.parametrize("counted", [True, False])
def test_null_pages_below_a_list_prove_nothing_unless_levels_agree(
    counted: bool, levels: str
) -> None:
    """Writers call a page null where its nulls are as many as its rows."""
    histograms = {
        "absent": None,
        "true": [0, 0, PAGE, PAGE] * 2,
        "too few": [0, 0, PAGE, 0],
        "negative": [0, 0, PAGE + 1, -1] * 2,
        "zero": [0] * 8,
    }[levels]
    describe = always(null_page=True, null_count=PAGE if counted else None, **EMPTY)

    def change(file: Crafted) -> None:
        file.set_column_index(IN_LIST, [{"definition_level_histograms": histograms}] * 2)

    data = crafted(SPARSE, LIST, "page", describe, change, IN_LIST)
    check(data, SPARSE, both_ways([*ANY, *ALL, *folded("any", 1, 9), is_null(), is_not_null()]))


def test_null_pages_below_a_list_are_ruled_out_where_levels_agree() -> None:
    lists: list[Any] = [[None], [], None, [None, None], [1], [None, 2], None, [3]]
    data = written(lists, LIST).to_bytes()
    with fs.open(data) as file:
        assert file.prune(col("x").any() < 10).indices().tolist() == [4, 5, 6, 7]
    check(data, lists, both_ways([*ANY, *ALL]))


@levels
def test_null_counts_below_a_map_count_maps_too(level: str) -> None:
    of_values = [*folded("any", 0, 10, path="x.value"), *folded("all", 0, 10, path="x.value")]
    predicates = both_ways([*map(map_test, of_values), is_null(), is_not_null()])
    check(crafted(MAPS, MAP, level, column=IN_MAP), MAPS, predicates)


@levels
def test_bounds_below_a_list_rule_out_any(level: str) -> None:
    values = [[i, i + 1] for i in (1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34)]
    gaps = (0, 20, 40) if level == "block" else (0, 10, 20, 30, 40)
    predicates = [test for test in folded("any", *gaps) if "null" not in test.label]
    data = crafted(values, LIST, level, column=IN_LIST)
    check_proven(data, values, predicates, level, exact=False)


STRUCT = Kind(pa.struct([("a", pa.int32())]))
STRUCTS = [
    *(None, {"a": None}, {"a": 1}, {"a": 2}, None, None, None, None),
    *({"a": None}, {"a": None}, {"a": None}, {"a": None}, {"a": 5}, {"a": 6}, {"a": 7}, {"a": 8}),
]


@levels
def test_null_counts_below_a_struct_do_not_tell_what_is_null(level: str) -> None:
    fields = [
        Predicate(test.label, test.expression, lambda v, t=test: t.holds(v and v["a"]))  # type: ignore[misc]
        for test in every_test(0, 2, 9, subject=col("x.a"))
    ]
    data = crafted(STRUCTS, STRUCT, level, column="x.a")
    check(data, STRUCTS, both_ways([*fields, is_null(), is_not_null()]))


# Claims of an order

UNSORTED = [50, 60, 70, 80, 10, 20, 30, 40, 90, 95, 99, 91, None, 5, None, 15]


def claiming(boundary_order: int, descending: bool, nulls_first: bool) -> Change:
    """Sorted by `x`, the footer says, and so do the column indexes, where there are any."""
    claim = {"column_idx": 1, "descending": descending, "nulls_first": nulls_first}

    def change(file: Crafted) -> None:
        order = {"boundary_order": boundary_order}
        file.set_sorting_columns(claim)
        file.set_column_index("x", [order if index else None for index in file.column_index("x")])

    return change


CLAIMS = {
    f"{name}, nulls {'first' if nulls_first else 'last'}": Trap(
        INT,
        UNSORTED,
        both_ways(every_test(10, 45, 92)),
        change=claiming(order, order == 2, nulls_first),
    )
    for name, order in (("ascending", 1), ("descending", 2))
    for nulls_first in (True, False)
}


@traps(CLAIMS)
def test_claims_of_an_order_skip_nothing(trap: Trap, level: str) -> None:
    trap.check(level, windows=True)


# Structure


def index_change(**facts: Any) -> Change:
    """The same change to the column index of each block."""
    return lambda file: file.set_column_index("x", [facts] * 2)


def without_first_page(file: Crafted) -> None:
    lists = [
        {name: value[1:] for name, value in index.items() if isinstance(value, list)}
        for index in file.column_index("x")
    ]
    file.set_column_index("x", lists)


def with_a_page_more(file: Crafted) -> None:
    lists = [
        {name: [value[1], *value] for name, value in index.items() if isinstance(value, list)}
        for index in file.column_index("x")
    ]
    file.set_column_index("x", lists)


def shortened(name: str) -> Change:
    return lambda file: file.set_column_index(
        "x", [{name: index[name][1:]} for index in file.column_index("x")]
    )


def raw(index: bytes) -> Change:
    return lambda file: file.set_column_index("x", [index, index])


def place(offset: int, length: int) -> Change:
    def change(file: Crafted) -> None:
        for chunk in file.chunks("x"):
            chunk[COLUMN_INDEX_AT] = (I64, offset)
            chunk[COLUMN_INDEX_AT + 1] = (I32, length)

    return change


def statistics_change(**facts: Any) -> Change:
    return lambda file: file.set_statistics("x", [facts] * 2)


MALFORMED: Mapping[str, Change] = {
    "a page too few": without_first_page,
    "a page too many": with_a_page_more,
    "a null_page too few": shortened("null_pages"),
    "a min too few": shortened("min_values"),
    "a max too few": shortened("max_values"),
    "a null_count too few": shortened("null_counts"),
    "a nan_count too few": index_change(nan_counts=[0]),
    "no null_pages": index_change(null_pages=None),
    "no min_values": index_change(min_values=None),
    "no pages": index_change(null_pages=[], min_values=[], max_values=[], null_counts=[]),
    "no boundary_order": index_change(boundary_order=None),
    "an unheard boundary_order": index_change(boundary_order=7),
    "negative null_counts": index_change(null_counts=[-1, -4]),
    "more nulls than rows": index_change(null_counts=[5, 2**40]),
    "noise for an index": raw(b"\xff" * 40),
    "zeros for an index": raw(bytes(40)),
    "an index cut off": raw(b"\x19\x22\x02\x02\x19\x28\x04\x00"),
    "an index of a huge list": raw(b"\x19\xf2\xff\xff\xff\xff\x07" + b"\x02" * 30),
    "an empty index": raw(b""),
    "an index behind the file": place(2**40, 60),
    "an index before the file": place(-60, 60),
    "an index of negative length": place(4, -60),
    "an index among the pages": place(4, 60),
    "negative null_count": statistics_change(null_count=-1),
    "null_count above the rows": statistics_change(null_count=2**40),
    "negative nan_count": statistics_change(nan_count=-1),
}
SORTED = INT.spread()
SORTED_TESTS = both_ways(every_test(INT.at(10), INT.at(26)))


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_indexes_give_no_wrong_row(change: Change) -> None:
    file = written(SORTED, INT)
    change(file)
    check_or_refuse(file.to_bytes(), SORTED, SORTED_TESTS)


@pytest.mark.parametrize("column", ["row", "x"])
@pytest.mark.parametrize(
    "first_rows",
    [(0, 3), (0, 5), (1, 4), (4, 0), (0, 0), (0, 8), (0, 100), (-4, 4), (0, -1), (0, 2**40)],
    ids=str,
)
def test_pages_that_begin_elsewhere_give_no_wrong_row(
    column: str, first_rows: tuple[int, int]
) -> None:
    data = written(SORTED, INT).set_first_rows(column, [first_rows] * 2).to_bytes()
    check_or_refuse(data, SORTED, SORTED_TESTS, by_index=False)
