"""The tree of columns that a file declares, against pyarrow and Parquet's own rules."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

import fretsaw as fs


def leaves(node: fs.SchemaNode) -> Iterator[fs.SchemaNode]:
    below = [*node.children] if node.is_struct else []
    below += [part for part in (node.list_element, node.map_key, node.map_value) if part]
    if node.is_leaf:
        yield node
    for part in below:
        yield from leaves(part)


def text(node: fs.SchemaNode | None) -> str:
    """A tree in a line; `?` is nullable."""
    if node is None:
        return "-"
    match node:
        case fs.SchemaNode(is_list=True):
            inner = f"list<{text(node.list_element)}>"
        case fs.SchemaNode(is_map=True):
            inner = f"map<{text(node.map_key)}, {text(node.map_value)}>"
        case fs.SchemaNode(is_struct=True):
            inner = f"{{{', '.join(f'{part.name}: {text(part)}' for part in node.children)}}}"
        case _:
            inner = str(node.physical_type)
    return inner + "?" * node.nullable


def check_against_arrow(node: fs.SchemaNode, field: pa.Field, path: tuple[str, ...]) -> None:
    """The node and all below it are the Arrow field's, and agree with themselves."""
    kinds = [node.is_leaf, node.is_struct, node.is_list, node.is_map]
    assert sum(kinds) == 1, path
    assert node.path == path
    assert node.nullable == field.nullable, path
    assert node.arrow_type.equals(field.type), path
    assert (node.physical_type is not None) == node.is_leaf
    assert (node.list_element is not None) == node.is_list
    assert (node.map_key is not None) == node.is_map
    storage = field.type.storage_type if isinstance(field.type, pa.ExtensionType) else field.type
    if node.is_struct:
        assert [part.name for part in node.children] == [part.name for part in storage]
        for part, part_field in zip(node.children, storage, strict=True):
            check_against_arrow(part, part_field, (*path, part.name))
    if node.list_element:
        check_against_arrow(node.list_element, storage.value_field, (*path, "element"))
    if node.map_key and node.map_value:
        check_against_arrow(node.map_key, storage.key_field, (*path, "key"))
        check_against_arrow(node.map_value, storage.item_field, (*path, "value"))
    if node.map_key and not node.map_value:  # Arrow holds a map of keys alone for a list
        check_against_arrow(node.map_key, storage.value_field, (*path, "key"))
    assert node.children or node.is_leaf or storage.num_fields == 0


def check_file(source: Path | bytes) -> None:
    oracle = pq.ParquetFile(source if isinstance(source, Path) else io.BytesIO(source))
    with fs.open(source) as file:
        root, rows, metadata = file.schema, file.num_rows, dict(file.metadata)
        assert file.format == "parquet"
    assert root.is_struct
    assert root.path == ()
    assert rows == sum(oracle.metadata.row_group(n).num_rows for n in range(oracle.num_row_groups))
    assert metadata == (oracle.metadata.metadata or {})
    assert [node.name for node in root.children] == oracle.schema_arrow.names
    for node, field in zip(root.children, oracle.schema_arrow, strict=True):
        check_against_arrow(node, field, (node.name,))
    columns = [oracle.schema.column(number) for number in range(len(oracle.schema))]
    found = list(leaves(root))
    assert [".".join(leaf.physical_path) for leaf in found] == [column.path for column in columns]
    assert [leaf.physical_type for leaf in found] == [column.physical_type for column in columns]
    for leaf, column in zip(found, columns, strict=True):
        unannotated = column.logical_type.type in ("NONE", "UNDEFINED")
        assert (leaf.logical_type is None) == unannotated, leaf.path


def test_trees_of_files_by_other_writers(corpus: Path) -> None:
    checked = 0
    for path in sorted((corpus / "parquet").rglob("*.parquet*")):
        try:
            pq.ParquetFile(path)
        except (pa.ArrowException, OSError):  # no oracle
            continue
        try:
            check_file(path)
            checked += 1
        except fs.FileFormatError:
            assert path.parent.name == "bad_data", path.name
        except AssertionError as error:
            error.add_note(path.name)
            raise
    assert checked > 60


LEGACY = {
    "nested_lists.snappy": "{a: list<list<list<BYTE_ARRAY?>?>?>?, b: INT32}",
    "nested_maps.snappy": "{a: map<BYTE_ARRAY, map<INT32, BOOLEAN>?>?, b: INT32, c: DOUBLE}",
    "old_list_structure": "{a: list<list<INT32>>}",
    "repeated_no_annotation": (
        "{id: INT32, phoneNumbers: {phone: list<{number: INT64, kind: BYTE_ARRAY?}>}?}"
    ),
    "map_no_value": (
        "{my_map: map<INT32, INT32?>, my_map_no_v: map<INT32, ->, my_list: list<INT32>}"
    ),
    "null_list": "{emptylist: list<INT32?>?}",
    "large_string_map.brotli": "{arr: map<BYTE_ARRAY, INT32?>?}",
    "nonnullable.impala": (
        "{ID: INT64, Int_Array: list<INT32>, int_array_array: list<list<INT32>>, "
        "Int_Map: map<BYTE_ARRAY, INT32>, int_map_array: list<map<BYTE_ARRAY, INT32>>, "
        "nested_Struct: {a: INT32, B: list<INT32>, c: {D: list<list<{e: INT32, f: BYTE_ARRAY}>>}, "
        "G: map<BYTE_ARRAY, {h: {i: list<DOUBLE>}}>}}"
    ),
}


@pytest.mark.parametrize("name", sorted(LEGACY))
def test_lists_and_maps_of_legacy_writers(corpus: Path, name: str) -> None:
    with fs.open(corpus / "parquet" / "data" / f"{name}.parquet") as file:
        assert text(file.schema) == LEGACY[name]


# Own schemas, in the words of the format: (repetition, name, type or children, annotation)

REPETITIONS = {"required": 0, "optional": 1, "repeated": 2}
ANNOTATIONS = {"UTF8": 0, "MAP": 1, "MAP_KEY_VALUE": 2, "LIST": 3}
Element = tuple[str, Any]


def element(line: str, *children: Element) -> Element:
    """`optional group tags LIST` or `required int32 x`, and what is below."""
    return line, children


def flattened(node: Element) -> Iterator[dict[int, tuple[int, Any]]]:
    line, children = node
    repetition, kind, name, *annotation = line.split()
    fields = {3: (TType.I32, REPETITIONS[repetition]), 4: (TType.STRING, name)}
    if kind == "group":
        fields[5] = (TType.I32, len(children))
    else:
        fields[1] = (TType.I32, {"int32": 1, "int64": 2, "binary": 6}[kind])
    if annotation:
        fields[6] = (TType.I32, ANNOTATIONS[annotation[0]])
    yield dict(sorted(fields.items()))
    for child in children:
        yield from flattened(child)


def write(out: TCompactProtocol, kind: int, value: Any) -> None:
    match kind:
        case TType.I32:
            out.writeI32(value)
        case TType.I64:
            out.writeI64(value)
        case TType.STRING:
            out.writeString(value)
        case TType.LIST:
            out.writeListBegin(TType.STRUCT, len(value))
            for item in value:
                write(out, TType.STRUCT, item)
            out.writeListEnd()
        case TType.STRUCT:
            out.writeStructBegin("")
            for number, (field_kind, field) in value.items():
                out.writeFieldBegin("", field_kind, number)
                write(out, field_kind, field)
                out.writeFieldEnd()
            out.writeFieldStop()
            out.writeStructEnd()


def file_of(*columns: Element) -> bytes:
    """A file without rows and with this schema."""
    buffer = TMemoryBuffer()
    schema = list(flattened(element("required group schema", *columns)))
    footer = {
        1: (TType.I32, 1),
        2: (TType.LIST, schema),
        3: (TType.I64, 0),
        4: (TType.LIST, []),
        6: (TType.STRING, "by hand"),
    }
    write(TCompactProtocol(buffer), TType.STRUCT, footer)
    footer_bytes: bytes = buffer.getvalue()
    return b"PAR1" + footer_bytes + len(footer_bytes).to_bytes(4, "little") + b"PAR1"


X, Y = element("required int32 x"), element("optional binary y UTF8")
BY_HAND = {
    "a repeated leaf is its own element": (
        element("optional group l LIST", element("repeated int32 element")),
        "list<INT32>?",
    ),
    "a repeated group of several fields is the element": (
        element("optional group l LIST", element("repeated group element", X, Y)),
        "list<{x: INT32, y: BYTE_ARRAY?}>?",
    ),
    "a repeated group named array is the element": (
        element("required group l LIST", element("repeated group array", X)),
        "list<{x: INT32}>",
    ),
    "a repeated group named after the list is the element": (
        element("required group l LIST", element("repeated group l_tuple", X)),
        "list<{x: INT32}>",
    ),
    "a repeated group of one field is a wrapper": (
        element("required group l LIST", element("repeated group bag", Y)),
        "list<BYTE_ARRAY?>",
    ),
    "a wrapper may be named like the field in it": (
        element(
            "optional group l LIST",
            element("repeated group element", element("optional int64 element")),
        ),
        "list<INT64?>?",
    ),
    "a repeated leaf without annotation is a required list": (
        element("repeated int64 l"),
        "list<INT64>",
    ),
    "a repeated group without annotation is a required list of structs": (
        element("repeated group l", X, Y),
        "list<{x: INT32, y: BYTE_ARRAY?}>",
    ),
    "a map by an old annotation": (
        element("optional group l MAP_KEY_VALUE", element("repeated group map", X, Y)),
        "map<INT32, BYTE_ARRAY?>?",
    ),
    "the entries of a map may have any names": (
        element("required group l MAP", element("repeated group entries MAP_KEY_VALUE", X, Y)),
        "map<INT32, BYTE_ARRAY?>",
    ),
    "structs in structs": (
        element("optional group l", element("required group inner", X), Y),
        "{inner: {x: INT32}, y: BYTE_ARRAY?}?",
    ),
    "a list of maps of lists": (
        element(
            "optional group l LIST",
            element(
                "repeated group list",
                element(
                    "required group element MAP",
                    element(
                        "repeated group key_value",
                        element("required binary key UTF8"),
                        element("optional group value LIST", element("repeated int32 array")),
                    ),
                ),
            ),
        ),
        "list<map<BYTE_ARRAY, list<INT32>?>>?",
    ),
}


@pytest.mark.parametrize("rule", sorted(BY_HAND))
def test_backward_compatibility_rules(rule: str) -> None:
    column, wanted = BY_HAND[rule]
    data = file_of(column, element("required int64 after"))
    with fs.open(data) as file:
        assert text(file.schema) == f"{{l: {wanted}, after: INT64}}"
    check_file(data)


MALFORMED = {
    "a list of two": element("optional group l LIST", element("repeated int32 a"), X),
    "a list that repeats nothing": element("optional group l LIST", X),
    "a map that repeats nothing": element(
        "optional group l MAP", element("required group m", X, Y)
    ),
    "a map of three": element("optional group l MAP", element("repeated group m", X, Y, Y)),
    "a map of leaves": element("optional group l MAP", element("repeated int32 m")),
}


@pytest.mark.parametrize("flaw", sorted(MALFORMED))
def test_a_malformed_list_or_map_is_an_error_or_has_no_parts(flaw: str) -> None:
    data = file_of(MALFORMED[flaw], element("required int64 after"))
    try:
        with fs.open(data) as file:
            column, after = file.schema.children
            rows = file.num_rows
    except fs.FileFormatError:
        return
    assert rows == 0
    assert (after.name, after.path, after.is_leaf) == ("after", ("after",), True)
    assert column.name == "l"
    assert column.is_leaf + column.is_struct + column.is_list + column.is_map == 1
    assert column.list_element is column.map_value is None


def test_arrow_types_are_those_that_were_written() -> None:
    utc = pa.timestamp("us", "UTC")
    types = [pa.null(), pa.bool_(), pa.int8(), pa.uint16(), pa.uint64(), pa.float16(), pa.float64()]
    types += [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(5), utc]
    types += [pa.decimal128(20, 3), pa.decimal256(60, 2), pa.time32("ms"), pa.time64("ns")]
    types += [pa.timestamp("ns"), pa.timestamp("ms", "Europe/Zurich"), pa.duration("s"), pa.uuid()]
    types += [pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.large_string()), pa.list_(utc, 3)]
    types += [pa.large_list(pa.int8()), pa.map_(pa.string(), utc), pa.date32(), pa.date64()]
    types += [pa.struct([("a", pa.duration("us")), ("b", pa.list_(pa.struct([("c", utc)])))])]
    fields = [pa.field(f"c{n}", kind, nullable=n % 3 == 0) for n, kind in enumerate(types)]
    for options in ({}, {"store_schema": False}, {"use_compliant_nested_type": False}):
        sink = io.BytesIO()
        pq.write_table(pa.schema(fields).empty_table(), sink, **options)
        check_file(sink.getvalue())
