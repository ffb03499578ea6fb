"""The Spark column of the type table: what every Arrow type becomes, and its values there.

Beside each array, by hand: Spark's type and the values. pyspark itself says which Arrow schema it
expects, and one session takes all the arrays and gives them back.
"""

import datetime as dt
import inspect
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs

pytest.importorskip("pyspark")

from pyspark.sql.pandas.types import to_arrow_schema

from fretsaw.engine.planner import Planner
from fretsaw.spark.types import SparkTypeError, arrow_schema, conform, schema_of_nodes, struct_type


def schema_of(scan: fs.Scan) -> pa.Schema:
    return schema_of_nodes(Planner(scan.request).columns.nodes)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    return arrow_schema(struct_type(schema))


UTC = dt.UTC
NAN = float("nan")
KEY = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
NEW_YEAR = dt.datetime(2024, 1, 1)
BEFORE = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)


@dataclass(frozen=True)
class Case:
    """An array, Spark's type of it, and its values there if they are not those of pyarrow."""

    array: pa.Array
    spark: str
    values: Sequence[Any] | None = None

    def expected(self) -> list[Any]:
        return self.array.to_pylist() if self.values is None else list(self.values)


def of(kind: pa.DataType, *values: Any) -> pa.Array:
    return pa.array([*values, None], kind)


DICTIONARY = pa.dictionary(pa.int8(), pa.string())
WEIRD = pa.struct(
    [
        ("z", DICTIONARY),
        ("a", pa.list_(pa.uint8(), 2)),
        ("m", pa.map_(pa.string_view(), pa.large_list(pa.timestamp("ns", "Asia/Tokyo")))),
    ]
)
CASES: dict[str, Case] = {
    "bool": Case(of(pa.bool_(), True, False), "boolean"),
    "int8": Case(of(pa.int8(), -128, 127), "tinyint"),
    "int16": Case(of(pa.int16(), -(2**15), 2**15 - 1), "smallint"),
    "int32": Case(of(pa.int32(), -(2**31), 2**31 - 1), "int"),
    "int64": Case(of(pa.int64(), -(2**63), 2**63 - 1), "bigint"),
    "uint8": Case(of(pa.uint8(), 0, 255), "smallint"),
    "uint16": Case(of(pa.uint16(), 0, 2**16 - 1), "int"),
    "uint32": Case(of(pa.uint32(), 0, 2**32 - 1), "bigint"),
    "uint64": Case(
        of(pa.uint64(), 0, 2**64 - 1), "decimal(20,0)", [Decimal(0), Decimal(2**64 - 1), None]
    ),
    "float16": Case(of(pa.float16(), -0.0, 65504.0, NAN), "float"),
    "float32": Case(of(pa.float32(), -0.0, float("inf"), NAN), "float"),
    "float64": Case(of(pa.float64(), -0.0, 5e-324, NAN), "double"),
    "decimal32": Case(of(pa.decimal32(5, 2), Decimal("-999.99")), "decimal(5,2)"),
    "decimal64": Case(of(pa.decimal64(18, 0), Decimal(10**18 - 1)), "decimal(18,0)"),
    "decimal128": Case(of(pa.decimal128(38, 38), Decimal("0." + "9" * 38)), "decimal(38,38)"),
    "decimal256": Case(of(pa.decimal256(38, 1), Decimal("9" * 37 + ".9")), "decimal(38,1)"),
    "string": Case(of(pa.string(), "", "héllo"), "string"),
    "large_string": Case(of(pa.large_string(), "a"), "string"),
    "string_view": Case(of(pa.string_view(), "short", "longer than twelve"), "string"),
    "binary": Case(of(pa.binary(), b"", b"\xff"), "binary"),
    "large_binary": Case(of(pa.large_binary(), b"a"), "binary"),
    "binary_view": Case(of(pa.binary_view(), b"a", b"longer than twelve"), "binary"),
    "fixed": Case(of(pa.binary(3), b"abc"), "binary"),
    "uuid": Case(of(pa.uuid(), KEY.bytes), "binary", [KEY.bytes, None]),
    "json": Case(of(pa.json_(), "{}"), "string", ["{}", None]),
    "date32": Case(of(pa.date32(), dt.date(1, 1, 1), dt.date(9999, 12, 31)), "date"),
    "date64": Case(of(pa.date64(), dt.date(1969, 12, 31)), "date"),
    "time32_s": Case(of(pa.time32("s"), dt.time(23, 59, 59)), "time(6)"),
    "time32_ms": Case(of(pa.time32("ms"), dt.time(0, 0, 0, 1000)), "time(6)"),
    "time64_us": Case(of(pa.time64("us"), dt.time(0, 0, 0, 1)), "time(6)"),
    "time64_ns": Case(of(pa.time64("ns"), 86_399_999_999_000), "time(6)"),
    "local_s": Case(of(pa.timestamp("s"), NEW_YEAR), "timestamp_ntz"),
    "local_ms": Case(of(pa.timestamp("ms"), NEW_YEAR), "timestamp_ntz"),
    "local_us": Case(of(pa.timestamp("us"), BEFORE), "timestamp_ntz"),
    "local_ns": Case(
        of(pa.timestamp("ns"), -1, -1000, 1999),
        "timestamp_ntz",
        [BEFORE, BEFORE, dt.datetime(1970, 1, 1, 0, 0, 0, 1), None],
    ),
    "utc_ns": Case(
        of(pa.timestamp("ns", "UTC"), -1), "timestamp", [BEFORE.replace(tzinfo=UTC), None]
    ),
    "zoned_ms": Case(
        of(pa.timestamp("ms", "Asia/Tokyo"), 0),
        "timestamp",
        [dt.datetime(1970, 1, 1, tzinfo=UTC), None],
    ),
    "duration_s": Case(of(pa.duration("s"), dt.timedelta(-1)), "interval day to second"),
    "duration_ns": Case(
        of(pa.duration("ns"), -1, 1999),
        "interval day to second",
        [dt.timedelta(microseconds=-1), dt.timedelta(microseconds=1), None],
    ),
    "dictionary": Case(of(pa.string(), "a", "b", "a").dictionary_encode(), "string"),
    "null": Case(pa.nulls(2), "void"),
    "list": Case(of(pa.list_(pa.int16()), [], [1, None]), "array<smallint>"),
    "large_list": Case(of(pa.large_list(pa.uint8()), [], [1, None]), "array<smallint>"),
    "list_view": Case(of(pa.list_view(pa.uint8()), [], [1, None]), "array<smallint>"),
    "fixed_list": Case(
        pa.array([None, [1, None], [3, 4]], pa.list_(pa.int8(), 2)), "array<tinyint>"
    ),
    "lists": Case(
        of(pa.list_(pa.list_(DICTIONARY)), [["a", None], None, []]), "array<array<string>>"
    ),
    "struct": Case(
        of(pa.struct([("y", pa.int8()), ("x", pa.string())]), {"y": None, "x": "a"}),
        "struct<y:tinyint,x:string>",
    ),
    "map": Case(
        of(pa.map_(pa.string(), pa.uint16()), [], [("a", 1), ("b", None)]), "map<string,int>"
    ),
    "weird": Case(
        of(
            WEIRD,
            {"z": "z", "a": [1, 2], "m": [("k", [-1, None]), ("l", None)]},
            {"z": None, "a": None, "m": None},
        ),
        "struct<z:string,a:array<smallint>,m:map<string,array<timestamp>>>",
        [
            {
                "z": "z",
                "a": [1, 2],
                "m": [("k", [BEFORE.replace(tzinfo=UTC), None]), ("l", None)],
            },
            {"z": None, "a": None, "m": None},
            None,
        ],
    ),
}


def expected_by_pyspark(schema: pa.Schema) -> pa.Schema:
    takes_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if takes_zone else {}
    return to_arrow_schema(struct_type(schema), **zone)


def batch_of(**arrays: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(arrays)


@pytest.mark.parametrize("name", CASES)
def test_a_type_is_what_the_table_says_and_pyspark_expects(name: str) -> None:
    case = CASES[name]
    schema = pa.schema([pa.field("x", case.array.type, nullable=name == "null")])
    assert struct_type(schema).simpleString() == f"struct<x:{case.spark}>"
    assert struct_type(schema)["x"].nullable
    assert spark_schema(schema).equals(expected_by_pyspark(schema))
    assert spark_schema(spark_schema(schema)).equals(spark_schema(schema))


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_table_wherever_a_batch_is_cut(name: str) -> None:
    case = CASES[name]
    batch = batch_of(x=case.array)
    target = spark_schema(batch.schema)
    for first in range(len(batch) + 1):
        for count in range(len(batch) - first + 1):
            found = conform(batch.slice(first, count), target)
            found.validate(full=True)
            assert found.schema.equals(target)
            expected = case.expected()[first : first + count]
            assert repr(found.column(0).to_pylist()) == repr(
                pa.array(expected, target.field(0).type).to_pylist()
            )


def test_fields_are_matched_by_name_at_every_level() -> None:
    inner = pa.struct([("p", pa.int8()), ("q", pa.int8())])
    batch = batch_of(
        a=pa.array([[{"p": 1, "q": 2}]], pa.list_(inner)),
        b=pa.array([[("k", {"p": 3, "q": 4})]], pa.map_(pa.string(), inner)),
        c=pa.array([{"p": 5, "q": 6}], inner),
    )
    swapped = pa.struct([("q", pa.int8()), ("p", pa.int8()), ("new", pa.string())])
    target = pa.schema(
        [("c", swapped), ("b", pa.map_(pa.string(), swapped)), ("a", pa.list_(swapped))]
    )
    assert conform(batch, target).to_pylist() == [
        {
            "c": {"q": 6, "p": 5, "new": None},
            "b": [("k", {"q": 4, "p": 3, "new": None})],
            "a": [{"q": 2, "p": 1, "new": None}],
        }
    ]


def test_null_is_refused_where_the_schema_says_so() -> None:
    def never_null(kind: pa.DataType) -> pa.Schema:
        return pa.schema([pa.field("x", kind, nullable=False)])

    with pytest.raises(SparkTypeError, match="'x' has nulls"):
        conform(batch_of(x=pa.array([1, None])), never_null(pa.int64()))
    with pytest.raises(SparkTypeError, match=r"'x\.element' has nulls"):
        conform(
            batch_of(x=pa.array([[1, None]])),
            pa.schema([("x", pa.list_(pa.field("element", pa.int64(), nullable=False)))]),
        )
    inner = pa.struct([pa.field("p", pa.int64(), nullable=False)])
    below_null = batch_of(x=pa.array([{"p": 1}, None]))
    assert conform(below_null, pa.schema([("x", inner)])).to_pylist() == below_null.to_pylist()
    with pytest.raises(SparkTypeError, match=r"'x\.p' has nulls"):
        conform(batch_of(x=pa.array([{"p": 1}, {"p": None}])), pa.schema([("x", inner)]))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (pa.month_day_nano_interval(), "month_day_nano"),
        (pa.decimal256(39, 0), "38 digits"),
        (pa.decimal128(5, -2), "38 digits"),
        (pa.dense_union([pa.field("p", pa.int8())]), "union"),
    ],
)
def test_what_has_no_type_in_spark_names_the_column(kind: pa.DataType, says: str) -> None:
    schema = pa.schema([("fine", pa.int8()), ("odd", pa.list_(pa.struct([("p", kind)])))])
    with pytest.raises(SparkTypeError, match=rf"column 'odd\.element\.p'.*{says}"):
        struct_type(schema)


def test_times_need_a_spark_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("pyspark.sql.types.TimeType")
    with pytest.raises(SparkTypeError, match=r"column 't'.*PySpark 4\.1"):
        struct_type(pa.schema([("t", pa.time64("us"))]))


def test_a_value_that_spark_cannot_hold_names_the_column() -> None:
    batch = batch_of(at=pa.array([2**62], pa.timestamp("s")))
    with pytest.raises(SparkTypeError, match="column 'at'"):
        conform(batch, spark_schema(batch.schema))


def test_int96_is_an_instant_and_orc_timestamps_are_what_they_say(tmp_path: Path) -> None:
    table = pa.table({"at": [NEW_YEAR], "in": [[{"at": NEW_YEAR}]]})
    pq.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    found = struct_type(schema_of(fs.scan(tmp_path / "old.parquet")))
    assert found.simpleString() == "struct<at:timestamp,in:array<struct<at:timestamp>>>"
    orc.write_table(pa.table({"at": pa.array([NEW_YEAR], pa.timestamp("us"))}), tmp_path / "x.orc")
    found = struct_type(schema_of(fs.scan(tmp_path / "x.orc")))
    assert found.simpleString() == "struct<at:timestamp_ntz>"


@pytest.mark.spark
def test_spark_takes_every_type_and_gives_its_values_back(spark: Any) -> None:
    length = max(len(case.array) for case in CASES.values())
    arrays = {
        name: pa.concat_arrays([case.array, pa.nulls(length - len(case.array), case.array.type)])
        for name, case in CASES.items()
        if name != "list_view"  # Arrow does not join them
    }
    kept = {name: replace(CASES[name], array=array) for name, array in arrays.items()}
    batch = batch_of(**arrays)
    kind = struct_type(batch.schema)
    ready = conform(batch, arrow_schema(kind))

    def give(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield ready

    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = spark.range(1).coalesce(1).mapInArrow(give, kind).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found.num_rows == length
    for name, case in kept.items():
        values = case.expected() + [None] * (length - len(CASES[name].expected()))
        values = values[:length]
        target = ready.schema.field(name).type
        assert repr(found.column(name).cast(target).to_pylist()) == repr(
            pa.array(values, target).to_pylist()
        ), name
