"""The options of the data source: text in, checked values out.

Spark gives all options as text, their names in any case. What is unknown or makes no sense is a
`ValueError` that says what would do.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

import pyarrow as pa

from fretsaw.engine.query import Window
from fretsaw.model.schema import Path
from fretsaw.scan import Scan, scan
from fretsaw.storage.hive import Hive

NAMES = (
    *("path", "paths", "filter", "columns", "drop", "rename", "skip", "head", "tail"),
    *("splitBytes", "missing", "types", "hive", "onCorrupt", "indexes", "storageOptions"),
)
Missing = Literal["error", "null"]
Types = Literal["same", "widen"]
OnCorrupt = Literal["error", "skip"]
Indexes = Literal["true", "false"]

SPLIT_BYTES = 128 << 20

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class Options:
    """What to read, and how."""

    paths: tuple[str, ...]
    filter: str | None = None
    columns: tuple[Path, ...] | None = None
    dropped: tuple[Path, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Names in the result by those that the files have."""
    window: Window = field(default_factory=Window)
    split_bytes: int = SPLIT_BYTES
    missing: Missing = "error"
    types: Types = "same"
    hive: Hive = True
    on_corrupt: OnCorrupt = "error"
    indexes: bool = True
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    def scan(self) -> Scan:
        """The scan of all columns, without the window; nothing is read yet."""
        # Spark has no finer timestamps, and in microseconds all of them have their place.
        whole = scan(
            list(self.paths),
            storage_options=self.storage,
            missing=self.missing,
            types=self.types,
            hive=self.hive,
            on_corrupt=self.on_corrupt,
            indexes=self.indexes,
            int96="us",
            timestamps="us",
        )
        return whole if self.filter is None else whole.filter(self.filter)


def parse_options(given: Mapping[str, str]) -> Options:
    """The options that were given."""
    known = {name.lower(): name for name in NAMES}
    unknown = [name for name in given if name.lower() not in known]
    if unknown:
        raise ValueError(
            f"unknown option {', '.join(map(repr, sorted(unknown)))}; "
            f"the options are {', '.join(NAMES)}"
        )
    values = {known[name.lower()]: value for name, value in given.items()}
    if "tail" in values and ("skip" in values or "head" in values):
        raise ValueError("option tail excludes skip and head")
    return Options(
        paths=_paths(values),
        filter=values.get("filter"),
        columns=_columns("columns", values["columns"]) if "columns" in values else None,
        dropped=_columns("drop", values["drop"]) if "drop" in values else (),
        renamed=_names(values.get("rename", "{}")),
        window=Window(*(_count(name, values) for name in ("skip", "head", "tail"))),
        split_bytes=_bytes(values.get("splitBytes", str(SPLIT_BYTES))),
        missing=cast(Missing, _one_of("missing", values, get_args(Missing))),
        types=cast(Types, _one_of("types", values, get_args(Types))),
        hive=_hive(values.get("hive", "true")),
        on_corrupt=cast(OnCorrupt, _one_of("onCorrupt", values, get_args(OnCorrupt))),
        indexes=_one_of("indexes", values, get_args(Indexes)) == "true",
        storage=_storage(values.get("storageOptions", "{}")),
    )


def _paths(values: Mapping[str, str]) -> tuple[str, ...]:
    if ("path" in values) == ("paths" in values):
        raise ValueError(
            "say what to read, once: .load(path), .load([path, ...]), option path, or option paths "
            "with a JSON list"
        )
    if "path" in values:
        return (values["path"],)
    paths = _json_list("paths", values["paths"])
    if not paths or not all(isinstance(path, str) for path in paths):
        raise ValueError(f"option paths: a JSON list of paths, not {values['paths']!r}")
    return cast(tuple[str, ...], tuple(paths))


def _columns(option: str, text: str) -> tuple[Path, ...]:
    """Names with commas between them, or a JSON list of names and of lists of steps."""
    listed: list[object]
    if text.lstrip().startswith("["):
        listed = _json_list(option, text)
    else:
        listed = [name.strip() for name in text.split(",")]
    for name in listed:
        steps = name if isinstance(name, list) else [name]
        if not steps or not all(isinstance(step, str) and step for step in steps):
            raise ValueError(
                f"option {option}: names such as 'id, address.city', or a JSON list, not {text!r}"
            )
    return tuple(cast(Path, tuple(name) if isinstance(name, list) else name) for name in listed)


def _names(text: str) -> dict[str, str]:
    """Other names of columns, by their names."""
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise ValueError(f"option rename: a JSON object such as {{'old': 'new'}}, not {text!r}")
    return names


def _hive(text: str) -> Hive:
    """Whether folders are columns, or which of them and of what types, by the names of Arrow's."""
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    try:
        return {name: pa.type_for_alias(kind) for name, kind in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(
            f"option hive: true, false, or types by names as in "
            f'{{"day": "date32", "code": "string"}}, not {text!r}'
        ) from None


def _storage(text: str) -> dict[str, str]:
    """How URLs are reached; the text has secrets and is not repeated in the error."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError(
            'option storageOptions: texts by names, as JSON, as in {"aws_region": "eu-central-1"}'
        )
    return given


def _json_list(option: str, text: str) -> list[object]:
    try:
        listed = json.loads(text)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not listed:
        raise ValueError(f'option {option}: a JSON list such as ["a", "b"], not {text!r}')
    return listed


def _count(option: str, values: Mapping[str, str]) -> int | None:
    text = values.get(option)
    if text is None:
        return None
    if not re.fullmatch(r"\s*[0-9]{1,18}\s*", text):
        raise ValueError(f"option {option}: a number of rows, not {text!r}")
    return int(text)


def _bytes(text: str) -> int:
    """A number of bytes, with Spark's suffixes."""
    matched = re.fullmatch(r"\s*([0-9]{1,12})\s*(?:b|([kmg])b?)?\s*", text.lower())
    number = int(matched[1]) * _UNITS[matched[2] or ""] if matched else 0
    if number < 1:
        raise ValueError(
            f"option splitBytes: a number of bytes such as 134217728 or 128m, not {text!r}"
        )
    return number


def _one_of(option: str, values: Mapping[str, str], choices: tuple[str, ...]) -> str:
    text = values.get(option, choices[0]).strip().lower()
    if text not in choices:
        raise ValueError(f"option {option}: {' or '.join(choices)}, not {values[option]!r}")
    return text
