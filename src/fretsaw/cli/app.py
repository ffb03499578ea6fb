"""The commands by their names, and how one of them is run.

What does the work is imported when there is some: help and mistakes are told at once.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

import fretsaw
from fretsaw.cli import rows
from fretsaw.cli.parameters import STORAGE

_COMPLETE = "_FRETSAW_COMPLETE"
"""What a shell sets that wants to know how a line may go on."""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="A FILE or SOURCE may be - for standard input. See also: fretsaw COMMAND --help",
)
@click.version_option(fretsaw.__version__, prog_name="fretsaw", message="%(prog)s %(version)s")
def app() -> None:
    """Read just the rows you ask for out of Parquet and ORC files."""


for command in rows.COMMANDS:
    app.add_command(command)


@app.command(epilog='\b\nExample: eval "$(fretsaw completion bash)"')
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print what a shell is to run so that it completes commands, options and files."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    print(complete(app, {}, "fretsaw", _COMPLETE).source())


@app.command(epilog="\b\nExample: fretsaw dive trips.parquet --where 'fare > 100'")
@click.argument("file", type=click.Path())
@click.option("--where", metavar="SQL", help="Begin with this filter.")
@STORAGE
def dive(file: str, where: str | None, storage: Mapping[str, str]) -> None:
    """Walk through a file on the screen: blocks, columns, pages, values."""
    from fretsaw.cli.dive import dive

    dive(file, where, storage)


def run(arguments: Sequence[str]) -> Any:
    """Run a command; its mistakes in use end with exit code 2, and are told in a few words."""
    if instruction := os.environ.get(_COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(app, {}, "fretsaw", _COMPLETE, instruction))
    try:
        with app.make_context("fretsaw", list(arguments)) as context:
            app.invoke(context)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(mistake.exit_code)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    sys.exit(0)
