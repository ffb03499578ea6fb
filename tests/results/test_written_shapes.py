"""What is written is what was read, for every way to nest lists, maps and structs in each other.

A shape is a chain of branches down to a leaf, each of them required or optional; structs have a
required field beside it. The tables are made by pyarrow and the files are read back by it.
"""

import io
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw.results.write.files import write_file
from tests.support.nested_data import BRANCHES, is_fixed, of_field

ROWS = 40
LEAVES = (pa.int64(), pa.string(), pa.bool_())
WHOLE, SLICED = (0, ROWS), (7, 29)
SAMPLE = 61
"""Of the deepest shapes, every so-manieth is tried each time."""


def shapes(depth: int, kinds: Sequence[str] = BRANCHES) -> Iterator[pa.Field]:
    """All chains of so many branches, required and optional at every level."""
    for branches in itertools.product(kinds, repeat=depth):
        for optional in itertools.product([True, False], repeat=depth + 1):
            leaf = LEAVES[sum(optional) % len(LEAVES)]
            name = "-".join(
                f"{step}{'?' if may else ''}"
                for step, may in zip((*branches, str(leaf)), optional, strict=True)
            )
            yield shape(branches, optional, leaf).with_name(name)


def shape(branches: Sequence[str], optional: Sequence[bool], leaf: pa.DataType) -> pa.Field:
    if not branches:
        return pa.field("leaf", leaf, optional[0])
    below = shape(branches[1:], optional[1:], leaf)
    match branches[0]:
        case "struct":
            # pyarrow cannot read a required fixed-size list that is missing with its struct.
            below = below.with_nullable(below.nullable or is_fixed(below.type))
            kind = pa.struct([below, pa.field("beside", pa.int32(), nullable=False)])
        case "list":
            kind = pa.list_(below.with_name("element"))
        case "large_list":
            kind = pa.large_list(below.with_name("element"))
        case "fixed_size_list":
            kind = pa.list_(below.with_name("element"), 2)
        case _:
            kind = pa.map_(pa.field("key", pa.string(), nullable=False), below.with_name("value"))
    return pa.field(branches[0], kind, optional[0])


def table_of(fields: Sequence[pa.Field]) -> pa.Table:
    """Some of what may be null is, and nothing else."""
    rng = np.random.default_rng(len(fields))
    arrays = [of_field(item, ROWS, rng, shares=[0.3]) for item in fields]
    return pa.table(arrays, schema=pa.schema(fields))


SHALLOW = [*shapes(1), *shapes(2, ["struct", "list", "fixed_size_list", "map"])]
DEEP = list(shapes(3))


@pytest.mark.parametrize("format", ["parquet", "orc", "arrow", "json"])
@pytest.mark.parametrize(
    ("fields", "window"),
    [(SHALLOW, SLICED), (DEEP[::SAMPLE], WHOLE), (DEEP[::SAMPLE], SLICED)],
    ids=["shallow", "deep", "deep-sliced"],
)
def test_every_shape_is_written_as_it_was_read(
    tmp_path: Path, fields: list[pa.Field], format: str, window: tuple[int, int]
) -> None:
    assert_written_as_read(table_of(fields), tmp_path / f"out.{format}", window)


@pytest.mark.deep
@pytest.mark.parametrize("format", ["parquet", "orc", "arrow", "json"])
@pytest.mark.parametrize("start", range(0, len(DEEP), 250))
def test_every_deep_shape_is_written_as_it_was_read(
    tmp_path: Path, start: int, format: str
) -> None:
    table = table_of(DEEP[start : start + 250])
    assert_written_as_read(table, tmp_path / f"out.{format}", SLICED)


@pytest.mark.parametrize("rows", [[None, None], [{"xs": []}, None], [{"xs": [None, []]}]])
@pytest.mark.parametrize("format", ["parquet", "orc", "arrow", "json"])
def test_nothing_but_nulls_and_empty_lists_is_written(
    tmp_path: Path, format: str, rows: list[Any]
) -> None:
    inner = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    table = pa.table({"s": pa.array(rows, pa.struct([("xs", pa.list_(pa.list_(inner)))]))})
    assert_written_as_read(table, tmp_path / f"out.{format}", (0, len(rows)))


@pytest.mark.parametrize("format", ["parquet", "orc", "arrow"])
def test_a_result_without_rows_has_its_types(tmp_path: Path, format: str) -> None:
    source = io.BytesIO()
    pq.write_table(table_of(SHALLOW[::3]), source)
    scan = fs.scan(source.getvalue())
    scan.write(tmp_path / f"all.{format}")
    assert scan.head(0).write(tmp_path / f"none.{format}") == 0
    all_rows, none = (schema_of(tmp_path / f"{name}.{format}") for name in ("all", "none"))
    assert none.equals(all_rows)
    assert none.names == scan.schema.names
    if format != "orc":  # which has no large, fixed-size or required lists
        assert none.equals(scan.schema)


def schema_of(path: Path) -> pa.Schema:
    match path.suffix:
        case ".parquet":
            return pq.read_schema(path)
        case ".orc":
            return orc.ORCFile(path).schema
        case _:
            with pa.ipc.open_file(path) as file:
                return file.schema


def test_a_union_in_a_null_struct_is_refused_by_orc(tmp_path: Path) -> None:
    union = pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    )
    sound = pa.record_batch({"s": pa.StructArray.from_arrays([union], names=["u"])})
    write_file(iter([sound]), sound.schema, tmp_path / "sound.orc", "orc")
    assert orc.read_table(tmp_path / "sound.orc").to_pylist() == sound.to_pylist()
    mask = pa.array([False, True, False])
    array = pa.StructArray.from_arrays([union], names=["u"], mask=mask)
    with_null = pa.record_batch({"s": array})
    # Arrow itself would end the process.
    with pytest.raises(fs.NotWritableError, match="cannot be written as orc: a null struct"):
        write_file(iter([with_null]), with_null.schema, tmp_path / "null.orc", "orc")


def assert_written_as_read(table: pa.Table, path: Path, window: tuple[int, int]) -> None:
    """Write a window of a Parquet file of the table, and read it back by pyarrow and by us."""
    start, count = window
    source = io.BytesIO()
    pq.write_table(table, source, row_group_size=25)
    assert fs.scan(source.getvalue()).skip(start).head(count).write(path) == count
    expected = table.slice(start, count)
    for found in read_back(path):
        assert len(found) == expected.num_columns
        for name, column in zip(expected.column_names, expected.columns, strict=True):
            wanted = column.to_pylist()
            if path.suffix == ".json":
                wanted = [as_json(value, column.type) for value in wanted]
            assert found[name] == wanted, name


def read_back(path: Path) -> Iterator[dict[str, list[Any]]]:
    """The columns of the file as pyarrow reads it (Python, if it is JSON), and as we do."""
    match path.suffix:
        case ".parquet":
            yield pq.read_table(path).to_pydict()
        case ".orc":
            yield orc.read_table(path).to_pydict()
        case ".arrow":
            with pa.ipc.open_file(path) as file:
                yield file.read_all().to_pydict()
        case _:
            rows = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
            yield {name: [row[name] for row in rows] for name in rows[0]}
    if path.suffix in (".parquet", ".orc"):
        yield fs.scan(path).to_arrow().to_pydict()


def as_json(value: Any, kind: pa.DataType) -> Any:
    """The same value with an object for each map."""
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        return {field.name: as_json(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: as_json(item, kind.item_type) for key, item in value}
    return [as_json(element, kind.value_type) for element in value]
