"""Values as text: what has none, and the columns of CSV."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from fretsaw.results.write.json_lines import bytes_as_text, uuids_as_text
from fretsaw.results.write.types import plain

_LAST_YEAR = 32_767
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def require_text(table: pa.Table) -> None:
    """Refuse what cannot be spelled: strings that are not UTF-8, times too far away."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {name!r} holds what is no text: {error}") from error
        if any(map(_is_far_away, column.chunks)):
            raise pa.ArrowInvalid(f"column {name!r} holds a time that has no text")


def csv_table(table: pa.Table) -> pa.Table:
    """The columns as CSV has them."""
    columns = [csv_column(column) for column in table.columns]
    if len(columns) == 1:
        # An empty line would be no row to most readers: a lone null is an empty string.
        columns = [columns[0].cast(pa.large_string()).fill_null("")]
    return pa.table(columns, table.column_names)


def csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as CSV has it."""
    if column.type == pa.uuid():
        return _by_chunk(uuids_as_text, column)
    kind = plain(column.type)
    column = column.cast(kind)
    if types.is_timestamp(kind) and kind.tz is not None:
        return column.cast(pa.timestamp(kind.unit, "UTC"))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _by_chunk(bytes_as_text, column)
    return column


def _by_chunk(function: Callable[[pa.Array], pa.Array], column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([function(chunk) for chunk in column.chunks], pa.large_string())


def _is_far_away(array: pa.Array) -> bool:
    """Whether there is a time that Arrow does not spell, of years beyond 32,767."""
    kind = array.type
    if types.is_dictionary(kind):
        return _is_far_away(array.dictionary)
    if isinstance(kind, pa.BaseExtensionType):
        return _is_far_away(array.storage)
    if types.is_map(kind):
        return _is_far_away(array.keys) or _is_far_away(array.items)
    if types.is_struct(kind):
        return any(map(_is_far_away, array.flatten()))
    if types.is_nested(kind):
        return _is_far_away(array.flatten())
    if not types.is_timestamp(kind) or array.null_count == len(array):
        return False
    ends = pc.min_max(array.cast(pa.int64())).as_py()
    most = (_LAST_YEAR - 1970) * 365 * 86_400 * _PER_SECOND[kind.unit]
    return bool(max(-ends["min"], ends["max"]) > most)
