"""Which decoded rows match: those of a check, of a computed test, of a whole condition."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from fretsaw.model.locks import importing
from fretsaw.model.schema import SchemaNode
from fretsaw.predicates.bound import NotComputable
from fretsaw.predicates.condition import Check, Computed, Condition, Every, Some
from fretsaw.predicates.evaluate import matches
from fretsaw.predicates.value_set import Booleans


def true_rows(condition: Condition, column_of: Callable[[SchemaNode], pa.ChunkedArray]) -> Booleans:
    """For each row, whether a condition is true; it has at least one check.

    Raises `compute.NotComputable` for a row that has no value.
    """
    match condition:
        case Check():
            return matches(condition, column_of(condition.leaf))
        case Computed(truth, inputs=inputs):
            with importing:  # kernels that most scans do without
                from fretsaw.predicates import compute

            return compute.true_of_leaves(truth, [(leaf, column_of(leaf)) for leaf in inputs])
        case Every(parts):
            found = np.all([true_rows(part, column_of) for part in parts], axis=0)
        case Some(parts):
            found = np.any([true_rows(part, column_of) for part in parts], axis=0)
        case _:
            raise TypeError(f"not a condition with checks: {condition!r}")
    return np.asarray(found)


def true_of_entries(check: Computed, entries: pa.ChunkedArray, may_be_null: bool) -> bool | None:
    """Whether a test is true of all entries of a dictionary, or of none; None: of some.

    A null counts as one more. An entry that cannot be computed proves nothing: no row may have it.
    """
    with importing:
        from fretsaw.predicates import compute

    values = [*entries.chunks, *([pa.nulls(1, entries.type)] if may_be_null else [])]
    try:
        found = compute.true_of_values(check.truth, check.leaves[0], pa.chunked_array(values))
    except NotComputable:
        return None
    return bool(found.all()) if found.all() == found.any() else None
