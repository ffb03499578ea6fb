"""What a predicate means, row by row: three-valued logic over plain Python values.

In: a tree of `Test`, `And`, `Or` and `Not`, and an Arrow table. Out: True, False or None for each
row. Values and literals become keys that Python orders as the rules say: numbers their exact
value, floats a rank in the total order, instants and times nanoseconds, text its UTF-8 bytes.
Structs become dicts, lists and maps lists. Nothing here is fast, and nothing knows the library.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa

Truth = bool | None
Path = tuple[str, ...]
Fold = Literal["any", "all"]

NAN = 1 << 64
NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH = dt.date(1970, 1, 1).toordinal()
# A step into the elements of a list or the pairs of a map; other steps are names.
EACH = ""


@dataclass(frozen=True)
class Test:
    """A comparison or a null test; the path has every step: `("items", "element", "price")`."""

    __test__ = False

    path: Path
    operator: str
    arguments: tuple[Any, ...] = ()
    fold: Fold | None = None


@dataclass(frozen=True)
class And:
    left: "Tree"
    right: "Tree"


@dataclass(frozen=True)
class Or:
    left: "Tree"
    right: "Tree"


@dataclass(frozen=True)
class Not:
    tree: "Tree"


Tree = Test | And | Or | Not


# Logic


def negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


def disjunction(truths: Iterable[Truth]) -> Truth:
    """True if any is true, else UNKNOWN if any is; false where there is none."""
    found: set[Truth] = set(truths)
    return True if True in found else None if None in found else False


def conjunction(truths: Iterable[Truth]) -> Truth:
    """False if any is false, else UNKNOWN if any is; true where there is none."""
    return negation(disjunction(map(negation, truths)))


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda key, other: bool(key == other),
    "!=": lambda key, other: bool(key != other),
    "<": lambda key, other: bool(key < other),
    "<=": lambda key, other: bool(key <= other),
    ">": lambda key, other: bool(key > other),
    ">=": lambda key, other: bool(key >= other),
}


def verdict(operator: str, key: Any, others: Sequence[Any]) -> Truth:
    """The truth of one comparison; a null has no key."""
    if operator == "is_null":
        return key is None
    if operator == "is_not_null":
        return key is not None
    if key is None:
        return None
    match operator:
        case "is_nan":
            return bool(key == NAN)
        case "is_in":
            return disjunction(None if other is None else bool(key == other) for other in others)
        case "is_between":
            return bool(others[0] <= key <= others[1])
        case "starts_with":
            return bool(key.startswith(others[0]))
        case _:
            return COMPARISONS[operator](key, others[0])


def descend(
    value: Any, steps: Sequence[str], fold: Fold | None, check: Callable[[Any], Truth]
) -> Truth:
    """Follow the steps and fold at each list: a null list is UNKNOWN, below a null all is null."""
    if not steps:
        return check(value)
    step, rest = steps[0], steps[1:]
    if step == EACH:
        if value is None:
            return None
        truths = (descend(item, rest, fold, check) for item in value)
        return disjunction(truths) if fold == "any" else conjunction(truths)
    return descend(None if value is None else value[step], rest, fold, check)


# Keys


def float_rank(value: Any) -> int:
    """The rank of a NumPy float in the total order: -0.0 is below 0.0, NaNs are one, on top."""
    if np.isnan(value):
        return NAN
    width = value.dtype.itemsize * 8
    bits = int(value.view(f"u{width // 8}"))
    return bits if bits < 1 << (width - 1) else (1 << (width - 1)) - 1 - bits


def float_at(rank: int, kind: pa.DataType) -> Any:
    """The NumPy float with this rank."""
    width = kind.bit_width
    bits = rank if rank >= 0 else (1 << (width - 1)) - 1 - rank
    return np.array(bits, f"u{width // 8}").view(f"f{width // 8}")[()]


def float_dtype(kind: pa.DataType) -> Any:
    return np.dtype(f"f{kind.bit_width // 8}")


def exact(number: Any) -> Any:
    """The value of a number; infinities stay floats, which Python compares with fractions."""
    if isinstance(number, np.generic):
        number = number.item()
    if isinstance(number, float) and np.isinf(number):
        return number
    return Fraction(number)


def clock(value: Any) -> int:
    """Nanoseconds since midnight of a time, datetime or pandas timestamp."""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return int(seconds * 10**9 + value.microsecond * 10**3 + getattr(value, "nanosecond", 0))


def instant(value: Any) -> int:
    """Nanoseconds since the epoch, for an aware value those in UTC."""
    if isinstance(value, np.datetime64):
        unit, count = np.datetime_data(value.dtype)
        return int(value.astype(np.int64)) * count * NANOSECONDS[unit]
    offset = value.utcoffset() or dt.timedelta()
    shift = (offset.days * 86_400 + offset.seconds) * 10**9 + offset.microseconds * 10**3
    return int(value.toordinal() - EPOCH) * 86_400 * 10**9 + clock(value) - shift


class BothZeros:
    """The zero that has no sign, among the ranks of floats: both of them."""

    def __eq__(self, rank: object) -> bool:
        return rank in (-1, 0)

    def __hash__(self) -> int:
        return 0

    def __gt__(self, rank: int) -> bool:
        return rank < -1

    def __ge__(self, rank: int) -> bool:
        return rank <= 0

    def __lt__(self, rank: int) -> bool:
        return rank > 0

    def __le__(self, rank: int) -> bool:
        return rank >= -1


def literal_key(literal: Any, kind: pa.DataType) -> Any:
    """The key of a literal for a column of this type."""
    if literal is None:
        return None
    if isinstance(kind, pa.BaseExtensionType):
        return literal.bytes
    if pa.types.is_dictionary(kind):
        return literal_key(literal, kind.value_type)
    if pa.types.is_boolean(kind):
        return bool(literal)
    if pa.types.is_decimal(kind) and isinstance(literal, float | np.floating):
        return exact(Decimal(repr(float(literal))) if np.isfinite(literal) else literal)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return exact(literal)
    if pa.types.is_floating(kind):
        if isinstance(literal, int | np.integer | Decimal) and literal == 0:
            return BothZeros()
        with np.errstate(over="ignore", under="ignore"):
            return float_rank(float_dtype(kind).type(float(literal)))
    if pa.types.is_timestamp(kind):
        return instant(literal)
    if pa.types.is_date(kind):
        return literal.toordinal() - EPOCH
    if pa.types.is_time(kind):
        return clock(literal)
    return literal.encode() if isinstance(literal, str) else bytes(literal)


def leaf_keys(array: pa.Array) -> list[Any]:
    """The keys of the values of a flat type."""
    kind = array.type
    if pa.types.is_floating(kind):
        floats = array.fill_null(float_dtype(kind).type(0)).to_numpy(zero_copy_only=False)
        gaps = array.is_null().to_pylist()
        return [None if gap else float_rank(x) for x, gap in zip(floats, gaps, strict=True)]
    factor: Any = 1
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        factor = NANOSECONDS[kind.unit]
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_date(kind):
        array = array.cast(pa.date32()).view(pa.int32())
    elif pa.types.is_decimal(kind):
        return [None if value is None else Fraction(value) for value in array.to_pylist()]
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array = array.cast(pa.large_binary())
    values = array.to_pylist()
    if factor == 1:
        return list(values)
    return [None if value is None else value * factor for value in values]


def keys(array: pa.Array) -> list[Any]:
    """The keys of an array of any type."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return keys(array.storage)
    if pa.types.is_dictionary(kind):
        return keys(array.dictionary_decode())
    if pa.types.is_struct(kind):
        names = [item.name for item in kind]
        columns = [keys(child) for child in array.flatten()]
        values: list[Any] = [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
    elif pa.types.is_fixed_size_list(kind):
        size, items = kind.list_size, keys(array.values)
        starts = [size * (array.offset + i) for i in range(len(array))]
        values = [items[start : start + size] for start in starts]
    elif pa.types.is_nested(kind):
        if pa.types.is_map(kind):
            pairs = zip(keys(array.keys), keys(array.items), strict=True)
            items = [{"key": key, "value": value} for key, value in pairs]
        else:
            items = keys(array.values)
        ends = array.offsets.to_pylist()
        values = [items[ends[i] : ends[i + 1]] for i in range(len(array))]
    else:
        return leaf_keys(array)
    gaps = array.is_null().to_pylist()
    return [None if gap else value for gap, value in zip(gaps, values, strict=True)]


# Tables


def below(kind: pa.DataType, step: str) -> tuple[pa.DataType, tuple[str, ...]]:
    """The type that a step of a path leads to, and the steps that its values take."""
    if pa.types.is_struct(kind):
        return kind.field(step).type, (step,)
    if pa.types.is_map(kind):
        return (kind.key_type if step == "key" else kind.item_type), (EACH, step)
    assert step == "element", f"{kind} has no {step}"
    return kind.value_type, (EACH,)


class Source:
    """A table to evaluate predicates on; `instants` are the naive timestamps that mean UTC."""

    def __init__(self, table: pa.Table, instants: Iterable[Path] = ()) -> None:
        self.table = table
        self._instants = frozenset(instants)
        self._keys: dict[str, list[Any]] = {}

    def kind(self, path: Path) -> pa.DataType:
        kind, _ = self._resolve(path)
        return pa.timestamp(kind.unit, "UTC") if path in self._instants else kind

    def repeats(self, path: Path) -> bool:
        """Whether the path leads below a list or a map."""
        return EACH in self._resolve(path)[1]

    def values(self, path: Path) -> list[Any]:
        """The keys at the end of a path, however many there are in a row, without nulls."""
        found: list[Any] = self._column(path[0])
        for step in self._resolve(path)[1]:
            if step == EACH:
                found = [item for items in found for item in items or ()]
            else:
                found = [value[step] for value in found if value is not None]
        return [value for value in found if value is not None]

    def truths(self, tree: Tree) -> list[Truth]:
        """The truth of a predicate for each row."""
        match tree:
            case Not(inner):
                return [negation(truth) for truth in self.truths(inner)]
            case And(left, right) | Or(left, right):
                fold = conjunction if isinstance(tree, And) else disjunction
                pairs = zip(self.truths(left), self.truths(right), strict=True)
                return [fold(pair) for pair in pairs]
            case Test(path, operator, arguments, fold_name):
                kind, (_, steps) = self.kind(path), self._resolve(path)
                others = [literal_key(literal, kind) for literal in arguments]

                def check(key: Any) -> Truth:
                    return verdict(operator, key, others)

                return [descend(v, steps, fold_name, check) for v in self._column(path[0])]

    def matches(self, tree: Tree) -> list[int]:
        """The numbers of the rows that a filter returns."""
        return [row for row, truth in enumerate(self.truths(tree)) if truth]

    def _column(self, name: str) -> list[Any]:
        if name not in self._keys:
            chunks = self.table.column(name).chunks
            self._keys[name] = [key for chunk in chunks for key in keys(chunk)]
        return self._keys[name]

    def _resolve(self, path: Path) -> tuple[pa.DataType, tuple[str, ...]]:
        kind = self.table.schema.field(path[0]).type
        steps: tuple[str, ...] = ()
        for step in path[1:]:
            kind, more = below(kind, step)
            steps += more
        return kind, steps
