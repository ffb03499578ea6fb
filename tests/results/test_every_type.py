"""Rows by number, by window and by predicate, of every type and inside every branch.

What pyarrow reads is the oracle, cut into rows by slices: its own kernels do not take every type.
"""

import datetime
import io
import multiprocessing
import pickle
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from tests.support.kernels import each_decoder
from tests.support.nested_data import LEAVES, assert_same_nested, of_field, pyarrow_read, rows_of

pytestmark = each_decoder("slow")

ROWS = 60
VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
BRANCHES: dict[str, Callable[[pa.Field], pa.DataType]] = {
    "flat": lambda leaf: leaf.type,
    "struct": lambda leaf: pa.struct([leaf, pa.field("beside", pa.int8())]),
    "list": lambda leaf: pa.list_(leaf.with_name("element")),
    "large_list": lambda leaf: pa.large_list(leaf.with_name("element")),
    "fixed_size_list": lambda leaf: pa.list_(leaf.with_name("element"), 2),
    "map": lambda leaf: pa.map_(pa.string(), leaf.with_name("value")),
    "lists": lambda leaf: pa.list_(pa.struct([pa.field("xs", pa.list_(leaf))])),
}
NOT_IN_ORC = {pa.time32("ms"), pa.time64("ns"), pa.binary(5), pa.decimal256(50, 9), pa.float16()}


@cache
def tables_of(branch: str) -> tuple[pa.Table, pa.Schema]:
    """A column of each leaf type in the branch, and the number of the row; views as a schema."""
    rng = np.random.default_rng(7)
    number = pa.field("row", pa.int64(), nullable=False)
    arrays, hinted = [pa.array(range(ROWS))], [number]
    for place, kind in enumerate((*LEAVES, *VIEWS)):
        leaf = pa.field("leaf", VIEWS.get(kind, kind), nullable=place % 3 > 0)
        field = pa.field(f"{place}: {kind}", BRANCHES[branch](leaf))
        arrays.append(of_field(field, ROWS, rng, [0.3]))
        hinted.append(field.with_type(BRANCHES[branch](leaf.with_type(kind))))
    plain = [number, *(f.with_type(a.type) for f, a in zip(hinted[1:], arrays[1:], strict=True))]
    return pa.table(arrays, schema=pa.schema(plain)), pa.schema(hinted)


@cache
def file_of(branch: str, format: str) -> bytes:
    sink = io.BytesIO()
    table, hinted = tables_of(branch)
    if format == "parquet":
        # pyarrow writes no slices of structs of views.
        pages = {} if branch == "struct" else {"max_rows_per_page": 7, "write_batch_size": 7}
        with pq.ParquetWriter(sink, hinted, **pages) as writer:
            for start in range(0, ROWS, 25):
                group = table.slice(start, 25)
                whole = [pa.concat_arrays(column.chunks) for column in group.columns]
                viewed = [array.cast(kind) for array, kind in zip(whole, hinted.types, strict=True)]
                writer.write_table(pa.table(viewed, schema=hinted))
        return sink.getvalue()
    names = [
        f"{place}: {kind}"
        for place, kind in enumerate(LEAVES)
        if kind not in NOT_IN_ORC and not pa.types.is_unsigned_integer(kind)
    ]
    orc.write_table(table.select(["row", *names]), sink, stripe_size=1, row_index_stride=10)
    return sink.getvalue()


def read_by_pyarrow(data: bytes, format: str) -> pa.Table:
    return pyarrow_read(data) if format == "parquet" else orc.read_table(io.BytesIO(data))


both = pytest.mark.parametrize("format", ["parquet", "orc"])
everywhere = pytest.mark.parametrize("branch", BRANCHES)


@everywhere
@both
def test_rows_of_every_type(branch: str, format: str) -> None:
    data = file_of(branch, format)
    whole = read_by_pyarrow(data, format)
    scan = fs.scan(data)
    assert_same_nested(scan.to_arrow(), whole)
    assert format == "orc" or whole.schema.types[-2:] == tables_of(branch)[1].types[-2:]
    sparse = [3, 31, 32, 59]
    dense = [row for row in range(ROWS) if row % 3]
    order = [40, 2, 2, 59, 0]
    assert_same_nested(scan.take(order), rows_of(whole, order))
    for rows in (sparse, dense):
        expected = rows_of(whole, rows)
        assert_same_nested(scan.select_rows(rows).to_arrow(), expected)
        assert_same_nested(scan.filter(fs.col("row").is_in(rows)).to_arrow(), expected)
    assert_same_nested(scan.skip(13).head(21).to_arrow(), whole.slice(13, 21))
    assert_same_nested(scan.filter("row > 30").tail(9).to_arrow(), whole.slice(51))
    assert len(list(scan.select_rows(sparse).rows())) == len(sparse)


@everywhere
@both
def test_splits_of_every_type_are_pickled_as_they_are(branch: str, format: str) -> None:
    data = file_of(branch, format)
    whole = fs.scan(data).to_arrow()
    parts = [pickle.loads(pickle.dumps(part)) for part in fs.scan(data).splits(target_bytes=1)]
    assert parts
    assert_same_nested(pa.concat_tables(part.to_arrow() for part in parts), whole)


def test_splits_go_to_other_processes() -> None:
    data = file_of("fixed_size_list", "parquet")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        tables = pool.map(fs.Scan.to_arrow, fs.scan(data).splits(target_bytes=1))
    assert_same_nested(pa.concat_tables(tables), pyarrow_read(data))


@pytest.mark.parametrize("make", [pa.list_view, pa.large_list_view])
def test_list_views_are_read_as_pyarrow_reads_them(make: Callable[..., pa.DataType]) -> None:
    day, other = datetime.date(2024, 2, 29), datetime.date(1969, 7, 20)
    lists = [[day], None, [other, None], [], [day, other, day]] * 12
    kinds = {
        "flat": (make(pa.date32()), lists),
        "inside": (pa.list_(make(pa.date32())), [[xs, None] for xs in lists]),
        "struct": (pa.struct([("xs", make(pa.date32()))]), [{"xs": xs} for xs in lists]),
        "views": (make(pa.string_view()), [xs and [str(x) for x in xs] for xs in lists]),
    }
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in kinds.items()})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    scan, whole = fs.scan(sink.getvalue()), pyarrow_read(sink.getvalue())
    assert make(pa.field("element", pa.date32())) == whole.schema.field("flat").type
    rows = [59, 3, 2, 2, 0]
    dense = [row for row in range(ROWS) if row % 3]
    for found, expected in (
        (scan.to_arrow(), whole.to_pylist()),
        (scan.take(rows), [whole.to_pylist()[row] for row in rows]),
        (scan.select_rows(dense).to_arrow(), [whole.to_pylist()[row] for row in dense]),
        (scan.skip(7).head(20).to_arrow(), whole.slice(7, 20).to_pylist()),
    ):
        found.validate(full=True)
        assert found.schema.equals(whole.schema)
        assert found.to_pylist() == expected
    assert [row.as_dict() for row in scan.skip(7).head(20)] == whole.slice(7, 20).to_pylist()
    assert [row.as_dict() for row in scan.select_rows(dense)] == [
        whole.to_pylist()[row] for row in dense
    ]


NOT_UTF8 = [b"a", b"\xff\xfe", b"c"]


def not_utf8(format: str) -> bytes:
    """A file by a writer that does not check its strings."""
    buffers = pa.array(NOT_UTF8).buffers()
    strings = pa.Array.from_buffers(pa.string(), 3, buffers)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), strings)
    sink = io.BytesIO()
    write = pq.write_table if format == "parquet" else orc.write_table
    write(pa.table({"s": strings, "xs": lists, "n": [1, 2, 3]}), sink)
    return sink.getvalue()


@both
def test_strings_that_are_not_utf8_are_bytes_or_an_error(format: str) -> None:
    scan = fs.scan(not_utf8(format))
    assert scan.to_arrow()["s"].cast(pa.binary()).to_pylist() == NOT_UTF8
    assert scan.select_rows([1]).to_arrow()["s"].cast(pa.binary()).to_pylist() == [NOT_UTF8[1]]
    assert [value for batch in scan.column("s") for value in batch.binaries()] == NOT_UTF8
    for name in ("s", "xs"):
        with pytest.raises(fs.FileFormatError, match=f"<bytes>: column '{name}' .* not UTF-8"):
            list(scan.select(name).rows())
        with pytest.raises(fs.FileFormatError, match=rf"column '{name}.*' .* binaries\(\)"):
            [batch.strings() for batch in scan.column(name)]
    with pytest.raises(fs.FileFormatError, match=r"<bytes>: column 's' .* not UTF-8"):
        scan.to_pandas()
    assert [row["n"] for row in scan.select("n")] == [1, 2, 3]
    assert [row["s"] for row in scan.filter("s < 'z'")] == ["a", "c"]
    assert scan.filter("s >= 'c'").to_arrow()["n"].to_pylist() == [2, 3]
    assert scan.filter(fs.col("s").is_in(["c", "x"])).to_arrow()["n"].to_pylist() == [3]
