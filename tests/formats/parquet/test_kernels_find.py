"""Rows that kernels find in pages are those of the rule; Arrow's decoded values are the oracle."""

import io
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fretsaw.predicates.value_set import NAN_KEY, ValueSet, float_key

kernels = pytest.importorskip("fretsaw_kernels")

_PHYSICAL = {
    "BOOLEAN": 0,
    "INT32": 1,
    "INT64": 2,
    "FLOAT": 4,
    "DOUBLE": 5,
    "BYTE_ARRAY": 6,
    "FIXED_LEN_BYTE_ARRAY": 7,
}
_CODECS = {"NONE": 0, "SNAPPY": 1, "ZSTD": 6}
_TYPES: dict[str, tuple[pa.DataType, str, str, int]] = {
    "bool": (pa.bool_(), "bits", "unsigned", 0),
    "int8": (pa.int8(), "int8", "signed", 0),
    "uint16": (pa.uint16(), "int16", "unsigned", 0),
    "int32": (pa.int32(), "copy", "signed", 0),
    "uint32": (pa.uint32(), "copy", "unsigned", 0),
    "int64": (pa.int64(), "copy", "signed", 0),
    "uint64": (pa.uint64(), "copy", "unsigned", 0),
    "float16": (pa.float16(), "copy", "float", 2),
    "float32": (pa.float32(), "copy", "float", 0),
    "float64": (pa.float64(), "copy", "float", 0),
    "decimal": (pa.decimal128(30, 3), "decimal128", "signed", 13),
    "string": (pa.string(), "bytes", "bytes", 0),
    "fixed": (pa.binary(6), "copy", "bytes", 6),
}
_FLOATS = [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"), 1e-7, -1e-7, 60000.0]


def _value(name: str, rng: random.Random) -> Any:
    kind = _TYPES[name][0]
    if name == "bool":
        return rng.random() < 0.5
    if name.startswith("float"):
        return rng.choice([*_FLOATS, rng.uniform(-3, 3)])
    if name == "decimal":
        return Decimal(rng.choice([rng.randint(-9, 9), rng.randint(-(10**29), 10**29)])).scaleb(-3)
    if name in ("string", "fixed"):
        length = 6 if name == "fixed" else rng.randint(0, 14)
        return "".join(rng.choice("ab~") for _ in range(length))
    low, high = (0, 1 << kind.bit_width) if "u" in name else (-(1 << kind.bit_width - 1),) * 2
    high = high if "u" in name else -low
    return rng.choice([low, high - 1, rng.randrange(low, high), rng.randrange(10)])


def _key(name: str, value: Any) -> Any:
    if name.startswith("float"):
        return float_key(value)
    if name == "decimal":
        return int(value.scaleb(3))
    if name == "string":
        return value.encode()
    return int(value) if name != "fixed" else bytes(value)


def _array(name: str, count: int, nulls: float, rng: random.Random) -> pa.Array:
    pool = [_value(name, rng) for _ in range(rng.choice([3, 40, 2000]))]
    values = [None if rng.random() < nulls else rng.choice(pool) for _ in range(count)]
    if name == "float16":
        values = [None if value is None else np.float16(value) for value in values]
    return pa.array(values, _TYPES[name][0])


def _set(keys: list[Any], rng: random.Random) -> ValueSet:
    known = rng.sample(keys, min(len(keys), rng.choice([1, 2, 9])))
    if isinstance(keys[0], bytes):
        points = [(key, key + b"\0") for key in known]
        ranges = [tuple(sorted((rng.choice(keys), rng.choice(keys) + b"x")))]
    else:
        points = [(key, key + 1) for key in known]
        ranges = [tuple(sorted((rng.choice(keys), rng.choice(keys) + rng.randint(-1, 1))))]
    chosen = rng.choice([points, points[:1], ranges, points + ranges])
    values = ValueSet.among(chosen)
    return rng.choice([values, ~values, ValueSet.between(chosen[0][0], None)])


def _leaf(column: Any, name: str, max_definition: int) -> Any:
    _, target, _, length = _TYPES[name]
    return kernels.Leaf(
        _PHYSICAL[column.physical_type],
        target,
        type_length=length,
        max_definition=max_definition,
    )


def _part(data: bytes, column: Any, starts: list[int], ends: list[int]) -> Any:
    offset = column.dictionary_page_offset or column.data_page_offset
    end = offset + column.total_compressed_size
    codec = {"UNCOMPRESSED": "NONE"}.get(column.compression, column.compression)
    rows = np.array(starts, np.int64), np.array(ends, np.int64)
    segment = (data[offset:end], column.num_values, column.num_values)
    return (_CODECS[codec], None, [segment], *rows)


def _written(array: pa.Array, rng: random.Random, **options: Any) -> tuple[bytes, Any]:
    file = io.BytesIO()
    schema = pa.schema([pa.field("x", array.type, nullable=array.null_count > 0)])
    pq.write_table(
        pa.table([array], schema),
        file,
        compression=rng.choice(list(_CODECS)),
        data_page_size=rng.choice([100, 1000, 1 << 20]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        write_batch_size=rng.choice([7, 64, 1024]),
        **options,
    )
    data = file.getvalue()
    return data, pq.read_metadata(io.BytesIO(data)).row_group(0).column(0)


def _rows(column: Any) -> list[int]:
    starts, ends = (np.frombuffer(pa.py_buffer(edge), np.int64) for edge in column.matches)
    return [row for start, end in zip(starts, ends, strict=True) for row in range(start, end)]


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("nulls", [0, 0.1, 0.7])
def test_rows_of_a_set_are_found_and_only_they_are_decoded(name: str, nulls: float) -> None:
    rng = random.Random(f"{name} {nulls}")
    for dictionary in [True, False, False, True]:
        array = _array(name, rng.choice([1, 50, 3000]), nulls, rng)
        keys = [None if v is None else _key(name, v) for v in array.to_pylist()]
        present = [key for key in keys if key is not None]
        if not present:
            continue
        data, stored = _written(array, rng, use_dictionary=dictionary)
        values = _set(present, rng)
        edges = sorted(rng.sample(range(len(array) + 1), min(len(array) + 1, rng.choice([2, 40]))))
        starts, ends = edges[: len(edges) // 2 * 2 : 2], edges[1::2]
        if rng.random() < 0.3:
            starts, ends = [0], [len(array)]
        wanted = [row for edge in zip(starts, ends, strict=True) for row in range(*edge)]
        expected = [
            place
            for place, row in enumerate(wanted)
            if keys[row] is not None and keys[row] in values
        ]
        leaf = _leaf(stored, name, int(array.null_count > 0))
        part = _part(data, stored, starts, ends)
        order = _TYPES[name][2]
        search = kernels.Search(order, values.cuts, values.begins_inside)
        (found,) = kernels.decode([(leaf, [part])], searches=[search])
        assert isinstance(found, kernels.Column), found
        assert _rows(found) == expected
        buffers = [None if b is None else pa.py_buffer(b) for b in found.buffers]
        decoded = pa.Array.from_buffers(array.type, found.length, buffers, found.null_count)
        # As bytes, so that NaN equals NaN.
        rows = pa.array([wanted[place] for place in expected], pa.int64())
        assert str(decoded.to_pylist()) == str(array.take(rows).to_pylist())
        search = kernels.Search(order, values.cuts, values.begins_inside, keeps_values=False)
        (found,) = kernels.decode([(leaf, [part, part])], searches=[search])
        twice = expected + [len(wanted) + place for place in expected]
        assert (_rows(found), found.length) == (twice, 0)


@pytest.mark.parametrize("name", _TYPES)
@pytest.mark.parametrize("dictionary", [True, False])
def test_values_outside_of_their_bounds_are_seen(name: str, dictionary: bool) -> None:
    rng = random.Random(f"{name} {dictionary}")
    array = _array(name, 50, 0.2, rng)
    data, stored = _written(array, random.Random(1), use_dictionary=dictionary)
    keys = [_key(name, value) for value in array.to_pylist() if value is not None]
    bounded = sorted(key for key in keys if key != NAN_KEY or not name.startswith("float"))
    low, high = bounded[0], bounded[-1]
    leaf, order = _leaf(stored, name, int(array.null_count > 0)), _TYPES[name][2]
    part = _part(data, stored, [0], [50])
    above = low + b"\0" if isinstance(low, bytes) else low + 1
    below = high[:-1] if isinstance(high, bytes) else high - 1
    for lower, upper, outside in [(low, high, False), (above, high, True), (low, below, True)]:
        claims = kernels.Claims(order, [0], [lower], [upper])
        (seen,) = kernels.decode([(leaf, [part, part])], claims=[[None, claims]])
        if outside:
            assert (seen.kind, seen.part, seen.claim) == ("outside", 1, 0)
        else:
            assert seen.length == 100
