"""Filters that Spark pushes to a source, as predicates that are true for the same rows.

The two differ where Spark holds both zeros equal, knows microseconds only, has no UUIDs and
compares null-safely. What cannot be said exactly is no predicate: Spark filters by it itself.
"""

import datetime
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql import datasource as spark

from fretsaw.model.schema import SchemaNode, value_type
from fretsaw.predicates.expression import Column, Test, col
from fretsaw.predicates.logic import Predicate
from fretsaw.predicates.types import is_binary, is_text

_ZEROS = (-0.0, 0.0)
_MICROSECOND = datetime.timedelta(microseconds=1)


def translate(pushed: spark.Filter, columns: Sequence[SchemaNode]) -> Predicate | None:
    """The predicate that a pushed filter is, or None if there is none that is exactly it."""
    match pushed:
        case spark.Not(child):
            return _negated(child, columns)
        case spark.IsNull(attribute) | spark.IsNotNull(attribute):
            if _find(attribute, columns) is None:
                return None
            column = col(attribute)
            return column.is_null() if isinstance(pushed, spark.IsNull) else column.is_not_null()
        case spark.EqualNullSafe(attribute, None):
            return translate(spark.IsNull(attribute), columns)
        case spark.EqualNullSafe(attribute, value):
            return translate(spark.EqualTo(attribute, value), columns)
    return _comparison(pushed, columns)


def as_stored(pushed: spark.Filter, names: Mapping[str, str]) -> spark.Filter:
    """A filter on columns of the result on those that files have, given their names there."""
    if isinstance(pushed, spark.Not):
        return replace(pushed, child=as_stored(pushed.child, names))
    first, *below = getattr(pushed, "attribute", None) or ("",)
    if first not in names:
        return pushed
    renamed: dict[str, Any] = {"attribute": (names[first], *below)}
    return replace(pushed, **renamed)


def _negated(child: spark.Filter, columns: Sequence[SchemaNode]) -> Predicate | None:
    match child:
        case spark.Not(inner):
            return translate(inner, columns)
        case spark.EqualNullSafe(attribute, value) if value is not None:
            # It is never unknown: for a null it is false, and its negation true.
            differs = _negated(spark.EqualTo(attribute, value), columns)
            return None if differs is None else differs | col(attribute).is_null()
    return _not(translate(child, columns))


def _comparison(pushed: spark.Filter, columns: Sequence[SchemaNode]) -> Predicate | None:
    """A comparison of a leaf with values."""
    attribute = getattr(pushed, "attribute", ())
    node = _find(attribute, columns)
    if node is None or not node.is_leaf:
        return None
    column, kind = col(attribute), value_type(node)
    match pushed:
        case spark.StringStartsWith(_, str(prefix)) if is_text(kind):
            return column.starts_with(prefix)
        case spark.In(_, values):
            return _among(column, values, kind)
        case spark.EqualTo(_, value):
            return _among(column, [value], kind) if value is not None else None
        case spark.LessThan(_, value):
            return _below(column, value, kind, inclusive=False)
        case spark.LessThanOrEqual(_, value):
            return _below(column, value, kind, inclusive=True)
        case spark.GreaterThan(_, value):
            return _not(_below(column, value, kind, inclusive=True))
        case spark.GreaterThanOrEqual(_, value):
            return _not(_below(column, value, kind, inclusive=False))
    return None


def _among(column: Column, values: Sequence[Any], kind: pa.DataType) -> Predicate | None:
    """One of these values; with a null among them, as SQL's `IN`."""
    literals: list[Any] = []
    for value in values:
        literal = None if value is None else _literal(value, kind)
        if literal is None and value is not None:
            return None
        literals += _ZEROS if _is_zero(literal) else [literal]
    if not literals:  # whether a null is in nothing, a setting of Spark's decides
        return None
    if not _is_finer(kind):
        return column.is_in(literals)
    if None in literals:
        return None
    within: list[Predicate] = [(column >= at) & (column < at + _MICROSECOND) for at in literals]
    return functools.reduce(operator.or_, within)


def _below(column: Column, value: Any, kind: pa.DataType, inclusive: bool) -> Predicate | None:
    """Less than a value, or at most it; what is above is the negation."""
    literal: Any = None if value is None else _literal(value, kind)
    if literal is None:
        return None
    if _is_zero(literal):
        literal = _ZEROS[inclusive]
    if inclusive and not _is_finer(kind):
        return Test(column, "<=", literal)
    return Test(column, "<", literal + _MICROSECOND if inclusive else literal)


def _not(predicate: Predicate | None) -> Predicate | None:
    return None if predicate is None else ~predicate


def _find(attribute: Sequence[str], columns: Sequence[SchemaNode]) -> SchemaNode | None:
    """The node at the end of a path through structs."""
    node: SchemaNode | None = None
    for name in attribute:
        within = columns if node is None else node.children if node.is_struct else ()
        node = next((child for child in within if child.name == name), None)
        if node is None:
            return None
    return node


def _literal(value: Any, kind: pa.DataType) -> Any:
    """A literal of Spark's as one for a column of a type; None if it is none."""
    types = pa.types
    if types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if types.is_integer(kind) or types.is_decimal(kind):
        return value if isinstance(value, int | Decimal) else None
    if types.is_floating(kind):
        return value if _is_exact(value, kind) else None
    if is_text(kind):
        return value if isinstance(value, str) else None
    if isinstance(kind, pa.UuidType):
        is_uuid = isinstance(value, bytes | bytearray) and len(value) == 16
        return UUID(bytes=bytes(value)) if is_uuid else None
    if is_binary(kind):
        return bytes(value) if isinstance(value, bytes | bytearray) else None
    if types.is_timestamp(kind):
        return value if _is_moment(value, kind) else None
    is_date = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return value if types.is_date(kind) and is_date else None


def _is_exact(value: Any, kind: pa.DataType) -> bool:
    """Whether a float is one of a column's width: otherwise it would be rounded to that."""
    if not isinstance(value, float):
        return False
    with np.errstate(over="ignore"):
        rounded = float(np.array(value).astype(kind.to_pandas_dtype()))
    return rounded == value or value != value


def _is_moment(value: Any, kind: pa.DataType) -> bool:
    if not isinstance(value, datetime.datetime) or value.year == datetime.MAXYEAR:
        return False
    return (value.utcoffset() is not None) == (kind.tz is not None)


def _is_finer(kind: pa.DataType) -> bool:
    """Whether values that differ in a file are one and the same for Spark."""
    return bool(pa.types.is_timestamp(kind)) and kind.unit == "ns"


def _is_zero(literal: Any) -> bool:
    return isinstance(literal, float) and literal == 0
