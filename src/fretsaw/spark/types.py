"""From Arrow's types to Spark's, and record batches in exactly the schema that Spark expects.

`struct_type` says what a schema is in Spark, `arrow_schema` what batches of it must be in Arrow,
and `conform` makes them so: unsigned integers widened, dictionaries and extensions as their
values, microseconds, and nested fields in order by name (Spark matches them by position).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.types as spark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fretsaw.errors import FretsawError
from fretsaw.model.schema import SchemaNode, type_with

IsType: TypeAlias = Callable[[pa.DataType], bool]

MOST_DIGITS = 38
TIMES_SETTING = "spark.sql.timeType.enabled"

_is = pa.types
_SIMPLE: tuple[tuple[IsType, spark.DataType], ...] = (
    (_is.is_boolean, spark.BooleanType()),
    (_is.is_int8, spark.ByteType()),
    (_is.is_int16, spark.ShortType()),
    (_is.is_int32, spark.IntegerType()),
    (_is.is_int64, spark.LongType()),
    (_is.is_uint8, spark.ShortType()),
    (_is.is_uint16, spark.IntegerType()),
    (_is.is_uint32, spark.LongType()),
    (_is.is_uint64, spark.DecimalType(20, 0)),
    (_is.is_float16, spark.FloatType()),
    (_is.is_float32, spark.FloatType()),
    (_is.is_float64, spark.DoubleType()),
    (_is.is_string, spark.StringType()),
    (_is.is_large_string, spark.StringType()),
    (_is.is_string_view, spark.StringType()),
    (_is.is_binary, spark.BinaryType()),
    (_is.is_large_binary, spark.BinaryType()),
    (_is.is_binary_view, spark.BinaryType()),
    (_is.is_fixed_size_binary, spark.BinaryType()),
    (_is.is_date, spark.DateType()),
    (_is.is_duration, spark.DayTimeIntervalType()),
    (_is.is_null, spark.NullType()),
)
_IN_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("ns"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "daytimeinterval": pa.duration("us"),
    "void": pa.null(),
}


class SparkTypeError(FretsawError, TypeError):
    """A column has no type in Spark, or a value that its type in Spark cannot hold."""


def schema_of_nodes(nodes: Sequence[SchemaNode]) -> pa.Schema:
    """The schema of columns for Spark: INT96 is an instant there, as for its own reader."""
    return pa.schema([pa.field(node.name, _with_instants(node).arrow_type) for node in nodes])


def struct_type(schema: pa.Schema) -> spark.StructType:
    """What a schema is in Spark; every field may be null."""
    return spark.StructType(
        [spark.StructField(field.name, _data_type(field.type, field.name)) for field in schema]
    )


def has_times(session: SparkSession) -> bool:
    """Whether a session may have columns of times, which it has to be told from some version on."""
    try:
        return session.conf.get(TIMES_SETTING) == "true"
    except PySparkException:  # it knows no such setting
        return True


def require_no_times(struct: spark.StructType) -> None:
    """Check that there is no column that a session without times would fail on later."""
    for name in _times_in(struct, ()):
        raise SparkTypeError(
            f"column {name!r} is a TIME, which this session has not: set {TIMES_SETTING} to true "
            "first, or leave the column out"
        )


def _times_in(data_type: spark.DataType, path: tuple[str, ...]) -> Iterator[str]:
    match data_type:
        case spark.StructType():
            for field in data_type:
                yield from _times_in(field.dataType, (*path, field.name))
        case spark.ArrayType():
            yield from _times_in(data_type.elementType, (*path, "element"))
        case spark.MapType():
            yield from _times_in(data_type.keyType, (*path, "key"))
            yield from _times_in(data_type.valueType, (*path, "value"))
        case _ if data_type.typeName() == "time":
            yield ".".join(path)


def arrow_schema(struct: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark takes batches of one of its own schemas."""
    return pa.schema(
        [_arrow_field(field.name, field.dataType, field.nullable, field.name) for field in struct]
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch in a schema that `arrow_schema` gives; fields are matched by name at every level.

    A field that the batch lacks is null.
    """
    columns = batch.schema.names
    arrays = [
        _field(
            batch.column(field.name) if field.name in columns else None, field, batch, field.name
        )
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# Types ------------------------------------------------------------------------------------------


def _with_instants(node: SchemaNode) -> SchemaNode:
    if node.physical_type == "INT96" and pa.types.is_timestamp(node.arrow_type):
        return replace(node, arrow_type=pa.timestamp(node.arrow_type.unit, "UTC"))
    if node.is_leaf:
        return node
    return replace(node, arrow_type=type_with(node, tuple(map(_with_instants, node.children))))


def _data_type(arrow_type: pa.DataType, name: str) -> spark.DataType:
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _data_type(arrow_type.storage_type, name)
    if _is.is_dictionary(arrow_type):
        return _data_type(arrow_type.value_type, name)
    for is_type, simple in _SIMPLE:
        if is_type(arrow_type):
            return simple
    if _is.is_decimal(arrow_type):
        return _decimal_type(arrow_type, name)
    if _is.is_timestamp(arrow_type):
        return spark.TimestampNTZType() if arrow_type.tz is None else spark.TimestampType()
    if _is.is_time(arrow_type):
        return _time_type(arrow_type, name)
    if _is.is_struct(arrow_type):
        return spark.StructType(
            [spark.StructField(f.name, _data_type(f.type, f"{name}.{f.name}")) for f in arrow_type]
        )
    if _is.is_map(arrow_type):
        return spark.MapType(
            _data_type(arrow_type.key_type, f"{name}.key"),
            _data_type(arrow_type.item_type, f"{name}.value"),
        )
    if _is_list(arrow_type):
        return spark.ArrayType(_data_type(arrow_type.value_type, f"{name}.element"))
    raise SparkTypeError(_has_no_type(name, arrow_type, "leave it out of the columns"))


def _decimal_type(arrow_type: pa.DataType, name: str) -> spark.DataType:
    if not 0 <= arrow_type.scale <= arrow_type.precision <= MOST_DIGITS:
        hint = f"a decimal has at most {MOST_DIGITS} digits there; leave it out of the columns"
        raise SparkTypeError(_has_no_type(name, arrow_type, hint))
    return spark.DecimalType(arrow_type.precision, arrow_type.scale)


def _time_type(arrow_type: pa.DataType, name: str) -> spark.DataType:
    time_type = getattr(spark, "TimeType", None)
    if time_type is None:
        hint = "times need PySpark 4.1 or newer; upgrade it, or leave it out of the columns"
        raise SparkTypeError(_has_no_type(name, arrow_type, hint))
    found: spark.DataType = time_type()
    return found


def _has_no_type(name: str, arrow_type: pa.DataType, hint: str) -> str:
    return f"column {name!r} is {arrow_type}, which has no type in Spark: {hint}"


def _is_list(arrow_type: pa.DataType) -> bool:
    return bool(
        _is.is_list(arrow_type)
        or _is.is_large_list(arrow_type)
        or _is.is_fixed_size_list(arrow_type)
        or _is.is_list_view(arrow_type)
        or _is.is_large_list_view(arrow_type)
    )


def _arrow_field(name: str, data_type: spark.DataType, nullable: bool, path: str) -> pa.Field:
    return pa.field(name, _arrow_type(data_type, path), nullable)


def _arrow_type(data_type: spark.DataType, path: str) -> pa.DataType:
    match data_type:
        case spark.StructType():
            return pa.struct(
                [
                    _arrow_field(f.name, f.dataType, f.nullable, f"{path}.{f.name}")
                    for f in data_type
                ]
            )
        case spark.ArrayType():
            has_nulls = data_type.containsNull
            return pa.list_(_arrow_field("element", data_type.elementType, has_nulls, path))
        case spark.MapType():
            return pa.map_(
                _arrow_field("key", data_type.keyType, False, path),
                _arrow_field("value", data_type.valueType, data_type.valueContainsNull, path),
            )
        case spark.DecimalType():
            return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.typeName() not in _IN_ARROW:
        raise SparkTypeError(f"column {path!r}: no file has a {data_type.simpleString()}")
    return _IN_ARROW[data_type.typeName()]


# Values -----------------------------------------------------------------------------------------


def _field(
    array: pa.Array | None, field: pa.Field, parent: pa.RecordBatch | pa.Array, path: str
) -> pa.Array:
    """The values of a field of a batch or of an array of structs."""
    values = pa.nulls(len(parent), field.type) if array is None else _cast(array, field.type, path)
    if not field.nullable and values.null_count:
        present = values if isinstance(parent, pa.RecordBatch) else values.filter(parent.is_valid())
        _require_no_nulls(present, path)
    return values


def _cast(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """An array as another type, level by level: Arrow's own cast does not reach everything."""
    if isinstance(array, pa.ExtensionArray):
        return _cast(array.storage, target, path)
    if _is.is_dictionary(array.type):
        return _cast(array.dictionary_decode(), target, path)
    if _is.is_null(array.type):
        return pa.nulls(len(array), target)
    if array.type == target:
        return array
    if _is.is_struct(target):
        return _cast_struct(array, target, path)
    if _is.is_map(target):
        return _cast_map(array, target, path)
    if _is.is_list(target):
        return _cast_list(array, target, path)
    try:
        return _in_microseconds(array).cast(target)
    except pa.ArrowInvalid as error:
        raise SparkTypeError(
            f"column {path!r}: a value is beyond what Spark can hold ({error}); leave the column "
            "out, or its rows"
        ) from None


def _cast_struct(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    places = {field.name: place for place, field in enumerate(array.type)}
    fields = list(target)
    children = [
        _field(
            array.field(places[field.name]) if field.name in places else None,
            field,
            array,
            f"{path}.{field.name}",
        )
        for field in fields
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(array))


def _cast_map(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    offsets = array.offsets.to_numpy()
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = _cast(array.keys.slice(first, count), target.key_type, f"{path}.key")
    items = _cast(array.items.slice(first, count), target.item_type, f"{path}.value")
    if not target.item_field.nullable:
        _require_no_nulls(items, f"{path}.value")
    starts = pa.array(offsets - first)
    return pa.MapArray.from_arrays(starts, keys, items, type=target, mask=_nulls(array))


def _cast_list(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    values = _cast(array.flatten(), target.value_type, f"{path}.element")
    if not target.value_field.nullable:
        _require_no_nulls(values, f"{path}.element")
    return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=_nulls(array))


def _offsets(array: pa.Array) -> pa.Array:
    """Where each list begins among the flattened values, which null lists have none of."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _in_microseconds(array: pa.Array) -> pa.Array:
    """Nanoseconds floored to microseconds, as Spark does; what has another unit as it is."""
    kind = array.type
    if not (_is.is_timestamp(kind) or _is.is_duration(kind)) or kind.unit != "ns":
        return array
    counts = pc.fill_null(array.view(pa.int64()), 0).to_numpy()
    floored = pa.array(counts // 1000, mask=np.asarray(array.is_null()))
    return floored.view(pa.duration("us") if _is.is_duration(kind) else pa.timestamp("us", kind.tz))


def _require_no_nulls(array: pa.Array, path: str) -> None:
    if array.null_count:
        raise SparkTypeError(f"column {path!r} has nulls, but the schema given says NOT NULL")
