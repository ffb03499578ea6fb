"""Where the expressions of a predicate find their columns in one file, and elements inside them.

A column is a leaf below some structs; what lies in lists and maps is found in the scope of one of
their elements. A field that a file lacks below what it has is null there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from fretsaw.model.schema import Path, SchemaNode, value_type
from fretsaw.predicates.bound import ABSENT, Bound, Host, constant, leaf_value
from fretsaw.predicates.expression import Column, Element
from fretsaw.predicates.literals import UnfitLiteral

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


def is_absent(node: SchemaNode) -> bool:
    """Whether a file lacks a column or all that is below it."""
    return all(leaf.leaf_index == ABSENT for leaf in node.leaves())


def steps_to(top: SchemaNode, node: SchemaNode) -> Iterator[SchemaNode]:
    """The nodes from the top down to one."""
    yield top
    if top.path != node.path:
        below = next(child for child in top.children if child.path == node.path[: len(child.path)])
        yield from steps_to(below, node)


def kinds_above(top: SchemaNode, node: SchemaNode) -> tuple[str, ...]:
    """The kinds of the nodes from the top down to one, without its own."""
    return tuple(step.kind for step in steps_to(top, node))[:-1]


def nearest_leaf(node: SchemaNode) -> SchemaNode:
    """The leaf that tells with the least work where a node is null: one in few lists."""
    leaves = [leaf for leaf in node.leaves() if leaf.leaf_index != ABSENT]
    return min(leaves or node.leaves(), key=lambda leaf: (leaf.is_repeated, len(leaf.path)))


def compared_leaf(column: Column, node: SchemaNode) -> SchemaNode:
    """The leaf whose values are compared."""
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


def folded_node(top: SchemaNode, node: SchemaNode, is_null_test: bool) -> SchemaNode:
    """The elements that a column with a fold is about: the step into a list may be left out."""
    is_nested = any(kind in ("list", "map") for kind in kinds_above(top, node))
    while node.list_element and not (is_nested and is_null_test):
        node, is_nested = node.list_element, True
    return node


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of a file that expressions are computed of, perhaps for an element of a list."""

    find: Find
    hosts: tuple[Host, ...] = ()
    """The lists or maps around the element that is tested, from the outermost on."""

    def value(self, column: Column | Element) -> Bound:
        """The values of a column, or of the element that is tested."""
        if isinstance(column, Element):
            node = self._element(column)
            _require_single(column, kinds_above(self.hosts[-1].node, node)[1:])
            return self._bound(node)
        found = self._found(column)
        if isinstance(found, pa.Scalar):
            return constant(found)
        top, node = found
        above = kinds_above(top, node)
        _require_single(column, above)
        if is_absent(node):
            return constant(pa.scalar(None))
        if not node.is_leaf:
            return leaf_value(nearest_leaf(node), above, node.arrow_type)
        leaf = compared_leaf(column, node)
        return leaf_value(leaf, above, value_type(leaf))

    def inside(self, column: Column | Element) -> "FileColumns | None":
        """The same for an element of a list or map; None: there is none in this file."""
        if isinstance(column, Element):
            node = self._element(column)
            above = kinds_above(self.hosts[-1].node, node)[1:]
        else:
            found = self._found(column)
            if isinstance(found, pa.Scalar):
                return None
            top, node = found
            above = kinds_above(top, node)
        _require_single(column, above)
        if not node.is_list and not node.is_map:
            raise UnfitLiteral(f"{column!r} is no list and no map")
        if is_absent(node):
            return None
        return self._into(node) if isinstance(column, Element) else self._at(Host(node, above))

    def folded(self, column: Column, is_null_test: bool) -> "tuple[list[FileColumns], Bound]":
        """The scopes of the lists around a column's elements, the outermost first, and these."""
        found = self._found(column)
        if isinstance(found, pa.Scalar):
            return [], constant(found)
        top, node = found
        node = folded_node(top, node, is_null_test)
        *around, _ = steps_to(top, node)
        scopes: list[FileColumns] = []
        for step in around:
            if step.is_list or step.is_map:
                if is_absent(step):
                    return scopes, constant(pa.scalar(None))
                host = Host(step, kinds_above(top, step))
                scopes.append(scopes[-1]._into(step) if scopes else self._at(host))
        if not scopes:
            raise UnfitLiteral(f"it does not lie below a list or map: leave out .{column.fold}()")
        return scopes, scopes[-1]._bound(node)

    def entries(self, column: Column | Element) -> "tuple[FileColumns, Bound | None, Bound] | None":
        """The scope of a list or map, its keys, if it has some, and values; None: there is none.

        A path into the elements of a list is for what they have there.
        """
        if isinstance(column, Element):
            top = self.hosts[-1].node if self.hosts else None
            node = self._element(column)
        else:
            found = self._found(column)
            if isinstance(found, pa.Scalar):
                return None
            top, node = found
        assert top is not None
        *around, _ = steps_to(top, node)
        inside = around[isinstance(column, Element) :]
        hosts = [step for step in inside if step.is_list or step.is_map]
        host = hosts[0] if hosts else node
        if len(hosts) > 1 or host.is_leaf or host.is_struct:
            raise UnfitLiteral("get() needs a list, a map, or a field of what one of them holds")
        if is_absent(host):
            return None
        is_element = isinstance(column, Element)
        scope = self._into(host) if is_element else self._at(Host(host, kinds_above(top, host)))
        key = host.map_key
        held = node if hosts else (host.map_value if host.is_map else host.list_element)
        if held is None or (key is not None and held.path[: len(key.path)] == key.path):
            raise UnfitLiteral("get() needs a list, or a map with keys and values")
        return scope, None if key is None else scope._bound(key), scope._bound(held)

    @property
    def lists(self) -> Bound:
        """The lists or maps whose elements are tested."""
        *outer, host = self.hosts
        kind = host.node.arrow_type
        return leaf_value(nearest_leaf(host.node), host.above, kind, tuple(outer))

    def _found(self, column: Column) -> Found:
        found = self.find(column.path)
        assert found is not None
        return found

    def _at(self, host: Host) -> "FileColumns":
        return replace(self, hosts=(host,))

    def _into(self, node: SchemaNode) -> "FileColumns":
        above = kinds_above(self.hosts[-1].node, node)[1:]
        return replace(self, hosts=(*self.hosts, Host(node, above)))

    def _bound(self, node: SchemaNode) -> Bound:
        """What the elements hold at a node."""
        if is_absent(node):
            return constant(pa.scalar(None))
        above = kinds_above(self.hosts[-1].node, node)[1:]
        kind = value_type(node) if node.is_leaf else node.arrow_type
        return leaf_value(nearest_leaf(node), above, kind, self.hosts)

    def _element(self, element: Element) -> SchemaNode:
        if not self.hosts:
            raise UnfitLiteral(f"{element!r} is for tests of elements, col(...).any(...)")
        host = self.hosts[-1].node
        node = host if host.is_map else host.list_element
        found = None if node is None else node.find(element.path)
        if found is None or found is host:
            known = [".".join(leaf.path[len(host.path) :]) for leaf in host.leaves()]
            near = ", ".join(name.removeprefix("element.") for name in known)
            raise UnfitLiteral(f"{element!r} is not in an element, which has {near}")
        return found


def _require_single(column: Column | Element, above: tuple[str, ...]) -> None:
    if "list" in above or "map" in above:
        hint = "test each element: col(...).any(fs.element(...) > 1)"
        raise UnfitLiteral(f"{column!r} lies below a list or map, of which a row has many; {hint}")
