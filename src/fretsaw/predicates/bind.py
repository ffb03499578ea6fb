"""A predicate against the schema of one file: names found, literals converted, NOT pushed down.

In goes what the user wrote and a way to look columns up, out comes a condition. What does not fit
is a `PredicateTypeError` that says what would.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from fretsaw.errors import PredicateError, PredicateTypeError
from fretsaw.model.locks import importing
from fretsaw.model.schema import Path, SchemaNode, spelled, value_type
from fretsaw.predicates import patterns
from fretsaw.predicates.comparison import values_of
from fretsaw.predicates.computation import (
    Bound,
    NotComputable,
    bind_truth,
    constant,
    leaf_value,
)
from fretsaw.predicates.condition import Check, Computed, Condition, Values, every, some
from fretsaw.predicates.evaluate import matches
from fretsaw.predicates.expression import Column, Element, Elements, Expression, Test, columns_of
from fretsaw.predicates.literals import UnfitLiteral
from fretsaw.predicates.logic import And, Not, Or, Predicate
from fretsaw.predicates.value_set import NOTHING

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
            return _resolve_test(predicate, find, file, negated)
        case Elements():
            if any(find(path) is None for path in columns_of(predicate)):
                return True
            return _computed(predicate, find, file, negated)
        case Not(part):
            return resolve(part, find, file, not negated)
        case And(parts) | Or(parts):
            resolved = [resolve(part, find, file, negated) for part in parts]
            return every(resolved) if isinstance(predicate, And) != negated else some(resolved)
    raise TypeError(f"not a predicate: {predicate!r}")


def _resolve_test(test: Test, find: Find, file: str, negated: bool) -> Condition:
    if any(find(path) is None for path in columns_of(test)):
        return True
    simple = _as_values(test)
    if simple is None or not isinstance(simple.column, Column):
        return _computed(test, find, file, negated)
    found = find(simple.column.path)
    assert found is not None
    return _check(simple, simple.column, found, file, negated)


def _as_values(test: Test) -> Test | None:
    """The test as one of the values of its column, if it is one."""
    match test.operator:
        case "contains" | "ends with" | "ilike" | "matches":
            return None
        case "like":
            text, rest = patterns.like_beginning(*test.operand)
            if rest == "pattern":
                return None
            return Test(test.column, "==" if rest == "nothing" else "starts with", text)
    return None if isinstance(test.operand, Expression) else test


def _computed(test: Test | Elements, find: Find, file: str, negated: bool) -> Condition:
    """The condition of a test of what is computed, or of a pattern."""
    try:
        truth = bind_truth(~test if negated else test, FileColumns(find))
        found = [value.options[0] for value in truth.leaves()]
        leaves = {(leaf.leaf_index, leaf.as_stored): leaf for leaf in found}
        if not leaves:
            return _is_true(truth, test, file)
        check = Computed(truth, repr(test), tuple(leaves.values()))
        return every([*_implied(truth), check])
    except UnfitLiteral as error:
        raise PredicateTypeError(f"{file}: {test!r} cannot be computed: {error}") from None


def _implied(truth: Bound) -> list[Condition]:
    """What a test says of the values of its only column."""
    with importing:
        from fretsaw.predicates.inverse import implied

    found = implied(truth)
    if found is None:
        return []
    leaf, above = found[0].options
    return [False if found[1] == NOTHING else Check(leaf, above, found[1])]


def _is_true(truth: Bound, test: Test | Elements, file: str) -> bool:
    """Whether a test is true that no column of the file has a part in."""
    with importing:
        from fretsaw.predicates import compute

    try:
        return bool(compute.whether_true(truth, compute.Rows(1, {}))[0])
    except NotComputable as error:
        raise PredicateError(f"{file}: {test!r} cannot be computed: {error}") from None


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file that expressions are computed of."""

    find: Find
    host: tuple[SchemaNode, SchemaNode] | None = None
    """The list or map whose elements are tested, below its top-level field."""

    def value(self, column: Column | Element) -> Bound:
        """The values of a column, or of the element that is tested."""
        if isinstance(column, Element):
            return self._element(column)
        found = self.find(column.path)
        assert found is not None
        if isinstance(found, pa.Scalar):
            return constant(found)
        top, node = found
        above = _above(top, node)
        if column.fold or "list" in above or "map" in above:
            hint = "test each element: col(...).any(fs.element(...) > 1)"
            raise UnfitLiteral(
                f"{column!r} lies below a list or map, of which a row has many; {hint}"
            )
        leaf = _leaf(Test(column, "==" if node.is_leaf else "null"), column, node)
        return leaf_value(leaf, above, value_type(leaf) if node.is_leaf else node.arrow_type)

    def inside(self, column: Column) -> "FileColumns":
        """The same inside of a list or map."""
        found = self.find(column.path)
        if isinstance(found, tuple) and not found[1].is_list and not found[1].is_map:
            raise UnfitLiteral(f"{column!r} is no list and no map")
        if self.host is not None:
            raise UnfitLiteral("elements of elements are not tested: name the inner list's column")
        return replace(self, host=found if isinstance(found, tuple) else None)

    def entries(self, column: Column) -> tuple[Bound, Bound] | None:
        """The keys and values of a map, or the elements of a list twice; None: there are none."""
        scope = self.inside(column)
        if scope.host is None:
            return None
        if scope.host[1].is_map:
            return scope._element(Element(("key",))), scope._element(Element(("value",)))
        elements = scope._element(Element())
        return elements, elements

    def _element(self, element: Element) -> Bound:
        if self.host is None:
            raise UnfitLiteral(f"{element!r} is for tests of elements, col(...).any(...)")
        top, host = self.host
        node = host if host.is_map else host.list_element
        for step in element.path:
            node = next((c for c in node.children if c.name == step), None) if node else None
        if node is None or not node.is_leaf:
            raise UnfitLiteral(f"{element!r} is no single value of an element")
        above = _above(top, node)
        depth = len(_above(top, host))
        return Bound("element", value_type(node), options=(node, above[depth + 1 :], depth))


def _check(test: Test, column: Column, found: Found, file: str, negated: bool) -> Condition:
    if isinstance(found, pa.Scalar) and pa.types.is_null(found.type):
        # No such column in this file: null for every row, whatever its type would be.
        is_null = (test.operator == "null") != negated
        return test.operator in ("null", "not null") and column.fold is None and is_null
    if isinstance(found, pa.Scalar):
        top = node = SchemaNode(spelled(column.path), (), "leaf", True, found.type)
    else:
        top, node = found
        node = _element(test, column, top, node)
    above = _above(top, node)
    try:
        _require_fold(column, above)
        leaf = _leaf(test, column, node)
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


def _element(test: Test, column: Column, top: SchemaNode, node: SchemaNode) -> SchemaNode:
    """The elements that are folded: the step into a list may be left out."""
    is_nested = any(kind in ("list", "map") for kind in _above(top, node))
    while column.fold and node.list_element and not is_nested:
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


def _leaf(test: Test, column: Column, node: SchemaNode) -> SchemaNode:
    """The leaf to decode for a test of a node."""
    if test.operator in ("null", "not null"):
        # Any leaf below tells; the fewer lists it lies in, the cheaper.
        return min(node.leaves(), key=lambda leaf: (leaf.is_repeated, len(leaf.path)))
    if not node.is_leaf:
        hint = "name a field inside it"
        if not node.is_struct and not column.fold:
            hint = f"test its elements with {column!r}.any() or {column!r}.all()"
        raise UnfitLiteral(f"only is_null() and is_not_null() work on it; {hint}")
    if not column.is_physical:
        return node
    stored_as = _STORED_AS.get(node.physical_type or "")
    if stored_as is None:
        raise UnfitLiteral(f"{node.physical_type or 'it'} cannot be compared as stored")
    return replace(node, as_stored=True, logical_type=None, arrow_type=stored_as)


def _values(test: Test, leaf: SchemaNode) -> Values:
    """The values for which a test is true."""
    if test.operator in ("null", "not null"):
        return "null" if test.operator == "null" else "not null"
    return values_of(test, leaf)
