"""A few columns of a wide file have the types and fields that pyarrow gives them.

Of the Arrow schema that the writer left in such a file only single fields are looked at.
"""

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.formats.parquet.arrow_hint import peek_field

TYPES = [
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()),
    *(pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string()),
    *(pa.binary(), pa.large_string(), pa.string_view(), pa.binary(4), pa.date32(), pa.date64()),
    *(pa.timestamp("us"), pa.timestamp("ns", "Europe/Paris"), pa.duration("ms"), pa.null()),
    *(pa.time32("ms"), pa.decimal128(9, 2), pa.dictionary(pa.int8(), pa.string())),
    *(pa.list_(pa.int32()), pa.large_list(pa.string()), pa.list_(pa.float32(), 2)),
    *(pa.struct([("a", pa.int16())]), pa.map_(pa.string(), pa.int64())),
]
PLAIN = 14
"""So many of them are told without Arrow."""


def wide_schema() -> pa.Schema:
    fields = [pa.field(f"f{i} \N{SNOWMAN}", kind) for i, kind in enumerate(TYPES)]
    fields += [pa.field("told", pa.int32(), metadata={"by": "me"})]
    fields += [pa.field("never null", pa.int32(), nullable=False)]
    many = [pa.field(f"x{i}", pa.int64()) for i in range(32 * len(fields))]
    return pa.schema([*many, *fields], {"origin": "here"})


def test_few_of_many_columns_have_the_fields_that_pyarrow_gives_them(tmp_path: Path) -> None:
    schema, path = wide_schema(), tmp_path / "wide.parquet"
    pq.write_table(schema.empty_table(), path)
    expected = pq.read_schema(path)
    names = schema.names[-len(TYPES) - 2 :]
    for name in names:
        (found,) = fs.scan(path).select(name).schema
        assert found.equals(expected.field(name), check_metadata=True), name
    together = fs.scan(path).select(*names).schema
    assert together.equals(pa.schema(map(expected.field, names)))


def test_what_is_told_of_a_field_is_what_arrow_tells() -> None:
    schema = wide_schema()
    encoded = base64.b64encode(schema.serialize().to_pybytes())
    told = []
    for place, field in enumerate(schema):
        found = peek_field(encoded, place, len(schema), field.name)
        assert found is None or found.equals(field, check_metadata=True)
        told.append(found is not None)
        assert peek_field(encoded, place, len(schema), "other") is None
        assert peek_field(encoded, place, len(schema) + 1, field.name) is None
    assert sum(told[-len(TYPES) - 2 :]) == PLAIN + 1


@pytest.mark.parametrize("step", [1, 7])
def test_nothing_is_told_of_a_damaged_schema_but_what_it_says(step: int) -> None:
    schema = pa.schema([pa.field(f"x{i}", pa.int64()) for i in range(3)])
    whole = schema.serialize().to_pybytes()
    for place in range(0, len(whole), step):
        for value in (0, 1, 127, 255):
            damaged = whole[:place] + bytes([value]) + whole[place + 1 :]
            found = peek_field(base64.b64encode(damaged), 1, 3, "x1")
            assert found is None or found.name == "x1"
        cut = peek_field(base64.b64encode(whole[:place]), 1, 3, "x1")
        assert cut is None or cut == schema.field("x1")
    assert peek_field(b"not base64!", 1, 3, "x1") is None
