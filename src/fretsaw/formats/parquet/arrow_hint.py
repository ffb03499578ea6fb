"""Single fields of the Arrow schema that a writer left in the footer, without decoding all of it.

The schema is an IPC message, a flatbuffer in base64. Of a file of ten thousand columns only the
bytes that lead to a few of them are looked at. What is not a plain type is left to Arrow, which
then decodes the schema as a whole.
"""

import binascii
import struct

import pyarrow as pa

_MARK = b"\xff\xff\xff\xff"
_BEFORE = 8  # the mark, and the length of the message
_INT, _FLOAT = 2, 3
_PLAIN = {4: pa.binary(), 5: pa.string(), 6: pa.bool_()}
_FLOATS = {0: pa.float16(), 1: pa.float32(), 2: pa.float64()}
_INTS = {
    (width, signed): getattr(pa, f"{'' if signed else 'u'}int{width}")()
    for width in (8, 16, 32, 64)
    for signed in (False, True)
}


def peek_field(encoded: bytes, position: int, count: int, name: str) -> pa.Field | None:
    """A field of an encoded schema of so many fields, if it has this name and a plain type."""
    try:
        return _Peek(encoded).field(position, count, name)
    except (struct.error, binascii.Error, IndexError, UnicodeDecodeError):
        return None


class _Peek:
    """Tables of a flatbuffer by their offsets in the message."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded

    def field(self, position: int, count: int, name: str) -> pa.Field | None:
        if self._bytes(0, len(_MARK)) != _MARK:
            return None
        message = _BEFORE + self._number("<I", _BEFORE)
        schema = self._follow(message, 2)
        fields = None if schema is None else self._follow(schema, 1)
        if fields is None or self._number("<I", fields) != count:
            return None
        place = fields + 4 + 4 * position
        field = place + self._number("<I", place)
        text = self._follow(field, 0)
        if text is None or self._bytes(text + 4, self._number("<I", text)).decode() != name:
            return None
        children = self._follow(field, 5)
        if self._slot(field, 4) or self._slot(field, 6):  # a dictionary, or metadata
            return None
        if children is not None and self._number("<I", children):
            return None
        kind = self._type(self._value(field, 2, "<B", 0), self._follow(field, 3))
        return None if kind is None else pa.field(name, kind, bool(self._value(field, 1, "<B", 0)))

    def _type(self, kind: int, details: int | None) -> pa.DataType | None:
        if details is None:
            return None
        if kind == _INT:
            signed = bool(self._value(details, 1, "<B", 0))
            return _INTS.get((self._value(details, 0, "<i", 0), signed))
        if kind == _FLOAT:
            return _FLOATS.get(self._value(details, 0, "<h", 0))
        return _PLAIN.get(kind)

    def _follow(self, table: int, field: int) -> int | None:
        """Where what a field refers to begins; None if it is not there."""
        place = self._slot(table, field)
        return place + self._number("<I", place) if place else None

    def _value(self, table: int, field: int, code: str, default: int) -> int:
        place = self._slot(table, field)
        return self._number(code, place) if place else default

    def _slot(self, table: int, field: int) -> int:
        """Where a field of a table is; 0 if it is not there."""
        entries = table - self._number("<i", table)
        if 4 + 2 * field >= self._number("<H", entries):
            return 0
        offset = self._number("<H", entries + 4 + 2 * field)
        return table + offset if offset else 0

    def _number(self, code: str, at: int) -> int:
        (number,) = struct.unpack(code, self._bytes(at, struct.calcsize(code)))
        return int(number)

    def _bytes(self, at: int, length: int) -> bytes:
        """Bytes of the message; three of them are four characters."""
        if at < 0:
            raise IndexError(at)
        begin, end = at // 3, -(-(at + length) // 3)
        found = binascii.a2b_base64(self._encoded[4 * begin : 4 * end], strict_mode=True)
        return found[at - 3 * begin :][:length]
