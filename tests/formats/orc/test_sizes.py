"""Sizes that an ORC file claims are held against its streams: no crash, no hang, bounded memory."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from thrift.Thrift import TType

import fretsaw as fs
from tests.support.hostile import changed, decoded, memory, spots
from tests.support.hostile import encoded as encoded_thrift
from tests.support.kernels import each_decoder
from tests.support.orc_craft import (
    ENCODINGS,
    INDEX_KINDS,
    ROWS,
    STRIPE_ROWS,
    Crafted,
    encoded,
    parsed,
    written_at_once,
)
from tests.support.orc_damage import damaged, differences, judge, ways

pytestmark = each_decoder("slow")

LENGTH, SECONDARY, DICTIONARY_SIZE = 2, 5, 2
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
MOST_MB = 250
MORE = int(os.environ.get("FRETSAW_MORE", "1"))
MOVED = (115, 1231, 1430, 1576, 10_232, 10_268)
"""Seeds of decimals and elements of lists that moved."""

TABLE = pa.table(
    {
        "id": range(3_000),
        "text": [f"row {i * 7919}" for i in range(3_000)],
        "list": [list(range(i % 3)) for i in range(3_000)],
        "flag": [i % 3 == 0 for i in range(3_000)],
        "maybe": [i if i % 5 else None for i in range(3_000)],
        "name": [f"name {i % 7}" for i in range(3_000)],
        "names": [[f"name {i % 7}"] * (i % 3) for i in range(3_000)],
    }
)


def made(codec: str) -> bytes:
    options = {"row_index_stride": 1_000, "dictionary_key_size_threshold": 0.5}
    return written_at_once(TABLE, compression=codec, **options)


def longer(body: bytes, more: int) -> bytes:
    """A stream whose last chunk claims so many bytes more than there are."""
    begin, last = 0, 0
    while begin < len(body):
        last = begin
        begin += 3 + (int.from_bytes(body[begin : begin + 3], "little") >> 1)
    header = int.from_bytes(body[last : last + 3], "little") + 2 * more
    return body[:last] + header.to_bytes(3, "little") + body[last + 3 :]


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("cut", [0, 3])
def test_a_chunk_that_goes_beyond_its_stream_is_an_error_unless_all_of_it_is_there(
    codec: str, cut: int
) -> None:
    """Only of what is compressed one can tell: Arrow would read behind the stream, or crash."""
    data = made(codec)
    expected = orc.ORCFile(pa.BufferReader(data)).read()
    count = len(Crafted(data).stripes[0].streams)
    outcomes = []
    for number in range(count):
        file = Crafted(data)
        stream = file.stripes[0].streams[number]
        if stream.kind in INDEX_KINDS or not stream.body:
            continue
        is_original = bool(stream.body[0] & 1)
        body = longer(stream.body, 1 + number % 5)
        stream.body = body[: len(body) - cut]
        damaged = file.to_bytes()
        for first, rows in ((0, 3_000), (2_500, 5)):
            try:
                found = fs.scan(damaged).skip(first).head(rows).to_arrow()
            except fs.FileFormatError as error:
                outcomes.append((is_original, False))
                if "ends behind the" not in str(error):
                    raise
            else:
                assert found.equals(expected.slice(first, rows))
                outcomes.append((is_original, True))
    assert len(outcomes) >= 20
    assert (True, True) not in outcomes
    # Arrow writes LZ4 without compressing anything.
    assert ((False, True) in outcomes) == (cut == 0 and codec != "lz4")


# In a process with a limit


def read_in_little_memory(path: Path, *expressions: str) -> list[str]:
    """What expressions with the file's path give, in little memory and time."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.formats.orc.test_sizes", str(path), *expressions],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-800:]
    report = json.loads(done.stdout)
    assert report["peak_mb"] < MOST_MB, report
    return list(report["results"])


def require_refused(path: Path, *expressions: str) -> None:
    """Each of the expressions gives the error of a bad file."""
    found = read_in_little_memory(path, *expressions)
    assert len(found) == len(expressions)
    assert all("FileFormatError" in result for result in found), found


def main() -> None:
    path, *expressions = sys.argv[1:]
    limit = memory("VmSize") + (2 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    results = []
    for expression in expressions:
        try:
            results.append(str(eval(expression, {"fs": fs, "path": path})))
        except Exception as error:
            results.append(f"{type(error).__name__}: {error}")
    print(json.dumps({"results": results, "peak_mb": memory("VmHWM") - before >> 20}))


def lengths_of(number: int, size: int) -> bytes:
    """Three hundred times a length of so many bytes."""
    return (bytes([size - 1 << 3 | 7]) + number.to_bytes(size, "big")) * 30


@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
@pytest.mark.parametrize(("column", "number"), [(2, 2**20), (3, 2**27), (8, 2**26)], ids=str)
def test_lengths_that_are_too_much_together_cost_nothing(
    tmp_path: Path, codec: str, column: int, number: int
) -> None:
    rows = TABLE.slice(0, 300)
    data = written_at_once(rows, compression=codec, dictionary_key_size_threshold=0)
    file = Crafted(data).change_streams(LENGTH, column, lambda _: lengths_of(number, 4))
    path = tmp_path / "lengths.orc"
    path.write_bytes(file.to_bytes())
    scan = f"fs.scan(path).select({ ({2: 'text', 3: 'list', 8: 'names'}[column])!r})"
    ways = ("", ".skip(250).head(3)", ".tail(1)")
    require_refused(path, *(f"{scan}{way}.to_arrow()" for way in ways))


FALLING = bytes([0xC1, 0xFF, 5, 0x6F])
"""Lengths that fall below zero: of these Arrow's reader dies."""


@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
@pytest.mark.parametrize(("column", "name"), [(2, "text"), (3, "list"), (8, "names")])
def test_lengths_of_strides_that_claim_no_values_are_checked(
    tmp_path: Path, codec: str, column: int, name: str
) -> None:
    """Positions that say the same leave the claim without a contradiction."""
    options = {"row_index_stride": 1_000, "dictionary_key_size_threshold": 0}
    data = written_at_once(TABLE, compression=codec, **options)
    file = Crafted(data).change_streams(LENGTH, column, lambda _: FALLING * 20)
    for each in (column, column + 1) if name != "text" else (column,):
        (strides,) = file.strides(each)
        empty = {"values": 0, "string": None, "int": None}
        file.set_strides(
            each, [[{**empty, "positions": [0] * len(one["positions"])} for one in strides]]
        )
    path = tmp_path / "lengths.orc"
    path.write_bytes(file.to_bytes())
    scan = f"fs.scan(path).select({name!r})"
    ways = ("", ".skip(1_500).head(3)", ".skip(500).head(1_000)", ".tail(1)")
    require_refused(path, *(f"{scan}{way}.to_arrow()" for way in ways))


def with_rows(data: bytes, count: int) -> bytes:
    file = Crafted(data)
    file.stripes[0].information[STRIPE_ROWS] = [count]
    file.footer[ROWS] = [count]
    return file.to_bytes()


@pytest.mark.parametrize("count", [2**28, 2**40])
def test_rows_that_a_stripe_does_not_have_cost_nothing(tmp_path: Path, count: int) -> None:
    path = tmp_path / "rows.orc"
    path.write_bytes(with_rows(made("zstd"), count))
    names = TABLE.column_names
    require_refused(path, *(f"fs.scan(path).select({name!r}).to_arrow()" for name in names))


def parquet_with_rows(table: pa.Table, count: int) -> bytes:
    """A footer that claims so many rows, and as many values of each column."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = decoded(data[begin:-8])
    for place, kind, value in list(spots(footer)):
        if kind == TType.I64 and value == table.num_rows:
            footer = changed(footer, place, count)
    body = encoded_thrift(footer)
    return data[:begin] + body + len(body).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("count", [2**34, 2**40])
@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_rows_that_are_only_counted_cost_nothing(tmp_path: Path, kind: str, count: int) -> None:
    table = pa.table({"x": [1] * 4_321})
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        path.write_bytes(parquet_with_rows(table, count))
    else:
        file = Crafted(with_rows(written_at_once(table, compression="zstd"), count))
        file.set_stripe_statistics(1, [{"values": count, "has_null": False}])
        path.write_bytes(file.to_bytes())
    scan = "fs.scan(path).filter(fs.col('x') == 1)"
    found = read_in_little_memory(path, f"{scan}.count()", f"{scan}.head(2**33).count()")
    assert found == [str(count), str(2**33)]


@pytest.mark.parametrize("count", [2**28, 2**32 - 1])
def test_dictionary_entries_that_are_not_there_cost_nothing(tmp_path: Path, count: int) -> None:
    file = Crafted(made("zstd"))
    for stripe in file.stripes:
        encodings = [parsed(each) for each in stripe.footer[ENCODINGS]]
        encodings[7][DICTIONARY_SIZE] = [count]
        stripe.footer[ENCODINGS] = [encoded(each) for each in encodings]
    path = tmp_path / "dictionary.orc"
    path.write_bytes(file.to_bytes())
    require_refused(path, "fs.scan(path).select('name').to_arrow()")


SCALES = {
    "huge": (bytes([7 << 3 | 7]) + b"\x7f" * 8) * 10,
    "below zero": bytes([7, 1]) * 10,
    "again and again below zero": bytes([0xC0, 99, 3, 0]),
    "one after the other below zero": bytes([0x4E, 99, *range(1, 75, 2), *range(1, 127, 2)]),
    "of the first version below zero": bytes([97, 0, 1]),
}


@pytest.mark.parametrize("scales", SCALES)
def test_scales_that_no_decimal_has_do_not_hang(tmp_path: Path, scales: str) -> None:
    table = pa.table({"x": pa.array([*range(100)], pa.decimal128(38, 0))})
    file = Crafted(written_at_once(table, compression="zlib"))
    file.change_streams(SECONDARY, 1, lambda _: SCALES[scales])
    if "first version" in scales:
        for stripe in file.stripes:
            stripe.footer[ENCODINGS] = [encoded({1: [0]}) for _ in stripe.footer[ENCODINGS]]
    path = tmp_path / "scales.orc"
    path.write_bytes(file.to_bytes())
    require_refused(path, "fs.scan(path).to_arrow()")


def test_many_lengths_of_all_kinds_are_still_read() -> None:
    """Sizes that are right are no obstacle, however they are encoded."""
    lengths = [*([1] * 5_000), *(i % 300 for i in range(5_000)), *range(2_000), 70_000, 0, 3]
    table = pa.table(
        {"x": ["a" * size for size in lengths], "y": [[1] * (n % 50) for n in lengths]}
    )
    for codec in CODECS:
        data = written_at_once(table, compression=codec, row_index_stride=1_000)
        assert fs.scan(data).to_arrow().equals(orc.ORCFile(pa.BufferReader(data)).read())
        assert fs.scan(data).skip(9_990).head(20).to_arrow().equals(table.slice(9_990, 20))


def test_damaged_streams_do_no_harm_and_give_no_other_rows() -> None:
    assert not judge(0, 60)


@pytest.mark.parametrize("seed", MOVED)
def test_values_that_moved_are_seen_by_the_statistics_of_their_strides(seed: int) -> None:
    """Bytes were put into a stream: what positions lead to has as many values as it should."""
    _, data, before = damaged(seed)
    assert not list(differences(data, before, None, {"window": dict(ways(data, seed))["window"]()}))


@pytest.mark.deep
@pytest.mark.parametrize("shard", range(5))
def test_many_damaged_streams_do_no_harm_and_give_no_other_rows(shard: int) -> None:
    count = 200 * MORE
    assert not judge(10_000 + count * shard, count)


if __name__ == "__main__":
    main()
