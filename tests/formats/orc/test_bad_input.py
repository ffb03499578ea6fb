"""Bad ORC files give the contract's errors and nothing else: no crash, no hang, no flood."""

import io
import itertools
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.orc as orc
import pytest

import fretsaw as fs
from fretsaw import col
from tests.support.depth import tiers
from tests.support.hostile import Bench, check
from tests.support.kernels import each_decoder
from tests.support.orc_craft import (
    BLOCK_SIZE,
    BLOOM_FILTER_UTF8,
    COMPRESSION,
    DATA,
    FOOTER_LENGTH,
    KIND,
    METADATA_LENGTH,
    NAMES,
    ROW_INDEX,
    STRIDE,
    STRIPE_FOOTER_LENGTH,
    STRIPES,
    SUBTYPES,
    Crafted,
    Message,
    encoded,
    packed,
    parsed,
    varint,
    written,
    written_at_once,
)

# Sample files

TABLE = pa.table(
    {
        "id": range(60),
        "text": [f"row {i % 9}" for i in range(60)],
        "real": [i / 7 for i in range(60)],
        "list": [list(range(i % 3)) for i in range(60)],
    }
)

pytestmark = [pytest.mark.slow, each_decoder()]
LAYOUT = {"row_index_stride": 10, "bloom_filter_columns": [1, 2]}
PLAIN = written_at_once(TABLE, **LAYOUT)
ZLIB = written(TABLE, 40, compression="zlib", **LAYOUT)
ZSTD = written(TABLE, 40, compression="zstd", **LAYOUT)
LZO = 3


def parts_of(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Stripes, metadata, footer and postscript."""
    end = len(data) - 1 - data[-1]
    postscript = parsed(data[end:-1])
    footer = end - postscript[FOOTER_LENGTH][0]
    metadata = footer - postscript[METADATA_LENGTH][0]
    return data[:metadata], data[metadata:footer], data[footer:end], data[end:-1]


BODY, METADATA, FOOTER, POSTSCRIPT = parts_of(PLAIN)


def assembled(
    body: bytes = BODY,
    metadata: bytes = METADATA,
    footer: bytes = FOOTER,
    postscript: Mapping[int, list[Any]] | None = None,
) -> bytes:
    """A file of these parts; their lengths are right unless the postscript is given."""
    lengths = {FOOTER_LENGTH: [len(footer)], METADATA_LENGTH: [len(metadata)]}
    tail = encoded(dict(postscript) if postscript else {**parsed(POSTSCRIPT), **lengths})
    return body + metadata + footer + tail + bytes([len(tail) & 255])


def bench_of(folder: Path, original: bytes = PLAIN) -> Bench:
    return Bench(folder, original, "orc")


# Messages with one value changed

Schema = Mapping[int, "Schema"]
STATISTICS: Schema = {2: {}, 3: {}, 4: {}}
FOOTER_SCHEMA: Schema = {3: {}, 4: {}, 7: STATISTICS}
METADATA_SCHEMA: Schema = {1: {1: STATISTICS}}
STRIPE_FOOTER_SCHEMA: Schema = {1: {}, 2: {}}
ROW_INDEX_SCHEMA: Schema = {1: {2: STATISTICS}}
BLOOM_SCHEMA: Schema = {1: {}}
NUMBERS = (0, 1, 7, 2**31 - 1, 2**32, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


def variants(message: Message, schema: Schema, path: str = "") -> Iterator[tuple[str, bytes]]:
    """The message with each value in it changed in each way, at every depth."""
    for number, values in message.items():
        where = f"{path}/{number}"
        yield f"{where} gone", encoded({k: v for k, v in message.items() if k != number})
        if where != "/3":  # stripes: twice as many are twice as many rows
            yield f"{where} doubled", encoded({**message, number: [*values, *values]})
        for place, value in enumerate(values):

            def with_value(new: Any, number: int = number, place: int = place) -> bytes:
                values = message[number]
                return encoded({**message, number: [*values[:place], new, *values[place + 1 :]]})

            at = f"{where}[{place}]"
            if isinstance(value, int):
                changed = sorted({*NUMBERS, value - 1, value + 1} - {value, -1, 2**64})
                yield from ((f"{at} = {new}", with_value(new)) for new in changed)
                continue
            yield f"{at} empty", with_value(type(value)(bytes(8)) if len(value) == 8 else b"")
            yield f"{at} cut", with_value(value[:-1]) if len(value) != 8 else with_value(b"")
            if number in schema:
                for name, inner in variants(parsed(value), schema[number], at):
                    yield name, with_value(inner)


def sampled(bench: Bench, cases: list[tuple[str, bytes]], count: int) -> None:
    """Some of the cases, always the same."""
    for name, data in random.Random(len(cases)).sample(cases, min(count, len(cases))):
        bench.add(name, data)


def footer_cases() -> list[tuple[str, bytes]]:
    footers = variants(parsed(FOOTER), FOOTER_SCHEMA)
    return [(f"footer {name}", assembled(footer=data)) for name, data in footers]


def metadata_cases() -> list[tuple[str, bytes]]:
    sections = variants(parsed(METADATA), METADATA_SCHEMA)
    return [(f"metadata {name}", assembled(metadata=data)) for name, data in sections]


def postscript_cases() -> list[tuple[str, bytes]]:
    tails = variants(parsed(POSTSCRIPT), {})
    start = BODY + METADATA + FOOTER
    return [(f"postscript {name}", start + tail + bytes([len(tail) & 255])) for name, tail in tails]


def stripe_footer_cases() -> list[tuple[str, bytes]]:
    footer = parsed(FOOTER)
    stripe = parsed(footer[STRIPES][0])
    start = len(BODY) - stripe[STRIPE_FOOTER_LENGTH][0]
    cases = []
    for name, data in variants(parsed(BODY[start:]), STRIPE_FOOTER_SCHEMA):
        moved = encoded({**stripe, STRIPE_FOOTER_LENGTH: [len(data)]})
        changed = encoded({**footer, STRIPES: [moved]})
        cases.append((f"stripe footer {name}", assembled(BODY[:start] + data, footer=changed)))
    return cases


def stream_cases(kind: int, schema: Schema) -> list[tuple[str, bytes]]:
    """Row indexes or Bloom filters of a number and of a text."""
    cases = []
    for column in (1, 2):
        (stripe,) = Crafted(PLAIN).stripes
        for name, data in variants(parsed(stripe.stream(kind, column).body), schema):
            file = Crafted(PLAIN).change_streams(kind, column, lambda body, data=data: data)  # type: ignore[misc]
            cases.append((f"stream {kind} of {column} {name}", file.to_bytes()))
    return cases


LIES: Mapping[str, Callable[[], list[tuple[str, bytes]]]] = {
    "footer": footer_cases,
    "metadata": metadata_cases,
    "postscript": postscript_cases,
    "stripe footer": stripe_footer_cases,
    "row index": lambda: stream_cases(ROW_INDEX, ROW_INDEX_SCHEMA),
    "Bloom filter": lambda: stream_cases(BLOOM_FILTER_UTF8, BLOOM_SCHEMA),
}


def test_the_parts_of_a_file_make_the_same_file_again() -> None:
    assert assembled() == PLAIN
    assert orc.ORCFile(io.BytesIO(Crafted(PLAIN).to_bytes())).read().equals(TABLE)
    for data in (ZLIB, ZSTD):
        assert orc.ORCFile(io.BytesIO(data)).read().equals(TABLE)


def test_metadata_that_lies_gives_an_error_or_the_right_rows(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for make in LIES.values():
        sampled(bench, make(), 25)
    check(bench.cases)


@pytest.mark.deep
@pytest.mark.parametrize("part", LIES)
def test_all_lies_of_a_part_give_an_error_or_the_right_rows(tmp_path: Path, part: str) -> None:
    bench = bench_of(tmp_path)
    sampled(bench, LIES[part](), 600)
    check(bench.cases)


# What is no ORC file, or not all of one


def test_what_is_not_orc_is_a_format_error(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    seeded = random.Random(7)
    for size in (1, 2, 3, 4, 5, 16, 255, 1_000, 70_000):
        bench.add(f"{size} bytes of magic", (b"ORC" * size)[:size])
        bench.add(f"magic and {size} random bytes", b"ORC" + seeded.randbytes(size))
        bench.add(f"{size} random bytes, magic", seeded.randbytes(size) + b"ORC\x03")
        bench.add(f"magic, {size} zeros, magic", b"ORC" + bytes(size) + b"ORC\x03")
    for length in (0, 1, len(POSTSCRIPT) - 1, len(POSTSCRIPT) + 1, 255):
        bench.add(f"postscript of {length} bytes", PLAIN[:-1] + bytes([length]))
    check(bench.cases, must_fail=True)


def test_a_truncated_file_is_a_format_error(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for name, data in {"plain": PLAIN, "zlib": ZLIB}.items():
        path = tmp_path / f"{name}.orc"
        path.write_bytes(data)
        start = len(parts_of(data)[0])
        for cut in itertools.chain(range(0, start, 397), range(start, len(data), 23)):
            bench.change(f"{name} cut at {cut}", path, cut=cut)
        bench.change(f"{name} without its last byte", path, cut=len(data) - 1)
    check(bench.cases, must_fail=True)


def test_a_file_that_is_truncated_anywhere_is_a_format_error(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    path = tmp_path / "zlib.orc"
    path.write_bytes(ZLIB)
    start = len(parts_of(ZLIB)[0])
    for cut in itertools.chain(range(0, start, 7), range(start, len(ZLIB))):
        bench.change(f"cut at {cut}", path, cut=cut)
    check(bench.cases, must_fail=True)


# Sizes that nobody has memory or time for

HUGE = (2**31 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**64 - 1)


def with_postscript(data: bytes, **changes: int) -> bytes:
    numbers = {"footer": FOOTER_LENGTH, "metadata": METADATA_LENGTH, "block": BLOCK_SIZE}
    numbers |= {"compression": COMPRESSION}
    body, metadata, footer, postscript = parts_of(data)
    told = {numbers[name]: [value] for name, value in changes.items()}
    return assembled(body, metadata, footer, {**parsed(postscript), **told})


def test_huge_lengths_are_format_errors(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for size in HUGE:
        for part in ("footer", "metadata"):
            for name, data in (("plain", PLAIN), ("zlib", ZLIB)):
                bench.add(f"{part} of {size} in {name}", with_postscript(data, **{part: size}))
    check(bench.cases, must_fail=True)


def test_a_huge_compression_block_costs_nothing(tmp_path: Path) -> None:
    for name, data in (("zlib", ZLIB), ("zstd", ZSTD)):
        bench = bench_of(tmp_path, data)
        for size in (0, 1, 100, *HUGE):
            bench.add(f"{name} in blocks of {size}", with_postscript(data, block=size))
        check(bench.cases)


def test_huge_counts_of_rows_are_errors_or_ignored(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    footer = parsed(FOOTER)
    stripe = parsed(footer[STRIPES][0])
    for count in HUGE:
        bench.add(
            f"{count} rows in a stripe",
            assembled(footer=encoded({**footer, STRIPES: [encoded({**stripe, 5: [count]})]})),
        )
        bench.add(f"{count} rows in all", assembled(footer=encoded({**footer, 6: [count]})))
        bench.add(f"strides of {count}", assembled(footer=encoded({**footer, STRIDE: [count]})))
    check(bench.cases)


def text_field(number: int, size: int) -> bytes:
    """A field that claims to have so many bytes, and has none."""
    return varint(number << 3 | 2) + varint(size)


def test_fields_that_claim_huge_sizes_are_format_errors(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for size in HUGE:
        bench.add(f"footer field of {size}", assembled(footer=FOOTER + text_field(4, size)))
        bench.add(f"unknown field of {size}", assembled(footer=FOOTER + text_field(99, size)))
        bench.add(f"metadata of {size}", assembled(metadata=METADATA + text_field(1, size)))
    for wire_type in (3, 4, 6, 7):
        data = FOOTER + varint(99 << 3 | wire_type)
        bench.add(f"wire type {wire_type}", assembled(footer=data))
    bench.add("endless varint", assembled(footer=FOOTER + b"\xff" * 100_000))
    bench.add("groups in groups", assembled(footer=FOOTER + varint(99 << 3 | 3) * 100_000))
    check(bench.cases)


# Types


def with_types(change: Callable[[list[Message]], list[Message]]) -> bytes:
    return Crafted(PLAIN).set_types(change).to_bytes()


def with_subtypes(place: int, *numbers: int) -> bytes:
    """The subtypes of one type are others."""

    def change(types: list[Message]) -> list[Message]:
        names = [f"f{i}".encode() for i in range(len(numbers))]
        types[place] = {KIND: [12], SUBTYPES: [packed(numbers)], NAMES: names}
        return types

    return with_types(change)


def chain(depth: int, kind: int) -> Callable[[list[Message]], list[Message]]:
    """A column within so many structs or lists."""

    def change(types: list[Message]) -> list[Message]:
        names: Message = {NAMES: [b"f"]} if kind == 12 else {}
        deep: list[Message] = [{KIND: [12], SUBTYPES: [packed([1])], NAMES: [b"root"]}]
        deep += [{KIND: [kind], SUBTYPES: [packed([i + 2])], **names} for i in range(depth)]
        return [*deep, {KIND: [4]}]

    return change


def test_types_that_are_no_tree_are_format_errors(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    cases = {
        "the root in itself": with_subtypes(0, 0),
        "a column in itself": with_subtypes(2, 2),
        "a column in its child": with_subtypes(1, 0),
        "two in each other": with_subtypes(1, 2, 1),
        "beyond the types": with_subtypes(0, 1, 99),
        "far beyond the types": with_subtypes(0, 1, 2**32 - 1),
        "the same one twice": with_subtypes(0, 1, 1, 2),
        "no types": with_types(lambda types: []),
        "only a root": with_types(lambda types: types[:1]),
        "a root that is a number": with_types(lambda types: [{KIND: [4]}]),
        "an unknown kind": with_types(lambda types: [*types[:1], {KIND: [77]}, *types[2:]]),
        "a list of nothing": with_types(lambda types: [*types[:1], {KIND: [10]}, *types[2:]]),
        "a map of one": with_types(
            lambda types: [*types[:1], {KIND: [11], SUBTYPES: [packed([2])]}, *types[2:]]
        ),
    }
    for name, data in cases.items():
        bench.add(name, data)
    check(bench.cases, must_fail=True)


def test_names_that_are_not_utf8_are_an_error_or_no_obstacle(tmp_path: Path) -> None:
    structs = [{"inner": i, "other": str(i)} for i in range(60)]
    data = written_at_once(TABLE.append_column("struct", pa.array(structs)), **LAYOUT)
    bench = bench_of(tmp_path, data)

    def renamed(place: int) -> Callable[[list[Message]], list[Message]]:
        def change(types: list[Message]) -> list[Message]:
            types[place][NAMES][1] = b"t\xffxt"
            return types

        return change

    for name, place in {"at the top": 0, "in a struct": 6}.items():
        bench.add(name, Crafted(data).set_types(renamed(place)).to_bytes())
    check(bench.cases)


def test_a_stream_without_a_kind_is_an_error_or_no_stream(tmp_path: Path) -> None:
    """Nothing says that it tells nulls, though 0 is the number of those that do."""
    bench = bench_of(tmp_path)
    for name, data in stripe_footer_cases():
        if name.endswith("/1 gone"):
            bench.add(name, data)
    assert len(bench.cases) > 10
    check(bench.cases)


def test_deeply_nested_types_are_format_errors(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for depth in (1_000, 20_000):
        for kind in (12, 10):
            bench.add(f"{depth} of kind {kind}", with_types(chain(depth, kind)))
    check(bench.cases, must_fail=True)


def test_wide_files_that_hold_nothing_are_errors_or_read(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)

    def wide(types: list[Message]) -> list[Message]:
        names = [f"f{i}".encode() for i in range(5_000)]
        root: Message = {KIND: [12], SUBTYPES: [packed(range(1, 5_001))], NAMES: names}
        return [root, *({KIND: [4]} for _ in names)]

    bench.add("5,000 columns without streams", with_types(wide))
    check(bench.cases, must_fail=True)


# Chunks


def bomb(codec: str, size: int) -> bytes:
    """A chunk that grows to so many zeros."""
    if codec == "zlib":
        deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
        body = b"".join(deflate.compress(bytes(1 << 20)) for _ in range(size >> 20))
        body += deflate.flush()
    else:
        body = bytes(cramjam.zstd.compress(bytes(size), 1))
    return (len(body) << 1).to_bytes(3, "little") + body


@tiers("codec", ["zlib", "zstd"], often=["zlib"])
def test_chunks_that_explode_are_format_errors(tmp_path: Path, codec: str) -> None:
    data = {"zlib": ZLIB, "zstd": ZSTD}[codec]
    bench = bench_of(tmp_path, data)
    body, metadata, footer, _ = parts_of(data)
    explosive = bomb(codec, 1 << 30)
    bench.add("footer", with_lengths(data, body, metadata, explosive))
    bench.add("behind the footer", with_lengths(data, body, metadata, footer + explosive))
    for kind in (ROW_INDEX, BLOOM_FILTER_UTF8, DATA):
        file = Crafted(data)
        for stripe in file.stripes:
            stripe.stream(kind, 2).body = explosive
        bench.add(f"stream {kind}", file.to_bytes())
    check(bench.cases)


def with_lengths(data: bytes, body: bytes, metadata: bytes, footer: bytes) -> bytes:
    postscript = parsed(parts_of(data)[3])
    lengths = {FOOTER_LENGTH: [len(footer)], METADATA_LENGTH: [len(metadata)]}
    return assembled(body, metadata, footer, {**postscript, **lengths})


def test_chunks_that_go_beyond_their_stream_are_errors(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, ZLIB)
    body, metadata, footer, _ = parts_of(ZLIB)
    heads = {
        "longer than the rest": b"\xff\xff\xff",
        "of nothing": b"\x00\x00\x00",
        "of nothing, original": b"\x01\x00\x00",
    }
    for name, head in heads.items():
        bench.add(f"footer {name}", with_lengths(ZLIB, body, metadata, head + footer[3:]))
        bench.add(f"metadata {name}", with_lengths(ZLIB, body, head + metadata[3:], footer))
        for kind in (ROW_INDEX, BLOOM_FILTER_UTF8, DATA):
            file = Crafted(ZLIB)
            stream = file.stripes[0].stream(kind, 2)
            stream.body = head + stream.body[3:]
            bench.add(f"stream {kind} {name}", file.to_bytes())
        bench.add(f"half a head {name}", with_lengths(ZLIB, body, metadata, footer + head[:2]))
    check(bench.cases)


# Lengths of texts and lists

LENGTH_STREAM = 2


def repeated(value: int, width: int = 8) -> bytes:
    """Sixty times a number, in runs of the second version."""
    return (bytes([(width - 1) << 3 | 7]) + value.to_bytes(width, "big")) * 6


LENGTHS: Mapping[str, bytes] = {
    "falling below zero": bytes([0xC0, 59, 5, 0x6F]),
    "of all ones": repeated(2**64 - 1),
    "negative": repeated(2**63),
    "huge": repeated(2**40),
    "almost 2**31": repeated(2**31 - 1, 4),
    "too long": repeated(200, 1),
}


def test_lengths_that_do_not_fit_are_format_errors(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for column in (2, 4):
        for name, body in LENGTHS.items():
            file = Crafted(PLAIN).change_streams(LENGTH_STREAM, column, lambda _, body=body: body)  # type: ignore[misc]
            bench.add(f"{name} in {column}", file.to_bytes())
    check(bench.cases, must_fail=True)


def test_lengths_that_are_too_short_are_an_error_or_what_pyarrow_reads(tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for column, value in itertools.product((2, 4), (0, 1)):
        body = repeated(value, 1)
        file = Crafted(PLAIN).change_streams(LENGTH_STREAM, column, lambda _, body=body: body)  # type: ignore[misc]
        bench.add(f"{value} in {column}", file.to_bytes())
    check(bench.cases)


# Codecs


def as_lzo() -> bytes:
    """A file that is LZO by name, with chunks that say they are not compressed."""
    file = Crafted(ZLIB)
    for stripe in file.stripes:
        stripe.streams = [s for s in stripe.streams if s.kind not in (ROW_INDEX, BLOOM_FILTER_UTF8)]
        for stream in stripe.streams:
            file.change_streams(stream.kind, stream.column, lambda body: body)
    file.footer[STRIDE] = [0]
    file.postscript[COMPRESSION] = [LZO]
    return file.to_bytes()


def test_lzo_is_read_or_refused_by_name() -> None:
    data = as_lzo()
    assert orc.ORCFile(io.BytesIO(data)).read().equals(TABLE)
    try:
        whole = fs.scan(data).to_arrow()
    except fs.FileFormatError:
        with pytest.raises(fs.FileFormatError, match="LZO"):
            fs.scan(data).to_arrow()
        return
    assert whole.equals(TABLE)
    assert fs.scan(data).skip(41).head(3).to_arrow().equals(TABLE.slice(41, 3))
    assert fs.scan(data).filter(fs.col("id") == 7).to_arrow().equals(TABLE.slice(7, 1))


def test_an_unknown_codec_is_a_format_error() -> None:
    for codec in (6, 77, 2**31 - 1):
        with pytest.raises(fs.FileFormatError):
            fs.scan(with_postscript(ZLIB, compression=codec)).to_arrow()


def test_a_codec_that_is_not_that_of_the_chunks_is_a_format_error(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, ZLIB)
    for codec in (0, 2, LZO, 4, 5, 6):
        bench.add(f"codec {codec}", with_postscript(ZLIB, compression=codec))
        bench.add(f"plain as codec {codec}", with_postscript(PLAIN, compression=codec or 1))
    check(bench.cases, must_fail=True)


# Files by other writers

CORRUPT = (
    "missing_blob_stream_in_string_dict",
    "missing_length_stream_in_string_dict",
    "negative_dict_entry_lengths",
    "stripe_footer_bad_column_encodings",
)


@pytest.mark.parametrize("name", CORRUPT)
def test_broken_files_by_other_writers_are_named(name: str, corpus: Path) -> None:
    path = corpus / "orc" / "corrupt" / f"{name}.orc"
    for use in (
        lambda scan: scan.to_arrow(),
        lambda scan: list(scan.rows()),
        lambda scan: scan.tail(3).to_arrow(),
    ):
        with pytest.raises(fs.FileFormatError, match=name):
            use(fs.scan(path))


def test_broken_files_by_other_writers_do_no_harm(corpus: Path, tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for name in CORRUPT:
        bench.change(name, corpus / "orc" / "corrupt" / f"{name}.orc")
    bench.change("zero", corpus / "orc" / "zero.orc")
    check(bench.cases, must_fail=True)


def readable_files(corpus: Path) -> Iterator[Path]:
    for path in sorted((corpus / "orc").glob("*.orc")):
        if path.stat().st_size:
            yield path


MANY_ROWS = ("orc_split_elim", "nulls-at-end", "TestOrcFile.testDate1900", "TestStringDictionary")


def flips(path: Path, count: int) -> Iterator[tuple[str, list[int]]]:
    """Damage, every other time where the metadata is."""
    seeded = random.Random(path.name)
    data = path.read_bytes()
    starts = (len(parts_of(data)[0]), 0)
    for number in range(count):
        offset = seeded.randrange(starts[number % 2], len(data))
        change = seeded.choice([1 << seeded.randrange(8), seeded.randrange(1, 256)])
        yield f"{path.name} {number}: {offset} ^ {change}", [offset, change]


def test_a_few_flipped_bytes_give_an_error_or_what_pyarrow_reads(
    corpus: Path, tmp_path: Path
) -> None:
    bench = bench_of(tmp_path)
    for path in readable_files(corpus):
        for name, flip in flips(path, 2 if path.name.startswith(MANY_ROWS) else 12):
            bench.change(name, path, flip=flip)
    assert len(bench.cases) == 10 * 12 + 6 * 2
    check(bench.cases)


# A damaged length shifts the values behind it, for pyarrow as well; a window there is found by the
# row index, and gives what was written.
SHIFTED = (": 14674 ^ 64", ": 14234 ^ 4", ": 1394 ^ 150")


@pytest.mark.deep
@pytest.mark.parametrize("shard", range(4))
def test_a_flipped_byte_gives_an_error_or_what_pyarrow_reads(
    corpus: Path, tmp_path: Path, shard: int
) -> None:
    bench = bench_of(tmp_path)
    for path in itertools.islice(readable_files(corpus), shard, None, 4):
        for name, flip in flips(path, 200):
            if not name.endswith(SHIFTED):
                bench.change(name, path, flip=flip, windows=3)
    check(bench.cases)


@tiers("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"], often=["zlib"])
def test_a_flipped_byte_in_a_file_of_pyarrow(tmp_path: Path, codec: str) -> None:
    table = pa.table({**{n: TABLE[n] for n in TABLE.column_names}, "again": TABLE["text"]})
    path = tmp_path / "whole.orc"
    path.write_bytes(written(table, 40, compression=codec, **LAYOUT))
    bench = bench_of(tmp_path)
    for name, flip in flips(path, 100):
        if not name.endswith(SHIFTED):
            bench.change(name, path, flip=flip, windows=4)
    check(bench.cases)


def test_a_truncated_file_of_another_writer_is_a_format_error(corpus: Path, tmp_path: Path) -> None:
    bench = bench_of(tmp_path)
    for path in readable_files(corpus):
        seeded = random.Random(path.name)
        size = path.stat().st_size
        for cut in (size - 1, size - 5, size // 2, seeded.randrange(size)):
            bench.change(f"{path.name} cut at {cut}", path, cut=cut)
    check(bench.cases, must_fail=True)


# Values that contradict their statistics


def test_values_outside_of_the_bounds_of_their_stride_are_an_error_or_right(tmp_path: Path) -> None:
    """A damaged double is still a double: only its bounds can tell."""
    file = Crafted(PLAIN)
    (stripe,) = file.stripes
    stream = stripe.stream(DATA, 3)
    for row in (5, 25, 45):
        damaged = bytearray(stream.body)
        damaged[8 * row : 8 * row + 8] = struct.pack("<d", -1e9)
        stripe.stream(DATA, 3).body = bytes(damaged)
        data = file.to_bytes()
        expected = orc.ORCFile(io.BytesIO(data)).read()
        assert expected["real"][row].as_py() == -1e9
        for first in range(0, 60, 10):
            try:
                part = fs.scan(data).skip(first).head(10).to_arrow()
            except fs.FileFormatError:
                assert first <= row < first + 10
            else:
                assert part.equals(expected.slice(first, 10))
        scan = fs.scan(data).filter(fs.col("real") <= 0.5).with_row_index()
        try:
            found = scan.to_arrow()
        except fs.FileFormatError:
            continue
        assert set(found["index"].to_pylist()) - {row} == {0, 1, 2, 3}
        stripe.stream(DATA, 3).body = stream.body


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        (pa.string(), {"string_min": "50", "string_max": "51"}),
        (pa.decimal128(30, 2), {"decimal_min": "50.5", "decimal_max": "51"}),
        (pa.decimal128(9, 2), {"decimal_min": "50.5", "decimal_max": "51"}),
    ],
    ids=str,
)
def test_values_outside_of_the_bounds_of_a_small_stride_are_named(
    kind: pa.DataType, facts: dict[str, Any]
) -> None:
    """Strides of a few rows are checked together: the one that lies is named."""
    numbers = [None if row % 9 == 4 else Decimal(row % 90 + 10) for row in range(400)]
    values = numbers if pa.types.is_decimal(kind) else [n and str(n) for n in numbers]
    table = pa.table({"row": range(400), "x": pa.array(values, kind)})
    data = written_at_once(table, row_index_stride=10)
    wanted = Decimal(51) if pa.types.is_decimal(kind) else "51"
    expected = [row for row, value in enumerate(values) if value == wanted]
    assert fs.scan(data).filter(col("x") == wanted).to_arrow()["row"].to_pylist() == expected
    changes = [[facts if stride == 7 else {} for stride in range(40)]]
    lying = Crafted(data).set_strides(2, changes).set_stripe_statistics(2, [None]).to_bytes()
    with pytest.raises(fs.FileFormatError, match="page 7 has values outside of the bounds"):
        fs.scan(lying).filter(col("x") == wanted).to_arrow()
    everything = fs.scan(lying, indexes=False).filter(col("x") == wanted).to_arrow()
    assert everything["row"].to_pylist() == expected
