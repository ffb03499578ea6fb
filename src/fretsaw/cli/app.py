"""The commands and their options."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

import fretsaw
from fretsaw.cli.failures import reporting
from fretsaw.cli.options import CommandOptions, column_names, new_names, storage_options

if TYPE_CHECKING:
    from fretsaw.cli.engines import Engines

# What does the work is imported when there is some: help and mistakes are told at once.

app = typer.Typer(
    help="Read just the rows you ask for out of Parquet and ORC files.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class OutputFormat(StrEnum):
    """What rows become."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    PARQUET = "parquet"
    ORC = "orc"


class EngineName(StrEnum):
    """Who reads."""

    LOCAL = "local"
    SPARK = "spark"


class OnCorrupt(StrEnum):
    """What becomes of a file that cannot be read."""

    ERROR = "error"
    SKIP = "skip"


class Missing(StrEnum):
    """What a column is that a file lacks."""

    ERROR = "error"
    NULL = "null"


class Types(StrEnum):
    """What becomes of a column that files store in several types."""

    SAME = "same"
    WIDEN = "widen"


class Timestamps(StrEnum):
    """The unit that times of ORC files become."""

    NS = "ns"
    US = "us"


SourcePaths: TypeAlias = Annotated[
    list[str], typer.Argument(help="Files, directories, globs or URLs.", metavar="SOURCES")
]
Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="SQL", help="Only rows that match this condition; several are ANDed."),
]
ColumnLists: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Only these columns, as in a,b.c; may be repeated."),
]
Skip: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Leave out the first N rows.")
]
Head: TypeAlias = Annotated[int | None, typer.Option(metavar="N", min=0, help="At most N rows.")]
Tail: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="At most the last N rows.")
]
MissingIs: TypeAlias = Annotated[
    Missing, typer.Option(help="A column that one of the files lacks: an error, or null there.")
]
TypesAre: TypeAlias = Annotated[
    Types,
    typer.Option(
        help="A column that files store in several types: an error, or one that holds all."
    ),
]
NoHive: TypeAlias = Annotated[
    bool, typer.Option("--no-hive", help="Folders named key=value are no columns.")
]
Dropped: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="NAMES", help="All but these columns; may be repeated."),
]
Renamed: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rename", metavar="OLD=NEW", help="Another name for a column; may be repeated."),
]
WithRowIndex: TypeAlias = Annotated[
    bool, typer.Option("--with-row-index", help="Add the row number as a column, 'index'.")
]
WithFilePath: TypeAlias = Annotated[
    bool, typer.Option("--with-file-path", help="Add the path of the file as a column, 'path'.")
]
NoIndexes: TypeAlias = Annotated[
    bool,
    typer.Option("--no-indexes", help="Believe no index of a file: test every row."),
]
TimestampsAre: TypeAlias = Annotated[
    Timestamps,
    typer.Option("--timestamps", help="The unit of ORC times; us reaches from 0001 to 9999."),
]
EngineIs: TypeAlias = Annotated[
    EngineName | None,
    typer.Option("--engine", help="Read here or on Spark; under spark-submit, on Spark."),
]
Master: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="Where Spark runs, such as local[4].")
]
OnCorruptIs: TypeAlias = Annotated[
    OnCorrupt,
    typer.Option("--on-corrupt", help="A file that cannot be read: an error, or left out."),
]
StorageOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="How to reach URLs, as in aws_region=eu-central-1; may be repeated.",
    ),
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bar and no summary on stderr.")
]


@app.callback(invoke_without_command=True)
def version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Options of all commands."""
    if version:
        print(f"fretsaw {fretsaw.__version__}")
        raise typer.Exit


@app.command()
@reporting()
def select(
    sources: SourcePaths,
    where: Where = None,
    columns: ColumnLists = None,
    skip: Skip = None,
    head: Head = None,
    tail: Tail = None,
    drop: Dropped = None,
    rename: Renamed = None,
    missing: MissingIs = Missing.ERROR,
    types: TypesAre = Types.SAME,
    no_hive: NoHive = False,
    with_row_index: WithRowIndex = False,
    with_file_path: WithFilePath = False,
    output: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write files into this new directory, all or none."),
    ] = None,
    format: Annotated[
        OutputFormat | None,
        typer.Option(
            help="Of the rows: a table on a terminal and csv elsewhere, parquet in a directory.",
            show_default=False,
        ),
    ] = None,
    no_indexes: NoIndexes = False,
    timestamps: TimestampsAre = Timestamps.NS,
    engine: EngineIs = None,
    master: Master = None,
    on_corrupt: OnCorruptIs = OnCorrupt.ERROR,
    storage_option: StorageOptions = None,
    quiet: Quiet = False,
) -> None:
    """Print the rows, or write them into a directory."""
    from fretsaw.cli import work

    chosen = _format(format, output)
    _check_window(skip, head, tail)
    names = column_names(columns or ())
    options = CommandOptions(
        sources,
        where or (),
        names,
        skip,
        head,
        tail,
        missing.value,
        with_row_index,
        with_file_path,
        on_corrupt.value,
        not no_indexes,
        types.value,
        not no_hive,
        column_names(drop or (), "--drop") or (),
        new_names(rename or ()),
        storage_options(storage_option or ()),
        timestamps.value,
    )
    engines = _engines(engine, master, quiet)
    if output is not None:
        work.write(options, engines, output, chosen)
    elif chosen == "table":
        work.show(options, engines)
    else:
        work.stream(options, engines, chosen)


@app.command()
@reporting()
def count(
    sources: SourcePaths,
    where: Where = None,
    skip: Skip = None,
    head: Head = None,
    tail: Tail = None,
    missing: MissingIs = Missing.ERROR,
    types: TypesAre = Types.SAME,
    no_hive: NoHive = False,
    no_indexes: NoIndexes = False,
    timestamps: TimestampsAre = Timestamps.NS,
    engine: EngineIs = None,
    master: Master = None,
    on_corrupt: OnCorruptIs = OnCorrupt.ERROR,
    storage_option: StorageOptions = None,
    quiet: Quiet = False,
) -> None:
    """Print how many rows there are; no data is read where metadata prove the answer."""
    from fretsaw.cli import work

    _check_window(skip, head, tail)
    options = CommandOptions(
        sources,
        where or (),
        None,
        skip,
        head,
        tail,
        missing.value,
        on_corrupt=on_corrupt.value,
        indexes=not no_indexes,
        types=types.value,
        hive=not no_hive,
        storage=storage_options(storage_option or ()),
        timestamps=timestamps.value,
    )
    work.count(options, _engines(engine, master, quiet))


@app.command()
@reporting()
def explain(
    sources: SourcePaths,
    where: Where = None,
    columns: ColumnLists = None,
    skip: Skip = None,
    head: Head = None,
    tail: Tail = None,
    drop: Dropped = None,
    rename: Renamed = None,
    missing: MissingIs = Missing.ERROR,
    types: TypesAre = Types.SAME,
    no_hive: NoHive = False,
    with_row_index: WithRowIndex = False,
    with_file_path: WithFilePath = False,
    run: Annotated[
        bool, typer.Option("--run", help="Read the rows too, and say what happened.")
    ] = False,
    no_indexes: NoIndexes = False,
    timestamps: TimestampsAre = Timestamps.NS,
    engine: EngineIs = None,
    master: Master = None,
    on_corrupt: OnCorruptIs = OnCorrupt.ERROR,
    storage_option: StorageOptions = None,
    quiet: Quiet = False,
) -> None:
    """Print what would be read, and what rules out the rest."""
    from fretsaw.cli import work

    _check_window(skip, head, tail)
    names = column_names(columns or ())
    options = CommandOptions(
        sources,
        where or (),
        names,
        skip,
        head,
        tail,
        missing.value,
        with_row_index,
        with_file_path,
        on_corrupt.value,
        not no_indexes,
        types.value,
        not no_hive,
        column_names(drop or (), "--drop") or (),
        new_names(rename or ()),
        storage_options(storage_option or ()),
        timestamps.value,
    )
    work.explain(options, _engines(engine, master, quiet), run)


def _format(format: OutputFormat | None, output: str | None) -> str:
    """The format that was asked for, or what fits the place where the rows go."""
    if output == "":
        raise typer.BadParameter("--output: the name of a directory, not an empty one")
    if output is not None:
        if format is OutputFormat.TABLE:
            raise typer.BadParameter("a table goes to the terminal: leave out --output")
        return (format or OutputFormat.PARQUET).value
    if format in (OutputFormat.PARQUET, OutputFormat.ORC):
        raise typer.BadParameter(f"{format} files need a place to go to: add --output DIR")
    if format is None:
        format = OutputFormat.TABLE if sys.stdout.isatty() else OutputFormat.CSV
    if format is OutputFormat.ARROW and sys.stdout.isatty():
        raise typer.BadParameter("arrow is not for reading on a terminal: send it elsewhere")
    return format.value


def _check_window(skip: int | None, head: int | None, tail: int | None) -> None:
    if tail is not None and (skip is not None or head is not None):
        raise typer.BadParameter("--tail excludes --skip and --head")


def _engines(engine: EngineName | None, master: str | None, quiet: bool) -> "Engines":
    from fretsaw.cli.engines import Engines, is_submitted

    on_spark = is_submitted() if engine is None else engine is EngineName.SPARK
    if master is not None and not on_spark:
        raise typer.BadParameter("--master is Spark's: add --engine spark")
    return Engines(on_spark, master, quiet)


@app.command()
@reporting()
def dive(
    file: Annotated[str, typer.Argument(help="A file or a URL.", metavar="FILE")],
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Begin with this filter.")
    ] = None,
    storage_option: StorageOptions = None,
) -> None:
    """Walk through a file on the screen: blocks, columns, pages, values."""
    from fretsaw.cli import dive

    dive.dive(file, where, storage_options(storage_option or ()))
