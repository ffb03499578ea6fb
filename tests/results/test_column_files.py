"""Column readers across files that differ, and where there are no rows or no columns."""

import datetime as dt
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.column_tables import (
    CONTROLS,
    NO_NULLS,
    ORDERS,
    ROWS,
    SIZES,
    assert_column,
    heavy_scan,
    lookup_error,
    optional,
    orders,
    random_file,
    required,
    rows_at,
    source,
    values,
)
from tests.support.formats import pyarrow_read
from tests.support.layers import (
    STRUCT,
    assert_rebuilt,
    leaves_of,
)
from tests.support.nested_data import nested_array, parquet_bytes

# Columns that no file holds, and files that differ


def put(path: Path, table: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(parquet_bytes(table))
    return path


def texts(batches: Iterable[fs.ColumnBatch]) -> list[str | None]:
    return [text for batch in batches for text in batch.strings()]


def test_row_index_and_file_path_are_leaves(tmp_path: Path) -> None:
    tables = [pa.table({"n": [5, 6, 7]}), pa.table({"n": [8, 9]})]
    paths: list[Any] = [put(tmp_path / str(at), table) for at, table in enumerate(tables)]
    scan = fs.scan(paths).with_row_index("row").with_file_path("file").filter(col("n") != 6)
    assert [list(batch) for batch in scan.columns()] == [["row", "n", "file"]] * 2
    for lookup in ("row", 0):
        assert values(scan.column(lookup)) == [0, 2, 3, 4]
    for lookup in ("file", 2):
        assert texts(scan.column(lookup, 1)) == [str(paths[0])] * 2 + [str(paths[1])] * 2
    assert values(scan.column(1)) == [5, 7, 8, 9]
    batch = next(scan.columns())
    assert batch["row"].values.dtype == np.int64
    assert batch["row"].leaf_validity is batch["file"].leaf_validity is NO_NULLS
    assert batch["row"].layers == batch["file"].layers == ()
    assert batch["file"].schema.name == "file"
    assert batch["row"].arrow.to_pylist() == [0, 2]


def test_row_index_alone_reads_no_data() -> None:
    with fs.trace() as trace:
        found = values(heavy_scan().select().with_row_index().skip(390).column(0))
        assert found == [*range(390, 400)]
        assert values(heavy_scan().with_row_index().tail(2).column("index")) == [398, 399]
    assert trace.data_bytes == 0


def test_hive_folders_are_leaves(tmp_path: Path) -> None:
    for year, day, rows in ((2023, "2024-02-29", 2), (2024, "2024-03-01", 3)):
        put(
            tmp_path / f"year={year}" / f"day={day}" / "city=São" / "x",
            pa.table({"n": range(rows)}),
        )
    put(
        tmp_path / "year=2025" / "day=__HIVE_DEFAULT_PARTITION__" / "city=b" / "x",
        pa.table({"n": [7]}),
    )
    scan = fs.scan(tmp_path).with_file_path().with_row_index()
    batches = list(scan.columns())
    assert [list(batch) for batch in batches] == [["index", "n", "year", "day", "city", "path"]] * 3
    assert [batch.record_count for batch in batches] == [2, 3, 1]
    assert values(batch["year"] for batch in batches) == [2023] * 2 + [2024] * 3 + [2025]
    assert batches[0][2].values.dtype == np.int64
    assert [batch["day"].leaf_validity is NO_NULLS for batch in batches] == [True, True, False]
    assert batches[1]["day"].values.tolist() == [dt.date(2024, 3, 1)] * 3
    assert batches[1]["day"].values.dtype == np.dtype("datetime64[D]")
    assert batches[2]["day"].leaf_validity.mask().tolist() == [False]
    assert texts(scan.filter("year < 2025").column("city", 2)) == ["São"] * 5
    assert values(scan.filter(col("year") == 2024).column("n")) == [0, 1, 2]


def test_batches_never_span_files() -> None:
    sizes = (3, 0, 5, 1, 40)
    tables = [pa.table({"n": pa.array([at] * size, pa.int64())}) for at, size in enumerate(sizes)]
    files: list[Any] = [parquet_bytes(table) for table in tables]
    for size in (None, 4, 1_000):
        batches = list(fs.scan(files).column("n", size))
        assert all(len(set(batch.values.tolist())) == 1 for batch in batches)
        assert values(batches) == [at for at, count in enumerate(sizes) for _ in range(count)]


MISSING = pa.schema(
    [
        required("id", pa.int64()),
        optional("flat", pa.string()),
        optional("tags", pa.list_(pa.int64())),
        optional("s", pa.struct([required("x", pa.int64()), optional("y", pa.list_(pa.int8()))])),
        optional("m", pa.map_(pa.string(), pa.float64())),
        optional("fixed", pa.list_(pa.int16(), 2)),
    ]
)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("size", [4, None])
def test_missing_columns_are_null(first: bool, size: int | None) -> None:
    rng = np.random.default_rng(2)
    arrays = [nested_array(item.type, 20, rng, nullable=item.nullable) for item in MISSING]
    full = pyarrow_read(parquet_bytes(pa.table(arrays, schema=MISSING)))
    bare = full.select(["id"]).slice(0, 9)
    files: list[Any] = [parquet_bytes(bare), parquet_bytes(full)]
    scan = fs.scan(files if first else files[::-1], missing="null")
    for leaf in leaves_of(scan.schema):
        there = rows_at(full, leaf, range(20))
        gone = there[:9] if leaf.name == "id" else [None] * 9
        expected = gone + there if first else there + gone
        assert_column(scan, leaf.path, leaf, expected, size)
        parts = [batch[leaf.path] for batch in scan.columns(size)]
        assert_rebuilt(parts, leaf, expected)
        if leaf.name != "id":
            empty = parts[0] if first else parts[-1]
            outer = empty.layers[0].validity if empty.layers else empty.leaf_validity
            assert outer.mask().tolist() == [False] * empty.record_count


def test_missing_columns_in_the_order_of_the_result(tmp_path: Path) -> None:
    one = put(tmp_path / "1", pa.table({"id": [1, 2], "old": ["x", "y"]}))
    two = put(tmp_path / "2", pa.table({"new": [0.5], "id": [3]}))
    scan = fs.scan(tmp_path, missing="null").with_file_path()
    first, second = scan.columns()
    assert list(first) == list(second) == ["id", "old", "new", "path"]
    assert first["old"].strings() == ["x", "y"]
    assert second["old"].strings() == [None]
    assert first["new"].leaf_validity.mask().tolist() == [False, False]
    assert first["new"].values.dtype == second["new"].values.dtype == np.float64
    assert second["new"].values.tolist() == [0.5]
    assert first["path"].strings() + second["path"].strings() == [str(one)] * 2 + [str(two)]


def test_required_column_that_a_file_lacks_is_null_there() -> None:
    table = pa.table(
        [pa.array([1]), pa.array([2])],
        schema=pa.schema([required("a", pa.int64()), required("b", pa.int64())]),
    )
    files: list[Any] = [parquet_bytes(table), parquet_bytes(table.select(["a"]))]
    there, gone = fs.scan(files, missing="null").column("b")
    assert (there.leaf_validity, there.values.tolist()) == (NO_NULLS, [2])
    assert gone.leaf_validity.mask().tolist() == [False]


def test_required_struct_that_a_file_lacks_is_null_there() -> None:
    item = required("s", pa.struct([required("x", pa.int64())]))
    table = pa.table(
        [pa.array([1]), pa.array([{"x": 2}], item.type)],
        schema=pa.schema([optional("id", pa.int64()), item]),
    )
    files: list[Any] = [parquet_bytes(table), parquet_bytes(table.select(["id"]))]
    scan = fs.scan(files, missing="null")
    assert scan.to_arrow()["s"].to_pylist() == [{"x": 2}, None]
    there, gone = scan.column("s.x")
    assert there.values.tolist() == [2]
    assert gone.leaf_validity.mask().tolist() == [False]
    # Null is the struct, and not only the field in it.
    assert [layer.kind for layer in gone.layers] == [STRUCT]
    assert gone.layers[0].validity.mask().tolist() == [False]


def test_arrow_arrays_of_several_files_have_the_type_of_the_result() -> None:
    strict, loose = (
        pa.schema(
            [
                pa.field("s", pa.struct([pa.field("x", pa.int64(), nullable)])),
                pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable))),
            ]
        )
        for nullable in (False, True)
    )
    rows: list[dict[str, Any]] = [{"s": {"x": 1}, "l": [1, 2]}, {"s": None, "l": None}]
    files: list[Any] = [
        parquet_bytes(pa.Table.from_pylist(rows, schema)) for schema in (strict, loose)
    ]
    scan = fs.scan(files)
    for name in ("s", "l"):
        column = pa.chunked_array([batch.arrow for batch in scan.column(name)])
        assert column.type == scan.schema.field(name).type
        assert column.to_pylist() == [row[name] for row in rows] * 2


def test_values_that_may_be_null_in_one_file_only() -> None:
    one = pa.table([pa.array([1, 2])], schema=pa.schema([required("x", pa.int64())]))
    two = pa.table({"x": pa.array([None, 4], pa.int64())})
    for files in ([one, two], [two, one]):
        sources: list[Any] = [parquet_bytes(table) for table in files]
        found = [x.arrow.to_pylist() for x in fs.scan(sources).column("x")]
        assert found == [table["x"].to_pylist() for table in files]


# No rows, no columns


def test_scans_of_no_rows_have_no_batch() -> None:
    data, _ = orders()
    empties = [
        fs.scan(data).head(0),
        fs.scan(data).tail(0),
        fs.scan(data).skip(ROWS),
        fs.scan(data).select_rows([]),
        fs.scan(data).filter(col("id").is_null()),
        fs.scan(data).filter(fs.blocks(7, 9)),
        fs.scan(data).filter(fs.byte_range(5, 4)),
        fs.scan(parquet_bytes(ORDERS.empty_table())),
    ]
    for scan in empties:
        for lookup in ("age", "items.price", 0):
            assert list(scan.column(lookup)) == []
        assert list(scan.columns()) == []
        assert list(scan.select().columns()) == []


def test_lookups_in_scans_of_no_rows_raise_all_the_same() -> None:
    for scan in (fs.scan(orders()[0]).head(0), fs.scan(parquet_bytes(ORDERS.empty_table()))):
        lookup_error(lambda scan=scan: next(scan.column("zip")))  # type: ignore[misc]
        with pytest.raises(IndexError):
            next(scan.column(22))
        message = str(lookup_error(lambda scan=scan: next(scan.select("id").column("age"))))  # type: ignore[misc]
        assert message == "Column not in projection: age"


def test_filter_that_matches_late_gives_no_empty_batches() -> None:
    table = pa.table({"n": range(1_000), "l": [[at] for at in range(1_000)]})
    scan = source(table, row_group_size=100).filter(col("n").is_in([5, 905, 906]))
    assert [batch.record_count for batch in scan.column("l", 2) if not batch.record_count] == []
    assert values(scan.column("l", 2)) == [5, 905, 906]
    assert values(batch["n"] for batch in scan.columns()) == [5, 905, 906]


@pytest.mark.parametrize("size", SIZES)
def test_rows_without_columns(size: int | None) -> None:
    scan = fs.scan(random_file(0)[0]).select()
    for apply, rows in CONTROLS.values():
        batches = list(apply(scan).columns(size))
        assert sum(batch.record_count for batch in batches) == len(rows)
        assert all(0 < batch.record_count <= (size or ROWS) for batch in batches)
        assert all((len(batch), list(batch)) == (0, []) for batch in batches)


def test_nothing_is_found_where_no_column_is_selected() -> None:
    scan = fs.scan(orders()[0]).select()
    batch = next(scan.columns())
    for lookup in (lambda: batch["age"], lambda: next(scan.column("age"))):
        assert str(lookup_error(lookup)) == "Column not in projection: age"
    with pytest.raises(IndexError):
        next(scan.column(0))


def test_names_that_read_the_same_stay_apart() -> None:
    table = pa.table({"p.q": [1], "p": pa.array([{"q": 2}]), "r": [3]}).append_column("r", [[4]])
    [batch] = source(table).columns()
    assert list(batch) == ["p.q", ("p", "q"), "r", 3]
    assert [part.values.tolist() for part in batch.values()] == [[1], [2], [3], [4]]


def test_names_that_hide_a_leaf_do_not_hide_it_from_iteration() -> None:
    table = pa.table({"a.b": pa.array([{"x": 1, "y": 2}]), "a": pa.array([{"b": 3}])})
    [batch] = source(table).columns()
    assert list(batch) == ["a.b.x", "a.b.y", ("a", "b")]
    assert [part.values.tolist() for part in batch.values()] == [[1], [2], [3]]


def test_added_columns_are_found_by_exact_path() -> None:
    scan = source(pa.table({"a": [5, 6]})).with_row_index().with_file_path()
    assert [batch.values.tolist() for batch in scan.column(("index",))] == [[0, 1]]
    assert [batch.strings() for batch in scan.column(("path",))] == [["<bytes>"] * 2]


def test_missing_columns_of_extension_types_are_null() -> None:
    ids = pa.array([b"0" * 16], pa.uuid())
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), ids)
    files: list[Any] = [
        parquet_bytes(pa.table({"id": [1], "ids": nested})),
        parquet_bytes(pa.table({"id": [2]})),
    ]
    scan = fs.scan(files, missing="null")
    assert [batch.arrow.is_null().to_pylist() for batch in scan.column("ids")] == [[False], [True]]
    assert scan.to_arrow().column("ids").null_count == 1


def test_keys_and_values_of_different_maps_are_an_error() -> None:
    def stored(rows: list[list[tuple[str, int]]]) -> tuple[bytearray, slice]:
        table = pa.table({"m": pa.array(rows, pa.map_(pa.string(), pa.int64()))})
        data = parquet_bytes(table, compression="none", use_dictionary=False)
        values = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1)
        begin = values.data_page_offset
        return bytearray(data), slice(begin, begin + values.total_compressed_size)

    data, values = stored([[("a", 1), ("b", 2)], [("c", 3)]])
    other, others = stored([[("a", 1)], [("b", 2), ("c", 3)]])
    data[values] = other[others]
    assert [batch.values.tolist() for batch in fs.scan(bytes(data)).column("m.value")] == [
        [1, 2, 3]
    ]
    with pytest.raises(fs.FileFormatError, match="different lists"):
        list(fs.scan(bytes(data)).columns())


def test_arrays_of_a_batch_cannot_be_changed() -> None:
    table = pa.table({"b": [True, None, False], "l": [[1], None, [2, 3]], "s": ["x", "y", None]})
    for batch in source(table).columns(2):
        arrays = [
            batch["b"].values,
            batch["l"].values,
            batch["l"].layers[0].offsets,
            batch["s"].binary_values,
            batch["s"].binary_offsets,
        ]
        validities = [batch["b"].leaf_validity, batch["l"].layers[0].validity]
        arrays += [validity.words for validity in validities if validity.words is not None]
        assert not any(array.flags.writeable for array in arrays)
