"""Pages that are decompressed here, into memory that is used again, before Arrow decodes them.

Whatever the codec, the version of the pages and the type, rows and schema are those of pyarrow,
and stay so while later scans use the memory. Damaged pages give the right rows or an error.
"""

import contextlib
import gzip
import io
import itertools
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fretsaw as fs
from fretsaw import col
from fretsaw.formats.parquet import metadata
from fretsaw.storage import buffer_pool
from tests.support.craft import I32, STRUCT, Struct
from tests.support.hostile import Bench, read_within_limits
from tests.support.kernels import each_decoder
from tests.support.nested_data import assert_same_nested
from tests.support.page_craft import (
    UNCOMPRESSED_SIZE,
    Change,
    Pages,
    empty_page,
    is_compressed,
    levels_of,
    resized,
)
from tests.support.pages import (
    DICTIONARY_PAGE,
    PageHeader,
    assert_same,
    decode,
    random_array,
    row_groups,
)

pytestmark = [pytest.mark.slow, each_decoder()]

CODECS = ("none", "snappy", "gzip", "zstd", "brotli", "lz4")
OWN_CODECS = ("snappy", "gzip")
"""Those whose pages are decompressed here."""
VERSIONS = ("1.0", "2.0")
ROWS, GROUP_ROWS = 7_000, 3_000

each_codec = pytest.mark.parametrize("codec", CODECS)
each_version = pytest.mark.parametrize("version", VERSIONS)


def grid(names: str, *axes: Sequence[Any], quick: Sequence[Any]) -> Any:
    """All combinations; those that are not quick are left to the slow tests."""
    cases = [
        pytest.param(*case, marks=() if case in quick else pytest.mark.slow)
        for case in itertools.product(*axes)
    ]
    return pytest.mark.parametrize(names.split(), cases)


KINDS: dict[str, pa.DataType] = {
    str(kind): kind
    for kind in (
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.binary(7),
        pa.binary(16),
        pa.decimal128(5, 2),
        pa.decimal128(15, 3),
        pa.decimal128(38, 10),
        pa.decimal256(60, 7),
        pa.date32(),
        pa.time32("ms"),
        pa.time64("us"),
        pa.time64("ns"),
        pa.timestamp("ms"),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns"),
        pa.duration("us"),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int16(), pa.int64()),
        pa.null(),
    )
}


def nested_columns(rng: np.random.Generator) -> dict[str, pa.Array]:
    numbers = rng.integers(0, 50, (ROWS, 4)).tolist()
    words = [[f"word {n}" if n % 7 else None for n in row] for row in numbers]
    lists = [None if row[0] == 0 else row[: row[1] % 4] for row in numbers]
    texts = [
        None if row[0] == "word 1" else row[: n[2] % 5]
        for row, n in zip(words, numbers, strict=True)
    ]
    structs = [
        None if row[0] < 3 else {"a": row[1], "b": words[i][0], "c": {"d": lists[i]}}
        for i, row in enumerate(numbers)
    ]
    maps = [
        None if row[3] == 9 else [(f"key {n}", {"v": n / 4}) for n in row[: row[2] % 3]]
        for row in numbers
    ]
    inner = pa.struct([("d", pa.list_(pa.int64()))])
    return {
        "list of ints": pa.array(lists, pa.list_(pa.int64())),
        "list of texts": pa.array(texts, pa.list_(pa.string())),
        "list of lists": pa.array([[row, None, texts[0]] for row in texts]),
        "large list": pa.array(lists, pa.large_list(pa.int32())),
        "struct": pa.array(
            structs, pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", inner)])
        ),
        "map": pa.array(maps, pa.map_(pa.string(), pa.struct([("v", pa.float64())]))),
    }


@cache
def every_type() -> pa.Table:
    rng = np.random.default_rng(21)
    words = [f"a word, number {n:06}" for n in rng.integers(0, 10**6, ROWS).tolist()]
    columns: dict[str, pa.Array] = {"row": pa.array(np.arange(ROWS))}
    columns |= {name: random_array(kind, ROWS, 0.1, rng) for name, kind in KINDS.items()}
    columns |= nested_columns(rng)
    columns |= {
        "few": pa.array([f"word {n}" for n in rng.integers(0, 9, ROWS).tolist()]),
        "many": pa.array(words),
        "required": pa.array(rng.integers(0, 99, ROWS)),
        "all null": pa.nulls(ROWS, pa.string()),
        "all null ints": pa.nulls(ROWS, pa.int64()),
        "empty": pa.array([""] * ROWS),
        "empty or null": pa.array(["" if n else None for n in rng.integers(0, 2, ROWS).tolist()]),
        "same": pa.array(["one and the same value"] * ROWS),
        "zeros": pa.array(np.zeros(ROWS)),
    }
    table = pa.table(columns)
    place = table.schema.get_field_index("required")
    return table.cast(table.schema.set(place, pa.field("required", pa.int64(), nullable=False)))


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    layout = {"row_group_size": GROUP_ROWS, "write_page_index": True, "data_page_size": 8_000}
    pq.write_table(table, sink, **layout | options)
    return sink.getvalue()


def options_of(codec: str, version: str, dictionary: bool) -> dict[str, Any]:
    return {"compression": codec, "data_page_version": version, "use_dictionary": dictionary}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("decompressed")


def saved(folder: Path, codec: str, version: str, dictionary: bool) -> Path:
    """Every type in one file; on disk, since what is in memory is not read into leases."""
    path = folder / f"{codec} {version} {dictionary}.parquet"
    if not path.exists():
        path.write_bytes(written(every_type(), **options_of(codec, version, dictionary)))
    return path


def oracle(source: Any, **options: Any) -> pa.Table:
    with pq.ParquetFile(source, **options) as file:
        return file.read(use_threads=False)


def shrinks(path: Path) -> bool:
    """Whether some chunk got smaller by more than a tenth."""
    meta = pq.read_metadata(path)
    groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
    columns = [group.column(n) for group in groups for n in range(group.num_columns)]
    return any(c.total_compressed_size < 0.9 * c.total_uncompressed_size for c in columns)


# Every codec, version, encoding and type


@grid(
    "codec version dictionary",
    CODECS,
    VERSIONS,
    (True, False),
    quick=[
        ("snappy", "1.0", False),
        ("snappy", "2.0", True),
        ("gzip", "2.0", False),
    ],
)
def test_rows_are_those_of_pyarrow(
    folder: Path, codec: str, version: str, dictionary: bool
) -> None:
    path = saved(folder, codec, version, dictionary)
    assert shrinks(path) == (codec != "none")
    expected = oracle(path)
    assert_same_nested(fs.scan(path).to_arrow(), expected)
    for skip, head in ((0, 1), (17, 500), (2_900, 250), (6_990, 100), (1_234, 4_321)):
        found = fs.scan(path).skip(skip).head(head).to_arrow()
        assert_same_nested(found, expected.slice(skip, head))
    assert_same_nested(fs.scan(path).tail(3).to_arrow(), expected.slice(ROWS - 3))
    for predicate, mask in (
        (col("few") == "word 3", pc.equal(expected["few"], "word 3")),
        (
            col("row").is_between(2_990, 3_100),
            pc.is_in(expected["row"], pa.array(range(2_990, 3_101))),
        ),
        (col("string").is_null(), pc.is_null(expected["string"])),
        (col("many") < "a word, number 01", pc.less(expected["many"], "a word, number 01")),
    ):
        wanted = expected.filter(mask)
        assert wanted.num_rows > 0
        assert_same_nested(fs.scan(path).filter(predicate).to_arrow(), wanted)
    rows = [6_999, 0, 0, 3_000, 2_999, 17, 5_555, 17]
    assert_same_nested(fs.scan(path).take(rows), expected.take(rows))


@each_version
@each_codec
def test_int96_is_that_of_pyarrow(folder: Path, codec: str, version: str) -> None:
    table = every_type().select(["timestamp[ns]", "timestamp[ms]", "row"])
    path = folder / f"int96 {codec} {version}.parquet"
    options = {**options_of(codec, version, False), "use_deprecated_int96_timestamps": True}
    path.write_bytes(written(table, **options))
    assert pq.ParquetFile(path).schema.column(0).physical_type == "INT96"
    for unit in ("ns", "us", "ms"):
        expected = oracle(path, coerce_int96_timestamp_unit=unit)
        assert_same(fs.scan(path, int96=unit).to_arrow(), expected)
        found = fs.scan(path, int96=unit).filter(col("row") >= 6_500).to_arrow()
        assert_same(found, expected.slice(6_500))
        assert_same(
            fs.scan(path, int96=unit).skip(2_998).head(5).to_arrow(), expected.slice(2_998, 5)
        )


@grid(
    "rows codec version",
    (0, 1, 2),
    CODECS,
    VERSIONS,
    quick=[*itertools.product((1,), OWN_CODECS, VERSIONS), (0, "gzip", "2.0")],
)
def test_tiny_files_are_those_of_pyarrow(rows: int, codec: str, version: str) -> None:
    for first, dictionary in itertools.product((0, 5), (True, False)):
        table = every_type().slice(first, rows)
        data = written(table, **options_of(codec, version, dictionary))
        expected = oracle(io.BytesIO(data))
        assert_same_nested(fs.scan(data).to_arrow(), expected)
        assert_same_nested(fs.scan(data).filter(col("row") >= 0).to_arrow(), expected)
        assert_same_nested(fs.scan(data).tail(1).to_arrow(), expected.slice(max(0, rows - 1)))


@each_version
@each_codec
def test_row_groups_without_rows_do_no_harm(codec: str, version: str) -> None:
    table = every_type().select(["row", "few", "list of ints", "int32"])
    sink = io.BytesIO()
    options = {"compression": codec, "data_page_version": version}
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        for start, rows in ((0, 0), (0, 2_000), (2_000, 0), (2_000, 1_000)):
            writer.write_table(table.slice(start, rows))
    data = sink.getvalue()
    assert_same_nested(fs.scan(data).to_arrow(), table.slice(0, 3_000))
    assert_same_nested(fs.scan(data).skip(1_990).head(20).to_arrow(), table.slice(1_990, 20))


@grid("codec version", OWN_CODECS, VERSIONS, quick=[("snappy", "1.0"), ("gzip", "2.0")])
def test_checksums_and_streams_make_no_difference(tmp_path: Path, codec: str, version: str) -> None:
    path = tmp_path / "a.parquet"
    options = options_of(codec, version, True)
    path.write_bytes(written(every_type(), **options, write_page_checksum=True))
    expected = oracle(path)
    for verify in (True, False):
        scan = fs.scan(path, verify=verify)
        assert_same_nested(scan.to_arrow(), expected)
        assert_same_nested(pa.Table.from_batches(scan.batches(700)), expected)


# Memory that is used again

LARGE_ROWS = 30_000


def large_table(seed: int) -> pa.Table:
    """Chunks of some hundred KB, of which several are decompressed into one lease."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 300, LARGE_ROWS) + 1_000 * seed
    texts = [f"text {number} of table {seed}" for number in numbers.tolist()]
    return pa.table(
        {
            "n": numbers,
            "x": numbers / 7,
            "text": texts,
            "few": pa.array(texts).dictionary_encode().cast(pa.string()),
            "list": pa.array([[n, seed] for n in numbers.tolist()]),
            "flag": numbers % 3 == 0,
            "maybe": pa.array(numbers, mask=numbers % 4 == 0),
        }
    )


def large_file(folder: Path, seed: int, codec: str, dictionary: bool) -> tuple[Path, pa.Table]:
    path = folder / f"large {seed} {codec} {dictionary}.parquet"
    table = large_table(seed)
    encoding: list[str] | bool = ["few"] if dictionary else False
    level = 1 if codec == "gzip" else None
    options = {"compression": codec, "compression_level": level, "use_dictionary": encoding}
    pq.write_table(table, path, row_group_size=15_000, **options)
    return path, table


def leased() -> list[tuple[int, int]]:
    """The memory that the next scans will write to: where it begins and ends."""
    sizes = [lease.size for lease in reversed(buffer_pool.FREE)]
    with contextlib.ExitStack() as stack:
        leases = [stack.enter_context(buffer_pool.lease()) for _ in sizes]
        places = [allocate(size).address for allocate, size in zip(leases, sizes, strict=True)]
    return [(start, start + size) for start, size in zip(places, sizes, strict=True) if size]


def buffers(array: pa.Array) -> Iterator[pa.Buffer]:
    """All buffers of an array, those of its dictionary included."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    yield from (buffer for buffer in array.buffers() if buffer is not None)
    if pa.types.is_dictionary(array.type):
        yield from buffers(array.dictionary)


def columns_in_leases(table: pa.Table) -> list[str]:
    """The columns with a buffer in memory that will be written to."""
    places = leased()
    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        for chunk in column.chunks
        for buffer in buffers(chunk)
        for start, end in places
        if buffer.address < end and start < buffer.address + buffer.size
    ]


USES: dict[str, Callable[[fs.Scan], pa.Table]] = {
    "whole": lambda scan: scan.to_arrow(),
    "window": lambda scan: scan.skip(100).head(5_000).to_arrow(),
    "filter": lambda scan: scan.filter(col("row") >= 50).to_arrow(),
    "dictionary": lambda scan: scan.filter(col("few") != "word 1").to_arrow(),
    "batches": lambda scan: pa.Table.from_batches(list(scan.batches(1_000))),
    "take": lambda scan: scan.take(range(0, ROWS, 3)),
}


@grid(
    "codec version dictionary",
    ("none", "snappy", "gzip", "zstd"),
    VERSIONS,
    (True, False),
    quick=[("snappy", "1.0", False), ("gzip", "2.0", True)],
)
def test_no_result_lies_in_memory_that_is_used_again(
    folder: Path, codec: str, version: str, dictionary: bool
) -> None:
    path = saved(folder, codec, version, dictionary)
    kept = [use(fs.scan(path)) for _ in range(2) for use in USES.values()]
    # Single columns: what is decoded alone is not copied together.
    kept += [fs.scan(path).select(name).to_arrow() for name in every_type().column_names]
    assert leased(), "nothing was leased"
    assert [columns_in_leases(table) for table in kept] == [[]] * len(kept)


def test_memory_of_leases_is_used(tmp_path: Path) -> None:
    """Or else nothing is tested here: what is decompressed goes through leases, again and again."""
    path, _ = large_file(tmp_path, 1, "snappy", False)
    for _ in range(3):
        fs.scan(path).to_arrow()
    before = {start for start, _ in leased()}
    for _ in range(3):
        fs.scan(path).to_arrow()
    assert sum(end - start for start, end in leased()) > 1 << 20
    assert before & {start for start, _ in leased()}


@grid(
    "codec dictionary",
    ("none", "snappy", "gzip", "zstd"),
    (True, False),
    quick=[("snappy", False), ("gzip", True)],
)
def test_results_stay_right_while_memory_is_used_again(
    tmp_path: Path, codec: str, dictionary: bool
) -> None:
    files = [large_file(tmp_path, seed, codec, dictionary) for seed in range(3)]
    (first, expected), *others = files
    kept = [fs.scan(first).to_arrow() for _ in range(3)]
    kept += [pa.Table.from_batches(list(fs.scan(first).batches(9_000)))]
    few = fs.scan(first).filter(col("n") > 250).to_arrow()
    flaws: list[object] = []

    def work(path: Path, table: pa.Table) -> None:
        try:
            for _ in range(3):
                assert_same(fs.scan(path).to_arrow(), table)
                found = fs.scan(path).filter(col("flag") == True).to_arrow()  # noqa: E712
                assert_same(found, table.filter(table["flag"]))
        except BaseException as error:
            flaws.append(error)

    threads = [threading.Thread(target=work, args=file) for file in [*others, *others]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert flaws == []
    assert leased()
    for table in kept:
        assert columns_in_leases(table) == []
        assert_same(table, expected)
    assert_same(few, expected.filter(pc.greater(expected["n"], 250)))


# Strings that are decoded to an Arrow dictionary and expanded


def texts(distinct: int, nulls: bool, rows: int = ROWS) -> pa.Array:
    rng = np.random.default_rng(distinct)
    numbers = rng.integers(0, distinct, rows).tolist()
    gaps = rng.random(rows) < (0.3 if nulls else 0)
    return pa.array(
        [None if gap else f"word {n}" * (n % 4) for n, gap in zip(numbers, gaps, strict=True)]
    )


TEXT_KINDS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


@grid(
    "distinct limit codec",
    (1, 3, 200, 740, 760, 1_700, 6_000),
    (None, 300, 3_000),
    ("none", "snappy", "gzip", "zstd"),
    quick=[(3, None, "gzip"), *itertools.product((740, 760, 1_700), (None, 3_000), ["snappy"])],
)
def test_text_of_few_values_stays_plain_text(distinct: int, limit: int | None, codec: str) -> None:
    """A quarter of the rows is the limit between the two ways; on both sides of it."""
    for nulls in (False, True):
        plain = texts(distinct, nulls)
        columns = {str(kind): plain.cast(kind) for kind in TEXT_KINDS}
        table = pa.table({"row": range(ROWS), **columns})
        small = {} if limit is None else {"dictionary_pagesize_limit": limit}
        data = written(
            table, compression=codec, max_rows_per_page=400, write_batch_size=100, **small
        )
        expected = oracle(io.BytesIO(data))
        assert expected.schema.equals(table.schema)
        assert_same(fs.scan(data).to_arrow(), expected)
        assert_same(fs.scan(data).skip(1_111).head(2_222).to_arrow(), expected.slice(1_111, 2_222))
        for name, sought in (("string", "word 1"), ("binary", b"word 2" * 2), ("large_string", "")):
            found = fs.scan(data).filter(col(name) == sought).to_arrow()
            scalar = pa.scalar(sought, table[name].type)
            assert_same(found, expected.filter(pc.equal(expected[name], scalar)))
            alone = fs.scan(data).select("row").filter(col(name) != sought).to_arrow()
            wanted = expected.filter(pc.not_equal(expected[name], scalar))
            assert alone["row"].equals(wanted["row"])


def test_chunks_mix_dictionary_and_plain_pages() -> None:
    """Or else the test above does not see any."""
    table = pa.table({"x": texts(1_700, False)})
    layout = {"max_rows_per_page": 400, "write_batch_size": 100}
    data = written(table, dictionary_pagesize_limit=3_000, **layout)
    pages = [page for group in row_groups(data) for page in group.chunks[0].pages]
    assert {page.uses_dictionary for page in pages} == {True, False}


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("store", [True, False], ids=["Arrow schema", "no Arrow schema"])
def test_what_the_user_stored_as_a_dictionary_stays_one(codec: str, store: bool) -> None:
    plain = texts(5, nulls=True)
    kinds = [
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.binary()),
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.dictionary(pa.int32(), pa.string(), ordered=True),
    ]
    columns = {str(n): plain.dictionary_encode().cast(kind) for n, kind in enumerate(kinds[:2])}
    columns["2"] = plain.cast(pa.binary()).dictionary_encode()
    columns["3"] = plain.cast(pa.large_string()).dictionary_encode()
    encoded_text = plain.dictionary_encode()
    columns["4"] = pa.DictionaryArray.from_arrays(
        encoded_text.indices, encoded_text.dictionary, ordered=True
    )
    table = pa.table({"row": range(ROWS), **columns, "text": plain})
    data = written(table, compression=codec, store_schema=store)
    expected = oracle(io.BytesIO(data))
    assert pa.types.is_dictionary(expected["0"].type) == store
    assert pa.types.is_string(expected["text"].type)
    assert_same(fs.scan(data).to_arrow(), expected)
    assert_same(fs.scan(data).skip(2_990).head(30).to_arrow(), expected.slice(2_990, 30))
    for name in ("0", "text"):
        found = fs.scan(data).filter(col(name) == "word 1").to_arrow()
        assert_same(found, expected.filter(pc.equal(expected["text"], "word 1")))


# Files whose pages are changed


def damage_table() -> pa.Table:
    rng = np.random.default_rng(8)
    numbers = rng.integers(0, 50, 6_000)
    return pa.table(
        {
            "n": numbers,
            "few": [f"word {n}" for n in numbers.tolist()],
            "text": [
                f"some words, number {n} of them" for n in rng.integers(0, 400, 6_000).tolist()
            ],
            "maybe": pa.array(numbers / 3, mask=numbers % 5 == 0),
        }
    )


@cache
def sound(codec: str, version: str, checksum: bool = False) -> bytes:
    return written(
        damage_table(),
        compression=codec,
        data_page_version=version,
        use_dictionary=["few"],
        write_page_checksum=checksum,
        data_page_size=20_000,
    )


def judge(bench: Bench, *, must_fail: bool = False, most_megabytes: int = 400) -> None:
    """Right rows or an error that names the file, within memory; read in another process."""
    flaws = {}
    results = read_within_limits(bench.cases)
    for case in bench.cases:
        result = results[case["name"]]
        errors = [error for error in (result, result.get("window")) if error and "error" in error]
        fine = result.get("peak_mb", 0) < most_megabytes
        for error in errors:
            fine &= "FileFormatError" in error.get("kinds", [])
            fine &= Path(case["path"]).name in error.get("message", "")
        if "error" not in result:
            fine &= not must_fail and result.get("verdict") in ("same", "as before")
        if not fine:
            flaws[case["name"]] = result
    listed = "\n".join(f"{name}: {json.dumps(result)}" for name, result in flaws.items())
    assert not flaws, f"{len(flaws)} of {len(bench.cases)}\n{listed}"


def test_rewritten_files_are_as_before() -> None:
    """The tool of the tests below does no damage by itself."""
    for codec, version in itertools.product(CODECS, VERSIONS):
        data = Pages(sound(codec, version, True)).changed(lambda head, body: [(head, body)])
        assert oracle(io.BytesIO(data)).equals(damage_table())
        assert_same(fs.scan(data).to_arrow(), damage_table())
        data = Pages(sound(codec, version, True)).changed(lambda head, body: [resized(head, body)])
        assert_same(fs.scan(data).to_arrow(), damage_table())
        assert_same(oracle(io.BytesIO(data), page_checksum_verification=True), damage_table())


def flipped(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """The file with one byte changed, anywhere in the body of a page."""
    rng = np.random.default_rng(seed)
    bodies = []
    for group in row_groups(data):
        for chunk in group.chunks:
            spans = [page.span for page in chunk.pages]
            spans += [chunk.dictionary] if chunk.dictionary else []
            for span in spans:
                _, body = decode(PageHeader, data, span.start)
                bodies.append((body, span.end))
    for number in range(count):
        start, end = bodies[number % len(bodies)]
        # Often near the ends: there are the levels, the length of a stream and its own checksum.
        near = int(rng.integers(0, min(12, end - start)))
        place = (int(rng.integers(start, end)), start + near, end - 1 - near)[number % 3]
        change = int(rng.integers(1, 256))
        yield (
            f"byte {place - start} of {end - start} from {start}, changed by {change}, {number}",
            data[:place] + bytes([data[place] ^ change]) + data[place + 1 :],
        )


@grid("codec version", OWN_CODECS, VERSIONS, quick=[("snappy", "1.0"), ("gzip", "2.0")])
def test_flipped_bytes_under_a_checksum_are_a_format_error(
    tmp_path: Path, codec: str, version: str
) -> None:
    bench = Bench(tmp_path, sound(codec, version, True))
    for name, data in flipped(sound(codec, version, True), 30, 1):
        bench.add(name, data)
    judge(bench, must_fail=True)


@grid(
    "codec version",
    [*OWN_CODECS, "zstd"],
    VERSIONS,
    quick=[("snappy", "2.0"), ("gzip", "1.0")],
)
def test_flipped_bytes_give_the_rows_of_pyarrow_or_a_format_error(
    tmp_path: Path, codec: str, version: str
) -> None:
    bench = Bench(tmp_path, sound(codec, version))
    for name, data in flipped(sound(codec, version), 40, 2):
        bench.add(name, data)
    judge(bench)


def on_page(number: int, change: Change) -> Change:
    """Changes one page of the file, leaves the others as they are."""
    counter = itertools.count()

    def changed(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        return change(header, body) if next(counter) == number else [(header, body)]

    return changed


def page_count(data: bytes) -> int:
    chunks = [chunk for group in row_groups(data) for chunk in group.chunks]
    return sum(len(chunk.pages) + (chunk.dictionary is not None) for chunk in chunks)


CLAIMS: dict[str, Callable[[int], int]] = {
    "one more": lambda size: size + 1,
    "one less": lambda size: size - 1,
    "half": lambda size: size // 2,
    "double": lambda size: size * 2,
    "64 MB": lambda size: 64 << 20,
    "more than 64 MB": lambda size: (64 << 20) + 1,
    "2 GB": lambda size: (1 << 31) - 1,
    "zero": lambda size: 0,
    "one": lambda size: 1,
    "minus one": lambda size: -1,
    "minus 2 GB": lambda size: -(1 << 31),
}


def claiming(size: Callable[[int], int]) -> Change:
    """Changes what a page claims to become."""

    def change(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        claimed = size(header[UNCOMPRESSED_SIZE][1])
        return [({**header, UNCOMPRESSED_SIZE: (I32, claimed)}, body)]

    return change


@grid(
    "codec version checksum",
    [*OWN_CODECS, "zstd"],
    VERSIONS,
    (True, False),
    quick=[("snappy", "1.0", False), ("gzip", "2.0", True)],
)
def test_wrong_claims_of_size_do_no_harm(
    tmp_path: Path, codec: str, version: str, checksum: bool
) -> None:
    data = sound(codec, version, checksum)
    bench = Bench(tmp_path, data)
    for number, (name, claim) in itertools.product((0, 2, page_count(data) - 1), CLAIMS.items()):
        changed = Pages(data).changed(on_page(number, claiming(claim)))
        bench.add(f"page {number} claims {name}", changed)
    judge(bench)


def test_claims_of_every_page_are_not_added_up(tmp_path: Path) -> None:
    """Each claims less than a single page may; together they would fill the memory."""
    bench = Bench(tmp_path, sound("snappy", "1.0"))
    for codec, megabytes in itertools.product(OWN_CODECS, (10, 60)):
        huge = claiming(partial(max, megabytes << 20))
        bench.add(f"{codec}: each {megabytes} MB", Pages(sound(codec, "1.0")).changed(huge))
    judge(bench)


def uncompressed(header: Struct, body: bytes, codec: str) -> bytes:
    """What is compressed in the body of a page."""
    levels = levels_of(header)
    size = header[UNCOMPRESSED_SIZE][1] - levels
    if codec == "none" or not is_compressed(header, body):
        return body[levels:]
    return bytes(pa.decompress(body[levels:], size, codec=codec, asbytes=True))


def with_stream(change: Callable[[bytes, bytes], bytes], codec: str) -> Change:
    """Puts another stream in place of a compressed one, from it and from what it becomes."""

    def changed(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        if not is_compressed(header, body):
            return [(header, body)]
        levels = levels_of(header)
        stream = change(body[levels:], uncompressed(header, body, codec))
        return [resized(header, body[:levels] + stream)]

    return changed


def members(*cuts: float) -> Callable[[bytes, bytes], bytes]:
    """A stream of several members, one behind the other."""

    def change(_: bytes, data: bytes) -> bytes:
        places = [0, *(int(cut * len(data)) for cut in cuts), len(data)]
        return b"".join(gzip.compress(data[a:b]) for a, b in itertools.pairwise(places))

    return change


def raw(window: int) -> Callable[[bytes, bytes], bytes]:
    """Another wrapping of the same stream: zlib's, or none."""

    def change(_: bytes, data: bytes) -> bytes:
        packer = zlib.compressobj(wbits=window)
        return packer.compress(data) + packer.flush()

    return change


STREAMS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "two members": members(0.5),
    "three members": members(0.1, 0.9),
    "an empty member first": members(0.0),
    "an empty member last": members(1.0),
    "a whole member and half of one": lambda stream, data: stream + stream[: len(stream) // 2],
    "the same twice": lambda stream, data: stream * 2,
    "zlib": raw(15),
    "raw deflate": raw(-15),
    "not compressed": lambda stream, data: data,
    "cut by one": lambda stream, data: stream[:-1],
    "cut by eight": lambda stream, data: stream[:-8],
    "cut by half": lambda stream, data: stream[: len(stream) // 2],
    "one byte": lambda stream, data: stream[:1],
    "nothing": lambda stream, data: b"",
    "something behind": lambda stream, data: stream + b"behind",
    "zeros behind": lambda stream, data: stream + bytes(64),
}


@grid(
    "codec version checksum",
    OWN_CODECS,
    VERSIONS,
    (True, False),
    quick=[("gzip", "1.0", False)],
)
def test_odd_streams_do_no_harm(tmp_path: Path, codec: str, version: str, checksum: bool) -> None:
    """In all pages or in one; their checksums, where there are some, are right."""
    data = sound(codec, version, checksum)
    bench = Bench(tmp_path, data)
    for name, change in STREAMS.items():
        bench.add(f"all: {name}", Pages(data).changed(with_stream(change, codec)))
        bench.add(f"one: {name}", Pages(data).changed(on_page(1, with_stream(change, codec))))
    judge(bench)


@each_version
@pytest.mark.parametrize("name", ["cut by one", "cut by eight", "something behind"])
def test_streams_of_gzip_have_an_end_and_nothing_behind(name: str, version: str) -> None:
    """All values are there, but the stream is not whole: pyarrow refuses it, too."""
    data = Pages(sound("gzip", version)).changed(with_stream(STREAMS[name], "gzip"))
    with pytest.raises(OSError, match="GZip"):
        oracle(io.BytesIO(data))
    with pytest.raises(fs.FileFormatError, match="column"):
        fs.scan(data).to_arrow()


@each_version
def test_members_of_gzip_are_read_as_one(version: str) -> None:
    """As the format of gzip has it; pyarrow says which of them it can read."""
    for name in ("two members", "three members", "an empty member first", "an empty member last"):
        data = Pages(sound("gzip", version)).changed(with_stream(STREAMS[name], "gzip"))
        try:
            expected = oracle(io.BytesIO(data))
        except OSError:
            with pytest.raises(fs.FileFormatError):
                fs.scan(data).to_arrow()
        else:
            assert_same(expected, damage_table())
            assert_same(fs.scan(data).to_arrow(), expected)


@grid("version", VERSIONS, quick=[("1.0",)])
def test_a_stream_of_much_more_than_it_claims_is_not_unpacked(tmp_path: Path, version: str) -> None:
    """A small page that becomes half a gigabyte."""
    flood = zlib.compressobj(1, wbits=31)
    stream = b"".join([*(flood.compress(bytes(1 << 24)) for _ in range(32)), flood.flush()])
    data = sound("gzip", version)
    bench = Bench(tmp_path, data)
    for number in range(2):
        change = on_page(number, with_stream(lambda _, __: stream, "gzip"))
        bench.add(f"page {number}", Pages(data).changed(change))
    judge(bench)


def longer(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
    """A page with 20 MB of nothing behind its values, and a header that says so."""
    data = uncompressed(header, body, "snappy") + bytes(20 << 20)
    new = {**header, UNCOMPRESSED_SIZE: (I32, len(data))}
    return [resized(new, pa.compress(data, codec="snappy", asbytes=True))]


@pytest.mark.slow
def test_pages_that_become_large_are_not_unpacked_all_at_once(tmp_path: Path) -> None:
    """Half a gigabyte in one chunk; page by page it is little."""
    table = pa.table({"n": np.arange(6_000)})
    layout = {"row_group_size": 6_000, "max_rows_per_page": 250, "write_batch_size": 250}
    data = written(table, compression="snappy", use_dictionary=False, **layout)
    assert page_count(data) == 24
    large = Pages(data).changed(longer)
    bench = Bench(tmp_path, data)
    bench.add("large pages", large)
    judge(bench)
    assert_same(fs.scan(large).to_arrow(), table)


# Dictionaries that no well-behaved writer makes


def replaced_entries(changes: Sequence[tuple[bytes, bytes]], codec: str) -> Change:
    """Other entries of the same length in the dictionary page."""

    def change(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        if header[1][1] != DICTIONARY_PAGE:
            return [(header, body)]
        data = uncompressed(header, body, codec)
        for before, after in changes:
            assert before in data
            data = data.replace(before, after)
        stream = data if codec == "none" else pa.compress(data, codec=codec, asbytes=True)
        return [resized(header, stream)]

    return change


def test_a_window_of_a_dictionary_that_holds_a_value_twice_is_right() -> None:
    """The last entry is out of the window: whoever reads another dictionary does not notice."""
    table = pa.table({"x": ["aa", "bb", "cc"] * 200 + ["dd"] * 8})
    data = written(table, compression="none", max_rows_per_page=100, write_batch_size=100)
    data = Pages(data).changed(replaced_entries([(b"bb", b"aa")], "none"))
    expected = oracle(io.BytesIO(data))
    assert expected["x"][:3].to_pylist() == ["aa", "aa", "cc"]
    assert_same(fs.scan(data).head(6).to_arrow(), expected.slice(0, 6))


@each_version
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
def test_dictionaries_may_hold_a_value_twice(codec: str, version: str) -> None:
    rng = np.random.default_rng(9)
    words = [f"{letter * 9} {letter}" for letter in "abcde"]
    values = [words[n] for n in rng.integers(0, 5, ROWS).tolist()]
    gaps = (rng.random(ROWS) < 0.2).tolist()
    column = [None if gap else value for gap, value in zip(gaps, values, strict=True)]
    table = pa.table({"row": range(ROWS), "x": column})
    options = {"data_page_version": version, "use_dictionary": ["x"], "write_statistics": False}
    data = written(table, compression=codec, **options)
    twice = [(words[1].encode(), words[0].encode()), (words[3].encode(), words[0].encode())]
    data = Pages(data).changed(replaced_entries(twice, codec))
    merged = [words[0] if value in (words[1], words[3]) else value for value in column]
    expected = pa.table({"row": range(ROWS), "x": merged})
    assert_same(oracle(io.BytesIO(data)), expected)
    assert_same(fs.scan(data).to_arrow(), expected)
    assert_same(fs.scan(data).skip(2_995).head(99).to_arrow(), expected.slice(2_995, 99))
    for sought in words:
        mask = pc.equal(expected["x"], sought)
        assert_same(fs.scan(data).filter(col("x") == sought).to_arrow(), expected.filter(mask))
        rest = fs.scan(data).filter(~(col("x") == sought)).to_arrow()
        assert_same(rest, expected.filter(pc.invert(mask)))
    both = pc.is_in(expected["x"], pa.array(words[:2]))
    assert_same(fs.scan(data).filter(col("x").is_in(words[:2])).to_arrow(), expected.filter(both))


def shortened(codec: str) -> Change:
    """Leaves three entries in a dictionary, all of them the first."""

    def change(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        if header[1][1] != DICTIONARY_PAGE:
            return [(header, body)]
        data = uncompressed(header, body, codec)
        entries = 3 * data[: 4 + int.from_bytes(data[:4], "little")]
        details = {**header[7][1], 1: (I32, 3)}
        new = {**header, 7: (STRUCT, details), UNCOMPRESSED_SIZE: (I32, len(entries))}
        return [resized(new, pa.compress(entries, codec=codec, asbytes=True))]

    return change


def test_dictionaries_that_are_too_short_are_a_format_error(tmp_path: Path) -> None:
    """Pages refer to entries that are not there."""
    bench = Bench(tmp_path, sound("snappy", "1.0"))
    for codec, version in itertools.product([*OWN_CODECS, "zstd"], VERSIONS):
        changed = Pages(sound(codec, version)).changed(shortened(codec))
        bench.add(f"{codec} {version}", changed)
    judge(bench, must_fail=True)


@each_version
@pytest.mark.parametrize("codec", [*OWN_CODECS, "none", "zstd"])
def test_pages_without_values_do_no_harm(codec: str, version: str) -> None:
    """Arrow reads nothing behind such a page of version 2, and does not say so."""
    data = Pages(sound(codec, version)).changed(empty_page)
    for skip, head in ((0, 6_000), (2_500, 900)):
        scan = fs.scan(data).skip(skip).head(head)
        try:
            found = scan.to_arrow()
        except fs.FileFormatError:
            assert not oracle_agrees(data)
        else:
            assert_same(found, damage_table().slice(skip, head))


@pytest.mark.parametrize("codec", OWN_CODECS)
def test_very_many_pages_without_values_are_not_all_looked_at(
    monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    def many(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        pages = empty_page(header, body)
        return [*pages[:-1] * 20_000, pages[-1]]

    data = Pages(sound(codec, "1.0")).changed(on_page(0, many))
    decoded = 0
    read = metadata.StructReader.read

    def counting(self: metadata.StructReader, *arguments: Any) -> Any:
        nonlocal decoded
        decoded += 1
        return read(self, *arguments)

    monkeypatch.setattr(metadata.StructReader, "read", counting)
    with contextlib.suppress(fs.FileFormatError):
        assert_same(fs.scan(data).to_arrow(), damage_table())
    assert 0 < decoded < 10_000


def oracle_agrees(data: bytes) -> bool:
    """Whether pyarrow can read all rows."""
    try:
        return bool(oracle(io.BytesIO(data)).equals(damage_table()))
    except OSError:
        return False
