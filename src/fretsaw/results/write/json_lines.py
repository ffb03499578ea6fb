"""Record batches as JSON lines, column by column.

A record batch comes in, text goes out: for each row a JSON object and a line feed. Every column,
nested ones from the inside out, becomes an array of JSON texts by steps on whole arrays.
`bytes_as_text` and `uuids_as_text` say what bytes are in a file of text; CSV uses them too.
"""

import base64
import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from fretsaw.model.blocks import Int64s

TEXT = pa.large_string()
"""Texts of a batch may take more than two gigabytes."""

_UNSAFE = r'["\\\x00-\x1f]'
_CONTROL = r"[\x00-\x1f]"
_WHOLE_NUMBER = r"^-?[0-9]+$"
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_DASHES = (8, 13, 18, 23)


def lines(batch: pa.RecordBatch) -> pa.Buffer:
    """The rows of a batch, each a JSON object and a line feed, as UTF-8."""
    rows = _objects(batch.schema.names, batch.columns, batch.num_rows, end="}\n")
    return _contents(rows)[1]


def bytes_as_text(array: pa.Array) -> pa.Array:
    """Base64 of binary values."""
    filled = array.cast(pa.large_binary()).fill_null(b"")
    stored, data = _contents(filled)
    values = np.frombuffer(data, np.uint8)
    lengths = np.diff(stored)
    # Every value is padded to whole groups of three bytes, so that one call encodes all of them.
    groups = -(-lengths // 3)
    ends = np.cumsum(groups)
    shifts = 3 * (ends - groups) - stored[:-1]
    padded = np.zeros(3 * int(groups.sum()), np.uint8)
    padded[np.arange(len(values)) + np.repeat(shifts, lengths)] = values
    encoded = np.frombuffer(bytearray(base64.b64encode(padded.tobytes())), np.uint8)
    encoded[4 * ends[lengths % 3 == 1] - 2] = ord("=")
    encoded[4 * ends[lengths % 3 > 0] - 1] = ord("=")
    offsets = np.concatenate([[0], 4 * ends])
    return _with_nulls_of(array, _strings(offsets, encoded))


def uuids_as_text(array: pa.Array) -> pa.Array:
    """UUIDs in their usual spelling, of 16 bytes each."""
    filled = array.cast(pa.binary(16)).fill_null(bytes(16))
    start = 16 * filled.offset
    data = np.frombuffer(filled.buffers()[1], np.uint8)[start : start + 16 * len(filled)]
    digits = np.stack([_HEX[data >> 4], _HEX[data & 15]], axis=1).reshape(-1, 32)
    spelled = np.full((len(array), 36), ord("-"), np.uint8)
    spelled[:, np.delete(np.arange(36), _UUID_DASHES)] = digits
    return _with_nulls_of(array, _strings(36 * np.arange(len(array) + 1), spelled))


def _json(array: pa.Array) -> pa.Array:
    """Each value as JSON text; a null is the word."""
    kind = array.type
    if types.is_dictionary(kind):
        return _json(array.dictionary_decode())
    if types.is_struct(kind):
        names = [field.name for field in kind]
        return _known(array, _objects(names, array.flatten(), len(array), end="}"))
    if types.is_map(kind):
        pairs = _as_list(array)
        keys, items = pairs.flatten().flatten()
        return _joined("{", pairs, _concatenated(_keys(keys), ":", _json(items)), "}")
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _joined("[", array, _json(array.flatten()), "]")
    text = _bare(array)
    if text is None:
        text = _concatenated('"', _spelled(array), '"')
    return text.fill_null("null")


def _bare(array: pa.Array) -> pa.Array | None:
    """The words and numbers of types that JSON has, null where it has none; None for others."""
    kind = array.type
    if types.is_floating(kind):
        if types.is_float16(kind):
            array = array.cast(pa.float32())
        finite = pc.if_else(pc.is_finite(array), array, pa.scalar(None, array.type))
        text = finite.cast(TEXT)
        # A reader that guesses types is to see a float.
        is_whole = pc.match_substring_regex(text, _WHOLE_NUMBER)
        return pc.if_else(is_whole, _concatenated(text, ".0"), text)
    if types.is_duration(kind):
        array = array.cast(pa.int64())
    elif not (types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind)):
        return None
    return array.cast(TEXT)


def _spelled(array: pa.Array) -> pa.Array:
    """What stands between the quotes of a type that JSON has not."""
    kind = array.type
    if kind == pa.uuid():
        return uuids_as_text(array)
    if isinstance(kind, pa.BaseExtensionType):
        return _spelled(array.storage)
    if types.is_timestamp(kind):
        utc = array if kind.tz is None else array.cast(pa.timestamp(kind.unit, "UTC"))
        return pc.replace_substring(utc.cast(TEXT), " ", "T", max_replacements=1)
    if types.is_date(kind) or types.is_time(kind) or types.is_decimal(kind):
        return array.cast(TEXT)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _escaped(array.cast(TEXT))
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return bytes_as_text(array)
    raise pa.ArrowNotImplementedError(f"JSON has nothing like {kind}")


def _escaped(text: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(text, _UNSAFE)).as_py():
        return text
    unsafe = ["\\", '"']
    if pc.any(pc.match_substring_regex(text, _CONTROL)).as_py():
        unsafe += map(chr, range(32))
    for character in unsafe:
        text = pc.replace_substring(text, character, json.dumps(character)[1:-1])
    return text


def _keys(array: pa.Array) -> pa.Array:
    """The keys of a map: JSON has only strings."""
    is_bare = types.is_nested(array.type) or _bare(array[:0]) is not None
    text = _json(array)
    return _concatenated('"', _escaped(text), '"') if is_bare else text


def _objects(names: list[str], columns: list[pa.Array], count: int, end: str) -> pa.Array:
    pieces: list[pa.Array | str] = [pa.repeat(pa.scalar("{", TEXT), count)]
    for position, (name, column) in enumerate(zip(names, columns, strict=True)):
        comma = "," if position else ""
        pieces += [f"{comma}{json.dumps(name, ensure_ascii=False)}:", _json(column)]
    return _concatenated(*pieces, end)


def _joined(begin: str, array: pa.Array, items: pa.Array, end: str) -> pa.Array:
    """The items of each list of an array, with commas between them."""
    lengths = _numbers(pc.list_value_length(array))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, items)
    return _known(array, _concatenated(begin, pc.binary_join(lists, pa.scalar(",", TEXT)), end))


def _as_list(maps: pa.Array) -> pa.Array:
    """Maps as the lists of pairs that they are; Arrow's cast refuses some types of values."""
    kind, pairs = pa.list_(maps.values.type), maps.values
    buffers = maps.buffers()[:2]
    return pa.Array.from_buffers(kind, len(maps), buffers, offset=maps.offset, children=[pairs])


def _concatenated(*pieces: pa.Array | str) -> pa.Array:
    scalars = [pa.scalar(piece, TEXT) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", TEXT))


def _known(array: pa.Array, text: pa.Array) -> pa.Array:
    """The text, and the word null where the array is null."""
    return pc.if_else(array.is_valid(), text, "null") if array.null_count else text


def _numbers(lengths: pa.Array) -> Int64s:
    return np.asarray(lengths.fill_null(0)).astype(np.int64)


def _contents(array: pa.Array) -> tuple[Int64s, pa.Buffer]:
    """Where each value of a large string or binary array begins, from 0 on, and all their bytes."""
    if not len(array):
        return np.zeros(1, np.int64), pa.py_buffer(b"")
    _, places, data = array.buffers()
    stored = np.frombuffer(places, np.int64)[array.offset : array.offset + len(array) + 1]
    starts = stored - stored[0]
    return starts, data.slice(stored[0], starts[-1]) if starts[-1] else pa.py_buffer(b"")


def _strings(offsets: Int64s, data: npt.NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(TEXT, len(offsets) - 1, buffers)


def _with_nulls_of(array: pa.Array, text: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), text, pa.scalar(None, TEXT)) if array.null_count else text
