"""ORC files damaged in chunk headers, run headers and lengths, and what comes of reading them.

For the tests: `judge` reads the files of some seeds in a process with limits of memory and time,
and says what is wrong. That process runs this module: in come the first seed and how many
there are, out goes a JSON line before each file, one when fretsaw has read it in every way, and
one when that was held against what pyarrow reads of the same bytes.
"""

import contextlib
import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.orc as orc

import fretsaw as fs
from tests.support.hostile import SECONDS, Part, limit_memory, memory, outcome, rows_of, same
from tests.support.orc_craft import (
    BLOCK_SIZE,
    COMPRESSION,
    ENCODINGS,
    INDEX_KINDS,
    ROWS,
    STRIPE_ROWS,
    Crafted,
    Stream,
    encoded,
    opened,
    parsed,
    varint,
    written_at_once,
)
from tests.support.orc_files import codec_of_pyorc, pyorc_bytes, pyorc_table

COUNT, STRIDE = 2_500, 1_000
MOST_MB = 400
PATIENCE = 1
"""Seconds that pyarrow gets for a file, at which it may hang."""
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
LENGTHS, DICTIONARY_SIZE = 2, 2

MODULE = "tests.support.orc_damage"


def _values(make: Callable[[int], Any], kind: pa.DataType, nulls: bool = True) -> pa.Array:
    return pa.array([None if nulls and i % 11 == 3 else make(i) for i in range(COUNT)], kind)


def _mixed(i: int) -> int:
    return i * 2_654_435_761 % 2**32


SHAPES: Mapping[str, Callable[[], pa.Array]] = {
    "numbers": lambda: _values(lambda i: _mixed(i) >> i % 32, pa.int64()),
    "repeated": lambda: _values(lambda i: i // 700, pa.int64(), nulls=False),
    "words": lambda: _values(lambda i: f"{_mixed(i):x}"[: 1 + i % 9], pa.string()),
    "names": lambda: _values(lambda i: f"name {i % 17}", pa.string()),
    "bytes": lambda: _values(lambda i: bytes([i % 256]) * (i % 40), pa.binary()),
    "flags": lambda: _values(lambda i: _mixed(i) % 3 == 0, pa.bool_()),
    "small": lambda: _values(lambda i: _mixed(i) % 128 - 64, pa.int8()),
    "reals": lambda: _values(lambda i: i / 7, pa.float64()),
    "money": lambda: _values(lambda i: Decimal(_mixed(i)) / 100, pa.decimal128(20, 2)),
    "large": lambda: _values(lambda i: Decimal(_mixed(i)) ** 3, pa.decimal128(38, 0)),
    "times": lambda: _values(
        lambda i: (
            dt.datetime(1969, 12, 1) + dt.timedelta(seconds=_mixed(i) % 10**7, microseconds=i)
        ),
        pa.timestamp("ns"),
    ),
    "days": lambda: _values(lambda i: dt.date(1969, 1, 1) + dt.timedelta(i), pa.date32()),
    "lists": lambda: _values(lambda i: list(range(_mixed(i) % 5)), pa.list_(pa.int64())),
    "texts": lambda: _values(
        lambda i: [None if j == 2 else "x" * j for j in range(_mixed(i) % 4)], pa.list_(pa.string())
    ),
    "maps": lambda: _values(
        lambda i: [(f"k{j}", j) for j in range(_mixed(i) % 3)], pa.map_(pa.string(), pa.int64())
    ),
    "structs": lambda: _values(
        lambda i: {"a": f"{i % 5}", "b": [i] * (i % 3)},
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]),
    ),
    "deep": lambda: _values(
        lambda i: [[i] * (j % 3) for j in range(_mixed(i) % 4)], pa.list_(pa.list_(pa.int32()))
    ),
}


@cache
def intact(shape: str, writer: str, codec: str) -> bytes:
    """A file of an ordinary column and one of the shape."""
    if shape == "unions":
        values = (_mixed(i) if i % 3 else f"text {i}" for i in range(COUNT))
        return pyorc_bytes(
            "struct<id:bigint,v:uniontype<bigint,string>>",
            enumerate(values),
            compression=codec_of_pyorc(codec),
            row_index_stride=STRIDE,
        )
    table = pa.table({"id": pa.array(range(COUNT)), "v": SHAPES[shape]()})
    if writer == "pyorc":
        sizes = {"compression_block_size": 512, "memory_block_size": 512}
        codec_kind = codec_of_pyorc(codec)
        return pyorc_table(table, compression=codec_kind, row_index_stride=STRIDE, **sizes)
    has_dictionary = {"dictionary_key_size_threshold": 0.9} if shape == "names" else {}
    return written_at_once(table, compression=codec, row_index_stride=STRIDE, **has_dictionary)


# Damage


def _packed(data: bytes, codec: int, block: int, pick: random.Random) -> bytes:
    """Bytes as a stream has them, compressed as the file's others or as they are."""
    if not codec:
        return data
    parts = []
    for begin in range(0, len(data), block):
        part = data[begin : begin + block]
        body = {
            1: lambda part=part: zlib.compress(part, wbits=-15),
            2: lambda part=part: bytes(cramjam.snappy.compress_raw(part)),
            4: lambda part=part: bytes(cramjam.lz4.compress_block(part, store_size=False)),
            5: lambda part=part: bytes(cramjam.zstd.compress(part)),
        }[codec]()
        as_is = pick.random() < 0.3 or len(body) >= len(part)
        body = part if as_is else body
        parts.append((len(body) << 1 | as_is).to_bytes(3, "little") + body)
    return b"".join(parts)


def _flipped(data: bytes, place: int, pick: random.Random) -> bytes:
    changed = bytearray(data)
    if changed:
        place %= len(changed)
        changed[place] = pick.choice(
            [changed[place] ^ 1 << pick.randrange(8), pick.randrange(256), 255, 0, 0x7F]
        )
    return bytes(changed)


def _chunk_header(stream: Stream, pick: random.Random) -> str:
    begins = [0]
    while (begin := begins[-1]) + 3 < len(stream.body):
        header = int.from_bytes(stream.body[begin : begin + 3], "little")
        begins.append(begin + 3 + (header >> 1))
    begin = pick.choice(begins[:-1] or [0])
    if pick.random() < 0.5:
        stream.body = _flipped(stream.body, begin + pick.randrange(3), pick)
        return f"chunk header at {begin} flipped"
    begin = (begins[:-1] or [0])[-1]
    more = pick.choice([-9, -1, 1, 2, 3, 5, 40, 1_000])
    header = int.from_bytes(stream.body[begin : begin + 3], "little") + 2 * more
    stored = (header & 0xFFFFFF).to_bytes(3, "little")
    stream.body = stream.body[:begin] + stored + stream.body[begin + 3 :]
    return f"last chunk longer by {more}"


def _lengths(pick: random.Random) -> bytes:
    """Runs of lengths that no file has."""
    size = pick.choice([1, 2, 3, 4, 5, 8])
    number = pick.choice([255, 200, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, pick.randrange(256)])
    stored = (number % 2 ** (8 * size)).to_bytes(size, "big")
    short = bytes([size - 1 << 3 | 7]) + stored
    falling = bytes([0xC1, 0xFF, 5, 0x6F])
    constant = bytes([0xC1, 0xFF]) + varint(number) + b"\0"
    first = bytes([0x7F, 0x00]) + varint(number)
    run: bytes = pick.choice([short, falling, constant, first])
    return run * pick.choice([1, 3, 300])


def _contents(stream: Stream, data: bytes, pick: random.Random) -> tuple[str, bytes]:
    """Bytes of a stream, changed where a run begins or anywhere."""
    kind = pick.randrange(7)
    place = pick.choice([0, 1, 2, 3, pick.randrange(max(len(data), 1)), len(data) - 1])
    if kind < 3:
        return f"byte {place}", _flipped(data, place, pick)
    if kind == 3:
        return f"cut at {place}", data[: max(place, 0)]
    if kind == 4:
        return f"twice from {place}", data[: max(place, 0)] + data
    if kind == 5 and stream.kind == LENGTHS:
        return "lengths", _lengths(pick)
    size = pick.choice([1, 2, 9, 60])
    return f"{size} random", data[: max(place, 0)] + pick.randbytes(size) + data[max(place, 0) :]


def _claims(file: Crafted, stripe: Any, pick: random.Random) -> str:
    """How many rows there are, or entries of a dictionary."""
    count = pick.choice([0, 1, COUNT + 1, 2**16, 2**24, 2**28, 2**31 - 1, 2**32 - 1])
    if pick.random() < 0.5:
        stripe.information[STRIPE_ROWS] = [count]
        file.footer[ROWS] = [count]
        return f"{count} rows"
    encodings = [parsed(each) for each in stripe.footer[ENCODINGS]]
    for each in encodings[2:]:
        each[DICTIONARY_SIZE] = [count]
    stripe.footer[ENCODINGS] = [encoded(each) for each in encodings]
    return f"{count} entries"


def damaged(seed: int) -> tuple[str, bytes, bytes]:
    """What was done, a damaged file, and what it was before."""
    pick = random.Random(seed)
    shape = pick.choice([*SHAPES, "unions"])
    writer, codec = pick.choice(["pyarrow", "pyorc"]), pick.choice(CODECS)
    before = intact(shape, writer, codec)
    file = Crafted(before)
    stripe = pick.choice(file.stripes)
    number = file.postscript.get(COMPRESSION, [0])[0]
    block = file.postscript.get(BLOCK_SIZE, [1 << 16])[0]
    streams = [s for s in stripe.streams if s.kind not in INDEX_KINDS and s.body]
    stream = pick.choice([s for s in streams if s.column > 1] or streams)
    where = f"{shape} by {writer} {codec}, stream {stream.kind} of {stream.column}"
    if pick.random() < 0.05:
        return f"{where}: {_claims(file, stripe, pick)}", file.to_bytes(), before
    if number and pick.random() < 0.3:
        return f"{where}: {_chunk_header(stream, pick)}", file.to_bytes(), before
    what, data = _contents(stream, opened(stream.body, number, block), pick)
    stream.body = _packed(data, number, block, pick)
    return f"{where}: {what}", file.to_bytes(), before


# Reading


def ways(data: bytes, seed: int) -> Iterator[tuple[str, Callable[[], Part | None]]]:
    """How the file is read besides at once: each gives row numbers and rows, or nothing."""
    pick = random.Random(seed)
    first = pick.randrange(COUNT)
    scan = fs.scan(data)

    def window() -> Part:
        part = scan.skip(first).head(5).to_arrow()
        return list(range(first, first + part.num_rows)), part

    def tail() -> Part:
        part, count = scan.tail(3).to_arrow(), scan.count()
        return list(range(count - part.num_rows, count)), part

    def matches() -> Part:
        condition = fs.col("id") >= COUNT - 300 if seed % 2 else fs.col("v").is_not_null()
        part = scan.with_row_index("n").filter(condition).to_arrow()
        return part["n"].to_pylist(), part.drop(["n"])

    def take() -> Part:
        numbers = sorted({first, COUNT - 1 - first, 7})
        if fs.scan(data).count() < COUNT:
            return [], scan.head(0).to_arrow()
        return numbers, scan.take(numbers)

    def columns() -> None:
        for batch in scan.columns(batch_size=700):
            for name in ("id", "v"):
                with contextlib.suppress(KeyError):  # of several leaves
                    _ = batch[name].values if name == "id" else batch[name].layers

    def rows() -> None:
        for _ in scan.skip(first).head(20).rows():
            pass

    yield "window", window
    yield "tail", tail
    yield from [("matches", matches), ("take", take)][seed % 2 :][:1]
    yield from [("columns", columns), ("rows", rows)][seed % 2 :][:1]


def attempt(read: Callable[[], Any], errors: dict[str, Any], name: str) -> Any:
    try:
        return read()
    except Exception as error:  # which one is for the tests to judge
        if not isinstance(error, fs.FileFormatError):
            errors[name] = outcome(error)
        return None


def main() -> None:
    limit_memory()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    first, count = map(int, sys.argv[1:3])
    for seed in range(first, first + count):
        what, data, before = damaged(seed)
        print(json.dumps({"seed": seed, "what": what}), flush=True)
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        taken = memory("VmRSS")
        signal.alarm(SECONDS)
        errors: dict[str, Any] = {}
        table = attempt(fs.scan(data).to_arrow, errors, "all")
        parts = [(name, attempt(way, errors, name)) for name, way in ways(data, seed)]
        signal.alarm(0)
        peak = memory("VmHWM") - taken >> 20
        print(json.dumps({"seed": seed, "errors": errors, "peak_mb": peak}), flush=True)
        # Apart, since pyarrow may crash.
        child = os.fork()
        if not child:
            signal.alarm(PATIENCE)
            differs = sorted(differences(data, before, table, dict(parts)))
            signal.alarm(0)
            print(json.dumps({"seed": seed, "differs": differs}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def differences(
    data: bytes, before: bytes, table: pa.Table | None, parts: Mapping[str, Part | None]
) -> Iterator[str]:
    """What was read and is neither what pyarrow reads nor what was there before the damage.

    Of a file that nobody can read as a whole, nothing says what its parts are.
    """
    original = orc.ORCFile(pa.BufferReader(before)).read()
    expected = [original]
    with contextlib.suppress(Exception):
        expected.append(orc.ORCFile(pa.BufferReader(data)).read())
    if table is None and len(expected) == 1:
        return
    if table is not None and not any(_same(table, each) for each in expected):
        if len(expected) > 1:
            yield "all"
        expected.append(table)
    for name, part in parts.items():
        if part is None:
            continue
        numbers, rows = part
        possible = [each for each in expected if each.num_rows > max(numbers, default=-1)]
        if not any(_same(rows, rows_of(each, numbers)) for each in possible):
            yield name


def _same(one: pa.Table, other: pa.Table) -> bool:
    try:
        return same(one, other)
    except pa.ArrowException:  # no well-formed values, for pyarrow as well
        return bool(one.shape == other.shape)


# What the tests use


MOVED = ("random", "twice")
"""Damage behind which all bytes of a stream are elsewhere than the row index says."""


def judge(first: int, count: int) -> list[dict[str, Any]]:
    """Seeds of files that did harm, or gave rows that must not be.

    What moved cannot always be seen: a stride that is found by its position in a stream may begin
    with other values than it did, and still have as many as its statistics say, between the same
    bounds and with the same sum. Floats and times have no sum, elements of lists no count of rows,
    and nulls may change places with values. All of a file is never read that way.
    """
    results: dict[int, dict[str, Any]] = {}
    following, end = first, first + count
    while following < end:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.support.orc_damage",
                str(following),
                str(end - following),
            ],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=3_000,
            check=False,
        )
        for line in done.stdout.splitlines():
            report = json.loads(line)
            results.setdefault(report["seed"], {}).update(report)
        if done.returncode == 0:
            break
        last: dict[str, Any] = results[max(results)]
        last["died"] = f"{done.returncode} {done.stderr[-300:]}"
        following = last["seed"] + 1
    assert len(results) == count
    return [one for one in results.values() if _is_harm(one)]


def _is_harm(result: dict[str, Any]) -> bool:
    if "died" in result or result["errors"] or result["peak_mb"] > MOST_MB:
        return True
    differs = result.get("differs") or ()
    return "all" in differs or (bool(differs) and not any(word in result["what"] for word in MOVED))


if __name__ == "__main__":
    main()
