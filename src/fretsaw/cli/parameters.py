"""The options that commands share, each written down once.

A command takes groups of them as decorators; what was given arrives under the names of the fields
of `CommandOptions`, converted.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from fretsaw.cli.options import column_names, new_names, storage_options

Command = TypeVar("Command", bound=Callable[..., Any])
Group = Callable[[Command], Command]
Converter = Callable[[Sequence[str]], object]

FORMATS = ("table", "csv", "json", "arrow", "parquet", "orc")
_COUNT = click.IntRange(min=0)


def _group(*parameters: Group[Any]) -> Group[Any]:
    """Several parameters, which the help lists in this order."""

    def add(command: Command) -> Command:
        for parameter in reversed(parameters):
            command = parameter(command)
        return command

    return add


def _listed(*names: str, convert: Converter, **how: Any) -> Group[Any]:
    """An option that may be repeated, whose texts are converted together."""

    def converted(context: click.Context, parameter: click.Parameter, value: Any) -> object:
        return convert(value)

    return click.option(*names, multiple=True, callback=converted, **how)


def _choice(name: str, *values: str, help: str) -> Group[Any]:
    """An option with a few values, of which the first is what is done without it."""
    return click.option(name, type=click.Choice(values), default=values[0], help=help)


SOURCES = click.argument("sources", nargs=-1, required=True, type=click.Path(allow_dash=True))
SOURCE = click.argument("source", type=click.Path(allow_dash=True))

WHERE = click.option(
    "--where", metavar="SQL", multiple=True, help="Only rows that match; several are ANDed."
)
WINDOW = _group(
    click.option("--skip", metavar="N", type=_COUNT, help="Leave out the first N rows."),
    click.option("--head", metavar="N", type=_COUNT, help="At most N rows."),
    click.option("--tail", metavar="N", type=_COUNT, help="At most the last N rows."),
)
COLUMNS = _listed(
    "--columns", metavar="NAMES", convert=column_names, help="Only these, as in a,b.c."
)
SHAPE = _group(
    COLUMNS,
    _listed(
        "--drop",
        "dropped",
        metavar="NAMES",
        convert=lambda lists: column_names(lists, "--drop") or (),
        help="All but these columns.",
    ),
    _listed(
        "--rename", "renamed", metavar="OLD=NEW", convert=new_names, help="Another name for one."
    ),
    click.option("--with-row-index", "row_index", is_flag=True, help="Row numbers, as 'index'."),
    click.option("--with-file-path", "file_path", is_flag=True, help="Paths, as 'path'."),
)
STORAGE = _listed(
    "--storage-option",
    "storage",
    metavar="NAME=VALUE",
    convert=storage_options,
    help="How to reach URLs.",
)
READING = _group(
    _choice("--missing", "error", "null", help="A column that a file lacks."),
    _choice("--types", "same", "widen", help="A column of several types."),
    click.option("--no-hive", is_flag=True, help="Folders named key=value are no columns."),
    _choice("--on-corrupt", "error", "skip", help="A file that cannot be read."),
    click.option("--no-indexes", is_flag=True, help="Believe no index: test every row."),
    _choice("--timestamps", "ns", "us", help="Unit of ORC times; us reaches 9999."),
    _choice("--int96", "ns", "us", "ms", help="Unit of old Parquet times."),
    STORAGE,
)
QUIET = click.option("--quiet", "-q", is_flag=True, help="No progress bar, no summary.")
ENGINE = _group(
    click.option(
        "--engine", type=click.Choice(("local", "spark")), help="Who reads: here, or Spark."
    ),
    click.option("--master", metavar="URL", help="Where Spark runs, such as local[4]."),
    QUIET,
)
FORMAT = click.option(
    "--format",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help="table, csv, json, arrow, parquet, orc.",
)
SHOWN_AS = click.option(
    "--format",
    type=click.Choice(FORMATS[:4]),
    metavar="FORMAT",
    help="table, csv, json or arrow.",
)
OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace what is there already.")
