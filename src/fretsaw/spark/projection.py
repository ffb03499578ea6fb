"""A schema that the user gives as a projection: which paths of the files it asks for.

Names are matched exactly, at every level. A type that differs from what the files have is an
error, as is a column that they lack, unless missing columns are to be null.
"""

from collections.abc import Sequence

import pyspark.sql.types as spark

from fretsaw.errors import ColumnNotFoundError, SchemaMismatchError
from fretsaw.model.schema import SchemaNode, spelled
from fretsaw.spark.options import Missing
from fretsaw.spark.types import schema_of_nodes, struct_type


def paths_of(
    wanted: spark.StructType, columns: Sequence[SchemaNode], missing: Missing
) -> list[tuple[str, ...]]:
    """The paths to select for a schema, in its order."""
    return _fields(wanted, struct_type(schema_of_nodes(columns)), (), missing)


def _fields(
    wanted: spark.StructType, stored: spark.StructType, above: tuple[str, ...], missing: Missing
) -> list[tuple[str, ...]]:
    """The paths of the wanted fields of a struct."""
    types = {field.name: field.dataType for field in stored}
    found: list[tuple[str, ...]] = []
    for field in wanted:
        if field.name in types:
            path = (*above, field.name)
            found += _parts(field.dataType, types[field.name], path, missing)
        elif missing == "error":
            names = [spelled((*above, name)) for name in types]
            raise ColumnNotFoundError.among(spelled((*above, field.name)), names, "schema(...)")
    return found


def _parts(
    wanted: spark.DataType, stored: spark.DataType, path: tuple[str, ...], missing: Missing
) -> list[tuple[str, ...]]:
    """The path of a field, or the paths of what is wanted of it."""
    if wanted.simpleString() == stored.simpleString():
        return [path]
    match wanted, stored:
        case spark.StructType(), spark.StructType():
            return _fields(wanted, stored, path, missing) or [path]
        case spark.ArrayType(), spark.ArrayType():
            return _parts(wanted.elementType, stored.elementType, (*path, "element"), missing)
        case spark.MapType(), spark.MapType() if wanted.keyType == stored.keyType:
            return _parts(wanted.valueType, stored.valueType, (*path, "value"), missing)
    raise SchemaMismatchError(
        f"schema(...): column {spelled(path)!r} is {stored.simpleString()} in the files, not "
        f"{wanted.simpleString()}; give that type, and cast the column afterwards"
    )
