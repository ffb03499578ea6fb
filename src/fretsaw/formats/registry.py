"""Which format a file has: told by its magic bytes, never by its name."""

import importlib
from dataclasses import dataclass
from functools import cache
from typing import cast

from fretsaw.errors import FileFormatError
from fretsaw.formats.interface import FileReader, FormatModule, ReadOptions
from fretsaw.model.locks import importing
from fretsaw.storage.requests import Request, Steps


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a format begin and end, and which module reads them."""

    name: str
    """With its article, as messages call a file of it: "an ORC"."""
    magics: tuple[bytes, ...]
    """Its files begin with one of these, and end with one."""
    reader: str
    """A `FormatModule`, which is imported with the first file of the format."""
    behind: int = 0
    """How many bytes follow the magic ones at the end of a file."""

    def begins(self, head: bytes) -> bool:
        """Whether a file with these first bytes may be of the format."""
        return head.startswith(self.magics)

    def ends(self, tail: bytes) -> bool:
        """Whether a file with these last bytes may be of the format."""
        return tail[: len(tail) - self.behind].endswith(self.magics)


FORMATS = (
    Format("a Parquet", (b"PAR1", b"PARE"), "fretsaw.formats.parquet.reader"),
    # Behind the magic bytes stands the length of the postscript.
    Format("an ORC", (b"ORC",), "fretsaw.formats.orc.reader", behind=1),
)


def open_file(
    name: str, size: int, tail_size: int, options: ReadOptions, like: FileReader | None
) -> Steps[FileReader]:
    """Tell the format by the magic bytes and read the footer."""
    if size == 0:
        raise FileFormatError.other_format(f"{name}: is empty (0 bytes), not {_any_format()} file")
    length = min(size, tail_size)
    (tail,) = yield Request([(size - length, length)], "footer")
    end = tail.to_pybytes()
    known = next((one for one in FORMATS if one.ends(end)), None)
    if known is None:
        raise (yield from _not_known(name, size))
    return (yield from _module(known.reader).open_file(name, size, tail, options, like))


@cache
def _module(name: str) -> FormatModule:
    with importing:
        return cast(FormatModule, importlib.import_module(name))


def _not_known(name: str, size: int) -> Steps[FileFormatError]:
    """The error for a file that does not end like one of a known format."""
    longest = max(len(magic) for one in FORMATS for magic in one.magics)
    (head,) = yield Request([(0, min(size, longest))], "footer")
    begin = head.to_pybytes()
    for one in FORMATS:
        if one.begins(begin):
            return FileFormatError(
                f"{name}: begins like {one.name} file but does not end like one; "
                f"it is truncated at byte {size}, write or copy it again"
            )
    return FileFormatError.other_format(
        f"{name}: is not {_any_format()} file (no magic bytes at its end)"
    )


def _any_format() -> str:
    return " or ".join(one.name for one in FORMATS)
