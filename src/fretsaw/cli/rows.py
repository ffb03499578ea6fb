"""The commands that are about rows: select, head, tail, count, explain."""

import sys
from typing import TYPE_CHECKING, Any

import click

from fretsaw.cli import parameters
from fretsaw.cli.options import CommandOptions

if TYPE_CHECKING:
    from fretsaw.cli.engines import Engines


@click.command(
    epilog="""\b
Example: fretsaw select trips/ --where "fare > 100" --columns id,fare --head 20"""
)
@parameters.SOURCES
@parameters.WHERE
@parameters.WINDOW
@parameters.SHAPE
@click.option("--output", "-o", metavar="PATH", help="A file by its suffix, or a directory.")
@parameters.OVERWRITE
@parameters.FORMAT
@parameters.READING
@parameters.ENGINE
def select(output: str | None, overwrite: bool, format: str | None, **given: Any) -> None:
    """Print the rows, or write them to a file or a directory."""
    if output is None:
        _print(given, format, overwrite)
    else:
        _write(given, output, format, overwrite)


@click.command(epilog="\b\nExample: fretsaw head trips.parquet -n 20 --columns id,fare")
@parameters.SOURCES
@click.option("--rows", "-n", "head", type=click.IntRange(min=0), default=10, help="How many.")
@parameters.WHERE
@parameters.COLUMNS
@parameters.SHOWN_AS
@parameters.READING
@parameters.ENGINE
def head(format: str | None, **given: Any) -> None:
    """Print the first rows."""
    _print(given, format)


@click.command(epilog="\b\nExample: fretsaw tail trips.orc -n 20 --where 'fare > 100'")
@parameters.SOURCES
@click.option("--rows", "-n", "tail", type=click.IntRange(min=0), default=10, help="How many.")
@parameters.WHERE
@parameters.COLUMNS
@parameters.SHOWN_AS
@parameters.READING
@parameters.ENGINE
def tail(format: str | None, **given: Any) -> None:
    """Print the last rows."""
    _print(given, format)


@click.command(epilog="\b\nExample: fretsaw count 'trips/*.parquet' --where \"city = 'NYC'\"")
@parameters.SOURCES
@parameters.WHERE
@parameters.WINDOW
@parameters.READING
@parameters.ENGINE
def count(**given: Any) -> None:
    """Print how many rows there are; no data is read where metadata prove the answer."""
    from fretsaw.cli import work

    work.count(*_asked(given))


@click.command(epilog='\b\nExample: fretsaw explain trips/ --where "fare > 100" --run')
@parameters.SOURCES
@parameters.WHERE
@parameters.WINDOW
@parameters.SHAPE
@click.option("--run", is_flag=True, help="Read the rows too, and say what happened.")
@parameters.READING
@parameters.ENGINE
def explain(run: bool, **given: Any) -> None:
    """Print what would be read, and what rules out the rest."""
    from fretsaw.cli import work

    work.explain(*_asked(given), run)


COMMANDS = (select, head, tail, count, explain)


def _print(given: dict[str, Any], format: str | None, overwrite: bool = False) -> None:
    if overwrite:
        raise click.UsageError("--overwrite is for --output: add it, or leave out --overwrite")
    chosen = shown_as(format)
    asked = _asked(given)
    from fretsaw.cli import work

    if chosen == "table":
        work.show(*asked)
    else:
        work.stream(*asked, chosen)


def _write(given: dict[str, Any], path: str, format: str | None, overwrite: bool) -> None:
    if format == "table":
        raise click.UsageError("a table goes to the terminal: leave out --output")
    if not path:
        raise click.UsageError("--output: the name of a file or directory, not an empty one")
    asked = _asked(given)
    from fretsaw.cli import work
    from fretsaw.cli.output import Target

    work.write(*asked, Target.at(path, format, overwrite))


def shown_as(format: str | None) -> str:
    """The format that was asked for, or what fits stdout."""
    is_terminal = sys.stdout.isatty()
    if format in ("parquet", "orc"):
        raise click.UsageError(f"{format} files need a place to go to: add --output PATH")
    if format == "arrow" and is_terminal:
        raise click.UsageError("arrow is not for reading on a terminal: send it elsewhere")
    return format or ("table" if is_terminal else "csv")


def _asked(given: dict[str, Any]) -> tuple[CommandOptions, "Engines"]:
    """What is asked for, and who reads it."""
    from fretsaw.cli.engines import Engines, is_submitted

    engine, master, quiet = (given.pop(name) for name in ("engine", "master", "quiet"))
    windows = [given.get(name) is not None for name in ("skip", "head", "tail")]
    if windows[2] and any(windows[:2]):
        raise click.UsageError("--tail excludes --skip and --head")
    on_spark = is_submitted() if engine is None else engine == "spark"
    if master is not None and not on_spark:
        raise click.UsageError("--master is Spark's: add --engine spark")
    return CommandOptions.of(given), Engines(on_spark, master, quiet)
