"""Damaged files: making them, and reading them within limits of memory and time.

For the tests: `Bench` collects cases, `variants` changes every value of a Thrift struct in turn,
`check` reads all cases in a process with limits and judges what came of them.

That process runs this file as a script. In: a JSON line for each case, `{"name", "path",
"original", "cut", "flip", "windows", "columns"}`: a file, cut off at a length or with a byte
changed, `[offset, xor]`, what it was before, how many parts to read by themselves, and by how many
columns to filter. Out: a JSON line
when fretsaw is done with it, and one when pyarrow has read the same bytes. A file that takes too
long ends the process by SIGALRM, a crash by its own signal: who started it sees where.
"""

import contextlib
import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

import fretsaw as fs

Case = dict[str, Any]

SECONDS = 20
MEMORY = 3 << 30

ODD_MAP = "MAP-annotated group"
"""What pyarrow says of maps that are spelled in other ways, which are read all the same."""


def memory(key: str) -> int:
    """What the kernel says of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{key}:")[1].split()[0]) << 10


def limit_memory() -> None:
    """Allow so much on top of the address space that the imports have taken."""
    taken = memory("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def damaged(case: Case, folder: Path) -> Path:
    """The file that the case describes; intact files are read where they are."""
    source = Path(case["path"])
    if case["cut"] is None and case["flip"] is None:
        return source
    data = bytearray(source.read_bytes())
    if case["flip"] is not None:
        offset, change = case["flip"]
        data[offset] ^= change
    path = folder / f"damaged {source.name}"
    path.write_bytes(data[: case["cut"]])
    return path


def plain(kind: pa.DataType) -> pa.DataType:
    """A type of the same layout, without names, that asks nothing of its values: only bytes.

    Damaged text may not be UTF-8 and a damaged decimal may have too many digits, for pyarrow as
    well; NaN is to be equal to itself.
    """
    if isinstance(kind, pa.ExtensionType):
        return plain(kind.storage_type)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.binary(kind.bit_width // 8)
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([(str(number), plain(field.type)) for number, field in enumerate(kind)])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    return kind


def comparable(table: pa.Table) -> list[pa.Array]:
    """Columns whose equality is that of their bytes; raises if one is malformed."""
    columns = []
    for column in table.columns:
        array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        array = array.view(plain(array.type))
        array.validate(full=True)
        columns.append(array)
    return columns


def same(one: pa.Table, other: pa.Table, names: bool = True) -> bool:
    """Whether two tables hold the same, by the same names."""
    if names and (one.schema.names, one.schema.types) != (other.schema.names, other.schema.types):
        return False
    if one.shape != other.shape:
        return False
    pairs = zip(comparable(one), comparable(other), strict=True)
    return all(a.equals(b) for a, b in pairs)


Part = tuple[list[int], pa.Table]


def windows(path: Path, rows: int, count: int) -> Iterator[Part]:
    """Slices of the file by position, through the page index where there is one."""
    for number in range(1, count):
        first = number * rows // (count + 1)
        part = fs.scan(path).skip(first).head(3).to_arrow()
        yield list(range(first, first + part.num_rows)), part
    part = fs.scan(path).tail(2).to_arrow()
    yield list(range(max(0, rows - 2), rows)), part


def matches(path: Path, table: pa.Table, count: int) -> Iterator[Part]:
    """Rows that match predicates on the first columns, through statistics and column indexes."""
    names = [name for name in table.schema.names if table.schema.names.count(name) == 1]
    for name in names[:count] if table.num_rows else []:
        column = fs.col((name,))
        predicate = column.is_null()
        with contextlib.suppress(ValueError, OverflowError, TypeError):  # damaged values
            predicate = column <= table[name][table.num_rows // 2].as_py()
        with contextlib.suppress(fs.PredicateTypeError):  # not every type has literals
            part = fs.scan(path).with_row_index("row's number").filter(predicate).to_arrow()
            yield part["row's number"].to_pylist(), part.drop(["row's number"])


def read_by_pyarrow(path: Path | str) -> pa.Table:
    if str(path).endswith(".orc"):
        return orc.ORCFile(path).read()
    with pq.ParquetFile(path) as file:
        return file.read(use_threads=False)


@lru_cache(maxsize=1)
def undamaged(path: str) -> pa.Table:
    return read_by_pyarrow(path)


def outcome(error: Exception) -> dict[str, Any]:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return {"error": type(error).__name__, "kinds": kinds, "message": str(error)[:400]}


def read(
    path: Path, count: int, columns: int
) -> tuple[dict[str, Any], pa.Table | None, list[Part]]:
    """All of the file, then parts of it: a window may fail though the whole does not."""
    try:
        table = fs.scan(path).to_arrow()
        comparable(table)
    except Exception as error:  # which one is for the tests to judge
        return outcome(error), None, []
    parts = []
    try:
        for part in itertools.chain(
            windows(path, table.num_rows, count), matches(path, table, columns)
        ):
            comparable(part[1])
            parts.append(part)
    except Exception as error:
        return {"rows": table.num_rows, "window": outcome(error)}, table, parts
    return {"rows": table.num_rows}, table, parts


def rows_of(table: pa.Table, numbers: list[int]) -> pa.Table:
    """Rows of a table by their numbers; slices, since not all types can be taken from."""
    return pa.concat_tables([table.slice(0, 0), *(table.slice(number, 1) for number in numbers)])


def judged(case: Case, path: Path, table: pa.Table) -> str:
    """Whether the rows are those that pyarrow reads, or read before the damage."""
    names = True
    try:
        if same(table, read_by_pyarrow(path)):
            return "same"
        verdict = "differs"
    except Exception as error:
        verdict = f"pyarrow: {error!s:.200}"
        names = not isinstance(error, UnicodeDecodeError)  # the damage is in a column's name
    try:
        return "as before" if same(table, undamaged(case["original"]), names) else verdict
    except Exception:  # the original is no better
        return verdict


def main() -> None:
    limit_memory()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever C code is running
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            case = json.loads(line)
            path = damaged(case, Path(folder))
            Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
            signal.alarm(SECONDS)
            result, table, parts = read(path, case["windows"], case["columns"])
            signal.alarm(0)
            peak = memory("VmHWM") >> 20
            print(json.dumps({"name": case["name"], **result, "peak_mb": peak}), flush=True)
            if table is not None:
                signal.alarm(SECONDS)
                parted = all(same(part, rows_of(table, numbers)) for numbers, part in parts)
                verdict = judged(case, path, table) if parted else "parts differ"
                signal.alarm(0)
                print(json.dumps({"name": case["name"], "verdict": verdict}), flush=True)


# What the tests use


def read_within_limits(cases: list[Case]) -> dict[str, dict[str, Any]]:
    """What came of each case; a process that dies takes only one of them with it."""
    results: dict[str, dict[str, Any]] = {}
    command = [sys.executable, __file__]
    while waiting := [case for case in cases if case["name"] not in results]:
        lines = "".join(json.dumps(case) + "\n" for case in waiting)
        done = subprocess.run(
            command, input=lines, capture_output=True, text=True, timeout=400, check=False
        )
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        for report in reports:
            results.setdefault(report["name"], {}).update(report)
        if done.returncode == 0:
            break
        last = results[reports[-1]["name"]] if reports else {}
        if "rows" in last and "verdict" not in last:
            last["verdict"] = "as before"  # it was pyarrow that died
        else:
            name = next(case["name"] for case in waiting if case["name"] not in results)
            results[name] = {"error": f"ended by {done.returncode}", "log": done.stderr[-400:]}
    assert results.keys() == {case["name"] for case in cases}
    return results


def check(cases: list[Case], *, must_fail: bool = False) -> None:
    """Each case gives an error that names the file or, if it may, the right rows."""
    flaws = {}
    results = read_within_limits(cases)
    for case in cases:
        result = results[case["name"]]
        errors = [error for error in (result, result.get("window")) if error and "error" in error]
        fine = result.get("peak_mb", 0) < 1_000
        for error in errors:
            fine &= "FileFormatError" in error.get("kinds", [])
            fine &= Path(case["path"]).name in error.get("message", "")
        if "error" in result:
            fine &= case["name"] != "unchanged"
        else:
            fine &= not must_fail and (
                result["verdict"] in ("same", "as before") or ODD_MAP in result["verdict"]
            )
        if not fine:
            flaws[case["name"]] = result
    listed = "\n".join(f"{name}: {json.dumps(result)}" for name, result in flaws.items())
    assert not flaws, f"{len(flaws)} of {len(cases)}\n{listed}"


class Bench:
    """Collects cases in a folder."""

    def __init__(self, folder: Path, original: bytes = b"", suffix: str = "parquet") -> None:
        self.cases: list[Case] = []
        self._folder, self._suffix = folder, suffix
        self._original = folder / f"original.{suffix}"
        self._original.write_bytes(original)

    def add(self, name: str, data: bytes, windows: int = 2) -> None:
        path = self._folder / f"case {len(self.cases)}.{self._suffix}"
        path.write_bytes(data)
        self.change(name, path, original=str(self._original), windows=windows)

    def change(self, name: str, path: Path, **how: Any) -> None:
        how = {"original": str(path), "cut": None, "flip": None, "windows": 2, **how}
        how["columns"] = int(len(self.cases) % 3 == 0)  # to be filtered by: it takes its time
        self.cases.append({"name": name, "path": str(path), **how})


# Thrift structs as {field: (kind, value)}, lists as (kind, [values]): to be changed at will

Place = tuple[int, ...]


class Raw(bytes):
    """Bytes to be written as they are in place of a value."""


def parsed(source: TCompactProtocol, kind: int = TType.STRUCT) -> Any:
    match kind:
        case TType.STRUCT:
            fields = {}
            source.readStructBegin()
            while (begin := source.readFieldBegin())[1] != TType.STOP:
                fields[begin[2]] = (begin[1], parsed(source, begin[1]))
                source.readFieldEnd()
            source.readStructEnd()
            return fields
        case TType.LIST:
            item_kind, size = source.readListBegin()
            items = [parsed(source, item_kind) for _ in range(size)]
            source.readListEnd()
            return item_kind, items
        case TType.STRING:
            return source.readBinary()
    name = {TType.BOOL: "Bool", TType.BYTE: "Byte", TType.DOUBLE: "Double", TType.I16: "I16"}
    return getattr(source, "read" + {TType.I32: "I32", TType.I64: "I64", **name}[kind])()


def write(out: TCompactProtocol, kind: int, value: Any) -> None:
    if isinstance(value, Raw):
        out.trans.write(value)
    elif kind == TType.STRUCT:
        out.writeStructBegin("")
        for number, (field_kind, field) in value.items():
            out.writeFieldBegin("", field_kind, number)
            write(out, field_kind, field)
            out.writeFieldEnd()
        out.writeFieldStop()
        out.writeStructEnd()
    elif kind == TType.LIST:
        out.writeListBegin(value[0], len(value[1]))
        for item in value[1]:
            write(out, value[0], item)
        out.writeListEnd()
    else:
        names = {TType.BOOL: "Bool", TType.BYTE: "Byte", TType.DOUBLE: "Double", TType.I16: "I16"}
        names |= {TType.I32: "I32", TType.I64: "I64", TType.STRING: "Binary"}
        getattr(out, "write" + names[kind])(value)


def decoded(data: bytes) -> tuple[Any, int]:
    """A struct and how many bytes it took."""
    buffer = TMemoryBuffer(data)
    return parsed(TCompactProtocol(buffer)), buffer.cstringio_buf.tell()


def encoded(struct: Any) -> bytes:
    buffer = TMemoryBuffer()
    write(TCompactProtocol(buffer), TType.STRUCT, struct)
    result: bytes = buffer.getvalue()
    return result


def spots(
    value: Any, kind: int = TType.STRUCT, path: Place = ()
) -> Iterator[tuple[Place, int, Any]]:
    """Every value in a struct, at every depth."""
    yield path, kind, value
    if kind == TType.STRUCT:
        for number, (field_kind, field) in value.items():
            yield from spots(field, field_kind, (*path, number))
    elif kind == TType.LIST:
        for place, item in enumerate(value[1]):
            yield from spots(item, value[0], (*path, place))


def changed(value: Any, path: Place, new: Any, kind: int = TType.STRUCT) -> Any:
    """The value with another one at the path; `None` takes it out."""
    if not path:
        return new
    head, rest = path[0], path[1:]
    if kind == TType.LIST:
        item = changed(value[1][head], rest, new, value[0])
        return value[0], [
            *value[1][:head],
            *([item] if item is not None else []),
            *value[1][head + 1 :],
        ]
    field = changed(value[head][1], rest, new, value[head][0])
    fields = {**value, head: (value[head][0], field)}
    return {number: pair for number, pair in fields.items() if pair[1] is not None}


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def hostile_values(kind: int, value: Any) -> dict[str, Any]:
    """What a value may be changed to, each with a name."""
    match kind:
        case TType.I16 | TType.I32 | TType.I64:
            top = {TType.I16: 2**15, TType.I32: 2**31, TType.I64: 2**63}[kind]
            near = [value - 1, value + 1, 0, -1, 4, 100_000, top - 1, top // 2, -top]
            return {f"{new}": new for new in near if new != value and new < top} | {"gone": None}
        case TType.STRING:
            longer = {f"{size} bytes": Raw(varint(size)) for size in (2**20, 2**31 - 1)}
            return {**longer, "empty": b"", "gone": None}
        case TType.LIST:
            whole = encoded({1: (TType.LIST, value)})[1:-1]
            count = len(value[1])
            items = whole[1 if count < 15 else 1 + len(varint(count)) :]
            header = bytes([0xF0 | whole[0] & 15])
            sizes = [2**24, 2**31 - 1, 2**32 - 1]
            more = {f"{size} items": Raw(header + varint(size)) for size in sizes}
            fewer = {
                f"{size} of {count} items": Raw(header + varint(size) + items) for size in (0, 1)
            }
            doubles = Raw(bytes([0xF0 | 7]) + varint(count) + items)
            others = {"empty": (value[0], []), "reversed": (value[0], value[1][::-1])}
            return {**more, **fewer, **others, "mistyped": doubles, "gone": None}
        case TType.BOOL:
            return {f"{not value}": not value}
    return {"gone": None}


def variants(struct: Any) -> Iterator[tuple[str, Any]]:
    """The struct as it is, then with each value in it changed in each way."""
    yield "unchanged", struct
    for place, kind, value in spots(struct):
        for name, new in hostile_values(kind, value).items() if place else ():
            yield f"{'.'.join(map(str, place))}: {name}", changed(struct, place, new)


if __name__ == "__main__":
    main()
