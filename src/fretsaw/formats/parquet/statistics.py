"""Bounds of values: from the statistics of column chunks and from column indexes.

What is stored becomes keys in the order of the column, for all chunks or pages at once. A bound
counts as known only where the format and the writer can be trusted with it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fretsaw.formats.parquet.metadata import PHYSICAL_TYPES, REQUIRED
from fretsaw.formats.parquet.pages import Page
from fretsaw.formats.parquet.schema import logical_type
from fretsaw.model.blocks import Bounds, Int64s
from fretsaw.model.schema import SchemaNode, value_type
from fretsaw.predicates.value_set import NAN_KEY, Booleans, after_prefix, float_keys

Kind: TypeAlias = Literal["bool", "int", "uint", "float", "decimal", "bytes"]

# Writers that left some nulls out of their counts.
_UNDERCOUNTING = re.compile(r"(parquet-mr|parquet-cpp-arrow|parquet-cpp)(?: version (\d+)\.(\d+))?")
_COUNTING_SINCE = {"parquet-mr": (1, 10), "parquet-cpp-arrow": (6, 0), "parquet-cpp": (1 << 30, 0)}

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_HALF = 2  # bytes of a FLOAT16
_WIDEST_DECIMAL = 32
_UNITS = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}


@dataclass(frozen=True, slots=True)
class Order:
    """How the stored bounds of a leaf compare."""

    kind: Kind
    width: int | None
    """Bytes of every bound; None where they differ."""

    @property
    def was_defined(self) -> bool:
        """Whether bounds had this order before there were column orders."""
        return self.kind in ("bool", "int", "float") and self.width != _HALF

    @property
    def bounds_all(self) -> bool:
        """Whether every value has bounds: not NaN, and no bytes that are too long for them."""
        return self.kind not in ("float", "bytes")


@lru_cache
def counts_nulls(created_by: str | None) -> bool:
    """Whether the writer can be trusted to count all nulls."""
    writer = _UNDERCOUNTING.match(created_by or "")
    if writer is None:
        return True
    name, major, minor = writer.groups()
    return (int(major or 0), int(minor or 0)) >= _COUNTING_SINCE[name]


def order_of(element: Any, leaf: SchemaNode) -> Order | None:
    """The order of a leaf's bounds, if they have one that is known."""
    logical = logical_type(element)
    if logical is None and element.logicalType is not None:
        return None  # a logical type from the future
    name = (logical or "").partition("(")[0]
    physical = PHYSICAL_TYPES[element.type]
    kind: Kind | None = None
    match physical, name:
        case "BOOLEAN", "":
            kind = "bool"
        case "INT32" | "INT64", "INTEGER":
            kind = "uint" if "unsigned" in str(logical) else "int"
        case "INT32" | "INT64", "" | "DATE" | "TIME" | "TIMESTAMP" | "DECIMAL":
            same = leaf.as_stored or keeps_unit(str(logical), value_type(leaf))
            kind = "int" if same else None
        case "FLOAT" | "DOUBLE", "":
            kind = "float"
        case "FIXED_LEN_BYTE_ARRAY", "FLOAT16":
            kind = "float"
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY", "DECIMAL":
            kind = "decimal"
        case "BYTE_ARRAY", "" | "STRING" | "ENUM" | "JSON" | "BSON":
            kind = "bytes"
        case "FIXED_LEN_BYTE_ARRAY", "" | "UUID":
            kind = "bytes"
    # As stored, integers are signed, and bytes are just bytes.
    if kind is None or (leaf.as_stored and (kind in ("uint", "decimal") or name == "FLOAT16")):
        return None
    fixed = element.type_length if physical == "FIXED_LEN_BYTE_ARRAY" else None
    return Order(kind, _WIDTHS.get(physical, fixed))


def keeps_unit(logical: str, arrow_type: pa.DataType) -> bool:
    """Whether the stored integers are those that Arrow decodes."""
    if not (pa.types.is_timestamp(arrow_type) or pa.types.is_time(arrow_type)):
        return True
    return any(name in logical and unit == arrow_type.unit for name, unit in _UNITS.items())


def chunk_bounds(
    chunks: Sequence[Any], row_counts: Int64s, order: Order | None, trusts: "Trusts"
) -> Bounds:
    """What the statistics of a leaf's chunks say; `chunks` are their indexed metadata."""
    stats, values = _statistics(chunks)
    null_counts = chunk_null_counts(chunks, row_counts, trusts)
    lower, upper, exact = _stored_bounds(stats, order, trusts.column_order)
    all_null = (null_counts == values) & (values > 0)
    # Bounds of no values, or no bounds of values that would have some.
    contradicted = all_null & np.array([says_bounds(stat) for stat in stats], np.bool_)
    if order is not None and order.bounds_all and not trusts.no_nulls:
        empty = np.array([not says_bounds(stat) for stat in stats], np.bool_)
        contradicted |= (null_counts == 0) & empty
    bounds = _bounds(
        order,
        lower,
        upper,
        exact=exact,
        all_null=all_null & ~contradicted,
        nan_counts=_integers([s and s.nan_count for s in stats]),
        null_counts=np.where(contradicted, -1, null_counts),
        row_counts=row_counts,
    )
    bounds.known[contradicted] = False
    return bounds


def header_bounds(
    pages: Sequence[Page],
    row_counts: Int64s,
    order: Order | None,
    trusts: "Trusts",
    total: int,
) -> Bounds:
    """What the headers of a leaf's pages say: statistics of pages are those of chunks.

    The nulls of all pages are `total`, where that is known; version 2 tells those of a page twice.
    """
    chunks = [
        SimpleNamespace(
            meta_data=SimpleNamespace(statistics=page.statistics, num_values=page.num_values)
        )
        for page in pages
    ]
    bounds = chunk_bounds(chunks, row_counts, order, trusts)
    counts = [page.statistics.null_count for page in pages]
    miscounted = np.array([_is_miscounted(page) for page in pages], np.bool_)
    if total >= 0 and None not in counts and sum(counts) != total:
        miscounted[:] = True
    bounds.null_counts[miscounted & ~np.full(len(pages), trusts.no_nulls)] = -1
    bounds.all_null[miscounted] = False
    return bounds


def _is_miscounted(page: Page) -> bool:
    """Whether the header of a page says two different things about its nulls."""
    again, counted = page.header.data_page_header_v2, page.statistics.null_count
    return None not in (again, counted) and again.num_nulls not in (None, counted)


def _statistics(chunks: Sequence[Any]) -> tuple[list[Any], Int64s]:
    """The statistics of chunks, and how many values and nulls each has."""
    columns = [chunk.meta_data for chunk in chunks]
    stats = [None if column is None else column.statistics for column in columns]
    return stats, _integers([None if column is None else column.num_values for column in columns])


def chunk_null_counts(chunks: Sequence[Any], row_counts: Int64s, trusts: "Trusts") -> Int64s:
    """How many nulls statistics claim, where that can be believed; -1 elsewhere."""
    stats, values = _statistics(chunks)
    fits = values == row_counts if trusts.flat else values >= row_counts
    stored = _integers([s and s.null_count for s in stats])
    return trusts.null_counts(np.where(fits, stored, -1), values)


def page_bounds(
    indexes: Sequence[Any],
    row_counts: Int64s,
    order: Order | None,
    trusts: "Trusts",
    totals: Int64s,
) -> Bounds:
    """What the column indexes of a leaf's chunks say, of all their pages together.

    The nulls of each chunk in `totals` are those of its pages, where they are known.
    """
    null_pages = np.concatenate([np.zeros(0, np.bool_), *(i.null_pages for i in indexes)])
    lower = [bound for index in indexes for bound in index.min_values]
    upper = [bound for index in indexes for bound in index.max_values]
    stored, counted = _per_page(indexes, "null_counts"), _are_there(indexes, "null_counts")
    null_counts = trusts.null_counts(stored, row_counts if trusts.flat else None)
    contradicted = counted & (stored < 0)
    if trusts.flat:
        contradicted |= counted & ((stored > row_counts) | (null_pages != (stored == row_counts)))
        miscounted = _miscounted(indexes, totals)
    else:
        contradicted |= counted & null_pages & (stored < row_counts)
        miscounted = np.zeros(len(stored), np.bool_)
    contradicted |= null_pages & (trusts.no_nulls | _have_values(indexes, row_counts, trusts))
    # Null pages have empty bounds, others have not.
    empty = np.array([not low for low in lower], np.bool_)
    empty &= np.array([not high for high in upper], np.bool_)
    contradicted |= null_pages & ~empty
    if order is not None and order.kind != "bytes":
        contradicted |= ~null_pages & empty
    contradicted &= row_counts > 0
    ordered = order if trusts.column_order else None
    none: list[bytes | None] = [None] * len(lower)
    bounds = _bounds(
        ordered,
        none if ordered is None else lower,
        none if ordered is None else upper,
        exact=np.full(len(lower), order is not None and order.kind != "bytes"),
        all_null=null_pages & ~contradicted & ~miscounted,
        nan_counts=_per_page(indexes, "nan_counts"),
        null_counts=np.where(contradicted | miscounted, -1, null_counts),
        row_counts=row_counts,
    )
    bounds.known[contradicted | null_pages] = False
    if order is not None and order.kind == "bytes":
        bounds.known[np.array([not bound for bound in upper], np.bool_)] = False
    return bounds


def _miscounted(indexes: Sequence[Any], totals: Int64s) -> Booleans:
    """For each page, whether those of its chunk have other nulls together than the chunk."""
    wrong = [np.zeros(0, np.bool_)]
    for index, total in zip(indexes, totals.tolist(), strict=True):
        counts = index.null_counts
        is_wrong = counts is not None and total >= 0 and sum(counts.tolist()) != total
        wrong.append(np.full(len(index.null_pages), is_wrong))
    return np.concatenate(wrong)


def _have_values(indexes: Sequence[Any], row_counts: Int64s, trusts: "Trusts") -> Booleans:
    """For each page, whether it has values by its levels, or below a list might have some.

    There, writers claim null pages by counts that mean other things.
    """
    found = [np.zeros(0, np.bool_)]
    end = 0
    for index in indexes:
        begin, end = end, end + len(index.null_pages)
        if index.levels is None or len(index.levels) != (end - begin) * trusts.levels:
            found.append(np.full(end - begin, not trusts.flat))
            continue
        levels = index.levels.reshape(end - begin, trusts.levels)
        total, rows = levels.sum(axis=1), row_counts[begin:end]
        fits = (levels >= 0).all(axis=1) & (total == rows if trusts.flat else total >= rows)
        found.append(~fits | (levels[:, -1] != 0))
    return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class Trusts:
    """What can be believed about a leaf."""

    column_order: bool
    """Whether the file says that bounds follow the order of the type."""
    counts_nulls: bool
    no_nulls: bool
    """Whether the leaf cannot be null."""
    flat: bool
    """Whether each row has one value or null, not a list of them."""
    levels: int
    """How many definition levels there are: values have the last."""

    def null_counts(self, stored: Int64s, most: Int64s | None) -> Int64s:
        """The counts that can be believed; -1 for others."""
        if self.no_nulls:
            return np.zeros(len(stored), np.int64)
        if not self.counts_nulls:
            return np.full(len(stored), -1)
        possible = stored >= 0 if most is None else (stored >= 0) & (stored <= most)
        return np.where(possible, stored, -1)


def definition_levels(elements: Sequence[Any]) -> int:
    """How many definition levels a chain has; one where all of it is required."""
    return 1 + sum(1 for element in elements if element.repetition_type != REQUIRED)


def says_bounds(stat: Any) -> bool:
    """Whether statistics have a bound, whatever it is worth."""
    if stat is None:
        return False
    return any(b is not None for b in (stat.min, stat.max, stat.min_value, stat.max_value))


def _stored_bounds(
    stats: Sequence[Any], order: Order | None, in_order: bool
) -> tuple[list[bytes | None], list[bytes | None], Booleans]:
    """The bounds in statistics that may be used, and whether they are values themselves."""
    lower: list[bytes | None] = [None] * len(stats)
    upper: list[bytes | None] = [None] * len(stats)
    exact = np.full(len(stats), False)
    for place, stat in enumerate(stats):
        if stat is None or order is None:
            continue
        if stat.min_value is not None and stat.max_value is not None:
            if in_order:
                lower[place], upper[place] = stat.min_value, stat.max_value
        elif order.was_defined and stat.min_value is None and stat.max_value is None:
            lower[place], upper[place] = stat.min, stat.max
        flags = (stat.is_min_value_exact, stat.is_max_value_exact)
        absent = order.kind != "bytes"
        exact[place] = all(absent if flag is None else flag for flag in flags)
    return lower, upper, exact


def _bounds(
    order: Order | None,
    lower: Sequence[bytes | None],
    upper: Sequence[bytes | None],
    exact: Booleans,
    all_null: Booleans,
    nan_counts: Int64s,
    null_counts: Int64s,
    row_counts: Int64s,
) -> Bounds:
    if order is None:
        known, lows, highs = (np.zeros(len(lower), dtype) for dtype in (np.bool_, "i8", "i8"))
    else:
        low_known, lows = _keys(lower, order)
        high_known, highs = _keys(upper, order)
        known = low_known & high_known & np.asarray(lows <= highs, np.bool_)
    nan_free = np.ones(len(known), np.bool_)
    if order is not None and order.kind == "bytes":
        # Equal bounds may be one beginning of many values.
        for place in np.flatnonzero(known & ~exact & (lows == highs)).tolist():
            behind = after_prefix(lows[place])
            highs[place], known[place] = behind or b"", behind is not None
    if order is not None and order.kind == "float":
        known &= (lows != NAN_KEY) & (highs != NAN_KEY)
        lows[lows == 0] = -1  # a zero stands for both
        highs[highs == -1] = 0
        nan_free = nan_counts == 0
    return Bounds(lows, highs, known, exact, all_null, nan_free, null_counts, row_counts)


def _keys(stored: Sequence[bytes | None], order: Order) -> tuple[Booleans, npt.NDArray[Any]]:
    """Stored bounds as keys, and which of them are there and of the right width."""
    width = order.width
    if order.kind == "bytes":
        fits = [bound is not None and len(bound) == (width or len(bound)) for bound in stored]
        texts = [bound or b"" for bound in stored]
        return np.array(fits, np.bool_), _objects(texts)
    if order.kind == "decimal":
        widest = width or _WIDEST_DECIMAL
        fits = [b is not None and (width or 1) <= len(b) <= widest for b in stored]
        numbers = [int.from_bytes((b or b"")[:widest], "big", signed=True) for b in stored]
        return np.array(fits, np.bool_), _objects(numbers)
    assert width is not None
    fits = [bound is not None and len(bound) == width for bound in stored]
    blank = bytes(width)
    joined = b"".join(
        bound if fit and bound is not None else blank
        for bound, fit in zip(stored, fits, strict=True)
    )
    code = {"bool": "u", "int": "i", "uint": "u", "float": "f"}[order.kind]
    values = np.frombuffer(joined, f"<{code}{width}")
    if order.kind == "float":
        return np.array(fits, np.bool_), float_keys(values)
    wide = np.uint64 if order.kind == "uint" else np.int64
    return np.array(fits, np.bool_), values.astype(wide)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _integers(values: Sequence[Any]) -> Int64s:
    return np.array([-1 if value is None else value for value in values], np.int64)


def _are_there(indexes: Sequence[Any], name: str) -> Booleans:
    """For each page, whether its index has these counts."""
    there = [np.full(len(i.null_pages), getattr(i, name) is not None) for i in indexes]
    return np.concatenate([np.zeros(0, np.bool_), *there])


def _per_page(indexes: Sequence[Any], name: str) -> Int64s:
    """A list of counts of all pages, -1 for the pages of an index that has none."""
    counts = [np.zeros(0, np.int64)]
    for index in indexes:
        stored = getattr(index, name)
        counts.append(np.full(len(index.null_pages), -1) if stored is None else stored)
    return np.concatenate(counts)
