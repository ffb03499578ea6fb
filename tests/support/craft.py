"""Files whose metadata says something else than their pages: what no well-behaved writer makes.

In: the bytes of a Parquet file, as pyarrow writes it. Out: the same pages under another footer
and other page indexes. Thrift structs are `{field: (kind, value)}` and lists `(kind, [values])`,
so that nothing is lost on the way, known or not. Changes are by name: `None` takes a field out.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Self

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Struct = dict[int, tuple[int, Any]]
Fields = Mapping[str, tuple[int, int] | tuple[int, int, int]]
Changes = Mapping[str, Any]

STATISTICS: Fields = {
    "max": (1, BINARY),
    "min": (2, BINARY),
    "null_count": (3, I64),
    "distinct_count": (4, I64),
    "max_value": (5, BINARY),
    "min_value": (6, BINARY),
    "is_max_value_exact": (7, TRUE),
    "is_min_value_exact": (8, TRUE),
    "nan_count": (9, I64),
}
COLUMN_INDEX: Fields = {
    "null_pages": (1, LIST, TRUE),
    "min_values": (2, LIST, BINARY),
    "max_values": (3, LIST, BINARY),
    "boundary_order": (4, I32),
    "null_counts": (5, LIST, I64),
    "repetition_level_histograms": (6, LIST, I64),
    "definition_level_histograms": (7, LIST, I64),
    "nan_counts": (8, LIST, I64),
}
SCHEMA_ELEMENT: Fields = {
    "type_length": (2, I32),
    "converted_type": (6, I32),
    "scale": (7, I32),
    "precision": (8, I32),
}
SORTING_COLUMN: Fields = {"column_idx": (1, I32), "descending": (2, TRUE), "nulls_first": (3, TRUE)}
# Field numbers: of FileMetaData, RowGroup, ColumnChunk (each index with its length), ColumnMetaData
SCHEMA, ROW_GROUPS, CREATED_BY, COLUMN_ORDERS = 2, 4, 6, 7
COLUMNS, SORTING_COLUMNS = 1, 4
META_DATA, OFFSET_INDEX_AT, COLUMN_INDEX_AT = 3, 4, 6
PATH_IN_SCHEMA, STATISTICS_OF_CHUNK, SIZE_STATISTICS = 3, 12, 16
PAGE_LOCATIONS, FIRST_ROW_INDEX = 1, 3
# Orders of a column, by their field in the union
TYPE_ORDER, IEEE754_ORDER, UNHEARD_ORDER = 1, 2, 14


class Reader:
    """Thrift's compact protocol, from a position on."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self._position = position

    def take(self, size: int) -> bytes:
        self._position += size
        return self._data[self._position - size : self._position]

    def varint(self) -> int:
        result = shift = 0
        while (byte := self.take(1)[0]) > 127:
            result |= (byte & 127) << shift
            shift += 7
        return result | byte << shift

    def zigzag(self) -> int:
        number = self.varint()
        return number >> 1 ^ -(number & 1)

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):  # the item of a list: a field has its value in its kind
            return self.take(1)[0] == TRUE
        if kind == BYTE:
            return self.take(1)[0]
        if kind in (I16, I32, I64):
            return self.zigzag()
        if kind == DOUBLE:
            return struct.unpack("<d", self.take(8))[0]
        if kind == BINARY:
            return self.take(self.varint())
        if kind in (LIST, SET):
            header = self.take(1)[0]
            size = header >> 4 if header >> 4 < 15 else self.varint()
            return header & 15, [self.value(header & 15) for _ in range(size)]
        assert kind == STRUCT, f"no Parquet file holds a Thrift value of kind {kind}"
        return self.struct()

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while header := self.take(1)[0]:
            number = number + (header >> 4) if header >> 4 else self.zigzag()
            kind = header & 15
            is_bool = kind in (TRUE, FALSE)
            fields[number] = (TRUE, kind == TRUE) if is_bool else (kind, self.value(kind))
        return fields


def varint(number: int) -> bytes:
    low = number & 127
    return bytes([low | 128]) + varint(number >> 7) if number > 127 else bytes([low])


def encoded(value: Any, kind: int = STRUCT) -> bytes:
    """A value in Thrift's compact protocol."""
    if kind in (TRUE, FALSE):
        return bytes([TRUE if value else FALSE])
    if kind == BYTE:
        return bytes([value])
    if kind in (I16, I32, I64):
        return varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == DOUBLE:
        return struct.pack("<d", value)
    if kind == BINARY:
        return varint(len(value)) + bytes(value)
    if kind in (LIST, SET):
        item_kind, items = value
        header = bytes([240 | item_kind]) + varint(len(items))
        return header + b"".join(encoded(item, item_kind) for item in items)
    parts = []
    for number, (field_kind, field) in sorted(value.items()):
        kind_and_value = encoded(field, TRUE) if field_kind == TRUE else bytes([field_kind])
        body = b"" if field_kind == TRUE else encoded(field, field_kind)
        parts.append(kind_and_value + encoded(number, I16) + body)
    return b"".join(parts) + b"\0"


def named(fields: Fields, source: Struct) -> dict[str, Any]:
    """The fields of a struct that have a name here, lists as lists."""
    return {
        name: source[spec[0]][1][1] if spec[1] == LIST else source[spec[0]][1]
        for name, spec in fields.items()
        if spec[0] in source
    }


def changed(fields: Fields, source: Struct, changes: Changes) -> Struct:
    """The struct with some fields set, or taken out where the new value is `None`."""
    result = dict(source)
    for name, value in changes.items():
        number, kind, *item_kind = fields[name]
        result.pop(number, None)
        if value is not None:
            result[number] = (kind, (*item_kind, list(value)) if item_kind else value)
    return result


class Crafted:
    """A file under change: each method changes one thing and gives the file back."""

    def __init__(self, data: bytes) -> None:
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        self.body = data[:start]
        self.footer = Reader(data, start).struct()

    def to_bytes(self) -> bytes:
        footer = encoded(self.footer)
        return self.body + footer + len(footer).to_bytes(4, "little") + b"PAR1"

    def chunks(self, column: str) -> list[Struct]:
        """The column's ColumnChunk in each row group."""
        found = []
        for group in self.footer[ROW_GROUPS][1][1]:
            for chunk in group[COLUMNS][1][1]:
                path = chunk[META_DATA][1][PATH_IN_SCHEMA][1][1]
                if b".".join(path).decode() == column:
                    found.append(chunk)
        assert found, f"no column {column}"
        return found

    def statistics(self, column: str) -> list[dict[str, Any]]:
        """What the footer says of the column, by row group; empty where it says nothing."""
        metas = [chunk[META_DATA][1] for chunk in self.chunks(column)]
        return [named(STATISTICS, meta.get(STATISTICS_OF_CHUNK, (STRUCT, {}))[1]) for meta in metas]

    def column_index(self, column: str) -> list[dict[str, Any]]:
        """What the column indexes say, by row group; empty where there is none."""
        places = [chunk.get(COLUMN_INDEX_AT) for chunk in self.chunks(column)]
        structs = [Reader(self.body, at[1]).struct() if at else {} for at in places]
        return [named(COLUMN_INDEX, index) for index in structs]

    def set_statistics(self, column: str, changes: Sequence[Changes | None]) -> Self:
        """Change the statistics of the column in each row group, or take them out: `None`."""
        for chunk, change in zip(self.chunks(column), changes, strict=True):
            meta = chunk[META_DATA][1]
            meta.pop(SIZE_STATISTICS, None)  # level histograms would give the truth away
            _, before = meta.pop(STATISTICS_OF_CHUNK, (STRUCT, {}))
            if change is not None:
                meta[STATISTICS_OF_CHUNK] = (STRUCT, changed(STATISTICS, before, change))
        return self

    def set_column_index(self, column: str, changes: Sequence[Changes | bytes | None]) -> Self:
        """Change the column index in each row group, replace it by bytes, or take it out.

        Histograms of levels, which would give the truth away, are left out unless given.
        """
        for chunk, change in zip(self.chunks(column), changes, strict=True):
            _, place = chunk.pop(COLUMN_INDEX_AT, (I64, None))
            chunk.pop(COLUMN_INDEX_AT + 1, None)
            if isinstance(change, bytes):
                self._append(chunk, COLUMN_INDEX_AT, change)
            elif change is not None:
                before = Reader(self.body, place).struct() if place else {}
                hidden = {name: None for name in COLUMN_INDEX if name.endswith("histograms")}
                index = changed(COLUMN_INDEX, before, {**hidden, **change})
                self._append(chunk, COLUMN_INDEX_AT, encoded(index))
        return self

    def set_first_rows(self, column: str, first_rows: Sequence[Sequence[int]]) -> Self:
        """Change where the pages begin, as the offset index of each row group says it."""
        for chunk, rows in zip(self.chunks(column), first_rows, strict=True):
            index = Reader(self.body, chunk[OFFSET_INDEX_AT][1]).struct()
            for location, row in zip(index[PAGE_LOCATIONS][1][1], rows, strict=True):
                location[FIRST_ROW_INDEX] = (I64, row)
            self._append(chunk, OFFSET_INDEX_AT, encoded(index))
        return self

    def set_column_orders(self, order: int | None) -> Self:
        """The same order for every column, or no orders at all."""
        _, (kind, before) = self.footer.pop(COLUMN_ORDERS)
        if order is not None:
            orders: list[Struct] = [{order: (STRUCT, {})} for _ in before]
            self.footer[COLUMN_ORDERS] = (LIST, (kind, orders))
        return self

    def set_sorting_columns(self, *columns: Changes) -> Self:
        """What every row group claims to be sorted by."""
        claims = [changed(SORTING_COLUMN, {}, column) for column in columns]
        for group in self.footer[ROW_GROUPS][1][1]:
            group[SORTING_COLUMNS] = (LIST, (STRUCT, claims))
        return self

    def set_created_by(self, writer: str | None) -> Self:
        self.footer.pop(CREATED_BY, None)
        if writer is not None:
            self.footer[CREATED_BY] = (BINARY, writer.encode())
        return self

    def set_type(self, column: str, **changes: int | None) -> Self:
        """Change the annotation of a column at the top of the schema."""
        elements = self.footer[SCHEMA][1][1]
        place = next(i for i, element in enumerate(elements) if element[4][1] == column.encode())
        elements[place] = changed(SCHEMA_ELEMENT, elements[place], changes)
        return self

    def _append(self, chunk: Struct, field: int, index: bytes) -> None:
        chunk[field] = (I64, len(self.body))
        chunk[field + 1] = (I32, len(index))
        self.body += index
