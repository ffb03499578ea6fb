"""A predicate against the schema of one file: names found, literals converted, NOT pushed down.

In goes what the user wrote and a way to look columns up, out comes a condition. What does not fit
is a `PredicateTypeError` that says what would.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from fretsaw.errors import PredicateError, PredicateTypeError
from fretsaw.model.locks import importing
from fretsaw.model.schema import SchemaNode, spelled
from fretsaw.predicates import patterns
from fretsaw.predicates.bound import Bound, NotComputable
from fretsaw.predicates.columns import (
    FileColumns,
    Find,
    Found,
    compared_leaf,
    folded_node,
    is_absent,
    kinds_above,
    nearest_leaf,
    steps_to,
)
from fretsaw.predicates.comparison import values_of
from fretsaw.predicates.computation import bind_truth
from fretsaw.predicates.condition import Check, Computed, Condition, Values, every, some
from fretsaw.predicates.evaluate import matches
from fretsaw.predicates.expression import (
    Call,
    Column,
    Elements,
    Expression,
    Fold,
    Test,
    columns_of,
    is_bare,
)
from fretsaw.predicates.literals import UnfitLiteral
from fretsaw.predicates.logic import And, Not, Or, Predicate
from fretsaw.predicates.value_set import EVERYTHING, NOTHING

if TYPE_CHECKING:
    from fretsaw.predicates.inverse import Implied


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
    return _check(simple, test, found, file, negated)


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
        asked = ~test if negated else test
        truth = bind_truth(asked, FileColumns(find))
        found = [value.options[0] for value in truth.leaves()]
        leaves = {(leaf.leaf_index, leaf.as_stored): leaf for leaf in found}
        if not leaves:
            return _is_true(truth, test, file)
        return _with_implied(Computed(truth, repr(asked), tuple(leaves.values())))
    except UnfitLiteral as error:
        if isinstance(test, Test) and is_bare(test) and isinstance(test.column, Call):
            raise _no_condition(test, f"no boolean ({error})", file) from None
        raise PredicateTypeError(f"{file}: {test!r} cannot be computed: {error}") from None


def _no_condition(test: Test, kind: str, file: str) -> PredicateTypeError:
    """The error for a value that stands where a condition is expected."""
    value = repr(test.column)
    return PredicateTypeError(
        f"{file}: {value} is {kind}, not a condition: compare it with a value"
    )


def _with_implied(check: Computed) -> Condition:
    """A test, and what it says of the values of its columns; this alone, if that is all it says."""
    with importing:
        from fretsaw.predicates.inverse import implied, implied_in_lists

    found = implied(check.truth)
    if found is not None:
        own = _implied_check(found, check.text)
        if found.is_exact or found.values == NOTHING:
            return False if found.values == NOTHING else own
        sure = None if found.sure == NOTHING else replace(own, values=found.sure)
        check = replace(check, sure=sure)
        return every([own, check]) if found.values != EVERYTHING else check
    needed = [each for each in implied_in_lists(check.truth) if each.values != EVERYTHING]
    if any(each.values == NOTHING for each in needed):
        return False
    return every([*(_implied_check(each, check.text) for each in needed), check])


def _implied_check(found: "Implied", text: str) -> Check:
    leaf, above, hosts = found.leaf.options
    around = tuple(kind for host in hosts for kind in (*host.above, host.node.kind))
    fold: Fold | None = "any" if hosts else None
    return Check(leaf, (*around, *above), found.values, fold, text=text)


def _is_true(truth: Bound, test: Test | Elements, file: str) -> bool:
    """Whether a test is true that no column of the file has a part in."""
    with importing:
        from fretsaw.predicates import compute

    try:
        return bool(compute.whether_true(truth, compute.Rows(1, {}))[0])
    except NotComputable as error:
        raise PredicateError(f"{file}: {test!r} cannot be computed: {error}") from None


def _check(test: Test, written: Test, found: Found, file: str, negated: bool) -> Condition:
    """A test of a column's own values; `written` is what the user wrote for it."""
    column = test.column
    assert isinstance(column, Column)
    if isinstance(found, pa.Scalar) and pa.types.is_null(found.type):
        # No such column in this file: null for every row, whatever its type would be.
        return column.fold is None and _is_true_of_null(test, negated)
    if isinstance(found, pa.Scalar):
        top = node = SchemaNode(spelled(column.path), (), "leaf", True, found.type)
    else:
        top, node = found
    is_null_test = test.operator in ("null", "not null")
    if column.fold:
        node = folded_node(top, node, is_null_test)
    above = kinds_above(top, node)
    try:
        _require_fold(column, above)
        leaf = nearest_leaf(node) if is_null_test else compared_leaf(column, node)
        values = _values(test, leaf)
    except UnfitLiteral as error:
        kind = node.arrow_type if node.is_leaf else f"a {node.kind}"
        if is_bare(written) and node.is_leaf:
            raise _no_condition(written, str(kind), file) from None
        raise PredicateTypeError(
            f"{file}: {written!r} does not fit the column, which is {kind}: {error}"
        ) from None
    if is_absent(node) and not isinstance(found, pa.Scalar):
        return _absent_check(test, column, top, node, negated)
    text = repr(~written if negated else written)
    check = Check(leaf, above, values, column.fold, on_leaf=node.is_leaf, text=text)
    if negated:
        # As in SQL, nothing is known not to be in a list with a null.
        unknown = test.operator == "in" and None in test.operand
        check = replace(~check, values=NOTHING) if unknown else ~check
    if check.values == NOTHING and check.fold != "all":
        return False
    if isinstance(found, pa.Scalar):
        return bool(matches(check, pa.chunked_array([pa.repeat(found, 1)]))[0])
    return check


def _is_true_of_null(test: Test, negated: bool) -> bool:
    """Whether a test, or its negation, is true of a null."""
    return test.operator in ("null", "not null") and (test.operator == "null") != negated


def _absent_check(
    test: Test, column: Column, top: SchemaNode, node: SchemaNode, negated: bool
) -> Condition:
    """A test of a column that this file lacks in what it has: of lists, it asks for empty ones."""
    if column.fold is None:
        return _is_true_of_null(test, negated)
    present = [step for step in steps_to(top, node) if not is_absent(step)]
    around, missing = present[-1], list(steps_to(present[-1], node))[1:-1]
    if all(step.is_struct for step in present[:-1]):
        return False  # the list itself: it is null for every row
    is_true = _is_true_of_null(test, negated)
    is_true = is_true and all(step.is_struct for step in missing)
    values: Values = "anything" if is_true else NOTHING
    above = kinds_above(top, around)
    leaf, text = nearest_leaf(around), repr(~test if negated else test)
    check = Check(leaf, above, values, column.fold, on_leaf=False, text=text)
    if negated:
        check = replace(check, fold=(~check).fold)
    return False if check.values == NOTHING and check.fold != "all" else check


def _require_fold(column: Column, above: tuple[str, ...]) -> None:
    is_repeated = "list" in above or "map" in above
    if is_repeated and column.fold is None:
        raise UnfitLiteral(f"it lies below a list or map: say {column!r}.any() or {column!r}.all()")
    if column.fold is not None and not is_repeated:
        raise UnfitLiteral(f"it does not lie below a list or map: leave out .{column.fold}()")


def _values(test: Test, leaf: SchemaNode) -> Values:
    """The values for which a test is true."""
    if test.operator in ("null", "not null"):
        return "null" if test.operator == "null" else "not null"
    return values_of(test, leaf)
