"""Values with their columns found and their types known: what is computed of rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fretsaw.model.schema import SchemaNode
from fretsaw.predicates.text import Text

ROW_NUMBER = -2
"""The leaf index of the numbers of rows, which no file has."""
ABSENT = -3
"""The leaf index of what other files have, and this one lacks."""


class NotComputable(ValueError):
    """A row for which there is no value: a result that does not fit, a cast that fails."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A value of each row: a leaf, a literal, or a function of others; tests are of booleans."""

    function: str
    type: pa.DataType
    operands: tuple["Bound", ...] = ()
    options: tuple[Any, ...] = ()

    @property
    def is_literal(self) -> bool:
        """Whether it is the same for all rows."""
        return self.function == "literal"

    def leaves(self) -> Iterator["Bound"]:
        """The leaves that it is computed of, as often as they occur."""
        if self.function in ("leaf", "element"):
            yield self
        for operand in self.operands:
            yield from operand.leaves()


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """A list or map whose elements are tested, below some structs of a row or of an element."""

    node: SchemaNode
    above: tuple[str, ...]


def leaf_value(
    leaf: SchemaNode, above: tuple[str, ...], kind: pa.DataType, hosts: tuple[Host, ...] = ()
) -> Bound:
    """The values of a leaf below some structs, of rows or of elements; of a struct by its leaf."""
    return Bound("element" if hosts else "leaf", kind, options=(leaf, above, hosts))


def constant(scalar: pa.Scalar, text: Text | None = None) -> Bound:
    """A value that is the same for all rows; perhaps as the text of a condition has it."""
    return Bound("literal", scalar.type, options=(scalar, text))


def without_structs(value: Bound) -> Bound:
    """The same of leaves that lie below nothing."""
    if value.function == "leaf":
        return replace(value, options=(value.options[0], (), ()))
    return replace(value, operands=tuple(map(without_structs, value.operands)))
