"""Which format a file has: told by its magic bytes, never by its name."""

import importlib
from typing import cast

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import FileReader, FormatModule, ReadOptions
from fretsaw.model.locks import importing
from fretsaw.storage.requests import Request, Steps

_PARQUET_MAGIC = (b"PAR1", b"PARE")
_ORC_MAGIC = b"ORC"


def open_file(
    name: str, size: int, tail_size: int, options: ReadOptions, like: FileReader | None
) -> Steps[FileReader]:
    """Tell the format by the magic bytes and read the footer."""
    if size == 0:
        raise FileFormatError.other_format(f"{name}: is empty (0 bytes); no Parquet or ORC file is")
    length = min(size, tail_size)
    (tail,) = yield Request([(size - length, length)], "footer")
    end = tail.to_pybytes()[-4:]
    if end in _PARQUET_MAGIC:
        module = "fretsaw.formats.parquet.reader"
    elif end[:3] == _ORC_MAGIC:  # behind it, the length of the postscript
        module = "fretsaw.formats.orc.reader"
    else:
        raise (yield from _not_known(name, size))
    with importing:
        format_module = cast(FormatModule, importlib.import_module(module))
    return (yield from format_module.open_file(name, size, tail, options, like))


def _not_known(name: str, size: int) -> Steps[FileFormatError]:
    """The error for a file that does not end like one of a known format."""
    (head,) = yield Request([(0, min(size, 4))], "footer")
    begin = head.to_pybytes()
    for format_name, is_so in (
        ("a Parquet", begin in _PARQUET_MAGIC),
        ("an ORC", begin[:3] == _ORC_MAGIC),
    ):
        if is_so:
            return FileFormatError(
                f"{name}: begins like {format_name} file but does not end like one; "
                f"it is truncated at byte {size}, write or copy it again"
            )
    return FileFormatError.other_format(
        f"{name}: is not a Parquet or ORC file (no magic bytes at its end)"
    )
