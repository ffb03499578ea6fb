"""The values for which a test of a column, or of what is computed of columns, is true."""

from fretsaw.model.schema import SchemaNode
from fretsaw.predicates.expression import Test
from fretsaw.predicates.literals import UnfitLiteral, edges, is_float, plain_keys, prefix_edges
from fretsaw.predicates.value_set import NAN_KEY, ValueSet


def values_of(test: Test, leaf: SchemaNode) -> ValueSet:
    """The values of a test that compares with literals, by the type of a leaf."""
    match test.operator:
        case "nan":
            if not is_float(leaf):
                raise UnfitLiteral("is_nan() needs a column of floats")
            return ValueSet.between(NAN_KEY, None)
        case "starts with":
            return ValueSet.between(*prefix_edges(test.operand, leaf))
        case "in":
            keys = plain_keys(test.operand, leaf)
            if keys is not None:
                return ValueSet.of_points(keys)
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
    raise TypeError(f"not a test of values: {test!r}")
