"""Columns found by the paths that users write, and the errors where they are not."""

from collections.abc import Iterator, Sequence

from fretsaw.errors import ColumnNotFoundError, SchemaMismatchError
from fretsaw.formats.interface import FileReader
from fretsaw.model.schema import Path, SchemaNode, spelled

READ_ALL = "leave out select() to read them all, or name one by the number of its leaf, column(0)"
TEST_ANOTHER = "test another column, or filter what to_arrow() gives of them all"
SCAN_ALONE = "files are matched by name: scan this one alone, by its path"


def find_column(
    reader: FileReader, file: str, path: Path, if_repeated: str = READ_ALL
) -> tuple[SchemaNode, SchemaNode]:
    """The node that a path names, and the top-level field that it lies in."""
    position, below = top_level(reader.field_names, path, file, if_repeated)
    _, (top,) = reader.describe([position])
    node = top if below is None else top.find(below)
    if node is None:
        known = [".".join(leaf.path) for leaf in top.leaves()]
        raise ColumnNotFoundError.among(spelled(path), known, file)
    return top, node


def lacks_column(file: str, name: str, source: str) -> SchemaMismatchError:
    """The error for a file without a column that another file of the scan has."""
    return SchemaMismatchError(
        f"{file}: has no column {name!r}, which {source} has; "
        f'read it as null there with fs.scan(..., missing="null"), or select() other columns'
    )


def name_is_taken(file: str, name: str) -> ValueError:
    """The error for a column that would have the name of another."""
    return ValueError(f"{file}: there is a column {name!r} already; choose another name")


def types_differ(
    file: str, name: str, types: str, source: str, hint: str = ""
) -> SchemaMismatchError:
    """The error for a column of two types that one result cannot have."""
    return SchemaMismatchError(
        f"{file}: column {name!r} is {types} in {source}; {hint}cast one of them, or scan them "
        "apart"
    )


def top_level(
    names: Sequence[str], column: Path, file: str, if_repeated: str = READ_ALL
) -> tuple[int, Path | None]:
    """The top-level field that a column lies in, and the path below it, if there is one.

    A name that contains dots is matched whole first.
    """
    for name, below in _divisions(column):
        count = names.count(name)
        if count > 1:
            raise ColumnNotFoundError.ambiguous(name, count, file, if_repeated)
        if count:
            return names.index(name), below
    raise ColumnNotFoundError.among(spelled(column), names, file)


def _divisions(column: Path) -> Iterator[tuple[str, Path | None]]:
    """What may be the name of the top-level field, longest first, and what is left then."""
    if isinstance(column, tuple):
        yield from [(column[0], column[1:] or None)] if column else []
        return
    yield column, None
    steps = column.split(".")
    for count in range(len(steps) - 1, 0, -1):
        yield ".".join(steps[:count]), ".".join(steps[count:])
