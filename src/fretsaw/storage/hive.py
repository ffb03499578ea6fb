"""Folders named `key=value`, as Hive and Spark write them: columns of the files inside."""

import datetime
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from fretsaw.errors import SchemaMismatchError

Hive: TypeAlias = bool | Mapping[str, pa.DataType]
"""Whether folders are columns; or these columns, of these types."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a folder says where the value is null."""


def folders_of(path: str, root: str) -> tuple[tuple[str, str | None], ...]:
    """The `key=value` folders of a file below a root."""
    folder = path.rpartition(os.sep)[0]
    return _pairs_of(folder[len(os.path.dirname(os.path.join(root, ""))) :])


@lru_cache
def _pairs_of(folders: str) -> tuple[tuple[str, str | None], ...]:
    pairs = [each.split("=", 1) for each in folders.split(os.sep) if "=" in each.strip("=")]
    return tuple(
        (unquote(key), None if value == HIVE_NULL else unquote(value)) for key, value in pairs
    )


def common_type(values: Iterable[str | None]) -> pa.DataType:
    """int64 if all values are integers, else date if all are dates, else string."""
    known = [value for value in values if value is not None]
    if not known:
        return pa.string()
    if all(map(_is_int64, known)):
        return pa.int64()
    return pa.date32() if all(map(_is_date, known)) else pa.string()


def _is_int64(value: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]{1,30}", value)) and -(1 << 63) <= int(value) < 1 << 63


def _is_date(value: str) -> bool:
    try:
        return bool(
            re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)
            and datetime.date.fromisoformat(value)
        )
    except ValueError:
        return False


def folder_values(values: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """What folders say, as values of a type."""
    if pa.types.is_int64(kind):
        return pa.array([None if value is None else int(value) for value in values], kind)
    texts = pa.array(values, pa.string())
    return texts if kind == pa.string() else texts.cast(kind)


def require_type(values: Sequence[str | None], key: str, kind: pa.DataType, source: str) -> None:
    """Refuse a type that values of folders are not of."""
    for value in values:
        try:
            folder_values([value], kind)
        except (pa.ArrowException, ValueError):
            raise SchemaMismatchError(
                f"{source}: the folder {key}={value} is no {kind}; give another type for {key!r} "
                f"in fs.scan(..., hive=...), such as pa.string()"
            ) from None
