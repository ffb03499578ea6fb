"""Files of both formats whose indexes say what a test wants them to say of each run of values.

A trap that works alike in both formats is set by a `Format`: `crafted` writes a file with facts at
one level only, `told` spells bounds as the format does, `cut` shortens those of texts. The rest are
the pieces of which traps of one format alone are made.
"""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import craft, orc_craft
from tests.support.traps import BLOCK, PAGE, Kind, Predicate, check, minimal, runs_of, same

Facts = Mapping[str, Any]
Describe = Callable[[Sequence[Any]], Facts | None]
Change = Callable[[Any], object]
Bounds = tuple[Any, Any]


class Format(Protocol):
    """How a format tells of a run of values."""

    kinds: Sequence[str]
    """Names of the kinds of columns that have bounds."""
    unsaid: Sequence[Facts]
    """Ways not to say how many nulls there are."""
    odd_booleans: Sequence[Facts]
    """What may be said of booleans that proves nothing."""

    def crafted(
        self,
        values: Sequence[Any],
        kind: Kind,
        level: str,
        describe: Describe | None = None,
        column: str = "x",
    ) -> bytes:
        """A file that has bounds and counts at one level only, as described there."""
        ...

    def told(self, kind: Kind, low: Any, high: Any, *, nan_free: bool = True) -> Facts:
        """These bounds, where there are some; of floats also whether there is no NaN."""
        ...

    def proving(self, kind: Kind) -> Describe | None:
        """What proves all that bounds and counts can prove."""
        ...

    def cut(self, size: int, *, low: bool = True, high: bool = True) -> Describe:
        """Bounds of texts of at most so many bytes, the upper one counted up in its last byte."""
        ...

    def is_exact(self, kind: Kind, level: str) -> bool:
        """Whether bounds are those of the values, so that they prove that all rows match."""
        ...

    def is_wide(self, kind: Kind) -> bool:
        """Whether bounds lie so far beyond the values that they do not tell neighbours apart."""
        ...


def always(**facts: Any) -> Describe:
    return lambda run: facts


def plus(describe: Describe, **facts: Any) -> Describe:
    """The description with some facts changed, or taken out: `None`."""
    return lambda run: {**(describe(run) or {}), **facts}


def solid(kind: Kind, run: Sequence[Any]) -> Bounds:
    """The bounds of what is not null or NaN."""
    present = [v for v in run if v is not None and not (kind.is_float and math.isnan(v))]
    if not present:
        return None, None
    return min(present, key=kind.order), max(present, key=kind.order)


def cut_texts(run: Sequence[str], size: int) -> tuple[bytes, bytes]:
    present = [value.encode() for value in run]
    low, high = min(present), max(present)
    return low[:size], high if len(high) <= size else high[: size - 1] + bytes([high[size - 1] + 1])


@dataclass(frozen=True)
class Trap:
    """Values, what an index says of them, and the tests that this might lead astray."""

    kind: Kind
    values: Sequence[Any]
    tests: Sequence[Predicate]
    describe: Describe | None = None
    change: Change = same
    levels: tuple[str, ...] = ("block", "page")

    def check(self, crafted: Callable[..., bytes], level: str, *, windows: bool = False) -> None:
        data = crafted(self.values, self.kind, level, self.describe, self.change)
        check(data, self.values, self.tests, windows=windows)


def traps(cases: Mapping[str, Trap], *quick: str) -> pytest.MarkDecorator:
    """Each trap at each level where it can be set; all but the quick ones are slow."""
    parameters = [
        pytest.param(
            *(trap, level),
            id=f"{name}, {level}",
            marks=() if name in quick and level == trap.levels[-1] else pytest.mark.slow,
        )
        for name, trap in cases.items()
        for level in trap.levels
    ]
    return pytest.mark.parametrize(("trap", "level"), parameters)


# Parquet

OLD_BOUNDS = {"min": None, "max": None}
UNSURE = {"is_min_value_exact": None, "is_max_value_exact": None}
IN_PARQUET = {"x.element": "x.list.element", "x.value": "x.key_value.value"}


def stored(kind: Kind, value: Any) -> bytes:
    """The value as a bound of Parquet; by default as pyarrow writes it."""
    if kind.pack:
        return kind.pack(value)
    bound: bytes = in_parquet([value], kind).statistics("x")[0]["min_value"]
    return bound


def array_of(values: Sequence[Any], kind: Kind) -> pa.Array:
    if kind.pack is minimal:
        return pa.array([None if v is None else minimal(v) for v in values], pa.binary())
    if kind.type == pa.uuid():
        storage = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind.type, storage)
    return pa.array(values, kind.type)


def in_parquet(values: Sequence[Any], kind: Kind) -> craft.Crafted:
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
    file = craft.Crafted(buffer.getvalue())
    if kind.pack is minimal:
        file.set_type("x", converted_type=5, scale=2, precision=12)
    return file


def honest(kind: Kind) -> Describe:
    """The true bounds of what is not null or NaN, the true number of nulls."""

    def describe(run: Sequence[Any]) -> Facts:
        low, high = (None if bound is None else stored(kind, bound) for bound in solid(kind, run))
        nulls = sum(value is None for value in run)
        counts = {"null_count": nulls, "null_page": nulls == len(run)}
        return {**OLD_BOUNDS, "min_value": low, "max_value": high, **counts}

    return describe


def deprecated(describe: Describe) -> Describe:
    """The bounds in the fields that were used before orders were defined."""

    def moved(run: Sequence[Any]) -> Facts:
        facts = describe(run) or {}
        bounds = {"min": facts["min_value"], "max": facts["max_value"]}
        return {**facts, **UNSURE, **bounds, "min_value": None, "max_value": None}

    return moved


def crafted_parquet(
    values: Sequence[Any],
    kind: Kind,
    level: str,
    describe: Describe | None = None,
    change: Callable[[craft.Crafted], object] = same,
    column: str = "x",
) -> bytes:
    file = in_parquet(values, kind)
    if describe is None:
        describe = honest(kind) if kind.pack else always()
    blocks = runs_of(values, BLOCK)
    nothing = [None for _ in blocks]
    if level == "block":
        facts = [describe(block) or {} for block in blocks]
        of_blocks = [{k: v for k, v in each.items() if k != "null_page"} for each in facts]
        file.set_column_index(column, nothing).set_statistics(column, of_blocks)
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
        facts = {"null_page": index["null_pages"][number], **(describe(page) or {})}
        for fact in facts.keys() & {"null_page", "null_count", "nan_count"}:
            index[fact + "s"][number] = facts[fact]
        for fact in facts.keys() & {"min_value", "max_value"}:
            index[fact + "s"][number] = facts[fact] or b""
    return {name: None if isinstance(v, list) and None in v else v for name, v in index.items()}


class ParquetTraps:
    """Statistics of the footer for blocks, the column index for pages."""

    kinds: Sequence[str] = (
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "date", "time in ms", "time in us"),
        *("timestamp in ms", "timestamp in us", "timestamp in ns"),
        *("decimal in INT32", "decimal in INT64", "decimal in FLBA", "wide decimal in FLBA"),
        *("decimal in BYTE_ARRAY", "string", "binary", "fixed binary", "uuid"),
    )
    unsaid: Sequence[Facts] = ({"null_count": None},)
    odd_booleans: Sequence[Facts] = (
        *({**OLD_BOUNDS, "min_value": b"", "max_value": b""},),
        *({**OLD_BOUNDS, "min_value": bytes(2), "max_value": bytes(2)},),
        *({**OLD_BOUNDS, "min_value": b"\1", "max_value": b"\0"},),
    )

    def crafted(
        self,
        values: Sequence[Any],
        kind: Kind,
        level: str,
        describe: Describe | None = None,
        column: str = "x",
    ) -> bytes:
        place = IN_PARQUET.get(column, column)
        return crafted_parquet(values, kind, level, describe, column=place)

    def told(self, kind: Kind, low: Any, high: Any, *, nan_free: bool = True) -> Facts:
        bounds = (None if bound is None else stored(kind, bound) for bound in (low, high))
        facts = {**OLD_BOUNDS, **dict(zip(("min_value", "max_value"), bounds, strict=True))}
        return {**facts, "nan_count": 0} if kind.is_float and nan_free else facts

    def proving(self, kind: Kind) -> Describe | None:
        return plus(honest(kind), nan_count=0) if kind.is_float else None

    def cut(self, size: int, *, low: bool = True, high: bool = True) -> Describe:
        def describe(run: Sequence[str]) -> Facts:
            bounds = cut_texts(run, size)
            told = {"min_value": (low, bounds[0]), "max_value": (high, bounds[1])}
            return {**UNSURE, **{name: bound for name, (here, bound) in told.items() if here}}

        return describe

    def is_exact(self, kind: Kind, level: str) -> bool:
        return level == "block" or not kind.is_bytes

    def is_wide(self, kind: Kind) -> bool:
        return False


# ORC

COLUMN = 2  # of `x`: the root is 0, `row` is 1
IN_ORC = {"x": COLUMN, "x.element": 3, "x.a": 3, "x.value": 4}


def microseconds(value: datetime) -> int:
    return (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta.resolution


def milliseconds(value: datetime) -> int:
    return microseconds(value) // 1_000


def statistics_of(kind: Kind) -> str:
    """How the bounds of the type are called."""
    match kind.type:
        case t if pa.types.is_integer(t):
            return "int"
        case t if pa.types.is_floating(t):
            return "double"
        case t if pa.types.is_timestamp(t):
            return "utc"
        case t if pa.types.is_decimal(t):
            return "decimal"
        case t if pa.types.is_date(t):
            return "date"
    return "string"


def in_orc(values: Sequence[Any], kind: Kind, **options: Any) -> orc_craft.Crafted:
    table = pa.table({"row": range(len(values)), "x": pa.array(values, kind.type)})
    return orc_craft.Crafted(orc_craft.written(table, BLOCK, row_index_stride=PAGE, **options))


def crafted_orc(
    values: Sequence[Any],
    kind: Kind,
    level: str,
    describe: Describe | None = None,
    change: Callable[[orc_craft.Crafted], object] = same,
    column: int = COLUMN,
    **options: Any,
) -> bytes:
    describe = describe or always()
    file = in_orc(values, kind, **options)
    stripes = runs_of(values, BLOCK)
    file.set_file_statistics(column, None)
    if level == "block":
        file.set_stripe_statistics(column, [describe(stripe) for stripe in stripes])
        file.set_strides(column, [[None for _ in runs_of(s, PAGE)] for s in stripes])
    else:
        file.set_stripe_statistics(column, [None for _ in stripes])
        file.set_strides(column, [[describe(run) for run in runs_of(s, PAGE)] for s in stripes])
    change(file)
    data = file.to_bytes()
    assert orc_craft.read(data)["row"].to_pylist() == list(range(len(values)))
    return data


class OrcTraps:
    """Statistics of the metadata for stripes, the row index for strides."""

    kinds: Sequence[str] = (
        *("int8", "int16", "int32", "int64", "float32", "float64", "date", "string"),
        *("timestamp in ms", "timestamp in us", "timestamp in ns"),
        *("decimal in INT32", "decimal in INT64", "decimal in FLBA"),
    )
    unsaid: Sequence[Facts] = (
        *({"values": None}, {"has_null": None}, {"values": None, "has_null": None}),
        {"has_null": False},
    )
    odd_booleans: Sequence[Facts] = ({"bool": None}, {"bool": None, "values": None})

    def crafted(
        self,
        values: Sequence[Any],
        kind: Kind,
        level: str,
        describe: Describe | None = None,
        column: str = "x",
    ) -> bytes:
        return crafted_orc(values, kind, level, describe, column=IN_ORC[column])

    def told(self, kind: Kind, low: Any, high: Any, *, nan_free: bool = True) -> Facts:
        """Bounds as the statistics of the type write them; a sum of floats excludes NaN."""
        prefix = statistics_of(kind)
        forms: dict[str, Callable[[Any], Any]] = {
            "utc": milliseconds,
            "date": lambda day: day.toordinal() - 719_163,
            "decimal": str,
        }
        bounds = {f"{prefix}_min": low, f"{prefix}_max": high}
        form = forms.get(prefix, same)
        facts = {name: None if bound is None else form(bound) for name, bound in bounds.items()}
        return {**facts, "double_sum": 1.0 if nan_free else None} if kind.is_float else facts

    def proving(self, kind: Kind) -> Describe | None:
        return None

    def cut(self, size: int, *, low: bool = True, high: bool = True) -> Describe:
        def describe(run: Sequence[str]) -> Facts:
            bounds = cut_texts(run, size)
            below = {"string_min": None, "string_lower": bounds[0]} if low else {}
            above = {"string_max": None, "string_upper": bounds[1]} if high else {}
            return {**below, **above}

        return describe

    def is_exact(self, kind: Kind, level: str) -> bool:
        """Milliseconds are not, nor doubles that were measured before they became floats."""
        return kind.type != pa.float32() and not self.is_wide(kind)

    def is_wide(self, kind: Kind) -> bool:
        return statistics_of(kind) == "utc"


FORMATS: Mapping[str, Format] = {"parquet": ParquetTraps(), "orc": OrcTraps()}
