"""The columns of the result, as the first files settle them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from fretsaw.engine.paths import (
    READ_ALL,
    SCAN_ALONE,
    TEST_ANOTHER,
    find_column,
    top_level,
    types_differ,
)
from fretsaw.errors import ColumnNotFoundError
from fretsaw.formats.interface import FileReader
from fretsaw.model.schema import Path, SchemaNode, spelled, with_nulls
from fretsaw.model.widening import NoWiderType, merged, numbered


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The columns of the result, in order."""

    schema: pa.Schema
    nodes: tuple[SchemaNode, ...]
    asked: tuple[tuple[Path, ...], ...]
    """For each column, the paths by which it was asked for."""
    partitions: frozenset[str]
    """Those that come from folders."""
    source: str
    """The file that settled it, for messages."""
    names: tuple[str, ...] | None = None
    """The names of a file of which all columns are asked for, and nothing else."""
    tested: tuple[tuple[Path, SchemaNode], ...] = ()
    """What predicates test, in the top-level fields that it lies in: as the first file has it, or
    all files together where types are widened."""


def target_of(
    reader: FileReader,
    file: str,
    columns: Sequence[Path] | None,
    partitions: pa.Schema,
    several: bool,
) -> Target:
    """Settle the columns by one file; all of its columns and folders, if none were named."""
    fields: list[pa.Field] = []
    nodes: list[SchemaNode] = []
    asked: list[tuple[Path, ...]] = []
    if columns is None:
        own = [p for p, name in enumerate(reader.field_names) if name not in partitions.names]
        schema, described = reader.describe(own)
        fields = [*schema, *partitions]
        nodes = [*described, *map(made_up, partitions)]
        asked = [((field.name,),) for field in fields]
    else:
        names = reader.field_names
        groups = _grouped(columns, names, partitions.names, file)
        reader.describe([names.index(top) for top in groups if top not in partitions.names])
        for top, paths in groups.items():
            field, node = (
                (partitions.field(top), made_up(partitions.field(top)))
                if top in partitions.names
                else resolved_field(reader, file, paths)
            )
            fields.append(field)
            nodes.append(node)
            asked.append(tuple(paths))
        schema, _ = reader.describe([])
    if several:
        fields = [field.with_nullable(True).with_type(with_nulls(field.type)) for field in fields]
    return Target(
        pa.schema(fields, schema.metadata),
        tuple(nodes),
        tuple(asked),
        frozenset(partitions.names),
        file,
        names=tuple(reader.field_names) if columns is None and not partitions.names else None,
    )


def union(
    targets: Sequence[Target],
    columns: Sequence[Path] | None,
    missing_is_null: bool = True,
    widens_types: bool = False,
) -> Target:
    """The columns of all targets, in the order in which they were asked for.

    If none may be missing, they are those of the first; each has the type that the first has, or
    the one that holds all.
    """
    first = targets[0]
    are_named_alike = first.names is not None and all(t.names == first.names for t in targets)
    if are_named_alike and (not widens_types or all(t.nodes == first.nodes for t in targets)):
        return first
    for target in targets:
        require_unique(target.schema.names, target.source)
    fields: dict[str, tuple[pa.Field, SchemaNode, tuple[Path, ...]]] = {}
    for target in targets:
        for field, node, paths in zip(target.schema, target.nodes, target.asked, strict=True):
            known = fields.setdefault(field.name, (field, node, paths))
            if widens_types and known[1] != node and field.name not in first.partitions:
                wide = _widened(known[1], node, missing_is_null, target.source, first.source)
                fields[field.name] = (field.with_type(with_nulls(wide.arrow_type)), wide, paths)
    if not missing_is_null:
        fields = {name: fields[name] for name in first.schema.names}
    partitions = first.partitions
    if columns is None:
        # Folders come last, behind the columns of all files.
        ordered = sorted(fields.values(), key=lambda column: column[0].name in partitions)
    else:
        asked_at = {column: place for place, column in reversed(list(enumerate(columns)))}
        ordered = sorted(fields.values(), key=lambda column: asked_at[column[2][0]])
    schema = pa.schema([field for field, _, _ in ordered], first.schema.metadata)
    return Target(
        schema,
        tuple(node for _, node, _ in ordered),
        tuple(paths for _, _, paths in ordered),
        partitions,
        first.source,
        names=first.names if are_named_alike else None,
    )


def widest(
    tested: dict[Path, SchemaNode], path: Path, node: SchemaNode, file: str, gains_fields: bool
) -> None:
    """Widen what is known of a column that predicates test, by what one more file has of it."""
    known = tested.setdefault(path, node)
    if known != node:
        tested[path] = _widened(known, node, gains_fields, file, "files before it")


def _widened(
    node: SchemaNode, other: SchemaNode, gains_fields: bool, file: str, source: str
) -> SchemaNode:
    try:
        return numbered(merged(node, other, gains_fields))
    except NoWiderType as error:
        raise types_differ(file, node.name, str(error), source) from None


def without(target: Target, dropped: Sequence[Path]) -> Target:
    """The columns without some of them, or without parts of them."""
    if not dropped:
        return target
    names = target.schema.names
    gone: dict[int, set[tuple[str, ...]]] = {}
    for path in dropped:
        place, below = top_level(names, path, target.source)
        node = target.nodes[place] if below is None else target.nodes[place].find(below)
        if node is None:
            known = [".".join(leaf.path) for leaf in target.nodes[place].leaves()]
            raise ColumnNotFoundError.among(spelled(path), known, target.source)
        gone.setdefault(place, set()).update(leaf.path for leaf in node.leaves())
    kept = []
    for place, column in enumerate(zip(target.schema, target.nodes, target.asked, strict=True)):
        field, node, paths = column
        left = [leaf for leaf in node.leaves() if leaf.path not in gone.get(place, ())]
        if len(left) < len(list(node.leaves())):
            if not left:
                continue
            pruned = node.pruned({leaf.leaf_index for leaf in left})
            if any(leaf.path in gone[place] for leaf in pruned.leaves()):
                raise ValueError(
                    f"{target.source}: a map has keys and values: drop all of the map in "
                    f"{field.name!r}, or a field of a struct inside it"
                )
            is_exact = field.type == node.arrow_type
            node, kind = pruned, pruned.arrow_type
            field = field.with_type(kind if is_exact else with_nulls(kind))
            paths = tuple(leaf.path for leaf in left)
        kept.append((field, node, paths))
    return replace(
        target,
        schema=pa.schema([field for field, _, _ in kept], target.schema.metadata),
        nodes=tuple(node for _, node, _ in kept),
        asked=tuple(paths for _, _, paths in kept),
        names=None,
    )


def tested_part(reader: FileReader, file: str, path: Path) -> SchemaNode:
    """The top-level field of a column that predicates test, with nothing but that column."""
    top, node = find_column(reader, file, path, TEST_ANOTHER)
    return top.pruned({leaf.leaf_index for leaf in node.leaves()})


def made_up(field: pa.Field) -> SchemaNode:
    """The node of a column that no file has."""
    return SchemaNode(field.name, (field.name,), "leaf", field.nullable, field.type)


def _grouped(
    columns: Sequence[Path], names: Sequence[str], partitions: Sequence[str], file: str
) -> dict[str, list[Path]]:
    """The columns by the top-level field that they lie in, at the place of the first of each."""
    groups: dict[str, list[Path]] = {}
    for column in columns:
        folder = column if isinstance(column, str) else ".".join(column)
        top = folder if folder in partitions else names[top_level(names, column, file)[0]]
        groups.setdefault(top, []).append(column)
    return groups


def resolved_field(
    reader: FileReader, file: str, columns: Sequence[Path], if_repeated: str = READ_ALL
) -> tuple[pa.Field, SchemaNode]:
    """The one field that holds these columns, cut to them."""
    wanted: set[int] = set()
    for column in columns:
        top, node = find_column(reader, file, column, if_repeated)
        wanted.update(leaf.leaf_index for leaf in node.leaves())
    pruned = top.pruned(wanted)
    schema, _ = reader.describe([reader.field_names.index(top.name)])
    return schema.field(0).with_type(pruned.arrow_type), pruned


def require_unique(names: Sequence[str], file: str) -> None:
    """No two columns may have one name where files are matched by it."""
    if len(set(names)) < len(names):
        name, count = Counter(names).most_common(1)[0]
        raise ColumnNotFoundError.ambiguous(name, count, file, SCAN_ALONE)
