"""Which rows and columns a scan returns: each rule by itself, then all against lists of rows."""

import dataclasses
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fretsaw as fs
from tests.support.formats import in_blocks, written

BLOCKS = (30, 1, 64, 0, 25)
TOTAL = sum(BLOCKS)
COLUMNS = {
    "id": pa.array(range(TOTAL), pa.int64()),
    "text": pa.array([None if i % 11 == 5 else f"row {i}" * (i % 4) for i in range(TOTAL)]),
    "a.b": pa.array([i / 4 for i in range(TOTAL)], pa.float32()),
    "few": pa.array([i // 20 % 2 == 0 for i in range(TOTAL)]),
}
TABLE = pa.table(COLUMNS)


PAGES = {"data_page_size": 64, "write_batch_size": 4, "use_dictionary": ["few"]}
STRIDES = {"row_index_stride": 7, "blooms": True}
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "page index": ("parquet", {**PAGES, "write_page_index": True}),
    "no page index": ("parquet", {**PAGES, "write_page_index": False}),
    "v2 pages": ("parquet", {**PAGES, "write_page_index": True, "data_page_version": "2.0"}),
    "strides": ("orc", {**STRIDES, "dictionary_key_size_threshold": 1.0}),
    "strides, old runs": ("orc", {**STRIDES, "file_version": "0.11", "compression": "zlib"}),
    "strides by pyorc": ("pyorc", {**STRIDES, "compression": "zstd"}),
    "no row index": ("orc", {"row_index_stride": 0, "compression": "snappy"}),
}
# The table in blocks with several pages in each column.
FILES = {
    name: written(TABLE, writer, BLOCKS, **options) for name, (writer, options) in LAYOUTS.items()
}
BLOCKS_OF = {name: [block.rows for block in in_blocks(data)] for name, data in FILES.items()}
DATA = FILES["page index"]
SCAN = fs.scan(DATA)


def ids(scan: fs.Scan) -> list[int]:
    found: list[int] = scan.to_arrow()["id"].to_pylist()
    return found


# Windows


@pytest.mark.parametrize(
    ("name", "argument"),
    [("skip", 3), ("head", 3), ("tail", 3), ("select_rows", [1]), ("select", "id")],
)
def test_is_set_at_most_once(name: str, argument: Any) -> None:
    scan = getattr(SCAN, name)(argument)
    with pytest.raises(ValueError, match=name):
        getattr(scan, name)(argument)


@pytest.mark.parametrize("other", ["skip", "head"])
def test_tail_excludes_the_other_windows(other: str) -> None:
    with pytest.raises(ValueError, match="tail"):
        getattr(SCAN.tail(3), other)(1)
    with pytest.raises(ValueError, match="tail"):
        getattr(SCAN, other)(1).tail(3)


@pytest.mark.parametrize("name", ["skip", "head", "tail"])
def test_counts_are_whole_and_not_negative(name: str) -> None:
    with pytest.raises(ValueError, match="negative"):
        getattr(SCAN, name)(-1)
    with pytest.raises(TypeError):
        getattr(SCAN, name)(1.5)
    with pytest.raises(TypeError):
        getattr(SCAN, name)("3")


@pytest.mark.parametrize("name", ["skip", "head", "tail"])
@pytest.mark.parametrize("row_axis", ["filter", "select_rows"])
def test_rows_are_chosen_before_a_window(name: str, row_axis: str) -> None:
    argument: Any = fs.blocks(0, 1) if row_axis == "filter" else [1]
    with pytest.raises(ValueError, match="before skip/head/tail"):
        getattr(getattr(SCAN, name)(0), row_axis)(argument)


def test_windows_of_nothing_are_valid_and_empty() -> None:
    for scan in (SCAN.head(0), SCAN.tail(0), SCAN.skip(TOTAL), SCAN.skip(3).head(0)):
        assert scan.to_arrow().equals(TABLE.slice(0, 0))
        assert scan.count() == 0
        assert sum(batch.num_rows for batch in scan.batches()) == 0


@pytest.mark.parametrize("far", [TOTAL, TOTAL + 1, 2**31, 2**63 - 1, 2**63, 2**70])
def test_windows_past_the_end_are_no_errors(far: int) -> None:
    assert ids(SCAN.skip(far)) == ids(SCAN.skip(far).head(far)) == []
    assert ids(SCAN.head(far)) == ids(SCAN.tail(far)) == list(range(TOTAL))
    assert ids(SCAN.skip(TOTAL - 2).head(far)) == [TOTAL - 2, TOTAL - 1]
    assert SCAN.skip(far).count() == 0
    assert SCAN.skip(1).head(far).count() == TOTAL - 1


# Selected rows


@pytest.mark.parametrize("kind", [list, np.array, np.uint16, np.uint64, pa.array, pa.chunked_array])
def test_row_numbers_are_a_set_in_file_order(kind: Callable[[Any], Any]) -> None:
    numbers = [30, 3, 3, 119, 31]
    rows = kind([numbers] if kind is pa.chunked_array else numbers)
    assert ids(SCAN.select_rows(rows)) == [3, 30, 31, 119]
    assert SCAN.select_rows(rows).count() == 4
    assert SCAN.take(rows)["id"].to_pylist() == [30, 3, 3, 119, 31]


def test_no_rows_may_be_selected() -> None:
    nothing: list[Any] = [[], (), range(0), fs.RowSelection(), fs.RowSelection.none(TOTAL)]
    for rows in nothing:
        assert SCAN.select_rows(rows).to_arrow().equals(TABLE.slice(0, 0))
    assert SCAN.take([]).equals(TABLE.slice(0, 0))


@pytest.mark.parametrize("number", [-1, -TOTAL, TOTAL, 2**31, 2**63 - 1])
def test_a_row_number_outside_is_an_error_before_data_is_read(number: int) -> None:
    with fs.trace() as trace:
        with pytest.raises(ValueError, match=str(number)):
            SCAN.select_rows([0, number]).to_arrow()
        with pytest.raises(ValueError, match=str(number)):
            SCAN.select_rows([0, number]).count()
        with pytest.raises(ValueError, match=str(number)):
            SCAN.take([0, number])
        for beyond in ([0, 2**70], np.array([0, 2**63], np.uint64)):
            with pytest.raises((ValueError, TypeError)):
                SCAN.select_rows(beyond).to_arrow()
    assert trace.data_bytes == 0


@pytest.mark.parametrize(
    "rows",
    [[True, False], np.array([True] * TOTAL), [1.0, 2.0], np.array([1.5]), ["1"], "12", [[1]]],
    ids=str,
)
def test_row_numbers_are_whole_numbers(rows: Any) -> None:
    with pytest.raises(TypeError):
        SCAN.select_rows(rows).to_arrow()
    with pytest.raises(TypeError):
        SCAN.take(rows)
    with pytest.raises((TypeError, ValueError)):
        SCAN.select_rows(pa.array([1, None])).to_arrow()


def test_a_shorter_selection_skips_the_rest_and_a_longer_one_is_an_error() -> None:
    assert ids(SCAN.select_rows(fs.RowSelection.all(40))) == list(range(40))
    assert ids(SCAN.select_rows(fs.RowSelection.all(TOTAL))) == list(range(TOTAL))
    for longer in (fs.RowSelection.all(TOTAL + 1), fs.RowSelection.none(TOTAL + 1)):
        with pytest.raises(ValueError, match=str(TOTAL + 1)):
            SCAN.select_rows(longer).to_arrow()
        with pytest.raises(ValueError, match=str(TOTAL + 1)):
            SCAN.select_rows(longer).count()


def test_a_selection_is_over_the_file_whatever_blocks_are_kept() -> None:
    kept = SCAN.filter(fs.blocks(2, 3))
    assert ids(kept.select_rows(fs.RowSelection.from_indices([0, 31, 119], TOTAL))) == [31]
    with pytest.raises(ValueError, match=str(TOTAL)):
        kept.select_rows([TOTAL]).to_arrow()


@given(st.lists(st.integers(0, TOTAL - 1), max_size=40), st.sampled_from(sorted(FILES)))
def test_take_gives_exactly_these_rows_in_this_order(rows: list[int], file: str) -> None:
    taken = fs.scan(FILES[file]).select("text", "id").with_row_index().take(rows)
    assert taken["index"].to_pylist() == rows
    wanted = TABLE.select(["text", "id"]).take(pa.array(rows, pa.int64()))
    assert taken.drop_columns("index").equals(wanted)


@pytest.mark.parametrize(
    "scan",
    [
        SCAN.filter(fs.blocks(0, 9)),
        SCAN.skip(0),
        SCAN.head(5),
        SCAN.tail(5),
        SCAN.filter(fs.byte_range(0, 99)).skip(1).head(5),
    ],
    ids=repr,
)
def test_take_and_other_choices_of_rows_do_not_mix(scan: fs.Scan) -> None:
    with pytest.raises(ValueError, match="take"):
        scan.take([0])


# Columns


USES: dict[str, Callable[[fs.Scan], object]] = {
    "schema": lambda scan: scan.schema,
    "count": fs.Scan.count,
    "to_arrow": fs.Scan.to_arrow,
    "to_pandas": fs.Scan.to_pandas,
    "to_polars": fs.Scan.to_polars,
    "batches": lambda scan: list(scan.batches()),
    "to_reader": fs.Scan.to_reader,
    "stream": pa.table,
    "take": lambda scan: scan.take([0]),
    "plan": fs.Scan.plan,
    "explain": fs.Scan.explain,
    "splits": fs.Scan.splits,
}


@pytest.mark.parametrize("use", sorted(USES))
def test_unknown_names_are_errors_at_first_use_before_data_is_read(use: str) -> None:
    scan = fs.scan(DATA).select("id", "txet")
    with fs.trace() as trace, pytest.raises(fs.ColumnNotFoundError, match=r"'txet'.*'text'"):
        USES[use](scan)
    assert trace.data_bytes == trace.pages_decoded == 0


@pytest.mark.parametrize("writer", ["parquet", "orc"])
@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("Fare", ["fare"]),
        ("TIP_AMOUNT", ["tip_amount"]),
        ("TIP_AMONT", ["tip_amount"]),
        ("vendorid", ["VendorID", "VENDORID"]),
        ("Spot.x", ["spot"]),
        ("spot.Longitude", ["spot.longitude"]),
        ("STRASSE", ["straße"]),
    ],
)
def test_near_names_are_found_whatever_their_case(asked: str, near: list[str], writer: str) -> None:
    names = ["fare", "tip_amount", "VendorID", "VENDORID", "straße"]
    spot = pa.array([{"longitude": 1, "x": 2}])
    table = pa.table({**dict.fromkeys(names, pa.array([1])), "spot": spot})
    scan = fs.scan(written(table, writer, [1]))
    hint = f"no column {asked!r}; did you mean {', '.join(map(repr, near))}?"
    for use in (scan.select(asked), scan.filter(fs.col(asked) == 1)):
        with pytest.raises(fs.ColumnNotFoundError) as error:
            use.count()
        assert hint in str(error.value)


@pytest.mark.parametrize("use", sorted(USES))
def test_a_row_index_cannot_take_the_name_of_a_column(use: str) -> None:
    with pytest.raises(ValueError, match="text"):
        USES[use](fs.scan(DATA).with_row_index("text"))


def repeated(*names: str, first: int = 0) -> bytes:
    """A Parquet file whose columns are numbered from a first one: ORC allows no name twice."""
    sink = io.BytesIO()
    arrays = [pa.array([first + place]) for place in range(len(names))]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(names)), sink)
    return sink.getvalue()


MISSING = pytest.mark.parametrize("missing", ["error", "null"])


@MISSING
def test_columns_of_one_name_are_all_read_and_others_beside_them_filter(missing: Any) -> None:
    twice = repeated("x", "x", "y")
    for scan in (fs.scan(twice, missing=missing), fs.scan([twice, twice], missing=missing)):
        found = scan.filter(fs.col("y") == 2).head(1).to_arrow()
        assert found.column_names == ["x", "x", "y"]
        assert [column[0].as_py() for column in found.columns] == [0, 1, 2]
        assert scan.select("y").head(1).to_arrow().to_pydict() == {"y": [2]}
        (batch,) = scan.head(1).column(1)
        assert batch.values.tolist() == [1]


@MISSING
def test_what_is_said_of_a_repeated_name_fits_what_was_called(missing: Any, tmp_path: Path) -> None:
    twice, once, folder = (tmp_path / name for name in ("twice", "once", "k=1"))
    twice.write_bytes(repeated("x", "x", "y"))
    once.write_bytes(repeated("x", "y", first=10))
    folder.mkdir()
    (folder / "twice").write_bytes(repeated("x", "x", "y"))
    scan, several = fs.scan(twice, missing=missing), fs.scan([once, twice], missing=missing)
    cases: list[tuple[Callable[[], Any], str]] = [
        (scan.select("x").to_arrow, "leave out select() to read them all"),
        (lambda: list(scan.column("x")), "by the number of its leaf, column(0)"),
        (scan.filter(fs.col("x") == 1).count, "test another column"),
        (scan.filter("x = 1 or y = 2").select("y").to_arrow, "test another column"),
        (several.filter(fs.col("x") == 1).select("y").to_arrow, "test another column"),
        (several.to_arrow, "scan this one alone"),
        (several.select("x").to_arrow, "scan this one alone"),
        (fs.scan([twice, once], missing=missing).to_arrow, "scan this one alone"),
        (fs.scan(tmp_path / "k*", missing=missing).to_arrow, "scan this one alone"),
    ]
    for use, advice in cases:
        with pytest.raises(fs.ColumnNotFoundError) as error:
            use()
        assert "twice: 2 columns are named 'x'" in str(error.value)
        assert advice in str(error.value)
        assert type(error.value) is fs.ColumnNotFoundError
        assert error.value.is_ambiguous
    with pytest.raises(fs.ColumnNotFoundError) as error:
        scan.select("z").to_arrow()
    assert not error.value.is_ambiguous


def test_a_file_of_another_format_is_told_from_a_damaged_one() -> None:
    for content, is_other in ((b"", True), (b"id,name\n1,a\n", True), (b"PAR1 and no end", False)):
        with pytest.raises(fs.FileFormatError) as error:
            fs.scan(content).count()
        assert type(error.value) is fs.FileFormatError
        copy = pickle.loads(pickle.dumps(error.value))
        assert copy.is_other_format is error.value.is_other_format is is_other


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "two heads": (lambda: SCAN.head(1).head(2), ValueError, "a scan has one"),
    "half a row": (lambda: SCAN.head(2.5), TypeError, r"head\(2.5\): a number of rows is an int"),  # type: ignore[arg-type]
    "size as text": (lambda: SCAN.batches("9"), TypeError, "must be an int, not '9'"),  # type: ignore[arg-type]
    "one value": (lambda: fs.col("id").is_in(3), TypeError, "a list of values, not 3"),  # type: ignore[arg-type]
    "no path": (lambda: fs.scan(""), fs.SourceNotFoundError, "not empty text"),
    "no path in a list": (lambda: fs.scan([""]), fs.SourceNotFoundError, "not empty text"),
    "a number": (lambda: fs.scan(1.5), TypeError, "cannot read a float"),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_mistakes_say_what_to_do(mistake: str) -> None:
    make, kind, says = MISTAKES[mistake]
    with pytest.raises(kind, match=says):
        make()


def test_a_folder_of_hidden_files_says_that_they_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "_a.parquet").write_bytes(DATA)
    with pytest.raises(fs.SourceNotFoundError, match=r"names that begin with _ or \. are left out"):
        fs.scan(tmp_path).count()


@pytest.mark.parametrize("file", ["page index", "strides"])
def test_columns_may_be_named_in_a_list_and_by_col(file: str) -> None:
    scan = fs.scan(FILES[file])
    wanted = scan.select("few", "a.b", "id").to_arrow()
    ways: list[list[Any]] = [
        [["few", "a.b", "id"]],
        ["few", ["a.b", "id"]],
        [fs.col("few"), fs.col(("a.b",)), fs.col("id")],
        [["few", fs.col("a.b"), ("id",)]],
    ]
    for columns in ways:
        assert scan.select(*columns).to_arrow().equals(wanted)
    assert scan.select([]).to_arrow().shape == (TOTAL, 0)
    for wrong in (fs.col("id").physical, fs.col("id").any()):
        with pytest.raises(TypeError, match=r"for predicates; select 'id'"):
            scan.select(wrong)


def test_filters_may_come_together() -> None:
    scan = SCAN.filter(fs.col("id") >= 20, "id < 40", fs.blocks(0, 1))
    assert ids(scan) == list(range(20, 30))
    assert ids(SCAN.filter()) == ids(SCAN)


def test_a_window_is_five_rows_where_nobody_says_how_many() -> None:
    assert ids(SCAN.head()) == list(range(5))
    assert ids(SCAN.tail()) == list(range(TOTAL - 5, TOTAL))


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("few", "id"), ["few", "id"]),
        (("a.b",), ["a.b"]),
        (("text", "id", "text", ("text",)), ["text", "id"]),
        (("a.b", "id", ("a.b",)), ["a.b", "id"]),
    ],
    ids=repr,
)
def test_columns_come_in_the_order_listed(names: tuple[Any, ...], wanted: list[str]) -> None:
    scan = SCAN.select(*names)
    assert scan.to_arrow().equals(TABLE.select(wanted))
    assert scan.schema.names == wanted


@pytest.mark.parametrize("name", [("a", "b"), "a", ("id", "x"), "ID", "", ()], ids=repr)
def test_a_tuple_names_each_step_exactly(name: Any) -> None:
    with pytest.raises((fs.ColumnNotFoundError, ValueError)):
        _ = SCAN.select(name).schema


@pytest.mark.parametrize("name", [3, None, [3], b"id"], ids=repr)
def test_a_name_is_text_or_a_tuple(name: Any) -> None:
    with pytest.raises(TypeError):
        _ = SCAN.select(name).schema


def test_no_columns_are_still_rows() -> None:
    scan = SCAN.select().skip(10)
    assert scan.to_arrow().shape == (TOTAL - 10, 0)
    assert sum(batch.num_rows for batch in scan.batches()) == TOTAL - 10
    assert SCAN.select().take([5, 5, 1]).shape == (3, 0)
    indexed = SCAN.select().with_row_index("n").tail(2).to_arrow()
    assert indexed.to_pydict() == {"n": [TOTAL - 2, TOTAL - 1]}


WITHOUT_PARENTHESES: list[Callable[[], Any]] = [
    lambda: fs.col("id") > 1 & fs.col("few") == True,  # noqa: E712
    lambda: (fs.col("id") > 1) | fs.col("few") == True,  # noqa: E712
]


@pytest.mark.parametrize("mistake", WITHOUT_PARENTHESES)
def test_a_comparison_without_parentheses_says_so(mistake: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"col\('few'\).* is no condition .* in parentheses"):
        mistake()


@pytest.mark.parametrize("thing", [3, None, len, [1], pc.field("id") > 3], ids=repr)
def test_filter_takes_predicates_only(thing: Any) -> None:
    with pytest.raises(TypeError):
        SCAN.filter(thing)


def test_columns_beside_nested_ones_and_nested_ones_themselves_can_be_read() -> None:
    sink = io.BytesIO()
    table = pa.table({"id": [1, 2], "tags": [["a"], []], "s": [{"x": 1}, None]})
    pq.write_table(table, sink)
    scan = fs.scan(sink.getvalue())
    assert scan.select("id").to_arrow().to_pydict() == {"id": [1, 2]}
    assert scan.count() == 2
    assert scan.to_arrow().equals(table)
    assert scan.select("s", "tags").skip(1).to_arrow().equals(table.select(["s", "tags"])[1:])


# Scans are values


def test_a_scan_is_immutable_and_reads_nothing_until_asked() -> None:
    with fs.trace() as trace:
        scan = fs.scan(DATA)
        chain = scan.select("id").filter(fs.blocks(0, 9)).select_rows([1, 2]).skip(1).head(1)
        chain = chain.with_row_index()
    assert trace.requests == 0
    assert ids(chain) == [2]
    assert scan.to_arrow().equals(TABLE)
    with pytest.raises((AttributeError, TypeError)):
        scan.limit = 3  # type: ignore[attr-defined]


# The model: a list of row numbers


Call = tuple[str, tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A file, calls in the order in which they are made, and what they must give."""

    file: str
    calls: tuple[Call, ...]
    rows: list[int]
    names: list[str]
    index: str | None

    def wanted(self) -> pa.Table:
        table = TABLE.take(pa.array(self.rows, pa.int64())).select(self.names)
        if self.index:
            field = pa.field(self.index, pa.int64(), nullable=False)
            table = table.add_column(0, field, [pa.array(self.rows, pa.int64())])
        return table


counts = st.integers(0, 12) | st.integers(0, TOTAL + 10)
numbers = st.lists(st.integers(0, TOTAL - 1), max_size=30)
runs = st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=6)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    file = draw(st.sampled_from(sorted(FILES)))
    rows = list(range(TOTAL))
    sets: list[Call] = []
    others: list[Call | None] = []
    if draw(st.booleans()):
        start, end = draw(st.integers(-1, 5)), draw(st.integers(-1, 6))
        sets.append(("filter", (fs.blocks(start, end),)))
        blocks = enumerate(BLOCKS_OF[file])
        rows = [row for at, block in blocks if start <= at < end for row in block]
    if draw(st.booleans()):
        if draw(st.booleans()):
            mask = [bit for length, bit in draw(runs) for _ in range(length)][:TOTAL]
            chosen = {row for row, bit in enumerate(mask) if bit}
            selection: Any = fs.RowSelection.from_filters([np.array(mask, bool)])
        else:
            selection = draw(numbers)
            chosen = set(selection)
        sets.append(("select_rows", (selection,)))
        rows = [row for row in rows if row in chosen]
    window = draw(st.sampled_from(["", "skip", "head", "skip head", "tail"]))
    amounts = {name: draw(counts) for name in window.split()}
    windows: list[Call] = [(name, (amount,)) for name, amount in amounts.items()]
    rows = rows[amounts.get("skip", 0) :][: amounts.get("head", TOTAL)]
    rows = rows[max(0, len(rows) - amounts.get("tail", TOTAL)) :]
    names = list(COLUMNS)
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True))
        others.append(("select", tuple(names)))
    index = draw(st.sampled_from([None, "index", "row number"]))
    if index:
        others.append(("with_row_index", (index,)))
    # Any order of calls in which no set of rows comes behind a window.
    order = iter([*draw(st.permutations(sets)), *draw(st.permutations(windows))])
    places = draw(st.permutations([*others, *[None] * len(sets + windows)]))
    return Case(file, tuple(place or next(order) for place in places), rows, names, index)


def applied(scan: fs.Scan, case: Case) -> fs.Scan:
    for name, arguments in case.calls:
        scan = getattr(scan, name)(*arguments)
    return scan


@pytest.mark.slow
@settings(max_examples=300)
@given(cases(), st.integers(1, 50))
@example(Case("v2 pages", (("select", ()), ("tail", (5,))), list(range(115, 120)), [], None), 2)
def test_scans_agree_with_lists_of_rows(case: Case, batch_size: int) -> None:
    scan = applied(fs.scan(FILES[case.file]), case)
    wanted = case.wanted()
    table = scan.to_arrow()
    table.validate(full=True)
    assert table.schema.names == scan.schema.names == wanted.schema.names
    assert table.equals(wanted)
    assert table.shape == wanted.shape
    assert scan.schema.equals(table.schema)
    assert scan.count() == len(case.rows)
    batches = list(scan.batches(batch_size))
    assert all(0 < batch.num_rows <= batch_size for batch in batches)
    assert pa.Table.from_batches(batches, scan.schema).equals(wanted)
    with scan.to_reader() as reader:
        assert reader.read_all().equals(wanted)
    assert pickle.loads(pickle.dumps(scan)).to_arrow().equals(wanted)
