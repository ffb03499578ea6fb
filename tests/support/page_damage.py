"""Pages damaged in every part, read with the kernels and without them, within limits.

For the tests: `check` reads seeded cases of a file in a process of its own and judges what came of
them. `damaged` changes a byte, a value of a page header, or the contents of one page, which are
compressed again and get the checksum that belongs to them, so that decoders see them.

That process runs this file as a script. In: a JSON line for each case, `[path, seed]`. Out: a JSON
line when the kernels are done with it, and one when Arrow alone has read the same bytes.
"""

import contextlib
import json
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import fretsaw as fs
from tests.support.craft import I32, STRUCT, TRUE, Struct
from tests.support.hostile import SECONDS, comparable, memory
from tests.support.kernels import without_kernels
from tests.support.page_craft import UNCOMPRESSED_SIZE, Pages, is_compressed, levels_of, resized
from tests.support.pages import FileMetaData, footer_span, row_groups
from tests.support.pages import decode as decoded

ADDRESSES = 4 << 30
"""Of memory, which is about what a process with its libraries may take."""
PEAK_MB = 1_000
ODD = (0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 127, 128, 255, 1 << 16, 1 << 24, 2**31 - 1, -1, -(2**31))

Case = tuple[str, int]
Rows = list[int] | None
"""All of them: None."""


# Damage


@lru_cache(maxsize=2)
def original(path: str) -> tuple[bytes, str, int]:
    """A file of one column, its codec by the name that pyarrow has for it, and how many pages."""
    data = Path(path).read_bytes()
    codec = Path(path).name.split(" ")[0]
    pages = 0

    def count(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        nonlocal pages
        pages += 1
        return [(header, body)]

    Pages(data).changed(count)
    return data, {"lz4": "lz4_raw"}.get(codec, codec), pages


def damaged(path: str, seed: int) -> bytes:
    """The file with damage of one kind or another in one of its pages."""
    chance = random.Random(f"{Path(path).name} {seed}")
    data, codec, pages = original(path)
    kind = chance.choice(["bytes", "header", "stored", "contents", "contents", "contents"])
    if kind == "bytes":
        span = next(chunk.span for group in row_groups(data) for chunk in group.chunks)
        return hit(data, chance, span.start, span.end)
    victim = chance.randrange(pages)
    place = -1

    def change(header: Struct, body: bytes) -> list[tuple[Struct, bytes]]:
        nonlocal place
        place += 1
        if place != victim:
            return [(header, body)]
        if kind == "header":
            return [(odd_header(header, chance), body)]
        if kind == "stored":
            return [resized(header, changed(body, chance))]
        return [with_contents(header, body, codec, chance)]

    return Pages(data).changed(change)


def hit(data: bytes, chance: random.Random, start: int, end: int) -> bytes:
    """Up to three bytes changed."""
    out = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = chance.randrange(start, end)
        out[at] ^= chance.choice([1 << chance.randrange(8), chance.randrange(1, 256)])
    return bytes(out)


def changed(body: bytes, chance: random.Random) -> bytes:
    """Bytes changed, taken out or put in; more often than not where lengths and levels are."""
    if not body:
        return chance.randbytes(chance.randrange(9))
    near = min(len(body), chance.choice([4, 12, 40, 10**9]))
    at = chance.randrange(near)
    match chance.randrange(6):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + body[at + chance.randrange(1, 9) :]
        case 2:
            return body[:at] + chance.randbytes(chance.randrange(1, 9)) + body[at:]
        case 3:
            number = chance.choice(ODD) & 0xFFFFFFFF
            return body[:at] + number.to_bytes(4, "little") + body[at + 4 :]
        case _:
            return hit(body, chance, 0, near)


def with_contents(
    header: Struct, body: bytes, codec: str, chance: random.Random
) -> tuple[Struct, bytes]:
    """A page whose contents, levels or values, are damaged under its compression."""
    levels, packed = body[: levels_of(header)], body[levels_of(header) :]
    is_packed = codec != "none" and is_compressed(header, packed)
    size = header[UNCOMPRESSED_SIZE][1] - len(levels)
    contents = pa.decompress(packed, size, codec, asbytes=True) if is_packed else packed
    if levels and chance.random() < 0.5:
        levels = changed(levels, chance)[: len(levels)].ljust(len(levels), b"\0")
    else:
        contents = changed(contents, chance)
    if chance.random() < 0.9:
        header = {**header, UNCOMPRESSED_SIZE: (I32, len(levels) + len(contents))}
    stored = pa.compress(contents, codec, asbytes=True) if is_packed else contents
    return resized(header, levels + stored)


def odd_header(header: Struct, chance: random.Random) -> Struct:
    """A header in which one number or flag is another, or missing."""
    places: list[tuple[tuple[int, ...], tuple[int, Any]]]
    places = [((field,), value) for field, value in header.items() if value[0] == I32]
    for field, (kind, inner) in header.items():
        if kind == STRUCT:
            numbers = [(k, v) for k, v in inner.items() if v[0] in (I32, TRUE)]
            places += [((field, k), v) for k, v in numbers]
    place, (kind, value) = chance.choice(places)
    new: Any = not value
    if kind == I32:
        new = chance.choice([value - 1, value + 1, value * 2, value // 2, *ODD])
        new = max(-(2**31), min(new, 2**31 - 1))
    if len(place) == 1:
        return {**header, place[0]: (kind, new)}
    inner = dict(header[place[0]][1])
    if chance.random() < 0.1:
        del inner[place[1]]
    else:
        inner[place[1]] = (kind, new)
    return {**header, place[0]: (STRUCT, inner)}


# Reading


def selections(path: str, seed: int) -> list[Rows]:
    data = original(path)[0]
    footer, _ = decoded(FileMetaData, data[footer_span(data).start :])
    rows = sum(group.num_rows for group in footer.row_groups)
    chance = random.Random(seed)
    begin = chance.randrange(rows)
    some = sorted(chance.sample(range(rows), chance.choice([1, 2, 7, rows // 2])))
    return [None, list(range(begin, min(rows, begin + 12))), some]


def read(data: bytes, rows: Rows) -> tuple[str, pa.Table | None]:
    """What came of it, and the rows if there are some."""
    try:
        scan = fs.scan(data)
        table = (scan if rows is None else scan.select_rows(rows)).to_arrow()
        comparable(table)
    except fs.FileFormatError:
        return "error", None
    except MemoryError:
        return "out of memory", None
    except BaseException as error:  # a panic is none of Exception
        return f"{type(error).__mro__[:-1]}: {error!s:.300}", None
    return "rows", table


def same(one: pa.Table | None, other: pa.Table | None) -> bool:
    if one is None or other is None or one.schema != other.schema or one.shape != other.shape:
        return False
    pairs = zip(comparable(one), comparable(other), strict=True)
    return all(a.equals(b) for a, b in pairs)


@lru_cache(maxsize=2)
def undamaged(path: str) -> pa.Table:
    with without_kernels():
        return fs.scan(original(path)[0]).to_arrow()


def verdict(path: str, rows: Rows, ours: Any, theirs: Any) -> str:
    """What the kernels' outcome is worth beside Arrow's: in which way it is right, or not."""
    if "rows" not in (ours[0], theirs[0]):
        return "both fail"
    if ours[0] == theirs[0] == "rows":
        return "same" if same(ours[1], theirs[1]) else "differs"
    if ours[0] == "error":
        return "fails alone"
    whole = undamaged(path)
    before = same(ours[1], whole if rows is None else whole.take(rows))
    return f"{'rows as before' if before else 'other rows'}, {'all' if rows is None else 'some'}"


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever C code is running
    for line in sys.stdin:
        path, seed = json.loads(line)
        data = damaged(path, seed)
        wanted = selections(path, seed)
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        signal.alarm(SECONDS)
        ours = [read(data, rows) for rows in wanted]
        peak = memory("VmHWM") >> 20
        print(json.dumps({"outcomes": [name for name, _ in ours], "peak": peak}), flush=True)
        signal.alarm(SECONDS)
        with without_kernels():
            theirs = [read(data, rows) for rows in wanted]
        signal.alarm(0)
        found = [verdict(path, *each) for each in zip(wanted, ours, theirs, strict=True)]
        print(json.dumps({"verdicts": found}), flush=True)


# What the tests use


def read_cases(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """What came of each case; a process that dies takes only one of them with it."""
    results: list[dict[str, Any]] = []
    while len(results) < len(cases):
        waiting = cases[len(results) :]
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.page_damage"],
            input="".join(json.dumps(case) + "\n" for case in waiting),
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        results += [
            {**first, **second} for first, second in zip(lines[::2], lines[1::2], strict=False)
        ]
        if done.returncode:
            ended = {"outcomes": [f"ended by {done.returncode}"], "log": done.stderr[-600:]}
            # With the kernels' line there, it was Arrow that died: theirs alone is judged.
            results.append({**lines[-1], "verdicts": []} if len(lines) % 2 else ended)
    return results


def flaw_of(result: dict[str, Any]) -> str | None:
    """Why the outcome of a case is not fine."""
    odd: list[str] = [name for name in result["outcomes"] if name not in ("rows", "error")]
    if odd:
        return odd[0]
    if result["peak"] > PEAK_MB:
        return f"{result['peak']} MB"
    bad = ("differs", "fails alone", "other rows, all")
    return next((found for found in result["verdicts"] if found in bad), None)


def check(cases: Sequence[Case]) -> Counter[str]:
    """No case crashes, hangs, floods the memory, or gives other rows than Arrow; how they ended."""
    results = read_cases(cases)
    flaws = [
        f"{Path(path).name!r}, {seed}: {flaw} {json.dumps(result)}"
        for (path, seed), result in zip(cases, results, strict=True)
        if (flaw := flaw_of(result)) is not None
    ]
    assert not flaws, f"{len(flaws)} of {len(cases)}\n" + "\n".join(flaws[:20])
    return Counter(found for result in results for found in result["verdicts"])


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
