"""A predicate against the schema of one file: names found, literals converted, NOT pushed down.

In goes what the user wrote and a way to look columns up, out comes a condition. What does not fit
is a `PredicateTypeError` that says what would.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from fretsaw.errors import PredicateTypeError
from fretsaw.model.schema import Path, SchemaNode, spelled
from fretsaw.predicates.condition import Check, Condition, Values, every, some
from fretsaw.predicates.evaluate import matches
from fretsaw.predicates.expression import And, Column, Not, Or, Predicate, Test
from fretsaw.predicates.literals import UnfitLiteral, edges, is_float, prefix_edges
from fretsaw.predicates.value_set import NAN_KEY, NOTHING, ValueSet

Found: TypeAlias = tuple[SchemaNode, SchemaNode] | pa.Scalar
"""A column and the top-level field that it lies in, or the value that it has in all of a file."""
Find: TypeAlias = Callable[[Path], Found | None]
"""Looks a column up; None: nothing is known of it, any test of it may be true."""

_STORED_AS = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
    "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}


def resolve(predicate: Predicate, find: Find, file: str, negated: bool = False) -> Condition:
    """The condition that a predicate, or its negation, is for one file."""
    match predicate:
        case Test():
            found = find(predicate.column.path)
            return True if found is None else _check(predicate, found, file, negated)
        case Not(part):
            return resolve(part, find, file, not negated)
        case And(parts) | Or(parts):
            resolved = [resolve(part, find, file, negated) for part in parts]
            return every(resolved) if isinstance(predicate, And) != negated else some(resolved)
    raise TypeError(f"not a predicate: {predicate!r}")


def _check(test: Test, found: Found, file: str, negated: bool) -> Condition:
    column = test.column
    if isinstance(found, pa.Scalar) and pa.types.is_null(found.type):
        # No such column in this file: null for every row, whatever its type would be.
        is_null = (test.operator == "null") != negated
        return test.operator in ("null", "not null") and column.fold is None and is_null
    if isinstance(found, pa.Scalar):
        top = node = SchemaNode(spelled(column.path), (), "leaf", True, found.type)
    else:
        top, node = found
        node = _element(test, top, node)
    above = _above(top, node)
    try:
        _require_fold(column, above)
        leaf = _leaf(test, node)
        values = _values(test, leaf)
    except UnfitLiteral as error:
        kind = node.arrow_type if node.is_leaf else f"a {node.kind}"
        raise PredicateTypeError(
            f"{file}: {test!r} does not fit the column, which is {kind}: {error}"
        ) from None
    check = Check(leaf, above, values, column.fold, on_leaf=node.is_leaf)
    if negated:
        # As in SQL, nothing is known not to be in a list with a null.
        unknown = test.operator == "in" and None in test.operand
        check = replace(~check, values=NOTHING) if unknown else ~check
    if check.values == NOTHING and check.fold != "all":
        return False
    if isinstance(found, pa.Scalar):
        return bool(matches(check, pa.chunked_array([pa.repeat(found, 1)]))[0])
    return check


def _element(test: Test, top: SchemaNode, node: SchemaNode) -> SchemaNode:
    """The elements that are folded: the step into a list may be left out."""
    is_nested = any(kind in ("list", "map") for kind in _above(top, node))
    while test.column.fold and node.list_element and not is_nested:
        node = node.list_element
        is_nested = test.operator in ("null", "not null") or not node.is_list
    return node


def _above(top: SchemaNode, node: SchemaNode) -> tuple[str, ...]:
    """The kinds of the nodes from the top down to one."""
    if top is node:
        return ()
    below = next(child for child in top.children if child.path == node.path[: len(child.path)])
    return (top.kind, *_above(below, node))


def _require_fold(column: Column, above: tuple[str, ...]) -> None:
    is_repeated = "list" in above or "map" in above
    if is_repeated and column.fold is None:
        raise UnfitLiteral(f"it lies below a list or map: say {column!r}.any() or {column!r}.all()")
    if column.fold is not None and not is_repeated:
        raise UnfitLiteral(f"it does not lie below a list or map: leave out .{column.fold}()")


def _leaf(test: Test, node: SchemaNode) -> SchemaNode:
    """The leaf to decode for a test of a node."""
    if test.operator in ("null", "not null"):
        # Any leaf below tells; the fewer lists it lies in, the cheaper.
        return min(node.leaves(), key=lambda leaf: (leaf.is_repeated, len(leaf.path)))
    if not node.is_leaf:
        hint = "name a field inside it"
        if not node.is_struct and not test.column.fold:
            hint = f"test its elements with {test.column!r}.any() or {test.column!r}.all()"
        raise UnfitLiteral(f"only is_null() and is_not_null() work on it; {hint}")
    if not test.column.is_physical:
        return node
    stored_as = _STORED_AS.get(node.physical_type or "")
    if stored_as is None:
        raise UnfitLiteral(f"{node.physical_type or 'it'} cannot be compared as stored")
    return replace(node, as_stored=True, logical_type=None, arrow_type=stored_as)


def _values(test: Test, leaf: SchemaNode) -> Values:
    """The values for which a test is true."""
    match test.operator:
        case "null" | "not null":
            return test.operator
        case "nan":
            if not is_float(leaf):
                raise UnfitLiteral("is_nan() needs a column of floats")
            return ValueSet.between(NAN_KEY, None)
        case "starts with":
            return ValueSet.between(*prefix_edges(test.operand, leaf))
        case "in":
            return ValueSet.among(edges(v, leaf) for v in test.operand if v is not None)
        case "between":
            low, high = test.operand
            return ValueSet.between(edges(low, leaf)[0], edges(high, leaf)[1])
    at, behind = edges(test.operand, leaf)
    match test.operator:
        case "==":
            return ValueSet.between(at, behind)
        case "!=":
            return ~ValueSet.between(at, behind)
        case "<":
            return ValueSet.between(None, at)
        case "<=":
            return ValueSet.between(None, behind)
        case ">":
            return ValueSet.between(behind, None)
        case ">=":
            return ValueSet.between(at, None)
